//! The umad ports of this host, and selection of one.

use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use ib_mad::{Guid, Lid, PortNumber};

use super::error::{DeviceError, Unsuitable};
use super::sys::attribute;

/// A port with a umad device.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UmadPort {
    /// The HCA: `mlx5_0`.
    pub hca: String,
    /// Port number.
    pub port: PortNumber,
    /// `/dev/infiniband/umad0`.
    pub device: PathBuf,
    /// `InfiniBand` or `Ethernet`; `None` with old kernels.
    pub link_layer: Option<String>,
    /// PortState as in sysfs: `4: ACTIVE`.
    pub state: Option<String>,
    /// PortPhysicalState as in sysfs: `5: LinkUp`.
    pub physical_state: Option<String>,
}

/// The directory of a port in sysfs.
pub(super) fn directory(sysfs: &Path, hca: &str, port: PortNumber) -> PathBuf {
    sysfs.join(format!("class/infiniband/{hca}/ports/{port}"))
}

/// The LID of a port; `None` while it has none.
pub(super) fn port_lid(sysfs: &Path, port: &UmadPort) -> Option<Lid> {
    // Hexadecimal, with 0x (lid_show in drivers/infiniband/core/sysfs.c).
    let lid = attribute(&directory(sysfs, &port.hca, port.port).join("lid"))?;
    let lid = u16::from_str_radix(lid.trim_start_matches("0x"), 16).ok()?;
    Some(Lid(lid)).filter(|lid| lid.is_unicast())
}

/// GUID of a port: the lower half of its first GID (IBTA 1.4, 4.1.1).
pub(super) fn port_guid(sysfs: &Path, port: &UmadPort) -> Option<Guid> {
    let gid = attribute(&directory(sysfs, &port.hca, port.port).join("gids/0"))?;
    let gid: std::net::Ipv6Addr = gid.parse().ok()?;
    Some(Guid(gid.to_bits() as u64)).filter(|guid| *guid != Guid::default())
}

/// CapabilityMask of a port.
pub(super) fn capability_mask(sysfs: &Path, port: &UmadPort) -> Option<u32> {
    let mask = attribute(&directory(sysfs, &port.hca, port.port).join("cap_mask"))?;
    u32::from_str_radix(mask.trim_start_matches("0x"), 16).ok()
}

/// Which device of a driver a umad device belongs to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Identity {
    hca: Option<String>,
    /// A device that comes back has files with other inode numbers.
    inode: Option<u64>,
}

impl Identity {
    /// Of the device that has the name of a port's umad device now.
    pub(super) fn read(sysfs: &Path, port: &UmadPort) -> Self {
        let name = port.device.file_name().unwrap_or_default();
        let file = sysfs.join("class/infiniband_mad").join(name).join("ibdev");
        let inode = std::fs::metadata(&file).ok().map(|about| about.ino());
        Identity { hca: attribute(&file), inode }
    }
}

impl UmadPort {
    /// All ports with a umad device, by HCA and number.
    pub fn all(sysfs: &Path) -> Vec<UmadPort> {
        let devices = sysfs.join("class/infiniband_mad");
        let entries = std::fs::read_dir(&devices).into_iter().flatten();
        let names = entries.flatten().filter_map(|entry| entry.file_name().into_string().ok());
        let about = |name: String| {
            let umad = devices.join(&name);
            let hca = attribute(&umad.join("ibdev"))?;
            let port: PortNumber = attribute(&umad.join("port"))?.parse().ok()?;
            let about = directory(sysfs, &hca, port);
            Some(UmadPort {
                hca,
                port,
                device: Path::new("/dev/infiniband").join(name),
                link_layer: attribute(&about.join("link_layer")),
                state: attribute(&about.join("state")),
                physical_state: attribute(&about.join("phys_state")),
            })
        };
        let mut ports: Vec<UmadPort> =
            names.filter(|name| name.starts_with("umad")).filter_map(about).collect();
        ports.sort_by(|a, b| (&a.hca, a.port).cmp(&(&b.hca, b.port)));
        ports
    }

    /// Whether it is an Ethernet (RoCE) port.
    pub(super) fn is_ethernet(&self) -> bool {
        self.link_layer.as_deref() == Some("Ethernet")
    }

    /// Why no fabric is reachable through the port.
    fn problem(&self) -> Option<DeviceError> {
        let (hca, port) = (self.hca.clone(), self.port);
        if self.is_ethernet() {
            return Some(DeviceError::Ethernet { hca, port });
        }
        let state = self.physical_state.clone().filter(|state| !state.starts_with("5:"))?;
        Some(DeviceError::Down { hca, port, state })
    }

