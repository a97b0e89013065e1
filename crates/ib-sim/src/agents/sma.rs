//! The subnet management agent.

use super::port_role::role;
use super::{forwarding, hierarchy};
use crate::change::TableBehavior;
use crate::device::DeviceModel;
use crate::net::rates::Rates;
use crate::net::{Net, Node, PortId};
use crate::simulation::Simulation;
use ib_mad::fec::{Fec, PortInfoExtended};
use ib_mad::forwarding_table::LinearForwardingTable;
use ib_mad::hierarchy::{HierarchyInfo, template};
use ib_mad::node::{NodeKind, PortRole};
use ib_mad::port_info::{MellanoxExtendedPortInfo, PortInfo, capability, capability2};
use ib_mad::port_state::PortState;
use ib_mad::rate::{Speed, SpeedSet};
use ib_mad::smp::{self, NodeInfo, PKeyTable, SmInfo, SmState, SwitchInfo, SwitchPortStateTable};
use ib_mad::vendor_smp::{ExtendedNodeInfo, ExtendedNodeType, SmpCapabilities};
use ib_mad::{Lid, Mad, PortNumber, status};

/// GUIDInfo: the GUIDs of a port; here it has one.
const GUID_INFO: u16 = 0x0014;
/// fe80::/64, the default prefix of subnets.
const LINK_LOCAL: u64 = 0xfe80 << 48;
/// 4096 bytes, in PortInfo's code.
const MTU_4096: u8 = 5;
/// Eight data lanes, in PortInfo's code.
const EIGHT_LANES: u8 = 4;
/// LinkDownDefaultState Polling.
const POLLING: u8 = 2;
/// The number of P_Keys of an end port.
const PARTITIONS: u16 = 64;
/// The P_Keys of a full and of a limited member of the default partition.
const DEFAULT_PARTITION: [u16; 2] = [0xffff, 0x7fff];
/// 4.096 µs times two to the 18th: a second.
const ABOUT_A_SECOND: u8 = 18;
/// The default threshold of devices.
const DEFAULT_THRESHOLD: u8 = 8;

/// Fills in a response; the error is its status.
pub(super) fn fill(
    simulation: &Simulation,
    at: PortId,
    request: &Mad,
    response: &mut Mad,
) -> Result<(), u16> {
    let net = simulation.net();
    let node = net.node_of(at);
    let port = || port_of_modifier(net, at, request.modifier()).ok_or(status::INVALID_FIELD);
    match request.attribute() {
        smp::NODE_DESCRIPTION => {
            smp::encode_node_description(response, node.description.as_bytes());
        }
        NodeInfo::ID => node_info(net, at).encode(response),
        SwitchInfo::ID if node.kind == NodeKind::Switch => {
            switch_info(simulation, at).encode(response);
        }
        SwitchPortStateTable::ID if node.model.state_table => {
            state_table(simulation, at, request.modifier())?.encode(response);
        }
        LinearForwardingTable::ID if node.kind == NodeKind::Switch => {
            forwarding::table(simulation, at, request)?.encode(response);
        }
        SmpCapabilities::ID if node.model.nvlink => {
            // Capabilities 54 and 57: management of NVLink fabrics, and a setting of them.
            SmpCapabilities { words: [0, 1 << 22 | 1 << 25, 0, 0] }.encode(response);
        }
        SmpCapabilities::ID if is_xdr(node) && request.modifier() == SmpCapabilities::MODIFIER => {
            let words = [1 << SmpCapabilities::EXTENDED_NODE_INFO, 0, 0, 0];
            SmpCapabilities { words }.encode(response);
        }
        ExtendedNodeInfo::ID if is_xdr(node) => extended_node_info(net, at).encode(response),
        HierarchyInfo::ID => hierarchy::info(simulation, at, request)?.encode(response),
        PortInfo::ID => {
            let protection = simulation.protection(net.port(at).node);
            let shows_m_key = protection.shows_m_key(request.m_key());
            let info = PortInfo {
                m_key: if shows_m_key { protection.m_key.0 } else { 0 },
                m_key_protect: protection.level,
                m_key_violations: protection.violations,
                ..port_info(simulation, at, port()?)
            };
            info.encode(response);
        }
        PortInfoExtended::ID if node.model.fec => {
            port_info_extended(simulation, port()?).encode(response);
        }
        MellanoxExtendedPortInfo::ID => mellanox_port_info(simulation, port()?).encode(response),
        GUID_INFO if request.modifier() == 0 => {
            response.data_mut()[..8].copy_from_slice(&net.port(at).guid.0.to_be_bytes());
        }
        GUID_INFO => {}
        PKeyTable::ID => partitions(simulation, at, request.modifier())?.encode(response),
        SmInfo::ID => {
            sm_info(simulation, at).ok_or(status::UNSUPPORTED_ATTRIBUTE)?.encode(response);
        }
        _ => return Err(status::UNSUPPORTED_ATTRIBUTE),
    }
    Ok(())
}

