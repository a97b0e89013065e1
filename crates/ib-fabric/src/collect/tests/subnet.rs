//! Subnet managers: who is asked, and what an answer or none comes to.

use super::*;
use crate::collect::subnet::SubnetSweep;
use crate::subnet::{ManagerState, SubnetManager};
use crate::testing::{end, fabric as assembled_of, found};
use ib_mad::method;
use ib_mad::smp::{SmInfo, sm_state};
use ib_umad::walk::Walk as _;
use ib_umad::{Address, Lane};

/// Us, who have the master's LID, a switch, and two hosts with the LIDs 3 and 4.
fn small() -> Scripted {
    let cables = [((0, 1), (1, 1)), ((1, 2), (2, 1)), ((1, 3), (3, 1))];
    Scripted::new(fabric(&[(CA, 1), (SWITCH, 4), (CA, 1), (CA, 1)], &cables))
}

fn is_question(parcel: &Parcel) -> bool {
    parcel.class.is_smp() && parcel.mad.attribute() == SmInfo::ID
}

/// The LIDs that were asked for their managers.
fn asked(wire: &Scripted) -> Vec<u16> {
    let questions = wire.sent.iter().filter(|parcel| is_question(parcel));
    let mut lids: Vec<u16> = questions
        .inspect(|parcel| assert_eq!(parcel.mad.method(), method::GET))
        .map(|parcel| parcel.lid.0)
        .collect();
    lids.sort_unstable();
    // Retries.
    lids.dedup();
    lids
}

/// A manager as its node's GUID, its port, its SMState, its priority and its ActCount.
type Heard = (u64, u8, u8, u8, u32);

fn heard(swept: &Swept) -> Option<Vec<Heard>> {
    let fabric = &swept.snapshot.fabric;
    let told = |manager: &SubnetManager| {
        let (guid, port) = fabric.end(manager.port);
        (guid.0, port, manager.state as u8, manager.priority, manager.activity)
    };
    swept.snapshot.managers.as_ref().map(|managers| managers.iter().map(told).collect())
}

const MASTER: (u64, u8, u8, u8, u32) = (1, 1, sm_state::MASTER, 0, 1);

#[test]
fn each_port_that_says_so_is_asked_once_and_a_switch_at_its_port_0() {
    let mut wire = small();
    wire.nodes[1].manager = Some((sm_state::STANDBY, 14, 7));
    wire.nodes[3].manager = Some((sm_state::DISCOVERING, 15, u32::MAX));
    let fabric = assembled(&mut wire);
    let swept = swept(&mut wire, &fabric, &mut Agents::default());
    assert_eq!(asked(&wire), [1, 2, 4]);
    let others = [(2, 0, sm_state::STANDBY, 14, 7), (4, 1, sm_state::DISCOVERING, 15, u32::MAX)];
    assert_eq!(heard(&swept).unwrap(), [MASTER, others[0], others[1]]);
    assert_eq!((swept.failed_ports, swept.snapshot.silent), (0, vec![false; 4]));
}

#[test]
fn a_master_that_was_started_after_the_discovery_is_heard_at_the_lid_that_our_port_has_for_it() {
    let mut wire = small();
    for node in &mut wire.nodes {
        (node.sm_lid, node.manager) = (4, None);
    }
    let fabric = assembled(&mut wire);
    wire.nodes[3].manager = Some((sm_state::MASTER, 3, 1));
    let swept = swept(&mut wire, &fabric, &mut Agents::default());
    assert_eq!((asked(&wire), heard(&swept)), (vec![4], Some(vec![(4, 1, 3, 3, 1)])));
}

#[test]
fn what_has_no_manager_any_more_is_not_told_and_is_no_failure() {
    for (name, fate) in [
        ("silence", Fate::Lost),
        ("the kernel's word for it", Fate::Expired),
        ("a refusal", Fate::Status(ib_mad::status::UNSUPPORTED_ATTRIBUTE)),
        ("half an answer", Fate::Short),
    ] {
        let mut wire = small();
        wire.nodes[2].manager = Some((sm_state::STANDBY, 0, 1));
        let fabric = assembled(&mut wire);
        wire.sent.clear();
        wire.fate = Box::new(move |parcel: &Parcel| {
            let gone = is_question(parcel) && parcel.lid == Lid(3);
            if gone { fate.clone() } else { Fate::Answered(ROUND_TRIP) }
        });
        let swept = swept(&mut wire, &fabric, &mut Agents::default());
        assert_eq!((asked(&wire), heard(&swept)), (vec![1, 3], Some(vec![MASTER])), "{name}");
        assert_eq!((swept.failed_ports, swept.snapshot.silent), (0, vec![false; 4]), "{name}");
        assert_eq!(swept.snapshot.readings.iter().flatten().count(), 7, "{name}");
    }
}

