//! The file's tables, and how older files become newer ones.

use std::collections::{BTreeSet, HashSet};

use rusqlite::Connection;

/// Says in the file's header that it is ours: "fabx".
pub(crate) const APPLICATION: i32 = 0x6661_6278;

/// Where that stands in the header, in network order (sqlite.org/fileformat2.html, 1.3).
pub(crate) const APPLICATION_AT: std::ops::Range<usize> = 68..72;

/// What makes a file of each version from one of the version before. A version that was released is
/// never changed: what is to be different is one more step.
const STEPS: &[&str] = &[
    // Times are microseconds since 1970; GUIDs are 64 bits, so that half of them are negative here.
    "
    CREATE TABLE fabrics (id INTEGER PRIMARY KEY, name TEXT NOT NULL UNIQUE);
    CREATE TABLE counters (id INTEGER PRIMARY KEY, name TEXT NOT NULL UNIQUE);
    CREATE TABLE nodes (
        id INTEGER PRIMARY KEY, fabric INTEGER NOT NULL, guid INTEGER NOT NULL, kind TEXT NOT NULL,
        UNIQUE (fabric, guid));
    -- What people called a node, from when on.
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
    -- What counters grew by; of tiers 2 and 3 what they came to.
    CREATE TABLE frames (
        id INTEGER PRIMARY KEY, fabric INTEGER NOT NULL, tier INTEGER NOT NULL,
        began INTEGER NOT NULL, ended INTEGER NOT NULL, data BLOB NOT NULL);
    CREATE INDEX frames_by_tier ON frames (tier, ended);
    -- What counters had counted before they fell last.
    CREATE TABLE befores (
        port INTEGER NOT NULL, counter INTEGER NOT NULL, count INTEGER NOT NULL,
        PRIMARY KEY (port, counter)) WITHOUT ROWID;
    ",
    "
    -- Sweeps that were recorded; `since` is when the one before was begun, if there was one.
    CREATE TABLE sweeps (
        id INTEGER PRIMARY KEY, fabric INTEGER NOT NULL,
        since INTEGER, began INTEGER NOT NULL, ended INTEGER NOT NULL);
    CREATE INDEX sweeps_by_time ON sweeps (fabric, began, since);
    INSERT INTO sweeps (fabric, since, began, ended)
        SELECT fabric, lag(began) OVER (PARTITION BY fabric ORDER BY began), began, ended
        FROM (SELECT fabric, began, max(ended) AS ended FROM frames GROUP BY fabric, began)
        ORDER BY began;
    -- Frames of tiers 1 to 3 are in parts by the ports' numbers; what version 1 wrote is of all ports,
    -- and has none.
    ALTER TABLE frames ADD COLUMN part INTEGER;
    DROP INDEX frames_by_tier;
    CREATE INDEX frames_by_part ON frames (tier, part, began);
    CREATE INDEX frames_by_time ON frames (tier, fabric, began);
    -- Sweeps whose frames are digested: when the first and the last were begun, when that ended, which
    -- was the first with traffic, how many they are, and the last one's id.
    CREATE TABLE spans (
        id INTEGER PRIMARY KEY, fabric INTEGER NOT NULL, first INTEGER NOT NULL,
        began INTEGER NOT NULL, ended INTEGER NOT NULL, traffic INTEGER,
        sweeps INTEGER NOT NULL, last INTEGER NOT NULL);
    -- What a part's ports counted in them: of tier 0 each reading, of tier 1 one sum a counter. Times
    -- are told from when the span's first sweep was begun.
    CREATE TABLE digests (
        id INTEGER PRIMARY KEY, span INTEGER NOT NULL, tier INTEGER NOT NULL, part INTEGER NOT NULL,
        data BLOB NOT NULL);
    CREATE UNIQUE INDEX digests_by_part ON digests (tier, part, span);
    CREATE INDEX digests_by_span ON digests (tier, span);
    -- From when to when a cable, and a node, was there: those that still are have no end. Of a cable
    -- version 1 knew no more than what happened to it.
    CREATE TABLE cables (
        id INTEGER PRIMARY KEY, link INTEGER NOT NULL, since INTEGER NOT NULL, until INTEGER);
    CREATE INDEX cables_by_link ON cables (link);
    CREATE INDEX cables_by_end ON cables (until) WHERE until IS NOT NULL;
    CREATE TABLE presences (
        id INTEGER PRIMARY KEY, node INTEGER NOT NULL, since INTEGER NOT NULL, until INTEGER);
    CREATE INDEX presences_by_node ON presences (node);
    CREATE INDEX presences_by_end ON presences (until) WHERE until IS NOT NULL;
    INSERT INTO cables (link, since)
        SELECT link, min(at) FROM events WHERE link IS NOT NULL GROUP BY link;
    ",
];

