//! Assembly of a fabric from the results of a discovery and the previous fabric.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use ib_mad::front_panel::PanelPortType;
use ib_mad::ids::{Guid, Lid, PortNumber};
use ib_mad::moment::Moment;
use ib_mad::node::{NodeIdentity, NodeKind, PortRole};
use ib_mad::port_state::PortStatus;

use super::backoff::Backoff;
use super::fabric_kind::FabricKind;
use super::front_panels::FrontPanels;
use super::names::{Names, Naming, make_unique};
use super::rails::keep_siblings;
use super::routes::{PlaneRoot, SwitchRoutes};
use super::topology::{DuplicateGuid, Fabric, Link, Node, Peer, Port, Presence};
use super::{fnm_rings, plane_search};
use crate::{NodeIndex, PortIndex};
use ib_mad::PortKey;

/// A node in the result of a discovery.
#[derive(Clone, Debug)]
#[expect(missing_docs, reason = "the other name says it")]
pub struct DiscoveredNode {
    pub identity: NodeIdentity,
    /// The ports that responded or were reached.
    pub ports: Vec<DiscoveredPort>,
}

/// A port in the result of a discovery.
#[derive(Clone, Copy, Debug)]
#[expect(missing_docs, reason = "the other names say it")]
pub struct DiscoveredPort {
    pub number: PortNumber,
    pub guid: Guid,
    /// Its state, if it responded.
    pub status: Option<PortStatus>,
    /// Its role, if it was queried and responded.
    pub role: Option<PortRole>,
}

/// The result of a discovery.
#[derive(Clone, Debug, Default)]
#[expect(missing_docs, reason = "the other names say it")]
pub struct DiscoveredFabric {
    pub nodes: Vec<DiscoveredNode>,
    pub links: Vec<(PortKey, PortKey)>,
    /// Ports with a link whose neighbor did not respond.
    pub unreached: Vec<PortKey>,
    /// The local port, where the discovery began; of a switch, port 0.
    pub local_port: Option<PortKey>,
    /// The local ports where it began: of a multi-plane HCA one of each plane.
    pub plane_roots: Vec<PlaneRoot>,
    /// The local port did not respond, so nothing was queried: all known nodes are behind that gap.
    pub is_cut_off: bool,
    /// Nodes that were left out, because another node has their GUID.
    pub duplicates: Vec<DuplicateGuid>,
    /// The nodes are the devices of one host: they may share names, and their names are not those of hosts.
    pub is_one_host: bool,
    pub front_panels: FrontPanels,
    /// `None` if no switch was asked, or none has told.
    pub kind: Option<FabricKind>,
    pub kind_backoff: Backoff,
}

impl DiscoveredFabric {
    /// Restores lost NodeDescriptions from the previous fabric, kinds derived from them, and port roles.
    fn keep_known(&mut self, previous: &Fabric) {
        for DiscoveredNode { identity, ports } in &mut self.nodes {
            let Some(known) = previous.node_by_guid(identity.guid) else { continue };
            let known = &previous.node(known).identity;
            if identity.description.is_empty() {
                identity.description.clone_from(&known.description);
                if identity.kind == NodeKind::Ca && known.kind == NodeKind::AggregationNode {
                    identity.kind = known.kind;
                }
            }
            for port in ports.iter_mut().filter(|port| port.role.is_none()) {
                let known = previous.find(PortKey::new(identity.guid, port.number));
                port.role = known.and_then(|known| previous.port(known).role);
            }
        }
    }
}

