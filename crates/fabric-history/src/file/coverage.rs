//! Which parts of a window the file has sweeps of.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::time::{Duration, SystemTime};

use crate::model::{Coverage, FabricCoverage, Window};
use crate::time_of;

use super::digest::Digest;
use super::frame::Frame;
use super::packed;
use super::record_kind::RecordKind;
use super::sql::Sql;

/// Number of intervals without a sweep that counts as a gap.
const GAP: f64 = 2.5;

/// Sweeps before a window from which the interval is computed if there are too few in it.
const BEFORE: u32 = 20;

/// The coverage of a window.
pub(super) fn coverage(sql: Sql<'_>, window: Window) -> rusqlite::Result<Coverage> {
    let mut fabrics = BTreeMap::new();
    for (fabric, name) in sql.fabrics()? {
        fabrics.insert(name, of_fabric(sql, fabric, window)?);
    }
    Ok(Coverage { fabrics, damaged: damaged(sql, window)? })
}

fn of_fabric(sql: Sql<'_>, fabric: i64, window: Window) -> rusqlite::Result<FabricCoverage> {
    let (from, to) = window.micros();
    let sweeps = sql.sweeps(fabric, from..=to)?;
    let length = |(began, since): &(i64, Option<i64>)| Some(began - (*since)?);
    let mut lengths: Vec<i64> = sweeps.iter().filter_map(length).collect();
    if lengths.is_empty() {
        lengths.extend(sql.sweeps_until(fabric, to, BEFORE)?.iter().filter_map(length));
    }
    lengths.sort_unstable();
    let interval = lengths.get(lengths.len() / 2).map_or(0.0, |micros| *micros as f64 / 1e6);
    // After a single sweep it is not known when the next one was due.
    let most = if interval > 0.0 { GAP * interval } else { f64::INFINITY };
    let most = Duration::try_from_secs_f64(most).unwrap_or(Duration::MAX);
    let mut ends = vec![window.from];
    ends.extend(sweeps.iter().map(|(began, _)| time_of(*began)));
    ends.push(window.to);
    let spans = ends.windows(2).filter_map(|pair| {
        let [from, to] = *pair else { return None };
        Some(Window { from, to })
    });
    let gaps = spans.filter(|gap| sweeps.is_empty() || gap.length() > most).collect();
    // The earliest frame has what was counted since the sweep before it.
    let traffic_from = match sql.first_frame(RecordKind::TrafficDeltas, fabric)? {
        Some(first) => Some(time_of(sql.sweep_before(fabric, first)?).max(window.from)),
        None => None,
    };
    Ok(FabricCoverage { sweeps: sweeps.len(), interval, gaps, traffic_from })
}

/// How many sweeps' errors cannot be read. (Traffic is not checked for this: it is hundreds of times as
/// much.)
fn damaged(sql: Sql<'_>, window: Window) -> rusqlite::Result<usize> {
    let (from, to) = window.micros();
    let mut damaged = 0;
    sql.frames(RecordKind::ErrorDeltas, None, None, from..=to, &mut |row| {
        damaged += usize::from(!packed::is_whole(row.data));
        Ok(())
    })?;
    for hour in sql.hours((from, to))? {
        let mut is_whole = true;
        sql.digests(RecordKind::ErrorDeltas, hour.id..=hour.id, None, &mut |_, data| {
            is_whole &= packed::is_whole(data);
            Ok(())
        })?;
        damaged += if is_whole { 0 } else { hour.count };
    }
    Ok(damaged)
}

/// How many sweeps can be read of a kind, how many cannot, and when the latest ended.
pub(super) fn count_sweeps(
    sql: Sql<'_>,
    kind: RecordKind,
) -> rusqlite::Result<(usize, usize, Option<SystemTime>)> {
    let mut sweeps: HashMap<(i64, i64), bool> = HashMap::new();
    let (mut damaged_hours, mut last) = (HashSet::new(), None);
    for (fabric, _) in sql.fabrics()? {
        sql.frames(kind, Some(fabric), None, i64::MIN..=i64::MAX, &mut |row| {
            *sweeps.entry((fabric, row.began)).or_insert(true) &= Frame::unpack(row.data).is_ok();
            last = last.max(Some(row.ended));
            Ok(())
        })?;
    }
    let damaged = sweeps.values().filter(|is_whole| !**is_whole).count();
    let whole = sweeps.len() - damaged;
    if kind != RecordKind::ErrorDeltas {
        return Ok((whole, damaged, last.map(time_of)));
    }
    let mut digested: HashSet<(i64, i64)> = HashSet::new();
    for hour in sql.hours((i64::MIN, i64::MAX))? {
        sql.digests(kind, hour.id..=hour.id, None, &mut |_, data| {
            match Digest::unpack(data, *hour.sweeps.start()) {
                Ok(digest) => {
                    digested.extend(digest.spans().iter().map(|span| (hour.fabric, span.began)));
                }
                Err(_) => drop(damaged_hours.insert(hour.id)),
            }
            last = last.max(Some(hour.ended));
            Ok(())
        })?;
    }
    Ok((whole + digested.len(), damaged + damaged_hours.len(), last.map(time_of)))
}
