//! What is not as it should be at a site from the start, and is no fault.

use std::time::Duration;

use ib_mad::Counter;
use ib_mad::node::NodeKind;
use ib_mad::rate::{Speed, Width};
use ib_sim::load::Flow;
use ib_sim::net::{NodeId, PortId};
use ib_sim::scenario::{FabricChange, ModuleReport, RegisterBehavior, TableBehavior};

use super::builder::Builder;

const START: Duration = Duration::ZERO;

impl Builder {
    pub(super) fn add_imperfections(&mut self) {
        self.name_nodes();
        self.slow_by_design();
        self.dark_ports();
        self.old_firmware();
        self.modules();
        self.old_counts();
        self.background_errors();
        self.traffic();
    }

    /// Hosts without a NodeDescription, and hosts that were installed from one image with its name.
    fn name_nodes(&mut self) {
        let last = self.hosts.len() - super::net::MANAGERS;
        let singles: Vec<NodeId> =
            self.hosts[..last].iter().filter(|host| host.len() == 1).map(|host| host[0]).collect();
        for (nth, node) in singles.into_iter().enumerate() {
            let description = &mut self.net.nodes[node.0 as usize].description;
            match nth % 60 {
                17 => description.clear(),
                // mlx5 has this until the host's name is written to it.
                23 => "MT4123 ConnectX6   Mellanox Technologies".clone_into(description),
                31 | 32 => "localhost mlx5_0".clone_into(description),
                _ => continue,
            }
            self.note("adapters without a name of their own", 1);
        }
    }

    /// HDR100 and NDR200 adapters run at two lanes on ports that are not split, though both ends announce four.
    fn slow_by_design(&mut self) {
        let halved = |host: &usize| host % 12 == 5;
        let hosts = (0..self.hosts.len()).filter(halved);
        let nodes: Vec<NodeId> = hosts.flat_map(|host| self.hosts[host].clone()).collect();
        for node in nodes {
            if !["connectx-6", "connectx-7"].contains(&self.net.node(node).model.name) {
                continue;
            }
            for port in self.net.cable_ports(node) {
                if self.net.port(port).cable.is_some() {
                    let change =
                        FabricChange::LimitLink { port, width: Some(Width::X2), speed: None };
                    self.push(START, change);
                    self.note("links of HDR100 and NDR200 adapters, at two of four lanes", 1);
                }
            }
        }
        // Old cables for EDR between HDR switches: all links of a pair of switches.
        let is_old = |port: &PortId| {
            let node = self.net.node_of(*port);
            node.description == "svc-leaf02"
                && self
                    .net
                    .port(*port)
                    .cable
                    .is_some_and(|far| self.net.node_of(far).kind == NodeKind::Switch)
        };
        let old: Vec<PortId> = self.net.port_ids().filter(is_old).collect();
        for port in old {
            let change = FabricChange::LimitLink { port, width: None, speed: Some(Speed::Edr) };
            self.push(START, change);
            self.note("links between switches with cables for EDR", 1);
        }
    }

    /// Ports without a cable that had one once, and ports that an administrator disabled.
    fn dark_ports(&mut self) {
        let is_dark = |port: &PortId| {
            let built = self.net.port(*port);
            built.number > 0 && built.cable.is_none()
        };
        let dark: Vec<PortId> = self.net.port_ids().filter(is_dark).collect();
        self.note("dark ports", dark.len());
        for port in dark {
            if self.chance(0.1) {
                self.push(START, FabricChange::SetDisabled { port, disabled: true });
                self.note("dark ports that are disabled", 1);
            }
            if self.chance(0.3) {
                let value = 1 + self.below(200) as u64;
                self.set(port, Counter::LinkDowned, value);
                self.set(port, Counter::XmitDiscards, 112 * value);
            }
        }
    }

    /// Devices that refuse what they announce, or do not announce it.
    fn old_firmware(&mut self) {
        for node in self.net.node_ids().collect::<Vec<_>>() {
            let model = self.net.node(node).model;
            if model.registers && self.chance(0.06) {
                let behavior = if self.chance(0.5) {
                    RegisterBehavior::Refused
                } else {
                    RegisterBehavior::Absent
                };
                self.push(START, FabricChange::SetRegisters { node, behavior });
                self.note("devices without registers", 1);
            }
            if model.state_table && self.chance(0.05) {
                let behavior =
                    if self.chance(0.5) { TableBehavior::Refused } else { TableBehavior::Absent };
                self.push(START, FabricChange::SetStateTable { nodes: vec![node], behavior });
                self.note("switches without a table of port states", 1);
            }
        }
    }

