//! `*.pm` of ibdiagnet2: a block per port, with a counter in each line.

use std::collections::HashSet;

use crate::contents::{Contents, PortName};
use crate::counters;
use crate::lines::Line;
use crate::problem::Problem;
use crate::text;
use crate::tool_output::ToolOutput;

/// The port of a line `Port=1 Lid=0x00b4 GUID=0xb0cf0e0300d33fc0 ...`, which `*.cables` has, too.
pub fn port_line(line: &str) -> Option<PortName> {
    if !line.starts_with("Port=") {
        return None;
    }
    let field = |name: &str| text::field(line.split_whitespace(), name);
    Some(PortName::port(text::whole_guid(field("GUID="))?, field("Port=").parse().ok()?))
}

/// `symbol_error_counter=0x0000ffff`.
fn counter(line: &str) -> Option<(&str, &str)> {
    let (name, value) = line.split_once('=')?;
    let is_name =
        name.bytes().all(|it| it.is_ascii_lowercase() || it.is_ascii_digit() || it == b'_');
    let is_value = text::number(value).is_some() || matches!(value, "NA" | "N/A" | "-1");
    (is_name && name.contains('_') && is_value).then_some((name, value))
}

/// Whether a whole line is a counter of `*.pm`.
pub fn is_line(line: &str) -> bool {
    counter(line).is_some()
}

/// Whether a line is a damaged one of `*.pm`.
pub fn is_damaged(line: &str) -> bool {
    let name = line.split_once('=').map(|(name, _)| name);
    line.starts_with("Port=")
        || name.is_some_and(|name| name.contains('_') && counters::by_name(name).is_some())
}

/// Reads `*.pm`.
pub fn parse<'a>(lines: impl Iterator<Item = Line<'a>>) -> Result<Vec<Contents>, Problem> {
    let mut output = ToolOutput::new(false);
    let mut port = None;
    let mut known = HashSet::new();
    let mut fields: HashSet<&str> = HashSet::new();
    for line in lines {
        if let Some(name) = port_line(line.text) {
            output.list_once(&mut known, name);
            output.found.port(name);
            fields.clear();
            port = Some(name);
        } else if let Some((name, value)) = counter(line.text) {
            match port {
                // The number may go on.
                _ if line.is_open => output.cut_off(line),
                // The line of another port is missing.
                Some(_) if !fields.insert(name) => {
                    let expected = "each counter once below a line `Port=… GUID=…`";
                    return Err(Problem::unreadable(line, expected));
                }
                Some(port) => output.found.port(port).counters.set_by_name(name, false, value),
                None => output
                    .damaged(line, "the line `Port=… GUID=…` of a port before its counters")?,
            }
        } else if is_damaged(line.text) {
            output.damaged(line, "a line of *.pm, `Port=N Lid=0x… GUID=0x…` or `name=0x…`")?;
        } else {
            output.skip(line);
        }
    }
    Ok(output.finish())
}
