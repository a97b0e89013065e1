//! The judge of one fabric: takes each sweep's snapshot in, and tells what it comes to.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use ib_fabric::snapshot::PortRead;
use ib_fabric::topology::{End, Link, LinkId};
use ib_fabric::{Fabric, PortIndex, Snapshot};
use ib_mad::moment::Anchor;
use ib_mad::node::NodeKind;
use ib_mad::port_state::{physical, state};
use ib_mad::{Counter, Moment};

use super::bit_errors::BitErrors;
use super::congestion::{self, Congestion};
use super::findings::{Findings, LinkFindings, PortFindings};
use super::link::{EndLook, LinkLook, LinkState};
use super::outage::Look;
use super::peers::Peers;
use super::plausible;
use super::port::{Incoming, Lately, PortState, TRAINING};
use super::settings::{HealthSettings, Work};
use super::totals::{Memory, PortTotals};
use super::upstream::{Errors, Upstream};

/// What is kept of a fabric from sweep to sweep; see the module.
#[derive(Debug)]
pub struct Judge {
    settings: HealthSettings,
    fabric: Arc<Fabric>,
    /// By port index.
    ports: Vec<PortState>,
    /// In the order of the fabric's links.
    links: Vec<(Link, LinkState)>,
    congestion: Congestion,
    work: Vec<Work>,
    /// Totals of an earlier watch, of ports that were not seen yet.
    memory: Memory,
}

impl Judge {
    /// One that has not seen anything yet.
    pub fn new(settings: HealthSettings) -> Self {
        Judge {
            settings,
            fabric: Arc::default(),
            ports: Vec::new(),
            links: Vec::new(),
            congestion: Congestion::default(),
            work: Vec::new(),
            memory: Memory::new(),
        }
    }

    /// Lets the totals of ports that are first seen from now on go on from these.
    pub fn remember(&mut self, memory: Memory) {
        self.memory = memory;
    }

    /// What a site works on from now on.
    pub fn set_work(&mut self, work: Vec<Work>) {
        self.work = work;
    }

    /// The port at this end told by itself that it lost its link, or has it again.
    pub fn hear(&mut self, end: End, up: bool, at: Moment) {
        let Some(port) = self.fabric.find(end) else { return };
        let is_its = |(link, _): &&mut (Link, LinkState)| link.0 == port || link.1 == port;
        if let Some((_, state)) = self.links.iter_mut().find(is_its) {
            state.life.hear(up, at);
        }
    }

    /// Takes a sweep in: puts totals in the place of the raw values of its readings, and tells what
    /// they come to.
    pub fn judge(&mut self, snapshot: &mut Snapshot) -> Findings {
        if !Arc::ptr_eq(&self.fabric, &snapshot.fabric) {
            self.follow_fabric(&snapshot.fabric, snapshot.began);
        }
        let fabric = Arc::clone(&self.fabric);
        let mut findings = Findings {
            ports: vec![PortFindings::default(); fabric.ports.len()],
            ..Findings::default()
        };
        let used = self.read_ports(snapshot, &mut findings);
        let found = self.congestion.follow(
            &fabric,
            |port| findings.ports[port.0 as usize].wait,
            |port| used[port.0 as usize],
            snapshot.ended,
        );
        for (port, role) in found.roles {
            findings.ports[port.0 as usize].role = Some(role);
        }
        for (port, cause) in found.causes {
            findings.ports[port.0 as usize].cause = Some(cause);
        }
        findings.regions = found.regions;
        self.judge_links(snapshot, &mut findings);
        findings
    }

    /// Brings what is kept to the places that ports and links have in another fabric.
    fn follow_fabric(&mut self, fabric: &Arc<Fabric>, at: Moment) {
        // Most discoveries find what was there before: a kilobyte a port stays where it is.
        let same = fabric.has_same_layout(&self.fabric);
        if same && fabric.links().eq(self.links.iter().map(|(link, _)| *link)) {
            self.fabric = Arc::clone(fabric);
            return;
        }
        let mut ports = std::mem::take(&mut self.ports);
        if !same {
            let old = std::mem::replace(&mut ports, vec![PortState::default(); fabric.ports.len()]);
            for (place, port) in ports.iter_mut().zip(fabric.port_indexes()) {
                if let Some(memory) = self.memory.remove(&fabric.end(port)) {
                    place.totals = PortTotals::resume(&memory);
                }
            }
            if self.memory.is_empty() {
                self.memory.shrink_to_fit();
            }
            for (place, state) in old.into_iter().enumerate() {
                if let Some(new) = fabric.find(self.fabric.end(PortIndex(place as u32))) {
                    ports[new.0 as usize] = state;
                }
            }
        }
        let mut known: HashMap<LinkId, LinkState> = (std::mem::take(&mut self.links).into_iter())
            .filter_map(|(link, state)| Some((self.fabric.link_id(link.0)?, state)))
            .collect();
        let first = self.fabric.ports.is_empty();
        let mut links = Vec::with_capacity(fabric.links().count());
        links.extend(fabric.links().filter_map(|link| {
            let state = known.remove(&fabric.link_id(link.0)?).unwrap_or_else(|| {
                // Another cable: what the ports saw on the one before says nothing about it. Of two
                // nodes with one GUID, it may be the other one that was found this time.
                for port in [link.0, link.1] {
                    let state = &mut ports[port.0 as usize];
                    if !first && fabric.has_duplicate(fabric.end(port).0) {
                        state.totals = PortTotals::default();
                    }
                    state.restart((!first).then(|| at + TRAINING));
                }
                LinkState::new(at)
            });
            Some((link, state))
        }));
        (self.ports, self.links) = (ports, links);
        self.fabric = Arc::clone(fabric);
    }

