//! Identifiers on the wire: GUIDs, LIDs, port numbers, P_Keys.

use std::fmt;
use std::str::FromStr;

use serde::Deserialize;

/// A 64-bit EUI-64 identifier of a node, a port or a system (IBTA 1.4, chapter 4).
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Guid(pub u64);

/// The digits of a hexadecimal number with `0x`.
fn after_0x(text: &str) -> Option<&str> {
    text.strip_prefix("0x").or_else(|| text.strip_prefix("0X"))
}

/// The digits of a hexadecimal number with or without `0x`.
pub(crate) fn hex_digits(text: &str) -> &str {
    after_0x(text).unwrap_or(text)
}

impl FromStr for Guid {
    type Err = std::num::ParseIntError;

    /// Parses hexadecimal digits with or without `0x`, and `0002:c903:0000:0001` of sysfs.
    fn from_str(text: &str) -> Result<Self, Self::Err> {
        u64::from_str_radix(&hex_digits(text).replace(':', ""), 16).map(Guid)
    }
}

/// A local identifier: the address that the subnet manager assigned to a port. 0 means none yet.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Lid(pub u16);

impl Lid {
    /// The permissive LID: no LID, in a pure directed route.
    pub const PERMISSIVE: Lid = Lid(0xffff);

    /// Whether it is a unicast LID: 0x0001 to 0xbfff (IBTA 1.4, 4.1.3).
    pub fn is_unicast(self) -> bool {
        (0x0001..=0xbfff).contains(&self.0)
    }
}

/// Number of a port on its node, from 1 on; 0 is the management port of a switch.
pub type PortNumber = u8;

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

macro_rules! display {
    ($($id:ident $format:literal $($trait:ident)+;)+) => {$($(
        impl fmt::$trait for $id {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, $format, self.0)
            }
        }
    )+)+};
}

// GUIDs as in metrics, logs and node-name-map files.
display! {
    Guid "0x{:016x}" Display Debug;
    Lid "{}" Display Debug;
    PKey "{:#06x}" Display Debug;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn guid_parses_own_and_sysfs_format() {
        let guid = Guid(0x0002_c903_0000_0001);
        assert_eq!(guid.to_string(), "0x0002c90300000001");
        for text in ["0x0002c90300000001", "2c90300000001", "0002:c903:0000:0001"] {
            assert_eq!(text.parse(), Ok(guid), "{text}");
        }
        assert!("0xnonsense".parse::<Guid>().is_err());
    }

    #[test]
    fn only_unicast_lids_are_addressable() {
        for (lid, unicast) in
            [(0, false), (1, true), (0xbfff, true), (0xc000, false), (0xffff, false)]
        {
            assert_eq!(Lid(lid).is_unicast(), unicast, "{lid:#06x}");
        }
    }

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
