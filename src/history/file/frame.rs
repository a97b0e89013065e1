//! What the counters of a fabric have grown by in a sweep, packed.
//!
//! A frame is a byte that says how it is written, a CRC, the length of the plain form, and that form
//! packed by zstd. The plain form is columns: ports in rising order as steps from one to the next, when
//! each was read, which counters it has, and their values; what is alike stands together, and packs well.
//! Level 1, for a million counters then take ten milliseconds, and higher levels save little.

use std::time::Duration;

use thiserror::Error;

use super::varint;

/// How frames are written at present.
const FORM: u8 = 1;

/// What stands before the length: the form and the CRC.
const HEAD: usize = 5;

/// The longest plain form: more than the counters of 162,000 ports take, each with its largest value.
const MOST_PLAIN: u64 = 64 << 20;

/// The level of packing.
const LEVEL: i32 = 1;

/// Why bytes are no frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum FrameError {
    /// They end too soon, or go on.
    #[error("a frame of counters has not the length that it should have")]
    Length,
    /// They were written by another version.
    #[error("a frame of counters is written in form {0}, which is not known here")]
    Form(u8),
    /// They are not what was written.
    #[error("a frame of counters is damaged: its CRC is another one")]
    Crc,
    /// They are whole, and make no sense.
    #[error("a frame of counters cannot be unpacked")]
    Packing,
    /// A number is not one that can stand there.
    #[error("a frame of counters has a number that it cannot have")]
    Number,
}

/// A port in a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Entry {
    /// The port, as the file counts them.
    pub port: u32,
    /// When it was read: milliseconds since the sweep began.
    pub after: u32,
    /// One bit a counter that it has a value of, as the file counts them.
    pub counters: u64,
    /// Where its values begin.
    first: u32,
}

/// Values of counters, by port.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Frame {
    entries: Vec<Entry>,
    values: Vec<u64>,
}

impl Frame {
    /// Adds a port, if it has any value; `values` by counter, the lowest first.
    pub fn push(
        &mut self,
        port: u32,
        after: Duration,
        values: impl IntoIterator<Item = (u8, u64)>,
    ) {
        let first = self.values.len() as u32;
        let mut counters = 0;
        for (counter, value) in values {
            counters |= 1 << (counter & 63);
            self.values.push(value);
        }
        if counters != 0 {
            let after = u32::try_from(after.as_millis()).unwrap_or(u32::MAX);
            self.entries.push(Entry { port, after, counters, first });
        }
    }

    /// Whether nothing is in it.
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// The ports in it; sorted, if it was unpacked.
    pub fn entries(&self) -> &[Entry] {
        &self.entries
    }

