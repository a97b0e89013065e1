//! The effect of each change.

use super::*;
use ib_mad::port_state::{PhysicalState, PortState};
use ib_mad::rate::{Speed, Width};

const NDR: u64 = 50_000_000_000;

#[test]
fn link_comes_up_in_init_until_the_sm_sweeps() {
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
            assert_eq!(ends.map(|end| bench.state(end)), [PortState::Down; 2]);
            let port = bench.simulation.port(bench.port(end));
            assert_eq!(
                (port.physical_state(), port.bytes_per_second()),
                (PhysicalState::Polling, 0)
            );
            bench.after(5000);
            bench.signal(&far, true);
            assert_eq!(ends.map(|end| bench.state(end)), [PortState::Init; 2]);
            assert_eq!(bench.simulation.port(bench.port(end)).bytes_per_second(), NDR);
            bench.after(999);
            assert_eq!(ends.map(|end| bench.state(end)), [PortState::Init; 2]);
            bench.after(1);
            assert_eq!(ends.map(|end| bench.state(end)), [PortState::Active; 2]);
            // A link that is up does not come up again.
            bench.signal(end, true);
            assert_eq!(ends.map(|end| bench.state(end)), [PortState::Active; 2]);
        }
        bench.assert_counted(Counter::LinkDowned, &ends.map(|end| (end, 2)));
        // A Quantum-2 discards packets to a port without a link; that is not congestion.
        let switches = ends.into_iter().filter(|end| !end.starts_with("host"));
        let discards: Vec<(&str, u64)> = switches.map(|end| (end, 2 * 112)).collect();
        bench.assert_counted(Counter::XmitDiscards, &discards);
        bench.assert_counted(Counter::XmitInactiveDiscards, &discards);
        bench.assert_counted(Counter::LinkErrorRecoveries, &[]);
    }
}

#[test]
fn port_state_change_is_set_until_the_sm_sweeps() {
    let mut bench = Bench::new(tree());
    let changed = |bench: &Bench| -> Vec<String> {
        let net = bench.simulation.net();
        net.node_ids()
            .filter(|node| bench.simulation.node(*node).port_state_change)
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
    bench.apply(FabricChange::Retrain { port: bench.port("leaf-0-2[3]") });
    assert_eq!(changed(&bench), [""; 0], "it was never down");
}

#[test]
fn retraining_counts_a_link_error_recovery() {
    let mut bench = Bench::new(tree());
    let port = bench.port("host-4[1]");
    bench.apply(FabricChange::Retrain { port });
    bench.apply(FabricChange::Retrain { port });
    assert_eq!(bench.state("host-4[1]"), PortState::Active);
    let twice = [("host-4[1]", 2), ("leaf-0-2[1]", 2)];
    bench.assert_counted(Counter::LinkErrorRecoveries, &twice);
    bench.assert_counted(Counter::LinkDowned, &[]);
    // A link that is down, or does not exist, does not retrain.
    bench.signal("host-4[1]", false);
    for end in ["host-4[1]", "leaf-0-0[6]", "leaf-0-0[0]", "host-4[0]"] {
        bench.apply(FabricChange::Retrain { port: bench.port(end) });
    }
    bench.assert_counted(Counter::LinkErrorRecoveries, &twice);
}

#[test]
fn link_limit_holds_from_either_end() {
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
        bench.apply(FabricChange::LimitLink { port: bench.port(at), width, speed });
        for end in [end, &far] {
            assert_eq!(bench.simulation.port(bench.port(end)).bytes_per_second(), bytes, "{nth}");
            assert_eq!(bench.state(end), PortState::Init);
        }
        bench.after(2000);
        bench.assert_counted(Counter::LinkDowned, &[(end, nth as u64 + 1), (&far, nth as u64 + 1)]);
    }
    // Without a signal the link does not train; the limit holds later.
    bench.signal(end, false);
    bench.apply(FabricChange::LimitLink {
        port: bench.port(end),
        width: Some(Width::X1),
        speed: None,
    });
    assert_eq!(bench.state(end), PortState::Down);
    bench.signal(end, true);
    assert_eq!(bench.simulation.port(bench.port(&far)).bytes_per_second(), NDR / 4);
    bench.assert_counted(Counter::LinkDowned, &[(end, 6), (&far, 6)]);
}

