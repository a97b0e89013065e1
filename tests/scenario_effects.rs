//! What happens in a scenario of the library shows at the ports where it belongs, and nowhere else.
//!
//! The exporter's own monitor looks at each, in virtual time; what is asserted is what a scrape
//! tells. A sweep begins every 15 s, so a look a few seconds later sees all of it.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod rig;

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::time::Duration;

use fabric_exporter::config::options::FabricOptions;
use fabric_exporter::fabric::counter::{Kind, TABLE};
use fabric_exporter::sim::load::{Flow, Routed};
use fabric_exporter::sim::net::{Net, PortId};
use fabric_exporter::sim::scenario::{Action, Overrides, Scenario, Story};

use rig::{Metrics, Simulated};

/// What an NDR link of four lanes carries, in bits a second.
const NDR_BITS: f64 = 400e9;
/// How many packets are lost with a link that traffic goes over.
const LOST: u64 = 112;

/// Each scenario, its test and what is in it.
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
    "bad-cable" a_bad_cable_counts_where_its_bits_come_in => bad_cable;
    "flapping-link" a_flapping_link_counts_at_both_of_its_ends => flapping_link;
    "degraded-link" a_degraded_link_is_slower_and_makes_those_before_it_wait => degraded_link;
    "congestion" congestion_shows_from_its_root_up => congestion;
    "host-reboot" a_host_that_reboots_begins_anew => host_reboot;
    "switch-reboot" a_switch_that_reboots_takes_its_hosts_along => switch_reboot;
    "cleared-counters" counters_fall_where_they_are_cleared => cleared_counters;
    "dead-switch" a_silent_switch_is_missed_and_nothing_else => dead_switch;
    "slow-node" those_who_are_slow_cost_nobody_else => slow_node;
    "lossy-fabric" lost_mads_are_sent_again => lossy_fabric;
    "miswired" cables_are_seen_where_they_were_plugged => miswired;
    "new-master" a_new_master_shows_and_nobody_is_lost => new_master;
}

#[test]
fn every_scenario_of_the_library_has_its_test() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/scenarios");
    let files: BTreeSet<String> = std::fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().path().file_stem().unwrap().to_str().unwrap().to_owned())
        .collect();
    assert_eq!(files, TESTED.iter().map(|name| (*name).to_owned()).collect());
}

/// A scenario that is being watched.
struct Run {
    simulated: Simulated,
}

/// What a scrape tells of the ports, by labels such as `leaf-0-1[9]`.
struct Look {
    metrics: Metrics,
    /// By family, without `infiniband_port_`.
    ports: BTreeMap<String, BTreeMap<String, u64>>,
    /// The peer that each port has, or last had.
    peers: BTreeMap<String, String>,
    up: BTreeMap<String, bool>,
}

impl Run {
    fn of(simulated: Simulated) -> Run {
        Run { simulated }
    }

    fn story(&self) -> &Story {
        self.simulated.story()
    }

    fn net(&self) -> &Net {
        &self.story().net
    }

    /// What is told so many seconds after the beginning.
    fn at(&self, seconds: u64) -> Look {
        self.simulated.run_to(Duration::from_secs(seconds));
        Look::new(self.net(), self.simulated.metrics())
    }

    /// All ports of a node that have cables, by their labels.
    fn ports_of(&self, node: &str) -> Vec<String> {
        let net = self.net();
        let id = net.node_ids().find(|id| net.node(*id).id == node).unwrap();
        net.plugs_of(id)
            .filter(|port| net.port(*port).cable.is_some())
            .map(|port| net.label(port))
            .collect()
    }

    /// The other end of the cable at a port, as it was built.
    fn peer(&self, label: &str) -> String {
        let net = self.net();
        net.label(net.port(self.simulated.port(label)).cable.unwrap())
    }

    /// The ways of everything that flows when all links are up, port by port.
    fn ways(&self) -> Vec<Vec<PortId>> {
        let flows: Vec<Flow> =
            self.story().steps.iter().flat_map(|step| flows(&step.action)).collect();
        let links: Vec<_> = self.net().ports.iter().map(|port| port.cable).collect();
        let routed = Routed::new(self.net(), &links, &flows);
        routed.routes().ways().map(<[PortId]>::to_vec).collect()
    }

    /// The ports that can be made to wait by these: all that send towards one, or towards one that
    /// waits. They are not among them, if nothing comes back to them.
    fn upstream(&self, roots: &[&str]) -> BTreeSet<String> {
        let ways = self.ways();
        let mut behind: BTreeSet<PortId> =
            roots.iter().map(|root| self.simulated.port(root)).collect();
        let mut found = BTreeSet::new();
        while !behind.is_empty() {
            let before = ways.iter().flat_map(|way| {
                let last = way.iter().rposition(|port| behind.contains(port)).unwrap_or(0);
                way[..last].iter().copied()
            });
            behind = before.filter(|port| found.insert(*port)).collect();
        }
        found.into_iter().map(|port| self.net().label(port)).collect()
    }
}

