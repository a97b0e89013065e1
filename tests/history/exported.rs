//! Exports: OpenMetrics equals what a scrape would have returned, and rows add up to totals.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::path::Path;
use std::time::{Duration, SystemTime};

use fabric_history::export;
use fabric_history::export::{ExportFilter, TableFormat};
use fabric_history::model::{Event, Window};
use fabric_history::source::{EventFilter, SeriesDetail};
use fabric_history::{Reader, Source};
use ib_mad::Counter;
use serde_json::Value;

use crate::{RecordedSimulation, always, minutes, wall};
use test_rig::Simulated;
use test_rig::prometheus::Prometheus as Server;
use test_rig::promtool::complaints;

const STORY: &str = "timeline:\n\
    - unplug: {at: 4m, link: \"leaf-0-0[9]\", for: 3m}\n\
    - reboot: {at: 9m, node: host-13, down: 90s}\n\
    - degrade: {at: 14m, link: \"leaf-0-0[10]\", width: 1x}\n\
    - bad-cable: {at: 16m, into: \"leaf-0-1[9]\", ratio: 1e-9}\n\
    - move-cable: {at: 22m, from: \"leaf-0-1[2]\", to: \"leaf-0-1[5]\"}\n\
    - clear: {at: 25m, node: spine-1}\n";

/// The families that both have.
fn is_exported(name: &str) -> bool {
    let is_counter = name.starts_with("infiniband_port_") && name.ends_with("_total");
    let others = ["node_up", "port_info", "link_info", "link_up"];
    is_counter && !name.contains("counters_reset")
        || others.iter().any(|it| name == format!("infiniband_{it}"))
}

/// What a scrape just after the latest sweep returns, with that sweep's time.
fn scrape(simulated: &Simulated, out: &mut String) {
    let seen = simulated.observation();
    let snapshot = seen.snapshot.as_ref().unwrap();
    let at = seconds(snapshot.anchor.wall_of(snapshot.ended));
    for sample in simulated.metrics().samples.iter().filter(|it| is_exported(&it.name)) {
        let escaped = |it: &str| it.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n");
        let labels: Vec<String> =
            sample.labels.iter().map(|(key, it)| format!("{key}=\"{}\"", escaped(it))).collect();
        writeln!(out, "{}{{{}}} {} {at:.3}", sample.name, labels.join(","), sample.raw).unwrap();
    }
}

fn seconds(at: SystemTime) -> f64 {
    let micros = at.duration_since(SystemTime::UNIX_EPOCH).unwrap().as_micros();
    (micros / 1_000) as f64 / 1e3
}

pub fn openmetrics(file: &Path, asked: &ExportFilter) -> String {
    let mut text = Vec::new();
    export::openmetrics(&Reader::open(file).unwrap(), asked, &mut text).unwrap();
    String::from_utf8(text).unwrap()
}

/// A vector by its labels.
fn vector(server: &Server, query: &str, at: f64) -> BTreeMap<String, String> {
    let told = server.query_at(query, at).unwrap_or_else(|error| panic!("{query}: {error}"));
    let value = |it: &Value| (it["metric"].to_string(), it["value"][1].as_str().unwrap().into());
    told.iter().map(value).collect()
}

const QUERIES: [&str; 6] = [
    "{__name__=~\"infiniband_port_.*_total\"}",
    "max by (fabric, guid) (infiniband_port_symbol_errors_total)",
    "infiniband_node_up",
    "infiniband_link_up",
    "infiniband_link_info",
    "sum by (fabric) (rate(infiniband_port_transmit_data_bytes_total[5m]))",
];

