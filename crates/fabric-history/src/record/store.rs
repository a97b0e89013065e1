//! The history file as the recorder writes it: open for one exporter alone, one transaction per sweep.

use std::cell::Cell;
use std::collections::HashMap;
use std::fs::File;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::SystemTime;

use rusqlite::config::DbConfig;
use rusqlite::{Connection, Result, Transaction, TransactionBehavior, params};

use crate::event::NewEvent;
use crate::file::connection::{BUSY, prepare};
use crate::file::damaged::{set_aside, set_log_aside};
use crate::file::flaps::flaps;
use crate::file::header::{Header, ensure_ours};
use crate::file::link_errors::link_errors;
use crate::file::lock::{FileLock, WriterLock, lock, lock_path, mark};
use crate::file::record_kind::{RecordKind, guid_bits};
use crate::file::sql::Sql;
use crate::file::totals::TotalsTable;
use crate::file::{integrity, schema, tables, totals};
use crate::model::Window;
use crate::record::catalog::{Catalog, FabricIds, SubjectIds};
use crate::record::deltas::{CounterDeltas, StateDeltas, SweepWriter};
use crate::record::module_places::{self, Place, PlaceChange};
use crate::record::unreferenced::drop_unused;
use crate::{HistoryError, micros_of};
use ib_fabric::Snapshot;
use ib_health::Assessment;
use ib_health::counter_resets::ResetOffsets;
use ib_health::recorded::{RecordedErrors, RecordedFlaps};
use ib_health::totals::TotalsSeed;
use ib_mad::register::text;
use ib_mad::{Counter, Guid, PortKey, PortNumber};

/// All totals are written every so many sweeps, so that reconstructing totals never takes longer than
/// unpacking this many frames.
const SWEEPS_PER_TOTALS: u32 = 20;

/// Totals of errors are written this often, in microseconds: a page of a past moment undoes the growth of half a day at
/// most.
const ERROR_TOTALS_INTERVAL: i64 = 12 * 3_600_000_000;

/// Time between two searches for unreferenced rows, in microseconds: a search may go through all events, at
/// a second per million.
const PRUNE_UNUSED_INTERVAL: i64 = 3_600_000_000;

/// An open history file, with what has to be known of its content to append to it.
#[derive(Debug)]
pub struct Store {
    pub(super) db: Connection,
    pub(super) path: PathBuf,
    catalog: Catalog,
    /// The totals that were written last.
    totals: TotalsTable,
    /// What counters had counted before they were last reset, by port id.
    reset_offsets: HashMap<u32, Arc<ResetOffsets>>,
    /// By fabric id.
    fabrics: HashMap<i64, WrittenFabric>,
    /// The length of the write-ahead log when it could not be truncated.
    pub(super) log_left: Cell<u64>,
    /// The length of the file after the last write.
    pub(super) length: Cell<u64>,
    /// Its device and inode.
    pub(super) identity: (u64, u64),
    /// Only the process that holds both locks may write. They are released after the connection is closed.
    _lock: FileLock,
    _beside: Arc<WriterLock>,
    /// Closed last.
    pub(super) file: Arc<File>,
}

/// What was written of a fabric.
#[derive(Debug, Default)]
struct WrittenFabric {
    states: StateDeltas,
    /// Sweeps since all totals were written; `None` before that.
    since_totals: Option<u32>,
    /// The beginning of its last recorded sweep.
    latest: Option<i64>,
    /// The beginning of the sweep with which unreferenced rows were last searched.
    pruned_unused: Option<i64>,
}

impl Store {
    /// Opens or creates a file for one exporter alone. A damaged file is set aside.
    pub fn open(path: &Path) -> Result<Self, HistoryError> {
        Self::reopen(path, &mut Header::default())
    }

