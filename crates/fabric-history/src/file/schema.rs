//! The tables of the file, whether a file has them and can be written, and whether SQLite finds it damaged.
//!
//! Times are microseconds since 1970. GUIDs are 64 bits, so that half of them are negative here.
//!
//! Additions of others to a file are ignored: statistics (`ANALYZE`), indexes, views, triggers, columns, the
//! tables of replicators. A file has to have our tables and columns, and nothing else is required.
//!
//! SQLite checks a whole file only when something about it is odd (see `Recorder`), and never at the start:
//! reading 10 GB takes 10 s of a processor where they are in memory, and 5 minutes from a slow disk
//! (measured: `PRAGMA quick_check` of 0.6 GB, 0.6 s and 19 s). A killed process causes no damage:
//! the write-ahead log is complete or ignored; pages are checked as they are read.

use std::collections::HashSet;
use std::path::Path;

use rusqlite::{Connection, OpenFlags, Result};

use crate::HistoryError;
use crate::file::sql::Sql;
use crate::file::{BUSY, ensure_regular};

/// The application id in the header of a history: "fabx".
pub(crate) const APPLICATION: i32 = 0x6661_6278;

/// Its offset in the header, in network order (sqlite.org/fileformat2.html, 1.3).
pub(crate) const APPLICATION_AT: std::ops::Range<usize> = 68..72;

/// The `user_version` of a file with these tables. Versions 1 and 2 are not read.
pub(crate) const VERSION: i64 = 4;

/// The version before, which has no hosts of nodes.
const OLD_VERSION: i64 = 3;

const TABLES: &str = "
    CREATE TABLE fabrics (id INTEGER PRIMARY KEY, name TEXT NOT NULL UNIQUE);
    CREATE TABLE counters (id INTEGER PRIMARY KEY, name TEXT NOT NULL UNIQUE);
    CREATE TABLE nodes (
        id INTEGER PRIMARY KEY, fabric INTEGER NOT NULL, guid INTEGER NOT NULL, kind TEXT NOT NULL,
        UNIQUE (fabric, guid));
    -- The names of a node and of its host, and from when on it had each.
    CREATE TABLE names (
        node INTEGER NOT NULL, since INTEGER NOT NULL, name TEXT NOT NULL, host TEXT,
        PRIMARY KEY (node, since)) WITHOUT ROWID;
    CREATE INDEX names_by_name ON names (name);
    CREATE TABLE ports (
        id INTEGER PRIMARY KEY, node INTEGER NOT NULL, number INTEGER NOT NULL,
        UNIQUE (node, number));
    CREATE TABLE links (
        id INTEGER PRIMARY KEY, low INTEGER NOT NULL, high INTEGER NOT NULL, UNIQUE (low, high));
    CREATE INDEX links_by_high ON links (high);
    CREATE TABLE events (
        id INTEGER PRIMARY KEY, at INTEGER NOT NULL, fabric INTEGER NOT NULL, kind TEXT NOT NULL,
        node INTEGER, port INTEGER, link INTEGER,
        place TEXT NOT NULL, text TEXT NOT NULL, detail TEXT);
    CREATE INDEX events_by_time ON events (at);
    -- What counters had counted before they fell last.
    CREATE TABLE befores (
        port INTEGER NOT NULL, counter INTEGER NOT NULL, count INTEGER NOT NULL,
        PRIMARY KEY (port, counter)) WITHOUT ROWID;
    -- Sweeps that were recorded; `since` is when the one before was begun, if there was one.
    CREATE TABLE sweeps (
        id INTEGER PRIMARY KEY, fabric INTEGER NOT NULL,
        since INTEGER, began INTEGER NOT NULL, ended INTEGER NOT NULL);
    CREATE INDEX sweeps_by_time ON sweeps (fabric, began, since);
    -- A sweep's records; `tier` is a RecordKind. Those of tiers 1 to 3 are in parts by the ports' numbers.
    CREATE TABLE frames (
        id INTEGER PRIMARY KEY, fabric INTEGER NOT NULL, tier INTEGER NOT NULL,
        part INTEGER, began INTEGER NOT NULL, ended INTEGER NOT NULL, data BLOB NOT NULL);
    CREATE INDEX frames_by_part ON frames (tier, part, began);
    CREATE INDEX frames_by_time ON frames (tier, fabric, began);
    -- Sweeps whose frames are digested: when the first and the last were begun, when that ended, which
    -- was the first with traffic, how many they are, and the last one's id.
    CREATE TABLE spans (
        id INTEGER PRIMARY KEY, fabric INTEGER NOT NULL, first INTEGER NOT NULL,
        began INTEGER NOT NULL, ended INTEGER NOT NULL, traffic INTEGER,
        sweeps INTEGER NOT NULL, last INTEGER NOT NULL);
    -- What a part's ports counted in them: of tier 0 each reading, of tier 1 one sum a counter. Times
    -- are relative to when the span's first sweep was begun.
    CREATE TABLE digests (
        id INTEGER PRIMARY KEY, span INTEGER NOT NULL, tier INTEGER NOT NULL, part INTEGER NOT NULL,
        data BLOB NOT NULL);
    CREATE UNIQUE INDEX digests_by_part ON digests (tier, part, span);
    CREATE INDEX digests_by_span ON digests (tier, span);
    -- From when to when a cable, and a node, was there: those that still are have no end.
    CREATE TABLE cables (
        id INTEGER PRIMARY KEY, link INTEGER NOT NULL, since INTEGER NOT NULL, until INTEGER);
    CREATE INDEX cables_by_link ON cables (link);
    CREATE INDEX cables_by_end ON cables (until) WHERE until IS NOT NULL;
    CREATE TABLE presences (
        id INTEGER PRIMARY KEY, node INTEGER NOT NULL, since INTEGER NOT NULL, until INTEGER);
    CREATE INDEX presences_by_node ON presences (node);
    CREATE INDEX presences_by_end ON presences (until) WHERE until IS NOT NULL;
    -- In which ports cables and modules were seen, by serial number: those that still are there have no end.
    CREATE TABLE modules (
        fabric INTEGER NOT NULL, guid INTEGER NOT NULL, port INTEGER NOT NULL, serial TEXT NOT NULL,
        until INTEGER, PRIMARY KEY (fabric, guid, port, serial)) WITHOUT ROWID;
    CREATE INDEX modules_by_end ON modules (until) WHERE until IS NOT NULL;
