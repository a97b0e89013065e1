//! The OpenAPI description is valid, and real responses match it.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use test_rig as rig;

use std::process::Command;
use std::time::{Duration, SystemTime};

use rig::{Exporter, require, tools};
use serde_json::{Value, json};

#[test]
fn responses_match_the_openapi_description() {
    let mut exporter =
        Exporter::demo(&["--clock=30", "--fabric.interval=15s", "--fabric.timeout=5s"]);
    exporter.wait_ready();
    exporter.wait_sweeps(8);
    let told = |path: &str| -> Value {
        let answer = exporter.get(path, &[]);
        assert_eq!(answer.status, 200, "{path}: {}", answer.text());
        serde_json::from_str(answer.text()).unwrap_or_else(|error| panic!("{path}: {error}"))
    };
    let document = told("/api/v1/openapi.json");
    let link = told("/api/v1/links")["fabrics"][0]["links"][0].clone();
    let (id, guid) = (link["link"].as_str().unwrap(), link["ends"][0]["guid"].as_str().unwrap());
    let stamp = |time: SystemTime| humantime::format_rfc3339_seconds(time).to_string();
    // The simulated clock is ahead.
    let hour = Duration::from_secs(3600);
    let (from, to) = (stamp(SystemTime::now() - hour), stamp(SystemTime::now() + hour));
    let value = |path: &str, key: &str| match key {
        "host" => "host-1".to_owned(),
        "from" if path == "/api/v1/route" => "host-1".to_owned(),
        "to" if path == "/api/v1/route" => "host-6".to_owned(),
        "called" => "leaf-0-1[10]".to_owned(),
        "from" | "diff" => from.clone(),
        "to" | "at" => to.clone(),
        "port" => format!("{guid}:1"),
        "detail" => "all".into(),
        "q" => "host-1".into(),
        "serial" => "MT2512".into(),
        other => panic!("{other} is asked for"),
    };
    let mut answers = Vec::new();
    for (path, asked) in document["paths"].as_object().unwrap() {
        let keys = asked["get"]["parameters"].as_array().unwrap().iter();
        let is_asked = |key: &&Value| {
            key["in"] == "query"
                && (key["required"] == true || key["name"] == "port" && !path.contains("events"))
        };
        let pairs = keys.filter(is_asked).map(|key| {
            let key = key["name"].as_str().unwrap();
            format!("{key}={}", value(path, key))
        });
        let address = path.replace("{id}", id).replace("{guid}", guid);
        let address = format!("{address}?{}", pairs.collect::<Vec<_>>().join("&"));
        if path.ends_with("/dump") {
            assert_eq!(exporter.get(&address, &[]).status, 200);
            continue;
        }
        let answer = told(&address);
        let list = answer.get("events").unwrap_or(&answer);
        assert!(!list.as_array().is_some_and(Vec::is_empty), "{address} shows nothing");
        answers.push(json!({"path": path, "answer": answer}));
    }
    assert!(answers.len() > 12, "{}", answers.len());
    let workshop = tools::npm("tests/web/pages/npm");
    let file = workshop.join("answers.json");
    std::fs::write(&file, json!({"document": document, "answers": answers}).to_string()).unwrap();
    let output =
        Command::new(require("node")).arg("described.mjs").current_dir(&workshop).output().unwrap();
    let said = String::from_utf8_lossy(&output.stdout);
    let failed = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{said}{failed}");
    assert!(said.contains("changed answers are refused"), "{said}");
    assert!(exporter.stop().success());
}
