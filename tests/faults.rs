//! What goes wrong in the fabric shows, and goes again; and costs nobody else a sample.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod rig;

use std::time::{Duration, Instant};

use rig::diags::Discovery;
use rig::{Exporter, Ibsim, Metrics, OpenSm, Proxy, topology, wait_until};

/// A small fabric with everything running on it.
struct Scene {
    exporter: Exporter,
    opensm: OpenSm,
    ibsim: Ibsim,
    found: Discovery,
}

impl Scene {
    fn new(flags: &[&str]) -> Self {
        let ibsim = Ibsim::start(&topology::fat_tree_2(8, 10, 4, 3));
        let opensm = OpenSm::start(&ibsim);
        let found = Discovery::parse(&ibsim.tool("ibnetdiscover", &[]));
        let mut exporter = Exporter::start(&ibsim, &[&["--fabric.interval=1s"], flags].concat());
        exporter.wait_ready();
        Scene { exporter, opensm, ibsim, found }
    }

    fn guid(&self, node: &str) -> String {
        format!("{:#018x}", self.found.node(node).guid)
    }

    fn port(&self, metrics: &Metrics, name: &str, node: &str, port: u8) -> Option<u64> {
        let port = port.to_string();
        metrics.get_u64(
            &format!("infiniband_port_{name}"),
            &[("guid", &self.guid(node)), ("port", &port)],
        )
    }

    fn is_up(&self, metrics: &Metrics, node: &str) -> bool {
        metrics.get("infiniband_node_up", &[("guid", &self.guid(node))]) == Some(1.0)
    }

    /// The metrics two sweeps after something was done.
    fn two_sweeps_later(&self) -> Metrics {
        self.exporter.wait_sweeps(2);
        self.exporter.metrics()
    }

    /// All that can be read of a fabric without faults is read.
    fn is_whole(&self, metrics: &Metrics) -> bool {
        metrics.get("infiniband_nodes_failed", &[]) == Some(0.0)
            && metrics.get("infiniband_ports_failed", &[]) == Some(0.0)
            && self.found.nodes.iter().all(|node| self.is_up(metrics, &node.description))
    }

    fn end(mut self) {
        assert!(self.exporter.stop().success());
    }
}

/// A subnet manager needs its time to bring a link up again; the exporter then needs a sweep.
const HEALS: Duration = Duration::from_secs(30);

#[test]
fn counters_that_are_set_and_cleared() {
    let scene = Scene::new(&[]);
    for value in [4242, 0] {
        scene.ibsim.console(&format!(
            "PerformanceSet \"leaf-0-0\"[5] PortCounters.SymbolErrorCounter={value}"
        ));
        let metrics = scene.two_sweeps_later();
        assert_eq!(scene.port(&metrics, "symbol_errors_total", "leaf-0-0", 5), Some(value));
        assert_eq!(scene.port(&metrics, "symbol_errors_total", "leaf-0-0", 6), Some(0));
    }
    scene.end();
}

#[test]
fn a_cable_between_switches_pulled_and_plugged() {
    let scene = Scene::new(&[]);
    let metrics = scene.exporter.metrics();
    assert_eq!(scene.port(&metrics, "state", "leaf-0-0", 5), Some(4));
    let info = |metrics: &Metrics| {
        let sample = metrics
            .sample("infiniband_port_info", &[("guid", &scene.guid("leaf-0-0")), ("port", "5")]);
        sample.unwrap().labels.clone()
    };
    let peer = info(&metrics)["peer_node"].clone();

    scene.ibsim.console("Unlink \"leaf-0-0\"[5]");
    let metrics = scene.two_sweeps_later();
    assert_eq!(scene.port(&metrics, "state", "leaf-0-0", 5), Some(1));
    assert_eq!(scene.port(&metrics, "physical_state", "leaf-0-0", 5), Some(2));
    assert_eq!(
        scene.port(&metrics, "rate_bytes_per_second", "leaf-0-0", 5),
        None,
        "no link, no rate"
    );
    assert!(
        scene.port(&metrics, "link_downed_total", "leaf-0-0", 5).is_some(),
        "its counters stay"
    );
    assert_eq!(info(&metrics)["peer_node"], peer, "where the cable led is still told");
    assert_eq!(metrics.get("infiniband_fabric_changes_total", &[("kind", "link_went")]), Some(1.0));

    scene.ibsim.console("ReLink \"leaf-0-0\"[5]");
    wait_until(HEALS, "the link to come back", || {
        let metrics = scene.exporter.metrics();
        let up = scene.port(&metrics, "state", "leaf-0-0", 5) == Some(4);
        (up && scene.is_whole(&metrics)).then_some(())
    });
    let metrics = scene.two_sweeps_later();
    assert_eq!(metrics.get("infiniband_fabric_changes_total", &[("kind", "link_came")]), Some(1.0));
    scene.end();
}

