//! What `drain-plan` knows of fabrics, from the models of links and nodes.
//!
//! Several fabrics are one net: the HCAs of a host may be in different ones. A link or node that two fabrics have, because
//! the exporter has an HCA for each, is there once. A cable that is a link of the subnet for each plane has a wire for
//! each: planes are paths beside each other, and the ports between the nodes of a switch (FNM) carry no data, so they are
//! left out. So are aggregation nodes (SHARP). Routers and nodes of unknown types are ends of paths, as hosts are.

use std::collections::{BTreeSet, HashMap, HashSet};

use display_text::plural;
use drain_plan::{HostId, Link as NetLink, LinkState, Net, Repair, UnknownPart};
use fabric_api::model::{End, FabricLinks, Link, LinkPlane, Links, Node, Nodes, PortName};
use ib_health::Reason;
use ib_mad::node::NodeKind;
use ib_mad::{Guid, PortKey};

use super::hosts;
use super::parts::{Cable, NetHost, NetNode, Target, Wire};

/// The nodes and wires of all fabrics that are judged.
#[derive(Debug, Default)]
pub(super) struct FabricNet {
    /// The names of the fabrics.
    pub fabrics: Vec<String>,
    pub nodes: Vec<NetNode>,
    pub hosts: Vec<NetHost>,
    pub cables: Vec<Cable>,
    pub wires: Vec<Wire>,
    /// What is not known, or was left out: a sentence each.
    pub notes: Vec<String>,
    /// Why more may be lost than is found, if the discovery was incomplete.
    pub gaps: Vec<String>,
    by_guid: HashMap<Guid, usize>,
    by_port: HashMap<PortKey, usize>,
    /// The SystemImageGUIDs of switches with a node for each plane.
    multi_plane: HashSet<String>,
}

impl FabricNet {
    /// The net of all fabrics in these models whose links are cables.
    pub fn new(links: &Links, nodes: &Nodes) -> Self {
        let mut net = FabricNet::default();
        let is_nvlink =
            |fabric: &FabricLinks| fabric.links.iter().any(|link| has(link, Reason::NvLink));
        let judged: Vec<&FabricLinks> = links.fabrics.iter().filter(|it| !is_nvlink(it)).collect();
        for left_out in links.fabrics.iter().filter(|it| is_nvlink(it)) {
            let name = &left_out.fabric;
            net.notes.push(format!(
                "{name} is an NVLink fabric, whose paths are not known: it is left out"
            ));
        }
        for fabric in &judged {
            net.fabrics.push(fabric.fabric.clone());
            let gaps = fabric.condition.findings.iter().filter(|it| it.kind == "discovery_gaps");
            net.gaps.extend(gaps.map(|it| format!("{}: {}", fabric.fabric, it.text)));
        }
        for fabric in &nodes.fabrics {
            let is_judged = net.fabrics.contains(&fabric.fabric);
            for node in fabric.nodes.iter().filter(|_| is_judged) {
                net.add_node(&fabric.fabric, node);
            }
        }
        for fabric in &judged {
            for link in &fabric.links {
                net.add_link(link);
            }
        }
        let hosts = hosts::find(&net.nodes);
        for (node, host) in net.nodes.iter_mut().zip(hosts.of_nodes) {
            node.host = host;
        }
        net.hosts = hosts.all;
        net.notes.extend(hosts.notes);
        net.tell_unknown();
        net
    }

    fn add_node(&mut self, fabric: &str, node: &Node) {
        let Ok(guid) = node.guid.parse::<Guid>() else { return };
        if let Some(known) = self.by_guid.get(&guid) {
            // Another fabric has it, too.
            self.nodes[*known].is_drained |= node.drained;
            return;
        }
        self.by_guid.insert(guid, self.nodes.len());
        self.nodes.push(NetNode {
            guid,
            name: node.node.clone(),
            kind: NodeKind::from_label(&node.node_type),
            host: None,
            fabric: fabric.to_owned(),
            system: node.system_guid.clone(),
            description: node.description.clone(),
            label: node.host.clone(),
            is_drained: node.drained,
        });
    }

    /// The node at an end of a link. One that was found since the nodes were listed is added.
    fn node_at(&mut self, fabric: &str, end: &PortName) -> Option<usize> {
        let guid = end.guid.parse::<Guid>().ok()?;
        if let Some(known) = self.by_guid.get(&guid) {
            return Some(*known);
        }
        let node = Node {
            guid: end.guid.clone(),
            node: end.node.clone(),
            host: end.host.clone(),
            node_type: end.node_type.clone(),
            ..Node::default()
        };
        self.add_node(fabric, &node);
        Some(self.nodes.len() - 1)
    }

