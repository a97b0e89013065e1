//! Which device has the planes of another one's port: the SMI device of a multi-plane HCA.
//!
//! An administrator creates it (`rdma dev add NAME type SMI parent mlx5_0`; kernel: drivers/infiniband/core/device.c,
//! Linux 6.11), and its name is free. It is on the PCI function of its parent, has the same GUIDs, LIDs and states, and
//! a port for each plane.

use std::path::Path;

use ib_mad::Guid;

use super::kernel_devices::KernelDevices;
use super::sysfs::Directory;

/// The device whose planes this one has, if it is an SMI device: what the kernel says, or what sysfs shows.
pub(super) fn parent_of(class: &Path, name: &str, kernel: &KernelDevices) -> Option<String> {
    let device = Directory::open(&class.join(name)).ok()?;
    let told = kernel.smi_devices().into_iter().find(|it| it.name == name);
    // A device of this name in the sysfs of another kernel is another device.
    match told.filter(|told| device.text("node_guid").parse() == Ok(told.guid)) {
        Some(told) => Some(told.parent),
        None => parent_in_sysfs(class, name, &device),
    }
}

/// The same by sysfs alone. Each SMI device has several ports, of InfiniBand.
fn parent_in_sysfs(class: &Path, name: &str, device: &Directory) -> Option<String> {
    let this = Side::read(device).filter(|side| side.ports > 1 && side.is_infiniband)?;
    let names = Directory::open(class).and_then(|class| class.names()).unwrap_or_default();
    names.into_iter().filter(|other| other != name).find(|other| {
        let directory = Directory::open(&class.join(other)).ok();
        let directory =
            directory.filter(|it| it.link_target("device") == Some(this.function.clone()));
        directory.and_then(|it| Side::read(&it)).is_some_and(|parent| this.has_planes_of(&parent))
    })
}

/// What tells the two devices of a multi-plane HCA apart. No read of it reaches the firmware.
#[derive(Debug)]
struct Side {
    function: String,
    node_guid: Option<Guid>,
    port_guid: Option<Guid>,
    ports: usize,
    is_infiniband: bool,
    has_hw_counters: bool,
}

impl Side {
    fn read(device: &Directory) -> Option<Side> {
        let function = device.link_target("device")?;
        let ports = device.open_below("ports").ok()?;
        let names = ports.names().ok()?;
        let names = names.iter().filter(|name| name.parse::<u8>().is_ok());
        let ports: Vec<_> = names.filter_map(|name| ports.open_below(name).ok()).collect();
        Some(Side {
            function,
            node_guid: device.text("node_guid").parse().ok(),
            port_guid: ports.iter().find_map(port_guid),
            ports: ports.len(),
            is_infiniband: ports.iter().all(|port| port.text("link_layer") == "InfiniBand"),
            has_hw_counters: ports.iter().any(|port| port.open_below("hw_counters").is_ok()),
        })
    }

    /// rdma-core tells the sides apart by IsSMDisabled (libibumad/umad.c), which firmware sets on other devices, too.
    /// The SMI device has no hw_counters, as its driver registers none (mlx5: `mlx5_ib_sub_dev_ops`), and not fewer
    /// ports.
    fn has_planes_of(&self, parent: &Side) -> bool {
        let guids = self.port_guid.zip(parent.port_guid).or(self.node_guid.zip(parent.node_guid));
        parent.is_infiniband
            && guids.is_some_and(|(one, other)| one == other && one.0 != 0)
            && (self.ports > parent.ports
                || self.ports == parent.ports && !self.has_hw_counters && parent.has_hw_counters)
    }
}

/// The lower half of the first GID of a port (IBTA 1.4, 4.1.1).
fn port_guid(port: &Directory) -> Option<Guid> {
    let gid: std::net::Ipv6Addr = port.text("gids/0").parse().ok()?;
    Some(Guid(gid.to_bits() as u64)).filter(|guid| guid.0 != 0)
}