#[test]
fn a_state_that_there_is_not_is_not_told() {
    for code in 0..16 {
        let mut wire = small();
        wire.nodes[0].manager = Some((code, 15, 9));
        let fabric = assembled(&mut wire);
        let told = heard(&swept(&mut wire, &fabric, &mut Agents::default())).unwrap();
        let expected = (code <= sm_state::MASTER).then_some((1, 1, code, 15, 9));
        assert_eq!(told, expected.into_iter().collect::<Vec<_>>(), "{code}");
    }
    for (state, code) in [
        (ManagerState::NotActive, sm_state::NOT_ACTIVE),
        (ManagerState::Discovering, sm_state::DISCOVERING),
        (ManagerState::Standby, sm_state::STANDBY),
        (ManagerState::Master, sm_state::MASTER),
    ] {
        assert_eq!((ManagerState::from_code(code), state as u8), (Some(state), code));
    }
}

#[test]
fn where_nobody_answers_by_lid_it_is_not_known_who_manages() {
    // Nobody by LID, and only the switches not; asked for states, or not any more.
    for (also_managers, states, known) in
        [(true, true, None), (true, false, None), (false, true, Some(())), (false, false, Some(()))]
    {
        let mut wire = small();
        let fabric = assembled(&mut wire);
        wire.fate = Box::new(move |parcel: &Parcel| {
            let unheard = parcel.class.is_smp() && (also_managers || !is_question(parcel));
            if unheard { Fate::Lost } else { Fate::Answered(ROUND_TRIP) }
        });
        let mut agents = Agents::default();
        let mut sweep = Sweep::new(&fabric, &mut agents, wire.anchor(), states);
        walk(&mut wire, &mut sweep);
        assert_eq!(heard(&sweep.finish()), known.map(|()| vec![MASTER]));
    }
    // That there is none where others answer is known.
    let mut wire = small();
    wire.nodes[0].manager = None;
    let fabric = assembled(&mut wire);
    assert_eq!(heard(&swept(&mut wire, &fabric, &mut Agents::default())), Some(vec![]));
}

/// Whom a sweep asks, by LID, in a fabric of hosts with one port and a switch with the GUID 9; all of
/// them have 1 for the master's LID. The first host is we.
fn asked_of(hosts: u64, change: impl FnOnce(&mut Fabric)) -> Vec<u16> {
    let hosts = (1..=hosts).map(|guid| found(100 + guid, CA, 1));
    let mut fabric = assembled_of(hosts.chain([found(9, SWITCH, 2)]).collect(), &[], None);
    for (port, lid) in fabric.ports.iter_mut().zip(10..) {
        let status = port.status.as_mut().unwrap();
        (status.lid, status.sm_lid) = (Lid(lid), Lid(1));
    }
    fabric.home = fabric.find(end(101, 1));
    change(&mut fabric);
    let mut sweep = SubnetSweep::new(&fabric);
    let mut lids = Vec::new();
    while let Some((request, _)) = sweep.next_request() {
        let Address::Lid(lid) = request.to else { panic!("{request:?}") };
        lids.push(lid.0);
    }
    lids
}

