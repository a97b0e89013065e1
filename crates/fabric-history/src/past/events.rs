//! What events say of the time until a moment: since when links have their verdicts and why, their flaps, and since when
//! nodes are down.

use std::collections::HashMap;
use std::time::{Duration, SystemTime};

use rusqlite::types::ValueRef;
use rusqlite::{Result, params};
use serde_json::Value;

use crate::event::{EventKind, downtime_of};
use crate::file::sql::Sql;
use crate::time_of;
use ib_health::outage::Outages;
use ib_health::verdict::Repair;
use ib_health::{Reason, Verdict};

/// The most events that are read of the time since the exporter started: 30,000 take 60 ms.
const MOST_EVENTS: usize = 30_000;

/// What events said last until a moment.
#[derive(Debug, Default)]
pub(super) struct LastEvents {
    /// By the ids of their links.
    pub links: HashMap<i64, LinkEvents>,
    /// When nodes that did not come up again went down, by their ids.
    pub nodes_down: HashMap<u32, SystemTime>,
    /// The latest absence of nodes that came up again.
    pub nodes_returned: HashMap<u32, Absence>,
}

/// When a node went down, and came up again.
#[derive(Clone, Copy, Debug)]
pub(super) struct Absence {
    pub down: SystemTime,
    pub up: SystemTime,
}

/// What events said last of a link.
#[derive(Debug, Default)]
pub(super) struct LinkEvents {
    /// The latest verdict that was recorded.
    pub verdict: Option<RecordedVerdict>,
    /// Since when it has this verdict.
    pub since: Option<SystemTime>,
    /// Its losses since the exporter started.
    pub outages: Outages,
    /// When it last went down or came up.
    pub last_change: Option<SystemTime>,
    has_flaps: bool,
}

/// A verdict as an event has it.
#[derive(Clone, Debug)]
pub(super) struct RecordedVerdict {
    pub verdict: Verdict,
    pub repair: Option<Repair>,
    /// Each with the verdict that it alone would cause, and its evidence; the worst first.
    pub reasons: Vec<(Reason, Verdict, String)>,
}

impl RecordedVerdict {
    fn of(detail: &Value) -> Option<Self> {
        let label = |value: &Value, key: &str| value[key].as_str().map(str::to_owned);
        let reasons = detail["reasons"].as_array().into_iter().flatten().filter_map(|it| {
            let reason = Reason::from_label(&label(it, "reason")?)?;
            let weight = Verdict::from_label(&label(it, "verdict")?)?;
            Some((reason, weight, label(it, "evidence")?))
        });
        Some(RecordedVerdict {
            verdict: Verdict::from_label(&label(detail, "to")?)?,
            repair: label(detail, "repair").and_then(|label| Repair::from_label(&label)),
            reasons: reasons.collect(),
        })
    }
}

impl LinkEvents {
    /// Whether the detail of an event of a kind matters, beside those that were added already.
    fn wants(&self, kind: EventKind) -> bool {
        match kind {
            EventKind::VerdictChanged | EventKind::VerdictUpdated => self.verdict.is_none(),
            _ => kind == EventKind::Flap,
        }
    }

    /// Adds an event that was before those that were added already.
    fn add_earlier(&mut self, kind: EventKind, at: SystemTime, detail: &Value) {
        match kind {
            EventKind::VerdictChanged | EventKind::VerdictUpdated => {
                if self.verdict.is_none() {
                    self.verdict = RecordedVerdict::of(detail);
                }
                if kind == EventKind::VerdictChanged {
                    self.since.get_or_insert(at);
                }
            }
            EventKind::LinkDown | EventKind::LinkUp => {
                self.last_change = self.last_change.max(Some(at));
            }
            EventKind::Flap => {
                let flaps = detail["flaps"].as_u64().unwrap_or(1);
                // The latest has those before it.
                if !std::mem::replace(&mut self.has_flaps, true) {
                    self.outages.flaps = u32::try_from(flaps).unwrap_or(u32::MAX);
                }
                self.outages.down += downtime_of(detail).unwrap_or_default();
                self.last_change = self.last_change.max(Some(at));
            }
            _ => {}
        }
    }
}

const KINDS: [EventKind; 8] = [
    EventKind::ExporterStart,
    EventKind::VerdictChanged,
    EventKind::VerdictUpdated,
    EventKind::LinkDown,
    EventKind::LinkUp,
    EventKind::Flap,
    EventKind::NodeDown,
    EventKind::NodeUp,
];

/// Whether a flap was counted when a sweep ended. The event has the time at which the link went down; what caused it is
/// decided minutes later. Files of earlier builds do not say when: not before the link was up again.
fn is_known_by(flap: &Value, swept: SystemTime) -> bool {
    let time = |key: &str| humantime::parse_rfc3339(flap[key].as_str()?).ok();
    // It is recorded to the millisecond.
    let swept = swept + Duration::from_millis(1);
    time("counted_at").or_else(|| time("up_again")).is_none_or(|known| known <= swept)
}

/// Reads the events of a fabric until a moment, the latest first, back to the start of the exporter: a start repeats
/// what is still true. `swept` is when the sweep that is shown ended.
pub(super) fn read(sql: Sql<'_>, fabric: i64, at: i64, swept: SystemTime) -> Result<LastEvents> {
    let mut last = LastEvents::default();
    // Of nodes that were seen: when they came up, until it is found when they went down before.
    let mut up_at: HashMap<u32, Option<SystemTime>> = HashMap::new();
    let kinds = KINDS.map(|kind| format!("'{}'", kind.label())).join(", ");
    let events = format!(
        "SELECT kind, at, link, node, detail FROM events WHERE at <= ?1 AND fabric = ?2
         AND kind IN ({kinds}) ORDER BY at DESC, id DESC"
    );
    let mut statement = sql.0.prepare_cached(&events)?;
    let mut rows = statement.query(params![at, fabric])?;
    let mut count = 0;
    while let Some(row) = rows.next()? {
        count += 1;
        let kind: String = row.get(0)?;
        let Some(kind) = EventKind::from_label(&kind) else { continue };
        if kind == EventKind::ExporterStart || count > MOST_EVENTS {
            break;
        }
        let at = time_of(row.get(1)?);
        let (link, node): (Option<i64>, Option<u32>) = (row.get(2)?, row.get(3)?);
        if let Some(link) = link {
            let link = last.links.entry(link).or_default();
            // Most are of links whose verdict a later one told: their details are not parsed.
            let text = match row.get_ref(4)? {
                ValueRef::Text(text) if link.wants(kind) => text,
                _ => b"null",
            };
            let detail: Value = serde_json::from_slice(text).unwrap_or_default();
            if kind != EventKind::Flap || is_known_by(&detail, swept) {
                link.add_earlier(kind, at, &detail);
            }
        } else if let Some(node) = node {
            match (kind, up_at.get(&node).copied()) {
                (EventKind::NodeUp, None) => drop(up_at.insert(node, Some(at))),
                (EventKind::NodeDown, None) => {
                    last.nodes_down.insert(node, at);
                    up_at.insert(node, None);
                }
                (EventKind::NodeDown, Some(Some(up))) => {
                    last.nodes_returned.insert(node, Absence { down: at, up });
                    up_at.insert(node, None);
                }
                _ => {}
            }
        }
    }
    Ok(last)
}
