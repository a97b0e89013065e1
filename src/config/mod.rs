//! All that a user can set, validated once.
//!
//! A setting is a flag and a key of the config file at once: both come from one list
//! ([`options`]), and `--fabric.interval` is `interval` in the section `fabric`. Flags win over the
//! file, an entry of the file's list of fabrics over its section `fabric`, and all over the
//! defaults.

pub mod options;

use std::net::{SocketAddr, ToSocketAddrs};
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde::Deserialize;
use thiserror::Error;

use crate::collect::host::selection::{Selection, Side};
use crate::fabric::PortNumber;
use crate::fabric::host::rails::Rails;
use crate::transport::pace::Pace;
use crate::transport::transactor::MOST_IN_FLIGHT;
use options::{
    CollectorOptions, FabricOptions, HostOptions, LogFormat, LogLevel, LogOptions, Options,
    PathOptions, WebOptions,
};

/// Settings that no part of the program has to check again.
#[derive(Clone, Debug)]
pub struct Settings {
    /// Where to listen.
    pub listen: Vec<SocketAddr>,
    /// Where the metrics are: `/metrics`.
    pub telemetry_path: String,
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
}

/// This host's own devices.
#[derive(Clone, Debug)]
pub struct HostSettings {
    /// Where sysfs is mounted.
    pub sysfs: PathBuf,
    /// From the beginning of one look to that of the next.
    pub interval: Duration,
    /// Which devices are looked at.
    pub selection: Selection,
    /// How long a file that refused is left alone.
    pub retry_refused: Duration,
    /// Whether to hear what devices tell of themselves.
    pub events: bool,
    /// Whether to read what Ethernet drivers count on the wire.
    pub ethtool: bool,
    /// Which port is in which fabric.
    pub rails: Rails,
}

/// One fabric: a port to ask from, and how.
#[derive(Clone, Debug)]
pub struct FabricSettings {
    /// The value of the label `fabric`.
    pub name: String,
    /// The HCA to ask from; the first that serves, if none is named.
    pub hca: Option<String>,
    /// Its port.
    pub port: Option<PortNumber>,
    /// From the beginning of one sweep to that of the next.
    pub interval: Duration,
    /// From one discovery to the next, when nothing moves.
    pub discovery_interval: Duration,
    /// How long a node that is gone is told of.
    pub forget_after: Duration,
    /// The site's names for nodes.
    pub node_name_map: Option<PathBuf>,
    /// Whether the causes of errors and discards are read, too.
    pub details: bool,
    /// How hard the fabric may be asked.
    pub pace: Pace,
    /// Where to write each MAD to, and how many bytes at the most.
    pub capture: Option<(PathBuf, u64)>,
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
    path: PathOptions,
    collector: CollectorOptions,
    host: HostOptions,
    fabric: FabricOptions,
    fabrics: Vec<FabricOptions>,
}

const MIB: u64 = 1 << 20;

/// What a fabric is called that has no name.
const DEFAULT_FABRIC: &str = "default";

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
        let file = parse(text).map_err(|problem| ConfigError::Malformed { path, problem })?;
        let (web, log) = (flags.web.over(file.web), flags.log.over(file.log));
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
        tell_apart(&fabrics)?;
        let sysfs = path.sysfs.unwrap_or_else(|| "/sys".into());
        let host = if collectors.host() {
            Some(flags.host.over(file.host).validate(sysfs.clone(), rails(&fabrics))?)
        } else {
            None
        };
        if !collectors.fabric() {
            fabrics.clear();
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
            telemetry_path,
            sysfs,
            procfs: path.procfs.unwrap_or_else(|| "/proc".into()),
            log_level: log.level.unwrap_or(LogLevel::Info),
            log_format: log.format.unwrap_or(LogFormat::Logfmt),
            fabrics,
            host,
        })
    }
}

