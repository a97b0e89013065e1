//! One net file in ibsim and in the simulator is the same fabric with the same counters.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use test_rig as rig;

use std::collections::{BTreeMap, BTreeSet};

use ib_mad::rate::Width;
use ib_sim::device::DeviceModel;
use ib_sim::net::Net;
use ib_sim::net::file::parse;
use rig::counters::{MOVING, STILL, Setting, all_distinct};
use rig::ground::{Ground, InSimulator, OnIbsim, Site, at_rest_from};
use rig::metrics::Sample;
use rig::{Ibsim, Metrics, topology};

// ibsim has no vendor class.
const FLAGS: &[&str] = &["--fabric.interval=1s", "--fabric.details", "--no-fabric.registers"];

/// A metric's name and the labels that are compared.
type Series = (String, BTreeMap<String, String>);

const MANAGERS_ACTIVITY: &str = "infiniband_subnet_manager_activity_total";

/// All metrics of nodes, ports and subnet managers.
fn told(metrics: &Metrics, without: &[&str]) -> BTreeMap<Series, String> {
    let of_fabric = |name: &str| {
        let prefixes = [
            "infiniband_node",
            "infiniband_port",
            "infiniband_subnet",
            SUPPORTED_RATE,
            "fabric_exporter_discovery_gaps",
        ];
        // The activity of a subnet manager differs.
        prefixes.iter().any(|prefix| name.starts_with(prefix)) && name != MANAGERS_ACTIVITY
    };
    let samples = metrics.samples.iter().filter(|sample| of_fabric(&sample.name));
    samples
        .map(|sample| {
            let mut labels = sample.labels.clone();
            labels.retain(|label, _| !without.contains(&label.as_str()));
            ((sample.name.clone(), labels), sample.raw.clone())
        })
        .collect()
}

fn is_moving(series: &Series) -> bool {
    MOVING.iter().any(|of| series.0 == format!("infiniband_port_{}_total", of.metric))
}

/// A series that differs, with both values.
type Difference = (Series, Option<String>, Option<String>);

/// All differences. Traffic counters are at least what they were set to in ibsim, which counts the
/// requests themselves, and exactly that in the simulator, which does not.
fn differences(ibsim: &Metrics, simulator: &Metrics, without: &[&str]) -> Vec<Difference> {
    let (ibsim, simulator) = (told(ibsim, without), told(simulator, without));
    let all: BTreeSet<&Series> = ibsim.keys().chain(simulator.keys()).collect();
    all.into_iter()
        .map(|series| (series.clone(), ibsim.get(series).cloned(), simulator.get(series).cloned()))
        .filter(|(series, ibsim, simulator)| match (ibsim, simulator) {
            (Some(ibsim), Some(_)) if series.0 == MULTICAST_RECEIVED => ibsim != "0",
            (Some(ibsim), Some(simulator)) if is_moving(series) => {
                let number = |text: &str| text.parse::<u64>().unwrap();
                !(0..A_TEST_OF_MADS).contains(&number(ibsim).wrapping_sub(number(simulator)))
            }
            _ => ibsim != simulator,
        })
        .collect()
}

/// ibsim cuts its responses after 64 bytes of data, before PortMultiCastRcvPkts: it is always 0
/// there.
const MULTICAST_RECEIVED: &str = "infiniband_port_multicast_receive_packets_total";

/// More bytes than the MADs of a test: ibsim's traffic counters may be ahead by this.
const A_TEST_OF_MADS: u64 = 16 << 20;

const SUPPORTED_RATE: &str = "infiniband_link_supported_rate_bytes_per_second";

/// The counters of error correction, which also grow on good links.
const CORRECTIONS: [&str; 3] = [
    "infiniband_port_fec_corrected_blocks_total",
    "infiniband_port_fec_corrected_symbols_total",
    "infiniband_port_fec_uncorrectable_blocks_total",
];

/// Derived metrics. They differ with the rates, the widths of counters and the moments of reading.
fn is_found_out(name: &str) -> bool {
    let families = [
        "link_",
        "congestion_",
        "port_counters_",
        "port_saturated_counters",
        "port_transmit_wait_",
        "port_congestion",
    ];
    let name = name.strip_prefix("infiniband_").unwrap_or(name);
    families.iter().any(|family| name.starts_with(family))
}

