//! The output of ibqueryerrors.

use std::collections::{HashMap, HashSet};

use ib_mad::node::NodeKind;
use ib_mad::{Guid, PortNumber};

use crate::contents::{Contents, NameRank, NodeName, NodeRecord, PortName};
use crate::counters;
use crate::iblinkinfo;
use crate::lines::Line;
use crate::problem::Problem;
use crate::remark::Remark;
use crate::scan::Scan;
use crate::text;
use crate::tool_output::ToolOutput;

/// What a line of ibqueryerrors is.
enum Entry<'a> {
    /// A node, of whose ports the lines are.
    Header(Header<'a>),
    /// A port, or all of them (`None`), with its counters.
    Port(Guid, Option<PortNumber>, Vec<Count<'a>>),
    /// More counters of the port before: details, or the rest of a wrapped line.
    More(Vec<Count<'a>>),
    /// The link of the port before.
    Link(&'a str),
    /// The numbers of nodes and ports that were checked: the end of the output.
    Summary(&'a str),
    /// Thresholds and suppressed counters.
    Other,
}

/// `Errors for "name"` of an adapter, whose ports have their own GUIDs; `Errors for 0x… "name"` of a switch; with
/// `--counters`, `Data Counters for 0x… "name"` of any node, whose ports have the GUID of the node.
#[derive(Clone, Copy)]
struct Header<'a> {
    guid: Option<Guid>,
    name: &'a str,
    kind: Option<NodeKind>,
}

/// A counter by the name that the tool has for it, and its value.
type Count<'a> = (&'a str, &'a str);

/// The groups `[NAME == VALUE (AMOUNT)]` of a line.
fn counts(text: &str) -> Option<Vec<Count<'_>>> {
    let mut scan = Scan::new(text);
    let mut counts = Vec::new();
    while scan.end().is_none() {
        scan.skip("[")?;
        let group = scan.until("]")?;
        let (name, value) = group.split_once("==")?;
        let (name, value) = (name.trim(), value.trim());
        let (number, amount) = value.split_once(char::is_whitespace).unwrap_or((value, ""));
        let amount = amount.trim();
        let is_whole = amount.is_empty() || amount.starts_with('(') && amount.ends_with(')');
        let is_number = text::number(number).is_some() || matches!(number, "N/A" | "NA" | "-1");
        let is_name = !name.is_empty() && name.bytes().all(|it| it.is_ascii_alphanumeric());
        if !is_whole || !is_number || !is_name {
            return None;
        }
        counts.push((name, number));
    }
    Some(counts)
}

fn entry(line: &str) -> Option<Entry<'_>> {
    if let Some(summary) = line.strip_prefix("## Summary:") {
        return Some(Entry::Summary(summary.trim()));
    }
    if line.starts_with("##") {
        return Some(Entry::Other);
    }
    let words = [("Errors for ", Some(NodeKind::Switch)), ("Data Counters for ", None)];
    if let Some((kind, rest)) =
        words.into_iter().find_map(|(word, kind)| Some((kind, line.strip_prefix(word)?)))
    {
        let mut scan = Scan::new(rest);
        let guid = if scan.is_at("0x") { Some(scan.guid()?) } else { None };
        scan.skip("\"")?;
        let name = scan.until_last("\"")?;
        let is_end = matches!(scan.rest(), "" | ":");
        let kind = if guid.is_some() { kind } else { None };
        return is_end.then_some(Entry::Header(Header { guid, name, kind }));
    }
    let mut scan = Scan::new(line);
    if scan.skip("GUID").is_some() {
        let guid = scan.guid()?;
        scan.skip("port ")?;
        let number = if scan.is_at("ALL") {
            scan.skip("ALL").map(|()| None)
        } else {
            scan.number().map(Some)
        }?;
        scan.skip(":")?;
        // A port is listed because of its counters.
        let counts = counts(scan.rest()).filter(|counts| !counts.is_empty())?;
        return Some(Entry::Port(guid, number, counts));
    }
    if let Some(link) = line.strip_prefix("Link info:") {
        return link.contains("==(").then_some(Entry::Link(link));
    }
    // `PortXmitDiscardDetails: [PortInactiveDiscards == 5]`
    let groups = match line.split_once(':') {
        Some((name, groups)) if name.bytes().all(|it| it.is_ascii_alphanumeric()) => groups.trim(),
        _ => line,
    };
    let is_more = groups.starts_with('[');
    Some(Entry::More(counts(groups).filter(|_| is_more)?))
}

/// Whether a whole line is one of ibqueryerrors.
pub fn is_line(line: &str) -> bool {
    let marks = ["GUID", "Errors for ", "Data Counters for ", "## ", "Link info:"];
    let may_be = marks.iter().any(|mark| line.starts_with(mark)) || line.ends_with(']');
    may_be && entry(line).is_some()
}

/// Whether a line is a damaged one of ibqueryerrors.
pub fn is_damaged(line: &str) -> bool {
    line.contains("GUID 0x")
        || line.contains("Errors for ")
        || line.contains("Data Counters for ")
        || line.starts_with("Link info:")
        || line.contains(" == ")
        || line.starts_with('[') && line.contains("==")
}

/// Reads the output of ibqueryerrors. Without `--counters` it lists only counters above a threshold: those that it does
/// not list are unknown.
pub fn parse<'a>(lines: impl Iterator<Item = Line<'a>>) -> Result<Vec<Contents>, Problem> {
    let mut output = ToolOutput::new(false);
    let mut block: Option<Block<'_>> = None;
    let mut port = None;
    let (mut is_complete, mut last) = (false, 0);
    let mut unknown: HashSet<&str> = HashSet::new();
    for line in lines {
        last = line.number;
        let Some(entry) = entry(line.text) else {
            if is_damaged(line.text) {
                output.damaged(
                    line,
                    "a line of ibqueryerrors, `GUID 0x… port N: [NAME == VALUE] …`",
                )?;
            } else {
                output.skip(line);
            }
            continue;
        };
        let begins = matches!(entry, Entry::Header(..) | Entry::Port(..) | Entry::Summary(_));
        if begins && is_complete {
            output.next_reading();
            is_complete = false;
        }
        match entry {
            Entry::Header(header) => {
                (block, port) = (Some(Block { header, ports: HashMap::new() }), None);
            }
            Entry::Port(guid, number, counts) => {
                // The sum of a switch's ports saturates.
                let Some(number) = number else {
                    port = None;
                    continue;
                };
                let name = port_name(guid, number, &mut block, &mut output.found);
                let known = output.found.ports.get(&name).map(|port| &port.counters);
                if known.is_some_and(|known| known.differs(&counts)) {
                    output.next_reading();
                    port_name(guid, number, &mut block, &mut output.found);
                }
                note_unknown(&counts, line, &mut unknown, &mut output.found);
                let counters = &mut output.found.port(name).counters;
                for (counter, value) in counts {
                    counters.set_by_name(counter, false, value);
                }
                port = Some(name);
            }
            Entry::More(counts) => match port {
                Some(port) => {
                    let counters = &mut output.found.port(port).counters;
                    for (counter, value) in counts {
                        counters.set_by_name(counter, false, value);
                    }
                }
                None => output.damaged(line, "the line `GUID 0x… port N:` before its counters")?,
            },
            Entry::Link(link) => match port {
                Some(port) => match iblinkinfo::row_of(link, port.number) {
                    Some(row) => row.add_ports(port, line.number, &mut output.found),
                    None => output.damaged(line, "a link, `Link info: LID PORT[ ] ==(…)==> …`")?,
                },
                None => output.skip(line),
            },
            Entry::Summary(text) => {
                is_complete = true;
                output.found.is_report = true;
                if !output.found.has_counters() {
                    let what = format!("ibqueryerrors lists no counter above a threshold: {text}");
                    output.found.remark(Remark::used(line.number, what));
                }
            }
            Entry::Other => {}
        }
    }
    if !is_complete && last > 0 {
        let what = "the summary at the end is missing: the output may be cut off here";
        output.found.remark(Remark::used(last, what));
    }
    Ok(output.finish())
}

