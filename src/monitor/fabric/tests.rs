//! The monitor over scripted wires: devices that go and come, files that change, and port events.

use std::collections::{HashMap, VecDeque};
use std::path::Path;
use std::sync::Mutex;
use std::sync::atomic::AtomicUsize;
use std::sync::mpsc;
use std::time::Instant;

use super::*;
use crate::config::Settings;
use crate::config::options::Options;
use crate::monitor::names_in;
use crate::monitor::site_file::SiteFile;
use fabric_observation::SiteFileKind;
use ib_mad::hierarchy::{HierarchyInfo, template};
use ib_mad::moment::Anchor;
use ib_mad::node::NodeKind;
use ib_mad::port_event::PortEventKind;
use ib_mad::port_info::PortInfo;
use ib_mad::smp::NodeInfo;
use ib_mad::{Class, Counter, Guid, Lid};
use ib_umad::stats::MadOutcome;
use ib_umad::testing::{ROUND_TRIP, Reply, ScriptedTransport, fabric};
use ib_umad::{LocalPort, OutgoingMad, Received, SendError};

/// A transport to a small fabric that fails on request.
struct Cable {
    scripted: ScriptedTransport,
    breaks: Receiver<()>,
    /// The changes of the fabric over time.
    script: Box<dyn FnMut(&mut ScriptedTransport) + Send>,
    /// Whether our port has the P_Key for requests, by the time.
    has_p_key: fn(Moment) -> bool,
    has_vendor_class: bool,
    /// Whether our device is the one that was opened.
    is_present: bool,
    /// How often the P_Key table was looked at.
    refreshes: Arc<AtomicUsize>,
}

impl Cable {
    fn new(breaks: Receiver<()>) -> Self {
        let nodes = [(NodeKind::Ca, 1), (NodeKind::Switch, 4), (NodeKind::Ca, 1)];
        Cable {
            scripted: ScriptedTransport::new(fabric(&nodes, &[((0, 1), (1, 1)), ((1, 2), (2, 1))])),
            breaks,
            script: Box::new(|_| {}),
            has_p_key: |_| true,
            has_vendor_class: true,
            is_present: true,
            refreshes: Arc::default(),
        }
    }
}

impl MadTransport for Cable {
    fn now(&self) -> Moment {
        self.scripted.now()
    }

    fn anchor(&self) -> Anchor {
        self.scripted.anchor()
    }

    fn local_port(&self) -> LocalPort {
        LocalPort {
            has_p_key: (self.has_p_key)(self.now()),
            has_vendor_class: self.has_vendor_class,
            is_present: self.is_present,
            ..LocalPort::UNKNOWN
        }
    }

    fn refresh(&mut self) {
        self.refreshes.fetch_add(1, Ordering::Relaxed);
        self.scripted.refresh();
    }

    fn send(&mut self, parcel: &OutgoingMad) -> Result<(), SendError> {
        (self.script)(&mut self.scripted);
        if !parcel.class.is_smp() && !self.local_port().has_p_key {
            return Err(SendError::Refused(std::io::Error::other("not in the P_Key table")));
        }
        self.scripted.send(parcel)
    }

    fn receive(&mut self, until: Moment) -> Result<Option<Received>, TransportError> {
        if self.breaks.try_recv().is_ok() {
            return Err(TransportError {
                device: "mlx5_0 port 1".into(),
                problem: "the device is gone".into(),
            });
        }
        // Otherwise virtual time would run through a whole day of sweeps between two checks of the test.
        std::thread::sleep(Duration::from_micros(50));
        self.scripted.receive(until)
    }
}

fn settings() -> FabricSettings {
    Settings::load(Options::default(), None).unwrap().fabrics.remove(0)
}

/// Waits until an observation satisfies a condition.
fn wait_for(shared: &watch::Receiver<SharedState>, what: &str, is: impl Fn(&Observation) -> bool) {
    let limit = Instant::now() + Duration::from_secs(30);
    while !is(&shared.borrow().fabrics[0]) {
        assert!(Instant::now() < limit, "timeout: {what}");
        std::thread::sleep(Duration::from_millis(2));
    }
}

fn nodes_up(observation: &Observation) -> usize {
    let snapshot = observation.snapshot.as_ref();
    snapshot.map_or(0, |it| it.fabric.node_indexes().filter(|&node| it.is_up(node)).count())
}

