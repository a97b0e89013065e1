//! The condition of a small fabric: a leaf with two hosts, swept 1000 s after the beginning.

use std::sync::Arc;

use super::*;
use ib_fabric::{NodeIndex, Snapshot};
use ib_health::Reason;
use ib_health::outage::{Downtime, ExpectedCause, Loss};
use ib_health::testing::{count, fine, port, snapshot};
use ib_mad::{Counter, Guid, Moment};

/// An observation without any fault.
fn swept() -> Observation {
    let snapshot = snapshot();
    let assessment = fine(&snapshot);
    let mut observation = Observation {
        fabric: "f".into(),
        interval: Duration::from_secs(15),
        snapshot: Some(snapshot.into()),
        assessment,
        ..Observation::default()
    };
    for collector in Collector::ALL {
        observation.stats.set_success(collector, true);
    }
    observation
}

fn node(observation: &Observation, guid: u64) -> NodeIndex {
    observation.snapshot.as_ref().unwrap().fabric.node_by_guid(Guid(guid)).unwrap()
}

/// Nodes that are down since so many seconds before the sweep ended.
fn in_maintenance(observation: &mut Observation, guids: &[u64]) {
    let nodes: Vec<_> = guids.iter().map(|guid| node(observation, *guid)).collect();
    observation.assessment.in_maintenance.extend(nodes);
}

fn down(observation: &mut Observation, guids: &[u64], seconds: u64) {
    for guid in guids {
        let node = node(observation, *guid);
        let snapshot: &mut Snapshot = Arc::make_mut(observation.snapshot.as_mut().unwrap());
        snapshot.silent[node] = true;
        let since = snapshot.began.before(Duration::from_secs(seconds));
        observation.assessment.nodes_down.insert(node, since);
    }
    // As the evaluator does.
    for (link, ends) in observation.assessment.links.iter_mut().zip([[1, 2], [1, 3]]) {
        if ends.iter().any(|end| guids.contains(end)) {
            link.verdict = Verdict::Unknown;
            link.reasons.add(Reason::Unresponsive, Verdict::Unknown);
        }
    }
}

fn judge(observation: &mut Observation, verdicts: [Verdict; 2]) {
    for (link, verdict) in observation.assessment.links.iter_mut().zip(verdicts) {
        link.verdict = verdict;
    }
}

fn because(observation: &mut Observation, reason: Reason) {
    judge(observation, [Verdict::Unknown; 2]);
    for link in &mut observation.assessment.links {
        link.reasons.add(reason, Verdict::Unknown);
    }
}

/// The verdict and the headline after a change.
fn shown(change: impl FnOnce(&mut Observation)) -> (Verdict, String) {
    let mut observation = swept();
    change(&mut observation);
    let found = at(&observation, SystemTime::UNIX_EPOCH + Duration::from_secs(1000));
    (found.verdict(), found.headline)
}

