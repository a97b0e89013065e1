//! HierarchyInfo: where a port or a device is, by the labels of its front panel, chassis and rack.
//!
//! CapabilityMask bit 31 of PortInfo announces it (kernel: `IB_PORT_HIERARCHY_INFO_SUP` of include/rdma/ib_mad.h). A
//! template says what the values mean, see NVIDIA's opensm/osm_hierarchy_info.h and ibdm/Fabric.h. Template 3 was seen
//! in public dumps, the others were not.

use crate::ids::PortNumber;
use crate::layout::{attribute, byte, bytes, high};
use crate::query::Query;

/// The templates of ports.
pub mod template {
    /// A port of a Quantum-2 or ConnectX-7.
    pub const NDR: u64 = 3;
    /// A port of an XDR switch.
    pub const XDR_SWITCH: u64 = 4;
    /// A port of an XDR adapter or a GPU; in its second block is the [`Location`](super::Location).
    pub const XDR_ADAPTER: u64 = 5;
    /// The location of a switch, at its port 0.
    pub const SWITCH_LOCATION: u64 = 6;
}

attribute! {
    /// A block of HierarchyInfo.
    pub struct HierarchyInfo = 0x001e {
        template: u64 = bytes(0, 8), "TemplateGUID, see [`template`]; 0 is none.";
        highest_index: u8 = byte(8), "The highest index that the port supports.";
        active_index: u8 = byte(9), "The highest index that is set.";
        levels: u8 = high(10), "Number of levels that are set in this block.";
        values: [u32; HierarchyInfo::PER_BLOCK] = bytes(12, 4), "A value for each level; 0xffffffff is none.";
    }
}

impl HierarchyInfo {
    /// Levels per block.
    pub const PER_BLOCK: usize = 13;

    /// Reads a block of a port. On a channel adapter the port that receives the request responds for itself.
    pub fn query(port: PortNumber, block: u8) -> Query {
        Query::subnet(Self::ID, u32::from(block) << 8 | u32::from(port)).optional()
    }

    /// The block without any value.
    pub fn empty(template: u64) -> Self {
        let (highest_index, active_index, levels) = (0, 0, 0);
        let values = [u32::MAX; Self::PER_BLOCK];
        HierarchyInfo { template, highest_index, active_index, levels, values }
    }

    /// Port and block of an AttributeModifier.
    pub fn port_and_block(modifier: u32) -> (PortNumber, u8) {
        (modifier as u8, (modifier >> 8) as u8)
    }
}

/// Where a device is in its chassis and its rack.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Location {
    /// Number of the device on its CPU node.
    pub device: Option<u8>,
    /// Number of the CPU node.
    pub cpu_node: Option<u8>,
    /// Type of the board.
    pub board_type: Option<u8>,
    /// Slot of the chassis.
    pub slot: Option<u8>,
    /// Tray of the rack.
    pub tray: Option<u8>,
    /// Topology of the system.
    pub topology: Option<u32>,
}

impl Location {
    /// Decodes it: from the second block of an adapter's port, or from that of a switch's port 0.
    pub fn new(info: &HierarchyInfo) -> Option<Self> {
        if !matches!(info.template, template::XDR_ADAPTER | template::SWITCH_LOCATION) {
            return None;
        }
        let [device, board, topology, ..] =
            info.values.map(|value| Some(value).filter(|it| *it != u32::MAX));
        let location = Location {
            device: device.map(|record| record as u8),
            cpu_node: device.map(|record| (record >> 8) as u8),
            board_type: board.map(|record| (record & 3) as u8),
            slot: board.map(|record| (record >> 8) as u8),
            tray: board.map(|record| (record >> 16) as u8),
            topology,
        };
        Some(location).filter(|location| *location != Location::default())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::response;

    #[test]
    fn block_field_by_field() {
        let info = HierarchyInfo::decode(&response(&[
            (7, &[3, 2, 1, 0x70]),
            (12, &[0xff, 0xff, 0xff, 0xff, 0, 0, 0, 1, 0, 0, 0, 19]),
            (60, &[1, 2, 3, 4]),
        ]));
        assert_eq!((info.template, info.highest_index), (template::NDR, 2));
        assert_eq!((info.active_index, info.levels), (1, 7));
        assert_eq!(info.values[..4], [u32::MAX, 1, 19, 0]);
        assert_eq!(info.values[12], 0x0102_0304);
    }

    #[test]
    fn modifier_has_block_above_port() {
        let query = HierarchyInfo::query(145, 1);
        assert_eq!((query.attribute, query.modifier, query.is_optional), (0x1e, 0x191, true));
        assert_eq!(HierarchyInfo::port_and_block(query.modifier), (145, 1));
    }

    #[test]
    fn location_of_adapters_and_switches() {
        let of = |template, records: [u32; 3]| {
            let mut info = HierarchyInfo::empty(template);
            info.values[..3].copy_from_slice(&records);
            Location::new(&info)
        };
        let expected = Location {
            device: Some(3),
            cpu_node: Some(1),
            board_type: Some(2),
            slot: Some(7),
            tray: Some(12),
            topology: Some(128),
        };
        let records = [0xffff_0103, 0x000c_0702, 128];
        for template in [template::XDR_ADAPTER, template::SWITCH_LOCATION] {
            assert_eq!(of(template, records), Some(expected));
        }
        assert_eq!(of(template::NDR, records), None);
        assert_eq!(of(template::SWITCH_LOCATION, [u32::MAX; 3]), None);
        let only_board = of(template::SWITCH_LOCATION, [u32::MAX, 0x0500, u32::MAX]).unwrap();
        assert_eq!(
            (only_board.slot, only_board.device, only_board.topology),
            (Some(5), None, None)
        );
    }
}
