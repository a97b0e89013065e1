//! Sweeps by directed route in fabrics with planes: which routes are used, and that nothing is said of a node that the
//! sweep has not confirmed.

use std::collections::BTreeMap;

use super::*;
use crate::PortIndex;
use crate::routes::{RouteReason, StateRoute};
use crate::snapshot::PortRead;
use ib_mad::hierarchy::{HierarchyInfo, template};
use ib_mad::port_info::PortInfo;
use ib_mad::smp::{NodeInfo, SwitchInfo, SwitchPortStateTable};
use ib_umad::testing::ScriptedNode;

/// Our HCA has the ports of two planes, each at its leaf.
const LOCAL: usize = 0;
/// The leaf of each plane: two nodes of one box.
const LEAVES: [usize; 2] = [1, 2];
/// Two spines of each plane: in each box one node of each.
const SPINES: [[usize; 2]; 2] = [[3, 4], [5, 6]];
/// The same at the far side.
const FAR_LEAVES: [usize; 2] = [7, 8];
const FAR_HOSTS: [usize; 2] = [9, 10];
/// The port to the other node of the same box.
const RING: u8 = 40;

/// Two planes with a leaf at each side and two spines between them. The ports of a plane have equal numbers.
fn two_planes(change: impl Fn(&mut ScriptedNode)) -> ScriptedTransport {
    let mut kinds = vec![(CA, 2)];
    kinds.extend([(SWITCH, RING); 8]);
    kinds.extend([(CA, 2); 2]);
    let mut links = Vec::new();
    for plane in [0, 1] {
        let port = plane as u8 + 1;
        links.push(((LOCAL, port), (LEAVES[plane], 1)));
        for (nth, host) in (1..).zip(FAR_HOSTS) {
            links.push(((host, port), (FAR_LEAVES[plane], nth)));
        }
        for (nth, spine) in (0..).zip(SPINES[plane]) {
            links.push(((LEAVES[plane], 10 + nth), (spine, 1)));
            links.push(((FAR_LEAVES[plane], 10 + nth), (spine, 2)));
        }
    }
    let boxes = [LEAVES, [SPINES[0][0], SPINES[1][0]], [SPINES[0][1], SPINES[1][1]], FAR_LEAVES];
    links.extend(boxes.map(|[one, other]| ((one, RING), (other, RING))));
    let mut nodes = fabric(&kinds, &links);
    // The ports of an adapter have one LID.
    for adapter in [LOCAL, FAR_HOSTS[0], FAR_HOSTS[1]] {
        let lid = nodes[adapter].lids[&1];
        nodes[adapter].lids.insert(2, lid);
    }
    nodes.iter_mut().for_each(change);
    let mut transport = ScriptedTransport::new(nodes);
    transport.planes = BTreeMap::from([(1, (LOCAL, 1)), (2, (LOCAL, 2))]);
    lose(&mut transport, |_| false);
    transport
}

/// Loses what is said to be lost, and each LID-routed SMP beyond the first switch.
fn lose(transport: &mut ScriptedTransport, is_lost: fn(&OutgoingMad) -> bool) {
    transport.reply = Box::new(move |outgoing: &OutgoingMad| {
        let is_by_lid = outgoing.class.is_smp() && !outgoing.mad.is_directed();
        if is_by_lid || is_lost(outgoing) { Reply::Lost } else { Reply::Answered(ROUND_TRIP) }
    });
}

fn port(fabric: &Fabric, node: usize, number: u8) -> PortIndex {
    fabric.find(PortKey::new(Guid(node as u64 + 1), number)).unwrap()
}

/// Neither a wrong state nor an unknown one.
const NOTHING: [Vec<String>; 2] = [Vec::new(), Vec::new()];

fn cut(transport: &mut ScriptedTransport, node: usize, number: u8) {
    if let Some((peer, far)) = transport.nodes[node].links.remove(&number) {
        transport.nodes[peer].links.remove(&far);
    }
}

