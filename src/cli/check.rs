//! `check`: whether the files that a start would read are as they have to be.

use std::fmt::Display;
use std::io::Write;
use std::path::{Path, PathBuf};

use clap::Args;

use crate::config::Settings;
use crate::config::options::{Options, WebOptions};
use crate::fabric::label::count;
use crate::monitor::{m_keys_in, names_in, work_in};
use crate::web::inspection::{Inspection, inspect};

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

/// What was looked at, line by line.
#[derive(Default)]
struct Told {
    wrong: usize,
}

impl Told {
    fn result<E: Display>(&mut self, result: Result<String, E>) {
        match result {
            Ok(text) => line("ok", text),
            Err(error) => {
                self.wrong += 1;
                line("error", error);
            }
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
    let mut web = args.web_config_file.clone();
    if let Some(path) = &args.config_file {
        let options = Options {
            web: WebOptions { config_file: web.clone(), ..WebOptions::default() },
            ..Options::default()
        };
        match Settings::load(options, Some(path)) {
            Ok(settings) => {
                told.result::<String>(Ok(format!("config file {}", path.display())));
                named(&settings, &mut told);
                web = settings.web_config;
            }
            Err(error) => told.result(Err(error)),
        }
    }
    if let Some(path) = &web {
        web_config(path, &mut told);
    }
    match told.wrong {
        0 => Ok(()),
        1 => Err(Fatal::new(Exit::Usage, "1 file is not as it has to be; it stands above")),
        wrong => {
            let problem = format!("{wrong} files are not as they have to be; they stand above");
            Err(Fatal::new(Exit::Usage, problem))
        }
    }
}

/// The files that the config file names for its fabrics, each once.
fn named(settings: &Settings, told: &mut Told) {
    let files = |of: fn(&crate::config::FabricSettings) -> &Option<PathBuf>| {
        let mut files: Vec<&PathBuf> =
            settings.fabrics.iter().filter_map(|fabric| of(fabric).as_ref()).collect();
        files.sort();
        files.dedup();
        files
    };
    for path in files(|fabric| &fabric.node_name_map) {
        told.result(names_in(path).map(|names| {
            format!("node-name-map {}: {}", path.display(), count(names.len(), "name"))
        }));
    }
    for path in files(|fabric| &fabric.m_key_file) {
        told.result(m_keys_in(path).map(|file| {
            for warning in &file.warnings {
                line("warning", warning);
            }
            format!("M_Key file {}: {}", path.display(), count(file.keys.len(), "entry"))
        }));
    }
    for path in files(|fabric| &fabric.maintenance_file) {
        told.result(
            work_in(path).map(|work| {
                format!("maintenance file {}: {}", path.display(), count(work, "entry"))
            }),
        );
    }
}

fn web_config(path: &Path, told: &mut Told) {
    told.result(inspect(path).map(|Inspection { about, warnings }| {
        for warning in warnings {
            line("warning", format_args!("web config file {}: {warning}", path.display()));
        }
        format!("web config file {}: {about}", path.display())
    }));
}
