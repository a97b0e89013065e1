//! The states of ports, links and nodes: all of them once an hour, and the changes in between.

use std::time::Duration;

use rusqlite::Transaction;

use crate::file::frame::Frame;
use crate::file::record_kind::RecordKind;
use crate::file::state::State;
use ib_fabric::Snapshot;
use ib_health::Assessment;

use super::catalog::FabricIds;
use super::counter_deltas::{SweepKey, insert_frame};
use super::events::active_rate;

/// Time between two sweeps of which all states are written: reconstructing a fabric reads one of them and
/// the changes after it. That of 60,000 ports takes 1 kB while they are alike.
const ALL_INTERVAL: Duration = Duration::from_secs(3600);

/// The states of a fabric that were written last, by id.
#[derive(Debug, Default)]
pub struct StateDeltas {
    ports: Vec<State>,
    nodes: Vec<State>,
    /// The beginning of the sweep of which all states were last written; `None` after a start.
    all_written: Option<i64>,
}

impl StateDeltas {
    /// Writes the states that changed, or all of them when that is due.
    pub fn write(
        &mut self,
        db: &Transaction<'_>,
        sweep: SweepKey,
        ids: &FabricIds,
        snapshot: &Snapshot,
        assessment: &Assessment,
    ) -> rusqlite::Result<()> {
        let interval = ALL_INTERVAL.as_micros() as i64;
        // Also due if the clock was set back.
        let is_due = |written: i64| !(0..interval).contains(&sweep.began.saturating_sub(written));
        let is_all = self.all_written.is_none_or(is_due);
        if is_all {
            *self = StateDeltas { all_written: Some(sweep.began), ..StateDeltas::default() };
        }
        let mut links = vec![(None, None); ids.ports.len()];
        for link in &assessment.links {
            for end in [link.link.0, link.link.1] {
                if let Some(found) = links.get_mut(end.0 as usize) {
                    *found = (link.up, Some(link.verdict));
                }
            }
        }
        let mut ports = Frame::default();
        let ends = snapshot.fabric.port_indexes().zip(&ids.ports).zip(links);
        for ((index, &port), (up, verdict)) in ends {
            let rate = active_rate(snapshot, index);
            push_change(&mut self.ports, port, State::of_port(up, rate, verdict), &mut ports);
        }
        let mut nodes = Frame::default();
        for (index, &node) in snapshot.fabric.node_indexes().zip(&ids.present_nodes) {
            push_change(&mut self.nodes, node, State::of_node(snapshot.is_up(index)), &mut nodes);
        }
        let [ports_kind, nodes_kind] = if is_all {
            [RecordKind::PortStates, RecordKind::NodeStates]
        } else {
            [RecordKind::PortChanges, RecordKind::NodeChanges]
        };
        insert_frame(db, sweep, ports_kind, None, &ports)?;
        insert_frame(db, sweep, nodes_kind, None, &nodes)?;
        Ok(())
    }
}

/// Replaces a state by the one that holds now, and adds what of it changed to a frame.
fn push_change(states: &mut Vec<State>, id: u32, now: State, changes: &mut Frame) {
    let index = id as usize;
    if states.len() <= index {
        states.resize(index + 1, State::default());
    }
    if let Some(state) = states.get_mut(index) {
        changes.push_after(id, 0, now.changes_since(std::mem::replace(state, now)));
    }
}
