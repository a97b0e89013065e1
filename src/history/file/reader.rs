//! Answers from the file, also while an exporter writes it.

use std::fmt::Write;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use rusqlite::types::Value;
use rusqlite::{Connection, OpenFlags, Row, params_from_iter};

use crate::fabric::topology::LinkId;
use crate::fabric::{Counter, Guid, PortNumber};
use crate::history::event::Kind;
use crate::history::{HistoryError, micros_of, time_of};

use super::frame::Frame;
use super::numbers::{Numbers, guid_bits, numbers};
use super::tier::Tier;
use super::{schema, with_suffix};

/// A history that is read.
#[derive(Debug)]
pub struct Reader {
    db: Connection,
    path: PathBuf,
    numbers: Numbers,
}

/// Which events are wanted. Lists that are empty want all.
#[derive(Clone, Debug)]
pub struct Wanted {
    /// From when on.
    pub from: SystemTime,
    /// Until when.
    pub to: SystemTime,
    /// Of which kinds.
    pub kinds: Vec<Kind>,
    /// Of which nodes, with their ports and links.
    pub nodes: Option<Vec<i64>>,
    /// Of which ports, with their links.
    pub ports: Option<Vec<u32>>,
}

/// An event as it was recorded.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Recorded {
    /// When.
    pub at: SystemTime,
    /// In which fabric.
    pub fabric: String,
    /// Its kind's label: a newer version may know more kinds.
    pub kind: String,
    /// The node that it is about.
    pub node: Option<Guid>,
    /// The port of that node.
    pub port: Option<PortNumber>,
    /// The cable that it is about.
    pub link: Option<LinkId>,
    /// What people called it then.
    pub place: String,
    /// What happened.
    pub text: String,
    /// The same for programs, as JSON.
    pub detail: Option<String>,
}

/// A port as the file knows it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Place {
    /// Its number in the file.
    pub id: u32,
    /// Its node's GUID.
    pub guid: Guid,
    /// Its node's name, as it was last.
    pub node: String,
    /// Its number on its node.
    pub number: PortNumber,
}

/// What a counter of a port grew by in a sweep.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Grown {
    /// When the port was read.
    pub at: SystemTime,
    /// The port's number in the file.
    pub port: u32,
    /// The counter.
    pub counter: Counter,
    /// By how much.
    pub by: u64,
}

const EVENT: &str = "
    SELECT at, fabrics.name, events.kind, nodes.guid, ports.number, place, text, detail,
        low_node.guid, low.number, high_node.guid, high.number
    FROM events JOIN fabrics ON fabrics.id = events.fabric
    LEFT JOIN nodes ON nodes.id = events.node
    LEFT JOIN ports ON ports.id = events.port
    LEFT JOIN links ON links.id = events.link
    LEFT JOIN ports AS low ON low.id = links.low LEFT JOIN nodes AS low_node ON low_node.id = low.node
    LEFT JOIN ports AS high ON high.id = links.high LEFT JOIN nodes AS high_node ON high_node.id = high.node
    WHERE at BETWEEN ? AND ?";

const PLACE: &str = "
    SELECT ports.id, guid, coalesce(
        (SELECT name FROM names WHERE names.node = nodes.id ORDER BY since DESC LIMIT 1), ''), number
    FROM ports JOIN nodes ON nodes.id = ports.node";

impl Reader {
    /// Opens a file that is there.
    pub fn open(path: &Path) -> Result<Self, HistoryError> {
        if let Err(error) = std::fs::metadata(path) {
            return Err(HistoryError::Io { path: path.into(), doing: "find it", error });
        }
        let failed = |error| HistoryError::Database { path: path.into(), doing: "read it", error };
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
        let numbers = numbers(&db).map_err(failed)?;
        Ok(Reader { db, path: path.into(), numbers })
    }

    fn failed(&self) -> impl FnOnce(rusqlite::Error) -> HistoryError + use<> {
        let path = self.path.clone();
        move |error| HistoryError::Database { path, doing: "read it", error }
    }

    /// The events that are wanted, the earliest first.
    pub fn events(&self, wanted: &Wanted) -> Result<Vec<Recorded>, HistoryError> {
        self.read_events(wanted).map_err(self.failed())
    }

