//! The state of a fabric after one sweep: immutable, with everything that its consumers need.

use std::sync::Arc;

use super::hardware::Hardware;
use super::topology::Fabric;
use crate::{NodeIndex, NodeMap, PortIndex, PortMap};
use ib_mad::counter::Counter;
use ib_mad::fec::Fec;
use ib_mad::moment::{Anchor, Moment};
use ib_mad::port_state::PortStatus;
use ib_mad::reading::{Raw, Reading, Totals};
use ib_mad::smp::SmState;

/// What a sweep read of a port's state.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PortRead {
    /// Not queried: the state is the one that the discovery found.
    NotQueried,
    /// The state is not the one that the discovery found, and is not known.
    Unknown,
    /// This state.
    Ok(PortStatus),
}

/// The results of a sweep, and the fabric that it swept.
///
/// A sweep returns a `Snapshot<Raw>`, with the values as the devices show them. `ib-health` consumes it
/// and returns a `Snapshot<Totals>`, which all others read.
#[derive(Clone, Debug)]
pub struct Snapshot<V = Totals> {
    /// The fabric as the latest discovery before the sweep knew it.
    pub fabric: Arc<Fabric>,
    /// Joins the sweep's moments to the time of day.
    pub anchor: Anchor,
    /// When the first request was sent.
    pub began: Moment,
    /// When the last response came in.
    pub ended: Moment,
    /// Counters; `None` where none were read.
    pub readings: PortMap<Option<Reading<V>>>,
    /// Port states.
    pub statuses: PortMap<PortRead>,
    /// Nodes that were queried and did not respond at all.
    pub silent: NodeMap<bool>,
    /// Where it is reported: a tick of PortXmitWait is this + 1 symbol times.
    pub ticks: NodeMap<Option<u8>>,
    /// The error correction that a port runs with, where it is reported.
    pub fec: PortMap<Option<Fec>>,
    /// Subnet managers that responded; `None` where that says nothing about those that did not.
    pub managers: Option<Vec<SubnetManager>>,
    /// Counters that were cleared after they were read.
    pub cleared: Vec<Cleared>,
    /// What devices reported of themselves until now.
    pub hardware: Arc<Hardware>,
}

/// A counter that we cleared: what it shows from then on was counted since.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(missing_docs, reason = "the other names say it")]
pub struct Cleared {
    pub port: PortIndex,
    pub counter: Counter,
    /// What it showed just before.
    pub last: u64,
    /// When that was.
    pub at: Moment,
}

/// A subnet manager, from its SMInfo.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SubnetManager {
    /// Its port: of a channel adapter, or port 0 of a switch.
    pub port: PortIndex,
    /// SMState.
    pub state: SmState,
    /// Priority: the highest becomes master.
    pub priority: u8,
    /// ActCount: increases while it works, and stops when it hangs.
    pub act_count: u32,
}

impl<V> Snapshot<V> {
    /// The snapshot of a sweep that read nothing yet.
    pub fn blank(fabric: Arc<Fabric>, anchor: Anchor) -> Self {
        Snapshot {
            readings: (0..fabric.ports.len()).map(|_| None).collect(),
            statuses: PortMap::filled(fabric.ports.len(), PortRead::NotQueried),
            silent: NodeMap::filled(fabric.nodes.len(), false),
            ticks: NodeMap::filled(fabric.nodes.len(), None),
            fec: PortMap::filled(fabric.ports.len(), None),
            managers: None,
            cleared: Vec::new(),
            hardware: Arc::default(),
            fabric,
            anchor,
            began: anchor.moment,
            ended: anchor.moment,
        }
    }

    /// A port's counters.
    pub fn reading(&self, port: PortIndex) -> Option<&Reading<V>> {
        self.readings[port].as_ref()
    }

    /// How often a port's link went down or recovered, as the port counts it; `None` without a reading.
    pub fn link_downs(&self, port: PortIndex) -> Option<u64> {
        let reading = self.reading(port)?;
        let count = |counter| reading.get(counter).unwrap_or(0);
        let [downs, recoveries] = [Counter::LinkDowned, Counter::LinkErrorRecoveries].map(count);
        Some(downs.saturating_add(recoveries))
    }

    /// Whether a node is present and responds.
    pub fn is_up(&self, node: NodeIndex) -> bool {
        self.fabric.node(node).present() && !self.silent[node]
    }

    /// A port's state, as fresh as it is known; `None` for a port whose node is absent or unresponsive.
    pub fn status(&self, port: PortIndex) -> Option<&PortStatus> {
        let known = self.fabric.port(port);
        if !self.is_up(known.node) {
            return None;
        }
        match &self.statuses[port] {
            PortRead::NotQueried => known.status.as_ref(),
            PortRead::Unknown => None,
            PortRead::Ok(status) => Some(status),
        }
    }
}

impl Snapshot<Raw> {
    /// Replaces each port's raw values by its totals. `replace` gets the snapshot without its readings, the
    /// port, and its reading, whose values it replaces in place ([`Reading::replace_values`]).
    ///
    /// The readings keep their memory: `Vec::into_iter().map().collect()` works in place where the
    /// elements have the same layout. A copy would be 18 MB for 60,000 ports.
    pub fn into_totals(
        mut self,
        mut replace: impl FnMut(&Self, PortIndex, Option<&mut Reading<Raw>>),
    ) -> Snapshot<Totals> {
        let mut raw = std::mem::take(&mut self.readings);
        for (port, reading) in raw.iter_mut().enumerate() {
            replace(&self, PortIndex(port as u32), reading.as_mut());
        }
        let totals = raw.into_iter().map(|reading| reading.map(Reading::assume_totals));
        Snapshot {
            readings: totals.collect(),
            fabric: self.fabric,
            anchor: self.anchor,
            began: self.began,
            ended: self.ended,
            statuses: self.statuses,
            silent: self.silent,
            ticks: self.ticks,
            fec: self.fec,
            managers: self.managers,
            cleared: self.cleared,
            hardware: self.hardware,
        }
    }
}