#[test]
fn whom_a_sweep_asks() {
    type Change = fn(&mut Fabric);
    let cases: [(&str, Change, &[u16]); 9] = [
        ("nobody has the master's LID", |_| {}, &[]),
        ("one does", |it| it.ports[4].status.as_mut().unwrap().lid = Lid(1), &[1]),
        (
            "a switch does, and says so",
            |it| {
                let port0 = it.ports[0].status.as_mut().unwrap();
                (port0.lid, port0.is_sm) = (Lid(1), true);
            },
            &[1],
        ),
        (
            "a switch's other ports say so",
            |it| {
                it.ports[1].status.as_mut().unwrap().is_sm = true;
            },
            &[],
        ),
        (
            "by another of its LIDs",
            |it| {
                it.ports.iter_mut().for_each(|port| port.status.as_mut().unwrap().sm_lid = Lid(23));
                let status = it.ports[4].status.as_mut().unwrap();
                (status.lid, status.lmc) = (Lid(20), 2);
            },
            &[20],
        ),
        (
            "LIDs up to the end of all numbers",
            |it| {
                it.ports.iter_mut().for_each(|port| port.status.as_mut().unwrap().lmc = u8::MAX);
                it.ports[0].status.as_mut().unwrap().lid = Lid(0xbfff);
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
            "gone",
            |it| {
                it.ports[4].status.as_mut().unwrap().lid = Lid(1);
                let node = it.ports[4].node;
                it.nodes[node.0 as usize].presence = Presence::Absent;
            },
            &[],
        ),
        (
            "we are nowhere",
            |it| {
                it.home = None;
                it.ports[4].status.as_mut().unwrap().lid = Lid(1);
            },
            &[],
        ),
    ];
    for (name, change, lids) in cases {
        assert_eq!(asked_of(3, change), lids, "{name}");
    }
}

#[test]
fn where_all_say_that_they_manage_not_all_are_asked_and_the_master_is() {
    let lids = asked_of(1000, |it| {
        it.ports.iter_mut().for_each(|port| port.status.as_mut().unwrap().is_sm = true);
        it.ports.last_mut().unwrap().status.as_mut().unwrap().lid = Lid(1);
    });
    assert_eq!((lids[0], lids.len()), (1, 256));
}

#[test]
fn a_manager_at_a_lid_that_is_anothers_by_now_is_not_told() {
    let mut wire = small();
    wire.nodes[1].manager = Some((sm_state::STANDBY, 0, 1));
    let fabric = assembled(&mut wire);
    wire.nodes[1].guid = 77;
    let swept = swept(&mut wire, &fabric, &mut Agents::default());
    assert!(swept.readdressed);
    assert_eq!(heard(&swept).unwrap(), [MASTER]);
}

#[test]
fn outcomes_of_what_was_never_asked_change_nothing() {
    let mut wire = small();
    let fabric = assembled(&mut wire);
    let mut agents = Agents::default();
    let mut sweep = Sweep::new(&fabric, &mut agents, wire.anchor(), true);
    assert!(sweep.next(Lane::Smp).is_some());
    for tag in [2, 3, 6, u64::MAX] {
        sweep.finished(tag, Ok(&ib_mad::Mad([0; ib_mad::LEN])), Moment(1));
    }
    assert_eq!(heard(&sweep.finish()), Some(vec![]));
}

#[test]
fn our_own_port_is_where_the_discovery_began_and_a_switchs_is_its_port_0() {
    for (home, is) in [((0, 1), end(1, 1)), ((1, 0), end(2, 0)), ((2, 1), end(3, 1))] {
        let mut wire = small();
        wire.home = home;
        let fabric = assembled(&mut wire);
        assert_eq!(fabric.home.map(|port| fabric.end(port)), Some(is));
        wire.nodes[0].manager = None;
        let heard = heard(&swept(&mut wire, &fabric, &mut Agents::default()));
        assert_eq!((asked(&wire), heard), (vec![1], Some(vec![])));
    }
}

#[test]
fn a_manager_that_hangs_holds_the_first_sweep_up_for_three_tries_and_the_next_ones_for_one() {
    let mut wire = small();
    let fabric = assembled(&mut wire);
    let (mut agents, mut transactor) = (Agents::default(), Transactor::new(Pace::default()));
    let hangs = |parcel: &Parcel| is_question(parcel) && parcel.lid == Lid(1);
    wire.fate = Box::new(
        move |parcel: &Parcel| {
            if hangs(parcel) { Fate::Lost } else { Fate::Answered(ROUND_TRIP) }
        },
    );
    for (sweep, tries) in [3, 1, 1].into_iter().enumerate() {
        wire.sent.clear();
        let mut walk = Sweep::new(&fabric, &mut agents, wire.anchor(), true);
        drive(&mut walk, &mut transactor, &mut wire, &AtomicBool::new(false)).unwrap();
        let swept = walk.finish();
        assert_eq!(heard(&swept), Some(vec![]));
        let sent = wire.sent.iter().filter(|parcel| hangs(parcel)).count();
        let took = swept.snapshot.ended.since(swept.snapshot.began);
        // 500 ms that the kernel is given, and 100 ms after them.
        assert_eq!((sent, took.as_millis()), (tries, 600 * tries as u128), "sweep {sweep}");
    }
}
