//! The evidence on a link in a period, in sentences.

use std::time::{Duration, SystemTime};

use crate::EventKind;
use crate::event::{downtime_of, losses_of, verdict_of};
use crate::model::{ErrorDelta, Event, Window};
use ib_health::Verdict;
use ib_health::outage::Downtime;

use crate::report::sentences::{FormatTime, push_some};

/// What is known of a link in a period.
pub(super) struct LinkEvidence<'a> {
    pub events: &'a [Event],
    /// The errors of both ends.
    pub moved: Vec<&'a ErrorDelta>,
    pub window: Window,
    pub format_time: FormatTime<'a>,
}

impl LinkEvidence<'_> {
    fn of_kind(&self, kind: EventKind) -> impl Iterator<Item = &Event> {
        self.events.iter().filter(move |event| event.kind == kind.label())
    }

    /// The event of the worst verdict; the earliest of several.
    fn decisive_verdict(&self) -> Option<&Event> {
        let updated = self.of_kind(EventKind::VerdictUpdated);
        self.of_kind(EventKind::VerdictChanged)
            .chain(updated)
            .filter(|event| verdict_of(&event.detail, "to") >= Some(Verdict::Watch))
            .max_by_key(|event| (verdict_of(&event.detail, "to"), std::cmp::Reverse(event.at)))
    }

    /// The evidence, in sentences.
    pub fn sentences(&self) -> Vec<String> {
        let (window, format_time) = (self.window, self.format_time);
        let mut sentences = Vec::new();
        if let Some(event) = self.decisive_verdict() {
            let verdict =
                Verdict::word(verdict_of(&event.detail, "to").unwrap_or(Verdict::Unknown).label());
            let at = format_time(event.at);
            sentences.push(format!("Verdict {verdict} at {at}."));
        }
        let flaps: Vec<_> = self.of_kind(EventKind::Flap).collect();
        if let (Some(first), Some(last)) = (flaps.first(), flaps.last()) {
            let losses = flaps.iter().map(|event| losses_of(&event.detail));
            let (first, last) = (format_time(first.at), format_time(last.at));
            let when = match losses.fold(0, u64::saturating_add) {
                1 => format!("at {first}"),
                count => format!("{count} times, first at {first}, last at {last}"),
            };
            sentences.push(format!("The link went down unexpectedly {when}."));
        }
        let outages = self.outages().into_iter().map(|(from, to)| {
            let length = |to: SystemTime| {
                let length = to.duration_since(from).unwrap_or_default();
                humantime::format_duration(Duration::from_secs(length.as_secs())).to_string()
            };
            let Some(to) = to else {
                let (from, length) = (format_time(from), length(window.to));
                return format!("Link down from {from} to the end of the period ({length}).");
            };
            let length = self.downtime(from).map_or_else(|| length(to), |down| down.to_string());
            format!("Link down at {} for {length}.", format_time(from))
        });
        push_some(&mut sentences, outages, "Link downs");
        let rates = self.of_kind(EventKind::RateChanged);
        let rates = rates
            .map(|event| format!("Rate changed at {}: {}.", format_time(event.at), event.text));
        push_some(&mut sentences, rates, "Rate changes");
        sentences.extend(self.moved.iter().map(|moved| {
            format!("{} counted {}.", moved.port.label(), list_errors(moved, format_time))
        }));
        sentences
    }

    /// The length of the outage that began at this time, if its loss was counted.
    fn downtime(&self, from: SystemTime) -> Option<Downtime> {
        let kinds = [EventKind::Flap, EventKind::ExpectedLinkDown].map(EventKind::label);
        // The clocks of two sweeps may disagree by some microseconds.
        let apart = |at: SystemTime| at.max(from).duration_since(at.min(from)).unwrap_or_default();
        let mut losses = (self.events.iter())
            .filter(|event| kinds.contains(&&*event.kind))
            .filter(|event| apart(event.at) < Duration::from_secs(1));
        losses.find_map(|event| downtime_of(&event.detail))
    }

    /// The times at which it went down, and at which it came up again.
    fn outages(&self) -> Vec<(SystemTime, Option<SystemTime>)> {
        let mut outages: Vec<(SystemTime, Option<SystemTime>)> = Vec::new();
        for event in self.events {
            if event.kind == EventKind::LinkDown.label() {
                outages.push((event.at, None));
            } else if event.kind == EventKind::LinkUp.label()
                && let Some((_, end @ None)) = outages.last_mut()
            {
                *end = Some(event.at);
            }
        }
        outages
    }
}

/// A port's errors as text, the most frequent first.
pub(super) fn list_errors(moved: &ErrorDelta, format_time: FormatTime<'_>) -> String {
    let mut sums: Vec<_> = moved.sums.iter().collect();
    sums.sort_by_key(|sum| (std::cmp::Reverse(sum.by), sum.counter));
    let counts: Vec<String> =
        sums.iter().map(|sum| format!("{} {}", sum.by, sum.counter.row().metric)).collect();
    let first = sums.iter().map(|sum| sum.first).min();
    let last = sums.iter().map(|sum| sum.last).max();
    let when = match first.zip(last) {
        Some((first, last)) if first == last => format!(" at {}", format_time(first)),
        Some((first, last)) => format!(" from {} to {}", format_time(first), format_time(last)),
        None => String::new(),
    };
    counts.join(", ") + &when
}
