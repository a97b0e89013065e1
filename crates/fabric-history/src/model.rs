//! What a history answers: the same values, and the same JSON, from the file and from the exporter's
//! API.
//!
//! Times are RFC 3339 in JSON, except those of a [`Series`], which are milliseconds since 1970. Counts are in
//! the unit of their metric: data in bytes.

use std::collections::BTreeMap;
use std::time::{Duration, SystemTime};

use serde::{Deserialize, Serialize};

use ib_fabric::topology::{End, LinkId};
use ib_health::Verdict;
use ib_mad::counter::{TABLE, link_errors};
use ib_mad::label;
use ib_mad::{Counter, Guid, PortNumber};

use super::micros_of;

/// A span of time, with both of its ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Window {
    /// Its beginning.
    #[serde(with = "text")]
    #[cfg_attr(feature = "schema", schemars(with = "String", extend("format" = "date-time")))]
    pub from: SystemTime,
    /// Its end.
    #[serde(with = "text")]
    #[cfg_attr(feature = "schema", schemars(with = "String", extend("format" = "date-time")))]
    pub to: SystemTime,
}

impl Window {
    /// How long it is.
    pub fn length(&self) -> Duration {
        self.to.duration_since(self.from).unwrap_or_default()
    }

    /// Its ends in microseconds since 1970.
    pub(crate) fn micros(&self) -> (i64, i64) {
        (micros_of(self.from), micros_of(self.to))
    }

    /// Whether a moment lies in it.
    pub fn has(&self, at: SystemTime) -> bool {
        self.from <= at && at <= self.to
    }
}

/// The time of which a source has anything recorded.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Span {
    /// The beginning of its first sweep; none if that is not known.
    #[serde(with = "text::option")]
    #[cfg_attr(feature = "schema", schemars(with = "Option<String>", extend("format" = "date-time")))]
    pub first: Option<SystemTime>,
    /// The end of its latest sweep; none if it still goes on.
    #[serde(with = "text::option")]
    #[cfg_attr(feature = "schema", schemars(with = "Option<String>", extend("format" = "date-time")))]
    pub last: Option<SystemTime>,
}

/// A port, and the name of its node.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), schemars(rename = "RecordedPort"))]
pub struct Port {
    /// The fabric that it is in.
    pub fabric: String,
    /// Its node.
    #[serde(with = "text")]
    #[cfg_attr(feature = "schema", schemars(with = "String"))]
    pub guid: Guid,
    /// Its number on its node.
    pub port: PortNumber,
    /// The name of its node.
    pub node: String,
}

impl Port {
    /// Its GUID and number.
    pub fn end(&self) -> End {
        (self.guid, self.port)
    }

    /// Whether it is the same port, whatever its node was called.
    pub fn is_same(&self, other: &Port) -> bool {
        self.end() == other.end() && self.fabric == other.fabric
    }

    /// Its name for people: `leaf-0-1[9]`.
    pub fn label(&self) -> String {
        label::port(&self.node, self.port)
    }
}

/// Something that happened.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Event {
    /// When.
    #[serde(with = "text")]
    #[cfg_attr(feature = "schema", schemars(with = "String", extend("format" = "date-time")))]
    pub at: SystemTime,
    /// In which fabric.
    pub fabric: String,
    /// Its kind's label ([`super::EventKind`]): a newer version may know more kinds.
    pub kind: String,
    /// The node that it is about.
    #[serde(with = "text::option")]
    #[cfg_attr(feature = "schema", schemars(with = "Option<String>"))]
    pub node: Option<Guid>,
    /// The port of that node.
    pub port: Option<PortNumber>,
    /// The cable that it is about.
    #[serde(with = "text::option")]
    #[cfg_attr(feature = "schema", schemars(with = "Option<String>"))]
    pub link: Option<LinkId>,
    /// The name of what it is about at that time.
    pub place: String,
    /// What happened, in a sentence.
    pub text: String,
    /// Details for programs; null if there are none.
    pub detail: serde_json::Value,
}

/// What a port's error counters grew by in a window.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ErrorDelta {
    /// The port.
    pub port: Port,
    /// The other end of its cable then, if that is known.
    pub peer: Option<Port>,
    /// Counter by counter; those that did not grow are left out.
    pub sums: Vec<Sum>,
}

impl ErrorDelta {
    /// The sum of its link errors.
    pub fn link_errors(&self) -> u64 {
        link_errors(|counter| {
            let grown = self.sums.iter().filter(|sum| sum.counter == counter);
            grown.fold(0, |all: u64, sum| all.saturating_add(sum.by))
        })
    }
}

