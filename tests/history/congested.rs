//! A congestion in the history: its cause, its extent and its length, for those who read it later.

use fabric_history::model::Event;

use crate::{RecordedSimulation, events, minutes};

/// Congestion, and what must not be taken for its end or for another one: cleared counters, and the reboot of a host
/// that sends, of one that has no part in it, of the receiver, and of a switch between them.
const STORY: &str = "\
fabric: {fat-tree: {hosts: 160, radix: 32}}
traffic: {pattern: none}
timeline:
  - burst: {at: 1m, from: 120, to: host-3, load: 10%, for: 20m}
  - slow-receiver: {at: 1m, host: host-3, takes: 30%, for: 20m}
  - clear: {at: 4m 7s}
  - clear: {at: 5m 7s, node: leaf-0-0}
  - reboot: {at: 7m, node: host-20, down: 60s}
  - reboot: {at: 9m, node: host-150, down: 60s}
  - reboot: {at: 11m 2s, node: host-3, down: 60s}
  - reboot: {at: 15m 3s, node: spine-2, down: 60s}
";

#[test]
fn congestion_is_one_episode_with_its_cause_despite_clears_and_reboots() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("history.db");
    let mut simulation = RecordedSimulation::new(STORY, &file);
    simulation.run_to(minutes(30));
    simulation.recorder.finish(crate::wall(minutes(30)));
    let events = events(&file);
    assert!(events.iter().any(|event| event.kind == "counter_reset"), "{events:#?}");
    let of = |kind: &str| events.iter().filter(|event| event.kind == kind).collect::<Vec<&Event>>();
    let (starts, ends) = (of("congestion_start"), of("congestion_end"));
    let ([start], [end]) = (&starts[..], &ends[..]) else { panic!("{starts:#?} {ends:#?}") };
    assert!(start.text.starts_with("slow receiver host-3: "), "{start:?}");
    for event in [start, end] {
        let detail = &event.detail;
        assert_eq!((&*event.place, &detail["host"]), ("leaf-0-0 port 4", &"host-3".into()));
        assert_eq!((&detail["cause"], &detail["level"]), (&"slow_receiver".into(), &"high".into()));
        assert!(detail["ports"].as_u64() >= Some(100), "{detail}");
        assert_eq!(detail["victims"].as_array().unwrap().len(), 10, "{detail}");
        assert!(detail["victim_count"].as_u64() < detail["ports"].as_u64(), "{detail}");
        assert!(detail["share"].as_f64() > Some(0.6), "{detail}");
    }
    assert!(end.text.starts_with("over after 19m 44s: up to 1"), "{end:?}");
    assert!(end.text.ends_with(" packets discarded"), "{end:?}");
    assert_eq!(end.detail["seconds"], 19 * 60 + 44);
}
