//! The compressed form of blobs: a byte for the format, a CRC-32, the length of the plain form, and that
//! form compressed by zstd.
//!
//! Level 1 compresses a million counters in ten milliseconds; higher levels save little.

use std::cell::RefCell;

use thiserror::Error;
use zstd::bulk::{Compressor, Decompressor};

use super::varint;

thread_local! {
    // Creating one takes longer than compressing a part.
    static COMPRESSOR: RefCell<Option<Compressor<'static>>> = const { RefCell::new(None) };
    static DECOMPRESSOR: RefCell<Option<Decompressor<'static>>> = const { RefCell::new(None) };
}

/// Why bytes cannot be unpacked.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum FrameError {
    /// They are too short or too long.
    #[error("a frame of counters has not the length that it should have")]
    Length,
    /// They have a format of another version.
    #[error("a frame of counters is written in form {0}, which is not known here")]
    Form(u8),
    /// The CRC does not match.
    #[error("a frame of counters is damaged: its CRC is another one")]
    Crc,
    /// zstd cannot decompress them.
    #[error("a frame of counters cannot be unpacked")]
    Packing,
    /// A number is out of its range.
    #[error("a frame of counters has a number that it cannot have")]
    Number,
}

/// The current format.
pub(super) const FORM: u8 = 1;

/// How many bytes precede the length: the format and the CRC.
const HEAD: usize = 5;

/// The longest plain form: the counters of 162,000 ports, each with its largest value, need less.
const MOST_PLAIN: u64 = 64 << 20;

/// The level of compression.
const LEVEL: i32 = 1;

/// Compresses a plain form.
pub fn pack(plain: &[u8]) -> std::io::Result<Vec<u8>> {
    let mut tail = Vec::new();
    varint::put(&mut tail, plain.len() as u64);
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
    let length = varint::take(&mut tail).filter(|length| *length <= MOST_PLAIN);
    let length = length.ok_or(FrameError::Length)? as usize;
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

/// A packed form with a valid CRC and another length than it has.
#[cfg(test)]
pub(super) fn promising(plain: &[u8], length: u64) -> Vec<u8> {
    let mut tail = Vec::new();
    varint::put(&mut tail, length);
    tail.extend(zstd::bulk::compress(plain, LEVEL).unwrap());
    let mut bytes = vec![FORM];
    bytes.extend(crc32fast::hash(&tail).to_le_bytes());
    bytes.extend(tail);
    bytes
}