/// What a counter grew by in a window.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Sum {
    /// The counter.
    #[serde(with = "text")]
    #[cfg_attr(feature = "schema", schemars(with = "String"))]
    pub counter: Counter,
    /// What it grew by.
    pub by: u64,
    /// When it was first seen to have grown.
    #[serde(with = "text")]
    #[cfg_attr(feature = "schema", schemars(with = "String", extend("format" = "date-time")))]
    pub first: SystemTime,
    /// When it was last seen to have.
    #[serde(with = "text")]
    #[cfg_attr(feature = "schema", schemars(with = "String", extend("format" = "date-time")))]
    pub last: SystemTime,
}

/// What a port's counter grew by, reading by reading.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Series {
    /// The port.
    pub port: Port,
    /// The counter.
    #[serde(with = "text")]
    #[cfg_attr(feature = "schema", schemars(with = "String"))]
    pub counter: Counter,
    /// What it grew by, the earliest first; spans in which it did not are left out.
    pub steps: Vec<Step>,
}

/// What a counter grew by between two readings.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), schemars(with = "(u64, u64, u64)"))]
#[serde(from = "(u64, u64, u64)", into = "(u64, u64, u64)")]
pub struct Step {
    /// The reading before.
    pub from: SystemTime,
    /// The reading.
    pub to: SystemTime,
    /// By how much.
    pub by: u64,
}

impl From<(u64, u64, u64)> for Step {
    fn from((from, to, by): (u64, u64, u64)) -> Self {
        Step { from: time::of_millis(from), to: time::of_millis(to), by }
    }
}

impl From<Step> for (u64, u64, u64) {
    fn from(Step { from, to, by }: Step) -> Self {
        (time::millis(from), time::millis(to), by)
    }
}

/// A fabric as it was at a moment.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct FabricState {
    /// Its name.
    pub fabric: String,
    /// When the sweep was begun that saw it so: the latest before the moment.
    #[serde(with = "text")]
    #[cfg_attr(feature = "schema", schemars(with = "String", extend("format" = "date-time")))]
    pub at: SystemTime,
    /// Its nodes, by GUID.
    pub nodes: Vec<Node>,
    /// Its cables, by id.
    pub cables: Vec<Cable>,
}

/// A node as it was at a moment.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), schemars(rename = "RecordedNode"))]
pub struct Node {
    /// Its GUID.
    #[serde(with = "text")]
    #[cfg_attr(feature = "schema", schemars(with = "String"))]
    pub guid: Guid,
    /// What it was called.
    pub name: String,
    /// `switch`, `ca` or `router`, as `infiniband_node_info` has it.
    pub kind: String,
    /// Whether it answered.
    pub up: bool,
}

/// A cable as it was at a moment.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Cable {
    /// Its ends, the lower first.
    pub ends: [Port; 2],
    /// Whether it carried traffic, if that is known.
    pub up: Option<bool>,
    /// The verdict on it.
    #[serde(with = "text")]
    #[cfg_attr(feature = "schema", schemars(with = "String"))]
    pub verdict: Verdict,
    /// What it ran at (`4x NDR`), if it did.
    pub rate: Option<String>,
}

impl Cable {
    /// Its id.
    pub fn link(&self) -> LinkId {
        let [a, b] = &self.ends;
        LinkId::between(a.end(), b.end())
    }

    /// As people write it.
    pub fn label(&self) -> String {
        let [a, b] = &self.ends;
        format!("{} – {}", a.label(), b.label())
    }
}

/// What a source knows of a window, and what it does not.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Coverage {
    /// Fabric by fabric.
    pub fabrics: BTreeMap<String, FabricCoverage>,
    /// How many sweeps' counters cannot be read because they are damaged.
    pub damaged: usize,
}

/// What a source knows of a fabric in a window.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct FabricCoverage {
    /// How many sweeps (or scrapes).
    pub sweeps: usize,
    /// How long it is from one to the next, in seconds; the median.
    pub interval: f64,
    /// Spans without any, longer than two and a half intervals, with those at the window's ends.
    pub gaps: Vec<Window>,
    /// From when on traffic is known sweep by sweep; before it, hour by hour, or not at all.
    #[serde(with = "text::option")]
    #[cfg_attr(feature = "schema", schemars(with = "Option<String>", extend("format" = "date-time")))]
    pub traffic_from: Option<SystemTime>,
}

