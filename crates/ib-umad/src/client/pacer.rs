//! A limit of MADs per second, which the clients of a port share.

use std::num::NonZeroU32;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use ib_mad::Moment;

/// The MADs of this time may be sent at once. Waits are rounded up to a millisecond, and a thread wakes up late: without
/// it the limit would not be reached. The windows limit the burst, too.
const BURST: Duration = Duration::from_millis(20);

/// A token bucket, as the moment until which the MADs that were sent have used up the limit; retries are MADs, too.
#[derive(Clone, Debug)]
pub(super) struct Pacer {
    /// What one MAD uses up; zero without a limit.
    gap: Duration,
    /// A [`Moment`]. Atomic only to be shared: the clients of a port work one after the other, on one thread.
    used_until: Arc<AtomicU64>,
}

impl Pacer {
    pub fn new(per_second: Option<NonZeroU32>) -> Self {
        let nanos = per_second.map_or(0, |limit| 1_000_000_000_u64.div_ceil(limit.get().into()));
        Pacer { gap: Duration::from_nanos(nanos), used_until: Arc::default() }
    }

    /// When the next MAD may be sent.
    pub fn next(&self) -> Moment {
        Moment(self.used_until.load(Ordering::Relaxed)).before(BURST)
    }

    pub fn on_sent(&self, now: Moment) {
        if !self.gap.is_zero() {
            let used_until = Moment(self.used_until.load(Ordering::Relaxed)).max(now) + self.gap;
            self.used_until.store(used_until.0, Ordering::Relaxed);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_second_has_more_than_the_limit_and_a_burst() {
        for limit in [1, 7, 1_000, 30_000, 3_000_000] {
            let (first, mut now, mut sent) =
                (Pacer::new(NonZeroU32::new(limit)), Moment(0), Vec::new());
            let other = first.clone();
            // The second half begins after a pause, which saves up no more than a burst.
            for begin in [Moment(0), Moment(0) + Duration::from_secs(3_600)] {
                now = now.max(begin);
                for pacer in [&first, &other].into_iter().cycle().take(5_000) {
                    now = now.max(pacer.next());
                    pacer.on_sent(now);
                    sent.push(now);
                }
            }
            let burst = BURST.as_millis() as usize * limit as usize / 1_000;
            for (at, begin) in sent.iter().enumerate().step_by(97) {
                let end = sent.partition_point(|it| *it < *begin + Duration::from_secs(1));
                assert!(end - at <= limit as usize + burst + 1, "{limit}: {}", end - at);
            }
        }
        let unlimited = Pacer::new(None);
        (0..1_000_000).for_each(|_| unlimited.on_sent(Moment(0)));
        assert_eq!(unlimited.next(), Moment(0));
    }
}
