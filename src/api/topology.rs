//! `/api/v1/topology`: how a fabric is wired, switch by switch, put together from a board.

use std::cmp::Reverse;
use std::collections::HashMap;
use std::sync::Arc;

use fabric_observation::Observation;
use ib_fabric::levels::Levels;
use ib_fabric::topology::Link as Cable;
use ib_fabric::{Fabric, NodeIndex};
use ib_health::congestion::Role;
use ib_health::{Verdict, evidence};
use ib_mad::label::{NaturalPart, natural_key};
use ib_mad::node::NodeKind;

use super::links::Of;
use super::model::Verdicts;
use super::model::topology::{Apart, Bundle, Congested, Suspect, Switch, Topologies, Topology};

/// How many cables are told one by one, of those between two switches or to a switch's hosts.
const MOST_SUSPECTS: usize = 8;

/// How the fabrics are wired, or one of them. No fabric may have the name that is.
pub fn topologies(fabrics: &[Arc<Observation>], fabric: Option<&str>) -> Topologies {
    let wanted = |name: &str| fabric.is_none_or(|wanted| wanted == name);
    let fabrics = fabrics.iter().filter(|observation| wanted(&observation.fabric));
    Topologies { fabrics: fabrics.map(|observation| topology(observation)).collect() }
}

/// How a fabric is wired.
pub fn topology(observation: &Observation) -> Topology {
    let Some(of) = Of::new(observation) else {
        return Topology { fabric: observation.fabric.clone(), ..Topology::default() };
    };
    let wiring = Wiring::of(of);
    wiring.topology()
}

/// A cable that was judged.
type Judged = (Cable, Verdict);

/// Whether a cable is congested, at either end.
fn congested(of: Of<'_>, cable: Cable) -> Congested {
    let ends = [cable.0, cable.1].into_iter();
    let waiting = ends
        .filter_map(|port| of.findings.ports.get(port.0 as usize))
        .filter(|port| port.role.is_some());
    let one = waiting.map(|port| Congested {
        roots: usize::from(matches!(port.role, Some(Role::Root))),
        victims: usize::from(matches!(port.role, Some(Role::Victim { .. }))),
        most_wait: port.wait.map(|wait| wait.share).filter(|share| share.is_finite()),
    });
    let both = one.fold(Congested::default(), |sum, end| sum.and(&end));
    let roots = both.roots.min(1);
    Congested { roots, victims: both.victims.min(1 - roots), ..both }
}

/// Cables that are told as one.
#[derive(Clone, Debug, Default)]
struct Strand {
    verdicts: Verdicts,
    /// Those that want a look. Unknown ones are many after a start, and say nothing one by one.
    suspects: Vec<Judged>,
    congestion: Congested,
}

impl Strand {
    fn add(&mut self, of: Of<'_>, (cable, verdict): Judged) {
        self.verdicts.add(verdict);
        self.congestion = self.congestion.and(&congested(of, cable));
        if verdict >= Verdict::Watch {
            self.suspects.push((cable, verdict));
        }
    }
}

/// A fabric's switches and what is at them.
struct Wiring<'a> {
    of: Of<'a>,
    /// In the order in which they are told.
    switches: Vec<NodeIndex>,
    levels: Vec<Option<u8>>,
    groups: Vec<usize>,
    hosts: Vec<Strand>,
    between: Vec<((usize, usize), Strand)>,
    apart: Vec<Apart>,
}

impl<'a> Wiring<'a> {
    fn of(of: Of<'a>) -> Self {
        let fabric = &*of.snapshot.fabric;
        let levels = Levels::compute(fabric);
        let switches: Vec<NodeIndex> =
            fabric.node_indexes().filter(|index| fabric.node(*index).is_switch()).collect();
        let places: HashMap<NodeIndex, usize> =
            switches.iter().enumerate().map(|(place, node)| (*node, place)).collect();
        let mut hosts = vec![Strand::default(); switches.len()];
        let mut between: HashMap<(usize, usize), Strand> = HashMap::new();
        let mut apart = Vec::new();
        let judged = of.findings.links.iter().map(Some).chain(std::iter::repeat(None));
        for (cable, judged) in fabric.links().zip(judged) {
            let judged = (cable, judged.map_or(Verdict::Unknown, |judged| judged.verdict));
            let (near, far) = (fabric.port(cable.0).node, fabric.port(cable.1).node);
            match (places.get(&near), places.get(&far)) {
                (Some(&a), Some(&b)) if a != b => {
                    between.entry((a.min(b), a.max(b))).or_default().add(of, judged);
                }
                (Some(&switch), None) if is_host(fabric, far) => hosts[switch].add(of, judged),
                (None, Some(&switch)) if is_host(fabric, near) => hosts[switch].add(of, judged),
                (None, None) => apart.push(without_switch(of, judged)),
                _ => {}
            }
        }
        let levels: Vec<Option<u8>> = switches.iter().map(|node| levels.level(*node)).collect();
        let pairs: Vec<(usize, usize)> = between.keys().copied().collect();
        let groups = groups(&levels, &pairs);
        let mut wiring = Wiring {
            of,
            switches,
            levels,
            groups,
            hosts,
            between: between.into_iter().collect(),
            apart,
        };
        wiring.sort();
        wiring
    }