/// Tells the first of each name that is no counter: a typing error, or one that only newer tools know.
fn note_unknown<'a>(
    counts: &[Count<'a>],
    line: Line<'_>,
    known: &mut HashSet<&'a str>,
    found: &mut Contents,
) {
    for (name, _) in counts {
        if counters::by_name(name).is_none() && known.insert(name) {
            let what = format!("{name} is no known counter, and was not used");
            found.remark(Remark::unused(line.number, what));
        }
    }
}

/// A node and its ports so far.
struct Block<'a> {
    header: Header<'a>,
    ports: HashMap<PortNumber, Guid>,
}

/// The name of a port, which also adds what its block says of its node.
fn port_name(
    guid: Guid,
    number: PortNumber,
    block: &mut Option<Block<'_>>,
    found: &mut Contents,
) -> PortName {
    // The same port twice, or another GUID: the header of the second node is missing.
    let is_its = block.as_ref().is_some_and(|block| {
        if let Some(of) = block.header.guid {
            return of == guid;
        }
        let is_same = block.ports.get(&number).is_none_or(|known| *known == guid);
        is_same && block.ports.values().all(|other| text::is_near(*other, guid))
    });
    if !is_its {
        *block = None;
    }
    let Some(block) = block else { return PortName::port(guid, number) };
    let Header { guid: of_node, name, kind } = block.header;
    let description = text::description(name);
    let name = if of_node.is_some() { NodeName::Node(guid) } else { NodeName::Port(guid) };
    // An adapter or a router.
    let known = NodeRecord::named(kind, description, NameRank::Errors);
    found.node(name).merge(NodeRecord { port_count: number, ..known });
    let near = block.ports.values().find(|other| **other != guid);
    if let (None, Some(other)) = (of_node, near) {
        found.same.push((NodeName::Port(*other), name));
    }
    block.ports.insert(number, guid);
    PortName { node: name, number }
}
