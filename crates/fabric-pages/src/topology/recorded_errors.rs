//! The errors of links in a window of the history.

use std::collections::HashMap;
use std::time::{Duration, SystemTime};

use fabric_api::LinkRow;
use fabric_history::model::Window;
use fabric_history::source::SourceError;
use fabric_history::{Reader, Source};
use ib_fabric::topology::LinkId;

use crate::window_choice::WindowChoice;

/// The errors that a window of the history has.
#[derive(Clone, Debug)]
pub struct RecordedErrors {
    pub window: Window,
    /// How much of it was not recorded; `None` if nothing was.
    pub missing: Option<Duration>,
    /// By link of the subnet: while its two ports were connected. Links without errors are not in it.
    links: HashMap<LinkId, u64>,
}

impl RecordedErrors {
    /// Reads those of a fabric.
    pub fn read(
        reader: &Reader,
        fabric: &str,
        choice: WindowChoice,
        end: Option<SystemTime>,
    ) -> Result<Self, SourceError> {
        let window = choice.until(end, reader)?;
        let coverage = reader.coverage(window)?;
        let covered = coverage.fabrics.get(fabric).filter(|it| it.sweeps > 0);
        let missing = covered.map(|it| it.gaps.iter().map(Window::length).sum());
        let mut links: HashMap<LinkId, u64> = HashMap::new();
        for delta in reader.error_deltas(window)? {
            let Some(peer) = delta.peer.as_ref().filter(|_| delta.port.fabric == fabric) else {
                continue;
            };
            let errors = links.entry(LinkId::between(delta.port.end(), peer.end())).or_default();
            *errors = errors.saturating_add(delta.link_errors());
        }
        Ok(RecordedErrors { window, missing, links })
    }

    /// The errors of a link; `None` if nothing was recorded, or its counters cannot be read.
    pub fn of(&self, link: &LinkRow<'_>) -> Option<u64> {
        self.missing?;
        let fabric = &link.view.snapshot.fabric;
        let ids = link.cables().map(|cable| {
            let [a, b] = cable.ports().map(|port| fabric.port_key(port));
            LinkId::between(a, b)
        });
        let recorded: u64 = ids.filter_map(|id| self.links.get(&id)).sum();
        (recorded > 0 || link.counted_errors().is_some()).then_some(recorded)
    }
}
