//! The queries that a [`Source`] answers, and their form as an HTTP address: the exporter's API
//! reads them, and its client writes them. Each parameter is read by its name, and what is wrong is one line
//! that names the parameter and the values that it takes.

use std::fmt::Display;
use std::num::NonZeroUsize;
use std::str::FromStr;
use std::time::SystemTime;

use crate::incidents::{Incidents, Severity};
use crate::model::{Window, time};
use crate::source::{Answer, EventFilter, Page, SeriesDetail, Source};
use crate::{EventKind, source};
use ib_mad::{Guid, PortKey};

/// The path below which an exporter answers queries.
pub const PATH: &str = "/api/v1/history";

/// The path at which it returns a copy of a window.
pub const DUMP: &str = "/api/v1/history/dump";

/// A window as parameters of an address.
pub fn window(window: Window) -> Vec<(&'static str, String)> {
    vec![("from", rfc3339(window.from)), ("to", rfc3339(window.to))]
}

/// Reads what [`window`] has written.
pub fn read_window(pairs: &[(String, String)]) -> Result<Window, String> {
    Query::new(pairs, &["from", "to"])?.window()
}

/// How many ports a query may have: the readings of one in three hours, sweep by sweep, take 300 kB of
/// memory. A node has no more ports.
const MAX_PORTS: usize = 256;

/// A query.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum HistoryQuery {
    /// [`Source::span`].
    Span,
    /// [`Source::ports`].
    Ports(String),
    /// [`Source::page`].
    Events(EventFilter, Page),
    /// [`Incidents::find`]: those of at least a severity, at most so many.
    Incidents(Window, Severity, NonZeroUsize),
    /// [`Source::cables`].
    Cables(Vec<PortKey>, Window),
    /// [`Source::error_deltas`].
    ErrorDeltas(Window),
    /// [`Source::series`].
    Series(Vec<PortKey>, SeriesDetail, Window),
    /// [`Source::fabrics`].
    Fabrics(SystemTime),
    /// [`Source::cable`].
    Cable(String),
    /// [`Source::coverage`].
    Coverage(Window),
}

/// The names of queries, and the parameters that each may have.
pub const NAMES: [(&str, &[&str]); 10] = [
    ("span", &[]),
    ("ports", &["called"]),
    ("events", &["from", "to", "kind", "node", "port", "limit", "after"]),
    ("incidents", &["from", "to", "severity", "limit"]),
    ("cables", &["from", "to", "port"]),
    ("moved", &["from", "to"]),
    ("series", &["from", "to", "port", "detail"]),
    ("fabrics", &["at"]),
    ("cable", &["serial"]),
    ("cover", &["from", "to"]),
];

/// Why an address is not a query.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum InvalidQuery {
    /// There is no query of this name.
    Name(String),
    /// Its parameters are invalid.
    Parameters(String),
}

