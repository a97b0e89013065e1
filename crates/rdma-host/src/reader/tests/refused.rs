//! Devices that refuse to read their counters.

use std::os::unix::fs::symlink;

use super::*;
use crate::model::PortKind;

const FILES: [&str; 6] = [
    "link_downed",
    "port_rcv_data",
    "port_rcv_errors",
    "port_xmit_data",
    "port_xmit_discards",
    "symbol_error",
];

/// Puts a device on a PCI function of mlx5, and returns the directory of the function.
fn on_function(sysfs: &Sysfs, name: &str) -> PathBuf {
    let function = sysfs.0.path().join("devices/0000:31:00.0");
    fs::create_dir_all(&function).unwrap();
    symlink("/sys/bus/pci/drivers/mlx5_core", function.join("driver")).unwrap();
    symlink(&function, sysfs.path(&format!("infiniband/{name}/device"))).unwrap();
    function
}

/// A device with two ports. The reads of its counters are returned as they happen; `fails` is asked at each.
fn device(
    sysfs: &Sysfs,
    fails: impl Fn(&str) -> Option<i32> + Clone + Send + Sync + 'static,
) -> Arc<Mutex<Vec<String>>> {
    sysfs.device("mlx5_0", 1);
    let reads: Arc<Mutex<Vec<String>>> = Arc::default();
    for port in [1, 2] {
        let of = format!("infiniband/mlx5_0/ports/{port}");
        sysfs.put(&format!("{of}/state"), "4: ACTIVE\n");
        for directory in ["counters", "hw_counters"] {
            for name in FILES {
                sysfs.put(&format!("{of}/{directory}/{name}"), "7\n");
            }
            let (log, fails) = (Arc::clone(&reads), fails.clone());
            sysfs::hooks::set(&sysfs.path(&format!("{of}/{directory}")), move |name| {
                log.lock().unwrap().push(format!("{port}/{directory}/{name}"));
                fails(name).map_or(Ok(()), |error| Err(io::Error::from_raw_os_error(error)))
            });
        }
    }
    reads
}

#[test]
fn device_that_refuses_its_first_counters_is_not_asked_again() {
    let (sysfs, time) = (Sysfs::new(), Time::manual());
    let reads = device(&sysfs, |_| Some(libc::EINVAL));
    on_function(&sysfs, "mlx5_0");
    let mut host = sysfs.host_at(&time);
    let lines = logged(|| {
        for _ in 0..3 {
            let snapshot = host.read();
            let device = &snapshot.devices[0];
            assert_eq!(device.kind, PortKind::Restricted);
            assert!(device.ports.iter().all(|port| port.kind == PortKind::Restricted));
            assert_eq!(device.ports[1].state, Some(PortState::Active), "states are read");
            // Longer than any backoff.
            time.advance(2 * host.context.options.error_backoff);
        }
    });
    let expected = ["link_downed", "port_rcv_data", "port_rcv_errors"];
    assert_eq!(*reads.lock().unwrap(), expected.map(|name| format!("1/counters/{name}")));
    assert_eq!(lines.len(), 1, "{lines:?}");
    assert!(lines[0].contains("--host.device-exclude"), "{lines:?}");
    // The device is made again.
    fs::remove_dir_all(sysfs.path("infiniband/mlx5_0")).unwrap();
    device(&sysfs, |_| None);
    let device = &host.read().devices[0];
    assert_eq!(device.ports[1].reading.get(Counter::SymbolErrors), Some(7));
}

