//! Names and GUIDs that several nodes of the fabric share, as the walk for standby managers found them.

use std::collections::BTreeMap;

use ib_fabric::{Fabric, Node};
use ib_mad::label;
use ib_mad::node::NodeKind;

use super::finding::{Finding, Subject};

const SUBJECT: Subject = Subject::Fabric;

/// So many shared names and GUIDs are listed; of the others it is said how many there are.
const MOST: usize = 5;

/// Looks at what the nodes are called.
pub(super) fn check(what: &str, fabric: &Fabric) -> Vec<Finding> {
    vec![guids(&format!("{what}: GUIDs"), fabric), names(&format!("{what}: names"), fabric)]
}

fn guids(what: &str, fabric: &Fabric) -> Finding {
    let all = &fabric.duplicates;
    if all.is_empty() {
        return Finding::ok(SUBJECT, what, "each node has a GUID of its own");
    }
    let one = |it| {
        let known = fabric.node_by_guid(it).map_or("", |node| &*fabric.node(node).name);
        format!("{it}, also of {known}")
    };
    let told = all.iter().map(|it| format!("{} ({})", it.location(fabric), one(it.guid)));
    let found = format!("left out, for their GUID is another node's: {}", list(told.collect()));
    Finding::warn(SUBJECT, what, found)
        .wanted("a NodeGUID of its own for each node: a subnet manager cannot tell them apart either")
        .mend("mstflint -d DEVICE query   # compare with the label of the card, then burn its own GUIDs")
}

fn names(what: &str, fabric: &Fabric) -> Finding {
    let mut shared: BTreeMap<&str, usize> = BTreeMap::new();
    // All aggregation nodes have one description, which no site can change.
    let named = fabric.nodes.iter().filter(|it| it.identity.kind != NodeKind::AggregationNode);
    for name in named.filter(|node| node.name != node.shared_name()).map(Node::shared_name) {
        *shared.entry(name).or_default() += 1;
    }
    if shared.is_empty() {
        return Finding::ok(SUBJECT, what, "each node has a name of its own");
    }
    let told = shared
        .iter()
        .map(|(name, times)| format!("{} called {name:?}", label::plural(*times, "node")));
    let found = format!("{}; each has digits of its GUID appended", list(told.collect()));
    Finding::note(SUBJECT, what, found)
        .wanted("names that say where a node is")
        .mend("--fabric.node-name-map FILE for switches; rdma-ndd on hosts")
}

fn list(mut all: Vec<String>) -> String {
    let more = all.len().saturating_sub(MOST);
    all.truncate(MOST);
    if more > 0 {
        all.push(format!("{more} more"));
    }
    all.join(", ")
}

#[cfg(test)]
mod tests {
    use super::super::finding::Level;
    use super::*;
    use ib_fabric::assembly::DiscoveredFabric;
    use ib_fabric::names::NodeNameMap;
    use ib_fabric::testing::{end, found};
    use ib_fabric::topology::DuplicateGuid;
    use ib_mad::{Guid, Moment};

    #[test]
    fn shared_names_and_guids_are_listed() {
        let mut nodes = vec![found(1, NodeKind::Switch, 2)];
        let whole = |nodes, duplicates| {
            let found = DiscoveredFabric { nodes, duplicates, ..DiscoveredFabric::default() };
            Fabric::assemble(found, &NodeNameMap::default(), Moment(0), None)
        };
        let levels = |fabric: &Fabric| [0, 1].map(|nth| check("f", fabric)[nth].level);
        assert_eq!(levels(&whole(nodes.clone(), Vec::new())), [Level::Ok; 2]);

        nodes.extend((2..10).map(|guid| found(guid, NodeKind::Switch, 2)));
        nodes.extend((20..30).map(|guid| found(guid, NodeKind::AggregationNode, 1)));
        for node in &mut nodes[1..] {
            node.identity.description = match node.identity.kind {
                NodeKind::Switch => "Quantum-2 Mellanox Technologies".into(),
                _ => "Mellanox Technologies Aggregation Node".into(),
            };
        }
        let duplicate = DuplicateGuid { guid: Guid(3), behind: Some(end(1, 2)) };
        let fabric = whole(nodes, vec![duplicate]);
        assert_eq!(levels(&fabric), [Level::Warn, Level::Note]);
        let findings = check("f", &fabric);
        for (finding, says) in findings.iter().zip([
            "behind node 1 port 2 (0x0000000000000003, also of Quantum-2 Mellanox Technologies#000003)",
            "8 nodes called \"Quantum-2 Mellanox Technologies\"; each has",
        ]) {
            assert!(finding.found.contains(says), "{finding:?}");
        }
        assert!(!findings[1].found.contains("Aggregation"), "{findings:?}");
    }
}
