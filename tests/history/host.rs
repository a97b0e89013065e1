//! The host's own devices are recorded by an exporter that sweeps no fabric.

use std::path::Path;
use std::process::Command;
use std::time::Duration;

use test_rig::program;
use test_rig::sysfs::{Device, Tree};
use test_rig::{Exporter, wait_until};

/// How long it may take until an event is recorded.
const LIMIT: Duration = Duration::from_secs(60);

const SYMBOL_ERRORS: &str = "infiniband_port_symbol_errors_total";

fn start(tree: &Tree, file: &Path) -> Exporter {
    let file = format!("--history.file={}", file.display());
    let mut exporter = Exporter::on_host(tree, &["--host.interval=1s", &file]);
    exporter.wait_ready();
    exporter
}

fn set_errors(tree: &Tree, device: &str, errors: u64) {
    tree.set(device, "ports/1/counters/symbol_error", &format!("{errors}\n"));
}

fn set_state(tree: &Tree, device: &str, state: &str) {
    tree.set(device, "ports/1/state", &format!("{state}\n"));
}

/// What `history` prints.
fn told(file: &Path, args: &[&str]) -> String {
    let mut command = Command::new(program());
    let output = command.arg("history").args(args).arg("--file").arg(file).output().unwrap();
    assert!(output.status.success(), "{args:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

/// Waits until there is such an event.
fn wait_told(file: &Path, parts: &[&str]) {
    wait_until(LIMIT, &format!("{parts:?} in the history"), || {
        let events = told(file, &["events"]);
        let has = |line: &&str| parts.iter().all(|part| line.contains(part));
        events.lines().find(has).map(drop)
    });
}

#[test]
fn host_port_events_are_recorded() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("history.db");
    let [first, second] = [Device::mlx5_ndr("mlx5_0", 0), Device::mlx5_ndr("mlx5_1", 1)];
    let tree = Tree::new([first]);
    set_errors(&tree, "mlx5_0", 100);
    let mut exporter = start(&tree, &file);
    wait_told(&file, &["exporter_start", "host"]);
    exporter.wait_reads(2);
    set_errors(&tree, "mlx5_0", 107);
    set_state(&tree, "mlx5_0", "1: DOWN");
    wait_told(&file, &["link_down", "mlx5_0 port 1"]);
    wait_told(&file, &["flap", "mlx5_0 port 1", "went down once; 1 flap"]);
    set_state(&tree, "mlx5_0", "4: ACTIVE");
    wait_told(&file, &["link_up", "mlx5_0 port 1"]);
    tree.set("mlx5_0", "ports/1/rate", "100 Gb/sec (1X NDR)\n");
    wait_told(&file, &["rate_changed", "from 4x NDR to 1x NDR"]);
    tree.add(&second);
    wait_told(&file, &["node_added", "mlx5_1"]);
    tree.remove(&second);
    wait_told(&file, &["node_down", "mlx5_1", "no longer listed by the kernel"]);
    set_errors(&tree, "mlx5_0", 2);
    wait_told(&file, &["counter_reset", "mlx5_0 port 1"]);
    let port = told(&file, &["port", "mlx5_0[1]"]);
    let course = port.lines().find(|line| line.contains("symbol_errors")).unwrap();
    assert!(course.ends_with("  9"), "7, and 2 after the clear: {port}");
    assert!(port.contains("link_down") && !port.contains("mlx5_1"), "{port}");
    assert!(told(&file, &["report"]).contains("mlx5_0 port 1"));
    // Pages of a fabric do not show the devices of the host.
    let events = exporter.get("/events", &[]).text().to_owned();
    assert!(events.contains("<a href=\"/host\">mlx5_0 port 1</a>"), "{events}");
    assert!(!events.contains("href=\"/node/"), "{events}");
    for path in ["/", "/links", "/topology", "/search?q=leaf"] {
        let page = exporter.get(path, &[]);
        assert_eq!(page.status, 200, "{path}");
        assert!(page.text().contains("sweeps no fabric"), "{path}: {}", page.text());
    }
    assert!(exporter.stop().success());
    wait_told(&file, &["exporter_stop", "host"]);
}

#[test]
fn host_totals_survive_a_restart() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("history.db");
    // Virtual functions without a GUID.
    let no_guid = |name, index| Device::mlx5_ndr(name, index).guid(0);
    let (a, b) = (no_guid("vf0", 1), no_guid("vf1", 2));
    let tree = Tree::new([Device::mlx5_ndr("mlx5_0", 0), a, b]);
    let devices = ["mlx5_0", "vf0", "vf1"];
    let set = |errors: [u64; 3]| {
        for (device, errors) in devices.into_iter().zip(errors) {
            set_errors(&tree, device, errors);
        }
    };
    let totals = |exporter: &Exporter| {
        let metrics = exporter.wait_reads(2);
        devices.map(|device| metrics.get_u64(SYMBOL_ERRORS, &[("device", device)]).unwrap())
    };
    set([100, 1000, 5]);
    let mut first = start(&tree, &file);
    assert_eq!(totals(&first), [100, 1000, 5]);
    // A tool clears them, and they continue from there.
    set([40, 1001, 6]);
    assert_eq!(totals(&first), [140, 1001, 6]);
    assert!(first.stop().success());
    // They increase while no exporter runs, or are cleared.
    set([47, 3, 8]);
    let mut second = start(&tree, &file);
    assert_eq!(totals(&second), [147, 1004, 8]);
    second.signal("KILL");
    drop(second);
    set([5, 4, 9]);
    let mut third = start(&tree, &file);
    assert_eq!(totals(&third), [152, 1005, 9]);
    assert!(third.stop().success());
    let mut another = start(&tree, &folder.path().join("another.db"));
    assert_eq!(totals(&another), [5, 4, 9]);
    assert!(another.stop().success());
}
