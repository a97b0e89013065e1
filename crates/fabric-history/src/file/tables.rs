//! The tables of the file.
//!
//! Times are microseconds since 1970. GUIDs are 64 bits, so that half of them are negative here.

/// The application id in the header of a history: "fabx".
pub(crate) const APPLICATION: i32 = 0x6661_6278;

/// Its offset in the header, in network order (sqlite.org/fileformat2.html, 1.3).
pub(crate) const APPLICATION_AT: std::ops::Range<usize> = 68..72;

/// The `user_version` of a file with these tables. Versions 1 and 2 are not read.
pub(crate) const VERSION: i64 = 4;

/// The version before, which has no hosts of nodes.
pub(crate) const OLD_VERSION: i64 = 3;

pub(crate) const TABLES: &str = "
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
    -- Reset offsets: what counters had counted before they fell last.
    CREATE TABLE befores (
        port INTEGER NOT NULL, counter INTEGER NOT NULL, count INTEGER NOT NULL,
        PRIMARY KEY (port, counter)) WITHOUT ROWID;
    -- Sweeps that were recorded; `since` is when the one before was begun, if there was one.
    CREATE TABLE sweeps (
        id INTEGER PRIMARY KEY, fabric INTEGER NOT NULL,
        since INTEGER, began INTEGER NOT NULL, ended INTEGER NOT NULL);
    CREATE INDEX sweeps_by_time ON sweeps (fabric, began, since);
    -- A sweep's records; `tier` is a RecordKind. Those of tiers 1 to 3 and 8 are in parts by the ports' numbers.
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

/// Whether a header marks the file as a history, or there is none yet.
pub(crate) fn is_history(header: &[u8]) -> bool {
    header.is_empty() || header.get(APPLICATION_AT) == Some(&APPLICATION.to_be_bytes())
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

#[cfg(test)]
mod tests {
    use super::*;

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
