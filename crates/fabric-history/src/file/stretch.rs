//! Growth between two sweeps of a fabric, wherever the file has it: sweep by sweep, or by the hour.

use std::collections::HashSet;
use std::ops::Range;

use rusqlite::{OptionalExtension, params};

use crate::micros_of;
use crate::model::Window;
use ib_mad::Counter;

use super::digest::{Digest, Span};
use super::frame::Frame;
use super::ledger::{self, Ledger};
use super::reader::Reader;
use super::rows::{Hour, See};
use super::tier::{Tier, part_of};

/// From which sweep to which a window is told: hours that are digested are told whole.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Reach {
    /// When the first was begun.
    pub first: i64,
    /// When the last was.
    pub last: i64,
}

/// What grew after one sweep, up to another.
#[derive(Debug)]
pub struct Stretch {
    fabric: i64,
    after: i64,
    to: i64,
    /// Those of which errors are digested.
    hours: Vec<Hour>,
    /// Those of which traffic is told as a whole.
    thinned: Vec<Hour>,
    /// Before this sweep nobody knows what traffic came to.
    floor: i64,
}

impl Stretch {
    /// Whether it is known what traffic came to at a sweep of it.
    pub fn is_traffic_known_at(&self, began: i64) -> bool {
        let is_within = |hour: &Hour| hour.sweeps.contains(&began) && began < *hour.sweeps.end();
        began >= self.floor && !self.thinned.iter().any(is_within)
    }
}

impl Reader {
    /// The fabrics in the file.
    pub(crate) fn fabric_ids(&self) -> rusqlite::Result<Vec<(i64, String)>> {
        let mut statement = self.db.prepare("SELECT id, name FROM fabrics ORDER BY name")?;
        statement.query_map([], |row| Ok((row.get(0)?, row.get(1)?)))?.collect()
    }