#[test]
fn disabled_port_has_no_link_until_it_is_enabled() {
    let mut bench = Bench::new(tree());
    let (port, far) = (bench.port("leaf-0-2[1]"), bench.port("host-4[1]"));
    bench.apply(FabricChange::SetDisabled { port, disabled: true });
    let physical = |bench: &Bench, port| bench.simulation.port(port).physical_state();
    assert_eq!(
        [port, far].map(|port| physical(&bench, port)),
        [PhysicalState::Disabled, PhysicalState::Polling]
    );
    assert_eq!(bench.state("host-4[1]"), PortState::Down);
    bench.apply(FabricChange::SetDisabled { port, disabled: false });
    bench.after(2000);
    assert_eq!([port, far].map(|port| physical(&bench, port)), [PhysicalState::LinkUp; 2]);
    bench.assert_counted(Counter::LinkDowned, &[("host-4[1]", 1), ("leaf-0-2[1]", 1)]);
}

#[test]
fn counter_grows_beside_what_is_counted() {
    let mut bench = Bench::new(tree());
    let port = bench.port("leaf-0-1[3]");
    for _ in 0..2 {
        bench.apply(FabricChange::AddToCounter {
            port,
            counter: Counter::RcvSwitchRelayErrors,
            count: 7,
        });
    }
    bench.assert_counted(Counter::RcvSwitchRelayErrors, &[("leaf-0-1[3]", 14)]);
}

#[test]
fn link_that_is_limited_from_the_start_has_trained_so() {
    let port = find(&tree(), "host-4[1]");
    let change = FabricChange::LimitLink { port, width: Some(Width::X1), speed: None };
    let simulation =
        Simulation::new(scenario(tree(), vec![TimedChange { at: Duration::ZERO, change }]));
    let port = simulation.port(find(simulation.net(), "leaf-0-2[1]"));
    assert_eq!((port.state, port.bytes_per_second()), (PortState::Active, NDR / 4));
    assert_eq!(simulation.count(find(simulation.net(), "host-4[1]"), Counter::LinkDowned), 0);
}

#[test]
fn power_off_takes_links_down_and_clears_counters() {
    let mut bench = Bench::new(tree());
    bench.send("all", &[("host-4[1]", "host-0[1]")]);
    bench.after(10_000);
    let sent = bench.count("leaf-0-0[1]", Counter::XmitData);
    assert!(sent > 0 && bench.count("host-4[1]", Counter::XmitData) == sent);
    // To power off twice makes no difference.
    bench.power("host-4", false);
    bench.after(5000);
    bench.power("host-4", false);
    assert!(!bench.simulation.node(bench.node("host-4")).on);
    assert_eq!(
        (bench.state("host-4[1]"), bench.state("leaf-0-2[1]")),
        (PortState::Down, PortState::Down)
    );
    bench.after(5000);
    assert_eq!(bench.count("leaf-0-0[1]", Counter::XmitData), sent, "nothing is sent");
    bench.power("host-4", true);
    assert_eq!(bench.count("host-4[1]", Counter::XmitData), 0);
    bench.assert_counted(Counter::LinkDowned, &[("leaf-0-2[1]", 1)]);
    bench.after(10_000);
    // A node that is on is not started again.
    bench.power("host-4", true);
    bench.after(1000);
    assert_eq!(bench.count("host-4[1]", Counter::XmitData), 10 * 250_000_000);
    assert_eq!(bench.count("leaf-0-0[1]", Counter::XmitData), sent + 10 * 250_000_000);
}

#[test]
fn link_between_two_nodes_that_are_off_needs_both() {
    let mut bench = Bench::new(tree());
    let (leaf, spine) = ("leaf-0-1[3]", bench.cable("leaf-0-1[3]").unwrap());
    let node = spine.split('[').next().unwrap().to_owned();
    bench.power("leaf-0-1", false);
    bench.after(1000);
    bench.power(&node, false);
    bench.after(1000);
    bench.power("leaf-0-1", true);
    bench.after(3000);
    assert_eq!(bench.state(leaf), PortState::Down);
    bench.power(&node, true);
    assert_eq!((bench.state(leaf), bench.state(&spine)), (PortState::Init, PortState::Init));
    bench.after(1000);
    assert_eq!((bench.state(leaf), bench.state(&spine)), (PortState::Active, PortState::Active));
    // Both have been cleared since.
    assert_eq!([leaf, &spine].map(|end| bench.count(end, Counter::LinkDowned)), [0, 0]);
}

#[test]
fn reboot_does_not_reset_agent_behavior() {
    let mut bench = Bench::new(pair());
    bench.power("host-1", false);
    let node = bench.node("host-1");
    bench.apply(FabricChange::SetAgents { node, behavior: AgentBehavior::Silent });
    bench.power("host-1", true);
    assert_eq!(bench.simulation.node(node).behavior, AgentBehavior::Silent);
}

