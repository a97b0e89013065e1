//! Devices of a host that change between two reads.

mod blocked;
mod kept;
mod ports;
mod refused;
mod rig;
mod slow;
mod smi;

use std::fs;
use std::path::PathBuf;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};

use tempfile::TempDir;

use super::*;
use ib_mad::port_state::PortState;
use ib_mad::{Counter, Guid};
use rig::{Gate, Lines, logged, read_until};

/// A sysfs in a temporary directory.
struct Sysfs(TempDir);

impl Sysfs {
    fn new() -> Self {
        Lines::collect();
        Sysfs(tempfile::tempdir().unwrap())
    }

    fn path(&self, below: &str) -> PathBuf {
        self.0.path().join("class").join(below)
    }

    fn put(&self, below: &str, text: &str) {
        let path = self.path(below);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }

    /// A device with an active port, known by a GUID.
    fn device(&self, name: &str, guid: u64) {
        self.put(&format!("infiniband/{name}/node_guid"), &format!("0000:0000:0000:{guid:04x}\n"));
        self.put(&format!("infiniband/{name}/ports/1/state"), "4: ACTIVE\n");
    }

    fn rename(&self, from: &str, to: &str) {
        fs::rename(
            self.path(&format!("infiniband/{from}")),
            self.path(&format!("infiniband/{to}")),
        )
        .unwrap();
    }

    /// A reader with a clock that only the test advances.
    fn host_at(&self, time: &Time) -> HostReader {
        let mut host = self.host();
        host.context.time = time.clone();
        host.executor = executor(&host.context);
        host
    }

    /// Calls `hook` at the read of each counter of the first port.
    fn hook(&self, device: &str, hook: impl Fn(&str) -> io::Result<()> + Send + Sync + 'static) {
        sysfs::hooks::set(&self.path(&format!("infiniband/{device}/ports/1/counters")), hook);
    }

    /// Sets counters of the first port.
    fn counters(&self, device: &str, names: &[&str], value: u64) {
        for name in names {
            let file = format!("infiniband/{device}/ports/1/counters/{name}");
            self.put(&file, &format!("{value}\n"));
        }
    }

    fn host(&self) -> HostReader {
        let error_backoff = Duration::from_secs(3600);
        let options = ReadOptions { error_backoff, ethtool: true, cm: true, modules: false };
        HostReader::new(self.0.path().to_owned(), DeviceFilter::default(), options, Clock::start())
    }
}

/// Names, GUIDs and the first port's state.
fn summary(host: &mut HostReader) -> Vec<(String, Option<Guid>, Option<PortState>)> {
    let devices = host.read().devices;
    let summary = |device: &Device| {
        let state = device.ports.first().and_then(|port| port.state);
        (device.name.to_string(), device.info.guid, state)
    };
    devices.iter().map(summary).collect()
}

fn active(name: &str, guid: u64) -> (String, Option<Guid>, Option<PortState>) {
    (name.to_owned(), Some(Guid(guid)), Some(PortState::Active))
}

#[test]
fn devices_that_swap_names_are_read_by_new_name() {
    let sysfs = Sysfs::new();
    sysfs.device("mlx5_0", 1);
    sysfs.device("mlx5_1", 2);
    let mut host = sysfs.host();
    assert_eq!(summary(&mut host), [active("mlx5_0", 1), active("mlx5_1", 2)]);
    sysfs.rename("mlx5_0", "ib0");
    sysfs.rename("mlx5_1", "mlx5_0");
    sysfs.rename("ib0", "mlx5_1");
    assert_eq!(summary(&mut host), [active("mlx5_0", 2), active("mlx5_1", 1)]);
}

#[test]
fn port_directories_01_and_1_are_one_port() {
    let sysfs = Sysfs::new();
    sysfs.device("mlx5_0", 1);
    sysfs.put("infiniband/mlx5_0/ports/01/state", "1: DOWN\n");
    let devices = sysfs.host().read().devices;
    assert_eq!(devices[0].ports.len(), 1);
    assert_eq!(devices[0].ports[0].state, Some(PortState::Active));
}

#[test]
fn reset_device_is_read_despite_backoff() {
    let sysfs = Sysfs::new();
    sysfs.device("mlx5_0", 1);
    sysfs.put("infiniband/mlx5_0/ports/1/state", "");
    let mut host = sysfs.host();
    assert_eq!(summary(&mut host), [("mlx5_0".to_owned(), Some(Guid(1)), None)]);
    fs::remove_dir_all(sysfs.path("infiniband/mlx5_0")).unwrap();
    sysfs.device("mlx5_0", 1);
    assert_eq!(summary(&mut host), [active("mlx5_0", 1)]);
}

