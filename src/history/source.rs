//! Who can be asked what happened: a file, an exporter, a Prometheus. What is told is the same.

use std::time::SystemTime;

use thiserror::Error;

use crate::fabric::Guid;
use crate::fabric::topology::End;

use super::model::{Cable, Cover, Moved, Port, Series, Span, Then, Told, Window};
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

/// The window without what lies in the future, and what is known of it.
pub fn until_known(
    source: &dyn Source,
    window: Window,
    now: SystemTime,
) -> Result<(Window, Cover), AskError> {
    let mut window = window;
    if window.to > now {
        // A simulated clock may be ahead of ours.
        let last = source.span()?.last;
        window.to = last.map_or(now, |last| last.max(now)).min(window.to).max(window.from);
    }
    Ok((window, source.cover(window)?))
}
