//! PortInfo: state, width and speed of a port (IBTA 1.4, table 155, and the XDR fields).

use crate::ids::{Lid, PortNumber};
use crate::layout::{attribute, bits, byte, bytes, high, low};
use crate::node::PortRole;
use crate::port_state::{PhysicalState, PortState, PortStatus, SpeedFields};
use crate::rate::{Speed, SpeedSet, Width};

attribute! {
    /// PortInfo, in wire codes.
    pub struct PortInfo = 0x0015 {
        m_key: u64 = bytes(0, 8), "M_Key; 0 unless the request had the key.";
        gid_prefix: u64 = bytes(8, 8), "GidPrefix of the subnet.";
        lid: Lid = bytes(16, 2), "LID.";
        sm_lid: Lid = bytes(18, 2), "MasterSMLID.";
        capabilities: u32 = bytes(20, 4), "CapabilityMask, see [`capability`].";
        diag_code: u16 = bytes(24, 2), "DiagCode.";
        m_key_lease_period: u16 = bytes(26, 2), "M_KeyLeasePeriod, in seconds.";
        local_port: PortNumber = byte(28), "LocalPortNum.";
        width_enabled: u8 = byte(29), "LinkWidthEnabled, a mask.";
        width_supported: u8 = byte(30), "LinkWidthSupported, a mask.";
        width_active: u8 = byte(31), "LinkWidthActive.";
        speed_supported: u8 = high(32), "LinkSpeedSupported, a mask.";
        state: PortState = low(32), "PortState.";
        physical_state: PhysicalState = high(33), "PortPhysicalState.";
        link_down_default_state: u8 = low(33), "LinkDownDefaultState.";
        m_key_protect: u8 = bits(34 * 8, 2), "M_KeyProtectBits.";
        lmc: u8 = bits(34 * 8 + 5, 3), "LMC.";
        speed_active: u8 = high(35), "LinkSpeedActive.";
        speed_enabled: u8 = low(35), "LinkSpeedEnabled, a mask.";
        neighbor_mtu: u8 = high(36), "NeighborMTU: 1 to 5 for 256 to 4096 bytes.";
        sm_sl: u8 = low(36), "MasterSMSL.";
        vl_cap: u8 = high(37), "VLCap: 1 to 5 for 1, 2, 4, 8 and 15 data lanes.";
        init_type: u8 = low(37), "InitType.";
        vl_high_limit: u8 = byte(38), "VLHighLimit.";
        vl_arbitration_high_cap: u8 = byte(39), "VLArbitrationHighCap.";
        vl_arbitration_low_cap: u8 = byte(40), "VLArbitrationLowCap.";
        init_type_reply: u8 = high(41), "InitTypeReply.";
        mtu_cap: u8 = low(41), "MTUCap, in the codes of NeighborMTU.";
        vl_stall_count: u8 = bits(42 * 8, 3), "VLStallCount.";
        hoq_life: u8 = bits(42 * 8 + 3, 5), "HOQLife.";
        operational_vls: u8 = high(43), "OperationalVLs, in the codes of VLCap.";
        partition_enforcement_inbound: bool = bits(43 * 8 + 4, 1), "PartitionEnforcementInbound.";
        partition_enforcement_outbound: bool = bits(43 * 8 + 5, 1), "PartitionEnforcementOutbound.";
        filter_raw_inbound: bool = bits(43 * 8 + 6, 1), "FilterRawInbound.";
        filter_raw_outbound: bool = bits(43 * 8 + 7, 1), "FilterRawOutbound.";
        m_key_violations: u16 = bytes(44, 2), "M_KeyViolations.";
        p_key_violations: u16 = bytes(46, 2), "P_KeyViolations.";
        q_key_violations: u16 = bytes(48, 2), "Q_KeyViolations.";
        guid_cap: u8 = byte(50), "GUIDCap: number of GUIDs that the port can have.";
        client_reregister: bool = bits(51 * 8, 1), "ClientReregister.";
        multicast_pkey_trap_suppression: u8 = bits(51 * 8 + 1, 2), "MulticastPKeyTrapSuppressionEnabled.";
        subnet_timeout: u8 = bits(51 * 8 + 3, 5), "SubnetTimeOut: 4.096 us * 2^value.";
        response_time: u8 = bits(52 * 8 + 3, 5), "RespTimeValue: 4.096 us * 2^value.";
        local_phy_errors: u8 = high(53), "LocalPhyErrors: the threshold of LocalLinkIntegrityErrors.";
        overrun_errors: u8 = low(53), "OverrunErrors: the threshold of ExcessiveBufferOverrunErrors.";
        max_credit_hint: u16 = bytes(54, 2), "MaxCreditHint.";
        speed_ext2_active: u8 = bits(56 * 8 + 1, 2), "LinkSpeedExt2Active: XDR.";
        speed_ext2_supported: u8 = bits(56 * 8 + 3, 2), "LinkSpeedExt2Supported, a mask.";
        speed_ext2_enabled: u8 = bits(56 * 8 + 5, 3), "LinkSpeedExt2Enabled, a mask.";
        round_trip_latency: u32 = bytes(57, 3), "LinkRoundTripLatency, 24 bits.";
        capabilities2: u16 = bytes(60, 2), "CapabilityMask2, see [`capability2`].";
        speed_ext_active: u8 = high(62), "LinkSpeedExtActive.";
        speed_ext_supported: u8 = low(62), "LinkSpeedExtSupported, a mask.";
        speed_ext_enabled: u8 = bits(63 * 8 + 3, 5), "LinkSpeedExtEnabled, a mask; 30 is none.";
    }
}

