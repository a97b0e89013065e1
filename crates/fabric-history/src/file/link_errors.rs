//! What a restarted exporter needs of the last two hours to continue the bit error windows of links: which links did not
//! change since, and their errors.

use std::collections::HashMap;
use std::time::SystemTime;

use rusqlite::Result;

use crate::event::EventKind;
use crate::file::record_kind::{CounterIds, RecordKind};
use crate::file::sql::Sql;
use crate::file::timeline::Timeline;
use crate::file::walk::Walk;
use crate::{micros_of, time_of};
use ib_fabric::topology::LinkId;
use ib_health::recorded::{LinkErrors, RecordedErrors, lost_data};
use ib_mad::Counter;

/// The errors of a port, and when it last counted a link down.
#[derive(Default)]
struct PortErrors {
    by: Vec<(i64, u64)>,
    downed: Option<i64>,
}

/// The errors of a fabric's links until its last sweep, if that is recent.
pub(crate) fn link_errors(
    sql: Sql<'_>,
    counters: &CounterIds,
    fabric: i64,
    now: SystemTime,
) -> Result<RecordedErrors> {
    let from = micros_of(now - RecordedErrors::longest());
    let sweeps = sweeps(sql, fabric, from)?;
    let (Some(&first), Some(&last)) = (sweeps.first(), sweeps.last()) else {
        return Ok(RecordedErrors::default());
    };
    let mut errors: HashMap<u32, PortErrors> = HashMap::new();
    let mut hours = sql.hours((first, last))?;
    hours.retain(|hour| hour.fabric == fabric);
    let (kind, began) = (RecordKind::ErrorDeltas, (first, last));
    let walk = Walk { sql, kind, fabric: Some(fabric), ports: None, began, ended: first };
    walk.visit(&hours, &mut |sweep, frame, entry| {
        if !(first..=last).contains(&sweep.began) {
            return;
        }
        let (mut errors_of_sweep, mut downed) = (None, false);
        for (counter, by) in counters.values(frame, entry) {
            errors_of_sweep = errors_of_sweep.max(lost_data(|of| (of == counter).then_some(by)));
            downed |= counter == Counter::LinkDowned;
        }
        if errors_of_sweep.is_none() && !downed {
            return;
        }
        let port = errors.entry(entry.port).or_default();
        port.by.extend(errors_of_sweep.map(|by| (sweep.began, by)));
        port.downed = port.downed.max(downed.then_some(sweep.began));
    })?;
    for port in errors.values_mut() {
        port.by.sort_unstable();
    }
    let timeline = Timeline::read(sql, fabric, first, last)?;
    let mut links = HashMap::new();
    for cable in timeline.cables.iter().filter(|cable| cable.is_present(last)) {
        let [Some(low), Some(high)] = cable.ends.map(|port| timeline.end(port)) else { continue };
        let states = cable.ends.map(|port| timeline.state_since(port, last));
        let Some(rate) = states.iter().find_map(|(_, state)| state.runs()) else { continue };
        if states.iter().any(|(_, state)| state.up() != Some(true)) {
            continue;
        }
        let downed = cable.ends.map(|port| errors.get(&port)?.downed);
        let changes =
            states.into_iter().map(|(since, _)| since).chain(downed.into_iter().flatten());
        let since = changes.fold(first.max(cable.since), i64::max);
        let mut ends = cable.ends;
        if high < low {
            ends.reverse();
        }
        let ends = ends.map(|port| {
            let by = errors.get(&port).map_or(&[][..], |port| &port.by);
            let by = by.iter().filter(|(at, _)| *at > since);
            by.map(|(at, by)| (time_of(*at), *by)).collect()
        });
        let link = LinkErrors { since: time_of(since), rate, ends };
        links.insert(LinkId::between(low, high), link);
    }
    Ok(RecordedErrors { sweeps: sweeps.into_iter().map(time_of).collect(), links })
}

/// When the latest sweeps began, from a moment on, in the order of writing: those since the time of day was last set.
fn sweeps(sql: Sql<'_>, fabric: i64, from: i64) -> Result<Vec<i64>> {
    let from = from.max(sql.latest_event_at(EventKind::ClockJump.label(), from)?.unwrap_or(from));
    let (mut sweeps, mut ambiguous) = (Vec::new(), i64::MIN);
    for began in sql.sweeps_written(fabric, from)? {
        if let Some(last) = sweeps.pop_if(|last| *last >= began) {
            // Times until then are those of two sweeps.
            ambiguous = last;
            sweeps.clear();
        }
        if began > ambiguous {
            sweeps.push(began);
        }
    }
    Ok(sweeps)
}
