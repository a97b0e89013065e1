//! What a link went through: losses, how long they were, and what caused them.
//!
//! A loss shows in several ways, and each may be missing: a sweep sees the link without its state
//! Active; LinkDowned rises, at both ends if the link was lost, at one if the node at the other was
//! reset, at none if the devices do not count; the kernel of this host reports it at once. All of them
//! are one story per link, and one loss is counted once.

mod cause;
mod downtime;

use std::sync::Arc;
use std::time::Duration;

use ib_mad::Moment;

use cause::Cause;
use downtime::Spells;
pub use downtime::{Downtime, Loss};

/// The bounds of the histogram of outages, in seconds. What ends a job is how long it had to wait:
/// the time-outs of NCCL and MPI are about 7 and 14 s with common settings.
pub const BOUNDS: [f64; 7] = [1.0, 5.0, 7.0, 14.0, 30.0, 60.0, 300.0];

/// After a link is up again, this many sweeps may pass until both ends have been read: a host that
/// comes back is asked after its next discovery.
const PATIENCE: u8 = 4;

/// How many of the latest losses are kept in full, for those who record them and may miss sweeps.
const KEPT: usize = 16;

/// Why a link was down although nothing is wrong with it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Expected {
    /// A node at its end was rebooted or reset.
    Reboot,
    /// The site announced it.
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
    /// Unexpected losses of the link; one that both ends count is one.
    pub flaps: u32,
    /// Expected losses, by cause.
    pub expected: [u32; Expected::ALL.len()],
    /// How long flaps kept it down.
    pub down: Downtime,
    /// How long expected losses kept it down.
    pub expected_down: Downtime,
    /// How many flaps that were seen were at most so long as each bound, and longer than the one
    /// before; the last place has the longer ones. The length is the middle of what is possible.
    pub lengths: [u16; BOUNDS.len() + 1],
    /// The sum of those lengths.
    pub lengths_sum: Duration,
    /// Times that it retrained by itself (LinkErrorRecovery), at the end that counted more.
    pub recoveries: u32,
    /// When it went down or came up last.
    pub last_change: Option<Moment>,
}

/// What a sweep knows of a link. Arrays are by end.
#[derive(Clone, Copy, Debug)]
pub struct Look {
    /// When its state was asked for.
    pub at: Moment,
    /// Whether it carries traffic, if that is known.
    pub up: Option<bool>,
    /// A port of it is Active again after a discovery found its cable without a link: the next discovery
    /// shows whether it is the same cable.
    pub returned: bool,
    /// When the counters were read.
    pub read: [Option<Moment>; 2],
    /// The totals of LinkDowned, as far as they were read and are not saturated.
    pub downed: [Option<u32>; 2],
    /// How often counters were reset.
    pub resets: [u32; 2],
    /// The traffic counters show something: if the device resets, they fall.
    pub shows_traffic: [bool; 2],
    /// The node is a switch. Switches count each LinkDowned; a ConnectX-7 with firmware 28.40 was seen
    /// to leave the 64-bit counter at 0.
    pub is_switch: [bool; 2],
    /// The node does not answer or is gone.
    pub away: [bool; 2],
    /// The site announced that this link would be down now.
    pub maintenance: bool,
}

/// Losses whose cause is not known yet.
#[derive(Clone, Debug, Default)]
struct Pending {
    spells: Spells,
    /// Sweeps since the link is up again.
    sweeps: u8,
    away: [bool; 2],
    /// The node answered while the link was down, and its counters had not been reset until then.
    stayed: [bool; 2],
    maintenance: bool,
}

/// Sweeps in a row that saw a port Active while the discovery knows of no link there.
#[derive(Clone, Copy, Debug)]
struct Returned {
    first: Moment,
    last: Moment,
    sweeps: u8,
}

/// How many of the latest flaps are remembered with their times.
const REMEMBERED: usize = 3;

/// The state machine of one link.
#[derive(Clone, Debug, Default)]
pub struct Life {
    up: Option<bool>,
    /// It was up at least once: what never was up cannot be lost.
    was_up: bool,
    /// Since when `up` is what it is.
    since: Moment,
    /// The last moment at which it was known to be up.
    last_up: Moment,
    returned: Option<Returned>,
    /// News from before this moment is outdated.
    as_of: Moment,
    outages: Outages,
    /// LinkDowned as far as it is accounted for, and the resets seen until then.
    accounted: [Option<u32>; 2],
    resets: [u32; 2],
    /// When the counters were read last.
    read: [Moment; 2],
    /// The traffic counters showed something then, so that a reset of the device shows.
    shows_traffic: [bool; 2],
    /// Losses that were settled without this end, which may have counted them and was not read since.
    untold: [u32; 2],
    /// Nodes that were away while nothing was known of the link, until both ends have been read.
    was_away: [bool; 2],
    /// Few links are down at a time.
    pending: Option<Box<Pending>>,
    /// It came up since the latest sweep.
    came_up: bool,
    /// In whole seconds: nanoseconds are not needed, and these are kept for each link.
    flaps: [u32; REMEMBERED],
    /// Of those, the ones that one end alone counted.
    by_node: [bool; REMEMBERED],
    losses: Option<Arc<[Loss]>>,
}

