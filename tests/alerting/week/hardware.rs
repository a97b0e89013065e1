//! What hosts of a site have: adapters of several makes, as their kernels show them.

use std::sync::Arc;

use ib_mad::rate::{Speed, Width};
use ib_mad::{Counter, Guid, Lid, Moment, PortNumber, Reading};
use rdma_host::model::{
    Device, DeviceInfo, EthernetValue, HwName, HwReading, IpoibMode, Netdev, Port, PortKind,
    ethernet, hw_counter,
};

use super::host::{Presence, SimHost, Slot, Value};

/// What a host is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// Two adapters, pods with virtual functions, IPoIB.
    InfiniBand,
    /// The same in a fabric of three hosts.
    Small,
    /// Two ports of RoCE of mlx5.
    Mlx5,
    /// The same in a fabric of three hosts behind one switch.
    Edge,
    Bnxt,
    Irdma,
    /// RoCE LAG: the two ports of an adapter become one device.
    Lag,
    /// An adapter with an embedded switch: representors, sub-functions.
    Switchdev,
    /// A multi-plane adapter with an SMI device.
    MultiPlane,
    /// An adapter on two PCI buses.
    SocketDirect,
    /// HGX B200: bridges to NVSwitches beside the adapters.
    Nvlink,
}

/// The hosts of the sites with even numbers, and of those with odd ones. The rules do not join their fabrics.
const SITES: [[Role; 10]; 2] = [
    [
        Role::Small,
        Role::Small,
        Role::Small,
        Role::InfiniBand,
        Role::InfiniBand,
        Role::InfiniBand,
        Role::InfiniBand,
        Role::MultiPlane,
        Role::SocketDirect,
        Role::Nvlink,
    ],
    [
        Role::Edge,
        Role::Edge,
        Role::Edge,
        Role::Mlx5,
        Role::Mlx5,
        Role::Bnxt,
        Role::Irdma,
        Role::Lag,
        Role::Lag,
        Role::Switchdev,
    ],
];

/// What the hosts of a site are for.
pub fn roles(site: usize) -> &'static [Role] {
    &SITES[site % SITES.len()]
}

/// The drivers' own counters that rules read, and one that they do not.
const MLX5_HW: [&str; 7] = [
    "local_ack_timeout_err",
    "packet_seq_err",
    "implied_nak_seq_err",
    "roce_adp_retrans",
    "np_cnp_sent",
    "rp_cnp_handled",
    "req_transport_retries_exceeded",
];
const BNXT_HW: [&str; 6] = [
    "to_retransmits",
    "seq_err_naks_rcvd",
    "missing_resp",
    "max_retry_exceeded",
    "tx_cnp_pkts",
    "rx_cnp_pkts",
];
const IRDMA_HW: [&str; 3] = ["cnpSent", "cnpHandled", "RxECNMrkd"];
/// What `ethtool -S` of mlx5 has of the priority with PFC.
const PAUSES: [&str; 4] =
    ["rx_prio3_pause", "tx_prio3_pause", "rx_prio3_pause_duration", "tx_prio3_pause_duration"];

/// An adapter: a device of it is made from this.
struct Maker<'a> {
    host: &'a str,
    /// A number of the host.
    number: u64,
    driver: &'a str,
}

