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
    #[command(flatten)]
    settings: Settings,
    /// Threads; by default one per CPU
    #[arg(long)]
    threads: Option<usize>,
    /// Results of finished parts: a run with the same settings continues
    #[arg(long, default_value = "target/trust/results.jsonl")]
    results: PathBuf,
    /// Results of evaluators with deliberate defects, <NAME>.jsonl each (scripts/trust-defects)
    #[arg(long, default_value = "target/trust/defects")]
    defects: PathBuf,
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
    let threads = match args.threads {
        Some(threads) => threads,
        None => std::thread::available_parallelism()?.get(),
    };
    let (began, mut shown) = (Instant::now(), None);
    let tally = run(&args.settings, threads, &args.results, |done, of| {
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
    let mut defects = others(&args.defects)?;
    // The evaluator without a defect is first.
    defects.sort_by_key(|(name, ..)| name != "none");
    let variants = others(&args.variants)?.into_iter();
    let report = Report {
        settings: &args.settings,
        tally: &tally,
        date: jiff::Timestamp::now().strftime("%Y-%m-%d").to_string(),
        command: args.command.clone(),
        defects: defects.into_iter().map(|(name, _, tally)| (name, tally)).collect(),
        variants: variants.map(|(_, settings, tally)| (settings, tally)).collect(),
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

/// The results of other runs in a folder, by name; none if it does not exist.
fn others(folder: &Path) -> Result<Vec<(String, Settings, Tally)>, RunError> {
    let files = fs::read_dir(folder).into_iter().flatten();
    let mut files: Vec<PathBuf> = files.filter_map(|file| Some(file.ok()?.path())).collect();
    files.sort();
    let mut found = Vec::new();
    for file in files.iter().filter(|file| file.extension().is_some_and(|it| it == "jsonl")) {
        let name = file.file_stem().unwrap_or_default().to_string_lossy().replace('-', " ");
        found.extend(load(file)?.map(|(settings, tally)| (name, settings, tally)));
    }
    Ok(found)
}
