//! What a sweep costs, for who wants to know: `cargo test --release --lib what_a_sweep_costs --
//! --ignored --nocapture`.

use std::time::Instant;

use super::*;

/// A fat tree of three levels and radix 64: so many pods of 32 leaves with 32 hosts each, as many
/// aggregation switches a pod, and cores.
fn tree(pods: u64) -> Bench {
    let (leaf, agg, core) = (SWITCHES * 100, SWITCHES * 200, SWITCHES * 300);
    let mut cables = Vec::new();
    for pod in 0..pods {
        for one in 0..32 {
            let number = pod * 32 + one;
            for port in 0..32 {
                let host = 1 + number * 32 + port;
                cables.push((end(host, 1), end(leaf + number, 1 + port as u8)));
                let over = end(agg + pod * 32 + port, 1 + one as u8);
                cables.push((end(leaf + number, 33 + port as u8), over));
                let over = end(core + one * 32 + port, 1 + pod as u8);
                cables.push((end(agg + number, 33 + port as u8), over));
            }
        }
    }
    let mut nodes = Vec::new();
    let all = cables.iter().flat_map(|(a, b)| [a.0.0, b.0.0]);
    for guid in all.collect::<std::collections::BTreeSet<u64>>() {
        nodes.push(match guid {
            guid if guid < leaf => found(guid, NodeKind::Ca, 1),
            guid if guid < core => found(guid, NodeKind::Switch, 64),
            guid => found(guid, NodeKind::Switch, pods as u8),
        });
    }
    let fabric = fabric(nodes, &cables, None);
    let ports = fabric.ports.len();
    Bench { fabric, waits: vec![None; ports], used: vec![Some(0.2); ports] }
}

#[test]
#[ignore = "measures; a debug build and a busy machine say nothing"]
fn what_a_sweep_costs() {
    let mut bench = tree(10);
    let hosts_end = bench.fabric.find(end(SWITCHES * 100, 0)).unwrap().0;
    println!("{} ports, {} of hosts", bench.fabric.ports.len(), hosts_end);
    let crowds: [(&str, &dyn Fn(u32) -> bool); 6] = [
        ("nobody", &|_| false),
        ("one in a thousand", &|port| port.is_multiple_of(1000)),
        ("one in three", &|port| port.is_multiple_of(3)),
        ("the lowest third", &|port| port < 20_000),
        ("leaves and what is over them", &|port| port > hosts_end && port < hosts_end + 20_000),
        ("all", &|_| true),
    ];
    for (full, used) in [("", 0.2), (", and all links full", 0.95)] {
        for (about, waits) in crowds {
            let ports = 0..bench.fabric.ports.len() as u32;
            let share = |port: u32| 0.05 + (port.wrapping_mul(2_654_435_761) % 900) as f32 / 1000.0;
            bench.waits = ports.clone().map(|port| waits(port).then(|| share(port))).collect();
            // Whoever waits does not send.
            bench.used = ports.map(|port| Some(if waits(port) { 0.1 } else { used })).collect();
            let mut congestion = Congestion::default();
            let mut times = Vec::new();
            let mut last = Found::default();
            for sweep in 0..20 {
                let began = Instant::now();
                last = bench.follow(&mut congestion, Moment(sweep * 15_000_000_000));
                times.push(began.elapsed());
            }
            times.sort();
            let (roots, regions) = (last.causes.len(), last.regions.len());
            println!(
                "{about}{full}: {:?}, at most {:?}; {} roles, {roots} roots, {regions} regions",
                times[10],
                times[19],
                last.roles.len(),
            );
        }
    }
}
