//! `check`: validates the files that `serve` reads, and reports all errors.

use std::fmt::Display;
use std::io::Write;
use std::path::{Path, PathBuf};

use clap::Args;

use crate::config::Settings;
use crate::config::options::{Options, WebOptions};
use crate::monitor::{m_keys_in, maintenance_in, names_in};
use exporter_web::inspect;
use fabric_history::{HistoryError, ensure_place};
use fabric_observation::SiteFileKind;
use ib_mad::label::plural;
use site_config::ConfigError;
use site_config::file::{READ_TIMEOUT, with_timeout};

use super::Fatal;

const EXAMPLES: &str = "\
Examples:
  fabric-exporter check --config.file=/etc/fabric-exporter/config.yml
  fabric-exporter check --web.config.file=web.yml

Output: one line per file (ok) or problem (error, warning). The exit code is 2 after an error.";

/// The arguments of `check`.
#[derive(Args, Debug)]
#[command(after_long_help = EXAMPLES)]
#[group(required = true, multiple = true)]
pub struct CheckArgs {
    /// Config file of serve
    ///
    /// The files that it names are checked, too.
    #[arg(long = "config.file", value_name = "FILE")]
    config_file: Option<PathBuf>,
    /// Web config file: TLS, users, headers
    ///
    /// Instead of the one that the config file names.
    #[arg(long = "web.config.file", value_name = "FILE")]
    web_config_file: Option<PathBuf>,
}

/// What a file has, and its warnings; or its errors. A line each.
pub type Checked = Result<(String, Vec<String>), Vec<String>>;

fn line(kind: &str, text: impl Display) {
    // A closed pipe is no error: the exit code has the result.
    let _ = writeln!(std::io::stdout(), "{kind} {text}");
}

/// Checks all files, and ends with [`Exit::Usage`](super::Exit::Usage) if any has an error.
pub fn run(args: &CheckArgs) -> Result<(), Fatal> {
    let web = args.web_config_file.clone();
    let check_web = || web.iter().map(|path| check_web_config(path)).collect();
    let mut errors = 0;
    let mut report_errors = |lines: &[String]| {
        errors += lines.len();
        for error in lines {
            line("error", error);
        }
    };
    let files: Vec<Checked> = if let Some(path) = &args.config_file {
        let options = Options {
            web: WebOptions { config_file: web.clone(), ..WebOptions::default() },
            ..Options::default()
        };
        let shown = path.display();
        match Settings::load(options, Some(path)) {
            Ok(settings) => {
                line("ok", format_args!("config file {shown}"));
                check_files(&settings)
            }
            Err(error) => {
                report_errors(error.lines());
                if path.exists() {
                    let skipped = "skipped the files that this file names: fix its errors first";
                    line("warning", format_args!("config file {shown}: {skipped}"));
                }
                check_web()
            }
        }
    } else {
        check_web()
    };
    for file in files {
        match file {
            Ok((about, warnings)) => {
                for warning in warnings {
                    line("warning", warning);
                }
                line("ok", about);
            }
            Err(lines) => report_errors(&lines),
        }
    }
    if errors == 0 {
        return Ok(());
    }
    Err(Fatal::usage(format!("check failed: {}", plural(errors, "error"))))
}

/// Checks all files that the settings name, also those that no collector needs: site files, the web
/// config file and the history's path. Each has a time limit: a file system may hang.
pub fn check_files(settings: &Settings) -> Vec<Checked> {
    let site = settings.site_files.iter().map(|(kind, path)| {
        let kind = *kind;
        with_limit(kind.name(), path, move |path| {
            let (entries, warnings) =
                inspect_site_file(kind, path).map_err(|error| error.lines().to_vec())?;
            let entry = if kind == SiteFileKind::NodeNameMap { "name" } else { "entry" };
            let has = plural(entries, entry);
            Ok((format!("{} {}: {has}", kind.name(), path.display()), warnings))
        })
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

/// How many entries a site file has, and warnings about it.
pub fn inspect_site_file(
    kind: SiteFileKind,
    path: &Path,
) -> Result<(usize, Vec<String>), ConfigError> {
    Ok(match kind {
        SiteFileKind::NodeNameMap => (names_in(path)?.len(), Vec::new()),
        SiteFileKind::MKey => {
            let file = m_keys_in(path)?;
            (file.keys.len(), file.warnings)
        }
        SiteFileKind::Maintenance => (maintenance_in(path)?.len(), Vec::new()),
    })
}

fn check_web_config(path: &Path) -> Checked {
    with_limit("web config file", path, |path| {
        let shown = path.display();
        let inspection = inspect(path).map_err(|error| error.lines().to_vec())?;
        let warn = |warning| format!("web config file {shown}: {warning}");
        let warnings = inspection.warnings.into_iter().map(warn).collect();
        Ok((format!("web config file {shown}: {}", inspection.about), warnings))
    })
}

fn with_limit(
    kind: &str,
    path: &Path,
    check: impl FnOnce(&Path) -> Checked + Send + 'static,
) -> Checked {
    let of = path.to_owned();
    with_timeout(READ_TIMEOUT, move || check(&of))
        .unwrap_or_else(|error| Err(ConfigError::in_file(kind, path, [error]).lines().to_vec()))
}