";

/// The table that only a copy has: the period that was copied.
pub(crate) const COPIED: &str =
    "CREATE TABLE copied (since INTEGER NOT NULL, until INTEGER NOT NULL)";

/// The version of a file; 0 of an empty one.
pub(crate) fn version(db: &Connection) -> Result<i64> {
    db.pragma_query_value(None, "user_version", |row| row.get(0))
}

/// Makes the tables of an empty file, in one transaction.
pub(crate) fn create(db: &mut Connection) -> Result<()> {
    if version(db)? == VERSION {
        return Ok(());
    }
    let transaction = db.transaction()?;
    transaction.execute_batch(TABLES)?;
    transaction.pragma_update(None, "application_id", APPLICATION)?;
    transaction.pragma_update(None, "user_version", VERSION)?;
    transaction.commit()
}

/// Upgrades a file of the version before, before it is written.
pub(crate) fn upgrade(db: &mut Connection, header: &[u8]) -> Result<()> {
    if !is_history(header) || version(db)? != OLD_VERSION {
        return Ok(());
    }
    let transaction = db.transaction()?;
    transaction.execute_batch("ALTER TABLE names ADD COLUMN host TEXT")?;
    transaction.pragma_update(None, "user_version", VERSION)?;
    transaction.commit()
}

/// A file without rows, in memory.
fn sample() -> Result<Connection> {
    let db = Connection::open_in_memory()?;
    db.execute_batch(TABLES)?;
    Ok(db)
}

/// The columns of a file's tables in order: table, column, and whether it is NOT NULL.
fn columns(db: &Connection) -> Result<Vec<(String, String, bool)>> {
    let sql = "SELECT tables.name, columns.name, \"notnull\" FROM sqlite_schema AS tables
         JOIN pragma_table_info(tables.name) AS columns WHERE tables.type = 'table' ORDER BY 1, 2";
    Sql(db).rows(sql, [])
}

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

/// Whether a table or an index is one of ours, by its name.
pub(crate) fn is_ours(name: &str) -> bool {
    let of_table = name.strip_prefix("sqlite_autoindex_").and_then(|rest| rest.rsplit_once('_'));
    let name = of_table.map_or(name, |(table, _)| table);
    let is_word = |char: char| char.is_ascii_alphanumeric() || char == '_';
    TABLES.split(|char| !is_word(char)).any(|word| word == name)
}

/// Whether SQLite cannot read what another program added to a file, such as a table with a feature of a
/// later SQLite. It calls that corrupt, too: `malformed database schema (NAME) - ...`.
pub(crate) fn is_about_additions(error: &rusqlite::Error) -> bool {
    let rusqlite::Error::SqliteFailure(_, Some(message)) = error else { return false };
    let named = message.strip_prefix("malformed database schema (");
    let named = named.and_then(|rest| rest.split_once(')'));
    named.is_some_and(|(name, _)| !is_ours(name))
}

