//! From the text to the resolved scenario, on a small fabric.

mod any_text;
mod entries;
mod fabric;
mod initial_load;
mod mistakes;
mod order;

use std::time::Duration;

use super::{FabricChange, Overrides, ResolvedScenario, Scenario, TimedChange};
use crate::net::Net;
use ib_mad::node::NodeKind;

/// Two leaves (`leaf-0-0`, `leaf-0-1`) of 8 ports each with `host-0` to `host-5`, and
/// a spine, with two cables to each.
const TREE: &str = "{fat-tree: {hosts: 6, radix: 8, down: 4, up: 2}}";

/// The net that a scenario's `fabric` describes.
pub(super) fn net(fabric: &str) -> Net {
    let scenario = Scenario::parse("x.yml", &format!("fabric: {fabric}")).unwrap();
    scenario.net(&Overrides::default()).unwrap()
}

fn resolve_on(text: &str, net: Net, overrides: &Overrides) -> Result<ResolvedScenario, String> {
    Scenario::parse("x.yml", text)
        .and_then(|scenario| {
            scenario.source(overrides)?;
            scenario.resolve_on(net, overrides)
        })
        .map_err(|error| error.to_string())
}

fn resolve(text: &str) -> Result<ResolvedScenario, String> {
    resolve_on(text, net(TREE), &Overrides::default())
}

/// The resolved scenario of a timeline without traffic.
fn timeline(entries: &str) -> ResolvedScenario {
    resolve(&format!("traffic: {{pattern: none}}\ntimeline:\n{entries}")).unwrap()
}

/// The changes in short: the time, and the change with labels instead of ids.
fn short(story: &ResolvedScenario) -> Vec<String> {
    let label = |port| story.net.label(port);
    story
        .changes
        .iter()
        .map(|step| {
            let shown = match &step.change {
                FabricChange::CorruptBits { port, ratio } => {
                    format!("corrupt {} {ratio:e}", label(*port))
                }
                FabricChange::SetDirt { port, dirt } => {
                    let dirt = dirt.map(|it| format!("{} {:e} {}", it.lane, it.ratio, it.light));
                    format!("dirt {} {}", label(*port), dirt.unwrap_or_default())
                }
                FabricChange::SetModuleTemperature { port, degrees } => {
                    format!("module {} {degrees:?}", label(*port))
                }
                FabricChange::SetModuleReport { port, report } => {
                    format!("module {} {}", label(*port), report.label())
                }
                FabricChange::SetDisabled { port, disabled } => {
                    format!("disabled {} {disabled}", label(*port))
                }
                FabricChange::SwapCable { port } => format!("swap {}", label(*port)),
                FabricChange::SetRegisters { node, behavior } => {
                    format!("registers {} {}", story.net.node(*node).id, behavior.label())
                }
                FabricChange::SetStateTable { nodes, behavior } => {
                    format!("state-table {} {}", nodes.len(), behavior.label())
                }
                FabricChange::SetFrontPanel { nodes, behavior } => {
                    format!("front-panel {} {}", nodes.len(), behavior.label())
                }
                FabricChange::SetVsKey { nodes, key } => format!("vs-key {} {key:#x}", nodes.len()),
                FabricChange::SetSignal { port, up } => format!("signal {} {up}", label(*port)),
                FabricChange::Retrain { port } => format!("retrain {}", label(*port)),
                FabricChange::LimitLink { port, width, speed } => {
                    format!("limit {} {width:?} {speed:?}", label(*port))
                }
                FabricChange::LimitIntake { port, fraction } => {
                    format!("intake {} {fraction}", label(*port))
                }
                FabricChange::SetPower { node, on } => {
                    format!("power {} {on}", story.net.node(*node).id)
                }
                FabricChange::ClearCounters { ports } => format!("clear {}", ports.len()),
                FabricChange::SetCounter { port, counter, value } => {
                    format!("set {} {counter:?} {value}", label(*port))
                }
                FabricChange::AddToCounter { port, counter, count } => {
                    format!("add {} {counter:?} {count}", label(*port))
                }
                FabricChange::SetAgents { node, behavior } => {
                    format!("agents {} {behavior:?}", story.net.node(*node).id)
                }
                FabricChange::SetMKey { nodes, m_key, level } => {
                    format!("protect {} {:#x} {level}", nodes.len(), m_key.0)
                }
                FabricChange::SetMembership { nodes, full } => {
                    format!("membership {} {full}", nodes.len())
                }
                FabricChange::SetDelivery(way) => format!("way {}", way.loss),
                FabricChange::MoveCable { from, to } => {
                    format!("move {} {}", label(*from), label(*to))
                }
                FabricChange::SetMaster { port, reassign_lids } => {
                    format!("master {} {reassign_lids}", label(*port))
                }
                FabricChange::SetTraffic { name, flows } => {
                    format!("traffic {name} {}", flows.len())
                }
            };
            format!("{} {shown}", step.at.as_millis())
        })
        .collect()
}

