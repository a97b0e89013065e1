//! A device whose reads take long.

use super::*;
use crate::reader::watch::FILE_LIMIT;

const COUNTERS: [&str; 10] = [
    "VL15_dropped",
    "excessive_buffer_overrun_errors",
    "link_downed",
    "link_error_recovery",
    "local_link_integrity_errors",
    "port_rcv_errors",
    "port_rcv_packets",
    "port_xmit_packets",
    "port_xmit_wait",
    "symbol_error",
];

/// A slow device and one that is not.
fn two() -> Sysfs {
    let sysfs = Sysfs::new();
    sysfs.device("mlx5_0", 1);
    sysfs.device("mlx5_1", 2);
    for device in ["mlx5_0", "mlx5_1"] {
        sysfs.counters(device, &COUNTERS, 7);
    }
    sysfs
}

fn symbol_errors(snapshot: &HostSnapshot) -> Vec<Option<u64>> {
    let of = |device: &Device| {
        device.ports.first().and_then(|port| port.reading.get(Counter::SymbolErrors))
    };
    snapshot.devices.iter().map(of).collect()
}

fn readable(snapshot: &HostSnapshot) -> Vec<bool> {
    snapshot.devices.iter().map(|device| device.is_readable).collect()
}

#[test]
fn values_of_slow_device_are_published_and_delay_no_other() {
    let (sysfs, time, gate) = (two(), Time::manual(), Gate::default());
    let is_slow = Arc::new(AtomicBool::new(true));
    let (clock, busy, waits) = (time.clone(), Arc::clone(&is_slow), gate.clone());
    sysfs.hook("mlx5_0", move |_| {
        if busy.load(Ordering::Relaxed) {
            clock.advance(Duration::from_millis(300));
        }
        waits.pass(|| {});
        Ok(())
    });
    let mut host = sysfs.host_at(&time);
    let mut first = None;
    let lines = logged(|| first = Some(host.read()));
    let first = first.unwrap();
    assert_eq!(symbol_errors(&first), [Some(7), Some(7)], "the first read takes 3 s");
    assert_eq!(lines.len(), 1, "{lines:?}");
    assert!(lines[0].contains("device is slow"), "{lines:?}");

    // The next one is in progress for as long as the test likes.
    is_slow.store(false, Ordering::Relaxed);
    gate.close();
    time.advance(Duration::from_secs(15));
    for device in ["mlx5_0", "mlx5_1"] {
        sysfs.counters(device, &COUNTERS, 8);
    }
    let second = host.read();
    gate.wait_for(1);
    assert_eq!(symbol_errors(&second), [Some(7), Some(8)], "only the other one was waited for");
    assert_eq!(readable(&second), [true, true]);
    let at = |snapshot: &HostSnapshot| snapshot.devices[0].ports[0].reading.at;
    assert_eq!(at(&second), at(&first), "its values have the time at which they were read");
    gate.open();
    let third = read_until(&mut host, |snapshot| symbol_errors(snapshot)[0] == Some(8));
    assert_eq!(at(&third), time.now());
}

#[test]
fn device_hangs_once_no_read_ends_within_its_limit() {
    let (sysfs, time, gate) = (two(), Time::manual(), Gate::default());
    let mut host = sysfs.host_at(&time);
    let (context, waits, clock) = (host.context.clone(), gate.clone(), time.clone());
    // It blocks before any file, as in a call that is not watched.
    host.executor = TimeoutExecutor::new(PATIENCE, move |reader: &mut DeviceReader| {
        Arc::clone(&reader.watch).run(|| {
            if *reader.device.name == *"mlx5_0" {
                waits.pass(|| clock.advance(PATIENCE));
            }
            reader.read(&context)
        })
    });
    assert_eq!(symbol_errors(&host.read()), [Some(7), Some(7)]);
    gate.close();
    let lines = logged(|| {
        let snapshot = host.read();
        assert_eq!(symbol_errors(&snapshot), [Some(7), Some(7)], "those of before");
        assert_eq!(readable(&snapshot), [true, true], "its limit is not over");
        time.advance(Duration::from_secs(10));
        for _ in 0..3 {
            assert_eq!(readable(&host.read()), [false, true]);
        }
        gate.open();
        read_until(&mut host, |snapshot| readable(snapshot) == [true, true]);
        let all = [Some(7), Some(7)];
        read_until(&mut host, |snapshot| symbol_errors(snapshot) == all);
    });
    let about = |text: &str| lines.iter().filter(|line| line.contains(text)).count();
    assert_eq!((about("device hangs"), about("responds again")), (1, 1), "{lines:?}");
    assert_eq!(about("device is slow"), 1, "{lines:?}");
}

