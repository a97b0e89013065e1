//! How long a link was down: sweeps sample its state, so most durations are known within bounds.

use std::time::Duration;

use ib_mad::Moment;

use crate::outage::Downtime;

/// A time in which a link was down, before its cause is known.
#[derive(Clone, Copy, Debug)]
pub struct DownPeriod {
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
pub struct DownPeriods {
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

    /// For how long the link was down in the longest of the periods that ended, at least.
    pub fn longest(&self) -> Duration {
        self.closed.iter().map(|period| period.down.least).max().unwrap_or_default()
    }

    pub fn into_closed(mut self) -> Vec<DownPeriod> {
        self.closed.sort_by_key(|period| period.at);
        self.closed
    }
}
