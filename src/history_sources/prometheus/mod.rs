//! A Prometheus as a source, or whoever answers like one: what happened is told from the series that
//! it scraped, as far as they say it, and to within one scrape.
//!
//! A large fabric has more samples in a day than anybody wants to carry: what changed at all is asked
//! for first, and then the samples of that alone, in portions (`look`, `matchers`).

mod client;
mod counted;
mod cover;
mod events;
mod fabrics;
mod look;
mod matchers;
mod names;
mod timeline;

use std::time::{Duration, SystemTime};

use crate::remote::Access;
use ib_fabric::topology::{End, LinkId};
use ib_mad::Guid;

use super::http::Address;
use fabric_history::model::{Cable, Cover, Moved, Port, Series, Span, Then, Told, Window};
use fabric_history::source::{AskError, Detail, Source, Wanted};

use client::{Client, range};
use look::{Look, fabric_end};
use matchers::{is, is_like, selector};

/// How far back somebody's name is looked for: a name is given to no time.
const KNOWN_FOR: Duration = Duration::from_secs(30 * 24 * 3600);

/// A Prometheus at an address.
#[derive(Clone, Debug)]
pub struct Prometheus {
    client: Client,
}

impl Prometheus {
    /// The one at `http://host:9090`, or behind a path, with headers that go with each question; the
    /// error says what is wrong with the address.
    pub fn new(url: &str, access: &Access) -> Result<Self, String> {
        Ok(Prometheus { client: Client { address: Address::new(url, access)? } })
    }

    /// Answers from a window; with nothing if that is still to come.
    fn look<T: Default>(
        &self,
        window: Window,
        answer: impl FnOnce(&Look<'_>) -> Result<T, AskError>,
    ) -> Result<T, AskError> {
        Look::new(&self.client, window)?.map_or_else(|| Ok(T::default()), |look| answer(&look))
    }
}

impl Source for Prometheus {
    fn name(&self) -> String {
        self.client.address.name()
    }

    fn span(&self) -> Result<Span, AskError> {
        // It scrapes for as long as it answers.
        Ok(Span::default())
    }

    fn ports(&self, called: &str) -> Result<Vec<Port>, AskError> {
        let to = self.client.now()?;
        let from = to.checked_sub(KNOWN_FOR).unwrap_or(SystemTime::UNIX_EPOCH);
        let mut ports: Vec<Port> = Vec::new();
        for matchers in meant(called) {
            let of = selector("infiniband_port_info", &matchers);
            let by = "max by (fabric, guid, port, node)";
            // What it is called now comes first.
            for query in [
                format!("{by} ({of})"),
                format!("{by} (last_over_time({of}{}))", range(Window { from, to })),
            ] {
                for sample in self.client.vector(&query, to)? {
                    let Some((fabric, (guid, port))) = fabric_end(&sample.labels) else { continue };
                    let is_known = |known: &Port| {
                        (&known.fabric, known.guid, known.port) == (&fabric, guid, port)
                    };
                    if !ports.iter().any(is_known) {
                        let node = sample.labels.get("node").cloned().unwrap_or_default();
                        ports.push(Port { fabric, guid, port, node });
                    }
                }
            }
        }
        ports.sort_by_key(|port| (port.guid, port.port));
        Ok(ports)
    }

    fn events(&self, wanted: &Wanted) -> Result<Vec<Told>, AskError> {
        self.look(wanted.window, |look| events::events(look, wanted))
    }

    fn cables(&self, ports: &[End], window: Window) -> Result<Vec<Cable>, AskError> {
        self.look(window, |look| fabrics::cables(look, ports))
    }

    fn moved(&self, window: Window) -> Result<Vec<Moved>, AskError> {
        self.look(window, counted::moved)
    }

    fn series(
        &self,
        ports: &[End],
        detail: Detail,
        window: Window,
    ) -> Result<Vec<Series>, AskError> {
        self.look(window, |look| counted::series(look, ports, detail))
    }

    fn fabrics(&self, at: SystemTime) -> Result<Vec<Then>, AskError> {
        fabrics::fabrics(&self.client, at)
    }

    fn cover(&self, window: Window) -> Result<Cover, AskError> {
        self.look(window, cover::cover)
    }
}

/// Which ports somebody means, as matchers: each of these lists.
fn meant(called: &str) -> Vec<Vec<String>> {
    let at = |(guid, port): End| vec![is("guid", &guid.to_string()), is("port", &port.to_string())];
    if let Ok(link) = called.parse::<LinkId>() {
        return link.ends().map(at).to_vec();
    }
    let port = called.strip_suffix(']').and_then(|rest| rest.rsplit_once('['));
    let port = port.and_then(|(node, number)| Some((node, number.parse::<u8>().ok()?)));
    let (name, number) = port.map_or((called, None), |(node, number)| (node, Some(number)));
    let number: Vec<String> =
        number.map(|number| is("port", &number.to_string())).into_iter().collect();
    // Short ones are names, though their letters may be digits.
    let guid = name.parse::<Guid>().ok().filter(|_| name.len() > 10);
    let by_guid = guid.map(|guid| is("guid", &guid.to_string()));
    // A name that several nodes share means all of them: each has GUID digits behind it.
    let shared = format!("{}(#[0-9a-f]{{6,16}})?", regex_lite::escape(name));
    let by = [Some(is_like("node", &shared)), by_guid].into_iter().flatten();
    by.map(|one| [vec![one], number.clone()].concat()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_meant_by_a_name() {
        for (called, means) in [
            ("leaf 1", vec![r#"node=~"leaf 1(#[0-9a-f]{6,16})?""#]),
            ("leaf[3]", vec![r#"node=~"leaf(#[0-9a-f]{6,16})?",port="3""#]),
            ("leaf[x]", vec![r#"node=~"leaf\\[x\\](#[0-9a-f]{6,16})?""#]),
            (
                "0x00aa000000000001[2]",
                vec![
                    r#"node=~"0x00aa000000000001(#[0-9a-f]{6,16})?",port="2""#,
                    r#"guid="0x00aa000000000001",port="2""#,
                ],
            ),
            (
                "0x00aa000000000001:5-0x00aa000000000002:1",
                vec![
                    r#"guid="0x00aa000000000001",port="5""#,
                    r#"guid="0x00aa000000000002",port="1""#,
                ],
            ),
        ] {
            let said: Vec<String> = meant(called).iter().map(|one| one.join(",")).collect();
            assert_eq!(said, means, "{called}");
        }
    }

    #[test]
    fn addresses_are_ones() {
        for url in ["http://h:9090", "http://h/select/0/prometheus/", "https://me:x@h:9090"] {
            let name = Prometheus::new(url, &Access::default()).unwrap().name();
            assert!(!name.ends_with('/') && !name.contains('@'), "{name}");
        }
        for url in ["", "h:9090", "ftp://h", "http://", "http:///x", "http://h?x=1", "http://h h"] {
            let error = Prometheus::new(url, &Access::default()).unwrap_err();
            assert!(error.contains("is no address such as"), "{url}: {error}");
        }
    }
}
