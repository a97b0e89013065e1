//! The limit of requests: a bucket of tokens.

use std::sync::{Mutex, PoisonError};
use std::time::Instant;

use super::config::Rate;

/// The tokens that there are.
#[derive(Debug)]
pub struct Limiter {
    rate: Rate,
    bucket: Mutex<(f64, Instant)>,
}

impl Limiter {
    /// A bucket that is full.
    pub fn new(rate: Rate, now: Instant) -> Self {
        Limiter { rate, bucket: Mutex::new((rate.burst.into(), now)) }
    }

    /// The limit.
    pub fn rate(&self) -> Rate {
        self.rate
    }

    /// Takes a token, if there is one.
    pub fn admits(&self, now: Instant) -> bool {
        let mut bucket = self.bucket.lock().unwrap_or_else(PoisonError::into_inner);
        let (tokens, then) = *bucket;
        let more = now.saturating_duration_since(then).div_duration_f64(self.rate.interval);
        let tokens = (tokens + more).min(self.rate.burst.into());
        let admits = tokens >= 1.0;
        *bucket = (if admits { tokens - 1.0 } else { tokens }, now.max(then));
        admits
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn a_burst_and_then_one_an_interval() {
        let began = Instant::now();
        let limiter = Limiter::new(Rate { interval: Duration::from_secs(1), burst: 3 }, began);
        let at = |millis| limiter.admits(began + Duration::from_millis(millis));
        assert_eq!(
            [0, 0, 0, 0, 999, 1_001, 1_002].map(at),
            [true, true, true, false, false, true, false]
        );
        // However long nobody asked, there are no more than three.
        assert_eq!([60_000, 60_000, 60_000, 60_000].map(at), [true, true, true, false]);
        // A clock that another thread read before.
        assert!(!at(59_000));
    }
}
