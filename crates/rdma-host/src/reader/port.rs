//! Reads a port of a device.

use std::io;
use std::path::Path;

use crate::model::cm::{CmReading, GROUPS, MESSAGES};
use crate::model::{Port, PortKind};
use ib_mad::{Counter, PortNumber, Reading};

use super::access::CounterAccess;
use super::backoff::{Attempt, BackoffFile, Failure};
use super::counters::{Counters, backing_off};
use super::hw::HwReader;
use super::kept::KeepingDirectory;
use super::netdev::{self, NetdevReader, Owner};
use super::options::ReadContext;
use super::sysfs::{self, Directory};

#[derive(Debug)]
pub(super) struct PortReader {
    pub number: PortNumber,
    directory: KeepingDirectory,
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
    pub fn open(directory: Directory, number: PortNumber) -> Option<Self> {
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
        let directory = KeepingDirectory::new(directory);
        Some(PortReader { number, directory, state, counters, hw, cm, netdevs })
    }

    /// Whether it is still the port of this path.
    pub fn is_at(&self, path: &Path) -> bool {
        self.directory.directory.is_at(path)
    }

    /// Lets the next read read the state, even if it is backing off.
    pub fn refresh(&mut self) {
        self.state.iter_mut().for_each(BackoffFile::reset_backoff);
    }

    /// Opens the counters of the connection manager, whose module may be loaded later than the device's.
    pub fn open_cm(&mut self) {
        if self.cm.is_empty() {
            let groups = GROUPS.iter().enumerate().filter_map(|(group, row)| {
                let directory = self.directory.directory.open_below(row.directory).ok()?;
                let message = |file: &str| MESSAGES.iter().position(|message| *message == file);
                Some(Counters::open(directory, |file| Some((group, message(file)?))))
            });
            self.cm = groups.collect();
        }
    }

    /// The interface of RoCE, by its first GID.
    pub fn netdev_by_gid(&self) -> Option<String> {
        netdev::by_gid(&self.directory.directory)
    }

    pub fn open_netdevs(&mut self, owner: &Owner<'_>) {
        let directory = &self.directory.directory;
        let layer = directory.text("link_layer");
        let names = owner.netdevs_of(directory, self.number, &layer);
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
        attempt: Attempt<'_>,
        parse: impl FnOnce(&str) -> Option<T>,
    ) -> io::Result<Option<T>> {
        let file = self.state.iter_mut().find(|file| file.name() == name);
        file.map_or(Ok(None), |file| file.read(&self.directory, attempt, parse))
    }

    /// Reads the port, and returns whether it may have been removed. What cannot be read is `None`.
    pub fn read(&mut self, access: &CounterAccess, context: &ReadContext) -> (Port, bool) {
        // Taken before the state is read, so that an event that comes meanwhile is newer.
        let attempt = context.attempt();
        let at = attempt.now;
        self.directory.look();
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
            counters.read(attempt, access, |counter, value| {
                reading.set(counter, value);
                if counter.may_be_saturated(value) {
                    reading.saturated.insert(counter);
                }
            });
        }
        reading.at = context.time.now();
        let (mut cm, in_memory) = (CmReading::default(), CounterAccess::granted());
        for counters in &mut self.cm {
            counters.read(attempt, &in_memory, |(group, message), value| {
                cm[group][message] = Some(value);
            });
        }
        let is_representor = self.netdevs.iter().any(|netdev| netdev.is_representor);
        let port = Port {
            number: self.number,
            kind: if is_representor { PortKind::Representor } else { PortKind::Physical },
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
            hw: self.hw.as_mut().map(|hw| hw.read(attempt, access)).unwrap_or_default(),
            cm: (!self.cm.is_empty()).then(|| Box::new(cm)),
            netdevs: self.netdevs.iter_mut().map(|netdev| netdev.read(attempt)).collect(),
        };
        (port, may_be_removed)
    }

    /// How many files gave no value at their latest read.
    pub fn failed(&self) -> usize {
        let hw = self.hw.as_ref().map_or(0, |hw| hw.counters.failed());
        let cm: usize = self.cm.iter().map(Counters::failed).sum();
        let counters: usize = self.counters.iter().map(Counters::failed).sum();
        counters + hw + cm + self.state.iter().filter(|file| file.has_failed()).count()
    }

    /// The files that are backing off, and why; without counters that are not read at all.
    pub fn backing_off(
        &self,
        access: &CounterAccess,
    ) -> impl Iterator<Item = (&Directory, &str, Failure)> {
        let state = self.state.iter().filter_map(|file| backing_off(&self.directory, file));
        let hw = self.hw.iter().flat_map(|hw| hw.counters.backing_off());
        let counters = self.counters.iter().flat_map(Counters::backing_off).chain(hw);
        let cm = self.cm.iter().flat_map(Counters::backing_off);
        state.chain(counters.filter(|_| !access.is_refused())).chain(cm)
    }
}

/// Whether an error says that the port has been removed: its directory is not found any more, or a file
/// of it that was just opened is dead. Or its device has no network interface at present: ports of iWARP and soft
/// RoCE return ENODEV then (kernel: `iw_query_port`).
fn is_removed(error: &io::Error) -> bool {
    matches!(error.raw_os_error(), Some(libc::ENOENT | libc::ENODEV | libc::ENXIO))
}
