//! The ways of packets, as a subnet manager lays them: the shortest, and by destination alone.
//!
//! A switch's forwarding table knows nothing of where a packet comes from, so that all traffic to
//! one destination flows together into one tree. Of several equally short ways on, the
//! destination's number decides, digit by digit as on the way up a fat tree (Zahavi, "D-Mod-K
//! Routing Providing Non-Blocking Traffic for Shift Permutations on Real Life Fat Trees", 2010):
//! the first switch on the way divides by its choices, and the next one goes on with the quotient.
//! So a full fat tree with an uplink for each host carries any shift of its hosts (each sends to
//! the one that is n further) without two flows on one cable. Other patterns collide, as they do
//! in the field: a random permutation at 90 % of the links' speed gets 55 % through on 27,648
//! hosts.
//!
//! One core finds the ways of 27,648 flows to as many hosts, over 2,880 switches, in 0.2 s: nearly
//! all of it goes into the distances to each of 1,152 leaves.
//!
//! What is simplified: no tree of ranks is made of the fabric, as opensm's `ftree` and `updn` do,
//! so that a way may turn down and up again, and credits may wait in a circle, where the shortest
//! way does. `minhop`, opensm's default, makes none either.

use std::cmp::Ordering;
use std::ops::Range;

use crate::net::{Net, NodeId, PortId};
use ib_mad::node::NodeKind;

/// The ways between pairs of adapters' ports.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Routes {
    hops: Vec<PortId>,
    spans: Vec<Range<usize>>,
}

impl Routes {
    /// Finds the way from the first to the second port of each pair. `links` is by [`PortId`]:
    /// where each port's cable leads now, if that link carries traffic; one that its far end does
    /// not agree with carries none.
    pub fn new(net: &Net, links: &[Option<PortId>], pairs: &[(PortId, PortId)]) -> Routes {
        let map = Map::new(net, links);
        let numbers = numbers(net);
        let mut routes = Routes { hops: Vec::new(), spans: vec![0..0; pairs.len()] };
        // The pairs whose destination hangs at a switch, by that switch: the distances to one are
        // reckoned once, and forgotten before those to the next.
        let mut by_leaf: Vec<(u32, usize)> = Vec::new();
        for (nth, &(from, to)) in pairs.iter().enumerate() {
            let (Some(first), Some(last)) = (far(links, from), far(links, to)) else { continue };
            if from == to || map.switch_at(from).is_some() || map.switch_at(to).is_some() {
                continue;
            }
            if first == to {
                routes.keep(nth, &[from]);
            } else if let (Some(_), Some(leaf)) = (map.switch_at(first), map.switch_at(last)) {
                by_leaf.push((leaf, nth));
            }
        }
        by_leaf.sort_unstable();
        let mut tree = Tree::default();
        let mut way = Vec::new();
        for group in by_leaf.chunk_by(|(a, _), (b, _)| a == b) {
            tree.grow(&map, group[0].0);
            for &(_, nth) in group {
                let (from, to) = pairs[nth];
                let (Some(first), Some(last)) = (far(links, from), far(links, to)) else {
                    continue;
                };
                let Some(entry) = map.switch_at(first) else { continue };
                way.clear();
                way.push(from);
                if tree.walk(&map, entry, u64::from(numbers[to.0 as usize]), &mut way) {
                    way.push(last);
                    routes.keep(nth, &way);
                }
            }
        }
        routes
    }

    fn keep(&mut self, nth: usize, way: &[PortId]) {
        let start = self.hops.len();
        self.hops.extend_from_slice(way);
        self.spans[nth] = start..self.hops.len();
    }

    /// The way of the pair of this number: the ports that send, from the source's own to the last
    /// switch's that faces the destination. `None` where there is no way.
    pub fn way(&self, pair: usize) -> Option<&[PortId]> {
        let span = self.spans.get(pair)?.clone();
        if span.is_empty() { None } else { self.hops.get(span) }
    }

