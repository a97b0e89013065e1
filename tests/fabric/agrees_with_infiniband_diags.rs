//! The exporter finds the same nodes, links and counters as infiniband-diags.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use test_rig as rig;

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use rig::counters::{self, Counter, MOVING, STILL};
use rig::diags::{Discovery, End, Kind, perfquery, sminfo};
use rig::{Exporter, Ibsim, Metrics, OpenSm, topology, wait_until};

fn hex(guid: u64) -> String {
    format!("{guid:#018x}")
}

/// A node's GUID, type and name.
type Node = (u64, String, String);

/// The nodes and links in the metrics.
fn nodes_and_links(metrics: &Metrics) -> (BTreeSet<Node>, BTreeSet<(End, End)>) {
    let guid = |text: &str| u64::from_str_radix(text.trim_start_matches("0x"), 16).unwrap();
    let nodes = metrics
        .all("infiniband_node_info")
        .map(|(labels, _)| {
            (guid(&labels["guid"]), labels["node_type"].clone(), labels["node"].clone())
        })
        .collect();
    let links = metrics
        .all("infiniband_port_info")
        .filter(|(labels, _)| labels.contains_key("peer_guid"))
        .map(|(labels, _)| {
            let here = (guid(&labels["guid"]), labels["port"].parse().unwrap());
            let there = (guid(&labels["peer_guid"]), labels["peer_port"].parse().unwrap());
            if here <= there { (here, there) } else { (there, here) }
        })
        .collect();
    (nodes, links)
}

type Ports = BTreeMap<(u64, u8), BTreeMap<String, u64>>;

/// The counters of every port by perfquery.
fn counters_by_perfquery(ibsim: &Ibsim, found: &Discovery) -> Ports {
    let mut ports = Ports::new();
    for node in &found.nodes {
        let numbers: Vec<u8> = match node.kind {
            Kind::Switch => (1..=node.ports).collect(),
            _ => (1..=node.ports)
                .filter(|port| found.lids.contains_key(&(node.guid, *port)))
                .collect(),
        };
        for number in numbers {
            let of_lid = if node.kind == Kind::Switch { 0 } else { number };
            let lid = found.lids[&(node.guid, of_lid)].to_string();
            let port = ports.entry((node.guid, number)).or_default();
            for option in ["", "-x", "-E", "-D"] {
                let number = number.to_string();
                let args: Vec<&str> =
                    [option, &lid, &number].into_iter().filter(|arg| !arg.is_empty()).collect();
                port.extend(perfquery(&ibsim.tool("perfquery", &args)));
            }
        }
    }
    ports
}

/// The sample of a counter. It may be absent while the counter is 0: of a port without a cable, or of a cause of errors.
fn sample(metrics: &Metrics, guid: u64, port: u8, of: &Counter) -> Option<u64> {
    let (name, guid, port) =
        (format!("infiniband_port_{}_total", of.metric), hex(guid), port.to_string());
    let of_port = [("guid", &*guid), ("port", &*port)];
    let sample = metrics.get_u64(&name, &of_port);
    let info = metrics.sample("infiniband_port_info", &of_port).unwrap();
    let is_cause = ["PortRcvErrorDetails", "PortXmitDiscardDetails"].contains(&of.attribute);
    let may_be_absent = is_cause || !info.labels.contains_key("peer_guid");
    assert!(sample.is_some() || may_be_absent, "no {name} of {guid} port {port}");
    sample
}

/// The nodes and links are those of ibnetdiscover.
fn finds_the_same(metrics: &Metrics, found: &Discovery) {
    let (nodes, links) = nodes_and_links(metrics);
    let kind = |kind| match kind {
        Kind::Ca => "ca",
        Kind::Switch => "switch",
        Kind::Router => "router",
    };
    let expected: BTreeSet<Node> = found
        .nodes
        .iter()
        .map(|node| (node.guid, kind(node.kind).to_owned(), node.description.clone()))
        .collect();
    assert_eq!(nodes, expected);
    assert_eq!(links, found.links);
}

