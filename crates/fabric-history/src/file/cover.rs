//! What the file knows of a window, and what it does not.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::time::{Duration, SystemTime};

use rusqlite::params;

use crate::model::{Cover, Known, Window};
use crate::{HistoryError, micros_of, time_of};

use super::digest::Digest;
use super::packed;
use super::reader::Reader;
use super::tier::Tier;

/// Without a sweep for so many intervals there is a gap.
const GAP: f64 = 2.5;

/// Sweeps before a window by which the interval is told where there are too few in it.
const BEFORE: u32 = 20;

impl Reader {
    pub(super) fn read_cover(&self, window: Window) -> rusqlite::Result<Cover> {
        let mut statement = self.db.prepare("SELECT id, name FROM fabrics")?;
        let fabrics: Vec<(i64, String)> = statement
            .query_map([], |row| Ok((row.get(0)?, row.get(1)?)))?
            .collect::<rusqlite::Result<_>>()?;
        let mut known = BTreeMap::new();
        for (fabric, name) in fabrics {
            known.insert(name, self.known(fabric, window)?);
        }
        Ok(Cover { fabrics: known, damaged: self.damaged(window)? })
    }

    fn known(&self, fabric: i64, window: Window) -> rusqlite::Result<Known> {
        let (from, to) = (micros_of(window.from), micros_of(window.to));
        let mut statement = self.db.prepare(
            "SELECT began, since FROM sweeps WHERE fabric = ?1 AND began BETWEEN ?2 AND ?3
             ORDER BY began",
        )?;
        let row = |row: &rusqlite::Row<'_>| Ok((row.get(0)?, row.get(1)?));
        let sweeps: Vec<(i64, Option<i64>)> =
            statement.query_map([fabric, from, to], row)?.collect::<rusqlite::Result<_>>()?;
        let length = |(began, since): &(i64, Option<i64>)| Some(began - (*since)?);
        let mut lengths: Vec<i64> = sweeps.iter().filter_map(length).collect();
        if lengths.is_empty() {
            let mut before = self.db.prepare(
                "SELECT began, since FROM sweeps WHERE fabric = ?1 AND began <= ?2
                 ORDER BY began DESC LIMIT ?3",
            )?;
            for sweep in before.query_map(params![fabric, to, BEFORE], row)? {
                lengths.extend(length(&sweep?));
            }
        }
        lengths.sort_unstable();
        let interval = lengths.get(lengths.len() / 2).map_or(0.0, |micros| *micros as f64 / 1e6);
        // Of one sweep alone nobody knows when the next was to come.
        let most = if interval > 0.0 { GAP * interval } else { f64::INFINITY };
        let times = sweeps.iter().map(|(began, _)| time_of(*began));
        let mut ends = vec![window.from];
        ends.extend(times);
        ends.push(window.to);
        let gaps = ends.windows(2).filter_map(|pair| {
            let [from, to] = *pair else { return None };
            let gap = Window { from, to };
            (sweeps.is_empty()
                || gap.length() > Duration::try_from_secs_f64(most).unwrap_or(Duration::MAX))
            .then_some(gap)
        });
        Ok(Known {
            sweeps: sweeps.len(),
            interval,
            gaps: gaps.collect(),
            traffic_from: self.traffic_from(fabric)?.map(|from| from.max(window.from)),
        })
    }

    /// How many sweeps' errors cannot be read. (Traffic is not looked through for this: it is
    /// hundreds of times as much.)
    fn damaged(&self, window: Window) -> rusqlite::Result<usize> {
        let (from, to) = (micros_of(window.from), micros_of(window.to));
        let mut damaged = 0;
        let mut frames = self.db.prepare(
            "SELECT data FROM frames WHERE tier = 0 AND part IS NULL AND began BETWEEN ?1 AND ?2",
        )?;
        let mut rows = frames.query([from, to])?;
        while let Some(row) = rows.next()? {
            damaged += usize::from(!packed::is_whole(row.get_ref(0)?.as_blob()?));
        }
        let mut digests =
            self.db.prepare("SELECT data FROM digests WHERE tier = 0 AND span = ?1")?;
        for hour in self.hours(window)? {
            let mut rows = digests.query([hour.id])?;
            let mut is_damaged = false;
            while let Some(row) = rows.next()? {
                is_damaged |= !packed::is_whole(row.get_ref(0)?.as_blob()?);
            }
            damaged += if is_damaged { hour.count } else { 0 };
        }
        Ok(damaged)
    }

    /// How many sweeps can be read of a tier, how many cannot, and when the latest ended.
    pub fn frames(&self, tier: Tier) -> Result<(usize, usize, Option<SystemTime>), HistoryError> {
        self.ask(|| self.count(tier))
    }

    fn count(&self, tier: Tier) -> rusqlite::Result<(usize, usize, Option<SystemTime>)> {
        let mut sweeps: HashMap<(i64, i64), bool> = HashMap::new();
        let mut last = None;
        let mut statement =
            self.db.prepare("SELECT fabric, began, ended, data FROM frames WHERE tier = ?1")?;
        let mut rows = statement.query([tier as u8])?;
        while let Some(row) = rows.next()? {
            let is_whole = super::frame::Frame::unpack(row.get_ref(3)?.as_blob()?).is_ok();
            *sweeps.entry((row.get(0)?, row.get(1)?)).or_insert(true) &= is_whole;
            last = last.max(Some(time_of(row.get(2)?)));
        }
        let damaged = sweeps.values().filter(|is_whole| !**is_whole).count();
        let whole = sweeps.len() - damaged;
        if tier != Tier::Rare {
            return Ok((whole, damaged, last));
        }
        let mut digested: HashSet<(i64, i64)> = HashSet::new();
        let mut torn = HashSet::new();
        let mut statement = self.db.prepare(
            "SELECT fabric, data, ended, span, first FROM digests JOIN spans ON spans.id = span
             WHERE tier = 0",
        )?;
        let mut rows = statement.query([])?;
        while let Some(row) = rows.next()? {
            let fabric: i64 = row.get(0)?;
            match Digest::unpack(row.get_ref(1)?.as_blob()?, row.get(4)?) {
                Ok(digest) => {
                    digested.extend(digest.spans().iter().map(|span| (fabric, span.began)));
                }
                Err(_) => drop(torn.insert(row.get::<_, i64>(3)?)),
            }
            last = last.max(Some(time_of(row.get(2)?)));
        }
        Ok((whole + digested.len(), damaged + torn.len(), last))
    }
}
