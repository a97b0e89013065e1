//! Congestion control of one destination: its window, its back-off, and when it is given up.

use std::collections::VecDeque;
use std::time::Duration;

use ib_mad::Moment;
use ib_mad::class_port_info::Redirect;

use super::adaptive_window::AdaptiveWindow;
use super::in_flight::Pending;
use crate::request::RequestError;

/// First back-off of a busy destination; each further one is twice as long.
const MIN_BACK_OFF: Duration = Duration::from_millis(20);
const MAX_BACK_OFF: Duration = Duration::from_secs(1);
/// After this total back-off a busy destination is given up for this run: others wait.
const MAX_TOTAL_BACK_OFF: Duration = Duration::from_secs(3);
/// Rounds without a response before a destination counts as unresponsive, even if requests have a single try:
/// a device may drop requests for one attribute only.
const MIN_ROUNDS: u8 = 2;

/// State of one destination, and the requests queued for it.
#[derive(Debug, Default)]
pub(super) struct Destination {
    pub queue: VecDeque<Pending>,
    pub in_flight: u16,
    /// End of the back-off.
    pub not_before: Moment,
    /// It is in the ready queue.
    pub is_ready: bool,
    /// Where its agent sent requests that it does not respond to itself.
    pub redirect: Option<Redirect>,
    window: AdaptiveWindow,
    /// Consecutive rounds without a response: requests that time out together count once.
    timeouts: u8,
    last_timeout: Moment,
    /// It did not respond in the last run: it is probed by single requests.
    probing: bool,
    /// Why it is given up for this run.
    pub given_up: Option<RequestError>,
    /// The last back-off since a response other than busy.
    back_off: Duration,
    /// Total back-off since the last response other than busy.
    total_back_off: Duration,
}

impl Destination {
    pub fn new(window: u16) -> Self {
        Destination { window: AdaptiveWindow::new(window), ..Destination::default() }
    }

    /// Whether a request is queued and the window has room.
    pub fn has_room(&self) -> bool {
        let window = if self.probing { 1 } else { self.window.size };
        !self.queue.is_empty() && self.in_flight < window
    }

    pub fn tries(&self, retries: u8) -> u8 {
        if self.probing { 1 } else { retries.saturating_add(1) }
    }

    pub fn on_response(&mut self) {
        self.timeouts = 0;
        self.given_up = None;
        self.probing = false;
        self.back_off = Duration::ZERO;
        self.total_back_off = Duration::ZERO;
        self.window.on_response();
    }

    pub fn on_timeout(&mut self, sent: Moment, now: Moment, retries: u8) {
        if sent < self.last_timeout {
            return;
        }
        self.last_timeout = now;
        self.window.on_timeout();
        self.timeouts = self.timeouts.saturating_add(1);
        if self.timeouts >= self.tries(retries).max(MIN_ROUNDS) {
            self.given_up = Some(RequestError::Unresponsive);
        }
    }

    /// It responded busy: further requests one at a time, after a back-off.
    pub fn on_busy(&mut self, now: Moment) {
        self.timeouts = 0;
        self.probing = false;
        self.window.shrink_to(1);
        // Busy responses to several requests in flight cause one back-off.
        if now < self.not_before {
            return;
        }
        self.back_off = (self.back_off * 2).clamp(MIN_BACK_OFF, MAX_BACK_OFF);
        self.not_before = now + self.back_off;
        self.total_back_off += self.back_off;
        if self.total_back_off > MAX_TOTAL_BACK_OFF {
            self.given_up = Some(RequestError::Busy);
        }
    }

    /// A new run begins: a destination that did not respond in the last one is probed.
    pub fn begin_run(&mut self) {
        self.probing |= self.timeouts > 0;
        self.timeouts = 0;
        self.given_up = None;
        self.total_back_off = Duration::ZERO;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn busy_back_off_doubles_until_give_up() {
        let mut destination = Destination::new(4);
        let (mut now, mut pauses) = (Moment(0), Vec::new());
        while destination.given_up.is_none() {
            destination.on_busy(now);
            destination.on_busy(now);
            pauses.push(destination.not_before.since(now).as_millis());
            now = destination.not_before;
        }
        assert_eq!(pauses, [20, 40, 80, 160, 320, 640, 1000, 1000]);
        assert_eq!(destination.given_up, Some(RequestError::Busy));
        destination.on_response();
        destination.on_busy(now);
        assert_eq!(destination.not_before.since(now).as_millis(), 20);
    }

    #[test]
    fn timeouts_of_one_round_count_once() {
        let mut destination = Destination::new(4);
        for round in 0..3 {
            let (sent, now) = (Moment(round * 10), Moment(round * 10 + 9));
            (0..4).for_each(|_| destination.on_timeout(sent, now, 2));
            assert_eq!(destination.given_up.is_some(), round == 2, "round {round}");
        }
    }
}
