//! Parses and formats times in the local time zone: `2h` (ago), `03:12` (the latest one), or in full.

use std::time::{Duration, SystemTime};

use jiff::civil::{DateTime, Time};
use jiff::tz::TimeZone;
use jiff::{Timestamp, ToSpan, Zoned};

/// How many days back a time of day is searched: no two consecutive days lack it.
const MAX_DAYS: usize = 4;

/// The current time, and the time zone in which times are parsed and formatted.
#[derive(Clone, Debug)]
pub struct LocalClock {
    now: Zoned,
}

impl LocalClock {
    /// The host's time and zone.
    pub fn now() -> Self {
        Self::at(SystemTime::now())
    }

    /// A time in the host's zone; the nearest one that a calendar has, as the clock of a host may be set to any year.
    pub fn at(time: SystemTime) -> Self {
        LocalClock { now: nearest(time).to_zoned(TimeZone::system()) }
    }

    /// The time that is this long ago.
    pub fn ago(&self, age: Duration) -> SystemTime {
        self.time().checked_sub(age).unwrap_or(SystemTime::UNIX_EPOCH)
    }

    /// The current time.
    pub fn time(&self) -> SystemTime {
        self.now.timestamp().into()
    }

    /// The same, or the given time if that is later: a simulated clock may be ahead of the host's.
    #[must_use]
    pub fn not_before(self, time: SystemTime) -> Self {
        let later = Timestamp::try_from(time).ok().filter(|time| *time > self.now.timestamp());
        later.map_or_else(|| self.clone(), |time| LocalClock { now: time.to_zoned(self.zone_of()) })
    }

    /// The zone's name and offset, for readers.
    pub fn zone(&self) -> String {
        let offset = self.now.strftime("%:z");
        match self.now.time_zone().iana_name() {
            Some(name) => format!("{name} ({offset})"),
            None => offset.to_string(),
        }
    }

    /// Formats a time in this zone, to the second.
    pub fn format(&self, time: SystemTime) -> String {
        nearest(time).to_zoned(self.zone_of()).strftime("%Y-%m-%d %H:%M:%S").to_string()
    }

    /// Formats the time of day in this zone, to the second.
    pub fn format_time(&self, time: SystemTime) -> String {
        self.format(time).split_off("2026-11-21 ".len())
    }

    /// The latest moment with this time of day. At changes between summer and winter time it is missing on one
    /// day, and occurs twice on another.
    fn latest(&self, time: Time) -> Option<Zoned> {
        let days = self.now.date().series(-1.day()).take(MAX_DAYS);
        let moments = days.flat_map(|day| {
            let local = self.zone_of().into_ambiguous_zoned(day.to_datetime(time));
            [local.clone().later(), local.earlier()].map(Result::ok)
        });
        moments.flatten().find(|moment| *moment <= self.now && moment.time() == time)
    }

    fn zone_of(&self) -> TimeZone {
        self.now.time_zone().clone()
    }

    /// Parses `2h` (ago), `03:12` (the latest one), `2026-11-21 03:12`, and RFC 3339, which names its zone.
    pub fn parse(&self, text: &str) -> Result<SystemTime, String> {
        if let Ok(age) = humantime::parse_duration(text) {
            return Ok(self.ago(age));
        }
        if let Ok(stamp) = text.parse::<Timestamp>() {
            return Ok(stamp.into());
        }
        let zoned = if text.contains('-') {
            text.parse::<DateTime>().ok().and_then(|local| local.to_zoned(self.zone_of()).ok())
        } else {
            text.parse::<Time>().ok().and_then(|time| self.latest(time))
        };
        zoned.map(|zoned| zoned.timestamp().into()).ok_or_else(|| {
            format!(
                "{text:?} is not a time: use 2h (ago), 03:12 or \"2026-11-21 03:12\" (local time, {}), or \
                 2026-11-21T03:12:00Z",
                self.zone()
            )
        })
    }
}

