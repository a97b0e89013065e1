//! The planes of a link, and what its ends have in all of them together.

use ib_fabric::PortIndex;
use ib_fabric::aggregated_links::{AggregatedLink, PlaneLink, Wiring};
use ib_fabric::topology::Link as Cable;
use ib_health::{LinkAssessment, Verdict};
use ib_mad::Reading;
use ib_mad::port_state::PortStatus;

use crate::model::{End, LinkPlane};
use crate::view::FabricView;

/// The models of the planes of a link.
pub(crate) fn planes(
    view: FabricView<'_>,
    whole: &AggregatedLink,
    assessment: Option<&LinkAssessment>,
) -> Vec<LinkPlane> {
    let plane = |plane: &PlaneLink| {
        let fabric = &view.snapshot.fabric;
        let found = assessment.and_then(|whole| assessment_of(whole, plane.link));
        let status = view.snapshot.slower_end(plane.link);
        let readings = plane.ports.iter().filter_map(|port| view.snapshot.reading(*port));
        let errors = readings.filter(|it| it.has_link_errors()).map(Reading::link_errors);
        let verdict = found.map_or(Verdict::Unknown, |found| found.verdict);
        let reasons = found.iter().flat_map(|found| found.reasons.iter());
        LinkPlane {
            plane: plane.plane,
            link: fabric.plane_link_id(plane.link.low).map(|id| id.to_string()),
            ports: plane.ports.map(|port| view.port_name(port)),
            up: found.and_then(|found| found.up),
            verdict: verdict.label().into(),
            reasons: reasons.map(|(reason, _)| reason.label().into()).collect(),
            rate: status.and_then(PortStatus::rate),
            speed: status.and_then(|status| status.speed).map(|speed| speed.label().into()),
            width: status.and_then(|status| status.width).map(|width| width.label().into()),
            errors: errors.reduce(u64::saturating_add),
        }
    };
    whole.planes.iter().map(plane).collect()
}

/// The assessment of a plane of a link, or of the link itself if it has no planes.
pub(crate) fn assessment_of(whole: &LinkAssessment, link: Cable) -> Option<&LinkAssessment> {
    whole.plane_links().find(|plane| plane.link == link)
}

/// The plane that needs most attention: the first of those with the worst verdict.
pub(crate) fn worst(whole: &LinkAssessment) -> &LinkAssessment {
    let mut planes = whole.plane_links();
    let first = planes.next().unwrap_or(whole);
    planes.fold(first, |worst, plane| if plane.verdict > worst.verdict { plane } else { worst })
}

/// The ports of a plane or of an ordinary link, in the order of the ends of the whole link.
pub(crate) fn ends_of(view: FabricView<'_>, link: Cable) -> [PortIndex; 2] {
    let whole = view.snapshot.fabric.aggregated_link(link.low);
    let plane = whole.and_then(|whole| whole.planes.iter().find(|plane| plane.link == link));
    plane.map_or(link.ports(), |plane| plane.ports)
}

/// The ports of one side of a link, the lowest plane's first. A plane that leads to another port has none at that side.
pub(crate) fn side(whole: &AggregatedLink, nth: usize) -> impl Iterator<Item = PortIndex> + '_ {
    let lead = whole.lead();
    let is_usual = |plane: &&PlaneLink| plane.wiring != Wiring::OtherPort;
    let planes = || whole.planes.iter().filter(is_usual);
    let first = planes().filter(move |plane| plane.link == lead);
    let others = planes().filter(move |plane| plane.link != lead);
    first.chain(others).map(move |plane| plane.ports[nth])
}

/// An end of a link with what all planes counted there: sums of counters, and the worst of what has no sum.
pub(crate) fn combined(mut planes: impl Iterator<Item = End>) -> End {
    let mut all = planes.next().unwrap_or_default();
    for plane in planes {
        let is_worse = worst_ratio(&plane) > worst_ratio(&all);
        for (counter, count) in plane.counters {
            let sum = all.counters.entry(counter).or_default();
            *sum = sum.saturating_add(count);
        }
        for counter in plane.saturated {
            if !all.saturated.contains(&counter) {
                all.saturated.push(counter);
            }
        }
        if is_worse {
            all.bit_errors = plane.bit_errors;
        }
        all.wait_ratio = all.wait_ratio.into_iter().chain(plane.wait_ratio).reduce(f32::max);
        all.wait_saturated |= plane.wait_saturated;
    }
    all
}

