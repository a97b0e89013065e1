//! Verdicts from what devices report of lanes and modules, and the reasons of link downs.

use std::time::Duration;

use ib_health::verdict::Repair;
use ib_health::{Reason, Verdict, explain};
use ib_mad::register::{Side, text};
use ib_mad::{Counter, PortKey};

use crate::verdicts::watch::{label, link, summary};
use test_rig::Simulated;

fn minutes(count: u64) -> Duration {
    Duration::from_secs(60 * count + 5)
}

#[test]
fn raw_ber_drift_is_found_before_the_first_uncorrectable_error() {
    let simulated = Simulated::text(
        "timeline:\n\
         - dirty-connector: {at: 10m, into: 'spine-0[2]', lane: 2, ratio: 4e-6, light: 60%, for: 10m}\n\
         - dirty-connector: {at: 20m, into: 'spine-0[2]', lane: 2, ratio: 2e-5, light: 40%, for: 10m}\n\
         - dirty-connector: {at: 30m, into: 'spine-0[2]', lane: 2, ratio: 6e-5, light: 30%}\n",
    );
    // A quarter of the ratio on the lane is that of the link: at most half of the limit of 1e-5.
    simulated.run_to(minutes(29));
    assert_eq!(link(&simulated.observation(), "spine-0[2]").unwrap().verdict, Verdict::Ok);
    simulated.run_to(minutes(32));
    let observation = simulated.observation();
    let found = link(&observation, "spine-0[2]").unwrap();
    assert_eq!(found.verdict, Verdict::Watch, "{}", summary(found));
    assert_eq!(found.repair, Some(Repair::Reseat));
    let snapshot = observation.snapshot.as_ref().unwrap();
    let says = explain::reason(Reason::PreFec, found, &observation.assessment, snapshot);
    assert!(says.contains("spine-0 port 2 receives pre-FEC BER 1.5e-5"), "{says}");
    assert!(says.contains("of the errors on lane 2"), "{says}");
    let count = |port, counter| snapshot.reading(port).unwrap().get(counter).unwrap_or(0);
    for port in found.link.ports() {
        for counter in [Counter::FecUncorrectableBlocks, Counter::SymbolErrors, Counter::RcvErrors]
        {
            assert_eq!(count(port, counter), 0, "{counter:?}");
        }
    }
}

#[test]
fn module_out_of_its_limits_is_degraded_after_two_readings() {
    let simulated = Simulated::text(
        "timeline:\n\
         - hot-module: {at: 20m, port: 'spine-0[3]', celsius: 78, for: 20m}\n\
         - dirty-connector: {at: 20m, into: 'spine-0[2]', lane: 1, ratio: 1e-9, light: 5%}\n",
    );
    simulated.run_to(minutes(20));
    for end in ["spine-0[2]", "spine-0[3]"] {
        assert_eq!(link(&simulated.observation(), end).unwrap().verdict, Verdict::Ok);
    }
    // Read every 10 minutes, and again after one.
    simulated.run_to(minutes(32));
    let observation = simulated.observation();
    let snapshot = observation.snapshot.as_ref().unwrap();
    for (end, reason, repair, says) in [
        (
            "spine-0[3]",
            Reason::ModuleTemperature,
            Repair::CheckCooling,
            "spine-0 port 3 has a module at 78 °C (its alarm threshold: 75 °C)",
        ),
        (
            "spine-0[2]",
            Reason::RxPower,
            Repair::Reseat,
            "spine-0 port 2 receives -15.1 dBm on lane 1 (alarm threshold of the module: -10.0 dBm)",
        ),
    ] {
        let found = link(&observation, end).unwrap();
        assert_eq!(found.verdict, Verdict::Watch, "{end}: {}", summary(found));
        assert_eq!(found.repair, Some(repair));
        let evidence = explain::reason(reason, found, &observation.assessment, snapshot);
        assert_eq!(evidence, says);
    }
    let degraded = observation.assessment.links.iter().filter(|it| it.verdict >= Verdict::Watch);
    assert_eq!(degraded.count(), 2);
    simulated.run_to(minutes(57));
    let observation = simulated.observation();
    assert_eq!(link(&observation, "spine-0[3]").unwrap().verdict, Verdict::Ok);
    assert_eq!(link(&observation, "spine-0[2]").unwrap().verdict, Verdict::Watch);
}

#[test]
fn link_down_has_the_reason_of_its_device() {
    let simulated = Simulated::text(
        "timeline:\n\
         - reboot: {at: 15m, node: host-3, down: 90s}\n\
         - flap: {at: 15m, link: 'spine-0[2]', down: 3s}\n",
    );
    simulated.run_to(minutes(14));
    let observation = simulated.observation();
    let hardware = &observation.snapshot.as_ref().unwrap().hardware;
    assert!(hardware.ports().all(|(_, port)| port.link_down.is_none()), "no link went down");
    simulated.run_to(minutes(18));
    let observation = simulated.observation();
    let snapshot = observation.snapshot.as_ref().unwrap();
    let reason = |end: &str| {
        let found = link(&observation, end).unwrap().link;
        let port = found.ports().into_iter().find(|port| {
            snapshot.fabric.node_of(*port).is_switch()
                && (label(&snapshot.fabric, *port) == end || !end.starts_with("spine"))
        });
        let hardware = snapshot.hardware.port(snapshot.fabric.port_key(port.unwrap())).unwrap();
        let read = hardware.link_down.as_ref().unwrap();
        (read.value.side(), read.value.reason().unwrap())
    };
    assert_eq!(reason("host-3[1]"), (Some(Side::Remote), "device reset".into()));
    assert_eq!(reason("spine-0[2]"), (Some(Side::Local), "block lock lost".into()));
}

