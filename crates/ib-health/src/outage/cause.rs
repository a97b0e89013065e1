//! What caused a link's losses: the link itself, a node at its end, or something announced.
//!
//! A reboot is recognized by what it leaves behind: the device's counters fall. LinkDowned alone does
//! not show it, for not each device counts: the 64-bit LinkDownedCounter of ConnectX-7 with firmware
//! 28.40 was seen to stay at 0.

use super::{Expected, Life, Look, Pending};

/// What caused a loss.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Cause {
    /// The link: its cable, its transceivers.
    Link,
    /// One end alone counted it, so the node at the other end took the link down.
    Node,
    /// Nothing is wrong with it.
    Expected(Expected),
}

impl Life {
    /// The cause of losses during which LinkDowned grew by `more`.
    pub(super) fn cause(&self, pending: &Pending, more: [Option<u32>; 2], look: &Look) -> Cause {
        if pending.maintenance {
            return Cause::Expected(Expected::Maintenance);
        }
        if [0, 1].into_iter().any(|end| self.rebooted(end, pending, more, look)) {
            return Cause::Expected(Expected::Reboot);
        }
        // A LinkDowned that did not grow is evidence only where losses are counted.
        let counts = |end: usize| look.is_switch[end] || look.downed[end] > Some(0);
        match more {
            [Some(0), Some(1..)] if counts(0) => Cause::Node,
            [Some(1..), Some(0)] if counts(1) => Cause::Node,
            _ => Cause::Link,
        }
    }

    fn rebooted(&self, end: usize, pending: &Pending, more: [Option<u32>; 2], look: &Look) -> bool {
        let other = 1 - end;
        let fell = |end: usize| look.resets[end] != self.resets[end];
        let away = |end: usize| pending.away[end];
        let nothing = more[end].is_none_or(|more| more == 0);
        if fell(end) {
            // A tool clears counters, too. It was one if those at the other end fell as well and both nodes
            // were there all the time; or if this node answered while the link was down, with the counters
            // it had before, and was never away. Of a node that was away it cannot be told.
            let both = fell(other) && !away(other) && !away(end);
            let by_tool = both || (pending.stayed[end] && !away(end));
            // A node that trains its link while it boots may have counted that.
            let boots = away(end) && !fell(other);
            return !by_tool && (nothing || boots);
        }
        // Counters at zero cannot fall, and those of a node that does not answer yet are not known. Then
        // it is a reboot if the node was away and the other end alone counted a loss. A node that was
        // never read is not known to have been there.
        let went_on = look.read[end].is_some() && self.shows_traffic[end];
        let was_read = self.accounted[end].is_some();
        was_read && away(end) && nothing && !went_on && more[other].is_some_and(|more| more > 0)
    }
}
