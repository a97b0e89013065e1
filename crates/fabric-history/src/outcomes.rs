//! What followed verdicts: how often the advice was right. Counts only, without names, so that a site can publish them.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::fmt::Write;
use std::time::{Duration, SystemTime};

use serde::{Deserialize, Serialize};

use crate::EventKind;
use crate::event::downtime_of;
use crate::model::{Cable, Event, Window};
use crate::source::{Answer, EventFilter, Source};
use display_text::plural;
use ib_fabric::topology::LinkId;
use ib_health::verdict::Repair;
use ib_mad::PortKey;

/// A link is good again if it was `ok` for so long.
const GOOD: Duration = Duration::from_secs(24 * 3600);

/// A technician takes at least this long to unplug a cable and plug it in again.
const REPLUGGED: Duration = Duration::from_secs(5);

display_text::labeled_enum! {
    /// How an episode of verdicts ended: the link was `ok` for 24 hours after this.
    #[derive(PartialOrd, Ord)]
    pub enum Outcome {
        Replaced, "replaced", "Another cable or module was plugged in.";
        Replugged, "replugged", "The link was down for at least 5 s, and has the same cable.";
        ByItself, "by_itself", "Neither: the verdict went away by itself.";
        Removed, "removed", "The fabric has no such link any more.";
        Open, "open", "The link is not ok, or has been ok for less than 24 hours.";
    }
}

/// Episodes with one reason and one advice.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct OutcomeRow {
    /// The worst verdict of the episodes: watch, bad.
    pub verdict: String,
    /// The first reason of that verdict.
    pub reason: String,
    /// What was advised first; null if nothing was.
    pub repair: Option<String>,
    /// Number of episodes.
    pub episodes: u64,
    /// Number of episodes by outcome: replaced, replugged, by_itself, removed, open.
    pub outcomes: BTreeMap<String, u64>,
    /// Number of episodes after which the advice was right.
    pub right: u64,
    /// Number of episodes of which this is known.
    pub decided: u64,
}

/// What followed the verdicts of a period.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Outcomes {
    /// Version of the exporter that counts them.
    pub version: String,
    /// Length of the period in days.
    pub days: f64,
    /// Number of cables at its end.
    pub links: u64,
    /// Rows by verdict, reason and advice, the most frequent first.
    pub rows: Vec<OutcomeRow>,
}

/// A link that was degraded or bad, from the first such verdict on.
struct Episode {
    link: LinkId,
    began: SystemTime,
    verdict: String,
    reason: String,
    repair: Option<String>,
    /// Since when it is ok again.
    ok_since: Option<SystemTime>,
    outcome: Outcome,
}

impl Outcomes {
    /// Counts what followed the verdicts of a window.
    pub fn compute(source: &dyn Source, window: Window) -> Answer<Outcomes> {
        let kinds = vec![
            EventKind::VerdictChanged,
            EventKind::CableChanged,
            EventKind::CableMoved,
            EventKind::Flap,
            EventKind::ExpectedLinkDown,
        ];
        let events = source.events(&EventFilter { kinds, ..EventFilter::all(window) })?;
        let span = source.span()?;
        let until = span.last.map_or(window.to, |last| last.min(window.to));
        let from = span.first.map_or(window.from, |first| first.max(window.from));
        let states = source.fabrics(until)?;
        let present: HashSet<LinkId> =
            states.iter().flat_map(|state| &state.cables).map(Cable::link).collect();
        let mut episodes = episodes(&events, until);
        for episode in &mut episodes {
            if episode.outcome == Outcome::Open && !present.contains(&episode.link) {
                episode.outcome = Outcome::Removed;
            }
        }
        let days = until.duration_since(from).unwrap_or_default().as_secs_f64() / 86_400.0;
        Ok(Outcomes {
            version: env!("CARGO_PKG_VERSION").to_owned(),
            days: (days * 10.0).round() / 10.0,
            links: states.iter().map(|state| state.cables.len() as u64).sum(),
            rows: rows(&episodes),
        })
    }

    /// The table as Markdown, to be pasted into an issue.
    pub fn to_markdown(&self) -> String {
        let links = plural(self.links, "link");
        let mut text = format!(
            "Outcomes of verdicts: {links}, {} days, fabric-exporter {}\n\n\
             | verdict | reason | repair | episodes | replaced | replugged | by itself | removed | open | repair right |\n\
             |---|---|---|---|---|---|---|---|---|---|\n",
            self.days, self.version
        );
        for row in &self.rows {
            let OutcomeRow { verdict, reason, episodes, .. } = row;
            let repair = row.repair.as_deref().unwrap_or("-");
            let count = |outcome: Outcome| row.outcomes.get(outcome.label()).copied().unwrap_or(0);
            let counts = Outcome::ALL.map(|outcome| count(outcome).to_string()).join(" | ");
            let right = match row.decided {
                0 => "-".to_owned(),
                decided => format!("{} of {decided}", row.right),
            };
            let line = format!("{verdict} | {reason} | {repair} | {episodes} | {counts} | {right}");
            let _ = writeln!(text, "| {line} |");
        }
        text
    }
}

