//! Families that only a host's own devices have.

use exposition::{Family, Header, MetricType, Samples, counter, gauge};
use fabric_observation::host::PortEventCounts;
use ib_mad::Reading;
use ib_mad::port_event::PortEventKind;
use ib_mad::rate::{Speed, Width};
use rdma_host::model::cm::Group;
use rdma_host::model::{Device, IpoibMode, Netdev, Port, cm, ethernet, hw_counter};

use super::fabric::{Counted, PORT_STATES};

const DEVICE_LABELS: &[&str] = &["fabric", "guid", "device"];
const PORT_LABELS: &[&str] = &["fabric", "guid", "port", "device"];
const EVENT_LABELS: &[&str] = &["fabric", "guid", "port", "device", "event"];
const NETDEV_LABELS: &[&str] = &["fabric", "guid", "port", "device", "netdev"];

/// A port of the host.
pub(super) struct HostPort<'a> {
    pub port: &'a Port,
    /// The totals of its counters; `None` if they were not read.
    pub totals: Option<&'a Reading>,
    /// `None` if its counters were not read.
    pub counted: Option<Counted<'a>>,
}

/// The events of a port, or of a device without a port.
pub(super) struct PortEvents<'a> {
    /// Whether the device is open for its events.
    pub is_open: bool,
    pub is_port: bool,
    pub stats: &'a PortEventCounts,
}

