//! From bytes to text: UTF-8, UTF-16, and Latin-1.

use std::borrow::Cow;

/// A text, and how it was encoded if that is not UTF-8.
pub struct Decoded<'a> {
    /// The text, without a byte order mark.
    pub text: Cow<'a, str>,
    /// What a user should know.
    pub remark: Option<&'static str>,
}

/// Reads bytes as text. Windows saves redirected output as UTF-16 with a byte order mark; without one, UTF-16 is
/// recognized by its zero bytes. What is no UTF-8 is Latin-1, in which each byte is a character.
pub fn decode(bytes: &[u8]) -> Decoded<'_> {
    let utf16 = |bytes: &[u8], word: fn([u8; 2]) -> u16| {
        let words = bytes.chunks_exact(2).map(|pair| word([pair[0], pair[1]]));
        let chars =
            char::decode_utf16(words).map(|char| char.unwrap_or(char::REPLACEMENT_CHARACTER));
        Decoded { text: Cow::Owned(chars.collect()), remark: None }
    };
    match bytes {
        [0xff, 0xfe, rest @ ..] => return utf16(rest, u16::from_le_bytes),
        [0xfe, 0xff, rest @ ..] => return utf16(rest, u16::from_be_bytes),
        [0xef, 0xbb, 0xbf, rest @ ..] => return decode(rest),
        _ => {}
    }
    let sample = &bytes[..bytes.len().min(256)];
    let zeros =
        |offset: usize| sample.iter().skip(offset).step_by(2).filter(|byte| **byte == 0).count();
    let pairs = sample.len() / 2;
    if pairs >= 8 && zeros(1) * 10 > pairs * 9 {
        return utf16(bytes, u16::from_le_bytes);
    }
    if pairs >= 8 && zeros(0) * 10 > pairs * 9 {
        return utf16(bytes, u16::from_be_bytes);
    }
    match std::str::from_utf8(bytes) {
        Ok(text) => Decoded { text: Cow::Borrowed(text), remark: None },
        Err(_) => Decoded {
            text: Cow::Owned(bytes.iter().map(|byte| char::from(*byte)).collect()),
            remark: Some("not UTF-8: read as Latin-1, so that characters of names may differ"),
        },
    }
}
