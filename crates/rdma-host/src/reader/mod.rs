//! Reads the RDMA devices of a host from sysfs and ethtool.
//!
//! Works without a MAD, on every node, for InfiniBand, RoCE, iWARP, Omni-Path and the adapters of
//! cloud providers. A file that cannot be read, and a device that hangs, do not delay the others.

mod counters;
mod device;
pub mod ethtool;
pub mod events;
pub mod executor;
mod hwmon;
mod module;
mod netdev;
pub mod sysfs;

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use crate::model::{Device, HostSnapshot, resolve_kinds};
use ib_mad::clock::Clock;
use regex_lite::Regex;

use counters::Attempt;
use device::DeviceReader;
use executor::TimeoutExecutor;
use sysfs::Directory;

/// How long reading a device may take. It takes milliseconds; with firmware that hangs, a minute.
const READ_TIMEOUT: Duration = Duration::from_secs(2);

/// How to read devices.
#[derive(Clone, Copy, Debug)]
pub struct ReadOptions {
    /// How long a file is not read again after a read that failed.
    pub error_backoff: Duration,
    /// Whether to read the statistics of Ethernet drivers.
    pub ethtool: bool,
    /// Whether to read the connection manager's counters.
    pub cm: bool,
    /// Whether to read the modules of Ethernet ports, which requires CAP_NET_ADMIN.
    pub modules: bool,
}

/// A filter by device name. A device that it excludes is never opened.
#[derive(Clone, Debug, Default)]
pub struct DeviceFilter {
    include: Option<Regex>,
    exclude: Option<Regex>,
}

impl DeviceFilter {
    /// Selects the devices whose whole name matches `include` and does not match `exclude`; a pattern that
    /// is not given excludes nothing. The error says, in one line, what is wrong with a pattern.
    pub fn new(include: Option<&str>, exclude: Option<&str>) -> Result<Self, String> {
        let whole = |pattern: Option<&str>| {
            let regex = pattern.map(|pattern| Regex::new(&format!("^(?:{pattern})$")));
            regex.transpose().map_err(|error| error.to_string().replace('\n', " "))
        };
        Ok(DeviceFilter { include: whole(include)?, exclude: whole(exclude)? })
    }

    /// Whether the device should be read.
    pub fn matches(&self, device: &str) -> bool {
        self.include.as_ref().is_none_or(|include| include.is_match(device))
            && !self.exclude.as_ref().is_some_and(|exclude| exclude.is_match(device))
    }
}

#[derive(Clone, Copy, Debug)]
struct ReadContext {
    clock: Clock,
    options: ReadOptions,
}

impl ReadContext {
    /// For reads that begin now.
    fn attempt(&self) -> Attempt {
        Attempt { now: self.clock.now(), error_backoff: self.options.error_backoff }
    }
}

/// Where the devices of a host come from: its kernel, or a simulation.
pub trait DeviceSource: Send {
    /// Reads all devices.
    fn read(&mut self) -> HostSnapshot;

    /// Lets the next read read all that is cached of a device, or of all of them: names, versions, the
    /// network interfaces of ports, and the states of ports that are backing off.
    fn refresh(&mut self, device: Option<&str>);
}

/// Reads all devices of a host, which it holds open.
pub struct HostReader {
    sysfs: PathBuf,
    /// The directory of devices below it.
    class: PathBuf,
    filter: DeviceFilter,
    clock: Clock,
    executor: TimeoutExecutor<DeviceReader, io::Result<Device>>,
    readers: Vec<DeviceReader>,
    /// The devices that hang, by name, and what is reported of each.
    hanging: BTreeMap<Arc<str>, Device>,
    /// The devices that could not be opened at the latest read, or were closed after a panic.
    closed: BTreeMap<Arc<str>, Device>,
    panicked: BTreeSet<Arc<str>>,
    excluded: usize,
    problem: Option<String>,
}

impl HostReader {
    /// A reader of the devices below a mounted sysfs.
    pub fn new(sysfs: PathBuf, filter: DeviceFilter, options: ReadOptions, clock: Clock) -> Self {
        let context = ReadContext { clock, options };
        HostReader {
            class: sysfs.join("class/infiniband"),
            sysfs,
            filter,
            clock,
            executor: TimeoutExecutor::new(READ_TIMEOUT, move |reader: &mut DeviceReader| {
                reader.read(&context)
            }),
            readers: Vec::new(),
            hanging: BTreeMap::new(),
            closed: BTreeMap::new(),
            panicked: BTreeSet::new(),
            excluded: 0,
            problem: None,
        }
    }