/// Which of this host's ports is in which fabric. With one fabric all are in it, for a host's other
/// ports are mostly its other rails; of several, those that are listed.
fn rails(fabrics: &[FabricSettings]) -> Rails {
    let ports = fabrics
        .iter()
        .filter_map(|fabric| Some((fabric.hca.clone()?, fabric.port, fabric.name.as_str().into())));
    let usual = match fabrics {
        [only] => only.name.as_str(),
        _ => DEFAULT_FABRIC,
    };
    Rails::new(ports.collect(), usual.into())
}

/// Whether a path can be that of the metrics: one of plain segments that nothing else is served at.
fn is_free_path(path: &str) -> bool {
    let plain = |char: char| char.is_ascii_alphanumeric() || "-_.~".contains(char);
    let mut segments = path.split('/');
    segments.next() == Some("")
        && segments.all(|segment| !segment.is_empty() && segment.chars().all(plain))
        && !path.starts_with("/-/")
}

/// Several fabrics need names, ports and captures of their own: one port asked twice is twice the
/// load for the same samples.
fn tell_apart(fabrics: &[FabricSettings]) -> Result<(), ConfigError> {
    let captured = |fabric: &FabricSettings| fabric.capture.as_ref().map(|(path, _)| path.clone());
    for (index, fabric) in fabrics.iter().enumerate() {
        let name = &fabric.name;
        if fabrics.len() > 1 && fabric.hca.is_none() {
            return invalid("fabrics", format!("{name:?} names no hca, which one of several must"));
        }
        for other in &fabrics[..index] {
            if other.name == *name {
                return invalid("fabrics", format!("two of them have the name {name:?}"));
            }
            if captured(fabric).is_some() && captured(fabric) == captured(other) {
                return invalid(
                    "fabrics",
                    format!("{:?} and {name:?} write one capture", other.name),
                );
            }
            if other.hca == fabric.hca
                && (other.port == fabric.port || other.port.is_none() || fabric.port.is_none())
            {
                return invalid(
                    "fabrics",
                    format!("{:?} and {name:?} ask from the same port", other.name),
                );
            }
        }
    }
    Ok(())
}

