//! Who can be asked what happened: a file, an exporter, a Prometheus. What is told is the same.

use std::time::SystemTime;

use thiserror::Error;

use ib_fabric::topology::End;
use ib_mad::Guid;

use super::model::{Cable, Cover, Moved, Port, Series, Span, Then, Told, Window};
use super::page::{Events, Page};
use super::{HistoryError, Kind};

/// Why a source does not answer.
#[derive(Debug, Error)]
pub enum AskError {
    /// The file cannot be read.
    #[error(transparent)]
    File(#[from] HistoryError),
    /// Nobody answers at an address, or not as expected.
    #[error("{address}: {problem}")]
    Address {
        /// Who was asked.
        address: String,
        /// What was wrong.
        problem: String,
    },
}

/// Which events are wanted. Lists that are empty want all.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Wanted {
    /// When they happened.
    pub window: Window,
    /// Of which kinds.
    pub kinds: Vec<Kind>,
    /// Of which nodes, with their ports and links; or
    pub nodes: Vec<Guid>,
    /// of which ports, with their links and nodes.
    pub ports: Vec<End>,
}

impl Wanted {
    /// All that happened in a window.
    pub fn all(window: Window) -> Self {
        Wanted { window, kinds: Vec::new(), nodes: Vec::new(), ports: Vec::new() }
    }
}

/// Which counters a series is wanted of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Detail {
    /// Of errors, and what links went through.
    Errors,
    /// Of traffic and waits, too.
    All,
}

/// Somebody who knows what happened.
pub trait Source {
    /// Who it is, for people: a file's name, an address.
    fn name(&self) -> String;

    /// The time of which anything is known at all.
    fn span(&self) -> Result<Span, AskError>;

    /// The ports that are meant by a link's id, by `NODE[PORT]`, by `GUID[PORT]`, or by a node's name or
    /// GUID alone: all of its ports. None if nothing of that name is known.
    fn ports(&self, called: &str) -> Result<Vec<Port>, AskError>;

    /// The events that are wanted, the earliest first.
    fn events(&self, wanted: &Wanted) -> Result<Vec<Told>, AskError>;

    /// The cables that led to any of these ports in a window, as they were at its end, or when
    /// they were last seen in it.
    fn cables(&self, ports: &[End], window: Window) -> Result<Vec<Cable>, AskError>;

    /// The errors of all ports in a window.
    fn moved(&self, window: Window) -> Result<Vec<Moved>, AskError>;

    /// The course of some ports' counters. Traffic may be coarser than errors, the more so the
    /// longer the window is, and the longer ago.
    fn series(
        &self,
        ports: &[End],
        detail: Detail,
        window: Window,
    ) -> Result<Vec<Series>, AskError>;

    /// The fabrics as they were at a moment; those of which nothing was known yet are left out.
    fn fabrics(&self, at: SystemTime) -> Result<Vec<Then>, AskError>;

    /// What is known of a window.
    fn cover(&self, window: Window) -> Result<Cover, AskError>;
}

/// A source that tells events page by page, too: however many there are, no more are in memory than a page
/// has.
pub trait Paged: Source {
    /// A page of the events that are wanted, the earliest first.
    fn page(&self, wanted: &Wanted, page: Page) -> Result<Events, AskError>;
}

/// The window without what lies in the future.
pub fn until_known(
    source: &dyn Source,
    window: Window,
    now: SystemTime,
) -> Result<Window, AskError> {
    let mut window = window;
    if window.to > now {
        // A simulated clock may be ahead of ours.
        let last = source.span()?.last;
        window.to = last.map_or(now, |last| last.max(now)).min(window.to).max(window.from);
    }
    Ok(window)
}

/// A source that says what a test has put into it, whatever is asked.
#[cfg(any(test, feature = "testing"))]
#[derive(Debug, Default)]
#[allow(missing_docs)]
pub struct Canned {
    pub ports: Vec<Port>,
    pub events: Vec<Told>,
    pub cables: Vec<Cable>,
    pub moved: Vec<Moved>,
    pub series: Vec<Series>,
    pub fabrics: Vec<Then>,
}

#[cfg(any(test, feature = "testing"))]
impl Canned {
    /// A port of a node, whose GUID is that of its name.
    pub fn port(fabric: &str, node: &str, number: u8) -> Port {
        let guid = Guid(node.bytes().fold(0, |guid, byte| guid << 8 | u64::from(byte)));
        Port { fabric: fabric.into(), guid, port: number, node: node.into() }
    }

    /// What a port counted of symbol errors.
    pub fn counted(port: &Port, peer: Option<&Port>, by: u64) -> Moved {
        let at = SystemTime::UNIX_EPOCH;
        let counter = ib_mad::Counter::SymbolErrors;
        let sums = vec![super::model::Sum { counter, by, first: at, last: at }];
        Moved { port: port.clone(), peer: peer.cloned(), sums }
    }

    /// What happened to a cable.
    pub fn event(kind: Kind, link: Option<ib_fabric::topology::LinkId>, port: &Port) -> Told {
        Told {
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

    fn span(&self) -> Result<Span, AskError> {
        Ok(Span::default())
    }

    fn ports(&self, _: &str) -> Result<Vec<Port>, AskError> {
        Ok(self.ports.clone())
    }

    fn events(&self, _: &Wanted) -> Result<Vec<Told>, AskError> {
        Ok(self.events.clone())
    }

    fn cables(&self, _: &[End], _: Window) -> Result<Vec<Cable>, AskError> {
        Ok(self.cables.clone())
    }

    fn moved(&self, _: Window) -> Result<Vec<Moved>, AskError> {
        Ok(self.moved.clone())
    }

    fn series(&self, _: &[End], _: Detail, _: Window) -> Result<Vec<Series>, AskError> {
        Ok(self.series.clone())
    }

    fn fabrics(&self, _: SystemTime) -> Result<Vec<Then>, AskError> {
        Ok(self.fabrics.clone())
    }

    fn cover(&self, _: Window) -> Result<Cover, AskError> {
        Ok(Cover::default())
    }
}
