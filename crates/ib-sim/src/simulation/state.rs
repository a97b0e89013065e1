//! The state of a simulation, and how it advances.

use std::cell::RefCell;
use std::collections::{BTreeMap, VecDeque};
use std::time::Duration;

use ib_mad::counter::Counter;
use ib_mad::m_key::MKey;
use ib_mad::port_state::PortState;
use ib_mad::{Lid, Moment, PortNumber};

use super::port::{PortCounts, SimulatedPort};
use super::subnet::{Subnet, subnet_indices};
use crate::change::{
    AgentBehavior, FabricChange, FrontPanelBehavior, MadDelivery, RegisterBehavior, TableBehavior,
    TimedChange,
};
use crate::load::forwarding::ForwardingTables;
use crate::load::{Flow, RoutedFlows};
use crate::net::{Net, NodeId, PortId};
use crate::scenario::ResolvedScenario;

/// How long a subnet manager takes to react to a change of a link: it gets a trap, sweeps, and configures.
/// OpenSM takes some tenths of a second on a small fabric, and several seconds on a large one.
pub(super) const SM_REACTION_TIME: Duration = Duration::from_secs(1);

/// The state of a node.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct NodeState {
    pub(crate) on: bool,
    /// When it was last switched on.
    pub(crate) booted: Moment,
    pub(crate) behavior: AgentBehavior,
    /// SwitchInfo:PortStateChange.
    pub(crate) port_state_change: bool,
    pub(crate) protection: Protection,
    /// Its ports are limited members of the default partition.
    pub(crate) limited: bool,
    /// How it responds to requests of registers.
    pub(crate) registers: RegisterBehavior,
    /// How it responds to requests of SwitchPortStateTable.
    pub(crate) state_table: TableBehavior,
    /// How it responds to requests of HierarchyInfo.
    pub(crate) front_panel: FrontPanelBehavior,
    /// The VSKey that requests of the vendor class must have; 0 for any.
    pub(crate) vs_key: u64,
}

/// The M_Key protection of a node's ports (IBTA 1.4, 14.2.4.1).
#[derive(Clone, Copy, Debug, Default)]
pub struct Protection {
    /// The M_Key.
    pub m_key: MKey,
    /// M_KeyProtectBits.
    pub level: u8,
    /// M_KeyViolations.
    pub violations: u16,
}

impl Protection {
    /// Whether a Get with this key gets a response.
    pub(crate) fn admits(&self, m_key: MKey) -> bool {
        self.level < 2 || self.is_owner(m_key)
    }

    /// Whether PortInfo shows the M_Key to a request with this key.
    pub(crate) fn shows_m_key(&self, m_key: MKey) -> bool {
        self.level == 0 || self.is_owner(m_key)
    }

    fn is_owner(&self, m_key: MKey) -> bool {
        !self.m_key.is_set() || m_key == self.m_key
    }
}

/// The requests that the nodes of a fabric have dropped since the start, by what they required.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Refusals {
    /// SMPs for their M_Key: each counts as a violation, and may cause trap 256.
    pub m_key: u64,
    /// GMPs for their P_Key: each counts as a violation, and may cause trap 257.
    pub p_key: u64,
    /// MADs of the vendor class for their VSKey.
    pub vs_key: u64,
}

/// Which part of the traffic has to be recomputed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Outdated {
    Nothing,
    Load,
    Routes,
}

/// A simulated fabric; see the module.
#[derive(Debug)]
pub struct Simulation {
    pub(super) net: Net,
    pub(super) ports: Vec<SimulatedPort>,
    pub(super) nodes: Vec<NodeState>,
    pub(super) subnets: Vec<Subnet>,
    /// The index of each port's subnet.
    pub(super) subnet_of: Vec<Option<u8>>,
    pub(crate) delivery: MadDelivery,
    pub(crate) seed: u64,
    pub(super) now: Moment,
    pub(super) pending: VecDeque<TimedChange>,
    pub(super) traffic: BTreeMap<String, Vec<Flow>>,
    /// Cables that were swapped: their serial numbers follow those of the first ones.
    pub(super) swapped_cables: u32,
    pub(super) routed: Option<RoutedFlows>,
    pub(super) outdated: Outdated,
    /// The ports that have errors at random, and the time up to which those are drawn.
    pub(super) error_ports: Vec<PortId>,
    pub(super) drawn_until: Moment,
    /// Incremented by each change of links or LIDs: hop counts found before are invalid.
    pub(crate) generation: u64,
    pub(crate) refusals: Refusals,
    /// The forwarding tables at a generation, once a request has needed them.
    forwarding: RefCell<Option<(u64, ForwardingTables)>>,
}

