//! Files whose reads do not return.

use std::collections::BTreeMap;

use super::*;
use crate::reader::watch::FILE_LIMIT;

const FILES: [&str; 5] =
    ["link_downed", "port_rcv_errors", "port_xmit_discards", "port_xmit_wait", "symbol_error"];

/// A device with counters, some of which block while a gate is closed, and another device.
struct Host {
    sysfs: Sysfs,
    time: Time,
    gates: BTreeMap<&'static str, Gate>,
    reads: Arc<Mutex<Vec<String>>>,
    reader: HostReader,
}

impl Host {
    fn new(blocking: &[&'static str]) -> Self {
        let (sysfs, time) = (Sysfs::new(), Time::manual());
        for (device, guid) in [("mlx5_0", 1), ("mlx5_1", 2)] {
            sysfs.device(device, guid);
            sysfs.counters(device, &FILES, 7);
        }
        let gates: BTreeMap<_, _> = blocking.iter().map(|name| (*name, Gate::default())).collect();
        let reads: Arc<Mutex<Vec<String>>> = Arc::default();
        let (of, clock, log) = (gates.clone(), time.clone(), Arc::clone(&reads));
        sysfs.hook("mlx5_0", move |name| {
            log.lock().unwrap().push(name.to_owned());
            if let Some(gate) = of.get(name) {
                gate.pass(|| clock.advance(FILE_LIMIT));
            }
            Ok(())
        });
        let reader = sysfs.host_at(&time);
        gates.values().for_each(Gate::close);
        Host { sysfs, time, gates, reads, reader }
    }

    /// The number of counters of each device, and of files that are not read of the first.
    fn read(&mut self) -> ([usize; 2], usize) {
        counts(&self.reader.read())
    }

    fn reads_of(&self, name: &str) -> usize {
        self.reads.lock().unwrap().iter().filter(|read| **read == *name).count()
    }
}

fn counts(snapshot: &HostSnapshot) -> ([usize; 2], usize) {
    let of = |index: usize| {
        let port = snapshot.devices[index].ports.first();
        port.map_or(0, |port| {
            FILES
                .iter()
                .filter(|file| port.reading.get(Counter::from_file(file).unwrap()).is_some())
                .count()
        })
    };
    ([of(0), of(1)], snapshot.devices[0].unreadable_files)
}

#[test]
fn one_blocked_file_costs_that_file_alone() {
    let mut host = Host::new(&["port_xmit_discards"]);
    let mut seen = None;
    let lines = logged(|| seen = Some(host.read()));
    assert_eq!(seen, Some(([4, 5], 1)), "also at the first read");
    assert_eq!(lines.len(), 1, "{lines:?}");
    let text = "ports/1/counters/port_xmit_discards: the read hangs";
    assert!(lines[0].contains(text), "{lines:?}");
    let again = logged(|| {
        for _ in 0..3 {
            assert_eq!(host.read(), ([4, 5], 1));
        }
    });
    assert!(again.is_empty(), "{again:?}");
    assert_eq!(host.reads_of("port_xmit_discards"), 1, "it is not read again");
    // The read returns; the backoff begins.
    host.gates["port_xmit_discards"].open();
    let is_released = |host: &HostReader| host.slots[0].blocked_reads() == 0;
    let began = std::time::Instant::now();
    while !is_released(&host.reader) && began.elapsed() < Duration::from_secs(60) {
        assert_eq!(host.read(), ([4, 5], 1));
    }
    assert!(is_released(&host.reader));
    let before = host.reads_of("symbol_error");
    assert_eq!(host.read(), ([4, 5], 1), "it backs off");
    assert_eq!(host.reads_of("symbol_error"), before + 1, "the abandoned reader reads nothing");
    host.time.advance(host.reader.context.options.error_backoff);
    read_until(&mut host.reader, |snapshot| counts(snapshot) == ([5, 5], 0));
}

#[test]
fn file_that_blocked_is_tried_again_in_background() {
    let mut host = Host::new(&["symbol_error"]);
    assert_eq!(host.read(), ([4, 5], 1));
    let gate = host.gates["symbol_error"].clone();
    gate.open();
    read_until(&mut host.reader, |_| true);
    let began = std::time::Instant::now();
    while host.reader.slots[0].blocked_reads() > 0 && began.elapsed() < Duration::from_secs(60) {
        host.read();
    }
    gate.close();
    host.time.advance(host.reader.context.options.error_backoff);
    host.sysfs.counters("mlx5_1", &FILES, 8);
    // It blocks again: nothing waits for it, and what was read before is published.
    assert_eq!(host.read(), ([4, 5], 1));
    gate.wait_for(1);
    assert_eq!(host.read(), ([4, 5], 1));
    assert_eq!(host.reads_of("symbol_error"), 2);
    gate.open();
}

#[test]
fn device_with_three_blocked_files_hangs_until_one_returns() {
    let mut host = Host::new(&FILES);
    let lines = logged(|| {
        for _ in 0..3 {
            assert_eq!(host.read(), ([0, 5], 0));
        }
    });
    let hangs = |line: &&String| line.contains("device hangs");
    assert_eq!(lines.iter().filter(hangs).count(), 1, "{lines:?}");
    assert!(!host.reader.read().devices[0].is_readable);
    let tried = || FILES.map(|name| host.reads_of(name));
    assert_eq!(tried(), [1, 1, 1, 0, 0], "three threads at most");
    // The others can be read, if only one of the three returns.
    let names = ["port_xmit_wait", "symbol_error", "link_downed"];
    for name in names {
        host.gates[name].open();
    }
    read_until(&mut host.reader, |snapshot| counts(snapshot) == ([2, 5], 3));
    assert!(host.reader.read().devices[0].is_readable);
    host.gates.values().for_each(Gate::open);
}

#[test]
fn blocked_driver_counters_cost_their_directory() {
    let mut host = Host::new(&[]);
    let (gate, clock) = (Gate::default(), host.time.clone());
    let directory = host.sysfs.path("infiniband/mlx5_0/ports/1/hw_counters");
    for name in ["out_of_buffer", "out_of_sequence", "rnr_nak_retry_err", "lifespan"] {
        host.sysfs.put(&format!("infiniband/mlx5_0/ports/1/hw_counters/{name}"), "7\n");
    }
    let waits = gate.clone();
    sysfs::hooks::set(&directory, move |_| {
        waits.pass(|| clock.advance(FILE_LIMIT));
        Ok(())
    });
    gate.close();
    // The kernel has one lock for all of them: each read would block.
    let lines = logged(|| {
        for _ in 0..3 {
            assert_eq!(host.read(), ([5, 5], 3));
        }
    });
    assert_eq!(host.reader.slots[0].blocked_reads(), 1);
    assert_eq!(lines.len(), 1, "{lines:?}");
    assert!(lines[0].contains("ports/1/hw_counters: the read hangs"), "{lines:?}");
    gate.open();
    while host.reader.slots[0].blocked_reads() > 0 {
        host.read();
    }
    host.time.advance(host.reader.context.options.error_backoff);
    read_until(&mut host.reader, |snapshot| counts(snapshot) == ([5, 5], 0));
}

#[test]
fn reads_of_healthy_devices_use_one_thread() {
    let mut host = Host::new(&[]);
    let threads = Arc::new(Mutex::new(BTreeMap::new()));
    let seen = Arc::clone(&threads);
    host.sysfs.hook("mlx5_0", move |_| {
        let id = format!("{:?}", std::thread::current().id());
        *seen.lock().unwrap().entry(id).or_insert(0) += 1;
        Ok(())
    });
    for _ in 0..9 {
        assert_eq!(host.read(), ([5, 5], 0));
    }
    let threads = threads.lock().unwrap();
    assert_eq!(threads.values().collect::<Vec<_>>(), [&(9 * FILES.len())]);
}
