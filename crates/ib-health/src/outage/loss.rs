//! How long a link was down, and what caused its losses: the link itself, a node at its end, or something expected.
//!
//! Sweeps sample a link's state, so most durations are known within bounds. A reboot is recognized by the
//! reset of the device's counters. LinkDowned alone does not show it, for not every device counts: the 64-bit
//! LinkDownedCounter of ConnectX-7 with firmware 28.40 was seen to stay at 0.

use std::ops::AddAssign;
use std::time::Duration;

use ib_mad::Moment;

use super::{ExpectedCause, LinkHistory, LinkSample, PendingLosses};

/// How long a link was down, within bounds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Downtime {
    /// At least: from the first to the last time it was seen down.
    pub least: Duration,
    /// At most: from the last time it was seen up before to the first time it was seen up after.
    pub most: Duration,
}

impl Downtime {
    /// The middle of the bounds: the estimate with the smallest error where one number is needed.
    pub fn middle(self) -> Duration {
        self.least + self.most.saturating_sub(self.least) / 2
    }
}

impl AddAssign for Downtime {
    fn add_assign(&mut self, more: Downtime) {
        self.least = self.least.saturating_add(more.least);
        self.most = self.most.saturating_add(more.most);
    }
}

/// A loss of a link, or several that only LinkDowned counted between two sweeps.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Loss {
    /// The number of this record for its link, from 1.
    pub number: u32,
    /// How many losses it represents.
    pub times: u32,
    /// Why the link is not at fault; `None` for a flap.
    pub expected: Option<ExpectedCause>,
    /// It is a flap that the node at one end caused: the other end alone counted it.
    pub by_node: bool,
    /// When it was first seen down, or when the counter was read that counted it.
    pub at: Moment,
    /// When it was first seen up again; `None` if only a counter shows the loss.
    pub until: Option<Moment>,
    /// How long it was down, all losses of this record together.
    pub down: Downtime,
    /// The link's flaps so far, these included.
    pub flaps: u32,
}

/// A time in which a link was down, before its cause is known.
#[derive(Clone, Copy, Debug)]
pub(super) struct DownPeriod {
    pub at: Moment,
    pub until: Option<Moment>,
    pub times: u32,
    pub down: Downtime,
}

impl DownPeriod {
    /// Whether a sweep or an event of this host saw the link down; otherwise only LinkDowned shows it.
    pub fn was_seen(&self) -> bool {
        self.until.is_some()
    }
}

#[derive(Clone, Copy, Debug)]
struct OpenPeriod {
    up_before: Moment,
    /// When it was first and last seen down, and the time before the last.
    first: Moment,
    last: Moment,
    previous: Moment,
}

/// How many periods are kept apart: a link that goes down in each sweep for hours must not take memory.
const MAX_PERIODS: usize = 16;

/// The down periods of a link since its losses were last classified.
#[derive(Clone, Debug, Default)]
pub(super) struct DownPeriods {
    open: Option<OpenPeriod>,
    closed: Vec<DownPeriod>,
    counted: u32,
}

impl DownPeriods {
    pub fn times(&self) -> u32 {
        let closed = self.closed.iter().map(|period| period.times).fold(0, u32::saturating_add);
        closed.saturating_add(u32::from(self.open.is_some()))
    }

    /// The link was seen down for the first time since it was up at `up_before`.
    pub fn open(&mut self, up_before: Moment, at: Moment) {
        self.open = Some(OpenPeriod { up_before, first: at, last: at, previous: at });
    }

    pub fn extend(&mut self, at: Moment) {
        if let Some(open) = &mut self.open {
            (open.previous, open.last) = (open.last, at);
        }
    }

    /// The link is up again. `exact` if an event says so at this moment: it was down until then.
    pub fn close(&mut self, at: Moment, exact: bool) {
        let Some(open) = self.open.take() else { return };
        let last = if exact { at } else { open.last };
        let down = Downtime { least: last.since(open.first), most: at.since(open.up_before) };
        self.push(DownPeriod { at: open.first, until: Some(at), times: 1, down });
    }

