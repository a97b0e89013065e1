//! FEC modes of links, from PortInfoExtended.
//!
//! The mode changes only with the link, so a port is queried once and cached as long as its link does
//! not change. The requests use virtual lane 15, which has no flow control, and the results are not
//! urgent: of a large fabric only some ports are queried in each sweep.

use std::collections::{HashMap, VecDeque};

use crate::snapshot::PortRead;
use crate::{Fabric, NodeIndex, PortIndex, PortMap};
use ib_mad::PortKey;
use ib_mad::fec::{Fec, PortInfoExtended};
use ib_mad::node::NodeKind;
use ib_mad::port_state::{PortState, PortStatus};
use ib_mad::rate::{Speed, Width};

use super::{Outcome, is_unsupported};

/// Maximum number of ports queried in a sweep: a few milliseconds with the default window. 25,000 ports
/// are then known after 25 minutes at the default interval.
const MAX_PER_SWEEP: usize = 256;

/// Properties of a link; a cached FEC mode is valid as long as they are unchanged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct LinkConfig {
    width: Option<Width>,
    speed: Option<Speed>,
    peer: Option<PortKey>,
}

impl LinkConfig {
    /// Of the latest discovery; `None` for a port that is not active, or is port 0 of a switch.
    fn new(fabric: &Fabric, port: PortIndex) -> Option<Self> {
        let here = fabric.port(port);
        let status =
            here.status.filter(|status| status.link_up() && status.state == PortState::Active);
        let status = status.filter(|_| here.number != 0 && fabric.node_of(port).present())?;
        let peer = here.connected_peer().map(|peer| fabric.port_key(peer));
        Some(LinkConfig { width: status.width, speed: status.speed, peer })
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum FecMode {
    /// Not queried since the last change of the link.
    Unknown,
    Unsupported,
    Known(Fec),
}

impl FecMode {
    /// The mode of a query's outcome. After no response, or a refusal for another reason than an
    /// unsupported attribute, the port is queried again in another sweep.
    pub fn from_outcome(outcome: Outcome<'_>) -> Self {
        match outcome {
            Ok(mad) => {
                PortInfoExtended::decode(mad).fec().map_or(FecMode::Unsupported, FecMode::Known)
            }
            Err(failure) if is_unsupported(failure) => FecMode::Unsupported,
            Err(_) => FecMode::Unknown,
        }
    }

    pub fn fec(self) -> Option<Fec> {
        match self {
            FecMode::Known(fec) => Some(fec),
            FecMode::Unknown | FecMode::Unsupported => None,
        }
    }
}

/// Cached FEC modes, kept from sweep to sweep.
#[derive(Debug, Default)]
pub(super) struct FecModeCache {
    enabled: bool,
    modes: HashMap<PortKey, (LinkConfig, FecMode)>,
    /// The port index at which the next sweep begins: behind the last queried one, so that ports without a
    /// response do not delay others.
    pub next_port: u32,
}

impl FecModeCache {
    /// An empty cache; unless `enabled` no port is queried.
    pub fn new(enabled: bool) -> Self {
        FecModeCache { enabled, ..FecModeCache::default() }
    }

    pub fn modes(&self, fabric: &Fabric) -> PortMap<FecMode> {
        let known = |port| {
            let is_supported = self.is_supported(fabric, port);
            let known = is_supported.then(|| self.modes.get(&fabric.port_key(port)))?;
            known.filter(|(link, _)| LinkConfig::new(fabric, port) == Some(*link))
        };
        let mode = |port| known(port).map_or(FecMode::Unknown, |(_, mode)| *mode);
        fabric.port_indexes().map(mode).collect()
    }

    /// The ports with an unknown mode to query in this sweep, of nodes that are expected to respond.
    pub fn due(
        &self,
        fabric: &Fabric,
        modes: &PortMap<FecMode>,
        is_expected: impl Fn(NodeIndex) -> bool,
    ) -> VecDeque<PortIndex> {
        let count = fabric.ports.len() as u32;
        let begin = self.next_port.min(count);
        (begin..count)
            .chain(0..begin)
            .map(PortIndex)
            .filter(|&port| modes[port] == FecMode::Unknown)
            .filter(|&port| self.is_supported(fabric, port) && fabric.lid_of(port).is_some())
            .filter(|&port| LinkConfig::new(fabric, port).is_some())
            .filter(|&port| is_expected(fabric.port(port).node))
            .take(MAX_PER_SWEEP)
            .collect()
    }

    fn is_supported(&self, fabric: &Fabric, port: PortIndex) -> bool {
        let identity = &fabric.node_of(port).identity;
        // The link of an aggregation node is inside the chip of its switch.
        self.enabled && identity.reports_fec && identity.kind != NodeKind::AggregationNode
    }

    /// Stores the mode of a port that was queried.
    pub fn insert(&mut self, fabric: &Fabric, port: PortIndex, mode: FecMode) {
        if let Some(link) = LinkConfig::new(fabric, port).filter(|_| mode != FecMode::Unknown) {
            self.modes.insert(fabric.port_key(port), (link, mode));
        }
    }

    /// Forgets the mode of a port.
    pub fn remove(&mut self, fabric: &Fabric, port: PortIndex) {
        self.modes.remove(&fabric.port_key(port));
    }

    /// Forgets links that a sweep found changed, also in `modes`.
    pub fn update(
        &mut self,
        fabric: &Fabric,
        statuses: &PortMap<PortRead>,
        modes: &mut PortMap<FecMode>,
    ) {
        for port in fabric.port_indexes() {
            let mode = &mut modes[port];
            let peer = || fabric.port(port).peer.map(|peer| peer.port);
            // Only one end of each link is queried for its state.
            let is_valid = |port| is_unchanged(fabric, statuses, port);
            if *mode != FecMode::Unknown && !(is_valid(port) && peer().is_none_or(is_valid)) {
                self.modes.remove(&fabric.port_key(port));
                *mode = FecMode::Unknown;
            }
        }
    }

    pub fn retain_unchanged(&mut self, fabric: &Fabric) {
        self.modes.retain(|end, (link, _)| {
            fabric.find(*end).and_then(|port| LinkConfig::new(fabric, port)) == Some(*link)
        });
    }
}

fn is_unchanged(fabric: &Fabric, statuses: &PortMap<PortRead>, port: PortIndex) -> bool {
    match &statuses[port] {
        PortRead::NotQueried => true,
        PortRead::Unknown => false,
        PortRead::Ok(now) => {
            fabric.port(port).status.is_some_and(|found| link_state(&found) == link_state(now))
        }
    }
}

/// State, width and speed of a link; `None` without one, because changes of a polling port do not matter.
pub(super) fn link_state(port: &PortStatus) -> Option<(PortState, Option<Width>, Option<Speed>)> {
    port.link_up().then_some((port.state, port.width, port.speed))
}

/// Whether PortExtendedSpeedsCounters of a port have the Reed-Solomon layout of the counter table: if its FEC mode is
/// Reed-Solomon, or unknown at HDR or faster, which require it: their four-level signals always have errors.
pub(super) fn has_reed_solomon(fabric: &Fabric, port: PortIndex, mode: FecMode) -> bool {
    match mode {
        FecMode::Known(Fec::None | Fec::FireCode) => false,
        FecMode::Known(fec) if fec.is_reed_solomon() => true,
        FecMode::Known(_) | FecMode::Unknown | FecMode::Unsupported => {
            let speed = fabric.port(port).status.and_then(|status| status.speed);
            speed.is_some_and(|speed| speed >= Speed::Hdr)
        }
    }
}
