//! The evaluation of one fabric: turns each sweep's snapshot into totals and an assessment.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::sync::Arc;
use std::time::Duration;

use ib_fabric::aggregated_links::{AggregatedLink, AggregatedPort};
use ib_fabric::fabric_kind::FabricKind;
use ib_fabric::snapshot::PortRead;
use ib_fabric::topology::{Link, LinkId};
use ib_fabric::{Fabric, NodeIndex, PortIndex, PortMap, Snapshot};
use ib_mad::moment::Anchor;
use ib_mad::node::NodeKind;
use ib_mad::port_event::PortEvent;
use ib_mad::port_state::{PhysicalState, PortStatus};
use ib_mad::reading::Raw;
use ib_mad::{Counter, Guid, Moment, PortKey};

use super::aggregated_link::{self, AggregatedLinkTracker, Gathered};
use super::assessment::{
    Assessment, Flow, LinkAssessment, PlaneAssessment, PortAssessment, UnjudgedRates,
};
use super::bit_errors::BitErrors;
use super::congestion::{self, Congestion};
use super::impossible_values;
use super::incoming::Incoming;
use super::judge::{EndInput, LinkInput, Ring};
use super::limits::LimitTable;
use super::link_history::LinkSample;
use super::link_tracker::LinkTracker;
use super::peers::{Peers, best_rate};
use super::port::{PortTracker, TRAINING};
use super::recorded::{self, Compared, RecordedErrors, RecordedFlaps};
use super::replica::ReplicaTotals;
use super::settings::{DrainedHosts, MaintenanceWindow};
use super::totals::{PortTotals, TotalsSeed};
use super::upstream::{KnownOrigins, UpstreamSearch};
use super::verdict::Reason;

/// What is kept of a fabric from sweep to sweep, and evaluates each sweep.
#[derive(Debug, Default)]
pub struct LinkEvaluator {
    /// The active and future maintenance windows.
    pub maintenance: Vec<MaintenanceWindow>,
    drained: DrainedHosts,
    /// Its nodes of the fabric.
    drained_nodes: Vec<NodeIndex>,
    /// Totals of an earlier run, with which ports start that are first seen from now on.
    pub seed: TotalsSeed,
    /// The errors of links in an earlier run, which the first sweep continues.
    pub recorded: RecordedErrors,
    /// The flaps of links in an earlier run, with which links start that are first seen from now on.
    pub flaps: RecordedFlaps,
    /// The latest totals of a replica, which are taken over where they are higher.
    pub replica: ReplicaTotals,
    limits: LimitTable,
    /// What it gets was recorded once, not swept again and again: a link that is up has been so for long.
    is_recorded: bool,
    fabric: Arc<Fabric>,
    pub(super) ports: PortMap<PortTracker>,
    /// In the order of the fabric's links.
    pub(super) links: Vec<(Link, LinkTracker)>,
    /// Links that events changed since they were last assessed, by their index in `links`.
    changed: Vec<usize>,
    /// What is remembered of links of several planes, by [`AggregatedLink::key`].
    aggregated_links: HashMap<[AggregatedPort; 2], AggregatedLinkTracker>,
    /// Since when ports of rings have no link that had one before.
    ring_gaps: HashMap<PortKey, Moment>,
    congestion: Congestion,
    /// When the latest sweep began.
    last_began: Moment,
    /// Since when nodes are down.
    nodes_down: HashMap<Guid, Moment>,
    /// Switches that are down, and for some minutes those that were: when they responded again.
    absent_switches: HashMap<Guid, Option<Moment>>,
    /// The ports that waited for a switch while it was down: they are no roots, but the ports of that switch count from
    /// zero, so that the root behind them is not known.
    waited_for_absent: HashSet<PortIndex>,
}

impl LinkEvaluator {
    /// One that has not seen anything yet.
    pub fn new(limits: LimitTable) -> Self {
        LinkEvaluator { limits, ..LinkEvaluator::default() }
    }

