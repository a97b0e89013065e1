//! A small fabric for tests: it answers MADs by itself, and does with each what the test says.
//!
//! Its clock is virtual, so that hours of time-outs pass in no time and the same way each time.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap, HashMap};
use std::time::{Duration, SystemTime};

use ib_mad::class_port_info;
use ib_mad::class_port_info::{Capabilities, ClassPortInfo};
use ib_mad::counter::Attribute;
use ib_mad::extended_speeds::{PortExtendedSpeedsCounters, PortInfoExtended};
use ib_mad::moment::Anchor;
use ib_mad::node::NodeKind;
use ib_mad::pma::PortSamplesControl;
use ib_mad::port_info::{PortInfo, capability, capability2};
use ib_mad::port_state::{physical, state};
use ib_mad::rate::{Speed, SpeedSet, Width};
use ib_mad::smp::{
    NODE_DESCRIPTION, NodeInfo, SmInfo, SwitchInfo, encode_node_description, sm_state,
};
use ib_mad::{DATA, Mad, method, status};
use ib_mad::{Guid, Lid, Moment, PortNumber};

use super::{Parcel, Received, SendError, Wire, WireError};

/// What becomes of one MAD.
#[derive(Clone, Debug)]
pub enum Fate {
    /// Answered after a while.
    Answered(Duration),
    /// Answered with a status and no data.
    Status(u16),
    /// Told to ask elsewhere.
    Redirected(Lid, u32),
    /// Never heard of again.
    Lost,
    /// The carrier says that nobody answered.
    Expired,
    /// An answer comes, but to another transaction.
    Foreign,
    /// Part of an answer comes.
    Short,
    /// The device refuses to send it.
    Refused,
    /// The device has no room.
    Full,
}

/// The usual round trip.
pub const ROUND_TRIP: Duration = Duration::from_micros(20);

/// A node of the test's fabric.
#[derive(Clone, Debug)]
pub struct ScriptedNode {
    pub guid: u64,
    pub kind: NodeKind,
    pub ports: u8,
    pub device_id: u16,
    pub description: Vec<u8>,
    /// By port; a switch's is that of port 0.
    pub lids: BTreeMap<PortNumber, u16>,
    pub links: BTreeMap<PortNumber, (usize, PortNumber)>,
    /// CapabilityMask and CapabilityMask2 of its performance management.
    pub capabilities: (u16, u32),
    /// Tick of PortSamplesControl, if it has one.
    pub tick: Option<u8>,
    /// FECModeActive of its ports, if they answer PortInfoExtended.
    pub fec: Option<u16>,
    pub state_change: bool,
    pub sm_lid: u16,
    /// A subnet manager's SMState, priority and ActCount, if one runs there.
    pub manager: Option<(u8, u8, u32)>,
}

/// Does something to an answer's data.
pub type Garble = Box<dyn FnMut(&mut [u8]) + Send>;

/// The fabric, the wire to it and the script.
pub struct Scripted {
    pub nodes: Vec<ScriptedNode>,
    /// Which node and port we sit at.
    pub home: (usize, PortNumber),
    pub fate: Box<dyn FnMut(&Parcel) -> Fate + Send>,
    /// PortPhysicalState of ports without a link.
    pub polling: u8,
    /// What links run at.
    pub speed: Speed,
    /// RedirectP_Key of redirects.
    pub redirect_p_key: u16,
    /// What is done to the data of each answer.
    pub garble: Garble,
    /// Every MAD that was sent.
    pub sent: Vec<Parcel>,
    /// The most that were unanswered at once: in all by lane, and to one LID.
    pub most_in_flight: [usize; 2],
    pub most_to_one_lid: usize,
    now: Moment,
    arrivals: BinaryHeap<Reverse<(Moment, usize)>>,
    letters: HashMap<usize, Received>,
    open: HashMap<usize, (Lid, bool, Moment)>,
}

impl Scripted {
    pub fn new(nodes: Vec<ScriptedNode>) -> Self {
        Scripted {
            redirect_p_key: 0,
            nodes,
            home: (0, 1),
            fate: Box::new(|_| Fate::Answered(ROUND_TRIP)),
            polling: 2,
            speed: Speed::Edr,
            garble: Box::new(|_| {}),
            sent: Vec::new(),
            most_in_flight: [0; 2],
            most_to_one_lid: 0,
            now: Moment(0),
            arrivals: BinaryHeap::new(),
            letters: HashMap::new(),
            open: HashMap::new(),
        }
    }

    fn deliver(&mut self, after: Duration, letter: Received) {
        let number = self.sent.len();
        self.arrivals.push(Reverse((self.now + after, number)));
        self.letters.insert(number, letter);
    }

    /// The node that a MAD reaches, and the port that it comes in by.
    fn target(&self, parcel: &Parcel) -> Option<(usize, PortNumber)> {
        if parcel.lid != Lid::PERMISSIVE {
            return self.nodes.iter().enumerate().find_map(|(index, node)| {
                if node.links.is_empty() {
                    return None;
                }
                let port = node.lids.iter().find(|(_, lid)| **lid == parcel.lid.0)?.0;
                Some((index, *port))
            });
        }
        let hops = usize::from(parcel.mad.u8(7));
        let mut at = self.home;
        for (hop, &port) in parcel.mad.0[129..129 + hops].iter().enumerate() {
            let node = &self.nodes[at.0];
            if hop > 0 && node.kind != NodeKind::Switch {
                return None;
            }
            at = *node.links.get(&port)?;
        }
        Some(at)
    }

