//! What happened, as far as series say it: the same kinds as the recorder's own, in much the same
//! words.

mod cables;
mod came;
mod congestion;
mod exporters;
mod links;
mod nodes;
mod ports;

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use fabric_history::Kind;
use fabric_history::event::About;
use fabric_history::model::{Told, time};
use fabric_history::source::{AskError, Wanted};
use ib_fabric::topology::{End, LinkId};
use ib_mad::Guid;

use super::cover::scrapes;
use super::look::Look;
use super::matchers;
use super::names::Names;

/// Something that happened; what it is about has no name yet.
#[derive(Clone, Debug, PartialEq)]
struct Event {
    /// Milliseconds since 1970.
    at: u64,
    fabric: String,
    kind: Kind,
    about: About,
    text: String,
    detail: Value,
}

impl Event {
    fn new(at: u64, fabric: &str, kind: Kind, about: About, text: impl Into<String>) -> Self {
        Event { at, fabric: fabric.to_owned(), kind, about, text: text.into(), detail: Value::Null }
    }

    /// The nodes that it is about.
    fn nodes(&self) -> Vec<Guid> {
        match self.about {
            About::All => Vec::new(),
            About::Node(guid) | About::Port(guid, _) => vec![guid],
            About::Link(link) => link.ends().map(|(guid, _)| guid).to_vec(),
        }
    }

    /// Whether somebody who asks for these wants to hear of it, as with the recorder's file.
    fn is_wanted(&self, wanted: &Wanted) -> bool {
        let nodes = || self.nodes();
        let of_nodes =
            wanted.nodes.is_empty() || nodes().iter().any(|guid| wanted.nodes.contains(guid));
        let of_ports = wanted.ports.is_empty()
            || match self.about {
                About::All => false,
                // What befalls a node befalls its ports.
                About::Node(guid) => wanted.ports.iter().any(|(known, _)| *known == guid),
                About::Port(guid, number) => wanted.ports.contains(&(guid, number)),
                About::Link(link) => link.ends().iter().any(|end| wanted.ports.contains(end)),
            };
        of_nodes && of_ports
    }
}

/// What is asked of the server where few ports or nodes are wanted: a matcher a kind of series.
#[derive(Debug, Default)]
struct Only {
    links: String,
    /// Of ports and of nodes.
    nodes: String,
}

/// How many nodes a question is narrowed to; of more, all are asked for.
const FEW: usize = 100;

impl Only {
    fn of(wanted: &Wanted) -> Self {
        let ports = wanted.ports.iter().map(|(guid, _)| *guid);
        let guids: BTreeSet<Guid> = wanted.nodes.iter().copied().chain(ports).collect();
        if guids.is_empty() || guids.len() > FEW {
            return Only::default();
        }
        let guids: Vec<String> = guids.iter().map(ToString::to_string).collect();
        let nodes = matchers::one_of("guid", &guids, FEW).concat().concat();
        Only { links: format!("link=~\".*({}).*\"", guids.join("|")), nodes }
    }
}

/// All that is wanted of what happened in a window, the earliest first.
pub(super) fn events(look: &Look<'_>, wanted: &Wanted) -> Result<Vec<Told>, AskError> {
    let is_wanted = |kinds: &[Kind]| {
        wanted.kinds.is_empty() || kinds.iter().any(|kind| wanted.kinds.contains(kind))
    };
    let only = Only::of(wanted);
    let mut events: Vec<Event> = Vec::new();
    let scrapes = scrapes(look)?;
    let begun: BTreeMap<String, u64> = (scrapes.iter())
        .filter_map(|(fabric, scrapes)| Some((fabric.clone(), scrapes.first()?.0)))
        .map(|(fabric, first)| (fabric, first.max(time::millis(look.window.from))))
        .collect();
    if is_wanted(&[Kind::ExporterStart, Kind::Verdict]) {
        events.extend(exporters::started(look)?);
    }
    let starts: Vec<(String, u64)> =
        events.iter().map(|start| (start.fabric.clone(), start.at)).collect();
    if is_wanted(&[Kind::SweepFailed, Kind::SweepBack]) {
        events.extend(exporters::failed(look)?);
        events.extend(exporters::unseen(look, &scrapes));
    }
    if is_wanted(&[Kind::LinkDown, Kind::LinkUp, Kind::Flap, Kind::ExpectedLoss]) {
        let seen = links::up_and_down(look, &only.links)?;
        if is_wanted(&[Kind::Flap, Kind::ExpectedLoss]) {
            events.extend(links::losses(look, &only.links, &seen)?);
        }
        events.extend(seen);
    }
    if is_wanted(&[Kind::Verdict]) {
        events.extend(links::verdicts(look, &only.links, &starts)?);
    }
    if is_wanted(&[Kind::Rate]) {
        events.extend(cables::rates(look, &only.links)?);
    }
    if is_wanted(&[Kind::LinkNew]) {
        events.extend(cables::new(look, &only.links, &begun)?);
    }
    if is_wanted(&[Kind::PortMoved]) {
        events.extend(cables::moved(look, &only.nodes)?);
    }
    if is_wanted(&[Kind::NodeGone, Kind::NodeBack]) {
        events.extend(nodes::gone_and_back(look, &only.nodes)?);
    }
    if is_wanted(&[Kind::NodeNew]) {
        events.extend(nodes::new(look, &only.nodes, &begun)?);
    }
    if is_wanted(&[Kind::CounterReset]) {
        events.extend(ports::resets(look, &only.nodes)?);
    }
    if is_wanted(&[Kind::Saturation]) {
        events.extend(ports::saturations(look, &only.nodes, &begun)?);
    }
    if is_wanted(&[Kind::CongestionBegan, Kind::CongestionEnded]) {
        events.extend(congestion::roots(look)?);
    }
    events
        .retain(|event| look.has(event.at) && is_wanted(&[event.kind]) && event.is_wanted(wanted));
    events.sort_by_key(|event| event.at);
    let names = Names::ask(look, events.iter().flat_map(Event::nodes))?;
    Ok(events.into_iter().map(|event| told(event, &names)).collect())
}

fn told(event: Event, names: &Names) -> Told {
    let Event { at, fabric, kind, about, text, detail } = event;
    let (node, port, link, place): (Option<Guid>, Option<u8>, Option<LinkId>, String) = match about
    {
        About::All => (None, None, None, fabric.clone()),
        About::Node(guid) => (Some(guid), None, None, names.node(&fabric, guid)),
        About::Port(guid, number) => {
            let end: End = (guid, number);
            (Some(guid), Some(number), None, names.port(&fabric, end).label())
        }
        About::Link(link) => (None, None, Some(link), names.link(&fabric, link)),
    };
    let (at, kind) = (time::of_millis(at), kind.label().to_owned());
    Told { at, fabric, kind, node, port, link, place, text, detail }
}
