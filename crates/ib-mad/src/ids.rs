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

/// Label of a port: `leaf-1 port 7`.
pub fn port_label(node: &str, number: PortNumber) -> String {
    format!("{node} port {number}")
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
}
