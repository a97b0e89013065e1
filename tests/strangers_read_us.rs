//! Strangers that read what we write: promtool and Prometheus the metrics, tshark the capture.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod rig;

use std::collections::BTreeMap;
use std::io::{Read, Write};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

use fabric_exporter::fabric::counter::{Attribute, Counter, TABLE};
use fabric_exporter::mad::class_port_info::{Capabilities, Redirect};
use fabric_exporter::mad::port_info::PortInfo;
use fabric_exporter::mad::{DATA, Mad, smp};
use rig::{Exporter, Ibsim, OpenSm, require, topology, wait_until};

const OPEN_METRICS: &str = "application/openmetrics-text; version=1.0.0";

fn scene() -> (Ibsim, OpenSm, Exporter) {
    let ibsim = Ibsim::start(&topology::fat_tree_2(8, 10, 4, 3));
    let opensm = OpenSm::start(&ibsim);
    let commands: Vec<String> = topology::all_connected_ports(&topology::fat_tree_2(8, 10, 4, 3))
        .iter()
        .enumerate()
        .map(|(index, (node, port))| {
            format!(
                "PerformanceSet \"{node}\"[{port}] PortCounters.SymbolErrorCounter={}",
                100 + index
            )
        })
        .collect();
    ibsim.console_many(&commands);
    let mut exporter = Exporter::start(&ibsim, &["--fabric.interval=1s"]);
    exporter.wait_ready();
    (ibsim, opensm, exporter)
}

/// Runs a program with a text on its standard input; its exit code and all that it printed.
fn fed(program: &str, args: &[&str], text: &str) -> (Option<i32>, String) {
    let mut child = Command::new(require(program))
        .args(args)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap_or_else(|error| panic!("{program}: {error}"));
    child.stdin.take().unwrap().write_all(text.as_bytes()).unwrap();
    let output = child.wait_with_output().unwrap();
    let said = [output.stdout, output.stderr].concat();
    (output.status.code(), String::from_utf8_lossy(&said).into_owned())
}

#[test]
fn promtool_finds_nothing_to_complain_of() {
    let (_ibsim, _opensm, mut exporter) = scene();
    let text = exporter.get("/metrics", &[]).text().to_owned();
    assert_eq!(fed("promtool", &["check", "metrics"], &text), (Some(0), String::new()), "0.0.4");

    // promtool's linter knows 0.0.4 alone, where a counter's family is called as its samples are.
    // So it gets the samples of the other format with its families so named, ...
    let response = exporter.get("/metrics", &[("Accept", OPEN_METRICS)]);
    assert!(
        response
            .header("content-type")
            .unwrap()
            .starts_with("application/openmetrics-text; version=1.0.0")
    );
    let open = response.text();
    assert!(open.ends_with("# EOF\n"));
    let counters: Vec<&str> = open
        .lines()
        .filter_map(|line| line.strip_prefix("# TYPE ")?.strip_suffix(" counter"))
        .collect();
    let linted: String = open
        .lines()
        .map(|line| {
            let mut words: Vec<&str> = line.splitn(4, ' ').collect();
            let named = words
                .get(2)
                .filter(|name| line.starts_with("# ") && counters.contains(name))
                .map(|name| format!("{name}_total"));
            if let Some(name) = &named {
                words[2] = name;
            }
            words.join(" ") + "\n"
        })
        .collect();
    assert_eq!(
        fed("promtool", &["check", "metrics"], &linted),
        (Some(0), String::new()),
        "OpenMetrics"
    );

    // ... and its OpenMetrics parser, which wants a time on each sample, the text as it is.
    let directory = tempfile::tempdir().unwrap();
    let timed: String = open
        .lines()
        .map(|line| {
            if line.starts_with('#') { format!("{line}\n") } else { format!("{line} 1700000000\n") }
        })
        .collect();
    let file = directory.path().join("open.txt");
    std::fs::write(&file, timed).unwrap();
    let blocks = directory.path().join("blocks");
    let args = [
        "tsdb",
        "create-blocks-from",
        "openmetrics",
        file.to_str().unwrap(),
        blocks.to_str().unwrap(),
    ];
    let (code, said) = fed("promtool", &args, "");
    assert_eq!(code, Some(0), "{said}");
    assert!(exporter.stop().success());
}

