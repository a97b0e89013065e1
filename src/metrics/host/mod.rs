//! What the host sees of its own devices, family by family: plain text, for it is small.
//!
//! What the fabric tells of a port, too, has the fabric's family and one label more, `device`.

mod families;
mod parts;

pub use families::{ethernet_head, families, hw_head};

use std::sync::Arc;

use fabric_observation::host::{HostObservation, HostPortTotals};
use ib_mad::Reading;
use ib_mad::counter::{TABLE as COUNTERS, scaled};
use ib_mad::moment::Anchor;
use ib_mad::port_event::PortEventKind;
use ib_mad::{Guid, PortNumber};
use rdma_host::model::{Device, HwReading, Netdev, Port, cm, ethernet, hw_counter};

use super::fabrics::{PORT_STATES, counter_head};
use super::family::push_label;
use super::findings::{COUNTING, Counted};
use super::line::{Line, With};
use super::part::{Part, Place};
use families::{
    DEVICE_UP, DEVICES, EVENT_TIMES, EVENTS, HEARD, HW_UNKNOWN, LINK_LOSSES, NETDEVS, PORT_VALUES,
    PORTS, cm_family,
};
use parts::Parts;

/// Renders what the host sees; families without samples are left out.
pub fn render(observation: &HostObservation) -> Vec<Part<String>> {
    let Some(snapshot) = &observation.snapshot else { return Vec::new() };
    let mut labelled = Labelled::default();
    for (index, device) in snapshot.devices.iter().enumerate() {
        let totals = observation.totals.get(index).map(Vec::as_slice);
        labelled.add(observation, &snapshot.anchor, device, totals.unwrap_or_default());
    }
    let mut parts = Parts::default();
    labelled.states_and_counters(&mut parts);
    labelled.counting(&mut parts);
    parts.each(DEVICES, &labelled.devices);
    parts.host(DEVICE_UP.into(), |text, name| {
        for (labels, device) in &labelled.devices {
            Line::new(text, name, labels).value(device.answers.into());
        }
        // Of a device that is gone nothing else is known.
        for gone in &observation.missing {
            let labels = labels(observation, &gone.name, None, gone.guid);
            Line::new(text, name, &labels).value(0);
        }
    });
    parts.each(PORTS, &labelled.ports);
    events(observation, &labelled.devices, &mut parts);
    labelled.hw(&mut parts);
    labelled.cm(&mut parts);
    parts.each(NETDEVS, &labelled.netdevs);
    labelled.ethernet(&mut parts);
    parts.done
}

/// All that is in a snapshot, one list for each kind of thing.
#[derive(Default)]
struct Labelled<'a> {
    devices: With<'a, Device>,
    ports: With<'a, Port>,
    /// The totals of the ports, in the same order, and the state of their counters.
    totals: Vec<Option<&'a Reading>>,
    counted: Vec<Counted<'a>>,
    netdevs: With<'a, Netdev>,
    /// Of ports and of devices.
    hw: With<'a, HwReading>,
}

impl<'a> Labelled<'a> {
    fn add(
        &mut self,
        observation: &HostObservation,
        anchor: &'a Anchor,
        device: &'a Device,
        totals: &'a [HostPortTotals],
    ) {
        let labels = |port| labels(observation, &device.name, port, device.about.guid);
        self.devices.push((labels(None), device));
        self.hw.push((labels(None), &device.hw));
        for (index, port) in device.ports.iter().enumerate() {
            let labels = labels(Some(port.number));
            // The state of counters that were not read is not known.
            let read = totals.get(index).filter(|_| !port.reading.is_empty());
            self.totals.push(read.map(|totals| &totals.reading));
            self.counted.push(Counted { anchor, counting: read.map(|totals| &totals.counters) });
            self.hw.push((labels.clone(), &port.hw));
            for netdev in &port.netdevs {
                let mut labels = labels.clone();
                push_label(&mut labels, b',', "netdev", &netdev.name);
                self.netdevs.push((labels, netdev));
            }
            self.ports.push((labels, port));
        }
    }

