//! A whole exposition in compressed pieces, and its two bodies: gzip, and plain text.

use std::collections::VecDeque;
use std::convert::Infallible;
use std::io::{self, Read};
use std::pin::Pin;
use std::task::{Context, Poll};

use bytes::Bytes;
use flate2::bufread::GzDecoder;
use flate2::{Decompress, FlushDecompress};
use http_body::{Body, Frame, SizeHint};

use super::deflated::{Block, GZIP_HEADER, LAST_BLOCK};

/// A whole exposition, compressed.
#[derive(Debug, Default)]
pub struct Document {
    /// Deflated pieces; one after the other they are one stream.
    pieces: VecDeque<Bytes>,
    crc: crc32fast::Hasher,
    plain_len: u64,
}

impl Document {
    /// Adds a block at the end.
    pub fn push(&mut self, block: &Block) {
        self.pieces.push_back(block.bytes.clone());
        self.crc.combine(&block.crc);
        self.plain_len += block.plain_len;
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
    pub(crate) fn gzip_pieces(&self) -> impl Iterator<Item = Bytes> {
        let mut end = LAST_BLOCK.to_vec();
        end.extend_from_slice(&self.crc.clone().finalize().to_le_bytes());
        // The length is kept modulo 2^32.
        end.extend_from_slice(&(self.plain_len as u32).to_le_bytes());
        let header = std::iter::once(Bytes::from_static(&GZIP_HEADER));
        header.chain(self.pieces.iter().cloned()).chain([end.into()])
    }
}

/// The body of a document as gzip: its pieces as they are.
#[derive(Debug)]
pub struct Packed {
    pieces: VecDeque<Bytes>,
    left: u64,
}

impl Packed {
    /// The gzip stream of a document.
    pub fn new(document: &Document) -> Self {
        let pieces: VecDeque<Bytes> = document.gzip_pieces().collect();
        let left = pieces.iter().map(|piece| piece.len() as u64).sum();
        Packed { pieces, left }
    }
}

impl Body for Packed {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        _: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        let piece = self.pieces.pop_front();
        self.left -= piece.as_ref().map_or(0, |piece| piece.len() as u64);
        Poll::Ready(piece.map(|piece| Ok(Frame::data(piece))))
    }

    fn size_hint(&self) -> SizeHint {
        SizeHint::with_exact(self.left)
    }
}

/// How many bytes are unpacked at a time: 0.3 ms of work on one of the server's threads.
const CHUNK: usize = 128 * 1024;

/// The body of a document as plain text, unpacked piece by piece as the client reads it.
pub struct Unpacked {
    pieces: VecDeque<Bytes>,
    inflate: Decompress,
    left: u64,
}

impl Unpacked {
    /// The plain text of a document.
    pub fn new(document: Document) -> Self {
        let left = document.plain_len();
        Unpacked { pieces: document.pieces, inflate: Decompress::new(false), left }
    }

    fn chunk(&mut self) -> Option<Result<Vec<u8>, flate2::DecompressError>> {
        let mut out = Vec::with_capacity(CHUNK);
        while let Some(piece) = self.pieces.front_mut() {
            let before = self.inflate.total_in();
            if let Err(error) = self.inflate.decompress_vec(piece, &mut out, FlushDecompress::None)
            {
                return Some(Err(error));
            }
            let taken = (self.inflate.total_in() - before) as usize;
            drop(piece.split_to(taken));
            if out.len() == out.capacity() {
                break;
            }
            if piece.is_empty() {
                self.pieces.pop_front();
            }
        }
        (!out.is_empty()).then_some(Ok(out))
    }
}

impl std::fmt::Debug for Unpacked {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Unpacked").field("left", &self.left).finish_non_exhaustive()
    }
}

impl Body for Unpacked {
    type Data = Bytes;
    type Error = flate2::DecompressError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        _: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Self::Error>>> {
        Poll::Ready(self.chunk().map(|chunk| {
            let chunk = chunk?;
            self.left -= chunk.len() as u64;
            Ok(Frame::data(chunk.into()))
        }))
    }

    fn size_hint(&self) -> SizeHint {
        SizeHint::with_exact(self.left)
    }
}