#[test]
fn condition_is_the_worst_of_nodes_and_links() {
    use Verdict::{Bad, Ok, Unknown, Watch};
    type Change<'a> = &'a dyn Fn(&mut Observation);
    let cases: [(Change<'_>, Verdict, &str); 20] = [
        (&|_| (), Ok, "all ok: 2 links, 3 nodes"),
        (&|it| judge(it, [Bad, Watch]), Bad, "1 bad link"),
        (&|it| judge(it, [Watch, Unknown]), Watch, "1 degraded link"),
        (&|it| judge(it, [Unknown, Ok]), Unknown, "unknown for 1 link"),
        (&|it| down(it, &[1, 2, 3], 60), Bad, "1 switch down (leaf), 2 HCAs behind it"),
        // It may reboot.
        (&|it| down(it, &[2], 60), Unknown, "1 HCA down for less than 15 min (host-a)"),
        (&|it| down(it, &[2], 900), Bad, "1 HCA down (host-a)"),
        (&|it| down(it, &[2, 3], 900), Bad, "2 HCAs down (host-a, host-b)"),
        (
            &|it| {
                down(it, &[2], 900);
                judge(it, [Unknown, Bad]);
            },
            Bad,
            "1 HCA down (host-a); 1 bad link",
        ),
        (
            &|it| {
                down(it, &[2], 900);
                it.stats.partition_suspected = true;
            },
            Unknown,
            "hosts do not respond: the P_Key of the exporter's port is probably wrong; 1 HCA down (host-a)",
        ),
        // In maintenance nothing is bad, and not all is ok.
        (&|it| because(it, Reason::Maintenance), Unknown, "in maintenance: 2 links"),
        (
            &|it| {
                down(it, &[1, 2, 3], 900);
                because(it, Reason::Maintenance);
                in_maintenance(it, &[1, 2, 3]);
            },
            Unknown,
            "in maintenance: 1 switch down (leaf), 2 HCAs behind it",
        ),
        (
            &|it| {
                down(it, &[2, 3], 900);
                in_maintenance(it, &[2]);
            },
            Bad,
            "1 HCA down (host-b)",
        ),
        // What is not judged on purpose does not count.
        (&|it| because(it, Reason::Disabled), Ok, "all ok: 0 links, 3 nodes, 2 links not judged"),
        (
            &|it| it.stats.discovery_gaps = 2,
            Unknown,
            "2 requests of the discovery without response",
        ),
        // Known neighbors that did not respond.
        (
            &|it| (it.stats.discovery_gaps, it.stats.known_gaps) = (2, 2),
            Ok,
            "all ok: 2 links, 3 nodes",
        ),
        (
            &|it| (it.stats.discovery_gaps, it.stats.known_gaps) = (3, 2),
            Unknown,
            "1 request of the discovery without response",
        ),
        (
            &|it| {
                down(it, &[1, 2, 3], 900);
                it.stats.set_success(Collector::Discovery, false);
            },
            Unknown,
            "no view of the fabric (failed: discovery)",
        ),
        (&|it| it.stats.set_success(Collector::Subnet, false), Ok, "all ok: 2 links, 3 nodes"),
        (&|it| it.snapshot = None, Unknown, "not swept yet"),
    ];
    for (change, verdict, headline) in cases {
        assert_eq!(shown(change), (verdict, headline.to_owned()));
    }
}

#[test]
fn links_that_learn_again_after_a_reboot_do_not_count() {
    let learns = |observation: &mut Observation| {
        because(observation, Reason::InsufficientData);
        let snapshot: &mut Snapshot = Arc::make_mut(observation.snapshot.as_mut().unwrap());
        for (guid, number) in [(1, 1), (2, 1), (1, 2), (3, 1)] {
            let end = port(snapshot, guid, number);
            count(snapshot, end, Counter::SymbolErrors, 0);
            let found = &mut observation.assessment.ports[end].bit_errors;
            (found.bits_per_second, found.limit) = (4e11, 1e-14);
        }
    };
    assert_eq!(shown(learns), (Verdict::Unknown, "learning for 2 links".into()));
    let after = |expected| {
        move |observation: &mut Observation| {
            learns(observation);
            let loss = Loss {
                number: 1,
                times: 1,
                expected,
                by_node: false,
                at: Moment(0),
                until: Some(Moment(1)),
                down: Downtime::default(),
                flaps: 0,
            };
            observation.assessment.links[1].losses = Some(Arc::new([loss]));
        }
    };
    let one = "learning for 1 link".to_owned();
    assert_eq!(shown(after(Some(ExpectedCause::Reboot))), (Verdict::Unknown, one));
    assert_eq!(shown(after(None)), (Verdict::Unknown, "learning for 2 links".into()));
}

#[test]
fn old_sweep_is_not_ok_and_keeps_what_was_found() {
    let (mut observation, ended) = (swept(), SystemTime::UNIX_EPOCH + Duration::from_secs(1000));
    let after = |observation: &Observation, seconds| {
        let found = at(observation, ended + Duration::from_secs(seconds));
        (found.verdict(), found.headline)
    };
    assert_eq!(after(&observation, 120).0, Verdict::Ok);
    let old = "the latest sweep is 2m 1s old".to_owned();
    assert_eq!(after(&observation, 121), (Verdict::Unknown, old));
    down(&mut observation, &[2], 60);
    let both = "1 HCA down for less than 15 min (host-a); the latest sweep is 2m 1s old".to_owned();
    assert_eq!(after(&observation, 121), (Verdict::Unknown, both));
    // Dumps have no interval.
    let dump = Observation { interval: Duration::ZERO, ..swept() };
    assert_eq!(after(&dump, 1_000_000).0, Verdict::Ok);
}

#[test]
fn each_finding_is_listed_the_worst_first() {
    let mut observation = swept();
    down(&mut observation, &[2], 60);
    judge(&mut observation, [Verdict::Unknown, Verdict::Bad]);
    observation.stats.discovery_gaps = 1;
    let found = latest(&observation);
    let findings = found.findings.iter().map(|it| (&*it.kind, &*it.verdict, it.count));
    let wanted =
        [("links", "bad", 1), ("nodes_down", "unknown", 1), ("discovery_gaps", "unknown", 1)];
    assert_eq!(findings.collect::<Vec<_>>(), wanted);
    let down = &found.findings[1];
    assert_eq!(
        (down.alert.as_deref(), &*down.nodes[0].node),
        (Some("InfinibandNodeDown"), "host-a")
    );
    assert_eq!(short([&found].into_iter()).as_deref(), Some("1 bad"), "it may reboot");
    self::down(&mut observation, &[2], 900);
    assert_eq!(short([&latest(&observation)].into_iter()).as_deref(), Some("1 node down, 1 bad"));
}

#[test]
fn no_links_are_not_ok() {
    let blank = |observation: &mut Observation| {
        let fabric = Arc::new(ib_fabric::Fabric::default());
        let anchor = observation.snapshot.as_ref().unwrap().anchor;
        observation.snapshot =
            Some(Arc::new(Snapshot { ended: Moment(0), ..Snapshot::blank(fabric, anchor) }));
        observation.assessment = ib_health::Assessment::default();
        observation.interval = Duration::ZERO;
    };
    assert_eq!(shown(blank), (Verdict::Unknown, "no links found".into()));
}
