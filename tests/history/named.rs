//! Nodes that share a name are recorded under names of their own, and are found by either; adapters are found by host.

use std::path::Path;
use std::time::Duration;

use fabric_history::export::ExportFilter;
use fabric_history::{Reader, Source};
use ib_sim::net::file;
use ib_sim::scenario::{Overrides, Scenario};

use crate::exported::openmetrics;
use crate::safety::operate;
use crate::{RecordedSimulation, always};
use test_rig::Simulated;

const TOPOLOGY: &str = r#"
switchguid=0x9405930000fc2e44
Switch 4 "s1" # "Quantum-2 [rack 1]"
[1] "h1"[1]
[2] "s2"[2]

switchguid=0x9405930000fc2e88
Switch 4 "s2" # "Quantum-2 [rack 1]"
[1] "h2"[1]

Ca 1 "h1" # "gpu1 mlx5_0"

Ca 1 "h2" # "gpu1 mlx5_1"
"#;

/// Records a minute of the fabric.
fn recorded(path: &Path) {
    let scenario = Scenario::parse("test", "seat: h1\n").unwrap();
    let story = scenario.resolve_on(file::parse(TOPOLOGY).unwrap(), &Overrides::default()).unwrap();
    let mut simulation = RecordedSimulation::of(Simulated::new(story), path);
    simulation.run_to(Duration::from_secs(60));
}

fn ports(path: &Path, called: &str) -> Vec<String> {
    let ports = Reader::open(path).unwrap().ports(called).unwrap();
    ports.iter().map(|port| format!("{}[{}]", port.node, port.port)).collect()
}

#[test]
fn host_means_all_its_adapters() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("history");
    recorded(&path);
    let both = ["gpu1 mlx5_0[1]", "gpu1 mlx5_1[1]"];
    assert_eq!(ports(&path, "gpu1"), both);
    assert_eq!(ports(&path, "gpu1[1]"), both);
    assert_eq!(ports(&path, "gpu1 mlx5_1"), both[1..]);
    assert!(ports(&path, "gpu").is_empty() && ports(&path, "mlx5_0").is_empty());
    let exported = openmetrics(&path, &ExportFilter::all(always()));
    let to_switch = "peer_node=\"gpu1 mlx5_0\",peer_host=\"gpu1\",link=";
    for label in ["node=\"gpu1 mlx5_0\",host=\"gpu1\",node_type=\"ca\"", to_switch] {
        assert!(exported.contains(label), "{label}: {exported}");
    }
}

/// A file of format version 3, in which names have no hosts, is upgraded when it is recorded to.
#[test]
fn file_of_the_version_before_is_upgraded() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("history");
    recorded(&path);
    operate(&path, "ALTER TABLE names DROP COLUMN host; PRAGMA user_version = 3");
    let error = Reader::open(&path).unwrap_err().to_string();
    assert!(error.contains("format version 3, of an earlier") && !error.contains('\n'), "{error}");
    recorded(&path);
    let switches = ports(&path, "Quantum-2 [rack 1][1]");
    assert_eq!((ports(&path, "gpu1").len(), switches.len()), (2, 2));
    let frames = Reader::open(&path).unwrap().counts().unwrap().0;
    assert!(frames > 5, "the sweeps of the old file are kept: {frames}");
}

#[test]
fn shared_name_means_all_its_nodes() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("history");
    recorded(&path);
    let ports = |called: &str| ports(&path, called);
    let name = "Quantum-2 [rack 1]";
    assert_eq!(
        ports(&format!("{name}[1]")),
        [format!("{name}#fc2e44[1]"), format!("{name}#fc2e88[1]")]
    );
    assert_eq!(ports(&format!("{name}#fc2e88[2]")), [format!("{name}#fc2e88[2]")]);
    assert_eq!(ports(name).len(), 2 * ports(&format!("{name}#fc2e44")).len());
    assert!(ports("Quantum-2").is_empty() && ports(&format!("{name}#fc")).is_empty());
}
