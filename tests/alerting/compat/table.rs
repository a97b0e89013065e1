//! The table of other exporters' metrics: in each row their names, our metric, and the differences. The rule
//! files and the page are generated from it, and the tests check it.
//!
//! Their names are from their sources. Which of our metrics corresponds follows from the tables in the code: by
//! the IBTA name, by our own name, or by the file in sysfs.

use fabric_observation::families::counter_family;
use ib_mad::counter::{Attribute, Counter, CounterRow, TABLE};
use ib_mad::rate::Speed;
use rdma_host::model::hw_counter;

/// A recording rule.
pub struct Rule {
    /// The name that it records.
    pub record: String,
    /// The expression; several lines if it is long.
    pub expr: String,
    /// The labels of the samples besides `fabric`.
    pub labels: &'static [&'static str],
}

/// The unit of which there is one series each.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Per {
    /// Each port.
    Port,
    /// Each port that is read with `--fabric.details`.
    DetailedPort,
    /// Each port of a device whose driver counts it.
    DriversPort,
    /// Each node, or device.
    Node,
}

/// A row: one of our metrics, and theirs that are computed from it.
pub struct Row {
    /// The rules that compute them.
    pub rules: Vec<Rule>,
    /// Our metric.
    pub ours: String,
    /// The factor from theirs to ours where they differ only in the unit.
    pub scale: Option<u64>,
    /// The differences, if any.
    pub differs: &'static str,
    /// The number of series that it costs.
    pub per: Per,
}

/// Another exporter.
pub struct Exporter {
    /// The name of its rule file.
    pub name: &'static str,
    /// The name of the exporter.
    pub title: &'static str,
    /// The rules that the others build on, recorded first, each with a comment.
    pub helpers: Vec<(&'static str, Rule)>,
    /// Its metrics.
    pub rows: Vec<Row>,
    /// Their metrics without an equivalent, with the reason or our closest metric.
    pub missing: &'static [(&'static str, &'static str)],
    /// The differences that all of them have.
    pub differs: &'static [&'static str],
}

/// All exporters.
pub fn exporters() -> [Exporter; 3] {
    [treydock(), guilbaults(), node_exporter()]
}

/// The rate of a lane in Gb/s.
struct Lane {
    speed: Speed,
    /// By treydock: without the coding overhead.
    effective: f64,
    /// By treydock: with it.
    raw: f64,
    /// By ibqueryerrors, which guilbaults parses.
    printed: f64,
}

#[rustfmt::skip]
const LANES: [Lane; Speed::ALL.len()] = [
    Lane { speed: Speed::Sdr, effective: 2.0, raw: 2.5, printed: 2.5 },
    Lane { speed: Speed::Ddr, effective: 4.0, raw: 5.0, printed: 5.0 },
    Lane { speed: Speed::Qdr, effective: 8.0, raw: 10.0, printed: 10.0 },
    Lane { speed: Speed::Fdr10, effective: 10.0, raw: 10.3125, printed: 10.0 },
    Lane { speed: Speed::Fdr, effective: 13.64, raw: 14.0625, printed: 14.0625 },
    Lane { speed: Speed::Edr, effective: 25.0, raw: 25.78125, printed: 25.78125 },
    Lane { speed: Speed::Hdr, effective: 50.0, raw: 50.0, printed: 53.125 },
    Lane { speed: Speed::Ndr, effective: 100.0, raw: 100.0, printed: 106.25 },
    Lane { speed: Speed::Xdr, effective: 200.0, raw: 200.0, printed: 212.5 },
];

/// For each speed in a port's info a number.
fn by_speed(info: &str, selector: &str, number: impl Fn(&Lane) -> f64) -> String {
    let lanes: Vec<String> = (LANES.iter())
        .map(|lane| {
            let comma = if selector.is_empty() { "" } else { ", " };
            let speed = lane.speed.label();
            format!("{info}{{{selector}{comma}speed=\"{speed}\"}} * {}", number(lane))
        })
        .collect();
    lanes.join("\nor\n")
}

fn bytes(gigabits: f64) -> f64 {
    gigabits * 1e9 / 8.0
}

fn indented(text: &str) -> String {
    text.lines().map(|line| format!("  {line}")).collect::<Vec<_>>().join("\n")
}

