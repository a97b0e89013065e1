//! Ports with a link whose neighbor answers no subnet management: whether an M_Key is the likely
//! cause, and which of them the next discovery asks again.
//!
//! A node that refuses counts an M_Key violation for each Get that it drops, may send a trap to the
//! subnet manager, and starts the lease after which it drops its protection (IBTA 1.4, 14.2.4). So
//! those that did not answer the last time share a small budget, whether an M_Key is the cause or
//! their agent hangs. Neighbors that were not asked before are asked at once, unless a discovery finds
//! that most of them refuse.

use std::collections::{HashMap, HashSet};

use crate::topology::End;
use ib_mad::m_key::MKeys;
use ib_mad::node::NodeKind;
use ib_mad::port_state::state;
use ib_mad::{Guid, Moment};
use ib_umad::Failure;

use super::discovery::Found;

/// Milliseconds for each SMP to those that did not answer the last time, all together.
const EACH: u128 = 4_000;
/// Milliseconds that can be saved up: 60 SMPs, for twenty neighbors with the usual three tries. With
/// fewer, each discovery asks all.
const BURST: u128 = 60 * EACH;

/// What is remembered of them from discovery to discovery.
#[derive(Debug)]
pub struct Unanswered {
    /// When each was last asked; those that never were have the earliest moment.
    asked: HashMap<End, Moment>,
    /// Those that the discovery under way asks.
    tried: HashSet<End>,
    budget: u128,
    filled: Moment,
}

impl Default for Unanswered {
    fn default() -> Self {
        Unanswered {
            asked: HashMap::new(),
            tried: HashSet::new(),
            budget: BURST,
            filled: Moment::default(),
        }
    }
}

/// Why an M_Key is likely to keep a fabric from answering.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Suspicion {
    /// Our own port does not answer its own host. The kernel gives a directed-route SMP for the local
    /// node to the adapter without IB_MAD_IGNORE_MKEY (handle_outgoing_dr_smp in
    /// drivers/infiniband/core/mad.c), so a protected adapter may drop it.
    Home,
    /// Our own link is active, so its neighbor runs, but no node beyond it answers.
    FirstHop,
    /// Our own port has M_KeyProtectBits of this value, and no key is known, or the wrong one.
    OwnPort(u8),
}

impl Unanswered {
    /// How many there are.
    pub fn count(&self) -> usize {
        self.asked.len()
    }

    /// Those that a discovery that begins now is not to ask, where each may be asked `tries` times.
    pub fn rest(&mut self, now: Moment, tries: u8) -> HashSet<End> {
        self.budget = (self.budget + now.since(self.filled).as_millis()).min(BURST);
        self.filled = now;
        let each = EACH * u128::from(tries.max(1));
        let mut known: Vec<(Moment, End)> =
            self.asked.iter().map(|(end, asked)| (*asked, *end)).collect();
        // Who was asked longest ago comes first.
        known.sort_unstable();
        let affordable = usize::try_from(self.budget / each).unwrap_or(usize::MAX);
        let now_asked = affordable.min(known.len());
        self.budget -= now_asked as u128 * each;
        let rested = known.split_off(now_asked);
        self.tried = known.into_iter().map(|(_, end)| end).collect();
        rested.into_iter().map(|(_, end)| end).collect()
    }

    /// Updates the list with what a discovery found. Returns those that are new.
    pub fn settle(&mut self, found: &Found, now: Moment) -> Vec<End> {
        let mut new = Vec::new();
        let mut asked = HashMap::new();
        let linked: HashSet<End> = found.fabric.links.iter().flat_map(|(a, b)| [*a, *b]).collect();
        let (tried, recovered) = (self.tried.len(), self.tried.intersection(&linked).count());
        for &end in &found.unanswered {
            if !self.asked.contains_key(&end) {
                new.push(end);
            }
            asked.insert(end, now);
        }
        // Where most of those whose turn it was answer again, so may all: the next discovery asks them.
        if recovered == 0 || recovered * 2 < tried {
            for end in &found.rested {
                asked.insert(*end, self.asked.get(end).copied().unwrap_or_default());
            }
        }
        self.asked = asked;
        new
    }
}