    /// An entry's counters with their values.
    pub fn values(&self, entry: &Entry) -> impl Iterator<Item = (u8, u64)> + use<'_> {
        let Entry { counters, first, .. } = *entry;
        let counters = (0..64u8).filter(move |counter| counters >> counter & 1 == 1);
        counters.zip(self.values.iter().skip(first as usize).copied())
    }

    /// The entry of a port; the frame must have been unpacked.
    pub fn of(&self, port: u32) -> Option<&Entry> {
        let at = self.entries.binary_search_by_key(&port, |entry| entry.port).ok()?;
        self.entries.get(at)
    }

    /// Packs it. Of a port that is in it more than once each entry counts.
    pub fn pack(&mut self) -> std::io::Result<Vec<u8>> {
        let mut plain = Vec::with_capacity(self.entries.len() * 8 + self.values.len() * 3);
        let mut order = self.entries.clone();
        order.sort_by_key(|entry| entry.port);
        varint::put(&mut plain, order.len() as u64);
        let mut last = 0;
        for entry in &order {
            varint::put(&mut plain, u64::from(entry.port - last));
            last = entry.port;
        }
        for entry in &order {
            varint::put(&mut plain, u64::from(entry.after));
        }
        for entry in &order {
            varint::put(&mut plain, entry.counters);
        }
        for entry in &order {
            for (_, value) in self.values(entry) {
                varint::put(&mut plain, value);
            }
        }
        let mut tail = Vec::new();
        varint::put(&mut tail, plain.len() as u64);
        tail.extend(zstd::bulk::compress(&plain, LEVEL)?);
        let mut bytes = Vec::with_capacity(HEAD + tail.len());
        bytes.push(FORM);
        bytes.extend(crc32fast::hash(&tail).to_le_bytes());
        bytes.extend(tail);
        Ok(bytes)
    }

    /// Unpacks what [`pack`](Self::pack) made, ports in rising order.
    pub fn unpack(bytes: &[u8]) -> Result<Self, FrameError> {
        let (&[form, ref crc @ ..], mut tail) =
            bytes.split_first_chunk::<HEAD>().ok_or(FrameError::Length)?;
        if form != FORM {
            return Err(FrameError::Form(form));
        }
        if crc32fast::hash(tail).to_le_bytes() != *crc {
            return Err(FrameError::Crc);
        }
        let length = varint::take(&mut tail).filter(|length| *length <= MOST_PLAIN);
        let length = length.ok_or(FrameError::Length)? as usize;
        let plain = zstd::bulk::decompress(tail, length).map_err(|_| FrameError::Packing)?;
        if plain.len() != length {
            return Err(FrameError::Length);
        }
        Self::read(&plain)
    }

    fn read(mut plain: &[u8]) -> Result<Self, FrameError> {
        let mut take = || varint::take(&mut plain).ok_or(FrameError::Length);
        let count = take()?;
        // The length of the text limits what is made of it: nothing is reserved on a promise.
        let mut entries = Vec::new();
        let mut port = 0u32;
        for _ in 0..count {
            let step = u32::try_from(take()?).map_err(|_| FrameError::Number)?;
            port = port.checked_add(step).ok_or(FrameError::Number)?;
            entries.push(Entry { port, after: 0, counters: 0, first: 0 });
        }
        for entry in &mut entries {
            entry.after = u32::try_from(take()?).map_err(|_| FrameError::Number)?;
        }
        let mut first = 0;
        for entry in &mut entries {
            (entry.counters, entry.first) = (take()?, first);
            first = first.checked_add(entry.counters.count_ones()).ok_or(FrameError::Number)?;
        }
        let mut values = Vec::new();
        for _ in 0..first {
            values.push(take()?);
        }
        if plain.is_empty() { Ok(Frame { entries, values }) } else { Err(FrameError::Length) }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use proptest::prelude::*;

    use super::*;

    type Ports = BTreeMap<u32, (u32, BTreeMap<u8, u64>)>;

    fn frame(ports: &Ports) -> Frame {
        let mut frame = Frame::default();
        // Backwards, for who pushes need not know the order.
        for (port, (after, values)) in ports.iter().rev() {
            let values = values.iter().map(|(counter, value)| (*counter, *value));
            frame.push(*port, Duration::from_millis((*after).into()), values);
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
        fn what_is_packed_is_unpacked(ports in ports()) {
            let unpacked = Frame::unpack(&frame(&ports).pack().unwrap()).unwrap();
            let told: Ports = unpacked.entries().iter().map(|entry| {
                (entry.port, (entry.after, unpacked.values(entry).collect()))
            }).collect();
            prop_assert_eq!(&told, &ports);
            for port in ports.keys() {
                prop_assert_eq!(unpacked.of(*port).map(|entry| entry.port), Some(*port));
            }
        }

        #[test]
        fn damage_is_an_error(ports in ports(), at: prop::sample::Index, bit in 0u8..8, cut: bool) {
            let mut bytes = frame(&ports).pack().unwrap();
            let at = at.index(bytes.len());
            if cut { bytes.truncate(at) } else { bytes[at] ^= 1 << bit }
            prop_assert!(Frame::unpack(&bytes).is_err());
        }

        /// Whoever makes the CRC right still makes nothing panic.
        #[test]
        fn any_plain_text_is_a_frame_or_an_error(
            plain in proptest::collection::vec(any::<u8>(), 0..200), promised in any::<u64>(),
        ) {
            let _ = Frame::read(&plain);
            let mut tail = Vec::new();
            varint::put(&mut tail, promised);
            tail.extend(zstd::bulk::compress(&plain, LEVEL).unwrap());
            let mut bytes = vec![FORM];
            bytes.extend(crc32fast::hash(&tail).to_le_bytes());
            bytes.extend(tail);
            prop_assert!(promised == plain.len() as u64 || Frame::unpack(&bytes).is_err());
        }
    }

    #[test]
    fn a_promise_of_much_reserves_nothing() {
        let mut plain = Vec::new();
        varint::put(&mut plain, u64::MAX);
        assert_eq!(Frame::read(&plain), Err(FrameError::Length));
        assert_eq!(Frame::unpack(&[9, 0, 0, 0, 0, 0]), Err(FrameError::Form(9)));
        assert_eq!(Frame::unpack(&[]), Err(FrameError::Length));
    }
}
