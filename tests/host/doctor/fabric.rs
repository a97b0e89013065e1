//! A subnet manager that is there, and one that is not: `doctor` on ibsim asks it.

use std::time::Duration;

use crate::doctor::patient::Found;
use test_rig::{Ibsim, OpenSm, run_to_exit, topology};

#[test]
fn the_subnet_manager_is_asked_where_the_fabric_would_be() {
    let net = topology::fat_tree_2(8, 6, 4, 3);
    let ibsim = Ibsim::start(&net);
    let asked = || {
        let args = ["doctor", "--json", "--web.listen-address=127.0.0.1:0"];
        Found::of(&run_to_exit(&ibsim, &args))
    };
    let manager = |found: &Found| {
        let all = found.of_subject("subnet_manager");
        let told = all.into_iter().find(|it| it.text("what").starts_with("fabric")).unwrap();
        ["what", "level", "found", "mend"].map(|field| told.text(field).to_owned())
    };

    let [what, level, found, mend] = manager(&asked());
    assert!(what.starts_with("fabric \"default\", from "), "{what}");
    assert_eq!((&*level, &*found), ("bad", "our own port knows no subnet manager"));
    assert!(mend.contains("opensm"), "{mend}");

    let opensm = OpenSm::start(&ibsim);
    let told = asked();
    let [_, level, found, mend] = manager(&told);
    assert_eq!((&*level, &*mend), ("ok", ""), "{found}");
    assert!(
        found.starts_with("the master at LID ") && found.contains("answers, priority"),
        "{found}"
    );
    // The same answer says how fast the port could be.
    let speed = told.of_subject("ports");
    assert!(speed.iter().any(|it| it.text("what") == what), "{speed:?}");

    // Alone, so far; another one with a lower priority stands by.
    let standbys = |found: &Found| {
        let all = found.of_subject("subnet_manager");
        let told = all.into_iter().find(|it| it.text("what").ends_with("standbys")).unwrap();
        ["level", "found"].map(|field| told.text(field).to_owned())
    };
    let [level, found] = standbys(&told);
    assert_eq!(level, "note", "{found}");
    assert!(found.starts_with("no standby"), "{found}");
    let other = topology::usable_hosts(&net).pop().unwrap();
    let second = OpenSm::start_standby_at(ibsim.seat().at(&other), Duration::from_secs(300));
    let [level, found] = standbys(&asked());
    assert_eq!(level, "ok", "{found}");
    assert!(found.starts_with("standing by: ") && found.contains("(priority "), "{found}");
    second.stop();

    opensm.stop();
    let [_, level, found, mend] = manager(&asked());
    assert_eq!(level, "bad", "{found}");
    assert!(found.contains("does not answer: no answer"), "{found}");
    assert!(mend.contains("opensm"), "{mend}");
}
