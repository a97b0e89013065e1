//! A digest: the readings of a part's ports in many sweeps, port by port, so that weeks of one link are read
//! from some hundreds of rows and not from a hundred thousand.
//!
//! The plain form: a frame with an entry for each reading of a port, then the sweeps, each as steps in time
//! from the one before, and the index of each entry's sweep.

use super::frame::{Entry, Frame};
use super::packed::FrameError;
use super::{packed, varint};

/// The beginnings of a sweep and of the previous one, in microseconds since 1970.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct SweepInterval {
    /// The previous sweep; equal to `began` if there is none.
    pub since: i64,
    /// The sweep.
    pub began: i64,
}

/// The readings of some sweeps.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Digest {
    spans: Vec<SweepInterval>,
    which: Vec<u32>,
    frame: Frame,
}

impl Digest {
    /// Adds a sweep, to which the readings pushed from then on belong.
    pub fn begin(&mut self, span: SweepInterval) {
        if self.spans.last() != Some(&span) {
            self.spans.push(span);
        }
    }

    /// Adds a port's reading in the latest sweep.
    pub fn push(&mut self, entry: &Entry, values: impl IntoIterator<Item = (u8, u64)>) {
        let before = self.frame.entries().len();
        self.frame.push_after(entry.port, entry.after, values);
        if self.frame.entries().len() > before {
            self.which.push(self.spans.len().saturating_sub(1) as u32);
        }
    }

    /// Whether it has no readings.
    pub fn is_empty(&self) -> bool {
        self.frame.is_empty()
    }

    /// Its sweeps, the earliest first.
    pub fn spans(&self) -> &[SweepInterval] {
        &self.spans
    }

    /// The readings of a port, or all, with their sweeps.
    pub fn readings(&self, port: Option<u32>) -> impl Iterator<Item = (SweepInterval, &Entry)> {
        let entries = self.frame.entries();
        let range = port.map_or(0..entries.len(), |port| {
            entries.partition_point(|entry| entry.port < port)
                ..entries.partition_point(|entry| entry.port <= port)
        });
        let which = self.which.get(range.clone()).unwrap_or_default();
        let entries = entries.get(range).unwrap_or_default();
        which
            .iter()
            .zip(entries)
            .filter_map(|(which, entry)| Some((*self.spans.get(*which as usize)?, entry)))
    }

    /// The frame that has its entries' values.
    pub fn frame(&self) -> &Frame {
        &self.frame
    }

    /// Packs it, ordered by port and sweep; `base` is when the first sweep began.
    pub fn pack(&self, base: i64) -> std::io::Result<Vec<u8>> {
        self.frame.ensure_fit()?;
        let mut plain = Vec::new();
        let order = self.frame.order();
        self.frame.write(&order, &mut plain);
        varint::put(&mut plain, self.spans.len() as u64);
        let mut last = base;
        for span in &self.spans {
            varint::put_signed(&mut plain, span.began.wrapping_sub(last));
            varint::put_signed(&mut plain, span.began.wrapping_sub(span.since));
            last = span.began;
        }
        for at in order {
            varint::put(&mut plain, self.which.get(at as usize).copied().unwrap_or(0).into());
        }
        packed::pack(&plain)
    }

    /// Unpacks what [`pack`](Self::pack) returned for the same base.
    pub fn unpack(bytes: &[u8], base: i64) -> Result<Self, FrameError> {
        Self::read(&packed::unpack(bytes)?, base)
    }

    fn read(mut plain: &[u8], base: i64) -> Result<Self, FrameError> {
        let rest = &mut plain;
        let frame = Frame::read(rest, |_| true)?;
        let count = varint::take(rest).ok_or(FrameError::Length)?;
        let (mut spans, mut last) = (Vec::new(), base);
        for _ in 0..count {
            let step = varint::take_signed(rest).ok_or(FrameError::Length)?;
            let length = varint::take_signed(rest).ok_or(FrameError::Length)?;
            last = last.wrapping_add(step);
            spans.push(SweepInterval { since: last.wrapping_sub(length), began: last });
        }
        let mut which = Vec::new();
        for _ in frame.entries() {
            let number = varint::take(rest).ok_or(FrameError::Length)?;
            let number = u32::try_from(number).map_err(|_| FrameError::Number)?;
            if number as usize >= spans.len() {
                return Err(FrameError::Number);
            }
            which.push(number);
        }
        if rest.is_empty() { Ok(Digest { spans, which, frame }) } else { Err(FrameError::Length) }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    type Readings = Vec<(SweepInterval, u32, u32, Vec<(u8, u64)>)>;

    fn digest(readings: &Readings) -> Digest {
        let mut digest = Digest::default();
        for (span, port, after, values) in readings {
            digest.begin(*span);
            let entry = Entry::new(*port, *after);
            digest.push(&entry, values.iter().copied());
        }
        digest
    }

    fn readings() -> impl Strategy<Value = Readings> {
        let span = (0..1i64 << 50, 0..1i64 << 30);
        let span = span.prop_map(|(began, length)| SweepInterval { since: began - length, began });
        let values = proptest::collection::btree_map(0u8..64, any::<u64>(), 1..4);
        let values = values.prop_map(|values| values.into_iter().collect());
        proptest::collection::vec((span, 0..5u32, any::<u32>(), values), 0..30)
    }

    proptest! {
        #[test]
        fn packed_digest_unpacks_to_the_same_readings(readings in readings()) {
            let unpacked = Digest::unpack(&digest(&readings).pack(9).unwrap(), 9).unwrap();
            for port in 0..5 {
                let read: Readings = unpacked.readings(Some(port)).map(|(span, entry)| {
                    (span, entry.port, entry.after, unpacked.frame().values(entry).collect())
                }).collect();
                let of: Readings = readings.iter().filter(|of| of.1 == port).cloned().collect();
                prop_assert_eq!(read, of);
            }
            prop_assert_eq!(unpacked.readings(None).count(), readings.len());
        }

        #[test]
        fn damaged_digest_is_an_error(readings in readings(), at: prop::sample::Index, bit in 0u8..8) {
            let mut bytes = digest(&readings).pack(0).unwrap();
            let at = at.index(bytes.len());
            bytes[at] ^= 1 << bit;
            prop_assert!(Digest::unpack(&bytes, 0).is_err());
        }

        #[test]
        fn any_bytes_are_a_digest_or_an_error(
            plain in proptest::collection::vec(any::<u8>(), 0..200),
        ) {
            if let Ok(digest) = Digest::read(&plain, i64::MAX) {
                let _ = digest.readings(None).count();
            }
        }
    }
}
