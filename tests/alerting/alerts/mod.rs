//! The rules in alerts/: promtool runs their unit tests, and each alert has what an on-call engineer needs.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod lean;
mod proofs;
mod table;

use test_rig as rig;

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use regex_lite::Regex;
use rig::promtool::fed;
use rig::{Alertmanager, promql, rules};

/// The parts of each runbook, in this order.
const PARTS: [&str; 5] =
    ["**Meaning**", "**Impact**", "**Check first**", "**Repair**", "**Resolves**"];
/// The URL in the annotation `runbook_url`: that of an exporter.
const ANY_EXPORTER: &str =
    r#"{{ with query "fabric_exporter:web_info:url" }}{{ . | first | label "url" }}{{ end }}"#;
/// The URL in the annotation `dashboard_url`: that of an exporter that sweeps the fabric.
const OF_FABRIC: &str = r#"{{ with printf "fabric:fabric_exporter_web_info:url{fabric=%q}" $labels.fabric | query }}{{ . | first | label "url" }}{{ end }}"#;
/// The same for a host: that of its own exporter.
const OF_HOST: &str = r#"{{ with printf "instance:fabric_exporter_web_info:url{instance=%q}" $labels.instance | query }}{{ . | first | label "url" }}{{ end }}"#;
/// Metrics of Prometheus itself, and of the exporters that say where jobs and pods run.
const FOREIGN: [&str; 11] = [
    "up",
    "ALERTS",
    "slurm_node_job",
    "slurm_job_info",
    "slurm_job_process_count",
    "cgroup_info",
    "slurm_proc_pid",
    "DCGM_FI_DEV_FB_USED",
    "kube_pod_info",
    "kube_pod_container_resource_requests",
    "kube_pod_status_phase",
];
/// Runs a program on files, and panics with its output if it fails.
fn accepts(program: &str, verb: &[&str], files: &[PathBuf]) -> String {
    let files: Vec<&str> = files.iter().map(|file| file.to_str().unwrap()).collect();
    let (code, said) = fed(program, &[verb, &files].concat(), "");
    assert_eq!(code, Some(0), "{program} {}:\n{said}", verb.join(" "));
    said
}

/// Panics with all problems, if there are any.
fn none(problems: &[String]) {
    assert!(problems.is_empty(), "\n{}\n", problems.join("\n"));
}

#[test]
fn promtool_accepts_rules_and_rule_tests_pass() {
    accepts("promtool", &["check", "rules"], &rules::files("alerts", ".rules.yml"));
    // Each takes seconds of one processor.
    let files = rules::files("alerts/tests", ".test.yml");
    std::thread::scope(|scope| {
        for some in files.chunks(files.len().div_ceil(3)) {
            scope.spawn(|| accepts("promtool", &["test", "rules"], some));
        }
    });
}

#[test]
fn each_alert_has_a_firing_and_a_silent_test() {
    let looks = proofs::looks();
    let problems: Vec<String> = rules::alerts()
        .iter()
        .flat_map(|alert| {
            let shown = alert.shown();
            [
                (!looks.iter().any(|look| look.fires(alert)))
                    .then(|| format!("no test shows that it fires: {shown}")),
                (!looks.iter().any(|look| look.is_silent(alert)))
                    .then(|| format!("no test shows that it is silent: {shown}")),
            ]
        })
        .flatten()
        .collect();
    none(&problems);
}

/// Two alerts with the same name in one view would be one for Alertmanager.
#[test]
fn alerts_are_defined_once_for_each_view() {
    let mut seen = BTreeSet::new();
    for alert in rules::alerts() {
        assert!(seen.insert((alert.name.clone(), alert.view.clone())), "twice: {}", alert.shown());
    }
}

#[test]
fn alerts_have_severity_and_texts() {
    let mut problems = Vec::new();
    for alert in rules::alerts() {
        if alert.severities().is_empty() {
            problems.push(format!("no severity: {}", alert.shown()));
        }
        for name in ["summary", "description"] {
            if alert.annotation(name).is_empty() {
                problems.push(format!("no {name}: {}", alert.shown()));
            }
        }
    }
    none(&problems);
}

