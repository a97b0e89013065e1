//! Regions of ports that wait for one another.

use std::cmp::Reverse;

use ib_mad::Moment;

use super::roots::Roots;
use super::wait_graph::{Traversal, WaitGraph};
use super::{Level, Region};

/// The regions of a sweep.
pub(super) struct Regions {
    /// The largest first; when they began is not known yet.
    pub(super) all: Vec<Region>,
    /// By port of the graph, its region; `None` for one that belongs to none.
    pub(super) of: Vec<Option<u32>>,
}

/// Finds the regions: two ports belong to one region if one waits for the other, directly or indirectly.
pub(super) fn find(graph: &WaitGraph, roots: &Roots) -> Regions {
    let mut of: Vec<Option<u32>> = vec![None; graph.ports.len()];
    let mut all: Vec<Region> = Vec::new();
    let mut traversal = Traversal::new(graph);
    let mut queue = Vec::new();
    for first in 0..graph.ports.len() as u32 {
        if of[first as usize].is_some() || roots.of[first as usize].is_none() {
            continue;
        }
        let number = all.len() as u32;
        let mut region = RegionBuilder::default();
        of[first as usize] = Some(number);
        queue.push(first);
        while let Some(port) = queue.pop() {
            region.add(graph, roots, port);
            let mut visit = |other: u32| {
                let place = &mut of[other as usize];
                if place.is_none() && roots.of[other as usize].is_some() {
                    *place = Some(number);
                    queue.push(other);
                }
            };
            traversal.upstream(port, &mut visit);
            traversal.downstream(port, &mut visit);
        }
        all.extend(region.build(graph));
    }
    let mut order: Vec<u32> = (0..all.len() as u32).collect();
    order.sort_by_key(|&number| {
        let region = &all[number as usize];
        (Reverse(region.ports), region.root)
    });
    let mut place = vec![0; order.len()];
    for (at, number) in order.iter().enumerate() {
        place[*number as usize] = at as u32;
    }
    for number in of.iter_mut().flatten() {
        *number = place[*number as usize];
    }
    all.sort_by_key(|region| (Reverse(region.ports), region.root));
    Regions { all, of }
}

/// A region while its ports are being visited.
#[derive(Default)]
struct RegionBuilder {
    ports: u32,
    roots: u32,
    share: f32,
    /// The heaviest root, and its weight.
    root: Option<(u32, f32)>,
}

impl RegionBuilder {
    fn add(&mut self, graph: &WaitGraph, roots: &Roots, port: u32) {
        let waiting = &graph.ports[port as usize];
        self.ports += u32::from(waiting.waits());
        self.share = self.share.max(waiting.share);
        if roots.of[port as usize] == Some(port) {
            self.roots += 1;
            let weight = graph.weight(port);
            // Of equals the lower one, as in `roots`.
            let heavier =
                |(root, most): (u32, f32)| weight.total_cmp(&most).then(root.cmp(&port)).is_gt();
            if self.root.is_none_or(heavier) {
                self.root = Some((port, weight));
            }
        }
    }

    fn build(&self, graph: &WaitGraph) -> Option<Region> {
        Some(Region {
            root: graph.ports[self.root?.0 as usize].port,
            ports: self.ports,
            roots: self.roots,
            share: self.share,
            level: Level::of(self.share),
            since: Moment::default(),
        })
    }
}
