//! Copies of a window, as a history in a separate file.
//!
//! A copy is read in one transaction, so that it is of one moment, and writers do not wait for it. Rows are
//! copied as they are: damaged ones stay damaged, and are counted as such. Digested hours are copied as a
//! whole. Totals are written as they were at the last sweep.
//!
//! A copy is written to a file with a random name, which is created and never replaces another one.
//! Nothing else in its folder is removed, written or renamed.

use std::fs::{File, Permissions};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use rusqlite::types::ToSqlOutput;
use rusqlite::{Connection, params, params_from_iter};
use tempfile::NamedTempFile;

use crate::HistoryError;
use crate::file::paths::{ensure_free, folder_of, free};
use crate::file::reader::Reader;
use crate::file::record_kind::RecordKind;
use crate::file::sql::{FABRIC_OF_LINK, Sql, marks};
use crate::file::timeline::{NODES, PORTS};
use crate::file::totals::{for_each_part, sweep_range, totals_at};
use crate::file::{schema, tables};
use crate::incidents::{LASTING, LOOK_BACK};
use crate::model::Window;

/// The tables of the catalog. They are copied completely: names take little space.
const CATALOG: [&str; 8] =
    ["fabrics", "counters", "nodes", "names", "ports", "links", "befores", "modules"];

/// Free space is checked each time this number of rows is copied: of 60,000 ports' traffic that is 6 MB.
const CHECK_EVERY: usize = 256;

/// How long after the last sweep there are events of the exporter itself, in microseconds.
const MARGIN: i64 = 10_000_000;

/// The prefix of files that are not complete yet.
const PREFIX: &str = ".fabric-exporter-copy-";

/// What was copied.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Dumped {
    /// How large the copy is.
    pub bytes: u64,
    /// How many sweeps are in it.
    pub sweeps: usize,
}

/// What to do with a file that has the name of the copy already.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Existing {
    /// The file is kept, and the copy fails.
    Keep,
    /// The copy replaces it.
    Replace,
}

/// A copy that is being written.
struct Copy<'a> {
    from: &'a Reader,
    to: Connection,
    /// The path in errors: of the copy, or of the folder of one without a name.
    place: &'a Path,
    /// Its path when it was created.
    empty: &'a Path,
    /// Bytes of its disk that must stay free.
    least_free: u64,
}

impl Existing {
    /// Renames a complete copy.
    pub fn give(self, written: NamedTempFile, name: &Path) -> Result<File, HistoryError> {
        let given = written.as_file().sync_all().and_then(|()| match self {
            Existing::Keep => Ok(written.persist_noclobber(name)?),
            Existing::Replace => Ok(written.persist(name)?),
        });
        given.map_err(unmade(name))
    }
}

impl Reader {
    /// Copies a window into a file, and leaves `least_free` bytes of its disk free.
    pub fn dump(
        &self,
        window: Window,
        file: &Path,
        existing: Existing,
        least_free: u64,
    ) -> Result<Dumped, HistoryError> {
        let temporary = temporary_beside(file)?;
        let empty = (temporary.as_file(), temporary.path());
        let dumped = self.copy(window, empty, file, least_free, || Ok(()))?;
        existing.give(temporary, file)?;
        Ok(dumped)
    }

    /// Copies a window into a file without a name, in the folder of the history. The name is removed as
    /// soon as SQLite has the file open: a process that is killed while it writes leaves nothing behind.
    pub fn dump_unnamed(
        &self,
        window: Window,
        least_free: u64,
    ) -> Result<(Dumped, File), HistoryError> {
        let folder = folder_of(&self.path);
        let temporary = temporary_beside(&self.path)?;
        let path = temporary.path().to_owned();
        let (file, name) = temporary.into_parts();
        let dumped = self.copy(window, (&file, &path), folder, least_free, || name.close())?;
        Ok((dumped, file))
    }

