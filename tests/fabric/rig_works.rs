//! Tests of the rig: its parts behave as the other tests assume.

#![allow(clippy::expect_used)] // a test stops by panicking

use test_rig as rig;

use std::collections::BTreeMap;
use std::process::Stdio;
use std::time::{Duration, Instant};

use ib_mad::Guid;
use ib_mad::node::NodeKind;
use ib_sim::net::file::parse;
use ib_sim::net::shapes::{BackToBack, DragonflyPlus};
use ib_sim::net::testing::write;
use ib_sim::net::{Net, PortId};
use rig::child::Running;
use rig::diags::{Discovery, Kind, perfquery};
use rig::topology::{self, EXAMPLES};
use rig::{Ibsim, Metrics, OpenSm, Proxy, capture};

/// A small fat tree: 2 leaves with 4 hosts each, 2 spines.
fn small() -> String {
    topology::fat_tree_2(8, 8, 4, 4)
}

fn discover(ibsim: &Ibsim) -> Discovery {
    Discovery::parse(&ibsim.tool("ibnetdiscover", &[]))
}

/// The numbers that ibnetdiscover must find for a net.
fn assert_whole(net: &str, found: &Discovery) {
    let sizes = topology::sizes(net);
    let switches = found.nodes.iter().filter(|node| node.kind == Kind::Switch).count();
    assert_eq!((found.nodes.len(), switches), (sizes.nodes, sizes.switches));
    let connected = topology::all_connected_ports(net);
    assert_eq!(found.links.len() * 2, connected.len());
    for (node, port) in &connected {
        let end = (found.node(node).guid, *port);
        assert!(
            found.links.iter().any(|(a, b)| *a == end || *b == end),
            "no link at {node} port {port}"
        );
    }
}