fn agrees(net: &str) {
    let ibsim = Ibsim::start(net);
    let opensm = OpenSm::start(&ibsim);
    ibsim.set(&counters::all_distinct(net));
    let found = Discovery::parse(&ibsim.tool("ibnetdiscover", &[]));
    let mut exporter = Exporter::start(&ibsim, &["--fabric.interval=1s", "--fabric.details"]);
    exporter.wait_ready();

    finds_the_same(&exporter.metrics(), &found);

    // The compared sweep begins after the first perfquery of all ports, and ends before the last.
    let before = counters_by_perfquery(&ibsim, &found);
    exporter.wait_fresh_sweep();
    let metrics = exporter.metrics();
    let after = counters_by_perfquery(&ibsim, &found);
    let mut compared = 0;
    for (&(guid, port), after) in &after {
        let before = &before[&(guid, port)];
        for of in &STILL {
            let (ours, theirs) = (sample(&metrics, guid, port, of), after[of.perfquery]);
            let value = ours.unwrap_or(0);
            assert_eq!(value, theirs * of.scale, "{} of {} port {port}", of.metric, hex(guid));
            compared += usize::from(ours.is_some());
        }
        for of in &MOVING {
            let ours = sample(&metrics, guid, port, of);
            let theirs = before[of.perfquery] * of.scale..=after[of.perfquery] * of.scale;
            assert!(
                theirs.contains(&ours.unwrap_or(0)),
                "{} of {} port {port}: {ours:?}, {theirs:?}",
                of.metric,
                hex(guid)
            );
            compared += usize::from(ours.is_some());
        }
    }
    // As many samples as perfquery has, and no others: ibsim keeps no QP1Dropped.
    // And perfquery does not know how often a port was cleared.
    let ours = metrics.samples.iter().filter(|sample| {
        sample.name.starts_with("infiniband_port_")
            && sample.name.ends_with("_total")
            && sample.name != "infiniband_port_counters_reset_total"
    });
    assert_eq!(ours.count(), compared);
    assert!(exporter.stop().success());
    drop(opensm);
}

#[test]
fn agrees_on_a_two_level_fat_tree() {
    agrees(&topology::fat_tree_2(8, 10, 4, 3));
}

#[test]
fn agrees_on_a_three_level_fat_tree() {
    agrees(&topology::fat_tree_3(4, 8, 2, 2));
}

#[test]
fn agrees_on_ibsim_examples() {
    for name in topology::EXAMPLES {
        agrees(&topology::example(name));
    }
}

#[test]
fn agrees_from_a_switch() {
    let ibsim = Ibsim::start(&topology::fat_tree_2(8, 10, 4, 3));
    let opensm = OpenSm::start(&ibsim);
    let found = Discovery::parse(&ibsim.tool("ibnetdiscover", &[]));
    let mut exporter = Exporter::start(ibsim.seat().at("spine-0"), &["--fabric.interval=1s"]);
    exporter.wait_ready();
    finds_the_same(&exporter.metrics(), &found);
    assert_eq!(exporter.metrics().get("fabric_exporter_ports_seen", &[]), Some(50.0));
    assert!(exporter.stop().success());
    drop(opensm);
}

