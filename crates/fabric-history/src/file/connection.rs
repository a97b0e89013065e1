//! Connections to a file: one that writes, and those that read.

use std::path::Path;
use std::time::Duration;

use rusqlite::{Connection, OpenFlags, Result};

use crate::file::paths::with_suffix;
use crate::file::schema;

/// How long a writer waits for another one: there should be none.
pub(crate) const BUSY: Duration = Duration::from_secs(5);

/// Sets up a connection that writes.
pub(crate) fn prepare(db: &mut Connection) -> Result<()> {
    db.busy_timeout(BUSY)?;
    // It has to be set before there is any table.
    db.pragma_update(None, "auto_vacuum", "INCREMENTAL")?;
    db.pragma_update(None, "journal_mode", "WAL")?;
    // A killed process loses nothing; a power failure loses at most the last sweeps.
    db.pragma_update(None, "synchronous", "NORMAL")?;
    db.pragma_update(None, "journal_size_limit", 4 << 20)?;
    db.set_prepared_statement_cache_capacity(64);
    Ok(())
}

/// Opens a file to read. If there is no writer, and we may not create the files beside it that SQLite needs,
/// it is read as immutable.
pub(super) fn open_to_read(path: &Path) -> Result<Connection> {
    let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let look = |db: Connection| {
        db.busy_timeout(BUSY)?;
        schema::version(&db).map(|_| db)
    };
    match Connection::open_with_flags(path, flags).and_then(look) {
        Err(error)
            if error.sqlite_error_code() == Some(rusqlite::ErrorCode::CannotOpen)
                && !with_suffix(path, "-wal").exists() =>
        {
            let name =
                path.to_string_lossy().replace('%', "%25").replace('?', "%3f").replace('#', "%23");
            let flags = flags | OpenFlags::SQLITE_OPEN_URI;
            Connection::open_with_flags(format!("file:{name}?immutable=1"), flags).and_then(look)
        }
        other => other,
    }
}
