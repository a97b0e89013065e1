//! One test for two kinds of fabric: ibsim with OpenSM and the exporter itself, or the simulator with the
//! exporter's monitor in virtual time. The steps and assertions of a test are written once.

use std::time::Duration;

use clap::Parser;
use fabric_exporter::config::options::FabricOptions;
use ib_mad::counter::TABLE;
use ib_mad::node::NodeKind;
use ib_sim::net::{Net, NodeId, PortId};
use ib_sim::scenario::{
    AgentBehavior, FabricChange, MadDelivery, Overrides, ResolvedScenario, Scenario, TimedChange,
};

use super::counters::{Setting, of_metric};
use super::diags::{Discovery, Kind};
use super::{Exporter, Ibsim, Metrics, OpenSm, Proxy, Simulated, topology, wait_until};

/// A subnet manager needs time to bring a link up again; the exporter then needs a sweep.
const HEALS: Duration = Duration::from_secs(30);

/// The configuration of a test fabric.
#[derive(Clone, Debug)]
pub struct Site {
    /// The net file.
    pub net: String,
    /// The exporter's `--fabric.` flags.
    pub flags: &'static [&'static str],
    /// The additional delay of each response.
    pub round_trip: Duration,
    /// The number of lost MADs of a thousand.
    pub loss_permille: u32,
}

impl Site {
    /// A healthy fabric, swept every second.
    pub fn of(net: String) -> Self {
        let flags = &["--fabric.interval=1s"];
        Site { net, flags, round_trip: Duration::ZERO, loss_permille: 0 }
    }
}

/// A node's id, its GUID as in metrics, and whether it is a switch.
pub type NodeInfoRow = (String, String, bool);

/// A fabric, the faults that can be caused in it, and the exporter that monitors it.
pub trait Ground {
    /// The metrics.
    fn metrics(&self) -> Metrics;

    /// Waits until the metrics count this many more sweeps. The last of two began after the call.
    fn wait_sweeps(&self, count: u64);

    /// Waits until the metrics fulfill a condition.
    fn wait_for(&self, what: &str, is: impl Fn(&Metrics) -> bool);

    /// All nodes.
    fn nodes(&self) -> &[NodeInfoRow];

    /// The peer of a port.
    fn peer(&self, node: &str, port: u8) -> (String, u8);

    /// Sets counters.
    fn set(&self, settings: &[Setting]);

    /// Unplugs a cable.
    fn unlink(&self, node: &str, port: u8);

    /// Plugs it in again.
    fn relink(&self, node: &str, port: u8);

    /// The node forwards, and does not respond.
    fn silence(&self, node: &str);

    /// It responds again.
    fn unsilence(&self, node: &str);

    /// The subnet manager stops, and another one starts on this host without knowledge of its LIDs.
    fn another_master(&mut self, host: &str);

    /// Sets the counter of this metric.
    fn set_one(&self, node: &str, port: u8, metric: &str, value: u64) {
        let (node, counter) = (node.to_owned(), of_metric(metric));
        self.set(&[Setting { node, port, counter, value }]);
    }

    /// The metrics two sweeps after a change.
    fn two_sweeps_later(&self) -> Metrics {
        self.wait_sweeps(2);
        self.metrics()
    }

    /// A node's GUID, as in metrics.
    fn guid(&self, node: &str) -> &str {
        let found = self.nodes().iter().find(|(name, ..)| name == node);
        &found.unwrap_or_else(|| panic!("no node {node}")).1
    }

    /// The value of a port's `infiniband_port_` metric.
    fn port(&self, metrics: &Metrics, name: &str, node: &str, port: u8) -> Option<u64> {
        let labels = [("guid", self.guid(node)), ("port", &port.to_string())];
        metrics.get_u64(&format!("infiniband_port_{name}"), &labels)
    }

    /// Whether a node is up.
    fn is_up(&self, metrics: &Metrics, node: &str) -> bool {
        metrics.get("infiniband_node_up", &[("guid", self.guid(node))]) == Some(1.0)
    }

