//! The questions that a [`Source`] answers, as an address has them. One table writes and reads them,
//! so that the exporter's API and whoever asks it cannot mean different things.

use std::fmt::Display;
use std::str::FromStr;
use std::time::SystemTime;

use crate::fabric::topology::End;

use super::Kind;
use super::model::{Window, time};
use super::source::{AskError, Detail, Source, Wanted};

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
    let said = Said { pairs };
    said.ensure_known(&["from", "to"])?;
    said.window()
}

/// How many ports may be named at once: what each of them counted in three hours, sweep by sweep, is
/// 300 kB in memory. All ports of a node are no more.
const MOST_PORTS: usize = 256;

/// A question.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Question {
    /// [`Source::span`].
    Span,
    /// [`Source::ports`].
    Ports(String),
    /// [`Source::events`].
    Events(Wanted),
    /// [`Source::cables`].
    Cables(Vec<End>, Window),
    /// [`Source::moved`].
    Moved(Window),
    /// [`Source::series`].
    Series(Vec<End>, Detail, Window),
    /// [`Source::fabrics`].
    Fabrics(SystemTime),
    /// [`Source::cover`].
    Cover(Window),
}

/// The questions' names, and the keys that each may have.
pub const NAMES: [(&str, &[&str]); 8] = [
    ("span", &[]),
    ("ports", &["called"]),
    ("events", &["from", "to", "kind", "node", "port"]),
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
            Question::Events(_) => "events",
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
            Question::Events(wanted) => {
                span(&wanted.window);
                pairs.extend(wanted.kinds.iter().map(|kind| ("kind", kind.label().to_owned())));
                pairs.extend(wanted.nodes.iter().map(|guid| ("node", guid.to_string())));
                pairs.extend(wanted.ports.iter().map(written));
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
        let said = Said { pairs };
        said.ensure_known(keys).and_then(|()| said.question(name)).map_err(NoQuestion::Words)
    }

    /// What a source says to it, as JSON; of what cannot be written, why not.
    pub fn answer(&self, source: &dyn Source) -> Result<serde_json::Result<Vec<u8>>, AskError> {
        Ok(match self {
            Question::Span => serde_json::to_vec(&source.span()?),
            Question::Ports(called) => serde_json::to_vec(&source.ports(called)?),
            Question::Events(wanted) => serde_json::to_vec(&source.events(wanted)?),
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
    pairs: &'a [(String, String)],
}

impl Said<'_> {
    fn question(&self, name: &str) -> Result<Question, String> {
        Ok(match name {
            "span" => Question::Span,
            "ports" => Question::Ports(self.one("called")?.to_owned()),
            "events" => Question::Events(Wanted {
                window: self.window()?,
                kinds: self
                    .all("kind", |label| Kind::from_label(label).ok_or("is no kind of event"))?,
                nodes: self.all("node", str::parse)?,
                ports: self.ports()?,
            }),
            "cables" => Question::Cables(self.ports()?, self.window()?),
            "moved" => Question::Moved(self.window()?),
            "series" => Question::Series(self.ports()?, self.detail()?, self.window()?),
            "fabrics" => Question::Fabrics(self.time("at")?),
            _ => Question::Cover(self.window()?),
        })
    }

    fn ensure_known(&self, keys: &[&str]) -> Result<(), String> {
        match self.pairs.iter().find(|(key, _)| !keys.contains(&key.as_str())) {
            None => Ok(()),
            Some((key, _)) => Err(format!("{key:?} means nothing here: {}", keys.join(", "))),
        }
    }

    fn values(&self, key: &str) -> impl Iterator<Item = &str> {
        self.pairs.iter().filter(move |(has, _)| has == key).map(|(_, value)| value.as_str())
    }

    fn one(&self, key: &str) -> Result<&str, String> {
        let mut values = self.values(key);
        match (values.next(), values.next()) {
            (Some(value), None) => Ok(value),
            (None, _) => Err(format!("{key}: is missing")),
            _ => Err(format!("{key}: is there twice")),
        }
    }

    fn all<T, E: Display>(
        &self,
        key: &str,
        read: impl Fn(&str) -> Result<T, E>,
    ) -> Result<Vec<T>, String> {
        let wrong = |value: &str, error: E| format!("{key}: {value:?}: {error}");
        self.values(key).map(|value| read(value).map_err(|error| wrong(value, error))).collect()
    }

    fn ports(&self) -> Result<Vec<End>, String> {
        if self.values("port").count() > MOST_PORTS {
            return Err(format!("port: more than {MOST_PORTS} at once"));
        }
        self.all("port", |text| {
            let end = text
                .rsplit_once(':')
                .and_then(|(guid, number)| Some((guid.parse().ok()?, u8::from_str(number).ok()?)));
            end.ok_or("is no port such as 0x00aa000000000001:5")
        })
    }

    fn detail(&self) -> Result<Detail, String> {
        match self.one("detail")? {
            "errors" => Ok(Detail::Errors),
            "all" => Ok(Detail::All),
            other => Err(format!("detail: {other:?}: is neither errors nor all")),
        }
    }

    fn time(&self, key: &str) -> Result<SystemTime, String> {
        let text = self.one(key)?;
        humantime::parse_rfc3339(text)
            .map_err(|_| format!("{key}: {text:?}: is no time such as 2026-11-21T03:12:00Z"))
    }

    fn window(&self) -> Result<Window, String> {
        let window = Window { from: self.time("from")?, to: self.time("to")? };
        if window.from > window.to { Err("to: is before from".into()) } else { Ok(window) }
    }
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
    use crate::fabric::Guid;

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
            Question::Events(Wanted::all(window)),
            Question::Events(wanted),
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
            ("moved", vec![from.clone(), to.clone(), ("kind", "flap".into())], "\"kind\" means"),
            ("moved", vec![("from", "noon".into()), to.clone()], "from: \"noon\": is no time"),
            ("events", vec![from.clone(), to.clone(), ("kind", "party".into())], "is no kind"),
            ("events", vec![from.clone(), to.clone(), ("port", "0x1".into())], "is no port"),
            ("events", vec![from.clone(), to.clone(), ("node", "x".into())], "node: \"x\""),
            ("series", vec![from.clone(), to.clone(), ("detail", "most".into())], "neither"),
            ("cover", vec![from, ("to", "2020-01-01T00:00:00Z".into())], "to: is before from"),
        ] {
            let (NoQuestion::Name(said) | NoQuestion::Words(said)) =
                Question::read(name, &owned(&pairs)).unwrap_err();
            assert!(said.contains(says) && said.lines().count() == 1, "{says}: {said}");
        }
    }
}
