//! Devices behind which a discovery does not end: those that report neighbors that do not exist.
//!
//! What is left to ask when a limit is reached is behind them: all else is asked first, because requests to and behind
//! a node that responds slowly wait until no others are left. A device that responds fast is bounded by the number of
//! requests. A real fabric can look the same only if it does not fit the limits, and then it loses what is behind one
//! switch for an hour, whose known nodes stay known.

use ib_mad::Guid;

use super::draft::Step;
use super::state::Discovery;

/// The node behind which at least 9 of 10 of what is left are.
const SHARE: (usize, usize) = (9, 10);

impl Discovery {
    /// Whether a request waits for all others.
    pub(super) fn is_slow(&self, step: &Step) -> bool {
        step.node().is_some_and(|node| self.nodes[node].is_slow)
    }

    /// The switch behind which nearly all requests are that a limit left out: the first slow one, else the last one.
    pub(super) fn culprit(&self) -> Option<Guid> {
        let mut left = vec![0_usize; self.nodes.len()];
        for (&node, &count) in &self.left_out {
            left[node] = count;
        }
        let total: usize = left.iter().sum();
        // A node is found after the one through which it is found.
        for node in (0..self.nodes.len()).rev() {
            if let Some(parent) = self.nodes[node].parent {
                left[parent] += left[node];
            }
        }
        let has_most = |node: &usize| total > 0 && left[*node] * SHARE.1 >= total * SHARE.0;
        let behind: Vec<usize> = (0..self.nodes.len()).filter(has_most).collect();
        let slow = behind.iter().find(|node| self.nodes[**node].is_slow);
        let &node = slow.or(behind.last())?;
        // Behind our own node is everything.
        let draft = &self.nodes[node];
        (draft.parent.is_some() && draft.is_switch()).then_some(draft.found.identity.guid)
    }
}
