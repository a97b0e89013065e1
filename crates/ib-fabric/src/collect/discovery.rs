//! Discovery: a walk by directed routes from our own port to every node that can be reached.
//!
//! From each node: who are you, what are you called, how are your ports; and through each port of
//! a switch that has a link, the same of whoever is behind it. Nothing is forwarded by an HCA or
//! a router, so the walk ends at those; our own is the exception, for there it begins.

mod cables;

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use crate::Fabric;
use crate::assembly::{FoundFabric, FoundNode, FoundPort};
use crate::names::NodeNames;
use crate::topology::{DuplicateGuid, End};
use cables::{Cable, Dispute, same_device};
use ib_mad::m_key::{MKey, MKeys};
use ib_mad::node::{NodeIdentity, NodeKind};
use ib_mad::port_info::{MellanoxExtendedPortInfo, PortInfo};
use ib_mad::port_state::{PortStatus, SpeedFields, state};
use ib_mad::rate::Speed;
use ib_mad::smp;
use ib_mad::smp::{NodeInfo, SwitchInfo};
use ib_mad::{Guid, Moment, PortNumber, device};
use ib_mad::{Mad, Path, Query};
use ib_umad::walk::Walk;
use ib_umad::{Address, Failure, Lane, Request};

/// More questions than any subnet is worth: one of 49,151 LIDs, the most there can be, behind
/// 64-port switches takes some 400,000. A device that invents neighbours must not fill the memory.
const MOST_STEPS: usize = 1 << 21;

/// So many neighbors may be silent in one walk before the others are left to later ones, if more of
/// them are silent than hosts answer: 5,000 hosts that refuse would else get 15,000 SMPs at once, and
/// hold up the sweeps for minutes. Switches are no measure: they answer while all hosts refuse.
const MOST_SILENT: usize = 128;

/// So many gaps are told one by one; all are counted.
const MOST_GAPS: usize = 1024;

/// A question and what its answer is for.
#[derive(Clone, Copy, Debug)]
struct Step {
    path: Path,
    ask: Ask,
}

#[derive(Clone, Copy, Debug)]
enum Ask {
    /// Who is there? `from` is the port that the question leaves the known part of the fabric by.
    Who {
        from: Option<(usize, PortNumber)>,
        /// Ask although the other end was met already: it may be another node with the same GUID.
        verify: bool,
    },
    Description {
        node: usize,
    },
    Switch {
        node: usize,
    },
    Port {
        node: usize,
        port: PortNumber,
    },
    /// Mellanox's own ExtPortInfo: of a port that seems to run at QDR, and of a port that may be
    /// internal.
    Extended {
        node: usize,
        port: PortNumber,
    },
    /// Whether the far end of a disputed cable still answers as it did.
    Again {
        dispute: usize,
    },
    /// Whether the disputed port is still without a link.
    StillDown {
        dispute: usize,
        port: PortNumber,
    },
}

impl Ask {
    fn query(self) -> Query {
        match self {
            Ask::Who { .. } | Ask::Again { .. } => smp::node_info(),
            Ask::Description { .. } => smp::node_description(),
            Ask::Switch { .. } => smp::switch_info(),
            Ask::Port { port, .. } | Ask::StillDown { port, .. } => smp::port_info(port),
            Ask::Extended { port, .. } => smp::mellanox_extended_port_info(port),
        }
    }
}

/// A node in the making.
#[derive(Debug)]
struct Draft {
    info: NodeInfo,
    /// The route by which it was met first, and is asked.
    path: Path,
    found: FoundNode,
    /// Ports that were asked or will be.
    asked: HashSet<PortNumber>,
    /// A switch's port 0 answered, or never will: what it says of the speed fields is known.
    port0_known: bool,
    /// A switch's ports that answered before its port 0 did.
    early: Vec<(PortNumber, PortInfo)>,
}

impl Draft {
    fn is_switch(&self) -> bool {
        self.found.identity.kind == NodeKind::Switch
    }

    fn end(&self, port: PortNumber) -> End {
        (self.found.identity.guid, port)
    }
}

