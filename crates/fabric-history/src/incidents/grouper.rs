//! Assigns each event to a group, in the order of time.

use std::collections::HashMap;
use std::time::{Duration, SystemTime};

use crate::EventKind;
use crate::event::verdict_of;
use crate::incidents::group::{Group, GroupKind, says_only_down};
use crate::incidents::places::Places;
use crate::model::Event;
use ib_fabric::topology::LinkId;
use ib_health::Verdict;
use ib_mad::{Guid, PortKey};

/// What one sweep finds at once has times within this: its start, its end, and the times that devices report.
const AT_ONCE: Duration = Duration::from_secs(5);

/// Events of one cause that are found in different sweeps: links go down up to this long before their node is
/// missing, and counters of a whole fabric are cleared within this.
pub(super) const NEAR: Duration = Duration::from_secs(120);

/// What follows an outage, also after its end: devices are asked for reasons and cables every few minutes.
const AFTERMATH: Duration = Duration::from_secs(600);

/// A link whose verdict returns within this is the same incident: a cable at its limit is one, not ten.
const RELAPSE: Duration = Duration::from_secs(6 * 3600);

/// Events of a fabric's groups in memory, 0.7 to 0.9 kB each: 3,000 reboots have 21,000.
const MAX_EVENTS: usize = 50_000;

/// After so many new groups the events are counted.
const COUNTED_EACH: usize = 1_024;

/// Groups among which the outage of a former master is looked for.
const MAX_LOOKED: usize = 1_000;

/// Where a group is among all.
type Index = usize;

/// Groups the events of one fabric.
#[derive(Debug, Default)]
pub struct Grouper {
    pub places: Places,
    /// Groups that were dropped because there were too many.
    pub dropped: usize,
    /// By the order in which they began; those that another one absorbed, or that were dropped, are gone.
    pub(super) groups: Vec<Option<Group>>,
    /// The latest group of each.
    pub(super) of_node: HashMap<Guid, Index>,
    pub(super) of_link: HashMap<LinkId, Index>,
    of_port: HashMap<PortKey, Index>,
    /// The congestion of which a port was a root.
    of_root: HashMap<PortKey, Index>,
    of_kind: HashMap<GroupKind, Index>,
}

impl Grouper {
    /// Adds an event; those of a kind that is not known are ignored.
    pub fn add(&mut self, event: Event) {
        let Some(kind) = EventKind::from_label(&event.kind) else { return };
        self.places.learn_event(&event);
        let index = match kind {
            EventKind::NodeDown | EventKind::NodeUp | EventKind::DeviceFatal => {
                self.for_node(kind, &event)
            }
            EventKind::LinkDown
            | EventKind::LinkUp
            | EventKind::Flap
            | EventKind::ExpectedLinkDown
            | EventKind::RateChanged
            | EventKind::VerdictChanged
            | EventKind::VerdictUpdated
            | EventKind::LinkDownReason
            | EventKind::CableChanged => self.for_link(kind, &event),
            EventKind::CableMoved => self.for_moved(&event),
            EventKind::CongestionStart | EventKind::CongestionEnd => self.for_congestion(&event),
            EventKind::CounterReset => self.for_reset(&event),
            EventKind::CounterSaturated => self
                .of_event(&event, event.at, AFTERMATH)
                .unwrap_or_else(|| self.latest(GroupKind::Saturation, event.at, NEAR)),
            EventKind::MasterChanged => self.for_master(&event),
            EventKind::NodeAdded | EventKind::LinkAdded => self
                .of_event(&event, event.at, AFTERMATH)
                .unwrap_or_else(|| self.latest(GroupKind::Growth, event.at, NEAR)),
            EventKind::ExporterStart
            | EventKind::ExporterStop
            | EventKind::HistoryDisplaced
            | EventKind::SweepFailed
            | EventKind::SweepRecovered
            | EventKind::ReadsFailed
            | EventKind::ReadsRecovered
            | EventKind::ClockJump => {
                if kind == EventKind::ExporterStart {
                    self.interrupt(event.at);
                }
                self.latest(GroupKind::Monitoring, event.at, AFTERMATH)
            }
        };
        self.put(index, kind, event);
    }