#[test]
fn counters_are_cleared_and_set() {
    let mut bench = Bench::new(pair());
    bench.send("all", &[("host-0[1]", "host-1[1]")]);
    bench.after(10_000);
    let (here, there) = (bench.port("host-0[1]"), bench.port("host-1[1]"));
    bench.apply(FabricChange::SetCounter {
        port: there,
        counter: Counter::SymbolErrors,
        value: 4242,
    });
    bench.apply(FabricChange::SetCounter { port: there, counter: Counter::RcvData, value: 7 });
    bench.apply(FabricChange::ClearCounters { ports: vec![here] });
    bench.assert_counted(Counter::XmitData, &[]);
    bench.assert_counted(Counter::SymbolErrors, &[("host-1[1]", 4242)]);
    bench.assert_counted(Counter::RcvData, &[("host-1[1]", 7)]);
    // Counters continue from there.
    bench.after(2000);
    bench.assert_counted(Counter::XmitData, &[("host-0[1]", 500_000_000)]);
    bench.assert_counted(Counter::RcvData, &[("host-1[1]", 500_000_007)]);
}

#[test]
fn cable_is_moved_to_a_free_port_and_back() {
    let mut bench = Bench::new(tree());
    // The limit has ended: this is another link.
    let port = bench.port("host-4[1]");
    bench.apply(FabricChange::LimitLink { port, width: Some(Width::X1), speed: None });
    bench.signal("host-4[1]", false);
    bench.after(2000);
    bench.move_cable("leaf-0-2[1]", "spine-1[6]");
    assert_eq!(bench.cable("spine-1[6]").as_deref(), Some("host-4[1]"));
    assert_eq!(bench.cable("host-4[1]").as_deref(), Some("spine-1[6]"));
    assert_eq!((bench.cable("leaf-0-2[1]"), bench.state("leaf-0-2[1]")), (None, PortState::Down));
    assert_eq!(bench.simulation.port(port).bytes_per_second(), NDR);
    bench.after(1000);
    assert_eq!(
        (bench.state("host-4[1]"), bench.state("spine-1[6]")),
        (PortState::Active, PortState::Active)
    );
    bench.move_cable("spine-1[6]", "leaf-0-2[1]");
    bench.after(1000);
    assert_eq!(bench.cable("host-4[1]").as_deref(), Some("leaf-0-2[1]"));
    assert_eq!(
        (bench.state("host-4[1]"), bench.state("spine-1[6]")),
        (PortState::Active, PortState::Down)
    );
    // It is limited and loses its signal at one moment, which is one change, and is moved back. At
    // the first move it was down already.
    let counts = [("host-4[1]", 2), ("leaf-0-2[1]", 1), ("spine-1[6]", 1)];
    bench.assert_counted(Counter::LinkDowned, &counts);
}

#[test]
fn move_to_a_cabled_port_swaps_the_cables() {
    let mut bench = Bench::new(tree());
    bench.move_cable("leaf-0-2[1]", "leaf-0-3[2]");
    bench.after(1000);
    for (here, there) in [("host-4[1]", "leaf-0-3[2]"), ("host-7[1]", "leaf-0-2[1]")] {
        assert_eq!(bench.cable(here).as_deref(), Some(there));
        assert_eq!(bench.cable(there).as_deref(), Some(here));
        assert_eq!((bench.state(here), bench.state(there)), (PortState::Active, PortState::Active));
    }
    assert_eq!(bench.counted(Counter::LinkDowned).into_values().collect::<Vec<_>>(), [1; 4]);
}

#[test]
fn swapping_the_ends_of_one_cable_changes_nothing() {
    let mut bench = Bench::new(tree());
    bench.move_cable("leaf-0-2[1]", "host-4[1]");
    assert_eq!(bench.cable("host-4[1]").as_deref(), Some("leaf-0-2[1]"));
    assert_eq!(bench.cable("leaf-0-2[1]").as_deref(), Some("host-4[1]"));
    bench.assert_counted(Counter::LinkDowned, &[("host-4[1]", 1), ("leaf-0-2[1]", 1)]);
    bench.after(1000);
    assert_eq!(bench.state("host-4[1]"), PortState::Active);
    // Impossible moves change nothing.
    for (from, to) in [("leaf-0-2[1]", "leaf-0-2[1]"), ("leaf-0-2[1]", "spine-0[0]")] {
        bench.move_cable(from, to);
        assert_eq!(bench.cable("leaf-0-2[1]").as_deref(), Some("host-4[1]"));
        assert_eq!(bench.state("host-4[1]"), PortState::Active);
    }
    bench.move_cable("leaf-0-2[5]", "leaf-0-2[6]");
    bench.assert_counted(Counter::LinkDowned, &[("host-4[1]", 1), ("leaf-0-2[1]", 1)]);
}

