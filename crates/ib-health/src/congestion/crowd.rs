//! Who can wait for whom: the ports that have to do with a congestion, and the switches between them.
//!
//! A port that leads into a switch may wait for each port of it that waits, but for those that lead
//! back or up again. Written out these are thousands of pairs a switch. But what comes in at a switch
//! leaves it by much the same ports, so each is walked through as a *hub* with two short lists, of who
//! comes in and who goes out: a walk that has gone through a hub by two ways has seen all there is.

use ib_fabric::levels::Levels;
use ib_fabric::{Fabric, NodeIndex, PortIndex};

use super::{Cause, FULL};

/// A port that waits, or that may make others wait.
pub(super) struct Member {
    pub(super) port: PortIndex,
    /// The share of time that it waits; 0 if it is here because it is full.
    pub(super) share: f32,
    /// How much of its link it uses, if the link is full.
    full: Option<f32>,
    node: NodeIndex,
    /// Where its cable leads.
    far: Option<NodeIndex>,
    far_is_switch: bool,
    rises: bool,
    falls: bool,
    /// The hub that it leads into: none where a chain ends with it.
    ahead: Option<u32>,
    /// The hub that it leads out of: none where nobody waits for it.
    behind: Option<u32>,
}

impl Member {
    pub(super) fn waits(&self) -> bool {
        self.share > 0.0
    }

    /// What makes it a root, if it is one.
    pub(super) fn cause(&self) -> Cause {
        match (self.full, self.far) {
            (Some(_), _) => Cause::FullLink,
            (None, Some(_)) if !self.far_is_switch => Cause::SlowReceiver,
            _ => Cause::Unknown,
        }
    }
}

/// See the module.
pub(super) struct Crowd {
    /// Those that wait, in the order of ports, and behind them those that are only full.
    pub(super) members: Vec<Member>,
    /// Who leads into the hubs.
    into: Side,
    /// By list of those, how long they wait.
    most: Vec<Most>,
    /// Who leads out of them.
    out: Side,
}

impl Crowd {
    /// `waiting` tells the share of time that a port waits if it does, `used` how full its link is.
    pub(super) fn gather(
        fabric: &Fabric,
        levels: &Levels,
        waiting: impl Fn(PortIndex) -> Option<f32>,
        used: impl Fn(PortIndex) -> Option<f32>,
    ) -> Crowd {
        let member = |port: PortIndex, share: f32, full: Option<f32>| {
            let node = fabric.port(port).node;
            let peer = fabric.port(port).peer.filter(|peer| peer.connected);
            let far = peer.map(|peer| fabric.port(peer.port).node);
            Member {
                port,
                share,
                full,
                node,
                far,
                far_is_switch: far.is_some_and(|far| fabric.node(far).is_switch()),
                rises: far.is_some_and(|far| levels.rises(node, far)),
                falls: far.is_some_and(|far| levels.rises(far, node)),
                ahead: None,
                behind: None,
            }
        };
        let full = |port: PortIndex| used(port).filter(|used| *used >= FULL);
        let mut members: Vec<Member> = fabric
            .port_indexes()
            .filter_map(|port| Some(member(port, waiting(port)?, full(port))))
            .collect();

        let mut hub_of: Vec<Option<u32>> = vec![None; fabric.nodes.len()];
        let mut hubs = Vec::new();
        for member in &mut members {
            // Whatever a full link waits for would hardly give it more: the chain ends here.
            if let Some(far) = member.far.filter(|_| member.far_is_switch && member.full.is_none())
            {
                member.ahead = Some(*hub_of[far.0 as usize].get_or_insert_with(|| {
                    hubs.push(far);
                    hubs.len() as u32 - 1
                }));
            }
        }
        for node in &hubs {
            for port in fabric.ports_of(*node).filter(|port| fabric.port(*port).number != 0) {
                if let Some(full) = full(port).filter(|_| waiting(port).is_none()) {
                    members.push(member(port, 0.0, Some(full)));
                }
            }
        }
        for member in &mut members {
            member.behind = hub_of[member.node.0 as usize];
        }
        let into = members.iter().map(|member| (member.ahead, member.falls, Some(member.node)));
        let out = members.iter().map(|member| (member.behind, member.rises, member.far));
        let (into, out) = (Side::new(hubs.len(), into), Side::new(hubs.len(), out));
        let most = (0..hubs.len() * 2).map(|list| Most::of(&members, &into, list)).collect();
        Crowd { members, into, most, out }
    }

    fn member(&self, member: u32) -> &Member {
        &self.members[member as usize]
    }

    /// Whether there is anybody that it may wait for.
    pub(super) fn leads_on(&self, member: u32) -> bool {
        let member = self.member(member);
        let lists = Side::lists(member.ahead, member.falls);
        lists.into_iter().any(|list| self.out.but(list, Some(member.node)).next().is_some())
    }

