//! PortInfo: how a port is, and how fast (IBTA 1.4, table 155, and the fields that XDR added).

use crate::fabric::rate::{Speed, SpeedSet, Width};
use crate::fabric::status::{PortStatus, SpeedFields};
use crate::fabric::{Lid, PortNumber};

use super::{DATA, Mad};

/// PortInfo, in the wire's own codes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PortInfo {
    /// LID.
    pub lid: Lid,
    /// MasterSMLID.
    pub sm_lid: Lid,
    /// CapabilityMask.
    pub capabilities: u32,
    /// LocalPortNum.
    pub local_port: PortNumber,
    /// LinkWidthEnabled, a mask.
    pub width_enabled: u8,
    /// LinkWidthSupported, a mask.
    pub width_supported: u8,
    /// LinkWidthActive.
    pub width_active: u8,
    /// LinkSpeedSupported, a mask.
    pub speed_supported: u8,
    /// PortState.
    pub state: u8,
    /// PortPhysicalState.
    pub physical_state: u8,
    /// LMC.
    pub lmc: u8,
    /// LinkSpeedActive.
    pub speed_active: u8,
    /// LinkSpeedEnabled, a mask.
    pub speed_enabled: u8,
    /// CapabilityMask2.
    pub capabilities2: u16,
    /// LinkSpeedExtActive.
    pub speed_ext_active: u8,
    /// LinkSpeedExtSupported, a mask.
    pub speed_ext_supported: u8,
    /// LinkSpeedExt2Active: XDR.
    pub speed_ext2_active: u8,
    /// LinkSpeedExt2Supported.
    pub speed_ext2_supported: u8,
}

/// CapabilityMask bit 14: the extended speeds mean something.
const EXTENDED_SPEEDS: u32 = 1 << 14;
/// CapabilityMask bit 15: CapabilityMask2 means something.
const CAPABILITY_MASK2: u32 = 1 << 15;
/// CapabilityMask2 bit 11: the second extended speeds mean something.
const EXTENDED_SPEEDS2: u16 = 1 << 11;

/// The codes of a port's speed fields, slowest first.
const BASE_SPEEDS: [(u8, Speed); 3] = [(1, Speed::Sdr), (2, Speed::Ddr), (4, Speed::Qdr)];
const EXT_SPEEDS: [(u8, Speed); 4] =
    [(1, Speed::Fdr), (2, Speed::Edr), (4, Speed::Hdr), (8, Speed::Ndr)];
const EXT2_SPEEDS: [(u8, Speed); 1] = [(1, Speed::Xdr)];

fn exactly(table: &[(u8, Speed)], code: u8) -> Option<Speed> {
    table.iter().find(|(mask, _)| *mask == code).map(|(_, speed)| *speed)
}

fn all_of(table: &'static [(u8, Speed)], mask: u8) -> impl Iterator<Item = Speed> {
    table.iter().filter(move |(bit, _)| mask & bit != 0).map(|(_, speed)| *speed)
}

impl PortInfo {
    /// Reads it from an answer.
    pub fn decode(mad: &Mad) -> Self {
        let byte = |offset| mad.u8(DATA + offset);
        PortInfo {
            lid: Lid(mad.u16(DATA + 16)),
            sm_lid: Lid(mad.u16(DATA + 18)),
            capabilities: mad.u32(DATA + 20),
            local_port: byte(28),
            width_enabled: byte(29),
            width_supported: byte(30),
            width_active: byte(31),
            speed_supported: byte(32) >> 4,
            state: byte(32) & 0x0f,
            physical_state: byte(33) >> 4,
            lmc: byte(34) & 0x07,
            speed_active: byte(35) >> 4,
            speed_enabled: byte(35) & 0x0f,
            capabilities2: mad.u16(DATA + 60),
            speed_ext_active: byte(62) >> 4,
            speed_ext_supported: byte(62) & 0x0f,
            speed_ext2_active: byte(56) >> 5 & 0x03,
            speed_ext2_supported: byte(56) >> 3 & 0x03,
        }
    }

