//! Links of several planes: one cable, one verdict.

use super::*;
use crate::testing::PlaneSweeps;
use ib_fabric::testing::{PlaneNet, RING, plane_up};

/// The reasons of a link that make it worse than ok.
fn reasons(link: &LinkAssessment) -> Vec<(Reason, Verdict)> {
    link.reasons.iter().filter(|(_, weight)| *weight >= Verdict::Watch).collect()
}

/// The links that are degraded or bad.
fn suspects(assessment: &Assessment) -> Vec<Verdict> {
    let verdicts = assessment.links.iter().map(|link| link.verdict);
    verdicts.filter(|verdict| *verdict >= Verdict::Watch).collect()
}

fn told(
    reason: Reason,
    link: &LinkAssessment,
    (snapshot, assessment): &(Snapshot, Assessment),
) -> String {
    explain::reason(reason, link, assessment, snapshot)
}

/// The four planes of host 1, at the switch.
const HOST_1: [PortKey; 4] = [end(0xa1, 1), end(0xa2, 1), end(0xa3, 1), end(0xa4, 1)];

const fn end(guid: u64, port: u8) -> PortKey {
    PortKey::new(Guid(guid), port)
}

#[test]
fn sound_links_of_planes_are_ok() {
    for (net, cables, internal) in
        [(PlaneNet::of_four_nodes(), 5, 8), (PlaneNet::of_one_node(), 4, 0)]
    {
        let mut planes = PlaneSweeps::sound(net);
        // A day, with a discovery each 15 minutes.
        for _ in 0..96 {
            planes.discover();
            let (_, assessment) = planes.sweeps(60);
            let ok = assessment.links.iter().filter(|link| link.verdict == Verdict::Ok).count();
            assert_eq!((ok, assessment.links.len()), (cables, cables + internal));
            for link in &assessment.links {
                let has = |reason| link.reasons.weight(reason).is_some();
                assert_eq!(has(Reason::Internal), link.verdict == Verdict::Unknown);
                assert!(!has(Reason::RingBroken));
            }
        }
    }
}

#[test]
fn bad_cable_has_one_verdict_and_four_without_grouping() {
    let bad = |mut planes: PlaneSweeps| {
        planes.errors = HOST_1.map(|at| (at, 1000)).to_vec();
        let swept = planes.sweeps(40);
        (suspects(&swept.1), swept, planes)
    };
    let (verdicts, swept, planes) = bad(PlaneSweeps::sound(PlaneNet::of_four_nodes()));
    assert_eq!(verdicts, [Verdict::Bad]);
    let link = planes.link_at(&swept.1, HOST_1[2]);
    assert_eq!(link.planes.iter().map(|it| it.link.verdict).collect::<Vec<_>>(), [Verdict::Bad; 4]);
    assert_eq!(reasons(&link), [(Reason::BitErrors, Verdict::Bad)]);
    assert_eq!(link.repair, Some(Repair::Reseat));
    let (verdicts, ..) = bad(PlaneSweeps::ungrouped(PlaneNet::of_four_nodes()));
    assert_eq!(verdicts, [Verdict::Bad; 4]);
}

#[test]
fn errors_of_one_plane_name_it() {
    for (net, plane, at) in
        [(PlaneNet::of_four_nodes(), 3, HOST_1[2]), (PlaneNet::of_one_node(), 2, end(0xa1, 6))]
    {
        let mut planes = PlaneSweeps::sound(net);
        planes.errors = vec![(at, 1000)];
        let swept = planes.sweeps(40);
        assert_eq!(suspects(&swept.1), [Verdict::Bad]);
        let link = planes.link_at(&swept.1, at);
        let text = told(Reason::BitErrors, &link, &swept);
        let label = planes.fabric.port_label(planes.fabric.find(at).unwrap());
        assert!(text.starts_with(&format!("plane {plane}: {label} receives")), "{text}");
        assert_eq!(text.matches("plane").count(), 1, "{text}");
        // The fault ends: the link is better when the plane is.
        planes.errors.clear();
        let (_, assessment) = planes.sweeps(600);
        assert_eq!(suspects(&assessment), []);
    }
}

