//! Metric families that a scrape and an export of the history both have.

use ib_mad::Counter;

use exposition::{Family, Header, MetricType};

/// The labels of a node.
pub const NODE_LABELS: &[&str] = &["fabric", "guid"];

/// The labels of a link.
pub const LINK_LABELS: &[&str] = &["fabric", "link"];

/// Whether a node answers.
pub const NODE_UP: Family = Family::gauge(
    "infiniband_node_up",
    NODE_LABELS,
    "Whether the node is in the fabric and answered in the latest sweep.",
);

/// What a port is, and where its cable leads.
pub const PORT_INFO: Family = Family::gauge(
    "infiniband_port_info",
    &[
        "fabric",
        "guid",
        "port",
        "node",
        "node_type",
        "peer_guid",
        "peer_port",
        "peer_node",
        "link",
        "speed",
        "width",
    ],
    "A port and the other end of its cable, as a series that is always 1; without a link the end that it last led to.",
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
        "node_type",
        "peer_guid",
        "peer_port",
        "peer_node",
        "peer_node_type",
        "speed",
        "width",
    ],
    "A cable and its two ends, as a series that is always 1; the end with the lesser GUID comes first, as in the link's id.",
);

/// Whether a cable carries traffic.
pub const LINK_UP: Family = Family::gauge(
    "infiniband_link_up",
    LINK_LABELS,
    "Whether the link carries traffic; absent where that is not known.",
);

/// The header of a port counter: what it counts, and what the specification calls it.
pub fn counter_header(counter: Counter) -> Header {
    let row = counter.row();
    let name = format!("infiniband_port_{}", row.metric).into();
    let help = format!("{} IBTA: {}.", row.help, row.ibta).into();
    Header { name, kind: MetricType::Counter, help }
}
