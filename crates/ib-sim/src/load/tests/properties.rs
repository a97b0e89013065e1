//! Properties of any fabric and any traffic.

use proptest::prelude::*;

use super::super::RoutedFlows;
use super::*;

const NEARLY: f64 = 1e-6;

/// Switches in a chain with further cables at random, and hosts at random switches; some ports
/// slow, narrow or bad; random flows.
fn fabrics() -> impl Strategy<Value = (Bench, Vec<Flow>)> {
    let shape = (1..6_u32, 2..10_u32)
        .prop_flat_map(|(switches, hosts)| {
            let homes = prop::collection::vec(0..switches, hosts as usize);
            let extras = prop::collection::vec((0..switches, 0..switches), 0..8);
            (Just(switches), homes, extras)
        })
        .prop_map(|(switches, homes, extras)| fabric(switches, &homes, &extras));
    shape.prop_flat_map(|bench| {
        let hosts = bench.net.nodes.iter().filter(|node| node.kind == NodeKind::Ca).count() as u32;
        let ports = bench.net.ports.len();
        let portion = || prop_oneof![3 => Just(1.0), 1 => 0.0..1.0];
        let flow = (0..hosts, 0..hosts, prop_oneof![0.0..1.2, 0.0..0.1], 1..4097_u32);
        (
            Just(bench),
            prop::collection::vec(flow, 0..20),
            prop::collection::vec(portion(), hosts as usize),
            prop::collection::vec(portion(), ports),
            prop::collection::vec(prop_oneof![9 => Just(0.0), 1 => 0.0..1e-4], ports),
        )
            .prop_map(|(mut bench, flows, intakes, capacities, bit_errors)| {
                for (host, intake) in intakes.iter().enumerate() {
                    let port = bench.at((host as u32, 1));
                    if *intake < 1.0 {
                        bench.intake[port] = intake * SPEED;
                    }
                }
                bench.capacity = capacities.iter().map(|share| share * SPEED).collect();
                bench.bit_errors = bit_errors;
                let flow =
                    |&(from, to, share, packet)| Flow { packet, ..bench.flow(from, to, share) };
                let flows = flows.iter().map(flow).collect();
                (bench, flows)
            })
    })
}

/// The hosts are the first nodes.
fn fabric(switches: u32, homes: &[u32], extras: &[(u32, u32)]) -> Bench {
    let hosts = homes.len() as u32;
    let mut nodes = vec![(NodeKind::Ca, 1); homes.len()];
    nodes.resize(nodes.len() + switches as usize, (NodeKind::Switch, 40));
    let mut free = vec![1; switches as usize];
    let mut plug = |switch: u32| {
        let port = &mut free[switch as usize];
        *port += 1;
        (hosts + switch, *port - 1)
    };
    let mut cables = Vec::new();
    for (host, &home) in homes.iter().enumerate() {
        cables.push(((host as u32, 1), plug(home)));
    }
    let chain = (1..switches).map(|switch| (switch - 1, switch));
    for (a, b) in chain.chain(extras.iter().copied()) {
        let (a, b) = (plug(a), plug(b));
        cables.push((a, b));
    }
    Bench::new(&nodes, &cables)
}

