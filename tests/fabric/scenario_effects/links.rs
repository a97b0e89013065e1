//! Faults of links.

use crate::scenario_effects::look::{LOST, Look, NDR_BITS, Run, assert_drawn};
use test_rig::Simulated;

pub fn bad_cable(run: &Run) {
    let into = "leaf-0-1[9]";
    run.at(20).assert_clean();
    let look = run.at(125);
    // The corrupt packets are for one host, which receives them marked.
    let marked = ["host-8[1]"];
    look.assert_only(&[
        ("symbol_errors", &[into]),
        ("fec_uncorrectable_blocks", &[into]),
        ("local_link_integrity_errors", &[into]),
        ("receive_errors", &[into]),
        ("receive_local_physical_errors", &[into]),
        ("receive_remote_physical_errors", &marked),
    ]);
    assert_drawn(look.count("symbol_errors", into), 90.0 * NDR_BITS * 1e-9, "symbol errors");
    // The rate of corrected symbols is far higher than elsewhere, long before errors remain.
    let mended = look.counted("fec_corrected_symbols");
    let others = mended.iter().filter(|(port, _)| **port != into).map(|(_, count)| *count);
    assert!(mended[into] > 100 * others.max().unwrap(), "{mended:?}");
    // The link carries 20% of its rate, in packets of 4 KiB.
    let packets = look.count("receive_packets", into) - run_packets_at(&look, 30, 120, into);
    let hit = packets as f64 * 4096.0 * 8.0 * 1e-9;
    assert_drawn(look.count("receive_errors", into), hit, "packets that were hit");
    assert_drawn(look.count("receive_remote_physical_errors", marked[0]), hit, "marked packets");
    assert_eq!(
        look.count("receive_errors", into),
        look.count("receive_local_physical_errors", into)
    );
    // Ten times worse for a minute.
    let looks = [run.at(305), run.at(365), run.at(425)];
    for (pair, mean) in looks.windows(2).zip([1e-8, 1e-9].map(|ratio| 60.0 * NDR_BITS * ratio)) {
        let more = pair[1].more("symbol_errors", &pair[0]);
        assert_eq!(more.keys().copied().collect::<Vec<_>>(), [into]);
        assert_drawn(more[into], mean, "symbol errors in a minute");
    }
    assert_eq!(looks[2].down(), [""; 0]);
}

/// The packets of the first seconds of a port whose traffic is steady.
fn run_packets_at(look: &Look, first: u64, all: u64, port: &str) -> u64 {
    look.count("receive_packets", port) * first / all
}

#[test]
fn repaired_cable_has_no_more_errors() {
    let run = Run::of(Simulated::text(
        "timeline: [bad-cable: {at: 30s, into: \"spine-0[1]\", ratio: 1e-10, for: 1m}]",
    ));
    let (during, after, later) = (run.at(80), run.at(95), run.at(200));
    let symbols = |look: &Look| look.count("symbol_errors", "spine-0[1]");
    assert_drawn(symbols(&during), 45.0 * NDR_BITS * 1e-10, "in 45 s");
    assert_drawn(symbols(&after), 60.0 * NDR_BITS * 1e-10, "in a minute");
    assert_eq!(symbols(&after), symbols(&later));
    // The other direction of the cable has no errors, and neither has what leaves this switch.
    let symbol_errors = later.counted("symbol_errors");
    assert_eq!(symbol_errors.keys().copied().collect::<Vec<_>>(), ["spine-0[1]"]);
    // Marked packets are counted at all later ports, and at none before.
    let ways = run.ways();
    let bad = run.simulated.port(&run.peer("spine-0[1]"));
    let mut downstream: Vec<String> = ways
        .iter()
        .filter_map(|way| Some(&way[way.iter().position(|port| *port == bad)? + 1..]))
        .flatten()
        .map(|port| run.peer(&run.net().label(*port)))
        .collect();
    downstream.sort();
    downstream.dedup();
    assert!(downstream.len() >= 2, "{downstream:?}");
    let marked = later.counted("receive_remote_physical_errors");
    assert_eq!(marked.keys().copied().collect::<Vec<_>>(), downstream);
}

#[test]
fn idle_bad_cable_has_symbol_errors_only() {
    let run = Run::of(Simulated::text(
        "{traffic: {pattern: none}, timeline: [bad-cable: {into: \"spine-0[1]\", ratio: 1e-10}]}",
    ));
    let look = run.at(65);
    look.assert_only(&[
        ("symbol_errors", &["spine-0[1]"]),
        ("fec_uncorrectable_blocks", &["spine-0[1]"]),
        ("local_link_integrity_errors", &["spine-0[1]"]),
    ]);
    assert_drawn(look.count("symbol_errors", "spine-0[1]"), 60.0 * NDR_BITS * 1e-10, "in a minute");
}

