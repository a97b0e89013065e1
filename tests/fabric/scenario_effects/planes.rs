//! Faults of single planes of XDR links.

use crate::scenario_effects::look::{Look, Run, assert_drawn};

/// One lane of XDR, in bits a second.
const PLANE_BITS: f64 = 200e9;

/// Exactly these ports lost their links, each once.
fn assert_downed(look: &Look, ends: &[&str]) {
    let downed = look.counted("link_downed");
    assert!(downed.values().all(|count| *count == 1), "{downed:?}");
    let mut ends = ends.to_vec();
    ends.sort_unstable();
    assert_eq!(downed.into_keys().collect::<Vec<_>>(), ends);
    for counter in ["symbol_errors", "receive_errors", "link_error_recoveries"] {
        assert!(look.counted(counter).is_empty(), "{counter}");
    }
}

pub fn plane_down(run: &Run) {
    let before = run.at(110);
    before.assert_clean();
    let (host, uplink) = (["host-5[3]", "leaf-1-a3[2]"], "leaf-2-a2[6]");
    let peer = run.peer(uplink);
    let during = run.at(500);
    assert_eq!(during.down(), [""; 0], "the other planes still connect all nodes");
    // The lost plane of the host is not reached any more, unless its node is asked by another one.
    assert_ne!(during.get("state", host[0]), Some(4));
    let ends = [host[0], host[1], uplink, &peer];
    for end in &ends[1..] {
        assert_eq!(during.get("state", end), Some(1), "{end}");
    }
    // The other three planes carry the traffic of four.
    let later = run.at(620);
    let sent =
        |port: &str| later.count("transmit_bytes", port) - during.count("transmit_bytes", port);
    assert_eq!(sent(host[1]), 0);
    let ratio = sent("host-5[2]") as f64 / sent("host-6[2]") as f64;
    assert!((ratio - 4.0 / 3.0).abs() < 0.01, "{ratio}");
    let after = run.at(900);
    for end in ends {
        assert_eq!(after.get("state", end), Some(4), "{end}");
    }
    assert_downed(&after, &ends);
}

pub fn plane_errors(run: &Run) {
    let into = "leaf-1-a3[5]";
    run.at(50).assert_clean();
    let look = run.at(185);
    let errors = look.counted("symbol_errors");
    assert_eq!(errors.keys().copied().collect::<Vec<_>>(), [into]);
    // From the start of the fault to the last sweep.
    assert_drawn(errors[into], 120.0 * PLANE_BITS * 5e-11, "ten errors a second");
    let marked = look.counted("receive_remote_physical_errors");
    assert!(!marked.is_empty(), "packets of this plane are hit");
    for port in marked.keys() {
        let in_plane = port.starts_with("host-") && port.ends_with("[3]");
        assert!(in_plane || port.starts_with("leaf-1-a3"), "{port}: in plane 3 only");
    }
}

pub fn swapped_planes(run: &Run) {
    let before = run.at(50);
    before.assert_clean();
    let after = run.at(200);
    for (port, was, is) in [
        ("host-5[1]", "leaf-1-a1[2]", "leaf-1-a2[2]"),
        ("host-5[2]", "leaf-1-a2[2]", "leaf-1-a1[2]"),
        ("host-5[3]", "leaf-1-a3[2]", "leaf-1-a3[2]"),
    ] {
        assert_eq!((before.peers[port].as_str(), after.peers[port].as_str()), (was, is), "{port}");
        assert_eq!(after.get("state", port), Some(4), "{port}");
    }
    assert_eq!(after.down(), [""; 0]);
    assert_downed(&after, &["host-5[1]", "host-5[2]", "leaf-1-a1[2]", "leaf-1-a2[2]"]);
}

pub fn wrong_switch(run: &Run) {
    run.at(50).assert_clean();
    let after = run.at(400);
    assert_eq!(after.peers["host-5[4]"], "leaf-2-a4[20]");
    assert_eq!(after.peers["host-5[3]"], "leaf-1-a3[2]");
    assert_eq!(after.get("state", "leaf-2-a4[20]"), Some(4));
    assert_eq!(after.get("state", "leaf-1-a4[2]"), Some(1));
    assert_eq!(after.down(), [""; 0]);
    assert_downed(&after, &["host-5[4]", "leaf-1-a4[2]"]);
}

pub fn broken_ring(run: &Run) {
    run.at(50).assert_clean();
    let (first, second) =
        (["leaf-0-a2[145]", "leaf-0-a3[146]"], ["leaf-0-a4[145]", "leaf-0-a1[146]"]);
    let one = run.at(300);
    assert_eq!(one.down(), [""; 0], "a ring with one gap still connects all nodes");
    assert_downed(&one, &first);
    let two = run.at(1_000);
    assert_eq!(two.down(), [""; 0], "other switches connect the planes");
    assert_downed(&two, &[first, second].concat());
    assert_eq!(two.get("state", second[0]), Some(1));
    let after = run.at(1_400);
    let states = [first[0], second[0]].map(|port| after.get("state", port));
    assert_eq!(states, [Some(1), Some(4)]);
}

pub fn asic_reboot(run: &Run) {
    let before = run.at(110);
    before.assert_clean();
    let during = run.at(200);
    assert_eq!(during.down(), ["spine-1-a3", "spine-1-a3-an"], "and no other ASIC");
    let after = run.at(500);
    assert_eq!(after.down(), [""; 0]);
    let ends: Vec<String> = run.ports_of("spine-1-a3").iter().map(|port| run.peer(port)).collect();
    // Four leaves with two cables each, and the ring. The aggregation node counts no LinkDowned.
    let ends: Vec<_> = ends.into_iter().filter(|end| !end.ends_with("-an[1]")).collect();
    assert_eq!(ends.len(), 8 + 2);
    assert_downed(&after, &ends.iter().map(String::as_str).collect::<Vec<_>>());
    let reset = after.reset_since(&before);
    assert!(
        !reset.is_empty() && reset.iter().all(|port| port.starts_with("spine-1-a3[")),
        "{reset:?}"
    );
}

pub fn prism(run: &Run) {
    run.at(50).assert_clean();
    let look = run.at(400);
    let downed = look.counted("link_downed");
    let (pair, old) = (run.peer("pair-0[2]"), run.peer("old-0[1]"));
    let expected = [("pair-0[2]", 1), (pair.as_str(), 1), ("old-0[1]", 3), (old.as_str(), 3)];
    assert_eq!(downed, expected.into_iter().collect());
    assert_eq!(look.counted("symbol_errors").into_keys().collect::<Vec<_>>(), ["leaf-0[18]"]);
    assert_eq!(look.down(), [""; 0]);
}