    /// Which of the speed fields mean something. A switch tells it once, on its port 0, for all of
    /// its ports.
    pub fn speed_fields(&self) -> SpeedFields {
        let has_mask2 = self.capabilities & CAPABILITY_MASK2 != 0;
        SpeedFields {
            extended: self.capabilities & EXTENDED_SPEEDS != 0,
            extended2: has_mask2 && self.capabilities2 & EXTENDED_SPEEDS2 != 0,
        }
    }

    /// The port in the terms of the field; `fields` are those of port 0 for a switch's port.
    pub fn status(&self, fields: SpeedFields) -> PortStatus {
        let mut supported: SpeedSet = all_of(&BASE_SPEEDS, self.speed_supported).collect();
        // The newest field that names a speed is the one that counts.
        let mut speed = exactly(&BASE_SPEEDS, self.speed_active);
        if fields.extended {
            supported =
                all_of(&EXT_SPEEDS, self.speed_ext_supported).fold(supported, SpeedSet::with);
            speed = exactly(&EXT_SPEEDS, self.speed_ext_active).or(speed);
        }
        if fields.extended2 {
            supported =
                all_of(&EXT2_SPEEDS, self.speed_ext2_supported).fold(supported, SpeedSet::with);
            speed = exactly(&EXT2_SPEEDS, self.speed_ext2_active).or(speed);
        }
        let status = PortStatus {
            lid: self.lid,
            lmc: self.lmc,
            sm_lid: self.sm_lid,
            state: self.state,
            physical_state: self.physical_state,
            width: None,
            speed: None,
            widths_supported: self.width_supported,
            speeds_supported: supported,
        };
        // Without a link the active fields hold what the last one had, or nonsense.
        if status.link_up() {
            PortStatus { width: Width::from_code(self.width_active), speed, ..status }
        } else {
            status
        }
    }
}

/// Whether Mellanox's attribute says that the port runs at FDR10.
pub fn decode_fdr10(mad: &Mad) -> bool {
    mad.u8(DATA + 15) & 1 != 0
}

#[cfg(test)]
mod tests {
    use super::super::smp::tests::answer;
    use super::*;
    use crate::fabric::status::{physical, state};

    #[test]
    fn port_info_field_by_field() {
        let info = PortInfo::decode(&answer(&[
            (16, &[0x12, 0x34]),
            (18, &[0, 9]),
            (20, &[0x00, 0x50, 0xc0, 0x48]),
            (28, &[5, 3, 0x12, 2]),
            (32, &[0x74, 0x52, 0x05, 0x41]),
            (56, &[0b0101_1001]),
            (60, &[0x0f, 0x02, 0x43]),
        ]));
        assert_eq!(
            info,
            PortInfo {
                lid: Lid(0x1234),
                sm_lid: Lid(9),
                capabilities: 0x0050_c048,
                local_port: 5,
                width_enabled: 3,
                width_supported: 0x12,
                width_active: 2,
                speed_supported: 7,
                state: state::ACTIVE,
                physical_state: physical::LINK_UP,
                lmc: 5,
                speed_active: 4,
                speed_enabled: 1,
                capabilities2: 0x0f02,
                speed_ext_active: 4,
                speed_ext_supported: 3,
                speed_ext2_active: 2,
                speed_ext2_supported: 3,
            }
        );
    }

    #[test]
    fn the_newest_speed_field_that_may_be_trusted_counts() {
        let port = |active: u8, ext: u8, ext2: u8| {
            PortInfo::decode(&answer(&[
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
    fn a_port_without_a_link_has_no_width_and_no_speed() {
        let mut mad = answer(&[(31, &[2]), (32, &[0x71, 0x20]), (35, &[0x10])]);
        let down = PortInfo::decode(&mad).status(SpeedFields::default());
        assert_eq!((down.state, down.physical_state), (state::DOWN, physical::POLLING));
        assert_eq!((down.width, down.speed, down.rate()), (None, None, None));
        mad.0[DATA + 33] = 0x50;
        let up = PortInfo::decode(&mad).status(SpeedFields::default());
        assert_eq!(up.rate(), Some(1_250_000_000));
    }

    #[test]
    fn the_masks_say_which_fields_mean_something() {
        let fields = |mask: &[u8], mask2: &[u8]| {
            PortInfo::decode(&answer(&[(20, mask), (60, mask2)])).speed_fields()
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
