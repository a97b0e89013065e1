//! What the file calls fabrics, nodes, ports and links: small numbers, given once.

use std::collections::hash_map::Entry;
use std::collections::{BTreeSet, HashMap, HashSet};
use std::sync::Arc;

use rusqlite::{Connection, params};

use ib_fabric::topology::{Link, LinkId};
use ib_fabric::{Fabric, PortIndex};
use ib_mad::counter::TABLE;
use ib_mad::{Guid, PortNumber};

use crate::event::About;
use crate::file::numbers::{Numbers, guid_bits, numbers};
use crate::{MOST_PORTS, OutOfNumbers};

use super::course::Course;

/// The numbers of what a fabric has.
#[derive(Debug)]
pub struct Places {
    /// The fabric's own.
    pub fabric: i64,
    /// Of each port, by its place in the fabric that was seen last.
    pub ports: Vec<u32>,
    /// Of each node, likewise.
    pub nodes_there: Vec<u32>,
    seen: Option<Arc<Fabric>>,
    nodes: HashMap<Guid, (i64, String)>,
    by_end: HashMap<(i64, PortNumber), u32>,
    links: HashMap<(u32, u32), i64>,
    /// Events by which nodes and links are kept that were not seen for long.
    pub kept_by: BTreeSet<i64>,
    cables: Course,
    presences: Course,
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

    /// The numbers of a fabric as it was last.
    pub(super) fn places(&mut self, db: &Connection, name: &str) -> rusqlite::Result<&mut Places> {
        match self.fabrics.entry(name.to_owned()) {
            Entry::Occupied(known) => Ok(known.into_mut()),
            Entry::Vacant(new) => Ok(new.insert(Places::read(db, name)?)),
        }
    }

    /// The numbers of a fabric as it is now, if that is known, given where there were none.
    pub fn follow(
        &mut self,
        db: &Connection,
        name: &str,
        fabric: Option<&Arc<Fabric>>,
        at: i64,
    ) -> rusqlite::Result<&mut Places> {
        let places = self.places(db, name)?;
        if let Some(fabric) = fabric
            && !places.seen.as_ref().is_some_and(|seen| Arc::ptr_eq(seen, fabric))
        {
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
    number.ok_or_else(|| OutOfNumbers::Ports(given).in_sql())
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
        let mut links = HashMap::new();
        let mut statement = db.prepare(
            "SELECT links.id, low, high FROM links JOIN ports ON ports.id = low
             JOIN nodes ON nodes.id = node WHERE fabric = ?1",
        )?;
        let mut rows = statement.query([fabric])?;
        while let Some(row) = rows.next()? {
            links.insert((row.get(1)?, row.get(2)?), row.get(0)?);
        }
        let (ports, nodes_there, seen) = (Vec::new(), Vec::new(), None);
        let (cables, presences) = (Course::cables(db, fabric)?, Course::presences(db, fabric)?);
        let kept_by = BTreeSet::new();
        Ok(Places {
            fabric,
            ports,
            nodes_there,
            seen,
            nodes,
            by_end,
            links,
            kept_by,
            cables,
            presences,
        })
    }

    fn follow(&mut self, db: &Connection, fabric: &Arc<Fabric>, at: i64) -> rusqlite::Result<()> {
        let mut add_node =
            db.prepare_cached("INSERT INTO nodes (fabric, guid, kind) VALUES (?1, ?2, ?3)")?;
        let mut name_node = db.prepare_cached(
            "INSERT OR REPLACE INTO names (node, since, name) VALUES (?1, ?2, ?3)",
        )?;
        let mut add_port = db.prepare_cached("INSERT INTO ports (node, number) VALUES (?1, ?2)")?;
        self.ports.clear();
        self.nodes_there.clear();
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
            self.nodes_there.push(port_number(id)?);
            for port in fabric.ports_of(index) {
                let number = fabric.port(port).number;
                let port = if let Some(port) = self.by_end.get(&(id, number)) {
                    *port
                } else {
                    let port = port_number(add_port.insert(params![id, number])?)?;
                    self.by_end.insert((id, number), port);
                    port
                };
                self.ports.push(port);
            }
        }
        self.seen = Some(Arc::clone(fabric));
        let nodes = self.nodes_there.iter().map(|node| (*node).into()).collect();
        self.presences.follow(db, nodes, at)?;
        let mut cables = HashSet::new();
        for Link(a, b) in fabric.links() {
            let number = |port: PortIndex| self.ports.get(port.0 as usize).copied();
            let Some(ends) = number(a).zip(number(b)) else { continue };
            cables.insert(self.link_between(db, ends)?);
        }
        self.cables.follow(db, cables, at)
    }

    /// Forgets nodes, with their ports, and links that were dropped.
    pub fn forget(&mut self, nodes: &HashSet<i64>, links: &HashSet<i64>) {
        self.nodes.retain(|_, (id, _)| !nodes.contains(id));
        self.by_end.retain(|(node, _), _| !nodes.contains(node));
        self.links.retain(|_, link| !links.contains(link));
    }

    fn node(&self, guid: Guid) -> Option<i64> {
        Some(self.nodes.get(&guid)?.0)
    }

    fn port(&self, guid: Guid, number: PortNumber) -> Option<u32> {
        self.by_end.get(&(self.node(guid)?, number)).copied()
    }

    /// The numbers of the node, the port and the link that an event is about.
    pub fn about(
        &mut self,
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

    fn link(
        &mut self,
        db: &Connection,
        LinkId(low, high): LinkId,
    ) -> rusqlite::Result<Option<i64>> {
        let ends = self.port(low.0, low.1).zip(self.port(high.0, high.1));
        ends.map(|ends| self.link_between(db, ends)).transpose()
    }

    fn link_between(&mut self, db: &Connection, ends: (u32, u32)) -> rusqlite::Result<i64> {
        if let Some(id) = self.links.get(&ends) {
            return Ok(*id);
        }
        let mut add = db.prepare_cached("INSERT INTO links (low, high) VALUES (?1, ?2)")?;
        let id = add.insert([ends.0, ends.1])?;
        self.links.insert(ends, id);
        Ok(id)
    }
}
