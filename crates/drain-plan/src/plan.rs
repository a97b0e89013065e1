//! Repairs in as few maintenance windows as possible.

use std::cmp::Reverse;
use std::collections::BTreeSet;

use crate::assessment::{Assessment, Share};
use crate::baseline::Baseline;
use crate::net::{HostId, Net, Repair, UnknownPart};
use crate::windows::{EXACT_REPAIRS, first_fit, smallest_number};

/// Repairs that are safe together.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MaintenanceWindow {
    /// In the order in which they were given; at least one.
    pub repairs: Vec<Repair>,
    /// What the fabric loses meanwhile.
    pub assessment: Assessment,
}

/// A repair that is not safe, even alone.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnsafeRepair {
    /// It is in no window.
    pub repair: Repair,
    /// Why: the hosts that lose their last path, or the worst leaf.
    pub assessment: Assessment,
}

/// What is known of the number of windows of a plan.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WindowCount {
    /// The repairs cannot be made in fewer windows.
    Smallest,
    /// At most this number of windows is needed: there may be a plan with fewer.
    UpperBound,
}

/// Repairs in maintenance windows. All windows are safe, in any order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Plan {
    /// Each repair that is safe alone is in one of them.
    pub windows: Vec<MaintenanceWindow>,
    /// The other repairs, in the order in which they were given.
    pub unsafe_repairs: Vec<UnsafeRepair>,
    /// Whether fewer windows might suffice.
    pub window_count: WindowCount,
}

/// Finds the smallest number of maintenance windows in which no host loses its last path that is not drained, and each
/// leaf keeps at least `min_capacity`. A repair that is given twice counts once.
///
/// The number is the smallest if at most [`EXACT_REPAIRS`] repairs are safe alone, or if one window suffices. Otherwise
/// each repair is added to the first window that stays safe, repairs with most links first, and the number is an upper
/// bound.
///
/// Fails if a repair or a drained host is not in the net.
///
/// Takes the time of up to 1,024 assessments for the smallest number, but usually of some dozens: what contains an
/// unsafe set is unsafe, and what is contained in a safe one is safe. For an upper bound, it takes the time of an
/// assessment for each repair and window. Only those leaves are looked at that keep too little if all repairs are made
/// together.
pub fn plan(
    net: &Net,
    repairs: &[Repair],
    drained: &BTreeSet<HostId>,
    min_capacity: Share,
) -> Result<Plan, UnknownPart> {
    let baseline = Baseline::new(net, drained)?;
    let mut given = Vec::new();
    let mut seen = BTreeSet::new();
    for &repair in repairs {
        net.check_repair(repair)?;
        if seen.insert(repair) {
            given.push(repair);
        }
    }
    let mut judge = Judge::new(&baseline, &given, min_capacity);
    let (single, refused): (Vec<Repair>, Vec<Repair>) =
        given.into_iter().partition(|&repair| judge.is_safe(&[repair]));
    let unsafe_repairs = refused
        .into_iter()
        .map(|repair| UnsafeRepair { repair, assessment: baseline.assess(&[repair]) })
        .collect();
    let mut judge = Judge::new(&baseline, &single, min_capacity);
    let of_items = |items: &[usize]| items.iter().map(|&item| single[item]).collect::<Vec<_>>();
    let is_exact = single.len() <= EXACT_REPAIRS;
    let windows = if is_exact {
        smallest_number(single.len(), |items| judge.is_safe(&of_items(items)))
    } else {
        let mut order: Vec<usize> = (0..single.len()).collect();
        order.sort_by_key(|&item| Reverse(link_count(net, single[item])));
        first_fit(order, |items| judge.is_safe(&of_items(items)))
    };
    let window_count = if is_exact || windows.len() <= 1 {
        WindowCount::Smallest
    } else {
        WindowCount::UpperBound
    };
    let windows = windows.iter().map(|items| {
        let repairs = of_items(items);
        MaintenanceWindow { assessment: baseline.assess(&repairs), repairs }
    });
    Ok(Plan { windows: windows.collect(), unsafe_repairs, window_count })
}

fn link_count(net: &Net, repair: Repair) -> usize {
    match repair {
        Repair::Link(_) => 1,
        Repair::Node(node) => net.links_of(node).len(),
    }
}

/// Says which of some repairs are safe together.
struct Judge<'a> {
    baseline: &'a Baseline<'a>,
    min_capacity: Share,
    /// Leaves that keep too little during all repairs together. Those that keep enough keep it during some of them. The
    /// leaf that kept too little last time is the first: it is likely to do so again.
    leaves: Vec<usize>,
    /// Whether all repairs together cut a host; otherwise some of them do not.
    may_cut: bool,
}

impl<'a> Judge<'a> {
    fn new(baseline: &'a Baseline<'a>, all: &[Repair], min_capacity: Share) -> Self {
        Judge {
            baseline,
            min_capacity,
            leaves: baseline.leaves_below(all, min_capacity),
            may_cut: baseline.cuts_hosts(all),
        }
    }

    fn is_safe(&mut self, repairs: &[Repair]) -> bool {
        if let Some(leaf) = self.baseline.first_below(repairs, &self.leaves, self.min_capacity) {
            if let Some(position) = self.leaves.iter().position(|&it| it == leaf) {
                self.leaves.swap(0, position);
            }
            return false;
        }
        !(self.may_cut && self.baseline.cuts_hosts(repairs))
    }
}
