//! What the file calls fabrics, nodes, ports and links: small numbers, given once.

use std::collections::HashMap;
use std::sync::Arc;

use rusqlite::{Connection, OptionalExtension, params};

use crate::fabric::counter::TABLE;
use crate::fabric::topology::LinkId;
use crate::fabric::{Fabric, Guid, PortNumber};

use crate::history::event::About;
use crate::history::file::numbers::{Numbers, guid_bits, numbers};

/// More ports than a file has had by the time that it is too large. A number that is beyond that was not
/// given by us, and what is kept by it would take all memory.
const MOST_PORTS: u32 = 1 << 22;

/// The numbers of what a fabric has.
#[derive(Debug)]
pub struct Places {
    /// The fabric's own.
    pub fabric: i64,
    /// Of each port, by its place in the fabric that was seen last.
    pub ports: Vec<u32>,
    seen: Arc<Fabric>,
    nodes: HashMap<Guid, (i64, String)>,
    by_end: HashMap<(i64, PortNumber), u32>,
}

/// The numbers of all that is recorded.
#[derive(Debug)]
pub struct Catalog {
    fabrics: HashMap<String, Places>,
    numbers: Numbers,
}

impl Catalog {
    /// Reads the numbers of counters, and gives some to those that have none.
    pub fn read(db: &Connection) -> rusqlite::Result<Self> {
        Ok(Catalog { fabrics: HashMap::new(), numbers: give_numbers(db)? })
    }

    /// The counters' numbers.
    pub fn numbers(&self) -> &Numbers {
        &self.numbers
    }

    /// The numbers of a fabric as it is now, given where there were none.
    pub fn follow(
        &mut self,
        db: &Connection,
        name: &str,
        fabric: &Arc<Fabric>,
        at: i64,
    ) -> rusqlite::Result<&Places> {
        if !self.fabrics.contains_key(name) {
            self.fabrics.insert(name.to_owned(), Places::read(db, name)?);
        }
        let places = self.fabrics.get_mut(name).ok_or(rusqlite::Error::QueryReturnedNoRows)?;
        if !Arc::ptr_eq(&places.seen, fabric) {
            places.follow(db, fabric, at)?;
        }
        Ok(places)
    }
}

/// The counters' numbers: those that the file has, and new ones for those that it has not.
fn give_numbers(db: &Connection) -> rusqlite::Result<Numbers> {
    for row in TABLE {
        db.execute("INSERT OR IGNORE INTO counters (name) VALUES (?1)", [row.ibta])?;
    }
    numbers(db)
}

fn port_number(given: i64) -> rusqlite::Result<u32> {
    let number = u32::try_from(given).ok().filter(|number| *number < MOST_PORTS);
    number.ok_or(rusqlite::Error::IntegralValueOutOfRange(0, given))
}

impl Places {
    fn read(db: &Connection, name: &str) -> rusqlite::Result<Self> {
        db.execute("INSERT OR IGNORE INTO fabrics (name) VALUES (?1)", [name])?;
        let fabric =
            db.query_row("SELECT id FROM fabrics WHERE name = ?1", [name], |row| row.get(0))?;
        let mut nodes = HashMap::new();
        let mut statement = db.prepare(
            "SELECT id, guid, coalesce(
                 (SELECT name FROM names WHERE node = id ORDER BY since DESC LIMIT 1), '')
             FROM nodes WHERE fabric = ?1",
        )?;
        let mut rows = statement.query([fabric])?;
        while let Some(row) = rows.next()? {
            let guid = Guid(row.get::<_, i64>(1)?.cast_unsigned());
            nodes.insert(guid, (row.get(0)?, row.get(2)?));
        }
        let mut by_end = HashMap::new();
        let mut statement = db.prepare(
            "SELECT ports.id, node, number FROM ports JOIN nodes ON nodes.id = node
             WHERE fabric = ?1",
        )?;
        let mut rows = statement.query([fabric])?;
        while let Some(row) = rows.next()? {
            by_end.insert((row.get(1)?, row.get(2)?), port_number(row.get(0)?)?);
        }
        Ok(Places { fabric, ports: Vec::new(), seen: Arc::default(), nodes, by_end })
    }

    fn follow(&mut self, db: &Connection, fabric: &Arc<Fabric>, at: i64) -> rusqlite::Result<()> {
        let mut add_node =
            db.prepare_cached("INSERT INTO nodes (fabric, guid, kind) VALUES (?1, ?2, ?3)")?;
        let mut name_node = db.prepare_cached(
            "INSERT OR REPLACE INTO names (node, since, name) VALUES (?1, ?2, ?3)",
        )?;
        let mut add_port = db.prepare_cached("INSERT INTO ports (node, number) VALUES (?1, ?2)")?;
        self.ports.clear();
        for index in fabric.node_indexes() {
            let node = fabric.node(index);
            let guid = node.identity.guid;
            let id = match self.nodes.get(&guid) {
                Some((id, name)) if *name == node.name => *id,
                known => {
                    let id = if let Some((id, _)) = known {
                        *id
                    } else {
                        let kind = node.identity.kind.label();
                        add_node.insert(params![self.fabric, guid_bits(guid), kind])?
                    };
                    name_node.execute(params![id, at, node.name])?;
                    self.nodes.insert(guid, (id, node.name.clone()));
                    id
                }
            };
            for port in fabric.ports_of(index) {
                let number = fabric.port(port).number;
                let port = if let Some(port) = self.by_end.get(&(id, number)) {
                    *port
                } else {
                    let given = add_port.insert(params![id, number])?;
                    let port = port_number(given)?;
                    self.by_end.insert((id, number), port);
                    port
                };
                self.ports.push(port);
            }
        }
        self.seen = Arc::clone(fabric);
        Ok(())
    }

    fn node(&self, guid: Guid) -> Option<i64> {
        Some(self.nodes.get(&guid)?.0)
    }

    fn port(&self, guid: Guid, number: PortNumber) -> Option<u32> {
        self.by_end.get(&(self.node(guid)?, number)).copied()
    }

    /// The numbers of the node, the port and the link that an event is about.
    pub fn about(
        &self,
        db: &Connection,
        about: About,
    ) -> rusqlite::Result<(Option<i64>, Option<u32>, Option<i64>)> {
        Ok(match about {
            About::All => (None, None, None),
            About::Node(guid) => (self.node(guid), None, None),
            About::Port(guid, number) => (self.node(guid), self.port(guid, number), None),
            About::Link(link) => (None, None, self.link(db, link)?),
        })
    }

    fn link(&self, db: &Connection, LinkId(low, high): LinkId) -> rusqlite::Result<Option<i64>> {
        let ends = self.port(low.0, low.1).zip(self.port(high.0, high.1));
        let Some((low, high)) = ends else { return Ok(None) };
        let mut find = db.prepare_cached("SELECT id FROM links WHERE low = ?1 AND high = ?2")?;
        if let Some(id) = find.query_row([low, high], |row| row.get(0)).optional()? {
            return Ok(Some(id));
        }
        let mut add = db.prepare_cached("INSERT INTO links (low, high) VALUES (?1, ?2)")?;
        add.insert([low, high]).map(Some)
    }
}
