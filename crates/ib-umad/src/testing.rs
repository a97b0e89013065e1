//! A scripted transport for tests: a small fabric that responds to MADs, or does what the test says with each.
//!
//! Its clock is virtual, so hours of time-outs pass at once and deterministically.
#![expect(missing_docs, reason = "test support; the names say it")]

use std::collections::BTreeMap;
use std::time::{Duration, SystemTime};

use ib_mad::class_port_info::{ClassPortInfo, PmaCapabilities};
use ib_mad::fec::{PortExtendedSpeedsCounters, PortInfoExtended};
use ib_mad::hierarchy::HierarchyInfo;
use ib_mad::moment::Anchor;
use ib_mad::node::NodeKind;
use ib_mad::pma::PortSamplesControl;
use ib_mad::port_info::{PortInfo, capability, capability2};
use ib_mad::port_state::{PhysicalState, PortState};
use ib_mad::rate::{Speed, SpeedSet, Width};
use ib_mad::smp::{
    NODE_DESCRIPTION, NodeInfo, SmInfo, SmState, SwitchInfo, SwitchPortStateTable,
    encode_node_description,
};
use ib_mad::vendor_smp::SmpCapabilities;
use ib_mad::{Counter, Guid, Lid, Mad, Moment, PortNumber, method, status};

use crate::plane_set::PlaneSet;
use crate::transport::{
    LocalPort, MadTransport, OutgoingMad, QP1_QKEY, Received, SendError, TransportError,
};

/// Reaction to one MAD: a response after a time, with a status, to a redirect by LID and QP, or none.
#[derive(Clone, Debug)]
pub enum Reply {
    Answered(Duration),
    Status(u16),
    Redirected(Lid, u32),
    /// Two responses: one by this LID, and the right one after it.
    Forged(Lid),
    Lost,
    Expired,
    /// Response with another transaction id.
    Foreign,
    Short,
    Refused,
    Full,
}

/// The usual round trip.
pub const ROUND_TRIP: Duration = Duration::from_micros(20);

/// A node of the scripted fabric.
#[derive(Clone, Debug)]
pub struct ScriptedNode {
    pub guid: u64,
    pub kind: NodeKind,
    pub ports: u8,
    pub device_id: u16,
    pub description: Vec<u8>,
    /// By port; of a switch, on port 0.
    pub lids: BTreeMap<PortNumber, u16>,
    pub links: BTreeMap<PortNumber, (usize, PortNumber)>,
    /// CapabilityMask and CapabilityMask2 of its performance management agent.
    pub capabilities: (u16, u32),
    /// Tick of PortSamplesControl, if it is supported.
    pub tick: Option<u8>,
    /// FECModeActive of its ports, if PortInfoExtended is supported.
    pub fec: Option<u16>,
    pub state_change: bool,
    /// It announces SwitchPortStateTable, and has it.
    pub state_table: bool,
    /// It announces HierarchyInfo, and has this one of each port.
    pub hierarchy: Option<fn(PortNumber) -> HierarchyInfo>,
    /// CapabilityMask of GeneralInfo of subnet management, if it is supported.
    pub smp_capabilities: Option<[u32; 4]>,
    pub sm_lid: u16,
    /// SMState, priority and ActCount of its subnet manager, if any.
    pub manager: Option<(u8, u8, u32)>,
}

/// Modifies the data of a response.
pub type Garble = Box<dyn FnMut(&mut [u8]) + Send>;

/// The fabric, the transport to it, and the script.
pub struct ScriptedTransport {
    pub nodes: Vec<ScriptedNode>,
    /// The local node and port.
    pub local_port: (usize, PortNumber),
    /// The local port of each plane, if it is one of a multi-plane HCA.
    pub planes: BTreeMap<u8, (usize, PortNumber)>,
    pub reply: Box<dyn FnMut(&OutgoingMad) -> Reply + Send>,
    /// PortPhysicalState of ports without a link.
    pub polling: PhysicalState,
    pub speed: Speed,
    /// RedirectP_Key of redirects.
    pub redirect_p_key: u16,
    /// RedirectQ_Key of redirects.
    pub redirect_q_key: u32,
    /// Modifies the data of each response.
    pub garble: Garble,
    pub sent: Vec<OutgoingMad>,
    /// Maximum number of open requests: by queue pair, and GMPs to one LID.
    pub max_in_flight: [usize; 2],
    pub max_to_one_lid: usize,
    now: Moment,
    /// What arrives, by its time and the number of the MAD.
    arrivals: BTreeMap<(Moment, usize), Received>,
    /// Open requests: destination, whether they are SMPs, and until when they are open.
    open: Vec<(Lid, bool, Moment)>,
}

