//! The samples of a host's devices.

use super::*;
use fabric_observation::host::{DeviceIds, MissingDevice};
use ib_health::counter_status::CounterStatus;
use ib_health::testing::saturated;
use ib_mad::Moment;
use ib_mad::counter::Counter;
use rdma_host::model::PortFabrics;
use rdma_host::model::{HwName, Port, PortKind};
use rdma_host::testing::{port, snapshot};

fn observation(ports: Vec<Port>) -> HostObservation {
    let totals = |port: &Port| HostPortTotals {
        reading: port.reading.clone().assume_totals(),
        counters: CounterStatus::default(),
        reset_offsets: None,
    };
    HostObservation {
        totals: vec![ports.iter().map(totals).collect()],
        snapshot: Some(snapshot("mlx5_0", ports)),
        port_fabrics: PortFabrics { ports: Vec::new(), default: "ib".into() },
        ..HostObservation::default()
    }
}

fn samples(observation: &HostObservation) -> Vec<String> {
    let parts = render(observation);
    let text = parts.iter().map(|part| String::from_utf8_lossy(&part.samples).into_owned());
    text.collect::<String>().lines().map(str::to_owned).collect()
}

const LABELS: &str = r#"{fabric="ib",guid="0x0000000000000abc",port="1",device="mlx5_0""#;

#[test]
fn port_has_the_fabric_families_and_unread_values_no_sample() {
    let mut port = port(1);
    port.reading.set(Counter::XmitData, 100);
    let (mut silent, lines) = (port.clone(), samples(&observation(vec![port])));
    for (name, value) in [("state", "4"), ("width_lanes", "4"), ("transmit_bytes_total", "400")] {
        let line = format!("infiniband_port_{name}{LABELS}}} {value}");
        assert!(lines.contains(&line), "{line} in {lines:#?}");
    }
    assert!(!lines.iter().any(|line| line.contains("receive_bytes")));
    (silent.state, silent.rate, silent.lid) = (None, None, None);
    let lines = samples(&observation(vec![silent]));
    assert!(!lines.iter().any(|line| line.starts_with("infiniband_port_state")), "{lines:#?}");
    assert!(lines.iter().any(|line| line.contains("port_info") && !line.contains(",lid=")));
}