    /// The lowest level first, those of a group together, by name among them: numbers in it count.
    fn sort(&mut self) {
        let fabric = &self.of.snapshot.fabric;
        let name = |place: usize| natural_key(&fabric.node(self.switches[place]).name);
        // A group stands where the first of its members does.
        let mut first: HashMap<(Option<u8>, usize), Vec<NaturalPart<'_>>> = HashMap::new();
        for place in 0..self.switches.len() {
            let key = (self.levels[place], self.groups[place]);
            let name = name(place);
            let earliest = first.entry(key).or_insert_with(|| name.clone());
            if name < *earliest {
                *earliest = name;
            }
        }
        let mut order: Vec<usize> = (0..self.switches.len()).collect();
        order.sort_by_cached_key(|&place| {
            let (level, group) = (self.levels[place], self.groups[place]);
            let of_group = first.get(&(level, group)).cloned();
            (level.unwrap_or(u8::MAX), of_group, group, name(place))
        });
        let mut now_at = vec![0; order.len()];
        for (now, &was) in order.iter().enumerate() {
            now_at[was] = now;
        }
        self.switches = order.iter().map(|&was| self.switches[was]).collect();
        self.levels = order.iter().map(|&was| self.levels[was]).collect();
        self.groups = order.iter().map(|&was| self.groups[was]).collect();
        self.hosts = order.iter().map(|&was| std::mem::take(&mut self.hosts[was])).collect();
        for ((a, b), _) in &mut self.between {
            let (one, other) = (now_at[*a], now_at[*b]);
            (*a, *b) = (one.min(other), one.max(other));
        }
        self.between.sort_by_key(|(pair, _)| *pair);
    }

    fn topology(&self) -> Topology {
        let mut switches: Vec<Switch> =
            (0..self.switches.len()).map(|place| self.switch(place)).collect();
        let mut all: Vec<Verdicts> = self.hosts.iter().map(|hosts| hosts.verdicts).collect();
        for (&(a, b), strand) in self.between.iter().map(|(pair, strand)| (pair, strand)) {
            let count = strand.verdicts.count();
            let (low, high) = (self.levels[a], self.levels[b]);
            if low == high {
                switches[a].side_links += count;
                switches[b].side_links += count;
            } else {
                // By the order, the lower one is the first; what has no level stands above all others.
                switches[a].up_links += count;
                switches[b].down_links += count;
            }
            for place in [a, b] {
                all[place] = all[place].and(strand.verdicts);
                switches[place].congestion = switches[place].congestion.and(&strand.congestion);
            }
        }
        for (switch, all) in switches.iter_mut().zip(all) {
            switch.worst = all.worst().map(|worst| worst.label().into());
        }
        let bundles = self.between.iter().map(|(pair, strand)| Bundle {
            a: pair.0,
            b: pair.1,
            verdicts: strand.verdicts,
            suspects: self.suspects(strand),
            congestion: strand.congestion.clone(),
        });
        Topology {
            fabric: self.of.name.to_owned(),
            swept_at: self.of.time(self.of.snapshot.ended),
            switches,
            bundles: bundles.collect(),
            apart: self.apart.clone(),
        }
    }