attribute! {
    /// ExtendedPortInfo of Mellanox (ibdiagnet: SMP_MlnxExtPortInfo). It has a bit for FDR10, which PortInfo
    /// lacks: bit 0 (kernel: `mlx5_query_mad_ifc_port` of drivers/infiniband/hw/mlx5/mad.c); and the role of a
    /// switch port (NVIDIA's iba/ib_types.h, `ib_mlnx_ext_port_info_t`). The latter was not tested on hardware.
    pub struct MellanoxExtendedPortInfo = 0xff90 {
        state_change_enable: u8 = byte(3), "StateChangeEnable.";
        speed_supported: u8 = byte(7), "LinkSpeedSupported, a mask.";
        speed_enabled: u8 = byte(11), "LinkSpeedEnabled, a mask.";
        speed_active: u8 = byte(15), "LinkSpeedActive.";
        is_fnm: bool = bits(44 * 8, 1), "IsFNMPort: connects the ASICs of a multi-plane switch.";
        is_special: bool = bits(47 * 8, 1), "IsSpecialPort: internal port of the switch.";
        special_type: u8 = low(47), "SpecialPortType: 1 aggregation node, 2 router, 3 Ethernet gateway.";
    }
}

impl MellanoxExtendedPortInfo {
    /// The role of the port. Only FNM and router ports are excluded from alerts, and only by a set bit.
    pub fn role(&self) -> PortRole {
        match (self.is_fnm, self.is_special, self.special_type) {
            (true, ..) => PortRole::Fnm,
            (_, true, Self::ROUTER) => PortRole::Router,
            (_, true, _) => PortRole::Other,
            (_, false, _) => PortRole::Cable,
        }
    }

    /// SpecialPortType of the port to the aggregation node of a switch.
    pub const AGGREGATION_NODE: u8 = 1;

    /// SpecialPortType of the port to the internal router of a switch.
    pub const ROUTER: u8 = 2;

    /// Speed code of FDR10.
    pub const FDR10: u8 = 1;

    /// Whether the port runs at FDR10.
    pub fn is_fdr10(&self) -> bool {
        self.speed_active & Self::FDR10 != 0
    }
}

/// Bits of CapabilityMask (IBTA 1.4, table 155).
pub mod capability {
    /// Bit 1: a subnet manager runs at this port.
    pub const IS_SM: u32 = 1 << 1;
    /// Bit 14: the extended speeds are valid.
    pub const EXTENDED_SPEEDS: u32 = 1 << 14;
    /// Bit 15: CapabilityMask2 is valid.
    pub const CAPABILITY_MASK2: u32 = 1 << 15;
    /// Bit 31: the port has HierarchyInfo.
    pub const HIERARCHY_INFO: u32 = 1 << 31;
}

