//! Trees made by hand.

use super::*;

/// Description, cables, waiting ports, full ports, roles, regions.
type Row = (&'static str, &'static str, &'static str, &'static str, &'static str, &'static str);

/// Two leaves (s1, s2) with two hosts each, and a spine (s9).
const TREE: &str = "h1:1-s1:1 h2:1-s1:2 h3:1-s2:1 h4:1-s2:2 s1:3-s9:1 s2:3-s9:2";

const ROWS: &[Row] = &[
    ("no port waits", TREE, "", "", "", ""),
    ("too little to speak of", TREE, "s1:1=0.04 h3:1=0.049", "", "", ""),
    ("full links that no port waits for", TREE, "", "s1:1=1 s9:1=0.95", "", ""),
    (
        "incast at a slow host",
        TREE,
        "s1:1=0.8 h2:1=0.4 s9:1=0.5 s2:3=0.5 h3:1=0.3 h4:1=0.2",
        "s1:1=0.2",
        "h2:1<s1:1 h3:1<s1:1 h4:1<s1:1 s1:1!SlowReceiver s2:3<s1:1 s9:1<s1:1",
        "s1:1 6/1 0.8",
    ),
    (
        "incast at a host that is fast enough: its link is full and does not wait",
        TREE,
        "h2:1=0.4 s9:1=0.5 s2:3=0.5 h3:1=0.3",
        "s1:1=0.98 s2:1=0.97",
        "h2:1<s1:1 h3:1<s1:1 s1:1!FullLink s2:3<s1:1 s9:1<s1:1",
        "s1:1 4/1 0.5",
    ),
    (
        "the same if the sent traffic is unknown",
        TREE,
        "h2:1=0.4 s9:1=0.5 s2:3=0.5 h3:1=0.3",
        "",
        "h2:1!Unknown h3:1<s9:1 s2:3<s9:1 s9:1!Unknown",
        "s9:1 3/1 0.5, h2:1 1/1 0.4",
    ),
    (
        "a host's link that is full and waits a little",
        TREE,
        "s1:1=0.07 h2:1=0.4",
        "s1:1=0.93",
        "h2:1<s1:1 s1:1!FullLink",
        "s1:1 2/1 0.4",
    ),
    (
        "two roots at one leaf: a victim is the one's that waits more",
        TREE,
        "s1:1=0.3 s1:2=0.6 s9:1=0.4",
        "",
        "s1:1!SlowReceiver s1:2!SlowReceiver s9:1<s1:2",
        "s1:2 3/2 0.6",
    ),
    (
        "of equal roots, the lower one's",
        TREE,
        "s1:1=0.5 s1:2=0.5 s9:1=0.4",
        "",
        "s1:1!SlowReceiver s1:2!SlowReceiver s9:1<s1:1",
        "s1:1 3/2 0.5",
    ),
    (
        "two roots at two leaves, which have nothing to do with each other",
        TREE,
        "s1:1=0.3 h2:1=0.2 s2:1=0.6 h4:1=0.4",
        "",
        "h2:1<s1:1 h4:1<s2:1 s1:1!SlowReceiver s2:1!SlowReceiver",
        "s1:1 2/1 0.3, s2:1 2/1 0.6",
    ),
    (
        "what comes down does not go up again",
        TREE,
        "s9:1=0.2 s1:3=0.6 s9:2=0.3 s2:1=0.4",
        "",
        "s1:3<s2:1 s2:1!SlowReceiver s9:1!Unknown s9:2<s2:1",
        "s2:1 3/1 0.6, s9:1 1/1 0.2",
    ),
    (
        "a link between switches that is full",
        TREE,
        "h1:1=0.3 h2:1=0.5",
        "s1:3=0.99",
        "h1:1<s1:3 h2:1<s1:3 s1:3!FullLink",
        "s1:3 2/1 0.5",
    ),
    (
        "one that is full is a root, whatever waits a little further on",
        TREE,
        "h1:1=0.3 s1:3=0.06 s9:2=0.1",
        "s1:3=0.93",
        "h1:1<s1:3 s1:3!FullLink s9:2!Unknown",
        "s1:3 2/1 0.3, s9:2 1/1 0.1",
    ),
    (
        "a busy neighbor is not blamed for what a slow host does",
        "h1:1-s1:1 h2:1-s1:2 h3:1-s1:3",
        "h3:1=0.9 s1:1=0.5",
        "s1:2=0.95",
        "h3:1<s1:1 s1:1!SlowReceiver",
        "s1:1 2/1 0.9",
    ),
    (
        "but for what hardly waits itself cannot do",
        "h1:1-s1:1 h2:1-s1:2 h3:1-s1:3",
        "h3:1=0.9 s1:1=0.1",
        "s1:2=0.95",
        "h3:1<s1:2 s1:1!SlowReceiver s1:2!FullLink",
        "s1:2 2/2 0.9",
    ),
    (
        "of several that are full, the fullest",
        "h1:1-s1:1 h2:1-s1:2 h3:1-s1:3",
        "h3:1=0.9",
        "s1:1=0.91 s1:2=0.95",
        "h3:1<s1:2 s1:2!FullLink",
        "s1:2 1/1 0.9",
    ),
    (
        "a circle: the one that waits most is its root",
        "s1:1-s2:2 s2:1-s3:2 s3:1-s1:2 h1:1-s1:3 h2:1-s2:3 h3:1-s3:3",
        "s1:1=0.2 s2:1=0.5 s3:1=0.5 h1:1=0.9",
        "",
        "h1:1<s2:1 s1:1<s2:1 s2:1!Unknown s3:1<s2:1",
        "s2:1 4/1 0.9",
    ),
    (
        "a circle with a way out to a root has none of its own",
        "s1:1-s2:2 s2:1-s3:2 s3:1-s1:2 h1:1-s2:3 h2:1-s1:3 h3:1-s3:3",
        "s1:1=0.2 s2:1=0.5 s3:1=0.9 s2:3=0.3",
        "",
        "s1:1<s2:3 s2:1<s2:3 s2:3!SlowReceiver s3:1<s2:3",
        "s2:3 4/1 0.9",
    ),
    (
        "two circles, of which the one that waits more leads into the other",
        "s1:1-s2:2 s2:1-s3:2 s3:1-s1:2 s3:3-s4:3 s4:1-s5:2 s5:1-s6:2 s6:1-s4:2",
        "s1:1=0.9 s2:1=0.8 s3:1=0.7 s3:3=0.6 s4:1=0.3 s5:1=0.4 s6:1=0.2",
        "",
        "s1:1<s5:1 s2:1<s5:1 s3:1<s5:1 s3:3<s5:1 s4:1<s5:1 s5:1!Unknown s6:1<s5:1",
        "s5:1 7/1 0.9",
    ),
    (
        "both ends of a cable do not wait for each other, nor do several cables between two",
        "s1:1-s2:1 s1:2-s2:2 h1:1-s1:3 h2:1-s2:3",
        "s1:1=0.5 s2:1=0.4 s1:2=0.3 s2:2=0.2",
        "",
        "s1:1!Unknown s1:2!Unknown s2:1!Unknown s2:2!Unknown",
        "s1:1 1/1 0.5, s1:2 1/1 0.3, s2:1 1/1 0.4, s2:2 1/1 0.2",
    ),
    (
        "a plug that leads back into its own port",
        "s1:1-s1:1 h1:1-s1:2",
        "s1:1=0.5 h1:1=0.4",
        "",
        "h1:1<s1:1 s1:1!Unknown",
        "s1:1 2/1 0.5",
    ),
    (
        "a cable that leads back into its own switch",
        "s1:1-s1:2 h1:1-s1:3 h2:1-s1:4",
        "s1:1=0.5 s1:2=0.6 h1:1=0.4 s1:4=0.3",
        "",
        "h1:1<s1:4 s1:1<s1:4 s1:2<s1:4 s1:4!SlowReceiver",
        "s1:4 4/1 0.6",
    ),
    (
        "a cable that was pulled leads nowhere",
        "h1:1-s1:1 s1:2~s2:1 h2:1-s2:2",
        "h1:1=0.5 s1:2=0.6 s2:2=0.7",
        "",
        "h1:1<s1:2 s1:2!Unknown s2:2!SlowReceiver",
        "s1:2 2/1 0.6, s2:2 1/1 0.7",
    ),
    ("a port without a cable", "h1:2-s1:1", "h1:1=0.5", "", "h1:1!Unknown", "h1:1 1/1 0.5"),
    (
        "a router is a receiver, too; a port 0 is none",
        "r1:1-s1:1 h1:1-s1:2",
        "s1:1=0.5 h1:1=0.2 s1:0=0.9",
        "s1:0=1",
        "h1:1<s1:1 s1:1!SlowReceiver",
        "s1:1 2/1 0.5",
    ),
    (
        "two hosts back to back",
        "h1:1-h2:1",
        "h1:1=0.5 h2:1=0.2",
        "",
        "h1:1!SlowReceiver h2:1!SlowReceiver",
        "h1:1 1/1 0.5, h2:1 1/1 0.2",
    ),
];

