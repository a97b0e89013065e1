//! Dumps: what infiniband-diags print of a fabric, judged without the fabric.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::collections::{BTreeMap, BTreeSet};
use std::io::{Read, Write};
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use fabric_api::model::Links;
use test_rig as rig;

use rig::child::{self, Output, Running};
use rig::pty::attach;
use rig::{Ibsim, OpenSm, program, run_to_exit, topology};

const LIMIT: Duration = Duration::from_secs(60);

/// Runs the program without a fabric, successfully.
fn offline(folder: &Path, args: &[&str]) -> Output {
    let mut command = Command::new(program());
    let output = child::run("fabric-exporter", command.args(args), folder, LIMIT);
    assert!(output.status.success(), "{args:?}: {}", output.stderr);
    output
}

fn parsed(output: &Output) -> Links {
    serde_json::from_str(&output.stdout)
        .unwrap_or_else(|error| panic!("{error}: {}", output.stdout))
}

fn ids(links: &Links) -> BTreeSet<String> {
    links.fabrics.iter().flat_map(|fabric| &fabric.links).map(|link| link.link.clone()).collect()
}

/// The symbol errors of all ports that have some, by node and port.
fn symbols(links: &Links) -> BTreeMap<(String, u8), u64> {
    let links = links.fabrics.iter().flat_map(|fabric| &fabric.links);
    let counted = links.flat_map(|link| &link.ends).filter_map(|end| {
        let count = end.counters.get("symbol_errors")?;
        Some(((end.node.clone(), end.port), *count))
    });
    counted.collect()
}

#[test]
fn dumps_of_infiniband_diags_are_judged_like_a_sweep() {
    let net = topology::fat_tree_2(8, 10, 4, 3);
    let ibsim = Ibsim::start(&net);
    let _opensm = OpenSm::start(&ibsim);
    let ends = topology::all_connected_ports(&net);
    let set = |(node, port): &(String, u8), count: u32| {
        ibsim.console(&format!(
            "PerformanceSet \"{node}\"[{port}] PortCounters.SymbolErrorCounter={count}"
        ));
    };
    set(&ends[0], 77);
    set(&ends[5], 20);
    let folder = tempfile::tempdir().unwrap();
    let save = |name: &str, program: &str, args: &[&str]| {
        let file = folder.path().join(name);
        // ibqueryerrors exits with 1 if it finds errors.
        let output = ibsim.try_tool(program, args);
        assert!(!output.stdout.is_empty(), "{program}: {}", output.stderr);
        std::fs::write(&file, &output.stdout).unwrap();
        file.display().to_string()
    };
    let nets = [
        save("net.txt", "ibnetdiscover", &[]),
        save("ports.txt", "ibnetdiscover", &["-p"]),
        save("links.txt", "iblinkinfo", &[]),
        save("lines.txt", "iblinkinfo", &["--line"]),
    ];
    let errors = save("errors.txt", "ibqueryerrors", &["--skip-sl", "-s", "PortXmitWait"]);
    let swept = parsed(&run_to_exit(&ibsim, &["links", "--json"]));
    assert_eq!(symbols(&swept).len(), 2, "{:?}", symbols(&swept));

    // Nodes are known by the GUIDs of their ports in all formats but that of ibnetdiscover: ends have the same names.
    for net in &nets {
        let found = parsed(&offline(folder.path(), &["links", "--json", "--from", net, &errors]));
        assert_eq!(symbols(&found), symbols(&swept), "{net}");
        assert_eq!(ids(&found).len(), ends.len() / 2, "{net}");
        let rates = |links: &Links| -> BTreeSet<(String, Option<u64>)> {
            let links = links.fabrics.iter().flat_map(|fabric| &fabric.links);
            links.map(|link| (link.ends[0].node.clone(), link.rate)).collect()
        };
        assert_eq!(rates(&found), rates(&swept), "{net}");
    }
    let found = parsed(&offline(folder.path(), &["links", "--json", "--from", &nets[0]]));
    assert_eq!(ids(&found), ids(&swept));
    assert_eq!(found.fabrics[0].verdicts.unknown, ends.len() / 2, "without counters nothing is ok");

    // A later reading: errors are a rate.
    set(&ends[0], 60_000);
    let later = save("later.txt", "ibqueryerrors", &["--skip-sl", "-s", "PortXmitWait"]);
    let dumps = ["--from", &nets[0], &errors, &later, "--between", "1h"];
    let table = offline(folder.path(), &[&["links", "--suspect"][..], &dumps].concat());
    let worst = table.stdout.lines().nth(1).unwrap_or_else(|| panic!("{}", table.stdout));
    assert!(
        worst.starts_with("degraded") && worst.contains("59,923 symbol errors in 1h"),
        "{worst}"
    );
    assert_eq!(table.stderr.lines().count(), 3, "{}", table.stderr);

    let report = offline(folder.path(), &[&["history", "report"][..], &dumps].concat());
    assert!(report.stdout.contains("symbol_errors"), "{}", report.stdout);
    assert!(!report.stdout.contains("exporter_start"), "{}", report.stdout);
    let verdicts = offline(folder.path(), &[&["history", "verdicts"][..], &dumps].concat());
    assert!(verdicts.stdout.contains("| watch | bit_errors | reseat | 1 |"), "{}", verdicts.stdout);
}

