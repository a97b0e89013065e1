//! A document on its way to the client, packed or unpacked.

use std::collections::VecDeque;
use std::convert::Infallible;
use std::pin::Pin;
use std::task::{Context, Poll};

use bytes::Bytes;
use flate2::{Decompress, FlushDecompress};
use http_body::{Body, Frame, SizeHint};

use crate::metrics::Document;
use crate::metrics::deflated::GZIP_HEADER;

/// The ready pieces, as they are.
#[derive(Debug)]
pub struct Packed {
    pieces: VecDeque<Bytes>,
    left: u64,
}

impl Packed {
    /// A gzip stream of a document.
    pub fn new(document: Document) -> Self {
        let mut pieces = document.pieces;
        pieces.push_front(Bytes::from_static(&GZIP_HEADER));
        pieces.push_back(document.trailer.gzip_end());
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

/// How much is unpacked at a time: 0.3 ms of work on one of the server's threads.
const CHUNK: usize = 128 * 1024;

/// The plain text, unpacked bit by bit as the client takes it.
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
