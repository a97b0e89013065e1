//! Nodes that a discovery could not reach: those behind a hung SMA, and those that refuse.

use std::collections::HashSet;

use super::*;

/// Whether a MAD is directed, and goes this many hops at least.
fn is_directed(parcel: &Parcel, hops: u8) -> bool {
    parcel.class.is_smp() && parcel.lid == Lid::PERMISSIVE && parcel.mad.u8(7) >= hops
}

/// Us, a leaf, and a row of 20 switches behind it.
fn row() -> Scripted {
    let mut kinds = vec![(CA, 1)];
    kinds.extend([(SWITCH, 4); 21]);
    let mut links = vec![((0, 1), (1, 1))];
    links.extend((1..21).map(|switch| ((switch, 2), (switch + 1, 1))));
    Scripted::new(fabric(&kinds, &links))
}

/// The leaf forwards, but its SMA answers nothing.
fn hang_the_leaf(wire: &mut Scripted) {
    wire.fate = Box::new(|parcel: &Parcel| {
        let to_leaf = parcel.class.is_smp() && parcel.lid == Lid(2);
        if to_leaf || is_directed(parcel, 1) { Fate::Lost } else { Fate::Answered(ROUND_TRIP) }
    });
}

#[test]
fn a_link_that_goes_down_behind_a_hung_leaf_shows_in_the_next_sweep() {
    let mut wire = row();
    let before = assembled(&mut wire);
    hang_the_leaf(&mut wire);
    let hidden = Arc::new(discover_again(&mut wire, &before));
    let port = hidden.find((Guid(21), 2)).unwrap();
    assert_eq!(hidden.node_of(port).presence, Presence::Hidden);
    let mut agents = Agents::default();
    let state = |swept: &Swept| swept.snapshot.status(port).map(|status| status.state);
    for _ in 0..2 {
        let quiet = swept(&mut wire, &hidden, &mut agents);
        assert_eq!((state(&quiet), quiet.moved), (Some(state::ACTIVE), false));
    }
    wire.nodes[20].links.remove(&2);
    let down = swept(&mut wire, &hidden, &mut agents);
    assert_eq!((state(&down), down.moved), (Some(state::DOWN), true));
}

#[test]
fn all_behind_a_switch_that_hung_for_a_while_is_asked_again_when_it_forwards_again() {
    let mut wire = row();
    let before = assembled(&mut wire);
    wire.fate = Box::new(|parcel: &Parcel| match parcel.lid {
        Lid(1) => Fate::Answered(ROUND_TRIP),
        _ if is_directed(parcel, 0) && parcel.mad.u8(7) == 0 => Fate::Answered(ROUND_TRIP),
        _ => Fate::Lost,
    });
    let hidden = Arc::new(discover_again(&mut wire, &before));
    let mut agents = Agents::default();
    for _ in 0..10 {
        let dark = swept(&mut wire, &hidden, &mut agents);
        assert_eq!(dark.snapshot.silent.iter().filter(|silent| **silent).count(), 21);
    }
    hang_the_leaf(&mut wire);
    swept(&mut wire, &hidden, &mut agents);
    wire.nodes[20].links.remove(&2);
    assert!(swept(&mut wire, &hidden, &mut agents).moved);
}

#[test]
fn hidden_aggregation_nodes_stay_up_from_sweep_to_sweep() {
    let mut kinds = vec![(CA, 1), (SWITCH, 8), (SWITCH, 12)];
    kinds.extend([(CA, 1); 8]);
    let mut links = vec![((0, 1), (1, 1)), ((1, 2), (2, 12))];
    links.extend((0..8).map(|n| ((2, n as u8 + 1), (3 + n, 1))));
    let mut nodes = fabric(&kinds, &links);
    for node in &mut nodes[3..] {
        node.device_id = 53001;
    }
    let mut wire = Scripted::new(nodes);
    let before = assembled(&mut wire);
    hang_the_leaf(&mut wire);
    let hidden = Arc::new(discover_again(&mut wire, &before));
    assert_eq!(hidden.nodes[10].identity.kind, NodeKind::AggregationNode);
    let mut agents = Agents::default();
    for sweep in 0..5 {
        let swept = swept(&mut wire, &hidden, &mut agents);
        assert!(!swept.snapshot.silent[2..].contains(&true), "sweep {sweep}");
    }
}

