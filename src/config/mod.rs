//! The settings of the exporter: parsed and validated once, and converted into the settings of each crate.
//!
//! A setting is a flag and a key of the config file at once: both come from one list ([`options`]), and
//! `--fabric.interval` is `interval` in the section `fabric`. Flags win over the file, an entry of the file's
//! list of fabrics over its section `fabric`, and all over the defaults.

mod data_from;
mod fabric;
mod jobs;
mod notify;
pub mod options;
mod sections;

pub use data_from::{DataFrom, EndpointUrl};
pub use fabric::FabricSettings;
pub use jobs::{JobsFrom, JobsSettings};
pub use sections::{HostSettings, RESERVED_PATHS};

use std::collections::BTreeSet;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};

use crate::log::{LogFilter, LogFormat};
use crate::metrics::selection::Profile;
use crate::notify::NotifySettings;
use fabric_history::settings::{HOST_FABRIC, HistorySettings};
use fabric_observation::SiteFileKind;
use options::{
    FabricOptions, HealthOptions, HistoryOptions, HostOptions, JobsOptions, NotifyOptions, Options,
    WebOptions,
};
use yaml_config::diagnostics::Diagnostics;
use yaml_config::{ConfigError, file, yaml};

/// Valid settings.
#[derive(Clone, Debug)]
pub struct Settings {
    /// The addresses to listen on: of each host name all of its addresses.
    pub listen: Vec<Vec<SocketAddr>>,
    /// Whether to listen on the sockets that systemd passes instead.
    pub systemd_socket: bool,
    /// Whether to sandbox the process after start-up.
    pub confine: bool,
    /// The user that `serve` becomes, if root starts it.
    pub user: Option<String>,
    /// Whether `serve` stays root.
    pub allow_root: bool,
    /// The path of the metrics: `/metrics`.
    pub telemetry_path: String,
    /// The URL under which users reach the exporter, without a slash at the end.
    pub external_url: Option<String>,
    /// The names that the Host header of a request may have; all, if there are none.
    pub allowed_hosts: Vec<String>,
    /// What a scrape without parameters gets.
    pub profile: Profile,
    /// The URL of Grafana, without a slash at the end.
    pub grafana_url: Option<String>,
    /// The web config file: TLS, logins, headers.
    pub web_config: Option<PathBuf>,
    /// Where sysfs is mounted.
    pub sysfs: PathBuf,
    /// Where procfs is mounted.
    pub procfs: PathBuf,
    /// The minimum level of the log.
    pub log_filter: LogFilter,
    /// The format of the log.
    pub log_format: LogFormat,
    /// The fabrics to monitor; none if the fabric collector is off.
    pub fabrics: Vec<FabricSettings>,
    /// The files that the settings of fabrics name, each once; also if the fabric collector is off.
    pub site_files: Vec<(SiteFileKind, PathBuf)>,
    /// This host's own devices; `None` if the host collector is off.
    pub host: Option<HostSettings>,
    /// The recorder; `None` if nothing is recorded.
    pub history: Option<HistorySettings>,
    /// Where running jobs are read from; `None` if they are not.
    pub jobs: Option<JobsSettings>,
    /// Where events are sent; `None` if they are not.
    pub notify: Option<NotifySettings>,
}

impl Settings {
    /// Merges the flags with the config file.
    pub fn load(flags: Options, file: Option<&Path>) -> Result<Settings, ConfigError> {
        let Some(path) = file else { return Settings::merge(flags, "", "") };
        let unreadable = |problem| ConfigError::in_file("config file", path, [problem]);
        let opened = path.to_owned();
        let read = move || file::read(&opened, file::MAX_BYTES);
        let bytes = file::with_timeout(file::READ_TIMEOUT, read)
            .and_then(|bytes| bytes)
            .map_err(|error| unreadable(error.to_string()))?;
        let text = String::from_utf8(bytes).map_err(|error| unreadable(yaml::not_utf8(&error)))?;
        Settings::merge(flags, &text, &path.display().to_string())
    }

    fn merge(flags: Options, text: &str, path: &str) -> Result<Settings, ConfigError> {
        let yaml::Parsed { value: file, diagnostics, document } = yaml::parse::<Options>(text);
        let mut diagnostics = Diagnostics::new(path, document, diagnostics);
        diagnostics.check("web", &flags.web, &file.web, WebOptions::validate);
        diagnostics.check("host", &flags.host, &file.host, HostOptions::validate);
        diagnostics.check("health", &flags.health, &file.health, HealthOptions::validate);
        diagnostics.check("history", &flags.history, &file.history, HistoryOptions::validate);
        diagnostics.check("jobs", &flags.jobs, &file.jobs, JobsOptions::validate);
        diagnostics.check("notify", &flags.notify, &file.notify, NotifyOptions::validate);
        diagnostics.check("fabric", &flags.fabric, &file.fabric, FabricOptions::validate);
        for (index, fabric) in file.fabrics.iter().enumerate() {
            diagnostics.check_file(&format!("fabrics[{index}]"), fabric, FabricOptions::validate);
        }
        let listen = sections::listen(&flags.web, &file.web, &mut diagnostics);
        // Conflicts between values are reported once all values are valid.
        diagnostics.finish()?;
        let settings = Settings::combine(flags, file, listen, &mut diagnostics);
        diagnostics.finish()?;
        Ok(settings)
    }

