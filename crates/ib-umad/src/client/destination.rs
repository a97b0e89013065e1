//! Congestion control of one destination: its window, its back-off, and when it is given up.

use std::collections::VecDeque;
use std::time::Duration;

use ib_mad::Moment;
use ib_mad::class_port_info::Redirect;

use super::adaptive_window::AdaptiveWindow;
use super::in_flight::Pending;
use crate::request::RequestError;
use crate::transport::QP1_QKEY;

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
#[expect(clippy::struct_excessive_bools, reason = "independent findings")]
pub(super) struct Destination {
    pub queue: VecDeque<Pending>,
    in_flight: u16,
    /// How long requests were in flight in this run, without those that are now, and since when these are.
    used: Duration,
    in_flight_since: Moment,
    /// It used up its time in the last run that had requests for it: it gets one at a time.
    slow: bool,
    /// End of the back-off.
    pub not_before: Moment,
    /// It is in the ready queue.
    pub is_ready: bool,
    /// Where its agent sent requests that it does not respond to itself.
    pub redirect: Option<Redirect>,
    /// Whether it was logged that a redirect of its agent has another Q_Key.
    has_logged_q_key: bool,
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
        let window = if self.probing || self.slow { 1 } else { self.window.size };
        !self.queue.is_empty() && self.in_flight < window
    }

    /// Whether a request that follows a redirect of its agent would be received. The kernel sends all GMPs with the Q_Key
    /// of QP1, whatever the header says (`IB_QP_SET_QKEY` in drivers/infiniband/core/mad.c), and a queue pair
    /// drops those with another one: without this check each request would time out. 0 names none.
    pub fn can_reach(&mut self, redirect: &Redirect) -> bool {
        let can_reach = [0, QP1_QKEY].contains(&redirect.qkey);
        if !can_reach && !std::mem::replace(&mut self.has_logged_q_key, true) {
            let (lid, q_key) = (redirect.lid, redirect.qkey);
            tracing::warn!(
                %lid,
                "redirect unusable: an agent redirects requests to a queue pair with Q_Key {q_key:#010x}, and the \
                 kernel sends with {QP1_QKEY:#010x} only; this agent cannot be queried"
            );
        }
        can_reach
    }

    pub fn tries(&self, retries: u8) -> u8 {
        if self.probing { 1 } else { retries.saturating_add(1) }
    }

    pub fn on_sent(&mut self, now: Moment) {
        if self.in_flight == 0 {
            self.in_flight_since = now;
        }
        self.in_flight += 1;
    }

    /// A request is no longer in flight.
    pub fn on_end(&mut self, now: Moment) {
        self.in_flight -= 1;
        if self.in_flight == 0 {
            self.used += now.since(self.in_flight_since);
        }
    }

    /// How long requests were in flight in this run.
    fn time_used(&self, now: Moment) -> Duration {
        let open =
            if self.in_flight == 0 { Duration::ZERO } else { now.since(self.in_flight_since) };
        self.used + open
    }

    /// It responded. If it used up its time, the other requests of this run are not sent.
    pub fn on_response(&mut self, now: Moment, time_limit: Option<Duration>) {
        self.timeouts = 0;
        self.given_up = None;
        self.probing = false;
        self.back_off = Duration::ZERO;
        self.total_back_off = Duration::ZERO;
        self.window.on_response();
        if time_limit.is_some_and(|limit| self.time_used(now) > limit) {
            self.given_up = Some(RequestError::Slow);
        }
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

    /// A new run begins: a destination that did not respond in the last one is probed, and a slow one gets one request
    /// at a time.
    pub fn begin_run(&mut self) {
        self.probing |= self.timeouts > 0;
        if self.used > Duration::ZERO {
            self.slow = self.given_up == Some(RequestError::Slow);
        }
        self.used = Duration::ZERO;
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
        destination.on_response(now, None);
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