fn worst_ratio(end: &End) -> f64 {
    end.bit_errors.windows.iter().filter_map(|it| it.ratio).fold(0.0, f64::max)
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use fabric_observation::Observation;
    use ib_fabric::testing::{PlaneNet, end, plane_panel};
    use ib_health::testing::PlaneSweeps;
    use ib_mad::{Guid, NodeKind, PortKey};

    use crate::filter::Filter;
    use crate::links::links;
    use crate::model::{Links, Verdicts};
    use crate::nodes::{node_by_guid, nodes};
    use crate::ports::link_by_id;

    /// Three of the planes of host 1 count errors at the switch, and the fourth one is down.
    fn observation() -> Observation {
        let mut planes = PlaneSweeps::sound(PlaneNet::of_four_nodes());
        planes.errors = [(0xa1, 5), (0xa2, 7), (0xa3, 1000)]
            .map(|(node, errors): (u64, u64)| (end(node, 1), errors))
            .to_vec();
        planes.take_down(end(0xa4, 1));
        let (snapshot, assessment) = planes.sweeps(30);
        let snapshot = Some(Arc::new(snapshot));
        Observation { fabric: "f".into(), snapshot, assessment, ..Observation::default() }
    }

    #[test]
    fn link_has_its_planes_and_what_they_counted_together() {
        let observations = [Arc::new(observation())];
        let listed = links(&observations, &Filter { suspect: true, ..Filter::default() });
        let fabric = &listed.fabrics[0];
        assert_eq!(fabric.verdicts, Verdicts { ok: 4, bad: 1, unknown: 8, ..Verdicts::default() });
        let [link] = &fabric.links[..] else { panic!("one link: {listed:#?}") };
        assert_eq!(link.link, "0x00000000000000a1:1-0x00000000000000b1:1");
        assert_eq!(
            (link.up, link.rate, link.width.as_deref()),
            (Some(true), Some(75_000_000_000), Some("3x"))
        );
        assert_eq!(link.planes_source.as_deref(), Some("hierarchy_info"));
        assert_eq!(link.ends[0].counters["symbol_errors"], 30 * (5 + 7 + 1000));
        let plane = |nth: usize| {
            let plane = &link.planes[nth];
            (plane.plane, plane.up, &*plane.verdict, plane.errors, plane.width.as_deref())
        };
        assert_eq!(plane(2), (3, Some(true), "bad", Some(30_000), Some("1x")));
        assert_eq!(plane(3), (4, Some(false), "bad", Some(0), None));
        assert_eq!(link.planes[3].ports[0].node, "node 164");
        let json = serde_json::to_string(&listed).unwrap();
        let again: Links = serde_json::from_str(&json).unwrap();
        let planes = |links: &Links| links.fabrics[0].links[0].planes.clone();
        assert_eq!(planes(&again), planes(&listed));
    }

    #[test]
    fn page_of_a_plane_is_that_of_its_link() {
        let observations = [Arc::new(observation())];
        for plane in 1..=4 {
            let ends = [end(0xa0 + plane, 1), end(0xb1, plane as u8)];
            let [low, high] = ends.map(|end: PortKey| end.to_string());
            let detail = link_by_id(&observations, None, format!("{low}-{high}").parse().unwrap());
            let detail = detail.unwrap();
            assert_eq!(detail.link.planes.len(), 4);
            assert_eq!(detail.link.ends[0].node, "node 161");
            assert_eq!(detail.ports[0].name.node, "node 161", "the first of the worst planes");
        }
    }

    #[test]
    fn ends_of_the_worst_plane_are_in_the_order_of_the_link() {
        // The GUID of one node of the leaf is higher than those of its hosts.
        let mut net = PlaneNet::of_four_nodes();
        let ends = net.links.iter_mut().flat_map(|(a, b)| [&mut a.guid, &mut b.guid]);
        let guids = net.nodes.iter_mut().map(|node| &mut node.identity.guid).chain(ends);
        guids.filter(|guid| **guid == Guid(0xa4)).for_each(|guid| *guid = Guid(0xe4));
        for port in 1..=6 {
            net.panel(0xe4, port, plane_panel(NodeKind::Switch, port.into(), [4, 4]));
        }
        let mut planes = PlaneSweeps::sound(net);
        planes.errors = vec![(end(0xe4, 1), 1000)];
        let (snapshot, assessment) = planes.sweeps(30);
        let snapshot = Some(Arc::new(snapshot));
        let observation =
            Observation { fabric: "f".into(), snapshot, assessment, ..Observation::default() };
        let id = "0x00000000000000a1:1-0x00000000000000b1:1".parse().unwrap();
        let detail = link_by_id(&[Arc::new(observation)], None, id).unwrap();
        let names = detail.ports.map(|port| port.name.node);
        assert_eq!(names, ["node 164", "node 177"]);
    }

    #[test]
    fn each_node_of_a_switch_has_the_link_once() {
        let observations = [Arc::new(observation())];
        let of_host = |name: &str| Filter { node: Some(name.into()), ..Filter::default() };
        for (name, cables) in [("node 164", 5), ("node 177", 1)] {
            let listed = nodes(&observations, &of_host(name));
            let verdicts = listed.fabrics[0].nodes[0].verdicts;
            assert_eq!((verdicts.bad, verdicts.ok), (1, cables - 1), "{name}");
            let found = links(&observations, &of_host(name));
            let whole = found.fabrics[0].links.iter().filter(|link| !link.planes.is_empty());
            assert_eq!(whole.count(), cables, "{name}");
        }
        // A port has the verdict of its own plane.
        let detail = node_by_guid(&observations, None, end(0xb1, 1).guid).unwrap();
        let verdicts: Vec<_> = detail.ports.iter().map(|it| it.verdict.as_deref()).collect();
        assert_eq!(verdicts[2..], [Some("bad"), Some("bad")]);
        let links: Vec<_> = detail.ports.iter().map(|it| it.link.as_deref()).collect();
        assert_eq!(links, [Some("0x00000000000000a1:1-0x00000000000000b1:1"); 4]);
    }
}
