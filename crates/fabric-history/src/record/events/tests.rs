use std::sync::Arc;
use std::time::{Duration, SystemTime};

use serde_json::json;

use super::EventDetector;
use crate::event::{About, NewEvent};
use fabric_observation::{Collector, Mastership, Observation};
use ib_fabric::snapshot::PortRead;
use ib_fabric::testing::{PlaneNet, end, fabric, found};
use ib_fabric::topology::LinkId;
use ib_fabric::{NodeIndex, PortIndex, PortMap, Snapshot};
use ib_health::assessment::Flow;
use ib_health::congestion::{Level, Region, Role, RootCause};
use ib_health::outage::{Downtime, ExpectedCause, Loss};
use ib_health::testing::PlaneSweeps;
use ib_health::verdict::Reasons;
use ib_health::{Assessment, LinkAssessment, PortAssessment, Reason, Verdict};
use ib_mad::moment::Anchor;
use ib_mad::node::NodeKind;
use ib_mad::port_state::testing::up;
use ib_mad::port_state::{PortState, PortStatus};
use ib_mad::rate::Width;
use ib_mad::{Counter, Moment, Reading};

/// Switch 1 with hosts 2 and 3 at its ports 1 and 2, swept each 15 s.
struct Simulation {
    detector: EventDetector,
    observation: Observation,
    sweep: u64,
}

impl Simulation {
    fn new() -> Self {
        let nodes = vec![
            found(1, NodeKind::Switch, 2),
            found(2, NodeKind::Ca, 1),
            found(3, NodeKind::Ca, 1),
        ];
        let links = [(end(1, 1), end(2, 1)), (end(1, 2), end(3, 1))];
        let fabric = Arc::new(fabric(nodes, &links, None));
        let anchor = Anchor { moment: Moment(0), wall: SystemTime::UNIX_EPOCH };
        let link = |link| LinkAssessment { up: Some(true), ..LinkAssessment::unknown(link) };
        let assessment = Assessment {
            ports: PortMap::filled(fabric.ports.len(), PortAssessment::default()),
            links: fabric.links().map(link).collect(),
            ..Assessment::default()
        };
        let snapshot = Some(Arc::new(Snapshot::blank(fabric, anchor)));
        let observation = Observation { snapshot, assessment, ..Observation::default() };
        let mut sim = Simulation { detector: EventDetector::default(), observation, sweep: 0 };
        sim.answer(true);
        assert_eq!(sim.sweep(), [""; 0], "the first observation is the reference");
        sim
    }

    fn answer(&mut self, answers: bool) {
        for collector in Collector::ALL {
            self.observation.stats.set_success(collector, answers);
        }
    }

    fn snapshot(&mut self) -> &mut Snapshot {
        Arc::make_mut(self.observation.snapshot.as_mut().unwrap())
    }

    fn link(&mut self) -> &mut LinkAssessment {
        &mut self.observation.assessment.links[0]
    }

    /// Sweeps once; returns the kinds and texts of the events.
    fn sweep(&mut self) -> Vec<String> {
        texts(&self.detect())
    }

    /// Sweeps once; returns the events.
    fn detect(&mut self) -> Vec<NewEvent> {
        self.sweep += 15;
        let began = Moment(self.sweep * 1_000_000_000);
        let snapshot = self.snapshot();
        (snapshot.began, snapshot.ended) = (began, began + Duration::from_secs(1));
        let now = SystemTime::UNIX_EPOCH + Duration::from_secs(self.sweep + 2);
        let events = self.detector.update(&self.observation, now);
        for event in &events {
            assert!(event.at <= now, "{event:?}");
        }
        events
    }
}

fn texts(events: &[NewEvent]) -> Vec<String> {
    events.iter().map(|event| format!("{}: {}", event.kind.label(), event.text)).collect()
}

const NONE: [&str; 0] = [];

