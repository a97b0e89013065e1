//! Reads what a query needs of the switches, within the limits, and keeps it in the cache.

use std::cell::Cell;
use std::collections::{BTreeMap, HashSet, VecDeque};

use ib_mad::forwarding_table::{ForwardingEntry, LinearForwardingTable};
use ib_mad::m_key::MKeys;
use ib_mad::smp::{self, SwitchInfo};
use ib_mad::vendor_smp::{AdaptiveRoutingInfo, SmpCapabilities};
use ib_mad::{Guid, Lid, Mad, Moment, device};
use ib_umad::{Address, QueuePair, Request, RequestError};

use super::cache::{BlockKey, Dated, ForwardingCache};
use super::tables_read::{SmpLimit, TablesRead, Unread, UnreadSwitch};
use crate::topology::Fabric;
use crate::{NodeIndex, PortIndex};

/// The most SMPs of one query, unless it is set otherwise.
pub(super) const MAX_REQUESTS: usize = 2_000;

/// Something of a switch that can be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum TableItem {
    /// A block of the forwarding table.
    Block(NodeIndex, u16),
    /// LinearFDBTop.
    Top(NodeIndex),
    /// Whether the switch supports adaptive routing; if it does, whether that is enabled.
    Capabilities(NodeIndex),
    AdaptiveRouting(NodeIndex),
}

impl TableItem {
    fn switch(self) -> NodeIndex {
        match self {
            TableItem::Block(switch, _)
            | TableItem::Top(switch)
            | TableItem::Capabilities(switch)
            | TableItem::AdaptiveRouting(switch) => switch,
        }
    }
}

/// What is known of a LID at a switch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Lookup {
    Entry(ForwardingEntry),
    /// The block was not read.
    Unread,
}

/// A query that reads tables step by step: what it needs next depends on what it has read.
pub(super) trait ReadSteps<'a> {
    /// What reads for it.
    fn reader(&mut self) -> &mut TableReader<'a>;

    /// Wants what is needed next, once nothing is open. Returns whether there is something.
    fn advance(&mut self) -> bool;

    /// The next request. All of them are for subnet management.
    fn next_step(&mut self, qp: QueuePair) -> Option<(Request, u64)> {
        if qp != QueuePair::Qp0 {
            return None;
        }
        loop {
            let next = self.reader().next_request();
            if next.is_some() || !self.reader().is_idle() || !self.advance() {
                return next;
            }
        }
    }
}

/// The reads of one query.
#[derive(Debug)]
pub(super) struct TableReader<'a> {
    pub fabric: &'a Fabric,
    cache: &'a mut ForwardingCache,
    keys: &'a MKeys,
    now: Moment,
    queue: VecDeque<TableItem>,
    /// What was queued at any time.
    wanted: HashSet<TableItem>,
    /// By tag.
    sent: Vec<TableItem>,
    /// Requests without an outcome.
    open: usize,
    max_requests: usize,
    failed: BTreeMap<NodeIndex, Unread>,
    /// Switches that responded.
    responded: HashSet<NodeIndex>,
    limit: Option<SmpLimit>,
    /// When the oldest entry was read that was looked up.
    oldest: Cell<Option<Moment>>,
}

impl<'a> TableReader<'a> {
    pub fn new(
        fabric: &'a Fabric,
        cache: &'a mut ForwardingCache,
        keys: &'a MKeys,
        now: Moment,
    ) -> Self {
        cache.prepare(fabric, now);
        TableReader {
            fabric,
            cache,
            keys,
            now,
            queue: VecDeque::new(),
            wanted: HashSet::new(),
            sent: Vec::new(),
            open: 0,
            max_requests: MAX_REQUESTS,
            failed: BTreeMap::new(),
            responded: HashSet::new(),
            limit: None,
            oldest: Cell::new(None),
        }
    }

    pub fn set_max_requests(&mut self, max_requests: usize) {
        self.max_requests = max_requests;
    }

    fn guid(&self, switch: NodeIndex) -> Guid {
        self.fabric.node(switch).identity.guid
    }

    /// Whether an item is not known, and reading it was not tried.
    pub fn can_read(&self, item: TableItem) -> bool {
        self.limit.is_none()
            && !self.failed.contains_key(&item.switch())
            && !self.wanted.contains(&item)
            && !self.is_known(item)
    }

    /// Reads an item, if it [can be](Self::can_read). Returns whether it will be read.
    pub fn want(&mut self, item: TableItem) -> bool {
        let is_new = self.can_read(item);
        if is_new {
            self.wanted.insert(item);
            self.queue.push_back(item);
        }
        is_new
    }

    fn is_known(&self, item: TableItem) -> bool {
        let switch = self.guid(item.switch());
        match item {
            TableItem::Block(_, block) => {
                self.cache.blocks.contains_key(&BlockKey { switch, block })
            }
            TableItem::Top(_) => self.cache.top(switch).is_some(),
            // Only NVIDIA's devices have these attributes.
            TableItem::Capabilities(node) | TableItem::AdaptiveRouting(node) => {
                self.cache.adaptive.contains_key(&switch)
                    || !device::is_mellanox(self.fabric.node(node).identity.vendor_id)
            }
        }
    }

    /// What a switch does with packets to a LID. What is above LinearFDBTop, if that was read, has no route.
    pub fn look_up(&self, switch: NodeIndex, lid: Lid) -> Lookup {
        let guid = self.guid(switch);
        if let Some(top) = self.cache.top(guid).filter(|top| lid > top.value) {
            self.use_of(top.at);
            return Lookup::Entry(ForwardingEntry::NoRoute);
        }
        let key = BlockKey { switch: guid, block: LinearForwardingTable::block_of(lid) };
        let Some(block) = self.cache.blocks.get(&key) else { return Lookup::Unread };
        self.use_of(block.at);
        Lookup::Entry(block.value.entry(lid))
    }

