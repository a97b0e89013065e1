//! Metric families that a scrape and an export of the history both have.

use ib_mad::Counter;

use exposition::{Family, MetricType};

/// The labels of a link.
pub const LINK_LABELS: &[&str] = &["fabric", "link"];

/// Whether a node responds.
pub const NODE_UP: Family = Family::gauge(
    "infiniband_node_up",
    &["fabric", "guid"],
    "1 if the node is in the fabric and responded in the latest sweep, else 0.",
);

/// What a port is, and where its cable leads.
pub const PORT_INFO: Family = Family::gauge(
    "infiniband_port_info",
    &[
        "fabric",
        "guid",
        "port",
        "node",
        "host",
        "node_type",
        "front_panel",
        "cage",
        "system_guid",
        "aggregated_port",
        "plane",
        "peer_guid",
        "peer_port",
        "peer_node",
        "peer_host",
        "link",
        "speed",
        "width",
    ],
    "Port and the other end of its cable as labels, always 1. A port without a link keeps its last neighbor. Labels host and peer_host: the hosts of channel adapters. Labels front_panel and cage: what is printed beside the port, in the spelling of ibdiagnet (1/19/1, sw10p2), and its cage, if the device reports them. Labels system_guid, aggregated_port and plane: of a port with one of several planes (XDR), the port that it is a part of; system_guid is the SystemImageGUID of a switch and the NodeGUID of an adapter.",
);

/// A cable.
pub const LINK_INFO: Family = Family::gauge(
    "infiniband_link_info",
    &[
        "fabric",
        "link",
        "guid",
        "port",
        "node",
        "host",
        "node_type",
        "peer_guid",
        "peer_port",
        "peer_node",
        "peer_host",
        "peer_node_type",
        "speed",
        "width",
    ],
    "Link and its two ends as labels, always 1. The end with the lower GUID comes first, as in the link ID. Of a link of several planes (XDR) the ends are those of its lowest plane, and width counts the lanes of all planes that are up. Labels host and peer_host: the hosts of channel adapters.",
);

/// Whether a cable carries traffic.
pub const LINK_UP: Family = Family::gauge(
    "infiniband_link_up",
    LINK_LABELS,
    "1 if the link is up (carries data), 0 if it is down. Absent if unknown.",
);

/// The family of a port counter: its name in the specification, and what it counts.
pub fn counter_family(counter: Counter) -> Family {
    let row = counter.row();
    let name = format!("infiniband_port_{}", row.metric).into();
    let is_cause = row.fields.iter().all(|it| it.attribute.is_details());
    let absent = if is_cause { " Absent if there were none." } else { "" };
    let help = format!("{}: {}{absent}", row.ibta, row.help).into();
    Family { name, kind: MetricType::Counter, labels: &["fabric", "guid", "port"], help }
}
