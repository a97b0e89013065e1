//! Exports of a window for other programs: tables of readings or events, and totals as a scrape would have
//! returned them. Everything is written as it is read: memory use depends on the fabric, not on the window.

mod openmetrics;

use std::collections::{HashMap, HashSet};
use std::io;
use std::io::Write;
use std::ops::RangeInclusive;
use std::time::{Duration, SystemTime};

use serde::Serialize;
use thiserror::Error;

use crate::HistoryError;
use crate::file::reader::Reader;
use crate::file::record_kind::RecordKind;
use crate::file::sql::Order;
use crate::file::totals::{SegmentRange, sweep_range};
use crate::file::walk::reading_times;
use crate::model::{Port, Window, text};
use crate::source::EventFilter;
use ib_fabric::topology::End;
use ib_mad::{Counter, Guid, PortNumber};

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

impl From<csv::Error> for ExportError {
    fn from(error: csv::Error) -> Self {
        ExportError::Write(match error.into_kind() {
            csv::ErrorKind::Io(error) => error,
            other => io::Error::other(format!("{other:?}")),
        })
    }
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

/// Writes a line per row: CSV, which begins with a line of names, or JSON lines.
enum TableWriter<W: Write> {
    Csv(Box<csv::Writer<W>>),
    JsonLines(W),
}

impl<W: Write> TableWriter<W> {
    /// The columns are the fields of the rows, in their order.
    fn new(columns: &[&str], format: TableFormat, out: W) -> Result<Self, ExportError> {
        Ok(match format {
            TableFormat::Csv => {
                let mut csv = csv::WriterBuilder::new().has_headers(false).from_writer(out);
                csv.write_record(columns)?;
                TableWriter::Csv(csv.into())
            }
            TableFormat::JsonLines => TableWriter::JsonLines(out),
        })
    }

    fn row(&mut self, row: &impl Serialize) -> Result<(), ExportError> {
        match self {
            TableWriter::Csv(csv) => csv.serialize(row)?,
            TableWriter::JsonLines(out) => {
                serde_json::to_writer(&mut *out, row).map_err(io::Error::from)?;
                out.write_all(b"\n")?;
            }
        }
        Ok(())
    }

    fn flush(&mut self) -> io::Result<()> {
        match self {
            TableWriter::Csv(csv) => csv.flush(),
            TableWriter::JsonLines(out) => out.flush(),
        }
    }
}

const COUNTERS: &[&str] =
    &["start", "end", "fabric", "guid", "node", "port", "counter", "increase"];

/// The increase of a counter, with the fields of [`COUNTERS`].
#[derive(Serialize)]
struct ReadingRow<'a> {
    #[serde(with = "text")]
    start: SystemTime,
    #[serde(with = "text")]
    end: SystemTime,
    fabric: &'a str,
    #[serde(with = "text")]
    guid: Guid,
    node: &'a str,
    port: PortNumber,
    #[serde(with = "text")]
    counter: Counter,
    increase: u64,
}

/// The fields of an [`Event`](crate::model::Event).
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
    table.flush()?;
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
                    result = table.row(&ReadingRow {
                        start: from,
                        end: to,
                        fabric: &name,
                        guid: port.guid,
                        node: &port.node,
                        port: port.port,
                        counter,
                        increase: by,
                    });
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
    let visited = reader.sql().events(&wanted, Order::EarliestFirst(None), &mut |_, mut event| {
        rows += 1;
        // A cell has no fields.
        if format == TableFormat::Csv && !event.detail.is_null() {
            event.detail = event.detail.to_string().into();
        }
        result = table.row(&event);
        result.is_ok()
    });
    visited.map_err(reader.failed())?;
    result?;
    table.flush()?;
    Ok(rows)
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::model::time;

    #[test]
    fn csv_quotes_separators_quotes_and_line_breaks() {
        let mut out = Vec::new();
        let mut csv = TableWriter::new(&["a", "b"], TableFormat::Csv, &mut out).unwrap();
        csv.row(&("plain", Value::Null)).unwrap();
        csv.row(&("a,b", json!({"x": 1}).to_string())).unwrap();
        csv.row(&("say \"no\"", 7)).unwrap();
        csv.row(&("two\r\nlines", time::text(SystemTime::UNIX_EPOCH))).unwrap();
        csv.flush().unwrap();
        drop(csv);
        assert_eq!(
            String::from_utf8(out).unwrap(),
            "a,b\nplain,\n\"a,b\",\"{\"\"x\"\":1}\"\n\"say \"\"no\"\"\",7\n\
             \"two\r\nlines\",1970-01-01T00:00:00.000Z\n"
        );
    }
}
