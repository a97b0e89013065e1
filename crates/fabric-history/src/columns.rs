//! A counter's course in so many columns, for a terminal's line and for a plot.

use std::time::SystemTime;

use super::model::{Step, Window};

/// What counters grew by in each column of a window. What grew between two readings is spread evenly
/// over the time between them; what of that lies before the window is left out.
pub fn spread<'a>(
    steps: impl IntoIterator<Item = &'a Step>,
    window: Window,
    count: usize,
) -> Vec<f64> {
    let mut columns = vec![0.0; count];
    let whole = window.length().as_secs_f64();
    if count == 0 || whole <= 0.0 {
        return columns;
    }
    let place = |at: SystemTime| {
        let since = match at.duration_since(window.from) {
            Ok(since) => since.as_secs_f64(),
            Err(before) => -before.duration().as_secs_f64(),
        };
        (since / whole).min(1.0) * count as f64
    };
    for step in steps {
        let (from, to) = (place(step.from), place(step.to));
        #[expect(
            clippy::cast_sign_loss,
            reason = "what is before the window stands in its first column"
        )]
        let (first, last) = ((from as usize).min(count - 1), (to as usize).min(count - 1));
        let share = step.by as f64 / (to - from);
        for (column, sum) in columns.iter_mut().enumerate().take(last + 1).skip(first) {
            // All at once: it stands where it was read.
            if to <= from {
                *sum += step.by as f64;
                break;
            }
            let overlap = to.min((column + 1) as f64) - from.max(column as f64);
            *sum += share * overlap.max(0.0);
        }
    }
    columns
}

/// A line of bars for a terminal: a dot where nothing was, and the least that was can be seen.
pub fn bars(columns: &[f64]) -> String {
    const BARS: [char; 8] = ['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];
    let most = columns.iter().copied().fold(0.0, f64::max);
    let bar = |value: &f64| {
        #[expect(clippy::cast_sign_loss, reason = "what grows is not negative")]
        let height = (value / most * 8.0).ceil() as usize;
        if *value > 0.0 { BARS[height.clamp(1, 8) - 1] } else { '·' }
    };
    columns.iter().map(bar).collect()
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use proptest::prelude::*;

    use super::*;

    /// An hour's bytes of which a minute lies in the window are not that minute's.
    #[test]
    fn what_grew_before_the_window_is_not_put_into_it() {
        let at = |minutes: u64| at(60 * minutes);
        let window = Window { from: at(60), to: at(70) };
        let step = Step { from: at(1), to: at(61), by: 600 };
        assert_eq!(spread([&step], window, 10)[..2], [10.0, 0.0]);
    }

    fn at(second: u64) -> SystemTime {
        SystemTime::UNIX_EPOCH + Duration::from_secs(second)
    }

    fn step(from: u64, to: u64, by: u64) -> Step {
        Step { from: at(from), to: at(to), by }
    }

    #[test]
    fn a_course_shows_when_there_was_how_much() {
        let window = Window { from: at(0), to: at(60) };
        let columns = spread(&[step(0, 15, 1), step(45, 60, 8)], window, 4);
        assert_eq!(columns, [1.0, 0.0, 0.0, 8.0]);
        assert_eq!(bars(&columns), "▁··█");
    }

    #[test]
    fn what_was_read_at_once_stands_in_one_column() {
        let window = Window { from: at(0), to: at(60) };
        assert_eq!(spread(&[step(60, 60, 5)], window, 3), [0.0, 0.0, 5.0]);
        assert_eq!(spread(&[step(60, 60, 5)], Window { from: at(9), to: at(9) }, 2), [0.0, 0.0]);
        assert_eq!(bars(&[0.0, 0.0]), "··");
    }

    proptest! {
        #[test]
        fn nothing_is_lost(
            steps in proptest::collection::vec((0u64..1000, 0u64..100, 0u64..1_000_000), 0..20),
            count in 1usize..100,
        ) {
            let steps: Vec<Step> =
                steps.into_iter().map(|(from, long, by)| step(from, from + long, by)).collect();
            let window = Window { from: at(0), to: at(1100) };
            let sum: f64 = spread(&steps, window, count).iter().sum();
            let all: u64 = steps.iter().map(|step| step.by).sum();
            prop_assert!((sum - all as f64).abs() < 1e-3 * all as f64 + 1e-6, "{sum} of {all}");
        }
    }
}
