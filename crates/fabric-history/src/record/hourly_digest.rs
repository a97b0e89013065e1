//! Digests: an hour's readings, rewritten port by port.
//!
//! A sweep's rows have all ports at one moment, but a query about a link needs weeks of two ports.
//! Therefore, when an hour is over, its error readings are rewritten unchanged by part of the ports, and the
//! sweeps' own are dropped. For traffic the sum is written; each sweep's stays while there is space.
//! Both are made from the file alone, in one transaction: after a crash in the middle it is done again.

use std::collections::BTreeMap;

use rusqlite::{Connection, Result, params};

use crate::file::frame::{Digest, Entry, Frame, SweepInterval};
use crate::file::record_kind::{RecordKind, part_of};
use crate::file::sql::Sql;
use crate::record::deltas::pack_error;
use crate::record::retention::last_totals;
use crate::record::store::Store;

/// Sweeps that are digested together span at most this, in microseconds.
const MAX_LENGTH: i64 = 3_600_000_000;

/// Sweeps that are digested together, at most.
const MAX_SWEEPS: u32 = 256;

/// Packed bytes of errors that are digested together, at most: 400,000 readings, 20 MB in memory.
const MAX_BYTES: i64 = 1 << 20;

#[derive(Clone, Copy)]
struct DueSweep {
    id: i64,
    span: SweepInterval,
    ended: i64,
}

impl Store {
    /// Digests at most an hour of each fabric, if one is over.
    pub(super) fn digest(&self) -> Result<()> {
        for (fabric, _) in self.sql().fabrics()? {
            let sweeps = due_sweeps(&self.db, fabric)?;
            if !sweeps.is_empty() {
                // There is no other writer; a reader sees all of it or nothing.
                let transaction = self.db.unchecked_transaction()?;
                digest(&transaction, fabric, &sweeps)?;
                transaction.commit()?;
            }
        }
        Ok(())
    }
}

/// The sweeps that are digested next; none while more may still belong to them. Sweeps after the latest
/// totals are not digested: totals are reconstructed from them.
fn due_sweeps(db: &Connection, fabric: i64) -> Result<Vec<DueSweep>> {
    let sql = format!(
        "SELECT id, coalesce(since, began), began, ended,
             coalesce((SELECT length(data) FROM frames WHERE tier = {} AND frames.fabric = sweeps.fabric
                 AND frames.began = sweeps.began), 0)
         FROM sweeps WHERE +fabric = ?1
             AND id > (SELECT coalesce(max(last), 0) FROM spans WHERE fabric = ?1)
             AND id <= {}
         ORDER BY id LIMIT ?2",
        RecordKind::ErrorDeltas,
        last_totals(),
    );
    let sweeps: Vec<(i64, i64, i64, i64, i64)> =
        Sql(db).rows(&sql, params![fabric, MAX_SWEEPS + 1])?;
    let mut due: Vec<DueSweep> = Vec::new();
    let mut bytes = 0;
    for (id, since, began, ended, length) in sweeps {
        let span = SweepInterval { since, began };
        let sweep = DueSweep { id, span, ended };
        bytes += length;
        if let Some((first, last)) = due.first().zip(due.last()) {
            let length = sweep.ended.saturating_sub(first.span.began);
            if span.began <= last.span.began
                || length > MAX_LENGTH
                || bytes > MAX_BYTES
                || due.len() == MAX_SWEEPS as usize
            {
                return Ok(due);
            }
        }
        due.push(sweep);
    }
    Ok(Vec::new())
}

fn digest(db: &Connection, fabric: i64, sweeps: &[DueSweep]) -> Result<()> {
    let (Some(first), Some(last)) = (sweeps.first(), sweeps.last()) else { return Ok(()) };
    let (base, began, count) = (first.span.began, last.span.began, sweeps.len() as u32);
    // With a clock that is set back by less than a sweep, a sweep may end before the one before it.
    let ended = sweeps.iter().map(|sweep| sweep.ended).max().unwrap_or(last.ended);
    let errors = digest_errors(db, fabric, sweeps)?;
    let (traffic_began, traffic) = digest_traffic(db, fabric, sweeps)?;
    let span = Sql(db).insert(
        "INSERT INTO spans (fabric, first, began, ended, traffic, sweeps, last)
         VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)",
        params![fabric, base, began, ended, traffic_began, count, last.id],
    )?;
    let insert = "INSERT INTO digests (span, tier, part, data) VALUES (?1, ?2, ?3, ?4)";
    for (kind, parts) in [(RecordKind::ErrorDeltas, errors), (RecordKind::TrafficDeltas, traffic)] {
        for (part, digest) in parts {
            let packed = digest.pack(base).map_err(pack_error)?;
            Sql(db).execute(insert, params![span, kind, part, packed])?;
        }
    }
    Ok(())
}