    /// Reads the devices that do not hang. Returns whether a device was removed while it was read.
    fn read_devices(&mut self) -> (Vec<Device>, bool) {
        self.open_devices();
        let readers = std::mem::take(&mut self.readers);
        let devices = readers.iter().map(|reader| reader.device.clone());
        let mut hanging: BTreeMap<_, _> =
            devices.map(|device| (Arc::clone(&device.name), device)).collect();
        let mut devices = Vec::with_capacity(readers.len());
        let mut removed = false;
        for (reader, outcome) in self.executor.run(readers) {
            hanging.remove(&reader.device.name);
            match outcome {
                Ok(Ok(device)) => {
                    if self.panicked.remove(&reader.device.name) {
                        tracing::info!(device = &*reader.device.name, "device can be read again");
                    }
                    devices.push(device);
                    self.readers.push(reader);
                }
                Ok(Err(error)) => {
                    tracing::debug!(device = &*reader.device.name, %error, "device disappeared");
                    removed = true;
                }
                Err(panic) => self.close_panicked(&reader, &panic),
            }
        }
        for name in hanging.keys() {
            tracing::warn!(device = &**name, timeout = ?READ_TIMEOUT, "device hangs: not read until it responds");
        }
        self.hanging.append(&mut hanging);
        (devices, removed)
    }

    /// Closes a device whose read panicked: its reader may be in any state. The next read opens it again.
    fn close_panicked(&mut self, reader: &DeviceReader, panic: &str) {
        let name = &reader.device.name;
        if self.panicked.insert(Arc::clone(name)) {
            tracing::error!(
                device = &**name, %panic,
                "reading the device panicked: a bug in the exporter, please report it; the device is opened again at \
                 each read"
            );
        }
        if !self.readers.iter().any(|reader| reader.device.name == *name) {
            self.closed.insert(Arc::clone(name), reader.device.clone());
        }
    }

    /// The names of all devices. A host without RDMA modules has no such directory.
    fn list(&self) -> Result<Vec<String>, String> {
        let class = self.class.display();
        let listed = Directory::open(&self.class).and_then(|class| class.names());
        listed.or_else(|error| match error.kind() {
            io::ErrorKind::NotFound => {
                let (root, there) = (self.sysfs.display(), std::fs::metadata(&self.sysfs));
                let action = "set --path.sysfs to the mount point of sysfs";
                let problem = |error| format!("--path.sysfs {root}: {error}: {action}");
                there.map(|_| Vec::new()).map_err(problem)
            }
            io::ErrorKind::PermissionDenied => {
                let action = "give the user of the exporter read permission for this directory";
                Err(format!("{class}: {error}: {action}"))
            }
            _ => Err(format!("{class}: {error}")),
        })
    }

    /// Opens new devices and closes removed ones. Of an excluded device only the name is read.
    fn open_devices(&mut self) {
        let listed = self.list();
        self.problem = listed.as_ref().err().cloned();
        // Devices that cannot be listed are not removed.
        let Ok(names) = listed else { return };
        let exists = |name: &str| names.iter().any(|existing| existing == name);
        self.readers.retain(|reader| exists(&reader.device.name) && reader.exists());
        self.hanging.retain(|name, _| exists(name));
        self.closed.retain(|name, _| exists(name));
        self.panicked.retain(|name| exists(name));
        let is_excluded =
            |name: &&String| !self.filter.matches(name) && self.class.join(name).is_dir();
        self.excluded = names.iter().filter(is_excluded).count();
        for name in &names {
            let is_open = self.hanging.contains_key(&**name)
                || self.readers.iter().any(|reader| *reader.device.name == **name);
            if is_open || !self.filter.matches(name) {
                continue;
            }
            match DeviceReader::open(&self.sysfs, name) {
                Ok(reader) => {
                    self.closed.remove(&**name);
                    self.readers.push(reader);
                }
                // Not a device: those are directories.
                Err(error) if error.kind() == io::ErrorKind::NotADirectory => {}
                Err(error) => {
                    if !self.closed.contains_key(&**name) {
                        let path = self.class.join(name);
                        tracing::warn!(device = name, directory = %path.display(), %error, "device open failed");
                    }
                    let name: Arc<str> = name.as_str().into();
                    let device = Device { name: Arc::clone(&name), ..Device::default() };
                    self.closed.insert(name, device);
                }
            }
        }
    }
}

impl DeviceSource for HostReader {
    fn read(&mut self) -> HostSnapshot {
        let anchor = self.clock.anchor();
        for (reader, outcome) in self.executor.late() {
            self.hanging.remove(&reader.device.name);
            match outcome {
                Ok(_) => {
                    tracing::info!(device = &*reader.device.name, "device responds again");
                    self.readers.push(reader);
                }
                Err(panic) => self.close_panicked(&reader, &panic),
            }
        }
        let (mut devices, removed) = self.read_devices();
        if removed {
            // It may be back under its name at once, as after a reset.
            (devices, _) = self.read_devices();
        }
        devices.extend(self.hanging.values().chain(self.closed.values()).cloned());
        devices.sort_unstable_by(|a, b| a.name.cmp(&b.name));
        resolve_kinds(&mut devices);
        HostSnapshot {
            anchor,
            began: anchor.moment,
            ended: self.clock.now(),
            devices,
            excluded: self.excluded,
            problem: self.problem.clone(),
        }
    }

    fn refresh(&mut self, device: Option<&str>) {
        let wanted =
            |reader: &&mut DeviceReader| device.is_none_or(|name| *reader.device.name == *name);
        self.readers.iter_mut().filter(wanted).for_each(DeviceReader::refresh);
    }
}

#[cfg(test)]
mod tests;
