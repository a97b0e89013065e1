//! Our own port, its neighbor and its subnet manager: four questions, for who wants to know no more than whether
//! the fabric can be asked from here.

use std::collections::VecDeque;

use crate::subnet::ManagerState;
use ib_mad::m_key::{MKey, MKeys};
use ib_mad::port_info::PortInfo;
use ib_mad::port_state::{PortStatus, state};
use ib_mad::smp;
use ib_mad::smp::SmInfo;
use ib_mad::{Guid, Lid, Moment, PortNumber};
use ib_mad::{Mad, Path};
use ib_umad::walk::Walk;
use ib_umad::{Address, Failure, Lane, Request};

/// What the master's LID answers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Manager {
    /// The LID that our own port has for the master's.
    pub lid: Lid,
    /// State and priority, or why there is no answer. `None` for a state that does not exist.
    pub told: Result<(Option<ManagerState>, u8), Failure>,
    /// What the node calls itself that it runs on; empty where it did not say.
    pub node: String,
}

/// What is behind our own port.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Neighbor {
    /// M_KeyProtectBits of our own port; as a rule the subnet manager sets the same everywhere.
    pub m_key_protect: u8,
    /// Whether the neighbor answers subnet management.
    pub heard: Result<(), Failure>,
}

/// What was found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Home {
    /// Our own port, or why it did not answer.
    pub port: Result<PortStatus, Failure>,
    /// Who is behind it, if its link is active.
    pub neighbor: Option<Neighbor>,
    /// The subnet manager, if our port knows one.
    pub manager: Option<Manager>,
}

/// What a question is about; its tag is its place here.
#[derive(Clone, Copy, Debug)]
enum Ask {
    OwnPort,
    /// The node behind that port of ours.
    Neighbor(PortNumber),
    Manager(Lid),
    ManagerNode(Lid),
}

/// The walk; see the module.
#[derive(Debug)]
pub struct HomeWalk {
    queue: VecDeque<Ask>,
    asked: Vec<Ask>,
    home: Home,
    keys: MKeys,
    own_guid: Option<Guid>,
}

impl Default for HomeWalk {
    fn default() -> Self {
        HomeWalk {
            queue: VecDeque::from([Ask::OwnPort]),
            asked: Vec::new(),
            home: Home { port: Err(Failure::Unsent), neighbor: None, manager: None },
            keys: MKeys::default(),
            own_guid: None,
        }
    }
}

impl HomeWalk {
    /// One that asks with keys; that of our own port is known by its GUID, if they differ.
    pub fn with_keys(keys: MKeys, own_guid: Option<Guid>) -> Self {
        HomeWalk { keys, own_guid, ..HomeWalk::default() }
    }

    fn m_key(&self, ask: Ask) -> MKey {
        let own = self.own_guid;
        match ask {
            Ask::OwnPort => own.map_or(self.keys.of_unknown(), |guid| self.keys.of(guid)),
            Ask::Neighbor(port) => {
                own.map_or(self.keys.of_unknown(), |guid| self.keys.behind(guid, port))
            }
            // The GUID at that LID is not known.
            Ask::Manager(_) | Ask::ManagerNode(_) => self.keys.of_unknown(),
        }
    }

    /// What was found, once the walk is at its end.
    pub fn finish(self) -> Home {
        self.home
    }
}

impl Walk for HomeWalk {
    fn next(&mut self, lane: Lane) -> Option<(Request, u64)> {
        if lane != Lane::Smp {
            return None;
        }
        let ask = self.queue.pop_front()?;
        let Request { to, query } = match ask {
            // By the empty route, which needs no LID; port 0 is whichever was asked at.
            Ask::OwnPort => Request { to: Address::Directed(Path::HERE), query: smp::port_info(0) },
            Ask::Neighbor(port) => {
                Request { to: Address::Directed(Path::HERE.then(port)?), query: smp::node_info() }
            }
            Ask::Manager(lid) => Request { to: Address::Lid(lid), query: smp::sm_info() },
            Ask::ManagerNode(lid) => {
                Request { to: Address::Lid(lid), query: smp::node_description() }
            }
        };
        self.asked.push(ask);
        let request = Request { to, query: query.with_m_key(self.m_key(ask)) };
        Some((request, self.asked.len() as u64 - 1))
    }

