//! Which ports this host can send MADs from, and whether one of them will do.

use std::io;
use std::path::{Path, PathBuf};

use thiserror::Error;

use ib_mad::p_key::PKey;
use ib_mad::{Guid, PortNumber};

use super::sys;

/// A port that has a umad device.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UmadPort {
    /// The HCA: `mlx5_0`.
    pub hca: String,
    /// The port's number.
    pub port: PortNumber,
    /// `/dev/infiniband/umad0`.
    pub device: PathBuf,
    /// `InfiniBand` or `Ethernet`; `None` where the kernel is too old to say.
    pub link_layer: Option<String>,
    /// PortPhysicalState, as sysfs writes it: `5: LinkUp`.
    pub physical_state: Option<String>,
}

/// Why no port could be had. Each says what to do about it.
#[derive(Debug, Error)]
pub enum DeviceError {
    /// Nothing in sysfs.
    #[error(
        "no RDMA device on this host ({directory} has none): load the driver of the HCA and \
         ib_umad (modprobe ib_umad), or run this on a host that has one"
    )]
    NoDevice {
        /// Where it was looked for.
        directory: String,
    },
    /// The HCA is not there.
    #[error("there is no HCA {asked:?} on this host: --fabric.hca may be {known}")]
    UnknownHca {
        /// What was asked for.
        asked: String,
        /// What there is.
        known: String,
    },
    /// The HCA has no such port.
    #[error("HCA {hca} has no port {asked}: --fabric.port may be {known}")]
    UnknownPort {
        /// The HCA.
        hca: String,
        /// What was asked for.
        asked: PortNumber,
        /// What there is.
        known: String,
    },
    /// A RoCE port.
    #[error(
        "{hca} port {port} is an Ethernet (RoCE) port, which has no subnet to ask: name an \
         InfiniBand port with --fabric.hca, or leave the fabric out with --no-collector.fabric"
    )]
    Ethernet {
        /// The HCA.
        hca: String,
        /// The port.
        port: PortNumber,
    },
    /// A port that may not send subnet management.
    #[error(
        "{hca} port {port} cannot send subnet management: it is a virtual function, a plane of an \
         HCA whose QP0 is another device's, or no InfiniBand port; name one that can with --fabric.hca"
    )]
    NoSubnetManagement {
        /// The HCA.
        hca: String,
        /// The port.
        port: PortNumber,
    },
    /// No link.
    #[error(
        "{hca} port {port} has no link (physical state {state}): plug in its cable, or name a \
         port that is up with --fabric.hca and --fabric.port"
    )]
    Down {
        /// The HCA.
        hca: String,
        /// The port.
        port: PortNumber,
        /// What sysfs says.
        state: String,
    },
    /// The port is in no such partition.
    #[error(
        "{hca} port {port} is not in the partition of P_Key {asked}: its table has {known}; name one of \
         those with --fabric.pkey, or add the port's GUID to the partition in the subnet manager's \
         partitions.conf"
    )]
    UnknownPKey {
        /// The HCA.
        hca: String,
        /// The port.
        port: PortNumber,
        /// What was asked for.
        asked: PKey,
        /// What there is.
        known: String,
    },
    /// The kernel lets no P_Key be chosen.
    #[error(
        "P_Key {asked} has index {index} in the port's table, and this kernel's umad sends with index 0 \
         alone: leave --fabric.pkey out, or use a kernel from 3.18 on"
    )]
    NoPKeyIndex {
        /// What was asked for.
        asked: PKey,
        /// Its place in the table.
        index: u16,
    },
    /// The device file is closed to us.
    #[error(
        "no permission to open {device}: run as root, or let the group of the service have it by a \
         udev rule: KERNEL==\"umad*\", GROUP=\"rdma\", MODE=\"0660\""
    )]
    Permission {
        /// The device file.
        device: String,
    },
    /// The device cannot be opened or set up, for another reason.
    #[error("{device}: {action}: {error}")]
    Unusable {
        /// The device file.
        device: String,
        /// What was tried.
        action: &'static str,
        /// What came of it.
        error: io::Error,
    },
}

impl DeviceError {
    /// Why a device file could not be opened.
    pub(super) fn of_open(device: String, error: io::Error) -> Self {
        match error.kind() {
            io::ErrorKind::PermissionDenied => DeviceError::Permission { device },
            _ => DeviceError::Unusable { device, action: "open", error },
        }
    }
}

fn attribute(path: &Path) -> Option<String> {
    sys::read_text(path).ok().map(|text| text.trim().to_owned()).filter(|text| !text.is_empty())
}

