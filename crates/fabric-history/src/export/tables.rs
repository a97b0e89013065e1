//! The exported tables: a row per reading, or a row per event.

use std::io::Write;

use crate::file::reader::Reader;
use crate::file::record_kind::RecordKind;
use crate::file::segment_range::{SegmentRange, SweepRange};
use crate::file::walk::reading_times;
use crate::model::Event;
use crate::source::EventFilter;

use super::table::ColumnType::{Json, Number, Text, Time};
use super::table::{Cell, Column, RowWriter};
use super::{ExportError, ExportFilter, TableFormat, row_writer};

const COUNTERS: &[Column] = &[
    Column::required("from", Time),
    Column::required("to", Time),
    Column::required("fabric", Text),
    Column::required("guid", Text),
    Column::required("node", Text),
    Column::required("port", Number),
    Column::required("counter", Text),
    Column::required("by", Number),
];

const EVENTS: &[Column] = &[
    Column::required("at", Time),
    Column::required("fabric", Text),
    Column::required("kind", Text),
    Column::optional("node", Text),
    Column::optional("port", Number),
    Column::optional("link", Text),
    Column::required("place", Text),
    Column::required("text", Text),
    Column::optional("detail", Json),
];

/// Writes the increases of counters, a row per reading; returns the number of rows.
pub fn counters(
    reader: &Reader,
    filter: &ExportFilter,
    format: TableFormat,
    out: Box<dyn Write + Send + '_>,
) -> Result<u64, ExportError> {
    let mut table = row_writer(format, COUNTERS, out)?;
    let rows = reader.in_one_transaction(|| write_readings(reader, filter, &mut *table))?;
    table.finish()?;
    Ok(rows)
}

fn write_readings(
    reader: &Reader,
    filter: &ExportFilter,
    table: &mut dyn RowWriter,
) -> Result<u64, ExportError> {
    let failed = |error| ExportError::from(reader.failed()(error));
    let ports = filter.ports_of(reader).map_err(failed)?;
    let mut rows = 0;
    let sql = reader.sql();
    for (fabric, name) in sql.fabrics().map_err(failed)? {
        let sweeps = SweepRange::read(sql, fabric, filter.window).map_err(failed)?;
        let Some(SweepRange { first, last }) = sweeps else { continue };
        let before = first.saturating_sub(1);
        let range = SegmentRange::read(sql, fabric, before, last, false).map_err(failed)?;
        for kind in [RecordKind::ErrorDeltas, RecordKind::TrafficDeltas] {
            let mut result = Ok(());
            let visited = range.visit(sql, kind, None, &mut |span, frame, entry| {
                let (from, to) = reading_times(span, entry);
                let Some(port) = ports.get(&entry.port).filter(|_| filter.window.has(to)) else {
                    return;
                };
                for (counter, by) in reader.counter_ids().values(frame, entry) {
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
    out: Box<dyn Write + Send + '_>,
) -> Result<u64, ExportError> {
    let mut table = row_writer(format, EVENTS, out)?;
    let wanted = EventFilter {
        nodes: filter.nodes.iter().flatten().copied().collect(),
        ports: filter.ports.iter().flatten().copied().collect(),
        ..EventFilter::all(filter.window)
    };
    let mut rows = 0;
    reader.visit_events(&wanted, &mut |event| {
        rows += 1;
        write_event(&event, &mut *table)
    })?;
    table.finish()?;
    Ok(rows)
}

fn write_event(event: &Event, table: &mut dyn RowWriter) -> Result<(), ExportError> {
    let text = |text: Option<String>| text.map_or(Cell::Null, |text| Cell::Text(text.into()));
    table.row(&[
        Cell::Time(event.at),
        Cell::Text((&*event.fabric).into()),
        Cell::Text((&*event.kind).into()),
        text(event.node.map(|guid| guid.to_string())),
        event.port.map_or(Cell::Null, |port| Cell::Number(port.into())),
        text(event.link.map(|link| link.to_string())),
        Cell::Text((&*event.place).into()),
        Cell::Text((&*event.text).into()),
        if event.detail.is_null() { Cell::Null } else { Cell::Json(&event.detail) },
    ])
}