/// The walk; see the module.
#[derive(Debug)]
pub struct Discovery {
    steps: Vec<Step>,
    next: usize,
    /// So many questions, and so many ports, at the most.
    most_steps: usize,
    ports: usize,
    overflowed: bool,
    nodes: Vec<Draft>,
    by_guid: HashMap<Guid, usize>,
    /// The cables; those that turned out to be none are empty places.
    links: Vec<Option<Cable>>,
    /// Ports that did not answer: whether they have a link, and to whom, is not known.
    unreached: Vec<End>,
    /// Ports with a link through which no neighbor was found.
    unmet: Vec<End>,
    home: Option<End>,
    /// The cable at each end.
    linked: HashMap<End, usize>,
    disputes: Vec<Dispute>,
    duplicates: Vec<DuplicateGuid>,
    state_changes: HashSet<Guid>,
    failures: u64,
    gaps: Vec<String>,
    keys: Arc<MKeys>,
    own_guid: Option<Guid>,
    own_port: Option<OwnPort>,
    own_failure: Option<Failure>,
    resting: HashSet<End>,
    unanswered: Vec<End>,
    rested: Vec<End>,
    /// How many neighbors other than switches answered.
    hosts_met: usize,
}

impl Default for Discovery {
    fn default() -> Self {
        Self::new()
    }
}

/// What a discovery brought in.
#[derive(Debug)]
pub struct Found {
    /// Nodes and cables.
    pub fabric: FoundFabric,
    /// Switches whose PortStateChange bit is set.
    pub state_changes: HashSet<Guid>,
    /// Questions that stayed without an answer: parts of the fabric may be missing.
    pub failures: u64,
    /// What the first of them were, a line each; the same gap has the same line in each discovery.
    pub gaps: Vec<String>,
    /// Ports with a link whose neighbor was asked and did not answer.
    pub unanswered: Vec<End>,
    /// Such ports whose neighbor was not asked this time.
    pub rested: Vec<End>,
    /// What our own port says, if it answered.
    pub own_port: Option<OwnPort>,
    /// Why our own node did not say who it is; then nothing was found.
    pub own_failure: Option<Failure>,
}

/// What our own port says that helps to tell why others do not answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OwnPort {
    /// PortState.
    pub state: u8,
    /// M_KeyProtectBits: from 2 on, Gets without the key are dropped.
    pub m_key_protect: u8,
}

impl Found {
    /// The fabric, as this discovery and what is remembered of `previous` make it.
    pub fn assemble(
        self,
        names: &NodeNames,
        now: Moment,
        previous: Option<(&Fabric, Moment)>,
    ) -> Fabric {
        Fabric::assemble(self.fabric, names, now, previous)
    }
}

impl Discovery {
    /// A walk that begins at our own port.
    pub fn new() -> Self {
        Self::with_limit(MOST_STEPS)
    }

    /// One that asks so many questions at the most.
    pub(super) fn with_limit(most_steps: usize) -> Self {
        let mut walk = Discovery {
            steps: Vec::new(),
            next: 0,
            most_steps,
            ports: 0,
            overflowed: false,
            nodes: Vec::new(),
            by_guid: HashMap::new(),
            links: Vec::new(),
            unreached: Vec::new(),
            unmet: Vec::new(),
            home: None,
            linked: HashMap::new(),
            disputes: Vec::new(),
            duplicates: Vec::new(),
            state_changes: HashSet::new(),
            failures: 0,
            gaps: Vec::new(),
            keys: Arc::default(),
            own_guid: None,
            own_port: None,
            own_failure: None,
            resting: HashSet::new(),
            unanswered: Vec::new(),
            rested: Vec::new(),
            hosts_met: 0,
        };
        walk.ask(Path::HERE, Ask::Who { from: None, verify: false });
        walk
    }

    /// The same, with keys to ask with; that of our own port is known by its GUID, if the keys differ.
    #[must_use]
    pub fn with_keys(self, keys: Arc<MKeys>, own_guid: Option<Guid>) -> Self {
        Discovery { keys, own_guid, ..self }
    }

    /// The same, but the neighbors of these ports are not asked, unless the port's link is not active.
    #[must_use]
    pub fn without(self, resting: HashSet<End>) -> Self {
        Discovery { resting, ..self }
    }

    /// What was found, once the walk is at its end.
    pub fn finish(mut self) -> Found {
        // A neighbor that was met from its own side is known, whether or not it answered here.
        let linked = &self.linked;
        for ends in [&mut self.unmet, &mut self.unanswered, &mut self.rested] {
            ends.retain(|end| !linked.contains_key(end));
        }
        let gaps = self.unmet.len() as u64;
        self.unreached.append(&mut self.unmet);
        Found {
            fabric: FoundFabric {
                nodes: self.nodes.into_iter().map(|draft| draft.found).collect(),
                links: self.links.iter().flatten().map(|cable| (cable.near, cable.far)).collect(),
                unreached: self.unreached,
                home: self.home,
                is_cut_off: self.own_failure.is_some(),
                duplicates: self.duplicates,
                ..FoundFabric::default()
            },
            state_changes: self.state_changes,
            failures: self.failures + gaps,
            gaps: self.gaps,
            unanswered: self.unanswered,
            rested: self.rested,
            own_port: self.own_port,
            own_failure: self.own_failure,
        }
    }

