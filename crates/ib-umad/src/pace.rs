//! How fast a destination is asked: its window, which shrinks when it struggles, and its back-off.

use std::collections::VecDeque;
use std::time::Duration;

use ib_mad::Moment;

use super::{Failure, Lane};

/// How hard the fabric may be asked. All of it can be set by flags.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pace {
    /// SMPs in flight in all. Virtual lane 15 has no flow control: what overflows is dropped.
    pub smp_window: u16,
    /// GMPs in flight in all.
    pub gmp_window: u16,
    /// SMPs in flight to any one LID.
    pub smp_lid_window: u16,
    /// GMPs in flight to any one LID.
    pub gmp_lid_window: u16,
    /// How long an answer is waited for.
    pub timeout: Duration,
    /// How often a request that was not answered is sent again.
    pub retries: u8,
}

impl Default for Pace {
    /// ibdiagnet keeps 8 SMPs and 128 GMPs in flight, a few to any one switch; OpenSM 4 SMPs. With
    /// 2 tries, 2 MADs lost in 1,000 cost some port its sample in one sweep of five on 25,000 ports;
    /// with 3 tries, in one of 2,500.
    fn default() -> Self {
        Pace {
            smp_window: 8,
            gmp_window: 128,
            smp_lid_window: 2,
            gmp_lid_window: 4,
            timeout: Duration::from_millis(500),
            retries: 2,
        }
    }
}

impl Pace {
    /// How many MADs of a lane may be in flight to one destination.
    pub fn lid_window(&self, lane: Lane) -> u16 {
        match lane {
            Lane::Smp => self.smp_lid_window,
            Lane::Gmp => self.gmp_lid_window,
        }
    }
}

/// How many may be in flight: halves when one is missed, grows by one with each window of answers.
#[derive(Clone, Copy, Debug)]
pub(super) struct Window {
    size: u16,
    limit: u16,
    since_growth: u16,
}

impl Window {
    pub fn new(limit: u16) -> Self {
        Window { size: limit, limit, since_growth: 0 }
    }

    /// How many may be in flight now.
    pub fn size(self) -> u16 {
        self.size
    }

    /// How many may be in flight at the best.
    pub fn limit(self) -> u16 {
        self.limit
    }

    pub fn heard(&mut self) {
        if self.size < self.limit {
            self.since_growth += 1;
            if self.since_growth >= self.size {
                self.size += 1;
                self.since_growth = 0;
            }
        }
    }

    pub fn missed(&mut self) {
        self.shrink_to((self.size / 2).max(1));
    }

    pub fn shrink_to(&mut self, size: u16) {
        self.size = size;
        self.since_growth = 0;
    }
}

/// The first pause after a destination said that it is busy; each further one is twice as long.
const FIRST_BACK_OFF: Duration = Duration::from_millis(20);
/// The longest such pause.
const LONGEST_BACK_OFF: Duration = Duration::from_secs(1);
/// Who is still busy after so much pausing in a row is left alone for this walk: the others wait.
const MOST_PATIENCE: Duration = Duration::from_secs(3);
/// So many rounds without an answer are silence, even where a request has a single try: a device may
/// have one attribute that it does not answer, and everything else.
const LEAST_ROUNDS: u8 = 2;

/// What is known of one destination, and what waits to be sent to it.
#[derive(Debug)]
pub(super) struct Destination<T> {
    /// Requests that wait for room in the window.
    pub queue: VecDeque<T>,
    /// How many are in flight.
    pub in_flight: u16,
    /// Nothing is sent before this.
    pub not_before: Moment,
    /// It stands in the queue of those that can be sent to.
    pub enlisted: bool,
    window: Window,
    /// Rounds in a row without an answer: what is missed together was sent together, and is one.
    misses: u8,
    /// When the latest of them was told.
    last_miss: Moment,
    /// It was last heard before this walk.
    doubtful: bool,
    given_up: Option<Failure>,
    back_off: Duration,
    /// How long it was paused for, since it last answered anything but that it is busy.
    paused: Duration,
}

