//! What a counter of some ports had come to with each sweep of a window.

use std::ops::Range;

use crate::micros_of;
use crate::model::Window;
use ib_mad::Counter;

use super::reader::Reader;
use super::stretch::Stretch;
use super::tier::Tier;

/// When a sweep was begun, and ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Swept {
    /// In microseconds since 1970.
    pub began: i64,
    /// Likewise.
    pub ended: i64,
}

/// What a counter of some ports grew by from each sweep to the next.
#[derive(Debug)]
pub struct Growth {
    ports: Range<u32>,
    /// How many sweeps, and one more: what grew after the last.
    columns: usize,
    by: Vec<u64>,
    /// The first sweep that saw the counter, by port.
    since: Vec<usize>,
    /// Of which sweeps it is known what it came to.
    known: Vec<bool>,
}

impl Growth {
    /// What a port's counter had come to with each sweep, told from what it came to in the end.
    pub fn totals(&self, port: u32, end: u64) -> Vec<Option<u64>> {
        let at = port.wrapping_sub(self.ports.start) as usize;
        let row = self.by.get(at * self.columns..(at + 1) * self.columns).unwrap_or_default();
        let since = self.since.get(at).copied().unwrap_or(0);
        let mut totals = vec![None; row.len().saturating_sub(1)];
        let mut total = end;
        // What a column says grew before its sweep.
        for (sweep, value) in totals.iter_mut().enumerate().rev() {
            total = total.saturating_sub(row.get(sweep + 1).copied().unwrap_or(0));
            let is_known = sweep >= since && self.known.get(sweep) == Some(&true);
            *value = is_known.then_some(total);
        }
        totals
    }
}

impl Reader {
    /// The sweeps that ended in a window; times that do not rise are passed over.
    pub(crate) fn swept(&self, fabric: i64, window: Window) -> rusqlite::Result<Vec<Swept>> {
        let mut statement = self.db.prepare_cached(
            "SELECT began, ended FROM sweeps WHERE fabric = ?1 AND ended BETWEEN ?2 AND ?3
             ORDER BY began",
        )?;
        let times = (fabric, micros_of(window.from), micros_of(window.to));
        let mut swept: Vec<Swept> = Vec::new();
        for sweep in statement
            .query_map(times, |row| Ok(Swept { began: row.get(0)?, ended: row.get(1)? }))?
        {
            let sweep = sweep?;
            let is_later = |last: &Swept| sweep.ended / 1000 > last.ended / 1000;
            if swept.last().is_none_or(is_later) {
                swept.push(sweep);
            }
        }
        Ok(swept)
    }

    /// What a counter of some ports of one part grew by between sweeps.
    pub(crate) fn growth(
        &self,
        stretch: &Stretch,
        counter: Counter,
        ports: Range<u32>,
        sweeps: &[Swept],
    ) -> rusqlite::Result<Growth> {
        let tier = Tier::of(counter);
        let columns = sweeps.len() + 1;
        let mut by = vec![0u64; ports.len() * columns];
        let mut since = vec![0; ports.len()];
        let column = |began: i64| sweeps.partition_point(|sweep| sweep.began < began);
        let Some(number) = self.numbers.number(counter) else {
            // The file is older than the counter: no port has a total of it.
            return Ok(Growth { ports, columns, by, since, known: vec![false; sweeps.len()] });
        };
        self.walk(stretch, tier, Some(&ports), &mut |span, frame, entry| {
            if entry.counters >> number & 1 == 0 {
                return;
            }
            let Some((_, value)) = frame.values(entry).find(|(it, _)| *it == number) else {
                return;
            };
            let at = (entry.port - ports.start) as usize * columns + column(span.began);
            if let Some(by) = by.get_mut(at) {
                *by = by.saturating_add(value);
            }
        })?;
        self.walk(stretch, Tier::First, Some(&ports), &mut |span, _, entry| {
            if entry.counters >> number & 1 == 1
                && let Some(since) = since.get_mut((entry.port - ports.start) as usize)
            {
                *since = column(span.began).max(*since);
            }
        })?;
        let is_known =
            |sweep: &Swept| tier == Tier::Rare || stretch.is_traffic_known_at(sweep.began);
        let known = sweeps.iter().map(is_known).collect();
        Ok(Growth { ports, columns, by, since, known })
    }
}