    fn read_events(&self, wanted: &Wanted) -> rusqlite::Result<Vec<Recorded>> {
        // Writing to a string cannot fail.
        let mut sql = EVENT.to_owned();
        let mut values: Vec<Value> =
            vec![micros_of(wanted.from).into(), micros_of(wanted.to).into()];
        if !wanted.kinds.is_empty() {
            let marks = marks(wanted.kinds.len());
            let _ = write!(sql, " AND events.kind IN ({marks})");
            values.extend(wanted.kinds.iter().map(|kind| Value::from(kind.label().to_owned())));
        }
        if let Some(nodes) = &wanted.nodes {
            let marks = marks(nodes.len());
            let _ = write!(
                sql,
                " AND (events.node IN ({marks}) OR low.node IN ({marks}) OR high.node IN ({marks}))"
            );
            values.extend((0..3).flat_map(|_| nodes).map(|node| Value::from(*node)));
        }
        if let Some(ports) = &wanted.ports {
            let marks = marks(ports.len());
            // What befalls a node befalls its ports.
            let _ = write!(
                sql,
                " AND (events.port IN ({marks}) OR links.low IN ({marks}) OR links.high IN ({marks})
                  OR events.port IS NULL AND events.node IN
                      (SELECT node FROM ports WHERE id IN ({marks})))"
            );
            values.extend((0..4).flat_map(|_| ports).map(|port| Value::from(*port)));
        }
        sql += " ORDER BY at, events.id";
        let mut statement = self.db.prepare(&sql)?;
        statement.query_map(params_from_iter(values), recorded)?.collect()
    }

    /// The numbers of nodes with a name or a GUID, whatever they are called by now.
    pub fn nodes(&self, called: &str) -> Result<Vec<i64>, HistoryError> {
        let guid = called.parse::<Guid>().ok().filter(|_| called.len() > 10);
        let find = || -> rusqlite::Result<_> {
            let mut statement = self.db.prepare(
                "SELECT node FROM names WHERE name = ?1
                 UNION SELECT id FROM nodes WHERE guid = ?2",
            )?;
            let guid = guid.map(guid_bits);
            statement.query_map((called, guid), |row| row.get(0))?.collect()
        };
        find().map_err(self.failed())
    }

    /// The ports that are meant by a link's id, by `NODE[PORT]`, or by `NODE`: all of its ports.
    pub fn ports(&self, called: &str) -> Result<Vec<Place>, HistoryError> {
        if let Some(LinkId(low, high)) = link_id(called) {
            let mut places = Vec::new();
            for (guid, number) in [low, high] {
                let of = Value::from(guid_bits(guid));
                places.extend(self.places(" WHERE guid = ? AND number = ?", [of, number.into()])?);
            }
            return Ok(places);
        }
        let port = called.strip_suffix(']').and_then(|rest| rest.rsplit_once('['));
        let port = port.and_then(|(node, number)| Some((node, number.parse::<u8>().ok()?)));
        let (name, number) = port.map_or((called, None), |(node, number)| (node, Some(number)));
        let nodes = self.nodes(name)?;
        let mut sql = format!(" WHERE node IN ({})", marks(nodes.len()));
        let mut values: Vec<Value> = nodes.into_iter().map(Value::from).collect();
        if let Some(number) = number {
            sql += " AND number = ?";
            values.push(number.into());
        }
        self.places(&sql, values)
    }

    /// The ports at the other ends of the cables that were ever seen at a port.
    pub fn partners(&self, port: u32) -> Result<Vec<Place>, HistoryError> {
        self.places(
            " WHERE ports.id IN (SELECT high FROM links WHERE low = ?1
                  UNION SELECT low FROM links WHERE high = ?1)",
            [Value::from(port)],
        )
    }

    fn places(
        &self,
        which: &str,
        values: impl IntoIterator<Item = Value>,
    ) -> Result<Vec<Place>, HistoryError> {
        let find = || -> rusqlite::Result<_> {
            let mut statement =
                self.db.prepare(&format!("{PLACE}{which} ORDER BY guid, number"))?;
            let place = |row: &Row<'_>| {
                Ok(Place {
                    id: row.get(0)?,
                    guid: guid(row, 1)?.unwrap_or_default(),
                    node: row.get(2)?,
                    number: row.get(3)?,
                })
            };
            statement.query_map(params_from_iter(values), place)?.collect()
        };
        find().map_err(self.failed())
    }

    /// What counters of a tier grew by at some ports, sweep by sweep; and how many sweeps could not be
    /// read because they are damaged.
    pub fn grown(
        &self,
        ports: &[u32],
        tier: Tier,
        from: SystemTime,
        to: SystemTime,
    ) -> Result<(Vec<Grown>, usize), HistoryError> {
        self.read_grown(ports, tier, from, to).map_err(self.failed())
    }

    fn read_grown(
        &self,
        ports: &[u32],
        tier: Tier,
        from: SystemTime,
        to: SystemTime,
    ) -> rusqlite::Result<(Vec<Grown>, usize)> {
        let mut statement = self.db.prepare(
            "SELECT began, data FROM frames WHERE tier = ?1 AND ended >= ?2 AND began <= ?3
             ORDER BY ended, id",
        )?;
        let mut rows = statement.query((tier as u8, micros_of(from), micros_of(to)))?;
        let (mut grown, mut damaged) = (Vec::new(), 0);
        while let Some(row) = rows.next()? {
            let began = time_of(row.get(0)?);
            let Ok(frame) = Frame::unpack(row.get_ref(1)?.as_blob()?) else {
                damaged += 1;
                continue;
            };
            for &port in ports {
                let Some(entry) = frame.of(port) else { continue };
                let at = began + Duration::from_millis(entry.after.into());
                for (number, by) in frame.values(entry) {
                    let Some(counter) = self.numbers.counter(number) else { continue };
                    grown.push(Grown { at, port, counter, by });
                }
            }
        }
        Ok((grown, damaged))
    }

    /// How many sweeps can be read of a tier, how many cannot, and when the latest ended.
    pub fn frames(&self, tier: Tier) -> Result<(usize, usize, Option<SystemTime>), HistoryError> {
        let count = || {
            let mut statement =
                self.db.prepare("SELECT data, ended FROM frames WHERE tier = ?1")?;
            let mut rows = statement.query([tier as u8])?;
            let (mut whole, mut damaged, mut last) = (0, 0, None);
            while let Some(row) = rows.next()? {
                match Frame::unpack(row.get_ref(0)?.as_blob()?) {
                    Ok(_) => whole += 1,
                    Err(_) => damaged += 1,
                }
                last = last.max(Some(time_of(row.get(1)?)));
            }
            Ok((whole, damaged, last))
        };
        count().map_err(self.failed())
    }
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

