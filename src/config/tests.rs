//! Flags and config files, valid and invalid.

use std::num::NonZeroU32;
use std::time::Duration;

use super::*;
use clap::Parser;
use ib_fabric::rails::RailChoice;
use ib_mad::rate::Speed;
use ib_umad::client::SendConfig;

#[derive(Parser)]
struct Flags {
    #[command(flatten)]
    options: Options,
}

fn merged(flags: &[&str], text: &str) -> Result<Settings, String> {
    let flags =
        Flags::try_parse_from([&["x"], flags].concat()).map_err(|error| error.to_string())?;
    Settings::merge(flags.options, text, "f.yml").map_err(|error| error.to_string())
}

#[test]
fn empty_file_gives_defaults() {
    let settings = merged(&[], "# nothing\n").unwrap();
    assert_eq!(settings.listen, [["[::]:10315".parse().unwrap()]]);
    assert_eq!(settings.telemetry_path, "/metrics");
    assert_eq!(settings.external_url, None);
    let [fabric] = &settings.fabrics[..] else { panic!("one fabric") };
    assert_eq!((fabric.name.as_str(), fabric.interval), ("default", Duration::from_secs(15)));
    assert_eq!(fabric.pace, SendConfig::default());
    assert!(fabric.capture.is_none());
}

#[test]
fn external_url_has_no_slash_at_the_end() {
    let settings = merged(&["--web.grafana-url=https://ib.example/grafana/"], "{}").unwrap();
    assert_eq!(settings.grafana_url.as_deref(), Some("https://ib.example/grafana"));
    for (given, url) in [
        ("https://ib.example/", "https://ib.example"),
        ("http://ib.example:10315", "http://ib.example:10315"),
        ("HTTP://[2001:db8::1]:80", "HTTP://[2001:db8::1]:80"),
    ] {
        let flag = format!("--web.external-url={given}");
        assert_eq!(merged(&[&flag], "{}").unwrap().external_url.as_deref(), Some(url));
    }
}

#[test]
fn details_flags_give_schedule() {
    use ib_mad::pma::DetailPolicy;
    for (flags, details) in [
        (&[][..], DetailPolicy::Every(Duration::from_secs(120))),
        (&["--fabric.details-interval=10m"], DetailPolicy::Every(Duration::from_secs(600))),
        (&["--fabric.details-interval=0"], DetailPolicy::Never),
        (&["--fabric.details"], DetailPolicy::EachSweep),
        (&["--fabric.details", "--fabric.details-interval=0"], DetailPolicy::EachSweep),
        (&["--fabric.details=false"], DetailPolicy::Every(Duration::from_secs(120))),
    ] {
        assert_eq!(merged(flags, "{}").unwrap().fabrics[0].details, details, "{flags:?}");
    }
    let from_file = merged(&[], "fabric: {details-interval: 5m}").unwrap();
    assert_eq!(from_file.fabrics[0].details, DetailPolicy::Every(Duration::from_secs(300)));
}

#[test]
fn flags_win_over_entries_over_section() {
    let text = "\
fabric:
  interval: 1m
  timeout: 200ms
  retries: 1
  sl: 3
  max-mads-per-second: 4000
fabrics:
  - {name: rail0, hca: mlx5_0, retries: 5, max-mads-per-second: 0}
  - {name: rail1, hca: mlx5_1, port: 2, smi-hca: smi1, smi-port: 3, sl: 15}
web: {listen-address: ['127.0.0.1:1', ':2']}
";
    let settings = merged(&["--fabric.timeout=300ms"], text).unwrap();
    let values: Vec<_> = settings
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
                f.pace.sl,
                f.pace.max_mads_per_second.map(NonZeroU32::get),
            )
        })
        .collect();
    assert_eq!(
        values,
        [
            ("rail0", Some("mlx5_0"), None, 60, 300, 5, 3, None),
            ("rail1", Some("mlx5_1"), Some(2), 60, 300, 1, 15, Some(4_000))
        ]
    );
    let smi_side = |index: usize| {
        let choice = settings.fabrics[index].port_choice();
        (choice.smi_hca, choice.smi_port)
    };
    assert_eq!((smi_side(0), smi_side(1)), ((None, None), (Some("smi1"), Some(3))));
    assert_eq!(settings.listen.len(), 2);
}

