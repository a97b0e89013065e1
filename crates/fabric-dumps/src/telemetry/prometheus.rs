//! Telemetry in the text format of Prometheus: a sample per value, whose labels name the port.
//!
//! Values that are no numbers, such as the serial number of a cable, are labels of all samples of the port.

use std::borrow::Cow;
use std::collections::HashMap;
use std::collections::hash_map::Entry;

use ib_mad::{Guid, PortNumber};

use crate::contents::Contents;
use crate::remark::{Remark, shown};
use crate::text;

use super::fields::{self, Field};
use super::row::{MAX_ROWS, Row, SpeedCodes};

/// The parts of a line `name{labels} value timestamp`.
struct Sample<'a> {
    name: &'a str,
    labels: &'a str,
    value: &'a str,
    timestamp: Option<&'a str>,
}

impl<'a> Sample<'a> {
    fn of(line: &'a str) -> Option<Sample<'a>> {
        let (name, rest) = line.split_once('{')?;
        let end = end_of_labels(rest)?;
        let mut words = rest[end + 1..].split_whitespace();
        let (value, timestamp) = (words.next()?, words.next());
        let name = name.trim();
        let is_name = !name.is_empty() && !name.contains(char::is_whitespace);
        is_name.then_some(Sample { name, labels: &rest[..end], value, timestamp })
    }

    fn port(&self) -> Option<(Guid, PortNumber)> {
        let (mut guid, mut number) = (None, None);
        for (name, value) in labels(self.labels) {
            match fields::by_name(name) {
                Some(Field::NodeGuid) => guid = text::guid(&value),
                Some(Field::PortNumber) => number = value.trim().parse().ok(),
                _ => {}
            }
        }
        guid.zip(number)
    }
}

/// Where the labels end: a `}` that is in no value.
fn end_of_labels(rest: &str) -> Option<usize> {
    let (mut is_quoted, mut is_escaped) = (false, false);
    rest.bytes().position(|byte| {
        let was_escaped = std::mem::take(&mut is_escaped);
        match byte {
            b'\\' if is_quoted => is_escaped = !was_escaped,
            b'"' if !was_escaped => is_quoted = !is_quoted,
            b'}' if !is_quoted => return true,
            _ => {}
        }
        false
    })
}

/// The labels with their values; what cannot be read ends them.
fn labels(mut text: &str) -> impl Iterator<Item = (&str, Cow<'_, str>)> {
    std::iter::from_fn(move || {
        let (name, rest) = text.split_once("=\"")?;
        let mut is_escaped = false;
        let end = rest.bytes().position(|byte| {
            let was_escaped = std::mem::take(&mut is_escaped);
            is_escaped = byte == b'\\' && !was_escaped;
            byte == b'"' && !was_escaped
        })?;
        text = &rest[end + 1..];
        let value = &rest[..end];
        let value = if value.contains('\\') {
            Cow::Owned(value.replace("\\n", " ").replace("\\\"", "\"").replace("\\\\", "\\"))
        } else {
            Cow::Borrowed(value)
        };
        Some((name.trim_start_matches(',').trim(), value))
    })
}

/// Whether a line is a sample of a port.
pub fn is_sample(line: &str) -> bool {
    Sample::of(line).is_some_and(|sample| sample.port().is_some())
}

/// Reads a text. `None` if it has too many ports.
pub fn parse(text: &str) -> Option<Contents> {
    let mut found = Contents::default();
    // In the order of the text, so that the same text has the same result.
    let mut rows: Vec<(&str, Row)> = Vec::new();
    let mut places: HashMap<(Guid, PortNumber), usize> = HashMap::new();
    // The labels of a port are the same in each of its samples, of which there are some 100.
    let mut by_labels: HashMap<&str, usize> = HashMap::new();
    let mut others = 0_usize;
    let is_open = !text.ends_with('\n');
    let last = text.lines().count();
    for (line, number) in text.lines().zip(1..) {
        let line = line.trim();
        if line.is_empty() || line.starts_with('#') {
            continue;
        }
        if is_open && number == last {
            let what = format!("cut off: {} was not used", shown(line));
            found.remark(Remark::unused(number, what));
            continue;
        }
        let Some(sample) = Sample::of(line) else {
            others += 1;
            continue;
        };
        let place = match by_labels.entry(sample.labels) {
            Entry::Occupied(known) => *known.get(),
            Entry::Vacant(new) => {
                let Some(port) = sample.port() else {
                    others += 1;
                    continue;
                };
                let place = *places.entry(port).or_insert_with(|| {
                    rows.push((sample.labels, Row::default()));
                    rows.len() - 1
                });
                // Before memory is needed for all of them.
                if rows.len() > MAX_ROWS {
                    return None;
                }
                for (name, value) in labels(sample.labels) {
                    if let Some(field) = fields::by_name(name)
                        && !rows[place].1.set(field, &value)
                    {
                        let what = format!("{name}: {} is not a value", shown(&value));
                        found.remark(Remark::unused(number, what));
                    }
                }
                *new.insert(place)
            }
        };
        let row = &mut rows[place].1;
        if let Some(at) = sample.timestamp {
            row.set(Field::Timestamp, at);
        }
        if let Some(field) = fields::by_name(sample.name)
            && !row.set(field, sample.value)
        {
            let what = format!("{}: {} is not a value", sample.name, shown(sample.value));
            found.remark(Remark::unused(number, what));
        }
    }
    let codes = SpeedCodes::of(rows.iter().filter_map(|(_, row)| row.speed_code()));
    for (_, row) in rows {
        row.add_to(&mut found, codes);
    }
    if others > 0 {
        found
            .remark(Remark::used(0, format!("{others} samples without node GUID and port number")));
    }
    Some(found)
}
