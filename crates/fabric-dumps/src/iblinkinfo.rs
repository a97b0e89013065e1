//! The output of iblinkinfo: blocks of nodes, or with `--line` a line per port.

use std::collections::HashSet;

use ib_mad::node::NodeKind;
use ib_mad::port_state::{PhysicalState, PortState};
use ib_mad::rate::{Speed, SpeedSet, Width};
use ib_mad::{Guid, PortNumber};

use crate::contents::{Contents, NameRank, NodeName, NodeRecord, PortName, PortRecord};
use crate::lines::Line;
use crate::problem::Problem;
use crate::remark::Remark;
use crate::scan::Scan;
use crate::text;
use crate::tool_output::ToolOutput;

/// What a line of iblinkinfo is.
enum Entry<'a> {
    Node(NodeKind, &'a str),
    Switch(Guid, &'a str),
    Row(Row<'a>),
}

/// A port and its peer: `[GUID ["name"]] LID PORT[EXT] ==( 4X 25.78125 Gbps Active/ LinkUp)==> … "name" (hints)`.
pub struct Row<'a> {
    near: End<'a>,
    record: PortRecord,
    /// None where the port has no link.
    far: Option<End<'a>>,
    is_down: bool,
}

/// An end of a link, where the GUID, the LID and the name may be missing.
struct End<'a> {
    guid: Option<Guid>,
    lid: Option<u16>,
    number: PortNumber,
    name: Option<&'a str>,
}

fn entry(line: &str) -> Option<Entry<'_>> {
    if let Some(row) = row(line) {
        return Some(Entry::Row(row));
    }
    let header = |prefix: &str| line.strip_prefix(prefix)?.strip_suffix(':').map(str::trim);
    let kinds = [("CA:", NodeKind::Ca), ("Router:", NodeKind::Router), ("RT:", NodeKind::Router)];
    if let Some((kind, name)) =
        kinds.into_iter().find_map(|(word, kind)| Some((kind, header(word)?)))
    {
        return Some(Entry::Node(kind, name));
    }
    let mut scan = Scan::new(header("Switch:").or_else(|| header("Switch "))?);
    let guid = scan.guid()?;
    Some(Entry::Switch(guid, scan.rest()))
}

/// Whether a whole line is one of iblinkinfo.
pub fn is_line(line: &str) -> bool {
    let may_be = line.contains("==(") || line.ends_with(':');
    may_be && entry(line).is_some()
}

/// Whether a line is a damaged one of iblinkinfo.
pub fn is_damaged(line: &str) -> bool {
    let is_header = |line: &str| {
        line.contains("Switch: 0x")
            || line.starts_with("CA: ")
            || line.contains(" CA: ")
            || line.starts_with("Router: ")
    };
    line.contains("==(") || line.contains(")==>") || is_header(line)
}

/// A row.
pub fn row(line: &str) -> Option<Row<'_>> {
    let mut scan = Scan::new(line);
    let near = near_end(scan.until("==(")?)?;
    let (width, speed, state, physical) = rate_and_state(scan.until(")==>")?)?;
    let (far, hints) = far_end(scan.rest())?;
    let (could_width, could_speed) = hinted(hints);
    // Ports for 12 lanes run at 4 with every cable that is sold for 4: that is no lost lane.
    let could_width = could_width.filter(|could| *could <= Width::X4 || width > Some(Width::X4));
    let mut record = PortRecord {
        lid: near.lid,
        width,
        speed,
        state,
        physical_state: physical,
        ..PortRecord::default()
    };
    // The tool compares what both ends support: without a hint they run at their best.
    if let (Some(width), Some(speed)) = (width, speed) {
        record.widths_supported = could_width.unwrap_or(width).up_to() | width.code();
        let speeds = SpeedSet::default().with(speed);
        record.speeds_supported = could_speed.map_or(speeds, |could| speeds.with(could));
        (record.widths_enabled, record.speeds_enabled) =
            (record.widths_supported, record.speeds_supported);
    }
    let is_down = state == Some(PortState::Down);
    Some(Row { near, record, far, is_down })
}

fn near_end(text: &str) -> Option<End<'_>> {
    let mut scan = Scan::new(text);
    let guid = if scan.is_at("0x") { Some(scan.guid()?) } else { None };
    let name = if scan.is_at("\"") {
        scan.skip("\"")?;
        Some(scan.until_last("\"")?)
    } else {
        None
    };
    let (lid, number) = lid_and_number(&mut scan)?;
    scan.end()?;
    Some(End { guid, lid, number, name })
}

/// `LID PORT[EXT]`, where the LID may be missing.
fn lid_and_number(scan: &mut Scan<'_>) -> Option<(Option<u16>, PortNumber)> {
    let first: u32 = scan.number()?;
    let (lid, number) =
        if scan.is_at("[") { (None, first) } else { (u16::try_from(first).ok(), scan.number()?) };
    scan.skip("[")?;
    scan.until("]")?.trim().chars().all(|it| it.is_ascii_digit()).then_some(())?;
    Some((lid.filter(|lid| text::is_unicast(*lid)), u8::try_from(number).ok()?))
}

