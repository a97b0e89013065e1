//! Which links join the switches of a fabric with each other and with its hosts: what the topology and its picture are
//! built from.

use std::collections::BTreeMap;

use ib_fabric::{Fabric, NodeIndex};
use ib_mad::node::NodeKind;

use super::groups::{Place, ordered_switches, places};
use crate::condition::DownNodes;
use crate::link_row::LinkRow;
use crate::model::Verdicts;
use crate::view::FabricView;

/// The switches of a fabric, and all links by what they join.
#[derive(Clone, Debug)]
pub struct Wiring<'a> {
    /// The fabric.
    pub view: FabricView<'a>,
    /// The lowest level first, a group together, by name within it.
    pub switches: Vec<WiredSwitch<'a>>,
    /// The links between two switches, by the places of both.
    pub bundles: Vec<WiredBundle<'a>>,
    /// The links between hosts.
    pub switchless: Vec<LinkRow<'a>>,
    /// The nodes that are down.
    pub down: DownNodes,
    /// The links between switches by verdict. A link of several planes counts once here, and in each of the bundles that
    /// its planes join.
    pub switch_links: Verdicts,
    /// The links between a switch and a host by verdict, in the same way.
    pub host_links: Verdicts,
}

/// A switch with the links to its hosts.
#[derive(Clone, Debug)]
pub struct WiredSwitch<'a> {
    /// Its node.
    pub node: NodeIndex,
    /// Distance from the hosts: a switch with hosts has level 1. `None` if no path leads to a switch with hosts.
    pub level: Option<u8>,
    /// Switches of a level that belong together share it.
    pub group: usize,
    /// The links to its hosts and routers.
    pub hosts: Vec<HostLink<'a>>,
}

/// A link to a host or router.
#[derive(Clone, Copy, Debug)]
pub struct HostLink<'a> {
    /// The host.
    pub host: NodeIndex,
    /// The link.
    pub link: LinkRow<'a>,
}

/// All links between two switches.
#[derive(Clone, Debug)]
pub struct WiredBundle<'a> {
    /// The place of the switch of the lower level, or of the first one.
    pub a: usize,
    /// The place of the other.
    pub b: usize,
    /// The links.
    pub links: Vec<LinkRow<'a>>,
}

impl<'a> Wiring<'a> {
    /// Orders the switches and sorts the links.
    pub fn new(view: FabricView<'a>) -> Self {
        let ordered = ordered_switches(view.snapshot);
        let places = places(ordered.iter().map(|it| it.node));
        let switch = |it: Place| WiredSwitch {
            node: it.node,
            level: it.level,
            group: it.group,
            hosts: Vec::new(),
        };
        let mut wiring = Wiring {
            view,
            switches: ordered.into_iter().map(switch).collect(),
            bundles: Vec::new(),
            switchless: Vec::new(),
            down: DownNodes::find(view),
            switch_links: Verdicts::default(),
            host_links: Verdicts::default(),
        };
        let mut between: BTreeMap<(usize, usize), Vec<LinkRow<'a>>> = BTreeMap::new();
        // Each plane may join other nodes; a link of several planes is counted once.
        let links = view.links().flat_map(|link| {
            let pairs = link.node_pairs().enumerate();
            pairs.map(move |(plane, pair)| (link, plane == 0, pair))
        });
        for (link, is_first, [near, far]) in links {
            match [near, far].map(|node| places.get(&node).copied()) {
                [Some(a), Some(b)] => {
                    wiring.switch_links.add_first(&link, is_first);
                    if a != b {
                        between.entry((a.min(b), a.max(b))).or_default().push(link);
                    }
                }
                [Some(switch), None] => wiring.add_host(switch, far, link, is_first),
                [None, Some(switch)] => wiring.add_host(switch, near, link, is_first),
                [None, None] => wiring.switchless.push(link),
            }
        }
        let bundles = between.into_iter().map(|((a, b), links)| WiredBundle { a, b, links });
        wiring.bundles = bundles.collect();
        wiring
    }

    fn add_host(&mut self, switch: usize, host: NodeIndex, link: LinkRow<'a>, is_first: bool) {
        if is_host(&self.view.snapshot.fabric, host) {
            self.host_links.add_first(&link, is_first);
            self.switches[switch].hosts.push(HostLink { host, link });
        }
    }

    /// The number of hosts of a switch that are down.
    pub fn hosts_down(&self, switch: &WiredSwitch<'_>) -> usize {
        switch.hosts.iter().filter(|it| self.down.get(it.host).is_some()).count()
    }
}

impl Verdicts {
    fn add_first(&mut self, link: &LinkRow<'_>, is_first: bool) {
        if is_first {
            self.add_link(link);
        }
    }
}

/// Whether a node is an endpoint of the fabric.
fn is_host(fabric: &Fabric, node: NodeIndex) -> bool {
    matches!(fabric.node(node).identity.kind, NodeKind::Ca | NodeKind::Router)
}
