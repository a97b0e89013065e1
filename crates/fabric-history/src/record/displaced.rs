//! What another program does to the file while it is recorded to: SQLite has it open, and writes on whatever its name
//! is, so that all would be lost at the end.

use std::os::unix::fs::MetadataExt;
use std::time::Duration;

use crate::HistoryError;
use crate::error::Displaced;
use crate::file::damaged::{length, rename_log_aside};
use crate::file::paths::with_suffix;
use crate::record::store::Store;

impl Store {
    /// Remembers how long the file is: after this only another program makes it shorter.
    pub(super) fn note_length(&self) {
        self.length.set(self.file.metadata().map_or(0, |about| about.len()));
    }

    /// What another program did to the file since the last write, if SQLite cannot have noticed it: it has the file
    /// open, and writes on whatever its name is.
    pub(super) fn displaced(&self) -> Option<Displaced> {
        match std::fs::metadata(&self.path) {
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => Some(Displaced::Removed),
            Ok(found) if (found.dev(), found.ino()) != self.identity => Some(Displaced::Replaced),
            Ok(found) if found.len() < self.length.get() && !self.is_vacuumed(found.len()) => {
                Some(Displaced::Truncated)
            }
            // The next write has a better error than that of the query.
            Ok(_) | Err(_) => None,
        }
    }

    /// Whether a shorter file has all its pages: an operator's VACUUM makes it shorter, too.
    fn is_vacuumed(&self, length: u64) -> bool {
        let pragma = |name| self.db.pragma_query_value(None, name, |row| row.get::<_, u32>(0));
        let pages = pragma("page_count").and_then(|count| Ok((count, pragma("page_size")?)));
        pages.is_ok_and(|(count, size)| count > 0 && length >= u64::from(count) * u64::from(size))
    }

    /// Closes a file that has lost its name. What the log has is moved into it, in case it was renamed; and what is
    /// left beside the name must not be taken for the files of a new one.
    pub(super) fn leave(self, displaced: Displaced) -> Result<(), HistoryError> {
        let path = self.path.clone();
        // Readers of it may hold the log. Nothing waits for them.
        let _ = self.db.busy_timeout(Duration::ZERO);
        let moved = self.db.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |row| row.get(0));
        let is_moved = moved == Ok(0);
        self.close_without_checkpoint();
        if displaced == Displaced::Replaced && !is_moved && length(&path, "-wal")? > 0 {
            rename_log_aside(&path)?;
        }
        // It has no data. SQLite would truncate it, although readers in this process may have it mapped.
        let _ = std::fs::remove_file(with_suffix(&path, "-shm"));
        Ok(())
    }
}
