//! The losses of a link: how many, how long, and what caused them.
//!
//! A loss shows in several ways, each of which may be missing: a sweep reads a state that is not Active;
//! LinkDowned rises, at both ends if the link was lost, at one if the node at the other was reset, at none if
//! the devices do not count; the kernel of this host reports an event at once. A `LinkHistory` combines all
//! of them, and counts one loss once.

mod down_periods;
mod loss_cause;

use std::sync::Arc;
use std::time::Duration;

use ib_mad::Moment;

use crate::flap_days::FlapDays;
use crate::outage::{Downtime, Loss, Outages};
use down_periods::DownPeriod;
pub use loss_cause::LinkSample;
use loss_cause::{Accounted, LossCause, PendingLosses};

/// Sweeps after a link is up until both ends are read: a returning host waits for the next discovery.
const MAX_SWEEPS: u8 = 4;

/// Consecutive sweeps that saw a port Active where the discovery found no link.
#[derive(Clone, Copy, Debug)]
struct ReturnedPort {
    first: Moment,
    last: Moment,
    sweeps: u8,
}

const RECENT_FLAPS: usize = 3;

#[derive(Clone, Debug, Default)]
pub(crate) struct LinkHistory {
    up: Option<bool>,
    /// It was up at least once: a link that was never up cannot be lost.
    was_up: bool,
    /// Since when `up` is what it is.
    since: Moment,
    last_up: Moment,
    returned: Option<ReturnedPort>,
    /// States and events from before this moment are outdated.
    as_of: Moment,
    pub outages: Outages,
    accounted: Accounted,
    read: [Moment; 2],
    /// Losses that were classified without this end: it was not read since then, and may have counted them.
    unreported: [u32; 2],
    /// Nodes that were away while the link's state was not known, until both ends have been read.
    was_away: [bool; 2],
    /// Few links are down at a time.
    pending: Option<Box<PendingLosses>>,
    came_up: bool,
    /// When the latest flaps ended, in whole seconds to save memory, and whether one end alone counted them.
    flaps: [(u32, bool); RECENT_FLAPS],
    /// The days with flaps of the link itself: a node that takes its link down each day is no fault of the cable.
    pub flap_days: FlapDays,
    /// Flaps that ended until then, in whole seconds, were of a cable that was replaced.
    forgiven: u32,
    pub losses: Option<Arc<[Loss]>>,
}

impl LinkHistory {
    /// Whether it carries traffic, and since when that is so.
    pub fn up(&self) -> (Option<bool>, Moment) {
        (self.up, self.since)
    }

    /// Whether its port is Active again and the next discovery will soon show whether it is the same cable.
    pub fn has_returned(&self) -> bool {
        self.returned.is_some_and(|returned| returned.sweeps <= MAX_SWEEPS)
    }

    /// How many of its latest three flaps are no older than `within`, and whether a node caused all of them.
    pub fn flaps_since(&self, now: Moment, within: Duration) -> (usize, bool) {
        let known = RECENT_FLAPS.min(self.outages.flaps as usize);
        let now = u64::from(now.whole_seconds());
        let is_recent = |at: u32| {
            now.saturating_sub(u64::from(at)) <= within.as_secs() && self.is_of_this_cable(at)
        };
        let count = self.flaps[..known].iter().filter(|(at, _)| is_recent(*at)).count();
        (count, count > 0 && self.flaps[..count].iter().all(|(_, by_node)| *by_node))
    }

    /// Whether a flap that ended at this second is evidence against the present cable.
    fn is_of_this_cable(&self, ended: u32) -> bool {
        self.forgiven == 0 || ended > self.forgiven
    }

    /// Its cable was replaced: earlier flaps, and the one by the replacement, are no evidence against the new one.
    pub fn forgive_until(&mut self, at: Moment) {
        self.forgiven = at.whole_seconds();
        self.flap_days.clear();
    }

