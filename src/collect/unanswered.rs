//! Ports with a link whose neighbor answers no subnet management: whether an M_Key is the likely
//! cause, and which of them the next discovery asks again.
//!
//! A node that refuses counts an M_Key violation for each Get that it drops, may send a trap to the
//! subnet manager, and starts the lease after which it drops its protection (IBTA 1.4, 14.2.4). So
//! those that did not answer the last time share a small budget, whether an M_Key is the cause or
//! their agent hangs. Neighbors that were not asked before are asked at once.

use std::collections::{HashMap, HashSet};

use crate::fabric::Moment;
use crate::fabric::status::state;
use crate::fabric::topology::End;
use crate::mad::m_key::MKeys;

use super::discovery::Found;

/// Milliseconds for each SMP to those that did not answer the last time, all together.
const EACH: u128 = 4_000;
/// Milliseconds that can be saved up: 60 SMPs, for twenty neighbors with the usual three tries. With
/// fewer, each discovery asks all.
const BURST: u128 = 60 * EACH;

/// What is remembered of them from discovery to discovery.
#[derive(Debug)]
pub struct Unanswered {
    /// When each was last asked.
    asked: HashMap<End, Moment>,
    budget: u128,
    filled: Moment,
}

impl Default for Unanswered {
    fn default() -> Self {
        Unanswered { asked: HashMap::new(), budget: BURST, filled: Moment::default() }
    }
}

/// Why an M_Key is likely to keep a fabric from answering.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Suspicion {
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
        known.split_off(now_asked).into_iter().map(|(_, end)| end).collect()
    }

    /// Updates the list with what a discovery found. Returns those that are new.
    pub fn settle(&mut self, found: &Found, now: Moment) -> Vec<End> {
        let mut new = Vec::new();
        let mut asked = HashMap::new();
        let rested: HashSet<End> = found.rested.iter().copied().collect();
        let linked: HashSet<End> = found.fabric.links.iter().flat_map(|(a, b)| [*a, *b]).collect();
        let tried = self.asked.keys().filter(|end| !rested.contains(end));
        let (tried, recovered) = tried.fold((0_usize, 0_usize), |(tried, recovered), end| {
            (tried + 1, recovered + usize::from(linked.contains(end)))
        });
        for &end in &found.unanswered {
            if !self.asked.contains_key(&end) {
                new.push(end);
            }
            asked.insert(end, now);
        }
        // Where most of those whose turn it was answer again, so may all: the next discovery asks them.
        if recovered == 0 || recovered * 2 < tried {
            for end in &found.rested {
                asked.insert(*end, self.asked.get(end).copied().unwrap_or(now));
            }
        }
        self.asked = asked;
        new
    }
}

/// Whether an M_Key is the likely cause of what a discovery did not find.
pub fn suspicion(found: &Found, keys: &MKeys) -> Option<Suspicion> {
    if found.unanswered.is_empty() && found.rested.is_empty() {
        return None;
    }
    let own = found.own_port?;
    let alone = found.fabric.nodes.len() == 1;
    // With keys most nodes answer: one that does not is as likely to hang.
    if own.m_key_protect >= 2 && (alone || keys.is_empty()) {
        return Some(Suspicion::OwnPort(own.m_key_protect));
    }
    // A link that no subnet manager has configured yet is not active: then it may be anything.
    (alone && own.state == state::ACTIVE).then_some(Suspicion::FirstHop)
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::fabric::Guid;
    use crate::fabric::assembly::FoundFabric;

    fn found(unanswered: Vec<End>, rested: Vec<End>) -> Found {
        Found {
            fabric: FoundFabric::default(),
            state_changes: HashSet::new(),
            failures: 0,
            unanswered,
            rested,
            own_port: None,
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
