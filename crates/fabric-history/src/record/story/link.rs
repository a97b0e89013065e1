//! What a cable went through.

use std::fmt::Write;
use std::time::SystemTime;

use serde_json::{Value, json};

use crate::event::{About, Event, Kind, for_how_long, lengths};
use crate::model::time;
use ib_fabric::topology::{Link, LinkId};
use ib_health::outage::Loss;
use ib_health::verdict::Repair;
use ib_health::{LinkAssessment, Verdict, evidence};
use ib_mad::Moment;
use ib_mad::rate::{Speed, Width};

use super::Look;

/// What is remembered of a link: as it was last known.
#[derive(Clone, Copy, Debug)]
pub(super) struct LinkMemory {
    up: Option<bool>,
    verdict: Verdict,
    rate: Option<(Width, Speed)>,
    changed: Option<Moment>,
    /// The number of its latest loss.
    losses: u32,
}

impl LinkMemory {
    /// What is known of a link that was not there before; a later one is told of as it is from its next
    /// change on.
    pub fn new(found: &LinkAssessment, is_first: bool) -> Self {
        let losses = found.losses.as_deref().and_then(<[Loss]>::last);
        LinkMemory {
            up: found.up.filter(|_| is_first),
            verdict: Verdict::Unknown,
            rate: None,
            changed: found.outages.last_change,
            losses: losses.map_or(0, |loss| loss.number),
        }
    }
}

impl Look<'_> {
    pub(super) fn link(&mut self, memory: &mut LinkMemory, found: &LinkAssessment) {
        let snapshot = self.snapshot;
        let Some(id) = snapshot.fabric.link_id(found.link.0) else { return };
        let place = |link: Link| {
            let label = |port| evidence::port_label(snapshot, port);
            format!("{} – {}", label(link.0), label(link.1))
        };
        let mut tell = |kind, text, at, detail| {
            self.tell(kind, About::Link(id), place(found.link), text, at);
            self.detail(detail);
        };
        let outages = &found.outages;
        // A port of this host tells the moment itself; otherwise it is the sweep's.
        let news = outages.last_change.filter(|last| Some(*last) != memory.changed);
        let at = news.unwrap_or(snapshot.began);
        memory.changed = outages.last_change;
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
        // A link that was forgotten meanwhile counts its losses from 1 again.
        let newest = found.losses.as_deref().and_then(|losses| losses.last());
        let restarted = newest.is_some_and(|newest| newest.number < memory.losses);
        let known = if restarted { 0 } else { memory.losses };
        for loss in found.losses.iter().flat_map(|losses| losses.iter()) {
            if loss.number > known {
                memory.losses = loss.number;
                let (kind, text, detail) = lost(loss, |at| snapshot.anchor.wall_of(at));
                tell(kind, text, loss.at, detail);
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

    fn verdict(&self, id: LinkId, place: String, was: Verdict, found: &LinkAssessment) -> Event {
        let weighty = found.reasons.iter().filter(|(_, weight)| *weight >= Verdict::Watch);
        let because: Vec<_> = weighty
            .map(|(reason, weight)| {
                (
                    reason.label(),
                    weight.label(),
                    evidence::describe(reason, found, self.assessment, self.snapshot),
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
            // Later than the sweep if an event changed it.
            at: self.snapshot.anchor.wall_of(self.snapshot.ended.max(found.since)),
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

/// A loss as an event: its kind, text and detail.
fn lost(loss: &Loss, wall: impl Fn(Moment) -> SystemTime) -> (Kind, String, Value) {
    let mut detail = lengths(loss.down);
    detail["losses"] = loss.times.into();
    if let Some(until) = loss.until {
        detail["up_again"] = time::text(wall(until)).into();
    }
    let often = evidence::times(loss.times);
    let (kind, text) = match loss.expected {
        None => {
            detail["in_all"] = loss.flaps.into();
            (Kind::Flap, format!("lost {often}, by its own fault; {} in all", loss.flaps))
        }
        Some(why) => {
            detail["cause"] = why.label().into();
            (Kind::ExpectedLoss, format!("lost {often}: {}", why.label()))
        }
    };
    (kind, text + &for_how_long(loss.down), detail)
}
