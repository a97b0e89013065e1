//! SQLite's write-ahead log, kept from growing for ever while somebody reads.
//!
//! It is begun anew when nobody reads from it. Where each question is asked before the one before is
//! answered, that never is so, and what is written only makes it longer.

use std::time::Duration;

use crate::file::{BUSY, with_suffix};

use super::store::Store;

/// A log that is longer is waited for; what a first sweep of 60,000 ports writes is as long.
const MOST_BYTES: u64 = 32 << 20;

/// How long those are waited for who read at the moment: whoever asks next reads what is in the file.
const PATIENCE: Duration = Duration::from_secs(2);

impl Store {
    /// Begins the log anew if it is long. Who reads for longer than is waited for is left alone until it
    /// has grown by as much again.
    pub(super) fn bound_log(&self) -> rusqlite::Result<()> {
        let log = with_suffix(&self.path, "-wal");
        let length = || std::fs::metadata(&log).map_or(0, |data| data.len());
        let before = length();
        if before < self.log_left.get().saturating_add(MOST_BYTES) {
            return Ok(());
        }
        self.db.busy_timeout(PATIENCE)?;
        let tried = self.db.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_| Ok(()));
        self.db.busy_timeout(BUSY)?;
        self.log_left.set(length());
        tried
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

    /// Reads all the time: who asks next begins before who asked before has ended.
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
    fn a_log_that_is_always_read_stays_bounded() {
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
                store.bound_log().unwrap();
            }
            is_over.store(true, Ordering::Relaxed);
            most
        });
        assert!(most < 2 * MOST_BYTES, "{most}");
    }
}