fn flows(action: &Action) -> Vec<Flow> {
    if let Action::Traffic { flows, .. } = action { flows.clone() } else { Vec::new() }
}

impl Look {
    fn new(net: &Net, metrics: Metrics) -> Look {
        let ids: BTreeMap<String, &str> =
            net.nodes.iter().map(|node| (node.guid.to_string(), node.id.as_str())).collect();
        let mut look =
            Look { metrics, ports: BTreeMap::new(), peers: BTreeMap::new(), up: BTreeMap::new() };
        for sample in &look.metrics.samples {
            let Some(id) = sample.labels.get("guid").and_then(|guid| ids.get(guid)) else {
                continue;
            };
            let Some(port) = sample.labels.get("port") else {
                if sample.name == "infiniband_node_up" {
                    look.up.insert((*id).to_owned(), sample.raw == "1");
                }
                continue;
            };
            let label = format!("{id}[{port}]");
            let family = sample.name.strip_prefix("infiniband_port_").unwrap();
            if family != "info" {
                look.ports.entry(family.to_owned()).or_default().insert(label, sample.u64());
            } else if let Some(peer) = sample.labels.get("peer_guid") {
                let peer = format!("{}[{}]", ids[peer], sample.labels["peer_port"]);
                look.peers.insert(label, peer);
            }
        }
        look
    }

    /// What one port tells.
    fn get(&self, family: &str, port: &str) -> Option<u64> {
        self.ports.get(family)?.get(port).copied()
    }

    /// What one port has counted.
    fn count(&self, counter: &str, port: &str) -> u64 {
        self.get(&format!("{counter}_total"), port)
            .unwrap_or_else(|| panic!("{port} tells no {counter}"))
    }

    /// What all ports have counted that have counted something.
    fn counted(&self, counter: &str) -> BTreeMap<&str, u64> {
        let all = self.ports.get(&format!("{counter}_total")).into_iter().flatten();
        all.filter(|(_, count)| **count > 0).map(|(port, count)| (port.as_str(), *count)).collect()
    }

    /// What all ports have counted more than in an earlier look.
    fn more(&self, counter: &str, before: &Look) -> BTreeMap<&str, u64> {
        let more = |(port, count)| (port, count - before.count(counter, port));
        self.counted(counter).into_iter().map(more).filter(|(_, more)| *more > 0).collect()
    }

    /// Nothing that is not traffic is counted but these counters, each by exactly these ports.
    fn assert_only<S: AsRef<str>>(&self, expected: &[(&str, &[S])]) {
        for row in TABLE.iter().filter(|row| row.kind != Kind::Traffic) {
            let of = expected.iter().find(|(counter, _)| *counter == row.metric);
            let mut ports: Vec<&str> =
                of.map_or(Vec::new(), |(_, ports)| ports.iter().map(S::as_ref).collect());
            ports.sort_unstable();
            let counted = self.counted(row.metric);
            assert_eq!(
                counted.keys().copied().collect::<Vec<_>>(),
                ports,
                "{}: {counted:?}",
                row.metric
            );
        }
        for (counter, _) in expected {
            assert!(TABLE.iter().any(|row| row.metric == *counter), "{counter}");
        }
    }

    /// Nothing is wrong anywhere.
    fn assert_clean(&self) {
        self.assert_only::<&str>(&[]);
    }

    fn down(&self) -> Vec<&str> {
        self.up.iter().filter(|(_, up)| !**up).map(|(node, _)| node.as_str()).collect()
    }

    fn of_fabric(&self, name: &str) -> f64 {
        self.metrics.get(name, &[]).unwrap_or_else(|| panic!("no {name}"))
    }

    fn changes(&self, kind: &str) -> u64 {
        self.metrics.get_u64("infiniband_fabric_changes_total", &[("kind", kind)]).unwrap()
    }

    /// MADs of all classes with this outcome.
    fn mads(&self, outcome: &str) -> u64 {
        let of = |name: &str| name == "infiniband_mads_total";
        let all = self.metrics.samples.iter().filter(|sample| of(&sample.name));
        all.filter(|sample| sample.has(&[("outcome", outcome)]))
            .map(rig::metrics::Sample::u64)
            .sum()
    }

    /// All that the ports tell, without what the exporter tells of itself.
    fn of_ports(&self) -> &BTreeMap<String, BTreeMap<String, u64>> {
        &self.ports
    }
}

