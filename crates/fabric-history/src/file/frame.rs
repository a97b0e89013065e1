//! A frame: values of counters by port, of one sweep, and its packed form.
//!
//! The plain form is columns: ports in rising order as steps from one to the next, when each was read
//! (milliseconds after the sweep began), a bit mask of its counters, and their values. Similar numbers are next
//! to each other, and compress well; [`packed`] has the compression.
//!
//! A digest: the readings of a part's ports in many sweeps, port by port, so that weeks of one link are read from
//! some hundreds of rows and not from a hundred thousand. Its plain form: a frame with an entry for each reading of a
//! port, then the sweeps, each as steps in time from the one before, and the index of each entry's sweep.

use crate::file::packed::{
    self, FrameError, put_signed, put_varint, skip_varints, take_signed, take_u32, take_varint,
};

/// A port in a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Entry {
    /// The id of the port in the file.
    pub port: u32,
    /// When it was read, in milliseconds since the sweep began.
    pub after: u32,
    /// One bit, by its id in the file, for each counter that has a value.
    pub counters: u64,
    /// The index of its first value.
    first: u32,
}

/// Values of counters, by port.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Frame {
    entries: Vec<Entry>,
    values: Vec<u64>,
}

impl Frame {
    /// Adds a port, if it has any value: `after` in milliseconds, `values` by the counters' ids, in rising order.
    pub fn push(&mut self, port: u32, after: u32, values: impl IntoIterator<Item = (u8, u64)>) {
        let first = self.values.len() as u32;
        let mut counters = 0;
        for (counter, value) in values {
            // No id is higher: a file with such a one is not opened (`CounterIds::read`).
            let Some(bit) = 1u64.checked_shl(counter.into()) else {
                debug_assert!(false, "counter id {counter} in a frame");
                continue;
            };
            counters |= bit;
            self.values.push(value);
        }
        if counters != 0 {
            self.entries.push(Entry { port, after, counters, first });
        }
    }

    /// Whether it has no entries.
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// Its entries; sorted by port, if it was unpacked.
    pub fn entries(&self) -> &[Entry] {
        &self.entries
    }

