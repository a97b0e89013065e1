//! OpenSM gives all ports other LIDs while the exporter sweeps: no value of one port is published as another's.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use test_rig as rig;

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use ib_mad::{Guid, Lid};
use ib_sim::net::Net;
use rig::counters::{Setting, of_metric};
use rig::ground::{Ground, OnIbsim, Site};
use rig::{Exporter, OpenSm, topology};

/// The number of times that all LIDs change.
const TIMES: u16 = 50;

/// With this round trip and small windows a sweep takes most of its second: most changes are within one.
fn site() -> Site {
    Site {
        flags: &["--fabric.interval=1s", "--fabric.gmp-window=4", "--fabric.gmp-lid-window=1"],
        round_trip: Duration::from_millis(20),
        ..Site::of(topology::fat_tree_2(8, 10, 4, 3))
    }
}

const METRIC: &str = "infiniband_port_symbol_errors_total";

/// The symbol errors of each port, by node GUID and port number as in metrics. No two are equal.
type Expected = HashMap<(String, String), u64>;

/// Sets them.
fn set_counters(ground: &OnIbsim, net: &Net) -> Expected {
    let mut expected = Expected::new();
    let mut settings = Vec::new();
    for port in net.port_ids().filter(|port| net.port(*port).number > 0) {
        let (node, number, value) =
            (net.node_of(port), net.port(port).number, 1_001 + u64::from(port.0));
        let id = node.description.clone();
        settings.push(Setting {
            node: id,
            port: number,
            counter: of_metric("symbol_errors"),
            value,
        });
        expected.insert((format!("{:#018x}", node.guid.0), number.to_string()), value);
    }
    ground.set(&settings);
    expected
}

/// Compares all that is published until it is stopped. Returns the number of scrapes and of values.
fn compare(exporter: &Exporter, expected: &Expected, stop: &AtomicBool) -> (u64, u64) {
    let (mut scrapes, mut values) = (0, 0);
    while !stop.load(Ordering::Relaxed) {
        let metrics = exporter.metrics();
        scrapes += 1;
        for (labels, value) in metrics.all(METRIC) {
            let end = (labels["guid"].clone(), labels["port"].clone());
            assert_eq!(
                Some(value),
                expected.get(&end).map(|value| *value as f64),
                "{labels:?}, scrape {scrapes}"
            );
            values += 1;
        }
        thread::sleep(Duration::from_millis(50));
    }
    (scrapes, values)
}

#[test]
fn no_value_of_another_port_is_published_while_lids_change() {
    let site = site();
    let mut ground = OnIbsim::new(&site);
    let net = topology::net(&site.net);
    let expected = set_counters(&ground, &net);
    // Totals begin with the present counters.
    ground.restart(&site);
    ground.wait_whole();
    let mut ends: Vec<Guid> =
        net.port_ids().filter(|port| net.has_lid(*port)).map(|port| net.port(port).guid).collect();
    let stop = AtomicBool::new(false);
    let (scrapes, values) = thread::scope(|scope| {
        let comparing = scope.spawn(|| compare(&ground.exporter, &expected, &stop));
        for time in 0..TIMES {
            drop(ground.opensm.take());
            // Neighbors change places, then all move: switches get the LIDs of adapters and the reverse.
            if time % 2 == 0 {
                ends.chunks_exact_mut(2).for_each(<[Guid]>::reverse);
            } else {
                ends.rotate_left(usize::from(time) % 5 + 1);
            }
            let lids: Vec<(Guid, Lid)> = ends.iter().copied().zip((1..).map(Lid)).collect();
            ground.opensm = Some(OpenSm::start_with_lids(ground.ibsim.sm_seat(), &lids));
            // The next change is at another moment of a sweep, or between two.
            ground.exporter.wait_sweeps(1);
            thread::sleep(Duration::from_millis(u64::from(time) * 70 % 1_000));
            if comparing.is_finished() {
                break;
            }
        }
        stop.store(true, Ordering::Relaxed);
        comparing.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
    });
    // Afterwards everything is read, by the last LIDs.
    ground.wait_whole();
    let metrics = ground.two_sweeps_later();
    assert_eq!(metrics.all(METRIC).count(), expected.len());
    let repeated = ground.exporter.log().matches("LIDs changed").count();
    println!("{scrapes} scrapes with {values} values, {repeated} repeated sweeps");
    assert!(scrapes > 100 && values > 1_000 && repeated > 0, "{scrapes} {values} {repeated}");
    ground.end();
}
