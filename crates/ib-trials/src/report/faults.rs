//! The part of the report on planted faults.

use std::fmt::Write as _;

use ib_mad::rate::{Speed, Width, bytes_per_second};

use super::{Report, TEN_MINUTES, number, percent, quantile, within};
use crate::bounds::share_lower;
use crate::devices::GENERATIONS;
use crate::rules::Rule;
use crate::score::Trial;
use crate::trials::{CAUSES, KINDS};

impl Report<'_> {
    pub(super) fn detection(&self, page: &mut String) {
        page.push_str(
            "## Detection\n\n![Faults with the verdict bad by time](pictures/trust-detection.svg)\n\n\
             Share of planted faults with the verdict that is due (95% lower bound for 24 hours), and the time until \
             half and until 95% of them had it.\n\n\
             | fault | sweep | expected | faults | 10 min | 1 h | 24 h | half | 95% |\n|---|---|---|---|---|---|---|---|---|\n",
        );
        for (kind, (_, name, is_bad)) in KINDS.iter().enumerate() {
            for &interval in &self.settings.trial_intervals {
                let times = self.times(kind, interval, None);
                let (all, due) = (times.len() as u64, if *is_bad { "bad" } else { "watch" });
                if all == 0 {
                    continue;
                }
                let share = |limit: f64| percent(within(&times, limit) as f64 / all as f64);
                let lower = share_lower(within(&times, 86_400.0), all);
                let _ = writeln!(
                    page,
                    "| {name} | {interval} s | `{due}` | {all} | {} | {} | {} ({}) | {} | {} |",
                    share(TEN_MINUTES),
                    share(3600.0),
                    share(86_400.0),
                    percent(lower),
                    quantile(&times, 0.5),
                    quantile(&times, 0.95)
                );
            }
        }
        page.push_str(
            "\nDetection at twice the limit, by speed. At NDR a link at its limit has 2.4 errors in 10 minutes, and one at twice its \
             limit 4.8: of these, 1 in 20 has at most one error in that time. No rule can find 99% of them in 10 \
             minutes without an alarm on links at their limit.\n\n\
             ![Twice the limit by speed](pictures/trust-speeds.svg)\n\n\
             | speed | errors in 10 min at the limit | 10 min | 1 h | 3 h | 24 h |\n|---|---|---|---|---|---|\n",
        );
        if let Some(kind) = KINDS.iter().position(|(_, name, _)| *name == "BER 2x") {
            for (nth, generation) in GENERATIONS.iter().enumerate() {
                let times = self.times(kind, self.interval(), Some(nth));
                let share =
                    |limit: f64| percent(within(&times, limit) as f64 / times.len().max(1) as f64);
                let limits =
                    ib_health::LimitTable::default().limits(generation.speed, generation.fec);
                let bytes = bytes_per_second(Width::X4, generation.speed);
                let errors = bytes as f64 * 8.0 * 600.0 * f64::from(limits.symbol);
                let _ = writeln!(
                    page,
                    "| {} | {} | {} | {} | {} | {} |",
                    generation.name,
                    number(errors),
                    share(600.0),
                    share(3600.0),
                    share(10_800.0),
                    share(86_400.0)
                );
            }
        }
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
            let trials: Vec<&Trial> =
                self.tally.trials.iter().filter(|trial| trial.kind == kind).collect();
            if trials.is_empty() {
                continue;
            }
            let _ = write!(page, "| {name} |");
            for rule in Rule::ALL {
                let is_judged = |trial: &&&Trial| {
                    !rule.is_for_ndr() || GENERATIONS[trial.generation].speed == Speed::Ndr
                };
                let judged = trials.iter().filter(is_judged);
                let found: Vec<Option<u32>> =
                    judged.map(|trial| trial.others[rule as usize]).collect();
                let share = within(&found, 86_400.0) as f64 / found.len().max(1) as f64;
                let _ = write!(page, " {} |", percent(share));
            }
            page.push('\n');
        }
        let _ = writeln!(
            page,
            "\nIn these runs, the cables without an injected fault got {} false alarms. NVSentinel and gpud run on hosts and \
             see no cable between switches.\n",
            self.tally.bystanders
        );
    }

    pub(super) fn remedies(&self, page: &mut String) {
        page.push_str(
            "## The first remedy\n\nA technician does what is advised 8 hours after the fault, and again 9 hours later if \
             that did not help.\n\n| cause | share | faults | first remedy helps | first or second |\n|---|---|---|---|---|\n",
        );
        let mut row = |name: &str, share: String, trials: &[&Trial]| {
            let count = |right: fn(&Trial) -> Option<bool>| {
                let known: Vec<bool> = trials.iter().filter_map(|trial| right(trial)).collect();
                let right = known.iter().filter(|right| **right).count();
                (known.len(), percent(right as f64 / known.len().max(1) as f64))
            };
            let (faults, first) = count(|trial| trial.first_right);
            let (_, second) = count(|trial| trial.second_right);
            let _ = writeln!(page, "| {name} | {share} | {faults} | {first} | {second} |");
        };
        let with_cause: Vec<&Trial> =
            self.tally.trials.iter().filter(|trial| trial.cause.is_some()).collect();
        for (nth, (_, name, share, _)) in CAUSES.iter().enumerate() {
            let of: Vec<&Trial> =
                with_cause.iter().copied().filter(|trial| trial.cause == Some(nth)).collect();
            row(name, percent(*share), &of);
        }
        row("all", String::new(), &with_cause);
        page.push_str(
            "\nThe shares are within the ranges of Zhuo et al. (SIGCOMM 2017; Ethernet in data centers, quoted \
             second-hand); that half of the bad transceivers are only loose is an assumption. Nothing that is advised \
             helps if a port is faulty and its cable is good.\n\n",
        );
    }
}
