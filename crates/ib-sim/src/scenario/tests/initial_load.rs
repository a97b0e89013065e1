//! Traffic from the start makes no port wait, so that a later wait has a cause.

use std::path::{Path, PathBuf};

use super::super::initial_traffic::link_rate;
use super::super::{FabricChange, Overrides, ResolvedScenario, Scenario};
use crate::load::{Conditions, PortLoad, RoutedFlows};
use crate::net::PortId;

/// The load of all ports by the initial traffic and these changes.
struct Loads<'a> {
    story: &'a ResolvedScenario,
    loads: Vec<PortLoad>,
}

impl<'a> Loads<'a> {
    fn new(story: &'a ResolvedScenario, changes: &[&FabricChange]) -> Loads<'a> {
        let net = &story.net;
        let links: Vec<Option<PortId>> = net.ports.iter().map(|port| port.cable).collect();
        let capacity: Vec<f64> = net.port_ids().map(|port| link_rate(net, port)).collect();
        let mut intake = vec![f64::INFINITY; net.ports.len()];
        let mut bit_errors = vec![0.0; net.ports.len()];
        for change in changes {
            match **change {
                FabricChange::LimitIntake { port, fraction } => {
                    intake[port.0 as usize] = fraction * link_rate(net, port);
                }
                FabricChange::CorruptBits { port, ratio } => bit_errors[port.0 as usize] = ratio,
                ref other => panic!("{other:?}"),
            }
        }
        let flows = story.changes.iter().find_map(|step| match &step.change {
            FabricChange::SetTraffic { name, flows } if name == "traffic" => Some(&flows[..]),
            _ => None,
        });
        let conditions =
            Conditions { capacity: &capacity, intake: &intake, bit_errors: &bit_errors };
        let loads = RoutedFlows::new(net, &links, flows.unwrap_or_default()).load(&conditions);
        Loads { story, loads }
    }

    fn waiting(&self) -> Vec<String> {
        let net = &self.story.net;
        let waits = |port: &PortId| self.loads[port.0 as usize].waiting > 0.0;
        net.port_ids().filter(waits).map(|port| net.label(port)).collect()
    }

    fn at(&self, label: &str) -> PortLoad {
        let net = &self.story.net;
        self.loads[net.port_ids().find(|port| net.label(*port) == label).unwrap().0 as usize]
    }
}

fn resolved(text: &str) -> ResolvedScenario {
    Scenario::parse("x.yml", text).unwrap().resolve(&Overrides::default()).unwrap()
}

fn library() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/scenarios")
}

#[test]
fn default_traffic_causes_no_waits() {
    for fabric in [
        "fat-tree: {}",
        "fat-tree: {hosts: 100}",
        "fat-tree: {hosts: 36, down: 9, up: 6}",
        "fat-tree: {levels: 3, hosts: 1000}",
        "fat-tree: {hosts: 24, planes: 2, ports: 2}",
        "dragonfly-plus: {}",
        "back-to-back: {}",
        "xdr: {}",
        "xdr: {hosts: 7, fnm1-hosts: 2}",
        "xdr: {hosts: 2, prism: true, two-plane-hosts: 2, ordinary-hosts: 2}",
    ] {
        let story = resolved(&format!("fabric: {{{fabric}}}"));
        let loads = Loads::new(&story, &[]);
        assert!(loads.loads.iter().any(|load| load.xmit_packets > 0.0), "{fabric}");
        assert_eq!(loads.waiting(), [""; 0], "{fabric}");
    }
}

#[test]
fn scenarios_of_the_library_start_without_waits() {
    let files = std::fs::read_dir(library()).unwrap().map(|file| file.unwrap().path());
    for path in files.filter(|path| !path.ends_with("congestion.yml")) {
        let story = Scenario::read(&path).unwrap().resolve(&Overrides::default()).unwrap();
        assert_eq!(Loads::new(&story, &[]).waiting(), [""; 0], "{}", path.display());
    }
}

#[test]
fn bad_cable_affects_the_host_that_the_file_names() {
    let scenario = Scenario::read(&library().join("bad-cable.yml")).unwrap();
    let story = scenario.resolve(&Overrides::default()).unwrap();
    let is_bad = |change: &&FabricChange| matches!(change, FabricChange::CorruptBits { .. });
    let bad = story.changes.iter().map(|step| &step.change).find(is_bad).unwrap();
    let loads = Loads::new(&story, &[bad]);
    let marked = loads.loads.iter().filter(|load| load.rcv_remote_physical_errors > 0.0).count();
    assert!(loads.at("host-8[1]").rcv_remote_physical_errors > 0.0);
    assert_eq!(marked, 1);
}

#[test]
fn comments_of_the_demo_are_true() {
    let story = Scenario::demo(None).unwrap().resolve(&Overrides::default()).unwrap();
    assert_eq!(Loads::new(&story, &[]).waiting(), [""; 0]);
    let the = |is: fn(&FabricChange) -> bool| {
        story.changes.iter().map(|step| &step.change).find(|change| is(change)).unwrap()
    };
    // The bad cable: packets of two flows, of which each receiver counts half.
    let corrupt = the(|change| matches!(change, FabricChange::CorruptBits { .. }));
    let loads = Loads::new(&story, &[corrupt]);
    let (hit, marked) = (loads.at("leaf-0-1[10]"), ["host-10[1]", "host-16[1]"]);
    assert!((3.1..3.3).contains(&hit.rcv_errors), "{hit:?}");
    for marked in marked.map(|label| loads.at(label)) {
        assert!((1.5..1.7).contains(&marked.rcv_remote_physical_errors), "{marked:?}");
    }
    let FabricChange::CorruptBits { port, ratio } = *corrupt else { panic!("a bad cable") };
    assert!((ratio * 8.0 * link_rate(&story.net, port) - 8.0).abs() < 1e-6, "symbols a second");
    // The slow receiver: the root, the host that sends to it, and others that do not.
    let loads =
        Loads::new(&story, &[the(|change| matches!(change, FabricChange::LimitIntake { .. }))]);
    let waits = |label| loads.at(label).waiting;
    for host in ["host-6[1]", "host-12[1]", "gpu-0-mlx5_0[1]", "gpu-0-mlx5_4[1]"] {
        assert!(waits("leaf-0-3[2]") > waits(host) && waits(host) > 0.0, "{host}");
    }
    assert_eq!(loads.waiting().len(), 9, "{:?}", loads.waiting());
}
