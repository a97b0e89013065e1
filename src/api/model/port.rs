//! A port, as `/api/v1/links/{id}` and `/api/v1/nodes/{guid}` tell it.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use ib_mad::label;

use super::{BitErrors, Link, Word};

/// A cable with all that is known of its ends.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct LinkDetail {
    /// When the fabric's latest sweep ended (RFC 3339).
    pub swept_at: Option<String>,
    /// What `/api/v1/links` tells of it.
    #[serde(flatten)]
    pub link: Link,
    /// Losses of the link that were expected: reboots, and what the list of maintenance has.
    pub expected_losses: u32,
    /// How long those kept it down at least: as it was seen.
    pub expected_down_seconds: f64,
    /// How long those kept it down at most: from when it was last seen up to when it was seen up again.
    pub expected_down_max_seconds: f64,
    /// Times that it retrained by itself, as the end saw it that saw more.
    pub recoveries: u32,
    /// Its ends in full, the lower first.
    pub ports: [Port; 2],
}

/// What a port is called.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct PortName {
    /// Its node's GUID.
    pub guid: String,
    /// What people call the node.
    pub node: String,
    /// `ca`, `switch`, `router` or `aggregation_node`.
    pub node_type: Word,
    /// Its number.
    pub port: u8,
}

impl PortName {
    /// As people call the port.
    pub fn label(&self) -> String {
        label::port(&self.node, self.port)
    }
}

/// A port, with all that is known of it.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Port {
    /// What it is called.
    #[serde(flatten)]
    pub name: PortName,
    /// Whether its node is there and answers.
    pub up: bool,
    /// PortState: `Active`; null where that is not known.
    pub state: Option<Word>,
    /// PortPhysicalState: `LinkUp`; null where that is not known.
    pub physical_state: Option<Word>,
    /// The speed of a lane: `NDR`.
    pub speed: Option<Word>,
    /// The lanes: `4x`.
    pub width: Option<Word>,
    /// What it carries, in bytes a second, while it has a link.
    pub rate: Option<u64>,
    /// The best that both ends can do, in bytes a second.
    pub supported_rate: Option<u64>,
    /// The error correction that it runs with, as far as it tells.
    pub fec: Option<Word>,
    /// The other end of its cable, if it ever had one.
    pub peer: Option<Peer>,
    /// The cable's id.
    pub link: Option<String>,
    /// What the cable comes to; null for a port without one.
    pub verdict: Option<Word>,
    /// Why, the gravest first.
    pub reasons: Vec<Word>,
    /// When its counters were read (RFC 3339); null where they were not.
    pub read_at: Option<String>,
    /// All counters that were read, by their metrics' names and in their units.
    pub counters: BTreeMap<Word, u64>,
    /// Counters whose fields were full at least once: their totals are lower bounds.
    pub saturated: Vec<Word>,
    /// Those of them that are full now, and count no further.
    pub stuck: Vec<Word>,
    /// Counters whose latest value is impossible, and is no reading.
    #[serde(default)]
    pub impossible: Vec<Word>,
    /// How many impossible values there were, of all counters.
    #[serde(default)]
    pub impossible_readings: u32,
    /// How often counters fell: somebody cleared them, or the device was reset.
    pub resets: u32,
    /// When that was seen last (RFC 3339).
    pub last_reset: Option<String>,
    /// Link errors: symbol errors, receive errors without those marked upstream, local link integrity errors,
    /// buffer overruns, uncorrectable FEC blocks, retrainings and link downs.
    pub errors: u64,
    /// Packets that the port discarded instead of sending them; null where that was not read.
    #[serde(default)]
    pub discards: Option<u64>,
    /// The bits that came in here.
    pub bit_errors: BitErrors,
    /// What error correction had to correct, if it tells.
    pub mended: Option<Mended>,
    /// The share of time in which the port had data and no credit to send it with.
    pub wait_ratio: Option<f32>,
    /// Whether the device tells how long its tick is; else the usual one was assumed.
    pub tick_told: bool,
    /// Its part in a congestion.
    pub congestion: Option<Congestion>,
}

/// The other end of a port's cable.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Peer {
    /// The port there.
    #[serde(flatten)]
    pub name: PortName,
    /// Whether there is a link to it. If not, this is where the cable led when there last was one.
    pub connected: bool,
}

/// The ratio of bits that error correction had to correct.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Mended {
    /// As it was measured.
    pub ratio: f32,
    /// The ratio that is too much.
    pub limit: f32,
    /// When it was measured last (RFC 3339).
    #[serde(default)]
    pub measured_at: Option<String>,
    /// Whether its counter has been full since: then it is no measurement of now.
    #[serde(default)]
    pub stale: bool,
}

/// A port's part in a congestion.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Congestion {
    /// `root` or `victim`.
    pub role: Word,
    /// Of a victim: the root that it waits for.
    pub of: Option<PortName>,
    /// Of a root, what makes it one: `slow_receiver`, `full_link` or `unknown`.
    pub cause: Option<Word>,
}