    fn add_link(&mut self, link: &Link) {
        let whole = link.ends.each_ref().map(name_of);
        let Some(at) = self.cable_of(link, &whole) else { return };
        let is_new = at == self.cables.len();
        if is_new {
            let [a, b] = link.ends.each_ref().map(End::label);
            self.cables.push(Cable {
                id: link.link.clone(),
                fabric: link.fabric.clone(),
                name: format!("{a} – {b}"),
                verdict: link.word().to_owned(),
                wires: Vec::new(),
            });
        }
        let own = (whole, link.up, link.rate);
        let planes = link.planes.iter().map(|it: &LinkPlane| (it.ports.clone(), it.up, it.rate));
        let parts: Vec<_> = if link.planes.is_empty() { vec![own] } else { planes.collect() };
        for (nth, (ports, up, rate)) in parts.into_iter().enumerate() {
            let keys =
                ports.each_ref().map(|it| Some(PortKey::new(it.guid.parse().ok()?, it.port)));
            self.by_port.extend(keys.into_iter().flatten().map(|key| (key, at)));
            if has(link, Reason::Internal) {
                continue;
            }
            if !is_new {
                // Another fabric has it, too, and may know more.
                let known = self.cables[at].wires.get(nth).map(|wire| &mut self.wires[*wire]);
                if let Some(known) = known {
                    known.up = known.up.or(up);
                    known.gbps = known.gbps.or(rate.map(gbps));
                }
                continue;
            }
            let ends = ports.each_ref().map(|port| self.node_at(&link.fabric, port));
            let [Some(a), Some(b)] = ends else { continue };
            let is_sharp = |node: usize| self.nodes[node].kind == Some(NodeKind::AggregationNode);
            if is_sharp(a) || is_sharp(b) {
                continue;
            }
            self.cables[at].wires.push(self.wires.len());
            self.wires.push(Wire { ends: [a, b], up, gbps: rate.map(gbps) });
        }
        self.find_multi_plane(at);
    }

    /// The index of the cable of a link: that of the same link in another fabric, or the next one. `None` without
    /// readable GUIDs.
    fn cable_of(&self, link: &Link, ends: &[PortName; 2]) -> Option<usize> {
        let key = PortKey::new(ends[0].guid.parse().ok()?, ends[0].port);
        let known = self.by_port.get(&key).copied();
        Some(known.filter(|at| self.cables[*at].id == link.link).unwrap_or(self.cables.len()))
    }

    /// The planes of a cable may begin at different nodes of one switch.
    fn find_multi_plane(&mut self, cable: usize) {
        let wires = self.cables[cable].wires.iter().map(|wire| self.wires[*wire].ends);
        let ends: Vec<[usize; 2]> = wires.collect();
        let Some(first) = ends.first() else { return };
        for nth in [0, 1] {
            let lead = &self.nodes[first[nth]];
            let is_other = |of: &[usize; 2]| {
                let node = &self.nodes[of[nth]];
                of[nth] != first[nth] && node.is_switch() && node.system == lead.system
            };
            let has_system = lead.system.parse::<Guid>().is_ok_and(|guid| guid != Guid(0));
            if has_system && lead.is_switch() && ends.iter().any(is_other) {
                self.multi_plane.insert(lead.system.clone());
            }
        }
    }

    fn tell_unknown(&mut self) {
        let unknown = self.wires.iter().filter(|wire| wire.up.is_none()).count();
        if unknown > 0 {
            self.notes.push(format!(
                "of {unknown} of {} links it is not known whether they are up: they count as up, and each window was \
                 also judged with them down",
                self.wires.len()
            ));
        }
        let without = self.wires.iter().filter(|wire| wire.up == Some(true) && wire.gbps.is_none());
        let without = without.count();
        if without > 0 {
            let usual = self.usual_gbps();
            let text = match usual {
                Some(usual) => format!("taken to be {usual} Gb/s, as of most others"),
                None => "all count the same".to_owned(),
            };
            let count = plural(without, "link");
            self.notes.push(format!("the rate of {count} is not known: {text}"));
        }
    }

    /// The most frequent capacity of the wires whose capacity is known.
    fn usual_gbps(&self) -> Option<u32> {
        let mut counts: HashMap<u32, usize> = HashMap::new();
        for gbps in self.wires.iter().filter_map(|wire| wire.gbps) {
            *counts.entry(gbps).or_default() += 1;
        }
        counts.into_iter().max_by_key(|&(gbps, count)| (count, gbps)).map(|(gbps, _)| gbps)
    }

