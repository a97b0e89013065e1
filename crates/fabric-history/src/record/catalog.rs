//! The ids that the file uses for fabrics, nodes, ports and links: small numbers, assigned once.

use std::collections::hash_map::Entry;
use std::collections::{BTreeSet, HashMap, HashSet};
use std::sync::Arc;

use rusqlite::{Connection, Result, params};

use crate::event::About;
use crate::file::counter_ids::CounterIds;
use crate::file::record_kind::guid_bits;
use crate::file::sql::{FABRIC_OF_LINK, Sql};
use crate::{MOST_PORTS, OutOfIds};
use ib_fabric::topology::{Link, LinkId};
use ib_fabric::{Fabric, PortIndex, PortMap};
use ib_mad::counter::TABLE;
use ib_mad::{Guid, PortNumber};

/// A node of the file, with its latest name and host.
#[derive(Debug)]
struct CatalogNode {
    id: i64,
    name: String,
    host: Option<String>,
}

/// The ids of the node, the port and the link that an event is about.
#[derive(Clone, Copy, Debug, Default)]
pub struct SubjectIds {
    pub node: Option<i64>,
    pub port: Option<u32>,
    pub link: Option<i64>,
}

#[derive(Debug)]
pub struct FabricIds {
    pub fabric: i64,
    /// Ids of the present ports, by [`PortIndex`].
    pub ports: PortMap<u32>,
    /// Ids of the present nodes, by node index.
    pub present_nodes: Vec<u32>,
    /// The fabric to which the indexes above belong.
    current: Option<Arc<Fabric>>,
    /// All nodes in the file.
    nodes: HashMap<Guid, CatalogNode>,
    /// Ids of all ports in the file, by node id and port number.
    by_end: HashMap<(i64, PortNumber), u32>,
    /// Ids of all links in the file, by the port ids of their ends, the lower first.
    links: HashMap<[u32; 2], i64>,
    /// Events that refer to nodes or links that are not present: these must not be pruned.
    pub referring_events: BTreeSet<i64>,
    cable_intervals: PresenceIntervals,
    node_intervals: PresenceIntervals,
}

/// The ids of everything in the file.
#[derive(Debug)]
pub struct Catalog {
    fabrics: HashMap<String, FabricIds>,
    pub counters: CounterIds,
}

impl Catalog {
    /// Reads the ids of counters, and assigns ids to those that have none.
    pub fn read(db: &Connection) -> Result<Self> {
        for row in TABLE {
            db.execute("INSERT OR IGNORE INTO counters (name) VALUES (?1)", [row.ibta])?;
        }
        Ok(Catalog { fabrics: HashMap::new(), counters: CounterIds::read(db)? })
    }

    /// The ids of a fabric as it was last.
    pub(super) fn fabric(&mut self, db: &Connection, name: &str) -> Result<&mut FabricIds> {
        match self.fabrics.entry(name.to_owned()) {
            Entry::Occupied(known) => Ok(known.into_mut()),
            Entry::Vacant(new) => Ok(new.insert(FabricIds::read(db, name)?)),
        }
    }

    /// The ids of a fabric as it is now, if `fabric` is given; assigns ids to what is new.
    pub fn update(
        &mut self,
        db: &Connection,
        name: &str,
        fabric: Option<&Arc<Fabric>>,
        at: i64,
    ) -> Result<&mut FabricIds> {
        let ids = self.fabric(db, name)?;
        if let Some(fabric) = fabric
            && !ids.current.as_ref().is_some_and(|current| Arc::ptr_eq(current, fabric))
        {
            ids.update(db, fabric, at)?;
        }
        Ok(ids)
    }
}

fn port_id(id: i64) -> Result<u32> {
    let in_range = u32::try_from(id).ok().filter(|id| *id < MOST_PORTS);
    in_range.ok_or_else(|| OutOfIds::Ports(id).in_sql())
}

impl FabricIds {
    fn read(db: &Connection, name: &str) -> Result<Self> {
        db.execute("INSERT OR IGNORE INTO fabrics (name) VALUES (?1)", [name])?;
        let fabric =
            db.query_row("SELECT id FROM fabrics WHERE name = ?1", [name], |row| row.get(0))?;
        let nodes: Vec<(i64, i64, String, Option<String>)> = Sql(db).rows(
            "SELECT id, guid, coalesce(name, ''), host FROM nodes LEFT JOIN names ON names.node = nodes.id
             AND since = (SELECT max(since) FROM names WHERE names.node = nodes.id)
             WHERE fabric = ?1",
            [fabric],
        )?;
        let nodes = nodes.into_iter();
        let mut by_end = HashMap::new();
        let ports = "SELECT ports.id, node, number FROM ports JOIN nodes ON nodes.id = node
             WHERE fabric = ?1";
        for (id, node, number) in Sql(db).rows::<_, Vec<(i64, i64, PortNumber)>>(ports, [fabric])? {
            by_end.insert((node, number), port_id(id)?);
        }
        let links = format!("SELECT low, high, links.id FROM links {FABRIC_OF_LINK} = ?1");
        let links: Vec<(u32, u32, i64)> = Sql(db).rows(&links, [fabric])?;
        let cables = format!("JOIN links ON links.id = link {FABRIC_OF_LINK}");
        let presences = "JOIN nodes ON nodes.id = node WHERE fabric";
        Ok(FabricIds {
            fabric,
            ports: PortMap::default(),
            present_nodes: Vec::new(),
            current: None,
            nodes: nodes
                .map(|(id, guid, name, host)| {
                    (Guid(guid.cast_unsigned()), CatalogNode { id, name, host })
                })
                .collect(),
            by_end,
            links: links.into_iter().map(|(low, high, id)| ([low, high], id)).collect(),
            referring_events: BTreeSet::new(),
            cable_intervals: PresenceIntervals::read(db, fabric, "cables", "link", &cables)?,
            node_intervals: PresenceIntervals::read(db, fabric, "presences", "node", presences)?,
        })
    }

