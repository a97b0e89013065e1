//! Compressed text in blocks that can be put together, and a document of them as a body: gzip, or plain text.
//!
//! A block is a part of a deflate stream: it ends on a byte boundary (a sync flush), refers to
//! nothing before it and is not the last. Blocks in any order, with an empty last block and a CRC
//! combined from theirs, are one gzip stream. So the samples of a family are compressed once for both
//! formats, and what is rendered at each scrape is put before what is ready.

use std::collections::VecDeque;
use std::io::{self, Read};
use std::pin::Pin;
use std::task::{Context, Poll};

use bytes::Bytes;
use flate2::bufread::GzDecoder;
use flate2::{Compress, Compression, Decompress, FlushCompress, FlushDecompress};
use http_body::{Body, Frame, SizeHint};

/// gzip's magic, deflate, no flags, no time, fastest, unknown system.
const GZIP_HEADER: [u8; 10] = [0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 4, 255];

/// The empty block that ends a deflate stream: final, fixed codes, end of block.
const LAST_BLOCK: [u8; 2] = [0x03, 0x00];

/// How many bytes of text are collected before they are compressed.
const CHUNK: usize = 64 * 1024;

/// A part of a deflate stream.
#[derive(Clone, Debug)]
pub struct Block {
    /// The deflated bytes.
    pub bytes: Bytes,
    crc: crc32fast::Hasher,
    pub(super) plain_len: u64,
}

impl Block {
    /// What a text was compressed to.
    pub(super) fn new(deflated: &[u8], text: &[u8]) -> Block {
        let mut crc = crc32fast::Hasher::new();
        crc.update(text);
        Block { bytes: Bytes::copy_from_slice(deflated), crc, plain_len: text.len() as u64 }
    }

    /// Compresses any text.
    pub(super) fn deflate(text: &[u8]) -> Block {
        let mut writer = BlockWriter::default();
        writer.buffer.extend_from_slice(text);
        writer.end()
    }

    /// A short text as it is: deflate has stored blocks, of 65,535 bytes at the most.
    pub fn stored(text: &[u8]) -> Block {
        let Ok(length) = u16::try_from(text.len()) else { return Block::deflate(text) };
        let mut bytes = Vec::with_capacity(5 + text.len());
        bytes.push(0);
        bytes.extend_from_slice(&length.to_le_bytes());
        bytes.extend_from_slice(&(!length).to_le_bytes());
        bytes.extend_from_slice(text);
        Block::new(&bytes, text)
    }
}

/// Compresses a text piece by piece into a block; the text is never held as a whole.
#[derive(Debug)]
pub struct BlockWriter {
    deflate: Compress,
    buffer: Vec<u8>,
    out: Vec<u8>,
    crc: crc32fast::Hasher,
    plain_len: u64,
}

impl Default for BlockWriter {
    /// Level 1: at 6 the same text takes seven times as long and gets a third smaller, which a scrape a minute
    /// does not repay.
    fn default() -> Self {
        BlockWriter {
            deflate: Compress::new(Compression::new(1), false),
            buffer: Vec::with_capacity(2 * CHUNK),
            out: Vec::new(),
            crc: crc32fast::Hasher::new(),
            plain_len: 0,
        }
    }
}

impl BlockWriter {
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

    /// The text so far, or the end of it.
    pub fn buffer(&mut self) -> &mut Vec<u8> {
        &mut self.buffer
    }

    /// Frees space in the buffer, at the end of a sample.
    pub fn settle(&mut self) {
        if self.buffer.len() >= CHUNK {
            self.compress(FlushCompress::None);
        }
    }

    /// Ends the block, and begins another; `None` if there was no text.
    pub fn finish(&mut self) -> Option<Block> {
        let is_empty = self.plain_len == 0 && self.buffer.is_empty();
        (!is_empty).then(|| self.end())
    }

