//! The files that the settings name: what `check` reports, and what a start refuses.

use std::path::Path;

use crate::config::Settings;
use crate::monitor::{m_keys_in, maintenance_in, names_in};
use exporter_web::inspect;
use fabric_history::{HistoryError, ensure_place};
use fabric_observation::SiteFileKind;
use ib_mad::label::plural;
use site_config::ConfigError;
use site_config::file::{READ_TIMEOUT, with_timeout};

/// A file that was looked at.
#[derive(Debug)]
pub struct Examined {
    /// What it has; or what is wrong with it, a line each.
    pub result: Result<String, Vec<String>>,
    /// What is not wrong and yet not as somebody may expect it, a line each.
    pub warnings: Vec<String>,
}

/// Looks at all files that the settings name, whatever runs: site files, the web config file and the history's
/// path. Each has a time limit, for a file system may not answer.
pub fn examine(settings: &Settings) -> Vec<Examined> {
    let site = settings.site_files.iter().map(|(kind, path)| {
        let kind = *kind;
        in_time(kind.name(), path, move |path| site_file(kind, path))
    });
    let web = settings.web_config.iter().map(|path| web_config(path));
    let history = settings.history.iter().map(|history| {
        in_time("history", &history.file, |path| match ensure_place(path) {
            Err(error @ HistoryError::NotAFile { .. }) => Err(vec![error.to_string()]),
            _ => Ok((format!("history {}", path.display()), Vec::new())),
        })
    });
    site.chain(web).chain(history).collect()
}

/// Looks at a web config file.
pub fn web_config(path: &Path) -> Examined {
    in_time("web config file", path, |path| {
        let shown = path.display();
        let inspection = inspect(path).map_err(|error| error.lines().to_vec())?;
        let warn = |warning| format!("web config file {shown}: {warning}");
        let warnings = inspection.warnings.into_iter().map(warn).collect();
        Ok((format!("web config file {shown}: {}", inspection.about), warnings))
    })
}

type Look = Result<(String, Vec<String>), Vec<String>>;

fn in_time(kind: &str, path: &Path, look: impl FnOnce(&Path) -> Look + Send + 'static) -> Examined {
    let of = path.to_owned();
    let looked = with_timeout(READ_TIMEOUT, move || look(&of))
        .unwrap_or_else(|error| Err(ConfigError::in_file(kind, path, [error]).lines().to_vec()));
    match looked {
        Ok((about, warnings)) => Examined { result: Ok(about), warnings },
        Err(lines) => Examined { result: Err(lines), warnings: Vec::new() },
    }
}

fn site_file(kind: SiteFileKind, path: &Path) -> Look {
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