    /// The same for a process that may have connections to the file already: each call is given the same
    /// header, so that none of its descriptors is closed.
    pub(super) fn reopen(path: &Path, header: &mut Header) -> Result<Self, HistoryError> {
        let lock_path = lock_path(path);
        let bytes = header.read(path)?;
        ensure_ours(path, &bytes, &lock_path)?;
        let lock = Arc::new(lock(path, &lock_path)?);
        mark(path, &lock)?;
        set_log_aside(path)?;
        match Self::open_locked(path, header, &bytes, &lock) {
            Err(error) if error.is_damage() => {
                set_aside(path, &error)?;
                Self::open_locked(path, header, &[], &lock)
            }
            other => other,
        }
    }

    /// Sets aside a file that was found damaged and is not open, unless another exporter has it.
    pub(super) fn set_aside(
        path: &Path,
        header: &mut Header,
        error: &HistoryError,
    ) -> Result<(), HistoryError> {
        let _lock = lock(path, &lock_path(path))?;
        let _file = FileLock::new(path, &header.file(path)?)?;
        set_aside(path, error)
    }

    /// Lets SQLite check a file that is not open, unless another exporter has it. A file with a fault is set
    /// aside, and the fault returned. An error if `is_canceled` becomes true before the check ends.
    pub(super) fn check(
        path: &Path,
        header: &mut Header,
        is_canceled: impl Fn() -> bool + Send + 'static,
    ) -> Result<Option<HistoryError>, HistoryError> {
        let _lock = lock(path, &lock_path(path))?;
        let _file = FileLock::new(path, &header.file(path)?)?;
        let Some(what) = integrity::fault(path, is_canceled)? else { return Ok(None) };
        let error = HistoryError::Damaged(path.into(), what);
        set_aside(path, &error)?;
        Ok(Some(error))
    }

    /// Closes the file after an error, without moving the write-ahead log into a file that may be damaged.
    pub fn close_without_checkpoint(self) {
        if let Err(error) = set_checkpoint_on_close(&self.db, false) {
            tracing::debug!(%error, "history write-ahead log will be checkpointed on close");
        }
    }

    fn open_locked(
        path: &Path,
        held: &mut Header,
        header: &[u8],
        beside: &Arc<WriterLock>,
    ) -> Result<Self, HistoryError> {
        let failed = HistoryError::database(path, "open the file");
        schema::ensure_format(path, header)?;
        let file = held.file(path)?;
        let lock = FileLock::new(path, &file)?;
        let about = file.metadata().map_err(HistoryError::io(path, "open the file"))?;
        let mut db = Connection::open(path).map_err(failed)?;
        db.busy_timeout(BUSY).map_err(failed)?;
        set_checkpoint_on_close(&db, false).map_err(failed)?;
        schema::upgrade(&mut db, header).map_err(failed)?;
        // Before anything is changed: the file may be another program's.
        schema::ensure_usable(&db, path)?;
        prepare(&mut db).map_err(failed)?;
        schema::create(&mut db).map_err(failed)?;
        if !tables::is_history(header) {
            // Everything else identifies it as a history: only these bytes are damaged.
            db.pragma_update(None, "application_id", tables::APPLICATION).map_err(failed)?;
        }
        let catalog = Catalog::read(&db).map_err(failed)?;
        let totals = totals::latest(&db, &catalog.counters).map_err(failed)?;
        let reset_offsets = reset_offsets(&db, &catalog).map_err(failed)?;
        let fabrics = written_fabrics(&db).map_err(failed)?;
        set_checkpoint_on_close(&db, true).map_err(failed)?;
        let store = Store {
            db,
            path: path.to_owned(),
            catalog,
            totals,
            reset_offsets,
            fabrics,
            log_left: Cell::new(0),
            length: Cell::new(0),
            identity: (about.dev(), about.ino()),
            _lock: lock,
            _beside: Arc::clone(beside),
            file,
        };
        store.note_length();
        Ok(store)
    }

