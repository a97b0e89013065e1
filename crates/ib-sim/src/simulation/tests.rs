//! Changes on small fabrics.

mod changes;
mod forwarding;
mod paths;
mod planes;
mod properties;

use std::collections::BTreeMap;
use std::time::Duration;

use super::*;
use crate::change::{AgentBehavior, FabricChange, MadDelivery, TimedChange};
use crate::load::Flow;
use crate::net::shapes::{BackToBack, FatTree};
use crate::net::{Net, NodeId, PortId};
use crate::scenario::ResolvedScenario;
use ib_mad::counter::Counter;
use ib_mad::node::NodeKind;
use ib_mad::port_state::PortState;
use ib_mad::{Lid, Moment};

/// A simulation, its time, and its ports by their labels.
struct Bench {
    simulation: Simulation,
    now: Moment,
}

/// 8 hosts at 4 leaves, with hosts at ports 1 and 2, and 2 spines at 3 and 4; each switch has two
/// ports free. The exporter is at host-0, the subnet manager at host-1.
fn tree() -> Net {
    FatTree { radix: 6, hosts: 8, down: Some(2), up: Some(2), ..FatTree::default() }
        .build()
        .unwrap()
}

fn pair() -> Net {
    BackToBack::default().build().unwrap()
}

fn find(net: &Net, label: &str) -> PortId {
    net.port_ids().find(|&port| net.label(port) == label).unwrap_or_else(|| panic!("no {label}"))
}

fn scenario(net: Net, changes: Vec<TimedChange>) -> ResolvedScenario {
    let (local_ports, sm_ports) = (vec![find(&net, "host-0[1]")], vec![find(&net, "host-1[1]")]);
    let delay = Duration::from_micros(20);
    let delivery = MadDelivery { round_trip: delay, per_hop: delay, jitter: delay, loss: 0.0 };
    let descriptions = Vec::new();
    ResolvedScenario {
        net,
        local_ports,
        sm_ports,
        seed: 1,
        delivery,
        changes,
        own_host: None,
        descriptions,
    }
}

impl Bench {
    fn new(net: Net) -> Bench {
        Bench { simulation: Simulation::new(scenario(net, Vec::new())), now: Moment::default() }
    }

    fn port(&self, label: &str) -> PortId {
        find(&self.simulation.net, label)
    }

    fn node(&self, id: &str) -> NodeId {
        let net = &self.simulation.net;
        net.node_ids().find(|node| net.node(*node).id == id).unwrap()
    }

    fn apply(&mut self, change: FabricChange) {
        self.simulation.apply(self.now, change);
    }

    /// Advances the time.
    fn after(&mut self, milliseconds: u64) {
        self.now = self.now + Duration::from_millis(milliseconds);
        self.simulation.advance(self.now);
    }

    fn signal(&mut self, end: &str, up: bool) {
        self.apply(FabricChange::SetSignal { port: self.port(end), up });
    }

    fn power(&mut self, node: &str, on: bool) {
        self.apply(FabricChange::SetPower { node: self.node(node), on });
    }

    fn move_cable(&mut self, from: &str, to: &str) {
        self.apply(FabricChange::MoveCable { from: self.port(from), to: self.port(to) });
    }

    fn send(&mut self, name: &str, pairs: &[(&str, &str)]) {
        let flow = |&(from, to)| Flow {
            from: self.port(from),
            to: self.port(to),
            offered: 1e9,
            packet: 4096,
        };
        let flows = pairs.iter().map(flow).collect();
        self.apply(FabricChange::SetTraffic { name: name.into(), flows });
    }

    fn state(&self, label: &str) -> PortState {
        self.simulation.port(self.port(label)).state
    }

    fn cable(&self, label: &str) -> Option<String> {
        let far = self.simulation.port(self.port(label)).cable?;
        Some(self.simulation.net.label(far))
    }

    fn count(&self, label: &str, counter: Counter) -> u64 {
        self.simulation.count(self.port(label), counter)
    }

    /// The ports whose counter is not 0.
    fn counted(&self, counter: Counter) -> BTreeMap<String, u64> {
        let net = &self.simulation.net;
        let all =
            net.port_ids().map(|port| (net.label(port), self.simulation.count(port, counter)));
        all.filter(|(_, count)| *count > 0).collect()
    }

    fn assert_counted(&self, counter: Counter, expected: &[(&str, u64)]) {
        let expected = expected.iter().map(|(port, count)| ((*port).to_owned(), *count)).collect();
        assert_eq!(self.counted(counter), expected, "{counter:?}");
    }
}

#[test]
fn later_changes_are_scheduled_between_others() {
    let port = find(&tree(), "leaf-0-0[1]");
    let set = |seconds| TimedChange {
        at: Duration::from_secs(seconds),
        change: FabricChange::SetCounter { port, counter: Counter::SymbolErrors, value: seconds },
    };
    let mut simulation = Simulation::new(scenario(tree(), vec![set(10), set(60)]));
    let at = |seconds| Moment::default() + Duration::from_secs(seconds);
    simulation.advance(at(20));
    simulation.schedule(at(20), [set(5), set(40), set(50)]);
    for (now, value) in [(24, 10), (25, 5), (59, 5), (60, 40), (69, 40), (70, 50)] {
        simulation.advance(at(now));
        assert_eq!(simulation.count(port, Counter::SymbolErrors), value, "{now}");
    }
}
