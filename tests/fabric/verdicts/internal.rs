//! A multi-plane switch (Quantum-3): its internal links are discovered, and are not judged as cables.

use ib_mad::PortKey;
use std::time::Duration;

use ib_health::{Reason, Verdict};
use ib_sim::net::file;
use ib_sim::scenario::{Overrides, Scenario};

use test_rig::Simulated;

/// Two ASICs of one switch (one SystemImageGUID), connected at their ports 150 (FNM); its router at port 149
/// of the first; a host at each; and a switch of another system at port 2 of the first.
const TOPOLOGY: &str = r#"
devid=54004
vendid=0x2c9
sysimgguid=0xa0
switchguid=0xa1
Switch 150 "asic-1" # "Q3400 asic 1"
[1] "host-1"[1]
[2] "other"[2]
[149] "router"[1]
[150] "asic-2"[150]

vendid=0x2c9
sysimgguid=0xa0
switchguid=0xa2
Switch 150 "asic-2" # "Q3400 asic 2"
[1] "host-2"[1]

vendid=0x2c9
switchguid=0xa3
Switch 150 "other" # "another switch"

vendid=0x2c9
rtguid=0xc1
Rt 1 "router"

devid=4131
vendid=0x2c9
caguid=0xb1
Ca 1 "host-1"

vendid=0x2c9
caguid=0xb4
Ca 1 "host-2"
"#;

/// The same bit errors on four links, two of which are cables.
const STORY: &str = r#"
seed: 3
seat: host-1
traffic: {pattern: none}
timeline:
  - bad-cable: {at: 1m, into: "asic-1[150]", ratio: 1e-6}
  - bad-cable: {at: 1m, into: "asic-1[149]", ratio: 1e-6}
  - bad-cable: {at: 1m, into: "asic-1[2]", ratio: 1e-6}
  - bad-cable: {at: 1m, into: "asic-2[1]", ratio: 1e-6}
  - flap: {at: 3m, link: "asic-1[150]", down: 5s, every: 1m, times: 5}
"#;

#[test]
fn internal_links_of_multi_plane_switches_have_no_verdict() {
    let net = file::parse(TOPOLOGY).unwrap();
    let scenario = Scenario::parse("test", STORY).unwrap();
    let simulated = Simulated::new(scenario.resolve_on(net, &Overrides::default()).unwrap());
    simulated.run_to(Duration::from_secs(900));
    let observation = simulated.observation();
    let fabric = &observation.snapshot.as_ref().unwrap().fabric;
    assert_eq!(fabric.links().count(), 5, "internal links are links of the fabric");
    let judged = |node: &str, number: u8| {
        let at = |index: &_| fabric.node(*index).name == node;
        let guid = fabric.node(fabric.node_indexes().find(at).unwrap()).identity.guid;
        let port = fabric.find(PortKey::new(guid, number)).unwrap();
        let mut links = observation.assessment.links.iter();
        let link = links.find(|it| it.link.low == port || it.link.high == port).unwrap();
        let reasons: Vec<Reason> = link.reasons.iter().map(|(reason, _)| reason).collect();
        (link.verdict, link.repair.is_some(), reasons.contains(&Reason::Internal))
    };
    for (node, port) in [("Q3400 asic 1", 150), ("Q3400 asic 1", 149)] {
        assert_eq!(judged(node, port), (Verdict::Unknown, false, true), "{node} port {port}");
    }
    for (node, port) in [("Q3400 asic 1", 2), ("Q3400 asic 2", 1)] {
        assert_eq!(judged(node, port), (Verdict::Bad, true, false), "{node} port {port}");
    }
    assert!(!judged("Q3400 asic 1", 1).2, "a cable without errors");
}
