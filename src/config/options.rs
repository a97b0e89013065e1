//! The list of options: each is a flag and a key of the config file.

use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, ValueEnum};
use serde::Deserialize;

use ib_mad::PortNumber;
use ib_mad::p_key::PKey;
use site_config::units::{ByteSize, HumanDuration};

/// A duration, or a default in seconds.
pub(super) fn seconds_or(value: Option<HumanDuration>, default: u64) -> Duration {
    value.map_or(Duration::from_secs(default), Duration::from)
}

/// The minimum level that is logged.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum, Deserialize)]
#[serde(rename_all = "lowercase")]
#[expect(missing_docs, reason = "the names say it")]
pub enum LogLevel {
    Error,
    Warn,
    Info,
    Debug,
}

/// The format of a log line.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum LogFormat {
    /// `key=value` pairs.
    Logfmt,
    /// A JSON object a line.
    Json,
}

/// Declares a section of options: a set of flags, a mapping of the config file, and the merge of the two.
macro_rules! section {
    ($(#[$about:meta])* $name:ident { $($(#[$field_about:meta])* $field:ident: $type:ty,)+ }) => {
        $(#[$about])*
        #[derive(Args, Clone, Debug, Default, Deserialize)]
        #[serde(rename_all = "kebab-case", deny_unknown_fields, default)]
        pub struct $name { $($(#[$field_about])* pub $field: Option<$type>,)+ }

        impl $name {
            /// These options, with those of `below` for what is not set here.
            #[must_use]
            pub fn over(self, below: Self) -> Self {
                $name { $($field: self.$field.or(below.$field),)+ }
            }
        }
    };
}

section! {
    /// The HTTP server.
    WebOptions {
        /// Address to listen on, such as :10315 or 127.0.0.1:10315; may be repeated [default: :10315]
        #[arg(long = "web.listen-address", value_name = "ADDRESS")]
        listen_address: Vec<String>,
        /// Path of the metrics [default: /metrics]
        #[arg(long = "web.telemetry-path", value_name = "PATH")]
        telemetry_path: String,
        /// URL under which users reach the exporter, such as https://ib.example, for links in alerts [default: none; alerts then use the address that Prometheus scrapes]
        #[arg(long = "web.external-url", value_name = "URL")]
        external_url: String,
        /// YAML file with TLS, logins and headers, in the form of the Prometheus exporter toolkit; read again when it changes [default: none, and everybody is answered without TLS]
        #[arg(id = "web_config_file", long = "web.config.file", value_name = "FILE")]
        config_file: PathBuf,
        /// Listen on the sockets that systemd hands over, and on no address [default: false]
        #[arg(long = "web.systemd-socket", num_args = 0..=1, require_equals = true,
              default_missing_value = "true", value_name = "BOOL")]
        systemd_socket: bool,
    }
}

section! {
    /// The log, on standard error.
    LogOptions {
        /// Log this and what is graver [default: info]
        #[arg(long = "log.level", value_name = "LEVEL")]
        level: LogLevel,
        /// How to write a log line [default: logfmt]
        #[arg(long = "log.format", value_name = "FORMAT")]
        format: LogFormat,
    }
}

section! {
    /// The process itself.
    ProcessOptions {
        /// Give up, once all is open, what is not needed: capabilities, other files, connections [default: true]
        #[arg(long = "process.confine", num_args = 0..=1, require_equals = true,
              default_missing_value = "true", value_name = "BOOL")]
        confine: bool,
    }
}

section! {
    /// Where the kernel's file systems are mounted.
    PathOptions {
        /// Where sysfs is mounted [default: /sys]
        #[arg(long = "path.sysfs", value_name = "DIR")]
        sysfs: PathBuf,
        /// Where procfs is mounted [default: /proc]
        #[arg(long = "path.procfs", value_name = "DIR")]
        procfs: PathBuf,
    }
}

section! {
    /// Which collectors run.
    CollectorOptions {
        /// Ask the whole fabric by MADs (the default)
        #[arg(long = "collector.fabric", num_args = 0, default_missing_value = "true", overrides_with = "no_fabric")]
        fabric: bool,
        /// Leave the fabric alone
        #[arg(long = "no-collector.fabric", num_args = 0, default_missing_value = "true", overrides_with = "fabric")]
        #[serde(skip)]
        no_fabric: bool,
        /// Read this host's own RDMA devices from sysfs (the default)
        #[arg(long = "collector.host", num_args = 0, default_missing_value = "true", overrides_with = "no_host")]
        host: bool,
        /// Leave this host's own devices alone
        #[arg(long = "no-collector.host", num_args = 0, default_missing_value = "true", overrides_with = "host")]
        #[serde(skip)]
        no_host: bool,
    }
}

impl CollectorOptions {
    /// Whether the fabric collector is on, as by default.
    pub fn fabric(&self) -> bool {
        !self.no_fabric.unwrap_or(false) && self.fabric.unwrap_or(true)
    }

    /// Whether the host collector is on, as by default.
    pub fn host(&self) -> bool {
        !self.no_host.unwrap_or(false) && self.host.unwrap_or(true)
    }
}

section! {
    /// This host's own devices.
    HostOptions {
        /// From one look at the devices to the next [default: 15s]
        #[arg(id = "host_interval", long = "host.interval", value_name = "TIME")]
        interval: HumanDuration,
        /// Read only devices whose whole name matches this regular expression
        #[arg(long = "host.device-include", value_name = "REGEX")]
        device_include: String,
        /// Do not even open devices whose whole name matches this regular expression
        #[arg(long = "host.device-exclude", value_name = "REGEX")]
        device_exclude: String,
        /// How long a file that gave no value when it was read is left alone [default: 5m]
        #[arg(long = "host.error-backoff", value_name = "TIME")]
        error_backoff: HumanDuration,
        /// Hear what devices tell of themselves, by libibverbs and the kernel's uevents [default: true]
        #[arg(long = "host.events", num_args = 0..=1, require_equals = true,
              default_missing_value = "true", value_name = "BOOL")]
        events: bool,
        /// Read what Ethernet drivers count on the wire, as `ethtool -S` does [default: true]
        #[arg(long = "host.ethtool", num_args = 0..=1, require_equals = true,
              default_missing_value = "true", value_name = "BOOL")]
        ethtool: bool,
        /// Read the counters of the kernel's connection manager, 44 for each port [default: false]
        #[arg(long = "host.cm-counters", num_args = 0..=1, require_equals = true,
              default_missing_value = "true", value_name = "BOOL")]
        cm_counters: bool,
    }
}

