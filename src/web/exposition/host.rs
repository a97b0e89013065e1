//! What the host sees of its own devices, family by family: plain text, for it is small.
//!
//! What the fabric tells of a port, too, has the fabric's family and one label more, `device`.

use std::sync::Arc;

use crate::fabric::counter::TABLE as COUNTERS;
use crate::fabric::host::ethernet;
use crate::fabric::host::event::EventKind;
use crate::fabric::host::hw_counter;
use crate::fabric::host::{Device, HwReading, IpoibMode, Netdev, Port};
use crate::fabric::{Guid, PortNumber};
use crate::monitor::host::HostObservation;

use super::fabrics::{PORT_STATES, counter_head, scaled};
use super::family::{Family, Head, Kind, push_label};
use super::part::{Part, Place};

const DEVICE_LABELS: &[&str] = &["fabric", "guid", "device"];
const PORT_LABELS: &[&str] = &["fabric", "guid", "port", "device"];
const EVENT_LABELS: &[&str] = &["fabric", "guid", "port", "device", "event"];
const NETDEV_LABELS: &[&str] = &["fabric", "guid", "port", "device", "netdev"];

/// What is told of one thing: the labels that it has besides, and the value; or nothing.
type Tell<T> = fn(&T, &mut Line<'_>);

const DEVICES: &[(Family, Tell<Device>)] = &[
    (
        Family {
            name: "infiniband_device_info",
            kind: Kind::Gauge,
            labels: &[
                "fabric",
                "guid",
                "device",
                "node",
                "node_type",
                "system_guid",
                "firmware",
                "hardware",
                "board",
                "hca_type",
                "driver",
            ],
            help: "What an RDMA device of this host is, as a series that is always 1.",
        },
        |device, line| {
            let about = &device.about;
            line.label("node", &about.description);
            line.label("node_type", &about.node_type);
            line.label("system_guid", &about.system_guid.to_string());
            line.label("firmware", &about.firmware);
            line.label("hardware", &about.hardware);
            line.label("board", &about.board);
            line.label("hca_type", &about.hca_type);
            line.label("driver", &about.driver);
            line.value(1);
        },
    ),
    (
        Family {
            name: "infiniband_device_up",
            kind: Kind::Gauge,
            labels: DEVICE_LABELS,
            help: "Whether the device could be read; 0 while it hangs.",
        },
        |device, line| line.value(device.answers.into()),
    ),
    (
        Family {
            name: "infiniband_device_refused_files",
            kind: Kind::Gauge,
            labels: DEVICE_LABELS,
            help: "Files of the device that gave no value when they were last read, and are left alone for a while.",
        },
        |device, line| {
            if device.answers {
                line.value(device.refused as u64);
            }
        },
    ),
];

/// The fabric's families of states, in their order.
const PORT_VALUES: [fn(&Port) -> Option<u64>; PORT_STATES.len()] = [
    |port| port.state.map(u64::from),
    |port| port.physical_state.map(u64::from),
    |port| port.rate,
    |port| port.width.map(|width| width.lanes().into()),
    // The host knows one end of the cable.
    |_| None,
];

const PORTS: &[(Family, Tell<Port>)] = &[(
    Family {
        name: "infiniband_device_port_info",
        kind: Kind::Gauge,
        labels: &[
            "fabric",
            "guid",
            "port",
            "device",
            "link_layer",
            "lid",
            "sm_lid",
            "speed",
            "width",
        ],
        help: "What a port of this host is at present, as a series that is always 1.",
    },
    |port, line| {
        line.label("link_layer", &port.link_layer);
        for (name, lid) in [("lid", port.lid), ("sm_lid", port.sm_lid)] {
            lid.inspect(|lid| line.label(name, &lid.to_string()));
        }
        port.speed.inspect(|speed| line.label("speed", speed.label()));
        port.width.inspect(|width| line.label("width", width.label()));
        line.value(1);
    },
)];

const NETDEVS: &[(Family, Tell<Netdev>)] = &[
    (
        Family {
            name: "infiniband_netdev_info",
            kind: Kind::Gauge,
            labels: &["fabric", "guid", "port", "device", "netdev", "operstate", "ipoib_mode"],
            help: "A network interface of a port, IPoIB or the Ethernet side of RoCE, as a series that is always 1.",
        },
        |netdev, line| {
            line.label("operstate", &netdev.operstate);
            line.label("ipoib_mode", netdev.ipoib.map_or("", IpoibMode::label));
            line.value(1);
        },
    ),
    (
        Family {
            name: "infiniband_netdev_up",
            kind: Kind::Gauge,
            labels: NETDEV_LABELS,
            help: "Whether the interface's operational state is up.",
        },
        |netdev, line| line.value((netdev.operstate == "up").into()),
    ),
    (
        Family {
            name: "infiniband_netdev_mtu_bytes",
            kind: Kind::Gauge,
            labels: NETDEV_LABELS,
            help: "The largest packet that the interface takes.",
        },
        |netdev, line| line.value_of(netdev.mtu),
    ),
    (
        Family {
            name: "infiniband_netdev_ipoib_datagram",
            kind: Kind::Gauge,
            labels: NETDEV_LABELS,
            help: "1 if IPoIB sends datagrams, 0 if it is in connected mode; datagrams with an MTU of 2044 cost most of the bandwidth.",
        },
        |netdev, line| {
            line.value_of(netdev.ipoib.map(|mode| (mode == IpoibMode::Datagram).into()));
        },
    ),
    (
        Family {
            name: "infiniband_netdev_carrier_changes",
            kind: Kind::Counter,
            labels: NETDEV_LABELS,
            help: "Times the interface's carrier came or went.",
        },
        |netdev, line| line.value_of(netdev.carrier_changes),
    ),
];

const HW_UNKNOWN: Family = Family {
    name: "infiniband_hw_counter",
    kind: Kind::Counter,
    labels: &["fabric", "guid", "port", "device", "counter"],
    help: "A counter of the driver that is not known here, by the name of its file.",
};

const HEARD: Family = Family {
    name: "infiniband_device_events_heard",
    kind: Kind::Gauge,
    labels: DEVICE_LABELS,
    help: "Whether the device is held open for its asynchronous events; without them a loss of link between two looks is missed.",
};
const LINK_LOSSES: Family = Family {
    name: "infiniband_port_link_losses",
    kind: Kind::Counter,
    labels: PORT_LABELS,
    help: "Times that the port stopped being Active, heard or seen: one that is shorter than any look counts, too.",
};
const EVENTS: Family = Family {
    name: "infiniband_port_events",
    kind: Kind::Counter,
    labels: EVENT_LABELS,
    help: "Asynchronous events of the port, or of the whole device, since the exporter began.",
};
const EVENT_TIMES: Family = Family {
    name: "infiniband_port_event_timestamp_seconds",
    kind: Kind::Gauge,
    labels: EVENT_LABELS,
    help: "When the latest event of each kind came in, in seconds since 1970.",
};

/// All families that only the host tells, but for those of the drivers' tables.
pub fn families() -> impl Iterator<Item = Family> {
    (DEVICES.iter().map(|(family, _)| *family))
        .chain(PORTS.iter().map(|(family, _)| *family))
        .chain([HEARD, LINK_LOSSES, EVENTS, EVENT_TIMES, HW_UNKNOWN])
        .chain(NETDEVS.iter().map(|(family, _)| *family))
}

/// What stands before the samples of a row of the drivers' own counters.
pub fn hw_head(row: &hw_counter::HwRow) -> Head {
    let kind = match row.kind {
        hw_counter::Kind::Counter => Kind::Counter,
        hw_counter::Kind::Gauge => Kind::Gauge,
    };
    let help = format!("{} hw_counters: {} ({}).", row.help, row.files.join(", "), row.drivers);
    Head { name: format!("infiniband_hw_{}", row.metric).into(), kind, help: help.into() }
}

/// What stands before the samples of a row of Ethernet's statistics.
pub fn ethernet_head(row: &ethernet::EthernetRow) -> Head {
    let name = format!("infiniband_netdev_{}", row.metric).into();
    Head { name, kind: Kind::Counter, help: row.help.into() }
}

/// Renders what the host sees; families without samples are left out.
pub fn render(observation: &HostObservation) -> Vec<Part<String>> {
    let Some(snapshot) = &observation.snapshot else { return Vec::new() };
    let mut labelled = Labelled::default();
    for device in &snapshot.devices {
        labelled.add(observation, device);
    }
    let mut parts = Parts::default();
    labelled.states_and_counters(&mut parts);
    parts.each(DEVICES, &labelled.devices);
    parts.each(PORTS, &labelled.ports);
    events(observation, &labelled.devices, &mut parts);
    labelled.hw(&mut parts);
    parts.each(NETDEVS, &labelled.netdevs);
    labelled.ethernet(&mut parts);
    parts.done
}

/// Things with their labels, rendered up to where a family's own begin.
type With<'a, T> = Vec<(Vec<u8>, &'a T)>;

