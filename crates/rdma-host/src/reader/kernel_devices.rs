//! The SMI devices that the kernel names. Sysfs does not show whether a device is the SMI device of a multi-plane HCA.

use std::path::Path;
use std::sync::Mutex;

use rdma_netlink::{SmiDevice, SmiDevices};

use super::watch;

/// Asks the kernel; in the network namespace that this was opened in.
#[derive(Debug, Default)]
pub(super) struct KernelDevices(Mutex<State>);

#[derive(Debug, Default)]
struct State {
    kernel: Option<SmiDevices>,
    #[cfg(test)]
    smi_devices: Vec<SmiDevice>,
}

impl KernelDevices {
    /// Opens a socket. Without one, as in a kernel without RDMA, nothing is known.
    pub fn open() -> Self {
        let kernel = SmiDevices::open().inspect_err(|error| {
            tracing::debug!(%error, "no netlink of RDMA: SMI devices are recognized by sysfs alone");
        });
        KernelDevices(Mutex::new(State {
            kernel: kernel.ok(),
            #[cfg(test)]
            smi_devices: Vec::new(),
        }))
    }

    /// The SMI devices. None is known while another thread asks: no device waits for another.
    pub fn smi_devices(&self) -> Vec<SmiDevice> {
        let Ok(mut state) = self.0.try_lock() else { return Vec::new() };
        #[cfg(test)]
        if !state.smi_devices.is_empty() {
            return state.smi_devices.clone();
        }
        let Some(kernel) = &mut state.kernel else { return Vec::new() };
        let listed = watch::begin(Path::new("netlink"), "RDMA_NLDEV_CMD_GET")
            .and_then(|_watched| kernel.list());
        let listed = listed.inspect_err(|error| {
            tracing::debug!(%error, "types of RDMA devices cannot be read by netlink");
        });
        listed.unwrap_or_default()
    }
}

#[cfg(test)]
impl KernelDevices {
    pub fn with(smi_devices: Vec<SmiDevice>) -> Self {
        KernelDevices(Mutex::new(State { smi_devices, ..State::default() }))
    }
}
