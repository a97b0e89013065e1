//! `history`: what an exporter has recorded, or a Prometheus has scraped: what happened, and what
//! became of a cable.

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
use fabric_history::source::AskError;

use super::{Exit, Fatal};
use fabric_history::clock::Clock;
use origin::OriginArgs;

/// The arguments of `history`.
#[derive(Args, Debug)]
pub struct HistoryArgs {
    #[command(flatten)]
    origin: OriginArgs,
    #[command(subcommand)]
    ask: Ask,
}

#[derive(Debug, Subcommand)]
enum Ask {
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

/// Tells what is asked for, and ends.
pub fn run(args: HistoryArgs) -> Result<(), Fatal> {
    let clock = Clock::now();
    let written = match &args.ask {
        Ask::Export(ask) => Some(export::run(ask, args.origin.clone(), &clock)?),
        Ask::Dump(ask) => Some(dump::run(ask, args.origin.clone(), &clock)?),
        _ => None,
    };
    if let Some(last) = written {
        // Whatever becomes of it, what was asked for is written.
        let _ = writeln!(std::io::stderr(), "{last}");
        return Ok(());
    }
    let source = args.origin.open()?;
    let source = &*source;
    let stdout = std::io::stdout();
    let mut out = BufWriter::new(stdout.lock());
    let told = match args.ask {
        Ask::Events(ask) => events::tell(&ask, source, &clock, &mut out)?,
        Ask::Port(ask) => port::port(&ask, source, &clock, &mut out)?,
        Ask::Link(ask) => port::link(&ask, source, &clock, &mut out)?,
        Ask::Diff(ask) => diff::tell(&ask, source, &clock, &mut out)?,
        Ask::Report(ask) => report::tell(&ask, source, &clock, &mut out)?,
        // These need the file, and are done.
        Ask::Export(_) | Ask::Dump(_) => Ok(String::new()),
    };
    match told.and_then(|last| out.flush().map(|()| last)) {
        // Whoever reads has enough.
        Err(error) if error.kind() == ErrorKind::BrokenPipe => Ok(()),
        Err(error) => {
            Err(Fatal::new(Exit::Failed, format!("cannot write to standard output: {error}")))
        }
        Ok(last) => {
            // Whatever becomes of it, what was asked for is written.
            let _ = writeln!(std::io::stderr(), "{last}");
            Ok(())
        }
    }
}

/// What was written, and the line that ends it.
type Told = std::io::Result<String>;

fn unreadable(error: AskError) -> Fatal {
    Fatal::new(Exit::Failed, error)
}

/// The ports that somebody means by a name; an error if there are none.
fn ports(source: &dyn Source, what: &str, called: &str) -> Result<Vec<model::Port>, Fatal> {
    let ports = source.ports(called).map_err(unreadable)?;
    if ports.is_empty() {
        let problem = format!("{what}: {} knows no {called:?}", source.name());
        return Err(Fatal::new(Exit::Usage, problem));
    }
    Ok(ports)
}

/// A line for a terminal: names come from the fabric, and must not move anybody's cursor.
fn tame(text: &str) -> String {
    super::printable(text)
}

/// Values as JSON, for programs.
fn as_json(values: &impl Serialize, out: &mut impl Write) -> std::io::Result<()> {
    serde_json::to_writer_pretty(&mut *out, values)?;
    writeln!(out)
}
