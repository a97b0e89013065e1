//! The situations in which dashboards are tested: a simulated fabric with the exporter's own monitor and
//! exposition, a host's exporter, and a real Prometheus that scrapes both, with and without the project's
//! rules.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, SystemTime};

use axum::Router;
use axum::extract::State;
use axum::routing::get;
use fabric_exporter::config::options::{FabricOptions, Options};
use fabric_exporter::metrics::selection::{Profile, Selection};
use ib_sim::scenario::{Overrides, Scenario};

use test_rig::prometheus::Setup;
use test_rig::sysfs::{Device, Tree};
use test_rig::{Exporter, Prometheus, Simulated, rules, wait_until};

/// The interval of scrapes and evaluations. A busy machine takes a second for a scrape.
const INTERVAL: Duration = Duration::from_secs(2);

/// The interval of sweeps: short enough for several between two scrapes, and long enough for the sweeps of
/// the whole scenario to take a few seconds.
const SWEEPS: &str = "3s";

/// The age of the scenario at the first scrape. A link gets its verdict after 10 minutes.
const STORY: Duration = Duration::from_secs(12 * 60);

/// How long nothing has been swept where sweeps hang.
const HANGS_FOR: Duration = Duration::from_secs(10 * 60);

/// The scrapes and evaluations to wait for, until rates are known and recorded values have passed through
/// all rules that build on each other.
const ROUNDS: usize = 4;

const LIMIT: Duration = Duration::from_secs(300);

/// One end of the link that goes bad, and its switch.
pub const BAD_PORT: &str = "leaf-0-1[5]";

/// The events in the fabric, by the scenario's clock.
pub struct Fabric {
    name: &'static str,
    timeline: &'static str,
    hangs: bool,
}

pub const HEALTHY: Fabric = Fabric { name: "fabric", timeline: "", hangs: false };
pub const BAD_CABLE: Fabric = Fabric {
    name: "fabric",
    timeline: "timeline: [{bad-cable: {at: 5m, into: 'leaf-0-1[5]', ratio: 1e-9}}]",
    hangs: false,
};
/// The device does not respond: there are no more sweeps, and the result of the last one is served.
pub const HANGS: Fabric = Fabric { name: "other", timeline: "", hangs: true };
/// The cable of the exporter's own port is unplugged.
pub const CUT_OFF: Fabric = Fabric {
    name: "fabric",
    timeline: "timeline: [{unplug: {at: 11m, link: 'host-0[1]'}}]",
    hangs: false,
};

/// A leaf switch with its four hosts is down, and this exporter remembers it.
pub const REMEMBERS: Fabric = Fabric {
    name: "fabric",
    timeline: "timeline: [{reboot: {at: 11m, node: leaf-0-3, down: 2h}}]",
    hangs: false,
};
/// The same fabric for an exporter that was restarted since: it has never seen the switch.
pub const RESTARTED: Fabric = Fabric {
    name: "fabric",
    timeline: "timeline: [{reboot: {at: 0s, node: leaf-0-3, down: 2h}}]",
    hangs: false,
};

/// The time of queries of stored samples, in seconds since 1970.
pub const NOW: f64 = 1_700_000_000.0;
const DAY: f64 = 86400.0;

