//! The metric names of other exporters, which the rules in `alerts/compat` record: the files match the table,
//! and the recorded values match those of the other exporters.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod fabric;
mod host;
mod table;
mod written;

use test_rig as rig;

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::time::Duration;

use ib_mad::counter::TABLE;
use rig::prometheus::Setup;
use rig::{Prometheus, promql, promtool};
use table::exporters;

fn root(path: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(path)
}

/// The texts of rule files. Missing objects are remembered for seconds instead of minutes, to keep the tests short.
fn rules(compat: &[&str]) -> Vec<String> {
    let file = |name: &&str| root(&format!("alerts/compat/{name}.rules.yml"));
    let text = |file: PathBuf| std::fs::read_to_string(file).unwrap().replace("[5m]", "[5s]");
    compat.iter().map(file).map(text).collect()
}

/// A Prometheus with these jobs and rules; it scrapes and evaluates every second.
fn prometheus(jobs: Vec<(String, Vec<String>)>, compat: &[&str]) -> Prometheus {
    Prometheus::start(&Setup {
        jobs,
        interval: Duration::from_secs(1),
        lookback: Duration::from_secs(300),
        rules: rules(compat),
        alertmanager: None,
        keep: None,
    })
}

/// Panics unless every rule could be evaluated.
fn assert_healthy(prometheus: &Prometheus) {
    for group in prometheus.ask("rules", &[])["groups"].as_array().unwrap() {
        for rule in group["rules"].as_array().unwrap() {
            assert_eq!(rule["health"], "ok", "{}: {}", rule["name"], rule["lastError"]);
        }
    }
}

#[test]
fn files_are_made_from_the_table() {
    let mut files = vec![("alerts/compat/README.md".to_owned(), written::page())];
    files.extend(exporters().iter().map(|exporter| {
        (format!("alerts/compat/{}.rules.yml", exporter.name), written::rules(exporter))
    }));
    for (name, text) in files {
        if std::env::var_os("UPDATE_DOCS").is_some() {
            std::fs::write(root(&name), &text).unwrap();
        }
        let found = std::fs::read_to_string(root(&name)).unwrap_or_default();
        assert!(found == text, "{name} is out of date: make docs");
    }
    let mut known: BTreeSet<String> =
        exporters().iter().map(|exporter| format!("{}.rules.yml", exporter.name)).collect();
    known.insert("README.md".to_owned());
    let found: BTreeSet<String> = std::fs::read_dir(root("alerts/compat"))
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    assert_eq!(found, known);
}

#[test]
fn promtool_accepts_the_rules() {
    for exporter in exporters() {
        let file = root(&format!("alerts/compat/{}.rules.yml", exporter.name));
        let (code, said) =
            promtool::fed("promtool", &["check", "rules", file.to_str().unwrap()], "");
        assert_eq!(code, Some(0), "{said}");
    }
}

#[test]
fn states_of_switches_and_hcas_are_recorded() {
    let file = root("tests/alerting/compat/treydock.test.yml");
    let (code, said) = promtool::fed("promtool", &["test", "rules", file.to_str().unwrap()], "");
    assert_eq!(code, Some(0), "{said}");
}

#[test]
fn recorded_names_are_unique_and_not_ours() {
    let ours = promql::exported();
    assert!(ours.contains("infiniband_port_symbol_errors_total") && ours.len() > 200);
    let mut seen = BTreeSet::new();
    for exporter in exporters() {
        let helpers = exporter.helpers.iter().map(|(_, rule)| rule);
        for rule in helpers.chain(exporter.rows.iter().flat_map(|row| &row.rules)) {
            assert!(!ours.contains(rule.record.as_str()), "{}", rule.record);
            assert!(seen.insert(rule.record.clone()), "{} twice", rule.record);
        }
        // Each is computed from existing metrics.
        for row in &exporter.rows {
            assert!(ours.contains(row.ours.as_str()), "{}", row.ours);
        }
    }
}

/// A new counter has an equivalent in another exporter, or is listed as one without.
#[test]
fn metrics_without_equivalent_are_listed() {
    let exporters = exporters();
    let told: BTreeSet<&str> = exporters
        .iter()
        .flat_map(|exporter| exporter.rows.iter().map(|row| row.ours.as_str()))
        .collect();
    let nobodys: Vec<&str> = TABLE
        .iter()
        .map(|row| row.metric)
        .filter(|metric| !told.contains(format!("infiniband_port_{metric}_total").as_str()))
        .collect();
    assert_eq!(
        nobodys,
        ["fec_corrected_blocks", "fec_uncorrectable_blocks", "fec_corrected_symbols"]
    );
}
