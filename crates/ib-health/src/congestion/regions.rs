//! Regions of ports that wait for one another, and when each began.
//!
//! A region is the same as one of an earlier sweep if its root is the same; otherwise if they share at least
//! half of the ports of the smaller one, and no other shares more. Ports are kept by (GUID, port), in that
//! order, which is the order of a fabric's ports: two lists are compared by a merge.

use std::cmp::{Ordering, Reverse};
use std::iter::Peekable;

use ib_fabric::Fabric;
use ib_fabric::topology::End;
use ib_mad::Moment;

use super::wait_graph::{Traversal, WaitGraph};
use super::{GRACE, Level, Region};
use crate::window::Tick;

pub(super) struct Regions {
    /// The largest first; when they began is not known yet.
    pub(super) all: Vec<Region>,
    /// By port of the graph, its region; `None` for one that belongs to none.
    pub(super) of: Vec<Option<u32>>,
}

/// Finds the regions: two ports belong to one region if one waits for the other, directly or indirectly.
pub(super) fn find(graph: &WaitGraph, roots: &[Option<u32>]) -> Regions {
    let mut of: Vec<Option<u32>> = vec![None; graph.ports.len()];
    let mut all: Vec<Region> = Vec::new();
    let mut traversal = Traversal::new(graph);
    let mut queue = Vec::new();
    for first in 0..graph.ports.len() as u32 {
        if of[first as usize].is_some() || roots[first as usize].is_none() {
            continue;
        }
        let number = all.len() as u32;
        // The heaviest root, and its weight.
        let mut heaviest: Option<(u32, f32)> = None;
        let (mut ports, mut root_count, mut share) = (0, 0, 0.0_f32);
        of[first as usize] = Some(number);
        queue.push(first);
        while let Some(port) = queue.pop() {
            let waiting = &graph.ports[port as usize];
            ports += u32::from(waiting.waits());
            share = share.max(waiting.share);
            if roots[port as usize] == Some(port) {
                root_count += 1;
                let weight = graph.weight(port);
                // Of equals the lower one, as in `find_roots`.
                let is_heavier = |(root, most): (u32, f32)| {
                    weight.total_cmp(&most).then(root.cmp(&port)).is_gt()
                };
                if heaviest.is_none_or(is_heavier) {
                    heaviest = Some((port, weight));
                }
            }
            let mut visit = |other: u32| {
                let region = &mut of[other as usize];
                if region.is_none() && roots[other as usize].is_some() {
                    *region = Some(number);
                    queue.push(other);
                }
            };
            traversal.upstream(port, &mut visit);
            traversal.downstream(port, &mut visit);
        }
        all.extend(heaviest.map(|(root, _)| Region {
            root: graph.ports[root as usize].port,
            ports,
            roots: root_count,
            share,
            level: Level::of(share),
            since: Moment::default(),
        }));
    }
    let by_size = |region: &Region| (Reverse(region.ports), region.root);
    let mut order: Vec<u32> = (0..all.len() as u32).collect();
    order.sort_by_key(|&number| by_size(&all[number as usize]));
    let mut rank = vec![0; order.len()];
    for (at, number) in order.iter().enumerate() {
        rank[*number as usize] = at as u32;
    }
    for number in of.iter_mut().flatten() {
        *number = rank[*number as usize];
    }
    all.sort_by_key(by_size);
    Regions { all, of }
}

#[derive(Clone, Copy, Debug)]
struct PastRegion {
    root: End,
    since: Moment,
    seen: Tick,
}

/// A port that waited in an earlier sweep, and its region then.
#[derive(Clone, Copy, Debug)]
struct PastPort {
    end: End,
    region: u32,
    seen: Tick,
}

/// The regions and ports of earlier sweeps. What was not seen for [`GRACE`] is removed.
#[derive(Clone, Debug, Default)]
pub(super) struct RegionHistory {
    regions: Vec<PastRegion>,
    ports: Vec<PastPort>,
}

impl RegionHistory {
    #[cfg(test)]
    pub(super) fn is_empty(&self) -> bool {
        self.regions.is_empty() && self.ports.is_empty()
    }

    pub(super) fn on_idle(&mut self, at: Moment) {
        if !self.regions.iter().any(|known| is_fresh(known.seen, at)) {
            *self = RegionHistory::default();
        }
    }

