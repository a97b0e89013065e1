//! Channel adapters that do not respond to performance management while switches do: this port is not a full member of
//! their partition.
//!
//! An adapter counts each request from a wrong partition as a P_Key violation, and may send trap 257 to the subnet
//! manager for it (IBTA 1.4, 10.9.4 and 14.2.5.1). So once nearly none responds, a sweep asks those that responded
//! last time and our own, and probes a few of the others, in turns, one of which has responded before, if any has. Each
//! response permits more probes: when the partition is right again, the same sweep asks all.

use std::collections::HashSet;

use ib_mad::node::NodeKind;
use ib_mad::{Guid, PortKey};

use super::Liveness;
use crate::topology::Presence;
use crate::{Fabric, NodeIndex, NodeMap};

const MIN_ADAPTERS: usize = 3;

/// A few adapters are full members of the hosts' partition: of the subnet manager, of storage servers.
const SILENT_PER_RESPONDING: usize = 9;

/// What is remembered of them from sweep to sweep.
#[derive(Debug, Default)]
pub(super) struct SilentAdapters {
    /// The adapters that responded in the last sweep, while nearly none does.
    responding: Option<HashSet<Guid>>,
    /// Those that responded in an earlier sweep since then: servers that were restarted, for example.
    lapsed: HashSet<Guid>,
    /// What the last [`update`](Self::update) returned.
    is_likely: bool,
    /// The agent that was probed last.
    pub last_probe: Option<PortKey>,
    /// The one of them of an adapter that had responded before.
    pub last_lapsed: Option<PortKey>,
}

impl SilentAdapters {
    /// Whether adapters are silent.
    pub fn are_suspected(&self) -> bool {
        self.responding.is_some()
    }

    /// Whether a wrong partition is the likely cause.
    pub fn is_partition_likely(&self) -> bool {
        self.is_likely
    }

    /// Whether a node is only probed.
    pub fn is_probed(&self, fabric: &Fabric, node: NodeIndex) -> bool {
        let identity = &fabric.node(node).identity;
        identity.kind == NodeKind::Ca
            && local_node(fabric) != Some(node)
            && self.responding.as_ref().is_some_and(|known| !known.contains(&identity.guid))
    }

    /// Whether an adapter that is only probed responded before.
    pub fn has_lapsed(&self, guid: Guid) -> bool {
        self.lapsed.contains(&guid)
    }

    /// Takes what a sweep found of performance management: `None` of adapters that it did not ask, or at whose LID
    /// another node may have responded. Returns whether a wrong partition is the likely cause: switches respond, and
    /// nearly no channel adapter does of those that responded to subnet management, which has no partition, in the
    /// discovery; others may hang. Limited members of a partition drop packets of each other; port 0 of a switch is
    /// usually a full member (IBTA 1.4, 10.9.3), and so is the subnet manager's host in OpenSM's default
    /// partitions.conf (ALL=limited, SELF=full).
    ///
    /// Whatever the cause, from then on most are only probed, also those that an M_Key hides from discoveries. Only
    /// responses end that: a sweep in which LIDs change asks few.
    pub fn update(&mut self, fabric: &Fabric, liveness: &NodeMap<Liveness>) -> bool {
        let local = local_node(fabric);
        let known = self.responding.as_ref();
        let (mut has_switch, mut responding) = (false, HashSet::new());
        let (mut silent, mut reached) = (0, 0);
        for (node, &liveness) in fabric.node_indexes().zip(liveness) {
            let about = fabric.node(node);
            if Some(node) == local || !about.present() {
                continue;
            }
            let guid = about.identity.guid;
            match (about.identity.kind, liveness) {
                (NodeKind::Switch, Some(true)) => has_switch = true,
                (NodeKind::Ca, Some(true)) => {
                    responding.insert(guid);
                }
                (NodeKind::Ca, None) if known.is_some_and(|known| known.contains(&guid)) => {
                    responding.insert(guid);
                }
                (NodeKind::Ca, liveness) if liveness == Some(false) || known.is_some() => {
                    silent += 1;
                    reached += usize::from(about.presence == Presence::Found);
                }
                _ => {}
            }
        }
        // Without a response of a switch the cause is another one: what was known stays.
        if has_switch {
            let are_many =
                |silent| silent >= MIN_ADAPTERS.max(SILENT_PER_RESPONDING * responding.len());
            self.is_likely = are_many(reached);
            let before = self.responding.take().unwrap_or_default();
            self.lapsed.extend(before);
            self.lapsed
                .retain(|guid| !responding.contains(guid) && fabric.node_by_guid(*guid).is_some());
            self.responding = are_many(silent).then_some(responding);
            if self.responding.is_none() {
                self.lapsed.clear();
            }
        } else {
            self.is_likely = false;
        }
        self.is_likely
    }
}

fn local_node(fabric: &Fabric) -> Option<NodeIndex> {
    fabric.local_port.map(|port| fabric.port(port).node)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing;

    const ADAPTERS: u64 = 20;

    /// A switch and its adapters.
    fn switch_with_adapters() -> Fabric {
        let adapters = (0..ADAPTERS).map(|nth| testing::found(100 + nth, NodeKind::Ca, 1));
        let nodes = adapters.chain([testing::found(1, NodeKind::Switch, 64)]).collect();
        testing::fabric(nodes, &[], None)
    }

    /// Of all adapters the same, and of the switch.
    fn all(fabric: &Fabric, adapters: Liveness, switch: Liveness) -> NodeMap<Liveness> {
        let of = |node| if fabric.node(node).is_switch() { switch } else { adapters };
        fabric.node_indexes().map(of).collect()
    }

    #[test]
    fn only_responses_end_the_suspicion() {
        let fabric = switch_with_adapters();
        let mut adapters = SilentAdapters::default();
        let silent = all(&fabric, Some(false), Some(true));
        assert!(adapters.update(&fabric, &silent));
        // LIDs change: nothing is known of any adapter, or of anything.
        adapters.update(&fabric, &all(&fabric, None, Some(true)));
        assert!(adapters.are_suspected());
        adapters.update(&fabric, &all(&fabric, None, None));
        assert!(adapters.are_suspected());
        assert!(!adapters.update(&fabric, &all(&fabric, Some(true), Some(true))));
        assert!(!adapters.are_suspected());
    }

    #[test]
    fn adapters_hidden_by_an_m_key_are_probed_too() {
        let mut fabric = switch_with_adapters();
        for node in fabric.nodes.iter_mut().filter(|node| !node.is_switch()) {
            node.presence = Presence::Hidden;
        }
        let mut adapters = SilentAdapters::default();
        // Neither do they respond to subnet management: they may hang.
        assert!(!adapters.update(&fabric, &all(&fabric, Some(false), Some(true))));
        assert!(adapters.are_suspected());
    }
}
