//! Bounds the length of SQLite's write-ahead log.
//!
//! SQLite restarts the log only while no reader uses it. With overlapping readers that never happens, and
//! each write makes the log longer.

use std::time::Duration;

use crate::file::{BUSY, with_suffix};

use super::store::Store;

/// A longer log is truncated; the first sweep of 60,000 ports writes this much.
const MAX_BYTES: u64 = 32 << 20;

/// How long to wait for the present readers: later ones read from the file.
const READER_TIMEOUT: Duration = Duration::from_secs(2);

impl Store {
    /// Truncates the log if it is long. If a reader takes longer than [`READER_TIMEOUT`], it is tried again
    /// when the log has grown by as much again.
    pub(super) fn truncate_log(&self) -> rusqlite::Result<()> {
        let log = with_suffix(&self.path, "-wal");
        let length = || std::fs::metadata(&log).map_or(0, |data| data.len());
        let before = length();
        if before < self.log_left.get().saturating_add(MAX_BYTES) {
            return Ok(());
        }
        self.db.busy_timeout(READER_TIMEOUT)?;
        let truncated = self.db.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_| Ok(()));
        self.db.busy_timeout(BUSY)?;
        self.log_left.set(length());
        truncated
    }
}

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
