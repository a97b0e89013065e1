//! Forward error correction (FEC): modes of links, and the attributes with mode and counters.
//!
//! No device that supports these two attributes was available, and no dissector decodes them: the
//! offsets are those of libibmad (rdma-core, libibmad/fields.c), with one correction noted below.

use crate::layout::{attribute, bytes};
use display_text::labeled_enum;

// 0 to 4: IBTA, FECModeActive of PortInfoExtended. 8 to 14: Mellanox, with the names of ibdiagnet; 5 to
// 7 and 15 are reserved.
labeled_enum! {
    /// FEC mode of a link; the labels are those of the config file, the discriminants the codes.
    #[derive(PartialOrd, Ord)]
    #[repr(u16)]
    pub enum Fec {
        None = 0, "none", "No FEC.";
        FireCode = 1, "fire-code", "Fire code, used by FDR.";
        ReedSolomon = 2, "rs", "Reed-Solomon.";
        LowLatency = 3, "ll-rs", "Reed-Solomon with low latency.";
        ReedSolomon2 = 4, "rs2", "The second Reed-Solomon code: RS(544,514).";
        StrongReedSolomon = 8, "strong-rs", "Strong Reed-Solomon.";
        MellanoxLowLatency = 9, "mlx-ll-rs", "Reed-Solomon with low latency, of Mellanox.";
        Adaptive = 10, "adaptive-rs", "Adaptive Reed-Solomon.";
        Cod = 11, "cod", "COD, with Reed-Solomon counters.";
        ZeroLatency = 12, "zero-latency", "Zero latency, not Reed-Solomon.";
        Rs544Plr = 13, "rs-544-plr", "RS(544,514), with physical layer retransmission (PLR).";
        Rs271Plr = 14, "rs-271-plr", "RS(271,257), with physical layer retransmission (PLR).";
    }
}

impl Fec {
    /// Whether it has Reed-Solomon counters, of the whole port. ibdiagnet uses the same codes.
    pub fn is_reed_solomon(self) -> bool {
        !matches!(self, Fec::None | Fec::FireCode | Fec::ZeroLatency)
    }
}

attribute! {
    /// PortInfoExtended: the FEC mode of a port. A port supports it if CapabilityMask2 announces it.
    pub struct PortInfoExtended = 0x0033 {
        capabilities: u32 = bytes(0, 4), "CapabilityMask: bit 0, the modes are valid.";
        active: u16 = bytes(4, 2), "FECModeActive, see [`Fec`].";
        fdr_supported: u16 = bytes(6, 2), "FDRFECModeSupported, a mask.";
        fdr_enabled: u16 = bytes(8, 2), "FDRFECModeEnabled.";
        edr_supported: u16 = bytes(10, 2), "EDRFECModeSupported.";
        edr_enabled: u16 = bytes(12, 2), "EDRFECModeEnabled.";
        // libibmad lists the next four at the same offsets without the halfword swap of its other 16-bit
        // fields, so it reads HDRFECModeSupported from EDRFECModeEnabled. Its list means consecutive fields.
        hdr_supported: u16 = bytes(14, 2), "HDRFECModeSupported.";
        hdr_enabled: u16 = bytes(16, 2), "HDRFECModeEnabled.";
        ndr_supported: u16 = bytes(18, 2), "NDRFECModeSupported.";
        ndr_enabled: u16 = bytes(20, 2), "NDRFECModeEnabled.";
    }
}

impl PortInfoExtended {
    /// CapabilityMask bit 0: the modes are valid.
    pub const FEC_MODES: u32 = 1;

    /// The active FEC mode; `None` if the port reports none, or an unknown code.
    pub fn fec(&self) -> Option<Fec> {
        let has_modes = self.capabilities & Self::FEC_MODES != 0;
        Fec::from_discriminant(self.active).filter(|_| has_modes)
    }
}

/// Lanes of the widest link.
pub const LANES: usize = 12;

