//! A group of events with one cause, and what is known of it from them.

use std::collections::{BTreeMap, BTreeSet};
use std::time::{Duration, SystemTime};

use serde_json::Value;

use crate::EventKind;
use crate::event::{downtime_of, losses_of, verdict_of};
use crate::incidents::cage::Cage;
use crate::incidents::congestion::Root;
use crate::model::{Cable, Event};
use ib_fabric::topology::LinkId;
use ib_health::outage::{Downtime, ExpectedCause};
use ib_health::{Reason, Verdict};
use ib_mad::{Guid, PortKey};

/// Events of one kind that a group lists; further ones are only counted.
const MAX_OF_A_KIND: usize = 10;

/// What a group's events have in common.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum GroupKind {
    /// Nodes are down.
    Outage,
    /// One link.
    Link,
    /// Cables that were moved.
    Recabling,
    /// Ports that others wait for.
    Congestion,
    /// Counters that fell.
    Clear,
    /// Counters that stopped.
    Saturation,
    /// The subnet manager.
    Master,
    /// The exporter, and its view of the fabric.
    Monitoring,
    /// New nodes and links.
    Growth,
}

/// When a node of an outage went down, and came up again.
#[derive(Clone, Copy, Debug, Default)]
pub struct NodeOutage {
    /// The last time; nothing if it was down before the first event.
    pub down: Option<SystemTime>,
    pub up: Option<SystemTime>,
}

/// What is known of a link.
#[derive(Clone, Debug, Default)]
pub struct LinkFacts {
    pub place: String,
    /// When it went down, until it is up again.
    pub down_since: Option<SystemTime>,
    pub worst: Verdict,
    pub verdict: Verdict,
    /// Detail of the latest event with the worst verdict.
    pub decisive: Value,
    /// What to try first, as of the latest verdict that has any.
    pub repair: Option<String>,
    /// Unexpected link downs, and how long it was down in all.
    pub flaps: u64,
    pub down: Option<Downtime>,
    /// What its events said last of its rate.
    pub rate: Option<String>,
    /// The cages of switches that it ends in.
    pub cages: BTreeSet<Cage>,
}

/// A group of events.
#[derive(Clone, Debug)]
pub struct Group {
    pub kind: GroupKind,
    pub began: SystemTime,
    /// Whether it had begun before its first event.
    pub began_earlier: bool,
    /// Its latest event.
    pub last: SystemTime,
    /// Its latest event that is not about a verdict.
    settled: SystemTime,
    /// The latest flap of a link.
    flapped: Option<SystemTime>,
    /// When a start of the exporter interrupted it: what happened meanwhile is not known.
    pub interrupted: Option<SystemTime>,
    /// When it was found to be over without an event.
    pub found_over: Option<SystemTime>,
    pub nodes: BTreeMap<Guid, NodeOutage>,
    /// Whether a switch went down.
    pub has_switch: bool,
    pub links: BTreeMap<LinkId, LinkFacts>,
    pub ports: BTreeSet<PortKey>,
    pub roots: BTreeMap<PortKey, Root>,
    /// Why link downs were expected.
    pub expected: BTreeSet<&'static str>,
    /// What failed and has not recovered.
    pub failing: BTreeSet<EventKind>,
    /// The latest replacement: where, and what the event says.
    pub replaced: Option<(String, String)>,
    /// Whether the node of the former master was down.
    pub is_master_down: bool,
    /// The nodes whose counters fell.
    pub cleared: BTreeSet<Guid>,
    /// All of its events by kind.
    pub counts: BTreeMap<EventKind, usize>,
    pub events: Vec<Event>,
}

impl Group {
    /// A group without events.
    pub fn new(kind: GroupKind, began: SystemTime) -> Self {
        Group {
            kind,
            began,
            began_earlier: false,
            last: began,
            settled: began,
            flapped: None,
            interrupted: None,
            found_over: None,
            nodes: BTreeMap::new(),
            has_switch: false,
            links: BTreeMap::new(),
            ports: BTreeSet::new(),
            roots: BTreeMap::new(),
            expected: BTreeSet::new(),
            failing: BTreeSet::new(),
            replaced: None,
            is_master_down: false,
            cleared: BTreeSet::new(),
            counts: BTreeMap::new(),
            events: Vec::new(),
        }
    }

    /// The number of its events of a kind.
    pub fn count(&self, kind: EventKind) -> usize {
        self.counts.get(&kind).copied().unwrap_or(0)
    }

