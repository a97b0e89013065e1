//! The part of the report on other settings of the evaluator, and on deliberate defects in it.

use std::fmt::Write as _;

use super::numbers::number;
use super::{Report, TEN_MINUTES, Times, due, per_million};
use crate::bounds::poisson_upper;
use crate::score::{Tally, Trial};
use crate::time::DAY;
use crate::trials::KINDS;

impl Report<'_> {
    pub(super) fn variant_table(&self) -> String {
        if self.variants.is_empty() {
            return String::new();
        }
        let mut page = String::from(
            "## Settings\n\nShort runs with other settings: the certainty that is required before a link is bad \
             (`--health.ber-confidence`), and a site's own limits (`health.limits`) as multiples of the default ones. \
             What counts as false does not depend on these settings: if a site's limit is lower than the default, an \
             alarm on a link between the two limits counts as false.\n\n\
             | confidence | limits | cable-days | false `bad` per million (95% upper bound) | false `watch` | 2x: `watch` in 10 min | 2x: `bad` in 10 min | in 1 h | in 24 h | 5x: `bad`, median |\n\
             |---|---|---|---|---|---|---|---|---|---|\n",
        );
        for (settings, tally) in &self.variants {
            let is = |trial: &Trial, name: &str| KINDS[trial.kind].1 == name;
            let watch = Times::of(tally, |trial| is(trial, "BER 2x"), |trial| trial.watch);
            let bad = Times::of(tally, |trial| is(trial, "BER 2x"), |trial| trial.bad);
            let five = Times::of(tally, |trial| is(trial, "BER 5x"), |trial| trial.bad);
            let (days, bads) = (tally.cable_days(), Tally::sum(&tally.false_bad));
            let _ = writeln!(
                page,
                "| `{}` | × {} | {} | {} ({}) | {} | {} | {} | {} | {} | {} |",
                settings.confidence,
                settings.limit_factor,
                number(days),
                number(per_million(bads as f64, days)),
                number(per_million(poisson_upper(bads), days)),
                number(per_million(Tally::sum(&tally.false_watch) as f64, days)),
                watch.percent(TEN_MINUTES),
                bad.percent(TEN_MINUTES),
                bad.percent(3600.0),
                bad.percent(DAY),
                five.quantile(0.5)
            );
        }
        page.push('\n');
        page
    }

    pub(super) fn defect_table(&self) -> String {
        if self.defects.is_empty() {
            return String::new();
        }
        let mut page = String::from(
            "## Deliberate defects\n\nTo check that the trials detect errors in the evaluator, they were repeated \
            with deliberate defects in it \
             (`crates/ib-trials/defects`, short runs):\n\n\
             | defect | false `bad` per million cable-days | false `watch` | BER 10x found in 1 h | flaps found | BER 10x, median |\n\
             |---|---|---|---|---|---|\n",
        );
        for (name, tally) in &self.defects {
            let of = |wanted: &str| {
                Times::of(tally, |trial| KINDS[trial.kind].1.starts_with(wanted), due)
            };
            let (errors, flaps) = (of("BER 10x"), of("flap of"));
            let _ = writeln!(
                page,
                "| {name} | {} | {} | {} | {} | {} |",
                number(per_million(Tally::sum(&tally.false_bad) as f64, tally.cable_days())),
                number(per_million(Tally::sum(&tally.false_watch) as f64, tally.cable_days())),
                errors.percent(3600.0),
                flaps.percent(3600.0),
                errors.quantile(0.5)
            );
        }
        page.push('\n');
        page
    }
}
