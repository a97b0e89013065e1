//! What is in maintenance: windows, and hosts that a scheduler has drained.

use super::*;

fn drained(list: &str) -> DrainedHosts {
    let mut hosts = DrainedHosts::default();
    hosts.add(list).unwrap();
    hosts
}

/// Switch 1, host 2 with two adapters (2 and 3) and host 4; the second adapter has a cable to switch 5, in another plane.
fn two_planes() -> Arc<Fabric> {
    let mut nodes = vec![
        found(1, NodeKind::Switch, 3),
        found(2, NodeKind::Ca, 1),
        found(3, NodeKind::Ca, 1),
        found(4, NodeKind::Ca, 1),
        found(5, NodeKind::Switch, 2),
    ];
    for (node, name) in
        nodes.iter_mut().zip(["leaf-1", "gpu7 mlx5_0", "gpu7 mlx5_1", "gpu8", "leaf-5"])
    {
        node.identity.description = name.into();
    }
    let links = [
        (end(1, 1), end(2, 1)),
        (end(5, 1), end(3, 1)),
        (end(1, 2), end(4, 1)),
        (end(1, 3), end(5, 2)),
    ];
    Arc::new(fabric(nodes, &links, None))
}

/// The GUIDs of the nodes in maintenance, and the links, by the GUID of their first end that is in maintenance.
fn in_maintenance(link: &mut Scenario) -> (Vec<u64>, usize) {
    let (snapshot, assessment) = link.evaluated();
    let guid = |node: &NodeIndex| snapshot.fabric.node(*node).identity.guid.0;
    let is_in = |it: &&LinkAssessment| it.reasons.weight(Reason::Maintenance).is_some();
    let links = assessment.links.iter().filter(is_in).count();
    (assessment.in_maintenance.iter().map(guid).collect(), links)
}

/// The GUIDs of the nodes that are drained.
fn named(link: &mut Scenario) -> Vec<u64> {
    let (snapshot, assessment) = link.evaluated();
    let guid = |node: &NodeIndex| snapshot.fabric.node(*node).identity.guid.0;
    assessment.drained.iter().map(guid).collect()
}

#[test]
fn drained_host_is_in_maintenance_with_its_adapters_and_links() {
    let mut link = Scenario::new();
    link.fabric = two_planes();
    assert_eq!(in_maintenance(&mut link), (vec![], 0));
    link.evaluator.set_drained(drained("gpu[7-8],nobody"));
    assert_eq!(in_maintenance(&mut link), (vec![2, 3, 4], 3));
    link.evaluator.set_drained(drained("gpu7"));
    assert_eq!(in_maintenance(&mut link), (vec![2, 3], 2));
    assert_eq!(named(&mut link), [2, 3]);
    // The names change with the next discovery.
    let mut fabric = (*link.fabric).clone();
    let node = fabric.node_by_guid(Guid(4)).unwrap();
    fabric.nodes[node].name = "gpu7 mlx5_2".into();
    fabric.nodes[node].host = Some("gpu7".into());
    link.fabric = Arc::new(fabric);
    assert_eq!(in_maintenance(&mut link), (vec![2, 3, 4], 3));
    // They return.
    link.evaluator.set_drained(DrainedHosts::default());
    assert_eq!(in_maintenance(&mut link), (vec![], 0));
}

#[test]
fn nodes_behind_what_is_in_maintenance_are_too() {
    let window = |node: &str, port| MaintenanceWindow {
        node: NodeSelector::new(node),
        port,
        from: None,
        until: None,
    };
    let mut link = Scenario::new();
    link.fabric = two_planes();
    // The switch of the second plane has another cable, but is named; its host has no other.
    link.evaluator.maintenance = vec![window("leaf-5", None)];
    assert_eq!(in_maintenance(&mut link), (vec![3, 5], 2));
    assert_eq!(named(&mut link), [5], "its host may run jobs on its other rail");
    link.evaluator.maintenance = vec![window("leaf-?", Some(2))];
    assert_eq!(in_maintenance(&mut link), (vec![4], 2));
    assert_eq!(named(&mut link), []);
    link.evaluator.maintenance = vec![window("gpu*", None)];
    assert_eq!(in_maintenance(&mut link), (vec![2, 3, 4], 3));
}

#[test]
fn host_that_is_down_behind_a_disabled_port_is_expected_to_be() {
    let mut link = Scenario::new();
    let disabled = PortStatus { physical_state: PhysicalState::Disabled, ..polling() };
    link.near = Some(disabled);
    assert_eq!(in_maintenance(&mut link), (vec![], 0), "it responds");
    link.host_silent = true;
    assert_eq!(in_maintenance(&mut link), (vec![2], 0));
    link.near = Some(polling());
    assert_eq!(in_maintenance(&mut link), (vec![], 0), "it is down by itself");
}

#[test]
fn losses_of_a_drained_host_are_expected() {
    let mut link = Scenario::new();
    link.evaluator.set_drained(drained("node 2"));
    link.near = Some(polling());
    let found = link.sweeps(40);
    assert_eq!((found.verdict, found.up), (Verdict::Unknown, Some(false)));
    link.near = Some(up(1));
    link.downed = [1, 1];
    let found = link.sweeps(5);
    assert_eq!((found.outages.flaps, found.outages.expected), (0, [0, 1]));
}
