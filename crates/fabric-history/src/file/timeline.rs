//! How nodes, ports and cables were in the sweeps of a window.

use std::collections::HashMap;

use rusqlite::params;

use ib_mad::{Guid, PortNumber};

use super::frame::Frame;
use super::growth::Swept;
use super::reader::Reader;
use super::state::State;
use super::tier::Tier;

/// A node as the file knows it.
#[derive(Clone, Debug)]
pub struct Someone {
    /// Its GUID.
    pub guid: Guid,
    /// `switch`, `ca` or `router`.
    pub kind: String,
    /// What it was called, from which sweep on; before the first, by that.
    names: Vec<(i64, String)>,
    /// From when to when it was there.
    there: Vec<(i64, i64)>,
}

/// A port as the file knows it.
#[derive(Clone, Copy, Debug)]
pub struct Somewhere {
    /// Its node's number in the file.
    pub node: u32,
    /// Its number on its node.
    pub number: PortNumber,
}

/// A cable, and when it was there.
#[derive(Clone, Copy, Debug)]
pub struct Led {
    /// Its ends' numbers in the file, the lower end first.
    pub ends: [u32; 2],
    since: i64,
    until: i64,
}

/// How a fabric was in some sweeps.
#[derive(Debug, Default)]
pub struct Timeline {
    /// Its nodes, by their numbers in the file.
    pub nodes: HashMap<u32, Someone>,
    /// Its ports, likewise.
    pub ports: HashMap<u32, Somewhere>,
    /// Its cables.
    pub cables: Vec<Led>,
    /// Whether it is known when nodes were there.
    is_known: bool,
    of_port: HashMap<u32, Vec<usize>>,
    node_states: Changes,
    port_states: Changes,
}

/// How things became: from when on each was so.
type Changes = HashMap<u32, Vec<(i64, State)>>;

impl Someone {
    /// What it was called in a sweep.
    pub fn name(&self, began: i64) -> &str {
        let after = self.names.partition_point(|(since, _)| *since <= began);
        self.names.get(after.saturating_sub(1)).map_or("", |(_, name)| name)
    }

    /// Whether it was there in a sweep.
    pub fn is_there(&self, began: i64) -> bool {
        self.there.iter().any(|(since, until)| (*since..*until).contains(&began))
    }
}

impl Led {
    /// The end at the other side of a port.
    pub fn other(&self, port: u32) -> u32 {
        let [low, high] = self.ends;
        if port == low { high } else { low }
    }

    /// Whether it was there in a sweep.
    pub fn is_there(&self, began: i64) -> bool {
        (self.since..self.until).contains(&began)
    }
}

impl Timeline {
    /// Whether a node answered in a sweep; none if it was not there.
    pub fn is_up(&self, node: u32, began: i64) -> Option<bool> {
        self.nodes
            .get(&node)?
            .is_there(began)
            .then(|| state(&self.node_states, node, began).up().unwrap_or(false))
    }

    /// Whether a node's ports were read in a sweep. Version 1 did not take down who answered.
    pub fn is_read(&self, node: u32, began: i64) -> bool {
        !self.is_known || self.is_up(node, began) == Some(true)
    }

    /// How a port was in a sweep.
    pub fn port(&self, port: u32, began: i64) -> State {
        state(&self.port_states, port, began)
    }

    /// Whether a port was known to have a link when a sweep was begun: by the sweep before, if there was
    /// one.
    pub fn had_link(&self, port: u32, began: i64) -> bool {
        let Some(course) = self.port_states.get(&port) else { return !self.is_known };
        let first = course.first().map_or(began, |(since, _)| *since);
        state(&self.port_states, port, (began - 1).max(first)).runs().is_some()
    }

    /// Where a port's cable led in a sweep.
    pub fn cable(&self, port: u32, began: i64) -> Option<&Led> {
        let cables = self.of_port.get(&port)?.iter().filter_map(|at| self.cables.get(*at));
        cables.filter(|cable| cable.is_there(began)).max_by_key(|cable| cable.since)
    }
}

fn state(changes: &Changes, it: u32, began: i64) -> State {
    let changes = changes.get(&it).map_or(&[][..], Vec::as_slice);
    let after = changes.partition_point(|(since, _)| *since <= began);
    after.checked_sub(1).and_then(|at| changes.get(at)).map_or(State::default(), |it| it.1)
}

