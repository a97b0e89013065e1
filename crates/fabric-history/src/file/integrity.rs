//! Whether SQLite finds a file damaged.
//!
//! SQLite checks a whole file only when something about it is odd (see `Recorder`), and never at the start:
//! reading 10 GB takes 10 s of a processor where they are in memory, and 5 minutes from a slow disk
//! (measured: `PRAGMA quick_check` of 0.6 GB, 0.6 s and 19 s). A killed process causes no damage:
//! the write-ahead log is complete or ignored; pages are checked as they are read.

use std::collections::HashSet;
use std::path::Path;

use rusqlite::{Connection, OpenFlags, Result};

use crate::HistoryError;
use crate::file::connection::BUSY;
use crate::file::paths::ensure_regular;
use crate::file::schema::{columns, sample};
use crate::file::tables::is_ours;

/// How many faults SQLite lists: an operator's table may have one in each of its rows. This many about pages
/// are 6 MB of text.
const MOST_FAULTS: u32 = 100_000;

/// The last line of SQLite's check when it cannot read on.
const MALFORMED: &str = "database disk image is malformed";

/// After this many steps (pages, or instructions) a check asks whether it is to end: pages of a slow disk take
/// up to a second.
const STEPS: i32 = 100;

/// The lines of SQLite's check about a row that violates our schema. A column that we
/// allow to be NULL may have been made NOT NULL by an operator.
fn faults() -> Result<HashSet<String>> {
    let mut faults = HashSet::new();
    for (table, column, is_required) in columns(&sample()?)? {
        faults.extend(["NUMERIC", "TEXT"].map(|of| format!("{of} value in {table}.{column}")));
        if is_required {
            faults.insert(format!("NULL value in {table}.{column}"));
        }
        faults.insert(format!("row not in PRIMARY KEY order for {table}"));
    }
    Ok(faults)
}

/// What SQLite finds wrong with a file, if anything is: it reads all of it, and changes nothing. An error
/// if `is_over` says so before the end.
pub(crate) fn fault(
    path: &Path,
    is_over: impl FnMut() -> bool + Send + 'static,
) -> Result<Option<String>, HistoryError> {
    ensure_regular(path)?;
    // A connection that may write would checkpoint the log into the file when it is closed.
    let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let check = || {
        let mut db = Connection::open_with_flags(path, flags)?;
        db.busy_timeout(BUSY)?;
        db.progress_handler(STEPS, Some(is_over))?;
        let faults = faults()?;
        let mut check = db.prepare(&format!("PRAGMA integrity_check({MOST_FAULTS})"))?;
        let mut lines = check.query([])?;
        while let Some(line) = lines.next()? {
            let line: String = line.get(0)?;
            if is_fault(&line, &faults) {
                return Ok(Some(line.lines().take(2).collect::<Vec<_>>().join(" ")));
            }
        }
        Ok(None)
    };
    match check().map_err(HistoryError::database(path, "check the file")) {
        Err(error) if error.is_damage() => Ok(Some(error.to_string())),
        other => other,
    }
}