/// All that is in a snapshot, one list for each kind of thing.
#[derive(Default)]
struct Labelled<'a> {
    devices: With<'a, Device>,
    ports: With<'a, Port>,
    netdevs: With<'a, Netdev>,
    /// Of ports and of devices.
    hw: With<'a, HwReading>,
}

impl<'a> Labelled<'a> {
    fn add(&mut self, observation: &HostObservation, device: &'a Device) {
        let labels = |port| labels(observation, &device.name, port, device.about.guid);
        self.devices.push((labels(None), device));
        self.hw.push((labels(None), &device.hw));
        for port in &device.ports {
            let labels = labels(Some(port.number));
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
                for (labels, port) in &self.ports {
                    let raw = port.reading.get(row.counter);
                    Line::new(text, name, labels).value_of(raw.map(|raw| scaled(row, raw)));
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
                    Line::new(text, name, labels).value(value.wrapping_mul(row.scale));
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
    let is_heard = |device: &str| observation.heard.contains(device);
    parts.host(HEARD.into(), |text, name| {
        for (labels, device) in devices {
            Line::new(text, name, labels).value(is_heard(&device.name).into());
        }
    });
    let places: Vec<_> = (observation.tally.places())
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
            for kind in EventKind::ALL {
                let (count, _) = tally.of(*kind);
                // A port tells of itself, a device of itself alone. None yet is 0 only of those
                // that would be heard.
                let tells = *heard && (*kind == EventKind::DeviceFatal) == port.is_none();
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
            for kind in EventKind::ALL {
                if let (_, Some(last)) = tally.of(*kind) {
                    let mut line = Line::new(text, name, labels);
                    line.label("event", kind.label());
                    line.seconds(last.unix_seconds_of(last.moment));
                }
            }
        }
    });
}

/// `{fabric="…",guid="…",port="…",device="…"`; without a port what concerns a whole device.
fn labels(
    observation: &HostObservation,
    device: &Arc<str>,
    port: Option<PortNumber>,
    guid: Guid,
) -> Vec<u8> {
    let mut labels = Vec::new();
    push_label(&mut labels, b'{', "fabric", observation.rails.fabric_of(device, port));
    push_label(&mut labels, b',', "guid", &guid.to_string());
    if let Some(port) = port {
        push_label(&mut labels, b',', "port", itoa::Buffer::new().format(port));
    }
    push_label(&mut labels, b',', "device", device);
    labels
}

/// The families that are done.
#[derive(Default)]
struct Parts {
    done: Vec<Part<String>>,
    own: usize,
}

impl Parts {
    /// Adds a family that only the host tells.
    fn host(&mut self, head: Head, write: impl FnOnce(&mut Vec<u8>, &str)) {
        self.own += 1;
        self.add(Place::Host(self.own), head, write);
    }

