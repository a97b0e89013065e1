//! The verb `top` on a pseudo-terminal.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use test_rig as rig;

use std::io::Read;
use std::process::Command;
use std::time::Duration;

use rig::child::Running;
use rig::pty::{OnTerminal, attach};
use rig::{Exporter, program};

const UP: &str = "\x1b[A";
const DOWN: &str = "\x1b[B";
const ESC: &str = "\x1b";
const ENTER: &str = "\r";

/// A demo in which a cable has been bad for some seconds.
fn demo() -> Exporter {
    // The events of the first minutes follow each other within seconds.
    let mut exporter = Exporter::demo(&["--fabric.interval=1s", "--speedup=30"]);
    exporter.wait_ready();
    exporter
}

fn top(exporter: &Exporter, rows: u16, columns: u16) -> OnTerminal {
    let url = format!("http://{}", exporter.address());
    OnTerminal::spawn(program(), &["top", "--refresh=1s", "--url", &url], rows, columns)
}

/// The selected row of a table, which is below the header.
fn selected(top: &OnTerminal) -> Option<String> {
    top.reversed_line(4).filter(|line| line.contains(" port "))
}

#[test]
fn views_rows_filter_order_and_ports_are_reached_by_keys() {
    let mut exporter = demo();
    let mut top = top(&exporter, 24, 80);
    top.wait("a bad link", |text| text.contains("\nbad ") && text.contains("q quit"));
    // A screen may be read while it is drawn.
    let whole = ["First: ", "swept", " nodes"];
    let text = top.wait("a whole screen", |text| whole.iter().all(|it| text.contains(it)));
    assert!(text.lines().all(|line| line.chars().count() <= 80), "{text}");

    // A row, its ports, and back.
    let wait_selected = |top: &OnTerminal, what: &str, is_it: &dyn Fn(&str) -> bool| {
        top.wait(what, |_| selected(top).is_some_and(|row| is_it(&row)));
        selected(top).unwrap()
    };
    picture(&top);
    let first = wait_selected(&top, "a selected row", &|_| true);
    top.keys(DOWN);
    let second = wait_selected(&top, "the next row", &|row| row != first);
    top.keys(UP);
    wait_selected(&top, "the first row", &|row| row != second);
    top.keys(ENTER);
    let ports = top.wait("both ports", |text| text.contains("fec_corrected_blocks"));
    assert!(ports.contains("state") && ports.contains("Active"), "{ports}");
    top.wait("what was counted since the reading before", |text| text.contains("(+"));
    // End scrolls down.
    top.keys("\x1b[F");
    top.wait("the last counters", |text| text.contains("unicast_transmit_packets"));
    top.keys(ESC);
    top.wait_for("END A");

    // The order of the worst cables, and a filter in several spellings.
    top.keys("s");
    top.wait_for("by errors");
    for filter in ["leaf-0-1", "LEAF-0-1", "leaf-0-1/9", "'leaf", "leaf-0-1 port 9"] {
        top.keys("/");
        top.wait_for("filter: ");
        top.keys(&format!("{}{filter}{ENTER}", "\x7f".repeat(30)));
        let is_listed = |text: &str| {
            let rows = text.lines().filter(|line| line.contains(" port "));
            let mut rows = rows.take_while(|line| !line.contains(" – ")).peekable();
            let of_it = |row: &str| {
                row.contains("leaf-0-1 ") && (!filter.contains('9') || row.contains(" 9 "))
            };
            text.contains(&format!("filter: {filter}"))
                && match filter {
                    "'leaf" => text.contains("no links"),
                    _ => rows.peek().is_some() && rows.all(of_it),
                }
        };
        top.wait(filter, is_listed);
    }
    top.keys(ESC);
    top.wait("no filter", |text| !text.contains("filter: leaf") && text.contains("END A"));

    for (key, head) in [("2", "FROM"), ("3", "congestion"), ("4", "PLACE"), ("1", "END A")] {
        top.keys(key);
        top.wait_for(head);
    }
    // By Tab, and the ports of an event's link.
    top.keys("\t");
    top.wait("traffic with rates", |text| text.contains("b/s") && text.contains("by utilization"));
    top.keys("\x1b[Z");
    top.wait_for("END A");
    top.keys("?");
    top.wait_for("a page up or down");
    top.keys("?p");
    top.wait_for("paused");
    top.keys("q");
    assert!(top.wait_for_end().success());
    assert!(exporter.stop().success());
}

/// The picture in the documentation: the screen as it is.
fn picture(top: &OnTerminal) {
    let svg = top.svg("fabric-exporter top at 80x24");
    assert!(svg.contains(">bad") && svg.contains("VERDICT"), "{svg}");
    if std::env::var_os("UPDATE_DOCS").is_some() {
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/docs/pictures/top.svg");
        std::fs::write(path, svg).unwrap();
    }
}

#[test]
fn screen_follows_the_size_of_the_terminal() {
    let mut exporter = demo();
    let mut top = top(&exporter, 24, 80);
    top.wait_for("REASON");
    top.resize(6, 30);
    top.wait_for("too small: 40x8 needed");
    top.resize(8, 40);
    top.wait_for("VERDICT");
    top.resize(50, 200);
    top.wait("a wide screen", |text| {
        let is_whole = text.lines().last().is_some_and(|line| line.contains("quit"));
        text.lines().any(|line| line.chars().count() > 100) && text.contains("REASON") && is_whole
    });
    // Ctrl-C is a key.
    top.keys("\x03");
    assert!(top.wait_for_end().success());
    assert!(exporter.stop().success());
}

#[test]
fn exporter_that_goes_away_is_reported_and_the_data_stays() {
    let mut exporter = demo();
    let mut top = top(&exporter, 24, 80);
    top.wait_for("REASON");
    assert!(exporter.stop().success());
    let text = top.wait_for("request failed");
    assert!(text.contains("data of") || text.contains("VERDICT"), "{text}");
    assert!(text.contains("VERDICT"), "{text}");
    top.signal("TERM");
    assert!(top.wait_for_end().success());
}

#[test]
fn without_a_terminal_or_an_exporter_it_ends_with_an_error() {
    let mut command = Command::new(program());
    let output = command.args(["top", "--url=http://127.0.0.1:1"]).output().unwrap();
    assert_eq!(output.status.code(), Some(2));
    assert!(String::from_utf8_lossy(&output.stderr).contains("links --watch"));
    let mut top = OnTerminal::spawn(program(), &["top", "--url=http://127.0.0.1:1"], 24, 80);
    assert_eq!(top.wait_for_end().code(), Some(1));
    top.wait_for("is an exporter running there?");
}

/// Without a session of its own, as below a supervisor that closed the terminal, no SIGHUP reports that the terminal is
/// gone: its end is read again and again.
#[test]
fn it_ends_when_its_terminal_is_gone() {
    let exporter = demo();
    let url = format!("http://{}", exporter.address());
    let mut command = Command::new(program());
    command.args(["top", "--refresh=1s", "--url", &url]).env("TERM", "xterm-256color");
    let mut master = attach(&mut command);
    let mut top = Running::spawn("top", &mut command);
    drop(command);
    let (mut shown, mut bytes) = (String::new(), [0; 4096]);
    // The alternate screen.
    while !shown.contains("\x1b[?1049h") {
        let count = master.read(&mut bytes).unwrap();
        shown.push_str(&String::from_utf8_lossy(&bytes[..count]));
    }
    drop(master);
    assert!(top.wait_at_most(Duration::from_secs(30)).is_some(), "top still runs");
}
