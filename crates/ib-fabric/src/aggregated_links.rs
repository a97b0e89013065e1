//! Links of several planes: what a person sees as one cable is up to four links of the subnet in an XDR fabric.
//!
//! An aggregated port ("APort") is named by the SystemImageGUID and its number at a switch, and by the NodeGUID and its
//! number at an adapter, as in NVIDIA's ibdm/Fabric.h (GPL and BSD headers). The planes of a port of a switch are on up
//! to four nodes with one SystemImageGUID, or on one node; those of an adapter are its ports. None of it was seen on
//! hardware: where HierarchyInfo does not name the planes, only a switch of four Quantum-3 nodes is taken for one.

mod link;

use crate::{PortIndex, PortMap};
pub(crate) use link::system_of;
pub use link::{AggregatedLink, AggregatedPort, GroupSource, PlaneLink, Wiring};

/// The links of several planes of a fabric: none in a fabric without XDR.
#[derive(Clone, Debug, Default)]
pub struct AggregatedLinks {
    links: Vec<AggregatedLink>,
    /// By port, the place in `links`; empty if there are none.
    of_port: PortMap<Option<u32>>,
}

impl AggregatedLinks {
    /// Of these links, in a fabric of so many ports.
    pub(crate) fn new(links: Vec<AggregatedLink>, ports: usize) -> Self {
        let mut found = AggregatedLinks { links, of_port: PortMap::default() };
        if !found.links.is_empty() {
            found.of_port = PortMap::filled(ports, None);
            for (place, link) in (0..).zip(&found.links) {
                link.ports().for_each(|port| found.of_port[port] = Some(place));
            }
        }
        found
    }

    /// Whether no link has several planes.
    pub fn is_empty(&self) -> bool {
        self.links.is_empty()
    }

    /// All of them.
    pub fn as_slice(&self) -> &[AggregatedLink] {
        &self.links
    }

    /// The place of the link that a port belongs to in [`as_slice`](Self::as_slice).
    pub fn place_of(&self, port: PortIndex) -> Option<usize> {
        Some(self.of_port.get(port).copied().flatten()? as usize)
    }

    /// The link that a port belongs to.
    pub fn of(&self, port: PortIndex) -> Option<&AggregatedLink> {
        self.links.get(self.place_of(port)?)
    }
}