impl Maker<'_> {
    /// A device with a number for its GUID, at a PCI function.
    fn device(&self, name: &str, guid: u64, bus_address: &str, kind: PortKind) -> Device {
        let guid = Guid(0x0c42_a103_0000_0000 | self.number << 16 | guid);
        let info = DeviceInfo {
            guid: Some(guid),
            system_guid: Some(guid),
            node_type: "ca".into(),
            description: format!("{} {name}", self.host),
            firmware: "28.43.1014".into(),
            board: "MT_0000000838".into(),
            hca_type: "MT4129".into(),
            driver: self.driver.into(),
            bus_address: bus_address.into(),
            ..DeviceInfo::default()
        };
        let (name, info) = (name.into(), Arc::new(info));
        Device { name, info, kind, is_readable: true, ..Device::default() }
    }

    fn infiniband(&self, name: &str, guid: u64, bus_address: &str) -> Device {
        let mut device = self.device(name, guid, bus_address, PortKind::Physical);
        device.ports = vec![infiniband_port(1)];
        device
    }

    /// A device of RoCE with one port and its interface.
    fn roce(&self, name: &str, guid: u64, bus_address: &str, netdev: &str) -> Device {
        let mut device = self.device(name, guid, bus_address, PortKind::Physical);
        let mut port = roce_port(1, self.driver);
        port.netdevs = vec![self.netdev(netdev, bus_address)];
        device.ports = vec![port];
        device
    }

    fn netdev(&self, name: &str, bus_address: &str) -> Netdev {
        let value = |string: &&str| EthernetValue {
            stat: ethernet::find("mlx5_core", string).unwrap(),
            value: 0,
        };
        let ethernet = match self.driver {
            "mlx5_core" => PAUSES.iter().map(value).collect(),
            _ => Vec::new(),
        };
        Netdev {
            name: name.into(),
            bus_address: Some(bus_address.into()),
            operstate: "down".into(),
            mtu: Some(9000),
            carrier_changes: Some(0),
            ethernet,
            ..Netdev::default()
        }
    }
}

fn port(number: PortNumber, kind: PortKind, link_layer: &str, counters: &[Counter]) -> Port {
    let mut reading = Reading::empty(Moment::default());
    for counter in counters {
        reading.set(*counter, 0);
    }
    Port {
        number,
        kind,
        at: Moment::default(),
        link_layer: link_layer.into(),
        state: None,
        physical_state: None,
        rate: None,
        width: Some(Width::X4),
        speed: Some(Speed::Ndr),
        lid: None,
        sm_lid: Some(Lid(1)),
        reading,
        hw: HwReading::default(),
        cm: None,
        netdevs: Vec::new(),
    }
}

fn hw(files: &[&str]) -> HwReading {
    let name = |&file: &&str| HwName { file: file.into(), row: hw_counter::find(file) };
    HwReading { names: files.iter().map(name).collect(), values: vec![Some(0); files.len()] }
}

const INFINIBAND_COUNTERS: [Counter; 5] = [
    Counter::SymbolErrors,
    Counter::LinkDowned,
    Counter::XmitData,
    Counter::RcvData,
    Counter::XmitDiscards,
];

fn infiniband_port(number: PortNumber) -> Port {
    let mut port = port(number, PortKind::Physical, "InfiniBand", &INFINIBAND_COUNTERS);
    port.hw = hw(&MLX5_HW);
    port
}

fn roce_port(number: PortNumber, driver: &str) -> Port {
    let (counters, hw_files): (&[Counter], &[&str]) = match driver {
        "bnxt_re" => (&[Counter::XmitDiscards], &BNXT_HW),
        "irdma" => (&[], &IRDMA_HW),
        _ => (&[Counter::LinkDowned, Counter::XmitData, Counter::RcvData], &MLX5_HW),
    };
    let mut port = port(number, PortKind::Physical, "Ethernet", counters);
    (port.width, port.speed) = (Some(Width::X4), Some(Speed::Edr));
    (port.hw, port.sm_lid) = (hw(hw_files), None);
    port
}

/// Gives the first port an interface of IPoIB.
fn add_ipoib(device: &mut Device, name: &str) {
    device.ports[0].netdevs.push(Netdev {
        name: name.into(),
        ipoib: Some(IpoibMode::Datagram),
        operstate: "down".into(),
        mtu: Some(4092),
        carrier_changes: Some(0),
        ..Netdev::default()
    });
}

