//! The RDMA devices of a host, as values.

pub mod cm;
mod device;
pub mod eeprom;
pub mod ethernet;
pub mod hw_counter;
mod kind;
mod port_fabrics;
mod resolve_kinds;
mod tsv;

pub use device::{
    Device, DeviceInfo, EthernetValue, HostSnapshot, HwName, HwReading, IpoibMode, Netdev, Port,
    Sensor,
};
pub use kind::PortKind;
pub use port_fabrics::PortFabrics;
pub use resolve_kinds::resolve_kinds;
