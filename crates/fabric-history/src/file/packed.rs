//! The compressed form of blobs: a byte for the format, a CRC-32, the length of the plain form, and that
//! form compressed by zstd. The plain form consists of variable-length integers (LEB128).
//!
//! Level 1 compresses a million counters in ten milliseconds; higher levels save little.

use std::cell::RefCell;

use thiserror::Error;
use zstd::bulk::{Compressor, Decompressor};

thread_local! {
    // Creating one takes longer than compressing a part.
    static COMPRESSOR: RefCell<Option<Compressor<'static>>> = const { RefCell::new(None) };
    static DECOMPRESSOR: RefCell<Option<Decompressor<'static>>> = const { RefCell::new(None) };
}

/// Why bytes cannot be unpacked.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum FrameError {
    /// They are too short or too long.
    #[error("counter frame has an unexpected length")]
    Length,
    /// They have a format of another version.
    #[error("counter frame has an unknown format: {0}")]
    Form(u8),
    /// The CRC does not match.
    #[error("counter frame is damaged: CRC mismatch")]
    Crc,
    /// zstd cannot decompress them.
    #[error("counter frame cannot be decompressed")]
    Packing,
    /// A number is out of its range.
    #[error("counter frame contains an invalid number")]
    Number,
}

/// The current format.
pub(super) const FORM: u8 = 1;

/// How many bytes precede the length: the format and the CRC.
const HEAD: usize = 5;

/// The longest plain form: the counters of 162,000 ports, each with its largest value, need less.
const MOST_PLAIN: u64 = 64 << 20;

const LEVEL: i32 = 1;

/// Compresses a plain form.
pub fn pack(plain: &[u8]) -> std::io::Result<Vec<u8>> {
    let mut tail = Vec::new();
    put_varint(&mut tail, plain.len() as u64);
    tail.extend(COMPRESSOR.with_borrow_mut(|known| {
        let compressor = match known {
            Some(compressor) => compressor,
            none => none.insert(Compressor::new(LEVEL)?),
        };
        compressor.compress(plain)
    })?);
    let mut bytes = Vec::with_capacity(HEAD + tail.len());
    bytes.push(FORM);
    bytes.extend(crc32fast::hash(&tail).to_le_bytes());
    bytes.extend(tail);
    Ok(bytes)
}

/// The compressed part, if the CRC matches.
fn whole(bytes: &[u8]) -> Result<&[u8], FrameError> {
    let (&[form, ref crc @ ..], tail) =
        bytes.split_first_chunk::<HEAD>().ok_or(FrameError::Length)?;
    if form != FORM {
        return Err(FrameError::Form(form));
    }
    if crc32fast::hash(tail).to_le_bytes() != *crc {
        return Err(FrameError::Crc);
    }
    Ok(tail)
}

/// Whether the CRC matches: an eighth of the time that unpacking takes.
pub(super) fn is_whole(bytes: &[u8]) -> bool {
    whole(bytes).is_ok()
}

/// Decompresses what [`pack`] returned.
pub fn unpack(bytes: &[u8]) -> Result<Vec<u8>, FrameError> {
    let mut tail = whole(bytes)?;
    let length = take_varint(&mut tail)?;
    if length > MOST_PLAIN {
        return Err(FrameError::Length);
    }
    let length = length as usize;
    let plain = DECOMPRESSOR.with_borrow_mut(|known| {
        let decompressor = match known {
            Some(decompressor) => decompressor,
            none => none.insert(Decompressor::new()?),
        };
        decompressor.decompress(tail, length)
    });
    let plain = plain.map_err(|_: std::io::Error| FrameError::Packing)?;
    if plain.len() == length { Ok(plain) } else { Err(FrameError::Length) }
}

/// Appends a number.
pub(super) fn put_varint(bytes: &mut Vec<u8>, mut number: u64) {
    while number >= 0x80 {
        bytes.push(number as u8 | 0x80);
        number >>= 7;
    }
    bytes.push(number as u8);
}