    fn finished(&mut self, tag: u64, outcome: Result<&Mad, Failure>, _at: Moment) {
        let Some(&ask) = self.asked.get(tag as usize) else { return };
        match ask {
            Ask::OwnPort => {
                let info = outcome.map(PortInfo::decode);
                self.home.port = info
                    .as_ref()
                    .map(|info| info.status(info.speed_fields()))
                    .map_err(|failure| *failure);
                let (Ok(info), Ok(port)) = (info, self.home.port) else { return };
                if port.link_up() && port.state == state::ACTIVE {
                    self.home.neighbor = Some(Neighbor {
                        m_key_protect: info.m_key_protect,
                        heard: Err(Failure::Unsent),
                    });
                    self.queue.push_back(Ask::Neighbor(info.local_port));
                }
                if port.sm_lid.is_unicast() {
                    let lid = port.sm_lid;
                    let told = Err(Failure::Unsent);
                    self.home.manager = Some(Manager { lid, told, node: String::new() });
                    self.queue.push_back(Ask::Manager(lid));
                    // Without the key that node would count a violation; which node it is, and so its
                    // key, is not known. SMInfo is answered without one.
                    if !self.keys.differ() {
                        self.queue.push_back(Ask::ManagerNode(lid));
                    }
                }
            }
            Ask::Neighbor(_) => {
                if let Some(neighbor) = &mut self.home.neighbor {
                    neighbor.heard = outcome.map(|_| ());
                }
            }
            Ask::Manager(_) => {
                let Some(manager) = &mut self.home.manager else { return };
                manager.told = outcome.map(|mad| {
                    let SmInfo { state, priority, .. } = SmInfo::decode(mad);
                    (ManagerState::from_code(state), priority)
                });
            }
            Ask::ManagerNode(_) => {
                if let (Some(manager), Ok(mad)) = (&mut self.home.manager, outcome) {
                    manager.node = smp::decode_node_description(mad);
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ib_mad::LEN;

    /// Answers the next question with these fields.
    fn answered(walk: &mut HomeWalk, fill: impl FnOnce(&mut Mad)) -> Request {
        let (request, tag) = walk.next(Lane::Smp).unwrap();
        let mut mad = Mad([0; LEN]);
        fill(&mut mad);
        walk.finished(tag, Ok(&mad), Moment::default());
        request
    }

    fn own_port(sm_lid: u16) -> PortInfo {
        PortInfo { lid: Lid(3), sm_lid: Lid(sm_lid), state: 4, ..PortInfo::default() }
    }

    #[test]
    fn our_own_port_names_the_manager_that_is_asked() {
        let mut walk = HomeWalk::default();
        assert!(walk.next(Lane::Gmp).is_none());
        let own = answered(&mut walk, |mad| own_port(7).encode(mad));
        assert_eq!(own.to, Address::Directed(Path::HERE));
        let info = SmInfo { state: smp::sm_state::STANDBY, priority: 14, ..SmInfo::default() };
        let manager = answered(&mut walk, |mad| info.encode(mad));
        assert_eq!((manager.to, manager.query), (Address::Lid(Lid(7)), smp::sm_info()));
        answered(&mut walk, |mad| smp::encode_node_description(mad, b"head-1"));
        assert!(walk.next(Lane::Smp).is_none(), "three questions and no more");
        let home = walk.finish();
        assert_eq!(home.port.map(|port| port.lid), Ok(Lid(3)));
        let told = Ok((Some(ManagerState::Standby), 14));
        let manager = Manager { lid: Lid(7), told, node: "head-1".into() };
        assert_eq!(home.manager, Some(manager));
    }

    #[test]
    fn where_keys_differ_the_manager_s_node_is_not_asked_without_its_key() {
        let keys = "0xa 0x0000000000000001\n0xb 0x0000000000000002\n";
        let keys = MKeys::parse(keys).unwrap();
        let mut walk = HomeWalk::with_keys(keys, Some(Guid(0xa)));
        let own = answered(&mut walk, |mad| own_port(7).encode(mad));
        assert_eq!(own.query.m_key, MKey(1));
        let manager = answered(&mut walk, |_| ());
        assert_eq!((manager.to, manager.query), (Address::Lid(Lid(7)), smp::sm_info()));
        assert!(walk.next(Lane::Smp).is_none(), "no NodeDescription");
    }

    #[test]
    fn without_a_manager_nobody_is_asked_for_it() {
        for nobody in [0, 0xc000, 0xffff] {
            let mut walk = HomeWalk::default();
            answered(&mut walk, |mad| own_port(nobody).encode(mad));
            assert!(walk.next(Lane::Smp).is_none(), "{nobody:#x}");
            assert_eq!(walk.finish().manager, None);
        }
        let mut walk = HomeWalk::default();
        let (_, tag) = walk.next(Lane::Smp).unwrap();
        walk.finished(tag, Err(Failure::TimedOut), Moment::default());
        walk.finished(99, Err(Failure::TimedOut), Moment::default());
        assert_eq!(
            walk.finish(),
            Home { port: Err(Failure::TimedOut), neighbor: None, manager: None }
        );
    }
}
