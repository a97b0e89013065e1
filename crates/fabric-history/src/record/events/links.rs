//! Events of links: state, losses, rate and verdict.

use std::time::{Duration, SystemTime};

use serde_json::{Value, json};

use crate::event::{About, EventKind, FlapCause, NewEvent, downtime_detail, flap_text};
use crate::model::time;
use crate::record::events::sweep::Sweep;
use ib_fabric::topology::{Link, LinkId, Node};
use ib_fabric::{Fabric, PortIndex, Snapshot};
use ib_health::outage::Loss;
use ib_health::outage::duration;
use ib_health::verdict::Repair;
use ib_health::{LinkAssessment, Reason, Verdict, explain};
use ib_mad::rate::{Speed, Width};
use ib_mad::register::text;
use ib_mad::{Guid, Moment};

/// The nodes that a multi-plane switch has at most: one for each plane.
const MAX_SWITCH_NODES: usize = 4;

/// A link by its ends, as its events name it.
pub(super) fn link_label(fabric: &Fabric, link: Link) -> String {
    format!("{} – {}", fabric.port_label(link.low), fabric.port_label(link.high))
}

/// A link as it was last known.
#[derive(Clone, Copy, Debug)]
pub(super) struct LastLink {
    up: Option<bool>,
    verdict: Verdict,
    rate: Option<(Width, Speed)>,
    changed: Option<Moment>,
    /// When it went down, until it is up again.
    down_at: Option<Moment>,
    /// The number of its latest loss.
    losses: u32,
    /// What was recorded last of its verdict.
    recorded: Option<RecordedVerdict>,
}

/// What a recorded verdict says beside itself.
#[derive(Clone, Copy, Debug)]
struct RecordedVerdict {
    repair: Option<Repair>,
    /// Its first reason.
    reason: Option<Reason>,
    at: Moment,
}

/// A verdict's first reason is recorded this often at most: two reasons of one weight may take turns. What to try
/// first is recorded whenever it changes: reports have to advise the same as the pages at that time.
const REASONS_APART: Duration = Duration::from_secs(600);

impl RecordedVerdict {
    fn of(found: &LinkAssessment, at: Moment) -> Self {
        RecordedVerdict {
            repair: found.repair,
            reason: found.reasons.worst().map(|(it, _)| it),
            at,
        }
    }

    /// Whether another one is to be recorded.
    fn is_outdated(self, now: RecordedVerdict) -> bool {
        let is_other_reason = self.reason != now.reason && now.at.since(self.at) >= REASONS_APART;
        self.repair != now.repair || is_other_reason
    }
}

impl LastLink {
    /// A link that is new. One that is found by a later sweep than the first has events only from its next change on.
    pub fn new(found: &LinkAssessment, is_first_sweep: bool) -> Self {
        let loss = found.losses.as_deref().and_then(<[Loss]>::last);
        LastLink {
            up: found.up.filter(|_| is_first_sweep),
            verdict: Verdict::Unknown,
            rate: None,
            changed: found.outages.last_change,
            down_at: None,
            losses: loss.map_or(0, |loss| loss.number),
            recorded: None,
        }
    }