impl ScriptedTransport {
    pub fn new(nodes: Vec<ScriptedNode>) -> Self {
        ScriptedTransport {
            redirect_p_key: 0,
            redirect_q_key: QP1_QKEY,
            nodes,
            local_port: (0, 1),
            planes: BTreeMap::new(),
            reply: Box::new(|_| Reply::Answered(ROUND_TRIP)),
            polling: PhysicalState::Polling,
            speed: Speed::Edr,
            garble: Box::new(|_| {}),
            sent: Vec::new(),
            max_in_flight: [0; 2],
            max_to_one_lid: 0,
            now: Moment(0),
            arrivals: BTreeMap::new(),
            open: Vec::new(),
        }
    }

    /// The node that a MAD reaches, and its ingress port.
    fn target(&self, outgoing: &OutgoingMad) -> Option<(usize, PortNumber)> {
        if outgoing.lid != Lid::PERMISSIVE {
            let linked = self.nodes.iter().enumerate().filter(|(_, node)| !node.links.is_empty());
            let mut ends = linked.flat_map(|(at, node)| node.lids.iter().map(move |end| (at, end)));
            let (at, (port, _)) = ends.find(|(_, (_, lid))| **lid == outgoing.lid.0)?;
            return Some((at, *port));
        }
        let mut at = match outgoing.plane {
            0 => self.local_port,
            plane => *self.planes.get(&plane)?,
        };
        for (hop, port) in outgoing.mad.route_ports().iter().enumerate() {
            let node = &self.nodes[at.0];
            if hop > 0 && node.kind != NodeKind::Switch {
                return None;
            }
            at = *node.links.get(port)?;
        }
        Some(at)
    }

    fn respond(&self, outgoing: &OutgoingMad) -> Option<Mad> {
        let (index, ingress) = self.target(outgoing)?;
        let mut response = outgoing.mad.response();
        if self.fill(&mut response, index, ingress).is_none() {
            response.set_status(status::UNSUPPORTED_ATTRIBUTE);
        }
        Some(response)
    }

    /// Fills in the attribute; `None` if the node does not support it.
    fn fill(&self, response: &mut Mad, index: usize, ingress: PortNumber) -> Option<()> {
        let node = &self.nodes[index];
        let selected = response.port_select();
        match (response.is_smp(), response.attribute()) {
            (true, NODE_DESCRIPTION) => encode_node_description(response, &node.description),
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
            .encode(response),
            (true, SwitchInfo::ID) => {
                SwitchInfo { port_state_change: node.state_change, ..SwitchInfo::default() }
                    .encode(response);
            }
            (true, PortInfo::ID) => {
                self.port_info(node, response.modifier() as u8).encode(response);
            }
            (true, SwitchPortStateTable::ID) if node.state_table => {
                let first = response.modifier() as u8 * SwitchPortStateTable::PER_BLOCK;
                let ports = first..=first + (SwitchPortStateTable::PER_BLOCK - 1);
                let state = |port| self.port_info(node, port).state;
                let table = SwitchPortStateTable::default();
                ports
                    .fold(table, |table, port| table.with_state(port, state(port)))
                    .encode(response);
            }
            (true, HierarchyInfo::ID) => {
                let is_switch = node.kind == NodeKind::Switch;
                let (port, _) = HierarchyInfo::port_and_block(response.modifier());
                node.hierarchy?(if is_switch { port } else { ingress }).encode(response);
            }
            (true, SmpCapabilities::ID) => {
                SmpCapabilities { words: node.smp_capabilities? }.encode(response);
            }
            (true, SmInfo::ID) => {
                let (state, priority, act_count) = node.manager?;
                SmInfo { act_count, priority, state, ..SmInfo::default() }.encode(response);
            }
            (true, PortInfoExtended::ID) => {
                let (capabilities, active) = (PortInfoExtended::FEC_MODES, node.fec?);
                PortInfoExtended { capabilities, active, ..PortInfoExtended::default() }
                    .encode(response);
            }
            (false, PortSamplesControl::ID) => {
                let tick = node.tick?;
                PortSamplesControl { tick, ..PortSamplesControl::default() }.encode(response);
            }
            (false, PortExtendedSpeedsCounters::ID) => PortExtendedSpeedsCounters {
                port_corrected_symbols: symbol_errors(index, selected).into(),
                ..PortExtendedSpeedsCounters::default()
            }
            .encode(response),
            (false, ClassPortInfo::ID) => {
                let (mask, mask2) = node.capabilities;
                ClassPortInfo::new(PmaCapabilities { mask, mask2 }, 0).encode(response);
            }
            // Symbol errors: a value that identifies node and port, in both fields.
            (false, attribute) => {
                let mut fields = Counter::SymbolErrors.row().fields.iter();
                let field = fields.find(|field| field.attribute as u16 == attribute)?;
                field.write(response, symbol_errors(index, selected).into());
            }
            _ => return None,
        }
        Some(())
    }

