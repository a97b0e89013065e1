//! Where chains of waiting ports end.

use super::wait_graph::{Traversal, WaitGraph};

/// The root of each port of the graph.
pub(super) struct Roots {
    /// By port: its root, itself if it is one. `None` only for one that is full and that no port waits for.
    pub(super) of: Vec<Option<u32>>,
}

/// Finds a root for each port that waits.
pub(super) fn find(graph: &WaitGraph) -> Roots {
    let ports = 0..graph.ports.len() as u32;
    let mut roots: Vec<u32> = ports.clone().filter(|&port| !graph.leads_on(port)).collect();
    let has_cycles = |of: &[Option<u32>]| ports.clone().any(|port| of[port as usize].is_none());
    heaviest_first(graph, &mut roots);
    let mut traced = trace(graph, roots.iter().copied());
    if has_cycles(&traced.of) {
        roots.extend(roots_of_cycles(graph, &traced.of));
        heaviest_first(graph, &mut roots);
        traced = trace(graph, roots.into_iter());
    }
    // A full link that no port waits for is not a root.
    let mut has_victims = vec![false; graph.ports.len()];
    for (port, root) in traced.of.iter().enumerate() {
        if let Some(root) = root.filter(|_| graph.ports[port].waits()) {
            has_victims[root as usize] = true;
        }
    }
    let mut of = traced.of;
    for ((of, has_victims), port) in of.iter_mut().zip(has_victims).zip(&graph.ports) {
        *of = of.filter(|_| has_victims || port.waits());
    }
    Roots { of }
}

/// Sorts by weight. Among equals the lower (GUID, port) comes first, which is the order of ports.
fn heaviest_first(graph: &WaitGraph, ports: &mut [u32]) {
    ports.sort_by_cached_key(|&port| {
        // No weight is negative, so the order of its bits is its own.
        (std::cmp::Reverse(graph.weight(port).to_bits()), port)
    });
}

struct Traced {
    of: Vec<Option<u32>>,
    /// Those that do not lead to one before them.
    roots: Vec<u32>,
}

/// Goes upstream from one port after the other: each port belongs to the first one that it leads to.
fn trace(graph: &WaitGraph, from: impl Iterator<Item = u32>) -> Traced {
    let mut traced = Traced { of: vec![None; graph.ports.len()], roots: Vec::new() };
    let mut traversal = Traversal::new(graph);
    let mut queue = Vec::new();
    for root in from {
        if traced.of[root as usize].is_some() {
            continue;
        }
        traced.of[root as usize] = Some(root);
        traced.roots.push(root);
        queue.push(root);
        while let Some(port) = queue.pop() {
            traversal.upstream(port, |before| {
                let of = &mut traced.of[before as usize];
                if of.is_none() {
                    *of = Some(root);
                    queue.push(before);
                }
            });
        }
    }
    traced
}

/// The roots of cycles: of ports that wait for one another in a cycle, and for no others, the heaviest one. `of`
/// has the ports that lead to a root.
///
/// Going upstream from the heaviest first, the first port of a cycle that is visited is its heaviest. But some
/// in cycles that lead on into another cycle are visited first, too. There is no way back to them, so they are
/// excluded when the same is done from the last to the first.
fn roots_of_cycles(graph: &WaitGraph, of: &[Option<u32>]) -> Vec<u32> {
    let mut left: Vec<u32> = (0..of.len() as u32).filter(|&it| of[it as usize].is_none()).collect();
    heaviest_first(graph, &mut left);
    let first = trace(graph, left.into_iter());
    trace(graph, first.roots.into_iter().rev()).roots
}