    /// All attributes of a fabric without faults are read.
    fn is_whole(&self, metrics: &Metrics) -> bool {
        metrics.get("fabric_exporter_nodes_failed", &[]) == Some(0.0)
            && metrics.get("fabric_exporter_ports_failed", &[]) == Some(0.0)
            && self.nodes().iter().all(|(node, ..)| self.is_up(metrics, node))
    }

    /// Waits until the condition is met.
    fn wait_whole(&self) {
        self.wait_for("everything to be read", |metrics| self.is_whole(metrics));
    }
}

/// On ibsim. The fields are dropped in this order.
pub struct OnIbsim {
    /// The program under test.
    pub exporter: Exporter,
    proxy: Option<Proxy>,
    /// The subnet manager, while there is one.
    pub opensm: Option<OpenSm>,
    /// The fabric.
    pub ibsim: Ibsim,
    /// As ibnetdiscover found it.
    pub found: Discovery,
    nodes: Vec<NodeInfoRow>,
}

impl OnIbsim {
    /// Starts all of it; the subnet manager runs on the net's first host, the exporter on its second.
    pub fn new(site: &Site) -> Self {
        let ibsim = Ibsim::start(&site.net);
        let opensm = Some(OpenSm::start(&ibsim));
        let found = Discovery::parse(&ibsim.tool("ibnetdiscover", &[]));
        let is_troubled = site.round_trip > Duration::ZERO || site.loss_permille > 0;
        let proxy =
            is_troubled.then(|| Proxy::between(&ibsim, site.round_trip, site.loss_permille));
        let exporter = Self::start_exporter(&ibsim, proxy.as_ref(), site);
        let known = found.nodes.iter().map(|node| {
            let is_switch = node.kind == Kind::Switch;
            (node.description.clone(), format!("{:#018x}", node.guid), is_switch)
        });
        let nodes = known.collect();
        OnIbsim { exporter, proxy, opensm, ibsim, found, nodes }
    }

    fn start_exporter(ibsim: &Ibsim, proxy: Option<&Proxy>, site: &Site) -> Exporter {
        let mut exporter = match proxy {
            Some(proxy) => Exporter::start(proxy, site.flags),
            None => Exporter::start(ibsim, site.flags),
        };
        exporter.wait_ready();
        exporter
    }

    /// Restarts the exporter: its totals begin with the present counters.
    pub fn restart(&mut self, site: &Site) {
        assert!(self.exporter.stop().success());
        self.exporter = Self::start_exporter(&self.ibsim, self.proxy.as_ref(), site);
    }

    /// Stops it, and checks the MADs that the exporter sent.
    pub fn end(mut self) {
        assert!(self.exporter.stop().success());
    }

    /// ibsim needs the port at which responses are dropped: a switch's is 0.
    fn drop_answers(&self, node: &str, percent: u8) {
        let is_switch = self.nodes.iter().any(|(name, _, is_switch)| name == node && *is_switch);
        let port = u8::from(!is_switch);
        self.ibsim.console(&format!("Error \"{node}\"[{port}] {percent}"));
    }
}

impl Ground for OnIbsim {
    fn metrics(&self) -> Metrics {
        self.exporter.metrics()
    }

    fn wait_sweeps(&self, count: u64) {
        self.exporter.wait_sweeps(count);
        if count > 1 {
            self.exporter.wait_fresh_sweep();
        }
    }

    fn wait_for(&self, what: &str, is: impl Fn(&Metrics) -> bool) {
        wait_until(HEALS, what, || is(&self.exporter.metrics()).then_some(()));
    }

    fn nodes(&self) -> &[NodeInfoRow] {
        &self.nodes
    }

    fn peer(&self, node: &str, port: u8) -> (String, u8) {
        let end = (self.found.node(node).guid, port);
        let other = |(a, b): &(_, _)| match (*a == end, *b == end) {
            (true, _) => Some(*b),
            (_, true) => Some(*a),
            _ => None,
        };
        let (guid, port) = self.found.links.iter().find_map(other).expect("a port with a cable");
        let node = self.found.nodes.iter().find(|node| node.guid == guid);
        (node.expect("the node of a link").description.clone(), port)
    }

