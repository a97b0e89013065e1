//! The sources of a history: its file, and the API of an exporter that records. Both give the same answers.
//! Events are also returned page by page, each with the cursor at which the next one begins.

use std::num::NonZeroUsize;
use std::time::SystemTime;

use serde::{Deserialize, Serialize};
use thiserror::Error;

use crate::cable_life::CableMatches;
use crate::cursor::Cursor;
use crate::model::{
    Cable, Coverage, ErrorDelta, Event, FabricState, Port, Series, Span, Window, text,
};
use crate::{EventKind, HistoryError};
use ib_mad::{Guid, PortKey};

/// Why a source has no answer.
#[derive(Debug, Error)]
pub enum SourceError {
    /// The file cannot be read.
    #[error(transparent)]
    File(#[from] HistoryError),
    /// An exporter does not respond, or its response is invalid: its address, and what was wrong.
    #[error("{0}: {1}")]
    Address(String, String),
}

/// The answer of a source.
pub type Answer<T> = Result<T, SourceError>;

/// Which events are selected. An empty list selects all.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EventFilter {
    /// When they happened.
    pub window: Window,
    /// Their kinds.
    pub kinds: Vec<EventKind>,
    /// The nodes that they are about, or whose ports or links they are about.
    pub nodes: Vec<Guid>,
    /// The ports that they are about, or whose links or nodes they are about.
    pub ports: Vec<PortKey>,
}

impl EventFilter {
    /// All events of a window.
    pub fn all(window: Window) -> Self {
        EventFilter { window, kinds: Vec::new(), nodes: Vec::new(), ports: Vec::new() }
    }
}

display_text::labeled_enum! {
    /// The counters of which series are returned.
    pub enum SeriesDetail {
        Errors, "errors", "Errors, and counters of links.";
        All, "all", "Traffic and waits, too.";
    }
}

/// A history that answers queries.
pub trait Source {
    /// Its name for display: the path of a file, or an address.
    fn name(&self) -> String;

    /// The recorded period.
    fn span(&self) -> Answer<Span>;

    /// The period of which a source is a copy; `None` if it is no copy.
    fn copied(&self) -> Answer<Option<Window>> {
        Ok(None)
    }

    /// The ports that a [`Reference`](ib_fabric::reference::Reference) means: a port, both of a link, or by a node's name or
    /// GUID alone: all of its ports. Empty if the name is unknown.
    fn ports(&self, called: &str) -> Answer<Vec<Port>>;

    /// The events that a filter selects, the earliest first.
    fn events(&self, filter: &EventFilter) -> Answer<Vec<Event>> {
        Ok(self.page(filter, Page { limit: NonZeroUsize::MAX, ..Page::default() })?.events)
    }

    /// A page of these: no more are in memory than a page has.
    fn page(&self, filter: &EventFilter, page: Page) -> Answer<Events>;

    /// The cables of any of these ports in a window, as they were at its end, or when they were last seen in it.
    fn cables(&self, ports: &[PortKey], window: Window) -> Answer<Vec<Cable>>;

    /// The errors of all ports in a window.
    fn error_deltas(&self, window: Window) -> Answer<Vec<ErrorDelta>>;

    /// The increases of some ports' counters, by reading. Traffic may be coarser than errors, especially in a
    /// window that is long or long ago.
    fn series(
        &self,
        ports: &[PortKey],
        detail: SeriesDetail,
        window: Window,
    ) -> Answer<Vec<Series>>;

    /// The states of the fabrics at a time; fabrics that were not recorded yet are omitted.
    fn fabrics(&self, at: SystemTime) -> Answer<Vec<FabricState>>;

    /// The life of the cable or module with this serial number, or whose serial number begins with this.
    fn cable(&self, serial: &str) -> Answer<CableMatches>;

    /// Which parts of a window are recorded, and which are missing.
    fn coverage(&self, window: Window) -> Answer<Coverage>;
}

/// Reads the events that a filter selects, page after page: no more than a page of them is in memory.
pub fn for_each_event(
    source: &dyn Source,
    filter: &EventFilter,
    see: &mut dyn FnMut(Event),
) -> Answer<()> {
    let mut after = None;
    loop {
        let Events { events, next } = source.page(filter, Page::largest(after))?;
        events.into_iter().for_each(&mut *see);
        if next.is_none() {
            return Ok(());
        }
        if next <= after {
            let problem = "returned the same page of events twice".to_owned();
            return Err(SourceError::Address(source.name(), problem));
        }
        after = next;
    }
}

/// The window without what lies in the future.
pub fn until_known(source: &dyn Source, window: Window, now: SystemTime) -> Answer<Window> {
    let mut window = window;
    if window.to > now {
        // A simulated clock may be ahead of the host's.
        let last = source.span()?.last;
        window.to = last.map_or(now, |last| last.max(now)).min(window.to).max(window.from);
    }
    Ok(window)
}

/// How many events a page has by default: about 0.5 MB of JSON.
pub const DEFAULT_LIMIT: NonZeroUsize = NonZeroUsize::new(1_000).unwrap();

/// How many a page may have: about 5 MB of JSON, which is all that a response holds in memory.
pub const MAX_LIMIT: NonZeroUsize = NonZeroUsize::new(10_000).unwrap();

display_text::labeled_enum! {
    /// The order of events on pages.
    #[derive(Default)]
    pub enum EventOrder {
        #[default] Time, "time", "By their times: the last page has no `next`.";
        Recorded, "recorded", "As they were recorded: each page has a `next`, after which later ones follow.";
    }
}

/// Which page is requested.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Page {
    /// How many events it has at most.
    pub limit: NonZeroUsize,
    /// The `next` of the page before; nothing for the first one.
    pub after: Option<Cursor>,
    /// The order of the events of all pages.
    pub order: EventOrder,
}

impl Page {
    /// The largest page after another one.
    pub fn largest(after: Option<Cursor>) -> Self {
        Page { limit: MAX_LIMIT, after, order: EventOrder::Time }
    }

    /// The largest page of the events that were recorded after another page; the first begins with the oldest events.
    pub fn recorded(after: Option<Cursor>) -> Self {
        Page { order: EventOrder::Recorded, ..Page::largest(after) }
    }
}

impl Default for Page {
    fn default() -> Self {
        Page { limit: DEFAULT_LIMIT, after: None, order: EventOrder::Time }
    }
}

/// A page of events.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Events {
    /// The events: the earliest first, or in the order in which they were recorded.
    pub events: Vec<Event>,
    /// Value of `after` for the next page; null on the last page. With `order=recorded` never null: the same request
    /// with it returns what was recorded since.
    #[serde(with = "text::option")]
    #[cfg_attr(feature = "schema", schemars(with = "Option<String>"))]
    pub next: Option<Cursor>,
}