impl Fabric {
    /// Builds the fabric from the result of a discovery at `now`.
    ///
    /// Nodes of `previous` that were not found again stay as absent nodes unless they were last found
    /// before `forget_before`, and links that are down keep their peers. Nodes behind a port with a
    /// link whose neighbor does not respond are hidden, not absent.
    pub fn assemble(
        mut found: DiscoveredFabric,
        naming: &Naming,
        now: Moment,
        previous: Option<(&Fabric, Moment)>,
    ) -> Fabric {
        let mut entries: Vec<(Node, Vec<DiscoveredPort>)> = Vec::new();
        let is_one_host = found.is_one_host;
        let mut add = |found: DiscoveredNode, last_found, presence| {
            let DiscoveredNode { identity, ports } = found;
            let Names { node: name, host, rail } = naming.names(&identity);
            let node = Node {
                identity,
                name,
                host: host.filter(|_| !is_one_host),
                rail,
                presence,
                last_found,
                first_port: 0,
                port_slots: 0,
            };
            entries.push((node, ports));
        };
        let nothing = Fabric::default();
        let (previous, forget_before) = previous.unwrap_or((&nothing, now));
        previous.mark_lost_planes(&mut found);
        let hidden = previous.keep_hidden(&mut found);
        found.keep_known(previous);
        let here: HashSet<Guid> = found.nodes.iter().map(|node| node.identity.guid).collect();
        let statuses = found.nodes.iter().flat_map(|node| &node.ports);
        let lids: HashSet<Lid> = statuses.filter_map(|it| Some(it.status?.lid)).collect();
        let gone = |node: &&Node| !here.contains(&node.identity.guid);
        let known = |node: &&Node| node.last_found >= forget_before;
        let nodes = previous.node_indexes().map(|index| (index, previous.node(index)));
        for (index, node) in nodes.filter(|(_, node)| gone(node) && known(node)) {
            let ports = previous.ports_of(index).map(|port| previous.to_discovered(port));
            let (identity, ports) = (node.identity.clone(), ports.collect());
            let mut old = DiscoveredNode { identity, ports };
            // Its LID may belong to another node now.
            for status in old.ports.iter_mut().filter_map(|port| port.status.as_mut()) {
                if status.lid.is_unicast() && lids.contains(&status.lid) {
                    status.lid = Lid::default();
                }
            }
            let hidden = hidden.contains(&node.identity.guid);
            let presence = if hidden { Presence::Hidden } else { Presence::Absent };
            add(old, node.last_found, presence);
        }
        found.nodes.into_iter().for_each(|node| add(node, now, Presence::Found));
        entries.sort_by_key(|(node, _)| node.identity.guid);
        entries.dedup_by_key(|(node, _)| node.identity.guid);
        let (mut nodes, ports): (Vec<Node>, Vec<_>) = entries.into_iter().unzip();
        if !found.is_one_host {
            make_unique(&mut nodes, |guid| {
                Some(&*previous.node(previous.node_by_guid(guid)?).name)
            });
        }
        keep_siblings(&mut nodes);
        let mut fabric = Fabric { duplicates: found.duplicates, ..Fabric::default() };
        for (node, ports) in nodes.into_iter().zip(ports) {
            fabric.push(node, ports);
        }
        found.front_panels.retain(|guid| fabric.by_guid.contains_key(guid));
        fabric.front_panels = Arc::new(found.front_panels);
        fabric.kind = found.kind.or(previous.kind);
        fabric.kind_backoff = found.kind_backoff;
        fabric.take_roles_of_panels();
        fabric.local_port = found.local_port.and_then(|port| fabric.find(port));
        for &(a, b) in &found.links {
            if let (Some(a), Some(b)) = (fabric.find(a), fabric.find(b)) {
                fabric.join(a, b, true);
            }
        }
        for Link { low: a, high: b } in previous.links() {
            let ends = (fabric.find(previous.port_key(a)), fabric.find(previous.port_key(b)));
            if let (Some(a), Some(b)) = ends
                && fabric.port(a).peer.is_none()
                && fabric.port(b).peer.is_none()
            {
                fabric.join(a, b, false);
            }
        }
        fabric.routes = Arc::new(if found.is_cut_off {
            previous.routes.without_routes()
        } else {
            SwitchRoutes::find(&fabric, found.plane_roots)
        });
        fabric.aggregated_links = Arc::new(plane_search::find(&fabric));
        fabric.ring_gaps = fnm_rings::gaps(&fabric).into();
        fabric
    }

