//! What is written of a sweep: how much each counter increased, and the states of ports, links and nodes, all of
//! them once an hour, and the changes in between.

use std::collections::BTreeMap;
use std::time::Duration;

use rusqlite::{Result, Transaction, params};

use crate::file::counter_ids::CounterIds;
use crate::file::frame::Frame;
use crate::file::id_map::IdMap;
use crate::file::record_kind::{RecordKind, State, part_of};
use crate::file::sql::Sql;
use crate::file::totals::{PortTotals, TotalsTable};
use crate::record::catalog::FabricIds;
use crate::record::events::active_rate;
use ib_fabric::{PortMap, Snapshot};
use ib_health::{Assessment, LinkAssessment, Reason, Verdict};
use ib_mad::Counter;

/// The increases of a sweep's counters; traffic and first values by part of the ports ([`part_of`]).
#[derive(Default)]
pub struct CounterDeltas {
    errors: Frame,
    traffic: BTreeMap<u32, Frame>,
    /// Totals of counters that were never seen before, or that were restarted.
    first: BTreeMap<u32, Frame>,
    /// Whether some of `first` was written already.
    is_first_written: bool,
}

/// A part with this many ports of first values is written as soon as another part begins.
const MAX_FIRST_PORTS: usize = 256;

/// Writes the rows of a sweep: of its fabric, by its id, with its times in microseconds since 1970.
#[derive(Clone, Copy)]
pub struct SweepWriter<'a> {
    pub db: &'a Transaction<'a>,
    pub counters: &'a CounterIds,
    pub fabric: i64,
    pub began: i64,
    pub ended: i64,
}

impl SweepWriter<'_> {
    /// Writes a frame unless it is empty; returns whether it was written.
    pub fn frame(self, kind: RecordKind, part: Option<u32>, frame: &Frame) -> Result<bool> {
        if frame.is_empty() {
            return Ok(false);
        }
        let packed = frame.pack().map_err(pack_error)?;
        Sql(self.db).execute(
            "INSERT INTO frames (fabric, tier, part, began, ended, data) VALUES (?1, ?2, ?3, ?4, ?5, ?6)",
            params![self.fabric, kind, part, self.began, self.ended, packed],
        )?;
        Ok(true)
    }
}

impl CounterDeltas {
    /// Compares a sweep with the totals that were written last, and updates these. Writes part of the first
    /// values as it goes: with the first sweep of 60,000 ports they are 20 MB.
    pub fn compute(
        sweep: SweepWriter<'_>,
        totals_table: &mut TotalsTable,
        ids: &FabricIds,
        snapshot: &Snapshot,
    ) -> Result<Self> {
        let mut deltas = CounterDeltas::default();
        let counters: Vec<(u8, Counter)> = sweep.counters.in_order().collect();
        let mut last_part = 0;
        let [mut errors, mut traffic, mut first] = [const { Vec::<(u8, u64)>::new() }; 3];
        for (&port, reading) in ids.ports.iter().zip(&snapshot.readings) {
            let Some(reading) = reading else { continue };
            let totals = totals_table.get_or_insert_with(port, || PortTotals::blank(sweep.fabric));
            for &(id, counter) in &counters {
                let Some(total) = reading.get(counter) else { continue };
                let is_rare = || RecordKind::of(counter) == RecordKind::ErrorDeltas;
                let (values, value) = match totals.get(counter) {
                    Some(last) if last == total => continue,
                    Some(last) if last < total && is_rare() => (&mut errors, total - last),
                    Some(last) if last < total => (&mut traffic, total - last),
                    // Never seen, or restarted: the monitor did not know the total before.
                    _ => (&mut first, total),
                };
                values.push((id, value));
                totals.set(counter, total);
            }
            let after = reading.at.since(snapshot.began).as_millis();
            let after = u32::try_from(after).unwrap_or(u32::MAX);
            let part = part_of(port);
            if std::mem::replace(&mut last_part, part) != part {
                deltas.write_full_first(sweep)?;
            }
            deltas.errors.push(port, after, errors.drain(..));
            let parts = [(&mut traffic, &mut deltas.traffic), (&mut first, &mut deltas.first)];
            for (values, parts) in parts {
                if !values.is_empty() {
                    parts.entry(part).or_default().push(port, after, values.drain(..));
                }
            }
        }
        Ok(deltas)
    }

    /// Writes first values of a part with many ports, so that they need not be held until the end.
    fn write_full_first(&mut self, sweep: SweepWriter<'_>) -> Result<()> {
        let mut parts = self.first.iter_mut();
        if let Some((part, full)) = parts.find(|it| it.1.entries().len() >= MAX_FIRST_PORTS) {
            self.is_first_written |= sweep.frame(RecordKind::FirstTotals, Some(*part), full)?;
            *full = Frame::default();
        }
        Ok(())
    }

