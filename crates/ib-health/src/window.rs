//! Sliding windows: how much something grew in the latest minutes, in a few bytes.

use std::time::Duration;

use ib_mad::Moment;

/// Time in hundredths of a second, as windows keep it: 32 bits go round once in 497 days, and only
/// differences of hours are ever asked for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Tick(u32);

impl From<Moment> for Tick {
    fn from(moment: Moment) -> Tick {
        Tick((moment.0 / 10_000_000) as u32)
    }
}

impl Tick {
    /// Seconds since an earlier one.
    pub fn seconds_since(self, earlier: Tick) -> f32 {
        self.0.wrapping_sub(earlier.0) as f32 / 100.0
    }

    fn is_after(self, earlier: Tick, steps: u32) -> bool {
        self.0.wrapping_sub(earlier.0) >= steps
    }
}

/// How many points a window has.
const POINTS: usize = 6;

/// A counter's values at a few moments in the past: what lies between the oldest and now is the
/// window. Once it is full, that is at least its length, and at most a fifth more.
#[derive(Clone, Copy, Debug, Default)]
pub struct Window {
    points: [(Tick, u32); POINTS],
    newest: u8,
    len: u8,
}

impl Window {
    /// Takes down what the counter shows, if it is time to.
    pub fn note(&mut self, length: Duration, at: Tick, value: u32) {
        // Sweeps come a little early or late: one that is early by a hundredth is no reason to wait
        // for the next.
        let step = (length.as_millis() as u32 / 10) / (POINTS as u32 - 1);
        let due = self.len == 0 || at.is_after(self.newest().0, step - step / 10);
        if due {
            self.newest = if self.len == 0 { 0 } else { (self.newest + 1) % POINTS as u8 };
            self.points[usize::from(self.newest)] = (at, value);
            self.len = (self.len + 1).min(POINTS as u8);
        }
    }

    fn newest(&self) -> (Tick, u32) {
        self.points[usize::from(self.newest)]
    }

    /// The points, the oldest first.
    fn points(&self) -> impl Iterator<Item = (Tick, u32)> + '_ {
        let first = usize::from(self.newest) + POINTS + 1 - usize::from(self.len);
        (0..usize::from(self.len)).map(move |nth| self.points[(first + nth) % POINTS])
    }

    /// What the counter grew by until now, and in how many seconds; nothing before the first point.
    pub fn growth(&self, at: Tick, value: u32) -> Option<(u32, f32)> {
        let (since, before) = self.points().next()?;
        Some((value.wrapping_sub(before), at.seconds_since(since)))
    }

    /// In how many of the intervals between its points, and since the last of them, it grew.
    pub fn busy_intervals(&self, value: u32) -> usize {
        let values = self.points().map(|(_, value)| value);
        let next = self.points().skip(1).map(|(_, value)| value).chain([value]);
        values.zip(next).filter(|(before, after)| before != after).count()
    }
}

/// How much something grew in this period and in the one before: between one and two periods, for
/// what need not be known more exactly. Whole numbers are exact up to 2^24.
#[derive(Clone, Copy, Debug, Default)]
pub struct Recent {
    this: f32,
    last: f32,
}

impl Recent {
    /// Adds to it.
    pub fn add(&mut self, amount: f32) {
        self.this += amount;
    }

    /// So many periods have begun since.
    pub fn turn(&mut self, periods: u16) {
        self.last = if periods == 1 { self.this } else { 0.0 };
        self.this = 0.0;
    }

    /// What it comes to.
    pub fn sum(&self) -> f32 {
        self.this + self.last
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tick(seconds: f64) -> Tick {
        Tick::from(Moment(0) + Duration::from_secs_f64(seconds))
    }

    #[test]
    fn a_full_window_has_its_length_and_at_most_a_fifth_more() {
        let mut window = Window::default();
        assert_eq!(window.growth(tick(0.0), 0), None);
        let minutes = Duration::from_secs(720);
        for sweep in 0..500 {
            let (at, value) = (tick(f64::from(sweep) * 15.0), sweep * 2);
            if let Some((growth, seconds)) = window.growth(at, value) {
                let sweeps = (seconds / 15.0).round();
                assert!((growth as f32 - 2.0 * sweeps).abs() < 1e-3, "{growth} in {seconds}");
                assert!(seconds <= 720.0 * 1.2 + 15.0, "{seconds}");
                assert!(sweep < 64 || seconds >= 720.0 * 0.89, "{seconds}");
                assert!(sweep >= 48 || (seconds - sweep as f32 * 15.0).abs() < 0.1, "{seconds}");
            }
            window.note(minutes, at, value);
        }
    }

    #[test]
    fn it_tells_a_burst_from_what_is_steady() {
        let mut window = Window::default();
        for sweep in 0..6 {
            window.note(Duration::from_secs(75), tick(f64::from(sweep) * 15.0), 7);
        }
        assert_eq!(window.busy_intervals(7), 0);
        assert_eq!(window.busy_intervals(1000), 1);
        window.note(Duration::from_secs(75), tick(90.0), 1000);
        assert_eq!(window.busy_intervals(1001), 2);
    }

    #[test]
    fn the_clock_and_the_counter_may_go_round() {
        let near_end = Moment(u64::from(u32::MAX) * 10_000_000);
        let (before, after) = (Tick::from(near_end), Tick::from(near_end + Duration::from_secs(9)));
        let mut window = Window::default();
        window.note(Duration::from_secs(75), before, u32::MAX);
        let (growth, seconds) = window.growth(after, 4).unwrap();
        assert_eq!(growth, 5);
        assert!((seconds - 9.0).abs() < 0.02);
    }

    #[test]
    fn what_is_recent_is_of_two_periods() {
        let mut recent = Recent::default();
        recent.add(3.0);
        recent.turn(1);
        recent.add(4.0);
        assert!((recent.sum() - 7.0).abs() < 1e-6);
        recent.turn(1);
        assert!((recent.sum() - 4.0).abs() < 1e-6);
        recent.turn(2);
        assert!(recent.sum().abs() < 1e-6);
    }
}
