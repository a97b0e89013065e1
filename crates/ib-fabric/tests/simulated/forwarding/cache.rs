//! What is kept of tables, for how long, and the limits of SMPs.

use std::time::Duration;

use ib_fabric::forwarding::budget::SmpBudget;
use ib_fabric::forwarding::cache::ForwardingCache;
use ib_fabric::forwarding::route::RouteBreak;
use ib_fabric::forwarding::route_query::Routes;
use ib_fabric::forwarding::tables_read::{SmpLimit, Unread};
use ib_sim::scenario::FabricChange;
use ib_sim::transport::lock;

use super::bench::Bench;

fn is_found(found: &Routes) -> bool {
    found.routes.iter().all(|found| found.route.is_ok())
}

#[test]
fn old_entries_are_read_again() {
    let mut bench = Bench::two_levels(0);
    bench.cache = ForwardingCache::new(SmpBudget::default(), Duration::from_secs(300));
    let (first, smps) = bench.routes("host-0", "host-7");
    assert!(is_found(&first) && smps > 0);
    bench.wait(Duration::from_secs(299));
    let (second, none) = bench.routes("host-0", "host-7");
    assert_eq!((none, second.read.oldest), (0, first.read.oldest));
    bench.wait(Duration::from_secs(2));
    let (third, again) = bench.routes("host-0", "host-7");
    assert_eq!(again, smps);
    assert!(third.read.oldest > first.read.oldest);
}

#[test]
fn other_lids_make_all_forgotten() {
    let mut bench = Bench::two_levels(0);
    let (_, smps) = bench.routes("host-0", "host-7");
    let port = {
        let simulation = lock(&bench.simulation);
        let net = simulation.net();
        net.port_ids().find(|port| net.label(*port) == "host-1[1]").unwrap()
    };
    bench.apply(FabricChange::SetMaster { port, reassign_lids: true });
    bench.wait(Duration::from_secs(2));
    bench.discover();
    let (found, again) = bench.routes("host-0", "host-7");
    assert!(is_found(&found));
    // What a switch supports has not changed.
    assert!((1..=smps).contains(&again), "{again}");
}

#[test]
fn host_that_goes_takes_its_blocks_along() {
    // 8 LIDs of each of 24 hosts: three or four blocks.
    let mut bench = Bench::new("fat-tree: {radix: 16, hosts: 24, down: 8, up: 4}", 3);
    for to in ["host-0", "host-9", "host-23"] {
        assert!(is_found(&bench.routes("host-8", to).0));
    }
    let all = bench.cache.len();
    bench.unplug("leaf-0-2[8]");
    // The tables of other LIDs are as they were.
    assert!(!bench.fabric.node(bench.node("host-23")).present());
    assert_eq!(bench.routes("host-8", "host-0").1, 0);
    let left = bench.cache.len();
    assert!((1..all).contains(&left), "{left} of {all}");
}

#[test]
fn links_between_switches_make_all_forgotten() {
    let mut bench = Bench::two_levels(0);
    bench.routes("host-0", "host-7");
    bench.routes("host-2", "host-4");
    let all = bench.cache.len();
    bench.unplug("leaf-0-0[3]");
    let (found, smps) = bench.routes("host-0", "host-1");
    assert!(is_found(&found) && smps > 0);
    assert!(bench.cache.len() < all);
}

#[test]
fn all_queries_share_the_budget_of_a_minute() {
    let mut bench = Bench::two_levels(0);
    bench.cache = ForwardingCache::new(SmpBudget::new(4), Duration::from_secs(3_600));
    let (found, smps) = bench.routes("host-0", "host-7");
    assert_eq!((smps, found.read.limit), (4, Some(SmpLimit::Minute)));
    let broken = found.routes[0].route.as_ref().unwrap_err();
    assert_eq!(broken.cause, RouteBreak::NotRead(Unread::Limit(SmpLimit::Minute)));
    let link = bench.link("leaf-0-1", 3);
    let (users, smps) = bench.users(link, 2_000);
    assert_eq!((smps, users.read.limit), (0, Some(SmpLimit::Minute)));
    assert!(!users.is_complete());
    // 15 seconds later there is one more, and what was read is kept.
    let mut sent = 4;
    while !is_found(&bench.routes("host-0", "host-7").0) {
        bench.wait(Duration::from_secs(15));
        sent += 1;
        assert!(sent < 20, "never complete");
    }
    assert!(sent > 4, "it took more than one minute's budget");
}

#[test]
fn query_has_a_limit_of_its_own() {
    let mut bench = Bench::two_levels(0);
    let link = bench.link("leaf-0-0", 3);
    let (users, smps) = bench.users(link, 3);
    assert_eq!((smps, users.read.limit), (3, Some(SmpLimit::Query)));
    assert!(!users.is_complete());
    let (users, _) = bench.users(link, 2_000);
    assert_eq!((users.is_complete(), users.read.limit), (true, None));
}
