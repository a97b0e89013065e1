//! Reads the vendor class: GeneralInfo of each NVIDIA device, and registers of those that announce them.
//!
//! Each tier has its interval; within it, ports and devices take turns, so that no run reads all of them. What a
//! device does not support is not requested again while the device stays. A timeout ends the requests to its device
//! in a run. What did not respond twice in a row is paused for a time that doubles, because module pages are read over
//! a slow bus and firmware may hang on it, and its reports are dropped: one port, then all ports, then the device.
//! Nothing here says whether a node is up.
//!
//! A register names no device either, so what a run reads counts once the next sweep has found that LIDs are the same.
//!
//! Devices that a VSKey protects drop each request, and may send a trap for it. So devices that have not responded yet
//! are asked a few at a time; once more of them are silent than respond, a VSKey is suspected, and the whole fabric
//! gets three probes a minute.

mod device;
mod due;
mod item;

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use ib_mad::m_key::MKeys;
use ib_mad::node::NodeKind;
use ib_mad::register::{
    FanLimits, FanSpeed, Fans, FecHistogram, LinkDown, Module, PhysicalStatistics, PowerSupplies,
    RegisterQuery, Temperature, Temperatures, Troubleshooting, celsius,
};
use ib_mad::vendor::{self, GeneralInfo};
use ib_mad::{Guid, Mad, Moment, PortKey};
use ib_umad::client::SendConfig;
use ib_umad::plan::QueryPlan;
use ib_umad::{Address, QueuePair, Request, RequestError};

use super::throttle::ThrottledQueue;
use super::unresponsive::MAX_SILENT;
use super::{Outcome, has_responded};
use crate::hardware::{Hardware, ReadAt};
use crate::{Fabric, Snapshot};
use device::Device;
pub use due::RegisterIntervals;
use due::Schedule;
use item::Item;

/// Maximum excess of requests without a response over those with one in a run, of devices that respond and of others.
/// So many silent devices suggest a VSKey, unless as many respond.
const MAX_SILENT_DEVICES: usize = 32;
/// How often a few devices are probed while a VSKey is suspected.
const PROBE_INTERVAL: Duration = Duration::from_secs(60);

/// The deadline of a request: firmware reads some pages over the module's I2C bus. ibdiagnet has 500 ms and more for
/// these; mstflint several seconds.
const TIMEOUT: Duration = Duration::from_secs(2);
/// No request is sent so shortly before the next sweep, which would wait for it. The client waits 0.1 s longer than the
/// timeout.
const LEAD: Duration = Duration::from_millis(2_100);

/// The limits of requests: one at a time to each device, and no retries: they would delay the next sweep, and what is
/// due is requested again after it. The time-out of other requests does not matter for the same reason.
pub fn send_config(pace: SendConfig) -> SendConfig {
    SendConfig { gmp_lid_window: 1, timeout: TIMEOUT, retries: 0, ..pace }
}

/// What is known of the devices, kept from run to run.
#[derive(Debug)]
pub struct RegisterReader {
    intervals: RegisterIntervals,
    devices: HashMap<Guid, Device>,
    /// The VSKeys of devices.
    keys: MKeys,
    /// While a VSKey is suspected no device is probed before this moment.
    next_probes: Moment,
    /// The latest reports, of runs that a sweep confirmed.
    pub hardware: Arc<Hardware>,
    /// The latest run, until a sweep confirms it.
    staged: Option<StagedRun>,
}

/// What a run read by the LIDs that a fabric had.
#[derive(Debug)]
struct StagedRun {
    fabric: Arc<Fabric>,
    hardware: Arc<Hardware>,
    /// Devices that refused something for good, perhaps others than those meant.
    refused: Vec<Guid>,
}

impl RegisterReader {
    /// A reader that has read nothing yet.
    pub fn new(intervals: RegisterIntervals) -> Self {
        RegisterReader {
            intervals,
            devices: HashMap::new(),
            keys: MKeys::default(),
            next_probes: Moment::default(),
            hardware: Arc::new(Hardware { has_lanes: intervals.lanes, ..Hardware::default() }),
            staged: None,
        }
    }

    /// Sets the VSKeys of devices. Devices that were left alone are queried again: they may accept the new key.
    pub fn set_keys(&mut self, keys: MKeys) {
        if !keys.has_same_keys(&self.keys) {
            self.devices.clear();
            self.next_probes = Moment::default();
        }
        self.keys = keys;
    }

    /// Whether there are VSKeys.
    pub fn has_keys(&self) -> bool {
        !self.keys.is_empty()
    }

    /// Whether so many devices do not respond, and fewer do, that a VSKey is the likely cause.
    pub fn is_vs_key_suspected(&self) -> bool {
        let count = |responds: bool| {
            self.devices.values().filter(|device| device.responds == Some(responds)).count()
        };
        let silent = count(false);
        silent >= MAX_SILENT_DEVICES && count(true) < silent
    }