/// The episodes of all links, from events in the order of time.
fn episodes(events: &[Event], until: SystemTime) -> Vec<Episode> {
    let mut open: HashMap<PortKey, usize> = HashMap::new();
    let mut all: Vec<Episode> = Vec::new();
    for event in events {
        let ends: Vec<PortKey> = match (event.link, event.node, event.port) {
            (Some(LinkId { low: a, high: b }), _, _) => vec![a, b],
            (None, Some(node), Some(port)) => vec![PortKey::new(node, port)],
            _ => continue,
        };
        let known = ends.iter().find_map(|end| open.get(end).copied());
        if event.kind != EventKind::VerdictChanged.label() {
            if let Some(index) = known {
                all[index].intervene(event);
            }
            continue;
        }
        let Some(LinkId { low: a, high: b }) = event.link else { continue };
        let to = event.detail["to"].as_str().unwrap_or_default();
        let is_over =
            |index: &usize| all[*index].ok_since.is_some_and(|since| event.at >= since + GOOD);
        let known = known.filter(|index| !is_over(index));
        match (to, known) {
            ("ok", Some(index)) => all[index].ok_since = all[index].ok_since.or(Some(event.at)),
            // Another cable is learned anew, and that it is ok then is no event.
            ("unknown", Some(index)) if all[index].outcome == Outcome::Replaced => {
                all[index].ok_since = all[index].ok_since.or(Some(event.at));
            }
            ("watch" | "bad", Some(index)) => all[index].relapse(to, event),
            ("watch" | "bad", None) => {
                let mut episode = Episode {
                    link: LinkId { low: a, high: b },
                    began: event.at,
                    verdict: String::new(),
                    reason: String::new(),
                    repair: None,
                    ok_since: None,
                    outcome: Outcome::ByItself,
                };
                episode.relapse(to, event);
                for end in [a, b] {
                    open.insert(end, all.len());
                }
                all.push(episode);
            }
            _ => {}
        }
    }
    for episode in &mut all {
        if episode.ok_since.is_none_or(|since| since + GOOD > until) {
            episode.outcome = Outcome::Open;
        }
    }
    all
}

impl Episode {
    /// The link is degraded or bad, for the first time or again: what was done before did not help.
    fn relapse(&mut self, to: &str, event: &Event) {
        if self.ok_since.take().is_some() {
            self.outcome = Outcome::ByItself;
        }
        if self.verdict.is_empty() || (self.verdict == "watch" && to == "bad") {
            let first = event.detail["reasons"][0]["reason"].as_str();
            to.clone_into(&mut self.verdict);
            first.unwrap_or_default().clone_into(&mut self.reason);
            self.repair = event.detail["repair"].as_str().map(str::to_owned);
        }
    }

    /// Somebody did something, if it was not before, or after the link was ok.
    fn intervene(&mut self, event: &Event) {
        if event.at < self.began || self.ok_since.is_some_and(|since| event.at > since) {
            return;
        }
        let cable = [EventKind::CableChanged, EventKind::CableMoved].map(EventKind::label);
        let down = downtime_of(&event.detail).map_or(Duration::ZERO, |down| down.most);
        if cable.contains(&&*event.kind) {
            self.outcome = Outcome::Replaced;
        } else if down >= REPLUGGED && self.outcome == Outcome::ByItself {
            self.outcome = Outcome::Replugged;
        }
    }

    /// Whether the advice was right; `None` if that is not known.
    fn is_right(&self) -> Option<bool> {
        if matches!(self.outcome, Outcome::Open | Outcome::Removed) {
            return None;
        }
        let repair = self.repair.as_deref().and_then(Repair::from_label)?;
        let expected = match repair {
            Repair::Reseat => Outcome::Replugged,
            Repair::SwapCable | Repair::SwapTransceiver => Outcome::Replaced,
            Repair::None => Outcome::ByItself,
            // What was done to hosts and fans, and where planes lead, is not recorded.
            Repair::CheckUpstream
            | Repair::CheckCooling
            | Repair::CheckCabling
            | Repair::CheckHost => return None,
        };
        Some(self.outcome == expected)
    }
}

fn rows(episodes: &[Episode]) -> Vec<OutcomeRow> {
    let mut rows: BTreeMap<(&str, &str, Option<&str>), OutcomeRow> = BTreeMap::new();
    for episode in episodes {
        let key = (&*episode.verdict, &*episode.reason, episode.repair.as_deref());
        let row = rows.entry(key).or_insert_with(|| OutcomeRow {
            verdict: episode.verdict.clone(),
            reason: episode.reason.clone(),
            repair: episode.repair.clone(),
            ..OutcomeRow::default()
        });
        row.episodes += 1;
        *row.outcomes.entry(episode.outcome.label().to_owned()).or_default() += 1;
        let right = episode.is_right();
        row.decided += u64::from(right.is_some());
        row.right += u64::from(right == Some(true));
    }
    let mut rows: Vec<OutcomeRow> = rows.into_values().collect();
    rows.sort_by_key(|row| std::cmp::Reverse(row.episodes));
    rows
}

