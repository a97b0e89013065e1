//! The host's own view: all RDMA devices that its kernel shows.
//!
//! Works without a single MAD, on every node, for InfiniBand, RoCE, iWARP, Omni-Path and the cloud's
//! adapters alike. What a device refuses, and one that hangs, costs the others nothing.

mod asked;
mod counters;
mod device;
pub mod ethtool;
pub mod events;
pub mod file;
mod netdev;
pub mod patience;
mod port;
pub mod selection;
mod value;

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use crate::model::{Device, HostSnapshot};
use ib_mad::clock::Clock;

use asked::Asking;
use device::DeviceReader;
use file::Directory;
use patience::{Panicked, Patience};
use selection::Selection;

/// How long a device may take to be read. They take milliseconds; firmware that hangs, a minute.
const PATIENCE: Duration = Duration::from_secs(2);

/// How devices are to be read.
#[derive(Clone, Copy, Debug)]
pub struct Manner {
    /// How long a file that refused is left alone.
    pub rest: Duration,
    /// Whether Ethernet drivers are asked what they count on the wire.
    pub ethtool: bool,
    /// Whether the connection manager's counters are read.
    pub cm: bool,
}

/// What those who read must know.
#[derive(Clone, Copy, Debug)]
struct Looking {
    clock: Clock,
    manner: Manner,
}

impl Looking {
    /// For what is asked now.
    fn asking(&self) -> Asking {
        Asking { now: self.clock.now(), rest: self.manner.rest }
    }
}

/// All devices of a host, open and ready to be looked at.
pub struct Host {
    sysfs: PathBuf,
    selection: Selection,
    clock: Clock,
    patience: Patience<DeviceReader, io::Result<Device>>,
    /// Those that are here.
    readers: Vec<DeviceReader>,
    /// Those that hang, by name, and what is told of each.
    away: BTreeMap<Arc<str>, Device>,
    /// Those that could not be opened, or were given up at the latest look.
    closed: BTreeMap<Arc<str>, Device>,
    /// Those at which the reading panicked when they were last read.
    panicked: BTreeSet<Arc<str>>,
    /// How many devices the selection leaves out.
    left_out: usize,
    /// Why the devices could not be listed at the latest look.
    problem: Option<String>,
}

impl Host {
    /// The devices below a mounted sysfs.
    pub fn new(sysfs: PathBuf, selection: Selection, manner: Manner, clock: Clock) -> Self {
        let looking = Looking { clock, manner };
        Host {
            sysfs,
            selection,
            clock,
            patience: Patience::new(PATIENCE, move |reader: &mut DeviceReader| {
                reader.read(&looking)
            }),
            readers: Vec::new(),
            away: BTreeMap::new(),
            closed: BTreeMap::new(),
            panicked: BTreeSet::new(),
            left_out: 0,
            problem: None,
        }
    }

    /// Lets the next look find out anew what it seldom asks.
    pub fn look_closely(&mut self) {
        self.readers.iter_mut().for_each(DeviceReader::look_closely);
    }

    /// The same for one device.
    pub fn look_closely_at(&mut self, device: &str) {
        let is_it = |reader: &&mut DeviceReader| **reader.name() == *device;
        self.readers.iter_mut().filter(is_it).for_each(DeviceReader::look_closely);
    }

    /// Looks at all devices that are there.
    pub fn look(&mut self) -> HostSnapshot {
        let anchor = self.clock.anchor();
        for (reader, outcome) in self.patience.returned() {
            self.away.remove(reader.name());
            match outcome {
                Ok(_) => {
                    tracing::info!(device = &**reader.name(), "the device answers again");
                    self.readers.push(reader);
                }
                Err(panic) => self.give_up(&reader, &panic),
            }
        }
        let (mut devices, gone) = self.read();
        if gone {
            // It may be back under its name at once, as after a reset.
            (devices, _) = self.read();
        }
        devices.extend(self.away.values().chain(self.closed.values()).cloned());
        devices.sort_unstable_by(|a, b| a.name.cmp(&b.name));
        HostSnapshot {
            anchor,
            began: anchor.moment,
            ended: self.clock.now(),
            devices,
            left_out: self.left_out,
            problem: self.problem.clone(),
        }
    }

