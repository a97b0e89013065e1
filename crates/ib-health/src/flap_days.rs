//! On how many of the last days a link flapped. A link that goes down for some seconds each day has no other sign of it
//! for the rest of the day, and still ends one large job a day.

use std::time::{Duration, SystemTime};

use ib_mad::Moment;
use ib_mad::moment::Anchor;

use super::flap_limits::FlapDayLimit;

/// Flaps within this time after the first of a day are of that day. Calendar days would make two of a burst around
/// midnight. Three days take 24 hours at least, as three calendar days do; and 24 hours would miss every other day of a
/// link that flaps once a day, but not always at the same hour.
const DAY: i64 = 12 * 3600;

/// A second of the monotonic clock; negative before its start: of an earlier run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Second(i64);

impl From<Moment> for Second {
    fn from(moment: Moment) -> Self {
        Second(moment.whole_seconds().into())
    }
}

impl Second {
    /// The second of a time of day.
    fn of(wall: SystemTime, anchor: &Anchor) -> Self {
        let Second(now) = anchor.moment.into();
        let seconds = |time: Duration| i64::try_from(time.as_secs()).unwrap_or(i64::MAX);
        Second(match wall.duration_since(anchor.wall) {
            Ok(later) => now.saturating_add(seconds(later)),
            Err(earlier) => now.saturating_sub(seconds(earlier.duration())),
        })
    }
}

/// A day with flaps: when the first and the last of them ended.
#[derive(Clone, Copy, Debug)]
struct FlapDay {
    first: Second,
    last: Second,
}

/// The latest days on which a link flapped.
#[derive(Clone, Debug, Default)]
pub struct FlapDays {
    /// The earliest first. Few links have any.
    days: Vec<FlapDay>,
}

/// The days with flaps within some time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RepeatedFlaps {
    /// How many.
    pub days: u8,
    /// In this time.
    pub within: Duration,
    /// How long ago the last of them was.
    pub last: Duration,
}

impl FlapDays {
    /// Adds flaps that an earlier run recorded.
    pub fn restore(&mut self, flaps: &[SystemTime], anchor: &Anchor) {
        let mut flaps: Vec<Second> = flaps.iter().map(|at| Second::of(*at, anchor)).collect();
        flaps.sort_unstable();
        for at in flaps {
            self.push(at);
        }
    }

    /// Adds a flap, which ended after those that are known.
    pub fn add(&mut self, ended: Moment) {
        self.push(ended.into());
    }

    fn push(&mut self, ended: Second) {
        if let Some(day) = self.days.last_mut()
            && ended.0.saturating_sub(day.first.0) < DAY
        {
            day.last = day.last.max(ended);
            return;
        }
        if self.days.len() >= usize::from(FlapDayLimit::MOST) {
            self.days.remove(0);
        }
        self.days.push(FlapDay { first: ended, last: ended });
    }

    /// The flaps until now were of a cable that was replaced.
    pub fn clear(&mut self) {
        self.days = Vec::new();
    }

    /// The days with flaps, if there were as many as the limit says.
    pub fn repeated(&self, limit: FlapDayLimit, now: Moment) -> Option<RepeatedFlaps> {
        let Second(now) = now.into();
        let ago = |at: Second| {
            Duration::from_secs(u64::try_from(now.saturating_sub(at.0)).unwrap_or_default())
        };
        let recent = self.days.iter().filter(|day| ago(day.last) <= limit.within).count();
        let days = u8::try_from(recent).unwrap_or(u8::MAX);
        let last = self.days.last().filter(|_| days >= limit.days)?;
        Some(RepeatedFlaps { days, within: limit.within, last: ago(last.last) })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HOUR: u64 = 3600;

    fn hour(hour: u64) -> Moment {
        Moment::default() + Duration::from_secs(hour * HOUR)
    }

    /// The days with flaps 100 hours after the last of these hours.
    fn days(hours: &[u64]) -> Option<u8> {
        let mut known = FlapDays::default();
        for at in hours {
            known.add(hour(*at));
        }
        let now = hour(hours.last().unwrap_or(&0) + 100);
        known.repeated(FlapDayLimit::default(), now).map(|found| found.days)
    }

    #[test]
    fn three_days_within_fourteen() {
        assert_eq!(days(&[9, 33, 57]), Some(3));
        assert_eq!(days(&[9, 33]), None);
        // Each day an hour earlier than on the day before.
        assert_eq!(days(&[30, 53, 76, 99]), Some(4));
        // Two weeks before the first one there was another; 100 hours later it does not count.
        assert_eq!(days(&[0, 300, 330]), None);
        assert_eq!(days(&[0, 120, 230]), Some(3));
    }

    #[test]
    fn burst_is_one_day() {
        // Around midnight, each hour of a night, and on two days in a row.
        assert_eq!(days(&[23, 23, 24, 24, 25]), None);
        assert_eq!(days(&[20, 21, 22, 23, 24, 25, 26, 27, 28, 29, 30, 31]), None);
        assert_eq!(days(&[22, 23, 24, 46, 47, 48]), None);
        // What goes on for more than 24 hours is not of two days.
        let hourly: Vec<u64> = (0..26).collect();
        assert_eq!(days(&hourly), Some(3));
    }

    #[test]
    fn recorded_flaps_are_before_the_start_of_the_clock() {
        let wall = SystemTime::UNIX_EPOCH + Duration::from_secs(1_000_000 * HOUR);
        let anchor = Anchor { moment: hour(1), wall };
        let mut known = FlapDays::default();
        let recorded = [30, 80, 55].map(|hours: u32| wall - Duration::from_secs(HOUR) * hours);
        known.restore(&recorded, &anchor);
        let limit = FlapDayLimit::default();
        let found = known.repeated(limit, hour(1));
        let last = Duration::from_secs(30 * HOUR);
        assert_eq!(found, Some(RepeatedFlaps { days: 3, within: limit.within, last }));
        known.add(hour(2));
        assert_eq!(known.repeated(limit, hour(2)).map(|found| found.days), Some(4));
        known.clear();
        assert_eq!(known.repeated(limit, hour(2)), None);
        // A clock that was wrong.
        known.restore(&[SystemTime::UNIX_EPOCH, wall + Duration::from_secs(u64::MAX / 4)], &anchor);
        assert_eq!(known.repeated(limit, hour(2)), None);
    }

    #[test]
    fn kept_days_are_bounded() {
        let mut known = FlapDays::default();
        (0..1000).for_each(|day| known.add(hour(day * 24)));
        let limit = FlapDayLimit { days: 1, within: Duration::from_secs(u64::MAX / 2) };
        let found = known.repeated(limit, hour(24_000)).map(|found| found.days);
        assert_eq!(found, Some(FlapDayLimit::MOST));
    }
}
