//! Subnet management: what nodes and ports say of themselves (IBTA 1.4, chapter 14.2.5).

use crate::fabric::names::readable_description;
use crate::fabric::status::SpeedFields;
use crate::fabric::topology::{NodeIdentity, NodeKind};
use crate::fabric::{Guid, PortNumber};

use super::{DATA, Mad, Query};

const fn query(attribute: u16, modifier: u32) -> Query {
    Query { subnet: true, attribute, modifier, port_select: 0 }
}

/// Asks a node for its description.
pub fn node_description() -> Query {
    query(0x0010, 0)
}

/// Asks a node who it is.
pub fn node_info() -> Query {
    query(0x0011, 0)
}

/// Asks a switch about itself.
pub fn switch_info() -> Query {
    query(0x0012, 0)
}

/// Asks a node about one of its ports; an endpoint knows its own port as 0, too.
pub fn port_info(port: PortNumber) -> Query {
    query(0x0015, u32::from(port))
}

/// Asks a Mellanox node about the speeds of a port that PortInfo has no bits for.
pub fn mellanox_extended_port_info(port: PortNumber) -> Query {
    query(0xff90, u32::from(port))
}

/// NodeInfo.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NodeInfo {
    /// NodeType: 1 CA, 2 switch, 3 router.
    pub node_type: u8,
    /// NumPorts: of physical ports.
    pub port_count: u8,
    /// SystemImageGUID.
    pub system_guid: Guid,
    /// NodeGUID.
    pub node_guid: Guid,
    /// PortGUID of the port that was asked.
    pub port_guid: Guid,
    /// DeviceID.
    pub device_id: u16,
    /// Revision.
    pub revision: u32,
    /// LocalPortNum: the port that the question came in by.
    pub local_port: PortNumber,
    /// VendorID, 24 bits.
    pub vendor_id: u32,
}

impl NodeInfo {
    /// Reads it from an answer.
    pub fn decode(mad: &Mad) -> Self {
        NodeInfo {
            node_type: mad.u8(DATA + 2),
            port_count: mad.u8(DATA + 3),
            system_guid: Guid(mad.u64(DATA + 4)),
            node_guid: Guid(mad.u64(DATA + 12)),
            port_guid: Guid(mad.u64(DATA + 20)),
            device_id: mad.u16(DATA + 30),
            revision: mad.u32(DATA + 32),
            local_port: mad.u8(DATA + 36),
            vendor_id: mad.u24(DATA + 37),
        }
    }

    /// The node that it speaks of, as far as it is known before its description has come.
    /// `None` for a type that the specification does not have.
    pub fn identity(&self) -> Option<NodeIdentity> {
        let kind = match self.node_type {
            1 => NodeKind::Ca,
            2 => NodeKind::Switch,
            3 => NodeKind::Router,
            _ => return None,
        };
        Some(NodeIdentity {
            guid: self.node_guid,
            system_guid: self.system_guid,
            kind,
            description: String::new(),
            vendor_id: self.vendor_id,
            device_id: self.device_id,
            // 255 is not a port: PortSelect 255 is all of them.
            port_count: self.port_count.min(254),
            enhanced_port0: false,
            speed_fields: SpeedFields::default(),
        })
    }

    /// Whether the vendor is Mellanox (now NVIDIA), by the OUIs that its devices carry.
    pub fn is_mellanox(&self) -> bool {
        is_mellanox(self.vendor_id)
    }
}

/// The node's description, made readable.
pub fn decode_node_description(mad: &Mad) -> String {
    readable_description(&mad.data()[..64])
}

/// Whether a CA is a SHARP aggregation node, which has no type of its own in NodeInfo: by what it
/// calls itself, word for word, and by its vendor, for anybody may choose a host's description.
pub fn is_aggregation_node(description: &str, vendor_id: u32) -> bool {
    description == "Mellanox Technologies Aggregation Node" && is_mellanox(vendor_id)
}

fn is_mellanox(vendor_id: u32) -> bool {
    matches!(vendor_id, 0x02c9 | 0x15b3)
}

/// SwitchInfo, as far as it is used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SwitchInfo {
    /// LinearFDBCap.
    pub linear_table_size: u16,
    /// LinearFDBTop: the highest LID that it forwards.
    pub linear_table_top: u16,
    /// PortStateChange: some port changed since a subnet manager last looked.
    pub port_state_change: bool,
    /// EnhancedPort0: its port 0 is a full endpoint.
    pub enhanced_port0: bool,
}

impl SwitchInfo {
    /// Reads it from an answer.
    pub fn decode(mad: &Mad) -> Self {
        SwitchInfo {
            linear_table_size: mad.u16(DATA),
            linear_table_top: mad.u16(DATA + 6),
            port_state_change: mad.u8(DATA + 11) & 0x04 != 0,
            enhanced_port0: mad.u8(DATA + 16) & 0x08 != 0,
        }
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use crate::mad::LEN;

    /// An answer with these bytes at these offsets of its data.
    pub(crate) fn answer(fields: &[(usize, &[u8])]) -> Mad {
        let mut mad = Mad([0; LEN]);
        for (offset, bytes) in fields {
            mad.0[DATA + offset..DATA + offset + bytes.len()].copy_from_slice(bytes);
        }
        mad
    }

    #[test]
    fn node_info_field_by_field() {
        let info = NodeInfo::decode(&answer(&[
            (2, &[2, 36]),
            (4, &[0, 0, 0, 0, 0, 0, 0, 7]),
            (12, &[0, 2, 0xc9, 2, 0, 0, 0, 1]),
            (20, &[0, 2, 0xc9, 2, 0, 0, 0, 2]),
            (30, &[0xd2, 0xf0]),
            (32, &[0, 0, 0, 0xa1]),
            (36, &[17]),
            (37, &[0, 2, 0xc9]),
        ]));
        assert_eq!(
            info,
            NodeInfo {
                node_type: 2,
                port_count: 36,
                system_guid: Guid(7),
                node_guid: Guid(0x0002_c902_0000_0001),
                port_guid: Guid(0x0002_c902_0000_0002),
                device_id: 0xd2f0,
                revision: 0xa1,
                local_port: 17,
                vendor_id: 0x2c9,
            }
        );
        assert!(info.is_mellanox());
        assert_eq!(info.identity().unwrap().kind, NodeKind::Switch);
        assert_eq!(NodeInfo { node_type: 9, ..info }.identity(), None);
    }

    #[test]
    fn switch_info_has_its_two_bits() {
        let info = SwitchInfo::decode(&answer(&[
            (0, &[0xc0, 0]),
            (6, &[0, 42]),
            (11, &[0x94]),
            (16, &[0x08]),
        ]));
        assert_eq!((info.linear_table_size, info.linear_table_top), (0xc000, 42));
        assert!(info.port_state_change && info.enhanced_port0);
        let info = SwitchInfo::decode(&answer(&[(11, &[0x93]), (16, &[0xf7])]));
        assert!(!info.port_state_change && !info.enhanced_port0);
    }

    #[test]
    fn aggregation_nodes_are_known_by_what_they_call_themselves() {
        assert!(is_aggregation_node("Mellanox Technologies Aggregation Node", 0x2c9));
        assert!(!is_aggregation_node("Mellanox Technologies Aggregation Node", 1));
        assert!(!is_aggregation_node("my Aggregation Node", 0x2c9));
    }
}
