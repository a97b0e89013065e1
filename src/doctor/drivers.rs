//! Drivers of RDMA cards, and the modules that create the RDMA devices.

/// A driver of a PCI function.
#[derive(Clone, Copy, Debug)]
pub struct Driver {
    /// Its name on the PCI bus.
    pub pci: &'static str,
    /// The module that creates the RDMA devices; the same if the driver does.
    pub rdma: &'static str,
    /// Whether all of its cards have RDMA; other drivers have plain network cards, too.
    pub always: bool,
}

/// Kernel: drivers/infiniband/hw, and the auxiliary or PCI drivers that they depend on.
const DRIVERS: [Driver; 20] = [
    Driver { pci: "mlx5_core", rdma: "mlx5_ib", always: true },
    Driver { pci: "mlx4_core", rdma: "mlx4_ib", always: true },
    Driver { pci: "ib_mthca", rdma: "ib_mthca", always: true },
    Driver { pci: "ib_qib", rdma: "ib_qib", always: true },
    Driver { pci: "hfi1", rdma: "hfi1", always: true },
    Driver { pci: "efa", rdma: "efa", always: true },
    Driver { pci: "erdma", rdma: "erdma", always: true },
    Driver { pci: "vmw_pvrdma", rdma: "vmw_pvrdma", always: true },
    Driver { pci: "ice", rdma: "irdma", always: false },
    Driver { pci: "i40e", rdma: "irdma", always: false },
    Driver { pci: "idpf", rdma: "irdma", always: false },
    Driver { pci: "bnxt_en", rdma: "bnxt_re", always: false },
    Driver { pci: "qede", rdma: "qedr", always: false },
    Driver { pci: "cxgb4", rdma: "iw_cxgb4", always: false },
    Driver { pci: "hns3", rdma: "hns_roce_hw_v2", always: false },
    Driver { pci: "be2net", rdma: "ocrdma", always: false },
    Driver { pci: "enic", rdma: "usnic_verbs", always: false },
    Driver { pci: "mana", rdma: "mana_ib", always: false },
    Driver { pci: "ionic", rdma: "ionic_rdma", always: false },
    Driver { pci: "bng_en", rdma: "bng_re", always: false },
];

/// The driver with this name on the PCI bus.
pub fn by_name(pci: &str) -> Option<&'static Driver> {
    DRIVERS.iter().find(|driver| driver.pci == pci)
}

/// RDMA cards by their ids, for cards without a driver.
#[derive(Clone, Copy, Debug)]
pub struct Card {
    vendor: u16,
    /// Device ids, from and to.
    devices: (u16, u16),
    /// The module to load.
    pub module: &'static str,
}

/// Cards for RDMA alone (kernel: the drivers' `pci_device_id` tables; include/linux/pci_ids.h). The first row
/// with the id counts.
const CARDS: [Card; 9] = [
    Card { vendor: 0x15b3, devices: (0x1000, 0x1010), module: "mlx4_core" },
    Card { vendor: 0x15b3, devices: (0x5000, 0x633f), module: "ib_mthca" },
    Card { vendor: 0x15b3, devices: (0x6340, 0x67ff), module: "mlx4_core" },
    Card { vendor: 0x15b3, devices: (0, 0xffff), module: "mlx5_core" },
    Card { vendor: 0x8086, devices: (0x24f0, 0x24f1), module: "hfi1" },
    Card { vendor: 0x1077, devices: (0x7220, 0x7322), module: "ib_qib" },
    Card { vendor: 0x1d0f, devices: (0xefa0, 0xefaf), module: "efa" },
    Card { vendor: 0x1ded, devices: (0x107f, 0x107f), module: "erdma" },
    Card { vendor: 0x15ad, devices: (0x0820, 0x0820), module: "vmw_pvrdma" },
];

/// The card with these ids, if it is for RDMA alone.
pub fn by_ids(vendor: u16, device: u16) -> Option<&'static Card> {
    let has =
        |card: &&Card| card.vendor == vendor && (card.devices.0..=card.devices.1).contains(&device);
    CARDS.iter().find(has)
}

/// The vendor of a card.
pub fn maker(vendor: u16) -> &'static str {
    match vendor {
        0x15b3 => "NVIDIA (Mellanox)",
        0x8086 => "Intel",
        0x434e => "Cornelis",
        0x1077 => "QLogic",
        0x14e4 => "Broadcom",
        0x1425 => "Chelsio",
        0x1d0f => "Amazon",
        0x1ded => "Alibaba",
        0x19e5 => "Huawei",
        0x1dd8 => "AMD Pensando",
        0x1414 => "Microsoft",
        0x15ad => "VMware",
        _ => "vendor",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_give_module_of_card() {
        for (vendor, device, module) in [
            (0x15b3, 0x1003, Some("mlx4_core")),
            (0x15b3, 0x6282, Some("ib_mthca")),
            (0x15b3, 0x673c, Some("mlx4_core")),
            (0x15b3, 0x1021, Some("mlx5_core")),
            (0x8086, 0x24f0, Some("hfi1")),
            (0x8086, 0x1592, None),
            (0x1d0f, 0xefa1, Some("efa")),
            (0x1d0f, 0xec20, None),
        ] {
            assert_eq!(by_ids(vendor, device).map(|card| card.module), module, "{device:#x}");
        }
    }
}