#[cfg(test)]
mod tests {
    use super::*;
    use ib_mad::Guid;
    use serde_json::{Value, json};

    const LINK: LinkId = LinkId { low: PortKey::new(Guid(1), 1), high: PortKey::new(Guid(2), 3) };

    fn hours(hours: f64) -> SystemTime {
        SystemTime::UNIX_EPOCH + Duration::from_secs_f64(hours * 3600.0)
    }

    fn event(at: f64, kind: EventKind, detail: Value) -> Event {
        let is_of_link = kind != EventKind::CableChanged;
        Event {
            at: hours(at),
            fabric: "f".into(),
            kind: kind.label().into(),
            node: (!is_of_link).then_some(LINK.high.guid),
            port: (!is_of_link).then_some(LINK.high.number),
            link: is_of_link.then_some(LINK),
            place: String::new(),
            text: String::new(),
            detail,
        }
    }

    fn verdict(at: f64, to: &str, repair: Option<&str>) -> Event {
        let reasons = json!([{"reason": "bit_errors", "verdict": to}]);
        event(
            at,
            EventKind::VerdictChanged,
            json!({"to": to, "reasons": reasons, "repair": repair}),
        )
    }

    fn down(at: f64, seconds: f64) -> Event {
        event(at, EventKind::Flap, json!({"down_seconds": seconds, "down_max_seconds": seconds}))
    }

    fn replaced(at: f64) -> Event {
        event(at, EventKind::CableChanged, Value::Null)
    }

    /// Outcomes and whether the advice was right, of each episode until hour 100.
    fn found(events: &[Event]) -> Vec<(&'static str, Option<bool>)> {
        let episodes = episodes(events, hours(100.0));
        episodes.iter().map(|it| (it.outcome.label(), it.is_right())).collect()
    }

    #[test]
    fn outcome_is_what_preceded_a_day_without_verdicts() {
        let (reseat, swap) = (Some("reseat"), Some("swap_cable"));
        for (events, expected) in [
            (
                vec![verdict(1.0, "bad", reseat), down(2.0, 60.0), verdict(3.0, "ok", None)],
                ("replugged", Some(true)),
            ),
            (
                vec![verdict(1.0, "bad", swap), down(2.0, 60.0), verdict(3.0, "ok", None)],
                ("replugged", Some(false)),
            ),
            (
                vec![
                    verdict(1.0, "bad", swap),
                    down(2.0, 60.0),
                    replaced(2.0),
                    verdict(3.0, "ok", None),
                ],
                ("replaced", Some(true)),
            ),
            (
                vec![verdict(1.0, "watch", reseat), verdict(3.0, "ok", None)],
                ("by_itself", Some(false)),
            ),
            // A flap of the link itself is no repair.
            (
                vec![verdict(1.0, "bad", reseat), down(2.0, 1.0), verdict(3.0, "ok", None)],
                ("by_itself", Some(false)),
            ),
            (vec![verdict(1.0, "bad", reseat), down(2.0, 60.0)], ("open", None)),
            (vec![verdict(1.0, "bad", reseat), verdict(90.0, "ok", None)], ("open", None)),
            (
                vec![verdict(1.0, "bad", Some("check_host")), verdict(3.0, "ok", None)],
                ("by_itself", None),
            ),
        ] {
            assert_eq!(found(&events), [expected], "{events:?}");
        }
    }

    #[test]
    fn relapse_within_a_day_continues_the_episode() {
        let events = [
            verdict(1.0, "watch", Some("reseat")),
            down(2.0, 60.0),
            verdict(3.0, "ok", None),
            verdict(8.0, "bad", Some("swap_transceiver")),
            replaced(9.0),
            verdict(10.0, "ok", None),
            // More than a day later it is another one.
            verdict(60.0, "bad", Some("reseat")),
        ];
        assert_eq!(found(&events), [("replaced", Some(true)), ("open", None)]);
    }

    #[test]
    fn table_has_counts_and_no_names() {
        let events =
            [verdict(1.0, "bad", Some("reseat")), down(2.0, 60.0), verdict(3.0, "ok", None)];
        let rows = rows(&episodes(&events, hours(100.0)));
        let outcomes = Outcomes { version: "0.1.0".into(), days: 4.0, links: 1_000, rows };
        let text = outcomes.to_markdown();
        assert!(text.contains("1,000 links, 4 days"), "{text}");
        assert!(
            text.contains("| bad | bit_errors | reseat | 1 | 0 | 1 | 0 | 0 | 0 | 1 of 1 |"),
            "{text}"
        );
    }
}
