//! Reads a device and its ports.

use std::collections::BTreeSet;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use crate::model::cm::{CmReading, GROUPS, MESSAGES};
use crate::model::{Device, DeviceInfo, HwName, HwReading, Port, PortKind, hw_counter};
use ib_mad::{Counter, Guid, Moment, PortNumber, Reading};

use super::ReadContext;
use super::counters::{Attempt, BackoffFile, Counters};
use super::hwmon::HwmonReader;
use super::netdev::{NetdevReader, Owner};
use super::sysfs::{self, Directory};

/// How long what seldom changes is not read again: names, versions, which network interface is on which port.
const INFO_LIFETIME: Duration = Duration::from_secs(60);

#[derive(Debug)]
pub(super) struct DeviceReader {
    sysfs: PathBuf,
    directory: Directory,
    /// The device without its ports and counters, for while it cannot be read.
    pub(super) device: Device,
    info_expires: Moment,
    ports: Vec<PortReader>,
    /// Its ports could not be listed, which is tried again at each read.
    ports_unlisted: bool,
    hw: Option<HwReader>,
    hwmon: HwmonReader,
}

impl DeviceReader {
    pub(super) fn open(sysfs: &Path, name: &str) -> io::Result<Self> {
        let directory = Directory::open(&sysfs.join("class/infiniband").join(name))?;
        let instance = directory.inode();
        let mut reader = DeviceReader {
            sysfs: sysfs.to_owned(),
            hw: HwReader::open(&directory),
            hwmon: HwmonReader::default(),
            directory,
            device: Device { name: name.into(), instance, ..Device::default() },
            info_expires: Moment::default(),
            ports: Vec::new(),
            ports_unlisted: false,
        };
        if let Err(error) = reader.open_ports() {
            reader.ports_unlisted = true;
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

    fn open_ports(&mut self) -> io::Result<()> {
        let ports = self.directory.open_below("ports")?;
        // A set, for 1 and 01 are one port.
        let numbers: BTreeSet<PortNumber> =
            ports.names()?.iter().filter_map(|name| name.parse().ok()).collect();
        let open = |number: PortNumber| {
            PortReader::open(ports.open_below(&number.to_string()).ok()?, number)
        };
        self.ports = numbers.into_iter().filter_map(open).collect();
        Ok(())
    }

    pub(super) fn exists(&self) -> bool {
        self.directory.is_at(&self.directory.path)
    }

    /// Lets the next read read all that is cached, and the states of ports that are backing off.
    pub(super) fn refresh(&mut self) {
        self.info_expires = Moment::default();
        let states = self.ports.iter_mut().flat_map(|port| &mut port.state);
        states.for_each(BackoffFile::reset_backoff);
    }

    /// Reads the device. The error says that it has been removed.
    pub(super) fn read(&mut self, context: &ReadContext) -> io::Result<Device> {
        let now = context.clock.now();
        if self.ports_unlisted && self.open_ports().is_ok() {
            tracing::info!(device = &*self.device.name, "device ports can be listed again");
            (self.ports_unlisted, self.info_expires) = (false, Moment::default());
        }
        if now >= self.info_expires {
            self.info_expires = now + INFO_LIFETIME;
            let info = self.read_info();
            if *self.device.info != info {
                self.device.info = Arc::new(info);
            }
            self.device.kind = self.kind();
            self.device.port_guid = self.ports.first().and_then(PortReader::guid);
            let owner = Owner {
                class: self.sysfs.join("class/net"),
                device: &self.directory,
                name: &self.device.name,
                ports: self.ports.len(),
                options: context.options,
            };
            for port in &mut self.ports {
                port.open_netdevs(&owner);
                if context.options.cm {
                    port.open_cm();
                }
            }
        }
        let (ports, may_be_removed): (Vec<_>, Vec<_>) =
            self.ports.iter_mut().map(|port| port.read(self.device.kind, context)).unzip();
        if may_be_removed.contains(&true) && !self.exists() {
            return Err(io::ErrorKind::NotFound.into());
        }
        let hw = self.hw.as_mut().map(|hw| hw.read(context.attempt())).unwrap_or_default();
        let unreadable_files = self.ports.iter().map(PortReader::failed).sum::<usize>()
            + self.hw.as_ref().map_or(0, |hw| hw.counters.failed());
        let is_readable = !self.ports_unlisted;
        let sensors = self.hwmon.read(&self.directory, now).to_vec();
        Ok(Device { is_readable, ports, hw, sensors, unreadable_files, ..self.device.clone() })
    }

    fn read_info(&self) -> DeviceInfo {
        let text = |name| self.directory.text(name);
        // A GUID that cannot be read for once, as while the firmware is reset, has not changed: without the
        // last one all series of the device would be new ones.
        let guid = |name, last: Option<_>| text(name).parse().ok().or(last);
        DeviceInfo {
            guid: guid("node_guid", self.device.info.guid),
            system_guid: guid("sys_image_guid", self.device.info.system_guid),
            node_type: sysfs::word(&text("node_type")),
            description: text("node_desc"),
            firmware: text("fw_ver"),
            hardware: text("hw_rev"),
            board: text("board_id"),
            hca_type: text("hca_type"),
            driver: self.directory.link_target("device/driver").unwrap_or_default(),
            bus_address: self.directory.link_target("device").unwrap_or_default(),
        }
    }

    /// What the device itself says of its ports.
    fn kind(&self) -> PortKind {
        let directory = &self.directory;
        if directory.link_target("device/physfn").is_some() {
            PortKind::VirtualFunction
        } else if !directory.text("device/sfnum").is_empty() {
            // On mlx5's auxiliary bus (drivers/net/ethernet/mellanox/mlx5/core/sf/dev/dev.c).
            PortKind::SubFunction
        } else if directory.link_target("device").is_none() {
            PortKind::Software
        } else {
            PortKind::Physical
        }
    }
}

#[derive(Debug)]
struct PortReader {
    number: PortNumber,
    directory: Directory,
    state: Vec<BackoffFile>,
    /// Of `counters_ext`, the 64-bit ones of mlx4 in old kernels, and of `counters`.
    counters: Vec<Counters<Counter>>,
    hw: Option<HwReader>,
    cm: Vec<Counters<(usize, usize)>>,
    netdevs: Vec<NetdevReader>,
}

/// The names of the files with the state of a port. Old kernels do not have all of them.
const STATE_FILES: [&str; 6] = ["state", "phys_state", "rate", "link_layer", "lid", "sm_lid"];

impl PortReader {
    /// Opens a port and lists its counters; `None` if its directory is empty or cannot be listed.
    fn open(directory: Directory, number: PortNumber) -> Option<Self> {
        let names = directory.names().ok().filter(|names| !names.is_empty())?;
        let mut counters = Vec::new();
        // A counter of `counters_ext` is not read from `counters`, not even while its read fails: the
        // narrow one has another value.
        let mut wide = Vec::new();
        for name in ["counters_ext", "counters"] {
            let Ok(directory) = directory.open_below(name) else { continue };
            let found = Counters::open(directory, |file| {
                Counter::from_file(file).filter(|counter| !wide.contains(counter))
            });
            wide.extend(found.keys());
            counters.push(found);
        }
        let is_there = |file: &&str| names.iter().any(|name| name == file);
        let state = STATE_FILES.into_iter().filter(is_there).map(BackoffFile::new).collect();
        let (hw, cm, netdevs) = (HwReader::open(&directory), Vec::new(), Vec::new());
        Some(PortReader { number, directory, state, counters, hw, cm, netdevs })
    }

    /// Opens the counters of the connection manager, whose module may be loaded later than the device's.
    fn open_cm(&mut self) {
        if self.cm.is_empty() {
            let groups = GROUPS.iter().enumerate().filter_map(|(group, row)| {
                let directory = self.directory.open_below(row.directory).ok()?;
                let message = |file: &str| MESSAGES.iter().position(|message| *message == file);
                Some(Counters::open(directory, |file| Some((group, message(file)?))))
            });
            self.cm = groups.collect();
        }
    }

    /// The lower half of its first GID (IBTA 1.4, 4.1.1).
    fn guid(&self) -> Option<Guid> {
        let gid: std::net::Ipv6Addr = self.directory.text("gids/0").parse().ok()?;
        Some(Guid(gid.to_bits() as u64)).filter(|guid| guid.0 != 0)
    }

    fn open_netdevs(&mut self, owner: &Owner<'_>) {
        let layer = self.directory.text("link_layer");
        let names = owner.netdevs_of(&self.directory, self.number, &layer);
        self.netdevs.retain(|netdev| {
            names.iter().any(|(name, _)| **name == *netdev.name) && netdev.exists()
        });
        for (name, bond) in names {
            if !self.netdevs.iter().any(|netdev| *netdev.name == *name) {
                self.netdevs.extend(NetdevReader::open(owner, &name));
            }
            for netdev in self.netdevs.iter_mut().filter(|netdev| *netdev.name == *name) {
                netdev.bond.clone_from(&bond);
            }
        }
    }

    /// Reads and parses a file with the state; `None` if there is none.
    fn read_state<T>(
        &mut self,
        name: &str,
        attempt: Attempt,
        parse: impl FnOnce(&str) -> Option<T>,
    ) -> io::Result<Option<T>> {
        let file = self.state.iter_mut().find(|file| *file.name == *name);
        file.map_or(Ok(None), |file| file.read(&self.directory, attempt, parse))
    }

    /// Reads the port, and returns whether its device may have been removed. What cannot be read is `None`.
    fn read(&mut self, kind: PortKind, context: &ReadContext) -> (Port, bool) {
        // Taken before the state is read, so that an event that comes meanwhile is newer.
        let attempt = context.attempt();
        let at = attempt.now;
        let state = self.read_state("state", attempt, sysfs::state);
        let may_be_removed = state.as_ref().is_err_and(is_removed);
        let physical_state = self.read_state("phys_state", attempt, sysfs::physical_state);
        let rate = self.read_state("rate", attempt, sysfs::rate).ok().flatten();
        let rate = rate.unwrap_or_default();
        let non_empty = |text: &str| Some(text.to_owned()).filter(|text| !text.is_empty());
        let link_layer = self.read_state("link_layer", attempt, non_empty);
        let mut lid = |name| self.read_state(name, attempt, sysfs::lid).ok().flatten().flatten();
        let (lid, sm_lid) = (lid("lid"), lid("sm_lid"));
        let mut reading = Reading::empty(at);
        for counters in &mut self.counters {
            counters.read(attempt, |counter, value| {
                reading.set(counter, value);
                if counter.may_be_saturated(value) {
                    reading.stuck.insert(counter);
                }
            });
        }
        reading.at = context.clock.now();
        let mut cm = CmReading::default();
        for counters in &mut self.cm {
            counters.read(attempt, |(group, message), value| cm[group][message] = Some(value));
        }
        let is_representor = self.netdevs.iter().any(|netdev| netdev.is_representor);
        let port = Port {
            number: self.number,
            kind: if is_representor { PortKind::Representor } else { kind },
            at,
            link_layer: link_layer.ok().flatten().unwrap_or_default(),
            state: state.ok().flatten(),
            physical_state: physical_state.ok().flatten(),
            rate: rate.bytes_per_second,
            width: rate.width,
            speed: rate.speed,
            lid,
            sm_lid,
            reading,
            hw: self.hw.as_mut().map(|hw| hw.read(attempt)).unwrap_or_default(),
            cm: (!self.cm.is_empty()).then(|| Box::new(cm)),
            netdevs: self.netdevs.iter_mut().map(|netdev| netdev.read(attempt)).collect(),
        };
        (port, may_be_removed)
    }

    fn failed(&self) -> usize {
        let hw = self.hw.as_ref().map_or(0, |hw| hw.counters.failed());
        let cm: usize = self.cm.iter().map(Counters::failed).sum();
        let counters: usize = self.counters.iter().map(Counters::failed).sum();
        counters + hw + cm + self.state.iter().filter(|file| file.has_failed()).count()
    }
}

/// Whether an error says that the device has been removed: its directory is not found any more, or a file
/// of it that was just opened is dead. Or it has no network interface at present: ports of iWARP and soft
/// RoCE return ENODEV then (kernel: `iw_query_port`).
fn is_removed(error: &io::Error) -> bool {
    matches!(error.raw_os_error(), Some(libc::ENOENT | libc::ENODEV | libc::ENXIO))
}

/// Reads `hw_counters`, a driver's own counters, of a port or of a device.
#[derive(Debug)]
struct HwReader {
    names: Arc<[HwName]>,
    counters: Counters<usize>,
}

impl HwReader {
    /// Lists the counters of a port or device; `None` if it has no `hw_counters`.
    fn open(parent: &Directory) -> Option<Self> {
        let mut names: Vec<HwName> = Vec::new();
        let counters = Counters::open(parent.open_below("hw_counters").ok()?, |file| {
            // How long the kernel caches the counters, in ms: a setting, not a counter.
            if file == "lifespan" {
                return None;
            }
            // A row has all spellings of a counter. Should a driver show two of them, the second is
            // exported by its file name, or there would be two samples of one series.
            let row = hw_counter::find(file)
                .filter(|row| !names.iter().any(|name| name.row == Some(*row)));
            names.push(HwName { file: file.into(), row });
            Some(names.len() - 1)
        });
        Some(HwReader { names: names.into(), counters })
    }

    fn read(&mut self, attempt: Attempt) -> HwReading {
        let mut values = vec![None; self.names.len()];
        self.counters.read(attempt, |index, value| values[index] = Some(value));
        HwReading { names: self.names.clone(), values }
    }
}
