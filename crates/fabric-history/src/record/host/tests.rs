use ib_fabric::PortIndex;
use std::time::{Duration, SystemTime};

use super::*;
use crate::event::About;
use crate::record::events::EventDetector;
use fabric_observation::host::{DeviceIds, HostPortTotals};
use ib_fabric::testing::{fabric, found};
use ib_health::counter_status::CounterStatus;
use ib_mad::Counter;
use ib_mad::moment::{Anchor, Moment};
use ib_mad::node::NodeKind;
use ib_mad::port_event::{PortEvent, PortEventKind};
use ib_mad::port_state::PortState;
use ib_mad::rate::Width;
use rdma_host::model::Port;
use rdma_host::testing::{port, snapshot};

fn moment(millis: u64) -> Moment {
    Moment::default() + Duration::from_millis(millis)
}

fn wall(millis: u64) -> SystemTime {
    SystemTime::UNIX_EPOCH + Duration::from_millis(millis)
}

/// A host with `mlx5_0`, which has one port, read each 15 s.
struct Simulation {
    devices: HostFabric,
    detector: EventDetector,
    seen: HostObservation,
    ids: DeviceIds,
    millis: u64,
    /// The devices of the next snapshot.
    next: Vec<Device>,
    events: Vec<NewEvent>,
}

impl Simulation {
    fn new() -> Self {
        let mut sim = Simulation {
            devices: HostFabric::default(),
            detector: EventDetector::of_host(),
            seen: HostObservation::default(),
            ids: DeviceIds::default(),
            millis: 0,
            next: snapshot("mlx5_0", vec![port(1)]).devices,
            events: Vec::new(),
        };
        assert_eq!(sim.look(), NONE, "the first snapshot is the reference");
        sim
    }

    fn hear(&mut self, after: u64, kind: PortEventKind) {
        let millis = self.millis + after;
        let at = Anchor { moment: moment(millis), wall: wall(millis) };
        let port = (kind != PortEventKind::DeviceFatal).then_some(1);
        self.seen.port_events.add_event(&PortEvent {
            at,
            device: "mlx5_0".into(),
            guid: None,
            port,
            kind,
        });
    }

    fn observe(&mut self, fabrics: &[Arc<Observation>]) -> Option<(Observation, Vec<NewEvent>)> {
        self.millis += 15_000;
        let now = moment(self.millis);
        for port in self.next.iter_mut().flat_map(|device| &mut device.ports) {
            (port.at, port.reading.at) = (now, now);
        }
        let anchor = Anchor { moment: now, wall: wall(self.millis) };
        let look = HostSnapshot {
            anchor,
            began: now,
            ended: now,
            devices: self.next.clone(),
            excluded: 0,
            problem: None,
        };
        self.seen.ids = self.ids.assign(&look);
        self.seen.port_events.add_snapshot(&look, &self.seen.ids);
        let devices = || self.next.iter();
        let totals = |port: &Port| HostPortTotals {
            reading: port.reading.clone().assume_totals(),
            counters: CounterStatus::default(),
            reset_offsets: None,
        };
        self.seen.totals =
            devices().map(|device| device.ports.iter().map(totals).collect()).collect();
        self.seen.snapshot = Some(look);
        self.seen.reads += 1;
        self.devices.update(&self.seen, fabrics)
    }

    /// Takes a snapshot; returns the seconds, kinds, places and texts of the events.
    fn look(&mut self) -> Vec<String> {
        let (observation, events) = self.observe(&[]).unwrap();
        self.events = self.detector.update(&observation, wall(self.millis));
        self.events.extend(events);
        let tell = |event: &NewEvent| {
            let at = event.at.duration_since(SystemTime::UNIX_EPOCH).unwrap().as_secs_f64();
            format!("{at} {}: {}: {}", event.kind.label(), event.place, event.text)
        };
        self.events.iter().map(tell).collect()
    }

    fn port(&mut self) -> &mut Port {
        &mut self.next[0].ports[0]
    }
}

const NONE: [&str; 0] = [];

#[test]
fn reported_port_error_sets_the_event_time() {
    let mut sim = Simulation::new();
    sim.hear(500, PortEventKind::PortError);
    sim.port().state = Some(PortState::Down);
    assert_eq!(
        sim.look(),
        [
            "15.5 link_down: mlx5_0 port 1: not Active",
            "15.5 flap: mlx5_0 port 1: went down once; 1 flap since the exporter started",
        ]
    );
    assert_eq!(sim.events[0].about, About::Port(Guid(0xabc), 1));
    assert_eq!(sim.look(), NONE);
    sim.hear(2_250, PortEventKind::PortActive);
    sim.port().state = Some(PortState::Active);
    assert_eq!(sim.look(), ["47.25 link_up: mlx5_0 port 1: Active again"]);
    // Lost and restored between two reads, twice.
    for millis in [1_000, 2_000] {
        sim.hear(millis, PortEventKind::PortError);
        sim.hear(millis + 500, PortEventKind::PortActive);
    }
    assert_eq!(
        sim.look(),
        ["62 flap: mlx5_0 port 1: went down twice; 3 flaps since the exporter started"]
    );
}

#[test]
fn unreported_change_has_the_snapshot_time() {
    let mut sim = Simulation::new();
    sim.port().state = Some(PortState::Init);
    let events = sim.look();
    assert!(
        events[0].starts_with("30 link_down") && events[1].starts_with("30 flap"),
        "{events:?}"
    );
    sim.port().state = None;
    assert_eq!(sim.look(), NONE, "nobody knows");
    sim.port().state = Some(PortState::ActiveDefer);
    assert_eq!(sim.look(), ["60 link_up: mlx5_0 port 1: Active again"]);
    sim.port().width = Some(Width::X1);
    assert_eq!(sim.look(), ["75 rate_changed: mlx5_0 port 1: from 4x NDR to 1x NDR"]);
    assert_eq!(sim.look(), NONE);
}