#[test]
fn empty_scenario_has_the_defaults() {
    let story = resolve("").unwrap();
    assert_eq!(short(&story), ["0 traffic traffic 6"]);
    let labels = |ports: &[_]| ports.iter().map(|port| story.net.label(*port)).collect::<Vec<_>>();
    assert_eq!(
        (labels(&story.local_ports), labels(&story.sm_ports)),
        (vec!["host-0[1]".into()], vec!["host-1[1]".into()])
    );
    assert_eq!((story.seed, story.descriptions.len()), (1, 0));
    assert_eq!(story.delivery.round_trip, Duration::from_micros(20));
    assert_eq!(story.delivery.per_hop, Duration::from_micros(1));
    assert_eq!(story.delivery.jitter, Duration::from_micros(10));
    let FabricChange::SetTraffic { flows, .. } = &story.changes[0].change else {
        panic!("traffic")
    };
    // 20% of NDR on four lanes.
    assert!(flows.iter().all(|flow| (flow.offered - 10e9).abs() < 1.0 && flow.packet == 4096));
}

#[test]
fn seat_master_delivery_and_traffic_are_read() {
    let story = resolve(
        "seat: 'host-2[1]'\nmaster: leaf-0-1\nseed: 9\n\
         way: {round-trip: 1ms, per-hop: 2us, jitter: 0, loss: 0.5%}\n\
         traffic: {pattern: all-to-one, to: host-3, load: 0.5, packet: 256}\n",
    )
    .unwrap();
    assert_eq!(story.net.label(story.local_ports[0]), "host-2[1]");
    assert_eq!(story.net.label(story.sm_ports[0]), "leaf-0-1[0]");
    assert_eq!(story.delivery.round_trip, Duration::from_millis(1));
    assert_eq!(
        (story.seed, story.delivery.jitter, story.delivery.loss),
        (9, Duration::ZERO, 0.005)
    );
    let FabricChange::SetTraffic { flows, .. } = &story.changes[0].change else {
        panic!("traffic")
    };
    assert!(flows.iter().all(|flow| story.net.label(flow.to) == "host-3[1]"));
    assert!(flows.iter().all(|flow| flow.packet == 256 && (flow.offered - 25e9).abs() < 1.0));
    assert_eq!(flows.len(), 5);
}

#[test]
fn each_plane_has_a_local_port_and_a_master() {
    let planes = || net("{fat-tree: {hosts: 4, radix: 4, down: 2, up: 2, planes: 2}}");
    for (text, seats, masters) in [
        ("", ["host-0-mlx5_0[1]", "host-0-mlx5_1[1]"], ["host-1-mlx5_0[1]", "host-1-mlx5_1[1]"]),
        (
            "seat: host-2-mlx5_1\nmaster: host-3-mlx5_0",
            ["host-2-mlx5_1[1]", "host-2-mlx5_0[1]"],
            ["host-3-mlx5_1[1]", "host-3-mlx5_0[1]"],
        ),
    ] {
        let story = resolve_on(text, planes(), &Overrides::default()).unwrap();
        let labels =
            |ports: &[_]| ports.iter().map(|port| story.net.label(*port)).collect::<Vec<_>>();
        assert_eq!(
            (labels(&story.local_ports), labels(&story.sm_ports)),
            (seats.map(String::from).to_vec(), masters.map(String::from).to_vec())
        );
    }
    // A host goes off with all of its adapters, and is the master of all its planes.
    let text = "traffic: {pattern: none}\ntimeline:\n- reboot: {node: host-2-mlx5_0, down: 1s}\n- new-master: {at: 3s, host: host-3-mlx5_0}\n";
    let shown = short(&resolve_on(text, planes(), &Overrides::default()).unwrap());
    assert_eq!(
        shown,
        [
            "0 power host-2-mlx5_0 false",
            "0 power host-2-mlx5_1 false",
            "1000 power host-2-mlx5_0 true",
            "1000 power host-2-mlx5_1 true",
            "3000 master host-3-mlx5_0[1] false",
            "3000 master host-3-mlx5_1[1] false"
        ]
    );
}

