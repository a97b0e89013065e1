//! Events of a fabric as a whole: sweeps that fail, counters that are not read, another master subnet manager.

use std::time::SystemTime;

use crate::event::{About, EventKind, NewEvent};
use crate::record::events::sweep::Sweep;
use fabric_observation::{Collector, Observation};
use ib_fabric::Snapshot;
use ib_health::congestion::GRACE;
use ib_mad::Moment;

/// A fabric as a whole, as it was last known.
#[derive(Debug, Default)]
pub(super) struct FabricWide {
    /// Whether all collectors failed.
    pub is_failing: bool,
    /// How often the master subnet manager had changed.
    master_changes: u64,
    /// The node of the last known master.
    master: Option<String>,
    /// When a port was last not read; `None` once they have been read for [`GRACE`].
    unread: Option<Moment>,
}

impl FabricWide {
    /// The events of an observation. `now` is the time of day.
    pub fn update(
        &mut self,
        observation: &Observation,
        snapshot: &Snapshot,
        now: SystemTime,
    ) -> Vec<NewEvent> {
        let mut events = Vec::new();
        let mut push = |kind, text: String, at| {
            events.push(NewEvent::of_fabric(kind, &observation.fabric, text, at));
        };
        let tally = &observation.stats;
        let fails = Collector::ALL.iter().all(|collector| !tally.success(*collector));
        let began = snapshot.anchor.wall_of(snapshot.began);
        match (std::mem::replace(&mut self.is_failing, fails), fails) {
            (false, true) => {
                let text = "all requests fail: changes in the fabric are not detected";
                push(EventKind::SweepFailed, text.into(), now);
            }
            (true, false) => {
                push(EventKind::SweepRecovered, "requests succeed again".into(), began);
            }
            (true, true) | (false, false) => {}
        }
        let changes = tally.mastership.changes;
        let is_changed = std::mem::replace(&mut self.master_changes, changes) != changes;
        let master = tally.mastership.master.and_then(|end| snapshot.fabric.find(end));
        let master = master.map(|port| &*snapshot.fabric.node_of(port).name);
        if is_changed {
            let from = self.master.as_deref().map_or(String::new(), |name| format!("from {name} "));
            let to = master.unwrap_or("an unknown node");
            push(EventKind::MasterChanged, format!("{from}to {to}"), began);
        }
        if let Some(name) = master.filter(|name| self.master.as_deref() != Some(*name)) {
            self.master = Some(name.to_owned());
        }
        events
    }

    /// Adds an event when the counters of ports are not read any more, and when all have been read for
    /// [`GRACE`]: MADs are lost now and then.
    pub fn update_unread(&mut self, unread: Option<String>, sweep: &mut Sweep) {
        let (at, fabric) = (sweep.snapshot.began, sweep.fabric);
        let mut push = |kind, text, at| sweep.push(kind, About::All, fabric, text, at);
        match (self.unread, unread) {
            (None, Some(text)) => {
                push(EventKind::ReadsFailed, text, at);
                self.unread = Some(at);
            }
            (Some(_), Some(_)) => self.unread = Some(at),
            (Some(last), None) if at.since(last) > GRACE => {
                let text = "counters of all ports are read again".into();
                push(EventKind::ReadsRecovered, text, last);
                self.unread = None;
            }
            (_, None) => {}
        }
    }
}
