//! ClassPortInfo: what a management agent can do, and where else to ask (IBTA 1.4, table 119).

use crate::Lid;
use crate::counter::Needs;

use super::Mad;
use super::layout::{attribute, bits, byte, bytes, high};
use super::p_key::PKey;

/// Its attribute id, the same in every class but subnet management.
pub const ID: u16 = ClassPortInfo::ID;

attribute! {
    /// ClassPortInfo, with what a performance management agent may tell in it.
    pub struct ClassPortInfo = 0x0001 {
        /// BaseVersion.
        base_version: u8 = byte(0),
        /// ClassVersion.
        class_version: u8 = byte(1),
        /// CapabilityMask.
        mask: u16 = bytes(2, 2),
        /// CapabilityMask2.
        mask2: u32 = bits(4 * 8, 27),
        /// RespTimeValue: an answer takes up to 4.096 us times two to this power.
        response_time: u8 = bits(7 * 8 + 3, 5),
        /// RedirectGID.
        redirect_gid: [u64; 2] = bytes(8, 8),
        /// RedirectTC.
        redirect_traffic_class: u8 = byte(24),
        /// RedirectSL.
        redirect_sl: u8 = high(25),
        /// RedirectFL.
        redirect_flow_label: u32 = bits(25 * 8 + 4, 20),
        /// RedirectLID.
        redirect_lid: Lid = bytes(28, 2),
        /// RedirectP_Key.
        redirect_pkey: u16 = bytes(30, 2),
        /// RedirectQP.
        redirect_qp: u32 = bytes(33, 3),
        /// RedirectQ_Key.
        redirect_qkey: u32 = bytes(36, 4),
        /// TrapGID.
        trap_gid: [u64; 2] = bytes(40, 8),
        /// TrapTC.
        trap_traffic_class: u8 = byte(56),
        /// TrapSL.
        trap_sl: u8 = high(57),
        /// TrapFL.
        trap_flow_label: u32 = bits(57 * 8 + 4, 20),
        /// TrapLID.
        trap_lid: Lid = bytes(60, 2),
        /// TrapP_Key.
        trap_pkey: u16 = bytes(62, 2),
        /// TrapHL.
        trap_hop_limit: u8 = byte(64),
        /// TrapQP.
        trap_qp: u32 = bytes(65, 3),
        /// TrapQ_Key.
        trap_qkey: u32 = bytes(68, 4),
    }
}

impl ClassPortInfo {
    /// What an agent with these capabilities tells, and how long its answers may take.
    pub fn of(capabilities: Capabilities, response_time: u8) -> Self {
        let Capabilities { mask, mask2 } = capabilities;
        let versions = ClassPortInfo { base_version: 1, class_version: 1, ..Self::default() };
        ClassPortInfo { mask, mask2, response_time, ..versions }
    }

    /// The same, told by an agent that wants to be asked elsewhere.
    #[must_use]
    pub fn with_redirect(self, to: &Redirect) -> Self {
        ClassPortInfo {
            redirect_sl: to.sl,
            redirect_lid: to.lid,
            redirect_pkey: to.p_key.map_or(0, PKey::bits),
            redirect_qp: to.qp,
            redirect_qkey: to.qkey,
            ..self
        }
    }
}

/// What the performance management agent of a device offers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default)]
pub struct Capabilities {
    /// CapabilityMask.
    pub mask: u16,
    /// CapabilityMask2, 27 bits.
    pub mask2: u32,
}

impl Capabilities {
    /// Bit 9: PortCountersExtended.
    const EXTENDED_WIDTH: u16 = 1 << 9;
    /// Bit 10: PortCountersExtended without the unicast and multicast counters.
    const EXTENDED_WIDTH_NO_IETF: u16 = 1 << 10;
    const XMIT_WAIT: u16 = 1 << 12;
    /// Bit 14, PortExtendedSpeedsRSFECCounters in libibmad's words.
    const RS_FEC: u16 = 1 << 14;
    const QP1_DROPPED: u16 = 1 << 15;
    /// CapabilityMask2, bit 1: the error counters in 64 bits, too.
    const ADDITIONAL_EXTENDED: u32 = 1 << 1;

