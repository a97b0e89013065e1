//! A net before repairs: what is computed once and compared with each set of repairs.

use std::collections::BTreeSet;

use crate::assessment::{Assessment, CutHca, CutHost, LeafCapacity, Share};
use crate::capacity::{Leaf, SwitchGraph};
use crate::cut::{Cuts, Families};
use crate::flow::Flow;
use crate::islands::Islands;
use crate::net::{HostId, Net, Node, NodeId, Repair, UnknownPart};
use crate::outage::Outage;

/// Says what a fabric loses while `repairs` are made in one maintenance window. See the documentation of the crate for
/// the definitions.
///
/// Fails if a repair or a drained host is not in the net.
///
/// Takes time in proportion to the links for the paths, and for each leaf in proportion to its neighbors; where the
/// switches above a leaf do not lead to enough other leaves, one maximum flow through the other switches.
pub fn assess(
    net: &Net,
    repairs: &[Repair],
    drained: &BTreeSet<HostId>,
) -> Result<Assessment, UnknownPart> {
    Baseline::new(net, drained)?.assess(repairs)
}

/// A net and its drained hosts, without repairs. Many sets of repairs are assessed faster with it than by [`assess`].
pub struct Baseline<'a> {
    pub(crate) net: &'a Net,
    /// By host.
    drained: Vec<bool>,
    islands: Islands,
    hosts: Families,
    hcas: Families,
    graph: SwitchGraph,
    /// By leaf: its capacity in Gb/s.
    full_gbps: Vec<u64>,
}

impl<'a> Baseline<'a> {
    /// Fails if a drained host is not in the net. Takes the time of an assessment.
    pub fn new(net: &'a Net, drained_hosts: &BTreeSet<HostId>) -> Result<Self, UnknownPart> {
        let mut drained = vec![false; net.host_count()];
        for &host in drained_hosts {
            net.check_host(host)?;
            drained[host.index()] = true;
        }
        let graph = SwitchGraph::new(net, &drained);
        let mut flow = Flow::new(&graph, graph.full());
        let full_gbps = graph.leaves.iter().map(|leaf| flow.maximum(leaf.switch, u64::MAX));
        let full_gbps = full_gbps.collect();
        let host_of = net.nodes().iter().map(|&node| match node {
            Node::Switch => None,
            Node::Hca(host) => Some(host.index()),
        });
        Ok(Baseline {
            net,
            islands: Islands::find(net, &Outage::none(net), &drained),
            hosts: Families::new((0..net.host_count()).map(Some).collect(), net.host_count()),
            hcas: Families::new(host_of.collect(), net.host_count()),
            drained,
            graph,
            full_gbps,
        })
    }

    /// Says what a fabric loses while `repairs` are made in one maintenance window. Fails if one is not in the net.
    pub fn assess(&self, repairs: &[Repair]) -> Result<Assessment, UnknownPart> {
        for &repair in repairs {
            self.net.check_repair(repair)?;
        }
        Ok(self.losses(repairs))
    }

    /// The repairs are in the net.
    pub(crate) fn losses(&self, repairs: &[Repair]) -> Assessment {
        let after = self.islands_during(repairs);
        let cuts = Cuts::find(&self.islands.hosts, &after.hosts, &self.hosts);
        let cut_host = |&host: &usize| CutHost {
            host: HostId::at(host),
            lost: cuts.reach[host].lost,
            kept: cuts.reach[host].kept,
        };
        Assessment {
            cut_hosts: cuts.named.iter().map(cut_host).collect(),
            cut_hcas: self.cut_hcas(&after),
            reduced_leaves: self.reduced_leaves(repairs),
        }
    }

    fn islands_during(&self, repairs: &[Repair]) -> Islands {
        let outage = Outage::of(self.net, repairs.iter().copied());
        Islands::find(self.net, &outage, &self.drained)
    }

