//! MADs through the kernel's umad: between two devices of soft RoCE on one cable, the exporter's own
//! transport at one and an agent that shares no code with it at the other (`crates/test-rig/umad_peer`).
//!
//! They have each other's GIDs of link-local form, which need no address and no route. IPv4 ones
//! would not do: the kernel gives an answer to whoever asked only if its GRH has the asker's GID, and
//! where an IPv4 header stands in place of that the two never compare equal (`rcv_has_same_gid` of
//! drivers/infiniband/core/mad.c, Linux 6.1).

use std::process::Command;
use std::sync::OnceLock;

use test_rig::guest::{Guest, Rxe};
use test_rig::require;

/// What `umad_peer/responder.rs` puts into its answers: PortCountersExtended has the first eight.
const COUNTERS: [(&str, u64); 22] = [
    ("PortXmitData", 0x0101_0101_0101_01f1),
    ("PortRcvData", 0x0202_0202_0202_02f2),
    ("PortXmitPkts", 0x0303_0303_0303_03f3),
    ("PortRcvPkts", 0x0404_0404_0404_04f4),
    ("PortUnicastXmitPkts", 0x0505_0505_0505_05f5),
    ("PortUnicastRcvPkts", 0x0606_0606_0606_06f6),
    ("PortMulticastXmitPkts", 0x0707_0707_0707_07f7),
    ("PortMulticastRcvPkts", 0x0808_0808_0808_08f8),
    ("SymbolErrorCounter", 0x1415),
    ("LinkErrorRecoveryCounter", 0x16),
    ("LinkDownedCounter", 0x17),
    ("PortRcvErrors", 0x1819),
    ("PortRcvRemotePhysicalErrors", 0x1a1b),
    ("PortRcvSwitchRelayErrors", 0x1c1d),
    ("PortXmitDiscards", 0x1e1f),
    ("PortXmitConstraintErrors", 0x20),
    ("PortRcvConstraintErrors", 0x21),
    ("LocalLinkIntegrityErrors", 0x2),
    ("ExcessiveBufferOverrunErrors", 0x3),
    ("QP1Dropped", 0x2425),
    ("VL15Dropped", 0x2627),
    ("PortXmitWait", 0x3839_3a3b),
];

/// How long a client may run, in seconds.
const CLIENT_LIMIT: u32 = 120;

/// Two devices and a responder at one.
struct Peers {
    asking: Rxe,
    answering: String,
    /// Of the two, as sysfs writes them.
    gids: [String; 2],
}

impl Peers {
    /// The name is as for [`Guest::rxe`], and shorter by two letters.
    fn new(name: &str) -> Self {
        bring_umad_peer();
        let guest = Guest::get();
        let asking = guest.rxe(name);
        let answering = format!("{name}_b");
        let gids = guest.must(&format!(
            "set -e; cd /tmp; rdma link add {answering} type rxe netdev {peer}
            attempt() {{ left=600; until \"$@\"; do sleep 0.1; left=$((left - 1)); [ $left -gt 0 ]; done; }}
            # For its first second an address is not used: somebody else might have it.
            settled() {{ ip -6 addr show dev $1 -tentative | grep -q fe80; }}
            attempt settled {end}; attempt settled {peer}
            ibdev=$(grep -lx {answering} /sys/class/infiniband_mad/umad*/ibdev)
            umad=$(basename ${{ibdev%/ibdev}})
            umad-peer responder /dev/infiniband/$umad >{answering}.log 2>&1 & echo $! >{answering}.pid
            attempt grep -qs ^registered {answering}.log
            cat /sys/class/infiniband/{name}/ports/1/gids/0
            cat /sys/class/infiniband/{answering}/ports/1/gids/0",
            end = asking.netdev(),
            peer = asking.peer(),
        ));
        let gids: Vec<String> = gids.lines().map(str::to_owned).collect();
        Peers { asking, answering, gids: gids.try_into().expect("two GIDs") }
    }

    /// The command line of a client.
    fn client(&self, sysfs: &str, what: &str) -> String {
        let (hca, gid) = (self.asking.name(), &self.gids[1]);
        format!("timeout -s KILL {CLIENT_LIMIT} umad-peer client {sysfs} {hca} {gid} 0 {what}")
    }

    /// Has a client do something, and gives what it printed.
    fn ask(&self, what: &str) -> String {
        Guest::get().must(&self.client("/sys", what))
    }

    /// What the responder says it was sent.
    fn log(&self) -> String {
        Guest::get().must(&format!("cat /tmp/{}.log", self.answering))
    }
}

impl Drop for Peers {
    fn drop(&mut self) {
        // Its device goes with the cable, once nobody has it open.
        Guest::get().sh(&format!("kill $(cat /tmp/{}.pid)", self.answering));
    }
}

/// Builds umad-peer, which cargo does not do by itself for a single test, and takes it to the guest.
fn bring_umad_peer() {
    static IN_GUEST: OnceLock<()> = OnceLock::new();
    IN_GUEST.get_or_init(|| {
        let target = test_rig::paths::target();
        let built = Command::new(env!("CARGO"))
            .args([
                "build",
                "--quiet",
                "--package",
                "test-rig",
                "--example",
                "umad-peer",
                "--target-dir",
            ])
            .arg(&target)
            .current_dir(env!("CARGO_MANIFEST_DIR"))
            .status();
        assert!(built.expect("cargo").success(), "umad-peer does not build");
        let guest = Guest::get();
        // Debug information makes nine tenths of it.
        let stripped = Command::new(require("strip"))
            .arg("-o")
            .arg(guest.share().join("umad-peer"))
            .arg(target.join("debug/examples/umad-peer"))
            .status();
        assert!(stripped.expect("strip").success(), "umad-peer cannot be stripped");
        guest.must("cp /share/umad-peer /bin/umad-peer");
    });
}

/// The rest of a line that begins so.
#[track_caller]
fn line<'a>(text: &'a str, beginning: &str) -> &'a str {
    text.lines()
        .find_map(|line| line.strip_prefix(beginning))
        .unwrap_or_else(|| panic!("no {beginning:?} in:\n{text}"))
}

