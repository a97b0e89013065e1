//! The results of queries: the same values, and the same JSON, from the file and from the exporter's API.
//!
//! Times are RFC 3339 in JSON, except those of a [`Series`], which are milliseconds since 1970. Counts are in
//! the unit of their metric: data in bytes.

use std::collections::BTreeMap;
use std::time::{Duration, SystemTime};

use serde::{Deserialize, Serialize};

use ib_fabric::topology::LinkId;
use ib_health::Verdict;
use ib_mad::counter::{TABLE, link_errors};
use ib_mad::ids::port_label;
use ib_mad::{Counter, Guid, PortKey, PortNumber};

use super::micros_of;

/// A period, including its start and its end.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Window {
    /// Its start.
    #[serde(with = "text")]
    #[cfg_attr(feature = "schema", schemars(with = "String", extend("format" = "date-time")))]
    pub from: SystemTime,
    /// Its end.
    #[serde(with = "text")]
    #[cfg_attr(feature = "schema", schemars(with = "String", extend("format" = "date-time")))]
    pub to: SystemTime,
}

impl Window {
    /// Its length.
    pub fn length(&self) -> Duration {
        self.to.duration_since(self.from).unwrap_or_default()
    }

    /// Its start and end in microseconds since 1970.
    pub(crate) fn micros(&self) -> (i64, i64) {
        (micros_of(self.from), micros_of(self.to))
    }

    /// Whether it contains a time.
    pub fn has(&self, at: SystemTime) -> bool {
        self.from <= at && at <= self.to
    }
}

/// The recorded period of a source.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Span {
    /// Start of the first sweep; null if nothing is recorded.
    #[serde(with = "text::option")]
    #[cfg_attr(feature = "schema", schemars(with = "Option<String>", extend("format" = "date-time")))]
    pub first: Option<SystemTime>,
    /// End of the latest sweep; null if nothing is recorded.
    #[serde(with = "text::option")]
    #[cfg_attr(feature = "schema", schemars(with = "Option<String>", extend("format" = "date-time")))]
    pub last: Option<SystemTime>,
}

/// A port, and the name of its node.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), schemars(rename = "RecordedPort"))]
pub struct Port {
    /// The name of the fabric.
    pub fabric: String,
    /// GUID of the node.
    #[serde(with = "text")]
    #[cfg_attr(feature = "schema", schemars(with = "String"))]
    pub guid: Guid,
    /// Port number.
    pub port: PortNumber,
    /// Name of the node.
    pub node: String,
    /// Host of a channel adapter.
    #[serde(default)]
    pub host: Option<String>,
}

impl Port {
    /// Its GUID and number.
    pub fn end(&self) -> PortKey {
        PortKey::new(self.guid, self.port)
    }

    /// Whether it is the same port, whatever the name of its node.
    pub fn is_same(&self, other: &Port) -> bool {
        self.end() == other.end() && self.fabric == other.fabric
    }

    /// Its label: `leaf-0-1 port 9`.
    pub fn label(&self) -> String {
        port_label(&self.node, self.port)
    }
}

/// An event.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Event {
    /// Time of the event.
    #[serde(with = "text")]
    #[cfg_attr(feature = "schema", schemars(with = "String", extend("format" = "date-time")))]
    pub at: SystemTime,
    /// Name of the fabric.
    pub fabric: String,
    /// Label of its kind ([`super::EventKind`]); newer versions may have more kinds.
    pub kind: String,
    /// GUID of the node, for an event of a node or port.
    #[serde(with = "text::option")]
    #[cfg_attr(feature = "schema", schemars(with = "Option<String>"))]
    pub node: Option<Guid>,
    /// Port number, for an event of a port.
    pub port: Option<PortNumber>,
    /// ID of the link, for an event of a link.
    #[serde(with = "text::option")]
    #[cfg_attr(feature = "schema", schemars(with = "Option<String>"))]
    pub link: Option<LinkId>,
    /// Its location: the name of the link, port, node or fabric at that time.
    pub place: String,
    /// Description of what happened.
    pub text: String,
    /// Details by key; null if there are none.
    pub detail: serde_json::Value,
}

impl Event {
    /// The port, for an event of a port.
    pub fn port_key(&self) -> Option<PortKey> {
        Some(PortKey { guid: self.node?, number: self.port? })
    }
}

/// Increases of a port's error counters in a period.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ErrorDelta {
    /// The port.
    pub port: Port,
    /// The port at the other end of its cable in that period, if it is known.
    pub peer: Option<Port>,
    /// The increases by counter; counters that did not increase are omitted.
    pub sums: Vec<Sum>,
}

impl ErrorDelta {
    /// The sum of its link errors.
    pub fn link_errors(&self) -> u64 {
        link_errors(|counter| self.increase(counter))
    }

    /// Its link errors and discards without its link downs, which are in incidents, and without what it discarded
    /// because its link was down.
    pub fn unexplained(&self) -> u64 {
        let discards = self.increase(Counter::XmitDiscards);
        let inactive = self.increase(Counter::XmitInactiveDiscards);
        let errors = self.link_errors().saturating_sub(self.increase(Counter::LinkDowned));
        errors.saturating_add(discards.saturating_sub(inactive))
    }

    fn increase(&self, counter: Counter) -> u64 {
        let grown = self.sums.iter().filter(|sum| sum.counter == counter);
        grown.fold(0, |all: u64, sum| all.saturating_add(sum.by))
    }
}