#[test]
fn front_panel_names_are_read_by_the_first_discovery_only() {
    let (shared, _seen) = watch::channel(SharedState::from(vec![Arc::new(Observation::default())]));
    let stop = Arc::new(AtomicBool::new(false));
    let mut monitor = Monitor::new(settings(), None, Arc::new(shared), 0, stop).unwrap();
    let (_never, breaks) = mpsc::channel();
    let mut cable = Cable::new(breaks);
    cable.scripted.nodes[1].hierarchy = Some(|port| {
        let mut info = HierarchyInfo::empty(template::NDR);
        info.values[1..4].copy_from_slice(&[port.into(), 19, 1]);
        info
    });
    let goes_on = |it: Arc<Observation>, _| it.stats.discoveries < 3;
    monitor.monitor_while(&mut cable, settings().interval, goes_on).unwrap();
    let latest = monitor.latest();
    let fabric = &latest.snapshot.as_ref().unwrap().fabric;
    let port = fabric.find(PortKey::new(Guid(2), 3)).unwrap();
    assert!(fabric.port_label(port).ends_with("port 3 (1/19/3)"), "{}", fabric.port_label(port));
    let asked = cable.scripted.sent.iter().filter(|it| it.mad.attribute() == HierarchyInfo::ID);
    assert_eq!(asked.count(), 4, "each port of the switch once");
}

#[test]
fn lost_device_marks_nodes_down_until_it_is_back() {
    let (shared, seen) = watch::channel(SharedState::from(vec![Arc::new(Observation::default())]));
    let stop = Arc::new(AtomicBool::new(false));
    let monitor = Monitor::new(settings(), None, Arc::new(shared), 0, Arc::clone(&stop)).unwrap();
    let (pull, pulled) = mpsc::channel();
    let (_never, later) = mpsc::channel();
    let thread = std::thread::spawn(move || {
        let mut tries = 0;
        let mut later = Some(later);
        monitor.run(Cable::new(pulled), || {
            tries += 1;
            match later.take_if(|_| tries == 2) {
                Some(breaks) => Ok(Cable::new(breaks)),
                None => Err("no such device"),
            }
        });
    });
    let both =
        |it: &Observation| Collector::ALL.iter().all(|&collector| it.stats.success(collector));
    wait_for(&seen, "a first sweep", |it| nodes_up(it) == 3 && both(it));
    pull.send(()).unwrap();
    wait_for(&seen, "the loss to be published", |it| {
        nodes_up(it) == 0 && it.snapshot.as_ref().is_some_and(|last| last.fabric.nodes.len() == 3)
    });
    assert!(!both(&seen.borrow().fabrics[0]));
    assert_eq!(
        seen.borrow().fabrics[0].snapshot.as_ref().unwrap().readings.iter().flatten().count(),
        0
    );
    wait_for(&seen, "the device to be back", |it| nodes_up(it) == 3 && both(it));
    stop.store(true, Ordering::Relaxed);
    thread.join().unwrap();
}

/// Runs a monitor over a script until an observation satisfies a condition.
fn run_until(script: impl FnOnce(&mut Cable), what: &str, is: impl Fn(&Observation) -> bool) {
    let (shared, seen) = watch::channel(SharedState::from(vec![Arc::new(Observation::default())]));
    let stop = Arc::new(AtomicBool::new(false));
    let monitor = Monitor::new(settings(), None, Arc::new(shared), 0, Arc::clone(&stop)).unwrap();
    let (_never, breaks) = mpsc::channel();
    let mut cable = Cable::new(breaks);
    script(&mut cable);
    let thread = std::thread::spawn(move || monitor.run(cable, || Err("no such device")));
    wait_for(&seen, what, is);
    stop.store(true, Ordering::Relaxed);
    thread.join().unwrap();
}

#[test]
fn descriptor_of_a_removed_device_is_reopened() {
    let (shared, seen) = watch::channel(SharedState::from(vec![Arc::new(Observation::default())]));
    let stop = Arc::new(AtomicBool::new(false));
    let monitor = Monitor::new(settings(), None, Arc::new(shared), 0, Arc::clone(&stop)).unwrap();
    let (_never, breaks) = mpsc::channel();
    let (_nor, later) = mpsc::channel();
    let thread = std::thread::spawn(move || {
        let mut later = Some(later);
        // The kernel keeps the descriptor, and refuses each send.
        let mut first = Cable::new(breaks);
        first.scripted.reply = Box::new(|_| Reply::Refused);
        first.is_present = false;
        monitor.run(first, || later.take().map(Cable::new).ok_or("no such device"));
    });
    wait_for(&seen, "the device to be opened again", |it| nodes_up(it) == 3);
    stop.store(true, Ordering::Relaxed);
    thread.join().unwrap();
}