#[test]
fn signal_that_returns_with_a_move_is_one_link_down() {
    let mut bench = Bench::new(tree());
    bench.signal("host-4[1]", false);
    bench.after(5000);
    bench.signal("host-4[1]", true);
    bench.move_cable("leaf-0-2[1]", "leaf-0-2[5]");
    let once = [("host-4[1]", 1), ("leaf-0-2[1]", 1)];
    bench.assert_counted(Counter::LinkDowned, &once);
}

#[test]
fn port_with_its_first_cable_joins_the_subnet() {
    let mut net = tree();
    let (host, leaf) = (find(&net, "host-7[1]"), find(&net, "leaf-0-3[2]"));
    for end in [host, leaf] {
        net.ports[end.0 as usize].cable = None;
    }
    let mut bench = Bench::new(net);
    assert_eq!((bench.simulation.port(host).lid, bench.simulation.sm_lid(host)), (Lid(0), Lid(0)));
    // The leaf's second uplink is moved to the host.
    let spine = bench.cable("leaf-0-3[4]").unwrap();
    bench.move_cable(&spine, "host-7[1]");
    assert_eq!(bench.state("host-7[1]"), PortState::Init);
    bench.after(1000);
    assert_eq!(
        (bench.state("host-7[1]"), bench.state("leaf-0-3[4]")),
        (PortState::Active, PortState::Active)
    );
    let lid = bench.simulation.port(host).lid;
    assert!(lid.is_unicast());
    assert_eq!(bench.simulation.port_of_lid(bench.port("host-0[1]"), lid), Some(host));
    assert_eq!(bench.simulation.sm_lid(host), bench.simulation.sm_lid(leaf));
}

#[test]
fn new_master_may_reassign_lids() {
    let mut bench = Bench::new(tree());
    let lids = |bench: &Bench| -> Vec<(PortId, Lid)> {
        let net = bench.simulation.net();
        let all = net.port_ids().map(|port| (port, bench.simulation.port(port).lid));
        all.filter(|(_, lid)| *lid != Lid(0)).collect()
    };
    let before = lids(&bench);
    assert_eq!(before.len(), 8 + 6);
    let master = |bench: &Bench| bench.simulation.subnet(PortId(1)).unwrap().master;
    for (host, reassign_lids) in [("host-2[1]", false), ("host-2[1]", true), ("leaf-0-0[0]", true)]
    {
        let (port, last) = (bench.port(host), lids(&bench));
        bench.apply(FabricChange::SetMaster { port, reassign_lids });
        bench.after(1000);
        let now = lids(&bench);
        assert_eq!(master(&bench), port);
        assert_eq!(
            bench.simulation.sm_lid(bench.port("host-6[1]")),
            bench.simulation.port(port).lid
        );
        let kept = last.iter().filter(|seat| now.contains(seat)).count();
        assert_eq!(kept, if reassign_lids { 0 } else { last.len() }, "{host}");
        for (port, lid) in now {
            assert_eq!(bench.simulation.port_of_lid(bench.port("host-0[1]"), lid), Some(port));
        }
    }
    // The former masters are standby, each once.
    let standbys = &bench.simulation.subnet(PortId(1)).unwrap().standbys;
    assert_eq!(*standbys, ["host-1[1]", "host-2[1]"].map(|port| bench.port(port)));
    bench.apply(FabricChange::SetMaster { port: bench.port("host-1[1]"), reassign_lids: false });
    let standbys = &bench.simulation.subnet(PortId(1)).unwrap().standbys;
    assert_eq!(*standbys, ["host-2[1]", "leaf-0-0[0]"].map(|port| bench.port(port)));
}

#[test]
fn no_sm_sweeps_while_the_masters_host_is_off() {
    let mut bench = Bench::new(tree());
    bench.power("host-1", false);
    bench.signal("host-4[1]", false);
    bench.after(5000);
    bench.signal("host-4[1]", true);
    bench.after(60_000);
    assert_eq!(bench.state("host-4[1]"), PortState::Init);
    assert!(bench.simulation.node(bench.node("leaf-0-2")).port_state_change);
    bench.power("host-1", true);
    bench.after(1000);
    for port in ["host-4[1]", "host-1[1]", "leaf-0-0[2]"] {
        assert_eq!(bench.state(port), PortState::Active, "{port}");
    }
    assert!(!bench.simulation.node(bench.node("leaf-0-2")).port_state_change);
}

