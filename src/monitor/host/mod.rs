//! The monitor of the host's own devices: read, publish, wait; and read again at once after an event.

mod event_queue;

pub use event_queue::HostEventQueue;

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::mpsc::{SyncSender, TrySendError};
use std::time::Duration;

use tokio::sync::watch::Sender;

use crate::config::HostSettings;
use event_queue::PendingEvents;
use fabric_observation::SharedState;
use fabric_observation::host::{
    DeviceIds, DroppedEvents, HostObservation, HostPortTotals, MissingDevices,
};
use ib_health::totals::UNBOUNDED;
use ib_health::totals::{PortTotals, TotalsSeed};
use ib_mad::port_event::{PortEvent, PortEventKind};
use ib_mad::{Guid, Moment, PortKey};
use process_clock::Clock;
use rdma_host::model::HostSnapshot;
use rdma_host::reader::events::Listener;
use rdma_host::reader::{DeviceFilter, DeviceSource};

/// The least time between two readings, however many events there are: a flapping cable must not have the
/// firmware read all counters all the time. Each event is counted nevertheless.
const MIN_PAUSE: Duration = Duration::from_secs(1);
/// The least time between two warnings that events were dropped.
const DROPS_LOGGED: Duration = Duration::from_secs(60);

/// The monitor of the host's own devices; see the module.
pub struct HostMonitor {
    interval: Duration,
    /// Where and which devices to receive events from, if any.
    listen: Option<(PathBuf, DeviceFilter)>,
    /// What it reads.
    pub devices: Box<dyn DeviceSource>,
    clock: Clock,
    shared: Arc<Sender<SharedState>>,
    /// Where it takes events, and its end.
    pub queue: HostEventQueue,
    /// The monitors of fabrics, which get the events of links that end here.
    pub fabrics: Vec<SyncSender<PortEvent>>,
    /// How many events they did not take.
    dropped_by_fabrics: u64,
    /// The drops that were last logged, and until when no others are.
    drops_logged: (DroppedEvents, Moment),
    readings: HostReadings,
    observation: HostObservation,
}

impl HostMonitor {
    /// One of these devices that publishes to a shared state.
    pub fn new(
        settings: &HostSettings,
        devices: Box<dyn DeviceSource>,
        clock: Clock,
        shared: Arc<Sender<SharedState>>,
    ) -> Self {
        HostMonitor {
            interval: settings.interval,
            listen: settings.events.then(|| (settings.sysfs.clone(), settings.filter.clone())),
            devices,
            clock,
            shared,
            queue: HostEventQueue::default(),
            fabrics: Vec::new(),
            dropped_by_fabrics: 0,
            drops_logged: Default::default(),
            readings: HostReadings::new(settings.forget_after),
            observation: HostObservation {
                interval: settings.interval,
                port_fabrics: settings.port_fabrics.clone(),
                ..HostObservation::default()
            },
        }
    }

    /// Sets the totals of an earlier run, from which ports continue.
    pub fn restore(&mut self, seed: TotalsSeed) {
        self.readings.totals.seed = seed;
    }

    /// Monitors until it is ended.
    pub fn run(mut self) {
        // Before the first reading, so that no event between the two is lost.
        let _listener = self.listen.take().and_then(|(sysfs, filter)| {
            let sender = self.queue.clone();
            let below = sysfs.clone();
            let wanted = move |device: &str| filter.matches(&below, device);
            let handle = move |event| sender.send(event);
            Listener::start(&sysfs, wanted, self.clock, handle)
                .inspect_err(|error| {
                    tracing::warn!(%error, "device events not received: link downs between two reads are missed");
                })
                .ok()
        });
        let mut due = self.clock.now();
        loop {
            let began = self.clock.now();
            self.read();
            while due <= began {
                due = due + self.interval;
            }
            if !self.wait(due, began + MIN_PAUSE) {
                return;
            }
        }
    }

    fn read(&mut self) {
        let snapshot = self.devices.read();
        self.add(snapshot);
    }

