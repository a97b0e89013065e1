//! Which hosts' packets cross a link in one direction, by what is known of the tables, and which blocks are missing.
//!
//! Packets to a LID cross the link if the entry of the switch before it names its port, and if they come to that switch:
//! from a host at it, or from another switch whose entry leads there. So the search goes back from the link, switch by
//! switch, with the LIDs that cross.
//!
//! A switch above is not searched for what it would send down, and the switch below up again, as long as it has another
//! way to the destination, up and then down: no routing engine prefers such a detour, in which credits could wait in a
//! cycle. This saves most of the blocks. Levels are distances from the hosts; in a Dragonfly or a torus, where the
//! switches at both ends of a link have the same level, all neighbors are searched.

use std::cell::RefCell;
use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet, VecDeque};
use std::rc::Rc;

use ib_mad::forwarding_table::{ForwardingEntry, LinearForwardingTable};
use ib_mad::{Lid, PortNumber};

use super::lids::{HostLid, host_lids, is_host};
use super::link_users::{DirectionUsers, HostSet};
use super::reader::Lookup;
use crate::topology::{Fabric, Levels};
use crate::{NodeIndex, PortIndex};

/// What all searches in a fabric need of it.
#[derive(Debug)]
pub(super) struct Hosts {
    /// All LIDs of hosts.
    lids: Vec<HostLid>,
    /// The hosts at each switch.
    at_switch: HashMap<NodeIndex, Vec<NodeIndex>>,
    /// The switches that each host is at.
    leaves: HashMap<NodeIndex, Vec<NodeIndex>>,
    levels: Levels,
    /// The switches that each switch reaches up and then down, once it was needed.
    reach: RefCell<HashMap<NodeIndex, HashSet<NodeIndex>>>,
    /// The hosts below each switch, once it was needed.
    below: RefCell<HashMap<NodeIndex, Rc<BTreeSet<NodeIndex>>>>,
}

impl Hosts {
    pub fn new(fabric: &Fabric) -> Self {
        let mut at_switch: HashMap<NodeIndex, Vec<NodeIndex>> = HashMap::new();
        let mut leaves: HashMap<NodeIndex, Vec<NodeIndex>> = HashMap::new();
        for port in fabric.port_indexes() {
            let Some(peer) = fabric.port(port).connected_peer() else { continue };
            let (node, far) = (fabric.port(port).node, fabric.port(peer).node);
            if fabric.node(node).is_switch() && is_host(fabric, far) {
                at_switch.entry(node).or_default().push(far);
                leaves.entry(far).or_default().push(node);
            }
        }
        Hosts {
            lids: host_lids(fabric),
            at_switch,
            leaves,
            levels: Levels::compute(fabric),
            reach: RefCell::default(),
            below: RefCell::default(),
        }
    }

    /// Whether a switch has a way to a host that does not go down and up again.
    fn reaches(&self, fabric: &Fabric, switch: NodeIndex, host: NodeIndex) -> bool {
        let mut reach = self.reach.borrow_mut();
        let of_switch = reach.entry(switch).or_insert_with(|| self.reach_of(fabric, switch));
        let mut leaves = self.leaves.get(&host).into_iter().flatten();
        leaves.any(|leaf| of_switch.contains(leaf))
    }

    fn reach_of(&self, fabric: &Fabric, switch: NodeIndex) -> HashSet<NodeIndex> {
        // With whether the way there has come down.
        let mut seen = HashSet::from([(switch, false)]);
        let mut queue = vec![(switch, false)];
        while let Some((at, is_down)) = queue.pop() {
            for far in switches_before(fabric, at).into_keys() {
                let (rises, falls) = (self.levels.rises(at, far), self.levels.rises(far, at));
                let next = (far, is_down || falls);
                if !(is_down && rises) && seen.insert(next) {
                    queue.push(next);
                }
            }
        }
        seen.into_iter().map(|(switch, _)| switch).collect()
    }

