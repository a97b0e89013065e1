//! The rate limit of requests: a token bucket.

use std::sync::{Mutex, PoisonError};
use std::time::Instant;

use super::config::Rate;

/// A token bucket.
#[derive(Debug)]
pub struct RateLimiter {
    rate: Rate,
    /// The tokens that there were, and when.
    bucket: Mutex<(f64, Instant)>,
}

impl RateLimiter {
    /// A full bucket.
    pub fn new(rate: Rate, now: Instant) -> Self {
        RateLimiter { rate, bucket: Mutex::new((rate.burst.into(), now)) }
    }

    /// The limit.
    pub fn rate(&self) -> Rate {
        self.rate
    }

    /// Takes a token; whether there was one.
    pub fn try_acquire(&self, now: Instant) -> bool {
        let mut bucket = self.bucket.lock().unwrap_or_else(PoisonError::into_inner);
        let (tokens, then) = *bucket;
        let more = now.saturating_duration_since(then).div_duration_f64(self.rate.interval);
        let tokens = (tokens + more).min(self.rate.burst.into());
        let acquired = tokens >= 1.0;
        *bucket = (if acquired { tokens - 1.0 } else { tokens }, now.max(then));
        acquired
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn bucket_allows_a_burst_and_then_one_per_interval() {
        let began = Instant::now();
        let limiter = RateLimiter::new(Rate { interval: Duration::from_secs(1), burst: 3 }, began);
        let at = |millis| limiter.try_acquire(began + Duration::from_millis(millis));
        assert_eq!(
            [0, 0, 0, 0, 999, 1_001, 1_002].map(at),
            [true, true, true, false, false, true, false]
        );
        // The bucket holds no more than the burst.
        assert_eq!([60_000, 60_000, 60_000, 60_000].map(at), [true, true, true, false]);
        // A moment that another thread took earlier.
        assert!(!at(59_000));
    }
}
