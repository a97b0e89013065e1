use std::time::Duration;

use serde_json::json;

use super::*;
use fabric_observation::Collector;
use ib_fabric::PortIndex;
use ib_fabric::testing::{end, fabric, found};
use ib_health::congestion::{Level, Region};
use ib_health::outage::{Downtime, Expected, Loss, Outages};
use ib_health::verdict::Reasons;
use ib_health::{LinkFindings, PortFindings, Reason, Verdict};
use ib_mad::moment::Anchor;
use ib_mad::node::NodeKind;
use ib_mad::rate::Width;

/// Switch 1 with hosts 2 and 3 at its ports 1 and 2, swept each 15 s.
struct Watch {
    story: Story,
    seen: Observation,
    sweep: u64,
}

impl Watch {
    fn new() -> Self {
        let nodes = vec![
            found(1, NodeKind::Switch, 2),
            found(2, NodeKind::Ca, 1),
            found(3, NodeKind::Ca, 1),
        ];
        let links = [(end(1, 1), end(2, 1)), (end(1, 2), end(3, 1))];
        let fabric = Arc::new(fabric(nodes, &links, None));
        let anchor = Anchor { moment: Moment(0), wall: SystemTime::UNIX_EPOCH };
        let link = |link| LinkFindings {
            link,
            verdict: Verdict::Unknown,
            since: Moment(0),
            reasons: Reasons::default(),
            repair: None,
            up: Some(true),
            outages: Outages::default(),
            losses: None,
            upstream: None,
            reference: None,
        };
        let findings = Findings {
            ports: vec![PortFindings::default(); fabric.ports.len()],
            links: fabric.links().map(link).collect(),
            regions: Vec::new(),
        };
        let snapshot = Some(Snapshot::blank(fabric, anchor));
        let seen = Observation { snapshot, findings, ..Observation::default() };
        let mut watch = Watch { story: Story::default(), seen, sweep: 0 };
        watch.answer(true);
        assert_eq!(watch.sweep(), [""; 0], "the first one is what others are told against");
        watch
    }

    fn answer(&mut self, answers: bool) {
        for collector in Collector::ALL {
            self.seen.tally.set_success(collector, answers);
        }
    }

    fn snapshot(&mut self) -> &mut Snapshot {
        self.seen.snapshot.as_mut().unwrap()
    }

    fn link(&mut self) -> &mut LinkFindings {
        &mut self.seen.findings.links[0]
    }

    /// Looks, and tells kinds and texts.
    fn sweep(&mut self) -> Vec<String> {
        self.sweep += 15;
        let began = Moment(self.sweep * 1_000_000_000);
        let snapshot = self.snapshot();
        (snapshot.began, snapshot.ended) = (began, began + Duration::from_secs(1));
        let now = SystemTime::UNIX_EPOCH + Duration::from_secs(self.sweep + 2);
        let told = self.story.follow(&self.seen, now);
        for event in &told {
            assert!(event.at <= now, "{event:?}");
        }
        told.iter().map(|event| format!("{}: {}", event.kind.label(), event.text)).collect()
    }
}

const NONE: [&str; 0] = [];

#[test]
fn a_link_is_down_once_whatever_is_unknown_meanwhile() {
    let mut watch = Watch::new();
    for (up, told) in [
        (None, ""),
        (Some(false), "link_down: it carries nothing any more"),
        (None, ""),
        (Some(false), ""),
        (None, ""),
        (Some(true), "link_up: it carries traffic again"),
        (Some(true), ""),
    ] {
        watch.link().up = up;
        assert_eq!(watch.sweep().join("\n"), told, "{up:?}");
    }
}

#[test]
fn losses_are_told_as_they_are_settled() {
    let mut watch = Watch::new();
    let at = |second: u64| Moment(second * 1_000_000_000);
    let down = |least, most| Downtime {
        least: Duration::from_secs(least),
        most: Duration::from_secs(most),
    };
    let first = Loss {
        number: 1,
        times: 2,
        expected: None,
        at: at(3),
        until: None,
        down: down(0, 15),
        flaps: 2,
    };
    let seen = Loss {
        number: 2,
        times: 1,
        at: at(5),
        until: Some(at(14)),
        down: down(2, 9),
        flaps: 3,
        ..first
    };
    watch.link().losses = Some([first, seen].into());
    assert_eq!(
        watch.sweep(),
        [
            "flap: lost twice, by its own fault; 2 in all; down for at most 15 s",
            "flap: lost once, by its own fault; 3 in all; down for 2 to 9 s",
        ]
    );
    let reboot = Loss {
        number: 3,
        times: 1,
        expected: Some(Expected::Reboot),
        at: at(20),
        until: Some(at(40)),
        down: down(20, 20),
        flaps: 3,
    };
    watch.link().losses = Some([first, seen, reboot].into());
    assert_eq!(watch.sweep(), ["expected_loss: lost once: reboot; down for 20 s"]);
    assert_eq!(watch.sweep(), NONE);
}