/// The ports of whose links a sweep says something else than is true, and those of which it knows nothing.
fn wrong_and_unknown(transport: &ScriptedTransport, swept: &SweepResult) -> [Vec<String>; 2] {
    let fabric = &swept.snapshot.fabric;
    let (mut wrong, mut unknown) = (Vec::new(), Vec::new());
    for port in fabric.port_indexes() {
        let PortKey { guid, number } = fabric.port_key(port);
        let is_linked = transport.nodes[guid.0 as usize - 1].links.contains_key(&number);
        match swept.snapshot.status(port) {
            Some(status) if status.link_up() != (is_linked || number == 0) => {
                wrong.push(fabric.port_label(port));
            }
            Some(_) => {}
            None => unknown.push(fabric.port_label(port)),
        }
    }
    [wrong, unknown]
}

/// How many SMPs of an attribute were sent.
fn count(transport: &ScriptedTransport, attribute: u16) -> usize {
    let smps = transport.sent.iter().filter(|sent| sent.class.is_smp());
    smps.filter(|sent| sent.mad.attribute() == attribute).count()
}

#[test]
fn discovery_from_both_planes_finds_each_node_once() {
    let mut transport = two_planes(|_| {});
    let found = discovered(&mut transport);
    assert_eq!((found.failures, found.local_error), (0, None));
    // What both planes lead to is asked once: PortInfo of each port.
    assert_eq!(count(&transport, PortInfo::ID), 8 * (usize::from(RING) + 1) + 3 * 2);
    let fabric = assembled(&mut transport);
    assert_eq!((fabric.nodes.len(), fabric.links().count()), (11, 6 + 8 + 4));
    assert_eq!(fabric.local_port, Some(port(&fabric, LOCAL, 1)));
    assert_eq!(fabric.routes.reason(), RouteReason::LocalPlanes);
    assert_eq!(fabric.routes.roots().len(), 2);
    // One plane's port leads to the other plane, too.
    transport.planes.remove(&1);
    let fabric = assembled(&mut transport);
    assert_eq!((fabric.nodes.len(), fabric.links().count()), (11, 6 + 8 + 4));
}

#[test]
fn broken_ring_hides_a_plane_from_the_other_and_not_from_its_own_port() {
    let mut transport = two_planes(|_| {});
    for node in [LEAVES[0], SPINES[0][0], SPINES[0][1], FAR_LEAVES[0]] {
        cut(&mut transport, node, RING);
    }
    assert_eq!(assembled(&mut transport).nodes.len(), 11);
    transport.planes.remove(&1);
    // The hosts have ports in both planes.
    assert_eq!(assembled(&mut transport).nodes.len(), 7);
}

#[test]
fn plane_without_its_local_port_is_hidden_not_absent() {
    for is_active in [false, true] {
        let mut transport = two_planes(|_| {});
        // Nothing connects the planes.
        for node in [LEAVES[0], SPINES[0][0], SPINES[0][1], FAR_LEAVES[0]] {
            cut(&mut transport, node, RING);
        }
        let mut fabric = assembled(&mut transport);
        if is_active {
            lose(&mut transport, |outgoing| outgoing.plane == 2);
        } else {
            transport.planes.remove(&2);
        }
        // Also in the discovery after the next.
        for discovery in 0..3 {
            let found = discovered(&mut transport).fabric;
            let known = Some((&*fabric, Moment(0)));
            fabric = Arc::new(Fabric::assemble(found, &Naming::default(), Moment(1), known));
            let count =
                |presence| fabric.nodes.iter().filter(|node| node.presence == presence).count();
            let counts = [Presence::Found, Presence::Hidden, Presence::Absent].map(count);
            assert_eq!(counts, [7, 4, 0], "{is_active} {discovery}");
        }
        transport.planes.insert(2, (LOCAL, 2));
        lose(&mut transport, |_| false);
        let found = discovered(&mut transport).fabric;
        let known = Some((&*fabric, Moment(0)));
        let back = Fabric::assemble(found, &Naming::default(), Moment(2), known);
        assert!(back.nodes.iter().all(|node| node.presence == Presence::Found));
    }
}

#[test]
fn leaf_that_lost_our_cable_is_reached_by_the_other_plane() {
    let mut transport = two_planes(|_| {});
    let fabric = assembled(&mut transport);
    cut(&mut transport, LOCAL, 2);
    transport.planes.remove(&2);
    let found = discovered(&mut transport).fabric;
    let known = Some((&*fabric, Moment(0)));
    let after = Fabric::assemble(found, &Naming::default(), Moment(1), known);
    assert!(after.nodes.iter().all(|node| node.presence == Presence::Found));
    assert!(after.port(port(&after, LOCAL, 2)).connected_peer().is_none());
}

