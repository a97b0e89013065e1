//! What the counters of a fabric have grown by in a sweep, packed.
//!
//! The plain form is columns: ports in rising order as steps from one to the next, when each was read,
//! which counters it has, and their values; what is alike stands together, and packs well
//! ([`packed`] says how).

use std::time::Duration;

use crate::OutOfNumbers;

use super::packed::{self, FrameError};
use super::varint;

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

impl Entry {
    /// One that says nothing but of whom it is, and when it was read.
    pub fn of(port: u32, after: u32) -> Self {
        Entry { port, after, counters: 0, first: 0 }
    }
}

/// Values of counters, by port.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Frame {
    entries: Vec<Entry>,
    values: Vec<u64>,
    /// A counter's number that has no bit in an entry: a frame with one cannot be packed.
    unfit: Option<u8>,
}

impl Frame {
    /// Adds a port, if it has any value; `values` by counter, the lowest first.
    pub fn push(
        &mut self,
        port: u32,
        after: Duration,
        values: impl IntoIterator<Item = (u8, u64)>,
    ) {
        let after = u32::try_from(after.as_millis()).unwrap_or(u32::MAX);
        self.push_after(port, after, values);
    }

    /// The same, `after` in milliseconds.
    pub fn push_after(
        &mut self,
        port: u32,
        after: u32,
        values: impl IntoIterator<Item = (u8, u64)>,
    ) {
        let first = self.values.len() as u32;
        let mut counters = 0;
        for (counter, value) in values {
            let Some(bit) = 1u64.checked_shl(counter.into()) else {
                self.unfit = Some(counter);
                continue;
            };
            counters |= bit;
            self.values.push(value);
        }
        if counters != 0 {
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
        let Entry { mut counters, first, .. } = *entry;
        let counters = std::iter::from_fn(move || {
            let lowest = counters.trailing_zeros();
            counters &= counters.wrapping_sub(1);
            (lowest < 64).then_some(lowest as u8)
        });
        counters.zip(self.values.iter().skip(first as usize).copied())
    }

    /// The entry of a port; the frame must have been unpacked.
    pub fn of(&self, port: u32) -> Option<&Entry> {
        let at = self.entries.binary_search_by_key(&port, |entry| entry.port).ok()?;
        self.entries.get(at)
    }

    /// Packs it. Of a port that is in it more than once each entry counts.
    pub fn pack(&self) -> std::io::Result<Vec<u8>> {
        self.ensure_fit()?;
        let mut plain = Vec::with_capacity(self.entries.len() * 8 + self.values.len() * 3);
        self.write(&self.order(), &mut plain);
        packed::pack(&plain)
    }

    /// An error if a counter has a number that is not one of a frame's 64.
    pub(super) fn ensure_fit(&self) -> std::io::Result<()> {
        match self.unfit {
            None => Ok(()),
            Some(number) => Err(std::io::Error::other(OutOfNumbers::Counters(number.into()))),
        }
    }

    /// The places of its entries by port; those of one port as they were pushed.
    pub(super) fn order(&self) -> Vec<u32> {
        let mut order: Vec<u32> = (0..self.entries.len() as u32).collect();
        order.sort_by_key(|at| self.entries[*at as usize].port);
        order
    }

    /// Writes the entries at some places, which are by port.
    pub(super) fn write(&self, order: &[u32], plain: &mut Vec<u8>) {
        let order = || order.iter().filter_map(|at| self.entries.get(*at as usize));
        varint::put(plain, order().count() as u64);
        let mut last = 0;
        for entry in order() {
            varint::put(plain, u64::from(entry.port - last));
            last = entry.port;
        }
        for entry in order() {
            varint::put(plain, u64::from(entry.after));
        }
        for entry in order() {
            varint::put(plain, entry.counters);
        }
        for entry in order() {
            for (_, value) in self.values(entry) {
                varint::put(plain, value);
            }
        }
    }

    /// Unpacks what [`pack`](Self::pack) made, ports in rising order.
    pub fn unpack(bytes: &[u8]) -> Result<Self, FrameError> {
        Self::unpack_of(bytes, |_| true)
    }

    /// The same of some ports alone: of one in a part of 1,024 it takes half of the time.
    pub fn unpack_of(bytes: &[u8], wanted: impl Fn(u32) -> bool) -> Result<Self, FrameError> {
        let plain = packed::unpack(bytes)?;
        let mut rest = &*plain;
        let frame = Self::read(&mut rest, wanted)?;
        if rest.is_empty() { Ok(frame) } else { Err(FrameError::Length) }
    }

    /// Reads what [`write`](Self::write) wrote, from the front of what is there.
    pub(super) fn read(
        plain: &mut &[u8],
        wanted: impl Fn(u32) -> bool,
    ) -> Result<Self, FrameError> {
        let mut take = || varint::take(plain).ok_or(FrameError::Length);
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
        let mut all = 0u32;
        for entry in &mut entries {
            entry.counters = take()?;
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
            varint::skip(plain, std::mem::take(&mut passed)).ok_or(FrameError::Length)?;
            kept.push(Entry { first: values.len() as u32, ..entry });
            for _ in 0..count {
                values.push(varint::take(plain).ok_or(FrameError::Length)?);
            }
        }
        varint::skip(plain, passed).ok_or(FrameError::Length)?;
        Ok(Frame { entries: kept, values, unfit: None })
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
            let some = |port: u32| port.is_multiple_of(3);
            let of = Frame::unpack_of(&frame(&ports).pack().unwrap(), some).unwrap();
            for (port, (after, values)) in &ports {
                let entry = of.of(*port);
                let told = entry.map(|entry| (entry.after, of.values(entry).collect()));
                prop_assert_eq!(told, some(*port).then(|| (*after, values.clone())));
            }
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
            let _ = Frame::read(&mut &*plain, |_| true);
            let bytes = packed::promising(&plain, promised);
            prop_assert!(promised == plain.len() as u64 || Frame::unpack(&bytes).is_err());
        }
    }

    #[test]
    fn a_counter_without_a_bit_is_not_taken_for_another() {
        for number in [64, 65, 127, 255] {
            let mut frame = Frame::default();
            frame.push_after(1, 0, [(0, 7), (number, 5)]);
            assert!(frame.pack().is_err(), "{number}");
        }
    }

    #[test]
    fn a_promise_of_much_reserves_nothing() {
        let mut plain = Vec::new();
        varint::put(&mut plain, u64::MAX);
        assert_eq!(Frame::read(&mut &*plain, |_| true), Err(FrameError::Length));
        assert_eq!(Frame::unpack(&[9, 0, 0, 0, 0, 0]), Err(FrameError::Form(9)));
        assert_eq!(Frame::unpack(&[]), Err(FrameError::Length));
    }
}