    /// The GUID of a port; a switch's are known by that of its port 0.
    fn port_guid(&self, node: usize, port: PortNumber) -> Guid {
        let draft = &self.nodes[node];
        let found =
            draft.found.ports.iter().find(|found| found.number == port && !draft.is_switch());
        found.map_or(draft.info.port_guid, |found| found.guid)
    }

    fn key_of(&self, end: Option<End>) -> MKey {
        let known = end.and_then(|(guid, port)| Some((*self.by_guid.get(&guid)?, port)));
        known
            .map_or(self.keys.of_unknown(), |(node, port)| self.keys.of(self.port_guid(node, port)))
    }

    fn m_key(&self, ask: Ask) -> MKey {
        match ask {
            Ask::Who { from: None, .. } => {
                self.own_guid.map_or(self.keys.of_unknown(), |guid| self.keys.of(guid))
            }
            Ask::Who { from: Some((node, port)), .. } => {
                self.keys.behind(self.port_guid(node, port), port)
            }
            Ask::Description { node } | Ask::Switch { node } => {
                self.keys.of(self.nodes[node].info.port_guid)
            }
            Ask::Port { node, port } | Ask::Extended { node, port } => {
                self.keys.of(self.port_guid(node, port))
            }
            Ask::Again { dispute } => {
                self.key_of(self.links[self.disputes[dispute].old].map(|cable| cable.far))
            }
            Ask::StillDown { dispute, .. } => self.key_of(Some(self.disputes[dispute].end)),
        }
    }

    fn ask(&mut self, path: Path, ask: Ask) {
        if self.steps.len() < self.most_steps {
            self.steps.push(Step { path, ask });
        } else {
            self.overflow(path);
        }
    }

    fn overflow(&mut self, path: Path) {
        if !self.overflowed {
            self.overflowed = true;
            let steps = self.most_steps;
            self.gap(
                path,
                format!("the fabric seems to have no end: discovery stops after {steps} questions"),
            );
        }
        self.failures += 1;
    }

    /// Takes down what is missing. Who watches the fabric says what to log of it.
    fn gap(&mut self, path: Path, gap: String) {
        tracing::debug!(?path, "{gap}");
        if self.gaps.len() < MOST_GAPS {
            self.gaps.push(gap);
        }
    }

    /// The question as a log calls it.
    fn question(&self, ask: Ask) -> String {
        let guid = |node: usize| self.nodes[node].found.identity.guid;
        match ask {
            Ask::Who { from: None, .. } => "our own node does not answer NodeInfo".to_owned(),
            Ask::Who { from: Some((node, port)), .. } => {
                let (guid, port) = self.nodes[node].end(port);
                format!("the neighbor of node {guid} port {port} does not answer NodeInfo")
            }
            Ask::Description { node } => {
                format!("node {} does not answer NodeDescription", guid(node))
            }
            Ask::Switch { node } => format!("node {} does not answer SwitchInfo", guid(node)),
            Ask::Port { node, port } => {
                format!("node {} does not answer PortInfo of port {port}", guid(node))
            }
            Ask::Extended { node, port } => {
                format!("node {} does not answer ExtendedPortInfo of port {port}", guid(node))
            }
            Ask::Again { .. } => "the far end of a cable does not answer NodeInfo again".to_owned(),
            Ask::StillDown { port, .. } => {
                format!("a switch does not answer PortInfo of port {port} again")
            }
        }
    }

    fn who(&mut self, path: Path, from: Option<(usize, PortNumber)>, info: NodeInfo) {
        let Some(identity) = info.identity() else {
            let (guid, node_type) = (info.node_guid, info.node_type);
            self.gap(
                path,
                format!("node {guid} has the unknown node type {node_type}: it is left out"),
            );
            self.failures += 1;
            return;
        };
        let node = match self.by_guid.get(&info.node_guid) {
            Some(&node) if !same_device(&self.nodes[node].info, &info) => {
                let behind = from.map(|(from, port)| self.nodes[from].end(port));
                return self.leave_out(info.node_guid, behind);
            }
            Some(&node) => node,
            None if self.ports + usize::from(identity.port_count) > self.most_steps => {
                return self.overflow(path);
            }
            None => self.meet(path, info, identity),
        };
        // A CA or router is known port by port, as each is come in by.
        let draft = &mut self.nodes[node];
        if from.is_none() {
            self.home = Some(draft.end(if draft.is_switch() { 0 } else { info.local_port }));
        }
        if !draft.is_switch() && !draft.asked.contains(&info.local_port) {
            let (number, guid) = (info.local_port, info.port_guid);
            draft.found.ports.push(FoundPort { number, guid, status: None, role: None });
            self.ask_port(node, info.local_port, path);
        }
        if let Some((from, port)) = from {
            self.hosts_met += usize::from(!self.nodes[node].is_switch());
            let near = self.nodes[from].end(port);
            let far = (info.node_guid, info.local_port);
            self.join(Cable::new(near, far, path));
        }
    }

