//! What a Prometheus has stored tells what the file tells, as far as series can.

use std::collections::{BTreeMap, BTreeSet};
use std::time::{Duration, SystemTime};

use fabric_history::clock::Clock;
use fabric_history::diff::{LinkDiff, between};
use fabric_history::model::{Cable, Moved, Port, Told, Window};
use fabric_history::report::{Report, Shape, markdown};
use fabric_history::source::{Detail, Wanted};
use fabric_history::{Kind, Source};
use ib_mad::Counter;

use crate::taped::{SWEEP, Taped};

const fn minutes(minutes: u64) -> Duration {
    Duration::from_secs(60 * minutes)
}

const STORY: &str = "timeline:\n\
    - unplug: {at: 4m, link: \"leaf-0-0[9]\", for: 3m}\n\
    - reboot: {at: 9m, node: host-13, down: 90s}\n\
    - degrade: {at: 14m, link: \"leaf-0-0[10]\", width: 1x}\n\
    - bad-cable: {at: 16m, into: \"leaf-0-1[9]\", ratio: 1e-9}\n\
    - move-cable: {at: 22m, from: \"leaf-0-1[2]\", to: \"leaf-0-1[5]\"}\n\
    - clear: {at: 25m, node: spine-1}\n";

/// Nobody scrapes for a while in which nothing happens.
const AWAY: std::ops::Range<Duration> = minutes(31)..minutes(33);

/// What series cannot tell is not compared: that the exporter ended, and what is told of scrapes.
const OWN: [&str; 4] = ["exporter_start", "exporter_stop", "sweep_failed", "sweep_back"];

/// What an event is about, with its kind.
type What = (String, Option<String>, Option<u8>, Option<String>, String);

fn what(event: &Told) -> What {
    // Verdicts differ in their sentences: evidence is in no series.
    let more = match &*event.kind {
        "verdict" => {
            let reasons = event.detail["reasons"].as_array().unwrap().iter();
            let reasons: Vec<_> = reasons.map(|it| (&it["reason"], &it["verdict"])).collect();
            format!(
                "{} {} {reasons:?} {}",
                event.detail["from"], event.detail["to"], event.detail["repair"]
            )
        }
        "node_gone" => String::new(),
        _ => event.text.clone(),
    };
    let (node, link) = (event.node.map(|it| it.to_string()), event.link.map(|it| it.to_string()));
    (event.kind.clone(), node, event.port, link, more)
}

fn listed(events: &[Told], began: SystemTime) -> String {
    let line = |it: &Told| {
        let at = it.at.duration_since(began).unwrap_or_default();
        format!("{at:?} {} {} {}\n", it.kind, it.place, it.text)
    };
    events.iter().map(line).collect()
}

fn sums(moved: &[Moved]) -> BTreeMap<(String, u8, Counter), u64> {
    let of = |it: &Moved| {
        let (guid, port) = (it.port.guid.to_string(), it.port.port);
        it.sums
            .iter()
            .map(move |sum| ((guid.clone(), port, sum.counter), sum.by))
            .collect::<Vec<_>>()
    };
    moved.iter().flat_map(of).collect()
}

