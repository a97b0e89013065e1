//! From one observation to the next: what happened. Reads no clock, and writes nothing.

use std::collections::{BTreeMap, HashMap};
use std::fmt::Write;
use std::sync::Arc;
use std::time::SystemTime;

use serde_json::{Value, json};

use crate::fabric::change::{self, Change};
use crate::fabric::rate::{Speed, Width};
use crate::fabric::topology::{End, Link, LinkId};
use crate::fabric::{Counter, Fabric, Guid, Moment, PortIndex, Snapshot};
use crate::health::congestion::GRACE;
use crate::health::evidence;
use crate::health::findings::Counting;
use crate::health::outage::Expected;
use crate::health::verdict::Repair;
use crate::health::{Findings, LinkFindings, Verdict};
use crate::history::event::{About, Event, Kind};
use crate::history::file::tier::Tier;
use crate::monitor::{Collector, Observation};

/// What is remembered of a link: as it was last known.
#[derive(Clone, Copy, Debug)]
struct LinkMemory {
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

/// What is remembered of a port.
#[derive(Clone, Copy, Debug, Default)]
struct PortMemory {
    resets: u32,
    saturated: u64,
}

/// A congestion that is not over.
#[derive(Clone, Debug)]
struct Root {
    place: String,
    seen: Moment,
}

/// What is remembered of a fabric from one observation to the next.
#[derive(Debug, Default)]
pub struct Story {
    fabric: Arc<Fabric>,
    begun: bool,
    failing: bool,
    links: Vec<(Link, LinkMemory)>,
    nodes: Vec<bool>,
    ports: Vec<PortMemory>,
    roots: BTreeMap<End, Root>,
}

impl Story {
    /// What happened since the observation before; the first one is what others are told against.
    /// `now` is what the wall says.
    pub fn follow(&mut self, seen: &Observation, now: SystemTime) -> Vec<Event> {
        let Some(snapshot) = &seen.snapshot else { return Vec::new() };
        let fails = Collector::ALL.iter().all(|collector| !seen.tally.success(*collector));
        let mut told = Vec::new();
        if fails != self.failing {
            self.failing = fails;
            let (kind, text, at) = if fails {
                (Kind::SweepFailed, "nobody can be asked any more: what happens is not seen", now)
            } else {
                let at = snapshot.anchor.wall_of(snapshot.began);
                (Kind::SweepBack, "the fabric can be asked again", at)
            };
            let (about, place) = (About::All, seen.fabric.clone());
            told.push(Event { at, kind, about, place, text: text.into(), detail: Value::Null });
        }
        // What cannot be asked has not changed, as far as anybody knows.
        if fails {
            return told;
        }
        let mut look = Look { snapshot, findings: &seen.findings, told };
        if !Arc::ptr_eq(&self.fabric, &snapshot.fabric) {
            self.follow_fabric(&mut look);
        }
        self.follow_nodes(&mut look);
        self.follow_links(&mut look);
        self.follow_ports(&mut look);
        self.follow_roots(&mut look);
        self.begun = true;
        look.told
    }

