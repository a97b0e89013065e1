//! What caused the losses of a link: the link itself, a node at its end, or something expected.

use std::time::Duration;

use ib_mad::Moment;

use super::down_periods::DownPeriods;
use crate::outage::{ExpectedCause, Loss};

/// What a sweep knows of a link. Arrays are by end.
#[derive(Clone, Copy, Debug)]
pub struct LinkSample {
    /// When its state was queried.
    pub at: Moment,
    pub up: Option<bool>,
    /// A port is Active again where a discovery found no link: the next shows if the cable is the same.
    pub returned: bool,
    /// When the counters were read.
    pub read: [Option<Moment>; 2],
    /// The totals of LinkDowned, where they were read and are not saturated.
    pub downed: [Option<u32>; 2],
    pub resets: [u32; 2],
    /// What the traffic counters show, together: if the device resets, they fall.
    pub traffic: [u64; 2],
    /// Switches count each LinkDowned; a ConnectX-7 with firmware 28.40 was seen to leave 64 bits at 0.
    pub is_switch: [bool; 2],
    /// The node does not respond or is gone.
    pub away: [bool; 2],
    pub maintenance: bool,
}

/// What the counters of both ends showed when the losses of their link were last classified.
#[derive(Clone, Copy, Debug, Default)]
pub struct Accounted {
    /// LinkDowned as far as its losses are counted.
    pub downed: [Option<u32>; 2],
    /// The resets seen until then.
    pub resets: [u32; 2],
    /// What the traffic counters showed.
    pub traffic: [u64; 2],
}

/// The losses of a link whose cause is not known yet.
#[derive(Clone, Debug, Default)]
pub struct PendingLosses {
    pub periods: DownPeriods,
    /// Sweeps since the link is up again.
    pub sweeps: u8,
    pub away: [bool; 2],
    /// The node responded while the link was down, and its counters had not been reset until then.
    pub stayed: [bool; 2],
    /// The resets of both ends when the link was last seen down.
    pub resets: Option<[u32; 2]>,
    pub maintenance: bool,
}

/// No server boots faster: they need some minutes.
const BOOT: Duration = Duration::from_secs(90);
/// As long as flaps count.
const BOOTS_AGAIN: Duration = Duration::from_secs(12 * 3600);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LossCause {
    /// The link: its cable or transceivers.
    Link,
    /// One end alone counted it, so the node at the other end took the link down.
    Node,
    Expected(ExpectedCause),
}

impl PendingLosses {
    /// The cause of losses during which LinkDowned grew by `more`.
    ///
    /// A reboot is recognized by the reset of the device's counters. LinkDowned alone does not show it, for not every
    /// device counts: the 64-bit LinkDownedCounter of ConnectX-7 with firmware 28.40 was seen to stay at 0.
    pub fn cause(
        &self,
        before: &Accounted,
        more: [Option<u32>; 2],
        sample: &LinkSample,
        earlier: &[Loss],
    ) -> LossCause {
        if self.maintenance {
            return LossCause::Expected(ExpectedCause::Maintenance);
        }
        if [0, 1].into_iter().any(|end| self.rebooted(end, before, more, sample, earlier)) {
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

    /// Whether the link was down for as long as a node needs to boot, and was not already so lately. Where tools
    /// clear the counters each minute, they do not show what caused a loss: a link that trains again by itself does
    /// so sooner, and a node does not boot again and again.
    fn is_long(&self, earlier: &[Loss], now: Moment) -> bool {
        let is_recent_boot = |loss: &Loss| {
            loss.expected == Some(ExpectedCause::Reboot) && now.since(loss.at) < BOOTS_AGAIN
        };
        self.periods.longest() >= BOOT && !earlier.iter().any(is_recent_boot)
    }

    fn rebooted(
        &self,
        end: usize,
        before: &Accounted,
        more: [Option<u32>; 2],
        sample: &LinkSample,
        earlier: &[Loss],
    ) -> bool {
        let other = 1 - end;
        let was_reset = |end: usize| sample.resets[end] != before.resets[end];
        let away = |end: usize| self.away[end];
        let counted_none = more[end].is_none_or(|more| more == 0);
        if was_reset(end) {
            // Tools clear counters, too. It was a tool if the counters at the other end were reset as well
            // and both nodes always responded; or if this node always responded, and while the link was down
            // still with the counters it had before. For a node that was away the cause is unknown.
            let both = was_reset(other) && !away(other) && !away(end);
            let by_tool = both || (self.stayed[end] && !away(end));
            // A node that trains its link while it boots may have counted that. A tool that cleared the other end
            // while the link was down did not reach this one.
            let resets = self.resets.unwrap_or(before.resets);
            let is_cleared = sample.resets[other] != resets[other];
            let boots = away(end) && (!is_cleared || self.is_long(earlier, sample.at));
            return !by_tool && (counted_none || boots);
        }
        // What the counters had counted since a tool cleared them may be less than they count soon after a reset:
        // then they do not fall. And those of a node that does not respond yet are not known. Then it is a reboot if
        // the node was away and the other end alone counted a loss. Of a node that was never read it is not known
        // whether it was there before.
        let (was, now) = (before.traffic[end], sample.traffic[end]);
        let continued = sample.read[end].is_some() && now.saturating_sub(was) < was;
        let was_read = before.downed[end].is_some();
        let other_counted = more[other].is_some_and(|more| more > 0);
        was_read && away(end) && counted_none && !continued && other_counted
    }
}