#[test]
fn import_equals_a_scrape() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("history.db");
    let mut simulation = RecordedSimulation::new(STORY, &file);
    let mut scraped = String::new();
    let length = minutes(32);
    while simulation.at <= length {
        simulation.run_to(simulation.at);
        scrape(&simulation.simulated, &mut scraped);
    }
    let text = openmetrics(&file, &ExportFilter::all(always()));
    assert_families_stand_together(&text);
    // The linter knows 0.0.4 alone, which has times in milliseconds.
    assert_eq!(complaints(&linted(&text)), (Some(0), String::new()));
    let exported = Server::stored(|to| std::fs::write(to, &text).unwrap());
    let live = Server::stored(|to| std::fs::write(to, format!("{scraped}# EOF\n")).unwrap());
    let (mut compared, mut silent, mut others) = (0, 0, Vec::new());
    for minute in 1..=32 {
        let at = seconds(wall(minutes(minute)));
        let grown = Counter::all().filter(|_| minute % 8 == 0);
        let grown =
            grown.map(|it| format!("increase(infiniband_port_{}_total[10m])", it.row().metric));
        for query in QUERIES.into_iter().map(str::to_owned).chain(grown) {
            let query = &*query;
            let (ours, theirs) = (vector(&exported, query, at), vector(&live, query, at));
            let keys: BTreeSet<_> = ours.keys().chain(theirs.keys()).collect();
            for key in keys {
                let (ours, theirs) = (ours.get(key), theirs.get(key));
                // A scrape leaves some counters out while they are 0, and so misses the first increase of causes.
                let number = |it: Option<&String>| it.map_or(0.0, |it| it.parse::<f64>().unwrap());
                let is_left_out = theirs.is_none() && number(ours) == 0.0
                    || is_cause(query) && number(theirs) <= number(ours);
                if ours != theirs && !is_left_out {
                    others.push(format!("{query} at {minute} min: {key}: {ours:?} {theirs:?}"));
                }
                compared += 1;
            }
        }
        // A scrape still has the info of ports whose node does not respond and is not removed yet; it
        // is the latest sample for five minutes.
        let [ours, theirs] = [&exported, &live].map(|it| vector(it, "infiniband_port_info", at));
        assert!(ours.keys().all(|port| theirs.contains_key(port)), "{minute} min");
        for port in theirs.keys().filter(|port| !ours.contains_key(*port)) {
            assert!((9..17).contains(&minute) && port.contains("\"node\":\"host-13\""), "{port}");
            silent += 1;
        }
        let verdict = vector(&exported, "infiniband_link_verdict", at);
        assert!(verdict.is_empty(), "its reasons are not recorded sweep by sweep");
    }
    assert!(others.is_empty(), "{}:\n{}", others.len(), others.join("\n"));
    assert!(compared > 100_000 && silent > 0, "{compared} {silent}");
    // Names are joined to what moved.
    let joined = "increase(infiniband_port_symbol_errors_total[10m]) > 0 and on (fabric, guid, port) \
        infiniband_port_info{node=\"leaf-0-1\"}";
    let at = seconds(wall(minutes(20)));
    assert_eq!(vector(&exported, joined, at), vector(&live, joined, at));
    assert!(!vector(&exported, joined, at).is_empty());
}

/// Whether a query is the increase of a cause of errors or discards.
fn is_cause(query: &str) -> bool {
    let row = |counter: Counter| counter.row();
    Counter::all().map(row).any(|row| {
        query == format!("increase(infiniband_port_{}_total[10m])", row.metric)
            && row.fields.iter().all(|field| field.attribute.is_details())
    })
}

fn assert_families_stand_together(text: &str) {
    assert!(text.ends_with("# EOF\n"));
    let (mut families, mut last) = (BTreeSet::new(), BTreeMap::new());
    for line in text.lines() {
        if let Some(rest) = line.strip_prefix("# TYPE ") {
            assert!(families.insert(rest.to_owned()), "{rest} is there twice");
        } else if !line.starts_with('#') {
            let (series, rest) = line.rsplit_once("} ").unwrap();
            let at: f64 = rest.split_once(' ').unwrap().1.parse().unwrap();
            let before = last.insert(series.to_owned(), at);
            assert!(before.is_none_or(|before| before < at), "{line}");
        }
    }
    assert!(families.len() > 20, "{families:?}");
}

