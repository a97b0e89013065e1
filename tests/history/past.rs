//! What pages, API and commands show of a moment is what was published then: 200 random moments of a simulated day.

use std::collections::BTreeMap;
use std::path::Path;
use std::process::Command;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use exporter_web::Limits;
use fabric_api::links::links;
use fabric_api::model::{Link, Links, Node, Nodes};
use fabric_api::nodes::nodes;
use fabric_api::{Filter, condition};
use fabric_exporter::config::options::{FabricOptions, Options};
use fabric_history::file::record_kind::RecordKind;
use fabric_history::past::TrafficDetail;
use fabric_history::settings::HistorySettings;
use fabric_history::{Reader, Recorder};
use fabric_observation::Observation;
use ib_health::assessment::Flow;
use ib_sim::scenario::{Overrides, Scenario};
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use crate::served::Served;
use test_rig::{Simulated, program};

const DAY: Duration = Duration::from_secs(24 * 3600);
const INTERVAL: Duration = Duration::from_secs(60);
const MOMENTS: usize = 200;
/// As many of them are asked for by starting the program.
const COMMANDS: usize = 20;

/// A moment, and what was published last until then.
struct Published {
    at: SystemTime,
    observation: Arc<Observation>,
}

/// Numbers that look random, and are the same in each run.
struct Random(u64);

impl Random {
    fn below(&mut self, limit: u64) -> u64 {
        self.0 =
            self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 20) % limit
    }
}

fn ended(observation: &Observation) -> Option<SystemTime> {
    let snapshot = observation.snapshot.as_ref()?;
    Some(snapshot.anchor.wall_of(snapshot.ended))
}

/// Records a day; returns what was published at random moments of it, and at its end.
fn record(file: &Path) -> (Vec<Published>, Arc<Observation>) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/history/scenarios/one-day.yml");
    let story = Scenario::read(&path).unwrap().resolve(&Overrides::default()).unwrap();
    // It ended a while ago.
    let began = SystemTime::now() - DAY - Duration::from_secs(1800);
    let fabric = FabricOptions {
        details: Some(true),
        interval: Some("60s".parse().unwrap()),
        ..FabricOptions::default()
    };
    let simulated = Simulated::begun(story, Options { fabric, ..Options::default() }, began);
    let settings = HistorySettings {
        least_free: 0,
        traffic_retention: Duration::from_secs(20 * 3600),
        ..HistorySettings::new(file.into())
    };
    let mut recorder = Recorder::new(settings, Arc::default());
    let mut random = Random(48);
    let seconds = DAY.as_secs() - 600;
    let mut moments: Vec<Duration> = (0..MOMENTS)
        .map(|_| Duration::from_secs(300) + Duration::from_millis(random.below(seconds * 1000)))
        .collect();
    moments.sort();
    let mut moments = moments.into_iter().map(|at| began + at).peekable();
    let mut published: Vec<Published> = Vec::new();
    let mut at = Duration::from_secs(10);
    let mut last: Option<Arc<Observation>> = None;
    while at <= DAY {
        simulated.run_to(at);
        let observation = simulated.observation();
        recorder.record(&observation, began + at);
        if let (Some(next), Some(before)) = (ended(&observation), &last) {
            while let Some(at) = moments.next_if(|at| *at < next) {
                published.push(Published { at, observation: Arc::clone(before) });
            }
        }
        last = Some(observation);
        at += INTERVAL;
    }
    assert_eq!(published.len(), MOMENTS);
    (published, last.unwrap())
}

/// What of a link a history gives back.
fn of_link(link: &Link) -> Value {
    let is_suspect = ["watch", "bad"].contains(&&*link.verdict);
    let reasons: Vec<_> =
        link.reasons.iter().filter(|it| ["watch", "bad"].contains(&&*it.verdict)).collect();
    json!({
        "link": link.link, "verdict": link.verdict, "up": link.up, "rate": link.rate, "speed": link.speed,
        "width": link.width, "flaps": link.flaps,
        "main": reasons.first().map(|it| &it.reason).filter(|_| is_suspect),
        "since": link.since.as_ref().filter(|_| is_suspect),
        "repair": link.repair.as_ref().filter(|_| is_suspect),
        "ends": link.ends.each_ref().map(|end| json!({
            "guid": end.guid, "node": end.node, "host": end.host, "port": end.port, "type": end.node_type,
            "panel": end.front_panel,
            // What grows all the time is recorded by what it grows by: the pages show no totals of it.
            "counters": end.counters.iter().filter(|(name, _)| !name.starts_with("fec_corrected"))
                .collect::<BTreeMap<_, _>>(),
        })),
    })
}