    /// Its statements.
    pub(super) fn sql(&self) -> Sql<'_> {
        Sql(&self.db)
    }

    /// The totals of a fabric's ports, from which its monitor continues after a restart.
    pub fn totals(&self, fabric: &str) -> Result<TotalsSeed, HistoryError> {
        let sql = "SELECT ports.id, guid, number FROM ports JOIN nodes ON nodes.id = node
                   JOIN fabrics ON fabrics.id = fabric WHERE fabrics.name = ?1";
        let ports: Vec<(u32, i64, PortNumber)> = (self.sql().rows(sql, [fabric]))
            .map_err(HistoryError::database(&self.path, "read totals"))?;
        let mut seed = TotalsSeed::new();
        for (port, guid, number) in ports {
            let Some(totals) = self.totals.get(port) else { continue };
            let seed = seed.entry(PortKey::new(Guid(guid.cast_unsigned()), number)).or_default();
            for (counter, total) in totals.iter() {
                let offset =
                    self.reset_offsets.get(&port).map_or(0, |before| before[counter as usize]);
                seed.restore(counter, total, offset);
            }
        }
        Ok(seed)
    }

    /// The errors of a fabric's links before `now`, from which its monitor continues after a restart.
    pub fn link_errors(&self, name: &str, now: SystemTime) -> Result<RecordedErrors, HistoryError> {
        let read = || match self.sql().fabrics()?.into_iter().find(|(_, it)| it == name) {
            Some((fabric, _)) => link_errors(self.sql(), &self.catalog.counters, fabric, now),
            None => Ok(RecordedErrors::default()),
        };
        read().map_err(HistoryError::database(&self.path, "read errors of links"))
    }

    /// When links of a fabric flapped in a window, without the flaps of former cables.
    pub fn flaps(&self, fabric: &str, window: Window) -> Result<RecordedFlaps, HistoryError> {
        flaps(self.sql(), fabric, window)
            .map_err(HistoryError::database(&self.path, "read flaps of links"))
    }

    /// Where the cables and modules of a fabric were seen, the oldest places first. What had not left was there until
    /// the last sweep.
    pub fn module_places(&self, fabric: &str) -> Result<Vec<PlaceChange>, HistoryError> {
        let sql = "SELECT guid, port, serial, coalesce(until, (SELECT max(ended) FROM sweeps
                       WHERE sweeps.fabric = modules.fabric) / 1000000, 0) AS until, until IS NOT NULL
                   FROM modules JOIN fabrics ON fabrics.id = fabric WHERE fabrics.name = ?1
                   ORDER BY 4";
        let rows: Vec<(i64, PortNumber, String, i64, bool)> = (self.sql().rows(sql, [fabric]))
            .map_err(HistoryError::database(&self.path, "read modules"))?;
        let places = rows.into_iter().filter_map(|(guid, port, serial, until, has_left)| {
            let until = u32::try_from(until).unwrap_or_default();
            let end = PortKey::new(Guid(guid.cast_unsigned()), port);
            let place = Place { end, until, has_left };
            Some(PlaceChange { serial: module_places::serial(serial.as_bytes())?, place })
        });
        Ok(places.collect())
    }

    /// Writes events, where modules are or were, and a sweep if there is one, in one transaction; returns how many
    /// kinds of counter frames were written.
    ///
    /// After an error, what is known of the file may be wrong: it must be reopened.
    pub fn write(
        &mut self,
        fabric: &str,
        events: &[NewEvent],
        modules: &[PlaceChange],
        sweep: Option<(&Snapshot, &Assessment)>,
    ) -> Result<u64, HistoryError> {
        let written = self.write_all(fabric, events, modules, sweep);
        written.map_err(HistoryError::database(&self.path, "write to the file"))
    }

    fn write_all(
        &mut self,
        fabric: &str,
        events: &[NewEvent],
        modules: &[PlaceChange],
        sweep: Option<(&Snapshot, &Assessment)>,
    ) -> Result<u64> {
        let Store { db, catalog, totals, reset_offsets, fabrics, .. } = self;
        let db = db.transaction_with_behavior(TransactionBehavior::Immediate)?;
        let counters = catalog.counters.clone();
        let began = sweep.map(|(snapshot, _)| snapshot.anchor.wall_of(snapshot.began));
        let at = began.or(events.first().map(|event| event.at)).map_or(0, micros_of);
        let known = fabrics.entry(catalog.fabric(&db, fabric)?.fabric).or_default();
        let is_recent = |last: i64| (0..PRUNE_UNUSED_INTERVAL).contains(&at.saturating_sub(last));
        let is_pruned = known.pruned_unused.is_some_and(is_recent);
        let mut dropped = Vec::new();
        if let Some((snapshot, _)) = sweep.filter(|_| !is_pruned) {
            dropped = drop_unused(&db, catalog.fabric(&db, fabric)?, &snapshot.fabric)?;
            known.pruned_unused = Some(at);
        }
        for port in &dropped {
            totals.remove(*port);
            reset_offsets.remove(port);
        }
        // Without a sweep the fabric is as it was last known.
        let ids = catalog.update(&db, fabric, sweep.map(|(snapshot, _)| &snapshot.fabric), at)?;
        let mut frames = 0;
        if let Some((snapshot, assessment)) = sweep {
            let ended = micros_of(snapshot.anchor.wall_of(snapshot.ended));
            let fabric = ids.fabric;
            let sweep = SweepWriter { db: &db, counters: &counters, fabric, began: at, ended };
            // The time of day may have been set back.
            let since = known.latest.replace(at).filter(|previous| *previous < at);
            Sql(sweep.db).execute(
                "INSERT INTO sweeps (fabric, since, began, ended) VALUES (?1, ?2, ?3, ?4)",
                params![fabric, since, at, ended],
            )?;
            frames += CounterDeltas::compute(sweep, totals, ids, snapshot)?.write(sweep)?;
            let is_stale = !dropped.is_empty();
            if is_stale {
                // Their ids may be assigned again: what is written of these must not follow the old ones.
                (known.states, known.since_totals) = (StateDeltas::default(), None);
            }
            known.states.write(sweep, ids, snapshot, assessment)?;
            let since = known.since_totals.map_or(SWEEPS_PER_TOTALS, |since| since + 1);
            let is_written = since >= SWEEPS_PER_TOTALS && write_totals(sweep, totals, is_stale)?;
            frames += u64::from(is_written);
            known.since_totals = Some(if is_written { 0 } else { since });
            write_reset_offsets(sweep, reset_offsets, ids, assessment)?;
        }
        for PlaceChange { serial, place } in modules {
            let PortKey { guid, number: port } = place.end;
            let until = place.has_left.then_some(place.until);
            Sql(&db).execute(
                "INSERT OR REPLACE INTO modules (fabric, guid, port, serial, until)
                 VALUES (?1, ?2, ?3, ?4, ?5)",
                params![ids.fabric, guid_bits(guid), port, text(serial), until],
            )?;
        }
        for event in events {
            insert_event(&db, ids, event)?;
        }
        db.commit()?;
        Ok(frames)
    }
}

