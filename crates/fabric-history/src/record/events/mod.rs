//! Detects what happened between two observations of a fabric. Reads no clock, and writes nothing.

mod congestions;
mod ports;
mod reports;
#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;
use std::time::SystemTime;

use serde_json::Value;

use crate::event::{About, EventKind, NewEvent};
use crate::record::module_places::ModulePlaces;
use fabric_observation::{Collector, Observation};
use ib_fabric::change::FabricChange;
use ib_fabric::topology::{Link, LinkId};
use ib_fabric::{Fabric, NodeMap, PortMap, Snapshot, change};
use ib_health::Assessment;
use ib_health::congestion::GRACE;
use ib_mad::ids::port_label;
use ib_mad::{Guid, Moment, PortKey};

use congestions::OpenCongestion;
use ports::{LastLink, LastPort, RepeatedResets};
pub(super) use ports::{active_rate, rate_change};

/// Compares each observation of a fabric with the state at the one before.
#[derive(Debug, Default)]
pub struct EventDetector {
    fabric: Arc<Fabric>,
    /// Whether the fabric consists of a host's devices, which are not discovered by their cables.
    is_of_host: bool,
    /// Whether an observation was compared already.
    has_begun: bool,
    fabric_wide: FabricWide,
    /// By index among the assessment' links.
    links: Vec<(Link, LastLink)>,
    /// Whether each node responded.
    nodes: NodeMap<bool>,
    ports: PortMap<LastPort>,
    /// The start of the latest sweep: a port event publishes the same sweep again.
    last_sweep: Option<Moment>,
    congestions: BTreeMap<PortKey, OpenCongestion>,
    /// By node.
    resets: BTreeMap<Guid, RepeatedResets>,
    /// Where cables and modules were seen.
    pub(super) places: ModulePlaces,
    /// What devices reported until then was handled.
    reported_until: Moment,
}

impl EventDetector {
    /// A detector for a host's devices.
    pub fn of_host() -> Self {
        EventDetector { is_of_host: true, ..EventDetector::default() }
    }

    /// The events since the observation before. The first observation is the reference and has none.
    /// `now` is the time of day.
    pub fn update(&mut self, observation: &Observation, now: SystemTime) -> Vec<NewEvent> {
        let Some(snapshot) = &observation.snapshot else { return Vec::new() };
        let events = self.fabric_wide.update(observation, snapshot, now);
        // While no request succeeds nothing is known to have changed.
        if self.fabric_wide.is_failing {
            return events;
        }
        let (fabric, assessment) = (&*observation.fabric, &observation.assessment);
        let mut sweep = Sweep { fabric, snapshot, assessment, events };
        if !Arc::ptr_eq(&self.fabric, &snapshot.fabric) {
            self.update_fabric(&mut sweep);
        }
        self.update_nodes(&mut sweep);
        for ((_, last), found) in self.links.iter_mut().zip(&observation.assessment.links) {
            sweep.update_link(last, found);
        }
        self.update_ports(&mut sweep);
        if self.last_sweep.replace(snapshot.began) != Some(snapshot.began) {
            self.update_reads(&mut sweep);
        }
        self.update_congestions(&mut sweep);
        self.update_reports(&mut sweep);
        self.has_begun = true;
        sweep.events
    }

    /// Detects what differs between two fabrics, and moves the last states to the new fabric's indexes.
    fn update_fabric(&mut self, sweep: &mut Sweep) {
        let (old, new) = (Arc::clone(&self.fabric), Arc::clone(&sweep.snapshot.fabric));
        let known: HashMap<LinkId, LastLink> = (self.links.drain(..))
            .filter_map(|(link, last)| Some((old.link_id(link.low)?, last)))
            .collect();
        if self.has_begun {
            sweep.push_changes(&old, &new, |id| known.contains_key(&id));
        }
        self.links = (sweep.assessment.links.iter())
            .map(|found| {
                let last = new.link_id(found.link.low).and_then(|id| known.get(&id).copied());
                (found.link, last.unwrap_or_else(|| LastLink::new(found, !self.has_begun)))
            })
            .collect();
        let old_ports = std::mem::take(&mut self.ports);
        self.ports = (new.port_indexes().zip(&sweep.assessment.ports))
            .map(|(port, found)| {
                let last = old.find(new.port_key(port)).and_then(|old| old_ports.get(old).copied());
                last.unwrap_or_else(|| LastPort::new(&found.counters))
            })
            .collect();
        let old_nodes = std::mem::take(&mut self.nodes);
        for index in new.node_indexes() {
            let node = new.node(index);
            let guid = node.identity.guid;
            let last = old.node_by_guid(guid).and_then(|old| old_nodes.get(old));
            if last.is_none() && self.has_begun {
                let kind = if self.is_of_host { "device" } else { node.identity.kind.label() };
                let (about, text) = (About::Node(guid), format!("new {kind} discovered"));
                sweep.push(EventKind::NodeAdded, about, &node.name, text, sweep.snapshot.began);
            }
            self.nodes.push(last.copied().unwrap_or_else(|| sweep.snapshot.is_up(index)));
        }
        self.places.forget_absent(&new);
        self.fabric = new;
    }

