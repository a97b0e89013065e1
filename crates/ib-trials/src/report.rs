//! The report: tables and plots from a tally.

mod assumptions;
mod comparisons;
mod faults;

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::{fs, io};

use ib_mad::label::grouped;

use crate::bounds::poisson_upper;
use crate::devices::GENERATIONS;
use crate::plot::{self, Curve};
use crate::rates::MARGINAL;
use crate::rules::Rule;
use crate::run::Settings;
use crate::schedule::DAY;
use crate::score::{Class, Tally, Trial};
use crate::shard::BELOW;
use crate::trials::KINDS;

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

/// Why a report could not be written.
#[derive(Debug, thiserror::Error)]
#[error("{}: {error}", path.display())]
pub struct WriteError {
    path: PathBuf,
    error: io::Error,
}

/// Per million cable-days.
fn per_million(count: f64, days: f64) -> f64 {
    if days > 0.0 { count * 1e6 / days } else { 0.0 }
}

/// A number with three digits or none behind the point.
fn number(value: f64) -> String {
    match value {
        _ if value >= 10_000.0 => grouped(format!("{value:.0}")),
        _ if value >= 10.0 => format!("{value:.0}"),
        _ if value >= 0.1 => format!("{value:.1}"),
        _ if value > 0.0 => format!("{value:.1e}"),
        _ => "0".to_owned(),
    }
}

fn percent(share: f64) -> String {
    if share >= 0.999_5 { "100%".to_owned() } else { format!("{:.1}%", share * 100.0) }
}

/// Seconds in a readable unit.
fn time(seconds: f64) -> String {
    match seconds {
        _ if seconds < 120.0 => format!("{seconds:.0} s"),
        _ if seconds < 7200.0 => format!("{:.0} min", seconds / 60.0),
        _ => format!("{:.1} h", seconds / 3600.0),
    }
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
    fn curve(&self, name: &str) -> Curve {
        let steps = (0..=60).map(|step| 1440_f64.powf(f64::from(step) / 60.0));
        (name.to_owned(), steps.map(|minutes| (minutes, self.share(minutes * 60.0))).collect())
    }
}

/// The kind of fault that the targets are about.
fn twice() -> usize {
    KINDS.iter().position(|(_, name, _)| *name == "BER 2x").unwrap_or_default()
}

