//! The fields that several registers have.

use crate::layout::{Bits, bytes_at, dword_at};

/// Offset of a register's data in the MAD: the class's data begins with the number of the block.
pub const START: usize = 36;

pub(super) const fn dword(offset: usize, high: u8, low: u8) -> Bits {
    dword_at(START + offset, high, low)
}

pub(super) const fn bytes(offset: usize, count: u8) -> Bits {
    bytes_at(START + offset, count)
}

/// Lanes of the widest port.
pub const LANES: usize = 8;

pub(super) fn plausible_degrees(parts: u16, parts_per_degree: f64) -> Option<f64> {
    let degrees = f64::from(parts.cast_signed()) / parts_per_degree;
    // Temperatures that ibdiagnet accepts.
    (parts != 0 && (-40.0..=125.0).contains(&degrees)).then_some(degrees)
}

/// The text of a field: printable ASCII, without blanks and NULs at both ends, other characters replaced by `?`. What
/// a module says of itself is not trusted.
pub fn text(bytes: &[u8]) -> String {
    let is_blank = |byte: &u8| matches!(byte, 0 | b' ' | 0xff);
    let start = bytes.iter().position(|byte| !is_blank(byte)).unwrap_or(bytes.len());
    let bytes = &bytes[start..];
    let end = bytes.iter().position(|byte| *byte == 0).unwrap_or(bytes.len());
    let end = bytes[..end].iter().rposition(|byte| !is_blank(byte)).map_or(0, |last| last + 1);
    let printable = |byte: &u8| if (b' '..=b'~').contains(byte) { char::from(*byte) } else { '?' };
    bytes[..end].iter().map(printable).collect()
}
