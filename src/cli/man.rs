//! `man`: the man pages, from the flags of this program. Packages are made with it, so it is not listed among the verbs.

use std::fs;
use std::path::{Path, PathBuf};

use clap::{Args, Command};

use crate::exit::Fatal;

/// The arguments of `man`.
#[derive(Args, Debug)]
pub struct ManArgs {
    /// Folder into which the pages of all verbs are written
    #[arg(value_name = "FOLDER")]
    folder: PathBuf,
}

/// Writes the pages of a command line.
pub fn run(args: &ManArgs, command: &Command) -> Result<(), Fatal> {
    write_pages(command, &args.folder).map_err(Fatal::failed_to("cannot write the man pages"))
}

fn write_pages(command: &Command, folder: &Path) -> std::io::Result<()> {
    fs::create_dir_all(folder)?;
    clap_mangen::generate_to(with_all_help(command.clone()), folder)?;
    for page in fs::read_dir(folder)? {
        let page = page?.path();
        fs::write(&page, with_examples_section(&fs::read_to_string(&page)?))?;
    }
    Ok(())
}

/// A command that shows all options also in its short help. Otherwise the man page of one that `-h` does not
/// show has no text, unless it has more than one paragraph.
fn with_all_help(command: Command) -> Command {
    command.mut_args(|arg| arg.hide_short_help(false)).mut_subcommands(with_all_help)
}

/// A man page whose section of examples has its name, and lines as they are written.
fn with_examples_section(page: &str) -> String {
    let Some((before, examples)) = page.split_once(".SH EXTRA\nExamples:\n") else {
        return page.replace(".SH EXTRA\n", ".SH NOTES\n");
    };
    let examples = match examples.split_once("\n\n") {
        Some((lines, after)) => format!("{lines}\n.fi\n\n{after}"),
        None => format!("{examples}.fi\n"),
    };
    format!("{before}.SH EXAMPLES\n.nf\n{examples}")
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::*;
    use crate::cli::Cli;

    #[test]
    fn each_verb_has_a_page_with_its_options_and_examples() {
        let folder = tempfile::tempdir().unwrap();
        write_pages(&Cli::command(), folder.path()).unwrap();
        let page = |name: &str| fs::read_to_string(folder.path().join(name)).unwrap();
        for verb in Cli::command().get_subcommands().filter(|verb| !verb.is_hide_set()) {
            let page = page(&format!("fabric-exporter-{}.1", verb.get_name()));
            assert!(!page.contains(".SH EXTRA"), "{page}");
        }
        assert!(!folder.path().join("fabric-exporter-man.1").exists());
        let completions = page("fabric-exporter-completions.1");
        let examples = ".SH EXAMPLES\n.nf\n  source <(fabric\\-exporter completions bash)\n";
        assert!(completions.contains(examples), "{completions}");
        let (_, after) = completions.split_once("\n.fi\n\n").unwrap();
        assert!(after.starts_with("The packages install"), "{after}");
        // An option that `serve -h` does not show.
        let option = "\\-\\-history.size\\fR";
        assert!(page("fabric-exporter-serve.1").contains(option));
    }
}
