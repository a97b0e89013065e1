//! The pages in a browser.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod addresses;
mod hostile;
mod lists;
mod map;
mod pictures;
mod sound;
mod story;
mod tour;

use test_rig as rig;

use std::collections::BTreeSet;

use rig::Exporter;

/// A demo with a fast clock, so that its scenario takes seconds: one sweep per half second. A timeout of half
/// a second would be too short on a busy machine, so it is longer.
fn demo(flags: &[&str]) -> Exporter {
    let fast = ["--clock=30", "--fabric.interval=15s", "--fabric.timeout=5s"];
    let mut exporter = Exporter::demo(&[&fast, flags].concat());
    exporter.wait_ready();
    exporter
}

/// When the latest sweep ended that is recorded.
fn last_sweep(exporter: &Exporter) -> String {
    let span = exporter.get("/api/v1/history/span", &[]);
    let span: serde_json::Value = serde_json::from_str(span.text()).unwrap();
    span["last"].as_str().unwrap().to_owned()
}

/// The overview of the API.
fn overview(exporter: &Exporter) -> serde_json::Value {
    serde_json::from_str(exporter.get("/api/v1/overview", &[]).text()).unwrap()
}

/// The links of a page to the same site, without fragments.
fn links(html: &str) -> BTreeSet<String> {
    let targets = html.split(" href=\"").skip(1).filter_map(|rest| rest.split('"').next());
    targets
        .filter(|target| target.starts_with('/'))
        .map(|target| target.split('#').next().unwrap().replace("&amp;", "&"))
        .collect()
}

/// The kind of a page: the first part of its path.
fn kind(path: &str) -> &str {
    path.split(['?', '/']).nth(1).unwrap_or_default()
}
