//! Which warnings were logged lately: what a discovery or a sweep finds each time is logged once a day.

use std::collections::HashMap;
use std::time::Duration;

use ib_mad::Moment;

/// How long a warning that was logged is not logged again.
const PERIOD: Duration = Duration::from_secs(24 * 3600);

/// So many warnings are logged one by one at a time.
const MOST_AT_ONCE: usize = 8;

/// So many different warnings are remembered: 1 MB. More than that are not logged one by one either.
const MOST_KNOWN: usize = 8192;

/// The warnings of a day.
#[derive(Debug, Default)]
pub(super) struct Said {
    at: HashMap<String, Moment>,
}

/// What is to be logged now.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct News {
    /// One by one.
    pub(super) each: Vec<String>,
    /// And how many more there are.
    pub(super) more: usize,
}

impl Said {
    /// Which of these warnings were not logged within the last day.
    pub(super) fn news(&mut self, warnings: impl IntoIterator<Item = String>, now: Moment) -> News {
        self.at.retain(|_, at| now.since(*at) < PERIOD);
        let mut news = News::default();
        for warning in warnings {
            if self.at.len() >= MOST_KNOWN || self.at.contains_key(&warning) {
                continue;
            }
            self.at.insert(warning.clone(), now);
            if news.each.len() < MOST_AT_ONCE {
                news.each.push(warning);
            } else {
                news.more += 1;
            }
        }
        news
    }

    /// Whether this warning was not logged within the last day.
    pub(super) fn is_news(&mut self, warning: &str, now: Moment) -> bool {
        !self.news([warning.to_owned()], now).each.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(hours: u64) -> Moment {
        Moment::default() + Duration::from_secs(hours * 3600)
    }

    #[test]
    fn each_warning_is_news_once_a_day_and_few_at_a_time() {
        let mut said = Said::default();
        let warnings = |count: usize| (0..count).map(|n| format!("node {n}")).collect::<Vec<_>>();
        let first = said.news(warnings(100), at(0));
        assert_eq!((first.each.len(), first.more), (8, 92));
        assert_eq!(said.news(warnings(100), at(1)), News::default());
        assert_eq!(said.news(warnings(101), at(23)).each, ["node 100"]);
        assert_eq!(said.news(warnings(101), at(24)).each.len(), 8);
        assert!(said.is_news("another", at(24)) && !said.is_news("another", at(24)));
    }
}
