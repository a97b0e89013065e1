//! The statistics of a port, and why its link is down.

use display_text::labeled_enum;

use super::fields::{LANES, bytes, dword};
use crate::layout::attribute;

/// A bit error ratio as registers have it: coefficient times ten to the minus magnitude.
pub fn bit_error_ratio(coefficient: u8, magnitude: u8) -> Option<f64> {
    match (coefficient, magnitude) {
        // A magnitude of 0 is space that older firmware leaves 0: no ratio is 1 or more.
        (_, 0) => None,
        // 15e-255: no errors.
        (0, _) | (_, 255) => Some(0.0),
        (coefficient, magnitude) => Some(f64::from(coefficient) / 10f64.powi(magnitude.into())),
    }
}

attribute! {
    /// PPCNT, group 0x16: bits, errors and bit error ratios of a port's physical layer since its counters were last
    /// cleared, which tools and a new link do.
    pub struct PhysicalStatistics = 0x5008 {
        since_clear: u64 = bytes(0x08, 8), "Milliseconds since the last clear.";
        received_bits: u64 = bytes(0x10, 8), "Received bits.";
        symbol_errors: u64 = bytes(0x18, 8), "Errors that are left after FEC and retransmission (PLR).";
        corrected_bits: u64 = bytes(0x20, 8), "Bits that FEC corrected.";
        lane_errors: [u64; LANES] = bytes(0x28, 8), "Raw errors by lane, before FEC.";
        raw_magnitude: u8 = dword(0x68, 15, 8), "Magnitude of the raw BER.";
        raw_coefficient: u8 = dword(0x68, 3, 0), "Coefficient of the raw BER.";
        effective_magnitude: u8 = dword(0x6c, 15, 8), "Magnitude of the effective BER: after FEC.";
        effective_coefficient: u8 = dword(0x6c, 3, 0), "Coefficient of the effective BER.";
        symbol_magnitude: u8 = dword(0x70, 15, 8), "Magnitude of the symbol BER: after FEC and PLR.";
        symbol_coefficient: u8 = dword(0x70, 3, 0), "Coefficient of the symbol BER.";
        effective_errors: u64 = bytes(0x84, 8), "Errors that are left after FEC; 0 in older firmware.";
    }
}

impl PhysicalStatistics {
    /// The bit error ratio before FEC, if it is reported.
    pub fn raw_ber(&self) -> Option<f64> {
        bit_error_ratio(self.raw_coefficient, self.raw_magnitude)
    }

    /// The bit error ratio after FEC.
    pub fn effective_ber(&self) -> Option<f64> {
        bit_error_ratio(self.effective_coefficient, self.effective_magnitude)
    }

    /// The bit error ratio after FEC and retransmission (PLR).
    pub fn symbol_ber(&self) -> Option<f64> {
        bit_error_ratio(self.symbol_coefficient, self.symbol_magnitude)
    }
}

/// Bins of a histogram of FEC.
pub const BINS: usize = 16;

attribute! {
    /// PPCNT, group 0x23: Reed-Solomon blocks of a port by their number of corrected symbols. Newer devices have 21
    /// bins, of which the last five are not read.
    pub struct FecHistogram = 0x5008 {
        blocks: [u64; BINS] = bytes(0x08, 8), "Blocks by bin.";
    }
}

attribute! {
    /// PDDR, page 1: why a port has no link, or a bad one, as its firmware sees it. The sentence that follows the
    /// code is not read: the code says the same.
    pub struct Troubleshooting = 0x5031 {
        code: u16 = dword(0x0c, 15, 0), "Status code, see [`trouble`].";
    }
}

attribute! {
    /// PDDR, page 6: why a port's link last went down.
    pub struct LinkDown = 0x5031 {
        blame: u8 = dword(0x08, 3, 0), "1: the local side, 2: the remote side.";
        intent: u8 = dword(0x08, 7, 4), "1: intentional, 2: not.";
        local_reason: u8 = dword(0x0c, 7, 0), "Reason of the local side.";
        recovery_reason: u8 = dword(0x0c, 23, 16), "Reason of the last recovery.";
        remote_reason: u8 = dword(0x10, 7, 0), "Reason of the remote side.";
    }
}

/// Why a link went down, in the codes of [`LinkDown`]; `None` for 0 and codes without a known meaning.
pub fn down_reason(code: u8) -> Option<&'static str> {
    Some(match code {
        2 => "high bit error ratio",
        3 => "block lock lost",
        4 => "alignment lost",
        5 => "FEC synchronization lost",
        10 => "retransmission (PLR) timed out",
        12 => "credit watchdog expired",
        15..=18 => "link closed by command",
        22 => "disabled by management",
        23 => "module unplugged",
        25 => "module too hot",
        28..=31 => "fast recovery failed",
        32..=37 => "closed by the remote side",
        38 => "device reset",
        39 => "transmission of retransmission (PLR) packets failed",
        43 => "too many recoveries",
        47 => "high symbol error ratio",
        50 => "local fault",
        53 => "recovery by command",
        60 => "module in low power",
        _ => return None,
    })
}

/// Why a port has no link, or a bad one, in the codes of [`Troubleshooting`]; `None` for 0, which is no problem, and
/// codes without a known meaning.
pub fn trouble(code: u16) -> Option<&'static str> {
    Some(match code {
        1 => "closed by command",
        2..=8 => "negotiation or training fails",
        14 => "remote fault",
        15 | 17 | 42 | 48 => "bad signal integrity",
        34 | 35 => "link runs degraded",
        57 => "no signal from the remote side",
        70 => "bit error ratio too high",
        1024 => "module unplugged",
        1026 => "module's I2C bus is stuck",
        1027 => "module's EEPROM cannot be read",
        1028 => "module is not in the list of allowed part numbers",
        1029 => "module not supported",
        1030 => "module too hot",
        1031 => "module shorted",
        1032 | 1035 => "module exceeds the power budget",
        1033 => "forced down",
        1034 => "module disabled",
        1054 => "module in low power",
        _ => return None,
    })
}

labeled_enum! {
    /// Who caused that a link went down; the discriminants are the codes of [`LinkDown::blame`].
    #[repr(u8)]
    pub enum Side {
        Local = 1, "local", "The side that reports it.";
        Remote = 2, "remote", "The other side.";
    }
}

impl LinkDown {
    /// The reason in a few words: that of the side that caused it, or else of the other one. `None` if neither is
    /// reported; codes without a known meaning are shown as they are.
    pub fn reason(&self) -> Option<String> {
        let mut codes = [self.local_reason, self.remote_reason];
        if self.side() == Some(Side::Remote) {
            codes.reverse();
        }
        // 1: unknown.
        let code = codes.into_iter().find(|code| *code > 1)?;
        Some(down_reason(code).map_or_else(|| format!("code {code}"), str::to_owned))
    }

    /// The side and the reason: `remote side, device reset`.
    pub fn describe(&self) -> Option<String> {
        let side = self.side().map(|side| format!("{} side", side.label()));
        match (side, self.reason()) {
            (Some(side), Some(reason)) => Some(format!("{side}, {reason}")),
            (side, reason) => side.or(reason),
        }
    }

    /// The side that caused it, if it is known.
    pub fn side(&self) -> Option<Side> {
        Side::from_discriminant(self.blame)
    }
}