    /// How much a root weighs: by how long it waits. One that is full by how long those before it
    /// wait; but half of that, for that it is full does not prove that anybody waits for it, as
    /// another port's waiting does. Of several, the fullest.
    pub(super) fn weight(&self, member: u32) -> f32 {
        let member = self.member(member);
        let Some(full) = member.full else { return member.share };
        let lists = Side::lists(member.behind, member.rises);
        let most = lists.map(|list| self.most[list].but(member.far)).fold(0.0, f32::max);
        member.share.max(most / 2.0 * full)
    }
}

/// One side of all hubs. Each hub has two lists: those that have a way to all of the other side, and
/// those that do not, for what came down does not go up again.
struct Side {
    /// Where each list begins in the two below, and the end of the last.
    begins: Vec<u32>,
    members: Vec<u32>,
    /// The neighbour that each comes from or leads to: nobody returns there.
    neighbours: Vec<Option<NodeIndex>>,
}

impl Side {
    fn new(
        hubs: usize,
        entries: impl Iterator<Item = (Option<u32>, bool, Option<NodeIndex>)> + Clone,
    ) -> Side {
        let entries = entries.enumerate().filter_map(|(member, (hub, bound, neighbour))| {
            Some((hub? as usize * 2 + usize::from(bound), member as u32, neighbour))
        });
        // Sorted by counting: first how many stand in each list, then where each begins.
        let mut begins = vec![0; hubs * 2 + 1];
        entries.clone().for_each(|(list, ..)| begins[list] += 1);
        let mut all = 0;
        for begin in &mut begins {
            all += *begin;
            *begin = all;
        }
        let mut members = vec![0; all as usize];
        let mut neighbours = vec![None; all as usize];
        for (list, member, neighbour) in entries {
            begins[list] -= 1;
            members[begins[list] as usize] = member;
            neighbours[begins[list] as usize] = neighbour;
        }
        Side { begins, members, neighbours }
    }

    /// The lists of a hub's one side that are open to one who stands at its other side.
    fn lists(hub: Option<u32>, bound: bool) -> std::ops::Range<usize> {
        hub.map_or(0..0, |hub| {
            let first = hub as usize * 2;
            first..first + if bound { 1 } else { 2 }
        })
    }

    /// Who stands in a list, but for those of one neighbour.
    fn but(&self, list: usize, neighbour: Option<NodeIndex>) -> impl Iterator<Item = u32> {
        let range = self.begins[list] as usize..self.begins[list + 1] as usize;
        let entries = self.members[range.clone()].iter().zip(&self.neighbours[range]);
        entries.filter(move |(_, of)| **of != neighbour).map(|(member, _)| *member)
    }
}

/// The greatest share of a list, and the greatest of another neighbour's: so the greatest without any
/// one neighbour is known, however many ask for it.
struct Most {
    share: f32,
    of: Option<NodeIndex>,
    others: f32,
}

impl Most {
    fn of(members: &[Member], side: &Side, list: usize) -> Most {
        let mut most = Most { share: 0.0, of: None, others: 0.0 };
        for member in side.but(list, None) {
            let Member { share, node, .. } = members[member as usize];
            if most.of == Some(node) {
                most.share = most.share.max(share);
            } else if share > most.share {
                most = Most { share, of: Some(node), others: most.share };
            } else {
                most.others = most.others.max(share);
            }
        }
        most
    }

    fn but(&self, neighbour: Option<NodeIndex>) -> f32 {
        if self.of == neighbour { self.others } else { self.share }
    }
}

/// What a walk has seen of a list.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Seen {
    Nothing,
    AllBut(Option<NodeIndex>),
    All,
}

/// A walk through the crowd that meets each member once or twice, however many ways lead there.
pub(super) struct Walk<'a> {
    crowd: &'a Crowd,
    into: Vec<Seen>,
    out: Vec<Seen>,
}

impl<'a> Walk<'a> {
    pub(super) fn new(crowd: &'a Crowd) -> Walk<'a> {
        let lists = crowd.into.begins.len() - 1;
        Walk { crowd, into: vec![Seen::Nothing; lists], out: vec![Seen::Nothing; lists] }
    }

    /// Meets those that may wait for this one, but for those that were met before.
    pub(super) fn back(&mut self, member: u32, meet: impl FnMut(u32)) {
        let member = self.crowd.member(member);
        let lists = Side::lists(member.behind, member.rises);
        step(&self.crowd.into, &mut self.into, lists, member.far, meet);
    }

    /// Meets those that this one may wait for, but for those that were met before.
    pub(super) fn on(&mut self, member: u32, meet: impl FnMut(u32)) {
        let member = self.crowd.member(member);
        let lists = Side::lists(member.ahead, member.falls);
        step(&self.crowd.out, &mut self.out, lists, Some(member.node), meet);
    }
}

fn step(
    side: &Side,
    seen: &mut [Seen],
    lists: std::ops::Range<usize>,
    neighbour: Option<NodeIndex>,
    mut meet: impl FnMut(u32),
) {
    for list in lists {
        seen[list] = match seen[list] {
            Seen::Nothing => Seen::AllBut(neighbour),
            Seen::AllBut(other) if other != neighbour => Seen::All,
            _ => continue,
        };
        side.but(list, neighbour).for_each(&mut meet);
    }
}
