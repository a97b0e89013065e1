//! Rows of the catalog that nothing refers to any more, and how they are dropped: without that, a host
//! whose virtual functions are made and thrown away fills the file with their names.
//!
//! Most references stand in rows that SQL can find: events, cables, and presences, which say from when to
//! when a node was there. Frames and digests name nodes and ports by number inside packed data, which
//! would take minutes to look through. But a sweep has only ports of nodes that were there when it was
//! written. So a node is dropped when its last presence is, and that is dropped when the node had gone
//! before the oldest sweep that is kept. This needs times that rise with the order of writing: while a
//! sweep is kept before which the clock was set back, nothing is dropped.
//!
//! Numbers are given again. So totals of ports that are dropped are forgotten in the same transaction,
//! and the fabric's totals and states are then written as a whole.

use std::collections::{BTreeSet, HashMap, HashSet};

use rusqlite::{Connection, Row, Transaction, params};

use ib_fabric::Fabric;
use ib_mad::Guid;

use super::catalog::Places;

/// Tiers of frames whose values are a port's, whenever they are read. Those of tier 3 are written anew, and
/// states (tiers 4 to 7) are asked for of what was there.
const TIERS: [u8; 3] = [0, 1, 2];

/// When the oldest sweep of a fabric was begun of which anything is kept. None if there is none, or if
/// times do not rise in the order of writing.
pub(super) fn oldest(db: &Connection, fabric: i64) -> rusqlite::Result<Option<i64>> {
    // Each of these reads no more than the fabric's part of one index.
    let ask = |sql: &str| -> rusqlite::Result<Option<i64>> {
        db.prepare_cached(sql)?.query_row([fabric], |row| row.get(0))
    };
    let first = ask("SELECT min(id) FROM sweeps WHERE fabric = ?1")?;
    // What follows a sweep that was begun later has no `since`; nor has the very first one.
    let back = ask("SELECT max(id) FROM sweeps WHERE fabric = ?1 AND since IS NULL")?;
    let Some(oldest) = ask("SELECT min(began) FROM sweeps WHERE fabric = ?1")? else {
        return Ok(None);
    };
    if back.is_some() && back > first {
        return Ok(None);
    }
    // A digest is kept as long as its last sweep.
    let digested = ask("SELECT min(first) FROM spans WHERE fabric = ?1")?;
    let oldest = digested.map_or(oldest, |digested| digested.min(oldest));
    // Older versions could be set to keep traffic for longer than sweeps.
    let mut framed =
        db.prepare_cached("SELECT min(began) FROM frames WHERE tier = ?1 AND fabric = ?2")?;
    for tier in TIERS {
        let framed: Option<i64> = framed.query_row(params![tier, fabric], |row| row.get(0))?;
        if framed.is_some_and(|framed| framed < oldest) {
            return Ok(None);
        }
    }
    Ok(Some(oldest))
}

/// What nothing refers to, as far as it is known yet.
struct Unused {
    nodes: HashSet<i64>,
    /// The ports of those nodes, with their node.
    ports: HashMap<u32, i64>,
    links: HashSet<i64>,
}

/// Drops what nothing refers to in a fabric; of `seen` nothing is dropped. Returns the numbers of the ports
/// that were dropped.
pub(super) fn drop_unused(
    db: &Transaction<'_>,
    places: &mut Places,
    seen: &Fabric,
) -> rusqlite::Result<Vec<u32>> {
    let fabric = places.fabric;
    let Some(oldest) = oldest(db, fabric)? else { return Ok(Vec::new()) };
    drop_names(db, fabric, oldest)?;
    let mut unused = Unused::candidates(db, fabric, oldest, seen)?;
    if unused.nodes.is_empty() && unused.links.is_empty() {
        return Ok(Vec::new());
    }
    unused.keep_referred(db, &mut places.kept_by)?;
    unused.keep_linked(db)?;
    unused.delete(db)?;
    places.forget(&unused.nodes, &unused.links);
    Ok(unused.ports.into_keys().collect())
}

/// Drops what nodes were called before the oldest sweep.
fn drop_names(db: &Connection, fabric: i64, oldest: i64) -> rusqlite::Result<()> {
    db.prepare_cached(
        "DELETE FROM names WHERE node IN (SELECT id FROM nodes WHERE fabric = ?1)
         AND since < (SELECT max(since) FROM names AS later
             WHERE later.node = names.node AND later.since <= ?2)",
    )?
    .execute([fabric, oldest])?;
    Ok(())
}

impl Unused {
    /// Nodes that were there in no sweep that is kept, and links without a cable that is kept.
    fn candidates(
        db: &Connection,
        fabric: i64,
        oldest: i64,
        seen: &Fabric,
    ) -> rusqlite::Result<Self> {
        let mut unused =
            Unused { nodes: HashSet::new(), ports: HashMap::new(), links: HashSet::new() };
        let mut links = db.prepare_cached(
            "SELECT links.id FROM links JOIN ports ON ports.id = low JOIN nodes ON nodes.id = node
             WHERE fabric = ?1 AND NOT EXISTS (SELECT 1 FROM cables WHERE link = links.id)",
        )?;
        for link in links.query_map([fabric], |row| row.get(0))? {
            unused.links.insert(link?);
        }
        // Version 1 did not take down when nodes were there: its sweeps may have any.
        let mut since = db.prepare_cached(
            "SELECT min(since) FROM presences JOIN nodes ON nodes.id = node WHERE fabric = ?1",
        )?;
        let since: Option<i64> = since.query_row([fabric], |row| row.get(0))?;
        if since.is_none_or(|since| since > oldest) {
            return Ok(unused);
        }
        let mut nodes = db.prepare_cached(
            "SELECT id, guid FROM nodes WHERE fabric = ?1
             AND NOT EXISTS (SELECT 1 FROM presences WHERE node = nodes.id)",
        )?;
        let mut ports = db.prepare_cached("SELECT id FROM ports WHERE node = ?1")?;
        let mut rows = nodes.query([fabric])?;
        while let Some(row) = rows.next()? {
            let (node, guid): (i64, i64) = (row.get(0)?, row.get(1)?);
            if seen.node_by_guid(Guid(guid.cast_unsigned())).is_some() {
                continue;
            }
            unused.nodes.insert(node);
            for port in ports.query_map([node], |row| row.get(0))? {
                unused.ports.insert(port?, node);
            }
        }
        Ok(unused)
    }

