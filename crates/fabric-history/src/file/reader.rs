//! Answers from the file, also while an exporter writes it.

use std::collections::HashMap;
use std::fmt::Write;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use rusqlite::types::Value;
use rusqlite::{Connection, InterruptHandle, OpenFlags, OptionalExtension, Row, params_from_iter};

use crate::model::{Cable, Cover, Moved, Port, Series, Span, Then, Told, Window};
use crate::page::{Cursor, Events, Page};
use crate::source::{AskError, Detail, Paged, Source, Wanted};
use crate::{HistoryError, micros_of, time_of};
use ib_fabric::topology::{End, LinkId};
use ib_mad::{Guid, PortNumber};

use super::numbers::{Numbers, guid_bits, numbers};
use super::{is_marked, lock_path, schema, whole, with_suffix};

/// A history that is read.
#[derive(Debug)]
pub struct Reader {
    pub(super) db: Connection,
    path: PathBuf,
    pub(super) numbers: Numbers,
    /// How many readings an answer may have.
    pub(super) most_steps: usize,
}

/// A port as the file knows it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Place {
    /// Its number in the file.
    pub id: u32,
    /// The port itself.
    pub port: Port,
}

/// By a CROSS JOIN SQLite goes through the events in the order of their index and joins the rest to each
/// (sqlite.org/optoverview.html, 9.1): a page does not sort all that is behind it.
const EVENT: &str = "
    SELECT at, fabrics.name, events.kind, nodes.guid, ports.number, place, text, detail,
        low_node.guid, low.number, high_node.guid, high.number, events.id
    FROM events CROSS JOIN fabrics ON fabrics.id = events.fabric
    LEFT JOIN nodes ON nodes.id = events.node
    LEFT JOIN ports ON ports.id = events.port
    LEFT JOIN links ON links.id = events.link
    LEFT JOIN ports AS low ON low.id = links.low LEFT JOIN nodes AS low_node ON low_node.id = low.node
    LEFT JOIN ports AS high ON high.id = links.high LEFT JOIN nodes AS high_node ON high_node.id = high.node
    WHERE at BETWEEN ? AND ?";

/// The order in which events are returned.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Order {
    EarliestFirst,
    LatestFirst,
}

impl Order {
    fn sql(self) -> &'static str {
        match self {
            Order::EarliestFirst => " ORDER BY at, events.id",
            Order::LatestFirst => " ORDER BY at DESC, events.id DESC",
        }
    }
}

/// Some of the events in an order.
struct Part<'a> {
    order: Order,
    /// Of those that are meant,
    means: &'a dyn Fn(&Told) -> bool,
    /// after so many
    skip: usize,
    /// so many at most.
    most: usize,
}

const PLACE: &str = "
    SELECT ports.id, guid, coalesce(
        (SELECT name FROM names WHERE names.node = nodes.id ORDER BY since DESC LIMIT 1), ''), number,
        fabrics.name
    FROM ports JOIN nodes ON nodes.id = ports.node JOIN fabrics ON fabrics.id = nodes.fabric";

impl Reader {
    /// Opens a file that is there.
    pub fn open(path: &Path) -> Result<Self, HistoryError> {
        if let Err(error) = std::fs::metadata(path) {
            return Err(HistoryError::Io { path: path.into(), doing: "find it", error });
        }
        // The header is left to SQLite: closing a file of our own would take its locks off (see `whole`).
        whole::ensure_regular(path)?;
        let failed = |error: rusqlite::Error| {
            let is_none = error.sqlite_error_code() == Some(rusqlite::ErrorCode::NotADatabase);
            if is_none && !is_marked(&lock_path(path)) {
                return HistoryError::Foreign { path: path.into() };
            }
            HistoryError::database(path, "read it", error)
        };
        let db = open(path).map_err(failed)?;
        let application: i32 =
            db.pragma_query_value(None, "application_id", |row| row.get(0)).map_err(failed)?;
        if application != schema::APPLICATION {
            return Err(HistoryError::Foreign { path: path.into() });
        }
        let version = schema::version(&db).map_err(failed)?;
        if version > schema::VERSION {
            return Err(HistoryError::Newer { path: path.into(), version });
        }
        schema::look_beside(&db).map_err(failed)?;
        let numbers = numbers(&db).map_err(failed)?;
        Ok(Reader { db, path: path.into(), numbers, most_steps: usize::MAX })
    }

    /// The same, whose answers have so many readings at most: a larger answer is an error.
    #[must_use]
    pub fn limited(self, most_steps: usize) -> Self {
        Reader { most_steps, ..self }
    }

    /// Asks something: whatever is written and dropped meanwhile, all of the answer is of one moment.
    pub(super) fn ask<T>(
        &self,
        question: impl FnOnce() -> rusqlite::Result<T>,
    ) -> Result<T, HistoryError> {
        self.at_once(|| question().map_err(self.failed()))
    }