    /// Reads them from an answer.
    pub fn decode(mad: &Mad) -> Self {
        let ClassPortInfo { mask, mask2, .. } = ClassPortInfo::decode(mad);
        Capabilities { mask, mask2 }
    }

    /// Whether it answers PortCountersExtended.
    pub fn has_extended(&self) -> bool {
        self.mask & (Self::EXTENDED_WIDTH | Self::EXTENDED_WIDTH_NO_IETF) != 0
    }

    /// Whether PortCountersExtended holds the errors, too: one MAD tells everything.
    pub fn has_extended_errors(&self) -> bool {
        self.has_extended() && self.mask2 & Self::ADDITIONAL_EXTENDED != 0
    }

    /// Whether a counter with this need is one that the device keeps.
    pub fn meets(&self, needs: Needs) -> bool {
        match needs {
            // Options are announced in PortSamplesControl.
            Needs::Nothing | Needs::Option(_) => true,
            Needs::XmitWait => self.mask & Self::XMIT_WAIT != 0,
            Needs::RsFec => self.mask & Self::RS_FEC != 0,
            Needs::Qp1Dropped => self.mask & Self::QP1_DROPPED != 0,
            Needs::UnicastMulticast => self.mask & Self::EXTENDED_WIDTH != 0,
            Needs::Errors64 => self.has_extended_errors(),
            Needs::Errors64AndQp1Dropped => {
                self.meets(Needs::Errors64) && self.meets(Needs::Qp1Dropped)
            }
        }
    }
}

/// Where a redirecting agent wants to be asked instead.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Redirect {
    /// The LID to ask.
    pub lid: Lid,
    /// The queue pair there.
    pub qp: u32,
    /// Its key.
    pub qkey: u32,
    /// The service level of the way.
    pub sl: u8,
    /// The partition to ask in; `None` where the agent names none.
    pub p_key: Option<PKey>,
}

impl Redirect {
    /// Reads it from an answer; `None` where it does not name a LID. Redirection by GID alone crosses
    /// subnets: the LID to begin with is then the subnet administrator's to tell (IBTA 1.4, 13.4.8),
    /// whom nobody here asks, and nothing in the field does that.
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
    use crate::LEN;

    #[test]
    fn capabilities_by_generation_of_device() {
        // What ibsim's HCAs and switches, a ConnectX-3 and a ConnectX-5 and newer say.
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
            let told = Capabilities::decode(&mad);
            assert_eq!(told, Capabilities { mask, mask2 });
            assert_eq!(told.has_extended(), extended, "{mask:#x}");
            assert_eq!(told.has_extended_errors(), errors64, "{mask:#x}");
            assert_eq!(told.meets(Needs::XmitWait), wait, "{mask:#x}");
            assert_eq!(told.meets(Needs::UnicastMulticast), multicast, "{mask:#x}");
        }
    }

    #[test]
    fn capabilities_stand_beside_the_response_time_and_the_redirect() {
        let mut mad = Mad([0; LEN]);
        let capabilities = Capabilities { mask: 0x5300, mask2: 2 };
        ClassPortInfo::of(capabilities, 0x12).encode(&mut mad);
        assert_eq!(mad.data()[..8], [1, 1, 0x53, 0, 0, 0, 0, 0x52]);
        assert_eq!(mad.data()[8..], [0; 184]);
        assert_eq!(Capabilities::decode(&mad), capabilities);
        assert_eq!(Redirect::decode(&mad), None);
        let to = Redirect {
            lid: Lid(0x1234),
            qp: 0x142,
            qkey: 0x8001_0000,
            sl: 3,
            p_key: PKey::new(0x8001),
        };
        ClassPortInfo::of(capabilities, 31).with_redirect(&to).encode(&mut mad);
        assert_eq!(
            mad.data()[24..40],
            [0, 0x30, 0, 0, 0x12, 0x34, 0x80, 1, 0, 0, 1, 0x42, 0x80, 1, 0, 0]
        );
        assert_eq!(Redirect::decode(&mad), Some(to));
        assert_eq!(Capabilities::decode(&mad), capabilities);
    }

    #[test]
    fn a_redirect_names_where_to_ask() {
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
