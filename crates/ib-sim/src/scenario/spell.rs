//! Spells: what begins and ends, and what counts when several hold for the same thing.
//!
//! At each time that spell counts that began last of those that still last; when it ends, what
//! still lasts of the others shows again, and without any the thing is sound.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::time::Duration;

use super::Action;
use super::wiring::When;
use crate::net::{NodeId, PortId};

/// What can have but one state at a time.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Thing {
    /// The bits that come in at a port.
    Bits(PortId),
    /// The signal of a link, by the lower of its ends.
    Signal(PortId),
    /// The width and speed of a link, by the lower of its ends.
    Limit(PortId),
    /// What a host takes in at a port.
    Intake(PortId),
    /// Whether a node runs.
    Power(NodeId),
    /// How a node's agents answer.
    Agents(NodeId),
    /// The way to all agents.
    Way,
    /// The flows of an entry of the timeline.
    Flows(usize),
}

/// From when to when a thing is how.
#[derive(Clone, Debug)]
pub(super) struct Spell {
    pub(super) thing: Thing,
    pub(super) from: When,
    /// And by which entry; none: for good.
    pub(super) until: Option<When>,
    /// What makes it so.
    pub(super) begins: Action,
    /// What makes the thing sound.
    pub(super) ends: Action,
}

/// Ends the spells of links whose cables are moved, by the lower end of each: where a cable is
/// plugged in anew, nothing is left of what was before.
pub(super) fn cut(spells: &mut [Spell], cuts: &HashMap<PortId, Vec<When>>) {
    for spell in spells {
        let (Thing::Signal(end) | Thing::Limit(end)) = spell.thing else {
            continue;
        };
        let of_link = cuts.get(&end).map_or(&[][..], Vec::as_slice);
        let first = of_link.iter().find(|when| **when > spell.from);
        if let Some(first) = first.filter(|first| spell.until.is_none_or(|until| **first < until)) {
            spell.until = Some(*first);
        }
    }
}

/// The actions that make things go through these spells, each with its time and the order of the
/// entry that it comes of.
pub(super) fn actions(spells: Vec<Spell>) -> Vec<(When, Action)> {
    let mut of_things: BTreeMap<Thing, Vec<Spell>> = BTreeMap::new();
    for spell in spells {
        of_things.entry(spell.thing.clone()).or_default().push(spell);
    }
    of_things.into_values().flat_map(of_thing).collect()
}

fn of_thing(mut spells: Vec<Spell>) -> Vec<(When, Action)> {
    spells.sort_by_key(|spell| spell.from);
    // When anything begins or ends: which, by which entry, and whether it begins.
    let mut changes: BTreeMap<Duration, Vec<(usize, usize, bool)>> = BTreeMap::new();
    for (index, spell) in spells.iter().enumerate() {
        changes.entry(spell.from.0).or_default().push((index, spell.from.1, true));
        if let Some(until) = spell.until {
            changes.entry(until.0).or_default().push((index, until.1, false));
        }
    }
    let mut lasting: BTreeSet<usize> = BTreeSet::new();
    let mut now: Option<&Action> = None;
    let mut actions = Vec::new();
    for (at, changes) in changes {
        let mut order = 0;
        for (index, of_entry, begins) in changes {
            order = order.max(of_entry);
            // One of no length at all leaves nothing behind.
            if begins && spells[index].until.is_none_or(|until| until.0 > at) {
                lasting.insert(index);
            } else {
                lasting.remove(&index);
            }
        }
        // Spells are sorted by when they began.
        let counts = lasting.last().map(|index| &spells[*index]);
        let sound = spells.first().map(|spell| &spell.ends);
        let action = counts.map(|spell| &spell.begins).or(sound);
        if let Some(action) = action.filter(|action| now.or(sound) != Some(action)) {
            actions.push(((at, order), action.clone()));
            now = Some(action);
        }
    }
    actions
}

#[cfg(test)]
mod tests {
    use super::*;

    const PORT: PortId = PortId(3);

    /// Spells of one port, as (begin, end, ratio in tenths), and what comes of them.
    fn told(spells: &[(u64, Option<u64>, u8)]) -> Vec<(u64, String)> {
        let corrupt = |ratio| Action::Corrupt { into: PORT, ratio };
        let spells = spells
            .iter()
            .enumerate()
            .map(|(order, &(from, until, ratio))| Spell {
                thing: Thing::Bits(PORT),
                from: (Duration::from_secs(from), order),
                until: until.map(|until| (Duration::from_secs(until), order)),
                begins: corrupt(f64::from(ratio) / 10.0),
                ends: corrupt(0.0),
            })
            .collect();
        let ratio = |action| match action {
            Action::Corrupt { into: PORT, ratio } => format!("{:.0}", ratio * 10.0),
            other => panic!("{other:?}"),
        };
        actions(spells).into_iter().map(|((at, _), action)| (at.as_secs(), ratio(action))).collect()
    }

    #[test]
    fn what_began_last_counts_and_what_still_lasts_shows_again() {
        for (spells, expected) in [
            (&[(1, None, 5)][..], &[(1u64, 5u8)][..]),
            (&[(1, Some(4), 5)], &[(1, 5), (4, 0)]),
            // The first ends while the second counts: nothing heals before its time.
            (&[(1, Some(4), 5), (2, Some(9), 7)], &[(1, 5), (2, 7), (9, 0)]),
            // The second ends, and the first still lasts.
            (&[(1, None, 5), (2, Some(4), 7)], &[(1, 5), (2, 7), (4, 5)]),
            (&[(2, Some(4), 7), (1, None, 5)], &[(1, 5), (2, 7), (4, 5)]),
            // One after the other: there is no moment in between.
            (&[(1, Some(4), 5), (4, Some(6), 5)], &[(1, 5), (6, 0)]),
            (&[(4, Some(6), 7), (1, Some(4), 5)], &[(1, 5), (4, 7), (6, 0)]),
            // At the same time, the one further down in the file.
            (&[(1, Some(4), 5), (1, Some(3), 7)], &[(1, 7), (3, 5), (4, 0)]),
            (&[(1, Some(1), 5)], &[]),
        ] {
            let expected: Vec<_> =
                expected.iter().map(|(at, ratio)| (*at, ratio.to_string())).collect();
            assert_eq!(told(spells), expected, "{spells:?}");
        }
    }
}
