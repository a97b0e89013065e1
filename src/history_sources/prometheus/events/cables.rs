//! Cables that are new, that lead elsewhere, and that run at another rate.

use std::collections::{BTreeMap, BTreeSet};

use crate::history_sources::prometheus::client::Labels;
use crate::history_sources::prometheus::fabrics::rate;
use crate::history_sources::prometheus::look::{Look, end, end_at, fabric_end, fabric_link};
use crate::history_sources::prometheus::matchers;
use crate::history_sources::prometheus::matchers::selector;
use crate::history_sources::prometheus::timeline::{Timeline, changes, timelines};
use fabric_history::Kind;
use fabric_history::event::About;
use fabric_history::source::AskError;
use ib_fabric::topology::End;
use ib_mad::Guid;

use super::Event;
use super::came::came;

const LINK_INFO: &str = "infiniband_link_info";
const PORT_INFO: &str = "infiniband_port_info";

/// What a cable's series has besides its id.
const CABLE: [&str; 10] = [
    "guid",
    "port",
    "node",
    "node_type",
    "peer_guid",
    "peer_port",
    "peer_node",
    "peer_node_type",
    "speed",
    "width",
];

/// What a port's series has besides the port.
const PORT: [&str; 8] =
    ["node", "node_type", "peer_guid", "peer_port", "peer_node", "link", "speed", "width"];

/// Another rate is another series of the same cable.
pub(super) fn rates(look: &Look<'_>, only: &str) -> Result<Vec<Event>, AskError> {
    let matchers = [only.to_owned(), "width!=\"\"".into(), "speed!=\"\"".into()];
    let of = selector(LINK_INFO, &matchers);
    let changed = look.vector(&format!(
        "count by (fabric, link) (count by (fabric, link, speed, width) (last_over_time({of}{}))) > 1",
        look.range()
    ))?;
    let portions = look.links(&changed);
    let runs = look.runs(LINK_INFO, &portions)?;
    let mut events = Vec::new();
    let seen = timelines(&runs, fabric_link, &CABLE, |samples| {
        samples.iter().find_map(|(labels, _)| rate(labels))
    });
    for ((fabric, link), timeline) in seen {
        for (at, was, is) in changes(&timeline) {
            let (text, about) = (format!("{was} -> {is}"), About::Link(link));
            events.push(Event::new(at, &fabric, Kind::Rate, about, text));
        }
    }
    Ok(events)
}

/// Cables that were not there when the window began. A cable that led elsewhere before is not new:
/// its ports tell that.
pub(super) fn new(
    look: &Look<'_>,
    only: &str,
    begun: &BTreeMap<String, u64>,
) -> Result<Vec<Event>, AskError> {
    let came = came(look, LINK_INFO, only, &["link"], begun)?;
    let named = came.iter().filter_map(|sample| sample.labels.get("link"));
    let runs = look.runs(LINK_INFO, &matchers::one_of("link", named, look.at_once))?;
    let seen = timelines(&runs, fabric_link, &CABLE, |_| Some(()));
    let ends: BTreeSet<End> = seen.keys().flat_map(|(_, link)| link.ends()).collect();
    let leads = leads(look, &ends)?;
    let mut events = Vec::new();
    for ((fabric, link), timeline) in seen {
        let Some((at, ())) = timeline.first() else { continue };
        let led_before = link.ends().into_iter().any(|end| {
            let lead = leads.get(&(fabric.clone(), end));
            lead.and_then(|lead| lead.first()).is_some_and(|(first, _)| first < at)
        });
        if !led_before {
            let (about, text) = (About::Link(link), "it was not there before");
            events.push(Event::new(*at, &fabric, Kind::LinkNew, about, text));
        }
    }
    Ok(events)
}

/// Where a port's cable leads, and what is said of both.
type Lead = (End, String);

/// Ports whose cable leads elsewhere than it did.
pub(super) fn moved(look: &Look<'_>, only: &str) -> Result<Vec<Event>, AskError> {
    let of = selector(PORT_INFO, &[only.to_owned(), "peer_guid!=\"\"".into()]);
    let changed = look.vector(&format!(
        "count by (guid, port) (count by (guid, port, peer_guid, peer_port) \
         (last_over_time({of}{}))) > 1",
        look.range()
    ))?;
    let changed: BTreeSet<End> = changed.iter().filter_map(|sample| end(&sample.labels)).collect();
    let mut events = Vec::new();
    for ((fabric, (guid, number)), timeline) in leads(look, &changed)? {
        for (at, (from, was), (to, is)) in changes(&timeline) {
            // A node may have another name, and its cable may be the same.
            if from != to {
                let text = format!("its cable led to {was}, and leads to {is}");
                let about = About::Port(guid, number);
                events.push(Event::new(at, &fabric, Kind::PortMoved, about, text));
            }
        }
    }
    Ok(events)
}

/// Where some ports' cables led from scrape to scrape; of ports beside them, too.
fn leads(
    look: &Look<'_>,
    ends: &BTreeSet<End>,
) -> Result<BTreeMap<(String, End), Timeline<Lead>>, AskError> {
    let runs = look.runs(PORT_INFO, &matchers::ports(ends, look.at_once))?;
    Ok(timelines(&runs, fabric_end, &PORT, |samples| {
        samples.iter().find_map(|(labels, _)| lead(labels))
    }))
}

fn lead(labels: &Labels) -> Option<Lead> {
    let (guid, port): (Guid, u8) = end_at(labels, "peer_guid", "peer_port")?;
    let node = labels.get("peer_node").map_or("", String::as_str);
    Some(((guid, port), format!("{node} port {port} ({guid})")))
}
