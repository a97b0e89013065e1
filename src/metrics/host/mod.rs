//! The host's own devices, family by family: plain text, because it is small.
//!
//! Values of a port that fabrics have, too, use the same family with one more label, `device`.

#[cfg(test)]
mod tests;

use std::sync::Arc;

use exposition::{Families, Family, Labeled, Labels, MetricType, Part, Parts, Samples};
use fabric_observation::families::counter_family;
use fabric_observation::host::{EventKey, HostObservation, HostPortTotals, PortEventCounts};
use ib_mad::counter::{TABLE as COUNTERS, scaled};
use ib_mad::moment::Anchor;
use ib_mad::port_event::PortEventKind;
use ib_mad::rate::{Speed, Width};
use ib_mad::register::LANES;
use ib_mad::{Guid, PortNumber};
use rdma_host::model::cm::Group;
use rdma_host::model::{Device, HwReading, IpoibMode, Netdev, Port, cm, ethernet, hw_counter};

use super::fabric::{COUNTING, Counted, PORT_STATES};
use super::family_table::names;
use super::family_table::{families, family};
use super::modules::{MODULES, ModuleItem};

const DEVICE_LABELS: &[&str] = &["fabric", "guid", "device"];
const PORT_LABELS: &[&str] = &["fabric", "guid", "port", "device"];
const EVENT_LABELS: &[&str] = &["fabric", "guid", "port", "device", "event"];
const NETDEV_LABELS: &[&str] = &["fabric", "guid", "port", "device", "netdev"];

struct HostPort<'a> {
    pub port: &'a Port,
    /// The totals of its counters; `None` if they were not read.
    pub read: Option<&'a HostPortTotals>,
    pub anchor: &'a Anchor,
}

impl HostPort<'_> {
    /// The number of lanes that the link uses; all if it is not known.
    fn lanes(&self) -> usize {
        self.port.width.map_or(LANES, |width| width.lanes().into())
    }
}

/// The events of a port, or of a device without a port.
struct PortEvents<'a> {
    /// Whether the device is open for its events.
    pub is_open: bool,
    pub is_port: bool,
    pub stats: &'a PortEventCounts,
}

families! {
    DEVICES: &Device;
    "infiniband_device_info" Gauge
        ["fabric", "guid", "device", "kind", "parent", "node", "node_type", "system_guid", "firmware",
         "hardware", "board", "hca_type", "driver"]
        "Identity of an RDMA device of this host as labels, always 1: firmware, board, driver and more. Label kind: physical, virtual_function, sub_function, second_function (Socket Direct), smi, nvlink_bridge, restricted or software. Label parent: of kind smi, the device whose planes it has."
        => |device, samples| {
            let about = &device.info;
            samples.label("kind", device.kind.label());
            samples.label_if_known("parent", device.parent.as_deref());
            samples.label("node", &about.description);
            samples.label("node_type", &about.node_type);
            let system_guid = about.system_guid.map(|guid| guid.to_string());
            samples.label_if_known("system_guid", system_guid);
            samples.label("firmware", &about.firmware);
            samples.label("hardware", &about.hardware);
            samples.label("board", &about.board);
            samples.label("hca_type", &about.hca_type);
            samples.label("driver", &about.driver);
            samples.value(1);
        };
    "fabric_exporter_device_unreadable_files" Gauge DEVICE_LABELS
        "Files of the device in sysfs that returned an error and are not read again until their error backoff ends (--host.error-backoff)."
        => |device, samples| {
            if device.is_readable {
                samples.value(device.unreadable_files as u64);
            }
        };
}

/// The values of the first families of [`PORT_STATES`].
const PORT_VALUES: [fn(&Port) -> Option<u64>; 4] = [
    |port| port.state.map(|state| state.code().into()),
    |port| port.physical_state.map(|state| state.code().into()),
    |port| port.rate,
    |port| port.width.map(|width| width.lanes().into()),
];

const SENSOR_LABELS: &[&str] = &["fabric", "guid", "device", "sensor"];

families! {
    SENSORS: &Device;
    "infiniband_device_temperature_celsius" Gauge SENSOR_LABELS
        "Temperature of an RDMA device of this host, from hwmon. Label sensor: the driver's name for it, such as asic."
        => |device, samples| {
            for sensor in &device.sensors {
                samples.label("sensor", &sensor.label).float(sensor.celsius);
            }
        };
    "infiniband_device_temperature_critical_celsius" Gauge SENSOR_LABELS
        "Critical temperature of the sensor, if the driver reports one."
        => |device, samples| {
            for sensor in &device.sensors {
                if let Some(critical) = sensor.critical {
                    samples.label("sensor", &sensor.label).float(critical);
                }
            }
        };
}

