//! `*.lst` of ibdiagnet2: a line per cable. Its numbers are hexadecimal, without `0x`.

use std::collections::HashSet;

use ib_mad::PortNumber;
use ib_mad::node::NodeKind;

use crate::contents::{Contents, NameRank, NodeName, NodeRecord, PortName, PortRecord};
use crate::lines::Line;
use crate::problem::Problem;
use crate::text;
use crate::tool_output::ToolOutput;

/// A cable: two ends in braces, then `PHY=4x LOG=ACT SPD=25`.
struct Row {
    ends: [End; 2],
    record: PortRecord,
}

struct End {
    name: PortName,
    node: NodeRecord,
    port: PortRecord,
}

/// Whether a line is meant as a cable.
pub fn is_damaged(line: &str) -> bool {
    line.starts_with("{ ") || line.contains("NodeGUID:") && line.contains("PN:")
}

/// Whether a whole line is a cable.
pub fn is_line(line: &str) -> bool {
    line.starts_with("{ ") && row(line).is_some()
}

fn row(line: &str) -> Option<Row> {
    let rest = line.strip_prefix("{ ")?;
    let (near, rest) = rest.split_once(" } { ")?;
    let (far, state) = rest.rsplit_once(" } ")?;
    let mut record = PortRecord::default();
    let mut words = 0;
    for word in state.split_whitespace() {
        words += 1;
        match word.split_once('=')? {
            ("PHY", value) => record.width = Some(text::width(value)?),
            ("LOG", value) => record.state = Some(text::port_state(value)?),
            ("SPD", value) => {
                record.speed = text::speed(value);
                (record.speed.is_some() || value.contains(['?', 'N'])).then_some(())?;
            }
            _ => {}
        }
    }
    (words >= 3).then_some(Row { ends: [end(near)?, end(far)?], record })
}

/// `CA Ports:01 SystemGUID:… NodeGUID:… PortGUID:… VenID:… DevID:… Rev:… {name} LID:00b5 PN:01`.
fn end(text: &str) -> Option<End> {
    // Two cables in a line: the text between them was lost.
    if text.contains(" } ") {
        return None;
    }
    // Old versions have no name. A name may contain braces.
    let [front, name, back] = text::enclosed(text, '{', '}').unwrap_or([text, "", ""]);
    let words = front.split_whitespace().chain(back.split_whitespace());
    let field = |name: &str| text::field(words.clone(), name);
    let hex = |name: &str| u32::from_str_radix(field(name), 16).ok();
    let guid = text::whole_guid(field("NodeGUID:"))?;
    let number = PortNumber::try_from(hex("PN:")?).ok()?;
    let lid =
        hex("LID:").and_then(|lid| u16::try_from(lid).ok()).filter(|lid| text::is_unicast(*lid));
    let kind = text::kind(front.split_whitespace().next()?)?;
    let is_switch = kind == NodeKind::Switch;
    let node = NodeRecord {
        port_count: hex("Ports:").and_then(|count| u8::try_from(count).ok()).unwrap_or(0),
        system_guid: text::guid(field("SystemGUID:")),
        vendor_id: hex("VenID:").unwrap_or(0),
        device_id: hex("DevID:").unwrap_or(0) as u16,
        lid: lid.filter(|_| is_switch),
        ..NodeRecord::named(Some(kind), text::description(name), NameRank::Device)
    };
    let guid_of_port = text::guid(field("PortGUID:")).filter(|_| !is_switch);
    let port =
        PortRecord { guid: guid_of_port, lid: lid.filter(|_| !is_switch), ..PortRecord::default() };
    Some(End { name: PortName { node: NodeName::Node(guid), number }, node, port })
}

/// Reads `*.lst`.
pub fn parse<'a>(lines: impl Iterator<Item = Line<'a>>) -> Result<Vec<Contents>, Problem> {
    let mut output = ToolOutput::new(true);
    let mut known = HashSet::new();
    for line in lines {
        match row(line.text) {
            // The number of the speed may go on.
            Some(_) if line.is_open => output.cut_off(line),
            Some(Row { ends, record }) => {
                let names = ends.each_ref().map(|end| end.name);
                output.list_once(&mut known, names);
                for End { name, node, port } in ends {
                    output.found.node(name.node).merge(node);
                    output.found.port(name).merge(port);
                    output.found.port(name).merge(record.clone());
                }
                output.found.links.push((names[0], names[1]));
            }
            None if is_damaged(line.text) => {
                output.damaged(
                    line,
                    "two ends in a line of *.lst, `{ CA … } { SW … } PHY=4x LOG=ACT SPD=25`",
                )?;
            }
            None => output.skip(line),
        }
    }
    Ok(output.finish())
}
