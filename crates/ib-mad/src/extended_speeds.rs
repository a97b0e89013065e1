//! Forward error correction: which one a link runs with, and what it had to correct.
//!
//! No device was at hand that answers these two, and no dissector knows them: the offsets are those
//! of libibmad (rdma-core, libibmad/fields.c), but for one slip of its own.

use crate::fec::Fec;

use super::layout::{attribute, bytes};

attribute! {
    /// PortInfoExtended: the error correction of a port. A port answers it if it says so in
    /// CapabilityMask2.
    pub struct PortInfoExtended = 0x0033 {
        /// CapabilityMask: bit 0, the modes mean something.
        capabilities: u32 = bytes(0, 4),
        /// FECModeActive, see [`mode`].
        active: u16 = bytes(4, 2),
        /// FDRFECModeSupported, a mask.
        fdr_supported: u16 = bytes(6, 2),
        /// FDRFECModeEnabled.
        fdr_enabled: u16 = bytes(8, 2),
        /// EDRFECModeSupported.
        edr_supported: u16 = bytes(10, 2),
        /// EDRFECModeEnabled.
        edr_enabled: u16 = bytes(12, 2),
        // libibmad lists these four at the same offsets but leaves out the swap of halfwords that
        // its other 16-bit fields have, so that it reads HDRFECModeSupported from where
        // EDRFECModeEnabled is. A row without gaps is what its list means.
        /// HDRFECModeSupported.
        hdr_supported: u16 = bytes(14, 2),
        /// HDRFECModeEnabled.
        hdr_enabled: u16 = bytes(16, 2),
        /// NDRFECModeSupported.
        ndr_supported: u16 = bytes(18, 2),
        /// NDRFECModeEnabled.
        ndr_enabled: u16 = bytes(20, 2),
    }
}

impl PortInfoExtended {
    /// CapabilityMask bit 0: the modes mean something.
    pub const FEC_MODES: u32 = 1;

    /// The correction that the port runs with; `None` if it does not tell one that is known.
    pub fn fec(&self) -> Option<Fec> {
        if self.capabilities & Self::FEC_MODES == 0 {
            return None;
        }
        Fec::from_code(self.active)
    }
}

/// FECModeActive.
pub mod mode {
    /// No correction.
    pub const NONE: u16 = 0;
    /// Fire code, as FDR has it.
    pub const FIRE_CODE: u16 = 1;
    /// Reed-Solomon.
    pub const REED_SOLOMON: u16 = 2;
    /// Reed-Solomon with low latency.
    pub const LOW_LATENCY: u16 = 3;
    /// The second Reed-Solomon code.
    pub const REED_SOLOMON2: u16 = 4;
}

/// The lanes of the widest link.
pub const LANES: usize = 12;

attribute! {
    /// PortExtendedSpeedsCounters: what the lanes of a link beyond QDR had to correct. PortSelect
    /// is the request's, and stays as it is.
    ///
    /// A port that runs with Reed-Solomon correction, whose agent says so in bit 14 of its
    /// CapabilityMask, counts symbols instead of blocks in `corrected` and has the last three
    /// instead of `error_detections` and `uncorrectable`.
    pub struct PortExtendedSpeedsCounters = 0x001f {
        /// CounterSelect.
        counter_select: u64 = bytes(8, 8),
        /// SyncHeaderErrorCounter.
        sync_header_errors: u16 = bytes(16, 2),
        /// UnknownBlockCounter.
        unknown_blocks: u16 = bytes(18, 2),
        /// ErrorDetectionCounterLane0 to 11.
        error_detections: [u16; LANES] = bytes(20, 2),
        /// FECCorrectableBlockCtrLane0 to 11; with Reed-Solomon FECCorrectableSymbolCtrLane.
        corrected: [u32; LANES] = bytes(44, 4),
        /// FECUncorrectableBlockCtrLane0 to 11.
        uncorrectable: [u32; LANES] = bytes(92, 4),
        /// PortFECCorrectableBlockCtr.
        port_corrected_blocks: u32 = bytes(140, 4),
        /// PortFECUncorrectableBlockCtr: each is data lost.
        port_uncorrectable_blocks: u32 = bytes(144, 4),
        /// PortFECCorrectedSymbolCtr.
        port_corrected_symbols: u32 = bytes(148, 4),
    }
}

#[cfg(test)]
mod tests {
    use super::super::smp::tests::answer;
    use super::*;
    use crate::{LEN, Mad};

    #[test]
    fn port_info_extended_field_by_field() {
        let told = answer(&[
            (0, &[0, 0, 0, 1, 0, 2, 0, 3]),
            (8, &[0, 4, 0, 5, 0, 6, 0, 7]),
            (16, &[0, 8, 0, 9, 0, 10]),
        ]);
        let info = PortInfoExtended {
            capabilities: PortInfoExtended::FEC_MODES,
            active: mode::REED_SOLOMON,
            fdr_supported: 3,
            fdr_enabled: 4,
            edr_supported: 5,
            edr_enabled: 6,
            hdr_supported: 7,
            hdr_enabled: 8,
            ndr_supported: 9,
            ndr_enabled: 10,
        };
        assert_eq!(PortInfoExtended::decode(&told), info);
        assert_eq!(info.fec(), Some(Fec::ReedSolomon));
        assert_eq!(PortInfoExtended { capabilities: 0, ..info }.fec(), None, "no modes");
        assert_eq!(PortInfoExtended { active: 5, ..info }.fec(), None, "not one of ours");
        let mut mad = Mad([0; LEN]);
        info.encode(&mut mad);
        assert!(mad == told);
    }

    #[test]
    fn extended_speeds_counters_by_lane_and_by_port() {
        let told = PortExtendedSpeedsCounters::decode(&answer(&[
            (1, &[36]),
            (16, &[0, 1, 0, 2, 0, 3]),
            (42, &[0, 4, 0, 0, 1, 0]),
            (88, &[0, 0, 2, 0, 0, 0, 3, 0]),
            (136, &[0, 0, 4, 0, 0, 0, 5, 0, 0, 0, 6, 0, 0, 0, 7, 0]),
        ]));
        assert_eq!((told.sync_header_errors, told.unknown_blocks), (1, 2));
        assert_eq!((told.error_detections[0], told.error_detections[11]), (3, 4));
        assert_eq!((told.corrected[0], told.corrected[11]), (0x100, 0x200));
        assert_eq!((told.uncorrectable[0], told.uncorrectable[11]), (0x300, 0x400));
        assert_eq!(told.port_corrected_blocks, 0x500);
        assert_eq!(told.port_uncorrectable_blocks, 0x600);
        assert_eq!(told.port_corrected_symbols, 0x700);
    }
}
