//! Which cable or module is in which port, by serial number, and where each was before. It outlives the exporter in the
//! table `modules`, to which only changes are written.

use std::collections::{BTreeMap, HashSet};
use std::time::{SystemTime, UNIX_EPOCH};

use ib_fabric::Fabric;
use ib_mad::PortKey;
use ib_mad::register::text;

/// How many places of a serial number are known. A cable has two at a time.
const MAX_PLACES: usize = 4;

/// How many serial numbers are known besides those of all ports: a device may report another one each time.
const MAX_FORMER: usize = 10_000;

/// A serial number as text, padded with NULs: 16 bytes without an allocation.
pub type Serial = [u8; 16];

/// A port that reported a serial number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Place {
    /// The port.
    pub end: PortKey,
    /// When it was last reported there, in seconds since 1970.
    pub until: u32,
    /// Whether it has left since, or may have.
    pub has_left: bool,
}

/// A place that is new, that a module has left, or to which it has returned.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PlaceChange {
    /// The serial number.
    pub serial: Serial,
    /// Where it is, or was.
    pub place: Place,
}

/// The places of all modules of a fabric.
#[derive(Debug, Default)]
pub struct ModulePlaces {
    /// The serial number in each port. A tree takes less memory than a hash table, which is half empty on average.
    serials: BTreeMap<PortKey, Serial>,
    places: BTreeMap<Serial, Vec<Place>>,
    /// What was not written yet.
    pub changes: Vec<PlaceChange>,
}

impl ModulePlaces {
    /// Adds the places that an earlier run has written, the oldest first.
    pub fn restore(&mut self, written: impl IntoIterator<Item = PlaceChange>) {
        for PlaceChange { serial, place } in written {
            if !place.has_left {
                self.serials.insert(place.end, serial);
            }
            add(self.places.entry(serial).or_default(), place);
        }
    }

    /// Where a serial number was reported.
    pub fn of(&self, serial: Serial) -> &[Place] {
        self.places.get(&serial).map_or(&[], Vec::as_slice)
    }

    /// A port reports a serial number. Returns the one that it reported before.
    pub fn enter(&mut self, end: PortKey, serial: Serial, until: u32) -> Option<Serial> {
        if self.serials.get(&end).is_some_and(|was| *was != serial) {
            self.leave(end);
        }
        let place = Place { end, until, has_left: false };
        let places = self.places.entry(serial).or_default();
        let known = places.iter_mut().find(|known| known.end == end);
        let before = known.map(|known| std::mem::replace(known, place));
        if before.is_none() {
            add(places, place);
        }
        let is_new = before.is_none_or(|before| before.has_left);
        if is_new {
            self.changes.push(PlaceChange { serial, place });
        }
        self.serials.insert(end, serial)
    }

    /// What a port has may be pulled.
    pub fn leave(&mut self, end: PortKey) {
        let Some(&serial) = self.serials.get(&end) else { return };
        let Some(places) = self.places.get_mut(&serial) else { return };
        if let Some(place) = places.iter_mut().find(|place| place.end == end && !place.has_left) {
            place.has_left = true;
            self.changes.push(PlaceChange { serial, place: *place });
        }
    }

    /// The fabric has other ports.
    pub fn forget_absent(&mut self, fabric: &Fabric) {
        let is_absent = |end: &&PortKey| fabric.find(**end).is_none();
        let absent: Vec<PortKey> = self.serials.keys().filter(is_absent).copied().collect();
        for end in absent {
            self.leave(end);
            self.serials.remove(&end);
        }
    }

    /// Forgets the places of former cables, and changes that could not be written, once there are too many.
    pub fn forget_former(&mut self) {
        let excess = self.changes.len().saturating_sub(2 * self.serials.len() + MAX_FORMER);
        self.changes.drain(..excess);
        if self.places.len() > self.serials.len() + MAX_FORMER {
            let current: HashSet<Serial> = self.serials.values().copied().collect();
            self.places.retain(|serial, _| current.contains(serial));
        }
    }
}

/// Adds a place, and forgets the oldest one if there are too many.
fn add(places: &mut Vec<Place>, place: Place) {
    places.reserve_exact(1);
    places.push(place);
    if places.len() > MAX_PLACES
        && let Some(oldest) = (0..places.len()).min_by_key(|place| places[*place].until)
    {
        places.remove(oldest);
    }
}

/// A serial number as a device reports it. None if it is empty.
pub fn serial(field: &[u8]) -> Option<Serial> {
    let text = text(field);
    let mut serial = Serial::default();
    let bytes = text.as_bytes().get(..text.len().min(serial.len()))?;
    serial[..bytes.len()].copy_from_slice(bytes);
    (!bytes.is_empty()).then_some(serial)
}

/// Whole seconds since 1970.
pub fn unix_seconds(at: SystemTime) -> u32 {
    let since = at.duration_since(UNIX_EPOCH).unwrap_or_default();
    u32::try_from(since.as_secs()).unwrap_or(u32::MAX)
}