    fn set(&self, settings: &[Setting]) {
        self.ibsim.set(settings);
    }

    fn unlink(&self, node: &str, port: u8) {
        self.ibsim.console(&format!("Unlink \"{node}\"[{port}]"));
    }

    fn relink(&self, node: &str, port: u8) {
        self.ibsim.console(&format!("ReLink \"{node}\"[{port}]"));
    }

    fn silence(&self, node: &str) {
        self.drop_answers(node, 100);
    }

    fn unsilence(&self, node: &str) {
        self.drop_answers(node, 0);
    }

    fn another_master(&mut self, host: &str) {
        drop(self.opensm.take());
        self.wait_sweeps(2);
        self.opensm = Some(OpenSm::start_at(self.ibsim.seat().at(host)));
    }
}

/// In the simulator.
pub struct InSimulator {
    /// The monitor and its simulated fabric.
    pub simulated: Simulated,
    /// How far time advances at once; not a divisor of the interval, so that it also stops within sweeps.
    step: Duration,
    nodes: Vec<NodeInfoRow>,
}

/// An idle net: no traffic, no events, and all programs on the same nodes as on ibsim.
pub fn at_rest(net: &str) -> ResolvedScenario {
    let hosts = topology::usable_hosts(net);
    let master = hosts.first().expect("a host with a cable on its first port");
    at_rest_from(topology::net(net), hosts.get(1).unwrap_or(master), master)
}

/// The same with these nodes for the programs, by their hosts' ids.
pub fn at_rest_from(net: Net, seat: &str, master: &str) -> ResolvedScenario {
    // Rust's quotes are valid in YAML.
    let text = format!("traffic: {{pattern: none}}\nseat: {seat:?}\nmaster: {master:?}\n");
    let story = Scenario::parse("at rest", &text)
        .and_then(|scenario| scenario.resolve_on(net, &Overrides::default()));
    story.unwrap_or_else(|error| panic!("{error}"))
}

/// The options of these flags.
#[derive(Parser)]
struct Flags {
    #[command(flatten)]
    fabric: FabricOptions,
}

impl Setting {
    fn change(&self, net: &Net) -> FabricChange {
        let row = TABLE.iter().find(|row| row.metric == self.counter.metric);
        let row = row.unwrap_or_else(|| panic!("no row {}", self.counter.metric));
        let port = port_in(net, &self.node, self.port);
        FabricChange::SetCounter { port, counter: row.counter, value: self.value }
    }
}

fn node_in(net: &Net, node: &str) -> NodeId {
    let found = net.node_ids().find(|&id| net.node(id).id == node);
    found.unwrap_or_else(|| panic!("no node {node}"))
}

fn port_in(net: &Net, node: &str, port: u8) -> PortId {
    let found = net.port_by_number(node_in(net, node), port);
    found.unwrap_or_else(|| panic!("no port {node}[{port}]"))
}

impl InSimulator {
    /// The site in the simulator after its first sweep.
    pub fn new(site: &Site) -> Self {
        Self::with_counters(site, &[])
    }

    /// The same, with these counters set before the first sweep.
    pub fn with_counters(site: &Site, settings: &[Setting]) -> Self {
        let mut story = at_rest(&site.net);
        let loss = f64::from(site.loss_permille) / 1000.0;
        story.delivery = MadDelivery {
            round_trip: story.delivery.round_trip + site.round_trip,
            loss,
            ..story.delivery
        };
        // By the scenario: the first sweep may be over at moment 0, before a test can act.
        let set = settings.iter().map(|setting| setting.change(&story.net));
        let set: Vec<TimedChange> =
            set.map(|change| TimedChange { at: Duration::ZERO, change }).collect();
        story.changes.splice(0..0, set);
        Self::of(story, site.flags)
    }