/// Six standard deviations of a number of independent events: once in 500 million.
fn assert_drawn(count: u64, mean: f64, what: &str) {
    let off = (count as f64 - mean).abs();
    assert!(off <= 6.0 * mean.sqrt() + 1.0, "{what}: {count}, not about {mean}");
}

fn bad_cable(run: &Run) {
    let into = "leaf-0-1[9]";
    run.at(20).assert_clean();
    let look = run.at(125);
    // The packets that are hit are for one host, which finds them marked.
    let marked = ["host-8[1]"];
    look.assert_only(&[
        ("symbol_errors", &[into]),
        ("local_link_integrity_errors", &[into]),
        ("receive_errors", &[into]),
        ("receive_local_physical_errors", &[into]),
        ("receive_remote_physical_errors", &marked),
    ]);
    assert_drawn(look.count("symbol_errors", into), 90.0 * NDR_BITS * 1e-9, "symbol errors");
    // The link carries 20% of its rate, in packets of 4 KiB: each of their bits may be hit.
    let packets = look.count("receive_packets", into) - run_packets_at(&look, 30, 120, into);
    let hit = packets as f64 * 4096.0 * 8.0 * 1e-9;
    assert_drawn(look.count("receive_errors", into), hit, "packets that were hit");
    assert_drawn(look.count("receive_remote_physical_errors", marked[0]), hit, "marked packets");
    assert_eq!(
        look.count("receive_errors", into),
        look.count("receive_local_physical_errors", into)
    );
    // Ten times worse for a minute, and then as before.
    let looks = [run.at(305), run.at(365), run.at(425)];
    for (pair, mean) in looks.windows(2).zip([1e-8, 1e-9].map(|ratio| 60.0 * NDR_BITS * ratio)) {
        let more = pair[1].more("symbol_errors", &pair[0]);
        assert_eq!(more.keys().copied().collect::<Vec<_>>(), [into]);
        assert_drawn(more[into], mean, "symbol errors in a minute");
    }
    assert_eq!(looks[2].down(), [""; 0]);
}

/// The packets of the first seconds of a port whose traffic is steady.
fn run_packets_at(look: &Look, first: u64, all: u64, port: &str) -> u64 {
    look.count("receive_packets", port) * first / all
}

#[test]
fn a_cable_that_is_mended_counts_no_more() {
    let run = Run::of(Simulated::text(
        "timeline: [bad-cable: {at: 30s, into: \"spine-0[1]\", ratio: 1e-10, for: 1m}]",
    ));
    let (during, after, later) = (run.at(80), run.at(95), run.at(200));
    let symbols = |look: &Look| look.count("symbol_errors", "spine-0[1]");
    assert_drawn(symbols(&during), 45.0 * NDR_BITS * 1e-10, "in 45 s");
    assert_drawn(symbols(&after), 60.0 * NDR_BITS * 1e-10, "in a minute");
    assert_eq!(symbols(&after), symbols(&later));
    // The other direction of the cable is sound, and so is what leaves this switch.
    let symbol_errors = later.counted("symbol_errors");
    assert_eq!(symbol_errors.keys().copied().collect::<Vec<_>>(), ["spine-0[1]"]);
    // Marked packets are counted at all ports that they come to, and at none before.
    let ways = run.ways();
    let bad = run.simulated.port(&run.peer("spine-0[1]"));
    let mut downstream: Vec<String> = ways
        .iter()
        .filter_map(|way| Some(&way[way.iter().position(|port| *port == bad)? + 1..]))
        .flatten()
        .map(|port| run.peer(&run.net().label(*port)))
        .collect();
    downstream.sort();
    downstream.dedup();
    assert!(downstream.len() >= 2, "{downstream:?}");
    let marked = later.counted("receive_remote_physical_errors");
    assert_eq!(marked.keys().copied().collect::<Vec<_>>(), downstream);
}

#[test]
fn an_idle_link_with_a_bad_cable_counts_symbols_and_no_packets() {
    let run = Run::of(Simulated::text(
        "{traffic: {pattern: none}, timeline: [bad-cable: {into: \"spine-0[1]\", ratio: 1e-10}]}",
    ));
    let look = run.at(65);
    look.assert_only(&[
        ("symbol_errors", &["spine-0[1]"]),
        ("local_link_integrity_errors", &["spine-0[1]"]),
    ]);
    assert_drawn(look.count("symbol_errors", "spine-0[1]"), 60.0 * NDR_BITS * 1e-10, "in a minute");
}

