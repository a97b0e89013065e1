//! What the counters of a sweep have grown by, as it is written.

use rusqlite::{Transaction, params};

use crate::OutOfNumbers;
use crate::file::frame::Frame;
use crate::file::ledger::Ledger;
use crate::file::tier::{Tier, part_of};
use ib_fabric::Snapshot;
use ib_mad::Counter;

use super::catalog::Places;

/// What the counters of a sweep have grown by, by tier; traffic, and what is new, by part.
#[derive(Default)]
pub struct Grown {
    rare: Frame,
    busy: Vec<Frame>,
    first: Vec<Frame>,
    any_first: bool,
}

/// So many of a part's ports are not held any longer when another part's begin.
const MANY: usize = 256;

/// A sweep as its rows have it: its fabric, and when it was begun and ended.
#[derive(Clone, Copy)]
pub struct Sweep {
    /// The fabric's number.
    pub fabric: i64,
    /// In microseconds since 1970.
    pub began: i64,
    /// Likewise.
    pub ended: i64,
}

impl Grown {
    /// Compares a sweep with what was written last, and takes it down. Of much that is new, as with
    /// the first sweep, it writes what it can on the way: of 60,000 ports that is 20 MB.
    pub fn take(
        db: &Transaction<'_>,
        sweep: Sweep,
        ledger: &mut Ledger,
        places: &Places,
        snapshot: &Snapshot,
        number: impl Fn(Counter) -> Option<u8>,
    ) -> rusqlite::Result<Self> {
        let mut grown = Grown::default();
        let mut last = 0;
        let [mut rare, mut busy, mut first] = [const { Vec::<(u8, u64)>::new() }; 3];
        for (&port, reading) in places.ports.iter().zip(&snapshot.readings) {
            let Some(reading) = reading else { continue };
            let totals = ledger.port(places.fabric, port);
            for counter in Counter::all() {
                let Some((number, total)) = number(counter).zip(reading.get(counter)) else {
                    continue;
                };
                let (of, value) = match totals.get(counter) {
                    Some(last) if last == total => continue,
                    Some(last) if last < total && Tier::of(counter) == Tier::Rare => {
                        (&mut rare, total - last)
                    }
                    Some(last) if last < total => (&mut busy, total - last),
                    // Never seen, or begun anew: of what it came to before nobody told the judge.
                    _ => (&mut first, total),
                };
                of.push((number, value));
                totals.set(counter, total);
            }
            let after = reading.at.since(snapshot.began);
            let part = part_of(port) as usize;
            if std::mem::replace(&mut last, part) != part
                && let Some(done) = grown.first.iter_mut().find(|it| it.entries().len() >= MANY)
            {
                let part = done.entries().first().map(|entry| part_of(entry.port));
                grown.any_first |= insert(db, sweep, Tier::First, part, done)?;
                *done = Frame::default();
            }
            rare.sort_unstable();
            grown.rare.push(port, after, rare.drain(..));
            for (values, parts) in [(&mut busy, &mut grown.busy), (&mut first, &mut grown.first)] {
                if !values.is_empty() && parts.len() <= part {
                    parts.resize_with(part + 1, Frame::default);
                }
                values.sort_unstable();
                if let Some(frame) = parts.get_mut(part) {
                    frame.push(port, after, values.drain(..));
                }
            }
        }
        Ok(grown)
    }

    /// Writes it, and tells of how many tiers there was anything.
    pub fn write(&self, db: &Transaction<'_>, sweep: Sweep) -> rusqlite::Result<u64> {
        let mut written = u64::from(insert(db, sweep, Tier::Rare, None, &self.rare)?);
        let parts = [(Tier::First, &self.first, self.any_first), (Tier::Busy, &self.busy, false)];
        for (tier, parts, mut any) in parts {
            for (part, frame) in (0..).zip(parts) {
                any |= insert(db, sweep, tier, Some(part), frame)?;
            }
            written += u64::from(any);
        }
        Ok(written)
    }
}

/// Tells whether there was anything to put in.
pub fn insert(
    db: &Transaction<'_>,
    sweep: Sweep,
    tier: Tier,
    part: Option<u32>,
    frame: &Frame,
) -> rusqlite::Result<bool> {
    if frame.is_empty() {
        return Ok(false);
    }
    let packed = frame.pack().map_err(unpackable)?;
    let Sweep { fabric, began, ended } = sweep;
    db.prepare_cached(
        "INSERT INTO frames (fabric, tier, part, began, ended, data) VALUES (?1, ?2, ?3, ?4, ?5, ?6)",
    )?
    .execute(params![fabric, tier as u8, part, began, ended, packed])?;
    Ok(true)
}

/// As what SQLite fails by.
pub fn unpackable(error: std::io::Error) -> rusqlite::Error {
    let error = match error.downcast::<OutOfNumbers>() {
        Ok(numbers) => return numbers.in_sql(),
        Err(error) => error,
    };
    rusqlite::Error::ToSqlConversionFailure(Box::new(error))
}