    /// What is printed at a port of an XDR switch says most certainly whether it has a cable: `fnm1` has one, although
    /// it is for management, and the ports between the ASICs have none.
    fn take_roles_of_panels(&mut self) {
        let panels = Arc::clone(&self.front_panels);
        for (key, panel) in panels.iter().filter(|(_, panel)| panel.port_type.is_some()) {
            let Some(port) = self.find(key) else { continue };
            let role = &mut self.ports[port].role;
            match panel.port_type {
                Some(PanelPortType::Fnm) => *role = Some(PortRole::Fnm),
                Some(PanelPortType::Fnm1) if *role == Some(PortRole::Fnm) => {
                    *role = Some(PortRole::Cable);
                }
                _ => {}
            }
        }
    }

    /// Adds to the unreached ports of `found` those of a multi-plane HCA of ours that are not Active, or do not respond:
    /// where no other plane leads to the switch there, nothing is known of what is behind it.
    fn mark_lost_planes(&self, found: &mut DiscoveredFabric) {
        let Some(local) = self.local_port.map(|port| self.port(port).node) else { return };
        let guid = self.node(local).identity.guid;
        let is_here = found.local_port.is_some_and(|port| port.guid == guid);
        let has_planes = found.plane_roots.iter().any(|root| root.plane > 0);
        if !is_here || !has_planes || self.node(local).is_switch() {
            return;
        }
        let reached: HashSet<Guid> = found.nodes.iter().map(|node| node.identity.guid).collect();
        let is_lost = |port: &PortIndex| {
            let end = self.port_key(*port);
            let peer = self.port(*port).connected_peer().map(|peer| self.port_key(peer));
            let is_root = found.plane_roots.iter().any(|root| root.port == end);
            !is_root && peer.is_some_and(|peer| !reached.contains(&peer.guid))
        };
        let lost: Vec<PortKey> =
            self.ports_of(local).filter(is_lost).map(|port| self.port_key(port)).collect();
        found.unreached.extend(lost);
    }

    /// Adds to `found` the known links behind its unreached ports, and the ports of found nodes there.
    /// Returns the nodes that are hidden behind such ports or behind one another.
    fn keep_hidden(&self, found: &mut DiscoveredFabric) -> HashSet<Guid> {
        if found.is_cut_off {
            let links = self.links().filter(|link| self.port(link.low).connected_peer().is_some());
            found
                .links
                .extend(links.map(|Link { low: a, high: b }| (self.port_key(a), self.port_key(b))));
            found.local_port = self.local_port.map(|port| self.port_key(port));
            found.duplicates.clone_from(&self.duplicates);
            let present = self.nodes.iter().filter(|node| node.present());
            return present.map(|node| node.identity.guid).collect();
        }
        let guids = found.nodes.iter().map(|node| node.identity.guid);
        let indexes: HashMap<Guid, usize> = guids.zip(0..).collect();
        // Discovered links take precedence over remembered ones.
        let linked: HashSet<PortKey> = found.links.iter().flat_map(|&(a, b)| [a, b]).collect();
        let mut hidden = HashSet::new();
        let unreached = found.unreached.iter().filter(|end| !linked.contains(end));
        let mut ports: Vec<PortIndex> = unreached.filter_map(|end| self.find(*end)).collect();
        while let Some(port) = ports.pop() {
            let Some(peer) = self.port(port).connected_peer() else { continue };
            let (node, end) = (self.port(peer).node, self.port_key(peer));
            if !self.node(node).present() || linked.contains(&end) {
                continue;
            }
            if let Some(&index) = indexes.get(&end.guid) {
                let known = &mut found.nodes[index].ports;
                if !known.iter().any(|port| port.number == end.number) {
                    known.push(self.to_discovered(peer));
                }
            } else if hidden.insert(end.guid) {
                ports.extend(self.ports_of(node).filter(|other| *other != peer));
            }
            found.links.push((self.port_key(port), end));
        }
        hidden
    }

    /// A port as last discovered.
    fn to_discovered(&self, port: PortIndex) -> DiscoveredPort {
        let &Port { number, guid, status, role, .. } = self.port(port);
        DiscoveredPort { number, guid, status, role }
    }

