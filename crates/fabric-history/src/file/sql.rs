//! The SQL of the reading side: one function a statement, with typed parameters and rows.
//!
//! Times are microseconds since 1970. `fabric`, `port` and `node` are row ids, not names.

use std::fmt::Write;
use std::ops::RangeInclusive;

use rusqlite::types::{FromSql, Value};
use rusqlite::{Connection, OptionalExtension, Params, Result, Row, params, params_from_iter};

use crate::file::record_kind::{RecordKind, guid_bits};
use crate::model::{Event, Port};
use crate::source::{Cursor, EventFilter};
use crate::{micros_of, time_of};
use ib_fabric::topology::{End, LinkId};
use ib_mad::{Guid, PortNumber};

/// A history that is read by SQL.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Sql<'a>(pub &'a Connection);

/// Sweeps that are digested together.
#[derive(Clone, Debug)]
pub(crate) struct Hour {
    pub id: i64,
    pub fabric: i64,
    /// When its first sweep began, and its last.
    pub sweeps: RangeInclusive<i64>,
    pub ended: i64,
    /// When the first sweep with traffic began.
    pub traffic: Option<i64>,
    pub count: usize,
    /// The id of its last sweep.
    pub last: i64,
}

impl Hour {
    /// Whether it contains a sweep. One that was written later is not in it, even if the clock was set back
    /// into this hour.
    pub fn has(&self, frame: &FrameRow<'_>) -> bool {
        self.fabric == frame.fabric
            && self.sweeps.contains(&frame.began)
            && frame.sweep.is_none_or(|sweep| sweep <= self.last)
    }
}

/// A row of frames.
#[derive(Debug)]
pub(crate) struct FrameRow<'a> {
    pub fabric: i64,
    pub began: i64,
    pub ended: i64,
    /// When the previous sweep began, if there was one.
    pub since: Option<i64>,
    /// The id of the sweep.
    pub sweep: Option<i64>,
    /// The packed frame.
    pub data: &'a [u8],
}

/// The id of a port, and the port.
pub(crate) type PortRow = (u32, Port);

/// A cable by the ids of its ports, and when it was present.
#[derive(Clone, Copy, Debug)]
pub struct CablePresence {
    /// The lower end first.
    pub ends: [u32; 2],
    pub(super) since: i64,
    pub(super) until: i64,
}

/// A cable with its ends; their nodes have no names yet.
#[derive(Clone, Debug)]
pub(crate) struct CableRow {
    pub fabric: i64,
    pub ports: [u32; 2],
    pub nodes: [u32; 2],
    pub ends: [Port; 2],
    pub until: Option<i64>,
}

/// The order of events.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Order {
    EarliestFirst,
    LatestFirst,
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
    LEFT JOIN ports AS high ON high.id = links.high LEFT JOIN nodes AS high_node ON high_node.id = high.node
    WHERE at BETWEEN ? AND ?";

const PORTS: &str = "
    SELECT ports.id, fabrics.name, guid, number, coalesce(
        (SELECT name FROM names WHERE names.node = nodes.id ORDER BY since DESC LIMIT 1), '')
    FROM ports JOIN nodes ON nodes.id = ports.node JOIN fabrics ON fabrics.id = nodes.fabric";

const CABLES: &str = "
    SELECT fabrics.id, fabrics.name, cables.until, low.id, low_node.id, low_node.guid, low.number,
        high.id, high_node.id, high_node.guid, high.number
    FROM cables JOIN links ON links.id = link
    JOIN ports AS low ON low.id = links.low JOIN nodes AS low_node ON low_node.id = low.node
    JOIN ports AS high ON high.id = links.high JOIN nodes AS high_node ON high_node.id = high.node
    JOIN fabrics ON fabrics.id = low_node.fabric";

