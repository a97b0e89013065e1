//! The file's tables, and how older files become newer ones.

use rusqlite::Connection;

/// Says in the file's header that it is ours: "fabx".
pub(in crate::history) const APPLICATION: i32 = 0x6661_6278;

/// Where that stands in the header, in network order (sqlite.org/fileformat2.html, 1.3).
pub(in crate::history) const APPLICATION_AT: std::ops::Range<usize> = 68..72;

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
];

/// The version that this program writes.
pub(in crate::history) const VERSION: i64 = 1;

const _: () = assert!(STEPS.len() == VERSION.unsigned_abs() as usize);

/// The version of a file; 0 of one in which nothing is.
pub(in crate::history) fn version(db: &Connection) -> rusqlite::Result<i64> {
    db.pragma_query_value(None, "user_version", |row| row.get(0))
}

/// Brings a file to this version, in one step or not at all.
pub(in crate::history) fn migrate(db: &mut Connection) -> rusqlite::Result<()> {
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