    /// Whether it is Active or ACTIVE_DEFER, as far as is known.
    fn is_active(&self) -> bool {
        self.state.as_ref().is_none_or(|state| state.starts_with("4:") || state.starts_with("5:"))
    }
}

/// Why there is no umad device at all.
fn no_umad(sysfs: &Path) -> DeviceError {
    let class = sysfs.join("class/infiniband");
    let names = |path: &Path| {
        let entries = std::fs::read_dir(path).into_iter().flatten().flatten();
        let mut names: Vec<String> =
            entries.filter_map(|entry| entry.file_name().into_string().ok()).collect();
        names.sort_unstable();
        names
    };
    let is_ethernet = |hca: &String| {
        let ports = class.join(hca).join("ports");
        let layer = |port: String| attribute(&ports.join(port).join("link_layer"));
        names(&ports).into_iter().all(|port| layer(port).as_deref() == Some("Ethernet"))
    };
    let (ethernet, infiniband): (Vec<String>, Vec<String>) =
        names(&class).into_iter().partition(is_ethernet);
    if !infiniband.is_empty() {
        DeviceError::NoUmad { hcas: list(infiniband) }
    } else if !ethernet.is_empty() {
        DeviceError::OnlyEthernet { hcas: list(ethernet) }
    } else {
        DeviceError::NoDevice { directory: class.display().to_string() }
    }
}

pub(super) fn list(mut items: Vec<String>) -> String {
    items.dedup();
    items.join(", ")
}

