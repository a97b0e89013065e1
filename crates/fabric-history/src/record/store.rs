//! The history file as the recorder writes it: open for one exporter alone, one transaction per sweep.

use std::cell::Cell;
use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use rusqlite::config::DbConfig;
use rusqlite::{Connection, Result, Transaction, TransactionBehavior, params};

use crate::event::NewEvent;
use crate::file::Header;
use crate::file::record_kind::{CounterIds, RecordKind};
use crate::file::totals::TotalsTable;
use crate::file::{
    BUSY, WriterLock, ensure_ours, lock, lock_path, mark, prepare, schema, set_aside,
    set_log_aside, totals,
};
use crate::record::catalog::{Catalog, FabricIds};
use crate::record::deltas::{CounterDeltas, StateDeltas, SweepKey, insert_frame};
use crate::record::unreferenced::drop_unused;
use crate::{HistoryError, micros_of};
use ib_fabric::Snapshot;
use ib_fabric::topology::End;
use ib_health::Assessment;
use ib_health::totals::{ResetOffsets, TotalsSeed};
use ib_mad::{Counter, Guid};

/// All totals are written every so many sweeps, so that reconstructing totals never takes longer than
/// unpacking this many frames.
const SWEEPS_PER_TOTALS: u32 = 20;

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
    ledger: TotalsTable,
    /// What counters had counted before they were last reset, by port id.
    befores: HashMap<u32, Arc<ResetOffsets>>,
    /// By fabric id.
    written: HashMap<i64, WrittenFabric>,
    /// The beginning of the last recorded sweep, by fabric id.
    latest: HashMap<i64, i64>,
    /// The beginning of the sweep with which unreferenced rows were last searched, by the fabric's name.
    pruned_unused: HashMap<String, i64>,
    /// The length of the write-ahead log when it could not be truncated.
    pub(super) log_left: Cell<u64>,
    /// Closed after the connection.
    _header: Header,
    /// Only the process that holds this lock may write.
    _lock: Arc<WriterLock>,
}

/// What this process has written of a fabric.
#[derive(Debug, Default)]
struct WrittenFabric {
    states: StateDeltas,
    /// Sweeps since all totals were written; `None` before that.
    since_totals: Option<u32>,
}