impl Simulation {
    /// The start of a scenario: all nodes are on, all links are up, all ports have LIDs.
    pub fn new(scenario: ResolvedScenario) -> Simulation {
        let ResolvedScenario { net, sm_ports, seed, delivery, changes, .. } = scenario;
        let subnet_of = subnet_indices(&net, &sm_ports);
        let subnet = |(number, &master): (usize, &PortId)| {
            let is_member = |port: &PortId| subnet_of[port.0 as usize] == Some(number as u8);
            Subnet::new(&net, net.port_ids().filter(is_member), master)
        };
        let subnets: Vec<Subnet> = sm_ports.iter().enumerate().map(subnet).collect();
        let start = Moment::default();
        let cables = net.cable_numbers();
        let port = |id: PortId| {
            SimulatedPort::new(net.port(id), cables[id.0 as usize], PortCounts::new(start))
        };
        let ports: Vec<SimulatedPort> = net.port_ids().map(port).collect();
        // Which ports are planes of one cable is known from HierarchyInfo only.
        let front_panel = if net.is_multi_plane() {
            FrontPanelBehavior::Normal
        } else {
            FrontPanelBehavior::default()
        };
        let initial = NodeState { on: true, front_panel, ..NodeState::default() };
        let mut simulation = Simulation {
            ports,
            nodes: vec![initial; net.nodes.len()],
            net,
            subnets,
            subnet_of,
            delivery,
            seed,
            now: start,
            pending: changes.into(),
            traffic: BTreeMap::new(),
            swapped_cables: 0,
            routed: None,
            outdated: Outdated::Routes,
            error_ports: Vec::new(),
            drawn_until: start,
            generation: 0,
            refusals: Refusals::default(),
            forwarding: RefCell::new(None),
        };
        // A link whose rate is limited from the start has trained within that limit.
        let first = simulation.pending.iter().take_while(|change| change.at.is_zero());
        let limits: Vec<_> = first
            .filter_map(|it| match it.change {
                FabricChange::LimitLink { port, width, speed } => Some((port, (width, speed))),
                _ => None,
            })
            .collect();
        for (port, limit) in limits {
            for end in std::iter::once(port).chain(simulation.net.port(port).cable) {
                simulation.port_mut(end).limit = limit;
            }
        }
        for port in simulation.net.port_ids() {
            simulation.retrain(port);
            if simulation.port(port).state == PortState::Init {
                let port = simulation.port_mut(port);
                (port.state, port.trained_at) = (PortState::Active, None);
            }
        }
        // The subnet managers have handled all this before the start.
        for subnet in 0..simulation.subnets.len() {
            simulation.assign_lids(subnet, |_| true);
            simulation.subnets[subnet].next_sweep = None;
        }
        simulation.nodes.fill(initial);
        simulation.advance(start);
        simulation.update_load();
        simulation
    }

    /// Applies all that is due until a moment.
    pub fn advance(&mut self, until: Moment) {
        while let Some(next) = self.next_change().filter(|&next| next <= until) {
            self.now = self.now.max(next);
            // Errors until now are those of the state before the changes of now.
            self.draw_errors();
            // All changes of one moment are one change.
            while self.pending.front().is_some_and(|change| due_at(change) <= self.now) {
                if let Some(due) = self.pending.pop_front() {
                    self.apply_change(due.change);
                }
            }
            for subnet in 0..self.subnets.len() {
                if self.subnets[subnet].next_sweep.take_if(|sweep| *sweep <= self.now).is_some() {
                    self.run_sm_sweep(subnet);
                }
            }
            self.update_load();
        }
        self.now = self.now.max(until);
    }

    /// Applies a change now, in addition to those of the scenario.
    pub fn apply(&mut self, now: Moment, change: FabricChange) {
        self.advance(now);
        self.draw_errors();
        self.apply_change(change);
        self.update_load();
    }

    /// Adds changes with times since a moment: each is applied when it is due, after others of that time.
    pub fn schedule(&mut self, from: Moment, changes: impl IntoIterator<Item = TimedChange>) {
        let from = from.since(Moment::default());
        let later = |change: TimedChange| TimedChange { at: from + change.at, ..change };
        self.pending.extend(changes.into_iter().map(later));
        self.pending.make_contiguous().sort_by_key(|change| change.at);
    }

