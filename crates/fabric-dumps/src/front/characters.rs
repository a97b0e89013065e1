//! Characters that terminals, mail programs and web pages put into a text.

use std::borrow::Cow;

/// A line without control sequences, and with plain blanks and quotation marks.
pub fn plain(line: &str, has_quotes: bool, has_entities: bool) -> Cow<'_, str> {
    let is_plain = |byte: u8| matches!(byte, b' '..=b'~');
    let line = if has_entities { without_entities(line) } else { Cow::Borrowed(line) };
    if line.bytes().all(is_plain) {
        return line;
    }
    let mut plain = String::with_capacity(line.len());
    let mut chars = line.chars();
    while let Some(char) = chars.next() {
        match char {
            '\u{1b}' => skip_escape(&mut chars),
            '\u{8}' => {
                plain.pop();
            }
            '\t' | '\u{a0}' | '\u{2007}' | '\u{202f}' | '\u{3000}' => plain.push(' '),
            '\u{feff}' => {}
            '\u{201c}' | '\u{201d}' | '\u{201e}' | '\u{201f}' if !has_quotes => plain.push('"'),
            '\u{2018}' | '\u{2019}' | '\u{201a}' if !has_quotes => plain.push('\''),
            char if char.is_control() => {}
            char => plain.push(char),
        }
    }
    Cow::Owned(plain)
}

/// Skips the rest of a control sequence: `ESC [ 31 m`, `ESC ] title BEL`.
fn skip_escape(chars: &mut std::str::Chars<'_>) {
    match chars.next() {
        Some('[') => {
            chars.find(|it| ('@'..='~').contains(it));
        }
        Some(']') => {
            while let Some(char) = chars.next() {
                // BEL, or ESC \.
                if char == '\u{7}' || char == '\u{1b}' && chars.next().is_some() {
                    break;
                }
            }
        }
        // A character set: ESC ( B.
        Some('(' | ')') => {
            chars.next();
        }
        _ => {}
    }
}

/// Whether a text has straight quotation marks: then curved ones belong to names.
pub fn has_quotes(text: &str) -> bool {
    text.contains(['"', '\''])
}

/// Whether a text was copied from the source of a web page.
pub fn has_entities(text: &str) -> bool {
    ["&quot;", "&gt;", "&lt;", "&#34;", "&#39;"].iter().any(|entity| text.contains(entity))
}

/// Whether a text was shown by `cat -A`: each line ends with `$`.
pub fn has_line_end_marks(text: &str) -> bool {
    let lines = || text.lines().filter(|line| !line.is_empty()).take(100);
    lines().count() > 0 && lines().all(|line| line.ends_with('$'))
}

/// A line without the marks of `cat -A`: `^I` is a tab, `$` the line end.
pub fn without_marks(line: &str) -> Cow<'_, str> {
    let line = line.strip_suffix('$').unwrap_or(line);
    if line.contains("^I") { Cow::Owned(line.replace("^I", "\t")) } else { Cow::Borrowed(line) }
}

fn without_entities(line: &str) -> Cow<'_, str> {
    if !line.contains('&') {
        return Cow::Borrowed(line);
    }
    let entities = [
        ("&quot;", "\""),
        ("&#34;", "\""),
        ("&#39;", "'"),
        ("&gt;", ">"),
        ("&lt;", "<"),
        ("&nbsp;", " "),
        // The last one, so that nothing is replaced twice.
        ("&amp;", "&"),
    ];
    let replace = |line: String, (entity, char): (&str, &str)| line.replace(entity, char);
    Cow::Owned(entities.into_iter().fold(line.to_owned(), replace))
}
