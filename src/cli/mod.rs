//! The command line, one verb per file.

pub mod check;
pub mod completions;
mod daemon;
pub mod demo;
pub mod doctor;
mod dumps;
mod gate;
#[cfg(test)]
mod gate_tests;
pub mod history;
pub mod leftovers;
pub mod links;
mod list;
pub mod man;
pub mod nodes;
pub mod ports;
pub mod serve;
mod source;
mod table;
pub mod terminal;
pub mod top;

use std::fmt::Display;
use std::io::{ErrorKind, Write};

use clap::{Parser, Subcommand};
use exposition::unseen;
use serde::Serialize;

pub use terminal::ColorChoice;
use terminal::printable;

/// Prometheus exporter for InfiniBand fabrics and RDMA hosts
///
/// Sweeps a fabric, exports the counters and states of all ports, and reports which cables to
/// replace. Exit codes: 0 success, 1 runtime failure, 2 invalid command line or file, 3 no usable
/// InfiniBand port on this host (doctor: neither an RDMA device nor an RDMA adapter), 4 the listen address is not
/// available, 5 (doctor) the exporter works, with warnings, 6 (doctor) the exporter cannot work until something is
/// fixed, 7 (with --fail-on) a node is down, or a link is bad, degraded or unknown.
#[derive(Debug, Parser)]
#[command(
    name = "fabric-exporter",
    version,
    disable_help_subcommand = true,
    after_help = "Run \"fabric-exporter COMMAND -h\" for the most important options of a command, and \
                  --help for all of them, with examples."
)]
pub struct Cli {
    /// Color the output: auto, always or never [default: auto]
    ///
    /// "auto" colors it on a terminal, unless the environment variable NO_COLOR is set.
    #[arg(
        long,
        value_name = "WHEN",
        global = true,
        hide_possible_values = true,
        hide_short_help = true,
        help_heading = "Output"
    )]
    pub color: Option<ColorChoice>,
    /// The verb.
    #[command(subcommand)]
    pub verb: Verb,
}

/// The verbs.
#[derive(Debug, Subcommand)]
pub enum Verb {
    /// Sweep the fabric at intervals and serve its metrics over HTTP
    Serve(serve::ServeArgs),
    /// Sweep the fabric once and list its links, worst first
    Links(links::LinksArgs),
    /// Show the worst cables, the busiest links, congestion and events live
    Top(top::TopArgs),
    /// List the switches, channel adapters and routers of the fabric
    Nodes(nodes::NodesArgs),
    /// List the ports of a node with their counters
    Ports(ports::PortsArgs),
    /// Check what the exporter needs on this host, and print the fix for each problem
    Doctor(doctor::DoctorArgs),
    /// Query the recorded history: events, counters, reports and exports
    History(history::HistoryArgs),
    /// Validate the config file and all files that it names
    Check(check::CheckArgs),
    /// Serve a simulated fabric with faults, without any InfiniBand hardware
    Demo(demo::DemoArgs),
    /// Print a shell completion script
    Completions(completions::CompletionsArgs),
    /// Write the man pages into a folder
    #[command(hide = true)]
    Man(man::ManArgs),
}

/// The exit codes of the program other than 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Exit {
    /// An error while it ran.
    Failed = 1,
    /// An error in the command line or in a file that it names; clap uses the same code.
    Usage = 2,
    /// The fabric cannot be queried from this host: no device, no permission, no link.
    NoDevice = 3,
    /// The server cannot listen on the address.
    NoListener = 4,
    /// `doctor`: the exporter works, but something is missing or slow.
    Degraded = 5,
    /// `doctor`: the exporter cannot work until something is fixed.
    Broken = 6,
    /// `--fail-on`: a node is down, or a link is bad, degraded or unknown.
    Found = 7,
}

/// An error that ends the program: one line for each problem, and the exit code.
#[derive(Debug)]
pub struct Fatal {
    /// The exit code.
    pub exit: Exit,
    /// What failed, why, and what to do.
    pub message: String,
}

impl Fatal {
    /// An error with its own text.
    pub fn new(exit: Exit, error: impl Display) -> Self {
        Fatal { exit, message: error.to_string() }
    }

    /// An error in the command line or in a file.
    pub fn usage(error: impl Display) -> Self {
        Fatal::new(Exit::Usage, error)
    }

    /// An error while it ran.
    pub fn failed(error: impl Display) -> Self {
        Fatal::new(Exit::Failed, error)
    }

    /// An error of an operation while it ran.
    fn failed_to<E: Display>(operation: &str) -> impl Fn(E) -> Self {
        move |error| Fatal::failed(format!("{operation}: {error}"))
    }
}

/// As indented JSON. It may be written to a terminal: names come from devices and from the network.
fn as_json(value: &impl Serialize) -> Result<String, Fatal> {
    let text = serde_json::to_string_pretty(value).map_err(Fatal::failed)? + "\n";
    Ok(unseen::json(&text).into_owned())
}

/// Writes to standard output; `false` if its reader closed the pipe, which is no error.
fn print(text: &[u8]) -> Result<bool, Fatal> {
    let mut out = std::io::stdout().lock();
    match out.write_all(text).and_then(|()| out.flush()) {
        Ok(()) => Ok(true),
        Err(error) if error.kind() == ErrorKind::BrokenPipe => Ok(false),
        Err(error) => Err(Fatal::failed(format!("cannot write to standard output: {error}"))),
    }
}