/// The nearest time up to the year 9999.
fn nearest(time: SystemTime) -> Timestamp {
    let end = if time < SystemTime::UNIX_EPOCH { Timestamp::MIN } else { Timestamp::MAX };
    Timestamp::try_from(time).unwrap_or(end)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn clock() -> LocalClock {
        LocalClock { now: "2026-11-21T02:30:00+01:00[+01:00]".parse().unwrap() }
    }

    #[test]
    fn durations_times_and_dates_are_parsed() {
        for (text, means) in [
            ("2h", "2026-11-20T23:30:00Z"),
            ("90s", "2026-11-21T01:28:30Z"),
            ("02:12", "2026-11-21T01:12:00Z"),
            // Not yet today: yesterday's.
            ("03:12", "2026-11-20T02:12:00Z"),
            ("03:12:30", "2026-11-20T02:12:30Z"),
            ("2026-11-01", "2026-10-31T23:00:00Z"),
            ("2026-11-01 03:12", "2026-11-01T02:12:00Z"),
            ("2026-11-01T03:12", "2026-11-01T02:12:00Z"),
            ("2026-11-01T03:12:00Z", "2026-11-01T03:12:00Z"),
            ("2026-11-01T03:12:00-05:00", "2026-11-01T08:12:00Z"),
        ] {
            let wanted: SystemTime = means.parse::<Timestamp>().unwrap().into();
            assert_eq!(clock().parse(text), Ok(wanted), "{text}");
        }
        for text in ["", "yesterday", "25:00", "2026-13-01 00:00"] {
            assert!(clock().parse(text).unwrap_err().contains("+01:00"), "{text}");
        }
    }

    /// When summer time ends, each time of an hour occurs twice; when it begins, never.
    #[test]
    fn time_of_day_is_the_latest_across_clock_changes() {
        for (now, text, means) in [
            ("2026-10-25T02:50:00+01:00[Europe/Berlin]", "02:30", "2026-10-25T01:30:00Z"),
            ("2026-10-25T02:10:00+01:00[Europe/Berlin]", "02:30", "2026-10-25T00:30:00Z"),
            ("2026-10-25T02:10:00+02:00[Europe/Berlin]", "02:30", "2026-10-24T00:30:00Z"),
            ("2026-03-29T03:10:00+02:00[Europe/Berlin]", "02:30", "2026-03-28T01:30:00Z"),
            ("2026-03-29T03:40:00+02:00[Europe/Berlin]", "02:30", "2026-03-28T01:30:00Z"),
            ("2026-03-30T01:00:00+02:00[Europe/Berlin]", "02:30", "2026-03-28T01:30:00Z"),
        ] {
            let clock = LocalClock { now: now.parse().unwrap() };
            let wanted: SystemTime = means.parse::<Timestamp>().unwrap().into();
            assert_eq!(clock.parse(text), Ok(wanted), "{text} at {now}");
        }
    }

    #[test]
    fn times_are_formatted_in_the_local_zone() {
        let time = clock().parse("2026-11-01T03:12:00Z").unwrap();
        assert_eq!(clock().format(time), "2026-11-01 04:12:00");
        assert_eq!(clock().zone(), "+01:00");
    }

    #[test]
    fn clock_beyond_the_year_9999_is_shown_as_its_end() {
        let far = SystemTime::UNIX_EPOCH + Duration::from_secs(1 << 40);
        let clock = LocalClock::at(far);
        assert!(clock.format(far).starts_with("9999-12-3"), "{}", clock.format(far));
        assert!(clock.format(clock.time()).starts_with("9999-12-3"));
        assert_eq!(clock.format_time(far).len(), "23:59:59".len());
        assert!(clock.ago(Duration::from_secs(60)) < clock.time());
        assert!(clock.parse("03:12").is_ok() && !clock.zone().is_empty());
        let before = SystemTime::UNIX_EPOCH.checked_sub(Duration::from_secs(1 << 40)).unwrap();
        assert!(LocalClock::at(before).time() < SystemTime::UNIX_EPOCH);
    }
}
