//! The file as it is written: opened for one exporter alone, a transaction a sweep.

use std::cell::Cell;
use std::collections::HashMap;
use std::fs::File;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use rusqlite::config::DbConfig;
use rusqlite::{Connection, Transaction, TransactionBehavior, params};

use crate::event::Event;
use crate::file::frame::Frame;
use crate::file::ledger;
use crate::file::ledger::Ledger;
use crate::file::numbers::Numbers;
use crate::file::tier::{Tier, part_of};
use crate::file::whole::Header;
use crate::file::{
    BUSY, ensure_ours, lock, lock_path, mark, prepare, schema, set_aside, set_log_aside, whole,
};
use crate::{HistoryError, micros_of};
use ib_fabric::Snapshot;
use ib_fabric::topology::End;
use ib_health::Assessment;
use ib_health::totals::{ResetOffsets, TotalsSeed};
use ib_mad::{Counter, Guid};

use super::catalog::{Catalog, Places};
use super::grown::{Grown, Sweep, insert};
use super::remembered::{befores, latest};
use super::standing::Standing;
use super::unused::drop_unused;

/// After so many sweeps totals are written as a whole, so that telling them never takes longer than
/// unpacking as many frames.
const WHOLE_EVERY: u32 = 20;

/// How long it is from one look for what nothing refers to any more to the next, in microseconds: it may
/// go through all events, a second for a million of them.
const LOOK_EVERY: i64 = 3_600_000_000;

/// The file, and what is known of what is in it.
#[derive(Debug)]
pub struct Store {
    pub(super) db: Connection,
    pub(super) path: PathBuf,
    catalog: Catalog,
    ledger: Ledger,
    befores: HashMap<u32, Arc<ResetOffsets>>,
    /// Sweeps since totals were written as a whole, by fabric.
    since_whole: HashMap<i64, u32>,
    /// When the sweep that was written last was begun, by fabric.
    latest: HashMap<i64, i64>,
    standing: HashMap<i64, Standing>,
    /// When the sweep was begun with which it was last looked what nothing refers to, by fabric's name.
    looked: HashMap<String, i64>,
    /// How long the write-ahead log was when it could not be begun anew.
    pub(super) log_left: Cell<u64>,
    /// Closed after the connection.
    _header: Header,
    /// The process that holds this may write.
    _lock: File,
}

/// What was written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Written {
    /// How many frames.
    pub frames: u64,
    /// How many events.
    pub events: u64,
}

impl Store {
    /// Opens a file for one exporter alone, or makes it. One that is damaged is set aside.
    pub fn open(path: &Path) -> Result<Self, HistoryError> {
        Self::open_again(path, &mut Header::default())
    }

    /// The same, where this process may have connections to the file already. The header was given to each
    /// call before, so that none of its descriptors is closed.
    pub(super) fn open_again(path: &Path, header: &mut Header) -> Result<Self, HistoryError> {
        let lock_path = lock_path(path);
        let bytes = header.read(path)?;
        ensure_ours(path, &bytes, &lock_path)?;
        let lock = lock(path, &lock_path)?;
        mark(path, &lock_path)?;
        set_log_aside(path)?;
        match Self::open_ours(path, header, &bytes, &lock) {
            Err(error) if error.is_damage() => {
                set_aside(path, &error)?;
                Self::open_ours(path, header, &[], &lock)
            }
            other => other,
        }
    }

    /// Sets a file aside that was found damaged while it was not open, unless another exporter has it.
    pub fn set_aside(path: &Path, error: &HistoryError) -> Result<(), HistoryError> {
        let _lock = lock(path, &lock_path(path))?;
        set_aside(path, error)
    }

    /// Lets SQLite check a file that is not open, unless another exporter has it. One that has a fault is
    /// set aside; returns the fault. An error if `is_over` says so before the end.
    pub fn check(
        path: &Path,
        is_over: &(dyn Fn() -> bool + Sync),
    ) -> Result<Option<HistoryError>, HistoryError> {
        let _lock = lock(path, &lock_path(path))?;
        let Some(what) = whole::fault(path, is_over)? else { return Ok(None) };
        let error = HistoryError::Damaged { path: path.into(), what };
        set_aside(path, &error)?;
        Ok(Some(error))
    }

    /// Closes the file after an error, as it is: the log is not brought into a file that may be damaged.
    pub fn close_as_it_is(self) {
        if let Err(error) = keep_log(&self.db, true) {
            tracing::debug!(%error, "the history's log is brought into it");
        }
    }

