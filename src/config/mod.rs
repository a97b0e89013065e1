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
pub mod yaml;

pub use fabric::FabricSettings;
pub use history::{HOST_FABRIC, HistorySettings, LEAST_FREE};
pub use host::HostSettings;

use std::net::{SocketAddr, ToSocketAddrs};
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde::Deserialize;
use thiserror::Error;

use options::{
    CollectorOptions, FabricOptions, HealthOptions, HistoryOptions, HostOptions, LogFormat,
    LogLevel, LogOptions, Options, PathOptions, ProcessOptions, WebOptions,
};

/// Settings that no part of the program has to check again.
#[derive(Clone, Debug)]
pub struct Settings {
    /// Where to listen.
    pub listen: Vec<SocketAddr>,
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
    /// How this host's own devices are to be read, if they are.
    pub host: Option<HostSettings>,
    /// What is recorded, if anything is.
    pub history: Option<HistorySettings>,
}

/// What is wrong with the settings.
#[derive(Debug, Error)]
pub enum ConfigError {
    /// The file cannot be read.
    #[error("config file {path}: {error}")]
    Unreadable {
        /// The file.
        path: String,
        /// Why.
        error: std::io::Error,
    },
    /// The file is not what it should be.
    #[error("config file {path}: {problem}")]
    Malformed {
        /// The file.
        path: String,
        /// What and where.
        problem: String,
    },
    /// A setting has a value that it cannot have.
    #[error("{setting}: {problem}")]
    Invalid {
        /// The flag or key.
        setting: &'static str,
        /// What is wrong.
        problem: String,
    },
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

fn invalid<T>(setting: &'static str, problem: impl Into<String>) -> Result<T, ConfigError> {
    Err(ConfigError::Invalid { setting, problem: problem.into() })
}

impl Settings {
    /// Brings flags and the file that they name together.
    pub fn load(flags: Options, file: Option<&Path>) -> Result<Settings, ConfigError> {
        let text = match file {
            None => String::new(),
            Some(path) => std::fs::read_to_string(path).map_err(|error| {
                ConfigError::Unreadable { path: path.display().to_string(), error }
            })?,
        };
        let name = file.map(|path| path.display().to_string()).unwrap_or_default();
        Settings::merge(flags, &text, name)
    }

    fn merge(flags: Options, text: &str, path: String) -> Result<Settings, ConfigError> {
        let file: File =
            yaml::read(text).map_err(|problem| ConfigError::Malformed { path, problem })?;
        let (web, log) = (flags.web.over(file.web), flags.log.over(file.log));
        let process = flags.process.over(file.process);
        let path = flags.path.over(file.path);
        let collectors = flags.collector.over(file.collector);
        if !collectors.fabric() && !collectors.host() {
            return invalid(
                "--no-collector.fabric, --no-collector.host",
                "there is no other collector: nothing would be watched",
            );
        }
        let fabrics =
            if file.fabrics.is_empty() { vec![FabricOptions::default()] } else { file.fabrics };
        if fabrics.len() > 1 && flags.fabric.names_one() {
            return invalid(
                "--fabric.name, --fabric.hca, --fabric.port, --fabric.capture",
                "they name one fabric, and the config file lists several: set them there",
            );
        }
        let mut fabrics: Vec<FabricSettings> = fabrics
            .into_iter()
            .map(|entry| flags.fabric.clone().over(entry).over(file.fabric.clone()).validate())
            .collect::<Result<_, _>>()?;
        fabric::tell_apart(&fabrics)?;
        let health = flags.health.over(file.health).validate()?;
        for fabric in &mut fabrics {
            fabric.health = health.settings.clone();
            fabric.maintenance_file.clone_from(&health.maintenance_file);
        }
        let sysfs = path.sysfs.unwrap_or_else(|| "/sys".into());
        let host = if collectors.host() {
            Some(flags.host.over(file.host).validate(sysfs.clone(), &fabrics)?)
        } else {
            None
        };
        if !collectors.fabric() {
            fabrics.clear();
        }
        let history = flags.history.over(file.history).validate()?;
        let recorded = history.is_some() && host.is_some();
        if recorded && fabrics.iter().any(|fabric| fabric.name == HOST_FABRIC) {
            return invalid(
                "--fabric.name",
                format!(
                    "{HOST_FABRIC:?} is what the history calls this host's own devices: name it \
                     otherwise, or set --no-collector.host"
                ),
            );
        }
        let telemetry_path = web.telemetry_path.unwrap_or_else(|| "/metrics".into());
        if !is_free_path(&telemetry_path) {
            return invalid(
                "--web.telemetry-path",
                format!("{telemetry_path:?} is taken, or no path such as /metrics"),
            );
        }
        let listen = match web.listen_address {
            Some(addresses) if !addresses.is_empty() => addresses,
            _ => vec![":10315".into()],
        };
        Ok(Settings {
            listen: listen.iter().map(|text| listen_address(text)).collect::<Result<_, _>>()?,
            systemd_socket: web.systemd_socket.unwrap_or(false),
            confine: process.confine.unwrap_or(true),
            telemetry_path,
            web_config: web.config_file,
            sysfs,
            procfs: path.procfs.unwrap_or_else(|| "/proc".into()),
            log_level: log.level.unwrap_or(LogLevel::Info),
            log_format: log.format.unwrap_or(LogFormat::Logfmt),
            fabrics,
            host,
            history,
        })
    }
}

/// What the paths begin with that something else is served at: probes, programs' JSON, and pages.
pub const TAKEN: [&str; 10] =
    ["-", "api", "events", "host", "link", "links", "node", "port", "search", "topology"];

/// Whether a path can be that of the metrics: one of plain segments that nothing else is served at.
fn is_free_path(path: &str) -> bool {
    let plain = |char: char| char.is_ascii_alphanumeric() || "-_.~".contains(char);
    let mut segments = path.split('/');
    segments.next() == Some("")
        && segments.all(|segment| !segment.is_empty() && segment.chars().all(plain))
        && !TAKEN.contains(&path.split('/').nth(1).unwrap_or_default())
}

/// `HOST:PORT`, or `:PORT` for all addresses.
fn listen_address(text: &str) -> Result<SocketAddr, ConfigError> {
    let full = if text.starts_with(':') { format!("[::]{text}") } else { text.to_owned() };
    let found = full.to_socket_addrs().ok().and_then(|mut addresses| addresses.next());
    found.map_or_else(
        || {
            let problem = "is not an address and port, such as :10315 or 127.0.0.1:10315";
            invalid("--web.listen-address", format!("{text:?} {problem}"))
        },
        Ok,
    )
}

/// A length of time that is not less than `least`; `usual` is in seconds.
fn duration(
    setting: &'static str,
    value: Option<options::Span>,
    usual: u64,
    least: Duration,
) -> Result<Duration, ConfigError> {
    let value = value.map_or(Duration::from_secs(usual), Duration::from);
    if value < least {
        return invalid(setting, format!("{value:?} is less than {least:?}"));
    }
    Ok(value)
}

#[cfg(test)]
mod tests;