families! {
    PORTS: HostPort<'_>;
    "infiniband_device_port_info" Gauge
        ["fabric", "guid", "port", "device", "kind", "plane", "link_layer", "lid", "sm_lid", "speed", "width"]
        "State of a port of this host as labels, always 1: link layer, LID, LID of the subnet manager, speed and width. Label kind: that of the device, or representor. Label plane: of kind smi, the plane that the port is. Only physical and software ports have a cable of their own."
        => |item, samples| {
            let port = item.port;
            samples.label("kind", port.kind.label());
            samples.label_if_known("plane", port.plane().map(|plane| plane.to_string()));
            samples.label("link_layer", &port.link_layer);
            samples.label_if_known("lid", port.lid.map(|lid| lid.to_string()));
            samples.label_if_known("sm_lid", port.sm_lid.map(|lid| lid.to_string()));
            samples.label_if_known("speed", port.speed.map(Speed::label));
            samples.label_if_known("width", port.width.map(Width::label));
            samples.value(1);
        };
}

families! {
    NETDEVS: &Netdev;
    "infiniband_netdev_info" Gauge
        ["fabric", "guid", "port", "device", "netdev", "bond", "operstate", "ipoib_mode"]
        "Network interface of a port (IPoIB, or Ethernet for RoCE) as labels, always 1. Label bond: the bond that it is a member of."
        => |netdev, samples| {
            samples.label("bond", netdev.bond.as_deref().unwrap_or_default());
            samples.label("operstate", &netdev.operstate);
            samples.label("ipoib_mode", netdev.ipoib.map_or("", IpoibMode::label));
            samples.value(1);
        };
    "infiniband_netdev_up" Gauge NETDEV_LABELS
        "1 if the operstate of the network interface is up, else 0."
        => |netdev, samples| {
            if !netdev.operstate.is_empty() {
                samples.value((netdev.operstate == "up").into());
            }
        };
    "infiniband_netdev_administratively_up" Gauge NETDEV_LABELS
        "1 if the network interface is set up (ip link set up), 0 if it is set down, with or without a cable."
        => |netdev, samples| samples.value_if_known(netdev.is_admin_up.map(u64::from));
    "infiniband_netdev_carrier" Gauge NETDEV_LABELS
        "1 if the network interface has a link, else 0. Absent while the interface is set down."
        => |netdev, samples| samples.value_if_known(netdev.carrier.map(u64::from));
    "infiniband_netdev_mtu_bytes" Gauge NETDEV_LABELS
        "MTU of the network interface."
        => |netdev, samples| samples.value_if_known(netdev.mtu);
    "infiniband_netdev_ipoib_datagram" Gauge NETDEV_LABELS
        "IPoIB mode: 1 datagram, 0 connected. TCP is slow in datagram mode with an MTU of 2044."
        => |netdev, samples| {
            samples.value_if_known(netdev.ipoib.map(|mode| (mode == IpoibMode::Datagram).into()));
        };
    "infiniband_netdev_carrier_changes" Counter NETDEV_LABELS
        "carrier_changes: times that the network interface lost or gained its carrier."
        => |netdev, samples| samples.value_if_known(netdev.carrier_changes);
}

const HW_UNKNOWN: Family = family!(
    "infiniband_hw_unlisted" Counter ["fabric", "guid", "port", "device", "counter"]
    "Value of a file in hw_counters that the exporter has no name for. Label counter: name of the file."
);

/// The family of a directory of the connection manager's counters.
fn cm_family(group: &Group) -> Family {
    const LABELS: &[&str] = &["fabric", "guid", "port", "device", "message"];
    Family::new(group.metric, MetricType::Counter, LABELS, group.help)
}