/// The first bytes of a file of SQLite.
const MAGIC: &[u8] = b"SQLite format 3\0";

/// Where the header says which versions of SQLite may write it and read it. One that may only be read
/// looks like a file without permission to write (sqlite.org/fileformat2.html, 1.3.3).
const VERSIONS_AT: std::ops::Range<usize> = 18..20;

/// The highest supported version: the write-ahead log.
const LAST_VERSION: u8 = 2;

/// How many faults SQLite lists: an operator's table may have one in each of its rows. This many about pages
/// are 6 MB of text.
const MOST_FAULTS: u32 = 100_000;

/// The last line of SQLite's check when it cannot read on.
const MALFORMED: &str = "database disk image is malformed";

/// After this many steps (pages, or instructions) a check asks whether it is to end: pages of a slow disk take
/// up to a second.
const STEPS: i32 = 100;

/// Whether a header marks the file as a history, or there is none yet.
pub(crate) fn is_history(header: &[u8]) -> bool {
    header.is_empty() || header.get(APPLICATION_AT) == Some(&APPLICATION.to_be_bytes())
}

/// An error if a header requires a later SQLite than ours.
pub(crate) fn ensure_format(path: &Path, header: &[u8]) -> Result<(), HistoryError> {
    let versions = header.get(VERSIONS_AT).unwrap_or_default();
    if header.starts_with(MAGIC) && versions.iter().any(|version| *version > LAST_VERSION) {
        let what =
            format!("its header requires a newer SQLite (file format versions {versions:?})");
        return Err(unusable(path, &what));
    }
    Ok(())
}

/// An error if a file has another version than this program reads and writes.
pub(crate) fn ensure_version(path: &Path, version: i64) -> Result<(), HistoryError> {
    let what = match version {
        VERSION => return Ok(()),
        newer if newer > VERSION => {
            "which this fabric-exporter does not support: use a newer fabric-exporter, or another \
             file"
        }
        OLD_VERSION => {
            "of an earlier fabric-exporter: \"fabric-exporter serve\" upgrades it when it records \
             to it"
        }
        _ => {
            let what = "which no released fabric-exporter writes";
            return Err(unusable(path, &format!("has format version {version}, {what}")));
        }
    };
    Err(HistoryError::Unusable(path.into(), format!("has format version {version}, {what}")))
}

/// An error if a file is neither empty nor a complete history of our version.
pub(crate) fn ensure_usable(db: &Connection, path: &Path) -> Result<(), HistoryError> {
    let failed = HistoryError::database(path, "open the file");
    let version = version(db).map_err(failed)?;
    let found = columns(db).map_err(failed)?;
    if version == 0 {
        let is_empty = found.iter().all(|(table, ..)| table.starts_with("sqlite_"));
        return if is_empty { Ok(()) } else { Err(HistoryError::foreign(path)) };
    }
    ensure_version(path, version)?;
    // It may have more columns, and other tables.
    let found: HashSet<_> = found.iter().map(|(table, column, _)| (table, column)).collect();
    let required = sample().and_then(|db| columns(&db)).map_err(failed)?;
    match required.iter().find(|(table, column, _)| !found.contains(&(table, column))) {
        None => Ok(()),
        Some((table, column, _)) => Err(unusable(
            path,
            &format!("has no column {table}.{column}, which format version {version} requires"),
        )),
    }
}

fn unusable(path: &Path, what: &str) -> HistoryError {
    HistoryError::Unusable(
        path.into(),
        format!("{what}; the file is left unchanged: use another file"),
    )
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
        let read =
            || ["", "-wal"].map(|it| std::fs::read(crate::file::with_suffix(&file, it)).unwrap());
        let before = read();
        assert!(!before[1].is_empty());
        assert_eq!(fault(&file, || false).unwrap(), None);
        assert!(read() == before);
    }

    #[test]
    fn unreadable_foreign_table_is_not_damage() {
        for (name, wanted) in [("tickets", true), ("events", false), ("events_by_time", false)] {
            let message = format!("malformed database schema ({name}) - near \"STRICTER\"");
            let code = rusqlite::ffi::Error::new(rusqlite::ffi::SQLITE_CORRUPT);
            let error = rusqlite::Error::SqliteFailure(code, Some(message));
            assert_eq!(is_about_additions(&error), wanted, "{name}");
        }
    }
}
