//! The findings on nodes that are down.

use std::time::Duration;

use display_text::plural;
use fabric_observation::Observation;
use ib_health::Verdict;
use ib_mad::node::NodeKind;

use super::down::{DownNode, DownNodes, name};
use super::finding::{FindingKind, Found};
use crate::filter::KINDS;
use crate::view::FabricView;

/// For how long nothing is known of an HCA that is down: it may reboot. `InfinibandNodeDown` waits as long.
const REBOOT: Duration = Duration::from_secs(15 * 60);

/// How many nodes a headline names.
const MAX_NAMED: usize = 3;

/// Nodes that are down by themselves and of the same kind, and how bad that is.
struct Group<'a> {
    weight: Weight,
    kind: NodeKind,
    nodes: Vec<&'a DownNode>,
}

/// How bad it is that a node is down.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Weight {
    finding: FindingKind,
    verdict: Verdict,
    /// It may reboot.
    reboots: bool,
}

/// The findings on nodes that are down by themselves, each with the number of those behind them.
pub(crate) fn findings(
    observation: &Observation,
    view: FabricView<'_>,
    down: &DownNodes,
) -> Vec<Found> {
    let mut groups: Vec<Group<'_>> = Vec::new();
    for node in down.iter().filter(|node| node.behind.is_none()) {
        let kind = view.snapshot.fabric.node(node.index).identity.kind;
        let weight = weight(observation, view, node, kind);
        let is_its = |it: &&mut Group<'_>| (it.weight, it.kind) == (weight, kind);
        match groups.iter_mut().find(is_its) {
            Some(group) => group.nodes.push(node),
            None => groups.push(Group { weight, kind, nodes: vec![node] }),
        }
    }
    let found = groups.iter().map(|group| Found {
        kind: group.weight.finding,
        verdict: group.weight.verdict,
        count: group.nodes.len(),
        text: group.text(view, down),
        nodes: group.nodes.iter().take(MAX_NAMED).map(|node| name(view, node.index)).collect(),
        alert: match group.kind {
            NodeKind::Switch => Some("InfinibandSwitchDown"),
            NodeKind::AggregationNode => None,
            _ => Some("InfinibandNodeDown"),
        },
    });
    found.collect()
}

/// How bad it is that a node is down. A switch is bad at once, because it cuts off others. An aggregation node
/// disappears when SHARP is disabled. An HCA may reboot: on a site of 5,000 hosts there is nearly always one
/// that does, and it needs no action. While a partition keeps all hosts from responding, or links are in maintenance, nothing is
/// known.
fn weight(
    observation: &Observation,
    view: FabricView<'_>,
    node: &DownNode,
    kind: NodeKind,
) -> Weight {
    let age = |since| view.snapshot.began.since(since);
    let is_new = node.since.is_some_and(|since| age(since) < REBOOT);
    let finding = match kind {
        _ if node.in_maintenance => FindingKind::Maintenance,
        NodeKind::Switch => FindingKind::SwitchesDown,
        _ => FindingKind::NodesDown,
    };
    let (verdict, reboots) = match kind {
        _ if node.in_maintenance => (Verdict::Unknown, false),
        NodeKind::Switch => (Verdict::Bad, false),
        NodeKind::AggregationNode => (Verdict::Unknown, false),
        _ if observation.stats.partition_suspected => (Verdict::Unknown, false),
        _ if is_new => (Verdict::Unknown, true),
        _ => (Verdict::Bad, false),
    };
    Weight { finding, verdict, reboots }
}

/// What a headline calls nodes of a kind.
fn noun(kind: NodeKind) -> &'static str {
    match kind {
        NodeKind::Ca => "HCA",
        NodeKind::AggregationNode => "aggregation node",
        NodeKind::Switch | NodeKind::Router => kind.label(),
    }
}

impl Group<'_> {
    /// `1 switch down (leaf-0-2), 12 HCAs behind it`.
    fn text(&self, view: FabricView<'_>, down: &DownNodes) -> String {
        let (fabric, nodes) = (&view.snapshot.fabric, &self.nodes);
        let is_expected = self.weight.finding == FindingKind::Maintenance;
        let before = if is_expected { "in maintenance: " } else { "" };
        let after = if self.weight.reboots { " for less than 15 min" } else { "" };
        let count = plural(nodes.len(), noun(self.kind));
        let mut names: Vec<&str> =
            nodes.iter().take(MAX_NAMED).map(|node| &*fabric.node(node.index).name).collect();
        if nodes.len() > MAX_NAMED {
            names.push("…");
        }
        let names = names.join(", ");
        let is_behind = |by: Option<_>| nodes.iter().any(|node| by == Some(node.index));
        let behind = KINDS.map(|kind| {
            let of_kind = down.iter().filter(|node| is_behind(node.behind));
            let count = of_kind.filter(|it| fabric.node(it.index).identity.kind == kind).count();
            (count, noun(kind))
        });
        let behind = behind.into_iter().filter(|(count, _)| *count > 0);
        let behind: Vec<String> = behind.map(|(count, noun)| plural(count, noun)).collect();
        let behind = match (behind.join(" and "), nodes.len()) {
            (behind, _) if behind.is_empty() => behind,
            (behind, 1) => format!(", {behind} behind it"),
            (behind, _) => format!(", {behind} behind them"),
        };
        format!("{before}{count} down{after} ({names}){behind}")
    }
}