#[test]
fn sm_activates_only_reachable_links() {
    let mut bench = Bench::new(tree());
    for uplink in ["leaf-0-2[3]", "leaf-0-2[4]"] {
        bench.signal(uplink, false);
    }
    bench.apply(FabricChange::LimitLink {
        port: bench.port("host-4[1]"),
        width: Some(Width::X1),
        speed: None,
    });
    bench.after(10_000);
    assert_eq!(bench.state("host-4[1]"), PortState::Init);
    bench.signal("leaf-0-2[3]", true);
    bench.after(1000);
    assert_eq!(bench.state("host-4[1]"), PortState::Active);
}

#[test]
fn traffic_flows_along_active_paths() {
    let mut bench = Bench::new(tree());
    let words = |bench: &mut Bench, expected: &[(&str, u64)]| {
        let clear = bench.simulation.net().port_ids().collect();
        bench.apply(FabricChange::ClearCounters { ports: clear });
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
    // Flows of another name are added; those of the same name are replaced.
    bench.send("b", &[("host-0[1]", "host-4[1]")]);
    bench.send("a", &[("host-2[1]", "host-4[1]")]);
    words(&mut bench, &[("host-4[1]", 2_000_000_000)]);
    bench.send("a", &[]);
    words(&mut bench, &[("host-4[1]", 1_000_000_000)]);
    // A host without a link receives nothing, and its sender loses packets in transit.
    bench.signal("host-4[1]", false);
    bench.assert_counted(Counter::XmitDiscards, &[("leaf-0-2[1]", 112)]);
    bench.assert_counted(Counter::XmitInactiveDiscards, &[("leaf-0-2[1]", 112)]);
    words(&mut bench, &[]);
    bench.signal("host-4[1]", true);
    bench.after(1000);
    words(&mut bench, &[("host-4[1]", 1_000_000_000)]);
}

#[test]
fn bit_errors_need_a_link() {
    let mut bench = Bench::new(tree());
    let corrupt = |bench: &mut Bench, into: &str, ratio| {
        bench.apply(FabricChange::CorruptBits { port: bench.port(into), ratio });
    };
    for nothing in ["leaf-0-0[6]", "leaf-0-0[0]", "host-0[0]"] {
        corrupt(&mut bench, nothing, 1e-9);
    }
    bench.signal("host-4[1]", false);
    corrupt(&mut bench, "host-4[1]", 1e-9);
    bench.after(60_000);
    bench.assert_counted(Counter::SymbolErrors, &[]);
    // 4000 a second, for ten seconds from the next one on.
    corrupt(&mut bench, "host-5[1]", 1e-8);
    bench.after(10_000);
    corrupt(&mut bench, "host-5[1]", 0.0);
    let count = bench.count("host-5[1]", Counter::SymbolErrors);
    assert!((38_800..=41_200).contains(&count), "{count}");
    bench.assert_counted(Counter::LocalLinkIntegrityErrors, &[("host-5[1]", 10)]);
    bench.after(60_000);
    bench.assert_counted(Counter::SymbolErrors, &[("host-5[1]", count)]);
    // The port stays bad with another cable.
    bench.signal("host-4[1]", true);
    bench.move_cable("leaf-0-2[1]", "leaf-0-2[6]");
    bench.after(10_000);
    assert!(bench.count("host-4[1]", Counter::SymbolErrors) > 3600);
}

#[test]
fn errors_are_drawn_up_to_the_end_of_the_effect() {
    let net = pair();
    let (into, other) = (find(&net, "host-0[1]"), find(&net, "host-1[1]"));
    let change = |at, port, ratio| TimedChange {
        at: Duration::from_secs(at),
        change: FabricChange::CorruptBits { port, ratio },
    };
    let changes = vec![change(0, other, 1e-9), change(30, into, 1e-8), change(40, into, 0.0)];
    let mut simulation = Simulation::new(scenario(net, changes));
    simulation.advance(Moment::default() + Duration::from_secs(100));
    // One for each second with more errors than the threshold, which is each second.
    assert_eq!(simulation.count(into, Counter::LocalLinkIntegrityErrors), 10);
    assert_eq!(simulation.count(other, Counter::LocalLinkIntegrityErrors), 100);
}
