//! How high switches stand above the hosts, where a fabric is a tree.

use super::topology::{Fabric, NodeIndex, PortIndex};
use ib_mad::node::NodeKind;

/// A switch is a leaf if at least one in so many of its cables leads to a host. A storage server or
/// the subnet manager's host at a switch in the middle makes no leaf of it.
const HOSTS_OF_A_LEAF: u32 = 8;

/// The level of what cannot be reached from a leaf, and so has no place in a tree.
const NOWHERE: u8 = u8::MAX;

/// By node, how far it is from the nearest hosts: 0 is a host, 1 a leaf. In a torus or in a Dragonfly
/// all switches are leaves: nothing rises or falls between them.
#[derive(Clone, Debug)]
pub struct Levels(Vec<u8>);

impl Levels {
    /// Those of a fabric's nodes. Remembered cables count, too: a leaf stays one while its hosts are off.
    pub fn of(fabric: &Fabric) -> Levels {
        let mut levels = vec![NOWHERE; fabric.nodes.len()];
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
        for level in 2..NOWHERE {
            for node in queue.drain(..) {
                for (_, far) in neighbours(fabric, node) {
                    let place = &mut levels[far.0 as usize];
                    if *place == NOWHERE {
                        *place = level;
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

    /// A node's level; `None` of what has no place in a tree.
    pub fn level(&self, node: NodeIndex) -> Option<u8> {
        self.0.get(node.0 as usize).copied().filter(|level| *level != NOWHERE)
    }

    /// Whether the way from one node to another leads up.
    pub fn rises(&self, from: NodeIndex, to: NodeIndex) -> bool {
        self.0[from.0 as usize] < self.0[to.0 as usize]
    }
}

/// Remembered cables count, too: a leaf stays one while its hosts are off.
fn neighbours(
    fabric: &Fabric,
    node: NodeIndex,
) -> impl Iterator<Item = (PortIndex, NodeIndex)> + '_ {
    fabric.ports_of(node).filter_map(|port| {
        let far = fabric.port(port).peer?.port;
        Some((port, fabric.port(far).node))
    })
}

fn is_leaf(fabric: &Fabric, node: NodeIndex) -> bool {
    let (mut hosts, mut all) = (0, 0);
    for (_, far) in neighbours(fabric, node) {
        hosts += u32::from(fabric.node(far).identity.kind == NodeKind::Ca);
        all += 1;
    }
    hosts > 0 && hosts * HOSTS_OF_A_LEAF >= all
}