    fn at(&self, switch: NodeIndex) -> &[NodeIndex] {
        self.at_switch.get(&switch).map_or(&[], Vec::as_slice)
    }

    /// All hosts that have LIDs.
    fn all(&self) -> BTreeSet<NodeIndex> {
        self.lids.iter().map(|it| it.host).collect()
    }

    /// The hosts at a switch, and at those that are not above it, from which packets may come to it.
    fn below(&self, fabric: &Fabric, switch: NodeIndex) -> Rc<BTreeSet<NodeIndex>> {
        let mut below = self.below.borrow_mut();
        Rc::clone(below.entry(switch).or_insert_with(|| Rc::new(self.below_of(fabric, switch))))
    }

    fn below_of(&self, fabric: &Fabric, switch: NodeIndex) -> BTreeSet<NodeIndex> {
        let mut seen = HashSet::from([switch]);
        let mut queue = vec![switch];
        let mut below = BTreeSet::new();
        while let Some(at) = queue.pop() {
            below.extend(self.at(at));
            let others = switches_before(fabric, at).into_keys();
            queue.extend(others.filter(|far| !self.levels.rises(at, *far) && seen.insert(*far)));
        }
        below
    }
}

/// A block of a switch's table that was not read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct Missing {
    pub block: u16,
    pub switch: NodeIndex,
}

/// What a block that was not read may decide.
#[derive(Clone, Debug, Default)]
struct Undecided {
    /// Places in [`Hosts::lids`].
    lids: BTreeSet<usize>,
}

/// A block that may decide about hosts.
struct OpenBlock {
    block: Missing,
    /// Hosts that may send over the link, and are not known to.
    senders: Vec<NodeIndex>,
    /// Hosts that may receive over it, and are not known to.
    receivers: Vec<NodeIndex>,
}

/// The state of a search.
#[derive(Debug)]
pub(super) struct Crossing {
    from: PortIndex,
    sources: BTreeSet<NodeIndex>,
    /// Places in [`Hosts::lids`] of LIDs to which some host sends over the link.
    confirmed: BTreeSet<usize>,
    destinations: BTreeSet<NodeIndex>,
    /// Blocks of the switch before the link.
    of_first: BTreeMap<Missing, Undecided>,
    /// Blocks of switches further back.
    behind: BTreeMap<Missing, Undecided>,
}

impl Crossing {
    /// The search for one direction of a link, from the port that sends.
    pub fn search(
        fabric: &Fabric,
        hosts: &Hosts,
        look_up: impl Fn(NodeIndex, Lid) -> Lookup,
        from: PortIndex,
    ) -> Self {
        let mut crossing = Crossing {
            from,
            sources: BTreeSet::new(),
            confirmed: BTreeSet::new(),
            destinations: BTreeSet::new(),
            of_first: BTreeMap::new(),
            behind: BTreeMap::new(),
        };
        let Some(peer) = fabric.port(from).connected_peer() else { return crossing };
        let ends = [from, peer].map(|port| fabric.port(port).node);
        let [is_switch, is_to_switch] = ends.map(|node| fabric.node(node).is_switch());
        if is_switch && is_to_switch {
            crossing.search_back(fabric, hosts, look_up, ends);
        } else {
            crossing.set_of_adapter(fabric, hosts, ends);
        }
        crossing
    }

    /// All that a host sends and receives crosses its own cable: no table is needed.
    fn set_of_adapter(&mut self, fabric: &Fabric, hosts: &Hosts, [from, to]: [NodeIndex; 2]) {
        if is_host(fabric, from) {
            self.sources.insert(from);
            self.destinations =
                if is_host(fabric, to) { BTreeSet::from([to]) } else { hosts.all() };
            self.destinations.remove(&from);
        } else if is_host(fabric, to) {
            self.destinations.insert(to);
            self.sources = hosts.all();
            self.sources.remove(&to);
        }
    }