#[test]
fn sweep_reads_states_although_lid_routed_smps_are_lost() {
    let mut transport = two_planes(|_| {});
    let fabric = assembled(&mut transport);
    transport.sent.clear();
    let before = transport.now();
    let mut agents = AgentCache::default();
    let quiet = swept(&mut transport, &fabric, &mut agents);
    assert!(!quiet.changed && !quiet.lids_changed && !quiet.states_unavailable);
    assert_eq!(wrong_and_unknown(&transport, &quiet), NOTHING);
    let by_lid = |sent: &&OutgoingMad| sent.class.is_smp() && !sent.mad.is_directed();
    assert_eq!(transport.sent.iter().find(by_lid).map(|sent| sent.lid), None);
    assert!(transport.now().since(before) < Duration::from_secs(1));
    let manager = quiet.snapshot.managers.as_ref().unwrap();
    assert_eq!(manager.len(), 1, "one, although both ports of its adapter announce it");
    // A cable that is pulled is noticed.
    cut(&mut transport, FAR_LEAVES[1], 11);
    let after = swept(&mut transport, &fabric, &mut agents);
    assert!(after.changed);
    assert_eq!(wrong_and_unknown(&transport, &after), NOTHING);
    assert_eq!(after.unconfirmed_switches, 0);
}

#[test]
fn manager_is_asked_by_another_plane_if_one_is_lost() {
    let [host, _] = FAR_HOSTS;
    // The leaf of its plane 1 has lost its other links, so that no route leads there any more; or its own cable is pulled.
    let losses: [&[(usize, u8)]; 2] =
        [&[10, 11, RING].map(|number| (FAR_LEAVES[0], number)), &[(host, 1)]];
    for (is_announced, lost) in [(true, losses[0]), (false, losses[0]), (true, losses[1])] {
        let mut transport = two_planes(|_| {});
        let lid = transport.nodes[host].lids[&1];
        transport.nodes.iter_mut().for_each(|node| (node.sm_lid, node.manager) = (lid, None));
        if is_announced {
            transport.nodes[host].manager = Some((3, 0, 1));
        }
        let fabric = assembled(&mut transport);
        transport.nodes[host].manager = Some((3, 0, 1));
        for &(node, number) in lost {
            cut(&mut transport, node, number);
        }
        let swept = swept(&mut transport, &fabric, &mut AgentCache::default());
        let managers = swept.snapshot.managers.unwrap();
        let ports: Vec<PortIndex> = managers.iter().map(|manager| manager.port).collect();
        assert_eq!(ports, [port(&fabric, host, 2)], "{is_announced} {lost:?}");
    }
}

#[test]
fn changed_lids_of_switches_and_adapters_are_noticed_by_route() {
    for [node, other] in [[SPINES[1][0], SPINES[1][1]], FAR_HOSTS] {
        let mut transport = two_planes(|_| {});
        let fabric = assembled(&mut transport);
        let mut agents = AgentCache::default();
        assert!(!swept(&mut transport, &fabric, &mut agents).lids_changed);
        // They exchange their LIDs, by which counters are read.
        let lids = transport.nodes[node].lids.clone();
        transport.nodes[node].lids = std::mem::replace(&mut transport.nodes[other].lids, lids);
        assert!(swept(&mut transport, &fabric, &mut agents).lids_changed, "{node}");
        // In a time of changes only what is confirmed before and after counts.
        let confirming = swept_confirming(&mut transport, &fabric, &mut AgentCache::default());
        let reading = |node, number| confirming.snapshot.reading(port(&fabric, node, number));
        assert!(confirming.lids_changed && reading(node, 2).is_none());
        assert!(reading(FAR_LEAVES[0], 1).is_some());
    }
}

