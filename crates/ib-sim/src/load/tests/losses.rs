use super::*;

#[test]
fn bad_cable_causes_errors_at_its_end_and_remote_errors_after_it() {
    // Hosts 0 to 2 and 3 to 5 at switches 6 and 7; the cable between is bad at switch 7.
    let mut bench = Bench::dumbbell(3, 1);
    let bad = bench.at((7, 4));
    bench.bit_errors[bad] = 1e-9;
    let loads = bench.load_of(&[(0, 3, 0.1), (1, 4, 0.2), (5, 2, 0.3), (3, 4, 0.1)]);
    // 8 × 4096 bits a packet; 16 packets are sent again for each lost one.
    let lost = 32768e-9 * (1.0 - 0.5 * 32768e-9);
    let growth = 1.0 + 16.0 * lost;
    let packets = 0.1 * SPEED / f64::from(PACKET) * growth;
    let near = |got: f64, expected: f64| assert!((got / expected - 1.0).abs() < 1e-6, "{got}");
    near(loads[bad].rcv_errors, 3.0 * packets * lost);
    near(loads[bench.at((3, 1))].rcv_remote_physical_errors, packets * lost);
    near(loads[bench.at((4, 1))].rcv_remote_physical_errors, 2.0 * packets * lost);
    near(loads[bench.at((0, 1))].xmit_packets, packets);
    near(loads[bench.at((7, 2))].xmit_packets, 2.0 * packets + packets / growth);
    // No other port has errors.
    let seen = |load: &PortLoad| load.rcv_errors + load.rcv_remote_physical_errors > 0.0;
    let seen: Vec<usize> = (0..loads.len()).filter(|&port| seen(&loads[port])).collect();
    assert_eq!(seen, [bench.at((3, 1)), bench.at((4, 1)), bad]);
    close(loads[bench.at((2, 1))].rcv_bytes, 0.3 * SPEED);
    assert_eq!(bench.waiting(&loads), []);
}

#[test]
fn bad_cable_at_a_host_causes_no_remote_errors() {
    let mut bench = Bench::dumbbell(1, 1);
    let bad = bench.at((1, 1));
    bench.bit_errors[bad] = 1e-8;
    let loads = bench.load_of(&[(0, 1, 0.1), (1, 0, 0.1)]);
    assert!(loads[bad].rcv_errors > 0.0);
    let others = loads.iter().enumerate().filter(|&(port, _)| port != bad);
    assert!(others.clone().all(|(_, load)| load.rcv_errors <= 0.0));
    assert!(loads.iter().all(|load| load.rcv_remote_physical_errors <= 0.0));
}

#[test]
fn retransmissions_at_most_double_the_traffic() {
    let mut bench = Bench::dumbbell(1, 1);
    let bad = bench.at((3, 2));
    bench.bit_errors[bad] = 1.0;
    let loads = bench.load_of(&[(0, 1, 0.3)]);
    close(loads[bench.at((0, 1))].xmit_bytes, 0.6 * SPEED);
    close(loads[bad].rcv_errors, loads[bad].rcv_packets);
    // Retransmissions are limited by the link, too.
    let loads = bench.load_of(&[(0, 1, 0.8)]);
    close(loads[bench.at((0, 1))].xmit_bytes, SPEED);
}