attribute! {
    /// PortExtendedSpeedsCounters: FEC counters of links faster than QDR, by lane and by port.
    /// PortSelect is part of the request.
    ///
    /// With Reed-Solomon FEC, which bit 14 of the agent's CapabilityMask announces, `corrected` counts
    /// symbols instead of blocks, and the last three fields replace `error_detections` and `uncorrectable`.
    pub struct PortExtendedSpeedsCounters = 0x001f {
        counter_select: u64 = bytes(8, 8), "CounterSelect.";
        sync_header_errors: u16 = bytes(16, 2), "SyncHeaderErrorCounter.";
        unknown_blocks: u16 = bytes(18, 2), "UnknownBlockCounter.";
        error_detections: [u16; LANES] = bytes(20, 2), "ErrorDetectionCounterLane0 to 11.";
        corrected: [u32; LANES] = bytes(44, 4), "FECCorrectableBlockCtrLane0 to 11, or ...SymbolCtrLane.";
        uncorrectable: [u32; LANES] = bytes(92, 4), "FECUncorrectableBlockCtrLane0 to 11.";
        port_corrected_blocks: u32 = bytes(140, 4), "PortFECCorrectableBlockCtr.";
        port_uncorrectable_blocks: u32 = bytes(144, 4), "PortFECUncorrectableBlockCtr: each is lost data.";
        port_corrected_symbols: u32 = bytes(148, 4), "PortFECCorrectedSymbolCtr.";
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::mad::{LEN, Mad};
    use crate::testing::response;

    #[test]
    fn fec_codes_of_copper_cables_are_known() {
        // 186 of 190 ends of copper cables had 14; 3 is usual for short ones at EDR.
        for code in [2_u16, 3, 4, 8, 9, 10, 11, 12, 13, 14] {
            assert!(Fec::from_discriminant(code).is_some(), "{code}");
        }
        let reed_solomon =
            |code: u16| Fec::from_discriminant(code).is_some_and(Fec::is_reed_solomon);
        for code in 0..16 {
            let is = matches!(code, 2 | 3 | 4 | 8 | 9 | 10 | 11 | 13 | 14);
            assert_eq!(reed_solomon(code), is, "{code}");
        }
        for code in [5_u16, 6, 7, 15, 16] {
            assert_eq!(Fec::from_discriminant(code), None, "{code} is reserved");
        }
    }

    #[test]
    fn port_info_extended_field_by_field() {
        let mad = response(&[
            (0, &[0, 0, 0, 1, 0, 2, 0, 3]),
            (8, &[0, 4, 0, 5, 0, 6, 0, 7]),
            (16, &[0, 8, 0, 9, 0, 10]),
        ]);
        let info = PortInfoExtended {
            capabilities: PortInfoExtended::FEC_MODES,
            active: Fec::ReedSolomon as u16,
            fdr_supported: 3,
            fdr_enabled: 4,
            edr_supported: 5,
            edr_enabled: 6,
            hdr_supported: 7,
            hdr_enabled: 8,
            ndr_supported: 9,
            ndr_enabled: 10,
        };
        assert_eq!(PortInfoExtended::decode(&mad), info);
        assert_eq!(info.fec(), Some(Fec::ReedSolomon));
        assert_eq!(PortInfoExtended { capabilities: 0, ..info }.fec(), None, "no modes");
        assert_eq!(PortInfoExtended { active: 5, ..info }.fec(), None, "unknown code");
        let mut encoded = Mad([0; LEN]);
        info.encode(&mut encoded);
        assert!(encoded == mad);
    }

    #[test]
    fn extended_speeds_counters_by_lane_and_by_port() {
        let counters = PortExtendedSpeedsCounters::decode(&response(&[
            (1, &[36]),
            (16, &[0, 1, 0, 2, 0, 3]),
            (42, &[0, 4, 0, 0, 1, 0]),
            (88, &[0, 0, 2, 0, 0, 0, 3, 0]),
            (136, &[0, 0, 4, 0, 0, 0, 5, 0, 0, 0, 6, 0, 0, 0, 7, 0]),
        ]));
        assert_eq!((counters.sync_header_errors, counters.unknown_blocks), (1, 2));
        assert_eq!((counters.error_detections[0], counters.error_detections[11]), (3, 4));
        assert_eq!((counters.corrected[0], counters.corrected[11]), (0x100, 0x200));
        assert_eq!((counters.uncorrectable[0], counters.uncorrectable[11]), (0x300, 0x400));
        assert_eq!(counters.port_corrected_blocks, 0x500);
        assert_eq!(counters.port_uncorrectable_blocks, 0x600);
        assert_eq!(counters.port_corrected_symbols, 0x700);
    }
}
