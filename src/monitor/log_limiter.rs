//! Limits repeated warnings: a problem that each discovery or sweep finds is logged once a day.

use std::collections::HashMap;
use std::time::Duration;

use ib_mad::Moment;

/// The time in which a warning is not logged again.
const PERIOD: Duration = Duration::from_secs(24 * 3600);

/// How many warnings are logged one by one at a time.
const MAX_AT_ONCE: usize = 8;

/// How many different warnings are kept: 1 MB. Further ones are not logged.
const MAX_KNOWN: usize = 8192;

/// The warnings of the last day, and when each was logged.
#[derive(Debug, Default)]
pub(super) struct LogLimiter {
    logged: HashMap<String, Moment>,
}

/// The warnings to log now.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct NewWarnings {
    /// Logged one by one.
    pub(super) each: Vec<String>,
    /// How many more there are.
    pub(super) more: usize,
}

impl LogLimiter {
    /// The warnings that were not logged within the last day.
    pub(super) fn filter(
        &mut self,
        warnings: impl IntoIterator<Item = String>,
        now: Moment,
    ) -> NewWarnings {
        self.logged.retain(|_, at| now.since(*at) < PERIOD);
        let mut new = NewWarnings::default();
        for warning in warnings {
            if self.logged.len() >= MAX_KNOWN || self.logged.contains_key(&warning) {
                continue;
            }
            self.logged.insert(warning.clone(), now);
            if new.each.len() < MAX_AT_ONCE {
                new.each.push(warning);
            } else {
                new.more += 1;
            }
        }
        new
    }

    /// Whether this warning was not logged within the last day.
    pub(super) fn is_new(&mut self, warning: &str, now: Moment) -> bool {
        !self.filter([warning.to_owned()], now).each.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(hours: u64) -> Moment {
        Moment::default() + Duration::from_secs(hours * 3600)
    }

    #[test]
    fn warning_is_new_once_a_day_and_few_at_a_time() {
        let mut limiter = LogLimiter::default();
        let warnings = |count: usize| (0..count).map(|n| format!("node {n}")).collect::<Vec<_>>();
        let first = limiter.filter(warnings(100), at(0));
        assert_eq!((first.each.len(), first.more), (8, 92));
        assert_eq!(limiter.filter(warnings(100), at(1)), NewWarnings::default());
        assert_eq!(limiter.filter(warnings(101), at(23)).each, ["node 100"]);
        assert_eq!(limiter.filter(warnings(101), at(24)).each.len(), 8);
        assert!(limiter.is_new("another", at(24)) && !limiter.is_new("another", at(24)));
    }
}
