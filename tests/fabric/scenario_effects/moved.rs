//! Moved cables and changed LIDs.

use std::collections::BTreeMap;
use std::time::Duration;

use ib_mad::m_key::MKey;
use ib_sim::scenario::FabricChange;
use test_rig::Simulated;

use crate::scenario_effects::look::{Look, Run};

pub fn miswired(run: &Run) {
    let before = run.at(50);
    before.assert_clean();
    let swapped = [("leaf-0-1[2]", "host-9[1]"), ("leaf-0-1[5]", "host-12[1]")];
    for (port, peer) in swapped {
        assert_eq!(before.peers[port], peer);
    }
    let after = run.at(115);
    assert_eq!(after.peers["leaf-0-1[2]"], "host-12[1]");
    assert_eq!(after.peers["leaf-0-1[5]"], "host-9[1]");
    assert_eq!(after.peers["host-9[1]"], "leaf-0-1[5]");
    assert!(after.changes("link_moved") >= 1);
    assert_eq!(after.down(), [""; 0]);
    let mut ends = vec!["leaf-0-1[2]", "host-9[1]", "leaf-0-1[5]", "host-12[1]"];
    let check = |look: &Look, ends: &[&str]| {
        let mut ends = ends.to_vec();
        ends.sort_unstable();
        let downed = look.counted("link_downed");
        assert!(downed.values().all(|count| *count == 1), "{downed:?}");
        assert_eq!(downed.into_keys().collect::<Vec<_>>(), ends);
    };
    check(&after, &ends);
    // A cable between switches is pulled, and put back.
    let pulled = run.peer("leaf-0-0[16]");
    ends.extend(["leaf-0-0[16]", &pulled]);
    let during = run.at(140);
    assert_eq!(during.get("state", "leaf-0-0[16]"), Some(1));
    assert_eq!(during.get("state", &pulled), Some(1));
    let after = run.at(175);
    assert_eq!(after.get("state", "leaf-0-0[16]"), Some(4));
    assert_eq!(after.peers["leaf-0-0[16]"], pulled);
    check(&after, &ends);
    // A host's cable is pulled, and plugged into a spine.
    let gone = run.at(220);
    assert_eq!(gone.down(), ["host-23"]);
    let back = run.at(420);
    assert_eq!(back.down(), [""; 0]);
    assert_eq!(back.peers["host-23[1]"], "spine-0[16]");
    assert_eq!(back.peers["spine-0[16]"], "host-23[1]");
    assert_eq!(back.get("state", "leaf-0-2[8]"), Some(1));
    assert_eq!(back.get("state", "spine-0[16]"), Some(4));
    ends.extend(["leaf-0-2[8]", "host-23[1]"]);
    check(&back, &ends);
    assert!(back.counted("symbol_errors").is_empty());
}

pub fn new_master(run: &Run) {
    let lids = |look: &Look| -> BTreeMap<String, String> {
        let all = look.metrics.all("infiniband_node_info");
        all.map(|(labels, _)| (labels["guid"].clone(), labels["lid"].clone())).collect()
    };
    let before = run.at(50);
    // Another master; LIDs do not change.
    let after = run.at(110);
    assert_eq!(lids(&before), lids(&after));
    assert_eq!(after.changes("lid_changed"), 0);
    {
        let world = run.simulated.world();
        let [manager, other] = ["host-2[1]", "spine-0[0]"].map(|port| run.simulated.port(port));
        assert_eq!(world.sm_lid(other), world.port(manager).lid);
    }
    // The first one again, with other LIDs.
    assert_eq!(run.at(185).down(), [""; 0]);
    let last = run.at(200);
    assert_eq!(last.down(), [""; 0]);
    assert_eq!(run.at(290).down(), [""; 0]);
    let (then, now) = (lids(&before), lids(&last));
    assert_eq!(then.len(), now.len());
    let kept = then.iter().filter(|(guid, lid)| now[*guid] == **lid).count();
    assert!(kept <= 1, "{kept} kept theirs");
    assert!(last.changes("lid_changed") >= 28);
    last.assert_clean();
}

#[test]
fn reassigned_lids_do_not_mix_up_ports() {
    let run = Run::of(Simulated::text(
        "timeline: [bad-cable: {into: host-5, ratio: 1e-11}, \
         new-master: {at: 1m, host: host-2}, \
         new-master: {at: 2m, host: host-1, readdress: true}, \
         new-master: {at: 3m, host: host-2, readdress: true}]",
    ));
    for seconds in (20..=230).step_by(5) {
        let look = run.at(seconds);
        assert_eq!(look.down(), [""; 0], "{seconds}");
        let errors = look.counted("symbol_errors");
        assert_eq!(errors.keys().copied().collect::<Vec<_>>(), ["host-5[1]"], "{seconds}");
    }
    assert!(run.at(100).changes("lid_changed") >= 28);
}

/// Nodes that refuse subnet management confirm no LID, at the begin of a sweep as at its end.
#[test]
fn lids_that_are_other_ones_until_a_sweep_has_begun_do_not_mix_up_ports() {
    for milliseconds in [2, 5, 10, 20, 40, 80] {
        let run = Run::of(Simulated::text(
            "{way: {round-trip: 5ms}, timeline: [bad-cable: {into: host-5, ratio: 1e-11}]}",
        ));
        assert_eq!(run.at(50).down(), [""; 0]);
        let manager = run.story().sm_ports[0];
        let others =
            run.net().node_ids().filter(|node| *node != run.net().port(manager).node).collect();
        run.simulated.act(FabricChange::SetMKey { nodes: others, m_key: MKey(44), level: 2 });
        let reassign = || {
            let change = FabricChange::SetMaster { port: manager, reassign_lids: true };
            run.simulated.act(change);
        };
        reassign();
        run.simulated.run_to(Duration::from_secs(60) + Duration::from_millis(milliseconds));
        reassign();
        for seconds in [70, 85, 100] {
            let look = run.at(seconds);
            let errors = look.counted("symbol_errors");
            let ports: Vec<&str> = errors.keys().copied().collect();
            assert!(ports == ["host-5[1]"] || ports.is_empty(), "{milliseconds} ms: {errors:?}");
        }
    }
}
