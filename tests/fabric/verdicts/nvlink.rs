//! An NVLink fabric: recognized by its switches, with counters and without verdicts.

use std::time::Duration;

use fabric_api::condition;
use fabric_observation::Observation;
use ib_fabric::fabric_kind::FabricKind;
use ib_health::{Reason, Verdict};
use ib_mad::Counter;
use ib_sim::scenario::Scenario;

use test_rig::Simulated;

/// A bad cable, one that lost lanes and one that flaps.
fn observed(switch: &str) -> std::sync::Arc<Observation> {
    let text = format!(
        "seed: 3\n\
         fabric: {{fat-tree: {{hosts: 8, radix: 8, down: 4, up: 2, switch: {switch}, hca: connectx-8}}}}\n\
         traffic: {{load: 10%}}\n\
         timeline:\n\
         - front-panel: {{behavior: normal}}\n\
         - bad-cable: {{at: 1m, into: 'leaf-0-0[1]', ratio: 1e-6}}\n\
         - degrade: {{at: 1m, link: 'leaf-0-0[2]', width: 1x}}\n\
         - flap: {{at: 1m, link: 'leaf-0-1[1]', down: 5s, every: 1m, times: 5}}\n"
    );
    let simulated = Simulated::of(&Scenario::parse("test", &text).unwrap());
    simulated.run_to(Duration::from_secs(1_200));
    simulated.observation()
}

#[test]
fn links_of_nvlink_fabrics_have_counters_and_no_verdicts() {
    let observation = observed("nvlink-5");
    let snapshot = observation.snapshot.as_ref().unwrap();
    assert_eq!(snapshot.fabric.kind, Some(FabricKind::NvLink));
    let links = &observation.assessment.links;
    assert_eq!(links.len(), snapshot.fabric.links().count());
    for link in links {
        let reasons: Vec<Reason> = link.reasons.iter().map(|(reason, _)| reason).collect();
        assert_eq!((link.verdict, link.repair), (Verdict::Unknown, None));
        assert_eq!(reasons, [Reason::NvLink]);
    }
    let errors = snapshot.readings.iter().flatten();
    let errors = errors.filter_map(|reading| reading.get(Counter::SymbolErrors)).max();
    assert!(errors > Some(1_000), "counters are read: {errors:?}");
    let condition = condition::latest(&observation);
    assert!(condition.headline.starts_with("NVLink fabric: all"), "{condition:?}");
}

#[test]
fn same_faults_of_an_infiniband_fabric_have_verdicts() {
    let observation = observed("quantum-3");
    assert_eq!(observation.snapshot.as_ref().unwrap().fabric.kind, Some(FabricKind::InfiniBand));
    let bad = observation.assessment.links.iter().filter(|it| it.verdict == Verdict::Bad);
    assert!(bad.count() >= 2);
}