    /// An evaluator for dumps of other tools. They are not collected while links train, so the rates of the first dump
    /// count.
    pub fn of_dumps(limits: LimitTable) -> Self {
        LinkEvaluator { is_recorded: true, ..LinkEvaluator::new(limits) }
    }

    /// Sets the hosts that are drained, which are in maintenance.
    pub fn set_drained(&mut self, drained: DrainedHosts) {
        self.drained = drained;
        self.drained_nodes = self.drained.nodes(&self.fabric).collect();
    }

    /// Evaluates a sweep: returns the snapshot with totals in place of its raw readings, and the assessment.
    pub fn evaluate(&mut self, snapshot: Snapshot<Raw>) -> (Snapshot, Assessment) {
        if !Arc::ptr_eq(&self.fabric, &snapshot.fabric) {
            self.move_to_fabric(&snapshot.fabric, snapshot.began, &snapshot.anchor);
            self.drained_nodes = self.drained.nodes(&self.fabric).collect();
        }
        self.changed.clear();
        let fabric = Arc::clone(&self.fabric);
        let mut assessment = Assessment {
            ports: PortMap::filled(fabric.ports.len(), PortAssessment::default()),
            ..Assessment::default()
        };
        let is_resumed = !self.recorded.links.is_empty() && !self.links.is_empty();
        let mut compared =
            if is_resumed { recorded::before(&self.ports) } else { PortMap::default() };
        let snapshot = self.update_ports(snapshot, &mut assessment, &mut compared);
        if is_resumed {
            let recorded = std::mem::take(&mut self.recorded);
            recorded::resume(&recorded, &compared, &snapshot, &mut self.ports, &mut assessment);
        }
        self.hold_waits(&snapshot, &mut assessment);
        let found = self.congestion.update(
            &fabric,
            |port| {
                let found = &assessment.ports[port];
                found.wait.map(|it| it.share).or(found.held_wait.map(|it| it.share))
            },
            |port| self.ports[port].held_use(snapshot.ended),
            snapshot.ended,
        );
        let is_judged = |root: PortIndex| !self.waited_for_absent.contains(&root);
        for (port, role) in found.roles {
            let root = if let congestion::Role::Victim { of } = role { of } else { port };
            assessment.ports[port].role = Some(role).filter(|_| is_judged(root));
        }
        assessment.regions = found.regions;
        assessment.regions.retain(|region| is_judged(region.root));
        assessment.nodes_down = self.evaluate_nodes(&snapshot);
        self.evaluate_links(&snapshot, &mut assessment);
        self.last_began = snapshot.began;
        (snapshot, assessment)
    }

    /// Handles an event of a port. Returns whether it changes a link of this fabric, which
    /// [`reassess`](Self::reassess) or the next sweep then assesses.
    pub fn handle_event(&mut self, event: &PortEvent) -> bool {
        let Some((end, up)) = event.port_key().zip(event.link_up()) else { return false };
        let Some(port) = self.fabric.find(end) else { return false };
        // The device of a multi-plane adapter reports what is true of all planes together: it is down when all of them
        // are, and up when one of them is.
        if let Some(whole) = self.fabric.aggregated_link(port) {
            let planes: Vec<Link> = whole.planes.iter().map(|plane| plane.link).collect();
            let mut has_changed = false;
            // Which of them is up, the next sweep shows.
            for link in planes.into_iter().filter(|_| !up) {
                has_changed |= self.handle_link_event(up, event.at.moment, |it| *it == link);
            }
            return has_changed;
        }
        self.handle_link_event(up, event.at.moment, |link| link.low == port || link.high == port)
    }

    fn handle_link_event(&mut self, up: bool, at: Moment, is_its: impl Fn(&Link) -> bool) -> bool {
        let Some(index) = self.links.iter().position(|(link, _)| is_its(link)) else {
            return false;
        };
        let has_changed = self.links[index].1.history.handle_event(up, at);
        if has_changed && !self.changed.contains(&index) {
            self.changed.push(index);
        }
        has_changed
    }

