//! Who sends to whom: flows from a pattern.

use super::file::PatternEntry;
use super::planes::Planes;
use crate::chance::Chance;
use crate::load::Flow;
use crate::net::{Net, PortId};
use ib_mad::rate::{Width, bytes_per_second};

/// What traffic is drawn by, so that nothing else draws the same.
const TRAFFIC: u64 = 1;

/// What a port's link carries as it was built, in bytes a second; 0 without one.
pub fn link_rate(net: &Net, port: PortId) -> f64 {
    let here = net.port(port);
    let Some(there) = here.cable.map(|peer| net.port(peer)) else {
        return 0.0;
    };
    let width = Width::widest(here.widths & there.widths);
    let speed = here.speeds.intersection(there.speeds).fastest();
    width.zip(speed).map_or(0.0, |(width, speed)| bytes_per_second(width, speed) as f64)
}

/// A flow that offers this share of what the sender's link carries.
pub(super) fn flow(net: &Net, (from, to): (PortId, PortId), load: f64, packet: u32) -> Flow {
    Flow { from, to, offered: load * link_rate(net, from), packet }
}

/// The pairs of a pattern, plane by plane, for no packet goes from one to another. `to` is whom
/// all send to, where they do, in its plane; in other planes it is its counterpart.
pub(super) fn pairs(
    pattern: PatternEntry,
    planes: &Planes<'_>,
    seed: u64,
    to: Option<PortId>,
) -> Vec<(PortId, PortId)> {
    let Some(first) = planes.hosts().first() else {
        return Vec::new();
    };
    let mut pairs = Vec::new();
    for (number, plane) in planes.from(*first).into_iter().enumerate() {
        let hosts: Vec<PortId> = planes.hosts_of(plane).collect();
        let mut receivers = hosts.clone();
        match pattern {
            PatternEntry::None => continue,
            PatternEntry::Neighbours if !receivers.is_empty() => receivers.rotate_left(1),
            PatternEntry::Across => receivers.rotate_left(hosts.len() / 2),
            PatternEntry::Random => {
                Chance::at(seed, &[TRAFFIC, number as u64]).cycle(&mut receivers);
            }
            PatternEntry::AllToOne => {
                let one = to.and_then(|to| planes.counterpart(plane, to));
                if let Some(one) = one.or(hosts.first().copied()) {
                    receivers.fill(one);
                }
            }
            PatternEntry::Neighbours => {}
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

    fn numbers(pattern: PatternEntry, hosts: u32, seed: u64) -> Vec<(usize, usize)> {
        let net = net(hosts);
        let planes = Planes::new(&net);
        let place = |port| planes.hosts().iter().position(|host| *host == port).unwrap();
        pairs(pattern, &planes, seed, Some(planes.hosts()[1]))
            .into_iter()
            .map(|(from, to)| (place(from), place(to)))
            .collect()
    }

    #[test]
    fn patterns_pair_hosts() {
        for (pattern, expected) in [
            (PatternEntry::None, &[][..]),
            (PatternEntry::Neighbours, &[(0, 1), (1, 2), (2, 3), (3, 0)]),
            (PatternEntry::Across, &[(0, 2), (1, 3), (2, 0), (3, 1)]),
            (PatternEntry::AllToOne, &[(0, 1), (2, 1), (3, 1)]),
        ] {
            assert_eq!(numbers(pattern, 4, 1), expected, "{pattern:?}");
        }
    }

    #[test]
    fn the_random_pattern_is_the_seeds_and_nobody_sends_to_itself() {
        let one = numbers(PatternEntry::Random, 24, 7);
        assert_eq!(one, numbers(PatternEntry::Random, 24, 7));
        assert_ne!(one, numbers(PatternEntry::Random, 24, 8));
        let receivers: HashSet<usize> = one.iter().map(|(_, to)| *to).collect();
        assert_eq!((one.len(), receivers.len()), (24, 24));
    }

    #[test]
    fn one_host_alone_sends_to_nobody() {
        for pattern in [
            PatternEntry::Neighbours,
            PatternEntry::Across,
            PatternEntry::Random,
            PatternEntry::AllToOne,
        ] {
            assert_eq!(pairs(pattern, &Planes::new(&net(1)), 1, None), [], "{pattern:?}");
            assert_eq!(pairs(pattern, &Planes::new(&Net::default()), 1, None), []);
        }
    }

    #[test]
    fn a_link_carries_what_both_ends_can() {
        let mut net = net(2);
        let host = Planes::new(&net).hosts()[0];
        // NDR on four lanes.
        assert!((link_rate(&net, host) - 50e9).abs() < 1.0);
        net.ports[host.0 as usize].widths = 1;
        assert!((link_rate(&net, host) - 12.5e9).abs() < 1.0);
        net.ports[host.0 as usize].cable = None;
        assert!(link_rate(&net, host) == 0.0);
    }
}
