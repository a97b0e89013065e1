//! How long a link was down. Sweeps see a link now and then, so most lengths are known within bounds.

use std::ops::AddAssign;
use std::time::Duration;

use ib_mad::Moment;

use super::Expected;

/// How long something was down.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Downtime {
    /// At least: from the first to the last time it was seen down.
    pub least: Duration,
    /// At most: from the last time it was seen up before to the first time it was seen up again.
    pub most: Duration,
}

impl Downtime {
    /// Between nothing and this.
    pub fn at_most(most: Duration) -> Self {
        Downtime { least: Duration::ZERO, most }
    }

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

/// A loss of a link, or several that cannot be told apart: LinkDowned alone counted them between two
/// sweeps.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Loss {
    /// The running number of this record for its link, from 1.
    pub number: u32,
    /// How many losses it stands for.
    pub times: u32,
    /// Why nothing is wrong with the link; `None` for a flap.
    pub expected: Option<Expected>,
    /// When it was first seen down, or when the counter was read that counted it.
    pub at: Moment,
    /// When it was first seen up again; `None` if only a counter shows the loss.
    pub until: Option<Moment>,
    /// How long it was down, all of its losses together.
    pub down: Downtime,
    /// The link's flaps so far, these included.
    pub flaps: u32,
}

/// A time during which a link was down, before its cause is known.
#[derive(Clone, Copy, Debug)]
pub(super) struct Spell {
    pub at: Moment,
    pub until: Option<Moment>,
    pub times: u32,
    pub down: Downtime,
}

impl Spell {
    /// Whether a sweep or a port of this host saw the link down. Otherwise only LinkDowned shows it.
    pub fn was_seen(&self) -> bool {
        self.until.is_some()
    }
}

/// A link that is down now.
#[derive(Clone, Copy, Debug)]
struct Open {
    /// The last time it was known to be up.
    up_before: Moment,
    /// When it was first and last seen down, and the sight before the last.
    first: Moment,
    last: Moment,
    previous: Moment,
}

/// How many spells are kept apart: a link that goes down in each sweep for hours must not take memory.
const MOST: usize = 16;

/// The losses of a link since its cause was last decided.
#[derive(Clone, Debug, Default)]
pub(super) struct Spells {
    open: Option<Open>,
    over: Vec<Spell>,
    /// The losses that LinkDowned has shown so far.
    counted: u32,
}

impl Spells {
    /// How many losses there were.
    pub fn times(&self) -> u32 {
        let over = self.over.iter().map(|spell| spell.times).fold(0, u32::saturating_add);
        over.saturating_add(u32::from(self.open.is_some()))
    }

    /// The link was seen down for the first time since it was up at `up_before`.
    pub fn open(&mut self, up_before: Moment, at: Moment) {
        self.open = Some(Open { up_before, first: at, last: at, previous: at });
    }

    /// It is still down.
    pub fn see_down(&mut self, at: Moment) {
        if let Some(open) = &mut self.open {
            (open.previous, open.last) = (open.last, at);
        }
    }

    /// It is up again. `exact` if a port said so at this moment: it was down until then.
    pub fn close(&mut self, at: Moment, exact: bool) {
        let Some(open) = self.open.take() else { return };
        let last = if exact { at } else { open.last };
        let down = Downtime { least: last.since(open.first), most: at.since(open.up_before) };
        self.add(Spell { at: open.first, until: Some(at), times: 1, down });
    }

    /// Takes in that LinkDowned shows so many losses by now, where an earlier reading at `before` did
    /// not. Returns whether that is more than was known.
    ///
    /// More losses than were seen happened between two sweeps. If the link was seen down at both, it
    /// came up and went down again in between, and is not known to have been down all the time.
    pub fn count(&mut self, counted: u32, before: Moment, at: Moment) -> bool {
        self.counted = self.counted.max(counted);
        let known = self.times();
        let mut more = self.counted.saturating_sub(known);
        if more == 0 {
            self.explain(known - self.counted.min(known));
            return false;
        }
        if let Some(open) =
            self.open.filter(|open| open.previous < open.last && before >= open.first)
        {
            let Open { up_before, first, last, previous } = open;
            let down = Downtime { least: previous.since(first), most: last.since(up_before) };
            self.add(Spell { at: first, until: Some(last), times: 1, down });
            self.open = Some(Open { up_before: previous, first: last, last, previous: last });
            more -= 1;
        }
        if more > 0 {
            let down = Downtime::at_most(at.since(before));
            self.add(Spell { at, until: None, times: more, down });
        }
        true
    }

    /// A port's state is read before its counters. A loss in between is counted in one sweep and seen in
    /// the next: it is one loss, not two.
    fn explain(&mut self, mut excess: u32) {
        for spell in self.over.iter_mut().rev().filter(|spell| !spell.was_seen()) {
            let gone = excess.min(spell.times);
            spell.times -= gone;
            excess -= gone;
        }
        self.over.retain(|spell| spell.times > 0);
    }

    fn add(&mut self, spell: Spell) {
        let is_full = self.over.len() >= MOST;
        match self.over.last_mut().filter(|_| is_full) {
            Some(last) => {
                last.times = last.times.saturating_add(spell.times);
                last.down += spell.down;
                last.until = spell.until.or(last.until);
            }
            None => self.over.push(spell),
        }
    }

    /// Those that are over, in order of time.
    pub fn into_over(mut self) -> Vec<Spell> {
        self.over.sort_by_key(|spell| spell.at);
        self.over
    }
}
