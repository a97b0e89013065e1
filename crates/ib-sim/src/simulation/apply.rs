//! Applies the changes of a scenario, and the reaction of subnet managers.

use crate::change::FabricChange;
use crate::net::{NodeId, PortId};
use ib_mad::counter::Counter;
use ib_mad::node::NodeKind;
use ib_mad::port_state::PortState;
use ib_mad::register::LinkDown;
use ib_mad::{Lid, Moment};

use super::hop_counts::HopCounts;
use super::port::{PEER_RESET, PortCounts, SIGNAL_LOST};
use super::state::{Outdated, SM_REACTION_TIME, Simulation};

/// Packets that a reliable connection has outstanding when its path breaks, times the retries
/// before there is another path: 16 and 7 (IBTA 1.4, 9.9.2: a 3-bit retry count).
const LOST_WITH_A_LINK: u64 = 16 * 7;

/// Packets that come in at a port before its switch has routes to their destinations: some, as
/// observed at 267 of 279 ports of real Quantum-2 switches.
const UNROUTED: u64 = 16;

impl Simulation {
    pub(super) fn apply_change(&mut self, change: FabricChange) {
        match change {
            FabricChange::CorruptBits { port, ratio } => {
                self.port_mut(port).bit_errors = ratio;
                self.invalidate(Outdated::Load);
            }
            FabricChange::SetDirt { port, dirt } => {
                self.port_mut(port).dirt = dirt;
                self.invalidate(Outdated::Load);
            }
            FabricChange::SetModuleTemperature { port, degrees } => {
                self.port_mut(port).module_temperature = degrees;
            }
            FabricChange::SetModuleReport { port, report } => {
                self.port_mut(port).module_report = report;
            }
            FabricChange::SetDisabled { port, disabled } => {
                self.port_mut(port).disabled = disabled;
                self.retrain(port);
            }
            FabricChange::SwapCable { port } => {
                self.swapped_cables += 1;
                let serial = self.net.ports.len() as u32 + self.swapped_cables;
                for end in self.cable_ends(port) {
                    let state = self.port_mut(end);
                    (state.serial, state.dirt) = (serial, None);
                }
            }
            FabricChange::SetStateTable { nodes, behavior } => {
                for node in nodes {
                    self.node_mut(node).state_table = behavior;
                }
            }
            FabricChange::SetFrontPanel { nodes, behavior } => {
                for node in nodes {
                    self.node_mut(node).front_panel = behavior;
                }
            }
            FabricChange::SetRegisters { node, behavior } => {
                self.node_mut(node).registers = behavior;
            }
            FabricChange::SetVsKey { nodes, key } => {
                for node in nodes {
                    self.node_mut(node).vs_key = key;
                }
            }
            FabricChange::SetSignal { port, up } => self.set_signal(port, up),
            FabricChange::Retrain { port } => {
                let is_up = self.port(port).trained.is_some();
                for end in self.cable_ends(port).filter(|_| is_up) {
                    self.port_mut(end).counts.add(Counter::LinkErrorRecoveries, 1);
                }
            }
            FabricChange::LimitLink { port: end, width, speed } => {
                let is_limited = self.port(end).limit == (width, speed);
                let is_first = self.now == Moment::default();
                for end in self.cable_ends(end) {
                    self.port_mut(end).limit = (width, speed);
                }
                // A link changes its width and speed by going down and coming up again. One from the start has trained
                // within its limits.
                if self.port(end).signal && !(is_limited && is_first) {
                    self.set_signal(end, false);
                    self.set_signal(end, true);
                }
            }
            FabricChange::LimitIntake { port, fraction } => {
                self.port_mut(port).intake = fraction;
                self.invalidate(Outdated::Load);
            }
            FabricChange::SetPower { node, on } => self.set_power(node, on),
            FabricChange::ClearCounters { ports } => {
                for port in ports {
                    self.ports[port.0 as usize].counts.clear(self.now);
                }
            }
            FabricChange::SetCounter { port, counter, value } => {
                self.ports[port.0 as usize].counts.set(self.now, counter, value);
            }
            FabricChange::AddToCounter { port, counter, count } => {
                self.port_mut(port).counts.add(counter, count);
            }
            FabricChange::SetAgents { node, behavior } => self.node_mut(node).behavior = behavior,
            FabricChange::SetMKey { nodes, m_key, level } => {
                for node in nodes {
                    let protection = &mut self.node_mut(node).protection;
                    (protection.m_key, protection.level) = (m_key, level);
                }
            }
            FabricChange::SetMembership { nodes, full } => {
                for node in nodes {
                    self.node_mut(node).limited = !full;
                }
            }
            FabricChange::SetDelivery(delivery) => self.delivery = delivery,
            FabricChange::MoveCable { from, to } => self.move_cable(from, to),
            FabricChange::SetMaster { port, reassign_lids } => self.set_master(port, reassign_lids),
            FabricChange::SetTraffic { name, flows } => {
                self.traffic.insert(name, flows);
                self.invalidate(Outdated::Routes);
            }
        }
    }

