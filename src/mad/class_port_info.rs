//! ClassPortInfo: what a management agent can do, and where else to ask (IBTA 1.4, table 119).

use crate::fabric::Lid;
use crate::fabric::counter::Needs;

use super::{DATA, Mad};

/// Its attribute id, the same in every class but subnet management.
pub const ID: u16 = 0x0001;

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
    const QP1_DROPPED: u16 = 1 << 15;
    /// CapabilityMask2, bit 1: the error counters in 64 bits, too.
    const ADDITIONAL_EXTENDED: u32 = 1 << 1;

    /// Reads them from an answer.
    pub fn decode(mad: &Mad) -> Self {
        Capabilities { mask: mad.u16(DATA + 2), mask2: mad.u32(DATA + 4) >> 5 }
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
            Needs::Nothing => true,
            Needs::XmitWait => self.mask & Self::XMIT_WAIT != 0,
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
}

impl Redirect {
    /// Reads it from an answer; `None` where it does not name a LID (redirection by GID crosses
    /// subnets, and nothing in the field does that).
    pub fn decode(mad: &Mad) -> Option<Self> {
        let redirect = Redirect {
            sl: mad.u8(DATA + 25) >> 4,
            lid: Lid(mad.u16(DATA + 28)),
            qp: mad.u24(DATA + 33),
            qkey: mad.u32(DATA + 36),
        };
        (redirect.lid.is_unicast() && redirect.qp != 0).then_some(redirect)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::mad::LEN;

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
    fn a_redirect_names_where_to_ask() {
        let mut mad = Mad([0; LEN]);
        assert_eq!(Redirect::decode(&mad), None, "no LID");
        mad.0[64 + 25] = 0x30;
        mad.0[64 + 28..64 + 30].copy_from_slice(&[0x12, 0x34]);
        mad.0[64 + 33..64 + 36].copy_from_slice(&[0, 0x01, 0x42]);
        mad.0[64 + 36..64 + 40].copy_from_slice(&[0x80, 0x01, 0, 0]);
        assert_eq!(
            Redirect::decode(&mad),
            Some(Redirect { lid: Lid(0x1234), qp: 0x142, qkey: 0x8001_0000, sl: 3 })
        );
    }
}
