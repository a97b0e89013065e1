//! The sample configurations for Prometheus.

use crate::judges::{beside, text, yaml};
use test_rig::promtool::fed;
use test_rig::rules;

const FOLDER: &str = "deploy/prometheus";

#[test]
fn prometheus_accepts_each_sample_config() {
    let readme = rules::text(&rules::path(FOLDER).join("README.md"));
    let samples = rules::files(FOLDER, ".yml");
    assert_eq!(samples.len(), 4);
    for sample in samples {
        let name = rules::file_name(&sample);
        assert!(readme.contains(&format!("({name})")), "{name}");
        let dir = beside(&[
            (name.as_str(), sample.clone()),
            ("alerts", rules::path("alerts")),
            ("targets", rules::path(FOLDER).join("targets")),
        ]);
        std::fs::create_dir(dir.path().join("tls")).unwrap();
        for file in ["ca.crt", "password"] {
            std::fs::write(dir.path().join("tls").join(file), "").unwrap();
        }
        let config = dir.path().join(&name);
        let (code, said) = fed("promtool", &["check", "config", config.to_str().unwrap()], "");
        assert_eq!(code, Some(0), "{name}: {said}");
        assert!(said.contains("cables.rules.yml"), "no rules: {said}");
    }
}

/// Rules identify the exporter's `up` by its job.
#[test]
fn job_names_match_the_rules() {
    for sample in rules::files(FOLDER, ".yml") {
        let config = yaml(&sample);
        for job in config["scrape_configs"].as_array().unwrap() {
            assert!(text(job, "/job_name").starts_with("fabric-exporter"), "{job}");
        }
    }
}
