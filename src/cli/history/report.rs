//! `history report`: writes a report on a window.

use std::io::Write;
use std::path::PathBuf;

use clap::{Args, ValueEnum};

use fabric_history::Source;
use fabric_history::local_clock::LocalClock;
use fabric_history::report::{Report, html, markdown};
use ib_mad::label::plural;

use super::window::WindowArgs;
use super::{Exit, Fatal, Written, unreadable};

/// The arguments of `history report`.
#[derive(Args, Debug)]
pub struct ReportArgs {
    #[command(flatten)]
    window: WindowArgs,
    /// How it is written
    #[arg(long, value_enum, default_value_t = ReportFormat::Markdown)]
    format: ReportFormat,
    /// Write it there, in the format of its ending (.html, .md, .json)
    #[arg(long, short, value_name = "FILE", conflicts_with = "format")]
    output: Option<PathBuf>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum ReportFormat {
    /// One page that needs nothing besides
    Html,
    /// For a ticket
    Markdown,
    /// For programs
    Json,
}

pub(super) fn write(
    args: &ReportArgs,
    source: &dyn Source,
    clock: &LocalClock,
    out: &mut impl Write,
) -> Result<Written, Fatal> {
    let window = args.window.window(clock, source)?;
    let format = match &args.output {
        None => args.format,
        Some(file) => match file.extension().and_then(|ending| ending.to_str()) {
            Some("html" | "htm") => ReportFormat::Html,
            Some("md" | "markdown" | "txt") => ReportFormat::Markdown,
            Some("json") => ReportFormat::Json,
            _ => {
                let problem =
                    format!("--output: {}: ends in none of .html, .md, .json", file.display());
                return Err(Fatal::new(Exit::Usage, problem));
            }
        },
    };
    let report = Report::compute(source, window, clock.time(), &|at| clock.format(at))
        .map_err(unreadable)?;
    let text = match format {
        ReportFormat::Html => html::write(&report, clock),
        ReportFormat::Markdown => markdown::write(&report, clock),
        ReportFormat::Json => {
            let json = serde_json::to_string_pretty(&report);
            json.map_err(|error| Fatal::new(Exit::Failed, error))? + "\n"
        }
    };
    let summary = format!(
        "{}, {} from {} to {}; times are of {}",
        plural(report.suspects.len() + report.more_suspects, "suspect"),
        plural(report.events.len() + report.more_events, "event"),
        clock.format(report.window.from),
        clock.format(report.window.to),
        clock.zone()
    );
    let Some(file) = &args.output else {
        return Ok(out.write_all(text.as_bytes()).map(|()| summary));
    };
    std::fs::write(file, text).map_err(|error| {
        Fatal::new(Exit::Failed, format!("--output: cannot write {}: {error}", file.display()))
    })?;
    Ok(Ok(format!("{}: {summary}", file.display())))
}