    fn invalidate(&mut self, what: Outdated) {
        self.outdated = self.outdated.max(what);
    }

    fn cable_ends(&self, end: PortId) -> impl Iterator<Item = PortId> + use<> {
        std::iter::once(end).chain(self.port(end).cable)
    }

    fn set_signal(&mut self, end: PortId, up: bool) {
        for end in self.cable_ends(end) {
            self.port_mut(end).signal = up;
        }
        self.retrain(end);
    }

    /// Brings a link to its proper state: down, or up at what both ends support.
    pub(super) fn retrain(&mut self, end: PortId) {
        // A switch's port 0 has no cable, and is always up.
        if self.net.port(end).number == 0 {
            let is_switch = self.net.node_of(end).kind == NodeKind::Switch;
            self.port_mut(end).state = if is_switch { PortState::Active } else { PortState::Down };
            return;
        }
        let is_on = |of: &Self, end| of.node(of.net.port(end).node).on;
        let is_enabled = |end| is_on(self, end) && !self.port(end).disabled;
        let has_signal = self.port(end).signal && self.cable_ends(end).all(is_enabled);
        let agreed = self.port(end).cable.filter(|_| has_signal).and_then(|far| {
            // The highest that both have enabled, within the limits.
            let (width, speed) = self.port(end).limit;
            self.net.port(end).rates.common(self.net.port(far).rates).up_to(width, speed).best()
        });
        let was = self.port(end).trained;
        if was == agreed {
            return;
        }
        for end in self.cable_ends(end) {
            match (was, agreed) {
                (Some(_), None) => {
                    let is_peer_off = self.port(end).cable.is_some_and(|far| !is_on(self, far));
                    let cause = if is_peer_off { PEER_RESET } else { SIGNAL_LOST };
                    self.take_link_down(end, cause);
                }
                (None, Some(_)) => {
                    let now = self.now;
                    // Links from the start have had their routes before.
                    let counts_benign =
                        self.net.node_of(end).model.benign && now > Moment::default();
                    let port = self.port_mut(end);
                    (port.state, port.trained_at) = (PortState::Init, Some(now));
                    port.physical.restart(now);
                    if counts_benign {
                        port.counts.add(Counter::RcvSwitchRelayErrors, UNROUTED);
                        port.counts.add(Counter::RcvDlidMappingErrors, UNROUTED);
                    }
                }
                (None, None) | (Some(_), Some(_)) => {}
            }
            self.port_mut(end).trained = agreed;
            let node = self.net.port(end).node;
            if was.is_some() != agreed.is_some() {
                self.node_mut(node).port_state_change = true;
                self.schedule_sm_sweep(end);
            }
        }
        self.generation += 1;
        self.invalidate(Outdated::Routes);
    }

    /// A port loses its link: packets in transit are discarded.
    fn take_link_down(&mut self, end: PortId, cause: LinkDown) {
        let now = self.now;
        let counts_benign = self.net.node_of(end).model.benign;
        let port = self.port_mut(end);
        port.state = PortState::Down;
        // All changes of one moment count together: a link that has just come up cannot go down.
        if port.trained_at == Some(now) {
            return;
        }
        port.last_down = cause;
        port.counts.add(Counter::LinkDowned, 1);
        if counts_benign || port.counts.load().xmit_packets > 0.0 {
            port.counts.add(Counter::XmitDiscards, LOST_WITH_A_LINK);
            port.counts.add(Counter::XmitInactiveDiscards, LOST_WITH_A_LINK);
        }
    }

