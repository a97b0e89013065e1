//! The host's own devices, family by family: plain text, because it is small.
//!
//! Values of a port that fabrics have, too, use the same family with one more label, `device`.

use std::sync::Arc;

use exposition::{Labelled, Labels, Part, Parts};
use fabric_observation::families::counter_header;
use fabric_observation::host::{HostObservation, HostPortTotals};
use ib_mad::counter::{TABLE as COUNTERS, scaled};
use ib_mad::moment::Anchor;
use ib_mad::{Guid, PortNumber};
use rdma_host::model::{Device, HwReading, Netdev, cm, ethernet, hw_counter};

use super::fabric::{COUNTING, Counted, PORT_STATES};
use super::host_families::{
    DEVICE_UP, DEVICES, EVENTS, HEARD, HW_UNKNOWN, HostPort, LINK_LOSSES, NETDEVS, PORT_VALUES,
    PORTS, PortEvents, cm_family, ethernet_header, hw_header,
};

type HostParts = Parts<Vec<u8>>;

/// Renders the families of the host's devices.
pub fn render(observation: &HostObservation) -> Vec<Part<Vec<u8>>> {
    let Some(snapshot) = &observation.snapshot else { return Vec::new() };
    let mut items = HostItems::default();
    for (index, device) in snapshot.devices.iter().enumerate() {
        let totals = observation.totals.get(index).map(Vec::as_slice);
        items.add(observation, &snapshot.anchor, device, totals.unwrap_or_default());
    }
    // There are no other values of a device that is gone.
    for gone in &observation.missing {
        items.up.push(false, |to| labels(to, observation, &gone.name, None, gone.guid));
    }
    let is_open = |device: &str| observation.monitored.contains(device);
    for ((device, port), stats) in observation.port_events.iter() {
        let events = PortEvents { is_open: is_open(device), is_port: port.is_some(), stats };
        items.events.push(events, |to| labels(to, observation, device, *port, stats.guid));
    }
    let mut parts = Parts::default();
    for (family, value) in PORT_STATES.into_iter().zip(PORT_VALUES) {
        parts.numbers(family, &items.ports, |item| value(item.port));
    }
    for row in COUNTERS {
        parts.numbers(counter_header(row.counter), &items.ports, |item| {
            let total = item.totals.and_then(|totals| totals.get(row.counter));
            total.map(|total| scaled(total, row.scale))
        });
    }
    parts.each_of(COUNTING, &items.ports, |item| item.counted);
    parts.each(DEVICES, &items.devices);
    parts.numbers(DEVICE_UP, &items.up, |up| Some((*up).into()));
    parts.each(PORTS, &items.ports);
    parts.numbers(HEARD, &items.devices, |device| Some(is_open(&device.name).into()));
    parts.numbers(LINK_LOSSES, &items.events, |it| it.is_port.then_some(it.stats.losses));
    parts.each(EVENTS, &items.events);
    items.hw(&mut parts);
    items.cm(&mut parts);
    parts.each(NETDEVS, &items.netdevs);
    items.ethernet(&mut parts);
    parts.finish()
}

/// All items of the host, by kind.
#[derive(Default)]
struct HostItems<'a> {
    devices: Labelled<&'a Device>,
    /// Whether each device responds, including those that are gone.
    up: Labelled<bool>,
    ports: Labelled<HostPort<'a>>,
    events: Labelled<PortEvents<'a>>,
    netdevs: Labelled<&'a Netdev>,
    /// Of ports and of devices.
    hw: Labelled<&'a HwReading>,
}