const DEVICE_UP: Family = family!(
    "infiniband_device_up" Gauge DEVICE_LABELS
    "1 if the device and its ports could be read. 0 while it hangs, and after it disappeared, for the time of --fabric.forget-after."
);
const EVENTS_SUBSCRIBED: Family = family!(
    "fabric_exporter_device_events_subscribed" Gauge DEVICE_LABELS
    "1 if the exporter receives the asynchronous events of the device. Without them, link downs between two reads are missed."
);
const LINK_LOSSES: Family = family!(
    "infiniband_port_link_losses" Counter PORT_LABELS
    "Times that the port left PortState Active, as seen in an event, in a read, or in the growth of LinkDowned; a driver unload counts, and an interface that is set down does not. Link downs shorter than the read interval are not seen if the driver has neither events nor LinkDowned."
);
const ADMINISTRATIVE_DOWNS: Family = family!(
    "infiniband_port_administrative_downs" Counter PORT_LABELS
    "Times that the port of RoCE or iWARP left PortState Active because its network interface was set down (ip link set down)."
);
families! {
    EVENTS: PortEvents<'_>;
    "infiniband_port_events" Counter EVENT_LABELS
        "Asynchronous events (ibv_get_async_event) of the port, or of the whole device, since the exporter started."
        => |item, samples| {
            for kind in PortEventKind::ALL {
                let (count, _) = item.stats.get(kind);
                // Ports and devices have events of their own. None yet is 0 only if they would be seen.
                let is_possible =
                    item.is_open && (kind == PortEventKind::DeviceFatal) != item.is_port;
                if is_possible || count > 0 {
                    samples.label("event", kind.label()).value(count);
                }
            }
        };
    "infiniband_port_event_timestamp_seconds" Gauge EVENT_LABELS
        "Unix time of the latest asynchronous event of each kind. Absent if there was none."
        => |item, samples| {
            for kind in PortEventKind::ALL {
                if let (_, Some(last)) = item.stats.get(kind) {
                    samples.label("event", kind.label()).seconds(last.unix_seconds_of(last.moment));
                }
            }
        };
}

/// The families, without those of the drivers' tables.
pub fn families() -> impl Iterator<Item = Family> {
    names(DEVICES)
        .chain(names(SENSORS))
        .chain(names(PORTS))
        .chain([DEVICE_UP, EVENTS_SUBSCRIBED, LINK_LOSSES, ADMINISTRATIVE_DOWNS])
        .chain(names(EVENTS))
        .chain([HW_UNKNOWN])
        .chain(cm::GROUPS.iter().map(cm_family))
        .chain(names(NETDEVS))
}

/// The family of a row of the drivers' own counters.
pub fn hw_family(row: &hw_counter::HwRow) -> Family {
    let kind = if row.is_gauge { MetricType::Gauge } else { MetricType::Counter };
    let help = format!("hw_counters {} ({}): {}", row.files.join(", "), row.drivers, row.help);
    let name = format!("infiniband_hw_{}", row.metric).into();
    Family { name, kind, labels: PORT_LABELS, help: help.into() }
}

/// The family of a row of Ethernet's statistics.
pub fn ethernet_family(row: &ethernet::EthernetRow) -> Family {
    let name = format!("infiniband_netdev_{}", row.metric).into();
    let help = format!("ethtool -S {}: {}", ethtool_strings(row), row.help).into();
    Family { name, kind: MetricType::Counter, labels: NETDEV_LABELS, help }
}

/// The names of a row's statistic in `ethtool -S`, each with its driver: `rx_prio{}_pause (mlx5_core)`.
pub fn ethtool_strings(row: &ethernet::EthernetRow) -> String {
    let strings = row.strings.iter().map(|(driver, string)| format!("{string} ({driver})"));
    strings.collect::<Vec<_>>().join(", ")
}