#[test]
fn a_prometheus_tells_what_the_file_tells() {
    let looks = [minutes(5), minutes(20), minutes(30)];
    let taped = Taped::new(STORY, minutes(35), |at| AWAY.contains(&at), &looks);
    let (reader, prometheus) = (&taped.reader, &taped.prometheus);
    let window = Window { from: taped.began - minutes(1), to: taped.ended + minutes(9999) };
    let kinds = events_are_the_same(&taped, window);
    for kind in [
        "link_down",
        "link_up",
        "flap",
        "expected_loss",
        "port_moved",
        "verdict",
        "rate",
        "node_gone",
        "node_back",
        "counter_reset",
        "saturation",
    ] {
        assert!(kinds.contains(kind), "{kind}: {kinds:?}");
    }
    what_scrapes_tell(&taped, window);
    sums_are_the_same(&taped, window);
    // Ends lie where neither a sweep nor a scrape is in between.
    let after = Duration::from_secs(12);
    let middle =
        Window { from: taped.began + minutes(17) + after, to: taped.began + minutes(21) + after };
    sums_are_the_same(&taped, middle);
    // A long one is looked at by quarters first.
    sums_are_the_same(&taped, Window { from: taped.began - minutes(300), ..window });
    fabrics_were_as_they_were(&taped, &looks);
    reports_suspect_the_same(&taped);
    what_moved_is_the_same(&taped);

    // Names mean the same.
    for called in ["leaf-0-1", "leaf-0-1[9]", "host-13", "nobody", "nobody[1]"] {
        let (ours, theirs) = (prometheus.ports(called).unwrap(), reader.ports(called).unwrap());
        let ends = |ports: &[Port]| {
            ports.iter().map(|port| (port.end(), port.label())).collect::<BTreeSet<_>>()
        };
        assert!(ends(&ours).is_subset(&ends(&theirs)), "{called}: {ours:?} {theirs:?}");
        assert_eq!(ours.is_empty(), theirs.is_empty(), "{called}");
    }
    let port = prometheus.ports("leaf-0-1[9]").unwrap().remove(0);
    let by_link = |it: &Cable| it.link();
    let ours = prometheus.cables(&[port.end()], window).unwrap();
    let theirs = reader.cables(&[port.end()], window).unwrap();
    assert_eq!(
        ours.iter().map(by_link).collect::<Vec<_>>(),
        theirs.iter().map(by_link).collect::<Vec<_>>()
    );
    assert_eq!((ours[0].up, ours[0].verdict.label()), (Some(true), "bad"));
    assert!(prometheus.ports(&ours[0].link().to_string()).unwrap().len() == 2);

    // A course has the same steps, scrape by scrape.
    for detail in [Detail::Errors, Detail::All] {
        let course = |source: &dyn Source| {
            let series = source.series(&[port.end()], detail, window).unwrap();
            let steps = series.iter().map(|it| {
                let steps: Vec<u64> = it.steps.iter().map(|step| step.by).collect();
                (it.counter, steps)
            });
            // What was counted while nobody scraped is in one step.
            steps
                .map(|(counter, steps)| (counter, steps.iter().sum::<u64>()))
                .collect::<BTreeMap<_, _>>()
        };
        let (mut ours, mut theirs) = (course(prometheus), course(reader));
        for both in [&mut ours, &mut theirs] {
            both.retain(|counter, _| !counter.row().metric.starts_with("unicast"));
        }
        assert_eq!(ours, theirs, "{detail:?}");
        assert!(ours.values().any(|sum| *sum > 0));
    }

    let cover = prometheus.cover(Window { to: taped.ended, ..window }).unwrap();
    let known = &cover.fabrics["default"];
    assert!((known.interval - SWEEP.as_secs_f64()).abs() < 1e-6);
    assert_eq!((known.sweeps, known.gaps.len()), (35 * 4 - 8, 2), "{known:?}");
    let empty =
        Window { from: SystemTime::now() + minutes(60), to: SystemTime::now() + minutes(70) };
    assert!(prometheus.events(&Wanted::all(empty)).unwrap().is_empty());
    assert!(prometheus.moved(empty).unwrap().is_empty());
}

