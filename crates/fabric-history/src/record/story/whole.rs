//! What concerns a fabric as a whole: whether it can be asked, and who manages it.

use std::time::SystemTime;

use serde_json::Value;

use crate::event::{About, Event, Kind};
use fabric_observation::{Collector, Observation};
use ib_fabric::Snapshot;
use ib_health::congestion::GRACE;
use ib_mad::Moment;

use super::Look;

/// What is remembered of a fabric as a whole.
#[derive(Debug, Default)]
pub(super) struct Whole {
    name: String,
    failing: bool,
    /// How often another subnet manager had become the master.
    masters: u64,
    /// When ports were last left unread, until it is over.
    unread: Option<Moment>,
}

impl Whole {
    /// Whether nobody can be asked.
    pub fn is_failing(&self) -> bool {
        self.failing
    }

    /// What happened to it; `now` is what the wall says.
    pub fn follow(&mut self, seen: &Observation, of: &Snapshot, now: SystemTime) -> Vec<Event> {
        self.name.clone_from(&seen.fabric);
        let mut told = Vec::new();
        let mut tell = |kind, text: String, at| {
            let (about, place) = (About::All, seen.fabric.clone());
            told.push(Event { at, kind, about, place, text, detail: Value::Null });
        };
        let fails = Collector::ALL.iter().all(|collector| !seen.stats.success(*collector));
        let began = of.anchor.wall_of(of.began);
        match (std::mem::replace(&mut self.failing, fails), fails) {
            (false, true) => {
                let text = "nobody can be asked any more: what happens is not seen";
                tell(Kind::SweepFailed, text.into(), now);
            }
            (true, false) => tell(Kind::SweepBack, "the fabric can be asked again".into(), began),
            _ => {}
        }
        let masters = seen.stats.mastership.changes();
        if std::mem::replace(&mut self.masters, masters) != masters {
            let master = seen.stats.mastership.master();
            let port = master.and_then(|end| of.fabric.find(end));
            let name = port.map_or("nobody knows whose", |port| &*of.fabric.node_of(port).name);
            tell(
                Kind::MasterChanged,
                format!("another subnet manager is the master: {name}"),
                began,
            );
        }
        told
    }

    /// Takes down whether ports are left unread. Losses come and go: those that were gone for no
    /// longer than a congestion may pause are the same trouble.
    pub fn unread(&mut self, are: bool, text: String, look: &mut Look) {
        let at = look.snapshot.began;
        let mut tell = |kind, text, at| look.tell(kind, About::All, self.name.clone(), text, at);
        match self.unread {
            None if are => {
                tell(Kind::ReadsFailed, text, at);
                self.unread = Some(at);
            }
            Some(_) if are => self.unread = Some(at),
            Some(last) if at.since(last) > GRACE => {
                tell(Kind::ReadsBack, "all ports tell their counters again".into(), last);
                self.unread = None;
            }
            _ => {}
        }
    }
}
