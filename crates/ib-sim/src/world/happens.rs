//! What happens: each action of a story, and what a subnet manager does about it.

use crate::net::{NodeId, PortId};
use crate::scenario::Action;
use ib_mad::counter::Counter;
use ib_mad::node::NodeKind;
use ib_mad::port_state::state;
use ib_mad::{Lid, Moment};

use super::counts::Counts;
use super::link::train;
use super::{Reach, SM_REACTS, Stale, World};

/// Packets that a reliable connection has outstanding when its way breaks, and how often it sends
/// them again before somebody routes around: 16 and 7 (IBTA 1.4, 9.9.2: a 3-bit retry count).
const LOST_WITH_A_LINK: u64 = 16 * 7;

/// Packets that come in at a port before its switch has routes to their destinations: some, as seen
/// on 267 of 279 ports of real Quantum-2 switches.
const UNROUTED: u64 = 16;

impl World {
    pub(super) fn happen(&mut self, action: Action) {
        match action {
            Action::Corrupt { into, ratio } => {
                self.port_mut(into).bit_errors = ratio;
                self.outdate(Stale::Load);
            }
            Action::Signal { end, up } => self.signal(end, up),
            Action::Retrain { end } => self.recover(end),
            Action::Limit { end, width, speed } => {
                for end in self.ends(end) {
                    self.port_mut(end).limit = (width, speed);
                }
                // A link changes what it runs at by going down and coming up again.
                if self.port(end).signal {
                    self.signal(end, false);
                    self.signal(end, true);
                }
            }
            Action::Intake { port, share } => {
                self.port_mut(port).intake = share;
                self.outdate(Stale::Load);
            }
            Action::Power { node, on } => self.power(node, on),
            Action::Clear { ports } => {
                let now = self.now;
                for port in ports {
                    self.port_mut(port).counts.clear(now);
                }
            }
            Action::Set { port, counter, value } => {
                let now = self.now;
                self.port_mut(port).counts.set(now, counter, value);
            }
            Action::Agents { node, manner } => self.nodes[node.0 as usize].manner = manner,
            Action::Protect { nodes, m_key, level } => {
                for node in nodes {
                    let protection = &mut self.nodes[node.0 as usize].protection;
                    (protection.m_key, protection.level) = (m_key, level);
                }
            }
            Action::Membership { nodes, full } => {
                for node in nodes {
                    self.nodes[node.0 as usize].limited = !full;
                }
            }
            Action::Way(way) => self.way = way,
            Action::Move { from, to } => self.replug(from, to),
            Action::Master { port, readdresses } => self.take_over(port, readdresses),
            Action::Traffic { name, flows } => {
                if flows.is_empty() {
                    self.traffic.remove(&name);
                } else {
                    self.traffic.insert(name, flows);
                }
                self.outdate(Stale::Routes);
            }
        }
    }

    pub(super) fn outdate(&mut self, what: Stale) {
        self.stale = self.stale.max(what);
    }

    /// Both ends of the cable at a port.
    fn ends(&self, end: PortId) -> impl Iterator<Item = PortId> + use<> {
        let far = self.port(end).cable.filter(|&far| far != end);
        std::iter::once(end).chain(far)
    }

    fn signal(&mut self, end: PortId, up: bool) {
        for end in self.ends(end) {
            self.port_mut(end).signal = up;
        }
        self.retrain(end);
    }

    /// The link lost its signal for a moment and trains again by itself.
    fn recover(&mut self, end: PortId) {
        if self.port(end).trained.is_none() {
            return;
        }
        for end in self.ends(end) {
            self.port_mut(end).counts.add(Counter::LinkErrorRecoveries, 1);
        }
        self.retrain(end);
    }

    /// Brings a link to where it should be: down, or up at what both ends can do.
    pub(super) fn retrain(&mut self, end: PortId) {
        // A switch's own port has no cable, and is always there.
        if self.net.port(end).number == 0 {
            let is_switch = self.net.node_of(end).kind == NodeKind::Switch;
            self.port_mut(end).state = if is_switch { state::ACTIVE } else { state::DOWN };
            return;
        }
        let agreed = self.port(end).cable.and_then(|far| {
            let ends = [end, far];
            let alive = ends
                .iter()
                .all(|&end| self.port(end).signal && self.is_on(self.net.port(end).node));
            let of = |end: PortId| (self.net.port(end), self.port(end));
            if alive { train(of(end), of(far)) } else { None }
        });
        let was = self.port(end).trained;
        if was == agreed {
            return;
        }
        for end in self.ends(end) {
            match (was, agreed) {
                (Some(_), None) => self.lose(end),
                (None, Some(_)) => {
                    let now = self.now;
                    // What was there at the beginning has had its routes for long.
                    let counts_benign =
                        self.net.node_of(end).model.counts_benign && now > Moment::default();
                    let port = self.port_mut(end);
                    (port.state, port.trained_at) = (state::INIT, Some(now));
                    if counts_benign {
                        port.counts.add(Counter::RcvSwitchRelayErrors, UNROUTED);
                        port.counts.add(Counter::RcvDlidMappingErrors, UNROUTED);
                    }
                }
                _ => {}
            }
            self.port_mut(end).trained = agreed;
            let node = self.net.port(end).node;
            if was.is_some() != agreed.is_some() {
                self.nodes[node.0 as usize].port_state_change = true;
                self.call_manager(end);
            }
        }
        self.shape += 1;
        self.outdate(Stale::Routes);
    }

