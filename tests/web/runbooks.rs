//! The runbooks that the exporter serves, and the metric from which alerts know its URL.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::collections::BTreeSet;

use fabric_api::address;
use test_rig::{Exporter, rules};

#[test]
fn each_alert_has_a_runbook_page() {
    let exporter = Exporter::demo(&["--web.external-url=https://ib.example/"]);
    let get = |path: &str, status: u16| {
        let response = exporter.get(path, &[]);
        assert_eq!(response.status, status, "{path}: {}", response.text());
        assert_eq!(response.header("content-type"), Some("text/html; charset=utf-8"), "{path}");
        assert!(response.header("content-security-policy").is_some(), "{path}");
        response.text().to_owned()
    };
    let index = get(address::RUNBOOKS, 200);
    let names: BTreeSet<String> = rules::alerts().into_iter().map(|alert| alert.name).collect();
    assert!(names.len() > 30, "{names:?}");
    for name in names {
        let path = address::runbook(&name);
        assert!(index.contains(&format!("<a href=\"{path}\">{name}</a>")), "{name}: {index}");
        let page = get(&path, 200);
        for text in [&*format!("<h1>{name}</h1>"), "<strong>Impact</strong>", "<ol>"] {
            assert!(page.contains(text), "{name} without {text}: {page}");
        }
    }
    for unknown in ["/runbooks/InfinibandCable", "/runbooks/infinibandcablebad", "/runbooks/"] {
        get(unknown, 404);
    }
    let metrics = exporter.get("/metrics", &[]).text().to_owned();
    let info = "\nfabric_exporter_web_info{external_url=\"https://ib.example\"} 1\n";
    assert!(metrics.contains(info), "{metrics}");
}
