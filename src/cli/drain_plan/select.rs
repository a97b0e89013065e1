//! What is to be repaired: the arguments of `drain-plan`, or the links that are bad.

use ib_fabric::reference::Reference;
use ib_fabric::topology::LinkId;
use ib_health::Verdict;
use ib_mad::PortKey;
use ib_mad::node::NodeKind;

use super::net::FabricNet;
use super::parts::{Target, TargetKind};
use crate::cli::node_match::NodeMatch;
use crate::cli::source::FabricSource;
use crate::cli::terminal::printable;
use crate::exit::Fatal;
use crate::history_client::Place;

/// What the arguments mean, each thing once.
pub(super) fn named(
    net: &FabricNet,
    source: &FabricSource,
    arguments: &[String],
) -> Result<Vec<Target>, Fatal> {
    let mut targets = Vec::new();
    for text in arguments {
        let found = if text.contains('*') {
            of_pattern(net, &NodeMatch::Pattern(text.clone()))
        } else {
            of_places(net, text, &source.places("drain-plan", text)?)
        };
        let wrong =
            |problem: &str| Fatal::usage(printable(&format!("drain-plan: {text:?}: {problem}")));
        let found = found.map_err(wrong)?;
        add(&mut targets, found);
    }
    Ok(targets)
}

/// The links with one of these verdicts.
pub(super) fn with_verdicts(net: &FabricNet, verdicts: &[Verdict]) -> Vec<Target> {
    let is_one = |word: &str| verdicts.iter().any(|it| Verdict::word(it.label()) == word);
    let cables = net.cables.iter().enumerate();
    let cables = cables.filter(|(_, it)| is_one(&it.verdict) && !it.wires.is_empty());
    cables.map(|(at, _)| of_cable(net, at)).collect()
}

fn add(targets: &mut Vec<Target>, found: Vec<Target>) {
    for target in found {
        if !targets.contains(&target) {
            targets.push(target);
        }
    }
}

fn of_cable(net: &FabricNet, at: usize) -> Target {
    let cable = &net.cables[at];
    Target {
        kind: TargetKind::Link,
        name: cable.name.clone(),
        fabric: cable.fabric.clone(),
        link: Some(cable.id.clone()),
        verdict: Some(cable.verdict.clone()),
        wires: cable.wires.clone(),
        nodes: Vec::new(),
    }
}

/// All nodes whose names match: switches, and hosts with all of their HCAs.
pub(super) fn of_pattern(
    net: &FabricNet,
    pattern: &NodeMatch,
) -> Result<Vec<Target>, &'static str> {
    let is_named = |name: &str, guid: String| pattern.has(name, &guid, None);
    let mut nodes = Vec::new();
    for (index, node) in net.nodes.iter().enumerate() {
        if node.kind != Some(NodeKind::AggregationNode)
            && is_named(&node.name, node.guid.to_string())
        {
            nodes.push(index);
        }
    }
    if nodes.is_empty() { Err("no node matches") } else { Ok(of_nodes(net, &nodes)) }
}

/// The links and nodes at some places, which one text means.
pub(super) fn of_places(
    net: &FabricNet,
    text: &str,
    places: &[Place],
) -> Result<Vec<Target>, &'static str> {
    if let Some(LinkId { low, high }) = Reference::new(text).link
        && net.cable_at(low) != net.cable_at(high)
    {
        return Err("there is no such link now");
    }
    let (mut targets, mut nodes) = (Vec::new(), Vec::new());
    for &(guid, port) in places {
        if let Some(number) = port {
            let cable = net.cable_at(PortKey::new(guid, number)).ok_or("the port has no link")?;
            if net.cables[cable].wires.is_empty() {
                return Err("the link is inside a switch: it has no cable");
            }
            add(&mut targets, vec![of_cable(net, cable)]);
        } else {
            let node = net.node(guid).ok_or("the node has no place in a fabric that is judged")?;
            if net.nodes[node].kind == Some(NodeKind::AggregationNode) {
                return Err("an aggregation node is a part of its switch: name the switch");
            }
            nodes.push(node);
        }
    }
    add(&mut targets, of_nodes(net, &nodes));
    Ok(targets)
}

/// Devices, each once: HCAs of one host together, and a switch with the nodes of all planes.
fn of_nodes(net: &FabricNet, nodes: &[usize]) -> Vec<Target> {
    let mut targets: Vec<Target> = Vec::new();
    for &node in nodes {
        if targets.iter().any(|target| target.nodes.contains(&node)) {
            continue;
        }
        let (kind, name, its) = match net.nodes[node].host {
            None => (TargetKind::Switch, net.nodes[node].name.clone(), net.nodes_of_switch(node)),
            Some(host) => {
                let all = &net.hosts[host].nodes;
                let its: Vec<usize> = all.iter().filter(|it| nodes.contains(it)).copied().collect();
                let is_whole = its.len() == all.len();
                let own = || net.nodes[node].name.clone();
                match net.nodes[node].kind {
                    Some(NodeKind::Ca) if is_whole => {
                        (TargetKind::Host, net.hosts[host].name.clone(), its)
                    }
                    Some(NodeKind::Ca) => (TargetKind::Hca, own(), vec![node]),
                    _ => (TargetKind::Router, own(), vec![node]),
                }
            }
        };
        let fabric = net.nodes[node].fabric.clone();
        let target =
            Target { kind, name, fabric, link: None, verdict: None, wires: Vec::new(), nodes: its };
        add(&mut targets, vec![target]);
    }
    targets
}
