//! The part of the report on injected faults.

use std::fmt::Write as _;

use ib_mad::rate::{Speed, Width, bytes_per_second};

use super::{RECALL, Report, TEN_MINUTES, Times, number, percent, time, twice};
use crate::bounds::share_lower;
use crate::devices::GENERATIONS;
use crate::optimum::{least_false_alarms, shortest_mean};
use crate::rules::Rule;
use crate::schedule::DAY;
use crate::score::Trial;
use crate::trials::{CAUSES, KINDS, WEAK};

impl Report<'_> {
    pub(super) fn detection(&self, page: &mut String) {
        page.push_str(
            "## Detection\n\n![Faults with the verdict bad by time](pictures/trust-detection.svg)\n\n\
             Share of injected faults (BER 2x: at twice the limit) with the expected verdict (95% lower bound for 24 \
             hours), and the time until half and until 95% of them had it.\n\n\
             | fault | sweep | expected | faults | 10 min | 1 h | 24 h | half | 95% |\n|---|---|---|---|---|---|---|---|---|\n",
        );
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
        self.speeds(page);
        page.push_str(
            "\nFaults on which the rules of other tools alert within 24 hours:\n\n| fault |",
        );
        for rule in Rule::ALL {
            let _ = write!(page, " {} |", rule.label());
        }
        page.push_str("\n|---|");
        page.push_str(&"---|".repeat(Rule::ALL.len()));
        page.push('\n');
        for (kind, (_, name, _)) in KINDS.iter().enumerate() {
            if self.tally.trials.iter().all(|trial| trial.kind != kind) {
                continue;
            }
            let _ = write!(page, "| {name} |");
            for rule in Rule::ALL {
                let is_judged = |trial: &Trial| {
                    let is_ndr = GENERATIONS[trial.generation].speed == Speed::Ndr;
                    trial.kind == kind && (is_ndr || !rule.is_for_ndr())
                };
                let found = Times::of(self.tally, is_judged, |it| it.others[rule as usize]);
                let _ = write!(page, " {} |", found.percent(DAY));
            }
            page.push('\n');
        }
        let _ = writeln!(
            page,
            "\nIn these runs, {} cables without an injected fault got a false `watch` or `bad` from the exporter. \
             NVSentinel and gpud run on hosts and cannot see cables between switches.\n",
            self.tally.bystanders
        );
    }

    /// Detection at twice the limit by speed, and the best that is possible.
    fn speeds(&self, page: &mut String) {
        page.push_str(
            "\nDetection at twice the limit, by speed, compared with the best that any rule can do:\n\n\
             - *Best possible*: the mean time that a sequential test (CUSUM) needs if it knows the error rates before \
             and after the fault, and has one false alarm in a million days. Before the fault the link is at 0.9 of \
             its limit (from 0.9x), or at its limit (from 1x). Compare the exporter with the time from 0.9x: `bad` at \
             0.9 of the limit is a false alarm, `bad` at the limit is not. The exporter's mean is of few faults, and \
             can be below the best possible by chance.\n\
             - *False alarms*: the lower bound of false alarms per day, on a link at 0.9 of its limit, for any rule \
             that finds 99% of the links at twice their limit within 10 minutes (Kullback-Leibler divergence). At \
             EDR, HDR and NDR no such rule can have as few as one false `bad` in a million cable-days, even if only \
             one in 100 links is at 0.9 of its limit.\n\n\
             ![Twice the limit by speed](pictures/trust-speeds.svg)\n\n\
             | speed | errors in 10 min at the limit | `bad` in 10 min | 1 h | 3 h | 24 h | mean | best possible from 0.9x | from 1x | false alarms a day if 99% in 10 min |\n\
             |---|---|---|---|---|---|---|---|---|---|\n",
        );
        for (nth, generation) in GENERATIONS.iter().enumerate() {
            let times = self.times(twice(), self.interval(), Some(nth));
            // Those that were not found count as found at the end.
            let sum: f64 = times.0.iter().map(|time| time.map_or(DAY, f64::from)).sum();
            let limits = ib_health::LimitTable::default().limits(generation.speed, generation.fec);
            let bits = bytes_per_second(Width::X4, generation.speed) as f64 * 8.0;
            let rate = bits * f64::from(limits.symbol);
            let best = |times: f64| time(shortest_mean(times * rate, 2.0 * rate, 1e6 * DAY));
            let least = least_false_alarms(0.9 * rate, 2.0 * rate, TEN_MINUTES, RECALL);
            let _ = writeln!(
                page,
                "| {} | {} | {} | {} | {} | {} | {} | {} | {} | {} |",
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
            );
        }
    }

    pub(super) fn repairs(&self, page: &mut String) {
        page.push_str(
            "## Repair\n\n8 hours after the fault, a technician does the repair that the exporter suggests; 9 hours later, if \
             the fault persists, the repair that it suggests then. The suggestion depends on whether the modules \
             report optical power:\n\n\
             | cause | share | faults without power readings | first repair helps | first or second helps | \
             faults with power readings | first repair helps | first or second helps |\n\
             |---|---|---|---|---|---|---|---|\n",
        );
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
        let _ = writeln!(
            page,
            "\n\nThe shares are within the ranges of Zhuo et al. (SIGCOMM 2017; Ethernet in data centers, quoted \
             second-hand). We assume that half of the bad transceivers are only loose. A loose transceiver, a \
             broken transceiver and a faulty port cause the same errors, in one direction. For errors in one direction \
             the exporter suggests reseating, which helps with 50% of all causes; for errors in both directions, \
             swapping the cable, which helps with 25%. So without power readings the suggestions help with at most \
             75%. Power readings reveal weak lasers: they add {:.1} percentage points for each tenth of the broken \
             transceivers with a weak laser. The trials assume that {} have one; to reach 80%, a third must have one. \
             If the exporter suggested a new transceiver wherever the optical power is normal, it would help with 90% \
             of all causes, because the new one is also newly seated. It does not, because that wastes a transceiver \
             where reseating is enough. No repair helps if a port is faulty and its cable is good.\n",
            10.0 * CAUSES[3].2,
            percent(WEAK)
        );
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
