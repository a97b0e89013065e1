//! What a cable went through.

use std::fmt::Write;
use std::time::Duration;

use serde_json::{Value, json};

use crate::fabric::rate::{Speed, Width};
use crate::fabric::topology::{Link, LinkId};
use crate::fabric::{Counter, Moment};
use crate::health::outage::Expected;
use crate::health::verdict::Repair;
use crate::health::{LinkFindings, Verdict, evidence};
use crate::history::event::{About, Event, Kind};

use super::Look;

/// What is remembered of a link: as it was last known.
#[derive(Clone, Copy, Debug)]
pub(super) struct LinkMemory {
    up: Option<bool>,
    verdict: Verdict,
    flaps: u32,
    expected: [u32; Expected::ALL.len()],
    rate: Option<(Width, Speed)>,
    changed: Option<Moment>,
    /// What both ends had counted of losses.
    downed: [Option<u64>; 2],
    /// The first and the latest sign of a loss that is not settled yet.
    signs: Option<(Moment, Moment)>,
}

/// A loss is counted when both ends have told, which may be sweeps after it; a sign of one that came
/// to nothing for so long belongs to no later one.
const SETTLED_AFTER: Duration = Duration::from_secs(5 * 60);

impl LinkMemory {
    /// What is known of a link that was not there before; a later one is told of as it is from its next
    /// change on.
    pub fn new(found: &LinkFindings, is_first: bool) -> Self {
        LinkMemory {
            up: found.up.filter(|_| is_first),
            verdict: Verdict::Unknown,
            flaps: found.outages.flaps,
            expected: found.outages.expected,
            rate: None,
            changed: found.outages.last_change,
            downed: [None; 2],
            signs: None,
        }
    }
}

impl Look<'_> {
    pub(super) fn link(&mut self, memory: &mut LinkMemory, found: &LinkFindings) {
        let snapshot = self.snapshot;
        let Some(id) = snapshot.fabric.link_id(found.link.0) else { return };
        let place = |link: Link| {
            let label = |port| evidence::port_label(snapshot, port);
            format!("{} – {}", label(link.0), label(link.1))
        };
        let lost_at = self.lost_at(memory, found);
        let mut tell = |kind, text, at, detail| {
            self.tell(kind, About::Link(id), place(found.link), text, at);
            self.detail(detail);
        };
        let outages = &found.outages;
        // A port of this host tells the moment itself; otherwise it is the sweep's.
        let news = outages.last_change.filter(|last| Some(*last) != memory.changed);
        let at = news.unwrap_or(snapshot.began);
        memory.changed = outages.last_change;
        let lost_at = lost_at.unwrap_or(at);
        if let Some(up) = found.up {
            match memory.up.replace(up) {
                Some(true) if !up => {
                    tell(Kind::LinkDown, "it carries nothing any more".into(), at, Value::Null);
                }
                Some(false) if up => {
                    tell(Kind::LinkUp, "it carries traffic again".into(), at, Value::Null);
                }
                _ => {}
            }
        }
        let lost =
            outages.flaps - std::mem::replace(&mut memory.flaps, outages.flaps).min(outages.flaps);
        if lost > 0 {
            memory.signs = None;
            tell(
                Kind::Flap,
                format!(
                    "lost {}, by its own fault; {} in all",
                    evidence::times(lost),
                    outages.flaps
                ),
                lost_at,
                json!({"losses": lost, "in_all": outages.flaps}),
            );
        }
        let before = std::mem::replace(&mut memory.expected, outages.expected);
        for (why, (&count, before)) in Expected::ALL.iter().zip(outages.expected.iter().zip(before))
        {
            if count > before {
                memory.signs = None;
                tell(
                    Kind::ExpectedLoss,
                    format!("lost {}: {}", evidence::times(count - before), why.label()),
                    lost_at,
                    json!({"losses": count - before, "cause": why.label()}),
                );
            }
        }
        let runs = [found.link.0, found.link.1].into_iter().find_map(|port| {
            let status = snapshot.status(port).filter(|status| status.link_up())?;
            status.width.zip(status.speed)
        });
        if let Some(now) = runs
            && let Some(was) = memory.rate.replace(now).filter(|was| *was != now)
        {
            let name =
                |(width, speed): (Width, Speed)| format!("{} {}", width.label(), speed.label());
            tell(
                Kind::Rate,
                format!("{} -> {}", name(was), name(now)),
                snapshot.began,
                Value::Null,
            );
        }
        let was = std::mem::replace(&mut memory.verdict, found.verdict);
        // That nothing is known yet of a sound link, or that it is sound, is no news.
        if was != found.verdict && was.max(found.verdict) >= Verdict::Watch {
            let event = self.verdict(id, place(found.link), was, found);
            self.told.push(event);
        }
    }

    /// When a loss that is not settled yet showed first.
    fn lost_at(&self, memory: &mut LinkMemory, found: &LinkFindings) -> Option<Moment> {
        let mut sign = (found.up == Some(false)).then_some(self.snapshot.began);
        for (port, last) in [found.link.0, found.link.1].into_iter().zip(&mut memory.downed) {
            let Some(reading) = self.snapshot.reading(port) else { continue };
            let Some(count) = reading.get(Counter::LinkDowned) else { continue };
            if last.replace(count).is_some_and(|last| last < count) {
                sign.get_or_insert(reading.at);
            }
        }
        memory.signs = match (memory.signs, sign) {
            (Some((first, _)), Some(now)) => Some((first, now)),
            (None, now) => now.map(|now| (now, now)),
            (Some((_, last)), None) if self.snapshot.began.since(last) > SETTLED_AFTER => None,
            (known, None) => known,
        };
        memory.signs.map(|(first, _)| first)
    }

    fn verdict(&self, id: LinkId, place: String, was: Verdict, found: &LinkFindings) -> Event {
        let weighty = found.reasons.iter().filter(|(_, weight)| *weight >= Verdict::Watch);
        let because: Vec<_> = weighty
            .map(|(reason, weight)| {
                (
                    reason.label(),
                    weight.label(),
                    evidence::of(reason, found, self.findings, self.snapshot),
                )
            })
            .collect();
        let mut text = format!("{} -> {}", was.label(), found.verdict.label());
        for (reason, _, evidence) in &because {
            // Writing to a string cannot fail.
            let _ = write!(text, "; {reason}: {evidence}");
        }
        let because: Vec<Value> = (because.iter())
            .map(|(reason, weight, evidence)| json!({"reason": reason, "verdict": weight, "evidence": evidence}))
            .collect();
        Event {
            at: self.snapshot.anchor.wall_of(self.snapshot.ended),
            kind: Kind::Verdict,
            about: About::Link(id),
            place,
            text,
            detail: json!({
                "from": was.label(), "to": found.verdict.label(), "reasons": because,
                "repair": found.repair.map(Repair::label),
            }),
        }
    }
}
