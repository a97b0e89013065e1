//! Drops rows of the catalog that nothing refers to: a host that creates and deletes virtual functions would
//! otherwise fill the file with their names.
//!
//! Most references are rows that SQL finds: events, cables, and presences, which are the intervals in which a
//! node was there. Frames and digests refer to nodes and ports by id inside packed data, which would take
//! minutes to search. But a sweep contains only ports of nodes that were present when it was written.
//! Therefore a node is dropped with its last presence, and a presence is dropped when it ended before the
//! oldest sweep that is kept. This needs times that rise in the order of writing: while a sweep is kept
//! before which the clock was set back, nothing is dropped.
//!
//! SQLite assigns ids again. Therefore the totals of dropped ports are removed in the same transaction, and
//! all totals and states of the fabric are rewritten.

use std::collections::{BTreeSet, HashMap, HashSet};

use rusqlite::{Connection, Result, Row, Transaction};

use ib_fabric::Fabric;
use ib_mad::Guid;

use super::catalog::FabricIds;

/// The beginning of a fabric's oldest sweep of which anything is kept. `None` if there is none, or if times
/// do not rise in the order of writing.
pub(super) fn oldest(db: &Connection, fabric: i64) -> Result<Option<i64>> {
    // Each of these reads no more than the fabric's part of one index.
    let query = |sql: &str| -> Result<Option<i64>> {
        db.prepare_cached(sql)?.query_row([fabric], |row| row.get(0))
    };
    let first = query("SELECT min(id) FROM sweeps WHERE fabric = ?1")?;
    // A sweep that follows one that began later has no `since`; nor has the very first one.
    let back = query("SELECT max(id) FROM sweeps WHERE fabric = ?1 AND since IS NULL")?;
    let Some(oldest) = query("SELECT min(began) FROM sweeps WHERE fabric = ?1")? else {
        return Ok(None);
    };
    if back.is_some() && back > first {
        return Ok(None);
    }
    // A digest is kept as long as its last sweep.
    let digested = query("SELECT min(first) FROM spans WHERE fabric = ?1")?;
    Ok(Some(digested.map_or(oldest, |digested| digested.min(oldest))))
}

/// Rows to which no reference was found yet.
#[derive(Default)]
struct Unreferenced {
    nodes: HashSet<i64>,
    /// The ports of those nodes, with their node.
    ports: HashMap<u32, i64>,
    links: HashSet<i64>,
}

/// Drops the unreferenced nodes, ports, links and names of a fabric; nothing of `current` is dropped. Returns
/// the ids of the dropped ports.
pub(super) fn drop_unused(
    db: &Transaction<'_>,
    ids: &mut FabricIds,
    current: &Fabric,
) -> Result<Vec<u32>> {
    let fabric = ids.fabric;
    let Some(oldest) = oldest(db, fabric)? else { return Ok(Vec::new()) };
    drop_names(db, fabric, oldest)?;
    let mut unused = Unreferenced::candidates(db, fabric, current)?;
    if unused.nodes.is_empty() && unused.links.is_empty() {
        return Ok(Vec::new());
    }
    unused.keep_subjects(db, &mut ids.referring_events)?;
    unused.keep_linked(db)?;
    unused.delete(db)?;
    ids.remove(&unused.nodes, &unused.links);
    Ok(unused.ports.into_keys().collect())
}

/// Drops the names that nodes had before the oldest sweep.
fn drop_names(db: &Connection, fabric: i64, oldest: i64) -> Result<()> {
    db.prepare_cached(
        "DELETE FROM names WHERE node IN (SELECT id FROM nodes WHERE fabric = ?1)
         AND since < (SELECT max(since) FROM names AS later
             WHERE later.node = names.node AND later.since <= ?2)",
    )?
    .execute([fabric, oldest])?;
    Ok(())
}

