//! The limit of SMPs per minute.

use std::time::Duration;

use ib_mad::Moment;

const MINUTE: Duration = Duration::from_secs(60);

/// A token bucket of SMPs: so many in a minute, as many at once after a pause. Retries of the client are not counted.
///
/// Forwarding tables are read because somebody wants to know a route, and not in each sweep. So many users, or one script
/// in a loop, must not add more than this to the load of VL15, which has no flow control.
#[derive(Clone, Copy, Debug)]
pub struct SmpBudget {
    per_minute: u32,
    /// When all may be sent at once again: each SMP moves it a part of a minute further.
    full_at: Moment,
}

impl SmpBudget {
    /// The default: a sweep of 500 switches sends about as many SMPs every 15 seconds.
    pub const DEFAULT_PER_MINUTE: u32 = 4_000;

    /// A full budget; of 0 per minute nothing can be taken.
    pub fn new(per_minute: u32) -> Self {
        SmpBudget { per_minute, full_at: Moment::default() }
    }

    /// The time in which one SMP more may be sent, in nanoseconds.
    fn interval(self) -> u64 {
        MINUTE.as_nanos() as u64 / u64::from(self.per_minute.max(1))
    }

    /// How many SMPs may be sent at once.
    pub fn available(self, now: Moment) -> u32 {
        let backlog = self.full_at.since(now).as_nanos() as u64;
        let used = u32::try_from(backlog.div_ceil(self.interval())).unwrap_or(u32::MAX);
        self.per_minute.saturating_sub(used)
    }

    /// Takes one SMP. Returns whether there was one.
    #[must_use]
    pub fn take(&mut self, now: Moment) -> bool {
        let is_left = self.available(now) > 0;
        if is_left {
            self.full_at = self.full_at.max(now) + Duration::from_nanos(self.interval());
        }
        is_left
    }
}

impl Default for SmpBudget {
    fn default() -> Self {
        SmpBudget::new(Self::DEFAULT_PER_MINUTE)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(seconds: u64) -> Moment {
        Moment::default() + Duration::from_secs(seconds)
    }

    /// Takes as many as there are.
    fn drain(budget: &mut SmpBudget, now: Moment) -> usize {
        (0..10_000).take_while(|_| budget.take(now)).count()
    }

    #[test]
    fn budget_refills_over_a_minute_and_no_further() {
        let mut budget = SmpBudget::new(60);
        assert_eq!((budget.available(at(5)), drain(&mut budget, at(5))), (60, 60));
        for (seconds, expected) in [(5, 0), (6, 1), (6, 0), (16, 10), (76, 60), (1_000, 60)] {
            assert_eq!(budget.available(at(seconds)), expected, "{seconds} s");
            assert_eq!(drain(&mut budget, at(seconds)), expected as usize, "{seconds} s");
        }
    }

    #[test]
    fn no_minute_has_more_than_twice_the_budget() {
        let mut budget = SmpBudget::new(4_000);
        let taken: usize = (100..160).map(|second| drain(&mut budget, at(second))).sum();
        assert!((4_000..8_000).contains(&taken), "{taken}");
    }

    #[test]
    fn budget_of_nothing_has_nothing() {
        let mut budget = SmpBudget::new(0);
        assert_eq!(drain(&mut budget, at(1_000)), 0);
    }

    #[test]
    fn time_that_goes_back_takes_nothing() {
        let mut budget = SmpBudget::new(10);
        assert_eq!(drain(&mut budget, at(100)), 10);
        assert_eq!(drain(&mut budget, at(50)), 0);
    }
}
