//! Settings of the HTTP server, of this host's own devices, of the evaluation of links, and of the history.

use std::collections::BTreeSet;
use std::net::{SocketAddr, ToSocketAddrs};
use std::path::PathBuf;
use std::time::Duration;

use axum::http::Uri;
use axum::http::uri::Authority;
use exporter_web::AllowedHosts;
use fabric_history::settings::HistorySettings;
use ib_health::flap_limits::FlapDayLimit;
use ib_health::limits::{Confidence, LimitRow, LimitTable, Limits};
use ib_mad::fec::Fec;
use ib_mad::rate::Speed;
use process_clock::Clock;
use rdma_host::model::PortFabrics;
use rdma_host::reader::{DeviceFilter, HostReader, ReadOptions};
use yaml_config::diagnostics::{Diagnostics, Report, check_minimum};
use yaml_config::units::{ByteSize, HumanDuration};

use super::fabric::{DEFAULT_FABRIC, FabricSettings};
use super::options::{
    HealthOptions, HistoryOptions, HostOptions, LimitOption, WebOptions, seconds_or,
};

/// The first segments of the paths of probes, API and pages, which the metrics cannot have.
pub const RESERVED_PATHS: [&str; 19] = [
    "-",
    "api",
    "changes",
    "crossed",
    "events",
    "host",
    "hosts",
    "link",
    "links",
    "modules",
    "node",
    "port",
    "runbooks",
    "route",
    "search",
    "switches",
    "topology",
    "topology.svg",
    "traffic",
];

impl WebOptions {
    pub(super) fn validate(&self, report: Report<'_>) {
        // A path would not work: links between pages begin with `/`.
        let external = self.external_url.as_deref().and_then(|url| url_problem(url, false));
        let mut hosts = self.allowed_hosts.iter().flatten();
        for (key, problem) in [
            ("allowed-hosts", hosts.find_map(|name| AllowedHosts::problem(name))),
            ("telemetry-path", self.telemetry_path.as_deref().and_then(path_problem)),
            ("external-url", external),
            ("grafana-url", self.grafana_url.as_deref().and_then(|url| url_problem(url, true))),
        ] {
            if let Some(problem) = problem {
                report(key, problem);
            }
        }
    }
}

/// Why a path cannot be that of the metrics: its segments are not plain, or it is reserved.
fn path_problem(path: &str) -> Option<String> {
    let plain = |char: char| char.is_ascii_alphanumeric() || "-_.~".contains(char);
    let mut segments = path.split('/');
    if segments.next() != Some("")
        || !segments.all(|segment| !segment.is_empty() && segment.chars().all(plain))
    {
        return Some(format!(
            "{path:?} is not a path such as /metrics: it must begin with /, and contain only letters, \
             digits, - _ . ~ and single slashes"
        ));
    }
    let first = path.split('/').nth(1).unwrap_or_default();
    RESERVED_PATHS.contains(&first).then(|| {
        format!("{path:?} is reserved: the exporter serves its own pages below /{first}; choose another path")
    })
}

/// Why a text cannot be the URL of a server, with a path or without one.
fn url_problem(url: &str, may_have_path: bool) -> Option<String> {
    let is_origin = |uri: Uri| {
        let host = uri.authority().map(Authority::as_str);
        matches!(uri.scheme_str(), Some("http" | "https"))
            && host.is_some_and(|host| !host.contains('@') && !host.starts_with(':'))
            && uri.query().is_none()
            && (may_have_path || uri.path() == "/")
    };
    let valid = !url.contains('#') && url.parse().is_ok_and(is_origin);
    (!valid).then(|| {
        let (example, path) = if may_have_path {
            ("https://grafana.example or https://ib.example/grafana", "")
        } else {
            ("https://ib.example or http://ib.example:10315", " and path")
        };
        format!(
            "{url:?} is not a URL such as {example}: http or https, and a host without user{path}"
        )
    })
}

