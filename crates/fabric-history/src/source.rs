//! The sources of a history: its file, and the API of an exporter that records. Both give the same answers.

use std::time::SystemTime;

use thiserror::Error;

use ib_fabric::topology::End;
use ib_mad::Guid;

use super::model::{Cable, Coverage, ErrorDelta, Event, FabricState, Port, Series, Span, Window};
use super::page::{Events, Page};
use super::{EventKind, HistoryError};

/// Why a source has no answer.
#[derive(Debug, Error)]
pub enum SourceError {
    /// The file cannot be read.
    #[error(transparent)]
    File(#[from] HistoryError),
    /// An exporter does not respond, or not as expected.
    #[error("{address}: {problem}")]
    Address {
        /// Its address.
        address: String,
        /// What was wrong.
        problem: String,
    },
}

/// Which events are selected. An empty list selects all.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EventFilter {
    /// When they happened.
    pub window: Window,
    /// Of which kinds.
    pub kinds: Vec<EventKind>,
    /// Of which nodes, with their ports and links; and
    pub nodes: Vec<Guid>,
    /// of which ports, with their links and nodes.
    pub ports: Vec<End>,
}

impl EventFilter {
    /// All events of a window.
    pub fn all(window: Window) -> Self {
        EventFilter { window, kinds: Vec::new(), nodes: Vec::new(), ports: Vec::new() }
    }
}

/// The counters of which series are returned.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SeriesDetail {
    /// Errors, and counters of links.
    Errors,
    /// Traffic and waits, too.
    All,
}

/// A history that answers queries.
pub trait Source {
    /// Its name for people: a file's path, an address.
    fn name(&self) -> String;

    /// The time range of which anything is recorded.
    fn span(&self) -> Result<Span, SourceError>;

    /// The ports that match a link's id, by `NODE[PORT]`, by `GUID[PORT]`, or by a node's name or
    /// GUID alone: all of its ports. None if nothing of that name is known.
    fn ports(&self, called: &str) -> Result<Vec<Port>, SourceError>;

    /// The events that a filter selects, the earliest first.
    fn events(&self, filter: &EventFilter) -> Result<Vec<Event>, SourceError>;

    /// The cables of any of these ports in a window, as they were at its end, or when
    /// they were last seen in it.
    fn cables(&self, ports: &[End], window: Window) -> Result<Vec<Cable>, SourceError>;

    /// The errors of all ports in a window.
    fn error_deltas(&self, window: Window) -> Result<Vec<ErrorDelta>, SourceError>;

    /// What some ports' counters grew by, reading by reading. Traffic may be coarser than errors, the more so
    /// the longer the window is, and the longer ago.
    fn series(
        &self,
        ports: &[End],
        detail: SeriesDetail,
        window: Window,
    ) -> Result<Vec<Series>, SourceError>;

    /// The fabrics as they were at a moment; those of which nothing was known yet are left out.
    fn fabrics(&self, at: SystemTime) -> Result<Vec<FabricState>, SourceError>;

    /// Which parts of a window are known, and which are not.
    fn coverage(&self, window: Window) -> Result<Coverage, SourceError>;
}

/// A source that also returns events page by page: no more are in memory than a page has.
pub trait PagedSource: Source {
    /// A page of the events that a filter selects, the earliest first.
    fn page(&self, filter: &EventFilter, page: Page) -> Result<Events, SourceError>;
}

/// The window without what lies in the future.
pub fn until_known(
    source: &dyn Source,
    window: Window,
    now: SystemTime,
) -> Result<Window, SourceError> {
    let mut window = window;
    if window.to > now {
        // A simulated clock may be ahead of ours.
        let last = source.span()?.last;
        window.to = last.map_or(now, |last| last.max(now)).min(window.to).max(window.from);
    }
    Ok(window)
}

/// A source for tests: its answers are its fields, whatever the query.
#[cfg(any(test, feature = "testing"))]
#[derive(Debug, Default)]
#[allow(missing_docs)]
pub struct Canned {
    pub ports: Vec<Port>,
    pub events: Vec<Event>,
    pub cables: Vec<Cable>,
    pub moved: Vec<ErrorDelta>,
    pub series: Vec<Series>,
    pub fabrics: Vec<FabricState>,
}

#[cfg(any(test, feature = "testing"))]
impl Canned {
    /// A port of a node, whose GUID is that of its name.
    pub fn port(fabric: &str, node: &str, number: u8) -> Port {
        let guid = Guid(node.bytes().fold(0, |guid, byte| guid << 8 | u64::from(byte)));
        Port { fabric: fabric.into(), guid, port: number, node: node.into() }
    }

    /// What a port counted of symbol errors.
    pub fn counted(port: &Port, peer: Option<&Port>, by: u64) -> ErrorDelta {
        let at = SystemTime::UNIX_EPOCH;
        let counter = ib_mad::Counter::SymbolErrors;
        let sums = vec![super::model::Sum { counter, by, first: at, last: at }];
        ErrorDelta { port: port.clone(), peer: peer.cloned(), sums }
    }

    /// What happened to a cable.
    pub fn event(kind: EventKind, link: Option<ib_fabric::topology::LinkId>, port: &Port) -> Event {
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

#[cfg(any(test, feature = "testing"))]
impl Source for Canned {
    fn name(&self) -> String {
        "canned".into()
    }

    fn span(&self) -> Result<Span, SourceError> {
        Ok(Span::default())
    }

    fn ports(&self, _: &str) -> Result<Vec<Port>, SourceError> {
        Ok(self.ports.clone())
    }

    fn events(&self, _: &EventFilter) -> Result<Vec<Event>, SourceError> {
        Ok(self.events.clone())
    }

    fn cables(&self, _: &[End], _: Window) -> Result<Vec<Cable>, SourceError> {
        Ok(self.cables.clone())
    }

    fn error_deltas(&self, _: Window) -> Result<Vec<ErrorDelta>, SourceError> {
        Ok(self.moved.clone())
    }

    fn series(&self, _: &[End], _: SeriesDetail, _: Window) -> Result<Vec<Series>, SourceError> {
        Ok(self.series.clone())
    }

    fn fabrics(&self, _: SystemTime) -> Result<Vec<FabricState>, SourceError> {
        Ok(self.fabrics.clone())
    }

    fn coverage(&self, _: Window) -> Result<Coverage, SourceError> {
        Ok(Coverage::default())
    }
}