impl Sql<'_> {
    /// The first column of the first row; none of no row, and of NULL.
    fn value<T: FromSql>(self, sql: &str, params: impl Params) -> Result<Option<T>> {
        let mut statement = self.0.prepare_cached(sql)?;
        Ok(statement.query_row(params, |row| row.get::<_, Option<T>>(0)).optional()?.flatten())
    }

    /// Rows, each of them a tuple of its columns.
    fn rows<T>(self, sql: &str, params: impl Params) -> Result<Vec<T>>
    where
        T: for<'r> TryFrom<&'r Row<'r>, Error = rusqlite::Error>,
    {
        self.0.prepare_cached(sql)?.query_map(params, |row| T::try_from(row))?.collect()
    }

    /// Visits rows whose data is not copied.
    fn visit(
        self,
        sql: &str,
        params: impl Params,
        mut see: impl FnMut(&Row<'_>) -> Result<()>,
    ) -> Result<()> {
        let mut statement = self.0.prepare_cached(sql)?;
        let mut rows = statement.query(params)?;
        while let Some(row) = rows.next()? {
            see(row)?;
        }
        Ok(())
    }

    /// How many sweeps there are, and how many events.
    pub fn counts(self) -> Result<(usize, usize)> {
        let count = |sql| self.value::<u32>(sql, []).map(|count| count.unwrap_or(0) as usize);
        Ok((count("SELECT count(*) FROM sweeps")?, count("SELECT count(*) FROM events")?))
    }

    /// The fabrics' ids and names, by name.
    pub fn fabrics(self) -> Result<Vec<(i64, String)>> {
        let sql = "SELECT id, name FROM fabrics ORDER BY name";
        self.rows(sql, [])
    }

    // Sweeps.

    /// When the first sweep began and the last one ended, by the order of writing: a clock that was
    /// wrong for a while does not matter.
    pub fn first_and_last(self) -> Result<[Option<i64>; 2]> {
        Ok([
            self.value("SELECT began FROM sweeps ORDER BY rowid LIMIT 1", [])?,
            self.value("SELECT ended FROM sweeps ORDER BY rowid DESC LIMIT 1", [])?,
        ])
    }

    /// When the latest sweep until a moment began.
    pub fn latest_sweep(self, fabric: i64, at: i64) -> Result<Option<i64>> {
        let sql = "SELECT max(began) FROM sweeps WHERE fabric = ?1 AND began <= ?2";
        self.value(sql, [fabric, at])
    }

    /// When the earliest sweep from a moment on began.
    pub fn earliest_sweep(self, fabric: i64, from: i64) -> Result<Option<i64>> {
        let sql = "SELECT min(began) FROM sweeps WHERE fabric = ?1 AND began >= ?2";
        self.value(sql, [fabric, from])
    }

    /// When the sweep before another began; the other itself if there was none.
    pub fn sweep_before(self, fabric: i64, began: i64) -> Result<i64> {
        let sql = "SELECT since FROM sweeps WHERE fabric = ?1 AND began = ?2";
        Ok(self.value(sql, [fabric, began])?.unwrap_or(began))
    }

    /// When each sweep in a time range began, the earliest first, with the beginning of the one before it.
    pub fn sweeps(
        self,
        fabric: i64,
        began: RangeInclusive<i64>,
    ) -> Result<Vec<(i64, Option<i64>)>> {
        let sql = "SELECT began, since FROM sweeps
                   WHERE fabric = ?1 AND began BETWEEN ?2 AND ?3 ORDER BY began";
        let (from, to) = began.into_inner();
        self.rows(sql, [fabric, from, to])
    }

    /// The same of the latest ones until a moment, the latest first.
    pub fn sweeps_until(self, fabric: i64, at: i64, most: u32) -> Result<Vec<(i64, Option<i64>)>> {
        let sql = "SELECT began, since FROM sweeps WHERE fabric = ?1 AND began <= ?2
                   ORDER BY began DESC LIMIT ?3";
        self.rows(sql, params![fabric, at, most])
    }

    /// When each sweep that ended in a time range began and ended.
    pub fn sweeps_ended(self, fabric: i64, ended: RangeInclusive<i64>) -> Result<Vec<(i64, i64)>> {
        let sql = "SELECT began, ended FROM sweeps
                   WHERE fabric = ?1 AND ended BETWEEN ?2 AND ?3 ORDER BY began";
        let (from, to) = ended.into_inner();
        self.rows(sql, [fabric, from, to])
    }

    /// Whether there is a sweep before a moment that is in no hour.
    pub fn has_undigested_sweep_before(self, fabric: i64, began: i64) -> Result<bool> {
        let sql = "SELECT 1 FROM sweeps WHERE fabric = ?1 AND began < ?2
                   AND rowid > (SELECT coalesce(max(last), 0) FROM spans WHERE fabric = ?1) LIMIT 1";
        self.0.prepare_cached(sql)?.exists([fabric, began])
    }

    // Hours, and their digests.

    /// The hours that overlap a time range, the earliest first.
    pub fn hours(self, (from, to): (i64, i64)) -> Result<Vec<Hour>> {
        let sql = "SELECT id, fabric, first, began, ended, traffic, sweeps, last FROM spans
                   WHERE ended >= ?1 AND first <= ?2 ORDER BY id";
        let read = |row: &Row<'_>| {
            Ok(Hour {
                id: row.get(0)?,
                fabric: row.get(1)?,
                sweeps: row.get(2)?..=row.get(3)?,
                ended: row.get(4)?,
                traffic: row.get(5)?,
                count: row.get::<_, u32>(6)? as usize,
                last: row.get(7)?,
            })
        };
        self.0.prepare_cached(sql)?.query_map([from, to], read)?.collect()
    }

    /// When the first and the last sweep of the hours around a moment began.
    pub fn hour_around(self, fabric: i64, at: i64) -> Result<Option<(i64, i64)>> {
        let sql = "SELECT min(first), max(began) FROM spans
                   WHERE fabric = ?1 AND ?2 BETWEEN first AND began";
        let around: Vec<(Option<i64>, Option<i64>)> = self.rows(sql, [fabric, at])?;
        Ok(around.first().and_then(|(first, last)| first.zip(*last)))
    }

    /// Whether an hour has any digest of a kind.
    pub fn has_digest(self, kind: RecordKind, hour: i64) -> Result<bool> {
        let sql = "SELECT 1 FROM digests WHERE tier = ?1 AND span = ?2 LIMIT 1";
        self.0.prepare_cached(sql)?.exists(params![kind, hour])
    }

    /// The packed digests of some hours, with the hours' ids, the earliest first: of one part, or of all.
    pub fn digests(
        self,
        kind: RecordKind,
        hours: RangeInclusive<i64>,
        part: Option<u32>,
        see: &mut dyn FnMut(i64, &[u8]) -> Result<()>,
    ) -> Result<()> {
        let which = if part.is_some() { "part = ?4" } else { "?4 IS NULL" };
        let sql = format!(
            "SELECT span, data FROM digests
             WHERE tier = ?1 AND {which} AND span BETWEEN ?2 AND ?3 ORDER BY span"
        );
        self.visit(&sql, params![kind, hours.start(), hours.end(), part], |row| {
            see(row.get(0)?, row.get_ref(1)?.as_blob()?)
        })
    }

    // Frames.

    /// The frames of the sweeps that began in a time range, the earliest first: of one fabric or, of a
    /// part and of kinds without parts, of all; of one part, or of all.
    pub fn frames(
        self,
        kind: RecordKind,
        fabric: Option<i64>,
        part: Option<u32>,
        began: RangeInclusive<i64>,
        see: &mut dyn FnMut(FrameRow<'_>) -> Result<()>,
    ) -> Result<()> {
        let part = part.filter(|_| kind.is_in_parts());
        // Each is one index search: searching a fabric in the rows of a part would read them all.
        let (which, key) = match (part, fabric) {
            (None, Some(fabric)) => ("fabric = ?2", Some(fabric)),
            (part, _) => ("part IS ?2", part.map(i64::from)),
        };
        let sql = format!(
            "SELECT fabric, began, ended, data, (SELECT since FROM sweeps
                 WHERE sweeps.fabric = frames.fabric AND sweeps.began = frames.began),
                 (SELECT rowid FROM sweeps
                 WHERE sweeps.fabric = frames.fabric AND sweeps.began = frames.began)
             FROM frames WHERE tier = ?1 AND {which} AND began BETWEEN ?3 AND ?4 ORDER BY began"
        );
        self.visit(&sql, params![kind, key, began.start(), began.end()], |row| {
            let of = row.get(0)?;
            if fabric.is_some_and(|fabric| fabric != of) {
                return Ok(());
            }
            see(FrameRow {
                fabric: of,
                began: row.get(1)?,
                ended: row.get(2)?,
                data: row.get_ref(3)?.as_blob()?,
                since: row.get(4)?,
                sweep: row.get(5)?,
            })
        })
    }

    /// Whether there is a frame of a kind of a sweep.
    pub fn has_frame(self, kind: RecordKind, fabric: i64, began: i64) -> Result<bool> {
        let sql = "SELECT 1 FROM frames WHERE tier = ?1 AND fabric = ?2 AND began = ?3 LIMIT 1";
        self.0.prepare_cached(sql)?.exists(params![kind, fabric, began])
    }

    /// When the earliest sweep with a frame of a kind began.
    pub fn first_frame(self, kind: RecordKind, fabric: i64) -> Result<Option<i64>> {
        let sql = "SELECT min(began) FROM frames WHERE tier = ?1 AND fabric = ?2";
        self.value(sql, params![kind, fabric])
    }

    /// When the latest sweep until a moment with a frame of a kind began.
    pub fn latest_frame(self, kind: RecordKind, fabric: i64, at: i64) -> Result<Option<i64>> {
        let sql = "SELECT max(began) FROM frames WHERE tier = ?1 AND fabric = ?2 AND began <= ?3";
        self.value(sql, params![kind, fabric, at])
    }

    /// The packed states of the sweeps that began in a time range, with their kind, the earliest first: the
    /// complete ones of a sweep come before its changes.
    pub fn states(
        self,
        [complete, changes]: [RecordKind; 2],
        fabric: i64,
        began: RangeInclusive<i64>,
        see: &mut dyn FnMut(bool, i64, &[u8]),
    ) -> Result<()> {
        let sql = "SELECT tier = ?1, began, data FROM frames WHERE tier IN (?1, ?2) AND fabric = ?3
                   AND began BETWEEN ?4 AND ?5 ORDER BY began, tier = ?1 DESC";
        let values = params![complete, changes, fabric, began.start(), began.end()];
        self.visit(sql, values, |row| {
            see(row.get(0)?, row.get(1)?, row.get_ref(2)?.as_blob()?);
            Ok(())
        })
    }

    /// The packed frames from which the latest totals are computed, in the order of writing, with their
    /// fabric, and whether they have totals instead of growth: from the latest write of all totals on.
    pub fn frames_of_totals(self, see: &mut dyn FnMut(i64, bool, &[u8])) -> Result<()> {
        use RecordKind::{AllTotals, ErrorDeltas, FirstTotals, TrafficDeltas};
        // All rows are read in their order: by an index (hence the +) their data would be sorted.
        let sql = format!(
            "SELECT fabric, tier IN ({FirstTotals}, {AllTotals}), data FROM frames AS it
             WHERE +tier IN ({ErrorDeltas}, {TrafficDeltas}, {FirstTotals}, {AllTotals})
             AND id >= coalesce(
                 (SELECT min(id) FROM frames WHERE tier = {AllTotals} AND fabric = it.fabric), 0)
             ORDER BY id"
        );
        self.visit(&sql, [], |row| {
            see(row.get(0)?, row.get(1)?, row.get_ref(2)?.as_blob()?);
            Ok(())
        })
    }

    // The catalog.

    pub fn counters(self) -> Result<Vec<(i64, String)>> {
        self.rows("SELECT id, name FROM counters", [])
    }

    pub fn last_port(self) -> Result<u32> {
        Ok(self.value("SELECT max(id) FROM ports", [])?.unwrap_or(0))
    }

    /// The ports that match a node's name or GUID, and a port number.
    pub fn ports_called(
        self,
        name: &str,
        guid: Option<Guid>,
        number: Option<PortNumber>,
    ) -> Result<Vec<PortRow>> {
        // A name that several nodes share means all of them: each has GUID digits behind it.
        let of_node = " WHERE ports.node IN (SELECT node FROM names WHERE name = ?1
                OR name > ?1 || '#' AND name < ?1 || '$' AND length(name) - length(?1) BETWEEN 7 AND 17
                AND substr(name, length(?1) + 2) NOT GLOB '*[^0-9a-f]*'
            UNION SELECT id FROM nodes WHERE guid = ?2) AND ports.number = coalesce(?3, ports.number)";
        let guid = guid.map(guid_bits);
        self.ports(of_node, [Value::from(name.to_owned()), guid.into(), number.into()])
    }

    /// Some ports, as far as the file has them.
    pub fn ports_at(self, ends: &[End]) -> Result<Vec<PortRow>> {
        let which = format!(" WHERE (guid, number) IN (VALUES {})", marks(ends.len(), "(?, ?)"));
        let of = |(guid, number): &End| [Value::from(guid_bits(*guid)), Value::from(*number)];
        if ends.is_empty() { Ok(Vec::new()) } else { self.ports(&which, ends.iter().flat_map(of)) }
    }

    pub fn ports_by_id(self, ids: impl IntoIterator<Item = u32>) -> Result<Vec<PortRow>> {
        let ids: Vec<String> = ids.into_iter().map(|id| id.to_string()).collect();
        let mut ports = Vec::new();
        // SQLite limits the length of a statement; this number of ids takes a tenth of it.
        for ids in ids.chunks(10_000) {
            ports.extend(self.ports(&format!(" WHERE ports.id IN ({})", ids.join(",")), [])?);
        }
        Ok(ports)
    }

    pub fn all_ports(self) -> Result<Vec<PortRow>> {
        self.ports("", [])
    }

    fn ports(self, which: &str, values: impl IntoIterator<Item = Value>) -> Result<Vec<PortRow>> {
        let mut statement = self.0.prepare(&format!("{PORTS}{which} ORDER BY guid, number"))?;
        let read = |row: &Row<'_>| {
            let mut port = port(row, 1, 2)?;
            port.node = row.get(4)?;
            Ok((row.get(0)?, port))
        };
        statement.query_map(params_from_iter(values), read)?.collect()
    }

    /// The ids of a fabric's ports, with their nodes' and their numbers on them.
    pub fn port_ids(self, fabric: i64) -> Result<Vec<(u32, u32, PortNumber)>> {
        let sql = "SELECT ports.id, node, number FROM ports JOIN nodes ON nodes.id = node
                   WHERE fabric = ?1";
        self.rows(sql, [fabric])
    }

    /// The ids, GUIDs and kinds of a fabric's nodes.
    pub fn nodes(self, fabric: i64) -> Result<Vec<(u32, Guid, String)>> {
        let rows = self.rows("SELECT id, guid, kind FROM nodes WHERE fabric = ?1", [fabric])?;
        let of = |(id, guid, kind): (u32, i64, String)| (id, Guid(guid.cast_unsigned()), kind);
        Ok(rows.into_iter().map(of).collect())
    }

    /// The names of a fabric's nodes, with the sweeps from which on they had them; node by node, the earliest
    /// first.
    pub fn names(self, fabric: i64) -> Result<Vec<(u32, i64, String)>> {
        let sql = "SELECT node, since, name FROM names JOIN nodes ON nodes.id = node
                   WHERE fabric = ?1 ORDER BY node, since";
        self.rows(sql, [fabric])
    }

    /// The presence intervals of a fabric's nodes that overlap a time range.
    pub fn presences(self, fabric: i64, (from, to): (i64, i64)) -> Result<Vec<(u32, i64, i64)>> {
        let sql =
            "SELECT node, since, coalesce(until, ?4) FROM presences JOIN nodes ON nodes.id = node
                   WHERE fabric = ?1 AND since <= ?3 AND (until IS NULL OR until > ?2)";
        self.rows(sql, [fabric, from, to, i64::MAX])
    }

    /// The cables of all fabrics that were present in a time range.
    pub fn cable_presences(self, (from, to): (i64, i64)) -> Result<Vec<CablePresence>> {
        let sql =
            "SELECT low, high, since, coalesce(until, ?3) FROM cables JOIN links ON links.id = link
                   WHERE since <= ?2 AND (until IS NULL OR until > ?1)";
        let rows = self.rows(sql, [from, to, i64::MAX])?.into_iter();
        Ok(rows
            .map(|(low, high, since, until)| CablePresence { ends: [low, high], since, until })
            .collect())
    }

    /// The cables of some ports that were present in a time range, the earliest first.
    pub fn cables_at(self, ports: &[u32], (from, to): (i64, i64)) -> Result<Vec<CableRow>> {
        let which = marks(ports.len(), "?");
        let sql = format!(
            "{CABLES} WHERE link IN (SELECT id FROM links WHERE low IN ({which})
                 UNION SELECT id FROM links WHERE high IN ({which}))
             AND since <= ? AND (until IS NULL OR until > ?) ORDER BY since, cables.id"
        );
        let values = ports.iter().chain(ports).map(|port| Value::from(*port));
        let values = values.chain([Value::from(to), Value::from(from)]);
        self.0.prepare(&sql)?.query_map(params_from_iter(values), cable)?.collect()
    }

    /// The cables of a fabric that were present in a sweep.
    pub fn cables_in(self, fabric: i64, began: i64) -> Result<Vec<CableRow>> {
        let sql = format!(
            "{CABLES} WHERE low_node.fabric = ?1 AND since <= ?2 AND (until IS NULL OR until > ?2)"
        );
        self.0.prepare_cached(&sql)?.query_map([fabric, began], cable)?.collect()
    }

    // Events.

    /// The events that a filter selects after another one, with their cursors, until `see` returns false.
    pub fn events(
        self,
        filter: &EventFilter,
        order: Order,
        after: Option<Cursor>,
        see: &mut dyn FnMut(Cursor, Event) -> bool,
    ) -> Result<()> {
        let (sql, values) = select_events(filter, order, after);
        let mut statement = self.0.prepare(&sql)?;
        let mut rows = statement.query(params_from_iter(values))?;
        while let Some(row) = rows.next()? {
            if !see(Cursor { at: row.get(0)?, id: row.get(12)? }, event(row)?) {
                break;
            }
        }
        Ok(())
    }
}

