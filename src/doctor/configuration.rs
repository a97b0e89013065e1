//! The exporter's own settings and files: whether `serve` would start with them, and could record.

use std::path::{Path, PathBuf};

use rustix::fs::{Access, AtFlags, CWD, accessat};

use crate::config::Settings;
use crate::monitor::{m_keys_in, maintenance_in, names_in};
use exporter_web::inspect;
use fabric_history::file::free;
use fabric_history::settings::HistorySettings;
use fabric_observation::SiteFileKind;

use super::finding::{Finding, Subject};

const SUBJECT: Subject = Subject::Configuration;

/// The settings, and the config file that they come from.
#[derive(Clone, Debug)]
pub struct Configuration {
    /// What `serve` would run with; the flags and defaults, if the file cannot be used.
    pub settings: Settings,
    /// `--config.file`.
    pub file: Option<PathBuf>,
    /// Why the file cannot be used.
    pub problem: Option<String>,
}

pub fn check(configuration: &Configuration) -> Vec<Finding> {
    let mut findings = vec![check_config_file(configuration)];
    findings
        .extend(configuration.settings.web_config.iter().flat_map(|path| check_web_config(path)));
    findings.extend(check_site_files(&configuration.settings));
    findings.extend(configuration.settings.history.iter().flat_map(check_history));
    findings
}

fn check_config_file(configuration: &Configuration) -> Finding {
    let what = "--config.file";
    let shown =
        configuration.file.as_ref().map(|path| path.display().to_string()).unwrap_or_default();
    match &configuration.problem {
        Some(problem) => Finding::bad(SUBJECT, what, problem)
            .wanted(
                "a file that loads: serve ends with it, and the other checks go by the flags alone",
            )
            .mend(format!("edit {shown}; docs/configuration.md has each key")),
        None if configuration.file.is_none() => {
            Finding::ok(SUBJECT, what, "none: flags and defaults")
        }
        None => {
            let fabrics = configuration.settings.fabrics.len();
            Finding::ok(SUBJECT, what, format!("{shown} loads; fabrics to ask: {fabrics}"))
        }
    }
}

/// The web config file, with what it names.
fn check_web_config(path: &Path) -> Vec<Finding> {
    let what = "--web.config.file";
    let shown = path.display();
    match inspect(path) {
        Ok(inspection) => {
            let warned = inspection.warnings.into_iter().map(|warning| {
                Finding::warn(SUBJECT, what, format!("{shown}: {warning}")).mend(format!(
                    "edit {shown}, or renew what it names; docs/security.md has each key"
                ))
            });
            let loads = Finding::ok(SUBJECT, what, format!("{shown}: {}", inspection.about));
            std::iter::once(loads).chain(warned).collect()
        }
        Err(error) => vec![
            Finding::bad(SUBJECT, what, error.lines().join("; "))
                .wanted("a file that the exporter's user can read: serve ends without it")
                .mend(format!("edit {shown}; docs/security.md has each key")),
        ],
    }
}

/// The files that the settings of fabrics name.
fn check_site_files(settings: &Settings) -> Vec<Finding> {
    let files = settings.site_files.iter().filter(|_| !settings.fabrics.is_empty());
    files.flat_map(|(kind, path)| check_site_file(*kind, path)).collect()
}

fn check_site_file(kind: SiteFileKind, path: &Path) -> Vec<Finding> {
    let entries = |count| (count, Vec::new());
    let (what, read) = match kind {
        SiteFileKind::NodeNameMap => {
            ("--fabric.node-name-map", names_in(path).map(|names| entries(names.len())))
        }
        SiteFileKind::MKey => {
            let read = m_keys_in(path).map(|file| (file.keys.len(), file.warnings));
            ("--fabric.m-key-file", read)
        }
        SiteFileKind::Maintenance => {
            ("--health.maintenance-file", maintenance_in(path).map(|work| entries(work.len())))
        }
    };
    let shown = path.display();
    let (entries, warnings) = match read {
        Ok(read) => read,
        Err(error) => {
            let finding = Finding::bad(SUBJECT, what, error.lines().join("; "))
                .wanted("a file that the exporter's user can read: serve ends without it")
                .mend(format!("ls -l {shown}; edit it, or leave the flag out"));
            return vec![finding];
        }
    };
    let mut findings = vec![Finding::ok(SUBJECT, what, format!("{shown} has {entries} entries"))];
    findings.extend(warnings.into_iter().map(|warning| {
        Finding::warn(SUBJECT, what, warning)
            .wanted("a file that the exporter alone can read, with all that its keys need")
            .mend("chgrp fabric-exporter and chmod 0640 the file; docs/security.md")
    }));
    findings
}

