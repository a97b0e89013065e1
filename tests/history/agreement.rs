//! Metrics, pages, API, command line, alerts, reports, and a copy say the same of one fabric at one time. Its time stops
//! while they are asked: a value that differs is one that two places compute in two ways.

use std::collections::BTreeMap;
use std::path::Path;
use std::process::Command;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use exporter_web::Limits;
use fabric_exporter::config::options::{FabricOptions, Options};
use fabric_history::Recorder;
use fabric_history::settings::HistorySettings;
use ib_health::Verdict;
use ib_health::verdict::Repair;
use ib_sim::scenario::{Overrides, Scenario};
use serde_json::Value;

use crate::served::Served;
use crate::{SWEEP, minutes};
use test_rig::{Metrics, Simulated, program, rules};

/// A bad cable, a host that is down, a switch that rebooted, congestion, and cleared counters.
const SCENARIO: &str = "one-night";
/// Before the cable is replaced.
const END: Duration = minutes(130);
const FABRIC: &str = "default";

/// What each place says, by what it is about.
#[derive(Default)]
struct Said(BTreeMap<&'static str, Vec<(&'static str, String)>>);

impl Said {
    #[expect(
        clippy::needless_pass_by_value,
        reason = "values of any kind are written as they come"
    )]
    fn add(&mut self, what: &'static str, place: &'static str, says: impl ToString) {
        self.0.entry(what).or_default().push((place, says.to_string()));
    }

    /// A page, or other text, which must contain what the others say.
    fn has(&mut self, what: &'static str, place: &'static str, text: &str, wanted: &str) {
        let says = if text.contains(wanted) { wanted } else { "something else" };
        self.add(what, place, says);
    }

    fn agree(&self) {
        for (what, said) in &self.0 {
            assert!(said.len() > 1, "only one place says {what}: {said:?}");
            assert!(said.iter().all(|(_, says)| *says == said[0].1), "{what}: {said:#?}");
        }
    }
}