#[test]
fn each_mistake_is_one_line_with_its_place() {
    for (flags, text, says) in [
        (&["--fabric.gmp-window=0"][..], "", "--fabric.gmp-window: 0 is not between 1 and"),
        (&["--fabric.interval=10ms"], "", "--fabric.interval: 10ms is less than the minimum of 1s"),
        (&["--fabric.timeout=2h"], "", "--fabric.timeout"),
        (&["--fabric.retries=11"], "", "--fabric.retries"),
        (&["--fabric.sl=16"], "", "--fabric.sl: 16 is not between 0 and 15"),
        (&["--web.listen-address=host"], "", "\"host\" has no port: write host:10315"),
        (
            &["--web.telemetry-path=metrics"],
            "",
            "not a path such as /metrics: it must begin with /",
        ),
        (&["--web.telemetry-path=/"], "", "is not a path"),
        (&["--web.telemetry-path=/-/healthy"], "", "is reserved"),
        (&["--web.telemetry-path=/api/v1/links"], "", "is reserved"),
        (&["--web.telemetry-path=/:m"], "", "is not a path"),
        (&["--web.telemetry-path=/{m}"], "", "is not a path"),
        (&["--web.telemetry-path=/a b"], "", "is not a path"),
        (&["--web.telemetry-path=/runbooks"], "", "is reserved"),
        (&["--web.grafana-url=grafana"], "", "not a URL such as https://grafana.example"),
        (&["--web.grafana-url=https://g/?orgId=1"], "", "not a URL"),
        (&["--web.grafana-url=javascript:alert(1)"], "", "not a URL"),
        (&["--web.external-url=ib.example"], "", "not a URL such as https://ib.example"),
        (&["--web.allowed-hosts=ib.example:10315"], "", "not a host name such as ib.example"),
        (&["--web.external-url=ftp://ib.example"], "", "not a URL"),
        (&["--web.external-url=https://"], "", "not a URL"),
        (&["--web.external-url=https://ib.example/fabric"], "", "not a URL"),
        (&["--web.external-url=https://ib.example/?a=b"], "", "not a URL"),
        (&["--web.external-url=https://ib.example/#a"], "", "not a URL"),
        (&["--web.external-url=https://user@ib.example"], "", "not a URL"),
        (&["--web.external-url=https://ib example"], "", "not a URL"),
        (
            &[],
            "fabric: {capture: c}\nfabrics: [{name: a, hca: x}, {name: b, hca: y}]",
            "have the same capture file",
        ),
        (&["--no-collector.fabric", "--no-collector.host"], "", "nothing would be monitored"),
        (&["--host.device-exclude=("], "", "--host.device-exclude: "),
        (&["--host.device-include=["], "", "--host.device-include: "),
        (
            &["--host.device-exclude=mlx5_9|kind:bridge"],
            "",
            "--host.device-exclude: \"kind:bridge\" is not one of kind:nvlink_bridge, kind:smi, ",
        ),
        (&["--host.device-include=pci:15b3"], "", "nor that of an address, as in pci:0000:0b:00.0"),
        (
            &["--fabric.rails=mlx5_0"],
            "",
            "--fabric.rails: \"mlx5_0\" is neither \"all\", \"none\" nor",
        ),
        (&["--fabric.host-regex=("], "", "--fabric.host-regex: \"(\" is not a valid regular"),
        (
            &["--fabric.host-regex=gpu"],
            "",
            "--fabric.host-regex: \"gpu\" has no group for the host",
        ),
        (
            &["--fabric.totals-from=monitor-2"],
            "",
            "--fabric.totals-from: \"monitor-2\" is not an address",
        ),
        (
            &["--notify.webhook=ntfy"],
            "",
            "--notify.webhook: not a URL such as https://alerts.example",
        ),
        (&["--notify.kinds=party"], "", "--notify.kinds: \"party\" is not one of: default, all, "),
        (&["--notify.token-file=t"], "", "--notify.token-file: nothing is sent without --notify"),
        (&[], "notify: {ca-file: c}", "notify.ca-file: nothing is sent without --notify.webhook"),
        (&[], "notify: {webhook: 'http://me@h/'}", "line 1, column 19: notify.webhook: not a URL"),
        (&["--host.interval=1ms"], "", "--host.interval: 1ms is less than the minimum of 1s"),
        (&[], "host: {device: x}", "device"),
        (&[], "health: {limits: [{speed: NDX, symbol: 1e-13}]}", "NDX"),
        (&[], "health: {limits: [{speed: NDR, fec: x, symbol: 1e-13}]}", "none, fire-code, rs"),
        (&[], "health: {limits: [{speed: NDR, symbol: 1}]}", "is not between"),
        (&[], "health: {limits: [{speed: NDR}]}", "symbol"),
        (&["--health.ber-confidence=low"], "", "is not one of: high, medium"),
        (&["--health.flap-days=1"], "", "--health.flap-days: 1 is not between 2 and 32"),
        (&["--health.flap-window=1h"], "", "1h is less than the minimum of 1day"),
        (&[], "fabric: {intervall: 1s}", "intervall"),
        (&[], "colector: {}", "colector"),
        (&[], "fabric: {interval: soon}", "soon"),
        (&[], "fabric: [", "f.yml: line 1, column 9: fabric: the bracket [ is not closed"),
        (&[], "fabrics: [{name: a, hca: x}, {name: a, hca: y}]", "two fabrics have the name \"a\""),
        (&[], "fabrics: [{name: a, hca: x}, {name: b}]", "\"b\" has no hca"),
        (&[], "fabrics: [{name: a, hca: x, port: 1}, {name: b, hca: x}]", "the same port"),
        (&["--fabric.smi-hca=x"], "", "\"default\" has smi-hca but no hca"),
        (&["--fabric.smi-port=1"], "fabrics: [{name: a}, {name: b}]", "lists several fabrics"),
        (&["--history.file=h"], "fabric: {name: host}", "\"host\" is reserved in the history"),
        (&["--fabric.hca=x"], "fabrics: [{name: a}, {name: b}]", "lists several fabrics"),
    ] {
        let error = merged(flags, text).map(|_| ()).expect_err(text);
        assert!(error.contains(says), "{flags:?} {text:?}: {error}");
        assert!(!error.contains('\n'), "one line: {error}");
    }
}