    fn meet(&mut self, path: Path, info: NodeInfo, identity: NodeIdentity) -> usize {
        let node = self.nodes.len();
        let (is_switch, port_count) = (identity.kind == NodeKind::Switch, identity.port_count);
        self.ports += usize::from(port_count);
        self.by_guid.insert(info.node_guid, node);
        self.nodes.push(Draft {
            info,
            path,
            found: FoundNode { identity, ports: Vec::new() },
            asked: HashSet::new(),
            port0_known: false,
            early: Vec::new(),
        });
        self.ask(path, Ask::Description { node });
        if is_switch {
            self.ask(path, Ask::Switch { node });
            for port in 0..=port_count {
                self.ask_port(node, port, path);
            }
        }
        node
    }

    fn ask_port(&mut self, node: usize, port: PortNumber, path: Path) {
        if self.nodes[node].asked.insert(port) {
            self.ask(path, Ask::Port { node, port });
        }
    }

    fn port(&mut self, path: Path, node: usize, port: PortNumber, info: PortInfo) {
        let draft = &mut self.nodes[node];
        if self.home == Some(draft.end(port)) {
            self.own_port = Some(OwnPort { state: info.state, m_key_protect: info.m_key_protect });
        }
        if !draft.is_switch() || port == 0 {
            draft.found.identity.tells_fec |= info.tells_fec();
        }
        if !draft.is_switch() {
            self.place(path, node, port, info.status(info.speed_fields()));
        } else if port == 0 {
            self.place(path, node, 0, info.status(info.speed_fields()));
            self.know_port0(path, node, info.speed_fields());
        } else if draft.port0_known {
            let status = info.status(draft.found.identity.speed_fields);
            self.place(path, node, port, status);
        } else {
            draft.early.push((port, info));
        }
    }

    fn know_port0(&mut self, path: Path, node: usize, fields: SpeedFields) {
        let draft = &mut self.nodes[node];
        draft.port0_known = true;
        draft.found.identity.speed_fields = fields;
        for (port, info) in std::mem::take(&mut draft.early) {
            self.place(path, node, port, info.status(fields));
        }
    }

    /// Takes a port's state down, and looks at what is behind it.
    fn place(&mut self, path: Path, node: usize, port: PortNumber, status: PortStatus) {
        let draft = &mut self.nodes[node];
        match draft.found.ports.iter_mut().find(|found| found.number == port) {
            Some(found) => found.status = Some(status),
            None => draft.found.ports.push(FoundPort {
                number: port,
                guid: if port == 0 { draft.info.port_guid } else { Guid::default() },
                status: Some(status),
                role: None,
            }),
        }
        if !status.link_up() {
            let end = draft.end(port);
            return self.doubt_if_down(end);
        }
        let leads_on = if draft.is_switch() { port != 0 } else { path.hops() == 0 };
        let end = draft.end(port);
        let known = self.linked.contains_key(&end);
        // Of the devices that are known, multi-plane switches alone have internal ports with links.
        let is_multi_plane = draft.is_switch() && draft.info.device_id == device::QUANTUM_3;
        let may_be_fdr10 = status.speed == Some(Speed::Qdr);
        if draft.info.is_mellanox() && (may_be_fdr10 || is_multi_plane && port != 0) {
            self.ask(path, Ask::Extended { node, port });
        }
        if leads_on && !known && status.state == state::ACTIVE && self.resting.contains(&end) {
            self.rest(end);
        } else if leads_on && !known {
            match path.then(port) {
                Some(path) => {
                    self.ask(path, Ask::Who { from: Some((node, port)), verify: false });
                }
                None => self.failures += 1,
            }
        }
    }

    /// The neighbor of a port is not asked in this walk.
    fn rest(&mut self, end: End) {
        self.unmet.push(end);
        self.rested.push(end);
    }

    /// Whether most hosts do not answer, and this is a neighbor that a later walk may ask as well. One
    /// whose link is not active was not configured yet: it may be anything.
    fn is_left_to_later(&self, node: usize, port: PortNumber) -> bool {
        let silent = self.unanswered.len();
        let mut ports = self.nodes[node].found.ports.iter();
        silent >= MOST_SILENT
            && silent > self.hosts_met
            && ports
                .find(|found| found.number == port)
                .and_then(|found| found.status)
                .is_some_and(|status| status.state == state::ACTIVE)
    }