#[test]
fn gzip_and_plain_are_the_same_text() {
    let (_ibsim, _opensm, mut exporter) = scene();
    let packed = exporter.get("/metrics", &[("Accept-Encoding", "gzip")]);
    assert_eq!(packed.header("content-encoding"), Some("gzip"));
    assert_eq!(packed.header("content-length"), Some(packed.body.len().to_string().as_str()));
    let mut text = String::new();
    flate2::read::GzDecoder::new(&packed.body[..]).read_to_string(&mut text).unwrap();
    let plain = exporter.get("/metrics", &[]);
    assert_eq!(plain.header("content-encoding"), None);
    let ports = |text: &str| -> Vec<String> {
        text.lines()
            .filter(|line| line.starts_with("infiniband_port_symbol"))
            .map(str::to_owned)
            .collect()
    };
    assert_eq!(ports(&text), ports(plain.text()));
    assert!(!ports(&text).is_empty());
    // And to a program that is not ours.
    let file = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(file.path(), &packed.body).unwrap();
    let unpacked = Command::new("gzip")
        .args(["-dc"])
        .stdin(std::fs::File::open(file.path()).unwrap())
        .output()
        .unwrap();
    assert!(unpacked.status.success() && unpacked.stdout == text.as_bytes());
    assert!(exporter.stop().success());
}

fn free_port() -> u16 {
    std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port()
}

#[test]
fn a_prometheus_scrapes_it() {
    let (_ibsim, _opensm, mut exporter) = scene();
    let directory = tempfile::tempdir().unwrap();
    let config = directory.path().join("prometheus.yml");
    let target = exporter.address();
    std::fs::write(
        &config,
        format!(
            "global: {{scrape_interval: 1s}}\nscrape_configs:\n- job_name: fabric\n  static_configs: [{{targets: ['{target}']}}]\n"
        ),
    )
    .unwrap();
    let address = format!("127.0.0.1:{}", free_port());
    let mut prometheus = rig::child::Running::spawn(
        "prometheus",
        Command::new(require("prometheus"))
            .arg(format!("--config.file={}", config.display()))
            .arg(format!("--storage.tsdb.path={}", directory.path().join("data").display()))
            .arg(format!("--web.listen-address={address}"))
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(rig::child::create(&directory.path().join("log"))),
    );
    let query = |query: &str| -> Option<Vec<serde_json::Value>> {
        let url = format!("http://{address}/api/v1/query");
        let mut answer = ureq::get(&url).query("query", query).call().ok()?;
        let answer: serde_json::Value =
            serde_json::from_slice(&answer.body_mut().read_to_vec().ok()?).ok()?;
        answer["data"]["result"].as_array().filter(|result| !result.is_empty()).cloned()
    };
    let limit = Duration::from_secs(60);
    let errors = wait_until(limit, "Prometheus to have scraped", || {
        query("infiniband_port_symbol_errors_total")
    });
    // Each of the 50 ports of 5 switches and 10 hosts.
    assert_eq!(errors.len(), 5 * 8 + 10);
    let sum = |result: Vec<serde_json::Value>| {
        result[0]["value"][1].as_str().unwrap().parse::<usize>().unwrap()
    };
    let cabled = 2 * (10 + 9);
    let expected: usize = (0..cabled).map(|index| 100 + index).sum();
    assert_eq!(sum(query("sum(infiniband_port_symbol_errors_total)").unwrap()), expected);
    assert_eq!(sum(query("up").unwrap()), 1);
    // What the metrics are and what they are called came over, too: the negotiated format is OpenMetrics.
    let mut metadata =
        ureq::get(format!("http://{address}/api/v1/metadata?metric=infiniband_port_symbol_errors"))
            .call()
            .unwrap();
    assert!(metadata.body_mut().read_to_string().unwrap().contains("\"counter\""));
    prometheus.stop();
    assert!(exporter.stop().success());
}

/// What tshark makes of a capture: for each MAD in its order, the fields that it has.
fn dissected(file: &Path, fields: &[&str]) -> Vec<BTreeMap<String, u64>> {
    let mut command = Command::new(require("tshark"));
    command.args(["-n", "-r"]).arg(file).args(["-T", "fields", "-E", "separator=|"]);
    for field in fields {
        command.args(["-e", &format!("infiniband.{field}")]);
    }
    let output = command.output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout)
        .unwrap()
        .lines()
        .map(|line| {
            let values = line.split('|').zip(fields).filter(|(value, _)| !value.is_empty());
            values.map(|(value, field)| ((*field).to_owned(), number(value))).collect()
        })
        .collect()
}

