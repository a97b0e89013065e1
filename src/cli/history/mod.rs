//! `history`: queries a recorded history.

mod diff;
mod dump;
mod events;
mod export;
mod origin;
mod port;
mod report;
mod window;

use std::io::{BufWriter, ErrorKind, Write};

use clap::{Args, Subcommand};
use serde::Serialize;

use fabric_history::Source;
use fabric_history::model;
use fabric_history::source::SourceError;

use super::{Exit, Fatal};
use fabric_history::local_clock::LocalClock;
use origin::OriginArgs;

/// The arguments of `history`.
#[derive(Args, Debug)]
pub struct HistoryArgs {
    #[command(flatten)]
    origin: OriginArgs,
    #[command(subcommand)]
    command: HistoryCommand,
}

#[derive(Debug, Subcommand)]
enum HistoryCommand {
    /// What happened, the earliest first
    Events(events::EventsArgs),
    /// What a port went through: what happened, and the course of its counters
    Port(port::PortArgs),
    /// What a cable went through: what happened, and what both of its ends counted
    Link(port::LinkArgs),
    /// What moved on every cable between two moments, the worst first
    Diff(diff::DiffArgs),
    /// One page on a window: what happened, the suspects with evidence and plots, what is not known
    Report(report::ReportArgs),
    /// What was recorded, for other programs: readings, events, or totals for a Prometheus
    Export(export::ExportArgs),
    /// A copy of a window in a file of its own, which can be asked anywhere (--file)
    Dump(dump::DumpArgs),
}

/// Runs the command.
pub fn run(args: HistoryArgs) -> Result<(), Fatal> {
    let clock = LocalClock::now();
    // Export and dump need the file, and write it themselves.
    let written = match &args.command {
        HistoryCommand::Export(export) => Some(export::run(export, args.origin.clone(), &clock)?),
        HistoryCommand::Dump(dump) => Some(dump::run(dump, args.origin.clone(), &clock)?),
        _ => None,
    };
    if let Some(summary) = written {
        print_summary(&summary);
        return Ok(());
    }
    let origin = args.origin.open()?;
    let source = origin.source();
    let stdout = std::io::stdout();
    let mut out = BufWriter::new(stdout.lock());
    let written = match args.command {
        HistoryCommand::Events(args) => events::write(&args, source, &clock, &mut out)?,
        HistoryCommand::Port(args) => port::write_port(&args, source, &clock, &mut out)?,
        HistoryCommand::Link(args) => port::write_link(&args, source, &clock, &mut out)?,
        HistoryCommand::Diff(args) => diff::write(&args, source, &clock, &mut out)?,
        HistoryCommand::Report(args) => report::write(&args, source, &clock, &mut out)?,
        HistoryCommand::Export(_) | HistoryCommand::Dump(_) => Ok(String::new()),
    };
    match written.and_then(|summary| out.flush().map(|()| summary)) {
        // The reader closed the pipe.
        Err(error) if error.kind() == ErrorKind::BrokenPipe => Ok(()),
        Err(error) => {
            Err(Fatal::new(Exit::Failed, format!("cannot write to standard output: {error}")))
        }
        Ok(summary) => {
            print_summary(&summary);
            Ok(())
        }
    }
}

/// Prints the line that ends the output. A closed standard error is ignored: the result is written.
fn print_summary(summary: &str) {
    let _ = writeln!(std::io::stderr(), "{summary}");
}

/// The outcome of writing a result: the summary that is printed after it.
type Written = std::io::Result<String>;

fn unreadable(error: SourceError) -> Fatal {
    Fatal::new(Exit::Failed, error)
}

/// The ports that a name means; an error if there are none.
fn ports(source: &dyn Source, what: &str, name: &str) -> Result<Vec<model::Port>, Fatal> {
    let ports = source.ports(name).map_err(unreadable)?;
    if ports.is_empty() {
        let problem = format!("{what}: {} knows no {name:?}", source.name());
        return Err(Fatal::new(Exit::Usage, problem));
    }
    Ok(ports)
}

/// Removes control characters: names come from the fabric, and must not control the terminal.
fn tame(text: &str) -> String {
    super::printable(text)
}

/// Writes values as JSON.
fn write_json(values: &impl Serialize, out: &mut impl Write) -> std::io::Result<()> {
    serde_json::to_writer_pretty(&mut *out, values)?;
    writeln!(out)
}