    fn use_of(&self, at: Moment) {
        self.oldest.set(Some(self.oldest.get().map_or(at, |oldest| oldest.min(at))));
    }

    /// Why a block of a switch was not read.
    pub fn why_unread(&self, switch: NodeIndex) -> Unread {
        let limit = self.limit.map(Unread::Limit);
        self.failed.get(&switch).copied().or(limit).unwrap_or(Unread::Ended)
    }

    /// Whether packets may take other ports than the table of a switch has, as far as the switch says.
    pub fn may_differ(&self, switch: NodeIndex) -> bool {
        self.cache.adaptive.get(&self.guid(switch)).is_some_and(|known| known.value)
    }

    /// Whether all requests have ended.
    pub fn is_idle(&self) -> bool {
        self.open == 0 && self.queue.is_empty()
    }

    pub fn next_request(&mut self) -> Option<(Request, u64)> {
        loop {
            let item = self.queue.pop_front()?;
            let switch = item.switch();
            if self.failed.contains_key(&switch) {
                continue;
            }
            let Some(port0) = self.fabric.ports_of(switch).next() else { continue };
            let Some(to) = self.address_of(port0) else {
                self.failed.insert(switch, Unread::NoAddress);
                continue;
            };
            if self.sent.len() >= self.max_requests {
                return self.stop(SmpLimit::Query);
            }
            if !self.cache.budget.take(self.now) {
                return self.stop(SmpLimit::Minute);
            }
            let query = match item {
                TableItem::Block(_, block) => LinearForwardingTable::query(block),
                TableItem::Top(_) => smp::switch_info(),
                TableItem::Capabilities(_) => SmpCapabilities::query(),
                TableItem::AdaptiveRouting(_) => AdaptiveRoutingInfo::query(),
            };
            let query = query.with_m_key(self.keys.get(self.fabric.port(port0).guid));
            self.sent.push(item);
            self.open += 1;
            return Some((Request { to, query }, self.sent.len() as u64 - 1));
        }
    }

    /// Sends no more.
    fn stop<T>(&mut self, limit: SmpLimit) -> Option<T> {
        self.limit = Some(limit);
        self.queue.clear();
        None
    }

    /// The address of a switch: in a fabric with planes, whose switches may not respond by LID, its directed route.
    fn address_of(&self, port0: PortIndex) -> Option<Address> {
        let fabric = self.fabric;
        if fabric.routes.is_directed() {
            fabric.routes.best_to_port(fabric, port0).map(Address::Directed)
        } else {
            fabric.lid_of(port0).map(Address::Lid)
        }
    }

    pub fn on_outcome(&mut self, tag: u64, outcome: Result<&Mad, RequestError>, at: Moment) {
        let Some(&item) = self.sent.get(tag as usize) else { return };
        self.open = self.open.saturating_sub(1);
        self.now = self.now.max(at);
        let guid = self.guid(item.switch());
        if outcome.is_ok() {
            self.responded.insert(item.switch());
        }
        match (item, outcome) {
            (TableItem::Block(_, block), Ok(mad)) => {
                let value = LinearForwardingTable::decode(mad);
                self.cache.blocks.insert(BlockKey { switch: guid, block }, Dated { value, at });
            }
            // A switch that does not respond, or refuses one block, is not bothered again by this query.
            (TableItem::Block(switch, _), Err(error)) => {
                self.failed.insert(switch, Unread::Failed(error));
            }
            (TableItem::Top(_), Ok(mad)) => {
                let top = Lid(SwitchInfo::decode(mad).linear_table_top);
                self.cache.set_top(guid, top, at);
            }
            // Without it the table is taken as it is.
            (TableItem::Top(_), Err(_)) => {}
            (TableItem::Capabilities(switch), Ok(mad)) => {
                if SmpCapabilities::decode(mad).has(SmpCapabilities::ADAPTIVE_ROUTING) {
                    self.want(TableItem::AdaptiveRouting(switch));
                } else {
                    self.set_adaptive(guid, false, at);
                }
            }
            // Old devices do not have the attribute, and no adaptive routing; some of them do not respond to it.
            (TableItem::Capabilities(switch), Err(error)) => {
                let is_old = match error {
                    RequestError::Status(_) => true,
                    RequestError::TimedOut => self.responded.contains(&switch),
                    RequestError::Unresponsive
                    | RequestError::Slow
                    | RequestError::Busy
                    | RequestError::Unsent => false,
                };
                if is_old {
                    self.set_adaptive(guid, false, at);
                }
            }
            (TableItem::AdaptiveRouting(_), Ok(mad)) => {
                let may_differ = AdaptiveRoutingInfo::decode(mad).may_differ();
                self.set_adaptive(guid, may_differ, at);
            }
            // It is supported; whether it is enabled is not known.
            (TableItem::AdaptiveRouting(_), Err(_)) => self.set_adaptive(guid, true, at),
        }
    }

    fn set_adaptive(&mut self, switch: Guid, may_differ: bool, at: Moment) {
        self.cache.adaptive.insert(switch, Dated { value: may_differ, at });
    }

    /// What was read, after the run.
    pub fn finish(self) -> TablesRead {
        let failed = self.failed.into_iter();
        TablesRead {
            requests: self.sent.len(),
            oldest: self.oldest.get(),
            failed: failed.map(|(switch, cause)| UnreadSwitch { switch, cause }).collect(),
            limit: self.limit,
        }
    }
}