    /// Adds the events of the link since it was last known.
    pub fn update(&mut self, found: &LinkAssessment, sweep: &mut Sweep) {
        let (snapshot, assessment) = (sweep.snapshot, sweep.assessment);
        let Some(id) = snapshot.fabric.link_id(found.link.low) else { return };
        let place = |link: Link| link_label(&snapshot.fabric, link);
        let mut push = |kind, text: String, at, detail| {
            let (at, about) = (snapshot.anchor.wall_of(at), About::Link(id));
            sweep.events.push(NewEvent { at, kind, about, place: place(found.link), text, detail });
        };
        // A port of this host reports the time of the change; of other ports only the sweep's is known.
        let last_change = found.outages.last_change;
        let reported = last_change.filter(|change| Some(*change) != self.changed);
        let at = reported.unwrap_or(snapshot.began);
        self.changed = last_change;
        if let Some(up) = found.up {
            match self.up.replace(up) {
                Some(true) if !up => {
                    self.down_at = Some(at);
                    let text = explain::reason(Reason::Down, found, assessment, snapshot);
                    let cages = cages(snapshot, found.link);
                    let detail = cages.map_or(Value::Null, |cages| json!({"cages": cages}));
                    push(EventKind::LinkDown, text, at, detail);
                }
                Some(false) if up => {
                    let down = self.down_at.take().map(|down| duration(at.since(down)));
                    let text =
                        down.map_or_else(|| "Active again".into(), |down| format!("after {down}"));
                    push(EventKind::LinkUp, text, at, Value::Null);
                }
                _ => {}
            }
        }
        // The losses of a link that was forgotten meanwhile are counted from 1 again.
        let latest = found.losses.as_deref().and_then(<[Loss]>::last);
        let is_restarted = latest.is_some_and(|latest| latest.number < self.losses);
        let known = if is_restarted { 0 } else { self.losses };
        for loss in found.losses.iter().flat_map(|losses| losses.iter()) {
            if loss.number > known {
                self.losses = loss.number;
                let (kind, text, mut detail) =
                    describe_loss(loss, |at| snapshot.anchor.wall_of(at));
                if let Some(cages) = cages(snapshot, found.link) {
                    detail["cages"] = cages;
                }
                // What caused a loss is known minutes later: until then it counts for nothing.
                detail["counted_at"] = time::text(snapshot.anchor.wall_of(snapshot.ended)).into();
                push(kind, text, loss.at, detail);
            }
        }
        let planes = found.plane_links().filter_map(|plane| snapshot.slower_end(plane.link));
        let up = planes.filter(|status| status.link_up());
        let slower = up.min_by_key(|status| (status.rate(), status.width));
        let rate = slower.and_then(|status| status.width.zip(status.speed));
        if let Some(now) = rate
            && let Some(was) = self.rate.replace(now).filter(|was| *was != now)
        {
            push(EventKind::RateChanged, rate_change(was, now), snapshot.began, Value::Null);
        }
        let was = std::mem::replace(&mut self.verdict, found.verdict);
        // A change between unknown and ok is no event.
        if was.max(found.verdict) < Verdict::Watch {
            return;
        }
        let now = RecordedVerdict::of(found, snapshot.ended);
        let is_outdated = self.recorded.is_none_or(|recorded| recorded.is_outdated(now));
        if was != found.verdict || is_outdated && found.verdict >= Verdict::Watch {
            self.recorded = Some(now);
            let event = sweep.verdict_event(id, place(found.link), was, found);
            sweep.events.push(event);
        }
    }
}

impl Sweep<'_> {
    fn verdict_event(
        &self,
        id: LinkId,
        place: String,
        was: Verdict,
        found: &LinkAssessment,
    ) -> NewEvent {
        let [from, to] = [was, found.verdict].map(|verdict| Verdict::word(verdict.label()));
        let is_same = was == found.verdict;
        let mut text = if is_same { format!("still {to}") } else { format!("from {from} to {to}") };
        let mut reasons = Vec::new();
        for (reason, weight) in found.reasons.iter().filter(|(_, weight)| *weight >= Verdict::Watch)
        {
            let (label, weight) = (reason.label(), weight.label());
            let evidence = explain::reason(reason, found, self.assessment, self.snapshot);
            text += if reasons.is_empty() { ": " } else { "; " };
            text += &evidence;
            reasons.push(json!({"reason": label, "verdict": weight, "evidence": evidence}));
        }
        if let Some(repair) = found.repair.filter(|_| is_same) {
            text += "; try first: ";
            text += repair.help();
        }
        let snapshot = self.snapshot;
        let mut detail = json!({
            "from": was.label(), "to": found.verdict.label(), "reasons": reasons,
            "repair": found.repair.map(Repair::label),
            "modules": self.modules(found.link),
        });
        if let Some(cages) = cages(snapshot, found.link) {
            detail["cages"] = cages;
        }
        NewEvent {
            at: snapshot.anchor.wall_of(snapshot.ended.max(found.since)),
            kind: if is_same { EventKind::VerdictUpdated } else { EventKind::VerdictChanged },
            about: About::Link(id),
            place,
            text,
            detail,
        }
    }

    /// The cable or modules of a link, as its ports report them: what a technician takes along.
    fn modules(&self, link: Link) -> Value {
        let modules = link.ports().into_iter().filter_map(|port| {
            let end = self.snapshot.fabric.port_key(port);
            let module = self.snapshot.hardware.port(end)?.plugged()?;
            let [part, serial] = [text(&module.part_number), text(&module.serial_number)];
            let is_known = !part.is_empty() || !serial.is_empty();
            is_known.then(
                || json!({"port": self.snapshot.fabric.port_label(port), "part": part, "serial": serial}),
            )
        });
        modules.collect()
    }
}