fn flapping_link(run: &Run) {
    let ends = ["leaf-0-2[3]", "host-18[1]"];
    run.at(20).assert_clean();
    let look = run.at(95);
    look.assert_only(&[("link_error_recoveries", &ends)]);
    assert!(ends.iter().all(|end| look.count("link_error_recoveries", end) == 6));
    assert_eq!((look.down(), look.changes("link_went")), (vec![], 0));

    // Down from 4:00 to 4:40.
    let look = run.at(260);
    assert_eq!(look.get("state", ends[0]), Some(1));
    assert_eq!(look.get("physical_state", ends[0]), Some(2));
    assert_eq!(look.down(), ["host-18"]);
    assert_eq!(look.count("link_downed", ends[0]), 3);

    let look = run.at(600);
    let lost: &[&str] = &ends;
    look.assert_only(&[
        ("link_error_recoveries", lost),
        ("link_downed", lost),
        ("transmit_discards", lost),
        ("transmit_inactive_discards", lost),
    ]);
    for end in ends {
        assert_eq!(look.count("link_error_recoveries", end), 6);
        assert_eq!(look.count("link_downed", end), 3);
        assert_eq!(look.count("transmit_discards", end), 3 * LOST);
        assert_eq!(look.get("state", end), Some(4));
    }
    assert_eq!(look.down(), [""; 0]);
    // And its traffic flows again.
    let later = run.at(660);
    assert!(ends.iter().all(|end| later.more("transmit_bytes", &look).contains_key(end)));
}

fn degraded_link(run: &Run) {
    let (narrow, old) = ("leaf-0-0[9]", "leaf-0-1[2]");
    let sound = run.at(20);
    sound.assert_clean();
    let full = sound.get("rate_bytes_per_second", narrow).unwrap();
    let both = |port: &str| [port.to_owned(), run.peer(port)];
    let rates = |look: &Look, port: &str| {
        both(port).map(|end| {
            let supported = look.get("supported_rate_bytes_per_second", &end);
            assert_eq!(supported, Some(full), "{end}");
            look.get("rate_bytes_per_second", &end).unwrap()
        })
    };
    // Between the two, the first has settled.
    let (from, to) = (run.at(50), run.at(58));
    assert_eq!(rates(&to, narrow), [full / 4; 2]);
    assert_eq!(rates(&to, old), [full; 2]);
    drop(from);
    let (from, to) = (run.at(140), run.at(320));
    assert_eq!(rates(&to, narrow), [full / 4; 2]);
    assert_eq!(rates(&to, old), [full / 4; 2]);
    for end in [narrow, old].map(both).as_flattened() {
        assert_eq!(to.count("link_downed", end), 1);
        assert_eq!(to.get("state", end), Some(4));
    }
    // Those wait that feed the slow links, and nobody else.
    let waits = to.more("transmit_wait_ticks", &from);
    let roots = [both(narrow), both(old)].concat();
    let roots: Vec<&str> = roots.iter().map(String::as_str).collect();
    let may = run.upstream(&roots);
    assert!(!waits.is_empty() && waits.keys().all(|port| may.contains(*port)), "{waits:?}");
    for root in &roots {
        assert!(
            !waits.contains_key(root) || may.contains(*root),
            "{root} is busy, and never waits"
        );
    }
    // The old cable is changed, with the link going down once more; the narrow one stays.
    let after = run.at(480);
    assert_eq!(rates(&after, narrow), [full / 4; 2]);
    assert_eq!(rates(&after, old), [full; 2]);
    for (port, downs) in [(narrow, 1), (old, 2)] {
        assert!(both(port).iter().all(|end| after.count("link_downed", end) == downs), "{port}");
    }
    assert_eq!(after.counted("link_downed").len(), 4);
    for counter in ["symbol_errors", "receive_errors", "link_error_recoveries"] {
        assert!(after.counted(counter).is_empty());
    }
    // Without the old cable's bottleneck its feeders wait no more.
    let waits = run.at(600).more("transmit_wait_ticks", &after).len();
    assert!(0 < waits, "the narrow link is still too narrow");
    let of_narrow = run.upstream(&both(narrow).each_ref().map(String::as_str));
    let later = run.at(660);
    let still = later.more("transmit_wait_ticks", &after);
    assert!(still.keys().all(|port| of_narrow.contains(*port)), "{still:?}");
}

