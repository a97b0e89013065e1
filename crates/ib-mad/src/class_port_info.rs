//! ClassPortInfo: capabilities of a management agent, and its redirect (IBTA 1.4, table 119).

use crate::counter::Needs;
use crate::ids::Lid;
use crate::layout::{attribute, bits, byte, bytes, high};
use crate::mad::Mad;
use crate::p_key::PKey;

attribute! {
    /// ClassPortInfo with the capability bits of the performance management agent. Every class but subnet
    /// management has it.
    pub struct ClassPortInfo = 0x0001 {
        base_version: u8 = byte(0), "BaseVersion.";
        class_version: u8 = byte(1), "ClassVersion.";
        mask: u16 = bytes(2, 2), "CapabilityMask.";
        mask2: u32 = bits(4 * 8, 27), "CapabilityMask2.";
        response_time: u8 = bits(7 * 8 + 3, 5), "RespTimeValue: a response takes up to 4.096 us * 2^value.";
        redirect_gid: [u64; 2] = bytes(8, 8), "RedirectGID.";
        redirect_traffic_class: u8 = byte(24), "RedirectTC.";
        redirect_sl: u8 = high(25), "RedirectSL.";
        redirect_flow_label: u32 = bits(25 * 8 + 4, 20), "RedirectFL.";
        redirect_lid: Lid = bytes(28, 2), "RedirectLID.";
        redirect_pkey: u16 = bytes(30, 2), "RedirectP_Key.";
        redirect_qp: u32 = bytes(33, 3), "RedirectQP.";
        redirect_qkey: u32 = bytes(36, 4), "RedirectQ_Key.";
        trap_gid: [u64; 2] = bytes(40, 8), "TrapGID.";
        trap_traffic_class: u8 = byte(56), "TrapTC.";
        trap_sl: u8 = high(57), "TrapSL.";
        trap_flow_label: u32 = bits(57 * 8 + 4, 20), "TrapFL.";
        trap_lid: Lid = bytes(60, 2), "TrapLID.";
        trap_pkey: u16 = bytes(62, 2), "TrapP_Key.";
        trap_hop_limit: u8 = byte(64), "TrapHL.";
        trap_qp: u32 = bytes(65, 3), "TrapQP.";
        trap_qkey: u32 = bytes(68, 4), "TrapQ_Key.";
    }
}

impl ClassPortInfo {
    /// ClassPortInfo of an agent with these capabilities and this RespTimeValue.
    pub fn new(capabilities: PmaCapabilities, response_time: u8) -> Self {
        let PmaCapabilities { mask, mask2 } = capabilities;
        let versions = ClassPortInfo { base_version: 1, class_version: 1, ..Self::default() };
        ClassPortInfo { mask, mask2, response_time, ..versions }
    }
}

/// Capability masks of a performance management agent.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default)]
pub struct PmaCapabilities {
    /// CapabilityMask.
    pub mask: u16,
    /// CapabilityMask2, 27 bits.
    pub mask2: u32,
}

impl PmaCapabilities {
    /// Bit 9: PortCountersExtended.
    const EXTENDED_WIDTH: u16 = 1 << 9;
    /// Bit 10: PortCountersExtended without the unicast and multicast counters.
    const EXTENDED_WIDTH_NO_IETF: u16 = 1 << 10;
    const XMIT_WAIT: u16 = 1 << 12;
    /// Bit 14: PortExtendedSpeedsRSFECCounters in libibmad.
    const RS_FEC: u16 = 1 << 14;
    const QP1_DROPPED: u16 = 1 << 15;
    /// CapabilityMask2, bit 1: error counters in 64 bits, too.
    const ADDITIONAL_EXTENDED: u32 = 1 << 1;

    /// Decodes the masks of a ClassPortInfo response.
    pub fn decode(mad: &Mad) -> Self {
        let ClassPortInfo { mask, mask2, .. } = ClassPortInfo::decode(mad);
        PmaCapabilities { mask, mask2 }
    }

    /// Whether the agent supports PortCountersExtended.
    pub fn has_extended(&self) -> bool {
        self.mask & (Self::EXTENDED_WIDTH | Self::EXTENDED_WIDTH_NO_IETF) != 0
    }

    /// Whether PortCountersExtended holds the error counters, too: one MAD returns all counters.
    pub fn has_extended_errors(&self) -> bool {
        self.has_extended() && self.mask2 & Self::ADDITIONAL_EXTENDED != 0
    }

    /// Whether the device keeps a counter with this requirement. The OptionMask is that of PortSamplesControl; 0
    /// announces nothing, and all may be there.
    pub fn meets(&self, needs: Needs, option_mask: u64) -> bool {
        match needs {
            Needs::Nothing => true,
            Needs::Option(bit) => option_mask == 0 || option_mask >> bit & 1 == 1,
            Needs::XmitWait => self.mask & Self::XMIT_WAIT != 0,
            Needs::RsFec => self.mask & Self::RS_FEC != 0,
            Needs::Qp1Dropped => self.mask & Self::QP1_DROPPED != 0,
            Needs::UnicastMulticast => self.mask & Self::EXTENDED_WIDTH != 0,
            Needs::Errors64 => self.has_extended_errors(),
            Needs::Errors64AndQp1Dropped => {
                self.has_extended_errors() && self.mask & Self::QP1_DROPPED != 0
            }
        }
    }
}

