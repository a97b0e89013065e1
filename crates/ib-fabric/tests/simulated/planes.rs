//! Discoveries and sweeps of simulated fabrics with planes.

use std::sync::Arc;

use ib_fabric::collect::agent_cache::AgentCache;
use ib_fabric::collect::sweep::SweepResult;
use ib_fabric::names::Naming;
use ib_fabric::routes::RouteReason;
use ib_fabric::snapshot::PortRead;
use ib_fabric::{Fabric, Node, PortIndex};
use ib_mad::Moment;
use ib_mad::pma::OptionalCounters;
use ib_sim::scenario::{FabricChange, Overrides, Scenario};
use ib_sim::simulation::Simulation;
use ib_sim::transport::{SharedSimulation, SimClock, SimTransport, lock, share};
use ib_umad::MadTransport;

use super::counting::Counting;
use super::plans::{assembled, discovered, swept};

fn simulated(shape: &str) -> (SharedSimulation, SimTransport) {
    let text = format!("{{fabric: {{xdr: {{{shape}}}}}, traffic: {{pattern: none}}}}");
    let scenario = Scenario::parse("test", &text).unwrap().resolve(&Overrides::default()).unwrap();
    let local_port = scenario.local_ports[0];
    let simulation = share(Simulation::new(scenario));
    let clock = SimClock::Virtual { began: std::time::SystemTime::UNIX_EPOCH };
    (Arc::clone(&simulation), SimTransport::new(simulation, local_port, clock))
}

/// The ports of which a sweep says that they are up or down while the simulation does not, and those of which it knows
/// nothing.
fn wrong_and_unknown(simulation: &SharedSimulation, swept: &SweepResult) -> [Vec<String>; 2] {
    let simulation = lock(simulation);
    let (net, fabric) = (simulation.net(), &swept.snapshot.fabric);
    let (mut wrong, mut unknown) = (Vec::new(), Vec::new());
    for port in fabric.port_indexes().filter(|port| fabric.port(*port).number > 0) {
        let key = fabric.port_key(port);
        let mut nodes = net.node_ids();
        let node = nodes.find(|node| net.node(*node).guid == key.guid).unwrap();
        let real = simulation.port(net.port_by_number(node, key.number).unwrap());
        match swept.snapshot.status(port) {
            Some(status) if status.state != real.state => wrong.push(fabric.port_label(port)),
            Some(_) => {}
            None => unknown.push(fabric.port_label(port)),
        }
    }
    [wrong, unknown]
}

const NOTHING: [Vec<String>; 2] = [Vec::new(), Vec::new()];

#[test]
fn both_kinds_of_switches_are_swept_by_route() {
    for shape in [
        "fnm1-hosts: 1, routers: true",
        "prism: true, two-plane-hosts: 2, ordinary-hosts: 2, routers: true",
    ] {
        let (simulation, mut transport) = simulated(shape);
        let found = discovered(&mut transport);
        assert_eq!((found.failures, &*found.gaps), (0, &[][..]), "{shape}");
        let fabric = assembled(&mut transport);
        assert_eq!(fabric.nodes.len(), lock(&simulation).net().nodes.len(), "{shape}");
        assert_eq!(fabric.routes.reason(), RouteReason::LocalPlanes, "{shape}");
        assert_eq!(fabric.routes.roots().len(), 4, "{shape}");
        let mut agents = AgentCache::default();
        for sweep in 0..4 {
            let swept = swept(&mut transport, &fabric, &mut agents);
            assert_eq!(wrong_and_unknown(&simulation, &swept), NOTHING, "{shape}, {sweep}");
            assert!(!swept.changed && !swept.lids_changed, "{shape}, {sweep}");
            assert_eq!((swept.failed_ports, swept.unconfirmed_switches), (0, 0), "{shape}");
            let managers = swept.snapshot.managers.as_ref().map(Vec::len);
            assert_eq!(managers, Some(1), "{shape}");
            let is_read =
                |port: &PortIndex| matches!(swept.snapshot.statuses[*port], PortRead::Ok(_));
            assert!(fabric.port_indexes().filter(is_read).count() > 100, "{shape}");
        }
    }
}

