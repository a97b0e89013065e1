//! Each scenario of the library shows at the right ports, and nowhere else.
//!
//! The exporter's own monitor runs in virtual time, and the tests assert metrics. A sweep begins
//! every 15 s, so the metrics of a few seconds later have all of it.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod chance;
mod clearing;
#[allow(clippy::float_cmp, reason = "gauges hold whole numbers")]
mod keys;
mod links;
mod load;
mod look;
mod managers;
mod moved;
mod nodes;
mod planes;

use test_rig as rig;

use std::collections::BTreeSet;
use std::path::Path;

use look::Run;
use rig::Simulated;

/// The test of each scenario.
macro_rules! library {
    ($($name:literal $test:ident => $effects:path;)+) => {
        const TESTED: &[&str] = &[$($name),+];
        $(#[test]
        fn $test() {
            $effects(&Run::of(Simulated::library($name)));
        })+
    };
}

library! {
    "bad-cable" a_bad_cable_counts_where_its_bits_come_in => links::bad_cable;
    "flapping-link" a_flapping_link_counts_at_both_of_its_ends => links::flapping_link;
    "degraded-link" a_degraded_link_is_slower_and_makes_those_before_it_wait => links::degraded_link;
    "congestion" congestion_shows_from_its_root_up => load::congestion;
    "host-reboot" a_host_that_reboots_begins_anew => nodes::host_reboot;
    "switch-reboot" a_switch_that_reboots_takes_its_hosts_along => nodes::switch_reboot;
    "cleared-counters" counters_fall_where_they_are_cleared => nodes::cleared_counters;
    "dead-switch" a_silent_switch_is_missed_and_nothing_else => nodes::dead_switch;
    "slow-node" those_who_are_slow_cost_nobody_else => nodes::slow_node;
    "lossy-fabric" lost_mads_are_sent_again => nodes::lossy_fabric;
    "miswired" cables_are_seen_where_they_were_plugged => moved::miswired;
    "protected-fabric" without_the_m_key_a_protected_fabric_is_diagnosed_and_left_in_peace => keys::protected_fabric;
    "limited-members" a_partition_that_keeps_all_adapters_from_answering_is_one_finding => keys::limited_members;
    "modules" lanes_and_modules_are_reported_and_no_packet_is_lost => links::modules;
    "xdr-plane-down" other_planes_carry_the_traffic_of_one_that_is_down => planes::plane_down;
    "xdr-plane-errors" errors_of_one_plane_stay_in_it => planes::plane_errors;
    "xdr-swapped-planes" swapped_planes_have_each_others_peers => planes::swapped_planes;
    "xdr-wrong-switch" a_plane_is_seen_at_the_wrong_switch => planes::wrong_switch;
    "xdr-broken-ring" a_broken_ring_takes_no_node_along => planes::broken_ring;
    "xdr-asic-reboot" an_asic_reboots_alone => planes::asic_reboot;
    "xdr-prism" ports_of_a_prism_switch_fail_one_by_one => planes::prism;
    "new-master" a_new_master_shows_and_nobody_is_lost => moved::new_master;
}

#[test]
fn every_scenario_has_a_test() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/scenarios");
    let files: BTreeSet<String> = std::fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().path().file_stem().unwrap().to_str().unwrap().to_owned())
        .collect();
    assert_eq!(files, TESTED.iter().map(|name| (*name).to_owned()).collect());
}
