//! An incident: events with one cause, and what users are told about them.

use std::collections::BTreeMap;
use std::time::{Duration, SystemTime};

use serde::{Serialize, Serializer};

use crate::model::{Event, text};
use display_text::plural;
use ib_fabric::topology::LinkId;
use ib_health::outage::duration;
use ib_mad::{Guid, PortNumber};

display_text::labeled_enum! {
    /// What happened, in one word.
    #[derive(PartialOrd, Ord)]
    pub enum IncidentKind {
        SwitchDown, "switch_down", "A switch did not respond, or was missing, with what is behind it.";
        HostDown, "host_down", "The HCAs of a host, or of several hosts at the same time, did not respond or were missing.";
        LinkBad, "link_bad", "The verdict on a link became bad.";
        LinkDegraded, "link_degraded", "The verdict on a link became degraded.";
        LinkFlap, "link_flap", "A link went down unexpectedly and came up again.";
        LinkDown, "link_down", "A link went down, or its device reported a link down.";
        LinkChanged, "link_changed", "A link was added, changed its rate, or went down as expected.";
        CableReplaced, "cable_replaced", "The cable or module of a port was replaced.";
        CableMoved, "cable_moved", "Cables were plugged into other ports.";
        Congestion, "congestion", "Ports waited for others.";
        CountersCleared, "counters_cleared", "Counters were cleared or reset.";
        CountersSaturated, "counters_saturated", "Counters reached their maximum.";
        SubnetManager, "subnet_manager", "Another subnet manager became master.";
        FabricGrew, "fabric_grew", "New nodes or links were discovered.";
        Monitoring, "monitoring", "The exporter started or stopped, could not read the fabric, or its clock was set.";
    }
}

display_text::labeled_enum! {
    /// How much attention an incident needs.
    #[derive(PartialOrd, Ord, Default)]
    pub enum Severity {
        #[default]
        Info, "info", "Usual in operation: nothing to do.";
        Warning, "warning", "Look at it during the day.";
        Critical, "critical", "Act at once.";
    }
}

impl IncidentKind {
    /// Its noun in a summary: `2 bad links`.
    pub fn noun(self) -> &'static str {
        match self {
            IncidentKind::SwitchDown => "switch outage",
            IncidentKind::HostDown => "host outage",
            IncidentKind::LinkBad => "bad link",
            IncidentKind::LinkDegraded => "degraded link",
            IncidentKind::LinkFlap => "flapping link",
            IncidentKind::LinkDown => "link down",
            IncidentKind::LinkChanged => "link change",
            IncidentKind::CableReplaced => "replaced cable",
            IncidentKind::CableMoved => "moved cable",
            IncidentKind::Congestion => "congestion",
            IncidentKind::CountersCleared => "counter clear",
            IncidentKind::CountersSaturated => "saturated counter",
            IncidentKind::SubnetManager => "subnet manager change",
            IncidentKind::FabricGrew => "fabric extension",
            IncidentKind::Monitoring => "monitoring interruption",
        }
    }
}

impl Serialize for IncidentKind {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        to.serialize_str(self.label())
    }
}

impl Serialize for Severity {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        to.serialize_str(self.label())
    }
}

