//! What each action does.

use super::*;
use ib_mad::port_state::{physical, state};
use ib_mad::rate::{Speed, Width};

const NDR: u64 = 50_000_000_000;

#[test]
fn a_link_that_is_lost_comes_back_in_init_and_is_active_when_the_manager_has_seen_it() {
    for (net, end, far) in [
        (pair(), "host-0[1]", "host-1[1]"),
        (tree(), "leaf-0-1[3]", "spine-0[2]"),
        (tree(), "host-4[1]", "leaf-0-2[1]"),
    ] {
        let mut bench = Bench::new(net);
        let far = bench.cable(end).unwrap_or_else(|| far.to_owned());
        let ends = [end, far.as_str()];
        bench.after(10);
        for end in ends {
            bench.signal(end, false);
            assert_eq!(ends.map(|end| bench.state(end)), [state::DOWN; 2]);
            let port = bench.world.port(bench.port(end));
            assert_eq!((port.physical_state(), port.bytes_a_second()), (physical::POLLING, 0));
            bench.after(5000);
            bench.signal(&far, true);
            assert_eq!(ends.map(|end| bench.state(end)), [state::INIT; 2]);
            assert_eq!(bench.world.port(bench.port(end)).bytes_a_second(), NDR);
            bench.after(999);
            assert_eq!(ends.map(|end| bench.state(end)), [state::INIT; 2]);
            bench.after(1);
            assert_eq!(ends.map(|end| bench.state(end)), [state::ACTIVE; 2]);
            // What is there already does not come again.
            bench.signal(end, true);
            assert_eq!(ends.map(|end| bench.state(end)), [state::ACTIVE; 2]);
        }
        bench.assert_counted(Counter::LinkDowned, &ends.map(|end| (end, 2)));
        // A Quantum-2 discards what is sent to a port without a link; that is no congestion.
        let switches = ends.into_iter().filter(|end| !end.starts_with("host"));
        let discards: Vec<(&str, u64)> = switches.map(|end| (end, 2 * 112)).collect();
        bench.assert_counted(Counter::XmitDiscards, &discards);
        bench.assert_counted(Counter::XmitInactiveDiscards, &discards);
        bench.assert_counted(Counter::LinkErrorRecoveries, &[]);
    }
}

#[test]
fn a_change_shows_at_both_switches_until_the_manager_has_seen_it() {
    let mut bench = Bench::new(tree());
    let changed = |bench: &Bench| -> Vec<String> {
        let net = bench.world.net();
        net.node_ids()
            .filter(|node| bench.world.port_state_change(*node))
            .map(|node| net.node(node).id.clone())
            .collect()
    };
    assert_eq!(changed(&bench), [""; 0]);
    bench.signal("leaf-0-1[3]", false);
    assert_eq!(changed(&bench), ["leaf-0-1", "spine-0"].map(String::from));
    bench.after(999);
    assert_eq!(changed(&bench).len(), 2);
    bench.after(1);
    assert_eq!(changed(&bench), [""; 0]);
    bench.act(Action::Retrain { end: bench.port("leaf-0-2[3]") });
    assert_eq!(changed(&bench), [""; 0], "it was never down");
}

#[test]
fn a_link_that_recovers_by_itself_counts_that_and_stays() {
    let mut bench = Bench::new(tree());
    let end = bench.port("host-4[1]");
    bench.act(Action::Retrain { end });
    bench.act(Action::Retrain { end });
    assert_eq!(bench.state("host-4[1]"), state::ACTIVE);
    let twice = [("host-4[1]", 2), ("leaf-0-2[1]", 2)];
    bench.assert_counted(Counter::LinkErrorRecoveries, &twice);
    bench.assert_counted(Counter::LinkDowned, &[]);
    // What is down, or not there, does not recover.
    bench.signal("host-4[1]", false);
    for end in ["host-4[1]", "leaf-0-0[6]", "leaf-0-0[0]", "host-4[0]"] {
        bench.act(Action::Retrain { end: bench.port(end) });
    }
    bench.assert_counted(Counter::LinkErrorRecoveries, &twice);
}

