//! How many series a fabric has, by group: the table of docs/large-fabrics.md. `UPDATE_DOCS=1` writes it.

use std::fmt::Write;
use std::path::Path;
use std::time::Duration;

use fabric_exporter::config::options::{FabricOptions, Options};
use fabric_exporter::metrics::selection::{Group, Profile, Selection};
use fabric_exporter::metrics::{Format, OwnMetrics, RenderedMetrics};
use ib_sim::scenario::{Overrides, Scenario};
use test_rig::Simulated;

/// Three levels, and some ports without a cable, as in the fabrics that are large.
const FABRIC: &str = "fabric: {fat-tree: {levels: 3, hosts: 250, radix: 11, down: 5, up: 5}}\n";

/// Until the longer window of the bit error ratio is full.
const LENGTH: Duration = Duration::from_secs(130 * 60);

#[test]
fn series_per_connected_port_are_as_documented() {
    let scenario = Scenario::parse("series", FABRIC).unwrap();
    let story = scenario.resolve(&Overrides::default()).unwrap();
    let interval = "60s".parse().ok();
    let fabric = FabricOptions { interval, ..FabricOptions::default() };
    let simulated = Simulated::set(story, Options { fabric, ..Options::default() });
    simulated.run_to(LENGTH);
    let observation = simulated.observation();
    let fabric = &observation.snapshot.as_ref().unwrap().fabric;
    let connected = fabric.ports.iter().filter(|port| port.peer.is_some()).count();
    // Each host has a cable, each level as many upwards, and each top switch an aggregation node.
    assert_eq!(connected, 6 * 250 + 2 * 50);
    let exposition = RenderedMetrics::first(vec![observation.clone()].into());
    let own = OwnMetrics::new(Path::new("/proc"));
    let series = |selection: &Selection| {
        let text = exposition.document(selection, Format::Text, &own).to_text().unwrap();
        text.lines().filter(|line| !line.starts_with('#')).count()
    };
    let per_port = |series: usize| series as f64 / connected as f64;
    let of_group = |group: Group| {
        let pairs = [("collect[]".to_owned(), group.label().to_owned())];
        series(&Selection::parse(&pairs, Profile::Full).unwrap())
    };
    // These do not grow with the fabric.
    let constant = [Group::Exporter, Group::Fabric, Group::Host];
    let rows = Group::ALL.iter().map(|&group| {
        let count = of_group(group);
        let number = if constant.contains(&group) {
            "–".to_owned()
        } else {
            format!("{:.1}", per_port(count))
        };
        let is_lean = if Profile::Lean.groups().contains(&group) { "yes" } else { "" };
        format!("| `{}` | {} | {number} | {is_lean} |\n", group.label(), group.help())
    });
    let mut table =
        "| group | content | series per connected port | in `lean` |\n|---|---|---|---|\n"
            .to_owned();
    table.extend(rows);
    for profile in [Profile::Lean, Profile::Full] {
        let groups = profile.groups().iter().filter(|group| !constant.contains(group));
        let sum: usize = groups.map(|&group| of_group(group)).sum();
        let label = profile.label();
        writeln!(
            table,
            "| profile **`{label}`** | {} | **{:.1}** | |",
            profile.help(),
            per_port(sum)
        )
        .unwrap();
    }
    let lean = per_port(series(&Profile::Lean.into()));
    assert!(lean <= 6.5, "{lean} series per connected port");

    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/large-fabrics.md");
    let page = std::fs::read_to_string(&file).unwrap();
    let [begin, end] = ["<!-- series -->\n", "<!-- /series -->\n"];
    let (before, rest) = page.split_once(begin).unwrap();
    let (_, after) = rest.split_once(end).unwrap();
    let made = format!("{before}{begin}{table}{end}{after}");
    if std::env::var_os("UPDATE_DOCS").is_some() {
        std::fs::write(&file, &made).unwrap();
    } else {
        assert!(page == made, "docs/large-fabrics.md is out of date: make docs\n{table}");
    }
}
