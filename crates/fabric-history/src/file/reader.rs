//! The reader of a file, which answers queries also while an exporter writes it; and what of a window it has.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use rusqlite::{Connection, OpenFlags, Result};

use crate::cable_life::CableMatches;
use crate::file::lock::{is_marked, lock_path};
use crate::file::record_kind::{CounterIds, RecordKind};
use crate::file::sql::{Order, PortRow, Sql};
use crate::file::{BUSY, cables, ensure_regular, packed, schema, timeline, walk, with_suffix};
use crate::model::{
    Cable, Coverage, ErrorDelta, Event, FabricCoverage, FabricState, Port, Series, Span, Window,
};
use crate::source::{Answer, EventFilter, Events, Page, SeriesDetail, Source};
use crate::{HistoryError, time_of};
use ib_fabric::reference::{PortReference, Reference};
use ib_mad::{PortKey, PortNumber};

/// A file that is read.
#[derive(Debug)]
pub struct Reader {
    db: Connection,
    pub(super) path: PathBuf,
    pub(crate) counter_ids: CounterIds,
    /// Maximum number of readings in a response.
    pub(super) max_readings: usize,
}

impl Reader {
    /// Opens an existing file.
    pub fn open(path: &Path) -> Result<Self, HistoryError> {
        std::fs::metadata(path).map_err(HistoryError::io(path, "open the file"))?;
        // Only SQLite reads the header: closing another descriptor would drop its locks (see `validate`).
        ensure_regular(path)?;
        let failed = |error: rusqlite::Error| {
            let is_none = error.sqlite_error_code() == Some(rusqlite::ErrorCode::NotADatabase);
            if is_none && !is_marked(&lock_path(path)) {
                return HistoryError::foreign(path);
            }
            HistoryError::database(path, "read the file")(error)
        };
        let db = open(path).map_err(failed)?;
        let application: i32 =
            db.pragma_query_value(None, "application_id", |row| row.get(0)).map_err(failed)?;
        if application != schema::APPLICATION {
            return Err(HistoryError::foreign(path));
        }
        let version = schema::version(&db).map_err(failed)?;
        schema::ensure_version(path, version)?;
        let counter_ids = CounterIds::read(&db).map_err(failed)?;
        Ok(Reader { db, path: path.into(), counter_ids, max_readings: usize::MAX })
    }

    /// Limits the number of readings in a response: a larger response is an error.
    #[must_use]
    pub fn limited(self, max_readings: usize) -> Self {
        Reader { max_readings, ..self }
    }

    /// Interrupts queries, also one that runs, once `is_over` says so.
    pub fn interrupted_when(
        mut self,
        is_over: impl FnMut() -> bool + Send + 'static,
    ) -> Result<Self, HistoryError> {
        // SQLite asks each time a statement has executed this many instructions: those of a few rows, since unpacking
        // a row takes longer than reading it.
        self.db.progress_handler(100, Some(is_over)).map_err(self.failed())?;
        Ok(self)
    }

    /// Reads in one transaction, so that the response is consistent despite concurrent writes and deletions.
    pub(crate) fn read<T>(&self, answer: impl FnOnce() -> Result<T>) -> Result<T, HistoryError> {
        self.in_one_transaction(|| answer().map_err(self.failed()))
    }

    /// Runs a function with another error type in one transaction.
    pub(crate) fn in_one_transaction<T, E: From<HistoryError>>(
        &self,
        work: impl FnOnce() -> Result<T, E>,
    ) -> Result<T, E> {
        let failed = |error| E::from(self.failed()(error));
        let transaction = self.db.unchecked_transaction().map_err(failed)?;
        let answer = work()?;
        transaction.finish().map_err(failed)?;
        Ok(answer)
    }

    /// How many sweeps and events it has.
    pub fn counts(&self) -> Result<(usize, usize), HistoryError> {
        let count = |sql| self.sql().value::<u32>(sql, []).map(|count| count.unwrap_or(0) as usize);
        self.read(|| {
            Ok((count("SELECT count(*) FROM sweeps")?, count("SELECT count(*) FROM events")?))
        })
    }

