//! The world: a fabric as it is at a moment, and the time that goes by in it.
//!
//! Nothing happens in it by itself. Whoever asks it something tells what time it is, and the world
//! first lives through all that was to happen until then, in order. So the same story told with the
//! same seed is the same world at each moment, however often and however late it is asked.

mod chances;
mod counts;
mod happens;
mod link;
mod reach;
mod subnet;

use std::collections::{BTreeMap, VecDeque};
use std::time::Duration;

pub use chances::has_fec;
pub use link::PortState;
pub use reach::{Reach, follow};
pub use subnet::Subnet;

use counts::Counts;
use ib_mad::counter::Counter;
use ib_mad::m_key::MKey;
use ib_mad::port_state::state;
use ib_mad::{Lid, Moment};

use super::load::{Flow, Routed};
use super::net::{Net, NodeId, PortId};
use super::scenario::{Action, Manner, Step, Story, Way};

/// How long a subnet manager takes to see that a link changed and to act on it: it is told by a
/// trap, sweeps, and configures. OpenSM takes some tenths of a second on a small fabric, and
/// several seconds on a large one.
const SM_REACTS: Duration = Duration::from_secs(1);

/// A node as it is now.
#[derive(Clone, Copy, Debug)]
struct NodeState {
    on: bool,
    manner: Manner,
    /// SwitchInfo's PortStateChange.
    port_state_change: bool,
    protection: Protection,
    /// A limited member of the default partition.
    limited: bool,
}

/// How a node's ports are protected by an M_Key.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Protection {
    /// Their M_Key.
    pub m_key: MKey,
    /// M_KeyProtectBits.
    pub level: u8,
    /// M_KeyViolations.
    pub violations: u16,
}

impl Protection {
    /// Whether a Get with this key is answered (IBTA 1.4, 14.2.4.1).
    pub fn admits(&self, m_key: MKey) -> bool {
        self.level < 2 || self.knows(m_key)
    }

    /// Whether PortInfo shows the M_Key to a request with this key.
    pub fn tells(&self, m_key: MKey) -> bool {
        self.level == 0 || self.knows(m_key)
    }

    fn knows(&self, m_key: MKey) -> bool {
        !self.m_key.is_set() || m_key == self.m_key
    }
}

/// What of the traffic has to be worked out anew.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Stale {
    Nothing,
    Load,
    Routes,
}

/// See the module.
#[derive(Debug)]
pub struct World {
    net: Net,
    ports: Vec<PortState>,
    nodes: Vec<NodeState>,
    subnets: Vec<Subnet>,
    /// Which of the subnets each port belongs to.
    plane: Vec<u8>,
    way: Way,
    seed: u64,
    now: Moment,
    to_come: VecDeque<Step>,
    /// When each subnet's manager looks at what has changed.
    looks: Vec<Option<Moment>>,
    traffic: BTreeMap<String, Vec<Flow>>,
    routed: Option<Routed>,
    stale: Stale,
    /// Ports at which chance has a say, and up to when it has had it.
    dicey: Vec<PortId>,
    drawn: Moment,
    /// Goes up when some link changed: what was found out about ways holds no longer.
    shape: u64,
}

impl World {
    /// The world at the beginning of a story: all nodes on, all links up, everybody addressed.
    pub fn new(story: Story) -> World {
        let Story { net, masters, seed, way, steps, .. } = story;
        let plane = subnet::subnets_of(&net, &masters);
        let subnets: Vec<Subnet> = masters
            .iter()
            .enumerate()
            .map(|(number, &master)| {
                let of_it = |port: &PortId| usize::from(plane[port.0 as usize]) == number;
                Subnet::new(&net, net.port_ids().filter(of_it), master)
            })
            .collect();
        let start = Moment::default();
        let ports = net.ports.iter().map(|port| PortState::new(port, Counts::new(start)));
        let sound = NodeState {
            on: true,
            manner: Manner::Well,
            port_state_change: false,
            protection: Protection::default(),
            limited: false,
        };
        let mut world = World {
            ports: ports.collect(),
            nodes: vec![sound; net.nodes.len()],
            looks: vec![None; subnets.len()],
            net,
            subnets,
            plane,
            way,
            seed,
            now: start,
            to_come: steps.into(),
            traffic: BTreeMap::new(),
            routed: None,
            stale: Stale::Routes,
            dicey: Vec::new(),
            drawn: start,
            shape: 0,
        };
        for port in world.net.port_ids() {
            world.retrain(port);
            if world.port(port).state == state::INIT {
                let port = world.port_mut(port);
                (port.state, port.trained_at) = (state::ACTIVE, None);
            }
        }
        // All that is long past: the managers have seen it.
        for subnet in 0..world.subnets.len() {
            world.address(subnet, |_| true);
        }
        world.nodes.fill(sound);
        world.looks.fill(None);
        world.advance(start);
        world.reckon();
        world
    }

