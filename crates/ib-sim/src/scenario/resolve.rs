//! Resolves a scenario's file on a net.

use std::time::Duration;

use super::file::{DeliveryEntry, File, Pattern, TrafficEntry};
use super::index::{EventTime, FabricIndex};
use super::link_entries::move_cables;
use super::source::{Lines, Problem};
use super::timeline::{Context, Timeline};
use super::value::Time;
use super::{Action, MadDelivery, ResolvedScenario, TimedAction, traffic};
use crate::net::{Net, NodeId, PortId};
use site_config::suggestion::quoted;

/// The name of the flows from the start.
const INITIAL_TRAFFIC: &str = "traffic";
/// The longest delay of a MAD.
const LONGEST_DELAY: Duration = Duration::from_secs(60);

/// The range of speed-ups. An entry may begin after ten years, be repeated for ten and last for
/// ten: ten times as long is 300 years, and the clock ends after 584.
pub(super) const SPEEDUPS: std::ops::RangeInclusive<f64> = 0.1..=10_000.0;

/// The most planes: each is monitored by threads of its own.
const MOST_PLANES: usize = 16;
/// The number of unicast LIDs of a subnet (IBTA 1.4, 4.1.3).
const MOST_LIDS: usize = 0xbfff;

/// Resolves a scenario. `speedup` is one of [`SPEEDUPS`].
pub(super) fn resolve(
    file: &File,
    lines: &Lines,
    net: Net,
    speedup: f64,
) -> Result<ResolvedScenario, Problem> {
    let delivery = delivery(file.way.as_ref(), lines)?;
    let seed = file.seed.unwrap_or(1);
    let traffic = file.traffic.clone().unwrap_or_default();
    let packet = traffic.packet.map_or(4096, |packet| packet.0);
    let mut timeline = Timeline::new(&net, seed, delivery, packet, speedup);
    check_size(&timeline.index)
        .map_err(|text| Problem::new(lines.of("fabric"), text).within("fabric"))?;
    let local_ports = local_ports(&timeline.index, file, lines)?;
    let sm_ports = sm_ports(&timeline.index, file, lines, &local_ports)?;
    let mut actions = initial_traffic(&timeline, &traffic, lines)?;
    apply_entries(&mut timeline, file, lines)?;
    actions.append(&mut timeline.take_actions());
    actions.sort_by_key(|(when, _)| *when);
    timeline.descriptions.sort_by_key(|(when, _)| *when);
    let actions = actions
        .into_iter()
        .map(|((at, _), action)| TimedAction { at: timeline.scaled(at), action })
        .collect();
    let descriptions = std::mem::take(&mut timeline.descriptions)
        .into_iter()
        .map(|((at, _), sentence)| (timeline.scaled(at), sentence))
        .collect();
    Ok(ResolvedScenario { net, local_ports, sm_ports, seed, delivery, actions, descriptions })
}

/// Checks that every port can have a LID, and every plane be monitored.
fn check_size(index: &FabricIndex<'_>) -> Result<(), String> {
    let (count, lids) = (index.plane_count(), index.most_lids());
    if count > MOST_PLANES {
        return Err(format!(
            "it is {count} fabrics side by side, and at most {MOST_PLANES} can be watched"
        ));
    }
    if lids > MOST_LIDS {
        return Err(format!(
            "its switches and its adapters' ports need {lids} LIDs, and a fabric has {MOST_LIDS}"
        ));
    }
    Ok(())
}

fn delivery(entry: Option<&DeliveryEntry>, lines: &Lines) -> Result<MadDelivery, Problem> {
    let entry = entry.cloned().unwrap_or_default();
    let time = |key: &str, given: Option<Time>, default: u64| match given {
        None => Ok(Duration::from_micros(default)),
        Some(Time(time)) if time <= LONGEST_DELAY => Ok(time),
        Some(_) => {
            let line = lines.of(&format!("way.{key}"));
            Err(Problem::new(line, format!("way: {key}: it is more than a minute")))
        }
    };
    Ok(MadDelivery {
        round_trip: time("round-trip", entry.round_trip, 20)?,
        per_hop: time("per-hop", entry.per_hop, 1)?,
        jitter: time("jitter", entry.jitter, 10)?,
        loss: entry.loss.map_or(0.0, |loss| loss.0),
    })
}

