//! The rate limit: a token bucket, from which each request takes a token.

use std::sync::Mutex;
use std::time::{Duration, Instant};

use super::locked::locked;

/// There is one more token every `interval`, up to `burst`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Rate {
    pub interval: Duration,
    pub burst: u32,
}

#[derive(Debug)]
pub(crate) struct RateLimiter {
    pub rate: Rate,
    bucket: Mutex<Bucket>,
}

#[derive(Clone, Copy, Debug)]
struct Bucket {
    tokens: f64,
    updated: Instant,
}

impl RateLimiter {
    /// Starts with a full bucket.
    pub fn new(rate: Rate, now: Instant) -> Self {
        let bucket = Bucket { tokens: rate.burst.into(), updated: now };
        RateLimiter { rate, bucket: bucket.into() }
    }

    /// Takes a token; whether there was one.
    pub fn try_acquire(&self, now: Instant) -> bool {
        let mut bucket = locked(&self.bucket);
        let elapsed = now.saturating_duration_since(bucket.updated);
        let more = elapsed.div_duration_f64(self.rate.interval);
        let tokens = (bucket.tokens + more).min(self.rate.burst.into());
        let acquired = tokens >= 1.0;
        bucket.tokens = if acquired { tokens - 1.0 } else { tokens };
        bucket.updated = bucket.updated.max(now);
        acquired
    }
}

#[cfg(test)]
mod tests {
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