    fn cut_hcas(&self, after: &Islands) -> Vec<CutHca> {
        let cuts = Cuts::find(&self.islands.hcas, &after.hcas, &self.hcas);
        let named = cuts.named.iter().filter_map(|&hca| {
            let family = self.hcas.of(hca);
            let others = family.iter().any(|&other| other != hca && cuts.reach[other].kept > 0);
            match self.net.nodes()[hca] {
                Node::Hca(host) if others => Some(CutHca {
                    hca: NodeId::at(hca),
                    host,
                    lost: cuts.reach[hca].lost,
                    kept: cuts.reach[hca].kept,
                }),
                Node::Hca(_) | Node::Switch => None,
            }
        });
        named.collect()
    }

    fn reduced_leaves(&self, repairs: &[Repair]) -> Vec<LeafCapacity> {
        let mut reduced = Vec::new();
        self.each_flow(repairs, 0..self.graph.leaves.len(), |leaf, flow| {
            let Leaf { node, switch } = self.graph.leaves[leaf];
            let before_gbps = self.full_gbps[leaf];
            let after_gbps = flow.maximum(switch, u64::MAX);
            if after_gbps < before_gbps {
                reduced.push(LeafCapacity { leaf: node, before_gbps, after_gbps });
            }
            true
        });
        reduced.sort_by(|a, b| {
            let [a_part, b_part] = [(a, b), (b, a)]
                .map(|(it, other)| u128::from(it.after_gbps) * u128::from(other.before_gbps));
            a_part.cmp(&b_part).then(a.leaf.cmp(&b.leaf))
        });
        reduced
    }

    /// The leaves, as indexes, that keep less than `min_capacity`.
    pub(crate) fn leaves_below(&self, repairs: &[Repair], min_capacity: Share) -> Vec<usize> {
        let mut below = Vec::new();
        self.each_flow(repairs, 0..self.graph.leaves.len(), |leaf, flow| {
            if !self.keeps(leaf, flow, min_capacity) {
                below.push(leaf);
            }
            true
        });
        below
    }

    /// The first of these leaves that keeps less than `min_capacity`.
    pub(crate) fn first_below(
        &self,
        repairs: &[Repair],
        leaves: &[usize],
        min_capacity: Share,
    ) -> Option<usize> {
        let mut first = None;
        self.each_flow(repairs, leaves.iter().copied(), |leaf, flow| {
            if !self.keeps(leaf, flow, min_capacity) {
                first = Some(leaf);
            }
            first.is_none()
        });
        first
    }

    fn keeps(&self, leaf: usize, flow: &mut Flow<'_>, min_capacity: Share) -> bool {
        let enough = min_capacity.smallest_of(self.full_gbps[leaf]);
        flow.maximum(self.graph.leaves[leaf].switch, enough) >= enough
    }

    /// Whether a host loses its last path to another.
    pub(crate) fn cuts_hosts(&self, repairs: &[Repair]) -> bool {
        let after = self.islands_during(repairs);
        !Cuts::find(&self.islands.hosts, &after.hosts, &self.hosts).named.is_empty()
    }

    /// Calls `visit` with each of the leaves and what computes its flow during the repairs, until it returns false.
    ///
    /// The capacity of a leaf does not count while the leaf itself is off. Repairs of a window need not begin and end at
    /// the same moment, so what remains of the others' effect when it is on again does count.
    fn each_flow(
        &self,
        repairs: &[Repair],
        leaves: impl IntoIterator<Item = usize>,
        mut visit: impl FnMut(usize, &mut Flow<'_>) -> bool,
    ) {
        let without = |outage: &Outage| self.graph.without(self.net, outage);
        let during = without(&Outage::of(self.net, repairs.iter().copied()));
        let mut flow = Flow::new(&self.graph, &during);
        for leaf in leaves {
            let node = self.graph.leaves[leaf].node;
            let is_own = |repair: &Repair| self.net.powered_off(repair).contains(&node);
            let goes_on = if repairs.iter().any(is_own) {
                let others = repairs.iter().copied().filter(|repair| !is_own(repair));
                let during = without(&Outage::of(self.net, others));
                visit(leaf, &mut Flow::new(&self.graph, &during))
            } else {
                visit(leaf, &mut flow)
            };
            if !goes_on {
                return;
            }
        }
    }
}
