//! Walks through readings, what counters grew by from one sweep to the next, in the digests of hours and in the
//! frames of sweeps.

use std::collections::HashMap;
use std::time::{Duration, SystemTime};

use rusqlite::Result;

use crate::file::frame::{Digest, Entry, Frame, SweepInterval};
use crate::file::record_kind::{RecordKind, part_of};
use crate::file::sql::{Hour, Sql};
use crate::time_of;

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
    /// The fabric, or all fabrics: only for some ports, or for kinds without parts.
    pub fabric: Option<i64>,
    /// The ports in rising order, or all ports.
    pub ports: Option<&'a [u32]>,
    /// The first and the last moment at which a visited sweep began.
    pub began: (i64, i64),
    /// The first moment at which a visited sweep ended.
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

    /// Visits the digests of some hours for some ports of one part, or for all ports. Adds the hours that had any digest
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
