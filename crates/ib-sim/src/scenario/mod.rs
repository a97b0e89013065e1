//! Scenarios: what happens to a fabric, and when.
//!
//! A [`Scenario`] is read from YAML ([`mod@file`], of [`value`]s), its [`fabric`] is built, and each
//! entry of its timeline is played on it: names become places, cables are followed as they move,
//! and spells that overlap are brought into an order. What comes out is a [`Story`], which names
//! nothing that is not there. `docs/scenarios.md` is the reference of the file.

mod entry;
pub mod error;
pub mod fabric;
pub mod file;
mod places;
mod planes;
mod resolve;
pub mod source;
mod spell;
mod stage;
#[cfg(test)]
mod tests;
pub mod traffic;
pub mod value;
mod wiring;
mod words;

use std::time::Duration;

use ib_mad::counter::Counter;
use ib_mad::m_key::MKey;
use ib_mad::rate::{Speed, Width};

use super::net::{Net, NodeId, PortId};

pub use error::ScenarioError;
pub use source::{Overrides, Scenario};

/// One thing that happens to a fabric, in the terms of its net.
#[derive(Clone, Debug, PartialEq)]
pub enum Action {
    /// From now on bits that come in at this port are wrong with this ratio (behind any forward
    /// error correction); 0 heals it.
    Corrupt {
        /// The receiving end.
        into: PortId,
        /// Wrong bits a bit.
        ratio: f64,
    },
    /// The link at this port, seen from either end, loses its signal, or gets it back.
    Signal {
        /// One of its ends.
        end: PortId,
        /// Whether there is one.
        up: bool,
    },
    /// The link at this port loses its signal for so short that it retrains by itself: a
    /// LinkErrorRecovery, not a LinkDowned.
    Retrain {
        /// One of its ends.
        end: PortId,
    },
    /// The link at this port runs no wider and no faster than this from its next training on,
    /// which is now; `None` is no limit.
    Limit {
        /// One of its ends.
        end: PortId,
        /// At most so many lanes.
        width: Option<Width>,
        /// At most so fast.
        speed: Option<Speed>,
    },
    /// The adapter takes in only this share of what its link carries; 1 is sound.
    Intake {
        /// Its port.
        port: PortId,
        /// 0 to 1.
        share: f64,
    },
    /// A node goes off, all its links with it, or comes on again with counters at zero.
    Power {
        /// The node.
        node: NodeId,
        /// Whether it runs.
        on: bool,
    },
    /// Somebody else clears the counters of these ports.
    Clear {
        /// Whose.
        ports: Vec<PortId>,
    },
    /// Somebody sets a counter.
    Set {
        /// Whose.
        port: PortId,
        /// Which.
        counter: Counter,
        /// To what, in the counter's own units.
        value: u64,
    },
    /// How a node's agents answer from now on.
    Agents {
        /// Whose.
        node: NodeId,
        /// How.
        manner: Manner,
    },
    /// The subnet manager protects nodes with an M_Key.
    Protect {
        /// Whose ports.
        nodes: Vec<NodeId>,
        /// The key; none takes it away.
        m_key: MKey,
        /// M_KeyProtectBits.
        level: u8,
    },
    /// The subnet manager makes the ports of nodes full or limited members of the default partition.
    Membership {
        /// Whose.
        nodes: Vec<NodeId>,
        /// Full, as they are at the beginning, or limited.
        full: bool,
    },
    /// How the way to all agents is from now on.
    Way(Way),
    /// A cable's end is pulled out of one port and plugged into another; if that has a cable, the
    /// two change places.
    Move {
        /// Where it is.
        from: PortId,
        /// Where it will be.
        to: PortId,
    },
    /// The subnet manager at this port becomes the master.
    Master {
        /// An adapter's port, or a switch's port 0.
        port: PortId,
        /// It gives every port another LID.
        readdresses: bool,
    },
    /// From now on these are all the flows of that name; none ends them.
    Traffic {
        /// Names the flows, so that they can be ended.
        name: String,
        /// The flows.
        flows: Vec<super::load::Flow>,
    },
}

/// How a node's agents answer.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Manner {
    /// As they should.
    Well,
    /// Not at all; packets are still forwarded.
    Silent,
    /// So much later.
    Late(Duration),
    /// All but this share of the time.
    Lossy(f64),
    /// With the status "busy" this share of the time.
    Busy(f64),
}

/// How MADs travel.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Way {
    /// From the request to the answer at the next node.
    pub round_trip: Duration,
    /// More for each hop.
    pub per_hop: Duration,
    /// Up to so much more, at random: answers overtake each other.
    pub jitter: Duration,
    /// The share that is lost, of requests and answers together.
    pub loss: f64,
}

/// An action and when it happens.
#[derive(Clone, Debug, PartialEq)]
pub struct Step {
    /// How long after the beginning.
    pub at: Duration,
    /// What.
    pub action: Action,
}

/// A scenario brought together with the fabric that it happens to: all that a simulation needs.
#[derive(Clone, Debug)]
pub struct Story {
    /// The fabric, as it is at the beginning.
    pub net: Net,
    /// The port that the exporter asks from, one for each plane that can be reached from none of
    /// the others.
    pub seats: Vec<PortId>,
    /// Where the subnet manager of each plane sits.
    pub masters: Vec<PortId>,
    /// What all chance is drawn from.
    pub seed: u64,
    /// How MADs travel at the beginning.
    pub way: Way,
    /// What happens, in the order of time; traffic that flows from the beginning is a step at 0.
    pub steps: Vec<Step>,
    /// The same in words, one line for each entry of the timeline.
    pub told: Vec<(Duration, String)>,
}
