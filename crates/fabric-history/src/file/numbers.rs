//! How the file numbers things.

use rusqlite::Connection;

use crate::{MOST_COUNTERS, OutOfNumbers};
use ib_mad::counter::{COUNT, TABLE};
use ib_mad::{Counter, Guid};

// A frame says by one bit a counter which values it has.
const _: () = assert!(COUNT <= MOST_COUNTERS as usize && MOST_COUNTERS as u32 == u64::BITS);

/// What the numbers of counters in a file mean: they are given once and stay, whatever becomes of our
/// own table.
#[derive(Clone, Debug)]
pub struct Numbers {
    ours: [Option<Counter>; MOST_COUNTERS as usize],
    theirs: [Option<u8>; COUNT],
}

impl Numbers {
    /// From each counter's number in the file.
    pub fn new(numbers: impl IntoIterator<Item = (Counter, u8)>) -> Self {
        let mut all = Numbers { ours: [None; MOST_COUNTERS as usize], theirs: [None; COUNT] };
        for (counter, number) in numbers {
            if let Some(place) = all.ours.get_mut(usize::from(number)) {
                *place = Some(counter);
                all.theirs[counter as usize] = Some(number);
            }
        }
        all
    }

    /// The counter that has a number; `None` if a newer version gave it.
    pub fn counter(&self, number: u8) -> Option<Counter> {
        self.ours.get(usize::from(number)).copied().flatten()
    }

    /// A counter's number; `None` if the file is older than the counter.
    pub fn number(&self, counter: Counter) -> Option<u8> {
        self.theirs[counter as usize]
    }

    /// The counters of an entry, as frames want them: the lowest number first.
    pub fn in_order(&self) -> impl Iterator<Item = (u8, Counter)> + '_ {
        (0..MOST_COUNTERS).filter_map(|number| Some((number, self.counter(number)?)))
    }
}

/// The counters' numbers, as far as the file has any; an error if one of ours has a number that no frame
/// has room for.
pub(crate) fn numbers(db: &Connection) -> rusqlite::Result<Numbers> {
    let mut statement = db.prepare("SELECT id, name FROM counters")?;
    let rows =
        statement.query_map([], |row| Ok((row.get::<_, i64>(0)?, row.get::<_, String>(1)?)))?;
    let mut given = Vec::new();
    for row in rows {
        let (number, name) = row?;
        let Some(counter) = of_name(&name) else { continue };
        let fits = u8::try_from(number).ok().filter(|number| *number < MOST_COUNTERS);
        given.push((counter, fits.ok_or_else(|| OutOfNumbers::Counters(number).in_sql())?));
    }
    Ok(Numbers::new(given))
}

fn of_name(name: &str) -> Option<Counter> {
    TABLE.iter().find(|row| row.ibta == name).map(|row| row.counter)
}

/// A GUID as the file has it: its 64 bits.
pub(crate) fn guid_bits(guid: Guid) -> i64 {
    guid.0.cast_signed()
}