/// A row of `ibqueryerrors -r`, whose port is known.
pub fn row_of(line: &str, number: PortNumber) -> Option<Row<'_>> {
    row(line).filter(|row| row.near.number == number)
}

/// The far end, and the hints in parentheses behind it.
fn far_end(text: &str) -> Option<(Option<End<'_>>, &str)> {
    if text.trim() == "\"Port not available\"" {
        return Some((None, ""));
    }
    let mut scan = Scan::new(text);
    let guid = if scan.is_at("0x") { Some(scan.guid()?) } else { None };
    let place = if scan.is_at("[") {
        scan.skip("[")?;
        scan.until("]")?;
        None
    } else {
        Some(lid_and_number(&mut scan)?)
    };
    scan.skip("\"")?;
    let name = scan.until_last("\"").filter(|name| is_name(name))?;
    scan.skip("(")?;
    let hints = scan.rest().strip_suffix(')')?;
    let end = place.map(|(lid, number)| End { guid, lid, number, name: Some(name) });
    Some((end, hints))
}

/// Whether a text is a name, and not several lines in one.
fn is_name(text: &str) -> bool {
    !["==(", ")==>", "[  ]"].iter().any(|mark| text.contains(mark))
}

type RateAndState = (Option<Width>, Option<Speed>, Option<PortState>, Option<PhysicalState>);

/// `4X 10.0 Gbps (FDR10) Active/ LinkUp`, or without a rate `Down/ Polling`. What the tool itself calls undefined is
/// unknown.
fn rate_and_state(text: &str) -> Option<RateAndState> {
    // With -p: `…) (HOQ:18 VL_Stall:7`.
    let text = text.split_once(") (HOQ:").map_or(text, |(text, _)| text);
    let (rate, states) = match text.split_once("Gbps") {
        Some((rate, states)) => (Some(rate), states.trim()),
        None => (None, text.trim()),
    };
    let (fdr10, states) = match states.strip_prefix("(FDR10)") {
        Some(states) => (true, states.trim()),
        None => (false, states),
    };
    let (state, physical) = states.split_once('/')?;
    let is_unknown = |word: &str| word.contains(['?', '(']) || word.is_empty();
    // A rate in an unknown form, which is before the state, is unknown, too.
    let state = state.trim();
    let word = state.rsplit(char::is_whitespace).next().unwrap_or_default();
    let has_other_rate = rate.is_none() && state.len() > word.len();
    let known_state = text::port_state(word);
    if known_state.is_none() && !is_unknown(word) || has_other_rate && !is_unknown(state) {
        return None;
    }
    let known_physical = text::physical_state(physical);
    if known_physical.is_none() && !is_unknown(physical.trim()) {
        return None;
    }
    let (mut width, mut speed) = (None, None);
    if let Some(rate) = rate {
        let (width_word, speed_word) = rate.trim().split_once(char::is_whitespace)?;
        (width, speed) = (text::width(width_word), text::speed(speed_word));
        let is_wrong =
            |is_none: bool, word: &str| is_none && !is_unknown(word) && word != "undefined";
        if is_wrong(width.is_none(), width_word) || is_wrong(speed.is_none(), speed_word.trim()) {
            return None;
        }
        if fdr10 {
            speed = Some(Speed::Fdr10);
        }
    }
    Some((width, speed, known_state, known_physical))
}

/// The rate that both ends support, if it is higher: `Could be 4X Could be 53.125 Gbps`, `Could be FDR10 (…)`.
fn hinted(hints: &str) -> (Option<Width>, Option<Speed>) {
    let mut found = (None, None);
    for hint in hints.split("Could be ").skip(1) {
        let word = hint.split_whitespace().next().unwrap_or_default();
        found.0 = found.0.or(text::width(word));
        found.1 = found.1.or(text::speed(word));
    }
    found
}

/// The node whose ports the next rows are.
#[derive(Clone, Copy, Default)]
enum Block<'a> {
    /// The header is missing, or each row names its node.
    #[default]
    None,
    /// With the LID of its rows.
    Switch(Guid, Option<u16>),
    /// An adapter or router, with the GUID of its first port.
    Node(NodeKind, &'a str, Option<Guid>),
}

