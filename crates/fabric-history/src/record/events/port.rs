//! Events of ports: counters that were reset, are full, or are not read; and congestion.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::event::{About, EventKind};
use crate::file::record_kind::RecordKind;
use ib_fabric::PortIndex;
use ib_health::assessment::CounterStatus;
use ib_health::congestion::GRACE;
use ib_health::evidence;
use ib_mad::port_state::PortStatus;
use ib_mad::{Counter, Guid, Moment};

use super::{EventDetector, Sweep};

/// How many nodes an event's text names.
const MAX_NAMED: usize = 5;

/// A port as it was last known.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct LastPort {
    resets: u32,
    /// One bit per counter ([`saturated`]).
    saturated: u64,
    /// Whether its counters were ever read.
    was_read: bool,
    /// Sweeps since its counters were read, while its node responded and it had a link.
    missed: u32,
}

impl LastPort {
    /// A port that was not there before.
    pub fn new(counting: &CounterStatus) -> Self {
        let (resets, saturated) = (counting.resets, saturated(counting));
        LastPort { resets, saturated, ..LastPort::default() }
    }
}

/// A congestion that has not ended.
#[derive(Clone, Debug)]
pub(super) struct OpenCongestion {
    place: String,
    last_seen: Moment,
}

impl EventDetector {
    /// Resets and saturation. Resets of several ports of a node are one event.
    pub(super) fn update_ports(&mut self, sweep: &mut Sweep) {
        let fabric = Arc::clone(&self.fabric);
        let (assessment, ended) = (sweep.assessment, sweep.snapshot.ended);
        let mut reset: BTreeMap<Guid, Vec<PortIndex>> = BTreeMap::new();
        for ((port, last), found) in
            fabric.port_indexes().zip(&mut self.ports).zip(&assessment.ports)
        {
            let counting = &found.counters;
            if std::mem::replace(&mut last.resets, counting.resets) != counting.resets {
                reset.entry(fabric.end(port).0).or_default().push(port);
            }
            let mask = saturated(counting);
            let new = mask & !std::mem::replace(&mut last.saturated, mask);
            for counter in Counter::all().filter(|counter| new >> *counter as usize & 1 == 1) {
                let text = format!("{} is full, and counts no further", counter.row().metric);
                let place = evidence::port_label(sweep.snapshot, port);
                sweep.push(EventKind::Saturation, fabric.end(port).into(), place, text, ended);
            }
        }
        for (guid, ports) in reset {
            let (about, place, text) = match *ports {
                [] => continue,
                [port] => {
                    let place = evidence::port_label(sweep.snapshot, port);
                    (fabric.end(port).into(), place, "counters fell".into())
                }
                [first, ..] => {
                    let text = format!("counters of {} ports fell", ports.len());
                    (About::Node(guid), fabric.node_of(first).name.clone(), text)
                }
            };
            sweep.push(EventKind::CounterReset, about, place, text, ended);
        }
    }

    /// Ports with a link whose node responds, but whose counters are not read.
    pub(super) fn update_reads(&mut self, sweep: &mut Sweep) {
        let snapshot = sweep.snapshot;
        let mut unread: BTreeMap<&str, usize> = BTreeMap::new();
        for (port, last) in self.fabric.port_indexes().zip(&mut self.ports) {
            if snapshot.reading(port).is_some() {
                (last.was_read, last.missed) = (true, 0);
            } else if last.was_read && snapshot.status(port).is_some_and(PortStatus::link_up) {
                last.missed += 1;
                // The counters of a node that has just come back are read from the next sweep on.
                if last.missed >= 2 {
                    *unread.entry(&self.fabric.node_of(port).name).or_default() += 1;
                }
            }
        }
        let nodes = unread.iter().map(|(node, ports)| format!("{node} ({ports})"));
        let nodes: Vec<String> = nodes.take(MAX_NAMED).collect();
        let more = unread.len().saturating_sub(MAX_NAMED);
        let more = if more > 0 { format!(", and of {more} more nodes") } else { String::new() };
        let text = format!("ports that did not tell their counters: of {}{more}", nodes.join(", "));
        self.fabric_wide.update_unread(!unread.is_empty(), text, sweep);
    }

    /// Congestions that begin and end. Jobs communicate in bursts: a congestion that was absent for no longer
    /// than [`GRACE`] is the same one.
    pub(super) fn update_congestions(&mut self, sweep: &mut Sweep) {
        let at = sweep.snapshot.ended;
        for region in &sweep.assessment.regions {
            let end = self.fabric.end(region.root);
            if let Some(congestion) = self.congestions.get_mut(&end) {
                congestion.last_seen = at;
                continue;
            }
            let place = evidence::port_label(sweep.snapshot, region.root);
            let share = f64::from(region.share) * 100.0;
            let text = format!(
                "ports that wait: {}, up to {share:.0} % of the time ({})",
                region.ports,
                region.level.label()
            );
            sweep.push(EventKind::CongestionBegan, end.into(), place.clone(), text, at);
            self.congestions.insert(end, OpenCongestion { place, last_seen: at });
        }
        self.congestions.retain(|end, congestion| {
            let is_over = at.since(congestion.last_seen) > GRACE;
            if is_over {
                let text = "no ports wait for it any more".into();
                let place = congestion.place.clone();
                sweep.push(
                    EventKind::CongestionEnded,
                    (*end).into(),
                    place,
                    text,
                    congestion.last_seen,
                );
            }
            !is_over
        });
    }
}

/// One bit per counter that is or was saturated. Without traffic counters and those that grow on a healthy
/// fabric: these saturate sooner or later, and nothing can be done about it.
fn saturated(counting: &CounterStatus) -> u64 {
    Counter::all()
        .filter(|counter| {
            RecordKind::of(*counter) == RecordKind::ErrorDeltas && !counter.is_benign()
        })
        .filter(|counter| counting.was_saturated(*counter))
        .fold(0, |mask, counter| mask | 1 << counter as usize)
}