impl HistoryQuery {
    /// Its name, with which its path ends.
    pub fn name(&self) -> &'static str {
        match self {
            HistoryQuery::Span => "span",
            HistoryQuery::Ports(_) => "ports",
            HistoryQuery::Events(..) => "events",
            HistoryQuery::Incidents(..) => "incidents",
            HistoryQuery::Cables(..) => "cables",
            HistoryQuery::ErrorDeltas(_) => "moved",
            HistoryQuery::Series(..) => "series",
            HistoryQuery::Fabrics(_) => "fabrics",
            HistoryQuery::Cable(_) => "cable",
            HistoryQuery::Coverage(_) => "cover",
        }
    }

    /// Its parameters; lists repeat theirs.
    pub fn pairs(&self) -> Vec<(&'static str, String)> {
        let mut pairs = Vec::new();
        let mut span = |window: &Window| pairs.extend(self::window(*window));
        match self {
            HistoryQuery::Span => {}
            HistoryQuery::Ports(called) => pairs.push(("called", called.clone())),
            HistoryQuery::Events(filter, page) => {
                span(&filter.window);
                pairs.extend(filter.kinds.iter().map(|kind| ("kind", kind.label().to_owned())));
                pairs.extend(filter.nodes.iter().map(|guid| ("node", guid.to_string())));
                pairs.extend(filter.ports.iter().map(port_pair));
                pairs.push(("limit", page.limit.to_string()));
                pairs.extend(page.after.map(|after| ("after", after.to_string())));
            }
            HistoryQuery::Incidents(window, severity, limit) => {
                span(window);
                pairs.push(("severity", severity.label().to_owned()));
                pairs.push(("limit", limit.to_string()));
            }
            HistoryQuery::Cables(ports, window) => {
                span(window);
                pairs.extend(ports.iter().map(port_pair));
            }
            HistoryQuery::Series(ports, detail, window) => {
                span(window);
                pairs.extend(ports.iter().map(port_pair));
                pairs.push(("detail", detail.label().to_owned()));
            }
            HistoryQuery::ErrorDeltas(window) | HistoryQuery::Coverage(window) => span(window),
            HistoryQuery::Fabrics(at) => pairs.push(("at", rfc3339(*at))),
            HistoryQuery::Cable(serial) => pairs.push(("serial", serial.clone())),
        }
        pairs
    }

    /// Reads what [`HistoryQuery::name`] and [`HistoryQuery::pairs`] have written.
    pub fn read(name: &str, pairs: &[(String, String)]) -> Result<HistoryQuery, InvalidQuery> {
        let Some((_, keys)) = NAMES.iter().find(|(known, _)| *known == name) else {
            let known: Vec<&str> = NAMES.iter().map(|(name, _)| *name).collect();
            let problem = format!("unknown query {name:?}; known: {}", known.join(", "));
            return Err(InvalidQuery::Name(problem));
        };
        let query = Query::new(pairs, keys).and_then(|query| query.parse(name));
        query.map_err(InvalidQuery::Parameters)
    }

    /// A source's answer as JSON.
    pub fn answer(&self, source: &dyn Source) -> Answer<serde_json::Result<Vec<u8>>> {
        use serde_json::to_vec;
        Ok(match self {
            HistoryQuery::Span => to_vec(&source.span()?),
            HistoryQuery::Ports(called) => to_vec(&source.ports(called)?),
            HistoryQuery::Events(filter, page) => to_vec(&source.page(filter, *page)?),
            HistoryQuery::Incidents(window, severity, limit) => {
                let mut found = Incidents::find(source, *window, limit.get())?;
                found.incidents.retain(|incident| incident.severity >= *severity);
                to_vec(&found)
            }
            HistoryQuery::Cables(ports, window) => to_vec(&source.cables(ports, *window)?),
            HistoryQuery::ErrorDeltas(window) => to_vec(&source.error_deltas(*window)?),
            HistoryQuery::Series(ports, detail, window) => {
                to_vec(&source.series(ports, *detail, *window)?)
            }
            HistoryQuery::Fabrics(at) => to_vec(&source.fabrics(*at)?),
            HistoryQuery::Cable(serial) => to_vec(&source.cable(serial)?),
            HistoryQuery::Coverage(window) => to_vec(&source.coverage(*window)?),
        })
    }
}

