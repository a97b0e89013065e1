//! Totals: of each port when they were last recorded, with which the next sweep is compared and from which
//! they continue when the exporter is restarted; and at earlier sweeps, less what counters grew by since then, as
//! finely as the file has it: sweep by sweep, or by the hour.

use std::ops::{Range, RangeInclusive};

use rusqlite::{Connection, Result};

use crate::file::counter_ids::CounterIds;
use crate::file::frame::Frame;
use crate::file::id_map::IdMap;
use crate::file::record_kind::{RecordKind, part_of};
use crate::file::sql::{Hour, Sql};
use crate::file::walk::{Visitor, Walk};
use crate::model::Window;
use ib_mad::Counter;
use ib_mad::counter::COUNT;
use ib_mad::reading::CounterSet;

/// The latest totals of a port.
#[derive(Clone, Debug)]
pub struct PortTotals {
    /// The id of the port's fabric in the file.
    pub fabric: i64,
    known: CounterSet,
    values: [u64; COUNT],
}

impl PortTotals {
    /// The totals of a port of which nothing is known yet.
    pub fn blank(fabric: i64) -> Box<Self> {
        Box::new(PortTotals { fabric, known: CounterSet::default(), values: [0; COUNT] })
    }

    pub fn get(&self, counter: Counter) -> Option<u64> {
        self.known.contains(counter).then(|| self.values[counter as usize])
    }

    pub fn set(&mut self, counter: Counter, total: u64) {
        self.values[counter as usize] = total;
        self.known.insert(counter);
    }

    pub fn undo(&mut self, counter: Counter, by: u64) {
        let value = &mut self.values[counter as usize];
        *value = value.saturating_sub(by);
    }

    pub fn forget(&mut self, counter: Counter) {
        self.known.set(counter, false);
    }

    pub fn iter(&self) -> impl Iterator<Item = (Counter, u64)> + '_ {
        Counter::all().filter_map(|counter| Some((counter, self.get(counter)?)))
    }
}

/// The latest totals of all ports, by the port's number in the file.
pub type TotalsTable = IdMap<Box<PortTotals>>;

/// Passes on the totals of some counters of a fabric's ports, part by part: all at once are 20 MB. Some parts may be
/// empty.
pub fn for_each_part<E>(
    table: &TotalsTable,
    fabric: i64,
    counter_ids: &CounterIds,
    is_wanted: &dyn Fn(Counter) -> bool,
    mut see: impl FnMut(u32, &Frame) -> Result<(), E>,
) -> Result<(), E> {
    let (mut frame, mut part) = (Frame::default(), 0);
    for (port, totals) in table.iter().filter(|(_, totals)| totals.fabric == fabric) {
        if part_of(port) != part {
            see(part, &frame)?;
            (frame, part) = (Frame::default(), part_of(port));
        }
        let values = counter_ids.in_order().filter(|(_, counter)| is_wanted(*counter));
        let values = values.filter_map(|(id, counter)| Some((id, totals.get(counter)?)));
        frame.push(port, 0, values);
    }
    see(part, &frame)
}

/// The latest totals, as the file has them. Ports after the last one of the catalog are ignored.
pub fn latest(db: &Connection, counter_ids: &CounterIds) -> Result<TotalsTable> {
    let kinds = [RecordKind::ErrorDeltas, RecordKind::TrafficDeltas];
    latest_of(db, counter_ids, &kinds)
}