    /// The ids of an entry's counters with their values.
    pub fn values(&self, entry: &Entry) -> impl Iterator<Item = (u8, u64)> + use<'_> {
        let Entry { mut counters, first, .. } = *entry;
        let counters = std::iter::from_fn(move || {
            let lowest = counters.trailing_zeros();
            counters &= counters.wrapping_sub(1);
            (lowest < 64).then_some(lowest as u8)
        });
        counters.zip(self.values.iter().skip(first as usize).copied())
    }

    /// The entry of a port; the frame must have been unpacked.
    pub fn get(&self, port: u32) -> Option<&Entry> {
        let at = self.entries.binary_search_by_key(&port, |entry| entry.port).ok()?;
        self.entries.get(at)
    }

    /// Packs it. A port may have several entries.
    pub fn pack(&self) -> std::io::Result<Vec<u8>> {
        let mut plain = Vec::with_capacity(self.entries.len() * 8 + self.values.len() * 3);
        self.write(&self.order(), &mut plain);
        packed::pack(&plain)
    }

    /// The indexes of its entries by port; those of one port as they were pushed.
    pub(super) fn order(&self) -> Vec<u32> {
        let mut order: Vec<u32> = (0..self.entries.len() as u32).collect();
        order.sort_by_key(|at| self.entries[*at as usize].port);
        order
    }

    /// Writes the entries at some indexes, which are ordered by port.
    pub(super) fn write(&self, order: &[u32], plain: &mut Vec<u8>) {
        let order = || order.iter().filter_map(|at| self.entries.get(*at as usize));
        put_varint(plain, order().count() as u64);
        let mut last = 0;
        for entry in order() {
            put_varint(plain, u64::from(entry.port - last));
            last = entry.port;
        }
        for entry in order() {
            put_varint(plain, u64::from(entry.after));
        }
        for entry in order() {
            put_varint(plain, entry.counters);
        }
        for entry in order() {
            for (_, value) in self.values(entry) {
                put_varint(plain, value);
            }
        }
    }

    /// Unpacks what [`pack`](Self::pack) made, ports in rising order.
    pub fn unpack(bytes: &[u8]) -> Result<Self, FrameError> {
        Self::unpack_of(bytes, |_| true)
    }

    /// Unpacks only some ports: one of a part of 1,024 takes half of the time.
    pub fn unpack_of(bytes: &[u8], wanted: impl Fn(u32) -> bool) -> Result<Self, FrameError> {
        let plain = packed::unpack(bytes)?;
        let mut rest = &*plain;
        let frame = Self::read(&mut rest, wanted)?;
        if rest.is_empty() { Ok(frame) } else { Err(FrameError::Length) }
    }

    /// Reads what [`write`](Self::write) wrote, from the front of the input.
    pub(super) fn read(
        plain: &mut &[u8],
        wanted: impl Fn(u32) -> bool,
    ) -> Result<Self, FrameError> {
        let count = take_varint(plain)?;
        // The length of the input limits the memory: the count alone reserves nothing.
        let mut entries = Vec::new();
        let mut port = 0u32;
        for _ in 0..count {
            port = port.checked_add(take_u32(plain)?).ok_or(FrameError::Number)?;
            entries.push(Entry { port, after: 0, counters: 0, first: 0 });
        }
        for entry in &mut entries {
            entry.after = take_u32(plain)?;
        }
        let mut all = 0u32;
        for entry in &mut entries {
            entry.counters = take_varint(plain)?;
            all = all.checked_add(entry.counters.count_ones()).ok_or(FrameError::Number)?;
        }
        let (mut values, mut passed) = (Vec::new(), 0);
        let mut kept = Vec::new();
        for entry in entries {
            let count = entry.counters.count_ones();
            if !wanted(entry.port) {
                passed += count as usize;
                continue;
            }
            skip_varints(plain, std::mem::take(&mut passed))?;
            kept.push(Entry { first: values.len() as u32, ..entry });
            for _ in 0..count {
                values.push(take_varint(plain)?);
            }
        }
        skip_varints(plain, passed)?;
        Ok(Frame { entries: kept, values })
    }
}

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
    pub fn push(&mut self, port: u32, after: u32, values: impl IntoIterator<Item = (u8, u64)>) {
        self.frame.push(port, after, values);
        self.which.resize(self.frame.entries.len(), self.spans.len().saturating_sub(1) as u32);
    }

    /// Whether it has no readings.
    pub fn is_empty(&self) -> bool {
        self.frame.is_empty()
    }

    /// The readings of a port, or all, with their sweeps.
    pub fn readings(&self, port: Option<u32>) -> impl Iterator<Item = (SweepInterval, &Entry)> {
        let entries = &self.frame.entries;
        let range = port.map_or(0..entries.len(), |port| {
            entries.partition_point(|entry| entry.port < port)
                ..entries.partition_point(|entry| entry.port <= port)
        });
        range.filter_map(move |at| {
            let span = self.spans.get(*self.which.get(at)? as usize)?;
            Some((*span, entries.get(at)?))
        })
    }

    /// The frame that has its entries' values.
    pub fn frame(&self) -> &Frame {
        &self.frame
    }

    /// Packs it, ordered by port and sweep; `base` is when the first sweep began.
    pub fn pack(&self, base: i64) -> std::io::Result<Vec<u8>> {
        let mut plain = Vec::new();
        let order = self.frame.order();
        self.frame.write(&order, &mut plain);
        put_varint(&mut plain, self.spans.len() as u64);
        let mut last = base;
        for span in &self.spans {
            put_signed(&mut plain, span.began.wrapping_sub(last));
            put_signed(&mut plain, span.began.wrapping_sub(span.since));
            last = span.began;
        }
        for at in order {
            put_varint(&mut plain, self.which.get(at as usize).copied().unwrap_or(0).into());
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
        let count = take_varint(rest)?;
        let (mut spans, mut last) = (Vec::new(), base);
        for _ in 0..count {
            last = last.wrapping_add(take_signed(rest)?);
            spans.push(SweepInterval { since: last.wrapping_sub(take_signed(rest)?), began: last });
        }
        let mut which = Vec::new();
        for _ in frame.entries() {
            let number = take_u32(rest)?;
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
    use std::collections::BTreeMap;

    use proptest::prelude::*;

    use super::*;

    /// A packed form with a valid CRC and another length than it has.
    fn promising(plain: &[u8], length: u64) -> Vec<u8> {
        let mut tail = Vec::new();
        put_varint(&mut tail, length);
        tail.extend(zstd::bulk::compress(plain, 1).unwrap());
        let mut bytes = vec![packed::FORM];
        bytes.extend(crc32fast::hash(&tail).to_le_bytes());
        bytes.extend(tail);
        bytes
    }

    type Ports = BTreeMap<u32, (u32, BTreeMap<u8, u64>)>;

    fn frame(ports: &Ports) -> Frame {
        let mut frame = Frame::default();
        // Backwards: ports may be pushed in any order.
        for (port, (after, values)) in ports.iter().rev() {
            let values = values.iter().map(|(counter, value)| (*counter, *value));
            frame.push(*port, *after, values);
        }
        frame
    }

    fn ports() -> impl Strategy<Value = Ports> {
        let value = (any::<u64>(), 0u32..64).prop_map(|(value, shift)| value >> shift);
        let values = proptest::collection::btree_map(0u8..64, value, 1..8);
        proptest::collection::btree_map(any::<u32>(), (any::<u32>(), values), 0..40)
    }

    proptest! {
        #[test]
        fn packed_frame_unpacks_to_the_same_entries(ports in ports()) {
            let unpacked = Frame::unpack(&frame(&ports).pack().unwrap()).unwrap();
            let read: Ports = unpacked.entries().iter().map(|entry| {
                (entry.port, (entry.after, unpacked.values(entry).collect()))
            }).collect();
            prop_assert_eq!(&read, &ports);
            let some = |port: u32| port.is_multiple_of(3);
            let of = Frame::unpack_of(&frame(&ports).pack().unwrap(), some).unwrap();
            for (port, (after, values)) in &ports {
                let entry = of.get(*port);
                let read = entry.map(|entry| (entry.after, of.values(entry).collect()));
                prop_assert_eq!(read, some(*port).then(|| (*after, values.clone())));
            }
            for port in ports.keys() {
                prop_assert_eq!(unpacked.get(*port).map(|entry| entry.port), Some(*port));
            }
        }

        #[test]
        fn damaged_frame_is_an_error(ports in ports(), at: prop::sample::Index, bit in 0u8..8, cut: bool) {
            let mut bytes = frame(&ports).pack().unwrap();
            let at = at.index(bytes.len());
            if cut { bytes.truncate(at) } else { bytes[at] ^= 1 << bit }
            prop_assert!(Frame::unpack(&bytes).is_err());
        }

        /// Bytes with a valid CRC cannot cause a panic.
        #[test]
        fn any_bytes_are_a_frame_or_an_error(
            plain in proptest::collection::vec(any::<u8>(), 0..200), promised in any::<u64>(),
        ) {
            let _ = Frame::read(&mut &*plain, |_| true);
            let bytes = promising(&plain, promised);
            prop_assert!(promised == plain.len() as u64 || Frame::unpack(&bytes).is_err());
        }
    }

    #[test]
    fn large_count_reserves_no_memory() {
        let mut plain = Vec::new();
        put_varint(&mut plain, u64::MAX);
        assert_eq!(Frame::read(&mut &*plain, |_| true), Err(FrameError::Length));
        assert_eq!(Frame::unpack(&[9, 0, 0, 0, 0, 0]), Err(FrameError::Form(9)));
        assert_eq!(Frame::unpack(&[]), Err(FrameError::Length));
    }
}

#[cfg(test)]
mod digest_tests {
    use proptest::prelude::*;

    use super::*;

    type Readings = Vec<(SweepInterval, u32, u32, Vec<(u8, u64)>)>;

    fn digest(readings: &Readings) -> Digest {
        let mut digest = Digest::default();
        for (span, port, after, values) in readings {
            digest.begin(*span);
            digest.push(*port, *after, values.iter().copied());
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
