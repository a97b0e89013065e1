//! The subnet management agent: what nodes and ports say of themselves.

use crate::device::Model;
use crate::net::PortId;
use crate::world::{World, has_fec};
use ib_mad::device::QUANTUM_3;
use ib_mad::extended_speeds::PortInfoExtended;
use ib_mad::fec::Fec;
use ib_mad::node::{NodeKind, PortRole};
use ib_mad::port_info::{MellanoxExtendedPortInfo, PortInfo, capability, capability2};
use ib_mad::rate::{Speed, SpeedSet};
use ib_mad::smp;
use ib_mad::smp::{NodeInfo, PKeyTable, SmInfo, SmState, SwitchInfo};
use ib_mad::{Lid, PortNumber};
use ib_mad::{Mad, status};

use super::FINE;

/// GUIDInfo: the GUIDs of a port, of which it has one here.
const GUID_INFO: u16 = 0x0014;
/// fe80::/64, the prefix that every subnet has by default.
const LINK_LOCAL: u64 = 0xfe80 << 48;
/// 4096 bytes, in PortInfo's code.
const MTU_4096: u8 = 5;
/// Eight data lanes, in PortInfo's code.
const EIGHT_LANES: u8 = 4;
/// LinkDownDefaultState: a port without a link looks for one.
const POLLING: u8 = 2;
/// How many P_Keys an end port has room for.
const PARTITIONS: u16 = 64;
/// The default partition, as a full and as a limited member of it.
const DEFAULT_PARTITION: [u16; 2] = [0xffff, 0x7fff];
/// The largest table of LIDs that there is.
const LINEAR_TABLE: u16 = 0xc000;
/// 4.096 µs times two to the 18th: a second.
const ABOUT_A_SECOND: u8 = 18;
/// The threshold that devices come with.
const USUAL_THRESHOLD: u8 = 8;

/// The port of a Q3400 that leads to the router inside it.
const ROUTER_PORT: PortNumber = 149;

/// Fills an answer in, and tells its status.
pub(super) fn fill(world: &World, at: PortId, request: &Mad, answer: &mut Mad) -> u16 {
    let net = world.net();
    let node = net.node_of(at);
    let is_switch = node.kind == NodeKind::Switch;
    match request.attribute() {
        smp::NODE_DESCRIPTION => {
            smp::encode_node_description(answer, node.description.as_bytes());
        }
        NodeInfo::ID => node_info(world, at).encode(answer),
        SwitchInfo::ID if is_switch => switch_info(world, at).encode(answer),
        PortInfo::ID => match asked(world, at, request.modifier()) {
            Some(port) => protected(world, at, request, port_info(world, at, port)).encode(answer),
            None => return status::INVALID_FIELD,
        },
        PortInfoExtended::ID if node.model.fec => match asked(world, at, request.modifier()) {
            Some(port) => port_info_extended(world, port).encode(answer),
            None => return status::INVALID_FIELD,
        },
        MellanoxExtendedPortInfo::ID if node.model.mellanox_ext_port_info => {
            match asked(world, at, request.modifier()) {
                Some(port) => mellanox_port_info(world, port).encode(answer),
                None => return status::INVALID_FIELD,
            }
        }
        GUID_INFO => {
            if request.modifier() == 0 {
                answer.data_mut()[..8].copy_from_slice(&net.port(at).guid.0.to_be_bytes());
            }
        }
        PKeyTable::ID => return partitions(world, at, request, answer),
        SmInfo::ID => match sm_info(world, at) {
            Some(info) => info.encode(answer),
            None => return status::UNSUPPORTED_ATTRIBUTE,
        },
        _ => return status::UNSUPPORTED_ATTRIBUTE,
    }
    FINE
}

/// The port that a modifier names: 0 is a switch's own, and on an adapter the one that the question
/// came in by (IBTA 1.4, 14.2.5.6).
fn asked(world: &World, at: PortId, modifier: u32) -> Option<PortId> {
    let net = world.net();
    let is_switch = net.node_of(at).kind == NodeKind::Switch;
    // The highest bit asks for the extended speeds to be told, which they are anyway.
    let number = PortNumber::try_from(modifier & 0x7fff_ffff).ok()?;
    if number == 0 && !is_switch {
        return Some(at);
    }
    net.port_of(net.port(at).node, number)
}

