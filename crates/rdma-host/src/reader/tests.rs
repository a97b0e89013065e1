//! A host's devices as they change between two looks.

use std::fs;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};

use tempfile::TempDir;

use super::*;
use ib_mad::{Counter, Guid};

/// A sysfs of one's own.
struct Sysfs(TempDir);

impl Sysfs {
    fn new() -> Self {
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

    fn host(&self) -> Host {
        let manner = Manner { rest: Duration::from_secs(3600), ethtool: true, cm: true };
        Host::new(self.0.path().to_owned(), Selection::default(), manner, Clock::start())
    }
}

/// Names, GUIDs and the first port's state.
fn told(host: &mut Host) -> Vec<(String, Option<Guid>, Option<u8>)> {
    let devices = host.look().devices;
    let told = |device: &Device| {
        let state = device.ports.first().and_then(|port| port.state);
        (device.name.to_string(), device.about.guid, state)
    };
    devices.iter().map(told).collect()
}

fn active(name: &str, guid: u64) -> (String, Option<Guid>, Option<u8>) {
    (name.to_owned(), Some(Guid(guid)), Some(4))
}

#[test]
fn devices_that_swap_their_names_are_told_by_the_new_ones() {
    let sysfs = Sysfs::new();
    sysfs.device("mlx5_0", 1);
    sysfs.device("mlx5_1", 2);
    let mut host = sysfs.host();
    assert_eq!(told(&mut host), [active("mlx5_0", 1), active("mlx5_1", 2)]);
    sysfs.rename("mlx5_0", "ib0");
    sysfs.rename("mlx5_1", "mlx5_0");
    sysfs.rename("ib0", "mlx5_1");
    assert_eq!(told(&mut host), [active("mlx5_0", 2), active("mlx5_1", 1)]);
}

#[test]
fn a_port_that_is_shown_by_two_names_is_one_port() {
    let sysfs = Sysfs::new();
    sysfs.device("mlx5_0", 1);
    sysfs.put("infiniband/mlx5_0/ports/01/state", "1: DOWN\n");
    let devices = sysfs.host().look().devices;
    assert_eq!(devices[0].ports.len(), 1);
    assert_eq!(devices[0].ports[0].state, Some(4));
}

#[test]
fn a_device_that_was_reset_is_read_although_its_state_had_refused() {
    let sysfs = Sysfs::new();
    sysfs.device("mlx5_0", 1);
    sysfs.put("infiniband/mlx5_0/ports/1/state", "");
    let mut host = sysfs.host();
    assert_eq!(told(&mut host), [("mlx5_0".to_owned(), Some(Guid(1)), None)]);
    fs::remove_dir_all(sysfs.path("infiniband/mlx5_0")).unwrap();
    sysfs.device("mlx5_0", 1);
    assert_eq!(told(&mut host), [active("mlx5_0", 1)]);
}

#[test]
fn what_refused_to_say_how_a_port_stands_is_asked_when_something_was_heard() {
    let sysfs = Sysfs::new();
    sysfs.device("mlx5_0", 1);
    sysfs.put("infiniband/mlx5_0/ports/1/state", "");
    let mut host = sysfs.host();
    assert_eq!(told(&mut host)[0].2, None);
    sysfs.put("infiniband/mlx5_0/ports/1/state", "4: ACTIVE\n");
    assert_eq!(told(&mut host)[0].2, None, "it is left alone");
    host.look_closely_at("mlx5_1");
    assert_eq!(told(&mut host)[0].2, None, "another device told");
    host.look_closely_at("mlx5_0");
    assert_eq!(told(&mut host), [active("mlx5_0", 1)]);
}

#[test]
fn devices_that_cannot_be_listed_are_not_gone() {
    let sysfs = Sysfs::new();
    sysfs.device("mlx5_0", 1);
    let mut host = sysfs.host();
    assert_eq!(told(&mut host), [active("mlx5_0", 1)]);
    sysfs.rename("", "../hidden");
    fs::write(sysfs.path("infiniband"), "").unwrap();
    assert_eq!(told(&mut host), [active("mlx5_0", 1)]);
}

#[test]
fn a_wide_counter_that_refuses_is_not_told_by_its_narrow_one() {
    let sysfs = Sysfs::new();
    sysfs.device("mlx4_0", 1);
    let port = "infiniband/mlx4_0/ports/1";
    sysfs.put(&format!("{port}/counters/port_rcv_data"), "4294967295\n");
    sysfs.put(&format!("{port}/counters/symbol_error"), "7\n");
    sysfs.put(&format!("{port}/counters_ext/port_rcv_data_64"), "N/A\n");
    sysfs.put(&format!("{port}/counters_ext/port_xmit_data_64"), "900000000000\n");
    let snapshot = sysfs.host().look();
    let reading = &snapshot.devices[0].ports[0].reading;
    assert_eq!(reading.get(Counter::RcvData), None);
    assert_eq!(reading.get(Counter::XmitData), Some(900_000_000_000));
    assert_eq!(reading.get(Counter::SymbolErrors), Some(7));
}

#[test]
fn a_bond_has_those_of_its_interfaces_that_are_the_devices_own() {
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
    let snapshot = sysfs.host().look();
    let netdevs = |device: usize| {
        let netdevs = &snapshot.devices[device].ports[0].netdevs;
        netdevs.iter().map(|netdev| netdev.name.to_string()).collect::<Vec<_>>()
    };
    assert_eq!(netdevs(0), ["bond0", "eth0", "eth2"]);
    assert_eq!(netdevs(1), ["bond0", "eth1", "eth2"]);
}

#[test]
fn a_value_that_fills_the_narrowest_field_of_its_counter_is_stuck() {
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
    let snapshot = sysfs.host().look();
    let reading = &snapshot.devices[0].ports[0].reading;
    for (file, value, stuck) in files {
        let counter = Counter::from_file(file).unwrap();
        assert_eq!(reading.get(counter), Some(value.parse().unwrap()), "{file}");
        assert_eq!(reading.is_stuck(counter), stuck, "{file}");
    }
}

#[test]
fn a_device_at_which_reading_panics_is_down_and_read_again_at_the_next_look() {
    let sysfs = Sysfs::new();
    sysfs.device("mlx5_0", 1);
    sysfs.device("mlx5_1", 2);
    let mut host = sysfs.host();
    let panics = Arc::new(AtomicBool::new(true));
    let told_to = Arc::clone(&panics);
    let manner = Manner { rest: Duration::from_secs(3600), ethtool: false, cm: false };
    let looking = Looking { clock: Clock::start(), manner };
    host.patience = Patience::new(Duration::from_secs(60), move |reader: &mut DeviceReader| {
        let is_sick = told_to.load(Ordering::Relaxed) && **reader.name() == *"mlx5_0";
        assert!(!is_sick, "as planned");
        reader.read(&looking)
    });
    let mut answers = || {
        let devices = host.look().devices;
        devices.iter().map(|device| (device.name.to_string(), device.answers)).collect::<Vec<_>>()
    };
    let first = |answers| [("mlx5_0".to_owned(), answers), ("mlx5_1".to_owned(), true)];
    for _ in 0..2 {
        assert_eq!(answers(), first(false));
    }
    panics.store(false, Ordering::Relaxed);
    assert_eq!(answers(), first(true));
}

#[test]
fn why_devices_cannot_be_listed_is_told_with_the_path() {
    let sysfs = Sysfs::new();
    let problem = |host: &mut Host| host.look().problem;
    let mut host = sysfs.host();
    assert_eq!(problem(&mut host), None, "no RDMA module is loaded");
    sysfs.put("infiniband", "");
    assert!(problem(&mut host).unwrap().contains("class/infiniband: Not a directory"));
    fs::remove_file(sysfs.path("infiniband")).unwrap();
    assert_eq!(problem(&mut host), None);
    let mut nowhere = Host { sysfs: sysfs.0.path().join("sys"), ..sysfs.host() };
    let problem = problem(&mut nowhere).unwrap();
    assert!(
        problem.contains("--path.sysfs") && problem.contains("/sys: No such file"),
        "{problem}"
    );
}