#[test]
fn plane_that_goes_down_leaves_the_others_readable() {
    let (simulation, mut transport) = simulated("");
    let fabric = assembled(&mut transport);
    let mut agents = AgentCache::default();
    swept(&mut transport, &fabric, &mut agents);
    let local = {
        let simulation = lock(&simulation);
        let net = simulation.net();
        net.port_ids().find(|port| net.label(*port) == "host-0[1]").unwrap()
    };
    let now = transport.now();
    lock(&simulation).apply(now, FabricChange::SetSignal { port: local, up: false });
    let after = swept(&mut transport, &fabric, &mut agents);
    assert!(after.changed);
    assert_eq!(after.unconfirmed_switches, 0);
    let [wrong, unknown] = wrong_and_unknown(&simulation, &after);
    assert_eq!((wrong, unknown), (Vec::new(), vec!["host-0 port 1".to_owned()]));
    // The next discovery begins at the other planes, and still finds all.
    let found = discovered(&mut transport).fabric;
    let again = Fabric::assemble(found, &Naming::default(), now, Some((&fabric, Moment(0))));
    assert_eq!(again.routes.roots().len(), 3);
    assert!(again.nodes.iter().all(Node::present));
    let again = Arc::new(again);
    let after = swept(&mut transport, &again, &mut agents);
    assert_eq!(wrong_and_unknown(&simulation, &after)[0], Vec::<String>::new());
    assert!(!after.changed);
}

/// What a fabric of 162,000 plane ports at switches takes: run with `--ignored --nocapture`, in release.
#[test]
#[ignore = "takes minutes"]
fn cost_at_162_000_plane_ports() {
    // 144 leaves and 140 spines of four nodes, each with 144 planes of ports.
    let (_, mut transport) = simulated("hosts: 576, down: 4, up: 140, spines: 140");
    let began = transport.now();
    let found = discovered(&mut transport);
    let discovery = transport.now().since(began);
    let (steps, failures) = (found.steps, found.failures);
    let started = std::time::Instant::now();
    let mut fabric = None;
    let built = allocation_counter::measure(|| {
        fabric = Some(Fabric::assemble(found.fabric, &Naming::default(), Moment(0), None));
    });
    let fabric = Arc::new(fabric.unwrap());
    let assembled = started.elapsed();
    let switches = fabric.nodes.iter().filter(|node| node.is_switch()).count();
    let ports = fabric.port_indexes().filter(|port| fabric.node_of(*port).is_switch()).count();
    let linked = fabric.port_indexes().filter(|port| fabric.port(*port).peer.is_some()).count();
    println!(
        "{switches} switch nodes with {ports} ports, {linked} ports with links: discovery {steps} SMPs, {failures} \
         failures, {discovery:?}; assembled in {assembled:?}, {} MB kept",
        built.bytes_current >> 20
    );
    let mut agents = AgentCache::new(OptionalCounters::default());
    // Room for all, so that it is not measured.
    let mut transport = Counting { transport, smps: Vec::with_capacity(200_000) };
    for sweep in 0..4 {
        transport.smps.clear();
        let began = transport.now();
        let mut result = None;
        let memory = allocation_counter::measure(|| {
            result = Some(swept(&mut transport, &fabric, &mut agents));
        });
        let swept = result.unwrap();
        println!(
            "sweep {sweep}: {} SMPs, {:.1} per switch node, {:?}, {} unconfirmed, peak {} MB",
            transport.smps.len(),
            transport.smps.len() as f64 / switches as f64,
            transport.now().since(began),
            swept.unconfirmed_switches,
            memory.bytes_max >> 20
        );
    }
}
