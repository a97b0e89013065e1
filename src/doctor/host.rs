//! The host that is looked at: where its files are, and its devices as one look found them.

use std::path::PathBuf;
use std::time::Duration;

use crate::config::Settings;
use ib_mad::clock::Clock;
use rdma_host::model::{Device, HostSnapshot, Port};
use rdma_host::reader;
use rdma_host::reader::Manner;
use rdma_host::reader::file::Directory;

/// The kernel's name of the link layer with LIDs and a subnet manager.
const INFINIBAND: &str = "InfiniBand";

/// A host; see the module.
#[derive(Debug)]
pub struct Host {
    /// Where sysfs is mounted.
    pub sysfs: PathBuf,
    /// Where procfs is mounted.
    pub procfs: PathBuf,
    /// Where the device files are.
    pub dev: PathBuf,
    /// Its RDMA devices.
    pub devices: Vec<Device>,
}

impl Host {
    /// Looks at the devices of a host; not at those that the exporter is told to leave alone, for they
    /// may be known to hang. One that hangs is left alone after two seconds.
    pub fn look(settings: &Settings, dev: PathBuf) -> Self {
        let (sysfs, procfs) = (settings.sysfs.clone(), settings.procfs.clone());
        let selection = settings.host.as_ref().map(|host| host.selection.clone());
        // It looks once, so that it does not matter how long what refuses is left alone.
        let manner = Manner { rest: Duration::ZERO, ethtool: false, cm: false };
        let mut reader =
            reader::Host::new(sysfs.clone(), selection.unwrap_or_default(), manner, Clock::start());
        let HostSnapshot { devices, .. } = reader.look();
        Host { sysfs, procfs, dev, devices }
    }

    /// All ports, with the devices that they are of.
    pub fn ports(&self) -> impl Iterator<Item = (&Device, &Port)> {
        self.devices.iter().flat_map(|device| device.ports.iter().map(move |port| (device, port)))
    }

    /// Those that can be part of an InfiniBand fabric.
    pub fn infiniband_ports(&self) -> impl Iterator<Item = (&Device, &Port)> {
        self.ports().filter(|(_, port)| is_infiniband(port))
    }

    /// What a directory in sysfs lists; `None` if there is none, or it cannot be read.
    pub fn names(&self, path: &str) -> Option<Vec<String>> {
        self.directory(path)?.names().ok()
    }

    /// A directory in sysfs.
    pub fn directory(&self, path: &str) -> Option<Directory> {
        Directory::open(&self.sysfs.join(path)).ok()
    }
}

/// Whether a port is InfiniBand's. Kernels before 2.6.37 have no word for it, and knew nothing else
/// but iWARP's, which has no LID.
pub fn is_infiniband(port: &Port) -> bool {
    port.link_layer == INFINIBAND || port.link_layer.is_empty() && port.lid.is_some()
}

/// How a port is called: `mlx5_0 port 1`.
pub fn port_name(device: &Device, port: &Port) -> String {
    format!("{} port {}", device.name, port.number)
}
