//! What is dropped when, so that the file stays within its budget.
//!
//! By age each kind has a time of its own, and a few things at a time are dropped, when the time of day has
//! held for a while: a clock that was set wrong must not cost the history. By size it is the oldest of each
//! sweep's traffic first, but for the last hour's, then of each hour's, but for the last three days';
//! then what was left of both, then errors with how the fabric was, then events. A sweep that is dropped takes
//! all that is left of it along. So a file that is too
//! small for all of it still has the traffic of the last hour sweep by sweep, and that of some days hour by
//! hour. What totals are told from stays, and so do the latest errors and events, also where they are
//! more than the budget.

use std::path::Path;
use std::time::{Duration, SystemTime};

use rusqlite::{Transaction, TransactionBehavior, params};

use crate::file::{free, with_suffix};
use crate::settings::HistorySettings;
use crate::{HistoryError, micros_of};
use fabric_observation::RecorderStats;

use super::store::Store;
use super::unused::oldest;

/// How many sweeps' frames are dropped at a time: of 60,000 ports 1.5 MB each.
const SWEEPS_AT_ONCE: u32 = 16;

/// How many hours' digests are: of 60,000 ports 3 MB each.
const SPANS_AT_ONCE: u32 = 8;

/// How many sweeps' errors are: as many as are digested together.
const RARE_AT_ONCE: u32 = 256;

/// How many events are.
const EVENTS_AT_ONCE: u32 = 1_000;

/// How many sweeps' errors, and how many events, no budget costs: where totals alone need more than that
/// (50 MB on 60,000 ports), dropping these as well would not help.
const LEAST_SWEEPS: u32 = 240;
const LEAST_EVENTS: u32 = 1_000;

/// How many pages are given back to the disk after a sweep: 8 MiB, more than a sweep takes.
const PAGES_AT_ONCE: u32 = 2_048;

/// How often something is dropped after a sweep, at most: the next one may be waiting.
const MOST_TURNS: u32 = 16;

/// Each sweep's traffic that is dropped after each hour's.
const LAST_FULL: Duration = Duration::from_secs(3600);

/// Each hour's traffic that is dropped after the last of each sweep's.
const LAST_THINNED: Duration = Duration::from_secs(3 * 24 * 3600);

/// What is newer than the latest whole totals of its fabric is needed to tell totals. Where there are
/// none no port ever told its counters, and there is nothing to tell.
const NOT_NEEDED: &str = "id < coalesce(
    (SELECT min(id) FROM frames AS whole WHERE whole.fabric = frames.fabric AND tier = 3),
    9223372036854775807)";

/// The sweep of the latest whole totals of a fabric.
pub(super) const LAST_WHOLE: &str = "(SELECT max(id) FROM sweeps WHERE fabric = ?1 AND began = (
    SELECT began FROM frames WHERE tier = 3 AND fabric = ?1))";

impl Store {
    /// Digests what is due, drops what is too old at a time, if that is known, and the oldest while there
    /// is too much.
    pub fn prune(
        &self,
        settings: &HistorySettings,
        now: Option<SystemTime>,
    ) -> Result<(), HistoryError> {
        let failed = |doing| {
            let path = self.path.clone();
            move |error| HistoryError::database(&path, doing, error)
        };
        self.digest().map_err(failed("digest an hour of it"))?;
        self.prune_all(settings, now).map_err(failed("drop what is old in it"))?;
        self.bound_log().map_err(failed("bring its log into it"))
    }

    fn prune_all(
        &self,
        settings: &HistorySettings,
        now: Option<SystemTime>,
    ) -> rusqlite::Result<()> {
        let before = |age: Duration| now.and_then(|now| now.checked_sub(age)).map_or(0, micros_of);
        let (traffic, rare) = (before(settings.traffic_for), before(settings.rare_for));
        self.drop_full(traffic)?;
        self.drop_thinned(rare)?;
        self.drop_rare(Some(rare), traffic)?;
        self.drop_events(Some(rare))?;
        let all = i64::MAX;
        for _ in 0..MOST_TURNS {
            let is_dropped = self.used()? > settings.size
                && (self.drop_digested(before(LAST_FULL))?
                    || self.drop_thinned(before(LAST_THINNED))?
                    || self.drop_full(all)?
                    || self.drop_thinned(all)?
                    || self.drop_rare(None, all)?
                    || self.drop_events(None)?);
            if !is_dropped {
                break;
            }
        }
        // Each row is a step, and a step gives back a page.
        let mut vacuum =
            self.db.prepare_cached(&format!("PRAGMA incremental_vacuum({PAGES_AT_ONCE})"))?;
        let mut pages = vacuum.query([])?;
        while pages.next()?.is_some() {}
        Ok(())
    }