    fn open_ours(
        path: &Path,
        held: &Header,
        header: &[u8],
        lock: &File,
    ) -> Result<Self, HistoryError> {
        let failed = |error| HistoryError::database(path, "open it", error);
        let lock = lock.try_clone().map_err(|error| HistoryError::Io {
            path: path.into(),
            doing: "hold its lock",
            error,
        })?;
        whole::ensure_format(path, header)?;
        let mut db = Connection::open(path).map_err(failed)?;
        db.busy_timeout(BUSY).map_err(failed)?;
        keep_log(&db, true).map_err(failed)?;
        // Before anything is changed: it may be another program's.
        whole::version(&db, path)?;
        prepare(&mut db).map_err(failed)?;
        schema::migrate(&mut db).map_err(failed)?;
        if !whole::is_history(header) {
            // All else says that it is one: only these bytes are damaged.
            db.pragma_update(None, "application_id", schema::APPLICATION).map_err(failed)?;
        }
        let catalog = Catalog::read(&db).map_err(failed)?;
        let ledger = ledger::latest(&db, catalog.numbers()).map_err(failed)?;
        let befores = befores(&db, &catalog).map_err(failed)?;
        let latest = latest(&db).map_err(failed)?;
        keep_log(&db, false).map_err(failed)?;
        let path = path.to_owned();
        let (since_whole, standing, looked) = (HashMap::new(), HashMap::new(), HashMap::new());
        let log_left = Cell::new(0);
        Ok(Store {
            db,
            path,
            catalog,
            ledger,
            befores,
            since_whole,
            latest,
            standing,
            looked,
            log_left,
            _header: held.clone(),
            _lock: lock,
        })
    }

    fn failed(&self, doing: &'static str) -> impl FnOnce(rusqlite::Error) -> HistoryError + use<> {
        let path = self.path.clone();
        move |error| HistoryError::database(&path, doing, error)
    }

    /// The totals of a fabric's ports, for a judge to go on from.
    pub fn memory(&self, fabric: &str) -> Result<TotalsSeed, HistoryError> {
        self.read_memory(fabric).map_err(self.failed("read totals from it"))
    }

    fn read_memory(&self, fabric: &str) -> rusqlite::Result<TotalsSeed> {
        let mut statement = self.db.prepare(
            "SELECT ports.id, guid, number, fabrics.id FROM ports
             JOIN nodes ON nodes.id = node JOIN fabrics ON fabrics.id = fabric
             WHERE fabrics.name = ?1",
        )?;
        let mut ends: HashMap<u32, End> = HashMap::new();
        let mut of = None;
        let mut rows = statement.query([fabric])?;
        while let Some(row) = rows.next()? {
            let guid = Guid(row.get::<_, i64>(1)?.cast_unsigned());
            ends.insert(row.get(0)?, (guid, row.get(2)?));
            of = Some(row.get(3)?);
        }
        let mut memory = TotalsSeed::new();
        for (port, totals) in of.into_iter().flat_map(|of| self.ledger.of(of)) {
            let Some(end) = ends.get(&port) else { continue };
            let remembered = memory.entry(*end).or_default();
            for (counter, total) in totals.iter() {
                remembered.set(counter, total);
                if let Some(before) = self.befores.get(&port) {
                    remembered.set_offset(counter, before[counter as usize]);
                }
            }
        }
        Ok(memory)
    }

    /// Writes what happened and what was counted, or nothing at all.
    ///
    /// After an error what is known of the file may be wrong: it has to be opened anew.
    pub fn write(
        &mut self,
        fabric: &str,
        events: &[Event],
        sweep: Option<(&Snapshot, &Assessment)>,
    ) -> Result<Written, HistoryError> {
        let failed = self.failed("write to it");
        self.write_all(fabric, events, sweep).map_err(failed)
    }

    fn write_all(
        &mut self,
        fabric: &str,
        events: &[Event],
        sweep: Option<(&Snapshot, &Assessment)>,
    ) -> rusqlite::Result<Written> {
        let Store { db, catalog, ledger, befores, since_whole, latest, standing, looked, .. } =
            self;
        let transaction = db.transaction_with_behavior(TransactionBehavior::Immediate)?;
        let numbers = catalog.numbers().clone();
        let began = sweep.map(|(snapshot, _)| snapshot.anchor.wall_of(snapshot.began));
        let at = began.or(events.first().map(|event| event.at)).map_or(0, micros_of);
        let is_looked = looked
            .get(fabric)
            .is_some_and(|last| (0..LOOK_EVERY).contains(&at.saturating_sub(*last)));
        let mut dropped = Vec::new();
        if let Some((snapshot, _)) = sweep.filter(|_| !is_looked) {
            dropped =
                drop_unused(&transaction, catalog.places(&transaction, fabric)?, &snapshot.fabric)?;
            looked.insert(fabric.to_owned(), at);
        }
        for port in &dropped {
            ledger.remove(*port);
            befores.remove(port);
        }
        // Without a sweep, nothing is known of the fabric but what was known before.
        let seen = sweep.map(|(snapshot, _)| &snapshot.fabric);
        let places = catalog.follow(&transaction, fabric, seen, at)?;
        let mut written = Written::default();
        if let Some((snapshot, assessment)) = sweep {
            let fabric = places.fabric;
            let ended = micros_of(snapshot.anchor.wall_of(snapshot.ended));
            let sweep = Sweep { fabric, began: at, ended };
            insert_sweep(&transaction, sweep, latest.insert(fabric, at))?;
            let number = |counter| numbers.number(counter);
            let grown = Grown::take(&transaction, sweep, ledger, places, snapshot, number)?;
            written.frames += grown.write(&transaction, sweep)?;
            if !dropped.is_empty() {
                // Their numbers may be others' by now: what is written of these follows on nothing.
                standing.remove(&fabric);
                since_whole.remove(&fabric);
            }
            let standing = standing.entry(fabric).or_default();
            standing.write(&transaction, sweep, places, snapshot, assessment)?;
            let since = since_whole.entry(fabric).or_insert(WHOLE_EVERY);
            *since += 1;
            let is_stale = !dropped.is_empty();
            if *since >= WHOLE_EVERY
                && write_whole(&transaction, sweep, ledger, &numbers, is_stale)?
            {
                written.frames += 1;
                *since = 0;
            }
            write_befores(&transaction, befores, places, assessment, &|it| numbers.number(it))?;
        }
        for event in events {
            insert_event(&transaction, places, event)?;
            written.events += 1;
        }
        transaction.commit()?;
        Ok(written)
    }
}

