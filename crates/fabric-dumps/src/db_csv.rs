//! `*.db_csv` of ibdiagnet2: sections of comma-separated values.
//!
//! Sections and columns as ibdiagnet 2.10 writes them (a public dump of 272 nodes); columns are found by their names,
//! because versions differ in which they have and in how they write them (`NodeGuid`, `NodeGUID`).

use std::collections::HashMap;

use ib_mad::node::NodeKind;
use ib_mad::port_state::{PhysicalState, PortState};
use ib_mad::rate::Width;
use ib_mad::vendor::GeneralInfo;
use ib_mad::{Guid, PortNumber};

use crate::contents::{Contents, PortName, PortRecord};
use crate::modules::{ModuleText, ascii};
use crate::problem::Problem;
use crate::text;

/// A section: its name, the line of its header, and its lines.
struct Section<'a> {
    name: &'a str,
    line: usize,
    text: &'a str,
}

/// A row by the names of its columns, in lower case.
struct Row<'a> {
    columns: &'a HashMap<String, usize>,
    cells: &'a csv::StringRecord,
}

/// Reads all sections that are known.
pub fn parse(text: &str) -> Result<Contents, Problem> {
    let mut found = Contents { is_topology: true, ..Contents::default() };
    for section in sections(text)? {
        let add: fn(&Row<'_>, &mut Contents) -> Result<(), String> = match section.name {
            "RUN_INFO" => run_info,
            "NODES" => node,
            "PORTS" => port,
            "LINKS" => link,
            "PM_INFO" => counters,
            "FEC_MODE" | "EXTENDED_PORT_INFO" | "PORT_INFO_EXTENDED" => fec,
            "NODES_INFO" => general,
            "TEMP_SENSING" => temperature,
            "CABLE_INFO" => cable,
            _ => continue,
        };
        rows(&section, |row| add(row, &mut found))?;
    }
    Ok(found)
}

/// The sections of a file.
fn sections(text: &str) -> Result<Vec<Section<'_>>, Problem> {
    let mut found = Vec::new();
    let mut open: Option<(&str, usize, usize)> = None;
    let (mut offset, mut last) = (0, 0);
    for (index, line) in text.split_inclusive('\n').enumerate() {
        let (start, word) = (offset, line.trim_end());
        offset += line.len();
        last = index + 1;
        if let Some(name) = word.strip_prefix("START_") {
            if let Some((open, at, _)) = open {
                let problem = format!("section {open} has no end: the file is damaged");
                return Err(Problem::at(at, problem));
            }
            open = Some((name, index + 1, offset));
        } else if let Some((name, at, from)) = open
            && word.starts_with("END_")
        {
            if word.strip_prefix("END_") != Some(name) {
                return Err(Problem::at(index + 1, format!("section {name} ends with {word:?}")));
            }
            found.push(Section { name, line: at + 1, text: &text[from..start] });
            open = None;
        }
    }
    match open {
        Some((name, _, _)) => {
            Err(Problem::at(last, format!("section {name} has no end: the file is truncated")))
        }
        None => Ok(found),
    }
}

