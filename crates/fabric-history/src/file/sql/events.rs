//! The SQL that reads events.

use std::fmt::Write;

use rusqlite::types::Value;
use rusqlite::{Result, Row, params_from_iter};

use crate::cursor::Cursor;
use crate::file::record_kind::guid_bits;
use crate::model::Event;
use crate::source::EventFilter;
use crate::time_of;
use ib_fabric::topology::LinkId;
use ib_mad::{PortKey, PortNumber};

use super::{Sql, guid, marks};

/// The order of events.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Order {
    /// The earliest first; only those after another one, if it is given.
    EarliestFirst(Option<Cursor>),
    LatestFirst,
    /// As they were recorded, those after the one with this number.
    RecordedAfter(i64),
}

/// By a CROSS JOIN SQLite goes through the events in the order of their index and joins the rest to each
/// (sqlite.org/optoverview.html, 9.1): a page does not sort all later events.
const EVENTS: &str = "
    SELECT at, fabrics.name, events.kind, nodes.guid, ports.number, place, text, detail,
        low_node.guid, low.number, high_node.guid, high.number, events.id
    FROM events CROSS JOIN fabrics ON fabrics.id = events.fabric
    LEFT JOIN nodes ON nodes.id = events.node
    LEFT JOIN ports ON ports.id = events.port
    LEFT JOIN links ON links.id = events.link
    LEFT JOIN ports AS low ON low.id = links.low LEFT JOIN nodes AS low_node ON low_node.id = low.node
    LEFT JOIN ports AS high ON high.id = links.high LEFT JOIN nodes AS high_node ON high_node.id = high.node";

impl Sql<'_> {
    /// The events that a filter selects, with their cursors, until `see` returns false.
    pub fn events(
        self,
        filter: &EventFilter,
        order: Order,
        see: &mut dyn FnMut(Cursor, Event) -> bool,
    ) -> Result<()> {
        let (sql, values) = select_events(filter, order);
        let mut statement = self.0.prepare(&sql)?;
        let mut rows = statement.query(params_from_iter(values))?;
        while let Some(row) = rows.next()? {
            if !see(Cursor { at: row.get(0)?, id: row.get(12)? }, event(row)?) {
                break;
            }
        }
        Ok(())
    }

    /// The event that was recorded last.
    pub fn latest_recorded_event(self) -> Result<Option<Cursor>> {
        let latest: Vec<(i64, i64)> =
            self.rows("SELECT at, id FROM events ORDER BY id DESC LIMIT 1", [])?;
        Ok(latest.first().map(|&(at, id)| Cursor { at, id }))
    }

    /// Whether the file has, or had, the event of a cursor. A file that has replaced another one has other events with
    /// the same numbers, or fewer.
    pub fn has_had_event(self, Cursor { at, id }: Cursor) -> Result<bool> {
        if id == Cursor::BEGIN.id {
            return Ok(true);
        }
        match self.value::<i64>("SELECT at FROM events WHERE id = ?1", [id])? {
            Some(found) => Ok(found == at),
            // Events are dropped for their age.
            None => Ok(self.latest_recorded_event()?.is_some_and(|latest| latest.id > id)),
        }
    }
}

