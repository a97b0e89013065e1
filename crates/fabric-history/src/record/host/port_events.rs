//! Events of the host's ports and devices, at the moments that the kernel reported.

use std::collections::{BTreeMap, HashMap};
use std::time::SystemTime;

use serde_json::Value;

use crate::event::{About, EventKind, NewEvent};
use fabric_observation::host::{HostPortEvents, PortEventCounts, PortKey};
use ib_fabric::Snapshot;
use ib_health::evidence;
use ib_mad::Guid;
use ib_mad::port_event::PortEventKind;
use ib_mad::rate::{Speed, Width};
use rdma_host::model::HostSnapshot;

use super::super::events::{active_rate, rate_change};

/// Detects events of all ports and devices of the host.
#[derive(Debug, Default)]
pub(super) struct HostEventDetector {
    last: BTreeMap<PortKey, LastState>,
}

/// A port, or a device, as it was last known.
#[derive(Clone, Copy, Debug, Default)]
struct LastState {
    up: Option<bool>,
    losses: u64,
    fatals: u64,
    rate: Option<(Width, Speed)>,
}

impl HostEventDetector {
    /// The events since the snapshot before. The first state of a port is the reference for later ones.
    pub(super) fn update(
        &mut self,
        tally: &HostPortEvents,
        look: &HostSnapshot,
        snapshot: &Snapshot,
    ) -> Vec<NewEvent> {
        let ids = by_name(snapshot);
        let mut events = Vec::new();
        let mut states = BTreeMap::new();
        for (place, now) in tally.iter() {
            let Some(&id) = ids.get(&*place.0) else { continue };
            let port = place.1.and_then(|number| snapshot.fabric.find((id, number)));
            let mut state = LastState {
                up: now.is_up(),
                losses: now.losses,
                fatals: now.get(PortEventKind::DeviceFatal).0,
                rate: port.and_then(|port| active_rate(snapshot, port)),
            };
            if let Some(last) = self.last.get(place) {
                state.up = state.up.or(last.up);
                state.rate = state.rate.or(last.rate);
                let (about, name) = match port {
                    Some(port) => {
                        let end = snapshot.fabric.end(port);
                        (About::from(end), evidence::port_label(snapshot, port))
                    }
                    None => (About::Node(id), place.0.to_string()),
                };
                let mut events = EventsOf { look, about, place: name, events: &mut events };
                if port.is_some() {
                    events.push_port(last, &state, now);
                } else if state.fatals > last.fatals {
                    events.push_fatal(now);
                }
            }
            states.insert(place.clone(), state);
        }
        self.last = states;
        events
    }
}

/// The devices by name; of several that had one name in turn, the one that is present.
fn by_name(snapshot: &Snapshot) -> HashMap<&str, Guid> {
    let mut nodes: Vec<_> = snapshot.fabric.nodes.iter().collect();
    nodes.sort_by_key(|node| node.present());
    nodes.into_iter().map(|node| (&*node.name, node.identity.guid)).collect()
}

/// The events of one port or device.
struct EventsOf<'a> {
    look: &'a HostSnapshot,
    about: About,
    place: String,
    events: &'a mut Vec<NewEvent>,
}

impl EventsOf<'_> {
    fn push(&mut self, kind: EventKind, text: String, at: SystemTime) {
        let (about, place) = (self.about, self.place.clone());
        self.events.push(NewEvent { at, kind, about, place, text, detail: Value::Null });
    }

    fn push_port(&mut self, was: &LastState, is: &LastState, tally: &PortEventCounts) {
        let wall = |moment| self.look.anchor.wall_of(moment);
        let lost = wall(tally.lost());
        // The kernel may have reported when the port became Active; otherwise only this snapshot's time is
        // known.
        let reported = tally.get(PortEventKind::PortActive).1.map(|reported| reported.moment);
        let back = wall(reported.filter(|at| *at > tally.lost()).unwrap_or(self.look.began));
        let seen = wall(self.look.began);
        if (was.up, is.up) == (Some(true), Some(false)) {
            self.push(EventKind::LinkDown, "it is not Active any more".into(), lost);
        }
        let losses = is.losses.saturating_sub(was.losses);
        if losses > 0 {
            let times = evidence::times(u32::try_from(losses).unwrap_or(u32::MAX));
            self.push(EventKind::Flap, format!("lost {times}; {} in all", is.losses), lost);
        }
        if (was.up, is.up) == (Some(false), Some(true)) {
            self.push(EventKind::LinkUp, "it is Active again".into(), back);
        }
        if let Some((was, is)) = was.rate.zip(is.rate).filter(|(was, is)| was != is) {
            self.push(EventKind::Rate, rate_change(was, is), seen);
        }
    }

    fn push_fatal(&mut self, tally: &PortEventCounts) {
        let at =
            tally.get(PortEventKind::DeviceFatal).1.map_or(self.look.anchor.wall, |at| at.wall);
        self.push(EventKind::DeviceFatal, "the device or its driver goes away".into(), at);
    }
}
