//! The map in a browser: cards, masks, what opens, and the picture as a file.

use std::io::Write;
use std::process::{Command, Stdio};
use std::time::Duration;

use crate::pages::demo;
use test_rig::browser::{Browser, TAB};
use test_rig::{Exporter, require, wait_until};

/// The cards that are shown.
const SHOWN: &str = "return [...document.querySelectorAll('.info')]
    .filter((it) => getComputedStyle(it).display != 'none').map((it) => it.textContent).join('|')";

fn shown(browser: &Browser) -> String {
    browser.run(SHOWN).as_str().unwrap().to_owned()
}

fn guid(exporter: &Exporter, name: &str) -> String {
    let topology: serde_json::Value =
        serde_json::from_str(exporter.get("/api/v1/topology", &[]).text()).unwrap();
    let switches = topology["fabrics"][0]["switches"].as_array().unwrap();
    let switch = switches.iter().find(|switch| switch["node"] == name).unwrap();
    switch["guid"].as_str().unwrap().to_owned()
}

/// Waits for the bad cable at leaf-0-1 and for readings of all kinds.
fn wait_for_story(exporter: &Exporter) {
    wait_until(Duration::from_secs(60), "a bad cable and temperatures", || {
        let page = exporter.get("/topology", &[]);
        let says = |text: &str| page.text().contains(text);
        (says("leaf-0-1 port 10 – spine-0 port 4: bad") && says("ASIC")).then_some(())
    });
}

#[test]
fn card_shows_under_the_pointer_and_with_keyboard_focus() {
    let exporter = demo(&[]);
    wait_for_story(&exporter);
    let browser = Browser::at(exporter.address(), (1280, 1000));
    browser.open("/topology?refresh=off");
    assert_eq!(shown(&browser), "");
    browser.hover("a[aria-label^='leaf-0-1;'] > rect");
    let card = shown(&browser);
    for text in ["leaf-0-1", "bad, ", "HCA", "NDR", "utilization", "Bit errors", "ASIC", "Show its"]
    {
        assert!(card.contains(text), "{text}: {card}");
    }
    assert!(!card.contains('|'), "one card at a time: {card}");
    // Nothing is above the card, and it stays while the pointer is over it: its links can be clicked.
    let link = ".over:hover .info a[href^='/link/']";
    browser.hover(link);
    assert_eq!(shown(&browser), card);
    browser.click(link);
    assert!(browser.path().starts_with("/link/0x"), "{}", browser.path());

    browser.open("/topology?refresh=off");
    browser.run("document.querySelector(\"a[aria-label^='leaf-0-1 ']\")?.focus()");
    browser.run("document.querySelector(\"a[aria-label*='spine-0'][href^='/link/']\").focus()");
    let card = shown(&browser);
    assert!(card.contains("spine-0") && card.contains("utilization"), "{card}");
    // The next stops are the links of the card.
    browser.press(TAB);
    let focused = browser.run("return document.activeElement.closest('.info')?.textContent");
    assert_eq!(focused.as_str(), Some(&*card));
    assert_eq!(shown(&browser), card);
    assert_eq!(browser.complaints(), [""; 0]);
}