/// Whether a log is left as it is by the last connection that is closed.
fn keep_log(db: &Connection, is_kept: bool) -> rusqlite::Result<()> {
    db.set_db_config(DbConfig::SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, is_kept).map(|_| ())
}

fn insert_sweep(db: &Transaction<'_>, sweep: Sweep, since: Option<i64>) -> rusqlite::Result<()> {
    let Sweep { fabric, began, ended } = sweep;
    // The wall's clock may have been set back.
    let since = since.filter(|since| *since < began);
    db.prepare_cached("INSERT INTO sweeps (fabric, since, began, ended) VALUES (?1, ?2, ?3, ?4)")?
        .execute(params![fabric, since, began, ended])?;
    Ok(())
}

/// Writes what all counters came to, by parts, for all at once are 20 MB; tells whether there were any.
/// What was written before goes with it, and if that is stale, also where there are none.
fn write_whole(
    db: &Transaction<'_>,
    sweep: Sweep,
    ledger: &Ledger,
    numbers: &Numbers,
    is_stale: bool,
) -> rusqlite::Result<bool> {
    let mut last = db
        .prepare_cached("SELECT coalesce(max(id), 0) FROM frames WHERE tier = 3 AND fabric = ?1")?;
    let last: i64 = last.query_row([sweep.fabric], |row| row.get(0))?;
    let (mut whole, mut part, mut any) = (Frame::default(), 0, false);
    for (port, totals) in ledger.of(sweep.fabric) {
        if part_of(port) != part {
            any |= insert(db, sweep, Tier::All, Some(part), &whole)?;
            (whole, part) = (Frame::default(), part_of(port));
        }
        let values = numbers.in_order();
        let values = values.filter_map(|(number, counter)| Some((number, totals.get(counter)?)));
        whole.push(port, Duration::ZERO, values);
    }
    any |= insert(db, sweep, Tier::All, Some(part), &whole)?;
    if any || is_stale {
        // Those before are not needed any more.
        db.execute(
            "DELETE FROM frames WHERE tier = 3 AND fabric = ?1 AND id <= ?2",
            [sweep.fabric, last],
        )?;
    }
    Ok(any)
}

fn insert_event(db: &Transaction<'_>, places: &mut Places, event: &Event) -> rusqlite::Result<()> {
    let (node, port, link) = places.about(db, event.about)?;
    let detail = (!event.detail.is_null()).then(|| event.detail.to_string());
    let (at, kind) = (micros_of(event.at), event.kind.label());
    db.prepare_cached(
        "INSERT INTO events (at, fabric, kind, node, port, link, place, text, detail)
         VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9)",
    )?
    .execute(params![
        at,
        places.fabric,
        kind,
        node,
        port,
        link,
        event.place,
        event.text,
        detail
    ])?;
    Ok(())
}

/// Writes what counters had counted before they fell, where that is not what was written last.
fn write_befores(
    db: &Transaction<'_>,
    befores: &mut HashMap<u32, Arc<ResetOffsets>>,
    places: &Places,
    assessment: &Assessment,
    number: &impl Fn(Counter) -> Option<u8>,
) -> rusqlite::Result<()> {
    for (&port, found) in places.ports.iter().zip(&assessment.ports) {
        let Some(before) = &found.reset_offsets else { continue };
        let last = befores.get(&port);
        if last.is_some_and(|last| Arc::ptr_eq(last, before)) {
            continue;
        }
        for counter in Counter::all() {
            let Some(number) = number(counter) else { continue };
            let count = before[counter as usize];
            if count != last.map_or(0, |last| last[counter as usize]) {
                db.prepare_cached(
                    "INSERT OR REPLACE INTO befores (port, counter, count) VALUES (?1, ?2, ?3)",
                )?
                .execute(params![port, number, count.cast_signed()])?;
            }
        }
        befores.insert(port, Arc::clone(before));
    }
    Ok(())
}
