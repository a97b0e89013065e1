//! Resolves a scenario's file on a net: where the exporter and the subnet managers are, and the traffic from
//! the start.

use std::collections::{BTreeMap, HashMap};
use std::time::Duration;

use super::file::{DeliveryEntry, File, OwnHostEntry, Pattern, TrafficEntry};
use super::index::{EventTime, FabricIndex};
use super::link_entries::move_cables;
use super::source::{Lines, Overrides, Problem};
use super::timeline::Timeline;
use super::value::Time;
use super::{Action, MadDelivery, OwnHost, ResolvedScenario, TimedAction};
use crate::load::Flow;
use crate::net::{Net, NodeId, PortId};
use crate::rng::Rng;
use ib_mad::rate::bytes_per_second;
use yaml_config::suggestion::quoted;

/// The name of the flows from the start.
const INITIAL_TRAFFIC: &str = "traffic";
/// Key of the random numbers of the pattern: no other use draws the same.
const TRAFFIC: u64 = 1;
/// The longest delay of a MAD.
const LONGEST_DELAY: Duration = Duration::from_secs(60);

/// The range of speed-ups. An entry may begin after ten years, be repeated for ten and last for
/// ten: ten times as long is 300 years, and the clock ends after 584.
pub const SPEEDUPS: std::ops::RangeInclusive<f64> = 0.1..=10_000.0;

/// The most planes: each is monitored by threads of its own.
const MOST_PLANES: usize = 16;
/// The number of unicast LIDs of a subnet (IBTA 1.4, 4.1.3).
const MOST_LIDS: usize = 0xbfff;

/// Resolves a scenario. The speed-up is one of [`SPEEDUPS`].
pub fn resolve(
    file: &File,
    lines: &Lines,
    net: Net,
    overrides: &Overrides,
) -> Result<ResolvedScenario, Problem> {
    let delivery = delivery(file.way.as_ref(), lines)?;
    let seed = file.seed.unwrap_or(1);
    let traffic = file.traffic.clone().unwrap_or_default();
    let mut timeline = Timeline {
        index: FabricIndex::new(&net),
        lines,
        seed,
        delivery,
        packet: traffic.packet.map_or(4096, |packet| packet.0),
        speedup: overrides.speedup,
        clock: overrides.clock.max(1),
        at: EventTime::default(),
        name: "",
        effects: BTreeMap::new(),
        actions: Vec::new(),
        action_count: 0,
        port_count: 0,
    };
    check_size(&timeline.index).map_err(|problem| lines.problem("fabric", problem))?;
    let local_ports = local_ports(&timeline, file)?;
    let sm_ports = sm_ports(&timeline, file, &local_ports)?;
    initial_traffic(&mut timeline, &traffic)?;
    let entries = file.timeline.as_deref().unwrap_or_default();
    // Traffic from the start is number 0.
    let numbered = || entries.iter().enumerate().map(|(nth, entry)| ((entry.at(), nth + 1), entry));
    let moved = move_cables(&mut timeline, numbered());
    moved.map_err(|problem| problem.within("move-cable"))?;
    let mut descriptions = Vec::new();
    for (at, entry) in numbered() {
        (timeline.at, timeline.name) = (at, entry.name());
        let sentence = entry.apply(&mut timeline);
        descriptions.push((at, sentence.map_err(|problem| problem.within(entry.name()))?));
    }
    let actions = timeline.take_actions().into_iter();
    let timed = |((at, _), action)| TimedAction { at: timeline.scaled(at), action };
    let actions = actions.map(timed).collect();
    let own_host = own_host(&timeline, file, &local_ports)?;
    if let Some(OwnHostEntry { roce: Some(roce), pfc_storm: Some(at) }) = &file.own_host {
        let what = format!("{roce}, a RoCE device of this host, pauses its switch (PFC storm)");
        descriptions.push(((at.0, 0), what));
    }
    descriptions.sort_by_key(|(when, _)| *when);
    let descriptions = descriptions.into_iter();
    let descriptions = descriptions.map(|((at, _), text)| (timeline.scaled(at), text)).collect();
    Ok(ResolvedScenario {
        net,
        local_ports,
        sm_ports,
        seed,
        delivery,
        actions,
        own_host,
        descriptions,
    })
}

