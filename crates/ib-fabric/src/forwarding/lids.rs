//! The LIDs of ports, and the hosts that have them.

use std::ops::Range;

use ib_mad::{Lid, NodeKind};

use crate::topology::Fabric;
use crate::{NodeIndex, PortIndex};

/// The unicast LIDs of a port that has its own: 2^LMC consecutive ones (IBTA 1.4, 4.1.3). Empty of one without.
pub(super) fn lids_of_port(fabric: &Fabric, port: PortIndex) -> Range<u32> {
    let Some(status) = fabric.port(port).status.filter(|it| it.lid.is_unicast()) else {
        return 0..0;
    };
    let first = u32::from(status.lid.0);
    // LMC has 3 bits.
    first..first + (1 << (status.lmc & 7))
}

/// Whether packets to a LID are for this port; assumed where the port did not respond to the discovery.
pub(super) fn may_have_lid(fabric: &Fabric, port: PortIndex, lid: Lid) -> bool {
    fabric.port(port).status.is_none() || lids_of_port(fabric, port).contains(&u32::from(lid.0))
}

/// A LID of a host.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct HostLid {
    pub lid: Lid,
    pub host: NodeIndex,
}

/// Whether a node is a host's channel adapter, and present. Aggregation nodes and routers are no hosts.
pub(super) fn is_host(fabric: &Fabric, node: NodeIndex) -> bool {
    let node = fabric.node(node);
    node.identity.kind == NodeKind::Ca && node.present()
}

/// All LIDs of hosts, in their order; those that all planes of an adapter have once.
pub(super) fn host_lids(fabric: &Fabric) -> Vec<HostLid> {
    let ports = fabric.port_indexes().filter(|port| is_host(fabric, fabric.port(*port).node));
    let mut lids: Vec<HostLid> = ports
        .flat_map(|port| {
            let host = fabric.port(port).node;
            let lids = lids_of_port(fabric, port).filter_map(|lid| u16::try_from(lid).ok());
            lids.map(move |lid| HostLid { lid: Lid(lid), host })
        })
        .collect();
    lids.sort_unstable();
    lids.dedup();
    lids
}