    /// Adds an event: what it says, and itself.
    pub fn add(&mut self, kind: EventKind, event: Event) {
        self.note(kind, &event);
        (self.began, self.last) = (self.began.min(event.at), self.last.max(event.at));
        if !matches!(kind, EventKind::VerdictChanged | EventKind::VerdictUpdated) {
            self.settled = self.settled.max(event.at);
        }
        let count = self.counts.entry(kind).or_default();
        *count += 1;
        if *count <= MAX_OF_A_KIND {
            self.events.push(event);
        }
    }

    /// Adds another group's events.
    pub fn absorb(&mut self, other: Group) {
        // It is over when both are.
        if self.found_over.is_some() || other.found_over.is_some() {
            let ended = self.ended().zip(other.ended());
            self.found_over = ended.map(|(one, other)| one.max(other));
        }
        (self.began, self.last) = (self.began.min(other.began), self.last.max(other.last));
        self.settled = self.settled.max(other.settled);
        self.flapped = self.flapped.max(other.flapped);
        self.began_earlier |= other.began_earlier;
        self.nodes.extend(other.nodes);
        self.has_switch |= other.has_switch;
        self.links.extend(other.links);
        self.ports.extend(other.ports);
        self.roots.extend(other.roots);
        self.expected.extend(other.expected);
        self.failing.extend(other.failing);
        self.cleared.extend(other.cleared);
        self.replaced = other.replaced.or(self.replaced.take());
        for (kind, count) in other.counts {
            *self.counts.entry(kind).or_default() += count;
        }
        let mut listed: BTreeMap<String, usize> = BTreeMap::new();
        self.events.extend(other.events);
        self.events.sort_by_key(|event| event.at);
        self.events.retain(|event| {
            let count = listed.entry(event.kind.clone()).or_default();
            *count += 1;
            *count <= MAX_OF_A_KIND
        });
    }

    fn note(&mut self, kind: EventKind, event: &Event) {
        let end = event.port_key();
        self.ports.extend(end);
        if let Some(link) = event.link {
            let facts = self.links.entry(link).or_default();
            let was = verdict_of(&event.detail, "from");
            self.began_earlier |= facts.worst < Verdict::Watch && was >= Some(Verdict::Watch);
            facts.place.clone_from(&event.place);
            facts.cages.extend(Cage::of_event(&event.detail));
            facts.note(kind, event);
        }
        match (kind, event.node) {
            (EventKind::NodeDown | EventKind::DeviceFatal, Some(node)) => {
                let outage = self.nodes.entry(node).or_default();
                if outage.up.take().is_some() {
                    outage.down = None;
                }
                outage.down.get_or_insert(event.at);
            }
            (EventKind::NodeUp, Some(node)) => {
                self.nodes.entry(node).or_default().up = Some(event.at);
            }
            (EventKind::CounterReset, Some(node)) => drop(self.cleared.insert(node)),
            (EventKind::Flap, _) => self.flapped = self.flapped.max(Some(event.at)),
            (EventKind::CableChanged, _) => {
                self.replaced = Some((event.place.clone(), event.text.clone()));
            }
            (EventKind::ExpectedLinkDown, _) => {
                let cause = event.detail["cause"].as_str().and_then(ExpectedCause::from_label);
                self.expected.extend(cause.map(ExpectedCause::label));
            }
            (EventKind::SweepFailed | EventKind::ReadsFailed, _) => {
                self.failing.insert(kind);
            }
            (EventKind::SweepRecovered, _) => drop(self.failing.remove(&EventKind::SweepFailed)),
            (EventKind::ReadsRecovered, _) => drop(self.failing.remove(&EventKind::ReadsFailed)),
            _ => {}
        }
        if let Some(end) = end {
            self.note_root(kind, end, event);
        }
    }

    fn note_root(&mut self, kind: EventKind, end: PortKey, event: &Event) {
        let root = Root {
            place: event.place.clone(),
            text: event.text.clone(),
            detail: event.detail.clone(),
            ended: None,
        };
        match kind {
            EventKind::CongestionStart => self.roots.entry(end).or_insert(root).ended = None,
            EventKind::CongestionEnd => {
                let known = self.roots.entry(end).or_insert(root);
                known.ended = Some(event.at);
                // The end knows the worst of the whole time.
                if !event.detail.is_null() {
                    (known.text, known.detail) = (event.text.clone(), event.detail.clone());
                }
            }
            _ => {}
        }
    }