    /// Assesses the links that events changed since the last sweep, of which `snapshot` and `assessment`
    /// are the result.
    ///
    /// Only the event is new. It has its own time, and no MAD gets through a link that is down, so the
    /// states and counters of the sweep stay as they were read.
    pub fn reassess(&mut self, snapshot: &Snapshot, assessment: &mut Assessment, at: Moment) {
        let changed = std::mem::take(&mut self.changed);
        if !Arc::ptr_eq(&self.fabric, &snapshot.fabric) {
            return;
        }
        let maintenance = self.in_maintenance(&snapshot.anchor, at).of_links(&self.fabric);
        let mut links = std::mem::take(&mut self.links);
        for index in changed {
            let Some((link, tracker)) = links.get_mut(index) else { continue };
            let input = self.input(snapshot, assessment, *link, &maintenance);
            let input = LinkInput { at, trained: false, ..input };
            let found = tracker.assess(*link, &input, tracker.history.up().0);
            let whole = self.fabric.whole_link(*link);
            let place = aggregated_link::place_of(&assessment.links, whole);
            let Some(assessed) = place.and_then(|place| assessment.links.get_mut(place)) else {
                continue;
            };
            if assessed.planes.is_empty() {
                *assessed = LinkAssessment { upstream: assessed.upstream, ..found };
                continue;
            }
            let mut planes = std::mem::take(&mut assessed.planes).into_vec();
            if let Some(plane) = planes.iter_mut().find(|plane| plane.link.link == *link) {
                plane.rate = None;
                plane.link = LinkAssessment { upstream: plane.link.upstream, ..found };
            }
            if let Some(known) = self.fabric.aggregated_link(link.low) {
                let tracker = self.aggregated_links.entry(known.key());
                let tracker = tracker.or_insert_with(|| AggregatedLinkTracker::new(&planes, at));
                *assessed = tracker.assess(known, planes, at);
            }
        }
        self.links = links;
    }

    /// Moves what is kept to the indexes that ports and links have in another fabric.
    fn move_to_fabric(&mut self, fabric: &Arc<Fabric>, at: Moment, anchor: &Anchor) {
        // Most discoveries find what was there before: then a kilobyte per port stays where it is.
        let known: HashSet<_> =
            fabric.aggregated_links.as_slice().iter().map(AggregatedLink::key).collect();
        self.aggregated_links.retain(|key, _| known.contains(key));
        self.update_ring_gaps(fabric, at);
        let same = fabric.has_same_layout(&self.fabric);
        if same && fabric.links().eq(self.links.iter().map(|(link, _)| *link)) {
            self.fabric = Arc::clone(fabric);
            return;
        }
        let mut ports = std::mem::take(&mut self.ports);
        if !same {
            let new = PortMap::filled(fabric.ports.len(), PortTracker::default());
            let old = std::mem::replace(&mut ports, new);
            for (tracker, port) in ports.iter_mut().zip(fabric.port_indexes()) {
                tracker.totals = self.seed.remove(&fabric.port_key(port)).unwrap_or_default();
            }
            if self.seed.is_empty() {
                self.seed.shrink_to_fit();
            }
            for (old, tracker) in self.fabric.port_indexes().zip(old) {
                if let Some(new) = fabric.find(self.fabric.port_key(old)) {
                    ports[new] = tracker;
                }
            }
        }
        let mut known: HashMap<LinkId, LinkTracker> = (std::mem::take(&mut self.links).into_iter())
            .filter_map(|(link, tracker)| Some((self.fabric.plane_link_id(link.low)?, tracker)))
            .collect();
        let first = self.fabric.ports.is_empty();
        let mut links = Vec::with_capacity(fabric.links().count());
        links.extend(fabric.links().filter_map(|link| {
            let id = fabric.plane_link_id(link.low)?;
            let tracker = known.remove(&id).unwrap_or_else(|| {
                // Another cable, or the other of two nodes with one GUID: its errors are new.
                for port in link.ports() {
                    let tracker = &mut ports[port];
                    if !first && fabric.has_duplicate(fabric.port_key(port).guid) {
                        tracker.totals = PortTotals::default();
                    }
                    tracker.restart((!first).then(|| at + TRAINING));
                }
                let mut tracker = LinkTracker::new(at);
                if let Some(flaps) = self.flaps.remove(&id) {
                    tracker.history.flap_days.restore(&flaps, anchor);
                }
                tracker
            });
            Some((link, tracker))
        }));
        (self.ports, self.links) = (ports, links);
        self.fabric = Arc::clone(fabric);
    }