    /// Writes what is not written yet; returns how many kinds of frames the sweep has.
    pub fn write(&self, sweep: SweepWriter<'_>) -> Result<u64> {
        let mut written = u64::from(sweep.frame(RecordKind::ErrorDeltas, None, &self.errors)?);
        for (kind, parts, mut any) in [
            (RecordKind::FirstTotals, &self.first, self.is_first_written),
            (RecordKind::TrafficDeltas, &self.traffic, false),
        ] {
            for (part, frame) in parts {
                any |= sweep.frame(kind, Some(*part), frame)?;
            }
            written += u64::from(any);
        }
        Ok(written)
    }
}

/// An error of packing, as an error of SQLite.
pub fn pack_error(error: std::io::Error) -> rusqlite::Error {
    rusqlite::Error::ToSqlConversionFailure(Box::new(error))
}

/// The reason that says most about a verdict. That a link is not judged on purpose says more than that little is known
/// of it.
fn main_reason(link: &LinkAssessment) -> Option<Reason> {
    use Reason::{Disabled, Internal, Maintenance, NvLink};
    let purposes = [Maintenance, Disabled, Internal, NvLink].into_iter();
    let mut purposes = purposes.filter(|it| link.reasons.weight(*it).is_some());
    let worst = || link.reasons.worst().map(|(reason, _)| reason);
    let on_purpose = purposes.next().filter(|_| link.verdict == Verdict::Unknown);
    on_purpose.or_else(worst)
}

/// Time between two sweeps of which all states are written: reconstructing a fabric reads one of them and
/// the changes after it. That of 60,000 ports takes 1 kB while they are alike.
const ALL_INTERVAL: Duration = Duration::from_secs(3600);

/// The states of a fabric that were written last, by id.
#[derive(Debug, Default)]
pub struct StateDeltas {
    ports: IdMap<State>,
    nodes: IdMap<State>,
    /// The beginning of the sweep of which all states were last written; `None` after a start.
    all_written: Option<i64>,
}

impl StateDeltas {
    /// Writes the states that changed, or all of them when that is due.
    pub fn write(
        &mut self,
        sweep: SweepWriter<'_>,
        ids: &FabricIds,
        snapshot: &Snapshot,
        assessment: &Assessment,
    ) -> Result<()> {
        let interval = ALL_INTERVAL.as_micros() as i64;
        // Also due if the clock was set back.
        let is_due = |written: i64| !(0..interval).contains(&sweep.began.saturating_sub(written));
        let is_all = self.all_written.is_none_or(is_due);
        if is_all {
            *self = StateDeltas { all_written: Some(sweep.began), ..StateDeltas::default() };
        }
        let mut links = PortMap::filled(ids.ports.len(), (None, None));
        // The cable of several planes has the ports of the lowest one.
        for link in &assessment.links {
            for plane in link.plane_links() {
                let up = if plane.link == link.link { link.up } else { plane.up };
                for end in plane.link.ports() {
                    if let Some(found) = links.get_mut(end) {
                        *found = (up, Some((link.verdict, main_reason(link))));
                    }
                }
            }
        }
        let mut ports = Frame::default();
        let ends = snapshot.fabric.port_indexes().zip(&ids.ports).zip(links);
        for ((index, &port), (up, verdict)) in ends {
            let rate = active_rate(snapshot, index);
            let now = State::of_port(up, rate, verdict);
            let was = self.ports.insert(port, now).unwrap_or_default();
            ports.push(port, 0, now.changes_since(was));
        }
        let mut nodes = Frame::default();
        for (index, &node) in snapshot.fabric.node_indexes().zip(&ids.present_nodes) {
            let is_absent = !snapshot.fabric.node(index).present();
            let in_maintenance = assessment.in_maintenance.contains(&index);
            let now = State::of_node(snapshot.is_up(index), is_absent, in_maintenance);
            let was = self.nodes.insert(node, now).unwrap_or_default();
            nodes.push(node, 0, now.changes_since(was));
        }
        let [ports_kind, nodes_kind] = if is_all {
            [RecordKind::PortStates, RecordKind::NodeStates]
        } else {
            [RecordKind::PortChanges, RecordKind::NodeChanges]
        };
        sweep.frame(ports_kind, None, &ports)?;
        sweep.frame(nodes_kind, None, &nodes)?;
        Ok(())
    }
}
