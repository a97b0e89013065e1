//! All that a user can set, validated once.
//!
//! A setting is a flag and a key of the config file at once: both come from one list
//! ([`options`]), and `--fabric.interval` is `interval` in the section `fabric`. Flags win over the
//! file, an entry of the file's list of fabrics over its section `fabric`, and all over the
//! defaults.

mod fabric;
mod health;
mod history;
mod host;
pub mod options;
mod web;

pub use fabric::FabricSettings;
pub use host::HostSettings;
pub use web::TAKEN;

use std::net::SocketAddr;
use std::path::{Path, PathBuf};

use serde::Deserialize;

use fabric_history::settings::{HOST_FABRIC, HistorySettings};
use fabric_observation::SiteFileKind;
use options::{
    CollectorOptions, FabricOptions, HealthOptions, HistoryOptions, HostOptions, LogFormat,
    LogLevel, LogOptions, Options, PathOptions, ProcessOptions, WebOptions,
};
use site_config::mistakes::Mistakes;
use site_config::{ConfigError, file, yaml};

/// Settings that no part of the program has to check again.
#[derive(Clone, Debug)]
pub struct Settings {
    /// Where to listen: of each name all addresses that it has.
    pub listen: Vec<Vec<SocketAddr>>,
    /// To listen on the sockets that systemd hands over instead.
    pub systemd_socket: bool,
    /// To give up, once all is open, what is not needed.
    pub confine: bool,
    /// Where the metrics are: `/metrics`.
    pub telemetry_path: String,
    /// The file that says who comes in, if not everybody does.
    pub web_config: Option<PathBuf>,
    /// Where sysfs is mounted.
    pub sysfs: PathBuf,
    /// Where procfs is mounted.
    pub procfs: PathBuf,
    /// What is logged.
    pub log_level: LogLevel,
    /// How it is logged.
    pub log_format: LogFormat,
    /// The fabrics to watch; none if the fabric is to be left alone.
    pub fabrics: Vec<FabricSettings>,
    /// The files that the settings of fabrics name, each once: also where no fabric is watched.
    pub site_files: Vec<(SiteFileKind, PathBuf)>,
    /// How this host's own devices are to be read, if they are.
    pub host: Option<HostSettings>,
    /// What is recorded, if anything is.
    pub history: Option<HistorySettings>,
}

/// The config file: the flags' sections, and a list of fabrics.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct File {
    web: WebOptions,
    log: LogOptions,
    process: ProcessOptions,
    path: PathOptions,
    collector: CollectorOptions,
    host: HostOptions,
    health: HealthOptions,
    history: HistoryOptions,
    fabric: FabricOptions,
    fabrics: Vec<FabricOptions>,
}

impl Settings {
    /// Brings flags and the file that they name together.
    pub fn load(flags: Options, file: Option<&Path>) -> Result<Settings, ConfigError> {
        let Some(path) = file else { return Settings::merge(flags, "", "") };
        let name = path.display().to_string();
        let unreadable =
            |problem: String| ConfigError::new(format!("config file {name}: {problem}"));
        let opened = path.to_owned();
        let read = move || file::read(&opened, file::MOST_BYTES);
        let bytes = file::within(file::PATIENCE, read)
            .and_then(|bytes| bytes)
            .map_err(|error| unreadable(error.to_string()))?;
        let text = String::from_utf8(bytes).map_err(|error| unreadable(yaml::not_utf8(&error)))?;
        Settings::merge(flags, &text, &name)
    }

    fn merge(flags: Options, text: &str, path: &str) -> Result<Settings, ConfigError> {
        let yaml::Reading { value: file, mistakes, document } = yaml::read::<File>(text);
        let mut mistakes = Mistakes::new(path, document, mistakes);
        // Each value by itself, of the flags and of the file: whoever wrote it is told so.
        for (section, in_flags, in_file) in [
            ("web", flags.web.mistakes(), file.web.mistakes()),
            ("host", flags.host.mistakes(), file.host.mistakes()),
            ("health", flags.health.mistakes(), file.health.mistakes()),
            ("history", flags.history.mistakes(), file.history.mistakes()),
            ("fabric", flags.fabric.mistakes(), file.fabric.mistakes()),
        ] {
            mistakes.in_flags(section, in_flags);
            mistakes.in_file(section, in_file);
        }
        for (index, fabric) in file.fabrics.iter().enumerate() {
            mistakes.in_file(&format!("fabrics[{index}]"), fabric.mistakes());
        }
        let listen = web::listen(&flags.web, &file.web, &mut mistakes);
        // What does not go together would only confuse while values are wrong.
        mistakes.end()?;
        let settings = Settings::together(flags, file, listen, &mut mistakes);
        mistakes.end()?;
        Ok(settings)
    }