    /// Keeps what an event is about. `kept_by` are events by which something was kept the last time: they
    /// are looked up first, and all events are gone through only for what they do not keep. No index finds
    /// events by their node or link, and a million of them take a second.
    fn keep_referred(
        &mut self,
        db: &Connection,
        kept_by: &mut BTreeSet<i64>,
    ) -> rusqlite::Result<()> {
        let mut event =
            db.prepare_cached("SELECT id, node, port, link FROM events WHERE id = ?1")?;
        for id in std::mem::take(kept_by) {
            let mut rows = event.query([id])?;
            if let Some(row) = rows.next()?
                && self.keep(row)?
            {
                kept_by.insert(id);
            }
        }
        // The latest event first: it is dropped last.
        let mut events = db.prepare_cached(
            "SELECT id, node, port, link FROM events WHERE coalesce(node, port, link) IS NOT NULL
             ORDER BY id DESC",
        )?;
        let mut rows = events.query([])?;
        while !(self.nodes.is_empty() && self.links.is_empty())
            && let Some(row) = rows.next()?
        {
            if self.keep(row)? {
                kept_by.insert(row.get(0)?);
            }
        }
        Ok(())
    }

    /// Keeps what an event is about; returns whether that was a candidate.
    fn keep(&mut self, event: &Row<'_>) -> rusqlite::Result<bool> {
        let mut is_kept = false;
        if let Some(node) = event.get::<_, Option<i64>>(1)? {
            is_kept |= self.nodes.remove(&node);
        }
        if let Some(port) = event.get::<_, Option<u32>>(2)? {
            is_kept |= self.keep_node_of(port);
        }
        if let Some(link) = event.get::<_, Option<i64>>(3)? {
            is_kept |= self.links.remove(&link);
        }
        Ok(is_kept)
    }

    /// Keeps the nodes at the ends of links that are kept.
    fn keep_linked(&mut self, db: &Connection) -> rusqlite::Result<()> {
        let ports: Vec<u32> = self.ports.keys().copied().collect();
        let mut links = db.prepare_cached(
            "SELECT id FROM links WHERE low = ?1 UNION ALL SELECT id FROM links WHERE high = ?1",
        )?;
        for port in ports {
            let mut rows = links.query([port])?;
            while let Some(row) = rows.next()? {
                if !self.links.contains(&row.get(0)?) {
                    self.keep_node_of(port);
                }
            }
        }
        self.ports.retain(|_, node| self.nodes.contains(node));
        Ok(())
    }

    fn keep_node_of(&mut self, port: u32) -> bool {
        self.ports.get(&port).is_some_and(|node| self.nodes.remove(node))
    }

    fn delete(&self, db: &Connection) -> rusqlite::Result<()> {
        let mut links = db.prepare_cached("DELETE FROM links WHERE id = ?1")?;
        for link in &self.links {
            links.execute([link])?;
        }
        let mut befores = db.prepare_cached("DELETE FROM befores WHERE port = ?1")?;
        let mut ports = db.prepare_cached("DELETE FROM ports WHERE id = ?1")?;
        for port in self.ports.keys() {
            befores.execute([port])?;
            ports.execute([port])?;
        }
        let mut names = db.prepare_cached("DELETE FROM names WHERE node = ?1")?;
        let mut nodes = db.prepare_cached("DELETE FROM nodes WHERE id = ?1")?;
        for node in &self.nodes {
            names.execute([node])?;
            nodes.execute([node])?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_event_that_keeps_a_link_is_looked_up_and_not_searched_for() {
        let db = Connection::open_in_memory().unwrap();
        db.execute_batch(
            "CREATE TABLE events (id INTEGER PRIMARY KEY, node, port, link);
             INSERT INTO events VALUES (1, NULL, NULL, 7), (2, NULL, NULL, 7), (3, 5, NULL, NULL)",
        )
        .unwrap();
        let mut kept_by = BTreeSet::new();
        let mut left = |links: &[i64]| {
            let links = links.iter().copied().collect();
            let mut unused = Unused { nodes: HashSet::new(), ports: HashMap::new(), links };
            unused.keep_referred(&db, &mut kept_by).unwrap();
            let mut left: Vec<i64> = unused.links.into_iter().collect();
            left.sort_unstable();
            (left, kept_by.clone())
        };
        assert_eq!(left(&[7, 8]), (vec![8], [2].into()));
        // An event that cannot be read ends a search, and not a look at another one.
        db.execute("INSERT INTO events VALUES (4, 'none', NULL, NULL)", []).unwrap();
        assert_eq!(left(&[7]), (vec![], [2].into()));
        db.execute("DELETE FROM events WHERE id IN (2, 4)", []).unwrap();
        assert_eq!(left(&[7]), (vec![], [1].into()));
        db.execute("DELETE FROM events WHERE id = 1", []).unwrap();
        assert_eq!(left(&[7]), (vec![7], [].into()));
    }
}
