//! Events of what devices report of ports: why a link went down, and which cable or module a port has.

use std::time::{Duration, UNIX_EPOCH};

use serde_json::json;

use crate::cable_life::SeenAt;
use crate::event::{About, EventKind};
use crate::model::time;
use crate::record::events::links::link_label;
use crate::record::events::ports::{LastPort, LastPorts};
use crate::record::events::sweep::Sweep;
use crate::record::module_places::{self, ModulePlaces, Place, Serial, unix_seconds};
use ib_fabric::aggregated_links::AggregatedLink;
use ib_fabric::hardware::PortHardware;
use ib_fabric::{Fabric, PortIndex};
use ib_mad::port_state::PortStatus;
use ib_mad::register::text;
use ib_mad::{Moment, PortKey};

/// Ports of one device that reported one serial number within so many seconds have one module: OSFP modules have two
/// ports (a public dump of 272 nodes has 123). No technician moves a cable in that time.
const TWINS: u32 = 120;

/// What devices have reported of their ports.
#[derive(Debug, Default)]
pub struct DeviceReports {
    /// Where cables and modules were seen.
    pub places: ModulePlaces,
    /// What was reported until then has been handled.
    handled_until: Moment,
}

impl DeviceReports {
    pub(super) fn update(&mut self, ports: &mut LastPorts, sweep: &mut Sweep) {
        let snapshot = sweep.snapshot;
        let since = std::mem::replace(&mut self.handled_until, snapshot.ended);
        // Most ports were not read since: each has its turn within an interval.
        for (end, port) in snapshot.hardware.ports() {
            let is_cable_new = port.module.as_ref().is_some_and(|read| read.at > since);
            let is_reason_new = port.link_down.as_ref().is_some_and(|read| read.at > since);
            if !is_cable_new && !is_reason_new {
                continue;
            }
            let Some(index) = snapshot.fabric.find(end) else { continue };
            update_link_down(sweep, index, port, &mut ports.ports[index]);
            if is_cable_new {
                self.update_cable(sweep, end, index, port);
            } else {
                // It may be pulled: its place until the link is up again is not known.
                self.places.leave(end);
            }
        }
        self.places.forget_former();
    }

    fn update_cable(
        &mut self,
        sweep: &mut Sweep,
        end: PortKey,
        index: PortIndex,
        port: &PortHardware,
    ) {
        let Some((module, read)) = port.plugged().zip(port.module.as_ref()) else { return };
        let Some(serial) = module_places::serial(&module.serial_number) else { return };
        let wall = sweep.snapshot.anchor.wall_of(read.at);
        let before = self.places.of(serial);
        let is_known = before.iter().any(|place| place.end == end);
        let now = unix_seconds(wall);
        let moved = if is_known { None } else { earlier(before, sweep, index, serial, now) };
        let was = self.places.enter(end, serial, now).filter(|was| *was != serial);
        let is_new = was.is_some() || moved.is_some();
        if !is_new || !is_first_plane(&sweep.snapshot.fabric, index) {
            return;
        }
        let part_number = text(&module.part_number);
        let (serial, was) = (text(&serial), was.map(|was| text(&was)));
        let detail = json!({
            "serial": serial, "part": part_number, "was_serial": was,
            "seen_at": moved.as_ref().map(|moved| &moved.ports),
            "seen_until": moved.as_ref().map(Earlier::until),
        });
        let was = was.map_or_else(String::new, |was| format!(" instead of {was}"));
        let moved = moved.map_or_else(String::new, |moved| format!(", {}", moved.text()));
        let says = format!("serial number {serial} (part number {part_number}){was}{moved}");
        let (kind, place) = (EventKind::CableChanged, sweep.snapshot.fabric.port_label(index));
        sweep.push_detailed(kind, end.into(), place, says, read.at, detail);
    }
}

/// Whether a port is the one for which the cable of its link is told: each plane reports the same one.
fn is_first_plane(fabric: &Fabric, port: PortIndex) -> bool {
    fabric.aggregated_link(port).is_none_or(|link| link.lead().ports().contains(&port))
}

