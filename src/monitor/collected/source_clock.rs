//! The clock of a source of data: moments are as far apart as the times of the data.
//!
//! Rates are growth by time, and both are of the source. Its clock may be wrong against ours, and may be set; then what
//! passed in between is taken from our clock.

use std::time::{Duration, SystemTime};

use ib_mad::Moment;
use ib_mad::moment::Anchor;

/// How much longer than by our clock may pass between two samples by that of the source: a sample of UFM waits for up to
/// one interval until it is polled, and this is twice the usual one.
const MOST_AHEAD: Duration = Duration::from_secs(600);

/// How far a clock may be ahead before it is reported. A lead that is smaller by more than this has another reason than
/// the time of the poll: one of the clocks was set.
const TOLERANCE: Duration = Duration::from_secs(60);

#[derive(Clone, Copy, Debug)]
struct Latest {
    taken: SystemTime,
    at: Moment,
    /// By our clock.
    received: Moment,
    /// Its age then, if it was the first data or one of several that were found in one poll; otherwise 0. It is not part
    /// of `received`, because a [`Moment`] cannot be before the start of the exporter.
    age: Duration,
}

/// When data was taken.
#[derive(Clone, Copy, Debug)]
pub(super) struct Placed {
    /// The moment and the time of day.
    pub(super) anchor: Anchor,
    /// What passed at the source since the data before, if its clock was not set meanwhile.
    pub(super) passed: Option<Duration>,
}

/// See the module.
#[derive(Debug, Default)]
pub(super) struct SourceClock {
    latest: Option<Latest>,
    /// How far the clock of the source is ahead of ours.
    lead: Duration,
}

impl SourceClock {
    /// Places the data of one poll, the oldest first.
    pub(super) fn place(&mut self, times: &[SystemTime], now: Anchor) -> Vec<Placed> {
        let Some(newest) = times.last() else { return Vec::new() };
        let was_waited_for = self.latest.is_some() && times.len() == 1;
        let mut was_set = false;
        let mut placed = Vec::new();
        for (nth, taken) in times.iter().copied().enumerate() {
            let (at, passed) = match self.latest {
                // Not 0: rows of it may be older, and some periods look back.
                None => (
                    Moment::default()
                        + taken.duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default(),
                    None,
                ),
                Some(latest) => {
                    let own = now.moment.since(latest.received).saturating_add(latest.age);
                    let most = own.saturating_mul(2).saturating_add(MOST_AHEAD);
                    match taken.duration_since(latest.taken) {
                        // Our clock says nothing of what passed between two that were found at once.
                        Ok(passed) if nth > 0 || passed <= most => {
                            (latest.at + passed, Some(passed).filter(|passed| !passed.is_zero()))
                        }
                        _ => {
                            was_set = true;
                            (latest.at + own.max(Duration::from_secs(1)), None)
                        }
                    }
                }
            };
            self.latest = Some(Latest { taken, at, received: now.moment, age: Duration::ZERO });
            placed.push(Placed { anchor: Anchor { moment: at, wall: taken }, passed });
        }
        if was_set {
            tracing::warn!(
                "the clock of the source was set: for one interval, rates are computed with the clock of this host"
            );
        }
        self.follow(*newest, now.wall, was_set);
        for Placed { anchor, .. } in &mut placed {
            anchor.wall = anchor.wall.checked_sub(self.lead).unwrap_or(SystemTime::UNIX_EPOCH);
        }
        if let (Some(latest), Some(last), false) = (&mut self.latest, placed.last(), was_waited_for)
        {
            latest.age = now.wall.duration_since(last.anchor.wall).unwrap_or_default();
        }
        placed
    }

