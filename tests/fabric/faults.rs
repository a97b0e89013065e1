//! Faults of the fabric show in the metrics and disappear with their cause; other nodes lose no
//! samples.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use test_rig as rig;

use std::time::{Duration, Instant};

use rig::ground::{Ground, OnIbsim, Site};
use rig::{Exporter, Ibsim, Metrics, OpenSm, Proxy, topology, wait_until};

/// A small fabric.
fn site() -> Site {
    Site::of(topology::fat_tree_2(8, 10, 4, 3))
}

/// A round trip of 20 ms and small windows: a sweep takes most of its second, so that changes of
/// the fabric are in the middle of one.
fn slow_site() -> Site {
    Site {
        flags: &["--fabric.interval=1s", "--fabric.gmp-window=4", "--fabric.gmp-lid-window=1"],
        round_trip: Duration::from_millis(20),
        ..site()
    }
}

/// A larger fabric, which loses two MADs in a thousand.
fn lossy_site() -> Site {
    Site {
        flags: &["--fabric.interval=1s", "--fabric.capture-limit=1"],
        loss_permille: 2,
        ..Site::of(topology::fat_tree_2(40, 300, 22, 18))
    }
}

rig::on_either_ground! {
    counters_are_set_and_cleared: site(),
    switch_cable_is_pulled_and_plugged: site(),
    host_is_unplugged_and_returns: site(),
    unresponsive_node_does_not_affect_others: site(),
    nodes_behind_an_unresponsive_switch_are_read: site(),
    links_change_during_a_sweep: slow_site(),
    new_subnet_manager_reassigns_lids: site(),
    lost_mads_do_not_lose_samples: lossy_site(),
}

fn counters_are_set_and_cleared(ground: &mut impl Ground) {
    // Totals do not fall when counters are cleared.
    for (value, total) in [(4242, 4242), (0, 4242), (10, 4252)] {
        ground.set_one("leaf-0-0", 5, "symbol_errors", value);
        let metrics = ground.two_sweeps_later();
        assert_eq!(ground.port(&metrics, "symbol_errors_total", "leaf-0-0", 5), Some(total));
        assert_eq!(ground.port(&metrics, "symbol_errors_total", "leaf-0-0", 6), Some(0));
    }
}

fn changes(metrics: &Metrics, kind: &str) -> Option<f64> {
    metrics.get("fabric_exporter_fabric_changes_total", &[("kind", kind)])
}

fn switch_cable_is_pulled_and_plugged(ground: &mut impl Ground) {
    let metrics = ground.metrics();
    assert_eq!(ground.port(&metrics, "state", "leaf-0-0", 5), Some(4));
    let ends = [("leaf-0-0".to_owned(), 5), ground.peer("leaf-0-0", 5)];
    let told_peer = |metrics: &Metrics| {
        let id = [("guid", ground.guid("leaf-0-0")), ("port", "5")];
        metrics.sample("infiniband_port_info", &id).unwrap().labels["peer_node"].clone()
    };
    assert_eq!(told_peer(&metrics), ends[1].0);

    ground.unlink("leaf-0-0", 5);
    let metrics = ground.two_sweeps_later();
    for (node, port) in &ends {
        assert_eq!(ground.port(&metrics, "state", node, *port), Some(1));
        assert_eq!(ground.port(&metrics, "physical_state", node, *port), Some(2));
        let rate = ground.port(&metrics, "rate_bytes_per_second", node, *port);
        assert_eq!(rate, None, "no link, no rate");
        let downed = ground.port(&metrics, "link_downed_total", node, *port);
        assert!(downed.is_some(), "its counters stay");
    }
    assert_eq!(told_peer(&metrics), ends[1].0, "the former peer is still reported");
    assert_eq!(changes(&metrics, "link_removed"), Some(1.0));

    ground.relink("leaf-0-0", 5);
    ground.wait_for("the link to come back", |metrics| {
        ground.port(metrics, "state", "leaf-0-0", 5) == Some(4) && ground.is_whole(metrics)
    });
    // The discovery that finds it may wait for the one before.
    ground.wait_for("the link to be discovered", |metrics| {
        changes(metrics, "link_added") == Some(1.0)
    });
    assert_eq!(changes(&ground.two_sweeps_later(), "link_added"), Some(1.0));
}

