//! One description of an attribute's fields for both directions: who reads an answer and who
//! writes one agree on where each field stands, because it is said once.

use crate::{Guid, Lid};

use super::{DATA, LEN, Mad};

/// Where a field stands in an attribute.
///
/// The functions that make one refuse nonsense by a panic: call them in constants, as `attribute!`
/// does, where it is the compiler that refuses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bits {
    /// Its highest bit, from the start of the attribute's data.
    first: u16,
    width: u8,
}

/// Some bits, from the `first` of the attribute's data on; bit 0 is the highest of byte 0.
///
/// # Panics
/// For bits that are none, past the end of the data, or across more than eight bytes.
pub const fn bits(first: u16, width: u8) -> Bits {
    assert!(width > 0 && first % 8 + width as u16 <= 64, "one load reads it");
    assert!(first as usize + width as usize <= (LEN - DATA) * 8, "inside the data");
    Bits { first, width }
}

/// One byte.
pub const fn byte(offset: u16) -> Bits {
    bits(offset * 8, 8)
}

/// Some bytes, the highest first.
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

impl Bits {
    /// The whole bytes that hold it: where they begin in the MAD, and how many they are.
    const fn span(self) -> (usize, usize) {
        let start = self.first as usize / 8;
        let end = (self.first as usize + self.width as usize).div_ceil(8);
        (DATA + start, end - start)
    }

    /// How many bits of its last byte lie below it.
    const fn below(self) -> u32 {
        (8 - (self.first + self.width as u16) % 8) as u32 % 8
    }

    /// The highest value that fits.
    const fn most(self) -> u64 {
        u64::MAX >> (64 - self.width as u32)
    }

    /// Where the element of a table stands whose first one stands here.
    const fn element(self, index: usize) -> Bits {
        Bits { first: self.first + index as u16 * self.width as u16, width: self.width }
    }
}

/// This place, if a `T` can be read from it.
///
/// # Panics
/// If its bits do not fit into a `T`, or a table passes the end of the data.
pub const fn checked<T: Field>(place: Bits) -> Bits {
    assert!(place.width <= T::WIDTH, "the type holds what the bits can say");
    assert!(place.first as usize + place.width as usize * T::COUNT <= (LEN - DATA) * 8);
    place
}

impl Mad {
    /// The value of some bits of the attribute's data.
    #[inline]
    pub fn bits(&self, place: Bits) -> u64 {
        let (start, count) = place.span();
        self.be(start, count) >> place.below() & place.most()
    }

    /// Gives some bits of the attribute's data a value, of which what does not fit is left out;
    /// all other bits stay as they are.
    #[inline]
    pub fn set_bits(&mut self, place: Bits, value: u64) {
        let (start, count) = place.span();
        let around = self.be(start, count) & !(place.most() << place.below());
        self.put_be(start, count, around | (value & place.most()) << place.below());
    }
}

/// A type that fields are read as.
pub trait Field: Copy {
    /// The most bits that it holds.
    const WIDTH: u8;
    /// How many of them stand one after another.
    const COUNT: usize = 1;

    /// Reads it from its place.
    fn read(mad: &Mad, place: Bits) -> Self;

    /// Writes it to its place, and nothing beside it.
    fn write(self, mad: &mut Mad, place: Bits);
}

macro_rules! fields {
    ($($type:ty: $width:literal = $value:ident => $read:expr, $field:ident => $write:expr;)+) => {$(
        impl Field for $type {
            const WIDTH: u8 = $width;

            #[inline]
            fn read(mad: &Mad, place: Bits) -> Self {
                let $value = mad.bits(place);
                $read
            }

            #[inline]
            fn write(self, mad: &mut Mad, place: Bits) {
                let $field = self;
                mad.set_bits(place, $write);
            }
        }
    )+};
}

fields! {
    bool: 1 = value => value != 0, field => u64::from(field);
    u8: 8 = value => value as u8, field => u64::from(field);
    u16: 16 = value => value as u16, field => u64::from(field);
    u32: 32 = value => value as u32, field => u64::from(field);
    u64: 64 = value => value, field => field;
    Guid: 64 = value => Guid(value), field => field.0;
    Lid: 16 = value => Lid(value as u16), field => u64::from(field.0);
}

/// A table: the place is that of its first element, and the others follow without a gap.
impl<T: Field, const N: usize> Field for [T; N] {
    const WIDTH: u8 = T::WIDTH;
    const COUNT: usize = N * T::COUNT;

    #[inline]
    fn read(mad: &Mad, place: Bits) -> Self {
        std::array::from_fn(|index| T::read(mad, place.element(index)))
    }

    #[inline]
    fn write(self, mad: &mut Mad, place: Bits) {
        for (index, element) in self.into_iter().enumerate() {
            element.write(mad, place.element(index));
        }
    }
}

