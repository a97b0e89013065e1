//! The part of the report on injected faults.

use std::fmt::Write as _;

use ib_mad::rate::{Speed, Width, bytes_per_second};

use super::numbers::{number, percent, time};
use super::{RECALL, Report, TEN_MINUTES, Times, twice};
use crate::bounds::share_lower;
use crate::devices::{GENERATIONS, Generation};
use crate::optimum::{least_false_alarms, shortest_mean};
use crate::rules::Rule;
use crate::score::Trial;
use crate::time::DAY;
use crate::trials::{CAUSES, KINDS};

impl Report<'_> {
    pub(super) fn detection(&self) -> String {
        let mut page = String::new();
        for (kind, (_, name, is_bad)) in KINDS.iter().enumerate() {
            for &interval in &self.settings.trial_intervals {
                let times = self.times(kind, interval, None);
                let (all, due) = (times.0.len() as u64, if *is_bad { "bad" } else { "watch" });
                if all == 0 {
                    continue;
                }
                let _ = writeln!(
                    page,
                    "| {name} | {interval} s | `{due}` | {all} | {} | {} | {} ({}) | {} | {} |",
                    times.percent(TEN_MINUTES),
                    times.percent(3600.0),
                    times.percent(DAY),
                    percent(share_lower(times.within(DAY), all)),
                    times.quantile(0.5),
                    times.quantile(0.95)
                );
            }
        }
        page
    }

    /// The faults on which the rules of other tools alert within 24 hours.
    pub(super) fn rules_by_fault(&self) -> String {
        let labels = Rule::ALL.map(|rule| format!(" {} |", rule.label())).concat();
        let mut page = format!("| fault |{labels}\n|---|{}\n", "---|".repeat(Rule::ALL.len()));
        for (kind, (_, name, _)) in KINDS.iter().enumerate() {
            if self.tally.trials.iter().all(|trial| trial.kind != kind) {
                continue;
            }
            let shares = Rule::ALL.map(|rule| {
                let is_judged = |trial: &Trial| {
                    let is_ndr = GENERATIONS[trial.generation].speed == Speed::Ndr;
                    trial.kind == kind && (is_ndr || !rule.is_for_ndr())
                };
                let found = Times::of(self.tally, is_judged, |it| it.others[rule as usize]);
                format!(" {} |", found.percent(DAY))
            });
            let _ = writeln!(page, "| {name} |{}", shares.concat());
        }
        page
    }

    /// Detection at twice the limit by speed, and the best that is possible.
    pub(super) fn speeds(&self) -> String {
        let row = |(nth, generation): (usize, &Generation)| {
            let times = self.times(twice(), self.interval(), Some(nth));
            // Those that were not found count as found at the end.
            let sum: f64 = times.0.iter().map(|time| time.map_or(DAY, f64::from)).sum();
            let limits = ib_health::LimitTable::default().limits(generation.speed, generation.fec);
            let bits = bytes_per_second(Width::X4, generation.speed) as f64 * 8.0;
            let rate = bits * f64::from(limits.symbol);
            let best = |times: f64| time(shortest_mean(times * rate, 2.0 * rate, 1e6 * DAY));
            let least = least_false_alarms(0.9 * rate, 2.0 * rate, TEN_MINUTES, RECALL);
            format!(
                "| {} | {} | {} | {} | {} | {} | {} | {} | {} | {} |\n",
                generation.name,
                number(rate * TEN_MINUTES),
                times.percent(TEN_MINUTES),
                times.percent(3600.0),
                times.percent(10_800.0),
                times.percent(DAY),
                time(sum / times.0.len().max(1) as f64),
                best(0.9),
                best(1.0),
                number(least * DAY / TEN_MINUTES)
            )
        };
        GENERATIONS.iter().enumerate().map(row).collect()
    }

    pub(super) fn repairs(&self) -> String {
        let mut page = String::new();
        for (nth, (_, name, share, _)) in CAUSES.iter().enumerate() {
            let _ = write!(page, "| {name} | {} |", percent(*share));
            for has_powers in [false, true] {
                let (faults, first) = self.helped(nth, has_powers, |it| it.first_right);
                let (_, second) = self.helped(nth, has_powers, |it| it.second_right);
                let _ = write!(page, " {faults} | {} | {} |", percent(first), percent(second));
            }
            page.push('\n');
        }
        page.push_str("| all, by their shares | |");
        for has_powers in [false, true] {
            let first = self.helped_by_shares(has_powers, |it| it.first_right);
            let second = self.helped_by_shares(has_powers, |it| it.second_right);
            let _ = write!(page, " | {} | {} |", percent(first), percent(second));
        }
        page.push('\n');
        page
    }

    /// The injected faults with a cause and with powers or without, and the share of them that was repaired.
    fn helped(
        &self,
        cause: usize,
        has_powers: bool,
        right: fn(&Trial) -> Option<bool>,
    ) -> (usize, f64) {
        let is = |it: &&Trial| it.cause == Some(cause) && it.has_powers == has_powers;
        let known: Vec<bool> = self.tally.trials.iter().filter(is).filter_map(right).collect();
        let helped = known.iter().filter(|right| **right).count();
        (known.len(), helped as f64 / known.len().max(1) as f64)
    }

    /// The share of faults that was repaired, if each cause has its share of them: some are planted more often.
    pub(super) fn helped_by_shares(
        &self,
        has_powers: bool,
        right: fn(&Trial) -> Option<bool>,
    ) -> f64 {
        let causes = CAUSES.iter().enumerate();
        causes.map(|(nth, (_, _, share, _))| share * self.helped(nth, has_powers, right).1).sum()
    }
}