    /// Brings what is remembered to the places that things have in another fabric.
    fn follow_fabric(&mut self, look: &mut Look) {
        let (old, new) = (Arc::clone(&self.fabric), Arc::clone(&look.snapshot.fabric));
        let known: HashMap<LinkId, LinkMemory> = (self.links.drain(..))
            .filter_map(|(link, memory)| Some((old.link_id(link.0)?, memory)))
            .collect();
        let began = look.snapshot.began;
        if self.begun {
            for change in change::between(&old, &new) {
                match change {
                    Change::LinkMoved { port, from, to } => {
                        let text = format!("its cable led to {from}, and leads to {to}");
                        let place = format!("{} port {}", port.node, port.port);
                        let about = About::Port(port.guid, port.port);
                        look.tell(Kind::PortMoved, about, place, text, began);
                    }
                    Change::LinkCame(a, b) => {
                        let port = new.find((a.guid, a.port));
                        let id = port.and_then(|port| new.link_id(port));
                        if let Some(id) = id.filter(|id| !known.contains_key(id)) {
                            let place =
                                format!("{} port {} – {} port {}", a.node, a.port, b.node, b.port);
                            look.tell(
                                Kind::LinkNew,
                                About::Link(id),
                                place,
                                "it was not there before".into(),
                                began,
                            );
                        }
                    }
                    _ => {}
                }
            }
        }
        self.links = look
            .findings
            .links
            .iter()
            .map(|found| {
                let known = new.link_id(found.link.0).and_then(|id| known.get(&id).copied());
                (
                    found.link,
                    known.unwrap_or_else(|| LinkMemory {
                        // A new one is told of as it is from its next change on.
                        up: found.up.filter(|_| !self.begun),
                        verdict: Verdict::Unknown,
                        flaps: found.outages.flaps,
                        expected: found.outages.expected,
                        rate: None,
                        changed: found.outages.last_change,
                        downed: [None; 2],
                        signs: None,
                    }),
                )
            })
            .collect();
        let place = |end: End| old.find(end).map(|port| port.0 as usize);
        let ports = new.port_indexes().zip(&look.findings.ports);
        self.ports = ports
            .map(|(port, found)| {
                let known = place(new.end(port)).and_then(|place| self.ports.get(place).copied());
                known.unwrap_or_else(|| PortMemory {
                    resets: found.counting.resets,
                    saturated: filled(&found.counting),
                })
            })
            .collect();
        let nodes = std::mem::take(&mut self.nodes);
        for index in new.node_indexes() {
            let node = new.node(index);
            let guid = node.identity.guid;
            let known = old.node_by_guid(guid).and_then(|old| nodes.get(old.0 as usize).copied());
            if known.is_none() && self.begun {
                let text = format!("a {} that was not there before", node.identity.kind.label());
                look.tell(Kind::NodeNew, About::Node(guid), node.name.clone(), text, began);
            }
            self.nodes.push(known.unwrap_or_else(|| look.snapshot.is_up(index)));
        }
        self.fabric = new;
    }

    fn follow_nodes(&mut self, look: &mut Look) {
        let fabric = &self.fabric;
        for (index, was_up) in fabric.node_indexes().zip(&mut self.nodes) {
            let is_up = look.snapshot.is_up(index);
            if is_up == std::mem::replace(was_up, is_up) {
                continue;
            }
            let node = fabric.node(index);
            let (kind, text) = match (is_up, node.present()) {
                (true, _) => (Kind::NodeBack, "it answers again"),
                (false, true) => (Kind::NodeGone, "it does not answer"),
                (false, false) => (Kind::NodeGone, "no cable leads to it any more"),
            };
            let about = About::Node(node.identity.guid);
            look.tell(kind, about, node.name.clone(), text.into(), look.snapshot.began);
        }
    }

    fn follow_links(&mut self, look: &mut Look) {
        let findings = look.findings;
        for ((_, memory), found) in self.links.iter_mut().zip(&findings.links) {
            look.link(memory, found);
        }
    }

    fn follow_ports(&mut self, look: &mut Look) {
        let fabric = Arc::clone(&self.fabric);
        let mut fell: BTreeMap<Guid, Vec<PortIndex>> = BTreeMap::new();
        let findings = look.findings;
        for ((port, memory), found) in
            fabric.port_indexes().zip(&mut self.ports).zip(&findings.ports)
        {
            let counting = &found.counting;
            if std::mem::replace(&mut memory.resets, counting.resets) != counting.resets {
                fell.entry(fabric.end(port).0).or_default().push(port);
            }
            let mask = filled(counting);
            let new = mask & !std::mem::replace(&mut memory.saturated, mask);
            for counter in Counter::all().filter(|counter| new >> *counter as usize & 1 == 1) {
                let name = counter.row().metric;
                let text = format!("{name} is full, and counts no further");
                let place = evidence::port_label(look.snapshot, port);
                look.tell(
                    Kind::Saturation,
                    fabric.end(port).into(),
                    place,
                    text,
                    look.snapshot.ended,
                );
            }
        }
        for (guid, ports) in fell {
            let Some(&first) = ports.first() else { continue };
            let (about, place) = if ports.len() == 1 {
                (fabric.end(first).into(), evidence::port_label(look.snapshot, first))
            } else {
                (About::Node(guid), fabric.node_of(first).name.clone())
            };
            let text = match ports.len() {
                1 => "counters fell".into(),
                count => format!("counters of {count} ports fell"),
            };
            look.tell(Kind::CounterReset, about, place, text, look.snapshot.ended);
        }
    }