impl Life {
    /// What it went through so far.
    pub fn outages(&self) -> &Outages {
        &self.outages
    }

    /// Its latest losses, oldest first, if it ever had one.
    pub fn losses(&self) -> Option<&Arc<[Loss]>> {
        self.losses.as_ref()
    }

    /// Whether it carries traffic, and since when that is so.
    pub fn up(&self) -> (Option<bool>, Moment) {
        (self.up, self.since)
    }

    /// Whether its port is Active again and a discovery will soon show that it is the same cable.
    pub fn is_back(&self) -> bool {
        self.returned.is_some_and(|returned| returned.sweeps <= PATIENCE)
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

    /// A port of it reported that it was lost, or is back.
    pub fn hear(&mut self, up: bool, at: Moment) {
        if at >= self.as_of {
            if !up && self.up.is_none() {
                // A link that was never seen and reports that it broke was up.
                (self.up, self.was_up) = (Some(true), true);
            }
            self.returned = None;
            self.turn(up, at, true);
            self.as_of = at;
        }
    }

    /// Takes in a sweep. Returns whether the link came up since the one before, or may have.
    pub fn follow(&mut self, look: &Look) -> bool {
        if look.at >= self.as_of {
            self.follow_state(look);
        }
        if look.up.is_none() {
            self.was_away = [0, 1].map(|end| self.was_away[end] || look.away[end]);
        }
        if self.up == Some(false) && !self.was_up {
            // It is new, and waits for its subnet manager: what its ends count meanwhile is no loss.
            self.account(look);
            return false;
        }
        let more = [0, 1].map(|end| {
            let (was, now) = (self.accounted[end]?, look.downed[end]?);
            Some(now.wrapping_sub(was).saturating_sub(self.untold[end]))
        });
        let is_new = self.came_up && self.pending.is_none();
        let is_news = !is_new && self.count(more, look);
        for (read, now) in self.read.iter_mut().zip(look.read) {
            *read = now.unwrap_or(*read);
        }
        if self.up == Some(false) {
            // A node that is away while the link is down may come back with its counters at zero.
            let pending = self.pending.get_or_insert_default();
            pending.sweeps = 0;
            for end in 0..2 {
                pending.away[end] |= look.away[end];
                let same = look.read[end].is_some() && look.resets[end] == self.resets[end];
                pending.stayed[end] |= same && !look.away[end];
            }
            pending.maintenance |= look.maintenance;
            self.came_up = false;
            return false;
        }
        let lost = !is_new && more.iter().flatten().any(|&more| more > 0);
        // A reset shows a reboot only if the other end, too, shows what it counted meanwhile.
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
            // One end may have been read before the loss and the other after it, so an end that was
            // silent or has counted nothing is read once more.
            let told = more.iter().all(Option::is_some) && self.up == Some(true) && !is_news;
            if pending.sweeps >= PATIENCE || (told && pending.sweeps >= 2) {
                self.settle(more, look);
            }
        } else {
            self.account(look);
        }
        std::mem::take(&mut self.came_up) || lost
    }

    fn follow_state(&mut self, look: &Look) {
        let Some(up) = look.up else {
            if look.returned && self.up == Some(false) {
                let Returned { first, sweeps, .. } =
                    self.returned.unwrap_or(Returned { first: look.at, last: look.at, sweeps: 0 });
                let sweeps = sweeps.saturating_add(1);
                self.returned = Some(Returned { first, last: look.at, sweeps });
            }
            return;
        };
        // The discovery has found the cable again, so the link was up when its port was Active first. If
        // it is lost before that, it was up all the same.
        if let Some(Returned { first, last, .. }) = self.returned.take() {
            self.turn(true, first, false);
            self.last_up = last;
        }
        self.turn(up, look.at, false);
        self.as_of = look.at;
    }

