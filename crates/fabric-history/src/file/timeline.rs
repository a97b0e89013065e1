//! The state of nodes, ports and cables: at a moment, and in the sweeps of a window.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::time::SystemTime;

use rusqlite::Result;

use crate::file::frame::Frame;
use crate::file::record_kind::{RecordKind, State};
use crate::file::sql::{CablePresence, CableRow, Sql};
use crate::file::totals::SweepTimes;
use crate::model::{Cable, FabricState, Node, Port, Window};
use crate::{micros_of, time_of};
use ib_fabric::topology::End;
use ib_mad::{Guid, PortNumber};

/// A node, with its names and when it was present.
#[derive(Clone, Debug)]
pub struct NodeTimeline {
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
    pub nodes: HashMap<u32, NodeTimeline>,
    /// The ids of its ports' nodes, and their numbers on them, by id.
    pub ports: HashMap<u32, (u32, PortNumber)>,
    /// Its cables, the earliest first; with those of other fabrics.
    pub cables: Vec<CablePresence>,
    cables_of: HashMap<u32, Vec<CablePresence>>,
    node_states: Changes,
    port_states: Changes,
}

/// States by id, with the time from which on each holds.
type Changes = HashMap<u32, Vec<(i64, State)>>;

impl NodeTimeline {
    pub fn name(&self, began: i64) -> &str {
        let after = self.names.partition_point(|(since, _)| *since <= began);
        self.names.get(after.saturating_sub(1)).map_or("", |(_, name)| name)
    }

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

    pub fn is_present(&self, began: i64) -> bool {
        (self.since..self.until).contains(&began)
    }
}

impl Timeline {
    /// Reads how a fabric was in some sweeps, of which the first is the earliest.
    pub(crate) fn read(sql: Sql<'_>, fabric: i64, sweeps: &[SweepTimes]) -> Result<Self> {
        let (Some(first), Some(last)) = (sweeps.first(), sweeps.last()) else {
            return Ok(Timeline::default());
        };
        let (first, last) = (first.began, last.began);
        let mut timeline = Timeline {
            node_states: changes(sql, NODES, fabric, first, last)?,
            port_states: changes(sql, PORTS, fabric, first, last)?,
            ..Timeline::default()
        };
        let nodes = sql.nodes(fabric)?.into_iter();
        let node = |guid, kind| NodeTimeline { guid, kind, names: Vec::new(), present: Vec::new() };
        timeline.nodes = nodes.map(|(id, guid, kind)| (id, node(guid, kind))).collect();
        for (node, since, name) in sql.names(fabric)? {
            if let Some(node) = timeline.nodes.get_mut(&node) {
                node.names.push((since, name));
            }
        }
        for (node, since, until) in sql.presences(fabric, first, last)? {
            if let Some(node) = timeline.nodes.get_mut(&node) {
                node.present.push((since, until));
            }
        }
        let ports = sql.port_ids(fabric)?.into_iter();
        timeline.ports = ports.map(|(port, node, number)| (port, (node, number))).collect();
        timeline.cables = sql.cable_presences((first, last))?;
        timeline.cables.sort_by_key(|cable| cable.since);
        for cable in &timeline.cables {
            for end in BTreeSet::from(cable.ends) {
                timeline.cables_of.entry(end).or_default().push(*cable);
            }
        }
        Ok(timeline)
    }