#[test]
fn refresh_ends_backoff_of_port_state() {
    let sysfs = Sysfs::new();
    sysfs.device("mlx5_0", 1);
    sysfs.put("infiniband/mlx5_0/ports/1/state", "");
    let mut host = sysfs.host();
    assert_eq!(summary(&mut host)[0].2, None);
    sysfs.put("infiniband/mlx5_0/ports/1/state", "4: ACTIVE\n");
    assert_eq!(summary(&mut host)[0].2, None, "it backs off");
    host.refresh(Some("mlx5_1"));
    assert_eq!(summary(&mut host)[0].2, None, "another device was refreshed");
    host.refresh(Some("mlx5_0"));
    assert_eq!(summary(&mut host), [active("mlx5_0", 1)]);
}

#[test]
fn devices_that_cannot_be_listed_stay() {
    let sysfs = Sysfs::new();
    sysfs.device("mlx5_0", 1);
    let mut host = sysfs.host();
    assert_eq!(summary(&mut host), [active("mlx5_0", 1)]);
    sysfs.rename("", "../hidden");
    fs::write(sysfs.path("infiniband"), "").unwrap();
    assert_eq!(summary(&mut host), [active("mlx5_0", 1)]);
}

#[test]
fn failed_wide_counter_is_not_replaced_by_narrow_one() {
    let sysfs = Sysfs::new();
    sysfs.device("mlx4_0", 1);
    let port = "infiniband/mlx4_0/ports/1";
    sysfs.put(&format!("{port}/counters/port_rcv_data"), "4294967295\n");
    sysfs.put(&format!("{port}/counters/symbol_error"), "7\n");
    sysfs.put(&format!("{port}/counters_ext/port_rcv_data_64"), "N/A\n");
    sysfs.put(&format!("{port}/counters_ext/port_xmit_data_64"), "900000000000\n");
    let snapshot = sysfs.host().read();
    let reading = &snapshot.devices[0].ports[0].reading;
    assert_eq!(reading.get(Counter::RcvData), None);
    assert_eq!(reading.get(Counter::XmitData), Some(900_000_000_000));
    assert_eq!(reading.get(Counter::SymbolErrors), Some(7));
}

#[test]
fn bond_has_only_slaves_of_its_device() {
    let sysfs = Sysfs::new();
    for (device, netdev) in [("mlx5_0", "eth0"), ("mlx5_1", "eth1")] {
        sysfs.device(device, 1);
        sysfs.put(&format!("infiniband/{device}/ports/1/link_layer"), "Ethernet\n");
        sysfs.put(&format!("infiniband/{device}/ports/1/gid_attrs/ndevs/0"), "bond0\n");
        sysfs.put(&format!("net/{netdev}/operstate"), "up\n");
        sysfs.put(&format!("net/{netdev}/device/infiniband/{device}/node_guid"), "");
    }
    // Of two functions that are one device, the other one has no device of its own.
    sysfs.put("net/eth2/device/vendor", "0x15b3\n");
    sysfs.put("net/bond0/bonding/slaves", "eth0 eth1 eth2\n");
    let snapshot = sysfs.host().read();
    let netdevs = |device: usize| {
        let netdevs = &snapshot.devices[device].ports[0].netdevs;
        netdevs.iter().map(|netdev| netdev.name.to_string()).collect::<Vec<_>>()
    };
    assert_eq!(netdevs(0), ["bond0", "eth0", "eth2"]);
    assert_eq!(netdevs(1), ["bond0", "eth1", "eth2"]);
}

/// The kernel stops an interface that is set down before it says so in `flags`.
#[test]
fn interface_that_is_being_set_down_is_down() {
    let sysfs = Sysfs::new();
    sysfs.device("rxe0", 1);
    sysfs.put("infiniband/rxe0/ports/1/link_layer", "Ethernet\n");
    sysfs.put("infiniband/rxe0/parent", "eth0\n");
    let mut host = sysfs.host();
    let mut is_up = |flags: &str, carrier: Result<&str, i32>| {
        sysfs.put("net/eth0/flags", flags);
        sysfs.put("net/eth0/carrier", carrier.unwrap_or_default());
        let error = carrier.err();
        sysfs::hooks::set(&sysfs.path("net/eth0"), move |name| match error {
            Some(error) if name == "carrier" => Err(io::Error::from_raw_os_error(error)),
            _ => Ok(()),
        });
        let netdev = &host.read().devices[0].ports[0].netdevs[0];
        (netdev.is_admin_up, netdev.carrier)
    };
    assert_eq!(is_up("0x1003\n", Ok("1\n")), (Some(true), Some(true)));
    assert_eq!(is_up("0x1003\n", Ok("0\n")), (Some(true), Some(false)), "a pulled cable");
    assert_eq!(is_up("0x1003\n", Err(libc::EINVAL)), (Some(false), None), "being set down");
    assert_eq!(is_up("0x1002\n", Err(libc::EINVAL)), (Some(false), None));
    assert_eq!(is_up("0x1003\n", Err(libc::EIO)), (Some(true), None), "unknown");
}