    /// One of its ports reported that the link went down or came up. Returns whether it changed.
    pub fn handle_event(&mut self, up: bool, at: Moment) -> bool {
        if at < self.as_of {
            return false;
        }
        let was = self.up;
        if !up && was.is_none() {
            // A link that was never seen and reports its loss was up.
            (self.up, self.was_up) = (Some(true), true);
        }
        self.returned = None;
        self.set_state(up, at, true);
        self.as_of = at;
        was != self.up
    }

    /// Adds a sweep. Returns whether the link came up since the one before, or may have.
    pub fn update(&mut self, sample: &LinkSample) -> bool {
        if sample.at >= self.as_of {
            self.update_state(sample);
        }
        if sample.up.is_none() {
            self.was_away = [0, 1].map(|end| self.was_away[end] || sample.away[end]);
        }
        if self.up == Some(false) && !self.was_up {
            // It is new, and waits for its subnet manager: what its ends count until then is no loss.
            self.mark_accounted(sample);
            return false;
        }
        let more = [0, 1].map(|end| {
            let (was, now) = (self.accounted.downed[end]?, sample.downed[end]?);
            Some(now.wrapping_sub(was).saturating_sub(self.unreported[end]))
        });
        let is_new = self.came_up && self.pending.is_none();
        let has_more_losses = !is_new && self.count_downed(more, sample);
        for (read, now) in self.read.iter_mut().zip(sample.read) {
            *read = now.unwrap_or(*read);
        }
        if self.up == Some(false) {
            let pending = self.pending.get_or_insert_default();
            pending.sweeps = 0;
            for end in 0..2 {
                pending.away[end] |= sample.away[end];
                let same =
                    sample.read[end].is_some() && sample.resets[end] == self.accounted.resets[end];
                pending.stayed[end] |= same && !sample.away[end];
            }
            pending.maintenance |= sample.maintenance;
            if sample.up == Some(false) {
                pending.resets = Some(sample.resets);
            }
            self.came_up = false;
            return false;
        }
        let lost = !is_new && more.iter().flatten().any(|&more| more > 0);
        // A reset shows a reboot only once the other end, too, shows what it counted.
        let is_incomplete = [0, 1].into_iter().any(|end| {
            let is_reset = more[end].is_some() && sample.resets[end] != self.accounted.resets[end];
            is_reset && self.accounted.downed[1 - end].is_some() && sample.downed[1 - end].is_none()
        });
        if lost || is_incomplete || self.pending.is_some() {
            let pending = self.pending.get_or_insert_default();
            pending.sweeps += 1;
            pending.maintenance |= sample.maintenance;
            for (away, was) in pending.away.iter_mut().zip(self.was_away) {
                *away |= was;
            }
            // One end may have been read before the loss and the other after it, so both are read twice.
            let complete =
                more.iter().all(Option::is_some) && self.up == Some(true) && !has_more_losses;
            if pending.sweeps >= MAX_SWEEPS || (complete && pending.sweeps >= 2) {
                self.classify(more, sample);
            }
        } else {
            self.mark_accounted(sample);
        }
        std::mem::take(&mut self.came_up) || lost
    }

    fn update_state(&mut self, sample: &LinkSample) {
        let at = sample.at;
        let Some(up) = sample.up else {
            if sample.returned && self.up == Some(false) {
                let (first, sweeps) = self.returned.map_or((at, 0), |it| (it.first, it.sweeps));
                let sweeps = sweeps.saturating_add(1);
                self.returned = Some(ReturnedPort { first, last: at, sweeps });
            }
            return;
        };
        // The cable was found again, or the link is down again: it was up when its port was first Active.
        if let Some(ReturnedPort { first, last, .. }) = self.returned.take() {
            self.set_state(true, first, false);
            self.last_up = last;
        }
        self.set_state(up, at, false);
        self.as_of = at;
    }

