//! The state of nodes, ports and cables: at a moment, and in the sweeps of a window.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::ops::RangeInclusive;
use std::time::SystemTime;

use rusqlite::Result;

use crate::file::frame::Frame;
use crate::file::id_map::IdMap;
use crate::file::record_kind::{RecordKind, State};
use crate::file::sql::{CablePresence, Sql};
use crate::model::{Cable, FabricState, Node, Port, Window};
use crate::{micros_of, time_of};
use ib_mad::{Guid, PortKey, PortNumber};

/// The name and the host of a node, and the sweep from which on it has them.
type Named = (i64, String, Option<String>);

/// A node, with its names and when it was present.
#[derive(Clone, Debug)]
pub struct NodeTimeline {
    pub guid: Guid,
    /// `switch`, `ca` or `router`.
    pub kind: String,
    /// Its names and hosts, with the sweep from which on each holds; before the first, the first.
    names: Vec<Named>,
    /// The intervals in which it was present.
    present: Vec<(i64, i64)>,
}

/// The id of a port's node, and the port's number.
#[derive(Clone, Copy, Debug)]
pub struct PortOfNode {
    pub node: u32,
    pub number: PortNumber,
}

/// How a fabric was in some sweeps.
#[derive(Debug, Default)]
pub struct Timeline {
    pub nodes: IdMap<NodeTimeline>,
    pub ports: IdMap<PortOfNode>,
    /// Its cables, the earliest first; with those of other fabrics.
    pub cables: Vec<CablePresence>,
    cables_of: IdMap<Vec<CablePresence>>,
    node_states: Changes,
    port_states: Changes,
    /// Whether the states of all ports at any time can be read.
    pub is_known: bool,
}

/// States by id, with the time from which on each holds.
type Changes = IdMap<Vec<(i64, State)>>;

