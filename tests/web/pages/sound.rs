//! Accessibility: contrast in light and dark, small screens, and screen readers (axe).

use std::collections::BTreeMap;
use std::time::Duration;

use serde_json::Value;

use crate::pages::{demo, kind, last_sweep, links};
use test_rig::browser::Browser;
use test_rig::{Exporter, tools, wait_until};

/// The lowest contrast of text to its background (WCAG 2.2, 1.4.3), from the styles that the browser
/// computed.
const CONTRAST: &str = "
    const channels = (text) => {
        const canvas = document.createElement('canvas').getContext('2d', {willReadFrequently: true});
        canvas.fillStyle = text; canvas.fillRect(0, 0, 1, 1);
        const [r, g, b, a] = canvas.getImageData(0, 0, 1, 1).data;
        return [r, g, b, a / 255];
    };
    const known = new Map();
    const colour = (text) => { if (!known.has(text)) known.set(text, channels(text)); return known.get(text); };
    const light = ([r, g, b]) => {
        const of = [r, g, b].map((it) => (it /= 255) <= 0.04045 ? it / 12.92 : ((it + 0.055) / 1.055) ** 2.4);
        return 0.2126 * of[0] + 0.7152 * of[1] + 0.0722 * of[2];
    };
    const behind = (it) => {
        for (; it; it = it.parentElement) {
            const paint = colour(getComputedStyle(it).backgroundColor);
            if (paint[3] == 1) return paint;
        }
        return [255, 255, 255, 1];
    };
    let least = [21, ''];
    const walk = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
    while (walk.nextNode()) {
        const it = walk.currentNode.parentElement;
        if (!walk.currentNode.data.trim() || !it.checkVisibility() || it.closest('svg, option')) continue;
        const [a, b] = [light(colour(getComputedStyle(it).color)), light(behind(it))];
        const ratio = (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05);
        if (ratio < least[0]) least = [ratio, it.outerHTML.slice(0, 200)];
    }
    return least;";

/// The violations that axe finds on the page, one per line.
fn unfit(browser: &Browser, axe: &str) -> Vec<String> {
    let asked = "const done = arguments[arguments.length - 1];
        axe.run(document, {resultTypes: ['violations']}).then(
            (said) => done(said.violations.map((it) => it.id + ': ' + it.help + ': '
                + it.nodes.map((node) => node.html.slice(0, 200)).join(' | '))),
            (error) => done([String(error)]));";
    let said = browser.run_until_done(&format!("{axe}\n{asked}"));
    said.as_array().unwrap().iter().map(|line| line.as_str().unwrap().to_owned()).collect()
}

/// One page of each kind: that of the worst link, of a switch at its end, and so on.
fn one_of_each(exporter: &Exporter) -> BTreeMap<String, String> {
    let mut pages: BTreeMap<String, String> = BTreeMap::new();
    for path in [
        "/",
        "/links",
        "/links?sort=utilization&order=reverse&refresh=30",
        "/switches",
        "/hosts",
        "/modules",
        "/modules?sort=temperature",
        "/traffic",
        "/events",
        "/topology",
        "/host",
        "/search?q=host-1",
        "/search",
        "/search?q=nobody",
        "/runbooks",
        "/runbooks/InfinibandLinkWidthReduced",
    ] {
        pages.insert(path.to_owned(), path.to_owned());
    }
    for from in ["/", "/links?text=leaf-0-1"] {
        for link in links(exporter.get(from, &[]).text()) {
            if ["link", "node"].contains(&kind(&link)) {
                pages.entry(kind(&link).to_owned()).or_insert(link);
            }
        }
    }
    let leaf = exporter.get("/api/v1/search?q=leaf-0-1", &[]);
    let leaf: Value = serde_json::from_str(leaf.text()).unwrap();
    let leaf = leaf["hits"][0]["page"].as_str().unwrap();
    pages.insert("a switch".into(), leaf.to_owned());
    let guid = leaf.split(['/', '?']).nth(2).unwrap();
    for mask in ["errors&window=1h", "utilization", "temperature"] {
        let map = format!("/topology?mask={mask}&open={guid}");
        pages.insert(map.clone(), map);
    }
    assert_eq!(pages.len(), 22, "{pages:?}");
    // The same of the past, and compared with the present.
    let at = last_sweep(exporter);
    let past: Vec<String> = pages.values().cloned().collect();
    let is_present_only =
        |path: &&String| path.starts_with("/runbooks") || path.contains("refresh=");
    for path in past.iter().filter(|path| !is_present_only(path)) {
        let path = format!("{path}{}at={at}", if path.contains('?') { '&' } else { '?' });
        pages.insert(path.clone(), path);
    }
    for path in ["/changes".to_owned(), format!("/changes?diff=1h&at={at}")] {
        pages.insert(path.clone(), path);
    }
    pages
}

#[test]
fn pages_are_accessible() {
    let exporter = demo(&[]);
    // Wait until the pages have everything that they can show.
    wait_until(Duration::from_secs(60), "the story", || {
        let told = exporter.get("/", &[]);
        ["Worst links", "Congestion", "were cleared or reset"]
            .iter()
            .all(|it| told.text().contains(it))
            .then_some(())
    });
    let axe = tools::npm("tests/web/pages/npm").join("node_modules/axe-core/axe.min.js");
    let axe = std::fs::read_to_string(axe).unwrap();
    let browser = Browser::at(exporter.address(), (1280, 900));
    let mut wrong = Vec::new();
    for path in one_of_each(&exporter).values() {
        for (scheme, width) in [("light", 1280), ("dark", 400)] {
            browser.prefer(scheme);
            browser.resize(width, 900);
            browser.open(path);
            let least = browser.run(CONTRAST);
            if least[0].as_f64() < Some(4.5) {
                wrong.push(format!("{path}, {scheme}: contrast {least}"));
            }
            let wide = browser.run("return document.documentElement.scrollWidth").as_u64();
            if wide > Some(width.into()) {
                wrong.push(format!("{path}: {wide:?} wide in a window of {width}"));
            }
            let found = unfit(&browser, &axe);
            wrong.extend(
                found.into_iter().map(|it| format!("{path}, {scheme}, {width} wide: {it}")),
            );
        }
        let complaints = browser.complaints();
        wrong.extend(complaints.into_iter().map(|it| format!("{path}: {it}")));
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