/// Fewer neighbors that do not answer are no sign of an M_Key where other nodes answer: agents hang.
const FEW: usize = 3;

/// Whether more than a few neighbors do not answer, and more than half of those of a switch, or of all
/// channel adapters. M_KeyProtectBits of our own port say little by themselves: with M_Key 0 nothing is
/// checked (IBTA 1.4, 14.2.4.1).
fn is_widespread(found: &Found) -> bool {
    let silent = || found.unanswered.iter().chain(&found.rested);
    let mut of_node: HashMap<Guid, (usize, usize)> = HashMap::new();
    silent().for_each(|(node, _)| of_node.entry(*node).or_default().0 += 1);
    for (node, _) in found.fabric.links.iter().flat_map(|(a, b)| [a, b]) {
        of_node.entry(*node).or_default().1 += 1;
    }
    let home = found.fabric.home.map(|(node, _)| node);
    let adapters = found.fabric.nodes.iter().map(|node| &node.identity);
    let heard =
        adapters.filter(|node| node.kind == NodeKind::Ca && Some(node.guid) != home).count();
    silent().count() > FEW.max(heard)
        || of_node.values().any(|&(silent, heard)| silent > FEW.max(heard))
}

/// Whether an M_Key is the likely cause of what a discovery did not find.
pub fn suspicion(found: &Found, keys: &MKeys) -> Option<Suspicion> {
    if let Some(failure) = found.own_failure {
        return (failure == Failure::TimedOut).then_some(Suspicion::Home);
    }
    if found.unanswered.is_empty() && found.rested.is_empty() {
        return None;
    }
    let own = found.own_port?;
    let alone = found.fabric.nodes.len() == 1;
    // With keys most nodes answer: one that does not is as likely to hang.
    if own.m_key_protect >= 2 && (alone || keys.is_empty() && is_widespread(found)) {
        return Some(Suspicion::OwnPort(own.m_key_protect));
    }
    // A link that no subnet manager has configured yet is not active: then it may be anything.
    (alone && own.state == state::ACTIVE).then_some(Suspicion::FirstHop)
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::assembly::FoundFabric;
    use crate::collect::discovery::OwnPort;
    use crate::testing::found as node;

    fn found(unanswered: Vec<End>, rested: Vec<End>) -> Found {
        Found {
            fabric: FoundFabric::default(),
            state_changes: HashSet::new(),
            failures: 0,
            gaps: Vec::new(),
            unanswered,
            rested,
            own_port: None,
            own_failure: None,
        }
    }

    fn at(seconds: u64) -> Moment {
        Moment::default() + Duration::from_secs(seconds)
    }

    #[test]
    fn a_few_are_asked_each_time_and_many_take_turns() {
        let mut unanswered = Unanswered::default();
        let ends = |count: u64| (0..count).map(|guid| (Guid(guid), 1)).collect::<Vec<End>>();
        assert_eq!(unanswered.settle(&found(ends(20), vec![]), at(0)).len(), 20, "all are new");
        assert!(unanswered.rest(at(300), 3).is_empty(), "20 times 3 is the burst");
        assert!(unanswered.settle(&found(ends(20), vec![]), at(300)).is_empty());

        // 500: the budget is for 20 each 5 minutes, and within an hour 240 of them had a turn.
        let mut unanswered = Unanswered::default();
        unanswered.settle(&found(ends(500), vec![]), at(0));
        let mut turns: HashMap<End, u32> = HashMap::new();
        for discovery in 1..=12 {
            let now = at(discovery * 300);
            let rested = unanswered.rest(now, 3);
            assert_eq!(rested.len(), 480);
            let (rested, asked): (Vec<End>, Vec<End>) =
                ends(500).into_iter().partition(|end| rested.contains(end));
            for end in &asked {
                *turns.entry(*end).or_default() += 1;
            }
            unanswered.settle(&found(asked, rested), now);
        }
        assert_eq!((turns.len(), turns.values().max()), (240, Some(&1)));
        // Discoveries in a row do not get more.
        let asked: usize =
            (1..=30).map(|more| 500 - unanswered.rest(at(3600 + more * 10), 3).len()).sum();
        assert!(asked <= 20 + 25, "{asked}");
    }

    #[test]
    fn all_are_asked_at_once_when_those_whose_turn_it_was_answer_again() {
        let mut unanswered = Unanswered::default();
        let ends: Vec<End> = (0..500).map(|guid| (Guid(guid), 1)).collect();
        unanswered.settle(&found(ends.clone(), vec![]), at(0));
        let rested = unanswered.rest(at(300), 3);
        let (rested, asked): (Vec<End>, Vec<End>) =
            ends.into_iter().partition(|end| rested.contains(end));
        let mut answered = found(vec![], rested);
        answered.fabric.links = asked.iter().map(|end| (*end, (Guid(end.0.0 + 1000), 1))).collect();
        unanswered.settle(&answered, at(300));
        assert!(unanswered.rest(at(315), 3).is_empty());
    }

    /// A switch with GUID 1 and hosts from 100 on, of which the first is our own; what of the switch's
    /// ports does not answer; our own M_KeyProtectBits.
    fn protected(hosts: u64, unanswered: u64, level: u8) -> Found {
        let silent = (1..=unanswered).map(|port| (Guid(1), 200 + port as u8)).collect();
        let mut found = found(silent, vec![]);
        found.own_port = Some(OwnPort { state: state::ACTIVE, m_key_protect: level });
        found.fabric.home = Some((Guid(100), 1));
        found.fabric.nodes = (100..100 + hosts).map(|guid| node(guid, NodeKind::Ca, 1)).collect();
        if hosts > 1 {
            found.fabric.nodes.push(node(1, NodeKind::Switch, 64));
            let port = |host: u64| ((Guid(1), host as u8), (Guid(100 + host), 1));
            found.fabric.links = (0..hosts).map(port).collect();
        }
        found
    }

    #[test]
    fn a_few_silent_neighbors_are_no_m_key_where_other_nodes_answer() {
        let none = MKeys::default();
        let key = MKeys::parse("0x1234").unwrap();
        for (hosts, unanswered, level, keys, suspected) in [
            (24, 1, 2, &none, None),
            (24, 3, 3, &none, None),
            // Of a switch with 24 other neighbors that answer.
            (24, 20, 2, &none, None),
            (4, 3, 2, &none, None),
            (4, 20, 2, &none, Some(Suspicion::OwnPort(2))),
            (4, 20, 2, &key, None),
            (4, 20, 1, &none, None),
            (1, 1, 2, &none, Some(Suspicion::OwnPort(2))),
            (1, 1, 3, &key, Some(Suspicion::OwnPort(3))),
            (1, 1, 0, &none, Some(Suspicion::FirstHop)),
        ] {
            let found = protected(hosts, unanswered, level);
            assert_eq!(suspicion(&found, keys), suspected, "{hosts} {unanswered} {level}");
        }
        // All neighbors of one switch, among many adapters elsewhere.
        let mut leaf = protected(24, 5, 2);
        leaf.unanswered.iter_mut().for_each(|(node, _)| *node = Guid(2));
        assert_eq!(suspicion(&leaf, &none), Some(Suspicion::OwnPort(2)));
    }

    #[test]
    fn an_own_port_that_does_not_answer_is_likely_protected() {
        let none = MKeys::default();
        for (failure, suspected) in [
            (Failure::TimedOut, Some(Suspicion::Home)),
            (Failure::Busy, None),
            (Failure::Status(0x0c), None),
            (Failure::Unsent, None),
        ] {
            let mut found = found(vec![], vec![]);
            found.own_failure = Some(failure);
            assert_eq!(suspicion(&found, &none), suspected, "{failure}");
        }
    }

    #[test]
    fn one_that_answers_is_forgotten() {
        let mut unanswered = Unanswered::default();
        let end = (Guid(1), 1);
        unanswered.settle(&found(vec![end], vec![]), at(0));
        unanswered.settle(&found(vec![], vec![]), at(15));
        assert_eq!(unanswered.count(), 0);
        assert_eq!(unanswered.settle(&found(vec![end], vec![]), at(30)), [end], "it is new again");
    }
}
