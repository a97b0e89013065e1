//! The state of fabrics and cables at a moment.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::time::SystemTime;

use crate::model::{Cable, FabricState, Node, Port, Window};
use crate::{micros_of, time_of};
use ib_fabric::topology::End;

use super::frame::Frame;
use super::record_kind::RecordKind;
use super::sql::{CableRow, Sql};
use super::state::State;

/// The kinds of records with states of ports and of nodes: complete ones, and changes.
pub(super) const PORTS: [RecordKind; 2] = [RecordKind::PortStates, RecordKind::PortChanges];
pub(super) const NODES: [RecordKind; 2] = [RecordKind::NodeStates, RecordKind::NodeChanges];

/// States by the ids of ports or nodes.
type States = HashMap<u32, State>;

/// The cables of some ports in a window.
pub(super) fn cables(sql: Sql<'_>, ends: &[End], window: Window) -> rusqlite::Result<Vec<Cable>> {
    let ports: Vec<u32> = sql.ports_at(ends)?.into_iter().map(|row| row.id).collect();
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
pub(super) fn fabrics(sql: Sql<'_>, at: SystemTime) -> rusqlite::Result<Vec<FabricState>> {
    let at = micros_of(at);
    let mut fabrics = Vec::new();
    for (fabric, name) in sql.fabrics()? {
        fabrics.extend(fabric_at(sql, fabric, name, at)?);
    }
    Ok(fabrics)
}

fn fabric_at(
    sql: Sql<'_>,
    fabric: i64,
    name: String,
    at: i64,
) -> rusqlite::Result<Option<FabricState>> {
    let Some(sweep) = sql.latest_sweep(fabric, at)? else { return Ok(None) };
    let Some(ports) = states(sql, PORTS, fabric, sweep)? else { return Ok(None) };
    let up = states(sql, NODES, fabric, sweep)?.unwrap_or_default();
    let names = names(sql, fabric, sweep)?;
    let present = sql.presences(fabric, (sweep, sweep))?;
    let present: HashSet<u32> = present.into_iter().map(|(node, ..)| node).collect();
    let nodes = sql.nodes(fabric)?.into_iter().filter(|row| present.contains(&row.id));
    let mut nodes: Vec<Node> = nodes
        .map(|row| Node {
            guid: row.guid,
            name: names.get(&row.id).cloned().unwrap_or_default(),
            kind: row.kind,
            up: up.get(&row.id).and_then(|state| state.up()).unwrap_or(false),
        })
        .collect();
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
fn states(
    sql: Sql<'_>,
    kinds: [RecordKind; 2],
    fabric: i64,
    at: i64,
) -> rusqlite::Result<Option<States>> {
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
fn names(sql: Sql<'_>, fabric: i64, at: i64) -> rusqlite::Result<HashMap<u32, String>> {
    let mut names = HashMap::new();
    for (node, since, name) in sql.names(fabric)? {
        if since <= at || !names.contains_key(&node) {
            names.insert(node, name);
        }
    }
    Ok(names)
}
