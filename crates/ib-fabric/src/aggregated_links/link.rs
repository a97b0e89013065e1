//! A link of several planes, and its ends.

use ib_mad::{Guid, NodeIdentity, NodeKind};

use crate::PortIndex;
use crate::link::Link;

/// A port of several planes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct AggregatedPort {
    /// SystemImageGUID of a switch, NodeGUID of an adapter.
    pub system: Guid,
    /// The number of the port in its system.
    pub number: u16,
}

display_text::labeled_enum! {
    /// How it is known which links are planes of one.
    pub enum GroupSource {
        HierarchyInfo, "hierarchy_info", "Both ends report their aggregated ports.";
        Guess, "guess", "Equal ports of the four nodes of a switch lead to one peer, which suggests it.";
    }
}

/// Where a plane leads, compared with the others of its link.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wiring {
    /// To the same plane of the same port.
    Straight,
    /// To another plane of that port.
    OtherPlane,
    /// To another port than most planes.
    OtherPort,
}

/// A plane of a link.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PlaneLink {
    /// The plane, from 1 on, at the first end of the whole link, or at the only end that belongs to it.
    pub plane: u8,
    /// The link of the subnet.
    pub link: Link,
    /// Its ports in the order of the whole link's ends.
    pub ports: [PortIndex; 2],
    /// Where it leads.
    pub wiring: Wiring,
}

/// A link of several planes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AggregatedLink {
    /// Both ends, that of the lowest plane link's lower end first.
    pub ends: [AggregatedPort; 2],
    /// How it is known.
    pub source: GroupSource,
    /// The planes, by number. Each link of the subnet is a plane of one link at most.
    pub planes: Vec<PlaneLink>,
    /// The planes of its ends that lead to another port, those included that count as planes of another link.
    pub astray: Vec<PlaneLink>,
    /// How many planes both ends report to have; 0 if that is not known.
    pub expected: u8,
}

impl AggregatedLink {
    /// The lowest link among its planes, whose id it has: of those that join its ends, if there are any.
    pub fn lead(&self) -> Link {
        let order = |plane: &&PlaneLink| {
            (plane.wiring == Wiring::OtherPort, plane.link.low, plane.link.high)
        };
        let none = Link { low: PortIndex(0), high: PortIndex(0) };
        self.planes.iter().min_by_key(order).map_or(none, |plane| plane.link)
    }

    /// What identifies it while its planes go down and come up: its ends in their order.
    pub fn key(&self) -> [AggregatedPort; 2] {
        let [a, b] = self.ends;
        [a.min(b), a.max(b)]
    }

    /// Whether a plane leads elsewhere than to its own number at the port that most lead to.
    pub fn is_swapped(&self) -> bool {
        let is_crossed = |plane: &PlaneLink| plane.wiring == Wiring::OtherPlane;
        !self.astray.is_empty() || self.planes.iter().any(is_crossed)
    }

    /// How many of its planes have no link, and never had one since the exporter started.
    pub fn missing(&self) -> u8 {
        let is_other = |plane: &&PlaneLink| !self.planes.contains(plane);
        let known = self.planes.len() + self.astray.iter().filter(is_other).count();
        self.expected.saturating_sub(known.min(u8::MAX.into()) as u8)
    }

    /// All ports of its planes.
    pub fn ports(&self) -> impl Iterator<Item = PortIndex> + '_ {
        self.planes.iter().flat_map(|plane| plane.link.ports())
    }
}

/// What names the aggregated ports of a node: an adapter by itself, and of a switch all nodes together.
pub(crate) fn system_of(identity: &NodeIdentity) -> Guid {
    let is_system = identity.kind == NodeKind::Switch && identity.system_guid != Guid::default();
    if is_system { identity.system_guid } else { identity.guid }
}
