//! What holds whatever happens.

use proptest::prelude::*;

use super::*;
use ib_mad::port_state::state;
use ib_mad::rate::{Speed, Width};

/// What an action is made of: its kind, two places and a number.
type Seeds = (u8, u32, u32, f64);

/// The tree, with a host that has no cable yet.
fn stage() -> Net {
    let mut net = tree();
    for end in ["host-7[1]", "leaf-0-3[2]"].map(|label| find(&net, label)) {
        net.ports[end.0 as usize].cable = None;
    }
    net
}

fn action(net: &Net, (kind, a, b, share): Seeds) -> Action {
    // Places that are no ports of anything are among them.
    let port = |n: u32| PortId(n % net.ports.len() as u32);
    let node = NodeId(a % net.nodes.len() as u32);
    let hosts: Vec<PortId> = net
        .port_ids()
        .filter(|port| net.node_of(*port).kind == NodeKind::Ca && net.port(*port).number == 1)
        .collect();
    let host = |n: u32| hosts[n as usize % hosts.len()];
    match kind % 15 {
        0 => Action::Corrupt { into: port(a), ratio: 1e-10 * share },
        1 => Action::Corrupt { into: port(a), ratio: 0.0 },
        2 => Action::Signal { end: port(a), up: false },
        3 => Action::Signal { end: port(a), up: true },
        4 => Action::Retrain { end: port(a) },
        5 => {
            let width = [None, Some(Width::X1), Some(Width::X2), Some(Width::X12)][b as usize % 4];
            let speed = [None, Some(Speed::Sdr), Some(Speed::Hdr)][b as usize / 4 % 3];
            Action::Limit { end: port(a), width, speed }
        }
        6 => Action::Intake { port: host(a), share },
        7 => Action::Power { node, on: false },
        8 => Action::Power { node, on: true },
        9 => Action::Clear { ports: vec![port(a), port(b)] },
        10 => Action::Set { port: port(a), counter: Counter::XmitData, value: u64::from(b) },
        11 | 12 => Action::Move { from: port(a), to: port(b) },
        13 => Action::Master {
            port: if b % 2 == 0 { host(a) } else { PortId(net.nodes[node.0 as usize].first_port) },
            readdresses: b % 3 == 0,
        },
        _ => {
            let flow = |(from, to)| Flow { from, to, offered: share * 5e10, packet: 4096 };
            let flows = [(host(a), host(b)), (host(a + 1), host(b + 3))].map(flow).to_vec();
            let flows = if a % 4 == 0 { Vec::new() } else { flows };
            Action::Traffic { name: (b % 3).to_string(), flows }
        }
    }
}

/// Both ends of every link say the same of it.
fn assert_agreed(world: &World) {
    for (id, port) in world.net.port_ids().zip(&world.ports) {
        let label = world.net.label(id);
        if world.net.port(id).number == 0 {
            assert_eq!((port.cable, port.trained), (None, None), "{label}");
            continue;
        }
        assert_eq!(port.trained.is_none(), port.state == state::DOWN, "{label}");
        let Some(far) = port.cable else {
            assert_eq!(port.trained, None, "{label}");
            continue;
        };
        let other = world.port(far);
        assert_eq!(other.cable, Some(id), "{label}");
        assert_eq!((port.trained, port.state), (other.trained, other.state), "{label}");
        assert_eq!((port.signal, port.limit), (other.signal, other.limit), "{label}");
    }
}

/// The ports whose counters may fall by an action.
fn may_fall(net: &Net, action: &Action) -> Vec<PortId> {
    match action {
        Action::Clear { ports } => ports.clone(),
        Action::Set { port, .. } => vec![*port],
        Action::Power { node, on: true } => {
            net.plugs_of(*node).chain(net.port_of(*node, 0)).collect()
        }
        _ => Vec::new(),
    }
}

fn counts(world: &World) -> Vec<Vec<u64>> {
    let of = |port| Counter::all().map(|counter| world.count(port, counter)).collect();
    world.net.port_ids().map(of).collect()
}

fn steps() -> impl Strategy<Value = Vec<(u64, Seeds)>> {
    // Many at one moment, and some on the second.
    let gap = prop_oneof![2 => Just(0), 2 => Just(1000), 3 => 1..3000_u64, 1 => 3000..100_000_u64];
    prop::collection::vec((gap, (any::<u8>(), 0..10_000_u32, 0..10_000_u32, 0.0..1.0)), 0..40)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, ..ProptestConfig::default() })]

    #[test]
    fn ends_agree_and_counters_rise_and_looking_changes_nothing(
        seeds in steps(), looks in prop::collection::vec(0..60_000_u64, 0..40),
    ) {
        let net = stage();
        let mut at = Duration::ZERO;
        let steps: Vec<Step> = seeds
            .iter()
            .map(|(gap, seeds)| {
                at += Duration::from_millis(*gap);
                Step { at, action: action(&net, *seeds) }
            })
            .collect();
        let end = Moment::default() + at + Duration::from_secs(5);
        let mut alone = World::new(story(net.clone(), steps.clone()));
        alone.advance(end);

        // The other one is looked at before and at each step, and at other moments.
        let mut moments: Vec<Moment> =
            looks.iter().map(|look| Moment::default() + Duration::from_millis(*look)).collect();
        for step in &steps {
            let at = Moment::default() + step.at;
            moments.extend([Moment(at.0.saturating_sub(1)), at, at + Duration::from_millis(1001)]);
        }
        moments.retain(|moment| *moment < end);
        moments.push(end);
        moments.sort();
        let mut seen = World::new(story(net.clone(), steps.clone()));
        let (mut before, mut last) = (counts(&seen), None);
        for moment in moments {
            seen.advance(moment);
            assert_agreed(&seen);
            let now = counts(&seen);
            let since = steps.iter().filter(|step| {
                let at = Moment::default() + step.at;
                at <= moment && last.is_none_or(|last| at > last)
            });
            let fallen: Vec<PortId> =
                since.flat_map(|step| may_fall(&net, &step.action)).collect();
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
    fn what_happens_beside_the_story_is_no_other_matter(seeds in steps()) {
        let mut bench = Bench::new(stage());
        for (gap, seeds) in seeds {
            bench.after(gap);
            bench.act(action(bench.world.net(), seeds));
            assert_agreed(&bench.world);
        }
        bench.after(2000);
        assert_agreed(&bench.world);
    }
}
