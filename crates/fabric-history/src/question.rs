//! The questions that a [`Source`](super::Source) answers, as an address has them. One table writes and reads them,
//! so that the exporter's API and whoever asks it cannot mean different things.

use std::num::NonZeroUsize;
use std::str::FromStr;
use std::time::SystemTime;

use crate::query::Query;
use ib_fabric::topology::End;
use ib_mad::Guid;

use super::Kind;
use super::model::{Window, time};
use super::page::{self, Page};
use super::source::{AskError, Detail, Paged, Wanted};

/// Below which path an exporter answers them.
pub const PATH: &str = "/api/v1/history";

/// Where it gives away a copy of a window.
pub const DUMP: &str = "/api/v1/history/dump";

/// A window as an address says it.
pub fn window(window: Window) -> Vec<(&'static str, String)> {
    vec![("from", rfc3339(window.from)), ("to", rfc3339(window.to))]
}

/// Reads what [`window`] has written.
pub fn read_window(pairs: &[(String, String)]) -> Result<Window, String> {
    Said { query: Query::new(pairs, &["from", "to"])? }.window()
}

/// How many ports may be named at once: what each of them counted in three hours, sweep by sweep, is
/// 300 kB in memory. All ports of a node are no more.
const MOST_PORTS: usize = 256;

/// A question.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Question {
    /// [`Source::span`](super::Source::span).
    Span,
    /// [`Source::ports`](super::Source::ports).
    Ports(String),
    /// [`Paged::page`].
    Events(Wanted, Page),
    /// [`Source::cables`](super::Source::cables).
    Cables(Vec<End>, Window),
    /// [`Source::moved`](super::Source::moved).
    Moved(Window),
    /// [`Source::series`](super::Source::series).
    Series(Vec<End>, Detail, Window),
    /// [`Source::fabrics`](super::Source::fabrics).
    Fabrics(SystemTime),
    /// [`Source::cover`](super::Source::cover).
    Cover(Window),
}

/// The questions' names, and the keys that each may have.
pub const NAMES: [(&str, &[&str]); 8] = [
    ("span", &[]),
    ("ports", &["called"]),
    ("events", &["from", "to", "kind", "node", "port", "limit", "after"]),
    ("cables", &["from", "to", "port"]),
    ("moved", &["from", "to"]),
    ("series", &["from", "to", "port", "detail"]),
    ("fabrics", &["at"]),
    ("cover", &["from", "to"]),
];

/// Why an address is no question.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum NoQuestion {
    /// No question has this name.
    Name(String),
    /// What it says cannot be meant so.
    Words(String),
}

impl Question {
    /// Its name, with which its path ends.
    pub fn name(&self) -> &'static str {
        match self {
            Question::Span => "span",
            Question::Ports(_) => "ports",
            Question::Events(..) => "events",
            Question::Cables(..) => "cables",
            Question::Moved(_) => "moved",
            Question::Series(..) => "series",
            Question::Fabrics(_) => "fabrics",
            Question::Cover(_) => "cover",
        }
    }

    /// What it says, key by key; lists repeat their key.
    pub fn pairs(&self) -> Vec<(&'static str, String)> {
        let mut pairs = Vec::new();
        let mut span = |window: &Window| {
            pairs.extend(self::window(*window));
        };
        match self {
            Question::Span => {}
            Question::Ports(called) => pairs.push(("called", called.clone())),
            Question::Events(wanted, page) => {
                span(&wanted.window);
                pairs.extend(wanted.kinds.iter().map(|kind| ("kind", kind.label().to_owned())));
                pairs.extend(wanted.nodes.iter().map(|guid| ("node", guid.to_string())));
                pairs.extend(wanted.ports.iter().map(written));
                pairs.push(("limit", page.limit.to_string()));
                pairs.extend(page.after.map(|after| ("after", after.to_string())));
            }
            Question::Cables(ports, window) => {
                span(window);
                pairs.extend(ports.iter().map(written));
            }
            Question::Series(ports, detail, window) => {
                span(window);
                pairs.extend(ports.iter().map(written));
                pairs.push(("detail", detail_label(*detail).to_owned()));
            }
            Question::Moved(window) | Question::Cover(window) => span(window),
            Question::Fabrics(at) => pairs.push(("at", rfc3339(*at))),
        }
        pairs
    }

    /// Reads what [`Question::name`] and [`Question::pairs`] have written.
    pub fn read(name: &str, pairs: &[(String, String)]) -> Result<Question, NoQuestion> {
        let Some((_, keys)) = NAMES.iter().find(|(known, _)| *known == name) else {
            let known: Vec<&str> = NAMES.iter().map(|(name, _)| *name).collect();
            let problem =
                format!("no question is called {name:?}; there are: {}", known.join(", "));
            return Err(NoQuestion::Name(problem));
        };
        let said = Query::new(pairs, keys).map(|query| Said { query });
        said.and_then(|said| said.question(name)).map_err(NoQuestion::Words)
    }

    /// What a source says to it, as JSON; of what cannot be written, why not.
    pub fn answer(&self, source: &dyn Paged) -> Result<serde_json::Result<Vec<u8>>, AskError> {
        Ok(match self {
            Question::Span => serde_json::to_vec(&source.span()?),
            Question::Ports(called) => serde_json::to_vec(&source.ports(called)?),
            Question::Events(wanted, page) => serde_json::to_vec(&source.page(wanted, *page)?),
            Question::Cables(ports, window) => serde_json::to_vec(&source.cables(ports, *window)?),
            Question::Moved(window) => serde_json::to_vec(&source.moved(*window)?),
            Question::Series(ports, detail, window) => {
                serde_json::to_vec(&source.series(ports, *detail, *window)?)
            }
            Question::Fabrics(at) => serde_json::to_vec(&source.fabrics(*at)?),
            Question::Cover(window) => serde_json::to_vec(&source.cover(*window)?),
        })
    }
}