#[test]
fn limits_hold_from_either_end_until_they_are_lifted() {
    let mut bench = Bench::new(tree());
    let (end, far) = ("leaf-0-1[3]", bench.cable("leaf-0-1[3]").unwrap());
    for (nth, (at, width, speed, bytes)) in [
        (end, Some(Width::X1), None, NDR / 4),
        (far.as_str(), None, Some(Speed::Edr), NDR / 4),
        (end, Some(Width::X2), Some(Speed::Sdr), 312_500_000),
        (end, Some(Width::X12), Some(Speed::Xdr), NDR),
        (far.as_str(), None, None, NDR),
    ]
    .into_iter()
    .enumerate()
    {
        bench.act(Action::Limit { end: bench.port(at), width, speed });
        for end in [end, &far] {
            assert_eq!(bench.world.port(bench.port(end)).bytes_a_second(), bytes, "{nth}");
            assert_eq!(bench.state(end), state::INIT);
        }
        bench.after(2000);
        bench.assert_counted(Counter::LinkDowned, &[(end, nth as u64 + 1), (&far, nth as u64 + 1)]);
    }
    // Without a signal nothing trains, and the limit waits.
    bench.signal(end, false);
    bench.act(Action::Limit { end: bench.port(end), width: Some(Width::X1), speed: None });
    assert_eq!(bench.state(end), state::DOWN);
    bench.signal(end, true);
    assert_eq!(bench.world.port(bench.port(&far)).bytes_a_second(), NDR / 4);
    bench.assert_counted(Counter::LinkDowned, &[(end, 6), (&far, 6)]);
}

#[test]
fn a_node_that_goes_off_takes_its_links_along_and_comes_back_with_zeros() {
    let mut bench = Bench::new(tree());
    bench.send("all", &[("host-4[1]", "host-0[1]")]);
    bench.after(10_000);
    let sent = bench.count("leaf-0-0[1]", Counter::XmitData);
    assert!(sent > 0 && bench.count("host-4[1]", Counter::XmitData) == sent);
    // Off twice is off once.
    bench.power("host-4", false);
    bench.after(5000);
    bench.power("host-4", false);
    assert!(!bench.world.is_on(bench.node("host-4")));
    assert_eq!((bench.state("host-4[1]"), bench.state("leaf-0-2[1]")), (state::DOWN, state::DOWN));
    bench.after(5000);
    assert_eq!(bench.count("leaf-0-0[1]", Counter::XmitData), sent, "nothing is sent");
    bench.power("host-4", true);
    assert_eq!(bench.count("host-4[1]", Counter::XmitData), 0);
    bench.assert_counted(Counter::LinkDowned, &[("leaf-0-2[1]", 1)]);
    bench.after(10_000);
    // On twice is on once: a node that runs is not started again.
    bench.power("host-4", true);
    bench.after(1000);
    assert_eq!(bench.count("host-4[1]", Counter::XmitData), 10 * 250_000_000);
    assert_eq!(bench.count("leaf-0-0[1]", Counter::XmitData), sent + 10 * 250_000_000);
}

#[test]
fn a_link_between_two_that_are_off_comes_back_with_the_second() {
    let mut bench = Bench::new(tree());
    let (leaf, spine) = ("leaf-0-1[3]", bench.cable("leaf-0-1[3]").unwrap());
    let node = spine.split('[').next().unwrap().to_owned();
    bench.power("leaf-0-1", false);
    bench.after(1000);
    bench.power(&node, false);
    bench.after(1000);
    bench.power("leaf-0-1", true);
    bench.after(3000);
    assert_eq!(bench.state(leaf), state::DOWN);
    bench.power(&node, true);
    assert_eq!((bench.state(leaf), bench.state(&spine)), (state::INIT, state::INIT));
    bench.after(1000);
    assert_eq!((bench.state(leaf), bench.state(&spine)), (state::ACTIVE, state::ACTIVE));
    // Both have begun anew since.
    assert_eq!([leaf, &spine].map(|end| bench.count(end, Counter::LinkDowned)), [0, 0]);
}

#[test]
fn how_agents_answer_is_not_mended_by_a_reboot() {
    let mut bench = Bench::new(pair());
    bench.power("host-1", false);
    let node = bench.node("host-1");
    bench.act(Action::Agents { node, manner: Manner::Silent });
    bench.power("host-1", true);
    assert_eq!(bench.world.manner(node), Manner::Silent);
}