    /// What flags and file come to, and what in them does not go together. Each value is right.
    fn together(
        flags: Options,
        file: File,
        listen: Vec<Vec<SocketAddr>>,
        mistakes: &mut Mistakes<'_>,
    ) -> Settings {
        let collectors = flags.collector.clone().over(file.collector);
        if !collectors.fabric() && !collectors.host() {
            let by_flag = flags.collector.no_fabric.is_some() || flags.collector.no_host.is_some();
            let flag = "--no-collector.fabric, --no-collector.host";
            let problem = "there is no other collector: nothing would be watched";
            mistakes.either(by_flag.then_some(flag), &["collector"], problem);
        }
        let in_file = file.fabrics.len();
        let names_one = in_file > 1 && flags.fabric.names_one();
        if names_one {
            let flag = "--fabric.name, --fabric.hca, --fabric.port, --fabric.capture";
            let problem = "they name one fabric, and the config file lists several: set them there";
            mistakes.either(Some(flag), &[], problem);
        }
        let entries = if in_file == 0 { vec![FabricOptions::default()] } else { file.fabrics };
        let mut fabrics: Vec<FabricSettings> = entries
            .into_iter()
            .map(|entry| flags.fabric.clone().over(entry).over(file.fabric.clone()).settings())
            .collect();
        let same = if names_one { Vec::new() } else { fabric::tell_apart(&fabrics) };
        for (index, problem) in same {
            mistakes.either(None, &[&format!("fabrics[{index}]"), "fabrics"], problem);
        }
        let history = flags.history.over(file.history).settings();
        if history.is_some() && collectors.host() && collectors.fabric() {
            for (index, _) in
                fabrics.iter().enumerate().filter(|(_, fabric)| fabric.name == HOST_FABRIC)
            {
                let flag = flags.fabric.name.is_some().then_some("--fabric.name");
                let keys = [&*format!("fabrics[{index}].name"), "fabric.name"];
                let problem = format!(
                    "{HOST_FABRIC:?} is what the history calls this host's own devices: name it \
                     otherwise, or set --no-collector.host"
                );
                mistakes.either(flag, &keys, problem);
            }
        }
        let health = flags.health.over(file.health).settings();
        for fabric in &mut fabrics {
            fabric.health = health.settings.clone();
            fabric.maintenance_file.clone_from(&health.maintenance_file);
        }
        let site_files = site_files(&fabrics);
        let path = flags.path.over(file.path);
        let sysfs = path.sysfs.unwrap_or_else(|| "/sys".into());
        let host = flags.host.over(file.host);
        let host = collectors.host().then(|| host.settings(sysfs.clone(), &fabrics));
        if !collectors.fabric() {
            fabrics.clear();
        }
        let (web, log) = (flags.web.over(file.web), flags.log.over(file.log));
        let process = flags.process.over(file.process);
        Settings {
            listen,
            systemd_socket: web.systemd_socket.unwrap_or(false),
            confine: process.confine.unwrap_or(true),
            telemetry_path: web.telemetry_path.unwrap_or_else(|| "/metrics".into()),
            web_config: web.config_file,
            sysfs,
            procfs: path.procfs.unwrap_or_else(|| "/proc".into()),
            log_level: log.level.unwrap_or(LogLevel::Info),
            log_format: log.format.unwrap_or(LogFormat::Logfmt),
            fabrics,
            site_files,
            host,
            history,
        }
    }
}

/// The files that fabrics name, each once.
fn site_files(fabrics: &[FabricSettings]) -> Vec<(SiteFileKind, PathBuf)> {
    let of = |fabric: &FabricSettings| {
        [
            (SiteFileKind::NodeNameMap, fabric.node_name_map.clone()),
            (SiteFileKind::MKey, fabric.m_key_file.clone()),
            (SiteFileKind::Maintenance, fabric.maintenance_file.clone()),
        ]
    };
    let mut files: Vec<_> =
        fabrics.iter().flat_map(of).filter_map(|(kind, path)| Some((kind, path?))).collect();
    files.sort();
    files.dedup();
    files
}

#[cfg(test)]
mod tests;
