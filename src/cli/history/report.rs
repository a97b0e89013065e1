//! `history report`: one page on a window.

use std::io::Write;
use std::path::PathBuf;

use clap::{Args, ValueEnum};

use fabric_history::Source;
use fabric_history::clock::Clock;
use fabric_history::report::{Report, html, markdown};
use ib_mad::label::plural;

use super::window::WindowArgs;
use super::{Exit, Fatal, Told, unreadable};

/// The arguments of `history report`.
#[derive(Args, Debug)]
pub struct ReportArgs {
    #[command(flatten)]
    window: WindowArgs,
    /// How it is written
    #[arg(long, value_enum, default_value_t = Format::Markdown)]
    format: Format,
    /// Write it there, in the format of its ending (.html, .md, .json)
    #[arg(long, short, value_name = "FILE", conflicts_with = "format")]
    output: Option<PathBuf>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Format {
    /// One page that needs nothing besides
    Html,
    /// For a ticket
    Markdown,
    /// For programs
    Json,
}

pub(super) fn tell(
    ask: &ReportArgs,
    source: &dyn Source,
    clock: &Clock,
    out: &mut impl Write,
) -> Result<Told, Fatal> {
    let window = ask.window.window(clock, source)?;
    let format = match &ask.output {
        None => ask.format,
        Some(file) => match file.extension().and_then(|ending| ending.to_str()) {
            Some("html" | "htm") => Format::Html,
            Some("md" | "markdown" | "txt") => Format::Markdown,
            Some("json") => Format::Json,
            _ => {
                let problem =
                    format!("--output: {}: ends in none of .html, .md, .json", file.display());
                return Err(Fatal::new(Exit::Usage, problem));
            }
        },
    };
    let report =
        Report::of(source, window, clock.time(), &|at| clock.tell(at)).map_err(unreadable)?;
    let text = match format {
        Format::Html => html::write(&report, clock),
        Format::Markdown => markdown::write(&report, clock),
        Format::Json => {
            let json = serde_json::to_string_pretty(&report);
            json.map_err(|error| Fatal::new(Exit::Failed, error))? + "\n"
        }
    };
    let last = format!(
        "{}, {} from {} to {}; times are of {}",
        plural(report.suspects.len() + report.more_suspects, "suspect"),
        plural(report.events.len() + report.more_events, "event"),
        clock.tell(report.window.from),
        clock.tell(report.window.to),
        clock.zone()
    );
    let Some(file) = &ask.output else {
        return Ok(out.write_all(text.as_bytes()).map(|()| last));
    };
    std::fs::write(file, text).map_err(|error| {
        Fatal::new(Exit::Failed, format!("--output: cannot write {}: {error}", file.display()))
    })?;
    Ok(Ok(format!("{}: {last}", file.display())))
}