/// Asserts that a port that does not respond to its own host in this way is diagnosed, and that few requests are sent
/// to it. `run_until` has no second wire to open, so a reopening would end the sweeps.
fn assert_diagnosed_and_backed_off(refuses: fn(&OutgoingMad) -> Option<Reply>) {
    let requests = Arc::new(AtomicUsize::new(0));
    let count = Arc::clone(&requests);
    run_until(
        |cable| {
            cable.scripted.reply = Box::new(move |parcel| match refuses(parcel) {
                Some(refusal) => {
                    count.fetch_add(1, Ordering::Relaxed);
                    refusal
                }
                None => Reply::Answered(ROUND_TRIP),
            });
        },
        "two hundred sweeps with few discoveries",
        |it| {
            it.stats.sweeps >= 200
                && it.stats.discoveries * 10 < it.stats.sweeps
                && it.stats.m_key_suspected
        },
    );
    // 200 sweeps are 50 minutes.
    let requests = requests.load(Ordering::Relaxed);
    assert!(requests < 100, "{requests} SMPs to a port that refuses");
}

#[test]
fn silent_local_port_is_diagnosed_and_backed_off() {
    assert_diagnosed_and_backed_off(|_| Some(Reply::Expired));
}

#[test]
fn local_port_whose_driver_refuses_smps_is_diagnosed_and_backed_off() {
    assert_diagnosed_and_backed_off(|parcel| {
        let is_local = parcel.mad.is_directed() && parcel.mad.route_ports().is_empty();
        is_local.then_some(Reply::Refused)
    });
}

#[test]
fn known_nodes_stay_while_local_port_is_silent() {
    run_until(
        |cable| {
            let mut sent = 0;
            cable.scripted.reply = Box::new(move |parcel| {
                sent += 1;
                let refused = sent > 100 && parcel.class.is_smp();
                if refused { Reply::Expired } else { Reply::Answered(ROUND_TRIP) }
            });
        },
        "a discovery without an answer, and counters of all",
        |it| it.stats.m_key_suspected && it.stats.discoveries >= 3 && nodes_up(it) == 3,
    );
}

#[test]
fn m_key_suspicion_stays_without_local_port_info() {
    // The neighbor never answers, and from the third discovery on our own PortInfo is lost.
    run_until(
        |cable| {
            let mut discoveries = 0;
            cable.scripted.reply = Box::new(move |parcel| {
                let mad = &parcel.mad;
                let is_own = mad.is_directed() && mad.route_ports().is_empty();
                discoveries += usize::from(is_own && mad.attribute() == NodeInfo::ID);
                let is_lost = is_own && mad.attribute() == PortInfo::ID && discoveries > 2;
                if is_lost || mad.is_directed() && !is_own {
                    Reply::Expired
                } else {
                    Reply::Answered(ROUND_TRIP)
                }
            });
        },
        "eight discoveries, and still the suspicion",
        |it| it.stats.discoveries >= 8 && it.stats.m_key_suspected,
    );
}

#[test]
fn lost_p_key_is_reported_as_a_partition() {
    run_until(
        |cable| cable.has_p_key = |now| now.since(Moment(0)) < Duration::from_secs(120),
        "the partition to be suspected",
        |it| it.stats.sweeps > 10 && it.stats.partition_suspected,
    );
}

#[test]
fn no_registers_are_read_without_the_vendor_class() {
    for has_vendor_class in [true, false] {
        let asked = |it: &Observation| {
            let outcomes = MadOutcome::ALL.into_iter();
            outcomes.map(|outcome| it.mads.count(Class::Vendor, outcome)).sum::<u64>()
        };
        run_until(
            |cable| cable.has_vendor_class = has_vendor_class,
            "ten sweeps",
            |it| {
                assert!(has_vendor_class || asked(it) == 0);
                it.stats.sweeps > 10 && (asked(it) > 0 || !has_vendor_class)
            },
        );
    }
}

#[test]
fn p_key_table_is_looked_at_before_each_sweep() {
    let (shared, seen) = watch::channel(SharedState::from(vec![Arc::new(Observation::default())]));
    let mut monitor = Monitor::new(settings(), None, Arc::new(shared), 0, Arc::default()).unwrap();
    let (_never, breaks) = mpsc::channel();
    let mut cable = Cable::new(breaks);
    let refreshes = Arc::clone(&cable.refreshes);
    let lasts = |seen: Arc<Observation>, _| seen.stats.sweeps < 10;
    monitor.monitor_while(&mut cable, Duration::from_secs(15), lasts).unwrap();
    let stats = &seen.borrow().fabrics[0].stats;
    assert_eq!(refreshes.load(Ordering::Relaxed) as u64, stats.sweeps + stats.discoveries);
}

