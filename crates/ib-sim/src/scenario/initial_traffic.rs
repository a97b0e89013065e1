//! Traffic from the start.

use serde::Deserialize;

use super::index::{EventTime, FabricIndex};
use super::problem::Problem;
use super::timeline::Timeline;
use super::value::{Fraction, PacketSize};
use crate::change::FabricChange;
use crate::load::Flow;
use crate::net::{Net, PortId};
use crate::rng::Rng;
use ib_mad::rate::bytes_per_second;

/// The name of the flows from the start.
const INITIAL_TRAFFIC: &str = "traffic";
/// Key of the random numbers of the pattern: no other use draws the same.
const TRAFFIC: u64 = 1;
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields, default)]
pub struct TrafficKeys {
    pub pattern: Option<Pattern>,
    pub load: Option<Fraction>,
    pub packet: Option<PacketSize>,
    pub to: Option<String>,
}

/// The pattern of senders and receivers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Pattern {
    None,
    Neighbours,
    Across,
    Random,
    AllToOne,
}

pub fn initial_traffic(timeline: &mut Timeline, entry: &TrafficKeys) -> Result<(), Problem> {
    // A shift of all hosts by one number spreads evenly in a fat tree, and random pairs do not. So
    // no port waits before an entry makes it.
    let pattern = entry.pattern.unwrap_or(Pattern::Across);
    let load = entry.load.map_or(0.2, |load| load.0);
    let index = &timeline.index;
    if entry.to.is_some() && pattern != Pattern::AllToOne {
        return Err(timeline.lines.problem("traffic.to", "valid only with pattern all-to-one"));
    }
    let to = timeline.named_port("traffic.to", entry.to.as_ref(), FabricIndex::host)?;
    let pairs = pairs(pattern, index, timeline.seed, to);
    if !pairs.is_empty() && load != 0.0 {
        let flows = |pair| flows(index.net, pair, load, timeline.packet);
        let flows = pairs.into_iter().flat_map(flows).collect();
        let change = FabricChange::SetTraffic { name: INITIAL_TRAFFIC.into(), flows };
        timeline.changes.push((EventTime::default(), change));
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

/// A flow that offers this fraction of what the sender's link carries. With multi-plane adapters it is one for each
/// plane, between equal planes.
pub fn flows(net: &Net, (from, to): (PortId, PortId), load: f64, packet: u32) -> Vec<Flow> {
    let [from, to] = [from, to].map(|end| net.plane_ports(end).collect::<Vec<_>>());
    let count = from.len().max(to.len());
    let share = load * from.len() as f64 / count as f64;
    let flow = |(from, to): (&PortId, &PortId)| {
        let offered = share * link_rate(net, *from);
        Flow { from: *from, to: *to, offered, packet }
    };
    from.iter().cycle().zip(to.iter().cycle()).take(count).map(flow).collect()
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
