//! The sweep that is compared with the one before.

use serde_json::Value;

use crate::event::{About, EventKind, NewEvent};
use ib_fabric::Snapshot;
use ib_health::Assessment;
use ib_mad::Moment;

/// A sweep that is compared, and its events so far.
pub(super) struct Sweep<'a> {
    /// The name of the fabric.
    pub fabric: &'a str,
    pub snapshot: &'a Snapshot,
    pub assessment: &'a Assessment,
    pub events: Vec<NewEvent>,
}

impl Sweep<'_> {
    pub fn push(
        &mut self,
        kind: EventKind,
        about: About,
        place: impl Into<String>,
        text: impl Into<String>,
        at: Moment,
    ) {
        self.push_detailed(kind, about, place, text, at, Value::Null);
    }

    pub fn push_detailed(
        &mut self,
        kind: EventKind,
        about: About,
        place: impl Into<String>,
        text: impl Into<String>,
        at: Moment,
        detail: Value,
    ) {
        let (at, place, text) = (self.snapshot.anchor.wall_of(at), place.into(), text.into());
        self.events.push(NewEvent { at, kind, about, place, text, detail });
    }
}
