//! Registers of NVIDIA (Mellanox) devices, read by the AccessRegister attribute of the [vendor](crate::vendor) class.
//!
//! Only Get is sent, and a query has only the fields that select a port, a page or an index: the bits that act even
//! on a Get (PPCNT `clr`, MTMP `mtr`, the operations of SLRG) are no fields here, so no request can have them.
//!
//! Sources: mstflint's register tables (`tools_layouts/adb/prm`), its `mlxlink`, the kernel's mlxsw (`reg.h`), and
//! ibswinfo. Offsets are those of the tables, from the start of a register. Only the first block of a register is
//! read, 220 bytes. Not seen on hardware: newer fields are in space that older firmware leaves 0, so 0 means
//! "not reported", and what is implausible is left out.

mod device;
mod fields;
mod module;
mod port;
mod query;

pub use device::{
    FanLimits, FanSpeed, Fans, PowerSupplies, PowerSupply, Temperature, Temperatures, celsius,
};
pub use fields::{LANES, START, text};
pub use module::{Module, monitor};
pub use port::{
    BINS, FecHistogram, LinkDown, PhysicalStatistics, Side, Troubleshooting, bit_error_ratio,
    down_reason, trouble,
};
pub use query::{CountersSelect, DiagnosticSelect, RegisterQuery};

#[cfg(test)]
mod tests;
