//! Repairs in as few maintenance windows as possible.

use std::cmp::Reverse;
use std::collections::BTreeSet;

use crate::assessment::{Assessment, Share};
use crate::baseline::Baseline;
use crate::net::{HostId, Net, Repair, UnknownPart};
use crate::outage::Outage;
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
/// The number is the smallest if at most [`EXACT_REPAIRS`] repairs are safe alone and take anything, or if it is at most
/// two. Otherwise each repair is added to the first window that stays safe, repairs with most links first, and the number
/// is an upper bound. Repairs that take nothing, such as those of links that are down, are in the first window.
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
    Baseline::new(net, drained)?.plan(repairs, min_capacity)
}

impl Baseline<'_> {
    /// See [`plan`].
    pub fn plan(&self, repairs: &[Repair], min_capacity: Share) -> Result<Plan, UnknownPart> {
        let net = self.net;
        let mut given = Vec::new();
        let mut seen = BTreeSet::new();
        for &repair in repairs {
            net.check_repair(repair)?;
            if seen.insert(repair) {
                given.push(repair);
            }
        }
        let mut judge = Judge::new(self, &given, min_capacity);
        let (single, refused): (Vec<Repair>, Vec<Repair>) =
            given.into_iter().partition(|&repair| judge.is_safe(&[repair]));
        let unsafe_repairs = refused
            .into_iter()
            .map(|repair| UnsafeRepair { repair, assessment: self.losses(&[repair]) })
            .collect();
        // By index in `single`: those that take nothing are safe with any others, and need no search.
        let takes_nothing = |&item: &usize| Outage::of(net, [single[item]]).links().is_empty();
        let (idle, busy): (Vec<usize>, Vec<usize>) =
            (0..single.len()).partition(|item| takes_nothing(item));
        let of_items = |items: &[usize]| items.iter().map(|&item| single[item]).collect::<Vec<_>>();
        let mut judge = Judge::new(self, &of_items(&busy), min_capacity);
        let of_busy =
            |places: &[usize]| places.iter().map(|&place| busy[place]).collect::<Vec<_>>();
        let is_exact = busy.len() <= EXACT_REPAIRS;
        let windows = if is_exact {
            smallest_number(busy.len(), |places| judge.is_safe(&of_items(&of_busy(places))))
        } else {
            let mut order: Vec<usize> = (0..busy.len()).collect();
            order.sort_by_key(|&place| Reverse(link_count(net, single[busy[place]])));
            first_fit(order, |places| judge.is_safe(&of_items(&of_busy(places))))
        };
        let mut windows: Vec<Vec<usize>> = windows.iter().map(|places| of_busy(places)).collect();
        if !idle.is_empty() {
            if windows.is_empty() {
                windows.push(Vec::new());
            }
            windows[0].extend(idle);
            windows[0].sort_unstable();
        }
        // A second window is only begun if the first one with another repair is not safe; then all are not safe together.
        let window_count = if is_exact || windows.len() <= 2 {
            WindowCount::Smallest
        } else {
            WindowCount::UpperBound
        };
        let windows = windows.iter().map(|items| {
            let repairs = of_items(items);
            MaintenanceWindow { assessment: self.losses(&repairs), repairs }
        });
        Ok(Plan { windows: windows.collect(), unsafe_repairs, window_count })
    }
}

fn link_count(net: &Net, repair: Repair) -> usize {
    let of_nodes = net.powered_off(&repair).iter().map(|&node| net.links_of(node).len());
    net.pulled(&repair).len() + of_nodes.sum::<usize>()
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
