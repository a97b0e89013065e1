//! Routes by the forwarding tables that OpenSM has written on ibsim are those of ibtracert.
//!
//! A test starts itself again on a node of ibsim, where it discovers the fabric and prints the routes between all hosts.

use std::collections::{BTreeMap, HashSet};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use ib_fabric::Fabric;
use ib_fabric::collect::discovery::Discovery as FabricDiscovery;
use ib_fabric::forwarding::cache::ForwardingCache;
use ib_fabric::forwarding::route::Route;
use ib_fabric::forwarding::route_query::{Endpoints, RouteQuery};
use ib_fabric::names::Naming;
use ib_mad::m_key::MKeys;
use ib_mad::{NodeKind, PortKey};
use ib_umad::MadTransport;
use ib_umad::client::{MadClient, SendConfig};
use ib_umad::plan::{QueryPlan, run};
use ib_umad::umad::{PortChoice, Umad};
use process_clock::Clock;
use rig::{Ibsim, OpenSm, topology};
use test_rig as rig;

/// The arguments with which a test starts itself.
const ROUTES: [&str; 4] =
    ["--ignored", "--exact", "--nocapture", "routes_on_ibsim::prints_routes_of_all_pairs"];

/// What begins the line of a route.
const LINE: &str = "route ";

/// A link on a route: the number of the port that sends, and the PortGUID and number of the one that receives.
type Link = (u8, u64, u8);

/// The links of each route, by the LIDs at its ends.
type Routes = BTreeMap<(u16, u16), Vec<Link>>;

fn run_plan(transport: &mut impl MadTransport, plan: &mut impl QueryPlan) {
    let mut client = MadClient::new(SendConfig::default());
    run(plan, &mut client, transport, &AtomicBool::new(false)).unwrap();
}

#[test]
#[ignore = "run by the other tests, on a node of ibsim"]
fn prints_routes_of_all_pairs() {
    if std::env::var_os("IBSIM_SOCKNAME").is_none() {
        return;
    }
    let choice = PortChoice::default();
    let opened = Umad::open_first(Path::new("/sys"), choice, None, Clock::start(), &|_| None, None);
    let (_, mut transport) = opened.unwrap();
    let mut discovery = FabricDiscovery::new(Arc::default(), None, HashSet::new());
    run_plan(&mut transport, &mut discovery);
    let found = discovery.finish().fabric;
    let fabric = Fabric::assemble(found, &Naming::default(), transport.now(), None);
    let mut cache = ForwardingCache::default();
    let (keys, now) = (MKeys::default(), transport.now());
    let hosts: Vec<_> = fabric
        .node_indexes()
        .filter(|node| fabric.node(*node).identity.kind == NodeKind::Ca)
        .collect();
    let mut wanted = Vec::new();
    for from in &hosts {
        for to in hosts.iter().filter(|to| *to != from) {
            wanted.extend(Endpoints::between(&fabric, *from, *to));
        }
    }
    let mut query = RouteQuery::new(&fabric, &mut cache, &keys, wanted, now);
    run_plan(&mut transport, &mut query);
    for found in query.finish().routes {
        let route = match &found.route {
            Ok(route) => route,
            Err(broken) => panic!("{:?}: {}", found.ends, broken.describe(&fabric)),
        };
        let from = fabric.lid_of(found.ends.from).unwrap();
        let links = links(&fabric, route);
        println!("{LINE}{from} {} {links}", found.ends.to);
    }
}

/// The links of a route as words: `2:0x0002c90200000001:7`.
fn links(fabric: &Fabric, route: &Route) -> String {
    let words = route.hops.windows(2).map(|hops| {
        let PortKey { number: egress, .. } = fabric.port_key(hops[0].egress.unwrap());
        let ingress = hops[1].ingress.unwrap();
        let guid = fabric.port(fabric.management_port(ingress)).guid;
        format!("{egress}:{guid}:{}", fabric.port_key(ingress).number)
    });
    words.collect::<Vec<_>>().join(" ")
}

/// The routes that the test prints on the node of the clients.
fn routes(ibsim: &Ibsim) -> Routes {
    let seat = ibsim.seat();
    let program = std::env::current_exe().unwrap();
    let dir = seat.new_dir("routes");
    let mut command = seat.command_in(&program, &dir);
    let limit = Duration::from_secs(120);
    let output = rig::child::run("routes", command.args(ROUTES), &dir, limit);
    assert!(output.status.success(), "{}\n{}", output.stdout, output.stderr);
    // The name of the test is before the first line.
    let printed = output.stdout.lines().filter_map(|line| Some(line.split_once(LINE)?.1));
    let parsed = printed.map(|line| {
        let mut words = line.split(' ');
        let mut lid = || words.next().unwrap().parse().unwrap();
        let ends = (lid(), lid());
        let links = words.map(|word| {
            let mut parts = word.split(':');
            let mut next = || parts.next().unwrap();
            let egress = next().parse().unwrap();
            let guid = u64::from_str_radix(next().trim_start_matches("0x"), 16).unwrap();
            (egress, guid, next().parse().unwrap())
        });
        (ends, links.collect())
    });
    parsed.collect()
}