#[test]
fn devices_that_drop_the_vendor_class_suggest_a_vs_key() {
    run_until(
        |cable| {
            let mut kinds = vec![(NodeKind::Ca, 1), (NodeKind::Switch, 64)];
            kinds.extend([(NodeKind::Ca, 1); 40]);
            let mut links = vec![((0, 1), (1, 64))];
            links.extend((0..40).map(|n| ((1, n as u8 + 1), (2 + n, 1))));
            cable.scripted = ScriptedTransport::new(fabric(&kinds, &links));
            cable.scripted.reply = Box::new(|parcel| match parcel.class {
                Class::Vendor => Reply::Expired,
                _ => Reply::Answered(ROUND_TRIP),
            });
        },
        "the VSKey to be suspected",
        |it| it.stats.vs_key_suspected && !it.stats.partition_suspected && nodes_up(it) == 42,
    );
}

#[test]
fn slow_agent_does_not_stretch_each_sweep() {
    run_until(
        |cable| {
            let kinds = [(NodeKind::Ca, 1), (NodeKind::Switch, 64), (NodeKind::Ca, 1)];
            let links = [((0, 1), (1, 1)), ((1, 2), (2, 1))];
            cable.scripted = ScriptedTransport::new(fabric(&kinds, &links));
            cable.scripted.reply = Box::new(|parcel| {
                let is_slow = parcel.lid == Lid(2) && parcel.class != Class::Vendor;
                Reply::Answered(if is_slow { Duration::from_millis(450) } else { ROUND_TRIP })
            });
        },
        "a short sweep with failed ports and no node down",
        |it| {
            let took = |last: &Snapshot| last.ended.since(last.began);
            let is_short = |last| took(last) < Duration::from_secs(6);
            it.stats.sweeps > 2
                && it.stats.failed_ports > 0
                && nodes_up(it) == 3
                && it.snapshot.as_deref().is_some_and(is_short)
        },
    );
}

#[test]
fn discovery_gap_is_retried_with_back_off() {
    // The host behind port 2 does not answer the first discovery, nor the second.
    let mut refusals = 6;
    run_until(
        |cable| {
            cable.scripted.reply = Box::new(move |parcel| {
                let beyond = parcel.mad.u8(7) == 2;
                refusals -= i32::from(beyond);
                if beyond && refusals >= 0 { Reply::Expired } else { Reply::Answered(ROUND_TRIP) }
            });
        },
        "the host to be found",
        |it| nodes_up(it) == 3 && it.stats.discoveries == 3,
    );
    // One that never responds is queried less and less often: 15 s, 30 s, 1 min, ... 5 min.
    run_until(
        |cable| {
            cable.scripted.reply = Box::new(|parcel| {
                if parcel.mad.u8(7) == 2 { Reply::Expired } else { Reply::Answered(ROUND_TRIP) }
            });
        },
        "two hundred sweeps with few discoveries",
        |it| it.stats.sweeps >= 200 && it.stats.discoveries * 10 < it.stats.sweeps,
    );
}

#[test]
fn flapping_cable_does_not_trigger_every_discovery() {
    run_until(
        |cable| {
            // The host is plugged in for 15 s, the length of a sweep, and not for another 15.
            cable.script = Box::new(|transport| {
                let plugged = transport.now().0 / 15_000_000_000 % 2 == 0;
                for (near, far) in [((1, 2), (2, 1)), ((2, 1), (1, 2))] {
                    let links = &mut transport.nodes[near.0].links;
                    links.retain(|port, _| plugged || *port != near.1);
                    if plugged {
                        links.insert(near.1, far);
                    }
                }
            });
        },
        "two hundred sweeps with few discoveries",
        |it| it.stats.sweeps >= 200 && it.stats.discoveries * 4 < it.stats.sweeps,
    );
}

