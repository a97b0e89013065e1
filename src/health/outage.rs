//! What a link went through: losses, their lengths, and whose they were.
//!
//! A loss shows in several ways, and each may be missing: the link is seen without its state Active;
//! LinkDowned rises, at both ends if the link was lost, at one if the other's node was reset; the
//! host's own kernel tells it at once. All of them are one story a link, and one loss is counted once.

use std::time::Duration;

use crate::fabric::Moment;

/// The bounds of the histogram of outages, in seconds: what ends a job is how long it had to wait.
/// The time-outs of NCCL and MPI are about 7 and 14 s with common settings.
pub const BOUNDS: [f64; 7] = [1.0, 5.0, 7.0, 14.0, 30.0, 60.0, 300.0];

/// After a link is up again, this many sweeps are waited for to tell what both ends counted: a host
/// that comes back is asked after its next discovery.
const PATIENCE: u8 = 4;

/// Why a link was down although nothing is wrong with it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Expected {
    /// A node at its end was rebooted or reset.
    Reboot,
    /// Somebody said that it would be.
    Maintenance,
}

impl Expected {
    /// All of them.
    pub const ALL: [Expected; 2] = [Expected::Reboot, Expected::Maintenance];

    /// As metrics write it.
    pub fn label(self) -> &'static str {
        match self {
            Expected::Reboot => "reboot",
            Expected::Maintenance => "maintenance",
        }
    }
}

/// A link's outages so far.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Outages {
    /// Losses of the link that nobody expected; one that both ends tell is one.
    pub flaps: u32,
    /// Those that were expected, by why.
    pub expected: [u32; Expected::ALL.len()],
    /// For how long it was down by flaps, as far as that was seen. One that is over between two
    /// looks has no length.
    pub down: Duration,
    /// For how long by what was expected.
    pub expected_down: Duration,
    /// How many flaps were at most so long as each bound, and longer than the one before; the last
    /// place has the longer ones.
    pub lengths: [u16; BOUNDS.len() + 1],
    /// Times that it retrained by itself (LinkErrorRecovery), as the end saw it that saw more.
    pub recoveries: u32,
    /// When it went down or came up last.
    pub last_change: Option<Moment>,
}

/// What a sweep knows of a link.
#[derive(Clone, Copy, Debug)]
pub struct Look {
    /// When its state was asked for.
    pub at: Moment,
    /// Whether it carries traffic, if that is known.
    pub up: Option<bool>,
    /// The totals of LinkDowned at both ends, as far as they were read.
    pub downed: [Option<u32>; 2],
    /// How often the counters of both ends were reset.
    pub resets: [u32; 2],
    /// The nodes that are not there.
    pub away: [bool; 2],
    /// Somebody said that this link would be down now.
    pub maintenance: bool,
}

/// Whose fault a loss was.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Cause {
    Link,
    /// One end alone counted it, so it was the node at the other.
    Node,
    Expected(Expected),
}

/// Losses of which it is not known yet what they were.
#[derive(Clone, Copy, Debug, Default)]
struct Pending {
    seen: u16,
    seconds: f32,
    lengths: [u8; BOUNDS.len() + 1],
    sweeps: u8,
    away: [bool; 2],
    maintenance: bool,
}

/// How many of the latest flaps are remembered with their times.
const REMEMBERED: usize = 3;

/// The state machine of one link.
#[derive(Clone, Debug, Default)]
pub struct Life {
    up: Option<bool>,
    /// It was up at least once: what never was cannot be lost.
    was_up: bool,
    /// Since when it is so.
    since: Moment,
    /// What is older says nothing.
    as_of: Moment,
    outages: Outages,
    /// LinkDowned as far as it was counted, and the resets that belong to it.
    accounted: [Option<u32>; 2],
    resets: [u32; 2],
    /// Losses that were settled without this end, which may have counted them: it has told nothing
    /// since.
    untold: [u32; 2],
    /// Who was gone while nothing was known of the link, until both ends have told what they counted.
    was_away: [bool; 2],
    /// Few links are down at a time.
    pending: Option<Box<Pending>>,
    /// It came up since the latest sweep.
    came_up: bool,
    /// Whole seconds: ticks go round in 497 days, and these are kept for as long as that.
    flaps: [u32; REMEMBERED],
    /// Of those, the ones that one end alone counted.
    by_node: [bool; REMEMBERED],
}

