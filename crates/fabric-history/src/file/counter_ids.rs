//! The ids of counters in a file.

use rusqlite::Connection;

use crate::file::frame::{Entry, Frame};
use crate::file::sql::Sql;
use crate::{MOST_COUNTERS, OutOfIds};
use ib_mad::Counter;
use ib_mad::counter::{COUNT, TABLE, scaled};

// A frame has one bit per counter that shows which values it contains.
const _: () = assert!(COUNT <= MOST_COUNTERS as usize && MOST_COUNTERS as u32 == u64::BITS);

/// The ids of counters in a file: once assigned they stay, even if our own table changes.
#[derive(Clone, Debug)]
pub(crate) struct CounterIds {
    ours: [Option<Counter>; MOST_COUNTERS as usize],
    theirs: [Option<u8>; COUNT],
}

impl CounterIds {
    /// Reads the ids that a file has; an error if one of ours has an id for which a frame has no bit.
    pub fn read(db: &Connection) -> rusqlite::Result<Self> {
        let mut ids = CounterIds { ours: [None; MOST_COUNTERS as usize], theirs: [None; COUNT] };
        for (id, name) in Sql(db).counters()? {
            let Some(row) = TABLE.iter().find(|row| row.ibta == name) else { continue };
            let number = u8::try_from(id).map_err(|_| OutOfIds::Counters(id).in_sql())?;
            let ours = ids.ours.get_mut(usize::from(number));
            *ours.ok_or_else(|| OutOfIds::Counters(id).in_sql())? = Some(row.counter);
            ids.theirs[row.counter as usize] = Some(number);
        }
        Ok(ids)
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counter_id_above_63_is_an_error() {
        for number in [64, 65, 127, 255, 256] {
            let db = Connection::open_in_memory().unwrap();
            let counters =
                "CREATE TABLE counters (id INTEGER PRIMARY KEY, name TEXT NOT NULL UNIQUE)";
            db.execute_batch(counters).unwrap();
            let add = "INSERT INTO counters VALUES (?1, ?2)";
            db.execute(add, rusqlite::params![number, TABLE[0].ibta]).unwrap();
            assert!(CounterIds::read(&db).is_err(), "{number}");
            db.execute("UPDATE counters SET id = 63", []).unwrap();
            assert_eq!(CounterIds::read(&db).unwrap().number(TABLE[0].counter), Some(63));
        }
    }
}
