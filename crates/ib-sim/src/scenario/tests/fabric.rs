//! The fabric of a scenario.

use super::super::{Overrides, Scenario, TopologySource};
use crate::net::Net;
use crate::net::shapes::{BackToBack, DragonflyPlus, FatTree};

fn shaped(fabric: &str) -> TopologySource {
    let scenario = Scenario::parse("x.yml", fabric).unwrap();
    scenario.source(&Overrides::default()).unwrap()
}

fn built(fabric: &str) -> Result<Net, String> {
    let scenario = Scenario::parse("x.yml", fabric).map_err(|error| error.to_string())?;
    scenario.net(&Overrides::default()).map_err(|error| error.to_string())
}

#[test]
fn default_fabric_is_a_fat_tree_of_24_hosts() {
    let TopologySource::FatTree(tree) = shaped("") else { panic!("a tree") };
    assert_eq!((tree.levels, tree.hosts, tree.radix), (2, 24, 16));
    assert_eq!((tree.down, tree.up, tree.ports, tree.planes), (None, None, 1, 1));
    assert_eq!((tree.switch.as_str(), tree.hca.as_str()), ("quantum-2", "connectx-7"));
}

#[test]
fn default_shapes_can_be_built() {
    for (shape, nodes) in [("fat-tree", 24 + 5), ("back-to-back", 2), ("dragonfly-plus", 36)] {
        assert_eq!(built(&format!("fabric: {{{shape}: {{}}}}")).unwrap().nodes.len(), nodes);
    }
}

#[test]
fn parameters_of_shapes_are_read() {
    assert_eq!(shaped("fabric: {file: a/b.topo}"), TopologySource::File("a/b.topo".into()));
    assert_eq!(
        shaped("fabric: {back-to-back: {hca: connectx-5}}"),
        TopologySource::BackToBack(BackToBack { hca: "connectx-5".into() })
    );
    let text = "fabric: {dragonfly-plus: {groups: 5, leaves: 4, spines: 3, hosts-per-leaf: 2, \
                global: 6, radix: 32, switch: quantum, hca: connectx-6}}";
    assert_eq!(
        shaped(text),
        TopologySource::DragonflyPlus(DragonflyPlus {
            groups: 5,
            leaves: 4,
            spines: 3,
            hosts_per_leaf: 2,
            global: 6,
            radix: 32,
            switch: "quantum".into(),
            hca: "connectx-6".into(),
        })
    );
    let text = "fabric: {fat-tree: {levels: 3, hosts: 9, radix: 8, down: 3, up: 2, ports: 2, \
                planes: 4, rail-hosts: 2, aggregation-nodes: true, switch: quantum, hca: connectx-6}}";
    assert_eq!(
        shaped(text),
        TopologySource::FatTree(FatTree {
            levels: 3,
            radix: 8,
            hosts: 9,
            down: Some(3),
            up: Some(2),
            ports: 2,
            planes: 4,
            rail_hosts: 2,
            aggregation_nodes: true,
            switch: "quantum".into(),
            hca: "connectx-6".into(),
        })
    );
}

#[test]
fn impossible_shapes_are_reported_with_their_line() {
    for (text, says) in [
        ("{fat-tree: {hosts: 0}}", "line 1: fabric: hosts is 0; it must be between 1 and 49151"),
        ("\n  fat-tree:\n    levels: 9", "line 3: fabric: levels is 9; it must be between 2 and 3"),
        (
            "\n  fat-tree:\n    radix: 8\n    down: 7",
            "line 2: fabric: a leaf (down + up) needs 11 ports, but a switch has 8",
        ),
        (
            "\n  fat-tree:\n    hosts: 24\n    up: 0",
            "line 4: fabric: up is 0; it must be between 1 and",
        ),
        ("\n  fat-tree:\n    radix: 4\n    hosts: 99", "line 4: fabric: 99 hosts are too many:"),
        (
            "\n  fat-tree:\n    radix: 8\n    hca: quantum",
            "line 4: fabric: model quantum is not a ca",
        ),
        ("{back-to-back:\n  {hca: switchx}}", "line 2: fabric: model switchx is not a ca"),
        (
            "\n  dragonfly-plus:\n    groups: 3\n    hosts-per-leaf: 0",
            "line 4: fabric: hosts-per-leaf is 0; it must be between 1 and 254",
        ),
        (
            "\n  dragonfly-plus:\n    groups: 3\n    switch: connectx-7",
            "line 4: fabric: model connectx-7 is not a switch",
        ),
        (
            "\n  dragonfly-plus:\n    groups: 4",
            "line 2: fabric: 2 global cables per group cannot be spread evenly over 3 other",
        ),
        ("{file: ''}", "line 1: fabric: file: must not be empty"),
        (
            "{fat-tree: {hca: conectx-7}}",
            "line 1: fabric: hca: no model \"conectx-7\" (did you mean \"connectx-7\"?)",
        ),
        (
            "\n  fat-tree:\n    hca: connectx-77",
            "line 3: fabric: hca: no model \"connectx-77\" (did you mean \"connectx-7\"?)",
        ),
        ("{fat-tree: {switch: fast}}", "line 1: fabric: switch: no model \"fast\"; known: "),
    ] {
        let error = built(&format!("fabric: {text}")).unwrap_err();
        assert!(error.starts_with(&format!("x.yml: {says}")), "{text}: {error}");
    }
}

#[test]
fn topology_file_is_relative_to_the_scenario() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name);
    std::fs::write(path("x.yml"), "fabric: {file: a.topo}\nseat: h2").unwrap();
    let scenario = Scenario::read(&path("x.yml")).unwrap();
    let cable = "Switch 4 \"s\"\n[1] \"h1\"\n[2] \"h2\"\n\nHca 1 \"h1\"\n\nHca 1 \"h2\"\n";
    std::fs::write(path("a.topo"), cable).unwrap();
    let story = scenario.resolve(&Overrides::default()).unwrap();
    assert_eq!(story.net.label(story.local_ports[0]), "h2[1]");
    // Instead of the fabric of another scenario.
    let instead = Overrides { fabric: Some(path("a.topo")), ..Overrides::default() };
    let other = Scenario::parse("y.yml", "fabric: {back-to-back: {}}").unwrap();
    assert_eq!(other.net(&instead).unwrap(), story.net);
    // Its mistakes have its own name and lines.
    std::fs::write(path("a.topo"), cable.replace("[2] \"h2\"", "[9] \"h2\"")).unwrap();
    for error in [scenario.net(&Overrides::default()), other.net(&instead)] {
        let error = error.unwrap_err().to_string();
        let begins = format!("{}: line 3: ", path("a.topo").display());
        assert!(error.starts_with(&begins), "{error}");
    }
}
