//! A simulated host: its devices as the kernel shows them, minute by minute.

use std::sync::Arc;
use std::time::{Duration, SystemTime};

use ib_mad::moment::Anchor;
use ib_mad::port_event::{PortEvent, PortEventKind};
use ib_mad::port_state::{PhysicalState, PortState};
use ib_mad::rate::{Speed, Width, bytes_per_second};
use ib_mad::{Counter, Guid, Lid, Moment, PortNumber};
use rdma_host::model::{
    Device, DeviceInfo, HostSnapshot, Netdev, Port, PortKind, ethernet, resolve_kinds,
};

use super::scrapes::Exporter;

/// Minutes since the start.
pub type Minute = u32;

/// A device of a host: its place among them, which stays when it is renamed or swapped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Slot(pub usize);

/// How a device appears in a reading.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Presence {
    Present,
    /// Not in the kernel.
    Absent,
    /// Reads of it do not end.
    Hanging,
    /// Reads of it end after those of the other devices are published: each reading has its values of a minute ago.
    Slow,
}

/// What decides the state of a port.
#[derive(Clone, Debug)]
pub struct Line {
    /// Whether a cable leads to a peer that is up: of each Ethernet interface of a bond, or of the port.
    pub cables: Vec<bool>,
    /// Whether an administrator has enabled it: the port of InfiniBand, the interface of Ethernet.
    pub is_enabled: bool,
    /// Whether a subnet manager has made it Active; for a virtual function, whether the hypervisor has.
    pub is_activated: bool,
    pub width: Width,
    speed: Speed,
}

/// A device, and what decides the states of its ports.
#[derive(Clone, Debug)]
pub struct SimDevice {
    pub device: Device,
    pub presence: Presence,
    /// One for each port.
    pub lines: Vec<Line>,
    /// The latest reading while it is slow.
    last: Option<Device>,
}