#[test]
fn swapped_cable_has_another_serial_number_within_a_minute() {
    let simulated =
        Simulated::text("timeline: [swap-cable: {at: 15m, link: 'spine-0[2]', down: 20s}]");
    let serials = |simulated: &Simulated| {
        let observation = simulated.observation();
        let snapshot = observation.snapshot.as_ref().unwrap();
        let found = link(&observation, "spine-0[2]").unwrap().link;
        found.ports().map(|port| {
            let hardware = snapshot.hardware.port(snapshot.fabric.port_key(port));
            text(&hardware.unwrap().plugged().unwrap().serial_number)
        })
    };
    simulated.run_to(minutes(14));
    let [a, b] = serials(&simulated);
    assert_eq!(a, b, "a cable has one serial number");
    simulated.run_to(minutes(16));
    let [c, d] = serials(&simulated);
    assert!(c == d && c != a, "{a} {c} {d}");
}

#[test]
fn hung_module_pages_do_not_delay_other_devices() {
    let simulated = Simulated::text(
        "timeline:\n\
         - registers: {node: leaf-0-0, behavior: hung}\n\
         - registers: {node: leaf-0-1, behavior: slow}\n\
         - vs-key: {node: leaf-0-2, key: 0x1234}\n",
    );
    simulated.run_to(minutes(15));
    let observation = simulated.observation();
    let snapshot = observation.snapshot.as_ref().unwrap();
    let fabric = &snapshot.fabric;
    let mut counts = [0; 2];
    for port in fabric.port_indexes() {
        let name = &*fabric.node_of(port).name;
        let is_linked = fabric.port(port).peer.is_some() && fabric.port(port).number != 0;
        if !is_linked || ["leaf-0-0", "leaf-0-1", "leaf-0-2"].contains(&name) {
            continue;
        }
        let hardware = snapshot.hardware.port(fabric.port_key(port));
        let hardware = hardware.unwrap_or_else(|| panic!("{}", label(fabric, port)));
        counts[0] += usize::from(hardware.physical.is_some());
        counts[1] += usize::from(hardware.plugged().is_some());
        let physical = hardware.physical.as_ref().unwrap();
        let age = snapshot.ended.since(physical.at);
        assert!(age < Duration::from_secs(90), "{}: {age:?}", label(fabric, port));
    }
    assert!(counts[0] > 40 && counts[1] == counts[0], "{counts:?}");
    assert_eq!(observation.stats.failed_ports, 0);
    let sweeps = observation.stats.sweeps;
    assert!((60..=61).contains(&sweeps), "{sweeps} sweeps in 15 minutes");
}

#[test]
fn lanes_and_histograms_are_exported_if_wanted() {
    use fabric_exporter::config::options::FabricOptions;
    use ib_sim::scenario::{Overrides, Scenario};

    const ERRORS: &str = "infiniband_port_lane_raw_errors_total";
    const BLOCKS: &str = "infiniband_port_fec_bin_blocks_total";

    let text = "timeline:\n\
                - dirty-connector: {at: 1m, into: 'spine-0[2]', lane: 2, ratio: 6e-5}\n\
                - hot-module: {at: 1m, port: 'spine-0[3]', celsius: 78}\n";
    let started = |lanes: bool| {
        let story = Scenario::parse("lanes", text).unwrap().resolve(&Overrides::default()).unwrap();
        let options = FabricOptions { lanes: Some(lanes), ..FabricOptions::default() };
        let simulated = Simulated::with(story, options);
        simulated.run_to(minutes(5));
        simulated
    };
    let simulated = started(true);
    let observation = simulated.observation();
    let snapshot = observation.snapshot.as_ref().unwrap();
    let found = link(&observation, "spine-0[2]").unwrap().link;
    let is_spine = |port: &ib_fabric::PortIndex| snapshot.fabric.node_of(*port).name == "spine-0";
    let PortKey { guid, number: port } =
        snapshot.fabric.port_key(found.ports().into_iter().find(is_spine).unwrap());
    let (guid, port) = (guid.to_string(), port.to_string());
    let now = simulated.metrics();
    let of = |name: &str, label: &'static str, at: usize| {
        now.get_u64(name, &[("guid", &guid), ("port", &port), (label, &at.to_string())])
    };
    let lanes: Vec<u64> = (0..4).map(|lane| of(ERRORS, "lane", lane).unwrap()).collect();
    assert!((0..4).all(|lane| lane == 2 || lanes[lane] * 100 < lanes[2]), "{lanes:?}");
    assert_eq!(of(ERRORS, "lane", 4), None, "a link of four lanes");
    let bins: Vec<u64> = (0..16).map(|bin| of(BLOCKS, "bin", bin).unwrap()).collect();
    assert!(bins[0] > bins[1] && bins[1] > bins[2] && bins[2] > 0 && bins[3] == 0, "{bins:?}");
    let of_module = |module| {
        let labels = [("guid", &*guid), ("module", module)];
        now.get("infiniband_node_module_temperature_celsius", &labels)
    };
    assert_eq!(of_module("3"), Some(78.0));
    let supplies = now.all("infiniband_node_power_supply_info");
    let serials: Vec<&str> = supplies
        .filter(|(labels, _)| labels["guid"] == guid)
        .map(|(labels, _)| &*labels["serial_number"])
        .collect();
    assert!(serials.len() == 2 && serials[0] != serials[1], "{serials:?}");

    let now = started(false).metrics();
    assert_eq!((now.all(ERRORS).count(), now.all(BLOCKS).count()), (0, 0));
}