    /// Copies a window into an empty file. `opened` is called once SQLite has it open.
    fn copy(
        &self,
        window: Window,
        (file, empty): (&File, &Path),
        place: &Path,
        least_free: u64,
        opened: impl FnOnce() -> std::io::Result<()>,
    ) -> Result<Dumped, HistoryError> {
        let to = Connection::open(empty);
        opened().map_err(unmade(place))?;
        let unwritten = HistoryError::database(place, WRITE);
        let to = to.and_then(begun).map_err(unwritten)?;
        let copy = Copy { from: self, to, place, empty, least_free };
        copy.ensure_room()?;
        let dumped = self.in_one_transaction(|| copy.all(window))?;
        copy.to.execute_batch("COMMIT").map_err(unwritten)?;
        copy.to.close().map_err(|(_, error)| unwritten(error))?;
        let bytes = file.metadata().map_err(unmade(place))?.len();
        Ok(Dumped { bytes, ..dumped })
    }
}

/// An empty file with a random name in the folder of another one. It is created, never opened over an
/// existing file, and removed when it is dropped.
pub fn temporary_beside(file: &Path) -> Result<NamedTempFile, HistoryError> {
    let mut builder = tempfile::Builder::new();
    // The usual mode: the umask restricts it.
    builder.prefix(PREFIX).permissions(Permissions::from_mode(0o666));
    builder.tempfile_in(folder_of(file)).map_err(unmade(file))
}

/// Makes an empty file a history, in a transaction that stays open.
fn begun(mut db: Connection) -> rusqlite::Result<Connection> {
    // It has no reader before it is complete, and an incomplete one is discarded. With a journal SQLite would
    // refuse to write a file whose name is removed (SQLITE_READONLY_DBMOVED).
    db.pragma_update(None, "journal_mode", "OFF")?;
    db.pragma_update(None, "synchronous", "OFF")?;
    // It must be set before the first table is created.
    db.pragma_update(None, "auto_vacuum", "INCREMENTAL")?;
    schema::create(&mut db)?;
    db.execute_batch("BEGIN")?;
    Ok(db)
}

/// What fails in errors.
const WRITE: &str = "write the copy";

fn unmade(place: &Path) -> impl Fn(std::io::Error) -> HistoryError {
    HistoryError::io(place, WRITE)
}