/// Whether a line of SQLite's check is about damage to the file's pages, or to our tables or indexes. All
/// else is about what an operator added: indexes, columns, constraints, tables, virtual tables.
fn is_fault(line: &str, faults: &HashSet<String>) -> bool {
    // Faults of pages come first, all in one row (sqlite3.c, PragTyp_INTEGRITY_CHECK).
    let is_structure = line.starts_with("*** in database main ***") || line == MALFORMED;
    let index = line.rsplit_once(" index ").map(|(_, name)| name);
    is_structure || index.is_some_and(is_ours) || faults.contains(line)
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;

    use super::*;

    #[test]
    fn faults_of_additions_are_ignored() {
        let faults = faults().unwrap();
        for (line, wanted) in [
            ("ok", false),
            ("NULL value in events.ticket", false),
            ("NULL value in events.port", false),
            ("NULL value in events.at", true),
            ("NUMERIC value in tickets.number", false),
            ("NUMERIC value in events.place", true),
            ("TEXT value in tickets.id", false),
            ("TEXT value in nodes.guid", true),
            ("non-INTEGER value in tickets.id", false),
            ("CHECK constraint failed in events", false),
            ("row not in PRIMARY KEY order for tickets", false),
            ("row not in PRIMARY KEY order for names", true),
            ("malformed inverted index for FTS5 table main.search", false),
            ("In RTree main.places: Node 1 is too small for cell count of 7", false),
            ("unable to validate the inverted index for FTS4 table main.search: no", false),
            ("index tickets_by_cost stores an imprecise floating-point value for row 7", false),
            ("row 7 missing from index tickets_by_event", false),
            ("row 7 missing from index events_by_time", true),
            ("row 7 values differ from index events_by_time", true),
            ("wrong # of entries in index sqlite_autoindex_nodes_1", true),
            ("wrong # of entries in index sqlite_autoindex_tickets_1", false),
            (
                "*** in database main ***\nTree 5 page 7: btreeInitPage() returns error code 11",
                true,
            ),
            ("*** in database main ***\nPage 9: never used", true),
            ("database disk image is malformed", true),
        ] {
            assert_eq!(is_fault(line, &faults), wanted, "{line}");
        }
    }

    /// A history with what an operator added; its path.
    fn added(folder: &Path, sql: &str) -> PathBuf {
        let file = folder.join("history.db");
        drop(crate::record::store::Store::open(&file).unwrap());
        Connection::open(&file).unwrap().execute_batch(sql).unwrap();
        file
    }

    /// Lines about what an operator added do not hide those about our own tables.
    #[test]
    fn fault_is_found_behind_4000_lines_about_additions() {
        let folder = tempfile::tempdir().unwrap();
        let tables = ["aaa", "mmm", "tickets", "zzz"].map(|table| {
            format!(
                "CREATE TABLE {table} (number INTEGER CHECK (number < 0));
                 WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 1000)
                 INSERT INTO {table} SELECT i FROM n;"
            )
        });
        let lines = format!("PRAGMA ignore_check_constraints = ON; {}", tables.concat());
        let file = added(folder.path(), &lines);
        assert_eq!(fault(&file, || false).unwrap(), None);
        // A name that is no text.
        for sql in [
            "PRAGMA writable_schema = ON;
             UPDATE sqlite_schema SET sql = replace(sql, 'place TEXT', 'place BLOB') WHERE name = 'events'",
            "INSERT INTO events (at, fabric, kind, place, text) VALUES (1, 1, '', 7, '');
             PRAGMA writable_schema = ON;
             UPDATE sqlite_schema SET sql = replace(sql, 'place BLOB', 'place TEXT') WHERE name = 'events'",
        ] {
            Connection::open(&file).unwrap().execute_batch(sql).unwrap();
        }
        let found = fault(&file, || false).unwrap();
        assert_eq!(found.as_deref(), Some("NUMERIC value in events.place"));
    }

    #[test]
    fn check_can_be_interrupted() {
        let folder = tempfile::tempdir().unwrap();
        let file = added(folder.path(), "");
        // The check has begun when it asks for the second time.
        let mut asked = 0;
        let is_over = move || {
            asked += 1;
            asked > 1
        };
        let asked = fault(&file, is_over);
        let Err(HistoryError::Database(_, _, error)) = asked else { panic!("{asked:?}") };
        assert_eq!(error.sqlite_error_code(), Some(rusqlite::ErrorCode::OperationInterrupted));
    }

    /// The check must not change a file that may be damaged.
    #[test]
    fn check_does_not_change_the_log() {
        let folder = tempfile::tempdir().unwrap();
        let file = added(folder.path(), "");
        let db = Connection::open(&file).unwrap();
        db.set_db_config(rusqlite::config::DbConfig::SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, true)
            .unwrap();
        db.execute_batch("INSERT INTO fabrics VALUES (1, 'a')").unwrap();
        drop(db);
        let read = || {
            ["", "-wal"]
                .map(|it| std::fs::read(crate::file::paths::with_suffix(&file, it)).unwrap())
        };
        let before = read();
        assert!(!before[1].is_empty());
        assert_eq!(fault(&file, || false).unwrap(), None);
        assert!(read() == before);
    }
}
