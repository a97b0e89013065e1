//! Totals continue after a restart of the exporter.

use std::path::Path;

use test_rig::{Exporter, Ibsim, OpenSm, topology};

fn start(ibsim: &Ibsim, file: &Path) -> Exporter {
    let file = format!("--history.file={}", file.display());
    let mut exporter = Exporter::start(ibsim, &["--fabric.interval=1s", &file]);
    exporter.wait_ready();
    exporter
}

fn set(ibsim: &Ibsim, node: &str, errors: u64) {
    ibsim.console_many(&[format!(
        "PerformanceSet \"{node}\"[1] PortCounters.SymbolErrorCounter={errors}"
    )]);
}

#[test]
fn totals_survive_a_restart() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("history.db");
    let text = topology::fat_tree_2(8, 10, 4, 3);
    let ibsim = Ibsim::start(&text);
    let _opensm = OpenSm::start(&ibsim);
    let (node, _) = topology::all_connected_ports(&text)
        .into_iter()
        .find(|(node, port)| node.contains("host") && *port == 1)
        .unwrap();
    let symbol_errors = |exporter: &Exporter| {
        let metrics = exporter.metrics();
        let mut infos = metrics.all("infiniband_port_info").map(|(labels, _)| labels);
        let info = infos.find(|labels| labels["node"] == node && labels["port"] == "1").unwrap();
        let port = [("guid", &*info["guid"]), ("port", "1")];
        metrics.get_u64("infiniband_port_symbol_errors_total", &port)
    };
    set(&ibsim, &node, 100);
    let mut first = start(&ibsim, &file);
    assert_eq!(symbol_errors(&first), Some(100));
    // A tool clears it, and it continues from there.
    set(&ibsim, &node, 40);
    first.wait_sweeps(2);
    assert_eq!(symbol_errors(&first), Some(140));
    assert!(first.stop().success());
    // It counts while no exporter runs.
    set(&ibsim, &node, 47);
    let mut second = start(&ibsim, &file);
    assert_eq!(symbol_errors(&second), Some(147));
    second.signal("KILL");
    drop(second);
    // It is cleared while no exporter runs, and the exporter before was killed.
    set(&ibsim, &node, 5);
    let mut third = start(&ibsim, &file);
    assert_eq!(symbol_errors(&third), Some(152));
    third.wait_sweeps(2);
    assert_eq!(symbol_errors(&third), Some(152));
    assert!(third.stop().success());
    // Without a history, or with another, totals begin with what counters show.
    let mut fourth = start(&ibsim, &folder.path().join("another.db"));
    assert_eq!(symbol_errors(&fourth), Some(5));
    assert!(fourth.stop().success());
}