/// What a file of version 1 lacks, beside it while it is read: who reads may not write.
const BESIDE_1: &str = "
    CREATE TEMP TABLE sweeps AS
        SELECT fabric, lag(began) OVER (PARTITION BY fabric ORDER BY began) AS since, began, ended
        FROM (SELECT fabric, began, max(ended) AS ended FROM main.frames GROUP BY fabric, began)
        ORDER BY began;
    CREATE INDEX temp.sweeps_by_time ON sweeps (fabric, began, since);
    CREATE TEMP VIEW frames AS SELECT *, NULL AS part FROM main.frames;
    CREATE TEMP TABLE spans (id, fabric, first, began, ended, traffic, sweeps, last);
    CREATE TEMP TABLE digests (id, span, tier, part, data);
    CREATE TEMP TABLE presences (id, node, since, until);
    CREATE TEMP TABLE cables AS
        SELECT link AS id, link, min(at) AS since, NULL AS until FROM main.events
        WHERE link IS NOT NULL GROUP BY link;
";

/// The version that this program writes.
pub(crate) const VERSION: i64 = 2;

const _: () = assert!(STEPS.len() == VERSION.unsigned_abs() as usize);

/// The version of a file; 0 of one in which nothing is.
pub(crate) fn version(db: &Connection) -> rusqlite::Result<i64> {
    db.pragma_query_value(None, "user_version", |row| row.get(0))
}

/// Brings a file to this version, in one step or not at all.
pub(crate) fn migrate(db: &mut Connection) -> rusqlite::Result<()> {
    let from = version(db)?;
    let steps = STEPS.iter().skip(usize::try_from(from).unwrap_or(0));
    if from >= VERSION {
        return Ok(());
    }
    let transaction = db.transaction()?;
    for step in steps {
        transaction.execute_batch(step)?;
    }
    transaction.pragma_update(None, "application_id", APPLICATION)?;
    transaction.pragma_update(None, "user_version", VERSION)?;
    transaction.commit()
}

/// A table's column.
pub(crate) type Column = (String, String);

/// The columns that a file of a version must have; it may have more, and other tables.
pub(crate) fn wanted(version: i64) -> rusqlite::Result<BTreeSet<Column>> {
    let db = Connection::open_in_memory()?;
    for step in STEPS.iter().take(usize::try_from(version).unwrap_or(0)) {
        db.execute_batch(step)?;
    }
    columns(&db)
}

/// The lines of SQLite's check about a row of ours that is not as we declared it. A column that we
/// let be NULL may be forbidden to be by an operator.
pub(crate) fn faults() -> rusqlite::Result<HashSet<String>> {
    let db = Connection::open_in_memory()?;
    for step in STEPS {
        db.execute_batch(step)?;
    }
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
pub(crate) fn columns(db: &Connection) -> rusqlite::Result<BTreeSet<Column>> {
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
    STEPS.iter().any(|step| step.split(|char| !is_word(char)).any(|word| word == name))
}

/// Whether SQLite cannot read what another program added to a file, such as a table with a feature of a
/// later SQLite. It calls that corrupt, too: `malformed database schema (NAME) - ...`.
pub(crate) fn is_about_additions(error: &rusqlite::Error) -> bool {
    let rusqlite::Error::SqliteFailure(_, Some(message)) = error else { return false };
    let named = message.strip_prefix("malformed database schema (");
    let named = named.and_then(|rest| rest.split_once(')'));
    named.is_some_and(|(name, _)| !is_ours(name))
}

/// Lets a file of an older version be read as if it were of this one.
pub(crate) fn look_beside(db: &Connection) -> rusqlite::Result<()> {
    if version(db)? == 1 { db.execute_batch(BESIDE_1) } else { Ok(()) }
}
