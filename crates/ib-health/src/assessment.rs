//! What the evaluation of a sweep returns: immutable, beside the snapshot of totals.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;
use std::time::Duration;

use ib_fabric::topology::{Link, LinkId};
use ib_fabric::{NodeIndex, PortIndex, PortMap};
use ib_mad::rate::LinkRate;
use ib_mad::{Counter, Moment};

use super::bit_errors::BitErrors;
use super::congestion::{HeldWait, Region, Role, Wait};
use super::counter_resets::ResetOffsets;
use super::counter_status::CounterStatus;
use super::flap_days::RepeatedFlaps;
use super::outage::{Loss, Outages};
use super::peers::RateReference;
use super::verdict::{Reason, Reasons, Repair, Verdict};

/// The assessment of a fabric; the indexes are those of the snapshot's fabric.
#[derive(Clone, Debug, Default)]
pub struct Assessment {
    /// Of each port.
    pub ports: PortMap<PortAssessment>,
    /// In the order of [`Fabric::whole_links`](ib_fabric::Fabric::whole_links).
    pub links: Vec<LinkAssessment>,
    /// Where the fabric is congested, the largest region first.
    pub regions: Vec<Region>,
    /// The nodes that are down, missing or unresponsive, and the beginning of the first sweep that found them so.
    pub nodes_down: BTreeMap<NodeIndex, Moment>,
    /// The nodes in maintenance: those that the site names, with their hosts, those all of whose links are, and those,
    /// but switches, that are down behind ports that an administrator disabled.
    pub in_maintenance: BTreeSet<NodeIndex>,
    /// Those of them that the site names itself, as drained or in a window: nothing there has to keep its paths. The
    /// hosts of a switch in maintenance are not among them: they may run jobs.
    pub drained: BTreeSet<NodeIndex>,
    /// The links whose rate cannot be judged.
    pub unjudged_rates: UnjudgedRates,
    /// What was recorded as evidence, if a history gave this assessment back: it has no measurements of which evidence
    /// could be made again.
    pub recorded: Option<Arc<RecordedEvidence>>,
}

/// The evidence of links as it was written when it was recorded.
#[derive(Clone, Debug, Default)]
pub struct RecordedEvidence(HashMap<(PortIndex, Reason), String>);

impl RecordedEvidence {
    /// Adds the evidence for a reason of the link with this lower end.
    pub fn insert(&mut self, low: PortIndex, reason: Reason, evidence: String) {
        self.0.insert((low, reason), evidence);
    }

    /// The evidence for a reason of the link with this lower end, if it was recorded.
    pub fn get(&self, low: PortIndex, reason: Reason) -> Option<&str> {
        self.0.get(&(low, reason)).map(String::as_str)
    }
}

/// How many links have a rate that cannot be judged, as in dumps that do not contain enough.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct UnjudgedRates {
    /// All links that are up and not internal.
    pub links: usize,
    /// Those without a known width and speed.
    pub without_rate: usize,
    /// Those whose ends do not report what they support, and that have fewer than four peers to compare with.
    pub without_peers: usize,
}

/// The assessment of a port.
#[derive(Clone, Debug, Default)]
pub struct PortAssessment {
    /// Saturation, resets and impossible values of its counters.
    pub counters: CounterStatus,
    /// What counters had counted before their last reset, if any: the device shows the total less this.
    pub reset_offsets: Option<Arc<ResetOffsets>>,
    /// The errors among the bits that it received.
    pub bit_errors: BitErrors,
    /// How long it had to wait before it could send; `None` also while its counter is saturated, or was cleared.
    pub wait: Option<Wait>,
    /// What its part in a congestion is inferred from while the present wait is not known.
    pub held_wait: Option<HeldWait>,
    /// The time between two clears of its counters at most, while a tool clears them again and again.
    pub cleared_every: Option<Duration>,
    /// What it sent since the reading before.
    pub tx: Option<Flow>,
    /// What it received since then.
    pub rx: Option<Flow>,
    /// Its part in a congestion.
    pub role: Option<Role>,
}

impl PortAssessment {
    /// Whether its wait cannot be known because PortXmitWait is saturated.
    pub fn is_wait_saturated(&self) -> bool {
        self.counters.saturated_now.contains(Counter::XmitWait)
    }
}

/// The data that a port sends, or receives.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Flow {
    /// Bytes per second.
    pub rate: f32,
    /// The share of the bandwidth, 0 to 1.
    pub used: f32,
}

/// The assessment of a link. That of a link of several planes combines those of its planes.
#[derive(Clone, Debug)]
pub struct LinkAssessment {
    /// Its ends; of several planes, those of the lowest one.
    pub link: Link,
    /// The verdict.
    pub verdict: Verdict,
    /// Since when it has this verdict.
    pub since: Moment,
    /// The reasons, each with its own weight.
    pub reasons: Reasons,
    /// What to try first.
    pub repair: Option<Repair>,
    /// Whether it carries traffic; `None` where that is not known.
    pub up: Option<bool>,
    /// Its losses so far, and how long they kept it down.
    pub outages: Outages,
    /// Its latest losses, oldest first, if it ever had one.
    pub losses: Option<Arc<[Loss]>>,
    /// Where packets that are received marked bad were corrupted: the receiving port of that link.
    pub upstream: Option<PortIndex>,
    /// The rate that it should or could have, where that is more than it has.
    pub reference: Option<RateReference>,
    /// When its cable or a transceiver was replaced, if that was in the last 24 hours.
    pub replaced: Option<Moment>,
    /// Its days with flaps, if there were so many that it is degraded.
    pub repeated_flaps: Option<RepeatedFlaps>,
    /// Its planes, by number, if it has several.
    pub planes: Box<[PlaneAssessment]>,
}

/// The assessment of a plane of a link.
#[derive(Clone, Debug)]
pub struct PlaneAssessment {
    /// Its number.
    pub plane: u8,
    /// The id of its own link.
    pub id: LinkId,
    /// Its assessment, as if it were a link by itself.
    pub link: LinkAssessment,
    /// Its width and speed, if it is up and does not train any more.
    pub rate: Option<LinkRate>,
}

impl LinkAssessment {
    /// A link of which nothing is known. It has its verdict since the beginning of the clock.
    pub fn unknown(link: Link) -> Self {
        LinkAssessment {
            link,
            verdict: Verdict::Unknown,
            since: Moment::default(),
            reasons: Reasons::default(),
            repair: None,
            up: None,
            outages: Outages::default(),
            losses: None,
            upstream: None,
            reference: None,
            replaced: None,
            repeated_flaps: None,
            planes: Box::default(),
        }
    }

    /// The links of the subnet that it is of: its planes, or itself.
    pub fn plane_links(&self) -> impl Iterator<Item = &LinkAssessment> {
        let own = self.planes.is_empty().then_some(self);
        own.into_iter().chain(self.planes.iter().map(|plane| &plane.link))
    }

    /// The ports of all its planes.
    pub fn ports(&self) -> impl Iterator<Item = PortIndex> + '_ {
        self.plane_links().flat_map(|plane| plane.link.ports())
    }
}
