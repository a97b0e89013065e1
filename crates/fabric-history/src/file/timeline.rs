//! How nodes, ports and cables were in the sweeps of a window.

use std::collections::HashMap;

use ib_mad::{Guid, PortNumber};

use super::frame::Frame;
use super::record_kind::RecordKind;
use super::segment_range::SweepTimes;
use super::sql::{CablePresence, Sql};
use super::state::State;
use super::state_at::{NODES, PORTS};

/// A node, with its names and when it was present.
#[derive(Clone, Debug)]
pub struct NodeTimeline {
    /// Its GUID.
    pub guid: Guid,
    /// `switch`, `ca` or `router`.
    pub kind: String,
    /// Its names, with the sweep from which on each holds; before the first, the first.
    names: Vec<(i64, String)>,
    /// The intervals in which it was present.
    present: Vec<(i64, i64)>,
}

/// How a fabric was in some sweeps.
#[derive(Debug, Default)]
pub struct Timeline {
    /// Its nodes, by id.
    pub nodes: HashMap<u32, NodeTimeline>,
    /// The ids of its ports' nodes, and their numbers on them, by id.
    pub ports: HashMap<u32, (u32, PortNumber)>,
    /// Its cables, the earliest first; with those of other fabrics.
    pub cables: Vec<CablePresence>,
    cables_of: HashMap<u32, Vec<usize>>,
    node_states: Changes,
    port_states: Changes,
}

/// States by id, with the time from which on each holds.
type Changes = HashMap<u32, Vec<(i64, State)>>;

impl NodeTimeline {
    /// Its name in a sweep.
    pub fn name(&self, began: i64) -> &str {
        let after = self.names.partition_point(|(since, _)| *since <= began);
        self.names.get(after.saturating_sub(1)).map_or("", |(_, name)| name)
    }

    /// Whether it was present in a sweep.
    pub fn is_present(&self, began: i64) -> bool {
        self.present.iter().any(|(since, until)| (*since..*until).contains(&began))
    }
}

impl CablePresence {
    /// The end at the other side of a port.
    pub fn other(&self, port: u32) -> u32 {
        let [low, high] = self.ends;
        if port == low { high } else { low }
    }

    /// Whether it was present in a sweep.
    pub fn is_present(&self, began: i64) -> bool {
        (self.since..self.until).contains(&began)
    }
}

impl Timeline {
    /// Reads how a fabric was in some sweeps, of which the first is the earliest.
    pub(crate) fn read(sql: Sql<'_>, fabric: i64, sweeps: &[SweepTimes]) -> rusqlite::Result<Self> {
        let (Some(first), Some(last)) = (sweeps.first(), sweeps.last()) else {
            return Ok(Timeline::default());
        };
        let (first, last) = (first.began, last.began);
        let mut timeline = Timeline {
            node_states: changes(sql, NODES, fabric, first, last)?,
            port_states: changes(sql, PORTS, fabric, first, last)?,
            ..Timeline::default()
        };
        for row in sql.nodes(fabric)? {
            let (names, present) = (Vec::new(), Vec::new());
            let node = NodeTimeline { guid: row.guid, kind: row.kind, names, present };
            timeline.nodes.insert(row.id, node);
        }
        for (node, since, name) in sql.names(fabric)? {
            if let Some(node) = timeline.nodes.get_mut(&node) {
                node.names.push((since, name));
            }
        }
        for (node, since, until) in sql.presences(fabric, (first, last))? {
            if let Some(node) = timeline.nodes.get_mut(&node) {
                node.present.push((since, until));
            }
        }
        let ports = sql.port_ids(fabric)?.into_iter();
        timeline.ports = ports.map(|(port, node, number)| (port, (node, number))).collect();
        timeline.cables = sql.cable_presences((first, last))?;
        timeline.cables.sort_by_key(|cable| cable.since);
        for (at, cable) in timeline.cables.iter().enumerate() {
            let [low, high] = cable.ends;
            timeline.cables_of.entry(low).or_default().push(at);
            if low != high {
                timeline.cables_of.entry(high).or_default().push(at);
            }
        }
        Ok(timeline)
    }

    /// Whether a node responded in a sweep; `None` if it was not present.
    pub fn is_up(&self, node: u32, began: i64) -> Option<bool> {
        let is_present = self.nodes.get(&node)?.is_present(began);
        is_present.then(|| state(&self.node_states, node, began).up().unwrap_or(false))
    }

    /// The state of a port in a sweep.
    pub fn port(&self, port: u32, began: i64) -> State {
        state(&self.port_states, port, began)
    }

    /// Whether a port was known to have a link when a sweep began: by the sweep before, if there was
    /// one.
    pub fn had_link(&self, port: u32, began: i64) -> bool {
        let first = self.port_states.get(&port).and_then(|changes| changes.first());
        first.is_some_and(|(first, _)| self.port(port, (began - 1).max(*first)).runs().is_some())
    }

    /// The peer of a port in a sweep.
    pub fn cable(&self, port: u32, began: i64) -> Option<&CablePresence> {
        let cables = self.cables_of.get(&port)?.iter().filter_map(|at| self.cables.get(*at));
        cables.filter(|cable| cable.is_present(began)).max_by_key(|cable| cable.since)
    }
}

fn state(changes: &Changes, id: u32, began: i64) -> State {
    let changes = changes.get(&id).map_or(&[][..], Vec::as_slice);
    let after = changes.partition_point(|(since, _)| *since <= began);
    after.checked_sub(1).and_then(|at| changes.get(at)).map_or(State::default(), |it| it.1)
}

/// How states changed between two sweeps, from the latest complete ones before the first on.
fn changes(
    sql: Sql<'_>,
    kinds: [RecordKind; 2],
    fabric: i64,
    first: i64,
    last: i64,
) -> rusqlite::Result<Changes> {
    let from = sql.latest_frame(kinds[0], fabric, first)?.unwrap_or(first);
    let mut changes = Changes::new();
    sql.states(kinds, fabric, from..=last, &mut |is_complete, began, data| {
        let Ok(frame) = Frame::unpack(data) else { return };
        if is_complete {
            // Ports and nodes that it does not contain are unknown.
            for (id, course) in &mut changes {
                if frame.get(*id).is_none() {
                    push(course, began, State::default());
                }
            }
        }
        for entry in frame.entries() {
            let course = changes.entry(entry.port).or_default();
            let mut now = match course.last() {
                Some((_, was)) if !is_complete => *was,
                _ => State::default(),
            };
            now.apply(&frame, entry);
            push(course, began, now);
        }
    })?;
    Ok(changes)
}

fn push(course: &mut Vec<(i64, State)>, began: i64, now: State) {
    if course.last().is_none_or(|(_, was)| *was != now) {
        course.push((began, now));
    }
}