    /// Adds a reading of the devices, and publishes it.
    pub fn add(&mut self, snapshot: HostSnapshot) {
        self.log_snapshot(&snapshot);
        self.readings.add(snapshot, &mut self.observation);
        let (by_host, by_fabrics) = (self.queue.dropped(), self.dropped_by_fabrics);
        self.observation.dropped = DroppedEvents { by_host, by_fabrics };
        self.log_drops();
        let observation = Arc::new(self.observation.clone());
        self.shared.send_modify(|shared| shared.host = Some(observation));
    }

    /// Logs why no device can be read: at the first reading, and when the reason changes.
    fn log_snapshot(&self, snapshot: &HostSnapshot) {
        let before = self.observation.snapshot.as_ref();
        match (before.and_then(|before| before.problem.as_deref()), snapshot.problem.as_deref()) {
            (before, Some(problem)) if before != Some(problem) => {
                tracing::warn!(problem, "RDMA devices cannot be listed");
            }
            (Some(_), None) => tracing::info!("RDMA devices can be listed again"),
            _ => {}
        }
        if before.is_some() || !snapshot.devices.is_empty() || snapshot.problem.is_some() {
            return;
        }
        if snapshot.excluded > 0 {
            tracing::warn!(
                devices = snapshot.excluded,
                "no RDMA device is read: --host.device-include or --host.device-exclude excludes all of \
                 them"
            );
        } else {
            tracing::warn!("no RDMA device found: load its driver, or check --path.sysfs");
        }
    }

    fn log_drops(&mut self) {
        let (dropped, now) = (self.observation.dropped, self.clock.now());
        let (logged, quiet_until) = self.drops_logged;
        if dropped != logged && now >= quiet_until {
            let DroppedEvents { by_host, by_fabrics } = dropped;
            tracing::warn!(
                by_host,
                by_fabrics,
                "device events dropped: the queue was full; port states are read instead"
            );
            self.drops_logged = (dropped, now + DROPS_LOGGED);
        }
    }

    /// Waits until the next reading is due, or until `soon` after an event; false if the monitor must end.
    fn wait(&mut self, mut due: Moment, soon: Moment) -> bool {
        loop {
            let limit = self.clock.real(due.since(self.clock.now()));
            let Some(pending) = self.queue.take(limit) else { return false };
            if self.handle(pending) {
                due = due.min(soon);
            }
            // However many events arrive, the devices are read when that is due.
            if self.clock.now() >= due {
                return true;
            }
        }
    }

    /// Handles events, and returns whether to read the devices soon.
    fn handle(&mut self, pending: PendingEvents) -> bool {
        let read_soon =
            pending.devices_changed || pending.monitored.is_some() || !pending.events.is_empty();
        if pending.devices_changed || pending.netdevs_changed {
            self.devices.refresh(None);
        }
        if let Some(devices) = pending.monitored {
            self.observation.monitored = devices;
        }
        for event in pending.events {
            log(&event);
            self.devices.refresh(Some(&event.device));
            self.observation.port_events.add_event(&event);
            if event.link_up().is_some() {
                self.send_to_fabrics(event);
            }
        }
        read_soon
    }

    fn send_to_fabrics(&mut self, mut event: PortEvent) {
        let devices = self.observation.snapshot.iter().flat_map(|snapshot| &snapshot.devices);
        let device = devices.into_iter().find(|device| device.name == event.device);
        event.guid = device.and_then(|device| device.info.guid);
        if event.port_key().is_none() {
            return;
        }
        for fabric in &self.fabrics {
            // A monitor that has ended needs no events.
            if let Err(TrySendError::Full(_)) = fabric.try_send(event.clone()) {
                self.dropped_by_fabrics += 1;
            }
        }
    }
}

/// Logs an event. Those of links are logged as information; GID tables may change many times per second.
fn log(event: &PortEvent) {
    let (device, port, kind) = (&*event.device, event.port, event.kind.label());
    match event.kind {
        PortEventKind::PortError | PortEventKind::PortActive | PortEventKind::DeviceFatal => {
            tracing::info!(device, port, event = kind, "device event");
        }
        _ => tracing::debug!(device, port, event = kind, "device event"),
    }
}

/// What is kept from one reading of the devices to the next. It reads no clock and no device, so that tests can run
/// through weeks.
#[derive(Debug)]
pub struct HostReadings {
    ids: DeviceIds,
    totals: HostTotals,
    missing: MissingDevices,
}

