//! The report: tables and plots from a tally.

mod comparisons;
mod faults;
mod numbers;
mod repeated_flaps;

use std::cmp::Reverse;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::{fs, iter};

use crate::bounds::poisson_upper;
use crate::devices::GENERATIONS;
use crate::plot::{self, Curve};
use crate::rates::{MARGINAL, RATES, Rate};
use crate::rules::Rule;
use crate::run::{RunError, Settings};
use crate::score::{Class, Tally, Trial};
use crate::shard::BELOW;
use crate::time::DAY;
use crate::trials::{CAUSES, KINDS, WEAK};
use numbers::{number, percent, time};

/// The page, with the places of what is filled in as `{name}`.
const PAGE: &str = include_str!("report/page.txt");

/// The targets: false verdicts per million cable-days, and shares.
const FALSE_BAD: f64 = 1.0;
const FALSE_WATCH: f64 = 100.0;
const RECALL: f64 = 0.99;
const FIRST_RIGHT: f64 = 0.8;

/// Millions of cables of a large fabric.
const FLEET: f64 = 0.081;

const TEN_MINUTES: f64 = 600.0;

/// What a report is made from.
#[derive(Clone, Debug)]
pub struct Report<'a> {
    /// The settings of the run.
    pub settings: &'a Settings,
    /// Its result.
    pub tally: &'a Tally,
    /// The day, as in 2026-11-23.
    pub date: String,
    /// How to repeat it.
    pub command: String,
    /// Results of evaluators with deliberate defects, by name; the first is without one.
    pub defects: Vec<(String, Tally)>,
    /// Results with other settings of the evaluator.
    pub variants: Vec<(Settings, Tally)>,
}

/// Per million cable-days.
fn per_million(count: f64, days: f64) -> f64 {
    if days > 0.0 { count * 1e6 / days } else { 0.0 }
}

/// When the verdict that is due was found.
fn due(trial: &Trial) -> Option<u32> {
    if KINDS[trial.kind].2 { trial.bad } else { trial.watch }
}

/// When faults were found, in seconds since they began; `None` for those that were not.
struct Times(Vec<Option<u32>>);

impl Times {
    /// Those of the trials that fit.
    fn of(
        tally: &Tally,
        fits: impl Fn(&Trial) -> bool,
        found: impl Fn(&Trial) -> Option<u32>,
    ) -> Times {
        Times(tally.trials.iter().filter(|trial| fits(trial)).map(found).collect())
    }

    /// How many were found within so many seconds.
    fn within(&self, limit: f64) -> u64 {
        self.0.iter().flatten().filter(|time| f64::from(**time) <= limit).count() as u64
    }

    fn share(&self, limit: f64) -> f64 {
        self.within(limit) as f64 / self.0.len().max(1) as f64
    }

    fn percent(&self, limit: f64) -> String {
        percent(self.share(limit))
    }

    /// The time by which this share was found.
    fn quantile(&self, share: f64) -> String {
        let mut found: Vec<u32> = self.0.iter().flatten().copied().collect();
        found.sort_unstable();
        #[expect(clippy::cast_sign_loss, reason = "a share of a length")]
        let nth = (self.0.len() as f64 * share).ceil() as usize;
        let time_of = |seconds: &u32| time(f64::from(*seconds));
        found.get(nth.saturating_sub(1)).map_or("–".to_owned(), time_of)
    }

    /// The share that was found by time, in minutes.
    fn curve<'a>(&self, name: &'a str) -> Curve<'a> {
        let steps = (0..=60).map(|step| 1440_f64.powf(f64::from(step) / 60.0));
        (name, steps.map(|minutes| (minutes, self.share(minutes * 60.0))).collect())
    }
}

/// The kind of fault that the targets are about.
fn twice() -> usize {
    KINDS.iter().position(|(_, name, _)| *name == "BER 2x").unwrap_or_default()
}

