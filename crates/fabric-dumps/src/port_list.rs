//! The output of `ibnetdiscover -p`: a line per port.

use std::collections::HashMap;

use ib_mad::node::NodeKind;
use ib_mad::rate::{Speed, Width};
use ib_mad::{Guid, PortNumber};

use crate::contents::{Contents, NameRank, NodeRecord, PortName, PortRecord};
use crate::lines::Line;
use crate::problem::Problem;
use crate::scan::Scan;
use crate::text;
use crate::tool_output::ToolOutput;

/// `CA   134  1 0x7cfe9003003b4bde`, with the name at the end of the line.
#[derive(Clone, Copy, PartialEq, Eq)]
struct End<'a> {
    kind: NodeKind,
    lid: Option<u16>,
    number: PortNumber,
    guid: Guid,
    name: &'a str,
}

#[derive(Clone, Copy, PartialEq, Eq)]
/// `END 4x EDR - END ( 'name' - 'name' )`, or `END 4x SDR 'name'` of a port without a link.
struct Row<'a> {
    near: End<'a>,
    far: Option<End<'a>>,
    width: Option<Width>,
    speed: Option<Speed>,
}

fn end<'a>(scan: &mut Scan<'a>) -> Option<End<'a>> {
    let kind = match scan.word(&[])? {
        "CA" => NodeKind::Ca,
        "SW" => NodeKind::Switch,
        "RT" => NodeKind::Router,
        _ => return None,
    };
    let lid: u32 = scan.number()?;
    let lid = u16::try_from(lid).ok().filter(|lid| text::is_unicast(*lid));
    Some(End { kind, lid, number: scan.number()?, guid: scan.guid()?, name: "" })
}

fn row(line: &str) -> Option<Row<'_>> {
    let mut scan = Scan::new(line);
    let mut near = end(&mut scan)?;
    let (width_word, speed_word) = (scan.word(&[])?, scan.word(&['\''])?);
    let (width, speed) = (text::width(width_word), text::speed(speed_word));
    let is_unknown = |word: &str| word.contains('?');
    if width.is_none() && !is_unknown(width_word) || speed.is_none() && !is_unknown(speed_word) {
        return None;
    }
    let mut peer = scan;
    if peer.skip("- ").is_some() {
        let mut far = end(&mut peer)?;
        let names = peer.rest().strip_prefix('(')?.strip_suffix(')')?.trim();
        let names = names.strip_prefix('\'')?.strip_suffix('\'')?;
        let (near_name, far_name) = names.split_once("' - '")?;
        (near.name, far.name) = (near_name, far_name);
        return Some(Row { near, far: Some(far), width, speed });
    }
    // Old versions have no quotes.
    let name = scan.rest();
    near.name = match name.strip_prefix('\'') {
        Some(name) => name.strip_suffix('\'')?,
        None if name.is_empty() || name.starts_with(['-', '(']) => return None,
        None => name,
    };
    Some(Row { near, far: None, width, speed })
}

/// Whether a whole line is one of `ibnetdiscover -p`.
pub fn is_line(line: &str) -> bool {
    ["CA ", "SW ", "RT ", "CA\t", "SW\t", "RT\t"].iter().any(|word| line.starts_with(word))
        && row(line).is_some()
}

/// Whether a line is a damaged one of `ibnetdiscover -p`.
pub fn is_damaged(line: &str) -> bool {
    let mut words = line.split_whitespace();
    let is_kind = words.next().is_some_and(|it| matches!(it, "CA" | "SW" | "RT"));
    is_kind && words.next().is_some_and(|it| it.bytes().all(|it| it.is_ascii_digit()))
        || line.contains(" - SW ")
        || line.contains(" - CA ")
        || line.contains("' - '")
}

/// Reads the format with a line per port.
pub fn parse<'a>(lines: impl Iterator<Item = Line<'a>>) -> Result<Vec<Contents>, Problem> {
    let mut output = ToolOutput::new(true);
    let mut known: HashMap<PortName, Row<'a>> = HashMap::new();
    let mut first = None;
    for line in lines {
        match row(line.text) {
            Some(row) => {
                let name = row.near.port_name();
                // Another run lists the same ports.
                if known.get(&name).is_some_and(|known| *known != row)
                    || known.contains_key(&name) && first == Some(name)
                {
                    output.next_reading();
                    (known, first) = (HashMap::new(), None);
                }
                first = first.or(Some(name));
                known.insert(name, row);
                row.add(&mut output.found);
            }
            None if is_damaged(line.text) => {
                let expected = "a line of `ibnetdiscover -p`, `CA LID PORT 0xGUID 4x EDR - SW LID PORT 0xGUID ( 'name' - 'name' )`";
                output.damaged(line, expected)?;
            }
            None => output.skip(line),
        }
    }
    Ok(output.finish())
}

impl End<'_> {
    /// The GUID is that of the switch, or of the adapter's port.
    fn port_name(&self) -> PortName {
        match self.kind {
            NodeKind::Switch => PortName::node(self.guid, self.number),
            _ => PortName::port(self.guid, self.number),
        }
    }

    fn add(&self, rank: NameRank, found: &mut Contents) -> PortName {
        let name = self.port_name();
        let is_switch = self.kind == NodeKind::Switch;
        found.node(name.node).merge(NodeRecord {
            port_count: self.number,
            lid: self.lid.filter(|_| is_switch),
            ..NodeRecord::named(Some(self.kind), text::description(self.name), rank)
        });
        let lid = self.lid.filter(|_| !is_switch);
        found.port(name).merge(PortRecord { lid, ..PortRecord::default() });
        name
    }
}

impl Row<'_> {
    fn add(&self, found: &mut Contents) {
        let near = self.near.add(NameRank::Own, found);
        let Some(far) = &self.far else { return };
        // Of a port without a link they are left over.
        let (width, speed) = (self.width, self.speed);
        found.port(near).merge(PortRecord { width, speed, ..PortRecord::default() });
        let far = far.add(NameRank::Peer, found);
        found.links.push((near, far));
    }
}