#[test]
fn sweep_that_is_published_again_is_not_a_second_missed_read() {
    let mut sim = Simulation::new();
    sim.snapshot().readings.fill(Some(Reading::empty(Moment(0))));
    assert_eq!(sim.sweep(), NONE);
    sim.snapshot().readings.fill(None);
    assert_eq!(sim.sweep(), NONE, "one sweep may miss a port");
    // A port event publishes the assessment of the same sweep again.
    let now = SystemTime::UNIX_EPOCH + Duration::from_secs(sim.sweep + 3);
    assert!(sim.detector.update(&sim.observation, now).is_empty());
    assert!(sim.sweep()[0].starts_with("reads_failed: "));
}

#[test]
fn link_down_is_one_event_despite_unknown_states() {
    let mut sim = Simulation::new();
    for (up, events) in [
        (None, ""),
        (Some(false), "link_down: the link is down, and the nodes at both ends are present"),
        (None, ""),
        (Some(false), ""),
        (None, ""),
        (Some(true), "link_up: after 60s"),
        (Some(true), ""),
    ] {
        sim.link().up = up;
        assert_eq!(sim.sweep().join("\n"), events, "{up:?}");
    }
}

#[test]
fn link_down_has_the_states_of_both_ends() {
    let mut sim = Simulation::new();
    let link = sim.link().link;
    for (port, number) in [(link.low, PortState::Down), (link.high, PortState::Init)] {
        let status = PortStatus { state: number, ..up(1) };
        sim.snapshot().statuses[port] = PortRead::Ok(status);
    }
    sim.link().up = Some(false);
    let [event] = &sim.sweep()[..] else { panic!("one event") };
    assert!(event.starts_with("link_down: not Active: "), "{event}");
    assert!(event.contains(" port 1 Down, ") && event.ends_with(" port 1 Init"), "{event}");
}

#[test]
fn settled_losses_are_events() {
    let mut sim = Simulation::new();
    let at = |second: u64| Moment(second * 1_000_000_000);
    let down = |least, most| Downtime {
        least: Duration::from_secs(least),
        most: Duration::from_secs(most),
    };
    let first = Loss {
        number: 1,
        times: 2,
        expected: None,
        by_node: false,
        at: at(3),
        until: None,
        down: down(0, 15),
        flaps: 2,
    };
    let second = Loss {
        number: 2,
        times: 1,
        at: at(5),
        until: Some(at(14)),
        down: down(2, 9),
        flaps: 3,
        ..first
    };
    sim.link().losses = Some([first, second].into());
    assert_eq!(
        sim.sweep(),
        [
            "flap: went down twice, at most 15s in total; 2 flaps since the exporter started",
            "flap: went down once for 2s to 9s; 3 flaps since the exporter started",
        ]
    );
    let reboot = Loss {
        number: 3,
        times: 1,
        expected: Some(ExpectedCause::Reboot),
        by_node: false,
        at: at(20),
        until: Some(at(40)),
        down: down(20, 20),
        flaps: 3,
    };
    sim.link().losses = Some([first, second, reboot].into());
    assert_eq!(sim.sweep(), ["expected_link_down: went down once for 20s; cause: reboot"]);
    assert_eq!(sim.sweep(), NONE);
}

#[test]
fn each_loss_has_its_own_time_and_length() {
    let mut sim = Simulation::new();
    let loss = |number: u32, second: u64| Loss {
        number,
        times: 1,
        expected: None,
        by_node: false,
        at: Moment(second * 1_000_000_000),
        until: Some(Moment((second + 2) * 1_000_000_000)),
        down: Downtime { least: Duration::from_millis(1_500), most: Duration::from_secs(4) },
        flaps: number,
    };
    sim.link().losses = Some([loss(1, 4), loss(2, 9)].into());
    let began = Moment(30_000_000_000);
    let snapshot = sim.snapshot();
    (snapshot.began, snapshot.ended) = (began, began);
    let events =
        sim.detector.update(&sim.observation, SystemTime::UNIX_EPOCH + Duration::from_secs(30));
    let times =
        events.iter().map(|it| it.at.duration_since(SystemTime::UNIX_EPOCH).unwrap().as_secs());
    assert_eq!(times.collect::<Vec<_>>(), [4, 9]);
    assert_eq!(
        events[1].detail,
        json!({
            "losses": 1, "flaps": 2, "up_again": "1970-01-01T00:00:11.000Z",
            "down_seconds": 1.5, "down_max_seconds": 4.0, "cause": "link",
            "counted_at": "1970-01-01T00:00:30.000Z",
        })
    );
}

