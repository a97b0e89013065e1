//! Walks through readings: what counters grew by from one sweep to the next, in the digests of hours and
//! in the frames of sweeps.

use std::collections::{BTreeMap, HashMap};
use std::time::{Duration, SystemTime};

use crate::time_of;

use super::digest::{Digest, SweepInterval};
use super::frame::{Entry, Frame};
use super::record_kind::{RecordKind, part_of};
use super::sql::{Hour, Sql};

/// Called with each reading: the sweep, the frame, and the entry whose values the frame has.
pub(crate) type Visitor<'a> = dyn FnMut(SweepInterval, &Frame, &Entry) + 'a;

/// The times of a port's previous reading and of this one: to the millisecond, as in JSON.
pub(crate) fn reading_times(span: SweepInterval, entry: &Entry) -> (SystemTime, SystemTime) {
    let after = Duration::from_millis(entry.after.into());
    let read = |micros: i64| time_of(micros - micros.rem_euclid(1000)) + after;
    (read(span.since), read(span.began))
}

/// Some ports, by the parts that they are in.
#[derive(Clone, Debug, Default)]
pub(crate) struct PortSet {
    parts: BTreeMap<u32, Vec<u32>>,
}

impl FromIterator<u32> for PortSet {
    fn from_iter<I: IntoIterator<Item = u32>>(ports: I) -> Self {
        let mut set = PortSet::default();
        for port in ports {
            set.parts.entry(part_of(port)).or_default().push(port);
        }
        for ports in set.parts.values_mut() {
            ports.sort_unstable();
        }
        set
    }
}

impl PortSet {
    fn has(&self, port: u32) -> bool {
        self.parts.get(&part_of(port)).is_some_and(|ports| contains(ports, port))
    }
}

/// Whether a port is one of some in rising order.
fn contains(ports: &[u32], port: u32) -> bool {
    let (Some(first), Some(last)) = (ports.first(), ports.last()) else { return false };
    let is_between = (*first..=*last).contains(&port);
    // All ports of a part are as fast as a range.
    let is_range = (last - first) as usize == ports.len() - 1;
    is_between && (is_range || ports.binary_search(&port).is_ok())
}

/// Which readings are visited.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Walk<'a> {
    pub kind: RecordKind,
    /// Of one fabric; of some ports, and of kinds without parts, also of all.
    pub fabric: Option<i64>,
    /// Of these ports, or of all.
    pub ports: Option<&'a PortSet>,
    /// When the sweeps began whose frames are visited,
    pub began: (i64, i64),
    /// and when they ended at the earliest.
    pub ended: i64,
}

impl Walk<'_> {
    /// Visits the digests of some hours, and the frames of all sweeps that are in none of them. What is
    /// damaged is skipped: an hour whose digests cannot be read is visited by its frames, if they are
    /// still in the file.
    pub fn visit(
        &self,
        sql: Sql<'_>,
        hours: &[Hour],
        see: &mut Visitor<'_>,
    ) -> rusqlite::Result<()> {
        let parts: Vec<Option<u32>> = match self.ports {
            None => vec![None],
            Some(ports) => ports.parts.keys().copied().map(Some).collect(),
        };
        let mut digested = Vec::new();
        for part in parts {
            self.visit_digests(sql, hours, part, &mut digested, see)?;
            if self.kind.is_in_parts() {
                self.visit_frames(sql, part, &std::mem::take(&mut digested), see)?;
            }
        }
        if self.kind.is_in_parts() { Ok(()) } else { self.visit_frames(sql, None, &digested, see) }
    }

    /// Visits the digests of some hours; adds the hours that had any that can be read.
    fn visit_digests<'h>(
        &self,
        sql: Sql<'_>,
        hours: &'h [Hour],
        part: Option<u32>,
        digested: &mut Vec<&'h Hour>,
        see: &mut Visitor<'_>,
    ) -> rusqlite::Result<()> {
        let (Some(first), Some(last)) = (hours.first(), hours.last()) else { return Ok(()) };
        let by_id: HashMap<i64, &Hour> = hours.iter().map(|hour| (hour.id, hour)).collect();
        sql.digests(self.kind, first.id..=last.id, part, &mut |id, data| {
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
            match (self.ports, part) {
                (Some(ports), Some(part)) => {
                    ports.parts.get(&part).into_iter().flatten().for_each(|port| see(Some(*port)));
                }
                _ => see(None),
            }
            Ok(())
        })
    }

    fn visit_frames(
        &self,
        sql: Sql<'_>,
        part: Option<u32>,
        digested: &[&Hour],
        see: &mut Visitor<'_>,
    ) -> rusqlite::Result<()> {
        let of_part = part.zip(self.ports).and_then(|(part, ports)| ports.parts.get(&part));
        let is_wanted = |port: u32| match (of_part, self.ports) {
            (Some(ports), _) => contains(ports, port),
            (None, Some(ports)) => ports.has(port),
            (None, None) => true,
        };
        let began = self.began.0..=self.began.1;
        sql.frames(self.kind, self.fabric, part, began, &mut |row| {
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