#[test]
fn counters_are_cleared_and_set_where_it_is_said() {
    let mut bench = Bench::new(pair());
    bench.send("all", &[("host-0[1]", "host-1[1]")]);
    bench.after(10_000);
    let (here, there) = (bench.port("host-0[1]"), bench.port("host-1[1]"));
    bench.act(Action::Set { port: there, counter: Counter::SymbolErrors, value: 4242 });
    bench.act(Action::Set { port: there, counter: Counter::RcvData, value: 7 });
    bench.act(Action::Clear { ports: vec![here] });
    bench.assert_counted(Counter::XmitData, &[]);
    bench.assert_counted(Counter::SymbolErrors, &[("host-1[1]", 4242)]);
    bench.assert_counted(Counter::RcvData, &[("host-1[1]", 7)]);
    // And all goes on from there.
    bench.after(2000);
    bench.assert_counted(Counter::XmitData, &[("host-0[1]", 500_000_000)]);
    bench.assert_counted(Counter::RcvData, &[("host-1[1]", 500_000_007)]);
}

#[test]
fn a_cable_is_moved_into_a_free_port_and_back() {
    let mut bench = Bench::new(tree());
    // What was said of the link is over, for it is another one.
    let end = bench.port("host-4[1]");
    bench.act(Action::Limit { end, width: Some(Width::X1), speed: None });
    bench.signal("host-4[1]", false);
    bench.after(2000);
    bench.plug("leaf-0-2[1]", "spine-1[6]");
    assert_eq!(bench.cable("spine-1[6]").as_deref(), Some("host-4[1]"));
    assert_eq!(bench.cable("host-4[1]").as_deref(), Some("spine-1[6]"));
    assert_eq!((bench.cable("leaf-0-2[1]"), bench.state("leaf-0-2[1]")), (None, state::DOWN));
    assert_eq!(bench.world.port(end).bytes_a_second(), NDR);
    bench.after(1000);
    assert_eq!(
        (bench.state("host-4[1]"), bench.state("spine-1[6]")),
        (state::ACTIVE, state::ACTIVE)
    );
    bench.plug("spine-1[6]", "leaf-0-2[1]");
    bench.after(1000);
    assert_eq!(bench.cable("host-4[1]").as_deref(), Some("leaf-0-2[1]"));
    assert_eq!((bench.state("host-4[1]"), bench.state("spine-1[6]")), (state::ACTIVE, state::DOWN));
    // Limited and without a signal at one moment, which is one change, and moved back; when it was
    // moved first it was down already.
    let counts = [("host-4[1]", 2), ("leaf-0-2[1]", 1), ("spine-1[6]", 1)];
    bench.assert_counted(Counter::LinkDowned, &counts);
}

#[test]
fn two_cables_change_places() {
    let mut bench = Bench::new(tree());
    bench.plug("leaf-0-2[1]", "leaf-0-3[2]");
    bench.after(1000);
    for (here, there) in [("host-4[1]", "leaf-0-3[2]"), ("host-7[1]", "leaf-0-2[1]")] {
        assert_eq!(bench.cable(here).as_deref(), Some(there));
        assert_eq!(bench.cable(there).as_deref(), Some(here));
        assert_eq!((bench.state(here), bench.state(there)), (state::ACTIVE, state::ACTIVE));
    }
    assert_eq!(bench.counted(Counter::LinkDowned).into_values().collect::<Vec<_>>(), [1; 4]);
}

#[test]
fn a_cable_whose_ends_change_places_is_where_it_was() {
    let mut bench = Bench::new(tree());
    bench.plug("leaf-0-2[1]", "host-4[1]");
    assert_eq!(bench.cable("host-4[1]").as_deref(), Some("leaf-0-2[1]"));
    assert_eq!(bench.cable("leaf-0-2[1]").as_deref(), Some("host-4[1]"));
    bench.assert_counted(Counter::LinkDowned, &[("host-4[1]", 1), ("leaf-0-2[1]", 1)]);
    bench.after(1000);
    assert_eq!(bench.state("host-4[1]"), state::ACTIVE);
    // And what cannot be plugged changes nothing.
    for (from, to) in [("leaf-0-2[1]", "leaf-0-2[1]"), ("leaf-0-2[1]", "spine-0[0]")] {
        bench.plug(from, to);
        assert_eq!(bench.cable("leaf-0-2[1]").as_deref(), Some("host-4[1]"));
        assert_eq!(bench.state("host-4[1]"), state::ACTIVE);
    }
    bench.plug("leaf-0-2[5]", "leaf-0-2[6]");
    bench.assert_counted(Counter::LinkDowned, &[("host-4[1]", 1), ("leaf-0-2[1]", 1)]);
}