/// Makes an attribute from the list of its fields: the struct, its id, and both directions.
///
/// ```text
/// attribute! {
///     /// SMInfo.
///     pub struct SmInfo = 0x0020 {
///         /// GUID of the port that the subnet manager runs at.
///         guid: Guid = bytes(0, 8),
///         /// SMState.
///         state: u8 = low(20),
///     }
/// }
/// ```
macro_rules! attribute {
    ($(#[$about:meta])* pub struct $name:ident = $id:literal {
        $($(#[$says:meta])* $field:ident: $type:ty = $place:expr,)+
    }) => {
        $(#[$about])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
        pub struct $name { $($(#[$says])* pub $field: $type,)+ }

        impl $name {
            /// Its AttributeID.
            pub const ID: u16 = $id;

            /// The fields' names, places, and how many times each stands there.
            #[cfg(test)]
            pub(in crate) const FIELDS: &[(&str, $crate::layout::Bits, usize)] =
                &[$((
                    stringify!($field),
                    $place,
                    <$type as $crate::layout::Field>::COUNT,
                )),+];

            /// Reads it from an answer.
            #[inline]
            pub fn decode(mad: &$crate::Mad) -> Self {
                use $crate::layout::{Field, checked};
                $name { $($field: Field::read(mad, const { checked::<$type>($place) }),)+ }
            }

            /// Writes it to an answer: its own fields, and no bit beside them.
            pub fn encode(&self, mad: &mut $crate::Mad) {
                use $crate::layout::{Field, checked};
                $(Field::write(self.$field, mad, const { checked::<$type>($place) });)+
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
    use crate::extended_speeds::{PortExtendedSpeedsCounters, PortInfoExtended};
    use crate::pma::PortSamplesControl;
    use crate::port_info::{MellanoxExtendedPortInfo, PortInfo};
    use crate::smp::{NodeInfo, PKeyTable, SmInfo, SwitchInfo};

    /// What is checked of every attribute, by the bits of one MAD and of another.
    trait Checked: Copy + PartialEq + std::fmt::Debug {
        const FIELDS: &'static [(&'static str, Bits, usize)];
        fn decode(mad: &Mad) -> Self;
        fn encode(&self, mad: &mut Mad);

        /// Which bits of a MAD the fields take.
        fn mask() -> Mad {
            let mut mask = Mad([0; LEN]);
            for &(name, place, count) in Self::FIELDS {
                for index in 0..count {
                    let place = place.element(index);
                    assert_eq!(mask.bits(place), 0, "{name} overlaps");
                    mask.set_bits(place, u64::MAX);
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
        ($($name:ident: $last:literal),+) => {
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
            fn no_field_passes_the_end_of_its_attribute() {
                $(let end = <$name as Checked>::mask().0.iter().rposition(|&byte| byte != 0);
                assert_eq!(end, Some(DATA + $last), stringify!($name));)+
            }
        };
    }

    // With the last byte that each takes; for the subnet's the path begins behind byte 63.
    checked_attributes! {
        NodeInfo: 39, SwitchInfo: 19, PortInfo: 63, PKeyTable: 63, SmInfo: 20,
        Sample: 15, PortInfoExtended: 21, MellanoxExtendedPortInfo: 47,
        ClassPortInfo: 71, PortSamplesControl: 79, PortExtendedSpeedsCounters: 151,
        CounterSelect: 18
    }

    fn any_mad() -> impl Strategy<Value = Mad> {
        proptest::collection::vec(any::<u8>(), LEN)
            .prop_map(|bytes| Mad(std::array::from_fn(|index| bytes[index])))
    }

    proptest! {
        #[test]
        fn what_was_written_is_read_and_nothing_else_is_written(
            from in any_mad(), onto in any_mad(),
        ) {
            check_all(&from, &onto);
        }

        #[test]
        fn bits_change_alone(
            onto in any_mad(), first in 0u16..1400, width in 1u8..=57, value: u64,
        ) {
            let place = bits(first, width);
            let mut mad = onto.clone();
            mad.set_bits(place, value);
            prop_assert_eq!(mad.bits(place), value & place.most());
            mad.set_bits(place, onto.bits(place));
            prop_assert_eq!(mad, onto);
        }
    }

    attribute! {
        /// One field of each kind.
        pub struct Sample = 0x7fff {
            /// Four bits.
            upper: u8 = high(0),
            /// Four bits.
            lower: u8 = low(0),
            /// One bit.
            flag: bool = bits(8 + 2, 1),
            /// Bits across bytes.
            across: u32 = bits(8 + 4, 20),
            /// A table of bits.
            table: [u8; 3] = bits(4 * 8, 2),
            /// Eight bytes.
            guid: Guid = bytes(8, 8),
        }
    }

    #[test]
    fn bits_are_counted_from_the_highest() {
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
    fn what_does_not_fit_is_left_out() {
        let mut mad = Mad([0; LEN]);
        Sample { upper: 0xff, ..Sample::default() }.encode(&mut mad);
        assert_eq!(mad.data()[..2], [0xf0, 0]);
    }
}
