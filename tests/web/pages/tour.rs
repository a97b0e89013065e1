//! The tour in docs/tour.md is true for the demo: its table of events, and each text that it says a page shows.

use std::path::Path;
use std::process::Command;
use std::time::Duration;

use ib_sim::scenario::{Overrides, Scenario};

use crate::pages::demo;
use test_rig::{program, wait_until};

const TOUR: &str = "docs/tour.md";

fn tour() -> String {
    std::fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join(TOUR)).unwrap()
}

#[test]
fn tour_has_the_events_of_the_demo() {
    let story = Scenario::demo(None).unwrap().resolve(&Overrides::default()).unwrap();
    let row = |(at, what): &(Duration, String)| {
        format!("| {}:{:02} | {what} |\n", at.as_secs() / 60, at.as_secs() % 60)
    };
    let rows: String = story.descriptions.iter().map(row).collect();
    let [begin, end] = ["<!-- events -->\n", "<!-- /events -->\n"];
    let page = tour();
    let (before, rest) = page.split_once(begin).unwrap();
    let (_, after) = rest.split_once(end).unwrap();
    let made = format!("{before}{begin}| time | event |\n|---|---|\n{rows}{end}{after}");
    if std::env::var_os("UPDATE_DOCS").is_some() {
        std::fs::write(Path::new(env!("CARGO_MANIFEST_DIR")).join(TOUR), &made).unwrap();
    }
    assert!(tour() == made, "{TOUR} is out of date: make docs");
}

/// What readers see of a page.
fn visible(html: &str) -> String {
    let body = html.split_once("<main").map_or(html, |(_, rest)| rest);
    let parts = body.split('<').map(|part| part.split_once('>').map_or(part, |(_, text)| text));
    let text = parts.collect::<String>();
    text.replace("&amp;", "&").split_whitespace().collect::<Vec<_>>().join(" ")
}

/// The parts between two markers.
fn between(text: &str, marker: &str) -> Vec<String> {
    let parts = text.split(marker).skip(1).step_by(2);
    parts.map(|part| part.split_whitespace().collect::<Vec<_>>().join(" ")).collect()
}

/// A section is about the page in its heading, or about the output of the command in its first block. What is in bold
/// type is there.
#[test]
fn pages_show_what_the_tour_says() {
    let tour = tour();
    let sections: Vec<&str> = tour.split("\n## ").skip(1).collect();
    let mut exporter = demo(&[]);
    let url = format!("http://{}", exporter.address());
    let mut checked = 0;
    for section in sections {
        let (heading, body) = section.split_once('\n').unwrap();
        let command = body.split_once("$ fabric-exporter ").map(|(_, rest)| {
            rest.split_once('\n').unwrap().0.replace("http://127.0.0.1:10315", &url)
        });
        let path = between(heading, "`").into_iter().find(|it| it.starts_with('/'));
        for says in between(body, "**") {
            checked += 1;
            let what = format!("{heading}: {says}");
            wait_until(Duration::from_secs(120), &what, || {
                let shown = match (&path, &command) {
                    // That of the worst link.
                    (Some(path), _) if path == "/link/…" => {
                        let overview = exporter.get("/", &[]);
                        let worst =
                            overview.text().split("href=\"").find(|it| it.starts_with("/link/"))?;
                        let path = worst.split('"').next().unwrap().replace("&amp;", "&");
                        visible(exporter.get(&path, &[]).text())
                    }
                    (Some(path), _) => visible(exporter.get(path, &[]).text()),
                    (None, Some(command)) => {
                        let mut run = Command::new(program());
                        let output = run.args(command.split_whitespace()).output().unwrap();
                        let text = String::from_utf8(output.stdout).unwrap();
                        text.split_whitespace().collect::<Vec<_>>().join(" ")
                    }
                    (None, None) => panic!("{heading} has neither a page nor a command"),
                };
                shown.contains(&says).then_some(())
            });
        }
    }
    assert!(checked > 15, "{checked}");
    assert!(exporter.stop().success());
}
