//! What a simulation needs of a scenario.

use std::time::Duration;

use crate::change::{MadDelivery, TimedChange};
use crate::net::{Net, PortId};

/// The exporter's own host.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OwnHost {
    /// The ports of all its adapters that have a cable.
    pub ports: Vec<PortId>,
    /// The name of a RoCE device, which is in no fabric.
    pub roce: Option<String>,
    /// From when on this device pauses its switch most of the time.
    pub pfc_storm: Option<Duration>,
}

/// A scenario on its fabric: all that a simulation needs.
#[derive(Clone, Debug)]
pub struct ResolvedScenario {
    /// The fabric at the start.
    pub net: Net,
    /// The ports that the exporter sends from, one for each plane.
    pub local_ports: Vec<PortId>,
    /// The ports of the master subnet managers, one for each plane.
    pub sm_ports: Vec<PortId>,
    /// The seed of all random numbers.
    pub seed: u64,
    /// How MADs are delivered at the start.
    pub delivery: MadDelivery,
    /// The changes, in order of time. Traffic from the start is a change at 0.
    pub changes: Vec<TimedChange>,
    /// What the exporter's own host is like, if its devices are read, too.
    pub own_host: Option<OwnHost>,
    /// A sentence for each entry of the timeline, with its time.
    pub descriptions: Vec<(Duration, String)>,
}