/// Whether the last connection that is closed moves the write-ahead log into the file.
fn set_checkpoint_on_close(db: &Connection, enabled: bool) -> Result<()> {
    db.set_db_config(DbConfig::SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, !enabled).map(|_| ())
}

/// Writes the totals of all counters; returns whether there were any. Deletes the totals that were written
/// before, even without new ones if they are stale.
fn write_totals(sweep: SweepWriter<'_>, totals: &TotalsTable, is_stale: bool) -> Result<bool> {
    let (kind, fabric) = (RecordKind::AllTotals, sweep.fabric);
    let last = "SELECT max(id) FROM frames WHERE tier = ?1 AND fabric = ?2";
    let last: Option<i64> = Sql(sweep.db).value(last, params![kind, fabric])?;
    let mut any = false;
    totals::for_each_part(totals, fabric, sweep.counters, &|_| true, |part, frame| {
        any |= sweep.frame(kind, Some(part), frame)?;
        Ok::<_, rusqlite::Error>(())
    })?;
    if any {
        write_error_totals(sweep, totals)?;
    }
    if any || is_stale {
        let delete = "DELETE FROM frames WHERE tier = ?1 AND fabric = ?2 AND id <= ?3";
        Sql(sweep.db).execute(delete, params![kind, fabric, last])?;
    }
    Ok(any)
}

