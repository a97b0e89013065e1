//! What is known of a window, and where there are gaps.

use fabric_history::model::{Cover, Known, Window, time};
use fabric_history::source::AskError;

use super::look::{Look, fabric};
use super::timeline::{Timeline, gap_of, interval_of, numbers};

/// The metric that each scrape of a fabric has once.
pub(super) const SWEPT: &str = "infiniband_sweep_timestamp_seconds";

/// When each fabric was scraped.
pub(super) fn scrapes(
    look: &Look<'_>,
) -> Result<std::collections::BTreeMap<String, Timeline<f64>>, AskError> {
    Ok(numbers(&look.runs(SWEPT, &[Vec::new()])?, fabric, &[]))
}

/// See the module.
pub(super) fn cover(look: &Look<'_>) -> Result<Cover, AskError> {
    let mut cover = Cover::default();
    for (fabric, scrapes) in scrapes(look)? {
        let times: Vec<u64> =
            scrapes.iter().map(|(at, _)| *at).filter(|at| look.has(*at)).collect();
        cover.fabrics.insert(fabric, known(&times, look.window));
    }
    Ok(cover)
}

fn known(times: &[u64], window: Window) -> Known {
    let most = gap_of(times);
    let ends = [time::millis(window.from)].into_iter().chain(times.iter().copied());
    let ends: Vec<u64> = ends.chain([time::millis(window.to)]).collect();
    let gaps = ends.windows(2).filter_map(|pair| match pair {
        [from, to] if to.saturating_sub(*from) > most => {
            Some(Window { from: time::of_millis(*from), to: time::of_millis(*to) })
        }
        _ => None,
    });
    Known {
        sweeps: times.len(),
        interval: interval_of(times).unwrap_or(0) as f64 / 1000.0,
        gaps: gaps.collect(),
        traffic_from: times.first().map(|at| time::of_millis(*at)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn gaps_are_told_with_those_at_the_ends() {
        let at = time::of_millis;
        let window = Window { from: at(0), to: at(2000) };
        let known = known(&[500, 600, 700, 1200, 1300, 1950], window);
        let gaps: Vec<_> =
            known.gaps.iter().map(|gap| (time::millis(gap.from), time::millis(gap.to))).collect();
        assert_eq!(gaps, [(0, 500), (700, 1200), (1300, 1950)]);
        assert_eq!((known.sweeps, known.traffic_from), (6, Some(at(500))));
        assert!((known.interval - 0.1).abs() < 1e-9);
        assert_eq!(super::known(&[], window).gaps, []);
    }
}