impl HostReadings {
    /// One without a reading. A device that disappeared is reported for this time.
    pub fn new(forget_after: Duration) -> Self {
        HostReadings {
            ids: DeviceIds::default(),
            totals: HostTotals::default(),
            missing: MissingDevices::new(forget_after),
        }
    }

    /// Adds a reading to what was observed until then.
    pub fn add(&mut self, snapshot: HostSnapshot, observation: &mut HostObservation) {
        let ids = self.ids.assign(&snapshot);
        observation.totals = self.totals.update(&snapshot, &ids);
        observation.port_events.add_snapshot(&snapshot, &ids);
        observation.missing = self.missing.update(&snapshot, &ids);
        observation.ids = ids;
        observation.reads += 1;
        observation.snapshot = Some(snapshot);
    }
}

/// How many ports are kept while not all of them are present: virtual functions of containers may get new names
/// each time, for years.
const MAX_PORTS: usize = 1024;

/// The totals of the ports, by the ids of their devices: they continue under another name, and are not those of a
/// device that gets the name.
#[derive(Debug, Default)]
struct HostTotals {
    ports: BTreeMap<PortKey, PortTotals>,
    /// Totals of an earlier run. They are kept, for a device may get its name after it was first seen.
    seed: TotalsSeed,
}

impl HostTotals {
    /// Adds a reading, and returns the totals of its ports, by device and port. Each device has the id at its
    /// place in `ids`.
    fn update(&mut self, snapshot: &HostSnapshot, ids: &[Guid]) -> Vec<Vec<HostPortTotals>> {
        if self.ports.len() > MAX_PORTS {
            self.ports.retain(|key, _| ids.contains(&key.guid));
        }
        let devices = snapshot.devices.iter().zip(ids).map(|(device, &id)| {
            let ports = device.ports.iter().map(|port| {
                let key = PortKey::new(id, port.number);
                let resume = || self.seed.get(&key).cloned().unwrap_or_default();
                let totals = self.ports.entry(key).or_insert_with(resume);
                // It may carry Ethernet, and counts what it sends to itself: no link rate bounds it.
                let (reading, _) = totals.update(port.reading.clone(), UNBOUNDED);
                let (counters, reset_offsets) = (totals.status(), totals.reset_offsets().cloned());
                HostPortTotals { reading, counters, reset_offsets }
            });
            ports.collect()
        });
        devices.collect()
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc;
    use std::time::SystemTime;

    use tokio::sync::watch;

    use super::*;
    use crate::config::Settings;
    use crate::config::options::Options;
    use ib_mad::Counter;
    use ib_mad::moment::Anchor;
    use rdma_host::reader::events::HostEvent;
    use rdma_host::testing::{port, snapshot};

    fn event(at: Anchor, device: &str, kind: PortEventKind) -> PortEvent {
        PortEvent { at, device: device.into(), guid: None, port: Some(1), kind }
    }

    fn pending(event: PortEvent) -> PendingEvents {
        PendingEvents { events: [event].into(), ..PendingEvents::default() }
    }

    #[test]
    fn link_events_reach_the_fabric_monitors() {
        let settings = Settings::load(Options::default(), None).unwrap().host.unwrap();
        let (shared, _seen) = watch::channel(SharedState::default());
        let clock = Clock::start();
        let devices = Box::new(settings.reader(clock));
        let mut monitor = HostMonitor::new(&settings, devices, clock, Arc::new(shared));
        let (sender, fabric) = mpsc::sync_channel(2);
        monitor.fabrics.push(sender);
        monitor.observation.snapshot = Some(snapshot("mlx5_0", vec![port(1)]));
        let at = |millis| Anchor {
            moment: Moment::default() + Duration::from_millis(millis),
            wall: SystemTime::UNIX_EPOCH,
        };
        for (millis, device, kind) in [
            (1, "mlx5_0", PortEventKind::PortError),
            (2, "mlx5_0", PortEventKind::GidChange),
            (3, "unknown", PortEventKind::PortError),
            (4, "mlx5_0", PortEventKind::PortActive),
        ] {
            monitor.handle(pending(event(at(millis), device, kind)));
        }
        assert_eq!(monitor.dropped_by_fabrics, 0);
        monitor.handle(pending(event(at(5), "mlx5_0", PortEventKind::PortError)));
        assert_eq!(monitor.dropped_by_fabrics, 1, "a full channel does not block");
        let received: Vec<_> =
            fabric.try_iter().map(|it| (it.port_key(), it.link_up(), it.at.moment)).collect();
        let end = Some(PortKey::new(Guid(0xabc), 1));
        let expected = [(end, Some(false), at(1).moment), (end, Some(true), at(4).moment)];
        assert_eq!(received, expected);
    }

    #[test]
    fn event_flood_is_bounded_and_drops_are_published() {
        let sysfs = tempfile::tempdir().unwrap();
        let mut settings = Settings::load(Options::default(), None).unwrap().host.unwrap();
        settings.sysfs = sysfs.path().to_owned();
        let (shared, observation) = watch::channel(SharedState::default());
        let clock = Clock::start();
        let devices = Box::new(settings.reader(clock));
        let mut monitor = HostMonitor::new(&settings, devices, clock, Arc::new(shared));
        let sender = monitor.queue.clone();
        let at = Anchor { moment: Moment::default(), wall: SystemTime::UNIX_EPOCH };
        let event = event(at, "mlx5_0", PortEventKind::PortError);
        for _ in 0..event_queue::MAX_EVENTS + 5 {
            assert!(sender.send(HostEvent::Port(event.clone())), "it never waits");
        }
        monitor.read();
        let dropped = DroppedEvents { by_host: 5, by_fabrics: 0 };
        assert_eq!(observation.borrow().host.as_ref().unwrap().dropped, dropped);
        assert_eq!(monitor.drops_logged.0, dropped);
        sender.end();
        assert!(!monitor.wait(Moment::NEVER, Moment::NEVER));
    }

    #[test]
    fn totals_are_per_port_and_survive_a_clear() {
        let mut totals = HostTotals::default();
        let mut read = |device: &str, id, raw| {
            let mut ports = vec![port(1)];
            ports[0].reading.set(Counter::SymbolErrors, raw);
            let read = &totals.update(&snapshot(device, ports), &[Guid(id)])[0][0];
            (read.reading.get(Counter::SymbolErrors), read.counters.resets)
        };
        assert_eq!(read("mlx5_0", 1, 10), (Some(10), 0));
        assert_eq!(read("mlx5_1", 2, 3), (Some(3), 0));
        assert_eq!(read("mlx5_0", 1, 2), (Some(12), 1));
        assert_eq!(read("ibp1s0", 1, 3), (Some(13), 1), "it was renamed");
        assert_eq!(read("mlx5_0", 3, 1), (Some(1), 0), "another card got the name");
        for other in 0..2 * MAX_PORTS as u64 {
            read("vf", 10 + other, 1);
        }
        assert!(totals.ports.len() <= MAX_PORTS + 1);
    }

    #[test]
    fn totals_resume_from_an_earlier_run() {
        let mut restored = PortTotals::default();
        restored.restore(Counter::SymbolErrors, 140, 100);
        let mut totals = HostTotals {
            seed: [(PortKey::new(Guid(0xabc), 1), restored)].into(),
            ..HostTotals::default()
        };
        let mut read = |device: &str, id, raw| {
            let mut ports = vec![port(1)];
            ports[0].reading.set(Counter::SymbolErrors, raw);
            let read = &totals.update(&snapshot(device, ports), &[Guid(id)])[0][0];
            let offsets = read.reset_offsets.as_ref();
            let offset = offsets.map(|offsets| offsets[Counter::SymbolErrors as usize]);
            (read.reading.get(Counter::SymbolErrors), offset)
        };
        assert_eq!(read("vf0", 1, 50), (Some(50), None), "another device");
        assert_eq!(read("mlx5_0", 0xabc, 50), (Some(150), Some(100)));
        assert_eq!(read("mlx5_0", 0xabc, 2), (Some(152), Some(150)));
        assert_eq!(read("ibp1s0", 0xabc, 60), (Some(210), Some(150)), "it was renamed");
    }
}
