//! A fingerprint of samples, from which is seen whether their text is still the same without writing it.

/// Digits of 2^64 divided by the golden ratio, odd: multiplying by it loses nothing.
const FACTOR: u64 = 0x9e37_79b9_7f4a_7c15;

/// 64 bits made from everything that determines a text.
///
/// Each step is invertible in the value and in what was there before, so texts that differ in one value never have the
/// same fingerprint. Those that differ in several have it by chance, once in 2^64 comparisons.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Fingerprint(u64);

impl Default for Fingerprint {
    fn default() -> Self {
        Fingerprint(FACTOR)
    }
}

impl Fingerprint {
    #[inline]
    pub fn number(&mut self, value: u64) {
        let product = (self.0 ^ value).wrapping_mul(FACTOR);
        self.0 = product ^ (product >> 32);
    }

    /// Adds a text and its length, so that it does not continue in the next.
    #[inline]
    pub fn text(&mut self, text: &[u8]) {
        self.number(text.len() as u64);
        // Eight bytes at a time, and the last ones without a loop over each: some of them twice.
        if let Some(last) = text.last_chunk() {
            for word in text[..text.len() - 1].as_chunks().0 {
                self.number(u64::from_le_bytes(*word));
            }
            self.number(u64::from_le_bytes(*last));
        } else if let (Some(first), Some(last)) = (text.first_chunk(), text.last_chunk()) {
            let (first, last) = (u32::from_le_bytes(*first), u32::from_le_bytes(*last));
            self.number(u64::from(first) | u64::from(last) << 32);
        } else if let (Some(first), Some(last)) = (text.first(), text.last()) {
            let middle = text[text.len() / 2];
            self.number(u64::from_le_bytes([*first, middle, *last, 0, 0, 0, 0, 0]));
        }
    }

    /// Adds what another one was made from.
    #[inline]
    pub fn all_of(&mut self, other: Fingerprint) {
        self.number(other.0);
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    #[test]
    fn every_bit_and_every_place_counts() {
        let of = |values: &[u64]| {
            let mut fingerprint = Fingerprint::default();
            for value in values {
                fingerprint.number(*value);
            }
            fingerprint.0
        };
        let mut seen = HashSet::new();
        // Counters of 64 ports, any one or two of which have counted up to 2^63.
        for one in 0..64 {
            for other in 0..=one {
                for bit in 0..64 {
                    let mut values = [0; 64];
                    values[one] = 1 << bit;
                    values[other] |= 1;
                    assert!(seen.insert(of(&values)) || bit == 0, "{one} {other} {bit}");
                }
            }
        }
        assert!(seen.insert(of(&[])) && seen.insert(of(&[0])) && seen.insert(of(&[0, 0])));
    }

    #[test]
    fn texts_of_any_length_differ() {
        let of = |texts: &[&str]| {
            let mut fingerprint = Fingerprint::default();
            for text in texts {
                fingerprint.text(text.as_bytes());
            }
            fingerprint.0
        };
        let long = "0123456789abcdef".repeat(4);
        let beginnings: HashSet<u64> = (0..=long.len()).map(|end| of(&[&long[..end]])).collect();
        assert_eq!(beginnings.len(), long.len() + 1);
        let divided: HashSet<u64> =
            (0..=long.len()).map(|at| of(&[&long[..at], &long[at..]])).collect();
        assert_eq!(divided.len(), long.len() + 1);
        assert_ne!(of(&["a\0"]), of(&["a"]));
    }
}
