//! How the program ends: its exit codes, and errors that end it.

use std::fmt::Display;

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
    /// `--fail-on`: a node is down, or a link is bad, degraded or unknown. `--fail-on-unsafe`: a repair is not safe.
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
    pub(crate) fn failed_to<E: Display>(operation: &str) -> impl Fn(E) -> Self {
        move |error| Fatal::failed(format!("{operation}: {error}"))
    }
}