    fn failed(&mut self, step: Step, failure: Failure) {
        // Many devices do not have Mellanox's attribute, and say so in many ways.
        match step.ask {
            Ask::Extended { .. } | Ask::StillDown { .. } | Ask::Who { verify: true, .. } => return,
            // Silence says that nothing is there any more.
            Ask::Again { dispute } => return self.answered_again(dispute, None),
            // Counted at the end: it may be met from its own side.
            Ask::Who { from: Some(_), .. } => {}
            _ => self.failures += 1,
        }
        match step.ask {
            Ask::Who { from: None, .. } => self.own_failure = Some(failure),
            Ask::Who { from: Some((node, port)), .. } => {
                let end = self.nodes[node].end(port);
                tracing::debug!(node = %end.0, port, path = ?step.path, %failure, "the neighbor of a port with a link does not answer");
                self.unmet.push(end);
                if failure.is_silence() {
                    self.unanswered.push(end);
                }
            }
            ask => self.gap(step.path, format!("{}: {failure}", self.question(ask))),
        }
        if let Ask::Port { node, port } = step.ask {
            // Whether it has a link, and who is behind it, is not known.
            self.unreached.push(self.nodes[node].end(port));
        }
        // The other ports must not wait for ever; where an old switch has no such speed fields,
        // they are reserved, and read 0.
        if let Ask::Port { node, port: 0 } = step.ask {
            self.know_port0(step.path, node, SpeedFields { extended: true, extended2: true });
        }
    }
}

impl Walk for Discovery {
    fn next(&mut self, lane: Lane) -> Option<(Request, u64)> {
        if lane != Lane::Smp {
            return None;
        }
        while let Some(step) = self.steps.get(self.next) {
            let tag = self.next as u64;
            self.next += 1;
            // In the meantime the far end may have been met from the other side.
            if let Ask::Who { from: Some((node, port)), verify: false } = step.ask {
                let end = self.nodes[node].end(port);
                if self.linked.contains_key(&end) {
                    continue;
                }
                if self.is_left_to_later(node, port) {
                    self.rest(end);
                    continue;
                }
            }
            return Some((
                Request {
                    to: Address::Directed(step.path),
                    query: step.ask.query().with_m_key(self.m_key(step.ask)),
                },
                tag,
            ));
        }
        None
    }

    fn finished(&mut self, tag: u64, outcome: Result<&Mad, Failure>, _at: Moment) {
        let Some(&step) = self.steps.get(tag as usize) else { return };
        let mad = match outcome {
            Ok(mad) => mad,
            Err(failure) => return self.failed(step, failure),
        };
        match step.ask {
            Ask::Who { from, .. } => self.who(step.path, from, NodeInfo::decode(mad)),
            Ask::Again { dispute } => self.answered_again(dispute, Some(NodeInfo::decode(mad))),
            Ask::StillDown { dispute, .. } => {
                self.still_down(step.path, dispute, &PortInfo::decode(mad));
            }
            Ask::Description { node } => {
                let identity = &mut self.nodes[node].found.identity;
                identity.description = smp::decode_node_description(mad);
                let (name, vendor) = (&identity.description, identity.vendor_id);
                if identity.kind == NodeKind::Ca && smp::is_aggregation_node(name, vendor) {
                    identity.kind = NodeKind::AggregationNode;
                }
            }
            Ask::Switch { node } => {
                let info = SwitchInfo::decode(mad);
                let identity = &mut self.nodes[node].found.identity;
                identity.enhanced_port0 = info.enhanced_port0;
                if info.port_state_change {
                    self.state_changes.insert(identity.guid);
                }
            }
            Ask::Port { node, port } => self.port(step.path, node, port, PortInfo::decode(mad)),
            Ask::Extended { node, port } => {
                let Draft { info: who, found, .. } = &mut self.nodes[node];
                let info = MellanoxExtendedPortInfo::decode(mad);
                if let Some(found) = found.ports.iter_mut().find(|found| found.number == port) {
                    // On other devices these bits were never seen, and may mean anything.
                    found.role = (who.device_id == device::QUANTUM_3).then(|| info.role());
                    let qdr = found.status.filter(|status| status.speed == Some(Speed::Qdr));
                    if let Some(status) = qdr.filter(|_| info.is_fdr10()) {
                        found.status = Some(status.at_fdr10());
                    }
                }
            }
        }
    }
}
