//! The list of options: each is a flag and a key of the config file.

use std::path::PathBuf;
use std::time::Duration;

use clap::Args;
use serde::Deserialize;

use crate::log::{LogFilter, LogFormat};
use crate::metrics::selection::Profile;
use ib_mad::PortNumber;
use ib_mad::p_key::PKey;
use yaml_config::units::{ByteSize, HumanDuration};

/// A duration, or a default in seconds.
pub(super) fn seconds_or(value: Option<HumanDuration>, default: u64) -> Duration {
    value.map_or(Duration::from_secs(default), Duration::from)
}

/// Declares a section of options: a set of flags, a mapping of the config file, and the merge of the two.
///
/// `name: type = "flag" VALUE` is a flag with a value; clap's `hide_short_help` and `hide_possible_values` may follow.
/// `name: bool => "flag"` is a switch, a flag with an optional value: `--flag` or `--flag=false`. Other flags have
/// clap's attributes.
///
/// The first paragraph of an option's documentation is its help for `-h`, with the default: it has at most 40
/// characters there, so that it fits in one line of 80. The other paragraphs follow for `--help`.
macro_rules! section {
    ($(#[$about:meta])* $name:ident {
        $(
            $(#[$field_about:meta])*
            $field:ident: $type:ty
                $(= $flag:literal $value:ident $($hide:ident)*)?
                $(=> $switch:literal)?,
        )+
    }) => {
        #[derive(Args, Clone, Debug, Default, Deserialize)]
        #[serde(rename_all = "kebab-case", deny_unknown_fields, default)]
        $(#[$about])*
        pub struct $name {
            $(
                $(#[$field_about])*
                $(#[arg(long = $flag, value_name = stringify!($value) $(, $hide = true)*)])?
                $(#[arg(long = $switch, num_args = 0..=1, require_equals = true,
                        default_missing_value = "true", value_name = "BOOL", hide_short_help = true)])?
                pub $field: Option<$type>,
            )+
        }

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
    #[command(next_help_heading = "Web")]
    WebOptions {
        /// Listen address [default: :10315]
        ///
        /// HOST:PORT, or :PORT for all addresses of this host. Repeat the option for several
        /// addresses. A host name means all of its addresses. Those that this host does not have are
        /// skipped with a warning; if it has none of them, the exporter does not start.
        listen_address: Vec<String> = "web.listen-address" ADDRESS,
        /// Path of the metrics [default: /metrics]
        ///
        /// Paths that the exporter uses for its pages and API, such as /api and /topology, are reserved.
        telemetry_path: String = "web.telemetry-path" PATH hide_short_help,
        /// Metrics of a scrape without parameters [default: full]
        ///
        /// full: all metrics. lean: what most alerts need, about an eighth of the series. A scrape can choose for
        /// itself: ?profile=lean, ?collect[]=GROUP, ?exclude[]=GROUP, ?shard=K/N.
        profile: Profile = "web.profile" PROFILE hide_possible_values hide_short_help,
        /// Host names of requests [default: all]
        ///
        /// Requests with another name in the Host header get 421, so that a web page of a foreign site cannot read the
        /// exporter from a browser by DNS rebinding. Repeat the option for several names. IP addresses, localhost, and
        /// the paths /-/healthy and /-/ready are always accepted.
        allowed_hosts: Vec<String> = "web.allowed-hosts" NAME hide_short_help,
        /// URL under which users reach the exporter
        ///
        /// Alerts link to it. Without it, they link to the address that Prometheus scrapes. Only scheme, host
        /// and port: http or https, no path.
        external_url: String = "web.external-url" URL hide_short_help,
        /// URL of a Grafana that has the dashboards
        ///
        /// Pages link to its dashboards of the same link, switch, host or fabric. http or https, also with a path.
        grafana_url: String = "web.grafana-url" URL hide_short_help,
        /// Web config file: TLS, users, headers
        ///
        /// YAML in the format of the Prometheus exporter toolkit. The exporter reloads the file when it
        /// changes, and on SIGHUP. Without it, the exporter serves plain HTTP and requires no login.
        #[arg(id = "web_config_file", long = "web.config.file", value_name = "FILE")]
        config_file: PathBuf,
        /// Use systemd socket activation [default: false]
        ///
        /// The exporter then ignores the option --web.listen-address, and does not start if systemd passes no socket.
        systemd_socket: bool => "web.systemd-socket",
    }
}

section! {
    /// The log, on standard error.
    #[command(next_help_heading = "Logging")]
    LogOptions {
        /// Minimum log level [default: info]
        ///
        /// One of error, warn, info and debug; for a part of the program its own: info,ib_umad=debug. Parts are
        /// named in the field "target" of log lines. The log is written to standard error.
        level: LogFilter = "log.level" LEVEL,
        /// Format of log lines [default: logfmt]
        format: LogFormat = "log.format" FORMAT hide_short_help,
    }
}

section! {
    /// The process itself.
    #[command(next_help_heading = "Process")]
    ProcessOptions {
        /// Sandbox the process after start-up [default: true]
        ///
        /// The exporter drops its capabilities, limits its file access (Landlock) to system files that it needs and the
        /// directories of the configured files, and its system calls (seccomp): it starts no programs, and opens no
        /// connections except for --fabric.totals-from, --fabric.from and --notify.webhook. The log names what the kernel
        /// does not support.
        confine: bool => "process.confine",
        /// User that "serve" becomes when root starts it [default: fabric-exporter, else nobody]
        ///
        /// A name of /etc/passwd, a number, or the numbers of user and group (65534:65534). It becomes this user once
        /// devices, sockets and files are open.
        user: String = "process.user" USER hide_short_help,
        /// Stay root when root starts "serve" [default: false]
        ///
        /// Some files of sysfs, such as the VPD of adapters with part and serial numbers, are for root only.
        allow_root: bool => "process.allow-root",
    }
}

section! {
    /// Where the kernel's file systems are mounted.
    #[command(next_help_heading = "Paths")]
    PathOptions {
        /// Mount point of sysfs [default: /sys]
        ///
        /// Set it in a container that has the host's sysfs elsewhere.
        sysfs: PathBuf = "path.sysfs" DIR hide_short_help,
        /// Mount point of procfs [default: /proc]
        procfs: PathBuf = "path.procfs" DIR hide_short_help,
    }
}

section! {
    /// Which collectors run.
    #[command(next_help_heading = "Collectors")]
    CollectorOptions {
        /// Sweep the fabric (on by default)
        #[arg(long = "collector.fabric", num_args = 0, default_missing_value = "true",
              overrides_with = "no_fabric", hide_short_help = true)]
        fabric: bool,
        /// Do not sweep the fabric
        ///
        /// For compute nodes: the exporter then sends no MADs and needs no privileges.
        #[arg(long = "no-collector.fabric", num_args = 0, default_missing_value = "true",
              overrides_with = "fabric")]
        #[serde(skip)]
        no_fabric: bool,
        /// Read this host's RDMA devices (on by default)
        #[arg(long = "collector.host", num_args = 0, default_missing_value = "true",
              overrides_with = "no_host", hide_short_help = true)]
        host: bool,
        /// Do not read this host's RDMA devices
        #[arg(long = "no-collector.host", num_args = 0, default_missing_value = "true",
              overrides_with = "host")]
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
    #[command(next_help_heading = "Host")]
    HostOptions {
        /// Interval of host reads [default: 15s]
        ///
        /// At least 1s. Device events trigger further reads.
        #[arg(id = "host_interval", long = "host.interval", value_name = "DURATION")]
        interval: HumanDuration,
        /// Read only matching devices
        ///
        /// A regular expression that must match the whole device name, as in "mlx5_.*"; or kind:KIND, where KIND is
        /// nvlink_bridge, smi, virtual_function, sub_function or software; or pci:VENDOR:DEVICE, as in
        /// "pci:15b3:1021"; or pci:ADDRESS, as in "pci:0000:0b:00.0". Alternatives are separated by "|".
        device_include: String = "host.device-include" PATTERN,
        /// Do not read matching devices
        ///
        /// A pattern as of --host.device-include. Of a matching device no file is read, except for those that say what it
        /// is.
        device_exclude: String = "host.device-exclude" PATTERN,
        /// Retry interval for unreadable files [default: 5m]
        ///
        /// Some device files return an error or no value, for example on a virtual function. The
        /// exporter skips them for this time, because such reads can flood the kernel log. A file that worked
        /// before is retried at the next read, and skipped once that fails, too.
        error_backoff: HumanDuration = "host.error-backoff" DURATION hide_short_help,
        /// Receive device and kernel events [default: true]
        ///
        /// Asynchronous events (libibverbs) and uevents, so that short link flaps are counted and changes are
        /// read at once. Set it to false if a driver cannot be unloaded while its devices are open.
        events: bool => "host.events",
        /// Read Ethernet driver statistics [default: true]
        ///
        /// The same counters as "ethtool -S".
        ethtool: bool => "host.ethtool",
        /// Read cables and modules of Ethernet ports [default: false]
        ///
        /// The same data as "ethtool -m": part and serial number, temperature, optical power. Requires
        /// CAP_NET_ADMIN and Linux 5.13 or later.
        modules: bool => "host.modules",
        /// Read connection manager counters [default: false]
        ///
        /// 44 more series per port, most of them 0. Requires Linux 5.2 or later.
        cm_counters: bool => "host.cm-counters",
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
    /// How links are evaluated.
    #[command(next_help_heading = "Health")]
    HealthOptions {
        /// File with planned maintenance
        ///
        /// A YAML list of nodes, patterns of nodes (host-7*) and ports with start and end times. Between these times, link downs
        /// count as expected, and the verdict of the links is unknown. The exporter reloads the file when it changes.
        maintenance_file: PathBuf = "health.maintenance-file" FILE,
        /// File with drained hosts
        ///
        /// A host, node or Slurm host list such as gpu[001-004,7] per line, which a scheduler or a script writes: they
        /// are in maintenance with their links. The exporter reloads the file when it changes. While it is missing or
        /// invalid, the hosts that it had stay in maintenance.
        drained_hosts_file: PathBuf = "health.drained-hosts-file" FILE,
        /// Certainty that a bit error ratio is above its limit [default: high]
        ///
        /// Required before a link is called bad. "medium" finds bad links sooner, with more false alarms: see docs/trust.md.
        ber_confidence: String = "health.ber-confidence" LEVEL hide_short_help,
        /// Days with flaps until a link is degraded [default: 3]
        ///
        /// A link that flapped on so many days of --health.flap-window is degraded. Flaps less than 12 hours after the
        /// first of a day are of that day.
        flap_days: u8 = "health.flap-days" COUNT hide_short_help,
        /// Time in which these days count [default: 14d]
        ///
        /// After a restart of the exporter, those in the history count.
        flap_window: HumanDuration = "health.flap-window" DURATION hide_short_help,
        /// Limits of bit error ratios, which precede the built-in ones; only in the config file.
        #[arg(skip)]
        limits: Vec<LimitOption>,
    }
}

