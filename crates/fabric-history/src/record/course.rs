//! From when to when things were there: cables, and nodes.

use std::collections::hash_map::Entry;
use std::collections::{HashMap, HashSet};

use rusqlite::Connection;

/// Those that are there, and the rows that say since when.
#[derive(Debug)]
pub struct Course {
    open: HashMap<i64, i64>,
    begin: &'static str,
    end: &'static str,
}

impl Course {
    /// Of the cables of a fabric.
    pub fn cables(db: &Connection, fabric: i64) -> rusqlite::Result<Self> {
        let open = open(
            db,
            "SELECT link, cables.id FROM cables JOIN links ON links.id = link
             JOIN ports ON ports.id = low JOIN nodes ON nodes.id = node
             WHERE until IS NULL AND fabric = ?1",
            fabric,
        )?;
        let begin = "INSERT INTO cables (link, since) VALUES (?1, ?2)";
        Ok(Course { open, begin, end: "UPDATE cables SET until = ?2 WHERE id = ?1" })
    }

    /// Of the nodes of a fabric.
    pub fn presences(db: &Connection, fabric: i64) -> rusqlite::Result<Self> {
        let open = open(
            db,
            "SELECT node, presences.id FROM presences JOIN nodes ON nodes.id = node
             WHERE until IS NULL AND fabric = ?1",
            fabric,
        )?;
        let begin = "INSERT INTO presences (node, since) VALUES (?1, ?2)";
        Ok(Course { open, begin, end: "UPDATE presences SET until = ?2 WHERE id = ?1" })
    }

    /// Takes down which are there now.
    pub fn follow(
        &mut self,
        db: &Connection,
        there: HashSet<i64>,
        at: i64,
    ) -> rusqlite::Result<()> {
        let mut end = db.prepare_cached(self.end)?;
        for (_, row) in self.open.extract_if(|it, _| !there.contains(it)) {
            end.execute([row, at])?;
        }
        let mut begin = db.prepare_cached(self.begin)?;
        for it in there {
            if let Entry::Vacant(new) = self.open.entry(it) {
                new.insert(begin.insert([it, at])?);
            }
        }
        Ok(())
    }
}

fn open(db: &Connection, sql: &str, fabric: i64) -> rusqlite::Result<HashMap<i64, i64>> {
    let mut statement = db.prepare(sql)?;
    statement.query_map([fabric], |row| Ok((row.get(0)?, row.get(1)?)))?.collect()
}
