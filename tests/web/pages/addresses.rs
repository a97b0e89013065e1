//! All links on pages lead to existing pages.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::time::Duration;

use test_rig::wait_until;

use crate::pages::{demo, kind, last_sweep, links};

/// The most pages of one kind to load: each node and each link has one.
const OF_A_KIND: usize = 40;

const SWEPT_WITHIN: Duration = Duration::from_secs(120);

/// The ways to embed a script.
const SCRIPTS: [&str; 5] = ["<script", "javascript:", " onclick=", " onload=", " style="];

#[test]
fn links_lead_to_pages_and_pages_have_no_scripts() {
    let exporter = demo(&[]);
    // After the story, so that no link leads to a host that is gone meanwhile.
    wait_until(SWEPT_WITHIN, "the end of the story", || {
        exporter.get("/", &[]).text().contains("were cleared or reset").then_some(())
    });
    // This host may be recorded before the first sweep of the fabric.
    let moment = wait_until(SWEPT_WITHIN, "a recorded sweep", || {
        let moment = last_sweep(&exporter);
        (exporter.get(&format!("/?at={moment}"), &[]).status == 200).then_some(moment)
    });
    let mut seen: BTreeSet<String> = BTreeSet::from(["/".into(), format!("/?at={moment}")]);
    let mut ahead: VecDeque<String> = seen.iter().cloned().collect();
    let mut counts: BTreeMap<String, usize> = BTreeMap::new();
    while let Some(path) = ahead.pop_front() {
        let count = counts.entry(kind(&path).to_owned()).or_default();
        *count += 1;
        if *count > OF_A_KIND {
            continue;
        }
        let answer = exporter.get(&path, &[]);
        assert_eq!(answer.status, 200, "{path}: {}", answer.text());
        if answer.header("content-type") != Some("text/html; charset=utf-8") {
            continue;
        }
        let policy = answer.header("content-security-policy").unwrap();
        assert!(policy.starts_with("default-src 'none'") && !policy.contains("unsafe"), "{path}");
        let html = answer.text();
        for script in SCRIPTS {
            assert!(!html.contains(script), "{path}: {script}");
        }
        assert!(!html.contains(" src=\"http") && !html.contains("url("), "{path}");
        for link in links(html) {
            if seen.insert(link.clone()) {
                ahead.push_back(link);
            }
        }
    }
    let kinds: Vec<&str> = counts.keys().map(String::as_str).collect();
    for wanted in [
        "", "-", "api", "changes", "events", "host", "hosts", "link", "links", "metrics",
        "modules", "node", "switches", "topology", "traffic",
    ] {
        assert!(kinds.contains(&wanted), "nothing leads to /{wanted}: {counts:?}");
    }
    let later = format!("/changes?diff={}&at={moment}", last_sweep(&exporter));
    assert_eq!(exporter.get(&later, &[]).status, 400, "{later}");
    // Missing pages and wrong queries have error pages.
    for (path, status) in [
        ("/links?verdict=fine", 400),
        ("/links?page=0", 400),
        ("/links?reason=fine", 400),
        ("/links?speed=fast", 400),
        ("/switches?sort=fine", 400),
        ("/hosts?format=pdf", 400),
        ("/events?kind=fine", 400),
        ("/events?page=0", 400),
        ("/events?window=year", 400),
        ("/link/0x1:1-0x2:1?window=year", 400),
        ("/links?at=yesterday", 400),
        ("/links?at=1970-01-01T00:00:00Z", 404),
        ("/changes?diff=soon", 400),
        ("/nowhere", 404),
        ("/links?fabric=other", 404),
        ("/link/nothing", 404),
        ("/node/0x1", 404),
    ] {
        let answer = exporter.get(path, &[]);
        assert_eq!(answer.status, status, "{path}");
        assert!(answer.text().starts_with("<!DOCTYPE html>"), "{path}: {}", answer.text());
    }
}