fn select_events(
    filter: &EventFilter,
    order: Order,
    after: Option<Cursor>,
) -> (String, Vec<Value>) {
    let mut sql = EVENTS.to_owned();
    let [mut from, mut to] = [filter.window.from, filter.window.to].map(micros_of);
    // The index is searched from the other event on: a late page costs no more than an early one.
    match (after, order) {
        (None, _) => {}
        (Some(Cursor { at, .. }), Order::EarliestFirst) => from = from.max(at),
        (Some(Cursor { at, .. }), Order::LatestFirst) => to = to.min(at),
    }
    let mut values: Vec<Value> = vec![from.into(), to.into()];
    if let Some(Cursor { at, id }) = after {
        let beyond = if order == Order::EarliestFirst { '>' } else { '<' };
        // Writing to a string cannot fail.
        let _ = write!(sql, " AND (at {beyond} ? OR events.id {beyond} ?)");
        values.extend([at, id].map(Value::from));
    }
    if !filter.kinds.is_empty() {
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
        for (guid, number) in (0..3).flat_map(|_| &filter.ports) {
            values.extend([Value::from(guid_bits(*guid)), Value::from(*number)]);
        }
        values.extend(filter.ports.iter().map(|(guid, _)| Value::from(guid_bits(*guid))));
    }
    sql += match order {
        Order::EarliestFirst => " ORDER BY at, events.id",
        Order::LatestFirst => " ORDER BY at DESC, events.id DESC",
    };
    (sql, values)
}

