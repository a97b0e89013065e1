//! What caused a link's losses: the link itself, a node at its end, or something expected.
//!
//! A reboot is recognized by the reset of the device's counters. LinkDowned alone does not show it, for not
//! every device counts: the 64-bit LinkDownedCounter of ConnectX-7 with firmware 28.40 was seen to stay
//! at 0.

use super::{ExpectedCause, LinkHistory, LinkSample, PendingLosses};

/// The cause of losses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum LossCause {
    /// The link: its cable or transceivers.
    Link,
    /// One end alone counted it, so the node at the other end took the link down.
    Node,
    /// The link is not at fault.
    Expected(ExpectedCause),
}

impl LinkHistory {
    /// The cause of losses during which LinkDowned grew by `more`.
    pub(super) fn cause(
        &self,
        pending: &PendingLosses,
        more: [Option<u32>; 2],
        sample: &LinkSample,
    ) -> LossCause {
        if pending.maintenance {
            return LossCause::Expected(ExpectedCause::Maintenance);
        }
        if [0, 1].into_iter().any(|end| self.rebooted(end, pending, more, sample)) {
            return LossCause::Expected(ExpectedCause::Reboot);
        }
        // A LinkDowned that did not grow is evidence only where losses are counted.
        let counts = |end: usize| sample.is_switch[end] || sample.downed[end] > Some(0);
        match more {
            [Some(0), Some(1..)] if counts(0) => LossCause::Node,
            [Some(1..), Some(0)] if counts(1) => LossCause::Node,
            _ => LossCause::Link,
        }
    }

    fn rebooted(
        &self,
        end: usize,
        pending: &PendingLosses,
        more: [Option<u32>; 2],
        sample: &LinkSample,
    ) -> bool {
        let other = 1 - end;
        let was_reset = |end: usize| sample.resets[end] != self.resets[end];
        let away = |end: usize| pending.away[end];
        let counted_none = more[end].is_none_or(|more| more == 0);
        if was_reset(end) {
            // Tools clear counters, too. It was a tool if the counters at the other end were reset as well
            // and both nodes always responded; or if this node always responded, and while the link was down
            // still with the counters it had before. For a node that was away the cause is unknown.
            let both = was_reset(other) && !away(other) && !away(end);
            let by_tool = both || (pending.stayed[end] && !away(end));
            // A node that trains its link while it boots may have counted that.
            let boots = away(end) && !was_reset(other);
            return !by_tool && (counted_none || boots);
        }
        // Counters at zero cannot fall, and those of a node that does not respond yet are not known. Then it
        // is a reboot if the node was away and the other end alone counted a loss. Of a node that was never
        // read it is not known whether it was there before.
        let continued = sample.read[end].is_some() && self.shows_traffic[end];
        let was_read = self.accounted[end].is_some();
        let other_counted = more[other].is_some_and(|more| more > 0);
        was_read && away(end) && counted_none && !continued && other_counted
    }
}