/// The addresses to listen on: of each host name all of its addresses. Names are resolved once.
pub(super) fn listen(
    flags: &WebOptions,
    file: &WebOptions,
    diagnostics: &mut Diagnostics<'_>,
) -> Vec<Vec<SocketAddr>> {
    let default = vec![":10315".to_owned()];
    let given = |of: &WebOptions| of.listen_address.clone().filter(|given| !given.is_empty());
    let (by_flag, in_file) = (given(flags), given(file));
    let flag = by_flag.is_some().then_some("--web.listen-address");
    let mut addresses = Vec::new();
    for (index, text) in by_flag.or(in_file).unwrap_or(default).iter().enumerate() {
        let found = resolve(text);
        if found.is_empty() {
            let key = format!("web.listen-address[{index}]");
            diagnostics.add(flag, &[&key], unusable(text));
        }
        addresses.push(found);
    }
    addresses
}

/// Why an address has no usable form.
fn unusable(text: &str) -> String {
    match text.rsplit_once(':') {
        None => format!("{text:?} has no port: write {text}:10315"),
        Some((_, port)) if port.parse::<u16>().is_err() => {
            format!("{text:?}: the port must be a number between 1 and 65535")
        }
        Some(_) => format!(
            "{text:?} is not an address such as :10315, 127.0.0.1:10315 or [::1]:10315, or its host \
             name cannot be resolved"
        ),
    }
}

/// `HOST:PORT`, or `:PORT` for all addresses. A host can have several: `localhost` is `::1`, too.
fn resolve(text: &str) -> Vec<SocketAddr> {
    let full = if text.starts_with(':') { format!("[::]{text}") } else { text.to_owned() };
    // `/etc/hosts` may have a name twice, and a second bind would find the port taken.
    let mut known = BTreeSet::new();
    full.to_socket_addrs().into_iter().flatten().filter(|it| known.insert(*it)).collect()
}

/// This host's own devices.
#[derive(Clone, Debug)]
pub struct HostSettings {
    /// Where sysfs is mounted.
    pub sysfs: PathBuf,
    /// From the start of one read to that of the next.
    pub interval: Duration,
    /// Which devices are read.
    pub filter: DeviceFilter,
    /// What is read of a device, and how often after failures.
    pub read: ReadOptions,
    /// How long a device that disappeared is reported as down: the longest time that a fabric has for nodes.
    pub forget_after: Duration,
    /// Whether to listen to the events of devices.
    pub events: bool,
    /// Which port is in which fabric.
    pub port_fabrics: PortFabrics,
}

impl HostOptions {
    pub(super) fn validate(&self, report: Report<'_>) {
        let second = Duration::from_secs(1);
        check_minimum("interval", self.interval, second, report);
        for (key, pattern) in
            [("device-include", &self.device_include), ("device-exclude", &self.device_exclude)]
        {
            if let Some(text) = pattern
                && let Err(error) = DeviceFilter::new(Some(text), None)
            {
                report(key, error.to_string());
            }
        }
        check_minimum("error-backoff", self.error_backoff, second, report);
    }

    /// Excludes devices, also if the host's devices are not read.
    pub(super) fn excluded(&self) -> DeviceFilter {
        DeviceFilter::new(None, self.device_exclude.as_deref()).unwrap_or_default()
    }

    pub(super) fn settings(self, sysfs: PathBuf, fabrics: &[FabricSettings]) -> HostSettings {
        let patterns = (self.device_include.as_deref(), self.device_exclude.as_deref());
        HostSettings {
            sysfs,
            interval: seconds_or(self.interval, 15),
            filter: DeviceFilter::new(patterns.0, patterns.1).unwrap_or_default(),
            read: ReadOptions {
                error_backoff: seconds_or(self.error_backoff, 300),
                ethtool: self.ethtool.unwrap_or(true),
                cm: self.cm_counters.unwrap_or(false),
                modules: self.modules.unwrap_or(false),
            },
            forget_after: fabrics.iter().map(|it| it.forget_after).max().unwrap_or_default(),
            events: self.events.unwrap_or(true),
            port_fabrics: port_fabrics(fabrics),
        }
    }
}

impl HostSettings {
    /// The reader of the devices of this host.
    pub fn reader(&self, clock: Clock) -> HostReader {
        HostReader::new(self.sysfs.clone(), self.filter.clone(), self.read, clock)
    }
}

