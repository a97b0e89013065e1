//! What a counter of some ports had come to with each sweep of a window.

use std::ops::Range;

use ib_mad::Counter;
use crate::model::Window;

use super::numbers::Numbers;
use super::rows::PortSet;
use super::sql::Sql;
use super::stretch::SegmentRange;
use super::tier::RecordKind;

/// When a sweep was begun, and ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SweepTimes {
    /// In microseconds since 1970.
    pub began: i64,
    /// Likewise.
    pub ended: i64,
}

impl SweepTimes {
    /// The sweeps that ended in a window; times that do not rise are passed over.
    pub(crate) fn read(
        sql: Sql<'_>,
        fabric: i64,
        window: Window,
    ) -> rusqlite::Result<Vec<Self>> {
        let (from, to) = window.micros();
        let mut sweeps: Vec<SweepTimes> = Vec::new();
        for (began, ended) in sql.sweeps_ended(fabric, from..=to)? {
            if sweeps.last().is_none_or(|last| ended / 1000 > last.ended / 1000) {
                sweeps.push(SweepTimes { began, ended });
            }
        }
        Ok(sweeps)
    }
}

/// What a counter of some ports grew by from each sweep to the next.
#[derive(Debug)]
pub struct CounterGrowth {
    ports: Range<u32>,
    /// How many sweeps, and one more: what grew after the last.
    columns: usize,
    by: Vec<u64>,
    /// The first sweep that saw the counter, by port.
    since: Vec<usize>,
    /// Of which sweeps it is known what it came to.
    known: Vec<bool>,
}

impl CounterGrowth {
    /// What a counter of some ports grew by between sweeps.
    pub(crate) fn read(
        sql: Sql<'_>,
        numbers: &Numbers,
        range: &SegmentRange,
        counter: Counter,
        ports: Range<u32>,
        sweeps: &[SweepTimes],
    ) -> rusqlite::Result<Self> {
        let kind = RecordKind::of(counter);
        let columns = sweeps.len() + 1;
        let mut by = vec![0u64; ports.len() * columns];
        let mut since = vec![0; ports.len()];
        let column = |began: i64| sweeps.partition_point(|sweep| sweep.began < began);
        let Some(number) = numbers.number(counter) else {
            // The file is older than the counter: no port has a total of it.
            let known = vec![false; sweeps.len()];
            return Ok(CounterGrowth { ports, columns, by, since, known });
        };
        let set: PortSet = ports.clone().collect();
        range.visit(sql, kind, Some(&set), &mut |span, frame, entry| {
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
        range.visit(sql, RecordKind::FirstTotals, Some(&set), &mut |span, _, entry| {
            if entry.counters >> number & 1 == 1
                && let Some(since) = since.get_mut((entry.port - ports.start) as usize)
            {
                *since = column(span.began).max(*since);
            }
        })?;
        let is_known =
            |sweep: &SweepTimes| kind == RecordKind::ErrorDeltas || range.is_traffic_known_at(sweep.began);
        let known = sweeps.iter().map(is_known).collect();
        Ok(CounterGrowth { ports, columns, by, since, known })
    }

    /// A port's totals at each sweep, from its total in the end.
    pub fn totals(&self, port: u32, end: u64) -> Vec<Option<u64>> {
        let at = port.wrapping_sub(self.ports.start) as usize;
        let row = self.by.get(at * self.columns..(at + 1) * self.columns).unwrap_or_default();
        let since = self.since.get(at).copied().unwrap_or(0);
        let mut totals = vec![None; row.len().saturating_sub(1)];
        let mut total = end;
        // A column has what grew before its sweep.
        for (sweep, value) in totals.iter_mut().enumerate().rev() {
            total = total.saturating_sub(row.get(sweep + 1).copied().unwrap_or(0));
            let is_known = sweep >= since && self.known.get(sweep) == Some(&true);
            *value = is_known.then_some(total);
        }
        totals
    }
}
