//! Events of ports: counters that were reset, are saturated, or are not read.

use std::collections::BTreeMap;
use std::time::Duration;

use serde_json::{Value, json};

use crate::event::{About, EventKind};
use crate::file::record_kind::RecordKind;
use crate::record::events::sweep::Sweep;
use display_text::{label_text, plural};
use ib_fabric::{Fabric, PortIndex, PortMap, Snapshot};
use ib_health::counter_status::CounterStatus;
use ib_health::outage::duration;
use ib_mad::port_state::PortStatus;
use ib_mad::reading::CounterSet;
use ib_mad::{Guid, Moment};

/// How many nodes an event's text names.
const MAX_NAMED: usize = 5;

/// The ports of a fabric as they were last known.
#[derive(Debug, Default)]
pub(super) struct LastPorts {
    pub ports: PortMap<LastPort>,
    /// By node.
    resets: BTreeMap<Guid, RepeatedResets>,
}

/// A port as it was last known.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct LastPort {
    resets: u32,
    /// See [`saturated`].
    saturated: CounterSet,
    /// Whether its counters were ever read.
    was_read: bool,
    /// Sweeps since its counters were read, while its node responded and it had a link.
    missed: u32,
    /// How often its link had gone down or retrained when the reason was last reported, or when it was first read.
    pub link_downs: Option<u64>,
}

impl LastPort {
    fn new(counting: &CounterStatus) -> Self {
        let (resets, saturated) = (counting.resets, saturated(counting));
        LastPort { resets, saturated, ..LastPort::default() }
    }
}

/// After a time without resets of a node the next one is an event again.
const RESETS_APART: Duration = Duration::from_secs(3600);

/// Resets of a node's ports, none of which was long after the one before: those of a tool that clears again and again.
#[derive(Clone, Copy, Debug)]
struct RepeatedResets {
    times: u32,
    last: Moment,
}

impl LastPorts {
    /// Moves what is known from the indexes of an old fabric to those of the new one.
    pub fn move_to(&mut self, old: &Fabric, sweep: &Sweep) {
        let new = &sweep.snapshot.fabric;
        let old_ports = std::mem::take(&mut self.ports);
        self.ports = (new.port_indexes().zip(&sweep.assessment.ports))
            .map(|(port, found)| {
                let last = old.find(new.port_key(port)).and_then(|old| old_ports.get(old).copied());
                last.unwrap_or_else(|| LastPort::new(&found.counters))
            })
            .collect();
    }

    /// Resets and saturation. Resets of several ports of a node are one event, and so are repeated resets after the first.
    pub fn update(&mut self, sweep: &mut Sweep) {
        let fabric = &sweep.snapshot.fabric;
        let (assessment, ended) = (sweep.assessment, sweep.snapshot.ended);
        let mut reset: BTreeMap<Guid, Vec<PortIndex>> = BTreeMap::new();
        let ports = fabric.port_indexes().zip(&mut self.ports).zip(&assessment.ports);
        for ((port, last), found) in ports {
            let counting = &found.counters;
            if std::mem::replace(&mut last.resets, counting.resets) != counting.resets {
                reset.entry(fabric.port_key(port).guid).or_default().push(port);
            }
            if last.link_downs.is_none() {
                last.link_downs = sweep.snapshot.link_downs(port);
            }
            let saturated = saturated(counting);
            let known = std::mem::replace(&mut last.saturated, saturated);
            for counter in saturated.without(known).iter() {
                let text = format!("{} is saturated", label_text(counter.row().metric));
                let (about, place) =
                    (fabric.port_key(port).into(), sweep.snapshot.fabric.port_label(port));
                sweep.push(EventKind::CounterSaturated, about, place, text, ended);
            }
        }
        self.resets.retain(|_, resets| ended.since(resets.last) <= RESETS_APART);
        for (guid, ports) in reset {
            let resets =
                self.resets.entry(guid).or_insert(RepeatedResets { times: 0, last: ended });
            let since = ended.since(std::mem::replace(&mut resets.last, ended));
            resets.times = resets.times.saturating_add(1);
            if resets.times > 2 {
                continue;
            }
            let again = if resets.times == 2 {
                let (since, apart) = (duration(since), duration(RESETS_APART));
                format!(
                    " again after {since}; no more of these are reported until none is seen for {apart}"
                )
            } else {
                String::new()
            };
            let (about, place, text) = match *ports {
                [] => continue,
                [port] => {
                    let place = sweep.snapshot.fabric.port_label(port);
                    (
                        fabric.port_key(port).into(),
                        place,
                        "counters were cleared or reset".to_owned(),
                    )
                }
                [first, ..] => {
                    let text = format!("counters of {} ports were cleared or reset", ports.len());
                    (About::Node(guid), fabric.node_of(first).name.clone(), text)
                }
            };
            let (text, kind) = (text + &again, EventKind::CounterReset);
            let repeated =
                if resets.times == 2 { json!({ "repeated": true }) } else { Value::Null };
            sweep.push_detailed(kind, about, place, text, ended, repeated);
        }
    }

    /// Which ports with a link whose node responds do not have their counters read; `None` if there are none.
    pub fn update_unread(&mut self, snapshot: &Snapshot) -> Option<String> {
        let fabric = &snapshot.fabric;
        let mut unread: BTreeMap<&str, usize> = BTreeMap::new();
        for (port, last) in fabric.port_indexes().zip(&mut self.ports) {
            if snapshot.reading(port).is_some() {
                (last.was_read, last.missed) = (true, 0);
            } else if last.was_read && snapshot.status(port).is_some_and(PortStatus::link_up) {
                last.missed += 1;
                // The counters of a node that responds again are read from the next sweep on.
                if last.missed >= 2 {
                    *unread.entry(&fabric.node_of(port).name).or_default() += 1;
                }
            }
        }
        let ports_of =
            |(node, ports): (&&str, &usize)| format!("{node} ({})", plural(*ports, "port"));
        let nodes: Vec<String> = unread.iter().take(MAX_NAMED).map(ports_of).collect();
        let more = match unread.len().saturating_sub(MAX_NAMED) {
            0 => String::new(),
            more => format!(", and {} more", plural(more, "node")),
        };
        (!unread.is_empty()).then(|| format!("counters not read: {}{more}", nodes.join(", ")))
    }
}

/// The counters that are or were saturated. Without traffic counters and those that grow on a healthy
/// fabric: these saturate sooner or later, and nothing can be done about it.
fn saturated(counting: &CounterStatus) -> CounterSet {
    let mut saturated = counting.ever_saturated;
    for counter in counting.ever_saturated.iter() {
        let is_rare = RecordKind::of(counter) == RecordKind::ErrorDeltas;
        saturated.set(counter, is_rare && !counter.is_benign());
    }
    saturated
}
