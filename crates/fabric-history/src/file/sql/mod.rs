//! The SQL of the reading side: one function a statement, with typed parameters and rows. The recorder has its
//! own statements.
//!
//! Times are microseconds since 1970. `fabric`, `port` and `node` are row ids, not names.

/// Defines functions of one statement each: what it means, its parameters in the order of the placeholders, how its
/// rows are read, and the statement.
macro_rules! statements {
    ($($(#[$about:meta])+ $name:ident($($param:ident: $of:ty),*) -> $read:ident $result:ty: $sql:literal;)+) => {
        impl Sql<'_> {
            $($(#[$about])+
            pub fn $name(self, $($param: $of),*) -> Result<$result> {
                self.$read($sql, params![$($param),*])
            })+
        }
    };
}

mod catalog;
mod events;

use std::ops::RangeInclusive;

use rusqlite::types::FromSql;
use rusqlite::{Connection, OptionalExtension, Params, Result, Row, params};

use crate::file::record_kind::RecordKind;
use ib_mad::Guid;

pub(crate) use catalog::{CablePresence, PortRow};
pub(crate) use events::Order;

/// The end of a statement that selects links by their fabric.
pub(crate) const FABRIC_OF_LINK: &str =
    "JOIN ports ON ports.id = low JOIN nodes ON nodes.id = node WHERE nodes.fabric";

/// A history, by its SQL.
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

statements! {
    /// The fabrics' ids and names, by name.
    fabrics() -> rows Vec<(i64, String)>: "SELECT id, name FROM fabrics ORDER BY name";

    /// When the first sweep began, by the order of writing: a clock that was wrong for a while does not matter.
    first_began() -> value Option<i64>: "SELECT began FROM sweeps ORDER BY rowid LIMIT 1";

    /// When the last sweep ended, by the order of writing.
    last_ended() -> value Option<i64>: "SELECT ended FROM sweeps ORDER BY rowid DESC LIMIT 1";

    /// When the latest sweep until a moment began.
    latest_sweep(fabric: i64, at: i64) -> value Option<i64>:
        "SELECT max(began) FROM sweeps WHERE fabric = ?1 AND began <= ?2";

    /// When the earliest sweep from a moment on began.
    earliest_sweep(fabric: i64, from: i64) -> value Option<i64>:
        "SELECT min(began) FROM sweeps WHERE fabric = ?1 AND began >= ?2";

    /// When each sweep in a time range began, the earliest first, with the beginning of the one before it.
    sweeps(fabric: i64, from: i64, to: i64) -> rows Vec<(i64, Option<i64>)>:
        "SELECT began, since FROM sweeps WHERE fabric = ?1 AND began BETWEEN ?2 AND ?3 ORDER BY began";

    /// The same of the latest ones until a moment, the latest first.
    sweeps_until(fabric: i64, at: i64, most: u32) -> rows Vec<(i64, Option<i64>)>:
        "SELECT began, since FROM sweeps WHERE fabric = ?1 AND began <= ?2
         ORDER BY began DESC LIMIT ?3";

    /// When each sweep that ended in a time range began and ended.
    sweeps_ended(fabric: i64, from: i64, to: i64) -> rows Vec<(i64, i64)>:
        "SELECT began, ended FROM sweeps WHERE fabric = ?1 AND ended BETWEEN ?2 AND ?3 ORDER BY began";

    /// When the latest sweeps that had ended by a moment began and ended, the latest first.
    sweeps_that_ended(fabric: i64, at: i64, most: u32) -> rows Vec<(i64, i64)>:
        "SELECT began, ended FROM sweeps WHERE fabric = ?1 AND began <= ?2 AND ended <= ?2
         ORDER BY began DESC LIMIT ?3";

    /// When the latest sweeps of any fabric but one until a moment ended, the latest first; of sweeps that began in the
    /// hours before it.
    latest_ends(at: i64, most: u32, hidden: Option<i64>) -> column Vec<i64>:
        "SELECT DISTINCT ended FROM fabrics JOIN sweeps ON sweeps.id IN (
             SELECT id FROM sweeps AS it WHERE it.fabric = fabrics.id AND it.began <= ?1 AND it.ended <= ?1
             ORDER BY it.began DESC LIMIT ?2)
         WHERE fabrics.id IS NOT ?3 ORDER BY ended DESC LIMIT ?2";

    /// When the first sweep of any fabric but one that ended after a moment did.
    end_after(at: i64, hidden: Option<i64>) -> value Option<i64>:
        "SELECT min((SELECT ended FROM sweeps AS it WHERE it.fabric = fabrics.id AND it.began > (
             SELECT coalesce(max(began), -9223372036854775808) FROM sweeps AS before
             WHERE before.fabric = fabrics.id AND before.began <= ?1 AND before.ended <= ?1)
             AND it.ended > ?1 ORDER BY it.began LIMIT 1)) FROM fabrics WHERE fabrics.id IS NOT ?2";

    /// When the latest event before the millisecond was that ends with a moment.
    event_before(at: i64) -> value Option<i64>: "SELECT max(at) FROM events WHERE at <= ?1 - 1000";

    /// When the earliest event after a moment was.
    event_after(at: i64) -> value Option<i64>: "SELECT min(at) FROM events WHERE at > ?1";

    /// When each sweep in a time range began, in the order of writing.
    sweeps_written(fabric: i64, from: i64, to: i64) -> column Vec<i64>:
        "SELECT began FROM sweeps WHERE fabric = ?1 AND began BETWEEN ?2 AND ?3 ORDER BY id";

    /// When the latest event of a kind in a time range was.
    latest_event_at(kind: &str, from: i64, to: i64) -> value Option<i64>:
        "SELECT max(at) FROM events WHERE kind = ?1 AND at BETWEEN ?2 AND ?3";

    /// The ports or nodes of a fabric with events of a kind in a time range, and when these were.
    events_of_kind(fabric: i64, kind: &str, from: i64, to: i64)
        -> rows Vec<(Option<u32>, Option<u32>, i64, bool)>:
        "SELECT port, node, at, detail IS NOT NULL FROM events WHERE fabric = ?1 AND kind = ?2 AND at BETWEEN ?3 AND ?4";

    /// Whether there is a sweep before a moment that is in no hour.
    has_undigested_sweep_before(fabric: i64, began: i64) -> exists bool:
        "SELECT 1 FROM sweeps WHERE fabric = ?1 AND began < ?2
         AND rowid > (SELECT coalesce(max(last), 0) FROM spans WHERE fabric = ?1) LIMIT 1";

    /// Whether an hour has any digest of a kind.
    has_digest(kind: RecordKind, hour: i64) -> exists bool:
        "SELECT 1 FROM digests WHERE tier = ?1 AND span = ?2 LIMIT 1";

    /// Whether there is a frame of a kind of a sweep.
    has_frame(kind: RecordKind, fabric: i64, began: i64) -> exists bool:
        "SELECT 1 FROM frames WHERE tier = ?1 AND fabric = ?2 AND began = ?3 LIMIT 1";

    /// When the earliest sweep with a frame of a kind began.
    first_frame(kind: RecordKind, fabric: i64) -> value Option<i64>:
        "SELECT min(began) FROM frames WHERE tier = ?1 AND fabric = ?2";

    /// When the earliest sweep from a moment on with a frame of a kind began.
    next_frame(kind: RecordKind, fabric: i64, at: i64) -> value Option<i64>:
        "SELECT min(began) FROM frames WHERE tier = ?1 AND fabric = ?2 AND began >= ?3";

    /// Whether the clock was ever set back while a fabric was recorded: a sweep that follows one that began later has no
    /// `since`; nor has the very first one.
    has_clock_set_back(fabric: i64) -> exists bool:
        "SELECT 1 FROM sweeps WHERE fabric = ?1 AND since IS NULL
         AND +id > (SELECT min(id) FROM sweeps WHERE fabric = ?1) LIMIT 1";

    /// When the latest sweep until a moment with a frame of a kind began.
    latest_frame(kind: RecordKind, fabric: i64, at: i64) -> value Option<i64>:
        "SELECT max(began) FROM frames WHERE tier = ?1 AND fabric = ?2 AND began <= ?3";
}

