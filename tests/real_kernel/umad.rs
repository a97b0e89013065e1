//! MADs through the kernel's umad: between two soft RoCE devices on one cable, with the exporter's own
//! transport at one and an agent that shares no code with it at the other (`crates/ib-umad/examples/umad-peer`).
//!
//! They use link-local GIDs, which need no address and no route. IPv4 ones would not do: the kernel hands a
//! response to a client only if its GRH has the client's GID, and where an IPv4 header is in its place
//! the two never compare equal (`rcv_has_same_gid` of
//! drivers/infiniband/core/mad.c, Linux 6.1).

use std::process::Command;
use std::sync::OnceLock;

use test_rig::guest::{Guest, Rxe};
use test_rig::require;

/// The counters in the responses of `umad-peer/responder.rs`: PortCountersExtended has the first eight.
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
    /// The GIDs of both, as sysfs writes them.
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
            # Devices of other tests disappear between the listing and grep, which then fails in spite of a match.
            ibdev=$(grep -slx {answering} /sys/class/infiniband_mad/umad*/ibdev || [ $? -eq 2 ])
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

    /// Runs a client command, and returns its output.
    fn run_client(&self, what: &str) -> String {
        Guest::get().must(&self.client("/sys", what))
    }

    /// The requests that the responder received.
    fn log(&self) -> String {
        Guest::get().must(&format!("cat /tmp/{}.log", self.answering))
    }
}

impl Drop for Peers {
    fn drop(&mut self) {
        // Its device goes with the cable, once no process has it open.
        Guest::get().sh(&format!("kill $(cat /tmp/{}.pid)", self.answering));
    }
}

/// Builds umad-peer, which cargo does not do by itself for a single test, and copies it to the guest.
fn bring_umad_peer() {
    static IN_GUEST: OnceLock<()> = OnceLock::new();
    IN_GUEST.get_or_init(|| {
        let target = test_rig::paths::target();
        let built = Command::new(env!("CARGO"))
            .args([
                "build",
                "--quiet",
                "--package",
                // Without the exporter, so that a change there compiles nothing here.
                "ib-umad",
                "--example",
                "umad-peer",
                "--target-dir",
            ])
            .arg(&target)
            .current_dir(env!("CARGO_MANIFEST_DIR"))
            .status();
        assert!(built.expect("cargo").success(), "umad-peer does not build");
        let guest = Guest::get();
        // Debug information is nine tenths of it.
        let stripped = Command::new(require("strip"))
            .arg("-o")
            .arg(guest.share().join("umad-peer"))
            .arg(target.join("debug/examples/umad-peer"))
            .status();
        assert!(stripped.expect("strip").success(), "umad-peer cannot be stripped");
        guest.must("cp /share/umad-peer /bin/umad-peer");
    });
}

/// The rest of a line with this beginning.
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
fn assert_counters(output: &str) {
    assert_eq!(line(output, "capabilities "), "mask=0x9200 mask2=0x0");
    let counters: Vec<(&str, u64)> = output
        .lines()
        .filter_map(|line| line.strip_prefix("counter ")?.split_once(" 0x"))
        .map(|(name, value)| (name, u64::from_str_radix(value, 16).unwrap()))
        .collect();
    let mut missing = COUNTERS.to_vec();
    missing.retain(|expected| !counters.contains(expected));
    assert_eq!((counters.len(), missing), (COUNTERS.len(), vec![]), "{output}");
}

#[test]
fn both_umad_headers_carry_requests_and_responses() {
    let peers = Peers::new("umadhdr");
    let output = peers.run_client("counters");
    assert!(output.contains("header=64"), "{output}");
    assert_counters(&output);

    // The responder received the intended requests, from the intended sender.
    let log = peers.log();
    let asker: std::net::Ipv6Addr = peers.gids[0].parse().unwrap();
    let requests: Vec<&str> = log.lines().filter_map(|it| it.strip_prefix("request ")).collect();
    assert_eq!(requests.len(), 3, "{log}");
    let mut transactions = Vec::new();
    for request in requests {
        // The kernel reports the length with its own header.
        let expected =
            format!("bytes=320 length=320 qpn=1 lid=0 grh=1 gid={asker} method=0x1 tid=0x");
        let rest = request.strip_prefix(&expected).unwrap_or_else(|| panic!("{request}"));
        transactions.push(u64::from_str_radix(&rest[..16], 16).unwrap());
    }
    // The kernel has put its own number for the client into the upper half, by which responses are matched; the
    // lower half is ours.
    let upper = transactions[0] >> 32;
    assert_ne!(upper, 0);
    assert!(transactions.iter().all(|it| it >> 32 == upper), "{transactions:x?}");
    assert!(
        line(&output, "wire counters: ").ends_with(&format!("upper={{{upper:x}}}")),
        "{output}"
    );
    let mut lower: Vec<u32> = transactions.iter().map(|it| *it as u32).collect();
    lower.dedup();
    assert_eq!(lower.len(), 3, "{transactions:x?}");

    // A kernel without REGISTER_AGENT2 uses the short header, also for timeouts.
    let output = peers.run_client("counters-of-old");
    assert!(output.contains("header=56") && !output.contains("header=64"), "{output}");
    assert_counters(&output);
    assert_eq!(number(&output, "wire port 2:", "expired"), 2, "{output}");
    assert_eq!(number(&output, "wire port 2:", "expired_unknown"), 0, "{output}");
}

