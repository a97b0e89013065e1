//! `/api/v1/topology`: the switches of each fabric and the links between them, built from the latest snapshots.

use std::cmp::Reverse;
use std::collections::{BTreeMap, HashMap};

use display_text::natural_key;
use fabric_observation::Observation;
use ib_fabric::topology::Levels;
use ib_fabric::{Fabric, NodeIndex, Snapshot};
use ib_health::Verdict;
use ib_health::congestion::Role;
use ib_mad::node::NodeKind;

use crate::condition::{DownNodes, name};
use crate::link_row::{LinkRow, wait_ratio};
use crate::model::{Bundle, CongestionCounts, Suspect, Switch, SwitchlessPair, Topology, Verdicts};
use crate::view::FabricView;

/// The most links that a bundle or a switch lists one by one.
const MAX_SUSPECTS: usize = 8;

/// The topology of a fabric.
pub fn topology(observation: &Observation) -> Topology {
    let Some(view) = FabricView::new(observation) else {
        return Topology { fabric: observation.fabric.clone(), ..Topology::default() };
    };
    let fabric = &*view.snapshot.fabric;
    let (nodes, mut switches): (Vec<_>, Vec<_>) = ordered_switches(view.snapshot).unzip();
    let down = DownNodes::find(view);
    for (node, switch) in nodes.iter().zip(&mut switches) {
        let Some(down) = down.get(*node) else { continue };
        switch.down_since = down.since.and_then(|since| view.time(since));
        switch.behind = down.behind.map(|by| name(view, by));
    }
    let places = places(nodes.into_iter());
    let mut to_hosts = vec![LinkGroup::default(); switches.len()];
    let mut between: BTreeMap<(usize, usize), LinkGroup<'_>> = BTreeMap::new();
    let mut switchless = Vec::new();
    let (mut switch_links, mut host_links) = (Verdicts::default(), Verdicts::default());
    // Each plane may join other nodes; a link of several planes is counted once.
    let links = view.links().flat_map(|link| {
        let pairs = link.node_pairs().enumerate();
        pairs.map(move |(plane, pair)| (link, plane == 0, pair))
    });
    for (link, is_first, [near, far]) in links {
        let all = match [near, far].map(|node| places.contains_key(&node)) {
            [true, true] => Some(&mut switch_links),
            [true, false] => is_host(fabric, far).then_some(&mut host_links),
            [false, true] => is_host(fabric, near).then_some(&mut host_links),
            [false, false] => None,
        };
        if let Some(verdicts) = all.filter(|_| is_first) {
            verdicts.add_link(&link);
        }
        let group = match (places.get(&near), places.get(&far)) {
            (Some(&a), Some(&b)) if a != b => between.entry((a.min(b), a.max(b))).or_default(),
            (Some(&switch), None) if is_host(fabric, far) => {
                switches[switch].hosts_down += usize::from(down.get(far).is_some());
                &mut to_hosts[switch]
            }
            (None, Some(&switch)) if is_host(fabric, near) => {
                switches[switch].hosts_down += usize::from(down.get(near).is_some());
                &mut to_hosts[switch]
            }
            (None, None) => {
                switchless.push(switchless_pair(&link));
                continue;
            }
            _ => continue,
        };
        group.add(&link);
    }
    for (switch, hosts) in switches.iter_mut().zip(&to_hosts) {
        switch.hosts = hosts.verdicts.count();
        switch.host_verdicts = hosts.verdicts;
        switch.host_suspects = hosts.worst_suspects();
        switch.host_congestion = hosts.congestion.clone();
        switch.verdicts = hosts.verdicts;
        switch.congestion = hosts.congestion.clone();
    }
    for (&(a, b), links) in &between {
        let count = links.verdicts.count();
        if switches[a].level == switches[b].level {
            switches[a].side_links += count;
            switches[b].side_links += count;
        } else {
            // The order has the lower level first, and switches without a level last.
            switches[a].up_links += count;
            switches[b].down_links += count;
        }
        for place in [a, b] {
            let switch = &mut switches[place];
            switch.verdicts = switch.verdicts.and(links.verdicts);
            switch.congestion = switch.congestion.and(&links.congestion);
        }
    }
    for switch in &mut switches {
        switch.worst_verdict = Some(switch.verdicts.worst().label().into());
    }
    let bundles = between.iter().map(|(&(a, b), links)| Bundle {
        a,
        b,
        verdicts: links.verdicts,
        suspects: links.worst_suspects(),
        congestion: links.congestion.clone(),
    });
    Topology {
        fabric: view.name.to_owned(),
        swept_at: view.swept_at(),
        switches,
        bundles: bundles.collect(),
        switch_links,
        host_links,
        switchless,
    }
}

