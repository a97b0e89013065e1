//! A device and an interface, as their files.

use std::collections::BTreeMap;
use std::path::PathBuf;

/// An entry of a folder.
#[derive(Clone, Debug)]
pub enum Content {
    /// A file with this text.
    Text(String),
    /// An entry that cannot be read.
    Refuses,
    /// A link.
    Link(String),
    /// A pipe without a writer.
    Pipe,
}

/// The PCI function that a device belongs to.
#[derive(Clone, Debug)]
pub struct Function {
    /// `0000:1a:00.0`.
    pub address: String,
    /// `mlx5_core`.
    pub driver: String,
}

/// A device of `class/infiniband`.
#[derive(Clone, Debug)]
pub struct Device {
    /// `mlx5_0`.
    pub name: String,
    pub(super) function: Option<Function>,
    /// By their path below the device.
    pub(super) files: BTreeMap<String, Content>,
    pub(super) netdevs: Vec<Netdev>,
}

impl Device {
    /// A device with a name and nothing else.
    pub fn bare(name: &str) -> Self {
        Device {
            name: name.to_owned(),
            function: None,
            files: BTreeMap::new(),
            netdevs: Vec::new(),
        }
    }

    /// Puts it on a PCI function of this driver.
    #[must_use]
    pub fn on(mut self, address: &str, driver: &str) -> Self {
        self.function = Some(Function { address: address.to_owned(), driver: driver.to_owned() });
        self
    }

    /// Sets the text of a file; the kernel ends it with a newline.
    #[must_use]
    pub fn file(self, path: &str, text: &str) -> Self {
        self.has(path, Content::Text(format!("{text}\n")))
    }

    /// Sets an entry that is not a proper file.
    #[must_use]
    pub fn has(mut self, path: &str, content: Content) -> Self {
        self.files.insert(path.to_owned(), content);
        self
    }

    /// Removes all files whose path begins with this.
    #[must_use]
    pub fn without(mut self, path: &str) -> Self {
        let before = self.files.len();
        self.files.retain(|file, _| !file.starts_with(path));
        assert_ne!(self.files.len(), before, "{} has no {path}", self.name);
        self
    }

    /// Adds counters in a folder, each with a different value.
    #[must_use]
    pub fn counts(mut self, directory: &str, names: &[&str]) -> Self {
        for name in names {
            let path = format!("{directory}/{name}");
            let number = number(&self.name, &path);
            self = self.file(&path, &number.to_string());
        }
        self
    }

    /// Its GUIDs.
    #[must_use]
    pub fn guid(self, guid: u64) -> Self {
        let [a, b, c, d] = [guid >> 48, guid >> 32, guid >> 16, guid].map(|part| part & 0xffff);
        let text = format!("{a:04x}:{b:04x}:{c:04x}:{d:04x}");
        self.file("node_guid", &text).file("sys_image_guid", &text)
    }

    /// Adds the files that every port has: state, physical state, rate and link layer.
    #[must_use]
    pub fn port(self, number: u8, state: &str, physical: &str, rate: &str, layer: &str) -> Self {
        let port = format!("ports/{number}");
        let device = self
            .file(&format!("{port}/state"), state)
            .file(&format!("{port}/phys_state"), physical)
            .file(&format!("{port}/rate"), rate)
            .file(&format!("{port}/lid_mask_count"), "0")
            .file(&format!("{port}/sm_sl"), "0")
            .file(&format!("{port}/cap_mask"), "0x2651e848")
            .file(&format!("{port}/lid"), "0x0")
            .file(&format!("{port}/sm_lid"), "0x0")
            .file(&format!("{port}/pkeys/0"), "0xffff");
        // Kernels before 2.6.37 have no such file.
        if layer.is_empty() { device } else { device.file(&format!("{port}/link_layer"), layer) }
    }

    /// Sets the LID of a port and that of its subnet manager.
    #[must_use]
    pub fn lid(self, port: u8, lid: u16, sm_lid: u16) -> Self {
        self.file(&format!("ports/{port}/lid"), &format!("{lid:#x}"))
            .file(&format!("ports/{port}/sm_lid"), &format!("{sm_lid:#x}"))
    }

    /// Sets the interface of RoCE, by its first GID.
    #[must_use]
    pub fn gid_on(self, port: u8, netdev: &str) -> Self {
        self.file(&format!("ports/{port}/gid_attrs/ndevs/0"), netdev)
    }

    /// Copies its files to another device.
    #[must_use]
    pub fn files_to(&self, mut other: Device) -> Device {
        other.files.extend(self.files.clone());
        other
    }

    /// Gives it an interface.
    #[must_use]
    pub fn netdev(mut self, netdev: Netdev) -> Self {
        self.netdevs.push(netdev);
        self
    }

    /// Gives one of its interfaces another name.
    #[must_use]
    pub fn named_anew(mut self, before: &str, after: &str) -> Self {
        let netdev = self.netdevs.iter_mut().find(|netdev| netdev.name == before);
        after.clone_into(&mut netdev.unwrap_or_else(|| panic!("no {before}")).name);
        self
    }

    /// Its path below sysfs.
    pub(super) fn home(&self) -> PathBuf {
        match &self.function {
            Some(function) => PathBuf::from("devices/pci0000:00").join(&function.address),
            None => PathBuf::from("devices/virtual"),
        }
    }
}

/// A value for a counter: always the same, and different for each. Most of them are small, as in practice,
/// and those of data are beyond 32 bits.
fn number(device: &str, path: &str) -> u64 {
    // FNV-1a.
    let hash = device.bytes().chain(path.bytes()).fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
    });
    if path.contains("data") { hash % (1 << 48) } else { hash % (1 << 31) }
}

/// An interface of `class/net`.
#[derive(Clone, Debug)]
pub struct Netdev {
    /// `ib0`.
    pub name: String,
    pub(super) files: BTreeMap<String, String>,
}

impl Netdev {
    /// An Ethernet one that is up.
    pub fn ethernet(name: &str) -> Self {
        let netdev = Netdev { name: name.to_owned(), files: BTreeMap::new() };
        netdev
            .file("type", "1")
            .file("operstate", "up")
            .file("mtu", "1500")
            .file("carrier_changes", "2")
            .file("dev_port", "0")
            .file("dev_id", "0x0")
            .file("ifindex", "1000000")
    }

    /// One of IPoIB that is up.
    pub fn ipoib(name: &str) -> Self {
        Self::ethernet(name).file("type", "32").file("mtu", "2044").file("mode", "datagram")
    }

    /// Gives it a file, or another text for one.
    #[must_use]
    pub fn file(mut self, path: &str, text: &str) -> Self {
        self.files.insert(path.to_owned(), format!("{text}\n"));
        self
    }
}
