//! Which of a host's ports is in which fabric.

use std::sync::Arc;

use ib_mad::PortNumber;

/// The fabrics of a host's ports, by the settings: a port does not know what a site calls its fabric.
#[derive(Clone, Debug, Default)]
pub struct Rails {
    /// Devices, or one port of each, and their fabrics.
    ports: Vec<(String, Option<PortNumber>, Arc<str>)>,
    /// The fabric of all others.
    default: Arc<str>,
}

impl Rails {
    /// `ports` lists devices, or one port of each; all other ports are in the fabric `default`.
    pub fn new(ports: Vec<(String, Option<PortNumber>, Arc<str>)>, default: Arc<str>) -> Self {
        Rails { ports, default }
    }

    /// The fabric of a device's port, or of the whole device.
    pub fn fabric_of(&self, device: &str, port: Option<PortNumber>) -> &Arc<str> {
        let listed = self.ports.iter().find(|(listed, number, _)| {
            listed == device && (number.is_none() || port.is_none() || *number == port)
        });
        listed.map_or(&self.default, |(_, _, fabric)| fabric)
    }
}