    fn answer(&self, parcel: &Parcel) -> Option<Mad> {
        let (index, ingress) = self.target(parcel)?;
        let node = &self.nodes[index];
        let mut answer = parcel.mad.answer();
        let selected = answer.port_select();
        match (parcel.class.is_smp(), answer.attribute()) {
            (true, NODE_DESCRIPTION) => encode_node_description(&mut answer, &node.description),
            (true, NodeInfo::ID) => NodeInfo {
                node_type: NodeInfo::type_of(node.kind),
                port_count: node.ports,
                node_guid: Guid(node.guid),
                port_guid: Guid(node.guid << 8 | u64::from(ingress)),
                local_port: ingress,
                vendor_id: 0x2c9,
                device_id: node.device_id,
                ..NodeInfo::default()
            }
            .encode(&mut answer),
            (true, SwitchInfo::ID) => {
                SwitchInfo { port_state_change: node.state_change, ..SwitchInfo::default() }
                    .encode(&mut answer);
            }
            (true, PortInfo::ID) => {
                self.port_info(node, answer.modifier() as u8).encode(&mut answer);
            }
            (true, SmInfo::ID) if node.manager.is_some() => {
                let (state, priority, act_count) = node.manager.unwrap_or_default();
                SmInfo { act_count, priority, state, ..SmInfo::default() }.encode(&mut answer);
            }
            (true, PortInfoExtended::ID) if node.fec.is_some() => PortInfoExtended {
                capabilities: PortInfoExtended::FEC_MODES,
                active: node.fec.unwrap_or_default(),
                ..PortInfoExtended::default()
            }
            .encode(&mut answer),
            (false, PortSamplesControl::ID) if node.tick.is_some() => {
                let tick = node.tick.unwrap_or_default();
                PortSamplesControl { tick, ..PortSamplesControl::default() }.encode(&mut answer);
            }
            (false, PortExtendedSpeedsCounters::ID) => PortExtendedSpeedsCounters {
                port_corrected_symbols: symbol_errors(index, selected).into(),
                ..PortExtendedSpeedsCounters::default()
            }
            .encode(&mut answer),
            (false, ClassPortInfo::ID) => {
                let (mask, mask2) = node.capabilities;
                ClassPortInfo::of(Capabilities { mask, mask2 }, 0).encode(&mut answer);
            }
            // Symbol errors: something that tells node and port apart, at both of their places.
            (false, attribute) if attribute == Attribute::PortCounters as u16 => {
                answer.put_be(DATA + 4, 2, u64::from(symbol_errors(index, selected)));
            }
            (false, attribute) if attribute == Attribute::PortCountersExtended as u16 => {
                answer.put_be(DATA + 72, 8, u64::from(symbol_errors(index, selected)));
            }
            _ => answer.set_status(status::UNSUPPORTED_ATTRIBUTE),
        }
        Some(answer)
    }

    /// 4x where there is a link.
    fn port_info(&self, node: &ScriptedNode, port: PortNumber) -> PortInfo {
        let up = port == 0 || node.links.contains_key(&port);
        let speeds = Speed::ALL.into_iter().collect::<SpeedSet>().up_to(self.speed);
        let info = PortInfo {
            lid: Lid(node.lids.get(&port).copied().unwrap_or(0)),
            sm_lid: Lid(node.sm_lid),
            width_supported: Width::X4.up_to(),
            width_active: Width::X4.code(),
            state: if up { state::ACTIVE } else { state::DOWN },
            physical_state: if up { physical::LINK_UP } else { self.polling },
            capabilities: if node.manager.is_some() { capability::IS_SM } else { 0 },
            ..PortInfo::default()
        }
        .with_speeds(speeds, speeds, Some(self.speed));
        if node.fec.is_none() {
            return info;
        }
        PortInfo {
            capabilities: info.capabilities | capability::CAPABILITY_MASK2,
            capabilities2: info.capabilities2 | capability2::PORT_INFO_EXTENDED,
            ..info
        }
    }
}

/// What a port of the test's fabric counts.
pub fn symbol_errors(node: usize, port: PortNumber) -> u16 {
    node as u16 * 100 + u16::from(port)
}

impl Wire for Scripted {
    fn now(&self) -> Moment {
        self.now
    }

    fn anchor(&self) -> Anchor {
        Anchor { moment: self.now, wall: SystemTime::UNIX_EPOCH + Duration::from_nanos(self.now.0) }
    }