#[test]
fn unusable_dumps_are_one_line() {
    let folder = tempfile::tempdir().unwrap();
    let run = |args: &[&str]| {
        let mut command = Command::new(program());
        command.args(args).current_dir(folder.path());
        child::run("fabric-exporter", &mut command, folder.path(), LIMIT)
    };
    std::fs::write(folder.path().join("prose.txt"), "nothing to see\n").unwrap();
    std::fs::write(folder.path().join("cut.db_csv"), "START_NODES\nNodeDesc,NodeGUID\n").unwrap();
    for (args, code, says) in [
        (&["links", "--from", "missing.txt"][..], 1, "missing.txt: No such file"),
        (
            &["links", "--from", "prose.txt"],
            2,
            "prose.txt: unknown format: expected a file of ibdiagnet2",
        ),
        (
            &["links", "--from", "cut.db_csv"],
            2,
            "cut.db_csv: line 2: section NODES has no end: the file is truncated",
        ),
        (&["history", "report", "--from", "prose.txt"], 2, "unknown format"),
        (&["history", "report", "--from", "prose.txt", "--file", "x"], 2, "--from excludes --file"),
        (&["demo", "--topology", "cut.db_csv"], 2, "--topology: cut.db_csv: line 2"),
    ] {
        let output = run(args);
        assert_eq!(output.status.code(), Some(code), "{args:?}: {}", output.stderr);
        assert!(output.stderr.contains(says), "{args:?}: {}", output.stderr);
        assert_eq!(output.stderr.lines().count(), 1, "{}", output.stderr);
    }
}

/// What people send: a folder with packed files, a terminal's log, a file in UTF-16, and something else.
#[test]
fn what_was_not_used_is_told_and_strict_refuses_it() {
    let folder = tempfile::tempdir().unwrap();
    let dumps = folder.path().join("sent");
    std::fs::create_dir(&dumps).unwrap();
    let net = include_str!("../../crates/fabric-dumps/tests/dumps/fabric.ibnetdiscover");
    let errors = include_str!("../../crates/fabric-dumps/tests/dumps/fabric.ibqueryerrors");
    let mut packed = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::default());
    packed.write_all(net.as_bytes()).unwrap();
    std::fs::write(dumps.join("net.txt.gz"), packed.finish().unwrap()).unwrap();
    let utf16: Vec<u8> = errors.encode_utf16().flat_map(u16::to_le_bytes).collect();
    std::fs::write(dumps.join("errors.txt"), [&[0xff, 0xfe][..], &utf16].concat()).unwrap();
    let sent = dumps.display().to_string();
    let run = |args: &[&str]| {
        let mut command = Command::new(program());
        command.args(args).args(["--from", &sent]);
        child::run("fabric-exporter", &mut command, folder.path(), LIMIT)
    };
    let all = run(&["links", "--json", "--strict"]);
    assert!(all.status.success(), "{}", all.stderr);
    let counted = symbols(&parsed(&all));
    assert_eq!(counted, BTreeMap::from([(("host-1 mlx5_0".to_owned(), 1), 65_535)]));

    let log = dumps.join("ibdiagnet2.log");
    std::fs::write(&log, "-I- Running version: 2.10\n").unwrap();
    std::fs::write(dumps.join("empty.txt"), "").unwrap();
    let prompt = format!("[root@mgmt ~]# ibqueryerrors\n{errors}");
    std::fs::write(dumps.join("errors.txt"), &prompt).unwrap();
    let told = run(&["links", "--json"]);
    assert!(told.status.success(), "{}", told.stderr);
    assert_eq!(symbols(&parsed(&told)), counted);
    for line in [
        "not used: 1 file ignored: unknown format: ibdiagnet2.log".to_owned(),
        format!("not used: {}: ignored: the file is empty", dumps.join("empty.txt").display()),
        format!(
            "not used: {}, line 1: skipped: \"[root@mgmt ~]# ibqueryerrors\"",
            dumps.join("errors.txt").display()
        ),
    ] {
        assert!(told.stderr.lines().any(|it| it == line), "{line}: {}", told.stderr);
    }
    let refused = run(&["links", "--json", "--strict"]);
    assert_eq!(refused.status.code(), Some(2), "{}", refused.stderr);
    assert!(refused.stderr.contains("--strict: not everything was used: "), "{}", refused.stderr);
    let report = run(&["history", "report"]);
    assert!(report.status.success() && report.stderr.contains("not used: "), "{}", report.stderr);

    // A line in the middle is damaged: no verdicts.
    let damaged = errors.replacen("[LinkDownedCounter == 3]", "[LinkDownedCounter == 3", 1);
    std::fs::write(dumps.join("errors.txt"), damaged).unwrap();
    let refused = run(&["links"]);
    assert_eq!(refused.status.code(), Some(2), "{}", refused.stderr);
    assert!(
        refused.stderr.contains("errors.txt: line 2: expected a line of ibqueryerrors"),
        "{}",
        refused.stderr
    );
    assert_eq!(refused.stderr.lines().count(), 1, "{}", refused.stderr);
}