/// The route that ibtracert prints: a line `[3] -> {0x0002c90200000005}[1]` for each link.
fn traced(ibsim: &Ibsim, (from, to): (u16, u16)) -> Vec<Link> {
    let output = ibsim.tool("ibtracert", &["-n", &from.to_string(), &to.to_string()]);
    let link = |line: &str| -> Option<Link> {
        let (egress, rest) = line.strip_prefix('[')?.split_once("] -> {0x")?;
        let (guid, rest) = rest.split_once("}[")?;
        let ingress = rest.strip_suffix(']')?;
        Some((egress.parse().ok()?, u64::from_str_radix(guid, 16).ok()?, ingress.parse().ok()?))
    };
    let links = output.lines().filter(|line| line.starts_with('['));
    links.map(|line| link(line).unwrap_or_else(|| panic!("ibtracert: {line}"))).collect()
}

/// Compares all routes, and returns them.
/// The routes are those of ibtracert, and those of the tables that OpenSM says it has written.
fn agrees(ibsim: &Ibsim, opensm: &OpenSm, pairs: usize, switches: usize) -> Routes {
    let routes = routes(ibsim);
    assert_eq!(routes.len(), pairs);
    let tables = opensm.forwarding_tables(switches);
    for (ends, links) in &routes {
        assert_eq!(*links, traced(ibsim, *ends), "{ends:?}");
        for pair in links.windows(2) {
            let [(_, switch, _), (egress, ..)] = *pair else { unreachable!() };
            assert_eq!(tables.get(&(switch, ends.1)), Some(&egress), "{ends:?} at {switch:#x}");
        }
    }
    routes
}

/// Compares before and after a link is cut, with an LMC.
fn agrees_before_and_after(net: &str, lmc: u8, link: &str) {
    let ibsim = Ibsim::start(net);
    let hosts = topology::usable_hosts(net).len();
    let pairs = (hosts * (hosts - 1)) << lmc;
    let switches = net.lines().filter(|line| line.starts_with("Switch")).count();
    let opensm = OpenSm::start_with_lmc(&ibsim, lmc);
    let before = agrees(&ibsim, &opensm, pairs, switches);
    drop(opensm);
    ibsim.console(&format!("Unlink {link}"));
    // Another one, so that it is certain when the tables are written.
    let opensm = OpenSm::start_with_lmc(&ibsim, lmc);
    let after = agrees(&ibsim, &opensm, pairs, switches);
    assert_ne!(before, after, "the link carried routes");
    if lmc > 0 {
        let differs = |((from, to), links): (&(u16, u16), &Vec<Link>)| {
            after.get(&(*from, to ^ 1)).is_some_and(|other| other != links)
        };
        assert!(after.iter().any(differs), "each LID of a host has the same route");
    }
}

#[test]
fn routes_in_two_levels_agree_with_ibtracert() {
    for lmc in [0, 1] {
        agrees_before_and_after(&topology::fat_tree_2(6, 8, 2, 2), lmc, r#""leaf-0-0"[3]"#);
    }
}

#[test]
fn routes_in_three_levels_agree_with_ibtracert() {
    for lmc in [0, 1] {
        agrees_before_and_after(&topology::fat_tree_3(4, 8, 2, 2), lmc, r#""agg-0-0"[3]"#);
    }
}

/// The egress ports of each route in the JSON of `route`, by destination LID.
fn egress_of_command(ibsim: &Ibsim, (from, to): (u16, u16)) -> BTreeMap<u64, Vec<u64>> {
    let args = ["route", &from.to_string(), &to.to_string(), "--json"];
    let output = rig::run_to_exit(ibsim, &args);
    assert!(output.status.success(), "{}\n{}", output.stdout, output.stderr);
    let found: serde_json::Value = serde_json::from_str(&output.stdout).unwrap();
    let routes = found["routes"].as_array().unwrap().iter();
    let egress = |route: &serde_json::Value| {
        let hops = route["hops"].as_array().unwrap().iter();
        hops.filter_map(|hop| hop["port"].as_u64()).collect()
    };
    routes.map(|route| (route["lid"].as_u64().unwrap(), egress(route))).collect()
}

#[test]
fn command_sweeps_by_itself_and_agrees_with_ibtracert() {
    for lmc in [0_u8, 1] {
        let net = topology::fat_tree_2(6, 8, 2, 2);
        let ibsim = Ibsim::start(&net);
        let _opensm = OpenSm::start_with_lmc(&ibsim, lmc);
        let (from, to) = *routes(&ibsim).keys().next_back().unwrap();
        let found = egress_of_command(&ibsim, (from, to));
        assert_eq!(found.len(), 1 << lmc, "each LID has a route: {found:?}");
        for (lid, egress) in found {
            let traced = traced(&ibsim, (from, u16::try_from(lid).unwrap()));
            let expected: Vec<u64> = traced.iter().map(|(egress, ..)| u64::from(*egress)).collect();
            assert_eq!(egress, expected, "{from} to {lid}");
        }
        let unknown = rig::run_to_exit(&ibsim, &["route", &from.to_string(), "no-such-host"]);
        assert_eq!(unknown.status.code(), Some(2), "{}", unknown.stderr);
        assert!(unknown.stderr.contains("\"no-such-host\""), "{}", unknown.stderr);
    }
}
