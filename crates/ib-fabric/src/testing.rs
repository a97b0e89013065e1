//! Small fabrics for tests.

use crate::assembly::{DiscoveredFabric, DiscoveredNode, DiscoveredPort};
use crate::front_panels::FrontPanels;
use crate::names::Naming;
use crate::topology::Fabric;
use ib_mad::front_panel::PanelPortType;
use ib_mad::hierarchy::{HierarchyInfo, template};
use ib_mad::node::device;
use ib_mad::port_state::testing::up;
use ib_mad::port_state::{PortStatus, SpeedFields};
use ib_mad::rate::{Speed, Width};
use ib_mad::{FrontPanel, Guid, Moment, NodeIdentity, NodeKind, PortKey};

/// A discovered node with all ports up.
pub fn found(guid: u64, kind: NodeKind, ports: u8) -> DiscoveredNode {
    let first = u8::from(kind != NodeKind::Switch);
    DiscoveredNode {
        identity: NodeIdentity {
            guid: Guid(guid),
            system_guid: Guid(guid),
            kind,
            description: format!("node {guid}"),
            vendor_id: 0x2c9,
            device_id: 1,
            port_count: ports,
            enhanced_port0: false,
            speed_fields: SpeedFields::default(),
            reports_fec: false,
        },
        ports: (first..=ports)
            .map(|number| DiscoveredPort {
                number,
                guid: Guid(guid << 8 | u64::from(number)),
                status: Some(up(guid as u16)),
                role: None,
            })
            .collect(),
    }
}

/// A port of a Quantum-2 switch at the front panel: `1/19/1` of cage 19.
pub fn panel(cage: u8, port: u8) -> Option<FrontPanel> {
    let mut info = HierarchyInfo::empty(template::NDR);
    info.values[1..4].copy_from_slice(&[port.into(), cage.into(), 1]);
    FrontPanel::new(&info, NodeKind::Switch)
}

/// An XDR port as a plane of an aggregated port.
pub fn plane_panel(kind: NodeKind, number: u16, [plane, planes]: [u8; 2]) -> Option<FrontPanel> {
    let is_switch = kind == NodeKind::Switch;
    let template = if is_switch { template::XDR_SWITCH } else { template::XDR_ADAPTER };
    let mut info = HierarchyInfo::empty(template);
    let port_type = if is_switch { PanelPortType::Switch } else { PanelPortType::Hca };
    info.values[0] = port_type as u32;
    info.values[3..5].copy_from_slice(&[number.div_ceil(2).into(), u32::from(number - 1) % 2 + 1]);
    info.values[10..].copy_from_slice(&[plane.into(), planes.into(), number.into()]);
    FrontPanel::new(&info, kind)
}

/// A port of an XDR switch without planes: between its nodes, or for management.
pub fn fnm_panel(port_type: PanelPortType, port: u8) -> Option<FrontPanel> {
    let mut info = HierarchyInfo::empty(template::XDR_SWITCH);
    info.values[..3].copy_from_slice(&[port_type as u32, 1, port.into()]);
    FrontPanel::new(&info, NodeKind::Switch)
}

/// One lane of XDR: a plane that is up.
pub fn plane_up(lid: u16) -> PortStatus {
    let (widths, speeds) = (Width::X1.up_to(), [Speed::Sdr, Speed::Xdr].into_iter().collect());
    PortStatus {
        width: Some(Width::X1),
        speed: Some(Speed::Xdr),
        widths_supported: widths,
        widths_enabled: widths,
        speeds_supported: speeds,
        speeds_enabled: speeds,
        ..up(lid)
    }
}

/// A fabric with links of several planes, whose cables a test may change.
#[derive(Clone, Debug, Default)]
#[expect(missing_docs, reason = "the names say it")]
pub struct PlaneNet {
    pub nodes: Vec<DiscoveredNode>,
    pub links: Vec<(PortKey, PortKey)>,
    pub panels: FrontPanels,
}

/// The ports between the nodes of a switch of a [`PlaneNet`], forward and backward.
pub const RING: [u8; 2] = [7, 8];

