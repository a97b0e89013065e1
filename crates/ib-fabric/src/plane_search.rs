//! Finds the links of several planes of a fabric.

mod numbering;

use std::collections::{BTreeMap, HashMap, HashSet};

use ib_mad::node::{NodeKind, device};
use ib_mad::{FrontPanel, Guid};

use super::aggregated_links::{
    AggregatedLink, AggregatedLinks, AggregatedPort, GroupSource, PlaneLink, Wiring, system_of,
};
use super::fabric_kind::FabricKind;
use super::link::Link;
use super::topology::Fabric;
use crate::{NodeIndex, PortIndex};
use numbering::{clear_other_numbering, clear_unread, is_plausible};

/// The nodes of a switch of which each has one plane, and the planes of such a port.
const PLANES: usize = 4;

/// Finds them in a fabric whose links and front panels are known.
pub(crate) fn find(fabric: &Fabric) -> AggregatedLinks {
    // The links of an NVLink fabric are no cables.
    if fabric.kind == Some(FabricKind::NvLink) {
        return AggregatedLinks::default();
    }
    let systems = FourNodeSystems::find(fabric);
    if systems.planes.is_empty() && !fabric.front_panels.has_planes() {
        return AggregatedLinks::default();
    }
    let plane_links = fabric.links().filter(|link| !fabric.is_internal(*link));
    let mut joined: Vec<Joined> = plane_links
        .filter_map(|link| {
            let known = link.ports().map(|port| systems.plane_port(fabric, port));
            let (low, high) = match known {
                [Some(low), Some(high)] => (low, high),
                [Some(low), None] => (low, of_silent_adapter(fabric, link.high)?),
                [None, Some(high)] => (of_silent_adapter(fabric, link.low)?, high),
                [None, None] => return None,
            };
            let is_inside = low.port.system == high.port.system;
            (!is_inside).then_some(Joined { link, ends: [low, high] })
        })
        .collect();
    let ports = fabric.port_indexes();
    let of_ports = ports.filter_map(|port| Some((port, systems.plane_port(fabric, port)?)));
    let of_links = joined.iter().flat_map(|one| one.link.ports().into_iter().zip(one.ends));
    let ambiguous = ambiguous_systems(of_ports.chain(of_links));
    joined.retain(|one| one.ends.iter().all(|end| !ambiguous.contains(&end.port.system)));
    let mut links = group(&joined);
    clear_unread(&mut links, fabric);
    clear_other_numbering(&mut links, fabric);
    links.retain(is_plausible);
    AggregatedLinks::new(links, fabric.ports.len())
}

/// A port as a plane of an aggregated port.
#[derive(Clone, Copy, Debug)]
struct PlanePort {
    port: AggregatedPort,
    plane: u8,
    /// The number of planes; 0 if it is not reported.
    planes: u8,
    source: GroupSource,
}

/// A link of the subnet between two planes.
struct Joined {
    link: Link,
    ends: [PlanePort; 2],
}

impl Joined {
    /// The ports that it joins, the lower first.
    fn pair(&self) -> [AggregatedPort; 2] {
        let [a, b] = self.ends.map(|end| end.port);
        [a.min(b), a.max(b)]
    }

    /// It as a plane of the link whose first end is this.
    fn plane(&self, first: AggregatedPort, wiring: Wiring) -> PlaneLink {
        let [low, high] = self.link.ports();
        let is_turned = self.ends[0].port != first && self.ends[1].port == first;
        let (ports, end) =
            if is_turned { ([high, low], self.ends[1]) } else { ([low, high], self.ends[0]) };
        let [a, b] = self.ends.map(|end| end.plane);
        let is_crossed = wiring == Wiring::Straight && a != b;
        let wiring = if is_crossed { Wiring::OtherPlane } else { wiring };
        PlaneLink { plane: end.plane, link: self.link, ports, wiring }
    }
}

/// The switches of four Quantum-3 nodes, by node: the plane of each node, by the order of their GUIDs.
struct FourNodeSystems {
    planes: HashMap<NodeIndex, u8>,
}

impl FourNodeSystems {
    fn find(fabric: &Fabric) -> Self {
        let mut systems: HashMap<Guid, Vec<NodeIndex>> = HashMap::new();
        for node in fabric.node_indexes() {
            let identity = &fabric.node(node).identity;
            let is_plane = identity.kind == NodeKind::Switch
                && identity.device_id == device::QUANTUM_3
                && device::is_mellanox(identity.vendor_id);
            if is_plane && identity.system_guid != Guid::default() {
                systems.entry(identity.system_guid).or_default().push(node);
            }
        }
        let systems = systems.into_values().filter(|nodes| nodes.len() == PLANES);
        // Nodes are ordered by GUID.
        let planes = systems.flat_map(|nodes| nodes.into_iter().zip(1..));
        FourNodeSystems { planes: planes.collect() }
    }

    /// A port as a plane: as it reports it, or as the port of a node of such a switch.
    fn plane_port(&self, fabric: &Fabric, port: PortIndex) -> Option<PlanePort> {
        let (known, node) = (fabric.port(port), fabric.node_of(port));
        let system = system_of(&node.identity);
        // What a switch without SystemImageGUID is a part of is not known.
        if node.is_switch() && node.identity.system_guid == Guid::default() {
            return None;
        }
        let is_plane = |number: &u8| (1..=PLANES as u8).contains(number);
        let reported = |panel: &FrontPanel| {
            let port = AggregatedPort { system, number: panel.aggregated_port? };
            let plane = panel.plane.filter(is_plane)?;
            let planes = panel.planes.filter(is_plane).unwrap_or(0);
            Some(PlanePort { port, plane, planes, source: GroupSource::HierarchyInfo })
        };
        let guessed = || {
            let number = known.number.into();
            let plane = *self.planes.get(&known.node)?;
            let port = AggregatedPort { system, number };
            Some(PlanePort { port, plane, planes: 0, source: GroupSource::Guess })
        };
        match fabric.front_panel(port) {
            Some(panel) => reported(panel),
            None => guessed(),
        }
    }
}

