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

use crate::cli::host_list::short;

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

/// A switch, or an HCA or router: an end of paths.
#[derive(Debug)]
pub(super) struct NetNode {
    pub guid: Guid,
    pub name: String,
    /// `None`: a type that this version does not have.
    pub kind: Option<NodeKind>,
    /// The host of an end of paths.
    pub host: Option<usize>,
    pub fabric: String,
    system: String,
    description: String,
    label: Option<String>,
    is_drained: bool,
}

/// A host with its HCAs, or a router.
#[derive(Debug)]
pub(super) struct NetHost {
    pub name: String,
    /// By the exporter.
    pub is_drained: bool,
    /// Its HCAs, as indexes of nodes.
    pub nodes: Vec<usize>,
}

/// A link of the API.
#[derive(Debug)]
pub(super) struct Cable {
    pub id: String,
    pub fabric: String,
    /// `leaf-0-1 port 10 – host-7 port 1`.
    pub name: String,
    pub verdict: String,
    /// Empty if it is no cable: inside a switch.
    pub wires: Vec<usize>,
}

/// A link of the subnet: a cable, or a plane of one.
#[derive(Debug)]
pub(super) struct Wire {
    /// Indexes of nodes.
    pub ends: [usize; 2],
    /// Whether it carries traffic, if that is known.
    pub up: Option<bool>,
    /// Gb/s, if known.
    gbps: Option<u32>,
}

/// What is to be repaired.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Target {
    pub kind: TargetKind,
    pub name: String,
    pub fabric: String,
    /// The id of a link.
    pub link: Option<String>,
    /// The verdict of a link, in a word.
    pub verdict: Option<String>,
    /// Indexes of the wires that are pulled.
    pub wires: Vec<usize>,
    /// Indexes of the nodes that are powered off.
    pub nodes: Vec<usize>,
}

display_text::labeled_enum! {
    /// What a repair takes out of service.
    pub enum TargetKind {
        Link, "link", "A cable.";
        Switch, "switch", "A switch, with a node for each plane if it has several.";
        Host, "host", "A host, with all of its HCAs.";
        Hca, "hca", "One of several HCAs of a host.";
        Router, "router", "A router, or a node of an unknown type.";
    }
}

impl NetNode {
    pub fn is_switch(&self) -> bool {
        self.kind == Some(NodeKind::Switch)
    }
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
        for fabric in nodes.fabrics.iter().filter(|it| net.fabrics.contains(&it.fabric)) {
            for node in &fabric.nodes {
                net.add_node(&fabric.fabric, node);
            }
        }
        for fabric in &judged {
            for link in &fabric.links {
                net.add_link(link);
            }
        }
        net.find_hosts();
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
            let has_system = lead.system.parse().is_ok_and(|guid| guid != Guid(0));
            if has_system && lead.is_switch() && ends.iter().any(is_other) {
                self.multi_plane.insert(lead.system.clone());
            }
        }
    }

    /// The HCAs with the same host label are one host. Two with the same name may be those of different hosts that were
    /// never named, such as `localhost HCA-1`: each is a host of its own, so each has to keep its paths.
    fn find_hosts(&mut self) {
        let mut labelled: HashMap<&str, Vec<usize>> = HashMap::new();
        for (index, node) in self.nodes.iter().enumerate() {
            if let (Some(NodeKind::Ca), Some(label)) = (node.kind, &node.label) {
                labelled.entry(label).or_default().push(index);
            }
        }
        let mut shared = Vec::new();
        labelled.retain(|label, nodes| {
            let mut names = HashSet::new();
            let descriptions = nodes.iter().map(|node| &*self.nodes[*node].description);
            let is_one = descriptions.filter(|it| !it.is_empty()).all(|it| names.insert(it));
            if !is_one {
                shared.push(format!(
                    "{} HCAs of {label} have the same name: each counts as a host of its own",
                    nodes.len()
                ));
            }
            is_one
        });
        let mut hosts = Vec::new();
        let mut host_of: Vec<Option<usize>> = vec![None; self.nodes.len()];
        for (index, node) in self.nodes.iter().enumerate() {
            let is_end = !matches!(node.kind, Some(NodeKind::Switch | NodeKind::AggregationNode));
            if !is_end || host_of[index].is_some() {
                continue;
            }
            let of_label =
                node.label.as_deref().and_then(|label| Some((label, labelled.get(label)?)));
            let is_host = node.kind == Some(NodeKind::Ca);
            let (name, nodes) = match of_label.filter(|_| is_host) {
                Some((label, nodes)) => (label, nodes.clone()),
                None => (&*node.name, vec![index]),
            };
            nodes.iter().for_each(|node| host_of[*node] = Some(hosts.len()));
            let is_drained = nodes.iter().all(|node| self.nodes[*node].is_drained);
            hosts.push(NetHost { name: name.to_owned(), is_drained, nodes });
        }
        shared.sort();
        self.hosts = hosts;
        self.notes.extend(shared);
        for (node, host) in self.nodes.iter_mut().zip(host_of) {
            node.host = host;
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
            let state = match wire.up {
                Some(up) => up,
                None => is_up(index),
            };
            links.push(net.add_link(NetLink {
                ends: wire.ends.map(|end| nodes[end]),
                gbps: wire.gbps.unwrap_or(usual),
                state: if state { LinkState::Usable } else { LinkState::Down },
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

    /// The hosts of these names, with or without domain, and the names of which there is none.
    pub fn hosts_called(&self, names: &[String]) -> (BTreeSet<usize>, Vec<String>) {
        let mut whole: HashMap<String, Vec<usize>> = HashMap::new();
        let mut shortened: HashMap<String, Vec<usize>> = HashMap::new();
        for (index, host) in self.hosts.iter().enumerate() {
            let name = host.name.to_lowercase();
            shortened.entry(short(&name).to_owned()).or_default().push(index);
            whole.entry(name).or_default().push(index);
        }
        let (mut found, mut unknown) = (BTreeSet::new(), Vec::new());
        for name in names {
            let lower = name.to_lowercase();
            // Two hosts of different domains may share a short name: then only the whole one names one.
            let of_short = shortened.get(short(&lower)).filter(|hosts| hosts.len() == 1);
            match whole.get(&lower).or(of_short) {
                Some(hosts) => found.extend(hosts),
                None => unknown.push(name.clone()),
            }
        }
        (found, unknown)
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
