//! What queries make of readings: the series of some ports, and the sums of all.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::time::Duration;

use rusqlite::Result;

use crate::file::counter_ids::CounterIds;
use crate::file::frame::{Entry, Frame};
use crate::file::record_kind::RecordKind;
use crate::file::sql::{CablePresence, Hour, Sql};
use crate::file::walk::{Walk, reading_times};
use crate::model::{ErrorDelta, Series, Step, Sum, Window};
use crate::source::SeriesDetail;
use ib_mad::{Counter, PortKey};

/// For windows up to this length each sweep's traffic is returned, if recorded: 720 sweeps of two parts
/// of 60,000 ports are unpacked in a fifth of a second.
const SHORT: Duration = Duration::from_secs(3 * 3600);

/// No sweep takes this long, in microseconds: one that began this long before a window is not in it.
const LONGEST_SWEEP: i64 = 3_600_000_000;

/// Readings of all fabrics in a window.
fn walk<'a>(sql: Sql<'a>, kind: RecordKind, ports: Option<&'a [u32]>, window: Window) -> Walk<'a> {
    let (from, to) = window.micros();
    Walk { sql, kind, fabric: None, ports, began: (from - LONGEST_SWEEP, to), ended: from }
}

/// The readings of a file, for queries.
#[derive(Clone, Copy, Debug)]
pub(super) struct Readings<'a> {
    pub sql: Sql<'a>,
    pub counter_ids: &'a CounterIds,
}

/// The series of some ports' counters; `None` if there are more readings than `most`.
pub(super) fn series(
    readings: Readings<'_>,
    ends: &[PortKey],
    detail: SeriesDetail,
    window: Window,
    most: usize,
) -> Result<Option<Vec<Series>>> {
    let sql = readings.sql;
    let ports = sql.ports_at(ends)?;
    if ports.is_empty() {
        return Ok(Some(Vec::new()));
    }
    let mut ids: Vec<u32> = ports.iter().map(|(id, _)| *id).collect();
    ids.sort_unstable();
    let mut count = 0usize;
    let mut steps: BTreeMap<(u32, Counter), Vec<Step>> = BTreeMap::new();
    let mut add = |span, frame: &Frame, entry: &Entry| {
        let (from, to) = reading_times(span, entry);
        if !window.has(to) {
            return;
        }
        for (counter, by) in readings.counter_ids.values(frame, entry) {
            count = count.saturating_add(1);
            if count <= most {
                steps.entry((entry.port, counter)).or_default().push(Step { from, to, by });
            }
        }
    };
    let hours = sql.hours(window.micros())?;
    walk(sql, RecordKind::ErrorDeltas, Some(&ids), window).visit(&hours, &mut add)?;
    if detail == SeriesDetail::All {
        let summed = summed(sql, &hours, window)?;
        walk(sql, RecordKind::TrafficDeltas, Some(&ids), window).visit(&summed, &mut add)?;
    }
    if count > most {
        return Ok(None);
    }
    let ports: HashMap<u32, _> = ports.into_iter().collect();
    let series = steps.into_iter().filter_map(|((port, counter), mut steps)| {
        steps.sort_by_key(|step| step.to);
        Some(Series { port: ports.get(&port)?.clone(), counter, steps })
    });
    Ok(Some(series.collect()))
}

/// The hours of which the sum of traffic is returned: those inside the window, if it is long, and
/// those that end in it and of whose sweeps at least one was dropped.
fn summed(sql: Sql<'_>, hours: &[Hour], window: Window) -> Result<Vec<Hour>> {
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

/// By port and counter, what grew.
type Sums = BTreeMap<u32, BTreeMap<Counter, Sum>>;

/// The errors of some ports, or of all.
fn sums(readings: Readings<'_>, ports: Option<&[u32]>, window: Window) -> Result<Sums> {
    let sql = readings.sql;
    let mut sums = Sums::new();
    let hours = sql.hours(window.micros())?;
    walk(sql, RecordKind::ErrorDeltas, ports, window).visit(
        &hours,
        &mut |span, frame, entry| {
            let (_, at) = reading_times(span, entry);
            if !window.has(at) {
                return;
            }
            let sums = sums.entry(entry.port).or_default();
            for (counter, by) in readings.counter_ids.values(frame, entry) {
                let sum =
                    sums.entry(counter).or_insert(Sum { counter, by: 0, first: at, last: at });
                sum.by = sum.by.saturating_add(by);
                (sum.first, sum.last) = (sum.first.min(at), sum.last.max(at));
            }
        },
    )?;
    Ok(sums)
}

/// The errors of a port, by its id.
pub(super) fn errors_of(readings: Readings<'_>, port: u32, window: Window) -> Result<Vec<Sum>> {
    let sums = sums(readings, Some(&[port]), window)?.remove(&port);
    Ok(sums.unwrap_or_default().into_values().collect())
}

/// The errors of all ports.
pub(super) fn error_deltas(readings: Readings<'_>, window: Window) -> Result<Vec<ErrorDelta>> {
    let (sql, sums) = (readings.sql, sums(readings, None, window)?);
    let peers = peers(sql, window)?;
    let other = |port: &u32| peers.get(port).copied();
    let ids: BTreeSet<u32> = sums.keys().copied().chain(sums.keys().filter_map(other)).collect();
    let ports: HashMap<u32, _> = sql.ports_by_id(ids)?.into_iter().collect();
    let moved = sums.into_iter().filter_map(|(port, sums)| {
        let peer = other(&port).and_then(|peer| ports.get(&peer).cloned());
        let sums = sums.into_values().collect();
        Some(ErrorDelta { port: ports.get(&port)?.clone(), peer, sums })
    });
    Ok(moved.collect())
}

/// The peer of each port, by its latest cable in a window.
fn peers(sql: Sql<'_>, window: Window) -> Result<HashMap<u32, u32>> {
    let cables = sql.cable_presences(window.micros())?.into_iter();
    Ok(cables
        .flat_map(|CablePresence { ends: [low, high], .. }| [(low, high), (high, low)])
        .collect())
}