/// The port of an attribute modifier: 0 is a switch's port 0, and on an adapter the port that the
/// request came in by (IBTA 1.4, 14.2.5.6).
fn port_of_modifier(net: &Net, at: PortId, modifier: u32) -> Option<PortId> {
    let is_switch = net.node_of(at).kind == NodeKind::Switch;
    // The highest bit requests the extended speeds, which are always filled in.
    let number = PortNumber::try_from(modifier & 0x7fff_ffff).ok()?;
    if number == 0 && !is_switch {
        return Some(at);
    }
    net.port_by_number(net.port(at).node, number)
}

fn node_info(net: &Net, at: PortId) -> NodeInfo {
    let node = net.node_of(at);
    NodeInfo {
        base_version: 1,
        class_version: 1,
        node_type: NodeInfo::type_of(node.kind),
        port_count: node.port_count,
        system_guid: node.system_guid,
        node_guid: node.guid,
        port_guid: net.port(at).guid,
        partition_cap: PARTITIONS,
        device_id: node.device_id,
        revision: 0,
        local_port: net.port(at).number,
        vendor_id: node.vendor_id,
    }
}

/// Whether a device announces what XDR has brought.
fn is_xdr(node: &Node) -> bool {
    matches!(node.model.hierarchy, template::XDR_SWITCH | template::XDR_ADAPTER)
}

fn extended_node_info(net: &Net, at: PortId) -> ExtendedNodeInfo {
    let node = net.port(at).node;
    let planes = net.cable_ports(node).filter_map(|port| net.port(port).plane);
    let max_planes = planes.map(|plane| plane.planes).max().unwrap_or(0);
    let is_adapter = net.node(node).kind != NodeKind::Switch && max_planes > 0;
    let node_type = if is_adapter { ExtendedNodeType::MultiPlaneHca as u8 } else { 0 };
    ExtendedNodeInfo { node_type, max_planes }
}

fn switch_info(simulation: &Simulation, at: PortId) -> SwitchInfo {
    let node = simulation.net().port(at).node;
    let highest_lid = simulation.subnet(at).and_then(|subnet| subnet.lids.last_key_value());
    SwitchInfo {
        linear_table_size: forwarding::ENTRIES,
        linear_table_top: highest_lid.map_or(0, |(lid, _)| lid.0),
        life_time: ABOUT_A_SECOND,
        port_state_change: simulation.node(node).port_state_change,
        enhanced_port0: simulation.net().node(node).enhanced_port0,
        ..SwitchInfo::default()
    }
}

/// LinkSpeedSupported of a port. An unknown device supports, as in ibsim, the old speeds, and all
/// extended ones if any of them is enabled.
fn supported(model: &DeviceModel, enabled: SpeedSet) -> SpeedSet {
    let base = if model.device_id != 0 || enabled.fastest() > Some(Speed::Fdr10) {
        model.fastest
    } else {
        Speed::Qdr
    };
    let all = Speed::ALL.into_iter().filter(|&speed| speed <= base && speed != Speed::Fdr10);
    all.chain(Speed::ALL.into_iter().filter(|&speed| enabled.contains(speed))).collect()
}