/// The managers at these LIDs by sminfo; our values have to be the same in a sweep between two of its
/// responses.
fn manages_the_same(ibsim: &Ibsim, exporter: &Exporter, found: &Discovery, hosts: &[&str]) {
    let ask = |host: &str| sminfo(&ibsim.tool("sminfo", &[&found.lid(host, 1).to_string()]));
    let before: Vec<_> = hosts.iter().map(|host| ask(host)).collect();
    exporter.wait_fresh_sweep();
    let metrics = exporter.metrics();
    for (host, before) in hosts.iter().zip(before) {
        let after = ask(host);
        let guid = hex(found.node(host).guid);
        let ours = |name: &str| {
            metrics
                .get_u64(name, &[("guid", &guid), ("port", "1")])
                .unwrap_or_else(|| panic!("no {name} of {host}"))
        };
        assert_eq!(ours("infiniband_subnet_manager_state"), after.state, "{host}");
        assert_eq!(ours("infiniband_subnet_manager_priority"), after.priority, "{host}");
        let activity = ours("infiniband_subnet_manager_activity_total");
        let theirs = before.activity..=after.activity;
        assert!(theirs.contains(&activity), "{host}: {activity}, {theirs:?}");
    }
    assert_eq!(metrics.all("infiniband_subnet_manager_state").count(), hosts.len());
    for (state, code) in [("not_active", 0), ("discovering", 1), ("standby", 2), ("master", 3)] {
        let count = hosts.iter().filter(|host| ask(host).state == code).count();
        let ours = metrics.get("infiniband_subnet_managers", &[("state", state)]);
        assert_eq!(ours, Some(count as f64), "{state}");
    }
}

#[test]
fn agrees_on_subnet_managers() {
    let net = topology::fat_tree_2(8, 10, 4, 3);
    let ibsim = Ibsim::start(&net);
    let hosts = topology::usable_hosts(&net);
    let [master, standby] = [&hosts[0], hosts.last().unwrap()];
    let mut first = OpenSm::start_at(ibsim.seat().at(master));
    let second = OpenSm::start_standby_at(ibsim.seat().at(standby), Duration::from_secs(300));
    let found = Discovery::parse(&ibsim.tool("ibnetdiscover", &[]));
    let mut exporter = Exporter::start(&ibsim, &["--fabric.interval=1s"]);
    exporter.wait_ready();
    manages_the_same(&ibsim, &exporter, &found, &[master, standby]);

    // One that hangs is no longer reachable, which does not mean that its host is gone.
    first.pause();
    exporter.wait_fresh_sweep();
    let metrics = exporter.metrics();
    let of = |state: &str| metrics.get("infiniband_subnet_managers", &[("state", state)]);
    assert_eq!((of("master"), of("standby")), (Some(0.0), Some(1.0)));
    let guid = hex(found.node(master).guid);
    assert_eq!(metrics.get("infiniband_node_up", &[("guid", &guid)]), Some(1.0));
    assert_eq!(metrics.get("fabric_exporter_ports_failed", &[]), Some(0.0));
    first.resume();
    exporter.wait_fresh_sweep();
    manages_the_same(&ibsim, &exporter, &found, &[master, standby]);
    let changes = || exporter.metrics().get("infiniband_subnet_manager_changes_total", &[]);
    assert_eq!(changes(), Some(0.0));
    assert!(exporter.stop().success());
    drop((first, second));
}

#[test]
fn agrees_on_subnet_manager_failover() {
    let net = topology::fat_tree_2(8, 10, 4, 3);
    let ibsim = Ibsim::start(&net);
    let hosts = topology::usable_hosts(&net);
    let [master, standby] = [&hosts[0], hosts.last().unwrap()];
    let first = OpenSm::start_at(ibsim.seat().at(master));
    let patience = Duration::from_secs(5);
    let second = OpenSm::start_standby_at(ibsim.seat().at(standby), patience);
    let found = Discovery::parse(&ibsim.tool("ibnetdiscover", &[]));
    let mut exporter = Exporter::start(&ibsim, &["--fabric.interval=1s"]);
    exporter.wait_ready();
    manages_the_same(&ibsim, &exporter, &found, &[master, standby]);
    // Stopped, not paused: the other one would wait for its response for ever, since ibsim reports no
    // timeouts.
    first.stop();
    wait_until(Duration::from_secs(60), "the other one to be the master", || {
        let changes = exporter.metrics().get("infiniband_subnet_manager_changes_total", &[]);
        (changes == Some(1.0)).then_some(())
    });
    manages_the_same(&ibsim, &exporter, &found, &[standby]);
    assert!(exporter.stop().success());
    drop(second);
}
