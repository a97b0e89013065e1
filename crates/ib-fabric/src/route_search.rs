//! The search for the routes of a fabric with planes: whether it has planes, and the shortest routes in it.

use std::collections::{HashMap, HashSet, VecDeque};

use ib_mad::port_state::PortStatus;
use ib_mad::rate::{Speed, Width};
use ib_mad::{DirectedRoute, FrontPanel};

use crate::routes::{PlaneRoot, RouteReason, SwitchRoute, SwitchRoutes};
use crate::topology::{Fabric, Presence};
use crate::{NodeIndex, PortIndex};

/// Whether a link is a plane of a port: no other port of one lane has this speed. A port of four lanes may have lost
/// three of them.
fn is_xdr_lane(status: &PortStatus) -> bool {
    let rate = (status.width, status.speed);
    status.link_up()
        && rate == (Some(Width::X1), Some(Speed::Xdr))
        && Width::widest(status.widths_supported) == Some(Width::X1)
}

/// Whether a fabric has planes, and why.
fn find_reason(fabric: &Fabric, roots: &[PlaneRoot]) -> RouteReason {
    let present = |port: &PortIndex| fabric.node_of(*port).present();
    let ports = || fabric.port_indexes().filter(present);
    let has_plane = |port| fabric.front_panel(port).is_some_and(FrontPanel::is_plane);
    let is_one_lane = |port| fabric.port(port).status.as_ref().is_some_and(is_xdr_lane);
    if roots.iter().any(|root| root.plane > 0) {
        RouteReason::LocalPlanes
    } else if !fabric.front_panels.is_empty() && ports().any(has_plane) {
        RouteReason::FrontPanel
    } else if ports().any(is_one_lane) {
        RouteReason::XdrLane
    } else {
        RouteReason::NoPlanes
    }
}

impl SwitchRoutes {
    /// The routes in a fabric from the local ports of its planes, if it has planes.
    pub(crate) fn find(fabric: &Fabric, mut roots: Vec<PlaneRoot>) -> Self {
        roots.sort_unstable();
        let reason = find_reason(fabric, &roots);
        let mut found = SwitchRoutes { reason, roots, by_switch: HashMap::new() };
        if found.is_directed() {
            for root in found.roots.clone() {
                found.add_routes_from(fabric, root);
            }
        }
        // A stable sort: of two equal ones that of the lower plane.
        for routes in found.by_switch.values_mut() {
            routes.sort_by_key(|it| it.route.hops());
            routes.shrink_to_fit();
        }
        found
    }

    /// Adds the shortest route of a plane to each switch.
    fn add_routes_from(&mut self, fabric: &Fabric, PlaneRoot { plane, port }: PlaneRoot) {
        let Some(start) = fabric.find(port) else { return };
        let mut seen: HashSet<NodeIndex> = HashSet::new();
        // Routes end before these ports.
        let mut queue = VecDeque::new();
        let local = fabric.port(start).node;
        let route = DirectedRoute::of_plane(plane);
        seen.insert(local);
        if fabric.node(local).is_switch() {
            self.by_switch.entry(local).or_default().push(SwitchRoute { route, before: local });
            queue.extend(fabric.ports_of(local).map(|port| (port, route)));
        } else {
            queue.push_back((start, route));
        }
        while let Some((port, route)) = queue.pop_front() {
            let Some(peer) = fabric.port(port).connected_peer() else { continue };
            let node = fabric.port(peer).node;
            // Others forward nothing, or have no route beyond them.
            let leads_on =
                fabric.node(node).is_switch() && fabric.node(node).presence == Presence::Found;
            let Some(route) = route.then(fabric.port(port).number).filter(|_| leads_on) else {
                continue;
            };
            if seen.insert(node) {
                let before = fabric.port(port).node;
                self.by_switch.entry(node).or_default().push(SwitchRoute { route, before });
                queue.extend(fabric.ports_of(node).map(|port| (port, route)));
            }
        }
    }

    /// The route to the node of a port, by which the port is reached if it is an adapter's, with this route to each
    /// switch.
    pub(crate) fn to_port(
        &self,
        fabric: &Fabric,
        port: PortIndex,
        to_switch: impl Fn(NodeIndex) -> Option<DirectedRoute>,
    ) -> Option<DirectedRoute> {
        let of_port = fabric.port(port);
        if fabric.node(of_port.node).is_switch() {
            return to_switch(of_port.node);
        }
        let key = fabric.port_key(port);
        if let Some(root) = self.roots.iter().find(|root| root.port == key) {
            return Some(DirectedRoute::of_plane(root.plane));
        }
        let peer = fabric.port(of_port.connected_peer()?);
        if !fabric.node(peer.node).is_switch() {
            // Back to back with our own port.
            let root =
                self.roots.iter().find(|root| fabric.find(root.port) == of_port.connected_peer());
            return DirectedRoute::of_plane(root?.plane).then(peer.number);
        }
        to_switch(peer.node)?.then(peer.number)
    }