    /// The net as `drain_plan` has it, with each target as a repair. `is_up` says it of wires for which it is not known.
    pub fn net(
        &self,
        targets: &[Target],
        is_up: impl Fn(usize) -> bool,
    ) -> Result<(Net, Vec<Repair>), UnknownPart> {
        let mut net = Net::default();
        let hosts: Vec<HostId> = self.hosts.iter().map(|_| net.add_host()).collect();
        let mut nodes = Vec::new();
        for node in &self.nodes {
            nodes.push(match node.host {
                Some(host) => net.add_hca(hosts[host])?,
                None => net.add_switch(),
            });
        }
        let usual = self.usual_gbps().unwrap_or(1);
        let mut links = Vec::new();
        for (index, wire) in self.wires.iter().enumerate() {
            let is_up = wire.up.unwrap_or_else(|| is_up(index));
            links.push(net.add_link(NetLink {
                ends: wire.ends.map(|end| nodes[end]),
                gbps: wire.gbps.unwrap_or(usual),
                state: if is_up { LinkState::Usable } else { LinkState::Down },
            })?);
        }
        let mut repairs = Vec::new();
        for target in targets {
            let links: Vec<_> = target.wires.iter().map(|wire| links[*wire]).collect();
            let nodes: Vec<_> = target.nodes.iter().map(|node| nodes[*node]).collect();
            repairs.push(Repair::Group(net.add_group(&links, &nodes)?));
        }
        Ok((net, repairs))
    }

    /// The ids of hosts by their indexes.
    pub fn host_ids(net: &Net, hosts: &BTreeSet<usize>) -> BTreeSet<HostId> {
        net.host_ids().filter(|id| hosts.contains(&id.index())).collect()
    }

    /// The index of a node.
    pub fn node(&self, guid: Guid) -> Option<usize> {
        self.by_guid.get(&guid).copied()
    }

    /// The index of the cable at a port.
    pub fn cable_at(&self, port: PortKey) -> Option<usize> {
        self.by_port.get(&port).copied()
    }

    /// The nodes that lose their power together with a switch: those of its planes.
    pub fn nodes_of_switch(&self, node: usize) -> Vec<usize> {
        let system = &self.nodes[node].system;
        if !self.multi_plane.contains(system) {
            return vec![node];
        }
        let is_its = |other: &NetNode| other.is_switch() && other.system == *system;
        (0..self.nodes.len()).filter(|other| is_its(&self.nodes[*other])).collect()
    }

    /// The wires that a repair takes out of service.
    pub fn wires_of_target<'a>(&'a self, target: &'a Target) -> impl Iterator<Item = usize> + 'a {
        let is_at = |wire: &Wire| wire.ends.iter().any(|end| target.nodes.contains(end));
        let at_nodes = (0..self.wires.len()).filter(move |wire| is_at(&self.wires[*wire]));
        target.wires.iter().copied().chain(at_nodes.filter(|_| !target.nodes.is_empty()))
    }

    /// Whether nothing that a repair takes carries traffic now.
    pub fn is_down(&self, target: &Target) -> bool {
        self.wires_of_target(target).all(|wire| self.wires[wire].up == Some(false))
    }

    /// The wires at a node.
    pub fn wires_of(&self, node: usize) -> impl Iterator<Item = &Wire> {
        self.wires.iter().filter(move |wire| wire.ends.contains(&node))
    }

    /// The hosts with a wire to a switch that is not known to be down.
    pub fn hosts_at(&self, node: usize) -> BTreeSet<usize> {
        let wires = self.wires_of(node).filter(|wire| wire.up != Some(false));
        wires.flat_map(|wire| wire.ends).filter_map(|end| self.nodes[end].host).collect()
    }
}

fn has(link: &Link, reason: Reason) -> bool {
    link.reasons.iter().any(|it| it.reason == reason.label())
}

fn name_of(end: &End) -> PortName {
    PortName {
        guid: end.guid.clone(),
        node: end.node.clone(),
        host: end.host.clone(),
        node_type: end.node_type.clone(),
        port: end.port,
        front_panel: end.front_panel.clone(),
    }
}

/// Gb/s of bytes per second.
fn gbps(rate: u64) -> u32 {
    u32::try_from((u128::from(rate) * 8 + 500_000_000) / 1_000_000_000).unwrap_or(u32::MAX)
}
