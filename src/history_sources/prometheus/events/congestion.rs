//! Ports that others waited for, from when on and until when.

use crate::history_sources::prometheus::client::Labels;
use crate::history_sources::prometheus::look::{Look, end_at, fabric};
use crate::history_sources::prometheus::timeline::{numbers, timelines};
use fabric_history::Kind;
use fabric_history::model::time;
use fabric_history::source::AskError;
use ib_fabric::topology::End;
use ib_health::congestion::GRACE;

use super::Event;

fn root(labels: &Labels) -> Option<(String, End)> {
    Some((fabric(labels)?, end_at(labels, "root_guid", "root_port")?))
}

/// Jobs communicate in bursts: what was gone for no longer than the judge's own patience is the same
/// congestion.
pub(super) fn roots(look: &Look<'_>) -> Result<Vec<Event>, AskError> {
    let regions = look.runs("infiniband_congestion_region_ports", &[Vec::new()])?;
    let shares = look.runs("infiniband_congestion_region_wait_ratio", &[Vec::new()])?;
    let shares = numbers(&shares, root, &[]);
    let seen = timelines(&regions, root, &["level"], |samples| {
        let (labels, ports) = samples.first()?;
        Some((*ports, labels.get("level").cloned().unwrap_or_default()))
    });
    let grace = u64::try_from(GRACE.as_millis()).unwrap_or(u64::MAX);
    let mut events = Vec::new();
    for (key, timeline) in seen {
        let shares = shares.get(&key);
        let (fabric, end) = &key;
        let mut before: Option<u64> = None;
        let mut ended = |at: u64| {
            let text = "no ports wait for it any more";
            Event::new(at, fabric, Kind::CongestionEnded, (*end).into(), text)
        };
        for (at, (ports, level)) in &timeline {
            if before.is_none_or(|before| at - before > grace) {
                events.extend(before.map(&mut ended));
                let share = shares.and_then(|all| all.iter().find(|(when, _)| when == at));
                let share = share.map_or(0.0, |(_, share)| share * 100.0);
                let text =
                    format!("ports that wait: {ports}, up to {share:.0} % of the time ({level})");
                events.push(Event::new(*at, fabric, Kind::CongestionBegan, (*end).into(), text));
            }
            before = Some(*at);
        }
        let is_over = |last: &u64| {
            time::millis(look.window.to) - last.min(&time::millis(look.window.to)) > grace
        };
        events.extend(before.filter(is_over).map(ended));
    }
    Ok(events)
}