impl Report<'_> {
    /// Writes the page, and the plots beside it as `<pictures>/trust-*.svg`.
    pub fn write(&self, page: &Path, pictures: &Path) -> Result<(), RunError> {
        let write = |path: PathBuf, text: String| {
            fs::write(&path, text).map_err(|error| RunError::File { path, error })
        };
        write(pictures.join("trust-false-alarms.svg"), self.false_alarm_plot())?;
        write(pictures.join("trust-detection.svg"), self.detection_plot())?;
        write(pictures.join("trust-speeds.svg"), self.speed_plot())?;
        write(page.to_owned(), self.page())
    }

    /// The trials of a kind at an interval; of all generations, or of one.
    fn times(&self, kind: usize, interval: u32, generation: Option<usize>) -> Times {
        let fits = |trial: &Trial| {
            trial.kind == kind
                && trial.interval == interval
                && generation.is_none_or(|generation| trial.generation == generation)
        };
        Times::of(self.tally, fits, due)
    }

    /// The interval of the tables with one: the shortest, which is the default.
    fn interval(&self) -> u32 {
        self.settings.trial_intervals.iter().copied().min().unwrap_or(self.settings.interval)
    }

    /// A count of cables that are always at half of their limit or below, and their cable-days.
    fn up_to_half(&self, of: fn(&Class) -> u64) -> (u64, f64) {
        let near = |name: &&String| *name != "0.7" && *name != "0.9";
        let classes = || self.tally.classes.iter().filter(|(name, _)| near(name)).map(|it| it.1);
        let seconds: u64 = classes().map(|class| class.cable_seconds).sum();
        (classes().map(of).sum(), seconds as f64 / DAY)
    }

    /// The judges, with their false alarms and the cable-days that they judged.
    fn judges(&self) -> Vec<(&'static str, u64, f64)> {
        let (days, ndr) = (self.tally.cable_days(), self.tally.ndr_seconds as f64 / DAY);
        let (bad, bad_days) = self.up_to_half(|class| class.false_bad);
        let (watch, watch_days) = self.up_to_half(|class| class.false_watch);
        let mut rows = vec![
            ("verdict bad", Tally::sum(&self.tally.false_bad), days),
            ("verdict bad, BER up to half of the limit", bad, bad_days),
            ("verdict watch", Tally::sum(&self.tally.false_watch), days),
            ("verdict watch, BER up to half of the limit", watch, watch_days),
        ];
        let others = Rule::ALL.into_iter().zip(self.tally.others);
        rows.extend(others.map(|(rule, count)| {
            (rule.label(), count, if rule.is_for_ndr() { ndr } else { days })
        }));
        rows
    }

    fn false_alarm_plot(&self) -> String {
        let row = |(name, count, days): (&'static str, u64, f64)| {
            let upper = per_million(poisson_upper(count), days);
            (name, per_million(count as f64, days), upper)
        };
        let rows: Vec<_> = self.judges().into_iter().map(row).collect();
        plot::bars("False alarms per million cable-days; thin line: 95% upper bound", &rows)
    }

    fn detection_plot(&self) -> String {
        let shown = ["BER 1.5x", "BER 2x", "BER 3x", "BER 5x", "BER 10x", "BER 100x"];
        let kinds = KINDS.iter().enumerate().filter(|(_, (_, name, _))| shown.contains(name));
        let curves: Vec<Curve> = kinds
            .map(|(kind, (_, name, _))| self.times(kind, self.interval(), None).curve(name))
            .collect();
        plot::found_by_time(
            "Faults with the verdict bad, by time since they began; all speeds",
            &curves,
        )
    }

    fn speed_plot(&self) -> String {
        let times = |nth| self.times(twice(), self.interval(), Some(nth));
        let curves: Vec<Curve> = (GENERATIONS.iter().enumerate())
            .map(|(nth, generation)| times(nth).curve(generation.name))
            .collect();
        plot::found_by_time("Twice the limit: verdict bad, by time and speed", &curves)
    }

    /// The page.
    pub fn page(&self) -> String {
        let Settings { seed, cables, days, interval, .. } = self.settings;
        let tally = self.tally;
        let is_twice = |trial: &Trial| trial.kind == twice() && trial.interval == self.interval();
        let watched = Times::of(tally, is_twice, |trial| trial.watch);
        let unknown_days = tally.unknown_seconds as f64 / DAY;
        let rules = Rule::ALL.map(|it| format!("- **{}**: {}\n", it.label(), it.help()));
        let marginal: Vec<String> = (MARGINAL.iter())
            .map(|(times, share)| format!("{times} in {}", percent(*share)))
            .collect();
        let parts = [
            ("{date}", self.date.clone()),
            ("{repeated-flaps}", repeated_flaps::section(*seed)),
            ("{cables}", number(*cables as f64)),
            ("{days}", days.to_string()),
            ("{cable-days}", number(tally.cable_days())),
            ("{interval}", interval.to_string()),
            ("{faults}", tally.trials.len().to_string()),
            ("{seed}", seed.to_string()),
            ("{hours}", format!("{:.1}", tally.seconds / 3600.0)),
            ("{command}", self.command.clone()),
            ("{targets}", self.targets()),
            ("{watched-soon}", watched.percent(TEN_MINUTES)),
            ("{watched-later}", watched.percent(3600.0)),
            ("{judges}", self.judge_rows()),
            ("{rules}", rules.concat()),
            ("{unknown}", percent(unknown_days / tally.cable_days().max(1.0))),
            ("{flaps}", number(tally.flaps as f64)),
            ("{counted-flaps}", number(tally.counted_flaps as f64)),
            ("{causes}", self.causes()),
            ("{classes}", self.classes()),
            ("{detection}", self.detection()),
            ("{speeds}", self.speeds()),
            ("{rules-by-fault}", self.rules_by_fault()),
            ("{bystanders}", tally.bystanders.to_string()),
            ("{repairs}", self.repairs()),
            // The share of causes that is a broken transceiver: a tenth of it, in percentage points.
            ("{points}", format!("{:.1}", 10.0 * CAUSES[3].2)),
            ("{weak}", percent(WEAK)),
            ("{settings}", self.variant_table()),
            ("{defects}", self.defect_table()),
            ("{events}", RATES.iter().map(event).collect()),
            ("{marginal}", marginal.join(", ")),
        ];
        parts.iter().fold(PAGE.to_owned(), |page, (place, part)| page.replace(place, part))
    }

    fn targets(&self) -> String {
        let tally = self.tally;
        let days = tally.cable_days();
        let mut page = String::new();
        let mut row = |what: &str, target: String, found: String, met: bool| {
            let met = if met { "yes" } else { "**no**" };
            let _ = writeln!(page, "| {what} | {target} | {found} | {met} |");
        };
        for (what, counts, target) in [
            ("false `bad`", &tally.false_bad, FALSE_BAD),
            ("false `watch`", &tally.false_watch, FALSE_WATCH),
        ] {
            let count = Tally::sum(counts);
            let upper = per_million(poisson_upper(count), days);
            row(
                &format!("{what} per million cable-days, 95% upper bound"),
                format!("at most {}", number(target)),
                format!("{} ({count} observed)", number(upper)),
                upper <= target,
            );
        }
        let interval = self.interval();
        let times = self.times(twice(), interval, None);
        row(
            &format!("`bad` within 10 minutes at twice the limit, a sweep every {interval} s"),
            "at least 99%".into(),
            times.percent(TEN_MINUTES),
            times.share(TEN_MINUTES) >= RECALL,
        );
        let is_flap = |trial: &Trial| KINDS[trial.kind].1.starts_with("flap of");
        let flaps = Times::of(tally, is_flap, due);
        let (found, all) = (flaps.within(3600.0), flaps.0.len());
        row(
            "`watch` after a flap that a counter recorded",
            "100%".into(),
            format!("{found} of {all}"),
            found == all as u64,
        );
        for (has_powers, which) in [(true, "with"), (false, "without")] {
            let share = self.helped_by_shares(has_powers, |trial| trial.first_right);
            row(
                &format!("the repair helps, on links {which} optical power readings"),
                "at least 80%".into(),
                percent(share),
                share >= FIRST_RIGHT,
            );
        }
        page
    }

    fn judge_rows(&self) -> String {
        let (days, stale) = (self.tally.cable_days(), Tally::sum(&self.tally.stale_bad));
        let stale = ("`bad` held an hour longer than documented", stale, days);
        let row = |(name, count, days): (&str, u64, f64)| {
            let rate = per_million(count as f64, days);
            let upper = number(per_million(poisson_upper(count), days));
            let (rate, daily) = (number(rate), number(rate * FLEET));
            format!("| {name} | {count} | {rate} | {upper} | {daily} |\n")
        };
        self.judges().into_iter().chain([stale]).map(row).collect()
    }

    /// The most frequent reasons of false verdicts.
    fn causes(&self) -> String {
        const SHOWN: usize = 12;
        let mut page = String::new();
        for (what, counts) in [
            ("False `bad`", &self.tally.false_bad),
            ("False `watch`", &self.tally.false_watch),
            ("`bad` held too long", &self.tally.stale_bad),
        ] {
            let mut rows: Vec<(&str, u64)> =
                counts.iter().map(|(text, count)| (text.as_str(), *count)).collect();
            rows.sort_by_key(|(text, count)| (Reverse(*count), *text));
            let rest: u64 = rows.iter().skip(SHOWN).map(|(_, count)| count).sum();
            rows.truncate(SHOWN);
            rows.extend((rest > 0).then_some(("others", rest)));
            if rows.is_empty() {
                continue;
            }
            let _ = writeln!(
                page,
                "{what}, by reason and by the last event on the cable within a day:\n\n\
                 | reason | count |\n|---|---|"
            );
            for (text, count) in rows {
                let _ = writeln!(page, "| {text} | {count} |");
            }
            page.push('\n');
        }
        page
    }

    fn classes(&self) -> String {
        let names = MARGINAL.iter().map(|(times, _)| times.to_string());
        let row = |name: String| {
            let class = self.tally.classes.get(&name)?;
            let days = class.cable_seconds as f64 / DAY;
            let (bad, watch) = (class.false_bad, class.false_watch);
            let million = |count: u64| number(per_million(count as f64, days));
            Some(format!(
                "| {name} | {} | {bad} | {} | {watch} | {} |\n",
                number(days),
                million(bad),
                million(watch)
            ))
        };
        iter::once(BELOW.to_owned()).chain(names).filter_map(row).collect()
    }
}

fn event(rate: &Rate) -> String {
    // With as many digits as it needs.
    let digits = format!("{:.4}", rate.per_day);
    let per_day = if rate.per_day < 0.001 {
        format!("{:.1e}", rate.per_day)
    } else {
        digits.trim_end_matches('0').trim_end_matches('.').to_owned()
    };
    let (event, per, what) = (rate.event.label(), rate.per.label(), rate.event.help());
    format!("| {event} | {per_day} | {per} | {what} | {} |\n", rate.source)
}