#[test]
fn hidden_aggregation_nodes_trigger_no_discoveries() {
    run_until(
        |cable| {
            let (switch, host) = (NodeKind::Switch, (NodeKind::Ca, 1));
            let mut kinds = vec![host, (switch, 4), (switch, 12)];
            kinds.extend([host; 8]);
            let mut links = vec![((0, 1), (1, 1)), ((1, 2), (2, 12))];
            links.extend((0..8).map(|n| ((2, n as u8 + 1), (3 + n, 1))));
            let mut nodes = fabric(&kinds, &links);
            for node in &mut nodes[3..] {
                node.device_id = 53001;
            }
            // PortStateChange stays set at a switch that is hidden: there is no subnet manager.
            nodes[2].state_change = true;
            cable.scripted = ScriptedTransport::new(nodes);
            // After the first sweep the SMA of the switch at our port hangs; half of the aggregation
            // nodes answer by LID.
            let mut smps = 0;
            cable.scripted.reply = Box::new(move |parcel| {
                smps += u32::from(parcel.class.is_smp());
                let is_directed = parcel.class.is_smp() && parcel.lid == Lid::PERMISSIVE;
                let is_beyond = is_directed && parcel.mad.u8(7) > 0;
                let to_leaf = parcel.class.is_smp() && parcel.lid == Lid(2);
                let to_half = parcel.class.is_smp() && (8..=11).contains(&parcel.lid.0);
                if smps > 200 && (is_beyond || to_leaf || to_half) {
                    Reply::Lost
                } else {
                    Reply::Answered(ROUND_TRIP)
                }
            });
        },
        "two hundred sweeps with few discoveries",
        |it| it.stats.sweeps >= 200 && it.stats.discoveries * 10 < it.stats.sweeps,
    );
}

#[test]
fn sweep_with_changed_lids_is_repeated_at_once() {
    run_until(
        |cable| {
            cable.script = Box::new(|transport| {
                if transport.now().since(Moment(0)) > Duration::from_secs(40) {
                    transport.nodes.iter_mut().for_each(|node| node.sm_lid = 9);
                }
            });
        },
        // Before the 5 minutes are over after which it is discovered anyway.
        "the new subnet manager to be noticed",
        |it| it.stats.discoveries == 2 && it.stats.sweeps < 15 && nodes_up(it) == 3,
    );
}

#[test]
fn invalid_name_map_is_refused_at_start() {
    let file = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(file.path(), "0x1 \"one\"\nnonsense\n").unwrap();
    let mut settings = settings();
    settings.node_name_map = Some(file.path().to_owned());
    let shared = Arc::new(watch::channel(SharedState::default()).0);
    let error = Monitor::new(settings, None, shared, 0, Arc::default()).err().unwrap().to_string();
    assert!(error.contains("line 2") && error.contains("node-name-map"), "{error}");
    std::fs::write(file.path(), b"0x1 \"caf\xe9\"\n").unwrap();
    assert_eq!(names_in(file.path()).unwrap().0.len(), 1, "text that is not UTF-8 is accepted");
}

/// Puts a pipe in place of a file: to open it as a file blocks until there is a writer.
fn pipe_at(path: &Path) {
    std::fs::remove_file(path).unwrap();
    let mode = rustix::fs::Mode::RUSR | rustix::fs::Mode::WUSR;
    let kind = rustix::fs::FileType::Fifo;
    rustix::fs::mknodat(rustix::fs::CWD, path, kind, mode, 0).unwrap();
}

#[test]
fn sweeps_continue_when_site_files_cannot_be_opened() {
    let folder = tempfile::tempdir().unwrap();
    let (work, names) = (folder.path().join("work.yml"), folder.path().join("names"));
    std::fs::write(&work, "- {node: a}").unwrap();
    std::fs::write(&names, "0x1 \"one\"\n").unwrap();
    let settings = FabricSettings {
        maintenance_file: Some(work.clone()),
        node_name_map: Some(names.clone()),
        discovery_interval: Duration::from_secs(30),
        ..settings()
    };
    let (shared, seen) = watch::channel(SharedState::from(vec![Arc::new(Observation::default())]));
    let stop = Arc::new(AtomicBool::new(false));
    let monitor = Monitor::new(settings, None, Arc::new(shared), 0, Arc::clone(&stop)).unwrap();
    let (_never, breaks) = mpsc::channel();
    let cable = Cable::new(breaks);
    let thread = std::thread::spawn(move || monitor.run(cable, || Err("no such device")));
    wait_for(&seen, "a first sweep", |it| it.stats.sweeps > 0);
    pipe_at(&work);
    pipe_at(&names);
    let tally = seen.borrow().fabrics[0].stats.clone();
    wait_for(&seen, "twenty sweeps more, with discoveries", |it| {
        it.stats.sweeps > tally.sweeps + 20 && it.stats.discoveries > tally.discoveries + 2
    });
    stop.store(true, Ordering::Relaxed);
    thread.join().unwrap();
}

