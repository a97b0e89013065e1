//! Faults of nodes and their agents.

use crate::scenario_effects::look::{LOST, Look, NDR_BITS, Run, assert_drawn};

pub fn host_reboot(run: &Run) {
    let (own, far) = ("host-13[1]", "leaf-0-1[6]");
    let before = run.at(50);
    before.assert_clean();
    let during = run.at(100);
    assert_eq!(during.down(), ["host-13"]);
    assert_eq!(during.get("transmit_bytes_total", own), None);
    assert_eq!(during.get("state", far), Some(1));
    let after = run.at(245);
    assert_eq!(after.down(), [""; 0]);
    assert_eq!(after.get("state", far), Some(4));
    after.assert_only(&[
        ("link_downed", &[far]),
        ("transmit_discards", &[far]),
        ("transmit_inactive_discards", &[far]),
        ("receive_switch_relay_errors", &[far]),
        ("receive_dlid_mapping_errors", &[far]),
    ]);
    assert_eq!((after.count("link_downed", far), after.count("transmit_discards", far)), (1, LOST));
    // Ten gigabytes a second since the link carries traffic again, at 2:31, and until the last
    // sweep before the reboot, at most 15 s after the first metrics.
    let sent = after.count("transmit_bytes", own) - before.count("transmit_bytes", own);
    assert!((83.0..=106.0).contains(&(sent as f64 / 10e9)), "{sent}");
    assert_eq!(after.reset_since(&before), [own]);
}

pub fn switch_reboot(run: &Run) {
    let before = run.at(50);
    before.assert_clean();
    let hosts: Vec<String> = (16..24).map(|host| format!("host-{host}")).collect();
    let during = run.at(150);
    let mut gone: Vec<&str> = hosts.iter().map(String::as_str).collect();
    gone.push("leaf-0-2");
    assert_eq!(during.down(), gone);

    // It is back at 3:00, and has a LID a second later.
    assert!(run.at(230).get("transmit_bytes_total", "leaf-0-2[1]").is_some());
    let after = run.at(400);
    assert_eq!(after.down(), [""; 0]);
    let ends: Vec<String> = run.ports_of("leaf-0-2").iter().map(|port| run.peer(port)).collect();
    assert_eq!(ends.len(), 16);
    let downed = after.counted("link_downed");
    assert!(downed.values().all(|count| *count == 1));
    let mut expected: Vec<&str> = ends.iter().map(String::as_str).collect();
    expected.sort_unstable();
    assert_eq!(downed.into_keys().collect::<Vec<_>>(), expected);
    // The hosts' own counters are the same, and those of the switch are reset.
    for host in &hosts {
        let port = format!("{host}[1]");
        assert!(after.count("transmit_bytes", &port) > before.count("transmit_bytes", &port));
    }
    let mut busy = Vec::new();
    for port in run.ports_of("leaf-0-2") {
        let [then, now] = [&before, &after].map(|look| look.count("transmit_bytes", &port));
        // 3:01 to 6:30 at 10 GB/s, and one sweep before the reboot.
        assert!((then..=then + 225 * 10_000_000_000).contains(&now), "{port}: {now}");
        let received = before.count("receive_bytes", &port);
        busy.extend((then + received > 0).then_some(port));
    }
    busy.sort();
    assert!(busy.len() > 8);
    assert_eq!(after.reset_since(&before), busy);
    for counter in ["symbol_errors", "receive_errors", "link_error_recoveries"] {
        assert!(after.counted(counter).is_empty());
    }
}

pub fn cleared_counters(run: &Run) {
    let (bad, own) = ("leaf-0-0[9]", run.ports_of("leaf-0-0"));
    // Each minute, five times.
    for minute in 1..=5 {
        let (before, after) = (run.at(60 * minute - 10), run.at(60 * minute + 2));
        let mut receiving: Vec<&str> = own
            .iter()
            .filter(|port| before.count("receive_bytes", port) > 0)
            .map(String::as_str)
            .collect();
        receiving.sort_unstable();
        assert_eq!(after.reset_since(&before), receiving, "minute {minute}");
        // A quarter of each minute is after the last sweep before the clear.
        let errors = before.count("symbol_errors", bad);
        let seen = 45.0 * minute as f64;
        assert_drawn(errors, seen * NDR_BITS * 1e-9, "in 45 s a minute");
        let more = after.count("symbol_errors", bad) - errors;
        assert!(more < 500, "no jump: {more}");
    }
    // All of them.
    let (before, after) = (run.at(410), run.at(422));
    let receiving: Vec<&str> = before.counted("receive_bytes").into_keys().collect();
    assert_eq!(after.reset_since(&before), receiving);
    // One of them.
    let (before, after) = (run.at(470), run.at(482));
    assert_eq!(after.reset_since(&before), ["leaf-0-1[9]"]);
    // The counter that was set stays.
    let set = "leaf-0-1[10]";
    for look in [run.at(545), run.at(605)] {
        assert_eq!((look.count("symbol_errors", set), look.count("link_downed", set)), (4242, 17));
        assert_eq!(look.counted("link_downed").len(), 1);
        assert_eq!(look.counted("symbol_errors").len(), 2);
    }
}

