//! Nearly saturated counters are cleared with the flag, and only then.

use fabric_exporter::config::options::FabricOptions;
use ib_mad::Counter;
use ib_sim::scenario::{FabricChange, Overrides, Scenario};

use crate::scenario_effects::look::Run;
use test_rig::Simulated;

const OLD_DEVICES: &str = "{fabric: {fat-tree: {hosts: 8, radix: 8, switch: infiniscale-4, \
     hca: connectx-3}}, traffic: {pattern: none}}";

/// Counters of a port, and whether they are nearly saturated.
const COUNTED: [(Counter, u64, bool); 3] = [
    (Counter::SymbolErrors, 65_535, true),
    (Counter::LinkDowned, 200, true),
    (Counter::RcvErrors, 40_000, false),
];

fn watched(clear_saturated: Option<bool>) -> Run {
    let scenario = Scenario::parse("test", OLD_DEVICES).unwrap();
    let story = scenario.resolve(&Overrides::default()).unwrap();
    let options = FabricOptions { clear_saturated, ..FabricOptions::default() };
    let run = Run::of(Simulated::with(story, options));
    run.at(5);
    let port = run.simulated.port("host-3[1]");
    for (counter, value, _) in COUNTED {
        run.simulated.act(FabricChange::SetCounter { port, counter, value });
    }
    run
}

#[test]
fn no_counters_are_cleared_without_the_flag() {
    for flag in [None, Some(false)] {
        let run = watched(flag);
        run.at(200);
        assert_eq!(run.simulated.sets(), 0);
        let port = run.simulated.port("host-3[1]");
        for (counter, value, _) in COUNTED {
            assert_eq!(run.simulated.world().count(port, counter), value, "{counter:?}");
        }
        assert!(run.simulated.observation().snapshot.as_ref().unwrap().cleared.is_empty());
    }
}

#[test]
fn nearly_saturated_counters_are_cleared_after_the_sweep() {
    let run = watched(Some(true));
    // Sweeps begin at 15, 30, ... seconds.
    run.at(16);
    assert_eq!(run.simulated.sets(), 1, "one port, one MAD");
    let observation = run.simulated.observation();
    let snapshot = observation.snapshot.as_ref().unwrap();
    let mut told: Vec<_> = snapshot.cleared.iter().map(|it| (it.counter, it.last)).collect();
    told.sort_unstable();
    let full = COUNTED.iter().filter(|(.., full)| *full);
    let mut expected: Vec<_> = full.map(|&(counter, value, _)| (counter, value)).collect();
    expected.sort_unstable();
    assert_eq!(told, expected);
    let port = run.simulated.port("host-3[1]");
    for (counter, value, full) in COUNTED {
        let left = if full { 0 } else { value };
        assert_eq!(run.simulated.world().count(port, counter), left, "{counter:?}");
    }
    run.at(100);
    assert_eq!(run.simulated.sets(), 1);
    let later = run.simulated.observation();
    assert!(later.snapshot.as_ref().unwrap().cleared.is_empty(), "reported only once");
}
