//! HierarchyInfo: what is printed at the front panel beside each port.
//!
//! Template 3 is filled as public dumps of Quantum-2 and ConnectX-7 show it. Which values devices of XDR fill in the
//! other templates is not known: here all that a device of one chassis has, and the values of planes that
//! opensm/osm_planarized.h distinguishes.

use ib_mad::front_panel::{AsicName, PanelPortType};
use ib_mad::hierarchy::{HierarchyInfo, template};
use ib_mad::node::{NodeKind, PortRole};
use ib_mad::{Mad, PortNumber, status};

use super::port_role::role;
use crate::change::FrontPanelBehavior;
use crate::net::{FNM1_PORT, Net, PlanePort, PortId};
use crate::simulation::Simulation;

/// Ports of a Quantum-2 that have cages: those behind them are internal.
const NDR_PORTS: PortNumber = 64;

/// Whether PortInfo of a port announces it.
pub(super) fn is_announced(simulation: &Simulation, port: PortId) -> bool {
    let net = simulation.net();
    let behavior = simulation.node(net.port(port).node).front_panel;
    net.node_of(port).model.hierarchy != 0 && behavior != FrontPanelBehavior::Absent
}

/// The block that a request asks for, of a port that received it.
pub(super) fn info(
    simulation: &Simulation,
    at: PortId,
    request: &Mad,
) -> Result<HierarchyInfo, u16> {
    let net = simulation.net();
    let node = net.node_of(at);
    let behavior = simulation.node(net.port(at).node).front_panel;
    if !is_announced(simulation, at) || behavior == FrontPanelBehavior::Refused {
        return Err(status::UNSUPPORTED_ATTRIBUTE);
    }
    let (number, block) = HierarchyInfo::port_and_block(request.modifier());
    // An adapter responds for the port that receives the request, whatever the modifier says.
    let port = if node.kind == NodeKind::Switch {
        net.port_by_number(net.port(at).node, number).ok_or(status::INVALID_FIELD)?
    } else {
        at
    };
    let mut info = match (node.model.hierarchy, block) {
        (template::NDR, 0) => ndr(net, port),
        (template::XDR_SWITCH, 0) if net.port(port).number == 0 => {
            location(template::SWITCH_LOCATION)
        }
        (template::XDR_SWITCH, 0) => xdr_switch(net, port),
        (template::XDR_ADAPTER, 0) => xdr_adapter(net, port),
        (template::XDR_ADAPTER, 1) => location(template::XDR_ADAPTER),
        _ => return Err(status::INVALID_FIELD),
    };
    if behavior == FrontPanelBehavior::Blank {
        info = HierarchyInfo::empty(info.template);
    }
    info.highest_index = u8::from(info.template == template::XDR_ADAPTER);
    info.active_index = info.highest_index;
    info.levels = HierarchyInfo::PER_BLOCK as u8;
    Ok(info)
}

/// The cage of a switch port, and the port in the cage: two in each.
fn cage_and_port(number: PortNumber) -> [u32; 2] {
    [u32::from(number).div_ceil(2), 2 - u32::from(number) % 2]
}

/// The PCI address of an adapter: function 0 of a device on a bus of its own.
fn pci(net: &Net, port: PortId) -> u32 {
    let bus = net.port(port).node.0 % 0xff + 1;
    bus << 8
}

fn ndr(net: &Net, port: PortId) -> HierarchyInfo {
    let mut info = HierarchyInfo::empty(template::NDR);
    let number = net.port(port).number;
    if net.node_of(port).kind != NodeKind::Switch {
        (info.values[1], info.values[2]) = (number.into(), 1);
        info.values[6] = pci(net, port);
    } else if (1..=NDR_PORTS).contains(&number) {
        [info.values[2], info.values[1]] = cage_and_port(number);
        info.values[3] = 1;
    }
    info
}

fn xdr_switch(net: &Net, port: PortId) -> HierarchyInfo {
    let mut info = HierarchyInfo::empty(template::XDR_SWITCH);
    let (of, node) = (net.port(port), net.node_of(port));
    if role(net, port) == PortRole::Fnm {
        info.values[0] = PanelPortType::Fnm as u32;
        info.values[1] = node.asic.map_or(u32::MAX, |asic| asic as u32);
        info.values[2] = of.number.into();
        return info;
    }
    if let Some(front) = net.front_port(port) {
        info.values[0] = PanelPortType::Switch as u32;
        [info.values[3], info.values[4]] = cage_and_port(front);
    } else if of.number == FNM1_PORT && of.plane.is_some() {
        info.values[0] = PanelPortType::Fnm1 as u32;
    } else {
        return info;
    }
    if let Some(asic) = node.asic {
        info.values[6] = match asic {
            AsicName::A1 | AsicName::A => 1,
            AsicName::A2 | AsicName::B => 2,
            AsicName::A3 => 3,
            AsicName::A4 => 4,
        };
        // The first of the nodes manages all cages; an ordinary port has plane 0.
        info.values[9] = u32::from(!matches!(asic, AsicName::A2 | AsicName::A3 | AsicName::A4));
        (info.values[10], info.values[11]) = (0, 0);
    }
    set_plane(&mut info, of.plane);
    info
}

fn set_plane(info: &mut HierarchyInfo, plane: Option<PlanePort>) {
    if let Some(PlanePort { aggregated, plane, planes }) = plane {
        let values = [plane, planes, aggregated].map(u32::from);
        info.values[10..13].copy_from_slice(&values);
    }
}

