//! Directed routes to the switches of a fabric with planes, whose switches may not respond to LID-routed subnet
//! management.
//!
//! NVIDIA's planarized fabrics (XDR) have two to four planes, and a multi-plane HCA has a port in each. rdma-core and
//! ibdiagnet send all SMPs there by directed route; whether a LID-routed one arrives beyond the first switch is not
//! promised. The routes are the shortest ones in the graph that a discovery found, one from the local port of each
//! plane: planes are connected with each other inside switches, so that one plane's port reaches the others'.

use std::collections::HashMap;

use display_text::labeled_enum;
use ib_mad::{DirectedRoute, PortKey};

use crate::index::NodeIndex;

labeled_enum! {
    /// How sweeps read port states.
    pub enum StateRoute {
        Lid, "lid", "By LID: switches forward the requests in hardware.";
        Directed, "directed", "By directed route from the discovery, which each sweep checks.";
        Discovery, "discovery", "Not: they are those of the latest discovery.";
    }
}

labeled_enum! {
    /// Why they do.
    #[derive(Default)]
    pub enum RouteReason {
        #[default]
        NoPlanes, "no_planes", "Nothing shows that the fabric has planes.";
        LocalPlanes, "local_planes", "The local HCA is multi-plane.";
        FrontPanel, "front_panel", "A switch reports a plane of a front-panel port.";
        XdrLane, "xdr_lane", "A link has one XDR lane, as each plane of a port has.";
        NoResponse, "no_response", "No switch responded to subnet management in a sweep.";
    }
}

/// The local port of a plane, from which directed routes start.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct PlaneRoot {
    /// 0 with an ordinary HCA.
    pub plane: u8,
    /// The port.
    pub port: PortKey,
}

/// A directed route to a switch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct SwitchRoute {
    pub route: DirectedRoute,
    /// The node before the switch: its own route of this plane is this one without the last hop.
    pub before: NodeIndex,
}

/// The routes to the switches of a fabric with planes; none to those of another one.
#[derive(Clone, Debug, Default)]
pub struct SwitchRoutes {
    pub(super) reason: RouteReason,
    pub(super) roots: Vec<PlaneRoot>,
    /// Of each plane the shortest, and of all planes the shortest first. An adapter's is that of its switch and a hop.
    pub(super) by_switch: HashMap<NodeIndex, Vec<SwitchRoute>>,
}

impl RouteReason {
    /// How sweeps read port states for this reason.
    pub fn route(self) -> StateRoute {
        match self {
            RouteReason::NoPlanes => StateRoute::Lid,
            RouteReason::NoResponse => StateRoute::Discovery,
            RouteReason::LocalPlanes | RouteReason::FrontPanel | RouteReason::XdrLane => {
                StateRoute::Directed
            }
        }
    }
}

impl SwitchRoutes {
    /// The same without routes, where our own port did not respond to the discovery.
    pub(crate) fn without_routes(&self) -> Self {
        SwitchRoutes { reason: self.reason, ..SwitchRoutes::default() }
    }

    /// Whether sweeps read port states by these routes.
    pub fn is_directed(&self) -> bool {
        self.reason.route() == StateRoute::Directed
    }

    /// Whether the fabric has planes, and how that is known.
    pub fn reason(&self) -> RouteReason {
        self.reason
    }

    /// The local ports that routes start from.
    pub fn roots(&self) -> &[PlaneRoot] {
        &self.roots
    }

    /// The routes to a switch, the best first.
    pub(crate) fn to_switch(&self, switch: NodeIndex) -> &[SwitchRoute] {
        self.by_switch.get(&switch).map_or(&[], Vec::as_slice)
    }
}