fn events_are_the_same(taped: &Taped, window: Window) -> BTreeSet<String> {
    let all = Wanted::all(window);
    let ours = taped.prometheus.events(&all).unwrap();
    let theirs = taped.reader.events(&all).unwrap();
    let told = || {
        format!(
            "Prometheus:\n{}\nfile:\n{}",
            listed(&ours, taped.began),
            listed(&theirs, taped.began)
        )
    };
    let is_compared = |event: &&Told| !OWN.contains(&&*event.kind);
    let mut kinds = BTreeSet::new();
    for (some, others) in [(&ours, &theirs), (&theirs, &ours)] {
        for event in some.iter().filter(is_compared) {
            let late = |other: &Told| {
                other.at.max(event.at).duration_since(other.at.min(event.at)).unwrap()
            };
            let is_same = |other: &&Told| what(other) == what(event) && late(other) <= SWEEP;
            assert_eq!(others.iter().filter(is_same).count(), 1, "{:?}\n{}", what(event), told());
            kinds.insert(event.kind.clone());
        }
    }
    kinds
}

/// What the file cannot know, and what is asked of few.
fn what_scrapes_tell(taped: &Taped, window: Window) {
    let all = Wanted::all(window);
    let ours = taped.prometheus.events(&all).unwrap();
    let told = || listed(&ours, taped.began);
    let is_compared = |event: &&Told| !OWN.contains(&&*event.kind);
    let of = |kind: &str| ours.iter().filter(|it| it.kind == kind).collect::<Vec<_>>();
    assert_eq!(of("exporter_start").len(), 1, "{}", told());
    let start = of("exporter_start")[0];
    let version = format!("fabric-exporter {}", env!("CARGO_PKG_VERSION"));
    assert_eq!((start.at, &start.text), (taped.began, &version));
    let away: Vec<_> = [of("sweep_failed")[0], of("sweep_back")[0]]
        .map(|it| it.at.duration_since(taped.began).unwrap())
        .into();
    assert!(away[0] < AWAY.start && away[1] >= AWAY.end, "{away:?}");
    // One is asked of a node, of a port, of a kind alike.
    let host = taped.prometheus.ports("host-13").unwrap();
    let ends = host.iter().map(Port::end).collect();
    let port = Wanted { ports: ends, ..all.clone() };
    let node = Wanted { nodes: vec![host[0].guid], ..all.clone() };
    let kind = Wanted { kinds: vec![Kind::Flap], ..all };
    for wanted in [port, node, kind] {
        let only = |source: &dyn Source| {
            let events = source.events(&wanted).unwrap();
            events.iter().filter(is_compared).map(what).collect::<BTreeSet<_>>()
        };
        assert_eq!(only(&taped.prometheus), only(&taped.reader), "{wanted:?}");
        assert!(!only(&taped.prometheus).is_empty());
    }
}

fn sums_are_the_same(taped: &Taped, window: Window) {
    let (ours, theirs) =
        (taped.prometheus.moved(window).unwrap(), taped.reader.moved(window).unwrap());
    assert_eq!(sums(&ours), sums(&theirs));
    assert!(!ours.is_empty());
    for of in &ours {
        let same = theirs.iter().find(|it| it.port.end() == of.port.end()).unwrap();
        assert_eq!(of.port.label(), same.port.label());
        assert!(of.peer.is_some());
        for (sum, same) in of.sums.iter().zip(&same.sums) {
            for (ours, theirs) in [(sum.first, same.first), (sum.last, same.last)] {
                assert!(ours >= theirs && ours <= theirs + SWEEP, "{of:?} {same:?}");
            }
        }
    }
}

