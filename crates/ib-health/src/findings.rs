//! What was found out about a fabric: immutable, beside the snapshot that it was judged by.

use std::sync::Arc;

use ib_fabric::PortIndex;
use ib_fabric::topology::Link;
use ib_mad::counter::COUNT;
use ib_mad::{Counter, Moment};

use super::bit_errors::BitErrors;
use super::congestion::{Cause, Region, Role, Wait};
use super::outage::{Loss, Outages};
use super::peers::Reference;
use super::verdict::{Reasons, Repair, Verdict};

/// Everything that was found; the indexes are those of the snapshot's fabric.
#[derive(Clone, Debug, Default)]
pub struct Findings {
    /// By port index.
    pub ports: Vec<PortFindings>,
    /// The cables, in the order of [`Fabric::links`](ib_fabric::Fabric::links).
    pub links: Vec<LinkFindings>,
    /// Where the fabric is congested, the largest region first.
    pub regions: Vec<Region>,
}

/// What was found out about a port.
#[derive(Clone, Debug, Default)]
pub struct PortFindings {
    /// How its counters fared.
    pub counting: Counting,
    /// What counters had counted before they fell last, if one ever did: a total less this is what
    /// the device showed.
    pub before: Option<Arc<Before>>,
    /// The bits that came in at it.
    pub bit_errors: BitErrors,
    /// How long it had to wait before it could send.
    pub wait: Option<Wait>,
    /// Its part in a congestion.
    pub role: Option<Role>,
    /// Why it is one's root, if it is.
    pub cause: Option<Cause>,
}

/// What counters had counted before they fell last, by counter.
pub type Before = [u64; COUNT];

/// How a port's counters fared: what stands between them and the truth.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counting {
    /// One bit a counter: its field is full now, and counts no further.
    pub(super) stuck: u64,
    /// One bit a counter: its field was full at least once, so the total is a lower bound.
    pub(super) saturated: u64,
    /// One bit a counter: its latest value was impossible, and is no reading.
    pub(super) impossible: u64,
    /// How many such values there were, of all counters.
    pub impossible_readings: u32,
    /// How often counters fell: somebody cleared them, or the device was reset.
    pub resets: u32,
    /// When that was seen last.
    pub last_reset: Option<Moment>,
}

impl Counting {
    /// Whether a counter's field is full now, and counts no further.
    pub fn is_stuck(&self, counter: Counter) -> bool {
        self.stuck >> counter as usize & 1 == 1
    }

    /// Whether a counter's field was full at least once: its total is a lower bound since.
    pub fn was_saturated(&self, counter: Counter) -> bool {
        self.saturated >> counter as usize & 1 == 1
    }

    /// Whether a counter's latest value was impossible: what it counted since its latest reading is not
    /// known.
    pub fn is_impossible(&self, counter: Counter) -> bool {
        self.impossible >> counter as usize & 1 == 1
    }

    /// Whether any was.
    pub fn was_any_saturated(&self) -> bool {
        self.saturated != 0
    }
}

/// What was found out about a cable.
#[derive(Clone, Debug)]
pub struct LinkFindings {
    /// Its ends.
    pub link: Link,
    /// What it comes to.
    pub verdict: Verdict,
    /// Since when.
    pub since: Moment,
    /// Why, each with its own weight.
    pub reasons: Reasons,
    /// What to try first.
    pub repair: Option<Repair>,
    /// Whether it carries traffic; `None` where that is not known.
    pub up: Option<bool>,
    /// What it went through.
    pub outages: Outages,
    /// Its latest losses, oldest first, if it ever had one.
    pub losses: Option<Arc<[Loss]>>,
    /// Where packets that come in marked bad were spoilt: the port that they came into there.
    pub upstream: Option<PortIndex>,
    /// What it should or could run at, where that is more than it does.
    pub reference: Option<Reference>,
}
