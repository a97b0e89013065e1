//! What a monitor answers about routes, on simulated fabrics in virtual time.

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant, SystemTime};

use fabric_api::model::Route;
use fabric_api::route_desk::{RouteDesk, Unanswered};
use fabric_observation::{Observation, SharedState};
use ib_mad::forwarding_table::LinearForwardingTable;
use ib_mad::moment::Anchor;
use ib_mad::{Lid, Moment, NodeKind};
use ib_sim::net::{NodeId, PortId};
use ib_sim::scenario::{Overrides, Scenario};
use ib_sim::simulation::Simulation;
use ib_sim::transport::{SharedSimulation, SimClock, SimTransport, lock, share};
use ib_umad::{LocalPort, MadTransport, OutgoingMad, Received, SendError, TransportError};
use tokio::sync::watch;

use super::Monitor;
use crate::config::Settings;
use crate::config::options::{FabricOptions, Options};

const SHAPE: &str = "fat-tree: {radix: 6, hosts: 8, down: 2, up: 2}";

/// A transport that counts requests for forwarding tables.
struct Counting {
    inner: SimTransport,
    tables: Arc<AtomicUsize>,
}

impl MadTransport for Counting {
    fn now(&self) -> Moment {
        self.inner.now()
    }

    fn anchor(&self) -> Anchor {
        self.inner.anchor()
    }

    fn local_port(&self) -> LocalPort {
        self.inner.local_port()
    }

    fn refresh(&mut self) {
        self.inner.refresh();
    }

    fn send(&mut self, outgoing: &OutgoingMad) -> Result<(), SendError> {
        let is_table = outgoing.mad.attribute() == LinearForwardingTable::query(0).attribute;
        self.tables.fetch_add(usize::from(outgoing.class.is_smp() && is_table), Ordering::Relaxed);
        self.inner.send(outgoing)
    }

    fn receive(&mut self, until: Moment) -> Result<Option<Received>, TransportError> {
        let received = self.inner.receive(until)?;
        if received.is_none() {
            // Nothing happens: virtual time must not run through days meanwhile, on a processor that other tests need.
            std::thread::sleep(Duration::from_micros(100));
        }
        Ok(received)
    }
}

/// A monitor of a simulated fabric that does not run yet.
struct World {
    simulation: SharedSimulation,
    monitor: Monitor,
    transport: Counting,
    desk: RouteDesk,
    states: watch::Receiver<SharedState>,
    stop: Arc<AtomicBool>,
    interval: Duration,
}

/// One that runs until it is dropped.
struct Running {
    simulation: SharedSimulation,
    desk: RouteDesk,
    states: watch::Receiver<SharedState>,
    tables: Arc<AtomicUsize>,
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Drop for Running {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        let ended = self.thread.take().map(JoinHandle::join);
        assert!(!matches!(ended, Some(Err(_))) || std::thread::panicking(), "the monitor panicked");
    }
}

impl World {
    fn new(timeline: &str, fabric: FabricOptions) -> Self {
        let text =
            format!("{{fabric: {{{SHAPE}}}, traffic: {{pattern: none}}, timeline: [{timeline}]}}");
        let scenario = Scenario::parse("test", &text).unwrap();
        let story = scenario.resolve(&Overrides::default()).unwrap();
        let seat = story.local_ports[0];
        let simulation = share(Simulation::new(story));
        let options = Options { fabric, ..Options::default() };
        let settings = Settings::load(options, None).unwrap().fabrics.remove(0);
        let (name, interval) = (settings.name.clone(), settings.interval);
        let blank = Observation { fabric: name.clone(), ..Observation::default() };
        let (sender, states) = watch::channel(SharedState::from(vec![Arc::new(blank)]));
        let stop = Arc::new(AtomicBool::new(false));
        let monitor = Monitor::new(settings, None, Arc::new(sender), 0, Arc::clone(&stop)).unwrap();
        let desk = RouteDesk::new(vec![(name, monitor.question_sender())]);
        let clock =
            SimClock::Virtual { began: SystemTime::UNIX_EPOCH + Duration::from_secs(1_000) };
        let inner = SimTransport::new(Arc::clone(&simulation), seat, clock);
        let transport = Counting { inner, tables: Arc::default() };
        World { simulation, monitor, transport, desk, states, stop, interval }
    }

