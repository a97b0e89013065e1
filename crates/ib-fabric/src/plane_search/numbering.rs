//! What links of several planes look like where devices count ports and planes in other ways, which is no fault.

use std::collections::HashSet;

use ib_mad::Guid;

use crate::aggregated_links::{AggregatedLink, GroupSource, Wiring, system_of};
use crate::link::Link;
use crate::topology::Fabric;

/// Whether links are planes of one. A guess must fit everywhere.
pub(super) fn is_plausible(link: &AggregatedLink) -> bool {
    let has_planes = link.planes.len() > 1 || link.expected > 1 || !link.astray.is_empty();
    has_planes && (link.source == GroupSource::HierarchyInfo || !link.is_swapped())
}

/// No plane is missing of a port while a device that has it was not read completely: a plane may have no name yet.
pub(super) fn clear_unread(links: &mut [AggregatedLink], fabric: &Fabric) {
    let ports = fabric.links().filter(|link| !fabric.is_internal(*link)).flat_map(Link::ports);
    let unread = ports.filter(|port| !fabric.front_panels.has_answered(fabric.port_key(*port)));
    let systems: HashSet<Guid> =
        unread.map(|port| system_of(&fabric.node_of(port).identity)).collect();
    let is_unread =
        |link: &&mut AggregatedLink| link.ends.iter().any(|end| systems.contains(&end.system));
    links.iter_mut().filter(is_unread).for_each(|link| link.expected = 0);
}

/// Where half of the links look wrong in one way, the ends count ports or planes differently: that is no cable's fault.
pub(super) fn clear_other_numbering(links: &mut [AggregatedLink], fabric: &Fabric) {
    let is_reported = |link: &&AggregatedLink| link.source == GroupSource::HierarchyInfo;
    let reported = links.iter().filter(is_reported).count();
    let is_most = |count: usize| count > 0 && count * 2 >= reported;
    let is_astray = |link: &&AggregatedLink| is_reported(link) && !link.astray.is_empty();
    if is_most(links.iter().filter(is_astray).count()) {
        for link in links.iter_mut().filter(|link| is_reported(&&**link)) {
            take_as_straight(link, fabric);
        }
    }
    let planes = || links.iter().flat_map(|link| &link.planes);
    let crossed = planes().filter(|plane| plane.wiring == Wiring::OtherPlane).count();
    let straight = planes().filter(|plane| plane.wiring == Wiring::Straight).count();
    if crossed >= straight {
        for plane in links.iter_mut().flat_map(|link| &mut link.planes) {
            if plane.wiring == Wiring::OtherPlane {
                plane.wiring = Wiring::Straight;
            }
        }
    }
    if is_most(links.iter().filter(|link| link.missing() > 0).count()) {
        for link in links {
            link.expected = 0;
        }
    }
}

/// The planes that lead to another port lead to the same one, which has several numbers.
fn take_as_straight(link: &mut AggregatedLink, fabric: &Fabric) {
    link.astray.clear();
    let first = link.ends[0].system;
    for plane in link.planes.iter_mut().filter(|plane| plane.wiring == Wiring::OtherPort) {
        plane.wiring = Wiring::Straight;
        if system_of(&fabric.node_of(plane.ports[0]).identity) != first {
            plane.ports.reverse();
        }
    }
}