impl NodeTimeline {
    /// Its name and its host in a sweep.
    pub fn name(&self, began: i64) -> (&str, Option<&str>) {
        name_at(&self.names, began)
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
    /// Reads how a fabric was from one sweep to another.
    pub(crate) fn read(sql: Sql<'_>, fabric: i64, first: i64, last: i64) -> Result<Self> {
        let (node_states, _) = changes(sql, NODES, fabric, first..=last, &|_| true)?;
        let (port_states, is_known) = changes(sql, PORTS, fabric, first..=last, &|_| true)?;
        let mut timeline = Timeline { node_states, port_states, is_known, ..Timeline::default() };
        let nodes = sql.nodes(fabric)?.into_iter();
        let node = |(id, guid, kind): (u32, i64, String)| {
            let guid = Guid(guid.cast_unsigned());
            (id, NodeTimeline { guid, kind, names: Vec::new(), present: Vec::new() })
        };
        timeline.nodes = nodes.map(node).collect();
        for (node, since, name, host) in sql.names(fabric)? {
            if let Some(node) = timeline.nodes.get_mut(node) {
                node.names.push((since, name, host));
            }
        }
        for (node, since, until) in sql.presences(fabric, first, last)? {
            if let Some(node) = timeline.nodes.get_mut(node) {
                node.present.push((since, until));
            }
        }
        let ports = sql.port_ids(fabric)?.into_iter();
        timeline.ports =
            ports.map(|(port, node, number)| (port, PortOfNode { node, number })).collect();
        timeline.cables = sql.cable_presences((first, last))?;
        for cable in &timeline.cables {
            let [low, high] = cable.ends;
            timeline.cables_of.get_or_insert_with(low, Vec::new).push(*cable);
            if high != low {
                timeline.cables_of.get_or_insert_with(high, Vec::new).push(*cable);
            }
        }
        Ok(timeline)
    }

    /// The GUID of a port's node, and the port's number.
    pub fn end(&self, port: u32) -> Option<PortKey> {
        Some(PortKey::new(self.node_of(port)?.guid, self.ports.get(port)?.number))
    }

    pub fn node_of(&self, port: u32) -> Option<&NodeTimeline> {
        self.nodes.get(self.ports.get(port)?.node)
    }

    /// Whether a node responded in a sweep; `None` if it was not present.
    pub fn is_up(&self, node: u32, began: i64) -> Option<bool> {
        let is_present = self.nodes.get(node)?.is_present(began);
        is_present.then(|| state(&self.node_states, node, began).up().unwrap_or(false))
    }

    /// The state of a node in a sweep.
    pub fn node(&self, node: u32, began: i64) -> State {
        state(&self.node_states, node, began)
    }

    pub fn port(&self, port: u32, began: i64) -> State {
        state(&self.port_states, port, began)
    }

    /// The state of a port in a sweep, and the sweep from which on it has been up or down at the same rate.
    pub fn state_since(&self, port: u32, began: i64) -> (i64, State) {
        let now = self.port(port, began);
        let changes = self.port_states.get(port).map_or(&[][..], Vec::as_slice);
        let until = changes.partition_point(|(since, _)| *since <= began);
        let is_same = |was: &State| was.up() == now.up() && was.runs() == now.runs();
        let same = changes[..until].iter().rev().take_while(|(_, was)| is_same(was)).last();
        (same.map_or(began, |(since, _)| *since), now)
    }

    /// Whether a port was known to have a link when a sweep began: by the sweep before, if there was one.
    pub fn had_link(&self, port: u32, began: i64) -> bool {
        let first = self.port_states.get(port).and_then(|changes| changes.first());
        first.is_some_and(|(first, _)| self.port(port, (began - 1).max(*first)).runs().is_some())
    }

    /// The peer of a port in a sweep.
    pub fn cable(&self, port: u32, began: i64) -> Option<&CablePresence> {
        self.cables_of.get(port)?.iter().rfind(|cable| cable.is_present(began))
    }

    /// The whole fabric in a sweep.
    fn state(&self, fabric: String, began: i64) -> Option<FabricState> {
        let nodes = self.nodes.iter().filter_map(|(id, node)| {
            let ((name, host), kind) = (node.name(began), node.kind.clone());
            let (name, host) = (name.to_owned(), host.map(str::to_owned));
            Some(Node { guid: node.guid, name, host, kind, up: self.is_up(id, began)? })
        });
        let mut nodes: Vec<Node> = nodes.collect();
        nodes.sort_by_key(|node| node.guid);
        let cables = self.cables.iter().filter(|cable| cable.is_present(began));
        let cables = cables.filter_map(|cable| self.cable_at(&fabric, cable, began));
        let mut cables: Vec<Cable> = cables.collect();
        cables.sort_by_key(Cable::link);
        self.is_known.then(|| FabricState { fabric, at: time_of(began), nodes, cables })
    }

    /// A cable with its ends' names and states; `None` if it is another fabric's.
    fn cable_at(&self, fabric: &str, cable: &CablePresence, at: i64) -> Option<Cable> {
        let end = |id| {
            let (PortKey { guid, number: port }, (node, host)) =
                (self.end(id)?, self.node_of(id)?.name(at));
            let (node, host) = (node.to_owned(), host.map(str::to_owned));
            Some(Port { fabric: fabric.to_owned(), guid, port, node, host })
        };
        let [low, high] = cable.ends;
        Some(cable_of([end(low)?, end(high)?], cable.ends.map(|port| self.port(port, at))))
    }
}

fn name_at(names: &[Named], began: i64) -> (&str, Option<&str>) {
    let after = names.partition_point(|(since, ..)| *since <= began);
    let latest = names.get(after.saturating_sub(1));
    latest.map_or(("", None), |(_, name, host)| (name, host.as_deref()))
}

fn state(changes: &Changes, id: u32, began: i64) -> State {
    let changes = changes.get(id).map_or(&[][..], Vec::as_slice);
    let after = changes.partition_point(|(since, _)| *since <= began);
    after.checked_sub(1).and_then(|at| changes.get(at)).map_or(State::default(), |it| it.1)
}

/// How the wanted states changed from one sweep to another, from the latest complete ones before the first on; and
/// whether any complete ones can be read.
fn changes(
    sql: Sql<'_>,
    kinds: [RecordKind; 2],
    fabric: i64,
    sweeps: RangeInclusive<i64>,
    wanted: &dyn Fn(u32) -> bool,
) -> Result<(Changes, bool)> {
    let first = *sweeps.start();
    let from = sql.latest_frame(kinds[0], fabric, first)?.unwrap_or(first);
    let (mut changes, mut is_known) = (Changes::default(), false);
    sql.states(kinds, fabric, from..=*sweeps.end(), &mut |is_complete, began, data| {
        let Ok(frame) = Frame::unpack(data) else { return };
        is_known |= is_complete;
        if is_complete {
            // Ports and nodes that it does not contain are unknown.
            for (id, course) in changes.iter_mut() {
                if frame.get(id).is_none() {
                    push(course, began, State::default());
                }
            }
        }
        for entry in frame.entries().iter().filter(|entry| wanted(entry.port)) {
            let course = changes.get_or_insert_with(entry.port, Vec::new);
            let mut now = match course.last() {
                Some((_, was)) if !is_complete => *was,
                _ => State::default(),
            };
            now.apply(&frame, entry);
            push(course, began, now);
        }
    })?;
    Ok((changes, is_known))
}

fn push(course: &mut Vec<(i64, State)>, began: i64, now: State) {
    if course.last().is_none_or(|(_, was)| *was != now) {
        course.push((began, now));
    }
}

/// The kinds of records with states of ports and of nodes: complete ones, and changes.
pub(super) const PORTS: [RecordKind; 2] = [RecordKind::PortStates, RecordKind::PortChanges];
pub(super) const NODES: [RecordKind; 2] = [RecordKind::NodeStates, RecordKind::NodeChanges];

/// The cables of some ports in a window.
pub(super) fn cables(sql: Sql<'_>, ends: &[PortKey], window: Window) -> Result<Vec<Cable>> {
    let (from, to) = window.micros();
    let ids: Vec<u32> = sql.ports_at(ends)?.into_iter().map(|(id, _)| id).collect();
    let present = sql.cable_presences_of(&ids, (from, to))?;
    let ids: HashSet<u32> = present.iter().flat_map(|cable| cable.ends).collect();
    let ports: HashMap<u32, Port> = sql.ports_by_id(ids.iter().copied())?.into_iter().collect();
    let fabrics: HashMap<String, i64> =
        sql.fabrics()?.into_iter().map(|(id, name)| (name, id)).collect();
    // As it was at the end of the window, or just before the sweep that missed it.
    let mut moments: BTreeMap<(i64, i64), Vec<CablePresence>> = BTreeMap::new();
    for cable in present {
        let name = ports.get(&cable.ends[0]).map(|port| &port.fabric);
        if let Some(fabric) = name.and_then(|name| fabrics.get(name)) {
            let at = to.min(cable.until.saturating_sub(1));
            moments.entry((at, *fabric)).or_default().push(cable);
        }
    }
    let mut cables: BTreeMap<_, Cable> = BTreeMap::new();
    for ((at, fabric), present) in moments {
        let (states, _) = changes(sql, PORTS, fabric, at..=at, &|port| ids.contains(&port))?;
        for cable in present {
            let [low, high] = cable.ends;
            let Some(ends) = ports.get(&low).zip(ports.get(&high)) else { continue };
            let mut ends = [ends.0.clone(), ends.1.clone()];
            for (id, end) in cable.ends.into_iter().zip(&mut ends) {
                let names = sql.names_of(id)?;
                let (node, host) = name_at(&names, at);
                (end.node, end.host) = (node.to_owned(), host.map(str::to_owned));
            }
            let cable = cable_of(ends, cable.ends.map(|port| state(&states, port, at)));
            // One that was present twice has its latest state.
            cables.insert(cable.link(), cable);
        }
    }
    Ok(cables.into_values().collect())
}

/// A cable by its ends, and their states in the same order.
fn cable_of(mut ends: [Port; 2], [low, high]: [State; 2]) -> Cable {
    ends.sort_by_key(Port::end);
    // Both ends have the verdict on the cable; its rate is that of either end.
    Cable { ends, up: low.up(), verdict: low.verdict(), rate: low.rate().or_else(|| high.rate()) }
}

/// The wanted fabrics as they were at a moment; without those of which the states of ports cannot be read.
pub(super) fn fabrics(
    sql: Sql<'_>,
    at: SystemTime,
    is_wanted: &dyn Fn(&str) -> bool,
) -> Result<Vec<FabricState>> {
    let mut fabrics = Vec::new();
    for (fabric, name) in sql.fabrics()?.into_iter().filter(|(_, name)| is_wanted(name)) {
        if let Some(sweep) = sql.latest_sweep(fabric, micros_of(at))? {
            fabrics.extend(Timeline::read(sql, fabric, sweep, sweep)?.state(name, sweep));
        }
    }
    Ok(fabrics)
}
