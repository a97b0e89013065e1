//! Reads the RDMA devices of a host from sysfs and ethtool.
//!
//! Works without a MAD, on every node, for InfiniBand, RoCE, iWARP, Omni-Path and the adapters of
//! cloud providers. A file that cannot be read, and a device that is slow or hangs, do not delay the others.
//!
//! [`HostReader::read`] has the [`executor`] run a `DeviceReader` for each device, one after the other on one thread. A
//! `Slot` is a device over time: it knows whether the reader is at work, and what to publish if it is not back.

mod access;
mod backoff;
mod counters;
mod device;
pub mod ethtool;
pub mod events;
pub mod executor;
mod failures;
mod filter;
mod hw;
mod hwmon;
mod kept;
mod kernel_devices;
mod module;
mod netdev;
mod options;
mod planes;
mod port;
mod slot;
mod smi;
pub mod sysfs;
mod time;
mod vpd;
mod watch;

pub use filter::{DeviceFilter, PatternError};
pub use options::ReadOptions;
pub use vpd::is_nvlink_bridge;

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use crate::model::{Device, HostSnapshot, resolve_kinds};
use ib_mad::Moment;
use process_clock::Clock;

use device::DeviceReader;
use executor::TimeoutExecutor;
use kept::Allowance;
use kernel_devices::KernelDevices;
use options::ReadContext;
use planes::Planes;
use slot::Slot;
use sysfs::Directory;
use time::Time;
use watch::FileWatch;

/// How long the other devices wait for one that is not known to be slow, and no longer than [`ALL_PATIENCE`] for all
/// of them together.
const PATIENCE: Duration = Duration::from_secs(5);
const ALL_PATIENCE: Duration = Duration::from_secs(10);
/// How long they wait for one of them after that.
const LEAST_PATIENCE: Duration = Duration::from_secs(1);

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
    context: ReadContext,
    executor: TimeoutExecutor<DeviceReader, io::Result<Device>>,
    slots: Vec<Slot>,
    /// The devices that could not be opened at the latest read, or were closed after a panic.
    closed: BTreeMap<Arc<str>, Device>,
    panicked: BTreeSet<Arc<str>>,
    /// The devices that the filter excludes, each with the inode of its directory.
    excluded: BTreeMap<String, u64>,
    planes: Planes,
    problem: Option<String>,
}

impl HostReader {
    /// A reader of the devices below a mounted sysfs.
    pub fn new(sysfs: PathBuf, filter: DeviceFilter, options: ReadOptions, clock: Clock) -> Self {
        let files = Allowance::of_process();
        // Opened now: a process that has confined itself may open no further sockets.
        let kernel = Arc::new(KernelDevices::open());
        let context = ReadContext { time: Time::Clock(clock), options, files, kernel };
        HostReader {
            class: sysfs.join("class/infiniband"),
            sysfs,
            filter,
            clock,
            executor: executor(&context),
            context,
            slots: Vec::new(),
            closed: BTreeMap::new(),
            panicked: BTreeSet::new(),
            excluded: BTreeMap::new(),
            planes: Planes::default(),
            problem: None,
        }
    }

    /// Takes the results of reads in the background.
    fn take_late(&mut self) {
        for (reader, outcome) in self.executor.late() {
            let context = &self.context;
            if !self.slots.iter_mut().any(|slot| slot.release(&reader.watch, context)) {
                self.complete(reader, outcome);
            }
        }
        for slot in &mut self.slots {
            // The reader of its other files is started below.
            let _ = slot.replace_blocked(&self.sysfs);
        }
    }

    /// Reads the devices, or those `only` that have nothing to publish. Returns whether one was removed meanwhile.
    fn read_devices(&mut self, only_unread: bool) -> bool {
        self.open_devices();
        let began = self.context.time.now();
        let mut jobs = Vec::new();
        for slot in self.slots.iter_mut().filter(|slot| slot.is_unread() || !only_unread) {
            let is_background = slot.is_background();
            match slot.start(began) {
                Some(reader) if is_background => {
                    if let Some(reader) = self.executor.start(reader) {
                        slot.put_back(reader);
                    }
                }
                reader => jobs.extend(reader),
            }
        }
        let mut removed = false;
        while !jobs.is_empty() {
            removed |= self.run(std::mem::take(&mut jobs), began, &mut jobs);
        }
        removed
    }