impl PlaneNet {
    /// The hosts 0xb1 to 0xb4 at the aggregated ports 1 to 4 of the leaf 0xa0, which is the nodes 0xa1 to 0xa4, one for
    /// each plane. Its aggregated port 5 leads to port 1 of the spine 0xc0, which is the nodes 0xc1 to 0xc4.
    pub fn of_four_nodes() -> Self {
        let mut net = PlaneNet::default();
        for system in [0xa0, 0xc0] {
            for plane in 1..=4 {
                let node = system + u64::from(plane);
                net.add(node, system, NodeKind::Switch, 8);
                for port in 1..=6 {
                    net.panel(node, port, plane_panel(NodeKind::Switch, port.into(), [plane, 4]));
                }
                for port in RING {
                    net.panel(node, port, fnm_panel(PanelPortType::Fnm, port));
                }
                let behind = system + u64::from(plane % 4) + 1;
                net.links.push((end(node, RING[0]), end(behind, RING[1])));
            }
        }
        for host in 1..=4 {
            net.add_host(0xb0 + u64::from(host), 4);
            net.join(0xa0, host, 0xb0 + u64::from(host));
        }
        for plane in 1..=4 {
            net.links.push((end(0xa0 + plane, 5), end(0xc0 + plane, 1)));
        }
        net
    }

    /// The switch 0xa1 with all planes of its ports: four of host 0xb1, two of host 0xb2, and a host 0xb3 without
    /// planes at its port 9; a subnet manager 0xb4 at its port of fabric network management, 10.
    pub fn of_one_node() -> Self {
        let mut net = PlaneNet::default();
        net.add(0xa1, 0xa0, NodeKind::Switch, 10);
        for (host, planes, first) in [(0xb1, 4, 1), (0xb2, 2, 5)] {
            net.add_host(host, planes);
            for plane in 1..=planes {
                let port = first + plane - 1;
                let panel =
                    plane_panel(NodeKind::Switch, u16::from(first / 4) + 1, [plane, planes]);
                net.panel(0xa1, port, panel);
                net.links.push((end(0xa1, port), end(host, plane)));
            }
        }
        net.panel(0xa1, 9, None);
        net.panel(0xa1, 10, fnm_panel(PanelPortType::Fnm1, 10));
        for (host, port) in [(0xb3, 9), (0xb4, 10)] {
            net.add(host, host, NodeKind::Ca, 1);
            net.links.push((end(0xa1, port), end(host, 1)));
        }
        net
    }

    fn add(&mut self, guid: u64, system: u64, kind: NodeKind, ports: u8) {
        let mut node = found(guid, kind, ports);
        node.identity.system_guid = Guid(system);
        node.identity.device_id = 4131;
        if kind == NodeKind::Switch {
            node.identity.device_id = device::QUANTUM_3;
        }
        for port in &mut node.ports {
            port.status = Some(plane_up(guid as u16));
        }
        self.nodes.push(node);
    }

    fn add_host(&mut self, guid: u64, planes: u8) {
        self.add(guid, guid, NodeKind::Ca, planes);
        for plane in 1..=planes {
            self.panel(guid, plane, plane_panel(NodeKind::Ca, 1, [plane, planes]));
        }
    }

    /// Sets what a port reports of its place.
    pub fn panel(&mut self, guid: u64, port: u8, panel: Option<FrontPanel>) {
        self.panels.insert(end(guid, port), panel);
    }

    /// Joins the planes of a host to a port of a switch of four nodes.
    fn join(&mut self, system: u64, port: u8, host: u64) {
        for plane in 1..=4 {
            self.links.push((end(system + u64::from(plane), port), end(host, plane)));
        }
    }

    /// Removes the link at a port.
    pub fn unplug(&mut self, at: PortKey) {
        self.links.retain(|(a, b)| *a != at && *b != at);
    }

    /// Exchanges the far ends of two cables, by their near ends.
    pub fn exchange(&mut self, [one, other]: [PortKey; 2]) {
        let far = |at: PortKey| self.links.iter().find(|(near, _)| *near == at).map(|it| it.1);
        let far = [far(one), far(other)];
        for (near, end) in &mut self.links {
            if *near == one {
                *end = far[1].unwrap_or(*end);
            } else if *near == other {
                *end = far[0].unwrap_or(*end);
            }
        }
    }

    /// The fabric as it is discovered.
    pub fn fabric(&self, previous: Option<&Fabric>) -> Fabric {
        let found = DiscoveredFabric {
            nodes: self.nodes.clone(),
            links: self.links.clone(),
            front_panels: self.panels.clone(),
            ..DiscoveredFabric::default()
        };
        let previous = previous.map(|previous| (previous, Moment(0)));
        Fabric::assemble(found, &Naming::default(), Moment(10), previous)
    }
}

/// A link end.
pub fn end(guid: u64, port: u8) -> PortKey {
    PortKey::new(Guid(guid), port)
}

/// A fabric of these nodes and links, discovered at moment 10.
pub fn fabric(
    found: Vec<DiscoveredNode>,
    links: &[(PortKey, PortKey)],
    previous: Option<(&Fabric, Moment)>,
) -> Fabric {
    let found =
        DiscoveredFabric { nodes: found, links: links.to_vec(), ..DiscoveredFabric::default() };
    Fabric::assemble(found, &Naming::default(), Moment(10), previous)
}
