//! The metric names of other fabric exporters, recorded from a simulated fabric with two of our exporters and a
//! host that exports its own port as well, and from a host whose fabric is not swept.

use std::collections::{BTreeMap, BTreeSet};
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::compat::table::{Per, Row, Rule, exporters};
use crate::compat::{assert_healthy, prometheus, written};
use test_rig::sysfs::{Device, Tree};
use test_rig::{Exporter, Metrics, Prometheus, wait_until};

/// The name of both fabrics in the test.
const SWEPT: &str = "default";
const ALONE: &str = "alone";

/// Traffic to count and no events: no link may go down meanwhile. Quantum and ConnectX-6 report all causes of errors;
/// Quantum-2 and ConnectX-7 announce that they lack some.
const STORY: &str = "\
fabric:
  fat-tree: {levels: 2, hosts: 36, radix: 16, down: 9, up: 6, switch: quantum, hca: connectx-6}
traffic: {load: 25%}
";

/// The HCA of its first host.
const FIRST_HCA: u64 = 0x0002_c903_0000_0000;

/// GUID and port number.
type Port = (String, String);
type Labels = BTreeMap<String, String>;

/// All exporters, and what they watch.
struct Stage {
    exporters: Vec<Exporter>,
    prometheus: Prometheus,
    /// `infiniband_port_info` of the fabric.
    ports: BTreeMap<Port, Labels>,
    /// `infiniband_node_info`, by GUID.
    nodes: BTreeMap<String, Labels>,
    /// When the rules had recorded both fabrics.
    complete: Instant,
}

fn stage() -> Stage {
    let on_fabric = Tree::new([
        Device::mlx5_ndr("mlx5_0", 0).guid(FIRST_HCA),
        Device::mlx5_bond("mlx5_bond_0", 8),
    ]);
    let alone = Tree::new([
        Device::mlx5_ndr("mlx5_0", 5),
        Device::mlx4("mlx4_0"),
        Device::mlx5_bond("mlx5_bond_0", 9),
    ]);
    let scenario = tempfile::NamedTempFile::with_suffix(".yml").unwrap();
    std::fs::write(scenario.path(), STORY).unwrap();
    let story = format!("--scenario={}", scenario.path().display());
    let sweep = ["--fabric.details", "--fabric.interval=1s", &story];
    let mut exporters = vec![
        Exporter::demo(&sweep),
        Exporter::demo(&sweep),
        Exporter::on_host(&on_fabric, &[]),
        Exporter::on_host(&alone, &[&format!("--fabric.name={ALONE}")]),
    ];
    exporters.iter_mut().for_each(Exporter::wait_ready);
    let metrics = exporters[0].metrics();
    let ports = (all(&metrics, "infiniband_port_info"))
        .map(|labels| ((labels["guid"].clone(), labels["port"].clone()), labels))
        .collect();
    let nodes = (all(&metrics, "infiniband_node_info"))
        .map(|labels| (labels["guid"].clone(), labels))
        .collect();
    let targets = exporters.iter().map(|it| it.address().to_owned()).collect();
    let prometheus =
        prometheus(vec![("fabric-exporter".into(), targets)], &["treydock", "guilbaults"]);
    // The last rules of each file, and those that depend on the host alone.
    wait_until(Duration::from_secs(60), "the rules to have recorded", || {
        let is = |query: &str, number: f64| prometheus.number(query) == Some(number);
        let all = is("sum(up)", 4.0)
            && is(&format!("count(infiniband_hca_uplink_info{{fabric=\"{SWEPT}\"}})"), 36.0)
            && is(&format!("count(infiniband_width{{fabric=\"{SWEPT}\"}})"), 120.0)
            && is(&format!("count(infiniband_width{{fabric=\"{ALONE}\"}})"), 3.0)
            && is(&format!("count(infiniband_hca_info{{fabric=\"{ALONE}\"}})"), 2.0)
            && is(
                &format!("count(infiniband_hca_raw_rate_bytes_per_second{{fabric=\"{ALONE}\"}})"),
                2.0,
            );
        all.then_some(())
    });
    let complete = Instant::now();
    let evaluated = format!("max(timestamp(infiniband_width{{fabric=\"{SWEPT}\"}}))");
    let since = prometheus.number("vector(time())").unwrap();
    wait_until(Duration::from_secs(60), "the rules to be evaluated twice more", || {
        (prometheus.number(&evaluated).unwrap_or(0.0) > since + 1.0).then_some(())
    });
    assert_healthy(&prometheus);
    Stage { exporters, prometheus, ports, nodes, complete }
}

