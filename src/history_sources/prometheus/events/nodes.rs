//! Nodes that went, came back, and are new.

use std::collections::BTreeMap;

use crate::history_sources::prometheus::client::Labels;
use crate::history_sources::prometheus::look::{Look, fabric, guid};
use crate::history_sources::prometheus::matchers;
use crate::history_sources::prometheus::matchers::selector;
use crate::history_sources::prometheus::timeline::{changes, numbers, timelines};
use fabric_history::Kind;
use fabric_history::event::About;
use fabric_history::source::AskError;
use ib_mad::Guid;

use super::Event;
use super::came::came;

fn node(labels: &Labels) -> Option<(String, Guid)> {
    Some((fabric(labels)?, guid(labels)?))
}

pub(super) fn gone_and_back(look: &Look<'_>, only: &str) -> Result<Vec<Event>, AskError> {
    const UP: &str = "infiniband_node_up";
    let of = selector(UP, &[only.to_owned()]);
    let changed = look.vector(&format!("max by (guid) (changes({of}{})) > 0", look.range()))?;
    let named = changed.iter().filter_map(|sample| sample.labels.get("guid"));
    let runs = look.runs(UP, &matchers::one_of("guid", named, look.at_once))?;
    let mut events = Vec::new();
    for ((fabric, guid), timeline) in numbers(&runs, node, &[]) {
        for (at, _, up) in changes(&timeline) {
            let (kind, text) = if *up > 0.0 {
                (Kind::NodeBack, "it answers again")
            } else {
                (Kind::NodeGone, "it does not answer, or no cable leads to it any more")
            };
            events.push(Event::new(at, &fabric, kind, About::Node(guid), text));
        }
    }
    Ok(events)
}

/// Nodes that were not there when the window began.
pub(super) fn new(
    look: &Look<'_>,
    only: &str,
    begun: &BTreeMap<String, u64>,
) -> Result<Vec<Event>, AskError> {
    const INFO: &str = "infiniband_node_info";
    let came = came(look, INFO, only, &["guid"], begun)?;
    let named = came.iter().filter_map(|sample| sample.labels.get("guid"));
    let runs = look.runs(INFO, &matchers::one_of("guid", named, look.at_once))?;
    let own = ["node", "node_type", "vendor_id", "device_id", "lid"];
    let seen = timelines(&runs, node, &own, |samples| {
        samples.iter().find_map(|(labels, _)| labels.get("node_type").cloned())
    });
    let mut events = Vec::new();
    for ((fabric, guid), timeline) in seen {
        if let Some((at, kind)) = timeline.first() {
            let text = format!("a {kind} that was not there before");
            events.push(Event::new(*at, &fabric, Kind::NodeNew, About::Node(guid), text));
        }
    }
    Ok(events)
}
