//! What happens at a site in a day: two cables go bad, a host stays down; all else is everyday life.

use std::collections::HashSet;
use std::time::Duration;

use ib_mad::Counter;
use ib_mad::node::NodeKind;
use ib_sim::load::Flow;
use ib_sim::net::{NodeId, PortId};
use ib_sim::scenario::{AgentBehavior, FabricChange};

use super::builder::Builder;
use super::size::Planted;

/// Firmware brings up the link before the driver resets the adapter.
const DRIVER_LOADS: Duration = Duration::from_secs(20);
/// For how long that reset takes.
const RESET: Duration = Duration::from_secs(4);
/// Hosts of a rack.
const RACK: usize = 18;
/// The host with a planted cable.
const PLANTED_HOST: usize = 10;
/// The host that does not come back from a reboot.
const LOST_HOST: usize = 17;

impl Builder {
    pub(super) fn add_day(&mut self) {
        self.subnet_managers();
        self.plant_bit_errors();
        self.plant_flaps();
        self.reboots();
        self.rack_maintenance();
        self.driver_restarts();
        self.hosts_out_of_service();
        self.single_flaps();
        self.retrainings();
        self.normal_discards();
        self.clears();
        self.tired_agents();
        self.congestion();
    }

    /// One master and two standbys.
    fn subnet_managers(&mut self) {
        let last = self.hosts.len() - 1;
        for nth in [2, 3, 1] {
            let node = self.hosts[last - nth][0];
            let port = self.port_of(node);
            self.push(Duration::ZERO, FabricChange::SetMaster { port, reassign_lids: false });
        }
    }

    /// The first port of an adapter that has a cable.
    fn port_of(&self, node: NodeId) -> PortId {
        let mut ports = self.net.cable_ports(node);
        ports.find(|port| self.net.port(*port).cable.is_some()).unwrap()
    }

    /// A cable from a spine to a core receives bit errors at ten times the limit.
    fn plant_bit_errors(&mut self) {
        let is_uplink = |port: &PortId| {
            let far = self.net.port(*port).cable.map(|far| &*self.net.node_of(far).description);
            self.net.node_of(*port).description == "pod1-spine02"
                && far.is_some_and(|name| name.starts_with("core"))
        };
        let port = self.net.port_ids().find(is_uplink).unwrap();
        let at = self.size.length.mul_f64(0.1);
        self.push(at, FabricChange::CorruptBits { port, ratio: 1e-13 });
        self.plant("receives bit errors at ten times the limit", port, at);
    }

    /// The cable of a host loses its signal now and then.
    fn plant_flaps(&mut self) {
        let node = self.hosts[PLANTED_HOST][3];
        let port = self.port_of(node);
        let at = self.size.length.mul_f64(0.3);
        for nth in 0..5_u32 {
            let at = at + Duration::from_secs(60 * [0, 11, 35, 64, 80][nth as usize]);
            let down = Duration::from_secs(u64::from(2 + nth));
            self.push(at, FabricChange::SetSignal { port, up: false });
            self.push(at + down, FabricChange::SetSignal { port, up: true });
        }
        self.plant("goes down for seconds, five times within 80 minutes", port, at);
    }

    fn plant(&mut self, fault: &'static str, port: PortId, at: Duration) {
        let ends = self.ends(port).unwrap().map(|end| self.label(end));
        self.planted.push(Planted { fault, ends, at });
    }

    /// Whether a host may have everyday trouble: it must not hide the planted fault, nor switch on the host that is down.
    fn is_free(&self, host: usize) -> bool {
        let is_chosen = [PLANTED_HOST, LOST_HOST].contains(&host);
        !is_chosen && host < self.hosts.len() - super::net::MANAGERS
    }

    fn free_host(&mut self) -> usize {
        loop {
            let host = self.any_host();
            if self.is_free(host) {
                return host;
            }
        }
    }

    /// A host goes off, and on after a time. Its link trains twice, with errors that do not count.
    fn boot(&mut self, host: usize, at: Duration, down: Duration) {
        let up = at + down;
        for node in self.hosts[host].clone() {
            for (at, on) in [
                (at, false),
                (up, true),
                (up + DRIVER_LOADS, false),
                (up + DRIVER_LOADS + RESET, true),
            ] {
                self.push(at, FabricChange::SetPower { node, on });
            }
            for port in self.net.cable_ports(node).collect::<Vec<_>>() {
                let Some(far) = self.net.port(port).cable else { continue };
                let count = 20 + self.below(2_000) as u64;
                for at in [up, up + DRIVER_LOADS + RESET] {
                    let counter = Counter::SymbolErrors;
                    self.push(at, FabricChange::AddToCounter { port: far, counter, count });
                }
            }
        }
    }

