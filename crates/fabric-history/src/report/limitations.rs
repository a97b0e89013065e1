//! What a report does not know, in sentences: readers take what is silently left out for what did not happen.

use std::collections::BTreeMap;
use std::time::SystemTime;

use crate::EventKind;
use crate::model::{Coverage, Event, FabricState, Window};
use ib_health::Verdict;

/// Sentences of one kind; further ones are only counted.
const MAX_OF_A_KIND: usize = 10;

/// All sentences.
pub(super) fn sentences(
    cover: &Coverage,
    window: Window,
    events: &[Event],
    after: &[FabricState],
    format_time: &dyn Fn(SystemTime) -> String,
) -> Vec<String> {
    let mut sentences = Vec::new();
    if cover.fabrics.is_empty() {
        sentences.push("Nothing at all was recorded in this window.".into());
    }
    for (fabric, known) in &cover.fabrics {
        let gaps = known.gaps.iter().map(|gap| {
            format!(
                "{fabric}: no sweep from {} to {}. What counters grew by in between stands at the \
                 first sweep after it; what went down and came back may be missing.",
                format_time(gap.from),
                format_time(gap.to)
            )
        });
        push_some(&mut sentences, gaps, &format!("{fabric}: spans without a sweep"));
        match known.traffic_from {
            None if known.sweeps > 0 => {
                sentences.push(format!("{fabric}: traffic is not known sweep by sweep."));
            }
            Some(from) if known.is_swept_before(from, window) => sentences.push(format!(
                "{fabric}: traffic is known sweep by sweep from {} on; before it, hour by hour at most.",
                format_time(from)
            )),
            _ => {}
        }
    }
    if cover.damaged > 0 {
        sentences.push(format!(
            "Sweeps that cannot be read because they are damaged: {}.",
            cover.damaged
        ));
    }
    for (kind, meaning) in [
        (
            EventKind::ExporterStart,
            "The exporter was started: what was down or suspect is judged anew.",
        ),
        (EventKind::SweepFailed, "The fabric could not be asked from here on."),
        (
            EventKind::CounterReset,
            "Counters fell: what was counted since the reading before is not known.",
        ),
        (EventKind::Saturation, "A counter is full: the true number is higher."),
    ] {
        let matching = events.iter().filter(|event| event.kind == kind.label());
        let lines =
            matching.map(|event| format!("{}, {}: {meaning}", format_time(event.at), event.place));
        push_some(&mut sentences, lines, kind.label());
    }
    push_some(
        &mut sentences,
        silent_nodes(events, format_time).into_iter(),
        "nodes that did not answer",
    );
    for then in after {
        let unknown = then.cables.iter().filter(|cable| cable.verdict == Verdict::Unknown);
        let count = unknown.count();
        if count > 0 {
            sentences.push(format!(
                "{}: on {count} of {} cables too little is known for a verdict.",
                then.fabric,
                then.cables.len()
            ));
        }
    }
    sentences
}

/// The times in which nodes did not respond.
fn silent_nodes(events: &[Event], format_time: &dyn Fn(SystemTime) -> String) -> Vec<String> {
    let mut silent: BTreeMap<_, SystemTime> = BTreeMap::new();
    let mut sentences = Vec::new();
    let consequence =
        "its ports' counters are not known of that time, but what they show after it.";
    for event in events {
        let Some(node) = event.node else { continue };
        if event.kind == EventKind::NodeGone.label() {
            silent.insert((node, event.place.clone()), event.at);
        } else if event.kind == EventKind::NodeBack.label()
            && let Some(since) = silent.remove(&(node, event.place.clone()))
        {
            let (from, to) = (format_time(since), format_time(event.at));
            sentences
                .push(format!("{} did not answer from {from} to {to}: {consequence}", event.place));
        }
    }
    let still = silent.into_iter().map(|((_, place), since)| {
        format!("{place} did not answer from {} on.", format_time(since))
    });
    sentences.extend(still);
    sentences
}

/// Adds up to [`MAX_OF_A_KIND`] sentences, and the number of further ones.
fn push_some(sentences: &mut Vec<String>, lines: impl Iterator<Item = String>, what: &str) {
    let lines: Vec<String> = lines.collect();
    let more = lines.len().saturating_sub(MAX_OF_A_KIND);
    sentences.extend(lines.into_iter().take(MAX_OF_A_KIND));
    if more > 0 {
        sentences.push(format!("{what}: {more} more."));
    }
}