/// A port's GUID: the lower half of the first of its GIDs (IBTA 1.4, 4.1.1).
pub(super) fn port_guid(sysfs: &Path, port: &UmadPort) -> Option<Guid> {
    let ports = sysfs.join("class/infiniband").join(&port.hca).join("ports");
    let gid = attribute(&ports.join(port.port.to_string()).join("gids/0"))?;
    let gid: std::net::Ipv6Addr = gid.parse().ok()?;
    Some(Guid(gid.to_bits() as u64)).filter(|guid| *guid != Guid::default())
}

/// All ports with a umad device, by HCA and number.
fn ports(sysfs: &Path) -> Vec<UmadPort> {
    let class = sysfs.join("class");
    let entries = std::fs::read_dir(class.join("infiniband_mad")).into_iter().flatten().flatten();
    let mut ports: Vec<UmadPort> = entries
        .filter_map(|entry| {
            let name =
                entry.file_name().into_string().ok().filter(|name| name.starts_with("umad"))?;
            let umad = class.join("infiniband_mad").join(&name);
            let hca = attribute(&umad.join("ibdev"))?;
            let port: PortNumber = attribute(&umad.join("port"))?.parse().ok()?;
            let about = class.join("infiniband").join(&hca).join("ports").join(port.to_string());
            Some(UmadPort {
                hca,
                port,
                device: Path::new("/dev/infiniband").join(name),
                link_layer: attribute(&about.join("link_layer")),
                physical_state: attribute(&about.join("phys_state")),
            })
        })
        .collect();
    ports.sort_by(|a, b| (&a.hca, a.port).cmp(&(&b.hca, b.port)));
    ports
}

impl UmadPort {
    /// All ports with a umad device, by HCA and number.
    pub fn all(sysfs: &Path) -> Vec<UmadPort> {
        ports(sysfs)
    }

    /// The ports to ask the fabric from, the best first: those that were named, else the
    /// InfiniBand ports with a link. There is one at least.
    pub(super) fn candidates(
        sysfs: &Path,
        hca: Option<&str>,
        port: Option<PortNumber>,
    ) -> Result<Vec<UmadPort>, DeviceError> {
        choose(ports(sysfs), &sysfs.join("class/infiniband_mad"), hca, port)
    }

    /// The port that was named, whatever its link layer and state; of several the first.
    pub(super) fn named(
        sysfs: &Path,
        hca: &str,
        port: Option<PortNumber>,
    ) -> Result<UmadPort, DeviceError> {
        named(ports(sysfs), &sysfs.join("class/infiniband_mad"), Some(hca), port)
            .map(|(first, _)| first)
    }

    fn usable(&self) -> Result<(), DeviceError> {
        let (hca, port) = (self.hca.clone(), self.port);
        if self.link_layer.as_deref() == Some("Ethernet") {
            return Err(DeviceError::Ethernet { hca, port });
        }
        match &self.physical_state {
            Some(state) if !state.starts_with("5:") => {
                Err(DeviceError::Down { hca, port, state: state.clone() })
            }
            _ => Ok(()),
        }
    }
}

fn list(items: impl IntoIterator<Item = String>) -> String {
    let mut items: Vec<String> = items.into_iter().collect();
    items.dedup();
    items.join(", ")
}

/// The ports that were named; the first also by itself, for there is one at least.
fn named(
    all: Vec<UmadPort>,
    directory: &Path,
    hca: Option<&str>,
    port: Option<PortNumber>,
) -> Result<(UmadPort, Vec<UmadPort>), DeviceError> {
    if all.is_empty() {
        return Err(DeviceError::NoDevice { directory: directory.display().to_string() });
    }
    let known = list(all.iter().map(|port| port.hca.clone()));
    let of_hca: Vec<UmadPort> =
        all.into_iter().filter(|port| hca.is_none_or(|hca| port.hca == hca)).collect();
    let Some(first_hca) = of_hca.first().map(|port| port.hca.clone()) else {
        return Err(DeviceError::UnknownHca { asked: hca.unwrap_or_default().to_owned(), known });
    };
    let numbers = list(of_hca.iter().map(|port| port.port.to_string()));
    let candidates: Vec<UmadPort> =
        of_hca.into_iter().filter(|found| port.is_none_or(|port| found.port == port)).collect();
    let Some(first) = candidates.first().cloned() else {
        let asked = port.unwrap_or_default();
        return Err(DeviceError::UnknownPort { hca: first_hca, asked, known: numbers });
    };
    Ok((first, candidates))
}