fn port_info(simulation: &Simulation, at: PortId, port: PortId) -> PortInfo {
    let net = simulation.net();
    let (built, now, model) = (net.port(port), simulation.port(port), net.node_of(port).model);
    let is_switch = net.node_of(port).kind == NodeKind::Switch;
    let is_endpoint = !is_switch || built.number == 0;
    // PortInfo has no bit for FDR10, and calls it QDR.
    let speed = now.trained.map(|(_, speed)| speed);
    let speed = speed.map(|speed| if speed == Speed::Fdr10 { Speed::Qdr } else { speed });
    let info = PortInfo {
        gid_prefix: if is_endpoint { LINK_LOCAL } else { 0 },
        lid: now.lid,
        sm_lid: if is_endpoint { simulation.sm_lid(port) } else { Lid(0) },
        local_port: net.port(at).number,
        width_enabled: built.rates.widths,
        // One lane of XDR is a plane, and no wider.
        width_supported: match built.plane {
            Some(_) => built.rates.widths,
            None => model.widths | built.rates.widths,
        },
        width_active: now.trained.map_or(0, |(width, _)| width.code()),
        state: now.state,
        physical_state: now.physical_state(),
        link_down_default_state: POLLING,
        lmc: built.lmc,
        neighbor_mtu: MTU_4096,
        mtu_cap: MTU_4096,
        vl_cap: EIGHT_LANES,
        operational_vls: EIGHT_LANES,
        guid_cap: u8::from(is_endpoint),
        subnet_timeout: ABOUT_A_SECOND,
        response_time: ABOUT_A_SECOND,
        local_phy_errors: DEFAULT_THRESHOLD,
        overrun_errors: DEFAULT_THRESHOLD,
        ..PortInfo::default()
    }
    .with_speeds(supported(model, built.rates.speeds), built.rates.speeds, speed);
    if !is_endpoint {
        // A switch's masks are in port 0, for all of its ports.
        return PortInfo { capabilities: 0, capabilities2: 0, ..info };
    }
    let PortInfo { mut capabilities, mut capabilities2, .. } = info;
    if is_switch {
        // The capabilities of port 0 announce the kinds of speeds of all ports.
        let others = net.cable_ports(built.node).map(|port| net.port(port).rates);
        let of_all = supported(model, others.fold(built.rates, Rates::union).speeds);
        let of_any = PortInfo::default().with_speeds(of_all, of_all, None);
        (capabilities, capabilities2) = (of_any.capabilities, of_any.capabilities2);
    }
    if sm_info(simulation, port).is_some() {
        capabilities |= capability::IS_SM;
    }
    if hierarchy::is_announced(simulation, port) {
        capabilities |= capability::HIERARCHY_INFO;
    }
    if model.state_table && simulation.node(built.node).state_table != TableBehavior::Absent {
        capabilities |= capability::CAPABILITY_MASK2;
        capabilities2 |= capability2::SWITCH_PORT_STATE_TABLE;
    }
    if model.fec {
        capabilities |= capability::CAPABILITY_MASK2;
        capabilities2 |= capability2::PORT_INFO_EXTENDED;
    }
    PortInfo { capabilities, capabilities2, ..info }
}

