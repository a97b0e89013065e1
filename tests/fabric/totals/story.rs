//! Random events between sweeps.

use std::time::Duration;

use ib_mad::Counter;
use ib_mad::node::NodeKind;
use ib_mad::rate::{Speed, Width};
use ib_sim::load::Flow;
use ib_sim::net::{Net, NodeId, PortId};
use ib_sim::scenario::{AgentBehavior, FabricChange, MadDelivery, ResolvedScenario};
use proptest::prelude::*;

use crate::totals::ledger::Tally;

/// An event is made of its kind, two indices and a fraction.
pub type Seeds = (u8, u32, u32, f64);

/// The events between two sweeps, each at a fraction of the time between them.
pub type Turn = Vec<(f64, Seeds)>;

/// The events of several sweeps.
pub fn turns() -> impl Strategy<Value = Vec<Turn>> {
    let seeds = (0..KINDS, 0..10_000_u32, 0..10_000_u32, 0.0..1.0);
    prop::collection::vec(prop::collection::vec((0.0..1.0, seeds), 0..5), 4..14)
}

/// The number of kinds of events; frequent ones have several numbers.
const KINDS: u8 = 25;

/// Makes changes of seeds, and ends effects again: a fabric with permanent faults everywhere tests
/// little.
pub struct Unrest {
    net: Net,
    delivery: MadDelivery,
    /// The ports of the exporter and of the subnet manager. Their nodes stay on: without the first
    /// there are no sweeps, without the second no LIDs after a training.
    local_ports: Vec<PortId>,
    hosts: Vec<PortId>,
    /// The effects that end, with the number of turns until then.
    ends: Vec<(u32, FabricChange)>,
    /// Of each name.
    flowing: [bool; 3],
    /// A cable was moved: a node may be cut off permanently.
    reshaped: bool,
    pub tally: Tally,
}

impl Unrest {
    pub fn new(story: &ResolvedScenario) -> Unrest {
        let net = story.net.clone();
        let is_host =
            |port: &PortId| net.node_of(*port).kind == NodeKind::Ca && net.port(*port).number > 0;
        Unrest {
            hosts: net.port_ids().filter(is_host).collect(),
            delivery: story.delivery,
            local_ports: story.local_ports.iter().chain(&story.sm_ports).copied().collect(),
            ends: Vec::new(),
            flowing: [false; 3],
            reshaped: false,
            tally: Tally::default(),
            net,
        }
    }

    /// The changes of a turn, in order of time.
    pub fn changes(&mut self, turn: &Turn) -> Vec<(f64, FabricChange)> {
        let mut changes = Vec::new();
        for (left, _) in &mut self.ends {
            *left = left.saturating_sub(1);
        }
        for (_, end) in self.ends.extract_if(.., |(left, _)| *left == 0) {
            changes.push((0.0, end));
        }
        let mut turn = turn.clone();
        turn.sort_by(|(a, _), (b, _)| a.total_cmp(b));
        for (share, seeds) in turn {
            self.event(share, seeds, &mut changes);
            // No other event in this turn.
            if matches!(changes.last(), Some((_, FabricChange::SetMaster { .. }))) {
                break;
            }
        }
        changes.sort_by(|(a, _), (b, _)| a.total_cmp(b));
        changes
    }

    /// Ends all effects in the next turn, and all traffic.
    pub fn end_all(&mut self) {
        for (left, _) in &mut self.ends {
            *left = 1;
        }
        for name in ["0", "1", "2", "across"] {
            self.ends.push((1, FabricChange::SetTraffic { name: name.into(), flows: Vec::new() }));
        }
        for end in self.net.port_ids() {
            self.ends.push((1, FabricChange::CorruptBits { port: end, ratio: 0.0 }));
        }
    }

    fn host(&self, n: u32) -> PortId {
        self.hosts[n as usize % self.hosts.len()]
    }

    /// Starts an effect that ends in this turn or some turns later.
    fn for_a_while(
        &mut self,
        (share, length): (f64, u32),
        changes: &mut Vec<(f64, FabricChange)>,
        (begin, end): (FabricChange, FabricChange),
    ) {
        changes.push((share, begin));
        match length % 4 {
            0 => changes.push((share + (1.0 - share) * 0.7, end)),
            turns => self.ends.push((turns, end)),
        }
    }

