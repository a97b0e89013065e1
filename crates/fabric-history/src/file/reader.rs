//! The reader of a file, which answers queries also while an exporter writes it.

use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::SystemTime;

use rusqlite::{Connection, Result};

use crate::cable_life::CableMatches;
use crate::cursor::Cursor;
use crate::file::connection::open_to_read;
use crate::file::counter_ids::CounterIds;
use crate::file::lock::{is_marked, lock_path};
use crate::file::paths::ensure_regular;
use crate::file::readings::{self, Readings};
use crate::file::sql::{Order, Sql};
use crate::file::{cables, coverage, schema, tables, timeline};
use crate::model::{Cable, Coverage, ErrorDelta, Event, FabricState, Port, Series, Span, Window};
use crate::past::{self, Past};
use crate::source::{Answer, EventFilter, EventOrder, Events, Page, SeriesDetail, Source};
use crate::{HistoryError, time_of};
use fabric_observation::Observation;
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

    /// The fabrics as they were published at a moment. `present` are the fabrics as they are now: what identifies hardware
    /// is taken from them.
    pub fn past(&self, at: SystemTime, present: &[Arc<Observation>]) -> Result<Past, HistoryError> {
        self.read(|| past::read(self.sql(), &self.counter_ids, at, present))
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

    /// A page of events in an order; with its last one as the next cursor if there are more.
    fn select(&self, filter: &EventFilter, order: Order, limit: NonZeroUsize) -> Result<Events> {
        let mut found = Events::default();
        let mut last = None;
        self.sql().events(filter, order, &mut |at, event| {
            if found.events.len() == limit.get() {
                found.next = last;
                return false;
            }
            found.events.push(event);
            last = Some(at);
            true
        })?;
        Ok(found)
    }

    /// A page of events as they were recorded. Its next cursor is that of the event that was recorded last, whether the
    /// filter selects it or not. After a cursor of another file, which this one has replaced, it begins with the events
    /// that happened since.
    fn recorded(&self, filter: &EventFilter, page: Page) -> Result<Events> {
        let (mut filter, mut after) = (filter.clone(), page.after.unwrap_or(Cursor::BEGIN));
        if !self.sql().has_had_event(after)? {
            filter.window.from = filter.window.from.max(time_of(after.at));
            after = Cursor::BEGIN;
        }
        let mut found = self.select(&filter, Order::RecordedAfter(after.id), page.limit)?;
        if found.next.is_none() {
            let latest = self.sql().latest_recorded_event()?;
            found.next = latest.or(page.after).or(Some(Cursor::BEGIN));
        }
        Ok(found)
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
        Ok(self.read(|| match page.order {
            EventOrder::Time => self.select(filter, Order::EarliestFirst(page.after), page.limit),
            EventOrder::Recorded => self.recorded(filter, page),
        })?)
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::EventKind;

    /// A file of a fabric with these events, by their times in seconds. Those of odd times are flaps.
    fn write(path: &Path, events: &[i64]) {
        let mut db = Connection::open(path).unwrap();
        if schema::version(&db).unwrap() == 0 {
            schema::create(&mut db).unwrap();
            db.execute("INSERT INTO fabrics VALUES (1, 'ib0')", []).unwrap();
        }
        let sql = "INSERT INTO events (at, fabric, kind, place, text) VALUES (?1, 1, ?2, '', '')";
        for at in events {
            let kind = if at % 2 == 1 { EventKind::Flap } else { EventKind::LinkUp };
            db.execute(sql, (at * 1_000_000, kind.label())).unwrap();
        }
    }

    /// Follows a file: each call returns the times of the events since the last one, in seconds.
    struct Follower(EventFilter, Page);

    impl Follower {
        fn of(kinds: &[EventKind]) -> Self {
            let (from, to) = (SystemTime::UNIX_EPOCH, time_of(1 << 50));
            let kinds = kinds.to_vec();
            let filter = EventFilter { kinds, ..EventFilter::all(Window { from, to }) };
            Follower(filter, Page::recorded(None))
        }

        fn next(&mut self, path: &Path) -> Vec<u64> {
            let Follower(filter, page) = self;
            let found = Reader::open(path).unwrap().page(filter, *page).unwrap();
            assert!(found.next.is_some());
            page.after = found.next;
            let since = |at: SystemTime| at.duration_since(SystemTime::UNIX_EPOCH).unwrap();
            found.events.iter().map(|event| since(event.at).as_secs()).collect()
        }
    }

    #[test]
    fn event_that_is_recorded_late_follows_those_that_happened_after_it() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("history.db");
        write(&file, &[10, 20]);
        let (mut all, mut flaps) = (Follower::of(&[]), Follower::of(&[EventKind::Flap]));
        assert_eq!((all.next(&file), flaps.next(&file)), (vec![10, 20], vec![]));
        assert_eq!(flaps.1.after, all.1.after, "events that are not wanted are passed, too");
        // A flap has the time of the link down.
        write(&file, &[15, 30]);
        assert_eq!((all.next(&file), flaps.next(&file)), (vec![15, 30], vec![15]));
        assert_eq!((all.next(&file), flaps.next(&file)), (vec![], vec![]));
        all.1.limit = NonZeroUsize::MIN;
        write(&file, &[25, 40]);
        assert_eq!(
            (all.next(&file), all.next(&file), all.next(&file)),
            (vec![25], vec![40], vec![])
        );
    }

    #[test]
    fn following_goes_on_in_a_file_that_replaced_another() {
        let folder = tempfile::tempdir().unwrap();
        let [file, other, longer] =
            ["history.db", "other.db", "longer.db"].map(|name| folder.path().join(name));
        write(&file, &[]);
        let mut all = Follower::of(&[]);
        assert_eq!(all.next(&file), [0; 0], "of an empty file");
        write(&file, &[10, 20, 30]);
        assert_eq!(all.next(&file), [10, 20, 30]);
        write(&other, &[40]);
        assert_eq!(all.next(&other), [40], "numbers start again");
        write(&longer, &[5, 50, 60]);
        assert_eq!(all.next(&longer), [50, 60], "what is older than the latest event is known");
        write(&longer, &[70]);
        assert_eq!(all.next(&longer), [70]);
        // All are dropped for their age: numbers start again in the same file.
        Connection::open(&longer).unwrap().execute("DELETE FROM events", []).unwrap();
        assert_eq!(all.next(&longer), [0; 0]);
        write(&longer, &[80]);
        assert_eq!(all.next(&longer), [80]);
        // Only the oldest are.
        write(&longer, &[90]);
        Connection::open(&longer).unwrap().execute("DELETE FROM events WHERE id = 1", []).unwrap();
        assert_eq!(all.next(&longer), [90]);
    }
}