fn all(metrics: &Metrics, name: &str) -> impl Iterator<Item = Labels> {
    metrics.all(name).map(|(labels, _)| labels.clone())
}

/// The result of a query: labels without the name, and values.
fn series(prometheus: &Prometheus, query: &str) -> Vec<(Labels, f64)> {
    let of = |it: &Value| {
        let mut labels: Labels = serde_json::from_value(it["metric"].clone()).unwrap();
        labels.remove("__name__");
        (labels, it["value"][1].as_str().unwrap().parse().unwrap())
    };
    prometheus.query(query).iter().map(of).collect()
}

impl Stage {
    /// The samples that a rule records for a fabric, by their distinguishing labels.
    fn recorded(&self, rule: &Rule, fabric: &str) -> Vec<(Labels, f64)> {
        // Not the current value: on a busy machine a scrape may fail, and then there is none for a second. Nothing from
        // before the first sweep either, when the rules took the host's own port for the fabric.
        let window = self.complete.elapsed().as_millis();
        let query = format!("last_over_time({}{{fabric=\"{fabric}\"}}[{window}ms])", rule.record);
        let mut told = series(&self.prometheus, &query);
        for (labels, _) in &mut told {
            assert_eq!(labels.remove("fabric").as_deref(), Some(fabric));
        }
        told
    }

    /// The bits of all values that our metric had in the last minute, by the sweeps of both exporters.
    fn had(&self, ours: &str) -> BTreeMap<Port, BTreeSet<u64>> {
        let query = format!("{ours}{{fabric=\"{SWEPT}\", device=\"\"}}[1m]");
        let mut had: BTreeMap<Port, BTreeSet<u64>> = BTreeMap::new();
        for it in self.prometheus.query(&query) {
            let of = |label: &str| it["metric"][label].as_str().unwrap().to_owned();
            let values = it["values"].as_array().unwrap().iter();
            let values = values.map(|it| it[1].as_str().unwrap().parse::<f64>().unwrap().to_bits());
            had.entry((of("guid"), of("port"))).or_default().extend(values);
        }
        had
    }

    /// The ports with a cable, of nodes of a type or of all. The others have no counters while these are 0.
    fn cabled(&self, node_type: Option<&str>) -> BTreeSet<Port> {
        let of_type = self.ports.iter().filter(|(_, labels)| {
            labels.contains_key("peer_guid") && node_type.is_none_or(|it| labels["node_type"] == it)
        });
        of_type.map(|(port, _)| port.clone()).collect()
    }

    /// Each sample of a rule equals one of ours, at the port that its labels name.
    fn assert_values(
        &self,
        row: &Row,
        rule: &Rule,
        port: impl Fn(&Labels) -> Port,
    ) -> BTreeSet<Port> {
        // Ours are queried last: the rules may be evaluated between the two queries.
        let recorded = self.recorded(rule, SWEPT);
        let (had, scale) = (self.had(&row.ours), row.scale.unwrap());
        let mut ports = BTreeSet::new();
        for (labels, value) in recorded {
            let names: BTreeSet<&str> = labels.keys().map(String::as_str).collect();
            assert_eq!(names, rule.labels.iter().copied().collect(), "{}", rule.record);
            let port = port(&labels);
            let ours = (value * scale as f64).to_bits();
            assert!(had[&port].contains(&ours), "{} {labels:?}: {value}", rule.record);
            assert!(ports.insert(port), "{} {labels:?} twice", rule.record);
        }
        ports
    }
}

fn padded(guid: &str) -> String {
    let number = u64::from_str_radix(guid.strip_prefix("0x").unwrap(), 16).unwrap();
    format!("{number:#018x}")
}

