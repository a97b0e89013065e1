//! How ports, links and nodes are: all of them each hour, and what has changed in between.

use std::time::Duration;

use rusqlite::Transaction;

use crate::file::frame::Frame;
use crate::file::state::State;
use crate::file::tier::Tier;
use ib_fabric::Snapshot;
use ib_health::Assessment;

use super::catalog::Places;
use super::grown::{Sweep, insert};

/// How long it is from one whole account to the next: telling how a fabric was reads one, and the
/// changes of so long at most. That of 60,000 ports takes 1 kB while they are alike.
const WHOLE_EVERY: Duration = Duration::from_secs(3600);

/// How all of a fabric was when it was last written, by number in the file.
#[derive(Debug, Default)]
pub struct Standing {
    ports: Vec<State>,
    nodes: Vec<State>,
    /// When the whole was written last; with each start it is.
    whole: Option<i64>,
}

impl Standing {
    /// Writes what has changed, or all of it when that is due.
    pub fn write(
        &mut self,
        db: &Transaction<'_>,
        sweep: Sweep,
        places: &Places,
        snapshot: &Snapshot,
        assessment: &Assessment,
    ) -> rusqlite::Result<()> {
        let every = WHOLE_EVERY.as_micros() as i64;
        // A clock that is set back makes no hour endless.
        let is_due = |whole: i64| !(0..every).contains(&sweep.began.saturating_sub(whole));
        let is_whole = self.whole.is_none_or(is_due);
        if is_whole {
            *self = Standing { whole: Some(sweep.began), ..Standing::default() };
        }
        let mut found = vec![(None, None); places.ports.len()];
        for link in &assessment.links {
            for end in [link.link.0, link.link.1] {
                if let Some(found) = found.get_mut(end.0 as usize) {
                    *found = (link.up, Some(link.verdict));
                }
            }
        }
        let mut ports = Frame::default();
        let ends = snapshot.fabric.port_indexes().zip(&places.ports).zip(found);
        for ((index, &port), (up, verdict)) in ends {
            let status = snapshot.status(index).filter(|status| status.link_up());
            let runs = status.and_then(|status| status.width.zip(status.speed));
            change(&mut self.ports, port, State::of_port(up, runs, verdict), &mut ports);
        }
        let mut nodes = Frame::default();
        for (index, &node) in snapshot.fabric.node_indexes().zip(&places.nodes_there) {
            change(&mut self.nodes, node, State::of_node(snapshot.is_up(index)), &mut nodes);
        }
        let tiers = if is_whole {
            [(Tier::AllPorts, ports), (Tier::AllNodes, nodes)]
        } else {
            [(Tier::Ports, ports), (Tier::Nodes, nodes)]
        };
        for (tier, frame) in &tiers {
            insert(db, sweep, *tier, None, frame)?;
        }
        Ok(())
    }
}

/// Takes down how something is, and what of that has changed.
fn change(known: &mut Vec<State>, number: u32, now: State, changes: &mut Frame) {
    let at = number as usize;
    if known.len() <= at {
        known.resize(at + 1, State::default());
    }
    if let Some(known) = known.get_mut(at) {
        changes.push_after(number, 0, now.since(std::mem::replace(known, now)));
    }
}