    /// The sweeps by which a window is told, from the one that was the latest when it began.
    pub(crate) fn reach(&self, fabric: i64, window: Window) -> rusqlite::Result<Option<Reach>> {
        let (from, to) = (micros_of(window.from), micros_of(window.to));
        let mut ask = self.db.prepare_cached(
            "SELECT coalesce(
                 (SELECT max(began) FROM sweeps WHERE fabric = ?1 AND began <= ?2),
                 (SELECT min(began) FROM sweeps WHERE fabric = ?1 AND began BETWEEN ?2 AND ?3)),
                 (SELECT max(began) FROM sweeps WHERE fabric = ?1 AND began <= ?3)",
        )?;
        let ends = ask.query_row(params![fabric, from, to], |row| {
            Ok(row.get::<_, Option<i64>>(0)?.zip(row.get::<_, Option<i64>>(1)?))
        })?;
        let Some((first, last)) = ends else { return Ok(None) };
        let mut ask = self.db.prepare_cached(
            "SELECT (SELECT min(first) FROM spans WHERE fabric = ?1 AND ?2 BETWEEN first AND began),
                 (SELECT max(began) FROM spans WHERE fabric = ?1 AND ?3 BETWEEN first AND began)",
        )?;
        let whole = ask.query_row(params![fabric, first, last], |row| {
            Ok((row.get::<_, Option<i64>>(0)?, row.get::<_, Option<i64>>(1)?))
        })?;
        Ok(Some(Reach { first: whole.0.unwrap_or(first), last: whole.1.unwrap_or(last) }))
    }

    /// What grew after a sweep, up to another. Traffic is told by the hour where nothing else is
    /// left, or wherever it can be.
    pub(crate) fn stretch(
        &self,
        fabric: i64,
        after: i64,
        to: i64,
        by_the_hour: bool,
    ) -> rusqlite::Result<Stretch> {
        let window = Window { from: std::time::SystemTime::UNIX_EPOCH, to: crate::time_of(to) };
        let mut hours = self.hours(window)?;
        hours.retain(|hour| hour.fabric == fabric && *hour.sweeps.end() > after);
        let full = self.full_from(fabric)?;
        let mut any = self
            .db
            .prepare("SELECT EXISTS (SELECT 1 FROM digests WHERE tier = 1 AND span = ?1)")?;
        let (mut thinned, mut floor) = (Vec::new(), i64::MIN);
        for hour in &hours {
            let Some(first) = hour.traffic else { continue };
            let is_whole = full.is_some_and(|full| full <= first);
            let is_digested = any.query_row([hour.id], |row| row.get(0))?;
            if first > *hour.sweeps.start() {
                floor = floor.max(self.before(fabric, first)?);
            }
            if is_digested && (by_the_hour || !is_whole) {
                thinned.push(hour.clone());
            } else if !is_whole {
                floor = floor.max(*hour.sweeps.end());
            }
        }
        if let Some(full) = full.filter(|full| *full > after) {
            let mut dropped = self.db.prepare(
                "SELECT EXISTS (SELECT 1 FROM sweeps WHERE fabric = ?1 AND began < ?2
                     AND rowid > (SELECT coalesce(max(last), 0) FROM spans WHERE fabric = ?1))",
            )?;
            if dropped.query_row(params![fabric, full], |row| row.get(0))? {
                floor = floor.max(self.before(fabric, full)?);
            }
        }
        Ok(Stretch { fabric, after, to, hours, thinned, floor })
    }

    /// When the sweep before another was begun; the other itself if there was none.
    fn before(&self, fabric: i64, began: i64) -> rusqlite::Result<i64> {
        let mut ask =
            self.db.prepare_cached("SELECT since FROM sweeps WHERE fabric = ?1 AND began = ?2")?;
        let since: Option<Option<i64>> =
            ask.query_row([fabric, began], |row| row.get(0)).optional()?;
        Ok(since.flatten().unwrap_or(began))
    }

    /// Goes through what some ports of one part counted, or all ports.
    pub(crate) fn walk(
        &self,
        stretch: &Stretch,
        tier: Tier,
        ports: Option<&Range<u32>>,
        see: &mut See<'_>,
    ) -> rusqlite::Result<()> {
        let part = ports.map(|ports| part_of(ports.start));
        let is_wanted = |port: u32| ports.is_none_or(|ports| ports.contains(&port));
        let hours = match tier {
            Tier::Rare => &*stretch.hours,
            Tier::Busy => &*stretch.thinned,
            _ => &[],
        };
        let mut digests = self.db.prepare_cached(
            "SELECT data FROM digests WHERE tier = ?1 AND span = ?2 AND part = coalesce(?3, part)",
        )?;
        for hour in hours {
            let mut rows = digests.query(params![tier as u8, hour.id, part])?;
            while let Some(row) = rows.next()? {
                let bytes = row.get_ref(0)?.as_blob()?;
                let Ok(digest) = Digest::unpack(bytes, *hour.sweeps.start()) else { continue };
                for (span, entry) in digest.readings(None) {
                    if is_wanted(entry.port) {
                        see(span, digest.frame(), entry);
                    }
                }
            }
        }
        let told: &[Hour] = if tier == Tier::Busy { &stretch.thinned } else { &[] };
        let told: HashSet<(i64, i64)> =
            told.iter().map(|hour| (*hour.sweeps.start(), *hour.sweeps.end())).collect();
        let is_told =
            |began: i64| told.iter().any(|(first, last)| (first..=last).contains(&&began));
        // A part stands behind its data: to look for it there is to read all of them.
        let which = match part {
            Some(_) => "tier = ?1 AND part IS ?5 AND +fabric = ?2",
            None => "tier = ?1 AND fabric = ?2 AND ?5 IS NULL",
        };
        let mut frames = self.db.prepare_cached(&format!(
            "SELECT began, data, (SELECT since FROM sweeps
                 WHERE sweeps.fabric = frames.fabric AND sweeps.began = frames.began)
             FROM frames WHERE {which} AND began > ?3 AND began <= ?4 ORDER BY began"
        ))?;
        for part in std::iter::once(None).chain(part.map(Some)) {
            let Stretch { fabric, after, to, .. } = stretch;
            let mut rows = frames.query(params![tier as u8, fabric, after, to, part])?;
            while let Some(row) = rows.next()? {
                let began: i64 = row.get(0)?;
                if is_told(began) {
                    continue;
                }
                let Ok(frame) = Frame::unpack_of(row.get_ref(1)?.as_blob()?, is_wanted) else {
                    continue;
                };
                let since = row.get::<_, Option<i64>>(2)?.unwrap_or(began);
                for entry in frame.entries() {
                    see(Span { since, began }, &frame, entry);
                }
            }
        }
        Ok(())
    }

    /// What all counters had come to with a sweep, as far as the file can tell: those that were not
    /// seen yet have no total.
    pub(crate) fn totals_at(&self, fabric: i64, at: i64) -> rusqlite::Result<Ledger> {
        let mut ledger = ledger::latest(&self.db, &self.numbers)?;
        let stretch = self.stretch(fabric, at, i64::MAX, true)?;
        for tier in [Tier::Rare, Tier::Busy] {
            self.walk(&stretch, tier, None, &mut |_, frame, entry| {
                let Some(totals) = ledger.find_mut(entry.port) else { return };
                for (number, by) in frame.values(entry) {
                    if let Some(counter) = self.numbers.counter(number) {
                        totals.undo(counter, by);
                    }
                }
            })?;
        }
        self.walk(&stretch, Tier::First, None, &mut |_, frame, entry| {
            let Some(totals) = ledger.find_mut(entry.port) else { return };
            for (number, _) in frame.values(entry) {
                if let Some(counter) = self.numbers.counter(number) {
                    totals.forget(counter);
                }
            }
        })?;
        if !stretch.is_traffic_known_at(at) {
            for port in 0..ledger.end() {
                let Some(totals) = ledger.find_mut(port) else { continue };
                Counter::all()
                    .filter(|it| Tier::of(*it) == Tier::Busy)
                    .for_each(|it| totals.forget(it));
            }
        }
        Ok(ledger)
    }
}