/// The same, up to date only of what these kinds of growth have.
fn latest_of(
    db: &Connection,
    counter_ids: &CounterIds,
    growth: &[RecordKind],
) -> Result<TotalsTable> {
    let sql = Sql(db);
    let last = sql.last_port()?;
    let mut table = TotalsTable::default();
    sql.frames_of_totals(growth, &mut |fabric, is_absolute, data| {
        let frame = match Frame::unpack(data) {
            Ok(frame) => frame,
            // What it had is missing in the sums of the file alone: ports still show what they counted.
            Err(error) => return tracing::warn!(%error, "history sweep unreadable: skipped"),
        };
        read_totals(&frame, counter_ids, last, |port, counter, value| {
            let totals = table.get_or_insert_with(port, || PortTotals::blank(fabric));
            if is_absolute {
                totals.set(counter, value);
            } else if let Some(total) = totals.get(counter) {
                totals.set(counter, total.saturating_add(value));
            }
        });
    })?;
    Ok(table)
}

/// Passes on what a frame has of ports up to the `last` one of the catalog.
fn read_totals(
    frame: &Frame,
    counter_ids: &CounterIds,
    last: u32,
    mut see: impl FnMut(u32, Counter, u64),
) {
    for entry in frame.entries().iter().filter(|entry| entry.port <= last) {
        for (number, value) in frame.values(entry) {
            if let Some(counter) = counter_ids.counter(number) {
                see(entry.port, counter, value);
            }
        }
    }
}

/// The sweeps that a query for a window covers, by when the first and the last began: from the one that was the
/// latest when the window began; digested hours are included completely.
pub(crate) fn sweep_range(
    sql: Sql<'_>,
    fabric: i64,
    window: Window,
) -> Result<Option<RangeInclusive<i64>>> {
    let (from, to) = window.micros();
    let first = match sql.latest_sweep(fabric, from)? {
        None => sql.earliest_sweep(fabric, from)?.filter(|first| *first <= to),
        latest => latest,
    };
    let (Some(first), Some(last)) = (first, sql.latest_sweep(fabric, to)?) else {
        return Ok(None);
    };
    let begins = sql.hour_around(fabric, first)?.map_or(first, |(first, _)| first);
    let ends = sql.hour_around(fabric, last)?.map_or(last, |(_, last)| last);
    Ok(Some(begins..=ends))
}

/// What grew after one sweep, up to another.
#[derive(Debug)]
pub struct SegmentRange<'a> {
    sql: Sql<'a>,
    fabric: i64,
    after: i64,
    to: i64,
    /// Hours whose errors are digested.
    hours: Vec<Hour>,
    /// Hours of which only the sum of traffic is used.
    summed: Vec<Hour>,
    /// Before this sweep the totals of traffic are unknown.
    floor: i64,
}

impl<'a> SegmentRange<'a> {
    /// The range after one sweep, up to another. Traffic is by the hour where nothing else is left, or
    /// wherever possible.
    pub(crate) fn read(
        sql: Sql<'a>,
        fabric: i64,
        after: i64,
        to: i64,
        by_the_hour: bool,
    ) -> Result<Self> {
        let mut hours = sql.hours((0, to))?;
        hours.retain(|hour| hour.fabric == fabric && *hour.sweeps.end() > after);
        let full = sql.first_frame(RecordKind::TrafficDeltas, fabric)?;
        let (mut summed, mut floor) = (Vec::new(), i64::MIN);
        for hour in &hours {
            let Some(first) = hour.traffic else { continue };
            let is_whole = full.is_some_and(|full| full <= first);
            if first > *hour.sweeps.start() {
                floor = floor.max(sql.sweep_before(fabric, first)?);
            }
            if (by_the_hour || !is_whole) && sql.has_digest(RecordKind::TrafficDeltas, hour.id)? {
                summed.push(hour.clone());
            } else if !is_whole {
                floor = floor.max(*hour.sweeps.end());
            }
        }
        if let Some(full) = full.filter(|full| *full > after)
            && sql.has_undigested_sweep_before(fabric, full)?
        {
            floor = floor.max(sql.sweep_before(fabric, full)?);
        }
        Ok(SegmentRange { sql, fabric, after, to, hours, summed, floor })
    }

