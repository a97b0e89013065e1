//! The condition of a fabric: the worst of its nodes and links. The headline of pages, tables and `top`, and the exit
//! codes of commands, are made of it, so that none of them is green while another one, or an alert, is not.
//!
//! What is not known is not ok: a fabric that was not swept, or not for long enough, has no verdict. What was not judged
//! on purpose, such as a port that an administrator disabled, does not count.

mod down;
mod finding;
mod links;
mod nodes;

use std::time::{Duration, SystemTime};

use display_text::{grouped, plural};
use fabric_observation::{Collector, Observation};
use ib_fabric::fabric_kind::FabricKind;
use ib_health::Verdict;

pub use down::{DownNode, DownNodes, name};
pub use finding::FindingKind;
use finding::Found;
use links::LinkCounts;

use crate::model::Condition;
use crate::view::FabricView;

/// The condition of a fabric now.
pub fn condition(observation: &Observation) -> Condition {
    at(observation, SystemTime::now())
}

/// The condition of a fabric at a time of day, by which its latest sweep is recent or not.
pub fn at(observation: &Observation, now: SystemTime) -> Condition {
    latest(observation).aged(observation, now)
}

/// The condition as the latest sweep found it.
pub fn latest(observation: &Observation) -> Condition {
    let view = FabricView::new(observation);
    match (problem(observation), view) {
        (Some(problem), _) => of(vec![problem], String::new()),
        (None, Some(view)) => of_sweep(observation, view),
        (None, None) => Condition::default(),
    }
}

/// The age of the latest sweep, if that is not recent. One that ended in the future is: the clock has been set back
/// since. Dumps have no interval, and no age.
fn age_beyond_limit(observation: &Observation, now: SystemTime) -> Option<Duration> {
    let snapshot = observation.snapshot.as_ref()?;
    let age = now.duration_since(snapshot.anchor.wall_of(snapshot.ended)).ok()?;
    (age > observation.stale_after() && !observation.interval.is_zero()).then_some(age)
}

impl Condition {
    /// The same condition at a time of day: not ok if the sweep that found it is too old by then.
    #[must_use]
    pub fn aged(self, observation: &Observation, now: SystemTime) -> Condition {
        let Some(age) = age_beyond_limit(observation, now) else { return self };
        let age = humantime::format_duration(Duration::from_secs(age.as_secs()));
        let text = format!("the latest sweep is {age} old");
        let stale = Found::new(FindingKind::Stale, Verdict::Unknown, 1, &*text).model();
        let verdict = self.verdict().max(Verdict::Unknown).label().into();
        let mut findings = self.findings;
        let headline =
            if findings.is_empty() { text } else { format!("{}; {text}", self.headline) };
        let place = findings.iter().position(|it| it.verdict() <= Verdict::Unknown);
        findings.insert(place.unwrap_or(findings.len()), stale);
        Condition { verdict, headline, findings }
    }
}

/// Why nothing is known of the fabric: the same conditions under which alerts ignore what this exporter reports.
fn problem(observation: &Observation) -> Option<Found> {
    if observation.snapshot.is_none() {
        let text = "not swept yet";
        return Some(Found::new(FindingKind::NotSwept, Verdict::Unknown, 1, text));
    }
    let needed = [Collector::Discovery, Collector::Perfmgt];
    let failed = needed.into_iter().filter(|it| !observation.stats.success(*it));
    let failed: Vec<&str> = failed.map(Collector::label).collect();
    let text = format!("no view of the fabric (failed: {})", failed.join(", "));
    let found = || Found::new(FindingKind::NoView, Verdict::Unknown, failed.len(), text);
    (!failed.is_empty()).then(found)
}

fn of_sweep(observation: &Observation, view: FabricView<'_>) -> Condition {
    let down = DownNodes::find(view);
    let links = LinkCounts::of(view, &down);
    let mut found = nodes::findings(observation, view, &down);
    found.extend(links.findings());
    if observation.stats.partition_suspected {
        let text = "hosts do not respond: the P_Key of the exporter's port is probably wrong";
        found.push(Found::new(FindingKind::Partition, Verdict::Unknown, 1, text));
    }
    // A neighbor that is known, and does not respond now, is no part that may be missing: its node is down, or not.
    let stats = &observation.stats;
    let gaps = (stats.discovery_gaps as usize).saturating_sub(stats.known_gaps);
    if gaps > 0 {
        let text = format!("{} of the discovery without response", plural(gaps, "request"));
        found.push(Found::new(FindingKind::DiscoveryGaps, Verdict::Unknown, gaps, text));
    }
    let (ok, all) = (links.verdicts.ok, view.snapshot.fabric.nodes.len());
    let not_judged = match links.not_judged {
        0 => String::new(),
        count => format!(", {} not judged", plural(count, "link")),
    };
    let nodes = plural(all, "node");
    let ok = match view.snapshot.fabric.kind {
        Some(FabricKind::NvLink) => format!("NVLink fabric: all {nodes} up{not_judged}"),
        _ => format!("all ok: {}, {nodes}{not_judged}", plural(ok, "link")),
    };
    of(found, ok)
}

/// The condition of some findings; `ok` is the headline without any.
fn of(mut found: Vec<Found>, ok: String) -> Condition {
    found.sort_by_key(|it| (std::cmp::Reverse(it.verdict), it.kind));
    let verdict = found.first().map_or(Verdict::Ok, |it| it.verdict);
    let worst = found.iter().filter(|it| it.verdict == verdict).map(|it| &*it.text);
    let worst = worst.collect::<Vec<_>>().join("; ");
    Condition {
        verdict: verdict.label().into(),
        headline: if worst.is_empty() { ok } else { worst },
        findings: found.into_iter().map(Found::model).collect(),
    }
}

/// What is wrong with some fabrics in as few words as a title has: `1 switch down, 2 bad`.
pub fn short<'a>(conditions: impl Iterator<Item = &'a Condition>) -> Option<String> {
    let (mut switches, mut nodes, mut links) = (0, 0, 0);
    for it in conditions.flat_map(|condition| &condition.findings) {
        match (FindingKind::from_label(&it.kind), it.verdict()) {
            (Some(FindingKind::SwitchesDown), _) => switches += it.count,
            (Some(FindingKind::NodesDown), Verdict::Bad) => nodes += it.count,
            (Some(FindingKind::Links), Verdict::Bad) => links += it.count,
            _ => {}
        }
    }
    let parts = [
        (switches, format!("{} down", plural(switches, "switch"))),
        (nodes, format!("{} down", plural(nodes, "node"))),
        (links, format!("{} bad", grouped(links))),
    ];
    let parts = parts.into_iter().filter(|(count, _)| *count > 0).map(|(_, text)| text);
    Some(parts.collect::<Vec<_>>().join(", ")).filter(|text| !text.is_empty())
}

#[cfg(test)]
mod tests;