fn node_info(world: &World, at: PortId) -> NodeInfo {
    let (net, node) = (world.net(), world.net().node_of(at));
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

fn switch_info(world: &World, at: PortId) -> SwitchInfo {
    let node = world.net().port(at).node;
    SwitchInfo {
        linear_table_size: LINEAR_TABLE,
        linear_table_top: world.subnet(at).map_or(0, |subnet| subnet.top().0),
        life_time: ABOUT_A_SECOND,
        port_state_change: world.port_state_change(node),
        enhanced_port0: world.net().node(node).enhanced_port0,
        ..SwitchInfo::default()
    }
}

/// What a port can do, whatever is enabled. Of a device that is not known it is told as ibsim does:
/// the old speeds always, and all of the extended ones if any of them is in use.
fn supported(model: &Model, enabled: SpeedSet) -> SpeedSet {
    let base = if model.device_id != 0 || enabled.fastest() > Some(Speed::Fdr10) {
        model.fastest
    } else {
        Speed::Qdr
    };
    let all = Speed::ALL.into_iter().filter(|&speed| speed <= base && speed != Speed::Fdr10);
    all.chain(Speed::ALL.into_iter().filter(|&speed| enabled.contains(speed))).collect()
}

/// What any port of a switch can do: its port 0 tells in its capabilities which kinds of speeds the
/// others have, also where nothing is said of its own.
fn supported_by_any(world: &World, switch: PortId) -> SpeedSet {
    let (net, node) = (world.net(), world.net().port(switch).node);
    let is_enabled = |speed: Speed| {
        let mut ports = std::iter::once(switch).chain(net.plugs_of(node));
        ports.any(|port| net.port(port).speeds.contains(speed))
    };
    let enabled = Speed::ALL.into_iter().filter(|&speed| is_enabled(speed)).collect();
    supported(net.node(node).model, enabled)
}

fn port_info(world: &World, at: PortId, port: PortId) -> PortInfo {
    let net = world.net();
    let (built, now, model) = (net.port(port), world.port(port), net.node_of(port).model);
    let is_switch = net.node_of(port).kind == NodeKind::Switch;
    let is_endpoint = !is_switch || built.number == 0;
    // PortInfo has no bit for FDR10, and calls it QDR.
    let speed = now.trained.map(|(_, speed)| speed);
    let speed = speed.map(|speed| if speed == Speed::Fdr10 { Speed::Qdr } else { speed });
    let info = PortInfo {
        gid_prefix: if is_endpoint { LINK_LOCAL } else { 0 },
        lid: now.lid,
        sm_lid: if is_endpoint { world.sm_lid(port) } else { Lid(0) },
        local_port: net.port(at).number,
        width_enabled: built.widths,
        width_supported: model.widths | built.widths,
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
        local_phy_errors: USUAL_THRESHOLD,
        overrun_errors: USUAL_THRESHOLD,
        ..PortInfo::default()
    }
    .with_speeds(supported(model, built.speeds), built.speeds, speed);
    if !is_endpoint {
        // A switch's masks stand on its port 0 and hold for all of its ports.
        return PortInfo { capabilities: 0, capabilities2: 0, ..info };
    }
    let info = if is_switch {
        let of_all = supported_by_any(world, port);
        let of_any = PortInfo::default().with_speeds(of_all, of_all, None);
        let PortInfo { capabilities, capabilities2, .. } = of_any;
        PortInfo { capabilities, capabilities2, ..info }
    } else {
        info
    };
    let manager = if sm_info(world, port).is_some() { capability::IS_SM } else { 0 };
    let fec = model.fec;
    PortInfo {
        capabilities: info.capabilities
            | manager
            | if fec { capability::CAPABILITY_MASK2 } else { 0 },
        capabilities2: info.capabilities2 | if fec { capability2::PORT_INFO_EXTENDED } else { 0 },
        ..info
    }
}

/// What of its protection a node tells (IBTA 1.4, 14.2.4.1).
fn protected(world: &World, at: PortId, request: &Mad, info: PortInfo) -> PortInfo {
    let protection = world.protection(world.net().port(at).node);
    PortInfo {
        m_key: if protection.tells(request.m_key()) { protection.m_key.0 } else { 0 },
        m_key_protect: protection.level,
        m_key_violations: protection.violations,
        ..info
    }
}

fn port_info_extended(world: &World, port: PortId) -> PortInfoExtended {
    let modes = 1 << Fec::ReedSolomon.code();
    PortInfoExtended {
        capabilities: PortInfoExtended::FEC_MODES,
        active: if has_fec(world.port(port)) { Fec::ReedSolomon.code() } else { Fec::None.code() },
        hdr_supported: modes,
        hdr_enabled: modes,
        ndr_supported: modes,
        ndr_enabled: modes,
        ..PortInfoExtended::default()
    }
}

fn mellanox_port_info(world: &World, port: PortId) -> MellanoxExtendedPortInfo {
    let fdr10 = |is: bool| if is { MellanoxExtendedPortInfo::FDR10 } else { 0 };
    let enabled = fdr10(world.net().port(port).speeds.contains(Speed::Fdr10));
    let active = world.port(port).trained.is_some_and(|(_, speed)| speed == Speed::Fdr10);
    let role = role(world, port);
    MellanoxExtendedPortInfo {
        state_change_enable: 0,
        speed_supported: enabled,
        speed_enabled: enabled,
        speed_active: fdr10(active),
        is_fnm: role == PortRole::Fnm,
        is_special: role == PortRole::Router,
        special_type: if role == PortRole::Router { MellanoxExtendedPortInfo::ROUTER } else { 0 },
    }
}

/// What a port of a Quantum-3 is for: cables between the ASICs of one system are FNM, and the router
/// inside it is at port 149 (Q3400).
fn role(world: &World, port: PortId) -> PortRole {
    let net = world.net();
    let node = net.node_of(port);
    let Some(peer) = net.port(port).cable.map(|peer| net.node_of(peer)) else {
        return PortRole::Cable;
    };
    let same_system = peer.system_guid == node.system_guid && peer.guid != node.guid;
    match (node.device_id, peer.kind) {
        (QUANTUM_3, NodeKind::Switch) if same_system => PortRole::Fnm,
        (QUANTUM_3, NodeKind::Router) if net.port(port).number == ROUTER_PORT => PortRole::Router,
        _ => PortRole::Cable,
    }
}

fn partitions(world: &World, at: PortId, request: &Mad, answer: &mut Mad) -> u16 {
    let net = world.net();
    let (number, block) = PKeyTable::port_and_block(request.modifier());
    let is_switch = net.node_of(at).kind == NodeKind::Switch;
    let no_port = is_switch && net.port_of(net.port(at).node, number).is_none();
    if no_port || usize::from(block) * PKeyTable::PER_BLOCK >= usize::from(PARTITIONS) {
        return status::INVALID_FIELD;
    }
    let mut keys = [0; PKeyTable::PER_BLOCK];
    if block == 0 {
        keys[0] = DEFAULT_PARTITION[usize::from(world.is_limited(net.port(at).node))];
    }
    PKeyTable { keys }.encode(answer);
    FINE
}

/// The subnet manager at a port, if one runs there.
fn sm_info(world: &World, at: PortId) -> Option<SmInfo> {
    let subnet = world.subnet(at)?;
    let seat = world.net().manager_seat(at);
    let state = if subnet.master == seat {
        SmState::Master as u8
    } else if subnet.standbys.contains(&seat) {
        SmState::Standby as u8
    } else {
        return None;
    };
    Some(SmInfo {
        guid: world.net().port(seat).guid,
        sm_key: 0,
        // A manager counts its own activity, about one a second.
        act_count: (world.now().0 / 1_000_000_000) as u32,
        priority: 0,
        state,
    })
}
