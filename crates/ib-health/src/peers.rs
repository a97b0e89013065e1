//! What links between devices of the same two types run at elsewhere in the fabric.
//!
//! HDR100 and NDR200 adapters list 4x and full speed, and run at 2x or at a lower speed on a switch
//! port that is not split: by design. A bad cable may look the same from its first day on. What other
//! links between such devices do tells the two apart.

use std::collections::HashMap;

use ib_fabric::topology::Link;
use ib_fabric::{PortIndex, Snapshot};
use ib_mad::rate::{Speed, Width, bytes_per_second};

/// How wide and how fast a link runs.
pub type Run = (Width, Speed);

/// This many links that run alike are a design, and no fault. The same number of faster links is needed
/// before a slower one is a fault.
const SEVERAL: usize = 4;

/// Among many links of a type, a design is at least one in this many: at 5,000 nodes four bad cables
/// at a time are normal.
const ONE_IN: usize = 100;

/// What a link is measured against, and why.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reference {
    /// It ran so itself.
    Past(Run),
    /// Other links between such devices run so.
    Peers(Run),
    /// Both ends can do this and are allowed to; nothing says that they should.
    Capability(Run),
}

/// The devices at both ends by vendor and type, and the best that both ends can do and are allowed:
/// a port that is split can do less than others of its device.
type Type = ([(u32, u16); 2], Run);

/// How many links of each type run how.
#[derive(Clone, Debug, Default)]
pub struct Peers {
    runs: HashMap<Type, HashMap<Run, usize>>,
}

/// What a link carries, in bytes a second.
pub fn rate((width, speed): Run) -> u64 {
    bytes_per_second(width, speed)
}

/// How a link runs, and its type; `None` where it has no link, or an end is not known.
fn look(snapshot: &Snapshot, Link(near, far): Link) -> Option<(Run, Type)> {
    let (a, b) = (snapshot.status(near)?, snapshot.status(far)?);
    // An internal link (FNM, router) is no peer of a cable.
    if !a.link_up() || !b.link_up() || snapshot.fabric.is_internal(Link(near, far)) {
        return None;
    }
    let run = (a.width.or(b.width)?, a.speed.or(b.speed)?);
    let (width, speed) = a.best_enabled_with(b);
    let device = |port: PortIndex| {
        let identity = &snapshot.fabric.node_of(port).identity;
        (identity.vendor_id, identity.device_id)
    };
    let mut devices = [device(near), device(far)];
    devices.sort_unstable();
    Some((run, (devices, (width?, speed?))))
}

impl Peers {
    /// Counts how the links of a sweep run.
    pub fn of(snapshot: &Snapshot, links: impl Iterator<Item = Link>) -> Self {
        let mut runs: HashMap<Type, HashMap<Run, usize>> = HashMap::new();
        for (run, of) in links.filter_map(|link| look(snapshot, link)) {
            *runs.entry(of).or_default().entry(run).or_default() += 1;
        }
        Peers { runs }
    }

    /// What a link should run at, if others of its type say that it is too slow.
    pub fn expect(&self, snapshot: &Snapshot, link: Link) -> Option<Reference> {
        let (run, of) = look(snapshot, link)?;
        let is_switch = |port: PortIndex| snapshot.fabric.node_of(port).is_switch();
        let between_switches = is_switch(link.0) && is_switch(link.1);
        expected(run, of.1, self.runs.get(&of)?, between_switches)
    }
}

