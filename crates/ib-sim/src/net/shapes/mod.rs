//! Nets by the rules that fabrics are built by.

mod back_to_back;
mod dragonfly_plus;
mod fat_tree;
#[cfg(test)]
mod tests;

pub use back_to_back::BackToBack;
pub use dragonfly_plus::DragonflyPlus;
pub use fat_tree::FatTree;

use ib_mad::node::NodeKind;
use ib_mad::rate::{Speed, SpeedSet};
use ib_mad::{Guid, PortNumber};

use super::build::{BuildError, MOST_PORTS, NetBuilder, NewNode};
use super::rates::Rates;
use super::{Model, Net, NodeId};

/// Why a net of this shape cannot be built.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ShapeError {
    /// A parameter is out of its range.
    #[error("{name} is {value}, not {least} to {most}")]
    Range {
        /// Its name, as a scenario writes it.
        name: &'static str,
        /// What it is.
        value: u64,
        /// The least it can be.
        least: u64,
        /// The most it can be.
        most: u64,
    },
    /// The ports of a switch do not suffice.
    #[error("{what} needs {needed} ports, and a switch has {radix}")]
    Radix {
        /// Which switch, and what for.
        what: &'static str,
        /// How many it needs.
        needed: u64,
        /// How many it has.
        radix: u8,
    },
    /// Two switches would have no switch above them in common, so no path that goes up and then
    /// down joins them.
    #[error(
        "{hosts} hosts are too many: with {uplinks} uplinks into {above} switches, some two {what} \
         have none of these in common"
    )]
    Apart {
        /// How many hosts there are to be.
        hosts: u32,
        /// The switches that are to be joined.
        what: &'static str,
        /// How many uplinks each of them has.
        uplinks: u64,
        /// How many switches there are above.
        above: u64,
    },
    /// Groups cannot have as many cables between each two of them.
    #[error(
        "{ends} global cables of a group cannot be spread evenly over {others} other groups: their \
         number must be a multiple of that"
    )]
    Uneven {
        /// How many a group has: those of all its spines.
        ends: u64,
        /// To how many other groups.
        others: u64,
    },
    /// A model of another kind of node.
    #[error("model {name} is no {}", kind.label())]
    Model {
        /// The model's name.
        name: &'static str,
        /// What it should be.
        kind: NodeKind,
    },
    /// It cannot be built for another reason.
    #[error(transparent)]
    Build(#[from] BuildError),
}

/// A net to be built by rules.
#[derive(Clone, Debug, PartialEq)]
pub enum Shape {
    /// Leaves, spines, and perhaps cores.
    FatTree(FatTree),
    /// Two hosts and a cable.
    BackToBack(BackToBack),
    /// Groups of leaves and spines, each joined with each other.
    DragonflyPlus(DragonflyPlus),
}

impl Shape {
    /// Builds it.
    pub fn build(&self) -> Result<Net, ShapeError> {
        match self {
            Shape::FatTree(shape) => shape.build(),
            Shape::BackToBack(shape) => shape.build(),
            Shape::DragonflyPlus(shape) => shape.build(),
        }
    }

    /// The hosts in their order, each with the ids of its adapters: one in each plane.
    pub fn hosts(&self) -> Vec<Vec<String>> {
        let (hosts, planes) = match self {
            Shape::FatTree(shape) => (shape.hosts, shape.planes),
            Shape::BackToBack(_) => (BackToBack::HOSTS, 1),
            Shape::DragonflyPlus(shape) => (shape.hosts(), 1),
        };
        let hosts = u64::from(hosts).min(MOST_HOSTS) as u32; // no more can be built
        (0..hosts).map(|h| (0..planes).map(|plane| host_id(h, plane, planes)).collect()).collect()
    }
}

/// The id of a host's adapter. Where a host has only one, it is the host's name.
fn host_id(host: u32, plane: u8, planes: u8) -> String {
    if planes == 1 { format!("host-{host}") } else { format!("host-{host}-mlx5_{plane}") }
}

fn in_range(
    name: &'static str,
    value: impl Into<u64>,
    (least, most): (u64, u64),
) -> Result<(), ShapeError> {
    let value = value.into();
    if (least..=most).contains(&value) {
        return Ok(());
    }
    Err(ShapeError::Range { name, value, least, most })
}

fn is_of(model: &'static Model, kind: NodeKind) -> Result<(), ShapeError> {
    if model.kind == kind { Ok(()) } else { Err(ShapeError::Model { name: model.name, kind }) }
}

