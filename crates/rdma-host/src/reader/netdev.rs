//! The network interfaces of a port: which they are, and what sysfs has of each.

use std::io;
use std::path::PathBuf;
use std::sync::Arc;

use crate::model::{IpoibMode, Netdev};
use ib_mad::PortNumber;

use super::backoff::Attempt;
use super::ethtool::EthernetReader;
use super::kept::{KeepingDirectory, KeptFile};
use super::module::ModuleReader;
use super::options::ReadOptions;
use super::sysfs::Directory;

/// ARPHRD_INFINIBAND (kernel: include/uapi/linux/if_arp.h).
const TYPE_INFINIBAND: &str = "32";

/// The device whose ports' network interfaces are searched for.
#[derive(Debug)]
pub(super) struct Owner<'a> {
    /// `<sysfs>/class/net`.
    pub class: PathBuf,
    pub device: &'a Directory,
    pub name: &'a str,
    pub ports: usize,
    /// The interfaces that the first GIDs of its ports name.
    pub named: Vec<String>,
    pub options: ReadOptions,
}

impl Owner<'_> {
    /// The interfaces of one of its ports, by name, each with the bond that it is a member of.
    ///
    /// The port's first GID names the interface of RoCE, be it a bond; the PCI function lists those that its
    /// driver made, among them IPoIB's children and switchdev's representors; soft RoCE has the name in
    /// `parent`. The other GIDs are not read: soft RoCE has 1024, and an empty one returns EINVAL.
    pub(super) fn netdevs_of(
        &self,
        port: &Directory,
        number: PortNumber,
        link_layer: &str,
    ) -> Vec<(String, Option<Arc<str>>)> {
        let parent = || Some(self.device.text("parent")).filter(|name| is_name(name));
        let by_gid = by_gid(port).or_else(parent);
        let ipoib = link_layer == "InfiniBand";
        match by_gid.filter(|_| !ipoib) {
            Some(name) => self.with_slaves(name),
            None => self.of_function(number, ipoib).into_iter().map(|name| (name, None)).collect(),
        }
    }

    /// A bond and those of its slaves that are this device's, for these have a cable; or the name alone.
    fn with_slaves(&self, name: String) -> Vec<(String, Option<Arc<str>>)> {
        let bond = Directory::open(&self.class.join(&name).join("bonding"));
        let slaves = bond.map(|bond| bond.text("slaves")).unwrap_or_default();
        let own = slaves.split_whitespace().filter(|name| is_name(name) && !self.is_foreign(name));
        let bond: Arc<str> = name.as_str().into();
        let own = own.map(|slave| (slave.to_owned(), Some(Arc::clone(&bond))));
        std::iter::once((name, None)).chain(own).collect()
    }

    /// Whether an interface's function has RDMA devices, and this is none of them. Of two functions whose
    /// ports mlx5 joins to one device, one has none.
    fn is_foreign(&self, netdev: &str) -> bool {
        let devices = Directory::open(&self.class.join(netdev).join("device/infiniband"))
            .and_then(|devices| devices.names())
            .unwrap_or_default();
        !devices.is_empty() && !devices.iter().any(|device| device == self.name)
    }

    /// What the driver made for this port of the function.
    fn of_function(&self, number: PortNumber, ipoib: bool) -> Vec<String> {
        let names = self.device.open_below("device/net").and_then(|directory| directory.names());
        let is_of_port = |name: &String| {
            let Ok(netdev) = Directory::open(&self.class.join(name)) else { return false };
            let kind = (netdev.text("type") == TYPE_INFINIBAND) == ipoib;
            let number_is_right = self.ports < 2 || port_index(&netdev) + 1 == usize::from(number);
            // ConnectX-8 has 12 ports of Ethernet, and the first of its interfaces is on port 3.
            let is_of_other = !ipoib && self.named.contains(name);
            kind && number_is_right
                && !is_of_other
                && !is_representor(&netdev.text("phys_port_name"))
        };
        let names = names.unwrap_or_default().into_iter();
        names.filter(|name| is_name(name) && is_of_port(name)).collect()
    }
}

/// The interface that the first GID of a port names.
pub(super) fn by_gid(port: &Directory) -> Option<String> {
    Some(port.text("gid_attrs/ndevs/0")).filter(|name| is_name(name))
}

/// Which port of its function an interface is on, from 0: `dev_port`, or `dev_id` (in hexadecimal) of older
/// drivers, as mlx4 of Linux 3.14 and before.
fn port_index(netdev: &Directory) -> usize {
    let by_port = netdev.text("dev_port").parse().unwrap_or(0);
    let by_id = netdev.text("dev_id");
    let by_id = by_id.strip_prefix("0x").and_then(|id| usize::from_str_radix(id, 16).ok());
    if by_port == 0 { by_id.unwrap_or(0) } else { by_port }
}

