//! Which part of the fabrics the traffic of some hosts used: their own cables, and those between them.
//!
//! A history has no forwarding tables. Subnet managers route on shortest paths, except some engines for tori and
//! Dragonflies, so a cable that is on no shortest path between two of the hosts is not one that their traffic crossed,
//! and any other is one that it *may* have crossed. Traffic to other hosts, such as storage, is not known.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet, VecDeque};

use display_text::plural;
use ib_fabric::host_names::HostNames;
use ib_fabric::topology::LinkId;
use ib_mad::{Guid, PortKey};
use serde::{Serialize, Serializer};

use crate::incidents::{Incident, IncidentKind};
use crate::model::{Cable, ErrorDelta, Event, FabricState, Node, Port};

display_text::labeled_enum! {
    /// What something has to do with the hosts that were asked about.
    #[derive(PartialOrd, Ord)]
    pub enum Relation {
        Own, "own", "It is at an HCA or a cable of one of the hosts, or it cut one off.";
        Crossed, "crossed", "The traffic between the hosts may have crossed it.";
        Fabric, "fabric", "It concerns the fabric as a whole.";
    }
}

impl Serialize for Relation {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        to.serialize_str(self.label())
    }
}

/// Names of hosts that are not in the history; further ones are only counted.
const MAX_UNKNOWN: usize = 20;

/// The part of the fabrics that belongs to some hosts.
#[derive(Clone, Debug, Default)]
pub struct HostScope {
    /// The hosts that were found, by the name that the history has.
    pub hosts: BTreeSet<String>,
    /// The names that were not found, in the order given.
    pub unknown: Vec<String>,
    /// The ports of their own cables, both of each.
    pub own_ports: Vec<Port>,
    fabrics: BTreeMap<String, FabricScope>,
}

/// The same in one fabric.
#[derive(Clone, Debug, Default)]
struct FabricScope {
    hcas: HashSet<Guid>,
    /// Switches on the paths.
    switches: HashSet<Guid>,
    own: HashSet<LinkId>,
    crossed: HashSet<LinkId>,
    /// The cable of both, by its ports.
    links: HashMap<PortKey, LinkId>,
}

impl HostScope {
    /// The scope of hosts by their names, with or without domain, in fabrics as they were at some times.
    pub fn of(names: &[String], states: &[FabricState]) -> Self {
        let mut scope = HostScope::default();
        let host_of = |node: &Node| node.host.clone().unwrap_or_else(|| node.name.clone());
        let is_adapter = |node: &&Node| node.kind != "switch";
        let adapters = || states.iter().flat_map(|state| state.nodes.iter().filter(is_adapter));
        let whole: HashSet<String> = adapters().map(host_of).collect();
        let known = HostNames::new(whole.iter().map(String::as_str));
        let mut seen = HashSet::new();
        for name in names.iter().filter(|name| seen.insert(name.as_str())) {
            match known.find(name) {
                Some(host) => drop(scope.hosts.insert(host.to_owned())),
                None => scope.unknown.push(name.clone()),
            }
        }
        let mut seen_ports = HashSet::new();
        for state in states {
            let is_own = |node: &&Node| is_adapter(node) && scope.hosts.contains(&host_of(node));
            let hcas: HashSet<Guid> =
                state.nodes.iter().filter(is_own).map(|node| node.guid).collect();
            if !hcas.is_empty() {
                scope.fabrics.entry(state.fabric.clone()).or_default().add(state, &hcas);
            }
            let own = |cable: &&Cable| cable.ends.iter().any(|port| hcas.contains(&port.guid));
            for port in state.cables.iter().filter(own).flat_map(|cable| &cable.ends) {
                if seen_ports.insert((&state.fabric, port.end())) {
                    scope.own_ports.push(port.clone());
                }
            }
        }
        scope
    }

    /// Whether none of the names was found.
    pub fn is_empty(&self) -> bool {
        self.hosts.is_empty()
    }

    /// The names of the fabrics that they are in.
    pub fn fabrics(&self) -> impl Iterator<Item = &str> {
        self.fabrics.keys().map(String::as_str)
    }