/// The cages of switches that a link ends in, if any is known: two ports of a twin-port module share one. The ASICs of
/// one multi-plane switch number its cages together, so that its SystemImageGUID identifies it. More nodes than such a
/// switch has are other switches.
fn cages(snapshot: &Snapshot, link: Link) -> Option<Value> {
    let cages = link.ports().into_iter().filter_map(|port| {
        let node = snapshot.fabric.node_of(port);
        let panel = snapshot.fabric.front_panel(port).filter(|_| node.is_switch())?;
        let identity = &node.identity;
        let system = identity.system_guid;
        let is_one = panel.plane.is_some() && is_one_switch(&snapshot.fabric, system);
        let guid = if is_one { system } else { identity.guid };
        Some(json!({"switch": node.name, "guid": guid.to_string(), "cage": panel.cage?}))
    });
    Some(cages.collect::<Vec<_>>()).filter(|cages| !cages.is_empty()).map(Value::from)
}

/// Whether a SystemImageGUID is that of one switch.
fn is_one_switch(fabric: &Fabric, system: Guid) -> bool {
    let is_its = |node: &&Node| node.is_switch() && node.identity.system_guid == system;
    system != Guid::default() && fabric.nodes.iter().filter(is_its).count() <= MAX_SWITCH_NODES
}

/// The width and speed of a port with a link.
pub(crate) fn active_rate(snapshot: &Snapshot, port: PortIndex) -> Option<(Width, Speed)> {
    let status = snapshot.status(port).filter(|status| status.link_up())?;
    status.width.zip(status.speed)
}

/// The text of a [`EventKind::RateChanged`] event.
pub(crate) fn rate_change(was: (Width, Speed), now: (Width, Speed)) -> String {
    let name = |(width, speed): (Width, Speed)| format!("{} {}", width.label(), speed.label());
    format!("from {} to {}", name(was), name(now))
}

/// The kind, text and detail of a loss's event.
fn describe_loss(loss: &Loss, wall: impl Fn(Moment) -> SystemTime) -> (EventKind, String, Value) {
    let mut detail = downtime_detail(loss.down);
    detail["losses"] = loss.times.into();
    if let Some(until) = loss.until {
        detail["up_again"] = time::text(wall(until)).into();
    }
    match loss.expected {
        None => {
            detail["flaps"] = loss.flaps.into();
            let cause = if loss.by_node { FlapCause::Node } else { FlapCause::Link };
            detail["cause"] = cause.label().into();
            (EventKind::Flap, flap_text(loss.times, loss.down, loss.flaps.into()), detail)
        }
        Some(why) => {
            detail["cause"] = why.label().into();
            let text = explain::link_downs(loss.times, loss.down);
            (EventKind::ExpectedLinkDown, format!("{text}; cause: {}", why.label()), detail)
        }
    }
}
