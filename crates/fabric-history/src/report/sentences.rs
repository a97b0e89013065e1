//! What the sections of the report share.

use std::time::SystemTime;

/// Formats times for readers.
pub(super) type FormatTime<'a> = &'a dyn Fn(SystemTime) -> String;

/// Sentences of one kind; further ones are only counted.
const MAX_OF_A_KIND: usize = 10;

/// Adds up to [`MAX_OF_A_KIND`] sentences, and the number of further ones.
pub(super) fn push_some(
    sentences: &mut Vec<String>,
    lines: impl IntoIterator<Item = String>,
    what: &str,
) {
    let mut lines = lines.into_iter();
    sentences.extend(lines.by_ref().take(MAX_OF_A_KIND));
    match lines.count() {
        0 => {}
        more => sentences.push(format!("{what}: {more} more.")),
    }
}