/// Calls `add` with each row.
fn rows(
    section: &Section<'_>,
    mut add: impl FnMut(&Row<'_>) -> Result<(), String>,
) -> Result<(), Problem> {
    let mut reader =
        csv::ReaderBuilder::new().trim(csv::Trim::All).from_reader(section.text.as_bytes());
    let damaged = |error: csv::Error| {
        let line = error.position().map_or(0, csv::Position::line) as usize;
        let problem = match error.kind() {
            csv::ErrorKind::UnequalLengths { expected_len, len, .. } => {
                format!("section {} has {expected_len} columns, this row {len}", section.name)
            }
            _ => format!("section {} is not CSV", section.name),
        };
        Problem::at(section.line + line.saturating_sub(1), problem)
    };
    let header = reader.headers().map_err(damaged)?.clone();
    let columns: HashMap<String, usize> =
        header.iter().enumerate().map(|(index, name)| (name.to_ascii_lowercase(), index)).collect();
    for cells in reader.records() {
        let cells = cells.map_err(damaged)?;
        let line = section.line + cells.position().map_or(0, csv::Position::line) as usize - 1;
        add(&Row { columns: &columns, cells: &cells }).map_err(|what| Problem::at(line, what))?;
    }
    Ok(())
}

impl Row<'_> {
    /// The cell of the first of these columns that there is; empty if there is none.
    fn cell(&self, names: &[&str]) -> &str {
        let column = names.iter().find_map(|name| self.columns.get(*name));
        column.and_then(|column| self.cells.get(*column)).unwrap_or_default()
    }

    fn number(&self, name: &str) -> Option<u64> {
        text::number(self.cell(&[name]))
    }

    /// A number of at most 8 bits.
    fn small(&self, name: &str) -> Option<u8> {
        self.number(name).and_then(|number| u8::try_from(number).ok())
    }

    fn guid(&self, names: &[&str]) -> Result<Guid, String> {
        let cell = self.cell(names);
        text::guid(cell).ok_or_else(|| format!("{cell:?} is not a GUID ({})", names[0]))
    }

    fn port_number(&self, names: &[&str]) -> Result<PortNumber, String> {
        let cell = self.cell(names);
        let number = text::number(cell).and_then(|number| PortNumber::try_from(number).ok());
        number.ok_or_else(|| format!("{cell:?} is not a port number ({})", names[0]))
    }

    /// The port of a row.
    fn key(&self) -> Result<PortName, String> {
        let guid = self.guid(&["nodeguid"])?;
        Ok(PortName::Node(guid, self.port_number(&["portnum", "portnumber"])?))
    }
}

#[expect(clippy::unnecessary_wraps, reason = "like the readers of other sections")]
fn run_info(row: &Row<'_>, found: &mut Contents) -> Result<(), String> {
    found.taken_at = text::time(row.cell(&["date"]));
    Ok(())
}

fn node(row: &Row<'_>, found: &mut Contents) -> Result<(), String> {
    let node = found.node(row.guid(&["nodeguid"])?);
    node.kind = match row.number("nodetype") {
        Some(1) => Some(NodeKind::Ca),
        Some(2) => Some(NodeKind::Switch),
        Some(3) => Some(NodeKind::Router),
        _ => None,
    };
    node.description = text::description(row.cell(&["nodedesc"]));
    node.port_count = row.small("numports").unwrap_or(0);
    node.system_guid = text::guid(row.cell(&["systemimageguid"]));
    node.vendor_id = row.number("vendorid").unwrap_or(0) as u32;
    node.device_id = row.number("deviceid").unwrap_or(0) as u16;
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
        Ok::<_, String>(PortName::Node(row.guid(&[guid])?, row.port_number(&[port])?))
    };
    found.links.push((end("nodeguid1", "portnum1")?, end("nodeguid2", "portnum2")?));
    Ok(())
}

fn counters(row: &Row<'_>, found: &mut Contents) -> Result<(), String> {
    let counters = &mut found.port(row.key()?).counters;
    for (name, column) in row.columns {
        counters.set_by_name(name, false, row.cells.get(*column).unwrap_or_default());
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
    let word = |name: &str| row.number(name).unwrap_or(0);
    let parts = ["major", "minor", "subminor"];
    let short = parts.map(|part| word(&format!("fwinfo_{part}")) as u8);
    found.node(row.guid(&["nodeguid"])?).general = Some(GeneralInfo {
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
    found.node(row.guid(&["nodeguid"])?).temperature =
        degrees.filter(|degrees: &f64| (1.0..=125.0).contains(degrees));
    Ok(())
}

fn cable(row: &Row<'_>, found: &mut Contents) -> Result<(), String> {
    let mut module = ModuleText::default();
    for (name, column) in row.columns {
        module.set(name, row.cells.get(*column).unwrap_or_default());
    }
    found.port(row.key()?).module = module.into_module().map(Box::new);
    Ok(())
}
