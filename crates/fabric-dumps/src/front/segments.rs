//! Where in a text the output of which tool is: several dumps may follow each other in one file.

use std::ops::Range;

use crate::db_csv;
use crate::format::{Format, Formats, formats_of};
use crate::lines::Lines;

/// Lines of one format.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Segment {
    /// The format.
    pub format: Format,
    /// The lines, by their indexes.
    pub lines: Range<usize>,
}

/// Whether a comment begins the output of a tool.
fn is_beginning(line: &str) -> bool {
    let words = ["Topology file: generated", "Running timestamp", "This database file was"];
    line.starts_with('#') && words.iter().any(|word| line.contains(word))
}

/// The segments of a text; none if no line is of a known format.
pub fn segments(lines: &Lines) -> Vec<Segment> {
    let mut found: Vec<Segment> = Vec::new();
    let (mut start, mut formats) = (0, Formats::ALL);
    // The section of `db_csv` that is open.
    let mut section: Option<String> = None;
    let mut is_known = false;
    let mut close = |start: usize, end: usize, formats: Formats| {
        if let Some(format) = formats.single().filter(|_| start < end) {
            found.push(Segment { format, lines: start..end });
        }
    };
    for index in 0..lines.len() {
        let Some(line) = lines.get(index) else { break };
        // The rows of a section may look like anything.
        if let Some(name) = &section {
            if db_csv::section_end(line.text) == Some(name) {
                section = None;
            }
            continue;
        }
        section = db_csv::section_start(line.text).map(str::to_owned);
        if is_beginning(line.text) && is_known {
            // ibdiagnet writes several such lines at the beginning of a file.
            close(start, index, formats);
            (start, formats, is_known) = (index, Formats::ALL, false);
            continue;
        }
        let own = formats_of(line.text);
        if own.is_empty() {
            continue;
        }
        let both = formats.and(own);
        if both.is_empty() {
            let from = first_of(lines, start, index, own);
            close(start, from, formats);
            (start, formats) = (from, own);
        } else {
            formats = both;
        }
        is_known = true;
    }
    close(start, lines.len(), formats);
    found
}

/// Where the lines begin that fit the formats of the line at `index`, and end there: a line `Port=…` may be the first
/// one of `*.pm` or of `*.cables`.
fn first_of(lines: &Lines, start: usize, index: usize, formats: Formats) -> usize {
    let mut first = index;
    for earlier in (start..index).rev() {
        let own = lines.get(earlier).map_or(Formats::default(), |line| formats_of(line.text));
        if own.is_empty() {
            continue;
        }
        if own.and(formats).is_empty() {
            break;
        }
        first = earlier;
    }
    first
}
