//! A copy of a window in a file of its own: a history like any other, told from to wherever it is taken.
//!
//! It is read in one transaction, so that it is of one moment, and nobody who writes waits for it. Rows
//! are copied as they are, so that what is damaged stays so and is told of; hours that are digested are
//! copied whole. Totals are written as they were with the last sweep.
//!
//! A copy is written to a file with a random name, which is created and never opened over another one.
//! Nothing else in its folder is removed, written or renamed.

use std::fs::{File, Permissions};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use rusqlite::types::Value;
use rusqlite::{Connection, params, params_from_iter};
use tempfile::NamedTempFile;

use crate::model::Window;
use crate::{HistoryError, micros_of};

use super::frame::Frame;
use super::reader::Reader;
use super::stretch::Reach;
use super::tier::{Tier, part_of};
use super::{free, schema};

/// What stands in the catalog, which is copied whole: names take little room.
const CATALOG: [(&str, &str); 7] = [
    ("fabrics", "id, name"),
    ("counters", "id, name"),
    ("nodes", "id, fabric, guid, kind"),
    ("names", "node, since, name"),
    ("ports", "id, node, number"),
    ("links", "id, low, high"),
    ("befores", "port, counter, count"),
];

/// After so many rows it is looked whether there is room for more: of 60,000 ports' traffic that is 6 MB.
const LOOK_EVERY: usize = 256;

/// How the names of files begin that are written and not whole yet.
const PREFIX: &str = ".fabric-exporter-copy-";

/// What was copied.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Dumped {
    /// How large the copy is.
    pub bytes: u64,
    /// How many sweeps are in it.
    pub sweeps: usize,
    /// How many events.
    pub events: usize,
}

/// What becomes of a file that has the name of the copy already.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Existing {
    /// It stays, and the copy fails.
    Keep,
    /// The copy takes its place.
    Replace,
}

/// A copy in the making.
struct Copy<'a> {
    from: &'a Connection,
    source: &'a Path,
    to: Connection,
    /// What errors name: the file that the copy becomes, or the folder of one without a name.
    place: PathBuf,
    /// The name under which it was created.
    empty: PathBuf,
    /// So many bytes stay free.
    least_free: u64,
}

impl Existing {
    /// Gives a file that is written its name.
    pub fn give(self, written: NamedTempFile, name: &Path) -> Result<File, HistoryError> {
        let given = written.as_file().sync_all().and_then(|()| match self {
            Existing::Keep => Ok(written.persist_noclobber(name)?),
            Existing::Replace => Ok(written.persist(name)?),
        });
        given.map_err(unmade(name))
    }
}

impl Reader {
    /// Copies a window into a file. So many bytes of its disk stay free.
    pub fn dump(
        &self,
        window: Window,
        file: &Path,
        existing: Existing,
        least_free: u64,
    ) -> Result<Dumped, HistoryError> {
        let temporary = temporary_beside(file)?;
        let dumped = self.copy(window, temporary.path(), file, least_free, || Ok(()))?;
        let copy = existing.give(temporary, file)?;
        let bytes = copy.metadata().map_err(unmade(file))?.len();
        Ok(Dumped { bytes, ..dumped })
    }

    /// Copies a window into a file without a name, in the folder of the history. The name is removed as
    /// soon as SQLite has the file open: a process that is killed while it writes leaves nothing behind.
    pub fn dump_unnamed(
        &self,
        window: Window,
        least_free: u64,
    ) -> Result<(Dumped, File), HistoryError> {
        let folder = folder_of(self.path());
        let temporary = temporary_beside(self.path())?;
        let path = temporary.path().to_owned();
        let (file, name) = temporary.into_parts();
        let dumped = self.copy(window, &path, folder, least_free, || name.close())?;
        let bytes = file.metadata().map_err(unmade(folder))?.len();
        Ok((Dumped { bytes, ..dumped }, file))
    }

    /// Copies a window into an empty file. `opened` is called once SQLite has it open.
    fn copy(
        &self,
        window: Window,
        empty: &Path,
        place: &Path,
        least_free: u64,
        opened: impl FnOnce() -> std::io::Result<()>,
    ) -> Result<Dumped, HistoryError> {
        let to = Connection::open(empty);
        opened().map_err(unmade(place))?;
        let mut copy = Copy {
            from: &self.db,
            source: self.path(),
            to: to.and_then(begun).map_err(unwritten(place))?,
            place: place.into(),
            empty: empty.into(),
            least_free,
        };
        copy.ensure_room()?;
        let dumped = self.at_once(|| copy.all(self, window))?;
        copy.to.execute_batch("COMMIT").map_err(unwritten(place))?;
        copy.to.close().map_err(|(_, error)| unwritten(place)(error))?;
        Ok(dumped)
    }
}