impl Query<'_> {
    fn parse(&self, name: &str) -> Result<HistoryQuery, String> {
        Ok(match name {
            "span" => HistoryQuery::Span,
            "ports" => HistoryQuery::Ports(self.required("called")?.to_owned()),
            "events" => {
                let filter = EventFilter {
                    window: self.window()?,
                    kinds: self.read_all("kind", |label| {
                        EventKind::from_label(label)
                            .ok_or_else(|| format!("must be one of: {}", EventKind::labels()))
                    })?,
                    nodes: self.read_all("node", |text| {
                        text.parse::<Guid>()
                            .map_err(|_| "must be a GUID such as 0x00aa000000000001")
                    })?,
                    ports: self.ports()?,
                };
                HistoryQuery::Events(filter, self.page()?)
            }
            "incidents" => {
                let severity = self.read("severity", |label| {
                    Severity::from_label(label)
                        .ok_or_else(|| format!("must be one of: {}", Severity::labels()))
                })?;
                let limit = self.page()?.limit;
                HistoryQuery::Incidents(self.window()?, severity.unwrap_or_default(), limit)
            }
            "cables" => HistoryQuery::Cables(self.ports()?, self.window()?),
            "moved" => HistoryQuery::ErrorDeltas(self.window()?),
            "series" => HistoryQuery::Series(self.ports()?, self.detail()?, self.window()?),
            "fabrics" => HistoryQuery::Fabrics(self.time("at")?),
            "cable" => HistoryQuery::Cable(self.required("serial")?.to_owned()),
            _ => HistoryQuery::Coverage(self.window()?),
        })
    }

    fn ports(&self) -> Result<Vec<PortKey>, String> {
        if self.values("port").count() > MAX_PORTS {
            return Err(format!("port: more than {MAX_PORTS} values"));
        }
        self.read_all("port", |text| {
            text.parse().map_err(|_| "must be a port such as 0x00aa000000000001:5")
        })
    }

    fn page(&self) -> Result<Page, String> {
        let limit = self.read("limit", |text| {
            let limit =
                NonZeroUsize::from_str(text).ok().filter(|limit| *limit <= source::MAX_LIMIT);
            limit.ok_or_else(|| format!("must be a number from 1 to {}", source::MAX_LIMIT))
        })?;
        let after = self.read("after", str::parse)?;
        Ok(Page { limit: limit.unwrap_or(source::DEFAULT_LIMIT), after })
    }

    fn detail(&self) -> Result<SeriesDetail, String> {
        let read = |text: &str| SeriesDetail::from_label(text).ok_or("must be errors or all");
        self.read_required("detail", read)
    }

    fn time(&self, name: &str) -> Result<SystemTime, String> {
        self.read_required(name, |text| {
            humantime::parse_rfc3339(text)
                .map_err(|_| "must be a time such as 2026-11-21T03:12:00Z")
        })
    }

    fn window(&self) -> Result<Window, String> {
        let window = Window { from: self.time("from")?, to: self.time("to")? };
        if window.from > window.to { Err("to: is before from".into()) } else { Ok(window) }
    }
}

fn port_pair(port: &PortKey) -> (&'static str, String) {
    ("port", port.to_string())
}

/// RFC 3339 to the microsecond, the precision of the file.
fn rfc3339(at: SystemTime) -> String {
    humantime::format_rfc3339_micros(time::clamped(at)).to_string()
}

/// The parameters of an address, percent-decoded, in their order.
pub type Pairs = Vec<(String, String)>;

/// The parameters of an address, all of which are known.
#[derive(Clone, Copy, Debug)]
pub struct Query<'a> {
    pairs: &'a [(String, String)],
}

impl<'a> Query<'a> {
    /// An error if there is a parameter that is not known.
    pub fn new(pairs: &'a [(String, String)], known: &[&str]) -> Result<Self, String> {
        let is_unknown = |(name, _): &&(String, String)| !known.contains(&name.as_str());
        let Some((name, _)) = pairs.iter().find(is_unknown) else { return Ok(Query { pairs }) };
        Err(match known.join(", ") {
            none if none.is_empty() => {
                format!("unknown parameter {name:?}: this path has no parameters")
            }
            known => format!("unknown parameter {name:?}; known: {known}"),
        })
    }