/// A limit as the config file writes it: `{speed: NDR, fec: rs, symbol: 1e-14, pre-fec: 1e-5}`.
#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct LimitOption {
    /// The speed: `NDR`.
    pub speed: String,
    /// Only with this FEC mode: `rs`, `rs2`, `rs-271-plr`, see [`Fec`](ib_mad::fec::Fec).
    pub fec: Option<String>,
    /// The limit of the bit error ratio after error correction.
    pub symbol: f64,
    /// The limit before error correction.
    pub pre_fec: Option<f64>,
}

section! {
    /// How links are judged.
    HealthOptions {
        /// File that lists what is worked on, so that it may go down: read again when it changes
        #[arg(long = "health.maintenance-file", value_name = "FILE")]
        maintenance_file: PathBuf,
        /// Limits of bit error ratios before the usual ones; in the config file alone.
        #[arg(skip)]
        limits: Vec<LimitOption>,
    }
}

section! {
    /// The history, in a file on this host.
    HistoryOptions {
        /// File to record each sweep in [default: none, and nothing is recorded]
        #[arg(long = "history.file", value_name = "FILE")]
        file: PathBuf,
        /// Size that the file is kept below [default: 1GiB]
        #[arg(long = "history.size", value_name = "SIZE")]
        size: ByteSize,
        /// How long each sweep's traffic is kept [default: 24h]
        #[arg(long = "history.traffic-retention", value_name = "TIME")]
        traffic_retention: HumanDuration,
        /// How long events, and each sweep's errors and waits, are kept [default: 30d]
        #[arg(long = "history.retention", value_name = "TIME")]
        retention: HumanDuration,
    }
}

