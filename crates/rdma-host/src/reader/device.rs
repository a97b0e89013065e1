//! A device: what it is, and its ports.

use std::collections::BTreeSet;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use crate::model::{About, Device, HwReading};
use ib_mad::{Moment, PortNumber};

use super::Looking;
use super::file::Directory;
use super::netdev::Owner;
use super::port::{HwReader, PortReader};
use super::value;

/// How long what seldom changes is believed: names, versions, which network interface is whose.
const ABOUT_LIFE: Duration = Duration::from_secs(60);

/// What is known of a device that cannot be opened.
pub(super) fn closed(name: Arc<str>) -> Device {
    Device {
        name,
        instance: None,
        about: Arc::default(),
        answers: false,
        ports: Vec::new(),
        hw: HwReading::default(),
        refused: 0,
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
    about: Arc<About>,
    about_until: Moment,
    ports: Vec<PortReader>,
    /// Its ports could not be listed, which is tried again at each look.
    is_portless: bool,
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
            instance: directory.number(),
            directory,
            about: Arc::default(),
            about_until: Moment::default(),
            ports: Vec::new(),
            is_portless: false,
        };
        if let Err(error) = reader.find_ports() {
            reader.is_portless = true;
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

    fn find_ports(&mut self) -> io::Result<()> {
        let ports = self.directory.below("ports")?;
        // As a set: 1 is what 01 says, too, and no port is told of twice.
        let numbers: BTreeSet<PortNumber> =
            ports.names()?.iter().filter_map(|name| name.parse().ok()).collect();
        self.ports = numbers
            .into_iter()
            .filter_map(|number| PortReader::open(ports.below(&number.to_string()).ok()?, number))
            .collect();
        Ok(())
    }

    /// Its name.
    pub(super) fn name(&self) -> &Arc<str> {
        &self.name
    }

    /// What to tell of it while it does not answer.
    pub(super) fn silent(&self) -> Device {
        let about = Arc::clone(&self.about);
        Device { about, instance: self.instance, ..closed(Arc::clone(&self.name)) }
    }

    /// Whether it still has its name, and is still there.
    pub(super) fn is_here(&self) -> bool {
        self.directory.is_at(&self.path)
    }

    /// Lets the next look find out anew what seldom changes, and ask what refused to say how the
    /// ports stand.
    pub(super) fn look_closely(&mut self) {
        self.about_until = Moment::default();
        self.ports.iter_mut().for_each(PortReader::forgive);
    }

    /// Reads it. Fails when it is not there any more.
    pub(super) fn read(&mut self, looking: &Looking) -> io::Result<Device> {
        let now = looking.clock.now();
        if self.is_portless && self.find_ports().is_ok() {
            tracing::info!(device = &*self.name, "the ports of the device can be listed again");
            (self.is_portless, self.about_until) = (false, Moment::default());
        }
        if now >= self.about_until {
            self.about_until = now + ABOUT_LIFE;
            let about = self.about();
            if *self.about != about {
                self.about = Arc::new(about);
            }
            let owner = Owner {
                class: self.sysfs.join("class/net"),
                device: &self.directory,
                name: &self.name,
                ports: self.ports.len(),
                ethtool: looking.manner.ethtool,
            };
            for port in &mut self.ports {
                port.find_netdevs(&owner);
                if looking.manner.cm {
                    port.find_cm();
                }
            }
        }
        let (ports, may_be_gone): (Vec<_>, Vec<_>) =
            self.ports.iter_mut().map(|port| port.read(looking)).unzip();
        if may_be_gone.contains(&true) && !self.is_here() {
            return Err(io::ErrorKind::NotFound.into());
        }
        let hw = self.hw.as_mut().map(|hw| hw.read(looking.asking())).unwrap_or_default();
        let refused = self.ports.iter().map(PortReader::refused).sum::<usize>()
            + self.hw.as_ref().map_or(0, HwReader::refused);
        Ok(Device {
            name: Arc::clone(&self.name),
            instance: self.instance,
            about: Arc::clone(&self.about),
            answers: !self.is_portless,
            ports,
            hw,
            refused,
        })
    }

    fn about(&self) -> About {
        let text = |name| self.directory.text(name);
        // One that cannot be read for once, as while the firmware is reset, has not changed: without the last
        // one all series of the device would be new ones.
        let guid = |name, last: Option<_>| text(name).parse().ok().or(last);
        About {
            guid: guid("node_guid", self.about.guid),
            system_guid: guid("sys_image_guid", self.about.system_guid),
            node_type: value::word(&text("node_type")),
            description: text("node_desc"),
            firmware: text("fw_ver"),
            hardware: text("hw_rev"),
            board: text("board_id"),
            hca_type: text("hca_type"),
            driver: self.directory.link("device/driver").unwrap_or_default(),
            // Of PCI, or of mlx5's auxiliary bus (drivers/net/ethernet/mellanox/mlx5/core/sf/dev/dev.c).
            is_virtual: self.directory.link("device/physfn").is_some()
                || !text("device/sfnum").is_empty(),
        }
    }
}