    fn states_and_counters(&self, parts: &mut Parts) {
        for (index, (family, value)) in PORT_STATES.into_iter().zip(PORT_VALUES).enumerate() {
            parts.add(Place::State(index), family.into(), |text, name| {
                for (labels, port) in &self.ports {
                    Line::new(text, name, labels).value_of(value(port));
                }
            });
        }
        for row in COUNTERS {
            let place = Place::Counter(row.counter as usize);
            parts.add(place, counter_head(row.counter), |text, name| {
                for ((labels, _), totals) in self.ports.iter().zip(&self.totals) {
                    let total = totals.and_then(|totals| totals.get(row.counter));
                    let value = total.map(|total| scaled(total, row.scale));
                    Line::new(text, name, labels).value_of(value);
                }
            });
        }
    }

    fn counting(&self, parts: &mut Parts) {
        for (index, (family, tell)) in COUNTING.iter().enumerate() {
            parts.add(Place::Counting(index), (*family).into(), |text, name| {
                for ((labels, _), counted) in self.ports.iter().zip(&self.counted) {
                    tell(counted, &mut Line::new(text, name, labels));
                }
            });
        }
    }

    /// The drivers' own counters: those of the table by their rows, the others by their files.
    fn hw(&self, parts: &mut Parts) {
        let mut known = Vec::new();
        let mut unknown = Vec::new();
        for (labels, hw) in &self.hw {
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
            parts.host(hw_head(row), |text, name| {
                for (_, labels, value) in of_row {
                    Line::new(text, name, labels).value(scaled(*value, row.scale));
                }
            });
        }
        parts.host(HW_UNKNOWN.into(), |text, name| {
            for (file, labels, value) in unknown {
                let mut line = Line::new(text, name, labels);
                line.label("counter", file);
                line.value(value);
            }
        });
    }

    /// The connection manager's counters.
    fn cm(&self, parts: &mut Parts) {
        for (group, row) in cm::GROUPS.iter().enumerate() {
            parts.host(cm_family(row).into(), |text, name| {
                for (labels, port) in &self.ports {
                    let Some(of_group) = port.cm.as_ref().and_then(|cm| cm.get(group)) else {
                        continue;
                    };
                    for (message, value) in cm::MESSAGES.iter().zip(of_group) {
                        let mut line = Line::new(text, name, labels);
                        line.label("message", message);
                        line.value_of(*value);
                    }
                }
            });
        }
    }

    fn ethernet(&self, parts: &mut Parts) {
        let mut all: Vec<_> = (self.netdevs.iter())
            .flat_map(|(labels, netdev)| netdev.ethernet.iter().map(move |value| (labels, value)))
            .collect();
        all.sort_by_key(|(_, value)| value.row);
        for of_row in all.chunk_by(|a, b| a.1.row == b.1.row) {
            let row = of_row.first().and_then(|(_, first)| ethernet::TABLE.get(first.row));
            let Some(row) = row else { continue };
            parts.host(ethernet_head(row), |text, name| {
                for (labels, value) in of_row {
                    let mut line = Line::new(text, name, labels);
                    if let Some((label, index)) = row.index.label().zip(value.index) {
                        line.label(label, itoa::Buffer::new().format(index));
                    }
                    if row.micros {
                        line.micros(value.value);
                    } else {
                        line.value(value.value);
                    }
                }
            });
        }
    }
}

/// What the ports told.
fn events(observation: &HostObservation, devices: &With<'_, Device>, parts: &mut Parts) {
    let is_heard = |device: &str| observation.monitored.contains(device);
    parts.host(HEARD.into(), |text, name| {
        for (labels, device) in devices {
            Line::new(text, name, labels).value(is_heard(&device.name).into());
        }
    });
    let places: Vec<_> = (observation.port_events.iter())
        .map(|((device, port), tally)| {
            (labels(observation, device, *port, tally.guid), is_heard(device), *port, tally)
        })
        .collect();
    parts.host(LINK_LOSSES.into(), |text, name| {
        for (labels, _, _, tally) in places.iter().filter(|(_, _, port, _)| port.is_some()) {
            Line::new(text, name, labels).value(tally.losses);
        }
    });
    parts.host(EVENTS.into(), |text, name| {
        for (labels, heard, port, tally) in &places {
            for kind in PortEventKind::ALL {
                let (count, _) = tally.get(*kind);
                // A port tells of itself, a device of itself alone. None yet is 0 only of those
                // that would be heard.
                let tells = *heard && (*kind == PortEventKind::DeviceFatal) == port.is_none();
                if tells || count > 0 {
                    let mut line = Line::new(text, name, labels);
                    line.label("event", kind.label());
                    line.value(count);
                }
            }
        }
    });
    parts.host(EVENT_TIMES.into(), |text, name| {
        for (labels, _, _, tally) in &places {
            for kind in PortEventKind::ALL {
                if let (_, Some(last)) = tally.get(*kind) {
                    let mut line = Line::new(text, name, labels);
                    line.label("event", kind.label());
                    line.seconds(last.unix_seconds_of(last.moment));
                }
            }
        }
    });
}

