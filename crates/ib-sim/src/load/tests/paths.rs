use std::collections::HashMap;

use super::super::routes;
use super::*;

fn path(bench: &Bench, from: u32, to: u32) -> Option<Vec<String>> {
    let pair = (bench.port((from, 1)), bench.port((to, 1)));
    let paths = routes::paths(&bench.net, &bench.links, &[pair]);
    let path = paths.first().filter(|path| !path.is_empty())?;
    Some(path.iter().map(|&port| bench.net.label(port)).collect())
}

#[test]
fn path_is_the_sending_ports() {
    let bench = Bench::dumbbell(2, 1);
    for (from, to, expected) in [
        (0, 1, Some(vec!["n0[1]", "n4[2]"])),
        (0, 2, Some(vec!["n0[1]", "n4[3]", "n5[1]"])),
        (3, 1, Some(vec!["n3[1]", "n5[3]", "n4[2]"])),
        (0, 0, None),
        // Switches are no source and no destination.
        (4, 0, None),
        (0, 4, None),
    ] {
        let expected = expected.map(|path| path.iter().map(ToString::to_string).collect());
        assert_eq!(path(&bench, from, to), expected, "{from} to {to}");
    }
}

#[test]
fn two_hosts_need_no_switch() {
    let bench = Bench::new(&[(NodeKind::Ca, 1), (NodeKind::Ca, 1)], &[((0, 1), (1, 1))]);
    assert_eq!(path(&bench, 1, 0).unwrap(), ["n1[1]"]);
}

#[test]
fn adapters_forward_nothing() {
    // Two switches, and an adapter with a port at each: two planes.
    let bench = Bench::new(
        &[
            (NodeKind::Ca, 1),
            (NodeKind::Ca, 1),
            (NodeKind::Ca, 2),
            (NodeKind::Switch, 2),
            (NodeKind::Switch, 2),
        ],
        &[((0, 1), (3, 1)), ((1, 1), (4, 1)), ((2, 1), (3, 2)), ((2, 2), (4, 2))],
    );
    assert_eq!(path(&bench, 0, 1), None);
    assert!(path(&bench, 0, 2).is_some());
    assert!(bench.load_of(&[(0, 1, 1.0)]).iter().all(|load| *load == PortLoad::default()));
}

#[test]
fn link_needs_the_agreement_of_both_ends() {
    let mut bench = Bench::dumbbell(1, 2);
    let far = bench.at((3, 2));
    bench.links[far] = None;
    assert_eq!(path(&bench, 0, 1).unwrap(), ["n0[1]", "n2[3]", "n3[1]"]);
    bench.cut((2, 3));
    assert_eq!(path(&bench, 0, 1), None);
    // A loopback plug.
    let host = bench.port((0, 1));
    bench.links[host.0 as usize] = Some(host);
    assert_eq!(path(&bench, 0, 1), None);
}

#[test]
fn parallel_cables_have_equally_many_destinations() {
    for (hosts, cables) in [(8, 4), (6, 3), (5, 2), (3, 5)] {
        let bench = Bench::dumbbell(hosts, cables);
        let right = u32::from(hosts)..2 * u32::from(hosts);
        let mut used: HashMap<String, usize> = HashMap::new();
        for to in right {
            let paths: Vec<_> = (0..u32::from(hosts))
                .map(|from| path(&bench, from, to).unwrap()[1].clone())
                .collect();
            assert!(paths.iter().all(|path| *path == paths[0]), "one tree to {to}");
            *used.entry(paths[0].clone()).or_default() += 1;
        }
        let (hosts, cables) = (usize::from(hosts), usize::from(cables));
        assert_eq!(used.len(), hosts.min(cables));
        assert!(used.values().all(|&used| used <= hosts.div_ceil(cables)), "{used:?}");
    }
}

#[test]
fn fat_tree_carries_every_shift_without_collisions() {
    let bench = Bench::fat_tree(3, 4);
    let hosts = 36;
    for shift in 1..hosts {
        let flows: Vec<_> = (0..hosts).map(|host| (host, (host + shift) % hosts, 1.0)).collect();
        let loads = bench.load_of(&flows);
        assert_eq!(bench.waiting(&loads), [], "shifted by {shift}");
        assert!(loads.iter().all(|load| load.xmit_bytes <= SPEED * 1.000_001), "by {shift}");
    }
}

#[test]
fn paths_to_a_destination_are_a_shortest_path_tree() {
    let mut bench = Bench::fat_tree(3, 3);
    let leaf = 27;
    bench.cut((leaf, 4));
    let pairs: Vec<_> = (0..27)
        .flat_map(|to| (0..27).filter(move |&from| from != to).map(move |from| (from, to)))
        .map(|(from, to)| (bench.port((from, 1)), bench.port((to, 1))))
        .collect();
    let paths = routes::paths(&bench.net, &bench.links, &pairs);
    let mut next: HashMap<(NodeId, PortId), PortId> = HashMap::new();
    for (nth, &(from, to)) in pairs.iter().enumerate() {
        let path = &paths[nth];
        assert!(!path.is_empty());
        let (from_host, to_host) = (bench.net.port(from).node.0, bench.net.port(to).node.0);
        let length = match () {
            () if from_host / 3 == to_host / 3 => 2,
            () if from_host / 9 == to_host / 9 => 4,
            () => 6,
        };
        assert_eq!(path.len(), length, "{from_host} to {to_host}");
        let mut at = from;
        for &port in path {
            assert_eq!(bench.net.port(at).node, bench.net.port(port).node, "hops join");
            let node = bench.net.port(port).node;
            assert_eq!(*next.entry((node, to)).or_insert(port), port, "one path on");
            at = bench.links[port.0 as usize].unwrap();
        }
        assert_eq!(at, to);
    }
    assert_eq!(paths, routes::paths(&bench.net, &bench.links, &pairs));
}

#[test]
fn dead_cable_moves_only_its_own_paths() {
    let bench = Bench::fat_tree(3, 3);
    let mut cut = bench.clone();
    cut.cut((27, 4));
    // Paths between other leaves do not change.
    for (from, to) in [(3, 6), (4, 20), (25, 8)] {
        assert_eq!(path(&bench, from, to), path(&cut, from, to));
    }
    let (before, after) = (path(&bench, 0, 9), path(&cut, 0, 9));
    assert!(!after.unwrap().contains(&"n27[4]".to_owned()));
    assert!(before.is_some());
}