#[test]
fn only_verdicts_from_watch_on_are_events() {
    let mut sim = Simulation::new();
    sim.link().verdict = Verdict::Ok;
    assert_eq!(sim.sweep(), NONE, "from unknown to ok");
    sim.link().reasons.add(Reason::UpstreamErrors, Verdict::Bad);
    sim.link().reasons.add(Reason::Victim, Verdict::Ok);
    sim.link().verdict = Verdict::Bad;
    let events = sim.sweep();
    assert!(
        events[0].starts_with("verdict_changed: from ok to bad: ")
            && events[0].contains("marked bad"),
        "{events:?}"
    );
    assert!(!events[0].contains("victim") && events.len() == 1, "{events:?}");
    sim.link().verdict = Verdict::Ok;
    sim.link().reasons = Reasons::default();
    assert_eq!(sim.sweep(), ["verdict_changed: from bad to ok"]);
}

#[test]
fn rate_change_across_a_down_link_is_an_event() {
    let mut sim = Simulation::new();
    let ends = sim.link().link;
    let was = *sim.snapshot().status(ends.low).unwrap();
    let set = |sim: &mut Simulation, fresh: PortRead| {
        for port in ends.ports() {
            sim.snapshot().statuses[port] = fresh;
        }
    };
    set(&mut sim, PortRead::Unknown);
    assert_eq!(sim.sweep(), NONE);
    let narrow = PortStatus { width: Some(Width::X1), ..was };
    set(&mut sim, PortRead::Ok(narrow));
    assert_eq!(sim.sweep(), ["rate_changed: from 4x EDR to 1x EDR"]);
    assert_eq!(sim.sweep(), NONE);
}

#[test]
fn change_of_master_names_the_nodes() {
    let mut sim = Simulation::new();
    for (changes, guid, event) in [
        (1, 2, "master_changed: to node 2"),
        (1, 2, ""),
        (2, 3, "master_changed: from node 2 to node 3"),
        (3, 9, "master_changed: from node 3 to an unknown node"),
    ] {
        sim.observation.stats.mastership = Mastership { master: Some(end(guid, 1)), changes };
        assert_eq!(sim.sweep().join("\n"), event, "{changes} {guid}");
    }
}

#[test]
fn failed_sweep_reports_no_node_down() {
    let mut sim = Simulation::new();
    sim.answer(false);
    sim.snapshot().silent.fill(true);
    sim.link().up = Some(false);
    assert_eq!(
        sim.sweep(),
        ["sweep_failed: all requests fail: changes in the fabric are not detected"]
    );
    assert_eq!(sim.sweep(), NONE);
    sim.answer(true);
    sim.snapshot().silent.fill(false);
    sim.link().up = Some(true);
    assert_eq!(sim.sweep(), ["sweep_recovered: requests succeed again"]);
    sim.snapshot().silent[NodeIndex(2)] = true;
    assert_eq!(sim.sweep(), ["node_down: does not respond"]);
    sim.snapshot().silent[NodeIndex(2)] = false;
    assert_eq!(sim.sweep(), ["node_up: responds again"]);
}

#[test]
fn resets_of_one_node_are_one_event() {
    let mut sim = Simulation::new();
    // The switch has its ports in the first places.
    for place in 0..3 {
        sim.observation.assessment.ports[PortIndex(place)].counters.resets += 1;
    }
    assert_eq!(sim.sweep(), ["counter_reset: counters of 3 ports were cleared or reset"]);
    // That of another node.
    sim.observation.assessment.ports[PortIndex(3)].counters.resets += 1;
    assert_eq!(sim.sweep(), ["counter_reset: counters were cleared or reset"]);
    assert_eq!(sim.sweep(), NONE);
}

