//! Which devices are two sides of one port: on a multi-plane HCA one has QP0 only, the SMI side, and its parent has QP1
//! only, the GSI side (kernel: drivers/infiniband/hw/mlx5, Linux 6.11).
//!
//! Both have the same port GUID and are on the same PCI function, and the names say nothing: `rdma dev add NAME type SMI
//! parent mlx5_0`. Which side a device is shows when a class is registered. IsSMDisabled, by which libibumad tells them
//! apart, is set by firmware on other devices as well; here it only decides what is tried first.

use std::path::Path;

use ib_mad::Guid;
use rdma_netlink::SmiDevice;

use super::device::{self, UmadPort};

/// PortInfo.CapabilityMask.IsSMDisabled.
const IS_SM_DISABLED: u32 = 0x400;

/// Which side is searched.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Wanted {
    Smi,
    Gsi,
}

/// The devices that may be the other side of a port, the likeliest first.
pub(super) fn partners(
    sysfs: &Path,
    all: &[UmadPort],
    port: &UmadPort,
    wanted: Wanted,
    smi_devices: &[SmiDevice],
) -> Vec<String> {
    let mut hcas: Vec<&str> =
        all.iter().filter(|other| other.hca != port.hca).map(|other| &*other.hca).collect();
    hcas.dedup();
    // What the kernel says is certain.
    let is_confirmed = |hca: &&str| {
        let (smi, parent) = match wanted {
            Wanted::Smi => (*hca, &*port.hca),
            Wanted::Gsi => (&*port.hca, *hca),
        };
        smi_devices.iter().any(|device| device.name == smi && device.parent == parent)
    };
    if let Some(confirmed) = hcas.iter().find(|hca| is_confirmed(hca)) {
        return vec![(*confirmed).to_owned()];
    }
    // The SMI device of another parent.
    hcas.retain(|hca| match wanted {
        Wanted::Smi => smi_devices.iter().all(|device| device.name != *hca),
        Wanted::Gsi => true,
    });
    let Some(guid) = device::port_guid(sysfs, port) else { return Vec::new() };
    hcas.retain(|hca| guid_of(sysfs, all, hca) == Some(guid));
    let function = pci_function(sysfs, &port.hca);
    hcas.sort_by_cached_key(|hca| {
        let is_same_function = function.is_some() && pci_function(sysfs, hca) == function;
        let is_likely = is_sm_disabled(sysfs, all, hca) == (wanted == Wanted::Gsi);
        (!is_same_function, !is_likely)
    });
    hcas.into_iter().map(str::to_owned).collect()
}

/// The first port GUID of a device's InfiniBand ports.
fn guid_of(sysfs: &Path, all: &[UmadPort], hca: &str) -> Option<Guid> {
    let ports = all.iter().filter(|port| port.hca == hca && !port.is_ethernet());
    ports.into_iter().find_map(|port| device::port_guid(sysfs, port))
}

fn is_sm_disabled(sysfs: &Path, all: &[UmadPort], hca: &str) -> bool {
    let first = all.iter().find(|port| port.hca == hca);
    let mask = first.and_then(|port| device::capability_mask(sysfs, port));
    mask.is_some_and(|mask| mask & IS_SM_DISABLED != 0)
}

/// The PCI function of a device, by the target of its link.
fn pci_function(sysfs: &Path, hca: &str) -> Option<std::ffi::OsString> {
    let link = sysfs.join("class/infiniband").join(hca).join("device");
    std::fs::read_link(link).ok()?.file_name().map(ToOwned::to_owned)
}
