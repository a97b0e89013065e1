//! Incidents: events grouped by their cause. A switch that reboots has one `node_down`, the link downs of all its
//! cables, the `node_down` of each HCA behind it, cleared counters and reasons that its neighbors report: some 164
//! events, and one incident.
//!
//! Events are grouped when they are read, by one function of the events and the fabric's states. Old histories,
//! copies, and answers over HTTP have the same incidents as the file of a running exporter, and a better grouping
//! needs no migration.

mod describe;
mod group;
mod grouper;
mod places;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::fmt::Display;
use std::time::{Duration, SystemTime};

use serde::{Deserialize, Serialize};

use crate::EventKind;
use crate::model::{Event, FabricState, Window, text};
use crate::source::{Answer, EventFilter, Source, for_each_event};
use ib_fabric::topology::LinkId;
use ib_mad::{Guid, PortNumber};

use grouper::Grouper;

ib_mad::labeled_enum! {
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

ib_mad::labeled_enum! {
    /// How much attention an incident needs.
    #[derive(PartialOrd, Ord, Default)]
    pub enum Severity {
        #[default]
        Info, "info", "Usual in operation: nothing to do.";
        Warning, "warning", "Look at it during the day.";
        Critical, "critical", "Act now, or acted upon at that time.";
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
            IncidentKind::FabricGrew => "extension of the fabric",
            IncidentKind::Monitoring => "interruption of monitoring",
        }
    }
}

impl text::Text for IncidentKind {
    fn write(&self) -> impl Display {
        self.label()
    }

    fn read(text: &str) -> Result<Self, String> {
        Self::from_label(text).ok_or_else(|| format!("unknown kind of incident {text:?}"))
    }
}

impl text::Text for Severity {
    fn write(&self) -> impl Display {
        self.label()
    }

    fn read(text: &str) -> Result<Self, String> {
        Self::from_label(text).ok_or_else(|| format!("unknown severity {text:?}"))
    }
}

/// Events with one cause.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Incident {
    /// What happened; newer versions may have more kinds.
    #[serde(with = "text")]
    #[cfg_attr(feature = "schema", schemars(with = "String"))]
    pub kind: IncidentKind,
    /// How much attention it needs: info, warning, critical.
    #[serde(with = "text")]
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
    /// ID of its link, if it is about one link.
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

impl Incident {
    /// How long it lasted, until `now` if it has not ended.
    pub fn length(&self, now: SystemTime) -> Duration {
        self.ended.unwrap_or(now).duration_since(self.began).unwrap_or_default()
    }

    /// Adds what happened to the same host in another fabric.
    fn absorb(&mut self, other: Incident) {
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
            self.title = format!("{host} ({}){rest}", ib_mad::label::plural(self.nodes, "HCA"));
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

/// The incidents of a period.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Incidents {
    /// The incidents, the earliest first.
    pub incidents: Vec<Incident>,
    /// How many more there were; those without any consequence are omitted first.
    pub more: usize,
}

/// How many incidents an answer has at most: about 10 MB of JSON.
pub const MAX_INCIDENTS: usize = 10_000;

/// How long before a period events are read that tell since when something is down or bad.
pub const LOOK_BACK: Duration = Duration::from_secs(7 * 24 * 3600);

/// The events that begin and end what lasts, and say why. A copy of a period has those of [`LOOK_BACK`] before it.
pub const LASTING: [EventKind; 15] = [
    EventKind::ExporterStart,
    EventKind::SweepFailed,
    EventKind::SweepRecovered,
    EventKind::LinkDown,
    EventKind::LinkDownReason,
    EventKind::LinkUp,
    EventKind::Flap,
    EventKind::ExpectedLinkDown,
    EventKind::CableChanged,
    EventKind::VerdictChanged,
    EventKind::VerdictUpdated,
    EventKind::NodeDown,
    EventKind::NodeUp,
    EventKind::CongestionStart,
    EventKind::CongestionEnd,
];

impl Incidents {
    /// The incidents that lasted in a period, or began in it; at most `limit`.
    pub fn find(source: &dyn Source, window: Window, limit: usize) -> Answer<Self> {
        let states = [at_beginning(source, window)?, source.fabrics(window.to)?];
        Self::among(source, window, [&states[0], &states[1]], limit)
    }

