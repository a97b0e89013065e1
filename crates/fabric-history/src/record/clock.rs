//! Whether the wall's clock can be believed: from sweep to sweep it has to go on as far as the clock
//! that nobody sets.

use std::time::{Duration, SystemTime};

use serde_json::json;

use crate::event::{About, Event, Kind};
use ib_fabric::Snapshot;
use ib_mad::Moment;
use ib_mad::moment::Anchor;

/// How far the clocks may move apart between two sweeps: NTP slews by less.
const MOST_APART: Duration = Duration::from_secs(2);

/// How long the time of day must have held before anything is too old by it: a host whose clock is
/// wrong as it boots has NTP to put it right by then.
const HELD: Duration = Duration::from_secs(3600);

/// The clocks of a fabric's sweeps.
#[derive(Debug, Default)]
pub(super) struct Clock {
    last: Option<Anchor>,
    /// Since when the time of day has held.
    since: Moment,
}

impl Clock {
    /// Takes in a sweep, and tells if the wall's clock was set since the one before.
    pub(super) fn follow(&mut self, fabric: &str, sweep: &Snapshot) -> Option<Event> {
        let now = sweep.anchor;
        let Some(last) = self.last.replace(now) else {
            self.since = now.moment;
            return None;
        };
        let wanted = last.wall_of(now.moment);
        let (way, by) = match now.wall.duration_since(wanted) {
            Ok(by) => ("forward", by),
            Err(error) => ("back", error.duration()),
        };
        if by <= MOST_APART {
            return None;
        }
        self.since = now.moment;
        let seconds = by.as_secs_f64() * if way == "back" { -1.0 } else { 1.0 };
        let told = humantime::format_duration(Duration::from_secs(by.as_secs()));
        Some(Event {
            at: now.wall_of(sweep.began),
            kind: Kind::ClockJump,
            about: About::All,
            place: fabric.into(),
            text: format!("the clock was set {way} by {told}"),
            detail: json!({ "seconds": seconds }),
        })
    }

    /// The time by which things are too old, where it has held for long enough.
    pub(super) fn believed(&self) -> Option<SystemTime> {
        let last = self.last?;
        (last.moment.since(self.since) >= HELD).then_some(last.wall)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use ib_fabric::Fabric;

    const START: SystemTime = SystemTime::UNIX_EPOCH;

    fn at(seconds: u64, wall: SystemTime) -> Snapshot {
        let moment = Moment::default() + Duration::from_secs(seconds);
        Snapshot::blank(Arc::new(Fabric::default()), Anchor { moment, wall })
    }

    #[test]
    fn a_clock_that_is_set_is_told_and_one_that_drifts_is_not() {
        let mut clock = Clock::default();
        let wall = |seconds: f64| START + Duration::from_secs_f64(1e9 + seconds);
        let mut follow = |moment, seconds| clock.follow("fab", &at(moment, wall(seconds)));
        assert_eq!(follow(10, 0.0), None, "the first is what others are told against");
        assert_eq!(follow(25, 15.0), None);
        assert_eq!(follow(40, 31.9), None, "slewed");
        let back = follow(55, 31.9 + 15.0 - 3600.0).unwrap();
        assert_eq!((back.kind, &*back.text), (Kind::ClockJump, "the clock was set back by 1h"));
        assert!((back.detail["seconds"].as_f64().unwrap() + 3600.0).abs() < 1e-6);
        assert_eq!(back.at, wall(31.9 + 15.0 - 3600.0));
        let forward = follow(70, 31.9 + 30.0 - 3597.9).unwrap();
        assert_eq!(forward.text, "the clock was set forward by 2s");
        assert_eq!(follow(85, 31.9 + 45.0 - 3597.9), None, "once");
    }

    #[test]
    fn a_time_is_believed_when_it_has_held_for_an_hour() {
        let mut clock = Clock::default();
        assert_eq!(clock.believed(), None);
        let wall = |seconds: u64| START + Duration::from_secs(seconds);
        let mut believed = |moment, seconds| {
            clock.follow("fab", &at(moment, wall(seconds)));
            clock.believed()
        };
        assert_eq!(believed(0, 1_000), None, "the clock may be wrong from the start");
        assert_eq!(believed(3_599, 4_599), None);
        assert_eq!(believed(3_600, 4_600), Some(wall(4_600)));
        assert_eq!(believed(3_615, 1_000_000_000), None, "years ahead");
        assert_eq!(believed(3_630, 4_630), None, "and back");
        assert_eq!(believed(7_230, 8_230), Some(wall(8_230)));
    }
}