#[test]
fn fabric_exporter_names_are_recorded() {
    let mut stage = stage();
    treydock(&stage);
    guilbaults(&stage);
    costs(&stage);
    // When sweeps end there is a gap, not the host's smaller number, which `rate()` would take for a reset.
    for exporter in &mut stage.exporters[..2] {
        assert!(exporter.stop().success());
    }
    let number = |query: &str| stage.prometheus.number(query);
    wait_until(Duration::from_secs(60), "the sweeps to be gone", || {
        let gone =
            number(&format!("sum(fabric_exporter_ports_seen{{fabric=\"{SWEPT}\"}})")).is_none();
        let info = format!("fabric_guid_port:infiniband_port_info:treydock{{fabric=\"{SWEPT}\"}}");
        (gone && number(&format!("count({info})")).is_none()).then_some(())
    });
    let hcas = |fabric: &str| {
        format!("infiniband_hca_port_transmit_data_bytes_total{{fabric=\"{fabric}\"}}")
    };
    let evaluated = format!("max(timestamp({}))", hcas(ALONE));
    let since = number(&evaluated).unwrap();
    wait_until(Duration::from_secs(60), "the rules to be evaluated twice more", || {
        (number(&evaluated).unwrap() > since + 2.0).then_some(())
    });
    let left = stage.prometheus.query(&hcas(SWEPT));
    assert!(left.is_empty(), "{left:?}");
    assert_healthy(&stage.prometheus);
    for exporter in &mut stage.exporters[2..] {
        assert!(exporter.stop().success());
    }
}

fn treydock(stage: &Stage) {
    let [table, ..] = exporters();
    let mut carried = 0.0;
    for row in table.rows.iter().filter(|row| row.scale.is_some()) {
        for rule in &row.rules {
            let side = if rule.record.contains("_switch_port_") { "switch" } else { "ca" };
            let ports = stage.assert_values(row, rule, |labels| {
                (labels["guid"].clone(), labels["port"].clone())
            });
            // None is missing, and none belongs to the other node type or to the host's Ethernet.
            let cabled = stage.cabled(Some(side));
            // A cause of errors has a sample where it was counted.
            let is_whole = row.per == Per::DetailedPort || ports == cabled;
            assert!(is_whole && ports.is_subset(&cabled), "{}: {ports:?}", rule.record);
            if rule.record.ends_with("transmit_data_bytes_total") {
                carried += stage.recorded(rule, SWEPT).iter().map(|(_, value)| value).sum::<f64>();
            }
            // Of a host whose fabric is not swept, the kernel's counters; no switch, no Ethernet.
            let count = stage.recorded(rule, ALONE).len();
            let is_kernels = stage
                .prometheus
                .number(&format!("count({}{{fabric=\"{ALONE}\", device=\"mlx4_0\"}})", row.ours));
            let expected = match (side, is_kernels) {
                // The old kernel of the mlx4 does not have these.
                ("ca", Some(_)) => 3,
                ("ca", None) if row.ours.contains("qp1") => 0,
                ("ca", None) if row.per == Per::DetailedPort => 0,
                ("ca", None) => 1,
                _ => 0,
            };
            assert_eq!(count, expected, "{} alone", rule.record);
        }
    }
    assert!(carried > 0.0, "nothing to compare");

    let gigabits = |lane: f64| 4.0 * lane * 1e9 / 8.0;
    for (name, alone) in [
        // NDR, and FDR on the faster port of the mlx4.
        ("rate_bytes_per_second", [gigabits(13.64), gigabits(100.0)]),
        ("raw_rate_bytes_per_second", [gigabits(14.0625), gigabits(100.0)]),
    ] {
        let rule = |side: &str| {
            let name = format!("infiniband_{side}_{name}");
            table.rows.iter().flat_map(|row| &row.rules).find(|rule| rule.record == name).unwrap()
        };
        for (side, labels, count) in
            [("switch_port", &["guid", "port"][..], 96 - 12), ("hca", &["guid"], 36)]
        {
            let told = stage.recorded(rule(side), SWEPT);
            assert_eq!(told.len(), count, "{side} {name}");
            for (of, value) in told {
                assert!(of.keys().eq(labels), "{of:?}");
                assert_eq!(value.to_bits(), gigabits(50.0).to_bits(), "{side} {of:?}: HDR");
            }
        }
        let told = stage.recorded(rule("hca"), ALONE);
        let told: BTreeSet<u64> = told.iter().map(|(_, value)| value.to_bits()).collect();
        assert_eq!(told, alone.map(f64::to_bits).into(), "{name}");
    }
    let switches = stage.nodes.values().filter(|node| node["node_type"] == "switch").count();
    // Registers are read after the sweeps that found the ports.
    for (record, each) in [("uptime_seconds", 1), ("temperature_celsius", 1), ("fan_rpm", 8)] {
        let query = format!("count(infiniband_switch_{record}{{fabric=\"{SWEPT}\"}})");
        wait_until(Duration::from_secs(60), &query, || {
            (stage.prometheus.number(&query) == Some((switches * each) as f64)).then_some(())
        });
    }
    infos(stage, table.rows.iter().flat_map(|row| &row.rules));
    states(stage, table.rows.iter().flat_map(|row| &row.rules));
}