/// Renders the families of the host's devices.
pub fn render(observation: &HostObservation) -> Vec<Part<Vec<u8>>> {
    let Some(snapshot) = &observation.snapshot else { return Vec::new() };
    let mut items = HostItems::default();
    for (index, device) in snapshot.devices.iter().enumerate() {
        let totals = observation.totals.get(index).map(Vec::as_slice);
        items.add(observation, &snapshot.anchor, device, totals.unwrap_or_default());
    }
    // A missing device has no other values.
    for gone in &observation.missing {
        items.up.push(false, |to| labels(to, observation, &gone.name, None, gone.guid));
    }
    let is_open = |device: &str| observation.monitored.contains(device);
    for (EventKey { port, .. }, stats) in &observation.port_events.ports {
        let device = &stats.device;
        let events = PortEvents { is_open: is_open(device), is_port: port.is_some(), stats };
        items.events.push(events, |to| labels(to, observation, device, *port, stats.guid));
    }
    let mut parts = Parts::default();
    for (family, value) in names(PORT_STATES).zip(PORT_VALUES) {
        parts.numbers(&family, &items.ports, |item| value(item.port));
    }
    for row in COUNTERS {
        parts.numbers(&counter_family(row.counter), &items.ports, |item| {
            Some(scaled(item.read?.reading.get(row.counter)?, row.scale))
        });
    }
    parts.each_of(MODULES, &items.ports, |item| {
        let module = item.port.netdevs.iter().find_map(|netdev| netdev.module.as_deref())?;
        Some(ModuleItem { module, lanes: item.lanes(), is_current: true, has_details: true })
    });
    parts.each_of(COUNTING, &items.ports, |item| {
        Some(Counted { anchor: item.anchor, counting: &item.read?.counters })
    });
    parts.each(DEVICES, &items.devices);
    parts.each(SENSORS, &items.devices);
    parts.numbers(&DEVICE_UP, &items.up, |up| Some((*up).into()));
    parts.each(PORTS, &items.ports);
    parts.numbers(&EVENTS_SUBSCRIBED, &items.devices, |device| Some(is_open(&device.name).into()));
    parts.numbers(&LINK_LOSSES, &items.events, |it| it.is_port.then_some(it.stats.losses));
    parts.numbers(&ADMINISTRATIVE_DOWNS, &items.events, |it| {
        it.stats.administrative_downs.filter(|_| it.is_port)
    });
    parts.each(EVENTS, &items.events);
    items.hw(&mut parts);
    items.cm(&mut parts);
    parts.each(NETDEVS, &items.netdevs);
    items.ethernet(&mut parts);
    parts.finish()
}

#[derive(Default)]
struct HostItems<'a> {
    devices: Labeled<&'a Device>,
    /// Whether each device responds, including missing devices.
    up: Labeled<bool>,
    ports: Labeled<HostPort<'a>>,
    events: Labeled<PortEvents<'a>>,
    netdevs: Labeled<&'a Netdev>,
    /// Of ports and of devices.
    hw: Labeled<&'a HwReading>,
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
            self.ports.push(HostPort { port, read, anchor }, labels);
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
    fn hw(&self, parts: &mut Parts) {
        let values = || {
            self.hw.iter().flat_map(|(labels, hw)| {
                let values = hw.names.iter().zip(&hw.values);
                values.filter_map(move |(name, value)| Some((name, labels, (*value)?)))
            })
        };
        let known = values().filter_map(|(name, to, value)| Some((name.row?, to, value)));
        by_row(parts, known.collect(), &hw_counter::TABLE, hw_family, |row, value, samples| {
            samples.value(scaled(value, row.scale));
        });
        parts.add(HW_UNKNOWN, |family| {
            for (name, labels, value) in values().filter(|(name, ..)| name.row.is_none()) {
                family.samples(labels).label("counter", &name.file).value(value);
            }
        });
    }

    fn cm(&self, parts: &mut Parts) {
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

    fn ethernet(&self, parts: &mut Parts) {
        let values = self.netdevs.iter().flat_map(|(labels, netdev)| {
            netdev.ethernet.iter().map(move |value| (value.stat.row, labels, value))
        });
        by_row(
            parts,
            values.collect(),
            &ethernet::TABLE,
            ethernet_family,
            |row, value, samples| {
                if let Some((label, index)) = row.index.zip(value.stat.index) {
                    samples.label(label, itoa::Buffer::new().format(index));
                }
                if row.micros {
                    samples.micros(value.value);
                } else {
                    samples.value(value.value);
                }
            },
        );
    }
}

/// Adds a family for each row of a table that has values; devices stay in their order.
fn by_row<T: Copy, R>(
    parts: &mut Parts,
    mut all: Vec<(usize, &[u8], T)>,
    table: &[R],
    family: fn(&R) -> Family,
    write: impl Fn(&R, T, &mut Samples<'_>),
) {
    all.sort_by_key(|(row, ..)| *row);
    for values in all.chunk_by(|a, b| a.0 == b.0) {
        let Some(row) = values.first().and_then(|(row, ..)| table.get(*row)) else { continue };
        parts.add(family(row), |family| {
            for (_, labels, value) in values {
                write(row, *value, &mut family.samples(labels));
            }
        });
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
    to.push("fabric", observation.port_fabrics.fabric_of(device, port));
    if let Some(guid) = guid {
        to.push("guid", &guid.to_string());
    }
    if let Some(port) = port {
        to.push("port", itoa::Buffer::new().format(port));
    }
    to.push("device", device);
}
