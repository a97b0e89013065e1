//! Subnet managers: which ports are queried, and the effect of responses and time-outs.

use super::*;
use crate::PortIndex;
use crate::collect::sweep::SmSweep;
use crate::snapshot::SubnetManager;
use crate::testing::{end, fabric as assembled_of, found};
use ib_mad::smp::{SmInfo, SmState};
use ib_mad::{PortKey, method};
use ib_umad::{Address, QueuePair};

/// The local host, which has the SM LID, a switch, and two hosts with the LIDs 3 and 4.
fn small() -> ScriptedTransport {
    let cables = [((0, 1), (1, 1)), ((1, 2), (2, 1)), ((1, 3), (3, 1))];
    ScriptedTransport::new(fabric(&[(CA, 1), (SWITCH, 4), (CA, 1), (CA, 1)], &cables))
}

fn is_sm_query(outgoing: &OutgoingMad) -> bool {
    outgoing.class.is_smp() && outgoing.mad.attribute() == SmInfo::ID
}

/// The LIDs that were queried for SMInfo.
fn queried(transport: &ScriptedTransport) -> Vec<u16> {
    let requests = transport.sent.iter().filter(|outgoing| is_sm_query(outgoing));
    let mut lids: Vec<u16> = requests
        .inspect(|outgoing| assert_eq!(outgoing.mad.method(), method::GET))
        .map(|outgoing| outgoing.lid.0)
        .collect();
    lids.sort_unstable();
    // Retries.
    lids.dedup();
    lids
}

/// A manager as its node's GUID, its port, its SMState, its priority and its ActCount.
type ManagerRow = (u64, u8, u8, u8, u32);

fn managers(swept: &SweepResult) -> Option<Vec<ManagerRow>> {
    let fabric = &swept.snapshot.fabric;
    let row = |manager: &SubnetManager| {
        let PortKey { guid, number: port } = fabric.port_key(manager.port);
        (guid.0, port, manager.state as u8, manager.priority, manager.act_count)
    };
    swept.snapshot.managers.as_ref().map(|managers| managers.iter().map(row).collect())
}

const MASTER: (u64, u8, u8, u8, u32) = (1, 1, SmState::Master as u8, 0, 1);

#[test]
fn each_announced_sm_is_queried_once() {
    let mut transport = small();
    transport.nodes[1].manager = Some((SmState::Standby as u8, 14, 7));
    transport.nodes[3].manager = Some((SmState::Discovering as u8, 15, u32::MAX));
    let fabric = assembled(&mut transport);
    let swept = swept(&mut transport, &fabric, &mut AgentCache::default());
    assert_eq!(queried(&transport), [1, 2, 4]);
    let others =
        [(2, 0, SmState::Standby as u8, 14, 7), (4, 1, SmState::Discovering as u8, 15, u32::MAX)];
    assert_eq!(managers(&swept).unwrap(), [MASTER, others[0], others[1]]);
    assert_eq!((swept.failed_ports, &*swept.snapshot.silent), (0, &[false; 4][..]));
}

#[test]
fn new_master_is_found_at_local_sm_lid() {
    let mut transport = small();
    for node in &mut transport.nodes {
        (node.sm_lid, node.manager) = (4, None);
    }
    let fabric = assembled(&mut transport);
    transport.nodes[3].manager = Some((SmState::Master as u8, 3, 1));
    let swept = swept(&mut transport, &fabric, &mut AgentCache::default());
    assert_eq!((queried(&transport), managers(&swept)), (vec![4], Some(vec![(4, 1, 3, 3, 1)])));
}

#[test]
fn stopped_sm_is_absent_without_failure() {
    for (name, reply) in [
        ("no response", Reply::Lost),
        ("kernel time-out", Reply::Expired),
        ("refusal", Reply::Status(ib_mad::status::UNSUPPORTED_ATTRIBUTE)),
        ("truncated response", Reply::Short),
    ] {
        let mut transport = small();
        transport.nodes[2].manager = Some((SmState::Standby as u8, 0, 1));
        let fabric = assembled(&mut transport);
        transport.sent.clear();
        transport.reply = Box::new(move |outgoing: &OutgoingMad| {
            let gone = is_sm_query(outgoing) && outgoing.lid == Lid(3);
            if gone { reply.clone() } else { Reply::Answered(ROUND_TRIP) }
        });
        let swept = swept(&mut transport, &fabric, &mut AgentCache::default());
        assert_eq!(
            (queried(&transport), managers(&swept)),
            (vec![1, 3], Some(vec![MASTER])),
            "{name}"
        );
        assert_eq!((swept.failed_ports, &*swept.snapshot.silent), (0, &[false; 4][..]), "{name}");
        assert_eq!(swept.snapshot.readings.iter().flatten().count(), 7, "{name}");
    }
}

