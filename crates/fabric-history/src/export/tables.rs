//! What the tables tell: a row a reading, or a row an event.

use std::io::Write;

use crate::file::reader::Reader;
use crate::file::record_kind::RecordKind;
use crate::file::segment_range::{SegmentRange, SweepRange};
use crate::file::walk::reading_times;
use crate::model::Event;
use crate::source::EventFilter;

use super::table::Type::{Json, Number, Text, Time};
use super::table::{Cell, Column, Table};
use super::{Asked, ExportError, Form, asked_for, begun};

const COUNTERS: &[Column] = &[
    Column::full("from", Time),
    Column::full("to", Time),
    Column::full("fabric", Text),
    Column::full("guid", Text),
    Column::full("node", Text),
    Column::full("port", Number),
    Column::full("counter", Text),
    Column::full("by", Number),
];

const EVENTS: &[Column] = &[
    Column::full("at", Time),
    Column::full("fabric", Text),
    Column::full("kind", Text),
    Column::some("node", Text),
    Column::some("port", Number),
    Column::some("link", Text),
    Column::full("place", Text),
    Column::full("text", Text),
    Column::some("detail", Json),
];

/// Writes what counters grew by, a row a reading, and tells how many they are.
pub fn counters(
    reader: &Reader,
    asked: &Asked,
    form: Form,
    out: Box<dyn Write + Send + '_>,
) -> Result<u64, ExportError> {
    let mut table = begun(form, COUNTERS, out)?;
    let rows = reader.in_one_transaction(|| readings(reader, asked, &mut *table))?;
    table.finish()?;
    Ok(rows)
}

fn readings(reader: &Reader, asked: &Asked, table: &mut dyn Table) -> Result<u64, ExportError> {
    let failed = |error| ExportError::from(reader.failed()(error));
    let ports = asked_for(reader, asked).map_err(failed)?;
    let mut rows = 0;
    let sql = reader.sql();
    for (fabric, name) in sql.fabrics().map_err(failed)? {
        let sweeps = SweepRange::read(sql, fabric, asked.window).map_err(failed)?;
        let Some(SweepRange { first, last }) = sweeps else { continue };
        let before = first.saturating_sub(1);
        let range = SegmentRange::read(sql, fabric, before, last, false).map_err(failed)?;
        for kind in [RecordKind::ErrorDeltas, RecordKind::TrafficDeltas] {
            let mut done = Ok(());
            let visited = range.visit(sql, kind, None, &mut |span, frame, entry| {
                let (from, to) = reading_times(span, entry);
                let Some(port) = ports.get(&entry.port).filter(|_| asked.window.has(to)) else {
                    return;
                };
                for (counter, by) in reader.counter_ids().values(frame, entry) {
                    if done.is_err() {
                        return;
                    }
                    done = table.row(&[
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
            done?;
        }
    }
    Ok(rows)
}

/// Writes what happened, a row an event, and tells how many they are.
pub fn events(
    reader: &Reader,
    asked: &Asked,
    form: Form,
    out: Box<dyn Write + Send + '_>,
) -> Result<u64, ExportError> {
    let mut table = begun(form, EVENTS, out)?;
    let wanted = EventFilter {
        nodes: asked.nodes.iter().flatten().copied().collect(),
        ports: asked.ports.iter().flatten().copied().collect(),
        ..EventFilter::all(asked.window)
    };
    let mut rows = 0;
    reader.visit_events(&wanted, &mut |told| {
        rows += 1;
        event(&told, &mut *table)
    })?;
    table.finish()?;
    Ok(rows)
}

fn event(told: &Event, table: &mut dyn Table) -> Result<(), ExportError> {
    let text = |text: Option<String>| text.map_or(Cell::Nothing, |text| Cell::Text(text.into()));
    table.row(&[
        Cell::Time(told.at),
        Cell::Text((&*told.fabric).into()),
        Cell::Text((&*told.kind).into()),
        text(told.node.map(|guid| guid.to_string())),
        told.port.map_or(Cell::Nothing, |port| Cell::Number(port.into())),
        text(told.link.map(|link| link.to_string())),
        Cell::Text((&*told.place).into()),
        Cell::Text((&*told.text).into()),
        if told.detail.is_null() { Cell::Nothing } else { Cell::Json(&told.detail) },
    ])
}