#[test]
fn planes_that_are_down_degrade_a_link_and_all_of_them_take_it_down() {
    let mut planes = PlaneSweeps::sound(PlaneNet::of_four_nodes());
    let id = |planes: &PlaneSweeps| planes.fabric.link_id(planes.fabric.find(HOST_1[3]).unwrap());
    let before = id(&planes);
    planes.take_down(HOST_1[0]);
    let swept = planes.sweep();
    let link = planes.link_at(&swept.1, HOST_1[0]);
    assert_eq!((link.verdict, link.up), (Verdict::Watch, Some(true)));
    assert_eq!(reasons(&link), [(Reason::PlanesDown, Verdict::Watch)]);
    planes.net.unplug(HOST_1[0]);
    planes.discover();
    let swept = planes.sweeps(24);
    let link = planes.link_at(&swept.1, HOST_1[0]);
    assert_eq!(reasons(&link), [(Reason::PlanesDown, Verdict::Bad)]);
    assert_eq!(suspects(&swept.1), [Verdict::Bad]);
    assert_eq!((id(&planes), link.planes.len()), (before, 4), "it stays a plane");
    let text = told(Reason::PlanesDown, &link, &swept);
    assert!(text.starts_with("1 of 4 planes down: plane 1: not Active for 6m"), "{text}");
    for at in &HOST_1[1..] {
        planes.take_down(*at);
    }
    let swept = planes.sweeps(24);
    let link = planes.link_at(&swept.1, HOST_1[0]);
    assert_eq!((link.up, reasons(&link)), (Some(false), vec![(Reason::Down, Verdict::Bad)]));
    let text = told(Reason::Down, &link, &swept);
    assert!(text.starts_with("all 4 planes down; plane 1: not Active for"), "{text}");
    assert_eq!(link.outages.flaps, 0, "it is not up again");
}

#[test]
fn planes_that_flap_together_are_one_flap() {
    let mut planes = PlaneSweeps::sound(PlaneNet::of_four_nodes());
    for at in HOST_1 {
        planes.take_down(at);
    }
    planes.sweeps(2);
    planes.states.clear();
    let (_, assessment) = planes.sweeps(8);
    let link = planes.link_at(&assessment, HOST_1[0]);
    assert_eq!((link.outages.flaps, link.losses.as_ref().unwrap().len()), (1, 1));
    assert!(link.planes.iter().all(|plane| plane.link.outages.flaps == 1));
    assert_eq!(reasons(&link), [(Reason::Flapping, Verdict::Watch)]);
    // Later one plane alone.
    planes.take_down(HOST_1[2]);
    planes.sweeps(2);
    planes.states.clear();
    let swept = planes.sweeps(8);
    let link = planes.link_at(&swept.1, HOST_1[0]);
    assert_eq!((link.outages.flaps, link.losses.as_ref().unwrap().len()), (2, 2));
    assert_eq!(link.losses.as_ref().unwrap()[1].flaps, 2);
    // An hour after the last flap, and five minutes more, it is ok.
    let (_, assessment) = planes.sweeps(4 * 66);
    assert_eq!(suspects(&assessment), []);
}

#[test]
fn adapter_reports_what_is_true_of_all_its_planes() {
    let mut planes = PlaneSweeps::sound(PlaneNet::of_four_nodes());
    let (snapshot, mut assessment) = planes.sweep();
    let at = snapshot.ended + Duration::from_secs(1);
    let event = |kind| PortEvent {
        at: Anchor { moment: at, wall: SystemTime::UNIX_EPOCH },
        device: "mlx5_0".into(),
        guid: Some(Guid(0xb1)),
        port: Some(1),
        kind,
    };
    assert!(planes.evaluator.handle_event(&event(PortEventKind::PortError)));
    planes.evaluator.reassess(&snapshot, &mut assessment, at);
    let link = planes.link_at(&assessment, HOST_1[2]);
    assert_eq!((link.up, reasons(&link)), (Some(false), vec![(Reason::Down, Verdict::Watch)]));
    // It is up again as soon as one plane is: which, the next sweep finds.
    assert!(!planes.evaluator.handle_event(&event(PortEventKind::PortActive)));
    planes.take_down(HOST_1[3]);
    let (_, assessment) = planes.sweep();
    let link = planes.link_at(&assessment, HOST_1[2]);
    assert_eq!((link.up, reasons(&link)[0]), (Some(true), (Reason::PlanesDown, Verdict::Watch)));
}