    pub(crate) fn sql(&self) -> Sql<'_> {
        Sql(&self.db)
    }

    pub(crate) fn failed(&self) -> impl Fn(rusqlite::Error) -> HistoryError + Copy {
        HistoryError::database(&self.path, "read the file")
    }

    /// The states at a time of the fabrics that are not among some others.
    pub fn fabrics_beside(
        &self,
        others: &[FabricState],
        at: SystemTime,
    ) -> Result<Vec<FabricState>, HistoryError> {
        let is_other = |name: &str| others.iter().any(|other| other.fabric == name);
        self.read(|| timeline::fabrics(self.sql(), at, &|name| !is_other(name)))
    }

    /// Of the events that a filter and a predicate select, the latest first, `most` after the first `skip`; and
    /// whether there are more. Only those that are returned are held in memory.
    pub fn latest(
        &self,
        filter: &EventFilter,
        means: &dyn Fn(&Event) -> bool,
        mut skip: usize,
        most: usize,
    ) -> Result<(Vec<Event>, bool), HistoryError> {
        let (mut events, mut is_more) = (Vec::new(), false);
        self.read(|| {
            self.sql().events(filter, Order::LatestFirst, &mut |_, event| {
                if !means(&event) {
                    return true;
                }
                if skip > 0 {
                    skip -= 1;
                    return true;
                }
                is_more = events.len() == most;
                if !is_more {
                    events.push(event);
                }
                !is_more
            })
        })?;
        Ok((events, is_more))
    }

    pub(super) fn ports_called(&self, called: &str) -> Result<Vec<PortRow>> {
        let reference = Reference::new(called);
        if let Some(link) = reference.link {
            return self.sql().ports_at(&link.ends());
        }
        let mut found = Vec::new();
        for PortReference { node, number } in &reference.ports {
            found.extend(self.ports_of(node, Some(*number))?);
        }
        // The name of a node may look like a port.
        if found.is_empty() { self.ports_of(&reference.text, None) } else { Ok(found) }
    }

    fn ports_of(&self, node: &str, number: Option<PortNumber>) -> Result<Vec<PortRow>> {
        // Short ones are names, even if all their letters are hex digits.
        let is_guid = node.len() > 10 || node.starts_with("0x");
        let guid = Reference::new(node).guid.filter(|_| is_guid);
        self.sql().ports_called(node, guid, number)
    }
}

impl Source for Reader {
    fn name(&self) -> String {
        self.path.display().to_string()
    }

    fn span(&self) -> Answer<Span> {
        let first = self.sql().first_began().map_err(self.failed())?.map(time_of);
        let last = self.sql().last_ended().map_err(self.failed())?.map(time_of);
        Ok(Span { first, last })
    }

    fn copied(&self) -> Answer<Option<Window>> {
        let is_copy = "SELECT 1 FROM sqlite_schema WHERE type = 'table' AND name = 'copied'";
        let copied = || {
            if self.sql().value::<i64>(is_copy, [])?.is_none() {
                return Ok(None);
            }
            let from: Option<i64> = self.sql().value("SELECT since FROM copied", [])?;
            let to: Option<i64> = self.sql().value("SELECT until FROM copied", [])?;
            Ok(from.zip(to).map(|(from, to)| Window { from: time_of(from), to: time_of(to) }))
        };
        Ok(self.read(copied)?)
    }

    fn ports(&self, called: &str) -> Answer<Vec<Port>> {
        let ports = self.read(|| self.ports_called(called))?;
        Ok(ports.into_iter().map(|(_, port)| port).collect())
    }

    fn page(&self, filter: &EventFilter, page: Page) -> Answer<Events> {
        let mut found = Events::default();
        let mut last = None;
        self.read(|| {
            self.sql().events(filter, Order::EarliestFirst(page.after), &mut |at, event| {
                if found.events.len() == page.limit.get() {
                    found.next = last;
                    return false;
                }
                found.events.push(event);
                last = Some(at);
                true
            })
        })?;
        Ok(found)
    }

    fn cables(&self, ports: &[PortKey], window: Window) -> Answer<Vec<Cable>> {
        Ok(self.read(|| timeline::cables(self.sql(), ports, window))?)
    }

