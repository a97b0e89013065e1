//! The tables of the file.
//!
//! Times are microseconds since 1970. GUIDs are 64 bits, so that half of them are negative here.

use std::collections::{BTreeSet, HashSet};

use rusqlite::Connection;

/// The application id in the header of a history: "fabx".
pub(crate) const APPLICATION: i32 = 0x6661_6278;

/// Its offset in the header, in network order (sqlite.org/fileformat2.html, 1.3).
pub(crate) const APPLICATION_AT: std::ops::Range<usize> = 68..72;

/// The `user_version` of a file with these tables. Version 1 was never released, and is not read.
pub(crate) const VERSION: i64 = 2;

const TABLES: &str = "
    CREATE TABLE fabrics (id INTEGER PRIMARY KEY, name TEXT NOT NULL UNIQUE);
    CREATE TABLE counters (id INTEGER PRIMARY KEY, name TEXT NOT NULL UNIQUE);
    CREATE TABLE nodes (
        id INTEGER PRIMARY KEY, fabric INTEGER NOT NULL, guid INTEGER NOT NULL, kind TEXT NOT NULL,
        UNIQUE (fabric, guid));
    -- The names of a node, and from when on it had each.
    CREATE TABLE names (
        node INTEGER NOT NULL, since INTEGER NOT NULL, name TEXT NOT NULL,
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
";

/// The version of a file; 0 of an empty one.
pub(crate) fn version(db: &Connection) -> rusqlite::Result<i64> {
    db.pragma_query_value(None, "user_version", |row| row.get(0))
}

/// Makes the tables of an empty file, in one transaction.
pub(crate) fn create(db: &mut Connection) -> rusqlite::Result<()> {
    if version(db)? == VERSION {
        return Ok(());
    }
    let transaction = db.transaction()?;
    transaction.execute_batch(TABLES)?;
    transaction.pragma_update(None, "application_id", APPLICATION)?;
    transaction.pragma_update(None, "user_version", VERSION)?;
    transaction.commit()
}

/// A file without rows, in memory.
fn sample() -> rusqlite::Result<Connection> {
    let db = Connection::open_in_memory()?;
    db.execute_batch(TABLES)?;
    Ok(db)
}

/// A table's column.
pub(crate) type SchemaColumn = (String, String);

/// The columns that a history must have; it may have more, and other tables.
pub(crate) fn required_columns() -> rusqlite::Result<BTreeSet<SchemaColumn>> {
    columns(&sample()?)
}

/// The lines of SQLite's check about a row that violates our schema. A column that we
/// allow to be NULL may have been made NOT NULL by an operator.
pub(crate) fn faults() -> rusqlite::Result<HashSet<String>> {
    let db = sample()?;
    let mut statement = db.prepare(
        "SELECT tables.name, columns.name, \"notnull\" FROM sqlite_schema AS tables
         JOIN pragma_table_info(tables.name) AS columns WHERE tables.type = 'table'",
    )?;
    let mut faults = HashSet::new();
    let mut rows = statement.query([])?;
    while let Some(row) = rows.next()? {
        let (table, column): (String, String) = (row.get(0)?, row.get(1)?);
        faults.insert(format!("NUMERIC value in {table}.{column}"));
        faults.insert(format!("TEXT value in {table}.{column}"));
        if row.get(2)? {
            faults.insert(format!("NULL value in {table}.{column}"));
        }
        faults.insert(format!("row not in PRIMARY KEY order for {table}"));
    }
    Ok(faults)
}

/// The columns that a file has.
pub(crate) fn columns(db: &Connection) -> rusqlite::Result<BTreeSet<SchemaColumn>> {
    let mut statement = db.prepare(
        "SELECT tables.name, columns.name FROM sqlite_schema AS tables
         JOIN pragma_table_info(tables.name) AS columns WHERE tables.type = 'table'",
    )?;
    statement.query_map([], |row| Ok((row.get(0)?, row.get(1)?)))?.collect()
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
