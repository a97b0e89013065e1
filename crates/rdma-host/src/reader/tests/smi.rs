//! SMI devices, as the kernel tells them by netlink.

use rdma_netlink::SmiDevice;

use super::*;
use crate::model::PortKind;

#[test]
fn kernel_tells_smi_device_that_sysfs_does_not_show() {
    let sysfs = Sysfs::new();
    for (name, guid) in [("mlx5_0", 1), ("planes", 1), ("smi1", 2)] {
        sysfs.device(name, guid);
    }
    let told = |name: &str| SmiDevice {
        name: name.to_owned(),
        guid: Guid(1),
        parent: "mlx5_0".to_owned(),
    };
    let mut host = sysfs.host();
    // The second one has another GUID in this sysfs: that of another kernel, or of a copy.
    host.context.kernel = Arc::new(KernelDevices::with(vec![told("planes"), told("smi1")]));
    host.executor = executor(&host.context);
    let devices = host.read().devices;
    let kinds = devices.iter().map(|device| (&*device.name, device.kind, device.parent.as_deref()));
    let expected = [
        ("mlx5_0", PortKind::Software, None),
        ("planes", PortKind::Smi, Some("mlx5_0")),
        ("smi1", PortKind::Software, None),
    ];
    assert_eq!(kinds.collect::<Vec<_>>(), expected);
    assert_eq!(devices[1].ports[0].plane(), Some(1));
}
