//! Reads a device and its ports.

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use crate::model::{Device, DeviceInfo, HwReading, Port, PortKind};
use ib_mad::{Moment, PortNumber};

use super::access::CounterAccess;
use super::backoff::Failure;
use super::failures::FailingFile;
use super::hw::HwReader;
use super::hwmon::HwmonReader;
use super::netdev::Owner;
use super::options::ReadContext;
use super::port::PortReader;
use super::smi;
use super::sysfs::{self, Directory, Version};
use super::vpd;
use super::watch::{self, FileWatch};

/// How long what seldom changes is not read again: names, versions, which network interface is on which port.
const INFO_LIFETIME: Duration = Duration::from_secs(60);

#[derive(Debug)]
pub(super) struct DeviceReader {
    sysfs: PathBuf,
    directory: Directory,
    /// Which of its files is being read.
    pub(super) watch: Arc<FileWatch>,
    /// Another reader of the device knows it, too.
    access: Arc<CounterAccess>,
    /// The device without its ports and counters, for while it cannot be read.
    pub(super) device: Device,
    info_expires: Moment,
    ports: Vec<PortReader>,
    /// The directory of the ports and its version when they were listed. While they cannot be listed it is `None`, and
    /// that is tried again at each read.
    ports_listed: Option<(Directory, Option<Version>)>,
    hw: Option<HwReader>,
    hwmon: HwmonReader,
}

impl DeviceReader {
    pub(super) fn open(
        sysfs: &Path,
        name: &str,
        watch: FileWatch,
        access: Arc<CounterAccess>,
    ) -> io::Result<Self> {
        let directory = Directory::open(&sysfs.join("class/infiniband").join(name))?;
        let instance = directory.inode();
        let mut reader = DeviceReader {
            sysfs: sysfs.to_owned(),
            hw: HwReader::open(&directory),
            hwmon: HwmonReader::default(),
            directory,
            watch: Arc::new(watch),
            access,
            device: Device { name: name.into(), instance, ..Device::default() },
            info_expires: Moment::default(),
            ports: Vec::new(),
            ports_listed: None,
        };
        if let Err(error) = reader.list_ports() {
            let directory = reader.directory.path.join("ports");
            tracing::warn!(
                device = name,
                directory = %directory.display(),
                %error,
                "device ports cannot be listed: only device information is exported"
            );
        }
        Ok(reader)
    }

    /// Opens new ports and closes those that are gone. Returns whether there were any.
    fn list_ports(&mut self) -> io::Result<bool> {
        self.ports_listed = None;
        let directory = self.directory.open_below("ports")?;
        // Before the ports are listed: one that comes meanwhile is found at the next read.
        let version = directory.version();
        // A set, for 1 and 01 are one port.
        let numbers: BTreeSet<PortNumber> =
            directory.names()?.iter().filter_map(|name| name.parse().ok()).collect();
        let before = std::mem::take(&mut self.ports).into_iter();
        let mut before: BTreeMap<_, _> = before.map(|port| (port.number, port)).collect();
        let (mut has_changed, mut is_complete) = (false, true);
        for number in numbers {
            let name = number.to_string();
            let kept = before.remove(&number);
            if let Some(kept) = kept.filter(|port| port.is_at(&directory.path.join(&name))) {
                self.ports.push(kept);
                continue;
            }
            let opened = directory.open_below(&name).ok();
            let opened = opened.and_then(|directory| PortReader::open(directory, number));
            (has_changed, is_complete) =
                (has_changed | opened.is_some(), is_complete & opened.is_some());
            self.ports.extend(opened);
        }
        has_changed |= !before.is_empty();
        // The kernel makes the directory of a port before its files: an empty one is opened again at the next read.
        self.ports_listed = Some((directory, version.filter(|_| is_complete)));
        Ok(has_changed)
    }

    pub(super) fn port_count(&self) -> usize {
        self.ports.len()
    }

    /// Lets the next read read all that is cached, and the states of ports that are backing off.
    pub(super) fn refresh(&mut self) {
        self.info_expires = Moment::default();
        self.ports.iter_mut().for_each(PortReader::refresh);
    }

    /// Reads the device. The error says that it has been removed.
    pub(super) fn read(&mut self, context: &ReadContext) -> io::Result<Device> {
        let now = context.time.now();
        let version = |(directory, _): &(Directory, _)| directory.version();
        match &self.ports_listed {
            None => {
                if self.list_ports().is_ok() {
                    tracing::info!(device = &*self.device.name, "device ports can be listed again");
                    self.info_expires = Moment::default();
                }
            }
            Some(listed) if version(listed) != listed.1 => {
                self.update_ports();
            }
            Some(_) => {}
        }
        if now >= self.info_expires {
            self.update_info(context);
        }
        let (mut ports, may_be_removed) = self.read_ports(context);
        if may_be_removed {
            if !self.directory.is_at(&self.directory.path) {
                return Err(io::ErrorKind::NotFound.into());
            }
            // A port alone was made again.
            if self.update_ports() {
                self.update_info(context);
                (ports, _) = self.read_ports(context);
            }
        }
        let access = &self.access;
        let hw = match &mut self.hw {
            Some(hw) => hw.read(context.attempt(), access),
            None => HwReading::default(),
        };
        let sensors = self.hwmon.read(&self.directory, now).to_vec();
        let kind = self.kind_of(self.device.kind);
        for port in ports.iter_mut().filter(|port| port.kind != PortKind::Representor) {
            port.kind = kind;
        }
        let unreadable_files = self.ports.iter().map(PortReader::failed).sum::<usize>()
            + self.hw.as_ref().map_or(0, |hw| hw.counters.failed());
        let is_readable = self.ports_listed.is_some();
        let device = self.device.clone();
        Ok(Device { kind, is_readable, ports, hw, sensors, unreadable_files, ..device })
    }

