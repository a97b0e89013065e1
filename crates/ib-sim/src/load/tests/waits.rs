use super::*;

/// Hosts 0 to 3 and 4 to 7 at switches 8 and 9, with a cable between their ports 5.
fn bench() -> Bench {
    Bench::dumbbell(4, 1)
}

#[track_caller]
fn check_waiting(bench: &Bench, loads: &[PortLoad], expected: &[(&str, f64)]) {
    let waiting = bench.waiting(loads);
    let names: Vec<&str> = waiting.iter().map(|(name, _)| name.as_str()).collect();
    assert_eq!(names, expected.iter().map(|(name, _)| *name).collect::<Vec<_>>());
    for ((name, got), (_, expected)) in waiting.iter().zip(expected) {
        assert!((got - expected).abs() < 1e-4, "{name}: {got}, not {expected}");
    }
}

#[test]
fn no_port_waits_without_a_bottleneck() {
    let bench = bench();
    for flows in [
        &[][..],
        &[(0, 4, 0.5), (1, 4, 0.5), (4, 0, 1.0)],
        &[(0, 4, 1.0 / 3.0), (1, 5, 1.0 / 3.0), (2, 6, 1.0 / 3.0), (3, 3, 9.0)],
    ] {
        let loads = bench.load_of(flows);
        check_waiting(&bench, &loads, &[]);
        for &(from, to, share) in flows.iter().filter(|(from, to, _)| from != to) {
            assert!(loads[bench.at((from, 1))].xmit_bytes >= share * SPEED);
            assert!(loads[bench.at((to, 1))].rcv_bytes >= share * SPEED);
        }
    }
}

#[test]
fn full_link_is_shared_fairly() {
    let bench = bench();
    // (offered, carried)
    for (offered, carried) in [
        ([0.5, 0.5, 0.5, 0.0], [1.0 / 3.0, 1.0 / 3.0, 1.0 / 3.0, 0.0]),
        ([1.0, 1.0, 1.0, 1.0], [0.25; 4]),
        ([0.6, 0.6, 0.0, 0.0], [0.5, 0.5, 0.0, 0.0]),
        // An adapter does not send more than its link carries.
        ([f64::INFINITY, 1.0, 0.0, 0.0], [0.5, 0.5, 0.0, 0.0]),
    ] {
        let flows: Vec<_> = (0..4).map(|host| (host, host + 4, offered[host as usize])).collect();
        let loads = bench.load_of(&flows);
        for host in 0..4 {
            close(loads[bench.at((host, 1))].xmit_bytes, carried[host as usize] * SPEED);
        }
        close(loads[bench.at((8, 5))].xmit_bytes, SPEED);
    }
}

#[test]
fn feeders_of_a_full_link_wait() {
    let bench = bench();
    let loads = bench.load_of(&[(0, 4, 0.75), (1, 5, 0.75), (2, 3, 0.5), (6, 0, 0.5)]);
    // A third of the traffic is held up.
    check_waiting(&bench, &loads, &[("n0[1]", 1.0 / 3.0), ("n1[1]", 1.0 / 3.0)]);
    assert!(loads.iter().all(|load| load.hoq_discards <= 0.0));
}

#[test]
fn slow_receiver_is_the_root_of_a_tree() {
    let mut bench = bench();
    let slow = bench.at((4, 1));
    bench.intake[slow] = 0.2 * SPEED;
    let loads = bench.load_of(&[(0, 4, 0.4), (1, 4, 0.4), (5, 4, 0.0), (2, 6, 0.1)]);
    // The port before it sends a fifth of the time, and waits for the rest. Host 2 is a victim: a
    // ninth of the traffic between the switches is its own.
    let between = 0.8 * 8.0 / 9.0;
    let expected = [
        ("n0[1]", between),
        ("n1[1]", between),
        ("n2[1]", between),
        ("n8[5]", between),
        ("n9[1]", 0.8),
    ];
    check_waiting(&bench, &loads, &expected);
    close(loads[slow].rcv_bytes, 0.2 * SPEED);
    let victim = loads[bench.at((6, 1))].rcv_bytes / SPEED;
    // Three quarters of the demand are not accepted: all flows on the path are slowed by as much.
    assert!((victim - 0.1 * (1.0 - 0.75 * 8.0 / 9.0)).abs() < 1e-4, "{victim}");
    // Most packets are discarded where the wait is longest, and few of all.
    let root = &loads[bench.at((9, 1))];
    let near = &loads[bench.at((8, 5))];
    assert!(root.hoq_discards > 5.0 * near.hoq_discards && near.hoq_discards > 0.0);
    assert!(root.hoq_discards < 1e-3 * root.xmit_packets);
    let discarding = loads.iter().filter(|load| load.hoq_discards > 0.0).count();
    assert_eq!(discarding, 2);
}