    /// Whether a node responded in a sweep; `None` if it was not present.
    pub fn is_up(&self, node: u32, began: i64) -> Option<bool> {
        let is_present = self.nodes.get(&node)?.is_present(began);
        is_present.then(|| state(&self.node_states, node, began).up().unwrap_or(false))
    }

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
        let cables = self.cables_of.get(&port)?.iter();
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
) -> Result<Changes> {
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

/// The kinds of records with states of ports and of nodes: complete ones, and changes.
pub(super) const PORTS: [RecordKind; 2] = [RecordKind::PortStates, RecordKind::PortChanges];
pub(super) const NODES: [RecordKind; 2] = [RecordKind::NodeStates, RecordKind::NodeChanges];

/// States by the ids of ports or nodes.
type States = HashMap<u32, State>;

/// The cables of some ports in a window.
pub(super) fn cables(sql: Sql<'_>, ends: &[End], window: Window) -> Result<Vec<Cable>> {
    let ports: Vec<u32> = sql.ports_at(ends)?.into_iter().map(|(id, _)| id).collect();
    if ports.is_empty() {
        return Ok(Vec::new());
    }
    let (from, to) = window.micros();
    // As it was at the end of the window, or just before the sweep that missed it.
    let mut moments: BTreeMap<(i64, i64), Vec<CableRow>> = BTreeMap::new();
    for row in sql.cables_at(&ports, (from, to))? {
        let at = row.until.map_or(to, |until| to.min(until - 1));
        moments.entry((at, row.fabric)).or_default().push(row);
    }
    let mut cables: BTreeMap<_, Cable> = BTreeMap::new();
    for ((at, fabric), rows) in moments {
        let states = states(sql, PORTS, fabric, at)?.unwrap_or_default();
        let names = names(sql, fabric, at)?;
        // One that was present twice has its latest state.
        let at_moment = rows.into_iter().map(|row| cable(row, &names, &states));
        cables.extend(at_moment.map(|cable| (cable.link(), cable)));
    }
    Ok(cables.into_values().collect())
}

/// The fabrics as they were at a moment.
pub(super) fn fabrics(sql: Sql<'_>, at: SystemTime) -> Result<Vec<FabricState>> {
    let at = micros_of(at);
    let mut fabrics = Vec::new();
    for (fabric, name) in sql.fabrics()? {
        fabrics.extend(fabric_at(sql, fabric, name, at)?);
    }
    Ok(fabrics)
}

fn fabric_at(sql: Sql<'_>, fabric: i64, name: String, at: i64) -> Result<Option<FabricState>> {
    let Some(sweep) = sql.latest_sweep(fabric, at)? else { return Ok(None) };
    let Some(ports) = states(sql, PORTS, fabric, sweep)? else { return Ok(None) };
    let up = states(sql, NODES, fabric, sweep)?.unwrap_or_default();
    let names = names(sql, fabric, sweep)?;
    let present = sql.presences(fabric, sweep, sweep)?;
    let present: HashSet<u32> = present.into_iter().map(|(node, ..)| node).collect();
    let nodes = sql.nodes(fabric)?.into_iter().filter(|(id, ..)| present.contains(id));
    let node = |(id, guid, kind)| {
        let name = names.get(&id).cloned().unwrap_or_default();
        let up = up.get(&id).and_then(|state| state.up()).unwrap_or(false);
        Node { guid, name, kind, up }
    };
    let mut nodes: Vec<Node> = nodes.map(node).collect();
    nodes.sort_by_key(|node| node.guid);
    let cables = sql.cables_in(fabric, sweep)?.into_iter();
    let mut cables: Vec<Cable> = cables.map(|row| cable(row, &names, &ports)).collect();
    cables.sort_by_key(Cable::link);
    Ok(Some(FabricState { fabric: name, at: time_of(sweep), nodes, cables }))
}

/// A cable with its ends' names and states.
fn cable(row: CableRow, names: &HashMap<u32, String>, states: &States) -> Cable {
    let CableRow { ports, nodes, mut ends, .. } = row;
    for (end, node) in ends.iter_mut().zip(nodes) {
        end.node = names.get(&node).cloned().unwrap_or_default();
    }
    let [low, high] = ports.map(|port| states.get(&port).copied().unwrap_or_default());
    ends.sort_by_key(Port::end);
    // Both ends have the verdict on the cable; its rate is that of either end.
    Cable { ends, up: low.up(), verdict: low.verdict(), rate: low.rate().or_else(|| high.rate()) }
}

/// The states at a moment: the latest complete ones before it, and what changed since. None if there are
/// no complete ones that can be read.
fn states(sql: Sql<'_>, kinds: [RecordKind; 2], fabric: i64, at: i64) -> Result<Option<States>> {
    let Some(from) = sql.latest_frame(kinds[0], fabric, at)? else { return Ok(None) };
    let mut states = None;
    sql.states(kinds, fabric, from..=at, &mut |is_complete, _, data| {
        let frame = Frame::unpack(data).ok();
        if is_complete {
            states = frame.is_some().then(States::new);
        }
        if let (Some(states), Some(frame)) = (&mut states, frame) {
            for entry in frame.entries() {
                states.entry(entry.port).or_default().apply(&frame, entry);
            }
        }
    })?;
    Ok(states)
}

/// The names of the nodes at a moment; before the first one, that.
fn names(sql: Sql<'_>, fabric: i64, at: i64) -> Result<HashMap<u32, String>> {
    let mut names = HashMap::new();
    for (node, since, name) in sql.names(fabric)? {
        if since <= at || !names.contains_key(&node) {
            names.insert(node, name);
        }
    }
    Ok(names)
}