    /// Tells the share of what it carries that each port sent since it was read before.
    fn read_ports(&mut self, snapshot: &mut Snapshot, findings: &mut Findings) -> Vec<Option<f32>> {
        let fabric = Arc::clone(&self.fabric);
        let mut used_by = vec![None; fabric.ports.len()];
        for port in fabric.port_indexes() {
            let index = port.0 as usize;
            let state = &mut self.ports[index];
            let incoming = incoming(&self.settings, snapshot, port);
            let fastest = plausible::fastest(fabric.port(port).number, snapshot.status(port));
            let Some(reading) = &mut snapshot.readings[index] else {
                state.miss();
                findings.ports[index].counting = state.totals.counting();
                findings.ports[index].before = state.totals.before().cloned();
                continue;
            };
            let (growth, bit_errors) = state.read(reading, incoming, fastest);
            let mut found = PortFindings {
                counting: state.totals.counting(),
                before: state.totals.before().cloned(),
                bit_errors,
                ..PortFindings::default()
            };
            let runs = snapshot.status(port).and_then(|status| status.width.zip(status.speed));
            if let Some((width, speed)) = runs.filter(|_| growth.seconds > 0.0) {
                let tick = snapshot.ticks[fabric.port(port).node.0 as usize];
                let wait = |ticks| congestion::wait(ticks, tick, width, speed, growth.seconds);
                let used = |words: u64| {
                    congestion::used(words.saturating_mul(4), width, speed, growth.seconds)
                };
                found.wait = growth.timed(Counter::XmitWait).and_then(wait);
                used_by[index] = growth.timed(Counter::XmitData).and_then(used);
            }
            findings.ports[index] = found;
        }
        // They begin anew from the next sweep on.
        for cleared in &snapshot.cleared {
            self.ports[cleared.port.0 as usize].totals.cleared(cleared.counter, cleared.last);
        }
        used_by
    }

    fn judge_links(&mut self, snapshot: &Snapshot, findings: &mut Findings) {
        let fabric = Arc::clone(&self.fabric);
        let worked_on = self.worked_on(&fabric, &snapshot.anchor, snapshot.ended);
        let mut upstream = Upstream::default();
        let mut links = std::mem::take(&mut self.links);
        let peers = Peers::of(snapshot, links.iter().map(|(link, _)| *link));
        findings.links = links
            .iter_mut()
            .map(|(link, state)| {
                let is_worked_on = |port: PortIndex| worked_on.contains(&port);
                let maintenance =
                    !worked_on.is_empty() && (is_worked_on(link.0) || is_worked_on(link.1));
                let around = Around { peers: &peers, maintenance };
                self.judge_link(snapshot, findings, *link, state, around, &mut upstream)
            })
            .collect();
        self.links = links;
    }