/// Takes a number from the front.
pub(super) fn take_varint(bytes: &mut &[u8]) -> Result<u64, FrameError> {
    let mut number = 0u64;
    for shift in (0..64).step_by(7) {
        let (&byte, rest) = bytes.split_first().ok_or(FrameError::Length)?;
        *bytes = rest;
        let bits = u64::from(byte & 0x7f);
        // The tenth byte has one bit.
        if shift == 63 && bits > 1 {
            break;
        }
        number |= bits << shift;
        if byte < 0x80 {
            return Ok(number);
        }
    }
    Err(FrameError::Length)
}

/// Takes a number that has 32 bits.
pub(super) fn take_u32(bytes: &mut &[u8]) -> Result<u32, FrameError> {
    u32::try_from(take_varint(bytes)?).map_err(|_| FrameError::Number)
}

/// Skips a number of values, in an eighth of the time of decoding them.
pub(super) fn skip_varints(bytes: &mut &[u8], mut count: usize) -> Result<(), FrameError> {
    // Each number ends with one byte below 0x80.
    while let Some((chunk, rest)) = bytes.split_first_chunk::<32>() {
        let ends = chunk.iter().filter(|byte| **byte < 0x80).count();
        if ends >= count {
            break;
        }
        (count, *bytes) = (count - ends, rest);
    }
    while count > 0 {
        let (byte, rest) = bytes.split_first().ok_or(FrameError::Length)?;
        *bytes = rest;
        count -= usize::from(*byte < 0x80);
    }
    Ok(())
}

/// Appends a signed number (zigzag): near zero it takes few bytes, with either sign.
pub(super) fn put_signed(bytes: &mut Vec<u8>, number: i64) {
    put_varint(bytes, (number << 1 ^ number >> 63).cast_unsigned());
}

/// Takes a signed number.
pub(super) fn take_signed(bytes: &mut &[u8]) -> Result<i64, FrameError> {
    let number = take_varint(bytes)?;
    Ok((number >> 1).cast_signed() ^ -(number & 1).cast_signed())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn skip_leaves_the_next_number() {
        let numbers: Vec<u64> = (0..200).map(|number| number * number * number * 31).collect();
        let mut bytes = Vec::new();
        for number in &numbers {
            put_varint(&mut bytes, *number);
        }
        for (count, number) in numbers.iter().enumerate() {
            let mut rest = &bytes[..];
            assert_eq!(skip_varints(&mut rest, count), Ok(()));
            assert_eq!(take_varint(&mut rest), Ok(*number));
        }
        assert_eq!(skip_varints(&mut &bytes[..], 201), Err(FrameError::Length));
    }

    #[test]
    fn signed_numbers_round_trip() {
        for number in [0, 1, -1, 63, -64, i64::MAX, i64::MIN] {
            let mut bytes = Vec::new();
            put_signed(&mut bytes, number);
            assert_eq!(take_signed(&mut &*bytes), Ok(number));
            assert_eq!(bytes.len() == 1, (-64..64).contains(&number), "{number}");
        }
    }

    #[test]
    fn numbers_round_trip_and_truncated_ones_fail() {
        for number in [0, 1, 127, 128, 16_383, 16_384, u64::from(u32::MAX), u64::MAX] {
            let mut bytes = Vec::new();
            put_varint(&mut bytes, number);
            let mut rest = &bytes[..];
            assert_eq!((take_varint(&mut rest), rest.len()), (Ok(number), 0), "{number}");
            let cut = &mut &bytes[..bytes.len() - 1];
            assert_eq!(take_varint(cut), Err(FrameError::Length), "{number} cut short");
        }
        let too_long = Err(FrameError::Length);
        assert_eq!(take_varint(&mut &[0xff; 10][..]), too_long, "more than 64 bits");
        assert_eq!(take_varint(&mut &[0x80; 11][..]), too_long, "no end");
    }
}