fn of_node(node: &Node) -> Value {
    json!({
        "guid": node.guid, "node": node.node, "host": node.host, "type": node.node_type, "up": node.up,
        "down_since": node.down_since,
    })
}

/// The first difference of two lists, for a message.
fn assert_same(what: &str, at: SystemTime, then: &[Value], now: &[Value]) {
    let at = humantime::format_rfc3339_millis(at);
    assert_eq!(then.len(), now.len(), "{what} at {at}");
    // Commands list the worst first.
    let sorted = |values: &[Value]| {
        let mut sorted = values.to_vec();
        sorted.sort_by_key(|it| format!("{}{}", it["link"], it["guid"]));
        sorted
    };
    for (then, now) in sorted(then).iter().zip(&sorted(now)) {
        assert_eq!(then, now, "{what} at {at}: published (left), and shown of the past (right)");
    }
}

fn same_links(at: SystemTime, published: &Observation, shown: &Links) {
    let published = links(&[Arc::new(published.clone())], &Filter::default());
    let list = |links: &Links| links.fabrics[0].links.iter().map(of_link).collect::<Vec<_>>();
    assert_same("links", at, &list(&published), &list(shown));
}

fn same_nodes(at: SystemTime, published: &Observation, shown: &Nodes) {
    let published = nodes(&[Arc::new(published.clone())], &Filter::default());
    let list = |nodes: &Nodes| nodes.fabrics[0].nodes.iter().map(of_node).collect::<Vec<_>>();
    assert_same("nodes", at, &list(&published), &list(shown));
}

/// Rates are those of the time between two sweeps, which differs by milliseconds from that between two readings.
fn same_traffic(at: SystemTime, published: &Observation, shown: &Observation) {
    let at = humantime::format_rfc3339_millis(at);
    let flows = |observation: &Observation| {
        let fabric = &observation.snapshot.as_ref().unwrap().fabric;
        let ports = fabric.port_indexes().zip(&observation.assessment.ports);
        let flows = ports.map(|(port, it)| {
            let rate = |flow: Option<Flow>| flow.map(|flow| flow.rate);
            (fabric.port_label(port), [rate(it.tx), rate(it.rx), it.wait.map(|it| it.share)])
        });
        flows.collect::<BTreeMap<_, _>>()
    };
    let (then, now) = (flows(published), flows(shown));
    // In the first sweeps after a port has come up, no traffic is either 0 or not known.
    let is_near = |(a, b): (&Option<f32>, &Option<f32>)| {
        let [a, b] = [a, b].map(|it| it.unwrap_or(0.0));
        (a - b).abs() <= 0.01 * a.max(b) + 0.01
    };
    let differs = |(port, then): &(&String, &[Option<f32>; 3])| {
        let Some(now) = now.get(*port) else { return true };
        // After an absence the wait is left unknown: the counter may have been reset.
        let compared = if now[2].is_none() { 2 } else { 3 };
        !then.iter().zip(now).take(compared).all(is_near)
    };
    let others = then.iter().filter(differs);
    let others: Vec<_> = others.map(|(port, then)| (port, then, now.get(port))).collect();
    assert!(others.is_empty(), "{at}: published, and shown of the past: {others:?}");
}

/// The headline; while links are learning, one of the past calls them unknown.
fn same_condition(at: SystemTime, published: &Observation, shown: &Observation) {
    let [then, now] = [published, shown].map(condition::latest);
    let worst = |it: &fabric_api::model::Condition| {
        let findings = it.findings.iter().filter(|it| it.verdict != "unknown");
        findings.map(|it| (it.kind.clone(), it.verdict.clone(), it.count)).collect::<Vec<_>>()
    };
    let at = humantime::format_rfc3339_millis(at);
    assert_eq!(worst(&then), worst(&now), "{at}: {} / {}", then.headline, now.headline);
}