    /// A run over what is due now, which ends by `until`, when the next sweep is due. Only if less than twice
    /// the deadline of a request is left may it take longer, or nothing would ever be read.
    pub fn begin(&mut self, snapshot: &Snapshot, now: Moment, until: Moment) -> RegisterRun<'_> {
        self.forget_absent(snapshot);
        let due = self.due(snapshot, now);
        let (known, probes) = self.queues(&due, now);
        let last_send = until.before(LEAD.min(until.since(now) / 2));
        let staged = self.staged.insert(StagedRun {
            fabric: Arc::clone(&snapshot.fabric),
            hardware: Arc::clone(&self.hardware),
            refused: Vec::new(),
        });
        let StagedRun { hardware, refused, .. } = staged;
        let devices = &mut self.devices;
        RegisterRun { devices, hardware, refused, due, known, probes, now, last_send, until }
    }

    /// Keeps what the latest run read if LIDs are the same, according to a sweep over this fabric after it; else it
    /// may be of other devices, and is due again.
    pub fn confirm(&mut self, fabric: &Arc<Fabric>, lids_changed: bool) {
        let Some(staged) = self.staged.take() else { return };
        if !lids_changed
            && (Arc::ptr_eq(&staged.fabric, fabric) || staged.fabric.has_same_lids(fabric))
        {
            self.hardware = staged.hardware;
        } else {
            for guid in staged.refused {
                self.devices.remove(&guid);
            }
        }
    }

    /// The devices that respond, and those that may not, by their index in what is due.
    fn queues(
        &mut self,
        due: &[VecDeque<Item>],
        now: Moment,
    ) -> (ThrottledQueue<usize>, ThrottledQueue<usize>) {
        let device = |index: usize| self.devices.get(&due[index].front()?.guid);
        let (known, mut probes): (Vec<usize>, Vec<usize>) = (0..due.len())
            .filter(|&index| !due[index].is_empty())
            .partition(|&index| device(index).is_some_and(|it| it.responds == Some(true)));
        // Those that were never asked first, then the one whose last timeout is the longest ago.
        probes.sort_by_key(|&index| device(index).map_or(Moment::default(), |it| it.not_before));
        let allowed = if !self.is_vs_key_suspected() {
            MAX_SILENT_DEVICES
        } else if now < self.next_probes || probes.is_empty() {
            0
        } else {
            self.next_probes = now + PROBE_INTERVAL;
            MAX_SILENT
        };
        (
            ThrottledQueue::new(known.into(), MAX_SILENT_DEVICES),
            ThrottledQueue::new(probes.into(), allowed),
        )
    }

    /// Forgets the devices that are gone: one that comes back may have other firmware and other modules.
    fn forget_absent(&mut self, snapshot: &Snapshot) {
        let fabric = &snapshot.fabric;
        let is_present = |guid: &Guid| fabric.is_present(*guid);
        self.devices.retain(|guid, _| is_present(guid));
        // Without a change snapshots share it.
        let mut devices = self.hardware.nodes.keys().chain(self.hardware.ports.keys());
        if !devices.all(is_present) {
            Arc::make_mut(&mut self.hardware).retain(is_present);
        }
    }

    /// The requests that are due, by device.
    fn due(&self, snapshot: &Snapshot, now: Moment) -> Vec<VecDeque<Item>> {
        let RegisterReader { intervals, keys, hardware, .. } = self;
        let schedule = Schedule { intervals, keys, hardware, snapshot, now };
        let fabric = &snapshot.fabric;
        let mut by_device = Vec::new();
        for node in fabric.node_indexes() {
            let about = fabric.node(node);
            let identity = &about.identity;
            let is_asked = matches!(identity.kind, NodeKind::Switch | NodeKind::Ca)
                && ib_mad::device::is_mellanox(identity.vendor_id)
                && snapshot.is_up(node);
            let device = self.devices.get(&identity.guid);
            if is_asked && device.is_none_or(|device| device.not_before <= now) {
                by_device.push(due::of_device(schedule, node, device));
            }
        }
        by_device
    }
}

/// The query plan; see the [module](self).
#[derive(Debug)]
pub struct RegisterRun<'a> {
    devices: &'a mut HashMap<Guid, Device>,
    /// Copied by the first response of a run: until then snapshots share it.
    hardware: &'a mut Arc<Hardware>,
    refused: &'a mut Vec<Guid>,
    /// By device, in the order of their turns; what is in flight is the first of its device. A tag is the index.
    due: Vec<VecDeque<Item>>,
    /// The devices without a request in flight: those that respond, and those that may not.
    known: ThrottledQueue<usize>,
    probes: ThrottledQueue<usize>,
    now: Moment,
    last_send: Moment,
    until: Moment,
}

