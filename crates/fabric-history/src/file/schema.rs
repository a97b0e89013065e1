//! Whether a file has our tables, and can be read or written.
//!
//! Additions of others to a file are ignored: statistics (`ANALYZE`), indexes, views, triggers, columns, the
//! tables of replicators. A file has to have our tables and columns, and nothing else is required.

use std::collections::HashSet;
use std::path::Path;

use rusqlite::{Connection, Result};

use crate::HistoryError;
use crate::file::sql::Sql;
use crate::file::tables::{APPLICATION, OLD_VERSION, TABLES, VERSION, is_history};

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
pub(super) fn sample() -> Result<Connection> {
    let db = Connection::open_in_memory()?;
    db.execute_batch(TABLES)?;
    Ok(db)
}

/// The columns of a file's tables in order: table, column, and whether it is NOT NULL.
pub(super) fn columns(db: &Connection) -> Result<Vec<(String, String, bool)>> {
    let sql = "SELECT tables.name, columns.name, \"notnull\" FROM sqlite_schema AS tables
         JOIN pragma_table_info(tables.name) AS columns WHERE tables.type = 'table' ORDER BY 1, 2";
    Sql(db).rows(sql, [])
}

/// The first bytes of a file of SQLite.
const MAGIC: &[u8] = b"SQLite format 3\0";

/// Where the header says which versions of SQLite may write it and read it. One that may only be read
/// looks like a file without permission to write (sqlite.org/fileformat2.html, 1.3.3).
const VERSIONS_AT: std::ops::Range<usize> = 18..20;

/// The highest supported version: the write-ahead log.
const LAST_VERSION: u8 = 2;

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
