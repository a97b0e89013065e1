//! Regions of ports that wait for one another, and when each began.
//!
//! A region is the same as one of an earlier sweep if its root is the same; otherwise if they share at least
//! half of the ports of the smaller one, and no other shares more. Ports are kept by (GUID, port), in that
//! order, which is the order of a fabric's ports.

use std::cmp::Reverse;

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
    let mut left: Vec<bool> = roots.iter().map(Option::is_some).collect();
    let mut found: Vec<(Region, Vec<u32>)> = Vec::new();
    let mut traversal = Traversal::new(graph);
    for first in 0..graph.ports.len() as u32 {
        if !std::mem::take(&mut left[first as usize]) {
            continue;
        }
        let mut members = vec![first];
        let mut next = 0;
        while let Some(&port) = members.get(next) {
            next += 1;
            let mut visit = |other: u32| {
                if std::mem::take(&mut left[other as usize]) {
                    members.push(other);
                }
            };
            traversal.upstream(port, &mut visit);
            traversal.downstream(port, &mut visit);
        }
        let own_roots = || members.iter().filter(|port| roots[**port as usize] == Some(**port));
        // Of equals the lower one, as in `find_roots`.
        let heaviest = own_roots()
            .max_by(|a, b| graph.weight(**a).total_cmp(&graph.weight(**b)).then(b.cmp(a)));
        let Some(root) = heaviest.map(|root| graph.ports[*root as usize].port) else { continue };
        let ports = || members.iter().map(|port| &graph.ports[*port as usize]);
        let share = ports().map(|port| port.share).fold(0.0, f32::max);
        let region = Region {
            root,
            ports: ports().filter(|port| port.waits()).count() as u32,
            roots: own_roots().count() as u32,
            share,
            level: Level::of(share),
            since: Moment::default(),
        };
        found.push((region, members));
    }
    found.sort_by_key(|(region, _)| (Reverse(region.ports), region.root));
    let mut of = vec![None; graph.ports.len()];
    for (number, (_, members)) in (0..).zip(&found) {
        for port in members {
            of[*port as usize] = Some(number);
        }
    }
    Regions { all: found.into_iter().map(|(region, _)| region).collect(), of }
}

#[derive(Clone, Copy, Debug)]
pub(super) struct PastRegion {
    root: End,
    since: Moment,
    seen: Tick,
}

/// A port that waited in an earlier sweep, and its region then.
#[derive(Clone, Copy, Debug)]
pub(super) struct PastPort {
    end: End,
    region: u32,
    seen: Tick,
}

/// The regions and ports of earlier sweeps. What was not seen for [`GRACE`] is removed.
#[derive(Clone, Debug, Default)]
pub(super) struct RegionHistory {
    pub(super) regions: Vec<PastRegion>,
    pub(super) ports: Vec<PastPort>,
}

impl RegionHistory {
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
        self.ports.retain(|past| is_fresh(past.seen, at));
        let seen = Tick::from(at);
        let waiting = graph.ports.iter().zip(&regions.of).filter(|(port, _)| port.waits());
        let now: Vec<PastPort> = waiting
            .filter_map(|(port, region)| {
                Some(PastPort { end: fabric.end(port.port), region: (*region)?, seen })
            })
            .collect();
        let roots: Vec<End> = regions.all.iter().map(|region| fabric.end(region.root)).collect();
        let sizes: Vec<u32> = regions.all.iter().map(|region| region.ports).collect();
        let same = self.matching(&now, &roots, &sizes, at);

        // The current regions come first, in their order; then those that may come back. Old ones are removed.
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
            if number.is_none() && is_fresh(earlier.seen, at) {
                *number = Some(known.len() as u32);
                known.push(*earlier);
            }
        }
        let moved =
            |past: &PastPort| Some(PastPort { region: number[past.region as usize]?, ..*past });
        let mut ports = now;
        ports.extend(self.ports.iter().filter_map(moved));
        // A stable sort, which merges the two: of one port the present state comes first.
        ports.sort_by_key(|port| port.end);
        ports.dedup_by_key(|port| port.end);
        (self.regions, self.ports) = (known, ports);
    }

    /// By region of this sweep, the earlier one that it is.
    fn matching(
        &self,
        now: &[PastPort],
        roots: &[End],
        sizes: &[u32],
        at: Moment,
    ) -> Vec<Option<u32>> {
        let mut same = vec![None; roots.len()];
        // A region was seen no earlier than its ports, so no port of an old one is left.
        let mut taken: Vec<bool> =
            self.regions.iter().map(|known| !is_fresh(known.seen, at)).collect();
        let fresh = (0..).zip(&self.regions).filter(|(number, _)| !taken[*number as usize]);
        let mut by_root: Vec<(End, u32)> =
            fresh.map(|(number, known)| (known.root, number)).collect();
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
        for earlier in &self.ports {
            earlier_sizes[earlier.region as usize] += 1;
        }
        let earlier_region = |now: &PastPort| {
            let at = self.ports.binary_search_by_key(&now.end, |earlier| earlier.end).ok()?;
            Some(self.ports[at].region).filter(|earlier| !taken[*earlier as usize])
        };
        let is_new = |now: &&PastPort| same[now.region as usize].is_none();
        let pair = |now: &PastPort| Some((now.region, earlier_region(now)?));
        let mut pairs: Vec<(u32, u32)> = now.iter().filter(is_new).filter_map(pair).collect();
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