#[test]
fn planes_without_a_link_from_the_start_are_down() {
    let mut net = PlaneNet::of_four_nodes();
    net.unplug(HOST_1[1]);
    let mut planes = PlaneSweeps::sound(net);
    let swept = planes.sweep();
    let link = planes.link_at(&swept.1, HOST_1[0]);
    assert_eq!(reasons(&link), [(Reason::PlanesDown, Verdict::Watch)]);
    let text = told(Reason::PlanesDown, &link, &swept);
    assert_eq!(text, "1 of 4 planes down: plane 2 has no link");
    // It comes up: then there are four, and after five minutes the link is ok.
    planes.net.links.push((HOST_1[1], end(0xb1, 2)));
    planes.discover();
    let (_, assessment) = planes.sweeps(100);
    assert_eq!(suspects(&assessment), []);
    assert_eq!(planes.link_at(&assessment, HOST_1[1]).planes.len(), 4);
}

#[test]
fn exchanged_planes_are_one_finding() {
    let mut net = PlaneNet::of_four_nodes();
    net.exchange([HOST_1[0], HOST_1[1]]);
    let mut planes = PlaneSweeps::sound(net);
    let swept = planes.sweep();
    assert_eq!(suspects(&swept.1), [Verdict::Watch]);
    let link = planes.link_at(&swept.1, HOST_1[0]);
    assert_eq!(reasons(&link), [(Reason::PlanesSwapped, Verdict::Watch)]);
    assert_eq!(link.repair, Some(Repair::CheckCabling));
    let text = told(Reason::PlanesSwapped, &link, &swept);
    let expected = "plane 1 (node 161 port 1 (sw1p1)) leads to plane 2, node 177 port 2; \
                    plane 2 (node 162 port 1 (sw1p1)) leads to plane 1, node 177 port 1";
    assert_eq!(text, expected);
    planes.net.exchange([HOST_1[0], HOST_1[1]]);
    planes.discover();
    let (_, assessment) = planes.sweeps(100);
    assert_eq!(suspects(&assessment), []);
}

#[test]
fn plane_at_the_wrong_switch_is_one_finding() {
    let mut net = PlaneNet::of_four_nodes();
    net.unplug(HOST_1[3]);
    net.links.push((end(0xc4, 6), end(0xb1, 4)));
    let mut planes = PlaneSweeps::sound(net);
    let swept = planes.sweep();
    assert_eq!(suspects(&swept.1), [Verdict::Watch]);
    let link = planes.link_at(&swept.1, HOST_1[0]);
    assert_eq!(reasons(&link), [(Reason::PlanesSwapped, Verdict::Watch)]);
    assert_eq!(link.planes.len(), 4);
    let text = told(Reason::PlanesSwapped, &link, &swept);
    let expected = "plane 4 (node 177 port 4) leads to node 196 port 6 (sw3p2), \
                    other planes to node 161 port 1 (sw1p1)";
    assert_eq!(text, expected);
}

#[test]
fn planes_of_unequal_rates_are_one_finding() {
    let mut planes = PlaneSweeps::sound(PlaneNet::of_one_node());
    let slow = PortStatus { speed: Some(Speed::Ndr), ..plane_up(1) };
    planes.states = vec![(end(0xa1, 3), slow), (end(0xb1, 3), slow)];
    let swept = planes.sweeps(4);
    assert_eq!(suspects(&swept.1), [Verdict::Watch]);
    let link = planes.link_at(&swept.1, end(0xa1, 1));
    assert_eq!(
        reasons(&link),
        [(Reason::Speed, Verdict::Watch), (Reason::PlanesUnequal, Verdict::Watch)]
    );
    let text = told(Reason::PlanesUnequal, &link, &swept);
    assert_eq!(text, "runs with planes 1, 2 and 4 at 1x XDR, plane 3 at 1x NDR");
    let text = told(Reason::Speed, &link, &swept);
    assert_eq!(text, "plane 3: runs at 1x NDR; ran at 1x XDR before");
}