/// What a link that runs so should run at, by how links of its type run, itself included: nearly all of
/// them are faster, and only few run as it does.
///
/// One lane of four is no design, but for XDR, where each plane of a port is a link of one lane: it is too
/// slow also where there are no others, unless a tenth of its type runs so. Between two switches no width
/// below what both ends are allowed is a design: ports that are split are allowed fewer lanes. A lower
/// speed may be all that the cable is made for.
fn expected(
    run: Run,
    best: Run,
    runs: &HashMap<Run, usize>,
    between_switches: bool,
) -> Option<Reference> {
    let count = |wanted: &dyn Fn(Run) -> bool| {
        runs.iter().filter(|(run, _)| wanted(**run)).map(|(_, count)| *count).sum::<usize>()
    };
    let (alike, all) = (count(&|other| other == run), count(&|_| true));
    let faster = count(&|other| rate(other) > rate(run));
    if alike < SEVERAL.max(all / ONE_IN) && faster >= SEVERAL * (all - faster) {
        let usual = runs.iter().filter(|(other, _)| rate(**other) > rate(run));
        // Of two that are as usual the faster, so that a verdict does not depend on a hash.
        let usual = usual.max_by_key(|(other, count)| (**count, rate(**other), **other));
        return usual.map(|(other, _)| Reference::Peers(*other));
    }
    if between_switches && run.0 < best.0 && run.1 < Speed::Xdr {
        return Some(Reference::Capability((best.0, run.1)));
    }
    let one_of_four = run.0 == Width::X1 && best.0 >= Width::X4 && run.1 < Speed::Xdr;
    let is_usual = alike > SEVERAL && alike * 10 >= all;
    (one_of_four && !is_usual).then_some(Reference::Capability(best))
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
    use ib_mad::port_state::PortStatus;
    use ib_mad::port_state::testing::up;

    #[test]
    fn a_link_is_measured_against_those_of_its_type() {
        let best = (Width::X4, Speed::Ndr);
        let (half, one) = ((Width::X2, Speed::Ndr), (Width::X1, Speed::Ndr));
        let plane = (Width::X1, Speed::Xdr);
        for (run, runs, reference) in [
            // Alone, or all alike: that is no evidence.
            (half, &[(half, 1)][..], None),
            (half, &[(half, 200)], None),
            // One among several that are faster, and among too few.
            (half, &[(half, 1), (best, 4)], Some(Reference::Peers(best))),
            (half, &[(half, 1), (best, 3)], None),
            // HDR100 or NDR200 adapters beside others of the same device id.
            (half, &[(half, 4), (best, 200)], None),
            (half, &[(half, 12), (best, 1000)], None),
            // Of many links of a type, several are bad at a time: a fourth one clears none of them.
            (half, &[(half, 4), (best, 1000)], Some(Reference::Peers(best))),
            (half, &[(half, 20), (best, 4980)], Some(Reference::Peers(best))),
            (half, &[(half, 3), (best, 1000)], Some(Reference::Peers(best))),
            (half, &[(half, 3), (best, 11)], None),
            (best, &[(half, 3), (best, 11)], None),
            // What most of the faster ones run at.
            (one, &[(one, 1), (half, 20), (best, 3)], Some(Reference::Peers(half))),
            // One lane of four.
            (one, &[(one, 1)], Some(Reference::Capability(best))),
            (one, &[(one, 60), (best, 1000)], Some(Reference::Capability(best))),
            (one, &[(one, 24)], None),
            (plane, &[(plane, 1)], None),
        ] {
            let runs: HashMap<Run, usize> = runs.iter().copied().collect();
            assert_eq!(expected(run, best, &runs, false), reference, "{run:?} of {runs:?}");
        }
    }

    #[test]
    fn internal_links_are_no_peers_of_a_cable() {
        // Six hosts of the same type at a switch, the first at two lanes and the others at four.
        for (role, reference) in
            [(None, Some(Reference::Peers((Width::X4, Speed::Edr)))), (Some(PortRole::Fnm), None)]
        {
            let hosts = (2..8).map(|guid| found(guid, NodeKind::Ca, 1));
            let nodes = [found(1, NodeKind::Switch, 6)].into_iter().chain(hosts).collect();
            let cables: Vec<_> =
                (1..7).map(|nth| (end(1, nth), end(1 + u64::from(nth), 1))).collect();
            let mut fabric = fabric(nodes, &cables, None);
            for nth in 2..7 {
                let port = fabric.find(end(1, nth)).unwrap();
                fabric.ports[port.0 as usize].role = role;
            }
            let fabric = Arc::new(fabric);
            let anchor = Anchor { moment: Moment(0), wall: SystemTime::UNIX_EPOCH };
            let mut snapshot = Snapshot::blank(Arc::clone(&fabric), anchor);
            snapshot.statuses.fill(PortRead::Ok(up(1)));
            let slow = PortStatus { width: Some(Width::X2), ..up(1) };
            for at in [end(1, 1), end(2, 1)] {
                snapshot.statuses[fabric.find(at).unwrap().0 as usize] = PortRead::Ok(slow);
            }
            let peers = Peers::of(&snapshot, fabric.links());
            let first = fabric.links().next().unwrap();
            assert_eq!(peers.expect(&snapshot, first), reference, "{role:?}");
        }
    }

    #[test]
    fn between_two_switches_fewer_lanes_are_no_design() {
        let best = (Width::X4, Speed::Ndr);
        let (half, slow) = ((Width::X2, Speed::Ndr), (Width::X4, Speed::Hdr));
        let half_slow = (Width::X2, Speed::Hdr);
        let plane = (Width::X1, Speed::Xdr);
        for (run, count, reference) in [
            (half, 1, Some(Reference::Capability(best))),
            (half, 200, Some(Reference::Capability(best))),
            // The cable may be made for no more than HDR.
            (slow, 1, None),
            (half_slow, 1, Some(Reference::Capability(slow))),
            (best, 1, None),
            (plane, 4, None),
        ] {
            let runs = HashMap::from([(run, count)]);
            assert_eq!(expected(run, best, &runs, true), reference, "{count} at {run:?}");
        }
    }
}
