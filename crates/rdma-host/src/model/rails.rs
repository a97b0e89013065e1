//! Which of a host's ports is in which fabric.

use std::sync::Arc;

use ib_mad::PortNumber;

/// The fabrics of a host's ports, by the settings: nothing on a port tells what a site calls its
/// fabric.
#[derive(Clone, Debug, Default)]
pub struct Rails {
    /// Devices, or one port of each, and the fabrics they are in.
    ports: Vec<(String, Option<PortNumber>, Arc<str>)>,
    /// The fabric of all others.
    usual: Arc<str>,
}

impl Rails {
    /// Those of the listed devices (of one port each, where one is named), and of all others.
    pub fn new(ports: Vec<(String, Option<PortNumber>, Arc<str>)>, usual: Arc<str>) -> Self {
        Rails { ports, usual }
    }

    /// The fabric that a device's port is in; without a port, what concerns all of them.
    pub fn fabric_of(&self, device: &str, port: Option<PortNumber>) -> &Arc<str> {
        let listed = self.ports.iter().find(|(listed, number, _)| {
            listed == device && (number.is_none() || port.is_none() || *number == port)
        });
        listed.map_or(&self.usual, |(_, _, fabric)| fabric)
    }
}
