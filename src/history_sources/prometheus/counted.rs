//! What counters grew by: from the samples themselves, for `increase` guesses at a window's ends.

use std::collections::{BTreeMap, BTreeSet};

use fabric_history::file::tier::Tier;
use fabric_history::model::{Moved, Series, Step, Sum, counter_of, time};
use fabric_history::source::{AskError, Detail};
use ib_fabric::topology::End;
use ib_mad::Counter;
use ib_mad::counter::TABLE;

use super::client::Labels;
use super::look::{Look, end, fabric, fabric_end};
use super::matchers;
use super::names::{Names, peers};
use super::timeline::growth;

/// The errors of all ports: a counter a question, for labels are the same otherwise.
pub(super) fn moved(look: &Look<'_>) -> Result<Vec<Moved>, AskError> {
    let mut sums: BTreeMap<(String, End), Vec<Sum>> = BTreeMap::new();
    for counter in counters(Detail::Errors) {
        let runs = look.grown_ports(&name_of(counter), "")?;
        for (key, steps) in growth(&runs, fabric_end) {
            if let Some(sum) = sum_of(counter, &within(look, steps)) {
                sums.entry(key).or_default().push(sum);
            }
        }
    }
    let ends: BTreeSet<End> = sums.keys().map(|(_, end)| *end).collect();
    let names = Names::ask(look, ends.iter().map(|(guid, _)| *guid))?;
    let mut peers = peers(look, &ends)?;
    let told = sums.into_iter().map(|(key, sums)| Moved {
        port: names.port(&key.0, key.1),
        peer: peers.remove(&key),
        sums,
    });
    Ok(told.collect())
}

/// The course of some ports' counters.
pub(super) fn series(
    look: &Look<'_>,
    ends: &[End],
    detail: Detail,
) -> Result<Vec<Series>, AskError> {
    let ends: BTreeSet<End> = ends.iter().copied().collect();
    let metrics: Vec<&str> = counters(detail).map(|counter| counter.row().metric).collect();
    // A range of samples may be of several metrics.
    let of = format!("__name__=~\"infiniband_port_({})_total\"", metrics.join("|"));
    let at_once = look.at_once / metrics.len().max(1);
    let portions: Vec<Vec<String>> = (matchers::ports(&ends, at_once).into_iter())
        .map(|some| [vec![of.clone()], some].concat())
        .collect();
    let runs = look.runs("", &portions)?;
    let key = |labels: &Labels| {
        let name = labels.get("__name__")?.strip_prefix("infiniband_port_")?;
        let counter = counter_of(name.strip_suffix("_total")?)?;
        let end = end(labels).filter(|end| ends.contains(end))?;
        Some((fabric(labels)?, end, counter as usize))
    };
    let names = Names::ask(look, ends.iter().map(|(guid, _)| *guid))?;
    let told = growth(&runs, key).into_iter().filter_map(|((fabric, end, index), steps)| {
        let counter = Counter::all().find(|counter| *counter as usize == index)?;
        let steps = within(look, steps);
        (!steps.is_empty()).then(|| Series { port: names.port(&fabric, end), counter, steps })
    });
    Ok(told.collect())
}

/// The counters that are wanted.
fn counters(detail: Detail) -> impl Iterator<Item = Counter> {
    let is_wanted =
        move |counter: &Counter| detail == Detail::All || Tier::of(*counter) == Tier::Rare;
    TABLE.iter().map(|row| row.counter).filter(is_wanted)
}

fn name_of(counter: Counter) -> String {
    format!("infiniband_port_{}_total", counter.row().metric)
}

/// The steps that end in the window itself.
fn within(look: &Look<'_>, mut steps: Vec<Step>) -> Vec<Step> {
    steps.retain(|step| look.has(time::millis(step.to)));
    steps
}

fn sum_of(counter: Counter, steps: &[Step]) -> Option<Sum> {
    let (first, last) = (steps.first()?.to, steps.last()?.to);
    let by = steps.iter().fold(0u64, |sum, step| sum.saturating_add(step.by));
    Some(Sum { counter, by, first, last })
}
