//! A simulated fabric, whose responses a test may change.

use std::collections::HashMap;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::{Duration, SystemTime};

use ib_fabric::forwarding::cache::ForwardingCache;
use ib_fabric::forwarding::link_users::LinkUsers;
use ib_fabric::forwarding::link_users_query::LinkUsersQuery;
use ib_fabric::forwarding::route_query::{Endpoints, RouteQuery, Routes};
use ib_fabric::names::Naming;
use ib_fabric::topology::Link;
use ib_fabric::{Fabric, NodeIndex, PortIndex};
use ib_mad::forwarding_table::LinearForwardingTable;
use ib_mad::m_key::MKeys;
use ib_mad::moment::Anchor;
use ib_mad::{Lid, Mad, Moment, NodeKind, PortKey, PortNumber, method};
use ib_sim::scenario::{FabricChange, Overrides, Scenario};
use ib_sim::simulation::Simulation;
use ib_sim::transport::{SharedSimulation, SimClock, SimTransport, lock, share};
use ib_umad::client::{MadClient, SendConfig};
use ib_umad::plan::drain_until;
use ib_umad::{LocalPort, MadTransport, OutgoingMad, Received, SendError, TransportError};

use crate::plans::{discovered, run_plan};

/// What a test does to a response.
type Change = Rc<dyn Fn(&mut Mad)>;

/// What becomes of a request.
#[derive(Clone)]
pub enum Reply {
    /// The response of the simulation.
    Real,
    /// None.
    Lost,
    /// That of the simulation, changed.
    Changed(Change),
}

impl Reply {
    /// A refusal.
    pub fn status(status: u16) -> Reply {
        Reply::Changed(Rc::new(move |mad| mad.set_status(status)))
    }

    /// The same block with another port for a LID.
    pub fn entry(lid: Lid, port: PortNumber) -> Reply {
        Reply::Changed(Rc::new(move |mad| {
            LinearForwardingTable::decode(mad).with_port(lid, port).encode(mad);
        }))
    }
}

/// The transport: it counts requests of subnet management, and lets a test decide about the responses.
pub struct Transport {
    inner: SimTransport,
    pub smps: usize,
    pub reply: Box<dyn Fn(&OutgoingMad) -> Reply>,
    changed: HashMap<u32, Change>,
}

impl MadTransport for Transport {
    fn now(&self) -> Moment {
        self.inner.now()
    }

    fn anchor(&self) -> Anchor {
        self.inner.anchor()
    }

    fn local_port(&self) -> LocalPort {
        self.inner.local_port()
    }

    fn refresh(&mut self) {
        self.inner.refresh();
    }

    fn send(&mut self, outgoing: &OutgoingMad) -> Result<(), SendError> {
        assert_eq!(outgoing.mad.method(), method::GET, "nothing is set");
        self.smps += usize::from(outgoing.class.is_smp());
        match (self.reply)(outgoing) {
            Reply::Real => self.inner.send(outgoing),
            Reply::Lost => Ok(()),
            Reply::Changed(change) => {
                self.changed.insert(outgoing.mad.transaction_id(), change);
                self.inner.send(outgoing)
            }
        }
    }

    fn receive(&mut self, until: Moment) -> Result<Option<Received>, TransportError> {
        let mut received = self.inner.receive(until)?;
        if let Some(Received::Mad { mad, .. }) = &mut received
            && let Some(change) = self.changed.remove(&mad.transaction_id())
        {
            change(mad);
        }
        Ok(received)
    }
}

/// A simulated fabric, and what is known of it.
pub struct Bench {
    pub simulation: SharedSimulation,
    pub transport: Transport,
    pub fabric: Arc<Fabric>,
    pub cache: ForwardingCache,
    pub keys: MKeys,
}

impl Bench {
    /// A fabric of this shape, as in scenarios, with an LMC at all adapters.
    pub fn new(shape: &str, lmc: u8) -> Bench {
        let text = format!("{{fabric: {{{shape}}}, traffic: {{pattern: none}}}}");
        let scenario = Scenario::parse("test", &text).unwrap();
        let mut net = scenario.net(&Overrides::default()).unwrap();
        for index in 0..net.ports.len() {
            let of_switch = net.node(net.ports[index].node).kind == NodeKind::Switch;
            net.ports[index].lmc = if of_switch { 0 } else { lmc };
        }
        let scenario = scenario.resolve_on(net, &Overrides::default()).unwrap();
        let local_port = scenario.local_ports[0];
        let simulation = share(Simulation::new(scenario));
        let clock = SimClock::Virtual { began: SystemTime::UNIX_EPOCH };
        let transport = Transport {
            inner: SimTransport::new(Arc::clone(&simulation), local_port, clock),
            smps: 0,
            reply: Box::new(|_| Reply::Real),
            changed: HashMap::new(),
        };
        let mut bench = Bench {
            simulation,
            transport,
            fabric: Arc::default(),
            cache: ForwardingCache::default(),
            keys: MKeys::default(),
        };
        bench.discover();
        bench
    }

