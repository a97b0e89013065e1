//! Events of a fabric as a whole: whether its sweeps succeed, and which subnet manager is the master.

use std::time::SystemTime;

use serde_json::Value;

use crate::event::{About, EventKind, NewEvent};
use fabric_observation::{Collector, Observation};
use ib_fabric::Snapshot;
use ib_health::congestion::GRACE;
use ib_mad::Moment;

use super::Sweep;

/// A fabric as a whole, as it was last known.
#[derive(Debug, Default)]
pub(super) struct FabricWide {
    name: String,
    /// Whether all collectors failed.
    is_failing: bool,
    /// How often the master subnet manager had changed.
    master_changes: u64,
    /// When ports were last left unread; `None` once they have been read for [`GRACE`].
    unread: Option<Moment>,
}

impl FabricWide {
    /// Whether all collectors failed.
    pub fn is_failing(&self) -> bool {
        self.is_failing
    }

    /// The events of an observation. `now` is the time of day.
    pub fn update(
        &mut self,
        observation: &Observation,
        snapshot: &Snapshot,
        now: SystemTime,
    ) -> Vec<NewEvent> {
        self.name.clone_from(&observation.fabric);
        let mut events = Vec::new();
        let mut push = |kind, text: String, at| {
            let (about, place) = (About::All, observation.fabric.clone());
            events.push(NewEvent { at, kind, about, place, text, detail: Value::Null });
        };
        let tally = &observation.stats;
        let fails = Collector::ALL.iter().all(|collector| !tally.success(*collector));
        let began = snapshot.anchor.wall_of(snapshot.began);
        match (std::mem::replace(&mut self.is_failing, fails), fails) {
            (false, true) => {
                let text = "nobody can be asked any more: what happens is not seen";
                push(EventKind::SweepFailed, text.into(), now);
            }
            (true, false) => {
                push(EventKind::SweepBack, "the fabric can be asked again".into(), began);
            }
            _ => {}
        }
        let changes = tally.mastership.changes();
        if std::mem::replace(&mut self.master_changes, changes) != changes {
            let port = tally.mastership.master().and_then(|end| snapshot.fabric.find(end));
            let name =
                port.map_or("nobody knows whose", |port| &*snapshot.fabric.node_of(port).name);
            let text = format!("another subnet manager is the master: {name}");
            push(EventKind::MasterChanged, text, began);
        }
        events
    }

    /// Adds an event when ports begin to be left unread, and when all have been read for [`GRACE`]: MADs are
    /// lost now and then.
    pub fn update_unread(&mut self, is_unread: bool, text: String, sweep: &mut Sweep) {
        let at = sweep.snapshot.began;
        let mut push = |kind, text, at| sweep.push(kind, About::All, self.name.clone(), text, at);
        match self.unread {
            None if is_unread => {
                push(EventKind::ReadsFailed, text, at);
                self.unread = Some(at);
            }
            Some(_) if is_unread => self.unread = Some(at),
            Some(last) if at.since(last) > GRACE => {
                push(EventKind::ReadsBack, "all ports tell their counters again".into(), last);
                self.unread = None;
            }
            _ => {}
        }
    }
}
