//! Arguments → verb → exit code.

use std::io::Write;
use std::process::ExitCode;

use clap::Parser;
use fabric_exporter::cli::{Cli, Verb, check, demo, doctor, history, links, serve};

fn main() -> ExitCode {
    let result = match Cli::parse().verb {
        Verb::Serve(args) => serve::run(args),
        Verb::Links(args) => links::run(args),
        Verb::History(args) => history::run(args),
        Verb::Check(args) => check::run(&args),
        Verb::Demo(args) => demo::run(args),
        Verb::Doctor(args) => match doctor::run(args) {
            // Its report is complete; there is no further message.
            Ok(exit_code) => return ExitCode::from(exit_code),
            Err(fatal) => Err(fatal),
        },
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(fatal) => {
            for line in fatal.message.lines() {
                // A closed pipe is no error: the exit code has the result.
                let _ = writeln!(std::io::stderr(), "fabric-exporter: {line}");
            }
            ExitCode::from(fatal.exit as u8)
        }
    }
}