    /// Returns the totals. `compared` is empty, or has the totals of an earlier run, and gets those of this sweep.
    fn update_ports(
        &mut self,
        snapshot: Snapshot<Raw>,
        assessment: &mut Assessment,
        compared: &mut PortMap<Compared>,
    ) -> Snapshot {
        let fabric = Arc::clone(&self.fabric);
        self.waited_for_absent.clear();
        let snapshot = snapshot.into_totals(|snapshot, port, reading| {
            let tracker = &mut self.ports[port];
            let found = &mut assessment.ports[port];
            if let Some(reading) = reading {
                let status = snapshot.status(port);
                let incoming = Incoming::of(&self.limits, snapshot, port);
                let fastest = impossible_values::fastest(fabric.port(port).number, status);
                let hardware = snapshot.hardware.port(fabric.port_key(port));
                let (growth, bit_errors) = tracker.update(reading, hardware, incoming, fastest);
                if let Some(compared) = compared.get_mut(port) {
                    compared.set_now(reading);
                }
                if !self.replica.0.is_empty()
                    && let Some(replica) = self.replica.0.get(&fabric.port_key(port))
                {
                    tracker.totals.raise(reading, replica, fastest);
                }
                found.bit_errors = bit_errors;
                found.cleared_every = tracker.clears.every(&growth);
                let rate = status.and_then(|status| status.width.zip(status.speed));
                if let Some((width, speed)) = rate.filter(|_| growth.seconds > 0.0) {
                    let tick = snapshot.ticks[fabric.port(port).node];
                    let wait = |ticks| congestion::wait(ticks, tick, width, speed, growth.seconds);
                    let flow = |data| {
                        let bytes = growth.timed(data)?.saturating_mul(4);
                        let used = congestion::used(bytes, width, speed, growth.seconds)?;
                        Some(Flow { rate: (bytes as f64 / growth.seconds) as f32, used })
                    };
                    let measured = |counter| tracker.is_measured(&growth, counter);
                    let peer = fabric.port(port).connected_peer();
                    let absent = peer
                        .filter(|_| !self.absent_switches.is_empty())
                        .and_then(|peer| self.absent_switches.get(&fabric.port_key(peer).guid));
                    let is_in_time = |returned: &Moment| {
                        growth.at.since(*returned).as_secs_f64() < growth.seconds
                    };
                    if absent.is_some_and(|returned| returned.as_ref().is_none_or(is_in_time)) {
                        self.waited_for_absent.insert(port);
                    }
                    let ticks = growth.timed(Counter::XmitWait);
                    found.wait = ticks.filter(|_| measured(Counter::XmitWait)).and_then(wait);
                    (found.tx, found.rx) = (flow(Counter::XmitData), flow(Counter::RcvData));
                    let used = found.tx.filter(|_| measured(Counter::XmitData)).map(|tx| tx.used);
                    tracker.keep_sent(found.wait.map(|it| it.share), used, growth.at);
                }
            } else {
                tracker.missed = tracker.missed.saturating_add(1);
            }
            found.counters = tracker.totals.status();
            found.reset_offsets = tracker.totals.reset_offsets().cloned();
        });
        // These count from zero from the next sweep on.
        for cleared in &snapshot.cleared {
            self.ports[cleared.port].totals.on_clear(cleared.counter, cleared.last);
        }
        snapshot
    }

