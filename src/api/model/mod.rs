//! The JSON models of the API, used by the server and by clients such as `links --url`. Their doc comments are the
//! descriptions in openapi.json.

mod link;
mod node;

use std::borrow::Cow;

use ib_health::Verdict;
use serde::{Deserialize, Serialize};

pub use link::*;
pub use node::*;

/// A word of a small vocabulary. The writer need not copy it.
pub type Label = Cow<'static, str>;

/// How many cables have which verdict.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[expect(missing_docs, reason = "the verdicts say it")]
pub struct Verdicts {
    pub ok: usize,
    pub unknown: usize,
    pub watch: usize,
    pub bad: usize,
}

impl Verdicts {
    /// Counts one more link.
    pub fn add(&mut self, verdict: Verdict) {
        *match verdict {
            Verdict::Ok => &mut self.ok,
            Verdict::Unknown => &mut self.unknown,
            Verdict::Watch => &mut self.watch,
            Verdict::Bad => &mut self.bad,
        } += 1;
    }

    /// The count of each verdict, the worst first.
    pub fn worst_first(&self) -> [(Verdict, usize); 4] {
        [
            (Verdict::Bad, self.bad),
            (Verdict::Watch, self.watch),
            (Verdict::Unknown, self.unknown),
            (Verdict::Ok, self.ok),
        ]
    }

    /// The count of all links.
    pub fn count(&self) -> usize {
        self.ok + self.unknown + self.watch + self.bad
    }

    /// The worst verdict; `None` without links.
    pub fn worst(&self) -> Option<Verdict> {
        let mut worst_first = self.worst_first().into_iter();
        worst_first.find(|(_, count)| *count > 0).map(|(verdict, _)| verdict)
    }

    /// The sum of both.
    #[must_use]
    pub fn and(self, other: Verdicts) -> Verdicts {
        Verdicts {
            ok: self.ok + other.ok,
            unknown: self.unknown + other.unknown,
            watch: self.watch + other.watch,
            bad: self.bad + other.bad,
        }
    }
}

/// The verdict with this label.
pub fn verdict_from(label: &str) -> Option<Verdict> {
    Verdict::ALL.into_iter().find(|verdict| verdict.label() == label)
}

/// What goes by a name, a GUID or a LID.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Search {
    /// What was searched for.
    pub sought: String,
    /// How much was found; no more than the best hundred are told.
    pub found: usize,
    /// What was found, the best first.
    pub hits: Vec<Hit>,
}

/// Something that was found.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Hit {
    /// `node`, `port`, `link` or `device`.
    pub kind: Label,
    /// The fabric that it is in; of a device, that of its node, if that is known.
    pub fabric: String,
    /// What people call it.
    pub name: String,
    /// Its GUID, or a cable's id.
    pub id: String,
    /// What of it was found: `name`, `guid`, `port_guid`, `lid`, `link`, `port`.
    pub by: Label,
    /// How well that fits: `exact`, `prefix` or `substring`.
    pub fits: Label,
    /// The address of its page.
    pub page: String,
}

/// Everything at a glance.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Overview {
    /// Fabric by fabric.
    pub fabrics: Vec<Fabric>,
    /// This host's own devices; null where they are not watched.
    pub host: Option<Host>,
    /// Whether what is seen is recorded.
    pub recorded: bool,
}

/// A fabric at a glance.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema), schemars(rename = "FabricOverview"))]
pub struct Fabric {
    /// Its name.
    pub fabric: String,
    /// From one sweep to the next, as it is meant to be.
    pub interval_seconds: f64,
    /// The latest sweep; null before the first.
    pub sweep: Option<Sweep>,
    /// Its nodes, kind by kind.
    pub nodes: Vec<NodeCount>,
    /// Some of those that are not up.
    pub not_up: Vec<NodeName>,
    /// How many of its cables have which verdict.
    pub verdicts: Verdicts,
    /// What keeps cables from being ok, by the gravest reason of each, the most frequent first.
    pub reasons: Vec<ReasonCount>,
    /// Some of those that are bad or to be watched, the worst first.
    pub worst: Vec<Link>,
    /// How many regions of it are congested.
    pub regions: usize,
    /// Some of them, the largest first.
    pub congestion: Vec<Region>,
}

