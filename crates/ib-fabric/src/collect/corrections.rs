//! Which error correction each link runs with, as its ports tell in PortInfoExtended.
//!
//! It changes only with the link, so a port is asked once and remembered for as long as its link
//! stays as it is. The questions ride virtual lane 15, which has no flow control, and nobody waits for
//! the answers: of a large fabric only some ports are asked in each sweep.

use std::collections::{HashMap, VecDeque};

use crate::snapshot::PortRead;
use crate::topology::End;
use crate::{Fabric, NodeIndex, PortIndex};
use ib_mad::extended_speeds::PortInfoExtended;
use ib_mad::fec::Fec;
use ib_mad::node::NodeKind;
use ib_mad::port_state::{PortStatus, state};
use ib_mad::rate::{Speed, Width};
use ib_mad::{Mad, status};
use ib_umad::Failure;

/// So many ports are asked in a sweep at the most: with the usual window a few milliseconds of
/// answers. 25,000 ports are then known after 25 minutes at the usual interval.
const MOST_A_SWEEP: usize = 256;

/// A link as it must stay for what was told of it to hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Trained {
    width: Option<Width>,
    speed: Option<Speed>,
    peer: Option<End>,
}

impl Trained {
    /// As the latest discovery found it; `None` for a port that carries no traffic, or is not one
    /// of a cable.
    fn of(fabric: &Fabric, port: PortIndex) -> Option<Self> {
        let here = fabric.port(port);
        let status = here.status.filter(|status| status.link_up() && status.state == state::ACTIVE);
        let status = status.filter(|_| here.number != 0 && fabric.node_of(port).present())?;
        let peer = here.peer.filter(|peer| peer.connected).map(|peer| fabric.end(peer.port));
        Some(Trained { width: status.width, speed: status.speed, peer })
    }
}

/// What is known of the correction of a port's link.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Known {
    /// Nothing yet, or nothing any more.
    Nothing,
    /// That it does not tell.
    NotTold,
    /// This.
    Told(Fec),
}

impl Known {
    /// What an outcome says. Whoever does not answer, or refuses for another reason than not to
    /// have it, is asked again in another sweep.
    pub fn from(outcome: Result<&Mad, Failure>) -> Self {
        match outcome {
            Ok(mad) => PortInfoExtended::decode(mad).fec().map_or(Known::NotTold, Known::Told),
            Err(Failure::Status(status)) if status::is_unsupported(status) => Known::NotTold,
            Err(_) => Known::Nothing,
        }
    }

    /// The correction, if it is known.
    pub fn fec(self) -> Option<Fec> {
        match self {
            Known::Told(fec) => Some(fec),
            Known::Nothing | Known::NotTold => None,
        }
    }
}

/// What was told so far, kept from sweep to sweep.
#[derive(Debug, Default)]
pub(super) struct Corrections {
    wanted: bool,
    told: HashMap<End, (Trained, Known)>,
    /// Where the next sweep begins to ask, so that those who do not answer hold up nobody.
    turn: u32,
}

impl Corrections {
    /// Nothing told yet; if they are not `wanted` nobody is asked.
    pub fn new(wanted: bool) -> Self {
        Corrections { wanted, ..Corrections::default() }
    }

    /// What is known of each port of a fabric, by port index.
    pub fn known(&self, fabric: &Fabric) -> Vec<Known> {
        let known = |port| {
            if !self.is_told_of(fabric, port) {
                return Known::Nothing;
            }
            match self.told.get(&fabric.end(port)) {
                Some((link, known)) if Trained::of(fabric, port) == Some(*link) => *known,
                _ => Known::Nothing,
            }
        };
        fabric.port_indexes().map(known).collect()
    }

    /// The ports to ask in this sweep, of those of which nothing is known. Nodes that are not
    /// expected to answer are left out.
    pub fn due(
        &self,
        fabric: &Fabric,
        known: &[Known],
        is_expected: impl Fn(NodeIndex) -> bool,
    ) -> VecDeque<PortIndex> {
        let count = fabric.ports.len() as u32;
        let begin = self.turn.min(count);
        (begin..count)
            .chain(0..begin)
            .map(PortIndex)
            .filter(|port| known[port.0 as usize] == Known::Nothing)
            .filter(|&port| self.is_told_of(fabric, port) && fabric.lid_of(port).is_some())
            .filter(|&port| Trained::of(fabric, port).is_some())
            .filter(|&port| is_expected(fabric.port(port).node))
            .take(MOST_A_SWEEP)
            .collect()
    }

    /// A port is asked: the next sweep begins behind it.
    pub fn asked(&mut self, port: PortIndex) {
        self.turn = port.0 + 1;
    }

    fn is_told_of(&self, fabric: &Fabric, port: PortIndex) -> bool {
        let identity = &fabric.node_of(port).identity;
        // An aggregation node's link stays in its switch's chip.
        self.wanted && identity.tells_fec && identity.kind != NodeKind::AggregationNode
    }

    /// Takes in what a sweep was told, and forgets the links that are not as they were found; what
    /// is known then stands in `known`.
    pub fn settle(
        &mut self,
        fabric: &Fabric,
        statuses: &[PortRead],
        told: Vec<(PortIndex, Known)>,
        known: &mut [Known],
    ) {
        for (port, answer) in told {
            if let Some(link) = Trained::of(fabric, port).filter(|_| answer != Known::Nothing) {
                self.told.insert(fabric.end(port), (link, answer));
                known[port.0 as usize] = answer;
            }
        }
        for port in fabric.port_indexes() {
            let known = &mut known[port.0 as usize];
            let peer = || fabric.port(port).peer.map(|peer| peer.port);
            // Of each cable one end is asked for its state, and speaks for both.
            let holds = |port| is_as_found(fabric, statuses, port);
            if *known != Known::Nothing && !(holds(port) && peer().is_none_or(holds)) {
                self.told.remove(&fabric.end(port));
                *known = Known::Nothing;
            }
        }
    }

    /// Forgets what a new discovery does not find as it was.
    pub fn keep_present(&mut self, fabric: &Fabric) {
        self.told.retain(|end, (link, _)| {
            fabric.find(*end).and_then(|port| Trained::of(fabric, port)) == Some(*link)
        });
    }
}

fn is_as_found(fabric: &Fabric, statuses: &[PortRead], port: PortIndex) -> bool {
    match &statuses[port.0 as usize] {
        PortRead::NotQueried => true,
        PortRead::Unknown => false,
        PortRead::Ok(now) => {
            fabric.port(port).status.is_some_and(|found| linked(&found) == linked(now))
        }
    }
}

/// What of a port's state says how its link stands. A port without one may try one thing after the
/// other: that is no change.
pub(super) fn linked(port: &PortStatus) -> Option<(u8, Option<Width>, Option<Speed>)> {
    port.link_up().then_some((port.state, port.width, port.speed))
}

/// Whether a port's PortExtendedSpeedsCounters have the layout of Reed-Solomon, which its table row
/// has: if its link is known to run with it, or is so fast that it cannot run without. The signals of
/// HDR and faster have four levels, and errors all the time.
pub(super) fn has_reed_solomon(fabric: &Fabric, port: PortIndex, known: Known) -> bool {
    match known {
        Known::Told(Fec::None | Fec::FireCode) => false,
        Known::Told(fec) if fec.is_reed_solomon() => true,
        Known::Told(_) | Known::Nothing | Known::NotTold => {
            let speed = fabric.port(port).status.and_then(|status| status.speed);
            speed.is_some_and(|speed| speed >= Speed::Hdr)
        }
    }
}
