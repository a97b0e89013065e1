//! How many shards scrapes request: the fabrics are rendered in as many slices of nodes, of which each takes some space.

use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use super::selection::MAX_SHARDS;

/// For how long a number of shards is rendered that nobody requests any more. Prometheus scrapes at least every 5 minutes:
/// it takes series as gone whose latest sample is older (--query.lookback-delta).
const KEPT: Duration = Duration::from_secs(600);

/// When each number of shards was last requested, by its logarithm.
#[derive(Debug, Default)]
pub(super) struct RequestedShards(Mutex<[Option<Instant>; MAX_SHARDS.ilog2() as usize + 1]>);

impl RequestedShards {
    /// Notes a request for one of `count` shards, a power of two up to [`MAX_SHARDS`].
    pub fn note(&self, count: usize, now: Instant) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)[count.ilog2() as usize] = Some(now);
    }

    /// The highest number of shards that was requested lately; 1 if none was.
    pub fn most(&self, now: Instant) -> usize {
        let latest = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let is_recent =
            |at: &Option<Instant>| at.is_some_and(|at| now.saturating_duration_since(at) <= KEPT);
        latest.iter().rposition(is_recent).map_or(1, |power| 1 << power)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn number_that_nobody_requests_any_more_is_forgotten() {
        let (shards, began) = (RequestedShards::default(), Instant::now());
        let after = |seconds| began + Duration::from_secs(seconds);
        assert_eq!(shards.most(began), 1);
        shards.note(64, after(0));
        for minute in 0..30 {
            shards.note(1, after(60 * minute));
            shards.note(8, after(60 * minute));
            let most = if minute <= 10 { 64 } else { 8 };
            assert_eq!(shards.most(after(60 * minute)), most, "after {minute} minutes");
        }
        assert_eq!(shards.most(after(7200)), 1);
    }
}
