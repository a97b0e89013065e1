//! What a thing was from scrape to scrape. The same thing may be seen by several exporters, and
//! stored by several Prometheis: it is told from the one that saw most, and from others where that
//! one has nothing.

use std::collections::BTreeMap;

use fabric_history::model::{Step, time};

use super::client::{Labels, Run};

/// How many intervals without a sample are a gap.
const GAP: f64 = 2.5;

/// What something was at a time.
pub(super) type Timeline<S> = Vec<(u64, S)>;

/// Who saw something: the labels that are left.
type Observer<'a> = Vec<(&'a str, &'a str)>;

/// Brings series together: those with the same key are about the same thing. Labels in `own` say
/// what it is like; what is left then is who saw it. `state` makes one state of a scrape's series.
pub(super) fn timelines<K: Ord, S: Clone>(
    runs: &[Run],
    key: impl Fn(&Labels) -> Option<K>,
    own: &[&str],
    state: impl Fn(&[(&Labels, f64)]) -> Option<S>,
) -> BTreeMap<K, Timeline<S>> {
    let mut seen = BTreeMap::new();
    for (key, observers) in by_observer(runs, key, own) {
        let of = observers.into_iter().map(|runs| {
            let mut scrapes: BTreeMap<u64, Vec<(&Labels, f64)>> = BTreeMap::new();
            for run in runs {
                for (at, value) in &run.points {
                    scrapes.entry(*at).or_default().push((&run.labels, *value));
                }
            }
            let states = scrapes.into_iter();
            states.filter_map(|(at, samples)| Some((at, state(&samples)?))).collect()
        });
        seen.insert(key, merged(of.collect()));
    }
    seen
}

/// A timeline of numbers.
pub(super) fn numbers<K: Ord>(
    runs: &[Run],
    key: impl Fn(&Labels) -> Option<K>,
    own: &[&str],
) -> BTreeMap<K, Timeline<f64>> {
    timelines(runs, key, own, |samples| samples.iter().map(|(_, value)| *value).reduce(f64::max))
}

/// What counters grew by from scrape to scrape. One that falls begins anew. Each exporter has totals
/// of its own, so differences are within one; others add what was before its first and after its
/// last.
pub(super) fn growth<K: Ord>(
    runs: &[Run],
    key: impl Fn(&Labels) -> Option<K>,
) -> BTreeMap<K, Vec<Step>> {
    let mut grown = BTreeMap::new();
    for (key, observers) in by_observer(runs, key, &[]) {
        let mut runs: Vec<&Run> = observers.into_iter().flatten().collect();
        runs.sort_by_key(|run| std::cmp::Reverse(run.points.len()));
        let mut steps: Vec<Step> = Vec::new();
        let mut told: Option<(u64, u64)> = None;
        for run in runs {
            let (Some((first, _)), Some((last, _))) = (run.points.first(), run.points.last())
            else {
                continue;
            };
            let is_told =
                |from: u64, to: u64| told.is_some_and(|(first, last)| to > first && from < last);
            for pair in run.points.windows(2) {
                let [(from, was), (to, is)] = pair else { continue };
                let by = if is < was { *is } else { is - was };
                #[expect(clippy::cast_sign_loss, reason = "a total is not negative")]
                let by = by.max(0.0).round() as u64;
                if by > 0 && !is_told(*from, *to) {
                    let (from, to) = (time::of_millis(*from), time::of_millis(*to));
                    steps.push(Step { from, to, by });
                }
            }
            told = Some(told.map_or((*first, *last), |(a, b)| (a.min(*first), b.max(*last))));
        }
        steps.sort_by_key(|step| step.to);
        grown.insert(key, steps);
    }
    grown
}

/// Groups series by what they are about, and those by who saw it.
fn by_observer<'a, K: Ord>(
    runs: &'a [Run],
    key: impl Fn(&Labels) -> Option<K>,
    own: &[&str],
) -> BTreeMap<K, Vec<Vec<&'a Run>>> {
    let mut by: BTreeMap<K, BTreeMap<Observer<'a>, Vec<&'a Run>>> = BTreeMap::new();
    for run in runs {
        let Some(key) = key(&run.labels) else { continue };
        let labels = run.labels.iter().map(|(name, value)| (name.as_str(), value.as_str()));
        let observer = labels.filter(|(name, _)| !own.contains(name)).collect();
        by.entry(key).or_default().entry(observer).or_default().push(run);
    }
    by.into_iter().map(|(key, observers)| (key, observers.into_values().collect())).collect()
}