    /// The same for what may fail otherwise, too.
    pub(crate) fn at_once<T, E: From<HistoryError>>(
        &self,
        question: impl FnOnce() -> Result<T, E>,
    ) -> Result<T, E> {
        let failed = |error| E::from(self.failed()(error));
        let moment = self.db.unchecked_transaction().map_err(failed)?;
        let answer = question()?;
        moment.finish().map_err(failed)?;
        Ok(answer)
    }

    /// How many sweeps and events it has.
    pub fn counts(&self) -> Result<(usize, usize), HistoryError> {
        let count = |table: &str| {
            let sql = format!("SELECT count(*) FROM {table}");
            self.db.query_row(&sql, [], |row| row.get::<_, u32>(0)).map(|count| count as usize)
        };
        self.ask(|| Ok((count("sweeps")?, count("events")?)))
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    pub(crate) fn failed(&self) -> impl FnOnce(rusqlite::Error) -> HistoryError + use<> {
        let path = self.path.clone();
        move |error| HistoryError::database(&path, "read it", error)
    }

    /// By the order of writing: a clock that was wrong for a while is passed over.
    fn read_span(&self) -> rusqlite::Result<Span> {
        let at = |sql: &str| -> rusqlite::Result<_> {
            let at: Option<i64> = self.db.query_row(sql, [], |row| row.get(0)).optional()?;
            Ok(at.map(time_of))
        };
        Ok(Span {
            first: at("SELECT began FROM sweeps ORDER BY rowid LIMIT 1")?,
            last: at("SELECT ended FROM sweeps ORDER BY rowid DESC LIMIT 1")?,
        })
    }

    /// Tells events one at a time, the earliest first.
    pub(crate) fn tell<E: From<HistoryError>>(
        &self,
        wanted: &Wanted,
        see: &mut dyn FnMut(Told) -> Result<(), E>,
    ) -> Result<(), E> {
        let failed = |error| E::from(self.failed()(error));
        let (sql, values) = asked(wanted, Order::EarliestFirst, None);
        let mut statement = self.db.prepare(&sql).map_err(failed)?;
        let mut rows = statement.query(params_from_iter(values)).map_err(failed)?;
        while let Some(row) = rows.next().map_err(failed)? {
            see(told(row).map_err(failed)?)?;
        }
        Ok(())
    }

    /// Of the events that are wanted and meant, the latest first, some in the middle; and whether there are
    /// more behind them. Those that are not told are not kept.
    pub fn latest(
        &self,
        wanted: &Wanted,
        means: &dyn Fn(&Told) -> bool,
        skip: usize,
        most: usize,
    ) -> Result<(Vec<Told>, bool), HistoryError> {
        let part = Part { order: Order::LatestFirst, means, skip, most };
        let Events { events, next } = self.ask(|| self.part(wanted, None, &part))?;
        Ok((events, next.is_some()))
    }

    /// Some events after another one. What is not returned is not kept.
    fn part(
        &self,
        wanted: &Wanted,
        after: Option<Cursor>,
        part: &Part<'_>,
    ) -> rusqlite::Result<Events> {
        let (sql, values) = asked(wanted, part.order, after);
        let mut statement = self.db.prepare(&sql)?;
        let mut rows = statement.query(params_from_iter(values))?;
        let (mut events, mut last, mut passed) = (Vec::new(), None, 0);
        while let Some(row) = rows.next()? {
            let event = told(row)?;
            if !(part.means)(&event) {
                continue;
            }
            if events.len() == part.most {
                return Ok(Events { events, next: last });
            }
            if passed < part.skip {
                passed += 1;
            } else {
                events.push(event);
                last = Some(Cursor { at: row.get(0)?, id: row.get(12)? });
            }
        }
        Ok(Events { events, next: None })
    }

    /// Ends a question that goes on, from another thread.
    pub fn interrupt_handle(&self) -> InterruptHandle {
        self.db.get_interrupt_handle()
    }

    fn called(&self, called: &str) -> rusqlite::Result<Vec<Place>> {
        if let Ok(link) = called.parse::<LinkId>() {
            return self.at(&link.ends());
        }
        let port = called.strip_suffix(']').and_then(|rest| rest.rsplit_once('['));
        let port = port.and_then(|(node, number)| Some((node, number.parse::<u8>().ok()?)));
        let (name, number) = port.map_or((called, None), |(node, number)| (node, Some(number)));
        let guid = name.parse::<Guid>().ok().filter(|_| name.len() > 10).map(guid_bits);
        // A name that several nodes share means all of them: each has GUID digits behind it.
        let of_node = " WHERE ports.node IN (SELECT node FROM names WHERE name = ?1
                OR name > ?1 || '#' AND name < ?1 || '$' AND length(name) - length(?1) BETWEEN 7 AND 17
                AND substr(name, length(?1) + 2) NOT GLOB '*[^0-9a-f]*'
            UNION SELECT id FROM nodes WHERE guid = ?2) AND ports.number = coalesce(?3, ports.number)";
        self.places(of_node, [Value::from(name.to_owned()), guid.into(), number.into()])
    }

