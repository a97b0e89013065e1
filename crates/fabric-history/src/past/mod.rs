//! The fabrics as they were at a moment: an [`Observation`] of each, made of what the file has, so that everything that
//! shows the present can show the past.
//!
//! It is what a reader of the exporter saw then: the latest sweep that had *ended* by that moment. Topology, names,
//! states, rates, verdicts with their evidence, traffic, waits and error counters come from the file. What identifies
//! hardware and does not change with time (device types, front panels, which ports are planes of one cable) is taken
//! from the present fabric, if there is one and the node is still in it. What the file never had is absent: LIDs,
//! firmware, modules, temperatures, bit error ratios and the error correction of ports.

mod congestion;
mod events;
mod fabric;
mod limits;
mod links;
mod neighbors;
mod sweep;
mod traffic;

use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use rusqlite::Result;

use crate::file::counter_ids::CounterIds;
use crate::file::frame::Frame;
use crate::file::record_kind::RecordKind;
use crate::file::sql::Sql;
use crate::file::timeline::Timeline;
use crate::file::totals;
use crate::micros_of;
use crate::settings::HOST_FABRIC;
use fabric_observation::{Collector, Observation};
use ib_fabric::{NodeIndex, PortMap};
use ib_health::{Assessment, PortAssessment};

use events::LastEvents;
use fabric::PastTopology;
pub use neighbors::Neighbors;
use sweep::Sweep;
use traffic::Traffic;
pub use traffic::TrafficDetail;

/// The sweeps whose distances tell the interval of sweeps.
const SWEEPS_OF_INTERVAL: u32 = 16;

/// The fabrics at a moment, and what is around it.
#[derive(Clone, Debug)]
pub struct Past {
    /// The moment that was asked for.
    pub at: SystemTime,
    /// The fabrics that had been recorded by then.
    pub fabrics: Vec<PastFabric>,
    /// The sweeps and events next to it.
    pub neighbors: Neighbors,
}

/// A fabric at a moment.
#[derive(Clone, Debug)]
pub struct PastFabric {
    /// What was published of it.
    pub observation: Arc<Observation>,
    /// How finely its traffic is known.
    pub traffic: TrafficDetail,
    /// When its sweep ended.
    pub swept: SystemTime,
    /// The sweep was so long before the moment that others are missing: nothing was recorded in between.
    pub is_gap: bool,
}

impl Past {
    /// What was published of the fabrics.
    pub fn observations(&self) -> Vec<Arc<Observation>> {
        self.fabrics.iter().map(|fabric| Arc::clone(&fabric.observation)).collect()
    }
}

/// Addresses and JSON have times to the millisecond: what happened within it is included.
fn end_of_millisecond(at: SystemTime) -> i64 {
    micros_of(at).div_euclid(1000).saturating_mul(1000).saturating_add(999)
}

/// Reads the fabrics at a moment. `present` are the fabrics as they are now.
pub(crate) fn read(
    sql: Sql<'_>,
    counter_ids: &CounterIds,
    at: SystemTime,
    present: &[Arc<Observation>],
) -> Result<Past> {
    let (mut fabrics, mut hidden) = (Vec::new(), None);
    let until = end_of_millisecond(at);
    for (fabric, name) in sql.fabrics()? {
        // The devices of this host are no fabric, unless somebody calls one so.
        if name == HOST_FABRIC && !present.iter().any(|it| it.fabric == name) {
            hidden = Some(fabric);
            continue;
        }
        let known = present.iter().find(|observation| observation.fabric == name);
        let latest: Vec<(i64, i64)> = sql.sweeps_that_ended(fabric, until, 1)?;
        let Some(&(began, ended)) = latest.first() else { continue };
        let sweep = Sweep::new(began, ended);
        let reader = FabricReader { sql, counter_ids, fabric, sweep };
        fabrics.extend(reader.read(&name, at, known.map(|known| &**known))?);
    }
    // In the order of the settings, as now.
    let place = |it: &PastFabric| {
        let place = present.iter().position(|known| known.fabric == it.observation.fabric);
        place.unwrap_or(usize::MAX)
    };
    fabrics.sort_by_key(place);
    Ok(Past { at, fabrics, neighbors: neighbors::read(sql, until, hidden)? })
}

/// Reads one fabric as a sweep found it.
struct FabricReader<'a> {
    sql: Sql<'a>,
    counter_ids: &'a CounterIds,
    fabric: i64,
    sweep: Sweep,
}