pub fn flapping_link(run: &Run) {
    let ends = ["leaf-0-2[3]", "host-18[1]"];
    run.at(20).assert_clean();
    let look = run.at(95);
    look.assert_only(&[("link_error_recoveries", &ends)]);
    assert!(ends.iter().all(|end| look.count("link_error_recoveries", end) == 6));
    assert_eq!((look.down(), look.changes("link_removed")), (vec![], 0));

    // Down from 4:00 to 4:40.
    let look = run.at(260);
    assert_eq!(look.get("state", ends[0]), Some(1));
    assert_eq!(look.get("physical_state", ends[0]), Some(2));
    assert_eq!(look.down(), ["host-18"]);
    assert_eq!(look.count("link_downed", ends[0]), 3);

    let look = run.at(600);
    let lost: &[&str] = &ends;
    look.assert_only(&[
        ("link_error_recoveries", lost),
        ("link_downed", lost),
        ("transmit_discards", lost),
        ("transmit_inactive_discards", lost),
        ("receive_switch_relay_errors", &ends[..1]),
        ("receive_dlid_mapping_errors", &ends[..1]),
    ]);
    for end in ends {
        assert_eq!(look.count("link_error_recoveries", end), 6);
        assert_eq!(look.count("link_downed", end), 3);
        assert_eq!(look.count("transmit_discards", end), 3 * LOST);
        assert_eq!(look.get("state", end), Some(4));
    }
    assert_eq!(look.down(), [""; 0]);
    // Its traffic flows again.
    let later = run.at(660);
    assert!(ends.iter().all(|end| later.more("transmit_bytes", &look).contains_key(end)));
}

pub fn degraded_link(run: &Run) {
    let (narrow, old) = ("leaf-0-0[9]", "leaf-0-1[2]");
    let sound = run.at(20);
    sound.assert_clean();
    let full = sound.get("rate_bytes_per_second", narrow).unwrap();
    let both = |port: &str| [port.to_owned(), run.peer(port)];
    let rates = |look: &Look, port: &str| {
        both(port).map(|end| {
            let link = [("link", look.links[&end].as_str())];
            let supported =
                look.metrics.get("infiniband_link_supported_rate_bytes_per_second", &link);
            assert_eq!(supported, Some(full as f64), "{end}");
            look.get("rate_bytes_per_second", &end).unwrap()
        })
    };
    // Between the two, the first has settled.
    let (from, to) = (run.at(50), run.at(58));
    assert_eq!(rates(&to, narrow), [full / 4; 2]);
    assert_eq!(rates(&to, old), [full; 2]);
    drop(from);
    let (from, to) = (run.at(140), run.at(320));
    assert_eq!(rates(&to, narrow), [full / 4; 2]);
    assert_eq!(rates(&to, old), [full / 4; 2]);
    for end in [narrow, old].map(both).as_flattened() {
        assert_eq!(to.count("link_downed", end), 1);
        assert_eq!(to.get("state", end), Some(4));
    }
    // Only the ports that feed the slow links wait.
    let waits = to.more("transmit_wait_ticks", &from);
    let roots = [both(narrow), both(old)].concat();
    let roots: Vec<&str> = roots.iter().map(String::as_str).collect();
    let may = run.upstream(&roots);
    assert!(!waits.is_empty() && waits.keys().all(|port| may.contains(*port)), "{waits:?}");
    for root in &roots {
        assert!(
            !waits.contains_key(root) || may.contains(*root),
            "{root} is busy, and never waits"
        );
    }
    // The old cable is replaced, and its link goes down once more; the narrow one stays.
    let after = run.at(480);
    assert_eq!(rates(&after, narrow), [full / 4; 2]);
    assert_eq!(rates(&after, old), [full; 2]);
    for (port, downs) in [(narrow, 1), (old, 2)] {
        assert!(both(port).iter().all(|end| after.count("link_downed", end) == downs), "{port}");
    }
    assert_eq!(after.counted("link_downed").len(), 4);
    for counter in ["symbol_errors", "receive_errors", "link_error_recoveries"] {
        assert!(after.counted(counter).is_empty());
    }
    // Without that bottleneck its feeders do not wait any more.
    let waits = run.at(600).more("transmit_wait_ticks", &after).len();
    assert!(0 < waits, "the narrow link is still too narrow");
    let of_narrow = run.upstream(&both(narrow).each_ref().map(String::as_str));
    let later = run.at(660);
    let still = later.more("transmit_wait_ticks", &after);
    assert!(still.keys().all(|port| of_narrow.contains(*port)), "{still:?}");
}

pub fn modules(run: &Run) {
    run.at(50).assert_clean();
    let after = run.at(600);
    assert_eq!(after.down(), [""; 0]);
    // Errors on a lane are corrected.
    let (dirty, clean) = ("spine-0[2]", "spine-0[4]");
    let corrected = |port| after.count("fec_corrected_symbols", port);
    assert!(corrected(dirty) > 100 * corrected(clean), "{} {}", corrected(dirty), corrected(clean));
    for counter in ["symbol_errors", "fec_uncorrectable_blocks", "receive_errors"] {
        assert_eq!(after.count(counter, dirty), 0, "{counter}");
    }
    // Another cable: the link was down once.
    for end in ["spine-1[2]", &run.peer("spine-1[2]")] {
        assert_eq!(after.count("link_downed", end), 1, "{end}");
    }
}