    /// A port whose wait is not known in this sweep is taken to wait as it did, unless its link is down. If the link
    /// was up in the sweep before, the waits that ports upstream count in this one began before it went down: it is
    /// their root still.
    fn hold_waits(&self, snapshot: &Snapshot, assessment: &mut Assessment) {
        let is_down = |port: PortIndex| snapshot.status(port).is_some_and(|it| !it.link_up());
        for (port, found) in snapshot.fabric.port_indexes().zip(&mut assessment.ports) {
            let peer = snapshot.fabric.port(port).connected_peer();
            let is_up = peer.is_some_and(|peer| !is_down(port) && !is_down(peer));
            if found.wait.is_none() {
                let held = self.ports[port].held_wait(snapshot.ended);
                // It is kept in whole seconds.
                let is_recent = |at: Moment| at + Duration::from_secs(1) > self.last_began;
                found.held_wait = held.filter(|held| is_up || is_recent(held.at));
            }
        }
    }

    fn evaluate_nodes(&mut self, snapshot: &Snapshot) -> BTreeMap<NodeIndex, Moment> {
        let fabric = &snapshot.fabric;
        let before = std::mem::take(&mut self.nodes_down);
        let down = fabric.node_indexes().filter(|node| !snapshot.is_up(*node));
        let down: BTreeMap<NodeIndex, Moment> = down
            .map(|node| {
                let since = before.get(&fabric.node(node).identity.guid);
                (node, since.copied().unwrap_or(snapshot.began))
            })
            .collect();
        let by_guid = down.iter().map(|(node, since)| (fabric.node(*node).identity.guid, *since));
        self.nodes_down = by_guid.collect();
        self.absent_switches.retain(|guid, returned| {
            if returned.is_none() && !self.nodes_down.contains_key(guid) {
                *returned = Some(snapshot.ended);
            }
            returned.is_none_or(|at| snapshot.ended.since(at) < congestion::GRACE)
        });
        let switches = down.keys().map(|node| fabric.node(*node)).filter(|node| node.is_switch());
        let absent = switches.map(|switch| (switch.identity.guid, None));
        self.absent_switches.extend(absent);
        down
    }

    /// Keeps since when links of rings are missing that were there: some switches may have a chain by design.
    fn update_ring_gaps(&mut self, fabric: &Fabric, at: Moment) {
        let known = std::mem::take(&mut self.ring_gaps);
        let had_link = |key: PortKey| {
            self.fabric.find(key).is_some_and(|port| self.fabric.port(port).peer.is_some())
        };
        let keys = fabric.ring_gaps.iter().flat_map(|gap| &gap.ports);
        let gaps = keys.map(|port| fabric.port_key(*port)).filter_map(|key| {
            let since = known.get(&key).copied().or_else(|| had_link(key).then_some(at));
            Some((key, since?))
        });
        self.ring_gaps = gaps.collect();
    }

    /// Since when a link of the ring of a link is missing, if it is reported at that one.
    fn ring_gap_since(&self, fabric: &Fabric, link: Link) -> Option<Moment> {
        let gap = fabric.ring_gaps.iter().find(|gap| gap.link == link)?;
        let since = gap.ports.iter().map(|port| self.ring_gaps.get(&fabric.port_key(*port)));
        since.flatten().min().copied()
    }