    /// Reads the ports, and returns whether any may have been removed.
    fn read_ports(&mut self, context: &ReadContext) -> (Vec<Port>, bool) {
        let access = &self.access;
        let read = self.ports.iter_mut().map(|port| port.read(access, context));
        let (ports, may_be_removed): (Vec<_>, Vec<_>) = read.unzip();
        (ports, may_be_removed.contains(&true))
    }

    /// Lists the ports again, and returns whether they have changed.
    fn update_ports(&mut self) -> bool {
        let has_changed = match self.list_ports() {
            Ok(has_changed) => has_changed,
            Err(error) => {
                tracing::warn!(device = &*self.device.name, %error, "device ports cannot be listed");
                true
            }
        };
        if has_changed {
            let ports: Vec<_> = self.ports.iter().map(|port| port.number).collect();
            tracing::info!(device = &*self.device.name, ?ports, "ports of the device have changed");
            self.info_expires = Moment::default();
        }
        has_changed
    }

    fn update_info(&mut self, context: &ReadContext) {
        self.info_expires = context.time.now() + INFO_LIFETIME;
        let info = self.read_info();
        if *self.device.info != info {
            self.device.info = Arc::new(info);
        }
        let directory = &self.directory;
        // Before any counter is read.
        self.access.is_bridge(|| {
            let is_bridge = vpd::is_bridge(directory);
            if is_bridge {
                tracing::info!(
                    device = &*self.device.name,
                    "device manages NVSwitches (VPD): its counters are not read"
                );
            }
            is_bridge
        });
        let class = self.sysfs.join("class/infiniband");
        let parent = smi::parent_of(&class, &self.device.name, &context.kernel);
        self.device.kind = if parent.is_some() { PortKind::Smi } else { kind(directory) };
        self.device.parent = parent.map(Into::into);
        let owner = Owner {
            class: self.sysfs.join("class/net"),
            device: &self.directory,
            name: &self.device.name,
            ports: self.ports.len(),
            named: self.ports.iter().filter_map(PortReader::netdev_by_gid).collect(),
            options: context.options,
        };
        for port in &mut self.ports {
            port.open_netdevs(&owner);
            if context.options.cm {
                port.open_cm();
            }
        }
    }

    fn read_info(&self) -> DeviceInfo {
        let last = &self.device.info;
        // What cannot be read for once, as while the firmware is reset, has not changed: without the last GUID all
        // series of the device would be new ones.
        let text = |name, last: &String| match self.directory.read(name, str::to_owned) {
            Err(error) if watch::is_skipped(&error) => last.clone(),
            read => read.unwrap_or_default(),
        };
        let guid = |name, last: Option<_>| self.directory.text(name).parse().ok().or(last);
        let node_type = self.directory.text("node_type");
        DeviceInfo {
            guid: guid("node_guid", last.guid),
            system_guid: guid("sys_image_guid", last.system_guid),
            node_type: sysfs::word(&node_type),
            description: text("node_desc", &last.description),
            firmware: text("fw_ver", &last.firmware),
            hardware: text("hw_rev", &last.hardware),
            board: text("board_id", &last.board),
            hca_type: text("hca_type", &last.hca_type),
            driver: self.directory.link_target("device/driver").unwrap_or_default(),
            bus_address: self.directory.link_target("device").unwrap_or_default(),
        }
    }

    /// A kind with what the VPD and the counters of the device say.
    fn kind_of(&self, kind: PortKind) -> PortKind {
        match kind {
            PortKind::Physical if self.access.is_bridge(|| false) => PortKind::NvlinkBridge,
            PortKind::Physical if self.access.was_refused() => PortKind::Restricted,
            kind => kind,
        }
    }

    /// Its files that are not read at present, and why.
    pub(super) fn failing_files(&self) -> Vec<FailingFile> {
        let place = |path: &Path| {
            path.strip_prefix(&self.directory.path).unwrap_or(path).display().to_string()
        };
        let hw = self.hw.iter().flat_map(|hw| hw.counters.backing_off());
        let hw = hw.filter(|_| !self.access.is_refused());
        let files = self.ports.iter().flat_map(|port| port.backing_off(&self.access)).chain(hw);
        let files = files.map(|(directory, name, failure)| FailingFile {
            directory: place(&directory.path),
            name: name.to_owned(),
            failure,
        });
        let skipped = self.watch.skipped().into_iter().map(|path| FailingFile {
            directory: path.parent().map(place).unwrap_or_default(),
            name: path.file_name().unwrap_or_default().display().to_string(),
            failure: Failure::Blocked,
        });
        files.chain(skipped).collect()
    }
}

/// What the links and files of a device say of its ports.
pub(super) fn kind(device: &Directory) -> PortKind {
    if device.link_target("device/physfn").is_some() {
        PortKind::VirtualFunction
    } else if !device.text("device/sfnum").is_empty() {
        // On mlx5's auxiliary bus (drivers/net/ethernet/mellanox/mlx5/core/sf/dev/dev.c).
        PortKind::SubFunction
    } else if device.link_target("device").is_none() {
        PortKind::Software
    } else {
        PortKind::Physical
    }
}

#[cfg(test)]
impl DeviceReader {
    /// Makes the directory of the ports look unchanged.
    pub(super) fn forget_version(&mut self) {
        if let Some((directory, version)) = &mut self.ports_listed {
            *version = directory.version();
        }
    }
}
