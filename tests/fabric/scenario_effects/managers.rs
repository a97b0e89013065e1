//! Subnet managers: a change of the master, and a subnet without one.

use ib_sim::scenario::FabricChange;

use crate::scenario_effects::look::{Look, Run};
use test_rig::Simulated;
use test_rig::metrics::Sample;

const STATES: [&str; 4] = ["not_active", "discovering", "standby", "master"];

/// The ports of subnet managers with their states, and the number of changes of the master.
fn managers(run: &Run, look: &Look) -> (Vec<(String, &'static str)>, f64) {
    let id = |guid: &str| {
        let node = run.net().nodes.iter().find(|node| node.guid.to_string() == guid);
        node.unwrap().id.clone()
    };
    let of_managers = |sample: &&Sample| sample.name == "infiniband_subnet_manager_state";
    let all = look.metrics.samples.iter().filter(of_managers);
    let mut told: Vec<(String, &str)> = all
        .map(|sample| {
            let port = format!("{}[{}]", id(&sample.labels["guid"]), sample.labels["port"]);
            (port, STATES[sample.u64() as usize])
        })
        .collect();
    told.sort_unstable();
    for state in STATES {
        let count = told.iter().filter(|(_, of)| *of == state).count();
        let said = look.metrics.get("infiniband_subnet_managers", &[("state", state)]);
        assert_eq!(said, Some(count as f64), "{state}: {told:?}");
    }
    for name in ["priority", "activity_total"] {
        let name = format!("infiniband_subnet_manager_{name}");
        assert_eq!(look.metrics.all(&name).count(), told.len(), "{name}");
    }
    (told, look.of_fabric("infiniband_subnet_manager_changes_total"))
}

/// The subnet managers at a time, such as `host-1[1] master`, and the number of changes of the
/// master.
fn at(run: &Run, seconds: u64) -> (Vec<String>, f64) {
    let (told, changes) = managers(run, &run.at(seconds));
    (told.into_iter().map(|(port, state)| format!("{port} {state}")).collect(), changes)
}

fn are(managers: &[&str], changes: f64) -> (Vec<String>, f64) {
    (managers.iter().map(|it| (*it).to_owned()).collect(), changes)
}

fn power(run: &Run, host: &str, on: bool) {
    let node = run.net().port(run.simulated.port(host)).node;
    run.simulated.act(FabricChange::SetPower { node, on });
}

fn heard_any(look: &Look) -> Option<f64> {
    look.metrics.get("fabric_exporter_collector_success", &[("collector", "subnet")])
}

#[test]
fn new_master_is_one_change_and_the_old_one_standby() {
    let run = Run::of(Simulated::library("new-master"));
    let activity = |look: &Look| look.of_fabric("infiniband_subnet_manager_activity_total");
    assert_eq!(at(&run, 20), are(&["host-1[1] master"], 0.0));
    let early = activity(&run.at(20));
    assert_eq!(at(&run, 50), are(&["host-1[1] master"], 0.0));
    assert!(activity(&run.at(50)) > early, "it works");
    for (seconds, master, standby, changes) in
        [(80, "host-2", "host-1", 1.0), (170, "host-2", "host-1", 1.0)]
    {
        let mut expected = [format!("{master}[1] master"), format!("{standby}[1] standby")];
        expected.sort_unstable();
        assert_eq!(at(&run, seconds), (expected.to_vec(), changes), "{seconds}");
    }
    // The first one again, with other LIDs for all ports.
    for seconds in [200, 290] {
        assert_eq!(at(&run, seconds), are(&["host-1[1] master", "host-2[1] standby"], 2.0));
    }
}

#[test]
fn standby_takes_over_when_the_masters_host_is_gone() {
    let run = Run::of(Simulated::library("new-master"));
    assert_eq!(at(&run, 80), are(&["host-1[1] standby", "host-2[1] master"], 1.0));
    power(&run, "host-2[1]", false);
    for seconds in [100, 120] {
        assert_eq!(at(&run, seconds), are(&["host-1[1] standby"], 1.0), "{seconds}");
    }
    assert_eq!(heard_any(&run.at(120)), Some(1.0));
    // It takes over.
    let port = run.simulated.port("host-1[1]");
    run.simulated.act(FabricChange::SetMaster { port, reassign_lids: false });
    assert_eq!(at(&run, 140), are(&["host-1[1] master"], 2.0));
    power(&run, "host-2[1]", true);
    assert_eq!(at(&run, 170), are(&["host-1[1] master", "host-2[1] standby"], 2.0));
}

#[test]
fn return_of_the_only_manager_is_no_change() {
    let run = Run::of(Simulated::text("master: host-1\ntraffic: {pattern: none}\ntimeline: []"));
    assert_eq!(at(&run, 20), are(&["host-1[1] master"], 0.0));
    let port = run.simulated.port("host-1[1]");
    for (from, gone, back) in [
        (
            20,
            FabricChange::SetSignal { port, up: false },
            FabricChange::SetSignal { port, up: true },
        ),
        (
            100,
            FabricChange::SetPower { node: run.net().port(port).node, on: false },
            FabricChange::SetPower { node: run.net().port(port).node, on: true },
        ),
    ] {
        run.simulated.act(gone);
        assert_eq!(at(&run, from + 20), are(&[], 0.0));
        assert_eq!(heard_any(&run.at(from + 35)), Some(0.0));
        run.simulated.act(back);
        assert_eq!(at(&run, from + 70), are(&["host-1[1] master"], 0.0));
        assert_eq!(heard_any(&run.at(from + 70)), Some(1.0));
    }
}

#[test]
fn subnet_manager_of_a_switch_is_at_port_0() {
    let run = Run::of(Simulated::text(
        "master: leaf-0-1\ntimeline: [new-master: {at: 1m, host: host-2}]",
    ));
    assert_eq!(at(&run, 20), are(&["leaf-0-1[0] master"], 0.0));
    assert_eq!(at(&run, 80), are(&["host-2[1] master", "leaf-0-1[0] standby"], 1.0));
}
