//! Vital product data of a PCI function (PCI Local Bus Specification 3.0, appendix I): what the vendor wrote into it.

use std::path::Path;

use super::sysfs::Directory;

/// The most bytes that are read. The VPD of a ConnectX-7 has some 300; the kernel asks the function for each four of
/// them, and waits up to 125 ms (drivers/pci/vpd.c).
const MAX: usize = 2048;

/// What the vendor's field `SMDL` of the functions that manage NVSwitches says (siderolabs/extensions, pull request
/// 895).
const BRIDGE: &[u8] = b"SW_MNG";

/// Whether a device of this sysfs manages NVSwitches, as far as its VPD can be read: only root may.
pub fn is_nvlink_bridge(sysfs: &Path, device: &str) -> bool {
    Directory::open(&sysfs.join("class/infiniband").join(device))
        .is_ok_and(|device| is_bridge(&device))
}

/// The same by the directory of the RDMA device.
pub(super) fn is_bridge(device: &Directory) -> bool {
    // Other vendors have no such field, and VPD that must not be read (kernel: `quirk_blacklist_vpd`).
    let is_mlx5 =
        || device.link_target("device/driver").is_some_and(|driver| driver == "mlx5_core");
    is_mlx5() && device.read_bytes("device/vpd", MAX).is_ok_and(|vpd| names_bridge(&vpd))
}

fn names_bridge(vpd: &[u8]) -> bool {
    vpd.windows(BRIDGE.len()).any(|window| window == BRIDGE)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The identifier string, and the read-only fields.
    fn vpd(fields: &[(&str, &str)]) -> Vec<u8> {
        let field = |(name, text): &(&str, &str)| {
            [name.as_bytes(), &[text.len() as u8], text.as_bytes()].concat()
        };
        let fields: Vec<u8> = fields.iter().flat_map(field).collect();
        let (name, [low, high]) = (b"Umbriel CX7 mezz", (fields.len() as u16).to_le_bytes());
        [&[0x82, name.len() as u8, 0][..], name, &[0x90, low, high], &fields, &[0x78]].concat()
    }

    #[test]
    fn only_vpd_of_a_bridge_names_it() {
        let part = ("PN", "692-9X760-00SE-S00");
        assert!(names_bridge(&vpd(&[part, ("VA", "MLX:MN=MLNX:SMDL=SW_MNG:PCI=V0")])));
        assert!(!names_bridge(&vpd(&[part, ("VA", "MLX:MN=MLNX:MODL=CX75310A")])));
        for malformed in [&[][..], &[0xff; 300], &[0x90, 0xff, 0xff], b"SW_MN"] {
            assert!(!names_bridge(malformed));
        }
    }
}
