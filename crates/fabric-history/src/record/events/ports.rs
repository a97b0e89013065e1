//! Events of links: state, losses, rate and verdict; and of ports: counters that were reset, are saturated, or are
//! not read.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use serde_json::{Value, json};

use crate::event::{About, EventKind, FlapCause, NewEvent, downtime_detail, flap_text};
use crate::file::record_kind::RecordKind;
use crate::model::time;
use crate::record::events::{EventDetector, Sweep};
use display_text::plural;
use ib_fabric::topology::{Link, LinkId};
use ib_fabric::{PortIndex, Snapshot};
use ib_health::counter_status::CounterStatus;
use ib_health::outage::{Loss, duration};
use ib_health::verdict::Repair;
use ib_health::{LinkAssessment, Reason, Verdict, explain};
use ib_mad::port_state::PortStatus;
use ib_mad::rate::{Speed, Width};
use ib_mad::reading::CounterSet;
use ib_mad::register::text;
use ib_mad::{Guid, Moment};

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
    told: Option<ToldVerdict>,
}

/// What a recorded verdict says beside itself.
#[derive(Clone, Copy, Debug)]
struct ToldVerdict {
    repair: Option<Repair>,
    /// Its first reason.
    reason: Option<Reason>,
    at: Moment,
}

/// A verdict's first reason is recorded this often at most: two reasons of one weight may take turns. What to try
/// first is recorded whenever it changes: reports have to advise the same as the pages at that time.
const REASONS_APART: Duration = Duration::from_secs(600);

impl ToldVerdict {
    fn of(found: &LinkAssessment, at: Moment) -> Self {
        ToldVerdict { repair: found.repair, reason: found.reasons.worst().map(|(it, _)| it), at }
    }

    /// Whether another one is to be recorded.
    fn is_outdated(self, now: ToldVerdict) -> bool {
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
            told: None,
        }
    }
}