fn host_is_unplugged_and_returns(ground: &mut impl Ground) {
    let (leaf, leaf_port) = ground.peer("host-5", 1);
    ground.unlink("host-5", 1);
    let metrics = ground.two_sweeps_later();
    assert!(!ground.is_up(&metrics, "host-5"));
    let errors = ground.port(&metrics, "symbol_errors_total", "host-5", 1);
    assert_eq!(errors, None, "absent is not zero");
    assert_eq!(ground.port(&metrics, "state", &leaf, leaf_port), Some(1));
    assert!(ground.is_up(&metrics, "host-4"));

    ground.relink("host-5", 1);
    ground.wait_whole();
}

/// All other nodes are read without errors.
fn others_are_read(ground: &impl Ground, metrics: &Metrics, but: &str) {
    let others = ground.nodes().iter().filter(|(node, ..)| node != but);
    let mut count = 0;
    for (node, ..) in others {
        assert!(ground.is_up(metrics, node), "{node}");
        assert_eq!(ground.port(metrics, "symbol_errors_total", node, 1), Some(0), "{node}");
        count += 1;
    }
    assert_eq!(count, 14);
}

fn unresponsive_node_does_not_affect_others(ground: &mut impl Ground) {
    ground.silence("host-5");
    let metrics = ground.two_sweeps_later();
    assert!(!ground.is_up(&metrics, "host-5"));
    assert_eq!(ground.port(&metrics, "symbol_errors_total", "host-5", 1), None);
    others_are_read(ground, &metrics, "host-5");
    ground.unsilence("host-5");
    ground.wait_whole();
}

fn nodes_behind_an_unresponsive_switch_are_read(ground: &mut impl Ground) {
    // Not the leaf of the exporter or of the subnet manager.
    ground.silence("leaf-0-1");
    let metrics = ground.two_sweeps_later();
    assert!(!ground.is_up(&metrics, "leaf-0-1"));
    assert_eq!(ground.port(&metrics, "symbol_errors_total", "leaf-0-1", 1), None);
    others_are_read(ground, &metrics, "leaf-0-1");
    ground.unsilence("leaf-0-1");
    ground.wait_whole();
}

fn links_change_during_a_sweep(ground: &mut impl Ground) {
    for round in 0..6 {
        if round % 2 == 0 {
            ground.unlink("host-5", 1);
        } else {
            ground.relink("host-5", 1);
        }
        ground.wait_sweeps(1);
        others_are_read(ground, &ground.metrics(), "host-5");
    }
    ground.wait_whole();
    assert_eq!(ground.metrics().get("fabric_exporter_ports_seen", &[]), Some(50.0));
}

fn new_subnet_manager_reassigns_lids(ground: &mut impl Ground) {
    ground.another_master("host-9");
    ground.wait_whole();
    let metrics = ground.two_sweeps_later();
    assert!(ground.is_whole(&metrics));
    assert_eq!(metrics.get("fabric_exporter_ports_seen", &[]), Some(50.0));
    // The response from a new LID is of the right node.
    ground.set_one("host-3", 1, "symbol_errors", 33);
    let metrics = ground.two_sweeps_later();
    for (node, ..) in ground.nodes() {
        let expected = if node == "host-3" { 33 } else { 0 };
        let errors = ground.port(&metrics, "symbol_errors_total", node, 1);
        assert_eq!(errors, Some(expected), "{node}");
    }
}

