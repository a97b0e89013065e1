//! The command line: one verb a file.

mod access;
pub mod check;
mod confined;
mod daemon;
pub mod demo;
pub mod doctor;
mod ending;
mod files;
pub mod history;
pub mod links;
pub mod serve;

use clap::{Parser, Subcommand};

/// Which cable is going bad: watches an InfiniBand fabric and tells Prometheus.
#[derive(Debug, Parser)]
#[command(name = "fabric-exporter", version, about, disable_help_subcommand = true)]
pub struct Cli {
    /// What to do.
    #[command(subcommand)]
    pub verb: Verb,
}

/// What the program can do.
#[derive(Debug, Subcommand)]
pub enum Verb {
    /// Poll the fabric and serve its metrics over HTTP
    Serve(serve::ServeArgs),
    /// List the fabric's cables, the worst first: sweep once, or ask an exporter that is running
    Links(links::LinksArgs),
    /// Tell what is missing on this host for the exporter to work, and what mends it
    Doctor(doctor::DoctorArgs),
    /// Tell what an exporter has recorded: what happened, and when
    History(history::HistoryArgs),
    /// Look whether the config file and the web config file are as they have to be
    Check(check::CheckArgs),
    /// Serve a simulated fabric with troubles in it; no InfiniBand needed
    Demo(demo::DemoArgs),
}

/// What the program's exit code says. 0 is a clean end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Exit {
    /// Something went wrong while it ran.
    Failed = 1,
    /// The command line or a file that it names is wrong; clap's own code for it, too.
    Usage = 2,
    /// The fabric cannot be asked from this host: no device, no permission, no link.
    NoDevice = 3,
    /// The address cannot be listened on.
    NoListener = 4,
    /// `doctor`: it works, with something missing or slower than it could be.
    Wanting = 5,
    /// `doctor`: something has to be mended for the exporter to work.
    Sick = 6,
}

/// An error that ends the program: a line for each thing that is wrong, mostly one, and its code.
#[derive(Debug)]
pub struct Fatal {
    /// What the program exits with.
    pub exit: Exit,
    /// What went wrong and what to do about it.
    pub message: String,
}

impl Fatal {
    /// A fatal error, told in its own words.
    pub fn new(exit: Exit, error: impl std::fmt::Display) -> Self {
        Fatal { exit, message: error.to_string() }
    }
}
