//! Builds a net: nodes with all their ports, cables with both ends.

use std::collections::HashMap;

use ib_mad::node::NodeKind;
use ib_mad::{Guid, Lid, PortNumber};

use super::rates::Rates;
use super::{DeviceModel, Net, Node, NodeId, Port, PortId};

/// The longest id that ibsim keeps. It cuts longer ones, so that two may become one.
pub const LONGEST_ID: usize = 64;

/// The longest module prefix that ibsim accepts.
pub const LONGEST_PREFIX: usize = 20;

/// The most ports of a node: port number 255 means all ports (IBTA 1.4, 16.1.3.2).
pub const MOST_PORTS: u8 = 254;

/// The most ports of a net: several times those of the largest fabrics, at a few hundred bytes
/// each. Without a limit a file of a few hundred kilobytes could take all memory.
const LARGEST: usize = 1 << 20;

/// Why something cannot be built.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[expect(missing_docs, reason = "the texts name the fields")]
pub enum BuildError {
    /// Ids are quoted in files; `#` separates a module's prefix from the rest.
    #[error(
        "bad node id \"{}\": an id has 1 to {LONGEST_ID} bytes, no control characters, no quotes \
         and none of \"@\" and \"#\", but \"#\" behind a module's prefix of at most \
         {LONGEST_PREFIX}", .0.escape_default()
    )]
    BadId(String),
    /// Two nodes have the same id.
    #[error("there already is a node \"{0}\"")]
    DuplicateId(String),
    /// Two nodes have the same GUID.
    #[error("node \"{id}\" has the GUID {guid} of node \"{other}\"")]
    DuplicateGuid { id: String, guid: Guid, other: String },
    /// A node has no ports, or more than there are numbers.
    #[error("node \"{id}\" has {ports} ports, not 1 to {MOST_PORTS}")]
    PortCount { id: String, ports: u64 },
    /// A cable at a port that does not exist.
    #[error("node \"{id}\" has no port {number} for a cable, only 1 to {ports}")]
    NoSuchPort { id: String, number: u64, ports: u8 },
    /// A second cable at a port: at the peer, if `at_peer`. `by` is the other end of the first one.
    #[error("{port} cannot be cabled to {peer}: {} has a cable to {by}", end(*.at_peer, .port, .peer))]
    Taken { port: String, peer: String, at_peer: bool, by: String },
    /// A cable from a port to itself.
    #[error("{0} cannot be cabled to itself")]
    ToItself(String),
    /// More ports than the limit.
    #[error("a net with more than {LARGEST} ports")]
    TooLarge,
}

fn end<'a>(at_peer: bool, port: &'a str, peer: &'a str) -> &'a str {
    if at_peer { peer } else { port }
}

/// A node to add to a net.
#[derive(Clone, Debug)]
pub struct NewNode {
    /// Its unique name.
    pub id: String,
    /// NodeDescription.
    pub description: String,
    /// CA, switch or router.
    pub kind: NodeKind,
    /// NodeGUID. The GUIDs of its ports follow from it.
    pub guid: Guid,
    /// The GUID of a switch's ports, if it is not the node's.
    pub port_guid: Option<Guid>,
    /// SystemImageGUID.
    pub system_guid: Guid,
    /// VendorID.
    pub vendor_id: u32,
    /// DeviceID.
    pub device_id: u16,
    /// What its agents support.
    pub model: &'static DeviceModel,
    /// NumPorts.
    pub port_count: u8,
    /// An enhanced switch port 0.
    pub enhanced_port0: bool,
    /// The rates that are enabled at all ports.
    pub rates: Rates,
}

/// A net under construction.
#[derive(Clone, Debug, Default)]
pub struct NetBuilder {
    net: Net,
    by_id: HashMap<String, NodeId>,
    by_guid: HashMap<Guid, NodeId>,
}

