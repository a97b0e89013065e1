//! Each action on small fabrics, and what holds after any of them.

mod any_story;
mod happens;
mod ways;

use std::collections::BTreeMap;

use super::*;
use crate::device::Model;
use crate::net::shapes::{BackToBack, FatTree};
use ib_mad::node::NodeKind;

/// A world, its time, and its ports by their labels.
struct Bench {
    world: World,
    now: Moment,
}

/// 8 hosts at 4 leaves, whose ports 1 and 2 lead to hosts, and 3 and 4 to 2 spines; each switch has
/// two ports free. The exporter sits at host-0, the manager at host-1.
fn tree() -> Net {
    let [switch, hca] = [(NodeKind::Switch, 54002), (NodeKind::Ca, 4129)]
        .map(|(kind, device)| Model::of_device(kind, device));
    let (down, up) = (Some(2), Some(2));
    FatTree {
        levels: 2,
        radix: 6,
        hosts: 8,
        down,
        up,
        ports: 1,
        planes: 1,
        aggregation_nodes: false,
        switch,
        hca,
    }
    .build()
    .unwrap()
}

fn pair() -> Net {
    BackToBack { hca: Model::of_device(NodeKind::Ca, 4129) }.build().unwrap()
}

fn find(net: &Net, label: &str) -> PortId {
    net.port_ids().find(|&port| net.label(port) == label).unwrap_or_else(|| panic!("no {label}"))
}

fn story(net: Net, steps: Vec<Step>) -> Story {
    let (seats, masters) = (vec![find(&net, "host-0[1]")], vec![find(&net, "host-1[1]")]);
    let soon = Duration::from_micros(20);
    let way = Way { round_trip: soon, per_hop: soon, jitter: soon, loss: 0.0 };
    Story { net, seats, masters, seed: 1, way, steps, told: Vec::new() }
}

impl Bench {
    fn new(net: Net) -> Bench {
        Bench { world: World::new(story(net, Vec::new())), now: Moment::default() }
    }

    fn port(&self, label: &str) -> PortId {
        find(&self.world.net, label)
    }

    fn node(&self, id: &str) -> NodeId {
        let net = &self.world.net;
        net.node_ids().find(|node| net.node(*node).id == id).unwrap()
    }

    fn act(&mut self, action: Action) {
        self.world.act(self.now, action);
    }

    /// Lets so many milliseconds go by.
    fn after(&mut self, milliseconds: u64) {
        self.now = self.now + Duration::from_millis(milliseconds);
        self.world.advance(self.now);
    }

    fn signal(&mut self, end: &str, up: bool) {
        self.act(Action::Signal { end: self.port(end), up });
    }

    fn power(&mut self, node: &str, on: bool) {
        self.act(Action::Power { node: self.node(node), on });
    }

    fn plug(&mut self, from: &str, to: &str) {
        self.act(Action::Move { from: self.port(from), to: self.port(to) });
    }

    fn send(&mut self, name: &str, pairs: &[(&str, &str)]) {
        let flow = |&(from, to)| Flow {
            from: self.port(from),
            to: self.port(to),
            offered: 1e9,
            packet: 4096,
        };
        let flows = pairs.iter().map(flow).collect();
        self.act(Action::Traffic { name: name.into(), flows });
    }

    fn state(&self, label: &str) -> u8 {
        self.world.port(self.port(label)).state
    }

    fn cable(&self, label: &str) -> Option<String> {
        let far = self.world.port(self.port(label)).cable?;
        Some(self.world.net.label(far))
    }

    fn count(&self, label: &str, counter: Counter) -> u64 {
        self.world.count(self.port(label), counter)
    }

    /// What all ports have counted of something, but those with nothing.
    fn counted(&self, counter: Counter) -> BTreeMap<String, u64> {
        let net = &self.world.net;
        let all = net.port_ids().map(|port| (net.label(port), self.world.count(port, counter)));
        all.filter(|(_, count)| *count > 0).collect()
    }

    fn assert_counted(&self, counter: Counter, expected: &[(&str, u64)]) {
        let expected = expected.iter().map(|(port, count)| ((*port).to_owned(), *count)).collect();
        assert_eq!(self.counted(counter), expected, "{counter:?}");
    }
}
