//! Declarative attribute layouts: one list of fields per attribute generates the struct, the decoder and
//! the encoder, so the exporter and the simulator agree on every offset.

use crate::ids::{Guid, Lid};
use crate::mad::{DATA, LEN, Mad};
use crate::port_state::{PhysicalState, PortState};

/// Location of a field in a MAD.
///
/// The constructors panic on invalid input: call them in constants, as `attribute!` does, so that the
/// compiler reports it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bits {
    /// Offset of its highest bit from the start of the MAD.
    pub(crate) first: u16,
    pub(crate) width: u8,
}

/// `width` bits from bit `first` of the attribute's data on; bit 0 is the highest of byte 0.
///
/// # Panics
/// For a width of 0, bits past the end of the data, or across more than eight bytes.
pub const fn bits(first: u16, width: u8) -> Bits {
    assert!(width > 0 && first % 8 + width as u16 <= 64, "one load reads it");
    Bits { first: first + DATA as u16 * 8, width }.inside()
}

/// One byte.
pub const fn byte(offset: u16) -> Bits {
    bits(offset * 8, 8)
}

/// `count` bytes, big-endian.
pub const fn bytes(offset: u16, count: u8) -> Bits {
    bits(offset * 8, count * 8)
}

/// The upper four bits of a byte.
pub const fn high(offset: u16) -> Bits {
    bits(offset * 8, 4)
}

/// The lower four bits of a byte.
pub const fn low(offset: u16) -> Bits {
    bits(offset * 8 + 4, 4)
}

/// Bits `high` to `low` of the big-endian dword at a byte of the MAD, as register tables write them: bit 0 is the
/// lowest.
///
/// # Panics
/// For bits that are no part of the dword, or past the end of the MAD.
pub const fn dword_at(byte: usize, high: u8, low: u8) -> Bits {
    assert!(high < 32 && low <= high, "bits of a dword");
    Bits { first: byte as u16 * 8 + 31 - high as u16, width: high - low + 1 }.inside()
}

/// `count` bytes at a byte of the MAD, big-endian; of an array, its first element.
///
/// # Panics
/// Past the end of the MAD.
pub const fn bytes_at(byte: usize, count: u8) -> Bits {
    Bits { first: byte as u16 * 8, width: count * 8 }.inside()
}

impl Bits {
    const fn inside(self) -> Self {
        assert!(self.first as usize + self.width as usize <= LEN * 8, "inside the MAD");
        self
    }

    /// Offset in the MAD and number of the bytes that hold the field, and the number of bits below it in the last one.
    const fn span(self) -> (usize, usize, usize) {
        let (start, end) = (self.first as usize / 8, self.first as usize + self.width as usize);
        let last = end.div_ceil(8);
        (start, last - start, last * 8 - end)
    }

    pub(crate) const fn max(self) -> u64 {
        u64::MAX >> (64 - self.width as u32)
    }

    /// Location of an element of an array whose first element is here.
    const fn element(self, index: usize) -> Bits {
        Bits { first: self.first + index as u16 * self.width as u16, width: self.width }
    }
}

/// These bits, checked to hold a `T`.
///
/// # Panics
/// If the bits do not fit into a `T`, or an array passes the end of the data.
pub const fn checked<T: Field>(bits: Bits) -> Bits {
    assert!(bits.width <= T::WIDTH, "the type holds all bits");
    assert!(bits.first as usize + bits.width as usize * T::COUNT <= LEN * 8);
    bits
}

impl Mad {
    /// The value of bits.
    #[inline]
    pub fn bits(&self, bits: Bits) -> u64 {
        let (start, count, shift) = bits.span();
        self.be(start, count) >> shift & bits.max()
    }

    /// Sets bits to the low bits of a value; all other bits keep their value.
    #[inline]
    pub fn set_bits(&mut self, bits: Bits, value: u64) {
        let (start, count, shift) = bits.span();
        let others = self.be(start, count) & !(bits.max() << shift);
        self.put_be(start, count, others | (value & bits.max()) << shift);
    }
}

/// A type of fields.
pub trait Field: Copy {
    /// Bits of one element.
    const WIDTH: u8;
    /// Number of consecutive elements.
    const COUNT: usize = 1;

    /// Reads the field.
    fn read(mad: &Mad, bits: Bits) -> Self;

    /// Writes the field, and no other bits.
    fn write(self, mad: &mut Mad, bits: Bits);
}