/// Whether the effective user may write to a file or directory.
fn is_writable(path: &Path) -> rustix::io::Result<()> {
    accessat(CWD, path, Access::WRITE_OK, AtFlags::EACCESS)
}

fn check_history(history: &HistorySettings) -> Vec<Finding> {
    let what = "--history.file";
    let path = &history.file;
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
    let folder = folder.unwrap_or(Path::new("."));
    let about = match std::fs::metadata(path) {
        Ok(about) if about.is_file() => Some(about),
        Ok(_) => {
            let found = format!("{} is no file", path.display());
            return vec![Finding::bad(SUBJECT, what, found).mend("name a file that may be made")];
        }
        Err(_) => None,
    };
    // SQLite creates files beside it.
    let mut paths = vec![folder];
    paths.extend(about.is_some().then_some(&**path));
    for path in paths {
        if let Err(error) = is_writable(path) {
            let shown = path.display();
            let mend = if path.exists() {
                format!("chown <the exporter's user> {shown}; with systemd: StateDirectory=")
            } else {
                format!("mkdir -p {shown}")
            };
            let found = format!("cannot be written to: {shown}: {error}");
            return vec![
                Finding::bad(SUBJECT, what, found)
                    .wanted(
                        "a folder that the exporter's user may write to: else nothing is recorded",
                    )
                    .mend(mend),
            ];
        }
    }
    let size = about.map_or(0, |about| about.len());
    let room = match free(path) {
        Ok(room) => room,
        Err(error) => return vec![Finding::warn(SUBJECT, what, error.to_string())],
    };
    vec![room_for(history, size, room)]
}

fn mib(bytes: u64) -> u64 {
    bytes >> 20
}

/// Whether the disk has space for the largest size of the file and for the reserve of the host.
fn room_for(history: &HistorySettings, size: u64, room: u64) -> Finding {
    let (shown, least) = (history.file.display(), history.least_free);
    let what = "--history.file";
    let found = format!("{shown}: {} MiB, and {} MiB of its disk are free", mib(size), mib(room));
    let mend = "make room on the disk, or lower --history.size";
    if room < least {
        return Finding::bad(SUBJECT, what, found)
            .wanted(format!("{} MiB free, below which nothing is written", mib(least)))
            .mend(mend);
    }
    let grows = history.size.saturating_sub(size);
    if room - least < grows {
        return Finding::warn(SUBJECT, what, found)
            .wanted(format!(
                "{} MiB free: the file may grow to {} MiB, and {} MiB are left alone",
                mib(grows.saturating_add(least)),
                mib(history.size),
                mib(least)
            ))
            .mend(mend);
    }
    Finding::ok(SUBJECT, what, found)
}

#[cfg(test)]
mod tests {
    use super::super::finding::Level;
    use super::*;

    #[test]
    fn room_includes_growth_of_the_file() {
        const MIB: u64 = 1 << 20;
        let history = HistorySettings::new("/var/lib/history.db".into());
        for (size, room, level) in [
            (0, 2000 * MIB, Level::Ok),
            (0, 1000 * MIB, Level::Warn),
            (900 * MIB, 1000 * MIB, Level::Ok),
            (5000 * MIB, 300 * MIB, Level::Ok),
            (5000 * MIB, 200 * MIB, Level::Bad),
        ] {
            assert_eq!(room_for(&history, size, room).level, level, "{size} {room}");
        }
    }
}
