//! Routes between hosts.

use std::rc::Rc;
use std::time::Duration;

use ib_fabric::forwarding::cache::ForwardingCache;
use ib_fabric::forwarding::route::RouteBreak;
use ib_fabric::forwarding::route_query::{Endpoints, FoundRoute, RouteQuery};
use ib_fabric::forwarding::tables_read::Unread;
use ib_mad::m_key::{MKey, MKeys};
use ib_mad::smp::SwitchInfo;
use ib_mad::vendor_smp::{AdaptiveRoutingInfo, SmpCapabilities};
use ib_mad::{Lid, Mad, Moment, NodeKind, status};
use ib_sim::scenario::FabricChange;
use ib_sim::transport::lock;
use ib_umad::{OutgoingMad, RequestError};

use super::bench::{Bench, Reply};
use super::truth::{ports_from_host, ports_of};

/// All pairs of hosts.
fn all_pairs(bench: &Bench) -> Vec<Endpoints> {
    let fabric = &bench.fabric;
    let hosts: Vec<_> = fabric
        .node_indexes()
        .filter(|node| fabric.node(*node).identity.kind == NodeKind::Ca)
        .collect();
    let pairs = hosts.iter().flat_map(|from| hosts.iter().map(move |to| (*from, *to)));
    pairs
        .filter(|(from, to)| from != to)
        .flat_map(|(from, to)| Endpoints::between(fabric, from, to))
        .collect()
}

/// Asserts that routes are those of the tables.
fn assert_routes(bench: &Bench, found: &[FoundRoute]) {
    let simulation = lock(&bench.simulation);
    for FoundRoute { ends, route } in found {
        let truth = ports_from_host(&simulation, &bench.fabric, ends.from, ends.to).unwrap();
        let route = route.as_ref().unwrap_or_else(|broken| {
            panic!("{}", broken.describe(&bench.fabric));
        });
        assert_eq!(ports_of(&bench.fabric, &route.hops), truth, "{ends:?}");
        assert_eq!(route.egress_ports().count(), route.hops.len() - 1);
    }
}

#[test]
fn all_pairs_have_the_routes_of_the_tables() {
    for lmc in [0, 1] {
        for (mut bench, pairs) in
            [(Bench::two_levels(lmc), 8 * 7), (Bench::three_levels(lmc), 16 * 15)]
        {
            let wanted = all_pairs(&bench);
            assert_eq!(wanted.len(), pairs << lmc);
            let (found, smps) = bench.routes_of(wanted.clone());
            assert_routes(&bench, &found.routes);
            assert_eq!((found.read.requests, found.may_differ), (smps, false));
            // LIDs of all are in one block. Each switch on a route has sent it, LinearFDBTop and its capabilities.
            let switches = bench.fabric.nodes.iter().filter(|node| node.is_switch()).count();
            assert!(smps <= 3 * switches, "{smps} SMPs to {switches} switches");
            // All is known now.
            let (again, smps) = bench.routes_of(wanted);
            assert_eq!((smps, again.read.requests), (0, 0));
            assert_routes(&bench, &again.routes);
            assert_eq!(again.read.oldest, found.read.oldest);
        }
    }
}

#[test]
fn routes_evade_a_link_that_is_down() {
    for lmc in [0, 1] {
        for (mut bench, uplink) in
            [(Bench::two_levels(lmc), ("leaf-0-0", 3)), (Bench::three_levels(lmc), ("agg-0-0", 3))]
        {
            let wanted = all_pairs(&bench);
            let (before, _) = bench.routes_of(wanted);
            bench.unplug(&format!("{}[{}]", uplink.0, uplink.1));
            let wanted = all_pairs(&bench);
            let (after, smps) = bench.routes_of(wanted);
            assert!(smps > 0, "the tables are other ones");
            assert_routes(&bench, &after.routes);
            assert_ne!(before.routes, after.routes);
        }
    }
}

#[test]
fn each_lid_of_a_host_has_a_route() {
    let mut bench = Bench::two_levels(1);
    let (found, _) = bench.routes("host-0", "host-7");
    let [one, other] = &found.routes[..] else { panic!("{found:?}") };
    assert_eq!(other.ends.to.0, one.ends.to.0 + 1);
    let hops = |found: &FoundRoute| found.route.as_ref().unwrap().hops.clone();
    let names = |found: &FoundRoute| -> Vec<String> {
        let nodes = hops(found).into_iter().map(|hop| bench.fabric.node(hop.node).name.clone());
        nodes.collect()
    };
    assert_eq!(names(one)[1], "leaf-0-0");
    assert_ne!(names(one)[2], names(other)[2], "by both spines");
}

