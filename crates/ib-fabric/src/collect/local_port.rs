//! The local port, its neighbor and its subnet manager: four requests that show whether the fabric can
//! be queried from here.

use std::collections::VecDeque;

use ib_mad::m_key::{MKey, MKeys};
use ib_mad::port_info::PortInfo;
use ib_mad::port_state::{PortState, PortStatus};
use ib_mad::smp::{self, NodeInfo, SmInfo, SmState};
use ib_mad::{DirectedRoute, Guid, Lid, Moment, Query};
use ib_umad::plan::QueryPlan;
use ib_umad::{Address, QueuePair, Request, RequestError};

use super::Outcome;

/// State and priority of a subnet manager; `None` for a reserved state.
pub type SmReport = (Option<SmState>, u8);

/// The subnet manager at the SM LID of the local port.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MasterSm {
    /// MasterSMLID of the local port.
    pub lid: Lid,
    /// What it responds; `None` if it is not asked, as from a [multi-plane HCA](LocalPortQuery::by_route).
    pub info: Option<Result<SmReport, RequestError>>,
    /// NodeDescription of its node; empty if unknown.
    pub node: String,
}

/// The neighbor of the local port.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NeighborReport {
    /// M_KeyProtectBits of the local port; usually the subnet manager sets the same everywhere.
    pub m_key_protect: u8,
    /// Whether the neighbor responds to subnet management.
    pub response: Result<(), RequestError>,
}

/// The result.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LocalPortReport {
    /// State of the local port, or the error.
    pub port: Result<PortStatus, RequestError>,
    /// Its neighbor, if its link is active.
    pub neighbor: Option<NeighborReport>,
    /// The master subnet manager, if the port has its LID.
    pub master: Option<MasterSm>,
}

/// The query plan; see the [module](self). The tag of a request is its attribute.
#[derive(Debug)]
pub struct LocalPortQuery {
    queue: VecDeque<Request>,
    report: LocalPortReport,
    keys: MKeys,
    local_guid: Option<Guid>,
    is_by_route: bool,
}

impl LocalPortQuery {
    /// A plan with M_Keys; if they differ, the key of the local port is found by its GUID.
    pub fn with_keys(keys: MKeys, local_guid: Option<Guid>) -> Self {
        let key = local_guid.map_or(keys.common, |guid| keys.get(guid));
        let port = Err(RequestError::Unsent);
        let report = LocalPortReport { port, neighbor: None, master: None };
        let queue = VecDeque::new();
        let mut plan = LocalPortQuery { queue, report, keys, local_guid, is_by_route: false };
        // The empty route needs no LID; port 0 is the receiving port.
        plan.push(Address::Directed(DirectedRoute::LOCAL), smp::port_info(0), key);
        plan
    }

    /// The same plan without requests by LID, which may not arrive in a fabric with planes.
    #[must_use]
    pub fn by_route(self, is_by_route: bool) -> Self {
        LocalPortQuery { is_by_route, ..self }
    }

    fn push(&mut self, to: Address, query: Query, key: MKey) {
        self.queue.push_back(Request { to, query: query.with_m_key(key) });
    }

    /// Queues the requests to the neighbor and to the subnet manager of the local port.
    fn handle_port(&mut self, info: &PortInfo) -> PortStatus {
        let port = info.status(info.speed_fields());
        let unsent = RequestError::Unsent;
        if port.link_up() && port.state == PortState::Active {
            let m_key_protect = info.m_key_protect;
            self.report.neighbor = Some(NeighborReport { m_key_protect, response: Err(unsent) });
            let key = |guid| self.keys.get_neighbor(guid, info.local_port);
            let key = self.local_guid.map_or(self.keys.common, key);
            if let Some(route) = DirectedRoute::LOCAL.then(info.local_port) {
                self.push(Address::Directed(route), smp::node_info(), key);
            }
        }
        if port.sm_lid.is_unicast() {
            let (lid, key) = (port.sm_lid, self.keys.common);
            let info = (!self.is_by_route).then_some(Err(unsent));
            self.report.master = Some(MasterSm { lid, info, node: String::new() });
            if self.is_by_route {
                return port;
            }
            self.push(Address::Lid(lid), smp::sm_info(), key);
            // Which node it is, and so its key, is unknown; SMInfo needs no key.
            if !self.keys.differ() {
                self.push(Address::Lid(lid), smp::node_description(), key);
            }
        }
        port
    }

    /// The report, after the run.
    pub fn finish(self) -> LocalPortReport {
        self.report
    }
}

impl QueryPlan for LocalPortQuery {
    fn next_request(&mut self, qp: QueuePair) -> Option<(Request, u64)> {
        let request = if qp == QueuePair::Qp0 { self.queue.pop_front() } else { None };
        request.map(|request| (request, request.query.attribute.into()))
    }

