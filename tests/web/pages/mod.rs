//! The pages, looked at with a browser.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod addresses;
mod hostile;
mod pictures;
mod sound;
mod story;

use test_rig as rig;

use std::collections::BTreeSet;

use rig::Exporter;

/// A demo whose clock runs so fast that its story is told in seconds: it is swept each half second. Half a
/// second of patience would be too little for a machine that is busy.
fn demo(flags: &[&str]) -> Exporter {
    let fast = ["--clock=30", "--fabric.interval=15s", "--fabric.timeout=5s"];
    let mut exporter = Exporter::demo(&[&fast, flags].concat());
    exporter.wait_ready();
    exporter
}

/// What the API tells at a glance.
fn overview(exporter: &Exporter) -> serde_json::Value {
    serde_json::from_str(exporter.get("/api/v1/overview", &[]).text()).unwrap()
}

/// The links of a page that stay on the site, without what comes after a `#`.
fn links(html: &str) -> BTreeSet<String> {
    let targets = html.split(" href=\"").skip(1).filter_map(|rest| rest.split('"').next());
    targets
        .filter(|target| target.starts_with('/'))
        .map(|target| target.split('#').next().unwrap().replace("&amp;", "&"))
        .collect()
}

/// What a page is one of: the beginning of its path.
fn kind(path: &str) -> &str {
    path.split(['?', '/']).nth(1).unwrap_or_default()
}