#[test]
fn invalid_value_in_file_has_line_and_key() {
    for (text, says) in [
        (
            "host: {interval: 0s}",
            "line 1, column 18: host.interval: 0s is less than the minimum of 1s",
        ),
        (
            "host:\n  device-include: '['",
            "line 2, column 19: host.device-include: \"[\" is not a regular",
        ),
        (
            "web:\n  telemetry-path: metrics",
            "line 2, column 19: web.telemetry-path: \"metrics\" is not a path",
        ),
        (
            "web:\n  external-url: ib.example",
            "line 2, column 17: web.external-url: \"ib.example\" is not a URL",
        ),
        (
            "web:\n  telemetry-path: /api",
            "line 2, column 19: web.telemetry-path: \"/api\" is reserved",
        ),
        (
            "web: {listen-address: [':1', host]}",
            "line 1, column 30: web.listen-address[1]: \"host\" has no port",
        ),
        (
            "fabric: {gmp-window: 0}",
            "line 1, column 22: fabric.gmp-window: 0 is not between 1 and ",
        ),
        ("fabric: {name: ''}", "line 1, column 16: fabric.name: it must not be empty"),
        (
            "fabric: {timeout: 2h}",
            "line 1, column 19: fabric.timeout: 2h is not between 1ms and 1m",
        ),
        ("fabric: {retries: 11}", "line 1, column 19: fabric.retries: 11 is not between 0 and 10"),
        (
            "history: {size: 1MiB}",
            "line 1, column 17: history.size: 1MiB is less than the minimum of 16MiB",
        ),
        (
            "health:\n  limits:\n  - {speed: NDX, symbol: 1e-13}",
            "line 3, column 13: health.limits[0].speed: \"NDX\" is not one of: ",
        ),
        (
            "health: {limits: [{speed: NDR, symbol: 1}]}",
            "line 1, column 40: health.limits[0].symbol: 1e0 is not between 1e-18 and 1e-2",
        ),
        (
            "fabrics:\n- {name: a, hca: x}\n- {name: b, hca: y, interval: 1ms}",
            "line 3, column 31: fabrics[1].interval: 1ms is less than the minimum of 1s",
        ),
        (
            "fabrics: [{name: a, hca: x}, {name: a, hca: y}]",
            "line 1, column 30: fabrics[1]: two fabrics",
        ),
        (
            "collector: {fabric: false, host: false}",
            "line 1, column 12: collector: both collectors are off",
        ),
        (
            "fabric: {name: host}\nhistory: {file: h}",
            "line 1, column 16: fabric.name: \"host\" is reserved",
        ),
        (
            "log: {level: trace}",
            "line 1, column 14: log.level: \"trace\" is not one of: error, warn, info, debug",
        ),
        (
            "fabric: {port: 300}",
            "line 1, column 16: fabric.port: \"300\" is not a whole number between 0 and 255",
        ),
        (
            "fabric: {pkey: 8001}",
            "line 1, column 16: fabric.pkey: \"8001\" is not a P_Key such as 0x8001",
        ),
    ] {
        let error = merged(&[], text).map(|_| ()).expect_err(text);
        assert!(error.starts_with(&format!("config file f.yml: {says}")), "{text:?}: {error}");
        assert!(!error.contains('\n') && !error.contains("--host"), "one line: {error}");
    }
    // A flag that overrides the key does not make the file valid.
    let error = merged(&["--host.interval=1ms"], "host: {interval: 2ms}").map(|_| ()).unwrap_err();
    assert_eq!(
        error,
        "--host.interval: 1ms is less than the minimum of 1s\nconfig file f.yml: line 1, column 18: host.interval: 2ms is \
         less than the minimum of 1s"
    );
}