    /// Runs jobs, and adds to `again` those to run in their place, where a file blocks. Returns whether a device was
    /// removed.
    fn run(
        &mut self,
        jobs: Vec<DeviceReader>,
        began: Moment,
        again: &mut Vec<DeviceReader>,
    ) -> bool {
        let time = self.context.time.clone();
        let watches: Vec<Arc<FileWatch>> =
            jobs.iter().map(|reader| Arc::clone(&reader.watch)).collect();
        let is_patient = || time.now().since(began) < ALL_PATIENCE;
        let completed = self.executor.run_while(jobs, |index, _| {
            let limit = if is_patient() { PATIENCE } else { LEAST_PATIENCE };
            watches[index].patience(limit)
        });
        let mut removed = false;
        for (reader, outcome) in completed {
            removed |= self.complete(reader, outcome);
        }
        let now = time.now();
        let is_left = |slot: &&mut Slot| watches.iter().any(|watch| slot.is_running(watch));
        for slot in self.slots.iter_mut().filter(is_left) {
            if slot.replace_blocked(&self.sysfs).is_none() {
                slot.leave_to_background(now);
                continue;
            }
            let Some(reader) = slot.start(now) else { continue };
            if is_patient() {
                again.push(reader);
            } else if let Some(reader) = self.executor.start(reader) {
                slot.put_back(reader);
            }
        }
        removed
    }

    /// Takes the result of a read. Returns whether the device was removed meanwhile.
    fn complete(
        &mut self,
        reader: DeviceReader,
        outcome: Result<io::Result<Device>, String>,
    ) -> bool {
        let name = Arc::clone(&reader.device.name);
        // A device that is gone is read no more.
        let Some(index) = self.slots.iter().position(|slot| slot.is_running(&reader.watch)) else {
            return false;
        };
        match outcome {
            Ok(Ok(device)) => {
                if self.panicked.remove(&name) {
                    tracing::info!(device = &*name, "device can be read again");
                }
                self.slots[index].complete(reader, device, &self.context);
                false
            }
            Ok(Err(error)) => {
                tracing::debug!(device = &*name, %error, "device disappeared");
                self.slots.remove(index);
                true
            }
            Err(panic) => {
                self.slots.remove(index);
                self.close_panicked(&reader, &panic);
                false
            }
        }
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
        self.closed.insert(Arc::clone(name), reader.device.clone());
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
        if let Ok(names) = listed {
            self.open_listed(&names);
        }
    }

    fn open_listed(&mut self, names: &[String]) {
        let exists = |name: &str| names.iter().any(|existing| existing == name);
        let class = &self.class;
        self.slots.retain(|slot| {
            let name = &*slot.device.name;
            exists(name) && !slot.is_lost() && slot.is_at(&class.join(name))
        });
        self.closed.retain(|name, _| exists(name));
        self.panicked.retain(|name| exists(name));
        self.excluded.retain(|name, _| exists(name));
        for name in names {
            let is_open = self.slots.iter().any(|slot| *slot.device.name == **name);
            if is_open || self.is_excluded(name) {
                continue;
            }
            match Slot::open(&self.sysfs, name, &self.context.time) {
                Ok(slot) => {
                    self.closed.remove(&**name);
                    self.slots.push(slot);
                }
                // Not a device: those are directories.
                Err(error) if error.kind() == io::ErrorKind::NotADirectory => {}
                // It was renamed or removed after the list: with this name it would be another device that disappears.
                Err(error)
                    if error.kind() == io::ErrorKind::NotFound
                        && !self.class.join(name).is_symlink() => {}
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

impl HostReader {
    /// Whether the filter excludes a device. What it is, is found out once: its VPD is slow to read.
    fn is_excluded(&mut self, name: &str) -> bool {
        let inode = sysfs::inode(&self.class.join(name)).ok();
        if inode.is_some() && self.excluded.get(name).copied() == inode {
            return true;
        }
        let is_selected = self.filter.selects(&self.class, name, &self.context.kernel);
        match inode.filter(|_| !is_selected && self.class.join(name).is_dir()) {
            Some(inode) => self.excluded.insert(name.to_owned(), inode),
            None => self.excluded.remove(name),
        };
        !is_selected
    }
}

impl DeviceSource for HostReader {
    fn read(&mut self) -> HostSnapshot {
        let anchor = self.clock.anchor();
        self.take_late();
        if self.read_devices(false) {
            // It may be back under its name at once, as after a reset.
            self.read_devices(true);
        }
        let now = self.context.time.now();
        let mut devices: Vec<Device> =
            self.slots.iter_mut().map(|slot| slot.publish(now)).collect();
        devices.extend(self.closed.values().cloned());
        devices.sort_unstable_by(|a, b| a.name.cmp(&b.name));
        resolve_kinds(&mut devices);
        self.planes.remove_copies(&mut devices);
        HostSnapshot {
            anchor,
            began: anchor.moment,
            ended: self.clock.now(),
            devices,
            excluded: self.excluded.len(),
            problem: self.problem.clone(),
        }
    }

    fn refresh(&mut self, device: Option<&str>) {
        let wanted = |slot: &&mut Slot| device.is_none_or(|name| *slot.device.name == *name);
        self.slots.iter_mut().filter(wanted).for_each(Slot::refresh);
    }
}

/// Reads a device on each job.
fn executor(context: &ReadContext) -> TimeoutExecutor<DeviceReader, io::Result<Device>> {
    let context = context.clone();
    TimeoutExecutor::new(PATIENCE, move |reader: &mut DeviceReader| {
        let watch = Arc::clone(&reader.watch);
        watch.run(|| reader.read(&context))
    })
}

#[cfg(test)]
mod tests;