/// Each node responds, and the ports of switches have a link where they have a cable.
fn states<'a>(stage: &Stage, rules: impl Iterator<Item = &'a Rule>) {
    let rules: BTreeMap<&str, &Rule> = rules.map(|rule| (rule.record.as_str(), rule)).collect();
    for (side, node_type) in [("switch", "switch"), ("hca", "ca")] {
        let rule = rules[format!("infiniband_{side}_up").as_str()];
        let nodes = stage.nodes.values().filter(|node| node["node_type"] == node_type);
        let expected: BTreeSet<[String; 2]> =
            nodes.map(|node| [node["guid"].clone(), node["node"].clone()]).collect();
        let told = stage.recorded(rule, SWEPT);
        assert!(told.iter().all(|(_, value)| value.to_bits() == 1f64.to_bits()), "{told:?}");
        let of = |(labels, _): &(Labels, f64)| [labels["guid"].clone(), labels[side].clone()];
        assert_eq!(told.iter().map(of).collect::<BTreeSet<_>>(), expected);
        assert!(stage.recorded(rule, ALONE).is_empty());
    }
    let rule = rules["infiniband_switch_port_state"];
    let cabled = stage.cabled(Some("switch"));
    let told = stage.recorded(rule, SWEPT);
    let ports = stage.ports.values().filter(|port| port["node_type"] == "switch").count();
    assert_eq!(told.len(), ports);
    for (labels, value) in told {
        let has_link = cabled.contains(&(labels["guid"].clone(), labels["port"].clone()));
        assert_eq!(value.to_bits(), f64::from(u8::from(has_link)).to_bits(), "{labels:?}");
        assert_eq!(labels["switch"], stage.nodes[&labels["guid"]]["node"]);
    }
    assert!(stage.recorded(rule, ALONE).is_empty());
}

/// The number of series with one name, or several, and some labels.
fn count(stage: &Stage, names: &str, labels: &str) -> usize {
    let query = format!("{{__name__=~\"{names}\", fabric=\"{SWEPT}\", {labels}}}");
    stage.prometheus.query(&query).len()
}

/// The number of series that the page gives.
fn costs(stage: &Stage) {
    let [treydock, guilbaults, _] = exporters();
    let (guid, port) = (stage
        .ports
        .values()
        .find(|it| it["node_type"] == "switch" && it.contains_key("peer_guid")))
    .map(|it| (it["guid"].as_str(), it["port"].as_str()))
    .unwrap();
    // On a busy machine some rules may be evaluated later than others.
    let has_count = |names: &str, labels: &str, expected: usize| {
        let what = format!("{expected} series {names} of {labels}");
        let limit = Duration::from_secs(60);
        wait_until(limit, &what, || (count(stage, names, labels) == expected).then_some(()));
    };
    // This port has counted no cause of errors.
    let sum = |exporter| written::cost(exporter, Per::Port);
    let of_port = format!("guid=\"{guid}\", port=\"{port}\"");
    let names = "infiniband_switch_.+|fabric_guid_port:infiniband_port_info:treydock";
    has_count(names, &of_port, sum(&treydock));
    let hca = "guid=\"0x0002c90300000010\"";
    let of_hca = format!("{hca}, port=\"1\"");
    let names = "infiniband_hca_.+|fabric_guid_port:infiniband_port_info:treydock";
    has_count(names, &of_hca, sum(&treydock) - 3);
    let names = "infiniband_hca_.+|fabric_guid:infiniband_node_info:treydock";
    let of_node = format!("{hca}, port=\"\"");
    has_count(names, &of_node, written::cost(&treydock, Per::Node));
    let end = "local_guid=\"0x2c90300000010\", local_port=\"1\"";
    has_count("infiniband_.+|fabric_guid_port:.+", end, sum(&guilbaults));
}