    fn reboots(&mut self) {
        let times = self.times(75.0);
        for _ in 0..times {
            let host = self.free_host();
            let at = self.moment(0.02, 0.98);
            let down = Duration::from_secs(120 + self.below(420) as u64);
            self.boot(host, at, down);
        }
        self.note("reboots of hosts", times);
    }

    /// A rack of CPU hosts gets a new kernel, one host after the other.
    fn rack_maintenance(&mut self) {
        let first = self.hosts.iter().position(|host| host.len() == 1).unwrap() + 20;
        let begin = self.size.length.mul_f64(0.4);
        for nth in 0..RACK {
            let at = begin + Duration::from_secs(150 * nth as u64);
            let down = Duration::from_secs(200 + self.below(60) as u64);
            self.boot(first + nth, at, down);
        }
        self.note("hosts of a rack that are rebooted in turn", RACK);
    }

    /// The driver of a host is loaded again: its adapters are reset, and the host stays on.
    fn driver_restarts(&mut self) {
        let times = self.times(20.0);
        for _ in 0..times {
            let host = self.free_host();
            let at = self.moment(0.02, 0.98);
            for node in self.hosts[host].clone() {
                self.push(at, FabricChange::SetPower { node, on: false });
                let again = at + Duration::from_secs(12);
                self.push(again, FabricChange::SetPower { node, on: true });
            }
        }
        self.note("restarts of the driver of a host", times);
    }

    /// A GPU host does not come back from a reboot; an administrator disables the ports to two others.
    fn hosts_out_of_service(&mut self) {
        let at = self.moment(0.55, 0.65);
        for node in self.hosts[LOST_HOST].clone() {
            self.push(at, FabricChange::SetPower { node, on: false });
        }
        self.note("GPU hosts that stay down", 1);
        let first = self.hosts.iter().position(|host| host.len() == 1).unwrap() + 50;
        for host in [first, first + 7] {
            let at = self.moment(0.3, 0.6);
            let port = self.port_of(self.hosts[host][0]);
            let far = self.net.port(port).cable.unwrap();
            self.push(at, FabricChange::SetDisabled { port: far, disabled: true });
        }
        self.note("switch ports to hosts that are disabled", 2);
    }

    /// Good links that go down once: one flap every 48 s was seen on more than 10 million links.
    fn single_flaps(&mut self) {
        let times = self.times(3.0);
        let cabled = self.quiet_links();
        for _ in 0..times {
            let port = cabled[self.below(cabled.len())];
            let at = self.moment(0.05, 0.9);
            self.push(at, FabricChange::SetSignal { port, up: false });
            let again = at + Duration::from_secs(1 + self.below(8) as u64);
            self.push(again, FabricChange::SetSignal { port, up: true });
        }
        self.note("single flaps of good links", times);
    }

    /// Links between switches and to hosts, but for planted cables.
    fn quiet_links(&self) -> Vec<PortId> {
        let planted: Vec<&String> = self.planted.iter().flat_map(|it| &it.ends).collect();
        let hosts = (0..self.hosts.len()).filter(|host| self.is_free(*host));
        let free: HashSet<NodeId> = hosts.flat_map(|host| self.hosts[host].clone()).collect();
        let is_quiet = |port: &PortId| {
            let mut ends = self.ends(*port).unwrap().into_iter();
            ends.all(|end| {
                let is_switch = self.net.node_of(end).kind == NodeKind::Switch;
                (is_switch || free.contains(&self.net.port(end).node))
                    && !planted.contains(&&self.label(end))
            })
        };
        self.cabled().into_iter().filter(is_quiet).collect()
    }

    fn retrainings(&mut self) {
        let times = self.times(40.0);
        let cabled = self.quiet_links();
        for _ in 0..times {
            let port = cabled[self.below(cabled.len())];
            let at = self.moment(0.0, 1.0);
            self.push(at, FabricChange::Retrain { port });
        }
        self.note("retrainings of good links", times);
    }