fn number(text: &str) -> u64 {
    let parsed = match text.strip_prefix("0x") {
        Some(digits) => u64::from_str_radix(digits, 16),
        None => text.parse(),
    };
    parsed.unwrap_or_else(|error| panic!("tshark wrote {text:?}: {error}"))
}

/// The fields of an answer by our own decoders, under tshark's names.
fn decoded(mad: &Mad) -> Vec<(&'static str, u64)> {
    let mut fields = vec![
        ("mad.mgmtclass", mad.class().into()),
        ("mad.method", mad.method().into()),
        ("mad.attributeid", mad.attribute().into()),
        ("mad.attributemodifier", mad.modifier().into()),
    ];
    if mad.method() != 0x81 || mad.status() != 0 {
        return fields;
    }
    match (mad.class(), mad.attribute()) {
        (0x01 | 0x81, 0x11) => {
            let info = smp::NodeInfo::decode(mad);
            fields.extend([
                ("nodeinfo.nodetype", info.node_type.into()),
                ("nodeinfo.numports", info.port_count.into()),
                ("nodeinfo.systemimageguid", info.system_guid.0),
                ("nodeinfo.nodeguid", info.node_guid.0),
                ("nodeinfo.portguid", info.port_guid.0),
                ("nodeinfo.deviceid", info.device_id.into()),
                ("nodeinfo.revision", info.revision.into()),
                ("nodeinfo.localportnum", info.local_port.into()),
                ("nodeinfo.vendorid", info.vendor_id.into()),
            ]);
        }
        (0x01 | 0x81, 0x12) => {
            let info = smp::SwitchInfo::decode(mad);
            fields.extend([
                ("switchinfo.linearfdbcap", info.linear_table_size.into()),
                ("switchinfo.linearfdbtop", info.linear_table_top.into()),
                ("switchinfo.portstatechange", info.port_state_change.into()),
                ("switchinfo.enhancedportzero", info.enhanced_port0.into()),
            ]);
        }
        (0x01 | 0x81, 0x15) => {
            let info = PortInfo::decode(mad);
            fields.extend([
                ("portinfo.lid", info.lid.0.into()),
                ("portinfo.mastersmlid", info.sm_lid.0.into()),
                ("portinfo.capabilitymask", info.capabilities.into()),
                ("portinfo.localportnum", info.local_port.into()),
                ("portinfo.linkwidthenabled", info.width_enabled.into()),
                ("portinfo.linkwidthsupported", info.width_supported.into()),
                ("portinfo.linkwidthactive", info.width_active.into()),
                ("portinfo.linkspeedsupported", info.speed_supported.into()),
                ("portinfo.portstate", info.state.into()),
                ("portinfo.portphysicalstate", info.physical_state.into()),
                ("portinfo.lmc", info.lmc.into()),
                ("portinfo.linkspeedactive", info.speed_active.into()),
                ("portinfo.linkspeedenabled", info.speed_enabled.into()),
            ]);
        }
        (0x04, 0x01) => {
            let Capabilities { mask, mask2 } = Capabilities::decode(mad);
            fields.extend([
                ("classportinfo.capabilitymask", mask.into()),
                ("classportinfo.capabilitymask2", mask2.into()),
            ]);
            if let Some(redirect) = Redirect::decode(mad) {
                fields.push(("classportinfo.redirectlid", redirect.lid.0.into()));
            }
        }
        (0x04, 0x12) => fields.extend(
            PORT_COUNTERS
                .map(|(name, counter)| (name, read(mad, counter, Attribute::PortCounters))),
        ),
        (0x04, 0x1d) => fields
            .extend(EXTENDED.map(|(name, counter)| {
                (name, read(mad, counter, Attribute::PortCountersExtended))
            })),
        _ => {}
    }
    fields
}

fn read(mad: &Mad, counter: Counter, attribute: Attribute) -> u64 {
    let row = TABLE.iter().find(|row| row.counter == counter).unwrap();
    row.places.iter().find(|place| place.attribute == attribute).unwrap().read(&mad.0[DATA..])
}