impl NetBuilder {
    /// Adds a node with its ports.
    pub fn add(&mut self, new: NewNode) -> Result<NodeId, BuildError> {
        if !is_good_id(&new.id) {
            return Err(BuildError::BadId(new.id));
        }
        if !(1..=MOST_PORTS).contains(&new.port_count) {
            return Err(BuildError::PortCount { id: new.id, ports: new.port_count.into() });
        }
        if self.by_id.contains_key(&new.id) {
            return Err(BuildError::DuplicateId(new.id));
        }
        if let Some(other) = self.by_guid.get(&new.guid) {
            let other = self.net.node(*other).id.clone();
            return Err(BuildError::DuplicateGuid { id: new.id, guid: new.guid, other });
        }
        let first_port = self.net.ports.len();
        if first_port + usize::from(new.port_count) + 1 > LARGEST {
            return Err(BuildError::TooLarge);
        }
        let node = NodeId(self.net.nodes.len() as u32);
        self.net.ports.extend((0..=new.port_count).map(|number| Port {
            node,
            number,
            guid: new.port_guid.unwrap_or(default_guid(new.kind, new.guid, number)),
            cable: None,
            widths: new.rates.widths,
            speeds: new.rates.speeds,
            lid: None,
            lmc: 0,
        }));
        self.by_id.insert(new.id.clone(), node);
        self.by_guid.insert(new.guid, node);
        self.net.nodes.push(Node {
            id: new.id,
            description: new.description,
            kind: new.kind,
            guid: new.guid,
            system_guid: new.system_guid,
            vendor_id: new.vendor_id,
            device_id: new.device_id,
            model: new.model,
            port_count: new.port_count,
            enhanced_port0: new.enhanced_port0,
            first_port: first_port as u32,
        });
        Ok(node)
    }

    /// The node of this id.
    pub fn find(&self, id: &str) -> Option<NodeId> {
        self.by_id.get(id).copied()
    }

    /// A node's port that takes a cable.
    pub fn cable_port(&self, node: NodeId, number: PortNumber) -> Result<PortId, BuildError> {
        self.net.port_by_number(node, number).filter(|_| number != 0).ok_or_else(|| {
            let of = self.net.node(node);
            BuildError::NoSuchPort {
                id: of.id.clone(),
                number: number.into(),
                ports: of.port_count,
            }
        })
    }

    /// Connects two ports. To repeat that is no error: files have a cable at both ends.
    pub fn cable(&mut self, port: PortId, peer: PortId) -> Result<(), BuildError> {
        let label = |port| self.net.label(port);
        if port == peer {
            return Err(BuildError::ToItself(label(port)));
        }
        let (at_port, at_peer) = (self.net.port(port).cable, self.net.port(peer).cable);
        for (old, wanted, at_peer) in [(at_port, peer, false), (at_peer, port, true)] {
            if let Some(old) = old.filter(|old| *old != wanted) {
                let (port, peer, by) = (label(port), label(peer), label(old));
                return Err(BuildError::Taken { port, peer, at_peer, by });
            }
        }
        self.port_mut(port).cable = Some(peer);
        self.port_mut(peer).cable = Some(port);
        Ok(())
    }

    /// Sets the GUID of a port.
    pub fn set_guid(&mut self, port: PortId, guid: Guid) {
        self.port_mut(port).guid = guid;
    }

    /// Sets the LID of a port.
    pub fn set_lid(&mut self, port: PortId, lid: Option<Lid>, lmc: u8) {
        let port = self.port_mut(port);
        (port.lid, port.lmc) = (lid, lmc);
    }

    /// Sets the widths and speeds that are enabled at a port.
    pub fn set_rates(&mut self, port: PortId, rates: Rates) {
        let port = self.port_mut(port);
        (port.widths, port.speeds) = (rates.widths, rates.speeds);
    }

    /// The net so far.
    pub fn net(&self) -> &Net {
        &self.net
    }

    /// The net.
    pub fn finish(self) -> Net {
        self.net
    }

    fn port_mut(&mut self, id: PortId) -> &mut Port {
        &mut self.net.ports[id.0 as usize]
    }
}

/// The GUID of a port without one of its own. A switch has one for all ports.
pub(super) fn default_guid(kind: NodeKind, node: Guid, number: PortNumber) -> Guid {
    if kind == NodeKind::Switch { node } else { Guid(node.0.wrapping_add(number.into())) }
}