    fn update(&mut self, db: &Connection, fabric: &Arc<Fabric>, at: i64) -> Result<()> {
        let add_node = "INSERT INTO nodes (fabric, guid, kind) VALUES (?1, ?2, ?3)";
        let name_node =
            "INSERT OR REPLACE INTO names (node, since, name, host) VALUES (?1, ?2, ?3, ?4)";
        let add_port = "INSERT INTO ports (node, number) VALUES (?1, ?2)";
        self.ports = PortMap::default();
        self.present_nodes.clear();
        for index in fabric.node_indexes() {
            let node = fabric.node(index);
            let guid = node.identity.guid;
            let known = self.nodes.get(&guid);
            let id = if let Some(known) = known {
                known.id
            } else {
                let kind = node.identity.kind.label();
                Sql(db).insert(add_node, params![self.fabric, guid_bits(guid), kind])?
            };
            if known.is_none_or(|known| known.name != node.name || known.host != node.host) {
                Sql(db).execute(name_node, params![id, at, node.name, node.host])?;
                let (name, host) = (node.name.clone(), node.host.clone());
                self.nodes.insert(guid, CatalogNode { id, name, host });
            }
            self.present_nodes.push(port_id(id)?);
            for port in fabric.ports_of(index) {
                let number = fabric.port(port).number;
                let port = match self.by_end.entry((id, number)) {
                    Entry::Occupied(known) => *known.get(),
                    Entry::Vacant(new) => {
                        let added = Sql(db).insert(add_port, params![id, number])?;
                        *new.insert(port_id(added)?)
                    }
                };
                self.ports.push(port);
            }
        }
        self.current = Some(Arc::clone(fabric));
        let nodes = self.present_nodes.iter().map(|node| (*node).into()).collect();
        self.node_intervals.update(db, nodes, at)?;
        let mut cables = HashSet::new();
        for Link { low, high } in fabric.whole_links() {
            let id = |port: PortIndex| self.ports.get(port).copied();
            let Some((low, high)) = id(low).zip(id(high)) else { continue };
            cables.insert(self.link_between(db, [low, high])?);
        }
        self.cable_intervals.update(db, cables, at)
    }

    /// Removes the ids of pruned nodes, of their ports, and of pruned links.
    pub fn remove(&mut self, nodes: &HashSet<i64>, links: &HashSet<i64>) {
        self.nodes.retain(|_, node| !nodes.contains(&node.id));
        self.by_end.retain(|(node, _), _| !nodes.contains(node));
        self.links.retain(|_, link| !links.contains(link));
    }

    fn node(&self, guid: Guid) -> Option<i64> {
        Some(self.nodes.get(&guid)?.id)
    }

    fn port(&self, guid: Guid, number: PortNumber) -> Option<u32> {
        self.by_end.get(&(self.node(guid)?, number)).copied()
    }

    /// The ids of what an event is about.
    pub fn subject(&mut self, db: &Connection, about: About) -> Result<SubjectIds> {
        Ok(match about {
            About::All => SubjectIds::default(),
            About::Node(guid) => SubjectIds { node: self.node(guid), ..SubjectIds::default() },
            About::Port(guid, number) => {
                SubjectIds { node: self.node(guid), port: self.port(guid, number), link: None }
            }
            About::Link(LinkId { low, high }) => {
                let ends = self.port(low.guid, low.number).zip(self.port(high.guid, high.number));
                let link =
                    ends.map(|(low, high)| self.link_between(db, [low, high])).transpose()?;
                SubjectIds { link, ..SubjectIds::default() }
            }
        })
    }

    fn link_between(&mut self, db: &Connection, ends: [u32; 2]) -> Result<i64> {
        if let Some(id) = self.links.get(&ends) {
            return Ok(*id);
        }
        let add = "INSERT INTO links (low, high) VALUES (?1, ?2)";
        let id = Sql(db).insert(add, ends)?;
        self.links.insert(ends, id);
        Ok(id)
    }
}

/// What is present, each with its open row in the file.
///
/// A row has the number of the cable or node, and the times from which and until which it was present; the
/// latter is NULL while it is.
#[derive(Debug)]
pub struct PresenceIntervals {
    /// Row ids by the number of the cable or node.
    open: HashMap<i64, i64>,
    insert: String,
    close: String,
}

impl PresenceIntervals {
    /// Reads the open rows of a table; `fabric_of` is the end of a statement that selects by the fabric.
    fn read(
        db: &Connection,
        fabric: i64,
        table: &str,
        item: &str,
        fabric_of: &str,
    ) -> Result<Self> {
        let open = format!(
            "SELECT {item}, {table}.id FROM {table} {fabric_of} = ?1 AND {table}.until IS NULL"
        );
        Ok(PresenceIntervals {
            open: Sql(db).rows(&open, [fabric])?,
            insert: format!("INSERT INTO {table} ({item}, since) VALUES (?1, ?2)"),
            close: format!("UPDATE {table} SET until = ?2 WHERE id = ?1"),
        })
    }

    /// Closes the intervals of what is not present any more, and opens those of what is new.
    pub fn update(&mut self, db: &Connection, present: HashSet<i64>, at: i64) -> Result<()> {
        for (_, row) in self.open.extract_if(|id, _| !present.contains(id)) {
            Sql(db).execute(&self.close, [row, at])?;
        }
        for id in present {
            if let Entry::Vacant(new) = self.open.entry(id) {
                new.insert(Sql(db).insert(&self.insert, [id, at])?);
            }
        }
        Ok(())
    }
}
