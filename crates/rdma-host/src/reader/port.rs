//! Reads a port of a device.

use std::io;

use crate::model::cm::{CmReading, GROUPS, MESSAGES};
use crate::model::{HwName, HwReading, Port, hw_counter};
use ib_mad::{Counter, PortNumber, Reading};

use super::ReadContext;
use super::backoff::{Attempt, BackoffFile};
use super::counters::Counters;
use super::netdev::{NetdevReader, Owner};
use super::sysfs::Directory;
use super::value;

/// Reads a port.
#[derive(Debug)]
pub(super) struct PortReader {
    number: PortNumber,
    directory: Directory,
    state: StateFiles,
    /// Of `counters_ext`, the 64-bit ones of mlx4 in old kernels, and of `counters`.
    counters: Vec<Counters<Counter>>,
    hw: Option<HwReader>,
    /// The counters of the connection manager, by group and message.
    cm: Vec<Counters<(usize, usize)>>,
    netdevs: Vec<NetdevReader>,
}

/// A file with the state of a port.
#[derive(Clone, Copy)]
enum StateFile {
    State,
    PhysicalState,
    Rate,
    LinkLayer,
    Lid,
    SmLid,
}

/// The names of those files, in the order of [`StateFile`].
const STATE_FILES: [&str; 6] = ["state", "phys_state", "rate", "link_layer", "lid", "sm_lid"];

/// The files with the state of a port. Old kernels do not have all of them.
#[derive(Debug)]
struct StateFiles([Option<BackoffFile>; STATE_FILES.len()]);

impl StateFiles {
    fn new(names: &[String]) -> Self {
        let has = |file: &str| names.iter().any(|name| name == file);
        StateFiles(STATE_FILES.map(|file| BackoffFile::new(file).filter(|_| has(file))))
    }

    /// Reads and parses a file; `None` if there is none.
    fn read<T>(
        &mut self,
        file: StateFile,
        directory: &Directory,
        attempt: Attempt,
        parse: impl FnOnce(&str) -> Option<T>,
    ) -> io::Result<Option<T>> {
        self.0[file as usize].as_mut().map_or(Ok(None), |file| file.read(directory, attempt, parse))
    }

    fn failed(&self) -> usize {
        self.0.iter().flatten().filter(|file| file.has_failed()).count()
    }

    fn reset_backoff(&mut self) {
        self.0.iter_mut().flatten().for_each(BackoffFile::reset_backoff);
    }
}

impl PortReader {
    /// Opens a port and lists its counters; `None` if its directory is empty or cannot be listed.
    pub(super) fn open(directory: Directory, number: PortNumber) -> Option<Self> {
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
        let (hw, state) = (HwReader::open(&directory), StateFiles::new(&names));
        let (cm, netdevs) = (Vec::new(), Vec::new());
        Some(PortReader { number, directory, state, counters, hw, cm, netdevs })
    }

    /// Opens the counters of the connection manager, whose module may be loaded later than the device's.
    pub(super) fn open_cm(&mut self) {
        if self.cm.is_empty() {
            let groups = GROUPS.iter().enumerate().filter_map(|(group, row)| {
                let directory = self.directory.open_below(row.directory).ok()?;
                let message = |file: &str| MESSAGES.iter().position(|message| *message == file);
                Some(Counters::open(directory, |file| Some((group, message(file)?))))
            });
            self.cm = groups.collect();
        }
    }

    /// Opens the network interfaces that are on the port now, and closes the others.
    pub(super) fn open_netdevs(&mut self, owner: &Owner<'_>) {
        let layer = self.directory.text("link_layer");
        let names = owner.netdevs_of(&self.directory, self.number, &layer);
        self.netdevs.retain(|netdev| {
            names.iter().any(|name| name == netdev.name()) && netdev.exists(owner)
        });
        for name in names {
            if !self.netdevs.iter().any(|netdev| netdev.name() == name) {
                self.netdevs.extend(NetdevReader::open(owner, &name));
            }
        }
    }

    /// Lets the next read read the state, whether or not it is backing off.
    pub(super) fn reset_backoff(&mut self) {
        self.state.reset_backoff();
    }

    /// Reads the port, and returns whether its device may have been removed. What cannot be read is `None`.
    pub(super) fn read(&mut self, context: &ReadContext) -> (Port, bool) {
        // Taken before the state is read, so that an event that comes meanwhile is newer.
        let attempt = context.attempt();
        let at = attempt.now;
        let (files, directory) = (&mut self.state, &self.directory);
        let state = files.read(StateFile::State, directory, attempt, value::state);
        let may_be_removed = state.as_ref().is_err_and(is_removed);
        let physical_state =
            files.read(StateFile::PhysicalState, directory, attempt, value::physical_state);
        let rate = files.read(StateFile::Rate, directory, attempt, value::rate);
        let rate = rate.ok().flatten().unwrap_or_default();
        let non_empty = |text: &str| Some(text.to_owned()).filter(|text| !text.is_empty());
        let link_layer = files.read(StateFile::LinkLayer, directory, attempt, non_empty);
        let mut lid =
            |file| files.read(file, directory, attempt, value::lid).ok().flatten().flatten();
        let (lid, sm_lid) = (lid(StateFile::Lid), lid(StateFile::SmLid));
        let mut reading = Reading::empty(at);
        for counters in &mut self.counters {
            counters.read(attempt, |counter, value| {
                reading.set(counter, value);
                if counter.may_be_saturated(value) {
                    reading.set_stuck(counter);
                }
            });
        }
        reading.at = context.clock.now();
        let mut cm = CmReading::default();
        for counters in &mut self.cm {
            counters.read(attempt, |(group, message), value| cm[group][message] = Some(value));
        }
        let port = Port {
            number: self.number,
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

    /// How many of its files failed at their latest read.
    pub(super) fn failed(&self) -> usize {
        let hw = self.hw.as_ref().map_or(0, HwReader::failed);
        let cm: usize = self.cm.iter().map(Counters::failed).sum();
        self.counters.iter().map(Counters::failed).sum::<usize>() + hw + cm + self.state.failed()
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
pub(super) struct HwReader {
    names: std::sync::Arc<[HwName]>,
    counters: Counters<usize>,
}

impl HwReader {
    /// Lists the counters of a port or device; `None` if it has no `hw_counters`.
    pub(super) fn open(parent: &Directory) -> Option<Self> {
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

    /// Reads all counters.
    pub(super) fn read(&mut self, attempt: Attempt) -> HwReading {
        let mut values = vec![None; self.names.len()];
        self.counters.read(attempt, |index, value| values[index] = Some(value));
        HwReading { names: self.names.clone(), values }
    }

    /// How many counters failed at their latest read.
    pub(super) fn failed(&self) -> usize {
        self.counters.failed()
    }
}
