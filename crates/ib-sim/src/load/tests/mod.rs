//! The load of small fabrics.

mod errors;
mod losses;
mod paths;
mod properties;
mod waits;

use crate::device::DeviceModel;
use crate::net::rates::Rates;
use crate::net::{Net, Node, NodeId, Port, PortId};
use ib_mad::Guid;
use ib_mad::node::NodeKind;
use ib_mad::rate::SpeedSet;

use super::{Conditions, Flow, PortLoad, RoutedFlows};

/// The default rate of links, and the size of all packets.
const SPEED: f64 = 1e9;
const PACKET: u32 = 4096;

/// An end of a cable: the numbers of the node and of its port.
type End = (u32, u8);

/// A fabric whose links are as built, with a rate of `SPEED`.
#[derive(Clone, Debug)]
struct Bench {
    net: Net,
    links: Vec<Option<PortId>>,
    capacity: Vec<f64>,
    intake: Vec<f64>,
    bit_errors: Vec<f64>,
}

impl Bench {
    /// Nodes, by kind and number of ports, and the cables between them.
    fn new(nodes: &[(NodeKind, u8)], cables: &[(End, End)]) -> Bench {
        let mut net = Net::default();
        for (nth, &(kind, port_count)) in nodes.iter().enumerate() {
            let guid = Guid((nth as u64 + 1) << 8);
            let first_port = net.ports.len() as u32;
            net.nodes.push(Node {
                id: format!("n{nth}"),
                description: String::new(),
                kind,
                guid,
                system_guid: guid,
                vendor_id: 0,
                device_id: 0,
                model: DeviceModel::for_device(kind, 0),
                port_count,
                enhanced_port0: false,
                asic: None,
                first_port,
            });
            net.ports.extend((0..=port_count).map(|number| Port {
                node: NodeId(nth as u32),
                number,
                guid,
                cable: None,
                rates: Rates { widths: 2, speeds: SpeedSet::default() },
                plane: None,
                lid: None,
                lmc: 0,
            }));
        }
        for &((a, a_port), (b, b_port)) in cables {
            let a = net.port_by_number(NodeId(a), a_port).unwrap();
            let b = net.port_by_number(NodeId(b), b_port).unwrap();
            for (port, end) in [(a, b), (b, a)] {
                let cable = &mut net.ports[port.0 as usize].cable;
                assert_eq!(*cable, None, "{port:?} has two cables");
                *cable = Some(end);
            }
        }
        let ports = net.ports.len();
        Bench {
            links: net.ports.iter().map(|port| port.cable).collect(),
            capacity: vec![SPEED; ports],
            intake: vec![f64::INFINITY; ports],
            bit_errors: vec![0.0; ports],
            net,
        }
    }

    /// Hosts at each of two switches, the hosts first, and cables between the switches. The
    /// switches' ports from 1 on are those of the hosts in their order.
    fn dumbbell(hosts: u8, cables: u8) -> Bench {
        let mut nodes = vec![(NodeKind::Ca, 1); 2 * usize::from(hosts)];
        nodes.resize(nodes.len() + 2, (NodeKind::Switch, hosts + cables));
        let left = 2 * u32::from(hosts);
        let mut all = Vec::new();
        for host in 0..2 * hosts {
            all.push(((host.into(), 1), (left + u32::from(host / hosts), host % hosts + 1)));
        }
        all.extend((1..=cables).map(|nth| ((left, hosts + nth), (left + 1, hosts + nth))));
        Bench::new(&nodes, &all)
    }

    /// A full fat tree of three levels of switches with 2k ports, and k² hosts in each pod: the
    /// hosts, then all leaves, the middle level, the top. A leaf's ports 1 to k are those of hosts.
    fn fat_tree(k: u8, pods: u8) -> Bench {
        let wide = u32::from(k);
        let in_pod = wide * wide;
        let hosts = in_pod * u32::from(pods);
        let leaves = wide * u32::from(pods);
        let mut nodes = vec![(NodeKind::Ca, 1); hosts as usize];
        nodes.resize((hosts + 2 * leaves) as usize, (NodeKind::Switch, 2 * k));
        nodes.resize(nodes.len() + in_pod as usize, (NodeKind::Switch, pods));
        let mut cables = Vec::new();
        for host in 0..hosts {
            cables.push(((host, 1), (hosts + host / wide, (host % wide) as u8 + 1)));
        }
        for leaf in 0..leaves {
            let (pod, in_pod) = (leaf / wide, leaf % wide);
            for up in 0..wide {
                let middle = hosts + leaves + pod * wide + up;
                let port = wide + in_pod + 1;
                cables.push(((hosts + leaf, (wide + up + 1) as u8), (middle, port as u8)));
                // Each switch of the middle level to k top switches, by its index in the pod.
                let top = hosts + 2 * leaves + in_pod * wide + up;
                cables.push(((hosts + leaves + leaf, up as u8 + 1), (top, pod as u8 + 1)));
            }
        }
        Bench::new(&nodes, &cables)
    }

    fn port(&self, (node, port): End) -> PortId {
        self.net.port_by_number(NodeId(node), port).unwrap()
    }

    fn at(&self, end: End) -> usize {
        self.port(end).0 as usize
    }

    /// Removes the link at this port.
    fn cut(&mut self, end: End) {
        let port = self.port(end);
        if let Some(end) = self.links[port.0 as usize].take() {
            self.links[end.0 as usize] = None;
        }
    }

    /// Traffic between the first ports of two nodes, as a fraction of `SPEED`.
    fn flow(&self, from: u32, to: u32, share: f64) -> Flow {
        let (from, to) = (self.port((from, 1)), self.port((to, 1)));
        Flow { from, to, offered: share * SPEED, packet: PACKET }
    }

    fn flows(&self, flows: &[(u32, u32, f64)]) -> Vec<Flow> {
        flows.iter().map(|&(from, to, share)| self.flow(from, to, share)).collect()
    }

    fn conditions(&self) -> Conditions<'_> {
        Conditions { capacity: &self.capacity, intake: &self.intake, bit_errors: &self.bit_errors }
    }

    fn load(&self, flows: &[Flow]) -> Vec<PortLoad> {
        RoutedFlows::new(&self.net, &self.links, flows).load(&self.conditions())
    }

    fn load_of(&self, flows: &[(u32, u32, f64)]) -> Vec<PortLoad> {
        self.load(&self.flows(flows))
    }

    /// The ports that wait, and the fractions of time.
    fn waiting(&self, loads: &[PortLoad]) -> Vec<(String, f64)> {
        let waiting = self.net.port_ids().map(|port| (port, loads[port.0 as usize].waiting));
        let waiting = waiting.filter(|&(_, waiting)| waiting > 0.0);
        waiting.map(|(port, waiting)| (self.net.label(port), waiting)).collect()
    }
}

#[track_caller]
fn close(got: f64, expected: f64) {
    assert!((got - expected).abs() <= 1e-9 * expected.abs().max(1e-6), "{got}, not {expected}");
}
