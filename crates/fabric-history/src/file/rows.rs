//! The rows in which counters stand: each sweep's frames, and what was made of an hour of them.

use std::collections::{HashMap, HashSet};
use std::ops::RangeInclusive;
use std::time::{Duration, SystemTime};

use rusqlite::params;

use crate::model::Window;
use crate::{micros_of, time_of};
use ib_mad::Counter;
use ib_mad::counter::scaled;

use super::digest::{Digest, Span};
use super::frame::{Entry, Frame};
use super::reader::Reader;
use super::tier::Tier;

/// No sweep takes as long, in microseconds: what was begun so long before a window is not in it.
const LONGEST: i64 = 3_600_000_000;

/// Sweeps that are digested together.
#[derive(Clone, Debug)]
pub(super) struct Hour {
    /// Its number in the file.
    pub id: i64,
    pub fabric: i64,
    /// When its first sweep was begun, and its last.
    pub sweeps: RangeInclusive<i64>,
    pub ended: i64,
    /// When the first sweep with traffic was begun.
    pub traffic: Option<i64>,
    pub count: usize,
    /// The number of its last sweep in the file.
    pub last: i64,
}

impl Hour {
    /// Whether a sweep is one of it. One that was written later is not, though the clock was set back
    /// into this hour.
    fn has(&self, fabric: i64, began: i64, sweep: Option<i64>) -> bool {
        self.fabric == fabric
            && self.sweeps.contains(&began)
            && sweep.is_none_or(|sweep| sweep <= self.last)
    }
}

/// A port's part of a sweep, told: which sweep it is of, and where its values are.
pub(crate) type See<'a> = dyn FnMut(Span, &Frame, &Entry) + 'a;

/// When a port was read before, and when it was: to the millisecond, as whoever is told by HTTP has it.
pub(crate) fn between(span: Span, entry: &Entry) -> (SystemTime, SystemTime) {
    let after = Duration::from_millis(entry.after.into());
    let read = |micros: i64| time_of(micros - micros.rem_euclid(1000)) + after;
    (read(span.since), read(span.began))
}

impl Reader {
    /// What of a window is digested, the earliest first.
    pub(super) fn hours(&self, window: Window) -> rusqlite::Result<Vec<Hour>> {
        let mut statement = self.db.prepare(
            "SELECT id, fabric, first, began, ended, traffic, sweeps, last FROM spans
             WHERE ended >= ?1 AND first <= ?2 ORDER BY id",
        )?;
        let hour = |row: &rusqlite::Row<'_>| {
            Ok(Hour {
                id: row.get(0)?,
                fabric: row.get(1)?,
                sweeps: row.get(2)?..=row.get(3)?,
                ended: row.get(4)?,
                traffic: row.get(5)?,
                count: row.get::<_, u32>(6)? as usize,
                last: row.get(7)?,
            })
        };
        statement.query_map((micros_of(window.from), micros_of(window.to)), hour)?.collect()
    }

    /// Goes through the digests of some hours, of one part or of all; tells of which hours there were
    /// any that can be read. `ports` are those that are wanted; none are all.
    pub(super) fn digested(
        &self,
        tier: Tier,
        hours: &[Hour],
        part: Option<u32>,
        ports: &[u32],
        see: &mut See<'_>,
    ) -> rusqlite::Result<HashSet<i64>> {
        let (Some(first), Some(last)) = (hours.first(), hours.last()) else {
            return Ok(HashSet::new());
        };
        let bases: HashMap<i64, i64> =
            hours.iter().map(|hour| (hour.id, *hour.sweeps.start())).collect();
        let mut statement = self.db.prepare(match part {
            Some(_) => {
                "SELECT span, data FROM digests WHERE tier = ?1 AND part = ?4
                        AND span BETWEEN ?2 AND ?3 ORDER BY span"
            }
            None => {
                "SELECT span, data FROM digests WHERE tier = ?1
                     AND span BETWEEN ?2 AND ?3 AND ?4 IS NULL ORDER BY span"
            }
        })?;
        let mut found = HashSet::new();
        let mut rows = statement.query(params![tier as u8, first.id, last.id, part])?;
        while let Some(row) = rows.next()? {
            let hour = row.get(0)?;
            let Some(base) = bases.get(&hour) else { continue };
            let Ok(digest) = Digest::unpack(row.get_ref(1)?.as_blob()?, *base) else { continue };
            found.insert(hour);
            let one = |port: &u32| Some(*port);
            let all: Vec<Option<u32>> =
                if ports.is_empty() { vec![None] } else { ports.iter().map(one).collect() };
            for port in all {
                for (span, entry) in digest.readings(port) {
                    see(span, digest.frame(), entry);
                }
            }
        }
        Ok(found)
    }

    /// Goes through the frames of a window, of one part with those that are of all, or of those that
    /// are of all; but for those of some hours. `ports` are those that are wanted; none are all.
    pub(super) fn framed(
        &self,
        tier: Tier,
        window: Window,
        part: Option<u32>,
        but: &[&Hour],
        ports: &[u32],
        see: &mut See<'_>,
    ) -> rusqlite::Result<()> {
        let mut statement = self.db.prepare(
            "SELECT fabric, began, data, (SELECT since FROM sweeps
                 WHERE sweeps.fabric = frames.fabric AND sweeps.began = frames.began),
                 (SELECT rowid FROM sweeps
                 WHERE sweeps.fabric = frames.fabric AND sweeps.began = frames.began)
             FROM frames WHERE tier = ?1 AND part IS ?2 AND began BETWEEN ?3 AND ?4 AND ended >= ?5
             ORDER BY began",
        )?;
        let (from, to) = (micros_of(window.from), micros_of(window.to));
        for part in std::iter::once(None).chain(part.map(Some)) {
            let mut rows = statement.query(params![tier as u8, part, from - LONGEST, to, from])?;
            while let Some(row) = rows.next()? {
                let (fabric, began): (i64, i64) = (row.get(0)?, row.get(1)?);
                let sweep = row.get(4)?;
                if but.iter().any(|hour| hour.has(fabric, began, sweep)) {
                    continue;
                }
                let wanted = |port: u32| ports.is_empty() || ports.contains(&port);
                let frame = Frame::unpack_of(row.get_ref(2)?.as_blob()?, wanted);
                let Ok(frame) = frame else { continue };
                let since = row.get::<_, Option<i64>>(3)?.unwrap_or(began);
                for entry in frame.entries() {
                    see(Span { since, began }, &frame, entry);
                }
            }
        }
        Ok(())
    }

    /// What an entry says, in the counters' units; what a later version counts is passed over.
    pub(crate) fn values<'a>(
        &'a self,
        frame: &'a Frame,
        entry: &Entry,
    ) -> impl Iterator<Item = (Counter, u64)> + use<'a> {
        frame.values(entry).filter_map(|(number, by)| {
            let counter = self.numbers.counter(number)?;
            Some((counter, scaled(by, counter.row().scale)))
        })
    }
}