    /// Some ports, as far as the file knows them.
    pub(crate) fn at(&self, ends: &[End]) -> rusqlite::Result<Vec<Place>> {
        let which = format!(" WHERE (guid, number) IN (VALUES {})", marks(ends.len(), "(?, ?)"));
        let of = |(guid, number): &End| [Value::from(guid_bits(*guid)), Value::from(*number)];
        if ends.is_empty() { Ok(Vec::new()) } else { self.places(&which, ends.iter().flat_map(of)) }
    }

    /// The ports with these numbers in the file.
    pub(super) fn numbered(&self, numbers: &[u32]) -> rusqlite::Result<HashMap<u32, Port>> {
        let mut ports = HashMap::new();
        // A statement has a length that it may have; that of so many numbers is a tenth of it.
        for numbers in numbers.chunks(10_000) {
            let list: Vec<String> = numbers.iter().map(u32::to_string).collect();
            let which = format!(" WHERE ports.id IN ({})", list.join(","));
            ports.extend(self.places(&which, [])?.into_iter().map(|it| (it.id, it.port)));
        }
        Ok(ports)
    }

    pub(crate) fn places(
        &self,
        which: &str,
        values: impl IntoIterator<Item = Value>,
    ) -> rusqlite::Result<Vec<Place>> {
        let mut statement = self.db.prepare(&format!("{PLACE}{which} ORDER BY guid, number"))?;
        statement.query_map(params_from_iter(values), place)?.collect()
    }
}

impl Paged for Reader {
    fn page(&self, wanted: &Wanted, page: Page) -> Result<Events, AskError> {
        let order = Order::EarliestFirst;
        let part = Part { order, means: &|_| true, skip: 0, most: page.limit.get() };
        Ok(self.ask(|| self.part(wanted, page.after, &part))?)
    }
}

impl Source for Reader {
    fn name(&self) -> String {
        self.path.display().to_string()
    }

    fn span(&self) -> Result<Span, AskError> {
        Ok(self.read_span().map_err(self.failed())?)
    }

    fn ports(&self, called: &str) -> Result<Vec<Port>, AskError> {
        let places = self.ask(|| self.called(called))?;
        Ok(places.into_iter().map(|place| place.port).collect())
    }

    fn events(&self, wanted: &Wanted) -> Result<Vec<Told>, AskError> {
        self.at_once(|| {
            let mut events = Vec::new();
            self.tell(wanted, &mut |event| {
                events.push(event);
                Ok::<_, AskError>(())
            })?;
            Ok(events)
        })
    }

    fn cables(&self, ports: &[End], window: Window) -> Result<Vec<Cable>, AskError> {
        Ok(self.ask(|| self.read_cables(ports, window))?)
    }

    fn moved(&self, window: Window) -> Result<Vec<Moved>, AskError> {
        Ok(self.ask(|| self.read_moved(window))?)
    }

    fn series(
        &self,
        ports: &[End],
        detail: Detail,
        window: Window,
    ) -> Result<Vec<Series>, AskError> {
        Ok(self.at_once(|| self.read_series(ports, detail, window))?)
    }

    fn fabrics(&self, at: SystemTime) -> Result<Vec<Then>, AskError> {
        Ok(self.ask(|| self.read_fabrics(at))?)
    }

    fn cover(&self, window: Window) -> Result<Cover, AskError> {
        Ok(self.ask(|| self.read_cover(window))?)
    }
}