#[test]
fn switch_that_had_no_lid_has_not_changed_it() {
    for is_silent in [false, true] {
        let mut transport = two_planes(|_| {});
        let [switch, _] = SPINES[0];
        let lids = std::mem::take(&mut transport.nodes[switch].lids);
        if is_silent {
            // Port 0 of the spine does not respond to the discovery.
            lose(&mut transport, |outgoing| {
                let is_port0 =
                    outgoing.mad.attribute() == PortInfo::ID && outgoing.mad.modifier() == 0;
                is_port0 && outgoing.mad.route_ports() == [1, 10]
            });
        }
        let fabric = assembled(&mut transport);
        let zero = fabric.port(port(&fabric, switch, 0)).status;
        assert_eq!(zero.is_none(), is_silent);
        lose(&mut transport, |_| false);
        transport.nodes[switch].lids = lids;
        let after = swept(&mut transport, &fabric, &mut AgentCache::default());
        assert!(!after.lids_changed && !after.sm_lid_changed, "{is_silent}");
        assert_eq!(wrong_and_unknown(&transport, &after), NOTHING, "{is_silent}");
        assert_eq!(after.changed, !is_silent, "a discovery finds its LID");
        let confirming = swept_confirming(&mut transport, &fabric, &mut AgentCache::default());
        let node = fabric.node_by_guid(Guid(switch as u64 + 1)).unwrap();
        assert!(!confirming.lids_changed && confirming.snapshot.is_up(node), "{is_silent}");
    }
}

#[test]
fn adapter_that_replaced_another_and_got_its_lid_is_noticed() {
    let mut transport = two_planes(|_| {});
    let fabric = assembled(&mut transport);
    let mut agents = AgentCache::default();
    assert!(!swept(&mut transport, &fabric, &mut agents).lids_changed);
    transport.nodes[FAR_HOSTS[0]].guid = 0x99;
    assert!(swept(&mut transport, &fabric, &mut agents).lids_changed);
    let confirming = swept_confirming(&mut transport, &fabric, &mut AgentCache::default());
    let reading = |node, number| confirming.snapshot.reading(port(&fabric, node, number));
    assert!(reading(FAR_HOSTS[0], 1).is_none() && reading(FAR_HOSTS[1], 1).is_some());
}

#[test]
fn request_that_is_not_sent_once_closes_no_plane() {
    let mut transport = two_planes(|_| {});
    // Nothing connects the planes.
    for node in [LEAVES[0], SPINES[0][0], SPINES[0][1], FAR_LEAVES[0]] {
        cut(&mut transport, node, RING);
    }
    let fabric = assembled(&mut transport);
    for (refusals, unconfirmed) in [(1, 0), (usize::MAX, 4)] {
        let mut refused = 0;
        transport.reply = Box::new(move |outgoing: &OutgoingMad| {
            if outgoing.plane == 1 && refused < refusals {
                refused += 1;
                return Reply::Refused;
            }
            let is_by_lid = outgoing.class.is_smp() && !outgoing.mad.is_directed();
            if is_by_lid { Reply::Lost } else { Reply::Answered(ROUND_TRIP) }
        });
        let after = swept(&mut transport, &fabric, &mut AgentCache::default());
        assert_eq!(after.unconfirmed_switches, unconfirmed, "{refusals}");
    }
}

#[test]
fn local_port_is_that_of_the_lowest_plane() {
    let mut transport = two_planes(|_| {});
    transport.reply = Box::new(|outgoing: &OutgoingMad| {
        let is_slow = outgoing.plane == 1 && outgoing.mad.route_ports().is_empty();
        Reply::Answered(if is_slow { 40 * ROUND_TRIP } else { ROUND_TRIP })
    });
    let found = discovered(&mut transport);
    assert_eq!(found.fabric.local_port, Some(PortKey::new(Guid(1), 1)));
}

#[test]
fn routes_of_another_plane_replace_those_of_a_dead_one() {
    let mut transport = two_planes(|_| {});
    let fabric = assembled(&mut transport);
    let mut agents = AgentCache::default();
    swept(&mut transport, &fabric, &mut agents);
    cut(&mut transport, LOCAL, 1);
    transport.planes.remove(&1);
    transport.reply = Box::new(|outgoing: &OutgoingMad| {
        let is_by_lid = outgoing.class.is_smp() && !outgoing.mad.is_directed();
        match outgoing.plane {
            1 => Reply::Refused,
            _ if is_by_lid => Reply::Lost,
            _ => Reply::Answered(ROUND_TRIP),
        }
    });
    transport.sent.clear();
    let before = transport.now();
    let after = swept(&mut transport, &fabric, &mut agents);
    let [wrong, unknown] = wrong_and_unknown(&transport, &after);
    assert_eq!((wrong, after.unconfirmed_switches), (Vec::new(), 0));
    assert_eq!(unknown, ["node 1 port 1"], "it is down, and cannot be asked");
    assert!(after.changed, "its link is down");
    assert!(transport.now().since(before) < Duration::from_secs(1));
}