fn marks(count: usize) -> String {
    vec!["?"; count].join(", ")
}

fn guid(row: &Row<'_>, column: usize) -> rusqlite::Result<Option<Guid>> {
    Ok(row.get::<_, Option<i64>>(column)?.map(|bits| Guid(bits.cast_unsigned())))
}

fn recorded(row: &Row<'_>) -> rusqlite::Result<Recorded> {
    let end = |column: usize| -> rusqlite::Result<_> {
        Ok(guid(row, column)?.zip(row.get::<_, Option<PortNumber>>(column + 1)?))
    };
    let link = |low: Option<_>, high| low.zip(high).map(|(low, high)| LinkId(low, high));
    Ok(Recorded {
        at: time_of(row.get(0)?),
        fabric: row.get(1)?,
        kind: row.get(2)?,
        node: guid(row, 3)?,
        port: row.get(4)?,
        link: link(end(8)?, end(10)?),
        place: row.get(5)?,
        text: row.get(6)?,
        detail: row.get(7)?,
    })
}

/// A link's id as metrics and pages write it: `0x…:5-0x…:1`.
pub fn link_id(text: &str) -> Option<LinkId> {
    let end = |text: &str| {
        let (guid, number) = text.rsplit_once(':')?;
        Some((guid.parse().ok()?, number.parse().ok()?))
    };
    let (low, high) = text.split_once('-')?;
    Some(LinkId(end(low)?, end(high)?))
}