fn congestion(run: &Run) {
    // Nobody waits before.
    run.at(20).assert_clean();

    // Twelve to one: what leads to the receiver is busy all the time, and those before it wait.
    let (from, to) = (run.at(65), run.at(140));
    let waits = to.more("transmit_wait_ticks", &from);
    let may = run.upstream(&["leaf-0-0[4]"]);
    assert!(waits.len() >= 12 && waits.keys().all(|port| may.contains(*port)), "{waits:?}");
    assert!(!waits.contains_key("leaf-0-0[4]"), "{waits:?}");
    to.assert_only(&[("transmit_wait_ticks", &waits.keys().copied().collect::<Vec<_>>())]);
    // And then nobody does.
    let (from, to) = (run.at(170), run.at(230));
    assert!(to.more("transmit_wait_ticks", &from).is_empty());

    // A receiver that is too slow: the port before it is the root, and waits most.
    let root = "leaf-0-1[5]";
    let (from, to) = (run.at(380), run.at(470));
    let waits = to.more("transmit_wait_ticks", &from);
    let may = run.upstream(&[root]);
    assert!(waits.len() >= 3, "{waits:?}");
    assert!(waits.keys().all(|port| *port == root || may.contains(*port)), "{waits:?}");
    // But for what is lost in rounding, for the one port that feeds it waits as long.
    let most = waits[root] + waits[root] / 1_000_000;
    assert!(waits.values().all(|wait| *wait <= most), "{waits:?}");
    // It waits for nine tenths of the time: what stands at its head for too long is discarded.
    let late = to.more("transmit_hoq_limit_discards", &from);
    assert!(late.contains_key(root), "{late:?}");
    assert!(late.keys().all(|port| waits.contains_key(port)), "{late:?}");
    // No cable is bad.
    for row in TABLE.iter().filter(|row| matches!(row.kind, Kind::Error | Kind::Link)) {
        assert!(to.counted(row.metric).is_empty(), "{}", row.metric);
    }
    let (from, to) = (run.at(500), run.at(560));
    assert!(to.more("transmit_wait_ticks", &from).is_empty());
    assert!(to.more("transmit_discards", &from).is_empty());
}

#[test]
fn a_receiver_that_takes_nearly_all_discards_nothing() {
    let run = Run::of(Simulated::text(
        "{traffic: {load: 60%}, timeline: [slow-receiver: {host: host-12, takes: 50%}]}",
    ));
    let look = run.at(120);
    let waits = look.counted("transmit_wait_ticks");
    assert!(waits.contains_key("leaf-0-1[5]") && waits.len() < 6, "{waits:?}");
    assert!(look.counted("transmit_discards").is_empty());
}

#[test]
fn what_waits_for_too_long_is_discarded_most_of_it_at_the_root() {
    let run = Run::of(Simulated::text(
        "{traffic: {load: 60%}, timeline: [slow-receiver: {host: host-12, takes: 3%}]}",
    ));
    // Not for long: the cause is counted in 16 bits.
    let look = run.at(65);
    let (root, may) = ("leaf-0-1[5]", run.upstream(&["leaf-0-1[5]"]));
    let late = look.counted("transmit_hoq_limit_discards");
    let at_most =
        |port: &str, count: u64| port == root || (may.contains(port) && count < late[root]);
    assert!(late.iter().all(|(port, count)| at_most(port, *count)), "{late:?}");
    assert!(late.contains_key(root) && late.len() <= 2, "{late:?}");
    assert_eq!(look.counted("transmit_discards"), late);
}

fn host_reboot(run: &Run) {
    let (own, far) = ("host-13[1]", "leaf-0-1[6]");
    let before = run.at(50);
    before.assert_clean();
    let during = run.at(100);
    assert_eq!(during.down(), ["host-13"]);
    assert_eq!(during.get("transmit_bytes_total", own), None);
    assert_eq!(during.get("state", far), Some(1));
    let after = run.at(245);
    assert_eq!(after.down(), [""; 0]);
    assert_eq!(after.get("state", far), Some(4));
    after.assert_only(&[
        ("link_downed", &[far]),
        ("transmit_discards", &[far]),
        ("transmit_inactive_discards", &[far]),
    ]);
    assert_eq!((after.count("link_downed", far), after.count("transmit_discards", far)), (1, LOST));
    // Ten gigabytes a second since the link has carried traffic again: at 2:31.
    let sent = after.count("transmit_bytes", own);
    assert!((83.0..=90.0).contains(&(sent as f64 / 10e9)), "{sent}");
    // Everybody else's go on.
    assert!(
        after.ports["transmit_bytes_total"]
            .iter()
            .all(|(port, bytes)| port == own || *bytes >= before.count("transmit_bytes", port))
    );
}