#[test]
fn a_link_that_gets_its_signal_back_as_it_is_moved_was_lost_once() {
    let mut bench = Bench::new(tree());
    bench.signal("host-4[1]", false);
    bench.after(5000);
    bench.signal("host-4[1]", true);
    bench.plug("leaf-0-2[1]", "leaf-0-2[5]");
    let once = [("host-4[1]", 1), ("leaf-0-2[1]", 1)];
    bench.assert_counted(Counter::LinkDowned, &once);
}

#[test]
fn a_port_that_gets_its_first_cable_joins_the_subnet() {
    let mut net = tree();
    let (host, leaf) = (find(&net, "host-7[1]"), find(&net, "leaf-0-3[2]"));
    for end in [host, leaf] {
        net.ports[end.0 as usize].cable = None;
    }
    let mut bench = Bench::new(net);
    assert_eq!((bench.world.port(host).lid, bench.world.sm_lid(host)), (Lid(0), Lid(0)));
    // The leaf's second uplink into the host.
    let spine = bench.cable("leaf-0-3[4]").unwrap();
    bench.plug(&spine, "host-7[1]");
    assert_eq!(bench.state("host-7[1]"), state::INIT);
    bench.after(1000);
    assert_eq!(
        (bench.state("host-7[1]"), bench.state("leaf-0-3[4]")),
        (state::ACTIVE, state::ACTIVE)
    );
    let lid = bench.world.port(host).lid;
    assert!(lid.is_unicast());
    assert_eq!(bench.world.holder(bench.port("host-0[1]"), lid), Some(host));
    assert_eq!(bench.world.sm_lid(host), bench.world.sm_lid(leaf));
}

#[test]
fn a_new_master_gives_other_lids_if_it_is_told_to() {
    let mut bench = Bench::new(tree());
    let seats = |bench: &Bench| -> Vec<(PortId, Lid)> {
        let net = bench.world.net();
        let all = net.port_ids().map(|port| (port, bench.world.port(port).lid));
        all.filter(|(_, lid)| *lid != Lid(0)).collect()
    };
    let before = seats(&bench);
    assert_eq!(before.len(), 8 + 6);
    let master = |bench: &Bench| bench.world.subnet(PortId(1)).unwrap().master;
    for (host, readdresses) in [("host-2[1]", false), ("host-2[1]", true), ("leaf-0-0[0]", true)] {
        let (port, last) = (bench.port(host), seats(&bench));
        bench.act(Action::Master { port, readdresses });
        bench.after(1000);
        let now = seats(&bench);
        assert_eq!(master(&bench), port);
        assert_eq!(bench.world.sm_lid(bench.port("host-6[1]")), bench.world.port(port).lid);
        let kept = last.iter().filter(|seat| now.contains(seat)).count();
        assert_eq!(kept, if readdresses { 0 } else { last.len() }, "{host}");
        for (port, lid) in now {
            assert_eq!(bench.world.holder(bench.port("host-0[1]"), lid), Some(port));
        }
    }
    // Who was the master before stands by, and nobody twice.
    let standbys = &bench.world.subnet(PortId(1)).unwrap().standbys;
    assert_eq!(*standbys, ["host-1[1]", "host-2[1]"].map(|port| bench.port(port)));
    bench.act(Action::Master { port: bench.port("host-1[1]"), readdresses: false });
    let standbys = &bench.world.subnet(PortId(1)).unwrap().standbys;
    assert_eq!(*standbys, ["host-2[1]", "leaf-0-0[0]"].map(|port| bench.port(port)));
}

#[test]
fn nobody_manages_while_the_masters_host_is_off() {
    let mut bench = Bench::new(tree());
    bench.power("host-1", false);
    bench.signal("host-4[1]", false);
    bench.after(5000);
    bench.signal("host-4[1]", true);
    bench.after(60_000);
    assert_eq!(bench.state("host-4[1]"), state::INIT);
    assert!(bench.world.port_state_change(bench.node("leaf-0-2")));
    bench.power("host-1", true);
    bench.after(1000);
    for port in ["host-4[1]", "host-1[1]", "leaf-0-0[2]"] {
        assert_eq!(bench.state(port), state::ACTIVE, "{port}");
    }
    assert!(!bench.world.port_state_change(bench.node("leaf-0-2")));
}

#[test]
fn what_the_manager_cannot_reach_it_does_not_put_to_use() {
    let mut bench = Bench::new(tree());
    for uplink in ["leaf-0-2[3]", "leaf-0-2[4]"] {
        bench.signal(uplink, false);
    }
    bench.act(Action::Limit { end: bench.port("host-4[1]"), width: Some(Width::X1), speed: None });
    bench.after(10_000);
    assert_eq!(bench.state("host-4[1]"), state::INIT);
    bench.signal("leaf-0-2[3]", true);
    bench.after(1000);
    assert_eq!(bench.state("host-4[1]"), state::ACTIVE);
}