#[test]
fn limit_of_device_grows_with_its_ports() {
    let (sysfs, time, gate) = (Sysfs::new(), Time::manual(), Gate::default());
    sysfs.device("mlx5_0", 1);
    for port in 2..=100 {
        sysfs.put(&format!("infiniband/mlx5_0/ports/{port}/state"), "4: ACTIVE\n");
    }
    let mut host = sysfs.host_at(&time);
    host.read();
    let (waits, clock) = (gate.clone(), time.clone());
    host.executor = TimeoutExecutor::new(PATIENCE, move |reader: &mut DeviceReader| {
        Arc::clone(&reader.watch).run(|| {
            waits.pass(|| clock.advance(PATIENCE));
            Ok(reader.device.clone())
        })
    });
    gate.close();
    assert_eq!(readable(&host.read()), [true]);
    time.advance(Duration::from_secs(8 * 60));
    assert_eq!(readable(&host.read()), [true]);
    time.advance(Duration::from_secs(60));
    assert_eq!(readable(&host.read()), [false]);
    gate.open();
}

#[test]
fn slow_device_that_is_quick_again_is_read_with_the_others() {
    let (sysfs, time) = (two(), Time::manual());
    let is_slow = Arc::new(AtomicBool::new(true));
    let (clock, busy) = (time.clone(), Arc::clone(&is_slow));
    sysfs.hook("mlx5_0", move |_| {
        if busy.load(Ordering::Relaxed) {
            clock.advance(FILE_LIMIT / 5);
        }
        Ok(())
    });
    let mut host = sysfs.host_at(&time);
    host.read();
    is_slow.store(false, Ordering::Relaxed);
    let is_background = |host: &HostReader| host.slots[0].is_background();
    assert!(is_background(&host));
    let lines = logged(|| {
        let began = std::time::Instant::now();
        while is_background(&host) && began.elapsed() < Duration::from_secs(60) {
            host.read();
        }
    });
    assert!(lines.len() == 1 && lines[0].contains("no longer slow"), "{lines:?}");
    sysfs.counters("mlx5_0", &COUNTERS, 9);
    assert_eq!(symbol_errors(&host.read())[0], Some(9), "at once");
}

#[test]
fn slow_device_is_read_by_one_thread() {
    let (sysfs, time) = (two(), Time::manual());
    let threads: Arc<Mutex<Vec<_>>> = Arc::default();
    let (clock, seen) = (time.clone(), Arc::clone(&threads));
    sysfs.hook("mlx5_0", move |_| {
        clock.advance(FILE_LIMIT / 5);
        let mut seen = seen.lock().unwrap();
        let id = std::thread::current().id();
        if !seen.contains(&id) {
            seen.push(id);
        }
        Ok(())
    });
    let mut host = sysfs.host_at(&time);
    for value in 1..=9 {
        sysfs.counters("mlx5_0", &COUNTERS, value);
        read_until(&mut host, |snapshot| symbol_errors(snapshot)[0] == Some(value));
    }
    let threads = threads.lock().unwrap().len();
    assert!(threads <= 2, "{threads}: with the others, then in the background");
}