impl Report<'_> {
    /// Writes the page, and the plots beside it as `<pictures>/trust-*.svg`.
    pub fn write(&self, page: &Path, pictures: &Path) -> Result<(), WriteError> {
        let write = |path: PathBuf, text: String| {
            fs::write(&path, text).map_err(|error| WriteError { path, error })
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
        let row = |(name, count, days): (&str, u64, f64)| {
            let upper = per_million(poisson_upper(count), days);
            (name.to_owned(), per_million(count as f64, days), upper)
        };
        let rows: Vec<_> = self.judges().into_iter().map(row).collect();
        plot::bars("False alarms per million cable-days; thin line: 95% upper bound", &rows, 8)
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
        let mut page = String::from(
            "# How far a verdict can be trusted\n\n\
             After reading this page you can say how often a verdict is wrong, how soon a fault is found, and \
             repeat the measurement.\n\n\
             <!-- Made by `make trust`. Do not edit: change crates/ib-trials. -->\n\n",
        );
        let _ = writeln!(
            page,
            "Measured {}: {} simulated cables for {} days ({} cable-days, a sweep every {interval} s), and {} injected \
             faults. Seed {seed}; run time {:.1} hours on one thread. Repeat it with\n\n    {}\n\n\
             Simulated readings go directly into the evaluator. Nothing here was measured on real cables: the rates \
             are [published ones and assumptions](#simulated-events), and the results are only as good as these.\n",
            self.date,
            number(*cables as f64),
            days,
            number(self.tally.cable_days()),
            self.tally.trials.len(),
            self.tally.seconds / 3600.0,
            self.command
        );
        self.targets(&mut page);
        self.false_alarms(&mut page);
        self.detection(&mut page);
        self.repairs(&mut page);
        self.variant_table(&mut page);
        self.defect_table(&mut page);
        assumptions::definitions(&mut page);
        assumptions::rates(&mut page);
        page
    }

    fn targets(&self, page: &mut String) {
        let tally = self.tally;
        let days = tally.cable_days();
        page.push_str("## Targets\n\n| what | target | measured | met |\n|---|---|---|---|\n");
        let mut row = |what: &str, target: String, found: String, met: bool| {
            let _ = writeln!(
                page,
                "| {what} | {target} | {found} | {} |",
                if met { "yes" } else { "**no**" }
            );
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
        let is_twice = |trial: &Trial| trial.kind == twice() && trial.interval == interval;
        let watched = Times::of(tally, is_twice, |trial| trial.watch);
        let _ = writeln!(
            page,
            "\nFew false alarms and fast detection near the limit [exclude each other](#detection): at twice the limit a \
             link at NDR has 4.8 errors in 10 minutes where 2.4 are allowed. The exporter avoids false `bad`, and \
             reports `watch` early: within 10 minutes {} of the links at twice the limit are at least `watch`, within an hour \
             {}.\n",
            watched.percent(TEN_MINUTES),
            watched.percent(3600.0)
        );
    }

    fn false_alarms(&self, page: &mut String) {
        let tally = self.tally;
        let days = tally.cable_days();
        page.push_str(
            "## False alarms\n\n![False alarms per million cable-days](pictures/trust-false-alarms.svg)\n\n\
             | judged by | false alarms | per million cable-days | 95% upper bound | per day on 81,000 cables |\n\
             |---|---|---|---|---|\n",
        );
        let mut row = |name: &str, count: u64, days: f64| {
            let rate = per_million(count as f64, days);
            let upper = per_million(poisson_upper(count), days);
            let _ = writeln!(
                page,
                "| {name} | {count} | {} | {} | {} |",
                number(rate),
                number(upper),
                number(rate * FLEET)
            );
        };
        for (name, count, days) in self.judges() {
            row(name, count, days);
        }
        row("`bad` held an hour longer than documented", Tally::sum(&tally.stale_bad), days);
        page.push_str("\nThe rules of other tools got the same readings, and are judged more leniently: an alarm is false \
                       only if neither `bad` nor `watch` would be right.\n\n");
        for rule in Rule::ALL {
            let _ = writeln!(page, "- **{}**: {}", rule.label(), rule.help());
        }
        let _ = writeln!(
            page,
            "\nThe verdict was `unknown` for {} of the time. There were {} flaps; the evaluator \
             counted {}. It misses a flap, or takes it for a reboot, if a tool clears the counters before the next \
             sweep.\n",
            percent(tally.unknown_seconds as f64 / DAY / days.max(1.0)),
            number(tally.flaps as f64),
            number(tally.counted_flaps as f64)
        );
        for (what, counts) in [
            ("False `bad`", &tally.false_bad),
            ("False `watch`", &tally.false_watch),
            ("`bad` held too long", &tally.stale_bad),
        ] {
            causes(page, what, counts);
        }
        page.push_str(
            "False verdicts by the constant bit error ratio of a cable in its worse direction, as a multiple of the limit:\n\n\
             | times the limit | cable-days | false `bad` | per million | false `watch` | per million |\n\
             |---|---|---|---|---|---|\n",
        );
        let names = MARGINAL.iter().map(|(times, _)| format!("{times}"));
        for name in [BELOW.to_owned()].into_iter().chain(names) {
            let Some(class) = tally.classes.get(&name) else { continue };
            let days = class.cable_seconds as f64 / DAY;
            let _ = writeln!(
                page,
                "| {name} | {} | {} | {} | {} | {} |",
                number(days),
                class.false_bad,
                number(per_million(class.false_bad as f64, days)),
                class.false_watch,
                number(per_million(class.false_watch as f64, days))
            );
        }
        page.push('\n');
    }
}

/// The most frequent reasons of false verdicts.
fn causes(page: &mut String, what: &str, counts: &BTreeMap<String, u64>) {
    const SHOWN: usize = 12;
    if counts.is_empty() {
        return;
    }
    let _ = writeln!(
        page,
        "{what}, by reason and by the last event on the cable within a day:\n\n| reason | count |\n|---|---|"
    );
    let mut rows: Vec<(&String, &u64)> = counts.iter().collect();
    rows.sort_by_key(|(text, count)| (std::cmp::Reverse(**count), *text));
    for (text, count) in rows.iter().take(SHOWN) {
        let _ = writeln!(page, "| {text} | {count} |");
    }
    let rest: u64 = rows.iter().skip(SHOWN).map(|(_, count)| **count).sum();
    if rest > 0 {
        let _ = writeln!(page, "| others | {rest} |");
    }
    page.push('\n');
}