    /// Opens what came, closes what went, and reads all that does not hang; tells whether something
    /// went meanwhile.
    fn read(&mut self) -> (Vec<Device>, bool) {
        self.find();
        let readers = std::mem::take(&mut self.readers);
        let mut late: BTreeMap<_, _> =
            readers.iter().map(|reader| (Arc::clone(reader.name()), reader.silent())).collect();
        let mut devices = Vec::with_capacity(readers.len());
        let mut gone = false;
        for (reader, outcome) in self.patience.run(readers) {
            late.remove(reader.name());
            match outcome {
                Ok(Ok(device)) => {
                    if self.panicked.remove(reader.name()) {
                        tracing::info!(device = &**reader.name(), "the device can be read again");
                    }
                    devices.push(device);
                    self.readers.push(reader);
                }
                Ok(Err(error)) => {
                    tracing::debug!(device = &**reader.name(), %error, "the device is gone");
                    gone = true;
                }
                Err(panic) => self.give_up(&reader, &panic),
            }
        }
        for name in late.keys() {
            tracing::warn!(device = &**name, limit = ?PATIENCE, "the device hangs: it is left alone");
        }
        self.away.append(&mut late);
        (devices, gone)
    }

    /// Gives up a device at which the reading panicked: its reader may be in any state, so the next look
    /// opens the device again.
    fn give_up(&mut self, reader: &DeviceReader, panic: &Panicked) {
        let name = reader.name();
        if self.panicked.insert(Arc::clone(name)) {
            tracing::error!(
                device = &**name,
                %panic,
                "a bug in the exporter: reading the device panicked; it is opened again at each look; please \
                 report it"
            );
        }
        if !self.readers.iter().any(|reader| reader.name() == name) {
            self.closed.insert(Arc::clone(name), reader.silent());
        }
    }

    /// The names of all devices. A host on which no RDMA module is loaded has no such directory; one without
    /// the sysfs that was named is not what the settings say.
    fn list(&self) -> Result<Vec<String>, String> {
        let class = self.sysfs.join("class/infiniband");
        match Directory::open(&class).and_then(|class| class.names()) {
            Ok(names) => Ok(names),
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                let root = std::fs::metadata(&self.sysfs);
                root.map(|_| Vec::new()).map_err(|error| {
                    let root = self.sysfs.display();
                    format!(
                        "--path.sysfs {root}: {error}: name the directory where sysfs is mounted"
                    )
                })
            }
            Err(error) if error.kind() == io::ErrorKind::PermissionDenied => Err(format!(
                "{}: {error}: let the user that the exporter runs as list this directory",
                class.display()
            )),
            Err(error) => Err(format!("{}: {error}", class.display())),
        }
    }

    /// Finds out which devices there are. One that is left out is known by its name alone.
    fn find(&mut self) {
        let names = match self.list() {
            Ok(names) => names,
            // Not to know who is there is no reason to let go of anybody.
            Err(problem) => {
                self.problem = Some(problem);
                return;
            }
        };
        self.problem = None;
        let here = |name: &str| names.iter().any(|here| here == name);
        self.readers.retain(|reader| here(reader.name()) && reader.is_here());
        self.away.retain(|name, _| here(name));
        self.closed.retain(|name, _| here(name));
        self.panicked.retain(|name| here(name));
        let class = self.sysfs.join("class/infiniband");
        let is_left_out = |name: &&String| !self.selection.has(name) && class.join(name).is_dir();
        self.left_out = names.iter().filter(is_left_out).count();
        for name in &names {
            let known = self.away.contains_key(&**name)
                || self.readers.iter().any(|reader| **reader.name() == **name);
            if known || !self.selection.has(name) {
                continue;
            }
            match DeviceReader::open(&self.sysfs, name) {
                Ok(reader) => {
                    self.closed.remove(&**name);
                    self.readers.push(reader);
                }
                // A file beside the devices, which are directories.
                Err(error) if error.kind() == io::ErrorKind::NotADirectory => {}
                Err(error) => {
                    if !self.closed.contains_key(&**name) {
                        let directory = self.sysfs.join("class/infiniband").join(name);
                        let directory = directory.display();
                        tracing::warn!(device = name, %directory, %error, "the device cannot be opened");
                    }
                    let name: Arc<str> = name.as_str().into();
                    self.closed.insert(Arc::clone(&name), device::closed(name));
                }
            }
        }
    }
}

#[cfg(test)]
mod tests;