/// `{fabric="…",guid="…",port="…",device="…"`; without a port what concerns a whole device, and without a
/// GUID one whose GUID could not be read.
fn labels(
    observation: &HostObservation,
    device: &Arc<str>,
    port: Option<PortNumber>,
    guid: Option<Guid>,
) -> Vec<u8> {
    let mut labels = Vec::new();
    push_label(&mut labels, b'{', "fabric", observation.rails.fabric_of(device, port));
    if let Some(guid) = guid {
        push_label(&mut labels, b',', "guid", &guid.to_string());
    }
    if let Some(port) = port {
        push_label(&mut labels, b',', "port", itoa::Buffer::new().format(port));
    }
    push_label(&mut labels, b',', "device", device);
    labels
}

#[cfg(test)]
mod tests {
    use super::*;
    use fabric_observation::host::MissingDevice;
    use ib_health::assessment::CounterStatus;
    use ib_health::testing::saturated;
    use ib_mad::Moment;
    use ib_mad::counter::Counter;
    use rdma_host::model::HwName;
    use rdma_host::model::rails::Rails;
    use rdma_host::testing::{port, snapshot};

    fn observation(ports: Vec<Port>) -> HostObservation {
        let totals = |port: &Port| HostPortTotals {
            reading: port.reading.clone().into_totals(|reading, counter| reading.get(counter)),
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
        parts.iter().flat_map(|part| part.samples.lines().map(str::to_owned)).collect()
    }

    const LABELS: &str = r#"{fabric="ib",guid="0x0000000000000abc",port="1",device="mlx5_0""#;

    #[test]
    fn a_port_has_the_fabrics_families_and_what_was_not_read_has_no_sample() {
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
    fn how_counters_fared_stands_with_the_fabrics_families() {
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
    fn a_drivers_unknown_counter_keeps_its_name_and_cannot_break_out() {
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
    fn an_interface_whose_state_was_not_read_is_not_told_to_be_down() {
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
    fn a_device_that_hangs_is_told_as_such_and_has_no_ports() {
        let mut observation = observation(Vec::new());
        observation.snapshot.as_mut().unwrap().devices[0].answers = false;
        let lines = samples(&observation);
        assert!(
            lines
                .iter()
                .any(|line| line.starts_with("infiniband_device_up{") && line.ends_with("} 0"))
        );
        assert!(!lines.iter().any(|line| line.contains("port=") || line.contains("refused")));
    }

    #[test]
    fn a_device_that_is_gone_is_down_and_nothing_else() {
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
    fn a_look_that_read_nothing_of_what_should_be_there_is_no_success() {
        let look = |devices: usize, answers: bool, missing: usize, problem: bool| {
            let mut observation = observation(Vec::new());
            let snapshot = observation.snapshot.as_mut().unwrap();
            snapshot.devices[0].answers = answers;
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
    fn each_family_is_told_once_and_in_the_order_of_places() {
        let mut observation = observation(vec![port(1), port(2)]);
        observation.port_events.add_snapshot(observation.snapshot.as_ref().unwrap());
        let parts = render(&observation);
        assert!(parts.is_sorted_by(|a, b| a.place < b.place));
        let mut names: Vec<_> = parts.iter().map(|part| part.head.name.clone()).collect();
        names.sort();
        names.dedup();
        assert_eq!(names.len(), parts.len());
    }
}