    /// 4x where there is a link.
    fn port_info(&self, node: &ScriptedNode, port: PortNumber) -> PortInfo {
        let up = port == 0 || node.links.contains_key(&port);
        let speeds = Speed::ALL.into_iter().collect::<SpeedSet>().up_to(self.speed);
        let mut info = PortInfo {
            lid: Lid(node.lids.get(&port).copied().unwrap_or(0)),
            sm_lid: Lid(node.sm_lid),
            width_supported: Width::X4.up_to(),
            width_active: Width::X4.code(),
            state: if up { PortState::Active } else { PortState::Down },
            physical_state: if up { PhysicalState::LinkUp } else { self.polling },
            capabilities: if node.manager.is_some() { capability::IS_SM } else { 0 },
            ..PortInfo::default()
        }
        .with_speeds(speeds, speeds, Some(self.speed));
        if node.state_table {
            info.capabilities |= capability::CAPABILITY_MASK2;
            info.capabilities2 |= capability2::SWITCH_PORT_STATE_TABLE;
        }
        if node.hierarchy.is_some() {
            info.capabilities |= capability::HIERARCHY_INFO;
        }
        if node.fec.is_some() {
            info.capabilities |= capability::CAPABILITY_MASK2;
            info.capabilities2 |= capability2::PORT_INFO_EXTENDED;
        }
        info
    }
}

/// Symbol errors of a port of the scripted fabric.
pub fn symbol_errors(node: usize, port: PortNumber) -> u16 {
    (node as u16).wrapping_mul(100).wrapping_add(u16::from(port))
}

impl MadTransport for ScriptedTransport {
    fn now(&self) -> Moment {
        self.now
    }

    fn anchor(&self) -> Anchor {
        Anchor { moment: self.now, wall: SystemTime::UNIX_EPOCH + Duration::from_nanos(self.now.0) }
    }

    fn local_port(&self) -> LocalPort {
        let planes = self.planes.keys();
        let planes = planes.fold(PlaneSet::EMPTY, |set, plane| set.with(*plane));
        LocalPort { planes, ..LocalPort::UNKNOWN }
    }

    fn refresh(&mut self) {}