/// Us, a switch and 40 hosts, all of which tell their error correction.
fn many_hosts() -> Scripted {
    let mut kinds = vec![(CA, 1), (SWITCH, 41)];
    kinds.extend([(CA, 1); 40]);
    let mut links = vec![((0, 1), (1, 41))];
    links.extend((0..40).map(|n| ((1, n as u8 + 1), (2 + n, 1))));
    let mut nodes = fabric(&kinds, &links);
    for node in &mut nodes {
        node.fec = Some(2);
    }
    Scripted::new(nodes)
}

#[test]
fn hosts_that_refuse_get_less_than_an_smp_a_second_while_their_correction_is_unknown() {
    for is_hidden in [false, true] {
        let mut wire = many_hosts();
        let mut fabric = assembled(&mut wire);
        wire.fate = Box::new(|parcel: &Parcel| {
            let to_host = parcel.class.is_smp() && (3..=42).contains(&parcel.lid.0);
            if to_host || is_directed(parcel, 2) { Fate::Lost } else { Fate::Answered(ROUND_TRIP) }
        });
        if is_hidden {
            fabric = Arc::new(discover_again(&mut wire, &fabric));
        }
        assert_eq!(fabric.nodes[41].presence == Presence::Hidden, is_hidden);
        let mut agents = Agents::new(FEC);
        wire.sent.clear();
        for _ in 0..20 {
            let swept = swept(&mut wire, &fabric, &mut agents);
            assert!(!swept.snapshot.silent.contains(&true), "performance management answers");
        }
        let to_host = |parcel: &&Parcel| parcel.class.is_smp() && (3..=42).contains(&parcel.lid.0);
        let refused = wire.sent.iter().filter(to_host).count();
        // 20 sweeps in 5 minutes.
        assert!((1..=180).contains(&refused), "{refused} SMPs, hidden: {is_hidden}");
    }
}

#[test]
fn most_of_many_hosts_that_refuse_are_left_to_later_discoveries() {
    let mut kinds = vec![(CA, 1)];
    kinds.extend([(SWITCH, 64); 6]);
    kinds.extend([(CA, 1); 300]);
    let mut links = vec![((0, 1), (1, 64))];
    links.extend((0..5).map(|n| ((1, n as u8 + 1), (2 + n, 64))));
    links.extend((0..300).map(|n| ((2 + n / 60, (n % 60) as u8 + 1), (7 + n, 1))));
    let mut wire = Scripted::new(fabric(&kinds, &links));
    wire.fate =
        Box::new(
            |parcel: &Parcel| {
                if is_directed(parcel, 3) { Fate::Lost } else { Fate::Answered(ROUND_TRIP) }
            },
        );
    let found = discovered(&mut wire);
    assert_eq!(found.fabric.nodes.len(), 7, "all switches are found");
    assert_eq!((found.unanswered.len() + found.rested.len(), found.failures), (300, 300));
    let refused = wire.sent.iter().filter(|parcel| is_directed(parcel, 3)).count();
    assert!(refused < 500, "{refused} SMPs to ports that refuse");
}

#[test]
fn a_neighbor_that_was_met_from_its_own_side_is_no_gap() {
    let kinds = [(CA, 1), (SWITCH, 4), (SWITCH, 4), (SWITCH, 4)];
    let links = [((0, 1), (1, 1)), ((1, 2), (2, 1)), ((1, 3), (3, 1)), ((2, 2), (3, 2))];
    let end = (Guid(2), 2);
    for rests in [false, true] {
        let mut wire = Scripted::new(fabric(&kinds, &links));
        wire.fate = Box::new(|parcel: &Parcel| {
            let is_lost = parcel.mad.u8(7) == 2 && parcel.mad.0[129..131] == [1, 2];
            if is_lost { Fate::Lost } else { Fate::Answered(ROUND_TRIP) }
        });
        let resting = if rests { HashSet::from([end]) } else { HashSet::new() };
        let mut discovery = Discovery::new().without(resting);
        walk(&mut wire, &mut discovery);
        let found = discovery.finish();
        assert_eq!((found.fabric.nodes.len(), found.fabric.links.len()), (4, 4));
        assert_eq!((found.failures, found.unanswered, found.rested), (0, vec![], vec![]));
        assert_eq!(found.fabric.unreached, []);
    }
}