#[test]
fn one_refused_counter_costs_that_counter() {
    let (sysfs, time) = (Sysfs::new(), Time::manual());
    let refused = ["link_downed", "port_rcv_data"];
    device(&sysfs, move |name| refused.contains(&name).then_some(libc::EINVAL));
    on_function(&sysfs, "mlx5_0");
    let mut host = sysfs.host_at(&time);
    let mut seen = None;
    let lines = logged(|| seen = Some(host.read()));
    let device = &seen.unwrap().devices[0];
    assert_eq!(device.kind, PortKind::Physical);
    assert_eq!(device.ports[1].reading.get(Counter::SymbolErrors), Some(7));
    // In two directories of two ports.
    assert_eq!(device.unreadable_files, 8);
    assert_eq!(lines.len(), 1, "{lines:?}");
    let text = "ports/2/counters/{link_downed,port_rcv_data}: Invalid argument";
    assert!(lines[0].contains(text) && lines[0].contains("3600s"), "{lines:?}");
    assert!(logged(|| drop(host.read())).is_empty(), "it is not repeated");
}

#[test]
fn counter_that_failed_once_is_back_at_the_next_read() {
    let (sysfs, time) = (Sysfs::new(), Time::manual());
    let fails = Arc::new(AtomicBool::new(false));
    let is = Arc::clone(&fails);
    device(&sysfs, move |_| is.load(Ordering::Relaxed).then_some(libc::EIO));
    let state = "infiniband/mlx5_0/ports/1/state";
    let mut host = sysfs.host_at(&time);
    host.read();
    sysfs.put(state, "");
    fails.store(true, Ordering::Relaxed);
    let lines = logged(|| {
        let port = &host.read().devices[0].ports[0];
        assert_eq!((port.state, port.reading.get(Counter::SymbolErrors)), (None, None));
        sysfs.put(state, "1: DOWN\n");
        fails.store(false, Ordering::Relaxed);
        let port = &host.read().devices[0].ports[0];
        assert_eq!(
            (port.state, port.reading.get(Counter::SymbolErrors)),
            (Some(PortState::Down), Some(7))
        );
    });
    assert!(lines.is_empty(), "{lines:?}");
}

#[test]
fn no_function_of_a_board_with_nvlink_bridges_leads_to_a_fabric_of_hosts() {
    let sysfs = Sysfs::new();
    device(&sysfs, |_| None);
    let function = on_function(&sysfs, "mlx5_0");
    let vpd = b"\x82\x10\x00Umbriel CX7 mezz\x90\x07\x00PN\x04692-\x78";
    fs::write(function.join("vpd"), vpd).unwrap();
    fs::write(function.join("vendor"), "0x15b3\n").unwrap();
    for (id, is_it) in [("0x1021", true), ("0x1023", false)] {
        fs::write(function.join("device"), format!("{id}\n")).unwrap();
        assert_eq!(is_nvlink_bridge(sysfs.0.path(), "mlx5_0"), is_it, "{id}");
        let kind = if is_it { PortKind::NvlinkBridge } else { PortKind::Physical };
        assert_eq!(sysfs.host().read().devices[0].kind, kind, "{id}");
    }
}

#[test]
fn counters_of_nvlink_bridge_are_never_read() {
    let (sysfs, time) = (Sysfs::new(), Time::manual());
    let reads = device(&sysfs, |_| None);
    let function = on_function(&sysfs, "mlx5_0");
    let vpd = b"\x82\x08\x00CX7 mezz\x90\x20\x00VA\x1dMLX:MN=MLNX:SMDL=SW_MNG:PCI=V0\x78";
    fs::write(function.join("vpd"), vpd).unwrap();
    assert!(is_nvlink_bridge(sysfs.0.path(), "mlx5_0"));
    let mut host = sysfs.host_at(&time);
    for _ in 0..2 {
        let device = &host.read().devices[0];
        assert_eq!((device.kind, device.unreadable_files), (PortKind::NvlinkBridge, 0));
        assert_eq!(
            (device.ports[0].kind, device.ports[0].state),
            (PortKind::NvlinkBridge, Some(PortState::Active))
        );
    }
    assert_eq!(reads.lock().unwrap().len(), 0);
    // VPD is read once.
    fs::write(function.join("vpd"), "").unwrap();
    time.advance(Duration::from_secs(3600));
    assert_eq!(host.read().devices[0].kind, PortKind::NvlinkBridge);
}