    /// The values of a parameter that may be repeated.
    pub fn values(&self, name: &str) -> impl Iterator<Item = &'a str> {
        self.pairs.iter().filter(move |(has, _)| has == name).map(|(_, value)| value.as_str())
    }

    /// The value of a parameter that may be left out.
    pub fn optional(&self, name: &str) -> Result<Option<&'a str>, String> {
        let mut values = self.values(name);
        match (values.next(), values.next()) {
            (value, None) => Ok(value),
            _ => Err(format!("{name}: is given more than once")),
        }
    }

    /// The value of a parameter that has to be there.
    pub fn required(&self, name: &str) -> Result<&'a str, String> {
        self.optional(name)?.ok_or_else(|| missing(name))
    }

    /// The value of a parameter that may be left out, read.
    pub fn read<T, E: Display>(
        &self,
        name: &str,
        read: impl Fn(&str) -> Result<T, E>,
    ) -> Result<Option<T>, String> {
        self.optional(name)?;
        Ok(self.read_all(name, read)?.pop())
    }

    fn read_required<T, E: Display>(
        &self,
        name: &str,
        read: impl Fn(&str) -> Result<T, E>,
    ) -> Result<T, String> {
        self.read(name, read)?.ok_or_else(|| missing(name))
    }

    /// The values of a parameter that may be repeated, read.
    pub fn read_all<T, E: Display>(
        &self,
        name: &str,
        read: impl Fn(&str) -> Result<T, E>,
    ) -> Result<Vec<T>, String> {
        let read = |text| read(text).map_err(|error| format!("{name}: {text:?} {error}"));
        self.values(name).map(read).collect()
    }

    /// A parameter that is `true` or `false`, and `false` if it is left out.
    pub fn flag(&self, name: &str) -> Result<bool, String> {
        let flag = self.read(name, |value| value.parse().map_err(|_| "must be true or false"))?;
        Ok(flag.unwrap_or(false))
    }
}