/// The value of `key=value` in such a line.
#[track_caller]
fn number(text: &str, beginning: &str, key: &str) -> u64 {
    line(text, beginning)
        .split_whitespace()
        .find_map(|word| word.strip_prefix(key)?.strip_prefix('=')?.parse().ok())
        .unwrap_or_else(|| panic!("no {key} in {beginning:?} of:\n{text}"))
}

#[track_caller]
fn assert_counters(told: &str) {
    assert_eq!(line(told, "capabilities "), "mask=0x9200 mask2=0x0");
    let counters: Vec<(&str, u64)> = told
        .lines()
        .filter_map(|line| line.strip_prefix("counter ")?.split_once(" 0x"))
        .map(|(name, value)| (name, u64::from_str_radix(value, 16).unwrap()))
        .collect();
    let mut missing = COUNTERS.to_vec();
    missing.retain(|expected| !counters.contains(expected));
    assert_eq!((counters.len(), missing), (COUNTERS.len(), vec![]), "{told}");
}

#[test]
fn both_headers_carry_requests_and_answers() {
    let peers = Peers::new("umadhdr");
    let told = peers.ask("counters");
    assert!(told.contains("header=64"), "{told}");
    assert_counters(&told);

    // The responder was sent what was meant, from where it was meant to be sent.
    let log = peers.log();
    let asker: std::net::Ipv6Addr = peers.gids[0].parse().unwrap();
    let requests: Vec<&str> = log.lines().filter_map(|it| it.strip_prefix("request ")).collect();
    assert_eq!(requests.len(), 3, "{log}");
    let mut transactions = Vec::new();
    for request in requests {
        // The kernel tells the length with its own header.
        let expected =
            format!("bytes=320 length=320 qpn=1 lid=0 grh=1 gid={asker} method=0x1 tid=0x");
        let rest = request.strip_prefix(&expected).unwrap_or_else(|| panic!("{request}"));
        transactions.push(u64::from_str_radix(&rest[..16], 16).unwrap());
    }
    // The kernel has put its own number for the asker into the upper half, and by it the answers have
    // found their way; the lower half is ours.
    let upper = transactions[0] >> 32;
    assert_ne!(upper, 0);
    assert!(transactions.iter().all(|it| it >> 32 == upper), "{transactions:x?}");
    assert!(line(&told, "wire counters: ").ends_with(&format!("upper={{{upper:x}}}")), "{told}");
    let mut lower: Vec<u32> = transactions.iter().map(|it| *it as u32).collect();
    lower.dedup();
    assert_eq!(lower.len(), 3, "{transactions:x?}");

    // A kernel that does not know REGISTER_AGENT2 speaks with the short header, time-outs too.
    let told = peers.ask("counters-of-old");
    assert!(told.contains("header=56") && !told.contains("header=64"), "{told}");
    assert_counters(&told);
    assert_eq!(number(&told, "wire port 2:", "expired"), 2, "{told}");
    assert_eq!(number(&told, "wire port 2:", "expired_unknown"), 0, "{told}");
}