impl Life {
    /// What it went through so far.
    pub fn outages(&self) -> &Outages {
        &self.outages
    }

    /// Whether it carries traffic, and since when that is so.
    pub fn up(&self) -> (Option<bool>, Moment) {
        (self.up, self.since)
    }

    /// How many of its latest three flaps are no older than this, and whether each of them was a
    /// node's.
    pub fn flaps_since(&self, now: Moment, within: Duration) -> (usize, bool) {
        let known = REMEMBERED.min(self.outages.flaps as usize);
        let now = u64::from(now.whole_seconds());
        let young = |at: &u32| now.saturating_sub(u64::from(*at)) <= within.as_secs();
        let count = self.flaps[..known].iter().filter(|at| young(at)).count();
        (count, count > 0 && self.by_node[..count].iter().all(|by_node| *by_node))
    }

    /// Takes down how often it retrained by itself.
    pub fn recovered(&mut self, times: u32) {
        self.outages.recoveries = self.outages.recoveries.max(times);
    }

    /// A port of it told by itself that it was lost, or is back.
    pub fn hear(&mut self, up: bool, at: Moment) {
        if at >= self.as_of {
            if !up && self.up.is_none() {
                // What was never seen and says that it broke was whole.
                (self.up, self.was_up) = (Some(true), true);
            }
            self.turn(up, at);
            self.as_of = at;
        }
    }

    /// Takes a sweep in. Tells whether the link came up since the one before, or may have.
    pub fn follow(&mut self, look: &Look) -> bool {
        if let Some(up) = look.up.filter(|_| look.at >= self.as_of) {
            self.turn(up, look.at);
            self.as_of = look.at;
        }
        if look.up.is_none() {
            self.was_away = [0, 1].map(|end| self.was_away[end] || look.away[end]);
        }
        if self.up == Some(false) && !self.was_up {
            // It is new, and waits for its subnet manager: what its ends count meanwhile is no loss.
            self.account(look);
            return false;
        }
        if self.up == Some(false) {
            // Who is gone while the link is down may come back with its counters at zero.
            let pending = self.pending.get_or_insert_default();
            pending.sweeps = 0;
            for (away, now) in pending.away.iter_mut().zip(look.away) {
                *away |= now;
            }
            pending.maintenance |= look.maintenance;
            self.came_up = false;
            return false;
        }
        let more = [0, 1].map(|end| {
            let (was, now) = (self.accounted[end]?, look.downed[end]?);
            Some(now.wrapping_sub(was).saturating_sub(self.untold[end]))
        });
        let is_new = self.came_up && self.pending.is_none();
        let lost = !is_new && more.iter().flatten().any(|&more| more > 0);
        // A reset tells of a reboot only if the other end, too, says what it counted meanwhile.
        let half_told = [0, 1].into_iter().any(|end| {
            let is_reset = more[end].is_some() && look.resets[end] != self.resets[end];
            is_reset && self.accounted[1 - end].is_some() && look.downed[1 - end].is_none()
        });
        if lost || half_told || self.pending.is_some() {
            let pending = self.pending.get_or_insert_default();
            pending.sweeps += 1;
            pending.maintenance |= look.maintenance;
            for (away, was) in pending.away.iter_mut().zip(self.was_away) {
                *away |= was;
            }
            // One end may have been read before the loss and the other after it, so whoever was
            // silent or has counted nothing is asked once more.
            let told = more.iter().all(Option::is_some) && self.up == Some(true);
            if pending.sweeps >= PATIENCE || (told && pending.sweeps >= 2) {
                self.settle(more, look);
            }
        } else {
            self.account(look);
        }
        std::mem::take(&mut self.came_up) || lost
    }