/// All error readings, by part of the ports. Drops their frames, except those that cannot be read.
fn digest_errors(
    db: &Connection,
    fabric: i64,
    sweeps: &[DueSweep],
) -> Result<BTreeMap<u32, Digest>> {
    let mut parts: BTreeMap<u32, Digest> = BTreeMap::new();
    let mut read = Vec::new();
    for_each_frame(db, fabric, RecordKind::ErrorDeltas, sweeps, |id, span, frame| {
        read.push(id);
        for entry in frame.entries() {
            let digest = parts.entry(part_of(entry.port)).or_default();
            digest.begin(span);
            digest.push(entry.port, entry.after, frame.values(entry));
        }
    })?;
    for id in read {
        Sql(db).execute("DELETE FROM frames WHERE id = ?1", [id])?;
    }
    Ok(parts)
}

/// The beginning of the first sweep with traffic, and the sums of traffic counters by part of the ports.
fn digest_traffic(
    db: &Connection,
    fabric: i64,
    sweeps: &[DueSweep],
) -> Result<(Option<i64>, BTreeMap<u32, Digest>)> {
    let last = Sql(db).last_port()?;
    let mut sums = TrafficSums::default();
    let mut first: Option<SweepInterval> = None;
    for_each_frame(db, fabric, RecordKind::TrafficDeltas, sweeps, |_, span, frame| {
        // Sweeps whose traffic was dropped for its size are not part of the sum.
        first.get_or_insert(span);
        for entry in frame.entries().iter().filter(|entry| entry.port <= last) {
            sums.add(entry, frame);
        }
    })?;
    let (began, ended) = sweeps.last().map_or((0, 0), |last| (last.span.began, last.ended));
    // A port that is not in the last sweep was read in an earlier one, which may have taken longer.
    let longest = u32::try_from((ended - began).max(0) / 1000).unwrap_or(u32::MAX);
    let span = SweepInterval { since: first.map_or(began, |first| first.since), began };
    let mut parts: BTreeMap<u32, Digest> = BTreeMap::new();
    for port in 0..sums.ports.len() as u32 {
        let digest = parts.entry(part_of(port)).or_default();
        digest.begin(span);
        let (after, values) = sums.get(port);
        digest.push(port, after.min(longest), values);
    }
    parts.retain(|_, digest| !digest.is_empty());
    Ok((first.map(|first| first.began), parts))
}

#[derive(Clone, Copy, Default)]
struct SummedPort {
    /// One bit per counter that has a sum.
    counters: u64,
    /// When the port was last read.
    after: u32,
}

/// Sums by port and counter: of 60,000 ports with eleven counters each they take 6 MB.
#[derive(Default)]
struct TrafficSums {
    /// By port id.
    ports: Vec<SummedPort>,
    /// By counter id, and then by port id.
    columns: BTreeMap<u8, Vec<u64>>,
}

impl TrafficSums {
    fn add(&mut self, entry: &Entry, frame: &Frame) {
        let index = entry.port as usize;
        let port = slot(&mut self.ports, index);
        *port = SummedPort { counters: port.counters | entry.counters, after: entry.after };
        for (counter, by) in frame.values(entry) {
            let sum = slot(self.columns.entry(counter).or_default(), index);
            *sum = sum.saturating_add(by);
        }
    }

    fn get(&self, port: u32) -> (u32, impl Iterator<Item = (u8, u64)>) {
        let index = port as usize;
        let SummedPort { counters, after } = self.ports.get(index).copied().unwrap_or_default();
        let columns = self.columns.iter();
        let columns = columns.filter(move |(counter, _)| counters >> **counter & 1 == 1);
        let values = columns.filter_map(move |(counter, sums)| Some((*counter, *sums.get(index)?)));
        (after, values)
    }
}

/// The element at an index, which is appended if it is missing.
fn slot<T: Clone + Default>(values: &mut Vec<T>, index: usize) -> &mut T {
    if values.len() <= index {
        values.resize(index + 1, T::default());
    }
    &mut values[index]
}

/// Calls a function with the id, the sweep's span and the content of each readable frame, in time order.
fn for_each_frame(
    db: &Connection,
    fabric: i64,
    kind: RecordKind,
    sweeps: &[DueSweep],
    mut visit: impl FnMut(i64, SweepInterval, &Frame),
) -> Result<()> {
    let sql = "SELECT id, data FROM frames WHERE tier = ?1 AND fabric = ?2 AND began = ?3";
    for sweep in sweeps {
        Sql(db).visit(sql, params![kind, fabric, sweep.span.began], |row| {
            match Frame::unpack(row.get_ref(1)?.as_blob()?) {
                Ok(frame) => visit(row.get(0)?, sweep.span, &frame),
                Err(error) => tracing::warn!(%error, "history sweep unreadable: skipped"),
            }
            Ok(())
        })?;
    }
    Ok(())
}
