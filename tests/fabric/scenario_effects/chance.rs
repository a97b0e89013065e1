//! Random events, and long scenarios.

use std::time::Duration;

use fabric_exporter::config::options::FabricOptions;
use ib_sim::scenario::{Overrides, Scenario};

use crate::scenario_effects::look::{NDR_BITS, Run, assert_drawn};
use test_rig::Simulated;

/// All random effects.
const CHANCE: &str = r#"
way: {loss: 1%, jitter: 100us}
traffic: {pattern: random, load: 50%}
timeline:
  - bad-cable: {at: 10s, into: "leaf-0-1[9]", ratio: 1e-10}
  - bad-cable: {at: 20s 300ms, into: "host-3", ratio: 3e-11, for: 1m 500ms}
  - flap: {at: 30s, link: "leaf-0-0[2]", down: [5ms, 700ms], every: 20s, times: 4}
  - burst: {at: 40s, from: 5, to: host-7, load: 80%, for: 33s}
  - slow-receiver: {at: 60s, host: host-9, takes: 5%, for: 30s}
"#;

fn chance(seed: u64) -> Run {
    Run::of(Simulated::text(&format!("seed: {seed}\n{CHANCE}")))
}

#[test]
fn same_seed_has_the_same_metrics() {
    let (once, often) = (chance(1), chance(1));
    // In small steps, with other reads of the simulation in between.
    for step in 1..500 {
        often.simulated.run_to(Duration::from_millis(370 * step));
        if step % 3 == 0 {
            drop(often.simulated.world());
        }
    }
    let (once, often) = (once.at(185), often.at(185));
    assert_eq!(once.of_ports(), often.of_ports());
    assert_eq!(once.mads("timed_out"), often.mads("timed_out"));
    assert!(once.mads("timed_out") > 0);
    let other = chance(2).at(185);
    for counter in ["symbol_errors", "receive_errors", "transmit_bytes"] {
        assert_ne!(once.counted(counter), other.counted(counter), "{counter}");
    }
}

#[test]
fn virtual_day_is_fast() {
    let text = "{timeline: [bad-cable: {into: \"leaf-0-1[9]\", ratio: 1e-12}, \
                flap: {at: 1h, link: host-3, down: [5ms, 3s], every: 1h, times: 20}]}";
    let story = Scenario::parse("day", text).unwrap().resolve(&Overrides::default()).unwrap();
    let options = FabricOptions {
        interval: Some("5m".parse().unwrap()),
        discovery_interval: Some("1h".parse().unwrap()),
        ..FabricOptions::default()
    };
    let run = Run::of(Simulated::with(story, options));
    let look = run.at(24 * 3600 + 30);
    assert_eq!(look.metrics.get_u64("fabric_exporter_sweeps_total", &[]), Some(24 * 12 + 1));
    for end in ["host-3[1]", "leaf-0-0[4]"] {
        assert_eq!(look.count("link_downed", end), 10);
        assert_eq!(look.count("link_error_recoveries", end), 10);
    }
    assert_drawn(
        look.count("symbol_errors", "leaf-0-1[9]"),
        86400.0 * NDR_BITS * 1e-12,
        "in a day",
    );
}
