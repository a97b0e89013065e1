//! Resolves a scenario's file on a net: where the exporter and the subnet managers are.

use std::collections::HashMap;
use std::time::Duration;

use super::entries::{TimelineEntry, move_cables};
use super::file::{DeliveryKeys, File, OwnHostKeys};
use super::index::{EventTime, FabricIndex};
use super::initial_traffic::initial_traffic;
use super::overrides::Overrides;
use super::problem::{Lines, Problem};
use super::resolved::{OwnHost, ResolvedScenario};
use super::timeline::Timeline;
use super::value::Time;
use crate::change::{MadDelivery, TimedChange};
use crate::net::{Net, PortId};
use yaml_config::suggestion::quoted;

/// The longest delay of a MAD.
const LONGEST_DELAY: Duration = Duration::from_secs(60);

/// The most planes: each is monitored by threads of its own.
const MOST_PLANES: usize = 16;
/// The number of unicast LIDs of a subnet (IBTA 1.4, 4.1.3).
const MOST_LIDS: usize = 0xbfff;

/// Resolves a scenario. The speed-up is one of [`SPEEDUPS`](super::overrides::SPEEDUPS).
pub fn resolve(
    file: &File,
    lines: &Lines,
    net: Net,
    overrides: &Overrides,
) -> Result<ResolvedScenario, Problem> {
    let delivery = delivery(file.way.as_ref(), lines)?;
    let seed = file.seed.unwrap_or(1);
    let traffic = file.traffic.clone().unwrap_or_default();
    let packet = traffic.packet.map_or(4096, |packet| packet.0);
    let mut timeline = Timeline::new(&net, lines, seed, delivery, packet, overrides);
    check_size(&timeline.index).map_err(|problem| lines.problem("fabric", problem))?;
    let local_ports = local_ports(&timeline, file)?;
    let sm_ports = sm_ports(&timeline, file, &local_ports)?;
    initial_traffic(&mut timeline, &traffic)?;
    let entries = file.timeline.as_deref().unwrap_or_default();
    // Traffic from the start is number 0.
    let numbered = || {
        entries
            .iter()
            .enumerate()
            .map(|(nth, entry)| (EventTime { time: entry.at(), entry: nth + 1 }, entry))
    };
    let cable_moves = numbered().filter_map(|(at, entry)| {
        let TimelineEntry::MoveCable(entry) = entry else { return None };
        Some((at, entry))
    });
    move_cables(&mut timeline, cable_moves).map_err(|problem| problem.within("move-cable"))?;
    let mut descriptions = Vec::new();
    for (at, entry) in numbered() {
        (timeline.at, timeline.name) = (at, entry.name());
        let sentence = entry.apply(&mut timeline);
        descriptions.push((at, sentence.map_err(|problem| problem.within(entry.name()))?));
    }
    let changes = timeline.take_changes().into_iter();
    let timed = |(at, change): (EventTime, _)| TimedChange { at: timeline.scaled(at.time), change };
    let changes = changes.map(timed).collect();
    let own_host = own_host(&timeline, file, &local_ports)?;
    if let Some(OwnHostKeys { roce: Some(roce), pfc_storm: Some(at) }) = &file.own_host {
        let what = format!("{roce}, a RoCE device of this host, pauses its switch (PFC storm)");
        descriptions.push((EventTime { time: at.0, entry: 0 }, what));
    }
    descriptions.sort_by_key(|(when, _)| *when);
    let described = |(at, text): (EventTime, _)| (timeline.scaled(at.time), text);
    let descriptions = descriptions.into_iter().map(described).collect();
    Ok(ResolvedScenario {
        net,
        local_ports,
        sm_ports,
        seed,
        delivery,
        changes,
        own_host,
        descriptions,
    })
}

