//! The section about links that flap on several days.

use std::fmt::Write as _;

use ib_sim::rng::Rng;

use super::numbers::{number, percent};
use crate::repeated_flaps::{FLAPS, HABITS, LINKS, detection, false_alarms, healthy};

/// The section, with the results of the rule for these seeds of random numbers.
pub(super) fn section(seed: u64) -> String {
    let mut rng = Rng::keyed(seed, &[2]);
    let mut text = String::from(
        "## Repeated flaps\n\n\
         A link is `watch` if it flapped on three different days of the last fourteen. Healthy links that flap at \
         random, independently of each other:\n\n\
         | flaps of a healthy link | per day | false `repeated_flaps` per link-year | per year on 81,000 cables |\n\
         |---|---|---|---|\n",
    );
    for (name, per_day) in healthy() {
        let rate = false_alarms(per_day, FLAPS, &mut rng);
        let fleet = number(rate * 81_000.0);
        // Writing to a string cannot fail.
        let _ = writeln!(text, "| {name} | {per_day:.1e} | {rate:.1e} | {fleet} |");
    }
    text += "\nLinks that flap again and again, by days from the first flap until `watch`:\n\n\
             | flaps | half | 95% | in 14 days | in 60 days |\n|---|---|---|---|---|\n";
    for (habit, name) in HABITS {
        let mut found: Vec<f64> = detection(habit, LINKS, &mut rng).into_iter().flatten().collect();
        found.sort_unstable_by(f64::total_cmp);
        let quantile = |share: f64| {
            #[expect(clippy::cast_sign_loss, reason = "a share of a length")]
            let nth = (LINKS as f64 * share) as usize;
            found.get(nth).map_or("–".to_owned(), |days| number(*days))
        };
        let within =
            |days: f64| percent(found.partition_point(|at| *at <= days) as f64 / LINKS as f64);
        let (half, most) = (quantile(0.5), quantile(0.95));
        let (soon, ever) = (within(14.0), within(60.0));
        let _ = writeln!(text, "| {name} | {half} | {most} | {soon} | {ever} |");
    }
    text + "\n"
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn section_has_all_rows() {
        let text = section(1);
        assert_eq!(text.lines().filter(|line| line.starts_with("| ")).count(), 2 + 4 + 6, "{text}");
    }
}
