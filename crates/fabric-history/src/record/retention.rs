//! Drops old data, so that the file stays within its budget.
//!
//! By age, each kind of data has a retention time of its own. Only a little is dropped at a time, and only
//! when the time of day can be trusted: a wrongly set clock must not delete the history.
//!
//! By size, the order is:
//! 1. each sweep's traffic, except the last hour's;
//! 2. each hour's traffic, except the last three days';
//! 3. the rest of both;
//! 4. errors and states, with the sweeps themselves;
//! 5. events.
//!
//! A dropped sweep takes everything that is left of it along. So a file that is too small for everything
//! still has the traffic of the last hour by sweep, and that of some days by hour. What is needed to
//! reconstruct totals stays, as do the latest errors and events, even where these exceed the budget.
//!
//! SQLite restarts its write-ahead log only while no reader uses it. With overlapping readers that never
//! happens, and each write makes the log longer: it is truncated here.

use std::path::Path;
use std::time::{Duration, SystemTime};

use rusqlite::{Result, Transaction, TransactionBehavior, params};

use crate::file::connection::BUSY;
use crate::file::paths::{ensure_free, free, with_suffix};
use crate::file::record_kind::RecordKind::{
    AllTotals, ErrorDeltas, ErrorTotals, FirstTotals, NodeChanges, NodeStates, PortChanges,
    PortStates, TrafficDeltas,
};
use crate::file::sql::FABRIC_OF_LINK;
use crate::record::store::Store;
use crate::record::unreferenced::oldest;
use crate::settings::HistorySettings;
use crate::{HistoryError, micros_of};
use fabric_observation::RecorderMetrics;

/// Sweeps whose traffic is dropped at a time: of 60,000 ports 1.5 MB each.
const SWEEPS_AT_ONCE: u32 = 16;

/// Hours whose traffic is dropped at a time: of 60,000 ports 3 MB each.
const HOURS_AT_ONCE: u32 = 8;

/// Sweeps whose errors and states are dropped at a time: as many as are digested together.
const SWEEP_ROWS_AT_ONCE: u32 = 256;

const EVENTS_AT_ONCE: u32 = 1_000;

/// Sweeps' errors, and events, that are kept whatever the budget: where totals alone need more than that
/// (50 MB on 60,000 ports), dropping these as well would not help.
const MIN_SWEEPS: u32 = 240;
const MIN_EVENTS: u32 = 1_000;

/// Pages that are given back to the disk after a sweep: 8 MiB, more than a sweep takes.
const PAGES_AT_ONCE: u32 = 2_048;

/// How often something is dropped after a sweep, at most: the next sweep may be waiting.
const MAX_ROUNDS: u32 = 16;

/// Age up to which each sweep's traffic is preferred to hourly traffic.
const KEEP_SWEEP_TRAFFIC: Duration = Duration::from_secs(3600);

/// Age up to which hourly traffic is preferred to the last hour's traffic by sweep.
const KEEP_HOURLY_TRAFFIC: Duration = Duration::from_secs(3 * 24 * 3600);

/// How many former places of cables and modules are kept.
const MAX_FORMER_MODULES: u32 = 100_000;

/// Frames that are not needed to reconstruct totals: those before the latest totals of their fabric. Without
/// any, no counter was ever read, and there is nothing to reconstruct.
fn not_needed() -> String {
    format!(
        "id < coalesce((SELECT min(id) FROM frames AS whole
             WHERE whole.fabric = frames.fabric AND tier = {AllTotals}), 9223372036854775807)"
    )
}

/// The sweep of a fabric's latest totals.
pub(super) fn last_totals() -> String {
    format!(
        "(SELECT max(id) FROM sweeps WHERE fabric = ?1 AND began = (
             SELECT began FROM frames WHERE tier = {AllTotals} AND fabric = ?1))"
    )
}