type Lookup<'a> = fn(&FabricIndex<'a>, &str) -> Result<(NodeId, Option<PortId>), String>;

/// The port that a key names: of a host its first port with a cable. `label` is the key in errors.
fn named_port<'a>(
    index: &FabricIndex<'a>,
    lines: &Lines,
    (path, label): (&str, &str),
    text: &str,
    lookup: Lookup<'a>,
) -> Result<PortId, Problem> {
    let found = lookup(index, text).and_then(|place| {
        index.cabled_port(place).ok_or_else(|| format!("{} has no cable", quoted(text)))
    });
    found.map_err(|problem| Problem::new(lines.of(path), problem).within(label))
}

fn local_ports(
    index: &FabricIndex<'_>,
    file: &File,
    lines: &Lines,
) -> Result<Vec<PortId>, Problem> {
    let first = match &file.seat {
        Some(seat) => named_port(index, lines, ("seat", "seat"), seat, FabricIndex::host)?,
        None => index.host_ports().first().copied().ok_or_else(|| {
            let problem = "seat: the fabric has no host with a cable to sit at";
            Problem::new(lines.of("fabric"), problem)
        })?,
    };
    let planes = index.planes_from(first).into_iter();
    Ok(planes.filter_map(|plane| index.counterpart(plane, first)).collect())
}

fn sm_ports(
    index: &FabricIndex<'_>,
    file: &File,
    lines: &Lines,
    local_ports: &[PortId],
) -> Result<Vec<PortId>, Problem> {
    let named = if let Some(master) = &file.master {
        Some(named_port(index, lines, ("master", "master"), master, FabricIndex::sm_place)?)
    } else {
        // The second host, or else the only one.
        let node = |port: &PortId| index.net.port(*port).node;
        let plane = local_ports.first().map(|port| index.plane(*port));
        let hosts: Vec<PortId> =
            plane.map_or_else(Vec::new, |plane| index.host_ports_in(plane).collect());
        let first = hosts.first().map(node);
        hosts.iter().find(|port| Some(node(port)) != first).or(hosts.first()).copied()
    };
    let in_plane_of = |local: &PortId| {
        named.and_then(|port| index.counterpart(index.plane(*local), port)).unwrap_or(*local)
    };
    Ok(local_ports.iter().map(in_plane_of).collect())
}

fn initial_traffic(
    timeline: &Timeline<'_>,
    entry: &TrafficEntry,
    lines: &Lines,
) -> Result<Vec<(EventTime, Action)>, Problem> {
    // A shift of all hosts by one number spreads evenly in a fat tree, and random pairs do not. So
    // no port waits before an entry makes it.
    let pattern = entry.pattern.unwrap_or(Pattern::Across);
    let load = entry.load.map_or(0.2, |load| load.0);
    let index = &timeline.index;
    let to = match &entry.to {
        None => None,
        Some(_) if pattern != Pattern::AllToOne => {
            let problem = "traffic: to: only the pattern all-to-one has it";
            return Err(Problem::new(lines.of("traffic.to"), problem));
        }
        Some(to) => {
            let key = ("traffic.to", "traffic: to");
            Some(named_port(index, lines, key, to, FabricIndex::host)?)
        }
    };
    let pairs = traffic::pairs(pattern, index, timeline.seed, to);
    if pairs.is_empty() || load == 0.0 {
        return Ok(Vec::new());
    }
    let flow = |pair| traffic::flow(index.net, pair, load, timeline.packet);
    let flows = pairs.into_iter().map(flow).collect();
    let action = Action::SetTraffic { name: INITIAL_TRAFFIC.into(), flows };
    Ok(vec![((Duration::ZERO, 0), action)])
}

fn apply_entries(timeline: &mut Timeline<'_>, file: &File, lines: &Lines) -> Result<(), Problem> {
    let entries = file.timeline.as_deref().unwrap_or_default();
    // Traffic from the start is number 0.
    let numbered = || entries.iter().enumerate().map(|(nth, entry)| ((entry.at(), nth + 1), entry));
    move_cables(timeline, lines, numbered()).map_err(|problem| problem.within("move-cable"))?;
    for (at, entry) in numbered() {
        let mut context = Context::new(timeline, at, lines, entry.name());
        let sentence = entry.apply(&mut context).map_err(|problem| problem.within(entry.name()))?;
        timeline.descriptions.push((at, sentence));
    }
    Ok(())
}