/// A report is the same, whoever it is told by: its suspects in their order, what they come to, and what
/// the fabric was like.
fn reports_suspect_the_same(taped: &Taped) {
    let window = Window { from: taped.began + minutes(2), to: taped.began + minutes(30) };
    let report = |source: &dyn Source| {
        let tell = |at: SystemTime| humantime::format_rfc3339_seconds(at).to_string();
        Report::of(source, window, taped.ended, &tell).unwrap()
    };
    let (ours, theirs) = (report(&taped.prometheus), report(&taped.reader));
    let suspects = |report: &Report| {
        let of = report.suspects.iter();
        of.map(|it| (it.link, it.place.clone(), it.worst, it.last, it.repair)).collect::<Vec<_>>()
    };
    assert_eq!(suspects(&ours), suspects(&theirs));
    // Cables that somebody plugged elsewhere are none.
    assert_eq!(ours.suspects.len(), 3, "{:?}", suspects(&ours));
    let shapes = |report: &Report| {
        let both = report.shapes["default"].each_ref().map(|shape| shape.as_ref().unwrap());
        both.map(Shape::rows)
    };
    assert_eq!(shapes(&ours), shapes(&theirs));
    for of in [&ours, &theirs] {
        let page = markdown::write(of, &Clock::now());
        for suspect in &of.suspects {
            assert!(page.contains(&format!("### {}: {}", suspect.place, suspect.worst)), "{page}");
        }
    }
}

/// What moved on each cable between two moments: in the same order, with the same sums.
fn what_moved_is_the_same(taped: &Taped) {
    let after = Duration::from_secs(12);
    let window =
        Window { from: taped.began + minutes(2) + after, to: taped.began + minutes(30) + after };
    let told = |source: &dyn Source| {
        let moved = between(source, window).unwrap().into_iter();
        let sums = |diff: &LinkDiff| {
            diff.errors.iter().flatten().map(|sum| (sum.counter, sum.by)).collect::<Vec<_>>()
        };
        moved.map(|diff| (diff.label(), diff.changes(), sums(&diff))).collect::<Vec<_>>()
    };
    assert_eq!(told(&taped.prometheus), told(&taped.reader));
    let worst = &told(&taped.reader)[0];
    assert!(worst.1[0].ends_with("-> bad"), "the worst come first: {worst:?}");
}

fn fabrics_were_as_they_were(taped: &Taped, looks: &[Duration]) {
    for look in looks {
        let told = taped.prometheus.fabrics(taped.began + *look).unwrap();
        let seen = &taped.then[look];
        let (snapshot, fabric) =
            (seen.snapshot.as_ref().unwrap(), &seen.snapshot.as_ref().unwrap().fabric);
        assert_eq!((told.len(), &*told[0].fabric), (1, "default"));
        assert!(told[0].at <= taped.began + *look && told[0].at + SWEEP >= taped.began + *look);
        let nodes: BTreeSet<_> = fabric
            .node_indexes()
            .map(|index| {
                let node = fabric.node(index);
                let kind = node.identity.kind.label().to_owned();
                (node.identity.guid, node.name.clone(), kind, snapshot.is_up(index))
            })
            .collect();
        let ours =
            told[0].nodes.iter().map(|it| (it.guid, it.name.clone(), it.kind.clone(), it.up));
        assert_eq!(ours.collect::<BTreeSet<_>>(), nodes);
        let cables: BTreeMap<_, _> = (seen.assessment.links.iter())
            .map(|it| (fabric.link_id(it.link.0).unwrap(), (it.up, it.verdict.label())))
            .collect();
        let ours = told[0].cables.iter().map(|it| (it.link(), (it.up, it.verdict.label())));
        assert_eq!(ours.collect::<BTreeMap<_, _>>(), cables);
        assert!(told[0].cables.iter().all(|it| it.rate.is_some() == (it.up == Some(true))));
    }
}

#[test]
fn what_is_new_and_what_waits_is_told() {
    let story = "traffic: {load: 60%}\ntimeline:\n\
        - unplug: {at: 0s, link: \"leaf-0-1[6]\", for: 4m}\n\
        - slow-receiver: {at: 6m, host: host-6, takes: 2%, for: 5m}\n";
    let taped = Taped::new(story, minutes(20), |_| false, &[]);
    let window = Window { from: taped.began - minutes(1), to: taped.ended };
    let kinds = events_are_the_same(&taped, window);
    for kind in ["node_new", "link_new", "congestion_began", "congestion_ended"] {
        assert!(kinds.contains(kind), "{kind}: {kinds:?}");
    }
}