    /// Ends the block, and begins another.
    fn end(&mut self) -> Block {
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

/// An exposition or a part of it, compressed: one after the other its blocks are one stream.
#[derive(Clone, Debug, Default)]
pub struct Document {
    pieces: Vec<Bytes>,
    crc: crc32fast::Hasher,
    plain_len: u64,
}

impl Document {
    /// Adds a block at the end.
    pub fn push(&mut self, block: &Block) {
        self.pieces.push(block.bytes.clone());
        self.crc.combine(&block.crc);
        self.plain_len += block.plain_len;
    }

    /// Adds another one at the end.
    pub fn append(&mut self, other: &Document) {
        self.pieces.extend_from_slice(&other.pieces);
        self.crc.combine(&other.crc);
        self.plain_len += other.plain_len;
    }

    /// The plain text.
    pub fn to_text(&self) -> io::Result<String> {
        let mut text = String::new();
        let gzip: Vec<u8> = self.gzip_pieces().flatten().collect();
        GzDecoder::new(&gzip[..]).read_to_string(&mut text)?;
        Ok(text)
    }

    /// How many bytes the plain text has.
    pub fn plain_len(&self) -> u64 {
        self.plain_len
    }

    /// The pieces of a gzip stream.
    fn gzip_pieces(&self) -> impl Iterator<Item = Bytes> {
        let mut end = LAST_BLOCK.to_vec();
        end.extend_from_slice(&self.crc.clone().finalize().to_le_bytes());
        // The length is kept modulo 2^32.
        end.extend_from_slice(&(self.plain_len as u32).to_le_bytes());
        let header = std::iter::once(Bytes::from_static(&GZIP_HEADER));
        header.chain(self.pieces.iter().cloned()).chain([end.into()])
    }
}

/// How many bytes of small pieces are sent as one: a fabric has thousands of a kilobyte each, and each is a part of a
/// system call of its own.
const GATHERED: usize = 64 * 1024;

/// How many bytes are unpacked at a time: 0.3 ms of work on one of the server's threads.
const UNPACKED_CHUNK: usize = 128 * 1024;

/// The body of a document: as gzip its pieces as they are, as plain text unpacked piece by piece as the client
/// reads it.
#[derive(Debug)]
pub struct DocumentBody {
    pieces: VecDeque<Bytes>,
    /// `None` for gzip.
    inflate: Option<Decompress>,
    left: u64,
}

impl DocumentBody {
    /// The gzip stream of a document.
    pub fn gzip(document: &Document) -> Self {
        let pieces: VecDeque<Bytes> = document.gzip_pieces().collect();
        let left = pieces.iter().map(|piece| piece.len() as u64).sum();
        DocumentBody { pieces, inflate: None, left }
    }

    /// The plain text of a document.
    pub fn plain(document: Document) -> Self {
        let inflate = Some(Decompress::new(false));
        let left = document.plain_len();
        DocumentBody { pieces: document.pieces.into(), inflate, left }
    }

    /// The next pieces as they are; small ones together.
    fn gather(&mut self) -> Option<Bytes> {
        let first = self.pieces.pop_front()?;
        if first.len() >= GATHERED {
            return Some(first);
        }
        let mut all = Vec::with_capacity(GATHERED);
        all.extend_from_slice(&first);
        while let Some(piece) = self.pieces.front()
            && all.len() + piece.len() <= GATHERED
        {
            all.extend_from_slice(piece);
            self.pieces.pop_front();
        }
        Some(all.into())
    }

    fn chunk(&mut self) -> Result<Option<Bytes>, flate2::DecompressError> {
        let Some(inflate) = &mut self.inflate else { return Ok(self.gather()) };
        let mut out = Vec::with_capacity(UNPACKED_CHUNK);
        while let Some(piece) = self.pieces.front_mut() {
            let before = inflate.total_in();
            inflate.decompress_vec(piece, &mut out, FlushDecompress::None)?;
            let taken = (inflate.total_in() - before) as usize;
            drop(piece.split_to(taken));
            if out.len() == out.capacity() {
                break;
            }
            if piece.is_empty() {
                self.pieces.pop_front();
            }
        }
        Ok(Some(out.into()).filter(|out: &Bytes| !out.is_empty()))
    }
}

impl Body for DocumentBody {
    type Data = Bytes;
    type Error = flate2::DecompressError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        _: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Self::Error>>> {
        Poll::Ready(self.chunk().transpose().map(|chunk| {
            let chunk = chunk?;
            self.left -= chunk.len() as u64;
            Ok(Frame::data(chunk))
        }))
    }

    fn size_hint(&self) -> SizeHint {
        SizeHint::with_exact(self.left)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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
        let mut writer = BlockWriter::default();
        for part in noise.chunks(777) {
            writer.buffer().extend_from_slice(part);
            writer.settle();
        }
        let first = writer.end();
        writer.buffer().extend_from_slice(b"second");
        let second = writer.end();
        let text = unpacked(&gzip(&[first, second]));
        assert!(text.as_bytes() == [&noise[..], b"second"].concat());
    }

    #[test]
    fn small_pieces_are_sent_together() {
        let mut document = Document::default();
        let long = "x".repeat(60_000);
        for _ in 0..1000 {
            document.push(&Block::stored(b"a 1\n"));
        }
        for _ in 0..2 {
            document.push(&Block::stored(long.as_bytes()));
        }
        let mut body = DocumentBody::gzip(&document);
        let (mut frames, mut all) = (0, Vec::new());
        while let Some(frame) = body.chunk().unwrap() {
            frames += 1;
            all.extend_from_slice(&frame);
        }
        assert_eq!(frames, 3);
        assert_eq!(unpacked(&all), "a 1\n".repeat(1000) + &long + &long);
    }

    #[test]
    fn text_too_long_to_be_stored_is_deflated() {
        let long = "x".repeat(70_000);
        assert_eq!(unpacked(&gzip(&[Block::stored(long.as_bytes())])), long);
    }
}
