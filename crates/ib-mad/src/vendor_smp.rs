//! Vendor-specific attributes of subnet management of NVIDIA (Mellanox) devices: what a device supports, and what it
//! is beside NodeInfo.
//!
//! Sources: NVIDIA's iba/ib_types.h (`ib_mlnx_ext_node_info_t`, ARInfo) and the capability bits of ibdiagnet's
//! headers. Not seen on hardware: what a device does not report is 0 and decodes as absent.

use display_text::labeled_enum;

use crate::layout::{attribute, bits, byte, bytes};
use crate::query::Query;

attribute! {
    /// GeneralInfo of subnet management, of which only the capabilities are decoded.
    pub struct SmpCapabilities = 0xff17 {
        words: [u32; 4] = bytes(0, 4), "CapabilityMask: bit k of element w is capability 32w + k.";
    }
}

impl SmpCapabilities {
    /// AttributeModifier of the capabilities.
    pub const MODIFIER: u32 = 4;
    /// Capability 1: [`AdaptiveRoutingInfo`]. It says nothing about whether adaptive routing is enabled.
    pub const ADAPTIVE_ROUTING: u32 = 1;
    /// Capability 13: [`ExtendedNodeInfo`].
    pub const EXTENDED_NODE_INFO: u32 = 13;
    /// Capability 54, NVLFabricManagement. NVIDIA's headers name four more after NVLink or its manager (55
    /// NVLReductionManagement, 57 NVLHBFConfig, 75 NVLinkFecMode, 77 NMXAdminState), which a device may have without
    /// being part of an NVLink fabric.
    pub const NVLINK: u32 = 54;
    /// Reserved in these headers, as are 96 to 127.
    const RESERVED: u32 = 42;

    /// Reads them.
    pub fn query() -> Query {
        Query::subnet(Self::ID, Self::MODIFIER).optional()
    }

    /// Whether the device announces a capability.
    pub fn has(&self, capability: u32) -> bool {
        let word = self.words.get(capability as usize / 32);
        word.is_some_and(|word| word >> (capability % 32) & 1 == 1)
    }

    /// Whether the device is part of an NVLink fabric; `None` if it announces what is reserved, so that its mask is none
    /// of these.
    pub fn is_nvlink(&self) -> Option<bool> {
        let is_known = !self.has(Self::RESERVED) && self.words[3] == 0;
        is_known.then(|| self.has(Self::NVLINK))
    }
}

labeled_enum! {
    /// Kind of a device beside its NodeType; the discriminants are the codes.
    #[repr(u8)]
    pub enum ExtendedNodeType {
        Gpu = 1, "gpu", "A GPU.";
        MultiPlaneHca = 2, "multi_plane_hca", "A channel adapter whose ports have several planes.";
    }
}

attribute! {
    /// ExtendedNodeInfo.
    pub struct ExtendedNodeInfo = 0xff91 {
        node_type: u8 = byte(15), "Type, see [`ExtendedNodeType`].";
        max_planes: u8 = byte(19), "The most planes of a port of the ASIC; 0 if it has none.";
    }
}

impl ExtendedNodeInfo {
    /// Reads it.
    pub fn query() -> Query {
        Query::subnet(Self::ID, 0).optional()
    }

    /// The kind of device, if it is a special one.
    pub fn kind(&self) -> Option<ExtendedNodeType> {
        ExtendedNodeType::from_discriminant(self.node_type)
    }
}

attribute! {
    /// ARInfo of a switch: whether it may send packets by other ports than its linear forwarding table has.
    pub struct AdaptiveRoutingInfo = 0xff20 {
        fast_recovery: bool = bits(3 * 8 + 3, 1), "Fault routing is enabled: packets evade a port that is down.";
        enabled: bool = bits(3 * 8 + 7, 1), "Adaptive routing is enabled: packets evade a port that is busy.";
    }
}

impl AdaptiveRoutingInfo {
    /// Reads it.
    pub fn query() -> Query {
        Query::subnet(Self::ID, 0).optional()
    }

    /// Whether packets may take another port than that of the linear forwarding table.
    pub fn may_differ(&self) -> bool {
        self.enabled || self.fast_recovery
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::response;

    #[test]
    fn capabilities_count_from_the_low_bit_of_each_word() {
        let info = SmpCapabilities::decode(&response(&[(2, &[0x20]), (4, &[0x02])]));
        assert!(info.has(SmpCapabilities::EXTENDED_NODE_INFO));
        assert!(info.has(57));
        assert!(!info.has(56) && !info.has(12) && !info.has(128) && !info.has(u32::MAX));
        let query = SmpCapabilities::query();
        assert_eq!((query.attribute, query.modifier), (0xff17, 4));
    }

    #[test]
    fn only_nvlink_management_makes_an_nvlink_fabric() {
        let bit = |capability: u32| 1 << (capability % 32);
        for (words, expected) in [
            ([0; 4], Some(false)),
            ([u32::MAX, 0, 0, 0], Some(false)),
            ([0, bit(54), 0, 0], Some(true)),
            ([0, bit(54) | bit(55) | bit(57), bit(75) | bit(77), 0], Some(true)),
            ([0, bit(55) | bit(57), bit(75) | bit(77), 0], Some(false)),
            ([u32::MAX; 4], None),
            ([0, bit(54) | bit(42), 0, 0], None),
            ([0, bit(54), 0, 1], None),
            ([0, 0, 0, bit(127)], None),
        ] {
            assert_eq!(SmpCapabilities { words }.is_nvlink(), expected, "{words:x?}");
        }
    }

    #[test]
    fn extended_node_info_tells_gpus_and_multi_plane_adapters() {
        for (bytes, kind, planes) in [
            ([0, 0, 0, 0, 0], None, 0),
            ([1, 0, 0, 0, 1], Some(ExtendedNodeType::Gpu), 1),
            ([2, 0xff, 0xff, 0xff, 4], Some(ExtendedNodeType::MultiPlaneHca), 4),
            ([9, 0, 0, 0, 255], None, 255),
        ] {
            let info = ExtendedNodeInfo::decode(&response(&[(15, &bytes)]));
            assert_eq!((info.kind(), info.max_planes), (kind, planes), "{bytes:?}");
        }
    }

    #[test]
    fn adaptive_routing_is_two_bits() {
        for (byte, enabled, fast_recovery) in
            [(0, false, false), (0x01, true, false), (0x10, false, true), (0xee, false, false)]
        {
            let info = AdaptiveRoutingInfo::decode(&response(&[(2, &[0xff, byte, 0xff])]));
            assert_eq!((info.enabled, info.fast_recovery), (enabled, fast_recovery), "{byte:#x}");
            assert_eq!(info.may_differ(), enabled || fast_recovery, "{byte:#x}");
        }
    }
}