impl Store {
    /// Digests what is due, drops some of what is too old if `now` is known, and the oldest data while the
    /// file is too large.
    pub fn prune(
        &self,
        settings: &HistorySettings,
        now: Option<SystemTime>,
    ) -> Result<(), HistoryError> {
        let failed = |doing| HistoryError::database(&self.path, doing);
        self.digest().map_err(failed("compact an hour"))?;
        self.prune_all(settings, now).map_err(failed("delete expired data"))?;
        self.truncate_log().map_err(failed("truncate the write-ahead log"))
    }

    fn prune_all(&self, settings: &HistorySettings, now: Option<SystemTime>) -> Result<()> {
        let before = |age: Duration| now.and_then(|now| now.checked_sub(age)).map_or(0, micros_of);
        let (traffic, rare) = (before(settings.traffic_retention), before(settings.retention));
        self.drop_sweep_traffic(traffic, false)?;
        self.drop_hourly_traffic(rare)?;
        self.drop_sweeps(Some(rare), traffic)?;
        self.drop_events(Some(rare))?;
        self.drop_former_modules(rare)?;
        let all = i64::MAX;
        for _ in 0..MAX_ROUNDS {
            let is_dropped = self.used_bytes()? > settings.size
                && (self.drop_sweep_traffic(before(KEEP_SWEEP_TRAFFIC), true)?
                    || self.drop_hourly_traffic(before(KEEP_HOURLY_TRAFFIC))?
                    || self.drop_sweep_traffic(all, false)?
                    || self.drop_hourly_traffic(all)?
                    || self.drop_sweeps(None, all)?
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

    /// Drops some sweeps' traffic from before a time; returns whether there was any. With `is_digested`, only
    /// where its hour is digested: what is dropped earlier is in no sum. What was written first is dropped
    /// first, whatever its time: sweeps recorded by a clock that was years ahead must not outlive all others.
    fn drop_sweep_traffic(&self, before: i64, is_digested: bool) -> Result<bool> {
        let digested = "(SELECT coalesce(max(began) + 1, 0) FROM spans WHERE fabric = ?1)";
        let before_of = if is_digested { format!("min(?2, {digested})") } else { "?2".into() };
        // All parts of a sweep at once: readers rely on that.
        let sql = format!(
            "DELETE FROM frames WHERE tier = {TrafficDeltas} AND fabric = ?1 AND {}
                 AND began IN (SELECT began FROM frames
                     WHERE tier = {TrafficDeltas} AND fabric = ?1 AND began < {before_of}
                     GROUP BY began ORDER BY min(id) LIMIT {SWEEPS_AT_ONCE})",
            not_needed()
        );
        let mut any = false;
        for (fabric, _) in self.sql().fabrics()? {
            any |= self.sql().execute(&sql, [fabric, before])?;
        }
        Ok(any)
    }

    /// Drops the traffic of some hours from before a time; returns whether there was any.
    fn drop_hourly_traffic(&self, before: i64) -> Result<bool> {
        let sql = format!(
            "DELETE FROM digests WHERE tier = {TrafficDeltas} AND span IN (
                 SELECT id FROM spans WHERE ended < ?1
                 AND EXISTS (SELECT 1 FROM digests WHERE tier = {TrafficDeltas} AND span = spans.id)
                 ORDER BY id LIMIT {HOURS_AT_ONCE})"
        );
        self.sql().execute(&sql, [before])
    }

    /// Drops errors, states and sweeps from before a time, or those that were written first. Sweeps whose
    /// traffic is due as well (before `traffic`) are dropped after it, so that no more of them is dropped at
    /// a time than [`SWEEPS_AT_ONCE`]: an operator should notice a wrong clock in time.
    fn drop_sweeps(&self, before: Option<i64>, traffic: i64) -> Result<bool> {
        let oldest = match before {
            Some(_) => format!(
                "fabric = ?1 AND began < ?2 AND NOT EXISTS (
                    SELECT 1 FROM frames WHERE tier = {TrafficDeltas} AND frames.fabric = ?1
                    AND frames.began = sweeps.began AND frames.began < ?3) ORDER BY began"
            ),
            None => format!(
                "+fabric = ?1 AND ?2 IS NULL AND ?3 IS NOT NULL
                 AND id <= (SELECT max(id) FROM sweeps) - {MIN_SWEEPS} ORDER BY id"
            ),
        };
        let sql = format!("SELECT id, began FROM sweeps WHERE {oldest} LIMIT {SWEEP_ROWS_AT_ONCE}");
        let mut any = false;
        for (fabric, _) in self.sql().fabrics()? {
            let due: Vec<(i64, i64)> = self.sql().rows(&sql, params![fabric, before, traffic])?;
            if due.is_empty() {
                continue;
            }
            // A reader sees all of a sweep or nothing.
            let transaction = Transaction::new_unchecked(&self.db, TransactionBehavior::Immediate)?;
            for (sweep, began) in due {
                any |= self.drop_sweep(fabric, sweep, began)?;
            }
            self.drop_ended_intervals(fabric)?;
            transaction.commit()?;
        }
        Ok(any)
    }

    fn drop_sweep(&self, fabric: i64, sweep: i64, began: i64) -> Result<bool> {
        let frames = format!(
            "DELETE FROM frames WHERE tier IN ({ErrorDeltas}, {TrafficDeltas}, {FirstTotals},
                 {PortChanges}, {PortStates}, {NodeChanges}, {NodeStates}, {ErrorTotals})
             AND fabric = ?1 AND began = ?2 AND {}",
            not_needed()
        );
        let sweeps = format!(
            "DELETE FROM sweeps WHERE id = ?2 AND (id <= {} OR NOT EXISTS (
                 SELECT 1 FROM frames WHERE tier = {AllTotals} AND fabric = ?1))",
            last_totals()
        );
        let digests = format!(
            "DELETE FROM digests WHERE tier IN ({ErrorDeltas}, {TrafficDeltas}) AND span IN (
                 SELECT id FROM spans WHERE fabric = ?1 AND last = ?2)"
        );
        let spans = "DELETE FROM spans WHERE fabric = ?1 AND last = ?2";
        let mut any = false;
        for (sql, id) in [(&*digests, sweep), (spans, sweep), (&frames, began), (&sweeps, sweep)] {
            any |= self.sql().execute(sql, [fabric, id])?;
        }
        Ok(any)
    }

    /// Drops the intervals of cables and nodes that ended before the oldest sweep that is kept.
    fn drop_ended_intervals(&self, fabric: i64) -> Result<()> {
        let Some(oldest) = oldest(&self.db, fabric)? else { return Ok(()) };
        let cables = format!(
            "DELETE FROM cables WHERE until <= ?1 AND until IS NOT NULL AND EXISTS (
                 SELECT 1 FROM links {FABRIC_OF_LINK} = ?2 AND links.id = link)"
        );
        let nodes = "DELETE FROM presences WHERE until <= ?1 AND until IS NOT NULL
             AND (SELECT fabric FROM nodes WHERE nodes.id = node) = ?2";
        self.sql().execute(&cables, [oldest, fabric])?;
        self.sql().execute(nodes, [oldest, fabric])?;
        Ok(())
    }

    /// Drops the former places of cables from before a time, and the oldest ones if there are too many: a device may
    /// report another serial number each time.
    fn drop_former_modules(&self, before: i64) -> Result<()> {
        let sql = format!(
            "DELETE FROM modules WHERE until IS NOT NULL AND until < max(?1, coalesce(
                 (SELECT until FROM modules WHERE until IS NOT NULL
                  ORDER BY until DESC LIMIT 1 OFFSET {MAX_FORMER_MODULES}), 0))"
        );
        self.sql().execute(&sql, [before / 1_000_000]).map(drop)
    }

    /// Drops events from before a time, or those that were written first.
    fn drop_events(&self, before: Option<i64>) -> Result<bool> {
        let oldest = match before {
            Some(_) => "at < ?1 ORDER BY at".to_owned(),
            None => format!(
                "?1 IS NULL AND id <= (SELECT max(id) FROM events) - {MIN_EVENTS} ORDER BY id"
            ),
        };
        let sql = format!(
            "DELETE FROM events WHERE id IN (
                 SELECT id FROM events WHERE {oldest} LIMIT {EVENTS_AT_ONCE})"
        );
        self.sql().execute(&sql, [before])
    }

    /// Bytes of the file that are in use.
    fn used_bytes(&self) -> Result<u64> {
        let pragma = |name| self.db.pragma_query_value(None, name, |row| row.get::<_, i64>(0));
        let pages = pragma("page_count")? - pragma("freelist_count")?;
        Ok(pages.saturating_mul(pragma("page_size")?).unsigned_abs())
    }

    /// Bytes of the file and of its write-ahead log on the disk.
    pub fn bytes(&self) -> u64 {
        length(&self.path) + length(&with_suffix(&self.path, "-wal"))
    }

    /// An error if less than `least` bytes of the disk are free. Sets the metric of free bytes.
    pub fn ensure_free_space(
        &self,
        least: u64,
        metrics: &RecorderMetrics,
    ) -> Result<(), HistoryError> {
        let free = free(&self.path)?;
        metrics.update(|it| it.free = Some(free));
        ensure_free(&self.path, free, least)
    }

    /// Truncates the log if it is long. If a reader takes longer than [`READER_TIMEOUT`], it is tried again
    /// when the log has grown by as much again.
    fn truncate_log(&self) -> Result<()> {
        let log = with_suffix(&self.path, "-wal");
        if length(&log) < self.log_left.get().saturating_add(MAX_BYTES) {
            return Ok(());
        }
        self.db.busy_timeout(READER_TIMEOUT)?;
        let truncated = self.db.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_| Ok(()));
        self.db.busy_timeout(BUSY)?;
        self.log_left.set(length(&log));
        truncated
    }
}