#[test]
fn repeated_resets_are_reported_once() {
    let mut sim = Simulation::new();
    let reset = "counter_reset: counters of 3 ports were cleared or reset";
    let again =
        format!("{reset} again after 15s; no more of these are reported until none is seen for 1h");
    let mut clear = |pause: u32| {
        let quiet = (1..pause).flat_map(|_| sim.sweep()).collect::<Vec<_>>();
        assert_eq!(quiet, NONE);
        for place in 0..3 {
            sim.observation.assessment.ports[PortIndex(place)].counters.resets += 1;
        }
        sim.sweep()
    };
    assert_eq!(clear(1), [reset]);
    assert_eq!(clear(1), [again]);
    for _ in 0..1000 {
        assert_eq!(clear(1), NONE);
    }
    // An hour has 240 sweeps.
    assert_eq!(clear(240), NONE);
    assert_eq!(clear(241), [reset]);
}

#[test]
fn paused_congestion_is_one_event() {
    let mut sim = Simulation::new();
    let root = PortIndex(1);
    let (ports, roots, share, level) = (3, 1, 0.3, Level::High);
    let region = Region { root, ports, roots, share, level, since: Moment(0) };
    let began =
        "congestion_start: node 2 (cause unknown): 3 ports wait, up to 30% of the time (high)";
    sim.observation.assessment.regions = vec![region.clone()];
    assert_eq!(sim.sweep(), [began]);
    for pause in [1, 10, 20] {
        sim.observation.assessment.regions.clear();
        for _ in 0..pause {
            assert_eq!(sim.sweep(), NONE);
        }
        sim.observation.assessment.regions = vec![region.clone()];
        assert_eq!(sim.sweep(), NONE, "after {pause} sweeps without");
    }
    sim.observation.assessment.regions.clear();
    let events: Vec<String> = (0..30).flat_map(|_| sim.sweep()).collect();
    let ended = "congestion_end: over after 8m 30s: up to 3 ports waited, up to 30% of the time";
    assert_eq!(events, [ended]);
    sim.observation.assessment.regions = vec![region];
    assert_eq!(sim.sweep(), [began]);
}

#[test]
fn congestion_ends_after_clock_was_set_back() {
    let mut sim = Simulation::new();
    let (ports, roots, share, level) = (3, 1, 0.3, Level::High);
    let region = Region { root: PortIndex(1), ports, roots, share, level, since: Moment(0) };
    sim.observation.assessment.regions = vec![region];
    assert_eq!(sim.sweep().len(), 1);
    sim.observation.assessment.regions.clear();
    sim.snapshot().anchor.wall -= Duration::from_secs(24 * 3600);
    let events: Vec<String> = (0..30).flat_map(|_| sim.sweep()).collect();
    let ended = "congestion_end: over after one sweep: up to 3 ports waited, up to 30% of the time";
    assert_eq!(events, [ended]);
}