    fn run(self) -> Running {
        let World { simulation, mut monitor, mut transport, desk, states, stop, interval } = self;
        let (ends, tables) = (Arc::clone(&stop), Arc::clone(&transport.tables));
        let thread = std::thread::spawn(move || {
            let goes_on = |_, _| !ends.load(Ordering::Relaxed);
            monitor.monitor_while(&mut transport, interval, goes_on).unwrap_or_default();
        });
        let mut running = Running { simulation, desk, states, tables, stop, thread: Some(thread) };
        running.wait_for("the first sweep", |it| it.snapshot.is_some());
        running
    }
}

impl Running {
    fn wait_for(&mut self, what: &str, is: impl Fn(&Observation) -> bool) -> Arc<Observation> {
        let limit = Instant::now() + Duration::from_secs(120);
        loop {
            let latest = Arc::clone(&self.states.borrow().fabrics[0]);
            if is(&latest) {
                return latest;
            }
            assert!(Instant::now() < limit, "timeout: {what}");
            std::thread::sleep(Duration::from_millis(2));
        }
    }

    fn state(&self) -> SharedState {
        self.states.borrow().clone()
    }
}

fn block_on<T>(future: impl Future<Output = T>) -> T {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
    runtime.block_on(future)
}

fn label(simulation: &Simulation, port: PortId) -> String {
    simulation.net().label(port)
}

/// The ports that packets to a LID leave by, from a host on, by the simulated tables.
fn truth(simulation: &Simulation, from: PortId, lid: Lid) -> Vec<String> {
    let net = simulation.net();
    let mut ports = vec![label(simulation, from)];
    let mut at: NodeId = net.port(simulation.port(from).cable.unwrap()).node;
    loop {
        let number = simulation.egress(at, lid).unwrap();
        let egress = net.port_by_number(at, number).unwrap();
        ports.push(label(simulation, egress));
        let far = simulation.port(egress).cable.unwrap();
        if net.node_of(far).kind != NodeKind::Switch {
            return ports;
        }
        at = net.port(far).node;
    }
}

/// The LID of each node with one port, by its name.
fn lids(state: &SharedState) -> HashMap<String, Lid> {
    let fabric = &state.fabrics[0].snapshot.as_ref().unwrap().fabric;
    let ports = fabric
        .port_indexes()
        .filter_map(|port| Some((fabric.node_of(port).name.clone(), fabric.lid_of(port)?)));
    ports.collect()
}

fn egress(route: &Route) -> Vec<String> {
    let cables = route.hops.iter().filter_map(|hop| hop.cable.as_ref());
    cables.map(|cable| format!("{}[{}]", cable.from.node, cable.from.port)).collect()
}

/// The ports of hosts that have a cable.
fn hosts(simulation: &Simulation) -> Vec<PortId> {
    let net = simulation.net();
    let has_cable = |port: &PortId| simulation.port(*port).cable.is_some();
    let ports = net.port_ids().filter(|port| net.node_of(*port).kind == NodeKind::Ca);
    ports.filter(has_cable).collect()
}