/// A block of a switch's port states. Ports that it does not have are Down.
fn state_table(
    simulation: &Simulation,
    at: PortId,
    block: u32,
) -> Result<SwitchPortStateTable, u16> {
    let net = simulation.net();
    let node = net.port(at).node;
    let behavior = simulation.node(node).state_table;
    if matches!(behavior, TableBehavior::Absent | TableBehavior::Refused) {
        return Err(status::UNSUPPORTED_ATTRIBUTE);
    }
    let last = SwitchPortStateTable::block_of(net.node(node).port_count);
    let block = u8::try_from(block).ok().filter(|block| *block <= last);
    let first = block.ok_or(status::INVALID_FIELD)? * SwitchPortStateTable::PER_BLOCK;
    let state = |number| match behavior {
        TableBehavior::Zero => PortState::Other(0),
        TableBehavior::Wrong => PortState::Active,
        TableBehavior::Normal
        | TableBehavior::Absent
        | TableBehavior::Refused
        | TableBehavior::Hung => {
            let port = net.port_by_number(node, number);
            port.map_or(PortState::Down, |port| simulation.port(port).state)
        }
    };
    let ports = first..=first + (SwitchPortStateTable::PER_BLOCK - 1);
    let table = SwitchPortStateTable::default();
    Ok(ports.fold(table, |table, port| table.with_state(port, state(port))))
}

fn port_info_extended(simulation: &Simulation, port: PortId) -> PortInfoExtended {
    let modes = 1 << Fec::ReedSolomon as u16;
    let active = if simulation.port(port).has_fec() { Fec::ReedSolomon } else { Fec::None };
    PortInfoExtended {
        capabilities: PortInfoExtended::FEC_MODES,
        active: active as u16,
        hdr_supported: modes,
        hdr_enabled: modes,
        ndr_supported: modes,
        ndr_enabled: modes,
        ..PortInfoExtended::default()
    }
}

fn mellanox_port_info(simulation: &Simulation, port: PortId) -> MellanoxExtendedPortInfo {
    let fdr10 = |is: bool| if is { MellanoxExtendedPortInfo::FDR10 } else { 0 };
    let enabled = fdr10(simulation.net().port(port).rates.speeds.contains(Speed::Fdr10));
    let active = simulation.port(port).trained.is_some_and(|(_, speed)| speed == Speed::Fdr10);
    let role = role(simulation.net(), port);
    MellanoxExtendedPortInfo {
        state_change_enable: 0,
        speed_supported: enabled,
        speed_enabled: enabled,
        speed_active: fdr10(active),
        is_fnm: role == PortRole::Fnm,
        is_special: matches!(role, PortRole::Router | PortRole::Other),
        special_type: match role {
            PortRole::Router => MellanoxExtendedPortInfo::ROUTER,
            PortRole::Other => MellanoxExtendedPortInfo::AGGREGATION_NODE,
            PortRole::Cable | PortRole::Fnm => 0,
        },
    }
}

/// A block of P_Keys of any port of a node.
fn partitions(simulation: &Simulation, at: PortId, modifier: u32) -> Result<PKeyTable, u16> {
    let net = simulation.net();
    let node = net.port(at).node;
    let (number, block) = PKeyTable::port_and_block(modifier);
    let is_switch = net.node(node).kind == NodeKind::Switch;
    let no_port = is_switch && net.port_by_number(node, number).is_none();
    if no_port || usize::from(block) * PKeyTable::PER_BLOCK >= usize::from(PARTITIONS) {
        return Err(status::INVALID_FIELD);
    }
    let mut keys = [0; PKeyTable::PER_BLOCK];
    if block == 0 {
        keys[0] = DEFAULT_PARTITION[usize::from(simulation.node(node).limited)];
    }
    Ok(PKeyTable { keys })
}

/// The subnet manager at a port, if one runs there.
fn sm_info(simulation: &Simulation, at: PortId) -> Option<SmInfo> {
    let subnet = simulation.subnet(at)?;
    let sm_port = simulation.net().sm_port(at);
    let is_standby = || subnet.standbys.contains(&sm_port).then_some(SmState::Standby);
    let state = if subnet.master == sm_port { SmState::Master } else { is_standby()? };
    Some(SmInfo {
        guid: simulation.net().port(sm_port).guid,
        sm_key: 0,
        // A subnet manager increments it about once a second.
        act_count: (simulation.now().0 / 1_000_000_000) as u32,
        priority: 0,
        state: state as u8,
    })
}