#[test]
fn alerts_have_runbooks() {
    let mut problems = Vec::new();
    let alerts = rules::alerts();
    for alert in &alerts {
        let path = fabric_api::address::runbook(&alert.name);
        if alert.annotation("runbook_url") != format!("{ANY_EXPORTER}{path}") {
            problems.push(format!("runbook_url is not that of {path}: {}", alert.shown()));
        }
        let Some((_, section)) = table::runbook(&alert.name) else {
            problems.push(format!("no runbook: {}", alert.shown()));
            continue;
        };
        let places: Vec<Option<usize>> = PARTS.iter().map(|part| section.find(part)).collect();
        if places.contains(&None) || !places.is_sorted() {
            problems.push(format!("a runbook has five parts, {PARTS:?}: {}", alert.shown()));
        }
    }
    for page in rules::files("alerts/runbooks", ".md") {
        for name in rules::text(&page).lines().filter_map(|line| line.strip_prefix("## ")) {
            if !alerts.iter().any(|alert| alert.name == name) {
                problems.push(format!("{} is about {name}, which is no alert", page.display()));
            }
        }
    }
    none(&problems);
}

/// For a swept fabric, each alert about a link, a node or a congestion has the URL of its page in the exporter; each
/// alert about a device of a host has that of the host.
#[test]
fn fabric_alerts_have_page_addresses() {
    use fabric_api::address;
    let (link, guid) = ("0x0002c903000000a1:7-0x0002c903000000b2:1", "0x0002c903000000a1");
    let alerts = rules::alerts();
    let port = address::PORT.replace("{guid}", guid).replace("{port}", "7");
    let bad_links = address::with(address::LINKS, &[("fabric", "a"), ("verdict", "bad")]);
    for (file, least, url, page) in [
        ("cables.rules.yml", 7, OF_FABRIC, address::link("a", link)),
        ("nodes.rules.yml", 2, OF_FABRIC, address::node("a", guid)),
        ("congestion.rules.yml", 1, OF_FABRIC, address::with(&port, &[("fabric", "a")])),
        ("hosts.rules.yml", 7, OF_HOST, address::device("mlx5_0")),
    ] {
        let of_file: Vec<_> = alerts.iter().filter(|alert| alert.file == file).collect();
        assert!(of_file.len() >= least, "{file}: {}", of_file.len());
        for alert in of_file {
            let written = alert
                .annotation("dashboard_url")
                .replace("{{ $labels.link }}", link)
                .replace("{{ $labels.guid }}", guid)
                .replace("{{ $labels.port }}", "7")
                .replace("{{ $labels.device }}", "mlx5_0")
                .replace("{{ urlquery $labels.fabric }}", "a");
            let page = if alert.name == "InfinibandManyLinksBad" { &bad_links } else { &page };
            assert_eq!(written, format!("{url}{page}"), "{}", alert.shown());
        }
    }
}

#[test]
fn rules_use_existing_metrics() {
    let rules = rules::all();
    let mut known = promql::exported();
    assert!(known.len() > 300, "{known:?}");
    known.extend(FOREIGN.map(str::to_owned));
    known.extend(rules.iter().filter_map(|(_, rule)| rule.record.clone()));
    let mut problems = Vec::new();
    for (file, rule) in &rules {
        let name = rule.alert.as_ref().or(rule.record.as_ref()).unwrap();
        let mut asked = vec![rule.expr.clone()];
        for template in rule.annotations.values() {
            asked.extend(promql::queries(template).unwrap_or_else(|e| panic!("{name}: {e}")));
        }
        for expression in asked {
            match promql::metrics(&expression) {
                Ok(names) => {
                    problems.extend(names.difference(&known).map(|metric| {
                        format!("{name} in {file} asks for {metric}, which nobody has")
                    }));
                }
                Err(error) => problems.push(format!("{name} in {file}: {error}")),
            }
        }
    }
    none(&problems);
}

#[test]
fn alertmanager_routes_to_the_right_receiver() {
    let config = rules::path("alerts/alertmanager.yml");
    accepts("amtool", &["check-config"], std::slice::from_ref(&config));
    let flag = format!("--config.file={}", config.display());
    for alert in rules::alerts() {
        for severity in alert.severities() {
            let wanted = match severity {
                "critical" => "pages",
                "warning" => "tickets",
                other => other,
            };
            let severity = format!("severity={severity}");
            let name = format!("alertname={}", alert.name);
            let view = format!("view={}", alert.view.as_deref().unwrap_or_default());
            let args =
                ["config", "routes", "test", &flag, &severity, &name, &view, "fabric=default"];
            let (code, said) = fed("amtool", &args, "");
            let receiver = said.lines().find(|line| !line.starts_with("Warning")).unwrap_or("");
            assert_eq!((code, receiver), (Some(0), wanted), "{}: {said}", alert.shown());
        }
    }
}