fn select_events(filter: &EventFilter, order: Order) -> (String, Vec<Value>) {
    let mut sql = EVENTS.to_owned();
    let (from, to) = filter.window.micros();
    let mut values: Vec<Value> = vec![from.into(), to.into()];
    match order {
        Order::EarliestFirst(None) | Order::LatestFirst => sql += " WHERE at BETWEEN ? AND ?",
        Order::EarliestFirst(Some(Cursor { at, id })) => {
            sql += " WHERE at BETWEEN ? AND ? AND (at > ? OR events.id > ?)";
            // The index is searched from the other event on: a late page costs no more than an early one.
            values = vec![from.max(at).into(), to.into(), at.into(), id.into()];
        }
        Order::RecordedAfter(id) => {
            // The sign keeps SQLite from the index of times, by which it would have to sort all events.
            sql += " WHERE +at BETWEEN ? AND ? AND events.id > ?";
            values.push(id.into());
        }
    }
    if !filter.kinds.is_empty() {
        // Writing to a string cannot fail.
        let _ = write!(sql, " AND events.kind IN ({})", marks(filter.kinds.len(), "?"));
        values.extend(filter.kinds.iter().map(|kind| Value::from(kind.label().to_owned())));
    }
    if !filter.nodes.is_empty() {
        let nodes = marks(filter.nodes.len(), "?");
        let _ = write!(
            sql,
            " AND (nodes.guid IN ({nodes}) OR low_node.guid IN ({nodes}) OR high_node.guid IN ({nodes}))"
        );
        let guids = (0..3).flat_map(|_| &filter.nodes);
        values.extend(guids.map(|guid| Value::from(guid_bits(*guid))));
    }
    if !filter.ports.is_empty() {
        let ports = marks(filter.ports.len(), "(?, ?)");
        let nodes = marks(filter.ports.len(), "?");
        // Events of a node are events of its ports, too.
        let _ = write!(
            sql,
            " AND ((nodes.guid, ports.number) IN (VALUES {ports})
              OR (low_node.guid, low.number) IN (VALUES {ports})
              OR (high_node.guid, high.number) IN (VALUES {ports})
              OR events.port IS NULL AND nodes.guid IN ({nodes}))"
        );
        for PortKey { guid, number } in (0..3).flat_map(|_| &filter.ports) {
            values.extend([Value::from(guid_bits(*guid)), Value::from(*number)]);
        }
        values.extend(filter.ports.iter().map(|port| Value::from(guid_bits(port.guid))));
    }
    sql += match order {
        Order::EarliestFirst(_) => " ORDER BY at, events.id",
        Order::LatestFirst => " ORDER BY at DESC, events.id DESC",
        Order::RecordedAfter(_) => " ORDER BY events.id",
    };
    (sql, values)
}

fn event(row: &Row<'_>) -> Result<Event> {
    let end = |column: usize| -> Result<_> {
        let number: Option<PortNumber> = row.get(column + 1)?;
        Ok(guid(row, column)?.zip(number).map(|(guid, number)| PortKey { guid, number }))
    };
    let detail: Option<String> = row.get(7)?;
    Ok(Event {
        at: time_of(row.get(0)?),
        fabric: row.get(1)?,
        kind: row.get(2)?,
        node: guid(row, 3)?,
        port: row.get(4)?,
        link: end(8)?.zip(end(10)?).map(|(low, high)| LinkId { low, high }),
        place: row.get(5)?,
        text: row.get(6)?,
        detail: detail.and_then(|text| serde_json::from_str(&text).ok()).unwrap_or_default(),
    })
}

#[cfg(test)]
mod tests {
    use rusqlite::Connection;

    use super::*;
    use crate::EventKind;
    use crate::file::schema;
    use crate::model::Window;
    use ib_mad::Guid;

    /// A page that had to sort all later events would hold them in memory.
    #[test]
    fn events_are_found_in_their_order() {
        let mut db = Connection::open_in_memory().unwrap();
        schema::create(&mut db).unwrap();
        let window = Window { from: time_of(0), to: time_of(1 << 50) };
        let all = EventFilter::all(window);
        let after = Some(Cursor { at: 5, id: 7 });
        for wanted in [
            EventFilter { kinds: vec![EventKind::Flap, EventKind::LinkUp], ..all.clone() },
            EventFilter { nodes: vec![Guid(1), Guid(2)], ..all.clone() },
            EventFilter { ports: vec![PortKey::new(Guid(1), 2)], ..all.clone() },
            all,
        ] {
            for (order, way) in [
                (Order::EarliestFirst(None), "events USING INDEX events_by_time"),
                (Order::EarliestFirst(after), "events USING INDEX events_by_time"),
                (Order::LatestFirst, "events USING INDEX events_by_time"),
                (Order::RecordedAfter(7), "events USING INTEGER PRIMARY KEY (rowid>?)"),
            ] {
                let (sql, values) = select_events(&wanted, order);
                let mut plan = db.prepare(&format!("EXPLAIN QUERY PLAN {sql}")).unwrap();
                let steps = plan.query_map(params_from_iter(values), |row| row.get(3)).unwrap();
                let steps: Vec<String> = steps.map(Result::unwrap).collect();
                assert!(steps[0].contains(way), "{steps:#?}");
                assert!(!steps.iter().any(|step| step.contains("TEMP")), "{steps:#?}");
            }
        }
    }
}
