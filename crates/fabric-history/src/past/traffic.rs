//! What ports sent, received and waited before a past moment.

use std::collections::HashMap;

use rusqlite::Result;

use super::fabric::PastTopology;
use crate::file::counter_ids::CounterIds;
use crate::file::id_map::IdMap;
use crate::file::record_kind::RecordKind;
use crate::file::sql::Sql;
use crate::file::walk::{Walk, reading_times};
use crate::model::Window;
use crate::time_of;
use ib_fabric::{NodeIndex, Snapshot};
use ib_health::assessment::Flow;
use ib_health::{Assessment, congestion};
use ib_mad::Counter;

/// How finely the traffic of a moment is known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TrafficDetail {
    /// Since the sweep before.
    Sweep,
    /// Only the mean of this period.
    Mean(Window),
    /// Not at all.
    Unknown,
}

/// What a port counted in some seconds: words of four bytes, and ticks.
#[derive(Clone, Copy, Debug, Default)]
struct Counted {
    seconds: f64,
    sent: u64,
    received: u64,
    waited: u64,
}

/// The traffic before a moment.
#[derive(Debug)]
pub(super) struct Traffic {
    pub detail: TrafficDetail,
    ports: IdMap<Counted>,
    /// The time of a port that counted nothing.
    seconds: f64,
}

impl Traffic {
    /// Reads the traffic since the sweep before this one or, if it is too long ago for that, of its hour.
    pub fn read(sql: Sql<'_>, counter_ids: &CounterIds, fabric: i64, began: i64) -> Result<Self> {
        let kind = RecordKind::TrafficDeltas;
        let none =
            Traffic { detail: TrafficDetail::Unknown, ports: IdMap::default(), seconds: 0.0 };
        let walk = |range, ended| Walk {
            sql,
            kind,
            fabric: Some(fabric),
            ports: None,
            began: range,
            ended,
        };
        if sql.has_frame(kind, fabric, began)? {
            let since = sql.sweep_before(fabric, began)?;
            let mut traffic =
                Traffic { detail: TrafficDetail::Sweep, seconds: seconds(since, began), ..none };
            traffic.add(&walk((began, began), i64::MIN), &[], counter_ids)?;
            return Ok(traffic);
        }
        let hours = sql.hours((began, began))?.into_iter();
        let mut hours = hours.filter(|hour| hour.fabric == fabric && hour.sweeps.contains(&began));
        let Some(hour) = hours.next().filter(|hour| hour.traffic.is_some()) else {
            return Ok(none);
        };
        if !sql.has_digest(kind, hour.id)? {
            return Ok(none);
        }
        let (first, last) = (hour.traffic.unwrap_or(*hour.sweeps.start()), *hour.sweeps.end());
        let since = sql.sweep_before(fabric, first)?;
        let mut traffic = Traffic {
            detail: TrafficDetail::Mean(Window { from: time_of(since), to: time_of(last) }),
            seconds: seconds(since, last),
            ..none
        };
        // The digest alone: no frames are left beside it.
        traffic.add(&walk((last.saturating_add(1), last), i64::MAX), &[hour], counter_ids)?;
        Ok(traffic)
    }

    fn add(
        &mut self,
        walk: &Walk<'_>,
        hours: &[crate::file::sql::Hour],
        counter_ids: &CounterIds,
    ) -> Result<()> {
        let (is_mean, all) = (matches!(self.detail, TrafficDetail::Mean(_)), self.seconds);
        walk.visit(hours, &mut |span, frame, entry| {
            let (from, to) = reading_times(span, entry);
            let seconds = to.duration_since(from).unwrap_or_default().as_secs_f64();
            let mut counted =
                Counted { seconds: if is_mean { all } else { seconds }, ..Default::default() };
            for (number, by) in frame.values(entry) {
                match counter_ids.counter(number) {
                    Some(Counter::XmitData) => counted.sent = by,
                    Some(Counter::RcvData) => counted.received = by,
                    Some(Counter::XmitWait) => counted.waited = by,
                    _ => {}
                }
            }
            self.ports.insert(entry.port, counted);
        })
    }

    /// Adds the flows and waits of ports with a link. What a node counted that this sweep found again is of the seconds of
    /// its absence, too.
    pub fn add_to(
        &self,
        past: &PastTopology,
        snapshot: &Snapshot,
        absences: &HashMap<NodeIndex, f64>,
        assessment: &mut Assessment,
    ) {
        if self.detail == TrafficDetail::Unknown {
            return;
        }
        let idle = Counted { seconds: self.seconds, ..Counted::default() };
        for port in past.fabric.port_indexes() {
            let status = snapshot.status(port).filter(|status| status.link_up());
            let rate = status.and_then(|status| status.width.zip(status.speed));
            let Some(((width, speed), id)) = rate.zip(past.ports[port]) else { continue };
            // A port without any counter was not read.
            if snapshot.reading(port).is_none() {
                continue;
            }
            let counted = self.ports.get(id).copied().unwrap_or(idle);
            let node = past.fabric.port(port).node;
            let absence = absences.get(&node).filter(|_| self.detail == TrafficDetail::Sweep);
            let seconds = absence.copied().unwrap_or(counted.seconds);
            if seconds <= 0.0 {
                continue;
            }
            let flow = |words: u64| {
                let bytes = words.saturating_mul(4);
                let used = congestion::used(bytes, width, speed, seconds)?;
                Some(Flow { rate: (bytes as f64 / seconds) as f32, used })
            };
            let tick = snapshot.ticks[node];
            let found = &mut assessment.ports[port];
            (found.tx, found.rx) = (flow(counted.sent), flow(counted.received));
            let wait = congestion::wait(counted.waited, tick, width, speed, seconds);
            found.wait = wait.filter(|_| absence.is_none());
        }
    }
}

fn seconds(from: i64, to: i64) -> f64 {
    to.saturating_sub(from) as f64 / 1e6
}
