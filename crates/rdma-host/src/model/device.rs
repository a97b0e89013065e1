//! Devices, their ports and network interfaces, as one read found them.

use std::sync::Arc;

use display_text::labeled_enum;
use ib_mad::moment::{Anchor, Moment};
use ib_mad::port_state::{PhysicalState, PortState};
use ib_mad::rate::{Speed, Width};
use ib_mad::reading::{Raw, Reading};
use ib_mad::register::Module;
use ib_mad::{Guid, Lid, PortNumber};

use super::kind::PortKind;
use super::{cm, ethernet};

/// All devices of a host, as one read found them. Immutable.
#[derive(Clone, Debug)]
#[expect(missing_docs, reason = "the other names say it")]
pub struct HostSnapshot {
    /// Relates the moments of the read to the time of day.
    pub anchor: Anchor,
    pub began: Moment,
    pub ended: Moment,
    /// The devices, by name.
    pub devices: Vec<Device>,
    pub excluded: usize,
    /// Why the devices could not be listed, with the path. Those that were open already are read nevertheless.
    pub problem: Option<String>,
}

/// An RDMA device: a function of an HCA, a NIC with RoCE, or soft RoCE.
#[derive(Clone, Debug, Default)]
pub struct Device {
    /// The kernel's name for it: `mlx5_0`.
    pub name: Arc<str>,
    /// The inode of its directory: another one once the device was removed and came back, and the same under
    /// another name. `None` if it could not be opened.
    pub instance: Option<u64>,
    /// What it is.
    pub info: Arc<DeviceInfo>,
    /// What its ports are, except for those that differ ([`Port::kind`]).
    pub kind: PortKind,
    /// Of an SMI device, the name of the device whose planes it has.
    pub parent: Option<Arc<str>>,
    /// Whether reads of it and of its ports end. If not, it has no ports here. The values of a slow device are those of
    /// an earlier read: see [`Port::at`].
    pub is_readable: bool,
    /// Its ports, by number.
    pub ports: Vec<Port>,
    /// Its driver's own counters for all ports together.
    pub hw: HwReading,
    /// Its temperatures.
    pub sensors: Vec<Sensor>,
    /// How many of its files gave no value at the latest read, or were skipped.
    pub unreadable_files: usize,
}

/// What a device is, which seldom changes. Empty is what the driver does not have.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[expect(missing_docs, reason = "the other names say it")]
pub struct DeviceInfo {
    /// The node GUID; 0 for a virtual function that was given none, `None` if it was not read.
    pub guid: Option<Guid>,
    /// Of the whole system image; the same for all functions of an HCA.
    pub system_guid: Option<Guid>,
    /// `ca` or `rnic`, as the kernel calls it.
    pub node_type: String,
    pub description: String,
    pub firmware: String,
    pub hardware: String,
    /// The vendor's id of the board (PSID).
    pub board: String,
    /// The vendor's type of the HCA: `MT4129`.
    pub hca_type: String,
    /// The kernel driver: `mlx5_core`.
    pub driver: String,
    /// Its PCI function, `0000:31:00.0`, or its auxiliary device; empty for a device without a bus.
    pub bus_address: String,
}

/// A port of a device. `None` is what could not be read or has no meaning.
#[derive(Clone, Debug)]
#[expect(missing_docs, reason = "the other names say it")]
pub struct Port {
    pub number: PortNumber,
    /// That of its device, unless it is a representor.
    pub kind: PortKind,
    /// When its state was read.
    pub at: Moment,
    /// `InfiniBand` or `Ethernet`; empty where the kernel is too old to say.
    pub link_layer: String,
    pub state: Option<PortState>,
    pub physical_state: Option<PhysicalState>,
    /// Its rate by the kernel, in bytes a second.
    pub rate: Option<u64>,
    pub width: Option<Width>,
    pub speed: Option<Speed>,
    /// Its LID, once a subnet manager gave it one.
    pub lid: Option<Lid>,
    pub sm_lid: Option<Lid>,
    /// The counters of PortCounters and PortCountersExtended.
    pub reading: Reading<Raw>,
    pub hw: HwReading,
    /// The counters of the connection manager, if they are read.
    pub cm: Option<Box<cm::CmReading>>,
    pub netdevs: Vec<Netdev>,
}

impl Port {
    /// The plane of the port that it stands for: port n of an SMI device is plane n (kernel:
    /// drivers/infiniband/hw/mlx5/main.c, `mlx5_ib_add_sub_dev`).
    pub fn plane(&self) -> Option<PortNumber> {
        (self.kind == PortKind::Smi).then_some(self.number)
    }

    /// Whether its interface was set down by an administrator: the bond, if it has one, for its members are set down
    /// and up by themselves. `None` for a port without an Ethernet interface.
    pub fn is_admin_down(&self) -> Option<bool> {
        let own =
            self.netdevs.iter().find(|netdev| netdev.bond.is_none() && netdev.ipoib.is_none());
        own.and_then(|netdev| netdev.is_admin_up).map(|up| !up)
    }
}

/// A temperature that a device measures.
#[derive(Clone, Debug, PartialEq)]
pub struct Sensor {
    /// The driver's name for it: `asic`, `Module0`.
    pub label: String,
    /// Degrees Celsius.
    pub celsius: f64,
    /// The critical temperature, in degrees Celsius.
    pub critical: Option<f64>,
}

/// A driver's own counters. Ports that are alike share the names.
#[derive(Clone, Debug, Default)]
#[expect(missing_docs, reason = "the other names say it")]
pub struct HwReading {
    pub names: Arc<[HwName]>,
    pub values: Vec<Option<u64>>,
}

/// A driver's own counter.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HwName {
    /// The name of its file, as the driver spells it.
    pub file: Box<str>,
    /// Its row in the [table](super::hw_counter), if it is known.
    pub row: Option<usize>,
}

/// A network interface of a port: IPoIB, or the Ethernet side of RoCE.
#[derive(Clone, Debug, Default)]
#[expect(missing_docs, reason = "the other names say it")]
pub struct Netdev {
    /// `ib0`, `ens1f0np0`.
    pub name: Arc<str>,
    /// The bond that it is a member of.
    pub bond: Option<Arc<str>>,
    /// Its PCI function: that of its device, or of another one that joined a bond with it.
    pub bus_address: Option<Arc<str>>,
    pub ipoib: Option<IpoibMode>,
    /// Whether an administrator set it up (IFF_UP in `flags`: `ip link set up`).
    pub is_admin_up: Option<bool>,
    /// Whether it has a link. The kernel says it only while the interface is set up.
    pub carrier: Option<bool>,
    /// Operational state (RFC 2863) in the kernel's word: `up`, `down`, `lowerlayerdown`.
    pub operstate: String,
    pub mtu: Option<u64>,
    pub carrier_changes: Option<u64>,
    pub ethernet: Vec<EthernetValue>,
    /// The cable or module, if it is read.
    pub module: Option<Arc<Module>>,
}

labeled_enum! {
    /// The mode of IPoIB: a datagram has at most the MTU of the link, 4 KiB less its header; a packet in
    /// connected mode up to 64 KiB.
    pub enum IpoibMode {
        Datagram, "datagram", "Unreliable datagrams.";
        Connected, "connected", "Reliable connections.";
    }
}

/// A statistic of an Ethernet driver.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(missing_docs, reason = "the names say it")]
pub struct EthernetValue {
    pub stat: ethernet::StatId,
    pub value: u64,
}
