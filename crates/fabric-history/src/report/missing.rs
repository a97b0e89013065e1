//! What data of a period is missing, in sentences.

use crate::EventKind;
use crate::incidents::{Incident, IncidentKind};
use crate::model::{Cable, Coverage, Event, FabricState, Window};
use crate::report::sentences::{FormatTime, push_some};
use display_text::plural;
use ib_health::Verdict;

/// The kinds of events that say that data is missing.
pub(super) const KINDS: [EventKind; 3] =
    [EventKind::ExporterStart, EventKind::SweepFailed, EventKind::CounterSaturated];

/// What data is missing. The events are those of [`KINDS`].
pub(super) fn sentences(
    cover: &Coverage,
    window: Window,
    events: &[Event],
    incidents: &[Incident],
    after: &[FabricState],
    format_time: FormatTime<'_>,
) -> Vec<String> {
    let mut sentences = Vec::new();
    if cover.fabrics.is_empty() {
        sentences.push("Nothing was recorded in this period.".into());
    }
    for (fabric, known) in &cover.fabrics {
        let gaps = known.gaps.iter().map(|gap| {
            format!(
                "{fabric}: no sweep from {} to {}. Counter increases of this gap appear in the first sweep \
                 after it; links that went down and up again in the gap may be missing.",
                format_time(gap.from),
                format_time(gap.to)
            )
        });
        push_some(&mut sentences, gaps, &format!("{fabric}: gaps without a sweep"));
        match known.traffic_from {
            None if known.sweeps > 0 => {
                sentences.push(format!("{fabric}: no traffic per sweep is available."));
            }
            Some(from) if known.is_swept_before(from, window) => sentences.push(format!(
                "{fabric}: traffic per sweep is available from {} on; before that, per hour at most.",
                format_time(from)
            )),
            _ => {}
        }
    }
    if cover.damaged > 0 {
        sentences.push(format!(
            "The counters of {} are damaged and cannot be read.",
            plural(cover.damaged, "sweep")
        ));
    }
    for (kind, meaning) in [
        (
            EventKind::ExporterStart,
            "the exporter started; it does not count earlier flaps, nor report links and nodes that were already down.",
        ),
        (EventKind::SweepFailed, "sweeps of the fabric fail until the next sweep_recovered event."),
        (EventKind::CounterSaturated, "a counter is saturated; its total is a lower bound."),
    ] {
        let matching = events.iter().filter(|event| event.kind == kind.label());
        let line = |event: &Event| format!("{}, {}: {meaning}", format_time(event.at), event.place);
        push_some(&mut sentences, matching.map(line), kind.label());
    }
    let of_kinds = |kinds: &'static [IncidentKind]| {
        incidents.iter().filter(move |incident| kinds.contains(&incident.kind))
    };
    let cleared = of_kinds(&[IncidentKind::CountersCleared]).map(|incident| {
        format!(
            "{}, {}: {}; errors between the previous sweep and this one are unknown.",
            format_time(incident.began),
            incident.place,
            incident.title
        )
    });
    push_some(&mut sentences, cleared, "counters that were cleared");
    let down = of_kinds(&[IncidentKind::SwitchDown, IncidentKind::HostDown]);
    push_some(&mut sentences, down.map(|it| unread(it, format_time)), "nodes that did not respond");
    for then in after {
        let is_unknown = |cable: &&Cable| cable.verdict == Verdict::Unknown;
        let count = then.cables.iter().filter(is_unknown).count();
        if count > 0 {
            sentences.push(format!(
                "{}: the verdict is unknown for {count} of {}.",
                then.fabric,
                plural(then.cables.len(), "link")
            ));
        }
    }
    sentences
}

/// The time in which the nodes of an incident were not read.
fn unread(incident: &Incident, format_time: FormatTime<'_>) -> String {
    let who = match incident.nodes {
        0 | 1 => incident.place.clone(),
        nodes => format!("{} and {}", incident.place, plural(nodes - 1, "more node")),
    };
    let since = format_time(incident.began);
    match incident.ended {
        Some(end) => format!(
            "{who} did not respond from {since} to {}; counter increases of that time appear in the \
             first reading after it.",
            format_time(end)
        ),
        None => format!("{who} did not respond from {since} on."),
    }
}