/// The most hosts of a net: as many as there are unicast LIDs in a subnet.
const MOST_HOSTS: u64 = 0xbfff;
const RADIX: (u64, u64) = (2, MOST_PORTS as u64);

/// What the aggregation nodes of Quantum and Quantum-2 call themselves (714 of 714 in public data).
const AGGREGATION_NODE_NAME: &str = "Mellanox Technologies Aggregation Node";
const AGGREGATION_NODE_ID: u16 = 53001;

/// A net under construction, with nodes of two models.
struct Maker {
    builder: NetBuilder,
    switch: &'static Model,
    hca: &'static Model,
    /// The next cable of each node goes into this port.
    next_free: Vec<PortNumber>,
    guids: [u64; 2],
}

impl Maker {
    fn new(switch: &'static Model, hca: &'static Model) -> Result<Maker, ShapeError> {
        is_of(switch, NodeKind::Switch)?;
        is_of(hca, NodeKind::Ca)?;
        Ok(Maker {
            builder: NetBuilder::default(),
            switch,
            hca,
            next_free: Vec::new(),
            // Apart by kind, so that one can tell them at a glance.
            guids: [0x0002_c902_0000_0000, 0x0002_c903_0000_0000],
        })
    }

    fn switch(&mut self, id: String, radix: u8) -> Result<NodeId, ShapeError> {
        self.add(self.switch, id.clone(), id, radix)
    }

    /// A switch with one port more, to which the aggregation node in it is connected.
    fn switch_with_aggregation_node(&mut self, id: &str, radix: u8) -> Result<NodeId, ShapeError> {
        let last = radix.saturating_add(1);
        let switch = self.switch(id.to_owned(), last)?;
        let model = Model::of_device(NodeKind::AggregationNode, AGGREGATION_NODE_ID);
        let node = self.add(model, format!("{id}-an"), AGGREGATION_NODE_NAME.to_owned(), 1)?;
        self.start_at(switch, last);
        self.link(switch, node)?;
        self.start_at(switch, 1);
        Ok(switch)
    }

    /// A host's adapter in a plane.
    fn host(&mut self, host: u32, plane: u8, planes: u8, ports: u8) -> Result<NodeId, ShapeError> {
        let id = host_id(host, plane, planes);
        let description =
            if planes == 1 { id.clone() } else { format!("host-{host} mlx5_{plane}") };
        self.add(self.hca, id, description, ports)
    }

    fn add(
        &mut self,
        model: &'static Model,
        id: String,
        description: String,
        port_count: u8,
    ) -> Result<NodeId, ShapeError> {
        let (next, step) = match model.kind {
            NodeKind::Switch => (&mut self.guids[0], 1),
            _ => (&mut self.guids[1], 16), // room for the GUIDs of its ports
        };
        let guid = Guid(*next);
        *next += step;
        self.next_free.push(1);
        Ok(self.builder.add(NewNode {
            id,
            description,
            kind: model.kind,
            guid,
            port_guid: None,
            system_guid: guid,
            vendor_id: model.vendor_id,
            device_id: model.device_id,
            model,
            port_count,
            enhanced_port0: false,
            rates: rates_of(model),
        })?)
    }

    /// A cable from the first free port of one node to the first free port of the other.
    fn link(&mut self, a: NodeId, b: NodeId) -> Result<(), ShapeError> {
        let (a, b) = (self.take(a)?, self.take(b)?);
        Ok(self.builder.cable(a, b)?)
    }

    fn take(&mut self, node: NodeId) -> Result<super::PortId, ShapeError> {
        let free = &mut self.next_free[node.0 as usize];
        let port = self.builder.plug(node, *free)?;
        *free += 1;
        Ok(port)
    }

    /// Leaves the ports below unused, so that uplinks sit at the same numbers on each switch.
    fn start_at(&mut self, node: NodeId, port: PortNumber) {
        self.next_free[node.0 as usize] = port;
    }
}

/// All that a model can do, in 1x and 4x. FDR10 is left out: it is what a vendor's devices agree on
/// without FDR.
fn rates_of(model: &Model) -> Rates {
    let speeds: SpeedSet = Speed::ALL.into_iter().filter(|speed| *speed != Speed::Fdr10).collect();
    Rates { widths: 1 | 2, speeds: speeds.up_to(model.fastest) }
}
