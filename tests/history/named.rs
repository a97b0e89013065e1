//! Nodes that share a name are recorded under names of their own, and are found by either.

use std::time::Duration;

use fabric_history::{Reader, Source};
use ib_sim::net::file;
use ib_sim::scenario::{Overrides, Scenario};

use crate::Taped;
use test_rig::Simulated;

const TOPOLOGY: &str = r#"
switchguid=0x9405930000fc2e44
Switch 4 "s1" # "Quantum-2 [rack 1]"
[1] "h1"[1]
[2] "s2"[2]

switchguid=0x9405930000fc2e88
Switch 4 "s2" # "Quantum-2 [rack 1]"
[1] "h2"[1]

Ca 1 "h1"

Ca 1 "h2"
"#;

#[test]
fn a_shared_name_means_all_of_its_nodes() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("history");
    let scenario = Scenario::parse("test", "seat: h1\n").unwrap();
    let story = scenario.resolve_on(file::parse(TOPOLOGY).unwrap(), &Overrides::default()).unwrap();
    let mut taped = Taped::of(Simulated::new(story), &path);
    taped.run_to(Duration::from_secs(60));
    drop(taped);
    let reader = Reader::open(&path).unwrap();
    let ports = |called: &str| -> Vec<String> {
        let ports = reader.ports(called).unwrap();
        ports.iter().map(|port| format!("{}[{}]", port.node, port.port)).collect()
    };
    let name = "Quantum-2 [rack 1]";
    assert_eq!(
        ports(&format!("{name}[1]")),
        [format!("{name}#fc2e44[1]"), format!("{name}#fc2e88[1]")]
    );
    assert_eq!(ports(&format!("{name}#fc2e88[2]")), [format!("{name}#fc2e88[2]")]);
    assert_eq!(ports(name).len(), 2 * ports(&format!("{name}#fc2e44")).len());
    assert!(ports("Quantum-2").is_empty() && ports(&format!("{name}#fc")).is_empty());
}