    /// The nodes of the hosts in all fabrics.
    pub fn hcas(&self) -> impl Iterator<Item = Guid> {
        self.fabrics.values().flat_map(|fabric| fabric.hcas.iter().copied())
    }

    /// What an incident has to do with the hosts; `None` if nothing.
    pub fn relation(&self, incident: &Incident) -> Option<Relation> {
        let fabric = self.fabrics.get(&incident.fabric)?;
        let nodes = incident.events.iter().filter_map(|event| event.node).chain(incident.node);
        let links = incident.events.iter().filter_map(|event| event.link).chain(incident.link);
        let (nodes, links): (Vec<Guid>, Vec<LinkId>) = (nodes.collect(), links.collect());
        let is_of_host = incident.hosts.iter().any(|host| self.hosts.contains(host));
        if is_of_host
            || nodes.iter().any(|node| fabric.hcas.contains(node))
            || links.iter().any(|link| fabric.own.contains(link))
        {
            return Some(Relation::Own);
        }
        // A switch on the way matters as a whole only if it was down. Of its ports those on the way do.
        let is_node_of_path = incident.kind == IncidentKind::SwitchDown
            && nodes.iter().any(|node| fabric.switches.contains(node));
        if is_node_of_path || links.iter().any(|link| fabric.crossed.contains(link)) {
            return Some(Relation::Crossed);
        }
        // The events of a congested port name it by its node.
        let mut ends = incident.events.iter().filter_map(Event::port_key);
        if incident.kind == IncidentKind::Congestion
            && ends.any(|end| fabric.relation_of_end(end).is_some())
        {
            return Some(Relation::Crossed);
        }
        let is_of_fabric =
            matches!(incident.kind, IncidentKind::SubnetManager | IncidentKind::Monitoring);
        is_of_fabric.then_some(Relation::Fabric)
    }

    /// What an event has to do with them; one of the whole fabric nothing.
    pub fn relation_of_event(&self, event: &Event) -> Option<Relation> {
        let fabric = self.fabrics.get(&event.fabric)?;
        if event.node.is_some_and(|node| fabric.hcas.contains(&node)) {
            return Some(Relation::Own);
        }
        if let Some(link) = event.link {
            return fabric.relation_of_link(link);
        }
        let of_port = event.port_key().and_then(|end| fabric.relation_of_end(end));
        let is_switch = || event.node.is_some_and(|node| fabric.switches.contains(&node));
        of_port.or_else(|| (event.port.is_none() && is_switch()).then_some(Relation::Crossed))
    }

    /// What a port that counted errors has to do with them.
    pub fn relation_of_port(&self, moved: &ErrorDelta) -> Option<Relation> {
        let ends: Vec<Port> = std::iter::once(&moved.port).chain(&moved.peer).cloned().collect();
        self.relation_of_ends(&ends)
    }

    /// What a link has to do with them, by its ends; or a port alone whose other end is not known.
    pub fn relation_of_ends(&self, ends: &[Port]) -> Option<Relation> {
        let fabric = self.fabrics.get(&ends.first()?.fabric)?;
        if ends.iter().any(|port| fabric.hcas.contains(&port.guid)) {
            return Some(Relation::Own);
        }
        match ends {
            [a, b] => fabric.relation_of_link(LinkId::between(a.end(), b.end())),
            ends => ends.iter().find_map(|port| fabric.relation_of_end(port.end())),
        }
    }

    /// The ports of all cables that belong to them, or that their traffic may have crossed.
    pub fn ends(&self) -> impl Iterator<Item = PortKey> {
        self.fabrics.values().flat_map(|fabric| fabric.links.keys().copied())
    }