impl FabricCoverage {
    /// Whether there were sweeps in a window before a moment: it did not begin with a gap until then.
    pub fn is_swept_before(&self, at: SystemTime, window: Window) -> bool {
        let begins = self.gaps.first().filter(|gap| gap.from <= window.from).map(|gap| gap.to);
        let interval = Duration::try_from_secs_f64(self.interval).unwrap_or_default();
        begins.unwrap_or(window.from) + interval * 2 < at
    }
}

/// Times as RFC 3339, to the millisecond, in UTC.
pub mod time {
    use std::time::{Duration, SystemTime};

    pub(crate) use super::text::serialize;

    /// Milliseconds since 1970.
    pub fn millis(time: SystemTime) -> u64 {
        let since = time.duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
        u64::try_from(since.as_millis()).unwrap_or(u64::MAX)
    }

    /// The time of milliseconds since 1970.
    pub fn of_millis(millis: u64) -> SystemTime {
        let since = Duration::from_millis(millis);
        SystemTime::UNIX_EPOCH.checked_add(since).unwrap_or(SystemTime::UNIX_EPOCH)
    }

    /// The nearest time that RFC 3339 can have: none before 1970 or after 9999.
    pub(crate) fn clamped(at: SystemTime) -> SystemTime {
        at.clamp(SystemTime::UNIX_EPOCH, of_millis(253_402_300_799_000))
    }

    /// RFC 3339, to the millisecond.
    pub fn text(at: SystemTime) -> String {
        humantime::format_rfc3339_millis(clamped(at)).to_string()
    }
}

/// Values that are texts in JSON.
mod text {
    use std::borrow::Cow;
    use std::fmt::Display;

    use serde::{Deserialize, Deserializer, Serializer, de::Error};

    use super::{Counter, Guid, LinkId, SystemTime, TABLE, Verdict, time};

    /// A value with a text.
    pub trait Text: Sized {
        fn write(&self) -> impl Display;
        fn read(text: &str) -> Result<Self, String>;
    }

    impl Text for SystemTime {
        fn write(&self) -> impl Display {
            humantime::format_rfc3339_millis(time::clamped(*self))
        }

        fn read(text: &str) -> Result<Self, String> {
            humantime::parse_rfc3339(text).map_err(|error| error.to_string())
        }
    }

    macro_rules! as_displayed {
        ($($type:ty),+) => {$(
            impl Text for $type {
                fn write(&self) -> impl Display {
                    self
                }

                fn read(text: &str) -> Result<Self, String> {
                    text.parse().map_err(|error| format!("{error}"))
                }
            }
        )+};
    }

    as_displayed!(Guid, LinkId);

    /// The middle of its metric's name: `symbol_errors`.
    impl Text for Counter {
        fn write(&self) -> impl Display {
            self.row().metric
        }

        fn read(text: &str) -> Result<Self, String> {
            let row = TABLE.iter().find(|row| row.metric == text);
            row.map(|row| row.counter).ok_or_else(|| format!("unknown counter {text:?}"))
        }
    }

    /// Its label; a later version may have more of them.
    impl Text for Verdict {
        fn write(&self) -> impl Display {
            self.label()
        }

        fn read(text: &str) -> Result<Self, String> {
            let known = Verdict::ALL.into_iter().find(|verdict| verdict.label() == text);
            Ok(known.unwrap_or(Verdict::Unknown))
        }
    }

    pub(crate) fn serialize<T: Text, S: Serializer>(it: &T, to: S) -> Result<S::Ok, S::Error> {
        to.collect_str(&it.write())
    }

    pub(crate) fn deserialize<'de, T: Text, D: Deserializer<'de>>(from: D) -> Result<T, D::Error> {
        T::read(&Cow::<'_, str>::deserialize(from)?).map_err(D::Error::custom)
    }

    pub(super) mod option {
        use super::{Cow, Deserialize, Deserializer, Error, Serializer, Text};

        #[expect(clippy::ref_option, reason = "serde's shape")]
        pub(in super::super) fn serialize<T: Text, S: Serializer>(
            it: &Option<T>,
            to: S,
        ) -> Result<S::Ok, S::Error> {
            match it {
                Some(it) => to.collect_str(&it.write()),
                None => to.serialize_none(),
            }
        }

        pub(in super::super) fn deserialize<'de, T: Text, D: Deserializer<'de>>(
            from: D,
        ) -> Result<Option<T>, D::Error> {
            let text = Option::<Cow<'_, str>>::deserialize(from)?;
            text.map(|text| T::read(&text).map_err(D::Error::custom)).transpose()
        }
    }
}
