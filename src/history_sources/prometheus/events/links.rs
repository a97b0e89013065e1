//! What links went through, and what was said of them.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::time::{Duration, SystemTime};

use serde_json::json;

use crate::history_sources::prometheus::client::Labels;
use crate::history_sources::prometheus::fabrics::weight;
use crate::history_sources::prometheus::look::{Look, fabric_link};
use crate::history_sources::prometheus::matchers::selector;
use crate::history_sources::prometheus::timeline::{Timeline, changes, growth, numbers, timelines};
use fabric_history::Kind;
use fabric_history::event::{About, for_how_long, lengths};
use fabric_history::model::{Step, time};
use fabric_history::source::AskError;
use ib_fabric::topology::LinkId;
use ib_health::evidence::times;
use ib_health::outage::Downtime;
use ib_health::{Reason, Verdict};

use super::Event;

pub(super) fn up_and_down(look: &Look<'_>, only: &str) -> Result<Vec<Event>, AskError> {
    let runs = look.changed_links("infiniband_link_up", only)?;
    let mut events = Vec::new();
    for ((fabric, link), timeline) in numbers(&runs, fabric_link, &[]) {
        for (at, _, up) in changes(&timeline) {
            let (kind, text) = if *up > 0.0 {
                (Kind::LinkUp, "it carries traffic again")
            } else {
                (Kind::LinkDown, "it carries nothing any more")
            };
            events.push(Event::new(at, &fabric, kind, About::Link(link), text));
        }
    }
    Ok(events)
}

/// A loss is counted when both ends have told, soon after the link is back.
const SETTLED_AFTER: u64 = 5 * 60_000;

/// When a loss began that was counted at a moment: when the link was last seen to go down, if it came
/// back just before. One that no scrape saw is told by the scrape that counted it.
fn began(at: u64, link: LinkId, seen: &[Event]) -> u64 {
    let of_kind = |kind: Kind| {
        let of_link = seen.iter().filter(move |it| it.about == About::Link(link) && it.at <= at);
        of_link.filter(move |it| it.kind == kind).map(|it| it.at).max()
    };
    match (of_kind(Kind::LinkDown), of_kind(Kind::LinkUp)) {
        (Some(down), Some(up)) if down > up || at - up <= SETTLED_AFTER => down,
        (Some(down), None) => down,
        _ => at,
    }
}

/// Losses, with whose fault they were; `seen` is when links went down and came back.
pub(super) fn losses(look: &Look<'_>, only: &str, seen: &[Event]) -> Result<Vec<Event>, AskError> {
    let mut events = Vec::new();
    let runs = look.changed_links("infiniband_link_flaps_total", only)?;
    let mut totals = numbers(&runs, fabric_link, &[]);
    let down = Lengths::new(look, only, FLAPS_DOWN)?;
    for (key, steps) in growth(&runs, fabric_link) {
        let totals = totals.remove(&key).unwrap_or_default();
        for step in steps {
            let (down, (fabric, link)) = (down.of(&key, &step), key.clone());
            let at = time::millis(step.to);
            let total = totals.iter().find(|(when, _)| *when == at).map(|(_, total)| *total);
            let mut text = format!("lost {}, by its own fault", how_often(step.by));
            if let Some(total) = total {
                // Writing to a string cannot fail.
                let _ = write!(text, "; {total} in all");
            }
            text += &for_how_long(down);
            let at = began(at, link, seen);
            let mut detail = lengths(down);
            (detail["losses"], detail["in_all"]) = (step.by.into(), total.into());
            let event = Event::new(at, &fabric, Kind::Flap, About::Link(link), text);
            events.push(Event { detail, ..event });
        }
    }
    let runs = look.changed_links("infiniband_link_expected_outages_total", only)?;
    let down = Lengths::new(look, only, EXPECTED_DOWN)?;
    let key = |labels: &Labels| Some((fabric_link(labels)?, labels.get("cause")?.clone()));
    for ((key, cause), steps) in growth(&runs, key) {
        for step in steps {
            let (down, (fabric, link)) = (down.of(&key, &step), key.clone());
            let often = how_often(step.by);
            let text = format!("lost {often}: {cause}{}", for_how_long(down));
            let (at, about) = (began(time::millis(step.to), link, seen), About::Link(link));
            let mut detail = lengths(down);
            (detail["losses"], detail["cause"]) = (step.by.into(), cause.as_str().into());
            events
                .push(Event { detail, ..Event::new(at, &fabric, Kind::ExpectedLoss, about, text) });
        }
    }
    Ok(events)
}

/// How long flaps and expected losses kept links down, at least and at most.
const FLAPS_DOWN: [&str; 2] =
    ["infiniband_link_down_seconds_total", "infiniband_link_down_max_seconds_total"];
const EXPECTED_DOWN: [&str; 2] = [
    "infiniband_link_expected_down_seconds_total",
    "infiniband_link_expected_down_max_seconds_total",
];

/// How long links were down, by what two counters grew between two scrapes.
struct Lengths([BTreeMap<(String, LinkId), Timeline<f64>>; 2]);

impl Lengths {
    fn new(look: &Look<'_>, only: &str, metrics: [&str; 2]) -> Result<Self, AskError> {
        let [least, most] = metrics.map(|metric| {
            let runs = look.changed_links(metric, only)?;
            Ok::<_, AskError>(numbers(&runs, fabric_link, &[]))
        });
        Ok(Lengths([least?, most?]))
    }

