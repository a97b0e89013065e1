//! How often a healthy link flaps on so many days that it is degraded, and how soon a link that flaps again and again
//! is found. Only the rule is simulated, not the fabric: that a flap is counted is the subject of the other trials.

use std::time::Duration;

use ib_health::flap_days::FlapDays;
use ib_health::flap_limits::FlapDayLimit;
use ib_mad::Moment;
use ib_sim::rng::Rng;

use crate::cell::{between, exponential};
use crate::rates::{Event, RATES};
use crate::time::DAY;

/// A link is watched for so long: moments have 584 years.
const LIFE: f64 = 50.0 * 365.0 * DAY;

/// The flaps that are simulated for each rate.
pub const FLAPS: u64 = 3_000_000;

/// The links that flap regularly that are simulated for each habit.
pub const LINKS: u64 = 20_000;

/// A link that flaps again and again is not watched for longer.
const WATCHED: f64 = 60.0 * DAY;

/// Flaps of a healthy link, in days.
pub fn healthy() -> [(&'static str, f64); 4] {
    let per_day = |events: &[Event]| {
        let rows = RATES.iter().filter(|row| events.contains(&row.event));
        rows.map(|row| row.per_day).sum::<f64>()
    };
    let unannounced = per_day(&[Event::SingleFlap, Event::Reseat, Event::LongReseat]);
    [
        ("single flaps", per_day(&[Event::SingleFlap])),
        ("single flaps and reseating that is not in the maintenance file", unannounced),
        ("three times as many", 3.0 * unannounced),
        ("ten times as many", 10.0 * unannounced),
    ]
}

/// When a link flaps that does so again and again.
#[derive(Clone, Copy, Debug)]
pub enum Habit {
    /// Once in so many days, at about the same hour: an hour earlier or later.
    SameHour(f64),
    /// Once in so many days, at any hour.
    AnyHour(f64),
    /// At random, so often in a day on average.
    Random(f64),
}

/// The habits of the table.
pub const HABITS: [(Habit, &str); 6] = [
    (Habit::SameHour(1.0), "once a day, at about the same hour"),
    (Habit::AnyHour(1.0), "once a day, at any hour"),
    (Habit::AnyHour(3.0), "every third day, at any hour"),
    (Habit::Random(1.0), "at random, 7 times a week on average"),
    (Habit::Random(2.0 / 7.0), "at random, twice a week on average"),
    (Habit::Random(1.0 / 7.0), "at random, once a week on average"),
];

impl Habit {
    /// The first flaps, in seconds.
    fn flaps(self, rng: &mut Rng) -> Vec<f64> {
        let every = |days: f64, hours: f64, rng: &mut Rng| {
            let times = (0..).map(|nth| f64::from(nth) * days * DAY).take_while(|at| *at < WATCHED);
            times.map(|at| at + between(rng, 0.0, hours * 3600.0)).collect()
        };
        match self {
            Habit::SameHour(days) => every(days, 2.0, rng),
            Habit::AnyHour(days) => every(days, 24.0, rng),
            Habit::Random(per_day) => {
                let next = |at: &f64| Some(at + exponential(rng) / per_day * DAY);
                std::iter::successors(Some(0.0), next).take_while(|at| *at < WATCHED).collect()
            }
        }
    }
}

fn moment(second: f64) -> Moment {
    Moment::default() + Duration::from_secs_f64(second.max(0.0))
}

/// How often a healthy link gets degraded, per year, if it flaps so often in a day: from so many flaps.
pub fn false_alarms(per_day: f64, flaps: u64, rng: &mut Rng) -> f64 {
    let limit = FlapDayLimit::default();
    let (mut days, mut now, mut seconds, mut alarms) = (FlapDays::default(), 0.0, 0.0, 0_u64);
    for _ in 0..flaps {
        let wait = exponential(rng) / per_day * DAY;
        now += wait;
        seconds += wait;
        if now > LIFE {
            // Another link.
            (days, now) = (FlapDays::default(), 0.0);
        }
        let was = days.repeated(limit, moment(now)).is_some();
        days.add(moment(now));
        alarms += u64::from(!was && days.repeated(limit, moment(now)).is_some());
    }
    alarms as f64 / (seconds / DAY / 365.0)
}

/// The days from the first flap until a link is degraded, of each link; `None` if it is not.
pub fn detection(habit: Habit, links: u64, rng: &mut Rng) -> Vec<Option<f64>> {
    let limit = FlapDayLimit::default();
    let found = |_| {
        let mut days = FlapDays::default();
        let flaps = habit.flaps(rng);
        let first = *flaps.first()?;
        let found = flaps.into_iter().find(|at| {
            days.add(moment(*at));
            days.repeated(limit, moment(*at)).is_some()
        });
        found.map(|at| (at - first) / DAY)
    };
    (0..links).map(found).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn healthy_links_do_not_get_there() {
        let mut rng = Rng::new(3);
        let [single, _, _, many] = healthy().map(|(_, per_day)| per_day);
        // Three flaps within 14 days by chance: the rate times the probability of two more before them.
        let expected = |per_day: f64| per_day * 365.0 * (per_day * 14.0).powi(2) / 2.0;
        assert!(expected(single) < 1e-6, "{}", expected(single));
        let found = false_alarms(many, 300_000, &mut rng);
        assert!((0.5..1.1).contains(&(found / expected(many))), "{found}");
    }

    #[test]
    fn links_that_flap_each_day_are_found_within_days() {
        let mut rng = Rng::new(3);
        for (habit, name) in HABITS {
            let found = detection(habit, 500, &mut rng);
            let within =
                |days: f64| found.iter().flatten().filter(|at| **at <= days).count() as f64 / 500.0;
            match habit {
                Habit::SameHour(_) => assert!(within(2.1) > 0.999, "{name}"),
                Habit::AnyHour(days) => assert!(within(4.0 + 2.0 * days) > 0.999, "{name}"),
                Habit::Random(per_day) if per_day > 0.2 => assert!(within(30.0) > 0.9, "{name}"),
                Habit::Random(_) => assert!(within(30.0) > 0.5, "{name}"),
            }
        }
    }
}
