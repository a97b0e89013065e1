//! `doctor` on ibsim, with and without a subnet manager.

use std::time::Duration;

use crate::doctor::patient::Report;
use test_rig::{Ibsim, OpenSm, run_to_exit, topology};

#[test]
fn subnet_manager_is_queried_on_the_fabric_port() {
    let net = topology::fat_tree_2(8, 6, 4, 3);
    let ibsim = Ibsim::start(&net);
    let asked = || {
        // ibsim hands MADs of classes that it does not know to OpenSM, which ends.
        let registers = "--no-fabric.registers";
        let args = ["doctor", "--json", "--web.listen-address=127.0.0.1:0", registers];
        Report::of(&run_to_exit(&ibsim, &args))
    };
    let manager = |found: &Report| {
        let all = found.of_subject("subnet_manager");
        let told = all.into_iter().find(|it| it.text("what").starts_with("fabric")).unwrap();
        ["what", "level", "found", "fix"].map(|field| told.text(field).to_owned())
    };

    let [what, level, found, fix] = manager(&asked());
    assert!(what.starts_with("fabric \"default\", from "), "{what}");
    assert_eq!((&*level, &*found), ("bad", "the local port has no master SM LID"));
    assert!(fix.contains("opensm"), "{fix}");

    let opensm = OpenSm::start(&ibsim);
    let told = asked();
    let [_, level, found, fix] = manager(&told);
    assert_eq!((&*level, &*fix), ("ok", ""), "{found}");
    assert!(
        found.starts_with("master SM at LID ") && found.contains("responds, priority"),
        "{found}"
    );
    // The same response has the supported speed of the port.
    let speed = told.of_subject("ports");
    assert!(speed.iter().any(|it| it.text("what") == what), "{speed:?}");

    // It is alone so far; another one with a lower priority becomes standby.
    let standbys = |found: &Report| {
        let all = found.of_subject("subnet_manager");
        let told = all.into_iter().find(|it| it.text("what").ends_with("standbys")).unwrap();
        ["level", "found"].map(|field| told.text(field).to_owned())
    };
    let [level, found] = standbys(&told);
    assert_eq!(level, "note", "{found}");
    assert!(found.starts_with("no standby SM"), "{found}");
    let other = topology::usable_hosts(&net).pop().unwrap();
    let second = OpenSm::start_standby_at(ibsim.seat().at(&other), Duration::from_secs(300));
    let [level, found] = standbys(&asked());
    assert_eq!(level, "ok", "{found}");
    assert!(found.starts_with("standby: ") && found.contains("(priority "), "{found}");
    second.stop();

    opensm.stop();
    let [_, level, found, fix] = manager(&asked());
    assert_eq!(level, "bad", "{found}");
    assert!(found.contains("does not respond: "), "{found}");
    assert!(fix.contains("opensm"), "{fix}");
}
