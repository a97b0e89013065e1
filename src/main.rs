//! Arguments → verb → exit code.

use std::process::ExitCode;
use std::sync::Arc;

use clap::{CommandFactory, Parser};
use fabric_exporter::cli::{
    Cli, Verb, check, completions, demo, doctor, history, leftovers, links, man, nodes, ports,
    serve, terminal, top,
};
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
    if arguments.next().is_some_and(|name| name == opener::NAME) {
        return opener::run(arguments.next().as_deref());
    }
    ignore_file_size_signal();
    resolver::use_hosts_file_and_dns();
    let Cli { color, verb } = Cli::parse();
    let color = color.unwrap_or_default();
    // These end by themselves. No thread may be started before the sandbox of the first two.
    if !matches!(verb, Verb::Serve(_) | Verb::Demo(_) | Verb::Top(_)) {
        terminal::hang_up_when_gone();
    }
    let result = match verb {
        Verb::Serve(args) => serve::run(args),
        Verb::Links(args) => links::run(&args, color),
        Verb::Nodes(args) => nodes::run(&args, color),
        Verb::Ports(args) => ports::run(&args, color),
        Verb::History(args) => history::run(args, color),
        Verb::Check(args) => check::run(&args, color),
        Verb::Top(args) => top::run(args, color),
        Verb::Completions(args) => completions::run(&args, &Cli::command()),
        Verb::Man(args) => man::run(&args, &Cli::command()),
        Verb::Demo(args) => demo::run(args),
        Verb::Doctor(args) => match doctor::run(args, color) {
            // Its report is complete; there is no further message.
            Ok(exit_code) => return ExitCode::from(exit_code),
            Err(fatal) => Err(fatal),
        },
    };
    let (error, exit_code) = match result {
        Ok(()) => (String::new(), ExitCode::SUCCESS),
        Err(fatal) => {
            let lines = fatal.message.lines().map(|line| format!("fabric-exporter: {line}\n"));
            (lines.collect(), ExitCode::from(fatal.exit as u8))
        }
    };
    leftovers::remove_all();
    log::finish(&error);
    exit_code
}
