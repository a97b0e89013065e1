//! What is kept of the latest minutes in a few bytes: sliding windows, sums, and whether errors follow the load.

use std::time::Duration;

use ib_mad::Moment;

/// Time in hundredths of a second: 32 bits wrap in 497 days; only differences of hours are computed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Tick(u32);

impl From<Moment> for Tick {
    fn from(moment: Moment) -> Tick {
        Tick((moment.0 / 10_000_000) as u32)
    }
}

impl Tick {
    pub fn seconds_since(self, earlier: Tick) -> f32 {
        self.0.wrapping_sub(earlier.0) as f32 / 100.0
    }

    /// The time this much earlier, also before the clock started.
    pub fn before(self, earlier: Duration) -> Tick {
        Tick(self.0.wrapping_sub((earlier.as_millis() / 10) as u32))
    }
}

/// A counter's values at a few moments in the past. The window is the time from the oldest one to now: once
/// it is full, at least its nominal length in seconds, and at most one part more.
#[derive(Clone, Copy, Debug)]
pub struct SlidingWindow<const LENGTH: u32, const POINTS: usize> {
    /// The oldest first.
    points: [(Tick, u32); POINTS],
    len: u8,
}

impl<const LENGTH: u32, const POINTS: usize> Default for SlidingWindow<LENGTH, POINTS> {
    fn default() -> Self {
        SlidingWindow { points: [(Tick::default(), 0); POINTS], len: 0 }
    }
}

impl<const LENGTH: u32, const POINTS: usize> SlidingWindow<LENGTH, POINTS> {
    /// The time between two points, in hundredths of a second.
    const STEP: u32 = LENGTH * 100 / (POINTS as u32 - 1);

    /// The longest time from the oldest point to now, in seconds.
    pub const LONGEST: u32 = LENGTH + LENGTH / (POINTS as u32 - 1);

    /// Records the counter's value, if a new point is due.
    pub fn record(&mut self, at: Tick, value: u32) {
        // Sweeps come a little early or late: one that is early by a hundredth of a second counts.
        let least = Self::STEP - Self::STEP / 10;
        let is_due = |newest: &(Tick, u32)| at.0.wrapping_sub(newest.0.0) >= least;
        if self.points().last().is_none_or(is_due) {
            if usize::from(self.len) == POINTS {
                self.points.rotate_left(1);
            } else {
                self.len += 1;
            }
            self.points[usize::from(self.len) - 1] = (at, value);
        }
    }

    /// Drops the points that a window without a gap between its points would not have any more.
    pub fn keep_latest(&mut self, at: Tick) {
        let longest = Self::LONGEST as f32;
        let old = self.points().partition_point(|(since, _)| at.seconds_since(*since) > longest);
        self.points.rotate_left(old);
        self.len -= old as u8;
    }

    fn points(&self) -> &[(Tick, u32)] {
        &self.points[..usize::from(self.len)]
    }

    /// By how much the counter grew until now, and in how many seconds; `None` before the first point.
    pub fn growth(&self, at: Tick, value: u32) -> Option<(u32, f32)> {
        let (since, before) = self.points().first()?;
        Some((value.wrapping_sub(*before), at.seconds_since(*since)))
    }

    /// Whether it has three intervals until now, by which bursts are told apart. It may not have been recorded now.
    pub fn tells_bursts(&self) -> bool {
        self.len >= 3
    }

    /// Whether it has too few readings to tell bursts apart although the time would suffice: there may be hours
    /// between dumps.
    pub fn is_sparse(&self, at: Tick) -> bool {
        let since = self.points().first().map_or(at, |(since, _)| *since);
        usize::from(self.len) < 3 && at.0.wrapping_sub(since.0) >= 3 * Self::STEP
    }

    /// By how much the counter grew since each of the points until now, the latest point first.
    pub fn growth_by_part(&self, at: Tick, value: u32) -> impl Iterator<Item = Growth> {
        let mut busiest = Busiest::default();
        let mut after = value;
        self.points().iter().rev().map(move |&(since, before)| {
            busiest.add(after.wrapping_sub(before));
            after = before;
            let all = value.wrapping_sub(before);
            Growth { all, steady: busiest.steady(all), seconds: at.seconds_since(since) }
        })
    }
}