#[test]
fn planes_are_labeled_with_their_number_and_parent() {
    let mut plane = port(3);
    plane.kind = PortKind::Smi;
    let mut observation = observation(vec![plane]);
    let device = &mut observation.snapshot.as_mut().unwrap().devices[0];
    (device.kind, device.parent) = (PortKind::Smi, Some("mlx5_7".into()));
    let lines = samples(&observation);
    let info = |family: &str| lines.iter().find(|line| line.starts_with(family)).unwrap();
    let device = info("infiniband_device_info{");
    assert!(device.contains(r#"kind="smi",parent="mlx5_7","#), "{device}");
    let port = info("infiniband_device_port_info{");
    assert!(port.contains(r#"kind="smi",plane="3","#), "{port}");
}

#[test]
fn counting_families_are_those_of_fabrics() {
    let (mut read, silent) = (port(1), port(2));
    read.reading.set(Counter::SymbolErrors, 65_535);
    let mut observation = observation(vec![read, silent]);
    let mut full = saturated(Counter::SymbolErrors, true);
    full.resets = 3;
    for totals in &mut observation.totals[0] {
        totals.counters = full;
    }
    let lines = samples(&observation);
    let counting: Vec<_> = lines.iter().filter(|line| line.contains("_counters")).collect();
    assert_eq!(
        counting,
        [
            &format!("infiniband_port_saturated_counters{LABELS},counter=\"symbol_errors\"}} 1"),
            &format!("infiniband_port_counters_reset_total{LABELS}}} 3"),
        ]
    );
}

#[test]
fn unknown_driver_counter_name_is_escaped() {
    let mut port = port(1);
    let names = ["Rcvd Out of order packets 2", "a\",b=\"", "refused"];
    port.hw.names = names.map(|file| HwName { file: file.into(), row: None }).into();
    port.hw.values = vec![Some(5), Some(6), None];
    let lines = samples(&observation(vec![port]));
    let of_hw: Vec<_> = lines.iter().filter(|line| line.starts_with("infiniband_hw_")).collect();
    let name = format!("infiniband_hw_unlisted_total{LABELS}");
    assert_eq!(
        of_hw,
        [
            &format!("{name},counter=\"Rcvd Out of order packets 2\"}} 5"),
            &format!("{name},counter=\"a\\\",b=\\\"\"}} 6"),
        ]
    );
}

#[test]
fn netdev_with_unread_state_has_no_up_sample() {
    let mut netdev = Netdev { name: "ib0".into(), ..Netdev::default() };
    let up_of = |netdev: &Netdev| {
        let mut port = port(1);
        port.netdevs = vec![netdev.clone()];
        let lines = samples(&observation(vec![port]));
        let up = lines.into_iter().find(|line| line.starts_with("infiniband_netdev_up{"));
        up.and_then(|line| line.rsplit(' ').next().map(str::to_owned))
    };
    assert_eq!(up_of(&netdev), None);
    for (operstate, up) in [("up", "1"), ("lowerlayerdown", "0")] {
        netdev.operstate = operstate.into();
        assert_eq!(up_of(&netdev).as_deref(), Some(up), "{operstate}");
    }
}

#[test]
fn hanging_device_is_down_without_ports() {
    let mut observation = observation(Vec::new());
    observation.snapshot.as_mut().unwrap().devices[0].is_readable = false;
    let lines = samples(&observation);
    assert!(
        lines.iter().any(|line| line.starts_with("infiniband_device_up{") && line.ends_with("} 0"))
    );
    assert!(!lines.iter().any(|line| line.contains("port=") || line.contains("unreadable")));
}

#[test]
fn missing_device_is_down_and_has_no_other_sample() {
    let mut observation = observation(vec![port(1)]);
    let missing = |name: &str, guid| MissingDevice {
        name: name.into(),
        guid,
        bus_address: String::new(),
        since: Moment::NEVER,
    };
    observation.missing = vec![missing("mlx5_1", Some(Guid(0xdef))), missing("vf", None)];
    let lines = samples(&observation);
    let gone: Vec<_> = lines
        .iter()
        .filter(|line| line.contains("\"mlx5_1\"") || line.contains("\"vf\""))
        .collect();
    let name = "infiniband_device_up";
    assert_eq!(
        gone,
        [
            &format!(r#"{name}{{fabric="ib",guid="0x0000000000000def",device="mlx5_1"}} 0"#),
            &format!(r#"{name}{{fabric="ib",device="vf"}} 0"#),
        ]
    );
}

#[test]
fn read_without_an_expected_device_is_no_success() {
    let read = |devices: usize, answers: bool, missing: usize, problem: bool| {
        let mut observation = observation(Vec::new());
        let snapshot = observation.snapshot.as_mut().unwrap();
        snapshot.devices[0].is_readable = answers;
        snapshot.devices.truncate(devices);
        snapshot.problem = problem.then(|| "Permission denied".to_owned());
        let (name, bus_address) = ("mlx5_1".into(), String::new());
        let gone = MissingDevice { name, guid: None, bus_address, since: Moment::NEVER };
        observation.missing = vec![gone; missing];
        (observation.success(), observation.problem().is_some())
    };
    assert_eq!(read(0, false, 0, false), (true, false), "a host without devices");
    assert_eq!(read(1, true, 1, false), (true, false), "one is missing, and one is present");
    assert_eq!(read(1, true, 0, true), (true, false), "what was open is still read");
    assert_eq!(read(1, false, 0, false), (false, false), "all hang");
    assert_eq!(read(0, false, 1, false), (false, false), "all are missing");
    assert_eq!(read(0, false, 0, true), (false, true), "sysfs is not there");
    assert!(!HostObservation::default().success(), "no read yet");
}

#[test]
fn each_family_is_rendered_once() {
    let mut observation = observation(vec![port(1), port(2)]);
    let snapshot = observation.snapshot.as_ref().unwrap();
    observation.port_events.add_snapshot(snapshot, &DeviceIds::default().assign(snapshot));
    let parts = render(&observation);
    assert!(parts.is_sorted_by_key(|part| crate::metrics::family_order::position(&part.family)));
    let mut names: Vec<_> = parts.iter().map(|part| part.family.name.clone()).collect();
    names.sort();
    names.dedup();
    assert_eq!(names.len(), parts.len());
}
