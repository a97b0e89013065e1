//! Regions of ports that wait for one another, and when each began.
//!
//! A region continues the one of an earlier sweep that had the same root; otherwise the oldest one whose root is
//! among its ports now: which port waits most changes from sweep to sweep. Roots are kept by (GUID, port).

use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::time::Duration;

use ib_fabric::{Fabric, PortIndex};
use ib_mad::{Moment, PortKey};

use super::role::FLOOR;
use super::wait_graph::{Traversal, WaitGraph};
use crate::window::Tick;

/// A region that was gone for no longer than this is the same one when it comes back. Jobs communicate in
/// bursts, between which they compute; some minutes are several sweeps and several rounds of most jobs.
pub const GRACE: Duration = Duration::from_secs(300);

display_text::labeled_enum! {
    /// The severity of a congestion, by the greatest share of time that one of its ports waits (Jha et al.,
    /// NSDI 2020: up to 5, 15 and 25%).
    #[derive(PartialOrd, Ord)]
    pub enum Level {
        Negligible, "negligible", "Up to 5%: normal in a busy fabric.";
        Low, "low", "Up to 15%.";
        Medium, "medium", "Up to 25%.";
        High, "high", "More.";
    }
}

impl Level {
    /// The level of a share of time, 0 to 1.
    pub fn of(share: f32) -> Level {
        match share {
            share if share < FLOOR => Level::Negligible,
            share if share < 0.15 => Level::Low,
            share if share < 0.25 => Level::Medium,
            _ => Level::High,
        }
    }
}

/// Neighboring ports that wait for one another.
#[derive(Clone, Debug, PartialEq)]
pub struct Region {
    /// The root that waits most.
    pub root: PortIndex,
    /// How many ports wait.
    pub ports: u32,
    /// How many roots there are; one that is full and does not wait is not counted in `ports`.
    pub roots: u32,
    /// The greatest share of time that one of them waits.
    pub share: f32,
    /// Its severity.
    pub level: Level,
    /// When it began.
    pub since: Moment,
}

/// A region, and its ports by their number in the graph.
pub(super) type FoundRegion = (Region, Vec<u32>);

/// Finds the regions, the largest first: two ports belong to one region if one waits for the other, directly or
/// indirectly. When they began is not known yet.
pub(super) fn find(graph: &WaitGraph, roots: &[Option<u32>]) -> Vec<FoundRegion> {
    let mut left: Vec<bool> = roots.iter().map(Option::is_some).collect();
    let mut found: Vec<FoundRegion> = Vec::new();
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
    found
}

/// When a region of an earlier sweep began, and when it was last seen.
#[derive(Clone, Copy, Debug)]
pub(super) struct PastRegion {
    since: Moment,
    seen: Tick,
}

/// The regions of earlier sweeps by root. What was not seen for [`GRACE`] is removed.
pub(super) type RegionHistory = BTreeMap<PortKey, PastRegion>;

pub(super) fn remove_old(history: &mut RegionHistory, at: Moment) {
    history.retain(|_, past| Tick::from(at).seconds_since(past.seen) <= GRACE.as_secs_f32());
}

/// Sets when each region began, and adds them all to the history.
pub(super) fn update_history(
    history: &mut RegionHistory,
    fabric: &Fabric,
    graph: &WaitGraph,
    regions: &mut [FoundRegion],
    at: Moment,
) {
    remove_old(history, at);
    for (region, members) in regions {
        let root = fabric.port_key(region.root);
        let began = |port: PortKey| history.get(&port).map(|past| past.since);
        let ends = members.iter().map(|member| fabric.port_key(graph.ports[*member as usize].port));
        let began = began(root).or_else(|| ends.filter_map(began).min());
        region.since = began.unwrap_or(at);
        history.insert(root, PastRegion { since: region.since, seen: Tick::from(at) });
    }
}
