//! Builds the nets of shapes.

use yaml_config::suggestion::{quoted, suggestion};

use ib_mad::device::AGGREGATION_NODE;
use ib_mad::node::NodeKind;
use ib_mad::rate::{Speed, SpeedSet};
use ib_mad::{Guid, PortNumber};

use crate::device::{DeviceModel, MODELS, VENDOR_ID};
use crate::net::build::{MOST_PORTS, NetBuilder};
use crate::net::rates::Rates;
use crate::net::topology::{Node, NodeId, PortId};

/// Why a net of this shape cannot be built.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{problem}")]
pub struct ShapeError {
    /// The parameter in a scenario that is wrong, if it is one; else empty.
    pub(crate) key: &'static str,
    pub(super) problem: String,
    /// The problem for who has set the number of hosts, if that may be the reason.
    pub(crate) about_hosts: Option<String>,
}

impl ShapeError {
    pub(super) fn new(key: &'static str, problem: String) -> ShapeError {
        ShapeError { key, problem, about_hosts: None }
    }
}

impl From<String> for ShapeError {
    fn from(problem: String) -> ShapeError {
        ShapeError { key: "", about_hosts: Some(problem.clone()), problem }
    }
}

/// The model that a key names.
pub(super) fn model(
    key: &'static str,
    name: &str,
    kind: NodeKind,
) -> Result<&'static DeviceModel, ShapeError> {
    let problem = match DeviceModel::by_name(name) {
        Some(model) if model.kind == kind => return Ok(model),
        Some(_) => format!("model {name} is not a {}", kind.label()),
        None => {
            let of_kind = MODELS.iter().filter(|model| model.kind == kind);
            let known: Vec<&str> = of_kind.map(|model| model.name).collect();
            let (near, known) = (suggestion(name, known.iter().copied()), known.join(", "));
            format!("{key}: no model {}{near}; known: {known}", quoted(name))
        }
    };
    Err(ShapeError::new(key, problem))
}

pub(super) fn in_range(
    name: &'static str,
    value: impl Into<u64>,
    (least, most): (u64, u64),
) -> Result<(), ShapeError> {
    let value = value.into();
    if (least..=most).contains(&value) {
        return Ok(());
    }
    let about_hosts = format!("{value} is not between {least} and {most}");
    Err(ShapeError {
        about_hosts: Some(about_hosts).filter(|_| name == "hosts"),
        ..ShapeError::new(name, format!("{name} is {value}; it must be between {least} and {most}"))
    })
}

/// Checks that a switch has as many ports as needed.
pub(super) fn in_radix(what: &str, needed: u64, radix: u8) -> Result<(), ShapeError> {
    if needed <= u64::from(radix) {
        return Ok(());
    }
    let problem = format!("{what} needs {needed} ports, but a switch has {radix}");
    Err(ShapeError::new("", problem))
}

/// The most hosts of a net: the number of unicast LIDs of a subnet.
pub(super) const MOST_HOSTS: u64 = 0xbfff;
pub(super) const RADIX: (u64, u64) = (2, MOST_PORTS as u64);

/// The NodeDescription of aggregation nodes of Quantum and Quantum-2 (714 of 714 in public data).
pub(super) const AGGREGATION_NODE_NAME: &str = "Mellanox Technologies Aggregation Node";

/// A net under construction, with nodes of two models.
pub(super) struct ShapeBuilder {
    pub(super) net: NetBuilder,
    pub(super) switch: &'static DeviceModel,
    pub(super) hca: &'static DeviceModel,
    /// The port of the next cable of each node.
    next_free: Vec<PortNumber>,
    guids: [u64; 2],
}

impl ShapeBuilder {
    pub(super) fn new(switch: &str, hca: &str) -> Result<ShapeBuilder, ShapeError> {
        Ok(ShapeBuilder {
            net: NetBuilder::default(),
            switch: model("switch", switch, NodeKind::Switch)?,
            hca: model("hca", hca, NodeKind::Ca)?,
            next_free: Vec::new(),
            // Different by kind, so that one can distinguish them at a glance.
            guids: [0x0002_c902_0000_0000, 0x0002_c903_0000_0000],
        })
    }

