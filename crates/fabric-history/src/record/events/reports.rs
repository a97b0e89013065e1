//! Events of what devices report of ports: why a link went down, and which cable or module a port has.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use std::time::SystemTime;

use crate::event::EventKind;
use crate::model::time;
use crate::record::events::Sweep;
use crate::record::events::ports::LastPort;
use ib_fabric::hardware::PortHardware;
use ib_fabric::topology::End;
use ib_fabric::{Fabric, PortIndex};
use ib_health::evidence::port_label;
use ib_mad::Moment;
use ib_mad::port_state::PortStatus;
use ib_mad::register::text;

/// How many earlier places of a cable are known.
const MAX_PLACES: usize = 4;

/// How many serial numbers are known besides those of all ports: a device may report another one each time.
const MAX_FORMER: usize = 10_000;

/// What was reported until now.
#[derive(Debug, Default)]
pub(super) struct LastReports {
    /// Reports until then were handled.
    until: Moment,
    /// The serial number of each port's cable or module.
    serials: HashMap<End, Arc<str>>,
    /// Where a serial number was seen, and until when.
    places: HashMap<Arc<str>, Places>,
}

/// Few: the two ends of a cable, in nearly all cases.
type Places = Vec<(End, SystemTime)>;

impl LastReports {
    pub(super) fn update(&mut self, sweep: &mut Sweep, ports: &mut [LastPort]) {
        let hardware = Arc::clone(&sweep.snapshot.hardware);
        let since = std::mem::replace(&mut self.until, sweep.snapshot.ended);
        // Most ports were not read since: each has its turn within an interval.
        for (end, port) in &hardware.ports {
            let is_cable_new = port.module.as_ref().is_some_and(|read| read.at > since);
            let is_reason_new = port.link_down.as_ref().is_some_and(|read| read.at > since);
            if !is_cable_new && !is_reason_new {
                continue;
            }
            let Some(index) = sweep.snapshot.fabric.find(*end) else { continue };
            update_link_down(sweep, *end, index, port, &mut ports[index.0 as usize]);
            if is_cable_new {
                self.update_cable(sweep, *end, index, port);
            }
        }
        self.forget_former();
    }

    /// The fabric has other ports.
    pub(super) fn forget_absent(&mut self, fabric: &Fabric) {
        self.serials.retain(|end, _| fabric.find(*end).is_some());
    }

    /// Forgets the places of former cables, once there are too many.
    fn forget_former(&mut self) {
        if self.places.len() > self.serials.len() + MAX_FORMER {
            let current: HashSet<&Arc<str>> = self.serials.values().collect();
            self.places.retain(|serial, _| current.contains(serial));
        }
    }

    fn update_cable(&mut self, sweep: &mut Sweep, end: End, index: PortIndex, port: &PortHardware) {
        let Some((module, read)) = port.plugged().zip(port.module.as_ref()) else { return };
        let text_of = text(&module.serial_number);
        if text_of.is_empty() {
            return;
        }
        let known = self.places.get_key_value(&*text_of).map(|(serial, _)| Arc::clone(serial));
        let serial = known.unwrap_or_else(|| text_of.into());
        let was = self.serials.insert(end, Arc::clone(&serial)).filter(|was| *was != serial);
        let places = self.places.entry(Arc::clone(&serial)).or_default();
        let place = places.iter().position(|(of, _)| *of == end);
        let moved = if place.is_some() { None } else { earlier(places, sweep, index, &serial) };
        let wall = sweep.snapshot.anchor.wall_of(read.at);
        if let Some((_, until)) = place.and_then(|place| places.get_mut(place)) {
            *until = wall;
        } else {
            places.reserve_exact(1);
            places.push((end, wall));
        }
        if places.len() > MAX_PLACES
            && let Some(oldest) = (0..places.len()).min_by_key(|place| places[*place].1)
        {
            places.remove(oldest);
        }
        if was.is_none() && moved.is_none() {
            return;
        }
        let number = text(&module.part_number);
        let was = was.map_or_else(String::new, |was| format!(" instead of {was}"));
        let moved = moved.unwrap_or_default();
        let says = format!("serial number {serial} (part number {number}){was}{moved}");
        let place = port_label(sweep.snapshot, index);
        sweep.push(EventKind::CableChanged, end.into(), place, says, read.at);
    }
}

/// What had happened before a port was first read is no event.
fn update_link_down(
    sweep: &mut Sweep,
    end: End,
    index: PortIndex,
    port: &PortHardware,
    last: &mut LastPort,
) {
    let Some((read, known)) = port.link_down.as_ref().zip(last.link_downs.as_mut()) else { return };
    if port.link_downs <= *known {
        return;
    }
    *known = port.link_downs;
    if let Some(reason) = read.value.describe() {
        let place = port_label(sweep.snapshot, index);
        sweep.push(EventKind::LinkDownReason, end.into(), place, reason, read.at);
    }
}

/// Where a cable was before it was plugged into a port: `, seen at leaf-3 port 7 until …`. Its other end is no other
/// place, and neither is a port that still has it: ports of one module or split cable report one serial number.
fn earlier(places: &Places, sweep: &Sweep, port: PortIndex, serial: &str) -> Option<String> {
    let (fabric, hardware) = (&sweep.snapshot.fabric, &sweep.snapshot.hardware);
    let peer = fabric.port(port).peer.map(|peer| fabric.end(peer.port));
    let still_has_it = |of: &End| {
        let is_up = fabric.find(*of).and_then(|it| sweep.snapshot.status(it));
        let reported = hardware.port(*of);
        // What was read before a link down may be gone.
        let is_current = |it: &&PortHardware| {
            let down = it.link_down.as_ref().map(|read| read.at);
            it.module.as_ref().map(|read| read.at) >= down
        };
        let module = reported.filter(is_current).and_then(PortHardware::plugged);
        is_up.is_some_and(PortStatus::link_up)
            && module.is_some_and(|module| text(&module.serial_number) == serial)
    };
    let elsewhere = || places.iter().filter(|(of, _)| Some(*of) != peer && !still_has_it(of));
    let until = elsewhere().map(|(_, until)| *until).max()?;
    let names: Vec<String> = elsewhere()
        .filter_map(|(of, _)| fabric.find(*of))
        .map(|port| port_label(sweep.snapshot, port))
        .collect();
    Some(format!(", seen at {} until {}", names.join(" and "), time::text(until)))
}