/// An empty file with a random name in the folder of another one. It is created, and never opened over a
/// file that is there; it is removed when it is dropped.
pub fn temporary_beside(file: &Path) -> Result<NamedTempFile, HistoryError> {
    let mut builder = tempfile::Builder::new();
    // As files are usually created: the umask takes away what it has to.
    builder.prefix(PREFIX).permissions(Permissions::from_mode(0o666));
    builder.tempfile_in(folder_of(file)).map_err(unmade(file))
}

fn folder_of(file: &Path) -> &Path {
    let folder = file.parent().filter(|folder| !folder.as_os_str().is_empty());
    folder.unwrap_or(Path::new("."))
}

/// Makes an empty file a history, in a transaction that goes on.
fn begun(mut db: Connection) -> rusqlite::Result<Connection> {
    // It has no reader before it is complete, and an incomplete one is thrown away. With a journal SQLite would
    // refuse to write a file whose name is removed (SQLITE_READONLY_DBMOVED).
    db.pragma_update(None, "journal_mode", "OFF")?;
    db.pragma_update(None, "synchronous", "OFF")?;
    // Before there is any table, or it is too late.
    db.pragma_update(None, "auto_vacuum", "INCREMENTAL")?;
    schema::migrate(&mut db)?;
    db.execute_batch("BEGIN")?;
    Ok(db)
}

fn unmade(place: &Path) -> impl FnOnce(std::io::Error) -> HistoryError + use<> {
    let path = place.to_owned();
    move |error| HistoryError::Io { path, doing: "write the copy", error }
}

fn unwritten(place: &Path) -> impl FnOnce(rusqlite::Error) -> HistoryError + use<> {
    let path = place.to_owned();
    move |error| HistoryError::Database { path, doing: "write the copy", error }
}

