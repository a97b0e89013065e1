//! What a history tells, whoever it is told by and to: the same values in the file's answers, in the
//! exporter's API and in what is made of a Prometheus, and the same JSON.
//!
//! Times are RFC 3339 in JSON, but for the many of a [`Series`]: they are milliseconds since 1970.
//! Counts are in their metric's unit: data in bytes.

use std::collections::BTreeMap;
use std::time::{Duration, SystemTime};

use serde::{Deserialize, Serialize};

use ib_fabric::topology::{End, LinkId};
use ib_health::Verdict;
use ib_mad::counter::{TABLE, link_errors};
use ib_mad::label;
use ib_mad::{Counter, Guid, PortNumber};

/// A span of time, with both of its ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Window {
    /// Its beginning.
    #[serde(with = "time")]
    #[cfg_attr(feature = "schema", schemars(with = "String", extend("format" = "date-time")))]
    pub from: SystemTime,
    /// Its end.
    #[serde(with = "time")]
    #[cfg_attr(feature = "schema", schemars(with = "String", extend("format" = "date-time")))]
    pub to: SystemTime,
}

impl Window {
    /// How long it is.
    pub fn length(&self) -> Duration {
        self.to.duration_since(self.from).unwrap_or_default()
    }

    /// Whether a moment lies in it.
    pub fn has(&self, at: SystemTime) -> bool {
        self.from <= at && at <= self.to
    }
}

/// The time of which a source knows anything at all.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Span {
    /// The beginning of its first sweep; nothing if that is not known.
    #[serde(with = "time::option")]
    #[cfg_attr(feature = "schema", schemars(with = "Option<String>", extend("format" = "date-time")))]
    pub first: Option<SystemTime>,
    /// The end of its latest sweep; nothing if it is asked while it goes on.
    #[serde(with = "time::option")]
    #[cfg_attr(feature = "schema", schemars(with = "Option<String>", extend("format" = "date-time")))]
    pub last: Option<SystemTime>,
}

/// A port, and what people call its node.
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
    /// What its node is called.
    pub node: String,
}

impl Port {
    /// The port, as the fabric knows it.
    pub fn end(&self) -> End {
        (self.guid, self.port)
    }

    /// Whether it is the same port, whatever its node was called when it was told of.
    pub fn is(&self, other: &Port) -> bool {
        self.end() == other.end() && self.fabric == other.fabric
    }

    /// As people write it.
    pub fn label(&self) -> String {
        label::port(&self.node, self.port)
    }
}

/// Something that happened, as it is told.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Told {
    /// When.
    #[serde(with = "time")]
    #[cfg_attr(feature = "schema", schemars(with = "String", extend("format" = "date-time")))]
    pub at: SystemTime,
    /// In which fabric.
    pub fabric: String,
    /// Its kind's label ([`super::Kind`]): a newer version may know more kinds.
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
    /// What people called it then.
    pub place: String,
    /// What happened, in a sentence.
    pub text: String,
    /// The same for programs; null where the rest says it all.
    pub detail: serde_json::Value,
}

/// What a port's errors came to in a window.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Moved {
    /// The port.
    pub port: Port,
    /// The other end of its cable then, if that is known.
    pub peer: Option<Port>,
    /// Counter by counter; those that did not move are left out.
    pub sums: Vec<Sum>,
}

impl Moved {
    /// The link errors among it.
    pub fn link_errors(&self) -> u64 {
        link_errors(|counter| {
            let grown = self.sums.iter().filter(|sum| sum.counter == counter);
            grown.fold(0, |all: u64, sum| all.saturating_add(sum.by))
        })
    }
}

/// What a counter came to in a window.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Sum {
    /// The counter.
    #[serde(with = "metric")]
    #[cfg_attr(feature = "schema", schemars(with = "String"))]
    pub counter: Counter,
    /// What it grew by.
    pub by: u64,
    /// When it was first seen to have grown.
    #[serde(with = "time")]
    #[cfg_attr(feature = "schema", schemars(with = "String", extend("format" = "date-time")))]
    pub first: SystemTime,
    /// When it was last seen to have.
    #[serde(with = "time")]
    #[cfg_attr(feature = "schema", schemars(with = "String", extend("format" = "date-time")))]
    pub last: SystemTime,
}

/// The course of a port's counter.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Series {
    /// The port.
    pub port: Port,
    /// The counter.
    #[serde(with = "metric")]
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
pub struct Then {
    /// Its name.
    pub fabric: String,
    /// The sweep that it is told from: the latest before the moment.
    #[serde(with = "time")]
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
    /// What it came to.
    #[serde(with = "verdict")]
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
pub struct Cover {
    /// Fabric by fabric.
    pub fabrics: BTreeMap<String, Known>,
    /// How many sweeps' counters cannot be read because they are damaged.
    pub damaged: usize,
}

/// What a source knows of a fabric in a window.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Known {
    /// How many sweeps (or scrapes).
    pub sweeps: usize,
    /// How long it is from one to the next, in seconds; the median.
    pub interval: f64,
    /// Spans without any, longer than two and a half intervals, with those at the window's ends.
    pub gaps: Vec<Window>,
    /// From when on traffic is known sweep by sweep; before it, hour by hour, or not at all.
    #[serde(with = "time::option")]
    #[cfg_attr(feature = "schema", schemars(with = "Option<String>", extend("format" = "date-time")))]
    pub traffic_from: Option<SystemTime>,
}

