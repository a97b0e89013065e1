//! The rates of links between devices of the same two types elsewhere in the fabric.
//!
//! HDR100 and NDR200 adapters report 4x and full speed as supported, and run at 2x or at a lower speed on a
//! switch port that is not split: by design. A bad cable may look the same from its first day on. The rates of
//! other links between such devices distinguish the two.

use std::collections::HashMap;

use ib_fabric::topology::Link;
use ib_fabric::{PortIndex, Snapshot};
use ib_mad::port_state::PortStatus;
use ib_mad::rate::{LinkRate, Speed, Width, bytes_per_second};

/// This many links with one rate are a design; as many faster ones are needed before it is a fault.
const MIN_PEERS: usize = 4;

/// A design is at least one link in this many of its type: of 5,000 nodes, four may have bad cables.
const ONE_IN: usize = 100;

/// A rate that a link is compared with, and why.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RateReference {
    /// Its own rate before.
    Past(LinkRate),
    /// The rate of other links between such devices.
    Peers(LinkRate),
    /// The highest rate that both ends support and enable; nothing says that they should have it.
    Capability(LinkRate),
    /// The rate that its other end reports, which contradicts the slower one.
    OtherEnd(LinkRate),
}

impl RateReference {
    /// The rate that the link is compared with.
    pub fn rate(self) -> LinkRate {
        match self {
            Self::Past(rate)
            | Self::Peers(rate)
            | Self::Capability(rate)
            | Self::OtherEnd(rate) => rate,
        }
    }
}

