//! Compares each observation of a fabric with the one before: the fabric as a whole, its nodes, links and ports.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use std::time::SystemTime;

use crate::event::{About, EventKind, NewEvent};
use crate::record::events::congestions::OpenCongestions;
use crate::record::events::fabric_wide::FabricWide;
use crate::record::events::links::LastLink;
use crate::record::events::ports::LastPorts;
use crate::record::events::reports::DeviceReports;
use crate::record::events::sweep::Sweep;
use fabric_observation::Observation;
use ib_fabric::change::FabricChange;
use ib_fabric::topology::{Link, LinkId};
use ib_fabric::{Fabric, NodeMap, change};
use ib_mad::ids::port_label;
use ib_mad::{Moment, PortKey};

/// Compares each observation of a fabric with the state at the one before.
#[derive(Debug, Default)]
pub struct EventDetector {
    fabric: Arc<Fabric>,
    /// Whether the fabric consists of a host's devices, which are not discovered by their cables.
    is_of_host: bool,
    /// Whether an observation was compared already.
    has_begun: bool,
    fabric_wide: FabricWide,
    /// By index among the links of the assessment.
    links: Vec<(Link, LastLink)>,
    /// Whether each node responded.
    nodes: NodeMap<bool>,
    ports: LastPorts,
    /// The start of the latest sweep: a port event publishes the same sweep again.
    last_sweep: Option<Moment>,
    congestions: OpenCongestions,
    /// What devices have reported of their ports.
    pub reports: DeviceReports,
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
            last.update(found, &mut sweep);
        }
        self.ports.update(&mut sweep);
        if self.last_sweep.replace(snapshot.began) != Some(snapshot.began) {
            let unread = self.ports.update_unread(snapshot);
            self.fabric_wide.update_unread(unread, &mut sweep);
        }
        self.congestions.update(&mut sweep);
        self.reports.update(&mut self.ports, &mut sweep);
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
            push_changes(&old, &new, |id| known.contains_key(&id), sweep);
        }
        self.links = (sweep.assessment.links.iter())
            .map(|found| {
                let last = new.link_id(found.link.low).and_then(|id| known.get(&id).copied());
                (found.link, last.unwrap_or_else(|| LastLink::new(found, !self.has_begun)))
            })
            .collect();
        self.ports.move_to(&old, sweep);
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
        self.reports.places.forget_absent(&new);
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

/// Adds an event for each cable that was moved, and for each new link that was not known before. The planes of a link
/// are one: the lowest of those that changed tells it.
fn push_changes(old: &Fabric, new: &Fabric, is_known: impl Fn(LinkId) -> bool, sweep: &mut Sweep) {
    let began = sweep.snapshot.began;
    let (mut added, mut moved) = (HashSet::new(), HashSet::new());
    for change in change::diff(old, new) {
        match change {
            FabricChange::LinkMoved { port, from, to } => {
                let index = new.find(PortKey::new(port.guid, port.port));
                let whole = index.and_then(|index| new.plane_of(index));
                if whole.is_some_and(|(whole, _)| !moved.insert(whole)) {
                    continue;
                }
                let text = format!("neighbor changed from {from} to {to}");
                let place = port_label(&port.node, port.port);
                let about = About::Port(port.guid, port.port);
                sweep.push(EventKind::CableMoved, about, place, text, began);
            }
            FabricChange::LinkAppeared(a, b) => {
                let id = new.find(PortKey::new(a.guid, a.port)).and_then(|port| new.link_id(port));
                if let Some(id) = id.filter(|id| !is_known(*id) && added.insert(*id)) {
                    let [a, b] = [a, b].map(|end| port_label(&end.node, end.port));
                    let (about, place) = (About::Link(id), format!("{a} – {b}"));
                    sweep.push(EventKind::LinkAdded, about, place, "new link discovered", began);
                }
            }
            // Nodes are compared with what was recorded of them.
            FabricChange::NodeAppeared(..)
            | FabricChange::NodeDisappeared(..)
            | FabricChange::LinkDisappeared(..)
            | FabricChange::LidChanged(..) => {}
        }
    }
}