fn parse(text: &str) -> Result<File, String> {
    if text.lines().all(|line| line.trim().is_empty() || line.trim().starts_with('#')) {
        return Ok(File::default());
    }
    // The first line says what and where; the picture of the place below it is left out, for an
    // error is one line.
    serde_saphyr::from_str(text).map_err(|error| {
        let told = error.to_string();
        let line = told.lines().next().unwrap_or_default();
        line.strip_prefix("error: ").unwrap_or(line).to_owned()
    })
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

impl HostOptions {
    fn validate(self, sysfs: PathBuf, rails: Rails) -> Result<HostSettings, ConfigError> {
        let second = Duration::from_secs(1);
        let patterns = (self.device_include.as_deref(), self.device_exclude.as_deref());
        let selection = Selection::new(patterns.0, patterns.1).map_err(|wrong| {
            let setting = match wrong.side {
                Side::Include => "--host.device-include",
                Side::Exclude => "--host.device-exclude",
            };
            ConfigError::Invalid { setting, problem: wrong.problem }
        })?;
        Ok(HostSettings {
            sysfs,
            interval: duration("--host.interval", self.interval, 15, second)?,
            selection,
            retry_refused: duration("--host.retry-refused", self.retry_refused, 300, second)?,
            events: self.events.unwrap_or(true),
            ethtool: self.ethtool.unwrap_or(true),
            rails,
        })
    }
}

impl FabricOptions {
    /// Whether something is set that only one fabric can have.
    fn names_one(&self) -> bool {
        self.name.is_some() || self.hca.is_some() || self.port.is_some() || self.capture.is_some()
    }

    fn validate(self) -> Result<FabricSettings, ConfigError> {
        let usual = Pace::default();
        let pace = Pace {
            smp_window: self.smp_window.unwrap_or(usual.smp_window),
            gmp_window: self.gmp_window.unwrap_or(usual.gmp_window),
            smp_lid_window: self.smp_lid_window.unwrap_or(usual.smp_lid_window),
            gmp_lid_window: self.gmp_lid_window.unwrap_or(usual.gmp_lid_window),
            timeout: self.timeout.map_or(usual.timeout, Duration::from),
            retries: self.retries.unwrap_or(usual.retries),
        };
        for (setting, window) in [
            ("--fabric.smp-window", pace.smp_window),
            ("--fabric.gmp-window", pace.gmp_window),
            ("--fabric.smp-lid-window", pace.smp_lid_window),
            ("--fabric.gmp-lid-window", pace.gmp_lid_window),
        ] {
            // A port's own queue takes 128 sends by default (ib_mad's send_queue_size); half of
            // what transaction ids can name is more than any fabric wants.
            if !(1..=MOST_IN_FLIGHT / 2).contains(&usize::from(window)) {
                return invalid(
                    setting,
                    format!("{window} is not between 1 and {}", MOST_IN_FLIGHT / 2),
                );
            }
        }
        if pace.retries > 10 {
            return invalid("--fabric.retries", format!("{} is more than 10", pace.retries));
        }
        if !(Duration::from_millis(1)..=Duration::from_secs(60)).contains(&pace.timeout) {
            return invalid(
                "--fabric.timeout",
                format!("{:?} is not between 1ms and 1m", pace.timeout),
            );
        }
        let second = Duration::from_secs(1);
        let name = self.name.unwrap_or_else(|| DEFAULT_FABRIC.into());
        if name.is_empty() {
            return invalid("--fabric.name", "it must not be empty");
        }
        Ok(FabricSettings {
            name,
            hca: self.hca,
            port: self.port,
            interval: duration("--fabric.interval", self.interval, 15, second)?,
            discovery_interval: duration(
                "--fabric.discovery-interval",
                self.discovery_interval,
                300,
                second,
            )?,
            forget_after: duration(
                "--fabric.forget-after",
                self.forget_after,
                7 * 24 * 3600,
                Duration::ZERO,
            )?,
            node_name_map: self.node_name_map,
            details: self.details.unwrap_or(false),
            pace,
            capture: self
                .capture
                .map(|path| (path, self.capture_limit.unwrap_or(100).saturating_mul(MIB))),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::Parser;

    #[derive(Parser)]
    struct Flags {
        #[command(flatten)]
        options: Options,
    }

    fn merged(flags: &[&str], text: &str) -> Result<Settings, String> {
        let flags =
            Flags::try_parse_from([&["x"], flags].concat()).map_err(|error| error.to_string())?;
        Settings::merge(flags.options, text, "f.yml".into()).map_err(|error| error.to_string())
    }

    #[test]
    fn nothing_set_is_the_defaults() {
        let settings = merged(&[], "# nothing\n").unwrap();
        assert_eq!(settings.listen, ["[::]:10315".parse().unwrap()]);
        assert_eq!(settings.telemetry_path, "/metrics");
        let [fabric] = &settings.fabrics[..] else { panic!("one fabric") };
        assert_eq!((fabric.name.as_str(), fabric.interval), ("default", Duration::from_secs(15)));
        assert_eq!(fabric.pace, Pace::default());
        assert!(fabric.capture.is_none());
    }

    #[test]
    fn flags_win_over_entries_over_the_section() {
        let text = "\
fabric:
  interval: 1m
  timeout: 200ms
  retries: 1
fabrics:
  - {name: rail0, hca: mlx5_0, retries: 5}
  - {name: rail1, hca: mlx5_1, port: 2}
web: {listen-address: ['127.0.0.1:1', ':2']}
";
        let settings = merged(&["--fabric.timeout=300ms"], text).unwrap();
        let told: Vec<_> = settings
            .fabrics
            .iter()
            .map(|f| {
                (
                    f.name.as_str(),
                    f.hca.as_deref(),
                    f.port,
                    f.interval.as_secs(),
                    f.pace.timeout.as_millis(),
                    f.pace.retries,
                )
            })
            .collect();
        assert_eq!(
            told,
            [
                ("rail0", Some("mlx5_0"), None, 60, 300, 5),
                ("rail1", Some("mlx5_1"), Some(2), 60, 300, 1)
            ]
        );
        assert_eq!(settings.listen.len(), 2);
    }

    #[test]
    fn each_mistake_is_one_line_that_names_its_place() {
        for (flags, text, says) in [
            (&["--fabric.gmp-window=0"][..], "", "--fabric.gmp-window: 0 is not between 1 and"),
            (&["--fabric.interval=10ms"], "", "--fabric.interval: 10ms is less than 1s"),
            (&["--fabric.timeout=2h"], "", "--fabric.timeout"),
            (&["--fabric.retries=11"], "", "--fabric.retries"),
            (&["--web.listen-address=host"], "", "\"host\" is not an address and port"),
            (&["--web.telemetry-path=metrics"], "", "no path such as /metrics"),
            (&["--web.telemetry-path=/"], "", "no path"),
            (&["--web.telemetry-path=/-/healthy"], "", "is taken"),
            (&["--web.telemetry-path=/:m"], "", "no path"),
            (&["--web.telemetry-path=/{m}"], "", "no path"),
            (&["--web.telemetry-path=/a b"], "", "no path"),
            (
                &[],
                "fabric: {capture: c}\nfabrics: [{name: a, hca: x}, {name: b, hca: y}]",
                "write one capture",
            ),
            (&["--no-collector.fabric", "--no-collector.host"], "", "nothing would be watched"),
            (&["--host.device-exclude=("], "", "--host.device-exclude: "),
            (&["--host.device-include=["], "", "--host.device-include: "),
            (&["--host.interval=1ms"], "", "--host.interval: 1ms is less than 1s"),
            (&[], "host: {device: x}", "device"),
            (&[], "fabric: {intervall: 1s}", "intervall"),
            (&[], "colector: {}", "colector"),
            (&[], "fabric: {interval: soon}", "soon"),
            (&[], "fabric: [", "f.yml"),
            (
                &[],
                "fabrics: [{name: a, hca: x}, {name: a, hca: y}]",
                "two of them have the name \"a\"",
            ),
            (&[], "fabrics: [{name: a, hca: x}, {name: b}]", "\"b\" names no hca"),
            (&[], "fabrics: [{name: a, hca: x, port: 1}, {name: b, hca: x}]", "the same port"),
            (&["--fabric.hca=x"], "fabrics: [{name: a}, {name: b}]", "lists several"),
        ] {
            let error = merged(flags, text).map(|_| ()).expect_err(text);
            assert!(error.contains(says), "{flags:?} {text:?}: {error}");
            assert!(!error.contains('\n'), "one line: {error}");
        }
    }

    #[test]
    fn a_collector_can_be_switched_on_and_off_and_the_last_flag_wins() {
        for (flags, text, fabric, host) in [
            (&[][..], "", true, true),
            (&["--no-collector.fabric"], "", false, true),
            (&["--no-collector.host"], "", true, false),
            (&["--no-collector.fabric", "--collector.fabric"], "", true, true),
            (&["--collector.fabric"], "collector: {fabric: false, host: false}", true, false),
            (&["--no-collector.host"], "collector: {host: true}", true, false),
            (&[], "collector: {fabric: false}", false, true),
        ] {
            let settings = merged(flags, text).unwrap();
            let runs = (!settings.fabrics.is_empty(), settings.host.is_some());
            assert_eq!(runs, (fabric, host), "{flags:?} {text}");
        }
    }

    #[test]
    fn a_hosts_ports_are_in_the_fabric_that_names_them() {
        let text = "fabrics: [{name: a, hca: mlx5_0}, {name: b, hca: mlx5_1, port: 2}]";
        let rails = merged(&[], text).unwrap().host.unwrap().rails;
        let of = |device, port| rails.fabric_of(device, port).to_string();
        assert_eq!(
            [of("mlx5_0", Some(1)), of("mlx5_0", None), of("mlx5_1", Some(2))],
            ["a", "a", "b"]
        );
        assert_eq!([of("mlx5_1", Some(1)), of("mlx5_9", Some(1))], ["default", "default"]);
        let one = merged(&["--fabric.name=ib", "--fabric.hca=mlx5_0"], "").unwrap().host.unwrap();
        assert_eq!(&**one.rails.fabric_of("mlx5_9", Some(1)), "ib");
    }
}