    /// Modules that report no thresholds, or nothing: a report of ibdiagnet has "54C, threshold: 0C".
    fn modules(&mut self) {
        for port in self.cabled() {
            let far = self.net.port(port).cable.filter(|far| self.net.is_optical(port, *far));
            if far.is_none() {
                continue;
            }
            let report = match self.below(100) {
                0..5 => ModuleReport::NoThresholds,
                5..7 => ModuleReport::Zero,
                _ => continue,
            };
            self.push(START, FabricChange::SetModuleReport { port, report });
            self.note("optical modules without thresholds or values", 1);
            if self.chance(0.3) {
                let degrees = Some(54 + self.below(12) as u8);
                self.push(START, FabricChange::SetModuleTemperature { port, degrees });
            }
        }
    }

    fn set(&mut self, port: PortId, counter: Counter, value: u64) {
        self.push(START, FabricChange::SetCounter { port, counter, value });
    }

    /// What was counted before the monitor started, up to full counters.
    fn old_counts(&mut self) {
        for port in self.cabled() {
            if self.chance(0.5) {
                let value = 1 + self.below(30) as u64;
                self.set(port, Counter::LinkDowned, value);
            }
            if self.chance(0.2) {
                let value = self.below(20_000) as u64;
                self.set(port, Counter::SymbolErrors, value);
            }
            let is_switch = self.net.node_of(port).kind == NodeKind::Switch;
            if is_switch && self.chance(0.4) {
                let value = self.below(100_000) as u64;
                self.set(port, Counter::RcvSwitchRelayErrors, value);
            }
            // 5 of 256 ConnectX-7 of a public dump have a full SymbolErrorCounter.
            let is_classic = self.net.node_of(port).model.name == "connectx-7";
            if is_classic && self.chance(0.02) {
                self.set(port, Counter::SymbolErrors, 65_535);
                self.note("adapters with a full counter of symbol errors", 1);
            }
            // 4,000 corrections per second of a good link fill 32 bits in 12 days.
            if self.net.node_of(port).model.fec && self.chance(0.5) {
                self.set(port, Counter::FecCorrectedSymbols, u32::MAX.into());
                self.note("ports with full counters of corrected symbols", 1);
            }
        }
    }

    /// Rare bit errors, below the limits: 1e-14 for NDR, 1e-13 for EDR and HDR.
    fn background_errors(&mut self) {
        for port in self.cabled() {
            let limit = match self.net.node_of(port).model.fastest {
                Speed::Ndr => 1e-14,
                _ => 1e-13,
            };
            let share = match self.below(1_000) {
                0..10 => 10f64.powf(-3.0 + 2.0 * self.rng.next_f64()),
                10 => 0.1 + 0.1 * self.rng.next_f64(),
                _ => continue,
            };
            self.push(START, FabricChange::CorruptBits { port, ratio: limit * share });
            self.note("ports with bit errors below a fifth of the limit", 1);
        }
    }

    /// Jobs: rails to rails of the next hosts, single hosts to storage.
    fn traffic(&mut self) {
        let mut flows = Vec::new();
        let count = self.hosts.len() - super::net::MANAGERS;
        let port = |it: &Self, node: NodeId| {
            it.net.cable_ports(node).find(|port| it.net.port(*port).cable.is_some()).unwrap()
        };
        for host in 0..count {
            // A third of the hosts is idle.
            if self.chance(0.33) {
                continue;
            }
            let next = (0..count).map(|n| (host + n + 7) % count);
            let rails = self.hosts[host].len();
            let Some(peer) = next.into_iter().find(|it| self.hosts[*it].len() == rails) else {
                continue;
            };
            for rail in 0..rails {
                let [from, to] = [host, peer].map(|it| port(self, self.hosts[it][rail]));
                let offered = 2e9 + 4e9 * self.rng.next_f64();
                flows.push(Flow { from, to, offered, packet: 4096 });
            }
        }
        self.note("flows of jobs", flows.len());
        self.push(START, FabricChange::SetTraffic { name: "jobs".into(), flows });
    }
}