/// Links that are summed up: those between two switches, or from a switch to its hosts.
#[derive(Clone, Debug, Default)]
struct LinkGroup<'a> {
    verdicts: Verdicts,
    /// The links that are watch or bad. Unknown ones are not listed: after a start there are many.
    suspects: Vec<LinkRow<'a>>,
    congestion: CongestionCounts,
}

impl<'a> LinkGroup<'a> {
    fn add(&mut self, link: &LinkRow<'a>) {
        self.verdicts.add_link(link);
        self.congestion = self.congestion.and(&congestion(link));
        if link.verdict() >= Verdict::Watch {
            self.suspects.push(*link);
        }
    }

    fn worst_suspects(&self) -> Vec<Suspect> {
        let mut worst = self.suspects.clone();
        worst.sort_by_key(|link| (Reverse(link.verdict()), link.cable.low));
        worst.iter().take(MAX_SUSPECTS).map(suspect).collect()
    }
}

/// The congestion of one link: a root or a victim at either end.
fn congestion(link: &LinkRow<'_>) -> CongestionCounts {
    let ends = link.all_ports().filter_map(|port| link.view.port(port));
    let of_ends = ends.filter(|port| port.role.is_some()).map(|port| CongestionCounts {
        roots: usize::from(matches!(port.role, Some(Role::Root(_)))),
        victims: usize::from(matches!(port.role, Some(Role::Victim { .. }))),
        max_wait_ratio: wait_ratio(port).or(port.held_wait.map(|held| held.share)),
    });
    let both = of_ends.fold(CongestionCounts::default(), |sum, end| sum.and(&end));
    let roots = both.roots.min(1);
    CongestionCounts { roots, victims: both.victims.min(1 - roots), ..both }
}

/// The switches, without their links, in the order in which they are listed: the lowest level first, a group together,
/// by name within it. Numbers in names compare by value.
fn ordered_switches(snapshot: &Snapshot) -> impl Iterator<Item = (NodeIndex, Switch)> {
    let fabric = &*snapshot.fabric;
    let levels = Levels::compute(fabric);
    let nodes: Vec<NodeIndex> =
        fabric.node_indexes().filter(|index| fabric.node(*index).is_switch()).collect();
    let levels: Vec<Option<u8>> = nodes.iter().map(|node| levels.level(*node)).collect();
    let places = places(nodes.iter().copied());
    let pairs = fabric.links().filter_map(|link| {
        let [a, b] = link.ports().map(|port| places.get(&fabric.port(port).node));
        a.copied().zip(b.copied()).filter(|(a, b)| a != b)
    });
    let groups = groups(&levels, &pairs.collect::<Vec<_>>());
    let mut order: Vec<usize> = (0..nodes.len()).collect();
    order.sort_by_cached_key(|&place| natural_key(&fabric.node(nodes[place]).name));
    // A group comes where the first of its members by name does.
    let mut ranks: HashMap<(Option<u8>, usize), usize> = HashMap::new();
    for &place in &order {
        let next = ranks.len();
        ranks.entry((levels[place], groups[place])).or_insert(next);
    }
    order.sort_by_key(|&place| {
        let (level, group) = (levels[place], groups[place]);
        (level.unwrap_or(u8::MAX), ranks[&(level, group)])
    });
    order.into_iter().map(move |place| {
        let (index, level, group) = (nodes[place], levels[place], groups[place]);
        let node = fabric.node(index);
        let (guid, name, up) =
            (node.identity.guid.to_string(), node.name.clone(), snapshot.is_up(index));
        (index, Switch { guid, node: name, up, level, group, ..Switch::default() })
    })
}

/// The switches of the lowest level, those with hosts, in the order in which they are listed.
pub fn leaves(snapshot: &Snapshot) -> Vec<NodeIndex> {
    let leaves = ordered_switches(snapshot).filter(|(_, switch)| switch.level == Some(1));
    leaves.map(|(index, _)| index).collect()
}

fn places(nodes: impl Iterator<Item = NodeIndex>) -> HashMap<NodeIndex, usize> {
    nodes.enumerate().map(|(place, node)| (node, place)).collect()
}

/// Whether a node is an endpoint of the fabric.
fn is_host(fabric: &Fabric, node: NodeIndex) -> bool {
    matches!(fabric.node(node).identity.kind, NodeKind::Ca | NodeKind::Router)
}

fn suspect(link: &LinkRow<'_>) -> Suspect {
    let [near, far] = link.ports().map(|port| link.view.snapshot.fabric.port_label(port));
    Suspect {
        link: link.id(),
        name: format!("{near} – {far}"),
        verdict: link.verdict().label().into(),
    }
}

