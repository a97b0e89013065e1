//! What the net of `drain-plan` consists of, and what can be repaired.

use ib_mad::Guid;
use ib_mad::node::NodeKind;

/// A switch, or an HCA or router: an end of paths.
#[derive(Debug)]
pub(super) struct NetNode {
    pub guid: Guid,
    pub name: String,
    /// `None`: a type that this version does not have.
    pub kind: Option<NodeKind>,
    /// The host of an end of paths.
    pub host: Option<usize>,
    pub fabric: String,
    /// SystemImageGUID.
    pub system: String,
    pub description: String,
    /// The host label of an HCA.
    pub label: Option<String>,
    /// By the site.
    pub is_drained: bool,
}

/// A host with its HCAs, or a router.
#[derive(Debug)]
pub(super) struct NetHost {
    pub name: String,
    /// By the exporter.
    pub is_drained: bool,
    /// Its HCAs, as indexes of nodes.
    pub nodes: Vec<usize>,
}

/// A link of the API.
#[derive(Debug)]
pub(super) struct Cable {
    pub id: String,
    pub fabric: String,
    /// `leaf-0-1 port 10 – host-7 port 1`.
    pub name: String,
    pub verdict: String,
    /// Empty if it is no cable: inside a switch.
    pub wires: Vec<usize>,
}

/// A link of the subnet: a cable, or a plane of one.
#[derive(Debug)]
pub(super) struct Wire {
    /// Indexes of nodes.
    pub ends: [usize; 2],
    /// Whether it carries traffic, if that is known.
    pub up: Option<bool>,
    /// Gb/s, if known.
    pub gbps: Option<u32>,
}

/// What is to be repaired.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Target {
    pub kind: TargetKind,
    pub name: String,
    pub fabric: String,
    /// The id of a link.
    pub link: Option<String>,
    /// The verdict of a link, in a word.
    pub verdict: Option<String>,
    /// Indexes of the wires that are pulled.
    pub wires: Vec<usize>,
    /// Indexes of the nodes that are powered off.
    pub nodes: Vec<usize>,
}

display_text::labeled_enum! {
    /// What a repair takes out of service.
    pub enum TargetKind {
        Link, "link", "A cable.";
        Switch, "switch", "A switch, with a node for each plane if it has several.";
        Host, "host", "A host, with all of its HCAs.";
        Hca, "hca", "One of several HCAs of a host.";
        Router, "router", "A router, or a node of an unknown type.";
    }
}

impl NetNode {
    pub fn is_switch(&self) -> bool {
        self.kind == Some(NodeKind::Switch)
    }
}