/// Bytes of a file; 0 if there is none.
fn length(path: &Path) -> u64 {
    std::fs::metadata(path).map_or(0, |data| data.len())
}

/// A longer log is truncated; the first sweep of 60,000 ports writes this much.
const MAX_BYTES: u64 = 32 << 20;

/// How long to wait for the present readers: later ones read from the file.
const READER_TIMEOUT: Duration = Duration::from_secs(2);

#[cfg(test)]
mod tests {
    use std::path::Path;
    use std::sync::atomic::{AtomicBool, Ordering};
    use std::sync::mpsc;

    use rusqlite::Connection;

    use super::*;

    const BEGIN: &str = "BEGIN; SELECT count(*) FROM blobs;";

    /// Reads all the time: the next reader begins before the last one has ended.
    fn read(file: &Path, begun: &mpsc::Sender<()>, is_over: &AtomicBool) {
        let readers = [(); 2].map(|()| Connection::open(file).unwrap());
        readers[0].execute_batch(BEGIN).unwrap();
        begun.send(()).unwrap();
        while !is_over.load(Ordering::Relaxed) {
            for (next, last) in [(1, 0), (0, 1)] {
                readers[next].execute_batch(BEGIN).unwrap();
                readers[last].execute_batch("END").unwrap();
            }
        }
    }

    #[test]
    fn log_stays_bounded_under_overlapping_readers() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("history.db");
        let store = Store::open(&file).unwrap();
        store.db.execute_batch("CREATE TABLE blobs (data BLOB)").unwrap();
        let is_over = AtomicBool::new(false);
        let (begun, is_begun) = mpsc::channel();
        let most = std::thread::scope(|scope| {
            scope.spawn(|| read(&file, &begun, &is_over));
            is_begun.recv().unwrap();
            let mut most = 0;
            for _ in 0..30 {
                store.db.execute("INSERT INTO blobs VALUES (zeroblob(4194304))", []).unwrap();
                most = most.max(std::fs::metadata(with_suffix(&file, "-wal")).unwrap().len());
                store.truncate_log().unwrap();
            }
            is_over.store(true, Ordering::Relaxed);
            most
        });
        assert!(most < 2 * MAX_BYTES, "{most}");
    }
}