    fn put(&mut self, index: Index, kind: EventKind, event: Event) {
        let Some(group) = self.groups.get_mut(index).and_then(Option::as_mut) else { return };
        if let Some(node) = event.node {
            if matches!(kind, EventKind::NodeDown | EventKind::NodeUp | EventKind::DeviceFatal) {
                self.of_node.insert(node, index);
            } else if let Some(port) = event.port {
                let of = match group.kind {
                    GroupKind::Congestion => Some(&mut self.of_root),
                    GroupKind::Link | GroupKind::Recabling => Some(&mut self.of_port),
                    _ => None,
                };
                if let Some(of) = of {
                    of.insert(PortKey::new(node, port), index);
                }
            }
        }
        group.has_switch |= kind == EventKind::NodeDown
            && event.node.is_some_and(|node| self.places.is_switch(node));
        // The verdict on a link that went down with its node is held for an hour after that.
        let has_verdict = kind == EventKind::VerdictChanged || group.kind == GroupKind::Link;
        if let Some(link) = event.link.filter(|_| has_verdict) {
            self.of_link.insert(link, index);
        }
        group.add(kind, event);
    }

    /// The group of an outage.
    fn for_node(&mut self, kind: EventKind, event: &Event) -> Index {
        let Some(guid) = event.node else { return self.begin(GroupKind::Outage, event.at) };
        if let Some(index) = self.known(self.of_node.get(&guid), event.at, Duration::ZERO) {
            return index;
        }
        // A link that flaps takes its HCA along whenever a sweep finds it down.
        if let Some(index) = self.flaps_of(guid, event.at) {
            return index;
        }
        // A bad cable cut the node off.
        if let Some(index) = self.judged_link_of(guid, event.at) {
            return index;
        }
        let latest = self.known(self.of_kind.get(&GroupKind::Outage), event.at, Duration::ZERO);
        if let Some(index) = latest.filter(|index| self.has_part(*index, guid, event.at)) {
            return index;
        }
        let index = self.begin(GroupKind::Outage, event.at);
        if kind == EventKind::NodeUp
            && let Some(group) = self.group_mut(index)
        {
            group.began_earlier = true;
        }
        self.absorb_recent(index, event.at, |places, group| {
            let links = group.links.keys().flat_map(|link| link.ends());
            let of_node = links.chain(group.ports.iter().copied()).any(|end| end.guid == guid);
            let is_plain_link = group.kind == GroupKind::Link && of_node && !group.has_verdict();
            // The switch of HCAs that were found missing a moment earlier.
            let is_cut_off = places.is_switch(guid)
                && group.kind == GroupKind::Outage
                && group.nodes.keys().all(|node| places.is_neighbor(*node, guid));
            is_plain_link || is_cut_off
        });
        index
    }

    /// Whether a node that goes down is part of an outage: it is behind its nodes, or went down with others of its kind.
    fn has_part(&self, index: Index, guid: Guid, at: SystemTime) -> bool {
        let Some(group) = self.group(index) else { return false };
        let is_down = |of: Guid| group.nodes.get(&of).is_some_and(|it| it.up.is_none());
        if self.places.is_behind(guid, is_down) {
            return true;
        }
        let is_switch = self.places.is_switch(guid);
        let near = if is_switch { NEAR } else { AT_ONCE };
        if is_switch == group.has_switch && group.began + near >= at {
            return true;
        }
        let host = self.places.host(guid).filter(|_| group.began + NEAR >= at);
        host.is_some() && group.nodes.keys().any(|of| self.places.host(*of) == host)
    }