fn missing(name: &str) -> String {
    format!("parameter {name:?} is required")
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use ib_mad::Guid;

    fn owned(pairs: &[(&str, String)]) -> Vec<(String, String)> {
        pairs.iter().map(|(key, value)| ((*key).to_owned(), value.clone())).collect()
    }

    #[test]
    fn written_query_parses_to_the_same_query() {
        let from = SystemTime::UNIX_EPOCH + Duration::from_micros(1_700_000_000_123_456);
        let window = Window { from, to: from + Duration::from_secs(3600) };
        let ports = vec![PortKey::new(Guid(1), 5), PortKey::new(Guid(u64::MAX), 255)];
        let wanted = EventFilter {
            kinds: vec![EventKind::Flap, EventKind::VerdictChanged],
            nodes: vec![Guid(7)],
            ports: ports.clone(),
            ..EventFilter::all(window)
        };
        for query in [
            HistoryQuery::Span,
            HistoryQuery::Ports("leaf & Söhne[3]".into()),
            HistoryQuery::Events(EventFilter::all(window), Page::default()),
            HistoryQuery::Events(wanted, Page::largest("5f-2a".parse().ok())),
            HistoryQuery::Incidents(window, Severity::Warning, source::DEFAULT_LIMIT),
            HistoryQuery::Cables(ports.clone(), window),
            HistoryQuery::Cables(Vec::new(), window),
            HistoryQuery::ErrorDeltas(window),
            HistoryQuery::Series(ports.clone(), SeriesDetail::Errors, window),
            HistoryQuery::Series(ports, SeriesDetail::All, window),
            HistoryQuery::Fabrics(from),
            HistoryQuery::Cable("MT2135 é&1".into()),
            HistoryQuery::Coverage(window),
        ] {
            let pairs = owned(&query.pairs());
            assert_eq!(HistoryQuery::read(query.name(), &pairs), Ok(query));
        }
        let far = HistoryQuery::Fabrics(SystemTime::UNIX_EPOCH + Duration::from_secs(1 << 40));
        assert!(HistoryQuery::read("fabrics", &owned(&far.pairs())).is_ok());
    }

    /// An answer is held in memory: for a whole fabric it would be gigabytes.
    #[test]
    fn more_than_256_ports_are_refused() {
        let from = SystemTime::UNIX_EPOCH;
        let window = Window { from, to: from };
        for (many, is_read) in [(256, true), (257, false)] {
            let ports: Vec<PortKey> = (0..many).map(|guid| PortKey::new(Guid(guid), 1)).collect();
            let query = HistoryQuery::Series(ports, SeriesDetail::All, window);
            let read = HistoryQuery::read("series", &owned(&query.pairs()));
            assert_eq!(read.is_ok(), is_read, "{many}");
        }
    }

    #[test]
    fn invalid_query_has_a_one_line_error() {
        let at = "2026-11-21T03:12:00Z";
        let (from, to) = (("from", at.to_owned()), ("to", at.to_owned()));
        for (name, pairs, says) in [
            ("party", vec![], "unknown query \"party\"; known: span, ports, "),
            ("ports", vec![], "parameter \"called\" is required"),
            ("moved", vec![from.clone()], "parameter \"to\" is required"),
            (
                "moved",
                vec![from.clone(), from.clone(), to.clone()],
                "from: is given more than once",
            ),
            (
                "moved",
                vec![from.clone(), to.clone(), ("kind", "flap".into())],
                "unknown parameter \"kind\"; known: from, to",
            ),
            ("moved", vec![("from", "noon".into()), to.clone()], "from: \"noon\" must be a time"),
            (
                "events",
                vec![from.clone(), to.clone(), ("kind", "party".into())],
                "kind: \"party\" must be one of: exporter_start, ",
            ),
            (
                "events",
                vec![from.clone(), to.clone(), ("port", "0x1".into())],
                "port: \"0x1\" must be a port",
            ),
            (
                "events",
                vec![from.clone(), to.clone(), ("node", "x".into())],
                "node: \"x\" must be a GUID",
            ),
            (
                "events",
                vec![from.clone(), to.clone(), ("limit", "0".into())],
                "limit: \"0\" must be a number from 1 to 10000",
            ),
            (
                "events",
                vec![from.clone(), to.clone(), ("limit", "10001".into())],
                "from 1 to 10000",
            ),
            (
                "events",
                vec![from.clone(), to.clone(), ("after", "2".into())],
                "after: \"2\" must be the value of \"next\"",
            ),
            (
                "series",
                vec![from.clone(), to.clone(), ("detail", "most".into())],
                "detail: \"most\" must be errors or all",
            ),
            ("cover", vec![from, ("to", "2020-01-01T00:00:00Z".into())], "to: is before from"),
        ] {
            let (InvalidQuery::Name(said) | InvalidQuery::Parameters(said)) =
                HistoryQuery::read(name, &owned(&pairs)).unwrap_err();
            assert!(said.contains(says) && said.lines().count() == 1, "{says}: {said}");
        }
    }
}

#[cfg(test)]
mod query_tests {
    use super::*;

    #[test]
    fn each_mistake_names_its_parameter_and_what_it_takes() {
        let pairs = |text: &str| -> Pairs {
            let pairs = text.split('&').filter_map(|pair| pair.split_once('='));
            pairs.map(|(name, value)| (name.into(), value.into())).collect()
        };
        let flag = |text: &str| Query::new(&pairs(text), &["a", "b"])?.flag("a");
        assert_eq!(flag(""), Ok(false));
        assert_eq!(flag("a=true&b=x"), Ok(true));
        for (text, says) in [
            ("a=maybe", "a: \"maybe\" must be true or false"),
            ("a=", "a: \"\" must be true or false"),
            ("a=true&a=true", "a: is given more than once"),
            ("c=1", "unknown parameter \"c\"; known: a, b"),
            ("a=x\ny", "a: \"x\\ny\" must be true or false"),
        ] {
            assert_eq!(flag(text), Err(says.into()), "{text}");
        }
        let none = pairs("c=1");
        assert_eq!(
            Query::new(&none, &[]).unwrap_err(),
            "unknown parameter \"c\": this path has no parameters"
        );
        let none = Query::new(&[], &["a"]).unwrap();
        assert_eq!(none.required("a"), Err("parameter \"a\" is required".into()));
    }
}