    fn evaluate_links(&mut self, snapshot: &Snapshot, assessment: &mut Assessment) {
        let in_maintenance = self.in_maintenance(&snapshot.anchor, snapshot.ended);
        let fabric = &snapshot.fabric;
        let maintenance = in_maintenance.of_links(fabric);
        let mut gathered = Gathered::new(fabric.aggregated_links.as_slice().len());
        let mut origins = KnownOrigins::default();
        let mut links = std::mem::take(&mut self.links);
        let peers = Peers::count(snapshot, links.iter().map(|(link, _)| *link));
        assessment.links = Vec::with_capacity(links.len());
        assessment.unjudged_rates = UnjudgedRates {
            links: peers.compared(),
            without_rate: peers.without_rate,
            without_peers: 0,
        };
        for (nth, (link, tracker)) in links.iter_mut().enumerate() {
            let ends = link.ports();
            let sample = self.sample(snapshot, *link, &maintenance);
            if tracker.history.update(&sample) {
                tracker.on_trained();
                for port in ends {
                    self.ports[port].restart(Some(snapshot.ended + TRAINING));
                    assessment.ports[port].bit_errors = BitErrors::default();
                }
            }
            let recoveries = ends.map(|port| total(snapshot, port, Counter::LinkErrorRecoveries));
            tracker.update_recoveries(recoveries, snapshot.ended);
            let modules = ends.map(|port| {
                snapshot.hardware.port(fabric.port_key(port)).and_then(|it| it.module.as_deref())
            });
            tracker.update_modules(modules, snapshot.ended);
            let input = LinkInput {
                expected: peers.expected_rate(snapshot, nth, *link, self.is_recorded),
                ..self.input(snapshot, assessment, *link, &maintenance)
            };
            let up = match sample.up {
                Some(_) => tracker.history.up().0,
                // The last known state may be out of date.
                None => tracker.history.has_returned().then_some(true),
            };
            let marked = ends.into_iter().find(|port| self.ports[*port].has_marked());
            let is_unjudged = input.expected.is_none() && peers.is_alone(nth);
            assessment.unjudged_rates.without_peers += usize::from(is_unjudged);
            let mut search = UpstreamSearch { fabric, ports: &self.ports, known: &mut origins };
            let found = LinkAssessment {
                upstream: marked.and_then(|port| search.origin(port)),
                ..tracker.assess(*link, &input, up)
            };
            let Some(whole) = fabric.aggregated_links.place_of(link.low) else {
                assessment.links.push(found);
                continue;
            };
            let known = fabric.aggregated_link(link.low);
            let plane = known.and_then(|it| it.planes.iter().find(|plane| plane.link == *link));
            let plane = PlaneAssessment {
                plane: plane.map_or(0, |plane| plane.plane),
                id: LinkId::between(fabric.port_key(link.low), fabric.port_key(link.high)),
                rate: input.rate.filter(|_| tracker.is_settled(&input)),
                link: found.clone(),
            };
            // Holds the place of the whole until all planes are known.
            let is_lead = known.is_some_and(|known| known.lead() == *link);
            gathered.add(whole, plane, is_lead.then_some(assessment.links.len()));
            assessment.links.extend(is_lead.then_some(found));
        }
        self.links = links;
        for (whole, place, planes) in gathered.into_links() {
            let Some(link) = fabric.aggregated_links.as_slice().get(whole) else { continue };
            let tracker = self.aggregated_links.entry(link.key());
            let tracker =
                tracker.or_insert_with(|| AggregatedLinkTracker::new(&planes, snapshot.ended));
            assessment.links[place] = tracker.assess(link, planes, snapshot.ended);
        }
        assessment.drained.clone_from(&in_maintenance.nodes);
        assessment.in_maintenance = in_maintenance.all_nodes(fabric);
        let down = assessment.nodes_down.keys().copied();
        let disabled: Vec<NodeIndex> = down.filter(|node| is_cut_off(snapshot, *node)).collect();
        assessment.in_maintenance.extend(disabled);
    }