#[test]
fn node_of_a_switch_that_reboots_degrades_no_link() {
    let mut planes = PlaneSweeps::sound(PlaneNet::of_four_nodes());
    planes.silent = vec![Guid(0xa2)];
    let (_, assessment) = planes.sweeps(40);
    assert_eq!(suspects(&assessment), [], "its node is down, which is told by itself");
    let link = planes.link_at(&assessment, HOST_1[0]);
    assert_eq!((link.verdict, link.up), (Verdict::Unknown, Some(true)));
    planes.silent.clear();
    let (_, assessment) = planes.sweeps(80);
    assert_eq!(suspects(&assessment), []);
}

#[test]
fn maintenance_of_one_plane_is_that_of_the_link() {
    let mut planes = PlaneSweeps::sound(PlaneNet::of_four_nodes());
    planes.evaluator.maintenance = vec![MaintenanceWindow {
        node: NodeSelector::new("0x00000000000000a2"),
        port: Some(1),
        from: None,
        until: None,
    }];
    planes.take_down(HOST_1[0]);
    let (_, assessment) = planes.sweeps(40);
    let link = planes.link_at(&assessment, HOST_1[0]);
    assert_eq!((link.verdict, suspects(&assessment).len()), (Verdict::Unknown, 0));
    assert!(assessment.in_maintenance.is_empty(), "no node is");
}

#[test]
fn broken_ring_is_a_finding_after_a_quarter_of_an_hour() {
    let ring = end(0xa2, RING[0]);
    let mut planes = PlaneSweeps::sound(PlaneNet::of_four_nodes());
    planes.take_down(ring);
    let (_, assessment) = planes.sweeps(50);
    assert_eq!(suspects(&assessment), []);
    planes.net.unplug(ring);
    planes.discover();
    let swept = planes.sweeps(12);
    assert_eq!(suspects(&swept.1), [Verdict::Watch]);
    let link = planes.link_at(&swept.1, ring);
    assert_eq!(reasons(&link), [(Reason::RingBroken, Verdict::Watch)]);
    assert_eq!(link.repair, None);
    let text = told(Reason::RingBroken, &link, &swept);
    assert!(text.starts_with("not Active for 15m"), "{text}");
    // One that is missing from the start may be missing by design.
    let mut net = PlaneNet::of_four_nodes();
    net.unplug(ring);
    let mut planes = PlaneSweeps::new(net.clone());
    for _ in 0..3 {
        planes.discover();
        assert_eq!(suspects(&planes.sweeps(100).1), []);
    }
    // One that was there and is no longer known is told at another link of the ring.
    let mut planes = PlaneSweeps::sound(PlaneNet::of_four_nodes());
    planes.fabric = Arc::new(net.fabric(None));
    assert_eq!(suspects(&planes.sweeps(60).1), []);
    planes.fabric = Arc::new(net.fabric(Some(&planes.fabric)));
    let swept = planes.sweeps(2);
    assert_eq!(suspects(&swept.1), [Verdict::Watch]);
    let link = planes.link_at(&swept.1, end(0xa1, RING[0]));
    let text = told(Reason::RingBroken, &link, &swept);
    let expected = "node 162 port 7 (FNMA1P7) has no link, although other nodes of the switch have";
    assert!(text.starts_with(expected), "{text}");
    // In maintenance of a node of that link it is no finding.
    planes.evaluator.maintenance = vec![MaintenanceWindow {
        node: NodeSelector::new("0x00000000000000a1"),
        port: None,
        from: None,
        until: None,
    }];
    assert_eq!(suspects(&planes.sweeps(40).1), []);
    // A link that is trained waits for its subnet manager.
    let mut planes = PlaneSweeps::sound(PlaneNet::of_four_nodes());
    let armed = PortStatus { state: PortState::Armed, ..plane_up(1) };
    planes.states = vec![(ring, armed), (end(0xa3, RING[1]), armed)];
    assert_eq!(suspects(&planes.sweeps(200).1), []);
    // A node of the switch that is down breaks its links, too: that is told by itself.
    let mut planes = PlaneSweeps::sound(PlaneNet::of_four_nodes());
    planes.silent = vec![Guid(0xa2)];
    assert_eq!(suspects(&planes.sweeps(200).1), []);
}

