//! A link whose only evidence is error correction, beyond the range of its 32-bit counter.

use std::time::Duration;

use fabric_api::FabricView;
use fabric_api::ports;
use fabric_exporter::config::options::{FabricOptions, HealthOptions, LimitOption, Options};
use ib_health::{Reason, Verdict};
use ib_sim::scenario::{Overrides, Scenario};

use crate::verdicts::watch::{link, summary};
use test_rig::Simulated;

/// The corrected errors are above their limit, which the site set, and the uncorrected ones are not.
fn watched(story: &str, registers: bool) -> Simulated {
    let story = Scenario::parse("saturation", story).unwrap();
    let limit = LimitOption { speed: "NDR".into(), fec: None, symbol: 1e-10, pre_fec: Some(1e-5) };
    let options = Options {
        fabric: FabricOptions { registers: Some(registers), ..FabricOptions::default() },
        health: HealthOptions { limits: Some(vec![limit]), ..HealthOptions::default() },
        ..Options::default()
    };
    Simulated::set(story.resolve(&Overrides::default()).unwrap(), options)
}

#[test]
fn saturated_counter_keeps_verdict_and_last_ratio() {
    let simulated =
        watched("timeline: [bad-cable: {at: 10m, into: \"leaf-0-1[9]\", ratio: 1e-12}]", false);
    let mut full_at = None;
    for minute in 1..=90 {
        simulated.run_to(Duration::from_secs(60 * minute + 5));
        let observation = simulated.observation();
        let found = link(&observation, "leaf-0-1[9]").unwrap();
        let weight = |reason| found.reasons.weight(reason);
        if minute > 15 {
            assert_eq!(found.verdict, Verdict::Watch, "{minute} min: {}", summary(found));
            assert_eq!(weight(Reason::PreFec), Some(Verdict::Watch), "{minute} min");
        }
        if weight(Reason::CounterSaturated) == Some(Verdict::Ok) {
            full_at.get_or_insert(minute);
        }
    }
    let full_at = full_at.expect("32 bits are full after a quarter of an hour");
    assert!((20..40).contains(&full_at), "{full_at} min");
    let observation = simulated.observation();
    let found = link(&observation, "leaf-0-1[9]").unwrap();
    let detail = ports::link(FabricView::new(&observation).unwrap(), found.link);
    let measured = detail.ports.iter().filter_map(|port| port.pre_fec_ber.as_ref());
    let measured = measured.max_by(|a, b| a.ratio.total_cmp(&b.ratio)).unwrap();
    assert!(measured.stale && (1e-5..2e-5).contains(&measured.ratio), "{measured:?}");
    let measured_at = humantime::parse_rfc3339(measured.measured_at.as_deref().unwrap()).unwrap();
    let swept = humantime::parse_rfc3339(detail.swept_at.as_deref().unwrap()).unwrap();
    let age = swept.duration_since(measured_at).unwrap().as_secs() / 60;
    assert!((90 - full_at - 1..=90 - full_at + 1).contains(&age), "{age} min, {full_at} min");
    let because = detail.link.reasons.iter().find(|because| because.reason == "pre_fec").unwrap();
    assert!(because.evidence.contains("saturated since then"), "{}", because.evidence);
}

#[test]
fn registers_measure_on_after_the_counter_saturated() {
    let simulated = watched(
        "timeline: [bad-cable: {at: 10m, into: \"leaf-0-1[9]\", ratio: 1e-12, for: 80m}]",
        true,
    );
    simulated.run_to(Duration::from_secs(60 * 80));
    let observation = simulated.observation();
    let found = link(&observation, "leaf-0-1[9]").unwrap();
    assert_eq!(found.reasons.weight(Reason::CounterSaturated), Some(Verdict::Ok));
    assert_eq!(found.reasons.weight(Reason::PreFec), Some(Verdict::Watch), "{}", summary(found));
    let detail = ports::link(FabricView::new(&observation).unwrap(), found.link);
    let measured = detail.ports.iter().filter_map(|port| port.pre_fec_ber.as_ref());
    assert!(measured.clone().count() > 0 && measured.clone().all(|it| !it.stale));
    simulated.run_to(Duration::from_secs(60 * 100));
    let observation = simulated.observation();
    let found = link(&observation, "leaf-0-1[9]").unwrap();
    assert_eq!(found.verdict, Verdict::Ok, "{}", summary(found));
}
