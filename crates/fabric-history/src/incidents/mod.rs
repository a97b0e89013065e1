//! Incidents: events grouped by their cause. A switch that reboots has one `node_down`, the link downs of all its
//! cables, the `node_down` of each HCA behind it, cleared counters and reasons that its neighbors report: some 164
//! events, and one incident.
//!
//! Events are grouped when they are read, by one function of the events and the fabric's states. Old histories,
//! copies, and answers over HTTP have the same incidents as the file of a running exporter, and a better grouping
//! needs no migration.

mod cage;
mod cages;
mod congestion;
mod describe;
mod group;
mod grouper;
mod incident;
mod period_ends;
mod places;
#[cfg(test)]
mod tests;
mod wording;

use std::collections::BTreeMap;
use std::time::{Duration, SystemTime};

use serde::Serialize;

use crate::EventKind;
use crate::model::{Event, FabricState, Window};
use crate::source::{Answer, EventFilter, Source, for_each_event};

use grouper::Grouper;

pub use incident::{Harm, HarmClass, Incident, IncidentKind, Severity};

/// The incidents of a period.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
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
        Self::find_until(source, window, &source.fabrics(window.to)?, limit)
    }

    /// The same, given the states of the fabrics at the end of the period.
    pub fn find_until(
        source: &dyn Source,
        window: Window,
        after: &[FabricState],
        limit: usize,
    ) -> Answer<Self> {
        Self::among(source, window, [&at_beginning(source, window)?, after], limit)
    }

    /// The latest incidents of a period, the latest first, given the states of the fabrics at its end. Those of which
    /// only the states at its beginning tell are missing.
    pub fn latest(
        source: &dyn Source,
        window: Window,
        after: &[FabricState],
        most: usize,
    ) -> Answer<Vec<Incident>> {
        let found = Self::among(source, window, [&[], after], MAX_INCIDENTS)?;
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
            found.incidents.extend(period_ends::finish(grouper, &fabric, window, before, after));
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