    /// What was looked at, in sentences.
    pub fn sentences(&self) -> Vec<String> {
        let count = |of: fn(&FabricScope) -> usize| self.fabrics.values().map(of).sum::<usize>();
        let hcas = plural(count(|fabric| fabric.hcas.len()), "HCA");
        let own = plural(count(|fabric| fabric.own.len()), "cable");
        let crossed = count(|fabric| fabric.crossed.len());
        let hosts = hostlist::fold(self.hosts.iter().map(String::as_str));
        let mut sentences = vec![format!(
            "{} ({hosts}) with {hcas} and {own} of their own.",
            plural(self.hosts.len(), "host")
        )];
        sentences.push(match crossed {
            0 => "Their traffic among themselves crosses no other cable.".to_owned(),
            _ => format!(
                "Their traffic among themselves may have crossed {}: those on a shortest path \
                 between two of the hosts. Traffic to other hosts, such as storage, is not known.",
                plural(crossed, "other cable")
            ),
        });
        if !self.unknown.is_empty() {
            let named = self.unknown.iter().take(MAX_UNKNOWN).map(String::as_str);
            let more = match self.unknown.len().saturating_sub(MAX_UNKNOWN) {
                0 => String::new(),
                more => format!(" and {more} more"),
            };
            sentences.push(format!("Not in the history: {}{more}.", hostlist::fold(named)));
        }
        sentences
    }
}

impl FabricScope {
    /// Adds what belongs to some HCAs in a state.
    fn add(&mut self, state: &FabricState, hcas: &HashSet<Guid>) {
        let switches: HashSet<Guid> = (state.nodes.iter())
            .filter(|node| node.kind == "switch")
            .map(|node| node.guid)
            .collect();
        let mut leaves = BTreeSet::new();
        let mut neighbors: HashMap<Guid, Vec<(Guid, LinkId)>> = HashMap::new();
        for cable in &state.cables {
            let [a, b] = cable.ends.each_ref().map(|port| port.guid);
            let link = Cable::link(cable);
            for (here, there) in [(a, b), (b, a)] {
                if hcas.contains(&here) {
                    self.own.insert(link);
                    self.links.extend(link.ends().map(|end| (end, link)));
                    leaves.extend(Some(there).filter(|there| switches.contains(there)));
                } else if switches.contains(&here) && switches.contains(&there) {
                    neighbors.entry(here).or_default().push((there, link));
                }
            }
        }
        self.hcas.extend(hcas);
        self.switches.extend(&leaves);
        for &leaf in &leaves {
            self.add_paths(leaf, &leaves, &neighbors);
        }
    }

    /// Adds all shortest paths from a switch to others: one search of the fabric, and the way back from each.
    fn add_paths(
        &mut self,
        from: Guid,
        to: &BTreeSet<Guid>,
        neighbors: &HashMap<Guid, Vec<(Guid, LinkId)>>,
    ) {
        let around = |node: &Guid| neighbors.get(node).into_iter().flatten();
        let mut distances: HashMap<Guid, u32> = HashMap::from([(from, 0)]);
        let mut queue = VecDeque::from([from]);
        while let Some(node) = queue.pop_front() {
            let next = distances[&node] + 1;
            for (peer, _) in around(&node) {
                distances.entry(*peer).or_insert_with(|| {
                    queue.push_back(*peer);
                    next
                });
            }
        }
        let mut back: Vec<Guid> =
            to.iter().copied().filter(|it| distances.contains_key(it)).collect();
        let mut seen: HashSet<Guid> = back.iter().copied().collect();
        while let Some(node) = back.pop() {
            for (peer, link) in around(&node) {
                if distances[peer] + 1 == distances[&node] {
                    self.crossed.insert(*link);
                    self.links.extend(link.ends().map(|end| (end, *link)));
                    if seen.insert(*peer) {
                        back.push(*peer);
                    }
                }
            }
        }
        self.switches.extend(seen);
    }

    fn relation_of_link(&self, link: LinkId) -> Option<Relation> {
        if self.own.contains(&link) {
            return Some(Relation::Own);
        }
        self.crossed.contains(&link).then_some(Relation::Crossed)
    }

    /// That of the cable at a port.
    fn relation_of_end(&self, end: PortKey) -> Option<Relation> {
        self.relation_of_link(*self.links.get(&end)?)
    }
}

#[cfg(test)]
mod tests {
    use std::time::SystemTime;

    use ib_health::Verdict;

    use super::*;
    use crate::testing::Canned;

    fn node(port: &Port, kind: &str) -> Node {
        let host = (kind == "ca").then(|| port.node.clone());
        Node { guid: port.guid, name: port.node.clone(), host, kind: kind.into(), up: true }
    }