    /// Packets that a switch does not forward: multicast that comes back, and partitions of which a port is no member.
    fn normal_discards(&mut self) {
        let switch_ports: Vec<PortId> = (self.cabled().into_iter())
            .filter(|port| self.net.node_of(*port).kind == NodeKind::Switch)
            .collect();
        let hours = self.size.length.as_secs() / 3600;
        let mut count = 0;
        for port in switch_ports {
            let (counter, most) = match self.below(100) {
                0..6 => (Counter::RcvSwitchRelayErrors, 400),
                6 => (Counter::Vl15Dropped, 3),
                7 => (Counter::RcvConstraintErrors, 20),
                8 => (Counter::XmitConstraintErrors, 20),
                _ => continue,
            };
            count += 1;
            let phase = self.below(3_600) as u64;
            for hour in 0..hours {
                let at = Duration::from_secs(3_600 * hour + phase);
                let count = self.below(most) as u64;
                self.push(at, FabricChange::AddToCounter { port, counter, count });
            }
        }
        self.note("ports with discards that are normal", count);
    }

    /// A nightly job clears the counters of the older switches, another one those of some each two hours.
    fn clears(&mut self) {
        let is_older = |port: &PortId| self.net.node_of(*port).model.name == "quantum";
        let ports: Vec<PortId> = self.net.port_ids().filter(is_older).collect();
        let night = self.size.length.mul_f64(0.125);
        self.push(night, FabricChange::ClearCounters { ports });
        let is_cleared = |node: &NodeId| {
            ["svc-leaf01", "svc-leaf03"].contains(&&*self.net.node(*node).description)
        };
        let nodes: Vec<NodeId> = self.net.node_ids().filter(is_cleared).collect();
        let ports: Vec<PortId> = nodes.iter().flat_map(|it| self.net.cable_ports(*it)).collect();
        let times = self.size.length.as_secs() / 7_200;
        for nth in 0..times {
            let at = Duration::from_secs(7_200 * nth + 1_234);
            self.push(at, FabricChange::ClearCounters { ports: ports.clone() });
        }
        self.note("times that a tool clears counters", times as usize + 1);
    }

    /// Agents of busy hosts respond late, lose requests or say that they are busy; some hang for minutes.
    fn tired_agents(&mut self) {
        for (in_a_day, minutes, behavior) in [
            (10.0, 240, AgentBehavior::Delayed(Duration::from_millis(300))),
            (6.0, 60, AgentBehavior::Busy(0.2)),
            (8.0, 120, AgentBehavior::Lossy(0.1)),
            (4.0, 8, AgentBehavior::Silent),
        ] {
            let times = self.times(in_a_day);
            for _ in 0..times {
                let host = self.free_host();
                let at = self.moment(0.05, 0.9);
                let minutes = (minutes as f64 * (0.5 + self.rng.next_f64()) * 60.0).floor();
                let until = at + Duration::from_secs_f64(minutes);
                for node in self.hosts[host].clone() {
                    self.push(at, FabricChange::SetAgents { node, behavior });
                    let behavior = AgentBehavior::Normal;
                    self.push(until, FabricChange::SetAgents { node, behavior });
                }
            }
            self.note("hosts whose agents are late, busy or silent for some time", times);
        }
    }

    /// Many send to one for some minutes, and hosts that receive slowly.
    fn congestion(&mut self) {
        let incasts = self.times(12.0);
        for nth in 0..incasts {
            let to = self.free_host();
            let to = self.port_of(self.hosts[to][0]);
            let from: Vec<usize> = (0..24).map(|_| self.free_host()).collect();
            let flow = |host: &usize| {
                let from = self.port_of(self.hosts[*host][0]);
                Flow { from, to, offered: 2e9, packet: 4096 }
            };
            let flows = from.iter().map(flow).filter(|flow| flow.from != to).collect();
            let (at, name) = (self.moment(0.0, 0.95), format!("incast-{nth}"));
            let until = at + Duration::from_secs(120 + self.below(1_200) as u64);
            self.push(at, FabricChange::SetTraffic { name: name.clone(), flows });
            self.push(until, FabricChange::SetTraffic { name, flows: Vec::new() });
        }
        self.note("incasts of 24 senders", incasts);
        let slow = self.times(6.0);
        for _ in 0..slow {
            let host = self.free_host();
            let port = self.port_of(self.hosts[host][0]);
            let at = self.moment(0.0, 0.95);
            let fraction = 0.02 + 0.1 * self.rng.next_f64();
            self.push(at, FabricChange::LimitIntake { port, fraction });
            let until = at + Duration::from_secs(600 + self.below(3_000) as u64);
            self.push(until, FabricChange::LimitIntake { port, fraction: 1.0 });
        }
        self.note("hosts that receive slowly for some time", slow);
    }
}
