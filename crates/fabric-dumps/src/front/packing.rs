//! Compressed files: gzip, Zstandard and xz.

use std::io::{self, Read};

use flate2::read::MultiGzDecoder;
use lzma_rust2::XzReader;

/// The memory for the window of a compressed file. xz -9 needs 64 MiB, zstd --long 128 MiB.
const MAX_WINDOW: u32 = 27;

/// How a file is compressed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Packing {
    Gzip,
    Zstd,
    Xz,
}

impl Packing {
    /// By the first bytes of the file, not by its name.
    fn of(bytes: &[u8]) -> Option<Packing> {
        let begins = |magic: &[u8]| bytes.starts_with(magic);
        match () {
            () if begins(b"\x1f\x8b") => Some(Packing::Gzip),
            () if begins(b"\x28\xb5\x2f\xfd") => Some(Packing::Zstd),
            () if begins(b"\xfd7zXZ\0") => Some(Packing::Xz),
            () => None,
        }
    }

    fn name(self) -> &'static str {
        match self {
            Packing::Gzip => "gzip",
            Packing::Zstd => "Zstandard",
            Packing::Xz => "xz",
        }
    }
}

/// The contents of a compressed file, or the file itself; an error if it is damaged or has more than `limit` bytes.
pub fn unpack(bytes: Vec<u8>, limit: u64) -> Result<Vec<u8>, String> {
    let Some(packing) = Packing::of(&bytes) else { return Ok(bytes) };
    let unpacked = match packing {
        Packing::Gzip => read(MultiGzDecoder::new(&bytes[..]), limit),
        Packing::Zstd => zstd::Decoder::with_buffer(&bytes[..]).and_then(|mut reader| {
            reader.window_log_max(MAX_WINDOW)?;
            read(reader, limit)
        }),
        Packing::Xz => {
            let memory_kib = 1 << (MAX_WINDOW - 10);
            read(XzReader::new_mem_limit(&bytes[..], true, memory_kib), limit)
        }
    };
    unpacked.map_err(|error| format!("cannot be unpacked ({}): {error}", packing.name()))
}

fn read(reader: impl Read, limit: u64) -> io::Result<Vec<u8>> {
    let mut unpacked = Vec::new();
    reader.take(limit + 1).read_to_end(&mut unpacked)?;
    if unpacked.len() as u64 > limit {
        return Err(io::Error::other("larger than 1 GiB unpacked"));
    }
    Ok(unpacked)
}