/// An inhibition rule with the name of a removed alert has no effect, without any message.
#[test]
fn alertmanager_config_uses_existing_alert_names() {
    let alerts = rules::alerts();
    let text = rules::text(&rules::path("alerts/alertmanager.yml"));
    let matcher = Regex::new(r#"alertname=(~?)"([^"]+)""#).unwrap();
    let mut found = 0;
    for captures in matcher.captures_iter(&text) {
        found += 1;
        // Each alternative of a regular expression must be an alert, with or without parentheses.
        let (head, names) = match captures[2].split_once('(') {
            Some((head, rest)) => (head, rest.strip_suffix(')').unwrap()),
            None => ("", &captures[2]),
        };
        assert!(!captures[1].is_empty() || !names.contains('|'), "{}", &captures[0]);
        for name in names.split('|').map(|name| format!("{head}{name}")) {
            assert!(alerts.iter().any(|alert| alert.name == name), "{name} is no alert");
        }
    }
    assert!(found > 5, "{found}");
}

/// Alerts with `keep_firing_for` overlap with the next alert on the same link; and many bad links between switches
/// are one page.
#[test]
fn one_cable_sends_one_page() {
    let config = rules::text(&rules::path("alerts/alertmanager.yml"));
    let alertmanager = Alertmanager::start(&config);
    let url = format!("--alertmanager.url=http://{}", alertmanager.address());
    let amtool = |args: &[&str]| {
        let (code, said) = fed("amtool", &[&[url.as_str()], args].concat(), "");
        assert_eq!(code, Some(0), "{said}");
        said
    };
    // From the most specific to the least.
    let pages = [
        "InfinibandCableBad",
        "InfinibandLinkDown",
        "InfinibandLinkFlapping",
        "InfinibandLinkWidthReduced",
    ];
    let swept = ["fabric=swept", "link=1:1-2:1", "guid=1", "port=1"];
    let by_host = ["fabric=hosts", "view=host", "device=mlx5_0", "guid=1", "port=1"];
    let other = ["fabric=swept", "link=1:2-3:1", "guid=1", "port=2"];
    for name in pages {
        let name = format!("alertname={name}");
        for labels in [&swept[..], &by_host] {
            amtool(&[&["alert", "add", &name, "severity=warning"], labels].concat());
        }
    }
    let degraded = ["alert", "add", "alertname=InfinibandCableDegraded", "severity=warning"];
    amtool(&[&degraded, &swept[..]].concat());
    let single = ["alert", "add", "alertname=InfinibandLinkWidthReduced", "severity=warning"];
    amtool(&[&single, &other[..]].concat());
    for labels in [
        &["alertname=InfinibandManyLinksBad", "guid=0"][..],
        &["alertname=InfinibandLinkFlapping", "guid=1", "peer_node_type=switch"],
        &["alertname=InfinibandLinkDown", "guid=2", "peer_node_type=ca"],
    ] {
        amtool(&[&["alert", "add", "fabric=many", "node_type=switch"], labels].concat());
    }
    // For each link the first in the list is active, and for the other link the only one.
    let wanted = BTreeSet::from([
        r#"alertname="InfinibandCableBad" device="mlx5_0" fabric="hosts""#,
        r#"alertname="InfinibandCableBad" fabric="swept""#,
        r#"alertname="InfinibandLinkDown" fabric="many""#,
        r#"alertname="InfinibandManyLinksBad" fabric="many""#,
        r#"alertname="InfinibandLinkWidthReduced" fabric="swept""#,
    ]);
    let deadline = Instant::now() + Duration::from_secs(30);
    loop {
        let said = amtool(&["alert", "query", "--active", "--output=extended"]);
        let active: BTreeSet<&str> = (said.lines().skip(1))
            .map(|line| line.split(" guid=").next().unwrap().trim_end())
            .collect();
        if active == wanted {
            break;
        }
        assert!(Instant::now() < deadline, "{said}");
        std::thread::sleep(Duration::from_millis(100));
    }
}

/// Links, nodes, subnet managers, congestion, hosts and the exporter itself.
#[test]
fn alert_table_is_made_from_the_rules_and_most_alerts_need_only_lean_metrics() {
    let (alerts, needs) = (rules::alerts(), lean::needs());
    lean::assert_few(&needs, &alerts);
    table::agrees(&alerts, |alert| lean::cell(&needs, alert));
}