    /// Sets when each region began, and keeps them all.
    pub(super) fn update(
        &mut self,
        fabric: &Fabric,
        graph: &WaitGraph,
        regions: &mut Regions,
        at: Moment,
    ) {
        self.remove_old(at);
        let seen = Tick::from(at);
        let waiting = graph.ports.iter().zip(&regions.of).filter(|(port, _)| port.waits());
        let now: Vec<PastPort> = waiting
            .filter_map(|(port, region)| {
                Some(PastPort { end: fabric.end(port.port), region: (*region)?, seen })
            })
            .collect();
        let roots: Vec<End> = regions.all.iter().map(|region| fabric.end(region.root)).collect();
        let sizes: Vec<u32> = regions.all.iter().map(|region| region.ports).collect();
        let same = self.matching(&now, &roots, &sizes);

        // The current regions come first, in their order; then those that may come back.
        let mut number = vec![None; self.regions.len()];
        let mut known = Vec::with_capacity(roots.len());
        for ((region, root), same) in regions.all.iter_mut().zip(roots).zip(same) {
            region.since = same.map_or(at, |earlier| self.regions[earlier as usize].since);
            if let Some(earlier) = same {
                number[earlier as usize] = Some(known.len() as u32);
            }
            known.push(PastRegion { root, since: region.since, seen });
        }
        for (earlier, number) in self.regions.iter().zip(&mut number) {
            if number.is_none() {
                *number = Some(known.len() as u32);
                known.push(*earlier);
            }
        }
        let mut ports = Vec::with_capacity(now.len());
        for (earlier, now) in merge(&self.ports, &now) {
            let moved =
                |past: &PastPort| Some(PastPort { region: number[past.region as usize]?, ..*past });
            ports.extend(now.copied().or_else(|| earlier.and_then(moved)));
        }
        (self.regions, self.ports) = (known, ports);
    }

    fn remove_old(&mut self, at: Moment) {
        let fresh = |seen: Tick| is_fresh(seen, at);
        self.ports.retain(|past| fresh(past.seen));
        if self.regions.iter().all(|known| fresh(known.seen)) {
            return;
        }
        // A region was seen no earlier than its ports, so no port of a removed one is left.
        let mut left = 0;
        let mut numbers = Vec::with_capacity(self.regions.len());
        for known in &self.regions {
            numbers.push(left);
            left += u32::from(fresh(known.seen));
        }
        self.regions.retain(|known| fresh(known.seen));
        for past in &mut self.ports {
            past.region = numbers[past.region as usize];
        }
    }

    fn matching(&self, now: &[PastPort], roots: &[End], sizes: &[u32]) -> Vec<Option<u32>> {
        let mut same = vec![None; roots.len()];
        let mut taken = vec![false; self.regions.len()];
        let mut by_root: Vec<(End, u32)> =
            (0..).zip(&self.regions).map(|(number, known)| (known.root, number)).collect();
        by_root.sort_unstable();
        for (same, root) in same.iter_mut().zip(roots) {
            if let Ok(at) = by_root.binary_search_by_key(root, |(root, _)| *root) {
                let number = by_root[at].1;
                (*same, taken[number as usize]) = (Some(number), true);
            }
        }
        if same.iter().all(Option::is_some) || taken.iter().all(|taken| *taken) {
            return same;
        }
        let mut earlier_sizes = vec![0; self.regions.len()];
        let mut pairs: Vec<(u32, u32)> = Vec::new();
        for (earlier, now) in merge(&self.ports, now) {
            let Some(earlier) = earlier else { continue };
            earlier_sizes[earlier.region as usize] += 1;
            if let Some(now) = now
                && same[now.region as usize].is_none()
                && !taken[earlier.region as usize]
            {
                pairs.push((now.region, earlier.region));
            }
        }
        pairs.sort_unstable();
        let runs = pairs.chunk_by(|one, other| one == other);
        let mut shared: Vec<(u32, (u32, u32))> =
            runs.map(|run| (run.len() as u32, run[0])).collect();
        shared.sort_by_key(|&(ports, pair)| (Reverse(ports), pair));
        for (ports, (number, earlier)) in shared {
            let smaller = sizes[number as usize].min(earlier_sizes[earlier as usize]);
            let (same, taken) = (&mut same[number as usize], &mut taken[earlier as usize]);
            if same.is_none() && !*taken && ports * 2 >= smaller {
                (*same, *taken) = (Some(earlier), true);
            }
        }
        same
    }
}

fn is_fresh(seen: Tick, at: Moment) -> bool {
    Tick::from(at).seconds_since(seen) <= GRACE.as_secs_f32()
}

/// Merges two sorted lists of ports; those of the same port together.
fn merge<'a>(
    one: &'a [PastPort],
    other: &'a [PastPort],
) -> impl Iterator<Item = (Option<&'a PastPort>, Option<&'a PastPort>)> {
    let (mut one, mut other) = (one.iter().peekable(), other.iter().peekable());
    let next = |list: &mut Peekable<std::slice::Iter<'a, PastPort>>, take: bool| {
        if take { list.next() } else { None }
    };
    std::iter::from_fn(move || {
        let order = match (one.peek(), other.peek()) {
            (None, None) => return None,
            (Some(_), None) => Ordering::Less,
            (None, Some(_)) => Ordering::Greater,
            (Some(one), Some(other)) => one.end.cmp(&other.end),
        };
        Some((next(&mut one, order.is_le()), next(&mut other, order.is_ge())))
    })
}