/// Where a cable was before.
struct Earlier {
    ports: Vec<SeenAt>,
    /// In seconds since 1970.
    until: u32,
}

impl Earlier {
    fn until(&self) -> String {
        time::text(UNIX_EPOCH + Duration::from_secs(self.until.into()))
    }

    /// `seen at leaf-3 port 7 until …`.
    fn text(&self) -> String {
        let names: Vec<&str> = self.ports.iter().map(|port| &*port.place).collect();
        format!("seen at {} until {}", names.join(" and "), self.until())
    }
}

/// What had happened before a port was first read is no event.
fn update_link_down(sweep: &mut Sweep, index: PortIndex, port: &PortHardware, last: &mut LastPort) {
    let Some((read, known)) = port.link_down.as_ref().zip(last.link_downs.as_mut()) else { return };
    if port.link_downs <= *known {
        return;
    }
    *known = port.link_downs;
    if let Some(reason) = read.value.describe() {
        let fabric = &sweep.snapshot.fabric;
        let port = fabric.port_label(index);
        // The port of a plane is told in the link's events, which have its place.
        let whole = fabric.aggregated_link(index).map(AggregatedLink::lead);
        let (about, place, text) = match whole.zip(fabric.link_id(index)) {
            Some((lead, id)) => {
                (About::Link(id), link_label(fabric, lead), format!("{port}: {reason}"))
            }
            None => (fabric.port_key(index).into(), port, reason),
        };
        sweep.push(EventKind::LinkDownReason, about, place, text, read.at);
    }
}

/// Where a cable was before it was plugged into a port. Its other end is no other place, and neither is a port
/// that still has it: ports of one module or split cable report one serial number.
fn earlier(
    places: &[Place],
    sweep: &Sweep,
    port: PortIndex,
    serial: Serial,
    now: u32,
) -> Option<Earlier> {
    let (fabric, hardware) = (&sweep.snapshot.fabric, &sweep.snapshot.hardware);
    let peer = fabric.port(port).peer.map(|peer| fabric.port_key(peer.port));
    let reports_it = |of: PortKey| {
        let module = hardware.port(of).and_then(PortHardware::plugged);
        module.and_then(|module| module_places::serial(&module.serial_number)) == Some(serial)
    };
    let still_has_it = |of: &PortKey| {
        let is_up = fabric.find(*of).and_then(|it| sweep.snapshot.status(it));
        let reported = hardware.port(*of);
        // What was read before a link down may be gone.
        let is_current = |it: &&PortHardware| {
            let down = it.link_down.as_ref().map(|read| read.at);
            it.module.as_ref().map(|read| read.at) >= down
        };
        is_up.is_some_and(PortStatus::link_up)
            && reported.is_some_and(|it| is_current(&it))
            && reports_it(*of)
    };
    // Also without a link: the ports of a module are read one after the other, and both were a moment ago.
    let guid = fabric.port_key(port).guid;
    let is_twin = |it: &Place| {
        it.end.guid == guid && now.saturating_sub(it.until) < TWINS && reports_it(it.end)
    };
    let whole = fabric.aggregated_links.place_of(port);
    let is_plane = |of: PortKey| {
        whole.is_some()
            && whole == fabric.find(of).and_then(|it| fabric.aggregated_links.place_of(it))
    };
    let is_elsewhere = |it: &&Place| {
        let is_its = Some(it.end) == peer || is_plane(it.end);
        !is_its && !still_has_it(&it.end) && !is_twin(it)
    };
    let elsewhere = || places.iter().filter(is_elsewhere);
    let seen = |place: &Place| {
        let place_of = fabric.find(place.end).map(|port| sweep.snapshot.fabric.port_label(port))?;
        let PortKey { guid, number: port } = place.end;
        Some(SeenAt { place: place_of, guid, port })
    };
    let ports: Vec<SeenAt> = elsewhere().filter_map(seen).collect();
    let until = elsewhere().map(|place| place.until).max().filter(|_| !ports.is_empty())?;
    Some(Earlier { ports, until })
}