/// The named ports of all that are InfiniBand ports with a link, those that are Active first; at least one of them. If
/// no HCA is named, those that are `unsuitable` are left out. If there is none, the error says why the first one is
/// not.
pub(super) fn usable(
    mut ports: Vec<UmadPort>,
    sysfs: &Path,
    hca: Option<&str>,
    port: Option<PortNumber>,
    unsuitable: &dyn Fn(&str) -> Option<Unsuitable>,
) -> Result<Vec<UmadPort>, DeviceError> {
    if ports.is_empty() {
        return Err(no_umad(sysfs));
    }
    let hcas = list(ports.iter().map(|port| port.hca.clone()).collect());
    ports.retain(|port| hca.is_none_or(|hca| port.hca == hca));
    let Some(first_hca) = ports.first().map(|port| port.hca.clone()) else {
        let requested = hca.unwrap_or_default().to_owned();
        return Err(DeviceError::UnknownHca { option: "--fabric.hca", requested, known: hcas });
    };
    let known = list(ports.iter().map(|port| port.port.to_string()).collect());
    ports.retain(|found| port.is_none_or(|port| found.port == port));
    if let Some(requested) = port.filter(|_| ports.is_empty()) {
        let (option, hca) = ("--fabric.port", first_hca);
        return Err(DeviceError::UnknownPort { option, hca, requested, known });
    }
    let mut left_out = Vec::new();
    let mut is_suitable = |port: &UmadPort| {
        let why = unsuitable(&port.hca).filter(|_| hca.is_none());
        left_out.extend(why.map(|why| format!("{}: {why}", port.hca)));
        why.is_none()
    };
    let (mut usable, others): (Vec<_>, Vec<_>) =
        ports.into_iter().partition(|port| port.problem().is_none());
    // What is unsuitable may be slow to find out, so only those are asked that matter.
    usable.retain(&mut is_suitable);
    usable.sort_by_key(|port| !port.is_active());
    if !usable.is_empty() {
        return Ok(usable);
    }
    let problem = others.into_iter().filter(&mut is_suitable).find_map(|port| port.problem());
    left_out.sort_unstable();
    Err(problem.unwrap_or_else(|| DeviceError::Unsuitable { hcas: list(left_out) }))
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
            state: Some("4: ACTIVE".into()),
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
        usable(all, Path::new("/nowhere"), hca, number, &|_| None)
            .map(|ports| (ports[0].hca.clone(), ports[0].port))
            .map_err(|error| error.to_string())
    }

    #[test]
    fn first_infiniband_port_with_link_is_chosen() {
        assert_eq!(chosen(mixed(), None, None), Ok(("mlx5_1".into(), 2)));
        assert_eq!(chosen(mixed(), Some("mlx5_1"), None), Ok(("mlx5_1".into(), 2)));
    }

    #[test]
    fn active_port_is_chosen_before_one_in_init() {
        let init =
            |hca| UmadPort { state: Some("2: INIT".into()), ..port(hca, 1, "", "5: LinkUp") };
        let active = port("mlx5_1", 1, "InfiniBand", "5: LinkUp");
        let all = || vec![init("mlx5_0"), active.clone(), init("mlx5_2")];
        assert_eq!(chosen(all(), None, None), Ok(("mlx5_1".into(), 1)));
        assert_eq!(chosen(all(), Some("mlx5_2"), None), Ok(("mlx5_2".into(), 1)));
        assert_eq!(chosen(vec![init("mlx5_2"), init("mlx5_3")], None, None).unwrap().0, "mlx5_2");
    }

    #[test]
    fn unsuitable_hca_is_chosen_only_by_name() {
        let all =
            || ["mlx5_0", "mlx5_1", "mlx5_2"].map(|hca| port(hca, 1, "InfiniBand", "5: LinkUp"));
        let choose = |hca: Option<&str>, suitable: &str| {
            let unsuitable = |hca: &str| match hca {
                _ if hca == suitable => None,
                "mlx5_0" => Some(Unsuitable::NvlinkBridge),
                _ => Some(Unsuitable::Excluded),
            };
            usable(all().into(), Path::new("/nowhere"), hca, None, &unsuitable)
                .map(|ports| ports[0].hca.clone())
                .map_err(|error| error.to_string())
        };
        assert_eq!(choose(None, "mlx5_2"), Ok("mlx5_2".into()));
        assert_eq!(choose(Some("mlx5_0"), "mlx5_2"), Ok("mlx5_0".into()));
        let error = choose(None, "").unwrap_err();
        for says in [
            "mlx5_0: the bridge of an NVSwitch",
            "mlx5_1: excluded by --host.device-exclude",
            "--fabric.hca",
            "--no-collector.fabric",
        ] {
            assert!(error.contains(says) && !error.contains('\n'), "{error}");
        }
    }

    #[test]
    fn without_umad_the_error_says_which_devices_there_are() {
        let root = tempfile::tempdir().unwrap();
        let device = |hca: &str, layer: &str| {
            let port = root.path().join("class/infiniband").join(hca).join("ports/1");
            std::fs::create_dir_all(&port).unwrap();
            std::fs::write(port.join("link_layer"), layer).unwrap();
        };
        let error = || usable(vec![], root.path(), None, None, &|_| None).unwrap_err().to_string();
        let contains = |error: &str, parts: [&str; 2]| {
            assert!(
                parts.iter().all(|part| error.contains(part)) && !error.contains('\n'),
                "{error}"
            );
        };
        contains(&error(), ["no RDMA device on this host", "load the driver"]);
        device("mlx5_0", "Ethernet\n");
        device("mlx5_bond_0", "Ethernet\n");
        contains(&error(), ["only Ethernet (RoCE) devices", "--no-collector.fabric"]);
        assert!(!error().contains("ib_umad"), "{}", error());
        device("mlx5_1", "InfiniBand\n");
        contains(&error(), ["InfiniBand devices mlx5_1", "modprobe ib_umad"]);
    }

    #[test]
    fn each_device_error_says_what_to_do() {
        for (all, hca, number, says) in [
            (vec![], None, None, ["no RDMA device", "load the driver"]),
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
    fn missing_link_layer_and_state_are_accepted() {
        let old = UmadPort {
            link_layer: None,
            state: None,
            physical_state: None,
            ..port("mthca0", 1, "", "")
        };
        assert!(chosen(vec![old], None, None).is_ok());
    }

    #[test]
    fn identity_tells_a_device_that_came_back() {
        let root = tempfile::tempdir().unwrap();
        let umad = root.path().join("class/infiniband_mad/umad0");
        let create = |hca: &str| {
            std::fs::create_dir_all(&umad).unwrap();
            std::fs::write(umad.join("ibdev"), format!("{hca}\n")).unwrap();
        };
        let read = || Identity::read(root.path(), &port("mlx5_0", 1, "", ""));
        create("mlx5_0");
        let opened = read();
        assert_eq!((opened.hca.as_deref(), read() == opened), (Some("mlx5_0"), true));
        // The old folder stays, so that its numbers are not used again.
        std::fs::rename(&umad, root.path().join("removed")).unwrap();
        assert_ne!(read(), opened);
        create("mlx5_0");
        assert_ne!(read(), opened, "the driver was loaded again");
        std::fs::remove_dir_all(&umad).unwrap();
        create("mlx5_1");
        assert_ne!(read(), opened, "the name went to another device");
    }

    #[test]
    fn umad_ports_are_read_from_sysfs() {
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
        file("infiniband/mlx5_0/ports/1/state", "4: ACTIVE\n");
        file("infiniband/mlx5_0/ports/1/phys_state", "5: LinkUp\n");
        let found = UmadPort::all(root.path());
        assert_eq!(
            found,
            [UmadPort {
                device: "/dev/infiniband/umad3".into(),
                ..port("mlx5_0", 1, "InfiniBand", "5: LinkUp")
            }]
        );
    }
}