fn own_host(
    timeline: &Timeline,
    file: &File,
    local: &[PortId],
) -> Result<Option<OwnHost>, Problem> {
    let Some(OwnHostEntry { roce, pfc_storm }) = &file.own_host else { return Ok(None) };
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

fn delivery(entry: Option<&DeliveryEntry>, lines: &Lines) -> Result<MadDelivery, Problem> {
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

/// The port that a key names, if the file has it: of a host its first port with a cable.
fn named_port<'a>(
    timeline: &Timeline<'a>,
    path: &str,
    text: Option<&String>,
    lookup: impl Fn(&FabricIndex<'a>, &str) -> Result<(NodeId, Option<PortId>), String>,
) -> Result<Option<PortId>, Problem> {
    let Some(text) = text else { return Ok(None) };
    let found = lookup(&timeline.index, text).and_then(|place| {
        let port = timeline.index.cabled_port(place);
        port.ok_or_else(|| format!("{} has no cable", quoted(text)))
    });
    found.map(Some).map_err(|problem| timeline.lines.problem(path, problem))
}

fn local_ports(timeline: &Timeline, file: &File) -> Result<Vec<PortId>, Problem> {
    let index = &timeline.index;
    let seat = named_port(timeline, "seat", file.seat.as_ref(), FabricIndex::host)?;
    let first = seat.or(index.host_ports.first().copied()).ok_or_else(|| {
        let problem = "seat: the fabric has no host with a cable";
        Problem::new(timeline.lines.of("fabric"), problem)
    })?;
    let planes = index.planes_from(first).into_iter();
    Ok(planes.filter_map(|plane| index.counterpart(plane, first)).collect())
}

fn sm_ports(timeline: &Timeline, file: &File, local: &[PortId]) -> Result<Vec<PortId>, Problem> {
    let index = &timeline.index;
    let named = named_port(timeline, "master", file.master.as_ref(), FabricIndex::sm_location)?;
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

fn initial_traffic(timeline: &mut Timeline, entry: &TrafficEntry) -> Result<(), Problem> {
    // A shift of all hosts by one number spreads evenly in a fat tree, and random pairs do not. So
    // no port waits before an entry makes it.
    let pattern = entry.pattern.unwrap_or(Pattern::Across);
    let load = entry.load.map_or(0.2, |load| load.0);
    let index = &timeline.index;
    if entry.to.is_some() && pattern != Pattern::AllToOne {
        return Err(timeline.lines.problem("traffic.to", "valid only with pattern all-to-one"));
    }
    let to = named_port(timeline, "traffic.to", entry.to.as_ref(), FabricIndex::host)?;
    let pairs = pairs(pattern, index, timeline.seed, to);
    if !pairs.is_empty() && load != 0.0 {
        let flow = |pair| flow(index.net, pair, load, timeline.packet);
        let flows = pairs.into_iter().map(flow).collect();
        let action = Action::SetTraffic { name: INITIAL_TRAFFIC.into(), flows };
        timeline.actions.push(((Duration::ZERO, 0), action));
    }
    Ok(())
}

/// What a port's link can carry as built, in bytes a second; 0 without a link.
pub fn link_rate(net: &Net, port: PortId) -> f64 {
    let here = net.port(port);
    let Some(there) = here.cable.map(|peer| net.port(peer)) else {
        return 0.0;
    };
    let best = here.rates.common(there.rates).best();
    best.map_or(0.0, |(width, speed)| bytes_per_second(width, speed) as f64)
}

/// A flow that offers this fraction of what the sender's link carries.
pub fn flow(net: &Net, (from, to): (PortId, PortId), load: f64, packet: u32) -> Flow {
    Flow { from, to, offered: load * link_rate(net, from), packet }
}

/// The pairs of a pattern in each plane; no packet passes from one plane to another. `to` is the
/// receiver of [`Pattern::AllToOne`]; in the other planes that is its counterpart.
fn pairs(
    pattern: Pattern,
    index: &FabricIndex,
    seed: u64,
    to: Option<PortId>,
) -> Vec<(PortId, PortId)> {
    let planes = index.host_ports.first().map(|first| index.planes_from(*first));
    let mut pairs = Vec::new();
    for (number, plane) in planes.into_iter().flatten().enumerate() {
        let hosts: Vec<PortId> = index.host_ports_in(plane).collect();
        let mut receivers = hosts.clone();
        match pattern {
            Pattern::None => continue,
            Pattern::Neighbours => receivers.rotate_left(1.min(hosts.len())),
            Pattern::Across => receivers.rotate_left(hosts.len() / 2),
            Pattern::Random => {
                Rng::keyed(seed, &[TRAFFIC, number as u64]).shuffle_cyclic(&mut receivers);
            }
            Pattern::AllToOne => {
                let one = to.and_then(|to| index.counterpart(plane, to));
                if let Some(one) = one.or(hosts.first().copied()) {
                    receivers.fill(one);
                }
            }
        }
        pairs.extend(hosts.into_iter().zip(receivers).filter(|(from, to)| from != to));
    }
    pairs
}

#[cfg(test)]
mod tests {
    use super::super::tests;
    use super::*;
    use std::collections::HashSet;

    fn net(hosts: u32) -> Net {
        tests::net(&format!("{{fat-tree: {{hosts: {hosts}}}}}"))
    }

    fn numbers(pattern: Pattern, hosts: u32, seed: u64) -> Vec<(usize, usize)> {
        let net = net(hosts);
        let index = FabricIndex::new(&net);
        let place = |port| index.host_ports.iter().position(|host| *host == port).unwrap();
        pairs(pattern, &index, seed, Some(index.host_ports[1]))
            .into_iter()
            .map(|(from, to)| (place(from), place(to)))
            .collect()
    }

    #[test]
    fn patterns_pair_hosts() {
        for (pattern, expected) in [
            (Pattern::None, &[][..]),
            (Pattern::Neighbours, &[(0, 1), (1, 2), (2, 3), (3, 0)]),
            (Pattern::Across, &[(0, 2), (1, 3), (2, 0), (3, 1)]),
            (Pattern::AllToOne, &[(0, 1), (2, 1), (3, 1)]),
        ] {
            assert_eq!(numbers(pattern, 4, 1), expected, "{pattern:?}");
        }
    }

    #[test]
    fn random_pattern_depends_on_the_seed_and_has_no_self_pairs() {
        let one = numbers(Pattern::Random, 24, 7);
        assert_eq!(one, numbers(Pattern::Random, 24, 7));
        assert_ne!(one, numbers(Pattern::Random, 24, 8));
        let receivers: HashSet<usize> = one.iter().map(|(_, to)| *to).collect();
        assert_eq!((one.len(), receivers.len()), (24, 24));
    }

    #[test]
    fn single_host_has_no_pairs() {
        for pattern in [Pattern::Neighbours, Pattern::Across, Pattern::Random, Pattern::AllToOne] {
            assert_eq!(pairs(pattern, &FabricIndex::new(&net(1)), 1, None), [], "{pattern:?}");
            assert_eq!(pairs(pattern, &FabricIndex::new(&Net::default()), 1, None), []);
        }
    }

    #[test]
    fn link_rate_is_the_best_that_both_ends_have() {
        let mut net = net(2);
        let host = FabricIndex::new(&net).host_ports[0];
        // NDR on four lanes.
        assert!((link_rate(&net, host) - 50e9).abs() < 1.0);
        net.ports[host.0 as usize].rates.widths = 1;
        assert!((link_rate(&net, host) - 12.5e9).abs() < 1.0);
        net.ports[host.0 as usize].cable = None;
        assert!(link_rate(&net, host) == 0.0);
    }
}