/// Bits of CapabilityMask2 (kernel: `ib_port_capability_mask2_bits` of include/rdma/ib_mad.h).
#[expect(missing_docs, reason = "the names say what is supported")]
pub mod capability2 {
    pub const PORT_INFO_EXTENDED: u16 = 1 << 1;
    pub const SWITCH_PORT_STATE_TABLE: u16 = 1 << 3;
    pub const SPEED_HDR: u16 = 1 << 5;
    pub const SPEED_NDR: u16 = 1 << 10;
    /// The second extended speeds are valid.
    pub const EXTENDED_SPEEDS2: u16 = 1 << 11;
    pub const SPEED_XDR: u16 = 1 << 12;
}

/// Field (LinkSpeed, LinkSpeedExt, LinkSpeedExt2) and code of each speed, slowest first.
const SPEEDS: [(usize, u8, Speed); 8] = [
    (0, 1, Speed::Sdr),
    (0, 2, Speed::Ddr),
    (0, 4, Speed::Qdr),
    (1, 1, Speed::Fdr),
    (1, 2, Speed::Edr),
    (1, 4, Speed::Hdr),
    (1, 8, Speed::Ndr),
    (2, 1, Speed::Xdr),
];

/// The masks of these speeds in the three fields.
fn masks(speeds: SpeedSet) -> [u8; 3] {
    let mut masks = [0; 3];
    for (field, code, _) in SPEEDS.into_iter().filter(|(.., speed)| speeds.contains(*speed)) {
        masks[field] |= code;
    }
    masks
}

impl PortInfo {
    /// Whether CapabilityMask2 is valid and has a bit.
    fn has_capability2(&self, bit: u16) -> bool {
        self.capabilities & capability::CAPABILITY_MASK2 != 0 && self.capabilities2 & bit != 0
    }

    /// Which speed fields are valid. A switch announces it on port 0 for all of its ports.
    pub fn speed_fields(&self) -> SpeedFields {
        SpeedFields {
            extended: self.capabilities & capability::EXTENDED_SPEEDS != 0,
            extended2: self.has_capability2(capability2::EXTENDED_SPEEDS2),
        }
    }

    /// Whether PortInfoExtended is supported. A switch announces it on port 0 for all of its ports.
    pub fn reports_fec(&self) -> bool {
        self.has_capability2(capability2::PORT_INFO_EXTENDED)
    }

    /// Whether HierarchyInfo is supported. A switch announces it on port 0 for all of its ports.
    pub fn has_hierarchy_info(&self) -> bool {
        self.capabilities & capability::HIERARCHY_INFO != 0
    }

    /// Whether the switch has a SwitchPortStateTable; on its port 0.
    pub fn has_state_table(&self) -> bool {
        self.has_capability2(capability2::SWITCH_PORT_STATE_TABLE)
    }

    /// Decoded state of the port. For a switch port, `fields` are those of port 0.
    pub fn status(&self, fields: SpeedFields) -> PortStatus {
        let valid = [true, fields.extended, fields.extended2];
        let known = || SPEEDS.into_iter().filter(move |(field, ..)| valid[*field]);
        let set = |masks: [u8; 3]| {
            let speeds = known().filter(|(field, code, _)| masks[*field] & code != 0);
            speeds.map(|(.., speed)| speed).collect::<SpeedSet>()
        };
        let active = [self.speed_active, self.speed_ext_active, self.speed_ext2_active];
        // The newest field with a known code wins.
        let speed = known().rfind(|(field, code, _)| active[*field] == *code);
        // Without a link the active fields hold values of the last link, or garbage.
        let link_up = self.physical_state == PhysicalState::LinkUp;
        let supported = [self.speed_supported, self.speed_ext_supported, self.speed_ext2_supported];
        let enabled = [self.speed_enabled, self.speed_ext_enabled, self.speed_ext2_enabled];
        PortStatus {
            lid: self.lid,
            lmc: self.lmc,
            sm_lid: self.sm_lid,
            is_sm: self.capabilities & capability::IS_SM != 0,
            state: self.state,
            physical_state: self.physical_state,
            width: Width::from_code(self.width_active).filter(|_| link_up),
            speed: speed.map(|(.., speed)| speed).filter(|_| link_up),
            widths_supported: self.width_supported,
            speeds_supported: set(supported),
            widths_enabled: self.width_enabled,
            speeds_enabled: set(enabled),
        }
    }