    fn execute(&self, sql: &str, values: impl rusqlite::Params) -> rusqlite::Result<bool> {
        Ok(self.db.prepare_cached(sql)?.execute(values)? > 0)
    }

    /// Drops some sweeps' traffic that is older than a moment, the oldest first; tells whether there
    /// was any. What was written first is the oldest, whatever clocks said: times that were years
    /// ahead do not outlive what is true.
    fn drop_full(&self, before: i64) -> rusqlite::Result<bool> {
        let mut any = false;
        for fabric in self.fabrics()? {
            any |= self.drop_full_of(fabric, before)?;
        }
        Ok(any)
    }

    /// The same where its hour is digested: what is dropped before is in no sum.
    fn drop_digested(&self, before: i64) -> rusqlite::Result<bool> {
        let mut any = false;
        for fabric in self.fabrics()? {
            let mut last = self.db.prepare_cached(
                "SELECT coalesce(max(began) + 1, 0) FROM spans WHERE fabric = ?1",
            )?;
            let last: i64 = last.query_row([fabric], |row| row.get(0))?;
            any |= self.drop_full_of(fabric, before.min(last))?;
        }
        Ok(any)
    }

    fn drop_full_of(&self, fabric: i64, before: i64) -> rusqlite::Result<bool> {
        // All parts of a sweep at once: where any is, all are.
        self.execute(
            &format!(
                "DELETE FROM frames WHERE tier = 1 AND fabric = ?1 AND {NOT_NEEDED}
                     AND began IN (SELECT began FROM frames
                         WHERE tier = 1 AND fabric = ?1 AND began < ?2
                         GROUP BY began ORDER BY min(id) LIMIT {SWEEPS_AT_ONCE})"
            ),
            params![fabric, before],
        )
    }