    /// The best route to the node of a port.
    pub(crate) fn best_to_port(&self, fabric: &Fabric, port: PortIndex) -> Option<DirectedRoute> {
        self.to_port(fabric, port, |switch| Some(self.to_switch(switch).first()?.route))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::assembly::DiscoveredFabric;
    use crate::names::Naming;
    use crate::testing::{end, found};
    use ib_mad::{Guid, Moment, NodeKind};

    /// A host with two ports at two switches, which are connected, and a switch behind the second one.
    fn two_planes(planes: [u8; 2], rate: (Width, Speed)) -> Fabric {
        two_planes_of(planes, rate, rate.0)
    }

    /// The same with ports that support a width.
    fn two_planes_of(planes: [u8; 2], rate: (Width, Speed), supported: Width) -> Fabric {
        let mut nodes = vec![found(1, NodeKind::Ca, 2)];
        nodes.extend([2, 3, 4].map(|guid| found(guid, NodeKind::Switch, 4)));
        let statuses = nodes[1].ports.iter_mut().filter_map(|port| port.status.as_mut());
        for status in statuses {
            (status.width, status.speed) = (Some(rate.0), Some(rate.1));
            status.widths_supported = supported.up_to();
        }
        let links = vec![
            (end(1, 1), end(2, 1)),
            (end(1, 2), end(3, 1)),
            (end(2, 2), end(3, 2)),
            (end(3, 3), end(4, 1)),
        ];
        let roots = [1, 2]
            .map(|port| PlaneRoot { plane: planes[usize::from(port) - 1], port: end(1, port) });
        let found = DiscoveredFabric {
            nodes,
            links,
            local_port: Some(end(1, 1)),
            plane_roots: roots.to_vec(),
            ..DiscoveredFabric::default()
        };
        Fabric::assemble(found, &Naming::default(), Moment(10), None)
    }

    fn routes_to(fabric: &Fabric, guid: u64) -> Vec<String> {
        let node = fabric.node_by_guid(Guid(guid)).unwrap();
        let routes = fabric.routes.to_switch(node).iter();
        routes.map(|it| format!("{:?}", it.route)).collect()
    }

    #[test]
    fn each_plane_has_its_shortest_route_and_the_shortest_is_first() {
        let fabric = two_planes([1, 2], (Width::X4, Speed::Ndr));
        assert_eq!(routes_to(&fabric, 2), ["0,1 of plane 1", "0,2,2 of plane 2"]);
        assert_eq!(routes_to(&fabric, 4), ["0,2,3 of plane 2", "0,1,2,3 of plane 1"]);
        let route = |port| fabric.routes.best_to_port(&fabric, fabric.find(port).unwrap());
        // Our own ports, by no hop of their planes.
        assert_eq!(route(end(1, 2)), Some(DirectedRoute::of_plane(2)));
        assert_eq!(route(end(1, 1)), Some(DirectedRoute::of_plane(1)));
    }

    #[test]
    fn planes_are_recognized_by_the_local_hca_or_by_a_link_of_one_xdr_lane() {
        for (planes, rate, reason) in [
            ([1, 2], (Width::X4, Speed::Ndr), RouteReason::LocalPlanes),
            ([0, 0], (Width::X1, Speed::Xdr), RouteReason::XdrLane),
            // A bad cable, and an XDR link of four lanes.
            ([0, 0], (Width::X1, Speed::Ndr), RouteReason::NoPlanes),
            ([0, 0], (Width::X4, Speed::Xdr), RouteReason::NoPlanes),
        ] {
            let fabric = two_planes(planes, rate);
            assert_eq!(fabric.routes.reason(), reason, "{planes:?} {rate:?}");
            let has_routes = !routes_to(&fabric, 4).is_empty();
            assert_eq!(has_routes, reason != RouteReason::NoPlanes, "{planes:?} {rate:?}");
        }
        // One that lost three of its lanes.
        let degraded = two_planes_of([0, 0], (Width::X1, Speed::Xdr), Width::X4);
        assert_eq!(degraded.routes.reason(), RouteReason::NoPlanes);
    }
}
