//! Hosts as they exist in practice.

use super::Tree;
use super::device::{Device, Netdev};
use super::nvidia::connectx8_ethernet;

/// A host and its name.
pub struct Host {
    /// Its name in the messages of a failing test.
    pub name: &'static str,
    /// Its sysfs.
    pub tree: Tree,
}

/// A GPU node with eight HCAs on NDR and a bond for storage. The numbers have gaps: functions
/// without RDMA come in between.
pub fn hgx() -> Tree {
    let numbers = [0, 1, 2, 3, 6, 7, 8, 9];
    let hcas = (0..8)
        .zip(numbers)
        .map(|(index, number)| Device::mlx5_ndr(&format!("mlx5_{number}"), index));
    let tree = Tree::new(hcas.chain([Device::mlx5_bond("mlx5_bond_0", 8)]));
    let slaves = "ens1f0np0 ens1f1np1";
    tree.add_netdev(None, &Netdev::ethernet("bond0").file("bonding/slaves", slaves));
    tree
}

/// All of them.
pub fn every_host() -> Vec<Host> {
    let one = |name, device| Host { name, tree: Tree::new([device]) };
    vec![
        Host { name: "HGX, 8 HCAs on NDR and a bond", tree: hgx() },
        one("XDR", Device::mlx5_xdr("mlx5_0")),
        Host { name: "ConnectX-8 on Ethernet", tree: connectx8_ethernet() },
        one("mlx4 with counters_ext", Device::mlx4("mlx4_0")),
        one("mthca on an old kernel", Device::mthca("mthca0")),
        one("hfi1", Device::hfi1("hfi1_0")),
        one("irdma without counters", Device::irdma("irdma0")),
        one("irdma whose names have spaces", Device::irdma_gen3("rocep50s0")),
        one("EFA", Device::efa("rdmap0s30")),
        one("bnxt_re", Device::bnxt_re("bnxt_re0")),
        one("i40iw without a PMA", Device::i40iw("i40iw0")),
        one("soft RoCE", Device::rxe("rxe0", "veth0")),
        one("soft iWARP", Device::siw("siw0")),
        Host {
            name: "virtual functions without a GUID",
            tree: Tree::new([Device::mlx5_vf("mlx5_4", 1), Device::mlx5_vf("mlx5_5", 2)]),
        },
    ]
}
