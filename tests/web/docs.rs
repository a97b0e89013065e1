//! The documentation matches the program.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::path::Path;
use std::process::Command;

use fabric_history::EventKind;
use fabric_history::incidents::{IncidentKind, Severity};
use ib_health::verdict::{Reason, Repair};
use test_rig::reference;

fn document(name: &str) -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(name);
    std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

#[test]
fn metrics_pages_are_made_from_the_tables() {
    for (name, made) in [
        ("docs/metrics.md", reference::page()),
        ("docs/metrics-drivers.md", reference::drivers_page()),
    ] {
        if std::env::var_os("UPDATE_DOCS").is_some() {
            let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(name);
            std::fs::write(&path, &made).unwrap();
        }
        assert!(document(name) == made, "{name} is out of date: make docs");
    }
}

/// Every reason and every repair has a row in the page of verdicts.
#[test]
fn reasons_and_repairs_are_documented() {
    let page = document("docs/verdicts-and-alerts.md");
    let reasons = Reason::ALL.iter().map(|reason| reason.label());
    for name in reasons.chain(Repair::ALL.iter().map(|repair| repair.label())) {
        let has_row = |line: &str| line.starts_with("| ") && line.contains(&format!("`{name}`"));
        assert!(page.lines().any(has_row), "{name} has no row in docs/verdicts-and-alerts.md");
    }
}

/// The tables of event kinds, incident kinds and severities are between two marker lines each.
#[test]
fn tables_of_history_are_made_from_the_enums() {
    let table = |of: &mut dyn Iterator<Item = (&'static str, &'static str)>| {
        let rows = of.map(|(label, help)| format!("| `{label}` | {help} |\n"));
        format!("|---|---|\n{}", rows.collect::<Vec<_>>().concat())
    };
    let mut made = document("docs/history.md");
    for (name, head, table) in [
        ("kinds", "kind", table(&mut EventKind::ALL.iter().map(|it| (it.label(), it.help())))),
        (
            "incidents",
            "kind",
            table(&mut IncidentKind::ALL.iter().map(|it| (it.label(), it.help()))),
        ),
        (
            "severities",
            "severity",
            table(&mut Severity::ALL.iter().map(|it| (it.label(), it.help()))),
        ),
    ] {
        let [begin, end] = [format!("<!-- {name} -->\n"), format!("<!-- /{name} -->\n")];
        let (before, rest) = made.split_once(&begin).unwrap();
        let (_, after) = rest.split_once(&end).unwrap();
        made = format!("{before}{begin}| {head} | meaning |\n{table}{end}{after}");
    }
    if std::env::var_os("UPDATE_DOCS").is_some() {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/history.md");
        std::fs::write(path, &made).unwrap();
    }
    assert!(document("docs/history.md") == made, "docs/history.md is out of date: make docs");
}

/// The flags in a command's help, with their defaults.
fn flags(verb: &[&str]) -> Vec<(String, String)> {
    let output = Command::new(test_rig::program())
        .args(verb)
        .arg("--help")
        .env("COLUMNS", "400")
        .output()
        .unwrap();
    assert!(output.status.success());
    let help = String::from_utf8(output.stdout).unwrap();
    let lines: Vec<&str> = help.lines().map(str::trim).collect();
    lines
        .iter()
        .enumerate()
        .filter(|(_, line)| line.starts_with("--"))
        .map(|(index, line)| {
            // A sentence in the help may also begin a line with a flag, and end with it.
            let flag = line.split([' ', '=', '[']).next().unwrap();
            let flag = flag.trim_end_matches(['.', ',', ';', ':']).to_owned();
            let about: String = [line, *lines.get(index + 1).unwrap_or(&"")].join(" ");
            let default =
                about.split_once("[default: ").map_or("", |(_, rest)| rest.trim_end_matches(']'));
            (flag, default.to_owned())
        })
        .collect()
}

#[test]
fn configuration_page_has_every_flag() {
    let page = document("docs/configuration.md");
    let verbs: [(&[&str], usize); 18] = [
        (&["serve"], 20),
        (&["links"], 20),
        (&["nodes"], 20),
        (&["ports"], 20),
        (&["top"], 20),
        (&["check"], 1),
        (&["check-node"], 5),
        (&["demo"], 20),
        (&["doctor"], 20),
        (&["history", "events"], 6),
        (&["history", "incidents"], 6),
        (&["history", "link"], 1),
        (&["history", "port"], 1),
        (&["history", "verdicts"], 1),
        (&["history", "diff"], 2),
        (&["history", "report"], 2),
        (&["history", "export"], 8),
        (&["history", "dump"], 4),
    ];
    for (verb, least) in verbs {
        let flags = flags(verb);
        assert!(flags.len() > least, "{verb:?}: {flags:?}");
        for (flag, _) in flags {
            assert!(page.contains(&format!("`{flag}`")), "{flag} is not in docs/configuration.md");
        }
    }
}