/// The events that are wanted after another one, as SQL with its values.
fn asked(wanted: &Wanted, order: Order, after: Option<Cursor>) -> (String, Vec<Value>) {
    let mut sql = EVENT.to_owned();
    let [mut from, mut to] = [wanted.window.from, wanted.window.to].map(micros_of);
    // The index is searched from the other event on: a late page costs no more than an early one.
    match (after, order) {
        (None, _) => {}
        (Some(Cursor { at, .. }), Order::EarliestFirst) => from = from.max(at),
        (Some(Cursor { at, .. }), Order::LatestFirst) => to = to.min(at),
    }
    let mut values: Vec<Value> = vec![from.into(), to.into()];
    if let Some(Cursor { at, id }) = after {
        let beyond = if order == Order::EarliestFirst { '>' } else { '<' };
        // Writing to a string cannot fail.
        let _ = write!(sql, " AND (at {beyond} ? OR events.id {beyond} ?)");
        values.extend([at, id].map(Value::from));
    }
    if !wanted.kinds.is_empty() {
        let _ = write!(sql, " AND events.kind IN ({})", marks(wanted.kinds.len(), "?"));
        values.extend(wanted.kinds.iter().map(|kind| Value::from(kind.label().to_owned())));
    }
    if !wanted.nodes.is_empty() {
        let nodes = marks(wanted.nodes.len(), "?");
        let _ = write!(
            sql,
            " AND (nodes.guid IN ({nodes}) OR low_node.guid IN ({nodes}) OR high_node.guid IN ({nodes}))"
        );
        let guids = (0..3).flat_map(|_| &wanted.nodes);
        values.extend(guids.map(|guid| Value::from(guid_bits(*guid))));
    }
    if !wanted.ports.is_empty() {
        let ports = marks(wanted.ports.len(), "(?, ?)");
        let nodes = marks(wanted.ports.len(), "?");
        // What befalls a node befalls its ports.
        let _ = write!(
            sql,
            " AND ((nodes.guid, ports.number) IN (VALUES {ports})
              OR (low_node.guid, low.number) IN (VALUES {ports})
              OR (high_node.guid, high.number) IN (VALUES {ports})
              OR events.port IS NULL AND nodes.guid IN ({nodes}))"
        );
        for (guid, number) in (0..3).flat_map(|_| &wanted.ports) {
            values.extend([Value::from(guid_bits(*guid)), Value::from(*number)]);
        }
        values.extend(wanted.ports.iter().map(|(guid, _)| Value::from(guid_bits(*guid))));
    }
    sql += order.sql();
    (sql, values)
}

/// Opens a file to read. Where nobody writes it and we may not make the files that go with a writer,
/// it is read as it lies there.
fn open(path: &Path) -> rusqlite::Result<Connection> {
    let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let look = |db: Connection| {
        db.busy_timeout(Duration::from_secs(5))?;
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

/// So many marks for values.
pub(super) fn marks(count: usize, mark: &str) -> String {
    vec![mark; count].join(", ")
}

fn guid(row: &Row<'_>, column: usize) -> rusqlite::Result<Option<Guid>> {
    Ok(row.get::<_, Option<i64>>(column)?.map(|bits| Guid(bits.cast_unsigned())))
}

fn place(row: &Row<'_>) -> rusqlite::Result<Place> {
    let guid = guid(row, 1)?.unwrap_or_default();
    let port = Port { fabric: row.get(4)?, guid, port: row.get(3)?, node: row.get(2)? };
    Ok(Place { id: row.get(0)?, port })
}

fn told(row: &Row<'_>) -> rusqlite::Result<Told> {
    let end = |column: usize| -> rusqlite::Result<_> {
        Ok(guid(row, column)?.zip(row.get::<_, Option<PortNumber>>(column + 1)?))
    };
    let detail: Option<String> = row.get(7)?;
    Ok(Told {
        at: time_of(row.get(0)?),
        fabric: row.get(1)?,
        kind: row.get(2)?,
        node: guid(row, 3)?,
        port: row.get(4)?,
        link: end(8)?.zip(end(10)?).map(|(low, high)| LinkId(low, high)),
        place: row.get(5)?,
        text: row.get(6)?,
        detail: detail.and_then(|text| serde_json::from_str(&text).ok()).unwrap_or_default(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Kind;

    /// A page that had to sort what is behind it would hold all of it.
    #[test]
    fn events_are_found_in_their_order() {
        let mut db = Connection::open_in_memory().unwrap();
        schema::migrate(&mut db).unwrap();
        let window = Window { from: time_of(0), to: time_of(1 << 50) };
        let all = Wanted::all(window);
        let after = Some(Cursor { at: 5, id: 7 });
        for wanted in [
            Wanted { kinds: vec![Kind::Flap, Kind::LinkUp], ..all.clone() },
            Wanted { nodes: vec![Guid(1), Guid(2)], ..all.clone() },
            Wanted { ports: vec![(Guid(1), 2)], ..all.clone() },
            all,
        ] {
            for order in [Order::EarliestFirst, Order::LatestFirst] {
                let (sql, values) = asked(&wanted, order, after);
                let mut plan = db.prepare(&format!("EXPLAIN QUERY PLAN {sql}")).unwrap();
                let steps = plan.query_map(params_from_iter(values), |row| row.get(3)).unwrap();
                let steps: Vec<String> = steps.map(Result::unwrap).collect();
                assert!(steps[0].contains("events USING INDEX events_by_time"), "{steps:#?}");
                assert!(!steps.iter().any(|step| step.contains("TEMP")), "{steps:#?}");
            }
        }
    }
}
