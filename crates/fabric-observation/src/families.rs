//! The families that a scrape and the history's export both tell.

use ib_mad::Counter;

use exposition::family::{Family, Head, Kind};

/// The labels of a node.
pub const NODE_LABELS: &[&str] = &["fabric", "guid"];

/// The labels of a link.
pub const LINK_LABELS: &[&str] = &["fabric", "link"];

/// Whether a node answers.
pub const NODE_UP: Family = Family {
    name: "infiniband_node_up",
    kind: Kind::Gauge,
    labels: NODE_LABELS,
    help: "Whether the node is in the fabric and answered in the latest sweep.",
};

/// What a port is, and where its cable leads.
pub const PORT_INFO: Family = Family {
    name: "infiniband_port_info",
    kind: Kind::Gauge,
    labels: &[
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
    help: "A port and the other end of its cable, as a series that is always 1; without a link the end that it last led to.",
};

/// A cable.
pub const LINK_INFO: Family = Family {
    name: "infiniband_link_info",
    kind: Kind::Gauge,
    labels: &[
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
    help: "A cable and its two ends, as a series that is always 1; the end with the lesser GUID comes first, as in the link's id.",
};

/// Whether a cable carries traffic.
pub const LINK_UP: Family = Family {
    name: "infiniband_link_up",
    kind: Kind::Gauge,
    labels: LINK_LABELS,
    help: "Whether the link carries traffic; absent where that is not known.",
};

/// The name of a counter's family.
pub fn counter_family(counter: Counter) -> String {
    format!("infiniband_port_{}", counter.row().metric)
}

/// What stands before a counter's samples: what it counts, and what the specification calls it.
pub fn counter_head(counter: Counter) -> Head {
    let help = format!("{} IBTA: {}.", counter.row().help, counter.row().ibta);
    Head { name: counter_family(counter).into(), kind: Kind::Counter, help: help.into() }
}
