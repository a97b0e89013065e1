//! Nodes that a discovery could not reach: those behind a hung SMA, and those that refuse.

use crate::NodeIndex;
use ib_mad::PortKey;
use std::collections::HashSet;

use super::*;

/// Whether a MAD is directed, and goes this many hops at least.
fn is_directed(outgoing: &OutgoingMad, hops: u8) -> bool {
    outgoing.class.is_smp() && outgoing.lid == Lid::PERMISSIVE && outgoing.mad.u8(7) >= hops
}

/// Us, a leaf, and a row of 20 switches behind it.
fn row() -> ScriptedTransport {
    let mut kinds = vec![(CA, 1)];
    kinds.extend([(SWITCH, 4); 21]);
    let mut links = vec![((0, 1), (1, 1))];
    links.extend((1..21).map(|switch| ((switch, 2), (switch + 1, 1))));
    ScriptedTransport::new(fabric(&kinds, &links))
}

/// The leaf forwards, but its SMA does not respond.
fn hang_the_leaf(transport: &mut ScriptedTransport) {
    transport.reply = Box::new(|outgoing: &OutgoingMad| {
        let to_leaf = outgoing.class.is_smp() && outgoing.lid == Lid(2);
        if to_leaf || is_directed(outgoing, 1) { Reply::Lost } else { Reply::Answered(ROUND_TRIP) }
    });
}

#[test]
fn link_down_behind_hung_leaf_is_seen_next_sweep() {
    let mut transport = row();
    let before = assembled(&mut transport);
    hang_the_leaf(&mut transport);
    let hidden = Arc::new(discover_again(&mut transport, &before));
    let port = hidden.find(PortKey::new(Guid(21), 2)).unwrap();
    assert_eq!(hidden.node_of(port).presence, Presence::Hidden);
    let mut agents = AgentCache::default();
    let state = |swept: &SweepResult| swept.snapshot.status(port).map(|status| status.state);
    for _ in 0..2 {
        let quiet = swept(&mut transport, &hidden, &mut agents);
        assert_eq!((state(&quiet), quiet.changed), (Some(PortState::Active), false));
    }
    transport.nodes[20].links.remove(&2);
    let down = swept(&mut transport, &hidden, &mut agents);
    assert_eq!((state(&down), down.changed), (Some(PortState::Down), true));
}

#[test]
fn hidden_nodes_are_swept_again_after_switch_recovers() {
    let mut transport = row();
    let before = assembled(&mut transport);
    transport.reply = Box::new(|outgoing: &OutgoingMad| match outgoing.lid {
        Lid(1) => Reply::Answered(ROUND_TRIP),
        _ if is_directed(outgoing, 0) && outgoing.mad.u8(7) == 0 => Reply::Answered(ROUND_TRIP),
        _ => Reply::Lost,
    });
    let hidden = Arc::new(discover_again(&mut transport, &before));
    let mut agents = AgentCache::default();
    for _ in 0..10 {
        let dark = swept(&mut transport, &hidden, &mut agents);
        assert_eq!(dark.snapshot.silent.iter().filter(|silent| **silent).count(), 21);
    }
    hang_the_leaf(&mut transport);
    swept(&mut transport, &hidden, &mut agents);
    transport.nodes[20].links.remove(&2);
    assert!(swept(&mut transport, &hidden, &mut agents).changed);
}

#[test]
fn hidden_aggregation_nodes_stay_up() {
    let mut kinds = vec![(CA, 1), (SWITCH, 8), (SWITCH, 12)];
    kinds.extend([(CA, 1); 8]);
    let mut links = vec![((0, 1), (1, 1)), ((1, 2), (2, 12))];
    links.extend((0..8).map(|n| ((2, n as u8 + 1), (3 + n, 1))));
    let mut nodes = fabric(&kinds, &links);
    for node in &mut nodes[3..] {
        node.device_id = 53001;
    }
    let mut transport = ScriptedTransport::new(nodes);
    let before = assembled(&mut transport);
    hang_the_leaf(&mut transport);
    let hidden = Arc::new(discover_again(&mut transport, &before));
    assert_eq!(hidden.nodes[NodeIndex(10)].identity.kind, NodeKind::AggregationNode);
    let mut agents = AgentCache::default();
    for sweep in 0..5 {
        let swept = swept(&mut transport, &hidden, &mut agents);
        assert!(!(*swept.snapshot.silent)[2..].contains(&true), "sweep {sweep}");
    }
}