    /// The group of a link's event, or of a port that has a link.
    fn for_link(&mut self, kind: EventKind, event: &Event) -> Index {
        let at = event.at;
        let end = event.port_key();
        let link = event.link.or_else(|| self.places.link_of(end?));
        let is_bad = kind == EventKind::VerdictChanged && tells_more_than_down(event);
        let of_link = self.known(link.and_then(|link| self.of_link.get(&link)), at, RELAPSE);
        let of_link =
            of_link.filter(|index| !is_bad || self.kind_of(*index) == Some(GroupKind::Link));
        // A link that was bad before its node went down stays an incident of its own.
        let judged = of_link.filter(|index| self.is_judged(*index));
        let outage = || self.outage_of(link, end, at).filter(|_| !is_bad);
        let moved = || {
            let ends = link.map(LinkId::ends);
            let ends = ends.iter().flatten().chain(&end);
            let of_port = ends.filter_map(|end| self.of_port.get(end));
            let mut known = of_port.filter_map(|index| self.known(Some(index), at, AFTERMATH));
            known.find(|index| self.kind_of(*index) == Some(GroupKind::Recabling))
        };
        if let Some(index) = judged.or_else(outage).or_else(moved).or(of_link) {
            return index;
        }
        let of_port = end.and_then(|end| self.of_port.get(&end));
        if let Some(index) = self.known(of_port, at, AFTERMATH).filter(|_| link.is_none()) {
            return index;
        }
        let index = self.begin(GroupKind::Link, at);
        if let Some(link) = link {
            self.of_link.insert(link, index);
            if let Some(group) = self.group_mut(index) {
                group.links.entry(link).or_default();
            }
        }
        index
    }

    fn for_moved(&mut self, event: &Event) -> Index {
        let index = self.latest(GroupKind::Recabling, event.at, NEAR);
        let end = event.port_key();
        self.absorb_recent(index, event.at, |_, group| {
            let ends = group.links.keys().flat_map(|link| link.ends());
            let mut ends = ends.chain(group.ports.iter().copied());
            // Links that were bad before are not explained by it.
            let began = group.began + AFTERMATH >= event.at;
            group.kind == GroupKind::Link && began && ends.any(|of| Some(of) == end)
        });
        index
    }

    fn for_congestion(&mut self, event: &Event) -> Index {
        let end = event.port_key();
        let of_root = end.and_then(|end| self.of_root.get(&end));
        let known = self.known(of_root, event.at, AFTERMATH);
        let latest = self.of_kind.get(&GroupKind::Congestion).copied().filter(|index| {
            // One incast makes several ports roots, in the same sweep or the next ones.
            let group = self.group(*index);
            group.is_some_and(|group| group.began + NEAR >= event.at)
        });
        known.or(latest).unwrap_or_else(|| self.begin(GroupKind::Congestion, event.at))
    }

    fn for_master(&mut self, event: &Event) -> Index {
        // `from host-1 to host-2`
        let former = event.text.strip_prefix("from ").and_then(|rest| rest.split_once(" to "));
        let is_down = former.is_some_and(|(former, _)| {
            let outages = self
                .groups
                .iter()
                .rev()
                .take(MAX_LOOKED)
                .flatten()
                .filter(|group| group.ended().is_none());
            let mut down = outages.flat_map(|group| &group.nodes);
            down.any(|(guid, node)| node.up.is_none() && self.places.name(*guid) == former)
        });
        let index = self.latest(GroupKind::Master, event.at, AFTERMATH);
        if let Some(group) = self.group_mut(index) {
            group.is_master_down |= is_down;
        }
        index
    }

    fn for_reset(&mut self, event: &Event) -> Index {
        let of_node = event.node.and_then(|node| self.of_node.get(&node));
        let outage = self.known(of_node, event.at, AFTERMATH);
        outage.unwrap_or_else(|| self.latest(GroupKind::Clear, event.at, NEAR))
    }