    /// Lives through all that happens until a moment.
    pub fn advance(&mut self, until: Moment) {
        while let Some(next) = self.next_change().filter(|&next| next <= until) {
            self.now = self.now.max(next);
            // The time until now was as it was before what happens now.
            self.draw();
            // What happens at one moment is one change.
            while self.to_come.front().is_some_and(|step| time_of(step) <= self.now) {
                if let Some(step) = self.to_come.pop_front() {
                    self.happen(step.action);
                }
            }
            for subnet in 0..self.looks.len() {
                if self.looks[subnet].is_some_and(|look| look <= self.now) {
                    self.looks[subnet] = None;
                    self.manage(subnet);
                }
            }
            self.reckon();
        }
        self.now = self.now.max(until);
    }

    /// Something that happens now, beside the story.
    pub fn act(&mut self, now: Moment, action: Action) {
        self.advance(now);
        self.draw();
        self.happen(action);
        self.reckon();
    }

    fn next_change(&self) -> Option<Moment> {
        let step = self.to_come.front().map(time_of);
        let look = self.looks.iter().flatten().min().copied();
        // A world at rest passes over its seconds at once.
        let draw = (!self.dicey.is_empty()).then(|| chances::next_after(self.drawn));
        step.into_iter().chain(look).chain(draw).min()
    }

    /// What was built.
    pub fn net(&self) -> &Net {
        &self.net
    }

    /// The time up to which it has lived.
    pub fn now(&self) -> Moment {
        self.now
    }

    /// What chance is drawn from.
    pub fn seed(&self) -> u64 {
        self.seed
    }

    /// How MADs travel now.
    pub fn way(&self) -> &Way {
        &self.way
    }

    /// Counts the changes of links: while it stays, so do the ways.
    pub fn shape(&self) -> u64 {
        self.shape
    }

    /// A port as it is now.
    pub fn port(&self, port: PortId) -> &PortState {
        &self.ports[port.0 as usize]
    }

    fn port_mut(&mut self, port: PortId) -> &mut PortState {
        &mut self.ports[port.0 as usize]
    }

    /// What a port has counted, exactly.
    pub fn count(&self, port: PortId, counter: Counter) -> u64 {
        self.port(port).counts.get(counter, self.now)
    }

    /// How many symbols forward error correction has mended at a port.
    pub fn mended(&self, port: PortId) -> u64 {
        self.port(port).counts.mended(self.now)
    }

    /// Whether a node runs.
    pub fn is_on(&self, node: NodeId) -> bool {
        self.nodes[node.0 as usize].on
    }

    /// How a node's agents answer.
    pub fn manner(&self, node: NodeId) -> Manner {
        self.nodes[node.0 as usize].manner
    }

    /// How a node is protected by an M_Key.
    pub fn protection(&self, node: NodeId) -> Protection {
        self.nodes[node.0 as usize].protection
    }

    /// A node has dropped a Get for its key.
    pub fn count_m_key_violation(&mut self, node: NodeId) {
        let violations = &mut self.nodes[node.0 as usize].protection.violations;
        *violations = violations.saturating_add(1);
    }

    /// Whether a node's ports are limited members of the default partition.
    pub fn is_limited(&self, node: NodeId) -> bool {
        self.nodes[node.0 as usize].limited
    }

    /// A switch's PortStateChange.
    pub fn port_state_change(&self, node: NodeId) -> bool {
        self.nodes[node.0 as usize].port_state_change
    }

    /// The subnet that a port is part of; `None` for one that was never joined to any.
    pub fn subnet(&self, port: PortId) -> Option<&Subnet> {
        self.subnets.get(usize::from(self.plane[port.0 as usize]))
    }

    /// Whose LID this is, in the subnet of a port: a port that has been told so.
    pub fn holder(&self, from: PortId, lid: Lid) -> Option<PortId> {
        let holder = self.subnet(from)?.holder(lid)?;
        // The lowest bits of a LID are its port's own affair.
        let lmc = self.net.port(holder).lmc;
        (self.port(holder).lid.0 >> lmc == lid.0 >> lmc).then_some(holder)
    }

    /// The LID of the master subnet manager, as a port knows it.
    pub fn sm_lid(&self, port: PortId) -> Lid {
        self.subnet(port).map_or(Lid(0), |subnet| subnet.sm_lid)
    }
}

/// When a step of the story is due; the world begins with it.
fn time_of(step: &Step) -> Moment {
    Moment::default() + step.at
}

#[cfg(test)]
mod tests;
