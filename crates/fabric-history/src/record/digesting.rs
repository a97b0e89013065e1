//! What was counted in an hour, brought together port by port.
//!
//! A sweep's rows have all ports of one moment; who asks about a link asks for the weeks of two. So when
//! an hour is over its errors are written again by parts of ports, as they were, and its sweeps' own are
//! dropped; of traffic the sum is written, and each sweep's is kept as long as there is room. Both
//! are made from the file alone, in one transaction: when the exporter ends in the middle, it is done
//! again.

use std::collections::BTreeMap;

use rusqlite::{Connection, params};

use crate::file::digest::{Digest, Span};
use crate::file::frame::{Entry, Frame};
use crate::file::tier::{Tier, part_of};

use super::grown::unpackable;
use super::retention::LAST_WHOLE;
use super::store::Store;

/// Sweeps that are digested together are of less than so long, in microseconds;
const LONGEST: i64 = 3_600_000_000;

/// are no more than so many;
const MOST_SWEEPS: u32 = 256;

/// and have no more bytes of errors than this, packed: 400,000 readings, 20 MB in memory.
const MOST_BYTES: i64 = 1 << 20;

/// A sweep that is to be digested.
#[derive(Clone, Copy)]
struct Due {
    id: i64,
    span: Span,
    ended: i64,
}

impl Store {
    /// Digests what is due, of each fabric an hour at most.
    pub(super) fn digest(&self) -> rusqlite::Result<()> {
        for fabric in self.fabrics()? {
            let sweeps = due(&self.db, fabric)?;
            if !sweeps.is_empty() {
                // Nobody else writes; who reads sees all of it or nothing.
                let transaction = self.db.unchecked_transaction()?;
                digest(&transaction, fabric, &sweeps)?;
                transaction.commit()?;
            }
        }
        Ok(())
    }
}

/// The sweeps that are digested next; none while they may yet become more. From those after the latest
/// whole totals totals are told: they stay as they are.
fn due(db: &Connection, fabric: i64) -> rusqlite::Result<Vec<Due>> {
    let mut sweeps = db.prepare_cached(&format!(
        "SELECT id, coalesce(since, began), began, ended,
             coalesce((SELECT length(data) FROM frames WHERE tier = 0 AND frames.fabric = sweeps.fabric
                 AND frames.began = sweeps.began), 0)
         FROM sweeps WHERE +fabric = ?1
             AND id > (SELECT coalesce(max(last), 0) FROM spans WHERE fabric = ?1)
             AND id <= {LAST_WHOLE}
         ORDER BY id LIMIT ?2",
    ))?;
    let mut rows = sweeps.query(params![fabric, MOST_SWEEPS + 1])?;
    let mut due: Vec<Due> = Vec::new();
    let mut bytes = 0;
    while let Some(row) = rows.next()? {
        let span = Span { since: row.get(1)?, began: row.get(2)? };
        let sweep = Due { id: row.get(0)?, span, ended: row.get(3)? };
        bytes += row.get::<_, i64>(4)?;
        if let Some(first) = due.first() {
            let length = sweep.ended.saturating_sub(first.span.began);
            let is_back = due.last().is_some_and(|last| span.began <= last.span.began);
            if is_back
                || length > LONGEST
                || bytes > MOST_BYTES
                || due.len() == MOST_SWEEPS as usize
            {
                return Ok(due);
            }
        }
        due.push(sweep);
    }
    Ok(Vec::new())
}

fn digest(db: &Connection, fabric: i64, sweeps: &[Due]) -> rusqlite::Result<()> {
    let (Some(first), Some(last)) = (sweeps.first(), sweeps.last()) else { return Ok(()) };
    let (base, began, count) = (first.span.began, last.span.began, sweeps.len() as u32);
    // A clock that is set back by less than a sweep lets one end before the one before.
    let ended = sweeps.iter().map(|sweep| sweep.ended).max().unwrap_or(last.ended);
    let errors = course(db, fabric, sweeps)?;
    let (traffic, sums) = sums(db, fabric, sweeps)?;
    let span = db
        .prepare_cached(
            "INSERT INTO spans (fabric, first, began, ended, traffic, sweeps, last)
             VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)",
        )?
        .insert(params![fabric, base, began, ended, traffic, count, last.id])?;
    for (tier, parts) in [(Tier::Rare, errors), (Tier::Busy, sums)] {
        for (part, digest) in parts {
            let packed = digest.pack(base).map_err(unpackable)?;
            db.prepare_cached(
                "INSERT INTO digests (span, tier, part, data) VALUES (?1, ?2, ?3, ?4)",
            )?
            .execute(params![span, tier as u8, part, packed])?;
        }
    }
    Ok(())
}

