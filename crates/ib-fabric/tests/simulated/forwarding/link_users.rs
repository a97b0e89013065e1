//! The hosts whose packets cross a link.

use ib_fabric::forwarding::cache::ForwardingCache;
use ib_fabric::forwarding::tables_read::Unread;
use ib_mad::{NodeKind, status};
use ib_sim::transport::lock;
use ib_umad::RequestError;

use super::bench::{Bench, Reply};
use super::truth::{Users, assert_true, links, users};

fn truth(bench: &Bench) -> Users {
    users(&lock(&bench.simulation), &bench.fabric)
}

/// Asserts that the users of all links are found, and returns how many SMPs each took.
fn assert_all_links(bench: &mut Bench) -> Vec<usize> {
    let truth = truth(bench);
    let mut sent = Vec::new();
    for link in links(&bench.fabric) {
        bench.cache = ForwardingCache::default();
        let (users, smps) = bench.users(link, 2_000);
        assert!(users.is_complete() && !users.may_differ, "{users:?}");
        for direction in &users.directions {
            assert_true(&bench.fabric, direction, &truth);
        }
        // All is known now.
        let (again, none) = bench.users(link, 2_000);
        assert_eq!((none, again.directions), (0, users.directions));
        sent.push(smps);
    }
    sent
}

#[test]
fn users_of_every_link_are_those_of_all_routes() {
    for lmc in [0, 1] {
        let sent = assert_all_links(&mut Bench::two_levels(lmc));
        assert_eq!(sent.len(), 8 + 8);
        let sent = assert_all_links(&mut Bench::three_levels(lmc));
        assert_eq!(sent.len(), 16 + 16 + 16);
    }
}

#[test]
fn users_are_others_after_a_link_is_lost() {
    for lmc in [0, 1] {
        for (mut bench, lost) in [
            (Bench::two_levels(lmc), "leaf-0-0[3]"),
            (Bench::three_levels(lmc), "agg-0-0[3]"),
            (Bench::three_levels(lmc), "leaf-0-0[3]"),
        ] {
            let before = truth(&bench);
            bench.unplug(lost);
            assert_ne!(before, truth(&bench));
            assert_all_links(&mut bench);
        }
    }
}

#[test]
fn detours_of_a_damaged_tree_are_found() {
    for lmc in [0, 1] {
        let mut bench = Bench::two_levels(lmc);
        // No spine has both of these leaves: their packets go down to another leaf and up again.
        bench.unplug("leaf-0-0[3]");
        bench.unplug("leaf-0-3[4]");
        let (found, _) = bench.routes("host-0", "host-7");
        assert_eq!(found.routes[0].route.as_ref().unwrap().hops.len(), 7);
        assert_all_links(&mut bench);
    }
}

#[test]
fn dragonfly_without_levels_is_searched_in_all_directions() {
    assert_all_links(&mut Bench::new("dragonfly-plus: {groups: 3}", 0));
}

#[test]
fn cable_of_a_host_needs_no_table() {
    let mut bench = Bench::two_levels(0);
    let sent = assert_all_links(&mut bench);
    let at_hosts = links(&bench.fabric).into_iter().zip(sent).filter(|(link, _)| {
        let kinds = link.ports().map(|port| bench.fabric.node_of(port).identity.kind);
        kinds.contains(&NodeKind::Ca)
    });
    let sent: Vec<usize> = at_hosts.map(|(_, smps)| smps).collect();
    assert_eq!(sent, [0; 8]);
}

#[test]
fn what_is_not_read_is_undecided() {
    for lmc in [0, 1] {
        let mut bench = Bench::three_levels(lmc);
        let truth = truth(&bench);
        for link in [bench.link("leaf-0-0", 3), bench.link("agg-0-0", 3)] {
            for max_requests in 0.. {
                bench.cache = ForwardingCache::default();
                let (users, smps) = bench.users(link, max_requests);
                assert!(smps <= max_requests);
                for direction in &users.directions {
                    assert_true(&bench.fabric, direction, &truth);
                }
                if users.read.limit.is_none() {
                    assert!(users.is_complete() && max_requests > 4);
                    break;
                }
                assert!(max_requests < 100, "never complete");
            }
        }
    }
}

#[test]
fn switch_that_refuses_leaves_its_hosts_undecided() {
    for reply in [Reply::status(status::UNSUPPORTED_ATTRIBUTE), Reply::Lost] {
        for switch in ["leaf-1-0", "agg-0-1", "agg-0-0", "core-0-0", "leaf-0-0"] {
            let mut bench = Bench::three_levels(0);
            let truth = truth(&bench);
            bench.on_tables_of(switch, reply.clone());
            let mut failures = 0;
            for link in links(&bench.fabric) {
                let (users, _) = bench.users(link, 2_000);
                for direction in &users.directions {
                    assert_true(&bench.fabric, direction, &truth);
                }
                let is_failed = users.read.failed.iter().any(|failed| {
                    matches!(
                        failed.cause,
                        Unread::Failed(RequestError::Status(_) | RequestError::TimedOut)
                    ) && failed.switch == bench.node(switch)
                });
                assert_eq!(is_failed, !users.read.failed.is_empty());
                failures += usize::from(is_failed);
            }
            assert!(failures > 0, "{switch}");
        }
    }
}

#[test]
fn links_of_one_switch_share_its_table() {
    let mut bench = Bench::three_levels(0);
    let first = bench.link("agg-0-0", 3);
    let (_, smps) = bench.users(first, 2_000);
    let second = bench.link("agg-0-0", 4);
    let (_, more) = bench.users(second, 2_000);
    assert!(more < smps, "{more} after {smps}");
}
