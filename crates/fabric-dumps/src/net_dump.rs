//! `*.net_dump` of ibdiagnet2: a table per switch. It names the port of a neighbor as it is labeled on the device, so the
//! neighbor's own table has the number; an adapter's port is found by its GUID.

use std::collections::{BTreeMap, HashMap};

use ib_mad::node::NodeKind;
use ib_mad::{Guid, PortNumber};

use crate::contents::{Contents, NameRank, NodeName, NodeRecord, PortName, PortRecord};
use crate::lines::Line;
use crate::problem::Problem;
use crate::remark::Remark;
use crate::scan::Scan;
use crate::text;
use crate::tool_output::ToolOutput;

/// `"MF0;leaf-1:MQM9700/U1", Mellanox, 0x0000000000000a00, LID 1`.
struct Switch<'a> {
    name: &'a str,
    guid: Guid,
    lid: Option<u16>,
}

fn switch(line: &str) -> Option<Switch<'_>> {
    let (name, rest) = line.strip_prefix('"')?.rsplit_once("\",")?;
    let mut words = rest.split(',').map(str::trim);
    let guid = words.find_map(|word| text::guid(word).filter(|_| word.starts_with("0x")))?;
    // The last word: a line that is cut off in the GUID has none.
    let lid = words.find_map(|word| word.strip_prefix("LID "))?;
    Some(Switch { name, guid, lid: text::lid(lid) })
}

/// Whether a line has the names of the columns.
fn is_columns(line: &str) -> bool {
    line.contains(": IB#") && line.contains("Neighbor Guid") && line.ends_with("Description")
}

/// The cells of a line. A description, the last cell, may contain colons.
fn cells(line: &str, columns: usize) -> Vec<&str> {
    line.splitn(columns.max(1), ':').map(str::trim).collect()
}

/// The columns that every version has before the neighbor.
const MIN_COLUMNS: usize = 8;

/// Whether a whole line is a port: `label : number : state : … : "description"`.
fn is_row(line: &str) -> bool {
    let cells = cells(line, MIN_COLUMNS);
    let number = |cell: &&str| !cell.is_empty() && cell.parse::<PortNumber>().is_ok();
    let is_state = |cell: &&str| text::port_state(cell).is_some() || matches!(*cell, "N/A" | "NOP");
    // Only a port without a cable has no neighbor.
    let is_down = cells.get(2).is_some_and(|cell| *cell != "ACT");
    cells.len() == MIN_COLUMNS
        && cells.get(1).is_some_and(number)
        && cells.get(2).is_some_and(is_state)
        && (line.ends_with('"') || line.ends_with(':') && is_down)
}

/// Whether a whole line is one of `*.net_dump`.
pub fn is_line(line: &str) -> bool {
    is_columns(line) || is_row(line) || line.starts_with('"') && switch(line).is_some()
}

/// Whether a line is a damaged one of `*.net_dump`.
pub fn is_damaged(line: &str) -> bool {
    line.matches(" : ").count() >= 3
        || line.contains("\", ") && (line.contains(", LID") || line.contains(", 0x"))
}

/// A port with a cable, until the tables of all switches are known.
struct Neighbor<'a> {
    line: usize,
    near: PortName,
    plane: PortNumber,
    guid: Guid,
    label: &'a str,
    name: &'a str,
}

/// The neighbors and labels of a reading.
#[derive(Default)]
struct Tables<'a> {
    neighbors: Vec<Neighbor<'a>>,
    numbers: HashMap<(Guid, &'a str), PortNumber>,
    /// The ports, with the names of their tables.
    rows: HashMap<PortName, &'a str>,
}

/// Reads `*.net_dump`.
pub fn parse<'a>(lines: impl Iterator<Item = Line<'a>>) -> Result<Vec<Contents>, Problem> {
    let mut output = ToolOutput::new(true);
    let mut open: Option<Switch<'a>> = None;
    let mut columns: Vec<&str> = Vec::new();
    let mut tables = Tables::default();
    for line in lines {
        if is_columns(line.text) {
            columns = line.text.split(':').map(str::trim).collect();
        } else if let Some(switch) = line.text.starts_with('"').then(|| switch(line.text)).flatten()
        {
            let name = NodeName::Node(switch.guid);
            let known = output.found.node(name);
            let description = text::description(switch.name);
            // All planes of a switch may be on one node, with a table for each.
            if let Some(whole) = without_plane(&description)
                .filter(|whole| {
                    without_plane(&known.description) == Some(whole) || known.description == *whole
                })
                .filter(|_| known.description != description)
            {
                known.description = whole.to_owned();
            }
            let node = NodeRecord::named(Some(NodeKind::Switch), description, NameRank::Device);
            known.merge(NodeRecord { lid: switch.lid, ..node });
            open = Some(switch);
        } else if is_row(line.text) {
            let Some(switch) = &open else {
                output.damaged(
                    line,
                    "the line of its switch, `\"name\", vendor, 0xGUID, LID N`, before a port",
                )?;
                continue;
            };
            let cells = cells(line.text, columns.len());
            if cells.len() < columns.len() || columns.is_empty() {
                let expected = format!("the {} columns of the header", columns.len());
                output.damaged(line, &expected)?;
                continue;
            }
            let row = Row { columns: &columns, cells: &cells };
            let number = row
                .cell("IB#")
                .parse()
                .map_err(|_| Problem::unreadable(line, "a port number (IB#)"))?;
            let name = PortName::node(switch.guid, number);
            match tables.rows.insert(name, switch.name) {
                // Another ASIC of the same node.
                Some(other) if other != switch.name => {
                    let what = format!("port {number} is in the table of {other:?}, too");
                    output.found.remark(Remark::unused(line.number, what));
                    continue;
                }
                Some(_) => {
                    std::mem::take(&mut tables).add_to(&mut output.found);
                    let node = output.found.nodes.get(&name.node).cloned().unwrap_or_default();
                    output.next_reading();
                    output.found.node(name.node).merge(node);
                    tables.rows.insert(name, switch.name);
                }
                None => {}
            }
            row.add(line.number, switch, number, &mut tables, &mut output.found);
        } else if is_damaged(line.text) {
            output.damaged(
                line,
                "a line of *.net_dump, `label : number : state : … : \"neighbor\"`",
            )?;
        } else {
            output.skip(line);
        }
    }
    tables.add_to(&mut output.found);
    Ok(output.finish())
}