macro_rules! fields {
    ($($type:ty: $width:literal, |$value:ident| $read:expr, |$field:ident| $write:expr;)+) => {$(
        impl Field for $type {
            const WIDTH: u8 = $width;

            #[inline]
            fn read(mad: &Mad, bits: Bits) -> Self {
                let $value = mad.bits(bits);
                $read
            }

            #[inline]
            fn write(self, mad: &mut Mad, bits: Bits) {
                let $field = self;
                mad.set_bits(bits, $write);
            }
        }
    )+};
}

fields! {
    bool: 1, |value| value != 0, |field| field.into();
    u8: 8, |value| value as u8, |field| field.into();
    u16: 16, |value| value as u16, |field| field.into();
    u32: 32, |value| value as u32, |field| field.into();
    u64: 64, |value| value, |field| field;
    Guid: 64, |value| Guid(value), |field| field.0;
    Lid: 16, |value| Lid(value as u16), |field| field.0.into();
    PortState: 4, |value| PortState::from_code(value as u8), |field| field.code().into();
    PhysicalState: 4, |value| PhysicalState::from_code(value as u8), |field| field.code().into();
}

/// An array: the bits are those of its first element, and the others follow without a gap.
impl<T: Field, const N: usize> Field for [T; N] {
    const WIDTH: u8 = T::WIDTH;
    const COUNT: usize = N * T::COUNT;

    #[inline]
    fn read(mad: &Mad, bits: Bits) -> Self {
        std::array::from_fn(|index| T::read(mad, bits.element(index)))
    }

    #[inline]
    fn write(self, mad: &mut Mad, bits: Bits) {
        for (index, element) in self.into_iter().enumerate() {
            element.write(mad, bits.element(index));
        }
    }
}