impl Copy<'_> {
    fn all(&self, window: Window) -> Result<Dumped, HistoryError> {
        let (sql, unread) = (self.from.sql(), self.from.failed());
        let mut dumped = Dumped::default();
        for table in CATALOG {
            self.rows(table, "", &[])?;
        }
        let (from, to) = window.micros();
        self.rows("events", "WHERE at BETWEEN ?1 AND ?2", &[from, to])?;
        // Since when something is down or bad, as reports on the original tell it.
        let kinds = LASTING.map(|kind| format!("'{}'", kind.label())).join(", ");
        let lasting = format!("WHERE at >= ?1 AND at < ?2 AND kind IN ({kinds})");
        let look_back = i64::try_from(LOOK_BACK.as_micros()).unwrap_or(i64::MAX);
        self.rows("events", &lasting, &[from.saturating_sub(look_back), from])?;
        self.note_window(window)?;
        let mut reached = Vec::new();
        for (fabric, _) in sql.fabrics().map_err(unread)? {
            if let Some(range) = sweep_range(sql, fabric, window).map_err(unread)? {
                dumped.sweeps += self.fabric(fabric, *range.start(), *range.end())?;
                reached.push((fabric, *range.end()));
            }
        }
        // Totals get ids after those of all frames that are copied with their own.
        for (fabric, last) in reached {
            self.totals(fabric, last)?;
        }
        Ok(dumped)
    }

    /// Writes which period was copied: whole hours are more, and reports are on the period by default.
    fn note_window(&self, window: Window) -> Result<(), HistoryError> {
        let last = self.from.sql().last_ended().map_err(self.from.failed())?;
        let (from, to) = window.micros();
        // The exporter's stop is recorded after the last sweep.
        let known = last.map_or(to, |last| last.saturating_add(MARGIN)).min(to).max(from);
        let sql = Sql(&self.to);
        let written = sql.execute(tables::COPIED, params![]).and_then(|_| {
            sql.execute("INSERT INTO copied (since, until) VALUES (?1, ?2)", params![from, known])
        });
        written.map(drop).map_err(HistoryError::database(self.place, WRITE))
    }

    /// Copies a fabric's sweeps, counters and states; returns how many sweeps.
    fn fabric(&self, fabric: i64, first: i64, last: i64) -> Result<usize, HistoryError> {
        use RecordKind::{ErrorDeltas, ErrorTotals, FirstTotals, TrafficDeltas};
        let counted = format!(
            "WHERE tier IN ({ErrorDeltas}, {TrafficDeltas}, {FirstTotals}, {ErrorTotals})
             AND fabric = ?1 AND began BETWEEN ?2 AND ?3"
        );
        // The states of the first sweep are computed from the latest complete ones before it.
        let states = |[complete, changes]: [RecordKind; 2]| {
            format!(
                "WHERE tier IN ({complete}, {changes}) AND fabric = ?1 AND began <= ?3
                 AND began >= coalesce((SELECT max(began) FROM frames
                     WHERE tier = {complete} AND fabric = ?1 AND began <= ?2), ?2)"
            )
        };
        let hours = "WHERE fabric = ?1 AND began >= ?2 AND first <= ?3";
        let there = "WHERE since <= ?3 AND (until IS NULL OR until > ?2)";
        let of = [fabric, first, last];
        for (table, which) in [
            ("frames", counted),
            ("frames", states(PORTS)),
            ("frames", states(NODES)),
            ("spans", hours.to_owned()),
            ("digests", format!("WHERE span IN (SELECT id FROM spans {hours})")),
            (
                "cables",
                format!("{there} AND link IN (SELECT links.id FROM links {FABRIC_OF_LINK} = ?1)"),
            ),
            ("presences", format!("{there} AND node IN (SELECT id FROM nodes WHERE fabric = ?1)")),
        ] {
            self.rows(table, &which, &of)?;
        }
        self.rows("sweeps", "WHERE fabric = ?1 AND began BETWEEN ?2 AND ?3", &of)
    }

    /// Writes all totals as they were, after all other frames, so that totals continue from there.
    fn totals(&self, fabric: i64, last: i64) -> Result<(), HistoryError> {
        let ids = &self.from.counter_ids;
        let table = totals_at(self.from.sql(), ids, fabric, last).map_err(self.from.failed())?;
        for_each_part(&table, fabric, ids, &|_| true, |part, frame| {
            if frame.is_empty() {
                return Ok(());
            }
            let packed =
                frame.pack().map_err(HistoryError::io(self.place, "compress the totals"))?;
            let written = Sql(&self.to).execute(
                "INSERT INTO frames (id, fabric, tier, part, began, ended, data)
                 SELECT coalesce(max(id), 0) + 1, ?1, ?2, ?3, ?4, ?4, ?5 FROM frames",
                params![fabric, RecordKind::AllTotals, part, last, packed],
            );
            written.map(drop).map_err(HistoryError::database(self.place, WRITE))
        })
    }

    /// Copies rows of a table as they are: the columns that a history has.
    fn rows(&self, table: &str, which: &str, values: &[i64]) -> Result<usize, HistoryError> {
        let (unread, unwritten) = (self.from.failed(), HistoryError::database(self.place, WRITE));
        let columns = "SELECT group_concat(name, ', ') FROM pragma_table_info(?1)";
        let columns: Option<String> = Sql(&self.to).value(columns, [table]).map_err(unwritten)?;
        let columns = columns.unwrap_or_default();
        let select = format!("SELECT {columns} FROM {table} {which}");
        let mut read = self.from.sql().0.prepare(&select).map_err(unread)?;
        let count = read.column_count();
        let marks = marks(count, "?");
        let insert = format!("INSERT INTO {table} ({columns}) VALUES ({marks})");
        let mut write = self.to.prepare_cached(&insert).map_err(unwritten)?;
        // Not every statement has all of the parameters.
        let values = values.iter().take(read.parameter_count());
        let mut rows = read.query(params_from_iter(values)).map_err(unread)?;
        let mut copied = 0;
        while let Some(row) = rows.next().map_err(unread)? {
            for at in 0..count {
                let value = ToSqlOutput::Borrowed(row.get_ref(at).map_err(unread)?);
                write.raw_bind_parameter(at + 1, value).map_err(unwritten)?;
            }
            write.raw_execute().map_err(unwritten)?;
            copied += 1;
            if copied % CHECK_EVERY == 0 {
                self.ensure_room()?;
            }
        }
        Ok(copied)
    }

    fn ensure_room(&self) -> Result<(), HistoryError> {
        ensure_free(self.place, free(self.empty)?, self.least_free)
    }
}
