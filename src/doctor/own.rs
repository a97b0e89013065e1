//! The exporter's own settings and files: would `serve` start with them, and could it record?

use std::path::{Path, PathBuf};

use rustix::fs::{Access, AtFlags, CWD, accessat};

use crate::config::{FabricSettings, Settings};
use crate::monitor::{m_keys_in, maintenance_in, names_in};
use exporter_web::inspection::inspect;
use fabric_history::file::free;
use fabric_history::settings::HistorySettings;

use super::finding::{Finding, Subject};

const SUBJECT: Subject = Subject::Configuration;

const M_KEY_FILE: &str = "--fabric.m-key-file";

/// The settings as they are, and what is wrong with the file that they should have come from.
#[derive(Clone, Debug)]
pub struct Own {
    /// What `serve` would run with; the defaults and the flags, if the file cannot be used.
    pub settings: Settings,
    /// `--config.file`.
    pub file: Option<PathBuf>,
    /// Why it cannot be used.
    pub problem: Option<String>,
}

/// Looks at settings and files.
pub fn check(own: &Own) -> Vec<Finding> {
    let mut findings = vec![of_file(own)];
    findings.extend(own.settings.web_config.iter().flat_map(|path| of_web_config(path)));
    let fabrics = &own.settings.fabrics;
    findings.extend(of_site_file(fabrics, "--fabric.node-name-map", |fabric| {
        let path = fabric.node_name_map.as_ref()?;
        let read = names_in(path);
        Some((
            path.clone(),
            read.map(|names| names.len()).map_err(|error| error.lines().join("; ")),
        ))
    }));
    findings.extend(of_site_file(fabrics, M_KEY_FILE, |fabric| {
        let path = fabric.m_key_file.as_ref()?;
        let read = m_keys_in(path);
        Some((
            path.clone(),
            read.map(|file| file.keys.len()).map_err(|error| error.lines().join("; ")),
        ))
    }));
    findings.extend(of_m_key_files(fabrics));
    findings.extend(of_site_file(fabrics, "--health.maintenance-file", |fabric| {
        let path = fabric.maintenance_file.as_ref()?;
        let read = maintenance_in(path);
        Some((path.clone(), read.map(|work| work.len()).map_err(|error| error.lines().join("; "))))
    }));
    findings.extend(own.settings.history.iter().flat_map(of_history));
    findings
}

fn of_file(own: &Own) -> Finding {
    let what = "--config.file";
    let shown = own.file.as_ref().map(|path| path.display().to_string()).unwrap_or_default();
    match &own.problem {
        Some(problem) => Finding::bad(SUBJECT, what, problem)
            .wanted(
                "a file that loads: serve ends with it, and the other checks go by the flags alone",
            )
            .mend(format!("edit {shown}; docs/configuration.md has each key")),
        None if own.file.is_none() => Finding::ok(SUBJECT, what, "none: flags and defaults"),
        None => {
            let fabrics = own.settings.fabrics.len();
            Finding::ok(SUBJECT, what, format!("{shown} loads; fabrics to ask: {fabrics}"))
        }
    }
}

/// The web config file, with what it names.
fn of_web_config(path: &Path) -> Vec<Finding> {
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

/// What is to be said of M_Key files that can be used.
fn of_m_key_files(fabrics: &[FabricSettings]) -> Vec<Finding> {
    let mut paths: Vec<&PathBuf> = fabrics.iter().filter_map(|it| it.m_key_file.as_ref()).collect();
    paths.sort();
    paths.dedup();
    let files = paths.into_iter().filter_map(|path| m_keys_in(path).ok());
    let warnings = files.flat_map(|file| file.warnings);
    warnings
        .map(|warning| {
            Finding::warn(SUBJECT, M_KEY_FILE, warning)
                .wanted("a file that the exporter alone can read, with all that its keys need")
                .mend("chgrp fabric-exporter and chmod 0640 the file; docs/security.md")
        })
        .collect()
}

/// A file that several fabrics may name, each of them told of once.
fn of_site_file(
    fabrics: &[FabricSettings],
    what: &str,
    read: impl Fn(&FabricSettings) -> Option<(PathBuf, Result<usize, String>)>,
) -> Vec<Finding> {
    let mut told = Vec::new();
    let mut findings = Vec::new();
    for (path, read) in fabrics.iter().filter_map(read) {
        if told.contains(&path) {
            continue;
        }
        let shown = path.display().to_string();
        findings.push(match read {
            Ok(entries) => Finding::ok(SUBJECT, what, format!("{shown} has {entries} entries")),
            Err(problem) => Finding::bad(SUBJECT, what, problem)
                .wanted("a file that the exporter's user can read: serve ends without it")
                .mend(format!("ls -l {shown}; edit it, or leave the flag out")),
        });
        told.push(path);
    }
    findings
}

/// Whether this process may write there, by its effective user.
fn is_writable(path: &Path) -> rustix::io::Result<()> {
    accessat(CWD, path, Access::WRITE_OK, AtFlags::EACCESS)
}

fn of_history(history: &HistorySettings) -> Vec<Finding> {
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
    // SQLite makes files of its own beside it.
    let mut places = vec![folder];
    places.extend(about.is_some().then_some(&**path));
    for place in places {
        if let Err(error) = is_writable(place) {
            let shown = place.display();
            let mend = if place.exists() {
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
    let has = about.map_or(0, |about| about.len());
    let room = match free(path) {
        Ok(room) => room,
        Err(error) => return vec![Finding::warn(SUBJECT, what, error.to_string())],
    };
    vec![room_for(history, has, room)]
}

fn mib(bytes: u64) -> u64 {
    bytes >> 20
}

/// Whether the disk has room for what the file may grow to, and for what is left to the host.
fn room_for(history: &HistorySettings, has: u64, room: u64) -> Finding {
    let (shown, least) = (history.file.display(), history.least_free);
    let what = "--history.file";
    let found = format!("{shown}: {} MiB, and {} MiB of its disk are free", mib(has), mib(room));
    let mend = "make room on the disk, or lower --history.size";
    if room < least {
        return Finding::bad(SUBJECT, what, found)
            .wanted(format!("{} MiB free, below which nothing is written", mib(least)))
            .mend(mend);
    }
    let grows = history.size.saturating_sub(has);
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
    fn room_is_for_what_the_file_may_become() {
        const MIB: u64 = 1 << 20;
        let history = HistorySettings::new("/var/lib/history.db".into());
        for (has, room, level) in [
            (0, 2000 * MIB, Level::Ok),
            (0, 1000 * MIB, Level::Warn),
            (900 * MIB, 1000 * MIB, Level::Ok),
            (5000 * MIB, 300 * MIB, Level::Ok),
            (5000 * MIB, 200 * MIB, Level::Bad),
        ] {
            assert_eq!(room_for(&history, has, room).level, level, "{has} {room}");
        }
    }
}
