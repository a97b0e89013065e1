//! What devices report of themselves by the [vendor class](ib_mad::vendor): firmware, temperatures, the physical layer
//! of ports, and modules. It is kept from sweep to sweep, and read at intervals of its own.

use std::collections::HashMap;
use std::sync::Arc;

use ib_mad::register::{Module, PhysicalStatistics};
use ib_mad::vendor::GeneralInfo;
use ib_mad::{Guid, Moment};

use crate::topology::End;

/// A value, and when it was read.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ReadAt<T> {
    /// The value.
    pub value: T,
    /// When the response came in.
    pub at: Moment,
}

/// The reports of a fabric's devices; nothing of those that do not report.
#[derive(Clone, Debug, Default)]
pub struct Hardware {
    /// By node.
    pub nodes: HashMap<Guid, Arc<NodeHardware>>,
    /// By port.
    pub ports: HashMap<End, Arc<PortHardware>>,
}

impl Hardware {
    /// What the device reports of a port.
    pub fn port(&self, port: End) -> Option<&PortHardware> {
        self.ports.get(&port).map(|hardware| &**hardware)
    }

    /// What a device reports of itself.
    pub fn node(&self, guid: Guid) -> Option<&NodeHardware> {
        self.nodes.get(&guid).map(|hardware| &**hardware)
    }
}

/// What a device reports of itself.
#[derive(Clone, Debug, Default)]
pub struct NodeHardware {
    /// Firmware, board, uptime and capabilities.
    pub general: Option<ReadAt<GeneralInfo>>,
    /// Temperature of the ASIC in degrees Celsius.
    pub temperature: Option<ReadAt<f64>>,
}

/// What a device reports of a port.
#[derive(Clone, Debug, Default)]
pub struct PortHardware {
    /// Bits, errors and bit error ratios; see [`PhysicalStatistics`].
    pub physical: Option<ReadAt<PhysicalStatistics>>,
    /// The cable or module that is plugged.
    pub module: Option<ReadAt<Module>>,
}

impl PortHardware {
    /// The cable or module, if one is plugged.
    pub fn plugged(&self) -> Option<&Module> {
        self.module.as_ref().map(|read| &read.value).filter(|module| module.is_plugged())
    }
}
