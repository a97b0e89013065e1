//! Tree levels of switches: their distance from the hosts.

use super::topology::{Fabric, NodeIndex};
use ib_mad::node::NodeKind;

/// A switch is a leaf if at least one in this many of its cables leads to a host. So a single storage server or
/// subnet manager host does not make a spine switch a leaf.
const HOSTS_OF_A_LEAF: u32 = 8;

/// The level of switches that are not connected to a leaf.
const NO_LEVEL: u8 = u8::MAX;

/// Distance of each node from the nearest host: 0 is a host, 1 a leaf. In a torus or a Dragonfly all switches
/// are leaves, without up and down between them.
#[derive(Clone, Debug)]
pub struct Levels(Vec<u8>);

impl Levels {
    /// Computes the levels of a fabric. Remembered cables count, too: a leaf stays a leaf while its hosts are off.
    pub fn compute(fabric: &Fabric) -> Levels {
        let mut levels = vec![NO_LEVEL; fabric.nodes.len()];
        let mut queue = Vec::new();
        for node in fabric.node_indexes() {
            if !fabric.node(node).is_switch() {
                levels[node.0 as usize] = 0;
            } else if is_leaf(fabric, node) {
                levels[node.0 as usize] = 1;
                queue.push(node);
            }
        }
        let mut next = Vec::new();
        for level in 2..NO_LEVEL {
            for node in queue.drain(..) {
                for far in neighbors(fabric, node) {
                    let far_level = &mut levels[far.0 as usize];
                    if *far_level == NO_LEVEL {
                        *far_level = level;
                        next.push(far);
                    }
                }
            }
            if next.is_empty() {
                break;
            }
            std::mem::swap(&mut queue, &mut next);
        }
        Levels(levels)
    }

    /// A node's level; `None` if it is not connected to a leaf.
    pub fn level(&self, node: NodeIndex) -> Option<u8> {
        self.0.get(node.0 as usize).copied().filter(|level| *level != NO_LEVEL)
    }

    /// Whether the hop from one node to another leads up the tree.
    pub fn rises(&self, from: NodeIndex, to: NodeIndex) -> bool {
        self.0[from.0 as usize] < self.0[to.0 as usize]
    }
}

/// The nodes at the other ends of a node's cables, connected or remembered.
fn neighbors(fabric: &Fabric, node: NodeIndex) -> impl Iterator<Item = NodeIndex> + '_ {
    let peers = fabric.ports_of(node).filter_map(|port| fabric.port(port).peer);
    peers.map(|peer| fabric.port(peer.port).node)
}

fn is_leaf(fabric: &Fabric, node: NodeIndex) -> bool {
    let (mut hosts, mut all) = (0, 0);
    for far in neighbors(fabric, node) {
        hosts += u32::from(fabric.node(far).identity.kind == NodeKind::Ca);
        all += 1;
    }
    hosts > 0 && hosts * HOSTS_OF_A_LEAF >= all
}