fn own_host(
    timeline: &Timeline,
    file: &File,
    local: &[PortId],
) -> Result<Option<OwnHost>, Problem> {
    let Some(OwnHostKeys { roce, pfc_storm }) = &file.own_host else { return Ok(None) };
    let (index, lines) = (&timeline.index, timeline.lines);
    let &[seat] = local else {
        return Err(lines.problem("own-host", "valid only for a fabric with one plane"));
    };
    if let Some(name) = roce
        && (name.is_empty() || !name.bytes().all(|it| it.is_ascii_alphanumeric() || it == b'_'))
    {
        let problem = format!("{} is not the name of a device, such as mlx5_8", quoted(name));
        return Err(lines.problem("own-host.roce", problem));
    }
    if pfc_storm.is_some() && roce.is_none() {
        return Err(lines.problem("own-host.pfc-storm", "needs a RoCE device (roce)"));
    }
    let nodes = index.machine(index.net.port(seat).node);
    let ports = index.host_ports.iter().copied();
    let ports = ports.filter(|port| nodes.contains(&index.net.port(*port).node)).collect();
    let pfc_storm = pfc_storm.map(|at| timeline.scaled(at.0));
    Ok(Some(OwnHost { ports, roce: roce.clone(), pfc_storm }))
}

/// Checks that every port can have a LID, and every plane be monitored.
fn check_size(index: &FabricIndex) -> Result<(), String> {
    let count = index.host_planes.len();
    let mut lids: HashMap<PortId, usize> = HashMap::new();
    for port in index.net.port_ids().filter(|port| index.net.has_lid(*port)) {
        *lids.entry(index.plane(port)).or_default() += 1;
    }
    let lids = lids.into_values().max().unwrap_or_default();
    Err(if count > MOST_PLANES {
        format!("it consists of {count} separate fabrics; at most {MOST_PLANES} can be monitored")
    } else if lids > MOST_LIDS {
        format!("its switches and adapter ports need {lids} LIDs; a fabric has at most {MOST_LIDS}")
    } else {
        return Ok(());
    })
}

fn delivery(entry: Option<&DeliveryKeys>, lines: &Lines) -> Result<MadDelivery, Problem> {
    let entry = entry.cloned().unwrap_or_default();
    let time = |key: &str, given: Option<Time>, default: u64| match given {
        None => Ok(Duration::from_micros(default)),
        Some(Time(time)) if time <= LONGEST_DELAY => Ok(time),
        Some(_) => Err(lines.problem(&format!("way.{key}"), "must be at most 1m")),
    };
    Ok(MadDelivery {
        round_trip: time("round-trip", entry.round_trip, 20)?,
        per_hop: time("per-hop", entry.per_hop, 1)?,
        jitter: time("jitter", entry.jitter, 10)?,
        loss: entry.loss.map_or(0.0, |loss| loss.0),
    })
}

fn local_ports(timeline: &Timeline, file: &File) -> Result<Vec<PortId>, Problem> {
    let index = &timeline.index;
    let seat = timeline.named_port("seat", file.seat.as_ref(), FabricIndex::host)?;
    let first = seat.or(index.host_ports.first().copied()).ok_or_else(|| {
        let problem = "seat: the fabric has no host with a cable";
        Problem::new(timeline.lines.of("fabric"), problem)
    })?;
    let planes = index.planes_from(first).into_iter();
    Ok(planes.filter_map(|plane| index.counterpart(plane, first)).collect())
}

fn sm_ports(timeline: &Timeline, file: &File, local: &[PortId]) -> Result<Vec<PortId>, Problem> {
    let index = &timeline.index;
    let named = timeline.named_port("master", file.master.as_ref(), FabricIndex::sm_location)?;
    // The second host, or else the only one.
    let default = || {
        let node = |port: &PortId| index.net.port(*port).node;
        let mut hosts = index.host_ports_in(index.plane(*local.first()?));
        let first = hosts.next()?;
        Some(hosts.find(|port| node(port) != node(&first)).unwrap_or(first))
    };
    let named = named.or_else(default);
    let in_plane_of = |local: &PortId| {
        named.and_then(|port| index.counterpart(index.plane(*local), port)).unwrap_or(*local)
    };
    Ok(local.iter().map(in_plane_of).collect())
}