    fn switch(&self, place: usize) -> Switch {
        let (index, hosts) = (self.switches[place], &self.hosts[place]);
        let node = self.of.snapshot.fabric.node(index);
        Switch {
            guid: node.identity.guid.to_string(),
            node: node.name.clone(),
            up: self.of.snapshot.is_up(index),
            level: self.levels[place],
            group: self.groups[place],
            hosts: hosts.verdicts.count(),
            to_hosts: hosts.verdicts,
            host_suspects: self.suspects(hosts),
            host_congestion: hosts.congestion.clone(),
            congestion: hosts.congestion.clone(),
            ..Switch::default()
        }
    }

    fn suspects(&self, strand: &Strand) -> Vec<Suspect> {
        let mut worst = strand.suspects.clone();
        worst.sort_by_key(|(cable, verdict)| (Reverse(*verdict), cable.0));
        let told = worst.into_iter().take(MOST_SUSPECTS);
        told.map(|judged| suspect(self.of, judged)).collect()
    }
}

/// What stands at a switch as an end of the fabric.
fn is_host(fabric: &Fabric, node: NodeIndex) -> bool {
    matches!(fabric.node(node).identity.kind, NodeKind::Ca | NodeKind::Router)
}

fn suspect(of: Of<'_>, (cable, verdict): Judged) -> Suspect {
    let id = of.snapshot.fabric.link_id(cable.0).map(|id| id.to_string());
    let [near, far] = [cable.0, cable.1].map(|port| evidence::port_label(of.snapshot, port));
    Suspect {
        link: id.unwrap_or_default(),
        place: format!("{near} – {far}"),
        verdict: verdict.label().into(),
    }
}

fn without_switch(of: Of<'_>, judged: Judged) -> Apart {
    let cable = judged.0;
    let Suspect { link, verdict, .. } = suspect(of, judged);
    let nodes = [cable.0, cable.1].map(|port| {
        let node = of.snapshot.fabric.node_of(port);
        (node.identity.guid.to_string(), node.name.clone())
    });
    Apart { nodes: nodes.to_vec(), link: Some(link), verdict: Some(verdict) }
}

/// Which switches belong together, by place: those that the cables between levels join. Where all are
/// joined, as in a tree, those that are without the top level (pods), and those at the top that are joined
/// by the level below (planes).
fn groups(levels: &[Option<u8>], pairs: &[(usize, usize)]) -> Vec<usize> {
    let rising = |&&(a, b): &&(usize, usize)| levels[a] != levels[b];
    let rising: Vec<(usize, usize)> = pairs.iter().filter(rising).copied().collect();
    let whole = joined(levels.len(), rising.iter().copied());
    let top = levels.iter().flatten().max().copied();
    let parts = |groups: &[usize]| {
        let mut roots = groups.to_vec();
        roots.sort_unstable();
        roots.dedup();
        roots.len()
    };
    // Without cables between levels there are no groups, but single switches.
    let Some(top) = top.filter(|top| *top > 1 && parts(&whole) == 1) else {
        let has_groups = !rising.is_empty();
        return if has_groups { whole } else { vec![0; levels.len()] };
    };
    let below = |&(a, b): &(usize, usize)| levels[a].max(levels[b]) < Some(top);
    let at_top = |&(a, b): &(usize, usize)| levels[a].min(levels[b]) >= Some(top - 1);
    let pods = joined(levels.len(), rising.iter().copied().filter(below));
    let planes = joined(levels.len(), rising.iter().copied().filter(at_top));
    let told = levels.iter().enumerate().map(|(place, level)| match level {
        Some(level) if *level == top => planes[place],
        // Of two levels, each leaf would be a pod of its own.
        _ if top == 2 => levels.len(),
        _ => pods[place],
    });
    told.collect()
}

/// By place, the lowest place of those that are joined with it.
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

    /// Which groups there are, each as the places of its members.
    fn told(levels: &[u8], pairs: &[(usize, usize)]) -> Vec<Vec<usize>> {
        let levels: Vec<Option<u8>> =
            levels.iter().map(|level| Some(*level).filter(|level| *level > 0)).collect();
        let groups = groups(&levels, pairs);
        let mut by_group: HashMap<(Option<u8>, usize), Vec<usize>> = HashMap::new();
        for (place, group) in groups.into_iter().enumerate() {
            by_group.entry((levels[place], group)).or_default().push(place);
        }
        let mut told: Vec<Vec<usize>> = by_group.into_values().collect();
        told.sort();
        told
    }

    #[test]
    fn what_belongs_together_is_seen_from_the_cables() {
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
            assert_eq!(told(levels, pairs), groups, "{about}");
        }
    }
}