/// The ports that feed this one, by its node.
fn feeders(routed: &RoutedFlows, port: PortId) -> Vec<PortId> {
    let pairs = routed.paths.iter().flat_map(|path| path.windows(2));
    pairs.filter(|pair| pair[1] == port).map(|pair| pair[0]).collect()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 600, ..ProptestConfig::default() })]

    #[test]
    fn nothing_carries_more_than_it_can((bench, flows) in fabrics()) {
        let loads = bench.load(&flows);
        for (port, load) in loads.iter().enumerate() {
            let all = [
                load.xmit_bytes, load.xmit_packets, load.rcv_bytes, load.rcv_packets, load.waiting,
                load.hoq_discards, load.rcv_errors,
                load.rcv_remote_physical_errors,
            ];
            prop_assert!(all.iter().all(|value| value.is_finite() && *value >= 0.0), "{load:?}");
            let most = bench.capacity[port] * (1.0 + NEARLY);
            prop_assert!(load.xmit_bytes <= most, "{load:?}");
            prop_assert!(load.rcv_bytes <= bench.intake[port] * (1.0 + NEARLY), "{load:?}");
            // A port cannot send and wait at the same time.
            let sends = if most > 0.0 { load.xmit_bytes / most } else { 0.0 };
            prop_assert!((0.0..=1.0).contains(&load.waiting));
            prop_assert!(sends + load.waiting <= 1.0 + NEARLY, "{load:?}");
            prop_assert!(load.rcv_errors + load.rcv_remote_physical_errors
                <= load.rcv_packets * (1.0 + NEARLY));
        }
        prop_assert_eq!(&loads, &bench.load(&flows), "the same again");
    }

    #[test]
    fn what_comes_in_goes_out((bench, mut flows) in fabrics()) {
        for flow in &mut flows {
            flow.packet = PACKET; // so that discarded packets can be counted in bytes
        }
        let loads = bench.load(&flows);
        let of = |port: PortId| &loads[port.0 as usize];
        for port in bench.net.port_ids() {
            let sent = bench.links[port.0 as usize].map_or(0.0, |end| of(end).xmit_bytes);
            prop_assert_eq!(of(port).rcv_bytes.to_bits(), sent.to_bits());
        }
        for node in bench.net.node_ids() {
            if bench.net.node(node).kind != NodeKind::Switch {
                continue;
            }
            let sum = |of_port: &dyn Fn(&PortLoad) -> f64| -> f64 {
                bench.net.cable_ports(node).map(|port| of_port(of(port))).sum()
            };
            let come = sum(&|load| load.rcv_bytes);
            let gone = sum(&|load| load.xmit_bytes + load.hoq_discards * f64::from(PACKET));
            prop_assert!((come - gone).abs() <= NEARLY * SPEED, "{come} in, {gone} out");
        }
    }

    #[test]
    fn who_waits_has_something_to_wait_for((bench, flows) in fabrics()) {
        let routed = RoutedFlows::new(&bench.net, &bench.links, &flows);
        let loads = routed.load(&bench.conditions());
        for port in bench.net.port_ids() {
            let load = &loads[port.0 as usize];
            if load.waiting <= 0.0 {
                continue;
            }
            let end = bench.links[port.0 as usize].unwrap();
            if bench.net.node_of(end).kind == NodeKind::Ca {
                let intake = bench.intake[end.0 as usize];
                prop_assert!(intake < bench.capacity[port.0 as usize]);
                prop_assert!(load.xmit_bytes <= intake * (1.0 + NEARLY));
                continue;
            }
            // A port that it feeds waits at least as long, or is full.
            let why = bench.net.cable_ports(bench.net.port(end).node).filter(|&next| {
                feeders(&routed, next).contains(&port)
            });
            let of = |next: PortId| (&loads[next.0 as usize], bench.capacity[next.0 as usize]);
            let mut why = why.map(of);
            prop_assert!(why.any(|(next, capacity)| {
                next.waiting >= load.waiting - NEARLY
                    || next.xmit_bytes >= capacity * (1.0 - 2.0 * NEARLY)
            }), "{} waits for nothing", bench.net.label(port));
        }
    }

    #[test]
    fn one_slow_receiver_is_the_longest_wait_and_all_others_are_upstream_of_it(
        (mut bench, mut flows) in fabrics(), share in 0.0..0.9,
    ) {
        if flows.is_empty() {
            return Ok(());
        }
        let count = flows.len() as f64;
        for flow in &mut flows {
            // Each is at most 1.2 times a link: no link can be too full, not with all sent twice either.
            flow.offered /= 2.5 * count;
        }
        bench.capacity.fill(SPEED);
        bench.intake.fill(f64::INFINITY);
        let healthy = bench.load(&flows);
        prop_assert_eq!(bench.waiting(&healthy), vec![]);
        let slow = flows[0].to.0 as usize;
        bench.intake[slow] = share * healthy[slow].rcv_bytes;
        let routed = RoutedFlows::new(&bench.net, &bench.links, &flows);
        let loads = routed.load(&bench.conditions());
        let Some(path) = routed.paths.first().filter(|path| !path.is_empty()) else { return Ok(()) };
        if healthy[slow].rcv_bytes < 1.0 {
            return Ok(());
        }
        let root = path[path.len() - 1];
        let longest = loads[root.0 as usize].waiting;
        prop_assert!(longest > 0.0);
        let mut upstream = vec![root];
        let mut next = 0;
        while let Some(&port) = upstream.get(next) {
            next += 1;
            for feeder in feeders(&routed, port) {
                if !upstream.contains(&feeder) {
                    upstream.push(feeder);
                }
            }
        }
        for port in bench.net.port_ids() {
            let waiting = loads[port.0 as usize].waiting;
            prop_assert!(waiting <= longest + 1e-9);
            prop_assert!(waiting <= 0.0 || upstream.contains(&port), "{}", bench.net.label(port));
        }
    }

    #[test]
    fn one_bad_cable_is_seen_at_its_end_and_down_the_way_only(
        (mut bench, flows) in fabrics(), nth in 0..20_usize, ratio in 1e-15..1e-5,
    ) {
        let routed = RoutedFlows::new(&bench.net, &bench.links, &flows);
        let paths = routed.paths.iter().filter(|path| !path.is_empty());
        let paths: Vec<&Vec<PortId>> = paths.collect();
        if paths.is_empty() {
            return Ok(());
        }
        let path = paths[nth % paths.len()];
        let end = |port: PortId| bench.links[port.0 as usize].unwrap();
        let bad = end(path[nth % path.len()]);
        let mut beyond = Vec::new();
        for path in &paths {
            let ends = path.iter().map(|&port| end(port)).skip_while(|&end| end != bad);
            beyond.extend(ends.skip(1));
        }
        bench.bit_errors.fill(0.0);
        let sound = bench.load(&flows);
        bench.bit_errors[bad.0 as usize] = ratio;
        let loads = bench.load(&flows);
        for port in bench.net.port_ids() {
            let (load, sound) = (&loads[port.0 as usize], &sound[port.0 as usize]);
            prop_assert_eq!(load.rcv_errors > 0.0, port == bad && load.rcv_packets > 0.0);
            prop_assert!(load.rcv_remote_physical_errors <= 0.0 || beyond.contains(&port));
            prop_assert!(sound.rcv_errors + sound.rcv_remote_physical_errors <= 0.0);
        }
    }
}