    /// The ways of all pairs in their order, empty where there is none.
    pub fn ways(&self) -> impl Iterator<Item = &[PortId]> {
        self.spans.iter().map(|span| &self.hops[span.clone()])
    }
}

/// The far end of a port's link, if both ends agree on it.
pub(super) fn far(links: &[Option<PortId>], port: PortId) -> Option<PortId> {
    let end = links.get(port.0 as usize).copied().flatten()?;
    (links.get(end.0 as usize).copied().flatten() == Some(port)).then_some(end)
}

/// The number of each port as a destination: those at the first switch first, in the order of its
/// ports. They go by the cables as built, so that a link that fails does not move everybody's way.
fn numbers(net: &Net) -> Vec<u32> {
    let mut numbers = vec![u32::MAX; net.ports.len()];
    let is_switch = |node: NodeId| net.node(node).kind == NodeKind::Switch;
    let of_switches = net.node_ids().filter(|&node| is_switch(node));
    let at_switches = of_switches
        .flat_map(|node| net.plugs_of(node))
        .filter_map(|plug| net.port(plug).cable)
        .filter(|&end| !is_switch(net.port(end).node));
    let mut count = 0;
    for port in at_switches.chain(net.port_ids()) {
        let number = &mut numbers[port.0 as usize];
        if *number == u32::MAX {
            *number = count;
            count += 1;
        }
    }
    numbers
}

/// A cable from one switch to another.
struct Cable {
    /// The switch that it leads to.
    to: u32,
    /// How many cables to the same switch come before it.
    nth: u32,
    /// The port it leaves by.
    port: PortId,
}

/// The switches and the links between them; switches are numbered in the order of the nodes.
struct Map<'a> {
    net: &'a Net,
    /// By node; `u32::MAX` for all but switches.
    switches: Vec<u32>,
    /// The cables of all switches. Those of one: the first cables to each neighbour in the order
    /// of their ports, then the second cables, and so on.
    cables: Vec<Cable>,
    /// Where in `cables` each switch's are.
    spans: Vec<Range<usize>>,
    /// How many neighbours each switch has.
    neighbours: Vec<usize>,
    /// The switches that adapters hang at: where traffic comes from.
    leaves: Vec<bool>,
}