#[test]
fn link_whose_first_plane_leads_elsewhere_is_that_of_its_other_planes() {
    let mut net = PlaneNet::of_four_nodes();
    net.exchange([HOST_1[0], end(0xa1, 2)]);
    let mut planes = PlaneSweeps::sound(net);
    planes.take_down(end(0xa3, 1));
    let (_, assessment) = planes.sweeps(40);
    let order = |link: &LinkAssessment| (link.link.low, link.link.high);
    assert!(assessment.links.is_sorted_by_key(order));
    let links: Vec<_> = assessment.links.iter().map(|link| link.link).collect();
    assert_eq!(links, planes.fabric.whole_links().collect::<Vec<_>>());
    for (host, expected) in [(1, Verdict::Bad), (2, Verdict::Watch)] {
        let port = planes.fabric.find(end(0xb0 + host, 3)).unwrap();
        let lead = planes.fabric.aggregated_link(port).unwrap().lead();
        let link = assessment.links.iter().find(|link| link.link == lead).unwrap();
        let ends = link.link.ports().map(|port| planes.fabric.port_key(port));
        assert_eq!(ends, [end(0xa2, host as u8), end(0xb0 + host, 2)]);
        assert_eq!(link.verdict, expected);
    }
}

#[test]
fn planes_that_are_down_beside_unknown_ones_are_a_link_that_is_down() {
    let mut planes = PlaneSweeps::sound(PlaneNet::of_one_node());
    for port in 1..=3 {
        planes.take_down(end(0xa1, port));
    }
    let unknown = |planes: &mut PlaneSweeps| {
        let (snapshot, mut assessment) = planes.sweep();
        let port = planes.fabric.find(end(0xa1, 4)).unwrap();
        let whole = planes.fabric.aggregated_link(port).unwrap();
        let place = assessment.links.iter().position(|link| link.link == whole.lead()).unwrap();
        let mut of_planes = std::mem::take(&mut assessment.links[place].planes).into_vec();
        of_planes[3].link.up = None;
        let mut tracker = AggregatedLinkTracker::new(&of_planes, snapshot.ended);
        assessment.links[place] = tracker.assess(whole, of_planes, snapshot.ended);
        let link = assessment.links[place].clone();
        (link, (snapshot, assessment))
    };
    planes.sweeps(30);
    let (link, swept) = unknown(&mut planes);
    assert_eq!((link.up, reasons(&link)), (None, vec![(Reason::Down, Verdict::Bad)]));
    let text = told(Reason::Down, &link, &swept);
    let expected = "3 of 4 planes down, and no other one known to be up; plane 1: not Active for";
    assert!(text.starts_with(expected), "{text}");
}

#[test]
fn losses_from_before_planes_were_grouped_are_not_told_again() {
    let mut planes = PlaneSweeps::ungrouped(PlaneNet::of_four_nodes());
    planes.take_down(HOST_1[0]);
    planes.sweeps(2);
    planes.states.clear();
    let (_, assessment) = planes.sweeps(8);
    assert_eq!(planes.link_at(&assessment, HOST_1[0]).outages.flaps, 1);
    planes.fabric = Arc::new(planes.net.fabric(Some(&planes.fabric)));
    let (_, assessment) = planes.sweeps(8);
    let link = planes.link_at(&assessment, HOST_1[0]);
    assert_eq!((link.planes.len(), link.outages.flaps, link.losses), (4, 0, None));
}

#[test]
fn nvlink_fabric_has_neither_planes_nor_rings() {
    let mut net = PlaneNet::of_four_nodes();
    net.unplug(HOST_1[1]);
    net.unplug(end(0xa2, RING[0]));
    let mut planes = PlaneSweeps::new(net);
    let mut nvlink = Fabric::default();
    nvlink.kind = Some(FabricKind::NvLink);
    planes.fabric = Arc::new(planes.net.fabric(Some(&nvlink)));
    planes.take_down(end(0xa3, RING[0]));
    let (_, assessment) = planes.sweeps(100);
    assert!(planes.fabric.aggregated_links.is_empty() && planes.fabric.ring_gaps.is_empty());
    assert_eq!(suspects(&assessment), []);
    assert!(assessment.links.iter().all(|link| link.planes.is_empty()));
}
