use std::collections::HashSet;

use proptest::prelude::*;

use super::*;
use crate::mad::LEN;

#[test]
fn rows_match_counters_and_names_are_unique() {
    let (mut names, mut files) = (HashSet::new(), HashSet::new());
    for row in TABLE {
        assert_eq!(row.counter.row().ibta, row.ibta);
        assert!(names.insert(row.metric), "{} twice", row.metric);
        assert!(names.insert(row.ibta), "{} twice", row.ibta);
        for file in row.sysfs_files {
            assert!(files.insert(file), "{file} twice");
            assert_eq!(Counter::from_file(file), Some(row.counter));
        }
        assert!(row.help.ends_with('.') && !row.help.contains(['\n', '\\']), "{}", row.help);
    }
}

#[test]
fn counter_fields_do_not_overlap() {
    let mut taken = HashSet::new();
    for row in TABLE {
        for field in row.fields {
            for bit in field.bit..field.bit + u16::from(field.width) {
                assert!(taken.insert((field.attribute, bit)), "{} overlaps at bit {bit}", row.ibta);
            }
        }
    }
}

#[test]
fn only_traffic_counters_exceed_63_bits() {
    for (counter, value, possible) in [
        (Counter::RcvErrors, u64::MAX - 39, false),
        (Counter::RcvErrors, 1 << 63, false),
        (Counter::RcvErrors, (1 << 63) - 1, true),
        (Counter::XmitWait, 1 << 63, false),
        (Counter::LinkDowned, 255, true),
        (Counter::XmitData, u64::MAX, true),
    ] {
        assert_eq!(counter.is_plausible(value), possible, "{counter:?} {value}");
    }
}

#[test]
fn widest_field_comes_first() {
    for row in TABLE {
        assert!(
            row.fields.is_sorted_by_key(|field| std::cmp::Reverse(field.width)),
            "{}",
            row.ibta
        );
    }
}

#[test]
fn field_read_uses_only_its_bits() {
    let mut mad = Mad([0xff; LEN]);
    for (width, bit, bytes, value) in [
        (4, 152, &[0x5a][..], 0x5),
        (4, 156, &[0x5a], 0xa),
        (8, 48, &[0x12], 0x12),
        (16, 32, &[0x12, 0x34], 0x1234),
        (32, 192, &[0x12, 0x34, 0x56, 0x78], 0x1234_5678),
        (64, 64, &[1, 2, 3, 4, 5, 6, 7, 8], 0x0102_0304_0506_0708),
    ] {
        let start = usize::from(bit / 8u16);
        mad.data_mut()[start..start + bytes.len()].copy_from_slice(bytes);
        let field = CounterField { bit, width, ..classic(0, 8) };
        assert_eq!(field.read(&mad), value, "{width} bits at {bit}");
        mad.data_mut().fill(0xff);
    }
}

#[test]
fn field_max_is_all_ones() {
    for (width, max) in [(4, 15), (8, 255), (16, 65_535), (32, u32::MAX.into()), (64, u64::MAX)] {
        assert_eq!(classic(0, width).max(), max);
    }
}

proptest! {
    #[test]
    fn field_write_reads_back_and_keeps_other_bits(
        data in proptest::collection::vec(any::<u8>(), LEN), value: u64, shift in 0u32..64,
    ) {
        // Small values, too: nearly all random 64-bit values exceed a narrow field.
        let value = value >> shift;
        let mad = Mad(std::array::from_fn(|index| data[index]));
        for field in TABLE.iter().flat_map(|row| row.fields) {
            let mut written = mad.clone();
            field.write(&mut written, value);
            prop_assert_eq!(field.read(&written), value.min(field.max()), "{:?}", field);
            let own = field.bit..field.bit + u16::from(field.width);
            for bit in (0..192 * 8).filter(|bit| !own.contains(bit)) {
                let of = |mad: &Mad| mad.data()[usize::from(bit / 8)] >> (7 - bit % 8) & 1;
                prop_assert_eq!(of(&written), of(&mad), "bit {} beside {:?}", bit, field);
            }
        }
    }
}
