use std::time::{Duration, SystemTime};

use super::*;
use crate::event::About;
use crate::record::story::Story;
use fabric_observation::host::HostPortTotals;
use ib_fabric::testing::{fabric, found};
use ib_health::assessment::CounterStatus;
use ib_mad::Counter;
use ib_mad::moment::{Anchor, Moment};
use ib_mad::node::NodeKind;
use ib_mad::port_event::{PortEvent, PortEventKind};
use ib_mad::port_state::state;
use ib_mad::rate::Width;
use rdma_host::model::Port;
use rdma_host::testing::{port, snapshot};

fn moment(millis: u64) -> Moment {
    Moment::default() + Duration::from_millis(millis)
}

fn wall(millis: u64) -> SystemTime {
    SystemTime::UNIX_EPOCH + Duration::from_millis(millis)
}

/// A host with mlx5_0 and its one port, looked at each 15 s.
struct Watch {
    devices: HostDevices,
    story: Story,
    seen: HostObservation,
    millis: u64,
    /// The devices of the next look.
    next: Vec<Device>,
    told: Vec<Event>,
}

impl Watch {
    fn new() -> Self {
        let mut watch = Watch {
            devices: HostDevices::default(),
            story: Story::of_host(),
            seen: HostObservation::default(),
            millis: 0,
            next: snapshot("mlx5_0", vec![port(1)]).devices,
            told: Vec::new(),
        };
        assert_eq!(watch.look(), NONE, "the first one is what others are told against");
        watch
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

    fn observe(&mut self, fabrics: &[Arc<Observation>]) -> Option<(Observation, Vec<Event>)> {
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
            left_out: 0,
            problem: None,
        };
        self.seen.port_events.add_snapshot(&look);
        let devices = || self.next.iter();
        self.seen.ids = devices().map(|device| device.about.guid.unwrap_or_default()).collect();
        let totals = |port: &Port| HostPortTotals {
            reading: port.reading.clone().into_totals(|reading, counter| reading.get(counter)),
            counters: CounterStatus::default(),
            reset_offsets: None,
        };
        self.seen.totals =
            devices().map(|device| device.ports.iter().map(totals).collect()).collect();
        self.seen.snapshot = Some(look);
        self.seen.reads += 1;
        self.devices.follow(&self.seen, fabrics)
    }

    /// Looks, and tells seconds, kinds, places and texts.
    fn look(&mut self) -> Vec<String> {
        let (observation, told) = self.observe(&[]).unwrap();
        self.told = self.story.follow(&observation, wall(self.millis));
        self.told.extend(told);
        let tell = |event: &Event| {
            let at = event.at.duration_since(SystemTime::UNIX_EPOCH).unwrap().as_secs_f64();
            format!("{at} {}: {}: {}", event.kind.label(), event.place, event.text)
        };
        self.told.iter().map(tell).collect()
    }

    fn port(&mut self) -> &mut Port {
        &mut self.next[0].ports[0]
    }
}

const NONE: [&str; 0] = [];

#[test]
fn a_port_that_tells_its_loss_is_told_at_that_moment() {
    let mut watch = Watch::new();
    watch.hear(500, PortEventKind::PortError);
    watch.port().state = Some(state::DOWN);
    assert_eq!(
        watch.look(),
        [
            "15.5 link_down: mlx5_0 port 1: it is not Active any more",
            "15.5 flap: mlx5_0 port 1: lost once; 1 in all",
        ]
    );
    assert_eq!(watch.told[0].about, About::Port(Guid(0xabc), 1));
    assert_eq!(watch.look(), NONE);
    watch.hear(2_250, PortEventKind::PortActive);
    watch.port().state = Some(state::ACTIVE);
    assert_eq!(watch.look(), ["47.25 link_up: mlx5_0 port 1: it is Active again"]);
    // Lost and back between two looks, twice.
    for millis in [1_000, 2_000] {
        watch.hear(millis, PortEventKind::PortError);
        watch.hear(millis + 500, PortEventKind::PortActive);
    }
    assert_eq!(watch.look(), ["62 flap: mlx5_0 port 1: lost twice; 3 in all"]);
}

#[test]
fn what_nobody_told_is_of_the_look_that_found_it() {
    let mut watch = Watch::new();
    watch.port().state = Some(state::INIT);
    let told = watch.look();
    assert!(told[0].starts_with("30 link_down") && told[1].starts_with("30 flap"), "{told:?}");
    watch.port().state = None;
    assert_eq!(watch.look(), NONE, "nobody knows");
    watch.port().state = Some(state::ACTIVE_DEFER);
    assert_eq!(watch.look(), ["60 link_up: mlx5_0 port 1: it is Active again"]);
    watch.port().width = Some(Width::X1);
    assert_eq!(watch.look(), ["75 rate: mlx5_0 port 1: 4x NDR -> 1x NDR"]);
    assert_eq!(watch.look(), NONE);
}