impl Reader {
    /// How a fabric was in some sweeps, of which the first is the earliest.
    pub(crate) fn timeline(&self, fabric: i64, sweeps: &[Swept]) -> rusqlite::Result<Timeline> {
        let (Some(first), Some(last)) = (sweeps.first(), sweeps.last()) else {
            return Ok(Timeline::default());
        };
        let (first, last) = (first.began, last.began);
        let mut timeline = Timeline {
            node_states: self.changes(fabric, [Tier::AllNodes, Tier::Nodes], first, last)?,
            port_states: self.changes(fabric, [Tier::AllPorts, Tier::Ports], first, last)?,
            ..Timeline::default()
        };
        let mut statement =
            self.db.prepare("SELECT id, guid, kind FROM nodes WHERE fabric = ?1")?;
        let mut rows = statement.query([fabric])?;
        while let Some(row) = rows.next()? {
            let guid = Guid(row.get::<_, i64>(1)?.cast_unsigned());
            let someone = Someone { guid, kind: row.get(2)?, names: Vec::new(), there: Vec::new() };
            timeline.nodes.insert(row.get(0)?, someone);
        }
        let mut statement =
            self.db.prepare("SELECT node, since, name FROM names ORDER BY since")?;
        let mut rows = statement.query([])?;
        while let Some(row) = rows.next()? {
            if let Some(node) = timeline.nodes.get_mut(&row.get(0)?) {
                node.names.push((row.get(1)?, row.get(2)?));
            }
        }
        let mut statement =
            self.db.prepare("SELECT node, since, coalesce(until, ?1) FROM presences")?;
        let mut rows = statement.query([i64::MAX])?;
        while let Some(row) = rows.next()? {
            if let Some(node) = timeline.nodes.get_mut(&row.get(0)?) {
                node.there.push((row.get(1)?, row.get(2)?));
                timeline.is_known = true;
            }
        }
        let mut statement = self.db.prepare(
            "SELECT ports.id, node, number FROM ports JOIN nodes ON nodes.id = node
             WHERE fabric = ?1",
        )?;
        let mut rows = statement.query([fabric])?;
        while let Some(row) = rows.next()? {
            let port = Somewhere { node: row.get(1)?, number: row.get(2)? };
            timeline.ports.insert(row.get(0)?, port);
        }
        let mut statement = self.db.prepare(
            "SELECT low, high, since, coalesce(until, ?3) FROM cables
             JOIN links ON links.id = link JOIN ports ON ports.id = low
             JOIN nodes ON nodes.id = node
             WHERE fabric = ?1 AND since <= ?2 AND (until IS NULL OR until > ?4)
             ORDER BY since",
        )?;
        let mut rows = statement.query(params![fabric, last, i64::MAX, first])?;
        while let Some(row) = rows.next()? {
            let ends = [row.get(0)?, row.get(1)?];
            let at = timeline.cables.len();
            timeline.cables.push(Led { ends, since: row.get(2)?, until: row.get(3)? });
            timeline.of_port.entry(ends[0]).or_default().push(at);
            if ends[0] != ends[1] {
                timeline.of_port.entry(ends[1]).or_default().push(at);
            }
        }
        Ok(timeline)
    }

    /// How things became between two sweeps, from the latest whole account before the first on.
    fn changes(
        &self,
        fabric: i64,
        [all, some]: [Tier; 2],
        first: i64,
        last: i64,
    ) -> rusqlite::Result<Changes> {
        let mut whole = self.db.prepare_cached(
            "SELECT coalesce((SELECT max(began) FROM frames
                 WHERE tier = ?1 AND fabric = ?2 AND began <= ?3), ?3)",
        )?;
        let from: i64 = whole.query_row(params![all as u8, fabric, first], |row| row.get(0))?;
        // A whole account stands before changes of the same sweep, if there are any.
        let mut frames = self.db.prepare_cached(
            "SELECT tier, began, data FROM frames WHERE tier IN (?1, ?2) AND fabric = ?3
             AND began BETWEEN ?4 AND ?5 ORDER BY began, tier DESC",
        )?;
        let mut rows = frames.query(params![all as u8, some as u8, fabric, from, last])?;
        let mut changes = Changes::new();
        while let Some(row) = rows.next()? {
            let (tier, began): (u8, i64) = (row.get(0)?, row.get(1)?);
            let Ok(frame) = Frame::unpack(row.get_ref(2)?.as_blob()?) else { continue };
            if tier == all as u8 {
                // What it does not name is as nothing is known of it.
                for (it, course) in &mut changes {
                    if frame.of(*it).is_none() {
                        become_so(course, began, State::default());
                    }
                }
            }
            for entry in frame.entries() {
                let course = changes.entry(entry.port).or_default();
                let mut now = match course.last() {
                    Some((_, was)) if tier != all as u8 => *was,
                    _ => State::default(),
                };
                now.follow(&frame, entry);
                become_so(course, began, now);
            }
        }
        Ok(changes)
    }
}

fn become_so(course: &mut Vec<(i64, State)>, began: i64, now: State) {
    if course.last().is_none_or(|(_, was)| *was != now) {
        course.push((began, now));
    }
}