/// The name of a switch without its ASIC: `MF0;xdr-1:Q3400_RA` of `MF0;xdr-1:Q3400_RA/U3`.
fn without_plane(name: &str) -> Option<&str> {
    let (name, number) = name.rsplit_once("/U")?;
    number.parse::<u8>().is_ok().then_some(name)
}

/// The number of the ASIC in the name of a switch.
fn plane(name: &str) -> PortNumber {
    let number = name.rsplit_once("/U").and_then(|(_, number)| number.parse().ok());
    number.filter(|number| (1..=8).contains(number)).unwrap_or(1)
}

/// A row by the names of its columns.
struct Row<'a, 'b> {
    columns: &'b [&'a str],
    cells: &'b [&'a str],
}

impl<'a> Row<'a, '_> {
    fn cell(&self, name: &str) -> &'a str {
        let column = self.columns.iter().position(|column| *column == name);
        column.and_then(|column| self.cells.get(column).copied()).unwrap_or_default()
    }

    fn add(
        &self,
        line: usize,
        switch: &Switch<'_>,
        number: PortNumber,
        tables: &mut Tables<'a>,
        found: &mut Contents,
    ) {
        tables
            .numbers
            .insert((switch.guid, self.cells.first().copied().unwrap_or_default()), number);
        let near = PortName::node(switch.guid, number);
        let (width, speed) = (text::width(self.cell("LWA")), text::speed(self.cell("LSA")));
        let fec =
            Some(self.cell("FEC mode")).filter(|cell| !cell.is_empty()).unwrap_or(self.cell("FEC"));
        found.port(near).merge(PortRecord {
            state: text::port_state(self.cell("Sta")),
            physical_state: text::physical_state(self.cell("PhysSta")),
            width,
            speed,
            fec: text::fec(fec),
            ..PortRecord::default()
        });
        let node = found.node(near.node);
        node.port_count = node.port_count.max(number);
        if let Some(guid) = text::guid(self.cell("Neighbor Guid")) {
            let mut description = self.cell("Neighbor Description");
            if let Some(inner) = description.strip_prefix('"').and_then(|it| it.strip_suffix('"')) {
                description = inner;
            }
            tables.neighbors.push(Neighbor {
                line,
                near,
                plane: plane(switch.name),
                guid,
                label: self.cell("N#"),
                name: description,
            });
        }
    }
}

impl Tables<'_> {
    /// Adds the links once all switches are known.
    fn add_to(self, found: &mut Contents) {
        let Tables { neighbors, numbers, .. } = self;
        // Several cables to one port of an adapter are its planes (XDR): each is a link of its own.
        let mut planes: BTreeMap<(Guid, &str), Vec<(PortNumber, PortName)>> = BTreeMap::new();
        for Neighbor { guid, label, plane, near, .. } in &neighbors {
            planes.entry((*guid, *label)).or_default().push((*plane, *near));
        }
        for planes in planes.values_mut() {
            planes.sort_unstable();
        }
        // By the ASIC of the switch, or if it is the same one in the order of its ports.
        let plane_of = |neighbor: &Neighbor<'_>| {
            let planes = planes.get(&(neighbor.guid, neighbor.label))?;
            let is_distinct = planes.windows(2).all(|pair| pair[0].0 != pair[1].0);
            let nth = planes.iter().position(|(_, near)| *near == neighbor.near)?;
            let number =
                if is_distinct { neighbor.plane } else { PortNumber::try_from(nth + 1).ok()? };
            (planes.len() > 1).then_some(number)
        };
        for neighbor in &neighbors {
            let Neighbor { line, near, guid, label, name, .. } = *neighbor;
            let plane = plane_of(neighbor);
            let is_switch = found
                .nodes
                .get(&NodeName::Node(guid))
                .is_some_and(|it| it.kind == Some(NodeKind::Switch));
            let labeled: Option<PortNumber> =
                Scan::new(label).number().filter(|number| *number > 0);
            let far = if is_switch {
                numbers.get(&(guid, label)).map(|number| PortName::node(guid, *number))
            } else if let Some(plane) = plane {
                Some(PortName::port(guid, plane))
            } else {
                // The label of an adapter's port is its number, or ends with it, as in B184D0F0/0/0/1.
                let last = label.rsplit('/').next().and_then(|last| last.parse().ok());
                Some(PortName::port(
                    guid,
                    labeled.or(last).filter(|number| *number > 0).unwrap_or(1),
                ))
            };
            let Some(far) = far else {
                let what = format!(
                    "link left out: the table of the neighbor {name:?} has no port {label:?}"
                );
                found.remark(Remark::unused(line, what));
                continue;
            };
            if !is_switch {
                // A switch may be missing in the file: nothing says which kind it is.
                let kind = (far.number <= 2 || plane.is_some()).then_some(NodeKind::Ca);
                let node = NodeRecord::named(kind, text::description(name), NameRank::Peer);
                found.node(far.node).merge(NodeRecord { port_count: far.number, ..node });
            }
            found.links.push((near, far));
        }
    }
}