    fn send(&mut self, outgoing: &OutgoingMad) -> Result<(), SendError> {
        let reply = (self.reply)(outgoing);
        match reply {
            Reply::Refused => {
                return Err(SendError::Refused(std::io::Error::from_raw_os_error(libc::EINVAL)));
            }
            Reply::Full => return Err(SendError::Full),
            _ => self.sent.push(outgoing.clone()),
        }
        let whole = |mad: Mad| Received::Mad { from: outgoing.lid, mad };
        let (class, transaction_id) = (outgoing.mad.class(), outgoing.mad.transaction_id());
        let timed_out = Received::Expired { class, transaction_id };
        let mut echo = outgoing.mad.clone();
        echo.0[3] = method::GET_RESPONSE;
        let received = match reply {
            Reply::Answered(after) => Some(match self.respond(outgoing) {
                Some(mut mad) => {
                    (self.garble)(mad.data_mut());
                    (after, whole(mad))
                }
                // The kernel reports the time-out.
                None => (outgoing.timeout, timed_out),
            }),
            Reply::Status(status) => {
                echo.put_be(4, 2, status.into());
                Some((ROUND_TRIP, whole(echo)))
            }
            Reply::Redirected(redirect_lid, redirect_qp) => {
                echo.set_status(status::REDIRECT);
                echo.put_be(16, 2, ClassPortInfo::ID.into());
                ClassPortInfo {
                    redirect_lid,
                    redirect_qp,
                    redirect_pkey: self.redirect_p_key,
                    redirect_qkey: self.redirect_q_key,
                    ..ClassPortInfo::default()
                }
                .encode(&mut echo);
                Some((ROUND_TRIP, whole(echo)))
            }
            Reply::Expired => Some((ROUND_TRIP, timed_out)),
            Reply::Foreign => {
                echo.0[14] ^= 0x55;
                Some((ROUND_TRIP, whole(echo)))
            }
            Reply::Short => Some((ROUND_TRIP, Received::Malformed { bytes: 100 })),
            Reply::Forged(from) => {
                let forged = Received::Mad { from, mad: outgoing.mad.response() };
                self.arrivals.insert((self.now, self.sent.len()), forged);
                self.respond(outgoing).map(|mad| (ROUND_TRIP, whole(mad)))
            }
            Reply::Lost | Reply::Refused | Reply::Full => None,
        };
        let mut waits = outgoing.timeout + Duration::from_millis(100);
        if let Some((after, received)) = received {
            // Nothing that waits takes these two for its answer.
            if !matches!(reply, Reply::Foreign | Reply::Short) {
                waits = waits.min(after);
            }
            self.arrivals.insert((self.now + after, self.sent.len()), received);
        }
        let now = self.now;
        self.open.retain(|(.., until)| *until > now);
        self.open.push((outgoing.lid, outgoing.class.is_smp(), now + waits));
        let smp = self.open.iter().filter(|it| it.1).count();
        let gmp = self.open.len() - smp;
        let is_to_lid = |it: &&(Lid, bool, Moment)| it.0 == outgoing.lid && !it.1;
        let to_lid = self.open.iter().filter(is_to_lid).count();
        self.max_in_flight = [self.max_in_flight[0].max(smp), self.max_in_flight[1].max(gmp)];
        self.max_to_one_lid = self.max_to_one_lid.max(to_lid);
        Ok(())
    }

    fn receive(&mut self, until: Moment) -> Result<Option<Received>, TransportError> {
        if let Some(first) = self.arrivals.first_entry()
            && first.key().0 <= until
        {
            let ((at, _), received) = first.remove_entry();
            self.now = self.now.max(at);
            return Ok(Some(received));
        }
        self.now = self.now.max(until);
        Ok(None)
    }
}

/// Index of a node, and one of its ports.
pub type ScriptedEnd = (usize, PortNumber);

/// Builds a fabric: nodes by kind and ports, and cables by (node, port).
pub fn fabric(
    nodes: &[(NodeKind, u8)],
    cables: &[(ScriptedEnd, ScriptedEnd)],
) -> Vec<ScriptedNode> {
    let node = |(&(kind, ports), guid): (&(NodeKind, u8), u64)| ScriptedNode {
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
        state_table: false,
        hierarchy: None,
        smp_capabilities: None,
        sm_lid: 1,
        manager: None,
    };
    let mut built: Vec<ScriptedNode> = nodes.iter().zip(1..).map(node).collect();
    for &(a, b) in cables {
        built[a.0].links.insert(a.1, b);
        built[b.0].links.insert(b.1, a);
    }
    let mut lid = 0;
    for node in &mut built {
        let ports = match node.kind {
            NodeKind::Switch => vec![0],
            _ => node.links.keys().copied().collect(),
        };
        for port in ports {
            lid += 1;
            node.lids.insert(port, lid);
        }
    }
    // The node with the SM LID of all ports is the master.
    if let Some(first) = built.first_mut() {
        first.manager = Some((SmState::Master as u8, 0, 1));
    }
    built
}