    fn handle_outcome(&mut self, tag: u64, outcome: Outcome<'_>, _at: Moment) {
        let LocalPortReport { neighbor, master, .. } = &mut self.report;
        match (tag as u16, neighbor, master) {
            (PortInfo::ID, ..) => {
                let port = outcome.map(|mad| self.handle_port(&PortInfo::decode(mad)));
                self.report.port = port;
            }
            (NodeInfo::ID, Some(neighbor), _) => neighbor.response = outcome.map(|_| ()),
            (SmInfo::ID, _, Some(master)) => {
                let info = outcome.map(SmInfo::decode);
                master.info =
                    Some(info.map(|it| (SmState::from_discriminant(it.state), it.priority)));
            }
            (smp::NODE_DESCRIPTION, _, Some(master)) => {
                master.node = outcome.map(smp::decode_node_description).unwrap_or_default();
            }
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ib_mad::{LEN, Mad};

    /// Responds to the next request with these fields.
    fn respond(plan: &mut LocalPortQuery, fill: impl FnOnce(&mut Mad)) -> Request {
        let (request, tag) = plan.next_request(QueuePair::Qp0).unwrap();
        let mut mad = Mad([0; LEN]);
        fill(&mut mad);
        plan.handle_outcome(tag, Ok(&mad), Moment::default());
        request
    }

    fn local_port(sm_lid: u16) -> PortInfo {
        PortInfo {
            lid: Lid(3),
            sm_lid: Lid(sm_lid),
            state: PortState::Active,
            ..PortInfo::default()
        }
    }

    #[test]
    fn local_port_query_asks_master_sm() {
        let mut plan = LocalPortQuery::with_keys(MKeys::default(), None);
        assert!(plan.next_request(QueuePair::Qp1).is_none());
        let own = respond(&mut plan, |mad| local_port(7).encode(mad));
        assert_eq!(own.to, Address::Directed(DirectedRoute::LOCAL));
        let info = SmInfo { state: SmState::Standby as u8, priority: 14, ..SmInfo::default() };
        let manager = respond(&mut plan, |mad| info.encode(mad));
        assert_eq!((manager.to, manager.query), (Address::Lid(Lid(7)), smp::sm_info()));
        respond(&mut plan, |mad| smp::encode_node_description(mad, b"head-1"));
        assert!(plan.next_request(QueuePair::Qp0).is_none(), "no more requests");
        let report = plan.finish();
        assert_eq!(report.port.map(|port| port.lid), Ok(Lid(3)));
        let info = Some(Ok((Some(SmState::Standby), 14)));
        let manager = MasterSm { lid: Lid(7), info, node: "head-1".into() };
        assert_eq!(report.master, Some(manager));
    }

    #[test]
    fn distinct_m_keys_skip_master_node_description() {
        let keys = "0xa 0x0000000000000001\n0xb 0x0000000000000002\n";
        let keys = MKeys::parse(keys).unwrap();
        let mut plan = LocalPortQuery::with_keys(keys, Some(Guid(0xa)));
        let own = respond(&mut plan, |mad| local_port(7).encode(mad));
        assert_eq!(own.query.m_key, MKey(1));
        let manager = respond(&mut plan, |_| ());
        assert_eq!((manager.to, manager.query), (Address::Lid(Lid(7)), smp::sm_info()));
        assert!(plan.next_request(QueuePair::Qp0).is_none(), "no NodeDescription");
    }

    #[test]
    fn multi_plane_hca_asks_no_manager_by_lid() {
        let mut plan = LocalPortQuery::with_keys(MKeys::default(), None).by_route(true);
        respond(&mut plan, |mad| local_port(7).encode(mad));
        assert!(plan.next_request(QueuePair::Qp0).is_none());
        let master = plan.finish().master.unwrap();
        assert_eq!((master.lid, master.info), (Lid(7), None));
    }

    #[test]
    fn no_sm_lid_sends_no_sm_info() {
        for lid in [0, 0xc000, 0xffff] {
            let mut plan = LocalPortQuery::with_keys(MKeys::default(), None);
            respond(&mut plan, |mad| local_port(lid).encode(mad));
            assert!(plan.next_request(QueuePair::Qp0).is_none(), "{lid:#x}");
            assert_eq!(plan.finish().master, None);
        }
        let mut plan = LocalPortQuery::with_keys(MKeys::default(), None);
        let (_, tag) = plan.next_request(QueuePair::Qp0).unwrap();
        plan.handle_outcome(tag, Err(RequestError::TimedOut), Moment::default());
        plan.handle_outcome(99, Err(RequestError::TimedOut), Moment::default());
        assert_eq!(
            plan.finish(),
            LocalPortReport { port: Err(RequestError::TimedOut), neighbor: None, master: None }
        );
    }
}