fn switch_reboot(run: &Run) {
    let before = run.at(50);
    before.assert_clean();
    let hosts: Vec<String> = (16..24).map(|host| format!("host-{host}")).collect();
    let during = run.at(150);
    let mut gone: Vec<&str> = hosts.iter().map(String::as_str).collect();
    gone.push("leaf-0-2");
    assert_eq!(during.down(), gone);

    // It is back at 3:00, and has a LID a second later: soon enough it is read again.
    assert!(run.at(230).get("transmit_bytes_total", "leaf-0-2[1]").is_some());
    let after = run.at(400);
    assert_eq!(after.down(), [""; 0]);
    let ends: Vec<String> = run.ports_of("leaf-0-2").iter().map(|port| run.peer(port)).collect();
    assert_eq!(ends.len(), 16);
    let downed = after.counted("link_downed");
    assert!(downed.values().all(|count| *count == 1));
    let mut expected: Vec<&str> = ends.iter().map(String::as_str).collect();
    expected.sort_unstable();
    assert_eq!(downed.into_keys().collect::<Vec<_>>(), expected);
    // The hosts' own counters stayed, and those of the switch began anew.
    for host in &hosts {
        let port = format!("{host}[1]");
        assert!(after.count("transmit_bytes", &port) > before.count("transmit_bytes", &port));
    }
    for port in run.ports_of("leaf-0-2") {
        let sent = after.count("transmit_bytes", &port);
        // 3:01 to 6:30 at 10 GB/s, where anything goes.
        assert!(sent <= 210 * 10_000_000_000, "{port}: {sent}");
    }
    for counter in ["symbol_errors", "receive_errors", "link_error_recoveries"] {
        assert!(after.counted(counter).is_empty());
    }
}

fn cleared_counters(run: &Run) {
    let (bad, own) = ("leaf-0-0[9]", run.ports_of("leaf-0-0"));
    let falls = |before: &Look, after: &Look| -> Vec<String> {
        let sent = &after.ports["receive_bytes_total"];
        let fell = |(port, bytes): (&String, &u64)| {
            (*bytes < before.count("receive_bytes", port)).then(|| port.clone())
        };
        sent.iter().filter_map(fell).collect()
    };
    let sorted = |mut ports: Vec<String>| {
        ports.sort();
        ports
    };
    // Each minute, five times.
    for minute in 1..=5 {
        let (before, after) = (run.at(60 * minute - 10), run.at(60 * minute + 2));
        let receiving: Vec<String> =
            own.iter().filter(|port| before.count("receive_bytes", port) > 0).cloned().collect();
        assert_eq!(falls(&before, &after), sorted(receiving), "minute {minute}");
        let errors = before.count("symbol_errors", bad);
        assert_drawn(errors, 45.0 * NDR_BITS * 1e-9, "in 45 s");
        assert!(after.count("symbol_errors", bad) < 500);
    }
    // All of them.
    let (before, after) = (run.at(410), run.at(422));
    let receiving = before.counted("receive_bytes").into_keys().map(str::to_owned).collect();
    assert_eq!(falls(&before, &after), sorted(receiving));
    // One of them.
    let (before, after) = (run.at(470), run.at(482));
    assert_eq!(falls(&before, &after), ["leaf-0-1[9]"]);
    // And what was set stays.
    let set = "leaf-0-1[10]";
    for look in [run.at(545), run.at(605)] {
        assert_eq!((look.count("symbol_errors", set), look.count("link_downed", set)), (4242, 17));
        assert_eq!(look.counted("link_downed").len(), 1);
        assert_eq!(look.counted("symbol_errors").len(), 2);
    }
}

fn dead_switch(run: &Run) {
    let own = run.ports_of("spine-1");
    let before = run.at(50);
    before.assert_clean();
    for (from, to) in [(80, 140), (140, 340)] {
        let (from, to) = (run.at(from), run.at(to));
        assert_eq!(to.down(), ["spine-1"]);
        for port in &own {
            assert_eq!(to.get("transmit_bytes_total", port), None, "{port}");
            // The other end of the cable shows what flows.
            let peer = run.peer(port);
            let [then, now] = [&from, &to].map(|look| look.count("receive_bytes", &peer));
            assert_eq!(now > then, then > 0, "{peer}");
        }
        to.assert_clean();
    }
    let after = run.at(420);
    assert_eq!(after.down(), [""; 0]);
    after.assert_clean();
    // Six minutes' worth and more: it counted while it was silent.
    for port in &own {
        let (then, now) = (before.count("receive_bytes", port), after.count("receive_bytes", port));
        assert!(now as f64 >= then as f64 * 8.5, "{port}: {then}, then {now}");
    }
    assert_eq!(after.changes("link_moved"), 0);
}