    fn push(&mut self, mut node: Node, ports: Vec<DiscoveredPort>) {
        let index = NodeIndex(self.nodes.len() as u32);
        let numbers = node.identity.first_port()..=node.identity.port_count;
        (node.first_port, node.port_slots) = (self.ports.len() as u32, numbers.len() as u32);
        let (guid, status, role, peer) = (Guid::default(), None, None, None);
        let port = |number| Port { node: index, number, guid, status, role, peer };
        self.ports.extend(numbers.clone().map(port));
        for DiscoveredPort { number, guid, status, role } in ports {
            if numbers.contains(&number) {
                let index = node.first_port + u32::from(number - numbers.start());
                let slot = &mut self.ports[PortIndex(index)];
                *slot = Port { guid, status, role, ..*slot };
            }
        }
        self.by_guid.insert(node.identity.guid, index);
        self.nodes.push(node);
    }

    /// Links two ports, and unlinks their previous peers.
    fn join(&mut self, a: PortIndex, b: PortIndex, connected: bool) {
        for (end, other) in [(a, b), (b, a)] {
            let old = self.ports[end].peer.replace(Peer { port: other, connected });
            if let Some(old) = old.filter(|old| old.port != other) {
                self.ports[old.port].peer = None;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::node_name_map::NodeNameMap;
    use crate::testing::{end, fabric, found};

    #[test]
    fn pulled_cable_and_lost_node_are_remembered() {
        let before = fabric(
            vec![found(1, NodeKind::Switch, 2), found(2, NodeKind::Ca, 1)],
            &[(end(1, 1), end(2, 1))],
            None,
        );
        let after = fabric(vec![found(1, NodeKind::Switch, 2)], &[], Some((&before, Moment(10))));
        let lost = after.node(after.node_by_guid(Guid(2)).unwrap());
        assert!(!lost.present());
        let port = after.find(end(1, 1)).unwrap();
        let peer = after.port(port).peer.unwrap();
        assert_eq!((after.port_key(peer.port), peer.connected), (end(2, 1), false));

        let forgotten =
            fabric(vec![found(1, NodeKind::Switch, 2)], &[], Some((&after, Moment(11))));
        assert!(forgotten.node_by_guid(Guid(2)).is_none());
        assert!(forgotten.port(port).peer.is_none());
    }

    #[test]
    fn nodes_behind_a_gap_are_hidden_not_absent() {
        let nodes = |guids: &[(u64, NodeKind)]| {
            guids.iter().map(|&(guid, kind)| found(guid, kind, 3)).collect::<Vec<_>>()
        };
        let all =
            [(1, NodeKind::Switch), (2, NodeKind::Switch), (3, NodeKind::Ca), (4, NodeKind::Ca)];
        let links = [(end(1, 1), end(2, 1)), (end(2, 2), end(3, 1)), (end(1, 2), end(4, 1))];
        let before = fabric(nodes(&all), &links, None);
        // The second switch does not respond, so neither it nor its host is found; host 4 is gone.
        let gap = || DiscoveredFabric {
            nodes: nodes(&all[..1]),
            unreached: vec![end(1, 1)],
            ..DiscoveredFabric::default()
        };
        let after =
            Fabric::assemble(gap(), &Naming::default(), Moment(11), Some((&before, Moment(0))));
        let present: Vec<bool> = after.nodes.iter().map(Node::present).collect();
        assert_eq!(present, [true, true, true, false]);
        let connected = after.links().filter(|link| after.port(link.low).peer.unwrap().connected);
        assert_eq!(connected.count(), 2);

        // They are not kept forever, nor with a LID that another node has now.
        let names = Naming::default();
        let late = Fabric::assemble(gap(), &names, Moment(99), Some((&after, Moment(50))));
        assert_eq!(late.nodes.len(), 1);
        let mut taken = gap();
        if let Some(status) = &mut taken.nodes[0].ports[0].status {
            status.lid = Lid(3);
        }
        let after = Fabric::assemble(taken, &names, Moment(12), Some((&before, Moment(0))));
        assert_eq!(after.lid_of(after.find(end(3, 1)).unwrap()), None);
    }

    #[test]
    fn local_port_failure_hides_all_nodes() {
        let nodes = vec![found(1, NodeKind::Ca, 1), found(2, NodeKind::Switch, 2)];
        let before = fabric(nodes, &[(end(1, 1), end(2, 1))], None);
        let local_port = before.find(end(1, 1));
        let before = Fabric { local_port, ..before };
        let cut_off = DiscoveredFabric { is_cut_off: true, ..DiscoveredFabric::default() };
        let previous = Some((&before, Moment(0)));
        let after = Fabric::assemble(cut_off, &Naming::default(), Moment(11), previous);
        let presence: Vec<Presence> = after.nodes.iter().map(|node| node.presence).collect();
        assert_eq!(presence, [Presence::Hidden; 2]);
        assert_eq!(after.local_port, local_port);
        assert!(after.links().all(|link| after.port(link.low).peer.unwrap().connected));
        assert_eq!(after.links().count(), 1);
    }

    #[test]
    fn discovered_cable_overrides_remembered_one() {
        let nodes = || {
            vec![
                found(1, NodeKind::Switch, 2),
                found(2, NodeKind::Ca, 2),
                found(3, NodeKind::Ca, 1),
            ]
        };
        let before = fabric(nodes(), &[(end(1, 1), end(2, 1)), (end(1, 2), end(2, 2))], None);
        let assembled = |links: Vec<(PortKey, PortKey)>, unreached| {
            let mut now = DiscoveredFabric {
                nodes: nodes(),
                links,
                unreached,
                ..DiscoveredFabric::default()
            };
            now.nodes[1].ports.truncate(1);
            Fabric::assemble(now, &Naming::default(), Moment(11), Some((&before, Moment(0))))
        };
        // The host's second port is behind a gap: it keeps its state and its cable.
        let kept = assembled(vec![(end(1, 1), end(2, 1))], vec![end(1, 2)]);
        let port = kept.find(end(2, 2)).unwrap();
        assert!(kept.port(port).status.is_some() && kept.port(port).peer.unwrap().connected);
        // Unless that cable was found to lead elsewhere, from its other end.
        let moved =
            assembled(vec![(end(1, 1), end(2, 1)), (end(3, 1), end(1, 2))], vec![end(1, 2)]);
        let peer = moved.port(moved.find(end(1, 2)).unwrap()).peer.unwrap();
        assert_eq!(moved.port_key(peer.port), end(3, 1));
    }

    #[test]
    fn moved_cable_leaves_no_stale_peer() {
        let nodes = || {
            vec![
                found(1, NodeKind::Switch, 2),
                found(2, NodeKind::Ca, 1),
                found(3, NodeKind::Ca, 1),
            ]
        };
        let before = fabric(nodes(), &[(end(1, 1), end(2, 1))], None);
        let after = fabric(nodes(), &[(end(1, 2), end(2, 1))], Some((&before, Moment(0))));
        assert!(after.port(after.find(end(1, 1)).unwrap()).peer.is_none());
        assert_eq!(after.links().count(), 1);
    }

    #[test]
    fn conflicting_cable_claims_leave_one_link() {
        let nodes = vec![
            found(1, NodeKind::Switch, 2),
            found(2, NodeKind::Ca, 1),
            found(3, NodeKind::Ca, 1),
        ];
        let fabric = fabric(nodes, &[(end(1, 1), end(2, 1)), (end(1, 1), end(3, 1))], None);
        assert!(fabric.port(fabric.find(end(2, 1)).unwrap()).peer.is_none());
        assert_eq!(fabric.links().count(), 1);
    }

    #[test]
    fn lost_description_keeps_previous_one() {
        let host = |description: &str| {
            let mut host = found(7, NodeKind::Ca, 1);
            host.identity.description = description.into();
            DiscoveredFabric { nodes: vec![host], ..DiscoveredFabric::default() }
        };
        let names = Naming::default();
        let assembled = |found, before: Option<&Fabric>| {
            let before = before.map(|before| (before, Moment(0)));
            Fabric::assemble(found, &names, Moment(9), before)
        };
        let name = |fabric: &Fabric| fabric.node(NodeIndex(0)).name.clone();
        let first = assembled(host("host-7"), None);
        assert_eq!(name(&assembled(host(""), Some(&first))), "host-7");
        assert_eq!(name(&assembled(host("new"), Some(&first))), "new");
        assert_eq!(
            name(&assembled(host(""), None)),
            "0x0000000000000007",
            "the GUID is the last resort"
        );
    }

    #[test]
    fn shared_names_stay_unique_while_remembered() {
        let switches = |guids: &[u64]| {
            let mut nodes: Vec<_> =
                guids.iter().map(|&guid| found(guid, NodeKind::Switch, 2)).collect();
            for node in &mut nodes {
                node.identity.description = "Quantum-2 Mellanox Technologies".into();
            }
            DiscoveredFabric { nodes, ..DiscoveredFabric::default() }
        };
        let names = NodeNameMap::parse("0x3 \"leaf 3\"").unwrap().into();
        let names_of = |fabric: &Fabric| -> Vec<String> {
            fabric.nodes.iter().map(|node| node.name.clone()).collect()
        };
        let shared = "Quantum-2 Mellanox Technologies";
        let twins = [format!("{shared}#0000a1"), format!("{shared}#0000a2")];
        let both = Fabric::assemble(switches(&[3, 0xa1, 0xa2]), &names, Moment(9), None);
        assert_eq!(names_of(&both), ["leaf 3", &twins[0], &twins[1]], "the site's name wins");
        assert_eq!(both.nodes[NodeIndex(1)].shared_name(), shared);
        // While one is gone the other keeps its digits; once it is forgotten, the digits go.
        let one = |before, forget| {
            Fabric::assemble(switches(&[0xa1]), &names, Moment(10), Some((before, Moment(forget))))
        };
        let gone = one(&both, 0);
        assert_eq!(names_of(&gone)[1..], twins);
        let forgotten = one(&gone, 11);
        assert_eq!(names_of(&forgotten), [shared]);
        // Devices of a host share names, and these are not the names of hosts.
        let devices = DiscoveredFabric { is_one_host: true, ..switches(&[1, 2]) };
        let devices = Fabric::assemble(devices, &Naming::default(), Moment(9), None);
        assert_eq!(names_of(&devices), [shared, shared]);
    }

    #[test]
    fn adapters_of_a_host_have_its_name() {
        let mut nodes: Vec<_> = (0xa1..=0xa5).map(|guid| found(guid, NodeKind::Ca, 1)).collect();
        let descriptions = ["gpu1 mlx5_0", "gpu1 mlx5_1", "gpu2", "gpu2", ""];
        for (node, description) in nodes.iter_mut().zip(descriptions) {
            node.identity.description = description.into();
        }
        let all = DiscoveredFabric { nodes: nodes.clone(), ..DiscoveredFabric::default() };
        let map = NodeNameMap::parse("0xa2 \"gpu3 mlx5_1\"").unwrap();
        let fabric = Fabric::assemble(all, &map.into(), Moment(9), None);
        let hosts: Vec<_> = fabric.nodes.iter().map(|node| node.host.as_deref()).collect();
        // The site's name precedes; GUID digits of a shared name are not part of the host's; a GUID is no host.
        assert_eq!(hosts, [Some("gpu1"), Some("gpu3"), Some("gpu2"), Some("gpu2"), None]);
        assert_eq!(fabric.nodes[NodeIndex(3)].name, "gpu2#0000a4");
        let called = |name: &str| fabric.nodes.iter().filter(|node| node.is_called(name)).count();
        for (name, count) in [("gpu2", 2), ("gpu2#0000a4", 1), ("gpu3", 1), ("0xa5", 1), ("gpu", 0)]
        {
            assert_eq!(called(name), count, "{name}");
        }
        let one_host = DiscoveredFabric { nodes, is_one_host: true, ..DiscoveredFabric::default() };
        let devices = Fabric::assemble(one_host, &Naming::default(), Moment(9), None);
        assert!(devices.nodes.iter().all(|node| node.host.is_none()));
    }
}