#[test]
fn slow_receiver_slows_its_senders() {
    let mut bench = bench();
    let slow = bench.at((4, 1));
    let root = bench.at((9, 1));
    // (intake, offered, carried, waiting)
    for (intake, offered, carried, waiting) in [
        (1.0, 1.0, 1.0, 0.0),
        (0.5, 0.5, 0.5, 0.0),
        (0.5, 0.4, 0.4, 0.0),
        (0.5, 0.625, 0.5, 0.5),
        (0.5, 1.0, 0.5, 0.5),
        (0.1, 1.0, 0.1, 0.9),
        (0.0, 0.5, 0.0, 1.0),
    ] {
        bench.intake[slow] = intake * SPEED;
        let loads = bench.load_of(&[(0, 4, offered)]);
        close(loads[slow].rcv_bytes, carried * SPEED);
        assert!((loads[root].waiting - waiting).abs() < 1e-9, "{}", loads[root].waiting);
        assert_eq!(loads[root].hoq_discards > 0.0, waiting > 0.5);
        // Its sender waits as long, without the time in which it sends packets that are discarded.
        let sender = loads[bench.at((0, 1))].waiting;
        assert!(sender <= waiting + 1e-9 && sender > waiting - 1e-3, "{sender}");
    }
}

#[test]
fn senders_wait_no_longer_than_the_root() {
    let mut bench = bench();
    let slow = bench.at((4, 1));
    bench.intake[slow] = 0.5 * SPEED;
    let flows: Vec<_> = [0, 1, 2, 3, 5, 6, 7].map(|from| (from, 4, 1.0)).to_vec();
    let loads = bench.load_of(&flows);
    close(loads[bench.at((9, 1))].waiting, 0.5);
    close(loads[slow].rcv_bytes, 0.5 * SPEED);
    // Seven fair shares.
    let sent = loads[bench.at((7, 1))].xmit_bytes;
    assert!((sent / (0.5 * SPEED / 7.0) - 1.0).abs() < 1e-3, "{sent}");
    assert!(loads.iter().all(|load| load.waiting <= 0.5 + 1e-9));
}

#[test]
fn hosts_without_a_switch_discard_nothing() {
    let mut bench = Bench::new(&[(NodeKind::Ca, 1), (NodeKind::Ca, 1)], &[((0, 1), (1, 1))]);
    let slow = bench.at((1, 1));
    bench.intake[slow] = 0.1 * SPEED;
    let loads = bench.load_of(&[(0, 1, 1.0)]);
    check_waiting(&bench, &loads, &[("n0[1]", 0.9)]);
    assert!(loads.iter().all(|load| load.hoq_discards <= 0.0));
}

#[test]
fn feeders_of_a_narrow_link_wait() {
    let mut bench = bench();
    for end in [(8, 5), (9, 5)] {
        let port = bench.at(end);
        bench.capacity[port] = 0.25 * SPEED;
    }
    let loads = bench.load_of(&[(0, 4, 0.5), (1, 2, 0.5)]);
    check_waiting(&bench, &loads, &[("n0[1]", 0.5)]);
    close(loads[bench.at((4, 1))].rcv_bytes, 0.25 * SPEED);
    close(loads[bench.at((2, 1))].rcv_bytes, 0.5 * SPEED);
}

#[test]
fn slowed_victims_relieve_a_link() {
    let mut bench = bench();
    let slow = bench.at((4, 1));
    bench.intake[slow] = 0.0;
    // The demand at the cable between is 1.1, but all of it is slowed by what host 4 does not take
    // in.
    let loads = bench.load_of(&[(0, 4, 0.8), (1, 5, 0.3)]);
    assert!(loads[bench.at((8, 5))].xmit_bytes < 0.5 * SPEED);
    assert!(loads[bench.at((8, 5))].waiting > 0.5);
    close(loads[bench.at((9, 1))].waiting, 1.0);
}

#[test]
fn invalid_conditions_are_no_load() {
    let mut bench = bench();
    let (a, b) = (bench.at((4, 1)), bench.at((5, 1)));
    bench.intake[a] = f64::NAN;
    bench.intake[b] = -1.0;
    bench.capacity[a] = f64::NAN;
    let mut flows =
        bench.flows(&[(0, 4, 0.1), (1, 5, 0.1), (2, 6, f64::NAN), (3, 7, -1.0), (4, 0, 0.1)]);
    flows[0].packet = 0;
    flows.push(Flow { to: PortId(u32::MAX), ..flows[0] });
    flows.push(Flow { from: PortId(u32::MAX), ..flows[0] });
    let loads = bench.load(&flows);
    // Half of the traffic of the cable is for host 5, which takes nothing in.
    close(loads[a].rcv_bytes, 0.05 * SPEED);
    close(loads[a].rcv_packets, 0.05 * SPEED);
    close(loads[a].xmit_bytes, 0.0);
    close(loads[b].rcv_bytes, 0.0);
    close(loads[bench.at((9, 2))].waiting, 1.0);
    // Slices that are too short: without capacity.
    let empty = Conditions { capacity: &[], intake: &[], bit_errors: &[] };
    let loads = RoutedFlows::new(&bench.net, &bench.links, &flows).load(&empty);
    assert!(loads.iter().all(|load| load.xmit_bytes <= 0.0));
}
