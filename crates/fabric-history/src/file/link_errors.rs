//! What a restarted exporter needs of the last two hours to continue the bit error windows of links: which links did not
//! change since, and their errors.

use std::collections::HashMap;
use std::time::SystemTime;

use rusqlite::Result;

use crate::event::EventKind;
use crate::file::counter_ids::CounterIds;
use crate::file::record_kind::RecordKind;
use crate::file::sql::Sql;
use crate::file::timeline::Timeline;
use crate::file::walk::Walk;
use crate::{micros_of, time_of};
use ib_fabric::topology::LinkId;
use ib_health::lost_data::lost_data;
use ib_health::recorded::{LinkErrors, RecordedErrors};
use ib_mad::Counter;

/// The errors of a port, and the latest moment before which its counters do not show those of the present link.
#[derive(Default)]
struct EndErrors {
    by: Vec<(i64, u64)>,
    since: Option<i64>,
}

/// The errors of a fabric's links until its last sweep before `now`, if that is recent.
pub(crate) fn link_errors(
    sql: Sql<'_>,
    counters: &CounterIds,
    fabric: i64,
    now: SystemTime,
) -> Result<RecordedErrors> {
    let (from, to) = (micros_of(now - RecordedErrors::longest()), micros_of(now));
    let sweeps = sweeps(sql, fabric, from, to)?;
    let (Some(&first), Some(&last)) = (sweeps.first(), sweeps.last()) else {
        return Ok(RecordedErrors::default());
    };
    let mut ports = port_errors(sql, counters, fabric, first, last)?;
    let timeline = Timeline::read(sql, fabric, first, last)?;
    // What counters that fell had counted is not known; they may have been saturated.
    let mut resets_of_nodes: HashMap<u32, i64> = HashMap::new();
    for (port, node, at, is_repeated) in
        sql.events_of_kind(fabric, EventKind::CounterReset.label(), first, to)?
    {
        // Resets after it have no events.
        let at = if is_repeated { last } else { at };
        if let Some(port) = port {
            let port = ports.entry(port).or_default();
            port.since = port.since.max(Some(at));
        } else if let Some(node) = node {
            let latest = resets_of_nodes.entry(node).or_insert(at);
            *latest = at.max(*latest);
        }
    }
    let mut links = HashMap::new();
    for cable in timeline.cables.iter().filter(|cable| cable.is_present(last)) {
        let [Some(low), Some(high)] = cable.ends.map(|port| timeline.end(port)) else { continue };
        let states = cable.ends.map(|port| timeline.state_since(port, last));
        let Some(rate) = states.iter().find_map(|(_, state)| state.runs()) else { continue };
        let mut since = first.max(cable.since);
        for (port, (state_since, _)) in cable.ends.into_iter().zip(states) {
            let node = timeline.ports.get(port).map(|port| &port.node);
            let reset = node.and_then(|node| resets_of_nodes.get(node)).copied();
            let counted = ports.get(&port).and_then(|port| port.since);
            since = since.max(state_since).max(reset.max(counted).unwrap_or(first));
        }
        if since > last || states.iter().any(|(_, state)| state.up() != Some(true)) {
            continue;
        }
        let mut ends = cable.ends;
        if high < low {
            ends.reverse();
        }
        let ends = ends.map(|port| {
            let by = ports.remove(&port).map(|port| port.by).unwrap_or_default().into_iter();
            by.filter(|(at, _)| *at > since).map(|(at, by)| (time_of(at), by)).collect()
        });
        let link = LinkErrors { since: time_of(since), rate, ends };
        links.insert(LinkId::between(low, high), link);
    }
    Ok(RecordedErrors { sweeps: sweeps.into_iter().map(time_of).collect(), links })
}

/// The errors that ports counted in the sweeps of a time range, and since when they count them for the present link.
fn port_errors(
    sql: Sql<'_>,
    counters: &CounterIds,
    fabric: i64,
    first: i64,
    last: i64,
) -> Result<HashMap<u32, EndErrors>> {
    let mut ports: HashMap<u32, EndErrors> = HashMap::new();
    let mut hours = sql.hours((first, last))?;
    hours.retain(|hour| hour.fabric == fabric);
    let (fabric, began, ended) = (Some(fabric), (first, last), first);
    let walk = |kind| Walk { sql, kind, fabric, ports: None, began, ended };
    walk(RecordKind::ErrorDeltas).visit(&hours, &mut |sweep, frame, entry| {
        if !(first..=last).contains(&sweep.began) {
            return;
        }
        let (mut errors, mut is_downed) = (None, false);
        for (counter, by) in counters.values(frame, entry) {
            errors = errors.max(lost_data(|of| (of == counter).then_some(by)));
            is_downed |= counter == Counter::LinkDowned;
        }
        if errors.is_some() || is_downed {
            let port = ports.entry(entry.port).or_default();
            port.by.extend(errors.map(|by| (sweep.began, by)));
            port.since = port.since.max(is_downed.then_some(sweep.began));
        }
    })?;
    walk(RecordKind::FirstTotals).visit(&[], &mut |sweep, frame, entry| {
        if counters.values(frame, entry).any(|(counter, _)| counter == Counter::SymbolErrors) {
            let port = ports.entry(entry.port).or_default();
            port.since = port.since.max(Some(sweep.began));
        }
    })?;
    for port in ports.values_mut() {
        port.by.sort_unstable();
    }
    Ok(ports)
}

/// When the latest sweeps in a time range began, in the order of writing: those since the time of day was last set.
fn sweeps(sql: Sql<'_>, fabric: i64, from: i64, to: i64) -> Result<Vec<i64>> {
    let jump = sql.latest_event_at(EventKind::ClockJump.label(), from, to)?;
    let (mut sweeps, mut ambiguous) = (Vec::new(), i64::MIN);
    for began in sql.sweeps_written(fabric, jump.unwrap_or(from), to)? {
        if let Some(last) = sweeps.pop_if(|last| *last >= began) {
            // Until then, a time may be that of two sweeps.
            ambiguous = last;
            sweeps.clear();
        }
        if began > ambiguous {
            sweeps.push(began);
        }
    }
    Ok(sweeps)
}