/// The port of an adapter that does not report its planes, at a port that is a plane.
fn of_silent_adapter(fabric: &Fabric, port: PortIndex) -> Option<PlanePort> {
    let (known, node) = (fabric.port(port), fabric.node_of(port));
    let is_silent = node.identity.kind == NodeKind::Ca && fabric.front_panel(port).is_none();
    let nth = known.number.checked_sub(1).filter(|_| is_silent)?;
    let planes = PLANES as u8;
    let port = AggregatedPort { system: node.identity.guid, number: u16::from(nth / planes) + 1 };
    Some(PlanePort { port, plane: nth % planes + 1, planes: 0, source: GroupSource::Guess })
}

/// The systems in which several ports report to be one plane of one port: what shares its SystemImageGUID with other
/// devices, or counts its ports otherwise than known. Their planes cannot be told apart.
fn ambiguous_systems(planes: impl Iterator<Item = (PortIndex, PlanePort)>) -> HashSet<Guid> {
    let mut ports = HashMap::new();
    let is_other = |(port, it): &(PortIndex, PlanePort)| {
        *ports.entry((it.port, it.plane)).or_insert(*port) != *port
    };
    planes.filter(is_other).map(|(_, it)| it.port.system).collect()
}

/// The plane links of a whole link.
#[derive(Default)]
struct Members<'a> {
    own: Vec<&'a Joined>,
    astray: Vec<&'a Joined>,
    /// The numbers of its own planes.
    numbers: HashSet<u8>,
}

/// Groups plane links by the ports that they join. One that leads elsewhere than most planes of its ends belongs to the
/// link of its lower port, or else of the other one, if that has no other plane of its number.
fn group(joined: &[Joined]) -> Vec<AggregatedLink> {
    let mut pairs: BTreeMap<[AggregatedPort; 2], Vec<&Joined>> = BTreeMap::new();
    for one in joined {
        pairs.entry(one.pair()).or_default().push(one);
    }
    // Where most planes of a port lead; of equally many, to the lowest.
    let mut most: HashMap<AggregatedPort, (usize, [AggregatedPort; 2])> = HashMap::new();
    for (pair, links) in &pairs {
        for end in pair {
            let known = most.entry(*end).or_insert((0, *pair));
            if links.len() > known.0 {
                *known = (links.len(), *pair);
            }
        }
    }
    let leads_to = |end: &AggregatedPort| most.get(end).map(|(_, pair)| *pair);
    let is_whole = |pair: &[AggregatedPort; 2]| pair.iter().all(|end| leads_to(end) == Some(*pair));
    let others =
        |pair: &[AggregatedPort; 2]| pair.iter().filter_map(leads_to).any(|it| is_whole(&it));
    let mut members: BTreeMap<[AggregatedPort; 2], Members<'_>> = BTreeMap::new();
    let (straight, stray): (Vec<_>, Vec<_>) =
        pairs.into_iter().partition(|(pair, _)| is_whole(pair) || !others(pair));
    for (pair, links) in straight {
        let known = members.entry(pair).or_default();
        known.numbers.extend(links.iter().flat_map(|one| one.ends.map(|end| end.plane)));
        known.own = links;
    }
    for one in stray.into_iter().flat_map(|(_, links)| links) {
        let mut is_placed = false;
        let mut ends = one.ends;
        ends.sort_by_key(|end| end.port);
        for end in ends {
            let Some(whole) = leads_to(&end.port).filter(is_whole) else { continue };
            let Some(known) = members.get_mut(&whole) else { continue };
            known.astray.push(one);
            if !is_placed && known.own.len() < PLANES && known.numbers.insert(end.plane) {
                known.own.push(one);
                is_placed = true;
            }
        }
    }
    let links = members.into_iter();
    links.filter_map(|(pair, known)| whole(pair, &known.own, &known.astray)).collect()
}

fn whole(pair: [AggregatedPort; 2], own: &[&Joined], astray: &[&Joined]) -> Option<AggregatedLink> {
    let straight = || own.iter().filter(|one| one.pair() == pair);
    let lead = straight().min_by_key(|one| (one.link.low, one.link.high))?;
    let ends = lead.ends.map(|end| end.port);
    let plane = |one: &&Joined| {
        let wiring = if one.pair() == pair { Wiring::Straight } else { Wiring::OtherPort };
        // A plane that leads elsewhere begins at the end that belongs to this link.
        let first = ends.into_iter().find(|end| one.ends.iter().any(|it| it.port == *end));
        one.plane(first.unwrap_or(ends[0]), wiring)
    };
    let sorted = |links: &[&Joined]| {
        let mut planes: Vec<PlaneLink> = links.iter().map(plane).collect();
        planes.sort_by_key(|plane| (plane.plane, plane.link.low, plane.link.high));
        planes
    };
    let reported = |end: AggregatedPort| {
        let of_end = straight().flat_map(|one| one.ends).filter(|it| it.port == end);
        of_end.map(|it| it.planes).max().unwrap_or(0)
    };
    let is_guess = own.iter().flat_map(|one| &one.ends).any(|end| end.source == GroupSource::Guess);
    Some(AggregatedLink {
        ends,
        source: if is_guess { GroupSource::Guess } else { GroupSource::HierarchyInfo },
        planes: sorted(own),
        astray: sorted(astray),
        expected: reported(ends[0]).min(reported(ends[1])),
    })
}

#[cfg(test)]
mod tests;