impl Copy<'_> {
    fn all(&mut self, reader: &Reader, window: Window) -> Result<Dumped, HistoryError> {
        let mut dumped = Dumped::default();
        for (table, columns) in CATALOG {
            self.rows(table, columns, "", &[])?;
        }
        let between = [micros_of(window.from), micros_of(window.to)].map(Value::from);
        let events = "id, at, fabric, kind, node, port, link, place, text, detail";
        dumped.events = self.rows("events", events, "WHERE at BETWEEN ?1 AND ?2", &between)?;
        let mut reached = Vec::new();
        for (fabric, _) in reader.fabric_ids().map_err(reader.failed())? {
            if let Some(reach) = reader.reach(fabric, window).map_err(reader.failed())? {
                dumped.sweeps += self.fabric(fabric, reach)?;
                reached.push((fabric, reach));
            }
        }
        // Totals get numbers after those of all frames that are copied with their own.
        for (fabric, reach) in reached {
            self.totals(reader, fabric, reach)?;
        }
        Ok(dumped)
    }

    /// What a fabric counted, and how it was.
    fn fabric(&self, fabric: i64, Reach { first, last }: Reach) -> Result<usize, HistoryError> {
        let of: [Value; 3] = [fabric, first, last].map(Value::from);
        // A file of version 1 is read by tables that number themselves.
        let sweeps = self.copied(
            "sweeps",
            "id, fabric, since, began, ended",
            "SELECT rowid, fabric, since, began, ended FROM sweeps
             WHERE fabric = ?1 AND began BETWEEN ?2 AND ?3",
            &of,
        )?;
        let frames = "id, fabric, tier, began, ended, data, part";
        let counted = "WHERE tier IN (0, 1, 2) AND fabric = ?1 AND began BETWEEN ?2 AND ?3";
        self.rows("frames", frames, counted, &of)?;
        // How it was with the first sweep is told from the latest whole account before it.
        for [whole, changes] in [[5, 4], [7, 6]] {
            let states = format!(
                "WHERE tier IN ({whole}, {changes}) AND fabric = ?1 AND began <= ?3
                 AND began >= coalesce((SELECT max(began) FROM frames
                     WHERE tier = {whole} AND fabric = ?1 AND began <= ?2), ?2)"
            );
            self.rows("frames", frames, &states, &of)?;
        }
        let hours = "WHERE fabric = ?1 AND began >= ?2 AND first <= ?3";
        let spans = "id, fabric, first, began, ended, traffic, sweeps, last";
        self.rows("spans", spans, hours, &of)?;
        let digests = format!("WHERE span IN (SELECT id FROM spans {hours})");
        self.rows("digests", "id, span, tier, part, data", &digests, &of)?;
        let there = "since <= ?3 AND (until IS NULL OR until > ?2)";
        let cables = format!(
            "WHERE {there} AND link IN (SELECT links.id FROM links JOIN ports ON ports.id = low
                 JOIN nodes ON nodes.id = node WHERE fabric = ?1)"
        );
        self.rows("cables", "id, link, since, until", &cables, &of)?;
        let nodes = format!("WHERE {there} AND node IN (SELECT id FROM nodes WHERE fabric = ?1)");
        self.rows("presences", "id, node, since, until", &nodes, &of)?;
        Ok(sweeps)
    }

    /// What all counters had come to, after all else, for totals go on from there.
    fn totals(&self, reader: &Reader, fabric: i64, reach: Reach) -> Result<(), HistoryError> {
        let ledger = reader.totals_at(fabric, reach.last).map_err(reader.failed())?;
        let mut parts: Vec<Frame> = Vec::new();
        for (port, totals) in ledger.of(fabric) {
            let part = part_of(port) as usize;
            if parts.len() <= part {
                parts.resize_with(part + 1, Frame::default);
            }
            let values = reader.numbers.in_order();
            let values = values.filter_map(|(number, it)| Some((number, totals.get(it)?)));
            if let Some(frame) = parts.get_mut(part) {
                frame.push(port, Duration::ZERO, values);
            }
        }
        for (part, frame) in parts.iter().enumerate().filter(|(_, frame)| !frame.is_empty()) {
            let packed = frame.pack().map_err(|error| HistoryError::Io {
                path: self.place.clone(),
                doing: "pack what is in it",
                error,
            })?;
            let values = params![fabric, Tier::All as u8, part as u32, reach.last, packed];
            self.to
                .execute(
                    "INSERT INTO frames (id, fabric, tier, part, began, ended, data)
                     SELECT coalesce(max(id), 0) + 1, ?1, ?2, ?3, ?4, ?4, ?5 FROM frames",
                    values,
                )
                .map_err(self.unwritten())?;
        }
        Ok(())
    }

    fn rows(
        &self,
        table: &str,
        columns: &str,
        which: &str,
        values: &[Value],
    ) -> Result<usize, HistoryError> {
        self.copied(table, columns, &format!("SELECT {columns} FROM {table} {which}"), values)
    }

    fn copied(
        &self,
        table: &str,
        columns: &str,
        select: &str,
        values: &[Value],
    ) -> Result<usize, HistoryError> {
        let mut read = self.from.prepare(select).map_err(self.unread())?;
        let count = read.column_count();
        let marks = super::reader::marks(count, "?");
        let insert = format!("INSERT INTO {table} ({columns}) VALUES ({marks})");
        let mut write = self.to.prepare_cached(&insert).map_err(self.unwritten())?;
        // Not all that is asked for needs all of the values.
        let values = values.iter().take(read.parameter_count());
        let mut rows = read.query(params_from_iter(values)).map_err(self.unread())?;
        let mut copied = 0;
        while let Some(row) = rows.next().map_err(self.unread())? {
            for at in 0..count {
                let value = row.get_ref(at).map_err(self.unread())?;
                write
                    .raw_bind_parameter(at + 1, rusqlite::types::ToSqlOutput::Borrowed(value))
                    .map_err(self.unwritten())?;
            }
            write.raw_execute().map_err(self.unwritten())?;
            copied += 1;
            if copied % LOOK_EVERY == 0 {
                self.ensure_room()?;
            }
        }
        Ok(copied)
    }

    fn ensure_room(&self) -> Result<(), HistoryError> {
        let (free, least) = (free(&self.empty)?, self.least_free);
        if free < least {
            Err(HistoryError::Full { path: self.place.clone(), free, least })
        } else {
            Ok(())
        }
    }

    fn unread(&self) -> impl FnOnce(rusqlite::Error) -> HistoryError + use<> {
        let path = self.source.to_owned();
        move |error| HistoryError::Database { path, doing: "read it", error }
    }

    fn unwritten(&self) -> impl FnOnce(rusqlite::Error) -> HistoryError + use<> {
        unwritten(&self.place)
    }
}
