//! The rings between the nodes of a multi-plane switch (FNM ports), and where a link of one is missing.
//!
//! The four nodes of a Q3400 are joined by two ports each, forward and backward (opensm/osm_planarized.h of NVIDIA). No
//! such ring was seen: so a port without a link is only told apart from one that never has any by the other nodes.

use std::collections::HashMap;

use ib_mad::{Guid, PortRole};

use super::aggregated_links::system_of;
use super::fabric_kind::FabricKind;
use super::link::Link;
use super::ring_gap::RingGap;
use super::topology::Fabric;
use crate::PortIndex;

/// Finds the gaps: a link that was found before is remembered, and is not missing but down.
pub(crate) fn gaps(fabric: &Fabric) -> Vec<RingGap> {
    if fabric.kind == Some(FabricKind::NvLink) {
        return Vec::new();
    }
    let mut systems: HashMap<Guid, Vec<PortIndex>> = HashMap::new();
    for port in fabric.port_indexes() {
        let node = fabric.node_of(port);
        if fabric.port(port).role == Some(PortRole::Fnm) && node.present() {
            systems.entry(system_of(&node.identity)).or_default().push(port);
        }
    }
    let mut gaps: Vec<RingGap> = systems.into_values().filter_map(|it| gap(fabric, it)).collect();
    gaps.sort_by_key(|gap| (gap.link.low, gap.link.high));
    gaps
}

fn gap(fabric: &Fabric, ports: Vec<PortIndex>) -> Option<RingGap> {
    let has_link = |port: &PortIndex| fabric.port(*port).peer.is_some();
    // A node with all of its links, and at least two, says that such ports have some.
    let mut nodes = ports.chunk_by(|a, b| fabric.port(*a).node == fabric.port(*b).node);
    let is_whole = nodes.any(|ports| ports.len() > 1 && ports.iter().all(has_link));
    let links = ports.iter().filter_map(|port| {
        let peer = fabric.port(*port).peer?.port;
        Some(Link { low: *port.min(&peer), high: *port.max(&peer) })
    });
    let link = links.min_by_key(|link| (link.low, link.high)).filter(|_| is_whole)?;
    let open: Vec<PortIndex> = ports.into_iter().filter(|port| !has_link(port)).collect();
    (!open.is_empty()).then_some(RingGap { link, ports: open })
}