    /// The latest incidents of a period, the latest first, without those of which only the state at its beginning tells.
    pub fn latest(source: &dyn Source, window: Window, most: usize) -> Answer<Vec<Incident>> {
        let after = source.fabrics(window.to)?;
        let found = Self::among(source, window, [&[], &after], MAX_INCIDENTS)?;
        Ok(found.incidents.into_iter().rev().take(most).collect())
    }

    /// The incidents, given the states of the fabrics at the beginning and at the end of the period.
    pub(crate) fn among(
        source: &dyn Source,
        window: Window,
        [before, after]: [&[FabricState]; 2],
        limit: usize,
    ) -> Answer<Self> {
        let mut groupers: BTreeMap<String, Grouper> = BTreeMap::new();
        for state in before.iter().chain(after) {
            let grouper = groupers.entry(state.fabric.clone()).or_default();
            grouper.places.learn(state);
        }
        let mut add = |event: Event| {
            if !groupers.contains_key(&event.fabric) {
                groupers.insert(event.fabric.clone(), Grouper::default());
            }
            if let Some(grouper) = groupers.get_mut(&event.fabric) {
                grouper.add(event);
            }
        };
        let earlier = Window {
            from: window.from.checked_sub(LOOK_BACK).unwrap_or(SystemTime::UNIX_EPOCH),
            to: window.from.checked_sub(Duration::from_micros(1)).unwrap_or(window.from),
        };
        if earlier.to < window.from {
            let filter = EventFilter { kinds: LASTING.to_vec(), ..EventFilter::all(earlier) };
            for_each_event(source, &filter, &mut add)?;
        }
        for_each_event(source, &EventFilter::all(window), &mut add)?;
        let mut found = Incidents::default();
        for (fabric, grouper) in groupers {
            let [before, after] =
                [before, after].map(|states| states.iter().find(|state| state.fabric == fabric));
            found.more += grouper.dropped;
            found.incidents.extend(grouper.finish(&fabric, window, before, after));
        }
        found.merge_hosts();
        found.limit(limit);
        Ok(found)
    }

    /// Makes one incident of the outages of a host in several fabrics: the planes or rails of a cluster.
    fn merge_hosts(&mut self) {
        let mut of_host: BTreeMap<String, Incident> = BTreeMap::new();
        let mut merged = Vec::new();
        self.incidents.sort_by_key(|incident| incident.began);
        for incident in std::mem::take(&mut self.incidents) {
            let is_one = incident.kind == IncidentKind::HostDown && incident.host_count == 1;
            let Some(host) = incident.hosts.first().filter(|_| is_one).cloned() else {
                merged.push(incident);
                continue;
            };
            let is_same = |it: &Incident| {
                let apart = |a: SystemTime, b: SystemTime| a.max(b).duration_since(a.min(b));
                let began = apart(it.began, incident.began).unwrap_or_default();
                it.fabric != incident.fabric && began < grouper::NEAR && it.ended == incident.ended
            };
            match of_host.get_mut(&host) {
                Some(first) if is_same(first) => first.absorb(incident),
                _ => merged.extend(of_host.insert(host, incident)),
            }
        }
        merged.extend(of_host.into_values());
        self.incidents = merged;
    }

    /// Keeps those that matter most, the earliest first.
    fn limit(&mut self, limit: usize) {
        if self.incidents.len() > limit {
            self.incidents.sort_by_key(|it| std::cmp::Reverse((it.severity, it.harm, it.began)));
            self.more += self.incidents.len() - limit;
            self.incidents.truncate(limit);
        }
        self.incidents
            .sort_by(|a, b| (a.began, &a.fabric, &a.place).cmp(&(b.began, &b.fabric, &b.place)));
    }
}

/// The fabrics at a window's beginning, or at the first sweep, if that came later.
pub(crate) fn at_beginning(source: &dyn Source, window: Window) -> Answer<Vec<FabricState>> {
    let then = source.fabrics(window.from)?;
    let first = source.span()?.first.filter(|first| then.is_empty() && window.has(*first));
    // Over HTTP times have milliseconds.
    first.map_or(Ok(then), |first| source.fabrics(first + Duration::from_millis(1)))
}
