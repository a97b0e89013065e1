//! Lists as pages and as CSV, and what the frame of a page adds: the refresh, the title, links to Grafana.

use std::time::Duration;

use crate::pages::{demo, overview};
use test_rig::browser::Browser;
use test_rig::{Exporter, wait_until};

/// The rows of a list as CSV, without the header line.
fn csv(exporter: &Exporter, address: &str) -> (String, Vec<Vec<String>>) {
    let answer = exporter.get(address, &[]);
    assert_eq!(answer.status, 200, "{address}: {}", answer.text());
    assert_eq!(answer.header("content-type"), Some("text/csv; charset=utf-8"), "{address}");
    let mut lines = answer.text().split("\r\n").filter(|line| !line.is_empty());
    let header = lines.next().unwrap().to_owned();
    let rows = lines.map(|line| line.split(',').map(str::to_owned).collect()).collect();
    (header, rows)
}

/// The place of a column.
fn place(header: &str, name: &str) -> usize {
    header.split(',').position(|it| it == name).unwrap_or_else(|| panic!("{name}: {header}"))
}

#[test]
fn lists_are_sorted_filtered_and_exported() {
    let exporter = demo(&[]);
    wait_until(Duration::from_secs(60), "traffic and a bad link", || {
        let fabric = overview(&exporter)["fabrics"][0].clone();
        (fabric["traffic"]["busiest"].as_array().is_some_and(|it| it.len() == 10)
            && fabric["verdicts"]["bad"].as_u64() > Some(0))
        .then_some(())
    });
    // 36 hosts with a link each, one with eight, and four leaves with six uplinks each.
    for (path, rows) in [("/links", 68), ("/switches", 6), ("/hosts", 44)] {
        let (header, all) = csv(&exporter, &format!("{path}?format=csv"));
        assert_eq!(all.len(), rows, "{path}");
        let used = place(&header, "utilization");
        let values = |address: &str| -> Vec<f64> {
            let rows = csv(&exporter, address).1;
            rows.iter().filter_map(|row| row[used].parse().ok()).collect()
        };
        let sorted = values(&format!("{path}?format=csv&sort=utilization"));
        assert!(!sorted.is_empty() && sorted[0] > 0.1, "{path}: {sorted:?}");
        assert!(sorted.is_sorted_by(|a, b| a >= b), "{path}: {sorted:?}");
        let reversed = values(&format!("{path}?format=csv&sort=utilization&order=reverse"));
        assert!(reversed.is_sorted(), "{path}: {reversed:?}");
    }
    // The same link is the worst one of the list, and the one that a filter by its reason leaves.
    let (header, links) = csv(&exporter, "/links?format=csv");
    let [verdict, speed] = ["verdict", "speed"].map(|name| place(&header, name));
    assert_eq!((&*links[0][verdict], &*links[0][speed]), ("bad", "NDR"));
    let flapping = csv(&exporter, "/links?format=csv&reason=flapping").1;
    assert!(flapping.iter().all(|row| row[0].contains("leaf-0-2 port 3")), "{flapping:?}");
    assert_eq!(csv(&exporter, "/links?format=csv&speed=HDR").1.len(), 0);
    assert_eq!(csv(&exporter, "/links?format=csv&speed=NDR&text=SPINE-1").1.len(), 12);
    assert_eq!(csv(&exporter, "/hosts?format=csv&text=host-3").1.len(), 7);
    // In the browser: by a click on the heading, and the other way by another one.
    let browser = Browser::at(exporter.address(), (1280, 900));
    browser.open("/hosts");
    let first = || browser.text("tbody tr:first-child th");
    browser.click("thead th:first-child a");
    assert_eq!((first().as_str(), browser.path().as_str()), ("gpu-0 mlx5_0", "/hosts?sort=name"));
    browser.click("thead th:first-child a");
    assert_eq!(first(), "host-35");
    let sorted = "return document.querySelector('thead th').getAttribute('aria-sort')";
    assert_eq!(browser.run(sorted), "descending");
    assert_eq!(browser.complaints(), [""; 0]);
}

#[test]
fn pages_refresh_until_they_are_paused() {
    let exporter = demo(&["--web.grafana-url=https://grafana.example/sub/"]);
    let refresh = |path: &str| exporter.get(path, &[]).header("refresh").map(str::to_owned);
    for (path, expected) in [
        ("/", Some("30")),
        ("/?refresh=60", Some("60")),
        ("/?refresh=off", None),
        ("/topology", Some("30")),
        ("/traffic", Some("30")),
        // Text would be lost that is being typed into a form.
        ("/links", None),
        ("/links?refresh=30", Some("30")),
        ("/runbooks", None),
        ("/nowhere", None),
        ("/api/v1/overview", None),
    ] {
        assert_eq!(refresh(path).as_deref(), expected, "{path}");
    }
    let icon = exporter.get("/-/icon.svg?bad", &[]);
    assert_eq!(icon.header("content-type"), Some("image/svg+xml"));
    let browser = Browser::at(exporter.address(), (1280, 600));
    wait_until(Duration::from_secs(60), "a bad link in the title", || {
        browser.open("/?refresh=5");
        let title = browser.run("return document.title");
        title.as_str().unwrap().contains(" bad - fabric-exporter").then_some(())
    });
    // The page is loaded again by itself, and where it was scrolled to stays.
    browser.run("window.before = true; window.scrollTo(0, 200)");
    wait_until(Duration::from_secs(60), "the page to be loaded again", || {
        (browser.run("return window.before === undefined && document.readyState == 'complete'")
            == true)
            .then_some(())
    });
    // The browser keeps the text in its place: a card above may have one line more or less than before.
    let scrolled = browser.run("return window.scrollY").as_f64().unwrap();
    assert!((150.0..=250.0).contains(&scrolled), "{scrolled}");
    browser.click(".live a");
    assert_eq!(browser.path(), "/?refresh=off");
    browser.click(".cables a");
    let grafana = browser.run("return [...document.links].map((it) => it.href).join(' ')");
    let board =
        "https://grafana.example/sub/d/fabric-exporter-cable?var-fabric=default&var-link=0x";
    assert!(grafana.as_str().unwrap().contains(board), "{grafana}");
    assert_eq!(browser.complaints(), [""; 0]);
}