/// The timeline with most in it, and of others what lies in its gaps.
fn merged<S: Clone>(mut seen: Vec<Timeline<S>>) -> Timeline<S> {
    seen.sort_by_key(|timeline| std::cmp::Reverse(timeline.len()));
    let mut seen = seen.into_iter();
    let mut all = seen.next().unwrap_or_default();
    for other in seen {
        let times: Vec<u64> = all.iter().map(|(at, _)| *at).collect();
        let (gap, interval) = (gap_of(&times), interval_of(&times).unwrap_or(0));
        let lies_in_gap = |at: u64| {
            let next = times.partition_point(|have| *have < at);
            let before = next.checked_sub(1).and_then(|place| times.get(place));
            let after = times.get(next);
            let is_gap = match (before, after) {
                (Some(before), Some(after)) => after - before > gap,
                (Some(before), None) => at - before > gap,
                (None, Some(after)) => after - at > gap,
                (None, None) => true,
            };
            // What another saw a moment later is the same.
            let is_apart = before.is_none_or(|before| at - before >= interval)
                && after.is_none_or(|after| after - at >= interval);
            is_gap && is_apart
        };
        let more: Timeline<S> = other.into_iter().filter(|(at, _)| lies_in_gap(*at)).collect();
        all.extend(more);
        all.sort_by_key(|(at, _)| *at);
    }
    all
}

/// The median time from one to the next, in milliseconds.
pub(super) fn interval_of(times: &[u64]) -> Option<u64> {
    let mut rests: Vec<u64> =
        times.windows(2).map(|pair| pair[1].saturating_sub(pair[0])).collect();
    rests.sort_unstable();
    rests.get(rests.len() / 2).copied()
}

/// What is longer is a gap.
pub(super) fn gap_of(times: &[u64]) -> u64 {
    // With a single one nothing is known of the rest: as long as a Prometheus takes a sample for
    // the latest.
    #[expect(clippy::cast_sign_loss, reason = "an interval is not negative")]
    interval_of(times).map_or(300_000, |interval| (interval as f64 * GAP) as u64)
}

/// From one state to the next: when, what was, and what is.
pub(super) fn changes<S: PartialEq>(timeline: &Timeline<S>) -> impl Iterator<Item = (u64, &S, &S)> {
    timeline.windows(2).filter_map(|pair| match pair {
        [(_, was), (at, is)] if was != is => Some((*at, was, is)),
        _ => None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run(instance: &str, points: &[(u64, f64)]) -> Run {
        let labels = [("link", "a"), ("instance", instance)];
        let labels = labels.map(|(name, value)| (name.to_owned(), value.to_owned()));
        Run { labels: labels.into(), points: points.to_vec() }
    }

    fn link(labels: &Labels) -> Option<String> {
        labels.get("link").cloned()
    }

    #[test]
    fn the_same_thing_is_told_once() {
        let first = run("a", &[(0, 1.0), (10, 1.0), (20, 0.0), (30, 0.0), (100, 0.0)]);
        // Sees it a little later; and alone what was meanwhile.
        let other = run("b", &[(5, 1.0), (15, 1.0), (25, 0.0), (60, 1.0)]);
        let told = numbers(&[other, first], link, &[]);
        let seen: Vec<_> = changes(&told["a"]).map(|(at, was, is)| (at, *was, *is)).collect();
        assert_eq!(seen, [(20, 1.0, 0.0), (60, 0.0, 1.0), (100, 1.0, 0.0)]);
    }

    #[test]
    fn what_counters_grew_by() {
        let first = run("a", &[(0, 5.0), (10, 5.0), (20, 9.0), (30, 2.0), (40, 2.0)]);
        let other = run("b", &[(15, 100.0), (25, 104.0), (45, 105.0), (55, 107.0)]);
        let told = growth(&[first, other], link);
        let steps: Vec<_> = told["a"].iter().map(|step| (time::millis(step.to), step.by)).collect();
        assert_eq!(steps, [(20, 4), (30, 2), (55, 2)]);
        assert!(growth(&[run("a", &[(0, 7.0)])], link)["a"].is_empty());
        assert!(growth(&[run("a", &[(0, 7.0)])], |_| None::<u8>).is_empty());
    }

    #[test]
    fn gaps_are_longer_than_two_intervals_and_a_half() {
        assert_eq!(interval_of(&[0, 10, 20, 60]), Some(10));
        assert_eq!((gap_of(&[0, 10, 20, 60]), gap_of(&[7])), (25, 300_000));
    }
}