#[test]
fn each_loss_has_its_own_time_and_length() {
    let mut watch = Watch::new();
    let loss = |number: u32, second: u64| Loss {
        number,
        times: 1,
        expected: None,
        at: Moment(second * 1_000_000_000),
        until: Some(Moment((second + 2) * 1_000_000_000)),
        down: Downtime { least: Duration::from_millis(1_500), most: Duration::from_secs(4) },
        flaps: number,
    };
    watch.link().losses = Some([loss(1, 4), loss(2, 9)].into());
    let began = Moment(30_000_000_000);
    let snapshot = watch.snapshot();
    (snapshot.began, snapshot.ended) = (began, began);
    let told = watch.story.follow(&watch.seen, SystemTime::UNIX_EPOCH + Duration::from_secs(30));
    let times =
        told.iter().map(|it| it.at.duration_since(SystemTime::UNIX_EPOCH).unwrap().as_secs());
    assert_eq!(times.collect::<Vec<_>>(), [4, 9]);
    assert_eq!(
        told[1].detail,
        json!({
            "losses": 1, "in_all": 2, "up_again": "1970-01-01T00:00:11.000Z",
            "down_seconds": 1.5, "down_max_seconds": 4.0,
        })
    );
}

#[test]
fn a_verdict_is_news_if_somebody_has_to_know() {
    let mut watch = Watch::new();
    watch.link().verdict = Verdict::Ok;
    assert_eq!(watch.sweep(), NONE, "nobody asked");
    watch.link().reasons.add(Reason::Marked, Verdict::Bad);
    watch.link().reasons.add(Reason::Victim, Verdict::Ok);
    watch.link().verdict = Verdict::Bad;
    let told = watch.sweep();
    assert!(told[0].starts_with("verdict: ok -> bad; marked: "), "{told:?}");
    assert!(!told[0].contains("victim") && told.len() == 1, "{told:?}");
    watch.link().verdict = Verdict::Ok;
    watch.link().reasons = Reasons::default();
    assert_eq!(watch.sweep(), ["verdict: bad -> ok"]);
}

#[test]
fn another_width_is_told_although_the_link_was_down_in_between() {
    use ib_fabric::snapshot::PortRead;
    let mut watch = Watch::new();
    let ends = watch.link().link;
    let was = *watch.snapshot().status(ends.0).unwrap();
    let set = |watch: &mut Watch, fresh: PortRead| {
        for port in [ends.0, ends.1] {
            watch.snapshot().statuses[port.0 as usize] = fresh;
        }
    };
    set(&mut watch, PortRead::Unknown);
    assert_eq!(watch.sweep(), NONE);
    let narrow = ib_mad::port_state::PortStatus { width: Some(Width::X1), ..was };
    set(&mut watch, PortRead::Ok(narrow));
    assert_eq!(watch.sweep(), ["rate: 4x EDR -> 1x EDR"]);
    assert_eq!(watch.sweep(), NONE);
}

#[test]
fn who_cannot_ask_knows_of_nobody_that_they_are_gone() {
    let mut watch = Watch::new();
    watch.answer(false);
    watch.snapshot().silent.fill(true);
    watch.link().up = Some(false);
    assert_eq!(
        watch.sweep(),
        ["sweep_failed: nobody can be asked any more: what happens is not seen"]
    );
    assert_eq!(watch.sweep(), NONE);
    watch.answer(true);
    watch.snapshot().silent.fill(false);
    watch.link().up = Some(true);
    assert_eq!(watch.sweep(), ["sweep_back: the fabric can be asked again"]);
    watch.snapshot().silent[2] = true;
    assert_eq!(watch.sweep(), ["node_gone: it does not answer"]);
    watch.snapshot().silent[2] = false;
    assert_eq!(watch.sweep(), ["node_back: it answers again"]);
}

#[test]
fn counters_that_fall_together_are_one_event() {
    let mut watch = Watch::new();
    // The switch has its ports in the first places.
    for place in 0..3 {
        watch.seen.findings.ports[place].counting.resets += 1;
    }
    assert_eq!(watch.sweep(), ["counter_reset: counters of 3 ports fell"]);
    watch.seen.findings.ports[1].counting.resets += 1;
    assert_eq!(watch.sweep(), ["counter_reset: counters fell"]);
    assert_eq!(watch.sweep(), NONE);
}

#[test]
fn a_congestion_that_pauses_is_the_same_one() {
    let mut watch = Watch::new();
    let root = PortIndex(1);
    let (ports, roots, share, level) = (3, 1, 0.3, Level::High);
    let region = Region { root, ports, roots, share, level, since: Moment(0) };
    let began = "congestion_began: ports that wait: 3, up to 30 % of the time (high)";
    watch.seen.findings.regions = vec![region.clone()];
    assert_eq!(watch.sweep(), [began]);
    for pause in [1, 10, 20] {
        watch.seen.findings.regions.clear();
        for _ in 0..pause {
            assert_eq!(watch.sweep(), NONE);
        }
        watch.seen.findings.regions = vec![region.clone()];
        assert_eq!(watch.sweep(), NONE, "after {pause} sweeps without");
    }
    watch.seen.findings.regions.clear();
    let told: Vec<String> = (0..30).flat_map(|_| watch.sweep()).collect();
    assert_eq!(told, ["congestion_ended: no ports wait for it any more"]);
    watch.seen.findings.regions = vec![region];
    assert_eq!(watch.sweep(), [began]);
}

#[test]
fn a_congestion_ends_although_the_clock_was_set_back() {
    let mut watch = Watch::new();
    let (ports, roots, share, level) = (3, 1, 0.3, Level::High);
    let region = Region { root: PortIndex(1), ports, roots, share, level, since: Moment(0) };
    watch.seen.findings.regions = vec![region];
    assert_eq!(watch.sweep().len(), 1);
    watch.seen.findings.regions.clear();
    watch.snapshot().anchor.wall -= Duration::from_secs(24 * 3600);
    let told: Vec<String> = (0..30).flat_map(|_| watch.sweep()).collect();
    assert_eq!(told, ["congestion_ended: no ports wait for it any more"]);
}
