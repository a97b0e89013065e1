//! Times as people say them: `2h` ago, `03:12` today, or in full.

use std::time::{Duration, SystemTime};

use jiff::civil::{DateTime, Time};
use jiff::tz::TimeZone;
use jiff::{Timestamp, ToSpan, Zoned};

/// How many days back a time of day is looked for: no two days in a row lack it.
const MOST_DAYS: usize = 4;

/// Now, and the zone in which times of day are meant and told.
#[derive(Clone, Debug)]
pub struct Clock {
    now: Zoned,
}

impl Clock {
    /// This host's own.
    pub fn now() -> Self {
        Clock { now: Zoned::now() }
    }

    /// So long ago.
    pub fn ago(&self, rest: Duration) -> SystemTime {
        self.time().checked_sub(rest).unwrap_or(SystemTime::UNIX_EPOCH)
    }

    /// What it says.
    pub fn time(&self) -> SystemTime {
        self.now.timestamp().into()
    }

    /// The same, not behind a time: a simulated clock may be ahead of ours.
    #[must_use]
    pub fn not_before(self, time: SystemTime) -> Self {
        let later = Timestamp::try_from(time).ok().filter(|time| *time > self.now.timestamp());
        later.map_or_else(|| self.clone(), |time| Clock { now: time.to_zoned(self.zone_of()) })
    }

    /// The zone, as a reader has to know it.
    pub fn zone(&self) -> String {
        let offset = self.now.strftime("%:z");
        match self.now.time_zone().iana_name() {
            Some(name) => format!("{name} ({offset})"),
            None => offset.to_string(),
        }
    }

    /// A time in this zone, to the second.
    pub fn tell(&self, time: SystemTime) -> String {
        let stamp = Timestamp::try_from(time).unwrap_or(Timestamp::MAX);
        stamp.to_zoned(self.zone_of()).strftime("%Y-%m-%d %H:%M:%S").to_string()
    }

    /// The time of day in this zone, to the second.
    pub fn tell_time(&self, time: SystemTime) -> String {
        self.tell(time).split_off("2026-11-21 ".len())
    }

    /// When it was last so late. Where clocks are changed there are days on which that is never so, and
    /// days on which it is so twice.
    fn latest(&self, time: Time) -> Option<Zoned> {
        let days = self.now.date().series(-1.day()).take(MOST_DAYS);
        let moments = days.flat_map(|day| {
            let local = self.zone_of().into_ambiguous_zoned(day.to_datetime(time));
            [local.clone().later(), local.earlier()].map(Result::ok)
        });
        moments.flatten().find(|moment| *moment <= self.now && moment.time() == time)
    }

    fn zone_of(&self) -> TimeZone {
        self.now.time_zone().clone()
    }

    /// Reads `2h` (so long ago), `03:12` (the latest one), `2026-11-21 03:12`, and RFC 3339, which
    /// names its zone.
    pub fn read(&self, text: &str) -> Result<SystemTime, String> {
        if let Ok(rest) = humantime::parse_duration(text) {
            return Ok(self.ago(rest));
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
                "{text:?} is no time such as 2h, 03:12, \"2026-11-21 03:12\" (in {}) or \
                 2026-11-21T03:12:00Z",
                self.zone()
            )
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn clock() -> Clock {
        Clock { now: "2026-11-21T02:30:00+01:00[+01:00]".parse().unwrap() }
    }

    #[test]
    fn times_are_read_as_people_say_them() {
        for (text, means) in [
            ("2h", "2026-11-20T23:30:00Z"),
            ("90s", "2026-11-21T01:28:30Z"),
            ("02:12", "2026-11-21T01:12:00Z"),
            // Still to come: yesterday's.
            ("03:12", "2026-11-20T02:12:00Z"),
            ("03:12:30", "2026-11-20T02:12:30Z"),
            ("2026-11-01", "2026-10-31T23:00:00Z"),
            ("2026-11-01 03:12", "2026-11-01T02:12:00Z"),
            ("2026-11-01T03:12", "2026-11-01T02:12:00Z"),
            ("2026-11-01T03:12:00Z", "2026-11-01T03:12:00Z"),
            ("2026-11-01T03:12:00-05:00", "2026-11-01T08:12:00Z"),
        ] {
            let wanted: SystemTime = means.parse::<Timestamp>().unwrap().into();
            assert_eq!(clock().read(text), Ok(wanted), "{text}");
        }
        for text in ["", "yesterday", "25:00", "2026-13-01 00:00"] {
            assert!(clock().read(text).unwrap_err().contains("+01:00"), "{text}");
        }
    }

    /// Where clocks go back an hour there are two of each time of that hour; where they go forward, none.
    #[test]
    fn times_of_day_are_the_latest_also_where_clocks_are_changed() {
        for (now, text, means) in [
            ("2026-10-25T02:50:00+01:00[Europe/Berlin]", "02:30", "2026-10-25T01:30:00Z"),
            ("2026-10-25T02:10:00+01:00[Europe/Berlin]", "02:30", "2026-10-25T00:30:00Z"),
            ("2026-10-25T02:10:00+02:00[Europe/Berlin]", "02:30", "2026-10-24T00:30:00Z"),
            ("2026-03-29T03:10:00+02:00[Europe/Berlin]", "02:30", "2026-03-28T01:30:00Z"),
            ("2026-03-29T03:40:00+02:00[Europe/Berlin]", "02:30", "2026-03-28T01:30:00Z"),
            ("2026-03-30T01:00:00+02:00[Europe/Berlin]", "02:30", "2026-03-28T01:30:00Z"),
        ] {
            let clock = Clock { now: now.parse().unwrap() };
            let wanted: SystemTime = means.parse::<Timestamp>().unwrap().into();
            assert_eq!(clock.read(text), Ok(wanted), "{text} at {now}");
        }
    }

    #[test]
    fn times_are_told_in_the_zone_that_is_said() {
        let time = clock().read("2026-11-01T03:12:00Z").unwrap();
        assert_eq!(clock().tell(time), "2026-11-01 04:12:00");
        assert_eq!(clock().zone(), "+01:00");
    }
}