    /// Adds families of things of one kind.
    fn each<T>(&mut self, families: &[(Family, Tell<T>)], things: &With<'_, T>) {
        for (family, tell) in families {
            self.host((*family).into(), |text, name| {
                for (labels, thing) in things {
                    tell(thing, &mut Line::new(text, name, labels));
                }
            });
        }
    }

    fn add(&mut self, place: Place, head: Head, write: impl FnOnce(&mut Vec<u8>, &str)) {
        let mut samples = Vec::new();
        write(&mut samples, &head.sample_name());
        // Labels are text, and all else is ASCII.
        let samples = String::from_utf8(samples).unwrap_or_default();
        if !samples.is_empty() {
            self.done.push(Part { place, head, samples });
        }
    }
}

/// A sample in the making. What gets no value is not written.
struct Line<'a> {
    text: &'a mut Vec<u8>,
    name: &'a str,
    labels: &'a [u8],
    own: Vec<u8>,
}

impl<'a> Line<'a> {
    fn new(text: &'a mut Vec<u8>, name: &'a str, labels: &'a [u8]) -> Self {
        Line { text, name, labels, own: Vec::new() }
    }

    /// Adds a label; one without a value is as good as none.
    fn label(&mut self, name: &str, value: &str) {
        if !value.is_empty() {
            push_label(&mut self.own, b',', name, value);
        }
    }

    fn value(&mut self, value: u64) {
        self.write(itoa::Buffer::new().format(value));
    }

    fn value_of(&mut self, value: Option<u64>) {
        if let Some(value) = value {
            self.value(value);
        }
    }

    fn seconds(&mut self, seconds: f64) {
        self.write(&format!("{seconds:.3}"));
    }

    /// Microseconds, in seconds: exactly, for they may be more than a float can hold.
    fn micros(&mut self, micros: u64) {
        self.write(&format!("{}.{:06}", micros / 1_000_000, micros % 1_000_000));
    }

    fn write(&mut self, value: &str) {
        for part in [self.name.as_bytes(), self.labels, &self.own, b"} ", value.as_bytes(), b"\n"] {
            self.text.extend_from_slice(part);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fabric::counter::Counter;
    use crate::fabric::host::HwName;
    use crate::fabric::host::rails::Rails;
    use crate::fabric::host::tests::{port, snapshot};

    fn observation(ports: Vec<Port>) -> HostObservation {
        HostObservation {
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
    fn each_family_is_told_once_and_in_the_order_of_places() {
        let mut observation = observation(vec![port(1), port(2)]);
        observation.tally.see(observation.snapshot.as_ref().unwrap());
        let parts = render(&observation);
        assert!(parts.is_sorted_by(|a, b| a.place < b.place));
        let mut names: Vec<_> = parts.iter().map(|part| part.head.name.clone()).collect();
        names.sort();
        names.dedup();
        assert_eq!(names.len(), parts.len());
    }
}