/// What was written in a transaction.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct WriteCounts {
    /// Kinds of counter frames.
    pub frames: u64,
    /// Events.
    pub events: u64,
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
        mark(path, &lock_path)?;
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
    pub fn set_aside(path: &Path, error: &HistoryError) -> Result<(), HistoryError> {
        let _lock = lock(path, &lock_path(path))?;
        set_aside(path, error)
    }

    /// Lets SQLite check a file that is not open, unless another exporter has it. A file with a fault is set
    /// aside, and the fault returned. An error if `is_cancelled` becomes true before the check ends.
    pub fn check(
        path: &Path,
        is_cancelled: &(dyn Fn() -> bool + Sync),
    ) -> Result<Option<HistoryError>, HistoryError> {
        let _lock = lock(path, &lock_path(path))?;
        let Some(what) = schema::fault(path, is_cancelled)? else { return Ok(None) };
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
        held: &Header,
        header: &[u8],
        lock: &Arc<WriterLock>,
    ) -> Result<Self, HistoryError> {
        let failed = |error| HistoryError::database(path, "open the file", error);
        schema::ensure_format(path, header)?;
        let mut db = Connection::open(path).map_err(failed)?;
        db.busy_timeout(BUSY).map_err(failed)?;
        set_checkpoint_on_close(&db, false).map_err(failed)?;
        // Before anything is changed: the file may be another program's.
        schema::ensure_usable(&db, path)?;
        prepare(&mut db).map_err(failed)?;
        schema::create(&mut db).map_err(failed)?;
        if !schema::is_history(header) {
            // Everything else identifies it as a history: only these bytes are damaged.
            db.pragma_update(None, "application_id", schema::APPLICATION).map_err(failed)?;
        }
        let catalog = Catalog::read(&db).map_err(failed)?;
        let ledger = totals::latest(&db, &catalog.counters).map_err(failed)?;
        let befores = befores(&db, &catalog).map_err(failed)?;
        let latest = latest(&db).map_err(failed)?;
        set_checkpoint_on_close(&db, true).map_err(failed)?;
        Ok(Store {
            db,
            path: path.to_owned(),
            catalog,
            ledger,
            befores,
            written: HashMap::new(),
            latest,
            pruned_unused: HashMap::new(),
            log_left: Cell::new(0),
            _header: held.clone(),
            _lock: Arc::clone(lock),
        })
    }

    fn failed(&self, doing: &'static str) -> impl FnOnce(rusqlite::Error) -> HistoryError + use<> {
        let path = self.path.clone();
        move |error| HistoryError::database(&path, doing, error)
    }

    /// The totals of a fabric's ports, from which its monitor continues after a restart.
    pub fn totals(&self, fabric: &str) -> Result<TotalsSeed, HistoryError> {
        self.read_totals(fabric).map_err(self.failed("read totals"))
    }

    fn read_totals(&self, fabric: &str) -> Result<TotalsSeed> {
        let mut statement = self.db.prepare(
            "SELECT ports.id, guid, number, fabrics.id FROM ports
             JOIN nodes ON nodes.id = node JOIN fabrics ON fabrics.id = fabric
             WHERE fabrics.name = ?1",
        )?;
        let mut ends: HashMap<u32, End> = HashMap::new();
        let mut fabric_id = None;
        let mut rows = statement.query([fabric])?;
        while let Some(row) = rows.next()? {
            let guid = Guid(row.get::<_, i64>(1)?.cast_unsigned());
            ends.insert(row.get(0)?, (guid, row.get(2)?));
            fabric_id = Some(row.get(3)?);
        }
        let mut memory = TotalsSeed::new();
        for (port, totals) in fabric_id.into_iter().flat_map(|id| self.ledger.of(id)) {
            let Some(end) = ends.get(&port) else { continue };
            let remembered = memory.entry(*end).or_default();
            for (counter, total) in totals.iter() {
                let offset = self.befores.get(&port).map_or(0, |before| before[counter as usize]);
                remembered.restore(counter, total, offset);
            }
        }
        Ok(memory)
    }

    /// Writes events, and a sweep if there is one, in one transaction.
    ///
    /// After an error, what is known of the file may be wrong: it must be reopened.
    pub fn write(
        &mut self,
        fabric: &str,
        events: &[NewEvent],
        sweep: Option<(&Snapshot, &Assessment)>,
    ) -> Result<WriteCounts, HistoryError> {
        let failed = self.failed("write to the file");
        self.write_all(fabric, events, sweep).map_err(failed)
    }

    fn write_all(
        &mut self,
        fabric: &str,
        events: &[NewEvent],
        sweep: Option<(&Snapshot, &Assessment)>,
    ) -> Result<WriteCounts> {
        let Store { db, catalog, ledger, befores, written, latest, pruned_unused, .. } = self;
        let db = db.transaction_with_behavior(TransactionBehavior::Immediate)?;
        let counters = catalog.counters.clone();
        let began = sweep.map(|(snapshot, _)| snapshot.anchor.wall_of(snapshot.began));
        let at = began.or(events.first().map(|event| event.at)).map_or(0, micros_of);
        let is_pruned = pruned_unused
            .get(fabric)
            .is_some_and(|last| (0..PRUNE_UNUSED_INTERVAL).contains(&at.saturating_sub(*last)));
        let mut dropped = Vec::new();
        if let Some((snapshot, _)) = sweep.filter(|_| !is_pruned) {
            dropped = drop_unused(&db, catalog.fabric(&db, fabric)?, &snapshot.fabric)?;
            pruned_unused.insert(fabric.to_owned(), at);
        }
        for port in &dropped {
            ledger.remove(*port);
            befores.remove(port);
        }
        // Without a sweep the fabric is as it was last known.
        let ids = catalog.update(&db, fabric, sweep.map(|(snapshot, _)| &snapshot.fabric), at)?;
        let mut counts = WriteCounts::default();
        if let Some((snapshot, assessment)) = sweep {
            let ended = micros_of(snapshot.anchor.wall_of(snapshot.ended));
            let sweep = SweepKey { fabric: ids.fabric, began: at, ended };
            insert_sweep(&db, sweep, latest.insert(ids.fabric, at))?;
            let deltas = CounterDeltas::compute(&db, sweep, ledger, ids, snapshot, &counters)?;
            counts.frames += deltas.write(&db, sweep)?;
            if !dropped.is_empty() {
                // Their ids may be assigned again: what is written of these must not follow the old ones.
                written.remove(&ids.fabric);
            }
            let written = written.entry(ids.fabric).or_default();
            written.states.write(&db, sweep, ids, snapshot, assessment)?;
            let since = written.since_totals.map_or(SWEEPS_PER_TOTALS, |since| since + 1);
            let is_stale = !dropped.is_empty();
            let is_written = since >= SWEEPS_PER_TOTALS
                && write_totals(&db, sweep, ledger, &counters, is_stale)?;
            counts.frames += u64::from(is_written);
            written.since_totals = Some(if is_written { 0 } else { since });
            write_befores(&db, befores, ids, assessment, &counters)?;
        }
        for event in events {
            insert_event(&db, ids, event)?;
            counts.events += 1;
        }
        db.commit()?;
        Ok(counts)
    }
}