/// Whether it represents a (virtual or sub-) function on the embedded switch: `pf0vf3`; the uplink is `p0`.
fn is_representor(phys_port_name: &str) -> bool {
    phys_port_name.contains("pf")
}

/// Whether IFF_UP is set in `flags` (kernel: include/uapi/linux/if.h): what `ip link set up` sets. `operstate` is down
/// without a cable, too.
fn is_admin_up(flags: &str) -> Option<bool> {
    const IFF_UP: u64 = 1;
    let flags = u64::from_str_radix(flags.strip_prefix("0x")?, 16).ok()?;
    Some(flags & IFF_UP != 0)
}

/// Whether it can be an interface's name, and not a path out of the directory.
fn is_name(name: &str) -> bool {
    !name.is_empty() && !name.contains(['/', ' ']) && !name.starts_with('.')
}

#[derive(Debug)]
pub(super) struct NetdevReader {
    pub(super) name: Arc<str>,
    pub(super) bond: Option<Arc<str>>,
    bus_address: Option<Arc<str>>,
    directory: KeepingDirectory,
    files: NetdevFiles,
    pub(super) is_representor: bool,
    ethernet: Option<EthernetReader>,
    module: Option<ModuleReader>,
}

/// What is read of an interface each time.
#[derive(Debug)]
struct NetdevFiles {
    flags: KeptFile,
    carrier: KeptFile,
    carrier_changes: KeptFile,
    /// Of IPoIB.
    mode: Option<KeptFile>,
    operstate: KeptFile,
    mtu: KeptFile,
}

impl NetdevReader {
    pub(super) fn open(owner: &Owner<'_>, name: &str) -> io::Result<Self> {
        let directory = Directory::open(&owner.class.join(name))?;
        let is_ipoib = directory.text("type") == TYPE_INFINIBAND;
        let ReadOptions { ethtool, modules, .. } = owner.options;
        let ethernet = if ethtool { EthernetReader::open(&directory, name) } else { None };
        let name = name.into();
        // Neither IPoIB nor a bond has a module; the sweep reads those of InfiniBand.
        let has_module = modules && !is_ipoib && directory.open_below("device").is_ok();
        let module = if has_module { ModuleReader::open(&name) } else { None };
        Ok(NetdevReader {
            name,
            bond: None,
            bus_address: directory.link_target("device").map(Into::into),
            is_representor: is_representor(&directory.text("phys_port_name")),
            directory: KeepingDirectory::new(directory),
            files: NetdevFiles {
                flags: KeptFile::new("flags"),
                carrier: KeptFile::new("carrier"),
                carrier_changes: KeptFile::new("carrier_changes"),
                mode: is_ipoib.then(|| KeptFile::new("mode")),
                operstate: KeptFile::new("operstate"),
                mtu: KeptFile::new("mtu"),
            },
            ethernet,
            module,
        })
    }

    /// Whether the interface is still there, under its name.
    pub(super) fn exists(&self) -> bool {
        let directory = &self.directory.directory;
        directory.is_at(&directory.path)
    }

    pub(super) fn read(&mut self, attempt: Attempt<'_>) -> Netdev {
        self.directory.look();
        let (directory, files) = (&self.directory, &mut self.files);
        let is_admin_up = files.flags.read(directory, attempt.files, is_admin_up).ok().flatten();
        // EINVAL while the interface is set down (kernel: `carrier_show` in net/core/net-sysfs.c).
        let carrier = files.carrier.read(directory, attempt.files, |text| match text {
            "1" => Some(true),
            "0" => Some(false),
            _ => None,
        });
        let is_running = |error: &io::Error| error.raw_os_error() != Some(libc::EINVAL);
        let is_running = carrier.as_ref().err().is_none_or(is_running);
        let number = |file: &mut KeptFile| {
            file.read(directory, attempt.files, |text| text.parse().ok()).ok().flatten()
        };
        let (mtu, carrier_changes) = (number(&mut files.mtu), number(&mut files.carrier_changes));
        let mode = |file: &mut KeptFile| file.read(directory, attempt.files, IpoibMode::from_label);
        let operstate = files.operstate.read(directory, attempt.files, str::to_owned);
        Netdev {
            name: Arc::clone(&self.name),
            bond: self.bond.clone(),
            bus_address: self.bus_address.clone(),
            // The kernel stops it, and so its port, milliseconds before it takes IFF_UP away (`__dev_close_many` in
            // net/core/dev.c).
            is_admin_up: is_admin_up.map(|is_up| is_up && is_running),
            carrier: carrier.ok().flatten(),
            ipoib: files.mode.as_mut().and_then(|file| mode(file).ok().flatten()),
            operstate: operstate.unwrap_or_default(),
            mtu,
            carrier_changes,
            ethernet: self.ethernet.as_mut().map(|it| it.read(attempt)).unwrap_or_default(),
            module: self.module.as_mut().and_then(|it| it.read(attempt, carrier_changes)),
        }
    }
}
