//! `completions`: the completion script of a shell, from the flags of this program.

use std::io::Write;

use clap::{Args, CommandFactory, ValueEnum};
use clap_complete::generate;
use clap_complete::shells::{Bash, Fish, Zsh};

use super::{Cli, Fatal, closed_pipe_is_no_error};

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
    #[arg(value_name = "SHELL", hide_possible_values = true)]
    shell: Shell,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum Shell {
    Bash,
    Zsh,
    Fish,
}

/// Prints the script.
pub fn run(args: &CompletionsArgs) -> Result<(), Fatal> {
    let mut script = Vec::new();
    let (command, name) = (&mut Cli::command(), "fabric-exporter");
    match args.shell {
        Shell::Bash => generate(Bash, command, name, &mut script),
        Shell::Zsh => generate(Zsh, command, name, &mut script),
        Shell::Fish => generate(Fish, command, name, &mut script),
    }
    let mut stdout = std::io::stdout();
    closed_pipe_is_no_error(stdout.write_all(&script).and_then(|()| stdout.flush()))?;
    Ok(())
}