    fn judge_link(
        &mut self,
        snapshot: &Snapshot,
        findings: &mut Findings,
        link: Link,
        state: &mut LinkState,
        Around { peers, maintenance }: Around<'_>,
        upstream: &mut Upstream,
    ) -> LinkFindings {
        let fabric = &snapshot.fabric;
        let ends = [link.0, link.1];
        let total = |port: PortIndex, counter| {
            let known = snapshot.reading(port)?.get(counter)?;
            Some(known as u32)
        };
        // One that is full tells of no more losses: neither that there were any, nor that there were none.
        let downed = |port: PortIndex| {
            let counting = self.ports[port.0 as usize].totals.counting();
            total(port, Counter::LinkDowned).filter(|_| !counting.is_stuck(Counter::LinkDowned))
        };
        let away = ends.map(|port| !snapshot.is_up(fabric.port(port).node));
        let totals = |port: PortIndex| &self.ports[port.0 as usize].totals;
        let (up, returned) = is_up(snapshot, link);
        let look = Look {
            // States are asked for before counters. The order is the same in each sweep, so the time
            // between two sweeps is that between two states of a port.
            at: snapshot.began,
            up,
            returned,
            read: ends.map(|port| snapshot.reading(port).map(|reading| reading.at)),
            downed: ends.map(downed),
            resets: ends.map(|port| totals(port).counting().resets),
            shows_traffic: ends.map(|port| totals(port).shows_traffic()),
            is_switch: ends.map(|port| fabric.node_of(port).is_switch()),
            away,
            maintenance,
        };
        if state.life.follow(&look) {
            state.trained();
            for port in ends {
                self.ports[port.0 as usize].restart(Some(snapshot.ended + TRAINING));
                findings.ports[port.0 as usize].bit_errors = BitErrors::default();
            }
        }
        state.recovered(ends.map(|port| total(port, Counter::LinkErrorRecoveries)), snapshot.ended);
        let statuses = ends.map(|port| snapshot.status(port));
        let end = |nth: usize| {
            let index = ends[nth].0 as usize;
            EndLook {
                port: &self.ports[index],
                role: findings.ports[index].role,
                away: away[nth],
                disabled: statuses[nth].is_some_and(|it| it.physical_state == physical::DISABLED),
                mute: fabric.node_of(ends[nth]).identity.kind == NodeKind::AggregationNode,
            }
        };
        let link_look = LinkLook {
            ends: [end(0), end(1)],
            at: snapshot.ended,
            active: (
                statuses.iter().flatten().find_map(|status| status.width),
                statuses.iter().flatten().find_map(|status| status.speed),
            ),
            best: match statuses {
                [Some(a), Some(b)] => a.best_enabled_with(b),
                _ => (None, None),
            },
            allowed: match statuses {
                [Some(a), Some(b)] => Some([a.allowed(), b.allowed()]),
                _ => None,
            },
            expected: peers.expect(snapshot, link),
            trained: statuses.iter().any(Option::is_some)
                && statuses.iter().flatten().all(|status| status.link_up()),
            maintenance,
            internal: fabric.is_internal(link),
        };
        let reasons = state.judge(&link_look);
        let repair = state.repair(&reasons, &link_look);
        let marked = ends.into_iter().find(|port| self.has_marked(*port));
        let upstream = marked.and_then(|port| upstream.origin(fabric, &*self, port));
        let (verdict, since) = state.standing.verdict();
        LinkFindings {
            link,
            verdict,
            since,
            reasons,
            repair,
            // What was known of it before may be outdated.
            up: match look.up {
                Some(_) => state.life.up().0,
                None => state.life.is_back().then_some(true),
            },
            outages: *state.life.outages(),
            losses: state.life.losses().cloned(),
            upstream,
            reference: state.reference(&link_look),
        }
    }

    /// The ports that somebody works on now.
    fn worked_on(&self, fabric: &Fabric, anchor: &Anchor, at: Moment) -> HashSet<PortIndex> {
        let now = anchor.wall_of(at);
        let on = self.work.iter().filter(|work| work.is_on(now));
        on.flat_map(|work| work.ports(fabric)).collect()
    }

    /// How many bytes are kept from sweep to sweep for each port and link, above the totals.
    pub fn state_bytes(&self) -> usize {
        let port = size_of::<PortState>() - size_of::<PortTotals>();
        self.ports.len() * port + self.links.len() * size_of::<(Link, LinkState)>()
    }
}

impl Errors for Judge {
    fn local(&self, port: PortIndex) -> f32 {
        self.ports[port.0 as usize].lately(Lately::Spoilt)
    }

    fn has_marked(&self, port: PortIndex) -> bool {
        self.ports[port.0 as usize].lately(Lately::Marked) > 0.0
    }
}

/// What is known around a link.
#[derive(Clone, Copy)]
struct Around<'a> {
    peers: &'a Peers,
    /// It is listed as in maintenance.
    maintenance: bool,
}

/// What comes in at a port, if it has a link and its rate is known.
fn incoming(settings: &HealthSettings, snapshot: &Snapshot, port: PortIndex) -> Option<Incoming> {
    let peer = snapshot.fabric.port(port).peer.filter(|peer| peer.connected)?.port;
    // One end is asked in each sweep; both run at the same rate.
    let status = [port, peer].into_iter().find_map(|port| {
        let status = snapshot.status(port)?;
        Some((status.rate()?, status.speed?))
    });
    let (rate, speed) = status?;
    let fec = snapshot.fec[port.0 as usize].or(snapshot.fec[peer.0 as usize]);
    Some(Incoming { bits_a_second: rate as f32 * 8.0, limits: settings.limits.of(speed, fec) })
}

/// Whether a link carries traffic, and whether a port of it is Active again although the discovery
/// knows of no link there. What the sweep asked counts more than what the discovery found.
fn is_up(snapshot: &Snapshot, Link(a, b): Link) -> (Option<bool>, bool) {
    let connected = snapshot.fabric.port(a).peer.is_some_and(|peer| peer.connected);
    let asked = |port: PortIndex| {
        matches!(snapshot.statuses[port.0 as usize], PortRead::Ok(_))
            && snapshot.status(port).is_some()
    };
    let active = |port: PortIndex| {
        let status = snapshot.status(port)?;
        Some(status.link_up() && status.state >= state::ACTIVE)
    };
    let told = [a, b].into_iter().filter(|&port| asked(port)).filter_map(active);
    match told.reduce(|one, other| one && other) {
        // Where its cable leads by now the next discovery shows.
        Some(true) if !connected => (None, true),
        Some(up) => (Some(up), false),
        // No port was asked; then both must have been found so, and be there.
        None => match (active(a), active(b)) {
            (Some(a), Some(b)) => (Some(a && b && connected), false),
            (Some(false), None) | (None, Some(false)) => (Some(false), false),
            _ => (None, false),
        },
    }
}

#[cfg(test)]
mod tests;