/// By how much a counter grew until now.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Growth {
    /// All of it.
    pub all: u32,
    /// Without bursts: as if it had grown in the two busiest intervals like in the third.
    pub steady: u32,
    /// In how many seconds.
    pub seconds: f32,
}

/// The three largest of some numbers, the largest first.
#[derive(Clone, Copy, Debug, Default)]
pub struct Busiest([u32; 3]);

impl Busiest {
    /// Adds a number.
    pub fn add(&mut self, mut number: u32) {
        // The larger one stays; what is left in the end is less than all three.
        for known in &mut self.0 {
            if number > *known {
                std::mem::swap(known, &mut number);
            }
        }
    }

    /// The sum of the numbers if the two largest were like the third.
    pub fn steady(&self, sum: u32) -> u32 {
        let [first, second, third] = self.0;
        sum.saturating_sub(first - third).saturating_sub(second - third)
    }
}

/// Sums over the current period and the one before, so over one to two periods: for what need not be known
/// more exactly. Whole numbers are exact up to 2^24.
#[derive(Clone, Copy, Debug, Default)]
pub struct Recent<T> {
    pub current: T,
    previous: T,
    /// The number of the current period, modulo 2^16.
    period: u16,
}

impl<T: Copy + Default> Recent<T> {
    /// Starts the next period of this length if it has begun, and returns whether it has.
    pub fn advance(&mut self, at: Moment, length: Duration) -> bool {
        let now = (at.0 / length.as_nanos() as u64) as u16;
        let periods = now.wrapping_sub(std::mem::replace(&mut self.period, now));
        if periods > 0 {
            self.previous = if periods == 1 { self.current } else { T::default() };
            self.current = T::default();
        }
        periods > 0
    }

    pub fn clear(&mut self) {
        (self.current, self.previous) = Default::default();
    }

    pub fn sum(&self, of: impl Fn(&T) -> f32) -> f32 {
        of(&self.current) + of(&self.previous)
    }
}

const SMOOTHING: f32 = 1.0 / 8.0;

/// An interval is busy above this multiple of the mean rate, quiet below the other, and else not used.
const BUSY: f32 = 1.25;
const QUIET: f32 = 0.8;

/// The errors that quiet intervals would have at a steady ratio, before their absence is evidence.
const ENOUGH: f32 = 5.0;

/// Whether receive errors follow the load, from the errors and packets of busy and of quiet intervals. A bad
/// link corrupts the same share of packets at any load; losses by congestion occur at high load (Zhuo et al.,
/// SIGCOMM 2017).
#[derive(Clone, Copy, Debug, Default)]
pub struct LoadCorrelation {
    mean: f32,
    busy: Counts,
    quiet: Counts,
}

#[derive(Clone, Copy, Debug, Default)]
struct Counts {
    packets: f32,
    errors: f32,
}

impl LoadCorrelation {
    pub fn record(&mut self, packets: f32, errors: f32, seconds: f32) {
        if seconds <= 0.0 {
            return;
        }
        let rate = packets / seconds;
        let mean = if self.mean > 0.0 { self.mean } else { rate };
        let counts = match rate {
            rate if rate > mean * BUSY => Some(&mut self.busy),
            rate if rate < mean * QUIET => Some(&mut self.quiet),
            _ => None,
        };
        if let Some(counts) = counts {
            counts.packets += packets;
            counts.errors += errors;
        }
        self.mean = mean + (rate - mean) * SMOOTHING;
    }

    /// Halves the weight of the past.
    pub fn decay(&mut self) {
        for counts in [&mut self.busy, &mut self.quiet] {
            counts.packets /= 2.0;
            counts.errors /= 2.0;
        }
    }

