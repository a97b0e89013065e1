//! The file as it is written: opened for one exporter alone, a transaction a sweep.

use std::collections::HashMap;
use std::fs::File;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use rusqlite::{Connection, Transaction, TransactionBehavior, params};

use crate::fabric::topology::End;
use crate::fabric::{Counter, Guid, Snapshot};
use crate::health::Findings;
use crate::health::totals::{Before, Memory};
use crate::history::event::Event;
use crate::history::file::frame::Frame;
use crate::history::file::tier::Tier;
use crate::history::file::{
    ensure_ours, lock, mark, prepare, schema, set_aside, whole, with_suffix,
};
use crate::history::{HistoryError, micros_of};

use super::catalog::{Catalog, Places};
use super::ledger::Ledger;

/// After so many sweeps totals are written as a whole, so that telling them never takes longer than
/// unpacking as many frames.
const WHOLE_EVERY: u32 = 20;

/// The file, and what is known of what is in it.
#[derive(Debug)]
pub struct Store {
    pub(super) db: Connection,
    pub(super) path: PathBuf,
    catalog: Catalog,
    ledger: Ledger,
    befores: HashMap<u32, Arc<Before>>,
    /// Sweeps since totals were written as a whole, by fabric.
    since_whole: HashMap<i64, u32>,
    /// Whoever holds this may write.
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
        let lock_path = with_suffix(path, ".lock");
        ensure_ours(path, &lock_path)?;
        let lock = lock(path, &lock_path)?;
        mark(path, &lock_path)?;
        match Self::open_ours(path, &lock) {
            Err(error) if error.is_damage() => {
                set_aside(path, &error)?;
                Self::open_ours(path, &lock)
            }
            other => other,
        }
    }

    fn open_ours(path: &Path, lock: &File) -> Result<Self, HistoryError> {
        let failed = |error| HistoryError::Database { path: path.into(), doing: "open it", error };
        let lock = lock.try_clone().map_err(|error| HistoryError::Io {
            path: path.into(),
            doing: "hold its lock",
            error,
        })?;
        whole::ensure_header(path)?;
        let mut db = Connection::open(path).map_err(failed)?;
        prepare(&mut db).map_err(failed)?;
        let version = whole::version(&db, path)?;
        if version > schema::VERSION {
            return Err(HistoryError::Newer { path: path.into(), version });
        }
        schema::migrate(&mut db).map_err(failed)?;
        let catalog = Catalog::read(&db).map_err(failed)?;
        let ledger = replay(&db, &catalog).map_err(failed)?;
        let befores = befores(&db, &catalog).map_err(failed)?;
        let path = path.to_owned();
        let since_whole = HashMap::new();
        Ok(Store { db, path, catalog, ledger, befores, since_whole, _lock: lock })
    }

    fn failed(&self, doing: &'static str) -> impl FnOnce(rusqlite::Error) -> HistoryError + use<> {
        let path = self.path.clone();
        move |error| HistoryError::Database { path, doing, error }
    }

    /// The totals of a fabric's ports, for a judge to go on from.
    pub fn memory(&self, fabric: &str) -> Result<Memory, HistoryError> {
        self.read_memory(fabric).map_err(self.failed("read totals from it"))
    }

    fn read_memory(&self, fabric: &str) -> rusqlite::Result<Memory> {
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
        let mut memory = Memory::new();
        for (port, totals) in of.into_iter().flat_map(|of| self.ledger.of(of)) {
            let Some(end) = ends.get(&port) else { continue };
            let remembered = memory.entry(*end).or_default();
            for (counter, total) in totals.iter() {
                remembered.set(counter, total);
                if let Some(before) = self.befores.get(&port) {
                    remembered.set_before(counter, before[counter as usize]);
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
        sweep: Option<(&Snapshot, &Findings)>,
    ) -> Result<Written, HistoryError> {
        let failed = self.failed("write to it");
        self.write_all(fabric, events, sweep).map_err(failed)
    }

    fn write_all(
        &mut self,
        fabric: &str,
        events: &[Event],
        sweep: Option<(&Snapshot, &Findings)>,
    ) -> rusqlite::Result<Written> {
        let Store { db, catalog, ledger, befores, since_whole, .. } = self;
        let transaction = db.transaction_with_behavior(TransactionBehavior::Immediate)?;
        let numbers = catalog.numbers().clone();
        let blank = Arc::default();
        let began = sweep.map(|(snapshot, _)| snapshot.anchor.wall_of(snapshot.began));
        let at = began.or(events.first().map(|event| event.at)).map_or(0, micros_of);
        // Without a sweep, nothing is known of the fabric but what was known before.
        let places = match sweep {
            Some((snapshot, _)) => catalog.follow(&transaction, fabric, &snapshot.fabric, at)?,
            None => catalog.follow(&transaction, fabric, &blank, at)?,
        };
        let mut written = Written::default();
        if let Some((snapshot, findings)) = sweep {
            let since = since_whole.entry(places.fabric).or_insert(WHOLE_EVERY);
            let mut grown =
                Grown::take(ledger, places, snapshot, |counter| numbers.number(counter));
            let span = (at, micros_of(snapshot.anchor.wall_of(snapshot.ended)));
            for (tier, frame) in grown.frames() {
                written.frames +=
                    u64::from(insert(&transaction, places.fabric, tier, span, frame)?);
            }
            *since += 1;
            if *since >= WHOLE_EVERY {
                let mut whole = Frame::default();
                for (port, totals) in ledger.of(places.fabric) {
                    let values = numbers.in_order();
                    let values =
                        values.filter_map(|(number, counter)| Some((number, totals.get(counter)?)));
                    whole.push(port, Duration::ZERO, values);
                }
                if insert(&transaction, places.fabric, Tier::All, span, &mut whole)? {
                    written.frames += 1;
                    // What it says all of is not needed any more.
                    transaction.execute(
                        "DELETE FROM frames WHERE fabric = ?1 AND tier IN (2, 3)
                         AND id < last_insert_rowid()",
                        [places.fabric],
                    )?;
                    *since = 0;
                }
            }
            write_befores(&transaction, befores, places, findings, &|it| numbers.number(it))?;
        }
        for event in events {
            insert_event(&transaction, places, event)?;
            written.events += 1;
        }
        transaction.commit()?;
        Ok(written)
    }
}

/// What the counters of a sweep have grown by, by tier.
#[derive(Default)]
struct Grown {
    rare: Frame,
    busy: Frame,
    first: Frame,
}

impl Grown {
    fn take(
        ledger: &mut Ledger,
        places: &Places,
        snapshot: &Snapshot,
        number: impl Fn(Counter) -> u8,
    ) -> Self {
        let mut grown = Grown::default();
        let [mut rare, mut busy, mut first] = [const { Vec::<(u8, u64)>::new() }; 3];
        for (&port, reading) in places.ports.iter().zip(&snapshot.readings) {
            let Some(reading) = reading else { continue };
            let totals = ledger.port(places.fabric, port);
            for counter in Counter::all() {
                let Some(total) = reading.get(counter) else { continue };
                let (of, value) = match totals.get(counter) {
                    Some(last) if last == total => continue,
                    Some(last) if last < total && Tier::of(counter) == Tier::Rare => {
                        (&mut rare, total - last)
                    }
                    Some(last) if last < total => (&mut busy, total - last),
                    // Never seen, or begun anew: of what it came to before nobody told the judge.
                    _ => (&mut first, total),
                };
                of.push((number(counter), value));
                totals.set(counter, total);
            }
            let after = reading.at.since(snapshot.began);
            for (values, frame) in [
                (&mut rare, &mut grown.rare),
                (&mut busy, &mut grown.busy),
                (&mut first, &mut grown.first),
            ] {
                values.sort_unstable();
                frame.push(port, after, values.drain(..));
            }
        }
        grown
    }

    fn frames(&mut self) -> [(Tier, &mut Frame); 3] {
        [(Tier::First, &mut self.first), (Tier::Rare, &mut self.rare), (Tier::Busy, &mut self.busy)]
    }
}

/// Tells whether there was anything to put in.
fn insert(
    db: &Transaction<'_>,
    fabric: i64,
    tier: Tier,
    (began, ended): (i64, i64),
    frame: &mut Frame,
) -> rusqlite::Result<bool> {
    if frame.is_empty() {
        return Ok(false);
    }
    let packed =
        frame.pack().map_err(|error| rusqlite::Error::ToSqlConversionFailure(Box::new(error)))?;
    db.prepare_cached(
        "INSERT INTO frames (fabric, tier, began, ended, data) VALUES (?1, ?2, ?3, ?4, ?5)",
    )?
    .execute(params![fabric, tier as u8, began, ended, packed])?;
    Ok(true)
}

fn insert_event(db: &Transaction<'_>, places: &Places, event: &Event) -> rusqlite::Result<()> {
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
    befores: &mut HashMap<u32, Arc<Before>>,
    places: &Places,
    findings: &Findings,
    number: &impl Fn(Counter) -> u8,
) -> rusqlite::Result<()> {
    for (&port, found) in places.ports.iter().zip(&findings.ports) {
        let Some(before) = &found.before else { continue };
        let last = befores.get(&port);
        if last.is_some_and(|last| Arc::ptr_eq(last, before)) {
            continue;
        }
        for counter in Counter::all() {
            let count = before[counter as usize];
            if count != last.map_or(0, |last| last[counter as usize]) {
                db.prepare_cached(
                    "INSERT OR REPLACE INTO befores (port, counter, count) VALUES (?1, ?2, ?3)",
                )?
                .execute(params![port, number(counter), count.cast_signed()])?;
            }
        }
        befores.insert(port, Arc::clone(before));
    }
    Ok(())
}

/// The latest totals, as the file has them.
fn replay(db: &Connection, catalog: &Catalog) -> rusqlite::Result<Ledger> {
    let last: u32 = db.query_row("SELECT coalesce(max(id), 0) FROM ports", [], |row| row.get(0))?;
    let mut statement = db.prepare(
        "SELECT fabric, tier, data FROM frames AS it WHERE id >= coalesce(
             (SELECT max(id) FROM frames WHERE tier = 3 AND fabric = it.fabric), 0)
         ORDER BY id",
    )?;
    let mut ledger = Ledger::default();
    let mut rows = statement.query([])?;
    while let Some(row) = rows.next()? {
        let (fabric, tier): (i64, u8) = (row.get(0)?, row.get(1)?);
        match Frame::unpack(row.get_ref(2)?.as_blob()?) {
            Ok(frame) => {
                let absolute = tier >= Tier::First as u8;
                ledger.replay(fabric, &frame, absolute, catalog.numbers(), last);
            }
            // What it had is missed by the sums in the file alone: ports still show what they counted.
            Err(error) => tracing::warn!(%error, "a sweep of the history is passed over"),
        }
    }
    Ok(ledger)
}

fn befores(db: &Connection, catalog: &Catalog) -> rusqlite::Result<HashMap<u32, Arc<Before>>> {
    let mut befores: HashMap<u32, Before> = HashMap::new();
    let mut statement = db.prepare("SELECT port, counter, count FROM befores")?;
    let mut rows = statement.query([])?;
    while let Some(row) = rows.next()? {
        let Some(counter) = catalog.numbers().counter(row.get(1)?) else { continue };
        let before = befores.entry(row.get(0)?).or_insert([0; _]);
        before[counter as usize] = row.get::<_, i64>(2)?.cast_unsigned();
    }
    Ok(befores.into_iter().map(|(port, before)| (port, Arc::new(before))).collect())
}