#[test]
fn a_host_unplugged_and_back() {
    let scene = Scene::new(&[]);
    let leaf_port = scene.found.links.iter().find_map(|(a, b)| {
        let host = scene.found.node("host-5").guid;
        (a.0 == host || b.0 == host).then_some(if a.0 == host { b.1 } else { a.1 })
    });
    scene.ibsim.console("Unlink \"host-5\"");
    let metrics = scene.two_sweeps_later();
    assert!(!scene.is_up(&metrics, "host-5"));
    assert_eq!(
        scene.port(&metrics, "symbol_errors_total", "host-5", 1),
        None,
        "absent is not zero"
    );
    assert_eq!(scene.port(&metrics, "state", "leaf-0-1", leaf_port.unwrap()), Some(1));
    assert!(scene.is_up(&metrics, "host-4"));

    scene.ibsim.console("ReLink \"host-5\"");
    wait_until(HEALS, "host-5 to be back", || {
        scene.is_whole(&scene.exporter.metrics()).then_some(())
    });
    scene.end();
}

#[test]
fn a_node_that_stops_answering_costs_the_others_nothing() {
    let scene = Scene::new(&[]);
    scene.ibsim.console("Error \"host-5\"[1] 100");
    let metrics = scene.two_sweeps_later();
    assert!(!scene.is_up(&metrics, "host-5"));
    assert_eq!(scene.port(&metrics, "symbol_errors_total", "host-5", 1), None);
    for node in scene.found.nodes.iter().filter(|node| node.description != "host-5") {
        assert!(scene.is_up(&metrics, &node.description), "{}", node.description);
        assert_eq!(scene.port(&metrics, "symbol_errors_total", &node.description, 1), Some(0));
    }
    scene.ibsim.console("Error \"host-5\"[1] 0");
    wait_until(HEALS, "host-5 to answer", || {
        scene.is_whole(&scene.exporter.metrics()).then_some(())
    });
    scene.end();
}

#[test]
fn a_switch_that_drops_one_attribute_keeps_the_rest() {
    let scene = Scene::new(&[]);
    scene.ibsim.console("Error \"leaf-0-1\"[0] 100 18");
    let metrics = scene.two_sweeps_later();
    assert_eq!(scene.port(&metrics, "symbol_errors_total", "leaf-0-1", 1), None);
    assert!(scene.port(&metrics, "transmit_bytes_total", "leaf-0-1", 1).is_some());
    assert_eq!(scene.port(&metrics, "symbol_errors_total", "leaf-0-0", 1), Some(0));
    assert!(scene.is_up(&metrics, "leaf-0-1"), "it answers");
    scene.ibsim.console("Error \"leaf-0-1\"[0] 0");
    wait_until(HEALS, "all counters", || scene.is_whole(&scene.exporter.metrics()).then_some(()));
    scene.end();
}

#[test]
fn links_that_come_and_go_while_a_sweep_is_under_way() {
    let ibsim = Ibsim::start(&topology::fat_tree_2(8, 10, 4, 3));
    let opensm = OpenSm::start(&ibsim);
    // A round trip of 20 ms and small windows: a sweep takes most of its second, so whatever is done
    // to the fabric is done in the middle of one.
    let proxy = Proxy::between(&ibsim, Duration::from_millis(20), 0);
    let flags = ["--fabric.interval=1s", "--fabric.gmp-window=4", "--fabric.gmp-lid-window=1"];
    let mut exporter = Exporter::start(&proxy, &flags);
    exporter.wait_ready();
    for round in 0..6 {
        ibsim.console(if round % 2 == 0 { "Unlink \"host-5\"" } else { "ReLink \"host-5\"" });
        exporter.wait_sweeps(1);
        let metrics = exporter.metrics();
        let others = metrics
            .all("infiniband_node_info")
            .filter(|(labels, _)| labels["node"] != "host-5" && labels["node_type"] == "ca");
        let mut count = 0;
        for (labels, _) in others {
            let guid = [("guid", labels["guid"].as_str())];
            assert_eq!(metrics.get("infiniband_node_up", &guid), Some(1.0), "{labels:?}");
            assert_eq!(metrics.get("infiniband_port_symbol_errors_total", &guid), Some(0.0));
            count += 1;
        }
        assert_eq!(count, 9);
    }
    wait_until(HEALS, "everybody to be read again", || {
        let metrics = exporter.metrics();
        let is = |name: &str, value: f64| metrics.get(name, &[]) == Some(value);
        (is("infiniband_nodes_failed", 0.0) && is("infiniband_ports_seen", 50.0)).then_some(())
    });
    assert!(exporter.stop().success());
    drop(opensm);
}

