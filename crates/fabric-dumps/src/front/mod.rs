//! The front: from the bytes of a file to the lines that tools wrote.
//!
//! People paste what they see: quoted in a mail, colored by a terminal, numbered by an editor, compressed, in UTF-16.
//! All of that ends here. A parser gets whole lines without anything around them, each with its number in the file.

mod characters;
mod encoding;
mod packing;
mod prefix;
mod segments;
mod wrapped;

use std::borrow::Cow;
use std::collections::BTreeMap;

use display_text::plural;

use crate::lines::Lines;
use crate::remark::Remark;
pub use encoding::decode;
use prefix::Prefixes;
pub use segments::segments;

/// The largest file, packed or not: `*.db_csv` has some 2 KB per port, so this is a fabric of 500,000 ports.
pub const MAX_BYTES: u64 = 1 << 30;

/// The most lines in which prefixes are looked for.
const MAX_SAMPLE: usize = 20_000;

/// A text of one origin, and what a user should know of how it was read.
#[derive(Debug, Default)]
pub struct Text {
    /// Its lines.
    pub lines: Lines,
    /// On the whole file.
    pub remarks: Vec<Remark>,
}

/// The contents of a compressed file, or the file itself; an error if it is damaged or too large.
pub fn unpack(bytes: Vec<u8>) -> Result<Vec<u8>, String> {
    packing::unpack(bytes, MAX_BYTES)
}

/// The texts in a file: one, or with pdsh one per host. An error says why the file cannot be read.
pub fn read(bytes: Vec<u8>) -> Result<Vec<Text>, String> {
    let bytes = unpack(bytes)?;
    if bytes.get(257..262) == Some(b"ustar") {
        return Err("a tar archive: unpack it, and name its folder".into());
    }
    let decoded = decode(&bytes);
    let mut remarks: Vec<Remark> =
        decoded.remark.map(|text| Remark::used(0, text)).into_iter().collect();
    let text = &*decoded.text;
    let (quotes, entities) = (characters::has_quotes(text), characters::has_entities(text));
    let has_marks = characters::has_line_end_marks(text);
    let plain = |line| {
        let without = if has_marks { characters::without_marks(line) } else { Cow::Borrowed(line) };
        match without {
            Cow::Borrowed(line) => characters::plain(line, quotes, entities),
            Cow::Owned(line) => Cow::Owned(characters::plain(&line, quotes, entities).into_owned()),
        }
    };
    let is_open = !text.ends_with(['\n', '\r', '\0', '\u{1a}']);
    let all = || lines_of(text).map(|(number, line)| (number, plain(line)));
    let sample = all().map(|(_, line)| line).filter(|line| !line.trim().is_empty());
    let sample: Vec<Cow<'_, str>> = sample.take(MAX_SAMPLE).collect();
    let prefixes = Prefixes::of(sample.iter().map(|line| &**line));
    drop(sample);
    let mut texts: BTreeMap<String, Lines> = BTreeMap::new();
    for (number, line) in all() {
        let (line, host) = prefixes.strip(&line);
        let line = line.strip_prefix(['\u{feff}']).unwrap_or(line);
        let line = without_password_prompt(line);
        let host = host.unwrap_or_default();
        let lines = texts.entry(host.to_owned()).or_insert_with(|| Lines::new(is_open));
        lines.push(number, line);
    }
    if !prefixes.is_empty() {
        remarks.push(Remark::used(0, "a prefix before each line was left out"));
    }
    let mut read: Vec<Text> = Vec::new();
    for lines in texts.into_values() {
        let (lines, joined) = wrapped::join(lines);
        let remark = joined.map(|(first, count)| {
            let what = format!("joined {}, the first one here", plural(count, "wrapped line"));
            Remark::used(first, what)
        });
        let remarks = std::mem::take(&mut remarks).into_iter().chain(remark).collect();
        read.push(Text { lines, remarks });
    }
    Ok(read)
}

/// The lines of a text with their numbers: they end with LF, CR LF, or CR alone.
fn lines_of(text: &str) -> impl Iterator<Item = (usize, &str)> {
    let count = |char: char| text.matches(char).count();
    // A file with line ends of two kinds has those of its tool, and one of the program that saved it.
    let has_cr = count('\r') > text.matches("\r\n").count() + count('\n');
    let lines = text.split(move |it| it == '\n' || has_cr && it == '\r');
    lines.enumerate().map(|(index, line)| (index + 1, line.trim_end_matches('\r')))
}

/// sudo asks before the first line of the output.
fn without_password_prompt(line: &str) -> &str {
    let is_prompt =
        |prompt: &str| prompt.starts_with("[sudo] ") || prompt.eq_ignore_ascii_case("password");
    match line.trim_start().split_once(": ") {
        Some((prompt, rest)) if is_prompt(prompt) => rest,
        _ => line,
    }
}
