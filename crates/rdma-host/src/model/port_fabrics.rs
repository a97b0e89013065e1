//! The fabrics of ports, by the settings.

use std::sync::Arc;

use ib_mad::PortNumber;

/// The fabrics of a host's ports, by the settings: a port does not know what a site calls its fabric.
#[derive(Clone, Debug, Default)]
pub struct PortFabrics {
    /// Devices, or one port of each, and their fabrics.
    pub ports: Vec<(String, Option<PortNumber>, Arc<str>)>,
    /// The fabric of all others.
    pub default: Arc<str>,
}

impl PortFabrics {
    /// The fabric of a device's port, or of the whole device.
    pub fn fabric_of(&self, device: &str, port: Option<PortNumber>) -> &Arc<str> {
        let listed = self.ports.iter().find(|(listed, number, _)| {
            listed == device && (number.is_none() || port.is_none() || *number == port)
        });
        listed.map_or(&self.default, |(_, _, fabric)| fabric)
    }
}
