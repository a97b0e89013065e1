//! Which waiting ports belong together.

use std::cmp::Reverse;

use ib_mad::Moment;

use super::crowd::{Crowd, Walk};
use super::roots::Heads;
use super::{Level, Region};

/// The regions of a sweep, the largest first; when they began is not known yet.
pub(super) struct Regions {
    pub(super) told: Vec<Region>,
    /// By member, its region; `None` for one that has no part in any.
    pub(super) of: Vec<Option<u32>>,
}

/// Members are of one region if one waits for the other, in as many steps as it takes.
pub(super) fn find(crowd: &Crowd, heads: &Heads) -> Regions {
    let mut of: Vec<Option<u32>> = vec![None; crowd.members.len()];
    let mut told: Vec<Region> = Vec::new();
    let mut walk = Walk::new(crowd);
    let mut queue = Vec::new();
    for first in 0..crowd.members.len() as u32 {
        if of[first as usize].is_some() || heads.of[first as usize].is_none() {
            continue;
        }
        let number = told.len() as u32;
        let mut region = Tally::default();
        of[first as usize] = Some(number);
        queue.push(first);
        while let Some(member) = queue.pop() {
            region.add(crowd, heads, member);
            let mut meet = |other: u32| {
                let place = &mut of[other as usize];
                if place.is_none() && heads.of[other as usize].is_some() {
                    *place = Some(number);
                    queue.push(other);
                }
            };
            walk.back(member, &mut meet);
            walk.on(member, &mut meet);
        }
        told.extend(region.told(crowd));
    }
    let mut order: Vec<u32> = (0..told.len() as u32).collect();
    order.sort_by_key(|&number| {
        let region = &told[number as usize];
        (Reverse(region.ports), region.root)
    });
    let mut place = vec![0; order.len()];
    for (at, number) in order.iter().enumerate() {
        place[*number as usize] = at as u32;
    }
    for number in of.iter_mut().flatten() {
        *number = place[*number as usize];
    }
    told.sort_by_key(|region| (Reverse(region.ports), region.root));
    Regions { told, of }
}

/// A region while its members are being met.
#[derive(Default)]
struct Tally {
    ports: u32,
    roots: u32,
    share: f32,
    /// The heaviest root, and its weight.
    root: Option<(u32, f32)>,
}

impl Tally {
    fn add(&mut self, crowd: &Crowd, heads: &Heads, member: u32) {
        let who = &crowd.members[member as usize];
        self.ports += u32::from(who.waits());
        self.share = self.share.max(who.share);
        if heads.of[member as usize] == Some(member) {
            self.roots += 1;
            let weight = crowd.weight(member);
            // Of equals the lower one, as everywhere.
            let heavier =
                |(root, most): (u32, f32)| weight.total_cmp(&most).then(root.cmp(&member)).is_gt();
            if self.root.is_none_or(heavier) {
                self.root = Some((member, weight));
            }
        }
    }

    fn told(&self, crowd: &Crowd) -> Option<Region> {
        Some(Region {
            root: crowd.members[self.root?.0 as usize].port,
            ports: self.ports,
            roots: self.roots,
            share: self.share,
            level: Level::of(self.share),
            since: Moment::default(),
        })
    }
}
