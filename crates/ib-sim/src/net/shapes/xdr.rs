//! Multi-plane fabrics of XDR: four planes, each a fat tree of two levels.
//!
//! No such fabric was observed. The structure is that of NVIDIA's headers, see [`planes`](crate::net::planes).

use ib_mad::device::AGGREGATION_NODE;
use ib_mad::front_panel::AsicName;
use ib_mad::node::NodeKind;
use ib_mad::rate::{Speed, SpeedSet};
use ib_mad::{Guid, PortNumber};
use serde::Deserialize;

use super::builder::{MOST_HOSTS, ShapeBuilder, ShapeError, in_radix, in_range, model, rates_of};
use crate::device::DeviceModel;
use crate::net::plane_port::PlanePort;
use crate::net::planes::{
    AGGREGATION_PORT, FNM_PORTS, FNM1_PORT, FRONT_PORTS, PLANES, PRISM_PORTS, ROUTER_PORT,
    find_planes,
};
use crate::net::rates::Rates;
use crate::net::topology::{Net, NodeId, PortId};

/// A multi-plane fabric: leaves with `down` hosts and `up` uplinks each, in turn to the spines, in every plane.
///
/// A switch like the Q3400 has the nodes `leaf-0-a1` to `leaf-0-a4`, one for each plane, connected in a ring (FNM), and
/// each with an aggregation node. A prism switch is one node, `leaf-0`. The adapters `host-N` have one port per plane.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields, default)]
#[expect(missing_docs, reason = "docs/dev/scenarios.md describes the keys")]
pub struct Xdr {
    pub hosts: u32,
    pub down: u8,
    pub up: u8,
    pub spines: u8,
    pub prism: bool,
    /// Hosts with two planes, `pair-N`, at prism switches.
    pub two_plane_hosts: u32,
    /// Hosts with one port, `old-N`, at prism switches: NDR and HDR in turn.
    pub ordinary_hosts: u32,
    /// Hosts at the port FNM1 of each of the first leaves, `fnm-N`.
    pub fnm1_hosts: u8,
    /// A router at each node of a switch.
    pub routers: bool,
}

impl Default for Xdr {
    fn default() -> Self {
        Xdr {
            hosts: 8,
            down: 4,
            up: 4,
            spines: 2,
            prism: false,
            two_plane_hosts: 0,
            ordinary_hosts: 0,
            fnm1_hosts: 0,
            routers: false,
        }
    }
}

/// A switch: the node of each plane, or one node for all.
struct System {
    nodes: Vec<NodeId>,
    /// The next port at the front panel without a cable.
    next_free: u8,
}

/// An end of a cable with several planes.
#[derive(Clone, Copy)]
enum CableEnd<'a> {
    Host(NodeId),
    Switch(&'a System, PortNumber),
}

impl Xdr {
    /// Builds it.
    pub fn build(&self) -> Result<Net, ShapeError> {
        let leaf_count = self.check()?;
        let mut shape = Builder { nodes: ShapeBuilder::new("quantum-3", "connectx-8")? };
        // With the number of their planes; 0 for an ordinary port.
        let mut hosts = Vec::new();
        for host in 0..self.hosts {
            hosts.push((shape.host(format!("host-{host}"), PLANES)?, PLANES));
        }
        for host in 0..self.two_plane_hosts {
            hosts.push((shape.host(format!("pair-{host}"), 2)?, 2));
        }
        for host in 0..self.ordinary_hosts {
            hosts.push((shape.ordinary_host(host)?, 0));
        }
        let fnm_hosts = (0..self.fnm1_hosts)
            .map(|host| shape.host(format!("fnm-{host}"), PLANES))
            .collect::<Result<Vec<_>, _>>()?;
        let mut leaves = (0..leaf_count)
            .map(|leaf| shape.system(&format!("leaf-{leaf}"), self))
            .collect::<Result<Vec<_>, _>>()?;
        let mut spines = (0..self.spines)
            .map(|spine| shape.system(&format!("spine-{spine}"), self))
            .collect::<Result<Vec<_>, _>>()?;
        for (leaf, hosts) in leaves.iter_mut().zip(hosts.chunks(self.down.into())) {
            for &(host, planes) in hosts {
                let port = leaf.take();
                shape.connect(CableEnd::Host(host), CableEnd::Switch(leaf, port), planes)?;
            }
            leaf.next_free = self.down + 1;
            for uplink in 0..usize::from(self.up) {
                let spine = &mut spines[uplink % usize::from(self.spines)];
                let (port, peer) = (leaf.take(), spine.take());
                let ends = [CableEnd::Switch(leaf, port), CableEnd::Switch(spine, peer)];
                shape.connect(ends[0], ends[1], PLANES)?;
            }
        }
        for (host, leaf) in fnm_hosts.into_iter().zip(&leaves) {
            shape.connect(CableEnd::Host(host), CableEnd::Switch(leaf, FNM1_PORT), PLANES)?;
        }
        let mut net = shape.nodes.net.net;
        find_planes(&mut net);
        Ok(net)
    }