/// What a command prints.
fn told(args: &[&str]) -> String {
    let output = Command::new(program()).args(args).env("TZ", "UTC").output().unwrap();
    assert!(output.status.success(), "{args:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

fn json(text: &str) -> Value {
    serde_json::from_str(text).unwrap_or_else(|error| panic!("{error}: {text}"))
}

fn text(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        other => other.to_string(),
    }
}

/// The text of a page without its tags, as a reader has it.
fn plain(page: &str) -> String {
    let mut out = String::new();
    let mut is_tag = false;
    for char in page.chars() {
        match char {
            '<' => is_tag = true,
            '>' => is_tag = false,
            char if !is_tag => out.push(char),
            _ => {}
        }
    }
    out.replace("&amp;", "&").replace("&gt;", ">").replace("&lt;", "<").replace('\u{a0}', " ")
}

/// The branch of the alerts' template for a repair: `swap the cable`.
fn repair_in_alert(repair: &str) -> String {
    let all = rules::all().into_iter().map(|(_, rule)| rule);
    let texts = all.flat_map(|rule| rule.annotations.into_values());
    let begins = format!("eq .Labels.repair \"{repair}\" }}}}");
    let mut branches = texts.filter_map(|text| {
        let rest = text.split_once(&begins)?.1;
        Some(rest.split("{{").next()?.to_owned())
    });
    let first = branches.next().unwrap();
    assert!(branches.all(|branch| branch == first), "alerts differ about {repair}");
    first
}

#[test]
fn one_fabric_is_told_the_same_everywhere() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join(format!("tests/history/scenarios/{SCENARIO}.yml"));
    let folder = tempfile::tempdir().unwrap();
    let [file, copy] = ["history.db", "copy.db"].map(|name| folder.path().join(name));
    // It ends now: pages show the last 24 hours.
    let began = SystemTime::now() - END;
    let wall = |at: Duration| began + at;
    let story = Scenario::read(&path).unwrap().resolve(&Overrides::default()).unwrap();
    let fabric_options = FabricOptions { details: Some(true), ..FabricOptions::default() };
    let options = Options { fabric: fabric_options, ..Options::default() };
    let simulated = Simulated::begun(story, options, began);
    let settings = HistorySettings { least_free: 0, ..HistorySettings::new(file.clone()) };
    let mut recorder = Recorder::new(settings, Arc::default());
    let mut at = Duration::from_secs(5);
    while at <= END {
        simulated.run_to(at);
        recorder.record(&simulated.observation(), wall(at));
        at += SWEEP;
    }
    let state = vec![simulated.observation()].into();
    let served = Served::of(state, &file, Limits::default());
    let url = format!("http://{}", served.address);
    let page = |path: &str| plain(served.get(path).text());
    let api = |path: &str| json(served.get(path).text());
    let metrics = simulated.metrics();

    let time = |at| humantime::format_rfc3339_millis(wall(at)).to_string();
    let (from, to) = (time(Duration::ZERO), time(END));
    let window = ["--since", &from, "--until", &to];
    let file = file.to_str().unwrap();
    let copied = copy.to_str().unwrap();
    told(&[&["history", "dump", "-o", copied, "--url", &url], &window[..]].concat());
    let report = |format: &str, source: [&str; 2]| {
        told(&[&["history", "report", "--format", format][..], &source, &window].concat())
    };
    let sources = [
        ("report of url", ["--url", &url]),
        ("report of file", ["--file", file]),
        ("report of copy", ["--file", copied]),
    ];
    let reports: Vec<(&str, Value, String, String)> = sources
        .into_iter()
        .map(|(name, source)| {
            let html = plain(&report("html", source));
            (name, json(&report("json", source)), html, report("markdown", source))
        })
        .collect();
    let incidents = api(&format!("/api/v1/history/incidents?from={from}&to={to}"));
    let listed = told(&[&["history", "incidents", "--url", &url][..], &window].concat());
    let events_page = page("/events?window=24h");

    let mut said = Said::default();
    fabric(&mut said, &metrics, &api, &page, &url, &reports);
    let link = link(&mut said, &metrics, &api, &page, &url, &reports, &incidents);
    host(&mut said, &api, &page, &url, &reports);
    counts(&mut said, &metrics, &api, [&url, file, &from], &link, &reports);

    // Incidents, wherever they are listed.
    let in_api = incidents["incidents"].as_array().unwrap();
    said.add("number of incidents", "api", in_api.len());
    let lines = listed.lines().filter(|line| !line.trim_start().starts_with("cause:")).count();
    said.add("number of incidents", "history incidents", lines);
    for (name, report, ..) in &reports {
        let count = |key: &str| report[key].as_array().unwrap().len();
        said.add("number of incidents", name, count("findings") + count("incidents"));
        said.add("number of findings", name, count("findings"));
    }
    let is_finding = |it: &&Value| it["severity"] != "info";
    said.add("number of findings", "api", in_api.iter().filter(is_finding).count());
    for incident in in_api {
        let title = text(&incident["title"]);
        said.add("titles of incidents", "api", "all");
        let texts = [("history incidents", &listed), ("events page", &events_page)];
        let of_reports = reports.iter().flat_map(|(name, _, html, _)| [(*name, html)]);
        for (place, text) in texts.into_iter().chain(of_reports) {
            said.add(
                "titles of incidents",
                place,
                if text.contains(&title) { "all" } else { &title },
            );
        }
    }
    // What alerts advise, for each repair.
    for repair in Repair::ALL.into_iter().filter(|repair| *repair != Repair::None) {
        let (help, in_alert) = (repair.help(), repair_in_alert(repair.label()));
        assert!(help.trim_end_matches('.').eq_ignore_ascii_case(&in_alert), "{help} {in_alert}");
    }
    let number = said.0.len();
    said.agree();
    assert!(number >= 30, "{number} values and sentences");
}

