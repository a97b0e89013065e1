//! From an overview with a problem to its cause: by mouse, and by keyboard alone.

use std::time::Duration;

use crate::pages::{demo, overview};
use test_rig::browser::{Browser, ENTER, TAB};
use test_rig::wait_until;

/// The link that goes bad in the demo's scenario, crates/ib-sim/src/scenario/demo.yml.
const BAD: [&str; 2] = ["leaf-0-1 port 10", "spine-0 port 4"];

#[test]
fn bad_cable_is_reached_by_clicks() {
    let exporter = demo(&[]);
    wait_until(Duration::from_secs(60), "the bad cable", || {
        let worst = overview(&exporter)["fabrics"][0]["worst_links"][0].clone();
        (worst["verdict"] == "bad" && worst["reasons"][0]["reason"] == "bit_errors").then_some(())
    });
    let browser = Browser::at(exporter.address(), (1280, 900));
    browser.open("/");
    assert!(browser.text(".lead").contains("bad link"), "{}", browser.text(".lead"));
    let worst = browser.text(".cables li:first-child");
    assert!(worst.contains("bad") && BAD.iter().all(|end| worst.contains(end)), "{worst}");
    browser.click(".cables li:first-child a");
    assert!(browser.path().starts_with("/link/0x"), "{}", browser.path());
    let page = browser.text("main");
    for says in ["symbol BER", "Reseat the cable", BAD[0], BAD[1]] {
        assert!(page.contains(says), "{says}: {page}");
    }
    // Its plot is drawn once it is recorded.
    wait_until(Duration::from_secs(30), "its plot", || {
        browser.open(&browser.path());
        (browser.run("return document.querySelectorAll('svg.plot rect').length").as_u64() > Some(0))
            .then_some(())
    });
    // All bad links are one click away.
    browser.open("/");
    browser.click(".verdicts a.bad");
    assert!(browser.path().starts_with("/links?") && browser.path().contains("verdict=bad"));
    assert!(browser.text("tbody").contains(BAD[0]));
    assert_eq!(browser.complaints(), [""; 0]);
}

#[test]
fn pages_work_with_the_keyboard_alone() {
    let exporter = demo(&[]);
    let browser = Browser::at(exporter.address(), (1280, 900));
    let focused = |what: &str| browser.run(&format!("return document.activeElement.{what}"));
    browser.open("/");
    browser.press(TAB);
    assert_eq!(focused("className"), "skip", "the first stop leads past all that is on each page");
    let seen = browser.run(
        "const it = document.activeElement, place = it.getBoundingClientRect();
         return place.left >= 0 && getComputedStyle(it).outlineStyle != 'none'",
    );
    assert_eq!(seen, true, "whoever is there sees it");
    browser.press(ENTER);
    assert_eq!(focused("id"), "main");
    // Through the navigation to the search, and on.
    browser.open("/");
    let mut stops = Vec::new();
    while focused("id") != "q" {
        assert!(stops.len() < 20, "{stops:?}");
        browser.press(TAB);
        let visible = "matches(':focus-visible')";
        assert_eq!(focused(visible), true, "{stops:?}");
        stops.push(focused("textContent").as_str().unwrap_or_default().trim().to_owned());
    }
    browser.press(&format!("spine-0[4]{ENTER}"));
    wait_until(Duration::from_secs(30), "what was searched for", || {
        browser.path().starts_with("/link/").then_some(())
    });
    browser.click("#q");
    browser.press(&format!("host-1{ENTER}"));
    wait_until(Duration::from_secs(30), "several to choose from", || {
        browser.path().starts_with("/search?q=host-1").then_some(())
    });
    assert!(
        browser.text("tbody tr:first-child").starts_with("node host-1 "),
        "the exact one first"
    );
    assert_eq!(browser.complaints(), [""; 0]);
}
