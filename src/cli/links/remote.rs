//! Links from a running exporter.

use std::time::Duration;

use crate::api::Filter;
use crate::api::LINKS;
use crate::api::model::Links;
use crate::cli::{Exit, Fatal};
use crate::remote::{Access, Remote};

/// The time limit of the request.
const TIMEOUT: Duration = Duration::from_secs(10);

/// The largest response: 162,000 ports make some 100 MB.
const MAX_BODY: u64 = 1 << 30;

/// Requests the links of the exporter at an address.
pub fn links(url: &str, filter: &Filter, access: &Access) -> Result<Links, Fatal> {
    let wrong = |problem: String| Fatal::new(Exit::Usage, format!("--url: {problem}"));
    let remote = Remote::new(url, access, TIMEOUT, TIMEOUT).map_err(wrong)?;
    let url = format!("{}{LINKS}", remote.name());
    let (status, body) = get(&remote, filter).map_err(|error| {
        let problem = format!("{url} does not answer: {error}; is an exporter running there?");
        Fatal::new(Exit::Failed, problem)
    })?;
    let failed = |problem: String| Err(Fatal::new(Exit::Failed, problem));
    let advice = "name the address of an exporter such as http://127.0.0.1:10315";
    match status {
        200 => serde_json::from_slice(&body).or_else(|error| {
            failed(format!("{url} answers what is no list of links ({error}): {advice}"))
        }),
        401 => {
            failed(format!("{url} wants a login: https://USER@HOST with --source.password-file"))
        }
        // The exporter's own text says what is wrong with the request.
        400 => failed(format!("{url}: {}", first_line(&body))),
        status => failed(format!("{url} answers {status}: {advice}")),
    }
}

fn get(remote: &Remote, filter: &Filter) -> Result<(u16, Vec<u8>), ureq::Error> {
    let mut request = remote.get(LINKS);
    if filter.suspect {
        request = request.query("suspect", "true");
    }
    if let Some(fabric) = &filter.fabric {
        request = request.query("fabric", fabric);
    }
    let mut response = request.call()?;
    let body = response.body_mut().with_config().limit(MAX_BODY).read_to_vec()?;
    Ok((response.status().as_u16(), body))
}

/// The first line of a response for a message, without control characters.
fn first_line(body: &[u8]) -> String {
    let text = String::from_utf8_lossy(body);
    let line = text.lines().next().unwrap_or_default();
    line.chars().filter(|char| !char.is_control()).take(200).collect()
}