impl FabricReader<'_> {
    /// `None` if the states of its ports cannot be read.
    fn read(
        &self,
        name: &str,
        at: SystemTime,
        present: Option<&Observation>,
    ) -> Result<Option<PastFabric>> {
        let &FabricReader { sql, counter_ids, fabric, sweep } = self;
        let timeline = Timeline::read(sql, fabric, sweep.began, sweep.began)?;
        if !timeline.is_known {
            return Ok(None);
        }
        let now = present.and_then(|it| it.snapshot.as_deref());
        let past = fabric::assemble(&timeline, sweep.began, now.map(|it| &*it.fabric));
        let events = events::read(sql, fabric, end_of_millisecond(at), sweep.anchor.wall)?;
        let mut snapshot = past.snapshot(&timeline, sweep, now);
        let mut assessment = Assessment {
            ports: PortMap::filled(snapshot.fabric.ports.len(), PortAssessment::default()),
            ..Assessment::default()
        };
        links::assess(&past, &timeline, sweep, &events, &mut assessment);
        let totals = totals::errors_at(sql, counter_ids, fabric, sweep.began)?;
        past.count(&totals, &mut snapshot);
        let traffic = Traffic::read(sql, counter_ids, fabric, sweep.began)?;
        let returned = self.returned(&past, &timeline, &events)?;
        for node in &returned.unread {
            for port in snapshot.fabric.ports_of(*node) {
                snapshot.readings[port] = None;
            }
        }
        traffic.add_to(&past, &snapshot, &returned.read_after, &mut assessment);
        congestion::find(&snapshot, &mut assessment);
        let mut observation = Observation {
            fabric: name.to_owned(),
            snapshot: Some(Arc::new(snapshot)),
            assessment,
            // It has no interval: it does not become stale.
            ..Observation::default()
        };
        (observation.stats.sweeps, observation.stats.discoveries) = (1, 1);
        for collector in Collector::ALL {
            observation.stats.set_success(collector, true);
        }
        let swept = sweep.anchor.wall;
        let age = at.duration_since(swept).unwrap_or_default();
        let interval = interval(sql, fabric, sweep.began)?;
        let is_gap = !interval.is_zero() && age > interval * 5 / 2;
        let observation = Arc::new(observation);
        Ok(Some(PastFabric { observation, traffic: traffic.detail, swept, is_gap }))
    }
}

/// A node that was found again this many sweeps before, or fewer, may be read for the first time since.
const SWEEPS_UNTIL_READ: u32 = 4;

/// The nodes that respond again after an absence, and are read for the first time since then.
#[derive(Debug, Default)]
struct Returned {
    /// For how many seconds they had not been read.
    read_after: HashMap<NodeIndex, f64>,
    /// They respond, but were not read yet.
    unread: Vec<NodeIndex>,
}

impl FabricReader<'_> {
    fn returned(
        &self,
        past: &PastTopology,
        timeline: &Timeline,
        events: &LastEvents,
    ) -> Result<Returned> {
        let &FabricReader { sql, fabric, sweep, .. } = self;
        let sweeps = sql.sweeps_until(fabric, sweep.began, SWEEPS_UNTIL_READ)?;
        let first = sweeps.last().map_or(sweep.began, |(began, _)| *began);
        let mut returned = events.nodes_returned.clone();
        returned.retain(|_, absence| micros_of(absence.up) >= first);
        let mut found = Returned::default();
        if returned.is_empty() {
            return Ok(found);
        }
        let (kind, mut read_now) = (RecordKind::TrafficDeltas, HashSet::new());
        sql.frames(kind, Some(fabric), None, first..=sweep.began, &mut |row| {
            let Ok(frame) = Frame::unpack(row.data) else { return Ok(()) };
            for entry in frame.entries() {
                let Some(port) = timeline.ports.get(entry.port) else { continue };
                if row.began == sweep.began {
                    read_now.insert(port.node);
                } else if returned.get(&port.node).is_some_and(|it| micros_of(it.up) <= row.began) {
                    // An earlier sweep has read it.
                    returned.remove(&port.node);
                }
            }
            Ok(())
        })?;
        for (id, absence) in returned {
            let Some(node) = past.nodes.get(&id) else { continue };
            if !read_now.contains(&id) {
                found.unread.push(*node);
                continue;
            }
            // The sweep that found it down did not read it.
            let read = sql.sweep_before(fabric, micros_of(absence.down))?;
            found.read_after.insert(*node, sweep.began.saturating_sub(read) as f64 / 1e6);
        }
        Ok(found)
    }
}

/// The usual time between sweeps before a moment: their median.
fn interval(sql: Sql<'_>, fabric: i64, began: i64) -> Result<Duration> {
    let sweeps = sql.sweeps_until(fabric, began, SWEEPS_OF_INTERVAL)?.into_iter();
    let steps =
        sweeps.filter_map(|(began, since)| u64::try_from(began.saturating_sub(since?)).ok());
    let mut steps: Vec<u64> = steps.collect();
    steps.sort_unstable();
    Ok(Duration::from_micros(steps.get(steps.len() / 2).copied().unwrap_or(0)))
}