section! {
    /// The history, in a file on this host.
    #[command(next_help_heading = "History")]
    HistoryOptions {
        /// Record each sweep in this file
        ///
        /// A SQLite database, created if it does not exist. Query it with "fabric-exporter history".
        /// Without it nothing is recorded, and totals restart with the exporter.
        file: PathBuf = "history.file" FILE,
        /// Size limit of that file [default: 1GiB]
        ///
        /// At least 16MiB. At the limit the oldest data is deleted, traffic first and events last.
        size: ByteSize = "history.size" SIZE,
        /// Retention of traffic per sweep [default: 24h]
        ///
        /// Also of PortXmitWait and FEC corrections. Their hourly sums are kept for --history.retention.
        traffic_retention: HumanDuration = "history.traffic-retention" DURATION hide_short_help,
        /// Retention of everything else [default: 30d]
        ///
        /// Events, errors per sweep, traffic per hour, and fabric states.
        retention: HumanDuration = "history.retention" DURATION hide_short_help,
    }
}

section! {
    /// The jobs that run on the hosts.
    #[command(next_help_heading = "Jobs")]
    JobsOptions {
        /// Source of running jobs [default: none]
        ///
        /// slurm: a process beside the exporter runs squeue and sinfo. DIRECTORY: a file per host with the ids of its
        /// jobs, or a directory per host as the DCGM exporter reads it, which a prolog writes. See docs/jobs.md.
        from: String = "jobs.from" SOURCE,
        /// Interval of reads of jobs [default: 1m]
        ///
        /// At least 10s. While reads fail, the last known jobs are shown for 5 intervals.
        #[arg(id = "jobs_interval", long = "jobs.interval", value_name = "DURATION", hide_short_help = true)]
        interval: HumanDuration,
        /// Hosts drained in Slurm: maintenance [default: true]
        ///
        /// With --jobs.from=slurm, hosts that Slurm has drained are in maintenance with their links, as those of
        /// --health.drained-hosts-file are. A bad cable of a drained host is then unknown, and no alert about it fires.
        drained: bool => "jobs.drained",
    }
}

