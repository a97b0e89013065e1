//! The models of the devices of this host in `/api/v1/overview`.

use super::{Label, Module};

models! {
    /// The RDMA devices of this host.
    pub struct Host {
        /// When the devices were last read (RFC 3339); null before the first read.
        pub read_at: Option<String>,
        /// The devices, by name.
        pub devices: Vec<Device>,
        /// The devices that disappeared, by name: until they return, or for the time of `--fabric.forget-after`.
        #[serde(default)]
        pub missing: Vec<MissingDevice>,
    }

    /// An RDMA device of this host that disappeared.
    pub struct MissingDevice {
        /// The kernel's name that it had.
        pub device: String,
        /// The node GUID that it had; empty if it could not be read.
        pub guid: String,
        /// When a read found it missing (RFC 3339).
        pub since: Option<String>,
    }

    /// An RDMA device of this host.
    pub struct Device {
        /// The kernel's name of the device: `mlx5_0`.
        pub device: String,
        /// The node GUID of the device, as in its metrics: `0x0000000000000000` if a virtual function was given
        /// none, empty if it could not be read.
        pub guid: String,
        /// `physical`, or why its ports have no cable of their own: the values of the metrics' label `kind`.
        #[serde(default)]
        pub kind: Label,
        /// The vendor's name of the device type.
        pub hca_type: String,
        /// The firmware version.
        pub firmware: String,
        /// Whether the device could be read in time.
        pub readable: bool,
        /// The temperatures that the device measures (hwmon).
        pub temperatures: Vec<Temperature>,
        /// The fabric that has a node with this GUID, if any.
        pub fabric: Option<String>,
        /// The ports of the device.
        pub ports: Vec<DevicePort>,
    }

    /// A temperature of a device of this host.
    pub struct Temperature {
        /// The driver's name of the sensor: `asic`.
        pub sensor: String,
        /// Degrees Celsius.
        pub celsius: f64,
        /// The critical temperature in degrees Celsius, if the driver reports one.
        pub critical_celsius: Option<f64>,
    }

    /// A port of a device of this host.
    pub struct DevicePort {
        /// The port number.
        pub port: u8,
        /// `InfiniBand` or `Ethernet`.
        pub link_layer: String,
        /// As of the device, or `representor`.
        #[serde(default)]
        pub kind: Label,
        /// PortState: `Active`.
        pub state: Label,
        /// PortPhysicalState: `LinkUp`. Ethernet drivers report `Disabled` for each port that is down.
        #[serde(default)]
        pub physical_state: Option<Label>,
        /// Data rate in bytes per second; without meaning while the port is down.
        pub rate: Option<u64>,
        /// The LID, once the subnet manager has assigned one; the last one while the port is down or in Init.
        pub lid: Option<u16>,
        /// Counters that were saturated at least once: their totals are lower bounds.
        #[serde(default)]
        pub saturated: Vec<Label>,
        /// Counters that are saturated now: they have stopped at their maximum.
        #[serde(default)]
        pub saturated_now: Vec<Label>,
        /// The cable or module, if it is read (`--host.modules`).
        pub module: Option<Module>,
        /// The network interfaces of the port.
        pub interfaces: Vec<String>,
        /// The same interfaces with their states.
        #[serde(default)]
        pub netdevs: Vec<Netdev>,
        /// The id of the link, if a fabric has the port.
        pub link: Option<String>,
        /// The fabric of that link: ports of one device may be in different fabrics.
        pub link_fabric: Option<String>,
    }

    /// A network interface of a port of this host.
    pub struct Netdev {
        /// The name of the interface: `ib0`.
        pub netdev: String,
        /// The bond that it is a member of.
        pub bond: Option<String>,
        /// Whether it is set up (`ip link set up`); null if unknown.
        pub administratively_up: Option<bool>,
        /// Whether it has a link; null while it is set down, or if unknown.
        pub carrier: Option<bool>,
        /// The operational state (RFC 2863): `up`, `down`, `lowerlayerdown`.
        pub operstate: String,
    }
}
