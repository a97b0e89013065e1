//! Links that fail in one cage of a switch: they have the module in common that is plugged there.

use std::collections::HashMap;
use std::time::SystemTime;

use crate::EventKind;
use crate::incidents::cage::Cage;
use crate::incidents::group::{Group, GroupKind};
use crate::incidents::grouper::{Grouper, NEAR};

impl Group {
    /// The cage that all of its links have in common, if it has several.
    pub fn common_cage(&self) -> Option<&Cage> {
        let mut links = self.links.values();
        let first =
            links.next().filter(|_| self.kind == GroupKind::Link && self.links.len() > 1)?;
        let is_common = |cage: &&Cage| {
            self.links.values().all(|link| link.cages.iter().any(|other| other.is_same(cage)))
        };
        first.cages.iter().find(is_common)
    }

    /// Whether all of its links end in a cage.
    fn is_in(&self, guid: &str, number: u64) -> bool {
        let is_its = |cage: &Cage| cage.guid == guid && cage.number == number;
        self.links.values().all(|link| link.cages.iter().any(is_its))
    }

    /// Whether it is the failure of a link, and not the effect of something else.
    fn is_link_failure(&self) -> bool {
        let went_down = self.count(EventKind::Flap) + self.count(EventKind::LinkDown) > 0;
        self.kind == GroupKind::Link
            && self.expected.is_empty()
            && (self.has_verdict() || went_down)
    }

    /// Whether both last at the same time, or nearly.
    fn overlaps(&self, other: &Group) -> bool {
        let began_within = |one: &Group, other: &Group| {
            let ended = |at: SystemTime| at + NEAR >= one.began;
            other.ended().is_none_or(ended)
        };
        began_within(self, other) && began_within(other, self)
    }
}

impl Grouper {
    /// Makes one group of the links of a cage that fail at the same time.
    pub fn merge_cages(&mut self) {
        let failures = |group: &&Group| group.is_link_failure() && group.links.len() == 1;
        let mut of_cage: HashMap<(String, u64), Vec<usize>> = HashMap::new();
        for (index, group) in self.groups.iter().enumerate() {
            let Some(group) = group.as_ref().filter(failures) else { continue };
            for cage in group.links.values().flat_map(|link| &link.cages) {
                of_cage.entry((cage.guid.clone(), cage.number)).or_default().push(index);
            }
        }
        let mut cages: Vec<_> = of_cage.into_iter().filter(|(_, of)| of.len() > 1).collect();
        cages.sort_by(|(a, of_a), (b, of_b)| (of_a, a).cmp(&(of_b, b)));
        for ((guid, number), indexes) in cages {
            for (nth, &into) in indexes.iter().enumerate() {
                for &other in &indexes[nth + 1..] {
                    self.merge_if_one([into, other], |group| group.is_in(&guid, number));
                }
            }
        }
    }

    /// Adds a group to another one, if they have different links, all in one cage, and last at the same time. Either
    /// may have links of another cage by now.
    fn merge_if_one(&mut self, [into, other]: [usize; 2], is_in_cage: impl Fn(&Group) -> bool) {
        let [Some(first), Some(second)] = [into, other].map(|index| self.groups[index].as_ref())
        else {
            return;
        };
        let has_others = second.links.keys().all(|link| !first.links.contains_key(link));
        if has_others
            && is_in_cage(first)
            && is_in_cage(second)
            && first.overlaps(second)
            && let Some(second) = self.groups[other].take()
            && let Some(first) = &mut self.groups[into]
        {
            first.absorb(second);
        }
    }
}
