//! Events of links: state, losses, rate and verdict.

use std::fmt::Write;
use std::time::SystemTime;

use serde_json::{Value, json};

use crate::event::{About, EventKind, NewEvent, downtime_detail, downtime_text};
use crate::model::time;
use ib_fabric::topology::{Link, LinkId};
use ib_fabric::{PortIndex, Snapshot};
use ib_health::outage::Loss;
use ib_health::verdict::Repair;
use ib_health::{LinkAssessment, Verdict, evidence};
use ib_mad::Moment;
use ib_mad::rate::{Speed, Width};

use super::Sweep;

/// A link as it was last known.
#[derive(Clone, Copy, Debug)]
pub(super) struct LastLink {
    up: Option<bool>,
    verdict: Verdict,
    rate: Option<(Width, Speed)>,
    changed: Option<Moment>,
    /// The number of its latest loss.
    losses: u32,
}

impl LastLink {
    /// A link that was not there before. One that is found by a later sweep than the first has events only
    /// from its next change on.
    pub fn new(found: &LinkAssessment, is_first_sweep: bool) -> Self {
        let loss = found.losses.as_deref().and_then(<[Loss]>::last);
        LastLink {
            up: found.up.filter(|_| is_first_sweep),
            verdict: Verdict::Unknown,
            rate: None,
            changed: found.outages.last_change,
            losses: loss.map_or(0, |loss| loss.number),
        }
    }
}

impl Sweep<'_> {
    pub(super) fn update_link(&mut self, last: &mut LastLink, found: &LinkAssessment) {
        let snapshot = self.snapshot;
        let Some(id) = snapshot.fabric.link_id(found.link.0) else { return };
        let place = |link: Link| {
            let label = |port| evidence::port_label(snapshot, port);
            format!("{} – {}", label(link.0), label(link.1))
        };
        let mut push = |kind, text, at, detail| {
            self.push_with(kind, About::Link(id), place(found.link), text, at, detail);
        };
        // A port of this host reports the time of the change; of other ports only the sweep's is known.
        let last_change = found.outages.last_change;
        let reported = last_change.filter(|change| Some(*change) != last.changed);
        let at = reported.unwrap_or(snapshot.began);
        last.changed = last_change;
        if let Some(up) = found.up {
            match last.up.replace(up) {
                Some(true) if !up => {
                    push(
                        EventKind::LinkDown,
                        "it carries nothing any more".into(),
                        at,
                        Value::Null,
                    );
                }
                Some(false) if up => {
                    push(EventKind::LinkUp, "it carries traffic again".into(), at, Value::Null);
                }
                _ => {}
            }
        }
        // The losses of a link that was forgotten meanwhile are counted from 1 again.
        let latest = found.losses.as_deref().and_then(<[Loss]>::last);
        let is_restarted = latest.is_some_and(|latest| latest.number < last.losses);
        let known = if is_restarted { 0 } else { last.losses };
        for loss in found.losses.iter().flat_map(|losses| losses.iter()) {
            if loss.number > known {
                last.losses = loss.number;
                let (kind, text, detail) = describe_loss(loss, |at| snapshot.anchor.wall_of(at));
                push(kind, text, loss.at, detail);
            }
        }
        let mut ends = [found.link.0, found.link.1].into_iter();
        let rate = ends.find_map(|port| active_rate(snapshot, port));
        if let Some(now) = rate
            && let Some(was) = last.rate.replace(now).filter(|was| *was != now)
        {
            push(EventKind::Rate, rate_change(was, now), snapshot.began, Value::Null);
        }
        let was = std::mem::replace(&mut last.verdict, found.verdict);
        // A change between unknown and ok is no event.
        if was != found.verdict && was.max(found.verdict) >= Verdict::Watch {
            let event = self.verdict_event(id, place(found.link), was, found);
            self.events.push(event);
        }
    }

    fn verdict_event(
        &self,
        id: LinkId,
        place: String,
        was: Verdict,
        found: &LinkAssessment,
    ) -> NewEvent {
        let mut text = format!("{} -> {}", was.label(), found.verdict.label());
        let mut reasons = Vec::new();
        for (reason, weight) in found.reasons.iter().filter(|(_, weight)| *weight >= Verdict::Watch)
        {
            let (label, weight) = (reason.label(), weight.label());
            let evidence = evidence::describe(reason, found, self.assessment, self.snapshot);
            // Writing to a string cannot fail.
            let _ = write!(text, "; {label}: {evidence}");
            reasons.push(json!({"reason": label, "verdict": weight, "evidence": evidence}));
        }
        NewEvent {
            at: self.snapshot.anchor.wall_of(self.snapshot.ended.max(found.since)),
            kind: EventKind::Verdict,
            about: About::Link(id),
            place,
            text,
            detail: json!({
                "from": was.label(), "to": found.verdict.label(), "reasons": reasons,
                "repair": found.repair.map(Repair::label),
            }),
        }
    }
}

/// The width and speed of a port with a link.
pub(crate) fn active_rate(snapshot: &Snapshot, port: PortIndex) -> Option<(Width, Speed)> {
    let status = snapshot.status(port).filter(|status| status.link_up())?;
    status.width.zip(status.speed)
}

/// The text of a [`EventKind::Rate`] event.
pub(crate) fn rate_change(was: (Width, Speed), now: (Width, Speed)) -> String {
    let name = |(width, speed): (Width, Speed)| format!("{} {}", width.label(), speed.label());
    format!("{} -> {}", name(was), name(now))
}

/// The kind, text and detail of a loss's event.
fn describe_loss(loss: &Loss, wall: impl Fn(Moment) -> SystemTime) -> (EventKind, String, Value) {
    let mut detail = downtime_detail(loss.down);
    detail["losses"] = loss.times.into();
    if let Some(until) = loss.until {
        detail["up_again"] = time::text(wall(until)).into();
    }
    let times = evidence::times(loss.times);
    let (kind, text) = match loss.expected {
        None => {
            detail["in_all"] = loss.flaps.into();
            (EventKind::Flap, format!("lost {times}, by its own fault; {} in all", loss.flaps))
        }
        Some(why) => {
            detail["cause"] = why.label().into();
            (EventKind::ExpectedLoss, format!("lost {times}: {}", why.label()))
        }
    };
    (kind, text + &downtime_text(loss.down), detail)
}
