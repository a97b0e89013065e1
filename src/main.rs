//! Arguments → verb → exit code.

use std::process::ExitCode;
use std::sync::Arc;

use clap::Parser;
use fabric_exporter::cli::{Cli, check_node, leftovers};
use fabric_exporter::jobs::helper;
use fabric_exporter::sandbox::opener;
use fabric_exporter::{log, resolver};

/// Lets a write beyond the limit of `ulimit -f` fail, as on a full disk, instead of ending the program. A handler and
/// not `SIG_IGN`, which programs that we start would inherit.
fn ignore_file_size_signal() {
    // Without the handler everything else works.
    let _ = signal_hook::flag::register(signal_hook::consts::SIGXFSZ, Arc::default());
}

fn main() -> ExitCode {
    let mut arguments = std::env::args_os();
    match arguments.next() {
        Some(name) if name == opener::NAME => return opener::run(arguments.next().as_deref()),
        Some(name) if name == helper::NAME => return helper::run(arguments),
        _ => {}
    }
    ignore_file_size_signal();
    resolver::use_hosts_file_and_dns();
    let cli = Cli::try_parse().unwrap_or_else(|error| {
        let _ = error.print();
        // Of Nagios 2 is critical.
        let is_unknown = error.use_stderr() && check_node::is_nagios(std::env::args_os());
        let code = if is_unknown { check_node::NAGIOS_UNKNOWN.into() } else { error.exit_code() };
        std::process::exit(code)
    });
    let (error, exit_code) = match cli.run() {
        Ok(exit_code) => (String::new(), exit_code),
        Err(fatal) => {
            let lines = fatal.message.lines().map(|line| format!("fabric-exporter: {line}\n"));
            (lines.collect(), ExitCode::from(fatal.exit as u8))
        }
    };
    leftovers::remove_all();
    log::finish(&error);
    exit_code
}