/// Events with one cause.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Incident {
    /// What happened; newer versions may have more kinds.
    #[cfg_attr(feature = "schema", schemars(with = "String"))]
    pub kind: IncidentKind,
    /// How much attention it needs: info, warning, critical.
    #[cfg_attr(feature = "schema", schemars(with = "String"))]
    pub severity: Severity,
    /// Name of the fabric.
    pub fabric: String,
    /// Time of its first event.
    #[serde(with = "text")]
    #[cfg_attr(feature = "schema", schemars(with = "String", extend("format" = "date-time")))]
    pub began: SystemTime,
    /// Whether it had begun before that: it is not recorded when.
    pub began_earlier: bool,
    /// Its end; null if it had not ended by the end of the period.
    #[serde(with = "text::option")]
    #[cfg_attr(feature = "schema", schemars(with = "Option<String>", extend("format" = "date-time")))]
    pub ended: Option<SystemTime>,
    /// Where: the name of the node, port, link or fabric.
    pub place: String,
    /// What happened, in a sentence without a full stop.
    pub title: String,
    /// Why, as far as it is known; null if it is not.
    pub cause: Option<String>,
    /// Whether it was announced as maintenance.
    pub planned: bool,
    /// What to try first, as a label; null if nothing is known to help.
    pub repair: Option<String>,
    /// What to do, in a sentence; null if nothing is known to help, or nothing is left to do.
    pub advice: Option<String>,
    /// GUID of the node that it began with.
    #[serde(with = "text::option")]
    #[cfg_attr(feature = "schema", schemars(with = "Option<String>"))]
    pub node: Option<Guid>,
    /// Port that it began with.
    pub port: Option<PortNumber>,
    /// ID of its link, if it is about one link; of several in one cage, that of the worst one.
    #[serde(with = "text::option")]
    #[cfg_attr(feature = "schema", schemars(with = "Option<String>"))]
    pub link: Option<LinkId>,
    /// Names of the first hosts that were cut off, that are at an end of its link, or that others wait for.
    pub hosts: Vec<String>,
    /// Number of these hosts.
    pub host_count: usize,
    /// Number of nodes with events.
    pub nodes: usize,
    /// Number of links with events.
    pub links: usize,
    /// Number of its events.
    pub event_count: usize,
    /// Number of its events by kind.
    pub counts: BTreeMap<String, usize>,
    /// Its events, the earliest first; of each kind the first 10.
    pub events: Vec<Event>,
    /// How much harm it did in the period.
    #[serde(skip)]
    pub harm: Harm,
}

/// To the nearest second: sweeps are some microseconds more or less apart, and a client gets their times in milliseconds.
pub(super) fn whole(length: Duration) -> Duration {
    Duration::from_secs((length + Duration::from_millis(500)).as_secs())
}

impl Incident {
    /// How long it lasted, until `now` if it has not ended.
    pub fn length(&self, now: SystemTime) -> Duration {
        self.ended.unwrap_or(now).duration_since(self.began).unwrap_or_default()
    }

    /// How long it lasted, as text: `4m 15s`, `lasts`, and nothing of what has no length.
    pub fn length_text(&self) -> String {
        let Some(end) = self.ended else { return "lasts".into() };
        match whole(self.length(end)) {
            Duration::ZERO => String::new(),
            length => duration(length),
        }
    }

    /// The names of its hosts, as text: `host-1, host-2, and 7 more`.
    pub fn hosts_text(&self) -> String {
        let names = self.hosts.join(", ");
        match self.host_count.saturating_sub(self.hosts.len()) {
            0 => names,
            more => format!("{names}, and {more} more"),
        }
    }

    /// Adds what happened to the same host in another fabric.
    pub(super) fn absorb(&mut self, other: Incident) {
        (self.nodes, self.links) = (self.nodes + other.nodes, self.links + other.links);
        self.event_count += other.event_count;
        self.severity = self.severity.max(other.severity);
        self.harm = self.harm.max(other.harm);
        for (kind, count) in other.counts {
            *self.counts.entry(kind).or_default() += count;
        }
        self.events.extend(other.events);
        self.events.sort_by_key(|event| event.at);
        self.cause = self.cause.take().or(other.cause);
        if let Some((host, rest)) = self.title.split_once(" (")
            && let Some((_, rest)) = rest.split_once(')')
        {
            self.title = format!("{host} ({}){rest}", plural(self.nodes, "HCA"));
        }
    }

    /// How many of its events are not in the list.
    pub fn more_events(&self) -> usize {
        self.event_count.saturating_sub(self.events.len())
    }
}

/// How much harm an incident did. Greater is worse: what cut hosts off is worse than any bad cable, then come
/// congestion and flaps.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Harm {
    /// What kind of harm.
    pub class: HarmClass,
    /// How much of it: seconds that hosts were cut off; errors; seconds that ports waited; flaps.
    pub amount: u64,
}

/// The kinds of harm, from none to the worst.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum HarmClass {
    /// None that is known.
    #[default]
    None,
    /// Links went down and came up again.
    Flaps,
    /// Ports waited.
    Congestion,
    /// Packets were corrupted or slow.
    Cable,
    /// Hosts were cut off.
    CutOff,
}
