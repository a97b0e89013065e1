//! Partition keys.

use std::fmt;
use std::str::FromStr;

use serde::Deserialize;

use crate::ids::after_0x;

/// A valid P_Key: the partition of general management packets (IBTA 1.4, 10.9).
///
/// The low 15 bits name the partition, bit 15 marks a full member. Two limited members of a partition
/// cannot communicate: the receiver drops the packet and counts a P_Key violation.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Deserialize)]
#[serde(try_from = "String")]
pub struct PKey(u16);

const FULL: u16 = 0x8000;

impl PKey {
    /// The P_Key with these bits; `None` for an invalid one, such as an empty table entry.
    pub fn new(bits: u16) -> Option<PKey> {
        (bits & !FULL != 0).then_some(PKey(bits))
    }

    /// Whether it marks a full member.
    pub fn is_full(self) -> bool {
        self.0 & FULL != 0
    }

    /// The index in a port's table of the key to send with: the same key, else a full or a limited member of
    /// its partition. The table is read no further than needed: each entry may cost a firmware command.
    pub fn find_in<T: Copy>(self, table: impl IntoIterator<Item = (T, PKey)>) -> Option<(T, PKey)> {
        let mut best: Option<(T, PKey)> = None;
        for (index, key) in table {
            if key == self {
                return Some((index, key));
            }
            let is_better = best.is_none_or(|(_, known)| key.is_full() && !known.is_full());
            let is_same_partition = (key.0 ^ self.0) & !FULL == 0;
            if is_same_partition && is_better {
                best = Some((index, key));
            }
        }
        best
    }
}

impl FromStr for PKey {
    type Err = String;

    /// Parses hexadecimal digits with `0x`, as in sysfs and partitions.conf: without it, 8001 is ambiguous.
    fn from_str(text: &str) -> Result<Self, String> {
        after_0x(text)
            .filter(|digits| digits.bytes().all(|byte| byte.is_ascii_hexdigit()))
            .and_then(|digits| u16::from_str_radix(digits, 16).ok())
            .and_then(PKey::new)
            .ok_or_else(|| format!("{text:?} is not a P_Key such as 0x8001 or 0xffff"))
    }
}

impl TryFrom<String> for PKey {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        text.parse()
    }
}

impl fmt::Display for PKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:#06x}", self.0)
    }
}

impl fmt::Debug for PKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(text: &str) -> PKey {
        text.parse().unwrap()
    }

    #[test]
    fn p_key_parses_only_with_0x() {
        for (text, bits) in [("0x8001", 0x8001), ("0xffff", 0xffff), ("0X1", 1), ("0x7FFF", 0x7fff)]
        {
            assert_eq!(key(text).0, bits, "{text}");
        }
        assert_eq!(key("0x1").to_string(), "0x0001");
        for text in ["8001", "32769", "0x", "0x8000", "0x0", "0x18001", "0x+1", "", "default"] {
            let error = text.parse::<PKey>().unwrap_err();
            assert!(error.contains("such as 0x8001"), "{text}: {error}");
        }
    }

    #[test]
    fn p_key_lookup_prefers_exact_then_full_member() {
        let table =
            |keys: &[&str]| keys.iter().map(|text| key(text)).enumerate().collect::<Vec<_>>();
        for (keys, wanted, place) in [
            (vec!["0xffff", "0x8001"], "0x8001", Some((1, "0x8001"))),
            (vec!["0x0001", "0x8001"], "0x8001", Some((1, "0x8001"))),
            (vec!["0x0001", "0x8001"], "0x0001", Some((0, "0x0001"))),
            (vec!["0xffff", "0x0001"], "0x8001", Some((1, "0x0001"))),
            (vec!["0xffff", "0x8001"], "0x0001", Some((1, "0x8001"))),
            (vec!["0xffff"], "0x8001", None),
            (vec![], "0xffff", None),
        ] {
            let found = key(wanted).find_in(table(&keys));
            assert_eq!(found, place.map(|(place, text)| (place, key(text))), "{keys:?} {wanted}");
        }
    }
}
