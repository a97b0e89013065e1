//! The output of perfquery.

use ib_mad::PortNumber;

use crate::contents::{Contents, PortName};
use crate::text;

/// The LID and port of a header of perfquery, and whether its fields have 64 bits.
pub fn header(line: &str) -> Option<(u16, PortNumber, bool)> {
    let rest = line.trim().strip_prefix("# ")?;
    let (kind, rest) = rest.split_once("counters: Lid ").or_else(|| rest.split_once(": Lid "))?;
    let (lid, rest) = rest.split_once(" port ")?;
    let number = rest.split_whitespace().next()?.parse().ok()?;
    Some((text::lid(lid)?, number, kind.contains("extended")))
}

/// Reads the output of perfquery: basic, `-x`, `-E`. Several outputs may follow each other.
pub fn parse(text: &str) -> Contents {
    let mut found = Contents::default();
    let mut open = None;
    for line in text.lines() {
        if let Some((lid, number, is_wide)) = header(line) {
            let key = PortName::Lid(lid, number);
            found.port(key).lid = Some(lid);
            open = Some((key, is_wide));
        } else if let Some(((key, is_wide), (name, value))) = open.zip(line.split_once(':')) {
            let value = value.trim_start_matches('.');
            found.port(key).counters.set_by_name(name, is_wide, value);
        }
    }
    // Port 255 stands for all ports of a switch: a sum.
    found.ports.retain(|key, _| !matches!(key, PortName::Lid(_, 255)));
    found
}
