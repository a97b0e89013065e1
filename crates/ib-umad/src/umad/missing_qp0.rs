//! Why a port that should have QP0 has none, and what to do.

use std::fmt;
use std::path::Path;

use super::sys::attribute;

/// Why a port cannot send SMPs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum MissingQp0 {
    /// A multi-plane HCA, whose QP0 is on a device of its own that was not created.
    NoSmiDevice {
        /// The device that the other one is created for.
        parent: String,
    },
    /// The firmware of an HCA that is not multi-plane claims one plane, and the kernel believes it.
    FalsePlane {
        /// Version of the firmware.
        firmware: String,
        /// Release of the kernel.
        kernel: String,
    },
    /// Neither, as far as is known.
    Unknown,
}

/// PCI device id of ConnectX-8, the first multi-plane HCA, as in `hca_type`; later ones follow it.
const FIRST_MULTI_PLANE: u32 = 4131;
/// Functions of these have five digits: `BlueField`.
const FIRST_BLUEFIELD: u32 = 41_682;

impl MissingQp0 {
    /// By the type of the device, its firmware, and the kernel's release (`uname -r`).
    pub fn find(sysfs: &Path, hca: &str, kernel: Option<&str>) -> Self {
        let directory = sysfs.join("class/infiniband").join(hca);
        let id = attribute(&directory.join("hca_type"));
        let id: Option<u32> = id.and_then(|kind| kind.strip_prefix("MT")?.parse().ok());
        let is_virtual = directory.join("device/physfn").exists();
        let Some(id) = id.filter(|_| !is_virtual) else { return MissingQp0::Unknown };
        if (FIRST_MULTI_PLANE..FIRST_BLUEFIELD).contains(&id) {
            return MissingQp0::NoSmiDevice { parent: hca.to_owned() };
        }
        let firmware = attribute(&directory.join("fw_ver"));
        match (firmware, kernel) {
            (Some(firmware), Some(kernel))
                if claims_plane(&firmware) && believes_claim(kernel) && !is_virtual_id(id) =>
            {
                MissingQp0::FalsePlane { firmware, kernel: kernel.to_owned() }
            }
            _ => MissingQp0::Unknown,
        }
    }

    /// What to do.
    pub fn remedy(&self) -> String {
        match self {
            MissingQp0::NoSmiDevice { parent } => {
                format!("rdma dev add smi_{parent} type SMI parent {parent}")
            }
            MissingQp0::FalsePlane { .. } => {
                "update the kernel to 6.12.9, 6.13 or later, or the firmware to one after xx.42.1000".into()
            }
            MissingQp0::Unknown => "choose another one with --fabric.hca".into(),
        }
    }
}

impl fmt::Display for MissingQp0 {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            MissingQp0::NoSmiDevice { parent } => write!(
                f,
                "{parent} is a multi-plane HCA, whose subnet management needs another device, which is missing"
            ),
            MissingQp0::FalsePlane { firmware, kernel } => write!(
                f,
                "firmware {firmware} claims a plane that this HCA does not have, and kernel {kernel} therefore \
                 gives it no QP0"
            ),
            MissingQp0::Unknown => f.write_str(
                "it is a virtual function, a plane of an HCA whose QP0 is on another device, or not an \
                 InfiniBand port",
            ),
        }
    }
}

/// Virtual functions have the even ids of ConnectX: in a guest nothing else shows what they are.
fn is_virtual_id(id: u32) -> bool {
    id < FIRST_BLUEFIELD && id.is_multiple_of(2)
}

/// Firmware xx.40.1000 to xx.42.1000 reports num_plane 1 without being multi-plane (kernel commit 45d339fefaa3).
fn claims_plane(firmware: &str) -> bool {
    let mut parts = firmware.split('.').skip(1).map(|part| part.parse::<u32>().ok());
    let version = (parts.next().flatten(), parts.next().flatten());
    let (Some(minor), Some(sub)) = version else { return false };
    ((40, 1000)..=(42, 1000)).contains(&(minor, sub))
}

/// Linux 6.11 asks for planes; the commit that checks the capability first is in 6.13 and 6.12.9.
fn believes_claim(release: &str) -> bool {
    let numbers = release.split(|c: char| !c.is_ascii_digit()).map(|part| part.parse().ok());
    let mut numbers = numbers.map_while(|number: Option<u32>| number);
    let version = (numbers.next(), numbers.next(), numbers.next());
    match version {
        (Some(6), Some(11), _) => true,
        (Some(6), Some(12), patch) => patch.unwrap_or(0) < 9,
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(kind: &str, firmware: &str, kernel: &str) -> MissingQp0 {
        let sysfs = tempfile::tempdir().unwrap();
        let directory = sysfs.path().join("class/infiniband/mlx5_0");
        std::fs::create_dir_all(&directory).unwrap();
        std::fs::write(directory.join("hca_type"), format!("{kind}\n")).unwrap();
        std::fs::write(directory.join("fw_ver"), format!("{firmware}\n")).unwrap();
        MissingQp0::find(sysfs.path(), "mlx5_0", Some(kernel))
    }

    #[test]
    fn multi_plane_hca_needs_an_smi_device() {
        for kernel in ["6.8.0-51-generic", "6.11.0", "6.14.2"] {
            let why = found("MT4131", "40.44.1036", kernel);
            assert_eq!(why, MissingQp0::NoSmiDevice { parent: "mlx5_0".into() });
            assert_eq!(why.remedy(), "rdma dev add smi_mlx5_0 type SMI parent mlx5_0");
        }
    }

    #[test]
    fn false_plane_needs_firmware_and_kernel() {
        for (kind, firmware, kernel, is_it) in [
            ("MT4129", "28.40.1000", "6.11.0", true),
            ("MT4129", "28.42.1000", "6.12.8+deb13-amd64", true),
            ("MT4123", "20.41.9999", "6.12", true),
            ("MT41692", "32.41.1000", "6.11.5-arch1", true),
            // Older and newer firmware, older and newer kernels.
            ("MT4129", "28.39.9999", "6.11.0", false),
            ("MT4129", "28.40.999", "6.11.0", false),
            ("MT4129", "28.42.1001", "6.11.0", false),
            ("MT4129", "28.41.1000", "6.10.14", false),
            ("MT4129", "28.41.1000", "6.12.9", false),
            ("MT4129", "28.41.1000", "6.13.0", false),
            ("MT4129", "28.41.1000", "7.0.1", false),
            // A virtual function, and what cannot be read.
            ("MT4126", "28.41.1000", "6.11.0", false),
            ("MT4129", "28.41", "6.11.0", false),
            ("MT4129", "28.41.1000", "", false),
            ("", "28.41.1000", "6.11.0", false),
        ] {
            let why = found(kind, firmware, kernel);
            let says = matches!(why, MissingQp0::FalsePlane { .. });
            assert_eq!(says, is_it, "{kind} {firmware} {kernel}: {why:?}");
            if is_it {
                let text = why.to_string();
                assert!(text.contains(firmware) && text.contains(kernel), "{text}");
                assert!(why.remedy().contains("kernel") && why.remedy().contains("firmware"));
            }
        }
    }
}
