//! What is due of a device: by the age of what it reported, and by its links.

use std::collections::VecDeque;
use std::time::Duration;

use ib_mad::m_key::MKeys;
use ib_mad::port_state::PortState;
use ib_mad::register::{RegisterQuery, Temperatures};
use ib_mad::vendor::GeneralInfo;
use ib_mad::{Guid, Moment, PortKey};

use super::device::Device;
use super::item::Item;
use crate::collect::agent_cache::m_key_of;
use crate::collect::take_turns;
use crate::hardware::{Hardware, NodeHardware};
use crate::{NodeIndex, PortIndex, Snapshot};

/// How often each tier is read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RegisterIntervals {
    /// The physical layer of ports.
    pub physical: Duration,
    /// The modules of ports.
    pub module: Duration,
    /// Devices: uptime, temperatures and fans.
    pub environment: Duration,
    /// Whether histograms of FEC are read with the physical layer, and errors by lane are of interest.
    pub lanes: bool,
}

impl Default for RegisterIntervals {
    fn default() -> Self {
        let [physical, module, environment] = [60, 600, 60].map(Duration::from_secs);
        RegisterIntervals { physical, module, environment, lanes: false }
    }
}

/// What decides which requests are due.
#[derive(Clone, Copy)]
pub(super) struct Schedule<'a> {
    pub intervals: &'a RegisterIntervals,
    /// The VSKeys of devices.
    pub keys: &'a MKeys,
    /// What was reported so far.
    pub hardware: &'a Hardware,
    pub snapshot: &'a Snapshot,
    pub now: Moment,
}

/// The requests to a device that are due.
pub(super) fn of_device(
    schedule: Schedule<'_>,
    node: NodeIndex,
    device: Option<&Device>,
) -> VecDeque<Item> {
    let fabric = &schedule.snapshot.fabric;
    let guid = fabric.node(node).identity.guid;
    let known = schedule.hardware.node(guid);
    let mut due = Due { schedule, device, guid, items: VecDeque::new() };
    let ports = || fabric.ports_of(node).filter(|port| fabric.lid_of(*port).is_some());
    let Some(agent) = ports().next() else { return due.items };
    let general = known.and_then(|known| known.general);
    if due.is_environment(general.map(|read| read.at)) {
        due.push(agent, None);
    }
    if !general.is_some_and(|read| read.value.has(GeneralInfo::ACCESS_REGISTER)) {
        return due.items;
    }
    let temperature = known.and_then(|known| known.temperature);
    if due.is_environment(temperature.map(|read| read.at)) {
        due.push(agent, Some(RegisterQuery::Temperature(0)));
    }
    let external = || ports().filter(|port| fabric.port(*port).number != 0);
    if let Some(known) = known.filter(|_| fabric.node(node).is_switch()) {
        due.push_switch(agent, known, external().count());
    }
    external().for_each(|port| due.push_port(port));
    due.items
}

struct Due<'a> {
    schedule: Schedule<'a>,
    device: Option<&'a Device>,
    guid: Guid,
    items: VecDeque<Item>,
}

impl Due<'_> {
    fn push(&mut self, port: PortIndex, what: Option<RegisterQuery>) {
        let Schedule { keys, snapshot, now, .. } = self.schedule;
        let fabric = &snapshot.fabric;
        let Some(lid) = fabric.lid_of(port) else { return };
        if self.device.is_none_or(|device| device.may_be_asked(what, now)) {
            let key = m_key_of(keys, fabric, port);
            // Requests of other registers ignore it.
            let link_downs = snapshot.link_downs(port).unwrap_or(0);
            self.items.push_back(Item { guid: self.guid, lid, what, link_downs, key });
        }
    }

    fn is_environment(&self, last: Option<Moment>) -> bool {
        take_turns(
            PortKey::new(self.guid, 0),
            self.schedule.intervals.environment,
            last,
            self.schedule.now,
        )
    }

    fn push_switch(&mut self, agent: PortIndex, known: &NodeHardware, ports: usize) {
        if self.is_environment(known.fans.map(|read| read.at)) {
            self.push(agent, Some(RegisterQuery::Fans));
        }
        let present = known.fans.map_or(0, |read| read.value.present);
        for fan in (0..16).filter(|fan| present >> fan & 1 == 1) {
            if self.is_environment(known.fan_speeds.get(&fan).map(|read| read.at)) {
                self.push(agent, Some(RegisterQuery::FanSpeed(fan)));
            }
        }
        if present != 0 && self.is_environment(known.fan_limits.map(|read| read.at)) {
            self.push(agent, Some(RegisterQuery::FanLimits));
        }
        let blocks = (Temperatures::MODULES..).step_by(Temperatures::MAX);
        for first in blocks.take(ports.div_ceil(Temperatures::MAX)) {
            let count = Temperatures::MAX as u8;
            let block = known.temperatures.range(first..first + u16::from(count)).next();
            // Modules without a temperature are asked for as often.
            let last = block.map(|(_, read)| read.at).or(known.general.map(|read| read.at));
            if self.is_environment(last) {
                self.push(agent, Some(RegisterQuery::Temperatures { first, count }));
            }
        }
        let supplies = known.power_supplies.as_ref().map(|read| read.at);
        if take_turns(
            PortKey::new(self.guid, 0),
            self.schedule.intervals.module,
            supplies,
            self.schedule.now,
        ) {
            self.push(agent, Some(RegisterQuery::PowerSupplies));
        }
    }

    fn push_port(&mut self, port: PortIndex) {
        let Schedule { intervals, hardware, snapshot, now, .. } = self.schedule;
        let fabric = &snapshot.fabric;
        let (end, number) = (fabric.port_key(port), fabric.port(port).number);
        let known = hardware.port(end);
        let downs = snapshot.link_downs(port);
        if downs.is_some_and(|downs| downs != known.map_or(0, |known| known.link_downs)) {
            self.push(port, Some(RegisterQuery::LinkDown(number)));
        }
        let is_due = |interval: Duration, last| take_turns(end, interval, last, now);
        let status = snapshot.status(port);
        if !status.is_some_and(|it| it.link_up() && it.state == PortState::Active) {
            let trouble = known.and_then(|known| known.trouble.as_ref()).map(|read| read.at);
            if fabric.port(port).peer.is_some() && is_due(intervals.physical, trouble) {
                self.push(port, Some(RegisterQuery::Troubleshooting(number)));
            }
            return;
        }
        let physical = known.and_then(|known| known.physical.as_ref()).map(|read| read.at);
        if is_due(intervals.physical, physical) {
            self.push(port, Some(RegisterQuery::PhysicalStatistics(number)));
        }
        let histogram = known.and_then(|it| it.fec_histogram.as_ref()).map(|read| read.at);
        if intervals.lanes && is_due(intervals.physical, histogram) {
            self.push(port, Some(RegisterQuery::FecHistogram(number)));
        }
        let module = known.and_then(|known| known.module.as_ref());
        // What is out of its limits is read again soon: one reading is no evidence.
        let lanes = status.and_then(|it| it.width).map_or(0, |it| it.lanes().into());
        let is_suspect =
            module.is_some_and(|read| read.value.is_hot() || read.value.dark_lane(lanes).is_some());
        let interval = if is_suspect { intervals.physical } else { intervals.module };
        // After a link down it may be another one.
        let down_at = known.and_then(|known| known.link_down.as_ref()).map(|read| read.at);
        let last = module.map(|read| read.at).filter(|at| down_at.is_none_or(|down| down < *at));
        if is_due(interval, last) {
            self.push(port, Some(RegisterQuery::Module(number)));
        }
    }
}
