//! Plans of random fabrics, compared with all ways to put repairs into windows.

use std::collections::{BTreeMap, BTreeSet};

use drain_plan::{EXACT_REPAIRS, LinkState, Plan, Repair, WindowCount, plan};

use crate::oracle::is_safe;
use crate::random::{Case, Random};

/// Which sets of repairs are safe by the oracle.
struct Sets<'a> {
    case: &'a Case,
    known: BTreeMap<Vec<Repair>, bool>,
}

impl<'a> Sets<'a> {
    fn new(case: &'a Case) -> Self {
        Sets { case, known: BTreeMap::new() }
    }

    fn is_safe(&mut self, repairs: &[Repair]) -> bool {
        let Case { net, drained, groups, min_capacity, .. } = self.case;
        let safe = || is_safe(net, repairs, groups, drained, *min_capacity);
        *self.known.entry(repairs.to_vec()).or_insert_with(safe)
    }

    /// The smallest number of safe windows, by trying all partitions: each repair joins each window, or a new one.
    fn smallest(&mut self, left: &[Repair], windows: &mut Vec<Vec<Repair>>) -> usize {
        let Some((&repair, left)) = left.split_first() else {
            let all_safe = windows.iter().all(|window| self.is_safe(window));
            return if all_safe { windows.len() } else { usize::MAX };
        };
        let mut smallest = usize::MAX;
        for index in 0..windows.len() {
            windows[index].push(repair);
            smallest = smallest.min(self.smallest(left, windows));
            windows[index].pop();
        }
        windows.push(vec![repair]);
        smallest = smallest.min(self.smallest(left, windows));
        windows.pop();
        smallest
    }
}

/// Each repair is in one safe window, or not safe alone. Returns those in windows.
fn valid(case: &Case, sets: &mut Sets<'_>, plan: &Plan) -> Vec<Repair> {
    let mut placed = BTreeSet::new();
    for window in &plan.windows {
        assert!(!window.repairs.is_empty() && sets.is_safe(&window.repairs), "{plan:#?} {case:#?}");
        assert!(window.assessment.is_safe(case.min_capacity));
        for &repair in &window.repairs {
            assert!(placed.insert(repair), "in two windows: {repair:?}");
        }
    }
    let not_safe: BTreeSet<Repair> = plan.unsafe_repairs.iter().map(|it| it.repair).collect();
    for &repair in case.repairs.iter().collect::<BTreeSet<_>>() {
        let alone = sets.is_safe(&[repair]);
        assert_eq!(placed.contains(&repair), alone, "{repair:?} {plan:#?} {case:#?}");
        assert_eq!(not_safe.contains(&repair), !alone, "{repair:?} {plan:#?} {case:#?}");
    }
    assert!(plan.unsafe_repairs.iter().all(|it| !it.assessment.is_safe(case.min_capacity)));
    placed.into_iter().collect()
}

fn planned(case: &Case) -> Plan {
    plan(&case.net, &case.repairs, &case.drained, case.min_capacity).unwrap()
}

#[test]
fn number_of_windows_is_the_smallest_of_all_partitions() {
    let mut random = Random::new(3);
    let mut by_number = BTreeMap::new();
    for number in 0..10_000 {
        let repairs = random.between(1, 8);
        let case = if random.percent(70) {
            Case::fat_tree(&mut random, repairs)
        } else {
            Case::any(&mut random, 6, 4, 12, repairs)
        };
        assert!(case.links.len() <= 20);
        let plan = planned(&case);
        let mut sets = Sets::new(&case);
        let placed = valid(&case, &mut sets, &plan);
        let smallest = sets.smallest(&placed, &mut Vec::new());
        assert_eq!(plan.windows.len(), smallest, "{number}: {plan:#?} {case:#?}");
        assert_eq!(plan.window_count, WindowCount::Smallest);
        *by_number.entry(smallest).or_insert(0) += 1;
    }
    // Otherwise the random fabrics would prove little.
    assert!(by_number[&1] > 300 && by_number[&2] > 300 && by_number[&3] > 5, "{by_number:?}");
}

#[test]
fn each_part_of_a_safe_set_is_safe() {
    let mut random = Random::new(4);
    let mut compared = 0;
    for _ in 0..3_000 {
        let case = Case::fat_tree(&mut random, 5);
        let mut sets = Sets::new(&case);
        for mask in 0..32_usize {
            let part = |mask: usize| {
                let bits =
                    case.repairs.iter().enumerate().filter(|(bit, _)| mask & (1 << bit) != 0);
                bits.map(|(_, &repair)| repair).collect::<Vec<_>>()
            };
            if sets.is_safe(&part(mask)) {
                for bit in (0..5).filter(|bit| mask & (1 << bit) != 0) {
                    assert!(sets.is_safe(&part(mask ^ (1 << bit))), "{mask:b} {bit} {case:#?}");
                    compared += 1;
                }
            }
        }
    }
    assert!(compared > 3_000, "{compared}");
}

#[test]
fn many_repairs_get_safe_windows_and_an_upper_bound() {
    let mut random = Random::new(5);
    let mut bounds = 0;
    for _ in 0..6_000 {
        let mut case = Case::fat_tree(&mut random, 0);
        case.repairs = case.links.iter().copied().map(Repair::Link).collect();
        let plan = planned(&case);
        let placed = valid(&case, &mut Sets::new(&case), &plan);
        let is_down = |it: &&Repair| matches!(it, Repair::Link(link) if case.net.links()[link.index()].state == LinkState::Down);
        let down = placed.iter().filter(is_down).count();
        let is_exact = placed.len() - down <= EXACT_REPAIRS || plan.windows.len() <= 2;
        let expected = if is_exact { WindowCount::Smallest } else { WindowCount::UpperBound };
        assert_eq!(plan.window_count, expected, "{plan:#?}");
        bounds += usize::from(!is_exact);
    }
    assert!(bounds > 50, "{bounds}");
}

#[test]
fn repair_that_is_given_twice_counts_once() {
    let mut random = Random::new(6);
    let mut case = Case::fat_tree(&mut random, 6);
    let once = planned(&case);
    case.repairs.extend(case.repairs.clone());
    assert_eq!(planned(&case), once);
}