    /// Whether the totals of traffic are known at one of its sweeps.
    pub fn is_traffic_known_at(&self, began: i64) -> bool {
        let is_within = |hour: &Hour| hour.sweeps.contains(&began) && began < *hour.sweeps.end();
        began >= self.floor && !self.summed.iter().any(is_within)
    }

    /// Visits what all ports counted, or some, in rising order.
    pub(crate) fn visit(
        &self,
        kind: RecordKind,
        ports: Option<&[u32]>,
        see: &mut Visitor<'_>,
    ) -> Result<()> {
        let hours = match kind {
            RecordKind::ErrorDeltas => &*self.hours,
            RecordKind::TrafficDeltas => &*self.summed,
            RecordKind::FirstTotals
            | RecordKind::AllTotals
            | RecordKind::ErrorTotals
            | RecordKind::PortChanges
            | RecordKind::PortStates
            | RecordKind::NodeChanges
            | RecordKind::NodeStates => &[],
        };
        let began = (self.after.saturating_add(1), self.to);
        let (sql, fabric) = (self.sql, Some(self.fabric));
        Walk { sql, kind, fabric, ports, began, ended: i64::MIN }.visit(hours, see)
    }
}

/// The totals of all counters after a sweep, as far as the file has them: those that were not seen yet have no total.
pub(crate) fn totals_at(
    sql: Sql<'_>,
    counter_ids: &CounterIds,
    fabric: i64,
    at: i64,
) -> Result<TotalsTable> {
    let (mut table, range) = without_later(sql, counter_ids, fabric, at, true)?;
    if !range.is_traffic_known_at(at) {
        forget_traffic(&mut table);
    }
    Ok(table)
}

/// The totals of errors after a sweep: those of traffic change in each sweep, and take as long to undo as all others
/// together. From the next ones that were written after it: to undo the errors of two weeks takes a second.
pub(crate) fn errors_at(
    sql: Sql<'_>,
    counter_ids: &CounterIds,
    fabric: i64,
    at: i64,
) -> Result<TotalsTable> {
    if let Some(written) = sql.next_frame(RecordKind::ErrorTotals, fabric, at)?
        && !sql.has_clock_set_back(fabric)?
        && let Some(mut table) = written_errors(sql, counter_ids, fabric, written)?
    {
        let range = SegmentRange::read(sql, fabric, at, written, true)?;
        undo(&range, counter_ids, RecordKind::ErrorDeltas, &mut table)?;
        undo(&range, counter_ids, RecordKind::FirstTotals, &mut table)?;
        return Ok(table);
    }
    let (mut table, _) = without_later(sql, counter_ids, fabric, at, false)?;
    forget_traffic(&mut table);
    Ok(table)
}

/// The totals of errors that a sweep has in the file; `None` if they are damaged.
fn written_errors(
    sql: Sql<'_>,
    counter_ids: &CounterIds,
    fabric: i64,
    began: i64,
) -> Result<Option<TotalsTable>> {
    let (mut table, last, mut is_damaged) = (TotalsTable::default(), sql.last_port()?, false);
    sql.frames(RecordKind::ErrorTotals, Some(fabric), None, began..=began, &mut |row| {
        let Ok(frame) = Frame::unpack(row.data) else {
            is_damaged = true;
            return Ok(());
        };
        read_totals(&frame, counter_ids, last, |port, counter, value| {
            table.get_or_insert_with(port, || PortTotals::blank(fabric)).set(counter, value);
        });
        Ok(())
    })?;
    Ok((!is_damaged).then_some(table))
}

fn forget_traffic(table: &mut TotalsTable) {
    let is_busy = |counter: &Counter| RecordKind::of(*counter) == RecordKind::TrafficDeltas;
    for (_, totals) in table.iter_mut() {
        Counter::all().filter(is_busy).for_each(|counter| totals.forget(counter));
    }
}

