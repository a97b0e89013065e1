//! A port of a device.

use std::io;
use std::time::Duration;

use crate::fabric::host::{HwName, HwReading, Port, hw_counter};
use crate::fabric::{Counter, Moment, PortNumber, Reading};

use super::Looking;
use super::counters::Counters;
use super::file::{Buffer, Directory};
use super::netdev::{NetdevReader, Owner};
use super::value;

/// Reads a port.
#[derive(Debug)]
pub(super) struct PortReader {
    number: PortNumber,
    directory: Directory,
    /// `counters`, and then the wider `counters_ext` of the mlx4 of old kernels, which wins.
    counters: Vec<Counters<Counter>>,
    hw: Option<HwReader>,
    netdevs: Vec<NetdevReader>,
}

impl PortReader {
    /// Opens a port and looks what it has.
    pub(super) fn open(directory: Directory, number: PortNumber) -> Self {
        let counters = ["counters", "counters_ext"]
            .into_iter()
            .filter_map(|name| directory.below(name).ok())
            .map(|directory| Counters::find(directory, Counter::from_file))
            .collect();
        let hw = HwReader::open(&directory);
        PortReader { number, directory, counters, hw, netdevs: Vec::new() }
    }

    /// Looks which network interfaces are on it now.
    pub(super) fn find_netdevs(&mut self, owner: &Owner<'_>) {
        let layer = self.directory.text("link_layer");
        let names = owner.netdevs_of(&self.directory, self.number, &layer);
        if !self.netdevs.iter().map(NetdevReader::name).eq(names.iter().map(String::as_str)) {
            self.netdevs =
                names.iter().filter_map(|name| NetdevReader::open(owner, name).ok()).collect();
        }
    }

    /// Reads it. Fails when it is not there any more; whatever else refuses is left out.
    pub(super) fn read(&mut self, looking: &Looking) -> io::Result<Port> {
        let mut buffer = Buffer::new();
        // Before the state, so that an event that comes while it is read counts as later.
        let at = looking.clock.now();
        let state = match self.directory.read(c"state", &mut buffer) {
            Ok(text) => value::state(text),
            Err(error) if is_gone(&error) => return Err(error),
            Err(_) => None,
        };
        let mut text = |name| self.directory.read(name, &mut buffer).ok().map(str::to_owned);
        let rate = text(c"rate").and_then(|text| value::rate(&text)).unwrap_or_default();
        let physical_state = text(c"phys_state").and_then(|text| value::state(&text));
        let link_layer = text(c"link_layer").unwrap_or_default();
        let lid = text(c"lid").and_then(|text| value::lid(&text));
        let sm_lid = text(c"sm_lid").and_then(|text| value::lid(&text));
        let mut reading = Reading::empty(at);
        for counters in &mut self.counters {
            counters.read(at, looking.rest, |counter, value| reading.set(counter, value));
        }
        reading.at = looking.clock.now();
        Ok(Port {
            number: self.number,
            at,
            link_layer,
            state,
            physical_state,
            rate: rate.bytes_per_second,
            width: rate.width,
            speed: rate.speed,
            lid,
            sm_lid,
            reading,
            hw: self.hw.as_mut().map(|hw| hw.read(at, looking.rest)).unwrap_or_default(),
            netdevs: self.netdevs.iter_mut().map(NetdevReader::read).collect(),
        })
    }

    /// How many of its files are left alone.
    pub(super) fn refused(&self) -> usize {
        let hw = self.hw.as_ref().map_or(0, HwReader::refused);
        self.counters.iter().map(Counters::refused).sum::<usize>() + hw
    }
}

/// Whether an error says that the device went: its directory is not found any more, or a file of it
/// that was just opened is dead.
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
    pub(super) fn read(&mut self, now: Moment, rest: Duration) -> HwReading {
        let mut values = vec![None; self.names.len()];
        self.counters.read(now, rest, |index, value| values[index] = Some(value));
        HwReading { names: self.names.clone(), values }
    }

    /// How many of them are left alone.
    pub(super) fn refused(&self) -> usize {
        self.counters.refused()
    }
}