#[test]
fn routes_of_all_pairs_are_those_of_the_tables() {
    let running = World::new("", FabricOptions::default()).run();
    let (state, desk) = (running.state(), running.desk.clone());
    let pairs: Vec<(PortId, PortId)> = {
        let simulation = lock(&running.simulation);
        let hosts = hosts(&simulation);
        let pair = |from: &PortId| hosts.iter().map(|to| (*from, *to)).collect::<Vec<_>>();
        hosts.iter().flat_map(pair).filter(|(from, to)| from != to).collect()
    };
    assert_eq!(pairs.len(), 56);
    for (from, to) in pairs {
        let ends = [from, to].map(|port| label(&lock(&running.simulation), port));
        let found = block_on(desk.routes(&state.fabrics, None, [&ends[0], &ends[1]])).unwrap();
        let [route] = &found.routes[..] else { panic!("{ends:?}: {found:?}") };
        assert_eq!(route.broken, None, "{ends:?}");
        let expected = truth(&lock(&running.simulation), from, Lid(route.lid));
        assert_eq!(egress(route), expected, "{ends:?}");
        assert!(found.tables.age_seconds.is_some_and(|age| (0.0..=301.0).contains(&age)));
    }
}

#[test]
fn links_that_a_host_crosses_are_those_of_its_routes() {
    let running = World::new("", FabricOptions::default()).run();
    let state = running.state();
    let found = block_on(running.desk.crossed(&state.fabrics, None, "host-0")).unwrap();
    assert_eq!((found.unknown_routes, found.broken_routes), (0, 0), "{found:?}");
    let simulation = lock(&running.simulation);
    let net = simulation.net();
    let all = hosts(&simulation);
    let own = *all.iter().find(|port| label(&simulation, **port) == "host-0[1]").unwrap();
    let lids = lids(&state);
    let lid = |port: PortId| lids[&net.node_of(port).id];
    let (mut sent, mut received) = (BTreeSet::new(), BTreeSet::new());
    for &other in all.iter().filter(|port| **port != own) {
        // Without the cable of the other host.
        let mut there = truth(&simulation, own, lid(other));
        there.pop();
        sent.extend(there);
        received.extend(truth(&simulation, other, lid(own)).into_iter().skip(1));
    }
    let name = |port: &fabric_api::model::PortName| format!("{}[{}]", port.node, port.port);
    let ends =
        |link: &fabric_api::model::CrossedLink| [name(&link.cable.from), name(&link.cable.to)];
    let of = |is: fn(&fabric_api::model::CrossedLink) -> bool, among: &BTreeSet<String>| {
        let links = found.links.iter().filter(|link| is(link));
        let crossed: Vec<[String; 2]> = links.map(ends).collect();
        assert_eq!(crossed.len(), among.len(), "{crossed:?} {among:?}");
        for ends in crossed {
            assert!(ends.iter().any(|end| among.contains(end)), "{ends:?} {among:?}");
        }
    };
    of(|link| link.sends, &sent);
    of(|link| link.receives, &received);
}

#[test]
fn hosts_that_cross_a_bad_cable_are_published_by_themselves() {
    let timeline = "bad-cable: {at: 30s, into: 'leaf-0-1[3]', ratio: 1e-6}";
    let mut running = World::new(&format!("{{{timeline}}}"), FabricOptions::default()).run();
    let latest = running.wait_for("hosts", |it| !it.crossing.is_empty());
    let (id, found) = latest.crossing.iter().next().unwrap();
    assert_eq!(latest.crossing.len(), 1);
    let fabric = &latest.snapshot.as_ref().unwrap().fabric;
    let low = fabric.find(id.low).unwrap();
    let ends = [low, fabric.find(id.high).unwrap()]
        .map(|port| format!("{}[{}]", fabric.node_of(port).name, fabric.port(port).number));
    assert!(ends.contains(&"leaf-0-1[3]".to_owned()), "{ends:?}");
    assert!(!found.is_incomplete() && !found.may_differ, "{found:?}");
    let lids = lids(&running.state());
    let simulation = lock(&running.simulation);
    let net = simulation.net();
    let all = hosts(&simulation);
    for (nth, end) in ends.iter().enumerate() {
        let (mut senders, mut receivers) = (BTreeSet::new(), BTreeSet::new());
        for &from in &all {
            for &to in all.iter().filter(|to| **to != from) {
                let lid = lids[&net.node_of(to).id];
                if truth(&simulation, from, lid).contains(end) {
                    senders.insert(net.node_of(from).id.clone());
                    receivers.insert(net.node_of(to).id.clone());
                }
            }
        }
        assert!(!senders.is_empty(), "{end}");
        let names =
            |names: &[Arc<str>]| names.iter().map(ToString::to_string).collect::<BTreeSet<_>>();
        assert_eq!(names(&found.hosts[nth].senders), senders, "{end}");
        assert_eq!(names(&found.hosts[nth].receivers), receivers, "{end}");
    }
}

