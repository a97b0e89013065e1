//! Exports of a window for other programs: tables of readings or events, and totals as a scrape would have
//! returned them. Everything is written as it is read: memory use depends on the fabric, not on the window.

mod openmetrics;

use std::borrow::Cow;
use std::collections::{HashMap, HashSet};
use std::io;
use std::io::Write;
use std::ops::RangeInclusive;
use std::time::{Duration, SystemTime};

use thiserror::Error;

use crate::HistoryError;
use crate::file::reader::Reader;
use crate::file::record_kind::RecordKind;
use crate::file::sql::Order;
use crate::file::totals::{SegmentRange, sweep_range};
use crate::file::walk::reading_times;
use crate::model::{Port, Window, time};
use crate::source::EventFilter;
use ib_fabric::topology::End;
use ib_mad::Guid;

pub use openmetrics::openmetrics;

/// Why an export failed.
#[derive(Debug, Error)]
pub enum ExportError {
    /// The file cannot be read.
    #[error(transparent)]
    History(#[from] HistoryError),
    /// The output cannot be written.
    #[error("cannot write the export: {0}")]
    Write(#[from] io::Error),
}

/// The format of a table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TableFormat {
    /// A line of names, and a line per row (RFC 4180, but with `\n` at the end of lines).
    Csv,
    /// A JSON object per line.
    JsonLines,
}

/// What is exported.
#[derive(Clone, Debug)]
pub struct ExportFilter {
    /// The time.
    pub window: Window,
    /// Only these nodes; empty for all.
    pub nodes: HashSet<Guid>,
    /// Only these ports; empty for all. With nodes as well, ports that are in both.
    pub ports: HashSet<End>,
    /// One sample of totals per step; `None` for all.
    pub step: Option<Duration>,
}

impl ExportFilter {
    /// Everything in a window.
    pub fn all(window: Window) -> Self {
        ExportFilter { window, nodes: HashSet::new(), ports: HashSet::new(), step: None }
    }

    fn has_node(&self, guid: Guid) -> bool {
        (self.nodes.is_empty() || self.nodes.contains(&guid))
            && (self.ports.is_empty() || self.ports.iter().any(|(it, _)| *it == guid))
    }

    fn has_port(&self, end: End) -> bool {
        (self.nodes.is_empty() || self.nodes.contains(&end.0))
            && (self.ports.is_empty() || self.ports.contains(&end))
    }
}

/// The value of a row in a column.
enum Cell<'a> {
    Null,
    Time(SystemTime),
    Text(Cow<'a, str>),
    Number(u64),
    Json(&'a serde_json::Value),
}

/// Writes a line per row: CSV, which begins with a line of names, or JSON lines.
struct TableWriter<W> {
    /// The names of the columns have letters only, so that no format has to escape them.
    columns: &'static [&'static str],
    is_json: bool,
    out: W,
    line: Vec<u8>,
}

impl<W: Write> TableWriter<W> {
    fn new(columns: &'static [&'static str], format: TableFormat, mut out: W) -> io::Result<Self> {
        let is_json = format == TableFormat::JsonLines;
        if !is_json {
            writeln!(out, "{}", columns.join(","))?;
        }
        Ok(TableWriter { columns, is_json, out, line: Vec::new() })
    }

    fn push_text(&mut self, text: &str) -> io::Result<()> {
        if self.is_json {
            return Ok(serde_json::to_writer(&mut self.line, text)?);
        }
        if text.contains([',', '"', '\n', '\r']) {
            write!(self.line, "\"{}\"", text.replace('"', "\"\""))
        } else {
            self.line.write_all(text.as_bytes())
        }
    }