/// The only differences are those of device models. ibsim responds for all devices alike; the
/// simulator has the models of its table:
///
/// - they have QP1Dropped, if their ClassPortInfo announces it;
/// - they count corrected symbols, on links with error correction;
/// - they have no 12x, which ibsim supports everywhere, and so a third of the rate.
fn only_what_a_known_device_can_do(differences: &[Difference], net: &Net, metrics: &Metrics) {
    let known = |model: &DeviceModel| model.device_id != 0;
    let mut expected = BTreeSet::new();
    for (labels, _) in metrics.all("infiniband_port_state") {
        let node = net.nodes.iter().find(|node| node.guid.to_string() == labels["guid"]).unwrap();
        if !known(node.model) {
            continue;
        }
        assert_eq!(Width::widest(node.model.widths), Some(Width::X4), "{}", node.id);
        let id = [("guid", labels["guid"].as_str()), ("port", labels["port"].as_str())];
        let info = metrics.sample("infiniband_port_info", &id).unwrap();
        // Without a cable and with nothing counted a port has no counters.
        if info.labels.contains_key("peer_guid") {
            expected.insert(("infiniband_port_qp1_dropped_total", labels.clone()));
        }
        let is_fast = |speed: &String| ["HDR", "NDR", "XDR"].contains(&speed.as_str());
        if node.model.fec && info.labels.get("speed").is_some_and(is_fast) {
            expected.extend(CORRECTIONS.map(|name| (name, labels.clone())));
        }
        let link = info.labels.get("link").map_or("", String::as_str);
        if let Some(supported) = metrics.sample(SUPPORTED_RATE, &[("link", link)]) {
            expected.insert((SUPPORTED_RATE, supported.labels.clone()));
        }
    }
    let mut found = BTreeSet::new();
    let differences =
        differences.iter().filter(|((name, _), ..)| name == SUPPORTED_RATE || !is_found_out(name));
    for ((name, labels), ibsim, simulator) in differences {
        let number = |text: &Option<String>| text.as_ref().map(|text| text.parse::<u64>().unwrap());
        match (name.as_str(), number(ibsim), number(simulator)) {
            ("infiniband_port_qp1_dropped_total", None, Some(0)) => {}
            // They are derived, also from symbol errors that a test sets.
            (name, None, Some(_)) if CORRECTIONS.contains(&name) => {}
            (SUPPORTED_RATE, Some(ibsim), Some(simulator)) => {
                assert_eq!(ibsim, 3 * simulator, "{labels:?}");
            }
            _ => panic!("{name} {labels:?}: ibsim {ibsim:?}, simulator {simulator:?}"),
        }
        found.insert((name.as_str(), labels.clone()));
    }
    assert_eq!(found, expected);
}

/// The LID of the subnet manager and the GUID of its port, by `sminfo`.
fn sminfo(ibsim: &Ibsim) -> (u16, u64) {
    let text = ibsim.tool("sminfo", &[]);
    let after = |key: &str| text.split_once(key).unwrap().1.split([' ', ',']).next().unwrap();
    let guid = after("sm guid ").trim_start_matches("0x");
    (after("sm lid ").parse().unwrap(), u64::from_str_radix(guid, 16).unwrap())
}

/// The id that a node of one net has in another.
fn id_in(picture: &Net, net: &Net, id: &str) -> String {
    let guid = net.nodes.iter().find(|node| node.id == id).unwrap().guid;
    picture.nodes.iter().find(|node| node.guid == guid).unwrap().id.clone()
}

