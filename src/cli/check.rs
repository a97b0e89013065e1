//! `check`: validates the files that `serve` reads, and reports all mistakes.

use std::fmt::Display;
use std::io::Write;
use std::path::{Path, PathBuf};

use clap::Args;

use crate::monitor::{m_keys_in, maintenance_in, names_in};
use exporter_web::inspect;
use fabric_history::{HistoryError, ensure_place};
use fabric_observation::SiteFileKind;
use site_config::ConfigError;
use site_config::file::{READ_TIMEOUT, with_timeout};

use crate::config::Settings;
use crate::config::options::{Options, WebOptions};
use ib_mad::label::plural;

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

/// Prints results, and counts mistakes.
#[derive(Default)]
struct Reporter {
    mistakes: usize,
}

impl Reporter {
    fn file(&mut self, file: CheckedFile) {
        for warning in &file.warnings {
            line("warning", warning);
        }
        match file.result {
            Ok(about) => line("ok", about),
            Err(lines) => self.mistakes(&lines),
        }
    }

    fn mistakes(&mut self, lines: &[String]) {
        self.mistakes += lines.len();
        for problem in lines {
            line("error", problem);
        }
    }
}

fn line(kind: &str, text: impl Display) {
    // A closed pipe is no error: the exit code has the result.
    let _ = writeln!(std::io::stdout(), "{kind} {text}");
}

/// Checks all files, and ends with [`Exit::Usage`] if any has a mistake.
pub fn run(args: &CheckArgs) -> Result<(), Fatal> {
    let mut reporter = Reporter::default();
    let web = args.web_config_file.clone();
    if let Some(path) = &args.config_file {
        let options = Options {
            web: WebOptions { config_file: web.clone(), ..WebOptions::default() },
            ..Options::default()
        };
        match Settings::load(options, Some(path)) {
            Ok(settings) => {
                line("ok", format_args!("config file {}", path.display()));
                for file in check_files(&settings) {
                    reporter.file(file);
                }
            }
            Err(error) => {
                reporter.mistakes(error.lines());
                let path = path.display();
                line(
                    "warning",
                    format_args!(
                        "the files that {path} names were not checked: correct its mistakes first"
                    ),
                );
                if let Some(path) = &web {
                    reporter.file(check_web_config(path));
                }
            }
        }
    } else if let Some(path) = &web {
        reporter.file(check_web_config(path));
    }
    match reporter.mistakes {
        0 => Ok(()),
        mistakes => {
            let problem =
                format!("{} in the files; the lines above have each", plural(mistakes, "mistake"));
            Err(Fatal::new(Exit::Usage, problem))
        }
    }
}

/// The result of the check of a file.
#[derive(Debug)]
pub struct CheckedFile {
    /// What the file has, or its mistakes, a line each.
    pub result: Result<String, Vec<String>>,
    /// What is no mistake but may be unexpected, a line each.
    pub warnings: Vec<String>,
}

/// Checks all files that the settings name, also those that no collector needs: site files, the web
/// config file and the history's path. Each has a time limit: a file system may hang.
pub fn check_files(settings: &Settings) -> Vec<CheckedFile> {
    let site = settings.site_files.iter().map(|(kind, path)| {
        let kind = *kind;
        with_limit(kind.name(), path, move |path| site_file(kind, path))
    });
    let web = settings.web_config.iter().map(|path| check_web_config(path));
    let history = settings.history.iter().map(|history| {
        with_limit("history", &history.file, |path| match ensure_place(path) {
            Err(error @ HistoryError::NotAFile { .. }) => Err(vec![error.to_string()]),
            _ => Ok((format!("history {}", path.display()), Vec::new())),
        })
    });
    site.chain(web).chain(history).collect()
}

fn check_web_config(path: &Path) -> CheckedFile {
    with_limit("web config file", path, |path| {
        let shown = path.display();
        let inspection = inspect(path).map_err(|error| error.lines().to_vec())?;
        let warn = |warning| format!("web config file {shown}: {warning}");
        let warnings = inspection.warnings.into_iter().map(warn).collect();
        Ok((format!("web config file {shown}: {}", inspection.about), warnings))
    })
}

/// What a file has and its warnings, or its mistakes.
type Checked = Result<(String, Vec<String>), Vec<String>>;

fn with_limit(
    kind: &str,
    path: &Path,
    check: impl FnOnce(&Path) -> Checked + Send + 'static,
) -> CheckedFile {
    let of = path.to_owned();
    let checked = with_timeout(READ_TIMEOUT, move || check(&of))
        .unwrap_or_else(|error| Err(ConfigError::in_file(kind, path, [error]).lines().to_vec()));
    match checked {
        Ok((about, warnings)) => CheckedFile { result: Ok(about), warnings },
        Err(lines) => CheckedFile { result: Err(lines), warnings: Vec::new() },
    }
}

fn site_file(kind: SiteFileKind, path: &Path) -> Checked {
    let lines = |error: ConfigError| error.lines().to_vec();
    let (has, warnings) = match kind {
        SiteFileKind::NodeNameMap => {
            (plural(names_in(path).map_err(lines)?.len(), "name"), Vec::new())
        }
        SiteFileKind::MKey => {
            let file = m_keys_in(path).map_err(lines)?;
            (plural(file.keys.len(), "entry"), file.warnings)
        }
        SiteFileKind::Maintenance => {
            (plural(maintenance_in(path).map_err(lines)?.len(), "entry"), Vec::new())
        }
    };
    Ok((format!("{} {}: {has}", kind.name(), path.display()), warnings))
}
