//! The output of perfquery: basic, `-x`, `-E`. Several outputs may follow each other.

use std::collections::HashSet;

use ib_mad::PortNumber;

use crate::contents::{Contents, PortName};
use crate::counters;
use crate::lines::Line;
use crate::problem::Problem;
use crate::remark::Remark;
use crate::scan::Scan;
use crate::text;
use crate::tool_output::ToolOutput;

/// What a line of perfquery is.
enum Entry<'a> {
    Header(Header<'a>),
    /// A field and its value.
    Field(&'a str, &'a str),
}

/// The port of the fields that follow.
struct Header<'a> {
    /// `Port`, `Port extended`, or the name of another attribute.
    kind: &'a str,
    lid: Option<u16>,
    number: PortNumber,
}

/// `# Port counters: Lid 17 port 1 (CapMask: 0x5300)`.
fn header(line: &str) -> Option<Header<'_>> {
    let (kind, place) = line.strip_prefix('#')?.split_once(" counters: ")?;
    let kind = kind.trim();
    // A directed route is the way to a port, not its name.
    if place.starts_with("DR path ") {
        return Some(Header { kind, lid: None, number: 0 });
    }
    let mut place = Scan::new(place.strip_prefix("Lid ")?);
    let lid: u32 = place.number()?;
    if place.skip("Gid").is_some() {
        place.word(&[])?;
    }
    place.skip("port ")?;
    let number = place.number()?;
    let is_end =
        place.end().is_some() || place.rest().starts_with('(') && place.rest().ends_with(')');
    let lid = u16::try_from(lid).ok().filter(|lid| text::is_unicast(*lid));
    is_end.then_some(Header { kind, lid, number })
}

/// `SymbolErrorCounter:..............65535`.
fn field(line: &str) -> Option<(&str, &str)> {
    let (name, value) = line.split_once(':')?;
    let is_name = name.starts_with(|it: char| it.is_ascii_uppercase())
        && name.bytes().all(|it| it.is_ascii_alphanumeric() || it == b'_');
    let number = value.trim_start_matches('.');
    let is_filled = number.len() < value.len() || counters::by_name(name).is_some();
    let is_value = text::number(number).is_some() || matches!(number, "N/A" | "NA");
    // A number next to its name has no blank before it.
    (is_name && is_filled && is_value && !number.starts_with(' ')).then_some((name, number))
}

fn entry(line: &str) -> Option<Entry<'_>> {
    header(line)
        .map(Entry::Header)
        .or_else(|| field(line).map(|(name, value)| Entry::Field(name, value)))
}

/// Whether a whole line is one of perfquery.
pub fn is_line(line: &str) -> bool {
    entry(line).is_some()
}

/// Whether a line is a damaged one of perfquery.
pub fn is_damaged(line: &str) -> bool {
    line.contains(":..") || line.contains(" counters:")
}

/// Reads the output of perfquery.
pub fn parse<'a>(lines: impl Iterator<Item = Line<'a>>) -> Result<Vec<Contents>, Problem> {
    let mut output = ToolOutput::new(false);
    let mut open: Option<(Option<PortName>, bool)> = None;
    let mut known = HashSet::new();
    let mut fields: HashSet<&str> = HashSet::new();
    for line in lines {
        match entry(line.text) {
            Some(Entry::Header(Header { kind, lid, number })) => {
                // Port 255 stands for all ports of a switch: a sum.
                let name = lid.filter(|_| number != u8::MAX).map(|lid| PortName::lid(lid, number));
                if let Some(name) = name {
                    output.list_once(&mut known, (name, kind));
                    output.found.port(name).lid = lid;
                }
                if lid.is_none() {
                    let what = "the counters of this port are left out: it has no LID here";
                    output.found.remark(Remark::unused(line.number, what));
                }
                fields.clear();
                open = Some((name, kind.contains("extended")));
            }
            Some(Entry::Field(name, value)) => match open {
                // The number may go on.
                _ if line.is_open => output.cut_off(line),
                // The header of another port is missing.
                Some(_) if !fields.insert(name) => {
                    let expected =
                        "each counter once below a header, `# Port counters: Lid N port N`";
                    return Err(Problem::unreadable(line, expected));
                }
                Some((Some(port), is_wide)) => {
                    output.found.port(port).counters.set_by_name(name, is_wide, value);
                }
                Some((None, _)) => {}
                None => {
                    let expected = "a header of perfquery, `# Port counters: Lid N port N`, before the counters";
                    output.damaged(line, expected)?;
                }
            },
            None if is_damaged(line.text) => {
                output.damaged(line, "a line of perfquery, `NAME:......VALUE`")?;
            }
            None => output.skip(line),
        }
    }
    Ok(output.finish())
}