/// Increase of a counter in a period.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Sum {
    /// The counter.
    #[serde(with = "text")]
    #[cfg_attr(feature = "schema", schemars(with = "String"))]
    pub counter: Counter,
    /// Increase, in the unit of the metric.
    pub by: u64,
    /// Time of the first reading with an increase.
    #[serde(with = "text")]
    #[cfg_attr(feature = "schema", schemars(with = "String", extend("format" = "date-time")))]
    pub first: SystemTime,
    /// Time of the last reading with an increase.
    #[serde(with = "text")]
    #[cfg_attr(feature = "schema", schemars(with = "String", extend("format" = "date-time")))]
    pub last: SystemTime,
}

/// Increases of a port's counter, by reading.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Series {
    /// The port.
    pub port: Port,
    /// The counter.
    #[serde(with = "text")]
    #[cfg_attr(feature = "schema", schemars(with = "String"))]
    pub counter: Counter,
    /// The increases, the earliest first; readings without an increase are omitted.
    pub steps: Vec<Step>,
}

/// Increase of a counter between two readings.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), schemars(with = "(u64, u64, u64)"))]
#[serde(from = "(u64, u64, u64)", into = "(u64, u64, u64)")]
pub struct Step {
    /// Time of the previous reading.
    pub from: SystemTime,
    /// Time of the reading.
    pub to: SystemTime,
    /// Increase.
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

/// The state of a fabric at a time.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct FabricState {
    /// Its name.
    pub fabric: String,
    /// Start of the latest sweep before that time.
    #[serde(with = "text")]
    #[cfg_attr(feature = "schema", schemars(with = "String", extend("format" = "date-time")))]
    pub at: SystemTime,
    /// Its nodes, sorted by GUID.
    pub nodes: Vec<Node>,
    /// Its cables, sorted by link ID.
    pub cables: Vec<Cable>,
}

/// The state of a node at a time.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), schemars(rename = "RecordedNode"))]
pub struct Node {
    /// Its GUID.
    #[serde(with = "text")]
    #[cfg_attr(feature = "schema", schemars(with = "String"))]
    pub guid: Guid,
    /// Its name.
    pub name: String,
    /// Its host, of a channel adapter.
    #[serde(default)]
    pub host: Option<String>,
    /// `switch`, `ca` or `router`, as in `infiniband_node_info`.
    pub kind: String,
    /// Whether it responded.
    pub up: bool,
}

/// The state of a cable at a time.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Cable {
    /// Its ends, the one with the lower GUID first.
    pub ends: [Port; 2],
    /// Whether the link was up; null if unknown.
    pub up: Option<bool>,
    /// Its verdict.
    #[serde(with = "text")]
    #[cfg_attr(feature = "schema", schemars(with = "String"))]
    pub verdict: Verdict,
    /// Its rate (`4x NDR`); null while it was down.
    pub rate: Option<String>,
}

impl Cable {
    /// Its id.
    pub fn link(&self) -> LinkId {
        let [a, b] = &self.ends;
        LinkId::between(a.end(), b.end())
    }

    /// Its label: both ports.
    pub fn label(&self) -> String {
        let [a, b] = &self.ends;
        format!("{} – {}", a.label(), b.label())
    }
}

/// Which data of a period is recorded, and which is missing.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Coverage {
    /// Coverage by fabric.
    pub fabrics: BTreeMap<String, FabricCoverage>,
    /// Number of sweeps whose counters are damaged and cannot be read.
    pub damaged: usize,
}

/// Which data of a fabric is recorded in a period.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct FabricCoverage {
    /// Number of sweeps.
    pub sweeps: usize,
    /// Median time between two sweeps, in seconds.
    pub interval: f64,
    /// Gaps without a sweep, longer than 2.5 intervals, including those at the start and end of the period.
    pub gaps: Vec<Window>,
    /// Start of the traffic per sweep; before it there is traffic per hour, or none.
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
    pub fn clamped(at: SystemTime) -> SystemTime {
        at.clamp(SystemTime::UNIX_EPOCH, of_millis(253_402_300_799_000))
    }

    /// RFC 3339, to the millisecond.
    pub fn text(at: SystemTime) -> String {
        humantime::format_rfc3339_millis(clamped(at)).to_string()
    }
}

/// Values that are texts in JSON.
pub(crate) mod text {
    use std::borrow::Cow;
    use std::fmt::Display;

    use serde::{Deserialize, Deserializer, Serializer, de::Error};

    use super::{Counter, Guid, LinkId, SystemTime, TABLE, Verdict, time};
    use crate::cursor::Cursor;

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

    as_displayed!(Guid, LinkId, Cursor);

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
            Ok(Verdict::from_label(text).unwrap_or(Verdict::Unknown))
        }
    }

    pub(crate) fn serialize<T: Text, S: Serializer>(it: &T, to: S) -> Result<S::Ok, S::Error> {
        to.collect_str(&it.write())
    }

    pub(crate) fn deserialize<'de, T: Text, D: Deserializer<'de>>(from: D) -> Result<T, D::Error> {
        T::read(&Cow::<'_, str>::deserialize(from)?).map_err(D::Error::custom)
    }

    pub mod option {
        use super::{Cow, Deserialize, Deserializer, Error, Serializer, Text};

        #[expect(clippy::ref_option, reason = "serde's shape")]
        pub fn serialize<T: Text, S: Serializer>(it: &Option<T>, to: S) -> Result<S::Ok, S::Error> {
            match it {
                Some(it) => to.collect_str(&it.write()),
                None => to.serialize_none(),
            }
        }

        pub fn deserialize<'de, T: Text, D: Deserializer<'de>>(
            from: D,
        ) -> Result<Option<T>, D::Error> {
            let text = Option::<Cow<'_, str>>::deserialize(from)?;
            text.map(|text| T::read(&text).map_err(D::Error::custom)).transpose()
        }
    }
}