fn is_good_id(id: &str) -> bool {
    let (prefix, base) = id.split_once('#').unwrap_or(("none", id));
    let bad = |c: char| c.is_control() || matches!(c, '"' | '@' | '#');
    id.len() <= LONGEST_ID
        && (1..=LONGEST_PREFIX).contains(&prefix.len())
        && !base.is_empty()
        && !prefix.chars().chain(base.chars()).any(bad)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn node(id: &str, kind: NodeKind, guid: u64, port_count: u8) -> NewNode {
        NewNode {
            id: id.to_owned(),
            description: id.to_owned(),
            kind,
            guid: Guid(guid),
            port_guid: None,
            system_guid: Guid(guid),
            vendor_id: 0,
            device_id: 0,
            model: DeviceModel::for_device(kind, 0),
            port_count,
            enhanced_port0: false,
            rates: Rates::default(),
        }
    }

    #[test]
    fn ports_are_indexed_by_number_with_their_guids() {
        let mut builder = NetBuilder::default();
        let switch = builder.add(node("s", NodeKind::Switch, 0x10, 3)).unwrap();
        let host = builder.add(node("h", NodeKind::Ca, 0x20, 2)).unwrap();
        assert_eq!((builder.find("h"), builder.find("x")), (Some(host), None));
        builder
            .cable(builder.cable_port(switch, 3).unwrap(), builder.cable_port(host, 2).unwrap())
            .unwrap();
        let net = builder.finish();
        let guids = |node| {
            let of: &Node = net.node(node);
            (0..=of.port_count)
                .map(|n| net.port(net.port_by_number(node, n).unwrap()).guid.0)
                .collect::<Vec<_>>()
        };
        assert_eq!((guids(switch), guids(host)), (vec![0x10; 4], vec![0x20, 0x21, 0x22]));
        let end = net.port_by_number(host, 2).unwrap();
        let peer = net.port(end).cable.unwrap();
        assert_eq!((net.label(peer), net.port(peer).cable), ("s[3]".to_owned(), Some(end)));
    }

    #[test]
    fn invalid_nodes_and_cables_are_refused() {
        let mut builder = NetBuilder::default();
        let a = builder.add(node("a", NodeKind::Switch, 1, 2)).unwrap();
        let b = builder.add(node("b", NodeKind::Switch, 2, 2)).unwrap();
        for (new, says) in [
            (node("a", NodeKind::Ca, 3, 1), "there already is a node \"a\""),
            (node("c", NodeKind::Ca, 2, 1), "node \"c\" has the GUID 0x0000000000000002"),
            (node("c", NodeKind::Ca, 3, 0), "has 0 ports"),
            (node("c", NodeKind::Ca, 3, 255), "has 255 ports"),
            (node("", NodeKind::Ca, 3, 1), "bad node id \"\""),
            (node("a\nb", NodeKind::Ca, 3, 1), "bad node id \"a\\nb\""),
            (node("#b", NodeKind::Ca, 3, 1), "bad node id \"#b\""),
            (node(&"x".repeat(65), NodeKind::Ca, 3, 1), "bad node id"),
        ] {
            let error = builder.add(new).unwrap_err().to_string();
            assert!(error.contains(says) && !error.contains('\n'), "{error}");
        }
        assert_eq!(
            builder.cable_port(a, 0).unwrap_err().to_string(),
            "node \"a\" has no port 0 for a cable, only 1 to 2"
        );
        let port = |node, number| builder.cable_port(node, number).unwrap();
        let (a1, a2, b1, b2) = (port(a, 1), port(a, 2), port(b, 1), port(b, 2));
        assert_eq!(builder.cable(a1, b1), Ok(()));
        assert_eq!(builder.cable(b1, a1), Ok(()));
        assert_eq!(
            builder.cable(a2, b1).unwrap_err().to_string(),
            "a[2] cannot be cabled to b[1]: b[1] has a cable to a[1]"
        );
        assert_eq!(
            builder.cable(b2, b2).unwrap_err().to_string(),
            "b[2] cannot be cabled to itself"
        );
    }
}
