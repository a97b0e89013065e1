//! Subnet managers in each sweep: the master and its standbys.
//!
//! SMInfo is read by LID of all ports whose PortInfo announces a subnet manager, and of the port with the SM LID of
//! the local port, where one may have started after the discovery. A stopped manager does not respond, which
//! says nothing about its node. The first such sweep takes up to 1.8 s longer, for three tries. The next ones
//! try a host once, for up to 0.6 s, and a switch that responds to other requests three times, until a
//! discovery finds that it no longer announces one.

use std::collections::VecDeque;
use std::sync::Arc;

use crate::snapshot::SubnetManager;
use crate::{Fabric, PortIndex};
use ib_mad::Mad;
use ib_mad::Moment;
use ib_mad::m_key::MKeys;
use ib_mad::smp;
use ib_mad::smp::SmInfo;
use ib_mad::smp::SmState;
use ib_umad::query::QueryPlan;
use ib_umad::{Address, QueuePair, Request, RequestError};

use super::agent_cache::m_key_of;

/// Maximum number of queries. A subnet has two or three managers; if each host is installed with one it has
/// hundreds, and those that hang would delay the sweep.
const MAX_QUERIES: usize = 256;

/// The query plan; see the [module](self).
#[derive(Debug)]
pub struct SmSweep<'a> {
    fabric: &'a Fabric,
    queue: VecDeque<PortIndex>,
    queried: Vec<PortIndex>,
    managers: Vec<SubnetManager>,
    keys: Arc<MKeys>,
}

/// Whether a subnet manager can be queried at a port: of a switch only at port 0, and not at absent nodes.
fn can_host_sm(fabric: &Fabric, port: PortIndex) -> bool {
    let node = fabric.node_of(port);
    node.present()
        && node.is_switch() == (fabric.port(port).number == 0)
        && fabric.lid_of(port).is_some()
}

/// The port with the SM LID of the local port.
fn known_master(fabric: &Fabric) -> Option<PortIndex> {
    let master = fabric.port(fabric.local_port?).status?.sm_lid;
    let has_lid = |port: &PortIndex| {
        let first_and_lmc =
            fabric.port(*port).status.map(|status| (u32::from(status.lid.0), status.lmc));
        // A port has 2^LMC consecutive LIDs; LMC has 3 bits.
        first_and_lmc.is_some_and(|(first, lmc)| {
            (first..first + (1 << (lmc & 7))).contains(&u32::from(master.0))
        })
    };
    fabric.port_indexes().filter(|&port| can_host_sm(fabric, port)).find(has_lid)
}

impl<'a> SmSweep<'a> {
    /// A sweep over the subnet managers of a fabric.
    pub fn new(fabric: &'a Fabric) -> Self {
        let master = known_master(fabric);
        let announces_sm = |port: &PortIndex| fabric.port(*port).status.is_some_and(|it| it.is_sm);
        let others = fabric
            .port_indexes()
            .filter(announces_sm)
            .filter(|&port| can_host_sm(fabric, port) && Some(port) != master);
        let queue = master.into_iter().chain(others).take(MAX_QUERIES).collect();
        SmSweep { fabric, queue, queried: Vec::new(), managers: Vec::new(), keys: Arc::default() }
    }

    /// The same with M_Keys.
    #[must_use]
    pub fn with_keys(self, keys: Arc<MKeys>) -> Self {
        SmSweep { keys, ..self }
    }

    /// The next request.
    pub fn poll_request(&mut self) -> Option<(Request, u64)> {
        let port = self.queue.pop_front()?;
        let to = Address::Lid(self.fabric.lid_of(port)?);
        self.queried.push(port);
        let query = smp::sm_info().with_m_key(m_key_of(&self.keys, self.fabric, port));
        Some((Request { to, query }, self.queried.len() as u64 - 1))
    }

    /// Handles an outcome. Returns the port if its node responded.
    pub fn on_outcome(
        &mut self,
        tag: u64,
        outcome: Result<&Mad, RequestError>,
    ) -> Option<PortIndex> {
        let port = *self.queried.get(tag as usize)?;
        let mad = match outcome {
            Ok(mad) => mad,
            // A stopped manager does not respond; the node may be up.
            Err(failure) => return (!failure.is_no_response()).then_some(port),
        };
        let SmInfo { state, priority, act_count, .. } = SmInfo::decode(mad);
        if let Some(state) = SmState::from_code(state) {
            self.managers.push(SubnetManager { port, state, priority, act_count });
        }
        Some(port)
    }

    /// The managers that responded, by port, after the run.
    pub fn finish(mut self) -> Vec<SubnetManager> {
        self.managers.sort_unstable_by_key(|manager| manager.port);
        self.managers
    }
}

/// A plan of its own, to query only subnet managers.
impl QueryPlan for SmSweep<'_> {
    fn next_request(&mut self, qp: QueuePair) -> Option<(Request, u64)> {
        if qp == QueuePair::Qp0 { self.poll_request() } else { None }
    }

    fn handle_outcome(&mut self, tag: u64, outcome: Result<&Mad, RequestError>, _at: Moment) {
        let _ = self.on_outcome(tag, outcome);
    }
}
