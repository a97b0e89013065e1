//! `*.db_csv` of ibdiagnet2: sections of comma-separated values.
//!
//! Sections and columns as ibdiagnet 2.10 writes them (a public dump of 272 nodes); columns are found by their names,
//! because versions differ in which they have and in how they write them (`NodeGuid`, `NodeGUID`).

mod hierarchy;
mod table;

use std::cell::RefCell;
use std::collections::HashSet;

use ib_mad::node::NodeKind;
use ib_mad::port_state::{PhysicalState, PortState};
use ib_mad::rate::Width;
use ib_mad::vendor::GeneralInfo;

use crate::contents::{Contents, NameRank, NodeName, NodeRecord, PortName, PortRecord};
use crate::counters;
use crate::lines::Line;
use crate::modules::{ModuleText, ascii};
use crate::problem::Problem;
use crate::text;
use crate::tool_output::ToolOutput;
use table::{Row, Section, by_name, cells, is_absent};

/// The name of a section that begins in a line.
pub fn section_start(line: &str) -> Option<&str> {
    line.strip_prefix("START_").filter(|name| is_name(name))
}

/// The name of a section that ends in a line.
pub fn section_end(line: &str) -> Option<&str> {
    line.strip_prefix("END_").filter(|name| is_name(name))
}

fn is_name(name: &str) -> bool {
    let is_part = |it: u8| it.is_ascii_uppercase() || it.is_ascii_digit() || it == b'_';
    !name.is_empty() && name.bytes().all(is_part)
}

/// Reads all sections that are known.
pub fn parse<'a>(lines: impl Iterator<Item = Line<'a>>) -> Result<Vec<Contents>, Problem> {
    let mut output = ToolOutput::new(true);
    let mut known = HashSet::new();
    let mut open: Option<Section<'a>> = None;
    let mut last = Line::default();
    for line in lines {
        last = line;
        let (start, end) = (section_start(line.text), section_end(line.text));
        match (&mut open, start, end) {
            (Some(section), Some(_), _) => {
                let problem = format!("section {} has no end: the file is damaged", section.name);
                let at = section.lines.first().map_or(line.number, |first| first.number);
                return Err(Problem::at(at.saturating_sub(1), problem));
            }
            (None, Some(name), _) => {
                output.list_once(&mut known, name);
                open = Some(Section { name, lines: Vec::new() });
            }
            (Some(section), _, Some(name)) if name == section.name => {
                open.take().map_or(Ok(()), |section| add_section(&section, &mut output))?;
            }
            (Some(section), _, Some(_)) => {
                let problem = format!("section {} ends with {:?}", section.name, line.text);
                return Err(Problem::at(line.number, problem));
            }
            (Some(section), ..) => section.lines.push(line),
            (None, _, Some(name)) => {
                let problem =
                    format!("section {name} has no start: the beginning of the file is missing");
                return Err(Problem::at(line.number, problem));
            }
            (None, None, None) => output.skip(line),
        }
    }
    match open {
        Some(section) => {
            let problem = format!("section {} has no end: the file is truncated", section.name);
            Err(Problem::at(last.number, problem))
        }
        None => Ok(output.finish()),
    }
}

fn add_section(section: &Section<'_>, output: &mut ToolOutput) -> Result<(), Problem> {
    let add: fn(&Row<'_>, &mut Contents) -> Result<(), String> = match section.name {
        "RUN_INFO" => run_info,
        "NODES" => node,
        "PORTS" => port,
        "LINKS" => link,
        "PM_INFO" => port_counters,
        "FEC_MODE" | "EXTENDED_PORT_INFO" | "PORT_INFO_EXTENDED" => fec,
        "NODES_INFO" => general,
        "TEMP_SENSING" => temperature,
        "CABLE_INFO" => cable,
        "PORT_HIERARCHY_INFO" => {
            hierarchy::section(section, &mut output.found);
            return Ok(());
        }
        _ => return Ok(()),
    };
    rows(section, |row| add(row, &mut output.found))
}

