//! What the exporter finds is what infiniband-diags find, node by node and counter by counter.
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

/// The nodes and links as the metrics tell them.
fn told(metrics: &Metrics) -> (BTreeSet<Node>, BTreeSet<(End, End)>) {
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

/// What perfquery says of every port.
fn asked(ibsim: &Ibsim, found: &Discovery) -> Ports {
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

fn sample(metrics: &Metrics, guid: u64, port: u8, of: &Counter) -> u64 {
    let (name, guid, port) =
        (format!("infiniband_port_{}_total", of.metric), hex(guid), port.to_string());
    metrics
        .get_u64(&name, &[("guid", &guid), ("port", &port)])
        .unwrap_or_else(|| panic!("no {name} of {guid} port {port}"))
}

/// The nodes and cables are those of ibnetdiscover.
fn finds_the_same(metrics: &Metrics, found: &Discovery) {
    let (nodes, links) = told(metrics);
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

    // The sweep that is compared begins after the first perfquery of all, and ends before the last.
    let before = asked(&ibsim, &found);
    exporter.wait_sweeps(2);
    let metrics = exporter.metrics();
    let after = asked(&ibsim, &found);
    let mut compared = 0;
    for (&(guid, port), after) in &after {
        let before = &before[&(guid, port)];
        for of in &STILL {
            let (ours, theirs) = (sample(&metrics, guid, port, of), after[of.perfquery]);
            assert_eq!(ours, theirs * of.scale, "{} of {} port {port}", of.metric, hex(guid));
            compared += 1;
        }
        for of in &MOVING {
            let ours = sample(&metrics, guid, port, of);
            let theirs = before[of.perfquery] * of.scale..=after[of.perfquery] * of.scale;
            assert!(
                theirs.contains(&ours),
                "{} of {} port {port}: {ours}, {theirs:?}",
                of.metric,
                hex(guid)
            );
            compared += 1;
        }
    }
    // As many samples as perfquery told, and none that it did not: ibsim keeps no QP1Dropped.
    // And perfquery does not know how often a port was cleared.
    let ours = metrics.samples.iter().filter(|sample| {
        sample.name.starts_with("infiniband_port_")
            && sample.name.ends_with("_total")
            && sample.name != "infiniband_port_counter_resets_total"
    });
    assert_eq!(ours.count(), compared);
    assert!(exporter.stop().success());
    drop(opensm);
}

#[test]
fn on_two_levels() {
    agrees(&topology::fat_tree_2(8, 10, 4, 3));
}

#[test]
fn on_three_levels() {
    agrees(&topology::fat_tree_3(4, 8, 2, 2));
}

#[test]
fn on_ibsims_own_examples() {
    for name in topology::EXAMPLES {
        agrees(&topology::example(name));
    }
}

#[test]
fn from_a_switch_as_from_a_host() {
    let ibsim = Ibsim::start(&topology::fat_tree_2(8, 10, 4, 3));
    let opensm = OpenSm::start(&ibsim);
    let found = Discovery::parse(&ibsim.tool("ibnetdiscover", &[]));
    let mut exporter = Exporter::start(ibsim.seat().at("spine-0"), &["--fabric.interval=1s"]);
    exporter.wait_ready();
    finds_the_same(&exporter.metrics(), &found);
    assert_eq!(exporter.metrics().get("infiniband_ports_seen", &[]), Some(50.0));
    assert!(exporter.stop().success());
    drop(opensm);
}

/// What sminfo says of the managers at these LIDs, and that we say the same in a sweep between two of
/// its answers.
fn manages_the_same(ibsim: &Ibsim, exporter: &Exporter, found: &Discovery, hosts: &[&str]) {
    let ask = |host: &str| sminfo(&ibsim.tool("sminfo", &[&found.lid(host, 1).to_string()]));
    let before: Vec<_> = hosts.iter().map(|host| ask(host)).collect();
    exporter.wait_sweeps(2);
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
fn on_who_manages_the_subnet() {
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

    // One that hangs is heard no more, and is no reason to think that its host is gone.
    first.pause();
    exporter.wait_sweeps(2);
    let metrics = exporter.metrics();
    let of = |state: &str| metrics.get("infiniband_subnet_managers", &[("state", state)]);
    assert_eq!((of("master"), of("standby")), (Some(0.0), Some(1.0)));
    let guid = hex(found.node(master).guid);
    assert_eq!(metrics.get("infiniband_node_up", &[("guid", &guid)]), Some(1.0));
    assert_eq!(metrics.get("infiniband_ports_failed", &[]), Some(0.0));
    first.resume();
    exporter.wait_sweeps(2);
    manages_the_same(&ibsim, &exporter, &found, &[master, standby]);
    let changes = || exporter.metrics().get("infiniband_subnet_manager_changes_total", &[]);
    assert_eq!(changes(), Some(0.0));
    assert!(exporter.stop().success());
    drop((first, second));
}

#[test]
fn on_who_takes_over() {
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
    // Ended, not paused: the other one would wait for its answer for ever, for ibsim tells nobody of
    // time-outs.
    first.stop();
    wait_until(Duration::from_secs(60), "the other one to be the master", || {
        let changes = exporter.metrics().get("infiniband_subnet_manager_changes_total", &[]);
        (changes == Some(1.0)).then_some(())
    });
    manages_the_same(&ibsim, &exporter, &found, &[standby]);
    assert!(exporter.stop().success());
    drop(second);
}
