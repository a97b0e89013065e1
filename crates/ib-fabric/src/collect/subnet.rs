//! Subnet managers, each sweep: who is the master, and who would take over?
//!
//! Whoever said in its PortInfo that a subnet manager runs there is asked for SMInfo by its LID; and
//! so is the port that our own port has for the master's, where one runs that was started after the
//! discovery. A manager that ended leaves its question unanswered, which says nothing of its node. The
//! first such sweep ends up to 1.8 s later for it, after three tries. The next ones try a host once, for
//! up to 0.6 s, and a switch that answers else three times, until a discovery finds that it no longer
//! says to have one.

use std::collections::VecDeque;
use std::sync::Arc;

use crate::subnet::{ManagerState, SubnetManager};
use crate::{Fabric, PortIndex};
use ib_mad::Mad;
use ib_mad::Moment;
use ib_mad::m_key::MKeys;
use ib_mad::smp;
use ib_mad::smp::SmInfo;
use ib_umad::walk::Walk;
use ib_umad::{Address, Failure, Lane, Request};

use super::agents::m_key_of;

/// So many are asked at the most. A subnet has two or three; where each host was installed with one
/// it has hundreds, and those that hang would hold the sweep up.
const MOST_ASKED: usize = 256;

/// The walk; see the module.
#[derive(Debug)]
pub struct SubnetSweep<'a> {
    fabric: &'a Fabric,
    queue: VecDeque<PortIndex>,
    asked: Vec<PortIndex>,
    heard: Vec<SubnetManager>,
    keys: Arc<MKeys>,
}

/// Whether a port is one that a subnet manager can be asked at: what a switch's other ports say of
/// themselves means nothing, and who is gone has its LID no more.
fn is_seat(fabric: &Fabric, port: PortIndex) -> bool {
    let node = fabric.node_of(port);
    node.present()
        && node.is_switch() == (fabric.port(port).number == 0)
        && fabric.lid_of(port).is_some()
}

/// The port with the LID that our own port has for the master's.
fn known_master(fabric: &Fabric) -> Option<PortIndex> {
    let master = fabric.port(fabric.home?).status?.sm_lid;
    let has_it = |port: &PortIndex| {
        let first_and_lmc =
            fabric.port(*port).status.map(|status| (u32::from(status.lid.0), status.lmc));
        // A port has 2^LMC LIDs, from its first one on; LMC has 3 bits.
        first_and_lmc.is_some_and(|(first, lmc)| {
            (first..first + (1 << (lmc & 7))).contains(&u32::from(master.0))
        })
    };
    fabric.port_indexes().filter(|&port| is_seat(fabric, port)).find(has_it)
}

impl<'a> SubnetSweep<'a> {
    /// A sweep over the subnet managers of a fabric.
    pub fn new(fabric: &'a Fabric) -> Self {
        let master = known_master(fabric);
        let says_so = |port: &PortIndex| fabric.port(*port).status.is_some_and(|it| it.is_sm);
        let others = fabric
            .port_indexes()
            .filter(says_so)
            .filter(|&port| is_seat(fabric, port) && Some(port) != master);
        let queue = master.into_iter().chain(others).take(MOST_ASKED).collect();
        SubnetSweep { fabric, queue, asked: Vec::new(), heard: Vec::new(), keys: Arc::default() }
    }

    /// The same, with keys to ask with.
    #[must_use]
    pub fn with_keys(self, keys: Arc<MKeys>) -> Self {
        SubnetSweep { keys, ..self }
    }

    /// The next question.
    pub fn next_request(&mut self) -> Option<(Request, u64)> {
        let port = self.queue.pop_front()?;
        let to = Address::Lid(self.fabric.lid_of(port)?);
        self.asked.push(port);
        let query = smp::sm_info().with_m_key(m_key_of(&self.keys, self.fabric, port));
        Some((Request { to, query }, self.asked.len() as u64 - 1))
    }

    /// Takes an outcome in. Tells the port, if its node gave a sign of life.
    pub fn finished(&mut self, tag: u64, outcome: Result<&Mad, Failure>) -> Option<PortIndex> {
        let port = *self.asked.get(tag as usize)?;
        let mad = match outcome {
            Ok(mad) => mad,
            // Where no manager runs any more nobody may be there to answer; the node may be well.
            Err(failure) => return (!failure.is_silence()).then_some(port),
        };
        let SmInfo { state, priority, act_count: activity, .. } = SmInfo::decode(mad);
        if let Some(state) = ManagerState::from_code(state) {
            self.heard.push(SubnetManager { port, state, priority, activity });
        }
        Some(port)
    }

    /// Those that answered, in the order of their ports, once the walk is at its end.
    pub fn finish(mut self) -> Vec<SubnetManager> {
        self.heard.sort_unstable_by_key(|manager| manager.port);
        self.heard
    }
}

/// By itself, for who wants to know of managers and nothing else.
impl Walk for SubnetSweep<'_> {
    fn next(&mut self, lane: Lane) -> Option<(Request, u64)> {
        if lane == Lane::Smp { self.next_request() } else { None }
    }

    fn finished(&mut self, tag: u64, outcome: Result<&Mad, Failure>, _at: Moment) {
        // Whether the node lives is of no interest here.
        let _ = SubnetSweep::finished(self, tag, outcome);
    }
}