/// Writes the totals of error counters, unless they were written less than [`ERROR_TOTALS_INTERVAL`] ago.
fn write_error_totals(sweep: SweepWriter<'_>, totals: &TotalsTable) -> Result<()> {
    let (kind, fabric) = (RecordKind::ErrorTotals, sweep.fabric);
    let last = Sql(sweep.db).latest_frame(kind, fabric, sweep.began)?;
    if last.is_some_and(|last| sweep.began.saturating_sub(last) < ERROR_TOTALS_INTERVAL) {
        return Ok(());
    }
    let is_error = |counter| RecordKind::of(counter) == RecordKind::ErrorDeltas;
    totals::for_each_part(totals, fabric, sweep.counters, &is_error, |part, frame| {
        sweep.frame(kind, Some(part), frame).map(drop)
    })
}

fn insert_event(db: &Transaction<'_>, ids: &mut FabricIds, event: &NewEvent) -> Result<()> {
    let SubjectIds { node, port, link } = ids.subject(db, event.about)?;
    let detail = (!event.detail.is_null()).then(|| event.detail.to_string());
    let (at, kind) = (micros_of(event.at), event.kind.label());
    let (fabric, place, text) = (ids.fabric, &event.place, &event.text);
    Sql(db).execute(
        "INSERT INTO events (at, fabric, kind, node, port, link, place, text, detail)
         VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9)",
        params![at, fabric, kind, node, port, link, place, text, detail],
    )?;
    Ok(())
}

/// Writes what counters had counted before they were reset, where it differs from what was written last.
fn write_reset_offsets(
    sweep: SweepWriter<'_>,
    reset_offsets: &mut HashMap<u32, Arc<ResetOffsets>>,
    ids: &FabricIds,
    assessment: &Assessment,
) -> Result<()> {
    for (&port, found) in ids.ports.iter().zip(&assessment.ports) {
        let Some(before) = &found.reset_offsets else { continue };
        let last = reset_offsets.get(&port);
        if last.is_some_and(|last| Arc::ptr_eq(last, before)) {
            continue;
        }
        for counter in Counter::all() {
            let Some(id) = sweep.counters.number(counter) else { continue };
            let count = before[counter as usize];
            if count != last.map_or(0, |last| last[counter as usize]) {
                Sql(sweep.db).execute(
                    "INSERT OR REPLACE INTO befores (port, counter, count) VALUES (?1, ?2, ?3)",
                    params![port, id, count.cast_signed()],
                )?;
            }
        }
        reset_offsets.insert(port, Arc::clone(before));
    }
    Ok(())
}

/// What counters had counted before they were last reset, by port id.
fn reset_offsets(db: &Connection, catalog: &Catalog) -> Result<HashMap<u32, Arc<ResetOffsets>>> {
    let mut reset_offsets: HashMap<u32, ResetOffsets> = HashMap::new();
    let rows: Vec<(u32, u8, i64)> = Sql(db).rows("SELECT port, counter, count FROM befores", [])?;
    for (port, counter, count) in rows {
        let Some(counter) = catalog.counters.counter(counter) else { continue };
        reset_offsets.entry(port).or_insert([0; _])[counter as usize] = count.cast_unsigned();
    }
    Ok(reset_offsets.into_iter().map(|(port, before)| (port, Arc::new(before))).collect())
}

/// What an earlier process has written: the last sweep in the order of writing, as clocks may have been wrong.
fn written_fabrics(db: &Connection) -> Result<HashMap<i64, WrittenFabric>> {
    let latest: Vec<(i64, i64)> = Sql(db).rows(
        "SELECT fabrics.id, began FROM fabrics JOIN sweeps ON sweeps.id = (
             SELECT id FROM sweeps WHERE +fabric = fabrics.id ORDER BY id DESC LIMIT 1)",
        [],
    )?;
    let written = |latest| WrittenFabric { latest: Some(latest), ..WrittenFabric::default() };
    Ok(latest.into_iter().map(|(fabric, latest)| (fabric, written(latest))).collect())
}
