//! Whether the time of day was set, and since when it can be trusted.

use std::time::{Duration, SystemTime};

use serde_json::json;

use crate::event::{EventKind, NewEvent};
use ib_fabric::Snapshot;
use ib_mad::Moment;
use ib_mad::moment::Anchor;

/// How far the two clocks may differ between two sweeps: NTP slews by less.
const MAX_DRIFT: Duration = Duration::from_secs(2);

/// How long the time of day must have been continuous before anything is dropped for its age: a host that
/// boots with a wrong clock is corrected by NTP within that time.
const TRUSTED_AFTER: Duration = Duration::from_secs(3600);

/// Compares the time of day with the monotonic clock over a fabric's sweeps.
#[derive(Debug, Default)]
pub(super) struct ClockMonitor {
    last: Option<Anchor>,
    /// Since when the time of day has been continuous.
    continuous_since: Moment,
}

impl ClockMonitor {
    /// Adds a sweep; returns an event if the time of day was set since the sweep before.
    pub(super) fn update(&mut self, fabric: &str, sweep: &Snapshot) -> Option<NewEvent> {
        let now = sweep.anchor;
        let Some(last) = self.last.replace(now) else {
            self.continuous_since = now.moment;
            return None;
        };
        let expected = last.wall_of(now.moment);
        let (direction, by) = match now.wall.duration_since(expected) {
            Ok(by) => ("forward", by),
            Err(error) => ("back", error.duration()),
        };
        if by <= MAX_DRIFT {
            return None;
        }
        self.continuous_since = now.moment;
        let seconds = by.as_secs_f64() * if direction == "back" { -1.0 } else { 1.0 };
        let by = humantime::format_duration(Duration::from_secs(by.as_secs()));
        let (text, at) = (format!("clock set {direction} by {by}"), now.wall_of(sweep.began));
        let event = NewEvent::of_fabric(EventKind::ClockJump, fabric, text, at);
        Some(NewEvent { detail: json!({ "seconds": seconds }), ..event })
    }

    /// The time of day, if it has been continuous for [`TRUSTED_AFTER`].
    pub(super) fn trusted_time(&self) -> Option<SystemTime> {
        let last = self.last?;
        (last.moment.since(self.continuous_since) >= TRUSTED_AFTER).then_some(last.wall)
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
    fn set_clock_is_an_event_and_drift_is_not() {
        let mut clock = ClockMonitor::default();
        let wall = |seconds: f64| START + Duration::from_secs_f64(1e9 + seconds);
        let mut update = |moment, seconds| clock.update("fab", &at(moment, wall(seconds)));
        assert_eq!(update(10, 0.0), None, "the first sweep is the reference");
        assert_eq!(update(25, 15.0), None);
        assert_eq!(update(40, 31.9), None, "slewed");
        let back = update(55, 31.9 + 15.0 - 3600.0).unwrap();
        assert_eq!((back.kind, &*back.text), (EventKind::ClockJump, "clock set back by 1h"));
        assert!((back.detail["seconds"].as_f64().unwrap() + 3600.0).abs() < 1e-6);
        assert_eq!(back.at, wall(31.9 + 15.0 - 3600.0));
        let forward = update(70, 31.9 + 30.0 - 3597.9).unwrap();
        assert_eq!(forward.text, "clock set forward by 2s");
        assert_eq!(update(85, 31.9 + 45.0 - 3597.9), None, "once");
    }

    #[test]
    fn time_is_trusted_after_a_continuous_hour() {
        let mut clock = ClockMonitor::default();
        assert_eq!(clock.trusted_time(), None);
        let wall = |seconds: u64| START + Duration::from_secs(seconds);
        let mut trusted_time = |moment, seconds| {
            clock.update("fab", &at(moment, wall(seconds)));
            clock.trusted_time()
        };
        assert_eq!(trusted_time(0, 1_000), None, "the clock may be wrong from the start");
        assert_eq!(trusted_time(3_599, 4_599), None);
        assert_eq!(trusted_time(3_600, 4_600), Some(wall(4_600)));
        assert_eq!(trusted_time(3_615, 1_000_000_000), None, "years ahead");
        assert_eq!(trusted_time(3_630, 4_630), None, "and back");
        assert_eq!(trusted_time(7_230, 8_230), Some(wall(8_230)));
    }
}
