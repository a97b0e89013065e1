//! What umad ports are opened with: the kernel of this host, or a made-up one of tests.

use std::io;
use std::os::fd::OwnedFd;
use std::path::Path;

use rdma_netlink::{SmiDevice, SmiDevices};

use super::file::UmadFile;
use super::sys::Descriptor;

/// Opens a device with privileges that this process has given up, for reading and writing without waiting.
pub type OpenDevice = dyn Fn(&Path) -> io::Result<OwnedFd>;

/// What is asked of the host beyond sysfs.
pub(super) trait System {
    fn open(&self, device: &Path) -> io::Result<Box<dyn UmadFile>>;

    /// The SMI devices; none on kernels before 6.11, and where the kernel cannot be asked.
    fn smi_devices(&self) -> Vec<SmiDevice>;

    /// As `uname -r`.
    fn kernel_release(&self) -> Option<String>;
}

/// The host itself.
pub(super) struct ThisHost<'a> {
    pub opener: Option<&'a OpenDevice>,
}

impl System for ThisHost<'_> {
    fn open(&self, device: &Path) -> io::Result<Box<dyn UmadFile>> {
        let descriptor = match (Descriptor::open(device), self.opener) {
            (Err(error), Some(open)) if error.kind() == io::ErrorKind::PermissionDenied => {
                open(device).map(Descriptor::from)
            }
            (direct, _) => direct,
        };
        Ok(Box::new(descriptor?))
    }

    fn smi_devices(&self) -> Vec<SmiDevice> {
        SmiDevices::open().and_then(|mut it| it.list()).unwrap_or_else(|error| {
            tracing::debug!(%error, "the kernel does not say which RDMA devices are SMI devices");
            Vec::new()
        })
    }

    fn kernel_release(&self) -> Option<String> {
        let release = std::fs::read_to_string("/proc/sys/kernel/osrelease").ok()?;
        Some(release.trim().to_owned())
    }
}