/// A host for a role: the number of the host makes its GUIDs.
pub fn host(role: Role, site: usize, place: usize) -> SimHost {
    let name = format!("s{site}-host-{place:02}");
    let fabric = match role {
        Role::Small => format!("s{site}-small"),
        Role::Edge => format!("s{site}-edge"),
        Role::InfiniBand | Role::Nvlink | Role::MultiPlane | Role::SocketDirect => {
            format!("s{site}-ib")
        }
        _ => format!("s{site}-roce"),
    };
    let mut host = SimHost::new(name.clone(), &fabric);
    let driver = match role {
        Role::Bnxt => "bnxt_re",
        Role::Irdma => "irdma",
        _ => "mlx5_core",
    };
    let maker = Maker { host: &name, number: (site * 100 + place + 1) as u64, driver };
    match role {
        Role::InfiniBand | Role::Small => add_infiniband(&mut host, &maker),
        Role::Nvlink => {
            add_bridges(&mut host, &maker);
            add_infiniband(&mut host, &maker);
        }
        Role::Mlx5 | Role::Edge | Role::Bnxt | Role::Irdma => add_roce(&mut host, &maker),
        Role::Lag => add_lag(&mut host, &maker),
        Role::Switchdev => add_switchdev(&mut host, &maker),
        Role::MultiPlane => add_planes(&mut host, &maker),
        Role::SocketDirect => add_socket_direct(&mut host, &maker),
    }
    // Traffic of one port: rules read it, and none may alert.
    if let Some(port) = host.devices[0].device.ports.first()
        && port.reading.get(Counter::XmitData).is_some()
    {
        host.grow(Slot(0), 1, Value::Counter(Counter::XmitData), 90_000_000_000);
        host.grow(Slot(0), 1, Value::Counter(Counter::RcvData), 60_000_000_000);
    }
    host
}

/// The place of the first adapter: those of bridges are before it.
pub fn first_adapter(role: Role) -> Slot {
    Slot(if role == Role::Nvlink { 4 } else { 0 })
}

/// The places of the virtual functions of a host with InfiniBand.
pub fn virtual_functions(role: Role) -> [Slot; 2] {
    let first = first_adapter(role).0 + 3;
    [Slot(first), Slot(first + 1)]
}

/// Two adapters, one that never had a cable, and two virtual functions, which pods get.
fn add_infiniband(host: &mut SimHost, maker: &Maker<'_>) {
    let from = host.devices.len() as u64;
    for nth in 0..3 {
        let address = format!("0000:{:02x}:00.0", 0x18 + 0x10 * nth);
        let mut device = maker.infiniband(&format!("mlx5_{}", from + nth), 1 + nth, &address);
        if nth == 0 {
            add_ipoib(&mut device, "ibp24s0");
        }
        let slot = host.add(device);
        if nth == 2 {
            host.set_cable(slot, 1, false);
        }
    }
    for nth in 0..2 {
        let address = format!("0000:18:00.{}", nth + 1);
        let name = format!("mlx5_{}", from + 3 + nth);
        let mut device = maker.device(&name, 0, &address, PortKind::VirtualFunction);
        device.ports = vec![infiniband_port(1)];
        device.ports[0].kind = PortKind::VirtualFunction;
        device.ports[0].hw = hw(&MLX5_HW[..1]);
        let slot = host.add(device);
        host.set_guid(slot, Guid(0));
        host.line(slot, 1).is_activated = false;
    }
}

/// The functions that manage NVSwitches: two Active, one in Init, and one Down that refuses its counters.
fn add_bridges(host: &mut SimHost, maker: &Maker<'_>) {
    for nth in 0..4 {
        let kind = if nth == 3 { PortKind::Restricted } else { PortKind::NvlinkBridge };
        let address = format!("0000:{:02x}:00.0", 0x05 + nth);
        let mut device = maker.device(&format!("mlx5_{nth}"), 0x80 + nth, &address, kind);
        device.ports = vec![infiniband_port(1)];
        device.ports[0].kind = kind;
        if nth == 3 {
            device.ports[0].reading = Reading::empty(Moment::default());
        }
        let slot = host.add(device);
        host.line(slot, 1).is_activated = nth < 2;
        host.set_cable(slot, 1, nth < 3);
    }
}