/// A number that grows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Value {
    Counter(Counter),
    /// The first of the driver's own counters that has this name.
    Hw(&'static str),
    /// A statistic of the driver of the port's first interface, as `ethtool -S` of mlx5 names it.
    Ethernet(&'static str),
}

/// How fast a number grows while its port is Active.
#[derive(Clone, Copy, Debug)]
struct Growth {
    slot: Slot,
    port: PortNumber,
    value: Value,
    per_minute: u64,
}

/// A host with an exporter.
pub struct SimHost {
    pub name: String,
    pub fabric: Arc<str>,
    pub devices: Vec<SimDevice>,
    growth: Vec<Growth>,
    /// Its exporter, while it runs.
    pub exporter: Option<Exporter>,
    /// Whether the scrape of this minute fails.
    pub scrape_fails: bool,
    /// Events of ports since the latest reading.
    events: Vec<(Slot, PortNumber, PortEventKind)>,
    next_inode: u64,
    /// The places of devices that their drivers have not made yet, or not any more, while the host boots or shuts down.
    pub hidden: Vec<Slot>,
}

/// The moment of a minute. Not the start of the clock, which stands for `never` in some places.
fn moment(minute: Minute) -> Moment {
    Moment::default() + Duration::from_secs(1_000 + u64::from(minute) * 60)
}

/// A minute on both clocks. Prometheus' unit tests begin in 1970.
fn anchor(minute: Minute) -> Anchor {
    let wall = SystemTime::UNIX_EPOCH + Duration::from_secs(u64::from(minute) * 60);
    Anchor { moment: moment(minute), wall }
}

impl SimHost {
    /// A host that is up.
    pub fn new(name: String, fabric: &str) -> Self {
        let exporter = Some(Exporter::start(fabric));
        SimHost {
            name,
            fabric: fabric.into(),
            devices: Vec::new(),
            growth: Vec::new(),
            exporter,
            scrape_fails: false,
            events: Vec::new(),
            next_inode: 100,
            hidden: Vec::new(),
        }
    }

    /// The target of its scrapes.
    pub fn instance(&self) -> String {
        format!("{}:10315", self.name)
    }

    /// Adds a device; its ports have cables and are Active, those of virtual devices and bridges by their line.
    pub fn add(&mut self, device: Device) -> Slot {
        let lines = device.ports.iter().map(|port| Line {
            // The bond itself has none.
            cables: vec![true; port.netdevs.iter().filter(|it| it.bond.is_some()).count().max(1)],
            is_enabled: true,
            is_activated: true,
            width: port.width.unwrap_or(Width::X4),
            speed: port.speed.unwrap_or(Speed::Ndr),
        });
        let lines = lines.collect();
        let slot = Slot(self.devices.len());
        self.devices.push(SimDevice { device, presence: Presence::Present, lines, last: None });
        self.renew(slot);
        slot
    }

    /// A device.
    pub fn at(&mut self, slot: Slot) -> &mut SimDevice {
        &mut self.devices[slot.0]
    }

    /// The line of a port of a device.
    pub fn line(&mut self, slot: Slot, port: PortNumber) -> &mut Line {
        let device = self.at(slot);
        let place = device.device.ports.iter().position(|it| it.number == port).unwrap();
        &mut device.lines[place]
    }

    /// Connects or removes the cable of a port, or those of all its interfaces.
    pub fn set_cable(&mut self, slot: Slot, port: PortNumber, is: bool) {
        self.line(slot, port).cables.fill(is);
    }

    /// Removes a device, or adds it again: with another directory, and counters that begin at 0.
    pub fn set_present(&mut self, slot: Slot, is: bool) {
        let was = self.at(slot).presence != Presence::Absent;
        self.at(slot).presence = if is { Presence::Present } else { Presence::Absent };
        if is && !was {
            self.renew(slot);
        }
    }

    /// Loads the driver of a device again: another directory, and counters that begin at 0.
    pub fn renew(&mut self, slot: Slot) {
        self.next_inode += 1;
        let inode = self.next_inode;
        let device = &mut self.at(slot).device;
        device.instance = Some(inode);
        for port in &mut device.ports {
            port.hw.values.fill(Some(0));
            for netdev in &mut port.netdevs {
                "down".clone_into(&mut netdev.operstate);
                netdev.carrier_changes = Some(0);
                netdev.ethernet.iter_mut().for_each(|it| it.value = 0);
            }
        }
        self.clear_counters(slot);
    }

    /// Sets the counters of the ports of a device to 0, as `perfquery -R` does.
    pub fn clear_counters(&mut self, slot: Slot) {
        for port in &mut self.at(slot).device.ports {
            for counter in ib_mad::counter::TABLE.iter().map(|row| row.counter) {
                if port.reading.get(counter).is_some() {
                    port.reading.set(counter, 0);
                    port.reading.saturated.set(counter, false);
                }
            }
        }
    }

    /// Gives a device another GUID, as that of another card has.
    pub fn set_guid(&mut self, slot: Slot, guid: Guid) {
        let info = &mut self.at(slot).device.info;
        let system_guid = Some(guid).filter(|_| info.system_guid.is_some());
        *info = Arc::new(DeviceInfo { guid: Some(guid), system_guid, ..(**info).clone() });
    }

    /// Adds to a number of a port.
    pub fn count(&mut self, slot: Slot, port: PortNumber, value: Value, amount: u64) {
        let ports = &mut self.at(slot).device.ports;
        let Some(port) = ports.iter_mut().find(|it| it.number == port) else { return };
        let number = match value {
            Value::Counter(counter) => {
                let now = port.reading.get(counter).unwrap();
                return port.reading.set(counter, now + amount);
            }
            Value::Hw(file) => {
                let place = port.hw.names.iter().position(|name| *name.file == *file);
                port.hw.values[place.unwrap()].as_mut().unwrap()
            }
            Value::Ethernet(string) => {
                let stat = ethernet::find("mlx5_core", string).unwrap();
                let values = &mut port.netdevs[0].ethernet;
                &mut values.iter_mut().find(|it| it.stat == stat).unwrap().value
            }
        };
        *number += amount;
    }

    /// Lets a number grow by so much each minute from now on.
    pub fn grow(&mut self, slot: Slot, port: PortNumber, value: Value, per_minute: u64) {
        self.growth.retain(|it| (it.slot, it.port, it.value) != (slot, port, value));
        if per_minute > 0 {
            self.growth.push(Growth { slot, port, value, per_minute });
        }
    }

    /// Loses the link of a port between two readings. Its driver reports events.
    pub fn flap_by_event(&mut self, slot: Slot, port: PortNumber) {
        for kind in [PortEventKind::PortError, PortEventKind::PortActive] {
            self.events.push((slot, port, kind));
        }
    }

    /// All places of devices.
    pub fn slots(&self) -> Vec<Slot> {
        (0..self.devices.len()).map(Slot).collect()
    }

    /// Ends the exporter, or starts another one.
    pub fn set_exporter(&mut self, runs: bool) {
        self.exporter = runs.then(|| Exporter::start(&self.fabric));
    }

    /// Reads the devices at a minute, and has the exporter add the reading.
    pub fn read(&mut self, minute: Minute) {
        for nth in 0..self.growth.len() {
            let Growth { slot, port, value, per_minute } = self.growth[nth];
            let device = self.at(slot);
            let is_active = |it: &Port| it.number == port && it.state == Some(PortState::Active);
            if device.presence != Presence::Absent && device.device.ports.iter().any(is_active) {
                self.count(slot, port, value, per_minute);
            }
        }
        let at = moment(minute);
        let hidden = &self.hidden;
        let shown = (self.devices.iter_mut().enumerate())
            .filter_map(|(slot, device)| device.read(at).filter(|_| !hidden.contains(&Slot(slot))));
        let mut devices: Vec<Device> = shown.collect();
        devices.sort_unstable_by(|a, b| a.name.cmp(&b.name));
        resolve_kinds(&mut devices);
        let anchor = anchor(minute);
        let events: Vec<PortEvent> = std::mem::take(&mut self.events)
            .into_iter()
            .map(|(slot, port, kind)| {
                let Device { name, info, .. } = &self.devices[slot.0].device;
                let at = Anchor { moment: anchor.moment.before(Duration::from_secs(20)), ..anchor };
                PortEvent { at, device: Arc::clone(name), guid: info.guid, port: Some(port), kind }
            })
            .collect();
        let Some(exporter) = &mut self.exporter else { return };
        let (began, ended) = (anchor.moment, anchor.moment);
        let snapshot = HostSnapshot { anchor, began, ended, devices, excluded: 0, problem: None };
        exporter.add(&events, snapshot);
    }
}

impl SimDevice {
    /// What a reading gets of the device.
    fn read(&mut self, at: Moment) -> Option<Device> {
        for (port, line) in self.device.ports.iter_mut().zip(&self.lines) {
            line.apply(port);
            (port.at, port.reading.at) = (at, at);
        }
        let now = self.device.clone();
        let is_slow = self.presence == Presence::Slow;
        let before = std::mem::replace(&mut self.last, is_slow.then(|| now.clone()));
        match self.presence {
            Presence::Present => Some(now),
            Presence::Absent => None,
            Presence::Hanging => Some(Device {
                is_readable: false,
                ports: Vec::new(),
                hw: rdma_host::model::HwReading::default(),
                ..now
            }),
            Presence::Slow => Some(before.unwrap_or(now)),
        }
    }
}

impl Line {
    /// Sets the state of a port, and those of its interfaces.
    fn apply(&self, port: &mut Port) {
        let is_ethernet = port.link_layer == "Ethernet";
        let has_link = self.is_enabled && self.cables.contains(&true);
        let (state, physical) = match (has_link, self.is_activated) {
            (true, true) => (PortState::Active, PhysicalState::LinkUp),
            (true, false) if port.kind == PortKind::VirtualFunction => {
                (PortState::Down, PhysicalState::LinkUp)
            }
            (true, false) => (PortState::Init, PhysicalState::LinkUp),
            (false, _) if is_ethernet || !self.is_enabled => {
                (PortState::Down, PhysicalState::Disabled)
            }
            (false, _) => (PortState::Down, PhysicalState::Polling),
        };
        let was_active = port.state == Some(PortState::Active);
        (port.state, port.physical_state) = (Some(state), Some(physical));
        if was_active && state == PortState::Down && !is_ethernet {
            // Drivers of Ethernet do not count it there.
            if let Some(count) = port.reading.get(Counter::LinkDowned) {
                port.reading.set(Counter::LinkDowned, count + 1);
            }
        }
        // Without a link the kernel has the lowest rate.
        let down = if is_ethernet { (Speed::Qdr, Width::X4) } else { (Speed::Sdr, Width::X4) };
        let (speed, width) = if has_link { (self.speed, self.width) } else { down };
        (port.speed, port.width) = (Some(speed), Some(width));
        port.rate = Some(bytes_per_second(width, speed));
        // A subnet manager gives it the LID, which it keeps.
        if !is_ethernet && port.lid.is_none() && state == PortState::Active {
            port.lid = Some(Lid(u16::from(port.number) + 16));
        }
        self.apply_to_netdevs(port, state == PortState::Active);
    }

    fn apply_to_netdevs(&self, port: &mut Port, is_active: bool) {
        let has_bond = port.netdevs.iter().any(|it| it.bond.is_some());
        let mut cables = self.cables.iter();
        for netdev in &mut port.netdevs {
            let follows_port = netdev.ipoib.is_some() || has_bond && netdev.bond.is_none();
            let has_carrier =
                if follows_port { is_active } else { self.is_enabled && *cables.next().unwrap() };
            let is_up = netdev.ipoib.is_some() || self.is_enabled;
            set_carrier(netdev, is_up, has_carrier);
        }
    }
}

fn set_carrier(netdev: &mut Netdev, is_admin_up: bool, has_carrier: bool) {
    let had = netdev.operstate == "up";
    netdev.is_admin_up = Some(is_admin_up);
    netdev.carrier = is_admin_up.then_some(has_carrier);
    if has_carrier { "up" } else { "down" }.clone_into(&mut netdev.operstate);
    if had != has_carrier {
        netdev.carrier_changes = netdev.carrier_changes.map(|count| count + 1);
    }
}