    fn search_back(
        &mut self,
        fabric: &Fabric,
        hosts: &Hosts,
        look_up: impl Fn(NodeIndex, Lid) -> Lookup,
        [first, next]: [NodeIndex; 2],
    ) {
        let number = fabric.port(self.from).number;
        let mut crossing = Vec::new();
        for (place, it) in hosts.lids.iter().enumerate() {
            match look_up(first, it.lid) {
                Lookup::Entry(ForwardingEntry::Port(port)) if port == number => {
                    crossing.push(place);
                }
                Lookup::Entry(_) => {}
                Lookup::Unread => add(&mut self.of_first, first, it.lid, place),
            }
        }
        let mut found: HashMap<NodeIndex, BTreeSet<usize>> = HashMap::new();
        let mut queue = VecDeque::from([BackwardStep { at: first, to: next, lids: crossing }]);
        while let Some(BackwardStep { at, to, lids }) = queue.pop_front() {
            let known = found.entry(at).or_default();
            let new: Vec<usize> = lids.into_iter().filter(|place| known.insert(*place)).collect();
            if new.is_empty() {
                continue;
            }
            self.confirm(hosts, at, &new);
            let rises = hosts.levels.rises(at, to);
            for (back, ports) in switches_before(fabric, at) {
                if back == first || back == next {
                    continue;
                }
                let is_detour = rises && hosts.levels.rises(at, back);
                let mut lids = Vec::new();
                for &place in &new {
                    let HostLid { lid, host } = hosts.lids[place];
                    if is_detour && hosts.reaches(fabric, back, host) {
                        continue;
                    }
                    match look_up(back, lid) {
                        Lookup::Entry(ForwardingEntry::Port(port)) if ports.contains(&port) => {
                            lids.push(place);
                        }
                        Lookup::Entry(_) => {}
                        Lookup::Unread => add(&mut self.behind, back, lid, place),
                    }
                }
                if !lids.is_empty() {
                    queue.push_back(BackwardStep { at: back, to: at, lids });
                }
            }
        }
    }

    /// Packets to these LIDs cross the link if they come from hosts at this switch.
    fn confirm(&mut self, hosts: &Hosts, switch: NodeIndex, lids: &[usize]) {
        let here = hosts.at(switch);
        for &place in lids {
            let to = hosts.lids[place].host;
            for &host in here.iter().filter(|host| **host != to) {
                self.sources.insert(host);
                self.confirmed.insert(place);
                self.destinations.insert(to);
            }
        }
    }

    /// The blocks to read next to find the hosts that send: those without which the search does not know where to go on,
    /// and one of each switch with a host that is not known to send over the link. Only those that `can_read`.
    pub fn next_blocks(
        &self,
        fabric: &Fabric,
        hosts: &Hosts,
        can_read: impl Fn(Missing) -> bool,
    ) -> Vec<Missing> {
        let is_source = |host: &NodeIndex| self.sources.contains(host);
        let first = self.of_first.keys().copied().filter(|missing| can_read(*missing));
        let mut next: Vec<Missing> = first.collect();
        let mut of_switch: BTreeMap<NodeIndex, Vec<(Missing, &Undecided)>> = BTreeMap::new();
        for (&missing, undecided) in self.behind.iter().filter(|(missing, _)| can_read(**missing)) {
            let here = hosts.at(missing.switch);
            if !here.is_empty() {
                if !here.iter().all(is_source) {
                    of_switch.entry(missing.switch).or_default().push((missing, undecided));
                }
            } else if !hosts.below(fabric, missing.switch).iter().all(is_source) {
                next.push(missing);
            }
        }
        for (nth, blocks) in of_switch.into_values().enumerate() {
            // LIDs that cross from other switches likely cross from here, too. As long as none is known, each switch begins
            // with another block.
            let known = |undecided: &Undecided| {
                undecided.lids.iter().filter(|place| self.confirmed.contains(place)).count()
            };
            let best = blocks.iter().map(|(missing, it)| (known(it), *missing));
            match best.max_by_key(|(known, missing)| (*known, Reverse(*missing))) {
                Some((1.., missing)) => next.push(missing),
                _ => next.push(blocks[nth % blocks.len()].0),
            }
        }
        next
    }