impl Sweep<'_> {
    pub(super) fn update_link(&mut self, last: &mut LastLink, found: &LinkAssessment) {
        let (snapshot, assessment) = (self.snapshot, self.assessment);
        let Some(id) = snapshot.fabric.link_id(found.link.low) else { return };
        let place = |link: Link| {
            format!(
                "{} – {}",
                snapshot.fabric.port_label(link.low),
                snapshot.fabric.port_label(link.high)
            )
        };
        let mut push = |kind, text: String, at, detail| {
            let (at, about) = (snapshot.anchor.wall_of(at), About::Link(id));
            self.events.push(NewEvent { at, kind, about, place: place(found.link), text, detail });
        };
        // A port of this host reports the time of the change; of other ports only the sweep's is known.
        let last_change = found.outages.last_change;
        let reported = last_change.filter(|change| Some(*change) != last.changed);
        let at = reported.unwrap_or(snapshot.began);
        last.changed = last_change;
        if let Some(up) = found.up {
            match last.up.replace(up) {
                Some(true) if !up => {
                    last.down_at = Some(at);
                    let text = explain::reason(Reason::Down, found, assessment, snapshot);
                    push(EventKind::LinkDown, text, at, Value::Null);
                }
                Some(false) if up => {
                    let down = last.down_at.take().map(|down| duration(at.since(down)));
                    let text =
                        down.map_or_else(|| "Active again".into(), |down| format!("after {down}"));
                    push(EventKind::LinkUp, text, at, Value::Null);
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
        let mut ends = found.link.ports().into_iter();
        let rate = ends.find_map(|port| active_rate(snapshot, port));
        if let Some(now) = rate
            && let Some(was) = last.rate.replace(now).filter(|was| *was != now)
        {
            push(EventKind::RateChanged, rate_change(was, now), snapshot.began, Value::Null);
        }
        let was = std::mem::replace(&mut last.verdict, found.verdict);
        // A change between unknown and ok is no event.
        if was.max(found.verdict) < Verdict::Watch {
            return;
        }
        let now = ToldVerdict::of(found, snapshot.ended);
        let is_outdated = last.told.is_none_or(|told| told.is_outdated(now));
        if was != found.verdict || is_outdated && found.verdict >= Verdict::Watch {
            last.told = Some(now);
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
        NewEvent {
            at: snapshot.anchor.wall_of(snapshot.ended.max(found.since)),
            kind: if is_same { EventKind::VerdictUpdated } else { EventKind::VerdictChanged },
            about: About::Link(id),
            place,
            text,
            detail: json!({
                "from": was.label(), "to": found.verdict.label(), "reasons": reasons,
                "repair": found.repair.map(Repair::label),
                "modules": self.modules(found.link),
            }),
        }
    }
}

impl Sweep<'_> {
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

/// How many nodes an event's text names.
const MAX_NAMED: usize = 5;

/// A port as it was last known.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct LastPort {
    resets: u32,
    /// See [`saturated`].
    saturated: CounterSet,
    /// Whether its counters were ever read.
    was_read: bool,
    /// Sweeps since its counters were read, while its node responded and it had a link.
    missed: u32,
    /// How often its link had gone down or retrained when the reason was last reported, or when it was first read.
    pub link_downs: Option<u64>,
}

impl LastPort {
    pub fn new(counting: &CounterStatus) -> Self {
        let (resets, saturated) = (counting.resets, saturated(counting));
        LastPort { resets, saturated, ..LastPort::default() }
    }
}

/// After a time without resets of a node the next one is an event again.
const RESETS_APART: Duration = Duration::from_secs(3600);

/// Resets of a node's ports, none of which was long after the one before: those of a tool that clears again and again.
#[derive(Clone, Copy, Debug)]
pub(super) struct RepeatedResets {
    times: u32,
    last: Moment,
}

impl EventDetector {
    /// Resets and saturation. Resets of several ports of a node are one event, and so are repeated resets after the first.
    pub(super) fn update_ports(&mut self, sweep: &mut Sweep) {
        let fabric = Arc::clone(&self.fabric);
        let (assessment, ended) = (sweep.assessment, sweep.snapshot.ended);
        let mut reset: BTreeMap<Guid, Vec<PortIndex>> = BTreeMap::new();
        let ports = fabric.port_indexes().zip(&mut self.ports).zip(&assessment.ports);
        for ((port, last), found) in ports {
            let counting = &found.counters;
            if std::mem::replace(&mut last.resets, counting.resets) != counting.resets {
                reset.entry(fabric.port_key(port).guid).or_default().push(port);
            }
            if last.link_downs.is_none() {
                last.link_downs = sweep.snapshot.link_downs(port);
            }
            let saturated = saturated(counting);
            let known = std::mem::replace(&mut last.saturated, saturated);
            for counter in saturated.without(known).iter() {
                let text = format!("{} is saturated", counter.row().metric);
                let (about, place) =
                    (fabric.port_key(port).into(), sweep.snapshot.fabric.port_label(port));
                sweep.push(EventKind::CounterSaturated, about, place, text, ended);
            }
        }
        self.resets.retain(|_, resets| ended.since(resets.last) <= RESETS_APART);
        for (guid, ports) in reset {
            let resets =
                self.resets.entry(guid).or_insert(RepeatedResets { times: 0, last: ended });
            let since = ended.since(std::mem::replace(&mut resets.last, ended));
            resets.times = resets.times.saturating_add(1);
            if resets.times > 2 {
                continue;
            }
            let again = if resets.times == 2 {
                let (since, apart) = (duration(since), duration(RESETS_APART));
                format!(
                    " again after {since}; no more of these are reported until none is seen for {apart}"
                )
            } else {
                String::new()
            };
            let (about, place, text) = match *ports {
                [] => continue,
                [port] => {
                    let place = sweep.snapshot.fabric.port_label(port);
                    (
                        fabric.port_key(port).into(),
                        place,
                        "counters were cleared or reset".to_owned(),
                    )
                }
                [first, ..] => {
                    let text = format!("counters of {} ports were cleared or reset", ports.len());
                    (About::Node(guid), fabric.node_of(first).name.clone(), text)
                }
            };
            let (text, kind) = (text + &again, EventKind::CounterReset);
            let repeated =
                if resets.times == 2 { json!({ "repeated": true }) } else { Value::Null };
            sweep.push_detailed(kind, about, place, text, ended, repeated);
        }
    }

    /// Ports with a link whose node responds, but whose counters are not read.
    pub(super) fn update_reads(&mut self, sweep: &mut Sweep) {
        let snapshot = sweep.snapshot;
        let mut unread: BTreeMap<&str, usize> = BTreeMap::new();
        for (port, last) in self.fabric.port_indexes().zip(&mut self.ports) {
            if snapshot.reading(port).is_some() {
                (last.was_read, last.missed) = (true, 0);
            } else if last.was_read && snapshot.status(port).is_some_and(PortStatus::link_up) {
                last.missed += 1;
                // The counters of a node that responds again are read from the next sweep on.
                if last.missed >= 2 {
                    *unread.entry(&self.fabric.node_of(port).name).or_default() += 1;
                }
            }
        }
        let ports_of =
            |(node, ports): (&&str, &usize)| format!("{node} ({})", plural(*ports, "port"));
        let nodes: Vec<String> = unread.iter().take(MAX_NAMED).map(ports_of).collect();
        let more = match unread.len().saturating_sub(MAX_NAMED) {
            0 => String::new(),
            more => format!(", and {} more", plural(more, "node")),
        };
        let text = format!("counters not read: {}{more}", nodes.join(", "));
        self.fabric_wide.update_unread(!unread.is_empty(), text, sweep);
    }
}

/// The counters that are or were saturated. Without traffic counters and those that grow on a healthy
/// fabric: these saturate sooner or later, and nothing can be done about it.
fn saturated(counting: &CounterStatus) -> CounterSet {
    let mut saturated = counting.ever_saturated;
    for counter in counting.ever_saturated.iter() {
        let is_rare = RecordKind::of(counter) == RecordKind::ErrorDeltas;
        saturated.set(counter, is_rare && !counter.is_benign());
    }
    saturated
}
