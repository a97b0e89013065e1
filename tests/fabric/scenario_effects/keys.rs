//! M_Keys and partitions: they are diagnosed, and nodes that refuse get fewer requests.

use std::fmt::Write;
use std::path::{Path, PathBuf};
use std::time::Duration;

use fabric_exporter::config::options::FabricOptions;
use ib_mad::m_key::MKey;
use ib_sim::net::{NodeId, PortId};
use ib_sim::scenario::{FabricChange, Overrides, ResolvedScenario, Scenario};

use crate::scenario_effects::look::Run;
use test_rig::Simulated;

const HOUR: Duration = Duration::from_secs(3600);
const MINUTE: Duration = Duration::from_secs(60);

fn story(text: &str) -> ResolvedScenario {
    let scenario = Scenario::parse("test", text).unwrap();
    scenario.resolve(&Overrides::default()).unwrap()
}

/// A monitor with these keys on a tree of 24 hosts and 5 switches, with this timeline.
fn watched(timeline: &str, keys: Option<&Path>) -> Simulated {
    let story = story(&format!("traffic: {{pattern: none}}\ntimeline: [{timeline}]"));
    let m_key_file = keys.map(Path::to_owned);
    Simulated::with(story, FabricOptions { m_key_file, ..FabricOptions::default() })
}

/// A metric of the fabric.
fn told(run: &Simulated, name: &str) -> f64 {
    run.metrics().get(name, &[("fabric", "default")]).unwrap_or_else(|| panic!("no {name}"))
}

/// The number of Gets that ports have dropped for their M_Key.
fn refused(run: &Simulated) -> u64 {
    let world = run.world();
    world.net().node_ids().map(|node| u64::from(world.protection(node).violations)).sum()
}

fn key_file(folder: &Path, name: &str, text: &str) -> PathBuf {
    let path = folder.join(name);
    std::fs::write(&path, text).unwrap();
    path
}

const PROTECTED: &str = "m-key: {key: 0x1234, level: 2}";

pub fn protected_fabric(run: &Run) {
    let run = &run.simulated;
    run.run_to(MINUTE);
    assert_eq!(told(run, "infiniband_mkey_suspected"), 1.0);
    assert_eq!(
        told(run, "fabric_exporter_nodes_seen"),
        0.0,
        "our own port refuses its own host, too"
    );
    run.run_to(HOUR);
    assert_eq!(told(run, "infiniband_mkey_suspected"), 1.0);
    let refused = refused(run);
    assert!((1..360).contains(&refused), "{refused} SMPs to ports that refuse in an hour");
}

/// Some adapters respond to their own host whatever the key: PortInfo has the protection level, and
/// no other node responds. The exporter is on host-0.
const ANSWERS_ITS_OWN_HOST: &str = "m-key: {key: 0, level: 2, node: host-0}";

#[test]
fn protected_fabric_is_diagnosed_with_a_local_response() {
    let run = watched(&format!("{PROTECTED}, {ANSWERS_ITS_OWN_HOST}"), None);
    run.run_to(MINUTE);
    assert_eq!(told(&run, "infiniband_mkey_suspected"), 1.0);
    assert_eq!(told(&run, "fabric_exporter_discovery_unresponsive_ports"), 1.0);
    assert_eq!(told(&run, "fabric_exporter_nodes_seen"), 1.0, "our own host");
    run.run_to(HOUR);
    assert_eq!(told(&run, "infiniband_mkey_suspected"), 1.0);
    let refused = refused(&run);
    assert!((1..360).contains(&refused), "{refused} SMPs to ports that refuse in an hour");
}

#[test]
fn one_hanging_host_is_not_diagnosed_as_m_key() {
    let run = watched("m-key: {key: 0, level: 2}, silent: {node: host-3}", None);
    run.run_to(MINUTE);
    assert_eq!(told(&run, "fabric_exporter_discovery_unresponsive_ports"), 1.0);
    assert_eq!(told(&run, "infiniband_mkey_suspected"), 0.0);
}