/// The totals of errors that are written twice a day only save time: without them the latest ones are used.
fn errors_are_the_same_without_their_totals(
    file: &Path,
    published: &[Published],
    last: &Arc<Observation>,
) {
    let db = rusqlite::Connection::open(file).unwrap();
    let kind = RecordKind::ErrorTotals;
    let count = "SELECT count(DISTINCT began) FROM frames WHERE tier = ?1";
    let times: u32 = db.query_row(count, [kind], |row| row.get(0)).unwrap();
    assert_eq!(times, 2, "in {DAY:?}");
    db.execute("UPDATE frames SET data = x'07' WHERE tier = ?1", [kind]).unwrap();
    let reader = Reader::open(file).unwrap();
    for Published { at, observation } in published.iter().step_by(20) {
        let past = reader.past(*at, &[Arc::clone(last)]).unwrap();
        same_links(*at, observation, &links(&past.observations(), &Filter::default()));
    }
}

fn told<T: DeserializeOwned>(args: &[&str]) -> T {
    let output = Command::new(program()).args(args).env("TZ", "UTC").output().unwrap();
    assert!(output.status.success(), "{args:?}: {}", String::from_utf8_lossy(&output.stderr));
    serde_json::from_slice(&output.stdout).unwrap()
}

#[test]
fn what_is_shown_of_the_past_is_what_was_published_then() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("history.db");
    let (published, last) = record(&file);
    let reader = Reader::open(&file).unwrap();
    let served = Served::of(vec![Arc::clone(&last)].into(), &file, Limits::default());
    let url = format!("http://{}", served.address);
    let all = Filter::default();
    let mut means = 0;
    let mut seen = std::collections::BTreeSet::new();
    for (nth, Published { at, observation }) in published.iter().enumerate() {
        let at = *at;
        let past = reader.past(at, &[Arc::clone(&last)]).unwrap();
        let [fabric] = &past.fabrics[..] else { panic!("one fabric at {at:?}") };
        assert!(!fabric.is_gap);
        let shown = [Arc::clone(&fabric.observation)];
        same_links(at, observation, &links(&shown, &all));
        same_nodes(at, observation, &nodes(&shown, &all));
        same_condition(at, observation, &fabric.observation);
        match fabric.traffic {
            TrafficDetail::Sweep => same_traffic(at, observation, &fabric.observation),
            // The first four hours are kept by the hour only.
            TrafficDetail::Mean(window) => {
                means += 1;
                assert!(window.length() <= Duration::from_secs(3700), "{window:?}");
            }
            TrafficDetail::Unknown => panic!("no traffic at {at:?}"),
        }
        // The API and the pages have the same.
        let text = humantime::format_rfc3339_millis(at).to_string();
        let api: Links = served_json(&served, &format!("/api/v1/links?at={text}"));
        same_links(at, observation, &api);
        let page = served.get(&format!("/?at={text}"));
        let headline = condition::latest(&fabric.observation).headline;
        let says = page.text().to_lowercase().contains(&headline.to_lowercase());
        assert!(says, "{text}: {headline}: {}", page.text());
        seen.insert(headline);
        if nth % (MOMENTS / COMMANDS) == 0 {
            let file = file.to_str().unwrap();
            for source in [["--file", file], ["--url", &url]] {
                let args = |verb| [&[verb, "--json", "--at", &text][..], &source].concat();
                same_links(at, observation, &told(&args("links")));
                same_nodes(at, observation, &told(&args("nodes")));
            }
        }
    }
    errors_are_the_same_without_their_totals(&file, &published, &last);
    assert!(means > 5, "{means}");
    assert!(seen.len() >= 5, "the day has too few different states: {seen:#?}");
}

fn served_json<T: DeserializeOwned>(served: &Served, path: &str) -> T {
    serde_json::from_str(served.get(path).text()).unwrap()
}
