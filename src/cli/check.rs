//! `check`: whether the files that a start would read are as they have to be. All mistakes are reported.

use std::fmt::Display;
use std::io::Write;
use std::path::PathBuf;

use clap::Args;

use crate::config::Settings;
use crate::config::options::{Options, WebOptions};
use ib_mad::label::plural;

use super::files::{self, Examined};
use super::{Exit, Fatal};

/// The arguments of `check`.
#[derive(Args, Debug)]
#[group(required = true, multiple = true)]
pub struct CheckArgs {
    /// YAML file with the settings of `serve`; files that it names are looked at, too
    #[arg(long = "config.file", value_name = "FILE")]
    config_file: Option<PathBuf>,
    /// YAML file with TLS, logins and headers
    #[arg(long = "web.config.file", value_name = "FILE")]
    web_config_file: Option<PathBuf>,
}

/// How many mistakes were found so far.
#[derive(Default)]
struct Told {
    wrong: usize,
}

impl Told {
    fn file(&mut self, file: Examined) {
        for warning in &file.warnings {
            line("warning", warning);
        }
        match file.result {
            Ok(about) => line("ok", about),
            Err(lines) => self.wrong(&lines),
        }
    }

    fn wrong(&mut self, lines: &[String]) {
        self.wrong += lines.len();
        for problem in lines {
            line("error", problem);
        }
    }
}

fn line(kind: &str, text: impl Display) {
    // Whoever reads has enough: the exit code says the rest.
    let _ = writeln!(std::io::stdout(), "{kind} {text}");
}

/// Looks at all files, and ends with [`Exit::Usage`] if anything is wrong with any.
pub fn run(args: &CheckArgs) -> Result<(), Fatal> {
    let mut told = Told::default();
    let web = args.web_config_file.clone();
    if let Some(path) = &args.config_file {
        let options = Options {
            web: WebOptions { config_file: web.clone(), ..WebOptions::default() },
            ..Options::default()
        };
        match Settings::load(options, Some(path)) {
            Ok(settings) => {
                line("ok", format_args!("config file {}", path.display()));
                for file in files::examine(&settings) {
                    told.file(file);
                }
            }
            Err(error) => {
                told.wrong(error.lines());
                let path = path.display();
                line(
                    "warning",
                    format_args!(
                        "the files that {path} names were not checked: correct its mistakes first"
                    ),
                );
                if let Some(path) = &web {
                    told.file(files::web_config(path));
                }
            }
        }
    } else if let Some(path) = &web {
        told.file(files::web_config(path));
    }
    match told.wrong {
        0 => Ok(()),
        wrong => {
            let problem =
                format!("{} in the files; the lines above have each", plural(wrong, "mistake"));
            Err(Fatal::new(Exit::Usage, problem))
        }
    }
}
