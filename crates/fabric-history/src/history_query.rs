//! The queries that a [`Source`] answers, and their form as an HTTP address: the exporter's API reads them, and its
//! client writes them.

use std::num::NonZeroUsize;
use std::str::FromStr;
use std::time::SystemTime;

use crate::incidents::{Incidents, Severity};
use crate::model::{Window, time};
use crate::parameters::Parameters;
use crate::source::{Answer, EventFilter, EventOrder, Page, SeriesDetail, Source};
use crate::{EventKind, source};
use ib_mad::{Guid, PortKey};

/// The path below which an exporter answers queries.
pub const PATH: &str = "/api/v1/history";

/// The path at which it returns a copy of a window.
pub const DUMP: &str = "/api/v1/history/dump";

/// How many ports a query may have: the readings of one in three hours, sweep by sweep, take 300 kB of
/// memory. A node has no more ports.
const MAX_PORTS: usize = 256;

/// Parameters as they are written; lists repeat theirs.
pub type WrittenPairs = Vec<(&'static str, String)>;

/// A window as parameters of an address.
pub fn window(window: Window) -> WrittenPairs {
    let mut pairs = Vec::new();
    window.write("", &mut pairs);
    pairs
}

/// Reads what [`window`] has written.
pub fn read_window(pairs: &[(String, String)]) -> Result<Window, String> {
    Window::read("", &Parameters::new(pairs, &Window::names(""))?)
}

/// Why an address is not a query.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum InvalidQuery {
    /// There is no query of this name.
    Name(String),
    /// Its parameters are invalid.
    Parameters(String),
}