    fn error_deltas(&self, window: Window) -> Answer<Vec<ErrorDelta>> {
        Ok(self.read(|| walk::error_deltas(self, window))?)
    }

    fn series(
        &self,
        ports: &[PortKey],
        detail: SeriesDetail,
        window: Window,
    ) -> Answer<Vec<Series>> {
        let series = self.read(|| walk::series(self, ports, detail, window))?;
        Ok(series.ok_or(HistoryError::TooMuch(self.max_readings))?)
    }

    fn fabrics(&self, at: SystemTime) -> Answer<Vec<FabricState>> {
        Ok(self.read(|| timeline::fabrics(self.sql(), at, &|_| true))?)
    }

    fn cable(&self, serial: &str) -> Answer<CableMatches> {
        Ok(self.read(|| cables::find(self, serial))?)
    }

    fn coverage(&self, window: Window) -> Answer<Coverage> {
        Ok(self.read(|| coverage(self.sql(), window))?)
    }
}

/// Opens a file to read. If there is no writer, and we may not create the files beside it that SQLite needs,
/// it is read as immutable.
fn open(path: &Path) -> Result<Connection> {
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

/// Number of intervals without a sweep that counts as a gap.
const GAP: f64 = 2.5;

/// Sweeps before a window from which the interval is computed if there are too few in it.
const BEFORE: u32 = 20;

pub(super) fn coverage(sql: Sql<'_>, window: Window) -> Result<Coverage> {
    let mut fabrics = BTreeMap::new();
    for (fabric, name) in sql.fabrics()? {
        fabrics.insert(name, of_fabric(sql, fabric, window)?);
    }
    Ok(Coverage { fabrics, damaged: damaged(sql, window)? })
}

fn of_fabric(sql: Sql<'_>, fabric: i64, window: Window) -> Result<FabricCoverage> {
    let (from, to) = window.micros();
    let sweeps = sql.sweeps(fabric, from, to)?;
    let length = |(began, since): &(i64, Option<i64>)| Some(began - (*since)?);
    let mut lengths: Vec<i64> = sweeps.iter().filter_map(length).collect();
    if lengths.is_empty() {
        lengths.extend(sql.sweeps_until(fabric, to, BEFORE)?.iter().filter_map(length));
    }
    lengths.sort_unstable();
    let interval = lengths.get(lengths.len() / 2).map_or(0.0, |micros| *micros as f64 / 1e6);
    // After a single sweep it is not known when the next one was due.
    let most = if interval > 0.0 { GAP * interval } else { f64::INFINITY };
    let most = Duration::try_from_secs_f64(most).unwrap_or(Duration::MAX);
    let mut ends = vec![window.from];
    ends.extend(sweeps.iter().map(|(began, _)| time_of(*began)));
    ends.push(window.to);
    let spans = ends.iter().zip(ends.iter().skip(1)).map(|(&from, &to)| Window { from, to });
    let gaps = spans.filter(|gap| sweeps.is_empty() || gap.length() > most).collect();
    // The earliest frame has what was counted since the sweep before it.
    let traffic_from = match sql.first_frame(RecordKind::TrafficDeltas, fabric)? {
        Some(first) => Some(time_of(sql.sweep_before(fabric, first)?).max(window.from)),
        None => None,
    };
    Ok(FabricCoverage { sweeps: sweeps.len(), interval, gaps, traffic_from })
}

/// How many sweeps' errors cannot be read. (Traffic is not checked for this: it is hundreds of times as much.)
fn damaged(sql: Sql<'_>, window: Window) -> Result<usize> {
    let (from, to) = window.micros();
    let mut damaged = 0;
    sql.frames(RecordKind::ErrorDeltas, None, None, from..=to, &mut |row| {
        damaged += usize::from(!packed::is_whole(row.data));
        Ok(())
    })?;
    for hour in sql.hours((from, to))? {
        let mut is_whole = true;
        sql.digests(RecordKind::ErrorDeltas, hour.id..=hour.id, None, &mut |_, data| {
            is_whole &= packed::is_whole(data);
            Ok(())
        })?;
        damaged += if is_whole { 0 } else { hour.count };
    }
    Ok(damaged)
}