    /// Writes a row, with as many cells as there are columns.
    fn row(&mut self, cells: &[Cell<'_>]) -> Result<(), ExportError> {
        self.line.clear();
        for (index, (column, cell)) in self.columns.iter().zip(cells).enumerate() {
            match (self.is_json, index) {
                (true, 0) => write!(self.line, "{{\"{column}\":")?,
                (true, _) => write!(self.line, ",\"{column}\":")?,
                (false, 0) => {}
                (false, _) => self.line.push(b','),
            }
            match cell {
                Cell::Null if self.is_json => self.line.extend_from_slice(b"null"),
                Cell::Null => {}
                Cell::Time(at) => self.push_text(&time::text(*at))?,
                Cell::Text(text) => self.push_text(text)?,
                Cell::Number(number) => write!(self.line, "{number}")?,
                Cell::Json(json) if self.is_json => write!(self.line, "{json}")?,
                Cell::Json(json) => self.push_text(&json.to_string())?,
            }
        }
        self.line.extend_from_slice(if self.is_json { b"}\n" } else { b"\n" });
        Ok(self.out.write_all(&self.line)?)
    }
}

const COUNTERS: &[&str] =
    &["start", "end", "fabric", "guid", "node", "port", "counter", "increase"];

const EVENTS: &[&str] =
    &["at", "fabric", "kind", "node", "port", "link", "place", "text", "detail"];

/// Writes the increases of counters, a row per reading; returns the number of rows.
pub fn counters(
    reader: &Reader,
    filter: &ExportFilter,
    format: TableFormat,
    out: impl Write,
) -> Result<u64, ExportError> {
    let mut table = TableWriter::new(COUNTERS, format, out)?;
    let rows = reader.in_one_transaction(|| write_readings(reader, filter, &mut table))?;
    table.out.flush()?;
    Ok(rows)
}

fn write_readings(
    reader: &Reader,
    filter: &ExportFilter,
    table: &mut TableWriter<impl Write>,
) -> Result<u64, ExportError> {
    let failed = |error| ExportError::from(reader.failed()(error));
    let sql = reader.sql();
    let ports = sql.all_ports().map_err(failed)?.into_iter();
    let is_exported = |(_, port): &(u32, Port)| filter.has_port(port.end());
    let ports: HashMap<u32, Port> = ports.filter(is_exported).collect();
    let mut rows = 0;
    for (fabric, name) in sql.fabrics().map_err(failed)? {
        let sweeps = sweep_range(sql, fabric, filter.window).map_err(failed)?;
        let Some((first, last)) = sweeps.map(RangeInclusive::into_inner) else { continue };
        let before = first.saturating_sub(1);
        let range = SegmentRange::read(sql, fabric, before, last, false).map_err(failed)?;
        for kind in [RecordKind::ErrorDeltas, RecordKind::TrafficDeltas] {
            let mut result = Ok(());
            let visited = range.visit(kind, None, &mut |span, frame, entry| {
                let (from, to) = reading_times(span, entry);
                let Some(port) = ports.get(&entry.port).filter(|_| filter.window.has(to)) else {
                    return;
                };
                for (counter, by) in reader.counter_ids.values(frame, entry) {
                    if result.is_err() {
                        return;
                    }
                    result = table.row(&[
                        Cell::Time(from),
                        Cell::Time(to),
                        Cell::Text((&*name).into()),
                        Cell::Text(port.guid.to_string().into()),
                        Cell::Text((&*port.node).into()),
                        Cell::Number(port.port.into()),
                        Cell::Text(counter.row().metric.into()),
                        Cell::Number(by),
                    ]);
                    rows += 1;
                }
            });
            visited.map_err(failed)?;
            result?;
        }
    }
    Ok(rows)
}

/// Writes events, a row per event; returns the number of rows.
pub fn events(
    reader: &Reader,
    filter: &ExportFilter,
    format: TableFormat,
    out: impl Write,
) -> Result<u64, ExportError> {
    let mut table = TableWriter::new(EVENTS, format, out)?;
    let wanted = EventFilter {
        nodes: filter.nodes.iter().copied().collect(),
        ports: filter.ports.iter().copied().collect(),
        ..EventFilter::all(filter.window)
    };
    let (mut rows, mut result) = (0, Ok(()));
    let text = |text: Option<String>| text.map_or(Cell::Null, |text| Cell::Text(text.into()));
    let visited = reader.sql().events(&wanted, Order::EarliestFirst(None), &mut |_, event| {
        rows += 1;
        result = table.row(&[
            Cell::Time(event.at),
            Cell::Text((&*event.fabric).into()),
            Cell::Text((&*event.kind).into()),
            text(event.node.map(|guid| guid.to_string())),
            event.port.map_or(Cell::Null, |port| Cell::Number(port.into())),
            text(event.link.map(|link| link.to_string())),
            Cell::Text((&*event.place).into()),
            Cell::Text((&*event.text).into()),
            if event.detail.is_null() { Cell::Null } else { Cell::Json(&event.detail) },
        ]);
        result.is_ok()
    });
    visited.map_err(reader.failed())?;
    result?;
    table.out.flush()?;
    Ok(rows)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn csv_quotes_separators_quotes_and_line_breaks() {
        let mut out = Vec::new();
        let mut csv = TableWriter::new(&["a", "b"], TableFormat::Csv, &mut out).unwrap();
        let json = serde_json::json!({"x": 1});
        for (text, cell) in [
            ("plain", Cell::Null),
            ("a,b", Cell::Json(&json)),
            ("say \"no\"", Cell::Number(7)),
            ("two\r\nlines", Cell::Time(SystemTime::UNIX_EPOCH)),
        ] {
            csv.row(&[Cell::Text(text.into()), cell]).unwrap();
        }
        assert_eq!(
            String::from_utf8(out).unwrap(),
            "a,b\nplain,\n\"a,b\",\"{\"\"x\"\":1}\"\n\"say \"\"no\"\"\",7\n\
             \"two\r\nlines\",1970-01-01T00:00:00.000Z\n"
        );
    }
}
