//! How fast a destination is asked: its window, which shrinks when it struggles, and its back-off.

use std::collections::VecDeque;
use std::time::Duration;

use crate::fabric::Moment;

use super::Lane;

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
    /// ibdiagnet keeps 8 SMPs and 128 GMPs in flight, a few to any one switch; OpenSM 4 SMPs. With 2 tries 2 MADs lost in 1,000 cost some port its sample in one sweep of five on
    /// 25,000 ports; with 3, in one of 2,500.
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
        self.since_growth += 1;
        if self.since_growth >= self.size && self.size < self.limit {
            self.size += 1;
            self.since_growth = 0;
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

/// What is known of one destination on one lane, and what waits to be sent to it.
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
    /// `None` where many nodes share one entry, as all do behind directed routes: one's silence says
    /// nothing of the others.
    window: Option<Window>,
    /// MADs in a row that it left without an answer.
    misses: u8,
    silent: bool,
    /// It was last heard before this walk.
    doubtful: bool,
    back_off: Duration,
}

impl<T> Destination<T> {
    /// One that answers for itself alone, with a window, or one that stands for many, without.
    pub fn new(window: Option<Window>) -> Self {
        Destination {
            queue: VecDeque::new(),
            in_flight: 0,
            not_before: Moment::default(),
            enlisted: false,
            window,
            misses: 0,
            silent: false,
            doubtful: false,
            back_off: FIRST_BACK_OFF,
        }
    }

    /// Whether something waits and may be sent, but for the back-off.
    pub fn has_room(&self) -> bool {
        let window = match self.window {
            None => u16::MAX,
            Some(_) if self.doubtful => 1,
            Some(window) => window.size(),
        };
        !self.queue.is_empty() && self.in_flight < window
    }

    /// Whether it left so many MADs without an answer that nothing more is asked in this walk.
    pub fn is_silent(&self) -> bool {
        self.silent
    }

    /// How often one request may be sent: single requests find out whether a node is back.
    pub fn tries(&self, retries: u8) -> u8 {
        if self.doubtful { 1 } else { retries + 1 }
    }

    /// It answered.
    pub fn heard(&mut self) {
        self.misses = 0;
        self.silent = false;
        self.doubtful = false;
        self.back_off = FIRST_BACK_OFF;
        if let Some(window) = &mut self.window {
            window.heard();
        }
    }

    /// It did not answer in time. More misses in a row than one request has tries are silence; as
    /// many are not, for a device may have a single attribute that it does not answer.
    pub fn missed(&mut self, retries: u8) {
        let tries = self.tries(retries);
        if let Some(window) = &mut self.window {
            window.missed();
            self.misses = self.misses.saturating_add(1);
            self.silent = self.misses > tries;
        }
    }

    /// It said that it is busy: one at a time, and not at once.
    pub fn busy(&mut self, now: Moment) {
        self.misses = 0;
        if let Some(window) = &mut self.window {
            window.shrink_to(1);
        }
        self.not_before = now + self.back_off;
        self.back_off = (self.back_off * 2).min(LONGEST_BACK_OFF);
    }

    /// A new walk begins: who was not heard in the last one gets another chance, but a small one.
    pub fn begin(&mut self) {
        self.doubtful = self.misses > 0;
        self.misses = 0;
        self.silent = false;
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
        for (answers, size) in [(2, 3), (3, 4), (10, 4)] {
            (0..answers).for_each(|_| window.heard());
            assert_eq!(window.size(), size);
        }
        (0..5).for_each(|_| window.missed());
        assert_eq!(window.size(), 1);
    }

    #[test]
    fn each_busy_answer_makes_the_pause_longer_and_any_other_ends_that() {
        let mut destination: Destination<()> = Destination::new(Some(Window::new(4)));
        let mut pauses = Vec::new();
        for _ in 0..8 {
            destination.busy(Moment(0));
            pauses.push(destination.not_before.since(Moment(0)).as_millis());
        }
        assert_eq!(pauses, [20, 40, 80, 160, 320, 640, 1000, 1000]);
        destination.heard();
        destination.busy(Moment(0));
        assert_eq!(destination.not_before.since(Moment(0)).as_millis(), 20);
    }
}