#[test]
fn leaf_that_hangs_costs_the_time_of_one_switch() {
    let mut transport = two_planes(|_| {});
    let fabric = assembled(&mut transport);
    let mut agents = AgentCache::default();
    swept(&mut transport, &fabric, &mut agents);
    // Nothing of plane 1 gets beyond our leaf, and it does not respond to the other plane either.
    lose(&mut transport, |outgoing| {
        let route = outgoing.mad.route_ports();
        let is_to_leaf = outgoing.plane == 2 && route == [2, RING];
        outgoing.class.is_smp() && (outgoing.plane == 1 && !route.is_empty() || is_to_leaf)
    });
    for sweep in 0..3 {
        transport.sent.clear();
        let before = transport.now();
        let after = swept(&mut transport, &fabric, &mut agents);
        let [wrong, unknown] = wrong_and_unknown(&transport, &after);
        assert_eq!((wrong, after.unconfirmed_switches), (Vec::new(), 1), "{sweep}");
        // Its links to the spines and to the other leaf are read there; of its other ports nothing is known, nor of
        // our port at its other end, which can be asked itself.
        assert!(unknown.iter().all(|port| port.starts_with("node 2 ")), "{sweep}: {unknown:?}");
        let silent = after.snapshot.silent.iter().filter(|silent| **silent).count();
        assert_eq!(silent, 0, "its counters are read by LID");
        // The first time both planes' routes to it time out, then one of them.
        let took = transport.now().since(before);
        let limit = Duration::from_secs(if sweep == 0 { 5 } else { 3 });
        assert!(took < limit, "{sweep}: {took:?}");
        assert_eq!(after.changed, sweep == 0, "a rediscovery is asked for once");
        let node_infos = count(&transport, NodeInfo::ID);
        // Of the ports of two adapters, too.
        assert!(node_infos < 8 + 8 + 4, "{sweep}: {node_infos}");
    }
}

/// Switches with odd GUIDs announce a change. One of two spines has one.
fn distinct(node: &mut ScriptedNode) {
    node.state_change = node.kind == SWITCH && node.guid % 2 == 1;
}

#[test]
fn moved_cables_show_no_state_under_the_wrong_guid() {
    for planes in [1, 2] {
        for tables in [false, true] {
            let mut transport = two_planes(|node| {
                distinct(node);
                node.state_table = tables && node.kind == SWITCH;
            });
            if planes == 1 {
                for node in [LEAVES[0], SPINES[0][0], SPINES[0][1], FAR_LEAVES[0]] {
                    cut(&mut transport, node, RING);
                }
            }
            // One spine has a link more than the other.
            let [one, other] = SPINES[0];
            transport.nodes[one].links.insert(20, (one, 21));
            transport.nodes[one].links.insert(21, (one, 20));
            let fabric = assembled(&mut transport);
            let mut agents = AgentCache::default();
            for _ in 0..3 {
                swept(&mut transport, &fabric, &mut agents);
            }
            // The cables of our leaf to both spines are exchanged.
            for (number, spine) in [(10, other), (11, one)] {
                transport.nodes[LEAVES[0]].links.insert(number, (spine, 1));
                transport.nodes[spine].links.insert(1, (LEAVES[0], number));
            }
            // And the one has lost the link.
            cut(&mut transport, one, 20);
            let after = swept(&mut transport, &fabric, &mut agents);
            let about = format!("{planes} planes, tables {tables}");
            let [wrong, unknown] = wrong_and_unknown(&transport, &after);
            assert_eq!(wrong, Vec::<String>::new(), "{about}");
            assert!(after.changed, "{about}: a rediscovery is asked for");
            for guid in &after.state_changes {
                assert_eq!(guid.0 % 2, 1, "{about}: {guid} announces no change");
            }
            if planes == 1 {
                // No route is left to the spines, nor through them.
                assert_eq!(after.unconfirmed_switches, 3, "{about}");
                assert!(unknown.len() > 100, "{about}: {unknown:?}");
            } else {
                assert_eq!((after.unconfirmed_switches, unknown), (0, Vec::new()), "{about}");
            }
            let again = assembled(&mut transport);
            let again = swept(&mut transport, &again, &mut agents);
            assert_eq!(again.unconfirmed_switches, 0, "{about}: new routes");
            assert_eq!(wrong_and_unknown(&transport, &again)[0], Vec::<String>::new(), "{about}");
        }
    }
}