#[test]
fn congestion_has_its_cause_its_victims_and_its_worst_values() {
    let mut sim = Simulation::new();
    let [root, victim] = [end(1, 1), end(3, 1)].map(|it| sim.snapshot().fabric.find(it).unwrap());
    let fabric = Arc::make_mut(&mut sim.snapshot().fabric);
    for (node, host) in [(end(2, 1), "host-a"), (end(3, 1), "host-b")] {
        let node = fabric.port(fabric.find(node).unwrap()).node;
        fabric.nodes[node].host = Some(host.into());
    }
    let set = |sim: &mut Simulation, ports: u32, share: f32, discards: u64| {
        let mut reading = Reading::empty(Moment(0));
        reading.set(Counter::XmitDiscards, 1_000_000 + discards);
        sim.snapshot().readings[root] = Some(reading);
        let assessment = &mut sim.observation.assessment;
        let level = Level::of(share);
        let region = Region { root, ports, roots: 1, share, level, since: Moment(0) };
        assessment.regions = vec![region];
        let found = &mut assessment.ports[root];
        found.role = Some(Role::Root(RootCause::SlowReceiver));
        found.tx = Some(Flow { rate: 1e9, used: 0.25 });
        assessment.ports[victim].role = Some(Role::Victim { of: root });
        sim.detect()
    };
    let [start] = &set(&mut sim, 2, 0.2, 0)[..] else { panic!("one event") };
    assert_eq!(start.text, "slow receiver host-a: 2 ports wait, up to 20% of the time (medium)");
    let detail = json!({
        "cause": "slow_receiver", "host": "host-a", "node": "node 2", "ports": 2, "share": 0.2,
        "level": "medium", "utilization": 0.25, "victims": ["host-b"], "victim_count": 1,
    });
    assert_eq!(start.detail, detail);
    assert_eq!(set(&mut sim, 5, 0.1, 70), []);
    assert_eq!(set(&mut sim, 1, 0.92, 2_637_158), []);
    sim.observation.assessment.regions.clear();
    let events: Vec<NewEvent> = (0..30).flat_map(|_| sim.detect()).collect();
    let [over] = &events[..] else { panic!("one event: {events:?}") };
    assert_eq!(
        over.text,
        "over after 30s: up to 5 ports waited, up to 92% of the time; 2,637,158 packets discarded"
    );
    let [ports, share, level] = ["ports", "share", "level"].map(|key| &over.detail[key]);
    assert_eq!((ports, share, level), (&json!(5), &json!(0.92), &json!("high")));
    let [seconds, discarded] = ["seconds", "discarded_packets"].map(|key| &over.detail[key]);
    assert_eq!((seconds, discarded), (&json!(30), &json!(2_637_158)));
    assert_eq!(
        (&over.detail["host"], &over.detail["victims"]),
        (&json!("host-a"), &json!(["host-b"]))
    );
}

#[test]
fn reported_link_down_reasons_and_changed_cables_are_events() {
    use ib_fabric::hardware::{Hardware, PortHardware, ReadAt};
    use ib_mad::register::{LinkDown, Module};

    let module = |serial: u8| Module {
        kind: 1,
        part_number: *b"MFA7U10-H010    ",
        serial_number: [serial; 16],
        ..Module::default()
    };
    let mut sim = Simulation::new();
    let read = |sim: &mut Simulation, ports: &[(u64, u8, u8, u64)]| {
        let now = Moment((sim.sweep + 2) * 1_000_000_000);
        let mut hardware = Hardware::default();
        for &(node, port, serial, link_downs) in ports {
            let down = LinkDown { blame: 2, remote_reason: 38, ..LinkDown::default() };
            *hardware.port_mut(end(node, port)) = PortHardware {
                module: Some(Arc::new(ReadAt { value: module(serial), at: now })),
                link_down: (link_downs > 0).then(|| Box::new(ReadAt { value: down, at: now })),
                link_downs,
                ..PortHardware::default()
            };
        }
        sim.snapshot().hardware = Arc::new(hardware);
        let anchor = sim.snapshot().anchor;
        for port in sim.snapshot().fabric.clone().port_indexes() {
            let reading = Reading::empty(anchor.moment);
            sim.snapshot().readings[port] = Some(reading);
        }
        sim.detect()
    };
    let set = |sim: &mut Simulation, ports: &[(u64, u8, u8, u64)]| texts(&read(sim, ports));
    // The first reports are what is known at the start.
    assert_eq!(set(&mut sim, &[(1, 1, b'A', 0), (2, 1, b'A', 0), (1, 2, b'B', 0)]), [""; 0]);
    assert_eq!(
        set(&mut sim, &[(1, 1, b'A', 1), (2, 1, b'A', 0), (1, 2, b'B', 0)]),
        ["link_down_reason: remote side, device reset"]
    );
    assert_eq!(set(&mut sim, &[(1, 1, b'A', 1), (2, 1, b'A', 0), (1, 2, b'B', 0)]), [""; 0]);
    // Another cable, then the one from the other port.
    assert_eq!(
        set(&mut sim, &[(1, 1, b'C', 1), (2, 1, b'A', 0), (1, 2, b'B', 0)]),
        ["cable_changed: serial number CCCCCCCCCCCCCCCC (part number MFA7U10-H010) instead of \
          AAAAAAAAAAAAAAAA"]
    );
    let moved = read(&mut sim, &[(1, 1, b'B', 1), (2, 1, b'A', 0)]);
    let seen_at = json!([{"place": "node 1 port 2", "guid": "0x0000000000000001", "port": 2}]);
    let detail = json!({
        "serial": "BBBBBBBBBBBBBBBB", "part": "MFA7U10-H010", "was_serial": "CCCCCCCCCCCCCCCC",
        "seen_at": seen_at, "seen_until": "1970-01-01T00:01:02.000Z",
    });
    assert_eq!(moved[0].detail, detail);
    assert_eq!(
        texts(&moved),
        ["cable_changed: serial number BBBBBBBBBBBBBBBB (part number MFA7U10-H010) instead of \
          CCCCCCCCCCCCCCCC, seen at node 1 port 2 until 1970-01-01T00:01:02.000Z"]
    );
    // Ports of one module report one serial number.
    assert_eq!(set(&mut sim, &[(1, 1, b'B', 1), (2, 1, b'A', 0), (1, 2, b'B', 0)]), [""; 0]);
    let twin = set(&mut sim, &[(1, 1, b'D', 1), (1, 2, b'D', 0)]);
    assert_eq!(twin.len(), 2, "{twin:?}");
    assert!(twin.iter().all(|event| !event.contains("seen at")), "{twin:?}");
    // Also if one of them has no link.
    let mut sim = Simulation::new();
    let port = sim.snapshot().fabric.find(end(1, 1)).unwrap();
    sim.snapshot().statuses[port] = PortRead::Ok(PortStatus::default());
    assert_eq!(set(&mut sim, &[(1, 1, b'D', 0), (1, 2, b'D', 0)]), [""; 0]);
}