    /// A switch, perhaps with an aggregation node at one port more.
    pub(super) fn switch(
        &mut self,
        id: &str,
        radix: u8,
        aggregation: bool,
    ) -> Result<NodeId, ShapeError> {
        let ports = radix.saturating_add(aggregation.into());
        let switch = self.add(self.switch, id.to_owned(), id.to_owned(), ports)?;
        if aggregation {
            let model = DeviceModel::for_device(NodeKind::AggregationNode, AGGREGATION_NODE);
            let node = self.add(model, format!("{id}-an"), AGGREGATION_NODE_NAME.to_owned(), 1)?;
            self.start_at(switch, ports);
            self.connect(switch, node)?;
            self.start_at(switch, 1);
        }
        Ok(switch)
    }

    /// A host's adapter in a plane.
    pub(super) fn host(
        &mut self,
        host: u32,
        plane: u8,
        planes: u8,
        ports: u8,
    ) -> Result<NodeId, ShapeError> {
        // Where a host has only one, it has the host's name.
        let name = format!("host-{host}");
        let (id, description) = match planes {
            1 => (name.clone(), name),
            _ => (format!("{name}-mlx5_{plane}"), format!("{name} mlx5_{plane}")),
        };
        self.add(self.hca, id, description, ports)
    }

    /// One of several adapters of a host that are all in one fabric.
    pub(super) fn rail(&mut self, host: u32, rail: u32) -> Result<NodeId, ShapeError> {
        let (id, name) = (format!("gpu-{host}-mlx5_{rail}"), format!("gpu-{host} mlx5_{rail}"));
        self.add(self.hca, id, name, 1)
    }

    /// A node of a model, with the next GUID.
    pub(super) fn add(
        &mut self,
        model: &'static DeviceModel,
        id: String,
        description: String,
        port_count: u8,
    ) -> Result<NodeId, ShapeError> {
        let (next, step) = match model.kind {
            NodeKind::Switch => (&mut self.guids[0], 1),
            // Room for the GUIDs of its ports.
            NodeKind::Ca | NodeKind::Router | NodeKind::AggregationNode => (&mut self.guids[1], 16),
        };
        let guid = Guid(*next);
        *next += step;
        self.next_free.push(1);
        let node = Node {
            id,
            description,
            kind: model.kind,
            guid,
            system_guid: guid,
            vendor_id: VENDOR_ID,
            device_id: model.device_id,
            model,
            port_count,
            enhanced_port0: false,
            asic: None,
            first_port: 0,
        };
        Ok(self.net.add(node, rates_of(model), None)?)
    }

    /// A cable from the first free port of one node to the first free port of the other.
    pub(super) fn connect(&mut self, a: NodeId, b: NodeId) -> Result<(), ShapeError> {
        let (a, b) = (self.take_port(a)?, self.take_port(b)?);
        Ok(self.net.cable(a, b)?)
    }

    fn take_port(&mut self, node: NodeId) -> Result<PortId, ShapeError> {
        let free = &mut self.next_free[node.0 as usize];
        let port = self.net.cable_port(node, (*free).into())?;
        *free += 1;
        Ok(port)
    }

    /// Leaves the ports below unused, so that uplinks have the same numbers on each switch.
    pub(super) fn start_at(&mut self, node: NodeId, port: PortNumber) {
        self.next_free[node.0 as usize] = port;
    }
}

/// All speeds of a model, in 1x and 4x. Without FDR10, which a vendor's devices agree on without FDR.
pub(super) fn rates_of(model: &DeviceModel) -> Rates {
    let speeds: SpeedSet = Speed::ALL.into_iter().filter(|speed| *speed != Speed::Fdr10).collect();
    Rates { widths: 1 | 2, speeds: speeds.up_to(model.fastest) }
}