    /// The port with these supported, enabled and active speeds, and with the capability bits that validate
    /// the fields. Speeds without a code in PortInfo, such as FDR10, are left out.
    #[must_use]
    pub fn with_speeds(
        self,
        supported: SpeedSet,
        enabled: SpeedSet,
        active: Option<Speed>,
    ) -> Self {
        let [base, ext, ext2] = masks(supported);
        let enabled = masks(enabled);
        let mut active = masks(active.into_iter().collect());
        if active[1] | active[2] != 0 {
            // While an extended speed is active, LinkSpeedActive holds its fastest supported speed.
            active[0] = base.checked_ilog2().map_or(0, |bit| 1 << bit);
        }
        let bit = |set: bool, bit: u16| if set { bit } else { 0 };
        let capabilities2 = bit(supported.contains(Speed::Hdr), capability2::SPEED_HDR)
            | bit(supported.contains(Speed::Ndr), capability2::SPEED_NDR)
            | bit(ext2 != 0, capability2::EXTENDED_SPEEDS2 | capability2::SPEED_XDR);
        let capabilities = if ext | ext2 != 0 { capability::EXTENDED_SPEEDS } else { 0 }
            | if capabilities2 != 0 { capability::CAPABILITY_MASK2 } else { 0 };
        PortInfo {
            speed_supported: base,
            speed_enabled: enabled[0],
            speed_active: active[0],
            speed_ext_supported: ext,
            speed_ext_enabled: enabled[1],
            speed_ext_active: active[1],
            speed_ext2_supported: ext2,
            speed_ext2_enabled: enabled[2],
            speed_ext2_active: active[2],
            capabilities: self.capabilities | capabilities,
            capabilities2: self.capabilities2 | capabilities2,
            ..self
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::mad::{DATA, LEN, Mad};
    use crate::testing::response;

    #[test]
    fn port_info_field_by_field() {
        let mad = response(&[
            (0, &[0x80, 0, 0, 0, 0, 0, 0, 7]),
            (8, &[0xfe, 0x80, 0, 0, 0, 0, 0, 1]),
            (16, &[0x12, 0x34, 0, 9]),
            (20, &[0x00, 0x50, 0xc0, 0x48]),
            (24, &[0x0a, 0x0b, 0x0c, 0x0d]),
            (28, &[5, 3, 0x12, 2]),
            (32, &[0x74, 0x52, 0x85, 0x41]),
            (36, &[0x5a, 0x46, 4, 8, 64, 0x35, 0xf1, 0x3d]),
            (44, &[0, 1, 0, 2, 0, 3, 16]),
            (51, &[0b1101_0010, 0x11, 0x8f, 1, 2]),
            (56, &[0b0101_1101, 0x12, 0x34, 0x56]),
            (60, &[0x0f, 0x02, 0x43, 0x1e]),
        ]);
        let info = PortInfo {
            m_key: 0x8000_0000_0000_0007,
            gid_prefix: 0xfe80_0000_0000_0001,
            lid: Lid(0x1234),
            sm_lid: Lid(9),
            capabilities: 0x0050_c048,
            diag_code: 0x0a0b,
            m_key_lease_period: 0x0c0d,
            local_port: 5,
            width_enabled: 3,
            width_supported: 0x12,
            width_active: 2,
            speed_supported: 7,
            state: PortState::Active,
            physical_state: PhysicalState::LinkUp,
            link_down_default_state: 2,
            m_key_protect: 2,
            lmc: 5,
            speed_active: 4,
            speed_enabled: 1,
            neighbor_mtu: 5,
            sm_sl: 10,
            vl_cap: 4,
            init_type: 6,
            vl_high_limit: 4,
            vl_arbitration_high_cap: 8,
            vl_arbitration_low_cap: 64,
            init_type_reply: 3,
            mtu_cap: 5,
            vl_stall_count: 7,
            hoq_life: 17,
            operational_vls: 3,
            partition_enforcement_inbound: true,
            partition_enforcement_outbound: true,
            filter_raw_inbound: false,
            filter_raw_outbound: true,
            m_key_violations: 1,
            p_key_violations: 2,
            q_key_violations: 3,
            guid_cap: 16,
            client_reregister: true,
            multicast_pkey_trap_suppression: 2,
            subnet_timeout: 18,
            response_time: 17,
            local_phy_errors: 8,
            overrun_errors: 15,
            max_credit_hint: 0x0102,
            speed_ext2_active: 2,
            speed_ext2_supported: 3,
            speed_ext2_enabled: 5,
            round_trip_latency: 0x12_3456,
            capabilities2: 0x0f02,
            speed_ext_active: 4,
            speed_ext_supported: 3,
            speed_ext_enabled: 30,
        };
        assert_eq!(PortInfo::decode(&mad), info);
        let mut encoded = Mad([0; LEN]);
        info.encode(&mut encoded);
        assert!(encoded == mad);
    }

    #[test]
    fn port_info_speeds_round_trip() {
        let all = [Speed::Sdr, Speed::Ddr, Speed::Qdr, Speed::Fdr, Speed::Edr, Speed::Hdr];
        let all: Vec<Speed> = all.into_iter().chain([Speed::Ndr, Speed::Xdr]).collect();
        for (index, fastest) in all.iter().enumerate() {
            let supported: SpeedSet = all[..=index].iter().copied().collect();
            for active in &all[..=index] {
                let info = PortInfo { state: PortState::Active, ..PortInfo::default() };
                let info = PortInfo { physical_state: PhysicalState::LinkUp, ..info }.with_speeds(
                    supported,
                    supported,
                    Some(*active),
                );
                let status = info.status(info.speed_fields());
                assert_eq!(status.speed, Some(*active), "of up to {fastest:?}");
                assert_eq!(status.speeds_supported, supported);
            }
        }
        let none = PortInfo::default().with_speeds(SpeedSet::default(), SpeedSet::default(), None);
        assert_eq!(none, PortInfo::default());
        let enabled: SpeedSet = [Speed::Sdr, Speed::Edr].into_iter().collect();
        let edr =
            PortInfo::default().with_speeds(enabled.with(Speed::Qdr), enabled, Some(Speed::Edr));
        assert_eq!((edr.speed_supported, edr.speed_enabled, edr.speed_ext_enabled), (5, 1, 2));
        assert_eq!((edr.speed_active, edr.speed_ext_active, edr.speed_ext2_active), (4, 2, 0));
        assert_eq!((edr.capabilities, edr.capabilities2), (capability::EXTENDED_SPEEDS, 0));
        let both: SpeedSet = [Speed::Qdr, Speed::Fdr10].into_iter().collect();
        let fdr10 = PortInfo::default().with_speeds(both, both, Some(Speed::Qdr));
        assert_eq!((fdr10.speed_supported, fdr10.speed_active, fdr10.capabilities), (4, 4, 0));
    }

    #[test]
    fn mellanox_extended_port_info_reports_fdr10() {
        let mad = response(&[(0, &[0, 0, 0, 9, 0, 0, 0, 1, 0, 0, 0, 3, 0, 0, 0, 1])]);
        let info = MellanoxExtendedPortInfo {
            state_change_enable: 9,
            speed_supported: 1,
            speed_enabled: 3,
            speed_active: MellanoxExtendedPortInfo::FDR10,
            ..MellanoxExtendedPortInfo::default()
        };
        assert_eq!(MellanoxExtendedPortInfo::decode(&mad), info);
        assert!(info.is_fdr10());
        assert!(!MellanoxExtendedPortInfo { speed_active: 0, ..info }.is_fdr10());
    }

    #[test]
    fn mellanox_extended_port_info_reports_port_role() {
        for (fnm, special, role) in [
            (0, 0, PortRole::Cable),
            (0x80, 0, PortRole::Fnm),
            (0x7f, 0x0f, PortRole::Cable),
            (0, 0x82, PortRole::Router),
            (0, 0x81, PortRole::Other),
            (0, 0xf3, PortRole::Other),
        ] {
            let mad = response(&[(44, &[fnm]), (47, &[special])]);
            assert_eq!(
                MellanoxExtendedPortInfo::decode(&mad).role(),
                role,
                "{fnm:#x} {special:#x}"
            );
        }
    }

    #[test]
    fn newest_valid_speed_field_wins() {
        let port = |active: u8, ext: u8, ext2: u8| {
            PortInfo::decode(&response(&[
                (31, &[2]),
                (32, &[0x74, 0x50]),
                (35, &[active << 4]),
                (56, &[ext2 << 5 | 0x08]),
                (62, &[ext << 4 | 0x0f]),
            ]))
        };
        let all = SpeedFields { extended: true, extended2: true };
        let no2 = SpeedFields { extended2: false, ..all };
        for (active, ext, ext2, fields, speed) in [
            (1, 0, 0, all, Some(Speed::Sdr)),
            (4, 0, 0, all, Some(Speed::Qdr)),
            (4, 1, 0, all, Some(Speed::Fdr)),
            (4, 2, 0, all, Some(Speed::Edr)),
            (4, 8, 0, all, Some(Speed::Ndr)),
            (4, 8, 1, all, Some(Speed::Xdr)),
            (4, 8, 1, no2, Some(Speed::Ndr)),
            (4, 8, 1, SpeedFields::default(), Some(Speed::Qdr)),
            (0, 0, 0, all, None),
            (3, 0, 0, all, None),
        ] {
            let status = port(active, ext, ext2).status(fields);
            assert_eq!(status.speed, speed, "{active} {ext} {ext2} {fields:?}");
        }
        let status = port(4, 2, 0).status(no2);
        assert_eq!(status.speeds_supported.fastest(), Some(Speed::Ndr));
        assert_eq!(port(4, 2, 0).status(all).speeds_supported.fastest(), Some(Speed::Xdr));
    }

    #[test]
    fn port_without_link_has_no_width_or_speed() {
        let mut mad = response(&[(31, &[2]), (32, &[0x71, 0x20]), (35, &[0x10])]);
        let down = PortInfo::decode(&mad).status(SpeedFields::default());
        assert_eq!((down.state, down.physical_state), (PortState::Down, PhysicalState::Polling));
        assert_eq!((down.width, down.speed, down.rate()), (None, None, None));
        mad.0[DATA + 33] = 0x50;
        let up = PortInfo::decode(&mad).status(SpeedFields::default());
        assert_eq!(up.rate(), Some(1_250_000_000));
    }

    #[test]
    fn state_table_is_announced_in_a_valid_capability_mask2() {
        for (mask, mask2, expected) in [
            ([0, 0, 0x80, 0], [0, 0x08], true),
            ([0, 0, 0x80, 0], [0xff, 0xf7], false),
            ([0xff, 0xff, 0x7f, 0xff], [0xff, 0xff], false),
        ] {
            let info = PortInfo::decode(&response(&[(20, &mask), (60, &mask2)]));
            assert_eq!(info.has_state_table(), expected, "{mask:?} {mask2:?}");
        }
    }

    #[test]
    fn hierarchy_info_is_announced_by_the_highest_bit() {
        for (mask, expected) in [([0x80, 0, 0, 0], true), ([0x7f, 0xff, 0xff, 0xff], false)] {
            let info = PortInfo::decode(&response(&[(20, &mask)]));
            assert_eq!(info.has_hierarchy_info(), expected, "{mask:?}");
        }
    }

    #[test]
    fn capability_masks_enable_speed_fields() {
        let fields = |mask: &[u8], mask2: &[u8]| {
            PortInfo::decode(&response(&[(20, mask), (60, mask2)])).speed_fields()
        };
        assert_eq!(fields(&[0, 0, 0, 0], &[0xff, 0xff]), SpeedFields::default());
        assert_eq!(
            fields(&[0, 0, 0x40, 0], &[0xff, 0xff]),
            SpeedFields { extended: true, extended2: false }
        );
        assert_eq!(
            fields(&[0, 0, 0xc0, 0], &[0x08, 0]),
            SpeedFields { extended: true, extended2: true }
        );
    }
}
