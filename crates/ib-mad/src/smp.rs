//! Subnet management attributes (IBTA 1.4, chapter 14.2.5).

use display_text::labeled_enum;

use crate::fec::PortInfoExtended;
use crate::ids::{Guid, PortNumber};
use crate::layout::{attribute, bits, byte, bytes, high, low};
use crate::mad::{DATA, Mad, SMP_DATA_LEN};
use crate::node::device::{self, is_mellanox};
use crate::node::{NodeIdentity, NodeKind, readable_description};
use crate::port_info::{MellanoxExtendedPortInfo, PortInfo};
use crate::port_state::{PortState, SpeedFields};
use crate::query::Query;

/// AttributeID of NodeDescription, which is one text without fields.
pub const NODE_DESCRIPTION: u16 = 0x0010;

macro_rules! queries {
    ($($(#[$about:meta])* $query:ident($($number:ident)?) = $attribute:expr, $modifier:expr $(, $optional:ident)?;)+) => {$(
        $(#[$about])*
        pub fn $query($($number: PortNumber)?) -> Query {
            Query::subnet($attribute, $modifier)$(.$optional())?
        }
    )+};
}

queries! {
    /// Reads the NodeDescription of a node.
    node_description() = NODE_DESCRIPTION, 0;
    /// Reads the NodeInfo of a node.
    node_info() = NodeInfo::ID, 0;
    /// Reads the SwitchInfo of a switch.
    switch_info() = SwitchInfo::ID, 0;
    /// Reads the SMInfo of the subnet manager at a port.
    sm_info() = SmInfo::ID, 0;
    /// Reads PortInfo of a port; port 0 of an end node is the port that receives the request.
    port_info(port) = PortInfo::ID, port.into();
    /// Reads Mellanox ExtendedPortInfo of a port.
    mellanox_extended_port_info(port) = MellanoxExtendedPortInfo::ID, port.into(), optional;
    /// Reads PortInfoExtended of a port: its FEC mode.
    port_info_extended(port) = PortInfoExtended::ID, port.into(), optional;
    /// Reads a [block](SwitchPortStateTable::block_of) of a switch's SwitchPortStateTable.
    switch_port_state_table(block) = SwitchPortStateTable::ID, block.into(), optional;
}

attribute! {
    /// NodeInfo.
    pub struct NodeInfo = 0x0011 {
        base_version: u8 = byte(0), "BaseVersion.";
        class_version: u8 = byte(1), "ClassVersion.";
        node_type: u8 = byte(2), "NodeType: 1 CA, 2 switch, 3 router.";
        port_count: u8 = byte(3), "NumPorts: number of physical ports.";
        system_guid: Guid = bytes(4, 8), "SystemImageGUID.";
        node_guid: Guid = bytes(12, 8), "NodeGUID.";
        port_guid: Guid = bytes(20, 8), "PortGUID of the receiving port.";
        partition_cap: u16 = bytes(28, 2), "PartitionCap: size of an end port's P_Key table.";
        device_id: u16 = bytes(30, 2), "DeviceID.";
        revision: u32 = bytes(32, 4), "Revision.";
        local_port: PortNumber = byte(36), "LocalPortNum: the port that received the request.";
        vendor_id: u32 = bytes(37, 3), "VendorID, 24 bits.";
    }
}

const NODE_TYPES: [(u8, NodeKind); 3] =
    [(1, NodeKind::Ca), (2, NodeKind::Switch), (3, NodeKind::Router)];

impl NodeInfo {
    /// NodeType of a kind of node. An aggregation node has none of its own: it reports CA.
    pub fn type_of(kind: NodeKind) -> u8 {
        let row = NODE_TYPES.iter().find(|(_, of)| *of == kind);
        row.map_or(NODE_TYPES[0].0, |(node_type, _)| *node_type)
    }

    /// The node without description and port capabilities; `None` for a NodeType that is not specified.
    pub fn identity(&self) -> Option<NodeIdentity> {
        let (_, mut kind) = *NODE_TYPES.iter().find(|(code, _)| *code == self.node_type)?;
        if kind == NodeKind::Ca && is_aggregation_device(self.vendor_id, self.device_id) {
            kind = NodeKind::AggregationNode;
        }
        Some(NodeIdentity {
            guid: self.node_guid,
            system_guid: self.system_guid,
            kind,
            description: String::new(),
            vendor_id: self.vendor_id,
            device_id: self.device_id,
            // 255 is no port: PortSelect 255 means all ports.
            port_count: self.port_count.min(254),
            enhanced_port0: false,
            speed_fields: SpeedFields::default(),
            reports_fec: false,
        })
    }
}

/// Decodes a node's description as printable text.
pub fn decode_node_description(mad: &Mad) -> String {
    readable_description(&mad.data()[..SMP_DATA_LEN])
}

/// Encodes a node's description: truncated to the field, with zeros behind it.
pub fn encode_node_description(mad: &mut Mad, description: &[u8]) {
    let (text, rest) =
        mad.0[DATA..DATA + SMP_DATA_LEN].split_at_mut(description.len().min(SMP_DATA_LEN));
    text.copy_from_slice(&description[..text.len()]);
    rest.fill(0);
}

/// Whether a CA is a SHARP aggregation node, which has no NodeType of its own: by its exact
/// description, and by its vendor, because hosts can choose any description.
pub fn is_aggregation_node(description: &str, vendor_id: u32) -> bool {
    description == "Mellanox Technologies Aggregation Node" && is_mellanox(vendor_id)
}

/// Whether a CA is a SHARP aggregation node by its DeviceID, which all of 714 aggregation nodes in public
/// topologies have. Unlike the description it is part of NodeInfo.
pub fn is_aggregation_device(vendor_id: u32, device_id: u16) -> bool {
    device_id == device::AGGREGATION_NODE && is_mellanox(vendor_id)
}

attribute! {
    /// SwitchInfo (IBTA 1.4, 14.2.5.4).
    pub struct SwitchInfo = 0x0012 {
        linear_table_size: u16 = bytes(0, 2), "LinearFDBCap: size of the linear forwarding table.";
        random_table_size: u16 = bytes(2, 2), "RandomFDBCap.";
        multicast_table_size: u16 = bytes(4, 2), "MulticastFDBCap.";
        linear_table_top: u16 = bytes(6, 2), "LinearFDBTop: the highest forwarded LID.";
        default_port: PortNumber = byte(8), "DefaultPort.";
        default_multicast_primary_port: PortNumber = byte(9), "DefaultMulticastPrimaryPort.";
        default_multicast_other_port: PortNumber = byte(10), "DefaultMulticastNotPrimaryPort.";
        life_time: u8 = bits(11 * 8, 5), "LifeTimeValue: 4.096 us * 2^value.";
        port_state_change: bool = bits(11 * 8 + 5, 1), "PortStateChange: until the SM resets it.";
        optimized_sl_to_vl: u8 = bits(11 * 8 + 6, 2), "OptimizedSLtoVLMappingProgramming.";
        lids_per_port: u16 = bytes(12, 2), "LIDsPerPort.";
        partition_enforcement_cap: u16 = bytes(14, 2), "PartitionEnforcementCap: P_Keys per port.";
        inbound_enforcement: bool = bits(16 * 8, 1), "InboundEnforcementCap.";
        outbound_enforcement: bool = bits(16 * 8 + 1, 1), "OutboundEnforcementCap.";
        filter_raw_inbound: bool = bits(16 * 8 + 2, 1), "FilterRawInboundCap.";
        filter_raw_outbound: bool = bits(16 * 8 + 3, 1), "FilterRawOutboundCap.";
        enhanced_port0: bool = bits(16 * 8 + 4, 1), "EnhancedPort0: port 0 is a full endpoint.";
        multicast_table_top: u16 = bytes(18, 2), "MulticastFDBTop.";
    }
}

attribute! {
    /// SMInfo (IBTA 1.4, 14.2.5.13): the subnet manager at a port.
    pub struct SmInfo = 0x0020 {
        guid: Guid = bytes(0, 8), "GUID of the port of the subnet manager.";
        sm_key: u64 = bytes(8, 8), "SM_Key; 0 unless the requester is trusted.";
        act_count: u32 = bytes(16, 4), "ActCount: increases while the subnet manager works.";
        priority: u8 = high(20), "Priority: the highest becomes master.";
        state: u8 = low(20), "SMState, see [`SmState`].";
    }
}

labeled_enum! {
    /// SMState (IBTA 1.4, 14.2.5.13); the discriminants are the codes.
    #[repr(u8)]
    pub enum SmState {
        NotActive = 0, "not_active", "Disabled by the master.";
        Discovering = 1, "discovering", "Discovers the subnet and other subnet managers.";
        Standby = 2, "standby", "Waits for the master to fail.";
        Master = 3, "master", "Manages the subnet.";
    }
}

attribute! {
    /// One block of a port's P_KeyTable (IBTA 1.4, 14.2.5.7).
    pub struct PKeyTable = 0x0016 {
        keys: [u16; PKeyTable::PER_BLOCK] = bytes(0, 2), "The P_Keys; 0 where none is set.";
    }
}

impl PKeyTable {
    /// P_Keys per block.
    pub const PER_BLOCK: usize = 32;

    /// Port number and block of an AttributeModifier. Only switches use the port number.
    pub fn port_and_block(modifier: u32) -> (PortNumber, u16) {
        // The field has 16 bits, but port numbers end at 254; 255 is no port.
        ((modifier >> 16).min(255) as PortNumber, modifier as u16)
    }
}

attribute! {
    /// One block of SwitchPortStateTable: the PortStates of 128 ports, four bits each, from port 0 on; that of an even
    /// port is the upper half of its byte. [`has_state_table`](crate::port_info::PortInfo::has_state_table) announces
    /// it. The layout is that of OpenSM and python-rdma: no device's was seen.
    pub struct SwitchPortStateTable = 0x0034 {
        words: [u64; 8] = bytes(0, 8), "The states of 16 ports each.";
    }
}

impl SwitchPortStateTable {
    /// Ports per block.
    pub const PER_BLOCK: PortNumber = 128;

    /// The block that has a port's state.
    pub fn block_of(port: PortNumber) -> u8 {
        port / Self::PER_BLOCK
    }

    /// The state of a port of its block.
    pub fn state(&self, port: PortNumber) -> PortState {
        let (word, shift) = Self::place(port);
        PortState::from_code((self.words[word] >> shift & 0xf) as u8)
    }

    /// The same block with the state of a port.
    #[must_use]
    pub fn with_state(mut self, port: PortNumber, state: PortState) -> Self {
        let (word, shift) = Self::place(port);
        self.words[word] =
            self.words[word] & !(0xf << shift) | u64::from(state.code() & 0xf) << shift;
        self
    }

    /// The word that has a port's state, and how many bits are below it.
    fn place(port: PortNumber) -> (usize, u32) {
        let at = port % Self::PER_BLOCK;
        (usize::from(at / 16), 60 - 4 * u32::from(at % 16))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::mad::LEN;
    use crate::testing::response;

    #[test]
    fn node_info_field_by_field() {
        let info = NodeInfo::decode(&response(&[
            (0, &[1, 1]),
            (2, &[2, 36]),
            (4, &[0, 0, 0, 0, 0, 0, 0, 7]),
            (12, &[0, 2, 0xc9, 2, 0, 0, 0, 1]),
            (20, &[0, 2, 0xc9, 2, 0, 0, 0, 2]),
            (28, &[0, 128]),
            (30, &[0xd2, 0xf0]),
            (32, &[0, 0, 0, 0xa1]),
            (36, &[17]),
            (37, &[0, 2, 0xc9]),
        ]));
        assert_eq!(
            info,
            NodeInfo {
                base_version: 1,
                class_version: 1,
                node_type: 2,
                port_count: 36,
                system_guid: Guid(7),
                node_guid: Guid(0x0002_c902_0000_0001),
                port_guid: Guid(0x0002_c902_0000_0002),
                partition_cap: 128,
                device_id: 0xd2f0,
                revision: 0xa1,
                local_port: 17,
                vendor_id: 0x2c9,
            }
        );
        assert!(is_mellanox(info.vendor_id));
        assert_eq!(info.identity().unwrap().kind, NodeKind::Switch);
        assert_eq!(NodeInfo { node_type: 9, ..info }.identity(), None);
    }

    #[test]
    fn node_kind_maps_to_node_type() {
        for (kind, node_type) in [(NodeKind::Ca, 1), (NodeKind::Switch, 2), (NodeKind::Router, 3)] {
            assert_eq!(NodeInfo::type_of(kind), node_type);
            let info = NodeInfo { node_type, ..NodeInfo::default() };
            assert_eq!(info.identity().unwrap().kind, kind);
        }
        assert_eq!(NodeInfo::type_of(NodeKind::AggregationNode), 1);
    }

    #[test]
    fn node_description_round_trip_is_truncated() {
        let long = "x".repeat(70);
        let cut = &long[..64];
        let mut mad = Mad([0xee; LEN]);
        for (text, read) in [("leaf 3", "leaf 3"), (&*long, cut), (cut, cut), ("", "")] {
            encode_node_description(&mut mad, text.as_bytes());
            assert_eq!(decode_node_description(&mad), read);
            assert_eq!(mad.data()[64..], [0xee; 128], "InitialPath");
        }
    }

    #[test]
    fn switch_info_flag_bits() {
        let info = SwitchInfo::decode(&response(&[
            (0, &[0xc0, 0]),
            (6, &[0, 42]),
            (11, &[0x94]),
            (16, &[0x08]),
        ]));
        assert_eq!((info.linear_table_size, info.linear_table_top), (0xc000, 42));
        assert!(info.port_state_change && info.enhanced_port0);
        let info = SwitchInfo::decode(&response(&[(11, &[0x93]), (16, &[0xf7])]));
        assert!(!info.port_state_change && !info.enhanced_port0);
    }

    #[test]
    fn switch_info_field_by_field() {
        let info = SwitchInfo::decode(&response(&[
            (0, &[0xc0, 0, 0, 1, 0x10, 0, 0, 42]),
            (8, &[1, 2, 3, 0x95]),
            (12, &[0, 4, 0, 32, 0b1010_1000, 0, 0xc0, 7]),
        ]));
        assert_eq!(
            info,
            SwitchInfo {
                linear_table_size: 0xc000,
                random_table_size: 1,
                multicast_table_size: 0x1000,
                linear_table_top: 42,
                default_port: 1,
                default_multicast_primary_port: 2,
                default_multicast_other_port: 3,
                life_time: 18,
                port_state_change: true,
                optimized_sl_to_vl: 1,
                lids_per_port: 4,
                partition_enforcement_cap: 32,
                inbound_enforcement: true,
                outbound_enforcement: false,
                filter_raw_inbound: true,
                filter_raw_outbound: false,
                enhanced_port0: true,
                multicast_table_top: 0xc007,
            }
        );
    }

    #[test]
    fn sm_info_field_by_field() {
        let mad = response(&[
            (0, &[0, 2, 0xc9, 3, 0, 0, 0, 9]),
            (8, &[0x80, 0, 0, 0, 0, 0, 0, 1]),
            (16, &[0, 0, 1, 2, 0xe3]),
        ]);
        let info = SmInfo {
            guid: Guid(0x0002_c903_0000_0009),
            sm_key: 0x8000_0000_0000_0001,
            act_count: 0x102,
            priority: 14,
            state: SmState::Master as u8,
        };
        assert_eq!(SmInfo::decode(&mad), info);
        let mut encoded = response(&[]);
        info.encode(&mut encoded);
        assert!(encoded == mad);
    }

    #[test]
    fn p_key_table_block_has_32_entries() {
        let table =
            PKeyTable::decode(&response(&[(0, &[0xff, 0xff, 0x7f, 0xff]), (62, &[0x80, 1])]));
        assert_eq!((table.keys[0], table.keys[1], table.keys[2]), (0xffff, 0x7fff, 0));
        assert_eq!(table.keys[31], 0x8001);
        for (modifier, expected) in
            [(0, (0, 0)), (0x0024_0003, (36, 3)), (0x0100_ffff, (255, 0xffff))]
        {
            assert_eq!(PKeyTable::port_and_block(modifier), expected, "{modifier:#x}");
        }
    }

    #[test]
    fn port_state_table_has_even_ports_in_high_nibbles() {
        let mad = response(&[(0, &[0x41, 0x23]), (8, &[0x04]), (63, &[0x2f]), (64, &[0xff])]);
        let table = SwitchPortStateTable::decode(&mad);
        for (port, state) in [
            (0, PortState::Active),
            (1, PortState::Down),
            (2, PortState::Init),
            (3, PortState::Armed),
            (4, PortState::Other(0)),
            (16, PortState::Other(0)),
            (17, PortState::Active),
            (126, PortState::Init),
            (127, PortState::Other(15)),
            // Of the second block.
            (128, PortState::Active),
            (129, PortState::Down),
            (145, PortState::Active),
            (254, PortState::Init),
            (255, PortState::Other(15)),
        ] {
            assert_eq!(table.state(port), state, "port {port}");
            let block = u8::from(port > 127);
            assert_eq!(SwitchPortStateTable::block_of(port), block, "port {port}");
        }
        let query = smp_of(switch_port_state_table(1));
        assert_eq!((query.attribute(), query.modifier()), (0x34, 1));
    }

    fn smp_of(query: Query) -> Mad {
        query.request(None, 1)
    }

    #[test]
    fn port_state_table_round_trip() {
        let states = [PortState::Down, PortState::Init, PortState::Armed, PortState::Active];
        let state = |port: u8| states[usize::from(port) * 7 / 5 % 4];
        for first in [0, 128] {
            // What is there before is overwritten.
            let before = SwitchPortStateTable { words: [u64::MAX; 8] };
            let ports = first..=first + 127;
            let table =
                ports.clone().fold(before, |table, port| table.with_state(port, state(port)));
            let mut mad = response(&[]);
            table.encode(&mut mad);
            let read = SwitchPortStateTable::decode(&mad);
            assert!(ports.into_iter().all(|port| read.state(port) == state(port)));
        }
    }

    #[test]
    fn aggregation_node_by_description_or_device_id() {
        assert!(is_aggregation_node("Mellanox Technologies Aggregation Node", 0x2c9));
        assert!(!is_aggregation_node("Mellanox Technologies Aggregation Node", 1));
        assert!(!is_aggregation_node("my Aggregation Node", 0x2c9));
        for (node_type, vendor_id, device_id, kind) in [
            (1, 0x2c9, 0xcf09, NodeKind::AggregationNode),
            (1, 0x15b3, 0xcf09, NodeKind::AggregationNode),
            (1, 0x2c9, 0xcf08, NodeKind::Ca),
            (1, 0x8086, 0xcf09, NodeKind::Ca),
            (2, 0x2c9, 0xcf09, NodeKind::Switch),
        ] {
            let info = NodeInfo { node_type, device_id, vendor_id, ..NodeInfo::default() };
            assert_eq!(info.identity().unwrap().kind, kind, "{info:?}");
        }
    }
}