impl<'a> HostItems<'a> {
    fn add(
        &mut self,
        observation: &HostObservation,
        anchor: &'a Anchor,
        device: &'a Device,
        totals: &'a [HostPortTotals],
    ) {
        let labels = |port| {
            move |to: &mut Labels<'_>| {
                labels(to, observation, &device.name, port, device.info.guid);
            }
        };
        self.devices.push(device, labels(None));
        self.up.push(device.is_readable, labels(None));
        self.hw.push(&device.hw, labels(None));
        for (index, port) in device.ports.iter().enumerate() {
            let labels = labels(Some(port.number));
            // The state of counters that were not read is not known.
            let read = totals.get(index).filter(|_| !port.reading.is_empty());
            let counted = read.map(|totals| Counted { anchor, counting: &totals.counters });
            let totals = read.map(|totals| &totals.reading);
            self.ports.push(HostPort { port, totals, counted }, labels);
            self.hw.push(&port.hw, labels);
            for netdev in &port.netdevs {
                self.netdevs.push(netdev, |to| {
                    labels(to);
                    to.push("netdev", &netdev.name);
                });
            }
        }
    }

    /// The drivers' own counters: those of the table by their rows, the others by their files.
    fn hw(&self, parts: &mut HostParts) {
        let mut known = Vec::new();
        let mut unknown = Vec::new();
        for (labels, hw) in self.hw.iter() {
            for (name, value) in hw.names.iter().zip(&hw.values) {
                let Some(value) = *value else { continue };
                match name.row {
                    Some(row) => known.push((row, labels, value)),
                    None => unknown.push((&name.file, labels, value)),
                }
            }
        }
        // A stable sort: devices stay in their order.
        known.sort_by_key(|&(row, ..)| row);
        for of_row in known.chunk_by(|a, b| a.0 == b.0) {
            let Some(row) = of_row.first().and_then(|first| hw_counter::TABLE.get(first.0)) else {
                continue;
            };
            parts.add(hw_header(row), |family| {
                for (_, labels, value) in of_row {
                    family.samples(labels).value(scaled(*value, row.scale));
                }
            });
        }
        parts.add(HW_UNKNOWN, |family| {
            for (file, labels, value) in unknown {
                family.samples(labels).label("counter", file).value(value);
            }
        });
    }

    /// The connection manager's counters.
    fn cm(&self, parts: &mut HostParts) {
        for (group, row) in cm::GROUPS.iter().enumerate() {
            parts.add(cm_family(row), |family| {
                for (labels, item) in self.ports.iter() {
                    let of_group = item.port.cm.as_ref().and_then(|cm| cm.get(group));
                    let mut samples = family.samples(labels);
                    for (message, value) in cm::MESSAGES.iter().zip(of_group.into_iter().flatten())
                    {
                        samples.label("message", message).value_if_known(*value);
                    }
                }
            });
        }
    }

    fn ethernet(&self, parts: &mut HostParts) {
        let mut all: Vec<_> = (self.netdevs.iter())
            .flat_map(|(labels, netdev)| netdev.ethernet.iter().map(move |value| (labels, value)))
            .collect();
        all.sort_by_key(|(_, value)| value.row);
        for of_row in all.chunk_by(|a, b| a.1.row == b.1.row) {
            let row = of_row.first().and_then(|(_, first)| ethernet::TABLE.get(first.row));
            let Some(row) = row else { continue };
            parts.add(ethernet_header(row), |family| {
                for (labels, value) in of_row {
                    let mut samples = family.samples(labels);
                    if let Some((label, index)) = row.index.label().zip(value.index) {
                        samples.label(label, itoa::Buffer::new().format(index));
                    }
                    if row.micros {
                        samples.micros(value.value);
                    } else {
                        samples.value(value.value);
                    }
                }
            });
        }
    }
}

/// Writes `{fabric="…",guid="…",port="…",device="…"`: without a port for a whole device, and without a GUID
/// that could not be read.
fn labels(
    to: &mut Labels<'_>,
    observation: &HostObservation,
    device: &Arc<str>,
    port: Option<PortNumber>,
    guid: Option<Guid>,
) {
    to.push("fabric", observation.rails.fabric_of(device, port));
    if let Some(guid) = guid {
        to.push("guid", &guid.to_string());
    }
    if let Some(port) = port {
        to.push("port", itoa::Buffer::new().format(port));
    }
    to.push("device", device);
}

#[cfg(test)]
mod tests {
    use super::*;
    use fabric_observation::host::MissingDevice;
    use ib_health::assessment::CounterStatus;
    use ib_health::testing::saturated;
    use ib_mad::counter::Counter;
    use ib_mad::{Moment, Reading};
    use rdma_host::model::Rails;
    use rdma_host::model::{HwName, Port};
    use rdma_host::testing::{port, snapshot};

