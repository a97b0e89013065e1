//! `check`: validates the files that `serve` reads, and reports all errors.

use std::io::Write;
use std::path::{Path, PathBuf};

use clap::Args;

use crate::config::Settings;
use crate::config::options::{Options, WebOptions};
use crate::monitor::inspect_site_file;
use crate::notify::Notifications;
use display_text::plural;
use exporter_web::WebConfig;
use fabric_history::{HistoryError, ensure_place};
use fabric_observation::SiteFileKind;
use yaml_config::ConfigError;
use yaml_config::file::{READ_TIMEOUT, with_timeout};

use super::terminal::{Color, ColorChoice};
use crate::exit::Fatal;

const EXAMPLES: &str = "\
Examples:
  fabric-exporter check --config.file=/etc/fabric-exporter/config.yml
  fabric-exporter check --web.config.file=web.yml

Output: one line per file (ok) or problem (error, warning). The exit code is 2 if there are errors.";

/// The arguments of `check`.
#[derive(Args, Debug)]
#[command(after_long_help = EXAMPLES)]
#[group(required = true, multiple = true)]
pub struct CheckArgs {
    /// Config file of the "serve" command
    ///
    /// The files that it names are checked, too.
    #[arg(long = "config.file", value_name = "FILE")]
    config_file: Option<PathBuf>,
    /// Web config file: TLS, users, headers
    ///
    /// With --config.file: checked instead of the web config file that the config file names.
    #[arg(long = "web.config.file", value_name = "FILE")]
    web_config_file: Option<PathBuf>,
}

/// What a file has, and its warnings, a line each; or its errors.
pub type Checked = Result<(String, Vec<String>), ConfigError>;

const OK: (&str, Color) = ("ok", Color::Good);
const WARNING: (&str, Color) = ("warning", Color::Warning);
const ERROR: (&str, Color) = ("error", Color::Bad);

fn print<'a>(
    (kind, color): (&str, Color),
    lines: impl IntoIterator<Item = &'a String>,
    colors: bool,
) {
    let kind = Color::paint(Some(color), kind, colors);
    for line in lines {
        // A closed pipe is no error: the exit code has the result.
        let _ = writeln!(std::io::stdout(), "{kind} {line}");
    }
}

/// Checks all files, and ends with [`Exit::Usage`](crate::exit::Exit::Usage) if any has an error.
pub fn run(args: &CheckArgs, color: ColorChoice) -> Result<(), Fatal> {
    let colors = color.is_on();
    let web = args.web_config_file.as_deref();
    let mut errors = 0;
    let mut report = |checked: Checked| match checked {
        Ok((about, warnings)) => {
            print(WARNING, &warnings, colors);
            print(OK, [&about], colors);
        }
        Err(error) => {
            errors += error.lines().len();
            print(ERROR, error.lines(), colors);
        }
    };
    let settings = args.config_file.as_deref().and_then(|path| {
        let web = WebOptions { config_file: web.map(Path::to_owned), ..WebOptions::default() };
        let about = format!("config file {}", path.display());
        match Settings::load(Options { web, ..Options::default() }, Some(path)) {
            Ok(settings) => {
                report(Ok((about, Vec::new())));
                Some(settings)
            }
            Err(error) => {
                report(Err(error));
                if path.exists() {
                    let skipped = "skipped the files that this file names: fix its errors first";
                    print(WARNING, [&format!("{about}: {skipped}")], colors);
                }
                None
            }
        }
    });
    match settings {
        Some(settings) => check_files(&settings).into_iter().for_each(report),
        None => web.map(check_web_config).into_iter().for_each(report),
    }
    if errors == 0 {
        return Ok(());
    }
    Err(Fatal::usage(format!("check failed: {}", plural(errors, "error"))))
}

/// Checks all files that the settings name, also those that no collector needs: site files, the web
/// config file, the history's path, and the token and certificates for a webhook. Each has a time limit: a file
/// system may hang.
pub fn check_files(settings: &Settings) -> Vec<Checked> {
    let site = settings.site_files.iter().map(|(kind, path)| {
        let kind = *kind;
        with_limit(kind.name(), path, move |path| {
            let (entries, warnings) = inspect_site_file(kind, path)?;
            let entry = if kind == SiteFileKind::NodeNameMap { "name" } else { "entry" };
            let has = plural(entries, entry);
            Ok((format!("{} {}: {has}", kind.name(), path.display()), warnings))
        })
    });
    let web = settings.web_config.iter().map(|path| check_web_config(path));
    let history = settings.history.iter().map(|history| {
        with_limit("history", &history.file, |path| match ensure_place(path) {
            Err(error @ HistoryError::NotAFile { .. }) => Err(ConfigError::new(error.to_string())),
            _ => Ok((format!("history {}", path.display()), Vec::new())),
        })
    });
    let notify = settings.notify.iter().map(|notify| {
        let (name, notify) = (notify.webhook.name(), notify.clone());
        let checked =
            with_timeout(READ_TIMEOUT, move || Notifications::new(&notify, None).map(drop));
        match checked.unwrap_or_else(|error| Err(format!("--notify.webhook: {error}"))) {
            Ok(()) => Ok((format!("webhook {name}"), Vec::new())),
            Err(problem) => Err(ConfigError::new(problem)),
        }
    });
    site.chain(web).chain(history).chain(notify).collect()
}

fn check_web_config(path: &Path) -> Checked {
    with_limit("web config file", path, |path| {
        let config = WebConfig::load(path).1?;
        let line =
            |text: &dyn std::fmt::Display| format!("web config file {}: {text}", path.display());
        Ok((line(&config), config.warnings.iter().map(|warning| line(warning)).collect()))
    })
}

fn with_limit(
    kind: &str,
    path: &Path,
    check: impl FnOnce(&Path) -> Checked + Send + 'static,
) -> Checked {
    let of = path.to_owned();
    with_timeout(READ_TIMEOUT, move || check(&of))
        .unwrap_or_else(|error| Err(ConfigError::in_file(kind, path, [error])))
}