/// The kinds, vendor and device ids of both ends, and the highest rate that both support and enable: a port that is
/// split supports less than others of its device. Many dumps of other tools do not contain that rate.
type LinkType = ([(&'static str, u32, u16); 2], Option<LinkRate>);

/// The links of one type: how many have which rate. There are few rates.
type Rates = Vec<(LinkRate, usize)>;

/// The rates of all links of a sweep, by type.
#[derive(Clone, Debug, Default)]
pub struct Peers {
    types: Vec<(LinkType, Rates)>,
    /// By link: its rate, and the index of its type.
    links: Vec<Option<(LinkRate, usize)>>,
    /// How many links are up without a known rate.
    pub without_rate: usize,
}

/// The nominal bytes per second, for comparisons: FDR10 has that of QDR, but loses less to its coding.
pub fn bandwidth((width, speed): LinkRate) -> (u64, bool) {
    (bytes_per_second(width, speed), speed == Speed::Fdr10)
}

/// The highest rate that both ends of a link support and enable; `None` if they do not report it. A tool that reports
/// only a width or a speed does so because that could be higher: the other one is as high as it can be.
pub fn best_rate(a: &PortStatus, b: &PortStatus, rate: LinkRate) -> Option<LinkRate> {
    match a.best_enabled_with(b) {
        (None, None) => None,
        (width, speed) => Some((width.unwrap_or(rate.0), speed.unwrap_or(rate.1))),
    }
}

/// Whether a link is up and no internal link (FNM, router), which is no peer of a cable.
fn is_compared(snapshot: &Snapshot, link: Link) -> bool {
    let is_up = |port| snapshot.status(port).is_some_and(PortStatus::link_up);
    is_up(link.low) && is_up(link.high) && !snapshot.fabric.is_internal(link)
}

/// A link's rate and type; `None` if they are not known.
fn rate_and_type(snapshot: &Snapshot, link: Link) -> Option<(LinkRate, LinkType)> {
    let (a, b) = (snapshot.status(link.low)?, snapshot.status(link.high)?);
    let slower = snapshot.slower_end(link)?;
    let rate = (slower.width?, slower.speed?);
    let device = |port: PortIndex| {
        let identity = &snapshot.fabric.node_of(port).identity;
        (identity.kind.label(), identity.vendor_id, identity.device_id)
    };
    let mut devices = link.ports().map(device);
    devices.sort_unstable();
    Some((rate, (devices, best_rate(a, b, rate))))
}

fn add_links(rates: &mut Rates, rate: LinkRate, number: usize) {
    match rates.iter_mut().find(|(other, _)| *other == rate) {
        Some((_, count)) => *count += number,
        None => rates.push((rate, number)),
    }
}

impl Peers {
    pub fn count(snapshot: &Snapshot, links: impl Iterator<Item = Link>) -> Self {
        let mut peers =
            Peers { links: Vec::with_capacity(links.size_hint().0), ..Peers::default() };
        let mut places: HashMap<LinkType, usize> = HashMap::new();
        let mut latest = 0;
        for link in links {
            let is_compared = is_compared(snapshot, link);
            let link = rate_and_type(snapshot, link).filter(|_| is_compared);
            peers.without_rate += usize::from(is_compared && link.is_none());
            peers.links.push(link.map(|(rate, link_type)| {
                // Neighboring links are mostly of the same type.
                if peers.types.get(latest).is_none_or(|(of, _)| *of != link_type) {
                    latest = *places.entry(link_type).or_insert_with(|| {
                        peers.types.push((link_type, Rates::new()));
                        peers.types.len() - 1
                    });
                }
                add_links(&mut peers.types[latest].1, rate, 1);
                (rate, latest)
            }));
        }
        peers.compare_with_unknown_best(&places);
        peers
    }

    /// Counts links whose best rate is not known as peers of those between the same devices for which it is known, and
    /// the other way round: iblinkinfo says what a link could be only where that is more than it is.
    fn compare_with_unknown_best(&mut self, places: &HashMap<LinkType, usize>) {
        let has_unknown = self.types.iter().any(|((_, best), _)| best.is_none());
        let counted = if has_unknown { self.types.clone() } else { Vec::new() };
        for (place, ((devices, best), rates)) in counted.iter().enumerate() {
            let unknown = places.get(&(*devices, None));
            let Some((best, &unknown)) = best.zip(unknown) else { continue };
            for (rate, count) in rates {
                add_links(&mut self.types[unknown].1, *rate, *count);
            }
            let is_possible = |rate: LinkRate| bandwidth(rate) <= bandwidth(best);
            for (rate, count) in counted[unknown].1.iter().filter(|(rate, _)| is_possible(*rate)) {
                add_links(&mut self.types[place].1, *rate, *count);
            }
        }
    }

    /// How many links are up and not internal.
    pub fn compared(&self) -> usize {
        self.links.iter().flatten().count() + self.without_rate
    }

    /// Whether nothing says what rate the n-th link should have: neither its ends nor enough others of its type.
    pub fn is_alone(&self, nth: usize) -> bool {
        let Some(Some((_, link_type))) = self.links.get(nth) else { return false };
        let ((_, best), rates) = &self.types[*link_type];
        best.is_none() && rates.iter().map(|(_, count)| *count).sum::<usize>() <= MIN_PEERS
    }

    /// The rate that the n-th link should have, if it is too slow compared with others of its type. In a dump, a rare speed
    /// below what both ends support is too slow, too: no sweeps before it show whether the link ran faster.
    pub fn expected_rate(
        &self,
        snapshot: &Snapshot,
        nth: usize,
        link: Link,
        is_dump: bool,
    ) -> Option<RateReference> {
        let (rate, link_type) = (*self.links.get(nth)?)?;
        let ((_, best), rates) = &self.types[link_type];
        let is_switch = |port: PortIndex| snapshot.fabric.node_of(port).is_switch();
        let between_switches = is_switch(link.low) && is_switch(link.high);
        let faster = best.filter(|best| is_dump && best.1 > rate.1);
        let alike = rates.iter().find(|(other, _)| *other == rate).map_or(0, |(_, count)| *count);
        let capability = faster.filter(|_| alike < MIN_PEERS);
        let capability = capability.map(|best| RateReference::Capability((rate.0, best.1)));
        expected(rate, *best, rates, between_switches).or(capability)
    }
}

/// The rate that a link should have, by the rates of all links of its type, itself included: it is too slow if
/// nearly all of them are faster, and only few have its rate.
///
/// One lane of four is never a design, except for XDR, where each plane of a port is a link of one lane: it is
/// too slow even without others to compare with, unless a tenth of its type has one lane. Between two
/// switches no width below what both ends enable is a design: ports that are split enable fewer lanes. A
/// lower speed may be all that the cable supports. Where the best rate is not known, one lane is too slow beside any
/// link of four.
fn expected(
    rate: LinkRate,
    best: Option<LinkRate>,
    rates: &[(LinkRate, usize)],
    between_switches: bool,
) -> Option<RateReference> {
    let count = |wanted: &dyn Fn(LinkRate) -> bool| {
        rates.iter().filter(|(rate, _)| wanted(*rate)).map(|(_, count)| *count).sum::<usize>()
    };
    let (alike, all) = (count(&|other| other == rate), count(&|_| true));
    let faster = count(&|other| bandwidth(other) > bandwidth(rate));
    // Of two equally common rates the faster one, so that a verdict does not depend on the order of the links.
    let usual = |wanted: &dyn Fn(LinkRate) -> bool| {
        let wanted = rates.iter().filter(|(rate, _)| wanted(*rate));
        let usual = wanted.max_by_key(|(other, count)| (*count, bandwidth(*other), *other));
        usual.map(|(other, _)| RateReference::Peers(*other))
    };
    if alike < MIN_PEERS.max(all / ONE_IN) && faster >= MIN_PEERS * (all - faster) {
        return usual(&|other| bandwidth(other) > bandwidth(rate));
    }
    let is_usual = alike > MIN_PEERS && alike * 10 >= all;
    let is_one_lane = rate.0 == Width::X1 && rate.1 < Speed::Xdr && !is_usual;
    let Some(best) = best else {
        return usual(&|other| other.0 >= Width::X4).filter(|_| is_one_lane);
    };
    if between_switches && rate.0 < best.0 && rate.1 < Speed::Xdr {
        return Some(RateReference::Capability((best.0, rate.1)));
    }
    (is_one_lane && best.0 >= Width::X4).then_some(RateReference::Capability(best))
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::time::SystemTime;

    use super::*;
    use ib_fabric::snapshot::PortRead;
    use ib_fabric::testing::{end, fabric, found};
    use ib_mad::Moment;
    use ib_mad::moment::Anchor;
    use ib_mad::node::{NodeKind, PortRole};
    use ib_mad::port_state::testing::up;

    #[test]
    fn link_is_compared_with_links_of_its_type() {
        let best = (Width::X4, Speed::Ndr);
        let (half, one) = ((Width::X2, Speed::Ndr), (Width::X1, Speed::Ndr));
        let plane = (Width::X1, Speed::Xdr);
        let (qdr, fdr10) = ((Width::X4, Speed::Qdr), (Width::X4, Speed::Fdr10));
        for (rate, rates, reference) in [
            // The same nominal rate, but QDR loses a fifth to its coding.
            (qdr, &[(qdr, 1), (fdr10, 4)][..], Some(RateReference::Peers(fdr10))),
            // Alone, or all the same: that is no evidence.
            (half, &[(half, 1)][..], None),
            (half, &[(half, 200)], None),
            // One among several that are faster, and among too few.
            (half, &[(half, 1), (best, 4)], Some(RateReference::Peers(best))),
            (half, &[(half, 1), (best, 3)], None),
            // HDR100 or NDR200 adapters beside others of the same device id.
            (half, &[(half, 4), (best, 200)], None),
            (half, &[(half, 12), (best, 1000)], None),
            // Of many links of a type, several are bad at a time: a fourth one clears none of them.
            (half, &[(half, 4), (best, 1000)], Some(RateReference::Peers(best))),
            (half, &[(half, 20), (best, 4980)], Some(RateReference::Peers(best))),
            (half, &[(half, 3), (best, 1000)], Some(RateReference::Peers(best))),
            (half, &[(half, 3), (best, 11)], None),
            (best, &[(half, 3), (best, 11)], None),
            // What most of the faster ones rate at.
            (one, &[(one, 1), (half, 20), (best, 3)], Some(RateReference::Peers(half))),
            // One lane of four.
            (one, &[(one, 1)], Some(RateReference::Capability(best))),
            (one, &[(one, 60), (best, 1000)], Some(RateReference::Capability(best))),
            (one, &[(one, 24)], None),
            (plane, &[(plane, 1)], None),
        ] {
            assert_eq!(
                expected(rate, Some(best), rates, false),
                reference,
                "{rate:?} of {rates:?}"
            );
        }
    }

    #[test]
    fn internal_links_are_not_compared_with_cables() {
        // Six hosts of the same type at a switch, the first at two lanes and the others at four.
        for (role, reference) in [
            (None, Some(RateReference::Peers((Width::X4, Speed::Edr)))),
            (Some(PortRole::Fnm), None),
        ] {
            let hosts = (2..8).map(|guid| found(guid, NodeKind::Ca, 1));
            let nodes = [found(1, NodeKind::Switch, 6)].into_iter().chain(hosts).collect();
            let cables: Vec<_> =
                (1..7).map(|nth| (end(1, nth), end(1 + u64::from(nth), 1))).collect();
            let mut fabric = fabric(nodes, &cables, None);
            for nth in 2..7 {
                let port = fabric.find(end(1, nth)).unwrap();
                fabric.ports[port].role = role;
            }
            let fabric = Arc::new(fabric);
            let anchor = Anchor { moment: Moment(0), wall: SystemTime::UNIX_EPOCH };
            let mut snapshot = Snapshot::blank(Arc::clone(&fabric), anchor);
            snapshot.statuses.fill(PortRead::Ok(up(1)));
            let slow = PortStatus { width: Some(Width::X2), ..up(1) };
            for at in [end(1, 1), end(2, 1)] {
                snapshot.statuses[fabric.find(at).unwrap()] = PortRead::Ok(slow);
            }
            let peers = Peers::count(&snapshot, fabric.links());
            let first = fabric.links().next().unwrap();
            assert_eq!(peers.expected_rate(&snapshot, 0, first, false), reference, "{role:?}");
        }
    }

    #[test]
    fn fewer_lanes_between_switches_are_a_fault() {
        let best = (Width::X4, Speed::Ndr);
        let (half, slow) = ((Width::X2, Speed::Ndr), (Width::X4, Speed::Hdr));
        let half_slow = (Width::X2, Speed::Hdr);
        let plane = (Width::X1, Speed::Xdr);
        for (rate, count, reference) in [
            (half, 1, Some(RateReference::Capability(best))),
            (half, 200, Some(RateReference::Capability(best))),
            // The cable may be made for no more than HDR.
            (slow, 1, None),
            (half_slow, 1, Some(RateReference::Capability(slow))),
            (best, 1, None),
            (plane, 4, None),
        ] {
            assert_eq!(
                expected(rate, Some(best), &[(rate, count)], true),
                reference,
                "{count} at {rate:?}"
            );
        }
    }
}