/// Which of this host's ports is in which fabric. With one fabric all are in it, for a host's other ports are
/// mostly its other rails; with several, those that are listed.
fn port_fabrics(fabrics: &[FabricSettings]) -> PortFabrics {
    let ports = fabrics
        .iter()
        .filter_map(|fabric| Some((fabric.hca.clone()?, fabric.port, fabric.name.as_str().into())));
    let default = match fabrics {
        [only] => only.name.as_str(),
        _ => DEFAULT_FABRIC,
    };
    PortFabrics { ports: ports.collect(), default: default.into() }
}

/// Bit error ratios that can be set. Below, one error would take months; above, no packet would arrive.
const RATIOS: std::ops::RangeInclusive<f64> = 1e-18..=1e-2;

impl HealthOptions {
    pub(super) fn validate(&self, report: Report<'_>) {
        for (index, limit) in self.limits.iter().flatten().enumerate() {
            limit.validate(index, report);
        }
        if let Some(label) = &self.ber_confidence
            && Confidence::from_label(label).is_none()
        {
            let known = Confidence::labels();
            report("ber-confidence", format!("{label:?} is not one of: {known}"));
        }
        let most = FlapDayLimit::MOST;
        if let Some(days) = self.flap_days.filter(|days| !(2..=most).contains(days)) {
            report("flap-days", format!("{days} is not between 2 and {most}"));
        }
        check_minimum("flap-window", self.flap_window, Duration::from_secs(24 * 3600), report);
    }

    pub(super) fn limit_table(&self) -> LimitTable {
        let confidence = self.ber_confidence.as_deref().and_then(Confidence::from_label);
        let usual = FlapDayLimit::default();
        LimitTable {
            rows: self.limits.iter().flatten().filter_map(LimitOption::row).collect(),
            confidence: confidence.unwrap_or_default(),
            flap_days: FlapDayLimit {
                days: self.flap_days.unwrap_or(usual.days),
                within: self.flap_window.map_or(usual.within, Duration::from),
            },
        }
    }
}

impl LimitOption {
    fn validate(&self, index: usize, report: Report<'_>) {
        let key = |key: &str| format!("limits[{index}].{key}");
        if Speed::from_label(&self.speed).is_none() {
            let known = Speed::labels();
            report(&key("speed"), format!("{:?} is not one of: {known}", self.speed));
        }
        if let Some(label) = self.fec.as_deref().filter(|label| Fec::from_label(label).is_none()) {
            let known = Fec::labels();
            report(&key("fec"), format!("{label:?} is not one of: {known}"));
        }
        for (name, ratio) in [("symbol", Some(self.symbol)), ("pre-fec", self.pre_fec)] {
            if let Some(ratio) = ratio.filter(|ratio| !RATIOS.contains(ratio)) {
                let (min, max) = (RATIOS.start(), RATIOS.end());
                report(&key(name), format!("{ratio:e} is not between {min:e} and {max:e}"));
            }
        }
    }

    fn row(&self) -> Option<LimitRow> {
        let speed = Speed::from_label(&self.speed)?;
        let limits =
            Limits { symbol: self.symbol as f32, pre_fec: self.pre_fec.map(|ratio| ratio as f32) };
        Some(LimitRow { speed, fec: self.fec.as_deref().and_then(Fec::from_label), limits })
    }
}

/// The smallest size of a history: one sweep of the largest fabrics, or some days of a small one.
const MIN_SIZE: u64 = 16 << 20;

impl HistoryOptions {
    pub(super) fn validate(&self, report: Report<'_>) {
        if let Some(ByteSize(size)) = self.size.filter(|ByteSize(size)| *size < MIN_SIZE) {
            let shown = match size % (1 << 20) {
                0 => format!("{}MiB", size >> 20),
                _ => format!("{size} bytes"),
            };
            report("size", format!("{shown} is less than the minimum of 16MiB"));
        }
        let minute = Duration::from_secs(60);
        check_minimum("traffic-retention", self.traffic_retention, minute, report);
        check_minimum("retention", self.retention, minute, report);
    }

    pub(super) fn settings(self) -> Option<HistorySettings> {
        let defaults = HistorySettings::new(self.file?);
        let or = |value: Option<HumanDuration>, default| value.map_or(default, Duration::from);
        Some(HistorySettings {
            size: self.size.map_or(defaults.size, |ByteSize(size)| size),
            traffic_retention: or(self.traffic_retention, defaults.traffic_retention),
            retention: or(self.retention, defaults.retention),
            ..defaults
        })
    }
}