/// As the text format has it: a counter's family by the name of its samples, one time in milliseconds.
fn linted(text: &str) -> String {
    let counters: Vec<&str> = text
        .lines()
        .filter_map(|line| line.strip_prefix("# TYPE ")?.strip_suffix(" counter"))
        .collect();
    let mut seen = BTreeSet::new();
    let mut lines = String::new();
    for line in text.lines() {
        if line.starts_with('#') {
            let mut words: Vec<&str> = line.splitn(4, ' ').collect();
            let named =
                words.get(2).filter(|it| counters.contains(it)).map(|it| format!("{it}_total"));
            if let Some(name) = &named {
                words[2] = name;
            }
            lines += &(words.join(" ") + "\n");
        } else {
            let (sample, at) = line.rsplit_once(' ').unwrap();
            let (series, _) = sample.rsplit_once(' ').unwrap();
            if seen.insert(series) {
                writeln!(lines, "{sample} {}", at.replace('.', "")).unwrap();
            }
        }
    }
    lines
}

#[test]
fn step_leaves_one_sample_per_step() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("history.db");
    let mut simulation = RecordedSimulation::new(STORY, &file);
    simulation.run_to(minutes(12));
    let all = openmetrics(&file, &ExportFilter::all(always()));
    let asked = ExportFilter { step: Some(Duration::from_secs(60)), ..ExportFilter::all(always()) };
    let thinned = openmetrics(&file, &asked);
    let lines: BTreeSet<&str> = all.lines().collect();
    assert!(thinned.lines().all(|line| lines.contains(line)), "totals are the same");
    let of = |text: &str| text.lines().filter(|it| it.starts_with("infiniband_node_up")).count();
    assert!(of(&thinned) * 3 < of(&all) && of(&thinned) * 5 > of(&all));
}

/// A table's rows as JSON has them.
fn rows(reader: &Reader, form: TableFormat, is_events: bool) -> Vec<Value> {
    let (mut out, asked) = (Vec::new(), ExportFilter::all(always()));
    let written = if is_events {
        export::events(reader, &asked, form, &mut out).unwrap()
    } else {
        export::counters(reader, &asked, form, &mut out).unwrap()
    };
    let rows: Vec<Value> = match form {
        TableFormat::JsonLines => String::from_utf8(out)
            .unwrap()
            .lines()
            .map(|line| serde_json::from_str(line).unwrap())
            .collect(),
        TableFormat::Csv => {
            let mut table = csv::Reader::from_reader(&out[..]);
            let head = table.headers().unwrap().clone();
            let row = |row: csv::StringRecord| {
                let cell = |(name, it): (&str, &str)| {
                    let is_number = ["port", "increase"].contains(&name);
                    let value = match it {
                        "" => Value::Null,
                        it if is_number => Value::from(it.parse::<u64>().unwrap()),
                        it if name == "detail" => serde_json::from_str(it).unwrap(),
                        it => Value::from(it),
                    };
                    (name.to_owned(), value)
                };
                Value::Object(head.iter().zip(&row).map(cell).collect())
            };
            table.records().map(|it| row(it.unwrap())).collect()
        }
    };
    assert_eq!(rows.len() as u64, written);
    rows
}

#[test]
fn rows_are_equal_in_all_formats() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("history.db");
    let mut simulation = RecordedSimulation::new(STORY, &file);
    // Some of it is digested.
    simulation.run_to(minutes(75));
    let reader = Reader::open(&file).unwrap();
    let told = rows(&reader, TableFormat::JsonLines, false);
    let mut sums: BTreeMap<(String, u64, String), u64> = BTreeMap::new();
    for row in &told {
        let text = |name: &str| row[name].as_str().unwrap().to_owned();
        let key = (text("guid"), row["port"].as_u64().unwrap(), text("counter"));
        *sums.entry(key).or_default() += row["increase"].as_u64().unwrap();
        assert!(text("start") < text("end") && row["fabric"] == "default");
    }
    let port = reader.ports("leaf-0-1[9]").unwrap().remove(0);
    let series = reader.series(&[port.end()], SeriesDetail::All, always()).unwrap();
    let mut grown = 0;
    for of in series {
        let by: u64 = of.steps.iter().map(|step| step.by).sum();
        let key = (port.guid.to_string(), 9, of.counter.row().metric.to_owned());
        assert_eq!(sums[&key], by, "{key:?}");
        grown += 1;
    }
    assert!(grown > 4);
    sums_are_what_totals_grew_by(&file, &sums);
    assert!(rows(&reader, TableFormat::Csv, false) == told);
    let events = reader.events(&EventFilter::all(always())).unwrap();
    let events: Vec<Value> =
        events.iter().map(|it: &Event| serde_json::to_value(it).unwrap()).collect();
    for form in [TableFormat::JsonLines, TableFormat::Csv] {
        assert_eq!(rows(&reader, form, true), events, "{form:?}");
    }
}