fn slow_node(run: &Run) {
    let before = run.at(50);
    assert_eq!((before.down(), before.mads("timed_out")), (vec![], 0));
    // 800 ms is too late, each time.
    let slow = run.at(110);
    assert_eq!(slow.down(), ["spine-0"]);
    assert!(slow.mads("timed_out") > 0 && slow.mads("busy") == 0);
    // An answer that comes too late is the kernel's to drop.
    assert_eq!(slow.mads("stray"), 0);
    // Half of the answers are busy: asked again, and all there.
    let busy = run.at(170);
    assert_eq!(busy.down(), ["spine-0"]);
    assert!(busy.mads("busy") > 0);
    // A leaf that takes 50 ms to answer is no trouble, and neither is it when it is busy as well.
    for seconds in [200, 230] {
        let look = run.at(seconds);
        assert_eq!(look.down(), ["spine-0"], "{seconds}");
        for port in run.ports_of("leaf-0-1") {
            assert!(look.get("transmit_bytes_total", &port).is_some());
        }
    }
    let after = run.at(420);
    assert_eq!((after.down(), after.of_fabric("infiniband_ports_failed")), (vec![], 0.0));
    after.assert_clean();
    // The leaf is still slow: its sweep takes longer, and nothing is lost.
    let later = run.at(480);
    assert_eq!(
        (later.mads("timed_out"), later.mads("busy")),
        (after.mads("timed_out"), after.mads("busy"))
    );
    let took = |look: &Look| look.of_fabric("infiniband_sweep_duration_seconds");
    assert!(took(&before) < 0.05 && took(&later) > 0.05);
}

fn lossy_fabric(run: &Run) {
    let all = run.net().node_ids().flat_map(|node| run.ports_of(&run.net().node(node).id)).count();
    let mut last = 0;
    for seconds in (20..420).step_by(15) {
        let look = run.at(seconds);
        let others: Vec<&str> = look.down().into_iter().filter(|node| *node != "host-7").collect();
        assert_eq!(others, [""; 0], "{seconds}");
        let missing = all - look.ports["transmit_bytes_total"].len().min(all);
        assert!(missing <= usize::from((120..=380).contains(&seconds)), "{seconds}: {missing}");
        look.assert_clean();
        last = look.mads("timed_out");
        // 2% of some 600 requests a sweep.
        assert!(seconds < 90 || last > 3, "{seconds}: {last}");
    }
    assert!(last > 100, "{last}");
    assert_eq!(run.at(480).down(), [""; 0]);
}

fn miswired(run: &Run) {
    let before = run.at(50);
    before.assert_clean();
    let swapped = [("leaf-0-1[2]", "host-9[1]"), ("leaf-0-1[5]", "host-12[1]")];
    for (port, peer) in swapped {
        assert_eq!(before.peers[port], peer);
    }
    let after = run.at(115);
    assert_eq!(after.peers["leaf-0-1[2]"], "host-12[1]");
    assert_eq!(after.peers["leaf-0-1[5]"], "host-9[1]");
    assert_eq!(after.peers["host-9[1]"], "leaf-0-1[5]");
    assert!(after.changes("link_moved") >= 1);
    assert_eq!(after.down(), [""; 0]);
    let mut ends = vec!["leaf-0-1[2]", "host-9[1]", "leaf-0-1[5]", "host-12[1]"];
    let check = |look: &Look, ends: &[&str]| {
        let mut ends = ends.to_vec();
        ends.sort_unstable();
        let downed = look.counted("link_downed");
        assert!(downed.values().all(|count| *count == 1), "{downed:?}");
        assert_eq!(downed.into_keys().collect::<Vec<_>>(), ends);
    };
    check(&after, &ends);
    // A cable between switches that is pulled, and put back where it was.
    let pulled = run.peer("leaf-0-0[16]");
    ends.extend(["leaf-0-0[16]", &pulled]);
    let during = run.at(140);
    assert_eq!(during.get("state", "leaf-0-0[16]"), Some(1));
    assert_eq!(during.get("state", &pulled), Some(1));
    let after = run.at(175);
    assert_eq!(after.get("state", "leaf-0-0[16]"), Some(4));
    assert_eq!(after.peers["leaf-0-0[16]"], pulled);
    check(&after, &ends);
    // A host's cable is pulled, and comes back in a spine.
    let gone = run.at(220);
    assert_eq!(gone.down(), ["host-23"]);
    let back = run.at(420);
    assert_eq!(back.down(), [""; 0]);
    assert_eq!(back.peers["host-23[1]"], "spine-0[16]");
    assert_eq!(back.peers["spine-0[16]"], "host-23[1]");
    assert_eq!(back.get("state", "leaf-0-2[8]"), Some(1));
    assert_eq!(back.get("state", "spine-0[16]"), Some(4));
    ends.extend(["leaf-0-2[8]", "host-23[1]"]);
    check(&back, &ends);
    assert!(back.counted("symbol_errors").is_empty());
}