#[test]
fn sweeps_continue_while_a_site_file_hangs() {
    let source = tempfile::NamedTempFile::new().unwrap();
    let (release, held) = mpsc::channel();
    let held = Mutex::new(held);
    let hangs = move |_: &Path| {
        // The first read returns, the others never return.
        let _ = held.lock().unwrap().recv();
        Ok(vec![])
    };
    release.send(()).unwrap();
    let work = SiteFile::open(SiteFileKind::Maintenance, Some(source.path()), hangs).unwrap();
    std::fs::write(source.path(), "changed").unwrap();
    let (shared, seen) = watch::channel(SharedState::from(vec![Arc::new(Observation::default())]));
    let stop = Arc::new(AtomicBool::new(false));
    let mut monitor =
        Monitor::new(settings(), None, Arc::new(shared), 0, Arc::clone(&stop)).unwrap();
    monitor.judge.files.maintenance = work;
    let (_never, breaks) = mpsc::channel();
    let cable = Cable::new(breaks);
    let thread = std::thread::spawn(move || monitor.run(cable, || Err("no such device")));
    let read_at = |it: &Observation| it.stats.site_files[SiteFileKind::Maintenance as usize];
    wait_for(&seen, "a first sweep", |it| read_at(it).is_some());
    let first = read_at(&seen.borrow().fabrics[0]);
    wait_for(&seen, "fifty sweeps", |it| it.stats.sweeps > 50);
    assert_eq!(read_at(&seen.borrow().fabrics[0]), first, "it was not read again");
    stop.store(true, Ordering::Relaxed);
    thread.join().unwrap();
    drop(release);
}

/// A transport that simulates a day as fast as it can be computed.
struct Day {
    scripted: ScriptedTransport,
    stop: Arc<AtomicBool>,
}

impl MadTransport for Day {
    fn now(&self) -> Moment {
        self.scripted.now()
    }

    fn anchor(&self) -> Anchor {
        self.scripted.anchor()
    }

    fn local_port(&self) -> LocalPort {
        self.scripted.local_port()
    }

    fn refresh(&mut self) {
        self.scripted.refresh();
    }

    fn send(&mut self, parcel: &OutgoingMad) -> Result<(), SendError> {
        self.scripted.send(parcel)
    }

    fn receive(&mut self, until: Moment) -> Result<Option<Received>, TransportError> {
        if self.now().since(Moment(0)) > Duration::from_secs(23 * 3600) {
            self.stop.store(true, Ordering::Relaxed);
        }
        self.scripted.receive(until)
    }
}

/// What is logged at WARN and above.
#[derive(Clone, Default)]
struct Log(Arc<Mutex<Vec<u8>>>);