    fn sample(
        &self,
        snapshot: &Snapshot,
        link: Link,
        maintenance: &HashSet<PortIndex>,
    ) -> LinkSample {
        let fabric = &snapshot.fabric;
        let ends = link.ports();
        let totals = |port: PortIndex| &self.ports[port].totals;
        // A saturated counter shows no more link downs: neither that there were any, nor that there were none.
        let downed = |port: PortIndex| {
            total(snapshot, port, Counter::LinkDowned)
                .filter(|_| !totals(port).status().saturated_now.contains(Counter::LinkDowned))
        };
        let (up, returned) = is_up(snapshot, link);
        LinkSample {
            // States are queried first, in the same order each time: so this is the time between two states.
            at: snapshot.began,
            up,
            returned,
            read: ends.map(|port| snapshot.reading(port).map(|reading| reading.at)),
            downed: ends.map(downed),
            resets: ends.map(|port| totals(port).status().resets),
            traffic: ends.map(|port| totals(port).traffic()),
            is_switch: ends.map(|port| fabric.node_of(port).is_switch()),
            away: ends.map(|port| !snapshot.is_up(fabric.port(port).node)),
            maintenance: ends.iter().any(|port| maintenance.contains(port)),
        }
    }

    /// What is known of a link at the end of a sweep, without its peers.
    fn input(
        &self,
        snapshot: &Snapshot,
        assessment: &Assessment,
        link: Link,
        maintenance: &HashSet<PortIndex>,
    ) -> LinkInput<'_> {
        let fabric = &snapshot.fabric;
        let ends = link.ports();
        let statuses = ends.map(|port| snapshot.status(port));
        let both = statuses[0].zip(statuses[1]);
        let rate_of = |status: &PortStatus| status.width.zip(status.speed);
        let slower = snapshot.slower_end(link);
        let rate = slower.and_then(rate_of);
        // FDR10 is QDR where an end does not report it: the nominal rates are the same.
        let same = |other: &PortStatus| (other.width, other.rate());
        let mut others = snapshot.end_statuses(link).into_iter().flatten();
        let other = others.find(|other| slower.map(same) != Some(same(other)));
        let end = |nth: usize| {
            let port = ends[nth];
            EndInput {
                port: &self.ports[port],
                role: assessment.ports[port].role,
                away: !snapshot.is_up(fabric.port(port).node),
                disabled: statuses[nth]
                    .is_some_and(|it| it.physical_state == PhysicalState::Disabled),
                uncounted: fabric.node_of(port).identity.kind == NodeKind::AggregationNode,
            }
        };
        let not_judged = not_judged(fabric, link);
        let is_ring = not_judged == Some(Reason::Internal) && fabric.is_ring(link);
        LinkInput {
            ends: [end(0), end(1)],
            at: snapshot.ended,
            rate,
            other_rate: other.and_then(rate_of).filter(|_| rate.is_some()),
            best: both.zip(rate).and_then(|((a, b), rate)| best_rate(a, b, rate)),
            allowed: both.map(|(a, b)| [a.allowed(), b.allowed()]),
            expected: None,
            training: if self.is_recorded { Duration::ZERO } else { TRAINING },
            trained: statuses.iter().any(Option::is_some)
                && statuses.iter().flatten().all(|status| status.link_up()),
            maintenance: ends.iter().any(|port| maintenance.contains(port)),
            not_judged,
            ring: is_ring.then(|| Ring { gap_since: self.ring_gap_since(fabric, link) }),
            flap_days: self.limits.flap_days,
        }
    }

    /// What is in maintenance at a moment.
    fn in_maintenance(&self, anchor: &Anchor, at: Moment) -> InMaintenance {
        let now = anchor.wall_of(at);
        let mut found = InMaintenance::default();
        for window in self.maintenance.iter().filter(|window| window.is_active(now)) {
            found.ports.extend(window.ports(&self.fabric));
            if window.port.is_none() {
                found.nodes.extend(window.nodes(&self.fabric));
            }
        }
        found.nodes.extend(&self.drained_nodes);
        let of_drained = self.drained_nodes.iter().flat_map(|node| self.fabric.ports_of(*node));
        found.ports.extend(of_drained);
        found
    }
}