pub fn dead_switch(run: &Run) {
    let own = run.ports_of("spine-1");
    let before = run.at(50);
    before.assert_clean();
    for (from, to) in [(80, 140), (140, 340)] {
        let (from, to) = (run.at(from), run.at(to));
        assert_eq!(to.down(), ["spine-1"]);
        for port in &own {
            assert_eq!(to.get("transmit_bytes_total", port), None, "{port}");
            // The peer shows the traffic.
            let peer = run.peer(port);
            let [then, now] = [&from, &to].map(|look| look.count("receive_bytes", &peer));
            assert_eq!(now > then, then > 0, "{peer}");
        }
        to.assert_clean();
    }
    let after = run.at(420);
    assert_eq!(after.down(), [""; 0]);
    after.assert_clean();
    // At least six minutes: it counted while it was silent.
    for port in &own {
        let (then, now) = (before.count("receive_bytes", port), after.count("receive_bytes", port));
        assert!(now as f64 >= then as f64 * 8.5, "{port}: {then}, then {now}");
    }
    assert_eq!(after.changes("link_moved"), 0);
}

pub fn slow_node(run: &Run) {
    let before = run.at(50);
    assert_eq!((before.down(), before.mads("timed_out")), (vec![], 0));
    // 800 ms is too late, each time.
    let slow = run.at(110);
    assert_eq!(slow.down(), ["spine-0"]);
    assert!(slow.mads("timed_out") > 0 && slow.mads("busy") == 0);
    // The kernel drops a late response.
    assert_eq!(slow.mads("stray"), 0);
    // Half of the responses are busy: they are requested again.
    let busy = run.at(170);
    assert_eq!(busy.down(), ["spine-0"]);
    assert!(busy.mads("busy") > 0);
    // A leaf with responses after 50 ms loses nothing, also if it is busy.
    for seconds in [200, 230] {
        let look = run.at(seconds);
        assert_eq!(look.down(), ["spine-0"], "{seconds}");
        for port in run.ports_of("leaf-0-1") {
            assert!(look.get("transmit_bytes_total", &port).is_some());
        }
    }
    let after = run.at(420);
    assert_eq!((after.down(), after.of_fabric("fabric_exporter_ports_failed")), (vec![], 0.0));
    after.assert_clean();
    // The leaf is still slow: sweeps take longer, and nothing is lost.
    let later = run.at(480);
    assert_eq!(
        (later.mads("timed_out"), later.mads("busy")),
        (after.mads("timed_out"), after.mads("busy"))
    );
    let took = |look: &Look| look.of_fabric("fabric_exporter_sweep_duration_seconds");
    assert!(took(&before) < 0.05 && took(&later) > 0.05);
}

pub fn lossy_fabric(run: &Run) {
    let all = run.net().node_ids().flat_map(|node| run.ports_of(&run.net().node(node).id)).count();
    let mut last = 0;
    for seconds in (20..420).step_by(15) {
        let look = run.at(seconds);
        let others: Vec<&str> = look.down().into_iter().filter(|node| *node != "host-7").collect();
        assert_eq!(others, [""; 0], "{seconds}");
        // host-7 without its LID: if a discovery lost its PortInfo, until the next one, in 5 minutes.
        let missing = all - look.ports["transmit_bytes_total"].len().min(all);
        assert!(missing <= usize::from(seconds >= 120), "{seconds}: {missing}");
        look.assert_clean();
        last = look.mads("timed_out");
        // 2% of some 600 requests a sweep.
        assert!(seconds < 90 || last > 3, "{seconds}: {last}");
    }
    assert!(last > 100, "{last}");
    assert_eq!(run.at(480).down(), [""; 0]);
    assert_eq!(run.at(700).ports["transmit_bytes_total"].len(), all);
}
