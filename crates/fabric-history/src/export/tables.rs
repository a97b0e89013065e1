//! What the tables tell: a row a reading, or a row an event.

use std::io::Write;

use crate::file::reader::Reader;
use crate::file::rows::between;
use crate::file::tier::Tier;
use crate::model::Told;
use crate::source::Wanted;

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
    let rows = reader.at_once(|| readings(reader, asked, &mut *table))?;
    table.finish()?;
    Ok(rows)
}

fn readings(reader: &Reader, asked: &Asked, table: &mut dyn Table) -> Result<u64, ExportError> {
    let failed = |error| ExportError::from(reader.failed()(error));
    let ports = asked_for(reader, asked).map_err(failed)?;
    let mut rows = 0;
    for (fabric, name) in reader.fabric_ids().map_err(failed)? {
        let Some(reach) = reader.reach(fabric, asked.window).map_err(failed)? else { continue };
        let before = reach.first.saturating_sub(1);
        let stretch = reader.stretch(fabric, before, reach.last, false).map_err(failed)?;
        for tier in [Tier::Rare, Tier::Busy] {
            let mut done = Ok(());
            let walked = reader.walk(&stretch, tier, None, &mut |span, frame, entry| {
                let (from, to) = between(span, entry);
                let Some(port) = ports.get(&entry.port).filter(|_| asked.window.has(to)) else {
                    return;
                };
                for (counter, by) in reader.values(frame, entry) {
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
            walked.map_err(failed)?;
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
    let wanted = Wanted {
        nodes: asked.nodes.iter().flatten().copied().collect(),
        ports: asked.ports.iter().flatten().copied().collect(),
        ..Wanted::all(asked.window)
    };
    let mut rows = 0;
    reader.tell(&wanted, &mut |told| {
        rows += 1;
        event(&told, &mut *table)
    })?;
    table.finish()?;
    Ok(rows)
}

fn event(told: &Told, table: &mut dyn Table) -> Result<(), ExportError> {
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