/// Reads the rows of a section.
fn rows(
    section: &Section<'_>,
    mut add: impl FnMut(&Row<'_>) -> Result<(), String>,
) -> Result<(), Problem> {
    let Some((header, rows)) = section.lines.split_first() else { return Ok(()) };
    let names = cells(header.text, 0).unwrap_or_default();
    let columns = by_name(&names);
    for line in rows {
        let at = |what: String| Problem::at(line.number, what);
        let cells = cells(line.text, names.len())
            .ok_or_else(|| at(format!("section {}: this row is not CSV", section.name)))?;
        if cells.len() != names.len() {
            let (columns, own) = (names.len(), cells.len());
            return Err(at(format!(
                "section {} has {columns} columns, this row {own}",
                section.name
            )));
        }
        let row = Row { columns: &columns, cells: &cells, damaged: RefCell::default() };
        add(&row).map_err(at)?;
        if let Some(what) = row.damaged.take() {
            return Err(at(what));
        }
    }
    Ok(())
}

#[expect(clippy::unnecessary_wraps, reason = "like the readers of other sections")]
fn run_info(row: &Row<'_>, found: &mut Contents) -> Result<(), String> {
    found.taken_at = text::time(row.cell(&["date"]));
    Ok(())
}

fn node(row: &Row<'_>, found: &mut Contents) -> Result<(), String> {
    let guid = row.guid(&["nodeguid"])?;
    let kind = match row.number("nodetype") {
        Some(1) => Some(NodeKind::Ca),
        Some(2) => Some(NodeKind::Switch),
        Some(3) => Some(NodeKind::Router),
        _ => None,
    };
    let description = text::description(row.cell(&["nodedesc"]));
    found.node(NodeName::Node(guid)).merge(NodeRecord {
        port_count: row.small("numports").unwrap_or(0),
        system_guid: text::guid(row.cell(&["systemimageguid"])),
        vendor_id: row.number("vendorid").unwrap_or(0) as u32,
        device_id: row.number("deviceid").unwrap_or(0) as u16,
        ..NodeRecord::named(kind, description, NameRank::Device)
    });
    // The port through which the node was found.
    let number = row.small("localportnum").filter(|number| *number > 0);
    let port_guid = text::guid(row.cell(&["portguid"]));
    if let (Some(number), Some(_), false) = (number, port_guid, kind == Some(NodeKind::Switch)) {
        let guid_of_port = PortRecord { guid: port_guid, ..PortRecord::default() };
        found.port(PortName::node(guid, number)).merge(guid_of_port);
    }
    Ok(())
}

fn port(row: &Row<'_>, found: &mut Contents) -> Result<(), String> {
    let speeds = |name: &str| text::packed_speeds(row.number(name).unwrap_or(0));
    let record = PortRecord {
        guid: text::guid(row.cell(&["portguid"])),
        lid: text::lid(row.cell(&["lid"])),
        state: row.small("portstate").filter(|code| *code > 0).map(PortState::from_code),
        physical_state: row
            .small("portphystate")
            .filter(|code| *code > 0)
            .map(PhysicalState::from_code),
        width: row.small("linkwidthactv").and_then(Width::from_code),
        speed: speeds("linkspeedactv").fastest(),
        widths_supported: row.small("linkwidthsup").unwrap_or(0),
        widths_enabled: row.small("linkwidthen").unwrap_or(0),
        speeds_supported: speeds("linkspeedsup"),
        speeds_enabled: speeds("linkspeeden"),
        fec: text::fec(row.cell(&["fecactv"])),
        ..PortRecord::default()
    };
    found.port(row.key()?).merge(record);
    Ok(())
}

fn link(row: &Row<'_>, found: &mut Contents) -> Result<(), String> {
    let end = |guid: &str, port: &str| {
        Ok::<_, String>(PortName::node(row.guid(&[guid])?, row.port_number(&[port])?))
    };
    found.links.push((end("nodeguid1", "portnum1")?, end("nodeguid2", "portnum2")?));
    Ok(())
}

fn port_counters(row: &Row<'_>, found: &mut Contents) -> Result<(), String> {
    let name = row.key()?;
    for (column, index) in row.columns {
        let cell = row.cells.get(*index).map_or("", |cell| &**cell);
        if counters::by_name(column).is_some() && text::number(cell).is_none() && !is_absent(cell) {
            return Err(format!("{cell:?} is not a number ({column})"));
        }
        found.port(name).counters.set_by_name(column, false, cell);
    }
    Ok(())
}

fn fec(row: &Row<'_>, found: &mut Contents) -> Result<(), String> {
    let mode = text::fec(row.cell(&["fecactv", "fecmodeactive"]));
    let known = &mut found.port(row.key()?).fec;
    *known = known.or(mode);
    Ok(())
}

fn general(row: &Row<'_>, found: &mut Contents) -> Result<(), String> {
    let word = |name: &str| text::number(row.cell(&[name])).unwrap_or(0);
    let parts = ["major", "minor", "subminor"];
    let short = parts.map(|part| word(&format!("fwinfo_{part}")) as u8);
    found.node(NodeName::Node(row.guid(&["nodeguid"])?)).general = Some(GeneralInfo {
        device_id: word("hwinfo_deviceid") as u16,
        revision: word("hwinfo_devicehwrevision") as u16,
        uptime: word("hwinfo_uptime") as u32,
        major: short[0],
        minor: short[1],
        subminor: short[2],
        extended: parts.map(|part| word(&format!("fwinfo_extended_{part}")) as u32),
        psid: ascii(row.cell(&["fwinfo_psid"])),
        ..GeneralInfo::default()
    });
    Ok(())
}

fn temperature(row: &Row<'_>, found: &mut Contents) -> Result<(), String> {
    let degrees = row.cell(&["currenttemperature"]).parse().ok();
    // 0 and below, or above what silicon survives, is no measurement.
    found.node(NodeName::Node(row.guid(&["nodeguid"])?)).temperature =
        degrees.filter(|degrees: &f64| (1.0..=125.0).contains(degrees));
    Ok(())
}

fn cable(row: &Row<'_>, found: &mut Contents) -> Result<(), String> {
    let mut module = ModuleText::default();
    for (name, column) in row.columns {
        module.set(name, row.cells.get(*column).map_or("", |cell| &**cell));
    }
    found.port(row.key()?).module = module.into_module().map(Box::new);
    Ok(())
}
