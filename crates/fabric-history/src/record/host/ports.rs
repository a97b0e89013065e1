//! What ports went through by the host's own account: whether they were Active, at which rate, and what
//! their devices told of themselves.

use std::collections::{BTreeMap, HashMap};
use std::time::SystemTime;

use serde_json::Value;

use crate::event::{About, Event, Kind};
use fabric_observation::host::{HostPortEvents, PortEventCounts, PortKey};
use ib_fabric::{PortIndex, Snapshot};
use ib_health::evidence;
use ib_mad::Guid;
use ib_mad::port_event::PortEventKind;
use ib_mad::rate::{Speed, Width};
use rdma_host::model::HostSnapshot;

/// What is remembered of all ports and devices.
#[derive(Debug, Default)]
pub(super) struct Ports {
    places: BTreeMap<PortKey, PlaceMemory>,
}

/// What is remembered of a port, or of a device.
#[derive(Clone, Copy, Debug, Default)]
struct PlaceMemory {
    up: Option<bool>,
    losses: u64,
    fatals: u64,
    rate: Option<(Width, Speed)>,
}

impl Ports {
    /// What happened since the look before; what is seen of a port for the first time is what others
    /// are told against.
    pub(super) fn follow(
        &mut self,
        tally: &HostPortEvents,
        look: &HostSnapshot,
        snapshot: &Snapshot,
    ) -> Vec<Event> {
        let ids = by_name(snapshot);
        let mut told = Vec::new();
        let mut places = BTreeMap::new();
        for (place, now) in tally.iter() {
            let Some(&id) = ids.get(&*place.0) else { continue };
            let port = place.1.and_then(|number| snapshot.fabric.find((id, number)));
            let rate = port.and_then(|port| rate(snapshot, port));
            let known = self.places.get(place);
            let mut memory = PlaceMemory {
                up: now.is_up(),
                losses: now.losses,
                fatals: now.get(PortEventKind::DeviceFatal).0,
                rate,
            };
            if let Some(known) = known {
                memory.up = memory.up.or(known.up);
                memory.rate = memory.rate.or(known.rate);
                let (about, name) = match port {
                    Some(port) => {
                        let end = snapshot.fabric.end(port);
                        (About::from(end), evidence::port_label(snapshot, port))
                    }
                    None => (About::Node(id), place.0.to_string()),
                };
                let mut teller = Teller { look, about, place: name, told: &mut told };
                if port.is_some() {
                    teller.port(known, &memory, now);
                } else if memory.fatals > known.fatals {
                    teller.fatal(now);
                }
            }
            places.insert(place.clone(), memory);
        }
        self.places = places;
        told
    }
}

/// The devices by their names; of those that had the same one after another, the one that is there.
fn by_name(snapshot: &Snapshot) -> HashMap<&str, Guid> {
    let mut nodes: Vec<_> = snapshot.fabric.nodes.iter().collect();
    nodes.sort_by_key(|node| node.present());
    nodes.into_iter().map(|node| (&*node.name, node.identity.guid)).collect()
}

fn rate(snapshot: &Snapshot, port: PortIndex) -> Option<(Width, Speed)> {
    let status = snapshot.status(port).filter(|status| status.link_up())?;
    status.width.zip(status.speed)
}

/// Tells what happened to one of them.
struct Teller<'a> {
    look: &'a HostSnapshot,
    about: About,
    place: String,
    told: &'a mut Vec<Event>,
}

impl Teller<'_> {
    fn tell(&mut self, kind: Kind, text: String, at: SystemTime) {
        let (about, place) = (self.about, self.place.clone());
        self.told.push(Event { at, kind, about, place, text, detail: Value::Null });
    }

    fn port(&mut self, was: &PlaceMemory, is: &PlaceMemory, tally: &PortEventCounts) {
        let wall = |moment| self.look.anchor.wall_of(moment);
        let lost = wall(tally.lost());
        // The port itself may have told when it came back; otherwise this look found it.
        let told_up = tally.get(PortEventKind::PortActive).1.map(|told| told.moment);
        let back = wall(told_up.filter(|at| *at > tally.lost()).unwrap_or(self.look.began));
        let seen = wall(self.look.began);
        if (was.up, is.up) == (Some(true), Some(false)) {
            self.tell(Kind::LinkDown, "it is not Active any more".into(), lost);
        }
        let lost_since = is.losses.saturating_sub(was.losses);
        if lost_since > 0 {
            let times = evidence::times(u32::try_from(lost_since).unwrap_or(u32::MAX));
            self.tell(Kind::Flap, format!("lost {times}; {} in all", is.losses), lost);
        }
        if (was.up, is.up) == (Some(false), Some(true)) {
            self.tell(Kind::LinkUp, "it is Active again".into(), back);
        }
        if let Some((was, is)) = was.rate.zip(is.rate).filter(|(was, is)| was != is) {
            let name =
                |(width, speed): (Width, Speed)| format!("{} {}", width.label(), speed.label());
            self.tell(Kind::Rate, format!("{} -> {}", name(was), name(is)), seen);
        }
    }

    fn fatal(&mut self, tally: &PortEventCounts) {
        let at =
            tally.get(PortEventKind::DeviceFatal).1.map_or(self.look.anchor.wall, |at| at.wall);
        self.tell(Kind::DeviceFatal, "the device or its driver goes away".into(), at);
    }
}