/// Declares the queries. Each row is a variant, its name in addresses, its values with the name of their parameter
/// (see [`Parameter`]), and the answer of a source.
macro_rules! queries {
    ($($(#[$about:meta])* $variant:ident $name:literal $(($($field:ident: $type:ty),+))?
        => |$source:ident| $answer:expr;)+) => {
        /// A query.
        #[derive(Clone, Debug, PartialEq, Eq)]
        pub enum HistoryQuery { $($(#[$about])* $variant $(($($type),+))?,)+ }

        /// The names of queries.
        pub const NAMES: [&str; [$($name),+].len()] = [$($name),+];

        /// The names of the parameters that a query may have; `None` if there is no query of this name.
        pub fn parameter_names(name: &str) -> Option<Vec<&'static str>> {
            let names: &[Vec<&'static str>] = match name {
                $($name => &[$($(<$type>::names(stringify!($field))),+)?],)+
                _ => return None,
            };
            Some(names.concat())
        }

        impl HistoryQuery {
            /// Its name, with which its path ends.
            pub fn name(&self) -> &'static str {
                match self { $(HistoryQuery::$variant { .. } => $name,)+ }
            }

            /// Its parameters.
            pub fn pairs(&self) -> WrittenPairs {
                let mut pairs = Vec::new();
                match self {
                    $(HistoryQuery::$variant $(($($field),+))? => {
                        $($($field.write(stringify!($field), &mut pairs);)+)?
                    })+
                }
                pairs
            }

            /// Reads what [`HistoryQuery::name`] and [`HistoryQuery::pairs`] have written.
            pub fn read(name: &str, pairs: &[(String, String)]) -> Result<HistoryQuery, InvalidQuery> {
                let unknown = || {
                    let problem = format!("unknown query {name:?}; known: {}", NAMES.join(", "));
                    InvalidQuery::Name(problem)
                };
                let known = parameter_names(name).ok_or_else(unknown)?;
                let parameters = Parameters::new(pairs, &known).map_err(InvalidQuery::Parameters)?;
                let read = || Ok(Some(match name {
                    $($name => HistoryQuery::$variant $(($(
                        <$type>::read(stringify!($field), &parameters)?
                    ),+))?,)+
                    _ => return Ok(None),
                }));
                read().map_err(InvalidQuery::Parameters)?.ok_or_else(unknown)
            }

            /// A source's answer as JSON.
            pub fn answer(&self, source: &dyn Source) -> Answer<serde_json::Result<Vec<u8>>> {
                match self {
                    $(HistoryQuery::$variant $(($($field),+))? => {
                        let $source = source;
                        Ok(serde_json::to_vec(&$answer?))
                    })+
                }
            }
        }
    };
}

queries! {
    /// [`Source::span`].
    Span "span" => |source| source.span();
    /// [`Source::ports`].
    Ports "ports" (called: String) => |source| source.ports(called);
    /// [`Source::page`].
    Events "events" (filter: EventFilter, page: Page) => |source| source.page(filter, *page);
    /// [`Incidents::find`]: those of at least a severity, at most so many.
    Incidents "incidents" (window: Window, severity: Severity, limit: NonZeroUsize)
        => |source| incidents(source, *window, *severity, *limit);
    /// [`Source::cables`].
    Cables "cables" (window: Window, port: Vec<PortKey>) => |source| source.cables(port, *window);
    /// [`Source::error_deltas`].
    ErrorDeltas "moved" (window: Window) => |source| source.error_deltas(*window);
    /// [`Source::series`].
    Series "series" (window: Window, port: Vec<PortKey>, detail: SeriesDetail)
        => |source| source.series(port, *detail, *window);
    /// [`Source::fabrics`].
    Fabrics "fabrics" (at: SystemTime) => |source| source.fabrics(*at);
    /// [`Source::cable`].
    Cable "cable" (serial: String) => |source| source.cable(serial);
    /// [`Source::coverage`].
    Coverage "cover" (window: Window) => |source| source.coverage(*window);
}

fn incidents(
    source: &dyn Source,
    window: Window,
    least: Severity,
    limit: NonZeroUsize,
) -> Answer<Incidents> {
    let mut found = Incidents::find(source, window, limit.get())?;
    found.incidents.retain(|incident| incident.severity >= least);
    Ok(found)
}

/// A value of a query. It is one parameter, with the name that the query gives it, or several with names of their own.
trait Parameter: Sized {
    fn names(name: &'static str) -> Vec<&'static str> {
        vec![name]
    }

    fn write(&self, name: &'static str, pairs: &mut WrittenPairs);

    fn read(name: &str, parameters: &Parameters<'_>) -> Result<Self, String>;
}

impl Parameter for String {
    fn write(&self, name: &'static str, pairs: &mut WrittenPairs) {
        pairs.push((name, self.clone()));
    }

    fn read(name: &str, parameters: &Parameters<'_>) -> Result<Self, String> {
        Ok(parameters.required(name)?.to_owned())
    }
}

/// RFC 3339 to the microsecond, the precision of the file.
impl Parameter for SystemTime {
    fn write(&self, name: &'static str, pairs: &mut WrittenPairs) {
        pairs.push((name, humantime::format_rfc3339_micros(time::clamped(*self)).to_string()));
    }

    fn read(name: &str, parameters: &Parameters<'_>) -> Result<Self, String> {
        parameters.read_required(name, |text| {
            humantime::parse_rfc3339(text)
                .map_err(|_| "must be a time such as 2026-11-21T03:12:00Z")
        })
    }
}

impl Parameter for Window {
    fn names(_: &'static str) -> Vec<&'static str> {
        vec!["from", "to"]
    }

    fn write(&self, _: &'static str, pairs: &mut WrittenPairs) {
        self.from.write("from", pairs);
        self.to.write("to", pairs);
    }

    fn read(_: &str, parameters: &Parameters<'_>) -> Result<Self, String> {
        let from = SystemTime::read("from", parameters)?;
        let to = SystemTime::read("to", parameters)?;
        if from > to { Err("to: is before from".into()) } else { Ok(Window { from, to }) }
    }
}

impl Parameter for Vec<PortKey> {
    fn write(&self, name: &'static str, pairs: &mut WrittenPairs) {
        pairs.extend(self.iter().map(|port| (name, format!("{}:{}", port.guid, port.number))));
    }

    fn read(name: &str, parameters: &Parameters<'_>) -> Result<Self, String> {
        if parameters.values(name).count() > MAX_PORTS {
            return Err(format!("{name}: more than {MAX_PORTS} values"));
        }
        parameters.read_all(name, |text| {
            let port = text.rsplit_once(':').and_then(|(guid, number)| {
                Some(PortKey::new(guid.parse().ok()?, u8::from_str(number).ok()?))
            });
            port.ok_or("must be a port such as 0x00aa000000000001:5")
        })
    }
}

impl Parameter for EventFilter {
    fn names(_: &'static str) -> Vec<&'static str> {
        vec!["from", "to", "kind", "node", "port"]
    }

    fn write(&self, _: &'static str, pairs: &mut WrittenPairs) {
        self.window.write("", pairs);
        pairs.extend(self.kinds.iter().map(|kind| ("kind", kind.label().to_owned())));
        pairs.extend(self.nodes.iter().map(|guid| ("node", guid.to_string())));
        self.ports.write("port", pairs);
    }

    fn read(_: &str, parameters: &Parameters<'_>) -> Result<Self, String> {
        let kind = |label: &str| {
            EventKind::from_label(label)
                .ok_or_else(|| format!("must be one of: {}", EventKind::labels()))
        };
        let node = |text: &str| {
            text.parse::<Guid>().map_err(|_| "must be a GUID such as 0x00aa000000000001")
        };
        Ok(EventFilter {
            window: Window::read("", parameters)?,
            kinds: parameters.read_all("kind", kind)?,
            nodes: parameters.read_all("node", node)?,
            ports: Vec::read("port", parameters)?,
        })
    }
}

impl Parameter for Page {
    fn names(_: &'static str) -> Vec<&'static str> {
        vec!["limit", "after", "order"]
    }

    fn write(&self, _: &'static str, pairs: &mut WrittenPairs) {
        self.limit.write("limit", pairs);
        pairs.extend(self.after.map(|after| ("after", after.to_string())));
        let is_usual = self.order == EventOrder::default();
        pairs.extend((!is_usual).then(|| ("order", self.order.label().to_owned())));
    }

    fn read(_: &str, parameters: &Parameters<'_>) -> Result<Self, String> {
        let limit = NonZeroUsize::read("limit", parameters)?;
        let after = parameters.read("after", str::parse)?;
        let order = parameters.read("order", |label| {
            EventOrder::from_label(label)
                .ok_or_else(|| format!("must be one of: {}", EventOrder::labels()))
        })?;
        Ok(Page { limit, after, order: order.unwrap_or_default() })
    }
}

/// How many are returned at most.
impl Parameter for NonZeroUsize {
    fn write(&self, name: &'static str, pairs: &mut WrittenPairs) {
        pairs.push((name, self.to_string()));
    }

    fn read(name: &str, parameters: &Parameters<'_>) -> Result<Self, String> {
        let limit = parameters.read(name, |text| {
            let limit =
                NonZeroUsize::from_str(text).ok().filter(|limit| *limit <= source::MAX_LIMIT);
            limit.ok_or_else(|| format!("must be a number from 1 to {}", source::MAX_LIMIT))
        })?;
        Ok(limit.unwrap_or(source::DEFAULT_LIMIT))
    }
}

impl Parameter for Severity {
    fn write(&self, name: &'static str, pairs: &mut WrittenPairs) {
        pairs.push((name, self.label().to_owned()));
    }

    fn read(name: &str, parameters: &Parameters<'_>) -> Result<Self, String> {
        let severity = parameters.read(name, |label| {
            Severity::from_label(label)
                .ok_or_else(|| format!("must be one of: {}", Severity::labels()))
        })?;
        Ok(severity.unwrap_or_default())
    }
}

impl Parameter for SeriesDetail {
    fn write(&self, name: &'static str, pairs: &mut WrittenPairs) {
        pairs.push((name, self.label().to_owned()));
    }

    fn read(name: &str, parameters: &Parameters<'_>) -> Result<Self, String> {
        let read = |text: &str| SeriesDetail::from_label(text).ok_or("must be errors or all");
        parameters.read_required(name, read)
    }
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
            HistoryQuery::Events(wanted.clone(), Page::largest("5f-2a".parse().ok())),
            HistoryQuery::Events(wanted, Page::recorded("0-0".parse().ok())),
            HistoryQuery::Incidents(window, Severity::Warning, source::DEFAULT_LIMIT),
            HistoryQuery::Cables(window, ports.clone()),
            HistoryQuery::Cables(window, Vec::new()),
            HistoryQuery::ErrorDeltas(window),
            HistoryQuery::Series(window, ports.clone(), SeriesDetail::Errors),
            HistoryQuery::Series(window, ports, SeriesDetail::All),
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
            let query = HistoryQuery::Series(window, ports, SeriesDetail::All);
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
                "events",
                vec![from.clone(), to.clone(), ("order", "place".into())],
                "order: \"place\" must be one of: time, recorded",
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