    /// A scenario, monitored with these flags.
    pub fn of(story: ResolvedScenario, flags: &[&str]) -> Self {
        let flags = Flags::parse_from([&["test"], flags].concat());
        let interval = flags.fabric.interval.map_or(Duration::from_secs(15), Duration::from);
        let net = &story.net;
        let known = net
            .nodes
            .iter()
            .map(|node| (node.id.clone(), node.guid.to_string(), node.kind == NodeKind::Switch));
        let nodes = known.collect();
        let simulated = Simulated::with(story, flags.fabric);
        let ground = InSimulator { simulated, step: interval.mul_f64(0.17), nodes };
        ground.wait_sweeps(1);
        ground
    }

    /// Stops it.
    pub fn end(self) {
        drop(self);
    }

    fn step_until(&self, what: &str, is: impl Fn() -> bool) {
        // Virtual seconds are cheap: as many as the slowest sweeps may need.
        let mut left = 10 * HEALS;
        while !is() {
            left = left
                .checked_sub(self.step)
                .unwrap_or_else(|| panic!("timed out waiting for {what}"));
            self.simulated.run_for(self.step);
        }
    }

    fn node_id(&self, node: &str) -> NodeId {
        node_in(&self.simulated.story().net, node)
    }

    fn port_id(&self, node: &str, port: u8) -> PortId {
        port_in(&self.simulated.story().net, node, port)
    }

    fn signal(&self, node: &str, port: u8, up: bool) {
        self.simulated.act(FabricChange::SetSignal { port: self.port_id(node, port), up });
    }

    fn set_agents(&self, node: &str, behavior: AgentBehavior) {
        self.simulated.act(FabricChange::SetAgents { node: self.node_id(node), behavior });
    }
}

impl Ground for InSimulator {
    fn metrics(&self) -> Metrics {
        self.simulated.metrics()
    }

    fn wait_sweeps(&self, count: u64) {
        // Not from the metrics, which take longer to render than a sweep to simulate.
        let sweeps = || self.simulated.observation().stats.sweeps;
        let goal = sweeps() + count;
        self.step_until("the next sweeps", || sweeps() >= goal);
    }

    fn wait_for(&self, what: &str, is: impl Fn(&Metrics) -> bool) {
        self.step_until(what, || is(&self.metrics()));
    }

    fn nodes(&self) -> &[NodeInfoRow] {
        &self.nodes
    }

    fn peer(&self, node: &str, port: u8) -> (String, u8) {
        let net = &self.simulated.story().net;
        let peer = net.port(self.port_id(node, port)).cable.expect("a port with a cable");
        (net.node_of(peer).id.clone(), net.port(peer).number)
    }

    fn set(&self, settings: &[Setting]) {
        for setting in settings {
            self.simulated.act(setting.change(&self.simulated.story().net));
        }
    }

    fn unlink(&self, node: &str, port: u8) {
        self.signal(node, port, false);
    }

    fn relink(&self, node: &str, port: u8) {
        self.signal(node, port, true);
    }

    fn silence(&self, node: &str) {
        self.set_agents(node, AgentBehavior::Silent);
    }

    fn unsilence(&self, node: &str) {
        self.set_agents(node, AgentBehavior::Normal);
    }

    fn another_master(&mut self, host: &str) {
        self.simulated
            .act(FabricChange::SetMaster { port: self.port_id(host, 1), reassign_lids: true });
    }
}

/// Runs each of these tests on both kinds of fabric: a function, and its site.
#[macro_export]
macro_rules! on_either_ground {
    ($($name:ident: $site:expr),+ $(,)?) => {
        mod on_ibsim {
            use super::*;
            $(#[test]
            fn $name() {
                let mut ground = $crate::ground::OnIbsim::new(&$site);
                super::$name(&mut ground);
                ground.end();
            })+
        }
        mod in_the_simulator {
            use super::*;
            $(#[test]
            fn $name() {
                let mut ground = $crate::ground::InSimulator::new(&$site);
                super::$name(&mut ground);
                ground.end();
            })+
        }
    };
}