#[test]
fn roots_victims_and_regions_of_small_fabrics() {
    for (about, cables, waits, used, roles, regions) in ROWS {
        let mut bench = Bench::new(cables);
        (bench.waits, bench.used) = (bench.say(waits), bench.say(used));
        let found = bench.found();
        assert_eq!(bench.roles(&found), *roles, "{about}");
        assert_eq!(bench.regions(&found), *regions, "{about}");
    }
}

#[test]
fn root_three_switches_away_has_all_victims() {
    // Eight leaves of 16 hosts, two to a pod, and over them aggregation and core switches.
    let leaf = |leaf: u64| {
        let host = move |host| format!("h{}:1-s{leaf}:{host}", leaf * 16 + host);
        let up = format!("s{leaf}:17-s{}:{}", 10 + leaf / 2, 1 + leaf % 2);
        (1..=16).map(host).chain([up])
    };
    let pods = (0..4).map(|pod| format!("s{}:3-s20:{}", 10 + pod, 1 + pod));
    let cables: Vec<String> = (0..8).flat_map(leaf).chain(pods).collect();
    let mut bench = Bench::new(&cables.join(" "));
    // All send to host 1: up from each leaf but its own, over the core, down to it.
    let root = ["s0:1=0.9", "s10:1=0.8", "s20:1=0.7"].map(String::from).into_iter();
    let hosts = (2..=128).map(|host| format!("h{host}:1=0.3"));
    let leaves = (1..8).map(|leaf| format!("s{leaf}:17=0.4"));
    let pods = (1..4).map(|pod| format!("s{}:3=0.5", 10 + pod));
    let waits: Vec<String> = root.chain(hosts).chain(leaves).chain(pods).collect();
    bench.waits = bench.say(&waits.join(" "));
    let found = bench.found();
    let root = bench.find("s0:1");
    let victims = 2 + 127 + 7 + 3;
    assert_eq!(found.roles.len(), 1 + victims);
    let of_root = found.roles.iter().filter(|(_, role)| *role == Role::Victim { of: root });
    assert_eq!(of_root.count(), victims);
    assert_eq!(role_of(&found, root), Some(Role::Root(RootCause::SlowReceiver)));
    assert_eq!(role_of(&found, bench.find("s0:2")), None);
    assert_eq!(
        found.regions,
        [Region {
            root,
            ports: 1 + victims as u32,
            roots: 1,
            share: 0.9,
            level: Level::High,
            since: Moment(7),
        }]
    );
}

#[test]
fn levels_match_monet() {
    for (share, level) in [
        (0.0, Level::Negligible),
        (0.049, Level::Negligible),
        (FLOOR, Level::Low),
        (0.149, Level::Low),
        (0.16, Level::Medium),
        (0.249, Level::Medium),
        (0.26, Level::High),
        (1.0, Level::High),
    ] {
        assert_eq!(Level::of(share), level, "{share}");
    }
}