    fn turn(&mut self, up: bool, at: Moment) {
        let was = self.up.replace(up);
        if was == Some(up) {
            return;
        }
        if was == Some(false) {
            self.came_up = up;
        }
        if was == Some(false) && self.was_up {
            let seconds = at.since(self.since).as_secs_f32();
            let pending = self.pending.get_or_insert_default();
            pending.seen = pending.seen.saturating_add(1);
            pending.seconds += seconds;
            let place = BOUNDS.partition_point(|bound| f64::from(seconds) > *bound);
            pending.lengths[place] = pending.lengths[place].saturating_add(1);
            pending.sweeps = 0;
        }
        self.was_up |= up;
        if was.is_some() {
            self.outages.last_change = Some(at);
        }
        self.since = at;
    }

    fn account(&mut self, look: &Look) {
        if look.downed.iter().all(Option::is_some) {
            self.was_away = [false; 2];
        }
        for end in 0..2 {
            if look.downed[end].is_some() {
                self.accounted[end] = look.downed[end];
                self.resets[end] = look.resets[end];
                self.untold[end] = 0;
            }
        }
    }

    /// Both ends have told what they counted: what was it?
    fn settle(&mut self, more: [Option<u32>; 2], look: &Look) {
        let Some(pending) = self.pending.take() else { return };
        let cause = self.cause(&pending, more, look);
        self.account(look);
        let counted = more.into_iter().flatten().max().unwrap_or(0);
        let times = counted.max(u32::from(pending.seen));
        for (untold, downed) in self.untold.iter_mut().zip(look.downed) {
            if downed.is_none() {
                *untold = untold.saturating_add(times);
            }
        }
        if times == 0 {
            return;
        }
        let length = Duration::from_secs_f32(pending.seconds.max(0.0));
        if pending.seen == 0 {
            self.outages.last_change = Some(look.at);
        }
        match cause {
            Cause::Expected(why) => {
                // A node that comes up may train its links more than once; that is one reboot.
                self.outages.expected[why as usize] += 1;
                self.outages.expected_down += length;
            }
            Cause::Link | Cause::Node => {
                self.outages.flaps = self.outages.flaps.saturating_add(times);
                self.outages.down += length;
                for (length, more) in self.outages.lengths.iter_mut().zip(pending.lengths) {
                    *length = length.saturating_add(u16::from(more));
                }
                for _ in 0..times.min(REMEMBERED as u32) {
                    self.flaps.rotate_right(1);
                    self.by_node.rotate_right(1);
                    self.flaps[0] = look.at.whole_seconds();
                    self.by_node[0] = cause == Cause::Node;
                }
            }
        }
    }

    fn cause(&self, pending: &Pending, more: [Option<u32>; 2], look: &Look) -> Cause {
        if pending.maintenance {
            return Cause::Expected(Expected::Maintenance);
        }
        let rebooted = |end: usize| {
            let nothing = |end: usize| more[end].is_none_or(|more| more == 0);
            let fell = |end: usize| look.resets[end] != self.resets[end];
            // Counters that fell at both ends, and with them what they had counted of the loss, were
            // cleared by a tool.
            let cleared = fell(1 - end) && nothing(1 - end) && !pending.away[end];
            let reset = fell(end) && !cleared;
            // Counters that were at zero before a reboot do not fall. Then it tells that the node was
            // gone, and that the other end alone counted a loss. Of one that never told anything it
            // is not known that it was there.
            let told = self.accounted[end].is_some();
            let gone = told && pending.away[end] && more[1 - end].is_some_and(|more| more > 0);
            nothing(end) && (reset || gone)
        };
        if rebooted(0) || rebooted(1) {
            return Cause::Expected(Expected::Reboot);
        }
        match more {
            [Some(0), Some(1..)] | [Some(1..), Some(0)] => Cause::Node,
            _ => Cause::Link,
        }
    }
}

#[cfg(test)]
mod tests;
