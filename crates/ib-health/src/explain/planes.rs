//! The evidence for a reason of a link of several planes: that of its planes, each with its number.

use ib_fabric::aggregated_links::{AggregatedLink, PlaneLink, Wiring};
use ib_fabric::{Fabric, PortIndex};
use ib_mad::rate::LinkRate;

use crate::verdict::{Reason, Verdict};
use crate::{LinkAssessment, PlaneAssessment};

/// The evidence; `of_plane` gives that of a plane by itself.
pub fn reason(
    reason: Reason,
    link: &LinkAssessment,
    fabric: &Fabric,
    of_plane: impl Fn(Reason, &LinkAssessment) -> String,
) -> Option<String> {
    let known = fabric.aggregated_link(link.link.low)?;
    let has = |reason| {
        let planes = link.planes.iter();
        planes.filter(move |plane| plane.link.reasons.weight(reason).is_some())
    };
    let text = |reason, plane: &PlaneAssessment| {
        format!("plane {}: {}", plane.plane, of_plane(reason, &plane.link))
    };
    match reason {
        Reason::PlanesDown => {
            let down = has(Reason::Down).count() + usize::from(known.missing());
            let all = usize::from(known.expected).max(link.planes.len());
            let texts = has(Reason::Down).map(|plane| text(Reason::Down, plane));
            let texts: Vec<String> = texts.chain(missing(known, link)).collect();
            Some(format!("{down} of {all} planes down: {}", texts.join("; ")))
        }
        Reason::PlanesSwapped => Some(swapped(known, fabric)),
        Reason::PlanesUnequal => Some(rates(link)),
        Reason::Down => {
            let (down, all) = (has(reason).count(), link.planes.len());
            let count = if down == all {
                format!("all {all} planes down")
            } else {
                format!("{down} of {all} planes down, and no other one known to be up")
            };
            Some(format!("{count}; {}", text(reason, has(reason).next()?)))
        }
        Reason::Maintenance => None,
        _ => {
            let mut planes = has(reason);
            let is_finding = link.reasons.weight(reason) >= Some(Verdict::Watch);
            // What is no finding is told once.
            let told = if is_finding { usize::MAX } else { 1 };
            let texts: Vec<String> =
                planes.by_ref().take(told).map(|plane| text(reason, plane)).collect();
            let rest = match planes.count() {
                0 => String::new(),
                1 => " (and 1 other plane)".into(),
                rest => format!(" (and {rest} other planes)"),
            };
            (!texts.is_empty()).then(|| texts.join("; ") + &rest)
        }
    }
}

/// The planes that have no link.
fn missing(known: &AggregatedLink, link: &LinkAssessment) -> Option<String> {
    let is_known = |plane: &u8| {
        let planes = link.planes.iter().map(|it| it.plane);
        planes.chain(known.astray.iter().map(|it| it.plane)).any(|it| it == *plane)
    };
    let missing: Vec<u8> = (1..=known.expected).filter(|plane| !is_known(plane)).collect();
    match (known.missing(), &missing[..]) {
        (0, _) | (_, []) => None,
        (1, [plane]) => Some(format!("plane {plane} has no link")),
        (_, _) => Some(format!("planes {} have no link", list(&missing))),
    }
}

/// Where the planes lead that are not connected as the others are.
fn swapped(known: &AggregatedLink, fabric: &Fabric) -> String {
    let crossed = known.planes.iter().filter(|plane| plane.wiring == Wiring::OtherPlane);
    let crossed = crossed.map(|plane| {
        let [near, far] = plane.ports.map(|port| fabric.port_label(port));
        let number = fabric.front_panel(plane.ports[1]).and_then(|panel| panel.plane);
        let number = number.map_or_else(String::new, |number| format!("plane {number}, "));
        format!("plane {} ({near}) leads to {number}{far}", plane.plane)
    });
    let astray = known.astray.iter().map(|plane| {
        let [near, far] = plane.ports.map(|port| fabric.port_label(port));
        let number = plane.plane;
        match other_end(known, plane.ports[0], fabric) {
            Some(usual) => {
                format!("plane {number} ({near}) leads to {far}, other planes to {usual}")
            }
            None => format!("plane {number} ({near}) leads to {far}"),
        }
    });
    crossed.chain(astray).collect::<Vec<_>>().join("; ")
}

/// A port at the end to which most planes lead from the end of this port.
fn other_end(known: &AggregatedLink, near: PortIndex, fabric: &Fabric) -> Option<String> {
    let identity = &fabric.node_of(near).identity;
    let is_first = [identity.system_guid, identity.guid].contains(&known.ends[0].system);
    let is_usual = |plane: &&PlaneLink| plane.wiring != Wiring::OtherPort;
    let [first, second] = known.planes.iter().find(is_usual)?.ports;
    Some(fabric.port_label(if is_first { second } else { first }))
}

/// Which planes run at which rate.
fn rates(link: &LinkAssessment) -> String {
    let mut rates: Vec<(LinkRate, Vec<u8>)> = Vec::new();
    for plane in &link.planes {
        let Some(rate) = plane.rate else { continue };
        match rates.iter_mut().find(|(other, _)| *other == rate) {
            Some((_, planes)) => planes.push(plane.plane),
            None => rates.push((rate, vec![plane.plane])),
        }
    }
    let text = |((width, speed), planes): &(LinkRate, Vec<u8>)| {
        let word = if planes.len() > 1 { "planes" } else { "plane" };
        format!("{word} {} at {} {}", list(planes), width.label(), speed.label())
    };
    format!("runs with {}", rates.iter().map(text).collect::<Vec<_>>().join(", "))
}

/// `1, 2 and 4`.
fn list(numbers: &[u8]) -> String {
    let texts: Vec<String> = numbers.iter().map(u8::to_string).collect();
    match &texts[..] {
        [first @ .., last] if !first.is_empty() => format!("{} and {last}", first.join(", ")),
        _ => texts.join(", "),
    }
}
