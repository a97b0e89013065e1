//! Walks through readings, what counters grew by from one sweep to the next, in the digests of hours and in the
//! frames of sweeps; and what queries make of them: the series of some ports, and the sums of all.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::time::{Duration, SystemTime};

use rusqlite::Result;

use crate::file::frame::{Digest, Entry, Frame, SweepInterval};
use crate::file::reader::Reader;
use crate::file::record_kind::{RecordKind, part_of};
use crate::file::sql::{CablePresence, Hour, Sql};
use crate::model::{ErrorDelta, Series, Step, Sum, Window};
use crate::source::SeriesDetail;
use crate::time_of;
use ib_mad::{Counter, PortKey};

/// Called with each reading: the sweep, the frame, and the entry whose values the frame has.
pub(crate) type Visitor<'a> = dyn FnMut(SweepInterval, &Frame, &Entry) + 'a;

/// The times of a port's previous reading and of this one: to the millisecond, as in JSON.
pub(crate) fn reading_times(span: SweepInterval, entry: &Entry) -> (SystemTime, SystemTime) {
    let after = Duration::from_millis(entry.after.into());
    let read = |micros: i64| time_of(micros - micros.rem_euclid(1000)) + after;
    (read(span.since), read(span.began))
}

/// Whether a port is one of some in rising order.
fn contains(ports: &[u32], port: u32) -> bool {
    let (Some(first), Some(last)) = (ports.first(), ports.last()) else { return false };
    // All ports of a part are as fast as a range.
    let is_range = (last - first) as usize == ports.len() - 1;
    (*first..=*last).contains(&port) && (is_range || ports.binary_search(&port).is_ok())
}

fn first_part(ports: Option<&[u32]>) -> Option<u32> {
    ports?.first().copied().map(part_of)
}

/// Which readings are visited.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Walk<'a> {
    pub sql: Sql<'a>,
    pub kind: RecordKind,
    /// Of one fabric; of some ports, and of kinds without parts, also of all.
    pub fabric: Option<i64>,
    /// Of these ports, in rising order, or of all.
    pub ports: Option<&'a [u32]>,
    /// When the sweeps began whose frames are visited,
    pub began: (i64, i64),
    /// and when they ended at the earliest.
    pub ended: i64,
}

impl Walk<'_> {
    /// Visits the digests of some hours, and the frames of all sweeps that are in none of them. What is damaged is
    /// skipped: an hour whose digests cannot be read is visited by its frames, if they are still in the file.
    pub fn visit(&self, hours: &[Hour], see: &mut Visitor<'_>) -> Result<()> {
        let parts: Vec<Option<&[u32]>> = match self.ports {
            None => vec![None],
            Some(ports) => ports.chunk_by(|a, b| part_of(*a) == part_of(*b)).map(Some).collect(),
        };
        let mut digested = Vec::new();
        for ports in parts {
            self.visit_digests(hours, ports, &mut digested, see)?;
            if self.kind.is_in_parts() {
                self.visit_frames(ports, &std::mem::take(&mut digested), see)?;
            }
        }
        if self.kind.is_in_parts() { Ok(()) } else { self.visit_frames(self.ports, &digested, see) }
    }

    /// Visits the digests of some hours: those of some ports of one part, or all; adds the hours that had any
    /// that can be read.
    fn visit_digests<'h>(
        &self,
        hours: &'h [Hour],
        ports: Option<&[u32]>,
        digested: &mut Vec<&'h Hour>,
        see: &mut Visitor<'_>,
    ) -> Result<()> {
        let (Some(first), Some(last)) = (hours.first(), hours.last()) else { return Ok(()) };
        let by_id: HashMap<i64, &Hour> = hours.iter().map(|hour| (hour.id, hour)).collect();
        self.sql.digests(self.kind, first.id..=last.id, first_part(ports), &mut |id, data| {
            let Some(hour) = by_id.get(&id) else { return Ok(()) };
            let Ok(digest) = Digest::unpack(data, *hour.sweeps.start()) else { return Ok(()) };
            if digested.last().is_none_or(|last| last.id != id) {
                digested.push(hour);
            }
            let mut see = |port| {
                for (span, entry) in digest.readings(port) {
                    see(span, digest.frame(), entry);
                }
            };
            match ports {
                Some(ports) => ports.iter().for_each(|port| see(Some(*port))),
                None => see(None),
            }
            Ok(())
        })
    }

    fn visit_frames(
        &self,
        ports: Option<&[u32]>,
        digested: &[&Hour],
        see: &mut Visitor<'_>,
    ) -> Result<()> {
        let part = first_part(ports).filter(|_| self.kind.is_in_parts());
        let is_wanted = |port| ports.is_none_or(|ports| contains(ports, port));
        let began = self.began.0..=self.began.1;
        self.sql.frames(self.kind, self.fabric, part, began, &mut |row| {
            if row.ended < self.ended || digested.iter().any(|hour| hour.has(&row)) {
                return Ok(());
            }
            let Ok(frame) = Frame::unpack_of(row.data, is_wanted) else { return Ok(()) };
            let span = SweepInterval { since: row.since.unwrap_or(row.began), began: row.began };
            for entry in frame.entries() {
                see(span, &frame, entry);
            }
            Ok(())
        })
    }
}

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

/// The series of some ports' counters; `None` if there are more readings than a response may have.
pub(super) fn series(
    reader: &Reader,
    ends: &[PortKey],
    detail: SeriesDetail,
    window: Window,
) -> Result<Option<Vec<Series>>> {
    let sql = reader.sql();
    let ports = sql.ports_at(ends)?;
    if ports.is_empty() {
        return Ok(Some(Vec::new()));
    }
    let mut ids: Vec<u32> = ports.iter().map(|(id, _)| *id).collect();
    ids.sort_unstable();
    let (most, mut count) = (reader.max_readings, 0usize);
    let mut steps: BTreeMap<(u32, Counter), Vec<Step>> = BTreeMap::new();
    let mut add = |span, frame: &Frame, entry: &Entry| {
        let (from, to) = reading_times(span, entry);
        if !window.has(to) {
            return;
        }
        for (counter, by) in reader.counter_ids.values(frame, entry) {
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
fn sums(reader: &Reader, ports: Option<&[u32]>, window: Window) -> Result<Sums> {
    let sql = reader.sql();
    let mut sums = Sums::new();
    let hours = sql.hours(window.micros())?;
    walk(sql, RecordKind::ErrorDeltas, ports, window).visit(
        &hours,
        &mut |span, frame, entry| {
            let (_, at) = reading_times(span, entry);
            if !window.has(at) {
                return;
            }
            let of = sums.entry(entry.port).or_default();
            for (counter, by) in reader.counter_ids.values(frame, entry) {
                let sum = of.entry(counter).or_insert(Sum { counter, by: 0, first: at, last: at });
                sum.by = sum.by.saturating_add(by);
                (sum.first, sum.last) = (sum.first.min(at), sum.last.max(at));
            }
        },
    )?;
    Ok(sums)
}

/// The errors of a port, by its id.
pub(super) fn errors_of(reader: &Reader, port: u32, window: Window) -> Result<Vec<Sum>> {
    let sums = sums(reader, Some(&[port]), window)?.remove(&port);
    Ok(sums.unwrap_or_default().into_values().collect())
}

/// The errors of all ports.
pub(super) fn error_deltas(reader: &Reader, window: Window) -> Result<Vec<ErrorDelta>> {
    let (sql, sums) = (reader.sql(), sums(reader, None, window)?);
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