    /// Sets the link's state: it changed at this moment if `exact`, and was seen at it otherwise.
    fn set_state(&mut self, up: bool, at: Moment, exact: bool) {
        let was = self.up.replace(up);
        match (was, up) {
            (Some(true), false) => {
                let up_before = if exact { at } else { self.last_up };
                self.pending.get_or_insert_default().periods.open(up_before, at);
            }
            (Some(false), true) => {
                self.came_up = true;
                if let Some(pending) = &mut self.pending {
                    pending.periods.close(at, exact);
                    pending.sweeps = 0;
                }
            }
            (Some(false), false) => {
                if let Some(pending) = &mut self.pending {
                    pending.periods.extend(at);
                }
            }
            _ => {}
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

    /// Adds the losses that LinkDowned shows beyond those counted. Returns whether there are more than known.
    fn count_downed(&mut self, more: [Option<u32>; 2], sample: &LinkSample) -> bool {
        let Some(counted) = more.into_iter().flatten().max() else { return false };
        if counted == 0 && self.pending.is_none() {
            return false;
        }
        // The end with the more recent previous reading bounds the time more closely.
        let read = (0..2).filter(|&end| more[end] == Some(counted));
        let read = read.map(|end| (self.read[end], sample.read[end].unwrap_or(sample.at)));
        let (before, at) = read.max().unwrap_or((sample.at, sample.at));
        self.pending.get_or_insert_default().periods.count(counted, before, at)
    }

    /// The losses that LinkDowned shows until now are counted.
    fn mark_accounted(&mut self, sample: &LinkSample) {
        if sample.downed.iter().all(Option::is_some) {
            self.was_away = [false; 2];
        }
        for end in 0..2 {
            if sample.read[end].is_some() {
                self.accounted.traffic[end] = sample.traffic[end];
            }
            if sample.downed[end].is_some() {
                self.accounted.downed[end] = sample.downed[end];
                self.accounted.resets[end] = sample.resets[end];
                self.unreported[end] = 0;
            }
        }
    }

    /// Decides what caused the pending losses: both ends have been read since then, or will not be.
    fn classify(&mut self, more: [Option<u32>; 2], sample: &LinkSample) {
        let Some(pending) = self.pending.take() else { return };
        let earlier = self.losses.as_deref().unwrap_or_default();
        let cause = pending.cause(&self.accounted, more, sample, earlier);
        self.mark_accounted(sample);
        let times = pending.periods.times();
        for (unreported, downed) in self.unreported.iter_mut().zip(sample.downed) {
            if downed.is_none() {
                *unreported = unreported.saturating_add(times);
            }
        }
        let periods = pending.periods.into_closed();
        let (Some(first), Some(last)) = (periods.first(), periods.last()) else { return };
        if !last.was_seen() {
            self.outages.last_change = self.outages.last_change.max(Some(last.at));
        }
        if let LossCause::Expected(expected) = cause {
            // A node that boots may train its links more than once; that is one reboot.
            let mut all = DownPeriod { times: 1, down: Downtime::default(), ..*first };
            for period in &periods {
                all.until = all.until.max(period.until);
                all.down += period.down;
            }
            self.outages.add_expected(expected, all.down);
            return self.push_loss(all, cause);
        }
        for period in periods {
            let ended = period.until.unwrap_or(period.at);
            if cause == LossCause::Link && self.is_of_this_cable(ended.whole_seconds()) {
                self.flap_days.add(ended);
            }
            self.outages.add_flaps(period.times, period.down, period.was_seen());
            for _ in 0..period.times.min(RECENT_FLAPS as u32) {
                self.flaps.rotate_right(1);
                self.flaps[0] = (ended.whole_seconds(), cause == LossCause::Node);
            }
            self.push_loss(period, cause);
        }
    }

    fn push_loss(&mut self, period: DownPeriod, cause: LossCause) {
        let (expected, by_node) = match cause {
            LossCause::Expected(expected) => (Some(expected), false),
            LossCause::Node => (None, true),
            LossCause::Link => (None, false),
        };
        let DownPeriod { at, until, times, down } = period;
        let flaps = self.outages.flaps;
        let loss = Loss { number: 0, times, expected, by_node, at, until, down, flaps };
        loss.push_to(&mut self.losses);
    }
}

#[cfg(test)]
mod tests;
