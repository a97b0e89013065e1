//! Which parts of a window are recorded, and which are missing.

use std::collections::BTreeMap;
use std::time::Duration;

use rusqlite::Result;

use crate::file::packed;
use crate::file::record_kind::RecordKind;
use crate::file::sql::Sql;
use crate::model::{Coverage, FabricCoverage, Window};
use crate::time_of;

/// Number of intervals without a sweep that counts as a gap.
const GAP: f64 = 2.5;

/// Sweeps before a window from which the interval is computed if there are too few in it.
const BEFORE: u32 = 20;

pub(super) fn coverage(sql: Sql<'_>, window: Window) -> Result<Coverage> {
    let mut fabrics = BTreeMap::new();
    for (fabric, name) in sql.fabrics()? {
        fabrics.insert(name, of_fabric(sql, fabric, window)?);
    }
    Ok(Coverage { fabrics, damaged: damaged(sql, window)? })
}

fn of_fabric(sql: Sql<'_>, fabric: i64, window: Window) -> Result<FabricCoverage> {
    let (from, to) = window.micros();
    let sweeps = sql.sweeps(fabric, from, to)?;
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
    let spans = ends.iter().zip(ends.iter().skip(1)).map(|(&from, &to)| Window { from, to });
    let gaps = spans.filter(|gap| sweeps.is_empty() || gap.length() > most).collect();
    // The earliest frame has what was counted since the sweep before it.
    let traffic_from = match sql.first_frame(RecordKind::TrafficDeltas, fabric)? {
        Some(first) => Some(time_of(sql.sweep_before(fabric, first)?).max(window.from)),
        None => None,
    };
    Ok(FabricCoverage { sweeps: sweeps.len(), interval, gaps, traffic_from })
}

/// How many sweeps' errors cannot be read. (Traffic is not checked for this: it is hundreds of times as much.)
fn damaged(sql: Sql<'_>, window: Window) -> Result<usize> {
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