type Ask<'a, T> = &'a dyn Fn(&str) -> T;
type Reports = [(&'static str, Value, String, String)];

/// The fabric as a whole.
fn fabric(
    said: &mut Said,
    metrics: &Metrics,
    api: Ask<'_, Value>,
    page: Ask<'_, String>,
    url: &str,
    reports: &Reports,
) {
    let overview = api("/api/v1/overview")["fabrics"][0].clone();
    let seen = page("/");
    let headline = text(&overview["condition"]["headline"]);
    said.add("headline", "api", &headline);
    said.has("headline", "page", &seen, &headline);
    said.add(
        "headline",
        "api of links",
        text(&api("/api/v1/links")["fabrics"][0]["condition"]["headline"]),
    );
    let links = json(&told(&["links", "--json", "--url", url]));
    let links = &links["fabrics"][0];
    // The time of a command goes on: on a busy machine the latest sweep is old by then.
    let printed = text(&links["condition"]["headline"]);
    let printed = printed.split("; the latest sweep").next().unwrap_or_default();
    said.add("headline", "links --json", printed);
    let state = |report: &Value, key: &str| report["shapes"][FABRIC][1][key].clone();
    // By reason: the verdict is the worst of a link.
    let mut verdicts: BTreeMap<String, usize> = BTreeMap::new();
    for (labels, value) in metrics.all("infiniband_link_verdict") {
        let value =
            Verdict::ALL.iter().position(|it| (f64::from(*it as u8) - value).abs() < 0.5).unwrap();
        let worst = verdicts.entry(labels["link"].clone()).or_default();
        *worst = value.max(*worst);
    }
    for verdict in ["ok", "unknown", "bad"] {
        let what = match verdict {
            "ok" => "links that are ok",
            "unknown" => "links that are unknown",
            _ => "links that are bad",
        };
        let wanted = Verdict::from_label(verdict).unwrap();
        said.add(what, "metrics", verdicts.values().filter(|it| **it == wanted as usize).count());
        said.add(what, "api", &overview["verdicts"][verdict]);
        said.add(what, "links --json", &links["verdicts"][verdict]);
        let listed = links["links"].as_array().unwrap();
        said.add(what, "list", listed.iter().filter(|link| link["verdict"] == verdict).count());
        for (name, report, ..) in reports {
            let count = state(report, "verdicts")[verdict].as_u64().unwrap_or(0);
            said.add(what, name, count);
        }
    }
    said.add("links", "api", links["links"].as_array().unwrap().len());
    said.add("links", "metrics", metrics.all("infiniband_link_info").count());
    for (name, report, ..) in reports {
        said.add("links", name, &state(report, "cables")[0]);
    }
    for (kind, what) in [("switch", "switches"), ("ca", "HCAs")] {
        let nodes = json(&told(&["nodes", "--json", "--url", url]));
        let nodes = nodes["fabrics"][0]["nodes"].as_array().unwrap().clone();
        let of_kind = nodes.iter().filter(|node| node["node_type"] == kind).count();
        said.add(what, "nodes --json", of_kind);
        let info = metrics.all("infiniband_node_info");
        said.add(what, "metrics", info.filter(|(labels, _)| labels["node_type"] == kind).count());
        for (name, report, ..) in reports {
            said.add(what, name, &state(report, "nodes")[kind][0]);
        }
    }
    said.has("switches", "page", &seen, &said.0["switches"][0].1.clone());
}

/// The bad link: returns its id and the port that receives errors.
fn link(
    said: &mut Said,
    metrics: &Metrics,
    api: Ask<'_, Value>,
    page: Ask<'_, String>,
    url: &str,
    reports: &Reports,
    incidents: &Value,
) -> (String, String, String) {
    let bad = api("/api/v1/links?verdict=bad")["fabrics"][0]["links"][0].clone();
    let id = text(&bad["link"]);
    let seen = page(&format!("/link/{id}?fabric={FABRIC}"));
    let listed = json(&told(&["links", "--json", "--verdict", "bad", "--url", url]));
    let listed = &listed["fabrics"][0]["links"][0];
    let table = told(&["links", "--verdict", "bad", "--wide", "--url", url]);
    let incident = incidents["incidents"].as_array().unwrap().iter();
    let incident = incident.clone().find(|it| it["link"] == *id).unwrap();

    said.add("link", "api", &id);
    said.add("link", "links --json", text(&listed["link"]));
    said.add("link", "incident", text(&incident["link"]));
    let sentence = text(&bad["repair"]["description"]);
    let repair = text(&bad["repair"]["repair"]);
    said.add("repair", "api", &repair);
    said.add("repair", "links --json", text(&listed["repair"]["repair"]));
    said.add("repair", "incident", text(&incident["repair"]));
    let of_metric = metrics.all("infiniband_link_repair").find(|(labels, _)| labels["link"] == id);
    said.add("repair", "metrics", &of_metric.unwrap().0["repair"]);
    said.add("what to try first", "api", &sentence);
    said.has("what to try first", "page", &seen, &sentence);
    said.add("what to try first", "incident", text(&incident["advice"]));
    let in_alert = repair_in_alert(&repair);
    let is_same = sentence.trim_end_matches('.').eq_ignore_ascii_case(&in_alert);
    said.add("what to try first", "alert", if is_same { &sentence } else { &in_alert });
    let evidence = text(&bad["reasons"][0]["evidence"]);
    said.add("evidence", "api", &evidence);
    said.has("evidence", "page of the link", &seen, &evidence);
    said.has("evidence", "overview", &page("/"), &evidence);
    said.add("evidence", "links --json", text(&listed["reasons"][0]["evidence"]));
    said.has("evidence", "links", &table, &evidence);
    said.add("verdict", "api", text(&bad["verdict"]));
    said.add("verdict", "links --json", text(&listed["verdict"]));
    said.has("verdict", "links", &table, "bad");
    said.add("up", "api", &bad["up"]);
    said.add("up", "links --json", &listed["up"]);
    said.add("since", "api", text(&bad["since"]));
    said.add("since", "links --json", text(&listed["since"]));

    let end = bad["ends"].as_array().unwrap().iter();
    let end = end
        .clone()
        .find(|end| evidence.starts_with(&format!("{} port {}", text(&end["node"]), end["port"])))
        .unwrap();
    let (guid, port) = (text(&end["guid"]), end["port"].to_string());
    let module = metrics.all("infiniband_module_info").map(|(labels, _)| labels);
    let module = module.into_iter().find(|it| it["guid"] == guid && it["port"] == port).unwrap();
    let finding = |report: &Value| {
        let findings = report["findings"].as_array().unwrap();
        findings.iter().find(|it| it["link"] == *id).unwrap().clone()
    };
    for (what, key, label) in
        [("serial number", "serial_number", "serial"), ("part number", "part_number", "part")]
    {
        said.add(what, "metrics", &module[key]);
        said.add(what, "api", text(&end[key]));
        said.has(what, "page", &seen, &module[key]);
        for (name, report, html, markdown) in reports {
            said.add(what, name, text(&finding(report)["modules"][0][label]));
            said.has(what, "html", html, &module[key]);
            said.has(what, "markdown", markdown, &module[key]);
        }
    }
    for (name, report, html, markdown) in reports {
        let finding = finding(report);
        said.add("repair", name, text(&finding["repair"]));
        said.add("what to try first", name, text(&finding["advice"]));
        said.has("what to try first", "html", html, &sentence);
        said.has("what to try first", "markdown", markdown, &sentence);
        let verdict = text(&finding["since_then"]);
        said.has("verdict", name, &verdict, "bad");
        said.add("cause", name, text(&finding["cause"]));
        said.add("began", name, text(&finding["began"]));
        said.add("since then", name, verdict);
    }
    said.add("cause", "incident", text(&incident["cause"]));
    said.add("began", "incident", text(&incident["began"]));

    let ratio = metrics.all("infiniband_link_bit_error_ratio").find(|(labels, _)| {
        labels["guid"] == guid && labels["port"] == port && labels["window"] == "12m"
    });
    let windows = end["bit_errors"]["windows"].as_array().unwrap();
    let window = windows.iter().find(|window| window["window"] == "12m").unwrap();
    said.add("bit error ratio", "metrics", format!("{:.3e}", ratio.unwrap().1));
    said.add("bit error ratio", "api", format!("{:.3e}", window["ratio"].as_f64().unwrap()));
    let limit = metrics.all("infiniband_link_bit_error_ratio_limit");
    let limit = limit.into_iter().find(|(labels, _)| labels["link"] == id).unwrap().1;
    said.add("limit", "metrics", limit);
    said.add("limit", "api", end["bit_errors"]["limit"].as_f64().unwrap());
    (id, guid, port)
}

/// The host that is down.
fn host(said: &mut Said, api: Ask<'_, Value>, page: Ask<'_, String>, url: &str, reports: &Reports) {
    let down = api("/api/v1/nodes?down=true")["fabrics"][0]["nodes"].clone();
    let [node] = &down.as_array().unwrap()[..] else { panic!("{down}") };
    let name = text(&node["node"]);
    said.add("host that is down", "api", &name);
    let listed = json(&told(&["nodes", "--down", "--json", "--url", url]));
    said.add("host that is down", "nodes --json", text(&listed["fabrics"][0]["nodes"][0]["node"]));
    said.has("host that is down", "nodes", &told(&["nodes", "--down", "--url", url]), &name);
    said.has("host that is down", "page", &page("/"), &name);
    for (report, value, html, _) in reports {
        let findings = value["findings"].as_array().unwrap();
        let found = findings.iter().find(|it| it["kind"] == "host_down").unwrap();
        said.add("host that is down", report, text(&found["hosts"][0]));
        said.has("host that is down", "html", html, &format!("Host {name} is down"));
        said.add("why the host is down", report, text(&found["cause"]));
    }
    // What is replaced above: the title has more words than the name.
    let said = said.0.get_mut("host that is down").unwrap();
    for (_, says) in said {
        if says == &format!("Host {name} is down") {
            says.clone_from(&name);
        }
    }
}

/// What the receiving port counted since the exporter started.
fn counts(
    said: &mut Said,
    metrics: &Metrics,
    api: Ask<'_, Value>,
    [url, file, from]: [&str; 3],
    (link, guid, port): &(String, String, String),
    reports: &Reports,
) {
    let bad = api("/api/v1/links?verdict=bad");
    let ends = bad["fabrics"][0]["links"][0]["ends"].as_array().unwrap().clone();
    let end = ends.iter().find(|end| end["guid"] == **guid && text(&end["port"]) == *port);
    let place = format!("{guid}[{port}]");
    let history = |source: [&str; 2]| {
        json(&told(
            &[&["history", "port", &place, "--json", "--since", from][..], &source].concat(),
        ))
    };
    let (of_url, of_file) = (history(["--url", url]), history(["--file", file]));
    let counted = |history: &Value, counter: &str| {
        let series = history["series"].as_array().unwrap().iter();
        let series = series.clone().find(|series| series["counter"] == counter);
        let steps = series.map(|series| series["steps"].as_array().unwrap().clone());
        steps.into_iter().flatten().map(|step| step[2].as_u64().unwrap()).sum::<u64>()
    };
    for (what, counter) in [
        ("symbol errors", "symbol_errors"),
        ("uncorrectable blocks", "fec_uncorrectable_blocks"),
        ("receive errors", "receive_errors"),
        ("integrity errors", "local_link_integrity_errors"),
    ] {
        let name = format!("infiniband_port_{counter}_total");
        let all = metrics.all(&name);
        let total = all.into_iter().find(|(it, _)| it["guid"] == *guid && it["port"] == *port);
        said.add(what, "metrics", total.unwrap().1);
        said.add(what, "api", &end.unwrap()["counters"][counter]);
        said.add(what, "history of url", counted(&of_url, counter));
        said.add(what, "history of file", counted(&of_file, counter));
        for (report, value, ..) in reports {
            let findings = value["findings"].as_array().unwrap();
            let finding = findings.iter().find(|it| it["link"] == **link).unwrap();
            let series = finding["series"].as_array().unwrap().iter();
            let of_port: Vec<Value> = series
                .filter(|it| it["port"]["guid"] == **guid && text(&it["port"]["port"]) == *port)
                .cloned()
                .collect();
            let of_port = serde_json::json!({ "series": of_port });
            said.add(what, report, counted(&of_port, counter));
        }
    }
}
