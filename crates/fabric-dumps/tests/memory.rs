//! The memory for a text is at most 20 times its size and 64 MiB, also for texts of the shortest lines that a format has.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::fmt::Write;
use std::path::PathBuf;

use fabric_dumps::from_files;
use peak_alloc::PeakAlloc;

#[global_allocator]
static MEMORY: PeakAlloc = PeakAlloc;

const TEXT: usize = 3 << 20;

/// Lines until the text has its size.
fn lines(mut line: impl FnMut(u64, &mut String)) -> String {
    let mut text = String::with_capacity(TEXT + 1024);
    let mut nth = 0;
    while text.len() < TEXT {
        line(nth, &mut text);
        nth += 1;
    }
    text
}

fn db_csv() -> String {
    let mut text = "START_PORTS\nNodeGuid,PortNum\n".to_owned();
    text += &lines(|nth, text| writeln!(text, "{:#x},{}", 1 + nth / 200, nth % 200).unwrap());
    text += "END_PORTS\nSTART_LINKS\nNodeGuid1,PortNum1,NodeGuid2,PortNum2\n";
    text += &lines(|nth, text| {
        writeln!(
            text,
            "{:#x},{},{:#x},{}",
            1 + nth / 200,
            nth % 200,
            1_000_000 + nth / 200,
            nth % 200
        )
        .unwrap();
    });
    text + "END_LINKS\n"
}

fn texts() -> Vec<(&'static str, String)> {
    let mut texts = topologies();
    texts.extend(counters());
    texts
}

fn dense(nth: u64) -> (u64, u64) {
    (1 + nth / 200, 1 + nth % 200)
}

fn topologies() -> Vec<(&'static str, String)> {
    vec![
        ("db_csv", db_csv()),
        ("blank lines", "\n".repeat(TEXT)),
        ("short lines", "x\n".repeat(TEXT / 2)),
        ("damaged lines", "GUID 0x\n".repeat(TEXT / 8)),
        (
            "ibnetdiscover",
            "Ca 1 \"H-fffffff\"\n".to_owned()
                + &lines(|nth, text| {
                    if nth % 200 == 0 {
                        writeln!(text, "Switch 200 \"S-{:x}\"", 1 + nth / 200).unwrap();
                    }
                    writeln!(
                        text,
                        "[{}] \"S-{:x}\"[{}]#\"\"lid 1",
                        1 + nth % 200,
                        1_000_000 + nth / 200,
                        1 + nth % 200
                    )
                    .unwrap();
                }),
        ),
        (
            "ibnetdiscover -p",
            lines(|nth, text| {
                let (node, port) = dense(nth);
                writeln!(
                    text,
                    "SW 1 {port} {node:#x} 4x EDR - SW 1 {port} {:#x} ( '' - '' )",
                    1_000_000 + node
                )
                .unwrap();
            }),
        ),
        (
            "iblinkinfo",
            lines(|nth, text| {
                let (node, port) = dense(nth);
                if port == 1 {
                    writeln!(text, "Switch: {node:#x} :").unwrap();
                }
                writeln!(
                    text,
                    "{port}[]==(4X 5.0 Gbps Active/LinkUp)==>{:#x} 1 {port}[]\"\"()",
                    1_000_000 + node
                )
                .unwrap();
            }),
        ),
        (
            "iblinkinfo, down",
            lines(|nth, text| {
                let (node, port) = dense(nth);
                if port == 1 {
                    writeln!(text, "Switch: {node:#x} :").unwrap();
                }
                writeln!(text, "{port}[]==(Down/Polling)==>[]\"\"()").unwrap();
            }),
        ),
        (
            "lst",
            lines(|nth, text| {
                let (node, port) = dense(nth);
                writeln!(text, "{{ SW NodeGUID:{node:x} PN:{port:x} }} {{ SW NodeGUID:{:x} PN:{port:x} }} PHY=4x LOG=ACT SPD=25", 1_000_000 + node).unwrap();
            }),
        ),
    ]
}

fn counters() -> Vec<(&'static str, String)> {
    vec![
        (
            "ibqueryerrors",
            lines(|nth, text| {
                let (node, port) = dense(nth);
                writeln!(text, "GUID {node:#x} port {port}:[a==1]").unwrap();
            }),
        ),
        (
            "ibqueryerrors, counters",
            lines(|nth, text| {
                let (node, port) = dense(nth);
                writeln!(text, "GUID {node:#x} port {port}:[LinkDowned==1]").unwrap();
            }),
        ),
        (
            "perfquery",
            lines(|nth, text| {
                writeln!(
                    text,
                    "#Port counters: Lid {} port {}\nRcvData:1",
                    1 + nth / 200,
                    nth % 200
                )
                .unwrap();
            }),
        ),
        (
            "pm",
            lines(|nth, text| {
                let (node, port) = dense(nth);
                writeln!(text, "Port={port} GUID={node:x}\nport_xmit_wait=1").unwrap();
            }),
        ),
        (
            "cables",
            lines(|nth, text| {
                let (node, port) = dense(nth);
                writeln!(text, "Port={port} GUID={node:x}\nSN: 1").unwrap();
            }),
        ),
    ]
}

#[test]
fn memory_is_bounded_by_the_text() {
    let mut too_much = String::new();
    for (name, text) in texts() {
        let size = text.len();
        let bytes = text.into_bytes();
        MEMORY.reset_peak_usage();
        let before = MEMORY.current_usage();
        let outcome = from_files(vec![(PathBuf::from("text"), bytes)]);
        let peak = MEMORY.peak_usage() - before + size;
        let ratio = peak as f64 / size as f64;
        drop(outcome);
        // Much less than the 64 MiB, which a text of this size would not notice.
        if peak > 20 * size + (2 << 20) {
            writeln!(too_much, "{name}: {ratio:.1} times {size} bytes").unwrap();
        }
    }
    assert!(too_much.is_empty(), "{too_much}");
}
