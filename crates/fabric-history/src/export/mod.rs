//! Exports of a window for other programs: tables of readings or events, and totals as a scrape would have
//! returned them. Everything is written as it is read: memory use depends on the fabric, not on the window.

mod incidents;
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
use crate::model::{Event, Port, Window, text, time};
use crate::source::EventFilter;
use exposition::csv::Line;
use exposition::unseen;
use ib_mad::{Counter, Guid, PortKey, PortNumber};

pub use incidents::incidents;
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
    pub ports: HashSet<PortKey>,
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
            && (self.ports.is_empty() || self.ports.iter().any(|port| port.guid == guid))
    }

    fn has_port(&self, end: PortKey) -> bool {
        (self.nodes.is_empty() || self.nodes.contains(&end.guid))
            && (self.ports.is_empty() || self.ports.contains(&end))
    }
}

/// A row of a table.
trait Row: Serialize {
    /// Adds its cells to a line, in the order of the columns.
    fn cells(&self, line: &mut Line);
}

/// Writes a line per row: CSV, which begins with a line of names, or JSON lines.
enum TableWriter<W: Write> {
    Csv(io::BufWriter<W>, Line),
    JsonLines(W),
}

impl<W: Write> TableWriter<W> {
    /// The columns are the fields of the rows, in their order.
    fn new(columns: &[&str], format: TableFormat, out: W) -> Result<Self, ExportError> {
        Ok(match format {
            TableFormat::Csv => {
                let (mut out, mut line) = (io::BufWriter::new(out), Line::default());
                for column in columns {
                    line.text(column);
                }
                out.write_all(line.end().as_bytes())?;
                TableWriter::Csv(out, line)
            }
            TableFormat::JsonLines => TableWriter::JsonLines(out),
        })
    }

    fn row(&mut self, row: &impl Row) -> Result<(), ExportError> {
        match self {
            TableWriter::Csv(out, line) => {
                row.cells(line);
                out.write_all(line.end().as_bytes())?;
            }
            TableWriter::JsonLines(out) => {
                let mut serializer = serde_json::Serializer::with_formatter(&mut *out, Escaped);
                row.serialize(&mut serializer).map_err(io::Error::from)?;
                out.write_all(b"\n")?;
            }
        }
        Ok(())
    }

    fn flush(&mut self) -> io::Result<()> {
        match self {
            TableWriter::Csv(out, _) => out.flush(),
            TableWriter::JsonLines(out) => out.flush(),
        }
    }
}

/// JSON in which characters are escaped that are not shown as they are.
struct Escaped;