    fn update_nodes(&mut self, sweep: &mut Sweep) {
        let fabric = &self.fabric;
        for (index, was_up) in fabric.node_indexes().zip(&mut self.nodes) {
            let is_up = sweep.snapshot.is_up(index);
            if is_up == std::mem::replace(was_up, is_up) {
                continue;
            }
            let node = fabric.node(index);
            let (kind, text) = match (is_up, node.present()) {
                (true, _) => (EventKind::NodeUp, "responds again"),
                (false, true) => (EventKind::NodeDown, "does not respond"),
                (false, false) if self.is_of_host => {
                    (EventKind::NodeDown, "device no longer listed by the kernel")
                }
                (false, false) => (EventKind::NodeDown, "no longer found by discovery"),
            };
            let about = About::Node(node.identity.guid);
            sweep.push(kind, about, &node.name, text, sweep.snapshot.began);
        }
    }
}

/// A sweep that is compared, and its events so far.
struct Sweep<'a> {
    /// The name of the fabric.
    fabric: &'a str,
    snapshot: &'a Snapshot,
    assessment: &'a Assessment,
    events: Vec<NewEvent>,
}

impl Sweep<'_> {
    fn push(
        &mut self,
        kind: EventKind,
        about: About,
        place: impl Into<String>,
        text: impl Into<String>,
        at: Moment,
    ) {
        self.push_detailed(kind, about, place, text, at, Value::Null);
    }

    fn push_detailed(
        &mut self,
        kind: EventKind,
        about: About,
        place: impl Into<String>,
        text: impl Into<String>,
        at: Moment,
        detail: Value,
    ) {
        let (at, place, text) = (self.snapshot.anchor.wall_of(at), place.into(), text.into());
        self.events.push(NewEvent { at, kind, about, place, text, detail });
    }

    /// Adds an event for each cable that was moved, and for each new link that was not known before.
    fn push_changes(&mut self, old: &Fabric, new: &Fabric, is_known: impl Fn(LinkId) -> bool) {
        let began = self.snapshot.began;
        for change in change::diff(old, new) {
            match change {
                FabricChange::LinkMoved { port, from, to } => {
                    let text = format!("neighbor changed from {from} to {to}");
                    let place = port_label(&port.node, port.port);
                    let about = About::Port(port.guid, port.port);
                    self.push(EventKind::CableMoved, about, place, text, began);
                }
                FabricChange::LinkAppeared(a, b) => {
                    let id =
                        new.find(PortKey::new(a.guid, a.port)).and_then(|port| new.link_id(port));
                    if let Some(id) = id.filter(|id| !is_known(*id)) {
                        let [a, b] = [a, b].map(|end| port_label(&end.node, end.port));
                        let (about, place) = (About::Link(id), format!("{a} – {b}"));
                        self.push(EventKind::LinkAdded, about, place, "new link discovered", began);
                    }
                }
                _ => {}
            }
        }
    }
}

/// A fabric as a whole, as it was last known.
#[derive(Debug, Default)]
pub(super) struct FabricWide {
    /// Whether all collectors failed.
    is_failing: bool,
    /// How often the master subnet manager had changed.
    master_changes: u64,
    /// The node of the last known master.
    master: Option<String>,
    /// When a port was last not read; `None` once they have been read for [`GRACE`].
    unread: Option<Moment>,
}

impl FabricWide {
    /// The events of an observation. `now` is the time of day.
    pub fn update(
        &mut self,
        observation: &Observation,
        snapshot: &Snapshot,
        now: SystemTime,
    ) -> Vec<NewEvent> {
        let mut events = Vec::new();
        let mut push = |kind, text: String, at| {
            events.push(NewEvent::of_fabric(kind, &observation.fabric, text, at));
        };
        let tally = &observation.stats;
        let fails = Collector::ALL.iter().all(|collector| !tally.success(*collector));
        let began = snapshot.anchor.wall_of(snapshot.began);
        match (std::mem::replace(&mut self.is_failing, fails), fails) {
            (false, true) => {
                let text = "all requests fail: changes in the fabric are not detected";
                push(EventKind::SweepFailed, text.into(), now);
            }
            (true, false) => {
                push(EventKind::SweepRecovered, "requests succeed again".into(), began);
            }
            _ => {}
        }
        let changes = tally.mastership.changes;
        let is_changed = std::mem::replace(&mut self.master_changes, changes) != changes;
        let master = tally.mastership.master.and_then(|end| snapshot.fabric.find(end));
        let master = master.map(|port| &*snapshot.fabric.node_of(port).name);
        if is_changed {
            let from = self.master.as_deref().map_or(String::new(), |name| format!("from {name} "));
            let to = master.unwrap_or("an unknown node");
            push(EventKind::MasterChanged, format!("{from}to {to}"), began);
        }
        if let Some(name) = master.filter(|name| self.master.as_deref() != Some(*name)) {
            self.master = Some(name.to_owned());
        }
        events
    }

    /// Adds an event when the counters of ports are not read any more, and when all have been read for
    /// [`GRACE`]: MADs are lost now and then.
    fn update_unread(&mut self, is_unread: bool, text: String, sweep: &mut Sweep) {
        let (at, fabric) = (sweep.snapshot.began, sweep.fabric);
        let mut push = |kind, text, at| sweep.push(kind, About::All, fabric, text, at);
        match self.unread {
            None if is_unread => {
                push(EventKind::ReadsFailed, text, at);
                self.unread = Some(at);
            }
            Some(_) if is_unread => self.unread = Some(at),
            Some(last) if at.since(last) > GRACE => {
                let text = "counters of all ports are read again".into();
                push(EventKind::ReadsRecovered, text, last);
                self.unread = None;
            }
            _ => {}
        }
    }
}
