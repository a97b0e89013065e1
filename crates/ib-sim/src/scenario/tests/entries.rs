//! Each entry of the timeline.

use super::super::ENTRIES;
use super::{short, timeline};

#[test]
#[expect(clippy::too_many_lines, reason = "a table")]
fn entries_become_changes_and_sentences() {
    let table: &[(&str, &[&str], &str)] = &[
        (
            "bad-cable: {at: 30s, into: 'spine-0[2]', ratio: 1e-9, for: 10m}",
            &["30000 corrupt spine-0[2] 1e-9", "630000 corrupt spine-0[2] 0e0"],
            "the cable from leaf-0-0[6] to spine-0[2] has a BER of 1e-9 after FEC for 10m",
        ),
        (
            "bad-cable: {into: host-3, ratio: 1e-12}",
            &["0 corrupt host-3[1] 1e-12"],
            "the cable from leaf-0-0[4] to host-3[1] has a BER of 1e-12 after FEC",
        ),
        (
            "dirty-connector: {at: 30s, into: 'spine-0[2]', lane: 3, ratio: 2e-5, for: 10m}",
            &["30000 dirt spine-0[2] 3 2e-5 0.1", "630000 dirt spine-0[2] "],
            "the connector at spine-0[2] is dirty: lane 3 has a BER of 2e-5 before FEC for 10m",
        ),
        (
            "hot-module: {port: 'spine-0[2]', celsius: 78}",
            &["0 module spine-0[2] Some(78)"],
            "the module at spine-0[2] has 78 °C",
        ),
        (
            "swap-cable: {at: 5s, link: 'leaf-0-1[1]', down: 30s}",
            &["5000 signal host-4[1] false", "5000 swap host-4[1]", "35000 signal host-4[1] true"],
            "the cable between leaf-0-1[1] and host-4[1] is replaced by another one within 30s",
        ),
        (
            "registers: {node: leaf-0-1, behavior: slow, for: 1m}",
            &["0 registers leaf-0-1 slow", "60000 registers leaf-0-1 normal"],
            "the registers of leaf-0-1 are slow for 1m",
        ),
        (
            "state-table: {behavior: refused}",
            &["0 state-table 9 refused"],
            "the port state table of all nodes is refused",
        ),
        (
            "front-panel: {behavior: normal, node: leaf-0-1}",
            &["0 front-panel 1 normal"],
            "the front-panel names of leaf-0-1 are normal",
        ),
        ("vs-key: {key: 0x1234, node: leaf-0-1}", &["0 vs-key 1 0x1234"], "leaf-0-1 gets a VSKey"),
        ("vs-key: {key: 0}", &["0 vs-key 9 0x0"], "all nodes get no VSKey"),
        (
            "flap: {at: 1m, link: 'leaf-0-0[3]', down: 2s, every: 20s, times: 2}",
            &[
                "60000 signal host-2[1] false",
                "62000 signal host-2[1] true",
                "80000 signal host-2[1] false",
                "82000 signal host-2[1] true",
            ],
            "the link between leaf-0-0[3] and host-2[1] loses its signal for 2s, 2 times, every 20s",
        ),
        (
            "flap: {link: 'leaf-0-0[3]', down: [5ms, 3s], every: 1m}",
            &[
                "0 retrain leaf-0-0[3]",
                "60000 signal host-2[1] false",
                "63000 signal host-2[1] true",
            ],
            "the link between leaf-0-0[3] and host-2[1] loses its signal for 5ms and 3s in turn, \
             2 times, every 1m",
        ),
        (
            "flap: {link: host-2, down: 100ms}",
            &["0 retrain host-2[1]"],
            "the link between host-2[1] and leaf-0-0[3] loses its signal for 100ms, and retrains",
        ),
        (
            "unplug: {at: 5s, link: 'leaf-0-1[1]', for: 1m}",
            &["5000 signal host-4[1] false", "65000 signal host-4[1] true"],
            "the cable between leaf-0-1[1] and host-4[1] is unplugged, and plugged in again after 1m",
        ),
        (
            "degrade: {at: 5s, link: 'leaf-0-1[1]', width: 1x, speed: SDR, for: 1m}",
            &["5000 limit host-4[1] Some(X1) Some(Sdr)", "65000 limit host-4[1] None None"],
            "the link between leaf-0-1[1] and host-4[1] retrains and comes up at no more than 1x SDR \
             for 1m",
        ),
        (
            "degrade: {link: 'leaf-0-1[1]', width: 2x}",
            &["0 limit host-4[1] Some(X2) None"],
            "the link between leaf-0-1[1] and host-4[1] retrains and comes up no wider than 2x",
        ),
        (
            "slow-receiver: {host: host-3, takes: 10%, for: 5m}",
            &["0 intake host-3[1] 0.1", "300000 intake host-3[1] 1"],
            "host-3 receives at most 10% of the rate of its link for 5m",
        ),
        (
            "burst: {at: 1s, from: 3, to: host-3, load: 90%, for: 10s}",
            &["1000 traffic burst-1 3", "11000 traffic burst-1 0"],
            "host-1, host-2 and host-5 each send to host-3, at 90% of their links' rate for 10s",
        ),
        (
            "burst: {from: [host-1], to: 'host-3[1]', load: 90%}",
            &["0 traffic burst-1 1"],
            "host-1 sends to host-3, at 90% of its link's rate",
        ),
        (
            "reboot: {at: 3m, node: host-5, down: 90s}",
            &["180000 power host-5 false", "270000 power host-5 true"],
            "host-5 reboots: it is up again after 1m 30s, with its counters at 0",
        ),
        (
            "clear: {at: 1s}",
            &["1000 clear 30"],
            "the counters of all ports of the fabric are cleared",
        ),
        (
            "clear: {node: leaf-0-0, every: 1m, times: 2}",
            &["0 clear 8", "60000 clear 8"],
            "the counters of all ports of leaf-0-0 are cleared, 2 times, every 1m",
        ),
        ("clear: {port: 'leaf-0-0[8]'}", &["0 clear 1"], "the counters of leaf-0-0[8] are cleared"),
        (
            "set: {port: host-1, counters: {SymbolErrorCounter: 4242, PortXmitWait: 7}}",
            &["0 set host-1[1] SymbolErrors 4242", "0 set host-1[1] XmitWait 7"],
            "counters of host-1[1] are set: SymbolErrorCounter to 4242 and PortXmitWait to 7",
        ),
        (
            "silent: {node: leaf-0-1, for: 5m}",
            &["0 agents leaf-0-1 Silent", "300000 agents leaf-0-1 Normal"],
            "leaf-0-1 forwards packets, but does not respond to MADs for 5m",
        ),
        (
            "slow: {node: host-1, by: 800ms}",
            &["0 agents host-1 Delayed(800ms)"],
            "host-1 responds 800ms later",
        ),
        (
            "busy: {node: host-1, share: 50%}",
            &["0 agents host-1 Busy(0.5)"],
            "host-1 responds with \"busy\" to 50% of requests",
        ),
        (
            "lose-mads: {share: 1%, node: host-1}",
            &["0 agents host-1 Lossy(0.01)"],
            "host-1 does not respond to 1% of requests",
        ),
        (
            "lose-mads: {share: 1%, for: 1m}",
            &["0 way 0.01", "60000 way 0"],
            "1% of all MADs are lost for 1m",
        ),
        (
            "m-key: {at: 1m, key: 0x1234, level: 2}",
            &["60000 protect 9 0x1234 2"],
            "the subnet manager gives all nodes an M_Key, protection level 2",
        ),
        (
            "m-key: {key: 0, level: 0, node: leaf-0-1}",
            &["0 protect 1 0x0 0"],
            "the subnet manager gives leaf-0-1 no M_Key, protection level 0",
        ),
        (
            "limited-member: {}",
            &["0 membership 6 false"],
            "all hosts become limited members of the default partition",
        ),
        (
            "limited-member: {except: host-1}",
            &["0 membership 5 false"],
            "all hosts but host-1 become limited members of the default partition",
        ),
        (
            "limited-member: {at: 5s, node: host-1}",
            &["5000 membership 1 false"],
            "host-1 becomes a limited member of the default partition",
        ),
        (
            "move-cable: {at: 5s, from: 'leaf-0-0[1]', to: 'leaf-0-1[4]'}",
            &["5000 move leaf-0-0[1] leaf-0-1[4]"],
            "the cable from host-0[1] is moved from leaf-0-0[1] to leaf-0-1[4]",
        ),
        (
            "move-cable: {from: 'leaf-0-0[1]', to: 'leaf-0-0[2]'}",
            &["0 move leaf-0-0[1] leaf-0-0[2]"],
            "the cable from host-0[1] is moved from leaf-0-0[1] to leaf-0-0[2], and the cable from \
             host-1[1] from there to leaf-0-0[1]",
        ),
        (
            "new-master: {at: 1s, host: host-2, readdress: true}",
            &["1000 master host-2[1] true"],
            "the subnet manager at host-2 becomes the master, and assigns another LID to every port",
        ),
    ];
    for (entry, changes, sentence) in table {
        let story = timeline(&format!("- {entry}"));
        assert_eq!(short(&story), *changes, "{entry}");
        assert_eq!(story.descriptions.len(), 1, "{entry}");
        assert_eq!(story.descriptions[0].1, *sentence, "{entry}");
        assert_eq!(story.descriptions[0].0, story.changes[0].at, "{entry}");
    }
    for name in ENTRIES {
        let begin = format!("{name}:");
        assert!(table.iter().any(|(entry, ..)| entry.starts_with(&begin)), "{name} is not here");
    }
}