    fn cable((a, a_port): (&str, u8), (b, b_port): (&str, u8)) -> Cable {
        let ends = [Canned::port("fab", a, a_port), Canned::port("fab", b, b_port)];
        Cable { ends, up: Some(true), verdict: Verdict::Ok, rate: None }
    }

    /// Leaves L1 to L3 with hosts, each with a cable to both spines S1 and S2, and a third one of which L1 has two.
    fn tree() -> FabricState {
        let mut cables = Vec::new();
        for (leaf, hosts) in [("L1", ["a1", "a2"]), ("L2", ["b1", "b2"]), ("L3", ["c1", "c2"])] {
            cables.extend((1..).zip(hosts).map(|(port, host)| cable((leaf, port), (host, 1))));
            let leaf_number = leaf.as_bytes()[1] - b'0';
            cables.extend((1..=2).map(|spine| {
                let name = if spine == 1 { "S1" } else { "S2" };
                cable((leaf, 10 + spine), (name, leaf_number))
            }));
        }
        cables.push(cable(("L1", 13), ("S1", 9)));
        let mut nodes: BTreeMap<Guid, Node> = BTreeMap::new();
        for port in cables.iter().flat_map(|cable| &cable.ends) {
            let is_switch = port.node.starts_with(['L', 'S']);
            nodes.insert(port.guid, node(port, if is_switch { "switch" } else { "ca" }));
        }
        let nodes = nodes.into_values().collect();
        FabricState { fabric: "fab".into(), at: SystemTime::UNIX_EPOCH, nodes, cables }
    }

    fn scope(hosts: &[&str]) -> HostScope {
        let hosts: Vec<String> = hosts.iter().map(|&host| host.to_owned()).collect();
        HostScope::of(&hosts, &[tree()])
    }

    /// The labels of the cables between hosts.
    fn crossed(hosts: &[&str]) -> Vec<String> {
        let scope = scope(hosts);
        let is_crossed =
            |cable: &&Cable| scope.relation_of_ends(&cable.ends) == Some(Relation::Crossed);
        tree().cables.iter().filter(is_crossed).map(Cable::label).collect()
    }

    #[test]
    fn traffic_crosses_the_shortest_paths() {
        assert_eq!(crossed(&["a1", "a2"]), [""; 0]);
        let between = [
            "L1 port 11 – S1 port 1",
            "L1 port 12 – S2 port 1",
            "L2 port 11 – S1 port 2",
            "L2 port 12 – S2 port 2",
            "L1 port 13 – S1 port 9",
        ];
        assert_eq!(crossed(&["a1", "b2"]), between);
        assert_eq!(crossed(&["a1"]), [""; 0]);
        assert_eq!(crossed(&["a1", "b1", "c1"]).len(), 7);
    }

    #[test]
    fn hosts_are_known_with_and_without_domain() {
        let scope = scope(&["a1.cluster.example.org", "a1", "x9", "b2", "x10"]);
        assert_eq!(scope.hosts.iter().collect::<Vec<_>>(), ["a1", "b2"]);
        assert_eq!(scope.unknown, ["x9", "x10"]);
        let text = scope.sentences().join(" ");
        assert!(
            text.starts_with("2 hosts (a1,b2) with 2 HCAs and 2 cables of their own."),
            "{text}"
        );
        assert!(text.contains("may have crossed 5 other cables"), "{text}");
        assert!(text.ends_with("Not in the history: x[9-10]."), "{text}");
    }

    #[test]
    fn errors_at_other_cables_are_no_matter() {
        let scope = scope(&["a1", "b1"]);
        let counted = |(a, a_port): (&str, u8), (b, b_port): (&str, u8)| {
            let [port, peer] = [Canned::port("fab", a, a_port), Canned::port("fab", b, b_port)];
            scope.relation_of_port(&Canned::counted(&port, Some(&peer), 1))
        };
        assert_eq!(counted(("L1", 1), ("a1", 1)), Some(Relation::Own));
        assert_eq!(counted(("L1", 2), ("a2", 1)), None);
        assert_eq!(counted(("S1", 2), ("L2", 11)), Some(Relation::Crossed));
        assert_eq!(counted(("S1", 3), ("L3", 11)), None);
    }
}
