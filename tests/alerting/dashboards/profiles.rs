//! Panels with the profile `lean` alone, and with the sample configuration that scrapes the other groups in a job of
//! their own.

use std::collections::BTreeMap;

use fabric_exporter::metrics::selection::Profile;
use serde_json::Value;

use crate::dashboards::situations::{self, Served};
use crate::dashboards::{
    dashboards, false_green, filled, list, panels, rows, shown, text, variables,
};
use crate::shards;
use test_rig::{Exporter, Prometheus, promql, rules, wait_until};

const LIMIT: std::time::Duration = std::time::Duration::from_secs(120);

/// A Prometheus at a moment, and the values of variables.
struct Asked {
    prometheus: Prometheus,
    at: f64,
    variables: BTreeMap<&'static str, String>,
}

impl Asked {
    fn of(served: &Served, host: &Exporter) -> Self {
        let prometheus = situations::prometheus(&[served], host, true);
        let at = situations::settle(&prometheus, true);
        let mut asked =
            Asked { prometheus, at, variables: false_green::variables(&[served], host) };
        let leaves = asked.leaves();
        asked.variables.insert("leaf", leaves);
        asked
    }

    fn ask(&self, query: &str) -> Vec<Value> {
        shown::asking(&self.prometheus, self.at, &self.variables)(query)
    }

    /// What the variable `leaf` offers, as Grafana inserts it.
    fn leaves(&self) -> String {
        let boards = dashboards();
        let leaf = variables(&boards["overview"]).iter().find(|it| text(it, "name") == "leaf");
        let query = text(&leaf.unwrap()["query"], "query").strip_prefix("query_result(").unwrap();
        let found = self.ask(query.strip_suffix(')').unwrap());
        let of = |name| found.iter().map(move |it| text(&it["metric"], name).to_owned());
        let mut nodes: Vec<String> = of("node").collect();
        nodes.sort();
        assert_eq!(nodes, ["leaf-0-0", "leaf-0-1", "leaf-0-2", "leaf-0-3"], "no spines");
        of("guid").collect::<Vec<_>>().join("|")
    }
}

#[test]
fn overview_needs_only_lean_metrics() {
    let host = situations::host();
    let [lean, full] = std::thread::scope(|scope| {
        [Profile::Lean, Profile::Full]
            .map(|profile| {
                let host = &host;
                scope.spawn(move || {
                    let served = Served::with(&situations::BAD_CABLE, profile);
                    let asked = Asked::of(&served, host);
                    (served, asked)
                })
            })
            .map(|it| it.join().unwrap())
    });
    let (lean, full) = (&lean.1, &full.1);
    assert!(lean.prometheus.query("infiniband_port_symbol_errors_total{device=''}").is_empty());

    let boards = dashboards();
    // What the overview opens with is the same, as far as it is a number or a judgement.
    let (_, first) = rows(&boards["overview"]).remove(0);
    for panel in &first {
        let [lean, full] =
            [lean, full].map(|asked| shown::panel(panel, &|query: &str| asked.ask(query)));
        if text(panel, "type") == "status-history" {
            continue;
        }
        if text(panel, "title") == "Worst cables" {
            assert_eq!(lean[0].text, "rows");
        } else {
            assert_eq!(lean, full, "{}", panel["title"]);
        }
    }
    let maps = first.iter().filter(|it| text(it, "type") == "status-history");
    let mut values = BTreeMap::new();
    for map in maps {
        for series in lean.ask(text(&map["targets"][0], "expr")) {
            let place = (text(map, "title"), text(&series["metric"], "node").to_owned());
            values.insert(place, text_of_value(&series));
        }
    }
    assert_eq!(values.len(), 8, "four leaves in two maps: {values:?}");
    let bad = |node: &str| values[&("Cables not ok by leaf switch", node.to_owned())];
    assert_eq!((bad("leaf-0-1"), bad("leaf-0-2")), (1.0, 0.0), "{values:?}");
    assert!(values[&("Traffic by leaf switch", "leaf-0-2".to_owned())] >= 0.0);

    // Each panel that has data otherwise has it with lean metrics, or says which groups it needs.
    let mut missing = Vec::new();
    for (file, board) in boards.iter().filter(|(file, _)| *file != "host") {
        for panel in
            panels(board).into_iter().filter(|it| !text(it, "description").contains("the group"))
        {
            for target in list(panel, "targets") {
                let query = text(target, "expr");
                if lean.ask(query).is_empty() && !full.ask(query).is_empty() {
                    missing.push(format!("{file}: {}: {query}", panel["title"]));
                }
            }
        }
    }
    assert!(missing.is_empty(), "{}", missing.join("\n"));
}

fn text_of_value(series: &Value) -> f64 {
    series["value"][1].as_str().unwrap().parse().unwrap()
}

/// `deploy/prometheus/shards.yml` scrapes verdicts and counters in two jobs.
#[test]
fn panels_join_series_of_two_jobs() {
    let mut exporter = Exporter::demo(&["--fabric.interval=1s"]);
    exporter.wait_ready();
    let files: Vec<String> = rules::files("alerts", ".rules.yml")
        .iter()
        .map(|path| format!("{:?}", path.display().to_string()))
        .collect();
    let config = format!(
        "global: {{evaluation_interval: 2s}}\nrule_files: [{}]\n{}",
        files.join(", "),
        shards::sample(exporter.address(), 2)
    );
    let prometheus = Prometheus::configured(&config);
    shards::wait_scrapes(&prometheus, 2, 5.0);
    let jobs = "count(count by (job) ({__name__=~'infiniband_fabric_links|infiniband_port_symbol_errors_total'}))";
    assert_eq!(prometheus.number(jobs), Some(2.0));

    let switch = prometheus.query("topk(1, infiniband_node_info{node_type='switch'})");
    let mut values = BTreeMap::from([
        ("fabric", ".+".to_owned()),
        ("switch", text(&switch[0]["metric"], "guid").to_owned()),
        ("leaf", ".+".to_owned()),
        ("worst", ".+".to_owned()),
        ("__rate_interval", "1m".to_owned()),
        ("__range", "1h".to_owned()),
    ]);
    let link = prometheus.query("topk(1, infiniband_link_info)");
    for (name, label) in [
        ("link", "link"),
        ("guid_a", "guid"),
        ("port_a", "port"),
        ("guid_b", "peer_guid"),
        ("port_b", "peer_port"),
    ] {
        values.insert(name, text(&link[0]["metric"], label).to_owned());
    }
    let groups = promql::groups();
    let is_of_the_other_job = |metric: &str| {
        groups.get(metric).is_some_and(|group| {
            !promql::is_lean(group) && group != "hardware" && group != "modules"
        })
    };
    let mut joined = Vec::new();
    for (file, board) in
        dashboards().into_iter().filter(|(file, _)| file != "host" && file != "exporter")
    {
        for panel in panels(&board) {
            for target in list(panel, "targets") {
                let query = text(target, "expr");
                let metrics = promql::metrics(&filled(query)).unwrap();
                let joins = metrics.contains("infiniband_fabric_links")
                    && metrics.iter().any(|it| is_of_the_other_job(it));
                if !joins {
                    continue;
                }
                let place = format!("{file}: {} {}", text(panel, "title"), text(target, "refId"));
                let query = crate::dashboards::substituted(query, |name| values[name].clone());
                wait_until(LIMIT, &place, || (!prometheus.query(&query).is_empty()).then_some(()));
                joined.push(place);
            }
        }
    }
    assert!(joined.len() >= 5, "{joined:?}");
    assert!(exporter.stop().success());
}