/// A stored series: its labels, its value, and the age of the last scrape in seconds. It had the same value
/// for an hour before.
pub type Sample = (&'static str, f64, f64);

/// Two exporters of one fabric: the first remembers a switch with its hosts, and misses ports.
pub const ONE_MISSES_PORTS: [Sample; 12] = [
    (r#"fabric_exporter_sweep_interval_seconds{job="j",instance="a",fabric="f"}"#, 60.0, 5.0),
    (r#"infiniband_fabric_links{job="j",instance="a",fabric="f",verdict="ok"}"#, 9.0, 5.0),
    (r#"fabric_exporter_ports_failed{job="j",instance="a",fabric="f"}"#, 3.0, 5.0),
    (
        r#"infiniband_fabric_nodes{job="j",instance="a",fabric="f",node_type="switch",state="down"}"#,
        1.0,
        5.0,
    ),
    (
        r#"infiniband_fabric_nodes{job="j",instance="a",fabric="f",node_type="ca",state="down"}"#,
        4.0,
        5.0,
    ),
    (r#"up{job="j",instance="a"}"#, 1.0, 5.0),
    (r#"fabric_exporter_sweep_interval_seconds{job="j",instance="b",fabric="f"}"#, 60.0, 5.0),
    (r#"infiniband_fabric_links{job="j",instance="b",fabric="f",verdict="ok"}"#, 9.0, 5.0),
    (r#"fabric_exporter_ports_failed{job="j",instance="b",fabric="f"}"#, 0.0, 5.0),
    (
        r#"infiniband_fabric_nodes{job="j",instance="b",fabric="f",node_type="switch",state="down"}"#,
        0.0,
        5.0,
    ),
    (
        r#"infiniband_fabric_nodes{job="j",instance="b",fabric="f",node_type="ca",state="down"}"#,
        0.0,
        5.0,
    ),
    (r#"up{job="j",instance="b"}"#, 1.0, 5.0),
];

/// One of two hosts read its devices an hour ago, and found one down.
pub const HOST_HANGS_AND_ITS_DEVICE_IS_DOWN: [Sample; 6] = [
    (r#"fabric_exporter_host_read_timestamp_seconds{job="h",instance="a"}"#, NOW - 3600.0, 5.0),
    (r#"fabric_exporter_host_read_interval_seconds{job="h",instance="a"}"#, 15.0, 5.0),
    (r#"infiniband_device_up{job="h",instance="a",device="mlx5_0"}"#, 0.0, 5.0),
    (r#"fabric_exporter_host_read_timestamp_seconds{job="h",instance="b"}"#, NOW - 10.0, 5.0),
    (r#"fabric_exporter_host_read_interval_seconds{job="h",instance="b"}"#, 15.0, 5.0),
    (r#"infiniband_device_up{job="h",instance="b",device="mlx5_0"}"#, 1.0, 5.0),
];

/// One of two hosts read its devices an hour ago, and found all up.
pub const HOST_HANGS: [Sample; 8] = [
    (r#"fabric_exporter_host_read_timestamp_seconds{job="h",instance="a"}"#, NOW - 3600.0, 5.0),
    (r#"fabric_exporter_host_read_interval_seconds{job="h",instance="a"}"#, 15.0, 5.0),
    (r#"fabric_exporter_host_read_duration_seconds{job="h",instance="a"}"#, 0.25, 5.0),
    (r#"infiniband_device_up{job="h",instance="a",device="mlx5_0"}"#, 1.0, 5.0),
    (r#"fabric_exporter_host_read_timestamp_seconds{job="h",instance="b"}"#, NOW - 10.0, 5.0),
    (r#"fabric_exporter_host_read_interval_seconds{job="h",instance="b"}"#, 15.0, 5.0),
    (r#"fabric_exporter_host_read_duration_seconds{job="h",instance="b"}"#, 0.5, 5.0),
    (r#"infiniband_device_up{job="h",instance="b",device="mlx5_0"}"#, 1.0, 5.0),
];

/// A host whose exporter reads its devices every 5 minutes.
pub const HOST_LOOKS_SELDOM: [Sample; 3] = [
    (r#"fabric_exporter_host_read_timestamp_seconds{job="h",instance="a"}"#, NOW - 200.0, 5.0),
    (r#"fabric_exporter_host_read_interval_seconds{job="h",instance="a"}"#, 300.0, 5.0),
    (r#"infiniband_device_up{job="h",instance="a",device="mlx5_0"}"#, 1.0, 5.0),
];

/// Two exporters read the cable between two ports.
pub const MODULES: [Sample; 5] = [
    (r#"infiniband_fabric_links{job="j",instance="a",fabric="f",verdict="ok"}"#, 1.0, 5.0),
    (r#"infiniband_fabric_links{job="j",instance="b",fabric="f",verdict="ok"}"#, 1.0, 5.0),
    (
        r#"infiniband_module_info{job="j",instance="a",fabric="f",guid="0x1",port="9",vendor="V",part_number="P",serial_number="S",revision="A1",kind="active cable",form_factor="OSFP",length_meters="10"}"#,
        1.0,
        5.0,
    ),
    (
        r#"infiniband_module_info{job="j",instance="b",fabric="f",guid="0x1",port="9",vendor="V",part_number="P",serial_number="S",revision="A1",kind="active cable",form_factor="OSFP",length_meters="10"}"#,
        1.0,
        5.0,
    ),
    (
        r#"infiniband_module_info{job="j",instance="a",fabric="f",guid="0x2",port="1",vendor="V",part_number="P",serial_number="S",revision="A1",kind="active cable",form_factor="OSFP",length_meters="10"}"#,
        1.0,
        5.0,
    ),
];

/// One of two exporters of a fabric, and one of two hosts, has not been a target for an hour.
pub const TARGETS_VANISH: [Sample; 9] = [
    (r#"up{job="fabric-exporter",instance="a"}"#, 1.0, 3600.0),
    (
        r#"fabric_exporter_sweep_interval_seconds{job="fabric-exporter",instance="a",fabric="f"}"#,
        60.0,
        3600.0,
    ),
    (r#"fabric_exporter_ports_failed{job="fabric-exporter",instance="a",fabric="f"}"#, 0.0, 3600.0),
    (r#"up{job="fabric-exporter",instance="b"}"#, 1.0, 5.0),
    (
        r#"fabric_exporter_sweep_interval_seconds{job="fabric-exporter",instance="b",fabric="f"}"#,
        60.0,
        5.0,
    ),
    (
        r#"infiniband_fabric_links{job="fabric-exporter",instance="b",fabric="f",verdict="ok"}"#,
        9.0,
        5.0,
    ),
    (r#"fabric_exporter_ports_failed{job="fabric-exporter",instance="b",fabric="f"}"#, 0.0, 5.0),
    (r#"up{job="fabric-exporter-hosts",instance="c"}"#, 1.0, 3600.0),
    (r#"up{job="fabric-exporter-hosts",instance="d"}"#, 1.0, 5.0),
];

/// One exporter of two fabrics is down for three days; Prometheus still tries to scrape it.
pub const DOWN_FOR_DAYS: [Sample; 12] = [
    (r#"up{job="fabric-exporter",instance="a"}"#, 0.0, 5.0),
    (
        r#"fabric_exporter_sweep_interval_seconds{job="fabric-exporter",instance="a",fabric="f"}"#,
        60.0,
        3.0 * DAY,
    ),
    (
        r#"fabric_exporter_ports_failed{job="fabric-exporter",instance="a",fabric="f"}"#,
        0.0,
        3.0 * DAY,
    ),
    (r#"up{job="fabric-exporter",instance="b"}"#, 1.0, 5.0),
    (
        r#"fabric_exporter_sweep_interval_seconds{job="fabric-exporter",instance="b",fabric="g"}"#,
        60.0,
        5.0,
    ),
    (
        r#"infiniband_fabric_links{job="fabric-exporter",instance="b",fabric="g",verdict="ok"}"#,
        9.0,
        5.0,
    ),
    (
        r#"infiniband_fabric_links{job="fabric-exporter",instance="b",fabric="g",verdict="bad"}"#,
        0.0,
        5.0,
    ),
    (
        r#"infiniband_fabric_nodes{job="fabric-exporter",instance="b",fabric="g",node_type="switch",state="down"}"#,
        0.0,
        5.0,
    ),
    (r#"fabric_exporter_ports_failed{job="fabric-exporter",instance="b",fabric="g"}"#, 0.0, 5.0),
    (r#"fabric_exporter_nodes_failed{job="fabric-exporter",instance="b",fabric="g"}"#, 0.0, 5.0),
    (r#"fabric_exporter_discovery_gaps{job="fabric-exporter",instance="b",fabric="g"}"#, 0.0, 5.0),
    (r#"up{job="fabric-exporter-hosts",instance="c"}"#, 1.0, 5.0),
];

/// A Prometheus with stored samples only.
pub fn stored(samples: &[Sample]) -> Prometheus {
    let mut text = String::new();
    let mut names: BTreeMap<&str, Vec<&Sample>> = BTreeMap::new();
    for sample in samples {
        names.entry(sample.0.split('{').next().unwrap()).or_default().push(sample);
    }
    for (name, series) in names {
        let _ = writeln!(text, "# TYPE {name} gauge");
        for (series, value, ago) in series {
            for at in [NOW - ago - 3600.0, NOW - ago] {
                let _ = writeln!(text, "{series} {value} {at:.3}");
            }
        }
    }
    text.push_str("# EOF\n");
    Prometheus::stored(|path| std::fs::write(path, &text).unwrap())
}

/// A fabric, served as the exporter serves it.
pub struct Served {
    simulated: Arc<Mutex<Story>>,
    address: String,
    runtime: Option<tokio::runtime::Runtime>,
}

struct Story {
    simulated: Simulated,
    began: SystemTime,
    hangs: bool,
    selection: Selection,
}

impl Story {
    /// The response to a scrape. The scenario's clock follows the real one, unless sweeps hang.
    fn scrape(&self) -> String {
        let now = SystemTime::now();
        if !self.hangs {
            self.simulated.run_to(now.duration_since(self.began).unwrap());
        }
        self.simulated.scrape_of(&self.selection, now)
    }
}

impl Served {
    pub fn start(fabric: &Fabric) -> Self {
        Self::with(fabric, Profile::Full)
    }

    /// With the metrics of a profile alone.
    pub fn with(fabric: &Fabric, profile: Profile) -> Self {
        let Fabric { name, timeline, hangs } = *fabric;
        let yaml = format!(
            "fabric: {{fat-tree: {{hosts: 16, radix: 8, down: 4, up: 4, switch: switchx, hca: connectx-3}}}}\n{timeline}\n"
        );
        let scenario = Scenario::parse("test", &yaml).unwrap_or_else(|error| panic!("{error}"));
        let story =
            scenario.resolve(&Overrides::default()).unwrap_or_else(|error| panic!("{error}"));
        let options = FabricOptions {
            name: Some(name.into()),
            details: Some(true),
            interval: SWEEPS.parse().ok(),
            ..FabricOptions::default()
        };
        let ago = STORY + if hangs { HANGS_FOR } else { Duration::ZERO };
        let began = SystemTime::now() - ago;
        let options = Options { fabric: options, ..Options::default() };
        let simulated = Simulated::begun(story, options, began);
        simulated.run_to(STORY);
        let simulated =
            Arc::new(Mutex::new(Story { simulated, began, hangs, selection: profile.into() }));
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(1)
            .enable_all()
            .build()
            .unwrap();
        let listener = runtime.block_on(tokio::net::TcpListener::bind("127.0.0.1:0")).unwrap();
        let address = listener.local_addr().unwrap().to_string();
        let state = Arc::clone(&simulated);
        let router = Router::new().route("/metrics", get(metrics)).with_state(state);
        runtime.spawn(async move { axum::serve(listener, router).await });
        Served { simulated, address, runtime: Some(runtime) }
    }

    pub fn address(&self) -> &str {
        &self.address
    }

    /// Stops listening.
    pub fn stop(&mut self) {
        if let Some(runtime) = self.runtime.take() {
            runtime.shutdown_timeout(Duration::from_secs(5));
        }
    }

    /// The link that goes bad, as labels: `link`, and `guid_a` to `node_b` of both ends.
    pub fn cable(&self) -> BTreeMap<&'static str, String> {
        let story = self.simulated.lock().unwrap_or_else(PoisonError::into_inner);
        let metrics = story.simulated.metrics();
        let (node, port) = BAD_PORT.trim_end_matches(']').split_once('[').unwrap();
        let ends = [("node", "port"), ("peer_node", "peer_port")];
        let (labels, _) = metrics
            .all("infiniband_link_info")
            .find(|(labels, _)| ends.iter().any(|(n, p)| labels[*n] == node && labels[*p] == port))
            .unwrap();
        [
            ("link", "link"),
            ("guid_a", "guid"),
            ("port_a", "port"),
            ("node_a", "node"),
            ("guid_b", "peer_guid"),
            ("port_b", "peer_port"),
            ("node_b", "peer_node"),
        ]
        .map(|(variable, label)| (variable, labels[label].clone()))
        .into()
    }
}

impl Drop for Served {
    fn drop(&mut self) {
        self.stop();
    }
}

async fn metrics(State(story): State<Arc<Mutex<Story>>>) -> String {
    story.lock().unwrap_or_else(PoisonError::into_inner).scrape()
}

/// A host's exporter with a healthy device.
pub fn host() -> Exporter {
    let tree = Tree::new([Device::mlx5_ndr("mlx5_0", 0)]);
    let mut host = Exporter::on_host(&tree, &["--host.interval=1s"]);
    host.wait_ready();
    host
}

/// A Prometheus that scrapes the exporters of fabrics and of a host.
pub fn prometheus(served: &[&Served], host: &Exporter, with_rules: bool) -> Prometheus {
    let texts = rules::files("alerts", ".rules.yml");
    let rules =
        texts.iter().filter(|_| with_rules).map(|path| patient(&rules::text(path))).collect();
    Prometheus::start(&Setup {
        jobs: vec![
            ("fabric-exporter".into(), served.iter().map(|it| it.address().into()).collect()),
            ("fabric-exporter-hosts".into(), vec![host.address().into()]),
        ],
        interval: INTERVAL,
        lookback: Duration::from_secs(300),
        rules,
        alertmanager: None,
        keep: None,
    })
}

/// The rules, with `for` longer than any test: whether an alert fires does not depend on how busy the machine
/// is.
fn patient(rules: &str) -> String {
    let lines = rules.lines().map(|line| match line.split_once("for: ") {
        Some((indent, _)) if indent.trim().is_empty() => format!("{indent}for: 1d\n"),
        _ => format!("{line}\n"),
    });
    lines.collect()
}

/// Waits until Prometheus has found all exporters up (or down) often enough, and has evaluated all rules as
/// often since. Returns a moment for queries, in seconds since 1970: no scrape is under way then, and none
/// before it had another result.
pub fn settle(prometheus: &Prometheus, up: bool) -> f64 {
    let is = f64::from(u8::from(up));
    let often = if up {
        "sum_over_time(up[5m])"
    } else {
        "count_over_time(up[5m]) - sum_over_time(up[5m])"
    };
    let rounds = format!("min({often}) >= {ROUNDS}");
    wait_until(LIMIT, "Prometheus to have scraped all", || {
        pause();
        prometheus.number(&rounds).map(drop)
    });
    let targets = prometheus.number("count(up)").unwrap();
    let window = format!("{}ms", 3 * INTERVAL.as_millis());
    let steady = format!(
        "count(min_over_time(up[{window}]) == {is} and max_over_time(up[{window}]) == {is} and count_over_time(up[{window}]) > 1) == {targets}"
    );
    let mut seen: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    let mut evaluated = None;
    wait_until(
        LIMIT,
        "Prometheus to have evaluated its rules while no scrape went otherwise",
        || {
            pause();
            let now = SystemTime::now();
            let at = now - INTERVAL;
            let seconds = at.duration_since(SystemTime::UNIX_EPOCH).unwrap().as_secs_f64();
            if prometheus.query_at(&steady, seconds).unwrap().is_empty() {
                // What rules recorded of a failed scrape has to be gone as well.
                seen.clear();
                evaluated = None;
                return None;
            }
            for group in prometheus.ask("rules", &[])["groups"].as_array().unwrap() {
                let of = |key: &str| group[key].as_str().unwrap().to_owned();
                seen.entry(of("name")).or_default().insert(of("lastEvaluation"));
            }
            if seen.values().all(|times| times.len() > ROUNDS) {
                let since = *evaluated.get_or_insert(now);
                return (at >= since).then_some(seconds);
            }
            None
        },
    )
}

/// The time between polls, which keep a server from being busy.
fn pause() {
    std::thread::sleep(Duration::from_millis(200));
}