#[test]
fn m_key_makes_a_protected_fabric_readable() {
    let folder = tempfile::tempdir().unwrap();
    let net = story("").net;
    let mut guid2mkey = String::new();
    for port in net.port_ids().map(|port| net.port(port)).filter(|port| port.guid.0 != 0) {
        let _ = write!(guid2mkey, "{} 0x0000000000001234\n\n", port.guid);
    }
    for text in ["0x1234\n", &guid2mkey] {
        let keys = key_file(folder.path(), "keys", text);
        let run = watched(PROTECTED, Some(&keys));
        run.run_to(HOUR);
        assert_eq!(told(&run, "fabric_exporter_nodes_seen"), 29.0);
        assert_eq!(told(&run, "fabric_exporter_nodes_failed"), 0.0);
        assert_eq!(told(&run, "fabric_exporter_discovery_gaps"), 0.0);
        assert_eq!(told(&run, "infiniband_mkey_suspected"), 0.0);
        assert_eq!(told(&run, "fabric_exporter_ports_failed"), 0.0);
        let open = watched("", None);
        open.run_to(HOUR);
        let ports = told(&open, "fabric_exporter_ports_seen");
        assert_eq!(told(&run, "fabric_exporter_ports_seen"), ports, "as without protection");
        assert_eq!(refused(&run), 0);
    }
}

#[test]
fn each_node_gets_its_key_from_opensm_files() {
    let folder = tempfile::tempdir().unwrap();
    let story = story("traffic: {pattern: none}");
    let net = &story.net;
    let key = |node: NodeId| 0x1000 + u64::from(node.0);
    let (mut guid2mkey, mut neighbors) = (String::new(), String::new());
    // All ports of a switch have the key of port 0's GUID.
    let guid_of = |id: PortId| {
        let is_host = net.node_of(id).is_host();
        let zero = net.port_by_number(net.port(id).node, 0).filter(|_| !is_host);
        net.port(zero.unwrap_or(id)).guid
    };
    for id in net.port_ids() {
        let (port, zero) = (net.port(id), guid_of(id));
        let _ = writeln!(guid2mkey, "{zero} {:#018x}", key(port.node));
        if let Some(far) = port.cable {
            let (far_guid, far) = (guid_of(far), net.port(far));
            let _ = writeln!(neighbors, "{zero}:{} {far_guid}:{}", port.number, far.number);
        }
    }
    let keys = key_file(folder.path(), "guid2mkey", &guid2mkey);
    key_file(folder.path(), "neighbors", &neighbors);
    let nodes: Vec<NodeId> = net.node_ids().collect();
    let options = FabricOptions { m_key_file: Some(keys), ..FabricOptions::default() };
    let run = Simulated::with(story, options);
    for node in nodes {
        run.act(FabricChange::SetMKey { nodes: vec![node], m_key: MKey(key(node)), level: 3 });
    }
    run.run_to(10 * MINUTE);
    assert_eq!(told(&run, "fabric_exporter_nodes_seen"), 29.0);
    assert_eq!(told(&run, "fabric_exporter_discovery_gaps"), 0.0);
    assert_eq!(refused(&run), 0);
}

#[test]
fn corrected_m_key_file_is_reloaded_at_once() {
    let folder = tempfile::tempdir().unwrap();
    let keys = key_file(folder.path(), "key", "0x4321\n");
    let run = watched(PROTECTED, Some(&keys));
    run.run_to(HOUR);
    assert_eq!(told(&run, "infiniband_mkey_suspected"), 1.0);
    assert!(refused(&run) < 360, "{}", refused(&run));
    key_file(folder.path(), "key", "0x1234\n");
    run.run_for(6 * MINUTE);
    assert_eq!(told(&run, "infiniband_mkey_suspected"), 0.0);
    assert_eq!(told(&run, "fabric_exporter_nodes_seen"), 29.0);
}

#[test]
fn changed_m_key_causes_few_smps() {
    // 96 hosts and their switches are known by their LIDs. From then on all of them, or the hosts,
    // refuse.
    let text = "fabric: {fat-tree: {hosts: 96, radix: 32}}\ntraffic: {pattern: none}";
    let story = story(text);
    let all: Vec<NodeId> = story.net.node_ids().collect();
    let is_host = |node: &NodeId| story.net.node(*node).is_host();
    let hosts: Vec<NodeId> = all.iter().copied().filter(is_host).collect();
    for nodes in [all, hosts] {
        let run = Simulated::with(story.clone(), FabricOptions::default());
        run.run_to(2 * MINUTE);
        let (found, ports) =
            (told(&run, "fabric_exporter_nodes_seen"), told(&run, "fabric_exporter_ports_seen"));
        assert_eq!(told(&run, "infiniband_mkey_suspected"), 0.0);
        run.act(FabricChange::SetMKey { nodes, m_key: MKey(0x1234), level: 2 });
        run.run_to(2 * MINUTE + HOUR / 2);
        assert_eq!(told(&run, "infiniband_mkey_suspected"), 1.0);
        let refused = refused(&run);
        assert!(refused < 1800, "{refused} SMPs to ports that refuse in half an hour");
        // Performance management has no M_Key: counters are still read.
        assert_eq!(told(&run, "fabric_exporter_nodes_seen"), found);
        assert_eq!(told(&run, "fabric_exporter_ports_seen"), ports);
    }
}