impl serde_json::ser::Formatter for Escaped {
    fn write_string_fragment<W: ?Sized + Write>(
        &mut self,
        out: &mut W,
        fragment: &str,
    ) -> io::Result<()> {
        out.write_all(unseen::json(fragment).as_bytes())
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

impl Row for ReadingRow<'_> {
    fn cells(&self, line: &mut Line) {
        line.text(&time::text(self.start)).text(&time::text(self.end)).text(self.fabric);
        line.text(&self.guid.to_string()).text(self.node).number(Some(self.port));
        line.text(self.counter.row().metric).number(Some(self.increase));
    }
}

/// The fields of an [`Event`].
const EVENTS: &[&str] =
    &["at", "fabric", "kind", "node", "port", "link", "place", "text", "detail"];

impl Row for Event {
    fn cells(&self, line: &mut Line) {
        let id = |id: Option<String>| id.unwrap_or_default();
        line.text(&time::text(self.at)).text(&self.fabric).text(&self.kind);
        line.text(&id(self.node.map(|guid| guid.to_string()))).number(self.port);
        line.text(&id(self.link.map(|link| link.to_string())));
        line.text(&self.place).text(&self.text);
        // A cell has no fields.
        if self.detail.is_null() {
            line.text("")
        } else {
            line.json(&self.detail.to_string())
        };
    }
}

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
    let visited = reader.sql().events(&wanted, Order::EarliestFirst(None), &mut |_, event| {
        rows += 1;
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
    use crate::EventKind;
    use crate::testing::Canned;
    use ib_mad::Counter;

    const EPOCH: SystemTime = SystemTime::UNIX_EPOCH;

    fn csv(columns: &[&str], row: &impl Row) -> String {
        let mut out = Vec::new();
        let mut table = TableWriter::new(columns, TableFormat::Csv, &mut out).unwrap();
        table.row(row).unwrap();
        table.flush().unwrap();
        drop(table);
        String::from_utf8(out).unwrap()
    }

    /// An event and a reading of a node with this name.
    fn lines_of(name: &str) -> [String; 2] {
        let port = Canned::port("default", name, 1);
        let event = Event {
            text: format!("{name} is down"),
            detail: json!({"seconds": -3600.5, "name": name, "all": ["x", name, -1]}),
            ..Canned::event(EventKind::NodeDown, None, &port)
        };
        let reading = ReadingRow {
            start: EPOCH,
            end: EPOCH,
            fabric: "default",
            guid: port.guid,
            node: name,
            port: 1,
            counter: Counter::SymbolErrors,
            increase: 40_000,
        };
        [csv(EVENTS, &event), csv(COUNTERS, &reading)]
    }

    #[test]
    fn no_cell_of_an_event_or_a_reading_is_a_formula_whatever_separates_cells() {
        for name in
            ["=1+1", "x;=1+1;y", "x\t@SUM(1)", "x\n+1", "＝cmd", "x;＠1", "=cmd|'/C calc'!A0", "-1"]
        {
            for text in lines_of(name) {
                for separator in [',', ';', '\t'] {
                    let cells = text.split(['\n', '\r', separator]);
                    let cells = cells.map(|cell| cell.trim_start_matches('"'));
                    let is_number = |cell: &str| {
                        cell.trim_end_matches(['"', ']', '}']).parse::<f64>().is_ok()
                            && !cell.contains("-1 ")
                    };
                    let found: Vec<&str> = cells
                        .filter(|cell| {
                            cell.starts_with(['=', '+', '-', '@', '＝', '＋', '－', '＠'])
                        })
                        .filter(|cell| !is_number(cell))
                        .collect();
                    assert_eq!(
                        found,
                        Vec::<&str>::new(),
                        "{name:?} split at {separator:?}: {text}"
                    );
                }
            }
        }
    }

    #[test]
    fn detail_stays_json_and_numbers_stay_numbers() {
        let [event, reading] = lines_of("x;=1+1");
        let cell = event.split_once(" is down\",").unwrap().1.trim_end();
        let cell = cell.strip_prefix('"').unwrap().strip_suffix('"').unwrap().replace("\"\"", "\"");
        assert!(cell.contains("x;\\u003d1+1"), "{cell}");
        let detail: Value = serde_json::from_str(&cell).unwrap();
        assert_eq!(
            detail,
            json!({"seconds": -3600.5, "name": "x;=1+1", "all": ["x", "x;=1+1", -1]})
        );
        assert!(reading.ends_with(",1,symbol_errors,40000\n"), "{reading}");
    }

    #[test]
    fn csv_quotes_separators_quotes_and_line_breaks() {
        let port = Canned::port("a,b", "say \"no\"", 7);
        let event =
            Event { text: "two\r\nlines".into(), ..Canned::event(EventKind::Flap, None, &port) };
        let line = csv(EVENTS, &event);
        let (head, line) = line.split_once('\n').unwrap();
        assert_eq!(head, "at,fabric,kind,node,port,link,place,text,detail");
        let (begin, end) = line.split_once("flap,").unwrap();
        assert_eq!(begin, "1970-01-01T00:00:00.000Z,\"a,b\",");
        assert!(end.ends_with("\"\"no\"\" port 7\",\"two\r\nlines\",\n"), "{line}");
    }
}