/// A call of a function with one vector.
fn call(head: &str, inner: &str) -> String {
    format!("{head} (\n{}\n)", indented(inner))
}

/// `vector` with labels copied from others: where the source matches, the target is the replacement.
fn relabelled(vector: &str, labels: &[(&str, &str, &str, &str)]) -> String {
    labels.iter().fold(vector.to_owned(), |vector, (target, replacement, source, pattern)| {
        let inner =
            format!("{vector},\n\"{target}\", \"{replacement}\", \"{source}\", \"{pattern}\"");
        format!("label_replace(\n{}\n)", indented(&inner))
    })
}

fn per(row: &CounterRow) -> Per {
    use Attribute::{PortRcvErrorDetails, PortXmitDiscardDetails};
    let details = [PortRcvErrorDetails, PortXmitDiscardDetails];
    if row.fields.iter().all(|place| details.contains(&place.attribute)) {
        Per::DetailedPort
    } else {
        Per::Port
    }
}

fn sample_name(counter: Counter) -> String {
    counter_family(counter).sample_name()
}

/// The ports that a fabric exporter would export: only the sweep's value where there is one. A total that
/// changes from the sweep's to the host's would go down, which `rate()` takes for a
/// counter reset.
fn fabric_ports() -> String {
    "  topk by (fabric, guid, port) (1,
    max by (fabric, guid, port, node, node_type, peer_guid, peer_port, peer_node, speed, width)
      (last_over_time(infiniband_port_info{node_type=~\"switch|ca|aggregation_node\"}[5m]))
  )
or
  topk by (fabric, guid, port) (1,
    max by (fabric, guid, port, device, node, node_type, speed, width) (
      last_over_time(infiniband_device_port_info{link_layer=~\"InfiniBand|\", kind!=\"smi\", guid!=\"0x0000000000000000\"}[5m])
      * on (fabric, guid, device) group_left (node, node_type)
        topk by (fabric, guid, device) (1,
          max by (fabric, guid, device, node, node_type)
            (last_over_time(infiniband_device_info{node_type=\"ca\"}[5m]))
        )
    )
  )
  unless on (fabric) max_over_time(fabric_exporter_sweeps_total[1h])"
        .to_owned()
}

const PORT: &str = "on (fabric, guid, port, device)";

// treydock/infiniband_exporter, and its fork SckyzO's: collectors/{switch,hca,ibnetdiscover}.go.

/// Between `infiniband_switch_port_` or `infiniband_hca_port_` and `_total`.
const TREYDOCK: [&str; 28] = [
    "transmit_data_bytes",
    "receive_data_bytes",
    "transmit_packets",
    "receive_packets",
    "unicast_transmit_packets",
    "unicast_receive_packets",
    "multicast_transmit_packets",
    "multicast_receive_packets",
    "symbol_error",
    "link_error_recovery",
    "link_downed",
    "receive_errors",
    "receive_remote_physical_errors",
    "receive_switch_relay_errors",
    "transmit_discards",
    "transmit_constraint_errors",
    "receive_constraint_errors",
    "local_link_integrity_errors",
    "excessive_buffer_overrun_errors",
    "vl15_dropped",
    "transmit_wait",
    "qp1_dropped",
    "local_physical_errors",
    "malformed_packet_errors",
    "buffer_overrun_errors",
    "dli_mapping_errors",
    "vl_mapping_errors",
    "looping_errors",
];

/// Those whose name is not ours, nor ours without `receive_`.
const TREYDOCK_RENAMED: [(&str, Counter); 6] = [
    ("transmit_data_bytes", Counter::XmitData),
    ("receive_data_bytes", Counter::RcvData),
    ("symbol_error", Counter::SymbolErrors),
    ("link_error_recovery", Counter::LinkErrorRecoveries),
    ("transmit_wait", Counter::XmitWait),
    ("dli_mapping_errors", Counter::RcvDlidMappingErrors),
];

const TREYDOCK_PORTS: &str = "fabric_guid_port:infiniband_port_info:treydock";
const TREYDOCK_NODES: &str = "fabric_guid:infiniband_node_info:treydock";

/// The name of a node: the word before ` HCA`, if there is one.
const BEFORE_HCA: &str = "([^ ]+)( .*)? HCA.*";

/// Its two metric families, and its labels for the node types.
const SIDES: [(&str, &str); 2] = [("switch", "SW"), ("hca", "CA")];

fn treydock_counter(theirs: &str) -> Row {
    let renamed = TREYDOCK_RENAMED.iter().find(|(name, _)| *name == theirs);
    let row = renamed.map(|(_, counter)| counter.row()).or_else(|| {
        let long = format!("receive_{theirs}");
        TABLE.iter().find(|row| row.metric == theirs || row.metric == long)
    });
    let row = row.unwrap_or_else(|| panic!("{theirs} has none of ours"));
    let ours = sample_name(row.counter);
    let rules = SIDES.map(|(side, kind)| Rule {
        record: format!("infiniband_{side}_port_{theirs}_total"),
        expr: call(
            "max by (fabric, guid, port)",
            &format!("{ours}\nand {PORT} {TREYDOCK_PORTS}{{type=\"{kind}\"}}"),
        ),
        labels: &["guid", "port"],
    });
    Row { rules: rules.into(), ours, scale: Some(1), differs: "", per: per(row) }
}

fn treydock_rate(name: &str, number: fn(&Lane) -> f64, differs: &'static str) -> [Row; 2] {
    let places: [(&str, &str, &'static [&'static str], Per); 2] =
        [("switch_port", "SW", &["guid", "port"], Per::Port), ("hca", "CA", &["guid"], Per::Node)];
    places.map(|(place, kind, labels, per)| {
        let lanes =
            by_speed(TREYDOCK_PORTS, &format!("type=\"{kind}\""), |lane| bytes(number(lane)));
        let inner = format!(
            "infiniband_port_width_lanes\n* {PORT} group_left ()\n(\n{}\n)",
            indented(&lanes)
        );
        let record = format!("infiniband_{place}_{name}_bytes_per_second");
        let expr = call(&format!("max by (fabric, {})", labels.join(", ")), &inner);
        Row {
            rules: vec![Rule { record, expr, labels }],
            ours: "infiniband_port_width_lanes".into(),
            scale: None,
            differs,
            per,
        }
    })
}

fn treydock_info((side, kind): (&'static str, &'static str)) -> [Row; 2] {
    let (labels, uplinks): (&'static [&'static str], &'static [&'static str]) = match side {
        "switch" => (
            &["guid", "switch", "lid"],
            &[
                "guid",
                "port",
                "switch",
                "uplink",
                "uplink_guid",
                "uplink_type",
                "uplink_port",
                "uplink_lid",
            ],
        ),
        _ => (
            &["guid", "hca", "lid"],
            &[
                "guid",
                "port",
                "hca",
                "uplink",
                "uplink_guid",
                "uplink_type",
                "uplink_port",
                "uplink_lid",
            ],
        ),
    };
    let nodes = named(side, kind);
    let info = Rule {
        record: format!("infiniband_{side}_info"),
        expr: call(&format!("max by (fabric, {})", labels.join(", ")), &nodes),
        labels,
    };
    let ends = relabelled(
        &format!("{TREYDOCK_PORTS}{{type=\"{kind}\", peer_guid!=\"\"}}"),
        &[("uplink_guid", "$1", "peer_guid", "(.*)"), ("uplink_port", "$1", "peer_port", "(.*)")],
    );
    let peers = relabelled(
        TREYDOCK_NODES,
        &[
            ("uplink_guid", "$1", "guid", "(.*)"),
            ("uplink_type", "$1", "type", "(.*)"),
            ("uplink_lid", "$1", "lid", "(.*)"),
            ("uplink", "$1", "node", "(.*)"),
        ],
    );
    let inner = format!(
        "{ends}\n* on (fabric, guid) group_left ({side})\n{nodes}\n\
         * on (fabric, uplink_guid) group_left (uplink, uplink_type, uplink_lid)\n{peers}\n\
         and on (fabric, guid, port)\nmax by (fabric, guid, port) (infiniband_port_state) > 1"
    );
    let uplink = Rule {
        record: format!("infiniband_{side}_uplink_info"),
        expr: call(&format!("max by (fabric, {})", uplinks.join(", ")), &inner),
        labels: uplinks,
    };
    [
        Row {
            rules: vec![info],
            ours: "infiniband_node_info".into(),
            scale: None,
            differs: "",
            per: Per::Node,
        },
        Row {
            rules: vec![uplink],
            ours: "infiniband_port_info".into(),
            scale: None,
            differs: "`uplink_lid` is the LID of the node's first port. Without a sweep the neighbor is \
                      not known, and there is no series.",
            per: Per::Port,
        },
    ]
}

/// Nodes with their names as a label.
fn named(side: &str, kind: &str) -> String {
    relabelled(&format!("{TREYDOCK_NODES}{{type=\"{kind}\"}}"), &[(side, "$1", "node", "(.*)")])
}

/// What only the fork has: which nodes respond, and which ports of switches have a link.
fn treydock_states() -> [Row; 3] {
    let sides: [(&str, &str, &'static [&'static str]); 2] =
        [("switch", "SW", &["guid", "switch"]), ("hca", "CA", &["guid", "hca"])];
    let [switches, hcas] = sides.map(|(side, kind, labels)| {
        let inner = format!(
            "{}\n* on (fabric, guid) group_left ()\nmax by (fabric, guid) (infiniband_node_up)",
            named(side, kind)
        );
        let rule = Rule {
            record: format!("infiniband_{side}_up"),
            expr: call(&format!("max by (fabric, {})", labels.join(", ")), &inner),
            labels,
        };
        Row {
            rules: vec![rule],
            ours: "infiniband_node_up".into(),
            scale: None,
            differs: "SckyzO's. 0 also for a node that has left the fabric; theirs has no series then. \
                      Without a sweep there is no series.",
            per: Per::Node,
        }
    });
    let inner = format!(
        "(max by (fabric, guid, port) (infiniband_port_state) > bool 1)\n\
         * on (fabric, guid) group_left (switch)\n{}",
        named("switch", "SW")
    );
    let labels = &["guid", "port", "switch"];
    let ports = Row {
        rules: vec![Rule {
            record: "infiniband_switch_port_state".into(),
            expr: call("max by (fabric, guid, port, switch)", &inner),
            labels,
        }],
        ours: "infiniband_port_state".into(),
        scale: None,
        differs: "SckyzO's. 1 in the states Init, Armed and Active. The ports of a switch that does not \
                  respond have none.",
        per: Per::Port,
    };
    [switches, hcas, ports]
}

/// What ibswinfo reads of switches, by their metrics and ours.
fn treydock_environment() -> impl Iterator<Item = Row> {
    let rows: [(&str, &str, &'static [&'static str], &str); 3] = [
        ("uptime_seconds", "infiniband_node_uptime_seconds", &["guid"], ""),
        ("temperature_celsius", "infiniband_node_temperature_celsius", &["guid"], ""),
        (
            "fan_rpm",
            "infiniband_node_fan_speed_rpm",
            &["guid", "fan"],
            "`fan` is the number of the tachometer.",
        ),
    ];
    rows.into_iter().map(|(theirs, ours, labels, differs)| {
        let switches = format!("{ours}\nand on (fabric, guid) {TREYDOCK_NODES}{{type=\"SW\"}}");
        let rule = Rule {
            record: format!("infiniband_switch_{theirs}"),
            expr: call(&format!("max by (fabric, {})", labels.join(", ")), &switches),
            labels,
        };
        Row { rules: vec![rule], ours: ours.into(), scale: None, differs, per: Per::Node }
    })
}

fn treydock() -> Exporter {
    let labels = "fabric, guid, port, device, type, speed, peer_guid, peer_port";
    let types =
        [("type", "SW", "node_type", "switch"), ("type", "CA", "node_type", "ca|aggregation_node")];
    let ports = Rule {
        record: TREYDOCK_PORTS.into(),
        expr: call(&format!("max by ({labels})"), &relabelled(&fabric_ports(), &types)),
        labels: &[],
    };
    let told = "max by (fabric, guid, node, node_type, lid) (infiniband_node_info)\n\
                or on (fabric, guid)\n\
                max by (fabric, guid, node, node_type, lid) (\n\
                \x20 infiniband_device_port_info{link_layer=\"InfiniBand\", kind!=\"smi\", guid!=\"0x0000000000000000\"}\n\
                \x20 * on (fabric, guid, device) group_left (node, node_type)\n\
                \x20   topk by (fabric, guid, device) (1, max by (fabric, guid, device, node, node_type) (infiniband_device_info))\n\
                \x20 unless on (fabric) max_over_time(fabric_exporter_sweeps_total[1h])\n\
                )";
    let named = [("type", "RT", "node_type", "router"), ("node", "$1", "node", BEFORE_HCA)];
    let nodes = Rule {
        record: TREYDOCK_NODES.into(),
        expr: format!(
            "topk by (fabric, guid) (1,\n{}\n)",
            indented(&relabelled(told, &[types.as_slice(), &named].concat()))
        ),
        labels: &[],
    };
    let mut rows: Vec<Row> = TREYDOCK.iter().map(|theirs| treydock_counter(theirs)).collect();
    rows.extend(treydock_rate(
        "rate",
        |lane| lane.effective,
        "An XDR lane is 200 Gb/s; theirs reports 250.",
    ));
    rows.extend(treydock_rate("raw_rate", |lane| lane.raw, ""));
    rows.extend(SIDES.into_iter().flat_map(treydock_info));
    rows.extend(treydock_states());
    rows.extend(treydock_environment());
    Exporter {
        name: "treydock",
        title: "treydock/infiniband_exporter (and SckyzO/infiniband_exporter)",
        helpers: vec![
            (
                "The ports that theirs exports, and our source of each: the sweep, or the port's own host\n\
                 where no exporter sweeps.",
                ports,
            ),
            ("The names of nodes there: the word before ` HCA`.", nodes),
        ],
        rows,
        missing: &[
            (
                "`infiniband_switch_hardware_info`",
                "Firmware and PSID: `infiniband_node_firmware_info`. Part and serial number of a switch are not read.",
            ),
            ("`infiniband_switch_fan_status_info`", "`infiniband_node_fan_out_of_range`, by fan."),
            ("`infiniband_switch_power_supply_…`", "Power supplies are not read."),
            (
                "`infiniband_switch_collect_…` `infiniband_hca_collect_…` `infiniband_ibswinfo_…`",
                "The tools that theirs runs for each node. Closest: `infiniband_node_up`.",
            ),
            (
                "`infiniband_hca_port_rate_bytes_per_second` `infiniband_hca_port_raw_rate_bytes_per_second`",
                "SckyzO's names for `infiniband_hca_rate_bytes_per_second` and `infiniband_hca_raw_rate_bytes_per_second`, which are recorded.",
            ),
            (
                "`infiniband_…_port_dlid_mapping_errors_total`",
                "SckyzO's name for `…_dli_mapping_errors_total`, which is recorded.",
            ),
            (
                "`infiniband_exporter_…`",
                "Metrics of the exporter itself: `fabric_exporter_collector_success`, `fabric_exporter_sweep_duration_seconds`, `fabric_exporter_nodes_failed`, `fabric_exporter_ports_failed`.",
            ),
        ],
        differs: &[
            "Ports without a link are included; theirs reads only ports with a link.",
            "`infiniband_hca_…rate…` of an HCA with several ports is the rate of its fastest port; theirs is the rate of the port read last.",
            "SckyzO's counters also have the node's name (`switch`, `hca`): join `infiniband_switch_info`, `infiniband_hca_info`.",
            "SHARP aggregation nodes are HCAs in both. Routers appear only as neighbors of a port.",
        ],
    }
}

// guilbaults/infiniband-exporter, and SckyzO's: infiniband-exporter.py, on `ibqueryerrors --details --data`.

/// Between `infiniband_` and `_total`.
const GUILBAULTS: [&str; 28] = [
    "linkdownedcounter",
    "symbolerrorcounter",
    "portxmitconstrainterrors",
    "portmalformedpkterrors",
    "portswlifetimelimitdiscards",
    "portxmitdiscards",
    "portswhoqlifetimelimitdiscards",
    "portxmitwait",
    "portxmitdata",
    "portrcvdata",
    "portxmitpkts",
    "portrcvpkts",
    "portrcverrors",
    "portunicastxmitpkts",
    "portunicastrcvpkts",
    "portmulticastxmitpkts",
    "portmulticastrcvpkts",
    "portbufferoverrunerrors",
    "portlocalphysicalerrors",
    "portrcvremotephysicalerrors",
    "portinactivediscards",
    "portdlidmappingerrors",
    "linkerrorrecoverycounter",
    "locallinkintegrityerrors",
    "vl15dropped",
    "portneighbormtudiscards",
    "portrcvconstrainterrors",
    "excessivebufferoverrunerrors",
];

const GUILBAULTS_PORTS: &str = "fabric_guid_port:infiniband_port_info:guilbaults";

const GUILBAULTS_LABELS: &[&str] = &[
    "component",
    "local_name",
    "local_guid",
    "local_port",
    "remote_guid",
    "remote_port",
    "remote_name",
];

fn guilbaults_rule(record: String, vector: &str) -> Rule {
    let labels = GUILBAULTS_LABELS.join(", ");
    let inner = format!("{vector}\n* {PORT} group_left ({labels})\n  {GUILBAULTS_PORTS}");
    let expr = call(&format!("max by (fabric, {labels})"), &inner);
    Rule { record, expr, labels: GUILBAULTS_LABELS }
}

fn guilbaults_counter(theirs: &str) -> Row {
    let is_it = |row: &&CounterRow| match theirs {
        // libibmad abbreviates it.
        "portmalformedpkterrors" => row.counter == Counter::RcvMalformedPacketErrors,
        theirs => row.ibta.to_lowercase() == theirs,
    };
    let row = TABLE.iter().find(is_it).unwrap_or_else(|| panic!("{theirs} has none of ours"));
    let ours = sample_name(row.counter);
    let vector = if row.scale == 1 { ours.clone() } else { format!("{ours} / {}", row.scale) };
    Row {
        rules: vec![guilbaults_rule(format!("infiniband_{theirs}_total"), &vector)],
        ours,
        scale: Some(row.scale),
        differs: if row.scale == 1 { "" } else { "A quarter of ours: in words of 4 bytes." },
        per: per(row),
    }
}

fn guilbaults() -> Exporter {
    let labels = GUILBAULTS_LABELS.join(", ");
    let copied = [
        ("component", "switch", "node_type", "switch"),
        ("component", "ca", "node_type", "ca|aggregation_node"),
        ("local_name", "$1", "node", "(.*)"),
        ("local_guid", "0x$1", "guid", "0x0*(.+)"),
        ("local_port", "$1", "port", "(.*)"),
        ("remote_guid", "$1", "peer_guid", "(.*)"),
        ("remote_port", "$1", "peer_port", "(.*)"),
        ("remote_name", "$1", "peer_node", "(.*)"),
    ];
    let ports = format!(
        "{}\nand on (fabric, guid, port)\nmax by (fabric, guid, port) (infiniband_port_state) == 4",
        relabelled(&fabric_ports(), &copied)
    );
    let ports = Rule {
        record: GUILBAULTS_PORTS.into(),
        expr: call(&format!("max by (fabric, guid, port, device, speed, {labels})"), &ports),
        labels: &[],
    };
    let speeds = by_speed(GUILBAULTS_PORTS, "", |lane| lane.printed);
    let speed = Rule {
        record: "infiniband_speed".into(),
        expr: call(&format!("max by (fabric, {labels})"), &speeds),
        labels: GUILBAULTS_LABELS,
    };
    let width = guilbaults_rule("infiniband_width".into(), "infiniband_port_width_lanes");
    let mut rows: Vec<Row> = GUILBAULTS.iter().map(|theirs| guilbaults_counter(theirs)).collect();
    rows.push(Row {
        rules: vec![speed],
        ours: "infiniband_port_info".into(),
        scale: None,
        differs: "From the label `speed`; Gb/s a lane, as ibqueryerrors prints them.",
        per: Per::Port,
    });
    rows.push(Row {
        rules: vec![width],
        ours: "infiniband_port_width_lanes".into(),
        scale: Some(1),
        differs: "",
        per: Per::Port,
    });
    Exporter {
        name: "guilbaults",
        title: "guilbaults/infiniband-exporter (and SckyzO/infiniband-exporter)",
        helpers: vec![(
            "Ports that are Active, with their labels, and our source of each: the sweep, or the\n\
             port's own host where no exporter sweeps.",
            ports,
        )],
        rows,
        missing: &[
            (
                "`infiniband_scrape_ok`",
                "`fabric_exporter_collector_success`, `fabric_exporter_ports_failed`",
            ),
            (
                "`infiniband_scrape_duration_seconds` `infiniband_ibqueryerrors_duration_seconds`",
                "`fabric_exporter_sweep_duration_seconds`",
            ),
            (
                "`infiniband_bad_status_error` `infiniband_query_failed_error` `infininband_…_error`",
                "Errors that ibqueryerrors printed. Closest: `fabric_exporter_mads_total` by `outcome`, `fabric_exporter_nodes_failed`.",
            ),
        ],
        differs: &[
            "Counters that are 0 have a series; ibqueryerrors omits them, and theirs has no series until the first error.",
            "Theirs are the raw device counters, which saturate, and restart from 0 when they are cleared (that exporter can clear them). Ours are totals that continue.",
            "`local_guid` is the node's GUID. ibqueryerrors reports the port GUID of a CA instead, which differs on some HCAs (ConnectX-3 and older). As in its output, `local_guid` has no leading zeros, and `remote_guid` has them.",
            "Without a sweep there is no `remote_…`.",
        ],
    }
}

// node_exporter: collector/infiniband_linux.go, and procfs's sysfs/class_infiniband.go for the files.

/// Between `node_infiniband_` and `_total`, with the file in `counters`.
const NODE_COUNTERS: [(&str, &str); 21] = [
    ("link_downed", "link_downed"),
    ("link_error_recovery", "link_error_recovery"),
    ("symbol_error", "symbol_error"),
    ("port_data_received_bytes", "port_rcv_data"),
    ("port_data_transmitted_bytes", "port_xmit_data"),
    ("port_packets_received", "port_rcv_packets"),
    ("port_packets_transmitted", "port_xmit_packets"),
    ("unicast_packets_received", "unicast_rcv_packets"),
    ("unicast_packets_transmitted", "unicast_xmit_packets"),
    ("multicast_packets_received", "multicast_rcv_packets"),
    ("multicast_packets_transmitted", "multicast_xmit_packets"),
    ("port_errors_received", "port_rcv_errors"),
    ("port_receive_remote_physical_errors", "port_rcv_remote_physical_errors"),
    ("port_receive_switch_relay_errors", "port_rcv_switch_relay_errors"),
    ("port_discards_transmitted", "port_xmit_discards"),
    ("port_constraint_errors_received", "port_rcv_constraint_errors"),
    ("port_constraint_errors_transmitted", "port_xmit_constraint_errors"),
    ("local_link_integrity_errors", "local_link_integrity_errors"),
    ("excessive_buffer_overrun_errors", "excessive_buffer_overrun_errors"),
    ("vl15_dropped", "VL15_dropped"),
    ("port_transmit_wait", "port_xmit_wait"),
];

/// The same for `hw_counters`, which releases newer than Debian's 1.5 export.
const NODE_HW: [(&str, &str); 29] = [
    ("duplicate_requests_packets", "duplicate_request"),
    ("implied_nak_seq_errors", "implied_nak_seq_err"),
    ("local_ack_timeout_errors", "local_ack_timeout_err"),
    ("np_cnp_packets_sent", "np_cnp_sent"),
    ("np_ecn_marked_roce_packets_received", "np_ecn_marked_roce_packets"),
    ("out_of_buffer_drops", "out_of_buffer"),
    ("out_of_sequence_packets_received", "out_of_sequence"),
    ("packet_sequence_errors", "packet_seq_err"),
    ("req_cqes_errors", "req_cqe_error"),
    ("req_cqes_flush_errors", "req_cqe_flush_error"),
    ("req_remote_access_errors", "req_remote_access_errors"),
    ("req_remote_invalid_request_errors", "req_remote_invalid_request"),
    ("resp_cqes_errors", "resp_cqe_error"),
    ("resp_cqes_flush_errors", "resp_cqe_flush_error"),
    ("resp_local_length_errors", "resp_local_length_error"),
    ("resp_remote_access_errors", "resp_remote_access_errors"),
    ("rnr_nak_retry_packets_received", "rnr_nak_retry_err"),
    ("roce_adp_retransmits", "roce_adp_retrans"),
    ("roce_adp_retransmits_timeout", "roce_adp_retrans_to"),
    ("roce_slow_restart_used", "roce_slow_restart"),
    ("roce_slow_restart_cnps", "roce_slow_restart_cnps"),
    ("roce_slow_restart", "roce_slow_restart_trans"),
    ("rp_cnp_packets_handled", "rp_cnp_handled"),
    ("rp_cnp_ignored_packets_received", "rp_cnp_ignored"),
    ("rx_atomic_requests", "rx_atomic_requests"),
    ("rx_dct_connect_requests", "rx_dct_connect"),
    ("rx_read_requests", "rx_read_requests"),
    ("rx_write_requests", "rx_write_requests"),
    ("rx_icrc_encapsulated_errors", "rx_icrc_encapsulated"),
];

const NODE_LABELS: &[&str] = &["device", "port", "instance", "job"];

fn node_row(theirs: &str, ours: String, selector: &str, scale: u64, per: Per) -> Row {
    let rule = Rule {
        record: format!("node_infiniband_{theirs}"),
        expr: format!("max without (guid) ({ours}{{{selector}}})"),
        labels: NODE_LABELS,
    };
    Row { rules: vec![rule], ours, scale: Some(scale), differs: "", per }
}

fn node_exporter() -> Exporter {
    let of_device = "device!=\"\"";
    let mut rows: Vec<Row> = [
        ("state_id", "infiniband_port_state"),
        ("physical_state_id", "infiniband_port_physical_state"),
        ("rate_bytes_per_second", "infiniband_port_rate_bytes_per_second"),
    ]
    .map(|(theirs, ours)| node_row(theirs, ours.into(), of_device, 1, Per::Port))
    .into();
    rows.extend(NODE_COUNTERS.iter().map(|(theirs, file)| {
        let counter =
            Counter::from_file(file).unwrap_or_else(|| panic!("{file} holds none of ours"));
        let theirs = format!("{theirs}_total");
        node_row(&theirs, sample_name(counter), of_device, 1, Per::Port)
    }));
    rows.extend(NODE_HW.iter().map(|(theirs, file)| {
        let row = hw_counter::find(file).unwrap_or_else(|| panic!("{file} is none of ours"));
        let row = &hw_counter::TABLE[row];
        assert!(!row.is_gauge, "{file}");
        let ours = format!("infiniband_hw_{}_total", row.metric);
        node_row(&format!("{theirs}_total"), ours, "port!=\"\"", 1, Per::DriversPort)
    }));
    let info = relabelled(
        "infiniband_device_info",
        &[("board_id", "$1", "board", "(.*)"), ("firmware_version", "$1", "firmware", "(.*)")],
    );
    rows.push(Row {
        rules: vec![Rule {
            record: "node_infiniband_info".into(),
            expr: call(
                "max without (guid, kind, node, node_type, system_guid, firmware, hardware, board, driver)",
                &info,
            ),
            labels: &["device", "board_id", "firmware_version", "hca_type", "instance", "job"],
        }],
        ours: "infiniband_device_info".into(),
        scale: None,
        differs: "",
        per: Per::Node,
    });
    Exporter {
        name: "node_exporter",
        title: "node_exporter, its collector infiniband",
        helpers: Vec::new(),
        rows,
        missing: &[
            (
                "`node_infiniband_legacy_…`",
                "The 64-bit counters of an mlx4 on a kernel before 4.5: here they have the names of newer kernels, above. The 32-bit counters that node_exporter exports under those names saturate after seconds and are not exported.",
            ),
            ("`node_infiniband_port_discards_received_total`", "No kernel counts it."),
            ("`node_infiniband_lifespan_seconds`", "A driver setting."),
            ("`node_infiniband_efa_…`", "`infiniband_hw_…`, by the file's name."),
            (
                "`node_scrape_collector_success{collector=\"infiniband\"}`",
                "`fabric_exporter_collector_success{collector=\"host\"}`, and `infiniband_device_up` for each device.",
            ),
        ],
        differs: &[
            "`instance` and `job` are those of our target. If dashboards select those of node_exporter, give our job the same `instance` with `relabel_configs`.",
            "Counters are totals: they continue when the device is reset, and restart with the exporter.",
            "node_exporter 1.5 exports nothing of a host with one device that has no board id or no counters; ours exports the others.",
            "A driver counter is exported for all drivers that have it, whatever the file name; theirs only for the files of mlx5.",
        ],
    }
}
