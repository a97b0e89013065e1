//! What a report does not know, in sentences: what is left out in silence is taken for what did not
//! happen.

use std::collections::BTreeMap;
use std::time::SystemTime;

use crate::Kind;
use crate::model::{Cover, Then, Told, Window};
use ib_health::Verdict;

/// How many of a kind are told one by one.
const MOST_OF_A_KIND: usize = 10;

/// The sentences.
pub(super) fn sentences(
    cover: &Cover,
    window: Window,
    events: &[Told],
    after: &[Then],
    tell: &dyn Fn(SystemTime) -> String,
) -> Vec<String> {
    let mut told = Vec::new();
    if cover.fabrics.is_empty() {
        told.push("Nothing at all was recorded in this window.".into());
    }
    for (fabric, known) in &cover.fabrics {
        let gaps = known.gaps.iter().map(|gap| {
            format!(
                "{fabric}: no sweep from {} to {}. What counters grew by in between stands at the \
                 first sweep after it; what went down and came back may be missing.",
                tell(gap.from),
                tell(gap.to)
            )
        });
        several(&mut told, gaps, &format!("{fabric}: spans without a sweep"));
        match known.traffic_from {
            None if known.sweeps > 0 => {
                told.push(format!("{fabric}: traffic is not known sweep by sweep."));
            }
            Some(from) if known.is_swept_before(from, window) => told.push(format!(
                "{fabric}: traffic is known sweep by sweep from {} on; before it, hour by hour at most.",
                tell(from)
            )),
            _ => {}
        }
    }
    if cover.damaged > 0 {
        told.push(format!(
            "Sweeps that cannot be read because they are damaged: {}.",
            cover.damaged
        ));
    }
    for (kind, says) in [
        (Kind::ExporterStart, "The exporter was started: what was down or suspect is judged anew."),
        (Kind::SweepFailed, "The fabric could not be asked from here on."),
        (
            Kind::CounterReset,
            "Counters fell: what was counted since the reading before is not known.",
        ),
        (Kind::Saturation, "A counter is full: the true number is higher."),
    ] {
        let of_kind = events.iter().filter(|event| event.kind == kind.label());
        let lines = of_kind.map(|event| format!("{}, {}: {says}", tell(event.at), event.place));
        several(&mut told, lines, kind.label());
    }
    several(&mut told, silences(events, tell).into_iter(), "nodes that did not answer");
    for then in after {
        let unknown = |cable: &&_| -> bool {
            let cable: &crate::model::Cable = cable;
            cable.verdict == Verdict::Unknown
        };
        let count = then.cables.iter().filter(unknown).count();
        if count > 0 {
            told.push(format!(
                "{}: on {count} of {} cables too little is known for a verdict.",
                then.fabric,
                then.cables.len()
            ));
        }
    }
    told
}

/// When nodes did not answer.
fn silences(events: &[Told], tell: &dyn Fn(SystemTime) -> String) -> Vec<String> {
    let mut silent: BTreeMap<_, SystemTime> = BTreeMap::new();
    let mut told = Vec::new();
    let says = "its ports' counters are not known of that time, but what they show after it.";
    for event in events {
        let Some(node) = event.node else { continue };
        if event.kind == Kind::NodeGone.label() {
            silent.insert((node, event.place.clone()), event.at);
        } else if event.kind == Kind::NodeBack.label()
            && let Some(since) = silent.remove(&(node, event.place.clone()))
        {
            let (from, to) = (tell(since), tell(event.at));
            told.push(format!("{} did not answer from {from} to {to}: {says}", event.place));
        }
    }
    let still = silent
        .into_iter()
        .map(|((_, place), since)| format!("{place} did not answer from {} on.", tell(since)));
    told.extend(still);
    told
}

/// Adds sentences of one kind, and counts them where there are too many.
fn several(told: &mut Vec<String>, lines: impl Iterator<Item = String>, what: &str) {
    let lines: Vec<String> = lines.collect();
    let more = lines.len().saturating_sub(MOST_OF_A_KIND);
    told.extend(lines.into_iter().take(MOST_OF_A_KIND));
    if more > 0 {
        told.push(format!("{what}: {more} more."));
    }
}
