//! Many hosts send to one: the waits and their root, from counters that the monitor read.
//!
//! Ticks and rates are those that the exporter's own monitor read from the simulated fabric.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use test_rig as rig;

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use ib_fabric::{NodeMap, PortIndex, Snapshot};
use ib_health::congestion::Wait;
use ib_health::congestion::{
    Congestion, CongestionReport, FLOOR, Level, Role, RootCause, used, wait,
};
use ib_mad::{Counter, Guid};
use rig::Simulated;

/// A fat tree of two levels with 160 hosts, 16 at each leaf.
const TREE: &str = "fabric: {fat-tree: {hosts: 160, radix: 32}}\ntraffic: {pattern: none}\n";

/// Two readings, and the time between them.
struct Between {
    earlier: Arc<Snapshot>,
    later: Arc<Snapshot>,
    /// The tick of each node.
    ticks: NodeMap<Option<u8>>,
}

impl Between {
    /// Two sweeps of the monitor, a minute apart.
    fn read(simulated: &Simulated, at: Duration) -> Between {
        simulated.run_to(at);
        let earlier = simulated.observation().snapshot.clone().unwrap();
        simulated.run_for(Duration::from_secs(60));
        let later = simulated.observation().snapshot.clone().unwrap();
        let net = &simulated.story().net;
        let tick = |guid: Guid| {
            let mut ports = net.port_ids().map(|port| net.node_of(port));
            ports.find(|node| node.guid == guid).unwrap().model.tick
        };
        let ticks = later.fabric.nodes.iter().map(|node| tick(node.identity.guid)).collect();
        Between { earlier, later, ticks }
    }

    /// The increase of a counter, and the seconds.
    fn grown(&self, port: PortIndex, counter: Counter) -> Option<(u64, f64)> {
        let (from, to) = (self.earlier.reading(port)?, self.later.reading(port)?);
        let seconds = to.at.since(from.at).as_secs_f64();
        Some((to.get(counter)? - from.get(counter)?, seconds))
    }

    fn waited(&self, port: PortIndex) -> Option<Wait> {
        let (ticks, seconds) = self.grown(port, Counter::XmitWait)?;
        let status = self.later.status(port)?;
        let tick = self.ticks[self.later.fabric.port(port).node];
        wait(ticks, tick, status.width?, status.speed?, seconds)
    }

    fn used(&self, port: PortIndex) -> Option<f32> {
        let (words, seconds) = self.grown(port, Counter::XmitData)?;
        let status = self.later.status(port)?;
        used(words * 4, status.width?, status.speed?, seconds)
    }

    fn found(&self) -> CongestionReport {
        let fabric = &self.later.fabric;
        let mut congestion = Congestion::default();
        congestion.update(
            fabric,
            |port| self.waited(port).map(|wait| wait.share),
            |port| self.used(port),
            self.later.ended,
        )
    }

    fn waiting(&self) -> BTreeSet<PortIndex> {
        let waits = |port: &PortIndex| self.waited(*port).is_some_and(|wait| wait.share >= FLOOR);
        self.later.fabric.port_indexes().filter(waits).collect()
    }

    /// The port of a host's leaf at the host's link.
    fn before(&self, host: &str) -> PortIndex {
        let fabric = &self.later.fabric;
        let is = |port: &PortIndex| fabric.node_of(*port).name.split(' ').next() == Some(host);
        let port = fabric.port_indexes().find(is).unwrap_or_else(|| panic!("no {host}"));
        fabric.port(port).peer.unwrap().port
    }
}

/// All ports that wait are victims of this root, in one region.
fn one_tree(between: &Between, found: &CongestionReport, root: PortIndex, cause: RootCause) {
    let waiting = between.waiting();
    let role_of = |port: PortIndex| {
        let found = found.roles.iter().find(|(of, _)| *of == port);
        found.map(|(_, role)| *role)
    };
    assert_eq!(role_of(root), Some(Role::Root(cause)));
    for port in &waiting {
        let role = if *port == root { Role::Root(cause) } else { Role::Victim { of: root } };
        assert_eq!(role_of(*port), Some(role), "{:?}", between.later.fabric.port_key(*port));
    }
    let roots = found.roles.iter().filter(|(_, role)| matches!(role, Role::Root(_)));
    assert_eq!(roots.count(), 1, "{:?}", found.roles);
    let [region] = found.regions.as_slice() else { panic!("{:?}", found.regions) };
    assert_eq!((region.root, region.roots), (root, 1));
    assert_eq!(region.ports as usize, waiting.len());
    assert!(region.ports >= 100, "{region:?}");
    assert_eq!(region.level, Level::High);
    println!("{} ports wait up to {} of the time", region.ports, region.share);
}

#[test]
fn slow_host_is_the_root_of_all_waits() {
    let timeline = "timeline:\n  \
        - burst: {at: 20s, from: 120, to: host-3, load: 10%}\n  \
        - slow-receiver: {at: 20s, host: host-3, takes: 30%}\n";
    let simulated = Simulated::text(&format!("{TREE}{timeline}"));
    let between = Between::read(&simulated, Duration::from_secs(50));
    let (found, root) = (between.found(), between.before("host-3"));
    one_tree(&between, &found, root, RootCause::SlowReceiver);
    let of_root = between.waited(root).unwrap();
    assert!(of_root.tick_reported && (of_root.share - 0.7).abs() < 0.01, "{of_root:?}");
    // Quantum-2 and ConnectX-7 announce their tick.
    let hosts = between
        .waiting()
        .into_iter()
        .filter(|port| !between.later.fabric.node_of(*port).is_switch());
    let hosts: Vec<PortIndex> = hosts.collect();
    assert!(hosts.len() >= 100);
    assert!(hosts.iter().all(|port| between.waited(*port).unwrap().tick_reported));
}

#[test]
fn many_to_one_receiver_is_a_root_without_waits() {
    let timeline = "timeline: [burst: {at: 20s, from: 120, to: host-3, load: 10%}]\n";
    let simulated = Simulated::text(&format!("{TREE}{timeline}"));
    let between = Between::read(&simulated, Duration::from_secs(50));
    let (found, root) = (between.found(), between.before("host-3"));
    assert!(!between.waiting().contains(&root));
    one_tree(&between, &found, root, RootCause::FullLink);
}

#[test]
fn no_waits_without_congestion() {
    let simulated = Simulated::text("fabric: {fat-tree: {hosts: 160, radix: 32}}\n");
    let between = Between::read(&simulated, Duration::from_secs(50));
    assert_eq!(between.found(), CongestionReport::default());
}