    /// Updates the lead from the newest data. It varies with the time until data is polled; the largest one counts,
    /// until one of the clocks is set.
    fn follow(&mut self, newest: SystemTime, now: SystemTime, was_set: bool) {
        let lead = newest.duration_since(now).unwrap_or_default();
        if lead > TOLERANCE && self.lead <= TOLERANCE {
            tracing::warn!(
                ?lead,
                "the clock of the source is ahead of the clock of this host: times are corrected by the difference; \
                 synchronize both (NTP)"
            );
        }
        if lead > self.lead || self.lead.saturating_sub(lead) > TOLERANCE || was_set {
            self.lead = lead;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn time(seconds: u64) -> SystemTime {
        SystemTime::UNIX_EPOCH + Duration::from_secs(1_700_000_000 + seconds)
    }

    fn now(seconds: u64) -> Anchor {
        Anchor { moment: Moment(seconds * 1_000_000_000), wall: time(seconds) }
    }

    fn seconds(seconds: u64) -> Duration {
        Duration::from_secs(seconds)
    }

    impl SourceClock {
        fn one(&mut self, taken: SystemTime, now: Anchor) -> (Anchor, Option<Duration>) {
            let placed = self.place(&[taken], now)[0];
            (placed.anchor, placed.passed)
        }
    }

    #[test]
    fn moments_are_as_far_apart_as_samples_not_as_polls() {
        let mut clock = SourceClock::default();
        let (first, passed) = clock.one(time(0), now(20));
        assert_eq!((first.wall, passed), (time(0), None));
        let (second, passed) = clock.one(time(30), now(31));
        assert_eq!(second.moment.since(first.moment), seconds(30));
        assert_eq!((second.wall, passed), (time(30), Some(seconds(30))));
    }

    #[test]
    fn clock_that_is_ahead_is_shown_as_ours() {
        let mut clock = SourceClock::default();
        let (first, _) = clock.one(time(3600), now(0));
        assert_eq!(first.wall, time(0));
        let (second, passed) = clock.one(time(3630), now(40));
        assert_eq!((second.wall, passed), (time(30), Some(seconds(30))));
    }

    #[test]
    fn clock_that_is_set_costs_one_interval_of_ours() {
        for (set_to, shown) in [(100, [100, 130]), (1_000_000, [5030, 5060])] {
            let mut clock = SourceClock::default();
            let (first, _) = clock.one(time(5000), now(5000));
            let (second, passed) = clock.one(time(set_to), now(5030));
            assert_eq!((second.moment.since(first.moment), passed), (seconds(30), None));
            let (third, passed) = clock.one(time(set_to + 30), now(5060));
            assert_eq!(third.moment.since(second.moment), seconds(30));
            assert_eq!(passed, Some(seconds(30)));
            assert_eq!([second.wall, third.wall], shown.map(time), "{set_to}");
        }
    }

    #[test]
    fn lead_ends_when_either_clock_is_corrected() {
        let mut clock = SourceClock::default();
        clock.one(time(8600), now(5000));
        let (set, passed) = clock.one(time(5030), now(5030));
        assert_eq!((set.wall, passed), (time(5030), None), "that of the source");
        // Ours was an hour late when the exporter started.
        let mut clock = SourceClock::default();
        let ours = |seconds: u64| Anchor { moment: Moment(seconds * 1_000_000_000), ..now(0) };
        let (first, _) = clock.one(time(3600), ours(5));
        assert_eq!(first.wall, time(0));
        let synchronized = Anchor { wall: time(3631), ..ours(35) };
        let (second, passed) = clock.one(time(3630), synchronized);
        assert_eq!((second.wall, passed), (time(3630), Some(seconds(30))));
    }

    #[test]
    fn first_data_is_as_old_as_it_says() {
        let mut clock = SourceClock::default();
        let started = |seconds: u64| Anchor { wall: time(10_000 + seconds), ..now(seconds) };
        // An hour passes between two runs; the exporter starts five minutes before the second one.
        let (first, _) = clock.one(time(10_000 - 3300), started(0));
        let (second, passed) = clock.one(time(10_300), started(310));
        assert_eq!(second.moment.since(first.moment), seconds(3600));
        assert_eq!(passed, Some(seconds(3600)));
    }

    #[test]
    fn data_of_one_poll_is_as_far_apart_as_it_says() {
        let mut clock = SourceClock::default();
        let started = |seconds: u64| Anchor { wall: time(20_000 + seconds), ..now(seconds) };
        let hours = [9_000, 12_600, 16_200, 19_800].map(time);
        let placed = clock.place(&hours, started(0));
        for (one, next) in placed.iter().zip(&placed[1..]) {
            assert_eq!(next.anchor.moment.since(one.anchor.moment), seconds(3600));
            assert_eq!(next.passed, Some(seconds(3600)));
        }
        assert_eq!(placed[3].anchor.wall, time(19_800));
        let (next, passed) = clock.one(time(23_400), started(3_405));
        assert_eq!(next.moment.since(placed[3].anchor.moment), seconds(3600));
        assert_eq!(passed, Some(seconds(3600)));
    }
}