/// A name with characters that a terminal obeys, or does not show.
const HOSTILE: &str = "\u{202e}x\u{200b}y";

fn is_obeyed(char: char) -> bool {
    // The terminal itself makes CR LF of LF.
    char.is_control() && !matches!(char, '\n' | '\r') || char == '\u{202e}'
}

#[test]
fn names_cannot_control_the_terminal_that_json_or_csv_is_written_to() {
    let folder = tempfile::tempdir().unwrap();
    let net = include_str!("../../crates/fabric-dumps/tests/dumps/fabric.ibnetdiscover");
    let net = net.replace("leaf-1", HOSTILE);
    let dump = folder.path().join("net.txt");
    std::fs::write(&dump, &net).unwrap();
    let dump = dump.to_str().unwrap();
    // JSON means the same with escapes, also in a pipe.
    for args in [["nodes", "--json"], ["links", "--json"]] {
        let json = offline(folder.path(), &[&args[..], &["--from", dump]].concat()).stdout;
        assert!(json.contains("\\u202ex\\u200by"), "{json}");
        assert!(!json.contains(|char| is_obeyed(char) || char == '\u{200b}'), "{json}");
        let parsed: serde_json::Value = serde_json::from_str(&json).unwrap();
        assert!(parsed.to_string().contains(HOSTILE), "{json}");
    }

    // CSV has no escapes: in a pipe it has the name, on a terminal what can be shown of it.
    let history = folder.path().join("history.db");
    let (topology, file) =
        (format!("--topology={dump}"), format!("--history.file={}", history.display()));
    let mut exporter = rig::Exporter::demo(&[&topology, &file, "--fabric.interval=1s"]);
    exporter.wait_ready();
    exporter.wait_sweeps(3);
    assert!(exporter.stop().success());
    let export = ["history", "export", "--file", history.to_str().unwrap()];
    for format in ["csv", "jsonl", "openmetrics"] {
        let args = [&export[..], &["--format", format]].concat();
        let piped = offline(folder.path(), &args).stdout;
        assert_eq!(piped.contains(HOSTILE), format != "jsonl", "{piped:.2000}");
        let mut command = Command::new(program());
        command.args(&args);
        let mut master = attach(&mut command);
        let mut running = Running::spawn("history", &mut command);
        drop(command);
        let mut shown = Vec::new();
        // It ends with an error once the terminal has no user.
        let _ = master.read_to_end(&mut shown);
        assert!(running.wait_at_most(LIMIT).unwrap().success());
        let shown = String::from_utf8(shown).unwrap();
        let name = if format == "jsonl" { "\\u202ex\\u200by" } else { "\u{fffd}x\u{200b}y" };
        assert!(shown.contains(name) && !shown.contains(is_obeyed), "{format}: {shown:.2000}");
    }
}