#[test]
fn each_choice_is_in_the_address_and_keeps_the_others() {
    let exporter = demo(&[]);
    wait_for_story(&exporter);
    let leaf = guid(&exporter, "leaf-0-2");
    let browser = Browser::at(exporter.address(), (1280, 1000));
    browser.open("/topology?refresh=off");
    let main = || browser.text("main");
    browser.click("nav[aria-label=Mask] li:nth-child(2) a");
    assert_eq!(browser.path(), "/topology?refresh=off&mask=errors");
    assert!(main().contains("Bit errors of both directions"), "{}", main());
    browser.click("nav[aria-label=Window] li:nth-child(3) a");
    assert_eq!(browser.path(), "/topology?refresh=off&mask=errors&window=1h");
    assert!(main().contains("from the history"), "{}", main());
    browser.click("a[aria-label='Show the hosts of leaf-0-2']");
    let opened = format!("/topology?refresh=off&mask=errors&window=1h&open={leaf}#open-{leaf}");
    assert_eq!(browser.path(), opened);
    let heading = "return document.getElementById(location.hash.slice(1)).textContent";
    assert_eq!(browser.run(heading), "leaf-0-2 and its 11 hosts");
    browser.click("nav[aria-label=Mask] li:nth-child(5) a");
    let rest = format!("window=1h&open={leaf}");
    assert_eq!(browser.path(), format!("/topology?refresh=off&mask=temperature&{rest}"));
    assert!(main().contains("°C"), "{}", main());
    browser.click("a[aria-label^='Close leaf-0-2']");
    assert_eq!(browser.path(), "/topology?refresh=off&mask=temperature&window=1h#map");
    assert_eq!(browser.complaints(), [""; 0]);
    for (query, status, says) in [
        ("mask=colour", 400, "must be one of: verdict, errors, utilization"),
        ("window=7d", 400, "must be one of: 12m, 125m, 1h, 24h"),
        ("open=leaf", 400, "must be the GUID of a switch"),
        ("open=0x99", 200, "No switch of this fabric has the GUID"),
    ] {
        for path in ["/topology", "/topology.svg"] {
            let answer = exporter.get(&format!("{path}?{query}"), &[]);
            assert_eq!(answer.status, status, "{path}?{query}");
            let is_said = path == "/topology.svg" && status == 200 || answer.text().contains(says);
            assert!(is_said, "{path}?{query}: {}", answer.text());
        }
    }
}

/// What Python's parser, which is expat, says of an XML file.
fn parsed(xml: &str) -> String {
    let script = "import sys, xml.etree.ElementTree as tree\n\
        root = tree.fromstring(sys.stdin.buffer.read())\n\
        names = [it.tag.split('}')[1] for it in root.iter()]\n\
        print(root.tag, len(names), sorted(set(names)))";
    let mut python = Command::new(require("python3"));
    python.args(["-c", script]).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = python.spawn().unwrap();
    child.stdin.take().unwrap().write_all(xml.as_bytes()).unwrap();
    let output = child.wait_with_output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

#[test]
fn picture_is_a_file_that_needs_nothing_else() {
    let dir = tempfile::tempdir().unwrap();
    // A name that neither HTML nor XML can have as it is.
    let aliases = dir.path().join("names");
    std::fs::write(&aliases, "0x0002c90200000000 \"</title>&lt; \u{1}\u{7f}'x'\"\n").unwrap();
    let exporter = demo(&[&format!("--fabric.node-name-map={}", aliases.display())]);
    wait_for_story(&exporter);
    let browser = Browser::at(exporter.address(), (1280, 1000));
    let leaf = guid(&exporter, "leaf-0-1");
    for mask in ["verdict", "errors", "utilization", "congestion", "temperature", "speed"] {
        let answer = exporter.get(&format!("/topology.svg?mask={mask}&open={leaf}"), &[]);
        assert_eq!(answer.status, 200, "{mask}");
        assert_eq!(answer.header("content-type"), Some("image/svg+xml"));
        let attached = format!("attachment; filename=\"topology-default-{mask}.svg\"");
        assert_eq!(answer.header("content-disposition"), Some(&*attached));
        let text = answer.text();
        for (what, says) in [
            ("fabric", "Fabric default: "),
            ("time", "As of 20"),
            ("dark colors", "prefers-color-scheme: dark"),
            ("legend", "unknown ("),
            ("what is open", "leaf-0-1 and its 11 hosts"),
            ("what a card says", "utilization "),
        ] {
            assert!(text.contains(says), "{mask}: {what}");
        }
        assert!(!text.contains("href") && !text.contains("script"), "{mask}: leads nowhere");
        let root = parsed(text);
        assert!(root.starts_with("{http://www.w3.org/2000/svg}svg "), "{root}");

        let file = dir.path().join(format!("{mask}.svg"));
        std::fs::write(&file, text).unwrap();
        let mut papers = Vec::new();
        for scheme in ["light", "dark"] {
            browser.prefer(scheme);
            browser.open_file(&file);
            let script = "return getComputedStyle(document.querySelector('.paper')).fill";
            papers.push(browser.run(script).as_str().unwrap().to_owned());
        }
        assert_ne!(papers[0], papers[1], "{mask}");
        let wide = "return document.documentElement.getBBox().width";
        assert!(browser.run(wide).as_f64().unwrap() > 1_000.0, "{mask}");
    }
    assert_eq!(browser.complaints(), [""; 0]);
}