#[test]
fn port_without_qp0_is_rejected() {
    let peers = Peers::new("umadqp0");
    assert!(peers.run_client("subnet").contains("umadqp0 port 1 is an Ethernet (RoCE) port"));
    // By sysfs an InfiniBand port, as virtual functions are: only registering shows that it has no QP0.
    let sysfs = "/tmp/umadqp0/class/infiniband_mad";
    let output = Guest::get().must(&format!(
        "mkdir -p {sysfs}; umad=$(dirname $(grep -slx umadqp0 /sys/class/infiniband_mad/umad*/ibdev))
        mkdir {sysfs}/$(basename $umad); cp $umad/ibdev $umad/port {sysfs}/$(basename $umad)
        {}",
        peers.client("/tmp/umadqp0", "subnet")
    ));
    assert!(output.contains("umadqp0 port 1 does not support subnet management"), "{output}");
    // The independent responder agrees.
    assert_eq!(
        line(&peers.log(), "no subnet management: "),
        "Protocol not supported (os error 93)"
    );
}

#[test]
fn unanswered_request_is_returned_by_the_kernel() {
    let peers = Peers::new("umadout");
    let output = peers.run_client("silent");
    let (once, often) = output.split_at(output.rfind("DEBUG").expect("two sessions"));
    // One request. How long the kernel takes to return it is not checked on a busy machine.
    assert_eq!(number(once, "outcomes port 2:", "timed_out"), 1, "{output}");
    assert!(number(once, "outcomes port 2:", "ms") >= 500, "{output}");
    assert_eq!(number(once, "wire port 2:", "expired"), 1, "{output}");
    assert_eq!(number(once, "stats port 2:", "timed_out"), 1, "{output}");
    // Four requests, and retries until the timeout. Each MAD is returned.
    let sent = number(often, "stats port 2:", "timed_out");
    assert!(sent > 4, "{output}");
    assert_eq!(number(often, "wire port 2:", "expired"), sent, "{output}");
    for output in [once, often] {
        assert_eq!(number(output, "stats port 2:", "stray"), 0, "{output}");
        assert_eq!(number(output, "wire port 2:", "expired_unknown"), 0, "{output}");
        assert_eq!(number(output, "wire port 2:", "open"), 0, "{output}");
        assert_eq!(number(output, "outcomes port 2:", "answered"), 0, "{output}");
    }

    // The kernel drops late and repeated responses: no client waits for them.
    let output = peers.run_client("late");
    assert_eq!(number(&output, "outcomes port 5:", "timed_out"), 1, "{output}");
    assert_eq!(number(&output, "wire port 5:", "expired"), 3, "{output}");
    assert_eq!(number(&output, "wire port 5:", "answers"), 0, "{output}");
    let output = peers.run_client("twice");
    assert_eq!(number(&output, "outcomes port 3:", "answered"), 10, "{output}");
    assert_eq!(number(&output, "wire port 3:", "answers"), 10, "{output}");
    assert_eq!(number(&output, "stats port 3:", "stray"), 0, "{output}");
}

#[test]
fn two_hundred_requests_in_flight_match_their_responses() {
    let peers = Peers::new("umadmany");
    let output = peers.run_client("many");
    for (port, most_open) in [(1, 4), (4, 200)] {
        let of = |line: &str, key| number(&output, &format!("{line} port {port}:"), key);
        assert_eq!(of("outcomes", "answered"), 200, "{output}");
        assert_eq!(of("wire", "most_open"), most_open, "{output}");
        assert_eq!(of("wire", "expired"), 0, "{output}");
        assert_eq!((of("stats", "answered"), of("stats", "stray")), (200, 0), "{output}");
    }
}

#[test]
fn removed_device_is_reported_without_waiting() {
    let peers = Peers::new("umadgone");
    let output = Guest::get().must(&format!(
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
    assert_eq!(line(&output, "status "), "0", "{output}");
    for word in ["broken ", "again "] {
        let (begins, says) =
            ("umadgone port 1 (/dev/infiniband/umad", "): the device was removed (");
        let line = line(&output, word);
        assert!(line.starts_with(begins) && line.contains(says), "{output}");
    }
    assert!(!output.contains("cannot be removed"), "{output}");
}