/// Each reading of errors, by part; their frames are dropped, but for those that cannot be read.
fn course(db: &Connection, fabric: i64, sweeps: &[Due]) -> rusqlite::Result<BTreeMap<u32, Digest>> {
    let mut parts: BTreeMap<u32, Digest> = BTreeMap::new();
    let mut read = Vec::new();
    visit(db, fabric, Tier::Rare, sweeps, &mut |id, span, frame| {
        read.push(id);
        for entry in frame.entries() {
            let digest = parts.entry(part_of(entry.port)).or_default();
            digest.begin(span);
            digest.push(entry, frame.values(entry));
        }
    })?;
    let mut drop = db.prepare_cached("DELETE FROM frames WHERE id = ?1")?;
    for id in read {
        drop.execute([id])?;
    }
    Ok(parts)
}

/// When the first sweep with traffic was begun, and the sum of each counter that grows all the time,
/// by part.
fn sums(
    db: &Connection,
    fabric: i64,
    sweeps: &[Due],
) -> rusqlite::Result<(Option<i64>, BTreeMap<u32, Digest>)> {
    let last: u32 = db.query_row("SELECT coalesce(max(id), 0) FROM ports", [], |row| row.get(0))?;
    let mut sums = Sums::default();
    let mut first: Option<Span> = None;
    visit(db, fabric, Tier::Busy, sweeps, &mut |_, span, frame| {
        // What was dropped for want of room is not in the sum.
        first.get_or_insert(span);
        for entry in frame.entries().iter().filter(|entry| entry.port <= last) {
            sums.add(entry, frame);
        }
    })?;
    let (began, ended) = sweeps.last().map_or((0, 0), |last| (last.span.began, last.ended));
    // A port of which the last sweep says nothing was read in one before, which may have taken longer.
    let longest = u32::try_from((ended - began).max(0) / 1000).unwrap_or(u32::MAX);
    let span = Span { since: first.map_or(began, |first| first.since), began };
    let mut parts: BTreeMap<u32, Digest> = BTreeMap::new();
    for port in 0..sums.known.len() as u32 {
        let digest = parts.entry(part_of(port)).or_default();
        digest.begin(span);
        let (after, values) = sums.of(port);
        digest.push(&Entry::of(port, after.min(longest)), values);
    }
    parts.retain(|_, digest| !digest.is_empty());
    Ok((first.map(|first| first.began), parts))
}

/// Sums by port and counter: 60,000 ports with eleven counters each take 6 MB.
#[derive(Default)]
struct Sums {
    /// One bit a counter that a port has a sum of, and when it was last read, by port.
    known: Vec<(u64, u32)>,
    /// By counter, and then by port.
    columns: BTreeMap<u8, Vec<u64>>,
}

impl Sums {
    fn add(&mut self, entry: &Entry, frame: &Frame) {
        let at = entry.port as usize;
        if self.known.len() <= at {
            self.known.resize(at + 1, (0, 0));
        }
        if let Some(known) = self.known.get_mut(at) {
            *known = (known.0 | entry.counters, entry.after);
        }
        for (counter, by) in frame.values(entry) {
            let column = self.columns.entry(counter).or_default();
            if column.len() <= at {
                column.resize(at + 1, 0);
            }
            if let Some(sum) = column.get_mut(at) {
                *sum = sum.saturating_add(by);
            }
        }
    }

    fn of(&self, port: u32) -> (u32, impl Iterator<Item = (u8, u64)>) {
        let at = port as usize;
        let (known, after) = self.known.get(at).copied().unwrap_or_default();
        let columns = self.columns.iter().filter(move |(counter, _)| known >> **counter & 1 == 1);
        let values = columns.filter_map(move |(counter, sums)| Some((*counter, *sums.get(at)?)));
        (after, values)
    }
}

/// Takes a frame's id, its sweep, and what is in it.
type See<'a> = dyn FnMut(i64, Span, &Frame) + 'a;

/// Goes through the frames of some sweeps that can be read, the earliest first.
fn visit(
    db: &Connection,
    fabric: i64,
    tier: Tier,
    sweeps: &[Due],
    see: &mut See<'_>,
) -> rusqlite::Result<()> {
    let mut frames = db.prepare_cached(
        "SELECT id, data FROM frames WHERE tier = ?1 AND fabric = ?2 AND began = ?3",
    )?;
    for sweep in sweeps {
        let mut rows = frames.query(params![tier as u8, fabric, sweep.span.began])?;
        while let Some(row) = rows.next()? {
            match Frame::unpack(row.get_ref(1)?.as_blob()?) {
                Ok(frame) => see(row.get(0)?, sweep.span, &frame),
                Err(error) => tracing::warn!(%error, "a sweep of the history is passed over"),
            }
        }
    }
    Ok(())
}