    /// The blocks that may still decide about a host, a block of all switches after the other.
    pub fn other_blocks(&self, fabric: &Fabric, hosts: &Hosts) -> Vec<Missing> {
        self.open_blocks(fabric, hosts).into_iter().map(|open| open.block).collect()
    }

    fn open_blocks(&self, fabric: &Fabric, hosts: &Hosts) -> Vec<OpenBlock> {
        let may_receive = |undecided: &Undecided| -> Vec<NodeIndex> {
            let receivers = undecided.lids.iter().map(|place| hosts.lids[*place].host);
            receivers.filter(|host| !self.destinations.contains(host)).collect()
        };
        let unknown = |hosts: &BTreeSet<NodeIndex>| -> Vec<NodeIndex> {
            hosts.difference(&self.sources).copied().collect()
        };
        let mut may_send = HashMap::new();
        let mut open = Vec::new();
        for (missing, lids) in self.of_first.iter().chain(&self.behind) {
            let senders = may_send.entry(missing.switch).or_insert_with(|| {
                if self.of_first.contains_key(missing) {
                    unknown(&hosts.all())
                } else {
                    unknown(&hosts.below(fabric, missing.switch))
                }
            });
            let receivers = may_receive(lids);
            if !senders.is_empty() || !receivers.is_empty() {
                open.push(OpenBlock { block: *missing, senders: senders.clone(), receivers });
            }
        }
        open
    }

    /// The hosts, as far as they are known.
    pub fn finish(self, fabric: &Fabric, hosts: &Hosts) -> DirectionUsers {
        let mut switches = BTreeSet::new();
        let (mut may_send, mut may_receive) = (BTreeSet::new(), BTreeSet::new());
        let open = self.open_blocks(fabric, hosts);
        let unread_blocks = open.len();
        for OpenBlock { block, senders, receivers } in open {
            switches.insert(block.switch);
            may_send.extend(senders);
            may_receive.extend(receivers);
        }
        let host_set = |crossing: BTreeSet<NodeIndex>, undecided: BTreeSet<NodeIndex>| HostSet {
            crossing: crossing.into_iter().collect(),
            undecided: undecided.into_iter().collect(),
        };
        DirectionUsers {
            from: self.from,
            sources: host_set(self.sources, may_send),
            destinations: host_set(self.destinations, may_receive),
            unread_blocks,
            unread_switches: switches.len(),
        }
    }
}

/// LIDs that are sent from one switch to another, on their way to the link.
struct BackwardStep {
    at: NodeIndex,
    to: NodeIndex,
    /// Places in [`Hosts::lids`].
    lids: Vec<usize>,
}

fn add(to: &mut BTreeMap<Missing, Undecided>, switch: NodeIndex, lid: Lid, place: usize) {
    let missing = Missing { block: LinearForwardingTable::block_of(lid), switch };
    to.entry(missing).or_default().lids.insert(place);
}

/// The switches that have a link to this one, each with the numbers of its ports to it.
fn switches_before(fabric: &Fabric, to: NodeIndex) -> BTreeMap<NodeIndex, Vec<PortNumber>> {
    let mut before: BTreeMap<NodeIndex, Vec<PortNumber>> = BTreeMap::new();
    for peer in fabric.ports_of(to).filter_map(|port| fabric.port(port).connected_peer()) {
        let far = fabric.port(peer);
        if far.node != to && fabric.node(far.node).is_switch() {
            before.entry(far.node).or_default().push(far.number);
        }
    }
    before
}
