//! What a host sees of its own RDMA devices, as values.

pub mod cm;
pub mod ethernet;
pub mod hw_counter;
pub mod rails;

use std::sync::Arc;

use ib_mad::moment::{Anchor, Moment};
use ib_mad::rate::{Speed, Width};
use ib_mad::reading::{Raw, Reading};
use ib_mad::{Guid, Lid, PortNumber};

/// One look at all of a host's devices: immutable, and everything that tellers need.
#[derive(Clone, Debug)]
pub struct HostSnapshot {
    /// Joins the look's moments to the time of day.
    pub anchor: Anchor,
    /// When it began.
    pub began: Moment,
    /// When it ended.
    pub ended: Moment,
    /// The devices, by name.
    pub devices: Vec<Device>,
    /// How many devices are there that the settings leave out.
    pub left_out: usize,
    /// Why the devices could not be listed, with the path. What was open already is read all the same.
    pub problem: Option<String>,
}

/// An RDMA device: an HCA's function, a NIC that does RoCE, a piece of software that does.
#[derive(Clone, Debug)]
pub struct Device {
    /// The kernel's name for it: `mlx5_0`.
    pub name: Arc<str>,
    /// The kernel's number of its directory: another one once the device went and came back, and the same
    /// under another name. `None` if it could not be opened.
    pub instance: Option<u64>,
    /// What it is.
    pub about: Arc<About>,
    /// Whether it and its ports could be read in time. One that could not has no ports here.
    pub answers: bool,
    /// Its ports, by number.
    pub ports: Vec<Port>,
    /// What its driver counts for all ports together.
    pub hw: HwReading,
    /// How many of its files are left alone at present, because they gave no value when asked.
    pub refused: usize,
}

/// What a device is, which seldom changes. What the driver does not tell is empty.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct About {
    /// The node GUID; 0 where nobody gave one to a virtual function, `None` where it was not read.
    pub guid: Option<Guid>,
    /// The GUID of the whole system image; the same for all functions of an HCA.
    pub system_guid: Option<Guid>,
    /// `ca`, `rnic`, as the kernel calls it.
    pub node_type: String,
    /// The node description, as the fabric sees it.
    pub description: String,
    /// Firmware version.
    pub firmware: String,
    /// Hardware revision.
    pub hardware: String,
    /// The vendor's id of the board (PSID).
    pub board: String,
    /// The vendor's type of the HCA: `MT4129`.
    pub hca_type: String,
    /// The kernel driver: `mlx5_core`.
    pub driver: String,
    /// Whether it is a virtual function (SR-IOV), which the host may hand to a guest at any time.
    pub is_virtual: bool,
}

/// A port of a device, as the host sees it. `None` is what could not be read or has no meaning.
#[derive(Clone, Debug)]
pub struct Port {
    /// Its number, from 1.
    pub number: PortNumber,
    /// When its state was read.
    pub at: Moment,
    /// `InfiniBand` or `Ethernet`; empty where the kernel is too old to say.
    pub link_layer: String,
    /// PortState; 5 is the kernel's ACTIVE_DEFER.
    pub state: Option<u8>,
    /// PortPhysicalState.
    pub physical_state: Option<u8>,
    /// What the kernel says that it carries, in bytes a second.
    pub rate: Option<u64>,
    /// Its width.
    pub width: Option<Width>,
    /// Its speed.
    pub speed: Option<Speed>,
    /// Its LID, once a subnet manager gave it one.
    pub lid: Option<Lid>,
    /// The LID of its subnet manager.
    pub sm_lid: Option<Lid>,
    /// The counters that InfiniBand has.
    pub reading: Reading<Raw>,
    /// The counters that its driver has besides.
    pub hw: HwReading,
    /// The counters of the connection manager, if they are read.
    pub cm: Option<Box<cm::CmReading>>,
    /// The network interfaces on it.
    pub netdevs: Vec<Netdev>,
}

/// A driver's own counters: names and what they say. The names are shared by ports that are alike.
#[derive(Clone, Debug, Default)]
pub struct HwReading {
    /// What there is.
    pub names: Arc<[HwName]>,
    /// What each says, in the same order.
    pub values: Vec<Option<u64>>,
}

/// A driver's own counter.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HwName {
    /// The name of its file, as the driver spells it.
    pub file: Box<str>,
    /// Its row in the [table](hw_counter), if it is known.
    pub row: Option<usize>,
}

/// A network interface of a port: IPoIB, or the Ethernet side of RoCE.
#[derive(Clone, Debug)]
pub struct Netdev {
    /// `ib0`, `ens1f0np0`.
    pub name: Arc<str>,
    /// For IPoIB, how it sends.
    pub ipoib: Option<IpoibMode>,
    /// Operational state (RFC 2863) in the kernel's word: `up`, `down`, `lowerlayerdown`.
    pub operstate: String,
    /// The largest packet, in bytes.
    pub mtu: Option<u64>,
    /// How often its carrier came or went.
    pub carrier_changes: Option<u64>,
    /// What its driver counts on the wire.
    pub ethernet: Vec<EthernetValue>,
}

/// How IPoIB sends: a datagram has at most the link's MTU, 4 KiB less its header; connected mode has
/// up to 64 KiB.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum IpoibMode {
    /// By unreliable datagrams.
    Datagram,
    /// By reliable connections.
    Connected,
}

impl IpoibMode {
    /// As sysfs and metrics write it.
    pub fn label(self) -> &'static str {
        match self {
            IpoibMode::Datagram => "datagram",
            IpoibMode::Connected => "connected",
        }
    }
}

/// What a driver says of its Ethernet port.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EthernetValue {
    /// Its row in the [table](ethernet).
    pub row: usize,
    /// The priority or lane, where it is one's.
    pub index: Option<u8>,
    /// What it says.
    pub value: u64,
}