/// What an address says.
struct Said<'a> {
    query: Query<'a>,
}

impl Said<'_> {
    fn question(&self, name: &str) -> Result<Question, String> {
        let query = &self.query;
        Ok(match name {
            "span" => Question::Span,
            "ports" => Question::Ports(query.required("called")?.to_owned()),
            "events" => {
                let wanted = Wanted {
                    window: self.window()?,
                    kinds: query.read_all("kind", kind)?,
                    nodes: query.read_all("node", |text| {
                        text.parse::<Guid>()
                            .map_err(|_| "must be a GUID such as 0x00aa000000000001")
                    })?,
                    ports: self.ports()?,
                };
                Question::Events(wanted, self.page()?)
            }
            "cables" => Question::Cables(self.ports()?, self.window()?),
            "moved" => Question::Moved(self.window()?),
            "series" => Question::Series(self.ports()?, self.detail()?, self.window()?),
            "fabrics" => Question::Fabrics(self.time("at")?),
            _ => Question::Cover(self.window()?),
        })
    }

    fn ports(&self) -> Result<Vec<End>, String> {
        if self.query.values("port").count() > MOST_PORTS {
            return Err(format!("port: more than {MOST_PORTS} at once"));
        }
        self.query.read_all("port", |text| {
            let end = text
                .rsplit_once(':')
                .and_then(|(guid, number)| Some((guid.parse().ok()?, u8::from_str(number).ok()?)));
            end.ok_or("must be a port such as 0x00aa000000000001:5")
        })
    }

    fn page(&self) -> Result<Page, String> {
        let limit = self.query.read("limit", |text| {
            let limit = NonZeroUsize::from_str(text).ok().filter(|limit| *limit <= page::MOST);
            limit.ok_or_else(|| format!("must be a number from 1 to {}", page::MOST))
        })?;
        let after = self.query.read("after", str::parse)?;
        Ok(Page { limit: limit.unwrap_or(page::USUAL), after })
    }

    fn detail(&self) -> Result<Detail, String> {
        let name = "detail";
        match self.query.required(name)? {
            "errors" => Ok(Detail::Errors),
            "all" => Ok(Detail::All),
            other => Err(format!("{name}: {other:?}: must be errors or all")),
        }
    }

    fn time(&self, name: &str) -> Result<SystemTime, String> {
        let text = self.query.required(name)?;
        humantime::parse_rfc3339(text)
            .map_err(|_| format!("{name}: {text:?}: must be a time such as 2026-11-21T03:12:00Z"))
    }

    fn window(&self) -> Result<Window, String> {
        let window = Window { from: self.time("from")?, to: self.time("to")? };
        if window.from > window.to { Err("to: is before from".into()) } else { Ok(window) }
    }
}

fn kind(label: &str) -> Result<Kind, String> {
    Kind::from_label(label).ok_or_else(|| {
        let labels: Vec<&str> = Kind::ALL.iter().map(|kind| kind.label()).collect();
        format!("must be one of: {}", labels.join(", "))
    })
}

fn written((guid, number): &End) -> (&'static str, String) {
    ("port", format!("{guid}:{number}"))
}

fn detail_label(detail: Detail) -> &'static str {
    match detail {
        Detail::Errors => "errors",
        Detail::All => "all",
    }
}