/// The local host, a switch and 40 hosts, all of which report their FEC mode.
fn many_hosts() -> ScriptedTransport {
    let mut kinds = vec![(CA, 1), (SWITCH, 41)];
    kinds.extend([(CA, 1); 40]);
    let mut links = vec![((0, 1), (1, 41))];
    links.extend((0..40).map(|n| ((1, n as u8 + 1), (2 + n, 1))));
    let mut nodes = fabric(&kinds, &links);
    for node in &mut nodes {
        node.fec = Some(2);
    }
    ScriptedTransport::new(nodes)
}

#[test]
fn refusing_hosts_get_under_one_smp_per_second() {
    for is_hidden in [false, true] {
        let mut transport = many_hosts();
        let mut fabric = assembled(&mut transport);
        transport.reply = Box::new(|outgoing: &OutgoingMad| {
            let to_host = outgoing.class.is_smp() && (3..=42).contains(&outgoing.lid.0);
            if to_host || is_directed(outgoing, 2) {
                Reply::Lost
            } else {
                Reply::Answered(ROUND_TRIP)
            }
        });
        if is_hidden {
            fabric = Arc::new(discover_again(&mut transport, &fabric));
        }
        assert_eq!(fabric.nodes[NodeIndex(41)].presence == Presence::Hidden, is_hidden);
        let mut agents = AgentCache::new(FEC);
        transport.sent.clear();
        for _ in 0..20 {
            let swept = swept(&mut transport, &fabric, &mut agents);
            assert!(!swept.snapshot.silent.contains(&true), "performance management responds");
        }
        let to_host =
            |outgoing: &&OutgoingMad| outgoing.class.is_smp() && (3..=42).contains(&outgoing.lid.0);
        let refused = transport.sent.iter().filter(to_host).count();
        // 20 sweeps in 5 minutes.
        assert!((1..=180).contains(&refused), "{refused} SMPs, hidden: {is_hidden}");
    }
}

#[test]
fn discovery_defers_most_of_many_refusing_hosts() {
    let mut kinds = vec![(CA, 1)];
    kinds.extend([(SWITCH, 64); 6]);
    kinds.extend([(CA, 1); 300]);
    let mut links = vec![((0, 1), (1, 64))];
    links.extend((0..5).map(|n| ((1, n as u8 + 1), (2 + n, 64))));
    links.extend((0..300).map(|n| ((2 + n / 60, (n % 60) as u8 + 1), (7 + n, 1))));
    let mut transport = ScriptedTransport::new(fabric(&kinds, &links));
    transport.reply =
        Box::new(
            |outgoing: &OutgoingMad| {
                if is_directed(outgoing, 3) { Reply::Lost } else { Reply::Answered(ROUND_TRIP) }
            },
        );
    let found = discovered(&mut transport);
    assert_eq!(found.fabric.nodes.len(), 7, "all switches are found");
    assert_eq!((found.unanswered.len() + found.skipped.len(), found.failures), (300, 300));
    let refused = transport.sent.iter().filter(|outgoing| is_directed(outgoing, 3)).count();
    assert!(refused < 500, "{refused} SMPs to ports that refuse");
}

#[test]
fn neighbor_found_from_other_side_is_no_gap() {
    let kinds = [(CA, 1), (SWITCH, 4), (SWITCH, 4), (SWITCH, 4)];
    let links = [((0, 1), (1, 1)), ((1, 2), (2, 1)), ((1, 3), (3, 1)), ((2, 2), (3, 2))];
    let end = PortKey::new(Guid(2), 2);
    for rests in [false, true] {
        let mut transport = ScriptedTransport::new(fabric(&kinds, &links));
        transport.reply = Box::new(|outgoing: &OutgoingMad| {
            let is_lost = outgoing.mad.u8(7) == 2 && outgoing.mad.0[129..131] == [1, 2];
            if is_lost { Reply::Lost } else { Reply::Answered(ROUND_TRIP) }
        });
        let resting = if rests { HashSet::from([end]) } else { HashSet::new() };
        let mut discovery = Discovery::new(Arc::default(), None, resting);
        run_plan(&mut transport, &mut discovery);
        let found = discovery.finish();
        assert_eq!((found.fabric.nodes.len(), found.fabric.links.len()), (4, 4));
        assert_eq!((found.failures, found.unanswered, found.skipped), (0, vec![], vec![]));
        assert_eq!(found.fabric.unreached, []);
    }
}