    /// The group that an event's node, port or link is part of.
    fn of_event(&self, event: &Event, at: SystemTime, within: Duration) -> Option<Index> {
        let end = event.port_key();
        let link = event.link.or_else(|| self.places.link_of(end?));
        let of_node = event.node.and_then(|node| self.of_node.get(&node));
        let of_link = link.and_then(|link| self.of_link.get(&link));
        let ends = link.map(LinkId::ends);
        let mut of_ports = ends.iter().flatten().filter_map(|end| self.of_port.get(end));
        let of_root = end.and_then(|end| self.of_root.get(&end));
        let known = |index: &Index| self.known(Some(index), at, within);
        let found = of_node.and_then(known).or_else(|| self.outage_of(link, end, at));
        let found = found.or_else(|| of_link.and_then(known));
        found.or_else(|| of_ports.find_map(known)).or_else(|| of_root.and_then(known))
    }

    /// The recent outage of a node at one end of a link.
    fn outage_of(
        &self,
        link: Option<LinkId>,
        end: Option<PortKey>,
        at: SystemTime,
    ) -> Option<Index> {
        let ends = link.map(LinkId::ends);
        let nodes = ends.iter().flatten().chain(&end).map(|end| &end.guid);
        let mut outages = nodes
            .filter_map(|guid| self.known(self.of_node.get(guid), at, AFTERMATH))
            .filter(|index| self.kind_of(*index) == Some(GroupKind::Outage));
        outages.next()
    }

    /// The recent outage of an HCA because its link flapped.
    fn flaps_of(&self, guid: Guid, at: SystemTime) -> Option<Index> {
        let index = self.known(self.of_node.get(&guid), at, AFTERMATH)?;
        let group = self.group(index)?;
        let is_it = group.kind == GroupKind::Outage && group.nodes.len() == 1;
        (is_it && !group.has_switch && group.is_flapping()).then_some(index)
    }

    /// The incident of a bad cable that leads to a node.
    fn judged_link_of(&self, guid: Guid, at: SystemTime) -> Option<Index> {
        if self.places.is_switch(guid) {
            return None;
        }
        let of_links = self.places.links_of(guid).filter_map(|link| self.of_link.get(&link));
        let mut known = of_links.filter_map(|index| self.known(Some(index), at, Duration::ZERO));
        known.find(|index| self.is_judged(*index))
    }

    pub(super) fn group(&self, index: Index) -> Option<&Group> {
        self.groups.get(index)?.as_ref()
    }

    fn group_mut(&mut self, index: Index) -> Option<&mut Group> {
        self.groups.get_mut(index)?.as_mut()
    }

    fn kind_of(&self, index: Index) -> Option<GroupKind> {
        self.group(index).map(|group| group.kind)
    }

    fn is_judged(&self, index: Index) -> bool {
        self.group(index).is_some_and(|group| {
            group.links.values().any(|link| link.worst >= Verdict::Watch && !link.only_went_down())
        })
    }

    /// A group if it still lasts, or ended a short time ago.
    fn known(&self, index: Option<&Index>, at: SystemTime, within: Duration) -> Option<Index> {
        let index = *index?;
        let group = self.group(index)?;
        group.is_recent(at, within).then_some(index)
    }

    /// The latest group with a cause, if its latest event is recent, or a new one.
    fn latest(&mut self, kind: GroupKind, at: SystemTime, within: Duration) -> Index {
        let latest = self.of_kind.get(&kind).copied();
        self.known(latest.as_ref(), at, within).unwrap_or_else(|| self.begin(kind, at))
    }

    fn begin(&mut self, kind: GroupKind, at: SystemTime) -> Index {
        if self.groups.len() % COUNTED_EACH == COUNTED_EACH - 1 {
            self.drop_surplus();
        }
        self.groups.push(Some(Group::new(kind, at)));
        let index = self.groups.len() - 1;
        self.of_kind.insert(kind, index);
        index
    }

