//! The state of a fabric after one sweep: immutable, with everything that its consumers need.

use std::borrow::Cow;
use std::sync::Arc;

use super::hardware::Hardware;
use super::topology::{Fabric, Link};
use crate::{NodeIndex, NodeMap, PortIndex, PortMap};
use ib_mad::counter::Counter;
use ib_mad::fec::Fec;
use ib_mad::moment::{Anchor, Moment};
use ib_mad::port_state::PortStatus;
use ib_mad::rate::{Speed, Width};
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

    /// The states of both ends of a link, the lower end first. A sweep queries one end: once its width or speed is no
    /// longer what the discovery found, what that found of the other end is outdated, too.
    pub fn end_statuses(&self, link: Link) -> [Option<&PortStatus>; 2] {
        let Link { low, high } = link;
        let is_outdated = |end: PortIndex, other: PortIndex| {
            let PortRead::Ok(now) = &self.statuses[other] else { return false };
            let rate = |status: &PortStatus| (status.width, status.speed);
            let has_changed = self.fabric.port(other).status.as_ref().map(rate) != Some(rate(now));
            has_changed && !matches!(self.statuses[end], PortRead::Ok(_))
        };
        [(low, high), (high, low)]
            .map(|(end, other)| self.status(end).filter(|_| !is_outdated(end, other)))
    }

    /// The state of the end that says what width and speed a link has: of two that contradict each other the slower
    /// one.
    pub fn slower_end(&self, link: Link) -> Option<&PortStatus> {
        let ends = self.end_statuses(link).into_iter().flatten();
        ends.min_by_key(|status| (status.rate().unwrap_or(u64::MAX), status.width))
    }
}

/// The rate of a whole link: of all planes that are up, if it has several.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct WholeRate {
    /// The lanes of all planes.
    pub lanes: Option<u32>,
    /// The speed per lane, of the slowest plane.
    pub speed: Option<Speed>,
    /// The bytes per second of all planes.
    pub bytes: Option<u64>,
    /// The width, if it is not that of several planes.
    width: Option<Width>,
}

impl WholeRate {
    fn of(status: &PortStatus) -> Self {
        let lanes = status.width.map(|width| width.lanes().into());
        WholeRate { lanes, speed: status.speed, bytes: status.rate(), width: status.width }
    }

    fn and(self, other: WholeRate) -> Self {
        let sum = |a: Option<u32>, b: Option<u32>| Some(a?.saturating_add(b?));
        WholeRate {
            lanes: sum(self.lanes, other.lanes),
            speed: self.speed.min(other.speed),
            bytes: self.bytes.zip(other.bytes).map(|(a, b)| a.saturating_add(b)),
            width: None,
        }
    }

    /// The width as a label: `4x`.
    pub fn width_label(&self) -> Option<Cow<'static, str>> {
        match (self.width, self.lanes) {
            (Some(width), _) => Some(width.label().into()),
            (None, lanes) => lanes.map(|lanes| format!("{lanes}x").into()),
        }
    }
}

impl<V> Snapshot<V> {
    /// The rate of a link. Of a link of several planes, the planes that are up count.
    pub fn link_rate(&self, link: Link) -> WholeRate {
        let Some(whole) = self.fabric.aggregated_link(link.low) else {
            return self.slower_end(link).map(WholeRate::of).unwrap_or_default();
        };
        let planes = whole.planes.iter().filter_map(|plane| self.slower_end(plane.link));
        let up = planes.filter(|status| status.link_up()).map(WholeRate::of);
        up.reduce(WholeRate::and).unwrap_or_default()
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