// With all lifetimes spelled out: the functions take items of any lifetime.
type WriteDevice = fn(&&Device, &mut Samples<'_>);
type WriteHostPort = fn(&HostPort<'_>, &mut Samples<'_>);
type WriteEvents = fn(&PortEvents<'_>, &mut Samples<'_>);
type WriteNetdev = fn(&&Netdev, &mut Samples<'_>);

pub(super) const DEVICES: &[(Family, WriteDevice)] = &[
    gauge(
        "infiniband_device_info",
        &[
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
        "What an RDMA device of this host is, as a series that is always 1.",
        |device, samples| {
            let about = &device.info;
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
        },
    ),
    gauge(
        "infiniband_device_refused_files",
        DEVICE_LABELS,
        "Files of the device that gave no value when they were last read, and are left alone for a while.",
        |device, samples| {
            if device.is_readable {
                samples.value(device.unreadable_files as u64);
            }
        },
    ),
];

/// The values of the families of [`PORT_STATES`].
pub(super) const PORT_VALUES: [fn(&Port) -> Option<u64>; PORT_STATES.len()] = [
    |port| port.state.map(u64::from),
    |port| port.physical_state.map(u64::from),
    |port| port.rate,
    |port| port.width.map(|width| width.lanes().into()),
    // The host knows one end of the cable.
    |_| None,
];

pub(super) const PORTS: &[(Family, WriteHostPort)] = &[gauge(
    "infiniband_device_port_info",
    &["fabric", "guid", "port", "device", "link_layer", "lid", "sm_lid", "speed", "width"],
    "What a port of this host is at present, as a series that is always 1.",
    |item, samples| {
        let port = item.port;
        samples.label("link_layer", &port.link_layer);
        samples.label_if_known("lid", port.lid.map(|lid| lid.to_string()));
        samples.label_if_known("sm_lid", port.sm_lid.map(|lid| lid.to_string()));
        samples.label_if_known("speed", port.speed.map(Speed::label));
        samples.label_if_known("width", port.width.map(Width::label));
        samples.value(1);
    },
)];

pub(super) const NETDEVS: &[(Family, WriteNetdev)] = &[
    gauge(
        "infiniband_netdev_info",
        &["fabric", "guid", "port", "device", "netdev", "operstate", "ipoib_mode"],
        "A network interface of a port, IPoIB or the Ethernet side of RoCE, as a series that is always 1.",
        |netdev, samples| {
            samples.label("operstate", &netdev.operstate);
            samples.label("ipoib_mode", netdev.ipoib.map_or("", IpoibMode::label));
            samples.value(1);
        },
    ),
    gauge(
        "infiniband_netdev_up",
        NETDEV_LABELS,
        "Whether the interface's operational state is up.",
        |netdev, samples| {
            if !netdev.operstate.is_empty() {
                samples.value((netdev.operstate == "up").into());
            }
        },
    ),
    gauge(
        "infiniband_netdev_mtu_bytes",
        NETDEV_LABELS,
        "The largest packet that the interface takes.",
        |netdev, samples| samples.value_if_known(netdev.mtu),
    ),
    gauge(
        "infiniband_netdev_ipoib_datagram",
        NETDEV_LABELS,
        "1 if IPoIB sends datagrams, 0 if it is in connected mode; datagrams with an MTU of 2044 cost most of the bandwidth.",
        |netdev, samples| {
            samples.value_if_known(netdev.ipoib.map(|mode| (mode == IpoibMode::Datagram).into()));
        },
    ),
    counter(
        "infiniband_netdev_carrier_changes",
        NETDEV_LABELS,
        "Times the interface's carrier came or went.",
        |netdev, samples| samples.value_if_known(netdev.carrier_changes),
    ),
];

pub(super) const HW_UNKNOWN: Family = Family::counter(
    "infiniband_hw_counter",
    &["fabric", "guid", "port", "device", "counter"],
    "A counter of the driver that is not known here, by the name of its file.",
);

/// The family of a directory of the connection manager's counters.
pub(super) fn cm_family(group: &Group) -> Family {
    Family::counter(group.metric, &["fabric", "guid", "port", "device", "message"], group.help)
}

pub(super) const DEVICE_UP: Family = Family::gauge(
    "infiniband_device_up",
    DEVICE_LABELS,
    "Whether the device and its ports could be read: 0 while it hangs, and for --fabric.forget-after once it is gone.",
);
pub(super) const HEARD: Family = Family::gauge(
    "infiniband_device_events_heard",
    DEVICE_LABELS,
    "Whether the device is held open for its asynchronous events; without them a loss of link between two looks is missed.",
);
pub(super) const LINK_LOSSES: Family = Family::counter(
    "infiniband_port_link_losses",
    PORT_LABELS,
    "Times that the port stopped being Active, heard or seen, its driver going included: one that is shorter than any look counts, too.",
);
pub(super) const EVENTS: &[(Family, WriteEvents)] = &[
    counter(
        "infiniband_port_events",
        EVENT_LABELS,
        "Asynchronous events of the port, or of the whole device, since the exporter began.",
        |item, samples| {
            for kind in PortEventKind::ALL {
                let (count, _) = item.stats.get(*kind);
                // Ports and devices have events of their own. None yet is 0 only if they would be seen.
                let is_possible =
                    item.is_open && (*kind == PortEventKind::DeviceFatal) != item.is_port;
                if is_possible || count > 0 {
                    samples.label("event", kind.label()).value(count);
                }
            }
        },
    ),
    gauge(
        "infiniband_port_event_timestamp_seconds",
        EVENT_LABELS,
        "When the latest event of each kind came in, in seconds since 1970.",
        |item, samples| {
            for kind in PortEventKind::ALL {
                if let (_, Some(last)) = item.stats.get(*kind) {
                    samples.label("event", kind.label()).seconds(last.unix_seconds_of(last.moment));
                }
            }
        },
    ),
];

/// The families, without those of the drivers' tables.
pub fn families() -> impl Iterator<Item = Family> {
    (DEVICES.iter().map(|(family, _)| *family))
        .chain(PORTS.iter().map(|(family, _)| *family))
        .chain([DEVICE_UP, HEARD, LINK_LOSSES])
        .chain(EVENTS.iter().map(|(family, _)| *family))
        .chain([HW_UNKNOWN])
        .chain(cm::GROUPS.iter().map(cm_family))
        .chain(NETDEVS.iter().map(|(family, _)| *family))
}

/// The header of a row of the drivers' own counters.
pub fn hw_header(row: &hw_counter::HwRow) -> Header {
    let kind = match row.kind {
        hw_counter::Kind::Counter => MetricType::Counter,
        hw_counter::Kind::Gauge => MetricType::Gauge,
    };
    let help = format!("{} hw_counters: {} ({}).", row.help, row.files.join(", "), row.drivers);
    Header { name: format!("infiniband_hw_{}", row.metric).into(), kind, help: help.into() }
}

/// The header of a row of Ethernet's statistics.
pub fn ethernet_header(row: &ethernet::EthernetRow) -> Header {
    let name = format!("infiniband_netdev_{}", row.metric).into();
    Header { name, kind: MetricType::Counter, help: row.help.into() }
}
