//! `completions`: the completion script of a shell, from the flags of this program.

use clap::builder::{PossibleValuesParser, TypedValueParser};
use clap::{Args, Command};
use clap_complete::{Shell, generate};

use crate::cli::output::print;
use crate::exit::Fatal;

const EXAMPLES: &str = "\
Examples:
  source <(fabric-exporter completions bash)
  fabric-exporter completions zsh > ~/.zfunc/_fabric-exporter
  fabric-exporter completions fish > ~/.config/fish/completions/fabric-exporter.fish

The packages install the scripts of bash, zsh and fish.";

/// The arguments of `completions`.
#[derive(Args, Debug)]
#[command(after_long_help = EXAMPLES)]
pub struct CompletionsArgs {
    /// Shell: bash, zsh or fish
    #[arg(value_name = "SHELL", hide_possible_values = true, value_parser = shells())]
    shell: Shell,
}

fn shells() -> impl TypedValueParser<Value = Shell> {
    PossibleValuesParser::new(["bash", "zsh", "fish"]).try_map(|name| name.parse::<Shell>())
}

/// The command without hidden verbs, which clap would offer.
fn visible(command: &Command) -> Command {
    let verbs = command.get_subcommands().filter(|verb| !verb.is_hide_set());
    Command::new("fabric-exporter")
        .version(env!("CARGO_PKG_VERSION"))
        .disable_help_subcommand(true)
        .args(command.get_arguments().cloned())
        .subcommands(verbs.cloned())
}

/// Prints the script of a command line.
pub fn run(args: &CompletionsArgs, command: &Command) -> Result<(), Fatal> {
    let mut script = Vec::new();
    generate(args.shell, &mut visible(command), "fabric-exporter", &mut script);
    print(&script)?;
    Ok(())
}
