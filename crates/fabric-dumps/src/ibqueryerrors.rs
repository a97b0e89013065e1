//! The output of ibqueryerrors.

use ib_mad::Guid;
use ib_mad::node::NodeKind;

use crate::contents::{Contents, PortName};
use crate::iblinkinfo::{is_link, link};
use crate::problem::Problem;
use crate::text;

/// The name of a node in quotes, with its GUID before it, in a header of ibqueryerrors.
pub fn header(line: &str) -> Option<(Option<Guid>, &str)> {
    let rest =
        ["Errors for ", "Data Counters for "].iter().find_map(|it| line.trim().strip_prefix(it))?;
    let (guid, name) = rest.split_once('"')?;
    Some((text::guid(guid), name.trim_end_matches(':').trim_end_matches('"')))
}

/// Reads the output of ibqueryerrors. Without `--counters` it lists only counters above a threshold: those that it does
/// not list are unknown.
pub fn parse(text: &str) -> Result<Contents, Problem> {
    let mut found = Contents::default();
    let mut node: Option<(Option<Guid>, &str)> = None;
    let mut port = None;
    for (index, line) in text.lines().enumerate() {
        // Mails quote it.
        let line = line.trim_start_matches(['>', ' ']);
        if let Some(header) = header(line) {
            node = Some(header);
            if let (Some(guid), name) = header {
                found.node(guid).description = text::description(name);
            }
        } else if let Some(rest) = line.strip_prefix("GUID 0x") {
            port = None;
            let at = |problem: &str| Problem::at(index + 1, problem);
            let (guid, rest) = rest.split_once(" port ").ok_or_else(|| at("no port"))?;
            let guid = text::guid(guid).ok_or_else(|| at("the GUID of a port cannot be read"))?;
            let (number, counters) =
                rest.split_once(':').ok_or_else(|| at("a port without counters"))?;
            // The sum of a switch's ports saturates.
            if number.trim() == "ALL" {
                continue;
            }
            let number =
                number.trim().parse().map_err(|_| at("the number of a port cannot be read"))?;
            let key = PortName::Port(guid, number);
            port = Some(key);
            if let Some((None, name)) = node {
                let node = found.node(guid);
                (node.kind, node.description) = (Some(NodeKind::Ca), text::description(name));
            }
            let record = found.port(key);
            for counter in counters.split('[').skip(1) {
                let counter = counter.split(']').next().unwrap_or_default();
                if let Some((name, value)) = counter.split_once("==") {
                    let value = value.split_whitespace().next().unwrap_or_default();
                    record.counters.set_by_name(name, false, value);
                }
            }
        } else if is_link(line) && port.is_some() {
            let line = line.trim_start().strip_prefix("Link info:").unwrap_or(line);
            let _ = link(line, port, &mut found);
        }
    }
    Ok(found)
}