    fn observation(ports: Vec<Port>) -> HostObservation {
        let totals = |port: &Port| HostPortTotals {
            reading: port.reading.clone().into_totals(Reading::get),
            counters: CounterStatus::default(),
            reset_offsets: None,
        };
        HostObservation {
            totals: vec![ports.iter().map(totals).collect()],
            snapshot: Some(snapshot("mlx5_0", ports)),
            rails: Rails::new(Vec::new(), "ib".into()),
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
        for (name, value) in [("state", "4"), ("width_lanes", "4"), ("transmit_bytes_total", "400")]
        {
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
        let told: Vec<_> = lines.iter().filter(|line| line.contains("_counter_")).collect();
        assert_eq!(
            told,
            [
                &format!("infiniband_port_counter_saturated{LABELS},counter=\"symbol_errors\"}} 1"),
                &format!("infiniband_port_counter_resets_total{LABELS}}} 3"),
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
        let of_hw: Vec<_> =
            lines.iter().filter(|line| line.starts_with("infiniband_hw_")).collect();
        let name = format!("infiniband_hw_counter_total{LABELS}");
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
        let mut netdev = Netdev {
            name: "ib0".into(),
            ipoib: None,
            operstate: String::new(),
            mtu: None,
            carrier_changes: None,
            ethernet: Vec::new(),
        };
        let told = |netdev: &Netdev| {
            let mut port = port(1);
            port.netdevs = vec![netdev.clone()];
            let lines = samples(&observation(vec![port]));
            let up = lines.into_iter().find(|line| line.starts_with("infiniband_netdev_up{"));
            up.and_then(|line| line.rsplit(' ').next().map(str::to_owned))
        };
        assert_eq!(told(&netdev), None);
        for (operstate, up) in [("up", "1"), ("lowerlayerdown", "0")] {
            netdev.operstate = operstate.into();
            assert_eq!(told(&netdev).as_deref(), Some(up), "{operstate}");
        }
    }

    #[test]
    fn hanging_device_is_down_without_ports() {
        let mut observation = observation(Vec::new());
        observation.snapshot.as_mut().unwrap().devices[0].is_readable = false;
        let lines = samples(&observation);
        assert!(
            lines
                .iter()
                .any(|line| line.starts_with("infiniband_device_up{") && line.ends_with("} 0"))
        );
        assert!(!lines.iter().any(|line| line.contains("port=") || line.contains("refused")));
    }

    #[test]
    fn missing_device_is_down_and_has_no_other_sample() {
        let mut observation = observation(vec![port(1)]);
        let missing =
            |name: &str, guid| MissingDevice { name: name.into(), guid, since: Moment::NEVER };
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
    fn look_that_read_no_expected_device_is_no_success() {
        let look = |devices: usize, answers: bool, missing: usize, problem: bool| {
            let mut observation = observation(Vec::new());
            let snapshot = observation.snapshot.as_mut().unwrap();
            snapshot.devices[0].is_readable = answers;
            snapshot.devices.truncate(devices);
            snapshot.problem = problem.then(|| "Permission denied".to_owned());
            let gone = MissingDevice { name: "mlx5_1".into(), guid: None, since: Moment::NEVER };
            observation.missing = vec![gone; missing];
            (observation.success(), observation.problem().is_some())
        };
        assert_eq!(look(0, false, 0, false), (true, false), "a host without devices");
        assert_eq!(look(1, true, 1, false), (true, false), "one is gone, and another is not");
        assert_eq!(look(1, true, 0, true), (true, false), "what was open is still read");
        assert_eq!(look(1, false, 0, false), (false, false), "all hang");
        assert_eq!(look(0, false, 1, false), (false, false), "all are gone");
        assert_eq!(look(0, false, 0, true), (false, true), "sysfs is not there");
        assert!(!HostObservation::default().success(), "nobody looked yet");
    }

    #[test]
    fn each_family_is_rendered_once() {
        let mut observation = observation(vec![port(1), port(2)]);
        observation.port_events.add_snapshot(observation.snapshot.as_ref().unwrap());
        let parts = render(&observation);
        assert!(parts.is_sorted_by_key(|part| crate::metrics::position(&part.header)));
        let mut names: Vec<_> = parts.iter().map(|part| part.header.name.clone()).collect();
        names.sort();
        names.dedup();
        assert_eq!(names.len(), parts.len());
    }
}
