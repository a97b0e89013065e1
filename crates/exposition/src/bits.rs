//! Bits, the first lowest, as deflate has them.

use super::huffman::Code;

/// A few bits that are written together: at most 57.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Bits {
    pub bits: u64,
    pub count: u32,
}

impl Bits {
    /// A code, and the bits that follow it.
    #[inline]
    pub fn new(code: Code, value: u32, count: u32) -> Self {
        Bits::default().and(code.into()).and(Bits { bits: value.into(), count })
    }

    /// These and others behind them.
    #[inline]
    #[must_use]
    pub fn and(self, other: Bits) -> Self {
        Bits { bits: self.bits | other.bits << self.count, count: self.count + other.count }
    }
}

impl From<Code> for Bits {
    #[inline]
    fn from(code: Code) -> Self {
        Bits { bits: code.bits.into(), count: code.length.into() }
    }
}

/// Writes bits.
#[derive(Debug, Default)]
pub(super) struct BitWriter {
    /// Those that are written, and room.
    bytes: Vec<u8>,
    end: End,
}

/// The end of what is written.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct End {
    length: usize,
    /// Fewer than eight, which are not yet among the bytes.
    rest: Bits,
}

impl BitWriter {
    /// Makes room for so many bytes.
    pub fn reserve(&mut self, more: usize) {
        let length = self.end.length + more + 8;
        if self.bytes.len() < length {
            self.bytes.resize(length, 0);
        }
    }

    /// Writes at the end, while there is room.
    pub fn cursor(&mut self) -> Cursor<'_> {
        Cursor { bytes: &mut self.bytes, end: self.end }
    }

    /// Takes over what a cursor has written.
    pub fn continue_at(&mut self, end: End) {
        self.end = end;
    }

    /// Writes a few bits.
    pub fn put(&mut self, bits: Bits) {
        let mut cursor = self.cursor();
        cursor.put(bits);
        self.end = cursor.end;
    }

    /// Fills the last byte.
    pub fn align(&mut self) {
        self.put(Bits { bits: 0, count: 7 });
        self.end.rest = Bits::default();
    }

    /// Takes what is written, up to the last full byte.
    pub fn take(&mut self) -> &[u8] {
        let End { length, .. } = std::mem::take(&mut self.end);
        &self.bytes[..length]
    }
}

/// Writes bits where there is room.
#[derive(Debug)]
pub(super) struct Cursor<'a> {
    bytes: &'a mut [u8],
    end: End,
}

impl Cursor<'_> {
    /// Writes a few bits.
    #[inline]
    pub fn put(&mut self, bits: Bits) {
        let Bits { bits, count } = self.end.rest.and(bits);
        // Eight bytes, of which the full ones stay: whether one is full cannot be predicted.
        let room = self.bytes.get_mut(self.end.length..);
        if let Some(room) = room.and_then(|room| room.first_chunk_mut()) {
            *room = bits.to_le_bytes();
        }
        let full = count / 8;
        self.end.length += full as usize;
        self.end.rest = Bits { bits: bits >> (8 * full), count: count % 8 };
    }

    /// Where it has ended.
    pub fn end(&self) -> End {
        self.end
    }
}
