//! Traffic patterns: which host sends to which.

use super::file::Pattern;
use super::index::FabricIndex;
use crate::load::Flow;
use crate::net::{Net, PortId};
use crate::rng::Rng;
use ib_mad::rate::bytes_per_second;

/// Key of the random numbers of the pattern: no other use draws the same.
const TRAFFIC: u64 = 1;

/// What a port's link can carry as built, in bytes a second; 0 without a link.
pub(super) fn link_rate(net: &Net, port: PortId) -> f64 {
    let here = net.port(port);
    let Some(there) = here.cable.map(|peer| net.port(peer)) else {
        return 0.0;
    };
    let best = here.rates.common(there.rates).best();
    best.map_or(0.0, |(width, speed)| bytes_per_second(width, speed) as f64)
}

/// A flow that offers this fraction of what the sender's link carries.
pub(super) fn flow(net: &Net, (from, to): (PortId, PortId), load: f64, packet: u32) -> Flow {
    Flow { from, to, offered: load * link_rate(net, from), packet }
}

/// The pairs of a pattern in each plane; no packet passes from one plane to another. `to` is the
/// receiver of [`Pattern::AllToOne`]; in the other planes that is its counterpart.
pub(super) fn pairs(
    pattern: Pattern,
    index: &FabricIndex<'_>,
    seed: u64,
    to: Option<PortId>,
) -> Vec<(PortId, PortId)> {
    let Some(first) = index.host_ports().first() else {
        return Vec::new();
    };
    let mut pairs = Vec::new();
    for (number, plane) in index.planes_from(*first).into_iter().enumerate() {
        let hosts: Vec<PortId> = index.host_ports_in(plane).collect();
        let mut receivers = hosts.clone();
        match pattern {
            Pattern::None => continue,
            Pattern::Neighbours if !receivers.is_empty() => receivers.rotate_left(1),
            Pattern::Neighbours => {}
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
        let place = |port| index.host_ports().iter().position(|host| *host == port).unwrap();
        pairs(pattern, &index, seed, Some(index.host_ports()[1]))
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
        let host = FabricIndex::new(&net).host_ports()[0];
        // NDR on four lanes.
        assert!((link_rate(&net, host) - 50e9).abs() < 1.0);
        net.ports[host.0 as usize].rates.widths = 1;
        assert!((link_rate(&net, host) - 12.5e9).abs() < 1.0);
        net.ports[host.0 as usize].cable = None;
        assert!(link_rate(&net, host) == 0.0);
    }
}