#[test]
fn switches_and_hosts_are_ends_of_routes() {
    let mut bench = Bench::two_levels(0);
    for (from, to, expected) in [
        ("host-0", "host-1", &["host-0", "leaf-0-0", "host-1"][..]),
        ("host-0", "leaf-0-0", &["host-0", "leaf-0-0"]),
        ("leaf-0-0", "host-1", &["leaf-0-0", "host-1"]),
        ("spine-0", "host-0", &["spine-0", "leaf-0-0", "host-0"]),
        ("host-0", "host-0", &["host-0"]),
        ("spine-0", "spine-0", &["spine-0"]),
    ] {
        let (found, _) = bench.routes(from, to);
        let [FoundRoute { route: Ok(route), .. }] = &found.routes[..] else { panic!("{found:?}") };
        let names: Vec<_> =
            route.hops.iter().map(|hop| &*bench.fabric.node(hop.node).name).collect();
        assert_eq!(names, expected);
        assert_eq!(route.hops.last().unwrap().egress, None);
        assert_eq!(route.hops[0].ingress, None);
    }
}

/// Why the route from host-0 to host-7 ends, where, and what the answer says.
fn end_of_route(bench: &mut Bench) -> (RouteBreak, String, String) {
    let (found, _) = bench.routes("host-0", "host-7");
    let [FoundRoute { route: Err(broken), .. }] = &found.routes[..] else { panic!("{found:?}") };
    let end = bench.fabric.node(broken.end().unwrap()).name.clone();
    (broken.cause, end, broken.describe(&bench.fabric))
}

#[test]
fn broken_route_says_where_it_ends() {
    let refused = RequestError::Status(status::UNSUPPORTED_ATTRIBUTE);
    let host_7 = Bench::two_levels(0).lid("host-7");
    for (reply, cause, end) in [
        (Reply::entry(host_7, 255), RouteBreak::NoEntry, "leaf-0-0"),
        (Reply::entry(host_7, 7), RouteBreak::NoSuchPort(7), "leaf-0-0"),
        // Ports 5 and 6 have no cable.
        (Reply::entry(host_7, 6), RouteBreak::NoLink(6), "leaf-0-0"),
        (Reply::entry(host_7, 0), RouteBreak::OtherNode, "leaf-0-0"),
        (Reply::entry(host_7, 2), RouteBreak::OtherNode, "host-1"),
        // Back to the host that sends: it does not forward.
        (Reply::entry(host_7, 1), RouteBreak::OtherNode, "host-0"),
        (
            Reply::status(status::UNSUPPORTED_ATTRIBUTE),
            RouteBreak::NotRead(Unread::Failed(refused)),
            "leaf-0-0",
        ),
        (Reply::Lost, RouteBreak::NotRead(Unread::Failed(RequestError::TimedOut)), "leaf-0-0"),
    ] {
        let mut bench = Bench::two_levels(0);
        bench.on_tables_of("leaf-0-0", reply);
        let (found, at, says) = end_of_route(&mut bench);
        assert_eq!((found, &*at), (cause, end));
        assert_eq!(says, format!("{end}: {cause}"));
    }
}

#[test]
fn loop_of_tables_ends() {
    let mut bench = Bench::two_levels(0);
    let lid = bench.lid("host-7");
    let (found, _) = bench.routes("host-0", "host-7");
    let hops = found.routes[0].route.as_ref().unwrap().hops.clone();
    let spine = bench.fabric.node(hops[2].node).name.clone();
    // The spine sends back to the first leaf.
    bench.cache.clear();
    let back = bench.fabric.port(hops[2].ingress.unwrap()).number;
    bench.on_tables_of(&spine, Reply::entry(lid, back));
    let (cause, end, _) = end_of_route(&mut bench);
    assert_eq!((cause, &*end), (RouteBreak::Loop, "leaf-0-0"));
}

#[test]
fn lid_above_the_top_of_the_table_has_no_route() {
    let mut bench = Bench::two_levels(0);
    let lid = bench.lid("host-7");
    bench.transport.reply = Box::new(move |outgoing| {
        let is_info = outgoing.mad.attribute() == SwitchInfo::ID;
        let change = move |mad: &mut Mad| {
            let info = SwitchInfo::decode(mad);
            SwitchInfo { linear_table_top: lid.0 - 1, ..info }.encode(mad);
        };
        if is_info { Reply::Changed(Rc::new(change)) } else { Reply::Real }
    });
    let (cause, end, _) = end_of_route(&mut bench);
    assert_eq!((cause, &*end), (RouteBreak::NoEntry, "leaf-0-0"));
}

