//! What counters went through, and who kept others waiting.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::event::{About, Kind};
use crate::file::tier::Tier;
use ib_fabric::PortIndex;
use ib_health::assessment::CounterStatus;
use ib_health::congestion::GRACE;
use ib_health::evidence;
use ib_mad::port_state::PortStatus;
use ib_mad::{Counter, Guid, Moment};

use super::{Look, Story};

/// How many nodes a sentence names.
const MOST_NAMED: usize = 5;

/// What is remembered of a port.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct PortMemory {
    resets: u32,
    saturated: u64,
    /// Whether its counters were ever read.
    was_read: bool,
    /// Sweeps since they were, while its node answered and it had a link.
    missed: u32,
}

impl PortMemory {
    /// What is known of a port that was not there before.
    pub fn new(counting: &CounterStatus) -> Self {
        let (resets, saturated) = (counting.resets, filled(counting));
        PortMemory { resets, saturated, ..PortMemory::default() }
    }
}

/// A congestion that is not over.
#[derive(Clone, Debug)]
pub(super) struct Root {
    place: String,
    seen: Moment,
}

impl Story {
    pub(super) fn follow_ports(&mut self, look: &mut Look) {
        let fabric = Arc::clone(&self.fabric);
        let mut fell: BTreeMap<Guid, Vec<PortIndex>> = BTreeMap::new();
        let assessment = look.assessment;
        for ((port, memory), found) in
            fabric.port_indexes().zip(&mut self.ports).zip(&assessment.ports)
        {
            let counting = &found.counters;
            if std::mem::replace(&mut memory.resets, counting.resets) != counting.resets {
                fell.entry(fabric.end(port).0).or_default().push(port);
            }
            let mask = filled(counting);
            let new = mask & !std::mem::replace(&mut memory.saturated, mask);
            for counter in Counter::all().filter(|counter| new >> *counter as usize & 1 == 1) {
                let name = counter.row().metric;
                let text = format!("{name} is full, and counts no further");
                let place = evidence::port_label(look.snapshot, port);
                look.tell(
                    Kind::Saturation,
                    fabric.end(port).into(),
                    place,
                    text,
                    look.snapshot.ended,
                );
            }
        }
        for (guid, ports) in fell {
            let Some(&first) = ports.first() else { continue };
            let (about, place) = if ports.len() == 1 {
                (fabric.end(first).into(), evidence::port_label(look.snapshot, first))
            } else {
                (About::Node(guid), fabric.node_of(first).name.clone())
            };
            let text = match ports.len() {
                1 => "counters fell".into(),
                count => format!("counters of {count} ports fell"),
            };
            look.tell(Kind::CounterReset, about, place, text, look.snapshot.ended);
        }
    }

    /// Ports that have a link, whose node answers, and that tell nothing all the same.
    pub(super) fn follow_reading(&mut self, look: &mut Look) {
        let snapshot = look.snapshot;
        let mut unread: BTreeMap<&str, usize> = BTreeMap::new();
        for (port, memory) in self.fabric.port_indexes().zip(&mut self.ports) {
            if snapshot.reading(port).is_some() {
                (memory.was_read, memory.missed) = (true, 0);
            } else if memory.was_read && snapshot.status(port).is_some_and(PortStatus::link_up) {
                memory.missed += 1;
                // A node that has just come back tells them from its next sweep on.
                if memory.missed < 2 {
                    continue;
                }
                *unread.entry(&self.fabric.node_of(port).name).or_default() += 1;
            }
        }
        let nodes = unread.iter().map(|(node, ports)| format!("{node} ({ports})"));
        let nodes: Vec<String> = nodes.take(MOST_NAMED).collect();
        let more = unread.len().saturating_sub(MOST_NAMED);
        let more = if more > 0 { format!(", and of {more} more nodes") } else { String::new() };
        let text = format!("ports that did not tell their counters: of {}{more}", nodes.join(", "));
        self.whole.unread(!unread.is_empty(), text, look);
    }

    /// Jobs communicate in bursts: a congestion that was gone for no longer than the judge's own
    /// patience is the same one.
    pub(super) fn follow_roots(&mut self, look: &mut Look) {
        let at = look.snapshot.ended;
        for region in &look.assessment.regions {
            let end = self.fabric.end(region.root);
            let place = evidence::port_label(look.snapshot, region.root);
            if let Some(root) = self.roots.get_mut(&end) {
                root.seen = at;
                continue;
            }
            let share = f64::from(region.share) * 100.0;
            let text = format!(
                "ports that wait: {}, up to {share:.0} % of the time ({})",
                region.ports,
                region.level.label()
            );
            look.tell(Kind::CongestionBegan, end.into(), place.clone(), text, at);
            self.roots.insert(end, Root { place, seen: at });
        }
        self.roots.retain(|end, root| {
            let is_over = at.since(root.seen) > GRACE;
            if is_over {
                let (kind, place) = (Kind::CongestionEnded, root.place.clone());
                let text = "no ports wait for it any more".into();
                look.tell(kind, (*end).into(), place, text, root.seen);
            }
            !is_over
        });
    }
}

/// One bit a counter that is or was full. Those that grow all the time, or on a healthy fabric, are
/// full sooner or later, and there is nothing to do about it.
fn filled(counting: &CounterStatus) -> u64 {
    let rare = Counter::all().filter(|counter| Tier::of(*counter) == Tier::Rare);
    let rare = rare.filter(|counter| !counter.is_benign());
    let filled = rare.filter(|counter| counting.was_saturated(*counter));
    filled.fold(0, |mask, counter| mask | 1 << counter as usize)
}