    /// A port loses its link: what was on its way is discarded.
    fn lose(&mut self, end: PortId) {
        let now = self.now;
        let counts_benign = self.net.node_of(end).model.counts_benign;
        let port = self.port_mut(end);
        port.state = state::DOWN;
        // What happens at one moment is one change: a link that has just begun to come up was not
        // there to be lost.
        if port.trained_at == Some(now) {
            return;
        }
        port.counts.add(Counter::LinkDowned, 1);
        if counts_benign || port.counts.load().xmit_packets > 0.0 {
            port.counts.add(Counter::XmitDiscards, LOST_WITH_A_LINK);
            port.counts.add(Counter::XmitInactiveDiscards, LOST_WITH_A_LINK);
        }
    }

    fn power(&mut self, node: NodeId, on: bool) {
        // What runs is not started again: its counters and its traffic go on.
        if self.is_on(node) == on {
            return;
        }
        self.nodes[node.0 as usize].on = on;
        // Even a node without a link is reached differently: not at all, by its own host.
        self.shape += 1;
        if on {
            // Its counters are in the chip: they begin anew, and it has no LID until a manager
            // gives it one. How its agents answer is another matter, which has an end of its own.
            let now = self.now;
            let first = self.net.node(node).first_port;
            let own = std::iter::once(PortId(first)).chain(self.net.plugs_of(node));
            for port in own {
                let port = self.port_mut(port);
                (port.counts, port.lid) = (Counts::new(now), Lid(0));
            }
        }
        for port in self.net.plugs_of(node) {
            self.retrain(port);
        }
    }

    /// Pulls a cable's end out of one port and plugs it into another.
    fn replug(&mut self, from: PortId, to: PortId) {
        if from == to || [from, to].iter().any(|&end| self.net.port(end).number == 0) {
            return;
        }
        let far_ends = [self.port(from).cable, self.port(to).cable];
        for end in [from, to] {
            // Out of its port first: both ends see that.
            self.signal(end, false);
            for end in self.ends(end) {
                let port = self.port_mut(end);
                (port.cable, port.signal, port.limit) = (None, true, (None, None));
            }
        }
        for (end, far) in [to, from].into_iter().zip(far_ends) {
            let Some(far) = far else { continue };
            // A cable whose two ends change places is where it was.
            let far = if far == end { if end == to { from } else { to } } else { far };
            self.port_mut(end).cable = Some(far);
            self.port_mut(far).cable = Some(end);
            self.retrain(end);
        }
    }

    fn take_over(&mut self, port: PortId, readdresses: bool) {
        let Some(subnet) = self.subnets.get_mut(usize::from(self.plane[port.0 as usize])) else {
            return;
        };
        if subnet.master != port {
            subnet.standbys.retain(|&standby| standby != port);
            let before = std::mem::replace(&mut subnet.master, port);
            subnet.standbys.push(before);
        }
        if readdresses {
            subnet.readdress();
        }
        self.call_manager(port);
    }

    /// Tells the ports that are reached the LIDs that their subnet has for them.
    pub(super) fn address(&mut self, subnet: usize, reached: impl Fn(PortId) -> bool) {
        let subnet = &mut self.subnets[subnet];
        for (lid, port) in subnet.lids().filter(|(_, port)| reached(*port)) {
            self.ports[port.0 as usize].lid = lid;
        }
        subnet.sm_lid = self.ports[subnet.master.0 as usize].lid;
    }

    /// Something changed at a port: its subnet's manager will look.
    fn call_manager(&mut self, port: PortId) {
        let now = self.now;
        if let Some(look) = self.looks.get_mut(usize::from(self.plane[port.0 as usize])) {
            look.get_or_insert(now + SM_REACTS);
        }
    }

    /// The subnet manager looks: links that have come up are put to use, and PortStateChange is
    /// cleared. Without a manager that runs, nothing is.
    pub(super) fn manage(&mut self, subnet: usize) {
        let master = self.subnets[subnet].master;
        let node = self.net.port(master).node;
        let there = self.is_on(node)
            && (self.port(master).trained.is_some() || self.net.port(master).number == 0);
        if !there {
            return;
        }
        let reach = Reach::from(self, master, false);
        for port in self.net.port_ids() {
            // It configures what it can reach, and nothing behind a link that is down.
            if reach.hops(self.net.manager_seat(port)).is_none() {
                continue;
            }
            self.admit(port, subnet);
            if self.port(port).state == state::INIT {
                self.port_mut(port).state = state::ACTIVE;
                self.shape += 1;
                self.outdate(Stale::Routes);
            }
            let node = self.net.port(port).node;
            self.nodes[node.0 as usize].port_state_change = false;
        }
        self.address(subnet, |port| reach.hops(port).is_some());
        // Whoever has another LID now is reached by other ways.
        self.shape += 1;
    }

    /// A port that had no cable when the fabric was built has one now: it joins the subnet.
    fn admit(&mut self, port: PortId, subnet: usize) {
        let plane = &mut self.plane[port.0 as usize];
        if usize::from(*plane) < self.subnets.len() {
            return;
        }
        *plane = subnet as u8;
        self.subnets[subnet].admit(&self.net, port);
    }
}
