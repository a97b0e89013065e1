//! Congestion in a fabric without faults.

use ib_mad::counter::{CounterKind, TABLE};

use crate::scenario_effects::look::{MENDED, Run};
use test_rig::Simulated;

pub fn congestion(run: &Run) {
    // No port waits before.
    run.at(20).assert_clean();

    // Twelve to one: the port at the receiver is busy all the time, and the ports before it wait.
    let (from, to) = (run.at(65), run.at(140));
    let waits = to.more("transmit_wait_ticks", &from);
    let may = run.upstream(&["leaf-0-0[4]"]);
    assert!(waits.len() >= 12 && waits.keys().all(|port| may.contains(*port)), "{waits:?}");
    assert!(!waits.contains_key("leaf-0-0[4]"), "{waits:?}");
    to.assert_only(&[("transmit_wait_ticks", &waits.keys().copied().collect::<Vec<_>>())]);
    // No port waits after it.
    let (from, to) = (run.at(170), run.at(230));
    assert!(to.more("transmit_wait_ticks", &from).is_empty());

    // A slow receiver: the port before it is the root, and waits most.
    let root = "leaf-0-1[5]";
    let (from, to) = (run.at(380), run.at(470));
    let waits = to.more("transmit_wait_ticks", &from);
    let may = run.upstream(&[root]);
    assert!(waits.len() >= 3, "{waits:?}");
    assert!(waits.keys().all(|port| *port == root || may.contains(*port)), "{waits:?}");
    // Apart from rounding: the one port that feeds it waits as long.
    let most = waits[root] + waits[root] / 1_000_000;
    assert!(waits.values().all(|wait| *wait <= most), "{waits:?}");
    // It waits for nine tenths of the time: packets that are at its head for too long are
    // discarded.
    let late = to.more("transmit_hoq_limit_discards", &from);
    assert!(late.contains_key(root), "{late:?}");
    assert!(late.keys().all(|port| waits.contains_key(port)), "{late:?}");
    // No cable is bad.
    let wrong =
        TABLE.iter().filter(|row| matches!(row.kind, CounterKind::Error | CounterKind::Link));
    for row in wrong.filter(|row| !MENDED.contains(&row.metric)) {
        assert!(to.counted(row.metric).is_empty(), "{}", row.metric);
    }
    let (from, to) = (run.at(500), run.at(560));
    assert!(to.more("transmit_wait_ticks", &from).is_empty());
    assert!(to.more("transmit_discards", &from).is_empty());
}

#[test]
fn nearly_fast_receiver_causes_no_discards() {
    let run = Run::of(Simulated::text(
        "{traffic: {load: 60%}, timeline: [slow-receiver: {host: host-12, takes: 50%}]}",
    ));
    let look = run.at(120);
    let waits = look.counted("transmit_wait_ticks");
    assert!(waits.contains_key("leaf-0-1[5]") && waits.len() < 6, "{waits:?}");
    assert!(look.counted("transmit_discards").is_empty());
}

#[test]
fn discards_are_mostly_at_the_root() {
    let run = Run::of(Simulated::text(
        "{traffic: {load: 60%}, timeline: [slow-receiver: {host: host-12, takes: 3%}]}",
    ));
    // Soon: the counter of the cause has 16 bits.
    let look = run.at(65);
    let (root, may) = ("leaf-0-1[5]", run.upstream(&["leaf-0-1[5]"]));
    let late = look.counted("transmit_hoq_limit_discards");
    let at_most =
        |port: &str, count: u64| port == root || (may.contains(port) && count < late[root]);
    assert!(late.iter().all(|(port, count)| at_most(port, *count)), "{late:?}");
    assert!(late.contains_key(root) && late.len() <= 2, "{late:?}");
    assert_eq!(look.counted("transmit_discards"), late);
}
