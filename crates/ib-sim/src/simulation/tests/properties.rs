//! Properties of any sequence of changes.

use proptest::prelude::*;

use super::*;
use ib_mad::port_state::PortState;
use ib_mad::rate::{Speed, Width};

/// A change is made of its kind, two indices and a number.
type Seeds = (u8, u32, u32, f64);

/// The tree, with a host that has no cable yet.
fn tree_with_free_host() -> Net {
    let mut net = tree();
    for end in ["host-7[1]", "leaf-0-3[2]"].map(|label| find(&net, label)) {
        net.ports[end.0 as usize].cable = None;
    }
    net
}

fn change(net: &Net, (kind, a, b, fraction): Seeds) -> FabricChange {
    // Entries of adapters' port 0, which do not exist, are among them.
    let port = |n: u32| PortId(n % net.ports.len() as u32);
    let node = NodeId(a % net.nodes.len() as u32);
    let hosts: Vec<PortId> = net
        .port_ids()
        .filter(|port| net.node_of(*port).kind == NodeKind::Ca && net.port(*port).number == 1)
        .collect();
    let host = |n: u32| hosts[n as usize % hosts.len()];
    match kind % 15 {
        0 => FabricChange::CorruptBits { port: port(a), ratio: 1e-10 * fraction },
        1 => FabricChange::CorruptBits { port: port(a), ratio: 0.0 },
        2 => FabricChange::SetSignal { port: port(a), up: false },
        3 => FabricChange::SetSignal { port: port(a), up: true },
        4 => FabricChange::Retrain { port: port(a) },
        5 => {
            let width = [None, Some(Width::X1), Some(Width::X2), Some(Width::X12)][b as usize % 4];
            let speed = [None, Some(Speed::Sdr), Some(Speed::Hdr)][b as usize / 4 % 3];
            FabricChange::LimitLink { port: port(a), width, speed }
        }
        6 => FabricChange::LimitIntake { port: host(a), fraction },
        7 => FabricChange::SetPower { node, on: false },
        8 => FabricChange::SetPower { node, on: true },
        9 => FabricChange::ClearCounters { ports: vec![port(a), port(b)] },
        10 => FabricChange::SetCounter {
            port: port(a),
            counter: Counter::XmitData,
            value: u64::from(b),
        },
        11 | 12 => FabricChange::MoveCable { from: port(a), to: port(b) },
        13 => FabricChange::SetMaster {
            port: if b % 2 == 0 { host(a) } else { PortId(net.nodes[node.0 as usize].first_port) },
            reassign_lids: b % 3 == 0,
        },
        _ => {
            let flow = |(from, to)| Flow { from, to, offered: fraction * 5e10, packet: 4096 };
            let flows = [(host(a), host(b)), (host(a + 1), host(b + 3))].map(flow).to_vec();
            let flows = if a % 4 == 0 { Vec::new() } else { flows };
            FabricChange::SetTraffic { name: (b % 3).to_string(), flows }
        }
    }
}

/// Both ends of every link agree.
fn assert_agreed(simulation: &Simulation) {
    for (id, port) in simulation.net.port_ids().zip(&simulation.ports) {
        let label = simulation.net.label(id);
        if simulation.net.port(id).number == 0 {
            assert_eq!((port.cable, port.trained), (None, None), "{label}");
            continue;
        }
        assert_eq!(port.trained.is_none(), port.state == PortState::Down, "{label}");
        let Some(far) = port.cable else {
            assert_eq!(port.trained, None, "{label}");
            continue;
        };
        let other = simulation.port(far);
        assert_eq!(other.cable, Some(id), "{label}");
        assert_eq!((port.trained, port.state), (other.trained, other.state), "{label}");
        assert_eq!((port.signal, port.limit), (other.signal, other.limit), "{label}");
    }
}

/// The ports whose counters a change may decrease.
fn may_fall(net: &Net, change: &FabricChange) -> Vec<PortId> {
    match change {
        FabricChange::ClearCounters { ports } => ports.clone(),
        FabricChange::SetCounter { port, .. } => vec![*port],
        FabricChange::SetPower { node, on: true } => {
            net.cable_ports(*node).chain(net.port_by_number(*node, 0)).collect()
        }
        _ => Vec::new(),
    }
}

fn counts(simulation: &Simulation) -> Vec<Vec<u64>> {
    let of = |port| Counter::all().map(|counter| simulation.count(port, counter)).collect();
    simulation.net.port_ids().map(of).collect()
}

fn sequences() -> impl Strategy<Value = Vec<(u64, Seeds)>> {
    // Many at one moment, and some on the whole second.
    let gap = prop_oneof![2 => Just(0), 2 => Just(1000), 3 => 1..3000_u64, 1 => 3000..100_000_u64];
    prop::collection::vec((gap, (any::<u8>(), 0..10_000_u32, 0..10_000_u32, 0.0..1.0)), 0..40)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, ..ProptestConfig::default() })]

    #[test]
    fn ends_agree_counters_rise_and_reads_change_nothing(
        seeds in sequences(), reads in prop::collection::vec(0..60_000_u64, 0..40),
    ) {
        let net = tree_with_free_host();
        let mut at = Duration::ZERO;
        let changes: Vec<TimedChange> = seeds
            .iter()
            .map(|(gap, seeds)| {
                at += Duration::from_millis(*gap);
                TimedChange { at, change: change(&net, *seeds) }
            })
            .collect();
        let end = Moment::default() + at + Duration::from_secs(5);
        let mut alone = Simulation::new(scenario(net.clone(), changes.clone()));
        alone.advance(end);

        // The other one is read before and at each change, and at other moments.
        let mut moments: Vec<Moment> =
            reads.iter().map(|read| Moment::default() + Duration::from_millis(*read)).collect();
        for change in &changes {
            let at = Moment::default() + change.at;
            moments.extend([Moment(at.0.saturating_sub(1)), at, at + Duration::from_millis(1001)]);
        }
        moments.retain(|moment| *moment < end);
        moments.push(end);
        moments.sort();
        let mut seen = Simulation::new(scenario(net.clone(), changes.clone()));
        let (mut before, mut last) = (counts(&seen), None);
        for moment in moments {
            seen.advance(moment);
            assert_agreed(&seen);
            let now = counts(&seen);
            let since = changes.iter().filter(|change| {
                let at = Moment::default() + change.at;
                at <= moment && last.is_none_or(|last| at > last)
            });
            let fallen: Vec<PortId> =
                since.flat_map(|change| may_fall(&net, &change.change)).collect();
            for (port, (before, now)) in net.port_ids().zip(before.iter().zip(&now)) {
                prop_assert!(
                    fallen.contains(&port) || before.iter().zip(now).all(|(b, n)| b <= n),
                    "{} fell: {before:?}, {now:?}", net.label(port)
                );
            }
            (before, last) = (now, Some(moment));
        }
        prop_assert_eq!(format!("{alone:?}"), format!("{seen:?}"));
    }

    #[test]
    fn ends_agree_after_additional_changes(seeds in sequences()) {
        let mut bench = Bench::new(tree_with_free_host());
        for (gap, seeds) in seeds {
            bench.after(gap);
            bench.apply(change(bench.simulation.net(), seeds));
            assert_agreed(&bench.simulation);
        }
        bench.after(2000);
        assert_agreed(&bench.simulation);
    }
}