fn assert_same(text: &str) {
    let site = Site { flags: FLAGS, ..Site::of(text.to_owned()) };
    let net = topology::net(text);
    let (mut ibsim, simulator) = (OnIbsim::new(&site), InSimulator::new(&site));

    // Subnet managers assign different LIDs.
    let compare = |ibsim: &OnIbsim, simulator: &InSimulator| {
        let metrics = simulator.metrics();
        let differences = differences(&ibsim.metrics(), &metrics, &["lid"]);
        only_what_a_known_device_can_do(&differences, &net, &metrics);
        metrics
    };
    let metrics = compare(&ibsim, &simulator);
    let of_ports = |sample: &&Sample| {
        sample.name.starts_with("infiniband_port_")
            && sample.name.ends_with("_total")
            && !CORRECTIONS.contains(&sample.name.as_str())
    };
    assert!(metrics.samples.iter().filter(of_ports).all(|sample| sample.u64() == 0), "at rest");
    assert!(metrics.samples.iter().filter(of_ports).count() >= STILL.len() + MOVING.len());

    // An exporter that has read the counters at 0 would refuse such an increase.
    let settings = all_distinct(text);
    ibsim.set(&settings);
    ibsim.restart(&site);
    let simulator = InSimulator::with_counters(&site, &settings);
    ibsim.wait_sweeps(2);
    simulator.wait_sweeps(2);
    let metrics = compare(&ibsim, &simulator);
    let mut told = 0;
    for Setting { node, port, counter, value } in &settings {
        // Nodes that cannot be reached are in neither.
        if let Some(said) =
            simulator.port(&metrics, &format!("{}_total", counter.metric), node, *port)
        {
            assert_eq!(said, value * counter.scale, "{} of {node}[{port}]", counter.metric);
            told += 1;
        }
    }
    assert!(told >= STILL.len() + MOVING.len());

    // The output of ibnetdiscover has the LIDs of OpenSM: the simulator keeps them.
    let picture = parse(&ibsim.ibsim.tool("ibnetdiscover", &[])).unwrap();
    let hosts = topology::usable_hosts(text);
    let (master, seat) = (&hosts[0], hosts.get(1).unwrap_or(&hosts[0]));
    let [seat, master] = [seat, master].map(|id| id_in(&picture, &net, id));
    let pictured = InSimulator::of(at_rest_from(picture.clone(), &seat, &master), FLAGS);
    let names = |metrics: &Metrics| {
        let of_fabric = |sample: &&Sample| {
            ["infiniband_node_info", "infiniband_port_info"].contains(&sample.name.as_str())
        };
        let samples = metrics.samples.iter().filter(of_fabric);
        samples.map(|sample| (sample.name.clone(), sample.labels.clone())).collect::<BTreeSet<_>>()
    };
    let (there, here) = (names(&ibsim.metrics()), names(&pictured.metrics()));
    let apart: Vec<_> = there.symmetric_difference(&here).collect();
    assert!(apart.is_empty(), "with LIDs: {apart:#?}");
    let (sm_lid, sm_guid) = sminfo(&ibsim.ibsim);
    let story = pictured.simulated.story();
    let world = pictured.simulated.world();
    assert_eq!(world.sm_lid(story.local_ports[0]).0, sm_lid);
    assert_eq!(story.net.port(story.sm_ports[0]).guid.0, sm_guid);
    for (&(guid, number), &lid) in &ibsim.found.lids {
        let node = picture.node_ids().find(|&id| picture.node(id).guid.0 == guid).unwrap();
        let port = picture.port_by_number(node, number).unwrap();
        assert_eq!(world.port(port).lid.0, lid, "{}", picture.label(port));
    }
    drop(world);
    ibsim.end();
}

/// The same net of unknown devices, for which the simulator responds as ibsim.
fn of_unknown_devices(text: &str) -> String {
    let unknown = |line: &str| {
        if line.starts_with("devid=") { "devid=0\n".to_owned() } else { format!("{line}\n") }
    };
    text.lines().map(unknown).collect()
}

#[test]
fn two_level_tree_is_the_same_in_ibsim_and_simulator() {
    assert_same(&topology::fat_tree_2(8, 10, 4, 3));
}

#[test]
fn three_level_tree_is_the_same_in_ibsim_and_simulator() {
    assert_same(&topology::fat_tree_3(4, 8, 2, 2));
}

#[test]
fn unknown_devices_are_the_same_in_ibsim_and_simulator() {
    assert_same(&of_unknown_devices(&topology::fat_tree_2(8, 10, 4, 3)));
}

#[test]
fn ibsim_examples_are_the_same_in_ibsim_and_simulator() {
    for name in topology::EXAMPLES {
        assert_same(&topology::example(name));
    }
}