section! {
    /// Events, sent to a webhook.
    #[command(next_help_heading = "Notifications")]
    NotifyOptions {
        /// Send events to this URL [default: none]
        ///
        /// For sites without Alertmanager: changes of verdicts, links and nodes are sent as JSON by POST, and again until
        /// the receiver accepts them. http or https. See docs/notify.md.
        webhook: String = "notify.webhook" URL,
        /// Kinds of events to send
        ///
        /// Kinds such as node_down, separated by commas; "default": those that need attention, and that it is over;
        /// "all": all. Several are added up: default,cable_changed. By default: default.
        #[arg(long = "notify.kinds", value_name = "KINDS", value_delimiter = ',', hide_short_help = true)]
        kinds: Vec<String>,
        /// File with a bearer token for it
        ///
        /// Sent as "Authorization: Bearer TOKEN", with an http URL unencrypted. The file is read for each request, so the
        /// token can be replaced.
        token_file: PathBuf = "notify.token-file" FILE hide_short_help,
        /// CA certificates for it (PEM) [default: those of the system]
        ca_file: PathBuf = "notify.ca-file" FILE hide_short_help,
    }
}

section! {
    /// A fabric.
    #[command(next_help_heading = "Fabric")]
    FabricOptions {
        /// Value of the "fabric" label [default: default]
        name: String = "fabric.name" NAME hide_short_help,
        /// Data that another program collects
        ///
        /// Instead of MADs: the URL of UFM Telemetry, such as http://ufm:9002/csv/xcset/low_freq_debug, or a directory that
        /// ibdiagnet refills. Several URLs of one fabric are separated by blanks: counters are those of the first, cables
        /// and states may be those of others. Not with options of the port, of keys and of clearing. See
        /// docs/collected.md.
        #[arg(id = "fabric_from", long = "fabric.from", value_name = "SOURCE")]
        from: String,
        /// File with the password for that URL
        ///
        /// The user name is in --fabric.from, as in https://USER@HOST/csv.
        from_password_file: PathBuf = "fabric.from-password-file" FILE hide_short_help,
        /// CA certificates for that URL (PEM) [default: those of the system]
        from_ca_file: PathBuf = "fabric.from-ca-file" FILE hide_short_help,
        /// HCA to use [default: first usable]
        ///
        /// This HCA sends the MADs. By default it is the first one with an InfiniBand port that is Active, else
        /// that has a link. Devices that --host.device-exclude matches, and the bridges of NVSwitches, are used
        /// only if they are named here.
        hca: String = "fabric.hca" HCA,
        /// Port to use [default: first that is up]
        port: PortNumber = "fabric.port" PORT,
        /// SMI device of that HCA [default: found]
        ///
        /// A multi-plane HCA such as ConnectX-8 has no QP0: subnet management MADs are sent through a second device, of
        /// type smi in "rdma dev show", with a port for each plane. Other HCAs have none. By default it is the one with the
        /// port GUID of the HCA. Requires --fabric.hca.
        smi_hca: String = "fabric.smi-hca" HCA hide_short_help,
        /// Plane to send from [default: all Active]
        ///
        /// A port of the SMI device. Without an SMI device it has no effect.
        smi_port: PortNumber = "fabric.smi-port" PORT hide_short_help,
        /// Sweep interval [default: 15s]
        ///
        /// Time from the start of one sweep to the start of the next, at least 1s.
        interval: HumanDuration = "fabric.interval" DURATION,
        /// Discovery interval [default: 5m]
        ///
        /// How often to discover the fabric while nothing changes. After a change the exporter starts a discovery at once.
        discovery_interval: HumanDuration = "fabric.discovery-interval" DURATION hide_short_help,
        /// How long missing nodes are reported as down [default: 7d]
        ///
        /// A node, or a device of this host, that is missing for longer is no longer reported.
        forget_after: HumanDuration = "fabric.forget-after" DURATION hide_short_help,
        /// File with names for nodes
        ///
        /// The node-name-map of infiniband-diags and OpenSM. The exporter reloads it at each discovery.
        node_name_map: PathBuf = "fabric.node-name-map" FILE,
        /// The host in the name of an HCA
        ///
        /// A regular expression that must match the whole name of the HCA: its name in the node-name-map, otherwise
        /// its NodeDescription. The first group is the host; without a match, the whole name is the host. The default
        /// finds "gpu17" in "gpu17 mlx5_3".
        host_regex: String = "fabric.host-regex" REGEX hide_short_help,
        /// Devices that are rails of their hosts [default: all]
        ///
        /// "all", "none", or the devices between which jobs share their traffic, separated by commas, as NCCL_IB_HCA
        /// has them: mlx5_0,mlx5_3. A device is what follows the host in the name of an HCA. A host with only one of
        /// them has no rails.
        rails: String = "fabric.rails" DEVICES hide_short_help,
        /// Another exporter of the same fabric
        ///
        /// Address such as http://monitor-2:10315. The two exporters then have the same totals, so that Prometheus can
        /// change from one to the other. Set it on both. While the other one is unreachable, totals continue without it.
        totals_from: String = "fabric.totals-from" URL hide_short_help,
        /// File with the password for the other exporter
        ///
        /// The user name is in --fabric.totals-from, as in https://USER@HOST:10315.
        totals_password_file: PathBuf = "fabric.totals-password-file" FILE hide_short_help,
        /// CA certificates for the other exporter (PEM) [default: those of the system]
        totals_ca_file: PathBuf = "fabric.totals-ca-file" FILE hide_short_help,
        /// Client certificate for the other exporter (PEM)
        totals_cert_file: PathBuf = "fabric.totals-cert-file" FILE hide_short_help,
        /// Private key of that certificate (PEM)
        totals_key_file: PathBuf = "fabric.totals-key-file" FILE hide_short_help,
        /// File with the M_Key of the fabric
        ///
        /// One M_Key for all ports, or OpenSM's guid2mkey. Required if the subnet manager protects ports at M_Key
        /// protection level 2 or 3. The exporter reloads it at each discovery. Without it, SMPs carry M_Key 0.
        m_key_file: PathBuf = "fabric.m-key-file" FILE,
        /// File with the VSKeys of devices
        ///
        /// One VSKey for all devices, or the guid2vskey file of the subnet manager. Required to read registers if a
        /// key manager protects the vendor class. The exporter reloads it at each discovery. Keys are never guessed.
        vs_key_file: PathBuf = "fabric.vs-key-file" FILE,
        /// P_Key for performance management
        ///
        /// The partition in which counters are read, such as 0x8001. The local port should be a full member of
        /// it: otherwise hosts that are limited members do not respond. By default it is the first P_Key in the
        /// table of the port.
        pkey: PKey = "fabric.pkey" P_KEY,
        /// Service level of performance management [default: 0]
        ///
        /// 0 to 15, for performance management MADs and registers. For fabrics that throttle service level 0, or whose
        /// routing needs another one on each path (OpenSM's torus-2QoS, DFSSSP, LASH): one that all hosts can use.
        /// Subnet management has a virtual lane of its own.
        sl: u8 = "fabric.sl" N hide_short_help,
        /// Read error details in each sweep [default: false]
        ///
        /// PortRcvErrorDetails and PortXmitDiscardDetails of all devices that have them: two more MADs per port.
        details: bool => "fabric.details",
        /// How often to read error details [default: 2m]
        ///
        /// PortRcvErrorDetails and PortXmitDiscardDetails of devices that announce them in PortSamplesControl; 0 means never. Ignored with --fabric.details.
        details_interval: HumanDuration = "fabric.details-interval" DURATION hide_short_help,
        /// Read FEC counters [default: true]
        ///
        /// One more MAD per port with Reed-Solomon FEC.
        fec: bool => "fabric.fec",
        /// Read registers of NVIDIA devices (on by default)
        #[arg(long = "fabric.registers", num_args = 0, default_missing_value = "true",
              overrides_with = "no_registers", hide_short_help = true)]
        registers: bool,
        /// Do not read registers of NVIDIA devices
        ///
        /// Registers contain the firmware version, uptime and temperature of devices, the bit error ratios of ports, and
        /// the data of modules. They are read by Gets of the vendor-specific management class.
        #[arg(long = "no-fabric.registers", num_args = 0, default_missing_value = "true",
              overrides_with = "registers")]
        #[serde(skip)]
        no_registers: bool,
        /// How often to read bit error ratios and errors by lane [default: 1m]
        physical_interval: HumanDuration = "fabric.physical-interval" DURATION hide_short_help,
        /// Export errors by lane, the FEC histogram and details of lasers [default: false]
        ///
        /// Sends one more MAD per port every --fabric.physical-interval, and adds 20 to 30 series per port.
        lanes: bool => "fabric.lanes",
        /// How often to read transceivers and cables [default: 10m]
        module_interval: HumanDuration = "fabric.module-interval" DURATION hide_short_help,
        /// How often to read uptime and temperature of devices [default: 1m]
        environment_interval: HumanDuration
            = "fabric.environment-interval" DURATION hide_short_help,
        /// Clear nearly saturated counters [default: false]
        ///
        /// THIS WRITES TO THE FABRIC. Counters of fewer than 64 bits, except error details, are cleared when they are
        /// above three quarters of their maximum. Other tools that read the same ports see these counters restart at 0.
        clear_saturated: bool => "fabric.clear-saturated",
        /// Window of subnet management MADs [default: 8]
        ///
        /// Up to twice as many are in flight in total. Use 4 on a host that also runs a subnet manager.
        smp_window: u16 = "fabric.smp-window" N hide_short_help,
        /// Window of performance management MADs [default: 128]
        ///
        /// Up to twice as many are in flight in total. Reduce it if infiniband_port_qp1_dropped_total of the port that
        /// the exporter uses (--fabric.port) increases.
        gmp_window: u16 = "fabric.gmp-window" N hide_short_help,
        /// Subnet management MADs in flight per LID [default: 2]
        smp_lid_window: u16 = "fabric.smp-lid-window" N hide_short_help,
        /// Performance management MADs in flight per LID [default: 4]
        gmp_lid_window: u16 = "fabric.gmp-lid-window" N hide_short_help,
        /// Response timeout of a MAD [default: 500ms]
        timeout: HumanDuration = "fabric.timeout" DURATION hide_short_help,
        /// Retries after a timeout [default: 2]
        retries: u8 = "fabric.retries" N hide_short_help,
        /// Limit of MADs per second [default: 0, no limit]
        ///
        /// All MADs of this fabric count, also retries. For a fabric whose management should not see bursts. Sweeps and
        /// discoveries take longer: doctor shows how long a sweep takes with it.
        max_mads_per_second: u32 = "fabric.max-mads-per-second" N hide_short_help,
        /// Limit of MADs per minute that read forwarding tables [default: 4000; 0: never read]
        ///
        /// They are read to answer questions about routes, and which hosts' packets cross a bad link. All clients of the
        /// exporter share the limit. Retries are not counted.
        forwarding_smps_per_minute: u32 = "fabric.forwarding-smps-per-minute" N hide_short_help,
        /// Record all MADs in this file
        ///
        /// A capture for Wireshark. It is overwritten at each start. M_Keys, SM_Keys and VSKeys are replaced by zeros.
        capture: PathBuf = "fabric.capture" FILE hide_short_help,
        /// Size limit of the capture in MiB [default: 100]
        capture_limit: u64 = "fabric.capture-limit" MIB hide_short_help,
    }
}

/// All settings, in the order of the help; as flags, or as sections of the config file.
#[derive(Args, Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
#[expect(missing_docs, reason = "the types say it")]
pub struct Options {
    /// The fabric, or what all listed ones have in common.
    #[command(flatten)]
    pub fabric: FabricOptions,
    #[command(flatten)]
    pub host: HostOptions,
    #[command(flatten)]
    pub collector: CollectorOptions,
    #[command(flatten)]
    pub health: HealthOptions,
    #[command(flatten)]
    pub history: HistoryOptions,
    #[command(flatten)]
    pub jobs: JobsOptions,
    #[command(flatten)]
    pub notify: NotifyOptions,
    #[command(flatten)]
    pub web: WebOptions,
    #[command(flatten)]
    pub log: LogOptions,
    #[command(flatten)]
    pub process: ProcessOptions,
    #[command(flatten)]
    pub path: PathOptions,
    /// Several fabrics; only in the config file.
    #[arg(skip)]
    pub fabrics: Vec<FabricOptions>,
}