/// The last total less the first, as OpenMetrics has them.
fn sums_are_what_totals_grew_by(file: &Path, sums: &BTreeMap<(String, u64, String), u64>) {
    let text = openmetrics(file, &ExportFilter::all(always()));
    let mut ends: BTreeMap<&str, (u64, u64)> = BTreeMap::new();
    for line in text.lines().filter(|line| line.contains("_total{")) {
        let (series, rest) = line.rsplit_once("} ").unwrap();
        let total: u64 = rest.split_once(' ').unwrap().0.parse().unwrap();
        ends.entry(series).or_insert((total, total)).1 = total;
    }
    let mut of: BTreeMap<(String, u64, String), u64> = BTreeMap::new();
    for (series, (first, last)) in ends {
        let (name, labels) = series.split_once('{').unwrap();
        let metric = name.strip_prefix("infiniband_port_").unwrap().strip_suffix("_total").unwrap();
        let label = |name: &str| {
            let (_, rest) = labels.split_once(&format!("{name}=\"")).unwrap();
            rest.split('"').next().unwrap().to_owned()
        };
        let key = (label("guid"), label("port").parse().unwrap(), metric.to_owned());
        if last > first {
            of.insert(key, last - first);
        }
    }
    assert_eq!(&of, sums);
    assert!(Counter::all().any(|it| of.keys().any(|(.., metric)| metric == it.row().metric)));
}

#[test]
fn hostile_names_are_escaped() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("history.db");
    let mut simulation = RecordedSimulation::new(STORY, &file);
    simulation.run_to(minutes(5));
    let hostile = "=1,\"a\"\\\n; DROP\u{1F980}\r\n\tTABLE'x\u{9b}\u{202e}";
    simulation.recorder.finish(wall(minutes(6)));
    drop(simulation);
    let db = rusqlite::Connection::open(&file).unwrap();
    db.execute("UPDATE names SET name = ?1 || node", [hostile]).unwrap();
    db.execute("UPDATE events SET place = ?1, text = ?1", [hostile]).unwrap();
    drop(db);
    let reader = Reader::open(&file).unwrap();
    let mut json = Vec::new();
    export::counters(&reader, &ExportFilter::all(always()), TableFormat::JsonLines, &mut json)
        .unwrap();
    let json = String::from_utf8(json).unwrap();
    // Invisible where it is written to a terminal.
    assert!(json.contains("\\u009b\\u202e") && !json.contains(['\u{9b}', '\u{202e}']));
    let told = rows(&reader, TableFormat::JsonLines, false);
    assert!(told.iter().all(|row| row["node"].as_str().unwrap().starts_with(hostile)));
    assert!(!told.is_empty());
    // A spreadsheet would evaluate the name.
    let guarded = format!("'{hostile}");
    let mut cells = rows(&reader, TableFormat::Csv, false);
    for cell in &mut cells {
        let name = cell["node"].as_str().unwrap().strip_prefix('\'').unwrap().to_owned();
        cell["node"] = name.into();
    }
    assert!(cells == told);
    assert_eq!(rows(&reader, TableFormat::Csv, true)[0]["place"], guarded);
    let text = openmetrics(&file, &ExportFilter::all(always()));
    let stored = Server::stored(|to| std::fs::write(to, &text).unwrap());
    let named = stored.query_at("infiniband_port_info", seconds(wall(minutes(4)))).unwrap();
    assert!(!named.is_empty());
    for port in named {
        assert!(port["metric"]["node"].as_str().unwrap().starts_with(hostile), "{port}");
    }
    let window = Window { from: wall(minutes(2)), to: wall(minutes(3)) };
    assert!(!openmetrics(&file, &ExportFilter::all(window)).is_empty());
}