    /// Combines valid flags with a valid file, and reports conflicts between values.
    fn combine(
        flags: Options,
        file: Options,
        listen: Vec<Vec<SocketAddr>>,
        diagnostics: &mut Diagnostics<'_>,
    ) -> Settings {
        let collectors = flags.collector.clone().over(file.collector);
        if !collectors.fabric() && !collectors.host() {
            let by_flag = flags.collector.no_fabric.is_some() || flags.collector.no_host.is_some();
            let flag = "--no-collector.fabric, --no-collector.host";
            let problem = "both collectors are off: nothing would be monitored";
            diagnostics.add(by_flag.then_some(flag), &["collector"], problem);
        }
        let in_file = file.fabrics.len();
        let is_ambiguous = in_file > 1 && flags.fabric.is_of_one_fabric();
        if is_ambiguous {
            let flag = "--fabric.name, --fabric.from, --fabric.hca, --fabric.port, --fabric.smi-hca, --fabric.smi-port, \
                        --fabric.capture";
            let problem = "the config file lists several fabrics: set these keys there";
            diagnostics.add(Some(flag), &[], problem);
        }
        let entries = if in_file == 0 { vec![FabricOptions::default()] } else { file.fabrics };
        let health = flags.health.over(file.health);
        let settings = |entry| {
            flags.fabric.clone().over(entry).over(file.fabric.clone()).settings(health.clone())
        };
        let mut fabrics: Vec<FabricSettings> = entries.into_iter().map(settings).collect();
        let conflicts = if is_ambiguous { Vec::new() } else { fabric::conflicts(&fabrics) };
        for (index, problem) in conflicts {
            diagnostics.add(None, &[&format!("fabrics[{index}]"), "fabrics"], problem);
        }
        let history = flags.history.over(file.history).settings();
        if history.is_some() && collectors.host() && collectors.fabric() {
            let all = fabrics.iter().enumerate();
            for (index, _) in all.filter(|(_, fabric)| fabric.name == HOST_FABRIC) {
                let flag = flags.fabric.name.is_some().then_some("--fabric.name");
                let keys = [&*format!("fabrics[{index}].name"), "fabric.name"];
                let problem = format!(
                    "{HOST_FABRIC:?} is reserved in the history for this host's devices: choose \
                     another name, or set --no-collector.host"
                );
                diagnostics.add(flag, &keys, problem);
            }
        }
        let site_files = site_files(&fabrics);
        let path = flags.path.over(file.path);
        let sysfs = path.sysfs.unwrap_or_else(|| "/sys".into());
        let host = flags.host.over(file.host);
        let excluded = host.excluded();
        for fabric in &mut fabrics {
            fabric.excluded = excluded.clone();
        }
        let host = collectors.host().then(|| host.settings(sysfs.clone(), &fabrics));
        if !collectors.fabric() {
            fabrics.clear();
        }
        let (web, log) = (flags.web.over(file.web), flags.log.over(file.log));
        let process = flags.process.over(file.process);
        let notify = flags.notify.clone().over(file.notify);
        Settings {
            listen,
            systemd_socket: web.systemd_socket.unwrap_or(false),
            confine: process.confine.unwrap_or(true),
            user: process.user,
            allow_root: process.allow_root.unwrap_or(false),
            telemetry_path: web.telemetry_path.unwrap_or_else(|| "/metrics".into()),
            external_url: web.external_url.map(|url| url.trim_end_matches('/').to_owned()),
            profile: web.profile.unwrap_or_default(),
            allowed_hosts: web.allowed_hosts.unwrap_or_default(),
            grafana_url: web.grafana_url.map(|url| url.trim_end_matches('/').to_owned()),
            web_config: web.config_file,
            sysfs,
            procfs: path.procfs.unwrap_or_else(|| "/proc".into()),
            log_filter: log.level.unwrap_or_default(),
            log_format: log.format.unwrap_or(LogFormat::Logfmt),
            fabrics,
            site_files,
            host,
            history,
            jobs: flags.jobs.over(file.jobs).settings(),
            notify: notify.settings(&flags.notify, diagnostics),
        }
    }
}

/// The files that fabrics name, each once.
fn site_files(fabrics: &[FabricSettings]) -> Vec<(SiteFileKind, PathBuf)> {
    let files = |fabric: &FabricSettings| {
        [
            (SiteFileKind::NodeNameMap, fabric.node_name_map.clone()),
            (SiteFileKind::MKey, fabric.m_key_file.clone()),
            (SiteFileKind::VsKey, fabric.vs_key_file.clone()),
            (SiteFileKind::Maintenance, fabric.maintenance_file.clone()),
            (SiteFileKind::DrainedHosts, fabric.drained_hosts_file.clone()),
        ]
    };
    let files = fabrics.iter().flat_map(files).filter_map(|(kind, path)| Some((kind, path?)));
    files.collect::<BTreeSet<_>>().into_iter().collect()
}

#[cfg(test)]
mod tests;
