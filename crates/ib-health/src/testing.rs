//! Assessments made by hand, on a small fabric: for tests of this and other crates.
#![allow(clippy::missing_panics_doc, clippy::unwrap_used, reason = "for tests only")]

use std::collections::HashMap;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use crate::assessment::{Assessment, LinkAssessment, PortAssessment};
use crate::bit_errors::{BerWindow, BitErrorLevel, BitErrors, Deciding, Measurement};
use crate::counter_status::CounterStatus;
use crate::{LimitTable, LinkEvaluator, Verdict};
use ib_fabric::assembly::DiscoveredFabric;
use ib_fabric::node_name_map::NodeNameMap;
use ib_fabric::snapshot::PortRead;
use ib_fabric::testing::{PlaneNet, end, found, plane_up};
use ib_fabric::{Fabric, PortIndex, PortMap, Snapshot};
use ib_mad::moment::Anchor;
use ib_mad::node::NodeKind;
use ib_mad::port_state::{PhysicalState, PortState, PortStatus};
use ib_mad::{Counter, Guid, Moment, PortKey, Reading};

/// Switch `leaf`, with `host-a` on its port 1, `host-b` on its port 2, and nothing on its port 3.
pub fn snapshot() -> Snapshot {
    let names =
        NodeNameMap::parse("0x1 \"leaf\"\n0x2 \"host-a\"\n0x3 \"host-b\"\n").unwrap().into();
    let nodes =
        vec![found(1, NodeKind::Switch, 3), found(2, NodeKind::Ca, 1), found(3, NodeKind::Ca, 1)];
    let links = vec![(end(1, 1), end(2, 1)), (end(1, 2), end(3, 1))];
    let found = DiscoveredFabric { nodes, links, ..DiscoveredFabric::default() };
    let fabric = Fabric::assemble(found, &names, Moment(0), None);
    let anchor = Anchor { moment: Moment(0), wall: SystemTime::UNIX_EPOCH };
    let ended = Moment::default() + Duration::from_secs(1000);
    let began = ended.before(Duration::from_secs(4));
    let mut snapshot = Snapshot { began, ended, ..Snapshot::blank(Arc::new(fabric), anchor) };
    snapshot.readings.fill(Some(Reading::empty(ended)));
    snapshot
}

/// All links are ok since 100 s after the beginning.
pub fn fine(snapshot: &Snapshot) -> Assessment {
    let of_link = |link| LinkAssessment {
        verdict: Verdict::Ok,
        since: Moment::default() + Duration::from_secs(100),
        up: Some(true),
        ..LinkAssessment::unknown(link)
    };
    Assessment {
        ports: PortMap::filled(snapshot.fabric.ports.len(), PortAssessment::default()),
        links: snapshot.fabric.whole_links().map(of_link).collect(),
        ..Assessment::default()
    }
}

/// A fabric of links of several planes that is swept each 15 s, whose ports count as a test says.
#[derive(Debug)]
#[expect(missing_docs, reason = "the other names say it")]
pub struct PlaneSweeps {
    pub evaluator: LinkEvaluator,
    pub net: PlaneNet,
    pub fabric: Arc<Fabric>,
    sweep: u64,
    /// What ports are, where they are not up.
    pub states: Vec<(PortKey, PortStatus)>,
    /// Symbol errors in each sweep.
    pub errors: Vec<(PortKey, u64)>,
    counted: HashMap<PortKey, u64>,
    /// Nodes that do not respond.
    pub silent: Vec<Guid>,
    /// Each plane is a link by itself.
    is_ungrouped: bool,
}

impl PlaneSweeps {
    /// A sound fabric that has been swept for 25 minutes: each plane is known to be good.
    pub fn sound(net: PlaneNet) -> Self {
        let mut planes = PlaneSweeps::new(net);
        planes.sweeps(100);
        planes
    }

    /// A fabric that has not been swept.
    pub fn new(net: PlaneNet) -> Self {
        PlaneSweeps {
            evaluator: LinkEvaluator::new(LimitTable::default()),
            fabric: Arc::new(net.fabric(None)),
            net,
            sweep: 0,
            states: Vec::new(),
            errors: Vec::new(),
            counted: HashMap::new(),
            silent: Vec::new(),
            is_ungrouped: false,
        }
    }