    /// Jobs communicate in bursts: a congestion that was gone for no longer than the judge's own
    /// patience is the same one.
    fn follow_roots(&mut self, look: &mut Look) {
        let at = look.snapshot.ended;
        for region in &look.findings.regions {
            let end = self.fabric.end(region.root);
            let place = evidence::port_label(look.snapshot, region.root);
            if let Some(root) = self.roots.get_mut(&end) {
                root.seen = at;
                continue;
            }
            let share = f64::from(region.share) * 100.0;
            let text = format!(
                "ports that wait: {}, up to {share:.0} % of the time ({})",
                region.ports,
                region.level.label()
            );
            look.tell(Kind::CongestionBegan, end.into(), place.clone(), text, at);
            self.roots.insert(end, Root { place, seen: at });
        }
        self.roots.retain(|end, root| {
            let is_over = at.since(root.seen) > GRACE;
            if is_over {
                let (kind, place) = (Kind::CongestionEnded, root.place.clone());
                let text = "no ports wait for it any more".into();
                look.tell(kind, (*end).into(), place, text, root.seen);
            }
            !is_over
        });
    }
}

/// An observation, and what it tells.
struct Look<'a> {
    snapshot: &'a Snapshot,
    findings: &'a Findings,
    told: Vec<Event>,
}

impl Look<'_> {
    fn tell(&mut self, kind: Kind, about: About, place: String, text: String, at: Moment) {
        let at = self.snapshot.anchor.wall_of(at);
        self.told.push(Event { at, kind, about, place, text, detail: Value::Null });
    }

    fn link(&mut self, memory: &mut LinkMemory, found: &LinkFindings) {
        let snapshot = self.snapshot;
        let Some(id) = snapshot.fabric.link_id(found.link.0) else { return };
        let place = |link: Link| {
            let label = |port| evidence::port_label(snapshot, port);
            format!("{} – {}", label(link.0), label(link.1))
        };
        let lost_at = self.lost_at(memory, found);
        let mut tell =
            |kind, text, at| self.tell(kind, About::Link(id), place(found.link), text, at);
        let outages = &found.outages;
        // A port of this host tells the moment itself; otherwise it is the sweep's.
        let news = outages.last_change.filter(|last| Some(*last) != memory.changed);
        let at = news.unwrap_or(snapshot.began);
        memory.changed = outages.last_change;
        let lost_at = lost_at.unwrap_or(at);
        if let Some(up) = found.up {
            match memory.up.replace(up) {
                Some(true) if !up => tell(Kind::LinkDown, "it carries nothing any more".into(), at),
                Some(false) if up => tell(Kind::LinkUp, "it carries traffic again".into(), at),
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
            tell(Kind::Rate, format!("{} -> {}", name(was), name(now)), snapshot.began);
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

/// One bit a counter that is or was full. Those that grow all the time are full sooner or later, and
/// nobody can do anything about it.
fn filled(counting: &Counting) -> u64 {
    let rare = Counter::all().filter(|counter| Tier::of(*counter) == Tier::Rare);
    let filled = rare.filter(|counter| counting.was_saturated(*counter));
    filled.fold(0, |mask, counter| mask | 1 << counter as usize)
}

#[cfg(test)]
mod tests;