    #[expect(clippy::too_many_lines, reason = "a list of kinds")]
    fn event(&mut self, share: f64, seeds: Seeds, changes: &mut Vec<(f64, FabricChange)>) {
        let (kind, a, b, strength) = seeds;
        let port = PortId(a % self.net.ports.len() as u32);
        let node = NodeId(a % self.net.nodes.len() as u32);
        let ports_of = |node: NodeId| -> Vec<PortId> {
            self.net.cable_ports(node).chain(self.net.port_by_number(node, 0)).collect()
        };
        let when = (share, b);
        match kind {
            0..=2 => {
                // Some traffic fills a link, and some is a few packets, which the classic counters
                // can count for some time.
                let offered = 5e10 * 10f64.powf(-6.0 * strength);
                let flow = |from, to| Flow { from, to, offered, packet: 4096 };
                let flows = vec![
                    flow(self.host(a), self.host(b)),
                    flow(self.host(a + 1), self.host(b + 3)),
                ];
                let name = b as usize % 3;
                self.flowing[name] = !self.flowing[name];
                let flows = if self.flowing[name] { flows } else { Vec::new() };
                changes.push((share, FabricChange::SetTraffic { name: name.to_string(), flows }));
                self.tally.traffics += 1;
            }
            3..=5 => {
                let ratio = 10f64.powf(-9.0 - 4.0 * strength);
                let end = FabricChange::CorruptBits { port, ratio: 0.0 };
                let begin = FabricChange::CorruptBits { port, ratio };
                self.for_a_while(when, changes, (begin, end));
                self.tally.bad_cables += 1;
            }
            6 | 7 => {
                let [down, up] = [false, true].map(|up| FabricChange::SetSignal { port, up });
                self.for_a_while(when, changes, (down, up));
                self.tally.flaps += u64::from(b % 4 == 0);
                self.tally.unplugs += u64::from(b % 4 != 0);
            }
            8 => {
                changes.extend(vec![(share, FabricChange::Retrain { port }); 1 + b as usize % 3]);
                self.tally.retrains += 1;
            }
            9 => {
                let width = [None, Some(Width::X1)][b as usize % 2];
                let speed = [None, Some(Speed::Sdr), Some(Speed::Qdr)][b as usize / 2 % 3];
                let end = FabricChange::LimitLink { port, width: None, speed: None };
                let begin = FabricChange::LimitLink { port, width, speed };
                self.for_a_while(when, changes, (begin, end));
                self.tally.degrades += 1;
            }
            10..=12 => self.reboot(node, when, changes),
            13 | 14 => {
                changes.push((share, FabricChange::ClearCounters { ports: vec![port] }));
                self.tally.clears_of_a_port += 1;
            }
            24 => {
                // As tools that clear errors but not traffic, or the reverse.
                let counters = Counter::all().skip(b as usize % 12).step_by(1 + a as usize % 5);
                let clear = |counter| (share, FabricChange::SetCounter { port, counter, value: 0 });
                changes.extend(counters.map(clear));
                self.tally.clears_of_some += 1;
            }
            15 => {
                changes.push((share, FabricChange::ClearCounters { ports: ports_of(node) }));
                self.tally.clears_of_a_node += 1;
            }
            16 => {
                changes.push((
                    share,
                    FabricChange::ClearCounters { ports: self.net.port_ids().collect() },
                ));
                self.tally.clears_of_all += 1;
            }
            17 => {
                let clear = FabricChange::ClearCounters { ports: ports_of(node) };
                changes.push((share, clear.clone()));
                changes.push((share + (1.0 - share) / 2.0, clear));
                self.tally.clears_repeated += 1;
            }
            18 | 19 => {
                if self.local_ports.iter().any(|port| self.net.port(*port).node == node) {
                    return;
                }
                let behavior = [
                    AgentBehavior::Silent,
                    AgentBehavior::Lossy(strength),
                    AgentBehavior::Busy(strength),
                    AgentBehavior::Delayed(Duration::from_millis(200).mul_f64(strength)),
                ][b as usize / 4 % 4];
                let end = FabricChange::SetAgents { node, behavior: AgentBehavior::Normal };
                self.for_a_while(when, changes, (FabricChange::SetAgents { node, behavior }, end));
                self.tally.silences += 1;
            }
            20 => {
                let begin = FabricChange::SetDelivery(MadDelivery {
                    loss: 0.3 * strength,
                    ..self.delivery
                });
                self.for_a_while(when, changes, (begin, FabricChange::SetDelivery(self.delivery)));
                self.tally.losses += 1;
            }
            21 => {
                let to = PortId(b % self.net.ports.len() as u32);
                changes.push((share, FabricChange::MoveCable { from: port, to }));
                self.reshaped = true;
                self.tally.moves += 1;
            }
            22 => {
                let port = self.host(a);
                let [slow, sound] =
                    [strength, 1.0].map(|fraction| FabricChange::LimitIntake { port, fraction });
                self.for_a_while(when, changes, (slow, sound));
                self.tally.slow_hosts += 1;
            }
            _ => {
                // Not together with other faults: `days` has both.
                if !self.ends.is_empty() || !changes.is_empty() || self.reshaped {
                    return;
                }
                let port = self.local_ports[self.local_ports.len() - 1];
                changes.push((share, FabricChange::SetMaster { port, reassign_lids: true }));
                self.tally.readdressings += 1;
            }
        }
    }

    fn reboot(&mut self, node: NodeId, when: (f64, u32), changes: &mut Vec<(f64, FabricChange)>) {
        if self.local_ports.iter().any(|port| self.net.port(*port).node == node) {
            return;
        }
        let [off, on] = [false, true].map(|on| FabricChange::SetPower { node, on });
        self.for_a_while(when, changes, (off, on));
        if self.net.node(node).kind == NodeKind::Switch {
            self.tally.reboots_of_switches += 1;
        } else {
            self.tally.reboots_of_hosts += 1;
        }
    }
}
