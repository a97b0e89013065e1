//! `history`: queries a recorded history.

mod arguments;
mod cable;
mod export;
mod follow;
mod hosts;
mod incidents;
mod show;

use std::io::Write;

use clap::{Args, Subcommand};

use super::output::print;
use super::terminal::{ColorChoice, Progress};
use crate::exit::Fatal;
use arguments::OriginArgs;
use fabric_history::local_clock::LocalClock;

const EXAMPLES: &str = "\
Examples:
  fabric-exporter history events --since 2h --url http://127.0.0.1:10315
  fabric-exporter history events --follow --json --url http://127.0.0.1:10315
  fabric-exporter history link leaf-0-1/9 --at 03:12 --file /var/lib/fabric-exporter/history.db
  fabric-exporter history report --nodes 'gpu[001-064]' --since 3h --url http://127.0.0.1:10315
  fabric-exporter history report --job 4711 --file history.db
  fabric-exporter history report --since 3h -o incident.html --url http://127.0.0.1:10315
  fabric-exporter history export --since 1d -o counters.csv --file history.db
  fabric-exporter history report --from dumps/ -o incident.html

One of --file, --url and --from is required. Tables show local times; --json and exports use UTC, with a Z.";

/// The arguments of `history`.
#[derive(Args, Debug)]
#[command(after_long_help = EXAMPLES)]
pub struct HistoryArgs {
    #[command(flatten)]
    origin: OriginArgs,
    #[command(subcommand)]
    command: HistoryCommand,
}

#[derive(Debug, Subcommand)]
enum HistoryCommand {
    /// List incidents, oldest first: events grouped by their cause
    Incidents(incidents::IncidentsArgs),
    /// List events, oldest first, or follow them
    Events(show::EventsArgs),
    /// Show the events and counters of a port
    Port(show::PortArgs),
    /// Show the events of a link and the counters of both ends
    Link(show::LinkArgs),
    /// Show where a cable or module was, by its serial number, and what happened there
    ///
    /// Its places in the whole recorded period; the verdict, link downs and errors of each; and its events there.
    Cable(cable::CableArgs),
    /// List the links that changed or counted errors between two times, worst first
    Diff(show::DiffArgs),
    /// Write an incident report: events, suspect links with evidence and plots, periods without data
    Report(show::ReportArgs),
    /// Count how often the repair suggested with a verdict was right
    ///
    /// The table contains no names: it can be pasted into an issue.
    Verdicts(show::VerdictsArgs),
    /// Export counters or events (CSV, JSON lines), or totals (OpenMetrics)
    Export(export::ExportArgs),
    /// Copy a period to a new history file
    Dump(export::DumpArgs),
}

/// Runs the command, and prints what it found and the summary.
pub fn run(args: HistoryArgs, color: ColorChoice) -> Result<(), Fatal> {
    let (origin, clock) = (args.origin, LocalClock::now());
    let clock = &clock;
    if let HistoryCommand::Events(args) = &args.command
        && args.follow
    {
        return follow::run(args, origin, clock, color);
    }
    // An export writes while it reads.
    let is_export = matches!(args.command, HistoryCommand::Export(_));
    let progress = (!is_export).then(|| Progress::start("reading the history", None));
    let output = match &args.command {
        HistoryCommand::Incidents(args) => args.run(origin.open()?.source(), clock, color)?,
        HistoryCommand::Events(args) => args.run(origin.open()?.source(), clock, color)?,
        HistoryCommand::Port(args) => args.run(origin.open()?.source(), clock)?,
        HistoryCommand::Link(args) => args.run(origin.open()?.source(), clock)?,
        HistoryCommand::Cable(args) => args.run(origin.open()?.source(), clock, color)?,
        HistoryCommand::Diff(args) => args.run(origin.open()?.source(), clock)?,
        HistoryCommand::Report(args) => args.run(origin.open()?.source(), clock)?,
        HistoryCommand::Verdicts(args) => args.run(origin.open()?.source(), clock)?,
        HistoryCommand::Export(args) => args.run(origin, clock)?,
        HistoryCommand::Dump(args) => args.run(origin, clock)?,
    };
    drop(progress);
    // An export has written its rows already, and its summary says so if the pipe was closed.
    if output.text.is_empty() || print(output.text.as_bytes())? {
        // The result is written: a closed standard error does not matter.
        let _ = writeln!(std::io::stderr(), "{}", output.summary);
    }
    Ok(())
}