    /// The number of leaves.
    fn check(&self) -> Result<u32, ShapeError> {
        let front = if self.prism { PRISM_PORTS } else { FRONT_PORTS };
        in_range("hosts", self.hosts, (1, MOST_HOSTS))?;
        in_range("down", self.down, (1, front.into()))?;
        in_range("up", self.up, (1, front.into()))?;
        in_range("spines", self.spines, (1, front.into()))?;
        for (key, count) in
            [("two-plane-hosts", self.two_plane_hosts), ("ordinary-hosts", self.ordinary_hosts)]
        {
            in_range(key, count, (0, MOST_HOSTS))?;
            if count > 0 && !self.prism {
                return Err(ShapeError::new(key, format!("{key} needs prism: true")));
            }
        }
        let hosts = self.hosts + self.two_plane_hosts + self.ordinary_hosts;
        let leaves = hosts.div_ceil(self.down.into());
        if self.fnm1_hosts > 0 && self.prism {
            return Err(ShapeError::new("fnm1-hosts", "fnm1-hosts needs prism: false".into()));
        }
        in_range("fnm1-hosts", self.fnm1_hosts, (0, leaves.into()))?;
        in_radix("a leaf (down + up)", u64::from(self.down) + u64::from(self.up), front)?;
        if !self.up.is_multiple_of(self.spines) {
            let Xdr { up, spines, .. } = self;
            let problem = format!("up is {up}; it must be a multiple of spines ({spines})");
            return Err(ShapeError::new("up", problem));
        }
        let of_spine = u64::from(leaves) * u64::from(self.up / self.spines);
        if of_spine > u64::from(front) {
            let problem =
                format!("{leaves} leaves need {of_spine} ports of each spine, which has {front}");
            return Err(ShapeError { key: "hosts", ..problem.into() });
        }
        Ok(leaves)
    }
}

impl System {
    fn take(&mut self) -> PortNumber {
        self.next_free += 1;
        self.next_free - 1
    }
}

/// A net under construction.
struct Builder {
    nodes: ShapeBuilder,
}

impl Builder {
    /// A multi-plane adapter: its ports have one GUID.
    fn host(&mut self, id: String, planes: u8) -> Result<NodeId, ShapeError> {
        let node = self.nodes.add(self.nodes.hca, id.clone(), id, planes)?;
        let guid = Guid(self.nodes.net.net.node(node).guid.0 + 1);
        for port in self.nodes.net.net.cable_ports(node) {
            let port = self.nodes.net.port_mut(port);
            (port.guid, port.rates) = (guid, plane_rates());
        }
        Ok(node)
    }

    fn ordinary_host(&mut self, host: u32) -> Result<NodeId, ShapeError> {
        let id = format!("old-{host}");
        let name = if host.is_multiple_of(2) { "connectx-7" } else { "connectx-6" };
        self.nodes.add(model("", name, NodeKind::Ca)?, id.clone(), id, 1)
    }

    fn system(&mut self, id: &str, shape: &Xdr) -> Result<System, ShapeError> {
        let mut nodes = Vec::new();
        if shape.prism {
            // The aggregation node and the router are behind the ports of planes.
            let first_internal = PRISM_PORTS * PLANES + 1;
            let node = self.asic(id.to_owned(), first_internal + 1, None)?;
            self.nodes.net.net.nodes[node.0 as usize].asic = Some(AsicName::A);
            for port in self.nodes.net.net.cable_ports(node) {
                let number = self.nodes.net.net.port(port).number;
                if number < first_internal {
                    let aggregated = (number - 1) / PLANES + 1;
                    let plane = (number - 1) % PLANES + 1;
                    let of_four = PlanePort { aggregated, plane, planes: PLANES };
                    self.nodes.net.port_mut(port).plane = Some(of_four);
                }
            }
            self.internal_nodes(id, node, [first_internal, first_internal + 1], shape.routers)?;
            nodes.push(node);
        } else {
            let mut system_guid = None;
            for plane in 1..=PLANES {
                let name = format!("{id}-a{plane}");
                let node = self.asic(name.clone(), ROUTER_PORT, system_guid)?;
                system_guid = Some(self.nodes.net.net.node(node).system_guid);
                let ports = [AGGREGATION_PORT, ROUTER_PORT];
                self.internal_nodes(&name, node, ports, shape.routers)?;
                nodes.push(node);
            }
            for (&node, &next) in nodes.iter().zip(nodes.iter().cycle().skip(1)) {
                self.internal_link((node, FNM_PORTS[0]), (next, FNM_PORTS[1]))?;
            }
        }
        Ok(System { nodes, next_free: 1 })
    }