#[test]
fn all_mistakes_of_file_are_reported_in_order() {
    let text = "\
host:
  interval: 0s
  intervall: 1s
fabric:
  gmp-window: many
  timeout: 90s
  timeout: 1s
fabrics:
- {name: a, hca: x, port: one}
- {name: b, hca: y, retries: 99}
log: loud
";
    let error = merged(&[], text).map(|_| ()).unwrap_err();
    let lines: Vec<&str> = error.lines().collect();
    let says = [
        "line 2, column 13: host.interval: 0s is less than the minimum of 1s",
        "line 3, column 3: host.intervall: unknown key (did you mean \"interval\"?); known: interval, ",
        "line 5, column 15: fabric.gmp-window: \"many\" is not a whole number",
        "line 6, column 12: fabric.timeout: 1m 30s is not between 1ms and 1m",
        "line 7, column 3: fabric.timeout: the key is given twice (first in line 6)",
        "line 9, column 27: fabrics[0].port: \"one\" is not a whole number",
        "line 10, column 30: fabrics[1].retries: 99 is not between 0 and 10",
        "line 11, column 6: log: must be a mapping (one line \"key: value\" per key), not a single value",
    ];
    assert_eq!(lines.len(), says.len(), "{error}");
    for (line, says) in lines.iter().zip(says) {
        assert!(line.starts_with(&format!("config file f.yml: {says}")), "{says}\n{line}");
    }
}

#[test]
fn site_files_are_listed_without_fabric_collector() {
    let text = "fabric: {node-name-map: names}\nhealth: {maintenance-file: work.yml}";
    for flags in [&[][..], &["--no-collector.fabric"]] {
        let files = merged(flags, text).unwrap().site_files;
        let names: Vec<_> =
            files.iter().map(|(kind, path)| (kind.name(), path.display().to_string())).collect();
        let says =
            [("node-name-map", "names".to_owned()), ("maintenance file", "work.yml".to_owned())];
        assert_eq!(names, says, "{flags:?}");
    }
}

#[test]
fn fabric_may_be_named_host_without_recorded_host() {
    let text = "fabric: {name: host}";
    for flags in [&[][..], &["--history.file=h", "--no-collector.host"]] {
        assert_eq!(merged(flags, text).unwrap().fabrics[0].name, "host", "{flags:?}");
    }
    assert!(merged(&["--history.file=h", "--no-collector.fabric"], text).is_ok());
}