#[test]
fn budget_of_nothing_reads_no_table_and_says_so() {
    let options = FabricOptions { forwarding_smps_per_minute: Some(0), ..FabricOptions::default() };
    let timeline = "{bad-cable: {at: 30s, into: 'leaf-0-1[3]', ratio: 1e-6}}";
    let mut running = World::new(timeline, options).run();
    let latest = running.wait_for("a bad link", |it| {
        it.assessment.links.iter().any(|link| link.verdict == ib_health::Verdict::Bad)
    });
    let sweeps = latest.stats.sweeps;
    let later = running.wait_for("five more sweeps", |it| it.stats.sweeps > sweeps + 5);
    assert!(later.crossing.is_empty());
    let state = running.state();
    let (fabrics, desk) = (&state.fabrics, &running.desk);
    let refused = Unanswered::Disabled("default".into());
    let ends = ["host-0", "host-7"];
    assert_eq!(block_on(desk.routes(fabrics, None, ends)), Err(refused.clone()));
    assert_eq!(block_on(desk.crossed(fabrics, None, "host-0")), Err(refused));
    assert_eq!(running.tables.load(Ordering::Relaxed), 0);
}

#[test]
fn what_does_not_exist_is_said_without_a_request() {
    let running = World::new("", FabricOptions::default()).run();
    let state = running.state();
    let (fabrics, desk) = (&state.fabrics, &running.desk);
    for (from, to) in [("host-0", "host-99"), ("nobody", "host-0"), ("host-0", "")] {
        let answer = block_on(desk.routes(fabrics, None, [from, to]));
        assert!(matches!(answer, Err(Unanswered::NotFound(_))), "{from} {to}: {answer:?}");
    }
    let answer = block_on(desk.crossed(fabrics, None, "leaf-0-0")).unwrap_err();
    assert!(answer.to_string().contains("is not a host"), "{answer}");
    let link = "0x1:1-0x2:1".parse().unwrap();
    let answer = block_on(desk.hosts(fabrics, None, link)).unwrap_err();
    assert!(answer.to_string().starts_with("no link has the ID"), "{answer}");
    assert_eq!(running.tables.load(Ordering::Relaxed), 0);
}

#[test]
fn question_whose_caller_has_gone_is_dropped() {
    let world = World::new("", FabricOptions::default());
    // As if a sweep had ended, while the monitor does not run yet.
    let mut swept = (*world.states.borrow().fabrics[0]).clone();
    swept.snapshot = Some(ib_health::testing::snapshot().into());
    let swept = [Arc::new(swept)];
    let ask = world.desk.routes(&swept, None, ["host-0", "host-7"]);
    let answer = block_on(async { tokio::time::timeout(Duration::from_millis(1), ask).await });
    assert!(answer.is_err(), "nobody answers");
    let mut running = world.run();
    running.wait_for("three sweeps", |it| it.stats.sweeps >= 3);
    assert_eq!(running.tables.load(Ordering::Relaxed), 0, "nobody wants to know");
    let state = running.state();
    let found = block_on(running.desk.routes(&state.fabrics, None, ["host-0", "host-7"])).unwrap();
    assert!(running.tables.load(Ordering::Relaxed) > 0 && found.tables.requests > 0);
}
