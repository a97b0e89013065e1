//! The loop over a device that goes and comes, and names that change.

use std::sync::atomic::AtomicUsize;
use std::sync::mpsc;
use std::time::Instant;

use super::*;
use crate::config::Settings;
use crate::config::options::Options;
use ib_mad::Lid;
use ib_mad::moment::Anchor;
use ib_mad::node::NodeKind;
use ib_mad::port_info::PortInfo;
use ib_mad::smp::NodeInfo;
use ib_umad::testing::{ROUND_TRIP, Reply, ScriptedTransport, fabric};
use ib_umad::{OutgoingMad, Received, SendError};

/// A wire to a small fabric that breaks when it is told to.
struct Cable {
    scripted: ScriptedTransport,
    breaks: mpsc::Receiver<()>,
    /// What happens to the fabric, as its time goes by.
    story: Box<dyn FnMut(&mut ScriptedTransport) + Send>,
    /// Whether our port has the P_Key to ask with, by the time.
    has_p_key: fn(Moment) -> bool,
}

impl Cable {
    fn new(breaks: mpsc::Receiver<()>) -> Self {
        let nodes = [(NodeKind::Ca, 1), (NodeKind::Switch, 4), (NodeKind::Ca, 1)];
        Cable {
            scripted: ScriptedTransport::new(fabric(&nodes, &[((0, 1), (1, 1)), ((1, 2), (2, 1))])),
            breaks,
            story: Box::new(|_| {}),
            has_p_key: |_| true,
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

    fn has_p_key(&self) -> bool {
        (self.has_p_key)(self.now())
    }

    fn send(&mut self, parcel: &OutgoingMad) -> Result<(), SendError> {
        (self.story)(&mut self.scripted);
        if !parcel.class.is_smp() && !self.has_p_key() {
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
        // Virtual time would let a whole day of sweeps pass while the test looks away.
        std::thread::sleep(Duration::from_micros(50));
        self.scripted.receive(until)
    }
}

fn settings() -> FabricSettings {
    Settings::load(Options::default(), None).unwrap().fabrics.remove(0)
}

/// Waits for something to be on the board.
fn wait_for(board: &watch::Receiver<Board>, what: &str, is: impl Fn(&Observation) -> bool) {
    let limit = Instant::now() + Duration::from_secs(30);
    while !is(&board.borrow().fabrics[0]) {
        assert!(Instant::now() < limit, "waited in vain for {what}");
        std::thread::sleep(Duration::from_millis(2));
    }
}

fn nodes_up(observation: &Observation) -> usize {
    let snapshot = observation.snapshot.as_ref();
    snapshot.map_or(0, |it| it.fabric.node_indexes().filter(|&node| it.is_up(node)).count())
}

#[test]
fn a_device_that_goes_takes_everybody_down_and_brings_them_back() {
    let (board, seen) = watch::channel(Board::from(vec![Arc::new(Observation::default())]));
    let stop = Arc::new(AtomicBool::new(false));
    let monitor = Monitor::new(settings(), None, Arc::new(board), 0, Arc::clone(&stop)).unwrap();
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
        |it: &Observation| Collector::ALL.iter().all(|&collector| it.tally.success(collector));
    wait_for(&seen, "a first sweep", |it| nodes_up(it) == 3 && both(it));
    pull.send(()).unwrap();
    wait_for(&seen, "the loss to be told", |it| {
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

/// Runs a monitor over a script until the board shows what is wanted.
fn run_until(script: impl FnOnce(&mut Cable), what: &str, is: impl Fn(&Observation) -> bool) {
    let (board, seen) = watch::channel(Board::from(vec![Arc::new(Observation::default())]));
    let stop = Arc::new(AtomicBool::new(false));
    let monitor = Monitor::new(settings(), None, Arc::new(board), 0, Arc::clone(&stop)).unwrap();
    let (_never, breaks) = mpsc::channel();
    let mut cable = Cable::new(breaks);
    script(&mut cable);
    let thread = std::thread::spawn(move || monitor.run(cable, || Err("no such device")));
    wait_for(&seen, what, is);
    stop.store(true, Ordering::Relaxed);
    thread.join().unwrap();
}

#[test]
fn a_descriptor_whose_device_was_removed_is_opened_again() {
    let (board, seen) = watch::channel(Board::from(vec![Arc::new(Observation::default())]));
    let stop = Arc::new(AtomicBool::new(false));
    let monitor = Monitor::new(settings(), None, Arc::new(board), 0, Arc::clone(&stop)).unwrap();
    let (_never, breaks) = mpsc::channel();
    let (_nor, later) = mpsc::channel();
    let thread = std::thread::spawn(move || {
        let mut later = Some(later);
        // The kernel keeps the descriptor, and refuses each send.
        let mut first = Cable::new(breaks);
        first.scripted.reply = Box::new(|_| Reply::Refused);
        monitor.run(first, || later.take().map(Cable::new).ok_or("no such device"));
    });
    wait_for(&seen, "the device to be opened again", |it| nodes_up(it) == 3);
    stop.store(true, Ordering::Relaxed);
    thread.join().unwrap();
}

#[test]
fn an_own_port_that_does_not_answer_its_own_host_is_diagnosed_and_asked_less_often() {
    // `run_until` has no second wire to open.
    let asked = Arc::new(AtomicUsize::new(0));
    let count = Arc::clone(&asked);
    run_until(
        |cable| {
            cable.scripted.reply = Box::new(move |_| {
                count.fetch_add(1, Ordering::Relaxed);
                Reply::Expired
            });
        },
        "two hundred sweeps with few discoveries",
        |it| {
            it.tally.sweeps >= 200
                && it.tally.discoveries * 10 < it.tally.sweeps
                && it.tally.m_key_suspected
        },
    );
    // 200 sweeps are 50 minutes.
    let asked = asked.load(Ordering::Relaxed);
    assert!(asked < 100, "{asked} SMPs to a port that refuses");
}

#[test]
fn what_is_known_stays_hidden_while_our_own_port_does_not_answer_subnet_management() {
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
        |it| it.tally.m_key_suspected && it.tally.discoveries >= 3 && nodes_up(it) == 3,
    );
}

#[test]
fn the_m_key_suspicion_stays_when_our_own_port_info_is_lost() {
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
        |it| it.tally.discoveries >= 8 && it.tally.m_key_suspected,
    );
}

#[test]
fn a_p_key_that_vanishes_is_told_as_a_partition_and_not_as_hosts_that_are_gone() {
    run_until(
        |cable| cable.has_p_key = |now| now.since(Moment(0)) < Duration::from_secs(120),
        "the partition to be suspected",
        |it| it.tally.sweeps > 10 && it.tally.partition_suspected,
    );
}

#[test]
fn a_gap_is_looked_into_again_and_not_for_ever() {
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
        |it| nodes_up(it) == 3 && it.tally.discoveries == 3,
    );
    // One that never answers is asked less and less often: 15 s, 30 s, 1 min, ... 5 min.
    run_until(
        |cable| {
            cable.scripted.reply = Box::new(|parcel| {
                if parcel.mad.u8(7) == 2 { Reply::Expired } else { Reply::Answered(ROUND_TRIP) }
            });
        },
        "two hundred sweeps with few discoveries",
        |it| it.tally.sweeps >= 200 && it.tally.discoveries * 10 < it.tally.sweeps,
    );
}

#[test]
fn a_flapping_cable_does_not_make_for_a_discovery_each_time() {
    run_until(
        |cable| {
            // The host is plugged in for 15 s, the length of a sweep, and not for another 15.
            cable.story = Box::new(|wire| {
                let plugged = wire.now().0 / 15_000_000_000 % 2 == 0;
                for (near, far) in [((1, 2), (2, 1)), ((2, 1), (1, 2))] {
                    let links = &mut wire.nodes[near.0].links;
                    links.retain(|port, _| plugged || *port != near.1);
                    if plugged {
                        links.insert(near.1, far);
                    }
                }
            });
        },
        "two hundred sweeps with few discoveries",
        |it| it.tally.sweeps >= 200 && it.tally.discoveries * 4 < it.tally.sweeps,
    );
}

#[test]
fn hidden_aggregation_nodes_do_not_make_for_discoveries() {
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
        |it| it.tally.sweeps >= 200 && it.tally.discoveries * 10 < it.tally.sweeps,
    );
}

#[test]
fn what_was_read_by_old_lids_is_dropped_and_read_anew_at_once() {
    run_until(
        |cable| {
            cable.story = Box::new(|wire| {
                if wire.now().since(Moment(0)) > Duration::from_secs(40) {
                    wire.nodes.iter_mut().for_each(|node| node.sm_lid = 9);
                }
            });
        },
        // Before the 5 minutes are over after which it is discovered anyway.
        "the new subnet manager to be noticed",
        |it| it.tally.discoveries == 2 && it.tally.sweeps < 15 && nodes_up(it) == 3,
    );
}

#[test]
fn a_name_map_with_a_mistake_is_refused_at_the_start() {
    let file = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(file.path(), "0x1 \"one\"\nnonsense\n").unwrap();
    let mut settings = settings();
    settings.node_name_map = Some(file.path().to_owned());
    let board = Arc::new(watch::channel(Board::default()).0);
    let error = Monitor::new(settings, None, board, 0, Arc::default()).unwrap_err().to_string();
    assert!(error.contains("line 2") && error.contains("node-name-map"), "{error}");
    std::fs::write(file.path(), b"0x1 \"caf\xe9\"\n").unwrap();
    assert_eq!(names_in(file.path()).unwrap().len(), 1, "not UTF-8 is no mistake");
}

/// Puts a pipe in place of a file: to open it as a file blocks until somebody writes.
fn pipe_at(path: &std::path::Path) {
    std::fs::remove_file(path).unwrap();
    let mode = rustix::fs::Mode::RUSR | rustix::fs::Mode::WUSR;
    let kind = rustix::fs::FileType::Fifo;
    rustix::fs::mknodat(rustix::fs::CWD, path, kind, mode, 0).unwrap();
}

#[test]
fn sweeps_go_on_when_site_files_cannot_be_opened_any_more() {
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
    let (board, seen) = watch::channel(Board::from(vec![Arc::new(Observation::default())]));
    let stop = Arc::new(AtomicBool::new(false));
    let monitor = Monitor::new(settings, None, Arc::new(board), 0, Arc::clone(&stop)).unwrap();
    let (_never, breaks) = mpsc::channel();
    let cable = Cable::new(breaks);
    let thread = std::thread::spawn(move || monitor.run(cable, || Err("no such device")));
    wait_for(&seen, "a first sweep", |it| it.tally.sweeps > 0);
    pipe_at(&work);
    pipe_at(&names);
    let tally = seen.borrow().fabrics[0].tally.clone();
    wait_for(&seen, "twenty sweeps more, with discoveries", |it| {
        it.tally.sweeps > tally.sweeps + 20 && it.tally.discoveries > tally.discoveries + 2
    });
    stop.store(true, Ordering::Relaxed);
    thread.join().unwrap();
}

#[test]
fn sweeps_go_on_while_the_file_system_of_a_site_file_does_not_answer() {
    let source = tempfile::NamedTempFile::new().unwrap();
    let (release, held) = mpsc::channel();
    let held = std::sync::Mutex::new(held);
    let hangs = move |_: &std::path::Path| {
        // The first read comes back, the others never do.
        let _ = held.lock().unwrap().recv();
        Ok(vec![])
    };
    release.send(()).unwrap();
    let (work, _) = SiteFile::open(SiteFileKind::Maintenance, source.path(), hangs).unwrap();
    std::fs::write(source.path(), "changed").unwrap();
    let (board, seen) = watch::channel(Board::from(vec![Arc::new(Observation::default())]));
    let stop = Arc::new(AtomicBool::new(false));
    let mut monitor =
        Monitor::new(settings(), None, Arc::new(board), 0, Arc::clone(&stop)).unwrap();
    monitor.files.work = Some(work);
    let (_never, breaks) = mpsc::channel();
    let cable = Cable::new(breaks);
    let thread = std::thread::spawn(move || monitor.run(cable, || Err("no such device")));
    let read_at = |it: &Observation| it.tally.site_files[SiteFileKind::Maintenance as usize];
    wait_for(&seen, "a first sweep", |it| read_at(it).is_some());
    let first = read_at(&seen.borrow().fabrics[0]);
    wait_for(&seen, "fifty sweeps", |it| it.tally.sweeps > 50);
    assert_eq!(read_at(&seen.borrow().fabrics[0]), first, "it was not read again");
    stop.store(true, Ordering::Relaxed);
    thread.join().unwrap();
    drop(release);
}

/// A wire on which a day goes by as fast as it can be computed.
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
struct Log(Arc<std::sync::Mutex<Vec<u8>>>);

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
fn a_hundred_adapters_that_do_not_answer_are_a_few_lines_a_day() {
    let mut kinds = vec![(NodeKind::Ca, 1), (NodeKind::Switch, 110)];
    kinds.extend([(NodeKind::Ca, 1); 100]);
    let mut links = vec![((0, 1), (1, 110))];
    links.extend((0..100).map(|n| ((1, n as u8 + 1), (2 + n, 1))));
    let mut scripted = ScriptedTransport::new(fabric(&kinds, &links));
    // Half of the adapters say who they are and nothing else, the others nothing at all.
    scripted.reply = Box::new(|parcel| {
        let mad = &parcel.mad;
        let behind = if mad.is_directed() { mad.route_ports().to_vec() } else { Vec::new() };
        let [_, port] = behind[..] else { return Reply::Answered(ROUND_TRIP) };
        let answers = port % 2 == 0 && mad.attribute() == NodeInfo::ID;
        if answers { Reply::Answered(ROUND_TRIP) } else { Reply::Expired }
    });
    let minutes = Duration::from_secs(300);
    let settings = FabricSettings { interval: minutes, discovery_interval: minutes, ..settings() };
    let (board, seen) = watch::channel(Board::from(vec![Arc::new(Observation::default())]));
    let stop = Arc::new(AtomicBool::new(false));
    let monitor = Monitor::new(settings, None, Arc::new(board), 0, Arc::clone(&stop)).unwrap();
    let log = Log::default();
    let written = log.clone();
    let subscriber = tracing_subscriber::fmt()
        .with_max_level(tracing::Level::WARN)
        .with_writer(move || log.clone())
        .finish();
    tracing::subscriber::with_default(subscriber, || {
        monitor.run(Day { scripted, stop }, || Err::<Day, _>("no such device"));
    });
    let tally = seen.borrow().fabrics[0].tally.clone();
    assert!(tally.discoveries > 100 && tally.unanswered_ports >= 50, "{tally:?}");
    let text = String::from_utf8(written.0.lock().unwrap().clone()).unwrap();
    let count = text.lines().count();
    assert!((2..50).contains(&count), "{count} lines, such as:\n{text:.3000}");
}