fn choose(
    all: Vec<UmadPort>,
    directory: &Path,
    hca: Option<&str>,
    port: Option<PortNumber>,
) -> Result<Vec<UmadPort>, DeviceError> {
    let (first, candidates) = named(all, directory, hca, port)?;
    first.usable().or_else(|error| {
        if candidates.iter().any(|port| port.usable().is_ok()) { Ok(()) } else { Err(error) }
    })?;
    Ok(candidates.into_iter().filter(|port| port.usable().is_ok()).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn port(hca: &str, number: u8, layer: &str, state: &str) -> UmadPort {
        UmadPort {
            hca: hca.into(),
            port: number,
            device: "/dev/infiniband/umad0".into(),
            link_layer: Some(layer.into()),
            physical_state: Some(state.into()),
        }
    }

    fn mixed() -> Vec<UmadPort> {
        vec![
            port("mlx5_0", 1, "Ethernet", "5: LinkUp"),
            port("mlx5_1", 1, "InfiniBand", "2: Polling"),
            port("mlx5_1", 2, "InfiniBand", "5: LinkUp"),
        ]
    }

    fn chosen(
        all: Vec<UmadPort>,
        hca: Option<&str>,
        number: Option<u8>,
    ) -> Result<(String, u8), String> {
        choose(all, Path::new("/sys/class/infiniband_mad"), hca, number)
            .map(|ports| (ports[0].hca.clone(), ports[0].port))
            .map_err(|error| error.to_string())
    }

    #[test]
    fn the_first_infiniband_port_with_a_link_is_taken() {
        assert_eq!(chosen(mixed(), None, None), Ok(("mlx5_1".into(), 2)));
        assert_eq!(chosen(mixed(), Some("mlx5_1"), None), Ok(("mlx5_1".into(), 2)));
    }

    #[test]
    fn each_refusal_names_what_to_do() {
        for (all, hca, number, says) in [
            (vec![], None, None, ["no RDMA device", "modprobe ib_umad"]),
            (mixed(), Some("mlx9"), None, ["\"mlx9\"", "mlx5_0, mlx5_1"]),
            (mixed(), Some("mlx5_1"), Some(3), ["no port 3", "1, 2"]),
            (mixed(), Some("mlx5_0"), None, ["Ethernet", "--no-collector.fabric"]),
            (mixed(), Some("mlx5_1"), Some(1), ["no link", "2: Polling"]),
        ] {
            let error = chosen(all, hca, number).unwrap_err();
            for part in says {
                assert!(error.contains(part), "{error}");
            }
            assert!(!error.contains('\n'), "one line: {error}");
        }
    }

    #[test]
    fn a_closed_device_file_is_told_from_one_that_is_not_there() {
        let told = |code| {
            let error = io::Error::from_raw_os_error(code);
            DeviceError::of_open("/dev/infiniband/umad0".into(), error).to_string()
        };
        let denied = told(libc::EACCES);
        assert!(denied.contains("no permission to open /dev/infiniband/umad0"), "{denied}");
        assert!(denied.contains("udev rule") && !denied.contains('\n'), "{denied}");
        assert!(told(libc::ENOENT).contains("umad0: open: No such file"), "{}", told(libc::ENOENT));
    }

    #[test]
    fn a_kernel_that_says_nothing_of_layer_and_state_is_believed() {
        let old = UmadPort { link_layer: None, physical_state: None, ..port("mthca0", 1, "", "") };
        assert!(chosen(vec![old], None, None).is_ok());
    }

    #[test]
    fn ports_are_read_from_sysfs() {
        let root = tempfile::tempdir().unwrap();
        let file = |path: &str, text: &str| {
            let path = root.path().join("class").join(path);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, text).unwrap();
        };
        file("infiniband_mad/umad3/ibdev", "mlx5_0\n");
        file("infiniband_mad/umad3/port", "1\n");
        file("infiniband_mad/issm3/ibdev", "mlx5_0\n");
        file("infiniband_mad/umad4/port", "not a number\n");
        file("infiniband_mad/abi_version", "5\n");
        file("infiniband/mlx5_0/ports/1/link_layer", "InfiniBand\n");
        file("infiniband/mlx5_0/ports/1/phys_state", "5: LinkUp\n");
        let found = ports(root.path());
        assert_eq!(
            found,
            [UmadPort {
                device: "/dev/infiniband/umad3".into(),
                ..port("mlx5_0", 1, "InfiniBand", "5: LinkUp")
            }]
        );
    }
}
