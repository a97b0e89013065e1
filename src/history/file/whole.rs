//! Whether a file is as we make it, where SQLite would not say so but fail for ever, each time in a way
//! of its own: as if it could not be written, or had other tables.

use std::fs::File;
use std::io::Read;
use std::path::Path;

use rusqlite::Connection;

use super::super::HistoryError;
use super::schema;

/// Where the header says which versions of SQLite may write it and read it: from 3 on none that we know
/// may. One that may only be read looks like a file without permission to write
/// (sqlite.org/fileformat2.html, 1.3.3).
const VERSIONS_AT: std::ops::Range<usize> = 18..20;

/// More versions than there will ever be.
const MOST_VERSIONS: i64 = 10_000;

/// An error if a file's header has what nobody writes there. A file that is not there yet is well.
pub(in crate::history) fn ensure_header(path: &Path) -> Result<(), HistoryError> {
    let failed = |error| HistoryError::Io { path: path.into(), doing: "read it", error };
    let mut head = Vec::new();
    match File::open(path) {
        Ok(file) => file.take(100).read_to_end(&mut head).map_err(failed)?,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(()),
        Err(error) => return Err(failed(error)),
    };
    match head.get(VERSIONS_AT) {
        Some(versions) if versions.iter().any(|version| !(1..=2).contains(version)) => {
            Err(HistoryError::Damaged { path: path.into(), what: "its header makes no sense" })
        }
        _ => Ok(()),
    }
}

/// The version of a file whose tables are those of that version, or that has none yet.
pub(in crate::history) fn version(db: &Connection, path: &Path) -> Result<i64, HistoryError> {
    let failed = |error| HistoryError::Database { path: path.into(), doing: "open it", error };
    let damaged = |what| HistoryError::Damaged { path: path.into(), what };
    let version = schema::version(db).map_err(failed)?;
    if !(0..MOST_VERSIONS).contains(&version) {
        return Err(damaged("its version makes no sense"));
    }
    let ours = tables(&made()?).map_err(failed)?;
    let found = tables(db).map_err(failed)?;
    let is_whole = match version {
        0 => found.is_empty(),
        schema::VERSION => found == ours,
        // Each version has tables of its own.
        _ => found != ours,
    };
    if is_whole { Ok(version) } else { Err(damaged("its tables are not those of its version")) }
}

/// A new one, in memory.
fn made() -> Result<Connection, HistoryError> {
    let make = || {
        let mut db = Connection::open_in_memory()?;
        schema::migrate(&mut db).map(|()| db)
    };
    make().map_err(|error| HistoryError::Database {
        path: ":memory:".into(),
        doing: "make what it is compared to",
        error,
    })
}

/// What SQLite knows of a table or an index: its type, name, table and text.
type Known = (String, String, String, Option<String>);

fn tables(db: &Connection) -> rusqlite::Result<Vec<Known>> {
    let mut statement =
        db.prepare("SELECT type, name, tbl_name, sql FROM sqlite_schema ORDER BY type, name")?;
    let row = |row: &rusqlite::Row<'_>| Ok((row.get(0)?, row.get(1)?, row.get(2)?, row.get(3)?));
    statement.query_map([], row)?.collect()
}