/// A wire on which two cables are exchanged at a given MAD.
struct Moving {
    scripted: ScriptedTransport,
    sent: usize,
    at: usize,
}

impl MadTransport for Moving {
    fn now(&self) -> Moment {
        self.scripted.now()
    }

    fn anchor(&self) -> ib_mad::moment::Anchor {
        self.scripted.anchor()
    }

    fn local_port(&self) -> ib_umad::LocalPort {
        self.scripted.local_port()
    }

    fn refresh(&mut self) {}

    fn send(&mut self, outgoing: &OutgoingMad) -> Result<(), ib_umad::SendError> {
        if self.sent == self.at {
            let [one, other] = SPINES[0];
            for (number, spine) in [(10, other), (11, one)] {
                self.scripted.nodes[LEAVES[0]].links.insert(number, (spine, 1));
                self.scripted.nodes[spine].links.insert(1, (LEAVES[0], number));
            }
        }
        self.sent += 1;
        self.scripted.send(outgoing)
    }

    fn receive(
        &mut self,
        until: Moment,
    ) -> Result<Option<ib_umad::Received>, ib_umad::TransportError> {
        self.scripted.receive(until)
    }
}

#[test]
fn cable_that_moves_during_a_sweep_shows_no_state_under_the_wrong_guid() {
    let mut ends = 0;
    for at in (0..4000).step_by(7) {
        let mut scripted = two_planes(distinct);
        let [one, _] = SPINES[0];
        scripted.nodes[one].links.insert(20, (one, 21));
        scripted.nodes[one].links.insert(21, (one, 20));
        let fabric = assembled(&mut scripted);
        let mut transport = Moving { scripted, sent: 0, at };
        let after = swept(&mut transport, &fabric, &mut AgentCache::default());
        let [wrong, _] = wrong_and_unknown(&transport.scripted, &after);
        assert_eq!(wrong, Vec::<String>::new(), "at MAD {at}");
        if transport.sent <= at {
            ends = at;
            break;
        }
    }
    assert!(ends > 500, "{ends}");
}

#[test]
fn sweep_with_tables_has_five_smps_per_switch() {
    let mut transport = two_planes(|node| {
        node.state_table = node.kind == SWITCH;
        if node.kind == SWITCH {
            // Two blocks of a table, as with 144 ports and those of the ring.
            node.ports = 146;
        }
    });
    let fabric = assembled(&mut transport);
    let mut agents = AgentCache::default();
    // In the first two sweeps each port is asked.
    for _ in 0..2 {
        swept(&mut transport, &fabric, &mut agents);
    }
    for sweep in 0..30 {
        transport.sent.clear();
        let mut sweep_plan = Sweep::new(&fabric, &mut agents, transport.anchor(), true);
        let told = sweep_plan.max_mads();
        run_plan(&mut transport, &mut sweep_plan);
        let quiet = sweep_plan.finish();
        assert_eq!(wrong_and_unknown(&transport, &quiet), NOTHING, "{sweep}");
        let counts = [NodeInfo::ID, SwitchInfo::ID, SwitchPortStateTable::ID, PortInfo::ID]
            .map(|attribute| count(&transport, attribute));
        // PortInfo of port 0. The ports of two adapters are asked for NodeInfo and PortInfo.
        assert_eq!(counts, [8 + 4, 8, 16, 8 + 4], "{sweep}");
        assert!(transport.sent.len() <= told, "{sweep}: {told}");
    }
}