/// The destination that a redirecting agent names, in the fields of ClassPortInfo.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(missing_docs, reason = "each is named after its field")]
pub struct Redirect {
    pub lid: Lid,
    pub qp: u32,
    pub qkey: u32,
    pub sl: u8,
    /// RedirectP_Key; `None` where the agent names no partition.
    pub p_key: Option<PKey>,
}

impl Redirect {
    /// Decodes a redirect; `None` without a unicast LID and a QP. Redirection by GID alone needs a path query
    /// to the subnet administrator (IBTA 1.4, 13.4.8) and is not supported; no device was seen to do it.
    pub fn decode(mad: &Mad) -> Option<Self> {
        let info = ClassPortInfo::decode(mad);
        let redirect = Redirect {
            lid: info.redirect_lid,
            qp: info.redirect_qp,
            qkey: info.redirect_qkey,
            sl: info.redirect_sl,
            p_key: PKey::new(info.redirect_pkey),
        };
        (redirect.lid.is_unicast() && redirect.qp != 0).then_some(redirect)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::mad::LEN;

    #[test]
    fn capabilities_by_device_generation() {
        // The masks of ibsim's HCAs and switches, of ConnectX-3, and of ConnectX-5 and newer.
        for (mask, mask2, extended, errors64, wait, multicast) in [
            (0x1200, 0, true, false, true, true),
            (0x1300, 0, true, false, true, true),
            (0x0400, 0, true, false, false, false),
            (0x0000, 0, false, false, false, false),
            (0x5300, 0x2, true, true, true, true),
        ] {
            let mut mad = Mad([0; LEN]);
            mad.0[66..68].copy_from_slice(&u16::to_be_bytes(mask));
            // The lower 5 bits are the response time, not a capability.
            mad.0[68..72]
                .copy_from_slice(&(u32::from_be_bytes([0, 0, 0, 0x12]) | mask2 << 5).to_be_bytes());
            let decoded = PmaCapabilities::decode(&mad);
            assert_eq!(decoded, PmaCapabilities { mask, mask2 });
            assert_eq!(decoded.has_extended(), extended, "{mask:#x}");
            assert_eq!(decoded.has_extended_errors(), errors64, "{mask:#x}");
            assert_eq!(decoded.meets(Needs::XmitWait, 0), wait, "{mask:#x}");
            assert_eq!(decoded.meets(Needs::UnicastMulticast, 0), multicast, "{mask:#x}");
        }
    }

    #[test]
    fn class_port_info_encodes_capabilities_and_redirect() {
        let mut mad = Mad([0; LEN]);
        let capabilities = PmaCapabilities { mask: 0x5300, mask2: 2 };
        ClassPortInfo::new(capabilities, 0x12).encode(&mut mad);
        assert_eq!(mad.data()[..8], [1, 1, 0x53, 0, 0, 0, 0, 0x52]);
        assert_eq!(mad.data()[8..], [0; 184]);
        assert_eq!(PmaCapabilities::decode(&mad), capabilities);
        assert_eq!(Redirect::decode(&mad), None);
        let to = Redirect {
            lid: Lid(0x1234),
            qp: 0x142,
            qkey: 0x8001_0000,
            sl: 3,
            p_key: PKey::new(0x8001),
        };
        ClassPortInfo {
            redirect_sl: 3,
            redirect_lid: Lid(0x1234),
            redirect_pkey: 0x8001,
            redirect_qp: 0x142,
            redirect_qkey: 0x8001_0000,
            ..ClassPortInfo::new(capabilities, 31)
        }
        .encode(&mut mad);
        assert_eq!(
            mad.data()[24..40],
            [0, 0x30, 0, 0, 0x12, 0x34, 0x80, 1, 0, 0, 1, 0x42, 0x80, 1, 0, 0]
        );
        assert_eq!(Redirect::decode(&mad), Some(to));
        assert_eq!(PmaCapabilities::decode(&mad), capabilities);
    }

    #[test]
    fn redirect_decodes_lid_and_qp() {
        let mut mad = Mad([0; LEN]);
        assert_eq!(Redirect::decode(&mad), None, "no LID");
        mad.0[64 + 25] = 0x30;
        mad.0[64 + 28..64 + 30].copy_from_slice(&[0x12, 0x34]);
        mad.0[64 + 33..64 + 36].copy_from_slice(&[0, 0x01, 0x42]);
        mad.0[64 + 36..64 + 40].copy_from_slice(&[0x80, 0x01, 0, 0]);
        assert_eq!(
            Redirect::decode(&mad),
            Some(Redirect { lid: Lid(0x1234), qp: 0x142, qkey: 0x8001_0000, sl: 3, p_key: None })
        );
    }
}
