//! `/api/v1/totals`: what counters had counted before their last reset, for a second exporter of the same fabric.

use std::time::{Duration, SystemTime};

use fabric_observation::Observation;
use ib_fabric::PortIndex;
use ib_health::replica::{ReplicaCounter, ReplicaTotals};
use ib_mad::counter::TABLE;
use ib_mad::{Moment, PortKey};

use crate::filter::{Fabrics, Filter, selected};
use crate::model::{FabricTotals, PortTotals, Totals};

/// The path.
pub const TOTALS: &str = "/api/v1/totals";

/// The ports whose counters were ever reset, of the fabrics that a filter selects. `now` is the time of the response.
pub fn totals(fabrics: &Fabrics, filter: &Filter, now: SystemTime) -> Totals {
    let fabrics = selected(fabrics, filter.fabric.as_deref());
    Totals { fabrics: fabrics.map(|it| of_fabric(it, now)).collect() }
}

fn of_fabric(observation: &Observation, now: SystemTime) -> FabricTotals {
    let ports = observation.snapshot.iter().flat_map(|snapshot| snapshot.fabric.port_indexes());
    FabricTotals {
        fabric: observation.fabric.clone(),
        ports: ports.filter_map(|port| of_port(observation, port, now)).collect(),
    }
}

fn of_port(observation: &Observation, port: PortIndex, now: SystemTime) -> Option<PortTotals> {
    let snapshot = observation.snapshot.as_ref()?;
    let assessment = observation.assessment.ports.get(port)?;
    let (offsets, reading) = (assessment.reset_offsets.as_ref()?, snapshot.reading(port));
    let counters = TABLE.iter().filter_map(|row| {
        let offset = offsets[row.counter as usize];
        let total = reading.and_then(|reading| reading.get(row.counter));
        let raw = total.map(|total| total.wrapping_sub(offset));
        // The offset of a counter that was set to another value may be negative.
        (offset.cast_signed() > 0).then(|| (row.metric.into(), (offset, raw)))
    });
    let PortKey { guid, number } = snapshot.fabric.port_key(port);
    let read_at = snapshot.anchor.wall_of(reading.map_or(snapshot.ended, |reading| reading.at));
    Some(PortTotals {
        guid: guid.to_string(),
        port: number,
        read_seconds_ago: now.duration_since(read_at).unwrap_or_default().as_secs_f64(),
        counters: counters.collect(),
    })
}

/// The totals of a fabric from a response that was requested and received at these moments: it was made in between.
pub fn replica_totals(totals: &Totals, fabric: &str, [from, to]: [Moment; 2]) -> ReplicaTotals {
    let of_fabric = totals.fabrics.iter().find(|it| it.fabric == fabric);
    let ports = of_fabric.iter().flat_map(|it| &it.ports);
    let port = |port: &PortTotals| -> Option<(PortKey, Vec<ReplicaCounter>)> {
        let ago = Duration::try_from_secs_f64(port.read_seconds_ago).ok()?;
        let read = [from.before(ago), to.before(ago)];
        let counters = port.counters.iter().filter_map(|(name, &(offset, raw))| {
            let row = TABLE.iter().find(|row| row.metric == name)?;
            Some(ReplicaCounter { counter: row.counter, offset, raw, read })
        });
        Some((PortKey::new(port.guid.parse().ok()?, port.port), counters.collect()))
    };
    ReplicaTotals(ports.filter_map(port).collect())
}