#[test]
fn counter_set_on_the_console_shows_in_perfquery() {
    let ibsim = Ibsim::start(&small());
    let _sm = OpenSm::start(&ibsim);
    ibsim.console(r#"PerformanceSet "leaf-0-0"[5] PortCounters.SymbolErrorCounter=4242"#);
    ibsim.console(
        r#"PerformanceSet "host-3"[1] PortCountersExtended.PortMultiCastXmitPkts=0x123456789abc"#,
    );
    let found = discover(&ibsim);
    let query = |flags: &[&str], name: &str, port: u8| {
        let (lid, port) = (found.lid(name, port).to_string(), port.to_string());
        perfquery(&ibsim.tool("perfquery", &[flags, &[&lid, &port]].concat()))
    };
    assert_eq!(query(&[], "leaf-0-0", 5)["SymbolErrorCounter"], 4242);
    assert_eq!(query(&[], "leaf-0-0", 6)["SymbolErrorCounter"], 0);
    assert_eq!(query(&["-x"], "host-3", 1)["PortMulticastXmitPkts"], 0x1234_5678_9abc);
}

#[test]
fn many_commands_run_at_once() {
    let net = small();
    let ibsim = Ibsim::start(&net);
    let _sm = OpenSm::start(&ibsim);
    let commands: Vec<_> = topology::all_connected_ports(&net)
        .iter()
        .map(|(node, port)| {
            format!(r#"PerformanceSet "{node}"[{port}] PortCounters.PortXmitWait=7"#)
        })
        .collect();
    let answer = ibsim.console_many(&commands);
    assert_eq!(answer.matches("has been set").count(), commands.len(), "{answer}");
    let found = discover(&ibsim);
    for (node, port) in topology::all_connected_ports(&net) {
        let lid = found.lid(&node, port).to_string();
        let counters = perfquery(&ibsim.tool("perfquery", &[&lid, &port.to_string()]));
        assert_eq!(counters["PortXmitWait"], 7, "{node} port {port}");
    }
}

#[test]
#[should_panic(expected = "ibsim refused")]
fn command_refused_by_ibsim_fails() {
    Ibsim::start(&small()).console(r#"Unlink "no-such-node"[1]"#);
}

#[test]
fn unlinked_cable_disappears_and_relinked_one_returns() {
    let ibsim = Ibsim::start(&small());
    let _sm = OpenSm::start(&ibsim);
    let before = discover(&ibsim);
    ibsim.console(r#"Unlink "leaf-0-0"[5]"#);
    assert_eq!(discover(&ibsim).links.len(), before.links.len() - 1);
    ibsim.console(r#"ReLink "leaf-0-0"[5]"#);
    assert_eq!(discover(&ibsim).links, before.links);
}

#[test]
fn every_example_is_discovered() {
    for name in EXAMPLES {
        let net = topology::example(name);
        let ibsim = Ibsim::start(&net);
        let _sm = OpenSm::start(&ibsim);
        assert_whole(&net, &discover(&ibsim));
    }
}

#[test]
fn fat_trees_are_discovered() {
    // Uplinks that divide evenly among the spines, that do not, and three levels.
    for net in [small(), topology::fat_tree_2(12, 30, 7, 5), topology::fat_tree_3(8, 60, 4, 4)] {
        let ibsim = Ibsim::start(&net);
        let _sm = OpenSm::start(&ibsim);
        assert_whole(&net, &discover(&ibsim));
    }
}

/// An end of a link: the node's GUID, the port's number and GUID.
type End = (Guid, u8, Guid);

/// What two readers of a net must agree on: its nodes, and its links with width and speed.
type Gist = (BTreeMap<Guid, (NodeKind, u16, String)>, BTreeMap<End, (End, u8, String)>);

fn gist(net: &Net) -> Gist {
    let nodes = net.nodes.iter().map(|node| {
        (
            node.guid,
            (node.kind, node.device_id, format!("{} {}", node.description, node.port_count)),
        )
    });
    let end = |id: PortId| (net.node_of(id).guid, net.port(id).number, net.port(id).guid);
    let cables = net.port_ids().filter_map(|id| {
        let (port, peer) = (net.port(id), net.port(id).cable?);
        let (here, there) = (port.rates, net.port(peer).rates);
        let speed = here.speeds.intersection(there.speeds).fastest();
        Some((end(id), (end(peer), here.widths & there.widths, format!("{speed:?}"))))
    });
    (nodes.collect(), cables.collect())
}

#[test]
fn ibsim_reads_a_net_as_we_do() {
    let pair = BackToBack { hca: "connectx-5".into() };
    let dragonfly = DragonflyPlus {
        groups: 3,
        leaves: 2,
        spines: 2,
        hosts_per_leaf: 2,
        global: 2,
        radix: 36,
        switch: "infiniscale-4".into(),
        hca: "connectx-6".into(),
    };
    let nets = [pair.build(), dragonfly.build()].map(|net| net.expect("a net"));
    let by_us = nets.iter().map(write).chain([small(), topology::fat_tree_3(4, 8, 2, 2)]);
    for text in by_us {
        let there = Ibsim::start(&text).tool("ibnetdiscover", &[]);
        let found = parse(&there).unwrap_or_else(|e| panic!("{e}: {there}"));
        assert_eq!(gist(&found), gist(&parse(&text).expect("it is ours")), "{text}");
        // The discovered net can be read again, by ibsim and by us.
        let again = Ibsim::start(&write(&found)).tool("ibnetdiscover", &[]);
        assert_eq!(gist(&parse(&again).expect("it is like the first")), gist(&found));
    }
}

#[test]
fn measurement_fabric_has_its_size() {
    let net = topology::five_thousand_hosts();
    let sizes = topology::sizes(&net);
    assert_eq!((sizes.nodes, sizes.switches), (5507, 507));
    assert_eq!(topology::all_connected_ports(&net).len(), 24_892);
    assert_eq!(topology::all_connected_ports(&topology::fat_tree_2(40, 900, 22, 18)).len(), 3276);
    // Without a subnet manager: directed routes need none.
    let found = discover(&Ibsim::start(&net));
    assert_eq!((found.nodes.len(), found.links.len()), (5507, 12_446));
}

#[test]
fn proxy_delays_the_same_fabric() {
    let net = small();
    let ibsim = Ibsim::start(&net);
    let _sm = OpenSm::start(&ibsim);
    let delay = Duration::from_millis(5);
    let proxy = Proxy::between(&ibsim, delay, 0);
    let begin = Instant::now();
    let found = Discovery::parse(&proxy.tool("ibnetdiscover", &[]));
    // Discovery goes by hops, and each hop costs two round trips at least.
    assert!(begin.elapsed() > 6 * delay, "it took only {:?}", begin.elapsed());
    assert_eq!(found, discover(&ibsim));
}

#[test]
fn proxy_forwards_other_responses() {
    let ibsim = Ibsim::start(&small());
    let _sm = OpenSm::start(&ibsim);
    let proxy = Proxy::between(&ibsim, Duration::ZERO, 0);
    // OpenSM's responses pass ibsim and then the proxy.
    assert!(proxy.tool("sminfo", &[]).contains("SMINFO_MASTER"));
}

#[test]
fn proxy_that_drops_all_gives_no_response() {
    let ibsim = Ibsim::start(&small());
    let _sm = OpenSm::start(&ibsim);
    let proxy = Proxy::between(&ibsim, Duration::ZERO, 1000);
    let lid = discover(&ibsim).lid("leaf-0-0", 1).to_string();
    let args = ["--timeout", "50", &lid, "1"];
    assert!(!proxy.try_tool("perfquery", &args).status.success());
    assert!(ibsim.try_tool("perfquery", &args).status.success());
}

#[test]
fn proxy_drops_some() {
    let ibsim = Ibsim::start(&small());
    let _sm = OpenSm::start(&ibsim);
    let proxy = Proxy::between(&ibsim, Duration::ZERO, 300);
    let lid = discover(&ibsim).lid("leaf-0-0", 1).to_string();
    // On a busy machine a response that is not lost may take 200 ms, and block a perfquery that gave up (`try_tool`).
    let ask = || proxy.try_tool("perfquery", &["--timeout", "1500", &lid, "1"]).status.success();
    // The losses are the same in every run, so the result of the test does not vary.
    let answered = (0..6).filter(|_| ask()).count();
    assert!((1..6).contains(&answered), "{answered} of 6");
}

#[test]
fn clients_release_their_slots() {
    let ibsim = Ibsim::start(&small());
    let proxy = Proxy::between(&ibsim, Duration::ZERO, 0);
    // More than ibsim has slots, if one of them were kept.
    for _ in 0..12 {
        proxy.tool("ibnetdiscover", &[]);
        ibsim.tool("ibnetdiscover", &[]);
    }
    assert!(!ibsim.console("Attached").contains("Client"));
}

#[test]
fn killed_clients_behind_a_proxy_release_their_slots() {
    let ibsim = Ibsim::start(&small());
    let proxy = Proxy::between(&ibsim, Duration::ZERO, 1000);
    // More than ibsim has slots; each waits for a response until it is killed.
    for _ in 0..12 {
        let mut command = proxy.seat().command("ibnetdiscover");
        command.args(["--timeout", "60000"]).stdout(Stdio::null()).stderr(Stdio::null());
        let mut client = Running::spawn("ibnetdiscover", &mut command);
        let attached = format!("pid {} connected", client.pid());
        rig::wait_until(Duration::from_secs(10), "the client to attach", || {
            ibsim.console("Attached").contains(&attached).then_some(())
        });
        client.kill();
    }
    drop(proxy);
    assert!(!ibsim.console("Attached").contains("Client"));
}

#[test]
fn paused_opensm_does_not_respond() {
    let ibsim = Ibsim::start(&small());
    let mut sm = OpenSm::start(&ibsim);
    let ask = || ibsim.try_tool("sminfo", &["--timeout", "200"]).status.success();
    assert!(ask());
    sm.pause();
    assert!(!ask());
    sm.resume();
    // It responds to the old requests first.
    rig::wait_until(Duration::from_secs(30), "OpenSM to answer again", || ask().then_some(()));
}

#[test]
fn metrics_parser_keeps_names_labels_and_values() {
    let metrics = Metrics::parse(concat!(
        "# HELP a_total Words sent.\n",
        "# TYPE a_total counter\n",
        "a_total{port=\"1\",node=\"x \\\"y\\\" \\\\ z, }\"} 18446744073709551615\n",
        "a_total{port=\"2\",node=\"w\"} 1e3 1700000000000\n",
        "up 1\n",
        "empty{} NaN\n",
        "high{le=\"+Inf\"} +Inf\n",
    ));
    assert_eq!(metrics.types["a_total"], "counter");
    assert_eq!(metrics.help["a_total"], "Words sent.");
    assert_eq!(metrics.get_u64("a_total", &[("port", "1")]), Some(u64::MAX));
    assert_eq!(metrics.get("a_total", &[("node", "w")]), Some(1000.0));
    assert_eq!(metrics.get("up", &[]), Some(1.0));
    assert_eq!(metrics.get("up", &[("port", "1")]), None);
    assert!(metrics.get("empty", &[]).is_some_and(f64::is_nan));
    assert_eq!(metrics.get("high", &[("le", "+Inf")]), Some(f64::INFINITY));
    assert_eq!(
        metrics.all("a_total").next().map(|(labels, _)| labels["node"].as_str()),
        Some("x \"y\" \\ z, }")
    );
}

#[test]
#[should_panic(expected = "several samples")]
fn ambiguous_metric_fails() {
    Metrics::parse("a{x=\"1\"} 1\na{x=\"2\"} 1\n").get("a", &[]);
}

/// A capture with one MAD of this method, written by hand.
fn capture_of(method: u8) -> tempfile::NamedTempFile {
    let mut mad = [0; 256];
    mad[3] = method;
    let mut packet = vec![0; 16 + 8 + 12 + 8];
    packet.extend(mad);
    let mut bytes =
        vec![0xd4, 0xc3, 0xb2, 0xa1, 2, 0, 4, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 4, 0, 197, 0, 0, 0];
    bytes.extend([0; 8]);
    bytes.extend((packet.len() as u32).to_le_bytes().repeat(2));
    bytes.extend(packet);
    let file = tempfile::NamedTempFile::new().expect("no temporary file");
    std::fs::write(file.path(), bytes).expect("the capture cannot be written");
    file
}

#[test]
fn capture_of_reads_passes() {
    let file = capture_of(0x81);
    capture::assert_read_only(file.path());
    assert_eq!(capture::read(file.path())[0][3], 0x81);
}

#[test]
#[should_panic(expected = "record 0 has method 0x02")]
fn capture_of_a_write_fails() {
    capture::assert_read_only(capture_of(0x02).path());
}
