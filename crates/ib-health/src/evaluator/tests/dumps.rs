//! Rates in dumps of other tools: they are read once, and many do not contain what a port supports.

use super::*;
use crate::assessment::UnjudgedRates;
use ib_mad::rate::{LinkRate, SpeedSet};

const EDR: LinkRate = (Width::X4, Speed::Edr);

/// A port as in a dump that contains its rate only.
fn at((width, speed): LinkRate) -> PortStatus {
    PortStatus {
        width: Some(width),
        speed: Some(speed),
        widths_supported: 0,
        widths_enabled: 0,
        speeds_supported: SpeedSet::default(),
        speeds_enabled: SpeedSet::default(),
        ..up(1)
    }
}

/// A port as iblinkinfo describes it: "Could be 4X" or "Could be 25.78125 Gbps".
fn could_be(width: Option<Width>, speed: Option<Speed>, rate: LinkRate) -> PortStatus {
    let widths = width.map_or(0, Width::up_to);
    let speeds = speed
        .map_or(SpeedSet::default(), |max| Speed::ALL.into_iter().collect::<SpeedSet>().up_to(max));
    PortStatus {
        widths_supported: widths,
        widths_enabled: widths,
        speeds_supported: speeds,
        speeds_enabled: speeds,
        ..at(rate)
    }
}

/// A switch with a host at each of its ports: the states of both ends.
fn leaf(ends: &[[PortStatus; 2]]) -> Arc<Fabric> {
    let count = ends.len() as u8;
    let hosts = (1..=count).map(|nth| found(100 + u64::from(nth), NodeKind::Ca, 1));
    let nodes = [found(1, NodeKind::Switch, count)].into_iter().chain(hosts).collect();
    let cables: Vec<_> =
        (1..=count).map(|nth| (end(1, nth), end(100 + u64::from(nth), 1))).collect();
    let mut fabric = fabric(nodes, &cables, None);
    for (&(near, far), [a, b]) in cables.iter().zip(ends) {
        for (key, status) in [(near, a), (far, b)] {
            let port = fabric.find(key).unwrap();
            fabric.ports[port].status = Some(*status);
        }
    }
    Arc::new(fabric)
}

/// Evaluates a dump that was collected at this second.
fn dump(
    evaluator: &mut LinkEvaluator,
    fabric: &Arc<Fabric>,
    second: u64,
) -> (Snapshot, Assessment) {
    let moment = Moment::default() + Duration::from_secs(second);
    let anchor = Anchor { moment, wall: SystemTime::UNIX_EPOCH };
    evaluator.evaluate(Snapshot::blank(Arc::clone(fabric), anchor))
}

/// The first dump with these states.
fn first_dump(ends: &[[PortStatus; 2]]) -> (Snapshot, Assessment) {
    dump(&mut LinkEvaluator::of_dumps(LimitTable::default()), &leaf(ends), 1)
}

fn evidence((snapshot, assessment): &(Snapshot, Assessment), nth: usize, reason: Reason) -> String {
    explain::reason(reason, &assessment.links[nth], assessment, snapshot)
}

#[test]
fn slow_and_narrow_links_are_reported_from_the_first_dump() {
    let mut ends = [[at(EDR); 2]; 20];
    ends[3] = [at((Width::X1, Speed::Edr)); 2];
    ends[7] = [at((Width::X4, Speed::Sdr)); 2];
    let found = first_dump(&ends);
    let verdicts: Vec<Verdict> = found.1.links.iter().map(|link| link.verdict).collect();
    let mut expected = [Verdict::Unknown; 20];
    (expected[3], expected[7]) = (Verdict::Bad, Verdict::Watch);
    assert_eq!(verdicts, expected);
    assert_eq!(evidence(&found, 3, Reason::Width), "runs at 1x EDR; its peers run at 4x EDR");
    assert_eq!(evidence(&found, 7, Reason::Speed), "runs at 4x SDR; its peers run at 4x EDR");
    // A sweep may read a link that still trains.
    let live = dump(&mut LinkEvaluator::new(LimitTable::default()), &leaf(&ends), 1);
    assert!(live.1.links.iter().all(|link| link.verdict == Verdict::Unknown));
}

#[test]
fn slower_link_than_in_earlier_dumps_is_reported() {
    let mut evaluator = LinkEvaluator::of_dumps(LimitTable::default());
    let day = 24 * 3600;
    for second in [1, day] {
        let (_, found) = dump(&mut evaluator, &leaf(&[[at(EDR); 2]]), second);
        assert_eq!(found.links[0].verdict, Verdict::Unknown);
    }
    let slow = leaf(&[[at((Width::X1, Speed::Edr)); 2]]);
    let found = dump(&mut evaluator, &slow, 2 * day);
    assert_eq!(found.1.links[0].verdict, Verdict::Bad);
    assert_eq!(evidence(&found, 0, Reason::Width), "runs at 1x EDR; ran at 4x EDR before");
}

