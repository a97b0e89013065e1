//! How long a discovery may take, and how many requests. The monitor does not sweep meanwhile.

use std::time::Duration;

/// The largest subnet, with 49,151 LIDs behind 64-port switches, takes about 400,000. A device that invents neighbors
/// must not exhaust memory.
const MAX_STEPS: usize = 1 << 21;
/// So many are allowed however small the fabric was: it may be extended.
const MIN_STEPS: usize = 10_000;
/// 60,000 ports of switches that respond in 50 µs take a second; many dead hosts take minutes.
const FIRST_TIME: Duration = Duration::from_secs(300);
const MIN_TIME: Duration = Duration::from_secs(60);
/// What a complete discovery took, times this, is enough for the next one.
const GROWTH: u32 = 4;

/// The limits of a discovery.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DiscoveryLimits {
    /// Maximum number of requests, and of ports.
    pub(in crate::collect) steps: usize,
    pub(super) time: Duration,
}

impl Default for DiscoveryLimits {
    /// Those of a first discovery.
    fn default() -> Self {
        DiscoveryLimits { steps: MAX_STEPS, time: FIRST_TIME }
    }
}

/// Why a discovery is not complete.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LimitReached {
    /// It had too many requests.
    Steps,
    /// It took too long.
    Time,
}

impl DiscoveryLimits {
    /// Those of the discovery after one that had so many requests and took so long.
    #[must_use]
    pub fn next(self, reached: Option<LimitReached>, steps: usize, took: Duration) -> Self {
        let grown = (GROWTH as usize).saturating_mul(steps).clamp(MIN_STEPS, MAX_STEPS);
        match reached {
            None => {
                DiscoveryLimits { steps: grown, time: took.saturating_mul(GROWTH).max(MIN_TIME) }
            }
            // The fabric may have been extended.
            Some(LimitReached::Steps) => DiscoveryLimits { steps: grown, ..self },
            Some(LimitReached::Time) => self,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn limits_follow_the_last_complete_discovery() {
        let first = DiscoveryLimits::default();
        let (short, long) = (Duration::from_secs(1), Duration::from_secs(40));
        let small = first.next(None, 300, short);
        assert_eq!((small.steps, small.time), (MIN_STEPS, MIN_TIME));
        let large = first.next(None, 400_000, long);
        assert_eq!((large.steps, large.time), (1_600_000, 4 * long));
        assert_eq!(small.next(Some(LimitReached::Time), 9_000, MIN_TIME), small);
        let extended = small.next(Some(LimitReached::Steps), MIN_STEPS, short);
        assert_eq!((extended.steps, extended.time), (4 * MIN_STEPS, MIN_TIME));
    }
}