#[test]
fn same_seed_gives_the_same_changes() {
    let text = "timeline: [burst: {from: 2, to: host-0, load: 50%}]";
    let (one, other) = (resolve(text).unwrap(), resolve(text).unwrap());
    assert_eq!((one.changes, one.descriptions), (other.changes, other.descriptions));
    let other = resolve(&format!("seed: 2\n{text}")).unwrap();
    assert_ne!(resolve(text).unwrap().changes, other.changes);
}

fn hosts(story: &ResolvedScenario) -> usize {
    story.net.nodes.iter().filter(|node| node.kind == NodeKind::Ca).count()
}

#[test]
fn override_changes_the_number_of_hosts() {
    let scenario = Scenario::parse("x.yml", "fabric: {fat-tree: {hosts: 20}}").unwrap();
    for (wanted, found) in [(None, 20), (Some(9), 9)] {
        let overrides = Overrides { hosts: wanted, ..Overrides::default() };
        assert_eq!(hosts(&scenario.resolve(&overrides).unwrap()), found);
    }
}

#[test]
fn more_hosts_need_larger_switches() {
    for (text, wanted, leaf, ports, spines) in [
        ("{hosts: 36, radix: 16, down: 9, up: 6}", 500, "leaf-0-55", 56, 6),
        ("{}", 500, "leaf-0-62", 63, 8),
        ("{}", 30, "leaf-0-3", 16, 2),
        ("{hosts: 4, radix: 4, ports: 2}", 100, "leaf-0-99", 100, 2),
    ] {
        let scenario = Scenario::parse("x.yml", &format!("fabric: {{fat-tree: {text}}}")).unwrap();
        let overrides = Overrides { hosts: Some(wanted), ..Overrides::default() };
        let story = scenario.resolve(&overrides).unwrap();
        assert_eq!(hosts(&story), wanted as usize);
        let node = |id: &str| story.net.nodes.iter().find(|node| node.id == id).unwrap();
        assert_eq!(node(leaf).port_count, ports, "{text}");
        let is_spine = |id: &str| id.starts_with("spine-");
        let found = story.net.nodes.iter().filter(|node| is_spine(&node.id)).count();
        assert_eq!(found, spines, "{text}");
    }
}

#[test]
fn demo_takes_five_minutes() {
    let demo = Scenario::demo(None).unwrap();
    assert!(!demo.about().is_empty());
    let story = demo.resolve(&Overrides::default()).unwrap();
    assert_eq!(hosts(&story), 36 + 8);
    assert_eq!(story.descriptions.len(), 6, "{:?}", story.descriptions);
    assert!(
        story.descriptions.iter().all(|(at, _)| at.as_secs() < 300),
        "{:?}",
        story.descriptions
    );
    assert!(story.changes.is_sorted_by_key(|change| change.at));
    let host = story.own_host.unwrap();
    let ports: Vec<String> = host.ports.iter().map(|port| story.net.label(*port)).collect();
    assert_eq!((ports.len(), ports[0].as_str()), (8, "gpu-0-mlx5_0[1]"));
    assert_eq!(host.roce.as_deref(), Some("mlx5_8"));
}