#[test]
fn example_config_is_valid_and_has_the_defaults() {
    use fabric_exporter::config::{Settings, options::Options};
    let page = document("docs/configuration.md");
    let example = page.split_once("```yaml\n").unwrap().1.split_once("```").unwrap().0;
    let file = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(file.path(), example).unwrap();
    let set = Settings::load(Options::default(), Some(file.path())).unwrap();
    let usual = Settings::load(Options::default(), None).unwrap();
    assert_eq!(set.listen, usual.listen);
    let (set, usual) = (&set.fabrics[0], &usual.fabrics[0]);
    assert_eq!(
        (set.interval, set.discovery_interval, set.forget_after, set.details, set.fec, set.pace),
        (
            usual.interval,
            usual.discovery_interval,
            usual.forget_after,
            usual.details,
            usual.fec,
            usual.pace
        )
    );
}

/// Files of the project that documents link to exist.
#[test]
fn links_between_documents_are_valid() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let folders = ["docs", "docs/decisions", "docs/dev", "alerts/runbooks", "alerts/compat"];
    let documents = folders.into_iter().flat_map(|folder| {
        let entries = std::fs::read_dir(root.join(folder)).unwrap();
        entries.map(move |entry| format!("{folder}/{}", entry.unwrap().file_name().display()))
    });
    let pages = documents.filter(|name| Path::new(name).extension().is_some_and(|it| it == "md"));
    let others = ["README.md", "CONTRIBUTING.md", "CHANGELOG.md"].map(str::to_owned);
    for name in pages.chain(others) {
        let text = document(&name);
        let folder = root.join(&name).parent().unwrap().to_owned();
        for target in text.split("](").skip(1).filter_map(|rest| rest.split(')').next()) {
            let file = target.split('#').next().unwrap();
            if !file.is_empty() && !file.contains("://") {
                assert!(folder.join(file).exists(), "{name} links to {target}");
            }
        }
    }
}

/// A newcomer finds the two commands, with what they need and how long they take.
#[test]
fn first_block_of_the_readme_runs_demo_and_tests() {
    let readme = document("README.md");
    let block = readme.split_once("```console\n").unwrap().1.split_once("```").unwrap().0;
    let commands: Vec<&str> = block.lines().filter_map(|line| line.strip_prefix("$ ")).collect();
    let [demo, test] = &commands[..] else { panic!("{commands:?}") };
    let measured = document("docs/dev/measurements.md");
    for (line, command) in [(demo, "make demo"), (test, "make test")] {
        let time = line.rsplit_once(": ").unwrap().1.trim_start_matches("first page after ");
        assert!(line.starts_with(command), "{line}");
        let has_time = |row: &str| row.starts_with(&format!("| `{command}`")) && row.contains(time);
        assert!(measured.lines().any(has_time), "measurements.md has no {time} for {command}");
    }
    let (_, needs) = readme.split_once(block).unwrap();
    let needs = needs.split("\n#").next().unwrap().replace('\n', " ");
    for need in ["Rust", "C compiler", "`make demo` needs no root", "root or sudo"] {
        assert!(needs.contains(need), "{need}: {needs}");
    }
    let script = document(".ci/run");
    assert!(script.lines().any(|line| line == "make test"), "{script}");
    let makefile = document("Makefile");
    for target in ["demo:", "test:"] {
        assert!(makefile.lines().any(|line| line.starts_with(target)), "{target}");
    }
}

/// The figures of sweeps in the README are those of the table of measurements.
#[test]
fn figures_of_the_readme_were_measured() {
    let readme = document("README.md").replace('\n', " ");
    let measured = document("docs/dev/measurements.md");
    // The number at the begin of a cell.
    let figure = |row: &str, column: usize| -> f64 {
        let row = measured.lines().find(|line| line.starts_with(&format!("| {row} |"))).unwrap();
        let cell = row.split('|').nth(column).unwrap().trim().trim_matches('*');
        cell.split(' ').next().unwrap().parse().unwrap()
    };
    // Pinned, with a delay and without one.
    let time = figure("one sweep", 2);
    let least = figure("sweep / `ibqueryerrors`", 2);
    let most = figure("**no delay added**: sweep against `ibqueryerrors`", 4);
    let ports = measured.split(" ports in ibsim").next().unwrap().rsplit(' ').next().unwrap();
    let scale = measured.split_once("\n## Scale\n").unwrap().1.split("\n## ").next().unwrap();
    let largest = scale.lines().rfind(|line| line.starts_with("| ")).unwrap();
    let largest = largest.split('|').nth(1).unwrap().trim();
    for says in [
        format!("[{ports} simulated ports in {time:.1} s]"),
        format!("[{:.0}% to {:.0}%]", least * 100.0, most * 100.0),
        format!("up to {largest} simulated ports"),
    ] {
        assert!(readme.contains(&says), "README.md does not say {says}");
    }
}
