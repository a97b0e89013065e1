//! The intervals in which cables and nodes were present.

use std::collections::hash_map::Entry;
use std::collections::{HashMap, HashSet};

use rusqlite::Connection;

use super::catalog::read_map;

/// What is present, each with its open row in the file.
///
/// A row has the number of the cable or node, and the times from which and until which it was present; the
/// latter is NULL while it is.
#[derive(Debug)]
pub struct PresenceIntervals {
    /// Row ids by the number of the cable or node.
    open: HashMap<i64, i64>,
    insert: &'static str,
    close: &'static str,
}

impl PresenceIntervals {
    /// Of the cables of a fabric.
    pub fn cables(db: &Connection, fabric: i64) -> rusqlite::Result<Self> {
        let sql = "SELECT link, cables.id FROM cables JOIN links ON links.id = link
             JOIN ports ON ports.id = low JOIN nodes ON nodes.id = node
             WHERE until IS NULL AND fabric = ?1";
        let open = read_map(db, sql, fabric, |row| Ok((row.get(0)?, row.get(1)?)))?;
        let insert = "INSERT INTO cables (link, since) VALUES (?1, ?2)";
        Ok(PresenceIntervals { open, insert, close: "UPDATE cables SET until = ?2 WHERE id = ?1" })
    }

    /// Of the nodes of a fabric.
    pub fn nodes(db: &Connection, fabric: i64) -> rusqlite::Result<Self> {
        let sql = "SELECT node, presences.id FROM presences JOIN nodes ON nodes.id = node
             WHERE until IS NULL AND fabric = ?1";
        let open = read_map(db, sql, fabric, |row| Ok((row.get(0)?, row.get(1)?)))?;
        let insert = "INSERT INTO presences (node, since) VALUES (?1, ?2)";
        Ok(PresenceIntervals {
            open,
            insert,
            close: "UPDATE presences SET until = ?2 WHERE id = ?1",
        })
    }

    /// Closes the intervals of what is not present any more, and opens those of what is new.
    pub fn update(
        &mut self,
        db: &Connection,
        present: HashSet<i64>,
        at: i64,
    ) -> rusqlite::Result<()> {
        let mut close = db.prepare_cached(self.close)?;
        for (_, row) in self.open.extract_if(|id, _| !present.contains(id)) {
            close.execute([row, at])?;
        }
        let mut insert = db.prepare_cached(self.insert)?;
        for id in present {
            if let Entry::Vacant(new) = self.open.entry(id) {
                new.insert(insert.insert([id, at])?);
            }
        }
        Ok(())
    }
}
