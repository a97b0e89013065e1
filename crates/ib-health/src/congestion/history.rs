//! Since when a region has been there.
//!
//! A region is the one of an earlier sweep if its root is the same; else if it shares at least half of
//! its ports with it, or of the earlier one's, and no other shares more. Ports are remembered by name,
//! in the order of their names, which is the order in which a fabric has them: two lists are compared
//! by going through both at once.

use std::cmp::{Ordering, Reverse};
use std::iter::Peekable;

use ib_fabric::Fabric;
use ib_fabric::topology::End;
use ib_mad::Moment;

use super::GRACE;
use super::crowd::Crowd;
use super::regions::Regions;
use crate::window::Tick;

/// A region of an earlier sweep.
#[derive(Clone, Copy, Debug)]
struct Known {
    root: End,
    since: Moment,
    seen: Tick,
}

/// A port that waited in an earlier sweep, and its region then.
#[derive(Clone, Copy, Debug)]
struct Past {
    end: End,
    region: u32,
    seen: Tick,
}

/// See the module. What was not seen for [`GRACE`] is forgotten.
#[derive(Clone, Debug, Default)]
pub(super) struct History {
    regions: Vec<Known>,
    /// In the order of their names.
    ports: Vec<Past>,
}

impl History {
    #[cfg(test)]
    pub(super) fn is_empty(&self) -> bool {
        self.regions.is_empty() && self.ports.is_empty()
    }

    pub(super) fn nobody_waits(&mut self, at: Moment) {
        if !self.regions.iter().any(|known| is_fresh(known.seen, at)) {
            *self = History::default();
        }
    }

    /// Says of each region since when it has been there, and remembers them all.
    pub(super) fn date(
        &mut self,
        fabric: &Fabric,
        crowd: &Crowd,
        regions: &mut Regions,
        at: Moment,
    ) {
        self.forget(at);
        let seen = Tick::from(at);
        let waiting = crowd.members.iter().zip(&regions.of).filter(|(member, _)| member.waits());
        let now: Vec<Past> = waiting
            .filter_map(|(member, region)| {
                Some(Past { end: fabric.end(member.port), region: (*region)?, seen })
            })
            .collect();
        let roots: Vec<End> = regions.told.iter().map(|region| fabric.end(region.root)).collect();
        let sizes: Vec<u32> = regions.told.iter().map(|region| region.ports).collect();
        let same = self.same(&now, &roots, &sizes);

        // The regions of now stand first, in their order; then those that may come back.
        let mut place = vec![None; self.regions.len()];
        let mut known = Vec::with_capacity(roots.len());
        for ((region, root), same) in regions.told.iter_mut().zip(roots).zip(same) {
            region.since = same.map_or(at, |earlier| self.regions[earlier as usize].since);
            if let Some(earlier) = same {
                place[earlier as usize] = Some(known.len() as u32);
            }
            known.push(Known { root, since: region.since, seen });
        }
        for (earlier, place) in self.regions.iter().zip(&mut place) {
            if place.is_none() {
                *place = Some(known.len() as u32);
                known.push(*earlier);
            }
        }
        let mut ports = Vec::with_capacity(now.len());
        for (earlier, now) in both(&self.ports, &now) {
            let moved = |past: &Past| Some(Past { region: place[past.region as usize]?, ..*past });
            ports.extend(now.copied().or_else(|| earlier.and_then(moved)));
        }
        (self.regions, self.ports) = (known, ports);
    }

    fn forget(&mut self, at: Moment) {
        let fresh = |seen: Tick| is_fresh(seen, at);
        self.ports.retain(|past| fresh(past.seen));
        if self.regions.iter().all(|known| fresh(known.seen)) {
            return;
        }
        // A region was seen when the last of its ports was, or later: none of those is left.
        let mut left = 0;
        let mut places = Vec::with_capacity(self.regions.len());
        for known in &self.regions {
            places.push(left);
            left += u32::from(fresh(known.seen));
        }
        self.regions.retain(|known| fresh(known.seen));
        for past in &mut self.ports {
            past.region = places[past.region as usize];
        }
    }

    /// Of each region of now, which of the earlier ones it is.
    fn same(&self, now: &[Past], roots: &[End], sizes: &[u32]) -> Vec<Option<u32>> {
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
        for (earlier, now) in both(&self.ports, now) {
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

/// Goes through two lists of ports in the order of names; those of the same name together.
fn both<'a>(
    one: &'a [Past],
    other: &'a [Past],
) -> impl Iterator<Item = (Option<&'a Past>, Option<&'a Past>)> {
    let (mut one, mut other) = (one.iter().peekable(), other.iter().peekable());
    let next = |list: &mut Peekable<std::slice::Iter<'a, Past>>, take: bool| {
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