#[test]
fn refusing_hosts_get_few_smps_until_they_respond() {
    let fabric = "fabric: {fat-tree: {hosts: 160, radix: 64}}\ntraffic: {pattern: none}";
    let mut text = format!("{fabric}\ntimeline:\n- {ANSWERS_ITS_OWN_HOST}\n");
    for host in 1..160 {
        let _ = writeln!(text, "- m-key: {{key: 0x7, level: 2, node: host-{host}}}");
    }
    let story = story(&text);
    let hosts: Vec<NodeId> =
        story.net.node_ids().filter(|node| story.net.node(*node).is_host()).collect();
    let switches = (story.net.nodes.len() - hosts.len()) as f64;
    let run = Simulated::with(story.clone(), FabricOptions::default());
    for minute in 1..=30 {
        run.run_to(minute * MINUTE);
    }
    assert_eq!(
        told(&run, "fabric_exporter_nodes_seen"),
        switches + 1.0,
        "switches and our own host"
    );
    assert_eq!(told(&run, "fabric_exporter_discovery_unresponsive_ports"), 159.0);
    // The local port has a protection level.
    assert_eq!(told(&run, "infiniband_mkey_suspected"), 1.0);
    let refused = refused(&run);
    assert!(refused < 1800, "{refused} SMPs to ports that refuse in half an hour");
    run.act(FabricChange::SetMKey { nodes: hosts, m_key: MKey::NONE, level: 0 });
    run.run_for(11 * MINUTE);
    assert_eq!(told(&run, "fabric_exporter_nodes_seen"), switches + 160.0);
    assert_eq!(told(&run, "infiniband_mkey_suspected"), 0.0);
}

#[test]
fn hanging_host_is_not_diagnosed_as_m_key() {
    let run = watched("silent: {node: host-3}", None);
    run.run_to(MINUTE);
    assert_eq!(told(&run, "fabric_exporter_discovery_unresponsive_ports"), 1.0);
    assert_eq!(told(&run, "infiniband_mkey_suspected"), 0.0);
    assert_eq!(told(&run, "fabric_exporter_nodes_seen"), 28.0);
}

pub fn limited_members(run: &Run) {
    let run = &run.simulated;
    run.run_to(Duration::from_secs(59));
    assert_eq!(told(run, "infiniband_partition_suspected"), 0.0);
    run.run_to(2 * MINUTE);
    assert_eq!(told(run, "infiniband_partition_suspected"), 1.0);
    let metrics = run.metrics();
    let up = |kind: &str| {
        let of_kind =
            metrics.all("infiniband_node_info").filter(|(labels, _)| labels["node_type"] == kind);
        let is_up = |guid: &str| metrics.get("infiniband_node_up", &[("guid", guid)]);
        of_kind.filter(|(labels, _)| is_up(&labels["guid"]) == Some(1.0)).count()
    };
    assert_eq!(up("switch"), 5, "a switch's port 0 is a full member");
    // The subnet manager's host is a full member, and the local host responds to itself.
    assert_eq!(up("ca"), 2);
    // The remedy: the local port becomes a full member.
    let seat = run.story().net.port(run.story().local_ports[0]).node;
    run.act(FabricChange::SetMembership { nodes: vec![seat], full: true });
    run.run_for(MINUTE);
    assert_eq!(told(run, "infiniband_partition_suspected"), 0.0);
    assert_eq!(told(run, "fabric_exporter_nodes_failed"), 0.0);
}

#[test]
fn hanging_hosts_are_not_diagnosed_as_partition() {
    // 23 other hosts: some respond, or the others do not respond to subnet management either.
    for hung in [12, 20, 23] {
        let silent: Vec<String> =
            (1..=hung).map(|host| format!("silent: {{at: 1m, node: host-{host}}}")).collect();
        let run = watched(&silent.join(", "), None);
        run.run_to(3 * MINUTE);
        assert_eq!(told(&run, "infiniband_partition_suspected"), 0.0, "{hung} hosts hang");
        assert!(told(&run, "fabric_exporter_nodes_failed") >= f64::from(hung), "{hung}");
    }
}