impl std::io::Write for Log {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0.lock().unwrap().extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

#[test]
fn hundred_silent_adapters_log_few_lines_per_day() {
    let mut kinds = vec![(NodeKind::Ca, 1), (NodeKind::Switch, 110)];
    kinds.extend([(NodeKind::Ca, 1); 100]);
    let mut links = vec![((0, 1), (1, 110))];
    links.extend((0..100).map(|n| ((1, n as u8 + 1), (2 + n, 1))));
    let mut scripted = ScriptedTransport::new(fabric(&kinds, &links));
    // Half of the adapters respond to NodeInfo only, the others to nothing.
    scripted.reply = Box::new(|parcel| {
        let mad = &parcel.mad;
        let behind = if mad.is_directed() { mad.route_ports().to_vec() } else { Vec::new() };
        let [_, port] = behind[..] else { return Reply::Answered(ROUND_TRIP) };
        let answers = port % 2 == 0 && mad.attribute() == NodeInfo::ID;
        if answers { Reply::Answered(ROUND_TRIP) } else { Reply::Expired }
    });
    let minutes = Duration::from_secs(300);
    let settings = FabricSettings { interval: minutes, discovery_interval: minutes, ..settings() };
    let (shared, seen) = watch::channel(SharedState::from(vec![Arc::new(Observation::default())]));
    let stop = Arc::new(AtomicBool::new(false));
    let monitor = Monitor::new(settings, None, Arc::new(shared), 0, Arc::clone(&stop)).unwrap();
    let log = Log::default();
    let written = log.clone();
    let subscriber = tracing_subscriber::fmt()
        .with_max_level(tracing::Level::WARN)
        .with_writer(move || log.clone())
        .finish();
    tracing::subscriber::with_default(subscriber, || {
        monitor.run(Day { scripted, stop }, || Err::<Day, _>("no such device"));
    });
    let tally = seen.borrow().fabrics[0].stats.clone();
    assert!(tally.discoveries > 100 && tally.unanswered_ports >= 50, "{tally:?}");
    let text = String::from_utf8(written.0.lock().unwrap().clone()).unwrap();
    let count = text.lines().count();
    assert!((2..50).contains(&count), "{count} lines, such as:\n{text:.3000}");
    // Also at this level, at which a span of level info would not be there.
    let has_fabric = |line: &str| line.contains("fabric=\"default\"");
    assert!(text.lines().all(has_fabric), "{text:.3000}");
}

/// A publication: the sweeps until then, whether our link was up, and when.
type Published = (u64, Option<bool>, Moment);

/// A wire in virtual time on which our port reports events while the monitor waits after its third sweep.
struct EventfulTransport {
    scripted: ScriptedTransport,
    events: SyncSender<PortEvent>,
    /// When the events come, in milliseconds after the sweep, and whether the link is up from then on.
    script: VecDeque<(u64, bool)>,
    shared: watch::Receiver<SharedState>,
    published: Arc<Mutex<Vec<Published>>>,
    stop: Arc<AtomicBool>,
}

impl EventfulTransport {
    /// Sends the events that are due, and records what has been published.
    fn step(&mut self) {
        let now = self.now();
        if self.shared.has_changed().unwrap() {
            let latest = Arc::clone(&self.shared.borrow_and_update().fabrics[0]);
            let up = latest.assessment.links.first().and_then(|link| link.up);
            self.published.lock().unwrap().push((latest.stats.sweeps, up, now));
        }
        let sweeps = self.published.lock().unwrap().last().map(|(sweeps, ..)| *sweeps);
        let Some(ended) = self.shared.borrow().fabrics[0].snapshot.as_ref().map(|it| it.ended)
        else {
            return;
        };
        let due = now.since(ended).as_millis() as u64;
        while let Some(&(millis, up)) = self.script.front()
            && sweeps == Some(3)
            && millis <= due
        {
            self.script.pop_front();
            let kind = if up { PortEventKind::PortActive } else { PortEventKind::PortError };
            // The exporter's own port is port 1 of the first node.
            let (guid, port, at) = (self.scripted.nodes[0].guid, Some(1), self.anchor());
            let event =
                PortEvent { at, device: "mlx5_0".into(), guid: Some(Guid(guid)), port, kind };
            let other = PortEvent { guid: Some(Guid(0xdead)), ..event.clone() };
            let _ = [other, event].map(|event| self.events.try_send(event).unwrap());
        }
        if sweeps >= Some(5) {
            self.stop.store(true, Ordering::Relaxed);
        }
    }
}

impl MadTransport for EventfulTransport {
    fn now(&self) -> Moment {
        self.scripted.now()
    }

    fn anchor(&self) -> Anchor {
        self.scripted.anchor()
    }

    fn local_port(&self) -> LocalPort {
        self.scripted.local_port()
    }

    fn refresh(&mut self) {
        self.scripted.refresh();
    }

    fn send(&mut self, parcel: &OutgoingMad) -> Result<(), SendError> {
        self.scripted.send(parcel)
    }