fn xdr_adapter(net: &Net, port: PortId) -> HierarchyInfo {
    let mut info = HierarchyInfo::empty(template::XDR_ADAPTER);
    let of = net.port(port);
    let number = u32::from(of.number);
    // The planes of a port share its cage.
    let in_cage = if of.plane.is_some() { 1 } else { number };
    info.values[..5].copy_from_slice(&[PanelPortType::Hca as u32, 0, number, 1, in_cage]);
    info.values[9] = pci(net, port);
    set_plane(&mut info, of.plane);
    info
}

/// The device in its system: the first of CPU node 0, in slot 1 of tray 1.
fn location(template: u64) -> HierarchyInfo {
    let mut info = HierarchyInfo::empty(template);
    (info.values[0], info.values[1]) = (0, 1 << 16 | 1 << 8);
    info
}

#[cfg(test)]
mod tests {
    use super::super::tests::{get, simulation_of};
    use super::*;
    use ib_mad::hierarchy::Location;
    use ib_mad::port_info::PortInfo;
    use ib_mad::smp;
    use ib_mad::{FrontPanel, Moment};

    use crate::change::FabricChange;

    /// All nodes report front panels.
    fn simulation(switch: &str, hca: &str, behavior: FrontPanelBehavior) -> Simulation {
        let mut simulation = simulation_of(switch, hca);
        let nodes = simulation.net().node_ids().collect();
        let change = FabricChange::SetFrontPanel { nodes, behavior };
        simulation.apply(Moment::default(), change);
        simulation
    }

    fn announced(simulation: &Simulation, at: &str) -> bool {
        PortInfo::decode(&get(simulation, at, smp::port_info(0))).has_hierarchy_info()
    }

    /// The label of a port, or the status of a refusal.
    fn label(simulation: &Simulation, at: &str, port: PortNumber) -> Result<Option<String>, u16> {
        let response = get(simulation, at, HierarchyInfo::query(port, 0));
        match response.status() {
            0 => {
                let kind = if port == 0 { NodeKind::Ca } else { NodeKind::Switch };
                let panel = FrontPanel::new(&HierarchyInfo::decode(&response), kind);
                Ok(panel.and_then(|panel| panel.label()))
            }
            status => Err(status),
        }
    }

    #[test]
    fn each_generation_has_its_labels() {
        let normal = FrontPanelBehavior::Normal;
        let some = |text: &str| Ok(Some(text.to_owned()));
        let ndr = simulation("quantum-2", "connectx-7", normal);
        assert!(announced(&ndr, "leaf-0-0[0]") && announced(&ndr, "host-0[1]"));
        assert_eq!(label(&ndr, "leaf-0-0[0]", 1), some("1/1/1"));
        assert_eq!(label(&ndr, "leaf-0-0[1]", 6), some("1/3/2"));
        assert_eq!(label(&ndr, "leaf-0-0[1]", 7), Err(status::INVALID_FIELD));
        assert!(label(&ndr, "host-0[1]", 0).unwrap().unwrap().ends_with("D0F0/1/1"));

        let xdr = simulation("quantum-3", "connectx-8", normal);
        assert_eq!(label(&xdr, "leaf-0-0[0]", 5), some("sw3p1"));
        assert!(label(&xdr, "host-0[1]", 0).unwrap().unwrap().ends_with("D0F0HCA1p1"));
        for (at, port, block) in [("leaf-0-0[0]", 0, 0), ("host-0[1]", 0, 1)] {
            let info = get(&xdr, at, HierarchyInfo::query(port, block));
            let location = Location::new(&HierarchyInfo::decode(&info)).unwrap();
            assert_eq!((location.tray, location.slot), (Some(1), Some(1)), "{at}");
        }
        let beyond = get(&xdr, "host-0[1]", HierarchyInfo::query(0, 2)).status();
        assert_eq!(beyond, status::INVALID_FIELD);
        // Older devices have none.
        let old = simulation("quantum", "connectx-6", normal);
        assert!(!announced(&old, "leaf-0-0[0]"));
        assert_eq!(label(&old, "leaf-0-0[0]", 1), Err(status::UNSUPPORTED_ATTRIBUTE));
    }

    #[test]
    fn behavior_decides_what_is_reported() {
        for (behavior, is_announced, expected) in [
            (FrontPanelBehavior::Absent, false, Err(status::UNSUPPORTED_ATTRIBUTE)),
            (FrontPanelBehavior::Refused, true, Err(status::UNSUPPORTED_ATTRIBUTE)),
            (FrontPanelBehavior::Blank, true, Ok(None)),
        ] {
            let simulation = simulation("quantum-2", "connectx-7", behavior);
            assert_eq!(announced(&simulation, "leaf-0-0[0]"), is_announced, "{behavior:?}");
            assert_eq!(label(&simulation, "leaf-0-0[0]", 1), expected, "{behavior:?}");
        }
        let by_default = simulation_of("quantum-2", "connectx-7");
        assert!(!announced(&by_default, "leaf-0-0[0]"));
        let hung = simulation("quantum-2", "connectx-7", FrontPanelBehavior::Hung);
        let request = HierarchyInfo::query(1, 0).request(None, 1);
        assert_eq!(super::super::delay(&hung, PortId(0), &request), None);
    }
}
