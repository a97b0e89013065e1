//! When links flapped: with it a restarted exporter knows the days on which they did.

use std::collections::HashMap;
use std::time::SystemTime;

use rusqlite::Result;

use crate::event::{EventKind, FlapCause};
use crate::file::sql::{Order, Sql};
use crate::model::Window;
use crate::source::EventFilter;
use ib_fabric::topology::LinkId;
use ib_health::recorded::RecordedFlaps;
use ib_mad::PortKey;

/// The flaps in a window, by link. Those before a change of its cable were of another
/// cable. Earlier versions did not record what caused a flap: it may have been a node, so it does not count.
pub(crate) fn flaps(sql: Sql<'_>, fabric: &str, window: Window) -> Result<RecordedFlaps> {
    let kinds = vec![EventKind::Flap, EventKind::CableChanged, EventKind::CableMoved];
    let filter = EventFilter { kinds, ..EventFilter::all(window) };
    let mut flaps = RecordedFlaps::new();
    let mut changed: HashMap<PortKey, SystemTime> = HashMap::new();
    sql.events(&filter, Order::EarliestFirst(None), &mut |_, event| {
        if event.fabric != fabric {
            return true;
        }
        if let Some(link) = event.link {
            if event.detail["cause"] == FlapCause::Link.label() {
                flaps.entry(link).or_default().push(event.at);
            }
        } else if let Some(end) = event.port_key() {
            changed.insert(end, event.at);
        }
        true
    })?;
    flaps.retain(|link: &LinkId, times| {
        let changed = link.ends().into_iter().filter_map(|end| changed.get(&end)).max();
        times.retain(|at| changed.is_none_or(|changed| at > changed));
        !times.is_empty()
    });
    Ok(flaps)
}