impl<T> Destination<T> {
    pub fn new(window: u16) -> Self {
        Destination {
            queue: VecDeque::new(),
            in_flight: 0,
            not_before: Moment::default(),
            enlisted: false,
            window: Window::new(window),
            misses: 0,
            last_miss: Moment::default(),
            doubtful: false,
            given_up: None,
            back_off: FIRST_BACK_OFF,
            paused: Duration::ZERO,
        }
    }

    /// Whether something waits and may be sent, but for the back-off.
    pub fn has_room(&self) -> bool {
        let window = if self.doubtful { 1 } else { self.window.size() };
        !self.queue.is_empty() && self.in_flight < window
    }

    /// What nothing more is asked for in this walk, if that is so.
    pub fn given_up(&self) -> Option<Failure> {
        self.given_up
    }

    /// How often one request may be sent: single requests find out whether a node is back.
    pub fn tries(&self, retries: u8) -> u8 {
        if self.doubtful { 1 } else { retries.saturating_add(1) }
    }

    /// It answered.
    pub fn heard(&mut self) {
        self.misses = 0;
        self.given_up = None;
        self.doubtful = false;
        self.back_off = FIRST_BACK_OFF;
        self.paused = Duration::ZERO;
        self.window.heard();
    }

    /// It did not answer in time what was sent at `sent`.
    pub fn missed(&mut self, sent: Moment, now: Moment, retries: u8) {
        if sent < self.last_miss {
            return;
        }
        self.last_miss = now;
        self.window.missed();
        self.misses = self.misses.saturating_add(1);
        if self.misses >= self.tries(retries).max(LEAST_ROUNDS) {
            self.given_up = Some(Failure::Silent);
        }
    }

    /// It said that it is busy: one at a time, and not at once.
    pub fn busy(&mut self, now: Moment) {
        self.misses = 0;
        self.doubtful = false;
        self.window.shrink_to(1);
        // Several that were in flight together are told one pause.
        if now < self.not_before {
            return;
        }
        self.not_before = now + self.back_off;
        self.paused += self.back_off;
        self.back_off = (self.back_off * 2).min(LONGEST_BACK_OFF);
        if self.paused > MOST_PATIENCE {
            self.given_up = Some(Failure::Busy);
        }
    }

    /// A new walk begins: who was not heard in the last one gets another chance, but a small one.
    pub fn begin(&mut self) {
        self.doubtful |= self.misses > 0;
        self.misses = 0;
        self.given_up = None;
        self.paused = Duration::ZERO;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_window_halves_on_a_miss_and_grows_back_answer_by_answer() {
        let mut window = Window::new(4);
        window.missed();
        assert_eq!(window.size(), 2);
        for (answers, size) in [(2, 3), (3, 4), (100_000, 4)] {
            (0..answers).for_each(|_| window.heard());
            assert_eq!(window.size(), size);
        }
        (0..5).for_each(|_| window.missed());
        assert_eq!(window.size(), 1);
    }

    #[test]
    fn each_pause_is_longer_until_patience_ends_and_any_answer_ends_that() {
        let mut destination: Destination<()> = Destination::new(4);
        let (mut now, mut pauses) = (Moment(0), Vec::new());
        while destination.given_up().is_none() {
            destination.busy(now);
            destination.busy(now);
            pauses.push(destination.not_before.since(now).as_millis());
            now = destination.not_before;
        }
        assert_eq!(pauses, [20, 40, 80, 160, 320, 640, 1000, 1000]);
        assert_eq!(destination.given_up(), Some(Failure::Busy));
        destination.heard();
        destination.busy(now);
        assert_eq!(destination.not_before.since(now).as_millis(), 20);
    }

    #[test]
    fn what_is_missed_together_is_one_miss() {
        let mut destination: Destination<()> = Destination::new(4);
        for round in 0..3 {
            let (sent, told) = (Moment(round * 10), Moment(round * 10 + 9));
            (0..4).for_each(|_| destination.missed(sent, told, 2));
            assert_eq!(destination.given_up().is_some(), round == 2, "round {round}");
        }
    }
}