    /// The same as a sound one, in which each plane is a link by itself.
    pub fn ungrouped(net: PlaneNet) -> Self {
        let mut planes = PlaneSweeps { is_ungrouped: true, ..PlaneSweeps::new(net) };
        planes.discover();
        planes.sweeps(100);
        planes
    }

    /// Another discovery.
    pub fn discover(&mut self) {
        let mut fabric = self.net.fabric(Some(&self.fabric));
        if self.is_ungrouped {
            fabric.aggregated_links = Arc::default();
        }
        self.fabric = Arc::new(fabric);
    }

    fn began(&self) -> Moment {
        Moment::default() + Duration::from_secs(15 * self.sweep)
    }

    /// Sweeps once.
    pub fn sweep(&mut self) -> (Snapshot, Assessment) {
        self.sweep += 1;
        let anchor = Anchor { moment: self.began(), wall: SystemTime::UNIX_EPOCH };
        let mut snapshot = Snapshot::blank(Arc::clone(&self.fabric), anchor);
        snapshot.ended = snapshot.began + Duration::from_secs(4);
        for (at, errors) in &self.errors {
            *self.counted.entry(*at).or_default() += errors;
        }
        for node in self.fabric.node_indexes() {
            let guid = self.fabric.node(node).identity.guid;
            snapshot.silent[node] = self.silent.contains(&guid);
        }
        for port in self.fabric.port_indexes() {
            let (at, node) = (self.fabric.port_key(port), self.fabric.port(port).node);
            if snapshot.silent[node] || at.number == 0 {
                continue;
            }
            let mut reading = Reading::empty(snapshot.ended);
            let errors = self.counted.get(&at).copied().unwrap_or(0);
            reading.set(Counter::SymbolErrors, errors);
            reading.set(Counter::LinkDowned, 0);
            snapshot.readings[port] = Some(reading);
            let state = self.states.iter().find(|(known, _)| *known == at);
            let state = state.map_or_else(|| plane_up(at.guid.0 as u16), |(_, state)| *state);
            snapshot.statuses[port] = PortRead::Ok(state);
        }
        self.evaluator.evaluate(snapshot)
    }

    /// Sweeps so often, and returns the last one.
    pub fn sweeps(&mut self, count: usize) -> (Snapshot, Assessment) {
        for _ in 1..count {
            self.sweep();
        }
        self.sweep()
    }

    /// Both ends of the plane at a port go down.
    pub fn take_down(&mut self, at: PortKey) {
        let port = self.fabric.find(at).unwrap();
        let peer = self.fabric.port(port).peer.unwrap().port;
        let down = PortStatus {
            state: PortState::Down,
            physical_state: PhysicalState::Polling,
            width: None,
            speed: None,
            ..plane_up(1)
        };
        self.states.extend([at, self.fabric.port_key(peer)].map(|at| (at, down)));
    }

    /// The assessment of the link that a port belongs to.
    pub fn link_at(&self, assessment: &Assessment, at: PortKey) -> LinkAssessment {
        let port = self.fabric.find(at).unwrap();
        let is_its = |link: &&LinkAssessment| link.ports().any(|it| it == port);
        assessment.links.iter().find(is_its).unwrap().clone()
    }
}

/// A port by its node's GUID and its number.
pub fn port(snapshot: &Snapshot, guid: u64, number: u8) -> PortIndex {
    snapshot.fabric.find(end(guid, number)).unwrap()
}

/// A counter that was saturated, and still is if `is_now`.
pub fn saturated(counter: Counter, is_now: bool) -> CounterStatus {
    let mut status = CounterStatus::default();
    status.ever_saturated.insert(counter);
    status.saturated_now.set(counter, is_now);
    status
}

/// This many errors in 12 minutes at 4x EDR, which is over the limit.
pub fn over(errors: u32) -> BitErrors {
    let mut windows = [Measurement::default(); BerWindow::ALL.len()];
    let measured = Measurement { errors, seconds: 720.0 };
    windows[BerWindow::Short as usize] = measured;
    BitErrors {
        level: BitErrorLevel::Over,
        decided_by: Some(Deciding { counted: measured, steady: errors }),
        windows,
        bits_per_second: 1e11,
        limit: 1e-12,
        raised_before: None,
        pre_fec: None,
    }
}

/// Sets a counter of a port's reading.
pub fn count(snapshot: &mut Snapshot, port: PortIndex, counter: Counter, value: u64) {
    snapshot.readings[port].as_mut().unwrap().set(counter, value);
}
