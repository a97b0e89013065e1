//! The output of iblinkinfo.

use ib_mad::node::NodeKind;
use ib_mad::port_state::PortState;
use ib_mad::{Guid, PortNumber};

use crate::contents::{Contents, NodeRecord, PortName, PortRecord};
use crate::problem::Problem;
use crate::text;

/// Between the near end of a link and its rate, and between its state and the far end.
const LINK: [&str; 2] = ["==(", ")==>"];

/// Whether a line is a link of iblinkinfo.
pub fn is_link(line: &str) -> bool {
    LINK.iter().all(|mark| line.contains(mark))
}

/// An end of a link: `0x… "name"  12   34[  ] "name"`, where the GUID and the names may be missing.
struct LinkEnd<'a> {
    guid: Option<Guid>,
    lid: Option<u16>,
    number: Option<PortNumber>,
    name: Option<&'a str>,
}

fn link_end(text: &str) -> LinkEnd<'_> {
    let parts = text::enclosed(text, '"', '"');
    let name = parts.map(|[_, name, _]| name);
    let outside = match parts {
        Some([before, _, after]) => format!("{before} {after}"),
        None => text.to_owned(),
    };
    let outside = outside.split('[').next().unwrap_or_default();
    let mut numbers = outside.split_whitespace().filter(|word| !word.starts_with("0x"));
    let guid = outside.split_whitespace().find(|word| word.starts_with("0x")).and_then(text::guid);
    let lid = numbers.next().and_then(text::lid);
    LinkEnd { guid, lid, number: numbers.next().and_then(|it| it.parse().ok()), name }
}

/// Adds a link. `own` is the near end where its line does not have a GUID: the switch of the block, or a port.
pub(super) fn link(line: &str, own: Option<PortName>, found: &mut Contents) -> Option<()> {
    let (near, rest) = line.split_once(LINK[0])?;
    let (about, far) = rest.split_once(LINK[1])?;
    let near = link_end(near);
    let (rate, states) = about.split_once("Gbps").unwrap_or(("", about));
    let (width, speed) = rate.trim().split_once(char::is_whitespace).unwrap_or_default();
    let (port_state, physical_state) = states.rsplit_once('/').unwrap_or_default();
    let port_state = port_state.split_whitespace().next_back().unwrap_or_default();
    let record = PortRecord {
        width: text::width(width),
        speed: text::speed(speed),
        state: text::port_state(port_state),
        physical_state: text::physical_state(physical_state),
        ..PortRecord::default()
    };
    let key = match (own, near.guid, near.number) {
        (Some(PortName::Node(guid, 0)), None, Some(number)) => PortName::Node(guid, number),
        (Some(own @ PortName::Port(..)), None, _) => own,
        (_, Some(guid), Some(number)) => PortName::Port(guid, number),
        // Without the header of a block, as after grep.
        (_, None, Some(number)) => PortName::Lid(near.lid?, number),
        _ => return None,
    };
    if let PortName::Port(guid, number) = key
        && let Some(name) = near.name
    {
        let node = found.node(guid);
        node.description = text::description(name);
        node.port_count = node.port_count.max(number);
    }
    let is_down = record.state == Some(PortState::Down);
    found.port(key).merge(PortRecord { lid: near.lid, ..record.clone() });
    // The parentheses behind the name of the far end are hints.
    let far = link_end(far.rsplit_once(" (").map_or(far, |(far, _)| far));
    let far_key = match (far.guid, far.lid, far.number) {
        (Some(guid), _, Some(number)) => PortName::Port(guid, number),
        (None, Some(lid), Some(number)) => PortName::Lid(lid, number),
        _ => return Some(()),
    };
    if let PortName::Port(guid, port_count) = far_key {
        let description = text::description(far.name.unwrap_or_default());
        found.node(guid).merge(NodeRecord { description, port_count, ..NodeRecord::default() });
    }
    if !is_down {
        found.port(far_key).merge(PortRecord { lid: far.lid, ..record });
        found.links.push((key, far_key));
    }
    Some(())
}

/// Reads the output of iblinkinfo, with blocks or with `--line`.
pub fn parse(text: &str) -> Result<Contents, Problem> {
    let mut found = Contents { is_topology: true, ..Contents::default() };
    // A switch with its GUID, or an adapter.
    let mut block: Option<(Option<Guid>, &str)> = None;
    for (index, line) in text.lines().enumerate() {
        let header =
            |prefix: &str| line.strip_prefix(prefix).map(|rest| rest.trim().trim_end_matches(':'));
        if let Some(name) = header("CA:") {
            block = Some((None, name));
        } else if let Some(rest) = header("Switch:").or_else(|| header("Switch ")) {
            let (guid, name) = rest.split_once(' ').unwrap_or((rest, ""));
            let guid = text::guid(guid).ok_or_else(|| {
                Problem::at(index + 1, format!("the switch {rest:?} has no GUID"))
            })?;
            let node = found.node(guid);
            (node.kind, node.description) = (Some(NodeKind::Switch), text::description(name));
            block = Some((Some(guid), name));
        } else if is_link(line) {
            let own = block.and_then(|(guid, ..)| Some(PortName::Node(guid?, 0)));
            link(line, own, &mut found)
                .ok_or_else(|| Problem::at(index + 1, "the ends of a link cannot be read"))?;
            let near = link_end(line.split(LINK[0]).next().unwrap_or_default());
            match (block, near.guid) {
                (Some((None, name)), Some(guid)) => {
                    let node = found.node(guid);
                    (node.kind, node.description) = (Some(NodeKind::Ca), text::description(name));
                    node.port_count = node.port_count.max(near.number.unwrap_or(0));
                }
                (Some((Some(guid), ..)), _) => {
                    let node = found.node(guid);
                    node.lid = node.lid.or(near.lid);
                    node.port_count = node.port_count.max(near.number.unwrap_or(0));
                }
                _ => {}
            }
        } else if line.trim().is_empty() {
            block = None;
        }
    }
    Ok(found)
}
