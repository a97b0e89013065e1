//! Vital product data of a PCI function (PCI Local Bus Specification 3.0, appendix I): what the vendor wrote into it.

use std::path::Path;

use super::sysfs::Directory;

/// The most bytes that are read. The VPD of a ConnectX-7 has some 300; the kernel asks the function for each four of
/// them, and waits up to 125 ms (drivers/pci/vpd.c).
const MAX: usize = 2048;

/// What the vendor's field `SMDL` of the functions that manage NVSwitches says (siderolabs/extensions, pull request
/// 895).
const BRIDGE: &[u8] = b"SW_MNG";
/// The baseboard of HGX and DGX B200 in the product name of the adapters on it, all of which manage NVSwitches
/// (leptonai/gpud, pull request 1164).
const BASEBOARD: &[u8] = b"UMBRIEL";

/// The tag of the product name: a large resource (bit 7) of type 2, the identifier string.
const IDENTIFIER: u8 = 0x82;

/// PCI vendor and device id of the adapters on these boards: ConnectX-7, as on other boards.
const CONNECTX_7: (&str, &str) = ("0x15b3", "0x1021");

/// Whether a device of this sysfs leads to NVSwitches, as far as its VPD can be read: only root may.
pub fn is_nvlink_bridge(sysfs: &Path, device: &str) -> bool {
    Directory::open(&sysfs.join("class/infiniband").join(device))
        .is_ok_and(|device| is_bridge(&device))
}

/// The same by the directory of the RDMA device.
pub(super) fn is_bridge(device: &Directory) -> bool {
    // Other vendors have no such field, and VPD that must not be read (kernel: `quirk_blacklist_vpd`).
    let is_mlx5 =
        || device.link_target("device/driver").is_some_and(|driver| driver == "mlx5_core");
    let ids = || (device.text("device/vendor"), device.text("device/device"));
    let is_connectx_7 = || {
        let (vendor, model) = ids();
        (&*vendor, &*model) == CONNECTX_7
    };
    is_mlx5()
        && device
            .read_bytes("device/vpd", MAX)
            .is_ok_and(|vpd| contains(&vpd, BRIDGE) || is_on_baseboard(&vpd) && is_connectx_7())
}

fn is_on_baseboard(vpd: &[u8]) -> bool {
    contains(&product_name(vpd).to_ascii_uppercase(), BASEBOARD)
}

/// The text of the first resource; empty if that is another one.
fn product_name(vpd: &[u8]) -> &[u8] {
    match vpd {
        [IDENTIFIER, low, high, text @ ..] => {
            let length = usize::from(u16::from_le_bytes([*low, *high]));
            text.get(..length).unwrap_or(text)
        }
        _ => &[],
    }
}

fn contains(bytes: &[u8], text: &[u8]) -> bool {
    bytes.windows(text.len()).any(|window| window == text)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The identifier string, and the read-only fields.
    fn vpd(name: &str, fields: &[(&str, &str)]) -> Vec<u8> {
        let field = |(name, text): &(&str, &str)| {
            [name.as_bytes(), &[text.len() as u8], text.as_bytes()].concat()
        };
        let fields: Vec<u8> = fields.iter().flat_map(field).collect();
        let [low, high] = (fields.len() as u16).to_le_bytes();
        let head = [0x82, name.len() as u8, 0];
        [&head[..], name.as_bytes(), &[0x90, low, high], &fields, &[0x78]].concat()
    }

    #[test]
    fn only_vpd_of_a_bridge_names_it() {
        let part = ("PN", "692-9X760-00SE-S00");
        let card = ("VA", "MLX:MN=MLNX:MODL=CX75310A");
        let bridge = ("VA", "MLX:MN=MLNX:SMDL=SW_MNG:PCI=V0");
        let found = |vpd: &[u8]| (contains(vpd, BRIDGE), is_on_baseboard(vpd));
        assert_eq!(found(&vpd("CX7 mezz", &[part, bridge])), (true, false));
        // The function that is not limited, by its product name alone.
        assert_eq!(found(&vpd("Nvidia Umbriel CX7 mezz", &[part, card])), (false, true));
        assert_eq!(found(&vpd("ConnectX-7 NDR adapter", &[part, card])), (false, false));
        assert_eq!(
            found(&vpd("ConnectX-7", &[("PN", "Umbriel")])),
            (false, false),
            "a part number"
        );
        for malformed in [&[][..], &[0xff; 300], &[0x90, 0xff, 0xff], b"SW_MN", &[0x82, 9]] {
            assert_eq!(found(malformed), (false, false));
        }
    }
}
