//! Where the server listens, and what it calls its metrics.

use std::net::{SocketAddr, ToSocketAddrs};

use super::options::WebOptions;
use site_config::mistakes::{Mistakes, Wrong, wrong};

/// What the paths begin with that something else is served at: probes, programs' JSON, and pages.
pub const TAKEN: [&str; 10] =
    ["-", "api", "events", "host", "link", "links", "node", "port", "search", "topology"];

impl WebOptions {
    pub(super) fn mistakes(&self) -> Vec<Wrong> {
        let problem = self.telemetry_path.as_deref().and_then(wrong_path);
        problem.map(|problem| wrong("telemetry-path", problem)).into_iter().collect()
    }
}

/// Why a path cannot be that of the metrics: its segments are not plain, or something else is served
/// there.
fn wrong_path(path: &str) -> Option<String> {
    let plain = |char: char| char.is_ascii_alphanumeric() || "-_.~".contains(char);
    let mut segments = path.split('/');
    if segments.next() != Some("")
        || !segments.all(|segment| !segment.is_empty() && segment.chars().all(plain))
    {
        return Some(format!(
            "{path:?} is no path such as /metrics: it begins with /, and between slashes are letters, \
             digits and - _ . ~"
        ));
    }
    let first = path.split('/').nth(1).unwrap_or_default();
    TAKEN.contains(&first).then(|| {
        format!("{path:?} is taken: the exporter serves its own pages below /{first}; choose another path")
    })
}

/// The addresses to listen on, of each name all that it has. Names are looked up once.
pub(super) fn listen(
    flags: &WebOptions,
    file: &WebOptions,
    mistakes: &mut Mistakes<'_>,
) -> Vec<Vec<SocketAddr>> {
    let usual = vec![":10315".to_owned()];
    let given = |of: &WebOptions| of.listen_address.clone().filter(|given| !given.is_empty());
    let (by_flag, in_file) = (given(flags), given(file));
    let flag = by_flag.is_some().then_some("--web.listen-address");
    let mut addresses = Vec::new();
    for (index, text) in by_flag.or(in_file).unwrap_or(usual).iter().enumerate() {
        let found = resolve(text);
        if found.is_empty() {
            mistakes.either(
                flag,
                &[&format!("web.listen-address[{index}]")],
                format!("{text:?} is not an address and port, such as :10315 or 127.0.0.1:10315"),
            );
        }
        addresses.push(found);
    }
    addresses
}

/// `HOST:PORT`, or `:PORT` for all addresses. A host can have several: `localhost` is `::1`, too.
fn resolve(text: &str) -> Vec<SocketAddr> {
    let full = if text.starts_with(':') { format!("[::]{text}") } else { text.to_owned() };
    let mut found: Vec<SocketAddr> = Vec::new();
    for address in full.to_socket_addrs().into_iter().flatten() {
        // `/etc/hosts` may have a name twice, and a second bind would find the port taken.
        if !found.contains(&address) {
            found.push(address);
        }
    }
    found
}
