//! A source with given answers, for tests of this and other crates.
#![allow(missing_docs, reason = "for tests only")]

use std::time::SystemTime;

use crate::EventKind;
use crate::cable_life::CableMatches;
use crate::model::{
    Cable, Coverage, ErrorDelta, Event, FabricState, Port, Series, Span, Sum, Window,
};
use crate::source::{Answer, EventFilter, Events, Page, SeriesDetail, Source};
use ib_fabric::topology::LinkId;
use ib_mad::{Counter, Guid, PortKey};

/// A source for tests: its results are its fields, whatever the query; events are those of the window.
#[derive(Debug, Default)]
pub struct Canned {
    pub ports: Vec<Port>,
    pub events: Vec<Event>,
    pub cables: Vec<Cable>,
    pub moved: Vec<ErrorDelta>,
    pub series: Vec<Series>,
    pub fabrics: Vec<FabricState>,
}

impl Canned {
    /// A port of a node, whose GUID is that of its name.
    pub fn port(fabric: &str, node: &str, number: u8) -> Port {
        let guid = Guid(node.bytes().fold(0, |guid, byte| guid << 8 | u64::from(byte)));
        Port { fabric: fabric.into(), guid, port: number, node: node.into(), host: None }
    }

    /// The symbol errors of a port.
    pub fn counted(port: &Port, peer: Option<&Port>, by: u64) -> ErrorDelta {
        let at = SystemTime::UNIX_EPOCH;
        let counter = Counter::SymbolErrors;
        let sums = vec![Sum { counter, by, first: at, last: at }];
        ErrorDelta { port: port.clone(), peer: peer.cloned(), sums }
    }

    /// An event of a cable.
    pub fn event(kind: EventKind, link: Option<LinkId>, port: &Port) -> Event {
        Event {
            at: SystemTime::UNIX_EPOCH,
            fabric: port.fabric.clone(),
            kind: kind.label().into(),
            node: link.is_none().then_some(port.guid),
            port: link.is_none().then_some(port.port),
            link,
            place: port.label(),
            text: String::new(),
            detail: serde_json::Value::Null,
        }
    }
}

impl Source for Canned {
    fn name(&self) -> String {
        "canned".into()
    }

    fn span(&self) -> Answer<Span> {
        Ok(Span::default())
    }

    fn ports(&self, _: &str) -> Answer<Vec<Port>> {
        Ok(self.ports.clone())
    }

    fn page(&self, filter: &EventFilter, _: Page) -> Answer<Events> {
        let is_wanted = |event: &&Event| {
            let is_of_kind = filter.kinds.iter().any(|kind| kind.label() == event.kind);
            filter.window.has(event.at) && (filter.kinds.is_empty() || is_of_kind)
        };
        Ok(Events { events: self.events.iter().filter(is_wanted).cloned().collect(), next: None })
    }

    fn cables(&self, _: &[PortKey], _: Window) -> Answer<Vec<Cable>> {
        Ok(self.cables.clone())
    }

    fn error_deltas(&self, _: Window) -> Answer<Vec<ErrorDelta>> {
        Ok(self.moved.clone())
    }

    fn series(&self, _: &[PortKey], _: SeriesDetail, _: Window) -> Answer<Vec<Series>> {
        Ok(self.series.clone())
    }

    fn fabrics(&self, _: SystemTime) -> Answer<Vec<FabricState>> {
        Ok(self.fabrics.clone())
    }

    fn cable(&self, _: &str) -> Answer<CableMatches> {
        Ok(CableMatches::default())
    }

    fn coverage(&self, _: Window) -> Answer<Coverage> {
        Ok(Coverage::default())
    }
}
