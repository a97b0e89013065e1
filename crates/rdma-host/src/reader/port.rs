//! A port of a device.

use std::io;

use crate::model::cm::{CmReading, GROUPS, MESSAGES};
use crate::model::{HwName, HwReading, Port, hw_counter};
use ib_mad::{Counter, PortNumber, Reading};

use super::Looking;
use super::asked::{Asked, Asking};
use super::counters::Counters;
use super::file::Directory;
use super::netdev::{NetdevReader, Owner};
use super::value;

/// Reads a port.
#[derive(Debug)]
pub(super) struct PortReader {
    number: PortNumber,
    directory: Directory,
    standing: Standing,
    /// The wide `counters_ext` of the mlx4 of old kernels, and `counters`.
    counters: Vec<Counters<Counter>>,
    hw: Option<HwReader>,
    /// Those of the connection manager, by group and message.
    cm: Vec<Counters<(usize, usize)>>,
    netdevs: Vec<NetdevReader>,
}

/// A file that says how it stands with a port.
#[derive(Clone, Copy)]
enum Says {
    State,
    PhysicalState,
    Rate,
    LinkLayer,
    Lid,
    SmLid,
}

/// The names of those files, in the order of [`Says`].
const FILES: [&str; 6] = ["state", "phys_state", "rate", "link_layer", "lid", "sm_lid"];

/// The files that say how it stands with a port. Which of them there are is the kernel's age.
#[derive(Debug)]
struct Standing([Option<Asked>; FILES.len()]);

impl Standing {
    fn of(names: &[String]) -> Self {
        Standing(
            FILES.map(|file| {
                names.iter().any(|name| name == file).then(|| Asked::new(file)).flatten()
            }),
        )
    }

    /// What a file says; nothing, if it is not there.
    fn ask<T>(
        &mut self,
        file: Says,
        directory: &Directory,
        asking: Asking,
        value: impl FnOnce(&str) -> Option<T>,
    ) -> io::Result<Option<T>> {
        self.0[file as usize].as_mut().map_or(Ok(None), |file| file.ask(directory, asking, value))
    }

    fn refused(&self) -> usize {
        self.0.iter().flatten().filter(|file| file.refused()).count()
    }

    fn forgive(&mut self) {
        self.0.iter_mut().flatten().for_each(Asked::forgive);
    }
}

impl PortReader {
    /// Opens a port and looks what it has; `None` if it has nothing.
    pub(super) fn open(directory: Directory, number: PortNumber) -> Option<Self> {
        let names = directory.names().ok().filter(|names| !names.is_empty())?;
        let mut counters = Vec::new();
        // What the wide ones have is not read from the others, not even while they refuse: that
        // would be another number.
        let mut wide = Vec::new();
        for name in ["counters_ext", "counters"] {
            let Ok(directory) = directory.below(name) else { continue };
            let found = Counters::find(directory, |file| {
                Counter::from_file(file).filter(|counter| !wide.contains(counter))
            });
            wide.extend(found.keys());
            counters.push(found);
        }
        let (hw, standing) = (HwReader::open(&directory), Standing::of(&names));
        let (cm, netdevs) = (Vec::new(), Vec::new());
        Some(PortReader { number, directory, standing, counters, hw, cm, netdevs })
    }

    /// Looks for the counters of the connection manager, whose module may be loaded later than the device's.
    pub(super) fn find_cm(&mut self) {
        if self.cm.is_empty() {
            let groups = GROUPS.iter().enumerate().filter_map(|(group, row)| {
                let directory = self.directory.below(row.directory).ok()?;
                let message = |file: &str| MESSAGES.iter().position(|message| *message == file);
                Some(Counters::find(directory, |file| Some((group, message(file)?))))
            });
            self.cm = groups.collect();
        }
    }

    /// Looks which network interfaces are on it now.
    pub(super) fn find_netdevs(&mut self, owner: &Owner<'_>) {
        let layer = self.directory.text("link_layer");
        let names = owner.netdevs_of(&self.directory, self.number, &layer);
        self.netdevs.retain(|netdev| {
            names.iter().any(|name| name == netdev.name()) && netdev.is_here(owner)
        });
        for name in names {
            if !self.netdevs.iter().any(|netdev| netdev.name() == name) {
                self.netdevs.extend(NetdevReader::open(owner, &name));
            }
        }
    }