/// This number of placeholders for values.
pub(super) fn marks(count: usize, mark: &str) -> String {
    vec![mark; count].join(", ")
}

fn guid(row: &Row<'_>, column: usize) -> Result<Option<Guid>> {
    Ok(row.get::<_, Option<i64>>(column)?.map(|bits| Guid(bits.cast_unsigned())))
}

/// A port whose GUID and number are in columns one after the other; its node has no name.
fn port(row: &Row<'_>, fabric: usize, column: usize) -> Result<Port> {
    let guid = guid(row, column)?.unwrap_or_default();
    Ok(Port { fabric: row.get(fabric)?, guid, port: row.get(column + 1)?, node: String::new() })
}

fn cable(row: &Row<'_>) -> Result<CableRow> {
    Ok(CableRow {
        fabric: row.get(0)?,
        until: row.get(2)?,
        ports: [row.get(3)?, row.get(7)?],
        nodes: [row.get(4)?, row.get(8)?],
        ends: [port(row, 1, 5)?, port(row, 1, 9)?],
    })
}

fn event(row: &Row<'_>) -> Result<Event> {
    let end = |column: usize| -> Result<_> {
        Ok(guid(row, column)?.zip(row.get::<_, Option<PortNumber>>(column + 1)?))
    };
    let detail: Option<String> = row.get(7)?;
    Ok(Event {
        at: time_of(row.get(0)?),
        fabric: row.get(1)?,
        kind: row.get(2)?,
        node: guid(row, 3)?,
        port: row.get(4)?,
        link: end(8)?.zip(end(10)?).map(|(low, high)| LinkId(low, high)),
        place: row.get(5)?,
        text: row.get(6)?,
        detail: detail.and_then(|text| serde_json::from_str(&text).ok()).unwrap_or_default(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::EventKind;
    use crate::file::schema;
    use crate::model::Window;

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
            EventFilter { ports: vec![(Guid(1), 2)], ..all.clone() },
            all,
        ] {
            for order in [Order::EarliestFirst, Order::LatestFirst] {
                let (sql, values) = select_events(&wanted, order, after);
                let mut plan = db.prepare(&format!("EXPLAIN QUERY PLAN {sql}")).unwrap();
                let steps = plan.query_map(params_from_iter(values), |row| row.get(3)).unwrap();
                let steps: Vec<String> = steps.map(Result::unwrap).collect();
                assert!(steps[0].contains("events USING INDEX events_by_time"), "{steps:#?}");
                assert!(!steps.iter().any(|step| step.contains("TEMP")), "{steps:#?}");
            }
        }
    }
}