impl Sql<'_> {
    /// The first column of the first row; none of no row, and of NULL.
    pub fn value<T: FromSql>(self, sql: &str, params: impl Params) -> Result<Option<T>> {
        let mut statement = self.0.prepare_cached(sql)?;
        Ok(statement.query_row(params, |row| row.get::<_, Option<T>>(0)).optional()?.flatten())
    }

    /// The first column of all rows.
    pub fn column<T: FromSql, C: FromIterator<T>>(
        self,
        sql: &str,
        params: impl Params,
    ) -> Result<C> {
        self.0.prepare_cached(sql)?.query_map(params, |row| row.get(0))?.collect()
    }

    /// Rows, each of them a tuple of its columns.
    pub fn rows<T, C: FromIterator<T>>(self, sql: &str, params: impl Params) -> Result<C>
    where
        T: for<'r> TryFrom<&'r Row<'r>, Error = rusqlite::Error>,
    {
        self.0.prepare_cached(sql)?.query_map(params, |row| T::try_from(row))?.collect()
    }

    /// Whether there is any row.
    fn exists(self, sql: &str, params: impl Params) -> Result<bool> {
        self.0.prepare_cached(sql)?.exists(params)
    }

    /// Executes a statement; returns whether it changed anything.
    pub fn execute(self, sql: &str, params: impl Params) -> Result<bool> {
        Ok(self.0.prepare_cached(sql)?.execute(params)? > 0)
    }

    /// Inserts a row; returns its id.
    pub fn insert(self, sql: &str, params: impl Params) -> Result<i64> {
        self.0.prepare_cached(sql)?.insert(params)
    }

    /// Visits rows whose data is not copied.
    pub fn visit(
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

    /// When the sweep before another began; the other itself if there was none.
    pub fn sweep_before(self, fabric: i64, began: i64) -> Result<i64> {
        let sql = "SELECT since FROM sweeps WHERE fabric = ?1 AND began = ?2";
        Ok(self.value(sql, [fabric, began])?.unwrap_or(began))
    }

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
    /// fabric, and whether they have totals instead of growth: from the latest write of all totals on, with these kinds
    /// of growth.
    pub fn frames_of_totals(
        self,
        growth: &[RecordKind],
        see: &mut dyn FnMut(i64, bool, &[u8]),
    ) -> Result<()> {
        use RecordKind::{AllTotals, FirstTotals};
        let growth: Vec<String> = growth.iter().map(RecordKind::to_string).collect();
        let growth = growth.join(", ");
        // All rows are read in their order: by an index (hence the +) their data would be sorted.
        let sql = format!(
            "SELECT fabric, tier IN ({FirstTotals}, {AllTotals}), data FROM frames AS it
             WHERE +tier IN ({growth}, {FirstTotals}, {AllTotals})
             AND id >= coalesce(
                 (SELECT min(id) FROM frames WHERE tier = {AllTotals} AND fabric = it.fabric), 0)
             ORDER BY id"
        );
        self.visit(&sql, [], |row| {
            see(row.get(0)?, row.get(1)?, row.get_ref(2)?.as_blob()?);
            Ok(())
        })
    }
}

/// This number of placeholders for values.
pub(in crate::file) fn marks(count: usize, mark: &str) -> String {
    vec![mark; count].join(", ")
}

fn guid(row: &Row<'_>, column: usize) -> Result<Option<Guid>> {
    Ok(row.get::<_, Option<i64>>(column)?.map(|bits| Guid(bits.cast_unsigned())))
}