    /// Its end; `None` while it lasts.
    pub fn ended(&self) -> Option<SystemTime> {
        if self.found_over.is_some() {
            return self.found_over;
        }
        match self.kind {
            GroupKind::Outage => {
                let mut ends = self.nodes.values().map(|node| node.up);
                // A link flaps on also while no sweep finds it down.
                let latest = self.flapped.unwrap_or(self.began);
                ends.try_fold(latest, |end, up| Some(end.max(up?)))
            }
            GroupKind::Link => {
                let is_bad =
                    |link: &LinkFacts| link.verdict >= Verdict::Watch && !link.is_held_only();
                let lasts = |link: &LinkFacts| is_bad(link) || link.down_since.is_some();
                let only_went_down = self.links.values().all(LinkFacts::is_held_only);
                let end = if only_went_down { self.settled } else { self.last };
                (!self.links.values().any(lasts)).then_some(end)
            }
            GroupKind::Congestion => {
                let mut ends = self.roots.values().map(|root| root.ended);
                ends.try_fold(self.began, |end, ended| Some(end.max(ended?)))
            }
            GroupKind::Monitoring => self.failing.is_empty().then_some(self.last),
            // The cables are in other ports: the links that they were do not come up again.
            GroupKind::Recabling
            | GroupKind::Clear
            | GroupKind::Saturation
            | GroupKind::Master
            | GroupKind::Growth => Some(self.last),
        }
    }

    /// Whether it lasts, or ended not longer than some time before a moment.
    pub fn is_recent(&self, at: SystemTime, within: Duration) -> bool {
        self.ended().is_none_or(|end| end.max(self.last) + within >= at)
    }

    /// Whether a link of it was lost unexpectedly.
    pub fn is_flapping(&self) -> bool {
        self.flapped.is_some()
    }

    /// Whether a verdict on one of its links was degraded or bad.
    pub fn has_verdict(&self) -> bool {
        self.links.values().any(|link| link.worst >= Verdict::Watch)
    }
}

impl LinkFacts {
    /// Those of a cable that had a verdict before the first event.
    pub fn judged_before(cable: &Cable) -> Self {
        let (place, verdict) = (cable.label(), cable.verdict);
        LinkFacts { place, verdict, worst: verdict, ..LinkFacts::default() }
    }

    fn note(&mut self, kind: EventKind, event: &Event) {
        match kind {
            EventKind::LinkDown => self.down_since = Some(event.at),
            EventKind::LinkUp => self.down_since = None,
            EventKind::Flap => {
                self.flaps = self.flaps.saturating_add(losses_of(&event.detail));
                self.add_downtime(event);
            }
            EventKind::ExpectedLinkDown => self.add_downtime(event),
            EventKind::RateChanged => self.rate = Some(event.text.clone()),
            EventKind::VerdictChanged | EventKind::VerdictUpdated => {
                let Some(to) = verdict_of(&event.detail, "to") else { return };
                if let Some(from) =
                    verdict_of(&event.detail, "from").filter(|from| *from >= Verdict::Watch)
                {
                    self.worst = self.worst.max(from);
                }
                self.verdict = to;
                // A bad cable that is pulled is down, and was bad for another reason.
                let tells_less = says_only_down(&event.detail) && !self.only_went_down();
                let is_decisive = to > self.worst || to == self.worst && !tells_less;
                if to >= Verdict::Watch && is_decisive {
                    self.decisive = event.detail.clone();
                }
                self.worst = self.worst.max(to);
                if to >= Verdict::Watch {
                    self.repair = event.detail["repair"].as_str().map(str::to_owned);
                }
            }
            _ => {}
        }
    }

    fn add_downtime(&mut self, event: &Event) {
        let Some(down) = downtime_of(&event.detail) else { return };
        let all = self.down.unwrap_or_default();
        let least = all.least.saturating_add(down.least);
        self.down = Some(Downtime { least, most: all.most.saturating_add(down.most) });
    }

    /// Whether it is degraded only because it went down: that is held for an hour after the link is up again.
    fn is_held_only(&self) -> bool {
        self.worst <= Verdict::Watch && self.only_went_down()
    }

    /// Whether its verdict says no more than that it went down.
    pub fn only_went_down(&self) -> bool {
        if self.decisive.is_null() {
            return self.worst < Verdict::Watch;
        }
        says_only_down(&self.decisive)
    }
}

/// Whether the detail of a verdict has no other reasons than that the link went down.
pub fn says_only_down(detail: &Value) -> bool {
    const DOWN: [Reason; 3] = [Reason::Flapping, Reason::NodeFlapping, Reason::Down];
    let reasons = detail["reasons"].as_array().into_iter().flatten();
    let mut reasons = reasons.filter_map(|reason| Reason::from_label(reason["reason"].as_str()?));
    reasons.all(|reason| DOWN.contains(&reason))
}