fn new_master(run: &Run) {
    let lids = |look: &Look| -> BTreeMap<String, String> {
        let all = look.metrics.all("infiniband_node_info");
        all.map(|(labels, _)| (labels["guid"].clone(), labels["lid"].clone())).collect()
    };
    let before = run.at(50);
    // Another master, and everybody keeps its LID.
    let after = run.at(110);
    assert_eq!(lids(&before), lids(&after));
    assert_eq!(after.changes("lid_changed"), 0);
    {
        let world = run.simulated.world();
        let [manager, other] = ["host-2[1]", "spine-0[0]"].map(|port| run.simulated.port(port));
        assert_eq!(world.sm_lid(other), world.port(manager).lid);
    }
    // And the first one again, which gives other LIDs.
    assert_eq!(run.at(185).down(), [""; 0]);
    let last = run.at(200);
    assert_eq!(last.down(), [""; 0]);
    assert_eq!(run.at(290).down(), [""; 0]);
    let (then, now) = (lids(&before), lids(&last));
    assert_eq!(then.len(), now.len());
    let kept = then.iter().filter(|(guid, lid)| now[*guid] == **lid).count();
    assert!(kept <= 1, "{kept} kept theirs");
    assert!(last.changes("lid_changed") >= 28);
    last.assert_clean();
}

#[test]
fn no_reading_of_one_port_is_told_as_anothers_when_all_lids_change() {
    let run = Run::of(Simulated::text(
        "timeline: [bad-cable: {into: host-5, ratio: 1e-11}, \
         new-master: {at: 1m, host: host-2}, \
         new-master: {at: 2m, host: host-1, readdress: true}, \
         new-master: {at: 3m, host: host-2, readdress: true}]",
    ));
    for seconds in (20..=230).step_by(5) {
        let look = run.at(seconds);
        assert_eq!(look.down(), [""; 0], "{seconds}");
        let errors = look.counted("symbol_errors");
        assert_eq!(errors.keys().copied().collect::<Vec<_>>(), ["host-5[1]"], "{seconds}");
    }
    assert!(run.at(100).changes("lid_changed") >= 28);
}

/// All that chance has a say in.
const CHANCE: &str = r#"
way: {loss: 1%, jitter: 100us}
traffic: {pattern: random, load: 50%}
timeline:
  - bad-cable: {at: 10s, into: "leaf-0-1[9]", ratio: 1e-10}
  - bad-cable: {at: 20s 300ms, into: "host-3", ratio: 3e-11, for: 1m 500ms}
  - flap: {at: 30s, link: "leaf-0-0[2]", down: [5ms, 700ms], every: 20s, times: 4}
  - burst: {at: 40s, from: 5, to: host-7, load: 80%, for: 33s}
  - slow-receiver: {at: 60s, host: host-9, takes: 5%, for: 30s}
"#;

fn chance(seed: u64) -> Run {
    Run::of(Simulated::text(&format!("seed: {seed}\n{CHANCE}")))
}

#[test]
fn the_same_seed_is_the_same_story_however_often_one_looks() {
    let (once, often) = (chance(1), chance(1));
    // In small steps, with somebody else looking at the world in between.
    for step in 1..500 {
        often.simulated.run_to(Duration::from_millis(370 * step));
        if step % 3 == 0 {
            drop(often.simulated.world());
        }
    }
    let (once, often) = (once.at(185), often.at(185));
    assert_eq!(once.of_ports(), often.of_ports());
    assert_eq!(once.mads("timed_out"), often.mads("timed_out"));
    assert!(once.mads("timed_out") > 0);
    let other = chance(2).at(185);
    for counter in ["symbol_errors", "receive_errors", "transmit_bytes"] {
        assert_ne!(once.counted(counter), other.counted(counter), "{counter}");
    }
}

#[test]
fn a_day_is_over_soon() {
    let text = "{timeline: [bad-cable: {into: \"leaf-0-1[9]\", ratio: 1e-12}, \
                flap: {at: 1h, link: host-3, down: [5ms, 3s], every: 1h, times: 20}]}";
    let story = Scenario::parse("day", text).unwrap().story(&Overrides::default()).unwrap();
    let options = FabricOptions {
        interval: Some("5m".parse().unwrap()),
        discovery_interval: Some("1h".parse().unwrap()),
        ..FabricOptions::default()
    };
    let run = Run::of(Simulated::with(story, options));
    let look = run.at(24 * 3600 + 30);
    assert_eq!(look.metrics.get_u64("infiniband_sweeps_total", &[]), Some(24 * 12 + 1));
    for end in ["host-3[1]", "leaf-0-0[4]"] {
        assert_eq!(look.count("link_downed", end), 10);
        assert_eq!(look.count("link_error_recoveries", end), 10);
    }
    assert_drawn(
        look.count("symbol_errors", "leaf-0-1[9]"),
        86400.0 * NDR_BITS * 1e-12,
        "in a day",
    );
}