    /// Whether errors occur at high load and not at low load.
    pub fn errors_follow_load(&self) -> bool {
        if self.busy.packets <= 0.0 {
            return false;
        }
        let expected = self.busy.errors * self.quiet.packets / self.busy.packets;
        expected >= ENOUGH && self.quiet.errors < expected / 4.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tick(seconds: f64) -> Tick {
        Tick::from(Moment(0) + Duration::from_secs_f64(seconds))
    }

    #[test]
    fn full_window_spans_its_length_to_a_fifth_more() {
        let mut window = SlidingWindow::<720, 6>::default();
        assert_eq!(window.growth(tick(0.0), 0), None);
        for sweep in 0..500 {
            let (at, value) = (tick(f64::from(sweep) * 15.0), sweep * 2);
            if let Some((growth, seconds)) = window.growth(at, value) {
                let sweeps = (seconds / 15.0).round();
                assert!((growth as f32 - 2.0 * sweeps).abs() < 1e-3, "{growth} in {seconds}");
                assert!(seconds <= 720.0 * 1.2 + 15.0, "{seconds}");
                assert!(sweep < 64 || seconds >= 720.0 * 0.89, "{seconds}");
                assert!(sweep >= 48 || (seconds - sweep as f32 * 15.0).abs() < 0.1, "{seconds}");
            }
            window.record(at, value);
        }
    }

    #[test]
    fn steady_growth_leaves_bursts_out() {
        let mut window = SlidingWindow::<75, 6>::default();
        let mut record = |sweep: u32, value: u32| {
            window.record(tick(f64::from(sweep) * 15.0), value);
            window.growth_by_part(tick(f64::from(sweep) * 15.0), value).last().unwrap().steady
        };
        assert_eq!(record(0, 7), 0);
        assert_eq!(record(1, 7), 0);
        assert_eq!(record(2, 1007), 0);
        assert_eq!(record(3, 1010), 0);
        // 1000 and 3 count like 2.
        assert_eq!(record(4, 1012), 6);
        // 1000 and 5 like 3.
        assert_eq!(record(5, 1017), 11);
        // The first interval, without growth, is gone.
        assert_eq!(record(6, 1017), 11);
        // So is the burst: 5 and 3 like 2.
        assert_eq!(record(7, 1017), 6);
    }

    #[test]
    fn clock_and_counter_may_wrap() {
        let near_end = Moment(u64::from(u32::MAX) * 10_000_000);
        let (before, after) = (Tick::from(near_end), Tick::from(near_end + Duration::from_secs(9)));
        let mut window = SlidingWindow::<75, 6>::default();
        window.record(before, u32::MAX);
        let (growth, seconds) = window.growth(after, 4).unwrap();
        assert_eq!(growth, 5);
        assert!((seconds - 9.0).abs() < 0.02);
    }

    #[test]
    fn recent_sum_covers_two_periods() {
        let mut recent = Recent::<f32>::default();
        let period = Duration::from_secs(720);
        let at = |periods: u32| Moment(0) + period * periods;
        recent.current += 3.0;
        assert!(recent.advance(at(1), period));
        recent.current += 4.0;
        assert!((recent.sum(|it| *it) - 7.0).abs() < 1e-6);
        assert!(recent.advance(at(2), period) && !recent.advance(at(2), period));
        assert!((recent.sum(|it| *it) - 4.0).abs() < 1e-6);
        assert!(recent.advance(at(4), period));
        assert!(recent.sum(|it| *it).abs() < 1e-6);
    }

    /// An hour in which a link is busy every other minute, with errors by (busy, packets).
    fn hour(errors: impl Fn(bool, f32) -> f32) -> LoadCorrelation {
        let mut load = LoadCorrelation::default();
        for look in 0..240 {
            let busy = look / 4 % 2 == 0;
            let packets = if busy { 1e6 } else { 2e5 };
            load.record(packets, errors(busy, packets), 15.0);
        }
        load
    }

    #[test]
    fn only_congestion_errors_follow_the_load() {
        assert!(!hour(|_, packets| packets * 1e-5).errors_follow_load());
        assert!(hour(|busy, _| if busy { 10.0 } else { 0.0 }).errors_follow_load());
        assert!(!hour(|_, _| 0.0).errors_follow_load());
        assert!(!LoadCorrelation::default().errors_follow_load());
        // Too few errors.
        assert!(!hour(|busy, _| if busy { 0.05 } else { 0.0 }).errors_follow_load());
    }

    #[test]
    fn steady_traffic_is_no_evidence() {
        let mut load = LoadCorrelation::default();
        for look in 0..1000 {
            // They stop at once, as when a counter saturates.
            load.record(1e6, if look < 500 { 10.0 } else { 0.0 }, 15.0);
        }
        assert!(!load.errors_follow_load());
    }

    #[test]
    fn past_intervals_decay() {
        let mut load = hour(|busy, _| if busy { 10.0 } else { 0.0 });
        for _ in 0..20 {
            load.decay();
        }
        assert!(!load.errors_follow_load());
    }
}
