//! The order of the switches of a fabric, and which of them belong together.

use std::collections::HashMap;

use display_text::natural_key;
use ib_fabric::topology::Levels;
use ib_fabric::{NodeIndex, Snapshot};

/// Where a switch is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Place {
    pub node: NodeIndex,
    pub level: Option<u8>,
    pub group: usize,
}

/// The switches in the order in which they are listed: the lowest level first, a group together, by name within it.
/// Numbers in names compare by value.
pub(super) fn ordered_switches(snapshot: &Snapshot) -> Vec<Place> {
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
    let place = |at: usize| Place { node: nodes[at], level: levels[at], group: groups[at] };
    order.into_iter().map(place).collect()
}

/// The place of each node in a list.
pub(super) fn places(nodes: impl Iterator<Item = NodeIndex>) -> HashMap<NodeIndex, usize> {
    nodes.enumerate().map(|(place, node)| (node, place)).collect()
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