    /// `exact`: it changed at this moment. Otherwise that was seen at this moment.
    fn turn(&mut self, up: bool, at: Moment, exact: bool) {
        let was = self.up.replace(up);
        match (was, up) {
            (Some(true), false) => {
                let up_before = if exact { at } else { self.last_up };
                self.pending.get_or_insert_default().spells.open(up_before, at);
            }
            (Some(false), true) => {
                self.came_up = true;
                if let Some(pending) = &mut self.pending {
                    pending.spells.close(at, exact);
                    pending.sweeps = 0;
                }
            }
            (Some(false), false) => {
                if let Some(pending) = &mut self.pending {
                    pending.spells.see_down(at);
                }
            }
            (None, _) | (Some(true), true) => {}
        }
        if was != Some(up) {
            self.since = at;
            if was.is_some() {
                self.outages.last_change = Some(at);
            }
        }
        if up {
            (self.was_up, self.last_up) = (true, at);
        } else if was == Some(true) {
            self.came_up = false;
        }
    }

    /// Takes in what LinkDowned has grown by since it was accounted for. Returns whether that shows
    /// losses that were not known.
    fn count(&mut self, more: [Option<u32>; 2], look: &Look) -> bool {
        let Some(counted) = more.into_iter().flatten().max() else { return false };
        if counted == 0 && self.pending.is_none() {
            return false;
        }
        // The end that was read more recently before bounds it more closely.
        let read = (0..2).filter(|&end| more[end] == Some(counted));
        let read = read.map(|end| (self.read[end], look.read[end].unwrap_or(look.at)));
        let (before, at) = read.max().unwrap_or((look.at, look.at));
        self.pending.get_or_insert_default().spells.count(counted, before, at)
    }

    fn account(&mut self, look: &Look) {
        if look.downed.iter().all(Option::is_some) {
            self.was_away = [false; 2];
        }
        for end in 0..2 {
            if look.read[end].is_some() {
                self.shows_traffic[end] = look.shows_traffic[end];
            }
            if look.downed[end].is_some() {
                self.accounted[end] = look.downed[end];
                self.resets[end] = look.resets[end];
                self.untold[end] = 0;
            }
        }
    }

    /// Both ends have been read since the link is up again, or will not be: decides what caused its
    /// losses.
    fn settle(&mut self, more: [Option<u32>; 2], look: &Look) {
        let Some(pending) = self.pending.take() else { return };
        let cause = self.cause(&pending, more, look);
        self.account(look);
        let times = pending.spells.times();
        for (untold, downed) in self.untold.iter_mut().zip(look.downed) {
            if downed.is_none() {
                *untold = untold.saturating_add(times);
            }
        }
        let spells = pending.spells.into_over();
        let (Some(first), Some(last)) = (spells.first(), spells.last()) else { return };
        if !last.was_seen() {
            self.outages.last_change = self.outages.last_change.max(Some(last.at));
        }
        if let Cause::Expected(why) = cause {
            // A node that boots may train its links more than once; that is one reboot.
            self.outages.expected[why as usize] += 1;
            let mut down = Downtime::default();
            for spell in &spells {
                down += spell.down;
            }
            self.outages.expected_down += down;
            let until = spells.iter().filter_map(|spell| spell.until).max();
            self.keep(Loss {
                number: 0,
                times: 1,
                expected: Some(why),
                at: first.at,
                until,
                down,
                flaps: self.outages.flaps,
            });
            return;
        }
        for spell in spells {
            let downtime::Spell { at, until, times, down } = spell;
            self.outages.flaps = self.outages.flaps.saturating_add(times);
            self.outages.down += down;
            if spell.was_seen() {
                let length = down.middle();
                let place = BOUNDS.partition_point(|bound| length.as_secs_f64() > *bound);
                self.outages.lengths[place] = self.outages.lengths[place].saturating_add(1);
                self.outages.lengths_sum = self.outages.lengths_sum.saturating_add(length);
            }
            for _ in 0..times.min(REMEMBERED as u32) {
                self.flaps.rotate_right(1);
                self.by_node.rotate_right(1);
                self.flaps[0] = until.unwrap_or(at).whole_seconds();
                self.by_node[0] = cause == Cause::Node;
            }
            let flaps = self.outages.flaps;
            self.keep(Loss { number: 0, times, expected: None, at, until, down, flaps });
        }
    }

    fn keep(&mut self, loss: Loss) {
        let known = self.losses.as_deref().unwrap_or_default();
        let number = known.last().map_or(0, |last| last.number).saturating_add(1);
        let kept = known.iter().skip((known.len() + 1).saturating_sub(KEPT)).copied();
        self.losses = Some(kept.chain([Loss { number, ..loss }]).collect());
    }
}

#[cfg(test)]
mod tests;
