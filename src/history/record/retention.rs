//! What is dropped when, so that the file stays within its budget.
//!
//! By age each tier has a time of its own, and a few things at a time are dropped, when the time of day
//! has held for a while: a clock that was set wrong must not cost the history. By size the traffic goes first, the oldest before all, then
//! errors, then events. What totals are told from stays: it is of the latest sweeps.

use std::path::Path;
use std::time::{Duration, SystemTime};

use rusqlite::params;

use crate::config::HistorySettings;
use crate::history::file::tier::Tier;
use crate::history::file::with_suffix;
use crate::history::{HistoryError, micros_of};
use crate::monitor::Recording;

use super::store::Store;

/// How many frames are dropped at a time: of 60,000 ports some MB each.
const FRAMES_AT_ONCE: u32 = 16;

/// How many events are.
const EVENTS_AT_ONCE: u32 = 1_000;

/// How many pages are given back to the disk after a sweep: 8 MiB, more than a sweep takes.
const PAGES_AT_ONCE: u32 = 2_048;

/// How often something is dropped after a sweep, at most: the next one may be waiting.
const MOST_TURNS: u32 = 16;

/// What is newer than the latest whole totals of its fabric is needed to tell totals.
const NOT_NEEDED: &str =
    "id < (SELECT max(id) FROM frames AS whole WHERE whole.fabric = frames.fabric AND tier = 3)";

impl Store {
    /// Drops what is too old at a time, if that is known, and the oldest while there is too much.
    pub fn prune(
        &self,
        settings: &HistorySettings,
        now: Option<SystemTime>,
    ) -> Result<(), HistoryError> {
        self.prune_all(settings, now).map_err(|error| HistoryError::Database {
            path: self.path.clone(),
            doing: "drop what is old in it",
            error,
        })
    }

    fn prune_all(
        &self,
        settings: &HistorySettings,
        now: Option<SystemTime>,
    ) -> rusqlite::Result<()> {
        if let Some(now) = now {
            self.drop_aged(settings, now)?;
        }
        for _ in 0..MOST_TURNS {
            if self.used()? <= settings.size || !self.drop_oldest()? {
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

    /// A part of it, if there is much: whoever finds that the time is wrong is to find something.
    fn drop_aged(&self, settings: &HistorySettings, now: SystemTime) -> rusqlite::Result<()> {
        let before = |age: Duration| now.checked_sub(age).map_or(0, micros_of);
        for (tier, age) in [(Tier::Busy, settings.traffic_for), (Tier::Rare, settings.rare_for)] {
            let sql = format!(
                "DELETE FROM frames WHERE id IN (SELECT id FROM frames
                 WHERE tier = ?1 AND ended < ?2 AND {NOT_NEEDED}
                 ORDER BY ended LIMIT {FRAMES_AT_ONCE})"
            );
            self.db.prepare_cached(&sql)?.execute(params![tier as u8, before(age)])?;
        }
        let sql = format!(
            "DELETE FROM events WHERE id IN (SELECT id FROM events
             WHERE at < ?1 ORDER BY at LIMIT {EVENTS_AT_ONCE})"
        );
        self.db.prepare_cached(&sql)?.execute([before(settings.rare_for)])?;
        Ok(())
    }

    /// Tells whether there was anything to drop. What was written first is the oldest, whatever clocks
    /// said: times that were years ahead do not outlive what is true.
    fn drop_oldest(&self) -> rusqlite::Result<bool> {
        for tier in [Tier::Busy, Tier::Rare] {
            let sql = format!(
                "DELETE FROM frames WHERE id IN (SELECT id FROM frames
                 WHERE tier = ?1 AND {NOT_NEEDED} ORDER BY id LIMIT {FRAMES_AT_ONCE})"
            );
            if self.db.prepare_cached(&sql)?.execute([tier as u8])? > 0 {
                return Ok(true);
            }
        }
        let sql = format!(
            "DELETE FROM events WHERE id IN (SELECT id FROM events ORDER BY id LIMIT {EVENTS_AT_ONCE})"
        );
        Ok(self.db.prepare_cached(&sql)?.execute([])? > 0)
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
    pub fn ensure_room(&self, least: u64, account: &Recording) -> Result<(), HistoryError> {
        let path = || self.path.clone();
        let folder = self.path.parent().filter(|folder| !folder.as_os_str().is_empty());
        let disk = rustix::fs::statvfs(folder.unwrap_or(Path::new("."))).map_err(|error| {
            HistoryError::Io {
                path: path(),
                doing: "see what is free on its disk",
                error: error.into(),
            }
        })?;
        let free = disk.f_bavail.saturating_mul(disk.f_frsize);
        account.set_free(free);
        if free < least { Err(HistoryError::Full { path: path(), free, least }) } else { Ok(()) }
    }
}