    /// Lets what says how it stands be asked at once, whatever it said last.
    pub(super) fn forgive(&mut self) {
        self.standing.forgive();
    }

    /// Reads it, and tells whether it may be gone; what refuses is left out.
    pub(super) fn read(&mut self, looking: &Looking) -> (Port, bool) {
        // Before the state, so that an event that comes while it is read counts as later.
        let asking = looking.asking();
        let at = asking.now;
        let (standing, directory) = (&mut self.standing, &self.directory);
        let state = standing.ask(Says::State, directory, asking, value::state);
        let may_be_gone = state.as_ref().is_err_and(is_gone);
        let physical_state =
            standing.ask(Says::PhysicalState, directory, asking, value::physical_state);
        let rate = standing.ask(Says::Rate, directory, asking, value::rate);
        let rate = rate.ok().flatten().unwrap_or_default();
        let whole = |text: &str| Some(text.to_owned()).filter(|text| !text.is_empty());
        let link_layer = standing.ask(Says::LinkLayer, directory, asking, whole);
        let mut lid =
            |file| standing.ask(file, directory, asking, value::lid).ok().flatten().flatten();
        let (lid, sm_lid) = (lid(Says::Lid), lid(Says::SmLid));
        let mut reading = Reading::empty(at);
        for counters in &mut self.counters {
            counters.read(asking, |counter, value| {
                reading.set(counter, value);
                if counter.may_be_saturated(value) {
                    reading.set_stuck(counter);
                }
            });
        }
        reading.at = looking.clock.now();
        let mut cm = CmReading::default();
        for counters in &mut self.cm {
            counters.read(asking, |(group, message), value| cm[group][message] = Some(value));
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
            hw: self.hw.as_mut().map(|hw| hw.read(asking)).unwrap_or_default(),
            cm: (!self.cm.is_empty()).then(|| Box::new(cm)),
            netdevs: self.netdevs.iter_mut().map(|netdev| netdev.read(asking)).collect(),
        };
        (port, may_be_gone)
    }

    /// How many of its files are left alone.
    pub(super) fn refused(&self) -> usize {
        let hw = self.hw.as_ref().map_or(0, HwReader::refused);
        let cm: usize = self.cm.iter().map(Counters::refused).sum();
        self.counters.iter().map(Counters::refused).sum::<usize>()
            + hw
            + cm
            + self.standing.refused()
    }
}

/// Whether an error says that the device went: its directory is not found any more, or a file of it
/// that was just opened is dead. Or it has no network interface at present: iWARP's and soft RoCE's
/// ports answer ENODEV then (kernel: `iw_query_port`).
fn is_gone(error: &io::Error) -> bool {
    matches!(error.raw_os_error(), Some(libc::ENOENT | libc::ENODEV | libc::ENXIO))
}

/// Reads a driver's own counters, of a port or of a device.
#[derive(Debug)]
pub(super) struct HwReader {
    names: std::sync::Arc<[HwName]>,
    counters: Counters<usize>,
}

impl HwReader {
    /// Looks what a port or device has; `None` if it has no `hw_counters`.
    pub(super) fn open(above: &Directory) -> Option<Self> {
        let mut names: Vec<HwName> = Vec::new();
        let counters = Counters::find(above.below("hw_counters").ok()?, |file| {
            // How long the kernel keeps what it read, in ms: a setting, and no counter.
            if file == "lifespan" {
                return None;
            }
            // A row has all spellings of a counter. Should a driver show two of them, the second
            // goes by its own name, or one series would be told twice.
            let row = hw_counter::find(file)
                .filter(|row| !names.iter().any(|name| name.row == Some(*row)));
            names.push(HwName { file: file.into(), row });
            Some(names.len() - 1)
        });
        Some(HwReader { names: names.into(), counters })
    }

    /// Reads them.
    pub(super) fn read(&mut self, asking: Asking) -> HwReading {
        let mut values = vec![None; self.names.len()];
        self.counters.read(asking, |index, value| values[index] = Some(value));
        HwReading { names: self.names.clone(), values }
    }

    /// How many of them are left alone.
    pub(super) fn refused(&self) -> usize {
        self.counters.refused()
    }
}