#[test]
fn reserved_sm_state_is_ignored() {
    for code in 0..16 {
        let mut transport = small();
        transport.nodes[0].manager = Some((code, 15, 9));
        let fabric = assembled(&mut transport);
        let found = managers(&swept(&mut transport, &fabric, &mut AgentCache::default())).unwrap();
        let expected = (code <= SmState::Master as u8).then_some((1, 1, code, 15, 9));
        assert_eq!(found, expected.into_iter().collect::<Vec<_>>(), "{code}");
    }
    for (state, code) in [
        (SmState::NotActive, SmState::NotActive as u8),
        (SmState::Discovering, SmState::Discovering as u8),
        (SmState::Standby, SmState::Standby as u8),
        (SmState::Master, SmState::Master as u8),
    ] {
        assert_eq!((SmState::from_discriminant(code), state as u8), (Some(state), code));
    }
}

#[test]
fn sm_list_unknown_when_no_lid_response() {
    // No response by LID at all, or only from switches; with and without port states.
    for (also_managers, states, known) in
        [(true, true, None), (true, false, None), (false, true, Some(())), (false, false, Some(()))]
    {
        let mut transport = small();
        let fabric = assembled(&mut transport);
        transport.reply = Box::new(move |outgoing: &OutgoingMad| {
            let is_lost = outgoing.class.is_smp() && (also_managers || !is_sm_query(outgoing));
            if is_lost { Reply::Lost } else { Reply::Answered(ROUND_TRIP) }
        });
        let mut agents = AgentCache::default();
        let mut sweep = Sweep::new(&fabric, &mut agents, transport.anchor(), states);
        run_plan(&mut transport, &mut sweep);
        assert_eq!(managers(&sweep.finish()), known.map(|()| vec![MASTER]));
    }
    // If others respond, it is known that there is none.
    let mut transport = small();
    transport.nodes[0].manager = None;
    let fabric = assembled(&mut transport);
    assert_eq!(managers(&swept(&mut transport, &fabric, &mut AgentCache::default())), Some(vec![]));
}

/// The LIDs that a sweep queries in a fabric of hosts with one port and a switch with GUID 9; all ports
/// have SM LID
/// 1. The first host is the local one.
fn queried_lids(hosts: u64, change: impl FnOnce(&mut Fabric)) -> Vec<u16> {
    let hosts = (1..=hosts).map(|guid| found(100 + guid, CA, 1));
    let mut fabric = assembled_of(hosts.chain([found(9, SWITCH, 2)]).collect(), &[], None);
    for (port, lid) in fabric.ports.iter_mut().zip(10..) {
        let status = port.status.as_mut().unwrap();
        (status.lid, status.sm_lid) = (Lid(lid), Lid(1));
    }
    fabric.local_port = fabric.find(end(101, 1));
    change(&mut fabric);
    let mut sweep = SmSweep::new(&fabric, Arc::default());
    let mut lids = Vec::new();
    while let Some((request, _)) = sweep.next_request(QueuePair::Qp0) {
        let Address::Lid(lid) = request.to else { panic!("{request:?}") };
        lids.push(lid.0);
    }
    lids
}

#[test]
fn sm_sweep_selects_ports() {
    type Change = fn(&mut Fabric);
    let cases: [(&str, Change, &[u16]); 9] = [
        ("no port has the SM LID", |_| {}, &[]),
        (
            "one port has it",
            |it| it.ports[PortIndex(4)].status.as_mut().unwrap().lid = Lid(1),
            &[1],
        ),
        (
            "a switch has and announces it",
            |it| {
                let port0 = it.ports[PortIndex(0)].status.as_mut().unwrap();
                (port0.lid, port0.is_sm) = (Lid(1), true);
            },
            &[1],
        ),
        (
            "other ports of a switch announce it",
            |it| {
                it.ports[PortIndex(1)].status.as_mut().unwrap().is_sm = true;
            },
            &[],
        ),
        (
            "one of several LIDs of a port",
            |it| {
                it.ports.iter_mut().for_each(|port| port.status.as_mut().unwrap().sm_lid = Lid(23));
                let status = it.ports[PortIndex(4)].status.as_mut().unwrap();
                (status.lid, status.lmc) = (Lid(20), 2);
            },
            &[20],
        ),
        (
            "maximum LMC",
            |it| {
                it.ports.iter_mut().for_each(|port| port.status.as_mut().unwrap().lmc = u8::MAX);
                it.ports[PortIndex(0)].status.as_mut().unwrap().lid = Lid(0xbfff);
            },
            &[],
        ),
        (
            "no LID yet",
            |it| {
                for port in &mut it.ports {
                    let status = port.status.as_mut().unwrap();
                    (status.lid, status.sm_lid, status.is_sm) = (Lid(0), Lid(0), true);
                }
            },
            &[],
        ),
        (
            "absent",
            |it| {
                it.ports[PortIndex(4)].status.as_mut().unwrap().lid = Lid(1);
                let node = it.ports[PortIndex(4)].node;
                it.nodes[node].presence = Presence::Absent;
            },
            &[],
        ),
        (
            "no local port",
            |it| {
                it.local_port = None;
                it.ports[PortIndex(4)].status.as_mut().unwrap().lid = Lid(1);
            },
            &[],
        ),
    ];
    for (name, change, lids) in cases {
        assert_eq!(queried_lids(3, change), lids, "{name}");
    }
}