impl Unreferenced {
    /// Nodes that were present in no sweep that is kept, and links without a cable that is kept.
    fn candidates(db: &Connection, fabric: i64, current: &Fabric) -> Result<Self> {
        let mut unused = Unreferenced::default();
        let mut links = db.prepare_cached(
            "SELECT links.id FROM links JOIN ports ON ports.id = low JOIN nodes ON nodes.id = node
             WHERE fabric = ?1 AND NOT EXISTS (SELECT 1 FROM cables WHERE link = links.id)",
        )?;
        for link in links.query_map([fabric], |row| row.get(0))? {
            unused.links.insert(link?);
        }
        let mut nodes = db.prepare_cached(
            "SELECT id, guid FROM nodes WHERE fabric = ?1
             AND NOT EXISTS (SELECT 1 FROM presences WHERE node = nodes.id)",
        )?;
        let mut ports = db.prepare_cached("SELECT id FROM ports WHERE node = ?1")?;
        let mut rows = nodes.query([fabric])?;
        while let Some(row) = rows.next()? {
            let (node, guid): (i64, i64) = (row.get(0)?, row.get(1)?);
            if current.node_by_guid(Guid(guid.cast_unsigned())).is_some() {
                continue;
            }
            unused.nodes.insert(node);
            for port in ports.query_map([node], |row| row.get(0))? {
                unused.ports.insert(port?, node);
            }
        }
        Ok(unused)
    }

    /// Keeps what events are about. `referring` are the events that kept something the last time: they are
    /// looked up first, and all events are searched only for the remaining candidates. No index finds events
    /// by their node or link, and searching a million of them takes a second.
    fn keep_subjects(&mut self, db: &Connection, referring: &mut BTreeSet<i64>) -> Result<()> {
        let mut event =
            db.prepare_cached("SELECT id, node, port, link FROM events WHERE id = ?1")?;
        for id in std::mem::take(referring) {
            let mut rows = event.query([id])?;
            if let Some(row) = rows.next()?
                && self.keep(row)?
            {
                referring.insert(id);
            }
        }
        // The latest event first, because it is dropped last.
        let mut events = db.prepare_cached(
            "SELECT id, node, port, link FROM events WHERE coalesce(node, port, link) IS NOT NULL
             ORDER BY id DESC",
        )?;
        let mut rows = events.query([])?;
        while !(self.nodes.is_empty() && self.links.is_empty())
            && let Some(row) = rows.next()?
        {
            if self.keep(row)? {
                referring.insert(row.get(0)?);
            }
        }
        Ok(())
    }

    /// Keeps what an event is about; returns whether that was a candidate.
    fn keep(&mut self, event: &Row<'_>) -> Result<bool> {
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
    fn keep_linked(&mut self, db: &Connection) -> Result<()> {
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

    fn delete(&self, db: &Connection) -> Result<()> {
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
    fn referring_events_are_looked_up_before_all_are_searched() {
        let db = Connection::open_in_memory().unwrap();
        db.execute_batch(
            "CREATE TABLE events (id INTEGER PRIMARY KEY, node, port, link);
             INSERT INTO events VALUES (1, NULL, NULL, 7), (2, NULL, NULL, 7), (3, 5, NULL, NULL)",
        )
        .unwrap();
        let mut referring = BTreeSet::new();
        let mut left = |links: &[i64]| {
            let links = links.iter().copied().collect();
            let mut unused = Unreferenced { links, ..Unreferenced::default() };
            unused.keep_subjects(&db, &mut referring).unwrap();
            let mut left: Vec<i64> = unused.links.into_iter().collect();
            left.sort_unstable();
            (left, referring.clone())
        };
        assert_eq!(left(&[7, 8]), (vec![8], [2].into()));
        // An unreadable event fails a search, but not the lookup of another event.
        db.execute("INSERT INTO events VALUES (4, 'none', NULL, NULL)", []).unwrap();
        assert_eq!(left(&[7]), (vec![], [2].into()));
        db.execute("DELETE FROM events WHERE id IN (2, 4)", []).unwrap();
        assert_eq!(left(&[7]), (vec![], [1].into()));
        db.execute("DELETE FROM events WHERE id = 1", []).unwrap();
        assert_eq!(left(&[7]), (vec![7], [].into()));
    }
}