#[test]
fn devices_come_go_and_hang() {
    let mut watch = Watch::new();
    let device = watch.next[0].clone();
    watch.next[0].ports.clear();
    watch.next[0].answers = false;
    assert_eq!(watch.look(), ["30 node_gone: mlx5_0: it does not answer"]);
    watch.next[0] = device.clone();
    assert_eq!(watch.look(), ["45 node_back: mlx5_0: it answers again"]);
    watch.hear(1_000, PortEventKind::DeviceFatal);
    watch.next.clear();
    let told = watch.look();
    assert!(told[0].starts_with("60 node_gone: mlx5_0: the kernel does not know it"), "{told:?}");
    assert!(told.contains(&"46 device_fatal: mlx5_0: the device or its driver goes away".into()));
    assert!(told.iter().any(|told| told.starts_with("46 link_down: mlx5_0 port 1")), "{told:?}");
    assert_eq!(watch.look(), NONE);
    let mut other = snapshot("mlx5_1", vec![port(1), port(2)]).devices.remove(0);
    other.about =
        Arc::new(rdma_host::model::About { guid: Some(Guid(0xdef)), ..Default::default() });
    watch.next = vec![device, other];
    let told = watch.look();
    assert!(told[0].starts_with("90 node_new: mlx5_1: a device that was"), "{told:?}");
    assert!(told[1].starts_with("90 node_back: mlx5_0"), "{told:?}");
    assert!(told[2].starts_with("90 link_up: mlx5_0 port 1"), "{told:?}");
    assert_eq!((told.len(), watch.look().len()), (3, 0));
}

#[test]
fn the_fabric_is_the_same_one_while_devices_stay() {
    let mut watch = Watch::new();
    let mut fabric_of = |change: &mut dyn FnMut(&mut Device)| {
        change(&mut watch.next[0]);
        Arc::clone(&watch.observe(&[]).unwrap().0.snapshot.unwrap().fabric)
    };
    let first = fabric_of(&mut |_| {});
    let same = fabric_of(&mut |device| device.ports[0].state = Some(state::DOWN));
    assert!(Arc::ptr_eq(&first, &same));
    let hangs = fabric_of(&mut |device| {
        device.ports.clear();
        device.answers = false;
    });
    assert!(Arc::ptr_eq(&first, &hangs));
    let more = fabric_of(&mut |device| device.ports = vec![port(1), port(2)]);
    assert_eq!((first.ports.len(), more.ports.len()), (1, 2));
}

#[test]
fn totals_and_how_counters_fared_stand_at_their_ports() {
    let mut watch = Watch::new();
    watch.port().reading.set(Counter::SymbolErrors, 7);
    let (seen, _) = watch.observe(&[]).unwrap();
    let reading = |seen: &Observation| seen.snapshot.as_ref().unwrap().readings[0].clone();
    assert_eq!(reading(&seen).unwrap().get(Counter::SymbolErrors), Some(7));
    watch.seen.totals[0][0].counters.resets = 1;
    watch.seen.totals[0][0].reset_offsets = Some(Arc::new([5; _]));
    let (seen, _) = watch.devices.follow(&watch.seen, &[]).unwrap();
    assert_eq!((seen.assessment.ports[0].counters.resets, seen.fabric.as_str()), (1, "host"));
    // Of one that is gone it is what it was: that is no reset.
    watch.next.clear();
    let (seen, _) = watch.observe(&[]).unwrap();
    let found = &seen.assessment.ports[0];
    assert_eq!((found.counters.resets, found.reset_offsets.as_ref().unwrap()[0]), (1, 5));
    assert_eq!(reading(&seen), None);
}

#[test]
fn a_device_that_a_fabric_tells_of_is_left_to_it() {
    let mut watch = Watch::new();
    watch.devices = HostDevices::default();
    let blank = Arc::new(Observation::default());
    assert!(watch.observe(&[blank]).is_none(), "nobody knows yet");
    let of = |guid| {
        let fabric = Arc::new(fabric(vec![found(guid, NodeKind::Ca, 1)], &[], None));
        let anchor = Anchor { moment: moment(0), wall: wall(0) };
        let snapshot = Some(Arc::new(Snapshot::blank(fabric, anchor)));
        Arc::new(Observation { snapshot, ..Observation::default() })
    };
    assert!(watch.observe(&[of(0xabc)]).is_none());
    let (seen, _) = watch.observe(&[of(1), of(2)]).unwrap();
    assert_eq!(seen.snapshot.unwrap().fabric.nodes.len(), 1);
    // A port that was down is found by the fabric once it is up: it is not gone.
    let (seen, _) = watch.observe(&[of(1)]).unwrap();
    watch.story.follow(&seen, wall(0));
    let mut other = snapshot("mlx5_1", vec![port(1)]).devices.remove(0);
    other.about =
        Arc::new(rdma_host::model::About { guid: Some(Guid(0xdef)), ..Default::default() });
    watch.next.push(other);
    let (seen, _) = watch.observe(&[of(0xabc)]).unwrap();
    let told = watch.story.follow(&seen, wall(0));
    let kinds: Vec<&str> = told.iter().map(|event| event.kind.label()).collect();
    assert_eq!(kinds, ["node_new"], "{told:?}");
    assert_eq!(seen.snapshot.unwrap().fabric.nodes.len(), 1);
}