    /// The same with what traffic came to in some hours.
    fn drop_thinned(&self, before: i64) -> rusqlite::Result<bool> {
        self.execute(
            &format!(
                "DELETE FROM digests WHERE tier = 1 AND span IN (
                     SELECT id FROM spans WHERE ended < ?1
                     AND EXISTS (SELECT 1 FROM digests WHERE tier = 1 AND span = spans.id)
                     ORDER BY id LIMIT {SPANS_AT_ONCE})"
            ),
            [before],
        )
    }

    /// The same with errors, how the fabric was, and when its sweeps were: those that are too old, or
    /// those that were written first. Sweeps whose traffic is too old as well go after it, so that no more
    /// of it is dropped at a time than [`SWEEPS_AT_ONCE`]: a clock that is wrong should be noticed.
    fn drop_rare(&self, before: Option<i64>, traffic: i64) -> rusqlite::Result<bool> {
        let oldest = match before {
            Some(_) => "fabric = ?1 AND began < ?2 AND NOT EXISTS (
                    SELECT 1 FROM frames WHERE tier = 1 AND frames.fabric = ?1
                    AND frames.began = sweeps.began AND frames.began < ?3) ORDER BY began"
                .to_owned(),
            None => format!(
                "+fabric = ?1 AND ?2 IS NULL AND ?3 IS NOT NULL
                 AND id <= (SELECT max(id) FROM sweeps) - {LEAST_SWEEPS} ORDER BY id"
            ),
        };
        let sql = format!("SELECT id, began FROM sweeps WHERE {oldest} LIMIT {RARE_AT_ONCE}");
        let mut any = false;
        for fabric in self.fabrics()? {
            let mut due = self.db.prepare_cached(&sql)?;
            let due: Vec<(i64, i64)> = due
                .query_map(params![fabric, before, traffic], |row| Ok((row.get(0)?, row.get(1)?)))?
                .collect::<rusqlite::Result<_>>()?;
            if due.is_empty() {
                continue;
            }
            // A reader sees all of a sweep or nothing.
            let transaction = Transaction::new_unchecked(&self.db, TransactionBehavior::Immediate)?;
            for (sweep, began) in due {
                any |= self.execute(
                    "DELETE FROM digests WHERE tier IN (0, 1) AND span IN (
                         SELECT id FROM spans WHERE fabric = ?1 AND last = ?2)",
                    params![fabric, sweep],
                )?;
                any |= self.execute(
                    "DELETE FROM spans WHERE fabric = ?1 AND last = ?2",
                    params![fabric, sweep],
                )?;
                any |= self.execute(
                    &format!(
                        "DELETE FROM frames WHERE tier IN (0, 1, 2, 4, 5, 6, 7) AND fabric = ?1
                         AND began = ?2 AND {NOT_NEEDED}"
                    ),
                    params![fabric, began],
                )?;
                any |= self.execute(
                    &format!(
                        "DELETE FROM sweeps WHERE id = ?2 AND (id <= {LAST_WHOLE} OR NOT EXISTS (
                             SELECT 1 FROM frames WHERE tier = 3 AND fabric = ?1))"
                    ),
                    params![fabric, sweep],
                )?;
            }
            self.drop_gone(fabric)?;
            transaction.commit()?;
        }
        Ok(any)
    }

    /// Drops when cables and nodes were there that were gone before the oldest sweep that is kept.
    fn drop_gone(&self, fabric: i64) -> rusqlite::Result<()> {
        let Some(oldest) = oldest(&self.db, fabric)? else { return Ok(()) };
        self.execute(
            "DELETE FROM cables WHERE until <= ?1 AND until IS NOT NULL AND EXISTS (
                 SELECT 1 FROM links JOIN ports ON ports.id = low
                 JOIN nodes ON nodes.id = node
                 WHERE links.id = link AND nodes.fabric = ?2)",
            [oldest, fabric],
        )?;
        self.execute(
            "DELETE FROM presences WHERE until <= ?1 AND until IS NOT NULL
             AND (SELECT fabric FROM nodes WHERE nodes.id = node) = ?2",
            [oldest, fabric],
        )?;
        Ok(())
    }

    pub(super) fn fabrics(&self) -> rusqlite::Result<Vec<i64>> {
        let mut fabrics = self.db.prepare_cached("SELECT id FROM fabrics")?;
        fabrics.query_map([], |row| row.get(0))?.collect()
    }

    fn drop_events(&self, before: Option<i64>) -> rusqlite::Result<bool> {
        let oldest = match before {
            Some(_) => "at < ?1 ORDER BY at".to_owned(),
            None => format!(
                "?1 IS NULL AND id <= (SELECT max(id) FROM events) - {LEAST_EVENTS} ORDER BY id"
            ),
        };
        self.execute(
            &format!(
                "DELETE FROM events WHERE id IN (
                     SELECT id FROM events WHERE {oldest} LIMIT {EVENTS_AT_ONCE})"
            ),
            [before],
        )
    }

    /// How many bytes of the file are in use.
    fn used(&self) -> rusqlite::Result<u64> {
        let of = |name| self.db.pragma_query_value(None, name, |row| row.get::<_, i64>(0));
        let pages = of("page_count")? - of("freelist_count")?;
        Ok(pages.saturating_mul(of("page_size")?).unsigned_abs())
    }

    /// How many bytes the file has on its disk, with its write-ahead log.
    pub fn bytes(&self) -> u64 {
        let length = |path: &Path| std::fs::metadata(path).map_or(0, |data| data.len());
        length(&self.path) + length(&with_suffix(&self.path, "-wal"))
    }

    /// An error if so little of the disk is free that it has to be left alone; takes down what is free.
    pub fn ensure_room(&self, least: u64, account: &RecorderStats) -> Result<(), HistoryError> {
        let free = free(&self.path)?;
        account.set_free(free);
        if free < least {
            Err(HistoryError::Full { path: self.path.clone(), free, least })
        } else {
            Ok(())
        }
    }
}
