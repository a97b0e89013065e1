//! What is true of a cable, and what a verdict may say of it.
//!
//! A verdict is right while its reason holds, and as long after it as the evaluator documents that it remembers: see
//! `docs/verdicts-and-alerts.md`. Everything else is a false alarm.

use crate::rates::Event;
use crate::time::DAY;

/// A verdict improves 5 minutes after its reason is gone; and some sweeps until a loss is classified.
const HOLD: f64 = 300.0;
const SWEEPS: f64 = 8.0;

/// The longest window of bit errors: 125 minutes, up to a fifth more.
const ERROR_MEMORY: f64 = 1.2 * 125.0 * 60.0;

/// Retrainings, pre-FEC ratios and receive errors are remembered for up to two periods of 12 minutes.
const PERIODS: f64 = 2.0 * 720.0;

/// One flap counts for an hour, three for 12 hours.
const ONE_FLAP: f64 = 3600.0;
const FLAPS: (usize, f64) = (3, 12.0 * 3600.0);

/// Three days with flaps count for fourteen; a day begins with a flap, and has 12 hours.
const FLAP_DAYS: (usize, f64) = (3, 14.0 * DAY);
const FLAP_DAY: f64 = 12.0 * 3600.0;

/// A link that is down for longer is bad.
pub const DOWN_FOR_GOOD: f64 = 300.0;

/// A module is read every 10 minutes; two readings decide.
const MODULE_READ: f64 = 1200.0;

/// The verdicts that are right for a cable, by when they cease to be.
#[derive(Clone, Debug, Default)]
pub struct Truth {
    /// Until when `bad` is right, in seconds.
    pub bad_until: f64,
    /// Until when `watch` is right.
    pub watch_until: f64,
    /// What happened to it last, and when.
    pub last: Option<(Event, f64)>,
}

impl Truth {
    fn allow_bad(&mut self, until: f64) {
        self.bad_until = self.bad_until.max(until);
        self.allow_watch(until);
    }

    fn allow_watch(&mut self, until: f64) {
        self.watch_until = self.watch_until.max(until);
    }

    /// Something happened to it.
    pub fn note(&mut self, event: Event, at: f64) {
        self.last = Some((event, at));
    }

    /// A direction has a bit error ratio of so many times its limit.
    pub fn on_bit_errors(&mut self, times: f64, at: f64, interval: f64) {
        let until = at + ERROR_MEMORY + HOLD + SWEEPS * interval;
        if times >= 1.0 {
            self.allow_bad(until);
        } else if times >= 0.5 {
            self.allow_watch(until);
        }
    }

    /// A direction has a pre-FEC ratio above its limit, the link retrained several times, or receives corrupt packets.
    pub fn on_degraded(&mut self, at: f64, interval: f64) {
        self.allow_watch(at + PERIODS + HOLD + SWEEPS * interval);
    }

    /// A module reports that it is out of its limits.
    pub fn on_module(&mut self, at: f64) {
        self.allow_watch(at + MODULE_READ + HOLD);
    }

    /// It went down unexpectedly; `flaps` are all times when it did, this one included.
    pub fn on_flap(&mut self, flaps: &[f64], at: f64, interval: f64) {
        let slack = HOLD + SWEEPS * interval;
        self.allow_watch(at + ONE_FLAP + slack);
        if let Some(&third) = flaps.len().checked_sub(FLAPS.0).and_then(|nth| flaps.get(nth))
            && at - third <= FLAPS.1 + slack
        {
            self.allow_bad(third + FLAPS.1 + slack);
        }
        let mut days: Vec<f64> = Vec::new();
        for &flap in flaps {
            if days.last().is_none_or(|day| flap - day >= FLAP_DAY) {
                days.push(flap);
            }
        }
        if let Some(&third) = days.len().checked_sub(FLAP_DAYS.0).and_then(|nth| days.get(nth))
            && at - third <= FLAP_DAYS.1 + slack
        {
            self.allow_watch(third + FLAP_DAYS.1 + FLAP_DAY + slack);
        }
    }

    /// It carries no traffic although both nodes are on, since a while; its lanes are trained or not.
    pub fn on_down(&mut self, at: f64, since: f64, trained: bool, interval: f64) {
        let until = at + HOLD + SWEEPS * interval;
        self.allow_watch(until);
        if at - since >= DOWN_FOR_GOOD && !trained {
            self.allow_bad(until);
        }
    }

    /// It runs with fewer lanes than before.
    pub fn on_fewer_lanes(&mut self, at: f64, interval: f64) {
        self.allow_bad(at + HOLD + SWEEPS * interval);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn verdicts_are_right_as_long_as_they_are_remembered() {
        let mut truth = Truth::default();
        truth.on_bit_errors(0.4, 100.0, 60.0);
        assert!(truth.watch_until < 1.0);
        truth.on_bit_errors(0.9, 100.0, 60.0);
        assert!(truth.watch_until > 9_000.0 && truth.bad_until < 1.0);
        truth.on_bit_errors(1.0, 100.0, 60.0);
        assert!(truth.bad_until > 9_000.0);
        let mut truth = Truth::default();
        truth.on_flap(&[0.0, 10_000.0], 10_000.0, 60.0);
        assert!(truth.bad_until < 1.0 && truth.watch_until > 13_600.0);
        truth.on_flap(&[0.0, 10_000.0, 20_000.0], 20_000.0, 60.0);
        assert!((43_200.0..45_000.0).contains(&truth.bad_until));
        let mut truth = Truth::default();
        truth.on_flap(&[0.0, 100.0, 90_000.0, 200_000.0], 200_000.0, 60.0);
        assert!(truth.bad_until < 1.0 && (14.0 * DAY..14.6 * DAY).contains(&truth.watch_until));
    }
}
