//! What happens to text on its way: in a mail, a terminal, an editor, a web page, a log. The result is the same, or an
//! error or a remark says what was not used. It never differs in silence.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::fmt::Write as _;
use std::io::Write as _;
use std::path::PathBuf;

use fabric_dumps::{Dump, from_files};

/// The formats, and whether a file of this format needs another one with the topology.
const FORMATS: [(&str, bool); 10] = [
    ("db_csv", false),
    ("lst", false),
    ("net_dump", false),
    ("pm", true),
    ("cables", true),
    ("ibnetdiscover", false),
    ("portlist", false),
    ("iblinkinfo", false),
    ("ibqueryerrors", true),
    ("perfquery", true),
];

type Change = (&'static str, fn(&str) -> Vec<u8>);

fn each_line(text: &str, change: impl Fn(usize, &str) -> String) -> Vec<u8> {
    let lines = text.lines().enumerate().map(|(index, line)| change(index, line) + "\n");
    lines.collect::<String>().into_bytes()
}

/// Breaks lines at blanks, as mail programs do.
fn wrapped(text: &str, width: usize) -> Vec<u8> {
    each_line(text, |_, line| {
        let mut wrapped = String::new();
        let mut length = 0;
        for word in line.split(' ') {
            if length > 0 && length + word.len() > width {
                wrapped.push('\n');
                length = 0;
            } else if length > 0 || !wrapped.is_empty() {
                wrapped.push(' ');
            }
            wrapped.push_str(word);
            length += word.len() + 1;
        }
        wrapped
    })
}

/// Breaks lines after a number of characters, as terminals do.
fn folded(text: &str, width: usize) -> Vec<u8> {
    each_line(text, |_, line| {
        let chars: Vec<char> = line.chars().collect();
        let parts: Vec<String> = chars.chunks(width).map(|part| part.iter().collect()).collect();
        parts.join("\n")
    })
}

fn utf16(text: &str, bytes: fn(u16) -> [u8; 2], has_mark: bool) -> Vec<u8> {
    let mark = has_mark.then_some(0xfeff);
    mark.into_iter().chain(text.encode_utf16()).flat_map(bytes).collect()
}

fn gzip(text: &str) -> Vec<u8> {
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    encoder.write_all(text.as_bytes()).unwrap();
    encoder.finish().unwrap()
}

fn xz(text: &str) -> Vec<u8> {
    let options = lzma_rust2::XzOptions::with_preset(0);
    let mut writer = lzma_rust2::XzWriter::new(Vec::new(), options).unwrap();
    writer.write_all(text.as_bytes()).unwrap();
    writer.finish().unwrap()
}

/// Cuts a text in the middle of its line in the middle.
fn middle(text: &str) -> usize {
    let start = text[..text.len() / 2].rfind('\n').map_or(0, |at| at + 1);
    let end = text[start..].find('\n').map_or(text.len(), |at| start + at);
    let mut cut = usize::midpoint(start, end);
    while !text.is_char_boundary(cut) {
        cut += 1;
    }
    cut
}

/// Cuts a text in its last number.
fn in_last_number(text: &str) -> usize {
    text.rfind(|it: char| it.is_ascii_digit()).unwrap_or(text.len())
}

const CHANGES: [Change; 40] = [
    ("CR LF", |text| text.replace('\n', "\r\n").into_bytes()),
    ("CR", |text| text.replace('\n', "\r").into_bytes()),
    ("blanks at line ends", |text| each_line(text, |_, line| format!("{line}   "))),
    ("no line end", |text| text.trim_end().as_bytes().to_vec()),
    ("prompts", |text| format!("[root@mgmt ~]# tool -a\n{text}[root@mgmt ~]# exit\n").into_bytes()),
    ("code fence", |text| format!("Hi all,\n```text\n{text}```\nany idea?\n").into_bytes()),
    ("password prompt", |text| format!("[sudo] password for ops: {text}").into_bytes()),
    ("NUL at the end", |text| format!("{text}\0").into_bytes()),
    ("blank lines removed", |text| {
        text.lines()
            .filter(|line| !line.trim().is_empty())
            .flat_map(|line| [line, "\n"])
            .collect::<String>()
            .into_bytes()
    }),
    ("double spaced", |text| text.replace('\n', "\n\n").into_bytes()),
    ("indented", |text| each_line(text, |_, line| format!("    {line}"))),
    ("indented by a tab", |text| each_line(text, |_, line| format!("\t{line}"))),
    ("no-break spaces", |text| text.replace("  ", "\u{a0}\u{a0}").into_bytes()),
    ("unexpand", |text| text.replace("        ", "\t").into_bytes()),
    ("quoted", |text| each_line(text, |_, line| format!("> {line}"))),
    ("quoted twice", |text| each_line(text, |_, line| format!(">> {line}"))),
    ("bar", |text| each_line(text, |_, line| format!("| {line}"))),
    ("pdsh", |text| each_line(text, |_, line| format!("n01: {line}"))),
    ("nl", |text| each_line(text, |index, line| format!("{:6}\t{line}", index + 1))),
    ("grep -n", |text| each_line(text, |index, line| format!("{}:{line}", index + 1))),
    ("syslog", |text| {
        each_line(text, |index, line| {
            format!("Nov 27 03:12:{:02} n01 ibdump[71]: {line}", index % 60)
        })
    }),
    ("ISO times", |text| {
        each_line(text, |index, line| format!("2026-11-27T03:12:{:02}+01:00 {line}", index % 60))
    }),
    ("comment", |text| each_line(text, |_, line| format!("# {line}"))),
    ("colors", |text| each_line(text, |_, line| format!("\u{1b}[32m{line}\u{1b}[0m"))),
    ("UTF-16 LE", |text| utf16(text, u16::to_le_bytes, true)),
    ("UTF-16 BE", |text| utf16(text, u16::to_be_bytes, true)),
    ("UTF-16 without mark", |text| utf16(text, u16::to_le_bytes, false)),
    ("byte order mark", |text| format!("\u{feff}{text}").into_bytes()),
    ("curved quotation marks", |text| {
        let mut is_open = false;
        let curved = |char| match char {
            '"' => {
                is_open = !is_open;
                if is_open { '\u{201c}' } else { '\u{201d}' }
            }
            '\'' => '\u{2019}',
            char => char,
        };
        text.chars().map(curved).collect::<String>().into_bytes()
    }),
    ("HTML", |text| {
        text.replace('&', "&amp;")
            .replace('<', "&lt;")
            .replace('>', "&gt;")
            .replace('"', "&quot;")
            .into_bytes()
    }),
    ("gzip", gzip),
    ("zstd", |text| zstd::encode_all(text.as_bytes(), 1).unwrap()),
    ("xz", xz),
    ("upper-case digits", |text| {
        each_line(text, |_, line| {
            let word = |word: &str| match word.strip_prefix("0x") {
                Some(digits) => format!("0x{}", digits.to_ascii_uppercase()),
                None => word.to_owned(),
            };
            line.split(' ').map(word).collect::<Vec<_>>().join(" ")
        })
    }),
    ("wrapped by a mail", |text| wrapped(text, 76)),
    ("folded by a terminal", |text| folded(text, 80)),
    ("end lost", |text| text.as_bytes()[..middle(text)].to_vec()),
    ("cut in the last number", |text| text.as_bytes()[..in_last_number(text)].to_vec()),
    ("beginning lost", |text| text.as_bytes()[middle(text)..].to_vec()),
    ("two readings", |text| {
        let mut twice = text.to_owned();
        twice.write_str(text).unwrap();
        twice.into_bytes()
    }),
];

fn file(name: &str) -> String {
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR"))
        .join("tests/dumps")
        .join(format!("fabric.{name}"));
    std::fs::read_to_string(path).unwrap()
}

/// What a dump says, without its time.
fn said(dump: &Dump) -> String {
    let nodes = dump.nodes.iter().map(|(guid, node)| {
        format!(
            "{guid} {:?} {:?} {:?} {}\n",
            node.kind, node.description, node.lid, node.port_count
        )
    });
    let ports = dump.ports.iter().map(|(end, port)| {
        let module = port.module.as_ref().map(|module| module.serial_number);
        format!(
            "{end:?} {:?} {:?} {:?} {:?} {module:?}\n",
            port.state,
            port.width,
            port.speed,
            port.counters.values().collect::<Vec<_>>()
        )
    });
    nodes.chain(ports).chain(dump.links.iter().map(|link| format!("{link:?}\n"))).collect()
}

#[derive(Debug, PartialEq)]
enum Outcome {
    Same,
    /// It says that something is missing.
    Told(String),
    Silent(String),
}

fn outcome(format: &str, needs_topology: bool, bytes: Vec<u8>, expected: &str) -> Outcome {
    let mut files = vec![(PathBuf::from("changed"), bytes)];
    if needs_topology {
        files.push((PathBuf::from("net"), file("ibnetdiscover").into_bytes()));
    }
    let found = match from_files(files) {
        Ok(found) => found,
        Err(error) => return Outcome::Told(error.to_string()),
    };
    // Of two readings the first one counts.
    let dump = found.dumps.first().unwrap_or_else(|| panic!("{format}: no dump"));
    let said = said(dump);
    if said == expected {
        return Outcome::Same;
    }
    match found.remarks().find(|remark| remark.is_unused || remark.line > 0) {
        Some(remark) => Outcome::Told(remark.to_string()),
        None => Outcome::Silent(format!("expected\n{expected}found\n{said}")),
    }
}

#[test]
fn changed_text_is_read_or_told() {
    let (mut same, mut all) = (0, 0);
    let mut table = String::new();
    for (format, needs_topology) in FORMATS {
        let text = file(format);
        let Outcome::Silent(plain) = outcome(format, needs_topology, text.clone().into_bytes(), "")
        else {
            panic!("{format} is not read")
        };
        let expected = plain.split_once("found\n").unwrap().1;
        for (name, change) in CHANGES {
            all += 1;
            match outcome(format, needs_topology, change(&text), expected) {
                Outcome::Same => same += 1,
                Outcome::Told(what) => writeln!(table, "{format}, {name}: {what}").unwrap(),
                Outcome::Silent(what) => panic!("{format}, {name}: differs in silence: {what}"),
            }
        }
    }
    assert!(same * 340 >= all * 270, "{same} of {all} are the same; the others:\n{table}");
}