#[test]
fn adaptive_routing_is_seen_where_a_switch_says_so() {
    let enabled = |supported: bool, enabled: Option<bool>| {
        move |outgoing: &OutgoingMad| -> Reply {
            match outgoing.mad.attribute() {
                SmpCapabilities::ID => Reply::Changed(Rc::new(move |mad| {
                    mad.set_status(0);
                    let bit = u32::from(supported) << SmpCapabilities::ADAPTIVE_ROUTING;
                    SmpCapabilities { words: [bit, 0, 0, 0] }.encode(mad);
                })),
                AdaptiveRoutingInfo::ID => match enabled {
                    Some(enabled) => Reply::Changed(Rc::new(move |mad| {
                        mad.set_status(0);
                        AdaptiveRoutingInfo { enabled, fast_recovery: false }.encode(mad);
                    })),
                    None => Reply::Lost,
                },
                _ => Reply::Real,
            }
        }
    };
    for (supported, state, expected) in [
        (false, Some(true), false),
        (true, Some(false), false),
        (true, Some(true), true),
        // Supported, and nothing else is known.
        (true, None, true),
    ] {
        let mut bench = Bench::two_levels(0);
        bench.transport.reply = Box::new(enabled(supported, state));
        let (found, _) = bench.routes("host-0", "host-7");
        assert_eq!(found.may_differ, expected, "{supported} {state:?}");
        assert_routes(&bench, &found.routes);
        let (again, smps) = bench.routes("host-0", "host-7");
        assert_eq!((again.may_differ, smps), (expected, 0));
    }
}

#[test]
fn protected_switches_respond_to_their_m_key() {
    let mut bench = Bench::two_levels(0);
    let nodes = lock(&bench.simulation).net().node_ids().collect();
    bench.apply(FabricChange::SetMKey { nodes, m_key: MKey(0x1234), level: 2 });
    let cause = end_of_route(&mut bench).0;
    let RouteBreak::NotRead(Unread::Failed(error)) = cause else { panic!("{cause:?}") };
    assert!(error.is_no_response(), "{error:?}");
    bench.keys = MKeys::parse("0x1234").unwrap();
    let (found, _) = bench.routes("host-0", "host-7");
    assert_routes(&bench, &found.routes);
}

#[test]
fn planes_have_routes_of_their_own() {
    for shape in ["xdr: {hosts: 8}", "xdr: {hosts: 8, prism: true}"] {
        let mut bench = Bench::new(shape, 0);
        assert!(bench.fabric.routes.is_directed());
        bench.transport.reply = Box::new(|outgoing| {
            assert_eq!(outgoing.lid, Lid::PERMISSIVE, "by directed route");
            Reply::Real
        });
        let (found, smps) = bench.routes("host-0", "host-7");
        assert_eq!((found.routes.len(), smps > 0), (4, true), "{shape}: a port for each plane");
        assert_routes(&bench, &found.routes);
        let of_switches = |found: &FoundRoute| -> Vec<u64> {
            let hops = &found.route.as_ref().unwrap().hops;
            hops[1..hops.len() - 1]
                .iter()
                .map(|hop| bench.fabric.node(hop.node).identity.guid.0)
                .collect()
        };
        if !shape.contains("prism") {
            let mut switches: Vec<_> = found.routes.iter().flat_map(of_switches).collect();
            let all = switches.len();
            switches.sort_unstable();
            switches.dedup();
            assert_eq!((switches.len(), all), (12, 12), "no plane has a switch of another one");
        }
    }
}

#[test]
fn query_that_does_not_run_has_read_nothing() {
    let bench = Bench::two_levels(0);
    let mut cache = ForwardingCache::default();
    let now = Moment::default() + Duration::from_secs(1);
    let ends = Endpoints::between(&bench.fabric, bench.node("host-0"), bench.node("host-7"));
    let query = RouteQuery::new(&bench.fabric, &mut cache, &bench.keys, ends, now);
    let found = query.may_differ(true).finish();
    assert!(found.may_differ);
    assert_eq!((found.read.requests, found.read.oldest), (0, None));
    let Err(broken) = &found.routes[0].route else { panic!("{found:?}") };
    assert_eq!(broken.cause, RouteBreak::NotRead(Unread::Ended));
}
