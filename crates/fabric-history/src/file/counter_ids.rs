//! The ids of counters in a file.

use rusqlite::Connection;

use crate::{MOST_COUNTERS, OutOfIds};
use ib_mad::counter::{COUNT, TABLE, scaled};
use ib_mad::{Counter, Guid};

use super::frame::{Entry, Frame};
use super::sql::Sql;

// A frame has one bit per counter that shows which values it contains.
const _: () = assert!(COUNT <= MOST_COUNTERS as usize && MOST_COUNTERS as u32 == u64::BITS);

/// The ids of counters in a file: once assigned they stay, even if our own table changes.
#[derive(Clone, Debug)]
pub struct CounterIds {
    ours: [Option<Counter>; MOST_COUNTERS as usize],
    theirs: [Option<u8>; COUNT],
}

impl CounterIds {
    /// From each counter's number in the file.
    pub fn new(numbers: impl IntoIterator<Item = (Counter, u8)>) -> Self {
        let mut all = CounterIds { ours: [None; MOST_COUNTERS as usize], theirs: [None; COUNT] };
        for (counter, number) in numbers {
            if let Some(place) = all.ours.get_mut(usize::from(number)) {
                *place = Some(counter);
                all.theirs[counter as usize] = Some(number);
            }
        }
        all
    }

    /// Reads the ids that a file has; an error if one of ours has an id for which a frame has no bit.
    pub fn read(db: &Connection) -> rusqlite::Result<Self> {
        let mut given = Vec::new();
        for (number, name) in Sql(db).counters()? {
            let Some(counter) = of_name(&name) else { continue };
            let fits = u8::try_from(number).ok().filter(|number| *number < MOST_COUNTERS);
            given.push((counter, fits.ok_or_else(|| OutOfIds::Counters(number).in_sql())?));
        }
        Ok(Self::new(given))
    }

    /// The counter that has a number; `None` if a newer version gave it.
    pub fn counter(&self, number: u8) -> Option<Counter> {
        self.ours.get(usize::from(number)).copied().flatten()
    }

    /// A counter's number; `None` if the file is older than the counter.
    pub fn number(&self, counter: Counter) -> Option<u8> {
        self.theirs[counter as usize]
    }

    /// The values of an entry in the counters' units; counters of a later version are skipped.
    pub fn values<'a>(
        &'a self,
        frame: &'a Frame,
        entry: &Entry,
    ) -> impl Iterator<Item = (Counter, u64)> + use<'a> {
        frame.values(entry).filter_map(|(number, by)| {
            let counter = self.counter(number)?;
            Some((counter, scaled(by, counter.row().scale)))
        })
    }

    /// The counters of an entry in the order of frames: the lowest id first.
    pub fn in_order(&self) -> impl Iterator<Item = (u8, Counter)> + '_ {
        (0..MOST_COUNTERS).filter_map(|number| Some((number, self.counter(number)?)))
    }
}

fn of_name(name: &str) -> Option<Counter> {
    TABLE.iter().find(|row| row.ibta == name).map(|row| row.counter)
}

/// A GUID as the file stores it: its 64 bits.
pub(crate) fn guid_bits(guid: Guid) -> i64 {
    guid.0.cast_signed()
}
