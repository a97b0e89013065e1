//! The families that only the host tells, each with what it tells of a thing: the labels that it has
//! besides, and the value.

use crate::metrics::fabrics::PORT_STATES;
use crate::metrics::family::{Family, Head, Kind};
use crate::metrics::line::Tell;
use rdma_host::model::cm::Group;
use rdma_host::model::{Device, IpoibMode, Netdev, Port, cm, ethernet, hw_counter};

pub(super) const DEVICE_LABELS: &[&str] = &["fabric", "guid", "device"];
pub(super) const PORT_LABELS: &[&str] = &["fabric", "guid", "port", "device"];
pub(super) const EVENT_LABELS: &[&str] = &["fabric", "guid", "port", "device", "event"];
pub(super) const NETDEV_LABELS: &[&str] = &["fabric", "guid", "port", "device", "netdev"];

pub(super) const DEVICES: &[(Family, Tell<Device>)] = &[
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
            about.system_guid.inspect(|guid| line.label("system_guid", &guid.to_string()));
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
pub(super) const PORT_VALUES: [fn(&Port) -> Option<u64>; PORT_STATES.len()] = [
    |port| port.state.map(u64::from),
    |port| port.physical_state.map(u64::from),
    |port| port.rate,
    |port| port.width.map(|width| width.lanes().into()),
    // The host knows one end of the cable.
    |_| None,
];

pub(super) const PORTS: &[(Family, Tell<Port>)] = &[(
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

pub(super) const NETDEVS: &[(Family, Tell<Netdev>)] = &[
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
        |netdev, line| {
            if !netdev.operstate.is_empty() {
                line.value((netdev.operstate == "up").into());
            }
        },
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

pub(super) const HW_UNKNOWN: Family = Family {
    name: "infiniband_hw_counter",
    kind: Kind::Counter,
    labels: &["fabric", "guid", "port", "device", "counter"],
    help: "A counter of the driver that is not known here, by the name of its file.",
};

/// The family of a directory of the connection manager's counters.
pub(super) fn cm_family(group: &Group) -> Family {
    Family {
        name: group.metric,
        kind: Kind::Counter,
        labels: &["fabric", "guid", "port", "device", "message"],
        help: group.help,
    }
}

pub(super) const DEVICE_UP: Family = Family {
    name: "infiniband_device_up",
    kind: Kind::Gauge,
    labels: DEVICE_LABELS,
    help: "Whether the device and its ports could be read: 0 while it hangs, and for --fabric.forget-after once it is gone.",
};
pub(super) const HEARD: Family = Family {
    name: "infiniband_device_events_heard",
    kind: Kind::Gauge,
    labels: DEVICE_LABELS,
    help: "Whether the device is held open for its asynchronous events; without them a loss of link between two looks is missed.",
};
pub(super) const LINK_LOSSES: Family = Family {
    name: "infiniband_port_link_losses",
    kind: Kind::Counter,
    labels: PORT_LABELS,
    help: "Times that the port stopped being Active, heard or seen, its driver going included: one that is shorter than any look counts, too.",
};
pub(super) const EVENTS: Family = Family {
    name: "infiniband_port_events",
    kind: Kind::Counter,
    labels: EVENT_LABELS,
    help: "Asynchronous events of the port, or of the whole device, since the exporter began.",
};
pub(super) const EVENT_TIMES: Family = Family {
    name: "infiniband_port_event_timestamp_seconds",
    kind: Kind::Gauge,
    labels: EVENT_LABELS,
    help: "When the latest event of each kind came in, in seconds since 1970.",
};

/// All families that only the host tells, but for those of the drivers' tables.
pub fn families() -> impl Iterator<Item = Family> {
    (DEVICES.iter().map(|(family, _)| *family))
        .chain(PORTS.iter().map(|(family, _)| *family))
        .chain([DEVICE_UP, HEARD, LINK_LOSSES, EVENTS, EVENT_TIMES, HW_UNKNOWN])
        .chain(cm::GROUPS.iter().map(cm_family))
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