#[test]
fn sm_sweep_is_limited_and_includes_master() {
    let lids = queried_lids(1000, |it| {
        it.ports.iter_mut().for_each(|port| port.status.as_mut().unwrap().is_sm = true);
        it.ports.last_mut().unwrap().status.as_mut().unwrap().lid = Lid(1);
    });
    assert_eq!((lids[0], lids.len()), (1, 256));
}

#[test]
fn sm_at_reassigned_lid_is_dropped() {
    let mut transport = small();
    transport.nodes[1].manager = Some((SmState::Standby as u8, 0, 1));
    let fabric = assembled(&mut transport);
    transport.nodes[1].guid = 77;
    let swept = swept_confirming(&mut transport, &fabric, &mut AgentCache::default());
    assert!(swept.lids_changed);
    assert_eq!(managers(&swept).unwrap(), [MASTER]);
}

#[test]
fn unknown_tags_are_ignored() {
    let mut transport = small();
    let fabric = assembled(&mut transport);
    let mut agents = AgentCache::default();
    let mut sweep = Sweep::new(&fabric, &mut agents, transport.anchor(), true);
    assert!(sweep.next_request(QueuePair::Qp0).is_some());
    for tag in [2, 3, 6, u64::MAX] {
        sweep.handle_outcome(tag, Ok(&ib_mad::Mad([0; ib_mad::LEN])), Moment(1));
    }
    assert_eq!(managers(&sweep.finish()), Some(vec![]));
}

#[test]
fn local_port_is_discovery_origin() {
    for (home, is) in [((0, 1), end(1, 1)), ((1, 0), end(2, 0)), ((2, 1), end(3, 1))] {
        let mut transport = small();
        transport.local_port = home;
        let fabric = assembled(&mut transport);
        assert_eq!(fabric.local_port.map(|port| fabric.port_key(port)), Some(is));
        transport.nodes[0].manager = None;
        let managers = managers(&swept(&mut transport, &fabric, &mut AgentCache::default()));
        assert_eq!((queried(&transport), managers), (vec![1], Some(vec![])));
    }
}

/// Whether it announces itself in PortInfo, or is only known by the SM LID of the local port.
#[test]
fn hung_sm_does_not_cost_the_counters_of_its_node() {
    for (node, is_announced) in [(0, false), (1, true), (1, false), (2, true), (2, false)] {
        let mut transport = small();
        if is_announced {
            transport.nodes[node].manager = Some((SmState::Master as u8, 0, 1));
        }
        let mut fabric = assembled(&mut transport);
        let lid = *transport.nodes[node].lids.values().next().unwrap();
        let local = fabric.local_port.unwrap();
        let known = Arc::make_mut(&mut fabric);
        known.ports[local].status.as_mut().unwrap().sm_lid = Lid(lid);
        transport.reply = Box::new(move |outgoing: &OutgoingMad| {
            let is_lost = is_sm_query(outgoing) && outgoing.lid == Lid(lid);
            if is_lost { Reply::Lost } else { Reply::Answered(ROUND_TRIP) }
        });
        let (mut agents, mut client) =
            (AgentCache::default(), MadClient::new(SendConfig::default()));
        for sweep in 0..6 {
            let mut plan = Sweep::new(&fabric, &mut agents, transport.anchor(), true);
            run(&mut plan, &mut client, &mut transport, &AtomicBool::new(false)).unwrap();
            let swept = plan.finish();
            let count = swept.snapshot.readings.iter().flatten().count();
            assert_eq!(count, 7, "node {node}, announced {is_announced}, sweep {sweep}");
        }
    }
}

#[test]
fn hung_sm_costs_three_tries_then_one_per_sweep() {
    let mut transport = small();
    let fabric = assembled(&mut transport);
    let (mut agents, mut client) = (AgentCache::default(), MadClient::new(SendConfig::default()));
    let hangs = |outgoing: &OutgoingMad| is_sm_query(outgoing) && outgoing.lid == Lid(1);
    transport.reply =
        Box::new(
            move |outgoing: &OutgoingMad| {
                if hangs(outgoing) { Reply::Lost } else { Reply::Answered(ROUND_TRIP) }
            },
        );
    for (sweep, tries) in [3, 1, 1].into_iter().enumerate() {
        transport.sent.clear();
        let mut plan = Sweep::new(&fabric, &mut agents, transport.anchor(), true);
        run(&mut plan, &mut client, &mut transport, &AtomicBool::new(false)).unwrap();
        let swept = plan.finish();
        assert_eq!(managers(&swept), Some(vec![]));
        let sent = transport.sent.iter().filter(|outgoing| hangs(outgoing)).count();
        let took = swept.snapshot.ended.since(swept.snapshot.began);
        // 500 ms that the kernel is given, and 100 ms after them.
        assert_eq!((sent, took.as_millis()), (tries, 600 * tries as u128), "sweep {sweep}");
    }
}