#[test]
fn last_collector_flag_wins() {
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
fn host_port_is_in_fabric_that_names_it() {
    let text = "fabrics: [{name: a, hca: mlx5_0}, {name: b, hca: mlx5_1, port: 2}]";
    let fabrics = merged(&[], text).unwrap().host.unwrap().port_fabrics;
    let of = |device, port| fabrics.fabric_of(device, port).to_string();
    assert_eq!([of("mlx5_0", Some(1)), of("mlx5_0", None), of("mlx5_1", Some(2))], ["a", "a", "b"]);
    assert_eq!([of("mlx5_1", Some(1)), of("mlx5_9", Some(1))], ["default", "default"]);
    let one = merged(&["--fabric.name=ib", "--fabric.hca=mlx5_0"], "").unwrap().host.unwrap();
    assert_eq!(&**one.port_fabrics.fabric_of("mlx5_9", Some(1)), "ib");
}

#[test]
fn rails_of_fabrics_are_chosen() {
    let choice = |flags: &[&str], text| merged(flags, text).unwrap().fabrics[0].rails.clone();
    assert_eq!(choice(&[], ""), RailChoice::All);
    assert_eq!(choice(&[], "fabric: {rails: none}"), RailChoice::None);
    let listed = "mlx5_0,mlx5_3".parse::<RailChoice>().unwrap();
    assert_eq!(choice(&["--fabric.rails=mlx5_0,mlx5_3"], "fabric: {rails: none}"), listed);
}

#[test]
fn limits_of_file_win_over_defaults() {
    let text = "{health: {limits: [{speed: NDR, symbol: 1e-13}], maintenance-file: w}, fabric: {}}";
    let settings = merged(&["--health.maintenance-file=work.yml"], text).unwrap();
    let fabric = &settings.fabrics[0];
    let limit = |speed| fabric.limits.limits(speed, None).symbol;
    assert!((limit(Speed::Ndr) - 1e-13).abs() < 1e-19, "{}", limit(Speed::Ndr));
    assert!((limit(Speed::Xdr) - 1e-14).abs() < 1e-20, "{}", limit(Speed::Xdr));
    assert_eq!(fabric.maintenance_file.as_deref(), Some(Path::new("work.yml")));
}

#[test]
fn history_is_recorded_if_file_is_set() {
    assert!(merged(&["--history.size=2GiB"], "").unwrap().history.is_none());
    let text = "history: {file: h.db, size: 500MB, traffic-retention: 2h}";
    let history = merged(&["--history.traffic-retention=3h"], text).unwrap().history.unwrap();
    assert_eq!((history.file, history.size), ("h.db".into(), 500_000_000));
    assert_eq!(history.traffic_retention, Duration::from_secs(3 * 3600));
    assert_eq!(history.retention, Duration::from_secs(30 * 24 * 3600));
    for (flag, says) in [
        ("--history.size=1", "is not a size"),
        ("--history.size=GiB", "is not a size"),
        ("--history.size=99999999999TiB", "is not a size"),
        ("--history.size=1MiB", "minimum of 16MiB"),
        ("--history.retention=5s", "5s is less than the minimum of 1m"),
    ] {
        let error = merged(&["--history.file=h.db", flag], "").unwrap_err();
        assert!(error.contains(says), "{flag}: {error}");
    }
}

#[test]
fn jobs_are_read_only_if_a_source_is_set() {
    let jobs = |flags: &[&str], text: &str| merged(flags, text).map(|settings| settings.jobs);
    assert_eq!(jobs(&[], ""), Ok(None));
    assert_eq!(jobs(&["--jobs.interval=30s"], "jobs: {drained: true}\n"), Ok(None));
    let minute = Duration::from_secs(60);
    let slurm = JobsSettings { from: JobsFrom::Slurm, interval: minute, drained: true };
    assert_eq!(jobs(&["--jobs.from=slurm"], ""), Ok(Some(slurm.clone())));
    let slurm = JobsSettings { interval: minute / 2, drained: false, ..slurm };
    let text = "jobs: {from: slurm, interval: 30s, drained: false}\n";
    assert_eq!(jobs(&[], text), Ok(Some(slurm)));
    let folder = |path: &str| JobsFrom::Directory(path.into());
    for path in ["/run/jobs", "./slurm"] {
        let set = jobs(&[&format!("--jobs.from={path}")], text).unwrap().unwrap();
        assert_eq!((set.from, set.drained), (folder(path), false), "nothing is drained there");
    }
    let problem = jobs(&["--jobs.from=pbs"], "jobs: {interval: 5s}\n").unwrap_err();
    assert!(problem.contains("\"pbs\" is neither slurm nor a directory"), "{problem}");
    assert!(problem.contains("5s is less than the minimum of 10s"), "{problem}");
}

#[test]
fn m_key_file_and_pkey_come_from_flag_or_file() {
    let keys = |flags: &[&str], text: &str| -> Result<_, String> {
        let settings = merged(flags, text)?;
        let fabric = &settings.fabrics[0];
        let file = fabric.m_key_file.as_ref().map(|file| file.display().to_string());
        Ok((file, fabric.p_key.map(|key| key.to_string())))
    };
    let some = |text: &str| Some(text.to_owned());
    assert_eq!(keys(&[], ""), Ok((None, None)));
    let flags = ["--fabric.m-key-file=/etc/m_key", "--fabric.pkey=0x8001"];
    assert_eq!(keys(&flags, ""), Ok((some("/etc/m_key"), some("0x8001"))));
    for pkey in ["0x8001", "'0x8001'"] {
        let text = format!("fabric: {{m-key-file: /a, pkey: {pkey}}}");
        assert_eq!(keys(&[], &text), Ok((some("/a"), some("0x8001"))), "{pkey}");
        assert_eq!(keys(&["--fabric.pkey=0xffff"], &text), Ok((some("/a"), some("0xffff"))));
    }
    for (flags, text) in [
        (&["--fabric.pkey=8001"][..], ""),
        (&[], "fabric: {pkey: 8001}"),
        (&[], "fabric: {pkey: 0x8000}"),
    ] {
        let error = keys(flags, text).unwrap_err();
        assert!(error.contains("such as 0x8001"), "{text}: {error}");
    }
}