/// Generates an attribute from the list of its fields, each with its type, location and documentation: the
/// struct, its id, `decode` and `encode`. The smallest example is [`SmInfo`](crate::smp::SmInfo).
macro_rules! attribute {
    ($(#[$about:meta])* pub struct $name:ident = $id:literal {
        $($field:ident: $type:ty = $bits:expr, $doc:literal;)+
    }) => {
        $(#[$about])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
        pub struct $name { $(#[doc = $doc] pub $field: $type,)+ }

        impl $name {
            /// AttributeID.
            pub const ID: u16 = $id;

            /// Name, location and number of elements of each field.
            #[cfg(test)]
            pub(in crate) const FIELDS: &[(&str, $crate::layout::Bits, usize)] =
                &[$((
                    stringify!($field),
                    $bits,
                    <$type as $crate::layout::Field>::COUNT,
                )),+];

            /// Decodes the attribute of a response.
            #[inline]
            pub fn decode(mad: &$crate::mad::Mad) -> Self {
                use $crate::layout::{Field, checked};
                $name { $($field: Field::read(mad, const { checked::<$type>($bits) }),)+ }
            }

            /// Encodes the attribute: its own fields, and no other bits.
            pub fn encode(&self, mad: &mut $crate::mad::Mad) {
                use $crate::layout::{Field, checked};
                $(Field::write(self.$field, mad, const { checked::<$type>($bits) });)+
            }
        }
    };
}

pub(super) use attribute;

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::class_port_info::ClassPortInfo;
    use crate::clear::CounterSelect;
    use crate::fec::{PortExtendedSpeedsCounters, PortInfoExtended};
    use crate::forwarding_table::LinearForwardingTable;
    use crate::hierarchy::HierarchyInfo;
    use crate::pma::PortSamplesControl;
    use crate::port_info::{MellanoxExtendedPortInfo, PortInfo};
    use crate::register::{
        CountersSelect, DiagnosticSelect, FanLimits, FanSpeed, Fans, FecHistogram, LinkDown,
        Module, PhysicalStatistics, PowerSupplies, Temperature, Temperatures, Troubleshooting,
    };
    use crate::smp::{NodeInfo, PKeyTable, SmInfo, SwitchInfo, SwitchPortStateTable};
    use crate::vendor::GeneralInfo;
    use crate::vendor_smp::{AdaptiveRoutingInfo, ExtendedNodeInfo, SmpCapabilities};

    /// The checks of every attribute, with the bits of one MAD and of another.
    trait Checked: Copy + PartialEq + std::fmt::Debug {
        const FIELDS: &'static [(&'static str, Bits, usize)];
        fn decode(mad: &Mad) -> Self;
        fn encode(&self, mad: &mut Mad);

        /// The bits of a MAD that the fields cover.
        fn mask() -> Mad {
            let mut mask = Mad([0; LEN]);
            for &(name, bits, count) in Self::FIELDS {
                for index in 0..count {
                    let bits = bits.element(index);
                    assert_eq!(mask.bits(bits), 0, "{name} overlaps");
                    mask.set_bits(bits, u64::MAX);
                }
            }
            mask
        }

        fn check(from: &Mad, onto: &Mad) {
            let read = Self::decode(from);
            let mut written = onto.clone();
            read.encode(&mut written);
            assert_eq!(Self::decode(&written), read);
            for (index, mask) in Self::mask().0.into_iter().enumerate() {
                let expected = from.0[index] & mask | onto.0[index] & !mask;
                assert_eq!(written.0[index], expected, "byte {index} of {read:?}");
            }
        }
    }

    macro_rules! checked_attributes {
        ($($name:ident: $last:expr),+) => {
            $(impl Checked for $name {
                const FIELDS: &'static [(&'static str, Bits, usize)] = $name::FIELDS;
                fn decode(mad: &Mad) -> Self {
                    $name::decode(mad)
                }
                fn encode(&self, mad: &mut Mad) {
                    $name::encode(self, mad);
                }
            })+

            fn check_all(from: &Mad, onto: &Mad) {
                $(<$name as Checked>::check(from, onto);)+
            }

            #[test]
            fn fields_end_within_attribute() {
                $(let end = <$name as Checked>::mask().0.iter().rposition(|&byte| byte != 0);
                assert_eq!(end, Some(DATA.wrapping_add_signed($last)), stringify!($name));)+
            }
        };
    }

    // With the last byte of each; in subnet management the path follows byte 63.
    checked_attributes! {
        NodeInfo: 39, SwitchInfo: 19, PortInfo: 63, PKeyTable: 63, SmInfo: 20, SwitchPortStateTable: 63,
        Sample: 15, PortInfoExtended: 21, MellanoxExtendedPortInfo: 47,
        ClassPortInfo: 71, PortSamplesControl: 19, PortExtendedSpeedsCounters: 151,
        CounterSelect: 18, GeneralInfo: 111, PhysicalStatistics: 111, FecHistogram: 107,
        Troubleshooting: -13, LinkDown: -9, Module: 138, Temperature: 3, Temperatures: 115, CountersSelect: -25,
        DiagnosticSelect: -21, Fans: -23, FanSpeed: -21, FanLimits: -23,
        PowerSupplies: 131, HierarchyInfo: 63, SmpCapabilities: 15, ExtendedNodeInfo: 19,
        LinearForwardingTable: 63, AdaptiveRoutingInfo: 3
    }

    fn any_mad() -> impl Strategy<Value = Mad> {
        proptest::collection::vec(any::<u8>(), LEN)
            .prop_map(|bytes| Mad(std::array::from_fn(|index| bytes[index])))
    }

    proptest! {
        #[test]
        fn attribute_round_trip_keeps_other_bits(
            from in any_mad(), onto in any_mad(),
        ) {
            check_all(&from, &onto);
        }

        #[test]
        fn set_bits_keeps_other_bits(
            onto in any_mad(), first in 0u16..1400, width in 1u8..=57, value: u64,
        ) {
            let field = bits(first, width);
            let mut mad = onto.clone();
            mad.set_bits(field, value);
            prop_assert_eq!(mad.bits(field), value & field.max());
            mad.set_bits(field, onto.bits(field));
            prop_assert_eq!(mad, onto);
        }
    }

    attribute! {
        /// One field of each kind.
        pub struct Sample = 0x7fff {
            upper: u8 = high(0), "Four bits.";
            lower: u8 = low(0), "Four bits.";
            flag: bool = bits(8 + 2, 1), "One bit.";
            across: u32 = bits(8 + 4, 20), "Bits across bytes.";
            table: [u8; 3] = bits(4 * 8, 2), "An array of bits.";
            guid: Guid = bytes(8, 8), "Eight bytes.";
        }
    }

    #[test]
    fn bit_0_is_the_most_significant() {
        let mut mad = Mad([0; LEN]);
        let sample = Sample {
            upper: 0xa,
            lower: 0x5,
            flag: true,
            across: 0x12345,
            table: [1, 2, 3],
            guid: Guid(0x0102_0304_0506_0708),
        };
        sample.encode(&mut mad);
        assert_eq!(mad.data()[..8], [0xa5, 0x21, 0x23, 0x45, 0b0110_1100, 0, 0, 0]);
        assert_eq!(mad.data()[8..17], [1, 2, 3, 4, 5, 6, 7, 8, 0]);
        assert_eq!(Sample::decode(&mad), sample);
        assert_eq!(Sample::ID, 0x7fff);
    }

    #[test]
    fn oversized_value_is_truncated() {
        let mut mad = Mad([0; LEN]);
        Sample { upper: 0xff, ..Sample::default() }.encode(&mut mad);
        assert_eq!(mad.data()[..2], [0xf0, 0]);
    }
}