impl QueryPlan for RegisterRun<'_> {
    fn next_request(&mut self, qp: QueuePair) -> Option<(Request, u64)> {
        if qp == QueuePair::Qp0 || self.now > self.last_send {
            return None;
        }
        loop {
            let index = self.known.pop().or_else(|| self.probes.pop())?;
            if let Some(item) = self.next_item(index) {
                let query = item.what.map_or_else(vendor::general_info, vendor::access_register);
                let request =
                    Request { to: Address::Lid(item.lid), query: query.with_m_key(item.key) };
                return Some((request, index as u64));
            }
            // All devices with something to ask at the begin have a first item, so it has responded meanwhile.
            self.known.on_response();
        }
    }

    fn handle_outcome(&mut self, tag: u64, outcome: Outcome<'_>, at: Moment) {
        self.now = at;
        let index = tag as usize;
        let Some(item) = self.due.get_mut(index).and_then(VecDeque::pop_front) else { return };
        let device = self.devices.entry(item.guid).or_default();
        if !has_responded(&outcome) {
            if outcome.is_err_and(|error| error == RequestError::Unsent) {
                // The fault of the transport, and not of the device.
                device.not_before = self.until;
            } else {
                device.on_timeout(item, (at, self.until), Arc::make_mut(self.hardware));
            }
            return;
        }
        let is_known = device.responds.replace(true) == Some(true);
        if is_known { &mut self.known } else { &mut self.probes }.permit_more();
        self.known.queue.push_back(index);
        match outcome {
            Ok(mad) => {
                device.on_response(item.what);
                self.record(item, mad, at);
            }
            Err(RequestError::Status(status)) if vendor::status::is_final(status) => {
                self.refused.push(item.guid);
                device.on_refusal(item, status, Arc::make_mut(self.hardware));
            }
            // Busy, or another refusal: it is due again in the next run.
            Err(_) => {}
        }
    }
}

/// A report as a field of [`Hardware`] holds it: itself, boxed or shared.
fn read<T, R: From<ReadAt<T>>>(value: T, at: Moment) -> R {
    ReadAt { value, at }.into()
}

impl RegisterRun<'_> {
    /// What is asked next of a device; what it refused earlier in this run is left out.
    fn next_item(&mut self, index: usize) -> Option<Item> {
        let items = self.due.get_mut(index)?;
        let may_be_asked = |item: &Item| {
            let device = self.devices.get(&item.guid);
            device.is_none_or(|device| device.may_be_asked(item.what, self.now))
        };
        let next = items.iter().position(may_be_asked).unwrap_or(items.len());
        items.drain(..next);
        items.front().copied()
    }

    fn record(&mut self, item: Item, mad: &Mad, at: Moment) {
        let Item { guid, what, link_downs, .. } = item;
        let hardware = Arc::make_mut(self.hardware);
        let Some(what) = what else {
            hardware.node_mut(guid).general = Some(read(GeneralInfo::decode(mad), at));
            return;
        };
        let port = |number| PortKey::new(guid, number);
        match what {
            RegisterQuery::Module(number) => {
                hardware.port_mut(port(number)).module = Some(read(Module::decode(mad), at));
            }
            RegisterQuery::FecHistogram(number) => {
                let histogram = read(FecHistogram::decode(mad), at);
                hardware.port_mut(port(number)).fec_histogram = Some(histogram);
            }
            RegisterQuery::LinkDown(number) => {
                let port = hardware.port_mut(port(number));
                port.link_down = Some(read(LinkDown::decode(mad), at));
                port.link_downs = link_downs;
            }
            RegisterQuery::Troubleshooting(number) => {
                let code = Troubleshooting::decode(mad).code;
                hardware.port_mut(port(number)).trouble = Some(read(code, at));
            }
            RegisterQuery::PhysicalStatistics(number) => {
                let port = hardware.port_mut(port(number));
                port.physical = Some(read(PhysicalStatistics::decode(mad), at));
                // It has a link.
                port.trouble = None;
            }
            RegisterQuery::Temperature(_) => {
                let degrees = celsius(Temperature::decode(mad).degrees);
                hardware.node_mut(guid).temperature = degrees.map(|degrees| read(degrees, at));
            }
            RegisterQuery::Temperatures { first, count } => {
                let sensors = first..first.saturating_add(count.into());
                let reported = Temperatures::decode(mad);
                let reported = reported.known().filter(|(sensor, _)| sensors.contains(sensor));
                let node = hardware.node_mut(guid);
                node.temperatures.retain(|sensor, _| !sensors.contains(sensor));
                node.temperatures
                    .extend(reported.map(|(sensor, value)| (sensor, ReadAt { value, at })));
            }
            RegisterQuery::Fans => {
                let (fans, node) = (Fans::decode(mad), hardware.node_mut(guid));
                node.fan_speeds.retain(|fan, _| fans.present >> fan & 1 == 1);
                node.fans = Some(read(fans, at));
            }
            RegisterQuery::FanSpeed(fan) => {
                let speed = ReadAt { value: FanSpeed::decode(mad).rpm, at };
                hardware.node_mut(guid).fan_speeds.insert(fan, speed);
            }
            RegisterQuery::FanLimits => {
                hardware.node_mut(guid).fan_limits = Some(read(FanLimits::decode(mad), at));
            }
            RegisterQuery::PowerSupplies => {
                let supplies = read(PowerSupplies::decode(mad), at);
                hardware.node_mut(guid).power_supplies = Some(supplies);
            }
        }
    }
}
