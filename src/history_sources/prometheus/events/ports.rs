//! What became of ports' counters.

use std::collections::{BTreeMap, BTreeSet};

use crate::history_sources::prometheus::client::Labels;
use crate::history_sources::prometheus::look::{Look, end, fabric_end};
use crate::history_sources::prometheus::matchers;
use crate::history_sources::prometheus::timeline::{growth, timelines};
use fabric_history::Kind;
use fabric_history::event::About;
use fabric_history::file::tier::Tier;
use fabric_history::model::{counter_of, time};
use fabric_history::source::AskError;
use ib_fabric::topology::End;
use ib_mad::{Counter, Guid};

use super::Event;
use super::came::came;

/// A node's ports fell together, if they did in the same scrape.
pub(super) fn resets(look: &Look<'_>, only: &str) -> Result<Vec<Event>, AskError> {
    let runs = look.grown_ports("infiniband_port_counter_resets_total", only)?;
    let mut fell: BTreeMap<(String, Guid, u64), Vec<End>> = BTreeMap::new();
    for ((fabric, end), steps) in growth(&runs, fabric_end) {
        for step in steps {
            fell.entry((fabric.clone(), end.0, time::millis(step.to))).or_default().push(end);
        }
    }
    let told = fell.into_iter().map(|((fabric, guid, at), ends)| {
        let (about, text) = match *ends {
            [end] => (end.into(), "counters fell".into()),
            _ => (About::Node(guid), format!("counters of {} ports fell", ends.len())),
        };
        Event::new(at, &fabric, Kind::CounterReset, about, text)
    });
    Ok(told.collect())
}

/// Counters have such a series from when on they are full.
pub(super) fn saturations(
    look: &Look<'_>,
    only: &str,
    begun: &BTreeMap<String, u64>,
) -> Result<Vec<Event>, AskError> {
    const SATURATED: &str = "infiniband_port_counter_saturated";
    let key = |labels: &Labels| {
        let counter = counter_of(labels.get("counter")?)?;
        // What grows all the time is full sooner or later, and nobody can do anything about it.
        let is_rare = Tier::of(counter) == Tier::Rare;
        is_rare.then_some((fabric_end(labels)?, counter as usize))
    };
    let came = came(look, SATURATED, only, &["fabric", "guid", "port", "counter"], begun)?;
    let came: BTreeSet<_> = came.iter().filter_map(|sample| key(&sample.labels)).collect();
    let ends = came.iter().map(|((_, end), _)| *end).collect();
    let runs = look.runs(SATURATED, &matchers::ports(&ends, look.at_once))?;
    let runs: Vec<_> = runs
        .into_iter()
        .filter(|run| end(&run.labels).is_some_and(|end| ends.contains(&end)))
        .collect();
    let mut events = Vec::new();
    for (key, timeline) in timelines(&runs, key, &[], |_| Some(())) {
        let counter = Counter::all().find(|counter| *counter as usize == key.1);
        if let (Some((at, ())), Some(counter), true) =
            (timeline.first(), counter, came.contains(&key))
        {
            let text = format!("{} is full, and counts no further", counter.row().metric);
            let (fabric, end) = key.0;
            events.push(Event::new(*at, &fabric, Kind::Saturation, end.into(), text));
        }
    }
    Ok(events)
}