#[test]
fn device_events_for_hang_removal_and_return() {
    let mut sim = Simulation::new();
    let device = sim.next[0].clone();
    sim.next[0].ports.clear();
    sim.next[0].is_readable = false;
    assert_eq!(sim.look(), ["30 node_down: mlx5_0: does not respond"]);
    sim.next[0] = device.clone();
    assert_eq!(sim.look(), ["45 node_up: mlx5_0: responds again"]);
    sim.hear(1_000, PortEventKind::DeviceFatal);
    sim.next.clear();
    let events = sim.look();
    assert!(events[0].starts_with("60 node_down: mlx5_0: device no longer listed"), "{events:?}");
    let fatal =
        "46 device_fatal: mlx5_0: device failed or is being removed (IBV_EVENT_DEVICE_FATAL)";
    assert!(events.contains(&fatal.into()), "{events:?}");
    assert!(
        events.iter().any(|events| events.starts_with("46 link_down: mlx5_0 port 1")),
        "{events:?}"
    );
    assert_eq!(sim.look(), NONE);
    let mut other = snapshot("mlx5_1", vec![port(1), port(2)]).devices.remove(0);
    other.info =
        Arc::new(rdma_host::model::DeviceInfo { guid: Some(Guid(0xdef)), ..Default::default() });
    sim.next = vec![device, other];
    let events = sim.look();
    assert!(events[0].starts_with("90 node_added: mlx5_1: new device"), "{events:?}");
    assert!(events[1].starts_with("90 node_up: mlx5_0"), "{events:?}");
    assert!(events[2].starts_with("90 link_up: mlx5_0 port 1"), "{events:?}");
    assert_eq!((events.len(), sim.look().len()), (3, 0));
}

#[test]
fn fabric_is_shared_while_devices_stay() {
    let mut sim = Simulation::new();
    let mut fabric_of = |change: &mut dyn FnMut(&mut Device)| {
        change(&mut sim.next[0]);
        Arc::clone(&sim.observe(&[]).unwrap().0.snapshot.unwrap().fabric)
    };
    let first = fabric_of(&mut |_| {});
    let same = fabric_of(&mut |device| device.ports[0].state = Some(PortState::Down));
    assert!(Arc::ptr_eq(&first, &same));
    let hangs = fabric_of(&mut |device| {
        device.ports.clear();
        device.is_readable = false;
    });
    assert!(Arc::ptr_eq(&first, &hangs));
    let more = fabric_of(&mut |device| device.ports = vec![port(1), port(2)]);
    assert_eq!((first.ports.len(), more.ports.len()), (1, 2));
}

#[test]
fn totals_and_counter_findings_belong_to_their_ports() {
    let mut sim = Simulation::new();
    sim.port().reading.set(Counter::SymbolErrors, 7);
    let (seen, _) = sim.observe(&[]).unwrap();
    let reading =
        |seen: &Observation| seen.snapshot.as_ref().unwrap().readings[PortIndex(0)].clone();
    assert_eq!(reading(&seen).unwrap().get(Counter::SymbolErrors), Some(7));
    sim.seen.totals[0][0].counters.resets = 1;
    sim.seen.totals[0][0].reset_offsets = Some(Arc::new([5; _]));
    let (seen, _) = sim.devices.update(&sim.seen, &[]).unwrap();
    assert_eq!(
        (seen.assessment.ports[PortIndex(0)].counters.resets, seen.fabric.as_str()),
        (1, "host")
    );
    // Of one that is gone it is what it was: that is no reset.
    sim.next.clear();
    let (seen, _) = sim.observe(&[]).unwrap();
    let found = &seen.assessment.ports[PortIndex(0)];
    assert_eq!((found.counters.resets, found.reset_offsets.as_ref().unwrap()[0]), (1, 5));
    assert_eq!(reading(&seen), None);
}

#[test]
fn device_in_a_swept_fabric_is_not_recorded() {
    let mut sim = Simulation::new();
    sim.devices = HostFabric::default();
    let blank = Arc::new(Observation::default());
    assert!(sim.observe(&[blank]).is_none(), "nobody knows yet");
    let of = |guid| {
        let fabric = Arc::new(fabric(vec![found(guid, NodeKind::Ca, 1)], &[], None));
        let anchor = Anchor { moment: moment(0), wall: wall(0) };
        let snapshot = Some(Arc::new(Snapshot::blank(fabric, anchor)));
        Arc::new(Observation { snapshot, ..Observation::default() })
    };
    assert!(sim.observe(&[of(0xabc)]).is_none());
    let (seen, _) = sim.observe(&[of(1), of(2)]).unwrap();
    assert_eq!(seen.snapshot.unwrap().fabric.nodes.len(), 1);
    // A port that was down is found by the fabric once it is up: it is not gone.
    let (seen, _) = sim.observe(&[of(1)]).unwrap();
    sim.detector.update(&seen, wall(0));
    let mut other = snapshot("mlx5_1", vec![port(1)]).devices.remove(0);
    other.info =
        Arc::new(rdma_host::model::DeviceInfo { guid: Some(Guid(0xdef)), ..Default::default() });
    sim.next.push(other);
    let (seen, _) = sim.observe(&[of(0xabc)]).unwrap();
    let events = sim.detector.update(&seen, wall(0));
    let kinds: Vec<&str> = events.iter().map(|event| event.kind.label()).collect();
    assert_eq!(kinds, ["node_added"], "{events:?}");
    assert_eq!(seen.snapshot.unwrap().fabric.nodes.len(), 1);
}