#[test]
fn a_subnet_manager_that_hangs_or_is_another_one_stops_nothing_here() {
    let mut scene = Scene::new(&[]);
    scene.opensm.pause();
    scene.ibsim.console("PerformanceSet \"host-2\"[1] PortCounters.LinkDownedCounter=7");
    let metrics = scene.two_sweeps_later();
    assert!(scene.is_whole(&metrics));
    assert_eq!(scene.port(&metrics, "link_downed_total", "host-2", 1), Some(7));
    scene.opensm.resume();
    assert!(scene.is_whole(&scene.two_sweeps_later()));

    let Scene { mut exporter, opensm, ibsim, found } = scene;
    opensm.stop();
    exporter.wait_sweeps(2);
    assert_eq!(exporter.metrics().get("infiniband_ports_failed", &[]), Some(0.0));
    // It knows nothing of the first one's, so it may give other LIDs.
    let opensm = OpenSm::start_at(ibsim.seat().at("host-9"));
    wait_until(HEALS, "all ports under the new subnet manager", || {
        let metrics = exporter.metrics();
        let is = |name: &str, value: f64| metrics.get(name, &[]) == Some(value);
        (is("infiniband_nodes_failed", 0.0) && is("infiniband_ports_seen", 50.0)).then_some(())
    });
    assert_eq!(found.nodes.len(), 15);
    exporter.signal("INT");
    wait_until(HEALS, "the exporter to end", || {
        exporter.log().contains("signal=SIGINT").then_some(())
    });
    assert!(exporter.stop().success());
    drop(opensm);
}

#[test]
fn before_the_first_subnet_manager_nobody_can_be_asked_and_then_all_can() {
    let ibsim = Ibsim::start(&topology::fat_tree_2(8, 10, 4, 3));
    let mut exporter = Exporter::start(&ibsim, &["--fabric.interval=1s"]);
    exporter.wait_ready();
    let metrics = exporter.metrics();
    assert_eq!(metrics.get("infiniband_nodes_seen", &[]), Some(10.0 + 3.0 + 2.0));
    assert_eq!(metrics.get("infiniband_ports_seen", &[]), Some(0.0));
    assert_eq!(metrics.get("infiniband_collector_success", &[("collector", "perfmgt")]), Some(0.0));
    let opensm = OpenSm::start(&ibsim);
    wait_until(HEALS, "counters", || {
        (exporter.metrics().get("infiniband_ports_seen", &[]) == Some(10.0 + 5.0 * 8.0))
            .then_some(())
    });
    assert!(exporter.stop().success());
    drop(opensm);
}

#[test]
fn two_lost_mads_in_a_thousand_cost_no_port_its_samples() {
    let ibsim = Ibsim::start(&topology::fat_tree_2(40, 300, 22, 18));
    let opensm = OpenSm::start(&ibsim);
    let proxy = Proxy::between(&ibsim, Duration::ZERO, 2);
    let mut exporter =
        Exporter::start(&proxy, &["--fabric.interval=1s", "--fabric.capture-limit=1"]);
    exporter.wait_ready();
    let whole = exporter.metrics().get("infiniband_ports_seen", &[]).unwrap();
    let lost = |metrics: &Metrics| -> f64 {
        metrics
            .all("infiniband_mads_total")
            .filter(|(labels, _)| labels["outcome"] == "timed_out")
            .map(|it| it.1)
            .sum()
    };
    let before = lost(&exporter.metrics());
    for _ in 0..5 {
        exporter.wait_sweeps(1);
        let metrics = exporter.metrics();
        assert_eq!(metrics.get("infiniband_ports_seen", &[]), Some(whole));
        assert_eq!(metrics.get("infiniband_ports_failed", &[]), Some(0.0));
        assert_eq!(metrics.get("infiniband_nodes_failed", &[]), Some(0.0));
    }
    let lost = lost(&exporter.metrics()) - before;
    assert!(lost > 5.0, "{lost} MADs were lost: nothing was shown");
    assert!(exporter.stop().success());
    drop(opensm);
}

#[test]
fn a_stop_in_the_middle_of_a_sweep_is_clean_and_quick() {
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