    /// Four leaves with two hosts each, and two spines.
    pub fn two_levels(lmc: u8) -> Bench {
        Bench::new("fat-tree: {radix: 6, hosts: 8, down: 2, up: 2}", lmc)
    }

    /// 16 hosts: eight leaves in four pods, with two hosts and two uplinks each.
    pub fn three_levels(lmc: u8) -> Bench {
        Bench::new("fat-tree: {levels: 3, radix: 4, hosts: 16}", lmc)
    }

    /// Discovers the fabric again.
    pub fn discover(&mut self) {
        let found = discovered(&mut self.transport).fabric;
        let now = self.transport.now();
        let previous = (!self.fabric.nodes.is_empty()).then_some((&*self.fabric, Moment(0)));
        self.fabric = Arc::new(Fabric::assemble(found, &Naming::default(), now, previous));
    }

    /// Lets time pass.
    pub fn wait(&mut self, time: Duration) {
        let until = self.transport.now() + time;
        let mut client = MadClient::new(SendConfig::default());
        drain_until(until, &mut client, &mut self.transport, &AtomicBool::new(false)).unwrap();
        lock(&self.simulation).advance(until);
    }

    pub fn apply(&mut self, change: FabricChange) {
        lock(&self.simulation).apply(self.transport.now(), change);
    }

    /// Cuts a link, and discovers the fabric without it.
    pub fn unplug(&mut self, label: &str) {
        let port = {
            let simulation = lock(&self.simulation);
            let net = simulation.net();
            net.port_ids().find(|port| net.label(*port) == label).unwrap()
        };
        self.apply(FabricChange::SetSignal { port, up: false });
        self.wait(Duration::from_secs(2));
        self.discover();
    }

    pub fn node(&self, name: &str) -> NodeIndex {
        let mut nodes = self.fabric.node_indexes();
        nodes.find(|node| self.fabric.node(*node).name == name).unwrap()
    }

    pub fn port(&self, name: &str, number: PortNumber) -> PortIndex {
        let guid = self.fabric.node(self.node(name)).identity.guid;
        self.fabric.find(PortKey::new(guid, number)).unwrap()
    }

    /// The LID of a host or switch.
    pub fn lid(&self, name: &str) -> Lid {
        let mut ports = self.fabric.ports_of(self.node(name));
        ports.find_map(|port| self.fabric.lid_of(port)).unwrap()
    }

    /// The link at a port.
    pub fn link(&self, name: &str, number: PortNumber) -> Link {
        let port = self.port(name, number);
        let peer = self.fabric.port(port).connected_peer().unwrap();
        Link { low: port.min(peer), high: port.max(peer) }
    }

    /// Changes responses with the blocks of a switch.
    pub fn on_tables_of(&mut self, switch: &str, reply: Reply) {
        let lid = self.lid(switch);
        self.transport.reply = Box::new(move |outgoing| {
            let is_table = outgoing.mad.attribute() == LinearForwardingTable::ID;
            if is_table && outgoing.lid == lid { reply.clone() } else { Reply::Real }
        });
    }

    /// The routes, and how many SMPs were sent for them.
    pub fn routes_of(&mut self, wanted: Vec<Endpoints>) -> (Routes, usize) {
        let before = self.transport.smps;
        let now = self.transport.now();
        let mut query = RouteQuery::new(&self.fabric, &mut self.cache, &self.keys, wanted, now);
        run_plan(&mut self.transport, &mut query);
        (query.finish(), self.transport.smps - before)
    }

    pub fn routes(&mut self, from: &str, to: &str) -> (Routes, usize) {
        let ends = Endpoints::between(&self.fabric, self.node(from), self.node(to));
        self.routes_of(ends)
    }

    /// The users of a link, and how many SMPs were sent for them.
    pub fn users(&mut self, link: Link, max_requests: usize) -> (LinkUsers, usize) {
        let before = self.transport.smps;
        let now = self.transport.now();
        let mut query = LinkUsersQuery::new(&self.fabric, &mut self.cache, &self.keys, link, now)
            .max_requests(max_requests);
        run_plan(&mut self.transport, &mut query);
        (query.finish(), self.transport.smps - before)
    }
}