    fn next_change(&self) -> Option<Moment> {
        let change = self.pending.front().map(due_at);
        let sweep = self.subnets.iter().filter_map(|subnet| subnet.next_sweep).min();
        // Without errors there is nothing to do each second.
        let draw = (!self.error_ports.is_empty()).then(|| self.next_draw());
        change.into_iter().chain(sweep).chain(draw).min()
    }

    /// The net as built.
    pub fn net(&self) -> &Net {
        &self.net
    }

    /// The time up to which it has advanced.
    pub fn now(&self) -> Moment {
        self.now
    }

    /// The present state of a port.
    pub fn port(&self, port: PortId) -> &SimulatedPort {
        &self.ports[port.0 as usize]
    }

    pub(super) fn port_mut(&mut self, port: PortId) -> &mut SimulatedPort {
        &mut self.ports[port.0 as usize]
    }

    /// The exact value of a port's counter, without its saturation.
    pub fn count(&self, port: PortId, counter: Counter) -> u64 {
        self.port(port).counts.get(counter, self.now)
    }

    pub(crate) fn node(&self, node: NodeId) -> &NodeState {
        &self.nodes[node.0 as usize]
    }

    pub(super) fn node_mut(&mut self, node: NodeId) -> &mut NodeState {
        &mut self.nodes[node.0 as usize]
    }

    /// The M_Key protection of a node.
    pub fn protection(&self, node: NodeId) -> Protection {
        self.node(node).protection
    }

    /// Counts a Get that a node has dropped for its M_Key.
    pub(crate) fn count_m_key_violation(&mut self, node: NodeId) {
        let violations = &mut self.node_mut(node).protection.violations;
        *violations = violations.saturating_add(1);
        self.refusals.m_key += 1;
    }

    /// The requests that nodes have dropped for a key.
    pub fn refusals(&self) -> Refusals {
        self.refusals
    }

    /// The subnet of a port; `None` for a port that was never in one.
    pub(crate) fn subnet(&self, port: PortId) -> Option<&Subnet> {
        self.subnets.get(usize::from(self.subnet_of[port.0 as usize]?))
    }

    pub(super) fn subnet_mut(&mut self, port: PortId) -> Option<&mut Subnet> {
        self.subnets.get_mut(usize::from(self.subnet_of[port.0 as usize]?))
    }

    /// The port with this LID in the subnet of a port, if the subnet manager has configured it there.
    pub fn port_of_lid(&self, from: PortId, lid: Lid) -> Option<PortId> {
        let port = *self.subnet(from)?.lids.get(&lid)?;
        // A port ignores the lowest LMC bits.
        let lmc = self.net.port(port).lmc;
        (self.port(port).lid.0 >> lmc == lid.0 >> lmc).then_some(port)
    }

    /// The port by which a switch sends what is for a LID, as its linear forwarding table has it: that of the paths over
    /// the present links, which traffic takes, too. 0 for its own LID; `None` without a path.
    ///
    /// A real subnet manager takes a moment to route around a link that went down; here traffic and tables do so at once.
    pub fn egress(&self, switch: NodeId, lid: Lid) -> Option<PortNumber> {
        let port0 = PortId(self.net.node(switch).first_port);
        let to = self.port_of_lid(port0, lid)?;
        let nth = lid.0 & ((1 << self.net.port(to).lmc) - 1);
        let mut known = self.forwarding.borrow_mut();
        known.take_if(|(generation, _)| *generation != self.generation);
        let (_, tables) = known.get_or_insert_with(|| {
            let is_active = |id: PortId| self.port(id).state == PortState::Active;
            let link = |id: PortId| self.port(id).cable.filter(|_| is_active(id));
            let links = self.net.port_ids().map(link).collect();
            (self.generation, ForwardingTables::new(&self.net, links))
        });
        tables.egress(&self.net, switch, to, nth)
    }

    /// The LID of the master subnet manager, as configured at a port.
    pub fn sm_lid(&self, port: PortId) -> Lid {
        self.subnet(port).map_or(Lid(0), |subnet| subnet.sm_lid)
    }
}

fn due_at(change: &TimedChange) -> Moment {
    Moment::default() + change.at
}