/// Whether the last connection that is closed moves the write-ahead log into the file.
fn set_checkpoint_on_close(db: &Connection, enabled: bool) -> Result<()> {
    db.set_db_config(DbConfig::SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, !enabled).map(|_| ())
}

fn insert_sweep(
    db: &Transaction<'_>,
    SweepKey { fabric, began, ended }: SweepKey,
    previous: Option<i64>,
) -> Result<()> {
    // The time of day may have been set back.
    let since = previous.filter(|previous| *previous < began);
    db.prepare_cached("INSERT INTO sweeps (fabric, since, began, ended) VALUES (?1, ?2, ?3, ?4)")?
        .execute(params![fabric, since, began, ended])?;
    Ok(())
}

/// Writes the totals of all counters. Returns whether there were any. Deletes the totals that were written before, even without new ones if they are stale.
fn write_totals(
    db: &Transaction<'_>,
    sweep: SweepKey,
    ledger: &TotalsTable,
    counters: &CounterIds,
    is_stale: bool,
) -> Result<bool> {
    let last = "SELECT coalesce(max(id), 0) FROM frames WHERE tier = ?1 AND fabric = ?2";
    let last: i64 = db
        .prepare_cached(last)?
        .query_row(params![RecordKind::AllTotals, sweep.fabric], |row| row.get(0))?;
    let mut any = false;
    ledger.for_each_part(sweep.fabric, counters, |part, frame| {
        any |= insert_frame(db, sweep, RecordKind::AllTotals, Some(part), frame)?;
        Ok::<_, rusqlite::Error>(())
    })?;
    if any || is_stale {
        db.execute(
            "DELETE FROM frames WHERE tier = ?1 AND fabric = ?2 AND id <= ?3",
            params![RecordKind::AllTotals, sweep.fabric, last],
        )?;
    }
    Ok(any)
}

fn insert_event(db: &Transaction<'_>, ids: &mut FabricIds, event: &NewEvent) -> Result<()> {
    let (node, port, link) = ids.subject(db, event.about)?;
    let detail = (!event.detail.is_null()).then(|| event.detail.to_string());
    let (at, kind) = (micros_of(event.at), event.kind.label());
    let (fabric, place, text) = (ids.fabric, &event.place, &event.text);
    db.prepare_cached(
        "INSERT INTO events (at, fabric, kind, node, port, link, place, text, detail)
         VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9)",
    )?
    .execute(params![at, fabric, kind, node, port, link, place, text, detail])?;
    Ok(())
}

/// Writes what counters had counted before they were reset, where it differs from what was written last.
fn write_befores(
    db: &Transaction<'_>,
    befores: &mut HashMap<u32, Arc<ResetOffsets>>,
    ids: &FabricIds,
    assessment: &Assessment,
    counters: &CounterIds,
) -> Result<()> {
    for (&port, found) in ids.ports.iter().zip(&assessment.ports) {
        let Some(before) = &found.reset_offsets else { continue };
        let last = befores.get(&port);
        if last.is_some_and(|last| Arc::ptr_eq(last, before)) {
            continue;
        }
        for counter in Counter::all() {
            let Some(id) = counters.number(counter) else { continue };
            let count = before[counter as usize];
            if count != last.map_or(0, |last| last[counter as usize]) {
                db.prepare_cached(
                    "INSERT OR REPLACE INTO befores (port, counter, count) VALUES (?1, ?2, ?3)",
                )?
                .execute(params![port, id, count.cast_signed()])?;
            }
        }
        befores.insert(port, Arc::clone(before));
    }
    Ok(())
}

/// What counters had counted before they were last reset, by port id.
fn befores(db: &Connection, catalog: &Catalog) -> Result<HashMap<u32, Arc<ResetOffsets>>> {
    let mut befores: HashMap<u32, ResetOffsets> = HashMap::new();
    let mut statement = db.prepare("SELECT port, counter, count FROM befores")?;
    let mut rows = statement.query([])?;
    while let Some(row) = rows.next()? {
        let Some(counter) = catalog.counters.counter(row.get(1)?) else { continue };
        let before = befores.entry(row.get(0)?).or_insert([0; _]);
        before[counter as usize] = row.get::<_, i64>(2)?.cast_unsigned();
    }
    Ok(befores.into_iter().map(|(port, before)| (port, Arc::new(before))).collect())
}

/// The beginning of each fabric's last recorded sweep: last in the order of writing, as clocks may have been
/// wrong.
fn latest(db: &Connection) -> Result<HashMap<i64, i64>> {
    let mut statement = db.prepare(
        "SELECT fabrics.id, began FROM fabrics JOIN sweeps ON sweeps.id = (
             SELECT id FROM sweeps WHERE +fabric = fabrics.id ORDER BY id DESC LIMIT 1)",
    )?;
    statement.query_map([], |row| Ok((row.get(0)?, row.get(1)?)))?.collect()
}
