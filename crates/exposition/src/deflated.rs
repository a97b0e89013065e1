//! Compressed text in blocks that can be put together.
//!
//! A block is a part of a deflate stream: it ends on a byte boundary (a sync flush), refers to
//! nothing before it and is not the last. Blocks in any order, with an empty last block and a CRC
//! combined from theirs, are one gzip stream. So the samples of a family are compressed once for both
//! formats, and what is rendered at each scrape is put before what is ready.

use bytes::Bytes;
use flate2::{Compress, Compression, FlushCompress};

/// gzip's magic, deflate, no flags, no time, fastest, unknown system.
pub(crate) const GZIP_HEADER: [u8; 10] = [0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 4, 255];

/// The empty block that ends a deflate stream: final, fixed codes, end of block.
pub(crate) const LAST_BLOCK: [u8; 2] = [0x03, 0x00];

/// How many bytes of text are collected before they are compressed.
const CHUNK: usize = 64 * 1024;

/// A part of a deflate stream.
#[derive(Clone, Debug)]
pub struct Block {
    /// The deflated bytes.
    pub bytes: Bytes,
    pub(crate) crc: crc32fast::Hasher,
    pub(crate) plain_len: u64,
}

impl Block {
    /// Compresses a text.
    pub fn deflate(text: &[u8]) -> Block {
        let mut writer = BlockWriter::new();
        writer.buffer().extend_from_slice(text);
        writer.finish()
    }

    /// A short text as it is: deflate has stored blocks, of 65,535
    /// bytes at the most.
    pub fn stored(text: &[u8]) -> Block {
        let Ok(length) = u16::try_from(text.len()) else { return Block::deflate(text) };
        let mut bytes = Vec::with_capacity(5 + text.len());
        bytes.push(0);
        bytes.extend_from_slice(&length.to_le_bytes());
        bytes.extend_from_slice(&(!length).to_le_bytes());
        bytes.extend_from_slice(text);
        let mut crc = crc32fast::Hasher::new();
        crc.update(text);
        Block { bytes: bytes.into(), crc, plain_len: text.len() as u64 }
    }

    /// Whether there is no text in it.
    pub fn is_empty(&self) -> bool {
        self.plain_len == 0
    }
}

/// Compresses a text piece by piece into a block; the text is never held as a whole.
pub struct BlockWriter {
    deflate: Compress,
    buffer: Vec<u8>,
    out: Vec<u8>,
    crc: crc32fast::Hasher,
    plain_len: u64,
}

impl BlockWriter {
    /// An empty one. Level 1: at 6 the same text takes seven times as long and gets a third
    /// smaller, which a scrape a minute does not repay.
    pub fn new() -> Self {
        BlockWriter {
            deflate: Compress::new(Compression::new(1), false),
            buffer: Vec::with_capacity(2 * CHUNK),
            out: Vec::new(),
            crc: crc32fast::Hasher::new(),
            plain_len: 0,
        }
    }

    /// The buffer to write to; [`BlockWriter::settle`] keeps it small.
    pub fn buffer(&mut self) -> &mut Vec<u8> {
        &mut self.buffer
    }

    /// Compresses the buffer, if there is enough in it.
    pub fn settle(&mut self) {
        if self.buffer.len() >= CHUNK {
            self.compress(FlushCompress::None);
        }
    }

    fn compress(&mut self, flush: FlushCompress) {
        self.crc.update(&self.buffer);
        self.plain_len += self.buffer.len() as u64;
        let mut rest = &self.buffer[..];
        loop {
            // Capacity for the flush's own bytes, too: if some is left, the flush is complete.
            self.out.reserve(rest.len() / 8 + 1024);
            let before = self.deflate.total_in();
            // Compressing into memory can fail only by a misuse of the state machine.
            let _ = self.deflate.compress_vec(rest, &mut self.out, flush);
            rest = &rest[(self.deflate.total_in() - before) as usize..];
            if rest.is_empty() && self.out.len() < self.out.capacity() {
                break;
            }
        }
        self.buffer.clear();
    }

    /// Ends the block, and begins another.
    pub fn finish(&mut self) -> Block {
        self.compress(FlushCompress::Sync);
        self.deflate.reset();
        self.out.shrink_to_fit();
        Block {
            bytes: std::mem::take(&mut self.out).into(),
            crc: std::mem::take(&mut self.crc),
            plain_len: std::mem::take(&mut self.plain_len),
        }
    }
}

impl Default for BlockWriter {
    fn default() -> Self {
        Self::new()
    }
}

impl std::fmt::Debug for BlockWriter {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("BlockWriter").field("plain_len", &self.plain_len).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Document;
    use std::io::Read;

    fn gzip(blocks: &[Block]) -> Vec<u8> {
        let mut document = Document::default();
        for block in blocks {
            document.push(block);
        }
        document.gzip_pieces().flatten().collect()
    }

    fn unpacked(bytes: &[u8]) -> String {
        let mut text = String::new();
        flate2::read::GzDecoder::new(bytes).read_to_string(&mut text).unwrap();
        text
    }

    #[test]
    fn blocks_in_any_order_are_one_gzip_stream() {
        let long = "infiniband_port_state{port=\"1\"} 4\n".repeat(20_000);
        let blocks = [
            Block::stored(b"# HELP a\n"),
            Block::deflate(long.as_bytes()),
            Block::stored(b""),
            Block::deflate(b""),
        ];
        let texts = ["# HELP a\n", &long, "", ""];
        for order in [[0, 1, 2, 3], [3, 1, 1, 0], [1, 0, 1, 2]] {
            let stream = gzip(&order.map(|index| blocks[index].clone()));
            assert_eq!(unpacked(&stream), order.map(|index| texts[index]).concat(), "{order:?}");
        }
    }

    #[test]
    fn long_incompressible_text_round_trips() {
        // A multiplicative generator's bytes do not compress, so the output is the longer one.
        let mut state = 1u64;
        let noise: Vec<u8> = (0..300_000)
            .map(|_| {
                state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
                b'a' + (state >> 60) as u8
            })
            .collect();
        let mut writer = BlockWriter::new();
        for part in noise.chunks(777) {
            writer.buffer().extend_from_slice(part);
            writer.settle();
        }
        let first = writer.finish();
        writer.buffer().extend_from_slice(b"second");
        let second = writer.finish();
        let text = unpacked(&gzip(&[first, second]));
        assert!(text.as_bytes() == [&noise[..], b"second"].concat());
    }

    #[test]
    fn text_too_long_to_be_stored_is_deflated() {
        let long = "x".repeat(70_000);
        assert_eq!(unpacked(&gzip(&[Block::stored(long.as_bytes())])), long);
    }
}
