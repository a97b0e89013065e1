//! The command line, one verb per file.

pub mod check;
mod daemon;
pub mod demo;
pub mod doctor;
mod dumps;
pub mod history;
pub mod links;
pub mod serve;

use std::fmt::Display;
use std::io::{self, ErrorKind};

use clap::{Parser, Subcommand};

/// Prometheus exporter for InfiniBand fabrics and RDMA hosts
///
/// Sweeps a fabric, exports the counters and states of all ports, and reports which cables to
/// replace. Exit codes: 0 success, 1 runtime failure, 2 invalid command line or file, 3 no usable
/// InfiniBand port on this host (doctor: neither an RDMA device nor an RDMA adapter), 4 the listen address is not available,
/// 5 (doctor) the exporter works, with warnings, 6 (doctor) the exporter cannot work until something is fixed.
#[derive(Debug, Parser)]
#[command(
    name = "fabric-exporter",
    version,
    disable_help_subcommand = true,
    after_help = "Run \"fabric-exporter COMMAND -h\" for the most important options of a command, and \
                  --help for all of them, with examples."
)]
pub struct Cli {
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
    /// Check what the exporter needs on this host, and print the fix for each problem
    Doctor(doctor::DoctorArgs),
    /// Query the recorded history: events, counters, reports and exports
    History(history::HistoryArgs),
    /// Validate the config file and all files that it names
    Check(check::CheckArgs),
    /// Serve a simulated fabric with faults, without any InfiniBand hardware
    Demo(demo::DemoArgs),
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

/// Whether standard output was written; `false` if its reader closed the pipe, which is no error.
fn closed_pipe_is_no_error(written: io::Result<()>) -> Result<bool, Fatal> {
    match written {
        Ok(()) => Ok(true),
        Err(error) if error.kind() == ErrorKind::BrokenPipe => Ok(false),
        Err(error) => Err(Fatal::failed(format!("cannot write to standard output: {error}"))),
    }
}

/// A text without what would move a terminal's cursor or change the direction of the text: names
/// come from devices and from the network.
fn printable(text: &str) -> String {
    text.chars().map(printable_char).collect()
}

fn printable_char(char: char) -> char {
    let is_direction =
        matches!(char, '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}');
    if char.is_control() || is_direction { char::REPLACEMENT_CHARACTER } else { char }
}
