//! The host that is checked: its paths, and its devices.

use std::path::PathBuf;
use std::time::Duration;

use crate::config::Settings;
use ib_mad::clock::Clock;
use rdma_host::model::{Device, HostSnapshot, Port};
use rdma_host::reader::sysfs::Directory;
use rdma_host::reader::{HostReader, ReadOptions};

/// The kernel's name of the link layer with LIDs and a subnet manager.
const INFINIBAND: &str = "InfiniBand";

/// The host that is checked.
#[derive(Debug)]
pub struct CheckedHost {
    /// Where sysfs is mounted.
    pub sysfs: PathBuf,
    /// Where procfs is mounted.
    pub procfs: PathBuf,
    /// Where the device files are.
    pub dev: PathBuf,
    /// Its RDMA devices.
    pub devices: Vec<Device>,
}

impl CheckedHost {
    /// Reads the devices of a host, except those that the settings exclude: they may be known to hang. A device
    /// that hangs is abandoned after two seconds.
    pub fn read(settings: &Settings, dev: PathBuf) -> Self {
        let (sysfs, procfs) = (settings.sysfs.clone(), settings.procfs.clone());
        let filter = settings.host.as_ref().map(|host| host.filter.clone()).unwrap_or_default();
        // There is one read only, so no backoff.
        let options = ReadOptions { error_backoff: Duration::ZERO, ethtool: false, cm: false };
        let mut reader = HostReader::new(sysfs.clone(), filter, options, Clock::start());
        let HostSnapshot { devices, .. } = reader.read();
        CheckedHost { sysfs, procfs, dev, devices }
    }

    /// All ports, with their devices.
    pub fn ports(&self) -> impl Iterator<Item = (&Device, &Port)> {
        self.devices.iter().flat_map(|device| device.ports.iter().map(move |port| (device, port)))
    }

    /// The InfiniBand ports, with their devices.
    pub fn infiniband_ports(&self) -> impl Iterator<Item = (&Device, &Port)> {
        self.ports().filter(|(_, port)| is_infiniband(port))
    }

    /// The names in a directory of sysfs; `None` if it does not exist or cannot be read.
    pub fn names(&self, path: &str) -> Option<Vec<String>> {
        self.directory(path)?.names().ok()
    }

    /// A directory of sysfs.
    pub fn directory(&self, path: &str) -> Option<Directory> {
        Directory::open(&self.sysfs.join(path)).ok()
    }
}

/// Whether it is an InfiniBand port. Kernels before 2.6.37 have no file with the link layer, and other ports of
/// those, of iWARP, have no LID.
pub fn is_infiniband(port: &Port) -> bool {
    port.link_layer == INFINIBAND || port.link_layer.is_empty() && port.lid.is_some()
}

/// The name of a port in findings: `mlx5_0 port 1`.
pub fn port_name(device: &Device, port: &Port) -> String {
    format!("{} port {}", device.name, port.number)
}