fn lost_mads_do_not_lose_samples(ground: &mut impl Ground) {
    let whole = ground.metrics().get("fabric_exporter_ports_seen", &[]).unwrap();
    let lost = |metrics: &Metrics| -> f64 {
        metrics
            .all("fabric_exporter_mads_total")
            .filter(|(labels, _)| labels["outcome"] == "timed_out")
            .map(|it| it.1)
            .sum()
    };
    let before = lost(&ground.metrics());
    for _ in 0..5 {
        ground.wait_sweeps(1);
        let metrics = ground.metrics();
        assert_eq!(metrics.get("fabric_exporter_ports_seen", &[]), Some(whole));
        assert_eq!(metrics.get("fabric_exporter_ports_failed", &[]), Some(0.0));
        assert_eq!(metrics.get("fabric_exporter_nodes_failed", &[]), Some(0.0));
    }
    let lost = lost(&ground.metrics()) - before;
    assert!(lost > 5.0, "{lost} MADs were lost: too few for a test");
}

/// A subnet manager needs time to bring links up, and then the exporter a sweep.
const HEALS: Duration = Duration::from_secs(30);

#[test]
fn switch_that_drops_one_attribute_keeps_other_counters() {
    let ground = OnIbsim::new(&site());
    ground.ibsim.console("Error \"leaf-0-1\"[0] 100 18");
    let metrics = ground.two_sweeps_later();
    assert_eq!(ground.port(&metrics, "symbol_errors_total", "leaf-0-1", 1), None);
    assert!(ground.port(&metrics, "transmit_bytes_total", "leaf-0-1", 1).is_some());
    assert_eq!(ground.port(&metrics, "symbol_errors_total", "leaf-0-0", 1), Some(0));
    assert!(ground.is_up(&metrics, "leaf-0-1"), "it responds");
    ground.ibsim.console("Error \"leaf-0-1\"[0] 0");
    ground.wait_whole();
    ground.end();
}

#[test]
fn hanging_subnet_manager_does_not_stop_sweeps() {
    let mut ground = OnIbsim::new(&site());
    ground.opensm.as_mut().unwrap().pause();
    ground.set_one("host-2", 1, "link_downed", 7);
    let metrics = ground.two_sweeps_later();
    assert!(ground.is_whole(&metrics));
    assert_eq!(ground.port(&metrics, "link_downed_total", "host-2", 1), Some(7));
    ground.opensm.as_mut().unwrap().resume();
    assert!(ground.is_whole(&ground.two_sweeps_later()));
    ground.exporter.signal("INT");
    wait_until(HEALS, "the exporter to end", || {
        ground.exporter.log().contains("signal=SIGINT").then_some(())
    });
    ground.end();
}

#[test]
fn ports_are_read_once_a_subnet_manager_runs() {
    let ibsim = Ibsim::start(&topology::fat_tree_2(8, 10, 4, 3));
    let mut exporter = Exporter::start(&ibsim, &["--fabric.interval=1s"]);
    exporter.wait_ready();
    let metrics = exporter.metrics();
    assert_eq!(metrics.get("fabric_exporter_nodes_seen", &[]), Some(10.0 + 3.0 + 2.0));
    assert_eq!(metrics.get("fabric_exporter_ports_seen", &[]), Some(0.0));
    assert_eq!(
        metrics.get("fabric_exporter_collector_success", &[("collector", "perfmgt")]),
        Some(0.0)
    );
    let opensm = OpenSm::start(&ibsim);
    wait_until(HEALS, "counters", || {
        (exporter.metrics().get("fabric_exporter_ports_seen", &[]) == Some(10.0 + 5.0 * 8.0))
            .then_some(())
    });
    assert!(exporter.stop().success());
    drop(opensm);
}

#[test]
fn sigterm_during_a_sweep_exits_quickly() {
    let ibsim = Ibsim::start(&topology::fat_tree_2(8, 10, 4, 3));
    let opensm = OpenSm::start(&ibsim);
    // A round trip of 400 ms: the first discovery alone takes many seconds.
    let proxy = Proxy::between(&ibsim, Duration::from_millis(400), 0);
    let mut exporter = Exporter::start(&proxy, &["--fabric.timeout=1s"]);
    assert_eq!(exporter.get("/-/healthy", &[]).status, 200);
    assert_eq!(exporter.get("/-/ready", &[]).status, 503);
    let began = Instant::now();
    assert!(exporter.stop().success());
    assert!(began.elapsed() < Duration::from_secs(3), "{:?}", began.elapsed());
    drop(opensm);
}