/// Two ports of an adapter with a cable, and another adapter without one.
fn add_roce(host: &mut SimHost, maker: &Maker<'_>) {
    let prefix = match maker.driver {
        "bnxt_re" => "bnxt_re",
        "irdma" => "rocep",
        _ => "mlx5_",
    };
    for nth in 0..3 {
        let address = format!("0000:{:02x}:00.{}", 0x31 + 0x10 * (nth / 2), nth % 2);
        let device =
            maker.roce(&format!("{prefix}{nth}"), 1 + nth, &address, &format!("ens{nth}np0"));
        let slot = host.add(device);
        if nth == 2 {
            host.set_cable(slot, 1, false);
        }
    }
}

/// The bond of the two ports of an adapter, and their devices before it forms.
fn add_lag(host: &mut SimHost, maker: &Maker<'_>) {
    let address = |nth: u64| format!("0000:31:00.{nth}");
    let mut bond = maker.roce("mlx5_bond_0", 1, &address(0), "bond0");
    let netdevs = &mut bond.ports[0].netdevs;
    netdevs[0].bus_address = None;
    for nth in 0..2 {
        let member = maker.netdev(&format!("ens{nth}np0"), &address(nth));
        netdevs.push(Netdev { bond: Some("bond0".into()), ..member });
    }
    host.add(bond);
    for nth in 0..2 {
        let (name, netdev) = (format!("mlx5_{nth}"), format!("ens{nth}np0"));
        let slot = host.add(maker.roce(&name, 1 + nth, &address(nth), &netdev));
        host.at(slot).presence = Presence::Absent;
    }
    host.add(maker.roce("mlx5_2", 3, "0000:98:00.0", "ens9np0"));
}

/// The places of the devices of a bond's ports before it forms.
pub const UNBONDED: [Slot; 2] = [Slot(1), Slot(2)];
/// The place of the sub-function of a host with an embedded switch.
pub const SUB_FUNCTION: Slot = Slot(1);

/// An adapter with a port, and the representors of four functions; and a sub-function, which comes and goes.
fn add_switchdev(host: &mut SimHost, maker: &Maker<'_>) {
    let mut device = maker.roce("mlx5_0", 1, "0000:31:00.0", "ens0np0");
    for number in 2..6 {
        let mut port = roce_port(number, maker.driver);
        port.kind = PortKind::Representor;
        port.netdevs = vec![maker.netdev(&format!("ens0pf0vf{number}"), "0000:31:00.0")];
        device.ports.push(port);
    }
    host.add(device);
    let mut sub = maker.roce("mlx5_2", 0x90, "mlx5_core.sf.4", "ens0s88");
    sub.kind = PortKind::SubFunction;
    sub.ports[0].kind = PortKind::SubFunction;
    let slot = host.add(sub);
    host.at(slot).presence = Presence::Absent;
    host.add(maker.roce("mlx5_1", 2, "0000:98:00.0", "ens9np0"));
}

/// An adapter whose port has four planes, the SMI device with these, and a second adapter.
fn add_planes(host: &mut SimHost, maker: &Maker<'_>) {
    let xdr = |port: &mut Port, width| (port.speed, port.width) = (Some(Speed::Xdr), Some(width));
    let mut parent = maker.infiniband("mlx5_0", 1, "0000:18:00.0");
    xdr(&mut parent.ports[0], Width::X4);
    let mut smi = maker.infiniband("smi1", 1, "0000:18:00.0");
    (smi.kind, smi.parent) = (PortKind::Smi, Some("mlx5_0".into()));
    smi.ports = (1..=4).map(infiniband_port).collect();
    for port in &mut smi.ports {
        port.kind = PortKind::Smi;
        xdr(port, Width::X1);
        port.hw = HwReading::default();
    }
    host.add(parent);
    host.add(smi);
    host.add(maker.infiniband("mlx5_1", 2, "0000:28:00.0"));
}

/// An adapter on two PCI buses, and another one.
fn add_socket_direct(host: &mut SimHost, maker: &Maker<'_>) {
    let first = maker.infiniband("mlx5_0", 1, "0000:18:00.0");
    let mut second = maker.infiniband("mlx5_1", 2, "0000:98:00.0");
    Arc::make_mut(&mut second.info).system_guid = first.info.system_guid;
    host.add(first);
    host.add(second);
    host.add(maker.infiniband("mlx5_2", 3, "0000:28:00.0"));
}