    fn receive(&mut self, until: Moment) -> Result<Option<Received>, TransportError> {
        self.step();
        self.scripted.receive(until)
    }
}

/// What is published between the third and the fourth sweep, by events at these times after the third one, in
/// milliseconds: when, and whether our link is up.
fn published_between_sweeps(events: &[(u64, bool)]) -> Vec<(u64, Option<bool>)> {
    let nodes = [(NodeKind::Ca, 1), (NodeKind::Switch, 4), (NodeKind::Ca, 1)];
    let scripted = ScriptedTransport::new(fabric(&nodes, &[((0, 1), (1, 1)), ((1, 2), (2, 1))]));
    let (shared, seen) = watch::channel(SharedState::from(vec![Arc::new(Observation::default())]));
    let (stop, published) = (Arc::<AtomicBool>::default(), Arc::<Mutex<Vec<_>>>::default());
    let monitor = Monitor::new(settings(), None, Arc::new(shared), 0, Arc::clone(&stop)).unwrap();
    let transport = EventfulTransport {
        scripted,
        events: monitor.event_sender.clone(),
        script: events.iter().copied().collect(),
        shared: seen,
        published: Arc::clone(&published),
        stop,
    };
    monitor.run(transport, || Err::<EventfulTransport, _>("no such device"));
    let published = published.lock().unwrap();
    let third = published.iter().position(|(sweeps, ..)| *sweeps == 3).unwrap();
    let (_, _, swept) = published[third];
    let between = published[third + 1..].iter().take_while(|(sweeps, ..)| *sweeps == 3);
    between.map(|(_, up, at)| (at.since(swept).as_millis() as u64, *up)).collect()
}

#[test]
fn port_event_is_published_before_the_next_sweep() {
    let published = published_between_sweeps(&[(2_000, false), (9_000, true)]);
    let [(down, Some(false)), (up, Some(true))] = published[..] else { panic!("{published:?}") };
    assert!((2_000..2_300).contains(&down) && (9_000..9_300).contains(&up), "{published:?}");
}

#[test]
fn port_event_flood_is_published_once_per_second() {
    // Each 10 ms for 10 s.
    let flood: Vec<_> = (0..1_000).map(|nth| (2_000 + nth * 10, nth % 2 == 1)).collect();
    let published = published_between_sweeps(&flood);
    assert!((8..=12).contains(&published.len()), "{published:?}");
    let times = published.windows(2).map(|pair| pair[1].0 - pair[0].0);
    assert!(times.min() >= Some(1_000), "{published:?}");
}

#[test]
fn waiting_port_events_are_bounded() {
    let shared = Arc::new(watch::channel(SharedState::default()).0);
    let monitor = Monitor::new(settings(), None, shared, 0, Arc::default()).unwrap();
    let sender = monitor.event_sender.clone();
    let at = Anchor { moment: Moment::default(), wall: SystemTime::UNIX_EPOCH };
    let (device, kind) = ("mlx5_0".into(), PortEventKind::PortError);
    let event = PortEvent { at, device, guid: Some(Guid(1)), port: Some(1), kind };
    let sent = (0..10 * MAX_EVENTS).filter(|_| sender.try_send(event.clone()).is_ok()).count();
    assert_eq!(sent, MAX_EVENTS);
    assert_eq!(monitor.events.try_iter().count(), MAX_EVENTS);
}

#[test]
fn lids_swapped_before_each_sweep_publish_no_wrong_counters() {
    let (shared, _seen) = watch::channel(SharedState::from(vec![Arc::new(Observation::default())]));
    let mut monitor = Monitor::new(settings(), None, Arc::new(shared), 0, Arc::default()).unwrap();
    let (_never, breaks) = mpsc::channel();
    let mut cable = Cable::new(breaks);
    let (host, switch) = ((NodeKind::Ca, 1), (NodeKind::Switch, 8));
    let mut links = vec![((0, 1), (1, 8)), ((1, 7), (2, 7))];
    links.extend((0..6).map(|n| ((1 + n / 3, n as u8 % 3 + 1), (3 + n, 1))));
    let kinds = [&[host, switch, switch][..], &[host; 6]].concat();
    cable.scripted = ScriptedTransport::new(fabric(&kinds, &links));
    let mut swapped = Moment(0);
    let is_by_lid = |sent: &OutgoingMad| sent.lid != Lid::PERMISSIVE;
    cable.script = Box::new(move |transport| {
        let [.., before, last] = &transport.sent[..] else { return };
        // The first request of a sweep was sent.
        let pause = transport.now().since(swapped);
        let is_start = !is_by_lid(before) || pause > Duration::from_secs(10);
        // The first sweeps have what is right.
        if is_by_lid(last) && is_start && transport.now().since(Moment(0)).as_secs() > 40 {
            swapped = transport.now();
            for (one, other) in [(1, 2), (4, 7)] {
                let lids = transport.nodes[one].lids.clone();
                transport.nodes[one].lids =
                    std::mem::replace(&mut transport.nodes[other].lids, lids);
            }
        }
    });
    let (mut totals, mut wrong, mut dropped) = (HashMap::new(), 0, 0);
    monitor
        .monitor_while(&mut cable, Duration::from_secs(15), |seen, now| {
            let snapshot = seen.snapshot.as_ref().unwrap();
            for port in snapshot.fabric.port_indexes() {
                let Some(reading) = snapshot.reading(port) else {
                    dropped += usize::from(snapshot.fabric.is_monitored(port));
                    continue;
                };
                let key = (snapshot.fabric.port_key(port), reading.get(Counter::SymbolErrors));
                // None of the counters moves.
                wrong += usize::from(*totals.entry(key.0).or_insert(key.1) != key.1);
            }
            now.since(Moment(0)) < Duration::from_secs(1200)
        })
        .unwrap();
    assert_eq!((wrong, totals.len()), (0, 23));
    assert!(dropped > 100, "{dropped}");
}