/// A reason, and how often it is the gravest of a cable.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema), schemars(rename = "Counted"))]
pub struct ReasonCount {
    /// The reason, as metrics have it.
    pub reason: Label,
    /// What it means, in a sentence.
    pub what: Label,
    /// The verdict that it brings them.
    pub verdict: Label,
    /// How many cables have it.
    pub links: usize,
}

/// How a sweep went, and what was known before it.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Sweep {
    /// When it ended (RFC 3339).
    pub ended_at: Option<String>,
    /// How long it took.
    pub seconds: f64,
    /// How many there were since the exporter began.
    pub sweeps: u64,
    /// Ports that told counters.
    pub ports_read: usize,
    /// Ports that did not tell all that they were asked for.
    pub ports_failed: usize,
    /// Nodes that were asked and did not answer.
    pub nodes_silent: usize,
    /// Parts of the work that failed the last time: `discovery`, `perfmgt`, `subnet`.
    pub failing: Vec<Label>,
    /// When the latest discovery ended (RFC 3339).
    pub discovered_at: Option<String>,
    /// Questions of it that stayed open.
    pub discovery_gaps: u64,
    /// MADs that were sent since the exporter began.
    pub mads_sent: u64,
    /// Those of them that were not answered in time.
    pub mads_timed_out: u64,
    /// Where the subnet's master sits, as it was heard last.
    pub master: Option<PortName>,
}

/// The nodes of a kind.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct NodeCount {
    /// `ca`, `switch`, `router` or `aggregation_node`.
    pub node_type: Label,
    /// How many there are.
    pub nodes: usize,
    /// How many of them are gone or do not answer.
    pub not_up: usize,
}

/// A node's names.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct NodeName {
    /// Its GUID.
    pub guid: String,
    /// What people call it.
    pub node: String,
}

/// Ports that wait together.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Region {
    /// The port that they wait for, or the one of several that waits most.
    pub root: PortName,
    /// The id of its cable, if it has one.
    pub link: Option<String>,
    /// What makes it one: `slow_receiver`, `full_link` or `unknown`.
    pub cause: Label,
    /// How many ports wait.
    pub ports: u32,
    /// How many roots there are.
    pub roots: u32,
    /// The greatest share of time that one of them waits.
    pub wait_ratio: Option<f32>,
    /// `low`, `medium` or `high`.
    pub level: Label,
    /// Since when (RFC 3339).
    pub since: Option<String>,
}

/// This host's own devices.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Host {
    /// When they were looked at last (RFC 3339); null before the first time.
    pub read_at: Option<String>,
    /// The devices, by name.
    pub devices: Vec<Device>,
}

/// A device of this host.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Device {
    /// The kernel's name for it.
    pub device: String,
    /// Its node GUID.
    pub guid: String,
    /// The vendor's type of it.
    pub hca_type: String,
    /// Its firmware's version.
    pub firmware: String,
    /// Whether it could be read in time.
    pub answers: bool,
    /// The fabric that has a node with its GUID, if one has.
    pub node_in: Option<String>,
    /// Its ports.
    pub ports: Vec<DevicePort>,
}

/// A port of a device of this host.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct DevicePort {
    /// Its number.
    pub port: u8,
    /// `InfiniBand` or `Ethernet`.
    pub link_layer: String,
    /// Its state.
    pub state: Label,
    /// What it carries, in bytes a second.
    pub rate: Option<u64>,
    /// Its LID, once it has one.
    pub lid: Option<u16>,
    /// Its network interfaces.
    pub interfaces: Vec<String>,
    /// The id of its cable, where a fabric knows it.
    pub link: Option<String>,
    /// The fabric that does: ports of one device may be in several.
    pub link_in: Option<String>,
}