#[test]
fn value_at_limit_of_narrowest_field_is_saturated() {
    let sysfs = Sysfs::new();
    sysfs.device("mthca0", 1);
    let files = [
        ("symbol_error", "65535", true),
        ("link_downed", "254", false),
        ("link_error_recovery", "65535", false),
        ("local_link_integrity_errors", "15", true),
        ("port_xmit_wait", "4294967295", true),
        ("port_rcv_data", "4294967295", true),
        ("unicast_xmit_packets", "18446744073709551615", false),
    ];
    for (file, value, _) in files {
        sysfs.put(&format!("infiniband/mthca0/ports/1/counters/{file}"), &format!("{value}\n"));
    }
    let snapshot = sysfs.host().read();
    let reading = &snapshot.devices[0].ports[0].reading;
    for (file, value, saturated) in files {
        let counter = Counter::from_file(file).unwrap();
        assert_eq!(reading.get(counter), Some(value.parse().unwrap()), "{file}");
        assert_eq!(reading.saturated.contains(counter), saturated, "{file}");
    }
}

#[test]
fn panicking_device_is_reopened_at_next_read() {
    let sysfs = Sysfs::new();
    sysfs.device("mlx5_0", 1);
    sysfs.device("mlx5_1", 2);
    let mut host = sysfs.host();
    let panics = Arc::new(AtomicBool::new(true));
    let must_panic = Arc::clone(&panics);
    let error_backoff = Duration::from_secs(3600);
    let options = ReadOptions { error_backoff, ethtool: false, cm: false, modules: false };
    let context = ReadContext { options, ..host.context.clone() };
    host.executor =
        TimeoutExecutor::new(Duration::from_secs(60), move |reader: &mut DeviceReader| {
            let is_sick = must_panic.load(Ordering::Relaxed) && *reader.device.name == *"mlx5_0";
            assert!(!is_sick, "as planned");
            reader.read(&context)
        });
    let mut answers = || {
        let devices = host.read().devices;
        devices
            .iter()
            .map(|device| (device.name.to_string(), device.is_readable))
            .collect::<Vec<_>>()
    };
    let first = |answers| [("mlx5_0".to_owned(), answers), ("mlx5_1".to_owned(), true)];
    for _ in 0..2 {
        assert_eq!(answers(), first(false));
    }
    panics.store(false, Ordering::Relaxed);
    assert_eq!(answers(), first(true));
}

#[test]
fn problem_of_listing_names_the_path() {
    let sysfs = Sysfs::new();
    let problem = |host: &mut HostReader| host.read().problem;
    let mut host = sysfs.host();
    assert_eq!(problem(&mut host), None, "no RDMA module is loaded");
    sysfs.put("infiniband", "");
    assert!(problem(&mut host).unwrap().contains("class/infiniband: Not a directory"));
    fs::remove_file(sysfs.path("infiniband")).unwrap();
    assert_eq!(problem(&mut host), None);
    let mut nowhere = HostReader { sysfs: sysfs.0.path().join("sys"), ..sysfs.host() };
    let problem = problem(&mut nowhere).unwrap();
    assert!(
        problem.contains("--path.sysfs") && problem.contains("/sys: No such file"),
        "{problem}"
    );
}

#[test]
fn temperatures_are_read_from_hwmon() {
    let sysfs = Sysfs::new();
    sysfs.device("mlx5_0", 1);
    for (file, text) in [
        ("hwmon4/temp1_input", "61000\n"),
        ("hwmon4/temp1_label", "asic\n"),
        ("hwmon4/temp1_crit", "105000\n"),
        ("hwmon4/temp2_input", "-4500\n"),
        ("hwmon4/temp3_input", "N/A\n"),
        // Another monitor of the same device.
        ("hwmon5/temp1_input", "40000\n"),
        ("hwmon5/temp1_label", "asic\n"),
    ] {
        sysfs.put(&format!("infiniband/mlx5_0/device/hwmon/{file}"), text);
    }
    let sensor = |label: &str, celsius, critical| crate::model::Sensor {
        label: label.to_owned(),
        celsius,
        critical,
    };
    let devices = sysfs.host().read().devices;
    assert_eq!(
        devices[0].sensors,
        [sensor("asic", 61.0, Some(105.0)), sensor("temp2", -4.5, None)]
    );
}