#[test]
fn link_that_could_be_faster_is_judged_by_that_alone() {
    let one_lane = could_be(Some(Width::X4), None, (Width::X1, Speed::Edr));
    let slow = could_be(None, Some(Speed::Edr), (Width::X4, Speed::Sdr));
    let found = first_dump(&[[one_lane; 2], [slow; 2]]);
    let weights = |found: &Assessment, nth: usize, label| weight(&found.links[nth], label);
    assert_eq!(weights(&found.1, 0, "width"), Some(Verdict::Bad));
    let says = "runs at 1x EDR; both ends support and enable 4x EDR";
    assert_eq!(evidence(&found, 0, Reason::Width), says);
    assert_eq!(weights(&found.1, 1, "speed"), Some(Verdict::Watch));
    // Several with one rate may be a design, as adapters of half the rate are.
    let several = first_dump(&[[slow; 2]; 4]);
    assert_eq!(weights(&several.1, 1, "below_capability"), Some(Verdict::Ok));
    // Those that could not be faster are its peers.
    let mut ends = [[at(EDR); 2]; 5];
    ends[0] = [slow; 2];
    let found = first_dump(&ends);
    assert_eq!(weights(&found.1, 0, "speed"), Some(Verdict::Watch));
    // But not those that are faster than it could be.
    let mut ends = [[at((Width::X4, Speed::Hdr)); 2]; 5];
    ends[0] = [slow; 2];
    assert_eq!(
        evidence(&first_dump(&ends), 0, Reason::Speed),
        "runs at 4x SDR; both ends support and enable 4x EDR"
    );
}

#[test]
fn links_that_nothing_is_compared_with_are_counted() {
    let narrow = at((Width::X1, Speed::Edr));
    let unknown = PortStatus { width: None, speed: None, ..at(EDR) };
    for (ends, without_rate, without_peers) in [
        (vec![[at(EDR); 2]; 5], 0, 0),
        (vec![[at(EDR); 2]; 4], 0, 4),
        // The narrow one is reported.
        (vec![[at(EDR); 2], [at(EDR); 2], [narrow; 2]], 0, 2),
        (vec![[unknown; 2], [at(EDR); 2]], 1, 1),
        (vec![[up(1); 2]], 0, 0),
    ] {
        let found = first_dump(&ends).1.unjudged_rates;
        assert_eq!(found, UnjudgedRates { links: ends.len(), without_rate, without_peers });
    }
}

#[test]
fn ends_that_contradict_each_other_are_a_finding() {
    let slow = at((Width::X1, Speed::Sdr));
    for (near, far, reason, verdict, says) in [
        (
            (Width::X1, Speed::Sdr),
            (Width::X4, Speed::Sdr),
            "width",
            Verdict::Bad,
            ["1x SDR", "4x SDR"],
        ),
        (
            (Width::X4, Speed::Edr),
            (Width::X4, Speed::Hdr),
            "speed",
            Verdict::Watch,
            ["4x EDR", "4x HDR"],
        ),
        (
            (Width::X4, Speed::Edr),
            (Width::X1, Speed::Edr),
            "width",
            Verdict::Bad,
            ["4x EDR", "1x EDR"],
        ),
    ] {
        let found = first_dump(&[[at(near), at(far)]]);
        assert_eq!(weight(&found.1.links[0], reason), Some(verdict), "{near:?} {far:?}");
        let reason = Reason::from_label(reason).unwrap();
        let [a, b] = says;
        let says = format!("node 1 port 1 says {a}; node 101 port 1 says {b}");
        assert_eq!(evidence(&found, 0, reason), says);
    }
    // An end may report FDR10 as QDR.
    let [qdr, fdr10] = [Speed::Qdr, Speed::Fdr10].map(|speed| at((Width::X4, speed)));
    assert_eq!(weight(&first_dump(&[[qdr, fdr10]]).1.links[0], "speed"), None);
    // Peers with more lanes than either end are the worse finding.
    let mut ends = [[at(EDR); 2]; 5];
    ends[0] = [slow, at((Width::X1, Speed::Edr))];
    let found = first_dump(&ends);
    assert_eq!(evidence(&found, 0, Reason::Width), "runs at 1x SDR; its peers run at 4x EDR");
}

#[test]
fn ends_that_are_read_at_different_moments_must_contradict_each_other_for_a_while() {
    let slow = PortStatus { speed: Some(Speed::Sdr), ..up(1) };
    let mut link = Scenario::unseen([0; 2], false);
    (link.near, link.far) = (Some(slow), Some(slow));
    link.sweeps(4);
    link.near = Some(up(1));
    assert_eq!([0; 2].map(|_| weight(&link.sweep(), "speed")), [None; 2]);
    assert_eq!(weight(&link.sweep(), "speed"), Some(Verdict::Watch));
    link.far = Some(up(2));
    assert_eq!(weight(&link.sweep(), "speed"), None);
    // The state of the end that is not queried is as old as the discovery.
    link.far = None;
    link.near = Some(slow);
    let found = link.sweeps(20);
    assert_ne!(found.reference, Some(RateReference::OtherEnd(EDR)));
}