#[test]
fn demo_has_its_faults_on_a_fabric_of_any_size() {
    let usual = Scenario::demo(None).unwrap().resolve(&Overrides::default()).unwrap();
    let times = |story: &ResolvedScenario| -> Vec<_> {
        story.descriptions.iter().map(|(at, _)| *at).collect()
    };
    let sizes = (2..=40).chain([100, 576, 1920, 1921, 5000]);
    for wanted in sizes {
        let demo = Scenario::demo(Some(wanted)).unwrap_or_else(|error| panic!("{wanted}: {error}"));
        let story = demo.resolve(&Overrides::default());
        let story = story.unwrap_or_else(|error| panic!("{wanted}: {error}"));
        assert_eq!(hosts(&story), wanted as usize + 8);
        assert_eq!(times(&story), times(&usual), "{wanted}");
        let is_level = |id: &str, level: &str| id.starts_with(level);
        let top = if wanted > 1920 { "core-" } else { "spine-" };
        assert!(story.net.nodes.iter().any(|node| is_level(&node.id, top)), "{wanted}");
        let ports = story.net.nodes.iter().map(|node| node.port_count).max().unwrap();
        assert!(ports <= 64, "{wanted}: a switch of {ports} ports");
        // The bad cable is one between switches.
        let bad = story.changes.iter().find_map(|step| match step.change {
            FabricChange::CorruptBits { port, .. } => Some(port),
            _ => None,
        });
        let far = story.net.port(bad.unwrap()).cable.unwrap();
        assert_eq!(story.net.node_of(far).kind, NodeKind::Switch, "{wanted}");
        // Its past is about other links, and has no traffic of its own.
        let past = Scenario::demo_past(Some(wanted)).unwrap();
        let past = past.resolve_on(story.net.clone(), &Overrides::default());
        let past = past.unwrap_or_else(|error| panic!("{wanted}: {error}"));
        let swapped = past.changes.iter().find_map(|step| match step.change {
            FabricChange::SwapCable { port } => Some(port),
            _ => None,
        });
        let ends = [swapped.unwrap(), past.net.port(swapped.unwrap()).cable.unwrap()];
        assert!(ends.iter().all(|end| past.net.node_of(*end).kind == NodeKind::Switch), "{wanted}");
        assert!(!ends.contains(&bad.unwrap()), "{wanted}");
        let has_traffic =
            |step: &TimedChange| matches!(step.change, FabricChange::SetTraffic { .. });
        assert!(!past.changes.iter().any(has_traffic), "{wanted}");
    }
    assert_eq!(
        format!(
            "{:?}",
            Scenario::demo(Some(36)).unwrap().resolve(&Overrides::default()).unwrap().net
        ),
        format!("{:?}", usual.net),
    );
    for wanted in [0, 1, 30_001, u32::MAX] {
        let error = Scenario::demo(Some(wanted)).map(|_| ()).unwrap_err().to_string();
        assert_eq!(error, format!("--hosts: {wanted} is not between 2 and 30000"));
    }
}

#[test]
fn own_host_is_checked() {
    for (text, says) in [
        ("{roce: ''}", "own-host: roce: \"\" is not the name of a device"),
        ("{roce: ../x}", "own-host: roce: \"../x\" is not the name of a device, such as mlx5_8"),
        ("{pfc-storm: 2m}", "own-host: pfc-storm: needs a RoCE device (roce)"),
        ("{storm: 2m}", "own-host.storm: unknown key (did you mean \"pfc-storm\"?)"),
    ] {
        let parsed = Scenario::parse("x.yml", &format!("seed: 1\nown-host: {text}"));
        let error = parsed.and_then(|it| it.resolve(&Overrides::default())).unwrap_err();
        assert!(error.to_string().starts_with(&format!("x.yml: line 2: {says}")), "{error}");
    }
    let planes = "fabric: {fat-tree: {planes: 2}}\nown-host: {}";
    let error = Scenario::parse("x.yml", planes).unwrap().resolve(&Overrides::default());
    let says = "x.yml: line 2: own-host: valid only for a fabric with one plane";
    assert_eq!(error.unwrap_err().to_string(), says);
    // The times are sped up.
    let scenario = Scenario::parse("x.yml", "own-host: {roce: mlx5_1, pfc-storm: 2m}").unwrap();
    let faster = Overrides { speedup: 4.0, ..Overrides::default() };
    let story = scenario.resolve(&faster).unwrap();
    let host = story.own_host.unwrap();
    assert_eq!((host.pfc_storm, host.ports.len()), (Some(Duration::from_secs(30)), 1));
    assert_eq!(story.descriptions[0].0, Duration::from_secs(30));
}
