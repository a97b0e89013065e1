//! Members (HCAs or hosts) that lose their last path to others.
//!
//! A pair of members that loses its last path is a loss for both. The one that keeps fewer others is named, or both if
//! they keep the same number. When a cable cuts one host off from 999, all 1,000 lose paths, and the one is named.

use std::collections::HashMap;

use crate::islands::Membership;

/// Which members belong to the same host: paths between them do not count.
pub(crate) struct Families {
    /// By member; a switch is not a member and has no host.
    host_of: Vec<Option<usize>>,
    /// By host.
    members: Vec<Vec<usize>>,
}

impl Families {
    /// `host_of`: the host of each member.
    pub(crate) fn new(host_of: Vec<Option<usize>>, host_count: usize) -> Self {
        let mut members = vec![Vec::new(); host_count];
        for (member, host) in host_of.iter().enumerate() {
            if let Some(host) = *host {
                members[host].push(member);
            }
        }
        Families { host_of, members }
    }

    /// The member and the others of its host.
    pub(crate) fn of(&self, member: usize) -> &[usize] {
        self.host_of[member].map_or(&[], |host| &self.members[host])
    }
}

/// The members of other hosts to which a member has a path.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Reach {
    /// Those to which the repairs take the last path.
    pub(crate) lost: usize,
    /// Those to which a path is left.
    pub(crate) kept: usize,
}

/// What members lose.
pub(crate) struct Cuts {
    /// By member.
    pub(crate) reach: Vec<Reach>,
    /// Members to name, in ascending order. Empty if and only if no member loses anything.
    pub(crate) named: Vec<usize>,
}

impl Cuts {
    /// Members with the same islands before and after are one class, and for each class the members of its islands are
    /// visited twice. A fabric has few islands, so there are few classes.
    pub(crate) fn find(before: &Membership, after: &Membership, families: &Families) -> Self {
        let mut classes: HashMap<[&[usize]; 2], Vec<usize>> = HashMap::new();
        for member in 0..before.member_count() {
            let islands = before.islands_of(member);
            if !islands.is_empty() {
                classes.entry([islands, after.islands_of(member)]).or_default().push(member);
            }
        }
        let mut reach = vec![Reach::default(); before.member_count()];
        let mut marks = Marks { before: Marked::new(before), after: Marked::new(after) };
        for (islands, class) in &classes {
            marks.set(*islands);
            for &member in class {
                reach[member] = marks.reach(families.of(member));
            }
        }
        let mut named = Vec::new();
        for (islands, class) in &classes {
            if class.iter().all(|&member| reach[member].lost == 0) {
                continue;
            }
            marks.set(*islands);
            let richest =
                TwoHosts::richest(marks.lost().map(|member| Keeper {
                    host: families.host_of[member],
                    kept: reach[member].kept,
                }));
            named.extend(class.iter().copied().filter(|&member| {
                let other = richest.other_than(families.host_of[member]);
                other.is_some_and(|kept| kept >= reach[member].kept)
            }));
        }
        named.sort_unstable();
        Cuts { reach, named }
    }
}

/// The members that one class reaches, before and after.
struct Marks<'a> {
    before: Marked<'a>,
    after: Marked<'a>,
}

impl Marks<'_> {
    fn set(&mut self, [before, after]: [&[usize]; 2]) {
        self.before.set(before);
        self.after.set(after);
    }

    fn reach(&self, family: &[usize]) -> Reach {
        let kept = self.after.outside(family);
        // Repairs only remove links, so what is reached after was reached before.
        Reach { lost: self.before.outside(family).saturating_sub(kept), kept }
    }

    /// The members that only were reached before, also of the same host.
    fn lost(&self) -> impl Iterator<Item = usize> {
        self.before.list.iter().copied().filter(|&member| !self.after.has[member])
    }
}

/// The members of some islands.
struct Marked<'a> {
    membership: &'a Membership,
    has: Vec<bool>,
    list: Vec<usize>,
}

impl<'a> Marked<'a> {
    fn new(membership: &'a Membership) -> Self {
        Marked { membership, has: vec![false; membership.member_count()], list: Vec::new() }
    }

    fn set(&mut self, islands: &[usize]) {
        for member in self.list.drain(..) {
            self.has[member] = false;
        }
        for &island in islands {
            for &member in self.membership.members_of(island) {
                if !self.has[member] {
                    self.has[member] = true;
                    self.list.push(member);
                }
            }
        }
    }

    /// How many are not of this host.
    fn outside(&self, family: &[usize]) -> usize {
        self.list.len() - family.iter().filter(|&&member| self.has[member]).count()
    }
}

/// How many others a member of this host keeps.
#[derive(Clone, Copy)]
struct Keeper {
    host: Option<usize>,
    kept: usize,
}

/// The member that keeps most, and the one that keeps most of all other hosts.
#[derive(Default)]
struct TwoHosts {
    first: Option<Keeper>,
    second: Option<Keeper>,
}

impl TwoHosts {
    fn richest(keepers: impl Iterator<Item = Keeper>) -> Self {
        let mut two = TwoHosts::default();
        for keeper in keepers {
            let more_than = |it: Option<Keeper>| it.is_none_or(|it| keeper.kept > it.kept);
            if two.first.is_some_and(|first| first.host == keeper.host) {
                if more_than(two.first) {
                    two.first = Some(keeper);
                }
            } else if more_than(two.first) {
                two.second = two.first.replace(keeper);
            } else if more_than(two.second) {
                two.second = Some(keeper);
            }
        }
        two
    }

    fn other_than(&self, host: Option<usize>) -> Option<usize> {
        let keeper = if self.first?.host == host { self.second } else { self.first };
        keeper.map(|it| it.kept)
    }
}
