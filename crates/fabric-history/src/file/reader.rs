//! The reader of a file, which answers queries also while an exporter writes it.

use std::path::{Path, PathBuf};
use std::time::SystemTime;

use rusqlite::{Connection, Result};

use crate::cable_life::CableMatches;
use crate::file::connection::open_to_read;
use crate::file::counter_ids::CounterIds;
use crate::file::lock::{is_marked, lock_path};
use crate::file::paths::ensure_regular;
use crate::file::readings::{self, Readings};
use crate::file::sql::{Order, Sql};
use crate::file::{cables, coverage, schema, tables, timeline};
use crate::model::{Cable, Coverage, ErrorDelta, Event, FabricState, Port, Series, Span, Window};
use crate::source::{Answer, EventFilter, Events, Page, SeriesDetail, Source};
use crate::{HistoryError, time_of};
use ib_mad::PortKey;

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
        let db = open_to_read(path).map_err(failed)?;
        let application: i32 =
            db.pragma_query_value(None, "application_id", |row| row.get(0)).map_err(failed)?;
        if application != tables::APPLICATION {
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

    fn readings(&self) -> Readings<'_> {
        Readings { sql: self.sql(), counter_ids: &self.counter_ids }
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

    /// The events that a filter and a predicate select, the latest first: `most` of them after the first `skip`, and
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
        let ports = self.read(|| self.sql().ports_referred_to(called))?;
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
        Ok(self.read(|| readings::error_deltas(self.readings(), window))?)
    }

    fn series(
        &self,
        ports: &[PortKey],
        detail: SeriesDetail,
        window: Window,
    ) -> Answer<Vec<Series>> {
        let (readings, most) = (self.readings(), self.max_readings);
        let series = self.read(|| readings::series(readings, ports, detail, window, most))?;
        Ok(series.ok_or(HistoryError::TooMuch(most))?)
    }

    fn fabrics(&self, at: SystemTime) -> Answer<Vec<FabricState>> {
        Ok(self.read(|| timeline::fabrics(self.sql(), at, &|_| true))?)
    }

    fn cable(&self, serial: &str) -> Answer<CableMatches> {
        Ok(self.read(|| cables::find(self.readings(), serial))?)
    }

    fn coverage(&self, window: Window) -> Answer<Coverage> {
        Ok(self.read(|| coverage::coverage(self.sql(), window))?)
    }
}