/// The names of nodes and the destinations of ports, in the other exporters' terms.
fn infos<'a>(stage: &Stage, rules: impl Iterator<Item = &'a Rule>) {
    let labels = |pairs: &[(&str, &str)]| -> Labels {
        pairs.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect()
    };
    for rule in rules.filter(|rule| rule.record.ends_with("_info")) {
        let side = if rule.record.contains("switch") { "switch" } else { "hca" };
        let node_type = if side == "hca" { "ca" } else { "switch" };
        let nodes = stage.nodes.values().filter(|node| node["node_type"] == node_type);
        let expected: BTreeSet<Labels> = if rule.record.contains("uplink") {
            let ports = stage.ports.values().filter(|port| port["node_type"] == node_type);
            ports
                .filter(|port| port.contains_key("peer_guid"))
                .map(|port| {
                    let peer = &stage.nodes[&port["peer_guid"]];
                    labels(&[
                        ("guid", &port["guid"]),
                        ("port", &port["port"]),
                        (side, &port["node"]),
                        ("uplink", &peer["node"]),
                        ("uplink_guid", &peer["guid"]),
                        ("uplink_type", if peer["node_type"] == "ca" { "CA" } else { "SW" }),
                        ("uplink_port", &port["peer_port"]),
                        ("uplink_lid", &peer["lid"]),
                    ])
                })
                .collect()
        } else {
            nodes
                .map(|node| {
                    labels(&[("guid", &node["guid"]), (side, &node["node"]), ("lid", &node["lid"])])
                })
                .collect()
        };
        // The current ones: without a scrape of both exporters, the host's own name is there for a second.
        let query = format!("{}{{fabric=\"{SWEPT}\"}}", rule.record);
        wait_until(Duration::from_secs(60), &format!("{} of all nodes", rule.record), || {
            let without_fabric = |(mut labels, _): (Labels, f64)| {
                labels.remove("fabric");
                labels
            };
            let told = series(&stage.prometheus, &query).into_iter().map(without_fabric);
            (told.collect::<BTreeSet<_>>() == expected).then_some(())
        });
        let alone: BTreeSet<Labels> =
            stage.recorded(rule, ALONE).into_iter().map(|(labels, _)| labels).collect();
        if rule.record == "infiniband_hca_info" {
            // The kernel calls one `node-1 mlx5_0`, the other `node-1 HCA-1`.
            let names: BTreeSet<&str> = alone.iter().map(|labels| labels["hca"].as_str()).collect();
            assert_eq!(names, ["node-1", "node-1 mlx5_0"].into());
        } else {
            assert!(alone.is_empty(), "{alone:?}");
        }
    }
}

fn guilbaults(stage: &Stage) {
    let [_, table, _] = exporters();
    let cabled = stage.cabled(None);
    assert_eq!(cabled.len(), 120);
    let mut words = 0.0;
    for row in table.rows.iter().filter(|row| row.scale.is_some()) {
        let rule = &row.rules[0];
        let ports = stage.assert_values(row, rule, |labels| {
            let port = (padded(&labels["local_guid"]), labels["local_port"].clone());
            let info = &stage.ports[&port];
            let component = if info["node_type"] == "switch" { "switch" } else { "ca" };
            assert_eq!(labels["component"], component);
            for (theirs, ours) in [
                ("local_name", "node"),
                ("remote_guid", "peer_guid"),
                ("remote_port", "peer_port"),
                ("remote_name", "peer_node"),
            ] {
                assert_eq!(labels[theirs], info[ours], "{theirs}");
            }
            // As ibqueryerrors prints it.
            assert!(!labels["local_guid"].starts_with("0x0"), "{labels:?}");
            port
        });
        let is_whole = row.per == Per::DetailedPort || ports == cabled;
        assert!(is_whole && ports.is_subset(&cabled), "{}: {ports:?}", rule.record);
        if rule.record == "infiniband_portxmitdata_total" {
            assert_eq!(row.scale, Some(4));
            words = stage.recorded(rule, SWEPT).iter().map(|(_, value)| value).sum();
        }
        // Without a sweep only the local end is known.
        for (labels, _) in stage.recorded(rule, ALONE) {
            let names: Vec<&str> = labels.keys().map(String::as_str).collect();
            assert_eq!(names, ["component", "local_guid", "local_name", "local_port"]);
            assert_eq!(labels["component"], "ca");
        }
    }
    assert!(words > 0.0, "nothing to compare");
    let rule =
        table.rows.iter().flat_map(|row| &row.rules).find(|it| it.record == "infiniband_speed");
    let speeds = stage.recorded(rule.unwrap(), SWEPT);
    assert_eq!(speeds.len(), 120);
    for (labels, speed) in speeds {
        assert!(labels.len() == rule.unwrap().labels.len(), "{labels:?}");
        assert_eq!(speed.to_bits(), 53.125_f64.to_bits(), "HDR");
    }
}