    fn set_power(&mut self, node: NodeId, on: bool) {
        // A node that is on is not restarted: its counters and its traffic continue.
        if self.node(node).on == on {
            return;
        }
        let now = self.now;
        let state = self.node_mut(node);
        state.on = on;
        if on {
            state.booted = now;
        }
        // This concerns a node without a link, too: its own host cannot reach it any more.
        self.generation += 1;
        if on {
            // Counters and LIDs are in the chip, and are lost. The behavior of its agents is an
            // effect of its own, with its own end.
            let first = self.net.node(node).first_port;
            for port in std::iter::once(PortId(first)).chain(self.net.cable_ports(node)) {
                let port = &mut self.ports[port.0 as usize];
                (port.counts, port.lid) = (PortCounts::new(self.now), Lid(0));
            }
        }
        for port in self.net.cable_ports(node) {
            self.retrain(port);
        }
    }

    fn move_cable(&mut self, from: PortId, to: PortId) {
        if from == to || [from, to].iter().any(|&end| self.net.port(end).number == 0) {
            return;
        }
        let far_ends = [from, to].map(|end| (self.port(end).cable, self.port(end).serial));
        for end in [from, to] {
            // Both ends see that it is pulled out first.
            self.set_signal(end, false);
            for end in self.cable_ends(end) {
                let port = self.port_mut(end);
                (port.cable, port.signal, port.limit) = (None, true, (None, None));
            }
        }
        for (end, (far, serial)) in [to, from].into_iter().zip(far_ends) {
            let Some(far) = far else { continue };
            // The two ends of one cable change places: it is where it was.
            let far = if far == end { if end == to { from } else { to } } else { far };
            for (end, far) in [(end, far), (far, end)] {
                let port = self.port_mut(end);
                (port.cable, port.serial) = (Some(far), serial);
            }
            self.retrain(end);
        }
    }

    fn set_master(&mut self, port: PortId, reassign_lids: bool) {
        let Some(subnet) = self.subnet_mut(port) else { return };
        if subnet.master != port {
            subnet.standbys.retain(|&standby| standby != port);
            let before = std::mem::replace(&mut subnet.master, port);
            subnet.standbys.push(before);
        }
        if reassign_lids {
            subnet.reassign_lids();
        }
        self.schedule_sm_sweep(port);
    }

    /// Configures the LIDs of the ports that are reached.
    pub(super) fn assign_lids(&mut self, subnet: usize, reached: impl Fn(PortId) -> bool) {
        let subnet = &mut self.subnets[subnet];
        // The first one of each port comes last.
        for (lid, port) in subnet.lids.iter().rev().filter(|(_, port)| reached(**port)) {
            for port in self.net.plane_ports(*port) {
                self.ports[port.0 as usize].lid = *lid;
            }
        }
        subnet.sm_lid = self.ports[subnet.master.0 as usize].lid;
    }

    /// A change at a port: its subnet's manager will sweep.
    fn schedule_sm_sweep(&mut self, port: PortId) {
        let due = self.now + SM_REACTION_TIME;
        if let Some(subnet) = self.subnet_mut(port) {
            subnet.next_sweep.get_or_insert(due);
        }
    }

    /// The subnet manager sweeps: links that have come up become active, and PortStateChange is
    /// cleared. If it does not run, nothing changes.
    pub(super) fn run_sm_sweep(&mut self, subnet: usize) {
        let master = self.subnets[subnet].master;
        let node = self.net.port(master).node;
        let mut planes = self.net.plane_ports(master);
        let is_running = self.node(node).on
            && (planes.any(|port| self.port(port).trained.is_some())
                || self.net.port(master).number == 0);
        if !is_running {
            return;
        }
        let hop_counts = HopCounts::new(self, master, false);
        for port in self.net.port_ids() {
            // It configures what it can reach.
            if hop_counts.to(self.net.sm_port(port)).is_none() {
                continue;
            }
            // A port that was built without a cable has one now: it joins the subnet.
            if self.subnet_of[port.0 as usize].is_none() {
                self.subnet_of[port.0 as usize] = Some(subnet as u8);
                self.subnets[subnet].add_port(&self.net, port);
            }
            if self.port(port).state == PortState::Init {
                self.port_mut(port).state = PortState::Active;
                self.generation += 1;
                self.invalidate(Outdated::Routes);
            }
            let node = self.net.port(port).node;
            self.node_mut(node).port_state_change = false;
        }
        self.assign_lids(subnet, |port| hop_counts.to(port).is_some());
        // LIDs may have changed.
        self.generation += 1;
    }
}
