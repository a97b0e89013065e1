//! `history`: what an exporter has recorded, or a Prometheus has scraped: what happened, and what
//! became of a cable.

mod events;
mod link;
mod origin;
mod time;
mod window;

use std::io::{BufWriter, ErrorKind, Write};

use clap::{Args, Subcommand};

use crate::history::Source;
use crate::history::model;
use crate::history::source::AskError;

use super::{Exit, Fatal};
use origin::OriginArgs;
use time::Clock;

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
    /// What a cable went through: what happened, and the errors that both of its ends counted
    Link(link::LinkArgs),
}

/// Tells what is asked for, and ends.
pub fn run(args: HistoryArgs) -> Result<(), Fatal> {
    let source = args.origin.open()?;
    let source = &*source;
    let clock = Clock::now();
    let stdout = std::io::stdout();
    let mut out = BufWriter::new(stdout.lock());
    let told = match args.ask {
        Ask::Events(ask) => events::tell(&ask, source, &clock, &mut out)?,
        Ask::Link(ask) => link::tell(&ask, source, &clock, &mut out)?,
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
    text.chars().map(super::links::tame).collect()
}

/// How many there are of something.
fn count(number: usize, what: &str) -> String {
    format!("{number} {what}{}", if number == 1 { "" } else { "s" })
}