#[test]
fn a_port_without_qp0_is_refused_by_name_or_by_the_kernel() {
    let peers = Peers::new("umadqp0");
    assert!(peers.ask("subnet").contains("umadqp0 port 1 is an Ethernet (RoCE) port"));
    // To our own eyes an InfiniBand port, as virtual functions are: only registering shows it.
    let sysfs = "/tmp/umadqp0/class/infiniband_mad";
    let told = Guest::get().must(&format!(
        "mkdir -p {sysfs}; umad=$(dirname $(grep -lx umadqp0 /sys/class/infiniband_mad/umad*/ibdev))
        mkdir {sysfs}/$(basename $umad); cp $umad/ibdev $umad/port {sysfs}/$(basename $umad)
        {}",
        peers.client("/tmp/umadqp0", "subnet")
    ));
    assert!(told.contains("umadqp0 port 1 cannot send subnet management"), "{told}");
    // And so says one who is not us.
    assert_eq!(
        line(&peers.log(), "no subnet management: "),
        "Protocol not supported (os error 93)"
    );
}

#[test]
fn what_is_not_answered_comes_back_from_the_kernel() {
    let peers = Peers::new("umadout");
    let told = peers.ask("silent");
    let (once, often) = told.split_at(told.rfind("DEBUG").expect("two sessions"));
    // Asked once. How long the kernel takes to tell is not for a busy machine to show.
    assert_eq!(number(once, "outcomes port 2:", "timed_out"), 1, "{told}");
    assert!(number(once, "outcomes port 2:", "ms") >= 500, "{told}");
    assert_eq!(number(once, "wire port 2:", "expired"), 1, "{told}");
    assert_eq!(number(once, "stats port 2:", "timed_out"), 1, "{told}");
    // Four questions, and retries until that is silence enough. Each MAD comes to the same end.
    let sent = number(often, "stats port 2:", "timed_out");
    assert!(sent > 4, "{told}");
    assert_eq!(number(often, "wire port 2:", "expired"), sent, "{told}");
    for told in [once, often] {
        assert_eq!(number(told, "stats port 2:", "stray"), 0, "{told}");
        assert_eq!(number(told, "wire port 2:", "expired_unknown"), 0, "{told}");
        assert_eq!(number(told, "wire port 2:", "open"), 0, "{told}");
        assert_eq!(number(told, "outcomes port 2:", "answered"), 0, "{told}");
    }

    // What comes after its time, or again, the kernel keeps to itself: nobody waits for it there.
    let told = peers.ask("late");
    assert_eq!(number(&told, "outcomes port 5:", "timed_out"), 1, "{told}");
    assert_eq!(number(&told, "wire port 5:", "expired"), 3, "{told}");
    assert_eq!(number(&told, "wire port 5:", "answers"), 0, "{told}");
    let told = peers.ask("twice");
    assert_eq!(number(&told, "outcomes port 3:", "answered"), 10, "{told}");
    assert_eq!(number(&told, "wire port 3:", "answers"), 10, "{told}");
    assert_eq!(number(&told, "stats port 3:", "stray"), 0, "{told}");
}

#[test]
fn two_hundred_requests_are_in_flight_and_each_finds_its_answer() {
    let peers = Peers::new("umadmany");
    let told = peers.ask("many");
    for (port, most_open) in [(1, 4), (4, 200)] {
        let of = |line: &str, key| number(&told, &format!("{line} port {port}:"), key);
        assert_eq!(of("outcomes", "answered"), 200, "{told}");
        assert_eq!(of("wire", "most_open"), most_open, "{told}");
        assert_eq!(of("wire", "expired"), 0, "{told}");
        assert_eq!((of("stats", "answered"), of("stats", "stray")), (200, 0), "{told}");
    }
}

#[test]
fn a_device_that_goes_away_is_told_and_not_waited_for() {
    let peers = Peers::new("umadgone");
    let told = Guest::get().must(&format!(
        "{client} >/tmp/umadgone.client 2>&1 & client=$!
        left=600
        until grep -qs ^answered /tmp/umadgone.client || [ $left -eq 0 ]; do
            sleep 0.1; left=$((left - 1))
        done
        # Amid requests, and one of them is never answered.
        sleep 1; timeout -s KILL 60 rdma link del umadgone || echo cannot be removed
        wait $client; echo status $?; cat /tmp/umadgone.client",
        client = peers.client("/sys", "until-gone"),
    ));
    assert_eq!(line(&told, "status "), "0", "{told}");
    for word in ["broken ", "again "] {
        let (begins, says) = ("umadgone port 1 (/dev/infiniband/umad", "): the device is gone (");
        let line = line(&told, word);
        assert!(line.starts_with(begins) && line.contains(says), "{told}");
    }
    assert!(!told.contains("cannot be removed"), "{told}");
}
