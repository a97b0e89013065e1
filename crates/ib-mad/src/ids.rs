//! Identifiers on the wire: GUIDs, LIDs, port numbers.

use std::fmt;
use std::str::FromStr;

/// A 64-bit EUI-64 identifier of a node, a port or a system (IBTA 1.4, chapter 4).
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Guid(pub u64);

/// The digits of a hexadecimal number with `0x`.
pub(crate) fn after_0x(text: &str) -> Option<&str> {
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

/// The largest LMC, which has 3 bits: a port has at most 128 LIDs.
pub const MAX_LMC: u8 = 7;

/// A local identifier: the address that the subnet manager assigned to a port. 0 means none yet.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Lid(pub u16);

impl Lid {
    /// The permissive LID: no LID, in a pure directed route.
    pub const PERMISSIVE: Lid = Lid(0xffff);

    /// Whether it is one of the 2^LMC LIDs of a port that has the other one. The first of them is a multiple of their
    /// number (IBTA 1.4, 4.1.3).
    pub fn is_of_same_port(self, other: Lid, lmc: u8) -> bool {
        (self.0 ^ other.0) >> lmc.min(MAX_LMC) == 0
    }

    /// Whether it is a unicast LID: 0x0001 to 0xbfff (IBTA 1.4, 4.1.3).
    pub fn is_unicast(self) -> bool {
        (0x0001..=0xbfff).contains(&self.0)
    }
}

/// Number of a port on its node, from 1 on; 0 is the management port of a switch.
pub type PortNumber = u8;

/// Label of a port: `leaf-1 port 7`.
pub fn port_label(node: &str, number: PortNumber) -> String {
    format!("{node} port {number}")
}

/// The same with its name at the front panel, if it has one beside its number: `leaf-1 port 37 (1/19/1)`.
pub fn port_label_with(node: &str, number: PortNumber, front_panel: Option<&str>) -> String {
    let label = port_label(node, number);
    match front_panel.filter(|panel| panel.parse() != Ok(number)) {
        Some(panel) => format!("{label} ({panel})"),
        None => label,
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

/// As in metrics, logs and node-name-map files. Digit by digit: the metrics of 60,000 ports have half a million of them,
/// and the formatter of numbers takes four times as long.
impl fmt::Display for Guid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut text = *b"0x0000000000000000";
        for (digit, shift) in text[2..].iter_mut().zip((0..16).rev()) {
            *digit = b"0123456789abcdef"[(self.0 >> (4 * shift)) as usize & 0xf];
        }
        f.write_str(str::from_utf8(&text).unwrap_or_default())
    }
}

impl fmt::Debug for Guid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

display! {
    Lid "{}" Display Debug;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn guid_parses_own_and_sysfs_format() {
        let guid = Guid(0x0002_c903_0000_0001);
        assert_eq!(guid.to_string(), "0x0002c90300000001");
        assert_eq!(format!("{:?}", Guid(0xfedc_ba98_7654_3210)), "0xfedcba9876543210");
        for text in ["0x0002c90300000001", "2c90300000001", "0002:c903:0000:0001"] {
            assert_eq!(text.parse(), Ok(guid), "{text}");
        }
        assert!("0xnonsense".parse::<Guid>().is_err());
    }

    #[test]
    fn label_has_the_front_panel_unless_it_is_the_number() {
        for (panel, label) in [
            (None, "leaf port 37"),
            (Some("1/19/1"), "leaf port 37 (1/19/1)"),
            (Some("37"), "leaf port 37"),
            (Some("36"), "leaf port 37 (36)"),
        ] {
            assert_eq!(port_label_with("leaf", 37, panel), label);
        }
    }

    #[test]
    fn lids_of_a_port_differ_in_lmc_bits() {
        for (lid, lmc, same) in [
            (0x50, 0, true),
            (0x51, 0, false),
            (0x53, 2, true),
            (0x54, 2, false),
            (0x4f, 2, false),
            (0x7f, 7, true),
            (0x80, 7, false),
            (0x80, u8::MAX, false),
        ] {
            assert_eq!(Lid(lid).is_of_same_port(Lid(0x50), lmc), same, "{lid:#x} {lmc}");
        }
    }

    #[test]
    fn only_unicast_lids_are_addressable() {
        for (lid, unicast) in
            [(0, false), (1, true), (0xbfff, true), (0xc000, false), (0xffff, false)]
        {
            assert_eq!(Lid(lid).is_unicast(), unicast, "{lid:#06x}");
        }
    }
}
