//! What counters grew by: the series of some ports, and the sums of all.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::time::Duration;

use crate::HistoryError;
use crate::model::{ErrorDelta, Series, Step, Sum, Window};
use crate::source::SeriesDetail;
use ib_fabric::topology::End;
use ib_mad::Counter;

use super::counter_ids::CounterIds;
use super::digest::SweepInterval;
use super::frame::{Entry, Frame};
use super::reader::Reader;
use super::record_kind::RecordKind;
use super::sql::{Hour, PortRow, Sql};
use super::walk::{PortSet, Walk, reading_times};

/// For windows up to this length each sweep's traffic is returned, if recorded: 720 sweeps of two parts
/// of 60,000 ports are unpacked in a fifth of a second.
const SHORT: Duration = Duration::from_secs(3 * 3600);

/// No sweep takes this long, in microseconds: one that began this long before a window is not in it.
const LONGEST_SWEEP: i64 = 3_600_000_000;

/// The steps of some ports' counters.
struct Steps<'a> {
    counter_ids: &'a CounterIds,
    window: Window,
    most: usize,
    by: BTreeMap<(u32, Counter), Vec<Step>>,
    count: usize,
}

impl Steps<'_> {
    fn add(&mut self, span: SweepInterval, frame: &Frame, entry: &Entry) {
        let (from, to) = reading_times(span, entry);
        if self.window.has(to) {
            for (counter, by) in self.counter_ids.values(frame, entry) {
                self.count = self.count.saturating_add(1);
                if self.count <= self.most {
                    self.by.entry((entry.port, counter)).or_default().push(Step { from, to, by });
                }
            }
        }
    }
}

/// Readings of all fabrics in a window.
fn walk(kind: RecordKind, ports: Option<&PortSet>, window: Window) -> Walk<'_> {
    let (from, to) = window.micros();
    Walk { kind, fabric: None, ports, began: (from - LONGEST_SWEEP, to), ended: from }
}

/// The series of some ports' counters.
pub(super) fn series(
    reader: &Reader,
    ends: &[End],
    detail: SeriesDetail,
    window: Window,
) -> Result<Vec<Series>, HistoryError> {
    let most = reader.max_readings;
    let counter_ids = reader.counter_ids();
    let mut steps = Steps { counter_ids, window, most, by: BTreeMap::new(), count: 0 };
    let ports = read_steps(reader.sql(), ends, detail, &mut steps).map_err(reader.failed())?;
    if steps.count > most {
        return Err(HistoryError::TooMuch { most });
    }
    let ports: HashMap<u32, _> = ports.into_iter().map(|row| (row.id, row.port)).collect();
    let series = steps.by.into_iter().filter_map(|((port, counter), mut steps)| {
        steps.sort_by_key(|step| step.to);
        Some(Series { port: ports.get(&port)?.clone(), counter, steps })
    });
    Ok(series.collect())
}

fn read_steps(
    sql: Sql<'_>,
    ends: &[End],
    detail: SeriesDetail,
    steps: &mut Steps<'_>,
) -> rusqlite::Result<Vec<PortRow>> {
    let window = steps.window;
    let ports = sql.ports_at(ends)?;
    if ports.is_empty() {
        return Ok(ports);
    }
    let set: PortSet = ports.iter().map(|row| row.id).collect();
    let mut add = |span, frame: &Frame, entry: &Entry| steps.add(span, frame, entry);
    let hours = sql.hours(window.micros())?;
    walk(RecordKind::ErrorDeltas, Some(&set), window).visit(sql, &hours, &mut add)?;
    if detail == SeriesDetail::All {
        let summed = summed(sql, &hours, window)?;
        walk(RecordKind::TrafficDeltas, Some(&set), window).visit(sql, &summed, &mut add)?;
    }
    Ok(ports)
}

/// The hours of which the sum of traffic is returned: those inside the window, if it is long, and
/// those that end in it and of whose sweeps at least one was dropped.
fn summed(sql: Sql<'_>, hours: &[Hour], window: Window) -> rusqlite::Result<Vec<Hour>> {
    let is_long = window.length() > SHORT;
    let (from, to) = window.micros();
    let mut summed = Vec::new();
    for hour in hours {
        let is_whole = match hour.traffic {
            // The earliest is dropped first.
            Some(first) => sql.has_frame(RecordKind::TrafficDeltas, hour.fabric, first)?,
            None => false,
        };
        let is_in = hour.traffic.is_none_or(|first| from <= first);
        if hour.ended <= to && (is_long && is_in || !is_whole) {
            summed.push(hour.clone());
        }
    }
    Ok(summed)
}

/// The errors of all ports.
pub(super) fn error_deltas(reader: &Reader, window: Window) -> rusqlite::Result<Vec<ErrorDelta>> {
    let sql = reader.sql();
    let mut sums: BTreeMap<u32, BTreeMap<Counter, Sum>> = BTreeMap::new();
    let hours = sql.hours(window.micros())?;
    walk(RecordKind::ErrorDeltas, None, window).visit(sql, &hours, &mut |span, frame, entry| {
        let (_, at) = reading_times(span, entry);
        if !window.has(at) {
            return;
        }
        let of = sums.entry(entry.port).or_default();
        for (counter, by) in reader.counter_ids().values(frame, entry) {
            let sum = of.entry(counter).or_insert(Sum { counter, by: 0, first: at, last: at });
            sum.by = sum.by.saturating_add(by);
            (sum.first, sum.last) = (sum.first.min(at), sum.last.max(at));
        }
    })?;
    let peers = peers(sql, window)?;
    let other = |port: &u32| peers.get(port).map(|(peer, _)| *peer);
    let ids: BTreeSet<u32> =
        sums.keys().flat_map(|port| [Some(*port), other(port)]).flatten().collect();
    let ports = sql.ports_by_id(ids)?.into_iter().map(|row| (row.id, row.port));
    let ports: HashMap<u32, _> = ports.collect();
    let moved = sums.into_iter().filter_map(|(port, sums)| {
        let peer = other(&port).and_then(|peer| ports.get(&peer).cloned());
        let sums = sums.into_values().collect();
        Some(ErrorDelta { port: ports.get(&port)?.clone(), peer, sums })
    });
    Ok(moved.collect())
}

/// The peer of each port, by its latest cable in a window.
fn peers(sql: Sql<'_>, window: Window) -> rusqlite::Result<HashMap<u32, (u32, i64)>> {
    let mut peers: HashMap<u32, (u32, i64)> = HashMap::new();
    for cable in sql.cable_presences(window.micros())? {
        let [low, high] = cable.ends;
        for (port, peer) in [(low, high), (high, low)] {
            let latest = peers.entry(port).or_insert((peer, cable.since));
            if cable.since >= latest.1 {
                *latest = (peer, cable.since);
            }
        }
    }
    Ok(peers)
}
