//! The host, its devices and the settings that are checked.

use std::path::PathBuf;
use std::time::Duration;

use process_clock::Clock;
use rdma_host::model::{Device, HostSnapshot, Port};
use rdma_host::reader::sysfs::Directory;
use rdma_host::reader::{DeviceSource, HostReader, ReadOptions};

use super::finding::{Finding, Subject, note, ok};
use crate::config::Settings;

/// What to do about a device whose reads block.
pub(super) const HUNG_FIRMWARE: &str = "dmesg | grep -i -e mlx -e infiniband   # if firmware hangs: reset the \
                             adapter, or power-cycle the host";

#[derive(Clone, Debug)]
pub struct DoctorOptions {
    /// What `serve` would run with; the flags and defaults, if the file cannot be used.
    pub settings: Settings,
    pub file: Option<PathBuf>,
    /// Why the file cannot be used.
    pub problem: Option<String>,
    pub dev: PathBuf,
    /// Whether to send nothing on the wire.
    pub offline: bool,
}

/// What is found where only a device could be checked.
pub(super) const NO_DEVICE: &str = "not checked: no RDMA device";

/// What is found where only a sweep could need something.
pub(super) const NO_SWEEP: &str = "not needed: no fabric is swept, so the exporter sends no MADs";

/// The host, and what to check on it.
#[derive(Debug)]
pub(super) struct CheckedHost {
    pub(super) options: DoctorOptions,
    pub(super) devices: Vec<Device>,
    /// How many devices the settings exclude.
    pub(super) excluded: usize,
}

impl CheckedHost {
    /// Reads the devices of the host, except those that the settings exclude: they may be known to hang. A device
    /// that hangs is abandoned after 5 s, a file that hangs after 2 s.
    pub(super) fn read(options: DoctorOptions) -> Self {
        let Settings { host, sysfs, .. } = &options.settings;
        let filter = host.as_ref().map(|host| host.filter.clone()).unwrap_or_default();
        // There is one read only, so no backoff.
        let read = ReadOptions {
            error_backoff: Duration::ZERO,
            ethtool: false,
            cm: false,
            modules: false,
        };
        let mut reader = HostReader::new(sysfs.clone(), filter, read, Clock::start());
        let HostSnapshot { devices, excluded, .. } = reader.read();
        CheckedHost { options, devices, excluded }
    }

    pub(super) fn settings(&self) -> &Settings {
        &self.options.settings
    }

    /// Whether the exporter would send MADs, and not only read this host's own devices.
    pub(super) fn sweeps(&self) -> bool {
        self.settings().fabrics.iter().any(|fabric| fabric.from.is_none())
    }

    /// Whether the exporter would receive the events of devices.
    pub(super) fn receives_events(&self) -> bool {
        self.settings().host.as_ref().is_some_and(|host| host.events)
    }

    pub(super) fn ports(&self) -> impl Iterator<Item = (&Device, &Port)> {
        self.devices.iter().flat_map(|device| device.ports.iter().map(move |port| (device, port)))
    }

    pub(super) fn infiniband_ports(&self) -> impl Iterator<Item = (&Device, &Port)> {
        self.ports().filter(|(_, port)| is_infiniband(port))
    }

    pub(super) fn has_infiniband(&self) -> bool {
        self.infiniband_ports().next().is_some()
    }

    /// The ports from which a fabric can be swept, as far as their kind says.
    pub(super) fn fabric_ports(&self) -> impl Iterator<Item = (&Device, &Port)> {
        self.infiniband_ports().filter(|(_, port)| port.kind.has_cable())
    }

    /// The finding of a check of InfiniBand ports on a host without one.
    pub(super) fn without_ports(&self, subject: Subject) -> Finding {
        if self.devices.is_empty() {
            note(subject, "ports", NO_DEVICE)
        } else {
            ok(subject, "ports", "not needed: this host has no InfiniBand port")
        }
    }

    /// The names in a directory of sysfs; `None` if it does not exist or cannot be read.
    pub(super) fn names(&self, path: &str) -> Option<Vec<String>> {
        self.directory(path)?.names().ok()
    }

    pub(super) fn directory(&self, path: &str) -> Option<Directory> {
        Directory::open(&self.settings().sysfs.join(path)).ok()
    }
}

/// Whether it is an InfiniBand port. Kernels before 2.6.37 have no file with the link layer, and other ports of
/// those, of iWARP, have no LID.
pub(super) fn is_infiniband(port: &Port) -> bool {
    port.link_layer == "InfiniBand" || port.link_layer.is_empty() && port.lid.is_some()
}

/// The name of a port in findings: `mlx5_0 port 1`.
pub(super) fn port_name(device: &Device, port: &Port) -> String {
    format!("{} port {}", device.name, port.number)
}

#[cfg(test)]
impl CheckedHost {
    /// A host with these devices, and the default settings.
    pub(super) fn with(devices: Vec<Device>) -> Self {
        let settings = Settings::load(crate::config::options::Options::default(), None).unwrap();
        let dev = "/nowhere".into();
        let options = DoctorOptions { settings, file: None, problem: None, dev, offline: false };
        CheckedHost { options, devices, excluded: 0 }
    }
}