fn ndr(port: u8) -> HierarchyInfo {
    let mut info = HierarchyInfo::empty(template::NDR);
    info.values[1..4].copy_from_slice(&[1, port.into(), 1]);
    info
}

fn xdr(port: u8) -> HierarchyInfo {
    let mut info = HierarchyInfo::empty(template::XDR_SWITCH);
    info.values[3..5].copy_from_slice(&[port.into(), 1]);
    info.values[10..13].copy_from_slice(&[1, 2, port.into()]);
    info
}

/// A port with one plane, which is not one of several.
fn one_plane(port: u8) -> HierarchyInfo {
    let mut info = xdr(port);
    info.values[11] = 1;
    info
}

/// What a switch reports of a port.
type Hierarchy = fn(u8) -> HierarchyInfo;

#[test]
fn planes_are_recognized_without_a_multi_plane_hca() {
    let ordinary = || {
        let mut transport = two_planes(|_| {});
        transport.planes.clear();
        cut(&mut transport, LOCAL, 2);
        transport
    };
    let mut transport = ordinary();
    let fabric = assembled(&mut transport);
    assert_eq!(fabric.routes.reason(), RouteReason::NoPlanes);
    assert_eq!(fabric.routes.reason().route(), StateRoute::Lid);
    // The hierarchy of a Quantum-2 switch has no planes, that of an XDR switch does.
    let hierarchies: [(Hierarchy, RouteReason); 3] = [
        (ndr, RouteReason::NoPlanes),
        (one_plane, RouteReason::NoPlanes),
        (xdr, RouteReason::FrontPanel),
    ];
    for (hierarchy, reason) in hierarchies {
        let mut transport = ordinary();
        for node in transport.nodes.iter_mut().filter(|node| node.kind == SWITCH) {
            node.hierarchy = Some(hierarchy);
        }
        let mut discovery =
            Discovery::new(Arc::default(), None, HashSet::new()).with_front_panels(None, None);
        run_plan(&mut transport, &mut discovery);
        let found = discovery.finish().fabric;
        let fabric = Arc::new(Fabric::assemble(found, &Naming::default(), Moment(0), None));
        assert_eq!(fabric.routes.reason(), reason);
        let swept = swept(&mut transport, &fabric, &mut AgentCache::default());
        let unread = swept.snapshot.statuses.iter().filter(|it| !matches!(it, PortRead::Ok(_)));
        if reason == RouteReason::FrontPanel {
            let [wrong, unknown] = wrong_and_unknown(&transport, &swept);
            assert_eq!((wrong, unknown), (Vec::new(), vec!["node 1 port 2".to_owned()]));
            assert!(unread.count() < 20);
        } else {
            assert!(swept.states_unavailable);
        }
    }
}

#[test]
fn busy_leaves_hide_nothing_behind_them() {
    let mut transport = two_planes(|_| {});
    let fabric = assembled(&mut transport);
    let mut agents = AgentCache::default();
    let before = swept(&mut transport, &fabric, &mut agents);
    assert_eq!(wrong_and_unknown(&transport, &before), NOTHING);
    let reply = |outgoing: &OutgoingMad, is_busy: bool| {
        let is_by_lid = outgoing.class.is_smp() && !outgoing.mad.is_directed();
        let is_leaf = outgoing.class.is_smp() && outgoing.mad.u8(7) == 1;
        if is_by_lid {
            Reply::Lost
        } else if is_busy && is_leaf {
            Reply::Status(ib_mad::status::BUSY)
        } else {
            Reply::Answered(ROUND_TRIP)
        }
    };
    transport.reply = Box::new(move |outgoing| reply(outgoing, true));
    let busy = swept(&mut transport, &fabric, &mut agents);
    let [wrong, unknown] = wrong_and_unknown(&transport, &busy);
    assert_eq!(wrong, Vec::<String>::new());
    // Those of the leaves, and ours.
    assert!(unknown.len() <= 2 * (usize::from(RING) + 1) + 2, "{}: {unknown:?}", unknown.len());
    transport.reply = Box::new(move |outgoing| reply(outgoing, false));
    let after = swept(&mut transport, &fabric, &mut agents);
    assert_eq!(wrong_and_unknown(&transport, &after), NOTHING);
}
