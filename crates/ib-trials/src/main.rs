//! `ib-trials`: runs the trials and writes the report.
#![allow(clippy::print_stderr, clippy::print_stdout, reason = "a program for developers")]

use std::fs;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Instant;

use clap::Parser;
use ib_trials::report::Report;
use ib_trials::run::{RunError, Settings, load, run};
use ib_trials::score::Tally;

/// How often a verdict is wrong, and how soon it is right: simulated cables for the evaluator.
#[derive(Debug, Parser)]
#[command(version)]
struct Args {
    /// The same seed has the same result
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Cables of the long run
    #[arg(long, default_value_t = 30_000)]
    cables: u64,
    /// Days of the long run
    #[arg(long, default_value_t = 100.0)]
    days: f64,
    /// Seconds between sweeps of the long run
    #[arg(long, default_value_t = 60)]
    interval: u32,
    /// Cells with injected faults, at each of their intervals
    #[arg(long, default_value_t = 4800)]
    trials: u64,
    /// Seconds between sweeps with injected faults
    #[arg(long, value_delimiter = ',', default_values_t = [15, 60])]
    trial_intervals: Vec<u32>,
    /// Threads; by default one per CPU
    #[arg(long)]
    threads: Option<usize>,
    /// Results of finished parts: a run with the same settings continues
    #[arg(long, default_value = "target/trust/results.jsonl")]
    results: PathBuf,
    /// Results of evaluators with deliberate defects, <NAME>.jsonl each (scripts/trust-defects)
    #[arg(long, default_value = "target/trust/defects")]
    defects: PathBuf,
    /// The setting health.ber-confidence
    #[arg(long, default_value = "high")]
    confidence: String,
    /// Limits of bit error ratios as multiples of the default ones
    #[arg(long, default_value_t = 1.0)]
    limit_factor: f32,
    /// Results with other settings, <NAME>.jsonl each (scripts/trust-settings)
    #[arg(long, default_value = "target/trust/settings")]
    variants: PathBuf,
    /// Write the page to this file, in a folder with a folder `pictures`
    #[arg(long)]
    report: Option<PathBuf>,
    /// How to repeat it, as the page says it
    #[arg(long, default_value = "make trust")]
    command: String,
}

fn main() -> ExitCode {
    match execute(&Args::parse()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("ib-trials: {error}");
            ExitCode::FAILURE
        }
    }
}

fn execute(args: &Args) -> Result<(), Box<dyn std::error::Error>> {
    let settings = Settings {
        seed: args.seed,
        cables: args.cables,
        days: args.days,
        interval: args.interval,
        trials: args.trials,
        trial_intervals: args.trial_intervals.clone(),
        confidence: args.confidence.clone(),
        limit_factor: args.limit_factor,
    };
    let threads = match args.threads {
        Some(threads) => threads,
        None => std::thread::available_parallelism()?.get(),
    };
    let (began, mut shown) = (Instant::now(), None);
    let tally = run(&settings, threads, &args.results, |done, of| {
        let percent = done * 100 / of.max(1);
        if shown.replace(percent) != Some(percent) {
            eprintln!("{percent}%: {done} of {of} parts, {:.0} s", began.elapsed().as_secs_f64());
        }
    })?;
    eprintln!(
        "{} evaluations of links, {:.2} us each",
        tally.evaluations,
        tally.seconds * 1e6 / tally.evaluations.max(1) as f64
    );
    let report = Report {
        settings: &settings,
        tally: &tally,
        date: jiff::Timestamp::now().strftime("%Y-%m-%d").to_string(),
        command: args.command.clone(),
        defects: defects(&args.defects)?,
        variants: files(&args.variants)
            .iter()
            .filter_map(|file| load(file).transpose())
            .collect::<Result<_, _>>()?,
    };
    match &args.report {
        Some(page) => {
            let pictures = page.parent().unwrap_or(Path::new(".")).join("pictures");
            fs::create_dir_all(&pictures)?;
            report.write(page, &pictures)?;
        }
        None => println!("{}", report.page()),
    }
    Ok(())
}

/// The files with results in a folder; none if it does not exist.
fn files(folder: &Path) -> Vec<PathBuf> {
    let files = fs::read_dir(folder).into_iter().flatten();
    let mut files: Vec<PathBuf> = files.filter_map(|file| Some(file.ok()?.path())).collect();
    files.retain(|file| file.extension().is_some_and(|it| it == "jsonl"));
    files.sort();
    files
}

/// The results of evaluators with defects, by name: the one without is first.
fn defects(folder: &Path) -> Result<Vec<(String, Tally)>, RunError> {
    let mut found = Vec::new();
    for file in files(folder) {
        let name =
            file.file_stem().map_or_else(String::new, |it| it.to_string_lossy().replace('-', " "));
        if let Some((_, tally)) = load(&file)? {
            found.push((name, tally));
        }
    }
    found.sort_by_key(|(name, _)| name != "none");
    Ok(found)
}
