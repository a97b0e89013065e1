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
use crate::file::sql::{FABRIC_OF_LINK, Sql};

/// The beginning of a fabric's oldest sweep of which anything is kept. `None` if there is none, or if times
/// do not rise in the order of writing.
pub(super) fn oldest(db: &Connection, fabric: i64) -> Result<Option<i64>> {
    // Each of these reads no more than the fabric's part of one index.
    let query = |sql: &str| Sql(db).value::<i64>(sql, [fabric]);
    let Some(oldest) = query("SELECT min(began) FROM sweeps WHERE fabric = ?1")? else {
        return Ok(None);
    };
    if Sql(db).has_clock_set_back(fabric)? {
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
    Sql(db).execute(
        "DELETE FROM names WHERE node IN (SELECT id FROM nodes WHERE fabric = ?1)
         AND since < (SELECT max(since) FROM names AS later
             WHERE later.node = names.node AND later.since <= ?2)",
        [fabric, oldest],
    )?;
    Ok(())
}

impl Unreferenced {
    /// Nodes that were present in no sweep that is kept, and links without a cable that is kept.
    fn candidates(db: &Connection, fabric: i64, current: &Fabric) -> Result<Self> {
        let links = format!(
            "SELECT links.id FROM links {FABRIC_OF_LINK} = ?1
             AND NOT EXISTS (SELECT 1 FROM cables WHERE link = links.id)"
        );
        let links = Sql(db).column(&links, [fabric])?;
        let mut unused = Unreferenced { links, ..Unreferenced::default() };
        let nodes: Vec<(i64, i64, Option<u32>)> = Sql(db).rows(
            "SELECT nodes.id, guid, ports.id FROM nodes LEFT JOIN ports ON ports.node = nodes.id
             WHERE fabric = ?1 AND NOT EXISTS (SELECT 1 FROM presences WHERE node = nodes.id)",
            [fabric],
        )?;
        for (node, guid, port) in nodes {
            if current.node_by_guid(Guid(guid.cast_unsigned())).is_none() {
                unused.nodes.insert(node);
                unused.ports.extend(port.map(|port| (port, node)));
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
        let (_, node, port, link): (i64, Option<i64>, Option<u32>, Option<i64>) =
            event.try_into()?;
        let is_node_kept = node.is_some_and(|node| self.nodes.remove(&node));
        let is_port_kept = port.is_some_and(|port| self.keep_node_of(port));
        let is_link_kept = link.is_some_and(|link| self.links.remove(&link));
        Ok(is_node_kept || is_port_kept || is_link_kept)
    }

    /// Keeps the nodes at the ends of links that are kept.
    fn keep_linked(&mut self, db: &Connection) -> Result<()> {
        let ports: Vec<u32> = self.ports.keys().copied().collect();
        let sql =
            "SELECT id FROM links WHERE low = ?1 UNION ALL SELECT id FROM links WHERE high = ?1";
        for port in ports {
            let links: Vec<i64> = Sql(db).column(sql, [port])?;
            if links.iter().any(|link| !self.links.contains(link)) {
                self.keep_node_of(port);
            }
        }
        self.ports.retain(|_, node| self.nodes.contains(node));
        Ok(())
    }

    fn keep_node_of(&mut self, port: u32) -> bool {
        self.ports.get(&port).is_some_and(|node| self.nodes.remove(node))
    }

    fn delete(&self, db: &Connection) -> Result<()> {
        for link in &self.links {
            Sql(db).execute("DELETE FROM links WHERE id = ?1", [link])?;
        }
        for port in self.ports.keys() {
            Sql(db).execute("DELETE FROM befores WHERE port = ?1", [port])?;
            Sql(db).execute("DELETE FROM ports WHERE id = ?1", [port])?;
        }
        for node in &self.nodes {
            Sql(db).execute("DELETE FROM names WHERE node = ?1", [node])?;
            Sql(db).execute("DELETE FROM nodes WHERE id = ?1", [node])?;
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