/// Reads the output of iblinkinfo.
pub fn parse<'a>(lines: impl Iterator<Item = Line<'a>>) -> Result<Vec<Contents>, Problem> {
    let mut output = ToolOutput::new(true);
    let mut block = Block::None;
    let mut near_ends: HashSet<PortName> = HashSet::new();
    let mut headless: Option<usize> = None;
    for line in lines {
        match entry(line.text) {
            Some(Entry::Node(kind, name)) => block = Block::Node(kind, name, None),
            Some(Entry::Switch(guid, name)) => {
                block = Block::Switch(guid, None);
                let name = text::description(name);
                let node = NodeRecord::named(Some(NodeKind::Switch), name, NameRank::Own);
                output.found.node(NodeName::Node(guid)).merge(node);
            }
            Some(Entry::Row(row)) => {
                let near = row.near_name(&mut block);
                let Some(near) = near else {
                    output.damaged(line, "the LID or GUID of the port")?;
                    continue;
                };
                // Each port is listed once by a run of the tool.
                output.list_once(&mut near_ends, near);
                let is_headless = matches!(block, Block::None) && row.near.name.is_none();
                headless = headless.or(is_headless.then_some(line.number));
                row.add(near, line.number, &block, &mut output.found);
            }
            None if is_damaged(line.text) => {
                output.damaged(
                    line,
                    "a line of iblinkinfo, `LID PORT[ ] ==(…)==> LID PORT[ ] \"name\" (…)`",
                )?;
            }
            None => output.skip(line),
        }
    }
    if let Some(number) = headless {
        let what =
            "ports without the header of their node (CA: or Switch:): its name may be unknown";
        output.found.remark(Remark::used(number, what));
    }
    let mut readings = output.finish();
    readings.iter_mut().for_each(note_other_names);
    Ok(readings)
}

/// Other lines name the switch with a LID differently: its header, and maybe rows of another one, are missing.
fn note_other_names(found: &mut Contents) {
    let other = found.nodes.iter().find_map(|(name, node)| {
        let lid = node.lid.filter(|_| matches!(name, NodeName::Node(_)))?;
        let other = found.nodes.get(&NodeName::Lid(lid))?;
        let differs = !other.description.is_empty() && other.description != node.description;
        differs.then(|| (lid, node.description.clone(), other.description.clone()))
    });
    if let Some((lid, own, other)) = other {
        let what = format!(
            "LID {lid} is {own:?} by its header and {other:?} by its peers: a header may be missing"
        );
        found.remark(Remark::unused(0, what));
    }
}

impl End<'_> {
    /// In a block the GUID is that of the port; a line that names its node may have the node's.
    fn guid_name(&self, guid: Guid) -> PortName {
        let node = if self.name.is_some() { NodeName::Either(guid) } else { NodeName::Port(guid) };
        PortName { node, number: self.number }
    }
}

impl Row<'_> {
    /// The name of the near port, in or outside of a block.
    fn near_name(&self, block: &mut Block<'_>) -> Option<PortName> {
        let number = self.near.number;
        if self.near.name.is_some() {
            *block = Block::None;
        }
        if let Some(guid) = self.near.guid {
            let name = self.near.guid_name(guid);
            match block {
                Block::Node(_, _, first)
                    if first.is_none_or(|first| text::is_near(first, guid)) =>
                {
                    *first = first.or(Some(guid));
                }
                // The header of an adapter is missing.
                _ => *block = Block::None,
            }
            return Some(name);
        }
        match block {
            Block::Switch(guid, lid)
                if lid.is_none() || self.near.lid.is_none() || *lid == self.near.lid =>
            {
                *lid = lid.or(self.near.lid);
                return Some(PortName::node(*guid, number));
            }
            // The header of another switch is missing.
            _ => *block = Block::None,
        }
        Some(PortName::lid(self.near.lid?, number))
    }

    fn add(self, near: PortName, line: usize, block: &Block<'_>, found: &mut Contents) {
        let number = near.number;
        let known = match block {
            Block::Node(kind, name, first) => {
                let first = first.map(NodeName::Port).filter(|first| *first != near.node);
                found.same.extend(first.map(|first| (first, near.node)));
                NodeRecord::named(Some(*kind), text::description(name), NameRank::Own)
            }
            Block::Switch(_, lid) => NodeRecord { lid: *lid, ..NodeRecord::default() },
            Block::None => {
                let name = text::description(self.near.name.unwrap_or_default());
                NodeRecord::named(None, name, NameRank::Own)
            }
        };
        found.node(near.node).merge(NodeRecord { port_count: number, ..known });
        self.add_ports(near, line, found);
    }

    /// Adds the port and its link, where `near` is known otherwise.
    pub fn add_ports(self, near: PortName, line: usize, found: &mut Contents) {
        let Row { record, far, is_down, .. } = self;
        found.port(near).merge(record);
        let Some(far) = far else { return };
        let name = match (far.guid, far.lid) {
            (Some(guid), _) => PortName { node: NodeName::Either(guid), number: far.number },
            (None, Some(lid)) => PortName::lid(lid, far.number),
            (None, None) => {
                let name = far.name.unwrap_or_default();
                let what = format!("link left out: its far end {name:?} has no LID and no GUID");
                found.remark(Remark::unused(line, what));
                return;
            }
        };
        let description = text::description(far.name.unwrap_or_default());
        let node = NodeRecord::named(None, description, NameRank::Peer);
        found.node(name.node).merge(NodeRecord { port_count: far.number, ..node });
        if !is_down {
            found.port(name).merge(PortRecord { lid: far.lid, ..PortRecord::default() });
            found.links.push((near, name));
        }
    }
}