    fn of(&self, key: &(String, LinkId), step: &Step) -> Downtime {
        let [least, most] = self.0.each_ref().map(|lengths| {
            let at = |time: SystemTime| {
                let time = time::millis(time);
                let found = lengths.get(key)?.iter().find(|(at, _)| *at == time);
                found.map(|(_, seconds)| *seconds)
            };
            let to = at(step.to).unwrap_or(0.0);
            // A counter that fell began again from 0.
            let grown = match at(step.from) {
                Some(from) if from <= to => to - from,
                _ => to,
            };
            Duration::try_from_secs_f64(grown).unwrap_or_default()
        });
        Downtime { least: least.min(most), most }
    }
}

fn how_often(count: u64) -> String {
    times(u32::try_from(count).unwrap_or(u32::MAX))
}

/// The reasons of a link with what they weigh, by the table's order.
type Reasons = Vec<(String, Verdict)>;

/// Verdicts are a series a reason, which come and go: what changed has several in the window, or
/// one that changed.
/// `starts` are exporters', by fabric.
pub(super) fn verdicts(
    look: &Look<'_>,
    only: &str,
    starts: &[(String, u64)],
) -> Result<Vec<Event>, AskError> {
    const VERDICT: &str = "infiniband_link_verdict";
    let of = selector(VERDICT, &[only.to_owned()]);
    let range = look.range();
    let changed = look.vector(&format!(
        "count by (link) (count by (link, reason) (last_over_time({of}{range}))) > 1 \
         or max by (link) (changes({of}{range})) > 0"
    ))?;
    let portions = look.links(&changed);
    let seen = timelines(&look.runs(VERDICT, &portions)?, fabric_link, &["reason"], |samples| {
        let weights = samples
            .iter()
            .filter_map(|(labels, value)| Some((labels.get("reason")?.clone(), weight(*value))));
        let mut reasons: Reasons = weights.collect();
        let place = |label: &str| Reason::ALL.iter().position(|reason| reason.label() == label);
        reasons.sort_by_key(|(label, _)| (place(label).unwrap_or(usize::MAX), label.clone()));
        Some(reasons)
    });
    let repairs = look.runs("infiniband_link_repair", &portions)?;
    let repairs = timelines(&repairs, fabric_link, &["repair"], |samples| {
        samples.iter().find_map(|(labels, _)| labels.get("repair").cloned())
    });
    let mut events = Vec::new();
    for ((fabric, link), timeline) in seen {
        let repairs = repairs.get(&(fabric.clone(), link));
        let starts = starts.iter().filter(|(of, _)| *of == fabric).map(|(_, at)| *at);
        for (at, verdicts, is) in news(&timeline, &starts.collect::<Vec<_>>()) {
            events.push(verdict(at, &fabric, link, verdicts, is, repairs));
        }
    }
    Ok(events)
}

/// The changes that somebody has to know of: when, what the verdict was and is, and why. That
/// nothing is known yet of a sound link, or that it is sound, is no news; nor that an exporter which
/// was just started knows nothing yet.
fn news<'a>(
    timeline: &'a Timeline<Reasons>,
    starts: &[u64],
) -> Vec<(u64, (Verdict, Verdict), &'a Reasons)> {
    let verdict_of = |reasons: &Reasons| {
        reasons.iter().map(|(_, weight)| *weight).max().unwrap_or(Verdict::Unknown)
    };
    let mut news = Vec::new();
    for pair in timeline.windows(2) {
        let [(before, was), (at, reasons)] = pair else { continue };
        let (was, now) = (verdict_of(was), verdict_of(reasons));
        let begins = || starts.iter().any(|start| (before..=at).contains(&start));
        let is_new = now == Verdict::Unknown && begins();
        if was != now && was.max(now) >= Verdict::Watch && !is_new {
            news.push((*at, (was, now), reasons));
        }
    }
    news
}

fn verdict(
    at: u64,
    fabric: &str,
    link: LinkId,
    (was, now): (Verdict, Verdict),
    reasons: &Reasons,
    repairs: Option<&Timeline<String>>,
) -> Event {
    let mut text = format!("{} -> {}", was.label(), now.label());
    let mut because = Vec::new();
    for (label, weight) in reasons.iter().filter(|(_, weight)| *weight >= Verdict::Watch) {
        let evidence = meaning(label);
        // Writing to a string cannot fail.
        let _ = write!(text, "; {label}: {evidence}");
        because.push(json!({"reason": label, "verdict": weight.label(), "evidence": evidence}));
    }
    let repair = repairs
        .and_then(|repairs| repairs.iter().find(|(when, _)| *when == at).map(|(_, repair)| repair));
    let detail = json!({
        "from": was.label(), "to": now.label(), "reasons": because, "repair": repair,
    });
    Event { detail, ..Event::new(at, fabric, Kind::Verdict, About::Link(link), text) }
}

/// What a reason means, as the beginning of no sentence: what it rests on is in no series.
fn meaning(label: &str) -> String {
    let reason = Reason::ALL.iter().find(|reason| reason.label() == label);
    let help = reason.map_or("what it was is not over for long enough.", |reason| reason.help());
    let mut chars = help.trim_end_matches('.').chars();
    chars.next().map(|first| first.to_lowercase().chain(chars).collect()).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_exporter_that_was_just_started_knows_nothing_yet() {
        let of = |label: &str, weight| vec![(label.to_owned(), weight)];
        let timeline = vec![
            (10, of("none", Verdict::Ok)),
            (20, of("bit_errors", Verdict::Bad)),
            (30, of("too_short", Verdict::Unknown)),
            (40, of("bit_errors", Verdict::Bad)),
            (50, of("unanswered", Verdict::Unknown)),
            (60, of("none", Verdict::Ok)),
        ];
        let told = |starts: &[u64]| {
            news(&timeline, starts).into_iter().map(|(at, _, _)| at).collect::<Vec<_>>()
        };
        assert_eq!(told(&[]), [20, 30, 40, 50]);
        assert_eq!(told(&[25]), [20, 40, 50]);
    }
}