/// A sweep as a monitor publishes it, and when it ended.
fn observed((snapshot, assessment): (Snapshot, Assessment)) -> (Observation, SystemTime) {
    let now = snapshot.anchor.wall_of(snapshot.ended);
    let snapshot = Some(Arc::new(snapshot));
    let mut observation = Observation { snapshot, assessment, ..Observation::default() };
    for collector in Collector::ALL {
        observation.stats.set_success(collector, true);
    }
    (observation, now)
}

#[test]
fn planes_of_a_link_have_its_events() {
    let mut planes = PlaneSweeps::sound(PlaneNet::of_four_nodes());
    let mut detector = EventDetector::default();
    let mut observe = |planes: &mut PlaneSweeps| {
        let (observation, now) = observed(planes.sweep());
        let events = detector.update(&observation, now);
        let line = |event: &NewEvent| format!("{} {}", event.kind.label(), event.place);
        events.iter().map(line).collect::<Vec<_>>()
    };
    let host = "node 161 port 1 (sw1p1) – node 177 port 1";
    assert_eq!(observe(&mut planes), NONE);
    // A plane goes down: that degrades the link, which is up.
    planes.take_down(end(0xa3, 1));
    assert_eq!(observe(&mut planes), [format!("verdict_changed {host}")]);
    // The others follow.
    for node in [0xa1, 0xa2, 0xa4] {
        planes.take_down(end(node, 1));
    }
    let events = observe(&mut planes);
    assert_eq!(events, [format!("link_down {host}")]);
    planes.states.clear();
    let events: Vec<String> = (0..8).flat_map(|_| observe(&mut planes)).collect();
    let flaps = events.iter().filter(|event| event.starts_with("flap ")).count();
    let ups = events.iter().filter(|event| event.starts_with("link_up ")).count();
    assert_eq!((flaps, ups), (1, 1), "{events:#?}");
    // The cable is moved to another port of the switch, with all of its planes.
    for plane in 1..=4 {
        planes.net.unplug(end(0xa0 + plane, 1));
        planes.net.links.push((end(0xa0 + plane, 6), end(0xb1, plane as u8)));
    }
    planes.discover();
    let events = observe(&mut planes);
    let of = |kind: &str| events.iter().filter(|event| event.starts_with(kind)).count();
    assert_eq!((of("cable_moved "), of("link_added ")), (1, 0), "{events:#?}");
    // Another cable is plugged in.
    for plane in 1..=4 {
        planes.net.links.push((end(0xa0 + plane, 1), end(0xc0 + plane, 6)));
    }
    planes.discover();
    let events = observe(&mut planes);
    assert_eq!(events, ["link_added node 161 port 1 – node 193 port 6"]);
}

