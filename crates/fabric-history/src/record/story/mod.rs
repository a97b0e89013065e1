//! From one observation to the next: what happened. Reads no clock, and writes nothing.

mod link;
mod port;
mod whole;

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;
use std::time::SystemTime;

use serde_json::Value;

use crate::event::{About, Event, Kind};
use fabric_observation::Observation;
use ib_fabric::change;
use ib_fabric::change::FabricChange;
use ib_fabric::topology::{End, Link, LinkId};
use ib_fabric::{Fabric, Snapshot};
use ib_health::Findings;
use ib_mad::Moment;

use link::LinkMemory;
use port::{PortMemory, Root};
use whole::Whole;

/// What is remembered of a fabric from one observation to the next.
#[derive(Debug, Default)]
pub struct Story {
    fabric: Arc<Fabric>,
    /// It is of the devices of a host, which nobody finds by their cables.
    is_of_host: bool,
    begun: bool,
    whole: Whole,
    links: Vec<(Link, LinkMemory)>,
    nodes: Vec<bool>,
    ports: Vec<PortMemory>,
    roots: BTreeMap<End, Root>,
}

impl Story {
    /// That of a host's own devices.
    pub fn of_host() -> Self {
        Story { is_of_host: true, ..Story::default() }
    }

    /// What happened since the observation before; the first one is what others are told against.
    /// `now` is what the wall says.
    pub fn follow(&mut self, seen: &Observation, now: SystemTime) -> Vec<Event> {
        let Some(snapshot) = &seen.snapshot else { return Vec::new() };
        let told = self.whole.follow(seen, snapshot, now);
        // What cannot be asked has not changed, as far as anybody knows.
        if self.whole.is_failing() {
            return told;
        }
        let mut look = Look { snapshot, findings: &seen.findings, told };
        if !Arc::ptr_eq(&self.fabric, &snapshot.fabric) {
            self.follow_fabric(&mut look);
        }
        self.follow_nodes(&mut look);
        self.follow_links(&mut look);
        self.follow_ports(&mut look);
        self.follow_reading(&mut look);
        self.follow_roots(&mut look);
        self.begun = true;
        look.told
    }

    /// Brings what is remembered to the places that things have in another fabric.
    fn follow_fabric(&mut self, look: &mut Look) {
        let (old, new) = (Arc::clone(&self.fabric), Arc::clone(&look.snapshot.fabric));
        let known: HashMap<LinkId, LinkMemory> = (self.links.drain(..))
            .filter_map(|(link, memory)| Some((old.link_id(link.0)?, memory)))
            .collect();
        let began = look.snapshot.began;
        if self.begun {
            for change in change::diff(&old, &new) {
                match change {
                    FabricChange::LinkMoved { port, from, to } => {
                        let text = format!("its cable led to {from}, and leads to {to}");
                        let place = format!("{} port {}", port.node, port.port);
                        let about = About::Port(port.guid, port.port);
                        look.tell(Kind::PortMoved, about, place, text, began);
                    }
                    FabricChange::LinkAppeared(a, b) => {
                        let port = new.find((a.guid, a.port));
                        let id = port.and_then(|port| new.link_id(port));
                        if let Some(id) = id.filter(|id| !known.contains_key(id)) {
                            let place =
                                format!("{} port {} – {} port {}", a.node, a.port, b.node, b.port);
                            look.tell(
                                Kind::LinkNew,
                                About::Link(id),
                                place,
                                "it was not there before".into(),
                                began,
                            );
                        }
                    }
                    _ => {}
                }
            }
        }
        self.links = look
            .findings
            .links
            .iter()
            .map(|found| {
                let known = new.link_id(found.link.0).and_then(|id| known.get(&id).copied());
                (found.link, known.unwrap_or_else(|| LinkMemory::new(found, !self.begun)))
            })
            .collect();
        let place = |end: End| old.find(end).map(|port| port.0 as usize);
        let ports = new.port_indexes().zip(&look.findings.ports);
        self.ports = ports
            .map(|(port, found)| {
                let known = place(new.end(port)).and_then(|place| self.ports.get(place).copied());
                known.unwrap_or_else(|| PortMemory::new(&found.counting))
            })
            .collect();
        let nodes = std::mem::take(&mut self.nodes);
        for index in new.node_indexes() {
            let node = new.node(index);
            let guid = node.identity.guid;
            let known = old.node_by_guid(guid).and_then(|old| nodes.get(old.0 as usize).copied());
            if known.is_none() && self.begun {
                let kind = if self.is_of_host { "device" } else { node.identity.kind.label() };
                let text = format!("a {kind} that was not there before");
                look.tell(Kind::NodeNew, About::Node(guid), node.name.clone(), text, began);
            }
            self.nodes.push(known.unwrap_or_else(|| look.snapshot.is_up(index)));
        }
        self.fabric = new;
    }

    fn follow_nodes(&mut self, look: &mut Look) {
        let fabric = &self.fabric;
        for (index, was_up) in fabric.node_indexes().zip(&mut self.nodes) {
            let is_up = look.snapshot.is_up(index);
            if is_up == std::mem::replace(was_up, is_up) {
                continue;
            }
            let node = fabric.node(index);
            let (kind, text) = match (is_up, node.present()) {
                (true, _) => (Kind::NodeBack, "it answers again"),
                (false, true) => (Kind::NodeGone, "it does not answer"),
                (false, false) if self.is_of_host => {
                    (Kind::NodeGone, "the kernel does not know it any more")
                }
                (false, false) => (Kind::NodeGone, "no cable leads to it any more"),
            };
            let about = About::Node(node.identity.guid);
            look.tell(kind, about, node.name.clone(), text.into(), look.snapshot.began);
        }
    }

    fn follow_links(&mut self, look: &mut Look) {
        let findings = look.findings;
        for ((_, memory), found) in self.links.iter_mut().zip(&findings.links) {
            look.link(memory, found);
        }
    }
}

/// An observation, and what it tells.
struct Look<'a> {
    snapshot: &'a Snapshot,
    findings: &'a Findings,
    told: Vec<Event>,
}

impl Look<'_> {
    fn tell(&mut self, kind: Kind, about: About, place: String, text: String, at: Moment) {
        let at = self.snapshot.anchor.wall_of(at);
        self.told.push(Event { at, kind, about, place, text, detail: Value::Null });
    }

    /// Says what was told last for programs, too.
    fn detail(&mut self, detail: Value) {
        if let Some(last) = self.told.last_mut() {
            last.detail = detail;
        }
    }
}

#[cfg(test)]
mod tests;