impl Known {
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

    use serde::{Deserialize, Deserializer, Serializer, de::Error};

    /// Milliseconds since 1970.
    pub fn millis(time: SystemTime) -> u64 {
        let since = time.duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
        u64::try_from(since.as_millis()).unwrap_or(u64::MAX)
    }

    /// The same the other way round.
    pub fn of_millis(millis: u64) -> SystemTime {
        let since = Duration::from_millis(millis);
        SystemTime::UNIX_EPOCH.checked_add(since).unwrap_or(SystemTime::UNIX_EPOCH)
    }

    /// As texts have it: RFC 3339, to the millisecond.
    pub fn text(at: SystemTime) -> String {
        // What is before 1970 or after 9999 has no such text.
        let most = of_millis(253_402_300_799_000);
        humantime::format_rfc3339_millis(at.clamp(SystemTime::UNIX_EPOCH, most)).to_string()
    }

    pub(crate) fn serialize<S: Serializer>(time: &SystemTime, to: S) -> Result<S::Ok, S::Error> {
        // What is before 1970 or after 9999 has no such text.
        let most = of_millis(253_402_300_799_000);
        let time = (*time).clamp(SystemTime::UNIX_EPOCH, most);
        to.collect_str(&humantime::format_rfc3339_millis(time))
    }

    pub(crate) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<SystemTime, D::Error> {
        let text = std::borrow::Cow::<'_, str>::deserialize(from)?;
        humantime::parse_rfc3339(&text).map_err(D::Error::custom)
    }

    pub(super) mod option {
        use super::{Deserialize, Deserializer, Error, Serializer, SystemTime};

        #[expect(clippy::ref_option, reason = "serde's shape")]
        pub(in super::super) fn serialize<S: Serializer>(
            time: &Option<SystemTime>,
            to: S,
        ) -> Result<S::Ok, S::Error> {
            match time {
                Some(time) => super::serialize(time, to),
                None => to.serialize_none(),
            }
        }

        pub(in super::super) fn deserialize<'de, D: Deserializer<'de>>(
            from: D,
        ) -> Result<Option<SystemTime>, D::Error> {
            let text = Option::<std::borrow::Cow<'_, str>>::deserialize(from)?;
            text.map(|text| humantime::parse_rfc3339(&text).map_err(D::Error::custom)).transpose()
        }
    }
}

/// What has a text of its own: GUIDs and links' ids.
mod text {
    use std::borrow::Cow;
    use std::fmt::Display;
    use std::str::FromStr;

    use serde::{Deserialize, Deserializer, Serializer, de::Error};

    pub(super) fn serialize<S: Serializer>(it: &impl Display, to: S) -> Result<S::Ok, S::Error> {
        to.collect_str(it)
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>, T>(from: D) -> Result<T, D::Error>
    where
        T: FromStr,
        T::Err: Display,
    {
        Cow::<'_, str>::deserialize(from)?.parse().map_err(D::Error::custom)
    }

    pub(super) mod option {
        use super::{Cow, Deserialize, Deserializer, Display, Error, FromStr, Serializer};

        #[expect(clippy::ref_option, reason = "serde's shape")]
        pub(in super::super) fn serialize<S: Serializer, T: Display>(
            it: &Option<T>,
            to: S,
        ) -> Result<S::Ok, S::Error> {
            match it {
                Some(it) => to.collect_str(it),
                None => to.serialize_none(),
            }
        }

        pub(in super::super) fn deserialize<'de, D: Deserializer<'de>, T>(
            from: D,
        ) -> Result<Option<T>, D::Error>
        where
            T: FromStr,
            T::Err: Display,
        {
            let text = Option::<Cow<'_, str>>::deserialize(from)?;
            text.map(|text| text.parse().map_err(D::Error::custom)).transpose()
        }
    }
}

/// Counters by the middle of their metric's name: `symbol_errors`.
mod metric {
    use serde::{Deserialize, Deserializer, Serializer, de::Error};

    use super::{Counter, counter_of};

    #[expect(clippy::trivially_copy_pass_by_ref, reason = "serde's shape")]
    pub(super) fn serialize<S: Serializer>(counter: &Counter, to: S) -> Result<S::Ok, S::Error> {
        to.serialize_str(counter.row().metric)
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<Counter, D::Error> {
        let name = std::borrow::Cow::<'_, str>::deserialize(from)?;
        counter_of(&name).ok_or_else(|| D::Error::custom(format!("no counter is called {name:?}")))
    }
}

/// The counter whose metric has this in the middle of its name.
pub fn counter_of(metric: &str) -> Option<Counter> {
    TABLE.iter().find(|row| row.metric == metric).map(|row| row.counter)
}

/// Verdicts by their label.
mod verdict {
    use serde::{Deserialize, Deserializer, Serializer};

    use super::Verdict;

    #[expect(clippy::trivially_copy_pass_by_ref, reason = "serde's shape")]
    pub(super) fn serialize<S: Serializer>(verdict: &Verdict, to: S) -> Result<S::Ok, S::Error> {
        to.serialize_str(verdict.label())
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<Verdict, D::Error> {
        let label = std::borrow::Cow::<'_, str>::deserialize(from)?;
        let known = Verdict::ALL.into_iter().find(|verdict| verdict.label() == label);
        Ok(known.unwrap_or(Verdict::Unknown))
    }
}
