//! What was read of forwarding tables, and when.

use std::collections::HashMap;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::time::Duration;

use ib_mad::forwarding_table::LinearForwardingTable;
use ib_mad::{Guid, Lid, Moment, PortKey};

use super::budget::SmpBudget;
use super::lids::lids_of_port;
use crate::topology::Fabric;

/// A value with the time at which it was read.
#[derive(Clone, Copy, Debug)]
pub(super) struct Dated<T> {
    pub value: T,
    pub at: Moment,
}

/// A block of the table of a switch.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct BlockKey {
    pub switch: Guid,
    pub block: u16,
}

/// The blocks of forwarding tables that were read, and the budget of SMPs for reading more: one for all queries of a
/// fabric.
///
/// A table has no version. So a block is read again once it is older than a limit, and all are forgotten when the fabric
/// that a query passes shows that the subnet manager has new routes: LIDs changed, or a link between switches is new or
/// gone. A host that comes or goes only changes the blocks with its LIDs. The budget and the limit of age also bound
/// the memory.
#[derive(Debug)]
pub struct ForwardingCache {
    /// The limit of SMPs.
    pub budget: SmpBudget,
    max_age: Duration,
    pub(super) blocks: HashMap<BlockKey, Dated<LinearForwardingTable>>,
    /// LinearFDBTop by switch; old ones are kept to compare.
    tops: HashMap<Guid, Dated<Lid>>,
    /// Whether packets may take other ports than the table of a switch has.
    pub(super) adaptive: HashMap<Guid, Dated<bool>>,
    /// The first LID of each port that has LIDs, and their number.
    lids: HashMap<PortKey, (Lid, u32)>,
    /// A hash of the links between switches.
    links: u64,
    /// When the present query began.
    began: Moment,
}

impl ForwardingCache {
    /// After so long a block is read again. Subnet managers that see a link go down have routed around it within seconds,
    /// and a sweep of the exporter sees it as well; this limit is for what it does not see, such as another routing
    /// engine.
    pub const DEFAULT_MAX_AGE: Duration = Duration::from_secs(300);

    /// An empty cache with a budget, whose entries are used for this long.
    pub fn new(budget: SmpBudget, max_age: Duration) -> Self {
        ForwardingCache {
            budget,
            max_age,
            blocks: HashMap::new(),
            tops: HashMap::new(),
            adaptive: HashMap::new(),
            lids: HashMap::new(),
            links: 0,
            began: Moment::default(),
        }
    }

    /// How many blocks it has.
    pub fn len(&self) -> usize {
        self.blocks.len()
    }

    /// Whether it has no block.
    pub fn is_empty(&self) -> bool {
        self.blocks.is_empty()
    }

    /// Forgets what was read.
    pub fn clear(&mut self) {
        self.blocks.clear();
        self.tops.clear();
    }

    /// Forgets what a discovery shows to be no longer valid. Each query does so as well; this tells at once whether all
    /// was forgotten, since the subnet manager has new routes.
    pub fn on_discovery(&mut self, fabric: &Fabric, now: Moment) -> bool {
        self.prepare(fabric, now)
    }

    /// Forgets what is too old, and what is not valid in the fabric that a query is about. Each query does so. Returns
    /// whether all was forgotten because of the fabric.
    pub(super) fn prepare(&mut self, fabric: &Fabric, now: Moment) -> bool {
        let oldest = now.before(self.max_age);
        self.began = now;
        self.blocks.retain(|_, block| block.at >= oldest);
        self.tops.retain(|switch, _| fabric.is_present(*switch));
        let is_valid = |switch: &Guid, at: Moment| at >= oldest && fabric.is_present(*switch);
        self.adaptive.retain(|switch, known| is_valid(switch, known.at));
        let links = links_between_switches(fabric);
        let lids = lids_of_ports(fabric);
        let is_other =
            |(port, known): (&PortKey, &(Lid, u32))| lids.get(port).is_some_and(|now| now != known);
        let has_new_routes = links != self.links || self.lids.iter().any(is_other);
        if has_new_routes {
            self.clear();
        } else {
            let come = lids.iter().filter(|(port, _)| !self.lids.contains_key(port));
            let gone = self.lids.iter().filter(|(port, _)| !lids.contains_key(port));
            for (_, &(first, count)) in come.chain(gone) {
                let last = Lid(first.0.saturating_add(count.saturating_sub(1) as u16));
                let blocks =
                    LinearForwardingTable::block_of(first)..=LinearForwardingTable::block_of(last);
                self.blocks.retain(|key, _| !blocks.contains(&key.block));
            }
        }
        (self.links, self.lids) = (links, lids);
        has_new_routes
    }

    /// The LinearFDBTop of a switch, unless it is too old.
    pub(super) fn top(&self, switch: Guid) -> Option<Dated<Lid>> {
        let oldest = self.began.before(self.max_age);
        self.tops.get(&switch).copied().filter(|top| top.at >= oldest)
    }

    /// Keeps the LinearFDBTop of a switch. If it is another one than before, the subnet manager has written the table
    /// since: what earlier queries have read of it is forgotten.
    pub(super) fn set_top(&mut self, switch: Guid, top: Lid, at: Moment) {
        let before = self.tops.insert(switch, Dated { value: top, at });
        if before.is_some_and(|before| before.value != top) {
            let began = self.began;
            self.blocks.retain(|key, block| key.switch != switch || block.at >= began);
        }
    }
}

impl Default for ForwardingCache {
    fn default() -> Self {
        ForwardingCache::new(SmpBudget::default(), Self::DEFAULT_MAX_AGE)
    }
}

/// The LIDs of each port that has some, of present nodes.
fn lids_of_ports(fabric: &Fabric) -> HashMap<PortKey, (Lid, u32)> {
    let own = fabric
        .port_indexes()
        .filter(|port| fabric.node_of(*port).present() && fabric.management_port(*port) == *port);
    let with_lids = own.filter_map(|port| {
        let lids = lids_of_port(fabric, port);
        Some((fabric.port_key(port), (Lid(u16::try_from(lids.start).ok()?), lids.len() as u32)))
    });
    with_lids.filter(|(_, (_, count))| *count > 0).collect()
}

/// A hash of the links between switches that the latest discovery found.
fn links_between_switches(fabric: &Fabric) -> u64 {
    let mut hasher = DefaultHasher::new();
    for link in fabric.links() {
        let [low, high] = link.ports();
        let is_connected = fabric.port(low).connected_peer().is_some();
        let are_switches = fabric.node_of(low).is_switch() && fabric.node_of(high).is_switch();
        if is_connected && are_switches {
            (fabric.port_key(low), fabric.port_key(high)).hash(&mut hasher);
        }
    }
    hasher.finish()
}