impl<'a> Map<'a> {
    fn new(net: &'a Net, links: &[Option<PortId>]) -> Map<'a> {
        let mut map = Map {
            net,
            switches: vec![u32::MAX; net.nodes.len()],
            cables: Vec::new(),
            spans: Vec::new(),
            neighbours: Vec::new(),
            leaves: Vec::new(),
        };
        let nodes = net.node_ids().zip(&net.nodes);
        let nodes = nodes.filter(|(_, node)| node.kind == NodeKind::Switch).map(|(id, _)| id);
        let nodes: Vec<NodeId> = nodes.collect();
        for (switch, node) in nodes.iter().enumerate() {
            map.switches[node.0 as usize] = switch as u32;
        }
        // How many cables from the switch at hand lead to each.
        let mut seen = vec![0; nodes.len()];
        for (switch, &node) in nodes.iter().enumerate() {
            let start = map.cables.len();
            let mut leaf = false;
            for port in net.plugs_of(node) {
                let Some(end) = far(links, port) else { continue };
                match map.switch_at(end) {
                    None => leaf = true,
                    Some(to) if to as usize == switch => {}
                    Some(to) => {
                        let nth = seen[to as usize];
                        seen[to as usize] += 1;
                        map.cables.push(Cable { to, nth, port });
                    }
                }
            }
            let cables = &mut map.cables[start..];
            cables.sort_by_key(|cable| (cable.nth, cable.port));
            for cable in &*cables {
                seen[cable.to as usize] = 0;
            }
            map.neighbours.push(cables.iter().filter(|cable| cable.nth == 0).count());
            map.spans.push(start..map.cables.len());
            map.leaves.push(leaf);
        }
        map
    }

    /// The switch that a port belongs to.
    fn switch_at(&self, port: PortId) -> Option<u32> {
        let switch = self.switches[self.net.port(port).node.0 as usize];
        (switch != u32::MAX).then_some(switch)
    }

    fn cables(&self, switch: u32) -> &[Cable] {
        &self.cables[self.spans[switch as usize].clone()]
    }

    /// One cable to each neighbour.
    fn neighbours(&self, switch: u32) -> &[Cable] {
        &self.cables(switch)[..self.neighbours[switch as usize]]
    }
}

/// How much of a destination's number was used up on the way to a switch.
#[derive(Clone, Copy)]
struct Digits {
    /// How many switches took their part of it; `u32::MAX` where no packet comes.
    used: u32,
    /// By what it is divided.
    divisor: u64,
}

/// The shortest ways from all switches to one.
#[derive(Default)]
struct Tree {
    root: u32,
    /// The switches that reach it, the nearest first.
    order: Vec<u32>,
    /// How many cables lie between, by switch; `u32::MAX` where there is no way.
    distances: Vec<u32>,
    /// What is left of a destination's number when a packet comes here, by switch.
    digits: Vec<Digits>,
}

impl Tree {
    fn grow(&mut self, map: &Map, root: u32) {
        self.root = root;
        self.order.clear();
        self.distances.clear();
        self.distances.resize(map.spans.len(), u32::MAX);
        self.digits.clear();
        let used = |&leaf: &bool| if leaf { 0 } else { u32::MAX };
        let digits = map.leaves.iter().map(|leaf| Digits { used: used(leaf), divisor: 1 });
        self.digits.extend(digits);
        self.distances[root as usize] = 0;
        self.order.push(root);
        let mut next = 0;
        while let Some(&at) = self.order.get(next) {
            next += 1;
            let distance = self.distances[at as usize] + 1;
            for cable in map.neighbours(at) {
                let known = &mut self.distances[cable.to as usize];
                if *known == u32::MAX {
                    *known = distance;
                    self.order.push(cable.to);
                }
            }
        }
        // The farthest first: what comes from them is divided by their choices. Where ways of
        // different lengths meet, those from the leaves close by count: their digits tell apart the
        // destinations that are close by, too. Among these the largest divisor does, so that the
        // ways of all others stay where they are when one of them loses a cable.
        for &at in self.order[1..].iter().rev() {
            let Digits { used, divisor } = self.digits[at as usize];
            if used == u32::MAX {
                continue;
            }
            let distance = self.distances[at as usize];
            let nearer = |cable: &&Cable| self.distances[cable.to as usize] < distance;
            let nearer = map.neighbours(at).iter().filter(nearer);
            let (used, divisor) = (used + 1, divisor.saturating_mul(nearer.clone().count() as u64));
            for cable in nearer {
                let there = &mut self.digits[cable.to as usize];
                match used.cmp(&there.used) {
                    Ordering::Less => *there = Digits { used, divisor },
                    Ordering::Equal => there.divisor = divisor.max(there.divisor),
                    Ordering::Greater => {}
                }
            }
        }
    }

    /// Adds the ports that lead from a switch to the root for the destination of this number;
    /// false if none do.
    fn walk(&self, map: &Map, entry: u32, number: u64, way: &mut Vec<PortId>) -> bool {
        let mut at = entry;
        while at != self.root {
            let distance = self.distances[at as usize];
            let nearer = |cable: &&Cable| self.distances[cable.to as usize] < distance;
            let mut nearer = map.cables(at).iter().filter(nearer);
            let choices = nearer.clone().count() as u64;
            if choices == 0 {
                return false;
            }
            let choice = number / self.digits[at as usize].divisor % choices;
            let Some(cable) = nearer.nth(choice as usize) else { return false };
            way.push(cable.port);
            at = cable.to;
        }
        true
    }
}