    /// A node of a switch; the first one names the system.
    fn asic(
        &mut self,
        id: String,
        ports: PortNumber,
        system: Option<Guid>,
    ) -> Result<NodeId, ShapeError> {
        let node = self.nodes.add(self.nodes.switch, id.clone(), id, ports)?;
        let net = &mut self.nodes.net.net;
        let about = &mut net.nodes[node.0 as usize];
        about.system_guid = system.unwrap_or(about.guid);
        let first = about.first_port;
        for port in first..=first + u32::from(ports) {
            self.nodes.net.port_mut(PortId(port)).rates = plane_rates();
        }
        Ok(node)
    }

    /// The aggregation node of a switch's node, and its router.
    fn internal_nodes(
        &mut self,
        id: &str,
        node: NodeId,
        [aggregation, router]: [PortNumber; 2],
        has_router: bool,
    ) -> Result<(), ShapeError> {
        let model = DeviceModel::for_device(NodeKind::AggregationNode, AGGREGATION_NODE);
        let description = super::builder::AGGREGATION_NODE_NAME.to_owned();
        let unit = self.nodes.add(model, format!("{id}-an"), description, 1)?;
        self.internal_link((node, aggregation), (unit, 1))?;
        if has_router {
            let id = format!("{id}-router");
            let model = DeviceModel::for_device(NodeKind::Router, 0);
            let unit = self.nodes.add(model, id.clone(), id, 1)?;
            self.internal_link((node, router), (unit, 1))?;
        }
        Ok(())
    }

    /// A link between two nodes of a switch, of four lanes.
    fn internal_link(
        &mut self,
        a: (NodeId, PortNumber),
        b: (NodeId, PortNumber),
    ) -> Result<(), ShapeError> {
        let [a, b] = [a, b].map(|(node, number)| self.nodes.net.cable_port(node, number.into()));
        let (a, b) = (a?, b?);
        for port in [a, b] {
            let rates = rates_of(self.nodes.net.net.node_of(port).model);
            self.nodes.net.port_mut(port).rates = rates;
        }
        Ok(self.nodes.net.cable(a, b)?)
    }

    /// A cable with this many planes between equal planes; with none it is one link of an ordinary host.
    fn connect(&mut self, a: CableEnd, b: CableEnd, planes: u8) -> Result<(), ShapeError> {
        for plane in 1..=planes.max(1) {
            let (a, b) = (self.port(a, plane)?, self.port(b, plane)?);
            self.nodes.net.cable(a, b)?;
        }
        // Planes of a port that the other end lacks are unused.
        for end in [a, b] {
            let CableEnd::Switch(system, _) = end else { continue };
            if system.nodes.len() > 1 || planes == PLANES {
                continue;
            }
            for plane in 1..=PLANES {
                let port = self.port(end, plane)?;
                let port = self.nodes.net.port_mut(port);
                port.plane = port.plane.filter(|it| it.plane <= planes);
                port.plane = port.plane.map(|it| PlanePort { planes, ..it });
                if planes == 0 && plane == 1 {
                    port.rates = rates_of(self.nodes.switch);
                }
            }
        }
        Ok(())
    }

    fn port(&self, end: CableEnd, plane: u8) -> Result<PortId, ShapeError> {
        let (node, number) = match end {
            CableEnd::Host(node) => (node, plane),
            CableEnd::Switch(system, front) => match system.nodes[..] {
                [node] => (node, (front - 1) * PLANES + plane),
                ref nodes => (nodes[usize::from(plane) - 1], front),
            },
        };
        Ok(self.nodes.net.cable_port(node, number.into())?)
    }
}

/// One lane of XDR: 200 Gb/s, a quarter of a port with four planes.
fn plane_rates() -> Rates {
    let speeds: SpeedSet = Speed::ALL.into_iter().filter(|speed| *speed != Speed::Fdr10).collect();
    Rates { widths: 1, speeds }
}

#[cfg(test)]
mod tests;
