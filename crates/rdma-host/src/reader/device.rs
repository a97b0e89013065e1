//! Reads a device and its ports.

use std::collections::BTreeSet;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use crate::model::{Device, DeviceInfo, HwReading};
use ib_mad::{Moment, PortNumber};

use super::ReadContext;
use super::netdev::Owner;
use super::port::{HwReader, PortReader};
use super::sysfs::Directory;
use super::value;

/// How long what seldom changes is not read again: names, versions, which network interface is on which port.
const INFO_LIFETIME: Duration = Duration::from_secs(60);

/// A device that cannot be opened.
pub(super) fn unreadable(name: Arc<str>) -> Device {
    Device {
        name,
        instance: None,
        info: Arc::default(),
        is_readable: false,
        ports: Vec::new(),
        hw: HwReading::default(),
        unreadable_files: 0,
    }
}

/// Reads a device.
#[derive(Debug)]
pub(super) struct DeviceReader {
    name: Arc<str>,
    sysfs: PathBuf,
    path: PathBuf,
    directory: Directory,
    instance: Option<u64>,
    info: Arc<DeviceInfo>,
    info_expires: Moment,
    ports: Vec<PortReader>,
    /// Its ports could not be listed, which is tried again at each read.
    ports_unlisted: bool,
    hw: Option<HwReader>,
}

impl DeviceReader {
    /// Opens a device of `<sysfs>/class/infiniband`.
    pub(super) fn open(sysfs: &Path, name: &str) -> io::Result<Self> {
        let path = sysfs.join("class/infiniband").join(name);
        let directory = Directory::open(&path)?;
        let mut reader = DeviceReader {
            name: name.into(),
            sysfs: sysfs.to_owned(),
            path,
            hw: HwReader::open(&directory),
            instance: directory.inode(),
            directory,
            info: Arc::default(),
            info_expires: Moment::default(),
            ports: Vec::new(),
            ports_unlisted: false,
        };
        if let Err(error) = reader.open_ports() {
            reader.ports_unlisted = true;
            let directory = reader.path.join("ports");
            tracing::warn!(
                device = name,
                directory = %directory.display(),
                %error,
                "the ports of the device cannot be listed: only what the device is gets exported"
            );
        }
        Ok(reader)
    }

    fn open_ports(&mut self) -> io::Result<()> {
        let ports = self.directory.open_below("ports")?;
        // A set, for 1 and 01 are one port.
        let numbers: BTreeSet<PortNumber> =
            ports.names()?.iter().filter_map(|name| name.parse().ok()).collect();
        self.ports = numbers
            .into_iter()
            .filter_map(|number| {
                PortReader::open(ports.open_below(&number.to_string()).ok()?, number)
            })
            .collect();
        Ok(())
    }

    pub(super) fn name(&self) -> &Arc<str> {
        &self.name
    }

    /// The device without its ports and counters, for while it cannot be read.
    pub(super) fn unreadable(&self) -> Device {
        let info = Arc::clone(&self.info);
        Device { info, instance: self.instance, ..unreadable(Arc::clone(&self.name)) }
    }

    /// Whether the device is still there, under its name.
    pub(super) fn exists(&self) -> bool {
        self.directory.is_at(&self.path)
    }

    /// Lets the next read read all that is cached, and the states of ports that are backing off.
    pub(super) fn refresh(&mut self) {
        self.info_expires = Moment::default();
        self.ports.iter_mut().for_each(PortReader::reset_backoff);
    }

    /// Reads the device. The error says that it has been removed.
    pub(super) fn read(&mut self, context: &ReadContext) -> io::Result<Device> {
        let now = context.clock.now();
        if self.ports_unlisted && self.open_ports().is_ok() {
            tracing::info!(device = &*self.name, "the ports of the device can be listed again");
            (self.ports_unlisted, self.info_expires) = (false, Moment::default());
        }
        if now >= self.info_expires {
            self.info_expires = now + INFO_LIFETIME;
            let info = self.read_info();
            if *self.info != info {
                self.info = Arc::new(info);
            }
            let owner = Owner {
                class: self.sysfs.join("class/net"),
                device: &self.directory,
                name: &self.name,
                ports: self.ports.len(),
                ethtool: context.options.ethtool,
            };
            for port in &mut self.ports {
                port.open_netdevs(&owner);
                if context.options.cm {
                    port.open_cm();
                }
            }
        }
        let (ports, may_be_removed): (Vec<_>, Vec<_>) =
            self.ports.iter_mut().map(|port| port.read(context)).unzip();
        if may_be_removed.contains(&true) && !self.exists() {
            return Err(io::ErrorKind::NotFound.into());
        }
        let hw = self.hw.as_mut().map(|hw| hw.read(context.attempt())).unwrap_or_default();
        let unreadable_files = self.ports.iter().map(PortReader::failed).sum::<usize>()
            + self.hw.as_ref().map_or(0, HwReader::failed);
        Ok(Device {
            name: Arc::clone(&self.name),
            instance: self.instance,
            info: Arc::clone(&self.info),
            is_readable: !self.ports_unlisted,
            ports,
            hw,
            unreadable_files,
        })
    }

    fn read_info(&self) -> DeviceInfo {
        let text = |name| self.directory.text(name);
        // A GUID that cannot be read for once, as while the firmware is reset, has not changed: without the
        // last one all series of the device would be new ones.
        let guid = |name, last: Option<_>| text(name).parse().ok().or(last);
        DeviceInfo {
            guid: guid("node_guid", self.info.guid),
            system_guid: guid("sys_image_guid", self.info.system_guid),
            node_type: value::word(&text("node_type")),
            description: text("node_desc"),
            firmware: text("fw_ver"),
            hardware: text("hw_rev"),
            board: text("board_id"),
            hca_type: text("hca_type"),
            driver: self.directory.link_target("device/driver").unwrap_or_default(),
            // Of PCI, or of mlx5's auxiliary bus (drivers/net/ethernet/mellanox/mlx5/core/sf/dev/dev.c).
            is_virtual: self.directory.link_target("device/physfn").is_some()
                || !text("device/sfnum").is_empty(),
        }
    }
}