    /// Absorbs groups that began a short time ago, and that a test selects.
    fn absorb_recent(
        &mut self,
        into: Index,
        at: SystemTime,
        is_part: impl Fn(&Places, &Group) -> bool,
    ) {
        let mut absorbed = Vec::new();
        // Older groups began earlier.
        for index in (0..self.groups.len()).rev().filter(|index| *index != into) {
            let Some(group) = &self.groups[index] else { continue };
            if group.began + AFTERMATH < at {
                break;
            }
            let is_near = group.began + NEAR >= at || group.last + NEAR >= at;
            if is_near && is_part(&self.places, group) {
                absorbed.extend(self.groups[index].take());
            }
        }
        for other in absorbed {
            for node in other.nodes.keys() {
                self.of_node.insert(*node, into);
            }
            if let Some(group) = self.group_mut(into) {
                group.absorb(other);
            }
        }
    }

    /// A start of the exporter: what ended while it did not run has no event.
    fn interrupt(&mut self, at: SystemTime) {
        for group in self.groups.iter_mut().flatten().filter(|group| group.ended().is_none()) {
            group.interrupted = Some(at);
        }
    }

    /// Drops groups whose events are too many: the earliest of those without consequences first.
    fn drop_surplus(&mut self) {
        let held: usize = self.groups.iter().flatten().map(|group| group.events.len()).sum();
        let mut surplus = held.saturating_sub(MAX_EVENTS);
        if surplus == 0 {
            return;
        }
        for consequence in Consequence::ALL {
            for slot in &mut self.groups {
                if let Some(group) = slot.take_if(|it| surplus > 0 && consequence.is_of(it)) {
                    surplus = surplus.saturating_sub(group.events.len());
                    self.dropped += 1;
                }
            }
        }
        // Indexes stay in the order of time.
        let mut moved = HashMap::new();
        let kept = std::mem::take(&mut self.groups).into_iter().enumerate();
        for (index, group) in kept.filter(|(_, group)| group.is_some()) {
            moved.insert(index, self.groups.len());
            self.groups.push(group);
        }
        follow(&mut self.of_node, &moved);
        follow(&mut self.of_link, &moved);
        follow(&mut self.of_port, &moved);
        follow(&mut self.of_root, &moved);
        follow(&mut self.of_kind, &moved);
    }
}

/// What a group of events led to, the least first.
#[derive(Clone, Copy, Debug)]
enum Consequence {
    /// Cleared counters, or another subnet manager.
    None,
    /// A reboot or a flap that is over.
    Passing,
    /// A switch outage, a bad link, congestion, or what lasts.
    Any,
}

impl Consequence {
    const ALL: [Consequence; 3] = [Consequence::None, Consequence::Passing, Consequence::Any];

    /// Whether a group has no more than this.
    fn is_of(self, group: &Group) -> bool {
        use GroupKind::{Clear, Growth, Master, Saturation};
        let is_over = group.ended().is_some();
        match self {
            Consequence::None => {
                is_over && matches!(group.kind, Clear | Growth | Saturation | Master)
            }
            Consequence::Passing => {
                is_over && !group.has_switch && !group.has_verdict() && group.roots.is_empty()
            }
            Consequence::Any => true,
        }
    }
}

/// Moves indexes to where their groups are now; those of groups that are gone are removed.
fn follow<K: std::hash::Hash + Eq>(indexes: &mut HashMap<K, Index>, moved: &HashMap<Index, Index>) {
    indexes.retain(|_, index| match moved.get(index) {
        Some(now) => {
            *index = *now;
            true
        }
        None => false,
    });
}

/// Whether a verdict has another reason than that the link went down. One that is better than the verdict before does
/// not tell why that was worse.
fn tells_more_than_down(event: &Event) -> bool {
    let [from, to] = ["from", "to"].map(|key| verdict_of(&event.detail, key));
    to >= Some(Verdict::Watch) && (from > to || !says_only_down(&event.detail))
}