section! {
    /// A fabric.
    FabricOptions {
        /// Value of the label `fabric` [default: default]
        #[arg(long = "fabric.name", value_name = "NAME")]
        name: String,
        /// HCA to ask from [default: the first with an InfiniBand port that is up]
        #[arg(long = "fabric.hca", value_name = "HCA")]
        hca: String,
        /// Port of the HCA to ask from [default: the first that is up]
        #[arg(long = "fabric.port", value_name = "PORT")]
        port: PortNumber,
        /// From one sweep of all counters to the next [default: 15s]
        #[arg(long = "fabric.interval", value_name = "TIME")]
        interval: HumanDuration,
        /// From one discovery to the next while nothing moves [default: 5m]
        #[arg(long = "fabric.discovery-interval", value_name = "TIME")]
        discovery_interval: HumanDuration,
        /// How long a node or a device of this host that disappeared is reported as down [default: 7days]
        #[arg(long = "fabric.forget-after", value_name = "TIME")]
        forget_after: HumanDuration,
        /// File with names for nodes, in the form of infiniband-diags' node-name-map
        #[arg(long = "fabric.node-name-map", value_name = "FILE")]
        node_name_map: PathBuf,
        /// File with the M_Key of the fabric's ports, or OpenSM's guid2mkey; read again at each discovery [default: none, and subnet management is asked without a key]
        #[arg(long = "fabric.m-key-file", value_name = "FILE")]
        m_key_file: PathBuf,
        /// Partition to ask performance management in, which this port is a member of, such as 0x8001 [default: the first P_Key of the port's table]
        #[arg(long = "fabric.pkey", value_name = "P_KEY")]
        pkey: PKey,
        /// Read PortRcvErrorDetails and PortXmitDiscardDetails in each sweep, of all devices that have them: two more MADs per port [default: false]
        #[arg(long = "fabric.details", num_args = 0..=1, require_equals = true,
              default_missing_value = "true", value_name = "BOOL")]
        details: bool,
        /// Interval at which PortRcvErrorDetails and PortXmitDiscardDetails are read without --fabric.details, from devices that announce them in PortSamplesControl; 0 for never [default: 2m]
        #[arg(long = "fabric.details-interval", value_name = "TIME")]
        details_interval: HumanDuration,
        /// Read what error correction had to mend: one more MAD a port of devices that tell it [default: true]
        #[arg(long = "fabric.fec", num_args = 0..=1, require_equals = true,
              default_missing_value = "true", value_name = "BOOL")]
        fec: bool,
        /// Clear counters of fewer than 64 bits that are over three quarters full; other tools that read the same ports see them fall to zero [default: false]
        #[arg(long = "fabric.clear-saturated", num_args = 0..=1, require_equals = true,
              default_missing_value = "true", value_name = "BOOL")]
        clear_saturated: bool,
        /// Subnet management MADs in flight in all [default: 8]
        #[arg(long = "fabric.smp-window", value_name = "N")]
        smp_window: u16,
        /// Performance management MADs in flight in all [default: 128]
        #[arg(long = "fabric.gmp-window", value_name = "N")]
        gmp_window: u16,
        /// Subnet management MADs in flight to any one LID [default: 2]
        #[arg(long = "fabric.smp-lid-window", value_name = "N")]
        smp_lid_window: u16,
        /// Performance management MADs in flight to any one LID [default: 4]
        #[arg(long = "fabric.gmp-lid-window", value_name = "N")]
        gmp_lid_window: u16,
        /// How long to wait for an answer [default: 500ms]
        #[arg(long = "fabric.timeout", value_name = "TIME")]
        timeout: HumanDuration,
        /// How often to ask again what was not answered [default: 2]
        #[arg(long = "fabric.retries", value_name = "N")]
        retries: u8,
        /// Write each MAD, out and in, to this file, which Wireshark reads
        #[arg(long = "fabric.capture", value_name = "FILE")]
        capture: PathBuf,
        /// Size in MiB that the capture does not pass [default: 100]
        #[arg(long = "fabric.capture-limit", value_name = "MIB")]
        capture_limit: u64,
    }
}

/// All settings.
#[derive(Args, Clone, Debug, Default)]
#[expect(missing_docs, reason = "the types say it")]
pub struct Options {
    #[command(flatten)]
    pub web: WebOptions,
    #[command(flatten)]
    pub log: LogOptions,
    #[command(flatten)]
    pub process: ProcessOptions,
    #[command(flatten)]
    pub path: PathOptions,
    #[command(flatten)]
    pub collector: CollectorOptions,
    #[command(flatten)]
    pub host: HostOptions,
    #[command(flatten)]
    pub health: HealthOptions,
    #[command(flatten)]
    pub history: HistoryOptions,
    /// The fabric, or what all listed ones have in common.
    #[command(flatten)]
    pub fabric: FabricOptions,
}
