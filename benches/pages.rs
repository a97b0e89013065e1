//! The cost of a page: 60,000 ports of a simulated fabric, requested over HTTP as by a browser.
//!
//! The exporter's own walks read the fabric twice and judge it, and the board that comes of it is served.
//! Timed is the whole way: from the request until the last byte is there. Wanted: less than 100 ms for the
//! overview. `cargo bench --bench pages -- /topology` measures only the addresses that contain this.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::print_stderr)]

mod measure;

use std::collections::HashSet;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant, SystemTime};

use fabric_api::address;
use fabric_api::topology::leaves;
use fabric_exporter::metrics::OwnMetrics;
use fabric_exporter::published::Published;
use fabric_exporter::server::WebApp;
use fabric_observation::Observation;
use ib_fabric::Fabric;
use ib_fabric::collect::agent_cache::AgentCache;
use ib_fabric::collect::discovery::Discovery;
use ib_fabric::collect::sweep::Sweep;
use ib_fabric::names::Naming;
use ib_health::{LimitTable, LinkEvaluator, Verdict};
use ib_mad::Moment;
use ib_mad::pma::OptionalCounters;
use ib_sim::scenario::{Overrides, Scenario};
use ib_sim::simulation::Simulation;
use ib_sim::transport::{SimClock, SimTransport, share};
use ib_umad::MadTransport;
use ib_umad::client::MadClient;
use ib_umad::client::SendConfig;
use ib_umad::plan::run;
use measure::median;

/// The tree of 10,000 hosts of the scale benchmark, with a bad cable.
const SCENARIO: &str = "\
fabric: {fat-tree: {levels: 3, hosts: 10000, radix: 40, down: 20, up: 20}}
traffic: {pattern: across, load: 60%}
way: {round-trip: 0s, per-hop: 0s, jitter: 0s}
timeline:
  - bad-cable: {into: \"leaf-0-1[30]\", ratio: 1e-9}
";

const INTERVAL: Duration = Duration::from_secs(15);

/// Number of requests for each page.
const TIMES: usize = 15;

/// Discovers a simulated fabric, sweeps it and evaluates the sweeps.
fn observed() -> Observation {
    let scenario = Scenario::parse("pages", SCENARIO).unwrap();
    let story = scenario.resolve(&Overrides::default()).unwrap();
    let seat = story.local_ports[0];
    let time = SimClock::Virtual { began: SystemTime::now() };
    let mut transport = SimTransport::new(share(Simulation::new(story)), seat, time);
    let mut client = MadClient::new(SendConfig::default());
    let stop = AtomicBool::new(false);
    let mut discovery = Discovery::new(Arc::default(), None, HashSet::new());
    run(&mut discovery, &mut client, &mut transport, &stop).unwrap();
    let (found, names) = (discovery.finish().fabric, Naming::default());
    let fabric = Arc::new(Fabric::assemble(found, &names, Moment::default(), None));
    let mut agents = AgentCache::new(OptionalCounters { fec: true, ..OptionalCounters::default() });
    let mut evaluator = LinkEvaluator::new(LimitTable::default());
    let mut observation = Observation { fabric: "default".into(), ..Observation::default() };
    for _ in 0..3 {
        let next = transport.now() + INTERVAL;
        let mut sweep = Sweep::new(&fabric, &mut agents, transport.anchor(), true);
        run(&mut sweep, &mut client, &mut transport, &stop).unwrap();
        let (snapshot, assessment) = evaluator.evaluate(sweep.finish().snapshot);
        observation.assessment = assessment;
        observation.snapshot = Some(snapshot.into());
        transport.receive(next).unwrap();
    }
    observation
}

fn main() {
    // `cargo test --benches` requests a list of tests; a benchmark has none.
    if std::env::args().any(|arg| arg == "--list" || arg == "--test") {
        return;
    }
    let mut observation = observed();
    let snapshot = observation.snapshot.clone().unwrap();
    let fabric = &snapshot.fabric;
    let ports = fabric.ports.iter().filter(|port| port.peer.is_some()).count();
    println!(
        "{ports} connected ports, {} nodes, {} links",
        fabric.nodes.len(),
        fabric.links().count()
    );
    let cable = fabric.links().next().unwrap();
    let leaf = fabric.node(leaves(&snapshot)[0]).identity.guid;
    let mut pages = vec![
        "/".to_owned(),
        "/links".into(),
        "/links?text=leaf-0-1".into(),
        "/links?page=300".into(),
        "/links?sort=utilization".into(),
        "/links?format=csv".into(),
        "/switches".into(),
        "/hosts".into(),
        "/traffic".into(),
        "/search?q=host-1".into(),
        address::link("default", fabric.link_id(cable.low).unwrap()),
        address::node("default", fabric.port_key(cable.high).guid),
        "/topology".into(),
        "/topology?mask=temperature".into(),
        format!("/topology?open=group%3A{leaf}&open={leaf}"),
        "/topology.svg".into(),
        "/api/v1/overview".into(),
        "/api/v1/search?q=host-1".into(),
        "/api/v1/links".into(),
        "/api/v1/topology".into(),
    ];
    if let Some(only) = std::env::args().skip(1).find(|argument| argument != "--bench") {
        pages.retain(|page| page.contains(&only));
    }
    let runtime =
        tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    for case in ["as it is", "every cable bad"] {
        if case != "as it is" {
            for link in &mut observation.assessment.links {
                link.verdict = Verdict::Bad;
            }
        }
        let exposition = Published::first(vec![Arc::new(observation.clone())].into());
        let (_sender, latest) = tokio::sync::watch::channel(Arc::new(exposition));
        let site = WebApp::new(latest, OwnMetrics::new(Path::new("/proc")), "/metrics", None);
        let listener = runtime.block_on(tokio::net::TcpListener::bind("127.0.0.1:0")).unwrap();
        let server = listener.local_addr().unwrap();
        runtime.spawn(async move { axum::serve(listener, site.router()).await });
        println!("\n{case:<56} {:>9} {:>9} {:>10}", "median", "worst", "bytes");
        let agent = ureq::Agent::new_with_defaults();
        for page in &pages {
            let mut bytes = 0;
            let times: Vec<f64> = (0..TIMES)
                .map(|_| {
                    let began = Instant::now();
                    let mut answer = agent.get(format!("http://{server}{page}")).call().unwrap();
                    bytes =
                        answer.body_mut().with_config().limit(1 << 30).read_to_vec().unwrap().len();
                    began.elapsed().as_secs_f64() * 1e3
                })
                .collect();
            let worst = times.iter().copied().fold(0.0, f64::max);
            println!("{page:<56} {:>6.1} ms {worst:>6.1} ms {bytes:>10}", median(times));
        }
    }
}
