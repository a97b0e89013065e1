//! One sweep's worth of a fabric: immutable, and everything that tellers need.

use std::sync::Arc;

use super::topology::{Fabric, NodeIndex, PortIndex};
use ib_mad::counter::Counter;
use ib_mad::fec::Fec;
use ib_mad::moment::{Anchor, Moment};
use ib_mad::port_state::PortStatus;
use ib_mad::reading::Reading;
use ib_mad::smp::SmState;

/// What a sweep knows of a port's state.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PortRead {
    /// Nothing: it is as the discovery found it.
    NotQueried,
    /// That it is not as it was, and not how it is.
    Unknown,
    /// This.
    Ok(PortStatus),
}

/// What a sweep found, beside the fabric that it swept.
#[derive(Clone, Debug)]
pub struct Snapshot {
    /// The fabric as the latest discovery before the sweep knew it.
    pub fabric: Arc<Fabric>,
    /// Joins the sweep's moments to the time of day.
    pub anchor: Anchor,
    /// When the first question went out.
    pub began: Moment,
    /// When the last answer came in.
    pub ended: Moment,
    /// Counters, by port index; `None` where none were read. Raw as the collectors hand them on;
    /// [`health`](ib_health) puts their totals in their place.
    pub readings: Vec<Option<Reading>>,
    /// Port states, by port index.
    pub statuses: Vec<PortRead>,
    /// Nodes that were asked and gave no answer at all, by node index.
    pub silent: Vec<bool>,
    /// Tick of PortSamplesControl, by node index: a tick of PortXmitWait is this + 1 symbol times.
    /// `None` where the device does not tell.
    pub ticks: Vec<Option<u8>>,
    /// The error correction that a port runs with, by port index, as far as it tells.
    pub fec: Vec<Option<Fec>>,
    /// Subnet managers that answered; `None` where that says nothing of those that did not.
    pub managers: Option<Vec<SubnetManager>>,
    /// Counters that were cleared after they were read.
    pub cleared: Vec<Cleared>,
}

/// A counter that we cleared: what it shows from then on was counted since.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cleared {
    /// The port.
    pub port: PortIndex,
    /// The counter.
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

impl Snapshot {
    /// The snapshot of a sweep that read nothing yet.
    pub fn blank(fabric: Arc<Fabric>, anchor: Anchor) -> Self {
        Snapshot {
            readings: vec![None; fabric.ports.len()],
            statuses: vec![PortRead::NotQueried; fabric.ports.len()],
            silent: vec![false; fabric.nodes.len()],
            ticks: vec![None; fabric.nodes.len()],
            fec: vec![None; fabric.ports.len()],
            managers: None,
            cleared: Vec::new(),
            fabric,
            anchor,
            began: anchor.moment,
            ended: anchor.moment,
        }
    }

    /// A port's counters.
    pub fn reading(&self, port: PortIndex) -> Option<&Reading> {
        self.readings[port.0 as usize].as_ref()
    }

    /// Whether a node is there and answers.
    pub fn is_up(&self, node: NodeIndex) -> bool {
        self.fabric.node(node).present() && !self.silent[node.0 as usize]
    }

    /// A port's state, as fresh as it is known; `None` for a port whose node is gone or silent.
    pub fn status(&self, port: PortIndex) -> Option<&PortStatus> {
        let known = self.fabric.port(port);
        if !self.is_up(known.node) {
            return None;
        }
        match &self.statuses[port.0 as usize] {
            PortRead::NotQueried => known.status.as_ref(),
            PortRead::Unknown => None,
            PortRead::Ok(status) => Some(status),
        }
    }
}