#[test]
fn devices_report_of_a_link_of_planes_in_its_events() {
    use ib_fabric::hardware::{Hardware, PortHardware, ReadAt};
    use ib_mad::register::{LinkDown, Module};

    let mut planes = PlaneSweeps::sound(PlaneNet::of_four_nodes());
    let mut detector = EventDetector::default();
    let mut observe = |serial: u8, link_downs: u64| {
        let (mut snapshot, assessment) = planes.sweep();
        let mut hardware = Hardware::default();
        for node in 0xa1..=0xa4 {
            let value = Module { kind: 1, serial_number: [serial; 16], ..Module::default() };
            let down = LinkDown { blame: 2, remote_reason: 38, ..LinkDown::default() };
            let down = Box::new(ReadAt { value: down, at: snapshot.ended });
            let link_downs = if node == 0xa3 { link_downs } else { 0 };
            *hardware.port_mut(end(node, 1)) = PortHardware {
                module: Some(Arc::new(ReadAt { value, at: snapshot.ended })),
                link_down: (link_downs > 0).then_some(down),
                link_downs,
                ..PortHardware::default()
            };
        }
        snapshot.hardware = Arc::new(hardware);
        let now = snapshot.anchor.wall_of(snapshot.ended);
        let snapshot = Some(Arc::new(snapshot));
        let mut observation = Observation { snapshot, assessment, ..Observation::default() };
        for collector in Collector::ALL {
            observation.stats.set_success(collector, true);
        }
        detector.update(&observation, now)
    };
    assert_eq!(texts(&observe(b'A', 0)), NONE);
    let events = observe(b'A', 1);
    let link = LinkId::between(end(0xa1, 1), end(0xb1, 1));
    assert_eq!(events[0].about, About::Link(link));
    assert_eq!(events[0].place, "node 161 port 1 (sw1p1) – node 177 port 1");
    let text = "link_down_reason: node 163 port 1 (sw1p1): remote side, device reset";
    assert_eq!(texts(&events), [text]);
    // Each plane reports the cable that replaced the other one.
    let events = observe(b'B', 1);
    assert_eq!(events.len(), 1, "{events:?}");
    assert_eq!((events[0].kind.label(), events[0].about), ("cable_changed", end(0xa1, 1).into()));
}

#[test]
fn cages_of_switches_that_share_a_system_guid_are_told_apart() {
    let guid_of_cage = |net: PlaneNet| {
        let mut planes = PlaneSweeps::sound(net);
        let mut detector = EventDetector::default();
        let mut observe = |planes: &mut PlaneSweeps| {
            let (observation, now) = observed(planes.sweep());
            detector.update(&observation, now)
        };
        observe(&mut planes);
        planes.take_down(end(0xa2, 1));
        let events: Vec<_> = (0..40).flat_map(|_| observe(&mut planes)).collect();
        let cages = events.iter().find_map(|event| event.detail.get("cages").cloned());
        cages.unwrap()[0]["guid"].clone()
    };
    assert_eq!(guid_of_cage(PlaneNet::of_four_nodes()), "0x00000000000000a0");
    let mut shared = PlaneNet::of_four_nodes();
    let switches = shared.nodes.iter_mut().filter(|it| it.identity.kind == NodeKind::Switch);
    switches.for_each(|node| node.identity.system_guid = end(0xa0, 1).guid);
    assert_eq!(guid_of_cage(shared), "0x00000000000000a2");
}