#[test]
fn traffic_flows_while_it_is_said_to_and_there_is_a_way() {
    let mut bench = Bench::new(tree());
    let words = |bench: &mut Bench, expected: &[(&str, u64)]| {
        let clear = bench.world.net().port_ids().collect();
        bench.act(Action::Clear { ports: clear });
        bench.after(4000);
        let hosts = bench.counted(Counter::RcvData).into_iter();
        let hosts: Vec<_> = hosts.filter(|(port, _)| port.starts_with("host")).collect();
        let expected: Vec<_> =
            expected.iter().map(|(port, count)| ((*port).to_owned(), *count)).collect();
        assert_eq!(hosts, expected);
    };
    words(&mut bench, &[]);
    bench.send("a", &[("host-2[1]", "host-4[1]"), ("host-3[1]", "host-5[1]")]);
    words(&mut bench, &[("host-4[1]", 1_000_000_000), ("host-5[1]", 1_000_000_000)]);
    // Flows of another name add to it, and those of the same name come in its place.
    bench.send("b", &[("host-0[1]", "host-4[1]")]);
    bench.send("a", &[("host-2[1]", "host-4[1]")]);
    words(&mut bench, &[("host-4[1]", 2_000_000_000)]);
    bench.send("a", &[]);
    words(&mut bench, &[("host-4[1]", 1_000_000_000)]);
    // A host without a link gets nothing, and its sender loses what was on its way.
    bench.signal("host-4[1]", false);
    bench.assert_counted(Counter::XmitDiscards, &[("leaf-0-2[1]", 112)]);
    bench.assert_counted(Counter::XmitInactiveDiscards, &[("leaf-0-2[1]", 112)]);
    words(&mut bench, &[]);
    bench.signal("host-4[1]", true);
    bench.after(1000);
    words(&mut bench, &[("host-4[1]", 1_000_000_000)]);
}

#[test]
fn bits_are_wrong_where_there_is_a_link_for_as_long_as_it_is_said() {
    let mut bench = Bench::new(tree());
    let corrupt = |bench: &mut Bench, into: &str, ratio| {
        bench.act(Action::Corrupt { into: bench.port(into), ratio });
    };
    for nothing in ["leaf-0-0[6]", "leaf-0-0[0]", "host-0[0]"] {
        corrupt(&mut bench, nothing, 1e-9);
    }
    bench.signal("host-4[1]", false);
    corrupt(&mut bench, "host-4[1]", 1e-9);
    bench.after(60_000);
    bench.assert_counted(Counter::SymbolErrors, &[]);
    // 4000 a second from the next second on, for ten seconds, to the last.
    corrupt(&mut bench, "host-5[1]", 1e-8);
    bench.after(10_000);
    corrupt(&mut bench, "host-5[1]", 0.0);
    let count = bench.count("host-5[1]", Counter::SymbolErrors);
    assert!((38_800..=41_200).contains(&count), "{count}");
    bench.assert_counted(Counter::LocalLinkIntegrityErrors, &[("host-5[1]", 10)]);
    bench.after(60_000);
    bench.assert_counted(Counter::SymbolErrors, &[("host-5[1]", count)]);
    // The port stays bad whatever is plugged in.
    bench.signal("host-4[1]", true);
    bench.plug("leaf-0-2[1]", "leaf-0-2[6]");
    bench.after(10_000);
    assert!(bench.count("host-4[1]", Counter::SymbolErrors) > 3600);
}

#[test]
fn a_mended_cable_counts_its_last_second_also_when_the_story_says_so() {
    let net = pair();
    let (into, other) = (find(&net, "host-0[1]"), find(&net, "host-1[1]"));
    let step = |at, into, ratio| Step {
        at: Duration::from_secs(at),
        action: Action::Corrupt { into, ratio },
    };
    let steps = vec![step(0, other, 1e-9), step(30, into, 1e-8), step(40, into, 0.0)];
    let mut world = World::new(story(net, steps));
    world.advance(Moment::default() + Duration::from_secs(100));
    // One for each second in which there are more than a few, and there are in all.
    assert_eq!(world.count(into, Counter::LocalLinkIntegrityErrors), 10);
    assert_eq!(world.count(other, Counter::LocalLinkIntegrityErrors), 100);
}
