//! Characters that are not shown as they are: a terminal obeys control characters, also those of ISO 6429 above U+007F,
//! and editors and terminals arrange text by the controls of the bidirectional algorithm ("Trojan Source"). Names come
//! from devices and from other exporters, and may have any of them.

use std::borrow::Cow;
use std::fmt::Write;

/// Whether a character controls the direction of the text around it.
fn is_direction(char: char) -> bool {
    matches!(
        char,
        '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}'
    )
}

/// Whether a character has no width and no shape (Unicode's category Cf, without those of single scripts).
pub(crate) fn is_format(char: char) -> bool {
    let has_no_width = matches!(
        char,
        '\u{ad}' | '\u{180e}' | '\u{200b}'..='\u{200d}' | '\u{2060}'..='\u{206f}' | '\u{feff}' |
        '\u{fff9}'..='\u{fffb}' | '\u{e0000}'..='\u{e007f}'
    );
    has_no_width || is_direction(char)
}

/// A character as it may be written to a terminal: U+FFFD in place of what would move the cursor or change the direction
/// of the text.
pub fn printable(char: char) -> char {
    if char.is_control() || is_direction(char) { char::REPLACEMENT_CHARACTER } else { char }
}

/// JSON with escapes in place of all characters that are not shown as they are. It means the same: outside of strings JSON
/// has none of them but white space, which stays.
pub fn json(text: &str) -> Cow<'_, str> {
    let is_escaped = |char: char| {
        char >= '\u{7f}' && (char.is_control() || is_format(char))
            || matches!(char, '\u{2028}' | '\u{2029}')
    };
    // Nearly all texts are ASCII.
    if text.bytes().all(|byte| byte < 0x7f) || !text.contains(is_escaped) {
        return Cow::Borrowed(text);
    }
    let mut escaped = String::with_capacity(text.len() + 16);
    for char in text.chars() {
        if is_escaped(char) {
            for unit in char.encode_utf16(&mut [0; 2]) {
                // A String takes any text.
                let _ = write!(escaped, "\\u{unit:04x}");
            }
        } else {
            escaped.push(char);
        }
    }
    Cow::Owned(escaped)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn json_escapes_what_is_not_shown_and_keeps_the_rest() {
        for (text, escaped) in [
            ("{\n\t\"a\": \"leaf-0-1\"}\n", "{\n\t\"a\": \"leaf-0-1\"}\n"),
            ("\"Blatt-ä-葉-🌿\"", "\"Blatt-ä-葉-🌿\""),
            ("\"a\u{9b}31m\"", "\"a\\u009b31m\""),
            ("\"\u{7f}\u{85}\u{ad}\"", "\"\\u007f\\u0085\\u00ad\""),
            (
                "\"x\u{202e}y\u{2066}z\u{200b}\u{feff}\u{2028}\"",
                "\"x\\u202ey\\u2066z\\u200b\\ufeff\\u2028\"",
            ),
            ("\"\u{e0041}\"", "\"\\udb40\\udc41\""),
        ] {
            assert_eq!(json(text), escaped);
        }
        assert!(matches!(json("\"ä\""), Cow::Borrowed(_)));
    }

    #[test]
    fn terminals_get_nothing_that_they_obey() {
        let text: String =
            "a\x1b[2J\u{9b}31m\u{7f}\u{202e}\u{61c}ä\u{200d}".chars().map(printable).collect();
        assert_eq!(text, "a\u{fffd}[2J\u{fffd}31m\u{fffd}\u{fffd}\u{fffd}ä\u{200d}");
    }
}