    fn send(&mut self, parcel: &Parcel) -> Result<(), SendError> {
        let fate = (self.fate)(parcel);
        match fate {
            Fate::Refused => {
                return Err(SendError::Refused(std::io::Error::from_raw_os_error(libc::EINVAL)));
            }
            Fate::Full => return Err(SendError::Full),
            _ => self.sent.push(parcel.clone()),
        }
        let transaction = parcel.mad.transaction();
        let answer = self.answer(parcel);
        let whole = |mad: Mad| Received::Mad { from: parcel.lid, mad };
        let told = |edit: &dyn Fn(&mut Mad)| {
            let mut mad = parcel.mad.clone();
            mad.0[3] = method::GET_RESPONSE;
            edit(&mut mad);
            whole(mad)
        };
        let mut waits = parcel.timeout + Duration::from_millis(100);
        match fate {
            Fate::Answered(after) => {
                if let Some(mut mad) = answer {
                    (self.garble)(&mut mad.0[DATA..]);
                    waits = waits.min(after);
                    self.deliver(after, whole(mad));
                } else {
                    // The kernel says so when the time that it was given is over.
                    waits = parcel.timeout;
                    self.deliver(parcel.timeout, Received::Expired { transaction });
                }
            }
            Fate::Status(status) => {
                waits = ROUND_TRIP;
                self.deliver(
                    ROUND_TRIP,
                    told(&|mad| mad.0[4..6].copy_from_slice(&status.to_be_bytes())),
                );
            }
            Fate::Redirected(lid, qp) => {
                waits = ROUND_TRIP;
                let p_key = self.redirect_p_key;
                let redirect = told(&|mad| {
                    mad.0[5] = 2;
                    mad.0[16..18].copy_from_slice(&class_port_info::ID.to_be_bytes());
                    mad.0[DATA + 28..DATA + 30].copy_from_slice(&lid.0.to_be_bytes());
                    mad.0[DATA + 30..DATA + 32].copy_from_slice(&p_key.to_be_bytes());
                    mad.0[DATA + 32..DATA + 36].copy_from_slice(&qp.to_be_bytes());
                });
                self.deliver(ROUND_TRIP, redirect);
            }
            Fate::Expired => {
                waits = ROUND_TRIP;
                self.deliver(ROUND_TRIP, Received::Expired { transaction });
            }
            Fate::Foreign => self.deliver(ROUND_TRIP, told(&|mad| mad.0[14] ^= 0x55)),
            Fate::Short => self.deliver(ROUND_TRIP, Received::Malformed { bytes: 100 }),
            Fate::Lost | Fate::Refused | Fate::Full => {}
        }
        let now = self.now;
        self.open.retain(|_, (_, _, until)| *until > now);
        self.open.insert(self.sent.len(), (parcel.lid, parcel.class.is_smp(), now + waits));
        let count = |keep: &dyn Fn(&(Lid, bool, Moment)) -> bool| {
            self.open.values().filter(|it| keep(it)).count()
        };
        let (smp, gmp) = (count(&|it| it.1), count(&|it| !it.1));
        let to_lid = count(&|it| it.0 == parcel.lid && it.0 != Lid::PERMISSIVE && !it.1);
        self.most_in_flight = [self.most_in_flight[0].max(smp), self.most_in_flight[1].max(gmp)];
        self.most_to_one_lid = self.most_to_one_lid.max(to_lid);
        Ok(())
    }

    fn receive(&mut self, until: Moment) -> Result<Option<Received>, WireError> {
        match self.arrivals.peek() {
            Some(&Reverse((at, number))) if at <= until => {
                self.arrivals.pop();
                self.now = self.now.max(at);
                Ok(self.letters.remove(&number))
            }
            _ => {
                self.now = self.now.max(until);
                Ok(None)
            }
        }
    }
}

fn node(guid: u64, kind: NodeKind, ports: u8) -> ScriptedNode {
    ScriptedNode {
        guid,
        kind,
        ports,
        device_id: 0,
        description: format!("node {guid}").into_bytes(),
        lids: BTreeMap::new(),
        links: BTreeMap::new(),
        capabilities: (0x1200, 0),
        tick: None,
        fec: None,
        state_change: false,
        sm_lid: 1,
        manager: None,
    }
}

/// A node by its place, and one of its ports.
pub type ScriptedEnd = (usize, PortNumber);

/// Builds a fabric: nodes by kind and ports, and cables by (node, port).
pub fn fabric(
    nodes: &[(NodeKind, u8)],
    cables: &[(ScriptedEnd, ScriptedEnd)],
) -> Vec<ScriptedNode> {
    let mut built: Vec<ScriptedNode> =
        nodes.iter().zip(1u64..).map(|(&(kind, ports), guid)| node(guid, kind, ports)).collect();
    for &(a, b) in cables {
        built[a.0].links.insert(a.1, b);
        built[b.0].links.insert(b.1, a);
    }
    let mut lid = 0;
    for node in &mut built {
        let ports: Vec<PortNumber> = if node.kind == NodeKind::Switch {
            vec![0]
        } else {
            node.links.keys().copied().collect()
        };
        for port in ports {
            lid += 1;
            node.lids.insert(port, lid);
        }
    }
    // Whoever has the LID that all have for the master's is it.
    if let Some(first) = built.first_mut() {
        first.manager = Some((sm_state::MASTER, 0, 1));
    }
    built
}
