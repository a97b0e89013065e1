//! Lines that a mail program or a terminal broke into several: they are joined where the result is a whole line of a
//! format, and the parts are not.

use crate::format::{Format, Formats, formats_of, is_damaged};
use crate::lines::Lines;

/// The most parts of a line. A port of ibqueryerrors with all its counters has some 1,200 characters.
const MAX_PARTS: usize = 24;

/// The most characters of a line that was broken.
const MAX_LENGTH: usize = 4096;

/// The most attempts to join lines: a text of a million damaged lines is not worth more.
const MAX_ATTEMPTS: usize = 200_000;

/// How lines were broken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Break {
    /// In place of a blank, as mail programs do it.
    Blank,
    /// After a number of characters, as terminals do it.
    Column,
}

/// Joins the parts of lines. Returns the number of lines that were joined, with the number of the first one.
pub fn join(lines: Lines) -> (Lines, Option<(usize, usize)>) {
    let needs = |index: usize| is_part(&lines, index);
    if !(0..lines.len()).any(needs) {
        return (lines, None);
    }
    let order = if are_columns(&lines) {
        [Break::Column, Break::Blank]
    } else {
        [Break::Blank, Break::Column]
    };
    let mut joined = Lines::new(lines.is_open());
    let (mut index, mut attempts) = (0, 0);
    let mut found: Option<(usize, usize)> = None;
    while let Some(line) = lines.get(index) {
        let whole = if attempts < MAX_ATTEMPTS {
            whole_line(&lines, index, order, &mut attempts)
        } else {
            None
        };
        if let Some((text, parts)) = whole {
            joined.push(line.number, &text);
            let (first, count) = found.unwrap_or((line.number, 0));
            found = Some((first, count + 1));
            index += parts;
        } else {
            joined.push(line.number, lines.raw(index));
            index += 1;
        }
    }
    (joined, found)
}

/// Whether a line may be the first part of a broken one: damaged, or whole but followed by what may belong to it.
fn is_part(lines: &Lines, index: usize) -> bool {
    let Some(line) = lines.get(index) else { return false };
    if formats_of(line.text).is_empty() {
        return is_damaged(line.text);
    }
    lines.get(index + 1).is_some_and(|next| goes_on(line.text, next.text))
}

/// Whether a line needs no other one. The rest of a line of ibqueryerrors, `[NAME == VALUE]`, is also a line of its own.
fn is_whole(line: &str) -> bool {
    let formats = formats_of(line);
    let is_rest = line.starts_with('[') && formats == Formats::of(Format::IbQueryErrors);
    !(formats.is_empty() || is_rest)
}

/// Whether a line stands for lines that were left out.
fn is_omission(line: &str) -> bool {
    line.contains("...")
        || line.contains('\u{2026}')
        || line.contains("omitted")
        || line.contains("snip")
}

/// Whether a line looks like the rest of a whole one: `# "name" lid 4`, `lid 4 4xEDR`, `4xEDR`, `N/A : N/A : : :`.
fn goes_on(line: &str, next: &str) -> bool {
    let is_rate =
        next.len() < 12 && next.contains('x') && next.starts_with(|it: char| it.is_ascii_digit());
    let begins =
        ["# \"", "# lid ", "#\"", "lid ", "\""].iter().any(|begin| next.starts_with(begin));
    let has_cells = line.ends_with(':') && next.contains(':');
    (is_rate || begins || has_cells) && formats_of(next).is_empty()
}

/// Whether lines were broken after a number of characters: the first parts have the same length.
fn are_columns(lines: &Lines) -> bool {
    let lengths = (0..lines.len()).filter(|index| {
        lines
            .get(*index)
            .is_some_and(|line| formats_of(line.text).is_empty() && is_damaged(line.text))
    });
    let mut lengths: Vec<usize> =
        lengths.take(100).map(|index| lines.raw(index).chars().count()).collect();
    lengths.sort_unstable();
    // The last part of a line is damaged, too, and shorter.
    let longest = lengths.last().copied().unwrap_or(0);
    let alike = lengths.iter().filter(|length| **length == longest).count();
    alike >= 2 && alike * 2 >= lengths.len()
}

/// The whole line that can be made of this one and the next ones.
fn whole_line(
    lines: &Lines,
    index: usize,
    order: [Break; 2],
    attempts: &mut usize,
) -> Option<(String, usize)> {
    if !is_part(lines, index) {
        return None;
    }
    order.into_iter().find_map(|how| {
        let mut text = lines.raw(index).to_owned();
        let mut best = None;
        for parts in 2..=MAX_PARTS {
            let next = lines.raw(index + parts - 1);
            let is_other = next.is_empty() || is_whole(next.trim()) || is_omission(next);
            if is_other || text.len() + next.len() > MAX_LENGTH {
                break;
            }
            match how {
                Break::Blank => {
                    text.truncate(text.trim_end().len());
                    text.push(' ');
                    text.push_str(next.trim());
                }
                Break::Column => text.push_str(next),
            }
            *attempts += 1;
            if !formats_of(text.trim()).is_empty() {
                best = Some((text.clone(), parts));
                if !lines.get(index + parts).is_some_and(|next| goes_on(text.trim(), next.text)) {
                    break;
                }
            }
        }
        best
    })
}