    /// LinkDowned shows this many losses in the reading `at`, and not in the one at `before`. Returns whether
    /// that is more than was known.
    ///
    /// Losses beyond those seen happened between two sweeps. If the link was seen down in both, it came up
    /// and went down again in between, and is not known to have been down all the time.
    pub fn count(&mut self, counted: u32, before: Moment, at: Moment) -> bool {
        self.counted = self.counted.max(counted);
        let known = self.times();
        let mut more = self.counted.saturating_sub(known);
        if more == 0 {
            self.merge_counted(known - self.counted.min(known));
            return false;
        }
        if let Some(open) =
            self.open.filter(|open| open.previous < open.last && before >= open.first)
        {
            let OpenPeriod { up_before, first, last, previous } = open;
            let down = Downtime { least: previous.since(first), most: last.since(up_before) };
            self.push(DownPeriod { at: first, until: Some(last), times: 1, down });
            self.open = Some(OpenPeriod { up_before: previous, first: last, last, previous: last });
            more -= 1;
        }
        if more > 0 {
            let down = Downtime { least: Duration::ZERO, most: at.since(before) };
            self.push(DownPeriod { at, until: None, times: more, down });
        }
        true
    }

    /// Removes `excess` losses that only LinkDowned shows. A port's state is read before its counters, so a
    /// loss in between is counted in one sweep and seen in the next: it is one loss, not two.
    fn merge_counted(&mut self, mut excess: u32) {
        for period in self.closed.iter_mut().rev().filter(|period| !period.was_seen()) {
            let gone = excess.min(period.times);
            period.times -= gone;
            excess -= gone;
        }
        self.closed.retain(|period| period.times > 0);
    }

    fn push(&mut self, period: DownPeriod) {
        let is_full = self.closed.len() >= MAX_PERIODS;
        match self.closed.last_mut().filter(|_| is_full) {
            Some(last) => {
                last.times = last.times.saturating_add(period.times);
                last.down += period.down;
                last.until = period.until.or(last.until);
            }
            None => self.closed.push(period),
        }
    }

    pub fn into_closed(mut self) -> Vec<DownPeriod> {
        self.closed.sort_by_key(|period| period.at);
        self.closed
    }
}

/// No server boots faster: they need some minutes.
const BOOT: Duration = Duration::from_secs(90);
/// As long as flaps count.
const BOOTS_AGAIN: Duration = Duration::from_secs(12 * 3600);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum LossCause {
    /// The link: its cable or transceivers.
    Link,
    /// One end alone counted it, so the node at the other end took the link down.
    Node,
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

    /// Whether the link was down for as long as a node needs to boot, and was not already so lately. Where tools
    /// clear the counters each minute, they do not show what caused a loss: a link that trains again by itself does
    /// so sooner, and a node does not boot again and again.
    fn is_long(&self, pending: &PendingLosses, now: Moment) -> bool {
        let was_long = pending.periods.closed.iter().any(|period| period.down.least >= BOOT);
        let losses = self.losses.as_deref().unwrap_or_default();
        let is_recent_boot = |loss: &Loss| {
            loss.expected == Some(ExpectedCause::Reboot) && now.since(loss.at) < BOOTS_AGAIN
        };
        was_long && !losses.iter().any(is_recent_boot)
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
            // A node that trains its link while it boots may have counted that. A tool that cleared the other end
            // while the link was down did not reach this one.
            let resets = pending.resets.unwrap_or(self.resets);
            let is_cleared = sample.resets[other] != resets[other];
            let boots = away(end) && (!is_cleared || self.is_long(pending, sample.at));
            return !by_tool && (counted_none || boots);
        }
        // What the counters had counted since a tool cleared them may be less than they count soon after a reset:
        // then they do not fall. And those of a node that does not respond yet are not known. Then it is a reboot if
        // the node was away and the other end alone counted a loss. Of a node that was never read it is not known
        // whether it was there before.
        let (before, now) = (self.traffic[end], sample.traffic[end]);
        let continued = sample.read[end].is_some() && now.saturating_sub(before) < before;
        let was_read = self.accounted[end].is_some();
        let other_counted = more[other].is_some_and(|more| more > 0);
        was_read && away(end) && counted_none && !continued && other_counted
    }
}