/// To the microsecond, as the file has times. What is before 1970 or after 9999 has no such text.
fn rfc3339(at: SystemTime) -> String {
    let most = time::of_millis(253_402_300_799_000);
    humantime::format_rfc3339_micros(at.clamp(SystemTime::UNIX_EPOCH, most)).to_string()
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
    fn what_is_written_is_read() {
        let from = SystemTime::UNIX_EPOCH + Duration::from_micros(1_700_000_000_123_456);
        let window = Window { from, to: from + Duration::from_secs(3600) };
        let ports = vec![(Guid(1), 5), (Guid(u64::MAX), 255)];
        let wanted = Wanted {
            kinds: vec![Kind::Flap, Kind::Verdict],
            nodes: vec![Guid(7)],
            ports: ports.clone(),
            ..Wanted::all(window)
        };
        for question in [
            Question::Span,
            Question::Ports("leaf & Söhne[3]".into()),
            Question::Events(Wanted::all(window), Page::default()),
            Question::Events(wanted, Page::largest("5f-2a".parse().ok())),
            Question::Cables(ports.clone(), window),
            Question::Cables(Vec::new(), window),
            Question::Moved(window),
            Question::Series(ports.clone(), Detail::Errors, window),
            Question::Series(ports, Detail::All, window),
            Question::Fabrics(from),
            Question::Cover(window),
        ] {
            let pairs = owned(&question.pairs());
            assert_eq!(Question::read(question.name(), &pairs), Ok(question));
        }
        let far = Question::Fabrics(SystemTime::UNIX_EPOCH + Duration::from_secs(1 << 40));
        assert!(Question::read("fabrics", &owned(&far.pairs())).is_ok());
    }

    /// What ports counted is held in memory until it is told: of a whole fabric's it would be gigabytes.
    #[test]
    fn so_many_ports_are_asked_for_at_once_and_no_more() {
        let from = SystemTime::UNIX_EPOCH;
        let window = Window { from, to: from };
        for (many, is_read) in [(256, true), (257, false)] {
            let ports: Vec<End> = (0..many).map(|guid| (Guid(guid), 1)).collect();
            let question = Question::Series(ports, Detail::All, window);
            let read = Question::read("series", &owned(&question.pairs()));
            assert_eq!(read.is_ok(), is_read, "{many}");
        }
    }

    #[test]
    fn what_cannot_be_meant_is_said() {
        let at = "2026-11-21T03:12:00Z";
        let (from, to) = (("from", at.to_owned()), ("to", at.to_owned()));
        for (name, pairs, says) in [
            ("party", vec![], "no question is called \"party\"; there are: span, ports, "),
            ("ports", vec![], "called: is missing"),
            ("moved", vec![from.clone()], "to: is missing"),
            ("moved", vec![from.clone(), from.clone(), to.clone()], "from: is there twice"),
            (
                "moved",
                vec![from.clone(), to.clone(), ("kind", "flap".into())],
                "unknown parameter \"kind\": there are: from, to",
            ),
            ("moved", vec![("from", "noon".into()), to.clone()], "from: \"noon\": must be a time"),
            (
                "events",
                vec![from.clone(), to.clone(), ("kind", "party".into())],
                "kind: \"party\": must be one of: exporter_start, ",
            ),
            (
                "events",
                vec![from.clone(), to.clone(), ("port", "0x1".into())],
                "port: \"0x1\": must be a port",
            ),
            (
                "events",
                vec![from.clone(), to.clone(), ("node", "x".into())],
                "node: \"x\": must be a GUID",
            ),
            (
                "events",
                vec![from.clone(), to.clone(), ("limit", "0".into())],
                "limit: \"0\": must be a number from 1 to 10000",
            ),
            (
                "events",
                vec![from.clone(), to.clone(), ("limit", "10001".into())],
                "from 1 to 10000",
            ),
            (
                "events",
                vec![from.clone(), to.clone(), ("after", "2".into())],
                "after: \"2\": must be the \"next\"",
            ),
            (
                "series",
                vec![from.clone(), to.clone(), ("detail", "most".into())],
                "detail: \"most\": must be errors or all",
            ),
            ("cover", vec![from, ("to", "2020-01-01T00:00:00Z".into())], "to: is before from"),
        ] {
            let (NoQuestion::Name(said) | NoQuestion::Words(said)) =
                Question::read(name, &owned(&pairs)).unwrap_err();
            assert!(said.contains(says) && said.lines().count() == 1, "{says}: {said}");
        }
    }
}