const PORT_COUNTERS: [(&str, Counter); 16] = [
    ("portcounters.symbolerrorcounter", Counter::SymbolErrors),
    ("portcounters.linkerrorrecoverycounter", Counter::LinkErrorRecoveries),
    ("portcounters.linkdownedcounter", Counter::LinkDowned),
    ("portcounters.portrcverrors", Counter::RcvErrors),
    ("portcounters.portrcvremotephysicalerrors", Counter::RcvRemotePhysicalErrors),
    ("portcounters.portrcvswitchrelayerrors", Counter::RcvSwitchRelayErrors),
    ("portcounters.portxmitdiscards", Counter::XmitDiscards),
    ("portcounters.portxmitconstrainterrors", Counter::XmitConstraintErrors),
    ("portcounters.portrcvconstrainterrors", Counter::RcvConstraintErrors),
    ("portcounters.locallinkintegrityerrors", Counter::LocalLinkIntegrityErrors),
    ("portcounters.excessivebufferoverrunerrors", Counter::ExcessiveBufferOverrunErrors),
    ("portcounters.vl15dropped", Counter::Vl15Dropped),
    ("portcounters.portxmitdata", Counter::XmitData),
    ("portcounters.portrcvdata", Counter::RcvData),
    ("portcounters.portxmitpkts", Counter::XmitPkts),
    ("portcounters.portrcvpkts", Counter::RcvPkts),
];

const EXTENDED: [(&str, Counter); 8] = [
    ("portcounters_ext.portxmitdata", Counter::XmitData),
    ("portcounters_ext.portrcvdata", Counter::RcvData),
    ("portcounters_ext.portxmitpkts", Counter::XmitPkts),
    ("portcounters_ext.portrcvpkts", Counter::RcvPkts),
    ("portcounters_ext.portunicastxmitpkts", Counter::UnicastXmitPkts),
    ("portcounters_ext.portunicastrcvpkts", Counter::UnicastRcvPkts),
    ("portcounters_ext.portmulticastxmitpkts", Counter::MulticastXmitPkts),
    ("portcounters_ext.portmulticastrcvpkts", Counter::MulticastRcvPkts),
];

#[test]
fn tshark_decodes_a_capture_to_the_same_values() {
    let (_ibsim, _opensm, mut exporter) = scene();
    exporter.wait_sweeps(1);
    assert!(exporter.stop().success());
    let ours: Vec<Vec<(&str, u64)>> =
        exporter.capture_mads().iter().map(|bytes| decoded(&Mad(*bytes))).collect();
    let mut names: Vec<&str> = ours.iter().flatten().map(|(name, _)| *name).collect();
    names.sort_unstable();
    names.dedup();
    let theirs = dissected(&exporter.dir().join("capture.pcap"), &names);
    assert_eq!(ours.len(), theirs.len(), "tshark sees every MAD");
    for (index, (ours, theirs)) in ours.iter().zip(&theirs).enumerate() {
        for (name, value) in ours {
            assert_eq!(
                theirs.get(*name),
                Some(value),
                "{name} of MAD {index}: tshark has {theirs:?}"
            );
        }
    }
    // NodeDescription is text: there the names are held against each other.
    let described: Vec<String> = exporter
        .capture_mads()
        .iter()
        .map(|bytes| Mad(*bytes))
        .filter(|mad| (mad.class(), mad.method(), mad.attribute()) == (0x81, 0x81, 0x10))
        .map(|mad| smp::decode_node_description(&mad))
        .collect();
    let output = Command::new(require("tshark"))
        .args(["-n", "-T", "fields", "-e", "infiniband.nodedescription.nodestring"])
        .args(["-Y", "infiniband.mad.method == 0x81 && infiniband.mad.attributeid == 0x10", "-r"])
        .arg(exporter.dir().join("capture.pcap"))
        .output()
        .unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    assert_eq!(described, text.lines().collect::<Vec<_>>());
    assert_eq!(described.len(), 15);
    // Every attribute that both know was among them, and more than one value of what matters.
    for prefix in [
        "nodeinfo.",
        "switchinfo.",
        "portinfo.",
        "classportinfo.",
        "portcounters.",
        "portcounters_ext.",
    ] {
        assert!(names.iter().any(|name| name.starts_with(prefix)), "no {prefix} in the capture");
    }
    let errors =
        ours.iter().flatten().filter(|(name, _)| *name == "portcounters.symbolerrorcounter");
    let distinct: std::collections::BTreeSet<u64> = errors.map(|(_, value)| *value).collect();
    assert!(distinct.len() > 30, "{distinct:?}");
}