/// Whether a node, other than a switch, cannot be reached because an administrator disabled the ports to it: it is
/// expected to be down, as one in maintenance.
fn is_cut_off(snapshot: &Snapshot, node: NodeIndex) -> bool {
    let fabric = &snapshot.fabric;
    let ports = fabric.ports_of(node).filter_map(|port| fabric.port(port).peer);
    let mut disabled = ports.map(|peer| {
        let status = snapshot.status(peer.port);
        status.is_some_and(|it| it.physical_state == PhysicalState::Disabled)
    });
    !fabric.node(node).is_switch()
        && disabled.next().is_some_and(|first| first && disabled.all(|it| it))
}

/// Why a link is not judged, if it is not.
fn not_judged(fabric: &Fabric, link: Link) -> Option<Reason> {
    match fabric.kind {
        Some(FabricKind::NvLink) => Some(Reason::NvLink),
        _ => fabric.is_internal(link).then_some(Reason::Internal),
    }
}

/// What a site says to be in maintenance.
#[derive(Default)]
struct InMaintenance {
    nodes: BTreeSet<NodeIndex>,
    ports: HashSet<PortIndex>,
}

impl InMaintenance {
    /// The ports whose links are in maintenance: of a link of several planes, those of all planes.
    fn of_links(&self, fabric: &Fabric) -> HashSet<PortIndex> {
        let mut ports = self.ports.clone();
        if !ports.is_empty() {
            for link in fabric.aggregated_links.as_slice() {
                if link.ports().any(|port| self.ports.contains(&port)) {
                    ports.extend(link.ports());
                }
            }
        }
        ports
    }

    /// The nodes, with those all of whose links are in maintenance: such as the hosts of a switch.
    fn all_nodes(self, fabric: &Fabric) -> BTreeSet<NodeIndex> {
        let InMaintenance { mut nodes, ports } = self;
        if ports.is_empty() {
            return nodes;
        }
        let mut all: HashMap<NodeIndex, bool> = HashMap::new();
        for link in fabric.links() {
            let ends = link.ports();
            let is_in = ends.iter().any(|port| ports.contains(port));
            for port in ends {
                *all.entry(fabric.port(port).node).or_insert(true) &= is_in;
            }
        }
        nodes.extend(all.into_iter().filter(|(_, all)| *all).map(|(node, _)| node));
        nodes
    }
}

fn total(snapshot: &Snapshot, port: PortIndex, counter: Counter) -> Option<u32> {
    Some(snapshot.reading(port)?.get(counter)? as u32)
}

/// Whether a link carries traffic, and whether one of its ports is Active again although the discovery found no
/// link there. What the sweep queried precedes what the discovery found.
fn is_up(snapshot: &Snapshot, Link { low: a, high: b }: Link) -> (Option<bool>, bool) {
    let connected = snapshot.fabric.port(a).connected_peer().is_some();
    let is_read = |port: &PortIndex| matches!(snapshot.statuses[*port], PortRead::Ok(_));
    let active = |port: PortIndex| {
        let status = snapshot.status(port)?;
        Some(status.link_up() && status.state.is_active())
    };
    let read = [a, b].into_iter().filter(is_read).filter_map(active);
    match read.reduce(|one, other| one && other) {
        // The next discovery shows where its cable leads now.
        Some(true) if !connected => (None, true),
        Some(up) => (Some(up), false),
        // Neither port was queried: then both must have been found Active, and respond.
        None => match (active(a), active(b)) {
            (Some(a), Some(b)) => (Some(a && b && connected), false),
            (Some(false), None) | (None, Some(false)) => (Some(false), false),
            _ => (None, false),
        },
    }
}

#[cfg(test)]
mod tests;