/// The latest totals without what was counted after a sweep; that of traffic only if it is asked for.
fn without_later<'a>(
    sql: Sql<'a>,
    counter_ids: &CounterIds,
    fabric: i64,
    at: i64,
    has_traffic: bool,
) -> Result<(TotalsTable, SegmentRange<'a>)> {
    let mut growth = vec![RecordKind::ErrorDeltas];
    growth.extend(has_traffic.then_some(RecordKind::TrafficDeltas));
    let mut table = latest_of(sql.0, counter_ids, &growth)?;
    let range = SegmentRange::read(sql, fabric, at, i64::MAX, true)?;
    undo(&range, counter_ids, RecordKind::ErrorDeltas, &mut table)?;
    if has_traffic {
        undo(&range, counter_ids, RecordKind::TrafficDeltas, &mut table)?;
    }
    undo(&range, counter_ids, RecordKind::FirstTotals, &mut table)?;
    Ok((table, range))
}

/// Undoes what a range has of one kind. Before its first total, a counter has none.
fn undo(
    range: &SegmentRange<'_>,
    counter_ids: &CounterIds,
    kind: RecordKind,
    table: &mut TotalsTable,
) -> Result<()> {
    range.visit(kind, None, &mut |span, frame, entry| {
        // The hours at both ends of the range are visited as a whole.
        let is_within = range.after < span.began && span.began <= range.to;
        let Some(totals) = table.get_mut(entry.port).filter(|_| is_within) else { return };
        for (number, by) in frame.values(entry) {
            match counter_ids.counter(number) {
                Some(counter) if kind == RecordKind::FirstTotals => totals.forget(counter),
                Some(counter) => totals.undo(counter, by),
                None => {}
            }
        }
    })
}

/// When a sweep began, and ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SweepTimes {
    pub began: i64,
    pub ended: i64,
}

impl SweepTimes {
    /// The sweeps that ended in a window; times that do not rise are skipped.
    pub(crate) fn read(sql: Sql<'_>, fabric: i64, window: Window) -> Result<Vec<Self>> {
        let (from, to) = window.micros();
        let mut sweeps: Vec<SweepTimes> = Vec::new();
        for (began, ended) in sql.sweeps_ended(fabric, from, to)? {
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
    /// By port, and for each in a row by sweep, with one more: what grew after the last.
    by: Vec<u64>,
    /// The first sweep that saw the counter, by port.
    since: Vec<usize>,
    /// The sweeps at which its total is known.
    known: Vec<bool>,
}

impl CounterGrowth {
    pub(crate) fn read(
        range: &SegmentRange<'_>,
        (counter, number): (Counter, u8),
        ports: Range<u32>,
        sweeps: &[SweepTimes],
    ) -> Result<Self> {
        let kind = RecordKind::of(counter);
        let columns = sweeps.len() + 1;
        let mut by = vec![0u64; ports.len() * columns];
        let mut since = vec![0; ports.len()];
        let column = |began: i64| sweeps.partition_point(|sweep| sweep.began < began);
        let all: Vec<u32> = ports.clone().collect();
        range.visit(kind, Some(&all), &mut |span, frame, entry| {
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
        range.visit(RecordKind::FirstTotals, Some(&all), &mut |span, _, entry| {
            if entry.counters >> number & 1 == 1
                && let Some(since) = since.get_mut((entry.port - ports.start) as usize)
            {
                *since = column(span.began).max(*since);
            }
        })?;
        let is_known = |sweep: &SweepTimes| {
            kind == RecordKind::ErrorDeltas || range.is_traffic_known_at(sweep.began)
        };
        let known = sweeps.iter().map(is_known).collect();
        Ok(CounterGrowth { ports, by, since, known })
    }

    /// A port's totals at each sweep, from its total in the end.
    pub fn totals(&self, port: u32, end: u64) -> Vec<Option<u64>> {
        let at = port.wrapping_sub(self.ports.start) as usize;
        let row = self.by.chunks(self.known.len() + 1).nth(at).unwrap_or_default();
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
