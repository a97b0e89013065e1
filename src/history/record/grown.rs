//! What the counters of a sweep have grown by, as it is written.

use rusqlite::{Transaction, params};

use crate::fabric::{Counter, Snapshot};
use crate::history::file::frame::Frame;
use crate::history::file::tier::{Tier, part_of};

use super::catalog::Places;
use super::ledger::Ledger;

/// What the counters of a sweep have grown by, by tier; traffic, and what is new, by part.
#[derive(Default)]
pub struct Grown {
    rare: Frame,
    busy: Vec<Frame>,
    first: Vec<Frame>,
}

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
    /// Compares a sweep with what was written last, and takes it down.
    pub fn take(
        ledger: &mut Ledger,
        places: &Places,
        snapshot: &Snapshot,
        number: impl Fn(Counter) -> u8,
    ) -> Self {
        let mut grown = Grown::default();
        let [mut rare, mut busy, mut first] = [const { Vec::<(u8, u64)>::new() }; 3];
        for (&port, reading) in places.ports.iter().zip(&snapshot.readings) {
            let Some(reading) = reading else { continue };
            let totals = ledger.port(places.fabric, port);
            for counter in Counter::all() {
                let Some(total) = reading.get(counter) else { continue };
                let (of, value) = match totals.get(counter) {
                    Some(last) if last == total => continue,
                    Some(last) if last < total && Tier::of(counter) == Tier::Rare => {
                        (&mut rare, total - last)
                    }
                    Some(last) if last < total => (&mut busy, total - last),
                    // Never seen, or begun anew: of what it came to before nobody told the judge.
                    _ => (&mut first, total),
                };
                of.push((number(counter), value));
                totals.set(counter, total);
            }
            let after = reading.at.since(snapshot.began);
            let part = part_of(port) as usize;
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
        grown
    }

    /// Writes it, and tells of how many tiers there was anything.
    pub fn write(&self, db: &Transaction<'_>, sweep: Sweep) -> rusqlite::Result<u64> {
        let mut written = u64::from(insert(db, sweep, Tier::Rare, None, &self.rare)?);
        for (tier, parts) in [(Tier::First, &self.first), (Tier::Busy, &self.busy)] {
            let mut any = false;
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
    rusqlite::Error::ToSqlConversionFailure(Box::new(error))
}