fn switchless_pair(row: &LinkRow<'_>) -> SwitchlessPair {
    let Suspect { link, verdict, .. } = suspect(row);
    let nodes = row.ports().map(|port| {
        let node = row.view.snapshot.fabric.node_of(port);
        (node.identity.guid.to_string(), node.name.clone())
    });
    SwitchlessPair { nodes: nodes.to_vec(), link: Some(link), verdict: Some(verdict) }
}

/// The group of each switch, by place: switches that links between levels join. Where these join all switches, as
/// in a tree, the groups below the top level are those joined without it (pods), and the groups of the top level
/// those joined by the level below (planes).
fn groups(levels: &[Option<u8>], pairs: &[(usize, usize)]) -> Vec<usize> {
    let rising = |&&(a, b): &&(usize, usize)| levels[a] != levels[b];
    let rising: Vec<(usize, usize)> = pairs.iter().filter(rising).copied().collect();
    let whole = joined(levels.len(), rising.iter().copied());
    let top = levels.iter().flatten().max().copied();
    let is_one = whole.iter().all(|group| *group == whole[0]);
    let Some(top) = top.filter(|top| *top > 1 && is_one) else {
        // Without links between levels there are only single switches.
        return if rising.is_empty() { vec![0; levels.len()] } else { whole };
    };
    let below = |&(a, b): &(usize, usize)| levels[a].max(levels[b]) < Some(top);
    let at_top = |&(a, b): &(usize, usize)| levels[a].min(levels[b]) >= Some(top - 1);
    let pods = joined(levels.len(), rising.iter().copied().filter(below));
    let planes = joined(levels.len(), rising.iter().copied().filter(at_top));
    let groups = levels.iter().enumerate().map(|(place, level)| match level {
        Some(level) if *level == top => planes[place],
        // With two levels each leaf would be a pod of its own.
        _ if top == 2 => levels.len(),
        _ => pods[place],
    });
    groups.collect()
}

/// For each place the lowest place that it is joined with (union-find).
fn joined(count: usize, pairs: impl Iterator<Item = (usize, usize)>) -> Vec<usize> {
    fn root(parents: &mut [usize], mut place: usize) -> usize {
        while parents[place] != place {
            parents[place] = parents[parents[place]];
            place = parents[place];
        }
        place
    }
    let mut parents: Vec<usize> = (0..count).collect();
    for (a, b) in pairs {
        let (a, b) = (root(&mut parents, a), root(&mut parents, b));
        parents[a.max(b)] = a.min(b);
    }
    (0..count).map(|place| root(&mut parents, place)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The groups, each as the places of its members.
    fn members(levels: &[u8], pairs: &[(usize, usize)]) -> Vec<Vec<usize>> {
        let levels: Vec<Option<u8>> =
            levels.iter().map(|level| Some(*level).filter(|level| *level > 0)).collect();
        let groups = groups(&levels, pairs);
        let mut by_group: HashMap<(Option<u8>, usize), Vec<usize>> = HashMap::new();
        for (place, group) in groups.into_iter().enumerate() {
            by_group.entry((levels[place], group)).or_default().push(place);
        }
        let mut members: Vec<Vec<usize>> = by_group.into_values().collect();
        members.sort();
        members
    }

    #[test]
    fn pods_and_planes_are_groups() {
        for (about, levels, pairs, groups) in [
            ("one switch", &[1][..], &[][..], vec![vec![0]]),
            (
                "a tree of two levels",
                &[1, 1, 2, 2],
                &[(0, 2), (0, 3), (1, 2), (1, 3)],
                vec![vec![0, 1], vec![2, 3]],
            ),
            (
                "two pods and two planes",
                &[1, 1, 1, 1, 2, 2, 2, 2, 3, 3],
                &[
                    (0, 4),
                    (0, 5),
                    (1, 4),
                    (1, 5),
                    (2, 6),
                    (2, 7),
                    (3, 6),
                    (3, 7),
                    (4, 8),
                    (6, 8),
                    (5, 9),
                    (7, 9),
                ],
                vec![vec![0, 1], vec![2, 3], vec![4, 5], vec![6, 7], vec![8], vec![9]],
            ),
            (
                "two groups of a dragonfly+, joined by their spines",
                &[1, 1, 2, 2],
                &[(0, 2), (1, 3), (2, 3)],
                vec![vec![0], vec![1], vec![2], vec![3]],
            ),
            ("a ring", &[1, 1, 1], &[(0, 1), (1, 2), (0, 2)], vec![vec![0, 1, 2]]),
            ("no hosts at all", &[0, 0], &[(0, 1)], vec![vec![0, 1]]),
        ] {
            assert_eq!(members(levels, pairs), groups, "{about}");
        }
    }
}
